// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The table of functions as data. This file does without cuda.h: only the addresses matter here.

#include "driver/dispatch.h"

#include <stddef.h>

#define ROW(base, version, symbol) void symbol(void);
#define STREAM_ROW(base, version, symbol, variant, variant_version) \
    void symbol(void); \
    void variant(void);
#include "driver/dispatch_table.h"
#undef ROW
#undef STREAM_ROW

#define ROW(base, version, symbol) {#base, version, symbol, NULL, 0},
#define STREAM_ROW(base, version, symbol, variant, variant_version) {#base, version, symbol, variant, variant_version},

const struct sim_function sim_functions[] = {
#include "driver/dispatch_table.h"
    {NULL, 0, NULL, NULL, 0},
};
