// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Modes: of computing, persistence, accounting, MIG, virtualisation, firmware.

#include <string.h>

#include "nvml/gpu.h"

static nvmlReturn_t set_mode(nvmlDevice_t device, enum sim_value value, unsigned mode, unsigned modes)
{
    SIM_NVML_REQUIRE(mode < modes);
    return sim_gpu_set(device, value, mode);
}

enum { BUFFER_PROCESSES = 4000, TWO = 2 };  // disabled and enabled

SIM_NVML_VALUE(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, SIM_PERSISTENCE_MODE)
SIM_NVML_VALUE(nvmlDeviceGetComputeMode, nvmlComputeMode_t, SIM_COMPUTE_MODE)
SIM_NVML_VALUE(nvmlDeviceGetAccountingMode, nvmlEnableState_t, SIM_ACCOUNTING_MODE)
SIM_NVML_CONSTANT(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
SIM_NVML_CONSTANT(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)

SIM_NVML_DEVICE(nvmlDeviceSetPersistenceMode, (nvmlDevice_t device, nvmlEnableState_t mode), (device, mode))
{
    return set_mode(device, SIM_PERSISTENCE_MODE, mode, TWO);
}

SIM_NVML_DEVICE(nvmlDeviceSetComputeMode, (nvmlDevice_t device, nvmlComputeMode_t mode), (device, mode))
{
    return set_mode(device, SIM_COMPUTE_MODE, mode, NVML_COMPUTEMODE_COUNT);
}

SIM_NVML_DEVICE(nvmlDeviceGetAPIRestriction,
                (nvmlDevice_t device, nvmlRestrictedAPI_t apiType, nvmlEnableState_t *isRestricted),
                (device, apiType, isRestricted))
{
    SIM_NVML_REQUIRE(isRestricted && (unsigned)apiType < NVML_RESTRICTED_API_COUNT);
    SIM_NVML_SUPPORTED(apiType == NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS);
    *isRestricted = NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

// --- Accounting: the mode only; nothing is recorded -----------------------------------------------------------

SIM_NVML_CONSTANT(nvmlDeviceGetAccountingBufferSize, unsigned int, BUFFER_PROCESSES)

SIM_NVML_DEVICE(nvmlDeviceSetAccountingMode, (nvmlDevice_t device, nvmlEnableState_t mode), (device, mode))
{
    return set_mode(device, SIM_ACCOUNTING_MODE, mode, TWO);
}

SIM_NVML_DEVICE(nvmlDeviceGetAccountingPids, (nvmlDevice_t device, unsigned int *count, unsigned int *pids),
                (device, count, pids))
{
    return sim_nvml_array(pids, count, NULL, 0, sizeof *pids);
}

SIM_NVML_DEVICE(nvmlDeviceGetAccountingStats, (nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats),
                (device, pid, stats))
{
    SIM_NVML_REQUIRE(stats);
    return NVML_ERROR_NOT_FOUND;
}

SIM_NVML_DEVICE(nvmlDeviceClearAccountingPids, (nvmlDevice_t device), (device)) { return NVML_SUCCESS; }

// --- MIG: off, and not to be had ------------------------------------------------------------------------------

SIM_NVML_DEVICE(nvmlDeviceGetMigMode, (nvmlDevice_t device, unsigned int *currentMode, unsigned int *pendingMode),
                (device, currentMode, pendingMode))
{
    SIM_NVML_REQUIRE(currentMode && pendingMode);
    *currentMode = *pendingMode = NVML_DEVICE_MIG_DISABLE;
    return NVML_SUCCESS;
}

SIM_NVML_CONSTANT(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)
SIM_NVML_CONSTANT(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0)

SIM_NVML_DEVICE(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice_t device, unsigned int index, nvmlDevice_t *migDevice),
                (device, index, migDevice))
{
    SIM_NVML_REQUIRE(migDevice);
    return NVML_ERROR_NOT_FOUND;
}

// --- Virtualisation and firmware ------------------------------------------------------------------------------

SIM_NVML_CONSTANT(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_NONE)

SIM_NVML_DEVICE(nvmlDeviceGetGspFirmwareMode, (nvmlDevice_t device, unsigned int *isEnabled, unsigned int *defaultMode),
                (device, isEnabled, defaultMode))
{
    SIM_NVML_REQUIRE(isEnabled && defaultMode);
    *isEnabled = *defaultMode = 1;
    return NVML_SUCCESS;
}

// That of the driver; the caller's buffer has no length.
SIM_NVML_DEVICE(nvmlDeviceGetGspFirmwareVersion, (nvmlDevice_t device, char *version), (device, version))
{
    return sim_driver_release(version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

#ifdef nvmlDeviceAddressingMode_v1
// Kernels use the host's memory as the host does.
SIM_NVML_DEVICE(nvmlDeviceGetAddressingMode, (nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode), (device, mode))
{
    SIM_NVML_VERSION(mode, nvmlDeviceAddressingMode_v1);
    mode->value = NVML_DEVICE_ADDRESSING_MODE_NONE;
    return NVML_SUCCESS;
}
#endif

#ifdef nvmlRepairStatus_v1
SIM_NVML_DEVICE(nvmlDeviceGetRepairStatus, (nvmlDevice_t device, nvmlRepairStatus_t *repairStatus),
                (device, repairStatus))
{
    SIM_NVML_VERSION(repairStatus, nvmlRepairStatus_v1);
    repairStatus->bChannelRepairPending = repairStatus->bTpcRepairPending = 0;
    return NVML_SUCCESS;
}
#endif

SIM_NVML_DEVICE(nvmlDeviceGetC2cModeInfoV, (nvmlDevice_t device, nvmlC2cModeInfo_v1_t *c2cModeInfo),
                (device, c2cModeInfo))
{
    SIM_NVML_REQUIRE(c2cModeInfo);
    c2cModeInfo->isC2cEnabled = 0;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetCapabilities, (nvmlDevice_t device, nvmlDeviceCapabilities_t *caps), (device, caps))
{
    SIM_NVML_VERSION(caps, nvmlDeviceCapabilities_v1);
    caps->capMask = 0;
    return NVML_SUCCESS;
}

SIM_NVML(nvmlSystemGetConfComputeCapabilities, (nvmlConfComputeSystemCaps_t *capabilities), (capabilities))
{
    SIM_NVML_REQUIRE(capabilities);
    *capabilities = (nvmlConfComputeSystemCaps_t){0};
    return NVML_SUCCESS;
}

SIM_NVML(nvmlSystemGetConfComputeState, (nvmlConfComputeSystemState_t *state), (state))
{
    SIM_NVML_REQUIRE(state);
    *state = (nvmlConfComputeSystemState_t){0};
    return NVML_SUCCESS;
}
