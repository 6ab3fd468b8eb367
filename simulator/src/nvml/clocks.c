// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Clocks and performance states.

#include <stdio.h>
#include <string.h>

#include "nvml/gpu.h"

enum { KHZ = 1000, LOWEST = 345, STEP = 15, SM_UTILIZATION = 0, MEMORY_UTILIZATION = 1, MOST_CLOCKS = 256 };
static const unsigned VIDEO_MAXIMUM = 1545;

unsigned sim_gpu_max_clock(nvmlClockType_t type)
{
    if (type == NVML_CLOCK_VIDEO)
        return VIDEO_MAXIMUM;
    return (unsigned)sim_gpu_attribute(type == NVML_CLOCK_MEM ? CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE
                                                              : CU_DEVICE_ATTRIBUTE_CLOCK_RATE) /
           KHZ;
}

unsigned sim_gpu_clock(nvmlDevice_t device, nvmlClockType_t type)
{
    return (unsigned)sim_gpu_derived(device, (enum sim_value)(SIM_GRAPHICS_CLOCK + (int)type));
}

// --- Clocks ---------------------------------------------------------------------------------------------------

static nvmlReturn_t clock_of(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock, bool maximum)
{
    SIM_NVML_REQUIRE(clock && (unsigned)type < NVML_CLOCK_COUNT);
    *clock = maximum ? sim_gpu_max_clock(type) : sim_gpu_clock(device, type);
    return NVML_SUCCESS;
}

#define CLOCK(name, maximum) \
    SIM_NVML_DEVICE(name, (nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock), (device, type, clock)) \
    { \
        return clock_of(device, type, clock, maximum); \
    }

CLOCK(nvmlDeviceGetClockInfo, false)
CLOCK(nvmlDeviceGetMaxClockInfo, true)
CLOCK(nvmlDeviceGetMaxCustomerBoostClock, true)

// What applications run at: the limits that were set, at first the maximum.
static nvmlReturn_t target(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock)
{
    SIM_NVML_TRY(clock_of(device, type, clock, true));
    int64_t set = sim_gpu_value(device, type == NVML_CLOCK_MEM ? SIM_MEMORY_CLOCK_TARGET : SIM_GRAPHICS_CLOCK_TARGET);
    if (set != SIM_DERIVED && type != NVML_CLOCK_VIDEO)
        *clock = (unsigned)set;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetApplicationsClock,
                (nvmlDevice_t device, nvmlClockType_t clockType, unsigned int *clockMHz), (device, clockType, clockMHz))
{
    return target(device, clockType, clockMHz);
}

CLOCK(nvmlDeviceGetDefaultApplicationsClock, true)

SIM_NVML_DEVICE(nvmlDeviceGetClock,
                (nvmlDevice_t device, nvmlClockType_t clockType, nvmlClockId_t clockId, unsigned int *clockMHz),
                (device, clockType, clockId, clockMHz))
{
    SIM_NVML_REQUIRE((unsigned)clockId < NVML_CLOCK_ID_COUNT);
    if (clockId == NVML_CLOCK_ID_APP_CLOCK_TARGET)
        return target(device, clockType, clockMHz);
    return clock_of(device, clockType, clockMHz, clockId != NVML_CLOCK_ID_CURRENT);
}

static bool supported(unsigned clock, unsigned maximum)
{
    return clock <= maximum && clock >= LOWEST && (maximum - clock) % STEP == 0;
}

SIM_NVML_DEVICE(nvmlDeviceGetSupportedMemoryClocks, (nvmlDevice_t device, unsigned int *count, unsigned int *clocksMHz),
                (device, count, clocksMHz))
{
    unsigned only = sim_gpu_max_clock(NVML_CLOCK_MEM);
    return sim_nvml_array(clocksMHz, count, &only, 1, sizeof only);
}

SIM_NVML_DEVICE(nvmlDeviceGetSupportedGraphicsClocks,
                (nvmlDevice_t device, unsigned int memoryClockMHz, unsigned int *count, unsigned int *clocksMHz),
                (device, memoryClockMHz, count, clocksMHz))
{
    SIM_NVML_REQUIRE(count);
    if (memoryClockMHz != sim_gpu_max_clock(NVML_CLOCK_MEM))
        return NVML_ERROR_NOT_FOUND;
    unsigned clocks[MOST_CLOCKS], number = 0;
    unsigned clock = sim_gpu_max_clock(NVML_CLOCK_GRAPHICS);
    for (; clock >= LOWEST && number < MOST_CLOCKS; clock -= STEP)
        clocks[number++] = clock;
    return sim_nvml_array(clocksMHz, count, clocks, number, sizeof *clocks);
}

SIM_NVML_DEVICE(nvmlDeviceSetApplicationsClocks,
                (nvmlDevice_t device, unsigned int memClockMHz, unsigned int graphicsClockMHz),
                (device, memClockMHz, graphicsClockMHz))
{
    SIM_NVML_REQUIRE(memClockMHz == sim_gpu_max_clock(NVML_CLOCK_MEM) &&
                     supported(graphicsClockMHz, sim_gpu_max_clock(NVML_CLOCK_GRAPHICS)));
    sim_gpu_set(device, SIM_MEMORY_CLOCK_TARGET, memClockMHz);
    return sim_gpu_set(device, SIM_GRAPHICS_CLOCK_TARGET, graphicsClockMHz);
}

SIM_NVML_DEVICE(nvmlDeviceResetApplicationsClocks, (nvmlDevice_t device), (device))
{
    sim_gpu_set(device, SIM_MEMORY_CLOCK_TARGET, SIM_DERIVED);
    return sim_gpu_set(device, SIM_GRAPHICS_CLOCK_TARGET, SIM_DERIVED);
}

static nvmlReturn_t lock(nvmlDevice_t device, enum sim_value value, unsigned least, unsigned most, nvmlClockType_t type)
{
    SIM_NVML_REQUIRE(least <= most);
    unsigned maximum = sim_gpu_max_clock(type);
    return sim_gpu_set(device, value, most < maximum ? most : maximum);
}

SIM_NVML_DEVICE(nvmlDeviceSetGpuLockedClocks,
                (nvmlDevice_t device, unsigned int minGpuClockMHz, unsigned int maxGpuClockMHz),
                (device, minGpuClockMHz, maxGpuClockMHz))
{
    return lock(device, SIM_GRAPHICS_CLOCK_TARGET, minGpuClockMHz, maxGpuClockMHz, NVML_CLOCK_GRAPHICS);
}

SIM_NVML_DEVICE(nvmlDeviceResetGpuLockedClocks, (nvmlDevice_t device), (device))
{
    return sim_gpu_set(device, SIM_GRAPHICS_CLOCK_TARGET, SIM_DERIVED);
}

SIM_NVML_DEVICE(nvmlDeviceSetMemoryLockedClocks,
                (nvmlDevice_t device, unsigned int minMemClockMHz, unsigned int maxMemClockMHz),
                (device, minMemClockMHz, maxMemClockMHz))
{
    return lock(device, SIM_MEMORY_CLOCK_TARGET, minMemClockMHz, maxMemClockMHz, NVML_CLOCK_MEM);
}

SIM_NVML_DEVICE(nvmlDeviceResetMemoryLockedClocks, (nvmlDevice_t device), (device))
{
    return sim_gpu_set(device, SIM_MEMORY_CLOCK_TARGET, SIM_DERIVED);
}

// --- Why clocks are what they are -----------------------------------------------------------------------------

static nvmlReturn_t reasons(const char *function, nvmlDevice_t device, unsigned long long *out, bool current)
{
    nvmlReturn_t status = sim_nvml_enter_device(function, device);
    if (status == NVML_SUCCESS && !out)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *out = current ? (unsigned long long)sim_gpu_value(device, SIM_CLOCKS_EVENT_REASONS)
                       : (unsigned long long)nvmlClocksThrottleReasonAll;
    return sim_nvml_leave(function, status);
}

#define REASONS(name, current) \
    SIM_EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned long long *reasons_out) \
    { \
        return reasons(#name, device, reasons_out, current); \
    }

REASONS(nvmlDeviceGetCurrentClocksEventReasons, true)
REASONS(nvmlDeviceGetCurrentClocksThrottleReasons, true)
REASONS(nvmlDeviceGetSupportedClocksEventReasons, false)
REASONS(nvmlDeviceGetSupportedClocksThrottleReasons, false)

// --- Performance states ---------------------------------------------------------------------------------------

SIM_NVML_VALUE(nvmlDeviceGetPerformanceState, nvmlPstates_t, SIM_PSTATE)
SIM_NVML_VALUE(nvmlDeviceGetPowerState, nvmlPstates_t, SIM_PSTATE)

SIM_NVML_DEVICE(nvmlDeviceGetSupportedPerformanceStates,
                (nvmlDevice_t device, nvmlPstates_t *pstates, unsigned int size), (device, pstates, size))
{
    // Data-centre devices have one.
    SIM_NVML_REQUIRE(pstates);
    if (size < sizeof *pstates)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < size / sizeof *pstates; i++)
        pstates[i] = i ? NVML_PSTATE_UNKNOWN : NVML_PSTATE_0;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetMinMaxClockOfPState,
                (nvmlDevice_t device, nvmlClockType_t type, nvmlPstates_t pstate, unsigned int *minClockMHz,
                 unsigned int *maxClockMHz),
                (device, type, pstate, minClockMHz, maxClockMHz))
{
    SIM_NVML_REQUIRE(minClockMHz && maxClockMHz && pstate == NVML_PSTATE_0);
    SIM_NVML_TRY(clock_of(device, type, maxClockMHz, true));
    *minClockMHz = type == NVML_CLOCK_MEM ? *maxClockMHz : LOWEST;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetDynamicPstatesInfo,
                (nvmlDevice_t device, nvmlGpuDynamicPstatesInfo_t *pDynamicPstatesInfo), (device, pDynamicPstatesInfo))
{
    SIM_NVML_REQUIRE(pDynamicPstatesInfo);
    memset(pDynamicPstatesInfo, 0, sizeof *pDynamicPstatesInfo);
    for (int i = SM_UTILIZATION; i <= MEMORY_UTILIZATION; i++)
        pDynamicPstatesInfo->utilization[i].bIsPresent = 1;
    sim_gpu_utilization(device, &pDynamicPstatesInfo->utilization[SM_UTILIZATION].percentage,
                        &pDynamicPstatesInfo->utilization[MEMORY_UTILIZATION].percentage);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetCurrentClockFreqs, (nvmlDevice_t device, nvmlDeviceCurrentClockFreqs_t *currentClockFreqs),
                (device, currentClockFreqs))
{
    SIM_NVML_VERSION(currentClockFreqs, nvmlDeviceCurrentClockFreqs_v1);
    unsigned graphics = sim_gpu_clock(device, NVML_CLOCK_GRAPHICS), memory = sim_gpu_clock(device, NVML_CLOCK_MEM);
    snprintf(currentClockFreqs->str, sizeof currentClockFreqs->str,
             "perf=%d, nvclock=%u, nvclockmin=%u, nvclockmax=%u, memclock=%u, memclockmin=%u, memclockmax=%u",
             (int)sim_gpu_value(device, SIM_PSTATE), graphics, LOWEST, sim_gpu_max_clock(NVML_CLOCK_GRAPHICS), memory,
             memory, sim_gpu_max_clock(NVML_CLOCK_MEM));
    return NVML_SUCCESS;
}

// --- Offsets: none, and none possible -------------------------------------------------------------------------

SIM_NVML_CONSTANT(nvmlDeviceGetAdaptiveClockInfoStatus, unsigned int, NVML_ADAPTIVE_CLOCKING_INFO_STATUS_DISABLED)
SIM_NVML_CONSTANT(nvmlDeviceGetGpcClkVfOffset, int, 0)
SIM_NVML_CONSTANT(nvmlDeviceGetMemClkVfOffset, int, 0)

static nvmlReturn_t no_offsets(int *least, int *most)
{
    SIM_NVML_REQUIRE(least && most);
    *least = *most = 0;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetGpcClkMinMaxVfOffset, (nvmlDevice_t device, int *minOffset, int *maxOffset),
                (device, minOffset, maxOffset))
{
    return no_offsets(minOffset, maxOffset);
}

SIM_NVML_DEVICE(nvmlDeviceGetMemClkMinMaxVfOffset, (nvmlDevice_t device, int *minOffset, int *maxOffset),
                (device, minOffset, maxOffset))
{
    return no_offsets(minOffset, maxOffset);
}

SIM_NVML_DEVICE(nvmlDeviceGetClockOffsets, (nvmlDevice_t device, nvmlClockOffset_t *info), (device, info))
{
    SIM_NVML_VERSION(info, nvmlClockOffset_v1);
    SIM_NVML_REQUIRE((unsigned)info->type < NVML_CLOCK_COUNT && info->pstate == NVML_PSTATE_0);
    info->clockOffsetMHz = info->minClockOffsetMHz = info->maxClockOffsetMHz = 0;
    return NVML_SUCCESS;
}
