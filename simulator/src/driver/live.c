// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What is alive: the driver objects and the memory of the program, by kind.

#include "memory/allocation.h"
#include "driver/context.h"
#include "graph/graph_exec.h"
#include "driver/report.h"
#include "streams/stream.h"
#include "memory/virtual.h"
#include "driver/watch.h"

static const char *const memory_names[SIM_MEMORY_KINDS] = {
    "device allocations", "pinned allocations", "registered memory", "managed allocations", "pool allocations",
    "module variables",   "virtual mappings",   "graph allocations", "array allocations",
};

// Hands out one row after another; `bytes` is 0 for what is only counted. Returns NULL past the end.
SIM_EXPORT const char *cudaSimLive(size_t index, uint64_t *count, uint64_t *bytes)
{
    *count = *bytes = 0;
    bool usable = sim_usable();
    if (index < SIM_KINDS - 1) {
        enum sim_kind kind = (enum sim_kind)(index + 1);
        *count = usable ? sim_object_live(kind) : 0;
        return sim_kinds[kind].name ? sim_kinds[kind].name : "";
    }
    index -= SIM_KINDS - 1;
    if (index < SIM_MEMORY_KINDS) {
        size_t number = 0, total = 0;
        if (usable)
            sim_allocation_count((enum sim_memory)index, &number, &total);
        *count = number;
        *bytes = total;
        return memory_names[index];
    }
    index -= SIM_MEMORY_KINDS;
    if (index == 0) {
        *count = usable ? sim_primary_retained() : 0;
        return "primary contexts retained";
    }
    if (index == 1) {
        *count = usable ? atomic_load(&sim_host_functions_pending) : 0;
        return "host functions pending";
    }
    if (index == 2) {
        size_t number = 0, total = 0;
        if (usable)
            sim_reservations_count(&number, &total);
        *count = number;
        *bytes = total;
        return "address reservations";
    }
    if (index == 3) {
        *count = usable ? atomic_load(&sim_graph_launches_pending) : 0;
        return "graph launches pending";
    }
    return NULL;
}

// At exit, what the program made and never destroyed; memory is reported with its history, by its own module.
void sim_live_report_leaks(void)
{
    for (int kind = 1; kind < SIM_KINDS; ++kind) {
        size_t count = sim_object_live((enum sim_kind)kind);
        if (count && sim_kinds[kind].name)
            sim_report("leak", "exit", 0, 0, NULL, "%zu %s never destroyed", count, sim_kinds[kind].name);
    }
}
