// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Which of a handler's twins runs.
#include "ptx/ptx_lanes.h"

#include <stdlib.h>

#define BITS4(n) 1u << (n), 1u << ((n) + 1), 1u << ((n) + 2), 1u << ((n) + 3)
#define BITS32 BITS4(0), BITS4(4), BITS4(8), BITS4(12), BITS4(16), BITS4(20), BITS4(24), BITS4(28)
const uint32_t ptx_lane_bit[WARP] __attribute__((aligned(64))) = {BITS32};
const uint64_t ptx_lane_bit64[WARP] __attribute__((aligned(64))) = {BITS32};

LANES_BEGIN

INLINE void merge(const warp *w, uint64_t *d, uint32_t m)
{
    _Pragma("GCC ivdep") for (unsigned l = 0; l < WARP; l++) d[l] = (m & ptx_lane_bit64[l]) != 0 ? w->temp[l] : d[l];
}

#if HAS_WIDE
// Called by wide handlers only.
WIDE_TARGET void ptx_merge(const warp *w, uint64_t *d, uint32_t m) { merge(w, d, m); }
#else
void ptx_merge(const warp *w, uint64_t *d, uint32_t m) { merge(w, d, m); }
#endif

LANES_END

#if HAS_WIDE

extern handler_twins __start_ptx_twins[] __attribute__((visibility("hidden")));
extern handler_twins __stop_ptx_twins[] __attribute__((visibility("hidden")));

static size_t count;  // of the twins if the wide ones can run, else 0
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int compare(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const handler_twins *)a)->plain, y = (uintptr_t)((const handler_twins *)b)->plain;
    return (x > y) - (x < y);
}

// Every processor with AVX2 has F16C.
static void sort_twins(void)
{
    const char *wish = getenv("CUDA_SIM_VECTORS");
    if (wish && strcmp(wish, "0") == 0)
        return;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("popcnt"))
        return;
    count = (size_t)(__stop_ptx_twins - __start_ptx_twins);
    qsort(__start_ptx_twins, count, sizeof *__start_ptx_twins, compare);
}

int ptx_is_wide(void)
{
    pthread_once(&once, sort_twins);
    return count != 0;
}

exec_fn ptx_widest(exec_fn run)
{
    if (!ptx_is_wide())
        return run;
    handler_twins key = {run, NULL};
    const handler_twins *found = bsearch(&key, __start_ptx_twins, count, sizeof key, compare);
    return found ? found->wide : run;
}

#else

int ptx_is_wide(void) { return 0; }
exec_fn ptx_widest(exec_fn run) { return run; }

#endif
