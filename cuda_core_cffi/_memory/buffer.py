# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers: pieces of device or host memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, overload

from cuda_core_cffi import _memory
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.calls import make, native
from cuda_core_cffi._core.descriptors import PAYLOAD_BYTES, seal
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import InUse
from cuda_core_cffi._core.integers import address_of
from cuda_core_cffi._lifetime.references import refer_with_memory
from cuda_core_cffi._memory.access import copy_failure, explain_access
from cuda_core_cffi._memory.dlpack import release_deleted_tensors
from cuda_core_cffi._memory.exporter import Exporter
from cuda_core_cffi._memory.host_copy import copy_host
from cuda_core_cffi._memory.ipc import IPCBufferDescriptor, IPCPool
from cuda_core_cffi._memory.memory_owner import MemoryOwner
from cuda_core_cffi._memory.resource import MemoryResource, whole_size
from cuda_core_cffi._memory.stream_values import check_place, check_value, check_width, fill_pattern, wait_flags
from cuda_core_cffi._streams.stream import Stream, accept_stream, stream_or_default
from cuda_core_cffi.typing import DevicePointerType, IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi._memory.copy_options import CopyOptions
    from cuda_core_cffi._memory.ipc import VirtualMemoryIPCBufferDescriptor
    from cuda_core_cffi.typing import StreamWaitValueType  # which brings all enumerations
    from cuda_core_cffi.typing._option_dicts import CopyOptionsDict

T = TypeVar("T")


_close = calls.close
_copy = lib.ccc_copy
_release_object = getattr(calls.Owner, "__del__", None)  # None where the C handle goes with the object
_fill = lib.ccc_fill
_wait_value = lib.ccc_wait_value
_write_value = lib.ccc_write_value
_close_once = calls.close_once


def fill_failed(status: int, buffer: Any, value: object, *, stream: Any) -> NoReturn:
    """Raise the exception for a fill that failed."""
    queue = accept_stream(stream, "Buffer.fill")
    raise explain_access(buffer._failure(status, queue), queue, buffer)


def copy_to_failed(status: int, source: Any, destination: Any, *, stream: Any) -> NoReturn:
    """Raise the exception for a copy to another buffer that failed."""
    what = "Buffer.copy_to"
    raise copy_failure(status, what, accept_stream(stream, what), destination, source)


def copy_from_failed(status: int, destination: Any, source: Any, *, stream: Any) -> NoReturn:
    """Raise the exception for a copy from another buffer that failed."""
    what = "Buffer.copy_from"
    raise copy_failure(status, what, accept_stream(stream, what), destination, source)


class Buffer(Exporter):
    """A piece of memory, on a device or on the host.

    Buffers come from :meth:`Device.allocate` and :meth:`MemoryResource.allocate`, or wrap memory of another library
    with :meth:`from_handle`. The memory goes back when the buffer is closed or collected, in the order of the stream
    that it was allocated in.
    """

    __slots__ = ("_descriptor",)

    _CTYPE: ClassVar[str] = "CUdeviceptr"
    _MADE_BY: ClassVar[str] = "Device.allocate, MemoryResource.allocate or Buffer.from_handle"
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it owns memory; copy_to copies the memory"
    _SLICE: ClassVar[type[BufferSlice]]  # what a part of it is
    _descriptor: IPCBufferDescriptor  # set once it is exported, or imported
    _keep: object  # set where Python must keep something alive: the owner of a foreign stream

    def __repr__(self) -> str:
        return f"<Buffer ptr={self.handle:#x} size={self._size}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Buffer):
            return NotImplemented
        return self._size == other._size and bool(lib.ccc_identity(self._c_handle) == lib.ccc_identity(other._c_handle))

    def __hash__(self) -> int:
        return hash((lib.ccc_identity(self._c_handle), self._size))

    def __reduce__(self) -> tuple[object, ...]:
        """Describe the buffer to another process, which maps it where it unpickles this."""
        if not (isinstance(self._mr, IPCPool) and self._mr.is_ipc_enabled):
            raise TypeError(
                f"{type(self).__name__} cannot be pickled or copied: {self._NOT_COPIED_BECAUSE}; buffers of a pool "
                "with ipc_enabled=True can be sent to other processes"
            )
        return Buffer.from_ipc_descriptor, (self._mr, self.get_ipc_descriptor())

    def __getitem__(self, where: slice) -> Buffer:
        """Return a part of the memory, as a buffer that shares it.

        The memory goes back when the last of the buffer and its slices is closed or collected, in the order of one
        stream: that of the allocation, unless ``close(stream)`` or ``set_deallocation_stream`` of any of them named
        another. The last named counts, and should come after what all of them are used for.

        Parameters
        ----------
        where : slice
            Bytes, counted as in every Python slice: negative from the end, cut to what there is. The step is 1.

        Returns
        -------
        Buffer
            The part. It can be sliced further.

        Raises
        ------
        TypeError
            If this is no slice: a byte by itself is no buffer.
        ValueError
            If the step is not 1.
        RuntimeError
            If this buffer is closed.
        """
        if not isinstance(where, slice):
            raise TypeError(f"a Buffer takes slices such as buffer[4:8], not {type(where).__name__}: {where!r}")
        start, stop, step = where.indices(self._size)
        if step != 1:
            raise ValueError(f"a slice of a Buffer has step 1, not {step}")
        return self._part(start, max(stop - start, 0))

    __iter__: ClassVar[None] = None  # __getitem__ alone would make it iterable, byte by byte

    @native()
    def close(self, stream: IsStreamType | None = None) -> None:
        """Give the memory back, or a slice's use of it. Closing twice is allowed.

        Parameters
        ----------
        stream : Stream, optional
            The memory goes back when the work now in this stream is done. Default is the stream that it was allocated
            in, or that :meth:`set_deallocation_stream` named.

        Notes
        -----
        Memory of a :class:`LegacyPinnedMemoryResource` or a :class:`VirtualMemoryResource`, and of devices without
        pools, is freed at once: this call waits for the stream, and the driver for all work on the device.
        """
        if stream is not None and not self.is_closed:
            self.set_deallocation_stream(stream)
        _close(self)

    def set_deallocation_stream(self, stream: IsStreamType) -> None:
        """Change the stream in whose order the memory goes back.

        Parameters
        ----------
        stream : Stream
            The stream. A default stream is taken to be of the context that the memory was allocated in.
        """
        stream = accept_stream(stream, "Buffer.set_deallocation_stream")
        status = lib.ccc_buffer_set_stream(self._c_handle, stream._c_handle)
        if status:
            raise self._failure(status, stream)
        if stream._owner is not None:
            self._keep_stream(stream)

    def _keep_stream(self, stream: Stream) -> None:
        """Keep the owner of a foreign stream as long as the memory, which others may keep longer than this object."""
        self._keep = stream
        refer_with_memory(self, stream)

    @overload
    def copy_to(
        self, dst: Buffer | None = None, *, stream: IsStreamType, options: CopyOptions | CopyOptionsDict | None = None
    ) -> Buffer: ...

    @overload
    def copy_to(self, dst: T, *, stream: IsStreamType, options: CopyOptions | CopyOptionsDict | None = None) -> T: ...

    @native(copy_to_failed)
    def copy_to(
        self, dst: Any = None, *, stream: IsStreamType, options: CopyOptions | CopyOptionsDict | None = None
    ) -> object:
        """Copy this buffer into another, or into an object with memory of the host.

        Parameters
        ----------
        dst : Buffer or object with the buffer protocol, optional
            The destination, of the same size: a buffer, or a NumPy array, bytearray, memory map and the like, whose
            memory is contiguous and writable. By default a new buffer from the same memory resource.
        stream : Stream
            The copy is made in the order of this stream; it may not be done when this returns. Until it is, an object
            that is no buffer is kept, and cannot be resized; read it after ``stream.sync()``.
        options : CopyOptions, optional
            How the copy may be made. Not with the legacy default stream, nor one that is being captured.

        Returns
        -------
        Buffer or object
            The destination.

        Raises
        ------
        ValueError
            If the sizes differ, source and destination have bytes in common, or there is no destination and this buffer
            has no memory resource.
        TypeError
            If the destination has no memory or holds Python objects, or the stream takes no such copy.
        BufferError
            If the memory of the destination is read-only or not contiguous.
        UnavailableError
            If the driver is too old for ``src_access_order="during_api_call"``.
        """
        what = "Buffer.copy_to"
        queue = stream if isinstance(stream, Stream) else accept_stream(stream, what)
        attributes = None if options is None else _memory.copy_attributes(options, what)
        if isinstance(dst, Buffer):
            copy(dst, self, queue, attributes, what)
        elif dst is not None:
            copy_host(self, dst, True, queue, attributes, what)
        else:
            return self._copy_to_new(queue, attributes, what)
        return dst

    @native(copy_from_failed)
    def copy_from(
        self, src: Any, *, stream: IsStreamType, options: CopyOptions | CopyOptionsDict | None = None
    ) -> None:
        """Copy another buffer, or an object with memory of the host, into this one.

        Parameters
        ----------
        src : Buffer or object with the buffer protocol
            The source, of the same size: a buffer, or bytes, a NumPy array and the like, whose memory is contiguous.
        stream : Stream
            The copy is made in the order of this stream; it may not be done when this returns. Until it is, an object
            that is no buffer is kept, and cannot be resized; change it after ``stream.sync()``.
        options : CopyOptions, optional
            How the copy may be made. Not with the legacy default stream, nor one that is being captured.

        Raises
        ------
        ValueError
            If the sizes differ, or source and destination have bytes in common.
        TypeError
            If the source has no memory or holds Python objects, or the stream takes no such copy.
        BufferError
            If the memory of the source is not contiguous.
        UnavailableError
            If the driver is too old for ``src_access_order="during_api_call"``.
        """
        what = "Buffer.copy_from"
        queue = stream if isinstance(stream, Stream) else accept_stream(stream, what)
        attributes = None if options is None else _memory.copy_attributes(options, what)
        if isinstance(src, Buffer):
            copy(self, src, queue, attributes, what)
        else:
            copy_host(self, src, False, queue, attributes, what)

    @native(fill_failed)
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
        queue = stream if isinstance(stream, Stream) else accept_stream(stream, "Buffer.fill")
        number, width = fill_pattern(value, width)
        if self._size % width:
            raise ValueError(f"a pattern of {width} bytes does not divide a buffer of {self._size}")
        status = _fill(self._c_handle, queue._c_handle, number, width)
        if status:
            fill_failed(status, self, value, stream=queue)

    def write_value(self, value: int, *, stream: IsStreamType, offset: int = 0, bits: int = 32) -> None:
        """Write an integer to the memory, in stream order.

        What came before in the stream is done, and its writes are visible to the device and the host, before the value
        is. Other streams wait for it with :meth:`wait_value`, kernels and the host read it.

        Parameters
        ----------
        value : int
            The integer, 0 to 2 ** bits - 1.
        stream : Stream
            The value is written in the order of this stream; it may not be there when this returns.
        offset : int, optional
            Where to, in bytes from the start of the buffer. The address is a multiple of the bytes written.
        bits : int, optional
            How many bits are written: 32, which is the default, or 64.

        Raises
        ------
        OverflowError
            If the value does not fit.
        ValueError
            If the place is out of bounds or not aligned, or the memory is read-only, managed, of a pool or a graph, or
            ordinary memory of the host.
        UnavailableError
            If the device has no operations of 64 bits.

        Notes
        -----
        This is ``cuStreamWriteValue32`` or ``cuStreamWriteValue64``. ``docs/stream_memory_operations.md`` tells how to
        use it without deadlocks.
        """
        what = "Buffer.write_value"
        queue = stream if isinstance(stream, Stream) else accept_stream(stream, what)
        check_width(bits, what, lambda: queue.device.properties)
        start = check_place(self, offset, bits, what, writes=True)
        status = _write_value(self._c_handle, start, check_value(value, bits), bits, queue._c_handle)
        if status:
            raise explain_access(self._failure(status, queue), queue, self)

    def wait_value(
        self,
        value: int,
        condition: StreamWaitValueType | str = "geq",
        *,
        stream: IsStreamType,
        offset: int = 0,
        bits: int = 32,
        flush: bool = False,
    ) -> None:
        """Hold up what follows in a stream until an integer in the memory is as a condition says.

        Parameters
        ----------
        value : int
            What the integer in memory is compared to, 0 to 2 ** bits - 1.
        condition : StreamWaitValueType, optional
            ``"geq"``, which is the default: at least `value`, in signed arithmetic that wraps around; ``"eq"``: equal;
            ``"and"``: has a bit in common with `value`; ``"nor"``: lacks a bit that `value` lacks too.
        stream : Stream
            The stream that waits. The host does not.
        offset : int, optional
            Where the integer is, in bytes from the start of the buffer. The address is a multiple of its bytes.
        bits : int, optional
            How many bits it has: 32, which is the default, or 64.
        flush : bool, optional
            Whether remote writes, such as those of another device, that reached the device before the wait ended are
            made visible to what follows. Not every platform has this.

        Raises
        ------
        OverflowError
            If the value does not fit.
        ValueError
            If the condition is unknown, the place is out of bounds or not aligned, or the memory is managed, of a pool
            or a graph, or ordinary memory of the host.
        UnavailableError
            If the device has no such condition, no operations of 64 bits, or cannot flush.

        Notes
        -----
        This is ``cuStreamWaitValue32`` or ``cuStreamWaitValue64``. The stream waits for ever if nobody writes the
        value: ``docs/stream_memory_operations.md`` tells how not to end there.
        """
        what = "Buffer.wait_value"
        queue = stream if isinstance(stream, Stream) else accept_stream(stream, what)
        check_width(bits, what, lambda: queue.device.properties)
        start = check_place(self, offset, bits, what, writes=False)
        number = check_value(value, bits)
        flags = wait_flags(condition, flush, what, lambda: queue.device.properties)
        status = _wait_value(self._c_handle, start, number, bits, flags, queue._c_handle)
        if status:
            raise explain_access(self._failure(status, queue), queue, self)

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

    @classmethod
    def from_ipc_descriptor(
        cls,
        mr: MemoryResource,
        ipc_descriptor: IPCBufferDescriptor | VirtualMemoryIPCBufferDescriptor,
        *,
        stream: IsStreamType | None = None,
    ) -> Buffer:
        """Return a buffer of another process: the same memory, mapped into this one.

        Parameters
        ----------
        mr : DeviceMemoryResource, PinnedMemoryResource or VirtualMemoryResource
            The mapped pool that stands for the pool of the other process; or, for virtual memory, a resource of the
            device that the memory is on, whose options say which devices may use the buffer.
        ipc_descriptor : IPCBufferDescriptor or VirtualMemoryIPCBufferDescriptor
            What the other process has from :attr:`ipc_descriptor`. Take it from processes that you trust only.
        stream : Stream, optional
            The buffer is unmapped in the order of this stream. Default is the default stream; for virtual memory, all
            work of the device's context.

        Returns
        -------
        Buffer
            The memory. Importing the same buffer again gives another buffer of the same memory.

        Raises
        ------
        RuntimeError
            If the pool is not a mapped one, or is closed; or the resource of virtual memory is not for sharing.
        ValueError
            If the descriptor claims more memory than there is, or names memory of another pool or device.
        CUDAError
            If the descriptor does not name memory of that pool, or the driver does not import it.
        """
        import_buffer: Callable[..., Buffer] | None = getattr(mr, "_import_buffer", None)
        if import_buffer is not None:
            return import_buffer(ipc_descriptor, stream)
        if not isinstance(mr, IPCPool):
            raise TypeError(
                "mr must be a DeviceMemoryResource, a PinnedMemoryResource or a VirtualMemoryResource, not "
                f"{type(mr).__name__}"
            )
        if not isinstance(ipc_descriptor, IPCBufferDescriptor):
            raise TypeError(f"ipc_descriptor must be an IPCBufferDescriptor, not {type(ipc_descriptor).__name__}")
        if mr._share is None or not mr._share.is_mapped:
            raise RuntimeError(f"buffers are imported from the pool of another process, and {mr!r} is of this one")
        ipc_descriptor._check_pool(mr._share.uuid)
        queue = stream_or_default(stream, "Buffer.from_ipc_descriptor")
        size = ipc_descriptor.size
        self = make(Buffer, lib.ccc_buffer_import, mr._c_handle, queue._c_handle, ipc_descriptor._payload, size)
        if self is None:
            status = lib.ccc_last_status()
            if status == lib.CCC_TOO_LARGE:
                raise ValueError(f"the descriptor claims {size} bytes, which is more than the memory that it names")
            if status == lib.CCC_CLOSED and not lib.ccc_is_open(mr._c_handle):
                raise RuntimeError(f"this {type(mr).__name__} is closed")
            raise queue._failure(status)
        self._size = size
        self._mr = mr
        self._descriptor = ipc_descriptor
        if queue._owner is not None:
            self._keep = queue
        return self

    def get_ipc_descriptor(self) -> IPCBufferDescriptor:
        """Return :attr:`ipc_descriptor`.

        Returns
        -------
        IPCBufferDescriptor
            What another process imports the buffer by.

        Raises
        ------
        RuntimeError
            If the buffer is closed, or of no pool for other processes.
        ValueError
            If it has no memory, or is a slice.
        CUDAError
            If the driver does not export it.
        """
        if not (isinstance(self._mr, IPCPool) and self._mr.is_ipc_enabled):
            raise RuntimeError("this Buffer is not for other processes: allocate it from a pool with ipc_enabled=True")
        descriptor: IPCBufferDescriptor | None = getattr(self, "_descriptor", None)
        if self.is_closed and not (descriptor and self._mr.is_mapped):  # an imported one ends elsewhere
            raise self._failure(lib.CCC_CLOSED)
        if descriptor:
            return descriptor
        if self._size == 0:
            raise ValueError("a buffer of 0 bytes has no memory to share")
        self._mr.allocation_handle  # noqa: B018  # the driver describes memory of pools that were exported before, alone
        payload = ffi.new("char[]", PAYLOAD_BYTES)
        status = lib.ccc_buffer_export(self._c_handle, payload)
        if status:
            raise self._failure(status)
        self._descriptor = IPCBufferDescriptor._create(seal(bytes(ffi.buffer(payload))), self._size, self._mr.uuid)
        return self._descriptor

    def _copy_to_new(self, stream: Stream, attributes: Any, what: str) -> Buffer:
        """Return a new buffer from the same resource, and copy this one into it."""
        if self._mr is None:
            raise ValueError("this buffer has no memory resource to take a destination from: give dst")
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        if attributes is not None:
            with InUse(stream):
                status = lib.ccc_copy_check(stream._c_handle, [attributes], 1, False)
            if status:
                raise copy_failure(status, what, stream)
        made: Buffer = self._mr.allocate(self._size, stream=stream)
        try:
            copy(made, self, stream, attributes, what)
        except BaseException:
            made.close()
            raise
        return made

    def _part(self, start: int, size: int) -> Buffer:
        """Return a slice, in bounds."""
        part = make(self._SLICE, lib.ccc_buffer_slice, self._c_handle, start, size)
        if part is None:
            raise self._failure(lib.ccc_last_status())
        part._size = size
        part._mr = self._mr
        part._whole = self._whole if isinstance(self, BufferSlice) else self
        return part

    @property
    def ipc_descriptor(self) -> IPCBufferDescriptor:
        """What another process imports this buffer by, with :meth:`from_ipc_descriptor`.

        An imported buffer has the descriptor that it was imported by, also after :meth:`close`: the memory is the other
        process's.

        Raises
        ------
        RuntimeError
            If the buffer is not of a pool with ``ipc_enabled``, or is of this process and closed.
        """
        return self.get_ipc_descriptor()

    @property
    def is_mapped(self) -> bool:
        """Whether the memory is another process's."""
        return isinstance(self._mr, IPCPool) and self._mr.is_mapped

    @property
    def owner(self) -> object | None:
        """The object that the memory belongs to, if :meth:`from_handle` was given one."""
        return None

    @property
    def _is_read_only(self) -> bool:
        """Whether devices may only read the memory."""
        return False


class BufferSlice(Buffer):
    """A part of a buffer whose memory a C handle gives back, when the last of the whole and its slices is closed."""

    __slots__ = ()

    _NAME: ClassVar[str] = "Buffer"
    _whole: Buffer  # keeps what Python must keep for the memory

    @property
    def _stream_owner(self) -> object:
        """What owns the stream of the whole."""
        return self._whole._stream_owner

    @property
    def _is_read_only(self) -> bool:
        return self._whole._is_read_only

    def _keep_stream(self, stream: Stream) -> None:
        """Keep the owner of a foreign stream as long as the memory of the whole."""
        self._whole._keep = stream
        refer_with_memory(self, stream)

    def get_ipc_descriptor(self) -> IPCBufferDescriptor:
        """Refuse: only whole allocations can be shared."""
        raise ValueError("a slice has no descriptor: share the whole buffer, and slice it in the other process")


Buffer._SLICE = BufferSlice


class ForeignBuffer(Buffer):
    """Memory that Python gives back: through a resource's ``deallocate``, or by dropping its owner."""

    __slots__ = ("_memory_owner",)

    _NAME: ClassVar[str] = "Buffer"
    _memory_owner: MemoryOwner

    def __del__(self, _close_once: Any = _close_once, _release_object: Any = _release_object) -> None:
        try:
            memory_owner = self._memory_owner
        except AttributeError:
            return
        try:
            if _close_once(self):
                memory_owner.release_in_cleanup()
        finally:
            if _release_object is not None:
                _release_object(self)

    def close(self, stream: IsStreamType | None = None) -> None:
        """Give the memory back. Closing twice is allowed."""
        release_deleted_tensors()
        if stream is not None and not self.is_closed:
            self.set_deallocation_stream(stream)
        if _close_once(self):  # not closed before, perhaps by another thread
            self._memory_owner.release()

    def set_deallocation_stream(self, stream: IsStreamType) -> None:
        """Change the stream that the resource's ``deallocate`` gets."""
        queue = accept_stream(stream, "Buffer.set_deallocation_stream")
        Buffer.set_deallocation_stream(self, queue)
        self._memory_owner.stream = queue

    def fill(self, value: int | Any, width: int | None = None, *, stream: IsStreamType) -> None:
        """Fill the memory with a repeated value. See :meth:`Buffer.fill`."""
        if not self.is_closed and not self.is_device_accessible:
            raise ValueError("Buffer.fill needs memory that a device can use, not ordinary memory of the host")
        Buffer.fill(self, value, width, stream=stream)

    def _retain_memory(self) -> Callable[[], None]:
        self._memory_owner.retain()
        return self._memory_owner.release_in_cleanup

    def _part(self, start: int, size: int) -> Buffer:
        self._memory_owner.retain()
        part = make(type(self), lib.ccc_buffer_slice, self._c_handle, start, size)
        if part is None:
            status = lib.ccc_last_status()
            self._memory_owner.release_in_cleanup()
            raise self._failure(status)
        part._size = size
        part._mr = self._mr
        part._memory_owner = self._memory_owner
        return part

    @property
    def _python_owned(self) -> bool:
        return self._mr is not None or self._memory_owner.owner is not None

    @property
    def owner(self) -> object | None:
        """The object that the memory belongs to, if any."""
        return None if self.is_closed else self._memory_owner.owner


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
    release_deleted_tensors()
    queue = None if stream is None else accept_stream(stream, "from_handle")
    address = 0 if ptr is None else address_of(ptr)
    size = whole_size(size)
    if address + size > 2**64:
        raise OverflowError(f"{size} bytes from {address:#x} on do not fit in 64-bit addresses")
    self = cls._made_by(lib.ccc_buffer_borrow, address, size)
    self._size = size
    self._mr = mr
    self._memory_owner = MemoryOwner(self._c_handle, size, mr, owner)
    if queue is not None:
        try:
            self.set_deallocation_stream(queue)
        except BaseException:
            self._memory_owner._mr = None  # the memory stays the caller's
            raise
    return self


def copy(dst: Buffer, src: Buffer, stream: Stream, attributes: Any, what: str) -> None:
    """Copy a buffer into another; ``what`` is the operation."""
    if dst._size != src._size:
        raise ValueError(f"the sizes differ: {src._size} bytes do not fit {dst._size}")
    if attributes is None:
        status = _copy(dst._c_handle, src._c_handle, stream._c_handle)
    else:
        status = lib.ccc_copy_with(dst._c_handle, src._c_handle, stream._c_handle, attributes)
    if status:
        raise copy_failure(status, what, stream, dst, src)
