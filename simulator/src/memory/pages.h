// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What the driver was told about the pages of managed memory.

#ifndef SIM_PAGES_H
#define SIM_PAGES_H

#include "memory/allocation.h"

struct sim_page {
    bool read_mostly;
    CUmemLocation preferred, prefetched;  // CU_MEM_LOCATION_TYPE_INVALID for nowhere
    uint64_t accessed;                    // a bit for each device, and SIM_ACCESSED_BY_HOST
};

#define SIM_ACCESSED_BY_HOST (UINT64_C(1) << 63)

CUmemLocation sim_location(int type, int id);
// Changes the pages of managed memory that hold a range of an allocation. False when out of memory.
bool sim_pages_change(const struct sim_allocation *allocation, uintptr_t address, size_t size,
                      void (*change)(struct sim_page *page, const void *arg), const void *arg);
// What all pages of a range have in common.
struct sim_page sim_pages_common(const struct sim_allocation *allocation, uintptr_t address, size_t size);
void sim_pages_forget(const struct sim_allocation *allocation);  // it is freed

#endif
