// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Fault injection and the trace of calls. Both cost nothing until they are used.

#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include "driver/sim.h"

bool sim_watching(void);
CUresult sim_watch_enter(const char *function);
CUresult sim_watch_leave(const char *function, CUresult status);  // for what may be called before cuInit
bool sim_usable(void);                                            // the driver has been started, in this process

#endif
