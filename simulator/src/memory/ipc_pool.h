// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Memory pools that processes share: what pool.c needs of it. The memory of such a pool lies in one shared object, and
// behind it what describes the pool.

#ifndef SIM_IPC_POOL_H
#define SIM_IPC_POOL_H

#include "memory/pool.h"

// Gives a pool that is being made its shared memory, where other pools have memory of their own.
CUresult sim_pool_share(struct sim_pool *pool);
void sim_pool_unshare(struct sim_pool *pool);
// Gives pages back to the system.
bool sim_pool_punch(struct sim_pool *pool, uintptr_t start, size_t bytes);

#endif
