// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Copies and fills as streams run them.

#ifndef SIM_COPY_H
#define SIM_COPY_H

#include "stream.h"

// What a function's signature says of an operand.
enum sim_side { SIM_SIDE_DEVICE, SIM_SIDE_ANY };

struct sim_operand {
    uintptr_t address;
    enum sim_side side;
    size_t pitch, slice;  // bytes from row to row and from layer to layer
};

struct sim_copy {
    struct sim_operand to, from;
    size_t width, height, depth;  // bytes, rows, layers
    CUmemcpySrcAccessOrder order; // of a copy with attributes; else CU_MEMCPY_SRC_ACCESS_ORDER_INVALID
    bool between;                 // contexts: then no device needs access to the memory of the other
};

// Copies in stream order; `wait` for the functions that return when the copy is done.
CUresult sim_copy_submit(struct sim_stream *stream, const struct sim_copy *copy, bool wait);

struct sim_fill {
    uintptr_t address;
    size_t pitch, width, height;  // width in elements
    unsigned element;             // bytes: 1, 2 or 4
    uint32_t value;
};

CUresult sim_fill_submit(struct sim_stream *stream, const struct sim_fill *fill, bool wait);

// Runs short work at once where the stream allows it, queues it otherwise, and waits if asked to.
CUresult sim_do(struct sim_stream *stream, sim_work work, const void *payload, size_t size, bool at_once, bool wait);

#endif
