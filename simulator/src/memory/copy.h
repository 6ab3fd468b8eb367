// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Copies and fills as streams run them.

#ifndef SIM_COPY_H
#define SIM_COPY_H

#include "streams/stream.h"

// What a function's signature says of an operand.
enum sim_side { SIM_SIDE_DEVICE, SIM_SIDE_ANY };

struct sim_operand {
    uintptr_t address;
    enum sim_side side;
    size_t pitch, slice;  // bytes from row to row and from layer to layer
    CUarray array;        // whose memory it is, or NULL
    size_t origin[3];     // where in the array
};

struct sim_copy {
    struct sim_operand to, from;
    size_t width, height, depth;   // bytes, rows, layers
    CUmemcpySrcAccessOrder order;  // of a copy with attributes; else CU_MEMCPY_SRC_ACCESS_ORDER_INVALID
    bool between;                  // contexts: then no device needs access to the memory of the other
};

// What is left to do when a copy's turn comes.
struct sim_copy_job {
    struct sim_copy copy;
    const char *function;
    bool check_from, check_to;  // memory of the driver's that might be freed before the job runs
    int reach;                  // the device that has to have access, counted from 1; 0 for that where it runs
};
void sim_copy_run(struct sim_context *context, const struct sim_copy_job *job);
// Whether the driver knows the memory of an operand; memory that no copy in the context may use is an error.
CUresult sim_copy_place(const struct sim_context *context, const struct sim_copy *copy,
                        const struct sim_operand *operand, bool *known);
size_t sim_copy_span(const struct sim_copy *copy, const struct sim_operand *operand);  // bytes from first to last
CUresult sim_copy_of_box(const CUDA_MEMCPY3D *box, struct sim_copy *copy);

// Copies in stream order; `wait` for the functions that return when the copy is done.
CUresult sim_copy_submit(struct sim_stream *stream, const struct sim_copy *copy, bool wait);

struct sim_fill {
    uintptr_t address;
    size_t pitch, width, height;  // width in elements
    unsigned element;             // bytes: 1, 2 or 4
    uint32_t value;
};

struct sim_fill_job {
    struct sim_fill fill;
    const char *function;
    bool check;
};
void sim_fill_run(struct sim_context *context, const struct sim_fill_job *job);
CUresult sim_fill_check(const struct sim_fill *fill);
size_t sim_fill_span(const struct sim_fill *fill);

CUresult sim_fill_submit(struct sim_stream *stream, const struct sim_fill *fill, bool wait);

// Runs short work at once where the stream allows it, queues it otherwise, and waits if asked to.
CUresult sim_do(struct sim_stream *stream, sim_work work, const void *payload, size_t size, bool at_once, bool wait);

#endif
