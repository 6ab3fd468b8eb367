// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Attributes of kernel nodes.

#include <string.h>

#include "graph/graph_node.h"

// What a node has; the newest ones by number, since older headers lack them.
enum {
    PREFERRED_CLUSTER = 11,
    DEVICE_UPDATABLE = 13,
    CARVEOUT = 14,
    NVLINK_CENTRIC = 16,
    PORTABLE_CLUSTER_SIZE = 17,
    SHARED_MEMORY = 18,
};
enum { FIRST_WITH_PREFERRED_CLUSTERS = 10 };  // compute capability
enum { CUDA_13_0 = 13000 };                   // the last driver whose nodes lack the newest attributes

// The value of an attribute that was not set. Returns false if nodes do not have the attribute.
static bool default_value(CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    memset(value, 0, sizeof *value);
    switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: value->memSyncDomainMap.remote = 1; return true;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case DEVICE_UPDATABLE:
    case CARVEOUT: return true;
    case PREFERRED_CLUSTER: return sim_config()->major >= FIRST_WITH_PREFERRED_CLUSTERS;
    case NVLINK_CENTRIC:
    case PORTABLE_CLUSTER_SIZE:
    case SHARED_MEMORY: return sim_config()->driver_version > CUDA_13_0;
    default: return false;
    }
}

SIM_API(cuGraphKernelNodeGetAttribute, (CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out),
        (hNode, attr, value_out))
{
    SIM_REQUIRE(value_out);
    SIM_WORK_HELD struct sim_work *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &work));
    CUkernelNodeAttrValue value;
    SIM_REQUIRE(default_value(attr, &value));
    const CUlaunchAttribute *set = sim_kernel_work_attribute(work, attr);
    *value_out = set ? set->value : value;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeSetAttribute, (CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value),
        (hNode, attr, value))
{
    SIM_REQUIRE(value);
    SIM_WORK_HELD struct sim_work *old = NULL, *work = NULL;
    SIM_TRY(sim_node_work(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &old));
    CUlaunchAttribute attribute = {.id = attr};
    SIM_REQUIRE(default_value(attr, &attribute.value));
    if ((int)attr == DEVICE_UPDATABLE)
        return CUDA_ERROR_NOT_SUPPORTED;
    attribute.value = *value;
    if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY && value->priority > 0)
        attribute.value.priority = 0;
    if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY && value->priority < SIM_GREATEST_PRIORITY)
        attribute.value.priority = SIM_GREATEST_PRIORITY;
    SIM_TRY(sim_kernel_work_with(old, &attribute, 1, &work));
    return sim_node_set(hNode, work);
}

SIM_API(cuGraphKernelNodeCopyAttributes, (CUgraphNode dst, CUgraphNode src), (dst, src))
{
    SIM_WORK_HELD struct sim_work *from = NULL, *to = NULL, *work = NULL;
    SIM_TRY(sim_node_work(src, CU_GRAPH_NODE_TYPE_KERNEL, &from));
    SIM_TRY(sim_node_work(dst, CU_GRAPH_NODE_TYPE_KERNEL, &to));
    SIM_REQUIRE(from->context == to->context);
    CUresult status = sim_work_kernel(&to->kernel.params, from, false, &work);
    if (status == CUDA_ERROR_INVALID_CLUSTER_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return status == CUDA_SUCCESS ? sim_node_set(dst, work) : status;
}
