// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Executable graphs. Their structure never changes. What their nodes do may be updated, which launches that are under
// way do not notice: they keep the state that they started with.

#ifndef SIM_GRAPH_EXEC_H
#define SIM_GRAPH_EXEC_H

#include "graph/graph.h"
#include "graph/graph_memory.h"

enum { SIM_NO_EVENT = UINT32_MAX };

struct sim_plan_node {
    uint64_t serial;  // of the node of the graph
    CUgraphNodeType type;
    uint32_t first_child, child_count;  // the plans of the graphs that it runs
    uint32_t event;                     // its place among the executable's events, or SIM_NO_EVENT
    uint32_t condition;                 // of a conditional node: among the executable's conditions
    bool inside;                        // of a memory node: the executable both allocates and frees the memory
};

// One graph: its nodes in the order in which they were made.
struct sim_plan {
    size_t count;
    size_t base;  // the place of the first node's item in the state
    struct sim_plan_node *nodes;
    uint32_t *first[2];  // node i's edges are ends[side][first[side][i]] to before ends[side][first[side][i + 1]]
    uint32_t *ends[2];
    CUgraphEdgeData *data;  // of ends[SIM_IN]
    uint32_t *order;        // a topological one
    bool in_body;           // of a conditional node, be it through child graphs
};

struct sim_exec_item {
    struct sim_work *work;
    bool enabled;
};

struct sim_exec_state {
    _Atomic uint32_t references;
    size_t item_count, user_count;
    struct sim_exec_item *items;  // of all plans
    struct sim_user_set **users;  // by plan
};

struct sim_exec_event {
    size_t item;
    struct sim_stream *timeline;  // of a node that records
};

struct sim_exec_condition {
    size_t item;
    _Atomic uint32_t value;
};

struct sim_exec_memory {
    struct sim_graph_memory *memory;  // the item's
    struct sim_plan_node *node;       // the first with it
    bool allocates, frees;
};

struct sim_node_place {  // where the node of a graph is
    uint64_t serial;
    uint32_t plan, node;
};

struct sim_exec {
    struct sim_object base;
    uint32_t id;
    uint64_t flags;
    struct sim_graph *graph;  // a reference, for the count of instances
    bool instance;            // counted there
    struct sim_plan *plans;   // the first is that of the graph itself
    size_t plan_count;
    struct sim_node_place *places;  // in order of the serials
    size_t item_count;
    struct sim_exec_event *events;  // in an order in which they may happen
    size_t event_count;
    struct sim_exec_condition *conditions;
    size_t condition_count;
    struct sim_exec_memory *memories;
    size_t memory_count;
    struct sim_exec_state *state;
    struct sim_point last;  // the latest launch, with a reference to its stream
};

void sim_exec_finalize(void *exec);
// With the lock of graphs held.
CUresult sim_exec_find(CUgraphExec handle, struct sim_exec **exec);
// What the refusal of a graph says beyond its code.
struct sim_refusal {
    struct sim_graph_node *node;
    CUgraphInstantiateResult result;
};
// Fills in all but the events and memories.
CUresult sim_exec_plan(struct sim_exec *exec, struct sim_graph *graph, struct sim_refusal *refusal);
// The place of a node; NULL if the executable was not made from its graph.
const struct sim_node_place *sim_exec_place(const struct sim_exec *exec, const struct sim_graph_node *node);
CUresult sim_exec_launch(struct sim_exec *exec, struct sim_stream *stream);
CUresult sim_exec_upload(struct sim_exec *exec, struct sim_stream *stream);

struct sim_exec_state *sim_exec_state_new(size_t item_count, size_t user_count);
struct sim_exec_state *sim_exec_state_own(struct sim_exec *exec);    // to be changed; NULL when out of memory
void sim_exec_state_drop(struct sim_exec_state *state, bool later);  // see sim_user_set_drop
// What an executable that has been launched keeps is released by the driver.
static inline bool sim_exec_was_launched(const struct sim_exec *exec) { return exec->last.stream != NULL; }

// --- Launches -------------------------------------------------------------------------------------------------

struct sim_launch_event {
    struct sim_event_mark mark;
    struct sim_event_wait wait;
};

struct sim_slot;

struct sim_launch {
    struct sim_exec *exec;         // a reference
    struct sim_exec_state *state;  // a reference
    struct sim_context *context;   // of the stream; the launch's operation keeps it
    struct sim_launch_event *events;
    uintptr_t *left_behind;  // memory that was freed when the graph was launched again
    size_t left_count;

    pthread_mutex_t lock;  // guards what follows
    pthread_cond_t wake;
    struct sim_slot *first, *last;  // nodes that are ready
    unsigned threads;               // that help
    unsigned free;                  // threads that take up what is ready without anything in their way
    bool idle, done;                // the first thread sleeps; nothing is left
};

void sim_launch_run(struct sim_launch *launch);

extern _Atomic size_t sim_graph_launches_pending;

#endif
