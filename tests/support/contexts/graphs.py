# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contexts.world import SIZE, World, case, copy_3d, must, out, simple, with_place
from cuda_core_cffi._core.ffi import ffi, lib

# graphs

with_place("cuGraphCreate", "CUgraph *", lambda w, p: lib.cuGraphCreate(p, 0), lambda w, g: lib.cuGraphDestroy(g))


@case("cuGraphDestroy")
def graph_destroy(w: World) -> Iterator[Any]:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    if (yield lambda: lib.cuGraphDestroy(graph)):
        lib.cuGraphDestroy(graph)


@case("cuGraphClone")
def graph_clone(w: World) -> Iterator[Any]:
    graph, place = memset_graph(w), ffi.new("CUgraph *")
    if (yield lambda: lib.cuGraphClone(place, graph)) == 0:
        lib.cuGraphDestroy(place[0])
    lib.cuGraphDestroy(graph)


def node_parameters(w: World, kind: str) -> Any:
    """Return the parameters of a node; those of kernels, copies and fills name no context, or the one of the cases."""
    params = ffi.new("CUgraphNodeParams *")
    name, _, context = kind.partition(".")
    if name == "empty":
        params.type = lib.CU_GRAPH_NODE_TYPE_EMPTY
    elif name == "kernel":
        params.type = lib.CU_GRAPH_NODE_TYPE_KERNEL
        node = params.kernel
        node.kern = w.kernel
        node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1
        node.ctx = w.context if context else ffi.NULL
    elif name == "function":
        params.type = lib.CU_GRAPH_NODE_TYPE_KERNEL
        node = params.kernel
        node.func = w.function
        node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1
        node.ctx = w.context if context else ffi.NULL
    elif name == "memset":
        params.type = lib.CU_GRAPH_NODE_TYPE_MEMSET
        node = params.memset
        node.dst, node.value, node.elementSize, node.width, node.height = w.memory, 1, 1, SIZE, 1
        node.ctx = w.context if context else ffi.NULL
    elif name == "memcpy":
        params.type = lib.CU_GRAPH_NODE_TYPE_MEMCPY
        params.memcpy.copyParams = copy_3d(w)[0]
        params.memcpy.copyCtx = w.context if context else ffi.NULL
    elif name == "host":
        params.type = lib.CU_GRAPH_NODE_TYPE_HOST
        params.host.fn = w.host
    elif name == "graph":
        params.type = lib.CU_GRAPH_NODE_TYPE_GRAPH
        params.graph.graph = w.graph
    elif name == "record":
        params.type = lib.CU_GRAPH_NODE_TYPE_EVENT_RECORD
        params.eventRecord.event = w.recorded
    elif name == "wait":
        params.type = lib.CU_GRAPH_NODE_TYPE_WAIT_EVENT
        params.eventWait.event = w.recorded
    elif name == "alloc":
        params.type = lib.CU_GRAPH_NODE_TYPE_MEM_ALLOC
        params.alloc.poolProps = w.pool_options()[0]
        params.alloc.bytesize = SIZE
    return params


def add_node(w: World, graph: Any, params: Any) -> int:
    node = ffi.new("CUgraphNode *")
    return lib.cuGraphAddNode(node, graph, ffi.NULL, ffi.NULL, 0, params)


def memset_graph(w: World) -> Any:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    must(add_node(w, graph, node_parameters(w, "memset.context")))
    return graph


NODES = [
    "empty",
    "kernel",
    "kernel.context",
    "function",
    "function.context",
    "memset",
    "memset.context",
    "memcpy",
    "memcpy.context",
    "host",
    "graph",
    "record",
    "wait",
    "alloc",
]


def add_node_case(kind: str) -> None:
    @case(f"cuGraphAddNode.{kind}")
    def run(w: World) -> Iterator[Any]:
        graph = out("CUgraph *", lib.cuGraphCreate, 0)
        params = node_parameters(w, kind)
        yield lambda: add_node(w, graph, params)
        lib.cuGraphDestroy(graph)


for _kind in NODES:
    add_node_case(_kind)


def add_run_case(kind: str) -> None:
    """Add a case for what becomes of a node that is given no context: the graph is launched in the main thread."""

    @case(f"fact.launch_of_added.{kind}")
    def run(w: World) -> Iterator[Any]:
        graph = out("CUgraph *", lib.cuGraphCreate, 0)
        params = node_parameters(w, kind)
        if (yield lambda: add_node(w, graph, params)) == 0:
            executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
            must(lib.cuGraphLaunch(executable, w.stream))
            must(lib.cuStreamSynchronize(w.stream))
            lib.cuGraphExecDestroy(executable)
        lib.cuGraphDestroy(graph)


for _kind in ("kernel", "memset", "memcpy"):
    add_run_case(_kind)


def add_set_case(kind: str, name: str) -> None:
    @case(f"{name}.{kind}")
    def run(w: World) -> Iterator[Any]:
        graph = out("CUgraph *", lib.cuGraphCreate, 0)
        params = node_parameters(w, kind.partition(".")[0] + ".context")
        node = out("CUgraphNode *", lib.cuGraphAddNode, graph, ffi.NULL, ffi.NULL, 0, params)
        changed = node_parameters(w, kind)
        if name == "cuGraphNodeSetParams":
            yield lambda: lib.cuGraphNodeSetParams(node, changed)
        else:
            executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
            yield lambda: lib.cuGraphExecNodeSetParams(executable, node, changed)
            lib.cuGraphExecDestroy(executable)
        lib.cuGraphDestroy(graph)


for _kind in (
    "kernel",
    "kernel.context",
    "function",
    "function.context",
    "memset",
    "memset.context",
    "memcpy",
    "memcpy.context",
):
    add_set_case(_kind, "cuGraphNodeSetParams")
    add_set_case(_kind, "cuGraphExecNodeSetParams")


@case("cuGraphNodeGetParams.memset")
def get_memset(w: World) -> Iterator[Any]:
    graph = memset_graph(w)
    nodes, count = ffi.new("CUgraphNode *"), ffi.new("size_t *", 1)
    must(lib.cuGraphGetNodes(graph, nodes, count))
    yield lambda: lib.cuGraphMemsetNodeGetParams(nodes[0], ffi.new("CUDA_MEMSET_NODE_PARAMS *"))
    lib.cuGraphDestroy(graph)


@case("cuGraphKernelNodeGetParams")
def get_kernel(w: World) -> Iterator[Any]:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    params = node_parameters(w, "kernel.context")
    node = out("CUgraphNode *", lib.cuGraphAddNode, graph, ffi.NULL, ffi.NULL, 0, params)
    yield lambda: lib.cuGraphKernelNodeGetParams(node, ffi.new("CUDA_KERNEL_NODE_PARAMS *"))
    lib.cuGraphDestroy(graph)


@case("cuGraphKernelNodeSetAttribute")
def set_attribute(w: World) -> Iterator[Any]:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    params = node_parameters(w, "kernel.context")
    node = out("CUgraphNode *", lib.cuGraphAddNode, graph, ffi.NULL, ffi.NULL, 0, params)
    value = ffi.new("CUlaunchAttributeValue *")
    yield lambda: lib.cuGraphKernelNodeSetAttribute(node, lib.CU_LAUNCH_ATTRIBUTE_PRIORITY, value)
    lib.cuGraphDestroy(graph)


for _name in ("context", "0"):
    simple(
        f"cuGraphConditionalHandleCreate.{_name}",
        lambda w, n=_name: lib.cuGraphConditionalHandleCreate(
            ffi.new("CUgraphConditionalHandle *"), w.graph, w.context if n == "context" else ffi.NULL, 0, 0
        ),
    )


@case("cuGraphAddNode.conditional")
def add_conditional(w: World) -> Iterator[Any]:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    params = ffi.new("CUgraphNodeParams *")
    params.type = lib.CU_GRAPH_NODE_TYPE_CONDITIONAL
    params.conditional.handle = out(
        "CUgraphConditionalHandle *", lib.cuGraphConditionalHandleCreate, graph, w.context, 0, 0
    )
    params.conditional.type = lib.CU_GRAPH_COND_TYPE_IF
    params.conditional.size = 1
    params.conditional.ctx = w.context
    yield lambda: add_node(w, graph, params)
    lib.cuGraphDestroy(graph)


GRAPHS: dict[str, list[str]] = {
    "empty": [],
    "memset": ["memset.context"],
    "kernel": ["kernel.context"],
    "host": ["host"],
    "alloc": ["alloc"],
}


def add_instantiate_case(kind: str) -> None:
    @case(f"cuGraphInstantiate.{kind}")
    def run(w: World) -> Iterator[Any]:
        graph, place = out("CUgraph *", lib.cuGraphCreate, 0), ffi.new("CUgraphExec *")
        for node in GRAPHS[kind]:
            must(add_node(w, graph, node_parameters(w, node)))
        params = ffi.new("CUDA_GRAPH_INSTANTIATE_PARAMS *")
        if (yield lambda: lib.cuGraphInstantiateWithParams(place, graph, params)) == 0:
            lib.cuGraphExecDestroy(place[0])
        lib.cuGraphDestroy(graph)


for _kind in GRAPHS:
    add_instantiate_case(_kind)


def add_upload_case(name: str, flags: int) -> None:
    @case(name)
    def instantiate_upload(w: World) -> Iterator[Any]:
        graph, place = memset_graph(w), ffi.new("CUgraphExec *")
        params = ffi.new("CUDA_GRAPH_INSTANTIATE_PARAMS *")
        params.flags = flags
        params.hUploadStream = w.stream
        if (yield lambda: lib.cuGraphInstantiateWithParams(place, graph, params)) == 0:
            must(lib.cuStreamSynchronize(w.stream))
            lib.cuGraphExecDestroy(place[0])
        lib.cuGraphDestroy(graph)


add_upload_case("cuGraphInstantiate.upload", lib.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
add_upload_case("cuGraphInstantiate.stream", 0)


def add_executable_case(call: str, stream: str) -> None:
    @case(f"{call}.{stream}")
    def run(w: World) -> Iterator[Any]:
        graph = memset_graph(w)
        executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
        yield lambda: getattr(lib, call)(executable, w.streams()[stream])
        must(lib.cuCtxSynchronize())
        lib.cuGraphExecDestroy(executable)
        lib.cuGraphDestroy(graph)


for _call in ("cuGraphLaunch", "cuGraphUpload"):
    for _stream in ("stream", "0", "legacy", "per_thread"):
        add_executable_case(_call, _stream)


@case("cuGraphExecUpdate")
def exec_update(w: World) -> Iterator[Any]:
    graph = memset_graph(w)
    executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
    yield lambda: lib.cuGraphExecUpdate(executable, graph, ffi.new("CUgraphExecUpdateResultInfo *"))
    lib.cuGraphExecDestroy(executable)
    lib.cuGraphDestroy(graph)


@case("cuGraphExecDestroy")
def exec_destroy(w: World) -> Iterator[Any]:
    graph = memset_graph(w)
    executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
    if (yield lambda: lib.cuGraphExecDestroy(executable)):
        lib.cuGraphExecDestroy(executable)
    lib.cuGraphDestroy(graph)


@case("cuUserObjectCreate")
def user_object(w: World) -> Iterator[Any]:
    place = ffi.new("CUuserObject *")
    null, flags = ffi.NULL, lib.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
    if (yield lambda: lib.cuUserObjectCreate(place, null, w.host, 1, flags)) == 0:
        lib.cuUserObjectRelease(place[0], 1)


simple("cuGraphDebugDotPrint", lambda w: lib.cuGraphDebugDotPrint(w.graph, b"/dev/null", 0))
