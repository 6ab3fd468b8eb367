// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Starting the driver, and the gate that every other entry point passes.

#include <stdlib.h>

#include "memory/allocation.h"
#include "driver/context.h"
#include "driver/device.h"
#include "driver/green.h"
#include "streams/event.h"
#include "graph/graph_conditional.h"
#include "graph/graph_exec.h"
#include "code/module.h"
#include "memory/pool.h"
#include "streams/stream.h"
#include "driver/usage.h"
#include "memory/virtual.h"
#include "texture/array.h"
#include "texture/objects.h"
#include "driver/watch.h"

const struct sim_kind_info sim_kinds[SIM_KINDS] = {
    [SIM_CONTEXT] = {"contexts", sizeof(struct sim_context), sim_context_finalize},
    [SIM_STREAM] = {"streams", sizeof(struct sim_stream), sim_stream_finalize},
    [SIM_EVENT] = {"events", sizeof(struct sim_event), sim_event_finalize},
    [SIM_POOL] = {"pools", sizeof(struct sim_pool), sim_pool_finalize},
    [SIM_LIBRARY] = {"libraries", sizeof(struct sim_library), sim_library_finalize},
    [SIM_KERNEL] = {NULL, sizeof(struct sim_kernel), sim_kernel_finalize},
    [SIM_MODULE] = {"modules", sizeof(struct sim_module), sim_module_finalize},
    [SIM_FUNCTION] = {NULL, sizeof(struct sim_function), sim_function_finalize},
    [SIM_GRAPH] = {"graphs", sizeof(struct sim_graph), NULL},
    [SIM_GRAPH_NODE] = {NULL, sizeof(struct sim_graph_node), NULL},
    [SIM_GRAPH_EXEC] = {"executable graphs", sizeof(struct sim_exec), sim_exec_finalize},
    [SIM_CONDITIONAL] = {NULL, sizeof(struct sim_conditional), sim_conditional_finalize},
    [SIM_USER_OBJECT] = {"user objects", sizeof(struct sim_user_object), NULL},
    [SIM_PHYSICAL] = {"physical allocations", sizeof(struct sim_physical), sim_physical_finalize},
    [SIM_LINK] = {"links", sizeof(struct sim_link), sim_link_finalize},
    [SIM_ARRAY] = {"arrays", sizeof(struct sim_array), sim_array_finalize},
    [SIM_MIPMAP] = {"mipmapped arrays", sizeof(struct sim_mipmap), sim_mipmap_finalize},
    [SIM_TEXTURE] = {"texture objects", sizeof(struct sim_texture_object), sim_texture_finalize},
    [SIM_SURFACE] = {"surface objects", sizeof(struct sim_surface_object), sim_surface_finalize},
    [SIM_GREEN] = {"green contexts", sizeof(struct sim_green), sim_green_finalize},
};

enum state { UNSTARTED, STARTED, FORKED, ENDED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int state = UNSTARTED;
_Atomic int sim_gate = SIM_GATE_CLOSED;

void sim_gate_update(void)
{
    int gate = atomic_load(&state) != STARTED ? SIM_GATE_CLOSED : sim_watching() ? SIM_GATE_WATCHED : SIM_GATE_OPEN;
    atomic_store(&sim_gate, gate);
}

static CUresult refuse_or_watch(const char *function)
{
    switch (atomic_load(&state)) {
    case STARTED: return sim_watch_enter(function);
    case ENDED: return CUDA_ERROR_DEINITIALIZED;
    default: return CUDA_ERROR_NOT_INITIALIZED;
    }
}

CUresult sim_enter(const char *function)
{
    if (SIM_UNLIKELY(atomic_load_explicit(&sim_gate, memory_order_acquire) != SIM_GATE_OPEN))
        SIM_TRY(refuse_or_watch(function));
    struct sim_thread *self = sim_thread();
    if (SIM_UNLIKELY(self->in_callback))
        return CUDA_ERROR_NOT_PERMITTED;
    self->function = function;
    sim_call_begin(self, function);
    return CUDA_SUCCESS;
}

// The worker threads and whatever they had locked are missing in a child; nothing can be saved.
static void after_fork(void)
{
    if (atomic_load(&state) == UNSTARTED)
        return;
    atomic_store(&state, FORKED);
    sim_usage_after_fork();
    atomic_store(&sim_gate, SIM_GATE_CLOSED);
}

bool sim_usable(void) { return atomic_load(&state) == STARTED; }

__attribute__((destructor)) static void at_exit(void)
{
    if (atomic_load(&state) != STARTED)
        return;
    if (sim_config()->report_stderr) {
        sim_allocation_report_leaks();
        sim_reservations_report_leaks();
        sim_live_report_leaks();
    }
    sim_usage_withdraw();
    atomic_store(&state, ENDED);
    atomic_store(&sim_gate, SIM_GATE_CLOSED);
}

static CUresult start(unsigned flags)
{
    SIM_REQUIRE(!flags);
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    switch (atomic_load(&state)) {
    case STARTED: break;
    case FORKED: status = CUDA_ERROR_NOT_INITIALIZED; break;
    case ENDED: status = CUDA_ERROR_DEINITIALIZED; break;
    default:
        status = sim_devices_init();
        if (status == CUDA_SUCCESS) {
            pthread_atfork(NULL, NULL, after_fork);
            atomic_store(&state, STARTED);
        }
        sim_gate_update();
    }
    pthread_mutex_unlock(&lock);
    return status;
}

SIM_EXPORT CUresult cuInit(unsigned int Flags)
{
    // Faults may be injected here too, although the gate is still closed.
    CUresult status = sim_watching() ? sim_watch_enter("cuInit") : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS)
        status = start(Flags);
    if (status != CUDA_SUCCESS)
        sim_log_failure("cuInit", status);
    return sim_watch_leave("cuInit", status);
}

SIM_EXPORT CUresult cuDriverGetVersion(int *driverVersion)
{
    CUresult status = sim_watching() ? sim_watch_enter("cuDriverGetVersion") : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS && !driverVersion)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *driverVersion = sim_config()->driver_version;
    return sim_watch_leave("cuDriverGetVersion", status);
}

// Private tables of the real driver. NVRTC asks for one, and takes no for an answer.
SIM_API(cuGetExportTable, (const void **ppExportTable, const CUuuid *pExportTableId), (ppExportTable, pExportTableId))
{
    SIM_REQUIRE(ppExportTable && pExportTableId);
    *ppExportTable = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

SIM_API(cuProfilerStart, (void), ())
{
    struct sim_context *context;
    return sim_current(&context);
}

SIM_API(cuProfilerStop, (void), ())
{
    struct sim_context *context;
    return sim_current(&context);
}
