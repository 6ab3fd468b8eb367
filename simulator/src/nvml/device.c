// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handles of devices and what identifies them: the same as the driver says.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "driver/device.h"
#include "nvml/gpu.h"

enum { UUID_BYTES = 16, SERIAL_TEXT = 30, SERIAL = 1650000 };
enum { PCI_DEVICE = 0x233510de, PCI_SUBSYSTEM = 0x18be10de };  // of an H200
enum { CLASS_DISPLAY = 3, SUBCLASS_3D = 2 };

int sim_gpu_attribute(CUdevice_attribute attribute)
{
    int value = 0;
    sim_device_attribute(0, attribute, &value);
    return value;
}

static void serial_text(unsigned index, char text[SERIAL_TEXT])
{
    snprintf(text, SERIAL_TEXT, "%d%06u", SERIAL, index);
}

// --- Handles --------------------------------------------------------------------------------------------------

static nvmlReturn_t give(nvmlDevice_t *device, unsigned index, nvmlReturn_t missing)
{
    SIM_NVML_REQUIRE(device);
    if (index >= sim_gpu_count())
        return missing;
    *device = sim_gpu_at(index);
    return NVML_SUCCESS;
}

SIM_NVML(nvmlDeviceGetCount_v2, (unsigned int *deviceCount), (deviceCount))
{
    SIM_NVML_REQUIRE(deviceCount);
    *deviceCount = sim_gpu_count();
    return NVML_SUCCESS;
}

SIM_NVML(nvmlDeviceGetCount, (unsigned int *deviceCount), (deviceCount))
{
    return nvmlDeviceGetCount_v2_body(deviceCount);
}

SIM_NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned int index, nvmlDevice_t *device), (index, device))
{
    return give(device, index, NVML_ERROR_INVALID_ARGUMENT);
}

SIM_NVML(nvmlDeviceGetHandleByIndex, (unsigned int index, nvmlDevice_t *device), (index, device))
{
    return give(device, index, NVML_ERROR_INVALID_ARGUMENT);
}

SIM_NVML(nvmlDeviceGetHandleBySerial, (const char *serial, nvmlDevice_t *device), (serial, device))
{
    SIM_NVML_REQUIRE(serial);
    unsigned index = 0;
    for (; index < sim_gpu_count(); index++) {
        char text[SERIAL_TEXT];
        serial_text(index, text);
        if (strcmp(text, serial) == 0)
            break;
    }
    return give(device, index, NVML_ERROR_NOT_FOUND);
}

SIM_NVML(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device), (uuid, device))
{
    SIM_NVML_REQUIRE(uuid);
    unsigned index = 0;
    for (; index < sim_gpu_count(); index++) {
        char text[SIM_UUID_TEXT];
        sim_gpu_uuid_text((int)index, text);
        if (strcasecmp(text, uuid) == 0)
            break;
    }
    return give(device, index, NVML_ERROR_NOT_FOUND);
}

SIM_NVML(nvmlDeviceGetHandleByUUIDV, (const nvmlUUID_t *uuid, nvmlDevice_t *device), (uuid, device))
{
    SIM_NVML_VERSION(uuid, nvmlUUID_v1);
    if (uuid->type == NVML_UUID_TYPE_ASCII)
        return nvmlDeviceGetHandleByUUID_body(uuid->value.str, device);
    SIM_NVML_REQUIRE(uuid->type == NVML_UUID_TYPE_BINARY);
    unsigned index = 0;
    for (; index < sim_gpu_count(); index++) {
        char bytes[UUID_BYTES];
        sim_gpu_uuid((int)index, bytes);
        if (memcmp(bytes, uuid->value.bytes, UUID_BYTES) == 0)
            break;
    }
    return give(device, index, NVML_ERROR_NOT_FOUND);
}

SIM_NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *pciBusId, nvmlDevice_t *device), (pciBusId, device))
{
    SIM_NVML_REQUIRE(pciBusId);
    unsigned domain = 0, bus, slot, function = 0;
    if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        SIM_NVML_REQUIRE(sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &function) >= 2);
    }
    bool possible = !domain && !slot && !function && bus >= SIM_FIRST_BUS;
    return give(device, possible ? bus - SIM_FIRST_BUS : SIM_MAX_DEVICES, NVML_ERROR_NOT_FOUND);
}

SIM_NVML(nvmlDeviceGetHandleByPciBusId, (const char *pciBusId, nvmlDevice_t *device), (pciBusId, device))
{
    return nvmlDeviceGetHandleByPciBusId_v2_body(pciBusId, device);
}

// --- Identity -------------------------------------------------------------------------------------------------

SIM_NVML_DEVICE(nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned int *index), (device, index))
{
    SIM_NVML_REQUIRE(index);
    *index = device->index;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned int *minorNumber), (device, minorNumber))
{
    return nvmlDeviceGetIndex_body(device, minorNumber);
}

SIM_NVML_DEVICE(nvmlDeviceGetModuleId, (nvmlDevice_t device, unsigned int *moduleId), (device, moduleId))
{
    return nvmlDeviceGetIndex_body(device, moduleId);
}

// Every device is on a board of its own.
SIM_NVML_DEVICE(nvmlDeviceGetBoardId, (nvmlDevice_t device, unsigned int *boardId), (device, boardId))
{
    SIM_NVML_REQUIRE(boardId);
    *boardId = (SIM_FIRST_BUS + device->index) << 8;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetName, (nvmlDevice_t device, char *name, unsigned int length), (device, name, length))
{
    char text[SIM_NAME_BYTES];
    sim_device_name(text);
    return sim_nvml_text(name, length, text);
}

SIM_NVML_DEVICE(nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned int length), (device, uuid, length))
{
    char text[SIM_UUID_TEXT];
    sim_gpu_uuid_text((int)device->index, text);
    return sim_nvml_text(uuid, length, text);
}

SIM_NVML_DEVICE(nvmlDeviceGetSerial, (nvmlDevice_t device, char *serial, unsigned int length), (device, serial, length))
{
    char text[SERIAL_TEXT];
    serial_text(device->index, text);
    return sim_nvml_text(serial, length, text);
}

SIM_NVML_CONSTANT(nvmlDeviceGetBrand, nvmlBrandType_t, NVML_BRAND_NVIDIA)
SIM_NVML_CONSTANT(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
SIM_NVML_CONSTANT(nvmlDeviceGetBusType, nvmlBusType_t, NVML_BUS_TYPE_PCIE)
SIM_NVML_CONSTANT(nvmlDeviceGetMemoryBusWidth, unsigned int,
                  sim_gpu_attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH))
SIM_NVML_TEXT(nvmlDeviceGetVbiosVersion, "00.00.00.00.00")
SIM_NVML_TEXT(nvmlDeviceGetInforomImageVersion, "S000.0000.00.00")

SIM_NVML_DEVICE(nvmlDeviceGetInforomVersion,
                (nvmlDevice_t device, nvmlInforomObject_t object, char *version, unsigned int length),
                (device, object, version, length))
{
    static const char *const versions[] = {[NVML_INFOROM_OEM] = "2.1", [NVML_INFOROM_ECC] = "7.16"};
    SIM_NVML_REQUIRE((unsigned)object < NVML_INFOROM_COUNT);
    SIM_NVML_SUPPORTED(object < SIM_COUNT(versions));
    return sim_nvml_text(version, length, versions[object]);
}

SIM_NVML_CONSTANT(nvmlDeviceGetInforomConfigurationChecksum, unsigned int, 0x51d)
SIM_NVML_DEVICE(nvmlDeviceValidateInforom, (nvmlDevice_t device), (device)) { return NVML_SUCCESS; }

SIM_NVML(nvmlDeviceOnSameBoard, (nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard),
         (device1, device2, onSameBoard))
{
    SIM_NVML_REQUIRE(sim_gpu_valid(device1) && sim_gpu_valid(device2) && onSameBoard);
    *onSameBoard = device1 == device2;
    return NVML_SUCCESS;
}

// --- What the device can do -----------------------------------------------------------------------------------

SIM_NVML_DEVICE(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t device, int *major, int *minor),
                (device, major, minor))
{
    SIM_NVML_REQUIRE(major && minor);
    *major = sim_config()->major;
    *minor = sim_config()->minor;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetArchitecture, (nvmlDevice_t device, nvmlDeviceArchitecture_t *arch), (device, arch))
{
    static const unsigned char by_major[] = {[3] = NVML_DEVICE_ARCH_KEPLER,
                                             [5] = NVML_DEVICE_ARCH_MAXWELL,
                                             [6] = NVML_DEVICE_ARCH_PASCAL,
                                             [7] = NVML_DEVICE_ARCH_VOLTA,
                                             [8] = NVML_DEVICE_ARCH_AMPERE,
                                             [9] = NVML_DEVICE_ARCH_HOPPER,
                                             [10] = 10,
                                             [11] = 10,
                                             [12] = 10};  // NVML_DEVICE_ARCH_BLACKWELL
    SIM_NVML_REQUIRE(arch);
    int major = sim_config()->major, minor = sim_config()->minor;
    unsigned found = major < (int)SIM_COUNT(by_major) ? by_major[major] : 0;
    if (major == 7 && minor == 5)
        found = NVML_DEVICE_ARCH_TURING;
    if (major == 8 && minor == 9)
        found = NVML_DEVICE_ARCH_ADA;
    *arch = found ? found : NVML_DEVICE_ARCH_UNKNOWN;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetNumGpuCores, (nvmlDevice_t device, unsigned int *numCores), (device, numCores))
{
    SIM_NVML_REQUIRE(numCores);
    int major = sim_config()->major, minor = sim_config()->minor;
    bool small = major == 7 || ((major == 6 || major == 8) && minor == 0);
    unsigned each = major == 3 ? 192 : small ? 64 : 128;
    *numCores = each * (unsigned)sim_gpu_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetAttributes_v2, (nvmlDevice_t device, nvmlDeviceAttributes_t *attributes),
                (device, attributes))
{
    SIM_NVML_REQUIRE(attributes);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = (unsigned)sim_gpu_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .sharedCopyEngineCount = (unsigned)sim_gpu_attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
        .memorySizeMB = sim_config()->memory >> 20,
    };
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetAttributes, (nvmlDevice_t device, nvmlDeviceAttributes_t *attributes),
                (device, attributes))
{
    return nvmlDeviceGetAttributes_v2_body(device, attributes);
}

// --- PCI ------------------------------------------------------------------------------------------------------

nvmlReturn_t sim_gpu_pci(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    SIM_NVML_REQUIRE(pci);
    *pci = (nvmlPciInfo_t){
        .bus = SIM_FIRST_BUS + device->index, .pciDeviceId = PCI_DEVICE, .pciSubSystemId = PCI_SUBSYSTEM};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t *pci), (device, pci))
{
    return sim_gpu_pci(device, pci);
}

SIM_NVML_DEVICE(nvmlDeviceGetPciInfo_v2, (nvmlDevice_t device, nvmlPciInfo_t *pci), (device, pci))
{
    SIM_NVML_REQUIRE(pci);
    // The structure of then ended before what the caller may have no memory for.
    nvmlPciInfo_t whole;
    sim_gpu_pci(device, &whole);
    memcpy(pci, &whole, offsetof(nvmlPciInfo_t, busId));
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetPciInfo, (nvmlDevice_t device, nvmlPciInfo_t *pci), (device, pci))
{
    SIM_NVML_REQUIRE(pci);
    nvmlPciInfo_t whole;
    sim_gpu_pci(device, &whole);
    memcpy(pci, &whole, offsetof(nvmlPciInfo_t, pciSubSystemId));
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetPciInfoExt, (nvmlDevice_t device, nvmlPciInfoExt_t *pci), (device, pci))
{
    SIM_NVML_VERSION(pci, nvmlPciInfoExt_v1);
    nvmlPciInfo_t info;
    sim_gpu_pci(device, &info);
    *pci = (nvmlPciInfoExt_t){.version = pci->version,
                              .bus = info.bus,
                              .pciDeviceId = PCI_DEVICE,
                              .pciSubSystemId = PCI_SUBSYSTEM,
                              .baseClass = CLASS_DISPLAY,
                              .subClass = SUBCLASS_3D};
    memcpy(pci->busId, info.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}

static const unsigned link_speed[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};  // MT/s of a lane, by generation

SIM_NVML_CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, SIM_PCIE_GENERATION)
SIM_NVML_CONSTANT(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, SIM_PCIE_GENERATION)
SIM_NVML_CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, SIM_PCIE_WIDTH)
SIM_NVML_CONSTANT(nvmlDeviceGetPcieLinkMaxSpeed, unsigned int, NVML_PCIE_LINK_MAX_SPEED_32000MBPS)
SIM_NVML_VALUE(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, SIM_PCIE_GENERATION_NOW)
SIM_NVML_VALUE(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, SIM_PCIE_WIDTH_NOW)
SIM_NVML_VALUE(nvmlDeviceGetPcieReplayCounter, unsigned int, SIM_PCIE_REPLAYS)

SIM_NVML_DEVICE(nvmlDeviceGetPcieSpeed, (nvmlDevice_t device, unsigned int *pcieSpeed), (device, pcieSpeed))
{
    SIM_NVML_REQUIRE(pcieSpeed);
    uint64_t generation = (uint64_t)sim_gpu_value(device, SIM_PCIE_GENERATION_NOW);
    *pcieSpeed = generation < SIM_COUNT(link_speed) ? link_speed[generation] : 0;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetPcieThroughput, (nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *value),
                (device, counter, value))
{
    SIM_NVML_REQUIRE(value && (unsigned)counter < NVML_PCIE_UTIL_COUNT);
    *value = (unsigned)sim_gpu_value(device, counter == NVML_PCIE_UTIL_TX_BYTES ? SIM_PCIE_TX : SIM_PCIE_RX);
    return NVML_SUCCESS;
}
