// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Updates of executable graphs by graphs.

#ifndef SIM_GRAPH_UPDATE_H
#define SIM_GRAPH_UPDATE_H

#include "graph/graph_exec.h"

// Gives a plan, and those of what its nodes run, the work and user objects of a graph that is like the one that the
// plan was made from. Changes nothing if it is not.
CUresult sim_exec_update(struct sim_exec *exec, size_t plan, struct sim_graph *graph,
                         CUgraphExecUpdateResultInfo *result);

#endif
