// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Nodes in general, and those that take no parameters or a graph.

#include "graph/graph_node.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph_memory.h"

// --- Adding ---------------------------------------------------------------------------------------------------

// Nodes that change memory's life stay out of child graphs. In a conditional body they are refused at instantiation.
static CUresult check_place(const struct sim_graph *graph, const struct sim_work *work)
{
    bool memory = work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || work->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
    return memory && graph->owner && !sim_graph_is_body(graph) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

// An allocation is freed once, by its own graph or by others; an executable that does not free it has settled that.
static CUresult check_free(const struct sim_graph *graph, const struct sim_work *work)
{
    if (work->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_SUCCESS;
    const struct sim_graph_memory *memory = work->memory.memory;
    SIM_REQUIRE(memory->freed_by != graph->id && memory->freed_by != memory->home);
    SIM_REQUIRE(graph->id != memory->home || (!memory->freed_by && !graph->instances));
    return CUDA_SUCCESS;
}

CUresult sim_graph_add_node(struct sim_graph *graph, const struct sim_dependency *dependencies, size_t count,
                            struct sim_work *work, struct sim_graph_node **node)
{
    SIM_TRY(check_place(graph, work));
    SIM_TRY(check_free(graph, work));
    SIM_TRY(sim_graph_attach(graph, dependencies, count, work, node));
    if (work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        work->memory.memory->home = graph->id;
    if (work->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        work->memory.memory->freed_by = graph->id;
    return CUDA_SUCCESS;
}

CUresult sim_node_add(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                      size_t count, struct sim_work *work)
{
    SIM_REQUIRE(out);
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_find(handle, &graph));
    struct sim_dependency *after;
    CUresult status = sim_dependencies_read(graph, work->type, dependencies, data, count, &after);
    if (status == CUDA_SUCCESS)
        status = sim_graph_add_node(graph, after, count, work, &node);
    free(after);
    if (status == CUDA_SUCCESS)
        *out = sim_graph_node_handle(node);
    return status;
}

// --- Child graphs ---------------------------------------------------------------------------------------------

static bool runs_in(const struct sim_graph *graph, const struct sim_graph *inside)
{
    for (; inside; inside = inside->owner ? inside->owner->graph : NULL)
        if (inside == graph)
            return true;
    return false;
}

static void put_in(struct sim_graph_node *node, struct sim_graph *child, bool moved)
{
    child->owner = node;
    child->moved = moved;
    sim_object_hide(child);
    node->children[0] = child;
}

CUresult sim_node_add_child(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies,
                            const CUgraphEdgeData *data, size_t count, CUgraph child_handle, bool move)
{
    SIM_REQUIRE(out);
    SIM_WORK_HELD struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_GRAPH, NULL);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph, *child;
    SIM_TRY(sim_graph_find(handle, &graph));
    SIM_TRY(sim_graph_find(child_handle, &child));
    SIM_SUPPORTED(!child->conditional_nodes && !sim_graph_is_body(child));
    SIM_SUPPORTED(move || (!child->memory_nodes && !child->owner));
    SIM_REQUIRE(!move || (!child->owner && !child->instances && !child->captured && !runs_in(child, graph)));
    SIM_REQUIRE(!child->memory_nodes || !graph->owner);
    struct sim_dependency *after;
    struct sim_graph_node *node = NULL;
    CUresult status = sim_dependencies_read(graph, work->type, dependencies, data, count, &after);
    struct sim_graph **children = calloc(1, sizeof *children);
    struct sim_graph *copy = NULL;
    if (status == CUDA_SUCCESS && !children)
        status = CUDA_ERROR_OUT_OF_MEMORY;
    // Cloned first: a graph may be put into itself.
    if (status == CUDA_SUCCESS && !move)
        status = sim_graph_clone(child, NULL, &copy);
    if (status == CUDA_SUCCESS)
        status = sim_graph_attach(graph, after, count, work, &node);
    free(after);
    if (status != CUDA_SUCCESS) {
        if (copy)
            sim_graph_free(copy);
        free(children);
        return status;
    }
    node->children = children;
    node->child_count = 1;
    put_in(node, move ? child : copy, move);
    sim_graph_count(graph, child->memory_nodes, 0);
    *out = sim_graph_node_handle(node);
    return CUDA_SUCCESS;
}

CUresult sim_node_set_child(CUgraphNode handle, CUgraph child_handle, bool move)
{
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    struct sim_graph *child;
    SIM_TRY(sim_node_of(handle, CU_GRAPH_NODE_TYPE_GRAPH, &node));
    SIM_TRY(sim_graph_find(child_handle, &child));
    struct sim_graph *old = node->children[0];
    // Memory stays with the graph that it is in.
    SIM_REQUIRE(!child->conditional_nodes && !child->memory_nodes && !old->memory_nodes && !old->captured);
    SIM_REQUIRE(!move || (!child->owner && !child->captured && !runs_in(child, node->graph)));
    if (!move)
        SIM_TRY(sim_graph_clone(child, NULL, &child));
    put_in(node, child, move);
    sim_graph_count(node->graph, 0, -old->conditional_nodes);
    sim_graph_free(old);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphAddChildGraphNode,
        (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
         CUgraph childGraph),
        (phGraphNode, hGraph, dependencies, numDependencies, childGraph))
{
    return sim_node_add_child(phGraphNode, hGraph, dependencies, NULL, numDependencies, childGraph, false);
}

SIM_API(cuGraphChildGraphNodeGetGraph, (CUgraphNode hNode, CUgraph *phGraph), (hNode, phGraph))
{
    SIM_REQUIRE(phGraph);
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_node_of(hNode, CU_GRAPH_NODE_TYPE_GRAPH, &node));
    *phGraph = sim_graph_handle(node->children[0]);
    return CUDA_SUCCESS;
}

// --- Empty nodes ----------------------------------------------------------------------------------------------

SIM_API(cuGraphAddEmptyNode,
        (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies),
        (phGraphNode, hGraph, dependencies, numDependencies))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_empty(&work));
    return sim_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, work);
}

// --- Any node -------------------------------------------------------------------------------------------------

CUresult sim_node_of(CUgraphNode handle, CUgraphNodeType type, struct sim_graph_node **node)
{
    SIM_TRY(sim_graph_node_find(handle, node));
    SIM_REQUIRE((*node)->work->type == type);
    return CUDA_SUCCESS;
}

CUresult sim_node_work(CUgraphNode handle, CUgraphNodeType type, struct sim_work **work)
{
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_node_of(handle, type, &node));
    *work = node->work;
    sim_work_hold(*work);
    return CUDA_SUCCESS;
}

CUresult sim_node_set(CUgraphNode handle, struct sim_work *work)
{
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_node_of(handle, work->type, &node));
    struct sim_work *old = node->work;
    sim_work_hold(work);
    node->work = work;
    sim_work_drop(old);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetType, (CUgraphNode hNode, CUgraphNodeType *type), (hNode, type))
{
    SIM_REQUIRE(type);
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_node_find(hNode, &node));
    *type = node->work->type;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetContainingGraph, (CUgraphNode hNode, CUgraph *phGraph), (hNode, phGraph))
{
    SIM_REQUIRE(phGraph);
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_node_find(hNode, &node));
    *phGraph = sim_graph_handle(node->graph);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetLocalId, (CUgraphNode hNode, unsigned int *nodeId), (hNode, nodeId))
{
    SIM_REQUIRE(nodeId);
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_node_find(hNode, &node));
    *nodeId = node->id;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetToolsId, (CUgraphNode hNode, unsigned long long *toolsNodeId), (hNode, toolsNodeId))
{
    enum { GRAPH_SHIFT = 32 };
    SIM_REQUIRE(toolsNodeId);
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_node_find(hNode, &node));
    *toolsNodeId = (unsigned long long)node->graph->id << GRAPH_SHIFT | node->id;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphDestroyNode, (CUgraphNode hNode), (hNode))
{
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_node_find(hNode, &node));
    SIM_SUPPORTED(!node->graph->memory_nodes);
    if (node->graph->captured)
        return CUDA_ERROR_ILLEGAL_STATE;
    sim_graph_node_free(node);
    return CUDA_SUCCESS;
}
