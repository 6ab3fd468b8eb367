// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// What older headers lack: with one of them, the helpers build and these functions say that they are not there.
#ifndef CCC_COMPAT_H
#define CCC_COMPAT_H

#include "driver/ccc_table.h"

// The function with the data of edges, as CUDA 13 has it under the plain name.
#if CUDA_VERSION < 13000
#define CCC_WITH_EDGE_DATA(function) function##_v2
#else
#define CCC_WITH_EDGE_DATA(function) function
#endif

#define CCC_ALLOCATION_TYPE_MANAGED 2  // CU_MEM_ALLOCATION_TYPE_MANAGED
#define CCC_JIT_SPLIT_COMPILE 34       // CU_JIT_SPLIT_COMPILE

// Launch attributes and their values: the driver may know them where the header does not. Newer headers check them.
enum {
    CCC_LAUNCH_NVLINK_UTIL_CENTRIC_SCHEDULING = 16,
    CCC_LAUNCH_PORTABLE_CLUSTER_SIZE_MODE = 17,
    CCC_LAUNCH_SHARED_MEMORY_MODE = 18,

    CCC_CLUSTER_SCHEDULING_RUBIN_DSMEM_LOCALITY = 3,

    CCC_PORTABLE_CLUSTER_DEFAULT = 0,
    CCC_PORTABLE_CLUSTER_REQUIRE_PORTABLE = 1,
    CCC_PORTABLE_CLUSTER_ALLOW_NON_PORTABLE = 2,

    CCC_SHARED_MEMORY_DEFAULT = 0,
    CCC_SHARED_MEMORY_REQUIRE_PORTABLE = 1,
    CCC_SHARED_MEMORY_ALLOW_NON_PORTABLE = 2,
    CCC_SHARED_MEMORY_ALLOW_OVERSIZED = 3,
    CCC_SHARED_MEMORY_PREFER_OVERSIZED = 4,

    // Resources of devices
    CCC_RESOURCE_WORKQUEUE_CONFIG = 1000,
    CCC_SM_GROUP_BACKFILL = 1,
    CCC_WORKQUEUE_DEVICE_CTX = 0,
    CCC_WORKQUEUE_GREEN_CTX_BALANCED = 1
};
#define CCC_SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#if CUDA_VERSION >= 13000
CCC_SAME(CCC_ALLOCATION_TYPE_MANAGED, CU_MEM_ALLOCATION_TYPE_MANAGED);
CCC_SAME(CCC_JIT_SPLIT_COMPILE, CU_JIT_SPLIT_COMPILE);
#endif
#if CUDA_VERSION >= 13050
CCC_SAME(CCC_LAUNCH_NVLINK_UTIL_CENTRIC_SCHEDULING, CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
CCC_SAME(CCC_LAUNCH_PORTABLE_CLUSTER_SIZE_MODE, CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE);
CCC_SAME(CCC_LAUNCH_SHARED_MEMORY_MODE, CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE);
CCC_SAME(CCC_CLUSTER_SCHEDULING_RUBIN_DSMEM_LOCALITY, CU_CLUSTER_SCHEDULING_POLICY_RUBIN_DSMEM_LOCALITY);
CCC_SAME(CCC_PORTABLE_CLUSTER_DEFAULT, CU_LAUNCH_PORTABLE_CLUSTER_MODE_DEFAULT);
CCC_SAME(CCC_PORTABLE_CLUSTER_REQUIRE_PORTABLE, CU_LAUNCH_PORTABLE_CLUSTER_MODE_REQUIRE_PORTABLE);
CCC_SAME(CCC_PORTABLE_CLUSTER_ALLOW_NON_PORTABLE, CU_LAUNCH_PORTABLE_CLUSTER_MODE_ALLOW_NON_PORTABLE);
CCC_SAME(CCC_SHARED_MEMORY_DEFAULT, CU_SHARED_MEMORY_MODE_DEFAULT);
CCC_SAME(CCC_SHARED_MEMORY_REQUIRE_PORTABLE, CU_SHARED_MEMORY_MODE_REQUIRE_PORTABLE);
CCC_SAME(CCC_SHARED_MEMORY_ALLOW_NON_PORTABLE, CU_SHARED_MEMORY_MODE_ALLOW_NON_PORTABLE);
CCC_SAME(CCC_SHARED_MEMORY_ALLOW_OVERSIZED, CU_SHARED_MEMORY_MODE_ALLOW_OVERSIZED_SHARED_MEMORY);
CCC_SAME(CCC_SHARED_MEMORY_PREFER_OVERSIZED, CU_SHARED_MEMORY_MODE_PREFER_OVERSIZED_SHARED_MEMORY);
CCC_SAME(CCC_RESOURCE_WORKQUEUE_CONFIG, CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG);
CCC_SAME(CCC_SM_GROUP_BACKFILL, CU_DEV_SM_RESOURCE_GROUP_BACKFILL);
CCC_SAME(CCC_WORKQUEUE_DEVICE_CTX, CU_WORKQUEUE_SCOPE_DEVICE_CTX);
CCC_SAME(CCC_WORKQUEUE_GREEN_CTX_BALANCED, CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED);
#endif

#define CCC_NOT_IN_HEADER(version, name, parameters) \
    static CUresult name parameters \
    { \
        ccc_miss(CCC_NOT_BUILT, #name, version); \
        return ccc_unavailable_status(); \
    }

#if CUDA_VERSION < 13000
CCC_NOT_IN_HEADER(13000, cuMemGetMemPool, (CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type))
CCC_NOT_IN_HEADER(13000, cuMemPrefetchBatchAsync,
                  (CUdeviceptr *pointers, size_t *sizes, size_t count, CUmemLocation *locations, size_t *indices,
                   size_t location_count, unsigned long long flags, CUstream stream))
CCC_NOT_IN_HEADER(13000, cuMemDiscardBatchAsync,
                  (CUdeviceptr *pointers, size_t *sizes, size_t count, unsigned long long flags, CUstream stream))
CCC_NOT_IN_HEADER(13000, cuMemDiscardAndPrefetchBatchAsync,
                  (CUdeviceptr *pointers, size_t *sizes, size_t count, CUmemLocation *locations, size_t *indices,
                   size_t location_count, unsigned long long flags, CUstream stream))
#endif

#if CUDA_VERSION < 13010
typedef void CU_DEV_SM_RESOURCE_GROUP_PARAMS;
CCC_NOT_IN_HEADER(13010, cuDevSmResourceSplit,
                  (CUdevResource *parts, unsigned int count, const CUdevResource *from, CUdevResource *rest,
                   unsigned int flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS *groups))
#endif

#endif
