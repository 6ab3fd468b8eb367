// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The functions that nothing is modelled of. They refuse what every function refuses, and then answer that the device
// does not support it. nvml.h need not know them: they read one argument at most, which is in a register.

#include "nvml/gpu.h"

static nvmlReturn_t refuse(const char *function, nvmlReturn_t status)
{
    return sim_nvml_leave(function, status == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : status);
}

static nvmlReturn_t refuse_device(const char *function, nvmlDevice_t device)
{
    return refuse(function, sim_nvml_enter_device(function, device));
}

static nvmlReturn_t refuse_other(const char *function) { return refuse(function, sim_nvml_enter(function)); }

#define DEVICE(name) \
    SIM_EXPORT nvmlReturn_t sim_unsupported_##name(nvmlDevice_t device) __asm__(#name); \
    nvmlReturn_t sim_unsupported_##name(nvmlDevice_t device) { return refuse_device(#name, device); }
#define OTHER(name) \
    SIM_EXPORT nvmlReturn_t sim_unsupported_##name(void) __asm__(#name); \
    nvmlReturn_t sim_unsupported_##name(void) { return refuse_other(#name); }

#include "nvml/unsupported_table.h"

#ifndef nvmlDeviceAddressingMode_v1
DEVICE(nvmlDeviceGetAddressingMode)
#endif
#ifndef nvmlRepairStatus_v1
DEVICE(nvmlDeviceGetRepairStatus)
#endif
