// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "streams/ipc_event.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "memory/arena.h"
#include "streams/event.h"
#include "memory/ipc_shared.h"
#include "driver/report.h"

static const char KIND[] = "event";

// The latest recording and the process that made it, in one word so that they belong together.
enum { PID_BITS = 22, PID_MASK = (1 << PID_BITS) - 1 };
enum { SHORTEST_PAUSE_NS = 20000, LONGEST_PAUSE_NS = 1000000 };

struct state {
    _Atomic uint64_t recorded, finished;
};

struct sim_event_share {
    struct sim_shared shared;
    struct state *state;
};

struct handle {
    struct sim_shared_place place;
    uint64_t unused[5];
};
_Static_assert(sizeof(struct handle) == sizeof(CUipcEventHandle), "they are copied");

// --- Life -----------------------------------------------------------------------------------------------------

static CUresult map(struct sim_event_share *share)
{
    share->state = sim_shared_map(&share->shared, 0, SIM_PAGE);
    return share->state ? CUDA_SUCCESS : CUDA_ERROR_MAP_FAILED;
}

void sim_event_share_free(struct sim_event_share *share)
{
    if (!share)
        return;
    if (share->state)
        munmap(share->state, SIM_PAGE);
    sim_shared_close(&share->shared);
    free(share);
}

static struct sim_event_share *new_share(void)
{
    struct sim_event_share *share = calloc(1, sizeof *share);
    if (share)
        share->shared.fd = -1;
    return share;
}

CUresult sim_event_share_new(struct sim_event_share **out)
{
    struct sim_event_share *share = new_share();
    if (!share)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = sim_shared_new(KIND, SIM_PAGE, &share->shared);
    if (status == CUDA_SUCCESS)
        status = map(share);
    if (status == CUDA_SUCCESS)
        *out = share;
    else
        sim_event_share_free(share);
    return status;
}

// --- Recordings -----------------------------------------------------------------------------------------------

uint64_t sim_event_share_begin(struct sim_event_share *share)
{
    uint64_t pid = (uint64_t)getpid() & PID_MASK;
    uint64_t old = atomic_load(&share->state->recorded), number;
    do
        number = (old >> PID_BITS) + 1;
    while (!atomic_compare_exchange_weak(&share->state->recorded, &old, number << PID_BITS | pid));
    return number;
}

void sim_event_share_finish(struct sim_event_share *share, uint64_t number)
{
    uint64_t old = atomic_load(&share->state->finished);
    while (old < number && !atomic_compare_exchange_weak(&share->state->finished, &old, number))
        ;
}

uint64_t sim_event_share_latest(struct sim_event_share *share)
{
    return atomic_load(&share->state->recorded) >> PID_BITS;
}

bool sim_event_share_pending(struct sim_event_share *share, uint64_t number)
{
    if (atomic_load(&share->state->finished) >= number)
        return false;
    // A process that is gone never finishes. Whoever still has something to finish maps the event, so this cannot
    // take another process of the same number for it.
    int32_t pid = (int32_t)(atomic_load(&share->state->recorded) & PID_MASK);
    return sim_shared_mapped_by(KIND, share->shared.id, pid) && atomic_load(&share->state->finished) < number;
}

void sim_event_share_wait(struct sim_event_share *share, uint64_t number)
{
    struct timespec pause = {0, SHORTEST_PAUSE_NS};
    while (sim_event_share_pending(share, number)) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < LONGEST_PAUSE_NS)
            pause.tv_nsec *= 2;
    }
}

// --- Handles --------------------------------------------------------------------------------------------------

SIM_API(cuIpcGetEventHandle, (CUipcEventHandle *pHandle, CUevent event), (pHandle, event))
{
    SIM_REQUIRE(pHandle);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_event *found = NULL;
    SIM_TRY(sim_event_find(event, &found));
    if (found->context != context) {
        sim_report("other context", "cuIpcGetEventHandle", 0, 0, NULL,
                   "driver 580 crashes where the current context is not that of the event");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    // An event that was imported is not exported again.
    if (!found->share || found->share->shared.fd < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    struct handle handle = {.place = sim_shared_place(&found->share->shared)};
    memcpy(pHandle, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

static CUresult open_share(const struct handle *handle, struct sim_event_share **out)
{
    struct sim_event_share *share = new_share();
    if (!share)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = CUDA_ERROR_MAP_FAILED;
    if (sim_shared_open(KIND, &handle->place, &share->shared) && share->shared.size == SIM_PAGE)
        status = map(share);
    sim_shared_close(&share->shared);
    if (status == CUDA_SUCCESS)
        *out = share;
    else
        sim_event_share_free(share);
    return status;
}

SIM_API(cuIpcOpenEventHandle, (CUevent *phEvent, CUipcEventHandle handle), (phEvent, handle))
{
    SIM_REQUIRE(phEvent);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct handle opened;
    memcpy(&opened, &handle, sizeof opened);
    if (opened.place.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    struct sim_event_share *share;
    SIM_TRY(open_share(&opened, &share));
    return sim_event_new(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, share, phEvent);
}
