// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_LAUNCH_H
#define SIM_LAUNCH_H

#include "module.h"
#include "stream.h"

enum sim_portable { SIM_PORTABLE_DEFAULT, SIM_PORTABLE_REQUIRED, SIM_NON_PORTABLE_ALLOWED };  // as the header has them

struct sim_launch_wish {  // what a launch asks for, whichever call it came through
    uint32_t grid[3], block[3], cluster[3], preferred_cluster[3];
    size_t dynamic_shared;
    bool cooperative;
    enum sim_portable cluster_size;
    unsigned shared_mode;  // the values that the cluster's size can have, and two more
    CUstream stream;
    CUevent starts;  // recorded when the kernel starts; NULL for none
    CUevent programmatic;       // recorded when the blocks have triggered it
    bool at_block_start;        // which they do as they start
};

CUresult sim_launch_read(const CUlaunchConfig *config, struct sim_launch_wish *wish);

#endif
