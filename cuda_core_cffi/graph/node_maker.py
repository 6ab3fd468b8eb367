# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The methods of definitions and nodes that add nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._code.kernel import Kernel
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._launching.bindless import Bindless
from cuda_core_cffi._launching.config import LaunchConfig
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi._lifetime.references import Operand, flush_after_sync, flush_releases, kept, list_references
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.mem_op import MemoryOperation
from cuda_core_cffi._streams.event import Event
from cuda_core_cffi.graph import copies, parameters
from cuda_core_cffi.graph.allocated import allocated
from cuda_core_cffi.graph.parameters import NodeType, Parameters, attributes_before
from cuda_core_cffi.graph.state import (
    GraphHandle,
    GraphState,
    Record,
    changing,
    check_member,
    copied_references,
    copy_records,
    definition_of,
    inner_state,
    new_node,
    node_class,
    node_classes,
)
from cuda_core_cffi.typing import GraphConditionalType, GraphMemoryType

if TYPE_CHECKING:
    from cuda_core_cffi._arrays.strided_memory_view import StridedMemoryView
    from cuda_core_cffi.graph.memory_nodes import AllocNode, BatchMemOpNode, FreeNode, MemcpyNode, MemsetNode
    from cuda_core_cffi.graph.nodes import (
        ChildGraphNode,
        EmptyNode,
        EventRecordNode,
        EventWaitNode,
        HostCallbackNode,
        IfElseNode,
        IfNode,
        KernelNode,
        SwitchNode,
        WhileNode,
    )
    from cuda_core_cffi.texture import ArrayRegion, OpaqueArray

CONDITIONAL: int = lib.CU_GRAPH_NODE_TYPE_CONDITIONAL
EMPTY: int = lib.CU_GRAPH_NODE_TYPE_EMPTY
KERNEL: int = lib.CU_GRAPH_NODE_TYPE_KERNEL
EVENT_RECORD: int = lib.CU_GRAPH_NODE_TYPE_EVENT_RECORD
WAIT_EVENT: int = lib.CU_GRAPH_NODE_TYPE_WAIT_EVENT
UNCHECKED: int = lib.CCC_UNCHECKED
NO_PARAMETERS: Parameters[EmptyNode] = Parameters(EMPTY)  # of all empty nodes, whose record nothing changes

_add = lib.ccc_graph_add
_add_launch = lib.ccc_graph_add_launch
_pack = calls.pack
_releases_pending = lib.ccc_releases_pending


class NodeMaker:
    """Add nodes: a definition adds them as roots, a node adds those that come after it."""

    __slots__ = ()

    _place: Callable[[], tuple[Any, tuple[int, ...]]]  # the definition that a node goes to, and what it comes after

    def launch(self, config: LaunchConfig, kernel: Kernel, *args: Any) -> KernelNode:
        """Add a node that runs a kernel.

        Parameters
        ----------
        config : LaunchConfig
            Grid, block and the rest. Clustered and cooperative launches are possible.
        kernel : Kernel
            What to run, in the context that is current now.
        *args
            Its arguments, as for :func:`~cuda_core_cffi.launch`. Buffers are kept as long as the graph may use them;
            what a plain address points to is not.

        Returns
        -------
        KernelNode
            The node.

        Raises
        ------
        TypeError, ValueError, OverflowError
            If an argument does not fit the kernel.
        ValueError
            If the configuration has ``programmatic_stream_serialization``, ``programmatic_event`` or
            ``launch_completion_event``: these are for launches in streams, which a :class:`GraphBuilder` captures.
        CUDAError
            If the driver refuses, or no context is current.
        """
        definition, before = self._place()
        node = add_launch(definition, before, config, kernel, args)
        if node is None:
            return add_node(definition, before, parameters.kernel_call(config, kernel, args))
        return node

    def join(self, *nodes: Any) -> EmptyNode:
        """Add a node that does nothing, after several others.

        Parameters
        ----------
        *nodes : GraphNode
            The others.

        Returns
        -------
        EmptyNode
            The node.
        """
        definition, before = self._place()
        if nodes:
            handles = dict.fromkeys(before)
            for node in nodes:
                if check_member(node)._definition != definition:
                    raise ValueError(f"{node!r} belongs to another graph")
                if node._handle:
                    handles[node._handle] = None
            before = tuple(handles)
        return add_node(definition, before, NO_PARAMETERS)

    def allocate(
        self,
        size: int,
        *,
        device: Any = None,
        memory_type: GraphMemoryType | str | None = GraphMemoryType.DEVICE,
        peer_access: Iterable[Any] | None = None,
    ) -> AllocNode:
        """Add a node that allocates memory when the graph runs.

        Parameters
        ----------
        size : int
            Bytes.
        device : Device or int, optional
            Where. Default is the current device.
        memory_type : GraphMemoryType, optional
            ``"device"``, which is the default, ``"host"`` (pinned) or ``"managed"``. Not every driver has all of them.
        peer_access : list of Device or int, optional
            Other devices that may use the memory.

        Returns
        -------
        AllocNode
            The node. Its ``dptr`` is the address in every run.

        Notes
        -----
        A graph with such nodes has at most one executable at a time, cannot be cloned or embedded, and neither its
        nodes nor its edges can be removed.
        """
        definition, before = self._place()
        found = parameters.allocation(size, device, memory_type, peer_access)
        node = add_node(definition, before, found)
        native = found.native.alloc
        allocated.add(definition._state.root, int(native.dptr), int(native.bytesize))
        return node

    def deallocate(self, dptr: int) -> FreeNode:
        """Add a node that frees what an allocation node has allocated, in this graph or another.

        Parameters
        ----------
        dptr : int
            The address, from :attr:`AllocNode.dptr`.

        Returns
        -------
        FreeNode
            The node.
        """
        return add_node(*self._place(), parameters.deallocation(dptr))

    def memset(
        self, dst: Buffer | int, value: Any, width: int, height: int = 1, pitch: int = 0, *, dst_owner: Any = None
    ) -> MemsetNode:
        """Add a node that fills memory.

        Parameters
        ----------
        dst : Buffer or int
            The memory. A buffer is kept as long as the graph may use it.
        value : int or bytes-like
            A byte, 0 to 255, or 1, 2 or 4 bytes in an object with the buffer protocol: an element.
        width : int
            Elements in a row.
        height : int, optional
            Rows. Default 1.
        pitch : int, optional
            Bytes from one row to the next, where there are several.
        dst_owner : object, optional
            For an address: what is kept as long as the graph may use it.

        Returns
        -------
        MemsetNode
            The node.

        Raises
        ------
        ValueError
            If a buffer is too small, rows overlap, or ``dst_owner`` is given with a buffer.
        """
        return add_node(*self._place(), parameters.set_memory(dst, value, width, height, pitch, dst_owner))

    def memcpy(
        self,
        dst: Buffer | int | OpaqueArray | ArrayRegion | StridedMemoryView,
        src: Buffer | int | OpaqueArray | ArrayRegion | StridedMemoryView,
        size: int | None = None,
        *,
        dst_owner: Any = None,
        src_owner: Any = None,
    ) -> MemcpyNode:
        """Add a node that copies memory, of devices and of the host, and arrays.

        Parameters
        ----------
        dst, src : Buffer, int, OpaqueArray, ArrayRegion or StridedMemoryView
            Where to and where from. Buffers, arrays and views are kept as long as the graph may use them. Shapes and
            elements fit as for :meth:`OpaqueArray.copy_from` and :meth:`StridedMemoryView.copy_from`; a buffer or an
            address beside an array or a view has its elements one after the other. What makes the memory of a view
            ready is waited for by the stream in which the graph is launched.
        size : int, optional
            Bytes, between buffers and addresses. Arrays and views have shapes instead.
        dst_owner, src_owner : object, optional
            For addresses: what is kept as long as the graph may use them.

        Returns
        -------
        MemcpyNode
            The node.

        Raises
        ------
        ValueError
            If a buffer is too small, an owner is given with a buffer, an array or a view, shapes or elements differ,
            there are none, or strides are not those of rows and layers.
        TypeError
            If an operand is something else, or a size is given where there is a shape, or none where there is not.
        RuntimeError
            If an operand is closed.
        """
        return add_node(*self._place(), copies.copy(dst, src, size, dst_owner, src_owner))

    def batch_mem_op(self, operations: Sequence[MemoryOperation]) -> BatchMemOpNode:
        """Add a node that writes values to memory and waits for them, one after the other.

        Parameters
        ----------
        operations : sequence of WriteValue, WaitValue, MemoryBarrier or FlushRemoteWrites
            1 to 255, on the current device. Buffers, and owners of addresses, are kept as long as the graph may use
            them.

        Returns
        -------
        BatchMemOpNode
            The node.

        Raises
        ------
        TypeError, OverflowError, ValueError, UnavailableError
            As for :func:`~cuda_core_cffi.utils.batch_mem_op`.
        """
        return add_node(*self._place(), parameters.batch_mem_op(operations))

    def embed(self, child: Any) -> ChildGraphNode:
        """Add a node that runs a graph.

        Parameters
        ----------
        child : GraphDefinition
            The graph. It is copied: what happens to it later does not matter.

        Returns
        -------
        ChildGraphNode
            The node.

        Raises
        ------
        ValueError
            If the graph is this one, or one inside or around it.
        CUDAError
            If the graph allocates, frees, has conditional nodes, or is inside a node itself.
        """
        definition, before = self._place()
        found = child_graph(definition, child)
        with changing():
            node = add_node(definition, before, found)
            copy = definition_of(definition, inner_state(definition, node._handle))
            copy_records(child, copy, copied_references(copy))
        return node

    def record(self, event: Event) -> EventRecordNode:
        """Add a node that records an event.

        Parameters
        ----------
        event : Event
            The event. It is kept as long as the graph may use it.

        Returns
        -------
        EventRecordNode
            The node.
        """
        node: EventRecordNode = add_node(*self._place(), parameters.event(EVENT_RECORD, event))
        return node

    def wait(self, event: Event) -> EventWaitNode:
        """Add a node that waits for an event.

        Parameters
        ----------
        event : Event
            The event. It is kept as long as the graph may use it.

        Returns
        -------
        EventWaitNode
            The node.
        """
        node: EventWaitNode = add_node(*self._place(), parameters.event(WAIT_EVENT, event))
        return node

    def callback(self, fn: Any, *, user_data: Any = None) -> HostCallbackNode:
        """Add a node that calls a function on the host.

        Parameters
        ----------
        fn : callable or C function pointer
            A Python callable that takes no argument. What it raises is raised where the program next synchronises. Or
            a ``void (*)(void *)``: a CFFI function pointer, or a ctypes function declared as
            ``ctypes.CFUNCTYPE(None, ctypes.c_void_p)``. It is kept as long as the graph may call it.
        user_data : int, CFFI pointer or bytes-like, optional
            What a C function gets: an address, or bytes, which are copied and kept.

        Returns
        -------
        HostCallbackNode
            The node.

        Raises
        ------
        TypeError
            If a C function is declared in another way.
        ValueError
            If ``user_data`` is given with a Python callable.

        Notes
        -----
        The function runs in a thread of the driver's and must not call the driver, nor wait for a thread that does. A
        graph keeps what a Python callable refers to; if that includes the graph itself, neither is ever freed.
        """
        return add_node(*self._place(), parameters.host_call(fn, user_data))

    def if_then(self, condition: GraphCondition) -> IfNode:
        """Add a node that runs its body if a condition is not 0.

        Parameters
        ----------
        condition : GraphCondition
            From :meth:`GraphDefinition.create_condition` of this graph.

        Returns
        -------
        IfNode
            The node. Its ``then`` is the body, to be filled.
        """
        node: IfNode = self._add_conditional(condition, GraphConditionalType.IF, 1)
        return node

    def if_else(self, condition: GraphCondition) -> IfElseNode:
        """Add a node that runs one body if a condition is not 0, and another if it is.

        Parameters
        ----------
        condition : GraphCondition
            From :meth:`GraphDefinition.create_condition` of this graph.

        Returns
        -------
        IfElseNode
            The node. Its ``then`` and ``else_`` are the bodies, to be filled.
        """
        node: IfElseNode = self._add_conditional(condition, GraphConditionalType.IF, 2)
        return node

    def while_loop(self, condition: GraphCondition) -> WhileNode:
        """Add a node that runs its body again and again while a condition is not 0.

        Parameters
        ----------
        condition : GraphCondition
            From :meth:`GraphDefinition.create_condition` of this graph.

        Returns
        -------
        WhileNode
            The node. Its ``body`` is to be filled.
        """
        node: WhileNode = self._add_conditional(condition, GraphConditionalType.WHILE, 1)
        return node

    def switch(self, condition: GraphCondition, count: int) -> SwitchNode:
        """Add a node that runs the body whose number a condition is, if there is one.

        Parameters
        ----------
        condition : GraphCondition
            From :meth:`GraphDefinition.create_condition` of this graph.
        count : int
            How many bodies there are.

        Returns
        -------
        SwitchNode
            The node. Its ``branches`` are the bodies, to be filled.
        """
        node: SwitchNode = self._add_conditional(condition, GraphConditionalType.SWITCH, count)
        return node

    def _add_conditional(self, condition: GraphCondition, kind: GraphConditionalType, count: int) -> Any:
        definition, before = self._place()
        found = parameters.conditional(definition._state.root, condition, kind, count)
        with changing():  # until its inner graphs are known
            return add_node(definition, before, found)


def add_launch(
    definition: Any, before: tuple[int, ...], config: Any, kernel: Any, args: tuple[Any, ...]
) -> KernelNode | None:
    """Add a node that runs a kernel, as a launch would, in one call of C. Large graphs are made of such nodes.

    What is less usual, first of all the first node of a kernel, is left to :func:`parameters.kernel_call`: then this
    returns None.
    """
    try:
        native, packer = config._native_cache, kernel._packer  # kept to the end of this call
    except AttributeError:  # no kernel, or no configuration
        return None
    data = None if packer is None or native is None or len(before) > 1 else _pack(packer.fast, args)
    if data is None:
        return None
    c_handles = []
    for arg in args:
        if isinstance(arg, (Bindless, Buffer)):
            if arg._needs_python:
                return None
            c_handles.append(arg._c_handle)
    previous = before[0] if before else 0
    added = _add_launch(definition._c_handle, previous, packer.target, native, data, c_handles, len(c_handles))
    if added.status == UNCHECKED:
        return None
    c_handle = kernel._c_handle
    record = None if c_handles else definition._state.records.get(previous)
    if record is None or record.plain is not c_handle or record.context != added.context:
        operands = {"kernel": (Operand(0, (c_handle,)),)}  # the driver has the addresses
        if c_handles:
            operands["args"] = (Operand(0, tuple(c_handles)),)
        record = Record(operands)
        record.library, record.symbol, record.given = kernel._library, kernel._symbol, {}
        record.plain = None if c_handles else c_handle
    node: KernelNode = enter(definition, added, node_classes[KERNEL], record, kernel, *args)
    return node


def add_node(definition: Any, before: tuple[int, ...], found: Parameters[NodeType]) -> NodeType:
    """Add a node of any type and return the object for it."""
    native, kind, record = found.native, found.kind, found.record
    c_handles, token = list_references(found.operands.values(), found.token)
    added = _add(
        definition._c_handle,
        before,
        len(before),
        native,
        found.attributes,
        found.child,
        c_handles,
        len(c_handles),
        token,
    )
    handle = added.node
    if not handle and token:
        kept.pop(token, None)
    if handle and found.attributes:
        record.before = attributes_before(found, {})
    if handle and kind == CONDITIONAL:
        state, part = definition._state, native.conditional
        inner = [int(ffi.cast("uintptr_t", part.phGraph_out[index])) for index in range(part.size)]
        state.inner[handle] = [GraphState(graph, state.root, handle) for graph in inner]
    node: NodeType = enter(definition, added, node_class(kind, record), record)
    return node


def enter(definition: GraphHandle, added: Any, cls: Any, record: Record, *others: object) -> Any:
    """Remember what a node was given that C has added, and return the object for it; raise if it has not."""
    if _releases_pending():
        flush_releases()
    handle = added.node
    if not handle:
        raise definition._failure(added.status, *others)
    state, keep = definition._state, added.refs
    record.context = added.context
    state.records[handle] = record
    if keep:
        if not state.keeps:
            flush_after_sync()
        state.keeps[handle] = keep
    return new_node(definition, state, handle, cls)


def child_graph(definition: Any, child: Any) -> Parameters[ChildGraphNode]:
    """Return the parameters of a node for a graph inside ``definition``."""
    if not isinstance(child, GraphHandle):
        raise TypeError(f"child must be a GraphDefinition, not {type(child).__name__}")
    if not child.is_valid:
        raise RuntimeError("this GraphDefinition is closed, or its node was destroyed")
    if child._state.root is definition._state.root:
        raise ValueError("a graph cannot be embedded in itself, nor in a graph around it or inside it; clone it")
    found: Parameters[ChildGraphNode] = Parameters(lib.CU_GRAPH_NODE_TYPE_GRAPH)
    found.native.graph.graph = ffi.cast("CUgraph", lib.ccc_handle_value(child._c_handle))
    found.child = child._c_handle
    return found
