// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Graphs as a program describes them. One lock guards all of them, and what is made of them: it is the outermost lock,
// and nothing runs under it.

#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "graph/graph_users.h"
#include "graph/graph_work.h"

enum { SIM_IN, SIM_OUT };  // the edges to a node, and from it

struct sim_edge {
    struct sim_graph_node *end[2];           // whose list of each kind it is in: SIM_IN the later node's, SIM_OUT
    struct sim_edge *next[2], *previous[2];  // the earlier node's
    CUgraphEdgeData data;
};

struct sim_edges {
    struct sim_edge *first, *last;
    size_t count;
};

struct sim_graph_node {
    struct sim_object base;
    struct sim_graph *graph;
    struct sim_graph_node *next, *previous;  // in the order in which the graph's nodes were made
    uint64_t serial;                         // of the process
    uint32_t id;                             // in the graph
    struct sim_work *work;
    struct sim_edges edges[2];
    struct sim_graph **children;  // of a node that runs graphs
    uint32_t child_count;
    // Scratch for one operation.
    uint64_t mark;
    size_t index;
};

struct sim_origin {  // which node of a graph a clone's node comes from
    uint64_t serial;
    CUgraphNode twin;
};

struct sim_graph {
    struct sim_object base;
    uint32_t id, next_node;
    struct sim_graph_node *first, *last;
    size_t count, edge_count;
    struct sim_graph_node *owner;            // the node that runs it; NULL for a graph of its own
    bool moved;                              // it was the program's, and belongs to its owner now
    size_t memory_nodes, conditional_nodes;  // in it and in what its nodes run
    bool captured;                           // a capture adds to it
    size_t instances;                        // executables that there are, if it has memory nodes
    struct sim_origin *origins;              // of a clone, in order of the serials
    size_t origin_count;
    struct sim_user_set *users;
    struct sim_conditional *conditionals;  // its handles
};

void sim_graphs_enter(void);
void sim_graphs_leave(int *unused);
// Holds the lock to the end of the scope.
#define SIM_GRAPHS_LOCKED() \
    SIM_UNUSED int sim_graphs_locked_ __attribute__((cleanup(sim_graphs_leave))) = (sim_graphs_enter(), 0)

// With the lock held, for all that follows. What is found stays while the lock is held.
CUresult sim_graph_find(CUgraph handle, struct sim_graph **graph);
CUresult sim_graph_node_find(CUgraphNode handle, struct sim_graph_node **node);
static inline CUgraph sim_graph_handle(const struct sim_graph *graph) { return (CUgraph)sim_object_handle(graph); }
static inline CUgraphNode sim_graph_node_handle(const struct sim_graph_node *node)
{
    return node ? (CUgraphNode)sim_object_handle(node) : NULL;
}

static inline bool sim_graph_is_body(const struct sim_graph *graph)  // of a conditional node
{
    return graph->owner && graph->owner->work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

struct sim_graph *sim_graph_new(struct sim_graph_node *owner);  // NULL when out of memory
void sim_graph_free(struct sim_graph *graph);                   // and all that its nodes run
CUresult sim_graph_clone(const struct sim_graph *graph, struct sim_graph_node *owner, struct sim_graph **clone);
uint64_t sim_graph_mark(void);  // a value that no node has
// Adds to the counts of a graph and of those that it is run by.
void sim_graph_count(struct sim_graph *graph, size_t memory_nodes, size_t conditional_nodes);

struct sim_dependency {
    struct sim_graph_node *node;
    CUgraphEdgeData data;
};

// Takes a reference to the work.
CUresult sim_graph_attach(struct sim_graph *graph, const struct sim_dependency *dependencies, size_t count,
                          struct sim_work *work, struct sim_graph_node **node);
void sim_graph_node_free(struct sim_graph_node *node);
struct sim_edge *sim_edge_new(struct sim_graph_node *from, struct sim_graph_node *to, CUgraphEdgeData data);
void sim_edge_free(struct sim_edge *edge);
struct sim_edge *sim_edge_find(struct sim_graph_node *from, struct sim_graph_node *to);
// Reads one dependency that a program names: a node of the graph, and what the edge from it is; NULL for a plain one.
CUresult sim_dependency_read(struct sim_graph *graph, CUgraphNode node, const CUgraphEdgeData *data,
                             struct sim_dependency *dependency);
// Reads what a program says the dependencies of a node of a type are, none twice. The caller frees the array.
CUresult sim_dependencies_read(struct sim_graph *graph, CUgraphNodeType type, const CUgraphNode *nodes,
                               const CUgraphEdgeData *data, size_t count, struct sim_dependency **dependencies);

static inline bool sim_edge_is_plain(const CUgraphEdgeData *data)
{
    return !data->from_port && !data->to_port && !data->type;
}

#endif
