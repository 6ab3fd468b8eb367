// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The driver's linker. It writes logs and the time where its options point, as long as the link exists, so these stand
// in memory that the link's handle owns. So do names: nvJitLink, which is the same code, remembers where those stood.
#ifndef CCC_LINKER_H
#define CCC_LINKER_H

#include "driver/ccc_compat.h"
#include "code/ccc_foreign.h"
#include "streams/ccc_context.h"
#include "driver/ccc_strings.h"

#define CCC_MAX_LINK_OPTIONS 32
#define CCC_OWN_LINK_OPTIONS 9  // logs and their sizes, the time, names and their numbers
#define CCC_LINK_LOG 16384

typedef struct ccc_link {
    unsigned int count;
    unsigned int time;  // which value is the time
    CUjit_option options[CCC_MAX_LINK_OPTIONS];
    void *values[CCC_MAX_LINK_OPTIONS];
    char error_log[CCC_LINK_LOG];
    char info_log[CCC_LINK_LOG];
    const char **input_names;
    const char *texts[];  // names of kernels, of variables, of inputs; and behind them what they point to
} ccc_link;

static unsigned int ccc_link_option(ccc_link *link, CUjit_option option, void *value)
{
    link->options[link->count] = option;
    link->values[link->count] = value;
    return link->count++;
}

// `texts` are the names of kernels, of variables and of inputs, one after the other.
static ccc_link *ccc_link_plan(const int *options, const uint64_t *values, unsigned int count, const char *const *texts,
                               unsigned int kernel_count, unsigned int variable_count, unsigned int input_count)
{
    unsigned int text_count = kernel_count + variable_count + input_count;
    ccc_link *link = NULL;
    if (count <= CCC_MAX_LINK_OPTIONS - CCC_OWN_LINK_OPTIONS)
        link = calloc(1, sizeof *link + ccc_strings_size(texts, text_count));
    if (link == NULL)
        return NULL;
    link->input_names = link->texts + kernel_count + variable_count;
    ccc_strings_copy(link->texts, (char *)(link->texts + text_count), texts, text_count);
    for (unsigned int i = 0; i < count; i++)
        ccc_link_option(link, (CUjit_option)options[i], (void *)(uintptr_t)values[i]);
    ccc_link_option(link, CU_JIT_ERROR_LOG_BUFFER, link->error_log);
    ccc_link_option(link, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)CCC_LINK_LOG);
    ccc_link_option(link, CU_JIT_INFO_LOG_BUFFER, link->info_log);
    ccc_link_option(link, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)CCC_LINK_LOG);
    link->time = ccc_link_option(link, CU_JIT_WALL_TIME, NULL);
    if (kernel_count) {
        ccc_link_option(link, CU_JIT_REFERENCED_KERNEL_NAMES, link->texts);
        ccc_link_option(link, CU_JIT_REFERENCED_KERNEL_COUNT, (void *)(uintptr_t)kernel_count);
    }
    if (variable_count) {
        ccc_link_option(link, CU_JIT_REFERENCED_VARIABLE_NAMES, link->texts + kernel_count);
        ccc_link_option(link, CU_JIT_REFERENCED_VARIABLE_COUNT, (void *)(uintptr_t)variable_count);
    }
    return link;
}

static CUresult ccc_link_destroy(uint64_t value) { return cuLinkDestroy((CUlinkState)(uintptr_t)value); }

// A link in the current context, which it keeps. NULL on failure.
static ccc_handle *ccc_link_create(const int *options, const uint64_t *values, unsigned int count,
                                   const char *const *texts, unsigned int kernel_count, unsigned int variable_count,
                                   unsigned int input_count)
{
    CUlinkState state = NULL;
    ccc_handle *context = ccc_needed_context("cuLinkCreate");
    ccc_handle *handle = context ? ccc_foreign_new(CCC_LINKER, context, ccc_link_destroy, "cuLinkDestroy") : NULL;
    ccc_release(context);
    if (handle == NULL)
        return NULL;
    ccc_link *link = ccc_link_plan(options, values, count, texts, kernel_count, variable_count, input_count);
    if (link == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return ccc_foreign_made(handle, NULL);
    }
    handle->memory = link;
    CCC_MAKE(handle, (uintptr_t)state, cuLinkCreate, link->count, link->options, link->values, &state);
    return handle;
}

// Add the input whose name was given as the `index`th.
static int ccc_link_add(const ccc_handle *handle, unsigned int index, int type, const void *data, size_t size)
{
    const ccc_link *link = handle->memory;
    CCC_TRY(cuLinkAddData, (CUlinkState)CCC_POINTER(handle), (CUjitInputType)type, (void *)data, size,
            link->input_names[index], 0, NULL, NULL);
    return 0;
}

// *image belongs to the link.
static int ccc_link_complete(const ccc_handle *handle, void **image, size_t *size)
{
    CCC_TRY(cuLinkComplete, (CUlinkState)CCC_POINTER(handle), image, size);
    return 0;
}

static const char *ccc_link_error_log(const ccc_handle *handle)
{
    return ((const ccc_link *)handle->memory)->error_log;
}

static const char *ccc_link_info_log(const ccc_handle *handle) { return ((const ccc_link *)handle->memory)->info_log; }

// Milliseconds that were spent so far.
static float ccc_link_time(const ccc_handle *handle)
{
    const ccc_link *link = handle->memory;
    float milliseconds;
    memcpy(&milliseconds, &link->values[link->time], sizeof milliseconds);
    return milliseconds;
}

#endif
