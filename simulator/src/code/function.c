// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What can be asked and set about functions and kernels.

#include <string.h>

#include "driver/device.h"
#include "code/module.h"

enum { DEFAULT_SHARED = 48 << 10 };

void sim_settings_init(struct sim_settings *settings, const sim_ptx_entry *entry)
{
    *settings = (struct sim_settings){
        .max_dynamic_shared = entry->shared_bytes < DEFAULT_SHARED ? DEFAULT_SHARED - (int)entry->shared_bytes : 0,
        .carveout = -1,
        .cluster = {(int)entry->cluster[0], (int)entry->cluster[1], (int)entry->cluster[2]},
    };
}

CUresult sim_function_find(CUfunction handle, struct sim_context *context, struct sim_function **out)
{
    struct sim_function *function;
    if (sim_object_find(SIM_FUNCTION, handle, (void **)&function) == SIM_FOUND) {
        CUresult status = sim_context_status(function->module->context);
        if (status != CUDA_SUCCESS) {
            sim_object_drop(function);
            return status;
        }
        *out = function;
        return CUDA_SUCCESS;
    }
    SIM_HELD struct sim_kernel *kernel = NULL;
    SIM_TRY(sim_kernel_find((CUkernel)handle, &kernel));
    if (!context)
        SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_module *module = NULL;
    SIM_TRY(sim_library_module(kernel->library, context, &module));
    return sim_module_function(module, sim_ptx_entry_find(module->image, kernel->entry->name), out);
}

// Launches take a kernel in the place of a function; what is asked and set here is that of functions only.
static CUresult find_function(CUfunction handle, struct sim_function **function)
{
    SIM_HELD struct sim_kernel *kernel = NULL;
    if (sim_kernel_find((CUkernel)handle, &kernel) == CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_function_find(handle, NULL, function);
}

// Where the settings are and what guards them.
static struct sim_settings *settings_of(struct sim_function *function, pthread_mutex_t **lock)
{
    *lock = function->kernel ? &function->kernel->lock : &function->module->lock;
    return function->kernel ? &function->kernel->settings[function->module->context->device] : &function->settings;
}

struct sim_settings sim_function_settings(struct sim_function *function)
{
    pthread_mutex_t *lock;
    struct sim_settings *settings = settings_of(function, &lock);
    pthread_mutex_lock(lock);
    struct sim_settings copy = *settings;
    pthread_mutex_unlock(lock);
    return copy;
}

int sim_device_value(CUdevice_attribute attribute)
{
    int value = 0;
    (void)sim_device_attribute(0, attribute, &value);
    return value;
}

// --- Attributes -----------------------------------------------------------------------------------------------

static CUresult read_attribute(int *value, CUfunction_attribute attribute, const sim_ptx_entry *entry,
                               const struct sim_settings *settings)
{
    uint32_t bound =
        entry->maxntid[0] * (entry->maxntid[1] ? entry->maxntid[1] : 1) * (entry->maxntid[2] ? entry->maxntid[2] : 1);
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = bound ? (int)bound : sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)entry->shared_bytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)entry->const_bytes; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)entry->local_bytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)entry->registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = (int)entry->target_sm; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 10 * sim_config()->major + sim_config()->minor; break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = settings->max_dynamic_shared; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = settings->carveout; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = entry->explicit_cluster && !entry->cluster[0]; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = settings->cluster[0]; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = settings->cluster[1]; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = settings->cluster[2]; break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = settings->non_portable; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = settings->cluster_policy; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult write_attribute(struct sim_settings *settings, CUfunction_attribute attribute, int value,
                                const sim_ptx_entry *entry)
{
    int most = sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - (int)entry->shared_bytes;
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        SIM_REQUIRE(value >= 0 && value <= most);
        settings->max_dynamic_shared = value;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        SIM_REQUIRE(value >= -1 && value <= 100);
        settings->carveout = value;
        break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        // Dimensions that the code was compiled for stay.
        SIM_REQUIRE(value >= 0 && !entry->cluster[0]);
        settings->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: settings->non_portable = value != 0; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        SIM_REQUIRE(value >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT &&
                    value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
        settings->cluster_policy = value;
        break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuFuncGetAttribute, (int *pi, CUfunction_attribute attrib, CUfunction hfunc), (pi, attrib, hfunc))
{
    SIM_REQUIRE(pi);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_function(hfunc, &function));
    struct sim_settings settings = sim_function_settings(function);
    return read_attribute(pi, attrib, function->entry, &settings);
}

SIM_API(cuFuncSetAttribute, (CUfunction hfunc, CUfunction_attribute attrib, int value), (hfunc, attrib, value))
{
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_function(hfunc, &function));
    pthread_mutex_t *lock;
    struct sim_settings *settings = settings_of(function, &lock);
    pthread_mutex_lock(lock);
    CUresult status = write_attribute(settings, attrib, value, function->entry);
    pthread_mutex_unlock(lock);
    return status;
}

SIM_API(cuKernelGetAttribute, (int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev),
        (pi, attrib, kernel, dev))
{
    SIM_REQUIRE(pi);
    SIM_HELD struct sim_kernel *found = NULL;
    SIM_TRY(sim_kernel_find(kernel, &found));
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    pthread_mutex_lock(&found->lock);
    CUresult status = read_attribute(pi, attrib, found->entry, &found->settings[dev]);
    pthread_mutex_unlock(&found->lock);
    return status;
}

SIM_API(cuKernelSetAttribute, (CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev),
        (attrib, val, kernel, dev))
{
    SIM_HELD struct sim_kernel *found = NULL;
    SIM_TRY(sim_kernel_find(kernel, &found));
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    pthread_mutex_lock(&found->lock);
    CUresult status = write_attribute(&found->settings[dev], attrib, val, found->entry);
    pthread_mutex_unlock(&found->lock);
    return status;
}

SIM_API(cuFuncSetCacheConfig, (CUfunction hfunc, CUfunc_cache config), (hfunc, config))
{
    SIM_REQUIRE(config <= CU_FUNC_CACHE_PREFER_EQUAL);
    SIM_HELD struct sim_function *function = NULL;
    return sim_function_find(hfunc, NULL, &function);
}

SIM_API(cuFuncSetSharedMemConfig, (CUfunction hfunc, CUsharedconfig config), (hfunc, config))
{
    SIM_REQUIRE(config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    SIM_HELD struct sim_function *function = NULL;
    return sim_function_find(hfunc, NULL, &function);
}

SIM_API(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice dev), (kernel, config, dev))
{
    SIM_REQUIRE(config <= CU_FUNC_CACHE_PREFER_EQUAL);
    SIM_HELD struct sim_kernel *found = NULL;
    SIM_TRY(sim_kernel_find(kernel, &found));
    struct sim_device *device;
    return sim_device_find(dev, &device);
}

// --- Identity -------------------------------------------------------------------------------------------------

SIM_API(cuFuncGetName, (const char **name, CUfunction hfunc), (name, hfunc))
{
    SIM_REQUIRE(name);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_function(hfunc, &function));
    *name = function->entry->name;
    return CUDA_SUCCESS;
}

SIM_API(cuFuncGetModule, (CUmodule *hmod, CUfunction hfunc), (hmod, hfunc))
{
    SIM_REQUIRE(hmod);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(sim_function_find(hfunc, NULL, &function));
    *hmod = (CUmodule)sim_object_handle(function->module);
    return CUDA_SUCCESS;
}

SIM_API(cuFuncIsLoaded, (CUfunctionLoadingState *state, CUfunction function), (state, function))
{
    SIM_REQUIRE(state);
    SIM_HELD struct sim_function *found = NULL;
    SIM_TRY(sim_function_find(function, NULL, &found));
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

SIM_API(cuFuncLoad, (CUfunction function), (function))
{
    SIM_HELD struct sim_function *found = NULL;
    return sim_function_find(function, NULL, &found);
}

// --- Parameters -----------------------------------------------------------------------------------------------

static CUresult param_info(const sim_ptx_entry *entry, size_t index, size_t *offset, size_t *size)
{
    SIM_REQUIRE(offset && index < entry->param_count);
    *offset = entry->params[index].offset;
    if (size)
        *size = entry->params[index].size;
    return CUDA_SUCCESS;
}

SIM_API(cuFuncGetParamInfo, (CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize),
        (func, paramIndex, paramOffset, paramSize))
{
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_function(func, &function));
    return param_info(function->entry, paramIndex, paramOffset, paramSize);
}

SIM_API(cuFuncGetParamCount, (CUfunction func, size_t *paramCount), (func, paramCount))
{
    SIM_REQUIRE(paramCount);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_function(func, &function));
    *paramCount = function->entry->param_count;
    return CUDA_SUCCESS;
}

SIM_API(cuKernelGetParamInfo, (CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize),
        (kernel, paramIndex, paramOffset, paramSize))
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_kernel *found = NULL;
    SIM_TRY(sim_kernel_find(kernel, &found));
    return param_info(found->entry, paramIndex, paramOffset, paramSize);
}

SIM_API(cuKernelGetParamCount, (CUkernel kernel, size_t *paramCount), (kernel, paramCount))
{
    SIM_REQUIRE(paramCount);
    SIM_HELD struct sim_kernel *found = NULL;
    SIM_TRY(sim_kernel_find(kernel, &found));
    *paramCount = found->entry->param_count;
    return CUDA_SUCCESS;
}
