// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// The handles of streams and of events.
#ifndef CCC_TIMELINE_H
#define CCC_TIMELINE_H

#include "handles/ccc_end.h"

// What streams and events have in common; an event has no more.
typedef struct ccc_timeline {
    ccc_handle handle;
    _Atomic(uint64_t) source;  // the number of a stream, or of the stream that recorded an event
    ccc_handle *original;      // the handle that this one stands for, or NULL
} ccc_timeline;

typedef struct ccc_stream {
    ccc_timeline timeline;
    _Atomic(CUevent) spare;    // an event for others to wait for it
    ccc_handle *next, **link;  // of a stream of ours: the next of them, and what points to this one
    CUevent mark;              // of a stream of ours, like the next members: see ccc_idle.h
    unsigned int marked;       // in which round the mark was recorded
    int quiet;                 // it had no work when it was last seen outside of a capture
    int followed;              // an executable of a graph was launched in it, which keeps something
} ccc_stream;

static inline ccc_timeline *ccc_as_timeline(const ccc_handle *handle) { return (ccc_timeline *)handle; }

static inline ccc_stream *ccc_as_stream(const ccc_handle *handle) { return (ccc_stream *)handle; }

#endif
