// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Starting and ending NVML, the gate that the other entry points pass, errors and versions.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/config.h"
#include "driver/usage.h"
#include "driver/watch.h"
#include "nvml/gpu.h"

static struct nvmlDevice_st banks[2][SIM_MAX_DEVICES];
static struct nvmlDevice_st *gpus = banks[0];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int users;  // calls of nvmlInit less those of nvmlShutdown

static const struct {
    const char *name;
    int64_t initial;
} values[SIM_VALUES] = {
#define VALUE(name, text, initial) {text, initial},
#include "nvml/values.h"
#undef VALUE
};

// --- Values ---------------------------------------------------------------------------------------------------

static int find_value(const char *name, size_t length)
{
    for (int i = 0; i < SIM_VALUES; i++)
        if (strlen(values[i].name) == length && strncmp(values[i].name, name, length) == 0)
            return i;
    return -1;
}

// One setting of CUDA_SIM_SENSORS, "name=value" for every device or "index:name=value" for one.
static void apply(const char *setting)
{
    char *name;
    unsigned long index = strtoul(setting, &name, 10);
    bool one = name != setting && *name == ':';
    name = one ? name + 1 : (char *)setting;
    const char *equals = strchr(name, '=');
    int value = equals ? find_value(name, (size_t)(equals - name)) : -1;
    for (unsigned i = 0; i < SIM_MAX_DEVICES && value >= 0; i++)
        if (!one || i == index)
            atomic_store(&gpus[i].values[value], strtoll(equals + 1, NULL, 0));
}

static void make_gpus(void)
{
    for (unsigned i = 0; i < SIM_MAX_DEVICES; i++) {
        gpus[i].index = i;
        for (int value = 0; value < SIM_VALUES; value++)
            atomic_store(&gpus[i].values[value], values[value].initial);
    }
    for (const char *settings = sim_config()->sensors; settings && *settings;) {
        apply(settings);
        settings += strcspn(settings, ",");
        settings += *settings == ',';
    }
}

struct nvmlDevice_st *sim_gpu_at(unsigned index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_gpus);
    return &gpus[index];
}

unsigned sim_gpu_count(void) { return (unsigned)sim_config()->devices; }

// Control: the name of a value, NULL after the last.
SIM_EXPORT const char *cudaSimSensorName(unsigned value) { return value < SIM_VALUES ? values[value].name : NULL; }

// Returns 0 if there is no such device or value.
SIM_EXPORT int cudaSimSensorGet(unsigned device, const char *name, int64_t *to)
{
    int value = find_value(name, strlen(name));
    if (device >= sim_gpu_count() || value < 0)
        return 0;
    *to = sim_gpu_derived(sim_gpu_at(device), (enum sim_value)value);
    return 1;
}

SIM_EXPORT int cudaSimSensorSet(unsigned device, const char *name, int64_t to)
{
    int value = find_value(name, strlen(name));
    if (device >= sim_gpu_count() || value < 0)
        return 0;
    sim_gpu_set(sim_gpu_at(device), (enum sim_value)value, to);
    return 1;
}

SIM_EXPORT void cudaSimSensorsReset(void)
{
    sim_gpu_at(0);
    make_gpus();
}

// A child of fork() must initialise NVML again, and NVML refuses handles of the parent there: the devices move, with
// their values, to the other bank.
static void after_fork(void)
{
    atomic_store(&users, 0);
    struct nvmlDevice_st *before = gpus;
    gpus = banks[before == banks[0]];
    memcpy(gpus, before, sizeof banks[0]);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }

// --- The gate -------------------------------------------------------------------------------------------------

// As with drivers, calls of a process that is checkpointed wait until it is restored.
static void wait_until_restored(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (atomic_load(&sim_control->state) == CU_PROCESS_STATE_CHECKPOINTED)
        nanosleep(&pause, NULL);
}

nvmlReturn_t sim_nvml_enter(const char *function)
{
    wait_until_restored();
    if (SIM_UNLIKELY(sim_watching()))
        SIM_NVML_TRY((nvmlReturn_t)sim_watch_enter(function));
    return atomic_load(&users) > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

bool sim_gpu_valid(nvmlDevice_t device)
{
    uintptr_t offset = (uintptr_t)device - (uintptr_t)gpus;
    return offset % sizeof *gpus == 0 && offset / sizeof *gpus < sim_gpu_count();
}

nvmlReturn_t sim_nvml_enter_device(const char *function, nvmlDevice_t device)
{
    SIM_NVML_TRY(sim_nvml_enter(function));
    SIM_NVML_REQUIRE(sim_gpu_valid(device));
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvml_leave(const char *function, nvmlReturn_t status)
{
    return (nvmlReturn_t)sim_watch_leave(function, (CUresult)status);
}

nvmlReturn_t sim_nvml_value(const char *function, nvmlDevice_t device, void *out, enum sim_value value)
{
    nvmlReturn_t status = sim_nvml_enter_device(function, device);
    if (status == NVML_SUCCESS && !out)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *(unsigned *)out = (unsigned)sim_gpu_derived(device, value);
    return sim_nvml_leave(function, status);
}

nvmlReturn_t sim_nvml_constant(const char *function, nvmlDevice_t device, void *out, int constant)
{
    nvmlReturn_t status = sim_nvml_enter_device(function, device);
    if (status == NVML_SUCCESS && !out)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *(int *)out = constant;
    return sim_nvml_leave(function, status);
}

nvmlReturn_t sim_nvml_constant_text(const char *function, nvmlDevice_t device, char *out, unsigned length,
                                    const char *text)
{
    nvmlReturn_t status = sim_nvml_enter_device(function, device);
    return sim_nvml_leave(function, status == NVML_SUCCESS ? sim_nvml_text(out, length, text) : status);
}

nvmlReturn_t sim_nvml_text(char *out, unsigned length, const char *text)
{
    SIM_NVML_REQUIRE(out);
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvml_array(void *out, unsigned *count, const void *items, size_t number, size_t size)
{
    SIM_NVML_REQUIRE(count);
    unsigned capacity = *count;
    *count = (unsigned)number;
    if (capacity < number)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    SIM_NVML_REQUIRE(out || !number);
    if (number)
        memcpy(out, items, number * size);
    return NVML_SUCCESS;
}

// --- Life -----------------------------------------------------------------------------------------------------

static nvmlReturn_t start(const char *function, unsigned flags)
{
    wait_until_restored();
    nvmlReturn_t status = sim_watching() ? (nvmlReturn_t)sim_watch_enter(function) : NVML_SUCCESS;
    if (status == NVML_SUCCESS && flags & ~(unsigned)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH))
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS && sim_config()->problem[0])
        status = NVML_ERROR_UNKNOWN;
    if (status == NVML_SUCCESS) {
        sim_gpu_at(0);
        atomic_fetch_add(&users, 1);
    }
    return sim_nvml_leave(function, status);
}

SIM_EXPORT nvmlReturn_t nvmlInit(void) { return start("nvmlInit", 0); }
SIM_EXPORT nvmlReturn_t nvmlInit_v2(void) { return start("nvmlInit_v2", 0); }
SIM_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { return start("nvmlInitWithFlags", flags); }

SIM_NVML(nvmlShutdown, (void), ())
{
    pthread_mutex_lock(&lock);
    bool started = atomic_load(&users) > 0;
    if (started)
        atomic_fetch_sub(&users, 1);
    pthread_mutex_unlock(&lock);
    return started ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

// --- Errors ---------------------------------------------------------------------------------------------------

static const struct {
    int status;
    const char *name, *text;
} errors[] = {
#define ERROR(status, text) {status, #status, text},
    ERROR(NVML_SUCCESS, "Success") ERROR(NVML_ERROR_UNINITIALIZED, "Uninitialized") ERROR(NVML_ERROR_INVALID_ARGUMENT,
                                                                                          "Invalid Argument")
        ERROR(NVML_ERROR_NOT_SUPPORTED, "Not Supported") ERROR(NVML_ERROR_NO_PERMISSION, "Insufficient Permissions")
            ERROR(NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized") ERROR(NVML_ERROR_NOT_FOUND, "Not Found") ERROR(
                NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size") ERROR(NVML_ERROR_INSUFFICIENT_POWER,
                                                                         "Insufficient External Power")
                ERROR(NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded") ERROR(NVML_ERROR_TIMEOUT, "Timeout") ERROR(
                    NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue") ERROR(NVML_ERROR_LIBRARY_NOT_FOUND,
                                                                           "NVML Shared Library Not Found")
                    ERROR(NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found") ERROR(
                        NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM") ERROR(NVML_ERROR_GPU_IS_LOST, "GPU is lost")
                        ERROR(NVML_ERROR_RESET_REQUIRED, "GPU requires reset")
                            ERROR(NVML_ERROR_OPERATING_SYSTEM, "GPU access blocked by the operating system") ERROR(
                                NVML_ERROR_LIB_RM_VERSION_MISMATCH,
                                "Driver/library version mismatch") ERROR(NVML_ERROR_IN_USE, "In use by another client")
                                ERROR(NVML_ERROR_MEMORY, "Insufficient Memory") ERROR(NVML_ERROR_NO_DATA, "No data")
                                    ERROR(NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, "vGPU is not supported with ECC enabled")
                                        ERROR(NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient Resources")
                                            ERROR(NVML_ERROR_FREQ_NOT_SUPPORTED, "Frequency is not supported")
                                                ERROR(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch")
                                                    ERROR(NVML_ERROR_DEPRECATED, "Deprecated")
                                                        ERROR(NVML_ERROR_NOT_READY, "System is not ready")
                                                            ERROR(NVML_ERROR_GPU_NOT_FOUND, "GPU not found")
                                                                ERROR(NVML_ERROR_INVALID_STATE, "Invalid state")
                                                                    ERROR(NVML_ERROR_UNKNOWN, "Unknown Error")
#undef ERROR
};

// Needs no initialisation, and is neither traced nor made to fail: it has no status.
SIM_EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    for (size_t i = 0; i < SIM_COUNT(errors); i++)
        if (errors[i].status == (int)result)
            return errors[i].text;
    return "Unknown Error";
}

// Control: the number of an error, or -1.
SIM_EXPORT int cudaSimNvmlError(const char *name)
{
    for (size_t i = 0; i < SIM_COUNT(errors); i++)
        if (strcmp(errors[i].name, name) == 0)
            return errors[i].status;
    return -1;
}

// --- Versions -------------------------------------------------------------------------------------------------

enum { VERSION_BYTES = 32 };

// The branch of the driver that came with each version of CUDA.
static int branch_of(int cuda)
{
    static const struct {
        short cuda, branch;
    } branches[] = {{13030, 610}, {13020, 595}, {13010, 590}, {13000, 580}, {12090, 575}, {12080, 570}, {12060, 560},
                    {12050, 555}, {12040, 550}, {12030, 545}, {12020, 535}, {12010, 530}, {12000, 525}, {11080, 520}};
    for (size_t i = 0; i < SIM_COUNT(branches); i++)
        if (cuda >= branches[i].cuda)
            return branches[i].branch;
    return 470;
}

nvmlReturn_t sim_driver_release(char *release, unsigned length)
{
    char text[VERSION_BYTES];
    snprintf(text, sizeof text, "%d.00.00", branch_of(sim_config()->driver_version));
    return sim_nvml_text(release, length, text);
}

SIM_NVML(nvmlSystemGetDriverVersion, (char *version, unsigned int length), (version, length))
{
    return sim_driver_release(version, length);
}

SIM_NVML(nvmlSystemGetNVMLVersion, (char *version, unsigned int length), (version, length))
{
    int cuda = sim_config()->driver_version;
    char text[VERSION_BYTES];
    snprintf(text, sizeof text, "%d.%d.00.00", cuda / 1000, branch_of(cuda));
    return sim_nvml_text(version, length, text);
}

// These two may be asked before initialisation.
static nvmlReturn_t cuda_version(const char *function, int *version)
{
    nvmlReturn_t status = sim_watching() ? (nvmlReturn_t)sim_watch_enter(function) : NVML_SUCCESS;
    if (status == NVML_SUCCESS && !version)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *version = sim_config()->driver_version;
    return sim_nvml_leave(function, status);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion)
{
    return cuda_version("nvmlSystemGetCudaDriverVersion", cudaDriverVersion);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion)
{
    return cuda_version("nvmlSystemGetCudaDriverVersion_v2", cudaDriverVersion);
}

SIM_NVML(nvmlSystemGetDriverBranch, (nvmlSystemDriverBranchInfo_t *branchInfo, unsigned int length),
         (branchInfo, length))
{
    SIM_NVML_VERSION(branchInfo, nvmlSystemDriverBranchInfo_v1);
    unsigned capacity = length < sizeof branchInfo->branch ? length : sizeof branchInfo->branch;
    char text[VERSION_BYTES];
    snprintf(text, sizeof text, "r%d_00", branch_of(sim_config()->driver_version));
    return sim_nvml_text(branchInfo->branch, capacity, text);
}

SIM_NVML(nvmlSystemGetHicVersion, (unsigned int *hwbcCount, nvmlHwbcEntry_t *hwbcEntries), (hwbcCount, hwbcEntries))
{
    return sim_nvml_array(hwbcEntries, hwbcCount, NULL, 0, sizeof *hwbcEntries);
}

SIM_NVML(nvmlUnitGetCount, (unsigned int *unitCount), (unitCount))
{
    SIM_NVML_REQUIRE(unitCount);
    *unitCount = 0;
    return NVML_SUCCESS;
}

SIM_NVML(nvmlGetExcludedDeviceCount, (unsigned int *deviceCount), (deviceCount))
{
    SIM_NVML_REQUIRE(deviceCount);
    *deviceCount = 0;
    return NVML_SUCCESS;
}
