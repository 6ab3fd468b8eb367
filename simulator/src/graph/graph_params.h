// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_GRAPH_PARAMS_H
#define SIM_GRAPH_PARAMS_H

#include "graph/graph_work.h"

// Makes work from the parameters of a node that runs no graph; `like` and `match` are as for sim_work_kernel.
CUresult sim_params_read(const CUgraphNodeParams *params, const struct sim_work *like, bool match,
                         struct sim_work **work);

#endif
