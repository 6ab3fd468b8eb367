/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C side of cuda_core_cffi objects, for extensions that are handed one.
 *
 * Every object keeps its driver handle in a box. `obj.box` gives its address in Python; the driver handle itself,
 * typed, is `obj.cdata`, and as an integer `obj.handle`. A function that only needs the handle takes the driver's
 * own type (CUstream, CUevent, ...) and knows nothing of boxes. A function that keeps an object beyond the call
 * keeps its box: retain it, and release it when done, from any thread, with or without the GIL.
 */
#ifndef CUDA_CORE_CFFI_H
#define CUDA_CORE_CFFI_H

#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ccc_kind {
    CCC_CONTEXT = 0,
    CCC_STREAM,
    CCC_EVENT,
    CCC_POOL,
    CCC_BUFFER,
    CCC_LIBRARY,
    CCC_KERNEL,
    CCC_PROGRAM,
    CCC_LINKER,
    CCC_GRAPH,
    CCC_EXECUTABLE, /* of a graph */
    CCC_CAPTURE,    /* of a stream */
    CCC_KINDS /* how many there are */
} ccc_kind;

typedef struct ccc_box ccc_box;

/*
 * The functions below, as `cuda_core_cffi.get_c_api()` hands them out. The structure only ever grows at its end. Each
 * takes NULL, which has no handle.
 */
typedef struct ccc_api {
    size_t size;                            /* of this structure, as the package was built */
    ccc_kind (*kind)(const ccc_box *box);   /* what the box holds; CCC_KINDS of NULL */
    uint64_t (*handle)(const ccc_box *box); /* the driver's handle or device address; 0 once it is closed */
    size_t (*bytes)(const ccc_box *box);    /* a buffer's size in bytes; 0 for every other kind */
    int (*retain)(ccc_box *box);            /* 1: the handle now stays alive until release; 0: it was closed */
    void (*release)(ccc_box *box);          /* the last gives up the GIL meanwhile, if this thread holds it */
} ccc_api;

#ifdef __cplusplus
}
#endif

#endif
