// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Memory that allocation nodes give out. Its addresses belong to the node from the beginning; the memory is there from
// the moment that a launch allocates it until somebody frees it. What backs it counts as the device's while an
// executable may need it, and until it is trimmed.

#ifndef SIM_GRAPH_MEMORY_H
#define SIM_GRAPH_MEMORY_H

#include "memory/allocation.h"

struct sim_graph_memory {
    struct sim_range range;  // the addresses, rounded up
    _Atomic uint32_t references;
    size_t size;  // bytes asked for
    int device;
    CUmemPoolProps props;
    CUmemAccessDesc *access;
    size_t access_count;
    // Guarded by the lock of graphs.
    uint32_t home, freed_by;  // the numbers of the graphs with its node and with the node that frees it; 0 for none
    // Guarded by the lock of this module.
    bool backed;       // by an executable
    bool live;         // allocated, and not freed
    unsigned flights;  // launches that may use it and are not done
};

CUresult sim_graph_memory_new(const CUmemPoolProps *props, const CUmemAccessDesc *access, size_t access_count,
                              size_t size, struct sim_graph_memory **memory);
void sim_graph_memory_hold(struct sim_graph_memory *memory);
void sim_graph_memory_drop(struct sim_graph_memory *memory);  // NULL is fine
// The memory that starts at the address, with a reference; NULL if there is none.
struct sim_graph_memory *sim_graph_memory_find(uintptr_t address);
bool sim_graph_memory_covers(uintptr_t address, size_t size);

// Makes sure that an executable's memory is backed when it runs.
CUresult sim_graph_memory_back(struct sim_graph_memory *memory);
void sim_graph_memory_unback(struct sim_graph_memory *memory);  // the executable has gone
void sim_graph_memory_fly(struct sim_graph_memory *memory, int launches);

bool sim_graph_memory_is_live(struct sim_graph_memory *memory);
// For the host: the memory is there for every later call.
CUresult sim_graph_memory_allocate(struct sim_graph_memory *memory);
// It is gone for every later call, and still there for work until sim_graph_memory_leave. False if it was not there.
bool sim_graph_memory_free(struct sim_graph_memory *memory);
void sim_graph_memory_leave(uintptr_t address);
// The allocation has been freed by a function for memory in general.
void sim_graph_memory_freed(const struct sim_allocation *allocation);

#endif
