// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Nodes that run kernels, added in one call: most nodes of large graphs are such.
#ifndef CCC_GRAPH_ADD_H
#define CCC_GRAPH_ADD_H

#include "graph/ccc_graph_nodes.h"
#include "launch/ccc_prepared.h"

#define CCC_NODE_PARAMETERS 64  // kernels with more take the longer way

// Fill in the parameters of a node from a launch. The pointers are to the arguments.
static void ccc_graph_read_launch(CUgraphNodeParams *params, const ccc_target *target, const CUlaunchConfig *config,
                                  const char *arguments, void **pointers)
{
    params->type = CU_GRAPH_NODE_TYPE_KERNEL;
    params->kernel.kern = (CUkernel)CCC_POINTER(target->kernel);
    params->kernel.gridDimX = config->gridDimX;
    params->kernel.gridDimY = config->gridDimY;
    params->kernel.gridDimZ = config->gridDimZ;
    params->kernel.blockDimX = config->blockDimX;
    params->kernel.blockDimY = config->blockDimY;
    params->kernel.blockDimZ = config->blockDimZ;
    params->kernel.sharedMemBytes = config->sharedMemBytes;
    for (size_t i = 0; i < target->count; i++)
        pointers[i] = (void *)(arguments + target->offsets[i]);
    params->kernel.kernelParams = target->count ? pointers : NULL;
}

// Add a node that runs a kernel, after another one or, where that is 0, after none. The target, the configuration and
// the packed arguments are those of a launch; `handles` are what is kept besides the kernel. The status is
// CCC_UNCHECKED, and nothing was done, where there are attributes, or parameters of which too little is known.
static ccc_added ccc_graph_add_launch(ccc_handle *graph, uint64_t before, const ccc_target *target,
                                      const ccc_config *config, const char *arguments, ccc_handle *const *handles,
                                      size_t count)
{
    CUgraphNodeParams params = {0};
    void *pointers[CCC_NODE_PARAMETERS];
    if (config->demanding || target->offsets == NULL || target->count > CCC_NODE_PARAMETERS)
        return ccc_not_added(CCC_UNCHECKED, NULL);
    CCC_USE_OR(target->kernel, ccc_not_added(CCC_CLOSED, NULL));
    int status = ccc_graph_enter(graph);
    if (status)
        return ccc_not_added(status, NULL);
    ccc_keep *keep = ccc_keep_of(target->kernel, handles, count, 0, 0);
    ccc_added added = {.status = ccc_last.status};
    if (keep) {
        ccc_graph_read_launch(&params, target, &config->driver, arguments, pointers);
        added = ccc_graph_add_to(graph, &before, before != 0, &params, NULL, keep);
    }
    ccc_graph_leave(graph);
    return added;
}

#endif
