// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Address ranges that do not overlap, ordered by address: a treap that also knows the largest range below each node.

#ifndef SIM_RANGES_H
#define SIM_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct sim_range {
    uintptr_t start;
    size_t size;
    struct sim_range *left, *right;
    size_t largest;
    uint32_t priority;
};

void sim_ranges_add(struct sim_range **root, struct sim_range *range);
void sim_ranges_remove(struct sim_range **root, struct sim_range *range);
// The range that holds the address; NULL if none does.
struct sim_range *sim_ranges_at(struct sim_range *root, uintptr_t address);
// The last range that starts at or before the address, the first that starts after it.
struct sim_range *sim_ranges_before(struct sim_range *root, uintptr_t address);
struct sim_range *sim_ranges_after(struct sim_range *root, uintptr_t address);
// The lowest range of at least `size` bytes that `fits` accepts (NULL accepts all).
struct sim_range *sim_ranges_first_fit(struct sim_range *root, size_t size, int (*fits)(struct sim_range *, void *),
                                       void *arg);
void sim_ranges_each(struct sim_range *root, void (*visit)(struct sim_range *, void *), void *arg);

#endif
