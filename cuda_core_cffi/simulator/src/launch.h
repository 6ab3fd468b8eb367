// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_LAUNCH_H
#define SIM_LAUNCH_H

#include "module.h"
#include "stream.h"

struct sim_launch_wish {  // what a launch asks for, whichever call it came through
    uint32_t grid[3], block[3], cluster[3];
    size_t dynamic_shared;
    bool cooperative;
    CUstream stream;
    CUevent completion;  // recorded when the kernel is done; NULL for none
};

CUresult sim_launch_read(const CUlaunchConfig *config, struct sim_launch_wish *wish);

#endif
