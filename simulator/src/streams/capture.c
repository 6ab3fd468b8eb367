// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The beginning and end of captures, and what a program may ask about them.

#include <stdlib.h>
#include <string.h>

#include "streams/capture_state.h"
#include "driver/report.h"

_Atomic size_t sim_captures;
struct sim_capture *sim_capture_first;
static uint64_t last_id;

// --- Sets of nodes --------------------------------------------------------------------------------------------

static CUresult reserve(struct sim_capture_set *set, size_t count)
{
    if (count <= set->capacity)
        return CUDA_SUCCESS;
    size_t capacity = count < 2 * set->capacity ? 2 * set->capacity : count;
    struct sim_dependency *grown = realloc(set->nodes, capacity * sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    set->nodes = grown;
    set->capacity = capacity;
    return CUDA_SUCCESS;
}

CUresult sim_capture_set_add(struct sim_capture_set *set, const struct sim_dependency *nodes, size_t count)
{
    SIM_TRY(reserve(set, set->count + count));
    uint64_t mark = sim_graph_mark();
    for (size_t i = 0; i < set->count; i++)
        set->nodes[i].node->mark = mark;
    for (size_t i = 0; i < count; i++)
        if (nodes[i].node->mark != mark) {
            nodes[i].node->mark = mark;
            set->nodes[set->count++] = nodes[i];
        }
    return CUDA_SUCCESS;
}

CUresult sim_capture_set_copy(struct sim_capture_set *set, const struct sim_capture_set *from)
{
    SIM_TRY(reserve(set, from->count));
    if (from->count)
        memcpy(set->nodes, from->nodes, from->count * sizeof *set->nodes);
    set->count = from->count;
    return CUDA_SUCCESS;
}

// --- Captures -------------------------------------------------------------------------------------------------

void sim_capture_drop(struct sim_capture *capture)
{
    if (--capture->references)
        return;
    free(capture->loose);
    free(capture);
}

CUresult sim_capture_join(struct sim_capture *capture, struct sim_stream *stream, struct sim_capture_stream **out)
{
    struct sim_capture_stream *part = calloc(1, sizeof *part);
    if (!part)
        return CUDA_ERROR_OUT_OF_MEMORY;
    part->capture = capture;
    capture->references++;
    part->stream = stream;
    part->next = capture->streams;
    if (part->next)
        part->next->link = &part->next;
    capture->streams = part;
    part->link = &capture->streams;
    atomic_store(&stream->capture, part);
    *out = part;
    return CUDA_SUCCESS;
}

void sim_capture_leave(struct sim_capture_stream *part)
{
    atomic_store(&part->stream->capture, NULL);
    *part->link = part->next;
    if (part->next)
        part->next->link = part->link;
    free(part->set.nodes);
    free(part->handles);
    free(part->data);
    sim_capture_drop(part->capture);
    free(part);
}

void sim_capture_invalidate(struct sim_capture *capture) { capture->invalid = true; }

// Lets the streams go. The graph is the caller's afterwards; NULL if it was there before.
static struct sim_graph *end(struct sim_capture *capture)
{
    struct sim_graph *graph = capture->existing ? NULL : capture->graph;
    capture->references++;
    if (capture->graph)
        capture->graph->captured = false;
    capture->graph = NULL;
    *capture->link = capture->next;
    if (capture->next)
        capture->next->link = capture->link;
    while (capture->streams)
        sim_capture_leave(capture->streams);
    atomic_fetch_sub(&sim_captures, 1);
    sim_capture_drop(capture);
    return graph;
}

// Drivers go on with such a capture, and crash or never return (seen with 580). Here it can only be ended.
void sim_capture_graph_ends(const struct sim_graph *graph)
{
    const char *caller = sim_thread()->function;
    for (struct sim_capture *capture = sim_capture_first; capture; capture = capture->next) {
        if (capture->graph != graph)
            continue;
        sim_report("capture into a graph that is gone", caller ? caller : "?", 0, 0, NULL,
                   "a stream is captured into a graph inside a node, and that graph is destroyed");
        sim_capture_invalidate(capture);
        capture->graph = NULL;
        capture->loose_count = 0;
        for (struct sim_capture_stream *part = capture->streams; part; part = part->next)
            part->set.count = 0;
    }
}

void sim_capture_stream_ends(struct sim_stream *stream)
{
    if (!atomic_load(&stream->capture))
        return;
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part = atomic_load(&stream->capture);
    if (!part)
        return;
    struct sim_capture *capture = part->capture;
    if (capture->origin == stream) {
        // Nobody can end the capture any more.
        struct sim_graph *graph = end(capture);
        if (graph)
            sim_graph_free(graph);
        return;
    }
    size_t count = capture->loose_count + part->set.count;
    struct sim_graph_node **grown = realloc(capture->loose, (count + 1) * sizeof(struct sim_graph_node *));
    if (grown) {
        capture->loose = grown;
        for (size_t i = 0; i < part->set.count; i++)
            grown[capture->loose_count++] = part->set.nodes[i].node;
    } else {
        sim_capture_invalidate(capture);
    }
    sim_capture_leave(part);
}

// Adds nodes that a program names, any of them more than once if it likes; nothing if it fails.
static CUresult read_set(struct sim_graph *graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
                         struct sim_capture_set *set)
{
    if (!count)
        return CUDA_SUCCESS;
    SIM_REQUIRE(nodes);
    struct sim_dependency *read = calloc(count, sizeof *read);
    CUresult status = read ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = sim_dependency_read(graph, nodes[i], data ? &data[i] : NULL, &read[i]);
    if (status == CUDA_SUCCESS)
        status = sim_capture_set_add(set, read, count);
    free(read);
    return status;
}

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, CUgraph graph_handle, const CUgraphNode *nodes,
                      const CUgraphEdgeData *data, size_t count)
{
    SIM_REQUIRE((unsigned)mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(handle, &stream));
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    SIM_GRAPHS_LOCKED();
    if (atomic_load(&stream->capture))
        return CUDA_ERROR_ILLEGAL_STATE;
    struct sim_graph *graph = NULL;
    struct sim_capture_set after = {0};
    if (graph_handle) {
        SIM_TRY(sim_graph_find(graph_handle, &graph));
        if (graph->captured)
            return CUDA_ERROR_ILLEGAL_STATE;
        SIM_TRY(read_set(graph, nodes, data, count, &after));
    }
    struct sim_capture *capture = calloc(1, sizeof *capture);
    struct sim_capture_stream *part = NULL;
    bool existing = graph != NULL;
    if (capture && !existing)
        graph = sim_graph_new(NULL);
    CUresult status = capture && graph ? sim_capture_join(capture, stream, &part) : CUDA_ERROR_OUT_OF_MEMORY;
    if (status != CUDA_SUCCESS) {
        if (graph && !existing)
            sim_graph_free(graph);
        free(capture);
        free(after.nodes);
        return status;
    }
    part->set = after;
    graph->captured = true;
    *capture = (struct sim_capture){
        .references = capture->references,
        .id = ++last_id,
        .mode = mode,
        .thread = sim_thread()->id,
        .graph = graph,
        .existing = existing,
        .origin = stream,
        .streams = capture->streams,
        .next = sim_capture_first,
        .link = &sim_capture_first,
    };
    if (capture->next)
        capture->next->link = &capture->next;
    sim_capture_first = capture;
    atomic_fetch_add(&sim_captures, 1);
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamBeginCapture_v2, _ptsz, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode))
{
    return begin(hStream, mode, NULL, NULL, NULL, 0);
}

SIM_API_STREAM(cuStreamBeginCapture, _ptsz, (CUstream hStream), (hStream))
{
    return begin(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL, NULL, 0);
}

SIM_API_STREAM(cuStreamBeginCaptureToGraph, _ptsz,
               (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode),
               (hStream, hGraph, dependencies, dependencyData, numDependencies, mode))
{
    SIM_REQUIRE(hGraph);
    return begin(hStream, mode, hGraph, dependencies, dependencyData, numDependencies);
}

// --- The end --------------------------------------------------------------------------------------------------

// Marks what the nodes of a set depend on, themselves included. Every node is looked at once.
static bool mark_before(const struct sim_capture *capture, const struct sim_capture_set *set, uint64_t mark)
{
    struct sim_graph_node **stack = malloc((capture->graph->count + 1) * sizeof(struct sim_graph_node *));
    if (!stack)
        return false;
    size_t depth = 0;
    for (size_t i = 0; i < set->count; i++) {
        set->nodes[i].node->mark = mark;
        stack[depth++] = set->nodes[i].node;
    }
    while (depth) {
        struct sim_graph_node *node = stack[--depth];
        for (struct sim_edge *edge = node->edges[SIM_IN].first; edge; edge = edge->next[SIM_IN])
            if (edge->end[SIM_OUT]->mark != mark) {
                edge->end[SIM_OUT]->mark = mark;
                stack[depth++] = edge->end[SIM_OUT];
            }
    }
    free(stack);
    return true;
}

// Has everything that was forked been joined to the stream that it began with?
static CUresult check_joined(const struct sim_capture *capture, const struct sim_capture_stream *origin)
{
    uint64_t mark = sim_graph_mark();
    if (!mark_before(capture, &origin->set, mark))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (const struct sim_capture_stream *part = capture->streams; part; part = part->next)
        for (size_t i = 0; i < part->set.count; i++)
            if (part->set.nodes[i].node->mark != mark)
                return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    for (size_t i = 0; i < capture->loose_count; i++)
        if (capture->loose[i]->mark != mark)
            return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamEndCapture, _ptsz, (CUstream hStream, CUgraph *phGraph), (hStream, phGraph))
{
    SIM_REQUIRE(phGraph);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    *phGraph = NULL;
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part = atomic_load(&stream->capture);
    if (!part)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct sim_capture *capture = part->capture;
    if (capture->origin != stream) {
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    CUresult status;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sim_thread()->id)
        status = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else
        status = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(capture, part);
    CUgraph handle = capture->graph ? sim_graph_handle(capture->graph) : NULL;
    struct sim_graph *graph = end(capture);
    if (status == CUDA_SUCCESS)
        *phGraph = handle;
    else if (graph)
        sim_graph_free(graph);
    return status;
}

// --- Questions ------------------------------------------------------------------------------------------------

// The legacy stream cannot be captured, and cannot be asked while a stream is that it waits for.
static CUresult find_to_ask(CUstream handle, struct sim_stream **stream)
{
    SIM_TRY(sim_stream_find(handle, stream));
    if (!(*stream)->legacy)
        return CUDA_SUCCESS;
    for (struct sim_capture *capture = sim_capture_first; capture; capture = capture->next)
        for (struct sim_capture_stream *part = capture->streams; part; part = part->next)
            if (part->stream->context == (*stream)->context && sim_stream_blocking(part->stream))
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return CUDA_SUCCESS;
}

static CUstreamCaptureStatus status_of(const struct sim_capture_stream *part)
{
    if (!part)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return part->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

SIM_API_STREAM(cuStreamIsCapturing, _ptsz, (CUstream hStream, CUstreamCaptureStatus *captureStatus),
               (hStream, captureStatus))
{
    SIM_REQUIRE(captureStatus);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_GRAPHS_LOCKED();
    SIM_TRY(find_to_ask(hStream, &stream));
    *captureStatus = status_of(atomic_load(&stream->capture));
    return CUDA_SUCCESS;
}

// Writes down the set for the program, in arrays that stay until the next call that concerns the stream.
static CUresult write_down(struct sim_capture_stream *part)
{
    const struct sim_capture_set *set = &part->set;
    CUgraphNode *handles = realloc(part->handles, (set->count + 1) * sizeof *handles);
    if (handles)
        part->handles = handles;
    CUgraphEdgeData *data = realloc(part->data, (set->count + 1) * sizeof *data);
    if (data)
        part->data = data;
    if (!handles || !data)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < set->count; i++) {
        handles[i] = sim_graph_node_handle(set->nodes[i].node);
        data[i] = set->nodes[i].data;
    }
    return CUDA_SUCCESS;
}

static CUresult info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                     const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count)
{
    SIM_REQUIRE(status && (nodes || !data));
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_GRAPHS_LOCKED();
    SIM_TRY(find_to_ask(handle, &stream));
    struct sim_capture_stream *part = atomic_load(&stream->capture);
    *status = status_of(part);
    // Otherwise only the status is written.
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    for (size_t i = 0; nodes && !data && i < part->set.count; i++)
        if (!sim_edge_is_plain(&part->set.nodes[i].data))
            return CUDA_ERROR_LOSSY_QUERY;
    SIM_TRY(write_down(part));
    if (id)
        *id = part->capture->id;
    if (graph)
        *graph = sim_graph_handle(part->capture->graph);
    if (nodes)
        *nodes = part->handles;
    if (data)
        *data = part->data;
    if (count)
        *count = part->set.count;
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamGetCaptureInfo, _ptsz,
               (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out),
               (hStream, captureStatus_out, id_out))
{
    return info(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

SIM_API_STREAM(cuStreamGetCaptureInfo_v2, _ptsz,
               (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
                const CUgraphNode **dependencies_out, size_t *numDependencies_out),
               (hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out))
{
    return info(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out);
}

SIM_API_STREAM(cuStreamGetCaptureInfo_v3, _ptsz,
               (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
                const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
                size_t *numDependencies_out),
               (hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out))
{
    return info(hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out);
}

// --- Changes --------------------------------------------------------------------------------------------------

static CUresult update(CUstream handle, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
                       unsigned flags)
{
    SIM_REQUIRE(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(handle, &stream));
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part = atomic_load(&stream->capture);
    if (!part)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (part->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES)
        return read_set(part->capture->graph, nodes, data, count, &part->set);
    struct sim_capture_set after = {0};
    SIM_TRY(read_set(part->capture->graph, nodes, data, count, &after));
    free(part->set.nodes);
    part->set = after;
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamUpdateCaptureDependencies, _ptsz,
               (CUstream hStream, CUgraphNode *dependencies, size_t numDependencies, unsigned int flags),
               (hStream, dependencies, numDependencies, flags))
{
    return update(hStream, dependencies, NULL, numDependencies, flags);
}

SIM_API_STREAM(cuStreamUpdateCaptureDependencies_v2, _ptsz,
               (CUstream hStream, CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
                size_t numDependencies, unsigned int flags),
               (hStream, dependencies, dependencyData, numDependencies, flags))
{
    return update(hStream, dependencies, dependencyData, numDependencies, flags);
}

SIM_API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode), (mode))
{
    SIM_REQUIRE(mode && (unsigned)*mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    struct sim_thread *thread = sim_thread();
    CUstreamCaptureMode old = (CUstreamCaptureMode)thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
