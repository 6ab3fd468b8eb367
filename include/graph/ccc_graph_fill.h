/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that fill, copy, record, wait, call, or do nothing, added in one call from plain arguments: Python fills in no
 * structure. Where memory has a handle, that is kept, and the address was asked of it; else the handle is NULL.
 */
#ifndef CCC_GRAPH_FILL_H
#define CCC_GRAPH_FILL_H

#include "graph/ccc_graph_nodes.h"

enum { CCC_TO_DEVICE = 1, CCC_FROM_DEVICE = 2 }; /* memory that the driver knows nothing of before the graph runs */

/* Add a node after another one or, where that is 0, after none; it keeps handles, which may be NULL, and a token. */
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

/* Fill one row of `width` elements. */
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

/* Where the driver is told that memory is; negative where it cannot tell itself. */
static int ccc_graph_memory_type(uint64_t address, const ccc_handle *handle, int on_device)
{
    return on_device || (handle && handle->flags & CCC_OF_GRAPH) ? CU_MEMORYTYPE_DEVICE : ccc_pointer_kind(address);
}

/* The parameters of a copy of consecutive bytes. `on_device` is of CCC_TO_DEVICE and CCC_FROM_DEVICE. */
static int ccc_graph_copy_params(CUgraphNodeParams *params, uint64_t target, const ccc_handle *target_handle,
                                 uint64_t source, const ccc_handle *source_handle, size_t size, int on_device)
{
    CUDA_MEMCPY3D *copy = &params->memcpy.copyParams;
    int whence = ccc_graph_memory_type(source, source_handle, on_device & CCC_FROM_DEVICE);
    int where = whence < 0 ? whence : ccc_graph_memory_type(target, target_handle, on_device & CCC_TO_DEVICE);
    if (where < 0)
        return ccc_last.status;
    params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    copy->srcMemoryType = (CUmemorytype)whence;
    copy->dstMemoryType = (CUmemorytype)where;
    if (whence == CU_MEMORYTYPE_HOST)
        copy->srcHost = (void *)(uintptr_t)source;
    else
        copy->srcDevice = source;
    if (where == CU_MEMORYTYPE_HOST)
        copy->dstHost = (void *)(uintptr_t)target;
    else
        copy->dstDevice = target;
    copy->WidthInBytes = size;
    copy->Height = copy->Depth = 1;
    return 0;
}

static ccc_added ccc_graph_add_memcpy(ccc_handle *graph, uint64_t before, uint64_t target, ccc_handle *target_handle,
                                      uint64_t source, ccc_handle *source_handle, size_t size, int on_device)
{
    CUgraphNodeParams params = {0};
    int status = ccc_graph_copy_params(&params, target, target_handle, source, source_handle, size, on_device);
    return status ? ccc_not_added(status, NULL)
                  : ccc_graph_add_keeping(graph, before, &params, target_handle, source_handle, 0);
}

/* Record an event, or wait for it, as the node's type says. */
static ccc_added ccc_graph_add_event(ccc_handle *graph, uint64_t before, int type, uint64_t event, ccc_handle *handle)
{
    CUgraphNodeParams params = {.type = (CUgraphNodeType)type};
    if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        params.eventRecord.event = (CUevent)(uintptr_t)event;
    else
        params.eventWait.event = (CUevent)(uintptr_t)event;
    return ccc_graph_add_keeping(graph, before, &params, handle, NULL, 0);
}

/* Call a function of the host. Python keeps objects under the token. */
static ccc_added ccc_graph_add_host(ccc_handle *graph, uint64_t before, uint64_t function, uint64_t data,
                                    uint64_t token)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = (CUhostFn)(uintptr_t)function;
    params.host.userData = (void *)(uintptr_t)data;
    return ccc_graph_add_keeping(graph, before, &params, NULL, NULL, token);
}

#endif
