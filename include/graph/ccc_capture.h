// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Captures: a stream whose work becomes nodes of a graph. A handle of its own stands for each; where its last use goes
// while the capture is under way, the capture is ended, so that the stream can be used again. It uses the stream until
// its builder ends it, and the handle of the graph, which goes with it unless it was given to somebody. That graph is
// the driver's until the capture ends, unless it was there before, in a node.
//
// Where the driver gives up a graph, it frees the graphs inside its nodes. Captures into those have to be ended before:
// drivers crash, or never return, when such a capture goes on or is ended later (580). So they end with the capture
// around them, and before the node is destroyed.
#ifndef CCC_CAPTURE_H
#define CCC_CAPTURE_H

#include "graph/ccc_graph_exec.h"

static pthread_mutex_t ccc_capture_lock = PTHREAD_MUTEX_INITIALIZER;
static ccc_handle *ccc_captures_begun;  // captures under way; not uses

typedef struct ccc_capture {
    ccc_handle handle;
    _Atomic(ccc_handle *) stream;  // NULL once the capture was ended by its builder
    ccc_handle *graph;
    atomic_int given;  // a program has the graph: it is not released with this handle
    ccc_handle *next;
    atomic_int listed;      // until the capture has been ended
    ccc_captured captured;  // the handles that it uses
} ccc_capture;

static inline ccc_capture *ccc_as_capture(const ccc_handle *handle) { return (ccc_capture *)handle; }

static void ccc_capture_enter(void)
{
    if (ccc_graph_locks())
        pthread_mutex_lock(&ccc_capture_lock);
}

static void ccc_capture_leave(void)
{
    if (ccc_graph_locks())
        pthread_mutex_unlock(&ccc_capture_lock);
}

static void ccc_capture_list(ccc_handle *capture)
{
    ccc_capture *link = ccc_as_capture(capture);
    ccc_capture_enter();
    link->next = ccc_captures_begun;
    ccc_captures_begun = capture;
    atomic_store(&link->listed, 1);
    ccc_capture_leave();
}

static void ccc_capture_unlist(ccc_handle *capture)
{
    ccc_handle **link = &ccc_captures_begun;
    ccc_capture_enter();
    while (*link != capture)
        link = &ccc_as_capture(*link)->next;
    *link = ccc_as_capture(capture)->next;
    ccc_capture_leave();
    atomic_store(&ccc_as_capture(capture)->listed, 0);  // now the handle may go
}

// Whether a capture is under way, which the caller has to stop then: of several threads one finds it so.
static int ccc_capture_claim(ccc_handle *capture)
{
    return __atomic_exchange_n(&capture->value, 0, __ATOMIC_ACQ_REL) != 0;
}

static CUresult ccc_capture_stop_stream(CUstream stream, CUgraph *graph)
{
    CCC_LOCK_CAPTURES;
    CUresult result = cuStreamEndCapture(stream, graph);
    // After a failure that is not of the capture, that may be there still. Else the stream may be in another by now.
    if (result && (result < CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || result > CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD))
        cuStreamEndCapture(stream, graph);
    return result;
}

// Release the handles of a failed capture.
static void ccc_captured_release(ccc_captured *captured)
{
    for (size_t i = 0; i < captured->handles.size; i++)
        ccc_release(captured->handles.slots[i].value);
    ccc_map_end(&captured->handles);
}

// Make a ccc_refs of the handles. Out of memory they are never released: leaking beats crashing.
static ccc_refs *ccc_captured_refer(ccc_captured *captured)
{
    ccc_refs *refs = captured->handles.used ? ccc_refs_with_room(captured->handles.used) : NULL;
    for (size_t i = 0; refs && i < captured->handles.size; i++)
        if (captured->handles.slots[i].value)
            refs->handles[refs->count++] = (uintptr_t)captured->handles.slots[i].value;
    ccc_map_end(&captured->handles);
    return refs;
}

// Give the handles of a capture that has ended to its graph. The handles of a graph inside a node belong to the set of
// the outer graph while that is still being captured.
static void ccc_captured_hand_over(ccc_captured *captured)
{
    ccc_handle *root = captured->home;
    ccc_captured moved = *captured, *outer;
    int status = 0;
    captured->handles = (ccc_map){0};
    pthread_mutex_lock(&ccc_captured_lock);
    for (outer = ccc_all_captured; outer && outer->home != root;)
        outer = outer->next;
    if (outer && (status = ccc_map_reserve(&outer->handles, moved.handles.used)) == 0)
        for (size_t i = 0; i < moved.handles.size; i++) {
            ccc_handle *handle = moved.handles.slots[i].value;
            if (handle == NULL || ccc_map_find(&outer->handles, (uintptr_t)handle))
                continue;
            ccc_map_set(&outer->handles, (uintptr_t)handle, handle);
            moved.handles.slots[i].value = NULL;
        }
    pthread_mutex_unlock(&ccc_captured_lock);
    if (outer && status == 0) {
        ccc_captured_release(&moved);  // handles that the outer set has already
        return;
    }
    ccc_refs *refs = ccc_captured_refer(&moved);
    ccc_graph_lock(root);
    if (ccc_graph_attach(root, refs))  // of which the driver knows already; then nothing keeps the objects
        ccc_cleanup_failed(ccc_last_status(), ccc_last.call, root->value);
    ccc_graph_unlock(root);
}

// End a capture that the caller has claimed. It is over then, whatever the status says, even that this is the wrong
// thread.
static CUresult ccc_capture_stop_alone(ccc_handle *capture)
{
    CUgraph graph = NULL;
    ccc_handle *home = ccc_as_capture(capture)->graph;
    CUresult result = ccc_capture_stop_stream(CCC_STRM(atomic_load(&ccc_as_capture(capture)->stream)), &graph);
    atomic_fetch_sub(&ccc_captures, 1);
    atomic_fetch_add(&ccc_captures_ended, 1);
    ccc_free_captives();
    if (atomic_load(&ccc_deferred))
        ccc_release_ask();
    ccc_captured *captured = &ccc_as_capture(capture)->captured;
    ccc_captured_end(captured);
    if (ccc_graph_data(home))  // not one inside a node
        ccc_graph_data(home)->captured = graph ? 0 : CCC_CAPTURE_LOST;
    if (graph && ccc_graph_data(captured->home)->captured != CCC_CAPTURE_LOST)
        ccc_captured_hand_over(captured);
    else
        ccc_captured_release(captured);
    ccc_capture_unlist(capture);
    return result;
}

// Whether a graph is the one with this handle, or inside it.
static int ccc_graph_is_within(const ccc_handle *graph, uint64_t value)
{
    while (graph->value != value && graph->flags & CCC_BORROWED)
        graph = graph->parent;
    return graph->value == value;
}

// A capture under way into a graph, or into one inside it, which the caller has to stop if *claimed; NULL: there is
// none.
static ccc_handle *ccc_capture_find(uint64_t value, const ccc_handle *besides, int *claimed)
{
    ccc_capture_enter();
    ccc_handle *found = ccc_captures_begun;
    while (found && (found == besides || !ccc_graph_is_within(ccc_as_capture(found)->graph, value)))
        found = ccc_as_capture(found)->next;
    *claimed = found && ccc_capture_claim(found);
    ccc_capture_leave();
    return found;
}

// End the captures into a graph and those inside it, but for one, and wait for those that other threads end.
static void ccc_capture_end_within(uint64_t value, const ccc_handle *besides)
{
    int claimed;
    ccc_handle *capture;
    while ((capture = ccc_capture_find(value, besides, &claimed))) {
        if (claimed)
            ccc_capture_stop_alone(capture);
        else
            sched_yield();
    }
}

// A graph inside a node is about to go: end the captures into it.
static void ccc_capture_end_in(uint64_t value)
{
    if (atomic_load_explicit(&ccc_captures, memory_order_acquire))
        ccc_capture_end_within(value, NULL);
}

// The same as ccc_capture_stop_alone, for the captures inside its graph, too.
static CUresult ccc_capture_stop(ccc_handle *capture)
{
    if (ccc_graph_data(ccc_as_capture(capture)->graph))
        ccc_capture_end_within(ccc_as_capture(capture)->graph->value, capture);
    return ccc_capture_stop_alone(capture);
}

// The end of a handle whose capture nobody has ended: that it was not complete is no failure.
static CUresult ccc_destroy_capture(ccc_handle *capture, const char **call)
{
    const ccc_capture *link = ccc_as_capture(capture);
    ccc_handle *home = ccc_as_capture(capture)->graph;  // NULL: nothing was begun
    CUresult result = CUDA_SUCCESS;
    *call = "cuStreamEndCapture";
    if (ccc_capture_claim(capture))
        result = ccc_capture_stop(capture);
    while (atomic_load(&link->listed) && ccc_graph_locks())  // another thread is about to end it
        sched_yield();
    if (home && !atomic_exchange(&ccc_as_capture(capture)->given, 1))
        ccc_release_object(home);  // of which this handle has a use for a moment more
    return result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               ? CUDA_SUCCESS
               : result;
}

static const ccc_handle_type ccc_capture_type = {
    .size = sizeof(ccc_capture),
    .stream = offsetof(ccc_capture, stream),
    .companion = offsetof(ccc_capture, graph),
    .destroy = ccc_destroy_capture,
};

static int ccc_capture_end(ccc_handle *capture)
{
    CCC_USE(capture);
    if (!ccc_capture_claim(capture))
        return CCC_CLOSED;
    CUresult result = ccc_capture_stop(capture);
    ccc_release(atomic_exchange(&ccc_as_capture(capture)->stream, NULL));
    return result ? ccc_fail((int)result, "cuStreamEndCapture") : 0;
}

// The handle of the graph, which is the caller's from now on. NULL: the capture's is closed, or the graph was given
// before.
static ccc_handle *ccc_capture_graph(ccc_handle *capture)
{
    CCC_USE_OR(capture, ccc_closed());
    return atomic_exchange(&ccc_as_capture(capture)->given, 1) ? ccc_closed() : ccc_as_capture(capture)->graph;
}

// A capture is under way from now on.
static void ccc_capture_begun(ccc_handle *capture)
{
    capture->value = 1;
    atomic_fetch_add(&ccc_captures, 1);
    ccc_captured_begin(&ccc_as_capture(capture)->captured, ccc_graph_root(ccc_as_capture(capture)->graph));
    ccc_capture_list(capture);
}

// Begin to capture into a graph inside a node. Who destroys the node finds the capture listed, or the graph gone here.
static int ccc_capture_start_in(ccc_handle *body, ccc_handle *capture, ccc_handle *stream, int mode)
{
    CCC_ENTER(body);
    CUresult result = ccc_begin_capture(stream, (CUstreamCaptureMode)mode, CCC_GRAPH_OF(body));
    if (result)
        return ccc_fail((int)result, "cuStreamBeginCaptureToGraph");
    status = ccc_capture_info(stream, &ccc_as_capture(capture)->captured.id, NULL, NULL, NULL);
    ccc_capture_begun(capture);  // after a failure the caller closes the capture, which ends it
    return status;
}

// The kernels of a graph that is captured in a green context run with the resources of that one: the graph keeps it.
static int ccc_capture_refer_green(const ccc_handle *stream, CUgraph graph)
{
    CUuserObject object;
    if (stream->parent == NULL || !(stream->parent->flags & CCC_GREEN))
        return 0;
    ccc_refs *refs = ccc_refs_new(&stream->parent, 1, 0);
    return refs ? ccc_refs_give(refs, graph, &object) : ccc_last_status();
}

// Begin to capture into a new graph. Returns the graph, and the driver's number of the capture.
static int ccc_capture_start(ccc_handle *stream, int mode, CUgraph *graph, uint64_t *id)
{
    CUresult result = ccc_begin_capture(stream, (CUstreamCaptureMode)mode, NULL);
    if (result)
        return ccc_fail((int)result, "cuStreamBeginCapture");
    int status = ccc_capture_info(stream, id, graph, NULL, NULL);
    if (status == 0)
        status = ccc_capture_refer_green(stream, *graph);
    if (status) {
        ccc_failure failure = ccc_last;
        CUgraph unused = NULL;
        if (cuStreamEndCapture(CCC_STRM(stream), &unused) == CUDA_SUCCESS)
            cuGraphDestroy(unused);
        ccc_last = failure;
    }
    return status;
}

// A capture that has not begun, so that its Python object is there before it begins. NULL: out of memory.
static ccc_handle *ccc_capture_new(void) { return ccc_new(CCC_CAPTURE, 0, 0, NULL); }

// Begin a new capture of a stream: into a graph inside a node, or where that is NULL into a new one. After a failure
// close the capture.
static int ccc_capture_begin(ccc_handle *capture, ccc_handle *stream, int mode, ccc_handle *inside)
{
    CUgraph captured = NULL;
    CCC_USE(capture);
    if (!ccc_acquire(stream))
        return CCC_CLOSED;
    ccc_handle *home = inside ? inside : ccc_graph_new(CCC_GRAPH, 0);
    if (home == NULL || !ccc_acquire(home)) {
        ccc_release(stream);
        return home ? CCC_CLOSED : CCC_NO_MEMORY;
    }
    atomic_store(&ccc_as_capture(capture)->stream, stream);
    ccc_as_capture(capture)->graph = home;
    atomic_store(&ccc_as_capture(capture)->given, inside != NULL);
    if (inside)
        return ccc_capture_start_in(inside, capture, stream, mode);
    ccc_graph_data(home)->captured = CCC_CAPTURE_ACTIVE;
    int status = ccc_capture_start(stream, mode, &captured, &ccc_as_capture(capture)->captured.id);
    if (status)
        return status;
    home->value = (uintptr_t)captured;
    ccc_capture_begun(capture);
    return 0;
}

// The nodes that what a stream is given next comes after; *count is the capacity of the array, then how many there are.
static int ccc_capture_ends(const ccc_handle *stream, ccc_handle *graph, uint64_t *nodes, size_t *count)
{
    CUgraph captured;
    const CUgraphNode *found;
    size_t capacity = *count;
    CCC_USE(stream);
    CCC_ENTER(graph);
    CCC_LOCK_CAPTURES;
    status = ccc_capture_info(stream, NULL, &captured, &found, count);
    for (size_t i = 0; status == 0 && i < *count && i < capacity; i++) {
        nodes[i] = (uintptr_t)found[i];
        ccc_graph_found(graph, &nodes[i], 1);
    }
    return status;
}

// What the stream is given next comes after this node of the graph that it is captured in.
static int ccc_capture_continue(const ccc_handle *stream, ccc_handle *graph, uint64_t node)
{
    CUgraphNode last = (CUgraphNode)(uintptr_t)node;
    CCC_USE(stream);
    CCC_ENTER_AT(graph, node);
    CUresult result = CCC_WITH_EDGE_DATA(cuStreamUpdateCaptureDependencies)(CCC_STRM(stream), &last, NULL, 1,
                                                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return result ? ccc_fail((int)result, "cuStreamUpdateCaptureDependencies") : 0;
}

// Destroy a node. `inner` are the graphs inside it: nothing begins there from the first step on, and captures into them
// end before the last.
static int ccc_graph_destroy_node(ccc_handle *graph, uint64_t node, const uint64_t *inner, size_t count, ccc_refs *refs)
{
    ccc_map *gone = &ccc_root_data(graph)->gone;
    int status = ccc_graph_enter_at(graph, &node, 1);
    if (status)
        return status;
    status = ccc_map_reserve(gone, count + 1);
    for (size_t i = 0; status == 0 && i < count; i++)
        ccc_map_set(gone, inner[i], &ccc_gone);
    if (status == 0 && count) {
        ccc_graph_leave(graph);
        for (size_t i = 0; i < count; i++)
            ccc_capture_end_in(inner[i]);
        if ((status = ccc_graph_enter_at(graph, &node, 1)))
            return status;
        status = ccc_map_reserve(gone, 1);
    }
    CUresult result = status ? CUDA_SUCCESS : cuGraphDestroyNode((CUgraphNode)(uintptr_t)node);
    if (result)
        status = ccc_fail((int)result, "cuGraphDestroyNode");
    if (status) {
        ccc_graph_found(graph, inner, count);
    } else {
        ccc_map_set(gone, node, &ccc_gone);
        ccc_graph_detach(graph, refs);
        ccc_graph_remove_inner(graph, node, inner, count);
    }
    ccc_graph_leave(graph);
    return status;
}

#endif
