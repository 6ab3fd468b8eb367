// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What the functions of NVML share: the device, its values, and the shape of an entry point.

#ifndef SIM_NVML_GPU_H
#define SIM_NVML_GPU_H

// Makes nvml.h declare every version of a function under its exported name.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "driver/sim.h"

enum {
    SIM_DERIVED = -1,  // a value that follows from what happens, until it is set
    SIM_POWER_DEFAULT = 700000,
    SIM_POWER_MINIMUM = 200000,
    SIM_PCIE_GENERATION = 5,
    SIM_PCIE_WIDTH = 16,
    SIM_PERCENT = 100,
    SIM_NVLINK_VERSION = 6,    // as nvml.h counts: 4.0
    SIM_NVLINK_SPEED = 26562,  // MB/s of a link, in each direction
};

enum sim_value {
#define VALUE(name, text, initial) SIM_##name,
#include "nvml/values.h"
#undef VALUE
    SIM_VALUES
};

// The structure that nvml.h leaves open; a device's handle is its address.
struct nvmlDevice_st {
    unsigned index;
    _Atomic int64_t values[SIM_VALUES];
};

struct nvmlDevice_st *sim_gpu_at(unsigned index);
unsigned sim_gpu_count(void);
bool sim_gpu_valid(nvmlDevice_t device);

static inline int64_t sim_gpu_value(nvmlDevice_t device, enum sim_value value)
{
    return atomic_load_explicit(&device->values[value], memory_order_relaxed);
}

// The value, or what it follows from.
int64_t sim_gpu_derived(nvmlDevice_t device, enum sim_value value);

static inline nvmlReturn_t sim_gpu_set(nvmlDevice_t device, enum sim_value value, int64_t to)
{
    atomic_store(&device->values[value], to);
    return NVML_SUCCESS;
}

void sim_gpu_utilization(nvmlDevice_t device, unsigned *gpu, unsigned *memory);
void sim_gpu_memory(nvmlDevice_t device, nvmlMemory_v2_t *memory);
// Lists the compute processes, or none, in structures of that size: those of the versions begin alike.
unsigned long long sim_gpu_energy(nvmlDevice_t device);
nvmlReturn_t sim_driver_release(char *release, unsigned length);
nvmlReturn_t sim_gpu_pci(nvmlDevice_t device, nvmlPciInfo_t *pci);
int sim_gpu_attribute(CUdevice_attribute attribute);  // of the driver
unsigned sim_gpu_clock(nvmlDevice_t device, nvmlClockType_t type);
unsigned sim_gpu_max_clock(nvmlClockType_t type);
unsigned sim_gpu_threshold(nvmlTemperatureThresholds_t threshold);
nvmlReturn_t sim_gpu_reached(nvmlDevice_t device, unsigned link, unsigned *other);  // over the NVLink
nvmlReturn_t sim_gpu_link_state(nvmlDevice_t device, unsigned link, nvmlEnableState_t *state);

// --- Entry points ---------------------------------------------------------------------------------------------

// May the call be served? Refuses before initialisation, where a fault is injected, and for what is no device.
nvmlReturn_t sim_nvml_enter(const char *function);
nvmlReturn_t sim_nvml_enter_device(const char *function, nvmlDevice_t device);
nvmlReturn_t sim_nvml_leave(const char *function, nvmlReturn_t status);

#define SIM_NVML_ENTRY_POINT(name, params, args, enter) \
    static nvmlReturn_t name##_body params; \
    SIM_EXPORT nvmlReturn_t name params \
    { \
        nvmlReturn_t sim_status_ = enter; \
        if (sim_status_ == NVML_SUCCESS) \
            sim_status_ = name##_body args; \
        return sim_nvml_leave(#name, sim_status_); \
    } \
    static nvmlReturn_t name##_body params

// Defines the entry point `name`; the function body follows the macro.
#define SIM_NVML(name, params, args) SIM_NVML_ENTRY_POINT(name, params, args, sim_nvml_enter(#name))
// The same for a function whose first parameter is `device`.
#define SIM_NVML_DEVICE(name, params, args) \
    SIM_NVML_ENTRY_POINT(name, params, args, sim_nvml_enter_device(#name, device))

// Whole functions that hand out a value of the device, or a number.
nvmlReturn_t sim_nvml_value(const char *function, nvmlDevice_t device, void *out, enum sim_value value);
nvmlReturn_t sim_nvml_constant(const char *function, nvmlDevice_t device, void *out, int constant);
nvmlReturn_t sim_nvml_constant_text(const char *function, nvmlDevice_t device, char *out, unsigned length,
                                    const char *text);

#define SIM_NVML_VALUE(name, type, value) \
    SIM_EXPORT nvmlReturn_t name(nvmlDevice_t device, type *out) { return sim_nvml_value(#name, device, out, value); }
#define SIM_NVML_CONSTANT(name, type, constant) \
    SIM_EXPORT nvmlReturn_t name(nvmlDevice_t device, type *out) \
    { \
        _Static_assert(sizeof(type) == sizeof(int), "what sim_nvml_constant writes"); \
        return sim_nvml_constant(#name, device, out, (int)(constant)); \
    }
#define SIM_NVML_TEXT(name, text) \
    SIM_EXPORT nvmlReturn_t name(nvmlDevice_t device, char *out, unsigned int length) \
    { \
        return sim_nvml_constant_text(#name, device, out, length, text); \
    }

// --- Small helpers --------------------------------------------------------------------------------------------

#define SIM_NVML_TRY(expression) \
    do { \
        nvmlReturn_t sim_try_ = (expression); \
        if (sim_try_ != NVML_SUCCESS) \
            return sim_try_; \
    } while (0)

#define SIM_NVML_REQUIRE(condition) \
    do { \
        if (!(condition)) \
            return NVML_ERROR_INVALID_ARGUMENT; \
    } while (0)

#define SIM_NVML_SUPPORTED(condition) \
    do { \
        if (!(condition)) \
            return NVML_ERROR_NOT_SUPPORTED; \
    } while (0)

// A structure that says which version of it the caller means.
#define SIM_NVML_VERSION(structure, expected) \
    do { \
        SIM_NVML_REQUIRE(structure); \
        if ((structure)->version != (unsigned)(expected)) \
            return NVML_ERROR_ARGUMENT_VERSION_MISMATCH; \
    } while (0)

// Copies a text out, which has to fit.
nvmlReturn_t sim_nvml_text(char *out, unsigned length, const char *text);
// An array whose capacity is in *count, and whose size goes there: copies it out if it fits.
nvmlReturn_t sim_nvml_array(void *out, unsigned *count, const void *items, size_t number, size_t size);

#endif
