// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Temperature, power and fans.

#include <string.h>
#include <time.h>

#include "driver/config.h"
#include "nvml/gpu.h"

enum { SHUTDOWN = 92, SLOWDOWN = 89, MEMORY_MAXIMUM = 95, GPU_MAXIMUM = 87 };
enum { FAN_MINIMUM = 30, FAN_MAXIMUM = 100, FAN_RPM = 5000 };

// --- Values that follow from others ---------------------------------------------------------------------------

unsigned long long sim_gpu_energy(nvmlDevice_t device)
{
    int64_t set = sim_gpu_value(device, SIM_ENERGY);
    if (set != SIM_DERIVED)
        return (unsigned long long)set;
    struct timespec up;
    clock_gettime(CLOCK_BOOTTIME, &up);
    unsigned long long milliseconds = (unsigned long long)up.tv_sec * 1000 + (unsigned long long)up.tv_nsec / 1000000;
    return milliseconds * (unsigned long long)sim_gpu_value(device, SIM_POWER) / 1000;
}

int64_t sim_gpu_derived(nvmlDevice_t device, enum sim_value value)
{
    unsigned gpu, memory;
    int64_t now = sim_gpu_value(device, value);
    if (now != SIM_DERIVED)
        return now;
    switch (value) {
    case SIM_ENERGY: return (int64_t)sim_gpu_energy(device);
    case SIM_GRAPHICS_CLOCK_TARGET: return sim_gpu_max_clock(NVML_CLOCK_GRAPHICS);
    case SIM_MEMORY_CLOCK:
    case SIM_MEMORY_CLOCK_TARGET: return sim_gpu_max_clock(NVML_CLOCK_MEM);
    case SIM_GPU_UTILIZATION: sim_gpu_utilization(device, &gpu, &memory); return gpu;
    case SIM_MEMORY_UTILIZATION: sim_gpu_utilization(device, &gpu, &memory); return memory;
    default: return now;
    }
}

// --- Temperature ----------------------------------------------------------------------------------------------

unsigned sim_gpu_threshold(nvmlTemperatureThresholds_t threshold)
{
    switch ((int)threshold) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: return SHUTDOWN;
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: return SLOWDOWN;
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX: return MEMORY_MAXIMUM;
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX: return GPU_MAXIMUM;
    default: return 0;
    }
}

SIM_NVML_DEVICE(nvmlDeviceGetTemperature,
                (nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp),
                (device, sensorType, temp))
{
    SIM_NVML_REQUIRE(temp && sensorType == NVML_TEMPERATURE_GPU);
    *temp = (unsigned)sim_gpu_value(device, SIM_TEMPERATURE);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetTemperatureV, (nvmlDevice_t device, nvmlTemperature_t *temperature), (device, temperature))
{
    SIM_NVML_VERSION(temperature, nvmlTemperature_v1);
    SIM_NVML_REQUIRE(temperature->sensorType == NVML_TEMPERATURE_GPU);
    temperature->temperature = (int)sim_gpu_value(device, SIM_TEMPERATURE);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetTemperatureThreshold,
                (nvmlDevice_t device, nvmlTemperatureThresholds_t thresholdType, unsigned int *temp),
                (device, thresholdType, temp))
{
    SIM_NVML_REQUIRE(temp && (unsigned)thresholdType < NVML_TEMPERATURE_THRESHOLD_COUNT);
    SIM_NVML_SUPPORTED(sim_gpu_threshold(thresholdType));
    *temp = sim_gpu_threshold(thresholdType);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetMarginTemperature, (nvmlDevice_t device, nvmlMarginTemperature_t *marginTempInfo),
                (device, marginTempInfo))
{
    SIM_NVML_VERSION(marginTempInfo, nvmlMarginTemperature_v1);
    marginTempInfo->marginTemperature = GPU_MAXIMUM - (int)sim_gpu_value(device, SIM_TEMPERATURE);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetThermalSettings,
                (nvmlDevice_t device, unsigned int sensorIndex, nvmlGpuThermalSettings_t *pThermalSettings),
                (device, sensorIndex, pThermalSettings))
{
    // As an H100 does: there is one sensor, which all of them is too; another one is in its own place, without
    // temperatures; what is not told stays as it was.
    SIM_NVML_REQUIRE(pThermalSettings);
    unsigned index = sensorIndex == NVML_THERMAL_TARGET_ALL ? 0 : sensorIndex;
    pThermalSettings->count = 1;
    if (index >= NVML_MAX_THERMAL_SENSORS_PER_GPU)
        return NVML_SUCCESS;
    pThermalSettings->sensor[index].controller = NVML_THERMAL_CONTROLLER_GPU_INTERNAL;
    pThermalSettings->sensor[index].defaultMinTemp = 0;
    pThermalSettings->sensor[index].defaultMaxTemp = index ? 0 : GPU_MAXIMUM;
    pThermalSettings->sensor[index].currentTemp = index ? 0 : (int)sim_gpu_value(device, SIM_TEMPERATURE);
    pThermalSettings->sensor[index].target = NVML_THERMAL_TARGET_GPU;
    return NVML_SUCCESS;
}

// --- Power ----------------------------------------------------------------------------------------------------

SIM_NVML_VALUE(nvmlDeviceGetPowerUsage, unsigned int, SIM_POWER)
SIM_NVML_VALUE(nvmlDeviceGetPowerManagementLimit, unsigned int, SIM_POWER_LIMIT)
SIM_NVML_VALUE(nvmlDeviceGetEnforcedPowerLimit, unsigned int, SIM_POWER_LIMIT)
SIM_NVML_CONSTANT(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, SIM_POWER_DEFAULT)
SIM_NVML_CONSTANT(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
SIM_NVML_CONSTANT(nvmlDeviceGetPowerSource, nvmlPowerSource_t, NVML_POWER_SOURCE_AC)

SIM_NVML_DEVICE(nvmlDeviceGetPowerManagementLimitConstraints,
                (nvmlDevice_t device, unsigned int *minLimit, unsigned int *maxLimit), (device, minLimit, maxLimit))
{
    SIM_NVML_REQUIRE(minLimit && maxLimit);
    *minLimit = SIM_POWER_MINIMUM;
    *maxLimit = SIM_POWER_DEFAULT;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetTotalEnergyConsumption, (nvmlDevice_t device, unsigned long long *energy),
                (device, energy))
{
    SIM_NVML_REQUIRE(energy);
    *energy = sim_gpu_energy(device);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceSetPowerManagementLimit, (nvmlDevice_t device, unsigned int limit), (device, limit))
{
    SIM_NVML_REQUIRE(limit >= SIM_POWER_MINIMUM && limit <= SIM_POWER_DEFAULT);
    return sim_gpu_set(device, SIM_POWER_LIMIT, limit);
}

SIM_NVML_DEVICE(nvmlDeviceSetPowerManagementLimit_v2, (nvmlDevice_t device, nvmlPowerValue_v2_t *powerValue),
                (device, powerValue))
{
    SIM_NVML_VERSION(powerValue, nvmlPowerValue_v2);
    SIM_NVML_SUPPORTED(powerValue->powerScope == NVML_POWER_SCOPE_GPU);
    return nvmlDeviceSetPowerManagementLimit_body(device, powerValue->powerValueMw);
}

// --- Fans -----------------------------------------------------------------------------------------------------

SIM_NVML_CONSTANT(nvmlDeviceGetNumFans, unsigned int, sim_config()->fans)

static nvmlReturn_t check_fan(unsigned fan)
{
    SIM_NVML_SUPPORTED(sim_config()->fans);
    SIM_NVML_REQUIRE((int)fan < sim_config()->fans);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetFanSpeed_v2, (nvmlDevice_t device, unsigned int fan, unsigned int *speed),
                (device, fan, speed))
{
    SIM_NVML_REQUIRE(speed);
    SIM_NVML_TRY(check_fan(fan));
    *speed = (unsigned)sim_gpu_value(device, SIM_FAN_SPEED);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetFanSpeed, (nvmlDevice_t device, unsigned int *speed), (device, speed))
{
    return nvmlDeviceGetFanSpeed_v2_body(device, 0, speed);
}

SIM_NVML_DEVICE(nvmlDeviceGetTargetFanSpeed, (nvmlDevice_t device, unsigned int fan, unsigned int *targetSpeed),
                (device, fan, targetSpeed))
{
    return nvmlDeviceGetFanSpeed_v2_body(device, fan, targetSpeed);
}

SIM_NVML_DEVICE(nvmlDeviceGetFanSpeedRPM, (nvmlDevice_t device, nvmlFanSpeedInfo_t *fanSpeed), (device, fanSpeed))
{
    SIM_NVML_VERSION(fanSpeed, nvmlFanSpeedInfo_v1);
    SIM_NVML_TRY(check_fan(fanSpeed->fan));
    fanSpeed->speed = (unsigned)sim_gpu_value(device, SIM_FAN_SPEED) * FAN_RPM / SIM_PERCENT;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetMinMaxFanSpeed, (nvmlDevice_t device, unsigned int *minSpeed, unsigned int *maxSpeed),
                (device, minSpeed, maxSpeed))
{
    SIM_NVML_REQUIRE(minSpeed && maxSpeed);
    SIM_NVML_SUPPORTED(sim_config()->fans);
    *minSpeed = FAN_MINIMUM;
    *maxSpeed = FAN_MAXIMUM;
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceGetFanControlPolicy_v2,
                (nvmlDevice_t device, unsigned int fan, nvmlFanControlPolicy_t *policy), (device, fan, policy))
{
    SIM_NVML_REQUIRE(policy);
    SIM_NVML_TRY(check_fan(fan));
    *policy = (unsigned)sim_gpu_value(device, SIM_FAN_POLICY);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceSetFanControlPolicy, (nvmlDevice_t device, unsigned int fan, nvmlFanControlPolicy_t policy),
                (device, fan, policy))
{
    SIM_NVML_TRY(check_fan(fan));
    SIM_NVML_REQUIRE(policy <= NVML_FAN_POLICY_MANUAL);
    return sim_gpu_set(device, SIM_FAN_POLICY, policy);
}

SIM_NVML_DEVICE(nvmlDeviceSetFanSpeed_v2, (nvmlDevice_t device, unsigned int fan, unsigned int speed),
                (device, fan, speed))
{
    SIM_NVML_TRY(check_fan(fan));
    SIM_NVML_REQUIRE(speed <= FAN_MAXIMUM);
    sim_gpu_set(device, SIM_FAN_POLICY, NVML_FAN_POLICY_MANUAL);
    return sim_gpu_set(device, SIM_FAN_SPEED, speed);
}

SIM_NVML_DEVICE(nvmlDeviceSetDefaultFanSpeed_v2, (nvmlDevice_t device, unsigned int fan), (device, fan))
{
    SIM_NVML_TRY(check_fan(fan));
    sim_gpu_set(device, SIM_FAN_POLICY, NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW);
    return sim_gpu_set(device, SIM_FAN_SPEED, FAN_MINIMUM);
}

SIM_NVML_DEVICE(nvmlDeviceGetCoolerInfo, (nvmlDevice_t device, nvmlCoolerInfo_t *coolerInfo), (device, coolerInfo))
{
    SIM_NVML_VERSION(coolerInfo, nvmlCoolerInfo_v1);
    SIM_NVML_TRY(check_fan(coolerInfo->index));
    coolerInfo->signalType = NVML_THERMAL_COOLER_SIGNAL_VARIABLE;
    coolerInfo->target = NVML_THERMAL_COOLER_TARGET_GPU_RELATED;
    return NVML_SUCCESS;
}
