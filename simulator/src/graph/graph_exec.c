// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The life of executable graphs.

#include "streams/capture.h"
#include "graph/graph_exec.h"

#include <stdlib.h>

static _Atomic uint32_t last_exec;

CUresult sim_exec_find(CUgraphExec handle, struct sim_exec **exec)
{
    SIM_REQUIRE(sim_object_find(SIM_GRAPH_EXEC, handle, (void **)exec) == SIM_FOUND);
    // Handles end under the lock only, so the object stays without the reference.
    sim_object_drop(*exec);
    return CUDA_SUCCESS;
}

// The last reference may be that of a launch, which has no lock.
void sim_exec_finalize(void *object)
{
    struct sim_exec *exec = object;
    for (size_t i = 0; i < exec->memory_count; i++)
        if (exec->memories[i].allocates)
            sim_graph_memory_unback(exec->memories[i].memory);
    for (size_t i = 0; i < exec->event_count; i++)
        if (exec->events[i].timeline) {
            sim_object_retire(exec->events[i].timeline);
            sim_object_drop(exec->events[i].timeline);
        }
    for (size_t i = 0; i < exec->plan_count; i++) {
        struct sim_plan *plan = &exec->plans[i];
        free(plan->nodes);
        free(plan->order);
        free(plan->data);
        for (int side = 0; side < 2; side++) {
            free(plan->first[side]);
            free(plan->ends[side]);
        }
    }
    sim_exec_state_drop(exec->state, sim_exec_was_launched(exec));
    free(exec->plans);
    free(exec->places);
    free(exec->events);
    free(exec->memories);
    free(exec->conditions);
    sim_object_drop(exec->last.stream);
    sim_object_drop(exec->graph);
}

// What has to be over before it is done, with a reference to the stream, is left in *awaited.
static CUresult end_exec(CUgraphExec handle, struct sim_point *awaited)
{
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    SIM_TRY(sim_exec_find(handle, &exec));
    SIM_TRY(sim_capture_check_unsafe());
    if (exec->condition_count && exec->last.stream && sim_object_hold(exec->last.stream))
        *awaited = exec->last;
    if (exec->instance)
        exec->graph->instances--;
    sim_object_retire(exec);
    return CUDA_SUCCESS;
}

// That of a graph with conditional nodes waits for its launches; others do not (an H100, driver 580).
SIM_API(cuGraphExecDestroy, (CUgraphExec hGraphExec), (hGraphExec))
{
    struct sim_point awaited = {0};
    SIM_TRY(end_exec(hGraphExec, &awaited));
    if (awaited.stream)
        sim_wait(awaited.stream, awaited.number);
    sim_object_drop(awaited.stream);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecGetFlags, (CUgraphExec hGraphExec, cuuint64_t *flags), (hGraphExec, flags))
{
    SIM_REQUIRE(flags);
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    SIM_TRY(sim_exec_find(hGraphExec, &exec));
    *flags =
        exec->flags & (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecGetId, (CUgraphExec hGraphExec, unsigned int *graphId), (hGraphExec, graphId))
{
    SIM_REQUIRE(graphId);
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    SIM_TRY(sim_exec_find(hGraphExec, &exec));
    *graphId = exec->id;
    return CUDA_SUCCESS;
}

// --- Instantiation --------------------------------------------------------------------------------------------

// Events and memory happen in some order that the edges allow: nodes before what depends on them, also inside of what
// nodes run.
static CUresult gather(struct sim_exec *exec)
{
    struct visit {
        size_t plan, next;
    } *stack = malloc((exec->plan_count + 1) * sizeof *stack);
    exec->events = calloc(exec->item_count + 1, sizeof *exec->events);
    exec->memories = calloc(exec->item_count + 1, sizeof *exec->memories);
    exec->conditions = calloc(exec->item_count + 1, sizeof *exec->conditions);
    if (!stack || !exec->events || !exec->memories || !exec->conditions) {
        free(stack);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult status = CUDA_SUCCESS;
    size_t depth = 0;
    stack[depth++] = (struct visit){0, 0};
    while (depth && status == CUDA_SUCCESS) {
        struct visit *visit = &stack[depth - 1];
        struct sim_plan *plan = &exec->plans[visit->plan];
        if (visit->next == plan->count) {
            depth--;
            continue;
        }
        size_t n = plan->order[visit->next++];
        struct sim_plan_node *node = &plan->nodes[n];
        const struct sim_work *work = exec->state->items[plan->base + n].work;
        switch ((int)node->type) {
        case CU_GRAPH_NODE_TYPE_GRAPH: stack[depth++] = (struct visit){node->first_child, 0}; break;
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            node->condition = (uint32_t)exec->condition_count;
            exec->conditions[exec->condition_count++].item = plan->base + n;
            for (uint32_t i = 0; i < node->child_count; i++)
                stack[depth++] = (struct visit){node->first_child + i, 0};
            break;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
            struct sim_exec_event *event = &exec->events[exec->event_count];
            status = sim_stream_new(work->context, CU_STREAM_NON_BLOCKING, 0, &event->timeline);
            if (status == CUDA_SUCCESS) {
                sim_object_hold(work->context);
                sim_object_hold(event->timeline);  // the context's end may retire its handle
                sim_object_hide(event->timeline);
            }
        }
        // fall through
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            node->event = (uint32_t)exec->event_count;
            exec->events[exec->event_count++].item = plan->base + n;
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE: {
            bool allocates = node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
            exec->memories[exec->memory_count++] =
                (struct sim_exec_memory){work->memory.memory, node, allocates, !allocates};
            break;
        }
        default: break;
        }
    }
    free(stack);
    return status;
}

static int by_memory(const void *a, const void *b)
{
    const struct sim_exec_memory *left = a, *right = b;
    if (left->memory != right->memory)
        return left->memory < right->memory ? -1 : 1;
    return right->allocates - left->allocates;
}

// One entry for each memory, whether it is allocated, freed or both.
static void merge_memories(struct sim_exec *exec)
{
    qsort(exec->memories, exec->memory_count, sizeof *exec->memories, by_memory);
    size_t kept = 0;
    for (size_t i = 0; i < exec->memory_count; i++) {
        struct sim_exec_memory *before = kept ? &exec->memories[kept - 1] : NULL;
        if (before && before->memory == exec->memories[i].memory) {
            before->frees = true;
            before->node->inside = exec->memories[i].node->inside = before->allocates;
        } else {
            exec->memories[kept++] = exec->memories[i];
        }
    }
    exec->memory_count = kept;
}

static CUresult fill(struct sim_exec *exec, struct sim_graph *graph, struct sim_refusal *refusal)
{
    SIM_TRY(sim_exec_plan(exec, graph, refusal));
    SIM_TRY(gather(exec));
    merge_memories(exec);
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraph handle, uint64_t flags, CUstream upload_stream, CUgraphExec *out,
                            struct sim_refusal *refusal)
{
    const uint64_t device = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    const uint64_t auto_free = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    const uint64_t upload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    SIM_REQUIRE(out && !(flags & ~(device | auto_free | upload | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)));
    SIM_REQUIRE((flags & (device | auto_free)) != (device | auto_free));
    SIM_TRY(sim_capture_check_unsafe());
    SIM_HELD struct sim_stream *stream = NULL;
    struct sim_context *context;
    if (flags & upload)
        SIM_TRY(sim_stream_find(upload_stream, &stream));
    else
        SIM_TRY(sim_current(&context));
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(handle, &graph));
    SIM_REQUIRE(!graph->moved);
    SIM_SUPPORTED(!graph->owner && (!graph->memory_nodes || !graph->instances));
    struct sim_exec *exec = sim_object_new(SIM_GRAPH_EXEC);
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->id = atomic_fetch_add(&last_exec, 1) + 1;
    exec->flags = flags;
    CUresult status = fill(exec, graph, refusal);
    if (status == CUDA_SUCCESS && stream)
        status = sim_exec_upload(exec, stream);
    if (status != CUDA_SUCCESS) {
        sim_object_retire(exec);
        return status;
    }
    sim_object_hold(graph);
    exec->graph = graph;
    exec->instance = graph->memory_nodes != 0;
    graph->instances += exec->instance;
    *out = (CUgraphExec)sim_object_handle(exec);
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuGraphInstantiateWithParams, _ptsz,
               (CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams),
               (phGraphExec, hGraph, instantiateParams))
{
    SIM_REQUIRE(instantiateParams);
    struct sim_refusal refusal = {NULL, CUDA_GRAPH_INSTANTIATE_ERROR};
    CUresult status =
        instantiate(hGraph, instantiateParams->flags, instantiateParams->hUploadStream, phGraphExec, &refusal);
    instantiateParams->hErrNode_out = sim_graph_node_handle(refusal.node);
    instantiateParams->result_out = status == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : refusal.result;
    return status;
}

SIM_API(cuGraphInstantiateWithFlags, (CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags),
        (phGraphExec, hGraph, flags))
{
    struct sim_refusal refusal;
    SIM_REQUIRE(!(flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
    return instantiate(hGraph, flags, NULL, phGraphExec, &refusal);
}

SIM_API(cuGraphInstantiate_v2,
        (CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize),
        (phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize))
{
    // What is wrong is told by cuGraphInstantiateWithParams only.
    struct sim_refusal refusal;
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        *logBuffer = '\0';
    return instantiate(hGraph, 0, NULL, phGraphExec, &refusal);
}

SIM_API(cuGraphInstantiate,
        (CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize),
        (phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize))
{
    return cuGraphInstantiate_v2_body(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
