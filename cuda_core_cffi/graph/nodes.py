# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of nodes: what each does, and how it is changed.

What a node does is read from the driver. Only what the driver does not tell comes from the node's record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Never, NoReturn

from cuda_core_cffi._code.kernel import Kernel
from cuda_core_cffi._core.errors import UnavailableError
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._launching.config import LaunchConfig
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi._lifetime.references import NOTHING, flush_releases
from cuda_core_cffi._streams.callbacks import python_function
from cuda_core_cffi._streams.event import Event
from cuda_core_cffi.graph import parameters
from cuda_core_cffi.graph.node import GraphNode
from cuda_core_cffi.graph.node_maker import child_graph
from cuda_core_cffi.graph.parameters import Parameters, attributes_before
from cuda_core_cffi.graph.state import (
    GraphState,
    Record,
    changing,
    check_member,
    conditional_classes,
    copied_references,
    copy_records,
    definition_of,
    inner_state,
    node_classes,
    read,
)
from cuda_core_cffi.typing import GraphConditionalType

if TYPE_CHECKING:
    from cuda_core_cffi.graph.definition import GraphDefinition


class Field:
    """A number among the parameters of a node, as the driver names it."""

    def __init__(self, name: str, doc: str) -> None:
        self._name = name
        self.__doc__ = doc

    def __get__(self, node: Any, owner: type | None = None) -> int:
        if node is None:
            return self  # type: ignore[return-value]  # on the class, the descriptor itself
        return int(getattr(node._read(), self._name))

    def __set__(self, node: Any, value: Never) -> NoReturn:
        raise AttributeError(f"this attribute of a {type(node).__name__} cannot be assigned")


class KnownNode(GraphNode):
    """A node of a type that the package knows."""

    __slots__ = ()

    _TYPE: ClassVar[int]
    _STRUCTURE: ClassVar[str]

    def _read(self) -> Any:
        return read(check_member(self)._definition, self._handle, self._TYPE, self._STRUCTURE)

    def _kind(self) -> int:
        return int(self._TYPE)

    def _record(self) -> Record:
        """Return what is known of the node, if only that nothing is."""
        record: Record = check_member(self)._definition._state.records.get(self._handle) or Record()
        return record

    def _set(self, found: Parameters[Any]) -> None:
        """Give the node other parameters, and the graph what they use in place of what the old ones did."""
        definition = self._definition
        state: GraphState = definition._state
        native = found.native
        with changing():
            old = self._record()
            if old.context and not lib.ccc_graph_get_context(native):
                lib.ccc_graph_set_context(native, old.context)
            keep, before = found.keep(), state.keeps.pop(self._handle, NOTHING)  # not known while C may release it
            inner = [graph.handle for graph in state.inner.get(self._handle, ())]
            status = lib.ccc_graph_set(
                definition._c_handle,
                self._handle,
                native,
                found.attributes,
                found.child,
                inner,
                len(inner),
                keep,
                before,
            )
            if not status:
                found.record.context = lib.ccc_graph_get_context(native)
                found.record.before = attributes_before(found, old.before)
                state.note(self._handle, found.record, keep)
            elif before:
                state.keeps[self._handle] = before
        flush_releases()
        if status:
            raise definition._failure(status)


class EmptyNode(KnownNode):
    """A node that does nothing but come after some nodes and before others."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_EMPTY


class KernelNode(KnownNode):
    """A node that runs a kernel."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_KERNEL
    _STRUCTURE = "CUDA_KERNEL_NODE_PARAMS *"

    def _describe(self) -> str:
        return f"kernel={self.kernel._driver_handle:#x}"

    def update(self, *, config: LaunchConfig | None = None, kernel: Kernel | None = None, args: Any = None) -> None:
        """Change what the node runs. Executables that exist are not affected.

        Parameters
        ----------
        config : LaunchConfig, optional
            Grid, block and the rest.
        kernel : Kernel, optional
            Another kernel; its arguments must be given as well.
        args : tuple, optional
            All arguments.

        Raises
        ------
        ValueError
            If a kernel is given without arguments.
        UnavailableError
            If arguments are to stay, and the driver, older than CUDA 12.4, does not tell how large they are.
        """
        record = self._record()
        if kernel is not None and args is None:
            raise ValueError("another kernel needs its arguments: args=() if it takes none")
        runs = self.kernel if kernel is None else kernel
        shape = self.config if config is None else parameters.check_config(config)
        if args is None:
            target, _offsets, data = packed_arguments(self._read(), runs)
            found = parameters.packed_call(shape, runs, target, data)
            found.operands["args"] = record.operands.get("args", [])
        else:
            found = parameters.kernel_call(shape, runs, args)
        if config is None:
            found.attributes = NOTHING
            found.record.given = record.given
            found.operands["config"] = record.operands.get("config", [])
        else:
            before = record.before if record.given is not None else self._plain_attributes()
            parameters.set_config(found, config, before)
        if kernel is None:
            found.operands["kernel"] = record.operands.get("kernel", [])
            found.record.library, found.record.symbol = record.library, record.symbol
        self._set(found)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks in x, y and z."""
        native = self._read()
        return native.gridDimX, native.gridDimY, native.gridDimZ

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads in a block, in x, y and z."""
        native = self._read()
        return native.blockDimX, native.blockDimY, native.blockDimZ

    shmem_size = Field("sharedMemBytes", "Dynamic shared memory for each block, in bytes.")

    @property
    def kernel(self) -> Kernel:
        """The kernel. One that another library put into the graph is not kept by this object."""
        native = self._read()
        record = self._record()
        for item in record.operands.get("kernel", ()):
            return Kernel._made_by(lib.ccc_view, item.c_handles[0])._of_library(record.library, record.symbol)
        return Kernel.from_handle(native.kern if native.kern != ffi.NULL else ffi.cast("CUkernel", native.func))

    @property
    def config(self) -> LaunchConfig:
        """The configuration. Of nodes that were not added here, clusters and whether the launch is cooperative."""
        native = self._read()
        given = self._record().given
        if given is None:
            given = self._ask_attributes()
        grid = (native.gridDimX, native.gridDimY, native.gridDimZ)
        cluster = given.get("cluster", (1, 1, 1))
        x, y, z = (count // size for count, size in zip(grid, cluster))
        block = (native.blockDimX, native.blockDimY, native.blockDimZ)
        return LaunchConfig(grid=(x, y, z), block=block, shmem_size=native.sharedMemBytes, **given)

    def _ask_attributes(self) -> dict[str, Any]:
        """Return what the driver tells of the attributes of a node that another library added."""
        given: dict[str, Any] = {}
        size = self._attribute(lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim
        if size.x * size.y * size.z > 1:
            given["cluster"] = (size.x, size.y, size.z)
        if self._attribute(lib.CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative:
            given["is_cooperative"] = True
        return given

    def _plain_attributes(self) -> dict[int, bytes]:
        """Return what has to be set so that such a node has no attribute that the driver is asked for."""
        value = ffi.new("CUlaunchAttributeValue *")
        plain = {int(lib.CU_LAUNCH_ATTRIBUTE_COOPERATIVE): bytes(ffi.buffer(value))}
        if "cluster" in self._ask_attributes():
            value.clusterDim.x = value.clusterDim.y = value.clusterDim.z = 1
            plain[int(lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)] = bytes(ffi.buffer(value))
        return plain

    def _attribute(self, number: int) -> Any:
        value = ffi.new("CUlaunchAttributeValue *")
        status = lib.ccc_graph_get_attribute(check_member(self)._definition._c_handle, self._handle, number, value)
        if status:
            raise self._definition._failure(status)
        return value


class ChildGraphNode(KnownNode):
    """A node that runs a graph."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_GRAPH
    _STRUCTURE = "CUgraph *"

    def _describe(self) -> str:
        return f"child={int(ffi.cast('uintptr_t', self._read()[0])):#x}"

    def update(self, child: Any) -> None:
        """Put a copy of another graph in place of the one inside. Executables that exist are not affected.

        Parameters
        ----------
        child : GraphDefinition
            The other graph. The objects for the graph that was inside, and for its nodes, are no longer valid.
        """
        definition = check_member(self)._definition
        found = child_graph(definition, child)
        with changing():
            self._set(found)
            for inner in definition._state.inner.pop(self._handle, ()):
                inner.invalidate()
            copy = self.child_graph
            copy_records(child, copy, copied_references(copy))

    @property
    def child_graph(self) -> GraphDefinition:
        """The :class:`GraphDefinition` inside: what is changed in it, the node runs."""
        definition = check_member(self)._definition
        found: GraphDefinition = definition_of(definition, inner_state(definition, self._handle))
        return found


class EventNode(KnownNode):
    """A node that records an event or waits for it."""

    __slots__ = ()

    _STRUCTURE = "CUevent *"

    def _describe(self) -> str:
        return f"event={int(ffi.cast('uintptr_t', self._read()[0])):#x}"

    def update(self, event: Event) -> None:
        """Put another event in place. Executables that exist are not affected.

        Parameters
        ----------
        event : Event
            The event.
        """
        check_member(self)
        self._set(parameters.event(self._TYPE, event))

    @property
    def event(self) -> Event:
        """The event. One that another library put into the graph is not kept by this object."""
        handle = int(ffi.cast("uintptr_t", self._read()[0]))
        for item in self._record().operands.get("event", ()):
            if item.address == handle:
                return Event._made_by(lib.ccc_graph_event, item.c_handles[0])
        return Event._made_by(lib.ccc_graph_foreign_event, handle)


class EventRecordNode(EventNode):
    """A node that records an event."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_EVENT_RECORD


class EventWaitNode(EventNode):
    """A node that waits for an event."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_WAIT_EVENT


class HostCallbackNode(KnownNode):
    """A node that calls a function on the host.

    Its ``callback`` is that function. Another one after it is added with ``node.join().callback(fn)``.
    """

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_HOST
    _STRUCTURE = "CUDA_HOST_NODE_PARAMS *"

    def _describe(self) -> str:
        native = self._read()
        function = self._python_function(native)
        return (
            f"cfunc={int(ffi.cast('uintptr_t', native.fn)):#x}"
            if function is None
            else f"callback={getattr(function, '__name__', None) or repr(function)}"
        )

    def update(self, fn: Any, *, user_data: Any = None) -> None:
        """Put another function in place. Executables that exist are not affected.

        Parameters
        ----------
        fn, user_data
            As for :meth:`GraphDefinition.callback`.
        """
        check_member(self)
        self._set(parameters.host_call(fn, user_data))

    @property
    def callback(self) -> Callable[[], object] | None:  # type: ignore[override]
        """The Python function; None for a C function."""
        return self._python_function(self._read())

    def _python_function(self, native: Any) -> Callable[[], object] | None:
        return python_function(int(ffi.cast("uintptr_t", native.fn)), int(ffi.cast("uintptr_t", native.userData)))


class ConditionalNode(KnownNode):
    """A node that runs bodies as a condition says.

    Those that were added here are of a subclass. Of the others, such as those that another library captured, drivers
    before CUDA 13.2 tell nothing.
    """

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_CONDITIONAL

    def _describe(self) -> str:
        condition = self.condition
        return "" if condition is None else f"condition={condition._handle:#x}"

    @property
    def condition(self) -> GraphCondition | None:
        """The condition; None if it is not known."""
        return self._record().condition

    @property
    def cond_type(self) -> GraphConditionalType | None:
        """``"if"``, ``"while"`` or ``"switch"``; None if it is not known."""
        return self._record().kind

    @property
    def branches(self) -> tuple[GraphDefinition, ...]:
        """The bodies, each a :class:`GraphDefinition`; none if they are not known."""
        definition = check_member(self)._definition
        return tuple(definition_of(definition, inner) for inner in definition._state.inner.get(self._handle, ()))

    def _body(self, number: int) -> GraphDefinition:
        """Return a body, or raise where they are not known, or the graph is gone."""
        bodies = self.branches
        if number >= len(bodies):
            check_member(self)  # another thread may have closed the graph
            raise RuntimeError(f"the bodies of this {type(self).__name__} are not known")
        return bodies[number]


class IfNode(ConditionalNode):
    """A node that runs its body if a condition is not 0."""

    __slots__ = ()

    @property
    def then(self) -> GraphDefinition:
        """The body, a :class:`GraphDefinition`."""
        return self._body(0)


class IfElseNode(ConditionalNode):
    """A node that runs one body if a condition is not 0, and another if it is."""

    __slots__ = ()

    @property
    def then(self) -> GraphDefinition:
        """The body for a condition that is not 0, a :class:`GraphDefinition`."""
        return self._body(0)

    @property
    def else_(self) -> GraphDefinition:
        """The body for 0, a :class:`GraphDefinition`."""
        return self._body(1)


class WhileNode(ConditionalNode):
    """A node that runs its body again and again while a condition is not 0."""

    __slots__ = ()

    @property
    def body(self) -> GraphDefinition:
        """The body, a :class:`GraphDefinition`."""
        return self._body(0)


class SwitchNode(ConditionalNode):
    """A node that runs the body whose number a condition is."""

    __slots__ = ()

    def _describe(self) -> str:
        return f"{super()._describe()} branches={len(self.branches)}"


def packed_arguments(native: Any, kernel: Kernel) -> tuple[Any, Any, bytes]:
    """Return a ``ccc_target *`` for a kernel, the offsets in it, and the arguments that a node has, packed."""
    layout = kernel._layout
    if layout is None:
        raise UnavailableError(
            "the driver does not tell the sizes of a kernel's arguments before CUDA 12.4: give args to update()"
        )
    data = bytearray(max((offset + size for offset, size in layout), default=0))
    for index, (offset, size) in enumerate(layout):
        data[offset : offset + size] = ffi.buffer(ffi.cast("char *", native.kernelParams[index]), size)[:]
    offsets = ffi.new("uint32_t[]", [offset for offset, _ in layout] or 1)
    target = ffi.new("ccc_target *", (kernel._c_handle, len(data), offsets, len(layout)))
    return target, offsets, bytes(data)


for cls in (
    EmptyNode,
    KernelNode,
    ChildGraphNode,
    EventRecordNode,
    EventWaitNode,
    HostCallbackNode,
    ConditionalNode,
):
    node_classes[int(cls._TYPE)] = cls
node_classes[None] = GraphNode
conditional_classes.update(
    {
        (GraphConditionalType.IF, False): IfNode,
        (GraphConditionalType.IF, True): IfElseNode,
        (GraphConditionalType.WHILE, False): WhileNode,
        (GraphConditionalType.SWITCH, False): SwitchNode,
    }
)
