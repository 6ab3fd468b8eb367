# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What all nodes of graphs have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from cuda_core_cffi._core import typed_handles
from cuda_core_cffi._core.errors import failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._lifetime.references import NOTHING, flush_releases
from cuda_core_cffi.graph.edges import AdjacencySetProxy
from cuda_core_cffi.graph.node_maker import NodeMaker
from cuda_core_cffi.graph.state import GraphState, Member, changing, check_member

if TYPE_CHECKING:
    from cuda_core_cffi._raw.generated import CUgraphNodeType
    from cuda_core_cffi.graph.definition import GraphDefinition


class GraphNode(NodeMaker, Member):
    """A node of a graph.

    Nodes are added by methods of :class:`GraphDefinition`, and by the same methods of nodes, which add what comes after
    them. As long as somebody has the object for a node, the graph gives out the same one.
    """

    __slots__ = ()

    def __init__(self) -> None:
        if getattr(self, "_definition", None) is not None:
            raise RuntimeError(f"this {type(self).__name__} is initialised already")
        self._definition, self._handle, self._is_there = None, 0, False

    def __repr__(self) -> str:
        if self._definition is not None and not self._handle:
            return "<GraphNode entry>"
        details = self._describe() if self.is_valid else "destroyed" if self._definition is not None else ""
        return f"<{type(self).__name__} handle={self._handle:#x}{' ' * bool(details)}{details}>"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, GraphNode):
            return NotImplemented
        same = (self._handle, self._definition) == (other._handle, other._definition)
        return same and self._is_there and other._is_there

    def __hash__(self) -> int:
        return hash((GraphNode, self._handle))

    def _describe(self) -> str:
        """Return what the node does, in a few words; of subclasses."""
        return ""

    def destroy(self) -> None:
        """Remove the node and its edges from the graph. Doing it twice is allowed.

        Raises
        ------
        CUDAError
            If the graph has nodes that allocate or free.
        """
        if not self.is_valid or not self._handle:
            return
        state: GraphState = self._definition._state
        with changing():
            if not self.is_valid:  # another thread was first
                return
            keep = state.keeps.pop(self._handle, NOTHING)  # not known while C may release it
            inner = [graph.handle for graph in state.inner.get(self._handle, ())]
            status = lib.ccc_graph_destroy_node(self._definition._c_handle, self._handle, inner, len(inner), keep)
            if not status:
                state.forget(self._handle)
            elif keep:
                state.keeps[self._handle] = keep
        if status:
            error = failure(status)
            if self._definition._has_memory_nodes:
                error.add_note("in a graph with nodes that allocate or free, neither nodes nor edges can be removed")
            raise error
        flush_releases()

    @property
    def type(self) -> CUgraphNodeType | None:
        """The driver's type of the node, a ``CUgraphNodeType`` of :mod:`cuda_core_cffi.driver`; None for an entry."""
        if self._definition is None or not self._handle:
            return None
        from cuda_core_cffi._raw.generated import CUgraphNodeType  # large, and nothing else here needs it

        return CUgraphNodeType(self._kind())

    @property
    def graph(self) -> GraphDefinition:
        """The :class:`GraphDefinition` that the node is in."""
        definition: GraphDefinition = self._definition
        return definition

    @property
    def handle(self) -> int | None:
        """The driver's handle as an integer; None for an entry.

        With the handle of a node, other code can reach the graphs inside it, and make executables and clones of them.
        So for a node with graphs inside, the driver is given what all nodes use, as by :attr:`GraphDefinition.handle`.

        Raises
        ------
        CUDAError
            If nobody has asked before a host function does, of a node with graphs inside.
        """
        if self._is_there and self._definition is not None and self._definition._state.inner.get(self._handle):
            self._definition._show()
        return typed_handles.shown("CUgraphNode", self._handle) if self._handle else None

    @property
    def pred(self) -> AdjacencySetProxy:
        """The nodes that come directly before: a set that can be changed, and assigned."""
        return AdjacencySetProxy(self, False)

    @pred.setter
    def pred(self, value: Iterable[GraphNode]) -> None:
        AdjacencySetProxy(self, False)._replace(value)

    @property
    def succ(self) -> AdjacencySetProxy:
        """The nodes that come directly after: a set that can be changed, and assigned."""
        return AdjacencySetProxy(self, True)

    @succ.setter
    def succ(self, value: Iterable[GraphNode]) -> None:
        AdjacencySetProxy(self, True)._replace(value)

    @classmethod
    def _from_handle(cls, definition: Any, handle: int) -> Self:
        self = cls.__new__(cls)
        self._definition, self._handle, self._is_there = definition, handle, True
        return self

    def _kind(self) -> int:
        out = ffi.new("int *")
        status = lib.ccc_graph_node_type(check_member(self)._definition._c_handle, self._handle, out)
        if status:
            raise self._definition._failure(status)
        return int(out[0])

    def _place(self) -> tuple[Any, tuple[int, ...]]:
        if not (self._is_there and self._definition._state.is_valid):
            check_member(self)  # raises
        return self._definition, (self._handle,) if self._handle else ()
