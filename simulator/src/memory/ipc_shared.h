// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Memory that processes share: files without a place in any file system, whose size is sealed. They vanish with the
// last process that maps them or holds a descriptor, however it ends.
//
// What another process hands over is not trusted: an object is accepted by its seals, its size and the name that it
// was made under, and nothing in it is used without a check.

#ifndef SIM_IPC_SHARED_H
#define SIM_IPC_SHARED_H

#include "driver/sim.h"

struct sim_shared_id {
    uint64_t words[2];
};

struct sim_shared {
    struct sim_shared_id id;
    size_t size;
    int fd;
};

bool sim_shared_same(struct sim_shared_id a, struct sim_shared_id b);
// `kind` is a short word that becomes part of the name. CUDA_ERROR_OUT_OF_MEMORY on failure.
CUresult sim_shared_new(const char *kind, size_t size, struct sim_shared *shared);
// Looks at a descriptor that came from elsewhere; false if it is not such an object. The descriptor stays the caller's.
bool sim_shared_examine(const char *kind, int fd, struct sim_shared *shared);
void *sim_shared_map(const struct sim_shared *shared, size_t offset, size_t size);  // NULL on failure
void sim_shared_close(struct sim_shared *shared);

// An object of another process is named by the process and the number of its descriptor there.
struct sim_shared_place {
    struct sim_shared_id id;
    int32_t pid, fd;
};

struct sim_shared_place sim_shared_place(const struct sim_shared *shared);
// Opens the object of another process; false if it is not there. `shared` then has a descriptor of its own.
bool sim_shared_open(const char *kind, const struct sim_shared_place *place, struct sim_shared *shared);
// Does the process still map the object? True where nobody can tell.
bool sim_shared_mapped_by(const char *kind, struct sim_shared_id id, int32_t pid);

#endif
