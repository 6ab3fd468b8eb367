// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// A process can be locked by another process. All that this needs is in the page that processes share: the state, and
// how many calls and how much work are under way. A call counts itself first and then reads the state; a lock sets the
// state first and then reads the counts. So one of the two always sees the other.

#include "driver/hold.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver/sim.h"

enum { LOOK_AGAIN_NS = 100000000, FIRST_NAP_NS = 50000, LONGEST_NAP_NS = 2000000, NS_IN_MS = 1000000 };

// Calls that only tell about devices, or about the contexts of the calling thread, are served in any state.
static const char *const served[] = {
    "cuCtxGetApiVersion", "cuCtxGetCurrent",  "cuCtxGetDevice",   "cuCtxGetFlags",         "cuCtxGetId",
    "cuCtxPopCurrent",    "cuCtxPushCurrent", "cuCtxSetCurrent",  "cuDeviceCanAccessPeer", "cuDeviceComputeCapability",
    "cuDeviceGet",        "cuDeviceTotalMem", "cuGetExportTable",
};

static bool is_served(const char *function)
{
    for (size_t i = 0; i < SIM_COUNT(served); i++)
        if (strncmp(function, served[i], strlen(served[i])) == 0)
            return !strstr(function, "MemPool") && !strstr(function, "GraphMem");
    return false;
}

static bool is_dead(int pid) { return kill(pid, 0) && errno == ESRCH; }

void sim_hold_wake(struct sim_control *control)
{
    syscall(SYS_futex, &control->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// The process that was locking may have died: nothing else would end its attempt.
static uint32_t state_of(struct sim_control *control)
{
    uint32_t state = atomic_load(&control->state);
    if (state >= SIM_LOCKING && is_dead((int)(state - SIM_LOCKING)) &&
        atomic_compare_exchange_strong(&control->state, &state, CU_PROCESS_STATE_RUNNING)) {
        sim_hold_wake(control);
        state = CU_PROCESS_STATE_RUNNING;
    }
    return state;
}

static void wait_until_running(struct sim_control *control)
{
    const struct timespec look_again = {0, LOOK_AGAIN_NS};
    uint32_t state;
    while ((state = state_of(control)) != CU_PROCESS_STATE_RUNNING)
        syscall(SYS_futex, &control->state, FUTEX_WAIT, state, &look_again, NULL, 0);
}

static _Atomic uint32_t *calls_of(const struct sim_thread *self)
{
    return &sim_control->slots[self->id % SIM_CALL_SLOTS].calls;
}

void sim_call_begin(struct sim_thread *self, const char *function)
{
    if (!self->id || self->calls++)  // without a state of its own, or inside another call
        return;
    for (;;) {
        atomic_fetch_add(calls_of(self), 1);
        self->counted = SIM_LIKELY(atomic_load(&sim_control->state) == CU_PROCESS_STATE_RUNNING);
        if (self->counted)
            return;
        atomic_fetch_sub(calls_of(self), 1);
        if (is_served(function))
            return;
        wait_until_running(sim_control);
    }
}

void sim_call_end(struct sim_thread *self)
{
    if (!self->id || --self->calls || !self->counted)
        return;
    self->counted = false;
    atomic_fetch_sub(calls_of(self), 1);
}

static bool is_quiet(struct sim_control *control)
{
    for (size_t i = 0; i < SIM_CALL_SLOTS; i++)
        if (atomic_load(&control->slots[i].calls))
            return false;
    return !atomic_load(&control->work);  // after the calls, which submit it
}

CUresult sim_hold_lock(struct sim_control *control, unsigned timeout_ms)
{
    uint64_t end = sim_now_ns() + (uint64_t)timeout_ms * NS_IN_MS;
    uint32_t state = state_of(control), locking = SIM_LOCKING + (uint32_t)getpid();
    if (state != CU_PROCESS_STATE_RUNNING || !atomic_compare_exchange_strong(&control->state, &state, locking))
        return CUDA_ERROR_ILLEGAL_STATE;
    CUresult status = CUDA_SUCCESS;
    struct timespec nap = {0, FIRST_NAP_NS};
    while (status == CUDA_SUCCESS && !is_quiet(control)) {
        if (timeout_ms && sim_now_ns() >= end)
            status = CUDA_ERROR_NOT_READY;
        nanosleep(&nap, NULL);
        nap.tv_nsec = 2 * nap.tv_nsec < LONGEST_NAP_NS ? 2 * nap.tv_nsec : LONGEST_NAP_NS;
    }
    atomic_store(&control->state, status == CUDA_SUCCESS ? CU_PROCESS_STATE_LOCKED : CU_PROCESS_STATE_RUNNING);
    if (status != CUDA_SUCCESS)
        sim_hold_wake(control);
    return status;
}
