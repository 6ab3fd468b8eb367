// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What the parts of capture share, all with the lock of graphs held.

#ifndef SIM_CAPTURE_STATE_H
#define SIM_CAPTURE_STATE_H

#include "streams/capture.h"
#include "graph/graph.h"

struct sim_capture {
    size_t references;  // of streams and events
    uint64_t id;
    CUstreamCaptureMode mode;
    uint64_t thread;          // that began it
    struct sim_graph *graph;  // NULL once it has ended
    bool existing;            // the graph was there before
    bool invalid;
    struct sim_stream *origin;  // not looked into
    struct sim_capture_stream *streams;
    struct sim_graph_node **loose;  // ends of streams that went away
    size_t loose_count;
    struct sim_capture *next, **link;  // of those that have not ended
};

// A set of nodes that comes before what is captured next.
struct sim_capture_set {
    struct sim_dependency *nodes;
    size_t count, capacity;
};

struct sim_capture_stream {
    struct sim_capture *capture;  // a reference
    struct sim_stream *stream;    // while it is captured
    struct sim_capture_set set;
    CUgraphNode *handles;  // what the program was told of the set
    CUgraphEdgeData *data;
    struct sim_capture_stream *next, **link;
};

struct sim_capture_event {
    struct sim_capture *capture;  // a reference; it may have ended
    struct sim_capture_set set;
};

// Makes the stream part of a capture, with nothing before its next node.
CUresult sim_capture_join(struct sim_capture *capture, struct sim_stream *stream, struct sim_capture_stream **out);
void sim_capture_leave(struct sim_capture_stream *part);
void sim_capture_drop(struct sim_capture *capture);
CUresult sim_capture_set_add(struct sim_capture_set *set, const struct sim_dependency *nodes, size_t count);
CUresult sim_capture_set_copy(struct sim_capture_set *set, const struct sim_capture_set *from);
CUresult sim_capture_set_event(struct sim_event *event, struct sim_capture *capture, const struct sim_capture_set *set);
void sim_capture_invalidate(struct sim_capture *capture);
// The part of a stream in a capture that is going well.
CUresult sim_capture_part(struct sim_stream *stream, struct sim_capture_stream **part);
extern struct sim_capture *sim_capture_first;  // of those that have not ended

#endif
