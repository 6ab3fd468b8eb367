// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Questions about the nodes and edges of graphs, and changes of edges.

#include <stdlib.h>
#include <string.h>

#include "graph.h"

// --- Lists for the program ------------------------------------------------------------------------------------

// The rules that all these functions share: without an array only the number is told; what an array has beyond is set
// to NULL; edges that are not plain cannot be told without their data.
struct answer {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
    size_t room, count;
};

static CUresult begin(struct answer *answer, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *room)
{
    SIM_REQUIRE(room && (from || !data));
    *answer = (struct answer){from, to, data, from ? *room : 0, 0};
    return CUDA_SUCCESS;
}

static void tell(struct answer *answer, struct sim_graph_node *from, struct sim_graph_node *to,
                 const CUgraphEdgeData *data)
{
    if (answer->count < answer->room) {
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
    for (size_t i = answer->count; i < answer->room; i++) {
        answer->from[i] = NULL;
        if (answer->to)
            answer->to[i] = NULL;
    }
    *count = answer->from && answer->count > answer->room ? answer->room : answer->count;
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
    SIM_REQUIRE(!nodes || *numNodes);
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
    for (struct sim_graph_node *node = graph->last; node; node = node->previous)
        if (!node->edges[SIM_IN].count)
            tell(&answer, node, NULL, NULL);
    return end(&answer, numRootNodes);
}

static CUresult edges_of_graph(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                               size_t *count)
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

static CUresult check_data(const struct sim_graph_node *from, const CUgraphEdgeData *data)
{
    for (size_t i = 0; i < sizeof data->reserved; i++)
        SIM_REQUIRE(!data->reserved[i]);
    SIM_REQUIRE(!data->to_port && data->type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    // Only kernels say when a dependent may start, and they have to for an edge of the programmatic type.
    bool programmatic = data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    SIM_REQUIRE(data->from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER && (!programmatic || data->from_port));
    SIM_REQUIRE(programmatic || data->from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    SIM_REQUIRE(!data->from_port || from->work->type == CU_GRAPH_NODE_TYPE_KERNEL);
    return CUDA_SUCCESS;
}

static const CUgraphEdgeData plain;

static CUresult read_dependencies(struct sim_graph *graph, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                                  size_t *count, bool merge, struct sim_dependency *out)
{
    uint64_t mark = sim_graph_mark();
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        struct sim_graph_node *node;
        SIM_TRY(sim_graph_node_find(nodes[i], &node));
        SIM_REQUIRE(node->graph == graph && (merge || node->mark != mark));
        out[kept] = (struct sim_dependency){node, data ? data[i] : plain};
        SIM_TRY(check_data(node, &out[kept].data));
        kept += node->mark != mark;
        node->mark = mark;
    }
    *count = kept;
    return CUDA_SUCCESS;
}

CUresult sim_dependencies_read(struct sim_graph *graph, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                               size_t *count, bool merge, struct sim_dependency **dependencies)
{
    *dependencies = NULL;
    if (!*count)
        return CUDA_SUCCESS;
    // One more than there are nodes is room for what is refused, or left out.
    SIM_REQUIRE(nodes && (merge || *count <= graph->count));
    *dependencies = malloc((graph->count + 1) * sizeof **dependencies);
    return *dependencies ? read_dependencies(graph, nodes, data, count, merge, *dependencies)
                         : CUDA_ERROR_OUT_OF_MEMORY;
}

// --- Changes --------------------------------------------------------------------------------------------------

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
    SIM_TRY(check_data(ends[SIM_OUT], data));
    // Only a kernel can start before the one that it depends on has ended.
    SIM_REQUIRE(data->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
                ends[SIM_IN]->work->type == CU_GRAPH_NODE_TYPE_KERNEL);
    return sim_edge_new(ends[SIM_OUT], ends[SIM_IN], *data) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                    size_t count)
{
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(handle, &graph));
    SIM_REQUIRE(!count || (from && to));
    // What comes before the one that is refused stays, here and below.
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

// Without data, an edge is meant whatever its kind is.
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
