# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the package knows of graphs beyond what the driver tells.

A graph that was made here, the graphs inside its nodes, and those inside theirs are one hierarchy: one
:class:`GraphState` each. They outlive the Python objects for graphs and nodes, which come and go.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import CUDAError
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi._lifetime.references import Operand
from cuda_core_cffi._lifetime.table import new_table
from cuda_core_cffi.typing import GraphConditionalType

INVALID_VALUE: int = lib.CUDA_ERROR_INVALID_VALUE
NONE: Mapping[Any, Any] = MappingProxyType({})
USUAL_COUNT = 32  # elements of arrays that a helper fills at first
USUAL_NODES = 256  # Python objects for nodes that are remembered before those are forgotten that are gone

_make = object.__new__
_ref = weakref.ref

node_classes: dict[int | None, Any] = {}
"""The class for each of the driver's node types; None for those that have no class of their own."""

conditional_classes: dict[tuple[GraphConditionalType, bool], Any] = {}
"""The class for each kind of conditional node; if, with and without else. Filled, like the other, with the classes."""


class Record:
    """What one node was given, besides its keep. Most nodes have little of it.

    Attributes
    ----------
    operands : Mapping of str to sequence of Operand
        What the graph keeps for the node, by what it is for, so that an update can replace a part.
    context : int
        The context that the node runs in; 0: not known.
    library, symbol
        Of a kernel.
    plain : ccc_handle *
        Of a kernel that has neither attributes nor buffers: one record does for several such nodes in a row.
    given : Mapping or None
        The fields of its configuration that are attributes; None: not known.
    before : Mapping of int to bytes
        What its attributes were before they were set, by the driver's number.
    condition, kind, has_else
        Of a conditional node.
    """

    library: Any = None
    symbol: str | None = None
    given: Mapping[str, Any] | None = None
    context: int = 0
    plain: Any = None
    before: Mapping[int, bytes] = NONE
    condition: GraphCondition | None = None
    kind: GraphConditionalType | None = None
    has_else: bool = False

    def __init__(self, operands: Mapping[str, Sequence[Operand]] = NONE) -> None:
        self.operands = operands


class GraphState:
    """What is known of one graph.

    Attributes
    ----------
    handle : int
        The driver's.
    node : int
        The driver's handle of the node that the graph is inside; 0 for the outermost.
    root : GraphState
        That of the outermost graph.
    is_valid : bool
        Whether the graph is there: false once its node was destroyed, or the outermost graph closed.
    nodes : dict of int to weakref.ref
        The Python objects for nodes, by handle: one for each node. Some are gone: a callback for each, or a
        ``WeakValueDictionary``, costs more than a node.
    records : MutableMapping of int to Record
        What the nodes were given, by handle, as far as it is known.
    keeps : dict of int to ccc_refs *
        What the graph keeps for the nodes, by handle; of those for which it keeps something.
    inner : dict of int to list of GraphState
        The graphs inside nodes, by the node's handle.
    definition : weakref.ref or None
        To the Python object for the graph, of one inside a node.
    capacity : int
        How many of ``nodes`` there may be before those are forgotten that are gone.
    """

    __slots__ = (
        "__weakref__",
        "capacity",
        "definition",
        "handle",
        "inner",
        "is_valid",
        "keeps",
        "node",
        "nodes",
        "records",
        "root",
    )  # fmt: skip

    def __init__(self, handle: int, root: GraphState | None = None, node: int = 0) -> None:
        self.handle = handle
        self.node = node
        self.root = root or self
        self.is_valid = True
        self.nodes: dict[int, weakref.ref[Any]] = {}
        self.records: MutableMapping[int, Record] = new_table()
        self.keeps: dict[int, Any] = {}
        self.inner: dict[int, list[GraphState]] = {}
        self.definition: weakref.ref[Any] | None = None
        self.capacity = USUAL_NODES

    def find(self, node: int) -> Member | None:
        """Return the Python object for a node, or None."""
        seen = self.nodes.get(node)
        return None if seen is None else seen()

    def enter(self, node: int, fresh: Member) -> Member:
        """Return the Python object for a node: that which there is, or else a new one."""
        with _lock:
            found = self.find(node)
            if found is not None:
                return found
            self.nodes[node] = _ref(fresh)
            return fresh

    def forget_gone(self) -> None:
        """Forget the Python objects that are gone."""
        with _lock:
            for handle, seen in self.nodes.copy().items():
                if seen() is None and self.nodes.get(handle) is seen:  # else a finalizer has put another there
                    del self.nodes[handle]
            self.capacity = max(2 * len(self.nodes), USUAL_NODES)

    def note(self, node: int, record: Record, keep: Any) -> None:
        """Remember what a node was given, and what the graph keeps for it, if anything."""
        with _lock:
            self.records[node] = record
            if keep:
                self.keeps[node] = keep
            else:
                self.keeps.pop(node, None)

    def forget(self, node: int) -> None:
        """Forget a node that is gone, and the graphs inside it."""
        with _lock:
            found = self.find(node)
            if found is not None:
                found._is_there = False
            for known in (self.nodes, self.records, self.keeps):
                known.pop(node, None)
            for inner in self.inner.pop(node, ()):
                inner.invalidate()

    def invalidate(self) -> None:
        """The graph is gone, and all that is in it."""
        with _lock:
            gone = [self]
            while gone:  # programs nest graphs deeper than functions may call one another
                state = gone.pop()
                state.is_valid = False
                nodes, graphs = state.nodes.copy(), state.inner.copy()
                for known in (state.nodes, state.records, state.keeps, state.inner):
                    known.clear()
                for seen in nodes.values():
                    found = seen()
                    if found is not None:
                        found._is_there = False
                for inner in graphs.values():
                    gone += inner


class GraphHandle(Handle):
    """A Python object for a graph. :class:`~cuda_core_cffi.graph.GraphDefinition` is the class of all of them."""

    __slots__ = ("_outer", "_state")

    _CTYPE = "CUgraph"
    _outer: Any  # of a graph inside a node: the definition that the node is in
    _state: GraphState

    @property
    def is_valid(self) -> bool:
        """Whether the graph is there: false once it is closed, or the node destroyed that it is in."""
        return self._state.is_valid


class Member(Uncopyable):
    """A node of a graph, or the entry of one. :class:`~cuda_core_cffi.graph.GraphNode` is the class of all of them."""

    __slots__ = ("__weakref__", "_definition", "_handle", "_is_there")

    _NOT_COPIED_BECAUSE: ClassVar[str] = "it belongs to a graph of this process"
    _definition: Any  # None for a node of no graph
    _handle: int  # 0 for an entry
    _is_there: bool

    @property
    def is_valid(self) -> bool:
        """Whether the node and its graph are there: false after :meth:`destroy`."""
        return self._is_there and self._definition is not None and self._definition.is_valid


def changing() -> threading.RLock:
    """Return the lock to hold while what a graph or a node has is exchanged: one thread releases what was kept."""
    return _lock


def check_member(node: Any) -> Member:
    """Return a node that is there, or raise."""
    if not isinstance(node, Member):
        raise TypeError(f"a node must be a GraphNode, not {type(node).__name__}")
    if not node.is_valid:
        raise RuntimeError(f"this {type(node).__name__} was destroyed, or its graph is gone")
    return node


def invalid_edge(why: str) -> CUDAError:
    """Return the error for edges that no graph can have: what the driver would answer, with the reason."""
    error = CUDAError(f"cuGraphAddDependencies: CUDA_ERROR_INVALID_VALUE ({INVALID_VALUE}): {why}")
    error.call, error.status, error.name = "cuGraphAddDependencies", INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"
    return error


def node_of(definition: GraphHandle, handle: int, kind: int | None = None) -> Any:
    """Return the object for a node: the same one as long as somebody has it.

    Parameters
    ----------
    definition : GraphDefinition
        The graph that the node is in.
    handle : int
        The driver's.
    kind : int, optional
        The driver's number for the type of node. By default the driver is asked.
    """
    state = definition._state
    found = state.find(handle)
    if found is not None:
        return found
    if kind is None:
        out = ffi.new("int *")
        status = lib.ccc_graph_node_type(definition._c_handle, handle, out)
        if status:
            raise definition._failure(status)
        kind = out[0]
    return new_node(definition, state, handle, node_class(kind, state.records.get(handle)))


def new_node(definition: GraphHandle, state: GraphState, handle: int, cls: type[Any]) -> Any:
    """Return the object for a node that nobody has one for: it was just added, or found."""
    fresh = _make(cls)
    fresh._definition, fresh._handle, fresh._is_there = definition, handle, True
    nodes, seen = state.nodes, _ref(fresh)
    if nodes.setdefault(handle, seen) is not seen:  # there was an object for it, or another thread was first
        return state.enter(handle, fresh)
    if len(nodes) > state.capacity:
        state.forget_gone()
    return fresh


def node_class(kind: int, record: Record | None) -> Any:
    """Return the class for a node of the driver's type ``kind``, with what there is in ``GraphState.records``."""
    if record is not None and record.kind is not None:
        return conditional_classes[record.kind, record.has_else]
    return node_classes.get(kind, node_classes[None])


def definition_of(outer: GraphHandle, state: GraphState) -> Any:
    """Return the object for a graph inside a node of ``outer``: the same one as long as somebody has it."""
    with _lock:
        found = None if state.definition is None else state.definition()
        if found is None:
            found = type(outer)._made_by(lib.ccc_graph_inner, state.handle, state.node, outer._c_handle)
            found._outer, found._state = outer, state
            state.definition = weakref.ref(found)
        return found


def listed(item: Handle, call: Callable[..., int], *types: str) -> list[list[int]]:
    """Return what a helper puts into arrays of these types, whose last argument is their capacity, then the count."""
    capacity = USUAL_COUNT
    while True:
        arrays, count = [ffi.new(f"{ctype}[]", capacity) for ctype in types], ffi.new("size_t *", capacity)
        status = call(*arrays, count)
        if status:
            raise item._failure(status)
        if count[0] <= capacity:
            return [list(array[0 : count[0]]) for array in arrays]
        capacity = count[0]


def read(definition: GraphHandle, node: int, kind: int, ctype: str) -> Any:
    """Return a pointer to a node's parameters, in a new structure of the driver's type."""
    out = ffi.new(ctype)
    status = lib.ccc_graph_get(definition._c_handle, node, kind, out)
    if status:
        raise definition._failure(status)
    return out


def inner_state(definition: GraphHandle, node: int) -> GraphState:
    """Return what is known of the graph inside a child graph node."""
    with _lock:  # so that whoever destroys the node knows of it
        inner = definition._state.inner.get(node)
        if inner is None:
            out = read(definition, node, lib.CU_GRAPH_NODE_TYPE_GRAPH, "CUgraph *")
            made = [GraphState(int(ffi.cast("uintptr_t", out[0])), definition._state.root, node)]
            inner = definition._state.inner.setdefault(node, made)
        return inner[0]


def copied_references(copy: GraphHandle) -> dict[Any, Any]:
    """Return what the graph keeps for a new copy of another one, by what is kept for that in its place."""
    count = lib.ccc_graph_copies(copy._c_handle, ffi.NULL, ffi.NULL, 0)
    originals, copies = ffi.new("ccc_refs *[]", count), ffi.new("ccc_refs *[]", count)
    lib.ccc_graph_copies(copy._c_handle, originals, copies, count)
    return dict(zip(originals, copies, strict=True))


def copy_records(source: GraphHandle, target: GraphHandle, copies: Mapping[Any, Any]) -> None:
    """Let a copy of a graph know what the original does.

    Where the driver does not tell which node of the copy stands for which, what that node uses is kept until the copy
    goes.

    Parameters
    ----------
    source, target : GraphHandle
        The graphs.
    copies : Mapping
        What is kept for the copy, and the graphs inside it, instead of what is for the original, where that differs.
    """
    pairs = [(source, target)]
    while pairs:
        source, target = pairs.pop()
        for node in {*source._state.records, *source._state.inner}:
            found = int(lib.ccc_graph_find(target._c_handle, node))
            if not found:
                continue
            if node in source._state.records:
                target._state.records[found] = source._state.records[node]
            if node in source._state.keeps:
                keep = source._state.keeps[node]
                target._state.keeps[found] = copies.get(keep, keep)
            for inner in source._state.inner.get(node, ()):
                pairs.append((definition_of(source, inner), definition_of(target, inner_state(target, found))))


_lock = new_lock()  # for the objects of nodes and graphs
