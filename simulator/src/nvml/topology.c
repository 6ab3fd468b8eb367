// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Where the devices are: all under one host bridge, which every processor of the real machine is as near to; and the
// NVLinks between them.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/config.h"
#include "nvml/gpu.h"

// --- Between devices ------------------------------------------------------------------------------------------

SIM_NVML_DEVICE(nvmlDeviceGetTopologyCommonAncestor,
                (nvmlDevice_t device, nvmlDevice_t other, nvmlGpuTopologyLevel_t *pathInfo), (device, other, pathInfo))
{
    SIM_NVML_REQUIRE(sim_gpu_valid(other) && pathInfo);
    *pathInfo = device == other ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_HOSTBRIDGE;
    return NVML_SUCCESS;
}

// Copies out the devices of the machine but this one, up to the capacity; without an array their number.
static nvmlReturn_t devices_but(nvmlDevice_t device, unsigned *count, nvmlDevice_t *array)
{
    SIM_NVML_REQUIRE(count);
    unsigned number = 0, capacity = *count;
    for (unsigned i = 0; i < sim_gpu_count(); i++)
        if (sim_gpu_at(i) != device) {
            if (array && number < capacity)
                array[number] = sim_gpu_at(i);
            number++;
        }
    *count = array && capacity < number ? capacity : number;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetTopologyNearestGpus,
                (nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned int *count, nvmlDevice_t *deviceArray),
                (device, level, count, deviceArray))
{
    SIM_NVML_REQUIRE(count && level >= NVML_TOPOLOGY_INTERNAL && level <= NVML_TOPOLOGY_SYSTEM);
    SIM_NVML_REQUIRE(!deviceArray || *count);
    if (level >= NVML_TOPOLOGY_HOSTBRIDGE)  // what is nearer is near, too
        return devices_but(device, count, deviceArray);
    *count = 0;
    return NVML_SUCCESS;
}

SIM_NVML(nvmlSystemGetTopologyGpuSet, (unsigned int cpuNumber, unsigned int *count, nvmlDevice_t *deviceArray),
         (cpuNumber, count, deviceArray))
{
    return devices_but(NULL, count, deviceArray);
}

SIM_NVML_DEVICE(nvmlDeviceGetP2PStatus,
                (nvmlDevice_t device, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t p2pIndex,
                 nvmlGpuP2PStatus_t *p2pStatus),
                (device, other, p2pIndex, p2pStatus))
{
    SIM_NVML_REQUIRE(sim_gpu_valid(other) && device != other && p2pStatus);
    SIM_NVML_REQUIRE((unsigned)p2pIndex < NVML_P2P_CAPS_INDEX_UNKNOWN);
    bool possible = sim_config()->peer_access && (p2pIndex != NVML_P2P_CAPS_INDEX_NVLINK || sim_config()->nvlinks);
    *p2pStatus = possible ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

// --- Processors and their memory ------------------------------------------------------------------------------

enum { LIST_BYTES = 4096, BITS = 8 * sizeof(unsigned long) };

// Reads a list such as 0-3,8 into a set of bits.
static nvmlReturn_t read_list(const char *path, unsigned size, unsigned long *set)
{
    SIM_NVML_REQUIRE(set && size);
    memset(set, 0, size * sizeof *set);
    char text[LIST_BYTES];
    FILE *file = fopen(path, "re");
    bool got = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    SIM_NVML_SUPPORTED(got);
    for (char *rest = text; *rest >= '0' && *rest <= '9';) {
        unsigned long first = strtoul(rest, &rest, 10), last = first;
        if (*rest == '-')
            last = strtoul(rest + 1, &rest, 10);
        for (; first <= last && first / BITS < size; first++)
            set[first / BITS] |= 1ul << first % BITS;
        rest += *rest == ',';
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t processors(unsigned size, unsigned long *set)
{
    return read_list("/sys/devices/system/cpu/online", size, set);
}

SIM_NVML_DEVICE(nvmlDeviceGetCpuAffinity, (nvmlDevice_t device, unsigned int cpuSetSize, unsigned long *cpuSet),
                (device, cpuSetSize, cpuSet))
{
    return processors(cpuSetSize, cpuSet);
}

SIM_NVML_DEVICE(nvmlDeviceGetCpuAffinityWithinScope,
                (nvmlDevice_t device, unsigned int cpuSetSize, unsigned long *cpuSet, nvmlAffinityScope_t scope),
                (device, cpuSetSize, cpuSet, scope))
{
    SIM_NVML_REQUIRE(scope <= NVML_AFFINITY_SCOPE_SOCKET);
    return processors(cpuSetSize, cpuSet);
}

SIM_NVML_DEVICE(nvmlDeviceGetMemoryAffinity,
                (nvmlDevice_t device, unsigned int nodeSetSize, unsigned long *nodeSet, nvmlAffinityScope_t scope),
                (device, nodeSetSize, nodeSet, scope))
{
    SIM_NVML_REQUIRE(scope <= NVML_AFFINITY_SCOPE_SOCKET);
    return read_list("/sys/devices/system/node/online", nodeSetSize, nodeSet);
}

// Every processor is near: the thread may stay where it is.
SIM_NVML_DEVICE(nvmlDeviceSetCpuAffinity, (nvmlDevice_t device), (device)) { return NVML_SUCCESS; }
SIM_NVML_DEVICE(nvmlDeviceClearCpuAffinity, (nvmlDevice_t device), (device)) { return NVML_SUCCESS; }

// --- NVLink ---------------------------------------------------------------------------------------------------

// In each turn of a round robin every device has one partner, or with an odd number of devices one has none. The links
// of a device are its turns, again and again.
nvmlReturn_t sim_gpu_reached(nvmlDevice_t device, unsigned link, unsigned *other)
{
    SIM_NVML_SUPPORTED(sim_config()->nvlinks);
    SIM_NVML_REQUIRE((int)link < sim_config()->nvlinks);
    unsigned turns = (sim_gpu_count() - 1) | 1, turn = link % turns, partner = turn;
    if (device->index != turns) {
        partner = (2 * turn + turns - device->index) % turns;
        if (partner == device->index)
            partner = turns;
    }
    if (partner >= sim_gpu_count())
        return NVML_ERROR_NOT_FOUND;
    *other = partner;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_gpu_link_state(nvmlDevice_t device, unsigned link, nvmlEnableState_t *state)
{
    unsigned other;
    SIM_NVML_REQUIRE(state);
    nvmlReturn_t status = sim_gpu_reached(device, link, &other);
    *state = NVML_FEATURE_DISABLED;
    if (status == NVML_SUCCESS)
        *state = (nvmlEnableState_t)sim_gpu_value(device, SIM_NVLINK_STATE);
    return status == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : status;
}

SIM_NVML_DEVICE(nvmlDeviceGetNvLinkState, (nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive),
                (device, link, isActive))
{
    return sim_gpu_link_state(device, link, isActive);
}

// Of a link that leads nowhere there is nothing to say.
static nvmlReturn_t check_active(nvmlDevice_t device, unsigned link)
{
    nvmlEnableState_t state;
    SIM_NVML_TRY(sim_gpu_link_state(device, link, &state));
    SIM_NVML_SUPPORTED(state);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetNvLinkVersion, (nvmlDevice_t device, unsigned int link, unsigned int *version),
                (device, link, version))
{
    SIM_NVML_REQUIRE(version);
    SIM_NVML_TRY(check_active(device, link));
    *version = SIM_NVLINK_VERSION;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetNvLinkCapability,
                (nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t capability, unsigned int *capResult),
                (device, link, capability, capResult))
{
    SIM_NVML_REQUIRE(capResult && (unsigned)capability < NVML_NVLINK_CAP_COUNT);
    SIM_NVML_TRY(check_active(device, link));
    *capResult = capability == NVML_NVLINK_CAP_VALID ||
                 (sim_config()->peer_access &&
                  (capability == NVML_NVLINK_CAP_P2P_SUPPORTED || capability == NVML_NVLINK_CAP_P2P_ATOMICS));
    return NVML_SUCCESS;
}

static nvmlReturn_t remote(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci, size_t size)
{
    unsigned other;
    nvmlPciInfo_t info;
    SIM_NVML_REQUIRE(pci);
    SIM_NVML_TRY(check_active(device, link));
    SIM_NVML_TRY(sim_gpu_reached(device, link, &other));
    sim_gpu_pci(sim_gpu_at(other), &info);
    memcpy(pci, &info, size);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci),
                (device, link, pci))
{
    return remote(device, link, pci, sizeof *pci);
}

SIM_NVML_DEVICE(nvmlDeviceGetNvLinkRemotePciInfo, (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci),
                (device, link, pci))
{
    return remote(device, link, pci, offsetof(nvmlPciInfo_t, busId));
}

SIM_NVML_DEVICE(nvmlDeviceGetNvLinkRemoteDeviceType,
                (nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *pNvLinkDeviceType),
                (device, link, pNvLinkDeviceType))
{
    SIM_NVML_REQUIRE(pNvLinkDeviceType);
    SIM_NVML_TRY(check_active(device, link));
    *pNvLinkDeviceType = NVML_NVLINK_DEVICE_TYPE_GPU;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetNvLinkErrorCounter,
                (nvmlDevice_t device, unsigned int link, nvmlNvLinkErrorCounter_t counter,
                 unsigned long long *counterValue),
                (device, link, counter, counterValue))
{
    SIM_NVML_REQUIRE(counterValue && (unsigned)counter < NVML_NVLINK_ERROR_COUNT);
    SIM_NVML_TRY(check_active(device, link));
    *counterValue = (unsigned long long)sim_gpu_value(device, SIM_NVLINK_ERRORS);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceResetNvLinkErrorCounters, (nvmlDevice_t device, unsigned int link), (device, link))
{
    SIM_NVML_TRY(check_active(device, link));
    return sim_gpu_set(device, SIM_NVLINK_ERRORS, 0);
}
