// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "stream.h"

struct sim_event {
    struct sim_object base;
    struct sim_context *context;
    unsigned flags;
    pthread_mutex_t lock;  // guards what follows
    struct sim_point point;  // where it was last recorded; no stream when it never was
    uint64_t recording;      // counts the recordings, so that an overtaken one leaves no time behind
    uint64_t time_ns;
};

CUresult sim_event_find(CUevent handle, struct sim_event **event);
CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream);
void sim_event_finalize(void *event);

#endif
