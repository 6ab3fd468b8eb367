# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs of the simulated driver through ctypes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sim_driver import (
    Driver,
    HostFunction,
    Location,
    PoolProps,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    ctypes,
)
from sim_kernels import KERNELS

KERNEL, MEMCPY, MEMSET, HOST, GRAPH, EMPTY, WAIT_EVENT, EVENT_RECORD = range(8)
MEM_ALLOC, MEM_FREE, BATCH_MEM_OP, CONDITIONAL = 10, 11, 12, 13
HOST_MEMORY, DEVICE_MEMORY = 1, 2
AUTO_FREE, UPLOAD, DEVICE_LAUNCH, NODE_PRIORITY = 1, 2, 4, 8
GLOBAL, THREAD_LOCAL, RELAXED = range(3)


class KernelParams(ctypes.Structure):
    _fields_ = [
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("params", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    ]


class CopySide(ctypes.Structure):
    _fields_ = [
        ("x", c_size_t),
        ("y", c_size_t),
        ("z", c_size_t),
        ("lod", c_size_t),
        ("type", c_int),
        ("host", c_void_p),
        ("device", c_uint64),
        ("array", c_void_p),
        ("reserved", c_void_p),
        ("pitch", c_size_t),
        ("height", c_size_t),
    ]


class CopyParams(ctypes.Structure):
    _fields_ = [
        ("source", CopySide),
        ("target", CopySide),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
    ]


class FillParams(ctypes.Structure):
    _fields_ = [
        ("target", c_uint64),
        ("pitch", c_size_t),
        ("value", c_uint),
        ("element", c_uint),
        ("width", c_size_t),
        ("height", c_size_t),
    ]


class HostParams(ctypes.Structure):
    _fields_ = [("function", c_void_p), ("data", c_void_p)]


class AllocParams(ctypes.Structure):
    _fields_ = [
        ("props", PoolProps),
        ("access", c_void_p),
        ("access_count", c_size_t),
        ("size", c_size_t),
        ("address", c_uint64),
    ]


class ChildParams(ctypes.Structure):
    _fields_ = [("graph", c_void_p), ("ownership", c_int)]


class NodeUnion(ctypes.Union):
    _fields_ = [
        ("pad", c_uint64 * 29),
        ("kernel", KernelParams),
        ("fill", FillParams),
        ("host", HostParams),
        ("child", ChildParams),
        ("event", c_void_p),
        ("alloc", AllocParams),
        ("address", c_uint64),
    ]


class NodeParams(ctypes.Structure):
    _anonymous_ = ("of",)
    _fields_ = [("type", c_int), ("reserved0", c_int * 3), ("of", NodeUnion), ("reserved2", c_uint64)]


class EdgeData(ctypes.Structure):
    _fields_ = [("port", ctypes.c_ubyte), ("to", ctypes.c_ubyte), ("type", ctypes.c_ubyte), ("pad", ctypes.c_ubyte * 5)]


class InstantiateParams(ctypes.Structure):
    _fields_ = [("flags", c_uint64), ("stream", c_void_p), ("node", c_void_p), ("result", c_int)]


assert ctypes.sizeof(NodeParams) == 256


def handles(nodes: Sequence[c_void_p]) -> Any:
    """Return nodes as an array; None for none."""
    return (c_void_p * len(nodes))(*(node.value for node in nodes)) if nodes else None


def ask(cu: Driver, kind: type[Any], function: str, handle: c_void_p) -> Any:
    """Return what a function that takes a handle first says of it."""
    value = kind()
    getattr(cu, function)(handle, byref(value))
    return value


def copy_params(target: c_uint64 | int, source: c_uint64 | int, size: int) -> CopyParams:
    """Describe a copy of contiguous memory; addresses of the host's memory are plain integers."""
    params = CopyParams(width=size, height=1, depth=1)
    for side, place in ((params.target, target), (params.source, source)):
        if isinstance(place, int):
            side.type, side.host = HOST_MEMORY, place
        else:
            side.type, side.device = DEVICE_MEMORY, place.value
    return params


class Graphs:
    """Make graphs, and destroy at the end what the test has left."""

    def __init__(self, cu: Driver) -> None:
        self.cu = cu
        self.context: c_void_p = cu.out(c_void_p, "cuCtxGetCurrent")
        self.module: c_void_p = cu.out(c_void_p, "cuModuleLoadData", KERNELS)
        self.graphs: list[c_void_p] = []
        self.executables: list[c_void_p] = []

    def close(self) -> None:
        self.cu.cuCtxSynchronize()
        for executable in self.executables:
            self.cu.status("cuGraphExecDestroy", executable)
        for graph in self.graphs:
            self.cu.status("cuGraphDestroy", graph)
        self.cu.cuModuleUnload(self.module)

    def function(self, name: str) -> c_void_p:
        return self.cu.out(c_void_p, "cuModuleGetFunction", self.module, name.encode())

    def graph(self) -> c_void_p:
        graph: c_void_p = self.cu.out(c_void_p, "cuGraphCreate", 0)
        self.graphs.append(graph)
        return graph

    # Nodes

    def node(self, kind: str, graph: c_void_p, after: Sequence[c_void_p], *params: Any) -> c_void_p:
        return self.cu.out(c_void_p, f"cuGraphAdd{kind}", graph, handles(after), c_size_t(len(after)), *params)

    def empty(self, graph: c_void_p, *after: c_void_p) -> c_void_p:
        return self.node("EmptyNode", graph, after)

    def host(self, graph: c_void_p, function: Callable[[], Any], *after: c_void_p) -> c_void_p:
        called = HostFunction(lambda _: function())
        self.cu.kept.append(called)
        params = HostParams(ctypes.cast(called, c_void_p).value, None)
        return self.node("HostNode", graph, after, byref(params))

    def kernel_params(self, name: str, *arguments: Any, grid: int = 1, block: int = 1) -> KernelParams:
        params = KernelParams(self.function(name).value, (grid, 1, 1), (block, 1, 1))
        pointers = (c_void_p * max(1, len(arguments)))(*(ctypes.addressof(argument) for argument in arguments))
        params.params = ctypes.addressof(pointers)
        self.cu.kept.append((pointers, arguments))
        return params

    def kernel(self, graph: c_void_p, name: str, *arguments: Any, after: Sequence[c_void_p] = ()) -> c_void_p:
        return self.node("KernelNode_v2", graph, after, byref(self.kernel_params(name, *arguments)))

    def copy(self, graph: c_void_p, target: Any, source: Any, size: int, *after: c_void_p) -> c_void_p:
        return self.node("MemcpyNode", graph, after, byref(copy_params(target, source, size)), self.context)

    def fill(self, graph: c_void_p, target: c_uint64, value: int, count: int, *after: c_void_p) -> c_void_p:
        params = FillParams(target.value, 0, value, 1, count, 1)
        return self.node("MemsetNode", graph, after, byref(params), self.context)

    def alloc(self, graph: c_void_p, size: int, *after: c_void_p) -> tuple[c_void_p, c_uint64]:
        params = AllocParams(props=PoolProps(alloc_type=1, location=Location(1, 0)), size=size)
        node = self.node("MemAllocNode", graph, after, byref(params))
        return node, c_uint64(params.address)

    def free(self, graph: c_void_p, address: c_uint64, *after: c_void_p) -> c_void_p:
        return self.node("MemFreeNode", graph, after, address)

    def child(self, graph: c_void_p, child: c_void_p, *after: c_void_p) -> c_void_p:
        return self.node("ChildGraphNode", graph, after, child)

    # Questions

    def list(self, function: str, of: c_void_p) -> list[int]:
        count = c_size_t()
        getattr(self.cu, function)(of, None, byref(count))
        if not count.value:
            return []  # drivers refuse arrays without room
        found = (c_void_p * count.value)()
        getattr(self.cu, function)(of, found, byref(count))
        return list(found)

    def nodes(self, graph: c_void_p) -> list[int]:
        return self.list("cuGraphGetNodes", graph)

    def edges(self, graph: c_void_p) -> list[tuple[int, int]]:
        count = c_size_t()
        self.cu.cuGraphGetEdges(graph, None, None, byref(count))
        if not count.value:
            return []
        tails, heads = (c_void_p * count.value)(), (c_void_p * count.value)()
        self.cu.cuGraphGetEdges(graph, tails, heads, byref(count))
        return list(zip(tails, heads, strict=True))

    def dot(self, graph: c_void_p, path: Any, flags: int = 0) -> str:
        self.cu.cuGraphDebugDotPrint(graph, c_char_p(str(path).encode()), flags)
        return str(path.read_text())

    # Executables

    def instantiate(self, graph: c_void_p, flags: int = 0) -> c_void_p:
        executable: c_void_p = self.cu.out(c_void_p, "cuGraphInstantiateWithFlags", graph, c_uint64(flags))
        self.executables.append(executable)
        return executable

    def run(self, graph: c_void_p, stream: c_void_p | None = None) -> None:
        executable = self.instantiate(graph)
        self.cu.cuGraphLaunch(executable, stream)
        self.cu.cuStreamSynchronize(stream)
        self.cu.cuGraphExecDestroy(executable)
        self.executables.remove(executable)


@contextmanager
def made(cu: Driver) -> Iterator[Graphs]:
    graphs = Graphs(cu)
    yield graphs
    graphs.close()


class User:
    """A user object that tells when its destructor has run, and where."""

    def __init__(self, cu: Driver, count: int = 1) -> None:
        self.thread: int | None = None
        self.status = ""
        self.ended = threading.Event()
        self.cu = cu
        self.function = HostFunction(self.destroy)
        self.handle: c_void_p = cu.out(c_void_p, "cuUserObjectCreate", None, self.function, count, 1)

    def destroy(self, _: object) -> None:
        self.thread = threading.get_ident()
        self.status = self.cu.status("cuGraphCreate", byref(c_void_p()), 0)
        self.ended.set()

    def alive(self) -> bool:
        time.sleep(0.02)
        return not self.ended.is_set()

    def gone(self) -> bool:
        return self.ended.wait(10)

    def gone_here(self) -> bool:
        """Whether it has ended by now, in this thread."""
        return self.ended.is_set() and self.thread == threading.get_ident()
