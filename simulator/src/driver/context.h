// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Contexts: the primary one of each device and those that a program creates.

#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

#include "driver/config.h"
#include "driver/coredump.h"
#include "driver/object.h"

enum { SIM_LIMITS = 8 };

struct sim_green;

struct sim_context {
    struct sim_object base;
    int device;
    bool primary;
    struct sim_green *green;  // of what stands for a green context, which is in the primary one: a reference
    unsigned flags;
    uint64_t id;          // changes when a primary context comes back to life
    _Atomic bool active;  // false once destroyed, and for a primary context that nobody retains
    _Atomic int error;    // what every call reports after a faulting kernel: the device's fault
    CUfunc_cache cache;
    CUsharedconfig shared_config;
    struct sim_coredump coredump;
    _Atomic size_t limits[SIM_LIMITS];
    _Atomic uint64_t peers[SIM_MAX_DEVICES];  // by device, the id of the context whose memory work of this one may use
    pthread_mutex_t lock;                     // guards what follows
    struct sim_stream *streams;
    struct sim_stream *legacy;
};

// The context that the calling thread works in; the reference belongs to the thread.
CUresult sim_current(struct sim_context **context);
// The same, without reporting an earlier fault.
CUresult sim_current_quiet(struct sim_context **context);
CUresult sim_context_find(CUcontext handle, struct sim_context **context);  // takes a reference
// The same, but what stands for a green context is returned itself.
CUresult sim_context_find_face(CUcontext handle, struct sim_context **context);
CUcontext sim_context_handle(struct sim_context *context);
uint64_t sim_context_next_id(void);
CUresult sim_context_status(struct sim_context *context);
// The context and every other one of the device fail from now on, each call for the reason that is given here.
void sim_context_fail(struct sim_context *context, CUresult error, const char *why);
void sim_log_fault(CUresult status);  // why the call under way fails, if it is because the device has failed

CUresult sim_context_init(struct sim_context *context, int device, unsigned flags);
void sim_context_tear_down(struct sim_context *context);
CUresult sim_context_flags_valid(unsigned flags);
void sim_thread_forget_context(struct sim_context *context);
void sim_thread_push(struct sim_context *context);
bool sim_thread_holds(struct sim_context *context);

struct sim_context *sim_primary(int device);  // borrowed; NULL before it was first used
CUresult sim_primary_retain(int device);
CUresult sim_primary_release(int device);
size_t sim_primary_retained(void);
void sim_context_finalize(void *context);

#endif
