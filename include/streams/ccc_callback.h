// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Functions of the host, called by streams. How they are called, by graphs too: ccc_host_call.h.
#ifndef CCC_CALLBACK_H
#define CCC_CALLBACK_H

#include "streams/ccc_host_call.h"

// Have a stream call a function of C once, or the graph that the stream is captured to whenever it runs. The objects of
// the token are kept that long; on failure nothing is kept.
static int ccc_stream_call(const ccc_handle *stream, uint64_t function, uint64_t data, uint64_t token)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    int status = 0;
    CCC_USE(stream);
    CCC_LOCK_CAPTURES;  // the graph of a capture keeps the token
    CCC_TRY(cuStreamIsCapturing, CCC_STRM(stream), &capture);
    if (capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)  // where it has failed, cuLaunchHostFunc says so
        status = ccc_capture_info(stream, NULL, &graph, NULL, NULL);
    ccc_refs *refs = status ? NULL : ccc_refs_new(NULL, 0, token);
    if (refs == NULL)
        return status ? status : ccc_last_status();
    refs->function = (CUhostFn)(uintptr_t)function;
    refs->data = (void *)(uintptr_t)data;
    refs->source = graph ? 0 : ccc_source(stream);
    if (graph && (status = ccc_refs_attach(refs, graph)))
        return status;
    CUresult result = cuLaunchHostFunc(CCC_STRM(stream), graph ? ccc_host_call : ccc_host_call_once, refs);
    if (CCC_LIKELY(result == CUDA_SUCCESS))
        return 0;
    if (graph)
        ccc_refs_detach(refs, graph);
    else
        ccc_refs_release(refs);
    return ccc_fail((int)result, "cuLaunchHostFunc");
}

#endif
