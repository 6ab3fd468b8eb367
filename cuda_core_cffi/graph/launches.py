# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that run kernels, added the short way: of such nodes large graphs are made.

It begins like a launch: what the kernel has for these types of arguments packs them, and C makes a node of that
(``include/ccc_graph_add.h``). What is left out is looked at the long way (``parameters.kernel_call``), which also
explains what is wrong.
"""

from __future__ import annotations

from typing import Any

from cuda_core_cffi import _calls
from cuda_core_cffi._ffi import lib
from cuda_core_cffi._kernel import Kernel
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._retain import NOTHING, Operand, settle, settle_after_sync
from cuda_core_cffi.graph.state import GraphHandle, Record, new_node, node_classes

__all__ = ["add_launch"]

KERNEL: int = lib.CU_GRAPH_NODE_TYPE_KERNEL
UNCHECKED: int = lib.CCC_UNCHECKED

_add = lib.ccc_graph_add_launch
_pack = _calls.pack
_unsettled = lib.ccc_unsettled


def add_launch(
    definition: GraphHandle, before: tuple[int, ...], config: Any, kernel: Any, args: tuple[Any, ...]
) -> Any:
    """Add a node that runs a kernel, and return the object for it; None where that takes the long way."""
    try:
        native, packer = config._native_cache, kernel._packer  # kept to the end of this call
    except AttributeError:  # no packer yet, or no kernel or configuration
        return None
    data = _pack(packer.row, args)
    if data is None or native is None:
        packer = kernel._packers.get(tuple(map(type, args)))
        if packer is None:
            return None
        kernel._packer, kernel._row = packer, packer.row  # as launches do
        native, data = config._addressed_native, packer(*args)
    if len(before) > 1:
        return None
    boxes = []
    for arg in args:
        if isinstance(arg, Buffer):
            if arg._python_owned:
                return None
            boxes.append(arg._box)
    previous = before[0] if before else 0
    added = _add(definition._box, previous, packer.target, native[1], data, boxes or NOTHING, len(boxes))
    if _unsettled():
        settle()
    handle = added.node
    if not handle:
        if added.status == UNCHECKED:
            return None
        raise definition._failure(added.status, kernel, *args)
    try:
        known = kernel._node_records[added.context]
    except (AttributeError, KeyError):
        known = make_record(kernel, added.context)
    state = definition._state
    state.records[handle] = (known, boxes) if boxes else known
    state.keeps[handle] = added.keep
    return new_node(definition, state, handle, node_classes[KERNEL])


def make_record(kernel: Kernel, context: int) -> Record:
    """Return what all nodes have in common that run a kernel in a context with plain arguments."""
    settle_after_sync()
    record = Record()
    record.operands = {"kernel": (Operand(kernel.handle, (kernel._box,)),)}
    record.context = context
    record.library, record.symbol = kernel._library, kernel._symbol
    record.given = {}
    try:
        kernel._node_records[context] = record
    except AttributeError:
        kernel._node_records = {context: record}
    return record
