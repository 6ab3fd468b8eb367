// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Modules and their functions.

#include "code/module.h"

#include <stdlib.h>
#include <string.h>

#include "streams/capture.h"
#include "streams/stream.h"

// --- Life -----------------------------------------------------------------------------------------------------

// Takes the image, also when it fails.
CUresult sim_module_new(struct sim_context *context, struct sim_library *library, sim_ptx_module *image,
                        struct sim_module **out)
{
    struct sim_module *module = sim_object_new(SIM_MODULE);
    struct sim_function **functions = calloc(sim_ptx_entry_count(image) + 1, sizeof *functions);
    if (!module || !functions) {
        sim_ptx_unload(image);
        free(functions);
        if (module)
            sim_object_retire(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_object_hold(context);
    module->context = context;
    module->library = library;
    module->image = image;
    module->functions = functions;
    pthread_mutex_init(&module->lock, NULL);
    if (library)
        sim_object_hide(module);
    *out = module;
    return CUDA_SUCCESS;
}

void sim_module_retire(struct sim_module *module)
{
    pthread_mutex_lock(&module->lock);
    for (unsigned i = 0; i < sim_ptx_entry_count(module->image); i++) {
        struct sim_function *function = module->functions[i];
        module->functions[i] = NULL;
        if (function)
            sim_object_retire(function);
    }
    // Nodes of graphs may refer to the module still.
    if (sim_object_retire(module))
        sim_ptx_free_variables(module->image);
    pthread_mutex_unlock(&module->lock);
}

void sim_module_finalize(void *object)
{
    struct sim_module *module = object;
    if (!module->image)
        return;
    sim_ptx_unload(module->image);
    free(module->functions);
    pthread_mutex_destroy(&module->lock);
    sim_object_drop(module->context);
}

static void retire_module(void *object, void *context)
{
    struct sim_module *module = object;
    if (module->context == context)
        sim_module_retire(module);
}

void sim_modules_retire_of(struct sim_context *context) { sim_object_each(SIM_MODULE, retire_module, context); }

static CUresult find(CUmodule handle, struct sim_module **out)
{
    struct sim_module *module;
    if (sim_object_find(SIM_MODULE, handle, (void **)&module) != SIM_FOUND)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = sim_context_status(module->context);
    if (status != CUDA_SUCCESS) {
        sim_object_drop(module);
        return status;
    }
    *out = module;
    return CUDA_SUCCESS;
}

// --- Loading --------------------------------------------------------------------------------------------------

static CUresult load(CUmodule *out, const void *image, unsigned count, CUjit_option *options, void **values)
{
    SIM_REQUIRE(out && image);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_jit jit;
    SIM_TRY(sim_jit_read(&jit, count, options, values));
    const char *text;
    size_t length;
    SIM_TRY(sim_image_find(image, &jit, &text, &length));
    sim_ptx_module *loaded;
    SIM_TRY(sim_image_load(text, length, context, &jit, &loaded));
    struct sim_module *module;
    SIM_TRY(sim_module_new(context, NULL, loaded, &module));
    *out = (CUmodule)sim_object_handle(module);
    return CUDA_SUCCESS;
}

SIM_API(cuModuleLoadData, (CUmodule *module, const void *image), (module, image))
{
    return load(module, image, 0, NULL, NULL);
}

SIM_API(cuModuleLoadDataEx,
        (CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options, void **optionValues),
        (module, image, numOptions, options, optionValues))
{
    return load(module, image, numOptions, options, optionValues);
}

SIM_API(cuModuleLoadFatBinary, (CUmodule *module, const void *fatCubin), (module, fatCubin))
{
    return load(module, fatCubin, 0, NULL, NULL);
}

SIM_API(cuModuleLoad, (CUmodule *module, const char *fname), (module, fname))
{
    char *data;
    SIM_TRY(sim_image_read_file(fname, &data, NULL));
    CUresult status = load(module, data, 0, NULL, NULL);
    free(data);
    return status;
}

SIM_API(cuModuleUnload, (CUmodule hmod), (hmod))
{
    SIM_HELD struct sim_module *module = NULL;
    SIM_TRY(find(hmod, &module));
    if (module->library)
        return CUDA_ERROR_NOT_PERMITTED;
    SIM_TRY(sim_capture_check_unsafe());
    sim_context_drain(module->context);
    sim_module_retire(module);
    return CUDA_SUCCESS;
}

SIM_API(cuModuleGetLoadingMode, (CUmoduleLoadingMode *mode), (mode))
{
    SIM_REQUIRE(mode);
    const char *wish = getenv("CUDA_MODULE_LOADING");
    *mode = wish && strcmp(wish, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

// --- Functions ------------------------------------------------------------------------------------------------

CUresult sim_module_function(struct sim_module *module, const sim_ptx_entry *entry, struct sim_function **out)
{
    unsigned index = 0;
    while (sim_ptx_entry_at(module->image, index) != entry)
        index++;
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&module->lock);
    struct sim_function *function = module->functions[index];
    if (!function) {
        function = atomic_load(&module->base.live) ? sim_object_new(SIM_FUNCTION) : NULL;
        if (function) {
            sim_object_hide(function);
            sim_object_hold(module);
            function->module = module;
            function->entry = entry;
            function->kernel = module->library ? module->library->kernels[index] : NULL;
            if (function->kernel)
                sim_object_hold(function->kernel);
            sim_settings_init(&function->settings, entry);
            module->functions[index] = function;
        }
    }
    if (function)
        sim_object_hold(function);
    else
        status = CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&module->lock);
    *out = function;
    return status;
}

void sim_function_finalize(void *object)
{
    struct sim_function *function = object;
    sim_object_drop(function->kernel);
    sim_object_drop(function->module);
}

SIM_API(cuModuleGetFunction, (CUfunction *hfunc, CUmodule hmod, const char *name), (hfunc, hmod, name))
{
    SIM_REQUIRE(hfunc && name);
    SIM_HELD struct sim_module *module = NULL;
    SIM_TRY(find(hmod, &module));
    const sim_ptx_entry *entry = sim_ptx_entry_find(module->image, name);
    if (!entry)
        return CUDA_ERROR_NOT_FOUND;
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(sim_module_function(module, entry, &function));
    *hfunc = (CUfunction)sim_object_handle(function);
    return CUDA_SUCCESS;
}

SIM_API(cuModuleGetFunctionCount, (unsigned int *count, CUmodule mod), (count, mod))
{
    SIM_REQUIRE(count);
    SIM_HELD struct sim_module *module = NULL;
    SIM_TRY(find(mod, &module));
    *count = sim_ptx_entry_count(module->image);
    return CUDA_SUCCESS;
}

SIM_API(cuModuleEnumerateFunctions, (CUfunction *functions, unsigned int numFunctions, CUmodule mod),
        (functions, numFunctions, mod))
{
    SIM_REQUIRE(functions && numFunctions);
    SIM_HELD struct sim_module *module = NULL;
    SIM_TRY(find(mod, &module));
    for (unsigned i = 0; i < numFunctions && i < sim_ptx_entry_count(module->image); i++) {
        SIM_HELD struct sim_function *function = NULL;
        SIM_TRY(sim_module_function(module, sim_ptx_entry_at(module->image, i), &function));
        functions[i] = (CUfunction)sim_object_handle(function);
    }
    return CUDA_SUCCESS;
}

SIM_API(cuModuleGetGlobal_v2, (CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name),
        (dptr, bytes, hmod, name))
{
    SIM_REQUIRE((dptr || bytes) && name);
    SIM_HELD struct sim_module *module = NULL;
    SIM_TRY(find(hmod, &module));
    const sim_ptx_global *global = sim_ptx_global_find(module->image, name);
    if (!global)
        return CUDA_ERROR_NOT_FOUND;
    if (dptr)
        *dptr = global->address;
    if (bytes)
        *bytes = global->size;
    return CUDA_SUCCESS;
}
