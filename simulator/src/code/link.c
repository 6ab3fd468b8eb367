// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The linker of PTX texts. What goes in is read when it is added; what comes out is an image of all of them, which is
// resolved when it is loaded, as it is here once to see whether it can be.

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/context.h"
#include "code/module.h"
#include "driver/report.h"

enum { LOG = 1024 };

static const char *const formats[CU_JIT_NUM_INPUT_TYPES] = {
    [CU_JIT_INPUT_CUBIN] = "a cubin",      [CU_JIT_INPUT_PTX] = "PTX",
    [CU_JIT_INPUT_FATBINARY] = "a fatbin", [CU_JIT_INPUT_OBJECT] = "an object file",
    [CU_JIT_INPUT_LIBRARY] = "a library",  [CU_JIT_INPUT_NVVM] = "LTO IR",
};

static CUresult find(CUlinkState state, struct sim_link **link)
{
    return sim_object_find(SIM_LINK, state, (void **)link) == SIM_FOUND ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void sim_link_finalize(void *object)
{
    struct sim_link *link = object;
    free(link->text);
    free(link->image);
    pthread_mutex_destroy(&link->lock);
}

static void complain(struct sim_link *link, const char *name, const char *what)
{
    char line[2 * LOG];
    snprintf(line, sizeof line, "%.*s%s%s\n", LOG / 2, name, *name ? ": " : "", what);
    sim_log_add(&link->jit.error, line);
}

static CUresult append(struct sim_link *link, const char *text, size_t length)
{
    char *grown = realloc(link->text, link->length + length + 1);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(grown + link->length, text, length);
    grown[link->length + length] = '\0';
    link->text = grown;
    link->length += length + 1;
    return CUDA_SUCCESS;
}

// The PTX of an input: text, or a cubin with PTX behind it.
static CUresult find_ptx(const void *data, size_t size, CUjitInputType type, const char **text, size_t *length)
{
    if (type == CU_JIT_INPUT_PTX) {
        *text = data;
        *length = strnlen(data, size);
        return CUDA_SUCCESS;
    }
    if (type != CU_JIT_INPUT_CUBIN || size < sizeof(Elf64_Ehdr))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (sim_image_is_cut_short(data, size))
        return CUDA_ERROR_INVALID_IMAGE;
    return sim_image_find(data, NULL, text, length) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult add(struct sim_link *link, CUjitInputType type, const void *data, size_t size, const char *name)
{
    char log[LOG];
    const char *text;
    size_t length;
    CUresult status = find_ptx(data, size, type, &text, &length);
    if (status != CUDA_SUCCESS) {
        if (status == CUDA_ERROR_INVALID_IMAGE)
            snprintf(log, sizeof log, "the image is cut short");
        else
            snprintf(log, sizeof log, "the simulated driver links PTX, not %s: compile to PTX", formats[type]);
    } else {
        status = (CUresult)sim_ptx_check(text, length, log, sizeof log);
        if (status == CUDA_SUCCESS)
            return append(link, text, length);
    }
    complain(link, name ? name : "", log);
    return status;
}

// Options that hold for a whole link cannot be given for one input.
static CUresult check_input_options(unsigned count, CUjit_option *options, void **values)
{
    struct sim_jit ignored;
    SIM_TRY(sim_jit_read(&ignored, count, options, values));
    for (unsigned i = 0; i < count; i++)
        switch ((int)options[i]) {
        case CU_JIT_WALL_TIME:
        case CU_JIT_INFO_LOG_BUFFER:
        case CU_JIT_ERROR_LOG_BUFFER:
        case CU_JIT_TARGET_FROM_CUCONTEXT:
        case CU_JIT_TARGET: return CUDA_ERROR_INVALID_VALUE;
        }
    return CUDA_SUCCESS;
}

static CUresult locked_add(CUlinkState state, CUjitInputType type, const void *data, size_t size, const char *name,
                           unsigned count, CUjit_option *options, void **values)
{
    SIM_REQUIRE(data && size && (unsigned)type < CU_JIT_NUM_INPUT_TYPES);
    SIM_TRY(check_input_options(count, options, values));
    SIM_HELD struct sim_link *link = NULL;
    SIM_TRY(find(state, &link));
    uint64_t start = sim_now_ns();
    pthread_mutex_lock(&link->lock);
    CUresult status = link->image ? CUDA_ERROR_INVALID_VALUE : add(link, type, data, size, name);
    if (link->jit.wall_time_out)
        *link->jit.wall_time_out += (float)(sim_now_ns() - start) / 1e6f;
    pthread_mutex_unlock(&link->lock);
    return status;
}

SIM_API(cuLinkCreate_v2, (unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut),
        (numOptions, options, optionValues, stateOut))
{
    SIM_REQUIRE(stateOut);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_jit jit;
    SIM_TRY(sim_jit_read(&jit, numOptions, options, optionValues));
    struct sim_link *link = sim_object_new(SIM_LINK);
    if (!link)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_init(&link->lock, NULL);
    link->jit = jit;
    sim_log_add(&link->jit.error, "");
    sim_log_add(&link->jit.info, "");
    if (link->jit.wall_time_out)
        *link->jit.wall_time_out = 0;
    *stateOut = (CUlinkState)sim_object_handle(link);
    return CUDA_SUCCESS;
}

SIM_API(cuLinkAddData_v2,
        (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned int numOptions,
         CUjit_option *options, void **optionValues),
        (state, type, data, size, name, numOptions, options, optionValues))
{
    return locked_add(state, type, data, size, name, numOptions, options, optionValues);
}

SIM_API(cuLinkAddFile_v2,
        (CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions, CUjit_option *options,
         void **optionValues),
        (state, type, path, numOptions, options, optionValues))
{
    char *data;
    size_t size;
    SIM_TRY(sim_image_read_file(path, &data, &size));
    CUresult status = locked_add(state, type, data, size, path, numOptions, options, optionValues);
    free(data);
    return status;
}

static CUresult complete(struct sim_link *link)
{
    sim_ptx_module *module;
    struct sim_jit jit = {.error = link->jit.error, .info = link->jit.info};
    SIM_REQUIRE(link->length);
    CUresult status = sim_image_load(link->text, link->length - 1, NULL, &jit, &module);
    if (status != CUDA_SUCCESS) {
        link->jit.error = jit.error;
        sim_log_add(&link->jit.error, "\n");
        // Each text is good by itself: what is wrong is that names are missing, or there twice.
        return status == CUDA_ERROR_INVALID_PTX ? CUDA_ERROR_UNKNOWN : status;
    }
    sim_ptx_unload(module);
    link->image = sim_image_make(link->text, link->length - 1, &link->image_size);
    return link->image ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuLinkComplete, (CUlinkState state, void **cubinOut, size_t *sizeOut), (state, cubinOut, sizeOut))
{
    SIM_REQUIRE(cubinOut);
    SIM_HELD struct sim_link *link = NULL;
    SIM_TRY(find(state, &link));
    uint64_t start = sim_now_ns();
    pthread_mutex_lock(&link->lock);
    CUresult status = link->image ? CUDA_SUCCESS : complete(link);
    if (link->jit.wall_time_out)
        *link->jit.wall_time_out += (float)(sim_now_ns() - start) / 1e6f;
    pthread_mutex_unlock(&link->lock);
    if (status == CUDA_SUCCESS) {
        *cubinOut = link->image;
        if (sizeOut)
            *sizeOut = link->image_size;
    }
    return status;
}

SIM_API(cuLinkDestroy, (CUlinkState state), (state))
{
    SIM_HELD struct sim_link *link = NULL;
    struct sim_context *context;
    SIM_TRY(find(state, &link));
    if (sim_current_quiet(&context) != CUDA_SUCCESS) {
        sim_report("no context", "cuLinkDestroy", 0, 0, NULL, "driver 580 may crash without a current context");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return sim_object_retire(link) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
