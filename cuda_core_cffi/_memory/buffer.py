# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers: pieces of device or host memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from cuda_core_cffi._dlpack import release_pins
from cuda_core_cffi._errors import check_cleanup
from cuda_core_cffi._ffi import lib
from cuda_core_cffi._memory.exporter import Exporter
from cuda_core_cffi._memory.lease import Lease
from cuda_core_cffi._memory.resource import MemoryResource, whole_size
from cuda_core_cffi._stream import Stream, accept_stream, address_of
from cuda_core_cffi.typing import DevicePointerType, IsStreamType

__all__ = ["Buffer", "ForeignBuffer", "wrap_memory"]

FILL_WIDTHS = (1, 2, 4)
LARGEST_BYTE = 255

_close = lib.ccc_close
_copy = lib.ccc_copy
_drop = lib.ccc_drop
_fill = lib.ccc_fill
_take = lib.ccc_take


class Buffer(Exporter):
    """A piece of memory, on a device or on the host.

    Buffers come from :meth:`Device.allocate` and :meth:`MemoryResource.allocate`, or wrap memory of another library
    with :meth:`from_handle`. The memory goes back when the buffer is closed or collected, in the order of the stream
    that it was allocated in.
    """

    __slots__ = ("_address", "_keep")

    _CTYPE: ClassVar[str] = "CUdeviceptr"
    _MADE_BY: ClassVar[str] = "Device.allocate, MemoryResource.allocate or Buffer.from_handle"
    _address: int | None  # set by the first launch that takes the buffer; None once closed
    _keep: object  # set where Python must keep something alive: the owner of a foreign stream

    def __repr__(self) -> str:
        return f"<Buffer ptr={self.handle:#x} size={self._size}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Buffer):
            return NotImplemented
        return self._size == other._size and bool(lib.ccc_identity(self._box) == lib.ccc_identity(other._box))

    def __hash__(self) -> int:
        return hash((lib.ccc_identity(self._box), self._size))

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} can be neither pickled nor copied; copy_to copies the memory")

    def close(self, stream: IsStreamType | None = None) -> None:
        """Give the memory back. Closing twice is allowed.

        Parameters
        ----------
        stream : Stream, optional
            The memory goes back when the work now in this stream is done. Default is the stream that it was allocated
            in, or that :meth:`set_deallocation_stream` named.
        """
        if stream is not None and not self.is_closed:
            self.set_deallocation_stream(stream)
        self._address = None
        if waiting := _close(self._box):
            check_cleanup(waiting)

    def set_deallocation_stream(self, stream: IsStreamType) -> None:
        """Change the stream in whose order the memory goes back.

        Parameters
        ----------
        stream : Stream
            The stream. A default stream is taken to be of the context that the memory was allocated in.
        """
        stream = accept_stream(stream, "Buffer.set_deallocation_stream")
        status = lib.ccc_buffer_set_stream(self._box, stream._box)
        if status:
            raise self._failure(status, stream)
        if stream._owner is not None:
            self._keep = stream

    def copy_to(self, dst: Buffer | None = None, *, stream: IsStreamType) -> Buffer:
        """Copy this buffer into another.

        Parameters
        ----------
        dst : Buffer, optional
            The destination, of the same size. By default a new buffer from the same memory resource.
        stream : Stream
            The copy is made in the order of this stream; it may not be done when this returns.

        Returns
        -------
        Buffer
            The destination.

        Raises
        ------
        ValueError
            If the sizes differ, or there is no destination and this buffer has no memory resource.
        """
        queue = accept_stream(stream, "Buffer.copy_to")
        if dst is None:
            if self._mr is None:
                raise ValueError("this buffer has no memory resource to take a destination from: give dst")
            dst = self._mr.allocate(self._size, queue)
        self._copy(dst, self, queue)
        return dst

    def copy_from(self, src: Buffer, *, stream: IsStreamType) -> None:
        """Copy another buffer into this one.

        Parameters
        ----------
        src : Buffer
            The source, of the same size.
        stream : Stream
            The copy is made in the order of this stream; it may not be done when this returns.

        Raises
        ------
        ValueError
            If the sizes differ.
        """
        self._copy(self, src, accept_stream(stream, "Buffer.copy_from"))

    def fill(self, value: int | Any, width: int | None = None, *, stream: IsStreamType) -> None:
        """Fill the memory with a repeated value.

        Parameters
        ----------
        value : int or bytes-like
            An integer of 0 to 2 ** (8 * width) - 1, or 1, 2 or 4 bytes: bytes, bytearray, memoryview or a NumPy scalar.
        width : int, optional
            How many bytes an integer takes: 1, 2 or 4. Default 1.
        stream : Stream
            The fill is made in the order of this stream; it may not be done when this returns.

        Raises
        ------
        OverflowError
            If an integer does not fit.
        ValueError
            If the width is none of 1, 2 and 4, or does not divide the size of the buffer.
        """
        if width is None and type(value) is int and 0 <= value <= LARGEST_BYTE:
            number, width = value, 1
        else:
            number, width = fill_pattern(value, width)
            if self._size % width:
                raise ValueError(f"a pattern of {width} bytes does not divide a buffer of {self._size}")
        queue = stream if isinstance(stream, Stream) else accept_stream(stream, "Buffer.fill")
        status = _fill(self._box, queue._box, number, width)
        if status:
            raise self._failure(status, queue)

    @staticmethod
    def from_handle(
        ptr: DevicePointerType,
        size: int,
        mr: MemoryResource | None = None,
        owner: object | None = None,
        *,
        stream: IsStreamType | None = None,
    ) -> Buffer:
        """Wrap memory that exists already.

        Parameters
        ----------
        ptr : int
            Its address, or a CFFI pointer.
        size : int
            Its size in bytes.
        mr : MemoryResource, optional
            Its ``deallocate`` is called when the buffer is closed or collected.
        owner : object, optional
            Kept alive as long as the buffer. Without ``mr`` and ``owner`` the memory is borrowed.
        stream : Stream, optional
            The stream that ``deallocate`` gets. Default is the default stream.

        Returns
        -------
        Buffer
            The memory.

        Raises
        ------
        ValueError
            If both ``mr`` and ``owner`` are given, or the size is negative.
        """
        return wrap_memory(ForeignBuffer, ptr, size, mr, owner, stream)

    def _copy(self, dst: Buffer, src: Buffer, stream: Stream) -> None:
        if not (isinstance(dst, Buffer) and isinstance(src, Buffer)):
            wrong = src if isinstance(dst, Buffer) else dst
            raise TypeError(f"expected a Buffer, not {type(wrong).__name__}")
        if dst._size != src._size:
            raise ValueError(f"the sizes differ: {src._size} bytes do not fit {dst._size}")
        status = _copy(dst._box, src._box, stream._box)
        if status:
            raise self._failure(status, dst, src, stream)

    @property
    def owner(self) -> object | None:
        """The object that the memory belongs to, if :meth:`from_handle` was given one."""
        return None


class ForeignBuffer(Buffer):
    """Memory that Python gives back: through a resource's ``deallocate``, or by dropping its owner."""

    __slots__ = ("_lease",)

    _lease: Lease

    def __del__(self, _take: Any = _take, _drop: Any = _drop) -> None:
        try:
            box, lease = self._box, self._lease
        except AttributeError:
            return
        try:
            if _take(box):
                lease.release_in_cleanup()
        finally:
            _drop(box)

    def close(self, stream: IsStreamType | None = None) -> None:
        """Give the memory back. Closing twice is allowed."""
        release_pins()
        if stream is not None and not self.is_closed:
            self.set_deallocation_stream(stream)
        self._address = None
        if _take(self._box):  # not closed before, perhaps by another thread
            self._lease.release()

    def set_deallocation_stream(self, stream: IsStreamType) -> None:
        """Change the stream that the resource's ``deallocate`` gets."""
        queue = accept_stream(stream, "Buffer.set_deallocation_stream")
        Buffer.set_deallocation_stream(self, queue)
        self._lease.stream = queue

    def _hold(self) -> Callable[[], None]:
        self._lease.retain()
        return self._lease.release_in_cleanup

    @property
    def _python_owned(self) -> bool:
        return self._mr is not None or self._lease.owner is not None

    @property
    def owner(self) -> object | None:
        """The object that the memory belongs to, if any."""
        return None if self.is_closed else self._lease.owner


ForeignBufferType = TypeVar("ForeignBufferType", bound=ForeignBuffer)


def wrap_memory(
    cls: type[ForeignBufferType],
    ptr: DevicePointerType,
    size: int,
    mr: MemoryResource | None,
    owner: object | None,
    stream: IsStreamType | None,
) -> ForeignBufferType:
    """Return a buffer of a class for memory that exists already; see :meth:`Buffer.from_handle`."""
    if mr is not None and owner is not None:
        raise ValueError("give mr or owner, not both: memory goes back to a resource, or belongs to an object")
    if mr is not None and not isinstance(mr, MemoryResource):
        raise TypeError(f"mr must be a MemoryResource, not {type(mr).__name__}")
    release_pins()
    queue = None if stream is None else accept_stream(stream, "from_handle")
    address = 0 if ptr is None else address_of(ptr)
    size = whole_size(size)
    self = cls._own(lib.ccc_buffer_borrow(address, size))
    self._size = size
    self._mr = mr
    self._lease = Lease(self._box, size, mr, owner)
    if queue is not None:
        self.set_deallocation_stream(queue)
    return self


def fill_pattern(value: Any, width: int | None) -> tuple[int, int]:
    """Return the value to fill with as an integer, and its width in bytes."""
    if isinstance(value, int):
        width = 1 if width is None else width
        if type(width) is not int or width not in FILL_WIDTHS:
            raise ValueError(f"width must be 1, 2 or 4 bytes, not {width!r}")
        if not 0 <= value < 1 << 8 * width:
            raise OverflowError(f"{value} does not fit in {width} byte{'s' * (width > 1)}: 0 to {(1 << 8 * width) - 1}")
        return value, width
    try:
        pattern = bytes(memoryview(value).cast("B"))
    except TypeError:
        raise TypeError(
            "value must be an int, or 1, 2 or 4 bytes in an object with the buffer protocol, not "
            f"{type(value).__name__}"
        ) from None
    if len(pattern) not in FILL_WIDTHS:
        raise ValueError(f"a pattern must be 1, 2 or 4 bytes, not {len(pattern)}")
    if width is not None and width != len(pattern):
        raise ValueError(f"width is {width}, but the pattern has {len(pattern)} bytes")
    return int.from_bytes(pattern, "little"), len(pattern)
