// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The heap of device-side malloc, for a module whose host gives none.
#ifndef SIM_PTX_HEAP_H
#define SIM_PTX_HEAP_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_heap ptx_heap;

ptx_heap *ptx_heap_new(void);
void ptx_heap_delete(ptx_heap *heap);
uint64_t ptx_heap_alloc(ptx_heap *heap, size_t size);  // 0: full
int ptx_heap_free(ptx_heap *heap, uint64_t address);   // 0: malloc did not give it
int ptx_heap_contains(ptx_heap *heap, uint64_t address, size_t size);

#endif
