# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Streams: queues of work that a device runs in order."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cuda_core_cffi import _streams
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.calls import make, native
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle, raise_failure
from cuda_core_cffi._core.integers import address_of
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._lifetime.host_memory import after_wait
from cuda_core_cffi._streams.context import Context
from cuda_core_cffi._streams.event import DEFAULT_FLAGS, Event, event_flags
from cuda_core_cffi.typing import IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi._streams.options import EventOptions, StreamOptions
    from cuda_core_cffi._streams.resources import DeviceResources
    from cuda_core_cffi.graph.builder import GraphBuilder
    from cuda_core_cffi.typing._option_dicts import EventOptionsDict, StreamOptionsDict

PROTOCOL_VERSION = 0
LOWEST_PRIORITY = 0  # on every device
NON_BLOCKING: int = lib.CU_STREAM_NON_BLOCKING
BLOCKING_IN_GREEN = "streams of a green context are nonblocking: they do not wait for the legacy default stream"

_close = calls.close
_create = lib.ccc_stream_create
_sync = lib.ccc_stream_sync_slice
_record = lib.ccc_event_record
_record_new = lib.ccc_stream_record
_wait_event = lib.ccc_stream_wait_event
_wait_stream = lib.ccc_stream_wait_stream


class StreamProxy(Uncopyable):
    """Base class of what calls accept in place of a stream: a graph builder. C knows the attributes by name."""

    __slots__ = ("_captured", "_stream")

    _captured: Stream | None  # the stream while it is captured, else None: kernels are launched in no other
    _stream: Stream | None  # None once it is closed

    @property
    def stream(self) -> Stream:
        """The stream.

        Raises
        ------
        RuntimeError
            If this is closed.
        """
        stream = self._stream
        if stream is None:
            raise RuntimeError(f"this {type(self).__name__} is closed")
        return stream

    def _for_launch(self) -> Stream:
        """Return the stream for a launch, or raise where the launch would not be captured."""
        raise NotImplementedError


registry.stream_proxy = StreamProxy


class Stream(Handle):
    """A queue of work that runs in order.

    Streams come from :meth:`Device.create_stream` or wrap another library's with :meth:`from_handle`. Wherever this
    package takes a stream it also takes the two default streams, :obj:`LEGACY_DEFAULT_STREAM` and
    :obj:`PER_THREAD_DEFAULT_STREAM`, which stand for a stream of whichever context is current.

    Examples
    --------
    >>> stream = device.create_stream()
    >>> event = stream.record()
    >>> with device.create_stream() as other:
    ...     other.wait(event)  # the device waits, Python does not
    ...     other.sync()
    >>> event.is_done
    True
    >>> stream.close()
    """

    __slots__ = ("_owner",)
    _sync_slice = staticmethod(_sync)

    _CTYPE = "CUstream"
    _MADE_BY: ClassVar[str] = "Device.create_stream or Stream.from_handle"
    _owner: object

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the version of the protocol, 0, and the address of the stream."""
        if self.is_closed:  # the address would be 0, which is a default stream
            raise self._failure(lib.CCC_CLOSED)
        return (PROTOCOL_VERSION, self._driver_handle)

    def __copy__(self) -> Stream:
        """Return a default stream itself; refuse to copy others."""
        self.__reduce__()
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Stream:
        """Return a default stream itself; refuse to copy others."""
        self.__reduce__()
        return self

    def __reduce__(self) -> str | tuple[object, ...]:
        """Refer to a default stream by its name; refuse to pickle others."""
        if self is LEGACY_DEFAULT_STREAM:
            return "LEGACY_DEFAULT_STREAM"
        if self is PER_THREAD_DEFAULT_STREAM:
            return "PER_THREAD_DEFAULT_STREAM"
        return super().__reduce__()

    def __repr__(self) -> str:
        if self.is_closed:
            return "<Stream handle=0x0 closed>"
        try:
            context = f"{self.context._driver_handle:#x}"
        except Exception as error:  # a default stream in a thread with no context: a repr must not raise
            context = f"unknown ({type(error).__name__})"
        return f"<Stream handle={self._driver_handle:#x} context={context}>"

    @native(after_wait)
    def sync(self) -> None:
        """Wait on the host until all work in the stream is done.

        Raises
        ------
        CUDAError
            If work in the stream failed.
        """
        status = _sync(self._c_handle, False)
        if status:
            after_wait(status, self)

    @native(raise_failure)
    def record(self, event: Event | None = None, options: EventOptions | EventOptionsDict | None = None) -> Event:
        """Record an event: it is reached when the work now in the stream is done.

        Parameters
        ----------
        event : Event, optional
            The event to record. By default a new one is made.
        options : EventOptions, optional
            Options for a new event.

        Returns
        -------
        Event
            The event recorded.
        """
        if event is None:
            flags = DEFAULT_FLAGS
            if options is not None:
                flags = event_flags(check_options(_streams.EventOptions, options, "Stream.record"))
            made = make(Event, _record_new, self._c_handle, flags)
            if made is None:
                raise self._failure(lib.ccc_last_status())
            return made
        if not isinstance(event, Event):
            raise TypeError(f"event must be an Event, not {type(event).__name__}")
        status = _record(event._c_handle, self._c_handle)
        if status:
            raise self._failure(status, event)
        return event

    @native(raise_failure)
    def wait(self, event_or_stream: Event | IsStreamType) -> None:
        """Hold up what follows in this stream until an event is reached, or the work now in another stream is done.

        Parameters
        ----------
        event_or_stream : Event or Stream or object with ``__cuda_stream__``
            What to wait for.
        """
        awaited: Event | Stream
        if isinstance(event_or_stream, Event):
            awaited = event_or_stream
            status = _wait_event(self._c_handle, awaited._c_handle)
        else:
            awaited = accept_stream(event_or_stream, "wait")
            status = _wait_stream(self._c_handle, awaited._c_handle)
        if status:
            raise self._failure(status, awaited)

    def callback(self, fn: Any, *, user_data: Any = None) -> None:
        """Have the stream call a function on the host, when the work now in it is done. What follows waits for that.

        While the stream is being captured, by this package or another library, the function becomes a node of the
        graph, which calls it whenever it runs.

        Parameters
        ----------
        fn : callable or C function pointer
            A Python callable that takes no argument. Or a ``void (*)(void *)``: a CFFI function pointer, or a ctypes
            function declared as ``ctypes.CFUNCTYPE(None, ctypes.c_void_p)``. It is kept until it was called.
        user_data : int, CFFI pointer or bytes-like, optional
            What a C function gets: an address, or bytes, which are copied and kept.

        Raises
        ------
        TypeError
            If a C function is declared in another way.
        ValueError
            If ``user_data`` is given with a Python callable.
        CUDAError
            If the driver does not take the function.

        Notes
        -----
        The function runs in a thread of the driver's and must not call the driver, nor wait for a thread that does.
        What a Python callable raises is raised by the next call that waits for the stream: :meth:`sync`,
        :meth:`Event.sync` of an event recorded in it, or :meth:`Device.sync`; several exceptions come as an
        ``ExceptionGroup``. The driver calls nothing in a context that has failed.
        """
        registry.call_in_stream(self, fn, user_data)

    def close(self) -> None:
        """Give the stream up. Work in it still runs. Closing a default stream does nothing."""
        _close(self)
        if self is not LEGACY_DEFAULT_STREAM and self is not PER_THREAD_DEFAULT_STREAM:
            self._owner = None

    def create_graph_builder(self) -> GraphBuilder:
        """Return a builder of a graph that captures this stream.

        Returns
        -------
        GraphBuilder
            The builder. The stream is captured from ``begin_building`` to ``end_building``.

        Raises
        ------
        ValueError
            If this is the legacy default stream, which cannot be captured.
        RuntimeError
            If the stream is closed.
        """
        return registry.graph_builder._create(self, owns_stream=False)

    @staticmethod
    def from_handle(handle: int) -> Stream:
        """Wrap the stream of another library.

        Parameters
        ----------
        handle : int
            Its address (``cudaStream_t`` or ``CUstream``), or a CFFI pointer.

        Returns
        -------
        Stream
            The stream. Closing it does not destroy the stream, whose owner must outlive it.
        """
        return Stream._borrow(address_of(handle, "stream"), None)

    @property
    def is_nonblocking(self) -> bool:
        """Whether the stream runs beside the legacy default stream."""
        flags = ffi.new("unsigned int *")
        status = lib.ccc_stream_flags(self._c_handle, flags)
        if status:
            raise self._failure(status)
        return bool(flags[0] & lib.CU_STREAM_NON_BLOCKING)

    @property
    def priority(self) -> int:
        """The priority; lower numbers run first."""
        priority = ffi.new("int *")
        status = lib.ccc_stream_priority(self._c_handle, priority)
        if status:
            raise self._failure(status)
        return int(priority[0])

    @property
    def context(self) -> Context:
        """The context that the stream works in; for a default stream, the current one."""
        context = make(Context, lib.ccc_stream_context, self._c_handle)
        if context is None:
            raise self._failure(lib.ccc_last_status())
        return context

    @property
    def resources(self) -> DeviceResources:
        """The resources of the context that the stream works in; for a default stream, of the current one."""
        return self.context.resources

    @property
    def device(self) -> Device:
        """The :class:`Device` that the stream works on; for a default stream, that of the current context."""
        return registry.device(self.context._device_id)

    @classmethod
    def _create(cls, device: int, options: StreamOptions | None) -> Self:
        flags, priority = NON_BLOCKING, LOWEST_PRIORITY  # those of StreamOptions()
        if options is not None:
            flags = NON_BLOCKING if options.nonblocking else lib.CU_STREAM_DEFAULT
            priority = LOWEST_PRIORITY if options.priority is None else check_priority(device, options.priority)
            if flags != NON_BLOCKING and Context._made_by(lib.ccc_device_context, device).is_green:
                raise ValueError(BLOCKING_IN_GREEN)
        self = cls._made_by(_create, device, flags, priority)
        self._owner = None
        return self

    @classmethod
    def _create_in(cls, context: Context, options: StreamOptions | StreamOptionsDict | None) -> Self:
        """Create a stream in a green context."""
        priority = LOWEST_PRIORITY
        if options is not None:
            options = check_options(_streams.StreamOptions, options, "Context.create_stream")
            if not options.nonblocking:
                raise ValueError(BLOCKING_IN_GREEN)
            if options.priority is not None:
                priority = check_priority(context._device_id, options.priority)
        self = make(cls, lib.ccc_green_stream, context._c_handle, priority)
        if self is None:
            raise context._failure(lib.ccc_last_status())
        self._owner = None
        return self

    @classmethod
    def _borrow(cls, handle: int, owner: object) -> Self:
        self = cls._made_by(lib.ccc_stream_borrow, handle)
        self._owner = owner
        return self

    @classmethod
    def _borrow_stream(cls, stream: Stream) -> Self:
        """Return another object for one of our streams, which lives until both are closed."""
        self = make(cls, lib.ccc_stream_again, stream._c_handle)
        if self is None:
            raise stream._failure(lib.ccc_last_status())
        self._owner = stream
        return self

    @classmethod
    def _default(cls, per_thread: bool) -> Self:
        self = cls._made_by(lib.ccc_default_stream, per_thread)
        self._owner = None
        return self


LEGACY_DEFAULT_STREAM = Stream._default(False)
"""The legacy default stream of the current context: it waits for all blocking streams, and they for it."""

PER_THREAD_DEFAULT_STREAM = Stream._default(True)
"""The default stream of the current context and host thread."""

_CONFIGURED_DEFAULT = (
    PER_THREAD_DEFAULT_STREAM
    if os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM") == "1"
    else LEGACY_DEFAULT_STREAM
)


def check_priority(device: int, priority: object) -> int:
    """Return a stream priority that the device has, or raise."""
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(f"priority must be an int, not {type(priority).__name__}")
    least, greatest = ffi.new("int *"), ffi.new("int *")
    check(lib.ccc_device_priorities(device, least, greatest))
    if not greatest[0] <= priority <= least[0]:
        raise ValueError(
            f"priority {priority} is outside the device's range: {greatest[0]} runs first, {least[0]} last"
        )
    return priority


def default_stream() -> Stream:
    """Return the default stream: the per-thread one if ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=1``."""
    return _CONFIGURED_DEFAULT


def accept_stream(stream: object, what: str) -> Stream:
    """Return ``stream`` as a :class:`Stream`, or raise TypeError; ``what`` is the operation that wants it."""
    if isinstance(stream, Stream):
        return stream
    if isinstance(stream, StreamProxy):
        return stream.stream
    return Stream._borrow(protocol_address(stream, what), stream)


def launch_stream(stream: object, what: str) -> Stream:
    """Return ``stream`` as a :class:`Stream` for a launch: a graph builder has to be building."""
    return stream._for_launch() if isinstance(stream, StreamProxy) else accept_stream(stream, what)


def stream_or_default(stream: object, what: str) -> Stream:
    """Return ``stream`` as a :class:`Stream`, or the default stream for None."""
    return _CONFIGURED_DEFAULT if stream is None else accept_stream(stream, what)


@contextlib.contextmanager
def context_of(stream: Stream) -> Iterator[None]:
    """Make the context of a stream current where none is. The end raises if none can be made current again."""
    pushed = lib.ccc_stream_push(stream._c_handle)
    if pushed < 0:
        raise stream._failure(lib.ccc_last_status())
    try:
        yield
    finally:
        check(lib.ccc_restored(pushed, 0))


def protocol_address(stream: object, what: str, stacklevel: int = 4) -> int:
    """Return the address that ``stream`` gives through ``__cuda_stream__``; ``stacklevel`` is for its warning."""
    protocol: Any = getattr(stream, "__cuda_stream__", None)
    if protocol is None:
        raise TypeError(
            f"{what} needs a Stream, or an object with a __cuda_stream__ method, not {type(stream).__name__}"
        )
    if callable(protocol):
        protocol = protocol()
    else:
        warnings.warn(
            f"{type(stream).__name__}.__cuda_stream__ is an attribute; the protocol wants a method",
            DeprecationWarning,
            stacklevel=stacklevel,
        )
    try:
        version, address = protocol
    except (TypeError, ValueError):
        raise TypeError(
            f"{type(stream).__name__}.__cuda_stream__ gave {protocol!r}, not a pair of version and address"
        ) from None
    if version != PROTOCOL_VERSION:
        raise TypeError(
            f"{type(stream).__name__}.__cuda_stream__ speaks version {version!r}; only version {PROTOCOL_VERSION} is "
            "known"
        )
    return address_of(address, "stream")
