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
    CCC_EXCLUDE;  // the graph of a capture keeps the token
    CCC_TRY(cuStreamIsCapturing, CCC_STRM(stream), &capture);
    if (capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)  // where it has failed, cuLaunchHostFunc says so
        status = ccc_capture_info(stream, NULL, &graph, NULL, NULL);
    ccc_keep *keep = status ? NULL : ccc_keep_new(NULL, 0, token);
    if (keep == NULL)
        return status ? status : ccc_last_status();
    keep->function = (CUhostFn)(uintptr_t)function;
    keep->data = (void *)(uintptr_t)data;
    keep->source = graph ? 0 : ccc_source(stream);
    if (graph && (status = ccc_keep_attach(keep, graph)))
        return status;
    CUresult result = cuLaunchHostFunc(CCC_STRM(stream), graph ? ccc_host_call : ccc_host_call_once, keep);
    if (CCC_LIKELY(result == CUDA_SUCCESS))
        return 0;
    if (graph)
        ccc_keep_detach(keep, graph);
    else
        ccc_keep_finish(keep);
    return ccc_fail((int)result, "cuLaunchHostFunc");
}

#endif
