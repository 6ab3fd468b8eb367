# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs as they are defined: nodes and edges."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from cuda_core_cffi._core import calls, typed_handles
from cuda_core_cffi._core.errors import last_failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import refuse_again
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi._lifetime.references import flush_releases
from cuda_core_cffi.graph import picture
from cuda_core_cffi.graph.executable import Graph, instantiate
from cuda_core_cffi.graph.node import GraphNode
from cuda_core_cffi.graph.node_maker import NodeMaker
from cuda_core_cffi.graph.options import GraphCompleteOptions, GraphDebugPrintOptions, debug_flags
from cuda_core_cffi.graph.state import (
    GraphHandle,
    GraphState,
    changing,
    copied_references,
    copy_records,
    listed,
    node_of,
)

if TYPE_CHECKING:
    from cuda_core_cffi._core.ffi import CData
    from cuda_core_cffi.graph.nodes import EmptyNode
    from cuda_core_cffi.typing._option_dicts import GraphCompleteOptionsDict, GraphDebugPrintOptionsDict

LARGEST_CONDITION = 2**32 - 1

_create = lib.ccc_graph_create
_identity = lib.ccc_identity
_releases_pending = lib.ccc_releases_pending


class GraphDefinition(NodeMaker, GraphHandle):
    """A graph: nodes, which do something, and edges, which say what comes before what.

    Its methods add nodes that nothing comes before; the same methods of nodes add what comes after them. What nodes use
    is kept by the graph, and by every executable and clone that was made of it. Calls on one graph, from whichever
    threads, are made one after the other.

    Examples
    --------
    >>> graph = GraphDefinition()
    >>> filled = graph.memset(memory, 7, 4)
    >>> called = filled.callback(lambda: None)
    >>> called.pred == {filled}
    True
    >>> with graph.instantiate() as executable:
    ...     executable.launch(stream)
    ...     stream.sync()
    >>> graph.close()
    """

    __slots__ = ()

    def __init__(self) -> None:
        refuse_again(self)
        if _releases_pending():
            flush_releases()
        if not calls.make_in(self, _create):
            raise last_failure()
        self._as_root()

    def __repr__(self) -> str:
        return f"<GraphDefinition handle={self._state.handle * self.is_valid:#x}{' closed' * (not self.is_valid)}>"

    def close(self) -> None:
        """Destroy the graph. Executables live on. Closing twice is allowed; closing one inside a node does nothing."""
        if self._outer is None:
            self._state.invalidate()
            super().close()
            flush_releases()

    def clone(self) -> GraphDefinition:
        """Return a copy of the graph, with what its nodes use. Later changes of one do not affect the other.

        Returns
        -------
        GraphDefinition
            The copy.

        Raises
        ------
        CUDAError
            If the graph allocates, frees, or has conditional nodes.
        """
        self._place()
        flush_releases()
        with changing():
            clone = self._made_by(lib.ccc_graph_clone, self._c_handle)._as_root()
            copy_records(self, clone, copied_references(clone))
        return clone

    def empty(self) -> EmptyNode:
        """Add a node that does nothing.

        Returns
        -------
        EmptyNode
            The node.
        """
        return self.join()

    def create_condition(self, default_value: int | None = None) -> GraphCondition:
        """Return a condition for the conditional nodes of this graph.

        Parameters
        ----------
        default_value : int, optional
            What the condition is at the start of every run. By default what it was at the end of the last.

        Returns
        -------
        GraphCondition
            The condition. Kernels set it, and take it as an argument. It belongs to the context that is current now.

        Raises
        ------
        OverflowError
            If the value does not fit in 32 bits.
        """
        if default_value is not None:
            given = int(default_value) if isinstance(default_value, bool) else default_value
            default_value = integer(given, "default_value", "an int or None")
            if not 0 <= default_value <= LARGEST_CONDITION:
                raise OverflowError(f"default_value must be 0 to {LARGEST_CONDITION}, not {default_value}")
        self._place()
        handle = ffi.new("CUgraphConditionalHandle *")
        flags = 0 if default_value is None else lib.CU_GRAPH_COND_ASSIGN_DEFAULT
        status = lib.ccc_graph_condition(self._c_handle, default_value or 0, flags, handle)
        if status:
            raise self._failure(status)
        return GraphCondition._from_handle(int(handle[0]), self._state.root)

    def instantiate(self, options: GraphCompleteOptions | GraphCompleteOptionsDict | None = None) -> Graph:
        """Make an executable of the graph.

        Parameters
        ----------
        options : GraphCompleteOptions, optional
            How it is executed.

        Returns
        -------
        Graph
            The executable. Later changes of the definition do not affect it.

        Raises
        ------
        ValueError
            If options exclude each other.
        CUDAError
            If the graph cannot be executed; the message tells why: it has a cycle, say.
        """
        self._place()
        if options is not None:
            options = check_options(GraphCompleteOptions, options, "GraphDefinition.instantiate")
        return instantiate(self, options)

    def debug_dot_print(
        self, path: str | os.PathLike[str], options: GraphDebugPrintOptions | GraphDebugPrintOptionsDict | None = None
    ) -> None:
        """Have the driver write the graph to a file, in the DOT language.

        Parameters
        ----------
        path : str
            The file.
        options : GraphDebugPrintOptions, optional
            What is written besides nodes and edges.

        Raises
        ------
        CUDAError
            If the file cannot be written.
        """
        wanted = check_options(GraphDebugPrintOptions, options, "GraphDefinition.debug_dot_print")
        self._place()
        status = lib.ccc_graph_print(self._c_handle, os.fsencode(path), debug_flags(wanted))
        if status:
            raise self._failure(status)

    def nodes(self) -> set[GraphNode]:
        """Return all nodes of the graph, but not those of graphs inside nodes.

        Returns
        -------
        set of GraphNode
            A new set.
        """
        return {node_of(self, handle, kind) for handle, kind in self._nodes()}

    def edges(self) -> set[tuple[GraphNode, GraphNode]]:
        """Return all edges of the graph.

        Returns
        -------
        set of (GraphNode, GraphNode)
            A new set of pairs: what comes before, and what comes after.
        """
        return {(node_of(self, before), node_of(self, after)) for before, after in self._edges()}

    def to_dot(self) -> str:
        """Return the graph in the DOT language of Graphviz, with what each node does and the graphs inside nodes.

        Returns
        -------
        str
            The text of a ``digraph``.
        """
        self._place()
        return picture.dot(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return a picture for notebooks: SVG where the graphviz package and program are installed, and DOT text."""
        return picture.mime_bundle(self, repr(self))

    @property
    def handle(self) -> int:
        """The driver's handle as an integer, the address; 0 once the graph is gone.

        Who has it may make executables and clones that the package does not see: so the driver is given what the nodes
        use, which fails with a CUDAError if nobody has asked before a host function does.
        """
        return super().handle if self._show() else typed_handles.shown(self._CTYPE, 0)

    @property
    def cdata(self) -> CData:
        """The driver's handle as a typed CFFI object; NULL once the graph is gone."""
        return super().cdata if self._show() else ffi.cast(self._CTYPE, 0)

    @property
    def c_handle(self) -> int:
        """The address of the C handle, for C code that uses ``cuda_core_cffi.h``."""
        self._show()
        return super().c_handle

    @property
    def _entry(self) -> GraphNode:
        """What comes before all nodes: its methods add nodes that nothing comes before."""
        return GraphNode._from_handle(self, 0)

    def _as_root(self) -> Self:
        """Complete an object for a graph that is inside no other: a clone or a captured graph."""
        self._outer, self._state = None, GraphState(_identity(self._c_handle))
        return self

    def _show(self) -> bool:
        """Let the driver keep what the nodes use, for executables that others make; tell whether the graph is there."""
        if not self.is_valid:
            return False
        status = lib.ccc_graph_show(self._c_handle)
        if status and status != lib.CCC_CLOSED:
            raise self._failure(status)
        return not status

    def _place(self) -> tuple[Any, tuple[int, ...]]:
        if not self._state.is_valid:
            raise RuntimeError("this GraphDefinition is closed, or the node destroyed that it was in")
        return self, ()

    def _nodes(self) -> list[tuple[int, int]]:
        """Return handle and type of all nodes, in the order of the driver."""
        self._place()
        handles, kinds = listed(self, partial(lib.ccc_graph_nodes, self._c_handle), "uint64_t", "int")
        return list(zip(handles, kinds, strict=True))

    def _edges(self) -> list[tuple[int, int]]:
        """Return the handles of all pairs of nodes with an edge."""
        self._place()
        before, after = listed(self, partial(lib.ccc_graph_edges, self._c_handle), "uint64_t", "uint64_t")
        return list(zip(before, after, strict=True))

    @property
    def _has_memory_nodes(self) -> bool:
        kinds = {kind for _, kind in self._nodes()}
        return not kinds.isdisjoint((lib.CU_GRAPH_NODE_TYPE_MEM_ALLOC, lib.CU_GRAPH_NODE_TYPE_MEM_FREE))
