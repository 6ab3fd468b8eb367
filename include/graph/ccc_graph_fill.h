// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Nodes that fill, copy, record, wait, call, or do nothing, added in one call from plain arguments: Python fills in no
// structure. Where memory has a handle, that is kept, and the address was asked of it; else the handle is NULL.
#ifndef CCC_GRAPH_FILL_H
#define CCC_GRAPH_FILL_H

#include "graph/ccc_graph_nodes.h"
#include "memory/ccc_view.h"

enum { CCC_TO_DEVICE = 1, CCC_FROM_DEVICE = 2 };  // memory that the driver knows nothing of before the graph runs

// Add a node after another one or, where that is 0, after none; it keeps handles, which may be NULL, and a token.
static ccc_added ccc_graph_add_keeping(ccc_handle *graph, uint64_t before, CUgraphNodeParams *params, ccc_handle *one,
                                       ccc_handle *other, uint64_t token)
{
    int status = ccc_graph_enter(graph);
    if (status)
        return ccc_not_added(status, NULL);
    ccc_keep *keep = NULL;
    ccc_added added = {0};
    if (one || other || token) {
        keep = ccc_keep_of(one, &other, other != NULL, token, 0);
        added.status = keep ? 0 : ccc_last.status;
    }
    if (added.status == 0)
        added = ccc_graph_add_to(graph, &before, before != 0, params, NULL, keep);
    ccc_graph_leave(graph);
    return added;
}

static ccc_added ccc_graph_add_empty(ccc_handle *graph, const uint64_t *before, size_t count)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    int status = ccc_graph_enter(graph);
    if (status)
        return ccc_not_added(status, NULL);
    ccc_added added = ccc_graph_add_to(graph, before, count, &params, NULL, NULL);
    ccc_graph_leave(graph);
    return added;
}

// Fill one row of `width` elements.
static ccc_added ccc_graph_add_memset(ccc_handle *graph, uint64_t before, uint64_t target, ccc_handle *handle,
                                      unsigned int value, unsigned int element, size_t width)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    params.memset.dst = target;
    params.memset.value = value;
    params.memset.elementSize = element;
    params.memset.width = width;
    params.memset.height = 1;
    return ccc_graph_add_keeping(graph, before, &params, handle, NULL, 0);
}

// Tell the driver where memory is: the driver itself is asked, unless a graph allocates the memory.
static int ccc_graph_place(ccc_box *box, int on_device)
{
    if (ccc_box_is_array(box))
        return 0;
    int of_graph = on_device || (box->handle && box->handle->flags & CCC_OF_GRAPH);
    int type = of_graph ? CU_MEMORYTYPE_DEVICE : ccc_pointer_kind(ccc_box_address(box));
    if (type < 0)
        return ccc_last.status;
    box->on_host = type == CU_MEMORYTYPE_HOST;
    box->on_device = !box->on_host;
    return 0;
}

// The parameters of a copy, which runs in the context of an array that takes part. Addresses of memory are given.
// `on_device` is of CCC_TO_DEVICE and CCC_FROM_DEVICE.
static int ccc_graph_copy_params(CUgraphNodeParams *params, const ccc_box_copy *copy, int on_device)
{
    ccc_box_copy placed = *copy;
    CCC_USE_MAYBE(ccc_box_is_array(&copy->target) ? copy->target.handle : NULL);
    CCC_USE_MAYBE(ccc_box_is_array(&copy->source) ? copy->source.handle : NULL);
    int status = ccc_graph_place(&placed.source, on_device & CCC_FROM_DEVICE);
    if (status == 0)
        status = ccc_graph_place(&placed.target, on_device & CCC_TO_DEVICE);
    if (status)
        return status;
    params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    params->memcpy.copyParams = ccc_box_describe(&placed);
    const ccc_handle *array = ccc_box_array(copy);
    if (array)
        params->memcpy.copyCtx = CCC_CTX(ccc_context_of(array));
    return 0;
}

// The parameters of a copy between views.
static int ccc_graph_view_params(CUgraphNodeParams *params, const ccc_strided_copy *view, int on_device)
{
    const ccc_box_copy copy = ccc_view_box(view);
    return ccc_graph_copy_params(params, &copy, on_device);
}

// Copy consecutive bytes.
static ccc_added ccc_graph_add_memcpy(ccc_handle *graph, uint64_t before, uint64_t target, ccc_handle *target_handle,
                                      uint64_t source, ccc_handle *source_handle, size_t size, int on_device)
{
    CUgraphNodeParams params = {0};
    const ccc_box_copy copy = {
        .target = {.handle = target_handle, .address = target},
        .source = {.handle = source_handle, .address = source},
        .width = size,
        .rows = 1,
        .layers = 1,
    };
    int status = ccc_graph_copy_params(&params, &copy, on_device);
    return status ? ccc_not_added(status, NULL)
                  : ccc_graph_add_keeping(graph, before, &params, target_handle, source_handle, 0);
}

// Record an event, or wait for it, as the node's type says.
static ccc_added ccc_graph_add_event(ccc_handle *graph, uint64_t before, int type, uint64_t event, ccc_handle *handle)
{
    CUgraphNodeParams params = {.type = (CUgraphNodeType)type};
    if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        params.eventRecord.event = (CUevent)(uintptr_t)event;
    else
        params.eventWait.event = (CUevent)(uintptr_t)event;
    return ccc_graph_add_keeping(graph, before, &params, handle, NULL, 0);
}

// Call a function of the host. Python keeps objects under the token.
static ccc_added ccc_graph_add_host(ccc_handle *graph, uint64_t before, uint64_t function, uint64_t data,
                                    uint64_t token)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = (CUhostFn)(uintptr_t)function;
    params.host.userData = (void *)(uintptr_t)data;
    return ccc_graph_add_keeping(graph, before, &params, NULL, NULL, token);
}

#endif
