// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Holding calls of the API back while a process is locked.

#ifndef SIM_HOLD_H
#define SIM_HOLD_H

#include "driver/sim.h"
#include "driver/usage.h"

// Between running and locked, calls are held back, and those under way, and work, come to their end. The state is this
// and the number of the process that is locking; outside it counts as running.
enum { SIM_LOCKING = 1000 };

// Locks the process; 0 milliseconds: waits as long as it takes.
CUresult sim_hold_lock(struct sim_control *control, unsigned timeout_ms);
void sim_hold_wake(struct sim_control *control);  // it is running again

#endif
