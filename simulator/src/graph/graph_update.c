// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Updates of executable graphs from graphs that are like the one that they were made from.
//
// The nodes are paired from the ends backwards: the nodes that nothing depends on in the order in which they were made,
// the last ones first, then the dependencies of a pair in the order of the edges. They are compared in that order, too:
// which node a refusal names follows from it.

#include "graph/graph_update.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph_change.h"

static const uint32_t UNPAIRED = UINT32_MAX;

struct pairing {
    const struct sim_plan *plan;
    struct sim_graph *graph;
    struct sim_graph_node **by_index;  // the graph's nodes
    uint32_t *plan_of;                 // by node of the graph, its partner
    uint32_t *node_of;                 // by node of the plan
    uint32_t *queue;                   // nodes of the graph whose dependencies are still to be paired
    size_t count;
};

static CUresult refuse(CUgraphExecUpdateResultInfo *info, CUgraphExecUpdateResult result, struct sim_graph_node *node,
                       struct sim_graph_node *from)
{
    *info = (CUgraphExecUpdateResultInfo){result, sim_graph_node_handle(node), sim_graph_node_handle(from)};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static void pair(struct pairing *pairing, uint32_t node, uint32_t partner)
{
    pairing->plan_of[node] = partner;
    pairing->node_of[partner] = node;
    pairing->queue[pairing->count++] = node;
}

// One more than the last node before `node` that nothing depends on; 0 for none.
static uint32_t ends_before(const struct sim_plan *plan, uint32_t node)
{
    while (node && plan->first[SIM_OUT][node] != plan->first[SIM_OUT][node - 1])
        node--;
    return node;
}

static CUresult pair_ends(struct pairing *pairing, CUgraphExecUpdateResultInfo *info)
{
    const struct sim_plan *plan = pairing->plan;
    uint32_t left = ends_before(plan, (uint32_t)plan->count);
    for (struct sim_graph_node *node = pairing->graph->last; node; node = node->previous) {
        if (node->edges[SIM_OUT].count)
            continue;
        if (!left)
            return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, NULL);
        pair(pairing, (uint32_t)node->index, left - 1);
        left = ends_before(plan, left - 1);
    }
    return left ? refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL) : CUDA_SUCCESS;
}

static CUresult pair_dependencies(struct pairing *pairing, uint32_t index, CUgraphExecUpdateResultInfo *info)
{
    const struct sim_plan *plan = pairing->plan;
    struct sim_graph_node *node = pairing->by_index[index];
    uint32_t partner = pairing->plan_of[index], e = plan->first[SIM_IN][partner];
    if (node->edges[SIM_IN].count != plan->first[SIM_IN][partner + 1] - e)
        return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, NULL);
    for (struct sim_edge *edge = node->edges[SIM_IN].first; edge; edge = edge->next[SIM_IN], e++) {
        struct sim_graph_node *before = edge->end[SIM_OUT];
        uint32_t one = (uint32_t)before->index, other = plan->ends[SIM_IN][e];
        if (pairing->plan_of[one] == UNPAIRED && pairing->node_of[other] == UNPAIRED)
            pair(pairing, one, other);
        else if (pairing->plan_of[one] != other)
            return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, before);
        if (memcmp(&edge->data, &plan->data[e], sizeof edge->data) != 0)
            return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, before);
    }
    return CUDA_SUCCESS;
}

static CUresult pair_all(struct pairing *pairing, CUgraphExecUpdateResultInfo *info)
{
    size_t index = 0;
    for (struct sim_graph_node *node = pairing->graph->first; node; node = node->next, index++) {
        node->index = index;
        pairing->by_index[index] = node;
        pairing->plan_of[index] = pairing->node_of[index] = UNPAIRED;
    }
    SIM_TRY(pair_ends(pairing, info));
    for (size_t next = 0; next < pairing->count; next++)
        SIM_TRY(pair_dependencies(pairing, pairing->queue[next], info));
    // What is left is in a cycle.
    if (pairing->count < index)
        return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
    return CUDA_SUCCESS;
}

// --- Work -----------------------------------------------------------------------------------------------------

struct update {
    struct sim_exec *exec;
    struct sim_work **works;    // by item; NULL for those that are not concerned; borrowed from the graph
    struct sim_graph **graphs;  // by plan, likewise
    CUgraphExecUpdateResultInfo *info;
};

static CUresult check_nodes(struct update *update, const struct pairing *pairing)
{
    const struct sim_plan *plan = pairing->plan;
    struct sim_exec *exec = update->exec;
    for (size_t i = 0; i < pairing->count; i++) {
        struct sim_graph_node *node = pairing->by_index[pairing->queue[i]];
        if (node->work->type != plan->nodes[pairing->plan_of[node->index]].type)
            return refuse(update->info, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node, NULL);
    }
    for (size_t next = 0; next < pairing->count; next++) {
        struct sim_graph_node *node = pairing->by_index[pairing->queue[next]];
        uint32_t partner = pairing->plan_of[node->index];
        const struct sim_plan_node *plan_node = &plan->nodes[partner];
        CUgraphExecUpdateResult result =
            sim_work_change(exec->state->items[plan->base + partner].work, node->work, exec->flags);
        if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS && node->child_count != plan_node->child_count)
            result = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            return refuse(update->info, result, node, NULL);
        update->works[plan->base + partner] = node->work;
        for (uint32_t i = 0; i < node->child_count; i++)
            update->graphs[plan_node->first_child + i] = node->children[i];
    }
    return CUDA_SUCCESS;
}

static CUresult check_plan(struct update *update, size_t index)
{
    const struct sim_plan *plan = &update->exec->plans[index];
    struct pairing pairing = {.plan = plan, .graph = update->graphs[index]};
    if (pairing.graph->count != plan->count)
        return refuse(update->info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
    pairing.by_index = malloc((plan->count + 1) * sizeof(struct sim_graph_node *));
    pairing.plan_of = malloc((plan->count + 1) * sizeof *pairing.plan_of);
    pairing.node_of = malloc((plan->count + 1) * sizeof *pairing.node_of);
    pairing.queue = malloc((plan->count + 1) * sizeof *pairing.queue);
    CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
    if (pairing.by_index && pairing.plan_of && pairing.node_of && pairing.queue)
        status = pair_all(&pairing, update->info);
    if (status == CUDA_SUCCESS)
        status = check_nodes(update, &pairing);
    free(pairing.by_index);
    free(pairing.plan_of);
    free(pairing.node_of);
    free(pairing.queue);
    return status;
}

static CUresult apply(struct update *update)
{
    struct sim_exec_state *state = sim_exec_state_own(update->exec);
    if (!state)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < state->item_count; i++)
        if (update->works[i]) {
            sim_work_hold(update->works[i]);
            sim_work_drop(state->items[i].work);
            state->items[i].work = update->works[i];
        }
    for (size_t i = 0; i < state->user_count; i++)
        if (update->graphs[i]) {
            struct sim_user_set *old = state->users[i];
            sim_user_set_hold(update->graphs[i]->users);
            state->users[i] = update->graphs[i]->users;
            sim_user_set_drop(old, sim_exec_was_launched(update->exec));
        }
    return CUDA_SUCCESS;
}

CUresult sim_exec_update(struct sim_exec *exec, size_t plan, struct sim_graph *graph, CUgraphExecUpdateResultInfo *info)
{
    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    struct update update = {
        .exec = exec,
        .works = calloc(exec->item_count + 1, sizeof(struct sim_work *)),
        .graphs = calloc(exec->plan_count + 1, sizeof(struct sim_graph *)),
        .info = info,
    };
    CUresult status = update.works && update.graphs ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (status == CUDA_SUCCESS)
        update.graphs[plan] = graph;
    // What a plan's nodes run has higher numbers.
    for (size_t i = plan; i < exec->plan_count && status == CUDA_SUCCESS; i++)
        if (update.graphs[i])
            status = check_plan(&update, i);
    if (status == CUDA_SUCCESS)
        status = apply(&update);
    if (status == CUDA_SUCCESS)
        info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    free(update.works);
    free(update.graphs);
    return status;
}

// --- Entry points ---------------------------------------------------------------------------------------------

static CUresult update_all(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info)
{
    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    SIM_GRAPHS_LOCKED();
    struct sim_exec *exec;
    struct sim_graph *graph;
    SIM_TRY(sim_exec_find(exec_handle, &exec));
    SIM_TRY(sim_graph_find(graph_handle, &graph));
    SIM_REQUIRE(!graph->owner && !graph->moved && !graph->captured);
    return sim_exec_update(exec, 0, graph, info);
}

SIM_API(cuGraphExecUpdate_v2, (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo),
        (hGraphExec, hGraph, resultInfo))
{
    SIM_REQUIRE(resultInfo);
    return update_all(hGraphExec, hGraph, resultInfo);
}

SIM_API(cuGraphExecUpdate,
        (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
         CUgraphExecUpdateResult *updateResult_out),
        (hGraphExec, hGraph, hErrorNode_out, updateResult_out))
{
    SIM_REQUIRE(hErrorNode_out && updateResult_out);
    CUgraphExecUpdateResultInfo info;
    CUresult status = update_all(hGraphExec, hGraph, &info);
    *hErrorNode_out = info.errorNode;
    *updateResult_out = info.result;
    return status;
}
