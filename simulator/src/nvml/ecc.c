// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Errors of the memory: counters, retired pages and remapped rows. What is counted is counted as the device memory's.

#include <string.h>

#include "nvml/gpu.h"

enum { BANKS = 768 };

static unsigned long long count(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter)
{
    enum sim_value first =
        type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? SIM_ECC_CORRECTED_VOLATILE : SIM_ECC_UNCORRECTED_VOLATILE;
    return (unsigned long long)sim_gpu_value(device, (enum sim_value)(first + (int)counter));
}

static nvmlReturn_t check(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter)
{
    SIM_NVML_REQUIRE((unsigned)type < NVML_MEMORY_ERROR_TYPE_COUNT && (unsigned)counter < NVML_ECC_COUNTER_TYPE_COUNT);
    SIM_NVML_SUPPORTED(sim_gpu_value(device, SIM_ECC_MODE));
    return NVML_SUCCESS;
}

// --- Mode -----------------------------------------------------------------------------------------------------

SIM_NVML_DEVICE(nvmlDeviceGetEccMode, (nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending),
                (device, current, pending))
{
    SIM_NVML_REQUIRE(current && pending);
    *current = (nvmlEnableState_t)sim_gpu_value(device, SIM_ECC_MODE);
    *pending = (nvmlEnableState_t)sim_gpu_value(device, SIM_ECC_PENDING);
    return NVML_SUCCESS;
}

SIM_NVML_CONSTANT(nvmlDeviceGetDefaultEccMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)

// From the next start of the machine on, which there is not.
SIM_NVML_DEVICE(nvmlDeviceSetEccMode, (nvmlDevice_t device, nvmlEnableState_t ecc), (device, ecc))
{
    SIM_NVML_REQUIRE(ecc == NVML_FEATURE_DISABLED || ecc == NVML_FEATURE_ENABLED);
    return sim_gpu_set(device, SIM_ECC_PENDING, ecc);
}

// --- Counters -------------------------------------------------------------------------------------------------

SIM_NVML_DEVICE(nvmlDeviceGetTotalEccErrors,
                (nvmlDevice_t device, nvmlMemoryErrorType_t errorType, nvmlEccCounterType_t counterType,
                 unsigned long long *eccCounts),
                (device, errorType, counterType, eccCounts))
{
    SIM_NVML_REQUIRE(eccCounts);
    SIM_NVML_TRY(check(device, errorType, counterType));
    *eccCounts = count(device, errorType, counterType);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetDetailedEccErrors,
                (nvmlDevice_t device, nvmlMemoryErrorType_t errorType, nvmlEccCounterType_t counterType,
                 nvmlEccErrorCounts_t *eccCounts),
                (device, errorType, counterType, eccCounts))
{
    SIM_NVML_REQUIRE(eccCounts);
    SIM_NVML_TRY(check(device, errorType, counterType));
    *eccCounts = (nvmlEccErrorCounts_t){.deviceMemory = count(device, errorType, counterType)};
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetMemoryErrorCounter,
                (nvmlDevice_t device, nvmlMemoryErrorType_t errorType, nvmlEccCounterType_t counterType,
                 nvmlMemoryLocation_t locationType, unsigned long long *errors),
                (device, errorType, counterType, locationType, errors))
{
    SIM_NVML_REQUIRE(errors && (unsigned)locationType < NVML_MEMORY_LOCATION_COUNT);
    SIM_NVML_TRY(check(device, errorType, counterType));
    SIM_NVML_SUPPORTED(locationType == NVML_MEMORY_LOCATION_DRAM || locationType == NVML_MEMORY_LOCATION_SRAM);
    *errors = locationType == NVML_MEMORY_LOCATION_DRAM ? count(device, errorType, counterType) : 0;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceClearEccErrorCounts, (nvmlDevice_t device, nvmlEccCounterType_t counterType),
                (device, counterType))
{
    SIM_NVML_TRY(check(device, NVML_MEMORY_ERROR_TYPE_CORRECTED, counterType));
    sim_gpu_set(device, (enum sim_value)(SIM_ECC_CORRECTED_VOLATILE + (int)counterType), 0);
    return sim_gpu_set(device, (enum sim_value)(SIM_ECC_UNCORRECTED_VOLATILE + (int)counterType), 0);
}

SIM_NVML_DEVICE(nvmlDeviceGetSramEccErrorStatus, (nvmlDevice_t device, nvmlEccSramErrorStatus_t *status),
                (device, status))
{
    SIM_NVML_VERSION(status, nvmlEccSramErrorStatus_v1);
    *status = (nvmlEccSramErrorStatus_t){.version = status->version};
    return NVML_SUCCESS;
}

// --- Pages and rows -------------------------------------------------------------------------------------------

static nvmlReturn_t no_pages(nvmlPageRetirementCause_t cause, unsigned *pages)
{
    SIM_NVML_REQUIRE(pages && (unsigned)cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT);
    *pages = 0;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetRetiredPages,
                (nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *pageCount,
                 unsigned long long *addresses),
                (device, cause, pageCount, addresses))
{
    return no_pages(cause, pageCount);
}

SIM_NVML_DEVICE(nvmlDeviceGetRetiredPages_v2,
                (nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *pageCount,
                 unsigned long long *addresses, unsigned long long *timestamps),
                (device, cause, pageCount, addresses, timestamps))
{
    return no_pages(cause, pageCount);
}

SIM_NVML_CONSTANT(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t, NVML_FEATURE_DISABLED)

SIM_NVML_DEVICE(nvmlDeviceGetRemappedRows,
                (nvmlDevice_t device, unsigned int *corrRows, unsigned int *uncRows, unsigned int *isPending,
                 unsigned int *failureOccurred),
                (device, corrRows, uncRows, isPending, failureOccurred))
{
    SIM_NVML_REQUIRE(corrRows && uncRows && isPending && failureOccurred);
    *corrRows = (unsigned)sim_gpu_value(device, SIM_REMAPPED_CORRECTABLE);
    *uncRows = (unsigned)sim_gpu_value(device, SIM_REMAPPED_UNCORRECTABLE);
    *isPending = (unsigned)sim_gpu_value(device, SIM_REMAPPED_PENDING);
    *failureOccurred = (unsigned)sim_gpu_value(device, SIM_REMAPPED_FAILURE);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetRowRemapperHistogram, (nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *histogram),
                (device, histogram))
{
    SIM_NVML_REQUIRE(histogram);
    *histogram = (nvmlRowRemapperHistogramValues_t){.max = BANKS};
    return NVML_SUCCESS;
}
