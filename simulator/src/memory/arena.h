// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Stretches of address space from which memory is handed out. Memory is committed when it is touched, and given back
// to the system when it is freed.

#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A page is what managed memory moves by and pinned memory is counted in. The system's may be larger: see below.
enum { SIM_ALIGNMENT = 512, SIM_PAGE = 4096 };

struct sim_arena;

struct sim_arena *sim_arena_new(size_t bytes);
uintptr_t sim_arena_take(struct sim_arena *arena, size_t bytes, size_t alignment);  // 0 when it is full
void sim_arena_give(struct sim_arena *arena, uintptr_t address, size_t bytes);
// Gives the pages of the system that lie whole in a range back to it, with what is in them.
void sim_arena_discard(uintptr_t start, size_t bytes);
struct sim_arena *sim_arena_host(void);     // for pinned memory; NULL when there is no address space
struct sim_arena *sim_arena_managed(void);  // for managed memory

#endif
