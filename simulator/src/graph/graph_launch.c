// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Launching executable graphs: each launch is one operation of its stream, after the one before it of the executable.

#include <stdlib.h>
#include <string.h>

#include "streams/capture.h"
#include "graph/graph_exec.h"

_Atomic size_t sim_graph_launches_pending;

// --- Memory ---------------------------------------------------------------------------------------------------

// What the launch finds allocated must be what it frees, or may free because the program said so; or what a launch
// before it has at this moment, and frees itself.
static CUresult check_memory(const struct sim_exec *exec)
{
    for (size_t i = 0; i < exec->memory_count; i++) {
        const struct sim_exec_memory *one = &exec->memories[i];
        bool live = sim_graph_memory_is_live(one->memory);
        SIM_REQUIRE(!one->allocates || one->frees || !live ||
                    exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
        SIM_REQUIRE(one->allocates || live);
    }
    return CUDA_SUCCESS;
}

// Code that was unloaded is found here, and memory that operations on values cannot use; the latter in bodies of
// conditional nodes when they run.
static CUresult check_nodes(const struct sim_exec *exec)
{
    for (size_t i = 0; i < exec->plan_count; i++) {
        const struct sim_plan *plan = &exec->plans[i];
        for (size_t node = 0; node < plan->count; node++) {
            const struct sim_exec_item *item = &exec->state->items[plan->base + node];
            const struct sim_work *work = item->work;
            if (work->type == CU_GRAPH_NODE_TYPE_KERNEL && item->enabled)
                SIM_TRY(sim_kernel_work_is_loaded(work));
            if (work->type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP || plan->in_body)
                continue;
            for (unsigned j = 0; j < work->values.params.count; j++)
                SIM_TRY(sim_value_check(work->context, &work->values.jobs[j]));
        }
    }
    return CUDA_SUCCESS;
}

static CUresult back_memory(const struct sim_exec *exec)
{
    for (size_t i = 0; i < exec->memory_count; i++)
        SIM_TRY(sim_graph_memory_back(exec->memories[i].memory));
    return CUDA_SUCCESS;
}

static void fly(const struct sim_exec *exec, int launches)
{
    for (size_t i = 0; i < exec->memory_count; i++)
        sim_graph_memory_fly(exec->memories[i].memory, launches);
}

// For the host, what a launch allocates is there when the call returns, and what it frees is gone.
static CUresult change_memory(struct sim_launch *launch)
{
    const struct sim_exec *exec = launch->exec;
    CUresult status = CUDA_SUCCESS;
    for (size_t i = 0; i < exec->memory_count; i++) {
        const struct sim_exec_memory *one = &exec->memories[i];
        if (one->allocates && !one->frees && sim_graph_memory_free(one->memory))
            launch->left_behind[launch->left_count++] = one->memory->range.start;
        if (!one->allocates)
            sim_graph_memory_free(one->memory);
        if (one->allocates && !one->frees && sim_graph_memory_allocate(one->memory) != CUDA_SUCCESS)
            status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return status;
}

// --- Events ---------------------------------------------------------------------------------------------------

// Recordings are announced when the graph is launched, so that the host and later work can wait for them.
static void begin_events(struct sim_launch *launch)
{
    for (size_t i = 0; i < launch->exec->event_count; i++) {
        const struct sim_exec_event *event = &launch->exec->events[i];
        const struct sim_work *work = launch->state->items[event->item].work;
        if (work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
            sim_event_mark_begin(work->event, event->timeline, &launch->events[i].mark);
        else
            sim_event_wait_begin(work->event, &launch->events[i].wait);
    }
}

// Where a launch failed, nobody must wait for ever.
static void end_events(struct sim_launch *launch)
{
    for (size_t i = 0; i < launch->exec->event_count; i++) {
        if (launch->events[i].mark.event)
            sim_event_mark_end(&launch->events[i].mark);
        sim_event_wait_end(&launch->events[i].wait, false);
    }
}

// --- Launching ------------------------------------------------------------------------------------------------

static void launch_free(struct sim_launch *launch)
{
    free(launch->events);
    free(launch->left_behind);
    sim_exec_state_drop(launch->state, true);
    sim_object_drop(launch->exec);
    pthread_cond_destroy(&launch->wake);
    pthread_mutex_destroy(&launch->lock);
    free(launch);
}

static struct sim_launch *launch_new(struct sim_exec *exec, struct sim_context *context)
{
    struct sim_launch *launch = calloc(1, sizeof *launch);
    if (!launch)
        return NULL;
    sim_object_hold(exec);
    atomic_fetch_add(&exec->state->references, 1);
    launch->exec = exec;
    launch->state = exec->state;
    launch->context = context;
    pthread_mutex_init(&launch->lock, NULL);
    pthread_cond_init(&launch->wake, NULL);
    launch->events = calloc(exec->event_count + 1, sizeof *launch->events);
    launch->left_behind = malloc((exec->memory_count + 1) * sizeof *launch->left_behind);
    if (launch->events && launch->left_behind)
        return launch;
    launch_free(launch);
    return NULL;
}

static void run_launch(struct sim_stream *stream, void *payload)
{
    (void)stream;
    struct sim_launch *launch = *(struct sim_launch **)payload;
    sim_launch_run(launch);
    end_events(launch);
    fly(launch->exec, -1);
    launch_free(launch);
    atomic_fetch_sub(&sim_graph_launches_pending, 1);
}

static void nothing(struct sim_stream *stream, void *payload) { (void)stream, (void)payload; }

// After what the stream does before, and after the latest launch.
static CUresult submit(struct sim_exec *exec, struct sim_stream *stream, struct sim_op *op)
{
    if (exec->last.stream)
        sim_op_wait(op, exec->last.stream, exec->last.number);
    uint64_t number;
    SIM_TRY(sim_submit(stream, op, &number));
    sim_object_hold(stream);
    sim_object_drop(exec->last.stream);
    exec->last = (struct sim_point){stream, number};
    return CUDA_SUCCESS;
}

CUresult sim_exec_launch(struct sim_exec *exec, struct sim_stream *stream)
{
    SIM_TRY(check_memory(exec));
    SIM_TRY(check_nodes(exec));
    SIM_TRY(back_memory(exec));
    struct sim_launch *launch = launch_new(exec, stream->context);
    struct sim_op *op = launch ? sim_op_new(run_launch, sizeof launch) : NULL;
    CUresult status = op ? change_memory(launch) : CUDA_ERROR_OUT_OF_MEMORY;
    if (status != CUDA_SUCCESS) {
        free(op);
        if (launch)
            launch_free(launch);
        return status;
    }
    op->always = true;  // there is much to give back
    memcpy(op->payload, &launch, sizeof launch);
    begin_events(launch);
    fly(exec, 1);
    atomic_fetch_add(&sim_graph_launches_pending, 1);
    return submit(exec, stream, op);
}

CUresult sim_exec_upload(struct sim_exec *exec, struct sim_stream *stream)
{
    SIM_TRY(check_nodes(exec));
    SIM_TRY(back_memory(exec));
    struct sim_op *op = sim_op_new(nothing, 0);
    return op ? submit(exec, stream, op) : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API_STREAM(cuGraphLaunch, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    if (sim_capturing(stream))
        return sim_capture_refuse_to_wait(stream);
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    SIM_TRY(sim_exec_find(hGraphExec, &exec));
    return sim_exec_launch(exec, stream);
}

SIM_API_STREAM(cuGraphUpload, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    if (sim_capturing(stream))
        return sim_capture_refuse_to_wait(stream);
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    SIM_TRY(sim_exec_find(hGraphExec, &exec));
    return sim_exec_upload(exec, stream);
}
