// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/copy.h"

#include <stdlib.h>
#include <string.h>

#include "memory/allocation.h"
#include "streams/capture.h"
#include "driver/device.h"
#include "driver/usage.h"

// Work of up to this many bytes is done on the calling thread when the stream is idle: nobody can tell, and it costs
// less than waking a worker.
enum { SHORT_WORK = 64 << 10 };

CUresult sim_do(struct sim_stream *stream, sim_work work, const void *payload, size_t size, bool at_once, bool wait)
{
    if (at_once && sim_run_now(stream, work, (void *)payload, NULL))
        return CUDA_SUCCESS;
    struct sim_op *op = sim_op_new(work, size);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->always = true;  // the work looks at the context itself, since it may have something to release
    memcpy(op->payload, payload, size);
    uint64_t number;
    SIM_TRY(sim_submit(stream, op, &number));
    if (!wait)
        return CUDA_SUCCESS;
    sim_wait(stream, number);
    return sim_context_status(stream->context);
}

// --- Copies ---------------------------------------------------------------------------------------------------

struct job {
    struct sim_copy_job job;
    void *staged;  // a copy of pageable memory, freed when the job is done
};

size_t sim_copy_span(const struct sim_copy *copy, const struct sim_operand *operand)
{
    return (copy->depth - 1) * operand->slice + (copy->height - 1) * operand->pitch + copy->width;
}

static void move(const struct sim_copy *copy)
{
    for (size_t z = 0; z < copy->depth; z++) {
        char *to = (char *)copy->to.address + z * copy->to.slice;
        const char *from = (const char *)copy->from.address + z * copy->from.slice;
        if (copy->height == 1 || (copy->to.pitch == copy->width && copy->from.pitch == copy->width)) {
            memmove(to, from, copy->width * copy->height);
            continue;
        }
        for (size_t y = 0; y < copy->height; y++)
            memmove(to + y * copy->to.pitch, from + y * copy->from.pitch, copy->width);
    }
}

static struct sim_use use_of(int device, const struct sim_copy *copy, const struct sim_operand *operand)
{
    return (struct sim_use){.device = device, .writes = operand == &copy->to, .copies = true, .between = copy->between};
}

static bool still_there(const struct sim_context *context, const struct sim_copy_job *job,
                        const struct sim_operand *operand)
{
    return sim_still_there(operand->address, sim_copy_span(&job->copy, operand),
                           use_of(job->reach ? job->reach - 1 : context->device, &job->copy, operand), job->function);
}

void sim_copy_run(struct sim_context *context, const struct sim_copy_job *job)
{
    const struct sim_copy *copy = &job->copy;
    if (atomic_load(&context->error) != CUDA_SUCCESS)
        return;
    if ((job->check_from && !still_there(context, job, &copy->from)) ||
        (job->check_to && !still_there(context, job, &copy->to)))
        sim_context_fail(context, CUDA_ERROR_ILLEGAL_ADDRESS, sim_last_report());
    else {
        bool counts = copy->width * copy->height * copy->depth > SHORT_WORK;
        if (counts)
            sim_usage_begin(sim_device_at(context->device)->usage);
        move(copy);
        if (counts)
            sim_usage_end(sim_device_at(context->device)->usage);
    }
}

static void run_copy(struct sim_stream *stream, void *payload)
{
    const struct job *job = payload;
    sim_copy_run(stream->context, &job->job);
    free(job->staged);
}

// The source may change as soon as the call returns, so its contents are taken now.
static CUresult stage(struct job *job)
{
    struct sim_copy packed = job->job.copy;
    job->staged = malloc(packed.width * packed.height * packed.depth);
    if (!job->staged)
        return CUDA_ERROR_OUT_OF_MEMORY;
    packed.to = (struct sim_operand){
        .address = (uintptr_t)job->staged, .pitch = packed.width, .slice = packed.width * packed.height};
    move(&packed);
    job->job.copy.from = packed.to;
    return CUDA_SUCCESS;
}

CUresult sim_copy_place(const struct sim_context *context, const struct sim_copy *copy,
                        const struct sim_operand *operand, bool *known)
{
    SIM_REQUIRE(operand->address);
    enum sim_place place =
        sim_place_of(operand->address, sim_copy_span(copy, operand), use_of(context->device, copy, operand));
    SIM_REQUIRE(place != SIM_BAD && (place == SIM_KNOWN || operand->side == SIM_SIDE_ANY));
    *known = place == SIM_KNOWN;
    return CUDA_SUCCESS;
}

CUresult sim_copy_submit(struct sim_stream *stream, const struct sim_copy *copy, bool wait)
{
    if (sim_capturing(stream))
        return sim_capture_copy(stream, copy, wait);
    if (!copy->width || !copy->height || !copy->depth)
        return CUDA_SUCCESS;
    // Access is that of the device that is current, whatever the stream's.
    struct sim_context *reach = stream->context;
    if (!copy->between)
        (void)sim_current_quiet(&reach);
    struct job job = {.job = {.copy = *copy, .function = sim_thread()->function, .reach = reach->device + 1}};
    bool known_to, known_from;
    SIM_TRY(sim_copy_place(reach, copy, &copy->to, &known_to));
    SIM_TRY(sim_copy_place(reach, copy, &copy->from, &known_from));
    // A copy into pageable memory returns when it is done, as on hardware; so does one from there in stream order.
    wait = wait || !known_to || (!known_from && copy->order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
    size_t bytes = copy->width * copy->height * copy->depth;
    bool any_time = copy->order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY && bytes > SHORT_WORK;
    bool early = (!known_from && !any_time) || copy->order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    bool at_once = wait || bytes <= SHORT_WORK;
    if (at_once && sim_run_now(stream, run_copy, &job, NULL))
        return CUDA_SUCCESS;
    job.job.check_to = known_to;
    job.job.check_from = known_from && !early;
    if (early && !wait)
        SIM_TRY(stage(&job));
    return sim_do(stream, run_copy, &job, sizeof job, false, wait);
}

// --- Fills ----------------------------------------------------------------------------------------------------

size_t sim_fill_span(const struct sim_fill *fill)
{
    return (fill->height - 1) * fill->pitch + fill->width * fill->element;
}

static void fill_row(void *row, const struct sim_fill *fill)
{
    if (fill->element == 1) {
        memset(row, (int)fill->value, fill->width);
    } else if (fill->element == 2) {
        uint16_t *target = row;
        for (size_t i = 0; i < fill->width; i++)
            target[i] = (uint16_t)fill->value;
    } else {
        uint32_t *target = row;
        for (size_t i = 0; i < fill->width; i++)
            target[i] = fill->value;
    }
}

void sim_fill_run(struct sim_context *context, const struct sim_fill_job *job)
{
    const struct sim_fill *fill = &job->fill;
    if (atomic_load(&context->error) != CUDA_SUCCESS)
        return;
    struct sim_use use = {.device = context->device, .writes = true};
    if (job->check && !sim_still_there(fill->address, sim_fill_span(fill), use, job->function)) {
        sim_context_fail(context, CUDA_ERROR_ILLEGAL_ADDRESS, sim_last_report());
        return;
    }
    bool counts = fill->width * fill->height * fill->element > SHORT_WORK;
    if (counts)
        sim_usage_begin(sim_device_at(context->device)->usage);
    for (size_t y = 0; y < fill->height; y++)
        fill_row((char *)fill->address + y * fill->pitch, fill);
    if (counts)
        sim_usage_end(sim_device_at(context->device)->usage);
}

static void run_fill(struct sim_stream *stream, void *payload) { sim_fill_run(stream->context, payload); }

CUresult sim_fill_check(const struct sim_fill *fill)
{
    SIM_REQUIRE(fill->address % fill->element == 0 && fill->width <= SIZE_MAX / 4 / fill->element);
    SIM_REQUIRE(fill->height == 1 || (fill->pitch % fill->element == 0 && fill->pitch >= fill->width * fill->element &&
                                      fill->height <= SIZE_MAX / 4 / fill->pitch));
    return CUDA_SUCCESS;
}

CUresult sim_fill_submit(struct sim_stream *stream, const struct sim_fill *fill, bool wait)
{
    if (sim_capturing(stream))
        return sim_capture_fill(stream, fill, wait);
    if (!fill->width || !fill->height)
        return CUDA_SUCCESS;
    SIM_TRY(sim_fill_check(fill));
    SIM_TRY(sim_check_range(stream->context, fill->address, sim_fill_span(fill), true));
    struct sim_fill_job job = {.fill = *fill, .function = sim_thread()->function};
    size_t bytes = fill->width * fill->height * fill->element;
    if ((wait || bytes <= SHORT_WORK) && sim_run_now(stream, run_fill, &job, NULL))
        return CUDA_SUCCESS;
    job.check = true;
    return sim_do(stream, run_fill, &job, sizeof job, false, wait);
}
