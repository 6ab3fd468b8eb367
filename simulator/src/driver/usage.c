// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Each process that has started the driver has a file of one page in a folder of its user, with its counters. It holds
// a lock on the file (fcntl), which the kernel drops with the process: a file without a lock is of one that is dead.

#include "driver/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/sim.h"

enum { PAGE = 4096, PATH_BYTES = 4096, NAME_BYTES = 48, PERCENT = 100 };
static const uint64_t WINDOW_NS = UINT64_C(1000000000);
static const uint64_t BUSY_BITS = 32;

struct page {
    uint64_t magic;
    int32_t pid;
    struct sim_control control;
    struct sim_usage devices[SIM_MAX_DEVICES];
};

static const uint64_t MAGIC = UINT64_C(0x314d49534344552f) + sizeof(struct page);
_Static_assert(sizeof(struct page) <= PAGE, "the counters fit into a page");

static _Alignas(PAGE) char unshared[PAGE];
static struct page *mine = (struct page *)unshared;
struct sim_usage *sim_usage = ((struct page *)unshared)->devices;
struct sim_control *sim_control = &((struct page *)unshared)->control;

static int file = -1;
static dev_t file_device;
static ino_t file_inode;
static char file_name[NAME_BYTES];

// --- The folder -----------------------------------------------------------------------------------------------

// Opens the folder if it is a directory of this user that nobody else can write to.
static int open_folder(const char *path)
{
    struct stat status;
    if (mkdir(path, S_IRWXU) && errno != EEXIST)
        return -1;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 && !fstat(folder, &status) && status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH)))
        return folder;
    if (folder >= 0)
        close(folder);
    return -1;
}

static int shared_folder(void)
{
    const char *wanted = sim_config()->shared;
    if (wanted)
        return *wanted ? open_folder(wanted) : -1;
    const char *const parents[] = {"/dev/shm", getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    int folder = -1;
    for (size_t i = 0; i < SIM_COUNT(parents) && folder < 0; i++) {
        char path[PATH_BYTES];
        int length = !parents[i] ? 0
                                 : snprintf(path, sizeof path, "%s/cuda-core-cffi-simulator-%u", parents[i],
                                            (unsigned)geteuid());
        if (length > 0 && length < (int)sizeof path)
            folder = open_folder(path);
    }
    return folder;
}

// --- Writing --------------------------------------------------------------------------------------------------

static bool make_file(int folder, const char *temporary)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat status;
    // Allocated, because a write to a page that a full file system cannot provide is a fault.
    if (posix_fallocate(file, 0, PAGE) || fcntl(file, F_SETLK, &whole) || fstat(file, &status))
        return false;
    struct page *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        return false;
    page->magic = MAGIC;
    page->pid = getpid();
    // Only now under the name that readers look for: it is locked.
    if (renameat(folder, temporary, folder, file_name)) {
        munmap(page, PAGE);
        return false;
    }
    file_device = status.st_dev;
    file_inode = status.st_ino;
    mine = page;
    sim_usage = page->devices;
    sim_control = &page->control;
    return true;
}

void sim_usage_publish(void)
{
    mine->pid = getpid();
    int folder = file < 0 ? shared_folder() : -1;
    if (folder < 0)
        return;
    // With the time in it the name is never that of another file, so that readers remove what they mean to.
    snprintf(file_name, sizeof file_name, "%d.%" PRIu64, getpid(), sim_now_ns());
    char temporary[NAME_BYTES + 1];
    snprintf(temporary, sizeof temporary, ".%s", file_name);
    file = openat(folder, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file >= 0 && !make_file(folder, temporary)) {
        unlinkat(folder, temporary, 0);
        close(file);
        file = -1;
    }
    close(folder);
    size_t count;
    free(sim_usage_read(0, &count));  // removes what dead processes left
}

void sim_usage_after_fork(void)
{
    if (file < 0)
        return;
    // The parent's page is no longer reachable, and its lock is not this process's.
    mmap(mine, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    close(file);
    file = -1;
    file_inode = 0;
}

void sim_usage_withdraw(void)
{
    int folder = file < 0 ? -1 : shared_folder();
    if (folder < 0)
        return;
    unlinkat(folder, file_name, 0);
    close(folder);
}

// --- Time -----------------------------------------------------------------------------------------------------

static void add_busy(struct sim_usage *usage, uint64_t start, uint64_t end)
{
    uint64_t oldest = end - (uint64_t)SIM_USAGE_SLOTS * SIM_USAGE_SLOT_NS;
    if (start < oldest && oldest < end)
        start = oldest;
    while (start < end) {
        uint64_t period = start / SIM_USAGE_SLOT_NS, stop = (period + 1) * SIM_USAGE_SLOT_NS;
        uint64_t length = (stop < end ? stop : end) - start, tag = period << BUSY_BITS;
        _Atomic uint64_t *slot = &usage->busy[period % SIM_USAGE_SLOTS];
        uint64_t old = atomic_load(slot), new;
        do
            new = (old >> BUSY_BITS == (uint32_t)period ? old : tag) + length;
        while (!atomic_compare_exchange_weak(slot, &old, new));
        start = stop;
    }
}

void sim_usage_begin(struct sim_usage *usage)
{
    if (!atomic_fetch_add(&usage->running, 1))
        atomic_store(&usage->since, sim_now_ns());
}

void sim_usage_end(struct sim_usage *usage)
{
    uint64_t since = atomic_load(&usage->since);  // before another one may begin
    if (atomic_fetch_sub(&usage->running, 1) == 1)
        add_busy(usage, since, sim_now_ns());
}

static unsigned busy_percent(struct sim_usage usage)
{
    uint64_t now = sim_now_ns(), first = (now - WINDOW_NS) / SIM_USAGE_SLOT_NS + 1, sum = 0;
    if (atomic_load(&usage.running))
        add_busy(&usage, atomic_load(&usage.since), now);
    for (uint64_t period = first; period <= now / SIM_USAGE_SLOT_NS; period++) {
        uint64_t slot = atomic_load(&usage.busy[period % SIM_USAGE_SLOTS]);
        if (slot >> BUSY_BITS == (uint32_t)period)
            sum += (uint32_t)slot;
    }
    uint64_t percent = sum * PERCENT / (now - first * SIM_USAGE_SLOT_NS);
    return percent > PERCENT ? PERCENT : (unsigned)percent;
}

// --- Reading --------------------------------------------------------------------------------------------------

struct users {
    struct sim_user *all;
    size_t count, capacity;
};

// What the process uses of a GPU; NULL if it has no such device.
static const struct sim_usage *usage_of(const struct page *page, int gpu)
{
    for (int i = 0; i < SIM_MAX_DEVICES; i++)
        if ((i ^ atomic_load(&page->control.moved[i])) == gpu)
            return &page->devices[i];
    return NULL;
}

static void add_user(struct users *users, int pid, const struct page *page, int device)
{
    const struct sim_usage *usage = usage_of(page, device);
    if (!usage || atomic_load(&page->control.state) == CU_PROCESS_STATE_CHECKPOINTED)
        return;
    size_t memory = atomic_load(&usage->memory);
    if (!memory && !atomic_load(&usage->contexts))
        return;
    if (users->count == users->capacity) {
        size_t capacity = users->capacity ? 2 * users->capacity : 8;
        struct sim_user *grown = realloc(users->all, capacity * sizeof *grown);
        if (!grown)
            return;
        users->all = grown;
        users->capacity = capacity;
    }
    users->all[users->count++] = (struct sim_user){pid, memory, busy_percent(*usage)};
}

// Opens and reads the file of another process, or removes it if that is dead; -1 if there is nothing to read.
static int read_file(int folder, const char *name, int access, struct page *page)
{
    struct stat status;
    // Never opens this process's own file: to close it would drop the lock.
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode) ||
        (file >= 0 && status.st_ino == file_inode && status.st_dev == file_device))
        return -1;
    int other = openat(folder, name, access | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (other < 0)
        return -1;
    struct flock holder = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!fcntl(other, F_GETLK, &holder)) {
        if (holder.l_type == F_UNLCK)
            unlinkat(folder, name, 0);
        else if (pread(other, page, sizeof *page, 0) == sizeof *page && page->magic == MAGIC) {
            // The pid as this process sees it, where that is in another namespace.
            page->pid = holder.l_pid > 0 ? holder.l_pid : page->pid;
            return other;
        }
    }
    close(other);
    return -1;
}

static DIR *list_folder(int *folder)
{
    *folder = shared_folder();
    DIR *entries = *folder < 0 ? NULL : fdopendir(*folder);
    if (!entries && *folder >= 0)
        close(*folder);
    return entries;
}

static struct dirent *next_file(DIR *entries)
{
    struct dirent *entry = NULL;
    while (entries && (entry = readdir(entries)) && (entry->d_name[0] < '0' || entry->d_name[0] > '9'))
        ;
    return entry;
}

static int by_pid(const void *a, const void *b)
{
    return ((const struct sim_user *)a)->pid - ((const struct sim_user *)b)->pid;
}

struct sim_user *sim_usage_read(int device, size_t *count)
{
    struct users users = {0};
    add_user(&users, mine->pid, mine, device);
    int folder;
    DIR *entries = list_folder(&folder);
    for (struct dirent *entry; (entry = next_file(entries)) != NULL;) {
        struct page page;
        int other = read_file(folder, entry->d_name, O_RDONLY, &page);
        if (other < 0)
            continue;
        add_user(&users, page.pid, &page, device);
        close(other);
    }
    if (entries)
        closedir(entries);
    if (users.count)
        qsort(users.all, users.count, sizeof *users.all, by_pid);
    *count = users.count;
    return users.all;
}

// --- Controlling ----------------------------------------------------------------------------------------------

struct sim_control *sim_control_open(int pid)
{
    struct page *found = MAP_FAILED;
    int folder;
    DIR *entries = list_folder(&folder);
    for (struct dirent *entry; found == MAP_FAILED && (entry = next_file(entries)) != NULL;) {
        struct page page;
        int other = read_file(folder, entry->d_name, O_RDWR, &page);
        if (other < 0)
            continue;
        if (page.pid == pid)
            found = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
        close(other);
    }
    if (entries)
        closedir(entries);
    return found == MAP_FAILED ? NULL : &found->control;
}

void sim_control_close(struct sim_control *control) { munmap((char *)control - offsetof(struct page, control), PAGE); }
