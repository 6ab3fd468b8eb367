// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Changes of single nodes of executable graphs.

#include <string.h>

#include "graph/graph_change.h"
#include "graph/graph_node.h"
#include "graph/graph_params.h"
#include "graph/graph_update.h"

// For single nodes the rule is stricter: fills keep their number of rows.
static bool flat_enough(const struct sim_work *old, const struct sim_work *fresh)
{
    return old->type != CU_GRAPH_NODE_TYPE_MEMSET || old->fill.params.height == fresh->fill.params.height;
}

// --- Nodes ----------------------------------------------------------------------------------------------------

// With the lock held.
static CUresult find_item(CUgraphExec exec_handle, CUgraphNode node_handle, struct sim_exec **exec, size_t *item,
                          const struct sim_plan_node **plan_node)
{
    struct sim_graph_node *node;
    SIM_TRY(sim_exec_find(exec_handle, exec));
    SIM_TRY(sim_graph_node_find(node_handle, &node));
    const struct sim_node_place *place = sim_exec_place(*exec, node);
    SIM_REQUIRE(place);
    const struct sim_plan *plan = &(*exec)->plans[place->plan];
    *item = plan->base + place->node;
    *plan_node = &plan->nodes[place->node];
    return CUDA_SUCCESS;
}

static CUresult set(CUgraphExec exec_handle, CUgraphNode node, struct sim_work *work)
{
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    size_t item;
    const struct sim_plan_node *plan_node;
    SIM_TRY(find_item(exec_handle, node, &exec, &item, &plan_node));
    SIM_REQUIRE(plan_node->type == work->type);
    const struct sim_work *old = exec->state->items[item].work;
    SIM_REQUIRE(flat_enough(old, work) && sim_work_change(old, work, exec->flags) == CU_GRAPH_EXEC_UPDATE_SUCCESS);
    struct sim_exec_state *state = sim_exec_state_own(exec);
    if (!state)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_work_hold(work);
    sim_work_drop(state->items[item].work);
    state->items[item].work = work;
    return CUDA_SUCCESS;
}

// What the executable's node does now, with a reference: a kernel keeps its attributes.
static CUresult work_of(CUgraphExec exec_handle, CUgraphNode node, CUgraphNodeType type, struct sim_work **work)
{
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    size_t item;
    const struct sim_plan_node *plan_node;
    SIM_TRY(find_item(exec_handle, node, &exec, &item, &plan_node));
    SIM_REQUIRE(plan_node->type == type);
    *work = exec->state->items[item].work;
    sim_work_hold(*work);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecKernelNodeSetParams_v2,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams),
        (hGraphExec, hNode, nodeParams))
{
    SIM_WORK_HELD struct sim_work *old = NULL, *work = NULL;
    SIM_TRY(work_of(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_KERNEL, &old));
    SIM_TRY(sim_work_kernel(nodeParams, old, false, &work));
    return set(hGraphExec, hNode, work);
}

SIM_API(cuGraphExecKernelNodeSetParams,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams),
        (hGraphExec, hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    CUDA_KERNEL_NODE_PARAMS_v2 params = {0};
    memcpy(&params, nodeParams, sizeof *nodeParams);  // the second version begins like the first
    return cuGraphExecKernelNodeSetParams_v2_body(hGraphExec, hNode, &params);
}

SIM_API(cuGraphExecMemcpyNodeSetParams,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx),
        (hGraphExec, hNode, copyParams, ctx))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_copy(copyParams, ctx, &work));
    return set(hGraphExec, hNode, work);
}

SIM_API(cuGraphExecMemsetNodeSetParams,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx),
        (hGraphExec, hNode, memsetParams, ctx))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_fill(memsetParams, ctx, &work));
    return set(hGraphExec, hNode, work);
}

SIM_API(cuGraphExecHostNodeSetParams,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams),
        (hGraphExec, hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_host(&(struct sim_host_params){nodeParams->fn, nodeParams->userData, 0, NULL}, &work));
    return set(hGraphExec, hNode, work);
}

SIM_API(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event),
        (hGraphExec, hNode, event))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &work));
    return set(hGraphExec, hNode, work);
}

SIM_API(cuGraphExecEventWaitNodeSetEvent, (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event),
        (hGraphExec, hNode, event))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &work));
    return set(hGraphExec, hNode, work);
}

SIM_API(cuGraphExecBatchMemOpNodeSetParams,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams),
        (hGraphExec, hNode, nodeParams))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_values(nodeParams, &work));
    return set(hGraphExec, hNode, work);
}

static CUresult set_child(CUgraphExec exec_handle, CUgraphNode node, CUgraph graph_handle)
{
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    struct sim_graph *graph;
    size_t item;
    const struct sim_plan_node *plan_node;
    SIM_TRY(find_item(exec_handle, node, &exec, &item, &plan_node));
    SIM_TRY(sim_graph_find(graph_handle, &graph));
    SIM_REQUIRE(plan_node->type == CU_GRAPH_NODE_TYPE_GRAPH && !graph->moved);
    CUgraphExecUpdateResultInfo result;
    return sim_exec_update(exec, plan_node->first_child, graph, &result);
}

SIM_API(cuGraphExecChildGraphNodeSetParams, (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph),
        (hGraphExec, hNode, childGraph))
{
    return set_child(hGraphExec, hNode, childGraph);
}

// A copy or a fill that is given no context keeps that of its node, as long as any is current.
static CUresult keep_context(CUgraphNodeParams *params, const struct sim_work *old)
{
    CUcontext *context = params->type == CU_GRAPH_NODE_TYPE_MEMSET   ? &params->memset.ctx
                         : params->type == CU_GRAPH_NODE_TYPE_MEMCPY ? &params->memcpy.copyCtx
                                                                     : NULL;
    struct sim_context *current;
    if (!context || *context)
        return CUDA_SUCCESS;
    SIM_REQUIRE(sim_current_quiet(&current) == CUDA_SUCCESS);
    *context = sim_context_handle(old->context);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecNodeSetParams, (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams),
        (hGraphExec, hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *old = NULL, *work = NULL;
    SIM_TRY(work_of(hGraphExec, hNode, nodeParams->type, &old));
    switch ((int)nodeParams->type) {
    case CU_GRAPH_NODE_TYPE_GRAPH: return set_child(hGraphExec, hNode, nodeParams->graph.graph);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
    default: break;
    }
    CUgraphNodeParams params = *nodeParams;
    SIM_TRY(keep_context(&params, old));
    SIM_TRY(sim_params_read(&params, old, false, &work));
    return set(hGraphExec, hNode, work);
}

// --- Switching nodes off --------------------------------------------------------------------------------------

static bool has_switch(CUgraphNodeType type)
{
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

SIM_API(cuGraphNodeSetEnabled, (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled),
        (hGraphExec, hNode, isEnabled))
{
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    size_t item;
    const struct sim_plan_node *node;
    SIM_TRY(find_item(hGraphExec, hNode, &exec, &item, &node));
    SIM_REQUIRE(has_switch(node->type));
    struct sim_exec_state *state = sim_exec_state_own(exec);
    if (!state)
        return CUDA_ERROR_OUT_OF_MEMORY;
    state->items[item].enabled = isEnabled != 0;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetEnabled, (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled),
        (hGraphExec, hNode, isEnabled))
{
    SIM_REQUIRE(isEnabled);
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    size_t item;
    const struct sim_plan_node *node;
    SIM_TRY(find_item(hGraphExec, hNode, &exec, &item, &node));
    SIM_REQUIRE(has_switch(node->type));
    *isEnabled = exec->state->items[item].enabled;
    return CUDA_SUCCESS;
}
