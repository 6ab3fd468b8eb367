// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// The nodes and edges of a graph.
#ifndef CCC_GRAPH_EDGES_H
#define CCC_GRAPH_EDGES_H

#include "graph/ccc_graph_exec.h"

// The nodes of a graph and their types into arrays of *count elements, then how many there are.
static int ccc_graph_nodes(ccc_handle *graph, uint64_t *nodes, int *types, size_t *count)
{
    size_t capacity = *count;
    CCC_ENTER(graph);
    CCC_TRY(cuGraphGetNodes, CCC_GRAPH_OF(graph), NULL, count);
    if (*count == 0 || *count > capacity)
        return 0;
    CCC_TRY(cuGraphGetNodes, CCC_GRAPH_OF(graph), (CUgraphNode *)nodes, count);
    for (size_t i = 0; i < *count; i++) {
        CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
        CCC_TRY(cuGraphNodeGetType, (CUgraphNode)(uintptr_t)nodes[i], &type);
        types[i] = (int)type;
    }
    ccc_graph_found(graph, nodes, *count);
    return 0;
}

// The type of one node.
static int ccc_graph_node_type(ccc_handle *graph, uint64_t node, int *type)
{
    CUgraphNodeType found = CU_GRAPH_NODE_TYPE_EMPTY;
    CCC_ENTER_AT(graph, node);
    CCC_TRY(cuGraphNodeGetType, (CUgraphNode)(uintptr_t)node, &found);
    *type = (int)found;
    return 0;
}

// Allocate arrays for edges: with data, because without it the driver does not tell of edges that have some.
typedef struct ccc_edges {
    size_t count;
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
} ccc_edges;

static int ccc_edges_allocate(ccc_edges *edges, size_t count)
{
    edges->count = count;
    edges->from = calloc(count + 1, sizeof *edges->from);
    edges->to = calloc(count + 1, sizeof *edges->to);
    edges->data = calloc(count + 1, sizeof *edges->data);
    return edges->from && edges->to && edges->data ? 0 : ccc_fail(CCC_NO_MEMORY, "malloc");
}

static int ccc_edges_grow(ccc_edges *edges, size_t capacity)
{
    CUgraphNode *from = realloc(edges->from, capacity * sizeof *from), *to = NULL;
    CUgraphEdgeData *data = NULL;
    if (from)
        edges->from = from;
    if (from && (to = realloc(edges->to, capacity * sizeof *to)))
        edges->to = to;
    if (to && (data = realloc(edges->data, capacity * sizeof *data)))
        edges->data = data;
    return data ? 0 : ccc_fail(CCC_NO_MEMORY, "malloc");
}

static void ccc_edges_free(ccc_edges *edges)
{
    free(edges->from);
    free(edges->to);
    free(edges->data);
}

// Edges, and a map, that are freed at the end of the scope.
#define CCC_EDGES(name) __attribute__((cleanup(ccc_edges_free))) ccc_edges name = {0}
#define CCC_MAP(name) __attribute__((cleanup(ccc_map_end))) ccc_map name = {0}

// The edges of a graph into arrays of *count elements, then how many there are.
static int ccc_graph_edges(ccc_handle *graph, uint64_t *from, uint64_t *to, size_t *count)
{
    CCC_EDGES(edges);
    size_t capacity = *count;
    CCC_ENTER(graph);
    CUresult result = CCC_WITH_EDGE_DATA(cuGraphGetEdges)(CCC_GRAPH_OF(graph), NULL, NULL, NULL, count);
    if (result == CUDA_SUCCESS && *count && *count <= capacity && (status = ccc_edges_allocate(&edges, *count)) == 0) {
        result = CCC_WITH_EDGE_DATA(cuGraphGetEdges)(CCC_GRAPH_OF(graph), edges.from, edges.to, edges.data, count);
        for (size_t i = 0; result == CUDA_SUCCESS && i < *count; i++) {
            from[i] = (uintptr_t)edges.from[i];
            to[i] = (uintptr_t)edges.to[i];
        }
        if (result == CUDA_SUCCESS) {
            ccc_graph_found(graph, from, *count);
            ccc_graph_found(graph, to, *count);
        }
    }
    return result ? ccc_fail((int)result, "cuGraphGetEdges") : status;
}

// Ask the driver for the edges from a node, or to it: how many there are, and what they are unless that is NULL.
static int ccc_edges_ask(CUgraphNode node, int forward, CUgraphNode *others, CUgraphEdgeData *data, size_t *count)
{
    CUresult result = forward ? CCC_WITH_EDGE_DATA(cuGraphNodeGetDependentNodes)(node, others, data, count)
                              : CCC_WITH_EDGE_DATA(cuGraphNodeGetDependencies)(node, others, data, count);
    return result ? ccc_fail((int)result, forward ? "cuGraphNodeGetDependentNodes" : "cuGraphNodeGetDependencies") : 0;
}

// The edges from a node, or to it, with their data. The lock is held.
static int ccc_edges_of(ccc_edges *edges, CUgraphNode node, int forward)
{
    size_t count = 0;
    int status = ccc_edges_ask(node, forward, NULL, NULL, &count);
    if (status || (status = ccc_edges_allocate(edges, count)) || count == 0)
        return status;
    for (size_t i = 0; i < count; i++)
        (forward ? edges->from : edges->to)[i] = node;
    return ccc_edges_ask(node, forward, forward ? edges->to : edges->from, edges->data, &edges->count);
}

// The neighbours of a node on one side into arrays of *count elements, then how many there are.
static int ccc_graph_neighbours(ccc_handle *graph, uint64_t node, int forward, uint64_t *others, size_t *count)
{
    CCC_EDGES(edges);
    size_t capacity = *count;
    CCC_ENTER_AT(graph, node);
    status = ccc_edges_of(&edges, (CUgraphNode)(uintptr_t)node, forward);
    *count = edges.count;
    for (size_t i = 0; status == 0 && edges.count <= capacity && i < edges.count; i++) {
        others[i] = (uintptr_t)(forward ? edges.to : edges.from)[i];
        ccc_graph_found(graph, &others[i], 1);
    }
    return status;
}

static char ccc_named, ccc_connected;  // values in maps of nodes

// Whether it takes less to look at the edges of all the others than at those of the node itself: on the other side.
static int ccc_edges_fewer(CUgraphNode self, int forward, const uint64_t *others, size_t count, int *fewer)
{
    size_t own = 0, sum = count;
    int status = ccc_edges_ask(self, forward, NULL, NULL, &own);
    for (size_t i = 0; status == 0 && sum < own && i < count; i++) {
        size_t degree = 0;
        status = ccc_edges_ask((CUgraphNode)(uintptr_t)others[i], !forward, NULL, NULL, &degree);
        sum += degree;
    }
    *fewer = sum < own;
    return status;
}

// Add those of `more` to `edges`, which has the capacity, that are between `self` and a node of the map; and mark that.
static void ccc_edges_take(ccc_edges *edges, const ccc_edges *more, CUgraphNode self, int forward, ccc_map *nodes)
{
    for (size_t i = 0; i < more->count; i++) {
        uint64_t other = (uintptr_t)(forward ? more->to : more->from)[i];
        if ((forward ? more->from : more->to)[i] != self || ccc_map_find(nodes, other) == NULL)
            continue;
        ccc_map_set(nodes, other, &ccc_connected);
        edges->from[edges->count] = more->from[i];
        edges->to[edges->count] = more->to[i];
        edges->data[edges->count++] = more->data[i];
    }
}

// The edges between a node and others, and a map of the others: to &ccc_connected where there is an edge. The lock is
// held.
static int ccc_edges_between(ccc_edges *edges, ccc_map *nodes, CUgraphNode self, int forward, const uint64_t *others,
                             size_t count)
{
    int fewer = 0;
    int status = ccc_map_reserve(nodes, count);
    for (size_t i = 0; status == 0 && i < count; i++)
        ccc_map_set(nodes, others[i], &ccc_named);
    if (status || (status = ccc_edges_fewer(self, forward, others, count, &fewer)))
        return status;
    size_t capacity = 0;
    for (size_t i = 0; status == 0 && i < (fewer ? count : 1); i++) {
        CCC_EDGES(more);
        status = fewer ? ccc_edges_of(&more, (CUgraphNode)(uintptr_t)others[i], !forward)
                       : ccc_edges_of(&more, self, forward);
        if (status == 0 && edges->count + more.count > capacity)
            status = ccc_edges_grow(edges, capacity = 2 * (edges->count + more.count));
        if (status == 0)
            ccc_edges_take(edges, &more, self, forward, nodes);
    }
    return status;
}

// Add edges between a node and those of `others` that it has none with, in one call.
static int ccc_graph_connect(ccc_handle *graph, uint64_t node, int forward, const uint64_t *others, size_t count)
{
    CCC_EDGES(have);
    CCC_EDGES(wanted);
    CCC_MAP(nodes);
    CUgraphNode self = (CUgraphNode)(uintptr_t)node;
    CCC_ENTER_OR(graph, others, count, status);
    if ((status = ccc_graph_check(graph, &node, 1)) == 0)
        status = ccc_edges_between(&have, &nodes, self, forward, others, count);
    if (status == 0 && (status = ccc_edges_allocate(&wanted, count)) == 0) {
        wanted.count = 0;
        for (size_t i = 0; i < count; i++) {
            CUgraphNode other = (CUgraphNode)(uintptr_t)others[i];
            if (ccc_map_find(&nodes, others[i]) == &ccc_connected)  // or it was named before
                continue;
            ccc_map_set(&nodes, others[i], &ccc_connected);
            wanted.from[wanted.count] = forward ? self : other;
            wanted.to[wanted.count++] = forward ? other : self;
        }
        CUresult result = CUDA_SUCCESS;
        if (wanted.count)
            result = CCC_WITH_EDGE_DATA(cuGraphAddDependencies)(CCC_GRAPH_OF(graph), wanted.from, wanted.to, NULL,
                                                                wanted.count);
        if (result)
            status = ccc_fail((int)result, "cuGraphAddDependencies");
    }
    return status;
}

// Remove the edges between a node and those of `others` that it has one with, in one call.
static int ccc_graph_disconnect(ccc_handle *graph, uint64_t node, int forward, const uint64_t *others, size_t count)
{
    CCC_EDGES(edges);
    CCC_MAP(nodes);
    CCC_ENTER_OR(graph, others, count, status);
    if ((status = ccc_graph_check(graph, &node, 1)) == 0)
        status = ccc_edges_between(&edges, &nodes, (CUgraphNode)(uintptr_t)node, forward, others, count);
    if (status == 0 && edges.count) {
        CUresult result = CCC_WITH_EDGE_DATA(cuGraphRemoveDependencies)(CCC_GRAPH_OF(graph), edges.from, edges.to,
                                                                        edges.data, edges.count);
        if (result)
            status = ccc_fail((int)result, "cuGraphRemoveDependencies");
    }
    return status;
}

#endif
