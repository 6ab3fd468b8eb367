// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Executables of graphs. An executable keeps itself what the definition kept itself that it was instantiated with, or
// updated with as a whole: until it is updated again or goes, and the launches that may use it are done. The driver
// makes the launches of an executable one after the other, so the last one counts. Its stream is remembered, and an
// event is recorded there when something is let go of; a stream of another library may be gone by then, so there each
// launch has the event recorded behind it. An executable keeps likewise what a single node of it was set to, until the
// node is set again. A launch that is captured gives it to the graph that it becomes part of. What the driver had of
// the definition's, it keeps for the executable.
#ifndef CCC_GRAPH_EXEC_H
#define CCC_GRAPH_EXEC_H

#include "graph/ccc_graph_nodes.h"

// Have an executable keep something, which may be NULL.
static void ccc_exec_refer(ccc_graph *executable, ccc_refs *refs)
{
    if (refs)
        ccc_refs_link(&executable->tree.refs, refs);
}

static ccc_handle *ccc_graph_instantiate(ccc_handle *graph, uint64_t flags, const ccc_handle *stream, ccc_refusal *why)
{
    CUgraphExec executable = NULL;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags, .hUploadStream = stream ? CCC_STRM(stream) : NULL};
    ccc_refs *bundle = NULL;
    CCC_USE_MAYBE_OR(stream, ccc_closed());
    int status = ccc_graph_enter(graph);
    if (status) {
        ccc_fail(status, "");
        return NULL;
    }
    const int conditional = ccc_root_data(graph)->conditional;
    status = ccc_ref_tree_bundle(ccc_graph_tree(graph), &bundle);
    CUresult result = CUDA_SUCCESS;
    ccc_scope scope = {NULL, 0};
    // the driver asks for a context, or takes that of the stream; nodes have their own
    if (status == 0 && stream == NULL)
        status = ccc_enter_any(&scope);
    if (status == 0)
        result = cuGraphInstantiateWithParams(&executable, CCC_GRAPH_OF(graph), &params);
    if (result)
        status = ccc_fail((int)result, "cuGraphInstantiateWithParams");
    status = ccc_left(&scope, status);
    ccc_leave(&scope);
    ccc_graph_leave(graph);
    why->result = (int)params.result_out;
    why->node = (uintptr_t)params.hErrNode_out;
    ccc_handle *handle = status ? NULL : ccc_graph_new(CCC_EXECUTABLE, (uintptr_t)executable);
    if (handle) {
        ccc_exec_refer(ccc_graph_data(handle), bundle);
        if (conditional) {
            handle->flags |= CCC_WAITS;
            atomic_fetch_add(&ccc_waits_alive, 1);
        }
    } else {
        ccc_refs_release(bundle);
    }
    if (handle == NULL && executable)
        cuGraphExecDestroy(executable);
    return handle;
}

static void ccc_exec_forget_stream(ccc_graph *executable)
{
    if (executable->stream)
        ccc_release_memory(executable->stream);
    executable->stream = NULL;
}

// Have `event` stand for the launches so far; NULL: they are done.
static void ccc_exec_settle(ccc_graph *executable)
{
    ccc_handle *stream = executable->stream;
    if (stream == NULL || ccc_driver.reason == CCC_FORKED)
        return;
    ccc_await_end(executable->event);
    executable->event = NULL;
    if (!ccc_retain(stream)) {  // it is gone, and its handle is waited for as long as it had work left
        executable->event = stream;
        executable->stream = NULL;
        return;
    }
    if (!ccc_is_captured(stream) && (executable->event = ccc_stream_record_in(stream, CU_EVENT_DISABLE_TIMING))) {
        ccc_release_memory(executable->event);  // no Python object holds it
        ccc_release(stream);
    } else {
        executable->event = stream;
    }
    ccc_exec_forget_stream(executable);
}

// Let go of what an executable keeps for a node, or of all that it keeps: when the launches so far are done.
static void ccc_exec_release(ccc_graph *executable, uint64_t node, int all)
{
    ccc_refs *refs = all ? executable->tree.refs : ccc_map_find(&executable->by_node, node);
    int done = 1;
    if (refs) {
        ccc_mode mode = ccc_force_relaxed_mode();
        ccc_exec_settle(executable);
        done = executable->event == NULL || ccc_reached(executable->event) == CUDA_SUCCESS;
        ccc_restore_mode(&mode);
    }
    if (all)
        ccc_map_end(&executable->by_node);
    else
        ccc_map_remove(&executable->by_node, node);
    for (ccc_refs *next; refs; refs = next) {
        next = all ? refs->next : NULL;
        ccc_refs_unlink(refs);
        if (!done) {
            refs->event = ccc_await_too(executable->event);
            ccc_refs_release_later(refs);
            ccc_release_ask();
        } else {
            ccc_refs_release(refs);
        }
    }
}

// What it keeps may go once it has gone: then another thread releases that, perhaps at once.
static CUresult ccc_destroy_graph(ccc_handle *handle, const char **call)
{
    ccc_graph *graph = ccc_graph_data(handle);
    CUresult result = CUDA_SUCCESS;
    if (handle->kind == CCC_EXECUTABLE) {
        *call = "cuGraphExecDestroy";
        result = cuGraphExecDestroy(CCC_EXEC_OF(handle));
    } else if (graph == NULL || !graph->captured) {
        *call = "cuGraphDestroy";
        result = cuGraphDestroy(CCC_GRAPH_OF(handle));
    }
    if (graph) {  // not the second try, in another context
        ccc_exec_release(graph, 0, 1);
        ccc_ref_tree_clear(&graph->names, &graph->tree);  // of a definition: for graphs inside it
        ccc_map_end(&graph->names);
        ccc_await_end(graph->event);
        ccc_exec_forget_stream(graph);
        ccc_map_end(&graph->gone);
        pthread_mutex_destroy(&graph->lock);
        free(graph);
        ccc_as_graph(handle)->graph = NULL;
    }
    return result;
}

// Graphs and executables.
static const ccc_handle_type ccc_graph_type = {.size = sizeof(ccc_graph_handle), .destroy = ccc_destroy_graph};

// Give what an executable keeps to the graph that a launch of it was captured in.
static int ccc_exec_share(const ccc_graph *executable, const ccc_handle *stream)
{
    CUgraph graph;
    CUuserObject object;
    int status = ccc_capture_info(stream, NULL, &graph, NULL, NULL);
    for (ccc_refs *refs = executable->tree.refs; refs && status == 0; refs = refs->next) {
        atomic_fetch_add(&refs->uses, 1);
        status = ccc_refs_give(refs, graph, &object);
    }
    return status;
}

// Record the event behind a launch. One that a ccc_refs waits for already stays behind the launch that it was for.
static int ccc_exec_mark(ccc_graph *executable, ccc_handle *stream)
{
    ccc_handle *event = executable->event;
    ccc_exec_forget_stream(executable);
    if (event && event->kind == CCC_EVENT && ccc_uses(event) == 1 && ccc_event_record_in(event, stream) == 0)
        return 0;
    ccc_handle *fresh = ccc_stream_record_in(stream, CU_EVENT_DISABLE_TIMING);  // or the stream is of another context
    if (fresh == NULL)
        return ccc_last_status();
    ccc_release_memory(fresh);  // no Python object holds it
    ccc_await_end(event);
    executable->event = fresh;
    return 0;
}

// Keep what an executable keeps for a launch of it, too.
static int ccc_exec_launched(ccc_graph *executable, ccc_handle *stream)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!(stream->flags & CCC_BORROWED) && !ccc_capturing()) {
        if (executable->stream != stream) {
            ccc_exec_forget_stream(executable);
            atomic_fetch_add(&stream->memory_uses, 1);
            executable->stream = stream;
            ccc_as_stream(stream)->followed = 1;
        }
        return 0;
    }
    CUresult result = cuStreamIsCapturing(CCC_STRM(stream), &capture);
    if (result == CUDA_SUCCESS && capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return ccc_exec_share(executable, stream);
    int status = result ? ccc_fail((int)result, "cuStreamIsCapturing") : ccc_exec_mark(executable, stream);
    if (status) {
        ccc_failure failure = ccc_last;  // nobody could tell when the launch is done: so it is waited for
        result = cuStreamSynchronize(CCC_STRM(stream));
        if (result)
            ccc_cleanup_failed((int)result, "cuStreamSynchronize", stream->value);
        ccc_last = failure;
    }
    return status;
}

// The same as below for a caller who has a use of the stream.
static int ccc_graph_launch_in(ccc_handle *executable, ccc_handle *stream)
{
    CCC_ENTER(executable);
    CCC_SUBMIT;
    CCC_TRY(cuGraphLaunch, CCC_EXEC_OF(executable), CCC_STRM(stream));
    return ccc_graph_data(executable)->tree.refs ? ccc_exec_launched(ccc_graph_data(executable), stream) : 0;
}

static int ccc_graph_launch(ccc_handle *executable, ccc_handle *stream)
{
    CCC_USE(stream);
    return ccc_graph_launch_in(executable, stream);
}

static int ccc_graph_upload(ccc_handle *executable, ccc_handle *stream)
{
    CCC_USE(stream);
    CCC_ENTER(executable);
    CCC_TRY(cuGraphUpload, CCC_EXEC_OF(executable), CCC_STRM(stream));
    return 0;
}

// Give an executable the parameters of another definition.
static int ccc_graph_update(ccc_handle *executable, ccc_handle *graph, ccc_refusal *why)
{
    CUgraphExecUpdateResultInfo info = {0};
    ccc_refs *bundle = NULL;
    CCC_ENTER_ALL_OR(status, executable, graph);
    if ((status = ccc_ref_tree_bundle(ccc_graph_tree(graph), &bundle)) == 0) {
        CUresult result = cuGraphExecUpdate(CCC_EXEC_OF(executable), CCC_GRAPH_OF(graph), &info);
        if (result)
            status = ccc_fail((int)result, "cuGraphExecUpdate");
    }
    if (status) {
        ccc_refs_release(bundle);
    } else {
        ccc_exec_release(ccc_graph_data(executable), 0, 1);
        ccc_exec_refer(ccc_graph_data(executable), bundle);
    }
    why->result = (int)info.result;
    why->node = (uintptr_t)info.errorNode;
    return status;
}

// Set one node of an executable, and what is kept for it. `graph` is what the node is in; `child` is the graph in the
// parameters of a child node, for which what that keeps itself is kept. The driver looks at the node: of the graph,
// too, it wants one call after the other.
static int ccc_exec_set(ccc_handle *executable, ccc_handle *graph, uint64_t node, CUgraphNodeParams *params,
                        ccc_handle *child, ccc_refs *refs)
{
    CCC_ENTER_ALL_OR((ccc_refs_release(refs), status), executable, graph, child);
    status = ccc_graph_check(graph, &node, 1);
    if (status == 0 && child)
        status = ccc_ref_tree_bundle(ccc_graph_tree(child), &refs);
    if (status == 0 && refs)
        status = ccc_map_reserve(&ccc_graph_data(executable)->by_node, 1);
    if (status == 0 && (status = ccc_graph_complete(params, refs)) == 0) {
        CUresult result = cuGraphExecNodeSetParams(CCC_EXEC_OF(executable), (CUgraphNode)(uintptr_t)node, params);
        if (result)
            status = ccc_fail((int)result, "cuGraphExecNodeSetParams");
    }
    if (status) {
        ccc_refs_release(refs);
    } else {
        ccc_exec_release(ccc_graph_data(executable), node, 0);
        if (refs) {
            ccc_map_set(&ccc_graph_data(executable)->by_node, node, refs);
            ccc_exec_refer(ccc_graph_data(executable), refs);
        }
    }
    return status;
}

// Whether a node of an executable does something: ask, or set it.
static int ccc_exec_enabled(ccc_handle *executable, ccc_handle *graph, uint64_t node, unsigned int *enabled, int set)
{
    CUgraphNode target = (CUgraphNode)(uintptr_t)node;
    CCC_ENTER_ALL_OR(status, executable, graph);
    if ((status = ccc_graph_check(graph, &node, 1)))
        return status;
    if (set)
        CCC_TRY(cuGraphNodeSetEnabled, CCC_EXEC_OF(executable), target, *enabled);
    else
        CCC_TRY(cuGraphNodeGetEnabled, CCC_EXEC_OF(executable), target, enabled);
    return 0;
}

#endif
