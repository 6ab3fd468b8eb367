// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// What a handle begins with: all that the module _calls looks at, which has no header of the driver.
#ifndef CCC_HEAD_H
#define CCC_HEAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "cuda_core_cffi.h"

enum {
    CCC_BORROWED = 1,           // not ours to destroy
    CCC_IMMORTAL = 2,           // lives as long as the process: closing is a no-op
    CCC_SYNCHRONOUS = 4,        // buffer from cuMemAlloc
    CCC_PINNED = 8,             // buffer from cuMemAllocHost
    CCC_TIMED = 16,             // event that takes times
    CCC_BLOCKING = 32,          // event that sleeps in sync
    CCC_TOKEN = 64,             // stream: one of the default streams, which mean a stream of the current context
    CCC_SHARED = 128,           // event that other processes may use
    CCC_VIRTUAL = 256,          // buffer of mappings in reserved addresses
    CCC_IMPORTED = 512,         // pool of another process, or buffer from one
    CCC_OF_GRAPH = 1024,        // buffer of memory that a node of a graph allocates
    CCC_MAPPED = 4096,          // buffer of memory of OpenGL, whose resource is its pool
    CCC_GREEN = 8192,           // context that was made of some of a device's resources
    CCC_NONBLOCKING = 2048,     // stream of ours that runs beside the legacy default stream
    CCC_WAITS = 16384,          // the driver waits for the device when it destroys this: see ccc_idle.h
    CCC_NEVER_AT_ONCE = 32768,  // only the release thread destroys this, although it is closed
    CCC_PART = 65536            // a slice, a kernel or a view: the parent is the owner
};

// A bit among the uses: the Python object has not been closed. It goes together with the use of that object.
#define CCC_OPEN (UINT32_C(1) << 31)
#define CCC_FIRST_USE (CCC_OPEN | 1)

// `calls` is of the module _calls and guarded by the GIL (python/ccc_uses.h): the calls that go on with the handle, for
// which the Python object has kept its use. `uses` has CCC_OPEN too, and `value` is the driver handle, or the address
// of memory.
#define CCC_HEAD \
    _Atomic(uint32_t) uses; \
    uint32_t calls; \
    int flags; \
    ccc_kind kind; \
    uint64_t value;

typedef struct ccc_head {
    CCC_HEAD
} ccc_head;

#endif
