// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Marks for callgrind, around what instructions.py counts. Outside of valgrind they do nothing.
#include <valgrind/callgrind.h>

void benchmarks_begin(void) { CALLGRIND_ZERO_STATS; }

void benchmarks_end(void) { CALLGRIND_DUMP_STATS; }
