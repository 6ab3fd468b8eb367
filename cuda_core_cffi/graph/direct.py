# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that fill, copy, record, wait, call, or do nothing, added the short way: one call of C makes each.

What is usual is checked here, and C gets plain arguments (``include/graph/ccc_graph_fill.h``). For what is left out the
functions return None: the long way (``parameters``) does it, or explains what is wrong. What an update has to know of a
node is put together when it asks (``GraphState.record``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._lifetime.references import NOTHING, Operand, flush_after_sync, flush_releases, kept
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.stream_values import fill_pattern
from cuda_core_cffi._streams.callbacks import host_function
from cuda_core_cffi._streams.event import Event
from cuda_core_cffi.graph.allocated import allocated
from cuda_core_cffi.graph.state import GraphHandle, Record, new_node, node_classes

if TYPE_CHECKING:
    from cuda_core_cffi.graph.memory_nodes import MemcpyNode, MemsetNode
    from cuda_core_cffi.graph.nodes import EmptyNode, HostCallbackNode

CLOSED: int = lib.CCC_CLOSED
EMPTY: int = lib.CU_GRAPH_NODE_TYPE_EMPTY
HOST: int = lib.CU_GRAPH_NODE_TYPE_HOST
MEMCPY: int = lib.CU_GRAPH_NODE_TYPE_MEMCPY
MEMSET: int = lib.CU_GRAPH_NODE_TYPE_MEMSET
TO_DEVICE: int = lib.CCC_TO_DEVICE
FROM_DEVICE: int = lib.CCC_FROM_DEVICE
LARGEST_ADDRESS = 2**64 - 1
LARGEST_BYTE = 255
LARGEST_ROW = 2**32 - 1  # elements of a row that is filled the short way
PLAIN = Record()
"""What is known of nodes that were given nothing but what the driver tells."""

_add_copy = lib.ccc_graph_add_memcpy
_add_empty = lib.ccc_graph_add_empty
_add_event = lib.ccc_graph_add_event
_add_fill = lib.ccc_graph_add_memset
_add_host_call = lib.ccc_graph_add_host
_handle = lib.ccc_handle_value
_releases_pending = lib.ccc_releases_pending


def add_empty(definition: GraphHandle, before: tuple[int, ...]) -> EmptyNode | None:
    """Add a node that does nothing, and return the object for it."""
    node: EmptyNode = enter(definition, _add_empty(definition._c_handle, before, len(before)), EMPTY, PLAIN)
    return node


def add_fill(definition: GraphHandle, before: tuple[int, ...], dst: Any, value: Any, width: Any) -> MemsetNode | None:
    """Add a node that fills one row of memory, and return the object for it; None where that takes the long way."""
    if len(before) > 1 or type(width) is not int or not 0 < width <= LARGEST_ROW:
        return None
    target = find_memory(dst)
    if target is None:
        return None
    pattern, element = (value, 1) if type(value) is int and 0 <= value <= LARGEST_BYTE else fill_pattern(value, None)
    address, c_handle, size = target
    if size is not None and width * element > size:
        return None
    previous = before[0] if before else 0
    added = _add_fill(definition._c_handle, previous, address, c_handle, pattern, element, width)
    node: MemsetNode = enter(definition, added, MEMSET, (fill_record, added.context, target))
    return node


def add_copy(definition: GraphHandle, before: tuple[int, ...], dst: Any, src: Any, size: Any) -> MemcpyNode | None:
    """Add a node that copies memory, and return the object for it; None where that takes the long way."""
    if len(before) > 1 or type(size) is not int or not 0 < size <= LARGEST_ADDRESS:
        return None
    target, source = find_memory(dst), find_memory(src)
    if target is None or source is None:
        return None
    address, c_handle, capacity = target
    whence, source_handle, length = source
    if (capacity is not None and size > capacity) or (length is not None and size > length):
        return None
    on_device = 0
    if allocated:
        on_device = TO_DEVICE * (address in allocated) | FROM_DEVICE * (whence in allocated)
    previous = before[0] if before else 0
    added = _add_copy(definition._c_handle, previous, address, c_handle, whence, source_handle, size, on_device)
    node: MemcpyNode = enter(definition, added, MEMCPY, (copy_record, added.context, target, source))
    return node


def add_event(definition: GraphHandle, before: tuple[int, ...], kind: int, event: Any) -> Any:
    """Add a node that records an event or waits for it, and return the object; None where that takes the long way."""
    if len(before) > 1 or not isinstance(event, Event):
        return None
    c_handle = event._c_handle
    handle = _handle(c_handle)
    if not handle:
        return None
    added = _add_event(definition._c_handle, before[0] if before else 0, kind, handle, c_handle)
    return enter(definition, added, kind, (event_record, handle, c_handle))


def add_host_call(definition: GraphHandle, before: tuple[int, ...], fn: Any, user_data: Any) -> HostCallbackNode | None:
    """Add a node that calls a function, and return the object for it; None where that takes the long way."""
    if len(before) > 1:
        return None
    address, data, token = host_function(fn, user_data)
    added = _add_host_call(definition._c_handle, before[0] if before else 0, address, data, token)
    if not added.node:
        kept.pop(token, None)
        raise definition._failure(added.status)
    node: HostCallbackNode = enter(definition, added, HOST, PLAIN)
    return node


def find_memory(value: Any) -> tuple[int, Any, int | None] | None:
    """Return address, C handle or NULL, and size of memory that nothing in Python owns; None for anything else."""
    if isinstance(value, Buffer):
        if value._needs_python:
            return None
        c_handle = value._c_handle
        address = _handle(c_handle)
        return (address, c_handle, value._size) if address else None
    if type(value) is int and 0 <= value <= LARGEST_ADDRESS:
        return value, NOTHING, None
    return None


def enter(definition: GraphHandle, added: Any, kind: int, record: Any) -> Any:
    """Return the object for a node that was added; None where something is closed, which the long way explains."""
    if _releases_pending():
        flush_releases()
    handle = added.node
    if not handle:
        if added.status == CLOSED:
            return None
        raise definition._failure(added.status)
    state = definition._state
    state.records[handle] = record
    keep = added.keep
    if keep:
        if not state.keeps:
            flush_after_sync()
        state.keeps[handle] = keep
    return new_node(definition, state, handle, node_classes[kind])


def operand_of(memory: tuple[int, Any, int | None]) -> Operand:
    """Return memory that a node uses, with what keeps it."""
    address, c_handle, size = memory
    return Operand(address, (c_handle,) if c_handle else (), (), size)


def fill_record(context: int, target: tuple[int, Any, int | None]) -> Record:
    """Return what is known of a node that fills memory."""
    record = Record()
    record.operands, record.context = {"dst": (operand_of(target),)}, context
    return record


def copy_record(context: int, target: tuple[int, Any, int | None], source: tuple[int, Any, int | None]) -> Record:
    """Return what is known of a node that copies memory."""
    record = Record()
    record.operands, record.context = {"dst": (operand_of(target),), "src": (operand_of(source),)}, context
    return record


def event_record(handle: int, c_handle: Any) -> Record:
    """Return what is known of a node that records an event or waits for it."""
    record = Record()
    record.operands = {"event": (Operand(handle, (c_handle,)),)}
    return record
