// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The life of graphs: made, cloned, destroyed.

#define _GNU_SOURCE
#include "graph/graph.h"

#include <stdlib.h>

#include "streams/capture.h"
#include "graph/graph_conditional.h"

// Recursive, because the end of what a node holds may lead back here.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static uint32_t last_graph;
static uint64_t last_serial, last_mark;

static _Thread_local unsigned depth;  // how often this thread holds the lock

void sim_graphs_enter(void)
{
    pthread_mutex_lock(&lock);
    depth++;
}

void sim_graphs_leave(int *unused)
{
    (void)unused;
    bool outermost = !--depth;
    pthread_mutex_unlock(&lock);
    if (outermost)
        sim_user_objects_end();
}

uint64_t sim_graph_mark(void) { return ++last_mark; }

static CUresult find(enum sim_kind kind, const void *handle, void **object)
{
    if (sim_object_find(kind, handle, object) != SIM_FOUND)
        return CUDA_ERROR_INVALID_VALUE;
    // Handles end under the lock only, so the object stays without the reference.
    sim_object_drop(*object);
    return CUDA_SUCCESS;
}

CUresult sim_graph_find(CUgraph handle, struct sim_graph **graph) { return find(SIM_GRAPH, handle, (void **)graph); }

CUresult sim_graph_node_find(CUgraphNode handle, struct sim_graph_node **node)
{
    return find(SIM_GRAPH_NODE, handle, (void **)node);
}

// --- Graphs ---------------------------------------------------------------------------------------------------

struct sim_graph *sim_graph_new(struct sim_graph_node *owner)
{
    struct sim_graph *graph = sim_object_new(SIM_GRAPH);
    if (!graph)
        return NULL;
    graph->id = ++last_graph;
    graph->owner = owner;
    if (owner)
        sim_object_hide(graph);
    return graph;
}

void sim_graph_count(struct sim_graph *graph, size_t memory_nodes, size_t conditional_nodes)
{
    for (; graph; graph = graph->owner ? graph->owner->graph : NULL) {
        graph->memory_nodes += memory_nodes;
        graph->conditional_nodes += conditional_nodes;
    }
}

// A list of graphs that are still to be looked at.
struct agenda {
    struct sim_graph **graphs;
    size_t count, capacity;
};

static bool later(struct agenda *agenda, struct sim_graph *graph)
{
    if (agenda->count == agenda->capacity) {
        size_t capacity = agenda->capacity ? 2 * agenda->capacity : 16;
        struct sim_graph **grown = realloc(agenda->graphs, capacity * sizeof *grown);
        if (!grown)
            return false;
        agenda->graphs = grown;
        agenda->capacity = capacity;
    }
    agenda->graphs[agenda->count++] = graph;
    return true;
}

static void free_edges(struct sim_graph_node *node)
{
    // Those to the node are those from another one.
    for (struct sim_edge *edge = node->edges[SIM_OUT].first, *next; edge; edge = next) {
        next = edge->next[SIM_OUT];
        free(edge);
    }
}

// The handle may be that of a graph that stays, and be used by another node then.
static void let_condition_go(const struct sim_graph_node *node)
{
    if (node->work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        node->work->conditional.conditional->used = false;
}

static void retire(struct sim_graph *graph)
{
    if (graph->captured)
        sim_capture_graph_ends(graph);
    sim_user_set_drop(graph->users, false);
    sim_conditionals_end(graph);
    free(graph->origins);
    sim_object_retire(graph);
}

// The nodes of a graph, with what they run put off to later by hanging it into one list, so that depth costs no stack
// and no memory.
void sim_graph_free(struct sim_graph *graph)
{
    struct sim_graph_node *nodes = graph->first, *last = graph->last;
    retire(graph);
    while (nodes) {
        struct sim_graph_node *node = nodes;
        for (uint32_t i = 0; i < node->child_count; i++) {
            struct sim_graph *child = node->children[i];
            if (child->first) {
                last->next = child->first;
                last = child->last;
            }
            retire(child);
        }
        free(node->children);
        free_edges(node);
        let_condition_go(node);
        sim_work_drop(node->work);
        nodes = node->next;
        sim_object_retire(node);
    }
}

static bool remember_origins(const struct sim_graph *graph, struct sim_graph *clone)
{
    clone->origins = malloc((graph->count + 1) * sizeof *clone->origins);
    return clone->origins != NULL;
}

// Copies the nodes and edges of one graph; of what its nodes run, only empty graphs.
static CUresult copy_nodes(const struct sim_graph *graph, struct sim_graph *clone, struct agenda *agenda)
{
    if (!remember_origins(graph, clone))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_graph_node **twins = malloc((graph->count + 1) * sizeof *twins);
    CUresult status = twins ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    size_t index = 0;
    for (struct sim_graph_node *node = graph->first; node && status == CUDA_SUCCESS; node = node->next) {
        node->index = index;
        status = sim_graph_attach(clone, NULL, 0, node->work, &twins[index]);
        if (status != CUDA_SUCCESS)
            break;
        struct sim_graph_node *twin = twins[index++];
        clone->origins[clone->origin_count++] = (struct sim_origin){node->serial, sim_graph_node_handle(twin)};
        if (!node->child_count)
            continue;
        // Only nodes that run one graph are cloned: graphs with conditional nodes cannot be.
        twin->children = calloc(1, sizeof(struct sim_graph *));
        struct sim_graph *child = twin->children ? sim_graph_new(twin) : NULL;
        if (child) {
            twin->children[0] = child;
            twin->child_count = 1;
        }
        if (!child || !later(agenda, node->children[0]) || !later(agenda, child))
            status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    // Edges may lead from a later node to an earlier one, so they come last.
    for (struct sim_graph_node *node = graph->first; node && status == CUDA_SUCCESS; node = node->next)
        for (struct sim_edge *edge = node->edges[SIM_IN].first; edge; edge = edge->next[SIM_IN])
            if (!sim_edge_new(twins[edge->end[SIM_OUT]->index], twins[node->index], edge->data)) {
                status = CUDA_ERROR_OUT_OF_MEMORY;
                break;
            }
    free(twins);
    clone->users = graph->users;
    sim_user_set_hold(clone->users);
    return status;
}

CUresult sim_graph_clone(const struct sim_graph *original, struct sim_graph_node *owner, struct sim_graph **out)
{
    struct sim_graph *clone = sim_graph_new(owner);
    if (!clone)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct agenda agenda = {0};
    CUresult status = copy_nodes(original, clone, &agenda);
    while (status == CUDA_SUCCESS && agenda.count) {
        struct sim_graph *to = agenda.graphs[--agenda.count], *from = agenda.graphs[--agenda.count];
        status = copy_nodes(from, to, &agenda);
    }
    free(agenda.graphs);
    if (status == CUDA_SUCCESS)
        *out = clone;
    else
        sim_graph_free(clone);
    return status;
}

// --- Nodes and edges ------------------------------------------------------------------------------------------

static void link_edge(struct sim_edge *edge, int side)
{
    struct sim_edges *list = &edge->end[side]->edges[side];
    edge->next[side] = NULL;
    edge->previous[side] = list->last;
    if (list->last)
        list->last->next[side] = edge;
    else
        list->first = edge;
    list->last = edge;
    list->count++;
}

static void unlink_edge(struct sim_edge *edge, int side)
{
    struct sim_edges *list = &edge->end[side]->edges[side];
    if (edge->previous[side])
        edge->previous[side]->next[side] = edge->next[side];
    else
        list->first = edge->next[side];
    if (edge->next[side])
        edge->next[side]->previous[side] = edge->previous[side];
    else
        list->last = edge->previous[side];
    list->count--;
}

struct sim_edge *sim_edge_new(struct sim_graph_node *from, struct sim_graph_node *to, CUgraphEdgeData data)
{
    struct sim_edge *edge = malloc(sizeof *edge);
    if (!edge)
        return NULL;
    edge->end[SIM_OUT] = from;
    edge->end[SIM_IN] = to;
    edge->data = data;
    link_edge(edge, SIM_OUT);
    link_edge(edge, SIM_IN);
    to->graph->edge_count++;
    return edge;
}

void sim_edge_free(struct sim_edge *edge)
{
    unlink_edge(edge, SIM_OUT);
    unlink_edge(edge, SIM_IN);
    edge->end[SIM_IN]->graph->edge_count--;
    free(edge);
}

struct sim_edge *sim_edge_find(struct sim_graph_node *from, struct sim_graph_node *to)
{
    // Along the shorter of the two lists.
    int side = from->edges[SIM_OUT].count < to->edges[SIM_IN].count ? SIM_OUT : SIM_IN;
    struct sim_edge *edge = side == SIM_OUT ? from->edges[SIM_OUT].first : to->edges[SIM_IN].first;
    while (edge && (edge->end[SIM_OUT] != from || edge->end[SIM_IN] != to))
        edge = edge->next[side];
    return edge;
}

static bool is_memory(const struct sim_work *work)
{
    return work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || work->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult sim_graph_attach(struct sim_graph *graph, const struct sim_dependency *dependencies, size_t count,
                          struct sim_work *work, struct sim_graph_node **out)
{
    struct sim_graph_node *node = sim_object_new(SIM_GRAPH_NODE);
    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_work_hold(work);
    node->work = work;
    node->graph = graph;
    node->serial = ++last_serial;
    node->id = graph->next_node++;
    node->previous = graph->last;
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    graph->count++;
    for (size_t i = 0; i < count; i++)
        if (!sim_edge_new(dependencies[i].node, node, dependencies[i].data)) {
            sim_graph_node_free(node);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    sim_graph_count(graph, is_memory(work), work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
    *out = node;
    return CUDA_SUCCESS;
}

void sim_graph_node_free(struct sim_graph_node *node)
{
    struct sim_graph *graph = node->graph;
    while (node->edges[SIM_IN].first)
        sim_edge_free(node->edges[SIM_IN].first);
    while (node->edges[SIM_OUT].first)
        sim_edge_free(node->edges[SIM_OUT].first);
    size_t memory = is_memory(node->work), conditional = node->work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    let_condition_go(node);
    for (uint32_t i = 0; i < node->child_count; i++) {
        memory += node->children[i]->memory_nodes;
        conditional += node->children[i]->conditional_nodes;
        sim_graph_free(node->children[i]);
    }
    free(node->children);
    sim_graph_count(graph, -memory, -conditional);
    if (node->previous)
        node->previous->next = node->next;
    else
        graph->first = node->next;
    if (node->next)
        node->next->previous = node->previous;
    else
        graph->last = node->previous;
    graph->count--;
    sim_work_drop(node->work);
    sim_object_retire(node);
}

// --- Entry points ---------------------------------------------------------------------------------------------

SIM_API(cuGraphCreate, (CUgraph *phGraph, unsigned int flags), (phGraph, flags))
{
    SIM_REQUIRE(phGraph && !flags);
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph = sim_graph_new(NULL);
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phGraph = sim_graph_handle(graph);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphDestroy, (CUgraph hGraph), (hGraph))
{
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(hGraph, &graph));
    SIM_REQUIRE(!graph->owner && !graph->captured);
    sim_graph_free(graph);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphClone, (CUgraph *phGraphClone, CUgraph originalGraph), (phGraphClone, originalGraph))
{
    SIM_REQUIRE(phGraphClone);
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph, *clone;
    SIM_TRY(sim_graph_find(originalGraph, &graph));
    SIM_SUPPORTED(!graph->memory_nodes && !graph->conditional_nodes && !sim_graph_is_body(graph));
    SIM_TRY(sim_graph_clone(graph, NULL, &clone));
    *phGraphClone = sim_graph_handle(clone);
    return CUDA_SUCCESS;
}

static int by_serial(const void *a, const void *b)
{
    uint64_t left = ((const struct sim_origin *)a)->serial, right = ((const struct sim_origin *)b)->serial;
    return left < right ? -1 : left > right;
}

SIM_API(cuGraphNodeFindInClone, (CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph),
        (phNode, hOriginalNode, hClonedGraph))
{
    SIM_REQUIRE(phNode);
    SIM_GRAPHS_LOCKED();
    struct sim_graph *clone;
    struct sim_graph_node *node, *twin;
    SIM_TRY(sim_graph_find(hClonedGraph, &clone));
    SIM_TRY(sim_graph_node_find(hOriginalNode, &node));
    *phNode = NULL;
    struct sim_origin wanted = {node->serial, NULL}, *origin = NULL;
    if (clone->origin_count)
        origin = bsearch(&wanted, clone->origins, clone->origin_count, sizeof wanted, by_serial);
    SIM_REQUIRE(origin && sim_graph_node_find(origin->twin, &twin) == CUDA_SUCCESS);
    *phNode = origin->twin;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphGetId, (CUgraph hGraph, unsigned int *graphId), (hGraph, graphId))
{
    SIM_REQUIRE(graphId);
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(hGraph, &graph));
    *graphId = graph->id;
    return CUDA_SUCCESS;
}

// --- User objects ---------------------------------------------------------------------------------------------

enum { MOST_REFERENCES = INT32_MAX };

SIM_API(cuGraphRetainUserObject, (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags),
        (graph, object, count, flags))
{
    SIM_REQUIRE(count && count <= MOST_REFERENCES && !(flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE));
    SIM_GRAPHS_LOCKED();
    struct sim_graph *found;
    SIM_TRY(sim_graph_find(graph, &found));
    SIM_HELD struct sim_user_object *user = NULL;
    SIM_TRY(sim_user_object_find(object, &user));
    return sim_user_set_add(&found->users, user, count, flags & CU_GRAPH_USER_OBJECT_MOVE);
}

SIM_API(cuGraphReleaseUserObject, (CUgraph graph, CUuserObject object, unsigned int count), (graph, object, count))
{
    SIM_REQUIRE(count && count <= MOST_REFERENCES);
    SIM_GRAPHS_LOCKED();
    struct sim_graph *found;
    SIM_TRY(sim_graph_find(graph, &found));
    SIM_HELD struct sim_user_object *user = NULL;
    SIM_TRY(sim_user_object_find(object, &user));
    return sim_user_set_remove(&found->users, user, count);
}
