/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures: a stream whose work becomes nodes of a graph. A box of its own stands for each; where its last use goes
 * while the capture is under way, the capture is ended, so that the stream can be used again. It uses the stream and the
 * box of the graph. That graph is the driver's until the capture ends, unless it was there before, in a node.
 */
#ifndef CCC_CAPTURE_H
#define CCC_CAPTURE_H

#include "ccc_graph_exec.h"

static pthread_mutex_t ccc_capture_lock = PTHREAD_MUTEX_INITIALIZER;
static ccc_box *ccc_captured_graphs; /* those that are being captured; not uses */

static void ccc_capture_note(ccc_box *graph, int begins)
{
    int locks = ccc_graph_locks();
    if (locks)
        pthread_mutex_lock(&ccc_capture_lock);
    ccc_box **link = &ccc_captured_graphs;
    while (*link && *link != graph)
        link = &(*link)->graph->next;
    if (begins) {
        graph->graph->next = NULL;
        *link = graph;
    } else if (*link) {
        *link = graph->graph->next;
    }
    if (locks)
        pthread_mutex_unlock(&ccc_capture_lock);
}

/* Where the work that a stream is given next belongs: in which graph, and after which nodes. */
static int ccc_capture_place(const ccc_box *stream, CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphEdgeData *edges; /* asked for, because drivers refuse to leave them out where they say something */
#if CUDA_VERSION < 13000
    CCC_TRY(cuStreamGetCaptureInfo_v3, CCC_STRM(stream), &status, NULL, graph, nodes, &edges, count);
#else
    CCC_TRY(cuStreamGetCaptureInfo, CCC_STRM(stream), &status, NULL, graph, nodes, &edges, count);
#endif
    if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return 0;
    return ccc_fail(status == CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_ERROR_ILLEGAL_STATE
                                                            : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                    "cuStreamGetCaptureInfo");
}

/* Whether a capture is under way, which the caller has to stop then: of several threads one finds it so. */
static int ccc_capture_claim(ccc_box *capture)
{
    return __atomic_exchange_n(&capture->handle, 0, __ATOMIC_ACQ_REL) != 0;
}

/* End a capture. It is over then, whatever the status says of it, even that this is the wrong thread. */
static CUresult ccc_capture_stop(ccc_box *capture)
{
    CUgraph graph = NULL;
    ccc_box *home = capture->pool;
    CUstream stream = CCC_STRM(atomic_load(&capture->stream));
    CUresult result = cuStreamEndCapture(stream, &graph);
    if (result) /* such as one of the driver as a whole: the capture may be there still */
        cuStreamEndCapture(stream, &graph);
    atomic_fetch_sub(&ccc_captures, 1);
    atomic_fetch_add(&ccc_captures_ended, 1);
    ccc_free_captives();
    if (atomic_load(&ccc_deferred))
        ccc_release_ask();
    if (home->graph) { /* not one inside a node */
        ccc_capture_note(home, 0);
        home->graph->captured = graph ? 0 : CCC_CAPTURE_LOST;
    }
    return result;
}

/* The end of a box whose capture nobody has ended: that it was not complete is no failure. */
static CUresult ccc_destroy_capture(ccc_box *capture, const char **call)
{
    *call = "cuStreamEndCapture";
    CUresult result = ccc_capture_claim(capture) ? ccc_capture_stop(capture) : CUDA_SUCCESS;
    return result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               ? CUDA_SUCCESS
               : result;
}

static int ccc_capture_end(ccc_box *capture)
{
    if (!ccc_is_open(capture) || !ccc_capture_claim(capture))
        return CCC_CLOSED;
    CUresult result = ccc_capture_stop(capture);
    return result ? ccc_fail((int)result, "cuStreamEndCapture") : 0;
}

/* Begin to capture into a graph inside a node. */
static int ccc_capture_start_in(ccc_box *body, CUstream stream, int mode)
{
    int status = ccc_graph_enter(body);
    if (status)
        return status;
    CUresult result =
        cuStreamBeginCaptureToGraph(stream, CCC_GRAPH_OF(body), NULL, NULL, 0, (CUstreamCaptureMode)mode);
    ccc_graph_leave(body);
    return result ? ccc_fail((int)result, "cuStreamBeginCaptureToGraph") : 0;
}

/* Begin to capture into a new graph, and tell which. */
static int ccc_capture_start(const ccc_box *stream, int mode, CUgraph *graph)
{
    const CUgraphNode *nodes;
    size_t count;
    CCC_TRY(cuStreamBeginCapture, CCC_STRM(stream), (CUstreamCaptureMode)mode);
    int status = ccc_capture_place(stream, graph, &nodes, &count);
    if (status) {
        ccc_failure failure = ccc_last;
        CUgraph unused = NULL;
        if (cuStreamEndCapture(CCC_STRM(stream), &unused) == CUDA_SUCCESS)
            cuGraphDestroy(unused);
        ccc_last = failure;
    }
    return status;
}

/*
 * Begin to capture a stream: into *graph, which is inside a node, or where that is NULL into a new one, whose box is put
 * there. NULL on failure; then nothing is captured.
 */
static ccc_box *ccc_capture_begin(ccc_box *stream, int mode, ccc_box **graph)
{
    CUgraph captured = NULL;
    ccc_box *inside = *graph;
    if (!ccc_is_open(stream) || !ccc_retain(stream)) {
        ccc_fail(CCC_CLOSED, "");
        return NULL;
    }
    ccc_box *home = inside ? inside : ccc_graph_box(CCC_GRAPH, 0);
    ccc_box *capture = home ? ccc_new(CCC_CAPTURE, 0, 0, NULL) : NULL;
    if (home && !inside)
        home->graph->captured = CCC_CAPTURE_ACTIVE;
    int status = capture ? CCC_CLOSED : CCC_NO_MEMORY;
    if (capture && ccc_retain(home)) {
        atomic_init(&capture->stream, stream);
        capture->pool = home;
        status = inside ? ccc_capture_start_in(inside, CCC_STRM(stream), mode)
                        : ccc_capture_start(stream, mode, &captured);
    } else {
        ccc_release(stream);
    }
    if (status == 0) {
        capture->handle = 1; /* it is under way */
        atomic_fetch_add(&ccc_captures, 1);
        if (!inside) {
            home->handle = (uintptr_t)captured;
            ccc_capture_note(home, 1);
        }
        *graph = home;
        return capture;
    }
    ccc_failure failure = {ccc_last.call, status};
    if (capture)
        ccc_drop(capture);
    if (home && !inside)
        ccc_drop(home);
    ccc_last = failure;
    return NULL;
}

/* The nodes that what a stream is given next comes after; *count is how many there is room for, then how many there are. */
static int ccc_capture_ends(const ccc_box *stream, uint64_t *nodes, size_t *count)
{
    CUgraph graph;
    const CUgraphNode *found;
    size_t room = *count;
    if (!ccc_is_open(stream))
        return CCC_CLOSED;
    int status = ccc_capture_place(stream, &graph, &found, count);
    for (size_t i = 0; status == 0 && i < *count && i < room; i++)
        nodes[i] = (uintptr_t)found[i];
    return status;
}

/* What the stream is given next comes after this node. */
static int ccc_capture_continue(const ccc_box *stream, uint64_t node)
{
    CUgraphNode last = (CUgraphNode)(uintptr_t)node;
    if (!ccc_is_open(stream))
        return CCC_CLOSED;
    CUresult result = CCC_WITH_EDGE_DATA(cuStreamUpdateCaptureDependencies)(CCC_STRM(stream), &last, NULL, 1,
                                                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return result ? ccc_fail((int)result, "cuStreamUpdateCaptureDependencies") : 0;
}

#endif
