# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Views of nodes in executable graphs: what ``graph[node]`` gives.

A node of the definition names the node of the executable. The definition itself does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from cuda_core_cffi._code.kernel import Kernel
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._launching.config import LaunchConfig
from cuda_core_cffi._lifetime.references import flush_releases
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.mem_op import MemoryOperation
from cuda_core_cffi._streams.event import Event
from cuda_core_cffi.graph import copies, parameters
from cuda_core_cffi.graph.node_maker import child_graph
from cuda_core_cffi.graph.parameters import Parameters
from cuda_core_cffi.graph.state import check_member

if TYPE_CHECKING:
    from cuda_core_cffi._arrays.strided_memory_view import StridedMemoryView
    from cuda_core_cffi.texture import ArrayRegion, OpaqueArray


class ExecutableGraphNode(Uncopyable):
    """A node in an executable graph. Views come from ``graph[node]``.

    What a view changes holds for launches from then on.
    """

    __slots__ = ("_graph", "_node")

    _NOT_COPIED_BECAUSE = "it belongs to a graph of this process"
    _graph: Any
    _node: Any

    def __init__(self) -> None:
        raise RuntimeError(f"{type(self).__name__} cannot be constructed directly; use graph[node]")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._node!r} in {self._graph!r}>"

    @classmethod
    def _create(cls, graph: Any, node: Any) -> Self:
        self = cls.__new__(cls)
        self._graph, self._node = graph, node
        return self

    def _set(self, found: Parameters[Any]) -> None:
        """Give the node other parameters, and the executable what they use."""
        node = check_member(self._node)
        record = node._definition._state.records.get(node._handle)
        if record is not None and record.context and not lib.ccc_graph_get_context(found.native):
            lib.ccc_graph_set_context(found.native, record.context)
        keep = ffi.NULL if found.child else found.keep()  # C finds what a graph keeps
        status = lib.ccc_exec_set(
            self._graph._c_handle, node._definition._c_handle, node._handle, found.native, found.child, keep
        )
        flush_releases()
        if status:
            raise self._graph._failure(status)


class SwitchableNode(ExecutableGraphNode):
    """A node that can be disabled."""

    __slots__ = ()

    @property
    def is_enabled(self) -> bool:
        """Whether the node does something. If not, it only orders what comes before and after it."""
        return self._enabled(None)

    def enable(self) -> None:
        """Have the node do what its parameters say."""
        self._enabled(True)

    def disable(self) -> None:
        """Have the node do nothing. Its parameters stay."""
        self._enabled(False)

    def _enabled(self, wanted: bool | None) -> bool:
        """Return whether the node is enabled, which it is made to be or not to be unless that is None."""
        enabled, node = ffi.new("unsigned int *", wanted or 0), check_member(self._node)
        graph, definition = self._graph, node._definition
        status = lib.ccc_exec_enabled(graph._c_handle, definition._c_handle, node._handle, enabled, wanted is not None)
        if status:
            raise graph._failure(status)
        return bool(enabled[0])


class ExecutableKernelNode(SwitchableNode):
    """A node that runs a kernel, in an executable graph."""

    __slots__ = ()

    def update(self, *, config: LaunchConfig, kernel: Kernel, args: Any) -> None:
        """Change what the node runs.

        Parameters
        ----------
        config : LaunchConfig
            Grid, block and shared memory. The rest, such as clusters and whether the launch is cooperative, must be
            what it is in the definition.
        kernel : Kernel
            What to run.
        args : tuple
            All its arguments. Buffers are kept as long as they may be used.

        Raises
        ------
        ValueError
            If the configuration differs in more.
        CUDAError
            If the driver refuses the change.
        """
        check_member(self._node)
        present = self._node.config
        found = parameters.kernel_call(config, kernel, args)
        if config._given != present._given:
            raise ValueError(
                "an executable's kernel node keeps all but grid, block and shared memory: the definition's node has "
                f"{present!r}; change that, and use Graph.update"
            )
        self._set(found)


class ExecutableMemsetNode(SwitchableNode):
    """A node that fills memory, in an executable graph."""

    __slots__ = ()

    def update(
        self,
        *,
        dst: Buffer | int,
        value: Any,
        width: int,
        height: int = 1,
        pitch: int = 0,
        dst_owner: Any = None,
    ) -> None:
        """Change what the node fills.

        Parameters
        ----------
        dst, value, width, height, pitch, dst_owner
            As for :meth:`GraphDefinition.memset`. The driver may refuse other shapes than that of the definition.
        """
        self._set(parameters.set_memory(dst, value, width, height, pitch, dst_owner))


class ExecutableMemcpyNode(SwitchableNode):
    """A node that copies memory, in an executable graph."""

    __slots__ = ()

    def update(
        self,
        *,
        dst: Buffer | int | OpaqueArray | ArrayRegion | StridedMemoryView,
        src: Buffer | int | OpaqueArray | ArrayRegion | StridedMemoryView,
        size: int | None = None,
        dst_owner: Any = None,
        src_owner: Any = None,
    ) -> None:
        """Change what the node copies.

        Parameters
        ----------
        dst, src, size, dst_owner, src_owner
            As for :meth:`GraphDefinition.memcpy`. Memory must be of the same kinds, and in the same contexts, as what
            the definition copies. Drivers change only copies of one row so; for several, update the node of a
            definition, and :meth:`Graph.update` with that.

        Raises
        ------
        CUDAError
            If the driver refuses the change.
        """
        self._set(copies.copy(dst, src, size, dst_owner, src_owner))


class ExecutableBatchMemOpNode(ExecutableGraphNode):
    """A node that writes values to memory and waits for them, in an executable graph."""

    __slots__ = ()

    def update(self, operations: Sequence[MemoryOperation]) -> None:
        """Change addresses, values and conditions.

        Parameters
        ----------
        operations : sequence of WriteValue, WaitValue, MemoryBarrier or FlushRemoteWrites
            As many as the definition's node has, of the same kinds and bits, in the same order. Buffers are kept as
            long as they may be used.
        """
        check_member(self._node)
        self._set(parameters.batch_mem_op(operations))


class ExecutableChildGraphNode(ExecutableGraphNode):
    """A node that runs a graph, in an executable graph."""

    __slots__ = ()

    def update(self, child: Any) -> None:
        """Give all nodes of the graph inside the parameters that they have in another graph.

        Parameters
        ----------
        child : GraphDefinition
            A graph with the same nodes and edges, added in the same order.
        """
        self._set(child_graph(check_member(self._node)._definition, child))


class ExecutableEventNode(ExecutableGraphNode):
    """A node that records an event or waits for it, in an executable graph."""

    __slots__ = ()

    def update(self, event: Event) -> None:
        """Put another event in place.

        Parameters
        ----------
        event : Event
            The event. It is kept as long as it may be used.
        """
        self._set(parameters.event(self._node._TYPE, event))


class ExecutableEventRecordNode(ExecutableEventNode):
    """A node that records an event, in an executable graph."""

    __slots__ = ()


class ExecutableEventWaitNode(ExecutableEventNode):
    """A node that waits for an event, in an executable graph."""

    __slots__ = ()


class ExecutableHostCallbackNode(ExecutableGraphNode):
    """A node that calls a function on the host, in an executable graph."""

    __slots__ = ()

    def update(self, fn: Any, *, user_data: Any = None) -> None:
        """Put another function in place.

        Parameters
        ----------
        fn, user_data
            As for :meth:`GraphDefinition.callback`. The function is kept as long as it may be called.
        """
        check_member(self._node)
        self._set(parameters.host_call(fn, user_data))


VIEWS: dict[int, type[ExecutableGraphNode]] = {
    lib.CU_GRAPH_NODE_TYPE_KERNEL: ExecutableKernelNode,
    lib.CU_GRAPH_NODE_TYPE_MEMSET: ExecutableMemsetNode,
    lib.CU_GRAPH_NODE_TYPE_MEMCPY: ExecutableMemcpyNode,
    lib.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: ExecutableBatchMemOpNode,
    lib.CU_GRAPH_NODE_TYPE_GRAPH: ExecutableChildGraphNode,
    lib.CU_GRAPH_NODE_TYPE_EVENT_RECORD: ExecutableEventRecordNode,
    lib.CU_GRAPH_NODE_TYPE_WAIT_EVENT: ExecutableEventWaitNode,
    lib.CU_GRAPH_NODE_TYPE_HOST: ExecutableHostCallbackNode,
}


def view_class(node: Any) -> type[ExecutableGraphNode]:
    """Return the class of views of a node; the base class where there is nothing to change."""
    return VIEWS.get(node._kind(), ExecutableGraphNode)
