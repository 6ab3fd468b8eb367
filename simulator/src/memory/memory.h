// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "memory/allocation.h"

// Gives back the memory of an allocation that has been taken out of the registry.
void sim_memory_release(const struct sim_allocation *allocation);
// Memory for a module's variables.
CUresult sim_memory_new_global(struct sim_context *context, size_t bytes, uintptr_t *address);
void sim_memory_free_global(uintptr_t address);
// The same for an array. Nothing happens if it went with its context.
CUresult sim_memory_new_array(struct sim_context *context, size_t bytes, uintptr_t *address);
void sim_memory_free_array(uintptr_t address);

#endif
