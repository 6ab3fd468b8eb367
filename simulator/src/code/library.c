// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Libraries and their kernels.

#include <stdlib.h>
#include <string.h>

#include "driver/device.h"
#include "driver/report.h"
#include "code/module.h"
#include "streams/stream.h"

// --- Life -----------------------------------------------------------------------------------------------------

CUresult sim_library_find(CUlibrary handle, struct sim_library **library)
{
    return sim_object_find(SIM_LIBRARY, handle, (void **)library) == SIM_FOUND ? CUDA_SUCCESS
                                                                               : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_kernel_find(CUkernel handle, struct sim_kernel **kernel)
{
    return sim_object_find(SIM_KERNEL, handle, (void **)kernel) == SIM_FOUND ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult make_kernels(struct sim_library *library)
{
    unsigned count = sim_ptx_entry_count(library->image);
    library->kernels = calloc(count + 1, sizeof *library->kernels);
    for (unsigned i = 0; i < count && library->kernels; i++) {
        struct sim_kernel *kernel = sim_object_new(SIM_KERNEL);
        if (!kernel)
            return CUDA_ERROR_OUT_OF_MEMORY;
        sim_object_hide(kernel);
        sim_object_hold(library);
        kernel->library = library;
        kernel->entry = sim_ptx_entry_at(library->image, i);
        pthread_mutex_init(&kernel->lock, NULL);
        for (int device = 0; device < SIM_MAX_DEVICES; device++)
            sim_settings_init(&kernel->settings[device], kernel->entry);
        library->kernels[i] = kernel;
    }
    return library->kernels ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void retire(struct sim_library *library)
{
    SIM_HELD SIM_UNUSED struct sim_library *held = library;
    sim_object_hold(library);
    if (!sim_object_retire(library))
        return;
    pthread_mutex_lock(&library->lock);
    struct loaded *loaded = library->loaded;
    size_t count = library->loaded_count;
    library->loaded = NULL;
    library->loaded_count = 0;
    pthread_mutex_unlock(&library->lock);
    for (size_t i = 0; i < count; i++) {
        sim_context_drain(loaded[i].module->context);
        sim_module_retire(loaded[i].module);
        sim_object_drop(loaded[i].module);
    }
    free(loaded);
    for (struct sim_kernel **kernel = library->kernels; kernel && *kernel; kernel++)
        sim_object_retire(*kernel);
}

static void forget_context(void *object, void *context)
{
    struct sim_library *library = object;
    struct sim_module *module = NULL;
    pthread_mutex_lock(&library->lock);
    for (size_t i = 0; i < library->loaded_count && !module; i++)
        if (library->loaded[i].module->context == context) {
            module = library->loaded[i].module;
            library->loaded[i] = library->loaded[--library->loaded_count];
        }
    pthread_mutex_unlock(&library->lock);
    sim_object_drop(module);
}

void sim_libraries_forget(struct sim_context *context) { sim_object_each(SIM_LIBRARY, forget_context, context); }

void sim_library_finalize(void *object)
{
    struct sim_library *library = object;
    if (library->image)
        sim_ptx_unload(library->image);
    free(library->kernels);
    free(library->text);
    pthread_mutex_destroy(&library->lock);
}

void sim_kernel_finalize(void *object)
{
    struct sim_kernel *kernel = object;
    pthread_mutex_destroy(&kernel->lock);
    sim_object_drop(kernel->library);
}

// --- Loading --------------------------------------------------------------------------------------------------

static CUresult load(CUlibrary *out, const void *code, unsigned jit_count, CUjit_option *jit_options, void **jit_values,
                     unsigned option_count, const CUlibraryOption *options)
{
    SIM_REQUIRE(out && code && (!option_count || options));
    for (unsigned i = 0; i < option_count; i++)
        SIM_REQUIRE((unsigned)options[i] < CU_LIBRARY_NUM_OPTIONS);
    struct sim_jit jit;
    SIM_TRY(sim_jit_read(&jit, jit_count, jit_options, jit_values));
    const char *text = NULL;
    size_t length = 0;
    CUresult kind = sim_image_find(code, &jit, &text, &length);
    // Code for a real GPU is refused at once: it is good code, only nothing here can run it.
    if (kind == CUDA_ERROR_NO_BINARY_FOR_GPU)
        return kind;
    struct sim_library *library = sim_object_new(SIM_LIBRARY);
    if (!library)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_init(&library->lock, NULL);
    library->status = kind;
    library->text = malloc(length + 1);
    if (library->text && kind == CUDA_SUCCESS) {
        memcpy(library->text, text, length);
        library->text[length] = '\0';
        library->length = length;
        library->status = sim_image_load(library->text, length, NULL, &jit, &library->image);
    }
    CUresult status = library->text ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (status == CUDA_SUCCESS && library->status == CUDA_SUCCESS)
        status = make_kernels(library);
    else
        library->image = NULL;
    // As on hardware, loading is lazy: what is wrong with the image is told by the first call that needs it.
    CUmoduleLoadingMode mode = CU_MODULE_LAZY_LOADING;
    const char *wish = getenv("CUDA_MODULE_LOADING");
    if (wish && strcmp(wish, "EAGER") == 0)
        mode = CU_MODULE_EAGER_LOADING;
    if (status == CUDA_SUCCESS && mode == CU_MODULE_EAGER_LOADING)
        status = library->status;
    if (status != CUDA_SUCCESS) {
        retire(library);
        return status;
    }
    *out = (CUlibrary)sim_object_handle(library);
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryLoadData,
        (CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
         unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
         unsigned int numLibraryOptions),
        (library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions, libraryOptionValues,
         numLibraryOptions))
{
    (void)libraryOptionValues;
    return load(library, code, numJitOptions, jitOptions, jitOptionsValues, numLibraryOptions, libraryOptions);
}

SIM_API(cuLibraryLoadFromFile,
        (CUlibrary *library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
         unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
         unsigned int numLibraryOptions),
        (library, fileName, jitOptions, jitOptionsValues, numJitOptions, libraryOptions, libraryOptionValues,
         numLibraryOptions))
{
    (void)libraryOptionValues;
    char *data;
    SIM_TRY(sim_image_read_file(fileName, &data, NULL));
    CUresult status =
        load(library, data, numJitOptions, jitOptions, jitOptionsValues, numLibraryOptions, libraryOptions);
    free(data);
    return status;
}

SIM_API(cuLibraryUnload, (CUlibrary library), (library))
{
    SIM_HELD struct sim_library *found = NULL;
    enum sim_lookup lookup = sim_object_find(SIM_LIBRARY, library, (void **)&found);
    if (lookup == SIM_STALE)  // driver 580 crashes
        sim_report("double unload", "cuLibraryUnload", (uintptr_t)library, 0, NULL,
                   "library 0x%llx has been unloaded before", (unsigned long long)(uintptr_t)library);
    if (lookup != SIM_FOUND)
        return CUDA_ERROR_INVALID_HANDLE;
    retire(found);
    return CUDA_SUCCESS;
}

// A library whose image can be used.
static CUresult find_good(CUlibrary handle, struct sim_library **out)
{
    SIM_HELD struct sim_library *library = NULL;
    SIM_TRY(sim_library_find(handle, &library));
    SIM_TRY(library->status);
    sim_object_hold(library);
    *out = library;
    return CUDA_SUCCESS;
}

CUresult sim_library_module(struct sim_library *library, struct sim_context *context, struct sim_module **out)
{
    SIM_TRY(library->status);
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&library->lock);
    struct sim_module *module = NULL;
    for (size_t i = 0; i < library->loaded_count && !module; i++)
        if (library->loaded[i].context_id == context->id)
            module = library->loaded[i].module;
    if (!module) {
        sim_ptx_module *image;
        struct loaded *grown = realloc(library->loaded, (library->loaded_count + 1) * sizeof *grown);
        if (grown)
            library->loaded = grown;
        status =
            grown ? sim_image_load(library->text, library->length, context, NULL, &image) : CUDA_ERROR_OUT_OF_MEMORY;
        if (status == CUDA_SUCCESS)
            status = sim_module_new(context, library, image, &module);
        if (status == CUDA_SUCCESS) {
            sim_object_hold(module);
            library->loaded[library->loaded_count++] = (struct loaded){context->id, module};
        }
    }
    if (status == CUDA_SUCCESS)
        sim_object_hold(module);
    pthread_mutex_unlock(&library->lock);
    *out = module;
    return status;
}

static CUresult module_here(CUlibrary handle, struct sim_module **module)
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_library *library = NULL;
    SIM_TRY(find_good(handle, &library));
    return sim_library_module(library, context, module);
}

SIM_API(cuLibraryGetModule, (CUmodule *pMod, CUlibrary library), (pMod, library))
{
    SIM_REQUIRE(pMod);
    SIM_HELD struct sim_module *module = NULL;
    SIM_TRY(module_here(library, &module));
    *pMod = (CUmodule)sim_object_handle(module);
    return CUDA_SUCCESS;
}

// --- What a library holds -------------------------------------------------------------------------------------

SIM_API(cuLibraryGetKernelCount, (unsigned int *count, CUlibrary lib), (count, lib))
{
    SIM_REQUIRE(count);
    SIM_HELD struct sim_library *library = NULL;
    SIM_TRY(sim_library_find(lib, &library));
    *count = library->image ? sim_ptx_entry_count(library->image) : 0;
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryEnumerateKernels, (CUkernel *kernels, unsigned int numKernels, CUlibrary lib),
        (kernels, numKernels, lib))
{
    SIM_REQUIRE(kernels && numKernels);
    SIM_HELD struct sim_library *library = NULL;
    SIM_TRY(find_good(lib, &library));
    for (unsigned i = 0; i < numKernels && library->kernels[i]; i++)
        kernels[i] = (CUkernel)sim_object_handle(library->kernels[i]);
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetKernel, (CUkernel *pKernel, CUlibrary library, const char *name), (pKernel, library, name))
{
    SIM_REQUIRE(pKernel && name);
    SIM_HELD struct sim_library *found = NULL;
    SIM_TRY(find_good(library, &found));
    for (struct sim_kernel **kernel = found->kernels; *kernel; kernel++)
        if (strcmp((*kernel)->entry->name, name) == 0) {
            *pKernel = (CUkernel)sim_object_handle(*kernel);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

// That a library has no such managed variable is told without a current context too.
static CUresult find_managed(CUlibrary handle, const char *name)
{
    SIM_HELD struct sim_library *library = NULL;
    SIM_TRY(find_good(handle, &library));
    const sim_ptx_global *global = sim_ptx_global_find(library->image, name);
    if (global)
        return global->is_managed ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    return sim_ptx_entry_find(library->image, name) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

static CUresult variable(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name, bool managed_only)
{
    SIM_REQUIRE((dptr || bytes) && name);
    SIM_HELD struct sim_module *module = NULL;
    if (managed_only)
        SIM_TRY(find_managed(library, name));
    SIM_TRY(module_here(library, &module));
    const sim_ptx_global *global = sim_ptx_global_find(module->image, name);
    if (!global && sim_ptx_entry_find(module->image, name))
        return CUDA_ERROR_INVALID_VALUE;  // of a kernel, as hardware says it
    if (!global)
        return CUDA_ERROR_NOT_FOUND;
    if (dptr)
        *dptr = global->address;
    if (bytes)
        *bytes = global->size;
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetGlobal, (CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name),
        (dptr, bytes, library, name))
{
    return variable(dptr, bytes, library, name, false);
}

SIM_API(cuLibraryGetManaged, (CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name),
        (dptr, bytes, library, name))
{
    return variable(dptr, bytes, library, name, true);
}

// --- Kernels --------------------------------------------------------------------------------------------------

SIM_API(cuKernelGetFunction, (CUfunction *pFunc, CUkernel kernel), (pFunc, kernel))
{
    SIM_REQUIRE(pFunc);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_kernel *found = NULL;
    SIM_TRY(sim_kernel_find(kernel, &found));
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(sim_function_find((CUfunction)kernel, context, &function));
    *pFunc = (CUfunction)sim_object_handle(function);
    return CUDA_SUCCESS;
}

SIM_API(cuKernelGetLibrary, (CUlibrary *pLib, CUkernel kernel), (pLib, kernel))
{
    SIM_REQUIRE(pLib);
    SIM_HELD struct sim_kernel *found = NULL;
    SIM_TRY(sim_kernel_find(kernel, &found));
    *pLib = (CUlibrary)sim_object_handle(found->library);
    return CUDA_SUCCESS;
}

SIM_API(cuKernelGetName, (const char **name, CUkernel hfunc), (name, hfunc))
{
    SIM_REQUIRE(name);
    SIM_HELD struct sim_kernel *found = NULL;
    SIM_TRY(sim_kernel_find(hfunc, &found));
    *name = found->entry->name;
    return CUDA_SUCCESS;
}
