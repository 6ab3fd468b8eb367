/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes and edges of a graph. */
#ifndef CCC_GRAPH_EDGES_H
#define CCC_GRAPH_EDGES_H

#include "ccc_graph_exec.h"

/* The nodes of a graph and their types into room for *count, then how many there are. */
static int ccc_graph_nodes(ccc_box *graph, uint64_t *nodes, int *types, size_t *count)
{
    size_t room = *count;
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    CUresult result = cuGraphGetNodes(CCC_GRAPH_OF(graph), NULL, count);
    const char *call = "cuGraphGetNodes";
    if (result == CUDA_SUCCESS && *count && *count <= room)
        result = cuGraphGetNodes(CCC_GRAPH_OF(graph), (CUgraphNode *)nodes, count);
    for (size_t i = 0; result == CUDA_SUCCESS && *count <= room && i < *count; i++) {
        CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
        call = "cuGraphNodeGetType";
        result = cuGraphNodeGetType((CUgraphNode)(uintptr_t)nodes[i], &type);
        types[i] = (int)type;
    }
    ccc_graph_leave(graph);
    return result ? ccc_fail((int)result, call) : 0;
}

/* The type of one node. */
static int ccc_graph_node_type(ccc_box *graph, uint64_t node, int *type)
{
    CUgraphNodeType found = CU_GRAPH_NODE_TYPE_EMPTY;
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    CUresult result = cuGraphNodeGetType((CUgraphNode)(uintptr_t)node, &found);
    ccc_graph_leave(graph);
    *type = (int)found;
    return result ? ccc_fail((int)result, "cuGraphNodeGetType") : 0;
}

/* Room for edges: with data, because without it the driver does not tell of edges that have some. */
typedef struct ccc_edges {
    size_t count;
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
} ccc_edges;

static int ccc_edges_room(ccc_edges *edges, size_t count)
{
    edges->count = count;
    edges->from = calloc(count + 1, sizeof *edges->from);
    edges->to = calloc(count + 1, sizeof *edges->to);
    edges->data = calloc(count + 1, sizeof *edges->data);
    return edges->from && edges->to && edges->data ? 0 : ccc_fail(CCC_NO_MEMORY, "malloc");
}

static void ccc_edges_free(ccc_edges *edges)
{
    free(edges->from);
    free(edges->to);
    free(edges->data);
}

/* The edges of a graph into room for *count, then how many there are. */
static int ccc_graph_edges(ccc_box *graph, uint64_t *from, uint64_t *to, size_t *count)
{
    ccc_edges edges = {0};
    size_t room = *count;
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    CUresult result = CCC_WITH_EDGE_DATA(cuGraphGetEdges)(CCC_GRAPH_OF(graph), NULL, NULL, NULL, count);
    if (result == CUDA_SUCCESS && *count && *count <= room && (status = ccc_edges_room(&edges, *count)) == 0) {
        result = CCC_WITH_EDGE_DATA(cuGraphGetEdges)(CCC_GRAPH_OF(graph), edges.from, edges.to, edges.data, count);
        for (size_t i = 0; result == CUDA_SUCCESS && i < *count; i++) {
            from[i] = (uintptr_t)edges.from[i];
            to[i] = (uintptr_t)edges.to[i];
        }
    }
    ccc_graph_leave(graph);
    ccc_edges_free(&edges);
    return result ? ccc_fail((int)result, "cuGraphGetEdges") : status;
}

/* The edges from a node, or to it, with their data. The lock is held. */
static int ccc_edges_of(ccc_edges *edges, CUgraphNode node, int forward)
{
    CUresult (*ask)(CUgraphNode, CUgraphNode *, CUgraphEdgeData *, size_t *) =
        forward ? CCC_WITH_EDGE_DATA(cuGraphNodeGetDependentNodes) : CCC_WITH_EDGE_DATA(cuGraphNodeGetDependencies);
    const char *call = forward ? "cuGraphNodeGetDependentNodes" : "cuGraphNodeGetDependencies";
    size_t count = 0;
    CUresult result = ask(node, NULL, NULL, &count);
    if (result)
        return ccc_fail((int)result, call);
    int status = ccc_edges_room(edges, count);
    if (status || count == 0)
        return status;
    result = ask(node, forward ? edges->to : edges->from, edges->data, &edges->count);
    for (size_t i = 0; i < count; i++)
        (forward ? edges->from : edges->to)[i] = node;
    return result ? ccc_fail((int)result, call) : 0;
}

/* The neighbours of a node on one side into room for *count, then how many there are. */
static int ccc_graph_neighbours(ccc_box *graph, uint64_t node, int forward, uint64_t *others, size_t *count)
{
    ccc_edges edges = {0};
    size_t room = *count;
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    status = ccc_edges_of(&edges, (CUgraphNode)(uintptr_t)node, forward);
    ccc_graph_leave(graph);
    *count = edges.count;
    for (size_t i = 0; status == 0 && edges.count <= room && i < edges.count; i++)
        others[i] = (uintptr_t)(forward ? edges.to : edges.from)[i];
    ccc_edges_free(&edges);
    return status;
}

static int ccc_holds(const uint64_t *nodes, size_t count, CUgraphNode node)
{
    for (size_t i = 0; i < count; i++)
        if (nodes[i] == (uintptr_t)node)
            return 1;
    return 0;
}

/* Add edges between a node and those of `others` that it has none with, in one call. */
static int ccc_graph_connect(ccc_box *graph, uint64_t node, int forward, const uint64_t *others, size_t count)
{
    ccc_edges have = {0}, wanted = {0};
    CUgraphNode self = (CUgraphNode)(uintptr_t)node;
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    status = ccc_edges_of(&have, self, forward);
    if (status == 0 && (status = ccc_edges_room(&wanted, count)) == 0) {
        wanted.count = 0;
        for (size_t i = 0; i < count; i++) {
            CUgraphNode other = (CUgraphNode)(uintptr_t)others[i];
            int known = ccc_holds(others, i, other); /* named twice */
            for (size_t k = 0; !known && k < have.count; k++)
                known = (forward ? have.to : have.from)[k] == other;
            if (known)
                continue;
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
    ccc_graph_leave(graph);
    ccc_edges_free(&have);
    ccc_edges_free(&wanted);
    return status;
}

/* Remove the edges between a node and those of `others` that it has one with, in one call. */
static int ccc_graph_disconnect(ccc_box *graph, uint64_t node, int forward, const uint64_t *others, size_t count)
{
    ccc_edges edges = {0};
    size_t kept = 0;
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    status = ccc_edges_of(&edges, (CUgraphNode)(uintptr_t)node, forward);
    for (size_t i = 0; status == 0 && i < edges.count; i++)
        if (ccc_holds(others, count, (forward ? edges.to : edges.from)[i])) {
            edges.from[kept] = edges.from[i];
            edges.to[kept] = edges.to[i];
            edges.data[kept++] = edges.data[i];
        }
    if (status == 0 && kept) {
        CUresult result = CCC_WITH_EDGE_DATA(cuGraphRemoveDependencies)(CCC_GRAPH_OF(graph), edges.from, edges.to,
                                                                        edges.data, kept);
        if (result)
            status = ccc_fail((int)result, "cuGraphRemoveDependencies");
    }
    ccc_graph_leave(graph);
    ccc_edges_free(&edges);
    return status;
}

#endif
