// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "streams/ipc_event.h"
#include "streams/stream.h"

struct sim_event {
    struct sim_object base;
    struct sim_context *context;
    unsigned flags;
    struct sim_event_share *share;              // NULL unless other processes may use the event
    struct sim_capture_event *_Atomic capture;  // if it was last recorded in a captured stream
    pthread_mutex_t lock;                       // guards what follows
    struct sim_point point;                     // where it was last recorded; no stream when it never was
    uint64_t recording;                         // counts the recordings, so that an overtaken one leaves no time behind
    uint64_t time_ns;
    uint64_t shared_number;  // of the recording at `point`; if it is not the latest, the latest was made elsewhere
};

// Takes the share, also when it fails.
CUresult sim_event_new(struct sim_context *context, unsigned flags, struct sim_event_share *share, CUevent *handle);
CUresult sim_event_find(CUevent handle, struct sim_event **event);
CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream);
CUresult sim_event_wait(struct sim_event *event, struct sim_stream *stream);  // what follows waits; nothing is captured
void sim_event_finalize(void *event);
bool sim_event_is_recorded(struct sim_event *event);

// A recording that is announced when the host asks for it, and made by something other than a stream: a graph.
struct sim_event_mark {
    struct sim_event *event;      // a reference
    struct sim_stream *timeline;  // a reference
    uint64_t number, recording, shared_number;
};
void sim_event_mark_begin(struct sim_event *event, struct sim_stream *timeline, struct sim_event_mark *mark);
void sim_event_mark_end(struct sim_event_mark *mark);  // the moment has come
// What waiting for the event now means: a moment of a stream, of another process, or (neither) nothing.
struct sim_event_wait {
    struct sim_point point;    // with a reference to its stream
    struct sim_event *shared;  // with a reference; then
    uint64_t number;
};
void sim_event_wait_begin(struct sim_event *event, struct sim_event_wait *wait);
bool sim_event_wait_over(const struct sim_event_wait *wait);
void sim_event_wait_end(struct sim_event_wait *wait, bool wait_for_it);

#endif
