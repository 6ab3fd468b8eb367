# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The edges of a node, as live sets of its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Set
from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi.graph.state import Member, changing, check_member, invalid_edge, listed, node_of

if TYPE_CHECKING:
    from cuda_core_cffi.graph.node import GraphNode


class AdjacencySetProxy(Uncopyable, MutableSet["GraphNode"]):
    """The nodes that come directly before, or after, a node: a set that reads and writes the graph.

    What changes many edges, such as ``|=`` and ``clear()``, makes one call of the driver. Set operations that make a
    new set return a plain one.

    Parameters
    ----------
    node : GraphNode
        The node.
    is_fwd : bool
        The nodes after it, rather than those before.
    """

    __slots__ = ("_is_fwd", "_node")

    _NOT_COPIED_BECAUSE = "it shows a node of this process; set() of it is a copy"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Any, is_fwd: bool) -> None:
        if not isinstance(node, Member):
            raise TypeError(f"node must be a GraphNode, not {type(node).__name__}")
        self._node = node
        self._is_fwd = bool(is_fwd)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({set(self)!r})"

    def __contains__(self, x: object) -> bool:
        return isinstance(x, Member) and x._definition == self._node._definition and x._handle in self._handles()

    def __iter__(self) -> Iterator[GraphNode]:
        definition = self._node._definition
        return iter([node_of(definition, handle) for handle in self._handles()])

    def __len__(self) -> int:
        return len(self._handles())

    def __ior__(self, it: Set[Any]) -> AdjacencySetProxy:  # type: ignore[misc]
        """Add edges to several nodes in one call of the driver."""
        self.update(it)
        return self

    def __iand__(self, it: Set[Any]) -> AdjacencySetProxy:
        """Remove edges to all nodes but these in one call of the driver."""
        self._disconnect(set(self) - set(it))
        return self

    def __isub__(self, it: Set[Any]) -> AdjacencySetProxy:
        """Remove edges to several nodes in one call of the driver."""
        self._disconnect(it)
        return self

    def __ixor__(self, it: Set[Any]) -> AdjacencySetProxy:  # type: ignore[misc]
        """Remove the edges that there are, add those that there are not: one call of the driver for each."""
        both = set(self) & set(it)
        added = set(it) - both
        self._check(added)
        self._disconnect(both)
        self.update(added)
        return self

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return set(it)

    def add(self, value: Any) -> None:
        """Add an edge. One that is there already stays.

        Parameters
        ----------
        value : GraphNode
            The node at the other end.

        Raises
        ------
        CUDAError
            If the node is this one itself, or in another graph.
        """
        self.update((value,))

    def discard(self, value: Any) -> None:
        """Remove an edge, if it is there.

        Parameters
        ----------
        value : GraphNode
            The node at the other end.

        Raises
        ------
        CUDAError
            If the driver does not remove it.
        """
        if isinstance(value, Member) and value.is_valid:
            self._disconnect((value,))

    def clear(self) -> None:
        """Remove all edges of this side in one call of the driver."""
        self._disconnect(self)

    def update(self, *others: Any) -> None:
        """Add edges to several nodes in one call of the driver.

        Parameters
        ----------
        *others : GraphNode or iterable of GraphNode
            The nodes.
        """
        nodes = [node for other in others for node in ((other,) if isinstance(other, Member) else other)]
        check_member(self._node)
        status = 0
        with changing():  # so that no other thread destroys them meanwhile
            handles = self._check(nodes)
            if handles:
                status = lib.ccc_graph_connect(self._c_handle, self._node._handle, self._is_fwd, handles, len(handles))
        self._raise(status)

    def _replace(self, nodes: Iterable[Any]) -> None:
        """Make these the neighbours, in at most two calls of the driver."""
        wanted = set(nodes)
        self._check(wanted)
        self._disconnect(set(self) - wanted)
        self.update(wanted)

    def _check(self, nodes: Iterable[Any]) -> list[int]:
        """Return the handles of nodes that can have an edge with this one."""
        check_member(self._node)
        handles = []
        for node in nodes:
            other = check_member(node)
            if not other._handle:
                raise invalid_edge("the entry of a graph has no edges; what nothing comes before follows it")
            if other is self._node:
                raise invalid_edge(f"an edge from {node!r} to itself")
            if other._definition != self._node._definition:
                raise invalid_edge(f"{node!r} belongs to another graph than {self._node!r}")
            handles.append(other._handle)
        return handles

    def _disconnect(self, nodes: Iterable[Any]) -> None:
        definition = check_member(self._node)._definition
        given = list(nodes)
        status = 0
        with changing():  # as above
            handles = [
                node._handle
                for node in given
                if isinstance(node, Member) and node.is_valid and node._handle and node._definition == definition
            ]
            if handles and self._node.is_valid:
                status = lib.ccc_graph_disconnect(
                    self._c_handle, self._node._handle, self._is_fwd, handles, len(handles)
                )
        self._raise(status)

    def _handles(self) -> list[int]:
        check_member(self._node)
        if not self._node._handle:
            return []
        ask = partial(lib.ccc_graph_neighbours, self._c_handle, self._node._handle, self._is_fwd)
        (handles,) = listed(self._node._definition, ask, "uint64_t")
        return handles

    @property
    def _c_handle(self) -> Any:
        return self._node._definition._c_handle

    def _raise(self, status: int) -> None:
        if status:
            error: Exception = self._node._definition._failure(status)
            if self._node._definition._has_memory_nodes:
                error.add_note("in a graph with nodes that allocate or free, neither nodes nor edges can be removed")
            raise error
