// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Where all lanes of a warp access memory, found at once.
//
// This is the usual case only: every lane's access is aligned, and is in the same allocation or window as that of the
// first lane. Otherwise the handler goes lane by lane through resolve(), which also is who reports what is wrong.
#ifndef SIM_PTX_WHERE_H
#define SIM_PTX_WHERE_H

#include "ptx/ptx_lanes.h"
#include "ptx/ptx_mem.h"

typedef enum where {
    WHERE_UNKNOWN,  // ask resolve()
    WHERE_ANY,      // each active lane has its own address
    WHERE_ROW,      // the whole warp, one access after the other from the first lane's address on
    WHERE_SAME,     // the whole warp at the first lane's address
} where;

// Finds the host addresses of accesses of `size` bytes, a power of two. at[0] is set for WHERE_ROW and WHERE_SAME, for
// WHERE_ANY those of the lanes of m. Forgets what may be accessed if memory has been freed since.
where ptx_find(warp *w, const insn *in, uint32_t m, uint64_t size, int is_write, uint64_t *at);
where ptx_find_wide(warp *w, const insn *in, uint32_t m, uint64_t size, int is_write, uint64_t *at);

INLINE where find_where(warp *w, const insn *in, uint32_t m, uint64_t size, int is_write, uint64_t *at, const int wide)
{
#if HAS_WIDE
    if (wide)
        return ptx_find_wide(w, in, m, size, is_write, at);
#endif
    (void)wide;
    return ptx_find(w, in, m, size, is_write, at);
}

// Gives every lane its address where find_where() has given the first one's.
INLINE void spread(where found, uint64_t size, uint64_t *at)
{
    if (found != WHERE_ROW && found != WHERE_SAME)
        return;
    uint64_t first = at[0], step = found == WHERE_ROW ? size : 0;
    for (unsigned l = 0; l < WARP; l++)
        at[l] = first + l * step;
}

#endif
