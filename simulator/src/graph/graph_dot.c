// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Graphs as text for Graphviz.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "graph/graph_memory.h"

static const struct look {
    const char *name, *shape;
    unsigned flag;  // that asks for the parameters
} looks[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = {NULL, "octagon", CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_MEMCPY] = {"MEMCPY", "trapezium", CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_MEMSET] = {"MEMSET", "invtrapezium", CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_HOST] = {"HOST", "rectangle", CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_GRAPH] = {NULL, "rectangle", 0},
    [CU_GRAPH_NODE_TYPE_EMPTY] = {"EMPTY", "rectangle", 0},
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = {"EVENT_WAIT", "rectangle", CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = {"EVENT_RECORD", "rectangle", CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = {"MEM_ALLOC", "rectangle", CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = {"MEM_FREE", "rectangle", CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = {"BATCH_MEM_OP", "rectangle",
                                         CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS},
    [CU_GRAPH_NODE_TYPE_CONDITIONAL] = {NULL, "record", CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS},
};

static char letter_of(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_HOST ? 'H' : type == CU_MEMORYTYPE_ARRAY ? 'A' : 'D';
}

// The address, or the handle of an array.
static uintptr_t place_of(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array)
{
    return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : type == CU_MEMORYTYPE_ARRAY ? (uintptr_t)array : device;
}

static void print_copy(FILE *file, const CUDA_MEMCPY3D *p, bool verbose)
{
    fprintf(file, "\n(%cto%c,%zu)", letter_of(p->srcMemoryType), letter_of(p->dstMemoryType), p->WidthInBytes);
    if (verbose)
        fprintf(file, "\nsrc: 0x%" PRIxPTR "\ndst: 0x%" PRIxPTR "\nheight: %zu\ndepth: %zu",
                place_of(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray),
                place_of(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray), p->Height, p->Depth);
}

static void print_kernel(FILE *file, const struct sim_work *work, bool verbose)
{
    const CUDA_KERNEL_NODE_PARAMS_v2 *p = &work->kernel.params;
    fprintf(file, "\n%s", work->kernel.function->entry->name);
    if (verbose)
        fprintf(file, "\\<\\<\\<%u,%u,%u\\>\\>\\>", p->gridDimX * p->gridDimY * p->gridDimZ,
                p->blockDimX * p->blockDimY * p->blockDimZ, p->sharedMemBytes);
    if (verbose)
        fprintf(file, "\ngrid: %u %u %u\nblock: %u %u %u\nfunction: %p\nkernel: %p", p->gridDimX, p->gridDimY,
                p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ, (void *)p->func, (void *)p->kern);
}

// Those that every kernel has first, also if nobody has set them.
static void print_attributes(FILE *file, const struct sim_work *work)
{
    const CUlaunchAttribute *cooperative = sim_kernel_work_attribute(work, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    const CUlaunchAttribute *priority = sim_kernel_work_attribute(work, CU_LAUNCH_ATTRIBUTE_PRIORITY);
    const CUlaunchAttribute *window = sim_kernel_work_attribute(work, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
    CUaccessPolicyWindow none = {0}, policy = window ? window->value.accessPolicyWindow : none;
    fprintf(file, "\ncooperative: %d\npriority: %d", cooperative ? cooperative->value.cooperative : 0,
            priority ? priority->value.priority : 0);
    fprintf(file, "\naccess policy window: %p, %zu bytes, ratio %f, hit %d, miss %d", policy.base_ptr, policy.num_bytes,
            (double)policy.hitRatio, (int)policy.hitProp, (int)policy.missProp);
    for (unsigned i = 0; i < work->kernel.attribute_count; i++)
        fprintf(file, "\nattribute %d: 0x%x", (int)work->kernel.attributes[i].id,
                *(const unsigned *)work->kernel.attributes[i].value.pad);
}

static void print_params(FILE *file, const struct sim_work *work, bool verbose)
{
    switch ((int)work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: print_kernel(file, work, verbose); break;
    case CU_GRAPH_NODE_TYPE_MEMCPY: print_copy(file, &work->copy.params, verbose); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS_v1 *p = &work->fill.params;
        fprintf(file, "\n(%u,%zu)", p->value, p->width);
        if (verbose)
            fprintf(file, "\ndst: 0x%" PRIxPTR "\nvalue: %u\nelement: %u\nwidth: %zu\nheight: %zu\npitch: %zu",
                    (uintptr_t)p->dst, p->value, p->elementSize, p->width, p->height, p->pitch);
        break;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
        if (verbose)
            fprintf(file, "\nfunction: %p\ndata: %p", *(void *const *)&work->host.function, work->host.data);
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        if (verbose)
            fprintf(file, "\nevent: %p", (void *)sim_object_handle(work->event));
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        if (verbose)
            fprintf(file, "\nbytes: %zu\nptr: 0x%" PRIxPTR, work->memory.memory->size, work->memory.address);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        if (verbose)
            fprintf(file, "\nptr: 0x%" PRIxPTR, work->memory.address);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        if (verbose)
            fprintf(file, "\noperations: %u", work->values.params.count);
        break;
    default: break;
    }
}

static void print_condition(FILE *file, const struct sim_graph_node *node, bool verbose)
{
    static const char *const names[] = {"IF", "WHILE", "SWITCH"};
    const struct sim_conditional_work *own = &node->work->conditional;
    fprintf(file, "{\nCONDITIONAL\n| {ID | %u}\n| {Conditional Type| %s}", node->id, names[own->type]);
    for (uint32_t i = 0; i < node->child_count; i++) {
        if ((int)own->type == CU_GRAPH_COND_TYPE_SWITCH)
            fprintf(file, "\n| {%u|graph_%u}", i, node->children[i]->id);
        else
            fprintf(file, "\n| {%s|graph_%u}", i ? "False" : "True", node->children[i]->id);
    }
    if (verbose)
        fprintf(file, "\n| {handle | 0x%016" PRIXPTR "}", sim_object_handle(own->conditional));
    fprintf(file, "\n}");
}

static void print_handles(FILE *file, const struct sim_graph_node *node)
{
    fprintf(file, "\nnode handle: 0x%016" PRIXPTR, sim_object_handle(node));
    if (node->work->type == CU_GRAPH_NODE_TYPE_KERNEL)
        fprintf(file, "\nfunc handle: 0x%016" PRIXPTR, (uintptr_t)node->work->kernel.params.func);
}

static void print_node(FILE *file, const struct sim_graph_node *node, unsigned flags)
{
    const struct sim_work *work = node->work;
    const struct look *look = &looks[work->type];
    bool all = flags & CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE, verbose = all || flags & look->flag;
    bool kernel = work->type == CU_GRAPH_NODE_TYPE_KERNEL;
    bool condition = (int)work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    fprintf(file, "\"graph_%u_node_%u\"[style=\"%s\" shape=\"%s\" label=\"", node->graph->id, node->id,
            kernel || condition ? "bold" : "solid", look->shape);
    if (condition) {
        print_condition(file, node, verbose);
    } else {
        fprintf(file, "%u", node->id);
        if (look->name)
            fprintf(file, "\n%s", look->name);
        print_params(file, work, verbose);
        if (kernel && (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES))
            print_attributes(file, work);
        if (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)
            print_handles(file, node);
        for (uint32_t i = 0; i < node->child_count; i++)
            fprintf(file, "\ngraph_%u", node->children[i]->id);
    }
    fprintf(file, "\n\"];\n\n");
}

static void print_edges(FILE *file, const struct sim_graph_node *node)
{
    uint32_t graph = node->graph->id;
    for (const struct sim_edge *edge = node->edges[SIM_OUT].first; edge; edge = edge->next[SIM_OUT]) {
        fprintf(file, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\"", graph, node->id, graph, edge->end[SIM_IN]->id);
        if (!sim_edge_is_plain(&edge->data))
            fprintf(file, "[style=\"dashed\" label=\"port %u, type %u\"]", edge->data.from_port, edge->data.type);
        fprintf(file, ";\n");
    }
}

static void print_graph(FILE *file, const struct sim_graph *graph, unsigned flags)
{
    fprintf(file, "subgraph cluster_%u {\nlabel=\"graph_%u\" graph[style=\"dashed\"];\n", graph->id, graph->id);
    for (const struct sim_graph_node *node = graph->first; node; node = node->next)
        print_node(file, node, flags);
    for (const struct sim_graph_node *node = graph->first; node; node = node->next)
        print_edges(file, node);
    fprintf(file, "}\n");
}

// The graph, and after it what its nodes run.
static CUresult print(FILE *file, const struct sim_graph *graph, unsigned flags)
{
    size_t count = 0, capacity = 1;
    const struct sim_graph **graphs = malloc(sizeof *graphs);
    if (graphs)
        graphs[count++] = graph;
    fprintf(file, "digraph dot {\n");
    for (size_t i = 0; graphs && i < count; i++) {
        print_graph(file, graphs[i], flags);
        for (const struct sim_graph_node *node = graphs[i]->first; graphs && node; node = node->next) {
            if (count + node->child_count > capacity) {
                capacity = 2 * (count + node->child_count);
                const struct sim_graph **grown = realloc(graphs, capacity * sizeof *graphs);
                if (!grown)
                    free(graphs);
                graphs = grown;
            }
            for (uint32_t c = 0; graphs && c < node->child_count; c++)
                graphs[count++] = node->children[c];
        }
    }
    fprintf(file, "}\n");
    CUresult status = graphs ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    free(graphs);
    return status;
}

SIM_API(cuGraphDebugDotPrint, (CUgraph hGraph, const char *path, unsigned int flags), (hGraph, path, flags))
{
    SIM_REQUIRE(path);
    SIM_GRAPHS_LOCKED();
    struct sim_graph *graph;
    SIM_TRY(sim_graph_find(hGraph, &graph));
    FILE *file = fopen(path, "w");
    if (!file)
        return CUDA_ERROR_OPERATING_SYSTEM;
    CUresult status = print(file, graph, flags);
    bool written = !ferror(file);
    if (fclose(file) || !written)
        return CUDA_ERROR_OPERATING_SYSTEM;
    return status;
}
