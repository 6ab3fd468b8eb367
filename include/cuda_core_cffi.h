/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C side of cuda_core_cffi objects, for extensions that are handed one.
 *
 * Every object has a ccc_handle, a structure that owns its driver handle and is at the address `obj.c_handle`. The
 * driver handle itself is `obj.cdata`, typed, and `obj.handle`, an integer. A function that only needs the driver
 * handle takes the driver's own type (CUstream, CUevent, ...) and knows nothing of ccc_handle. A function that keeps an
 * object beyond the call retains its ccc_handle, and releases it when done, from any thread, with or without the GIL.
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
    CCC_ARRAY,      /* opaque, or a level of a mipmapped one */
    CCC_MIPMAP,     /* a mipmapped array */
    CCC_TEXTURE,
    CCC_SURFACE,
    CCC_GRAPHICS, /* a buffer or an image of OpenGL */
    CCC_KINDS     /* how many there are */
} ccc_kind;

typedef struct ccc_handle ccc_handle;

/*
 * The functions below, as `cuda_core_cffi.get_c_api()` hands them out. The structure only ever grows at its end. Each
 * takes NULL, which owns nothing.
 */
typedef struct ccc_api {
    size_t size;                                 /* of this structure, as the package was built */
    ccc_kind (*kind)(const ccc_handle *handle);  /* of what it is a handle; CCC_KINDS of NULL */
    uint64_t (*value)(const ccc_handle *handle); /* the driver handle or device address; 0 once closed */
    size_t (*bytes)(const ccc_handle *handle);   /* a buffer's size in bytes; 0 for every other kind */
    int (*retain)(ccc_handle *handle);           /* 1: it now stays alive until release; 0: it was closed */
    void (*release)(ccc_handle *handle);         /* the last gives up the GIL meanwhile, if this thread holds it */
} ccc_api;

#ifdef __cplusplus
}
#endif

#endif
