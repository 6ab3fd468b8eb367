// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Locking, checkpointing and restoring this process and others of the same user. The memory of the devices is memory of
// the host anyway: a checkpoint leaves it where it is, and NVML says that it is free.

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "driver/device.h"
#include "driver/hold.h"
#include "driver/watch.h"

enum { ARGS_BYTES = 64, UUID_BYTES = 16, FIRST_WITH_PAIRS = 13000 };

// As CUDA 13.0 has it; before, all of it was reserved.
struct restore_args {
    const struct {
        char old[UUID_BYTES], new[UUID_BYTES];
    } *pairs;
    unsigned count;
    char reserved[ARGS_BYTES - sizeof(void *) - sizeof(unsigned)];
};

_Static_assert(sizeof(struct restore_args) == sizeof(CUcheckpointRestoreArgs), "the arguments of cuda.h");
_Static_assert(sizeof(CUcheckpointLockArgs) == ARGS_BYTES && sizeof(CUcheckpointUnlockArgs) == ARGS_BYTES &&
                   sizeof(CUcheckpointCheckpointArgs) == ARGS_BYTES,
               "the arguments of cuda.h");

static bool is_zero(const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (((const char *)bytes)[i])
            return false;
    return true;
}

static CUresult find(int pid, struct sim_control **control)
{
    SIM_REQUIRE(pid > 0);
    if (sim_thread()->in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    *control = pid != getpid() ? sim_control_open(pid) : sim_usable() ? sim_control : NULL;
    if (*control)
        return CUDA_SUCCESS;
    return kill(pid, 0) && errno == ESRCH ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
}

static void leave(struct sim_control *control)
{
    if (control != sim_control)
        sim_control_close(control);
}

static CUresult change(struct sim_control *control, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&control->state, &from, to) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

// These functions need no cuInit where they are called, and are served in every state.
#define CHECKPOINT_API(name, params, args) \
    static CUresult name##_body params; \
    SIM_EXPORT CUresult name params \
    { \
        CUresult sim_status_ = sim_watching() ? sim_watch_enter(#name) : CUDA_SUCCESS; \
        if (sim_status_ == CUDA_SUCCESS) \
            sim_status_ = name##_body args; \
        return sim_watch_leave(#name, sim_status_); \
    } \
    static CUresult name##_body params

CHECKPOINT_API(cuCheckpointProcessGetState, (int pid, CUprocessState *state), (pid, state))
{
    SIM_REQUIRE(state);
    struct sim_control *control;
    SIM_TRY(find(pid, &control));
    uint32_t found = atomic_load(&control->state);
    *state = found >= SIM_LOCKING ? CU_PROCESS_STATE_RUNNING : (CUprocessState)found;
    leave(control);
    return CUDA_SUCCESS;
}

CHECKPOINT_API(cuCheckpointProcessGetRestoreThreadId, (int pid, int *tid), (pid, tid))
{
    SIM_REQUIRE(tid);
    struct sim_control *control;
    SIM_TRY(find(pid, &control));
    leave(control);
    *tid = pid;  // no thread is needed: the first one, which every process has
    return CUDA_SUCCESS;
}

CHECKPOINT_API(cuCheckpointProcessLock, (int pid, CUcheckpointLockArgs *args), (pid, args))
{
    SIM_REQUIRE(!args || is_zero((char *)args + sizeof args->timeoutMs, ARGS_BYTES - sizeof args->timeoutMs));
    struct sim_control *control;
    SIM_TRY(find(pid, &control));
    CUresult status = sim_hold_lock(control, args ? args->timeoutMs : 0);
    leave(control);
    return status;
}

CHECKPOINT_API(cuCheckpointProcessCheckpoint, (int pid, CUcheckpointCheckpointArgs *args), (pid, args))
{
    SIM_REQUIRE(!args || is_zero(args, ARGS_BYTES));
    struct sim_control *control;
    SIM_TRY(find(pid, &control));
    CUresult status = CUDA_ERROR_ILLEGAL_STATE;
    if (atomic_load(&control->state) == CU_PROCESS_STATE_LOCKED)
        status = atomic_load(&control->managed)
                     ? CUDA_ERROR_NOT_SUPPORTED
                     : change(control, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED);
    leave(control);
    return status;
}

// --- Restoring ------------------------------------------------------------------------------------------------

static int gpu_of(const char uuid[UUID_BYTES])
{
    for (int i = 0; i < sim_config()->devices; i++) {
        char known[UUID_BYTES];
        sim_gpu_uuid(i, known);
        if (memcmp(known, uuid, UUID_BYTES) == 0)
            return i;
    }
    return -1;
}

// Every GPU has to be named once as the old and once as the new one.
static CUresult read_pairs(const struct restore_args *args, int new_of[SIM_MAX_DEVICES])
{
    uint32_t old_seen = 0, new_seen = 0;
    SIM_REQUIRE(args->pairs && args->count == (unsigned)sim_config()->devices);
    for (unsigned i = 0; i < args->count; i++) {
        int old = gpu_of(args->pairs[i].old), new = gpu_of(args->pairs[i].new);
        SIM_REQUIRE(old >= 0 && new >= 0 && !(old_seen >> old & 1) && !(new_seen >> new & 1));
        old_seen |= 1u << old;
        new_seen |= 1u << new;
        new_of[old] = new;
    }
    return CUDA_SUCCESS;
}

CHECKPOINT_API(cuCheckpointProcessRestore, (int pid, CUcheckpointRestoreArgs *args), (pid, args))
{
    int new_of[SIM_MAX_DEVICES];
    for (int i = 0; i < SIM_MAX_DEVICES; i++)
        new_of[i] = i;
    if (args && !is_zero(args, ARGS_BYTES)) {
        struct restore_args given;
        memcpy(&given, args, sizeof given);
        SIM_REQUIRE(sim_config()->driver_version >= FIRST_WITH_PAIRS);
        SIM_REQUIRE(is_zero(given.reserved, sizeof given.reserved));
        SIM_TRY(read_pairs(&given, new_of));
    }
    struct sim_control *control;
    SIM_TRY(find(pid, &control));
    CUresult status = change(control, CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED);
    for (int i = 0; i < SIM_MAX_DEVICES && status == CUDA_SUCCESS; i++)
        atomic_store(&control->moved[i], (uint8_t)(i ^ new_of[i ^ atomic_load(&control->moved[i])]));
    leave(control);
    return status;
}

CHECKPOINT_API(cuCheckpointProcessUnlock, (int pid, CUcheckpointUnlockArgs *args), (pid, args))
{
    SIM_REQUIRE(!args || is_zero(args, ARGS_BYTES));
    struct sim_control *control;
    SIM_TRY(find(pid, &control));
    CUresult status = change(control, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING);
    if (status == CUDA_SUCCESS)
        sim_hold_wake(control);
    leave(control);
    return status;
}
