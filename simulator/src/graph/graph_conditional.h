// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Conditional nodes, and the values that kernels set to decide what they run.

#ifndef SIM_GRAPH_CONDITIONAL_H
#define SIM_GRAPH_CONDITIONAL_H

#include "graph/graph.h"

struct sim_conditional {
    struct sim_object base;
    struct sim_graph *graph;      // the handle is one of this graph's; NULL once that has gone
    struct sim_context *context;  // a reference
    uint32_t value;               // at the beginning of each launch, if the flags say so
    unsigned flags;
    bool used;                     // by a node
    struct sim_conditional *next;  // of the graph's
};

void sim_conditional_finalize(void *conditional);
void sim_conditionals_end(struct sim_graph *graph);  // the graph goes
CUresult sim_node_add_conditional(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  const CUgraphEdgeData *data, size_t count, CUDA_CONDITIONAL_NODE_PARAMS *params);
// Which of the graphs of a node runs for a value; its number of graphs for none.
uint32_t sim_conditional_choice(const struct sim_work *work, uint32_t value);

#endif
