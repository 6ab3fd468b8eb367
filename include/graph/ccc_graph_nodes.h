// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Nodes of graphs of any kind: adding them, setting and reading their parameters, the attributes of kernel nodes, and
// the events of event nodes.
#ifndef CCC_GRAPH_NODES_H
#define CCC_GRAPH_NODES_H

#include "graph/ccc_graph.h"
#include "memory/ccc_view.h"

enum { CCC_TO_DEVICE = 1, CCC_FROM_DEVICE = 2 };  // memory that the driver knows nothing of before the graph runs

// Where a node's parameters have its context; NULL for nodes of a type that has none.
static CUcontext *ccc_graph_context_of(CUgraphNodeParams *params)
{
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return &params->kernel.ctx;
    case CU_GRAPH_NODE_TYPE_MEMCPY: return &params->memcpy.copyCtx;
    case CU_GRAPH_NODE_TYPE_MEMSET: return &params->memset.ctx;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return &params->conditional.ctx;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return &params->memOp.ctx;
    default: return NULL;
    }
}

// The context that parameters name; 0: none, or these have no such field.
static uint64_t ccc_graph_get_context(CUgraphNodeParams *params)
{
    CUcontext *context = ccc_graph_context_of(params);
    return context ? (uintptr_t)*context : 0;
}

// Have a node run in a context: that in which it ran before.
static void ccc_graph_set_context(CUgraphNodeParams *params, uint64_t context)
{
    CUcontext *place = ccc_graph_context_of(params);
    if (place)
        *place = (CUcontext)(uintptr_t)context;
}

// Nodes that are given no context run in the current one.
static int ccc_graph_context(CUgraphNodeParams *params)
{
    CUcontext *context = ccc_graph_context_of(params);
    if (context == NULL)
        return 0;
    if (*context == NULL)
        CCC_TRY(cuCtxGetCurrent, context);
    return *context ? 0 : ccc_fail(CCC_NO_CONTEXT, "cuCtxGetCurrent");
}

// What a node is given beside its parameters' own: a context, and a host function the way through its ccc_refs.
static int ccc_graph_complete(CUgraphNodeParams *params, ccc_refs *refs)
{
    if (params->type != CU_GRAPH_NODE_TYPE_HOST)
        return ccc_graph_context(params);
    ccc_host_wrap(&params->host, refs);
    return 0;
}

// Tell the driver where memory is: the driver itself is asked, unless a graph allocates the memory.
static int ccc_graph_place(ccc_region *box, int on_device)
{
    if (ccc_region_is_array(box))
        return 0;
    int of_graph = on_device || (box->handle && box->handle->flags & CCC_OF_GRAPH);
    int type = of_graph ? CU_MEMORYTYPE_DEVICE : ccc_pointer_kind(ccc_region_address(box));
    if (type < 0)
        return ccc_last.status;
    box->on_host = type == CU_MEMORYTYPE_HOST;
    box->on_device = !box->on_host;
    return 0;
}

// The parameters of a copy, which runs in the context of an array that takes part. Addresses of memory are given.
// `on_device` is of CCC_TO_DEVICE and CCC_FROM_DEVICE.
static int ccc_graph_copy_params(CUgraphNodeParams *params, const ccc_region_copy *copy, int on_device)
{
    ccc_region_copy placed = *copy;
    CCC_USE_MAYBE(ccc_region_is_array(&copy->target) ? copy->target.handle : NULL);
    CCC_USE_MAYBE(ccc_region_is_array(&copy->source) ? copy->source.handle : NULL);
    int status = ccc_graph_place(&placed.source, on_device & CCC_FROM_DEVICE);
    if (status == 0)
        status = ccc_graph_place(&placed.target, on_device & CCC_TO_DEVICE);
    if (status)
        return status;
    params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    params->memcpy.copyParams = ccc_region_describe(&placed);
    const ccc_handle *array = ccc_region_array(copy);
    if (array)
        params->memcpy.copyCtx = CCC_CTX(ccc_context_of(array));
    return 0;
}

// The parameters of a copy between views.
static int ccc_graph_view_params(CUgraphNodeParams *params, const ccc_strided_copy *view, int on_device)
{
    const ccc_region_copy copy = ccc_view_region(view);
    return ccc_graph_copy_params(params, &copy, on_device);
}

// Attributes that a kernel node is to have.
typedef struct ccc_attributes {
    unsigned int count;
    CUlaunchAttribute values[CCC_MAX_LAUNCH_ATTRIBUTES];
    CUlaunchAttributeValue before[CCC_MAX_LAUNCH_ATTRIBUTES];  // out: what it had
} ccc_attributes;

// Set the first `count` attributes of a kernel node back to what it had.
static void ccc_graph_reset_attributes(CUgraphNode node, const ccc_attributes *attributes, unsigned int count)
{
    while (count-- > 0) {
        CUresult result = cuGraphKernelNodeSetAttribute(node, attributes->values[count].id, &attributes->before[count]);
        if (result)
            ccc_cleanup_failed((int)result, "cuGraphKernelNodeSetAttribute", (uintptr_t)node);
    }
}

// Set attributes of a kernel node: all, or none.
static int ccc_graph_set_attributes(CUgraphNode node, ccc_attributes *attributes)
{
    for (unsigned int i = 0; i < attributes->count; i++) {
        CUlaunchAttributeID id = attributes->values[i].id;
        const CUlaunchAttributeValue *wanted = &attributes->values[i].value;
        const char *call = "cuGraphKernelNodeGetAttribute";
        memset(&attributes->before[i], 0, sizeof attributes->before[i]);
        CUresult result = cuGraphKernelNodeGetAttribute(node, id, &attributes->before[i]);
        if (result == CUDA_SUCCESS && memcmp(&attributes->before[i], wanted, sizeof *wanted)) {
            call = "cuGraphKernelNodeSetAttribute";
            result = cuGraphKernelNodeSetAttribute(node, id, wanted);
        }
        if (result) {
            ccc_graph_reset_attributes(node, attributes, i);
            return ccc_fail((int)result, call);
        }
    }
    return 0;
}

// Find out whether a node could have these attributes: they are set after it was added, and from a graph that allocates
// no node can be removed again.
static int ccc_graph_try_attributes(CUgraphNodeParams *params, ccc_attributes *attributes)
{
    CUgraph graph;
    CUgraphNode node;
    CUresult result = cuGraphCreate(&graph, 0);
    if (result)
        return ccc_fail((int)result, "cuGraphCreate");
    result = CCC_WITH_EDGE_DATA(cuGraphAddNode)(&node, graph, NULL, NULL, 0, params);
    int status = result ? ccc_fail((int)result, "cuGraphAddNode") : ccc_graph_set_attributes(node, attributes);
    if ((result = cuGraphDestroy(graph)))
        ccc_cleanup_failed((int)result, "cuGraphDestroy", (uintptr_t)graph);
    return status;
}

// What became of a node that was to be added.
typedef struct ccc_added {
    int status;
    uint64_t node;
    uint64_t context;  // that the node runs in; 0: none
    ccc_refs *refs;    // the references of the node; NULL: none
} ccc_added;

static ccc_added ccc_not_added(int status, ccc_refs *refs)
{
    ccc_refs_release(refs);
    return (ccc_added){.status = status};
}

// New graphs are inside a node. The driver may have given them handles of graphs that are gone.
static void ccc_graph_has_bodies(ccc_handle *handle, const uint64_t *bodies, size_t count)
{
    ccc_graph_found(handle, bodies, count);
    for (size_t i = 0; i < count; i++)
        ccc_ref_tree_forget(&ccc_root_data(handle)->names, bodies[i]);
}

// Add a node that comes after `count` others. The lock is held; `attributes` and the ccc_refs may be NULL.
static ccc_added ccc_graph_add_to(ccc_handle *handle, const uint64_t *before, size_t count, CUgraphNodeParams *params,
                                  ccc_attributes *attributes, ccc_refs *refs)
{
    CUgraph graph = CCC_GRAPH_OF(handle);
    CUgraphNode node = NULL;
    int status = ccc_graph_check(handle, before, count);
    if (status == 0)
        status = ccc_graph_complete(params, refs);
    if (status == 0 && attributes)
        status = ccc_graph_try_attributes(params, attributes);
    if (status)
        return ccc_not_added(status, refs);
    if ((status = ccc_graph_attach(handle, refs)))
        return ccc_not_added(status, NULL);
    const CUgraphNode *others = (const CUgraphNode *)before;
    CUresult result = CCC_WITH_EDGE_DATA(cuGraphAddNode)(&node, graph, others, NULL, count, params);
    if (result) {
        status = ccc_fail((int)result, "cuGraphAddNode");
    } else if (attributes && (status = ccc_graph_set_attributes(node, attributes))) {
        ccc_failure failure = ccc_last;
        result = cuGraphDestroyNode(node);
        if (result)
            ccc_cleanup_failed((int)result, "cuGraphDestroyNode", (uintptr_t)node);
        ccc_last = failure;
    }
    if (status) {
        ccc_graph_detach(handle, refs);
        return ccc_not_added(status, NULL);
    }
    ccc_added added = {.node = (uintptr_t)node, .refs = refs};
    ccc_graph_found(handle, &added.node, 1);
    if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        ccc_root_data(handle)->conditional = 1;
        ccc_graph_has_bodies(handle, (const uint64_t *)params->conditional.phGraph_out, params->conditional.size);
    }
    added.context = ccc_graph_get_context(params);
    return added;
}

// The same without the lock. `child` is the graph to embed, or NULL. The node refers to the handles, and to the Python
// object of the token. The token is released on failure, but not if a handle was closed or memory is lacking.
static ccc_added ccc_graph_add(ccc_handle *graph, const uint64_t *before, size_t count, CUgraphNodeParams *params,
                               ccc_attributes *attributes, ccc_handle *child, ccc_handle *const *handles,
                               size_t handle_count, uint64_t token)
{
    ccc_refs *refs = NULL;
    if ((handle_count || token) && (refs = ccc_refs_new(handles, handle_count, token)) == NULL)
        return ccc_not_added(ccc_last.status, NULL);
    CCC_ENTER_ALL_OR(ccc_not_added(status, refs), graph, child);
    ccc_ref_tree *copy;
    status = ccc_graph_embed(graph, child, &copy);
    ccc_added added =
        status ? ccc_not_added(status, refs) : ccc_graph_add_to(graph, before, count, params, attributes, refs);
    if (status == 0)
        ccc_graph_embedded(graph, added.node, copy);
    if (child && ccc_root_data(child)->conditional)
        ccc_root_data(graph)->conditional = 1;
    return added;
}

#define CCC_LEAST_POINTERS 5  // of a kernel whose parameters are not known one by one
#define CCC_MOST_POINTERS 64  // kernels with more parameters take the longer way

// The parameters of a node that runs a kernel as a launch does. They point to the arguments, the target and `pointers`,
// which has room for as many as the kernel has parameters, and for CCC_LEAST_POINTERS.
static void ccc_graph_launch_params(CUgraphNodeParams *params, const ccc_target *target, const ccc_config *config,
                                    const char *arguments, void **pointers)
{
    params->type = CU_GRAPH_NODE_TYPE_KERNEL;
    params->kernel.kern = (CUkernel)CCC_POINTER(target->kernel);
    params->kernel.gridDimX = config->driver.gridDimX;
    params->kernel.gridDimY = config->driver.gridDimY;
    params->kernel.gridDimZ = config->driver.gridDimZ;
    params->kernel.blockDimX = config->driver.blockDimX;
    params->kernel.blockDimY = config->driver.blockDimY;
    params->kernel.blockDimZ = config->driver.blockDimZ;
    params->kernel.sharedMemBytes = config->driver.sharedMemBytes;
    if (target->size == 0)
        return;
    if (target->offsets == NULL) {
        void *extra[CCC_LEAST_POINTERS] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)arguments,
                                           CU_LAUNCH_PARAM_BUFFER_SIZE, (void *)&target->size, CU_LAUNCH_PARAM_END};
        params->kernel.extra = memcpy(pointers, extra, sizeof extra);
        return;
    }
    for (size_t i = 0; i < target->count; i++)  // the only way for cooperative kernels
        pointers[i] = (void *)(arguments + target->offsets[i]);
    params->kernel.kernelParams = pointers;
}

// Add a node that runs a kernel, after another one or, where that is 0, after none. The target, the configuration and
// the packed arguments are those of a launch; `handles` are referenced besides the kernel. The status is
// CCC_UNCHECKED, and nothing was done, where there are attributes, much shared memory or too many parameters.
static ccc_added ccc_graph_add_launch(ccc_handle *graph, uint64_t before, const ccc_target *target,
                                      const ccc_config *config, const char *arguments, ccc_handle *const *handles,
                                      size_t count)
{
    CUgraphNodeParams params = {0};
    void *pointers[CCC_MOST_POINTERS];
    if (config->demanding || target->count > CCC_MOST_POINTERS)
        return ccc_not_added(CCC_UNCHECKED, NULL);
    CCC_USE_OR(target->kernel, ccc_not_added(CCC_CLOSED, NULL));
    CCC_ENTER_OR(graph, NULL, 0, ccc_not_added(status, NULL));
    ccc_refs *refs = ccc_refs_of(target->kernel, handles, count, 0, 0);
    if (refs == NULL)
        return ccc_not_added(ccc_last.status, NULL);
    ccc_graph_launch_params(&params, target, config, arguments, pointers);
    ccc_added added = ccc_graph_add_to(graph, &before, before != 0, &params, NULL, refs);
    if (added.status == CUDA_ERROR_INVALID_VALUE && config->shared)
        added.status = CCC_UNCHECKED;  // the kernel's attribute may allow too little
    return added;
}

// Set a node's parameters, and what is kept for them in place of `old`. If there is a child, a copy of it takes the
// place of the graphs inside the node, of which `count` are known. They are noted as gone here: Python may be
// interrupted.
static int ccc_graph_set(ccc_handle *graph, uint64_t node, CUgraphNodeParams *params, ccc_attributes *attributes,
                         ccc_handle *child, const uint64_t *inner, size_t count, ccc_refs *refs, ccc_refs *old)
{
    ccc_ref_tree *copy = NULL;
    CUgraphNode target = (CUgraphNode)(uintptr_t)node;
    CCC_ENTER_ALL_OR((ccc_refs_release(refs), status), graph, child);
    ccc_map *gone = &ccc_root_data(graph)->gone;
    if ((status = ccc_graph_check(graph, &node, 1)) || (child && (status = ccc_map_reserve(gone, count))) ||
        (status = ccc_graph_complete(params, refs)) || (status = ccc_graph_embed(graph, child, &copy))) {
        ccc_refs_release(refs);
    } else if ((status = ccc_graph_attach(graph, refs)) == 0) {
        if (attributes)
            status = ccc_graph_set_attributes(target, attributes);
        CUresult result = status ? CUDA_SUCCESS : cuGraphNodeSetParams(target, params);
        if (result) {
            if (attributes)
                ccc_graph_reset_attributes(target, attributes, attributes->count);
            status = ccc_fail((int)result, "cuGraphNodeSetParams");
        }
        ccc_graph_detach(graph, status ? refs : old);
    }
    if (child && status == 0) {
        for (size_t i = 0; i < count; i++)
            ccc_map_set(gone, inner[i], &ccc_gone);
        ccc_graph_remove_inner(graph, node, inner, count);
    }
    ccc_graph_embedded(graph, status ? 0 : node, copy);
    return status;
}

// A node's parameters, as the function for its type gives them; what they point to is valid until the node changes.
static int ccc_graph_get(ccc_handle *graph, uint64_t node, int type, void *params)
{
    CUgraphNode target = (CUgraphNode)(uintptr_t)node;
    const char *call;
    CUresult result;
    CCC_ENTER_AT(graph, node);
    switch (type) {
#define CCC_GET(kind, function) \
    case CU_GRAPH_NODE_TYPE_##kind: \
        call = #function; /* not CCC_TRY, which would name what the header makes of it */ \
        result = function(target, params); \
        break;
        CCC_GET(KERNEL, cuGraphKernelNodeGetParams)
        CCC_GET(MEMCPY, cuGraphMemcpyNodeGetParams)
        CCC_GET(MEMSET, cuGraphMemsetNodeGetParams)
        CCC_GET(HOST, cuGraphHostNodeGetParams)
        CCC_GET(GRAPH, cuGraphChildGraphNodeGetGraph)
        CCC_GET(EVENT_RECORD, cuGraphEventRecordNodeGetEvent)
        CCC_GET(WAIT_EVENT, cuGraphEventWaitNodeGetEvent)
        CCC_GET(MEM_ALLOC, cuGraphMemAllocNodeGetParams)
        CCC_GET(MEM_FREE, cuGraphMemFreeNodeGetParams)
        CCC_GET(BATCH_MEM_OP, cuGraphBatchMemOpNodeGetParams)
#undef CCC_GET
    default: call = "cuGraphNodeGetParams"; result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result)
        return ccc_fail((int)result, call);
    if (type == CU_GRAPH_NODE_TYPE_HOST)
        ccc_host_unwrap(params);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH)
        ccc_graph_found(graph, params, 1);
    return 0;
}

static int ccc_graph_get_attribute(ccc_handle *graph, uint64_t node, CUlaunchAttributeID id,
                                   CUlaunchAttributeValue *value)
{
    CCC_ENTER_AT(graph, node);
    CCC_TRY(cuGraphKernelNodeGetAttribute, (CUgraphNode)(uintptr_t)node, id, value);
    return 0;
}

// The event of a node, for another Python object: it is not destroyed before this handle goes.
static ccc_handle *ccc_graph_event(ccc_handle *event)
{
    if (!ccc_retain(event)) {
        ccc_fail(CCC_CLOSED, "");
        return NULL;
    }
    ccc_handle *again = ccc_new(CCC_EVENT, event->value, event->flags | CCC_BORROWED, event->parent);
    if (again)
        ccc_as_timeline(again)->original = event;
    else
        ccc_release(event);
    return again;
}

// The same for an event that is only known by its handle; taken to be of the current context.
static ccc_handle *ccc_graph_foreign_event(uint64_t value)
{
    int status;
    ccc_handle *context = ccc_current_context(&status);
    if (context == NULL) {
        if (status == 0)
            ccc_fail(CCC_NO_CONTEXT, "cuCtxGetCurrent");
        return NULL;
    }
    ccc_handle *event = ccc_new(CCC_EVENT, value, CCC_BORROWED, context);
    ccc_release(context);
    return event;
}

#endif
