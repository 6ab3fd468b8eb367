// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// cuGetProcAddress.

#include "driver/dispatch.h"

#include <string.h>

#include "driver/config.h"
#include "driver/sim.h"
#include "driver/watch.h"

enum { FIRST_STRICT_DRIVER = 13000 };

static CUdriverProcAddressQueryResult find(const char *base, int version, cuuint64_t flags, void **pfn)
{
    bool known = false;
    for (const struct sim_function *row = sim_functions; row->base; row++) {
        if (strcmp(row->base, base) != 0 || row->version > sim_config()->driver_version)
            continue;
        known = true;
        if (row->version > version)
            continue;
        bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && row->per_thread &&
                          row->per_thread_version <= version;
        *pfn = per_thread ? (void *)row->per_thread : (void *)row->function;
    }
    if (*pfn)
        return CU_GET_PROC_ADDRESS_SUCCESS;
    return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

static CUresult query(const char *symbol, void **pfn, int version, cuuint64_t flags,
                      CUdriverProcAddressQueryResult *status)
{
    SIM_REQUIRE(symbol && pfn);
    *pfn = NULL;
    const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    SIM_REQUIRE(!(flags & ~known) && flags != known);
    // Older drivers answered requests from the future with what they had.
    int driver = sim_config()->driver_version;
    SIM_REQUIRE(version <= driver || driver < FIRST_STRICT_DRIVER);
    *status = find(symbol, version, flags, pfn);
    return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult *symbolStatus)
{
    CUdriverProcAddressQueryResult ignored;
    CUresult status = sim_watching() ? sim_watch_enter("cuGetProcAddress_v2") : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS)
        status = query(symbol, pfn, cudaVersion, flags, symbolStatus ? symbolStatus : &ignored);
    return sim_watch_leave("cuGetProcAddress_v2", status);
}

SIM_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult status = sim_watching() ? sim_watch_enter("cuGetProcAddress") : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS)
        status = query(symbol, pfn, cudaVersion, flags, &found);
    if (status == CUDA_SUCCESS && found != CU_GET_PROC_ADDRESS_SUCCESS)
        status = CUDA_ERROR_NOT_FOUND;
    return sim_watch_leave("cuGetProcAddress", status);
}
