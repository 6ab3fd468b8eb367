// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE  // memfd_create and seals

#include "memory/ipc_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL };
enum { NAME_BYTES = 96, PATH_BYTES = 64 };

static void name_of(const char *kind, struct sim_shared_id id, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "cuda-sim-%s-%016" PRIx64 "%016" PRIx64, kind, id.words[0], id.words[1]);
}

CUresult sim_shared_new(const char *kind, size_t size, struct sim_shared *shared)
{
    shared->size = size;
    if (getrandom(&shared->id, sizeof shared->id, 0) != sizeof shared->id)
        return CUDA_ERROR_OPERATING_SYSTEM;
    char name[NAME_BYTES];
    name_of(kind, shared->id, name);
    shared->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (shared->fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (ftruncate(shared->fd, (off_t)size) || fcntl(shared->fd, F_ADD_SEALS, SEALS)) {
        sim_shared_close(shared);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

void sim_shared_close(struct sim_shared *shared)
{
    if (shared->fd >= 0)
        close(shared->fd);
    shared->fd = -1;
}

void *sim_shared_map(const struct sim_shared *shared, size_t offset, size_t size)
{
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, shared->fd, (off_t)offset);
    return start == MAP_FAILED ? NULL : start;
}

// --- What others hand over ------------------------------------------------------------------------------------

// What /proc calls the object that a link there stands for.
static bool read_name(const char *path, char name[NAME_BYTES])
{
    ssize_t length = readlink(path, name, NAME_BYTES - 1);
    name[length < 0 ? 0 : length] = 0;
    return length > 0;
}

static bool parse_name(const char *kind, const char *name, struct sim_shared_id *id)
{
    char prefix[NAME_BYTES], high[17] = {0}, *end;
    int length = snprintf(prefix, sizeof prefix, "/memfd:cuda-sim-%s-", kind);
    if (strncmp(name, prefix, (size_t)length) != 0 || strlen(name + length) < 32)
        return false;
    memcpy(high, name + length, 16);
    id->words[0] = strtoull(high, &end, 16);
    if (*end)
        return false;
    memcpy(high, name + length + 16, 16);
    id->words[1] = strtoull(high, &end, 16);
    return !*end;
}

bool sim_shared_examine(const char *kind, int fd, struct sim_shared *shared)
{
    char path[PATH_BYTES], name[NAME_BYTES];
    struct stat status;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || !read_name(path, name) || !parse_name(kind, name, &shared->id))
        return false;
    // Without the seals another process could make the file shorter, and every access here a fault.
    if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &status) || status.st_size <= 0)
        return false;
    shared->size = (size_t)status.st_size;
    shared->fd = fd;
    return true;
}

struct sim_shared_place sim_shared_place(const struct sim_shared *shared)
{
    return (struct sim_shared_place){shared->id, getpid(), shared->fd};
}

bool sim_shared_same(struct sim_shared_id a, struct sim_shared_id b)
{
    return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

bool sim_shared_open(const char *kind, const struct sim_shared_place *place, struct sim_shared *shared)
{
    char path[PATH_BYTES], name[NAME_BYTES];
    struct sim_shared_id id;
    if (place->pid <= 0 || place->fd < 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", place->pid, place->fd);
    // Only what bears the name is opened: opening anything else could have effects.
    if (!read_name(path, name) || !parse_name(kind, name, &id) || !sim_shared_same(id, place->id))
        return false;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    if (sim_shared_examine(kind, fd, shared) && sim_shared_same(shared->id, place->id))
        return true;
    close(fd);
    return false;
}

bool sim_shared_mapped_by(const char *kind, struct sim_shared_id id, int32_t pid)
{
    char path[PATH_BYTES], name[NAME_BYTES];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    name_of(kind, id, name);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return errno != ENOENT && errno != ESRCH;
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    while (!found && getline(&line, &capacity, maps) > 0)
        found = strstr(line, name) != NULL;
    free(line);
    fclose(maps);
    return found;
}
