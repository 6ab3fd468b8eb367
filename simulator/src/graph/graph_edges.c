// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Questions about the nodes and edges of graphs, and changes of edges.

#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

// --- Lists for the program ------------------------------------------------------------------------------------

// The rules that all these functions share: without an array only the number is told; an array has a capacity of at
// least one; what it has beyond is set to NULL; edges that are not plain cannot be told without their data.
struct answer {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
    size_t capacity, count;
};

static CUresult begin(struct answer *answer, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                      size_t *capacity)
{
    SIM_REQUIRE(capacity && (from ? *capacity > 0 : !data));
    *answer = (struct answer){from, to, data, from ? *capacity : 0, 0};
    return CUDA_SUCCESS;
}

static void tell(struct answer *answer, struct sim_graph_node *from, struct sim_graph_node *to,
                 const CUgraphEdgeData *data)
{
    if (answer->count < answer->capacity) {
        answer->from[answer->count] = sim_graph_node_handle(from);
        if (answer->to)
            answer->to[answer->count] = sim_graph_node_handle(to);
        if (answer->data)
            answer->data[answer->count] = *data;
    }
    answer->count++;
}

static CUresult end(struct answer *answer, size_t *count)
{
    for (size_t i = answer->count; i < answer->capacity; i++) {
        answer->from[i] = NULL;
        if (answer->to)
            answer->to[i] = NULL;
    }
    *count = answer->from && answer->count > answer->capacity ? answer->capacity : answer->count;
    return CUDA_SUCCESS;
}

static bool lossy(const struct answer *answer, const struct sim_edge *edge)
{
    return answer->from && !answer->data && !sim_edge_is_plain(&edge->data);
}

SIM_API(cuGraphGetNodes, (CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes), (hGraph, nodes, numNodes))
{
    struct answer answer;
    SIM_TRY(begin(&answer, nodes, NULL, NULL, numNodes));
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(hGraph, &graph));
    for (struct sim_graph_node *node = graph->first; node; node = node->next)
        tell(&answer, node, NULL, NULL);
    return end(&answer, numNodes);
}

SIM_API(cuGraphGetRootNodes, (CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes),
        (hGraph, rootNodes, numRootNodes))
{
    struct answer answer;
    SIM_TRY(begin(&answer, rootNodes, NULL, NULL, numRootNodes));
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(hGraph, &graph));
    // Drivers begin with the last one.
    for (struct sim_graph_node *node = graph->last; node; node = node->previous)
        if (!node->edges[SIM_IN].count)
            tell(&answer, node, NULL, NULL);
    return end(&answer, numRootNodes);
}

static CUresult edges_of_graph(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
    struct answer answer;
    SIM_REQUIRE(!from == !to);
    SIM_TRY(begin(&answer, from, to, data, count));
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(handle, &graph));
    for (struct sim_graph_node *node = graph->first; node; node = node->next)
        for (struct sim_edge *edge = node->edges[SIM_OUT].first; edge; edge = edge->next[SIM_OUT]) {
            if (lossy(&answer, edge))
                return CUDA_ERROR_LOSSY_QUERY;
            tell(&answer, node, edge->end[SIM_IN], &edge->data);
        }
    return end(&answer, count);
}

SIM_API(cuGraphGetEdges, (CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges),
        (hGraph, from, to, numEdges))
{
    return edges_of_graph(hGraph, from, to, NULL, numEdges);
}

SIM_API(cuGraphGetEdges_v2,
        (CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData, size_t *numEdges),
        (hGraph, from, to, edgeData, numEdges))
{
    return edges_of_graph(hGraph, from, to, edgeData, numEdges);
}

static CUresult edges_of_node(CUgraphNode handle, int side, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
    struct answer answer;
    SIM_TRY(begin(&answer, nodes, NULL, data, count));
    SIM_GRAPHS_LOCKED();
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_node_find(handle, &node));
    if (!nodes) {
        *count = node->edges[side].count;
        return CUDA_SUCCESS;
    }
    for (struct sim_edge *edge = node->edges[side].first; edge; edge = edge->next[side]) {
        if (lossy(&answer, edge))
            return CUDA_ERROR_LOSSY_QUERY;
        tell(&answer, edge->end[!side], NULL, &edge->data);
    }
    return end(&answer, count);
}

SIM_API(cuGraphNodeGetDependencies, (CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies),
        (hNode, dependencies, numDependencies))
{
    return edges_of_node(hNode, SIM_IN, dependencies, NULL, numDependencies);
}

SIM_API(cuGraphNodeGetDependencies_v2,
        (CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData, size_t *numDependencies),
        (hNode, dependencies, edgeData, numDependencies))
{
    return edges_of_node(hNode, SIM_IN, dependencies, edgeData, numDependencies);
}

SIM_API(cuGraphNodeGetDependentNodes, (CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes),
        (hNode, dependentNodes, numDependentNodes))
{
    return edges_of_node(hNode, SIM_OUT, dependentNodes, NULL, numDependentNodes);
}

SIM_API(cuGraphNodeGetDependentNodes_v2,
        (CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData, size_t *numDependentNodes),
        (hNode, dependentNodes, edgeData, numDependentNodes))
{
    return edges_of_node(hNode, SIM_OUT, dependentNodes, edgeData, numDependentNodes);
}

// --- What edges may be ----------------------------------------------------------------------------------------

// Kernels alone have other ports than 0, and only they can be told by one how far another kernel is.
static CUresult check_from(CUgraphNodeType from, const CUgraphEdgeData *data)
{
    for (size_t i = 0; i < sizeof data->reserved; i++)
        SIM_REQUIRE(!data->reserved[i]);
    SIM_REQUIRE(!data->to_port && data->type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    SIM_REQUIRE(data->from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
    SIM_REQUIRE(!data->from_port || from == CU_GRAPH_NODE_TYPE_KERNEL);
    if (data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        SIM_REQUIRE(data->from_port);
    else
        SIM_REQUIRE(data->from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    return CUDA_SUCCESS;
}

static CUresult check_to(CUgraphNodeType to, const CUgraphEdgeData *data)
{
    SIM_REQUIRE(data->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC || to == CU_GRAPH_NODE_TYPE_KERNEL);
    return CUDA_SUCCESS;
}

static const CUgraphEdgeData plain;

CUresult sim_dependency_read(struct sim_graph *graph, CUgraphNode handle, const CUgraphEdgeData *data,
                             struct sim_dependency *dependency)
{
    struct sim_graph_node *node;
    SIM_TRY(sim_graph_node_find(handle, &node));
    SIM_REQUIRE(node->graph == graph);
    *dependency = (struct sim_dependency){node, data ? *data : plain};
    return check_from(node->work->type, &dependency->data);
}

static CUresult read_dependencies(struct sim_graph *graph, CUgraphNodeType type, const CUgraphNode *nodes,
                                  const CUgraphEdgeData *data, size_t count, struct sim_dependency *out)
{
    uint64_t mark = sim_graph_mark();
    for (size_t i = 0; i < count; i++) {
        SIM_TRY(sim_dependency_read(graph, nodes[i], data ? &data[i] : NULL, &out[i]));
        SIM_TRY(check_to(type, &out[i].data));
        SIM_REQUIRE(out[i].node->mark != mark);
        out[i].node->mark = mark;
    }
    return CUDA_SUCCESS;
}

CUresult sim_dependencies_read(struct sim_graph *graph, CUgraphNodeType type, const CUgraphNode *nodes,
                               const CUgraphEdgeData *data, size_t count, struct sim_dependency **dependencies)
{
    *dependencies = NULL;
    if (!count)
        return CUDA_SUCCESS;
    SIM_REQUIRE(nodes && count <= graph->count);
    *dependencies = malloc(count * sizeof **dependencies);
    return *dependencies ? read_dependencies(graph, type, nodes, data, count, *dependencies) : CUDA_ERROR_OUT_OF_MEMORY;
}

// --- Changes --------------------------------------------------------------------------------------------------

// They are made one after the other: those before one that is refused stay.

static CUresult ends_of(struct sim_graph *graph, CUgraphNode from, CUgraphNode to, struct sim_graph_node *nodes[2])
{
    SIM_TRY(sim_graph_node_find(from, &nodes[SIM_OUT]));
    SIM_TRY(sim_graph_node_find(to, &nodes[SIM_IN]));
    SIM_REQUIRE(nodes[SIM_OUT]->graph == graph && nodes[SIM_IN]->graph == graph);
    return CUDA_SUCCESS;
}

static CUresult add_one(struct sim_graph *graph, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
    struct sim_graph_node *ends[2];
    SIM_TRY(ends_of(graph, from, to, ends));
    SIM_REQUIRE(ends[SIM_OUT] != ends[SIM_IN] && !sim_edge_find(ends[SIM_OUT], ends[SIM_IN]));
    SIM_TRY(check_from(ends[SIM_OUT]->work->type, data));
    SIM_TRY(check_to(ends[SIM_IN]->work->type, data));
    return sim_edge_new(ends[SIM_OUT], ends[SIM_IN], *data) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                    size_t count)
{
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(handle, &graph));
    SIM_REQUIRE(!count || (from && to));
    for (size_t i = 0; i < count; i++)
        SIM_TRY(add_one(graph, from[i], to[i], data ? &data[i] : &plain));
    return CUDA_SUCCESS;
}

SIM_API(cuGraphAddDependencies,
        (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies),
        (hGraph, from, to, numDependencies))
{
    return add(hGraph, from, to, NULL, numDependencies);
}

SIM_API(cuGraphAddDependencies_v2,
        (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData,
         size_t numDependencies),
        (hGraph, from, to, edgeData, numDependencies))
{
    return add(hGraph, from, to, edgeData, numDependencies);
}

// Without its data, an edge of any kind is meant.
static CUresult remove_one(struct sim_graph *graph, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
    struct sim_graph_node *ends[2];
    SIM_TRY(ends_of(graph, from, to, ends));
    struct sim_edge *edge = sim_edge_find(ends[SIM_OUT], ends[SIM_IN]);
    SIM_REQUIRE(edge && (!data || memcmp(&edge->data, data, sizeof *data) == 0));
    sim_edge_free(edge);
    return CUDA_SUCCESS;
}

static CUresult remove_all(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                           size_t count)
{
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(handle, &graph));
    if (!count)
        return CUDA_SUCCESS;
    SIM_SUPPORTED(!graph->memory_nodes);
    SIM_REQUIRE(from && to);
    for (size_t i = 0; i < count; i++)
        SIM_TRY(remove_one(graph, from[i], to[i], data ? &data[i] : NULL));
    return CUDA_SUCCESS;
}

SIM_API(cuGraphRemoveDependencies,
        (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies),
        (hGraph, from, to, numDependencies))
{
    return remove_all(hGraph, from, to, NULL, numDependencies);
}

SIM_API(cuGraphRemoveDependencies_v2,
        (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData,
         size_t numDependencies),
        (hGraph, from, to, edgeData, numDependencies))
{
    return remove_all(hGraph, from, to, edgeData, numDependencies);
}
