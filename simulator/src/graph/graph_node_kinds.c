// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The driver's functions for each kind of node: adding one, and reading and replacing its parameters.

#include "graph/graph_memory.h"
#include "graph/graph_node.h"

#define ADD_PARAMS CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies
#define ADD_ARGS phGraphNode, hGraph, dependencies, numDependencies
#define ADD(work) sim_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, work)

// --- Kernels --------------------------------------------------------------------------------------------------

// Without the members that the first version of the structure did not have.
static CUDA_KERNEL_NODE_PARAMS_v2 newer(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){
        .func = p->func,
        .gridDimX = p->gridDimX,
        .gridDimY = p->gridDimY,
        .gridDimZ = p->gridDimZ,
        .blockDimX = p->blockDimX,
        .blockDimY = p->blockDimY,
        .blockDimZ = p->blockDimZ,
        .sharedMemBytes = p->sharedMemBytes,
        .kernelParams = p->kernelParams,
        .extra = p->extra,
    };
}

SIM_API(cuGraphAddKernelNode_v2, (ADD_PARAMS, const CUDA_KERNEL_NODE_PARAMS *nodeParams), (ADD_ARGS, nodeParams))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_kernel(nodeParams, NULL, false, &work));
    return ADD(work);
}

SIM_API(cuGraphAddKernelNode, (ADD_PARAMS, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams), (ADD_ARGS, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    CUDA_KERNEL_NODE_PARAMS_v2 params = newer(nodeParams);
    return cuGraphAddKernelNode_v2_body(ADD_ARGS, &params);
}

SIM_API(cuGraphKernelNodeGetParams_v2, (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams), (hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &work));
    *nodeParams = work->kernel.params;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeGetParams, (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams), (hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    SIM_TRY(cuGraphKernelNodeGetParams_v2_body(hNode, &params));
    *nodeParams = (CUDA_KERNEL_NODE_PARAMS_v1){
        params.func,      params.gridDimX,  params.gridDimY,       params.gridDimZ,     params.blockDimX,
        params.blockDimY, params.blockDimZ, params.sharedMemBytes, params.kernelParams, params.extra};
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeSetParams_v2, (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams),
        (hNode, nodeParams))
{
    SIM_WORK_HELD struct sim_work *old = NULL, *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &old));
    SIM_TRY(sim_work_kernel(nodeParams, old, false, &work));
    return sim_node_set(hNode, work);
}

SIM_API(cuGraphKernelNodeSetParams, (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams),
        (hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    CUDA_KERNEL_NODE_PARAMS_v2 params = newer(nodeParams);
    return cuGraphKernelNodeSetParams_v2_body(hNode, &params);
}

// --- Copies and fills -----------------------------------------------------------------------------------------

SIM_API(cuGraphAddMemcpyNode, (ADD_PARAMS, const CUDA_MEMCPY3D *copyParams, CUcontext ctx), (ADD_ARGS, copyParams, ctx))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_copy(copyParams, ctx, &work));
    return ADD(work);
}

SIM_API(cuGraphMemcpyNodeGetParams, (CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams), (hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, &work));
    *nodeParams = work->copy.params;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphMemcpyNodeSetParams, (CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams), (hNode, nodeParams))
{
    SIM_WORK_HELD struct sim_work *old = NULL, *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, &old));
    SIM_TRY(sim_work_copy(nodeParams, sim_context_handle(old->context), &work));
    return sim_node_set(hNode, work);
}

SIM_API(cuGraphAddMemsetNode, (ADD_PARAMS, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx),
        (ADD_ARGS, memsetParams, ctx))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_fill(memsetParams, ctx, &work));
    return ADD(work);
}

SIM_API(cuGraphMemsetNodeGetParams, (CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams), (hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_MEMSET, &work));
    *nodeParams = work->fill.params;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphMemsetNodeSetParams, (CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams), (hNode, nodeParams))
{
    SIM_WORK_HELD struct sim_work *old = NULL, *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_MEMSET, &old));
    SIM_TRY(sim_work_fill(nodeParams, sim_context_handle(old->context), &work));
    return sim_node_set(hNode, work);
}

// --- Host functions -------------------------------------------------------------------------------------------

SIM_API(cuGraphAddHostNode, (ADD_PARAMS, const CUDA_HOST_NODE_PARAMS *nodeParams), (ADD_ARGS, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_host(&(struct sim_host_params){nodeParams->fn, nodeParams->userData, 0, NULL}, &work));
    return ADD(work);
}

SIM_API(cuGraphHostNodeGetParams, (CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams), (hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_HOST, &work));
    *nodeParams = (CUDA_HOST_NODE_PARAMS){work->host.function, work->host.data};
    return CUDA_SUCCESS;
}

SIM_API(cuGraphHostNodeSetParams, (CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams), (hNode, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_host(&(struct sim_host_params){nodeParams->fn, nodeParams->userData, 0, NULL}, &work));
    return sim_node_set(hNode, work);
}

// --- Events ---------------------------------------------------------------------------------------------------

#define EVENT_NODE(name, type) \
    SIM_API(cuGraphAdd##name##Node, (ADD_PARAMS, CUevent event), (ADD_ARGS, event)) \
    { \
        SIM_WORK_HELD struct sim_work *work = NULL; \
        SIM_TRY(sim_work_event(type, event, &work)); \
        return ADD(work); \
    } \
    SIM_API(cuGraph##name##NodeGetEvent, (CUgraphNode hNode, CUevent *event_out), (hNode, event_out)) \
    { \
        SIM_REQUIRE(event_out); \
        SIM_WORK_HELD struct sim_work *work = NULL; \
        SIM_TRY(sim_node_work(hNode, type, &work)); \
        *event_out = (CUevent)sim_object_handle(work->event); \
        return CUDA_SUCCESS; \
    } \
    SIM_API(cuGraph##name##NodeSetEvent, (CUgraphNode hNode, CUevent event), (hNode, event)) \
    { \
        SIM_WORK_HELD struct sim_work *work = NULL; \
        SIM_TRY(sim_work_event(type, event, &work)); \
        return sim_node_set(hNode, work); \
    }

EVENT_NODE(EventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
EVENT_NODE(EventWait, CU_GRAPH_NODE_TYPE_WAIT_EVENT)

// --- Values in memory -----------------------------------------------------------------------------------------

SIM_API(cuGraphAddBatchMemOpNode, (ADD_PARAMS, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams), (ADD_ARGS, nodeParams))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_values(nodeParams, &work));
    return ADD(work);
}

SIM_API(cuGraphBatchMemOpNodeGetParams, (CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out),
        (hNode, nodeParams_out))
{
    SIM_REQUIRE(nodeParams_out);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &work));
    *nodeParams_out = work->values.params;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphBatchMemOpNodeSetParams, (CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams),
        (hNode, nodeParams))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_values(nodeParams, &work));
    return sim_node_set(hNode, work);
}

// --- Memory ---------------------------------------------------------------------------------------------------

SIM_API(cuGraphAddMemAllocNode, (ADD_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams), (ADD_ARGS, nodeParams))
{
    SIM_REQUIRE(nodeParams);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_alloc(nodeParams, &work));
    SIM_TRY(ADD(work));
    nodeParams->dptr = work->memory.address;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphMemAllocNodeGetParams, (CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out), (hNode, params_out))
{
    SIM_REQUIRE(params_out);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &work));
    *params_out = sim_work_alloc_params(work);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphAddMemFreeNode, (ADD_PARAMS, CUdeviceptr dptr), (ADD_ARGS, dptr))
{
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_work_free(dptr, &work));
    return ADD(work);
}

SIM_API(cuGraphMemFreeNodeGetParams, (CUgraphNode hNode, CUdeviceptr *dptr_out), (hNode, dptr_out))
{
    SIM_REQUIRE(dptr_out);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, &work));
    *dptr_out = work->memory.address;
    return CUDA_SUCCESS;
}
