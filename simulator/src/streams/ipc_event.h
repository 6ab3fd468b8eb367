// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What the processes that use one event know of it in common: which recording is the latest, and which is done.
// Recordings are numbered from 1 on, whoever makes them.

#ifndef SIM_IPC_EVENT_H
#define SIM_IPC_EVENT_H

#include "driver/sim.h"

struct sim_event_share;

CUresult sim_event_share_new(struct sim_event_share **share);
void sim_event_share_free(struct sim_event_share *share);       // NULL is fine
uint64_t sim_event_share_begin(struct sim_event_share *share);  // the number of a new recording
void sim_event_share_finish(struct sim_event_share *share, uint64_t number);
uint64_t sim_event_share_latest(struct sim_event_share *share);  // 0 if it was never recorded
bool sim_event_share_pending(struct sim_event_share *share, uint64_t number);
void sim_event_share_wait(struct sim_event_share *share, uint64_t number);

#endif
