# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs that are captured: the work given to a stream becomes nodes, instead of being run."""

from __future__ import annotations

import enum
import os
import weakref
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.errors import CUDAError, failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import member
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi._lifetime.references import flush_releases
from cuda_core_cffi._streams.stream import Stream, StreamProxy, context_of
from cuda_core_cffi.graph.definition import GraphDefinition
from cuda_core_cffi.graph.executable import Graph
from cuda_core_cffi.graph.node_maker import NodeMaker
from cuda_core_cffi.graph.options import GraphCompleteOptions, GraphDebugPrintOptions
from cuda_core_cffi.graph.state import changing, listed

if TYPE_CHECKING:
    from cuda_core_cffi.typing._option_dicts import GraphCompleteOptionsDict, GraphDebugPrintOptionsDict


class Mode(enum.StrEnum):
    """Calls that could disturb a capture and that threads may make during it."""

    GLOBAL = "global"
    THREAD_LOCAL = "thread_local"
    RELAXED = "relaxed"


MODES: dict[str, int] = {
    Mode.GLOBAL: lib.CU_STREAM_CAPTURE_MODE_GLOBAL,
    Mode.THREAD_LOCAL: lib.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    Mode.RELAXED: lib.CU_STREAM_CAPTURE_MODE_RELAXED,
}


class Kind(enum.Enum):
    """Kinds of graph that a builder captures."""

    PRIMARY = "a graph of its own"
    FORK = "a branch of another builder's graph"
    BODY = "a body of a conditional node"


class Phase(enum.Enum):
    """How far a builder is."""

    NEW = "begin_building was not called"
    BUILDING = "it is being built: call end_building first"
    ENDED = "it is built"
    FAILED = "its capture failed, and there is no graph; begin again with a new builder"


# Bound once: CPython 3.11 takes as long to find a member of an enumeration as for a call.
PRIMARY, FORK, BODY = Kind
NEW, BUILDING, ENDED, FAILED = Phase


class Capture(Handle):
    """A capture of the driver, which is ended when this object is collected. It owns the graph until it is returned."""

    __slots__ = ()

    _CTYPE = "CUstream"
    _NAME = "GraphBuilder"


class CaptureEnd(NodeMaker):
    """Add nodes after those that a stream has captured."""

    __slots__ = ("_definition", "_stream")

    def __init__(self, definition: GraphDefinition, stream: Stream) -> None:
        self._definition, self._stream = definition, stream

    def _place(self) -> tuple[Any, tuple[int, ...]]:
        ask = partial(lib.ccc_capture_ends, self._stream._c_handle, self._definition._c_handle)
        (nodes,) = listed(self._stream, ask, "uint64_t")
        return self._definition, tuple(nodes)


NEW_GRAPH = ffi.NULL
NOT_BUILDING = {
    NEW: "call begin_building first",
    ENDED: "it is built; call begin_building of another one",
    FAILED: FAILED.value,
}
"""Why a builder captures nothing, with the remedy, by its phase."""

_begin = lib.ccc_capture_begin
_end = lib.ccc_capture_end
_new_capture = lib.ccc_capture_new
_releases_pending = lib.ccc_releases_pending


class GraphBuilder(StreamProxy):
    """A graph in the making: between :meth:`begin_building` and :meth:`end_building`, work is captured, not run.

    Builders come from :meth:`Device.create_graph_builder` and :meth:`Stream.create_graph_builder`, and are taken
    wherever a stream is: launches, copies and fills in the order of a builder become nodes of its graph. Outside those
    two calls a builder is the same as its stream, with one exception: launches of kernels, prepared launches and
    batches raise RuntimeError, because they would run at once. To run a kernel then, launch it in :attr:`stream`.

    The graph keeps the kernels, buffers, arrays, textures and host functions that it uses, as a
    :class:`GraphDefinition` does, but not memory that is given as an address, nor what other libraries capture.

    Examples
    --------
    >>> builder = device.create_graph_builder().begin_building()
    >>> memory.fill(0, stream=builder)  # becomes a node
    >>> with builder.end_building().complete() as graph:
    ...     graph.launch(stream)
    ...     stream.sync()
    >>> builder.close()
    """

    __slots__ = (
        "__weakref__", "_capture", "_definition", "_inner", "_is_shared", "_kind", "_origin", "_owns_stream", "_phase",
    )  # fmt: skip

    _NOT_COPIED_BECAUSE: ClassVar[str] = "it captures a stream of this process"
    _capture: Capture | None  # while it is under way, and until somebody has the graph; of a fork None
    _definition: GraphDefinition | None  # unless it is a body's, made for the first who asks; of a fork None
    _inner: list[weakref.ref[GraphBuilder]]  # builders for bodies of its conditional nodes, and from split
    _is_shared: bool  # somebody else may have the definition
    _kind: Kind
    _origin: GraphBuilder | None  # of a fork: whose capture it is part of
    _owns_stream: bool
    _phase: Phase

    def __init__(self) -> None:
        makers = "Device.create_graph_builder or Stream.create_graph_builder"
        raise NotImplementedError(f"a GraphBuilder cannot be constructed directly: use {makers}")

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the version of the protocol, 0, and the address of the stream."""
        return self.stream.__cuda_stream__()

    def __repr__(self) -> str:
        if self._stream is None:
            return "<GraphBuilder closed>"
        return f"<GraphBuilder stream={self._stream._driver_handle:#x}{' building' * self.is_building}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        try:
            self.close()
        except CUDAError as error:
            if exc_val is None:
                raise
            exc_val.add_note(str(error))  # the exception of the block is probably the cause

    def begin_building(self, mode: str = "relaxed") -> GraphBuilder:
        """Begin to capture.

        Parameters
        ----------
        mode : str, optional
            What is prohibited meanwhile of what the driver deems unsafe, such as allocating outside stream order:
            ``"global"`` prohibits it to every thread, ``"thread_local"`` to this one, ``"relaxed"``, the default, to
            none. What is prohibited fails, and so does the capture.

        Returns
        -------
        GraphBuilder
            This builder.

        Raises
        ------
        ValueError
            If there is no such mode.
        RuntimeError
            If this was called before: what is built cannot be resumed, or begun again.
        CUDAError
            If the stream is being captured already.
        """
        try:
            wanted = MODES[mode]
        except (KeyError, TypeError):
            wanted = MODES[member(Mode, mode, "mode")]
        stream = self._stream
        if stream is None or self._phase is not NEW or self._kind is FORK:
            raise self._beginning_failure()
        if _releases_pending():
            flush_releases()
        body = self._definition
        capture = Capture._made_by(_new_capture)  # before it begins, so that an interrupted call loses no capture
        try:
            inside = NEW_GRAPH if body is None else body._place()[0]._c_handle
            status = _begin(capture._c_handle, stream._c_handle, wanted, inside)
            if status:
                raise stream._failure(status, body)
            self._capture, self._phase, self._captured = capture, BUILDING, stream
        except BaseException:
            capture.close()
            if self._capture is capture:
                self._give_up()
            raise
        if self._stream is None:  # another thread has closed this meanwhile
            self._give_up()
            raise RuntimeError("this GraphBuilder is closed")
        return self

    def end_building(self) -> GraphBuilder:
        """End the capture.

        Returns
        -------
        GraphBuilder
            This builder. Its graph can be completed.

        Raises
        ------
        RuntimeError
            If it is not building, or came from :meth:`split`.
        CUDAError
            If the driver has given the capture up: because of something that cannot be captured, because builders
            from :meth:`split` were not joined, or because another thread has begun it, in another mode than
            ``"relaxed"``. Then there is no graph. The stream can be used again.

        Notes
        -----
        Builders for bodies of conditional nodes have to end before. Those that are still building fail: drivers do not
        survive a capture into a graph that is gone.
        """
        capture = self._capture
        if self._phase is not BUILDING or self._stream is None or capture is None:
            self._check_building("end_building")
            raise RuntimeError("this GraphBuilder came from split: join it, and end building with the one it came from")
        if self._inner:
            self._give_up_bodies()
        try:
            self._refuse_launches()
            status = _end(capture._c_handle)
            if not status:
                self._phase = ENDED
        except BaseException:  # a signal handler's, which does not say whether the capture has ended
            self._give_up()
            raise
        if status == lib.CCC_CLOSED:
            raise RuntimeError("end_building: another thread has just ended this capture")
        if status:
            error = failure(status)
            self._give_up()
            raise error
        if self._definition is not None:
            self._capture = None
            capture.close()
        if _releases_pending():
            flush_releases()
        return self

    def complete(self, options: GraphCompleteOptions | GraphCompleteOptionsDict | None = None) -> Graph:
        """Make an executable of the graph.

        Parameters
        ----------
        options : GraphCompleteOptions, optional
            How it is executed.

        Returns
        -------
        Graph
            The executable. The builder can complete others.

        Raises
        ------
        RuntimeError
            If the graph is not built, or is the body of a conditional node.
        CUDAError
            If the graph cannot be executed; the message tells why.
        """
        definition = self.graph_definition
        if self._kind is BODY:
            raise RuntimeError("a body of a conditional node runs as part of the graph around it: complete that")
        return definition.instantiate(options)

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
        RuntimeError
            If the graph is not built.
        CUDAError
            If the file cannot be written.
        """
        self.graph_definition.debug_dot_print(path, options)

    def split(self, count: int) -> tuple[GraphBuilder, ...]:
        """Fork the capture: what each of several builders captures comes after what this one has captured so far.

        Parameters
        ----------
        count : int
            How many builders there are then, 2 at least.

        Returns
        -------
        tuple of GraphBuilder
            This one first, then new ones. They have to be joined before the end.

        Raises
        ------
        ValueError
            If the count is less than 2.
        RuntimeError
            If this is not building.
        """
        count = integer(count, "count")
        if count < 2:
            raise ValueError(f"count must be at least 2, not {count}")
        stream = self._check_building("split")
        made: list[GraphBuilder] = []
        try:
            for _ in range(count - 1):
                made.append(self._beside(FORK))
                made[-1].stream.wait(stream)
                made[-1]._captured = made[-1]._stream
        except BaseException:
            for fork in made:
                fork.close()
            raise
        return (self, *made)

    @staticmethod
    def join(*graph_builders: GraphBuilder) -> GraphBuilder:
        """Join builders: what is captured next comes after what all of them have captured.

        Parameters
        ----------
        *graph_builders : GraphBuilder
            Two or more that came from one, by :meth:`split`.

        Returns
        -------
        GraphBuilder
            The one that the others came from, if it is among them, else the first. The others are closed.

        Raises
        ------
        ValueError
            If there are fewer than two, one is given twice, or they are not of one capture.
        RuntimeError
            If one is not building.
        CUDAError
            If the driver refuses. Then the capture is given up, and the builders that came from :meth:`split` are
            closed.
        """
        for builder in graph_builders:
            if not isinstance(builder, GraphBuilder):
                raise TypeError(f"join takes GraphBuilders, not {type(builder).__name__}")
        if len(set(graph_builders)) < max(len(graph_builders), 2):
            raise ValueError("join needs two different GraphBuilders at least, each once")
        for builder in graph_builders:
            builder._check_building("join")
        if any(builder._root is not graph_builders[0]._root for builder in graph_builders):
            raise ValueError("join needs GraphBuilders that came from one by split")
        kept = next((builder for builder in graph_builders if builder._kind is not FORK), graph_builders[0])
        try:
            for builder in graph_builders:
                if builder is not kept:
                    kept.stream.wait(builder)
        except BaseException:  # what is not joined keeps the capture from ending well
            root = kept._root
            root._give_up()
            for builder in graph_builders:
                if builder is not root:
                    builder.close()
            raise
        for builder in graph_builders:
            if builder is not kept:
                builder.close()
        return kept

    def create_condition(self, default_value: int | None = None) -> GraphCondition:
        """Return a condition for the conditional nodes of this graph.

        Parameters
        ----------
        default_value : int, optional
            What the condition is at the start of every run. By default what it was at the end of the last.

        Returns
        -------
        GraphCondition
            Kernels set it, and take it as an argument. It belongs to the current context; without one, to the stream's.

        Raises
        ------
        OverflowError
            If the value does not fit in 32 bits.
        RuntimeError
            If this is not building.
        """
        definition, _ = self._tail("create_condition")._place()  # raises if the driver has given the capture up
        with context_of(self.stream):
            condition: GraphCondition = definition.create_condition(default_value)
        return condition

    def if_then(self, condition: GraphCondition) -> GraphBuilder:
        """Add a node that runs its body if a condition is not 0.

        Parameters
        ----------
        condition : GraphCondition
            From :meth:`create_condition` of this graph.

        Returns
        -------
        GraphBuilder
            A new builder, for the body.
        """
        return self._conditional("if_then", condition)[0]

    def if_else(self, condition: GraphCondition) -> tuple[GraphBuilder, GraphBuilder]:
        """Add a node that runs one body if a condition is not 0, and another if it is.

        Parameters
        ----------
        condition : GraphCondition
            From :meth:`create_condition` of this graph.

        Returns
        -------
        tuple of GraphBuilder
            New builders: for the body that runs if the condition is not 0, and for the other.
        """
        then, otherwise = self._conditional("if_else", condition)
        return then, otherwise

    def switch(self, condition: GraphCondition, count: int) -> tuple[GraphBuilder, ...]:
        """Add a node that runs the body whose number a condition is, if there is one.

        Parameters
        ----------
        condition : GraphCondition
            From :meth:`create_condition` of this graph.
        count : int
            How many bodies there are.

        Returns
        -------
        tuple of GraphBuilder
            New builders, one for each body.
        """
        return self._conditional("switch", condition, count)

    def while_loop(self, condition: GraphCondition) -> GraphBuilder:
        """Add a node that runs its body again and again while a condition is not 0.

        Parameters
        ----------
        condition : GraphCondition
            From :meth:`create_condition` of this graph.

        Returns
        -------
        GraphBuilder
            A new builder, for the body.
        """
        return self._conditional("while_loop", condition)[0]

    def embed(self, child: GraphBuilder | GraphDefinition) -> None:
        """Add a node that runs another graph.

        Parameters
        ----------
        child : GraphBuilder or GraphDefinition
            The graph, built. It is copied: what happens to it later does not matter.

        Raises
        ------
        RuntimeError
            If the other graph is not built, or this is not building.
        CUDAError
            If the other graph allocates, frees, or has conditional nodes.
        """
        tail = self._tail("embed")
        self._continue(tail.embed(child.graph_definition if isinstance(child, GraphBuilder) else child))

    def callback(self, fn: Any, *, user_data: Any = None) -> None:
        """Add a node that calls a function on the host.

        Parameters
        ----------
        fn : callable or C function pointer
            A Python callable that takes no argument. What it raises is raised where the program next synchronises. Or
            a ``void (*)(void *)``: a CFFI function pointer, or a ctypes function declared as
            ``ctypes.CFUNCTYPE(None, ctypes.c_void_p)``. It is kept as long as the graph may call it.
        user_data : int, CFFI pointer or bytes-like, optional
            What a C function gets: an address, or bytes, which are copied and kept.

        Raises
        ------
        TypeError
            If a C function is declared in another way.
        ValueError
            If ``user_data`` is given with a Python callable.
        RuntimeError
            If this is not building.

        Notes
        -----
        The function runs in a thread of the driver's and must not call the driver, nor wait for a thread that does. A
        graph keeps what a Python callable refers to; if that includes the graph itself, neither is ever freed.
        """
        self._continue(self._tail("callback").callback(fn, user_data=user_data))

    def close(self) -> None:
        """Give the builder up, and a capture that is under way. Executables live on. Closing twice is allowed.

        Raises
        ------
        CUDAError
            If the driver has given the capture up, because of something that cannot be captured. The builder is closed
            nevertheless, and its stream can be used again.
        """
        self._captured = None
        stream, self._stream = self._stream, None
        error = None
        if self._phase is BUILDING:  # also when an interrupted call left this undone
            error = self._end_unfinished()
            self._give_up()
        else:
            self._let_go()
            self._release_graph()
        if stream is not None and self._owns_stream:
            stream.close()
        if error is not None:
            raise error

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called, or :meth:`join` has closed this builder."""
        return self._stream is None

    @property
    def is_building(self) -> bool:
        """Whether what the stream is given is captured: from :meth:`begin_building` to :meth:`end_building`."""
        return self._stream is not None and self._root._phase is BUILDING

    @property
    def is_join_required(self) -> bool:
        """Whether this came from :meth:`split`, and has to be joined before the end."""
        return self._kind is FORK

    @property
    def graph_definition(self) -> GraphDefinition:
        """The graph, as a definition: what is changed there is changed for :meth:`complete` as well.

        It is there once the graph is built; for bodies of conditional nodes also before :meth:`begin_building`, so that
        a body can be filled without being captured. It lives on when the builder is closed.

        Raises
        ------
        RuntimeError
            If this is closed, is building, has not begun or has failed, or came from :meth:`split`.
        """
        if self._stream is None:
            raise RuntimeError("this GraphBuilder is closed")
        if self._kind is FORK:
            raise RuntimeError("this GraphBuilder came from split: the graph is that of the one it came from")
        ready = self._phase is ENDED or (self._kind is BODY and self._phase is NEW)
        definition = self._find_graph() if ready else None
        if definition is None and self._stream is None:  # another thread has just closed this
            raise RuntimeError("this GraphBuilder is closed")
        if definition is None:
            raise RuntimeError(f"this GraphBuilder has no graph to show: {self._phase.value}")
        self._is_shared = True
        return definition

    @classmethod
    def _create(cls, stream: Stream, owns_stream: bool, kind: Kind = PRIMARY) -> GraphBuilder:
        """Return a builder that captures a stream, and closes it in the end if nobody else has it."""
        self = cls.__new__(cls)
        self._stream, self._owns_stream = stream, owns_stream
        self._kind, self._phase, self._is_shared = kind, NEW, False
        self._capture = self._captured = self._definition = self._origin = None
        self._inner = []
        if stream.is_closed:
            raise stream._failure(lib.CCC_CLOSED)
        if lib.ccc_stream_is_legacy(stream._c_handle):
            raise ValueError("the legacy default stream cannot be captured; create a stream")
        return self

    def _beside(self, kind: Kind, definition: GraphDefinition | None = None) -> GraphBuilder:
        """Return a builder with a new stream of the same device."""
        made = GraphBuilder._create(Stream._create(self.stream.context._device_id, None), True, kind)
        made._definition = definition
        if kind is FORK:
            made._origin = self._root
        self._root._inner.append(weakref.ref(made))
        return made

    @property
    def _root(self) -> GraphBuilder:
        """Whose capture this is part of: its own, unless it is a fork."""
        return self if self._origin is None else self._origin

    def _beginning_failure(self) -> RuntimeError:
        """Return the exception for a builder that cannot begin."""
        if self._stream is None:
            return RuntimeError("this GraphBuilder is closed")
        if self._kind is FORK:
            return RuntimeError("this GraphBuilder came from split, and is building as long as the one it came from")
        return RuntimeError(f"this GraphBuilder cannot begin building: {self._phase.value}")

    def _check_building(self, what: str) -> Stream:
        stream, phase = self.stream, self._root._phase
        if phase is not BUILDING:
            raise RuntimeError(f"{what} is for a GraphBuilder that is building: {NOT_BUILDING[phase]}")
        return stream

    def _for_launch(self) -> Stream:
        return self._captured or self._check_building("launch")

    def _refuse_launches(self) -> None:
        """Take no launches from now on, nor have those builders take any that :meth:`split` made."""
        self._captured = None
        for seen in self._inner:
            builder = seen()
            if builder is not None and builder._kind is FORK:
                builder._captured = None

    def _tail(self, what: str) -> CaptureEnd:
        """Return what adds nodes behind what is captured so far."""
        stream, definition = self._check_building(what), self._root._find_graph()
        if definition is None:  # another thread has closed this meanwhile
            raise RuntimeError("this GraphBuilder is closed")
        return CaptureEnd(definition, stream)

    def _continue(self, node: Any) -> None:
        """Let what is captured next come after a node that was added."""
        stream = self.stream  # which nobody else may have any more, once another thread closes this
        status = lib.ccc_capture_continue(stream._c_handle, node._definition._c_handle, node._handle)
        if status:
            error = failure(status)
            self._root._give_up()  # a capture cannot lose a node
            raise error

    def _conditional(self, what: str, *arguments: Any) -> tuple[GraphBuilder, ...]:
        """Add a conditional node, continue after it, and return builders for its bodies."""
        add = getattr(self._tail(what), what)
        node = None
        try:
            with context_of(self.stream):
                node = add(*arguments)
        except CUDAError:
            if node is not None:
                self._root._give_up()  # nothing can be removed from what is being captured
            raise
        self._continue(node)
        self._root._is_shared = True
        return tuple(self._beside(BODY, body) for body in node.branches)

    def _find_graph(self) -> GraphDefinition | None:
        """Return the graph, whose object is made for the first who asks. None: another thread has just closed this."""
        if self._definition is None:
            with changing():
                capture = self._capture
                found = None if capture is None else make(GraphDefinition, lib.ccc_capture_graph, capture._c_handle)
                if found is not None:
                    self._definition = found._as_root()
            if self._phase is ENDED:
                self._let_go()
            if self._stream is None or self._phase is FAILED:  # which has not seen the graph
                self._release_graph()
        return self._definition

    def _let_go(self) -> None:
        """Release the capture, and with it a graph that nobody has asked for."""
        capture = self._capture
        if capture is not None:
            capture.close()  # before it is forgotten, so that an interrupted call can be made again
            self._capture = None
            flush_releases()

    def _release_graph(self) -> None:
        """Let go of the graph, and close it unless somebody else may have it."""
        definition, self._definition = self._definition, None
        if definition is not None and self._kind is PRIMARY and not self._is_shared:
            definition.close()

    def _give_up_bodies(self) -> None:
        """End the captures of bodies that are under way: before the capture that their graphs may go with."""
        for body in self._bodies_building():
            body._give_up()

    def _bodies_building(self) -> list[GraphBuilder]:
        """Return the builders for bodies of conditional nodes that are building."""
        found = (seen() for seen in self._inner)
        return [body for body in found if body is not None and body._phase is BUILDING]

    def _end_unfinished(self) -> Exception | None:
        """End a capture that is abandoned. Return the exception for one that the driver has given up before."""
        capture = self._capture
        if capture is None:
            return None
        self._refuse_launches()
        self._give_up_bodies()
        status = _end(capture._c_handle)
        # an abandoned capture need not be complete; one that another thread has just ended is that thread's
        return None if status in (0, lib.CCC_CLOSED, lib.CUDA_ERROR_STREAM_CAPTURE_UNJOINED) else failure(status)

    def _give_up(self) -> None:
        """End a capture that failed or is abandoned, after the captures of bodies inside it, at any depth."""
        builders = [self]
        for builder in builders:  # which grows meanwhile
            builder._phase = FAILED
            builder._refuse_launches()
            builders += builder._bodies_building()
        for builder in reversed(builders):
            builder._let_go()
            definition, builder._definition = builder._definition, None
            if builder._kind is PRIMARY and definition is not None:
                definition.close()
