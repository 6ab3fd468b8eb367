// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The table of functions that nvidia-smi asks the library for. No header describes it. The first word is its size; what
// nvidia-smi does not find in it is shown as "Uninitialized", and what is not supported as "N/A": so nothing is.

#include "nvml/gpu.h"

enum { FUNCTIONS = 512 };

static nvmlReturn_t not_supported(void) { return NVML_ERROR_NOT_SUPPORTED; }

static union {
    size_t size;
    nvmlReturn_t (*function)(void);
} table[1 + FUNCTIONS];

static void make_table(void)
{
    table[0].size = sizeof table;
    for (int i = 1; i <= FUNCTIONS; i++)
        table[i].function = not_supported;
}

nvmlReturn_t nvmlInternalGetExportTable(const void **found, const void *id);
SIM_EXPORT nvmlReturn_t nvmlInternalGetExportTable(const void **found, const void *id)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    SIM_NVML_REQUIRE(found && id);
    pthread_once(&once, make_table);
    *found = table;
    return NVML_SUCCESS;
}
