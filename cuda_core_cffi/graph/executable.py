# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Executable graphs: instantiated once, launched many times."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, overload

from cuda_core_cffi._core.calls import make, native
from cuda_core_cffi._core.errors import CUDAError
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle, raise_failure
from cuda_core_cffi._lifetime.references import flush_releases
from cuda_core_cffi._streams.stream import Stream, accept_stream
from cuda_core_cffi.graph import picture
from cuda_core_cffi.graph.options import GraphCompleteOptions, instantiate_flags
from cuda_core_cffi.graph.state import GraphHandle, Member, check_member, node_of
from cuda_core_cffi.graph.views import ExecutableGraphNode, view_class
from cuda_core_cffi.typing import IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi.graph.memory_nodes import BatchMemOpNode, MemcpyNode, MemsetNode
    from cuda_core_cffi.graph.node import GraphNode
    from cuda_core_cffi.graph.nodes import ChildGraphNode, EventRecordNode, EventWaitNode, HostCallbackNode, KernelNode
    from cuda_core_cffi.graph.views import (
        ExecutableBatchMemOpNode,
        ExecutableChildGraphNode,
        ExecutableEventRecordNode,
        ExecutableEventWaitNode,
        ExecutableHostCallbackNode,
        ExecutableKernelNode,
        ExecutableMemcpyNode,
        ExecutableMemsetNode,
    )

INSTANTIATE_ADVICE = {
    lib.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: "the graph is not well formed: it has a cycle",
    lib.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: "a graph for device_launch cannot do this",
    lib.CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED: "all nodes of a graph for device_launch, and all kernels "
    "that launch graphs, must be of one context",
    lib.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED: "a condition was created that no conditional node uses",
}
UPDATE_ADVICE = {
    lib.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED: "nodes or edges differ from those that were instantiated",
    lib.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: "a node is of another type than the one instantiated",
    lib.CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED: "a node runs another kernel",
    lib.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED: "parameters of a node changed that cannot: where memory is, or "
    "the shape of a copy or fill",
    lib.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED: "something about a node cannot be updated",
    lib.CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE: "a node runs a kernel that cannot take the place of "
    "the one instantiated: of another context, say",
    lib.CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED: "attributes of a node changed that cannot: whether it is "
    "cooperative, say",
}

_launch = lib.ccc_graph_launch


class Graph(Handle):
    """An executable graph.

    Made by :meth:`GraphDefinition.instantiate`. Only one launch of it runs at a time: each comes after the last one,
    and after the work in its stream. To run a graph twice at once, instantiate it twice. Calls on one executable, from
    whichever threads, are made one after the other.
    """

    __slots__ = ("_root", "_source")

    _CTYPE = "CUgraphExec"
    _MADE_BY = "GraphDefinition.instantiate"
    _root: object  # what is known of the definition: the nodes in it name the nodes here
    _source: weakref.ref[Any]  # the definition that it was made of, or updated from, for pictures

    def __repr__(self) -> str:
        return f"<Graph handle={self._driver_handle:#x}{' closed' * self.is_closed}>"

    @overload
    def __getitem__(self, node: KernelNode) -> ExecutableKernelNode: ...
    @overload
    def __getitem__(self, node: MemsetNode) -> ExecutableMemsetNode: ...
    @overload
    def __getitem__(self, node: BatchMemOpNode) -> ExecutableBatchMemOpNode: ...
    @overload
    def __getitem__(self, node: MemcpyNode) -> ExecutableMemcpyNode: ...
    @overload
    def __getitem__(self, node: ChildGraphNode) -> ExecutableChildGraphNode: ...
    @overload
    def __getitem__(self, node: EventRecordNode) -> ExecutableEventRecordNode: ...
    @overload
    def __getitem__(self, node: EventWaitNode) -> ExecutableEventWaitNode: ...
    @overload
    def __getitem__(self, node: HostCallbackNode) -> ExecutableHostCallbackNode: ...
    @overload
    def __getitem__(self, node: GraphNode) -> ExecutableGraphNode: ...
    def __getitem__(self, node: Any) -> ExecutableGraphNode:
        """Return a view of one node, with which to change it in this executable alone.

        Parameters
        ----------
        node : GraphNode
            The node of the definition that this was instantiated from.

        Returns
        -------
        ExecutableGraphNode
            The view: of a subclass for what the node does, if there is something to change about such nodes.

        Raises
        ------
        ValueError
            If the node is in another graph, or is the entry of one.
        RuntimeError
            If the node was destroyed.
        """
        check_member(node)
        if not node._handle or node._definition._state.root is not self._root:
            raise ValueError(f"{node!r} is not in the definition that this Graph was instantiated from")
        return view_class(node)._create(self, node)

    __iter__ = None  # __getitem__ alone would make it iterable

    @native(raise_failure)
    def launch(self, stream: IsStreamType) -> None:
        """Run the graph.

        Parameters
        ----------
        stream : Stream
            It runs in the order of this stream; it may not be done when this returns.

        Raises
        ------
        RuntimeError
            If this graph is closed.
        CUDAError
            If the driver refuses. Memory from allocation nodes that nothing has freed since the last launch is one
            reason, unless the graph has ``auto_free_on_launch``.
        """
        if not isinstance(stream, Stream):
            stream = accept_stream(stream, "Graph.launch")
        status = _launch(self._c_handle, stream._c_handle)
        if status:
            raise self._failure(status, stream)

    def upload(self, stream: IsStreamType) -> None:
        """Bring the graph to the device now, so that the next launch need not.

        Parameters
        ----------
        stream : Stream
            It is done in the order of this stream.
        """
        queue = accept_stream(stream, "Graph.upload")
        status = lib.ccc_graph_upload(self._c_handle, queue._c_handle)
        if status:
            raise self._failure(status, queue)

    def update(self, source: Any) -> None:
        """Give all nodes the parameters that they have in another definition.

        Launches under way are not affected. What the old parameters used is released when they are done.

        Parameters
        ----------
        source : GraphDefinition or GraphBuilder
            A graph with the same nodes and edges, added in the same order. It is not inside a node.

        Raises
        ------
        ValueError
            If the source is a builder that is not finished.
        CUDAError
            If the graphs differ in more than what can be updated; the message tells why, and names the node. Then
            nothing has changed.
        """
        try:
            definition = source if isinstance(source, GraphHandle) else getattr(source, "graph_definition", None)
        except RuntimeError as error:
            raise ValueError(f"source is not finished: {error}") from None
        if not isinstance(definition, GraphHandle):
            raise TypeError(f"source must be a GraphDefinition, not {type(source).__name__}")
        definition._place()  # type: ignore[attr-defined]
        why = ffi.new("ccc_refusal *")
        status = lib.ccc_graph_update(self._c_handle, definition._c_handle, why)
        flush_releases()
        if status:
            raise explained(self._failure(status, definition), definition, why, UPDATE_ADVICE)
        self._source = weakref.ref(definition)

    def close(self) -> None:
        """Destroy the executable. Launches under way run to their end. Closing twice is allowed.

        With conditional nodes in the graph, the driver waits for all work on the device.
        """
        super().close()
        flush_releases()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return a picture for notebooks: of the definition that this was made of, as long as there is one."""
        definition = self._source()
        if definition is None or not definition.is_valid or self.is_closed:
            return {"text/plain": repr(self)}
        return picture.mime_bundle(definition, repr(self))


def instantiate(definition: Any, options: GraphCompleteOptions | None) -> Graph:
    """Make an executable of a definition that is there."""
    flags = 0 if options is None else instantiate_flags(options)
    queue = None
    if options is not None and options.upload_stream is not None:
        queue = accept_stream(options.upload_stream, "GraphCompleteOptions.upload_stream")
    flush_releases()
    why = ffi.new("ccc_refusal *")
    upload = ffi.NULL if queue is None else queue._c_handle
    graph = make(Graph, lib.ccc_graph_instantiate, definition._c_handle, flags, upload, why)
    if graph is None:
        error = definition._failure(lib.ccc_last_status(), queue)
        raise explained(error, definition, why, INSTANTIATE_ADVICE)
    graph._root = definition._state.root
    graph._source = weakref.ref(definition)
    return graph


def explained(error: Exception, definition: Any, why: Any, advice: dict[int, str]) -> Exception:
    """Add to an error what the driver said about its reason, and the node it is about."""
    if isinstance(error, CUDAError) and why.result in advice:
        text = advice[why.result]
        node = node_named(definition, why.node)
        if node is not None:
            text += f"; see {node!r}"
        error.args = (f"{error}; {text}",)
    return error


def node_named(definition: Any, handle: int) -> Member | None:
    """Return a node that the driver named, if it is in this graph rather than in one inside."""
    known = handle and any(handle == found for found, _ in definition._nodes())
    return node_of(definition, handle) if known else None
