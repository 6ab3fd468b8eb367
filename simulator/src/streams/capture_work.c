// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Work of captured streams as nodes of a graph.

#include <stdlib.h>

#include "streams/capture_state.h"
#include "driver/device.h"
#include "driver/green.h"
#include "graph/graph_memory.h"
#include "graph/graph_node.h"
#include "memory/pages.h"
#include "memory/pool.h"

// --- Nodes ----------------------------------------------------------------------------------------------------

CUresult sim_capture_part(struct sim_stream *stream, struct sim_capture_stream **part)
{
    *part = atomic_load(&stream->capture);
    // Another thread may have ended the capture since the caller looked.
    return *part && !(*part)->capture->invalid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

// With the lock held: the new node comes after what the stream had, and before what comes next.
static CUresult add(struct sim_capture_stream *part, struct sim_work *work, struct sim_graph_node **node)
{
    struct sim_capture_set *set = &part->set;
    SIM_TRY(sim_graph_add_node(part->capture->graph, set->nodes, set->count, work, node));
    struct sim_dependency after = {.node = *node};
    set->count = 0;
    return sim_capture_set_add(set, &after, 1);
}

CUresult sim_capture_work(struct sim_stream *stream, struct sim_work *work)
{
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part;
    struct sim_graph_node *node;
    SIM_TRY(sim_capture_part(stream, &part));
    return add(part, work, &node);
}

// --- Memory ---------------------------------------------------------------------------------------------------

// One side of a copy as a program reads it of the node. The structure has the same members for both sides.
#define DESCRIBE(box, side, copy, operand, known) \
    do { \
        if ((operand).array) { \
            (box)->side##MemoryType = CU_MEMORYTYPE_ARRAY; \
            (box)->side##Array = (operand).array; \
            (box)->side##XInBytes = (operand).origin[0]; \
            (box)->side##Y = (operand).origin[1]; \
            (box)->side##Z = (operand).origin[2]; \
            break; \
        } \
        (box)->side##MemoryType = (known) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST; \
        if (known) \
            (box)->side##Device = (operand).address; \
        else \
            (box)->side##Host = (void *)(operand).address; \
        (box)->side##Pitch = (operand).pitch ? (operand).pitch : (copy)->width; \
        (box)->side##Height = (operand).pitch && (operand).slice ? (operand).slice / (operand).pitch : (copy)->height; \
    } while (0)

CUresult sim_capture_copy(struct sim_stream *stream, const struct sim_copy *copy, bool wait)
{
    if (wait)
        return sim_capture_refuse(stream);
    if (!copy->width || !copy->height || !copy->depth)
        return CUDA_SUCCESS;
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_copy_of(copy, stream->context, &work));
    // What a program reads of the node: the same copy as a box.
    CUDA_MEMCPY3D *box = &work->copy.params;
    *box = (CUDA_MEMCPY3D){.WidthInBytes = copy->width, .Height = copy->height, .Depth = copy->depth};
    DESCRIBE(box, dst, copy, copy->to, work->copy.job.check_to);
    DESCRIBE(box, src, copy, copy->from, work->copy.job.check_from);
    return sim_capture_work(stream, work);
}

CUresult sim_capture_fill(struct sim_stream *stream, const struct sim_fill *fill, bool wait)
{
    if (wait)
        return sim_capture_refuse(stream);
    if (!fill->width || !fill->height)
        return CUDA_SUCCESS;
    SIM_WORK_HELD struct sim_work *work = NULL;
    CUDA_MEMSET_NODE_PARAMS_v1 params = {fill->address, fill->pitch, fill->value,
                                         fill->element, fill->width, fill->height};
    SIM_TRY(sim_work_fill(&params, sim_context_handle(stream->context), &work));
    return sim_capture_work(stream, work);
}

CUresult sim_capture_values(struct sim_stream *stream, const CUstreamBatchMemOpParams *operations, unsigned count)
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 params = {sim_context_handle(stream->context), count,
                                               (CUstreamBatchMemOpParams *)operations, 0};
    SIM_TRY(sim_work_values(&params, &work));
    return sim_capture_work(stream, work);
}

// The node's memory is not the pool's, but like it: on its device, and open to the same ones.
CUresult sim_capture_alloc(struct sim_stream *stream, struct sim_pool *pool, size_t bytes, CUdeviceptr *address)
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    CUmemAccessDesc access[SIM_MAX_DEVICES];
    size_t count = 0;
    for (int i = 0; i < sim_device_count(); i++)
        if (i != pool->device && atomic_load(&pool->access[i]) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            access[count++] = (CUmemAccessDesc){.location = sim_location(CU_MEM_LOCATION_TYPE_DEVICE, i),
                                                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 params = {
        .poolProps = pool->props, .accessDescs = access, .accessDescCount = count, .bytesize = bytes};
    params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    SIM_TRY(sim_work_alloc(&params, &work));
    SIM_TRY(sim_capture_work(stream, work));
    *address = work->memory.address;
    return CUDA_SUCCESS;
}

CUresult sim_capture_free(struct sim_stream *stream, uintptr_t address)
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_free(address, &work));
    return sim_capture_work(stream, work);
}

// --- Functions ------------------------------------------------------------------------------------------------

CUresult sim_capture_host(struct sim_stream *stream, CUhostFn function, void *data, unsigned sync_mode)
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_host(&(struct sim_host_params){function, data, sync_mode, NULL}, &work));
    return sim_capture_work(stream, work);
}

static const CUlaunchAttribute *attribute_of(const struct sim_launch_wish *wish, CUlaunchAttributeID id)
{
    for (unsigned i = 0; i < wish->attribute_count; i++)
        if (wish->attributes[i].id == id)
            return &wish->attributes[i];
    return NULL;
}

static bool of_node(CUlaunchAttributeID id)
{
    return id != CU_LAUNCH_ATTRIBUTE_IGNORE && id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
           id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
}

static CUresult add_attributes(struct sim_stream *stream, const struct sim_launch_wish *wish, struct sim_work **work)
{
    CUlaunchAttribute *attributes = calloc(wish->attribute_count + 2, sizeof *attributes);
    if (!attributes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    unsigned count = 0;
    for (unsigned i = 0; i < wish->attribute_count; i++)
        if (of_node(wish->attributes[i].id))
            attributes[count++] = wish->attributes[i];
    if (wish->cooperative && !attribute_of(wish, CU_LAUNCH_ATTRIBUTE_COOPERATIVE))
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
    // A node has the priority of the stream that it was captured from.
    if (stream->priority && !attribute_of(wish, CU_LAUNCH_ATTRIBUTE_PRIORITY))
        attributes[count++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value = {.priority = stream->priority}};
    struct sim_work *changed = NULL;
    CUresult status = count ? sim_kernel_work_with(*work, attributes, count, &changed) : CUDA_SUCCESS;
    free(attributes);
    if (changed) {
        sim_work_drop(*work);
        *work = changed;
    }
    return status;
}

// An event that a launch records: what waits for it depends on the kernel by one of its ports.
static CUresult capture_port(struct sim_capture_stream *part, CUevent handle, struct sim_graph_node *node,
                             unsigned char port)
{
    if (!handle)
        return CUDA_SUCCESS;
    SIM_HELD struct sim_event *event = NULL;
    SIM_TRY(sim_event_find(handle, &event));
    struct sim_dependency after = {node, {.from_port = port, .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC}};
    return sim_capture_set_event(event, part->capture, &(struct sim_capture_set){&after, 1, 1});
}

static CUresult kernel_work(struct sim_stream *stream, CUfunction function, const struct sim_launch_wish *wish,
                            void **kernel_params, void **extra, struct sim_work **out)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params = {
        .gridDimX = wish->grid[0],
        .gridDimY = wish->grid[1],
        .gridDimZ = wish->grid[2],
        .blockDimX = wish->block[0],
        .blockDimY = wish->block[1],
        .blockDimZ = wish->block[2],
        .sharedMemBytes = (unsigned)wish->dynamic_shared,
        .kernelParams = kernel_params,
        .extra = extra,
        .ctx = sim_context_handle(stream->green ? stream->green->face : stream->context),
    };
    // Launches take kernels of libraries too, which nodes have a place of their own for.
    SIM_HELD struct sim_kernel *kernel = NULL;
    if (sim_kernel_find((CUkernel)function, &kernel) == CUDA_SUCCESS)
        params.kern = (CUkernel)function;
    else
        params.func = function;
    SIM_TRY(sim_work_kernel(&params, NULL, false, out));
    SIM_TRY(add_attributes(stream, wish, out));
    return sim_kernel_work_check(*out);
}

CUresult sim_capture_kernel(struct sim_stream *stream, CUfunction function, const struct sim_launch_wish *wish,
                            void **kernel_params, void **extra)
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    CUresult status = kernel_work(stream, function, wish, kernel_params, extra, &work);
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part;
    struct sim_graph_node *node;
    SIM_TRY(sim_capture_part(stream, &part));
    // A launch that is refused ends the capture.
    if (status != CUDA_SUCCESS) {
        sim_capture_invalidate(part->capture);
        return status;
    }
    const CUlaunchAttribute *early = attribute_of(wish, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    for (size_t i = 0; early && early->value.programmaticStreamSerializationAllowed && i < part->set.count; i++)
        if (part->set.nodes[i].node->work->type == CU_GRAPH_NODE_TYPE_KERNEL)
            part->set.nodes[i].data = (CUgraphEdgeData){.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                                        .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    SIM_TRY(add(part, work, &node));
    SIM_TRY(capture_port(part, wish->starts, node, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER));
    return capture_port(part, wish->programmatic, node, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
}

// --- Events ---------------------------------------------------------------------------------------------------

CUresult sim_capture_set_event(struct sim_event *event, struct sim_capture *capture, const struct sim_capture_set *set)
{
    struct sim_capture_event *captured = calloc(1, sizeof *captured);
    CUresult status = captured ? sim_capture_set_copy(&captured->set, set) : CUDA_ERROR_OUT_OF_MEMORY;
    if (status != CUDA_SUCCESS) {
        free(captured);
        return status;
    }
    sim_capture_forget_event(event);
    captured->capture = capture;
    capture->references++;
    atomic_store(&event->capture, captured);
    return CUDA_SUCCESS;
}

CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, unsigned flags)
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        SIM_TRY(sim_work_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, (CUevent)sim_object_handle(event), &work));
        return sim_capture_work(stream, work);
    }
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part;
    SIM_TRY(sim_capture_part(stream, &part));
    return sim_capture_set_event(event, part->capture, &part->set);
}

// The event's nodes come before what the stream does next, which makes it part of the capture if it is not yet.
static CUresult join(struct sim_stream *stream, struct sim_capture_stream *part, struct sim_capture_event *captured)
{
    struct sim_capture *capture = captured->capture;
    if (!capture->graph) {
        if (part)
            sim_capture_invalidate(part->capture);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (capture->invalid || (part && part->capture->invalid))
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (part && part->capture != capture) {
        sim_capture_invalidate(capture);
        sim_capture_invalidate(part->capture);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream->legacy) {
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!part)
        SIM_TRY(sim_capture_join(capture, stream, &part));
    return sim_capture_set_add(&part->set, captured->set.nodes, captured->set.count);
}

CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event, unsigned flags)
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    if (flags & CU_EVENT_WAIT_EXTERNAL)
        SIM_TRY(sim_work_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, (CUevent)sim_object_handle(event), &work));
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part = atomic_load(&stream->capture);
    struct sim_capture_event *captured = atomic_load(&event->capture);
    if (work) {
        struct sim_graph_node *node;
        SIM_TRY(sim_capture_part(stream, &part));
        return add(part, work, &node);
    }
    if (captured)
        return join(stream, part, captured);
    SIM_TRY(sim_capture_part(stream, &part));
    // An event that was never recorded stands for nothing; another one for work outside of the capture.
    if (!sim_event_is_recorded(event))
        return CUDA_SUCCESS;
    sim_capture_invalidate(part->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}
