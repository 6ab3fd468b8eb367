// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Virtual memory: physical memory, reserved addresses, and the mapping of one at the other.

#ifndef SIM_VIRTUAL_H
#define SIM_VIRTUAL_H

#include "memory/allocation.h"

enum { SIM_GRANULARITY = 2 << 20 };

// What cuMemCreate makes. It lives while a handle or a mapping needs it.
struct sim_physical {
    struct sim_object base;
    CUmemAllocationProp properties;
    size_t size;
    bool charged;    // to the device; memory that another process shares is charged to that one
    int file;        // the memory itself, -1 until there is one
    size_t handles;  // what cuMemRelease has to give back
    size_t mappings;
};
void sim_physical_finalize(void *physical);

// The reservation that holds the address; false if there is none.
bool sim_reservation_at(uintptr_t address, uintptr_t *start, size_t *size);
void sim_reservations_count(size_t *count, size_t *bytes);
void sim_reservations_report_leaks(void);

#endif
