// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The parameters of nodes of any kind in one structure.

#include "graph/graph_params.h"

#include <string.h>

#include "graph/graph_conditional.h"
#include "graph/graph_node.h"
#include "driver/report.h"

// CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID, which headers before 13.2 do not have.
enum { OWNERSHIP_ASKED = -1 };

// --- Reading --------------------------------------------------------------------------------------------------

// How many bytes of the union each kind of node uses, as the newest headers have it; 0 for kinds that are not
// simulated.
static size_t used_bytes(CUgraphNodeType type)
{
    switch ((int)type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return sizeof(CUDA_KERNEL_NODE_PARAMS_v3);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return sizeof(CUDA_MEMCPY_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_MEMSET: return sizeof(CUDA_MEMSET_NODE_PARAMS_v2);
    case CU_GRAPH_NODE_TYPE_HOST: return sizeof(struct sim_host_params);
    case CU_GRAPH_NODE_TYPE_GRAPH: return sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return sizeof(CUevent) + sizeof(CUcontext);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return sizeof(CUDA_MEM_FREE_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return sizeof(CUDA_CONDITIONAL_NODE_PARAMS);
    default: return 0;
    }
}

static CUresult check_unused(const CUgraphNodeParams *params)
{
    const char *bytes = (const char *)params->reserved1;
    for (size_t i = 0; i < SIM_COUNT(params->reserved0); i++)
        SIM_REQUIRE(!params->reserved0[i]);
    for (size_t i = used_bytes(params->type); i < sizeof params->reserved1; i++)
        SIM_REQUIRE(!bytes[i]);
    SIM_REQUIRE(!params->reserved2);
    return CUDA_SUCCESS;
}

static CUresult read_kernel(const CUgraphNodeParams *params, const struct sim_work *like, bool match,
                            struct sim_work **work)
{
    // The second and third version of the structure are the same.
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    _Static_assert(sizeof kernel == sizeof params->kernel, "the structures differ");
    memcpy(&kernel, &params->kernel, sizeof kernel);
    struct sim_context *context;
    if (kernel.func && sim_current_quiet(&context) != CUDA_SUCCESS) {
        sim_report("no context", like ? "cuGraphNodeSetParams" : "cuGraphAddNode", 0, 0, NULL,
                   "driver 580 crashes without a current context, where the kernel is given as a function");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return sim_work_kernel(&kernel, like, match, work);
}

static CUresult read_copy(const CUDA_MEMCPY_NODE_PARAMS *params, struct sim_work **work)
{
    SIM_REQUIRE(!params->flags && !params->reserved);
    return sim_work_copy(&params->copyParams, params->copyCtx, work);
}

static CUresult read_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *p, struct sim_work **work)
{
    CUDA_MEMSET_NODE_PARAMS_v1 fill = {p->dst, p->pitch, p->value, p->elementSize, p->width, p->height};
    return sim_work_fill(&fill, p->ctx, work);
}

static CUresult read_host(const CUgraphNodeParams *params, struct sim_work **work)
{
    struct sim_host_params host;
    memcpy(&host, params->reserved1, sizeof host);
    return sim_work_host(&host, work);
}

static CUresult read_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p, struct sim_work **work)
{
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 alloc = {p->poolProps, p->accessDescs, p->accessDescCount, p->bytesize, 0};
    return sim_work_alloc(&alloc, work);
}

static CUresult read_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p, struct sim_work **work)
{
    CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 values = {p->ctx, p->count, p->paramArray, p->flags};
    return sim_work_values(&values, work);
}

CUresult sim_params_read(const CUgraphNodeParams *params, const struct sim_work *like, bool match,
                         struct sim_work **work)
{
    SIM_REQUIRE(params);
    SIM_TRY(check_unused(params));
    switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return read_kernel(params, like, match, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return read_copy(&params->memcpy, work);
    case CU_GRAPH_NODE_TYPE_MEMSET: return read_fill(&params->memset, work);
    case CU_GRAPH_NODE_TYPE_HOST: return read_host(params, work);
    case CU_GRAPH_NODE_TYPE_EMPTY: return sim_work_empty(work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return sim_work_event(params->type, params->eventWait.event, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return sim_work_event(params->type, params->eventRecord.event, work);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return read_alloc(&params->alloc, work);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return sim_work_free(params->free.dptr, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return read_values(&params->memOp, work);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return CUDA_ERROR_NOT_SUPPORTED;  // external objects are not simulated
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

// --- Writing --------------------------------------------------------------------------------------------------

static void write_memory(const struct sim_work *work, CUgraphNodeParams *params)
{
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 p = sim_work_alloc_params(work);
    params->alloc = (CUDA_MEM_ALLOC_NODE_PARAMS_v2){p.poolProps, p.accessDescs, p.accessDescCount, p.bytesize, p.dptr};
}

static void write_values(const struct sim_work *work, CUgraphNodeParams *params)
{
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 *p = &work->values.params;
    params->memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){p->ctx, p->count, p->paramArray, p->flags};
}

static void write_fill(const struct sim_work *work, CUgraphNodeParams *params)
{
    const CUDA_MEMSET_NODE_PARAMS_v1 *p = &work->fill.params;
    params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
        p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, sim_context_handle(work->context)};
}

static void write_conditional(const struct sim_work *work, CUgraphNodeParams *params)
{
    const struct sim_conditional_work *own = &work->conditional;
    params->conditional.handle = sim_object_handle(own->conditional);
    params->conditional.type = own->type;
    params->conditional.size = own->size;
    params->conditional.phGraph_out = own->graphs;
    params->conditional.ctx = sim_context_handle(work->context);
}

static void write(const struct sim_graph_node *node, CUgraphNodeParams *params)
{
    const struct sim_work *work = node->work;
    memset(params, 0, sizeof *params);
    params->type = work->type;
    switch ((int)work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: memcpy(&params->kernel, &work->kernel.params, sizeof params->kernel); break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        params->memcpy.copyCtx = sim_context_handle(work->context);
        params->memcpy.copyParams = work->copy.params;
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET: write_fill(work, params); break;
    case CU_GRAPH_NODE_TYPE_HOST: memcpy(params->reserved1, &work->host, sizeof work->host); break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        params->graph.graph = sim_graph_handle(node->children[0]);
        params->graph.ownership = (CUgraphChildGraphNodeOwnership)OWNERSHIP_ASKED;
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: params->eventWait.event = (CUevent)sim_object_handle(work->event); break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: params->eventRecord.event = (CUevent)sim_object_handle(work->event); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: write_memory(work, params); break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: params->free.dptr = work->memory.address; break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: write_values(work, params); break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: write_conditional(work, params); break;
    default: break;
    }
}

SIM_API(cuGraphNodeGetParams, (CUgraphNode hNode, CUgraphNodeParams *nodeParams), (hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_node_find(hNode, &node));
    write(node, nodeParams);
    return CUDA_SUCCESS;
}

// --- Adding ---------------------------------------------------------------------------------------------------

static CUresult read_ownership(const CUgraphNodeParams *params, bool *move)
{
    SIM_TRY(check_unused(params));
    int ownership = (int)params->graph.ownership;
    SIM_REQUIRE(ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE || ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
    *move = ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                    size_t count, CUgraphNodeParams *params, bool match)
{
    SIM_REQUIRE(node && params);
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        bool move;
        SIM_TRY(read_ownership(params, &move));
        return sim_node_add_child(node, graph, dependencies, data, count, params->graph.graph, move);
    }
    if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        SIM_TRY(check_unused(params));
        return sim_node_add_conditional(node, graph, dependencies, data, count, &params->conditional);
    }
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_params_read(params, NULL, match, &work));
    SIM_TRY(sim_node_add(node, graph, dependencies, data, count, work));
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        params->alloc.dptr = work->memory.address;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphAddNode,
        (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
         CUgraphNodeParams *nodeParams),
        (phGraphNode, hGraph, dependencies, numDependencies, nodeParams))
{
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams, false);
}

SIM_API(cuGraphAddNode_v2,
        (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
         const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams),
        (phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams))
{
    return add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams, false);
}

SIM_API(cuGraphAddNode_v3,
        (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
         const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams),
        (phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams))
{
    return add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams, true);
}

// --- Replacing ------------------------------------------------------------------------------------------------

static bool fixed(CUgraphNodeType type)
{
    return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
           (int)type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

static CUresult set(CUgraphNode handle, const CUgraphNodeParams *params, bool match)
{
    SIM_REQUIRE(params);
    SIM_WORK_HELD struct sim_work *old = NULL, *work = NULL;
    SIM_TRY(sim_node_work(handle, params->type, &old));
    if (fixed(params->type))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        bool move;
        SIM_TRY(read_ownership(params, &move));
        return sim_node_set_child(handle, params->graph.graph, move);
    }
    SIM_TRY(sim_params_read(params, old, match, &work));
    return sim_node_set(handle, work);
}

SIM_API(cuGraphNodeSetParams, (CUgraphNode hNode, CUgraphNodeParams *nodeParams), (hNode, nodeParams))
{
    return set(hNode, nodeParams, false);
}

SIM_API(cuGraphNodeSetParams_v2, (CUgraphNode hNode, CUgraphNodeParams *nodeParams), (hNode, nodeParams))
{
    return set(hNode, nodeParams, true);
}
