// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "ipc_event.h"
#include "stream.h"

struct sim_event {
    struct sim_object base;
    struct sim_context *context;
    unsigned flags;
    struct sim_event_share *share;  // NULL unless other processes may use the event
    pthread_mutex_t lock;           // guards what follows
    struct sim_point point;  // where it was last recorded; no stream when it never was
    uint64_t recording;      // counts the recordings, so that an overtaken one leaves no time behind
    uint64_t time_ns;
    uint64_t shared_number;  // of the recording at `point`; if it is not the latest, the latest was made elsewhere
};

// Takes the share, also when it fails.
CUresult sim_event_new(struct sim_context *context, unsigned flags, struct sim_event_share *share, CUevent *handle);
CUresult sim_event_find(CUevent handle, struct sim_event **event);
CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream);
void sim_event_finalize(void *event);

#endif
