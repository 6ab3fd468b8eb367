# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Conditional nodes of the simulated driver through ctypes, and the kernels that decide."""

from __future__ import annotations

from sim_driver import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p, ctypes, offset
from sim_graphs import (
    CONDITIONAL,
    Graphs,
    KernelParams,
    NodeParams,
    handles,
)
from sim_kernels import HEADER

IF, WHILE, SWITCH = range(3)

ASSIGN = 1

# set(handle, value) sets a condition; count_down(handle, counter) takes one from a counter and sets the condition to it
DECIDERS = (
    HEADER
    + b"""
.extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);

.visible .entry set(.param .u64 handle, .param .u32 value)
{
    .reg .u64 h;
    .reg .u32 v;
    ld.param.u64 h, [handle];
    ld.param.u32 v, [value];
    {
    .param .b64 p0;
    .param .b32 p1;
    st.param.b64 [p0], h;
    st.param.b32 [p1], v;
    call.uni cudaGraphSetConditional, (p0, p1);
    }
    ret;
}

.visible .entry count_down(.param .u64 handle, .param .u64 counter)
{
    .reg .u64 h, c;
    .reg .u32 v;
    ld.param.u64 h, [handle];
    ld.param.u64 c, [counter];
    ld.global.u32 v, [c];
    sub.u32 v, v, 1;
    st.global.u32 [c], v;
    {
    .param .b64 p0;
    .param .b32 p1;
    st.param.b64 [p0], h;
    st.param.b32 [p1], v;
    call.uni cudaGraphSetConditional, (p0, p1);
    }
    ret;
}
\0"""
)


class ConditionalParams(ctypes.Structure):
    _fields_ = [
        ("handle", c_uint64),
        ("type", c_int),
        ("size", c_uint),
        ("graphs", c_void_p),
        ("context", c_void_p),
    ]


class Conditions:
    """Conditional nodes, and the kernels that decide."""

    def __init__(self, graphs: Graphs) -> None:
        self.graphs, self.cu = graphs, graphs.cu
        self.module: c_void_p = self.cu.out(c_void_p, "cuModuleLoadData", DECIDERS)
        self.memory = self.cu.alloc(64)
        self.cu.cuMemsetD8_v2(self.memory, 0, c_size_t(64))

    def handle(self, graph: c_void_p, value: int = 0, flags: int = ASSIGN) -> c_uint64:
        return self.cu.out(c_uint64, "cuGraphConditionalHandleCreate", graph, self.graphs.context, value, flags)

    def params(self, handle: c_uint64, kind: int, size: int) -> NodeParams:
        params = NodeParams(type=CONDITIONAL)
        conditional = ConditionalParams.from_buffer(params, NodeParams.of.offset)
        conditional.handle, conditional.type, conditional.size = handle.value, kind, size
        conditional.context = self.graphs.context.value
        return params

    def node(
        self, graph: c_void_p, handle: c_uint64, kind: int, size: int = 1, after: tuple[c_void_p, ...] = ()
    ) -> tuple[c_void_p, list[c_void_p]]:
        params = self.params(handle, kind, size)
        node: c_void_p = self.cu.out(
            c_void_p, "cuGraphAddNode_v2", graph, handles(after), None, c_size_t(len(after)), byref(params)
        )
        conditional = ConditionalParams.from_buffer(params, NodeParams.of.offset)
        return node, [c_void_p(body) for body in (c_void_p * size).from_address(conditional.graphs)]

    def kernel(self, graph: c_void_p, name: str, *arguments: object, after: tuple[c_void_p, ...] = ()) -> c_void_p:
        function: c_void_p = self.cu.out(c_void_p, "cuModuleGetFunction", self.module, name.encode())
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        params = KernelParams(function.value, (1, 1, 1), (1, 1, 1), 0, ctypes.addressof(pointers))
        return self.graphs.node("KernelNode_v2", graph, after, byref(params))

    def mark(self, graph: c_void_p, place: int, after: tuple[c_void_p, ...] = ()) -> c_void_p:
        return self.graphs.kernel(graph, "store", offset(self.memory, 4 * place), c_uint(1), after=after)

    def marks(self, count: int) -> list[int]:
        return list((c_uint * count).from_buffer_copy(self.cu.read(self.memory, 4 * count)))

    def clear(self) -> None:
        self.cu.cuMemsetD8_v2(self.memory, 0, c_size_t(64))
