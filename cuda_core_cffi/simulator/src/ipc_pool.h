// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Memory pools that processes share: the exporting side of pool.c. A shared pool lies in one shared object, the memory
// first and then a directory of what has been exported.

#ifndef SIM_IPC_POOL_H
#define SIM_IPC_POOL_H

#include "pool.h"

// Gives a pool that is being made its shared memory, where other pools have memory of their own.
CUresult sim_pool_share(struct sim_pool *pool);
void sim_pool_unshare(struct sim_pool *pool);
// Gives pages back to the system.
bool sim_pool_punch(struct sim_pool *pool, uintptr_t start, size_t bytes);
// The allocation is being freed: nobody imports it any more.
void sim_pool_withdraw(const struct sim_allocation *allocation);

#endif
