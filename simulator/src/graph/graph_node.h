// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Nodes as the driver's functions for them see them; all but sim_graph_add_node and sim_node_of take the lock of graphs
// themselves.

#ifndef SIM_GRAPH_NODE_H
#define SIM_GRAPH_NODE_H

#include "graph/graph.h"

CUresult sim_graph_add_node(struct sim_graph *graph, const struct sim_dependency *dependencies, size_t count,
                            struct sim_work *work, struct sim_graph_node **node);
CUresult sim_node_of(CUgraphNode handle, CUgraphNodeType type, struct sim_graph_node **node);

CUresult sim_node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                      size_t count, struct sim_work *work);
CUresult sim_node_add_child(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            const CUgraphEdgeData *data, size_t count, CUgraph child, bool move);
CUresult sim_node_set_child(CUgraphNode node, CUgraph child, bool move);
// The work of a node of the type, with a reference.
CUresult sim_node_work(CUgraphNode node, CUgraphNodeType type, struct sim_work **work);
CUresult sim_node_set(CUgraphNode node, struct sim_work *work);

#endif
