// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Green contexts: the primary context of a device with some of its resources.
//
// Everything but work lives in the primary context. A stream belongs to the green context that it was made for, and its
// kernels run on the multiprocessors of that one. As a CUcontext, a green context has a second object: a `sim_context`
// that leads to the primary one, and is on the stacks of the threads where it is current.

#ifndef SIM_GREEN_H
#define SIM_GREEN_H

#include "driver/context.h"
#include "driver/resources.h"

struct sim_green {
    struct sim_object base;
    struct sim_context *home;   // the primary context; a reference
    struct sim_context *face;   // the CUcontext; valid as long as the handle is
    struct sim_stream *legacy;  // the default stream where the context is current; likewise
    struct sim_stream *fence;   // what the whole context waits for; a reference
    uint64_t id;
    struct sim_provision provision;
    uint16_t sms[SIM_MAX_SMS];  // the numbers of its multiprocessors
};

void sim_green_finalize(void *green);
CUresult sim_green_find(CUgreenCtx handle, struct sim_green **green);  // takes a reference
struct sim_green *sim_current_green(void);  // of the calling thread; borrowed, NULL where none is current
// A stream that runs beside the legacy default stream, as all of a green context do.
CUresult sim_green_stream(struct sim_green *green, int priority, struct sim_stream **stream);
// What calls say of a stream whose green context is gone.
CUresult sim_green_detached(void);
bool sim_green_lets_go(const struct sim_green *green);  // whether to destroy one of its streams is no failure
void sim_greens_retire_of(struct sim_context *home);

#endif
