// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Memory, utilisation and processes: what the processes of this machine that use the simulated driver publish.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/config.h"
#include "driver/usage.h"
#include "nvml/gpu.h"

// What a driver keeps for itself: this part of the memory.
enum { RESERVED_PART = 128, NO_INSTANCE = -1, SAMPLING_US = 1000000 };
// Of nvmlProcessMode_t, which headers before 13.0 do not have.
enum { COMPUTE_PROCESSES = 0, MPS_PROCESSES = 2 };

// --- Memory ---------------------------------------------------------------------------------------------------

void sim_gpu_memory(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    size_t count;
    struct sim_user *users = sim_usage_read((int)device->index, &count);
    memory->total = sim_config()->memory;
    memory->reserved = memory->total / RESERVED_PART;
    memory->used = 0;
    for (size_t i = 0; i < count; i++)
        memory->used += users[i].memory;
    free(users);
    // Processes do not know of each other's, so that together they may have more than there is.
    if (memory->used > memory->total - memory->reserved)
        memory->used = memory->total - memory->reserved;
    memory->free = memory->total - memory->reserved - memory->used;
}

SIM_NVML_DEVICE(nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t *memory), (device, memory))
{
    SIM_NVML_REQUIRE(memory);
    nvmlMemory_v2_t found;
    sim_gpu_memory(device, &found);
    *memory = (nvmlMemory_t){.total = found.total, .free = found.free, .used = found.used + found.reserved};
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, nvmlMemory_v2_t *memory), (device, memory))
{
    SIM_NVML_REQUIRE(memory);
    if (memory->version != (unsigned)nvmlMemory_v2)
        return NVML_ERROR_FUNCTION_NOT_FOUND;  // what driver 580 says of this structure
    sim_gpu_memory(device, memory);
    return NVML_SUCCESS;
}

// The host sees all of the memory, and none of it is mapped.
SIM_NVML_DEVICE(nvmlDeviceGetBAR1MemoryInfo, (nvmlDevice_t device, nvmlBAR1Memory_t *bar1Memory), (device, bar1Memory))
{
    SIM_NVML_REQUIRE(bar1Memory);
    *bar1Memory = (nvmlBAR1Memory_t){.bar1Total = sim_config()->memory, .bar1Free = sim_config()->memory};
    return NVML_SUCCESS;
}

// --- Utilisation ----------------------------------------------------------------------------------------------

// Of all processes together: they may take turns or not.
void sim_gpu_utilization(nvmlDevice_t device, unsigned *gpu, unsigned *memory)
{
    int64_t set_gpu = sim_gpu_value(device, SIM_GPU_UTILIZATION);
    int64_t set_memory = sim_gpu_value(device, SIM_MEMORY_UTILIZATION);
    unsigned busy = 0;
    if (set_gpu == SIM_DERIVED || set_memory == SIM_DERIVED) {
        size_t count;
        struct sim_user *users = sim_usage_read((int)device->index, &count);
        for (size_t i = 0; i < count; i++)
            busy += users[i].busy;
        free(users);
        busy = busy > SIM_PERCENT ? SIM_PERCENT : busy;
    }
    *gpu = set_gpu == SIM_DERIVED ? busy : (unsigned)set_gpu;
    *memory = set_memory == SIM_DERIVED ? busy : (unsigned)set_memory;
}

SIM_NVML_DEVICE(nvmlDeviceGetUtilizationRates, (nvmlDevice_t device, nvmlUtilization_t *utilization),
                (device, utilization))
{
    SIM_NVML_REQUIRE(utilization);
    sim_gpu_utilization(device, &utilization->gpu, &utilization->memory);
    return NVML_SUCCESS;
}

static nvmlReturn_t engine(const char *function, nvmlDevice_t device, unsigned *utilization, unsigned *period,
                           enum sim_value value)
{
    nvmlReturn_t status = sim_nvml_enter_device(function, device);
    if (status == NVML_SUCCESS && !(utilization && period))
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS) {
        *utilization = (unsigned)sim_gpu_value(device, value);
        *period = SAMPLING_US;
    }
    return sim_nvml_leave(function, status);
}

#define ENGINE(name, value) \
    SIM_EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned int *utilization, unsigned int *samplingPeriodUs) \
    { \
        return engine(#name, device, utilization, samplingPeriodUs, value); \
    }

ENGINE(nvmlDeviceGetEncoderUtilization, SIM_ENCODER_UTILIZATION)
ENGINE(nvmlDeviceGetDecoderUtilization, SIM_DECODER_UTILIZATION)
ENGINE(nvmlDeviceGetJpgUtilization, SIM_JPEG_UTILIZATION)
ENGINE(nvmlDeviceGetOfaUtilization, SIM_OFA_UTILIZATION)

// --- Processes ------------------------------------------------------------------------------------------------

static nvmlReturn_t read_processes(nvmlDevice_t device, unsigned *count, void *infos, size_t size, bool compute)
{
    SIM_NVML_REQUIRE(count);
    size_t number = 0;
    struct sim_user *users = compute ? sim_usage_read((int)device->index, &number) : NULL;
    nvmlReturn_t status = NVML_SUCCESS;
    if (*count < number)
        status = NVML_ERROR_INSUFFICIENT_SIZE;
    else if (number && !infos)
        status = NVML_ERROR_INVALID_ARGUMENT;
    for (size_t i = 0; i < number && status == NVML_SUCCESS; i++) {
        nvmlProcessDetail_v1_t info = {.pid = (unsigned)users[i].pid,
                                       .usedGpuMemory = users[i].memory,
                                       .gpuInstanceId = (unsigned)NO_INSTANCE,
                                       .computeInstanceId = (unsigned)NO_INSTANCE};
        memcpy((char *)infos + i * size, &info, size < sizeof info ? size : sizeof info);
    }
    free(users);
    *count = (unsigned)number;
    return status;
}

#define PROCESSES(name, type, compute) \
    SIM_NVML_DEVICE(name, (nvmlDevice_t device, unsigned int *infoCount, type *infos), (device, infoCount, infos)) \
    { \
        return read_processes(device, infoCount, infos, sizeof *infos, compute); \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, true)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, true)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, true)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, false)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, false)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, false)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, false)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, false)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, false)

SIM_NVML_DEVICE(nvmlDeviceGetRunningProcessDetailList, (nvmlDevice_t device, nvmlProcessDetailList_t *plist),
                (device, plist))
{
    SIM_NVML_VERSION(plist, nvmlProcessDetailList_v1);
    SIM_NVML_REQUIRE(plist->mode <= MPS_PROCESSES);
    return read_processes(device, &plist->numProcArrayEntries, plist->procArray, sizeof *plist->procArray,
                          plist->mode == COMPUTE_PROCESSES);
}

static unsigned long long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000u + (unsigned long long)now.tv_nsec / 1000;
}

SIM_NVML_DEVICE(nvmlDeviceGetProcessUtilization,
                (nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization, unsigned int *processSamplesCount,
                 unsigned long long lastSeenTimeStamp),
                (device, utilization, processSamplesCount, lastSeenTimeStamp))
{
    SIM_NVML_REQUIRE(processSamplesCount);
    size_t number;
    struct sim_user *users = sim_usage_read((int)device->index, &number);
    unsigned capacity = *processSamplesCount;
    bool fits = utilization && capacity >= number;
    for (size_t i = 0; i < number && fits; i++)
        utilization[i] = (nvmlProcessUtilizationSample_t){
            .pid = (unsigned)users[i].pid, .timeStamp = now_us(), .smUtil = users[i].busy, .memUtil = users[i].busy};
    free(users);
    *processSamplesCount = (unsigned)number;
    if (!number || lastSeenTimeStamp >= now_us())
        return NVML_ERROR_NOT_FOUND;
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

SIM_NVML_DEVICE(nvmlDeviceGetProcessesUtilizationInfo,
                (nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *procesesUtilInfo), (device, procesesUtilInfo))
{
    SIM_NVML_VERSION(procesesUtilInfo, nvmlProcessesUtilizationInfo_v1);
    size_t number;
    struct sim_user *users = sim_usage_read((int)device->index, &number);
    bool fits = procesesUtilInfo->procUtilArray && procesesUtilInfo->processSamplesCount >= number;
    for (size_t i = 0; i < number && fits; i++)
        procesesUtilInfo->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .pid = (unsigned)users[i].pid, .timeStamp = now_us(), .smUtil = users[i].busy, .memUtil = users[i].busy};
    free(users);
    procesesUtilInfo->processSamplesCount = (unsigned)number;
    if (!number)
        return NVML_ERROR_NOT_FOUND;
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

// The command line, as far as it fits, or the name of what has none.
SIM_NVML(nvmlSystemGetProcessName, (unsigned int pid, char *name, unsigned int length), (pid, name, length))
{
    SIM_NVML_REQUIRE(name && length);
    static const char *const files[] = {"cmdline", "comm"};
    ssize_t got = 0;
    for (size_t i = 0; i < SIM_COUNT(files) && got <= 0; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%u/%s", pid, files[i]);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
            return NVML_ERROR_NOT_FOUND;
        got = read(file, name, length - 1);
        close(file);
    }
    if (got < 0)
        return NVML_ERROR_NOT_FOUND;
    while (got > 0 && (!name[got - 1] || name[got - 1] == '\n'))
        got--;
    name[got] = 0;
    for (ssize_t i = 0; i < got; i++)
        if (!name[i])
            name[i] = ' ';
    return NVML_SUCCESS;
}
