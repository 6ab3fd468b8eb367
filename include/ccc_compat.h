/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers of CUDA 12 lack: with one of them, the helpers build and these functions say that they are not there. */
#ifndef CCC_COMPAT_H
#define CCC_COMPAT_H

#include "ccc_table.h"

#define CCC_ALLOCATION_TYPE_MANAGED 2 /* CU_MEM_ALLOCATION_TYPE_MANAGED */

#if CUDA_VERSION < 13000
#define CCC_NOT_IN_HEADER(name, parameters)                       \
    static CUresult name parameters                               \
    {                                                             \
        ccc_miss(CCC_NOT_BUILT, #name, 13000);                    \
        return ccc_unavailable_status();                          \
    }

CCC_NOT_IN_HEADER(cuMemGetMemPool, (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type))
CCC_NOT_IN_HEADER(cuMemPrefetchBatchAsync,
                  (CUdeviceptr * pointers, size_t *sizes, size_t count, CUmemLocation *locations, size_t *indices,
                   size_t location_count, unsigned long long flags, CUstream stream))
CCC_NOT_IN_HEADER(cuMemDiscardBatchAsync,
                  (CUdeviceptr * pointers, size_t *sizes, size_t count, unsigned long long flags, CUstream stream))
CCC_NOT_IN_HEADER(cuMemDiscardAndPrefetchBatchAsync,
                  (CUdeviceptr * pointers, size_t *sizes, size_t count, CUmemLocation *locations, size_t *indices,
                   size_t location_count, unsigned long long flags, CUstream stream))
#endif

#endif
