// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Field values: other ways to ask for what there is a function for. What is not in the table is not supported.

#include <string.h>
#include <time.h>

#include "driver/config.h"
#include "nvml/gpu.h"

enum source { OF_VALUE = 1, OF_CONSTANT, OF_MARGIN, OF_LINK };
enum { LINK_SPEED, LINK_STATE, LINK_VERSION, LINK_ERRORS };

struct field {
    unsigned short id;
    unsigned char source, type;
    int what;  // the value, the constant, the threshold or a property of a link
};

#define U32 NVML_VALUE_TYPE_UNSIGNED_INT
#define S32 NVML_VALUE_TYPE_SIGNED_INT
#define U64 NVML_VALUE_TYPE_UNSIGNED_LONG_LONG

static const struct field fields[] = {
    {NVML_FI_DEV_ECC_CURRENT, OF_VALUE, U32, SIM_ECC_MODE},
    {NVML_FI_DEV_ECC_PENDING, OF_VALUE, U32, SIM_ECC_PENDING},
    {NVML_FI_DEV_ECC_SBE_VOL_TOTAL, OF_VALUE, U64, SIM_ECC_CORRECTED_VOLATILE},
    {NVML_FI_DEV_ECC_DBE_VOL_TOTAL, OF_VALUE, U64, SIM_ECC_UNCORRECTED_VOLATILE},
    {NVML_FI_DEV_ECC_SBE_AGG_TOTAL, OF_VALUE, U64, SIM_ECC_CORRECTED_AGGREGATE},
    {NVML_FI_DEV_ECC_DBE_AGG_TOTAL, OF_VALUE, U64, SIM_ECC_UNCORRECTED_AGGREGATE},
    {NVML_FI_DEV_ECC_SBE_VOL_DEV, OF_VALUE, U64, SIM_ECC_CORRECTED_VOLATILE},
    {NVML_FI_DEV_ECC_DBE_VOL_DEV, OF_VALUE, U64, SIM_ECC_UNCORRECTED_VOLATILE},
    {NVML_FI_DEV_ECC_SBE_AGG_DEV, OF_VALUE, U64, SIM_ECC_CORRECTED_AGGREGATE},
    {NVML_FI_DEV_ECC_DBE_AGG_DEV, OF_VALUE, U64, SIM_ECC_UNCORRECTED_AGGREGATE},
    {NVML_FI_DEV_RETIRED_SBE, OF_CONSTANT, U64, 0},
    {NVML_FI_DEV_RETIRED_DBE, OF_CONSTANT, U64, 0},
    {NVML_FI_DEV_RETIRED_PENDING, OF_CONSTANT, U32, 0},
    {NVML_FI_DEV_RETIRED_PENDING_SBE, OF_CONSTANT, U32, 0},
    {NVML_FI_DEV_RETIRED_PENDING_DBE, OF_CONSTANT, U32, 0},
    {NVML_FI_DEV_REMAPPED_COR, OF_VALUE, U32, SIM_REMAPPED_CORRECTABLE},
    {NVML_FI_DEV_REMAPPED_UNC, OF_VALUE, U32, SIM_REMAPPED_UNCORRECTABLE},
    {NVML_FI_DEV_REMAPPED_PENDING, OF_VALUE, U32, SIM_REMAPPED_PENDING},
    {NVML_FI_DEV_REMAPPED_FAILURE, OF_VALUE, U32, SIM_REMAPPED_FAILURE},
    {NVML_FI_DEV_MEMORY_TEMP, OF_VALUE, U32, SIM_MEMORY_TEMPERATURE},
    {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, OF_VALUE, U64, SIM_ENERGY},
    {NVML_FI_DEV_ENERGY, OF_VALUE, U64, SIM_ENERGY},
    {NVML_FI_DEV_POWER_AVERAGE, OF_VALUE, U32, SIM_POWER},
    {NVML_FI_DEV_POWER_INSTANT, OF_VALUE, U32, SIM_POWER},
    {NVML_FI_DEV_POWER_MIN_LIMIT, OF_CONSTANT, U32, SIM_POWER_MINIMUM},
    {NVML_FI_DEV_POWER_MAX_LIMIT, OF_CONSTANT, U32, SIM_POWER_DEFAULT},
    {NVML_FI_DEV_POWER_DEFAULT_LIMIT, OF_CONSTANT, U32, SIM_POWER_DEFAULT},
    {NVML_FI_DEV_POWER_CURRENT_LIMIT, OF_VALUE, U32, SIM_POWER_LIMIT},
    {NVML_FI_DEV_POWER_REQUESTED_LIMIT, OF_VALUE, U32, SIM_POWER_LIMIT},
    {NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, OF_MARGIN, S32, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN},
    {NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, OF_MARGIN, S32, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN},
    {NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, OF_MARGIN, S32, NVML_TEMPERATURE_THRESHOLD_GPU_MAX},
    {NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, OF_CONSTANT, S32, 0},
    {NVML_FI_DEV_PCIE_REPLAY_COUNTER, OF_VALUE, U32, SIM_PCIE_REPLAYS},
    {NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER, OF_CONSTANT, U32, 0},
    {NVML_FI_DEV_NVLINK_LINK_COUNT, OF_LINK, U32, -1},
    {NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, OF_LINK, U32, LINK_SPEED},
    {NVML_FI_DEV_NVLINK_GET_SPEED, OF_LINK, U32, LINK_SPEED},
    {NVML_FI_DEV_NVLINK_GET_STATE, OF_LINK, U32, LINK_STATE},
    {NVML_FI_DEV_NVLINK_GET_VERSION, OF_LINK, U32, LINK_VERSION},
    {NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, OF_LINK, U64, LINK_ERRORS},
    {NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, OF_LINK, U64, LINK_ERRORS},
    {NVML_FI_DEV_NVLINK_ERROR_DL_CRC, OF_LINK, U64, LINK_ERRORS},
    {NVML_FI_DEV_C2C_LINK_COUNT, OF_CONSTANT, U32, 0},
};

// The scope is the number of the link.
static nvmlReturn_t of_link(nvmlDevice_t device, unsigned link, int what, unsigned long long *value)
{
    nvmlEnableState_t state;
    if (what < 0) {
        *value = (unsigned long long)sim_config()->nvlinks;
        return NVML_SUCCESS;
    }
    SIM_NVML_TRY(sim_gpu_link_state(device, link, &state));
    *value = state;
    if (what == LINK_STATE)
        return NVML_SUCCESS;
    SIM_NVML_SUPPORTED(state);
    *value = what == LINK_SPEED     ? SIM_NVLINK_SPEED
             : what == LINK_VERSION ? SIM_NVLINK_VERSION
                                    : (unsigned long long)sim_gpu_value(device, SIM_NVLINK_ERRORS);
    return NVML_SUCCESS;
}

static nvmlReturn_t read_field(nvmlDevice_t device, nvmlFieldValue_t *to, const struct field *field)
{
    unsigned long long value = 0;
    switch (field->source) {
    case OF_VALUE: value = (unsigned long long)sim_gpu_derived(device, (enum sim_value)field->what); break;
    case OF_CONSTANT: value = (unsigned long long)field->what; break;
    case OF_LINK: SIM_NVML_TRY(of_link(device, to->scopeId, field->what, &value)); break;
    default:
        value = sim_gpu_threshold(NVML_TEMPERATURE_THRESHOLD_GPU_MAX) -
                sim_gpu_threshold((nvmlTemperatureThresholds_t)field->what);
    }
    to->valueType = (nvmlValueType_t)field->type;
    to->value.ullVal = value;  // the smaller members lie at its lower end
    return NVML_SUCCESS;
}

static const struct field *find_field(unsigned id)
{
    for (size_t i = 0; i < SIM_COUNT(fields); i++)
        if (fields[i].id == id)
            return &fields[i];
    return NULL;
}

static nvmlReturn_t each(nvmlDevice_t device, int count, nvmlFieldValue_t *values,
                         nvmlReturn_t (*function)(nvmlDevice_t, nvmlFieldValue_t *, const struct field *))
{
    SIM_NVML_REQUIRE(count > 0 && values);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        const struct field *field = find_field(values[i].fieldId);
        values[i].timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        values[i].latencyUsec = 0;
        values[i].nvmlReturn = values[i].fieldId >= NVML_FI_MAX ? NVML_ERROR_INVALID_ARGUMENT
                               : field                          ? function(device, &values[i], field)
                                                                : NVML_ERROR_NOT_SUPPORTED;
    }
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetFieldValues, (nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values),
                (device, valuesCount, values))
{
    return each(device, valuesCount, values, read_field);
}

// Counters that can be set to zero.
static nvmlReturn_t clear_field(nvmlDevice_t device, nvmlFieldValue_t *to, const struct field *field)
{
    bool of_links = field->source == OF_LINK && field->what == LINK_ERRORS;
    SIM_NVML_SUPPORTED(of_links || field->id == NVML_FI_DEV_PCIE_REPLAY_COUNTER);
    return sim_gpu_set(device, of_links ? SIM_NVLINK_ERRORS : SIM_PCIE_REPLAYS, 0);
}

SIM_NVML_DEVICE(nvmlDeviceClearFieldValues, (nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values),
                (device, valuesCount, values))
{
    return each(device, valuesCount, values, clear_field);
}
