// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// From graphs to plans.

#include <stdlib.h>
#include <string.h>

#include "graph/graph_conditional.h"
#include "graph/graph_exec.h"

// CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, which headers before 12.8 do not have.
enum { HANDLE_UNUSED = 5 };

struct sim_exec_state *sim_exec_state_new(size_t item_count, size_t user_count)
{
    struct sim_exec_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    atomic_init(&state->references, 1);
    state->items = calloc(item_count + 1, sizeof *state->items);
    state->users = calloc(user_count + 1, sizeof(struct sim_user_set *));
    state->item_count = item_count;
    state->user_count = user_count;
    if (state->items && state->users)
        return state;
    sim_exec_state_drop(state, false);
    return NULL;
}

void sim_exec_state_drop(struct sim_exec_state *state, bool later)
{
    if (!state || atomic_fetch_sub(&state->references, 1) != 1)
        return;
    for (size_t i = 0; state->items && i < state->item_count; i++)  // a state may be left unfinished
        sim_work_drop(state->items[i].work);
    for (size_t i = 0; state->users && i < state->user_count; i++)
        sim_user_set_drop(state->users[i], later);
    free(state->items);
    free(state->users);
    free(state);
}

struct sim_exec_state *sim_exec_state_own(struct sim_exec *exec)
{
    struct sim_exec_state *old = exec->state;
    if (atomic_load(&old->references) == 1)
        return old;
    struct sim_exec_state *state = sim_exec_state_new(old->item_count, old->user_count);
    if (!state)
        return NULL;
    for (size_t i = 0; i < old->item_count; i++) {
        state->items[i] = old->items[i];
        sim_work_hold(state->items[i].work);
    }
    for (size_t i = 0; i < old->user_count; i++) {
        state->users[i] = old->users[i];
        sim_user_set_hold(state->users[i]);
    }
    exec->state = state;
    sim_exec_state_drop(old, true);
    return state;
}

static CUresult refuse(struct sim_refusal *refusal, struct sim_graph_node *node, CUgraphInstantiateResult result)
{
    *refusal = (struct sim_refusal){node, result};
    return CUDA_ERROR_INVALID_VALUE;
}

// --- One graph ------------------------------------------------------------------------------------------------

static bool reserve(struct sim_plan *plan, const struct sim_graph *graph)
{
    plan->nodes = calloc(graph->count + 1, sizeof *plan->nodes);
    plan->order = malloc((graph->count + 1) * sizeof *plan->order);
    plan->data = malloc((graph->edge_count + 1) * sizeof *plan->data);
    bool ready = plan->nodes && plan->order && plan->data;
    for (int side = 0; side < 2; side++) {
        plan->first[side] = malloc((graph->count + 1) * sizeof *plan->first[side]);
        plan->ends[side] = malloc((graph->edge_count + 1) * sizeof *plan->ends[side]);
        ready = ready && plan->first[side] && plan->ends[side];
    }
    return ready;
}

static void copy_edges(struct sim_plan *plan, const struct sim_graph *graph)
{
    for (int side = 0; side < 2; side++) {
        uint32_t next = 0;
        for (const struct sim_graph_node *node = graph->first; node; node = node->next) {
            plan->first[side][node->index] = next;
            for (const struct sim_edge *edge = node->edges[side].first; edge; edge = edge->next[side]) {
                if (side == SIM_IN)
                    plan->data[next] = edge->data;
                plan->ends[side][next++] = (uint32_t)edge->end[!side]->index;
            }
        }
        plan->first[side][plan->count] = next;
    }
}

// Returns how many nodes could be put in order: not all, if there is a cycle. `waiting` is scratch.
static size_t sort(struct sim_plan *plan, uint32_t *waiting)
{
    size_t ready = 0, done = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        waiting[i] = plan->first[SIM_IN][i + 1] - plan->first[SIM_IN][i];
        if (!waiting[i])
            plan->order[ready++] = i;
    }
    for (; done < ready; done++) {
        uint32_t node = plan->order[done];
        for (uint32_t e = plan->first[SIM_OUT][node]; e < plan->first[SIM_OUT][node + 1]; e++)
            if (--waiting[plan->ends[SIM_OUT][e]] == 0)
                plan->order[ready++] = plan->ends[SIM_OUT][e];
    }
    return done;
}

// A node that a node waits for, which waits too.
static uint32_t back(const struct sim_plan *plan, const uint32_t *waiting, uint32_t node)
{
    uint32_t e = plan->first[SIM_IN][node];
    while (!waiting[plan->ends[SIM_IN][e]])
        e++;
    return plan->ends[SIM_IN][e];
}

// Every node that still waits waits for one of its kind: going back from one to the next ends in a cycle. Returns that
// node of it which was made last.
static uint32_t in_cycle(const struct sim_plan *plan, const uint32_t *waiting)
{
    uint32_t node = 0;
    while (!waiting[node])
        node++;
    for (size_t step = 0; step < plan->count; step++)
        node = back(plan, waiting, node);
    uint32_t last = node;
    for (uint32_t other = back(plan, waiting, node); other != node; other = back(plan, waiting, other))
        last = other > last ? other : last;
    return last;
}

static CUresult order(struct sim_plan *plan, struct sim_graph *graph, struct sim_refusal *refusal)
{
    uint32_t *waiting = malloc((plan->count + 1) * sizeof *waiting);
    if (!waiting)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = CUDA_SUCCESS;
    if (sort(plan, waiting) < plan->count) {
        uint32_t wanted = in_cycle(plan, waiting);
        struct sim_graph_node *node = graph->first;
        while (node->index != wanted)
            node = node->next;
        status = refuse(refusal, node, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    }
    free(waiting);
    return status;
}

// --- The graph and all that its nodes run ---------------------------------------------------------------------

struct builder {
    struct sim_exec *exec;
    struct sim_graph **graphs;  // by plan
    size_t capacity;
};

static bool append(struct builder *builder, struct sim_graph *graph, bool in_body)
{
    struct sim_exec *exec = builder->exec;
    if (exec->plan_count == builder->capacity) {
        size_t capacity = builder->capacity ? 2 * builder->capacity : 4;
        struct sim_graph **graphs = realloc(builder->graphs, capacity * sizeof *graphs);
        if (graphs)
            builder->graphs = graphs;
        struct sim_plan *plans = graphs ? realloc(exec->plans, capacity * sizeof *plans) : NULL;
        if (!plans)
            return false;
        exec->plans = plans;
        builder->capacity = capacity;
    }
    builder->graphs[exec->plan_count] = graph;
    exec->plans[exec->plan_count++] = (struct sim_plan){.in_body = in_body};
    return true;
}

static CUresult plan_one(struct builder *builder, size_t index, struct sim_refusal *refusal)
{
    struct sim_exec *exec = builder->exec;
    struct sim_graph *graph = builder->graphs[index];
    struct sim_plan plan = {.base = exec->item_count, .in_body = exec->plans[index].in_body};
    bool ready = graph->count < UINT32_MAX && reserve(&plan, graph);
    CUresult status = ready ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (struct sim_graph_node *node = graph->first; node && status == CUDA_SUCCESS; node = node->next) {
        node->index = plan.count;
        plan.nodes[plan.count++] = (struct sim_plan_node){.serial = node->serial,
                                                          .type = node->work->type,
                                                          .first_child = (uint32_t)exec->plan_count,
                                                          .child_count = node->child_count,
                                                          .event = SIM_NO_EVENT};
        for (uint32_t i = 0; i < node->child_count; i++)
            if (!append(builder, node->children[i], plan.in_body || node->work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL))
                status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (status == CUDA_SUCCESS) {
        copy_edges(&plan, graph);
        exec->item_count += plan.count;
        status = order(&plan, graph, refusal);
    }
    exec->plans[index] = plan;
    return status;
}

static int by_serial(const void *a, const void *b)
{
    uint64_t left = ((const struct sim_node_place *)a)->serial, right = ((const struct sim_node_place *)b)->serial;
    return left < right ? -1 : left > right;
}

static bool launches_on_device(CUgraphNodeType type)
{
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_GRAPH;
}

static bool runs_in_body(CUgraphNodeType type)
{
    return launches_on_device(type) || type == CU_GRAPH_NODE_TYPE_EMPTY || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

static bool is_pageable_copy(const struct sim_work *work)
{
    return work->type == CU_GRAPH_NODE_TYPE_MEMCPY && !(work->copy.job.check_to && work->copy.job.check_from);
}

// `context` is that of the nodes so far.
static CUresult check(const struct sim_exec *exec, const struct sim_plan *plan, struct sim_graph_node *node,
                      struct sim_context **context, struct sim_refusal *refusal)
{
    const struct sim_work *work = node->work;
    if (plan->in_body && !runs_in_body(work->type))
        return refuse(refusal, node, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
    // Memory of the host that the device does not know counts as a context of its own there.
    if (plan->in_body && is_pageable_copy(work))
        return refuse(refusal, node, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
    if (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
        if (!launches_on_device(work->type) || is_pageable_copy(work))
            return refuse(refusal, node, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
        if (work->context && *context && work->context != *context)
            return refuse(refusal, node, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
    }
    if (work->context)
        *context = work->context;
    return work->type == CU_GRAPH_NODE_TYPE_KERNEL ? sim_kernel_work_check(work) : CUDA_SUCCESS;
}

static CUresult fill(struct builder *builder, struct sim_refusal *refusal)
{
    struct sim_exec *exec = builder->exec;
    struct sim_context *context = NULL;
    exec->state = sim_exec_state_new(exec->item_count, exec->plan_count);
    exec->places = malloc((exec->item_count + 1) * sizeof *exec->places);
    if (!exec->state || !exec->places)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t item = 0;
    for (size_t i = 0; i < exec->plan_count; i++) {
        for (const struct sim_conditional *one = builder->graphs[i]->conditionals; one; one = one->next)
            if (!one->used)
                return refuse(refusal, NULL, HANDLE_UNUSED);
        exec->state->users[i] = builder->graphs[i]->users;
        sim_user_set_hold(exec->state->users[i]);
        for (struct sim_graph_node *node = builder->graphs[i]->first; node; node = node->next, item++) {
            SIM_TRY(check(exec, &exec->plans[i], node, &context, refusal));
            exec->state->items[item] = (struct sim_exec_item){node->work, true};
            sim_work_hold(node->work);
            exec->places[item] = (struct sim_node_place){node->serial, (uint32_t)i, (uint32_t)node->index};
        }
    }
    qsort(exec->places, exec->item_count, sizeof *exec->places, by_serial);
    // A graph without any work cannot be launched from the device.
    SIM_REQUIRE(context || !(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
    return CUDA_SUCCESS;
}

CUresult sim_exec_plan(struct sim_exec *exec, struct sim_graph *graph, struct sim_refusal *refusal)
{
    struct builder builder = {.exec = exec};
    CUresult status = append(&builder, graph, false) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < exec->plan_count && status == CUDA_SUCCESS; i++)
        status = plan_one(&builder, i, refusal);
    if (status == CUDA_SUCCESS)
        status = fill(&builder, refusal);
    free(builder.graphs);
    return status;
}

const struct sim_node_place *sim_exec_place(const struct sim_exec *exec, const struct sim_graph_node *node)
{
    struct sim_node_place wanted = {.serial = node->serial};
    return bsearch(&wanted, exec->places, exec->item_count, sizeof wanted, by_serial);
}
