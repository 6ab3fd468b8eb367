# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory as others see it: where it is, and the protocols by which other libraries reach it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from cuda_core_cffi._core import calls
from cuda_core_cffi._core.errors import check_cleanup
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle, Use
from cuda_core_cffi._lifetime.references import Releaser
from cuda_core_cffi._memory.dlpack import export_buffer
from cuda_core_cffi._memory.resource import MemoryResource, dlpack_device

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

_identity = lib.ccc_identity


def export_failed(status: int, buffer: Any, **request: object) -> NoReturn:
    """Raise the exception for an export that failed."""
    raise buffer._failure(status)


class Exporter(calls.Memory, Handle):
    """Memory of which others are told where it is: the part of :class:`Buffer` that changes nothing."""

    __slots__ = ("_location", "_retained")

    _mr: MemoryResource | None
    _size: int
    _retained: dict[int, Releaser]  # uses of the memory that end with this object, by the C handle
    _location: tuple[int, bool, bool, bool]

    def __buffer__(self, flags: int, /) -> memoryview:
        """Return host-accessible memory as a writable memoryview of bytes.

        The memoryview keeps the memory, even past :meth:`close`.

        Raises
        ------
        BufferError
            If the host cannot access the memory, or the buffer is closed.
        """
        return show_bytes(self, flags)

    def __release_buffer__(self, buffer: memoryview, /) -> None:
        """Let go of a memoryview that :meth:`__buffer__` gave."""
        buffer.release()

    @calls.native(export_failed)
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Export the memory as a one-dimensional DLPack tensor of signed bytes.

        Parameters
        ----------
        stream : int, optional
            The consumer's stream, which is made to wait for this buffer's: 1 or None for the legacy default stream, 2
            for the per-thread one, -1 for no ordering, else the address of a stream.
        max_version : tuple of int, optional
            The newest version of DLPack that the consumer understands; None means before 1.0.
        dl_device : tuple of int, optional
            Where the consumer wants the memory, as DLPack's device type and ordinal: the buffer's own device, or
            ``(1, 0)`` for a copy in host memory.
        copy : bool, optional
            True for a copy, False for no copy on any account.

        Returns
        -------
        PyCapsule
            The tensor.

        Raises
        ------
        BufferError
            If the request cannot be met; the message says why.
        """
        found: CapsuleType = export_buffer(self, stream, max_version, dl_device, copy)
        return found

    @calls.native()
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and the ordinal."""
        return self._device_type()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as a one-dimensional array of bytes, for consumers of the CUDA Array Interface, version 3.

        Consumers keep this object, so from now on the memory stays until this object is collected, even past
        :meth:`close`.
        """
        if self.is_closed or not self.is_device_accessible:
            raise AttributeError("this buffer is closed or not accessible to devices: no __cuda_array_interface__")
        interface = self._array_interface(self._share())
        stream = lib.ccc_buffer_stream(self._c_handle)
        if stream:
            interface["stream"] = stream
        return interface

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Host-accessible memory as a one-dimensional array of bytes, for consumers other than NumPy.

        Consumers keep this object, so from now on the memory stays until this object is collected, even past
        :meth:`close`.
        """
        if self.is_closed or not self.is_host_accessible:
            raise AttributeError("this buffer is closed or not accessible to the host: no __array_interface__")
        return self._array_interface(self._share())

    @property
    def __array_struct__(self) -> CapsuleType:
        """Host-accessible memory as a one-dimensional array of bytes, for NumPy, in a capsule that keeps the memory."""
        if self.is_closed or not self.is_host_accessible:
            raise AttributeError("this buffer is closed or not accessible to the host: no __array_struct__")
        import numpy

        found: CapsuleType = numpy.asarray(HostBytes(self)).__array_struct__
        return found

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> NoReturn:
        """Refuse what NumPy cannot read. It takes host-accessible memory by the protocols above."""
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        raise TypeError(
            "NumPy cannot read the memory of a device: copy the Buffer to an array first, with "
            f"buffer.copy_to(numpy.empty({self._size}, numpy.uint8), stream=stream), and wait for the stream"
        )

    def _array_interface(self, address: int) -> dict[str, Any]:
        return {"version": 3, "shape": (self._size,), "typestr": "|u1", "data": (address, False), "strides": None}

    def _device_type(self) -> tuple[int, int]:
        """Return what DLPack calls the kind of memory."""
        mr = self._mr
        return dlpack_device(self) if mr is None else mr._dlpack_device or mr._find_dlpack_device(self)

    def _query(self) -> tuple[int, bool, bool, bool]:
        """Ask the driver, once, about memory that no resource describes well: device, by device and host, managed."""
        try:
            return self._location
        except AttributeError:
            pass
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        kind, device, managed = ffi.new("int *"), ffi.new("int *"), ffi.new("int *")
        status = lib.ccc_pointer_query(lib.ccc_buffer_base(self._c_handle), kind, device, managed)
        if status:
            raise self._failure(status)
        on_device = kind[0] == lib.CU_MEMORYTYPE_DEVICE
        known_to_driver = kind[0] != 0
        self._location = (
            max(device[0], -1),  # of page-locked memory, that of the context in which it was made
            known_to_driver,
            bool(managed[0]) or not on_device,
            bool(managed[0]),
        )
        return self._location

    def _retain_memory(self) -> Callable[[], None]:
        """Keep the memory, whether or not the buffer is closed, until the function returned is called."""
        use = calls.make(Use, lib.ccc_view, self._c_handle)
        if use is None:
            raise self._failure(lib.ccc_last_status())
        return functools.partial(end_use, use, self._stream_owner)

    def _share(self) -> int:
        """Keep the memory, whether or not the buffer is closed, as long as this object exists; return its address."""
        try:
            retained = self._retained
        except AttributeError:
            retained = self._retained = {}
        if self.c_handle not in retained:  # a buffer that has grown has another C handle
            retained[self.c_handle] = Releaser(self._retain_memory())
        return int(_identity(self._c_handle))  # the handle is 0 once another thread has closed the buffer

    @property
    def _python_owned(self) -> bool:
        """Whether Python gives the memory back, rather than the C handle."""
        return False

    @property
    def _stream_owner(self) -> object:
        """What owns the stream in whose order the memory goes back, where that is another library's; else None."""
        return getattr(self, "_keep", None)

    @property
    def _needs_python(self) -> bool:
        """Whether what keeps the memory must also keep something in Python, by :meth:`_retain_memory`."""
        return self._python_owned or self._stream_owner is not None

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._size

    @property
    def device_id(self) -> int:
        """The ordinal of the device that the memory is on, as its resource says; -1 for host memory.

        Of page-locked memory without a resource, that of the device in whose context it was allocated or registered.
        """
        return self._mr.device_id if self._mr is not None else self._query()[0]

    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can use the memory."""
        return self._mr.is_device_accessible if self._mr is not None else self._query()[1]

    @property
    def is_host_accessible(self) -> bool:
        """Whether host code can use the memory."""
        return self._mr.is_host_accessible if self._mr is not None else self._query()[2]

    @property
    def is_managed(self) -> bool:
        """Whether the driver moves the memory between host and device."""
        mr = self._mr
        if mr is None:
            return self._query()[3]
        if mr.is_managed or mr._IS_UNIFORM or self.is_closed:
            return mr.is_managed
        return mr.is_device_accessible and mr.is_host_accessible and self._query()[3]

    @property
    def memory_resource(self) -> MemoryResource | None:
        """The resource that the memory goes back to; None for borrowed memory."""
        return self._mr


class HostBytes(Releaser):
    """Keep the host-accessible memory of a buffer, for the array of NumPy that shows it.

    Parameters
    ----------
    buffer : Exporter
        The buffer.
    """

    def __init__(self, buffer: Exporter) -> None:
        super().__init__(buffer._retain_memory())
        self.__array_interface__ = buffer._array_interface(int(_identity(buffer._c_handle)))  # as in Exporter._share


def show_bytes(buffer: Exporter, flags: int = 0, /) -> memoryview:
    """Return the memory of a buffer as :meth:`Exporter.__buffer__` does."""
    if buffer.is_closed:
        raise BufferError("this Buffer is closed")
    if not buffer.is_host_accessible:
        raise BufferError(
            "the buffer protocol needs memory that the host can access; copy the buffer to pinned memory first"
        )
    address = _identity(buffer._c_handle)  # as in Exporter._share
    releaser = Releaser(buffer._retain_memory())
    memory = ffi.gc(ffi.cast("char *", address), lambda _: releaser.release())
    return memoryview(ffi.buffer(memory, buffer._size))


if sys.implementation.name == "pypy":
    # NumPy on PyPy (seen with 7.3.19) never releases a memoryview, and takes one of all types with __buffer__. So the
    # method is only found in instances: NumPy then goes by __array_struct__, and releases that.
    def find_buffer(self: Exporter, name: str) -> Callable[..., memoryview]:
        """Return the method ``__buffer__``."""
        if name == "__buffer__":
            return functools.partial(show_bytes, self)
        found: Callable[..., memoryview] = object.__getattribute__(self, name)  # raises again
        return found

    del Exporter.__buffer__
    Exporter.__getattr__ = find_buffer  # type: ignore[attr-defined]


def end_use(use: Use, stream_owner: object) -> None:
    """End a use of a buffer; the owner of its stream was kept as long."""
    if waiting := lib.ccc_use_end(use._c_handle):
        check_cleanup(waiting)
