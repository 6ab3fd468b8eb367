// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "graph/graph_conditional.h"

#include <stdlib.h>

#include "graph/graph_node.h"

// --- Handles --------------------------------------------------------------------------------------------------

void sim_conditional_finalize(void *object)
{
    struct sim_conditional *conditional = object;
    sim_object_drop(conditional->context);
}

void sim_conditionals_end(struct sim_graph *graph)
{
    while (graph->conditionals) {
        struct sim_conditional *conditional = graph->conditionals;
        graph->conditionals = conditional->next;
        conditional->graph = NULL;
        sim_object_retire(conditional);
    }
}

SIM_API(cuGraphConditionalHandleCreate,
        (CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx, unsigned int defaultLaunchValue,
         unsigned int flags),
        (pHandle_out, hGraph, ctx, defaultLaunchValue, flags))
{
    SIM_REQUIRE(pHandle_out && !(flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT));
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(sim_context_find(ctx, &context));
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(hGraph, &graph));
    struct sim_conditional *conditional = sim_object_new(SIM_CONDITIONAL);
    if (!conditional)
        return CUDA_ERROR_OUT_OF_MEMORY;
    conditional->graph = graph;
    conditional->context = context;
    context = NULL;
    conditional->value = defaultLaunchValue;
    conditional->flags = flags;
    conditional->next = graph->conditionals;
    graph->conditionals = conditional;
    *pHandle_out = sim_object_handle(conditional);
    return CUDA_SUCCESS;
}

// --- Nodes ----------------------------------------------------------------------------------------------------

static bool size_is_valid(CUgraphConditionalNodeType type, unsigned size)
{
    switch ((int)type) {
    case CU_GRAPH_COND_TYPE_IF: return size == 1 || size == 2;
    case CU_GRAPH_COND_TYPE_WHILE: return size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH: return size > 0;
    default: return false;
    }
}

// A handle is for one node of its graph, or of what that runs.
static CUresult find(uint64_t handle, const struct sim_graph *graph, struct sim_conditional **out)
{
    struct sim_conditional *conditional;
    SIM_REQUIRE(sim_object_find(SIM_CONDITIONAL, (const void *)handle, (void **)&conditional) == SIM_FOUND);
    sim_object_drop(conditional);  // handles end under the lock only
    while (graph && graph != conditional->graph)
        graph = graph->owner ? graph->owner->graph : NULL;
    SIM_REQUIRE(graph && !conditional->used);
    *out = conditional;
    return CUDA_SUCCESS;
}

static CUresult make_bodies(struct sim_graph_node *node, unsigned size)
{
    struct sim_conditional_work *own = &node->work->conditional;
    node->children = calloc(size, sizeof(struct sim_graph *));
    own->graphs = calloc(size, sizeof *own->graphs);
    if (!node->children || !own->graphs)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (; node->child_count < size; node->child_count++) {
        struct sim_graph *body = sim_graph_new(node);
        if (!body)
            return CUDA_ERROR_OUT_OF_MEMORY;
        node->children[node->child_count] = body;
        own->graphs[node->child_count] = sim_graph_handle(body);
    }
    return CUDA_SUCCESS;
}

CUresult sim_node_add_conditional(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies,
                                  const CUgraphEdgeData *data, size_t count, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    SIM_REQUIRE(size_is_valid(params->type, params->size));
    if (!params->ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(sim_context_find(params->ctx, &context));
    SIM_WORK_HELD struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_CONDITIONAL, context);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    struct sim_graph_node *node;
    struct sim_conditional *conditional;
    struct sim_dependency *after;
    SIM_TRY(sim_graph_find(handle, &graph));
    SIM_TRY(find(params->handle, graph, &conditional));
    SIM_REQUIRE(conditional->context == context);
    work->conditional =
        (struct sim_conditional_work){.conditional = conditional, .type = params->type, .size = params->size};
    sim_object_hold(conditional);
    CUresult status = sim_dependencies_read(graph, work->type, dependencies, data, count, &after);
    if (status == CUDA_SUCCESS)
        status = sim_graph_attach(graph, after, count, work, &node);
    free(after);
    SIM_TRY(status);
    status = make_bodies(node, params->size);
    if (status != CUDA_SUCCESS) {
        sim_graph_node_free(node);
        return status;
    }
    conditional->used = true;
    *out = sim_graph_node_handle(node);
    params->phGraph_out = work->conditional.graphs;
    return CUDA_SUCCESS;
}

uint32_t sim_conditional_choice(const struct sim_work *work, uint32_t value)
{
    const struct sim_conditional_work *own = &work->conditional;
    if (own->type == CU_GRAPH_COND_TYPE_SWITCH)
        return value < own->size ? value : own->size;
    return value ? 0 : 1;
}
