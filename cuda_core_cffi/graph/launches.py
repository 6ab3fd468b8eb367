# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that run kernels, added the short way: of such nodes large graphs are made.

It begins like a launch: what the kernel has for these types of arguments packs them, and C makes a node of that
(``include/graph/ccc_graph_add.h``). What is left out is looked at the long way (``parameters.kernel_call``), which also
explains what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._code.kernel import Kernel
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._launching.bindless import Bindless
from cuda_core_cffi._lifetime.references import NOTHING, Operand, flush_after_sync, flush_releases
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi.graph.state import GraphHandle, Record, new_node, node_classes

if TYPE_CHECKING:
    from cuda_core_cffi.graph.nodes import KernelNode

KERNEL: int = lib.CU_GRAPH_NODE_TYPE_KERNEL
UNCHECKED: int = lib.CCC_UNCHECKED

_add = lib.ccc_graph_add_launch
_identity = lib.ccc_identity
_pack = calls.pack
_releases_pending = lib.ccc_releases_pending


def add_launch(
    definition: GraphHandle, before: tuple[int, ...], config: Any, kernel: Any, args: tuple[Any, ...]
) -> KernelNode | None:
    """Add a node that runs a kernel, and return the object for it; None where that takes the long way."""
    try:
        native, packer = config._native_cache, kernel._packer  # kept to the end of this call
    except AttributeError:  # no kernel, or no configuration
        return None
    data = _pack(packer.fast, args) if packer is not None else None
    if data is None or native is None:
        packer = kernel._find_packer(tuple(map(type, args)))
        if packer is None:
            return None
        native, data = config._native_cache or config._native, packer(*args)
    if len(before) > 1:
        return None
    c_handles = []
    for arg in args:
        if isinstance(arg, (Bindless, Buffer)):
            if arg._needs_python:
                return None
            c_handles.append(arg._c_handle)
    previous = before[0] if before else 0
    added = _add(definition._c_handle, previous, packer.target, native, data, c_handles or NOTHING, len(c_handles))
    if _releases_pending():
        flush_releases()
    handle = added.node
    if not handle:
        if added.status == UNCHECKED:
            return None
        raise definition._failure(added.status, kernel, *args)
    known = (kernel._node_records or {}).get(added.context) or note_context(kernel, added.context)
    state = definition._state
    state.records[handle] = (*known, c_handles) if c_handles else known
    state.keeps[handle] = added.keep
    node: KernelNode = new_node(definition, state, handle, node_classes[KERNEL])
    return node


def note_context(kernel: Kernel, context: int) -> tuple[Any, ...]:
    """Return what all nodes have in common that run a kernel in a context, as ``GraphState.records`` has it."""
    flush_after_sync()
    known = (launch_record, kernel._c_handle, kernel._library, kernel._symbol, context)
    if kernel._node_records is None:
        kernel._node_records = {}
    kernel._node_records[context] = known
    return known


def launch_record(c_handle: Any, library: Any, symbol: str | None, context: int, buffers: Sequence[Any] = ()) -> Record:
    """Return what is known of a node that runs a kernel, given as its C handle, with plain arguments."""
    record = Record()
    record.operands = {"kernel": (Operand(int(_identity(c_handle)), (c_handle,)),)}
    if buffers:
        record.operands["args"] = (Operand(0, tuple(buffers)),)  # the driver has the addresses
    record.context = context
    record.library, record.symbol = library, symbol
    record.given = {}
    return record
