// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/usage.h"
#include "memory/arena.h"

static struct sim_device devices[SIM_MAX_DEVICES];
static int device_count;

enum { PCI_TEXT = 13 };  // "dddd:bb:dd.f" and NUL
static const size_t MINIMUM_ADDRESSES = (size_t)1 << 34;

CUresult sim_devices_init(void)
{
    const struct sim_config *config = sim_config();
    if (config->problem[0])
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (config->visible)
        sim_usage_publish();
    for (int i = 0; i < config->visible; i++) {
        // Many times the memory, so that freed addresses stay unused for long and misuse is seen.
        size_t addresses = 8 * config->memory;
        if (addresses < MINIMUM_ADDRESSES)
            addresses = MINIMUM_ADDRESSES;
        int gpu = config->gpus[i];
        devices[i] = (struct sim_device){.ordinal = i, .gpu = gpu, .memory = config->memory, .usage = &sim_usage[gpu]};
        devices[i].arena = sim_arena_new(addresses);
        if (!devices[i].arena)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device_count = config->visible;
    return device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

int sim_device_count(void) { return device_count; }

struct sim_device *sim_device_at(int ordinal) { return &devices[ordinal]; }

CUresult sim_device_find(CUdevice ordinal, struct sim_device **device)
{
    if (ordinal < 0 || ordinal >= device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = &devices[ordinal];
    return CUDA_SUCCESS;
}

bool sim_device_charge(struct sim_device *device, size_t bytes)
{
    size_t used = atomic_load(&device->usage->memory);
    do {
        if (bytes > device->memory - used)
            return false;
    } while (!atomic_compare_exchange_weak(&device->usage->memory, &used, used + bytes));
    return true;
}

void sim_device_refund(struct sim_device *device, size_t bytes) { atomic_fetch_sub(&device->usage->memory, bytes); }

void sim_device_name(char name[SIM_NAME_BYTES])
{
    snprintf(name, SIM_NAME_BYTES, "Simulated GPU (compute capability %d.%d)", sim_config()->major,
             sim_config()->minor);
}

int sim_device_of_gpu(int gpu)
{
    for (int i = 0; i < device_count; i++)
        if (devices[i].gpu == gpu)
            return i;
    return -1;
}

// --- Entry points ---------------------------------------------------------------------------------------------

SIM_API(cuDeviceGetCount, (int *count), (count))
{
    SIM_REQUIRE(count);
    *count = device_count;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGet, (CUdevice *device, int ordinal), (device, ordinal))
{
    SIM_REQUIRE(device);
    struct sim_device *found;
    SIM_TRY(sim_device_find(ordinal, &found));
    *device = ordinal;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetName, (char *name, int len, CUdevice dev), (name, len, dev))
{
    SIM_REQUIRE(name && len > 0);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    char text[SIM_NAME_BYTES];
    sim_device_name(text);
    snprintf(name, (size_t)len, "%s", text);
    return CUDA_SUCCESS;
}

static CUresult uuid_of(CUuuid *uuid, CUdevice dev)
{
    SIM_REQUIRE(uuid);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    sim_gpu_uuid(device->gpu, uuid->bytes);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetUuid, (CUuuid *uuid, CUdevice dev), (uuid, dev)) { return uuid_of(uuid, dev); }
SIM_API(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice dev), (uuid, dev)) { return uuid_of(uuid, dev); }

SIM_API(cuDeviceGetLuid, (char *luid, unsigned int *deviceNodeMask, CUdevice dev), (luid, deviceNodeMask, dev))
{
    (void)luid, (void)deviceNodeMask;
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    return CUDA_ERROR_NOT_SUPPORTED;  // a Windows notion
}

SIM_API(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice dev), (bytes, dev))
{
    SIM_REQUIRE(bytes);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    *bytes = device->memory;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetAttribute, (int *pi, CUdevice_attribute attrib, CUdevice dev), (pi, attrib, dev))
{
    SIM_REQUIRE(pi);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    SIM_REQUIRE(sim_device_attribute(dev, attrib, pi) == 0);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceComputeCapability, (int *major, int *minor, CUdevice dev), (major, minor, dev))
{
    SIM_REQUIRE(major && minor);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    *major = sim_config()->major;
    *minor = sim_config()->minor;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetTexture1DLinearMaxWidth,
        (size_t *maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev),
        (maxWidthInElements, format, numChannels, dev))
{
    SIM_REQUIRE(maxWidthInElements && numChannels >= 1 && numChannels <= 4 && numChannels != 3);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_FLOAT: break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    *maxWidthInElements = (size_t)1 << 28;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetExecAffinitySupport, (int *pi, CUexecAffinityType type, CUdevice dev), (pi, type, dev))
{
    SIM_REQUIRE(pi && type == CU_EXEC_AFFINITY_TYPE_SM_COUNT);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    *pi = 0;
    return CUDA_SUCCESS;
}

// --- PCI addresses --------------------------------------------------------------------------------------------

SIM_API(cuDeviceGetPCIBusId, (char *pciBusId, int len, CUdevice dev), (pciBusId, len, dev))
{
    SIM_REQUIRE(pciBusId && len > 0);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    char text[PCI_TEXT + 8];
    snprintf(text, sizeof text, "0000:%02X:00.0", SIM_FIRST_BUS + device->gpu);
    snprintf(pciBusId, (size_t)len, "%s", text);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetByPCIBusId, (CUdevice *dev, const char *pciBusId), (dev, pciBusId))
{
    SIM_REQUIRE(dev && pciBusId);
    unsigned domain = 0, bus, slot, function = 0;
    if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        SIM_REQUIRE(sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &function) >= 2);
    }
    int ordinal = sim_device_of_gpu((int)bus - SIM_FIRST_BUS);
    if (domain || slot || function || ordinal < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *dev = ordinal;
    return CUDA_SUCCESS;
}

// --- Peers ----------------------------------------------------------------------------------------------------

SIM_API(cuDeviceCanAccessPeer, (int *canAccessPeer, CUdevice dev, CUdevice peerDev), (canAccessPeer, dev, peerDev))
{
    SIM_REQUIRE(canAccessPeer);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    SIM_TRY(sim_device_find(peerDev, &device));
    *canAccessPeer = dev != peerDev && sim_config()->peer_access;
    return CUDA_SUCCESS;
}

// CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED, which headers before 13.0 do not have.
enum { PARTIAL_ATOMICS = 5 };

SIM_API(cuDeviceGetP2PAttribute, (int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice),
        (value, attrib, srcDevice, dstDevice))
{
    SIM_REQUIRE(value);
    struct sim_device *device;
    SIM_TRY(sim_device_find(srcDevice, &device));
    SIM_TRY(sim_device_find(dstDevice, &device));
    if (srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_DEVICE;
    switch ((int)attrib) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: *value = 0; return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = sim_config()->peer_access; return CUDA_SUCCESS;
    case PARTIAL_ATOMICS: *value = 0; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}
