// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What may change in an executable graph.

#ifndef SIM_GRAPH_CHANGE_H
#define SIM_GRAPH_CHANGE_H

#include "graph/graph_exec.h"

// May `fresh` take the place of `old` in an executable with these flags? CU_GRAPH_EXEC_UPDATE_SUCCESS, or why not.
CUgraphExecUpdateResult sim_work_change(const struct sim_work *old, const struct sim_work *fresh, uint64_t flags);

#endif
