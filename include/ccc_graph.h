/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs and executables. The driver wants calls on one graph made one after the other, even those that only look: so
 * each call here holds the lock of the graph's root, or of the executable. Calls that take a keep take it over: where
 * they fail, it is finished. docs/graphs.md tells who keeps what.
 */
#ifndef CCC_GRAPH_H
#define CCC_GRAPH_H

#include "ccc_compat.h"
#include "ccc_keep.h"
#include "ccc_launch.h"

typedef struct ccc_graph {
    pthread_mutex_t lock;
    ccc_keep *keeps; /* of an executable: for nodes that were set in it alone */
    ccc_box *event;  /* of an executable that has such keeps: behind its last launch */
} ccc_graph;

/* Why the driver did not instantiate or update. */
typedef struct ccc_refusal {
    int result;    /* a CUgraphInstantiateResult or CUgraphExecUpdateResult */
    uint64_t node; /* the one at fault; 0: not known */
} ccc_refusal;

#define CCC_GRAPH_OF(box) ((CUgraph)CCC_POINTER(box))
#define CCC_EXEC_OF(box) ((CUgraphExec)CCC_POINTER(box))

static ccc_box *ccc_graph_box(ccc_kind kind, uint64_t handle)
{
    ccc_graph *graph = calloc(1, sizeof *graph);
    ccc_box *box = graph ? ccc_new(kind, handle, 0, NULL) : NULL;
    if (box == NULL) {
        free(graph);
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    pthread_mutex_init(&graph->lock, NULL);
    box->graph = graph;
    return box;
}

/* The box whose lock counts: a graph inside another has its root's. */
static ccc_box *ccc_graph_root(ccc_box *box)
{
    while (box->flags & CCC_BORROWED)
        box = box->parent;
    return box;
}

static int ccc_graph_enter(ccc_box *box)
{
    ccc_box *root = ccc_graph_root(box);
    if (!ccc_is_open(box) || !ccc_is_open(root) || !ccc_retain(root))
        return CCC_CLOSED;
    pthread_mutex_lock(&root->graph->lock);
    return 0;
}

static void ccc_graph_leave(ccc_box *box)
{
    ccc_box *root = ccc_graph_root(box);
    pthread_mutex_unlock(&root->graph->lock);
    ccc_release(root);
}

/* Enter two boxes of different roots, in an order that every thread keeps to. The second may be NULL. */
static int ccc_graph_enter_both(ccc_box *one, ccc_box *other)
{
    if (other && ccc_graph_root(other) < ccc_graph_root(one)) {
        ccc_box *swapped = one;
        one = other;
        other = swapped;
    }
    int status = ccc_graph_enter(one);
    if (status == 0 && other && (status = ccc_graph_enter(other)))
        ccc_graph_leave(one);
    return status;
}

static void ccc_graph_leave_both(ccc_box *one, ccc_box *other)
{
    ccc_graph_leave(one);
    if (other)
        ccc_graph_leave(other);
}

static ccc_box *ccc_graph_create(void)
{
    CUgraph graph = NULL;
    if (ccc_init())
        return NULL;
    CUresult result = cuGraphCreate(&graph, 0);
    if (result) {
        ccc_fail((int)result, "cuGraphCreate");
        return NULL;
    }
    ccc_box *box = ccc_graph_box(CCC_GRAPH, (uintptr_t)graph);
    if (box == NULL)
        cuGraphDestroy(graph);
    return box;
}

/* A graph that somebody gives us, for example what a capture made. It is ours from now on, even on failure. */
static ccc_box *ccc_graph_adopt(uint64_t handle)
{
    ccc_box *box = ccc_graph_box(CCC_GRAPH, handle);
    if (box == NULL)
        cuGraphDestroy((CUgraph)(uintptr_t)handle);
    return box;
}

/* A graph that belongs to a node of another one. */
static ccc_box *ccc_graph_inner(uint64_t handle, ccc_box *outer)
{
    return ccc_new(CCC_GRAPH, handle, CCC_BORROWED, outer);
}

static ccc_box *ccc_graph_clone(ccc_box *graph)
{
    CUgraph clone = NULL;
    int status = ccc_graph_enter(graph);
    if (status) {
        ccc_fail(status, "");
        return NULL;
    }
    CUresult result = cuGraphClone(&clone, CCC_GRAPH_OF(graph));
    ccc_graph_leave(graph);
    if (result) {
        ccc_fail((int)result, "cuGraphClone");
        return NULL;
    }
    return ccc_graph_adopt((uintptr_t)clone);
}

/* The node of a clone that stands for a node of the original; 0 where the driver does not tell. */
static uint64_t ccc_graph_find(ccc_box *clone, uint64_t original)
{
    CUgraphNode node = NULL;
    if (ccc_graph_enter(clone))
        return 0;
    CUresult result = cuGraphNodeFindInClone(&node, (CUgraphNode)(uintptr_t)original, CCC_GRAPH_OF(clone));
    ccc_graph_leave(clone);
    return result ? 0 : (uintptr_t)node;
}

/* Nodes that are given no context run in the current one. */
static int ccc_graph_context(CUgraphNodeParams *params)
{
    CUcontext *context;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        context = &params->kernel.ctx;
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        context = &params->memcpy.copyCtx;
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        context = &params->memset.ctx;
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        context = &params->conditional.ctx;
        break;
    default:
        return 0;
    }
    if (*context == NULL)
        CCC_TRY(cuCtxGetCurrent, context);
    return *context ? 0 : ccc_fail(CCC_NO_CONTEXT, "cuCtxGetCurrent");
}

/* The attributes of a configuration that nodes have. */
static const CUlaunchAttributeID ccc_node_attributes[] = {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                          CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
#define CCC_NODE_ATTRIBUTES 2

/* Set those of a kernel node that differ. `before` gets what was there, to be set again if what follows fails. */
static int ccc_graph_set_attributes(CUgraphNode node, const ccc_config *config, CUlaunchAttributeValue *before,
                                    int *changed)
{
    for (int i = 0; i < CCC_NODE_ATTRIBUTES; i++) {
        CUlaunchAttributeValue wanted = {0};
        changed[i] = 0;
        for (unsigned int k = 0; k < config->driver.numAttrs; k++)
            if (config->attributes[k].id == ccc_node_attributes[i])
                wanted = config->attributes[k].value;
        memset(&before[i], 0, sizeof before[i]);
        CCC_TRY(cuGraphKernelNodeGetAttribute, node, ccc_node_attributes[i], &before[i]);
        int same = i == 0 ? before[i].clusterDim.x == wanted.clusterDim.x && before[i].clusterDim.y == wanted.clusterDim.y &&
                                before[i].clusterDim.z == wanted.clusterDim.z
                          : before[i].cooperative == wanted.cooperative;
        if (same)
            continue;
        CCC_TRY(cuGraphKernelNodeSetAttribute, node, ccc_node_attributes[i], &wanted);
        changed[i] = 1;
    }
    return 0;
}

static void ccc_graph_reset_attributes(CUgraphNode node, const CUlaunchAttributeValue *before, const int *changed)
{
    for (int i = 0; i < CCC_NODE_ATTRIBUTES; i++) {
        CUresult result = changed[i] ? cuGraphKernelNodeSetAttribute(node, ccc_node_attributes[i], &before[i]) : CUDA_SUCCESS;
        if (result)
            ccc_cleanup_failed((int)result, "cuGraphKernelNodeSetAttribute");
    }
}

/*
 * Add a node that comes after `count` others. `config` has the attributes of a kernel node, `child` is the graph to
 * embed; both may be NULL, like the keep.
 */
static int ccc_graph_add(ccc_box *graph, const uint64_t *before, size_t count, CUgraphNodeParams *params,
                         const ccc_config *config, ccc_box *child, ccc_keep *keep, uint64_t *node)
{
    CUgraphNode added = NULL;
    int status = ccc_graph_enter_both(graph, child);
    if (status) {
        ccc_keep_finish(keep);
        return status;
    }
    if ((status = ccc_graph_context(params))) {
        ccc_keep_finish(keep);
    } else if ((status = ccc_keep_attach(keep, CCC_GRAPH_OF(graph))) == 0) {
        CUresult result = cuGraphAddNode(&added, CCC_GRAPH_OF(graph), (const CUgraphNode *)before, NULL, count, params);
        if (result) {
            status = ccc_fail((int)result, "cuGraphAddNode");
        } else if (config && config->driver.numAttrs) {
            CUlaunchAttributeValue old[CCC_NODE_ATTRIBUTES];
            int changed[CCC_NODE_ATTRIBUTES];
            status = ccc_graph_set_attributes(added, config, old, changed);
            if (status) {
                ccc_failure failure = ccc_last;
                result = cuGraphDestroyNode(added);
                if (result)
                    ccc_cleanup_failed((int)result, "cuGraphDestroyNode");
                ccc_last = failure;
            }
        }
        if (status)
            ccc_keep_detach(keep, CCC_GRAPH_OF(graph));
    }
    ccc_graph_leave_both(graph, child);
    *node = (uintptr_t)added;
    return status;
}

/* Set a node's parameters, and what is kept for them in place of `old`. */
static int ccc_graph_set(ccc_box *graph, uint64_t node, CUgraphNodeParams *params, const ccc_config *config,
                         ccc_box *child, ccc_keep *keep, ccc_keep *old)
{
    CUgraphNode target = (CUgraphNode)(uintptr_t)node;
    CUlaunchAttributeValue before[CCC_NODE_ATTRIBUTES];
    int changed[CCC_NODE_ATTRIBUTES] = {0};
    int status = ccc_graph_enter_both(graph, child);
    if (status) {
        ccc_keep_finish(keep);
        return status;
    }
    if ((status = ccc_graph_context(params))) {
        ccc_keep_finish(keep);
    } else if ((status = ccc_keep_attach(keep, CCC_GRAPH_OF(graph))) == 0) {
        if (config)
            status = ccc_graph_set_attributes(target, config, before, changed);
        if (status == 0) {
            CUresult result = cuGraphNodeSetParams(target, params);
            if (result)
                status = ccc_fail((int)result, "cuGraphNodeSetParams");
        }
        if (status) {
            ccc_failure failure = ccc_last;
            ccc_graph_reset_attributes(target, before, changed);
            ccc_last = failure;
        }
        ccc_keep_detach(status ? keep : old, CCC_GRAPH_OF(graph));
    }
    ccc_graph_leave_both(graph, child);
    return status;
}

static int ccc_graph_destroy_node(ccc_box *graph, uint64_t node, ccc_keep *keep)
{
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    CUresult result = cuGraphDestroyNode((CUgraphNode)(uintptr_t)node);
    if (result)
        status = ccc_fail((int)result, "cuGraphDestroyNode");
    else
        ccc_keep_detach(keep, CCC_GRAPH_OF(graph));
    ccc_graph_leave(graph);
    return status;
}

/* A node's parameters, as the function for its type gives them; what they point to is valid until the node changes. */
static int ccc_graph_get(ccc_box *graph, uint64_t node, int type, void *params)
{
    CUgraphNode target = (CUgraphNode)(uintptr_t)node;
    const char *call;
    CUresult result;
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    switch (type) {
#define CCC_GET(kind, function)              \
    case CU_GRAPH_NODE_TYPE_##kind:          \
        call = #function;                    \
        result = function(target, params);   \
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
#undef CCC_GET
    default:
        call = "cuGraphNodeGetParams";
        result = CUDA_ERROR_INVALID_VALUE;
    }
    ccc_graph_leave(graph);
    return result ? ccc_fail((int)result, call) : 0;
}

static int ccc_graph_get_attribute(ccc_box *graph, uint64_t node, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    CUresult result = cuGraphKernelNodeGetAttribute((CUgraphNode)(uintptr_t)node, id, value);
    ccc_graph_leave(graph);
    return result ? ccc_fail((int)result, "cuGraphKernelNodeGetAttribute") : 0;
}

/* The event of a node, for another Python object: it is not destroyed before this box goes. */
static ccc_box *ccc_graph_event(ccc_box *event)
{
    if (!ccc_retain(event)) {
        ccc_fail(CCC_CLOSED, "");
        return NULL;
    }
    ccc_box *again = ccc_new(CCC_EVENT, event->handle, event->flags | CCC_BORROWED, event->parent);
    if (again)
        again->pool = event;
    else
        ccc_release(event);
    return again;
}

/* The same for an event that is only known by its handle; taken to be of the current context. */
static ccc_box *ccc_graph_foreign_event(uint64_t handle)
{
    int status;
    ccc_box *context = ccc_current_context(&status);
    if (context == NULL) {
        if (status == 0)
            ccc_fail(CCC_NO_CONTEXT, "cuCtxGetCurrent");
        return NULL;
    }
    ccc_box *event = ccc_new(CCC_EVENT, handle, CCC_BORROWED, context);
    ccc_release(context);
    return event;
}

static int ccc_graph_condition(ccc_box *graph, unsigned int value, unsigned int flags, CUgraphConditionalHandle *handle)
{
    CUcontext context = NULL;
    CCC_TRY(cuCtxGetCurrent, &context);
    if (context == NULL)
        return ccc_fail(CCC_NO_CONTEXT, "cuGraphConditionalHandleCreate");
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    CUresult result = cuGraphConditionalHandleCreate(handle, CCC_GRAPH_OF(graph), context, value, flags);
    ccc_graph_leave(graph);
    return result ? ccc_fail((int)result, "cuGraphConditionalHandleCreate") : 0;
}

static int ccc_graph_print(ccc_box *graph, const char *path, unsigned int flags)
{
    int status = ccc_graph_enter(graph);
    if (status)
        return status;
    CUresult result = cuGraphDebugDotPrint(CCC_GRAPH_OF(graph), path, flags);
    ccc_graph_leave(graph);
    return result ? ccc_fail((int)result, "cuGraphDebugDotPrint") : 0;
}

#endif
