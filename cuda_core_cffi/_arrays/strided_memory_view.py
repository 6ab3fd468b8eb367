# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Views of the arrays of any library."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cuda_core_cffi import _capsule
from cuda_core_cffi._arrays.interfaces import (
    NO_TENSOR,
    Reader,
    dlpack_reader,
    dlpack_readers,
    find_reader,
    read_array_interface,
    read_cuda_array_interface,
    read_method,
    readers,
)
from cuda_core_cffi._arrays.layout import _StridedLayout, make_layout
from cuda_core_cffi._arrays.strided_copy import byte_range, copy_view, host_copy
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.dtypes import check_itemsize, code_of, dtype_of, element_dtype, itemsize_of
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._lifetime.references import Releaser
from cuda_core_cffi._memory import Buffer, MemoryResource
from cuda_core_cffi._memory.dlpack import (
    ACCESSIBLE,
    ADDRESS,
    CPU,
    DEVICE,
    DEVICE_TYPE,
    DTYPE,
    NO_ORDERING,
    ON_DEVICE,
    OWNER,
    READ_ONLY,
    SHAPE,
    STRIDES,
    Exported,
    export_view,
    give_view,
    order,
    share_view,
)
from cuda_core_cffi._streams.stream import Stream
from cuda_core_cffi.typing import IsStreamType

if TYPE_CHECKING:
    from numpy import dtype as np_dtype
    from typing_extensions import CapsuleType

    from cuda_core_cffi._arrays.tensor_map import TensorMapDescriptor, TensorMapDescriptorOptions
    from cuda_core_cffi.typing import TensorMapInterleave, TensorMapL2Promotion, TensorMapOOBFill, TensorMapSwizzle
    from cuda_core_cffi.typing._option_dicts import TensorMapDescriptorOptionsDict

T = TypeVar("T")

_new = calls.new_object
_reader_of = readers.get
_dlpack_reader_of = dlpack_readers.get


class StridedMemoryView(Uncopyable):
    """Where an array lies in memory, whichever library it belongs to.

    A view copies nothing. It holds the array, and the memory with it, and says where it is, how it is laid out and who
    can access it. Make one with :meth:`from_any_interface`, or a more specific class method; inside a function,
    :func:`~cuda_core_cffi.utils.args_viewable_as_strided_memory` makes them from arguments.

    Parameters
    ----------
    obj : object
        The array.
    stream_ptr : int, optional
        As for :meth:`from_any_interface`.

    Notes
    -----
    Constructing a view directly is deprecated: use :meth:`from_any_interface`.

    A view that was made in the order of a stream passes that order on when it is exported in turn, so the stream has to
    live as long.

    Examples
    --------
    >>> StridedMemoryView.from_any_interface(numpy.zeros((6, 8))[:, ::2], -1).strides  # in elements
    (8, 2)
    """

    __slots__ = ("_bounds", "_cached_layout", "_obj", "_shared_capsule", "_source", "_stream")
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it shows memory of another object; make another view of that"
    _source: Any  # what a reader returned; once somebody has asked what it says, that
    _obj: object
    _stream: int  # the memory is ready in the order of this stream; -1 where nothing is known
    _cached_layout: _StridedLayout
    _bounds: tuple[int, int]  # the addresses between which `view` may look
    _shared_capsule: Any  # the capsule of a tensor that C code may borrow from the view
    __dlpack_c_exchange_api__: ClassVar[Any]

    def __init__(self, obj: object = None, stream_ptr: int | None = None) -> None:
        warnings.warn(
            "constructing a StridedMemoryView directly is deprecated: use StridedMemoryView.from_any_interface",
            DeprecationWarning,
            stacklevel=2,
        )
        self._source = find_reader(obj)(obj, stream_ptr)
        self._obj = obj
        self._stream = NO_ORDERING if stream_ptr is None else stream_ptr

    def __repr__(self) -> str:
        kind = type(self._obj)
        return (
            f"<StridedMemoryView ptr={self.ptr:#x} shape={self.shape} strides={self.strides} "
            f"dtype={self._dtype_name()} device_id={self.device_id} "
            f"is_device_accessible={self.is_device_accessible} readonly={self.readonly} "
            f"exporting_obj={kind.__module__}.{kind.__qualname__}>"
        )

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Export the array as a DLPack tensor.

        Parameters
        ----------
        stream : int, optional
            The consumer's stream, which is made to wait for the one that the view was made in the order of: 1 or None
            for the legacy default stream, 2 for the per-thread one, -1 for no ordering, else the address of a stream.
        max_version : tuple of int, optional
            The newest version of DLPack that the consumer understands; None means before 1.0.
        dl_device : tuple of int, optional
            Where the consumer wants the memory: the view's own device, or ``(1, 0)`` for a copy in host memory.
        copy : bool, optional
            True for a copy, which is possible on the host; False for no copy on any account.

        Returns
        -------
        PyCapsule
            The tensor. It keeps the memory.

        Raises
        ------
        BufferError
            If the request cannot be met; the message says why.
        """
        found: CapsuleType = export_view(self, stream, max_version, dl_device, copy)
        return found

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and the ordinal."""
        return self._info[DEVICE_TYPE], max(self._info[DEVICE], 0)

    @classmethod
    def from_dlpack(cls, obj: object, stream_ptr: int | None = None) -> StridedMemoryView:
        """Make a view of an object with ``__dlpack__``.

        Parameters
        ----------
        obj : object
            The array.
        stream_ptr : int
            The consumer's stream, as for :meth:`from_any_interface`.

        Returns
        -------
        StridedMemoryView
            The view.

        Raises
        ------
        BufferError
            If the object does not speak DLPack, or cannot export this array.
        """
        self = _new(cls)
        self._source = (_dlpack_reader_of(type(obj)) or dlpack_reader(obj))(obj, stream_ptr)
        self._obj = obj
        self._stream = stream_ptr  # type: ignore[assignment]  # no reader takes None
        return self

    @classmethod
    def from_cuda_array_interface(cls, obj: object, stream_ptr: int | None = None) -> StridedMemoryView:
        """Make a view of an object with ``__cuda_array_interface__``, version 3.

        Parameters
        ----------
        obj : object
            The array.
        stream_ptr : int
            The consumer's stream, as for :meth:`from_any_interface`.

        Returns
        -------
        StridedMemoryView
            The view. Its strides are None where the interface leaves them out, which means C order.

        Raises
        ------
        BufferError
            If the object does not have the interface, or a view cannot show what it describes.
        """
        return cls._read(read_cuda_array_interface, obj, stream_ptr)

    @classmethod
    def from_array_interface(cls, obj: object) -> StridedMemoryView:
        """Make a view of an object with ``__array_interface__``, such as a NumPy array of any dtype.

        Parameters
        ----------
        obj : object
            The array, in memory of the host.

        Returns
        -------
        StridedMemoryView
            The view. Its strides are None where the interface leaves them out, which means C order.

        Raises
        ------
        BufferError
            If the object does not have the interface, or a view cannot show what it describes.
        """
        return cls._read(read_array_interface, obj, NO_ORDERING)

    @classmethod
    def from_any_interface(cls, obj: object, stream_ptr: int | None = None) -> StridedMemoryView:
        """Make a view of an array, through the first protocol that it speaks.

        These are DLPack, the CUDA Array Interface and the array interface. NumPy arrays of a dtype that DLPack does not
        know are read through the array interface.

        Parameters
        ----------
        obj : object
            The array.
        stream_ptr : int
            The address of the stream that will work with the memory: it waits for what the producer's stream still
            does with it. -1 for no ordering. None is refused: whether it means a stream or none is unclear. Memory of
            the host needs no ordering, so there the stream may be any.

        Returns
        -------
        StridedMemoryView
            The view.

        Raises
        ------
        BufferError
            If the object speaks none of the protocols, or cannot export this array.
        """
        self = _new(cls)
        self._source = (_reader_of(type(obj)) or find_reader(obj))(obj, stream_ptr)
        self._obj = obj
        self._stream = stream_ptr  # type: ignore[assignment]  # no reader takes None
        return self

    @classmethod
    def from_buffer(
        cls,
        buffer: Buffer,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        *,
        itemsize: int | None = None,
        dtype: Any = None,
        is_readonly: bool = False,
    ) -> StridedMemoryView:
        """Make a view of a buffer as an array.

        Parameters
        ----------
        buffer : Buffer
            The memory. No stream waits for another: that is left to the caller.
        shape : tuple of int
            The extents.
        strides : tuple of int, optional
            The strides in elements. None means C order.
        itemsize : int, optional
            The size of an element in bytes; by default that of ``dtype``, and one of the two must be given.
        dtype : numpy.dtype, optional
            The type of the elements. Default None, unknown.
        is_readonly : bool, optional
            Whether to call the view read-only. Default False.

        Returns
        -------
        StridedMemoryView
            The view.

        Raises
        ------
        TypeError
            If elements of ``dtype`` hold Python objects.
        ValueError
            If the array does not fit in the buffer, an element would lie before its start, or ``itemsize`` is not that
            of ``dtype``.
        """
        if not isinstance(buffer, Buffer):
            raise TypeError(f"buffer must be a Buffer, not {type(buffer).__name__}")
        if buffer.is_closed:
            raise RuntimeError("this Buffer is closed")
        if dtype is not None:
            dtype = element_dtype(dtype)
        elif itemsize is None:
            raise ValueError("give itemsize or dtype: one of them says how large an element is")
        layout = _StridedLayout(shape, strides, dtype.itemsize if itemsize is None else itemsize)
        check_itemsize(dtype, layout.itemsize)
        needed = layout.required_size_in_bytes()
        if needed > buffer.size:
            raise ValueError(f"an array of {needed} bytes does not fit in a buffer of {buffer.size}")
        device_type, device_id = buffer.__dlpack_device__()
        self = _new(cls)
        if device_type not in ON_DEVICE:
            device_id = -1
        self._source = (
            buffer.handle, layout.shape, layout.strides, device_id, device_type != CPU, bool(is_readonly), device_type,
            dtype, NO_TENSOR,
        )  # fmt: skip
        self._obj = buffer
        self._stream = NO_ORDERING
        self._cached_layout = layout
        self._bounds = (buffer.handle, buffer.handle + buffer.size)
        return self

    def view(self, layout: _StridedLayout | None = None, dtype: Any = None) -> StridedMemoryView:
        """Return another view of the same memory.

        Parameters
        ----------
        layout : _StridedLayout, optional
            The new layout, whose offset counts from where this view's does. Default is this view's.
        dtype : numpy.dtype, optional
            The new type, of the layout's element size. Default is this view's.

        Returns
        -------
        StridedMemoryView
            The view. It keeps what this one keeps.

        Raises
        ------
        TypeError
            If elements of the new type hold Python objects.
        ValueError
            If the element sizes of layout and type differ, or the layout reaches beyond the buffer; beyond this view,
            where the memory is another library's.
        """
        own = self._layout
        if layout is None:
            layout = own
        elif not isinstance(layout, _StridedLayout):
            raise TypeError(f"layout must be a _StridedLayout, not {type(layout).__name__}")
        if dtype is not None:
            dtype = element_dtype(dtype)
            check_itemsize(dtype, layout.itemsize)
        elif (dtype := self._info[DTYPE]) is not None and layout.itemsize != own.itemsize:
            check_itemsize(self.dtype, layout.itemsize)
        start = self.ptr - own.slice_offset_in_bytes
        low, high = byte_range(start, layout)
        bounds = self._memory_bounds()
        if layout.volume and not bounds[0] <= low <= high <= bounds[1]:
            raise ValueError(
                f"the layout needs bytes {low - start} to {high - start}; the memory known has {bounds[0] - start} to "
                f"{bounds[1] - start}"
            )
        info = list(self._info)
        info[ADDRESS], info[SHAPE], info[STRIDES] = start + layout.slice_offset_in_bytes, layout.shape, layout.strides
        info[DTYPE] = dtype
        info[OWNER] = (info[OWNER],)  # kept, but not what the new view shows
        made = _new(type(self))
        made._source = tuple(info)
        made._obj = self._obj
        made._stream = self._stream
        made._cached_layout = layout
        made._bounds = bounds
        return made

    def copy_from(
        self,
        other: StridedMemoryView,
        stream: IsStreamType | None,
        allocator: MemoryResource | None = None,
        blocking: bool | None = None,
    ) -> None:
        """Copy the elements of another view into this one.

        Parameters
        ----------
        other : StridedMemoryView
            The source, of the same shape and type.
        stream : Stream or None
            The copy is made in the order of this stream, which waits for the streams that the views were made in the
            order of. None means the default stream.
        allocator : MemoryResource, optional
            Not used: no copy takes memory of its own.
        blocking : bool, optional
            Whether to wait until the copy is done. By default it does if one of the views is of memory that only the
            host can access. If it does not, such memory is kept until the copy is done; other memory is the caller's to
            keep.

        Raises
        ------
        ValueError
            If shapes or types differ, this view is read-only or several of its elements share memory, or, with a view
            that a device can access, the driver cannot do the copy in one call: after merging axes there must be a
            run of bytes that is adjacent in both views, repeated along at most two axes of positive stride. Nothing
            has been copied then.
        RuntimeError
            If the stream is being captured and the copy is blocking, or of memory that only the host can access.
        """
        if not isinstance(other, StridedMemoryView):
            raise TypeError(f"other must be a StridedMemoryView, not {type(other).__name__}")
        if allocator is not None and not isinstance(allocator, MemoryResource):
            raise TypeError(f"allocator must be a MemoryResource, not {type(allocator).__name__}")
        copy_view(self, other, stream, blocking)

    def copy_to(
        self,
        other: StridedMemoryView,
        stream: IsStreamType | None = None,
        allocator: MemoryResource | None = None,
        blocking: bool | None = None,
    ) -> None:
        """Copy the elements of this view into another: :meth:`copy_from`, seen from the source.

        Parameters
        ----------
        other : StridedMemoryView
            The destination.
        stream, allocator, blocking
            As for :meth:`copy_from`, which also tells what is raised.
        """
        if not isinstance(other, StridedMemoryView):
            raise TypeError(f"other must be a StridedMemoryView, not {type(other).__name__}")
        other.copy_from(self, stream, allocator, blocking)

    def as_tensor_map(
        self,
        box_dim: tuple[int, ...] | None = None,
        *,
        options: TensorMapDescriptorOptions | TensorMapDescriptorOptionsDict | None = None,
        element_strides: tuple[int, ...] | None = None,
        data_type: object | None = None,
        interleave: TensorMapInterleave | None = None,
        swizzle: TensorMapSwizzle | None = None,
        l2_promotion: TensorMapL2Promotion | None = None,
        oob_fill: TensorMapOOBFill | None = None,
    ) -> TensorMapDescriptor:
        """Return what kernels need to copy boxes of the array between global and shared memory.

        Parameters
        ----------
        box_dim : tuple of int, optional
            The extents of the box, in elements: 1 to 256 each, in the order of the shape.
        options : TensorMapDescriptorOptions, optional
            The box and everything else, instead of the other parameters.
        element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
            As for :class:`~cuda_core_cffi.TensorMapDescriptorOptions`.

        Returns
        -------
        TensorMapDescriptor
            An argument of kernels.

        Raises
        ------
        TypeError, ValueError
            If the array or an option cannot be described. The message says which number is wrong.
        RuntimeError
            If the view's buffer is closed.
        CUDAError
            If the device has no tensor maps: they came with compute capability 9.0.
        """
        given = element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
        return maker()(self, box_dim, options, given)

    @property
    def ptr(self) -> int:
        """The address of the first element."""
        info = self._source  # as in _info, which would cost as much again
        return (info if type(info) is tuple else self._info)[ADDRESS]  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        info = self._source
        return (info if type(info) is tuple else self._info)[SHAPE]  # type: ignore[no-any-return]

    @property
    def strides(self) -> tuple[int, ...] | None:
        """The strides, in elements; None means C order."""
        info = self._source
        return (info if type(info) is tuple else self._info)[STRIDES]  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np_dtype[Any] | None:
        """The ``numpy.dtype`` of the elements; None if a view of a buffer was given none.

        Raises
        ------
        BufferError
            If NumPy has no such type.
        ModuleNotFoundError
            If the type (bfloat16, the 8-bit floats) needs the package ml_dtypes, which is not installed.
        """
        info = self._source
        dtype = (info if type(info) is tuple else self._info)[DTYPE]
        found: np_dtype[Any] | None = dtype_of(dtype) if type(dtype) is int else dtype
        return found

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._info[SHAPE])

    @property
    def device_id(self) -> int:
        """The ordinal of the device that the memory is on; -1 for memory of the host."""
        return self._info[DEVICE]  # type: ignore[no-any-return]

    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can use the memory."""
        return self._info[ACCESSIBLE]  # type: ignore[no-any-return]

    @property
    def readonly(self) -> bool:
        """Whether the producer forbids writing."""
        return self._info[READ_ONLY]  # type: ignore[no-any-return]

    @property
    def exporting_obj(self) -> object:
        """The array, or the buffer, that the view is of."""
        return self._obj

    @property
    def _layout(self) -> _StridedLayout:
        """Shape, strides and the size of an element."""
        try:
            return self._cached_layout
        except AttributeError:
            pass
        dtype = self._info[DTYPE]
        itemsize = itemsize_of(dtype) if type(dtype) is int else dtype.itemsize
        self._cached_layout = make_layout(self.shape, self.strides, itemsize)
        return self._cached_layout

    @classmethod
    def _read(cls, read: Reader, obj: object, stream_ptr: int | None) -> StridedMemoryView:
        self = _new(cls)
        self._source = read(obj, stream_ptr)
        self._obj = obj
        self._stream = stream_ptr  # type: ignore[assignment]  # no reader takes None
        return self

    @property
    def _info(self) -> tuple[Any, ...]:
        """The description. That of a tensor is made when it is first asked for, which many a view never sees."""
        source = self._source
        if type(source) is not tuple:
            source = _capsule.describe(source)
            if isinstance(self._obj, Buffer):  # an export asks the buffer anew
                source = (*source[:OWNER], (source[OWNER],))
            self._source = source
        return source

    @property
    def _c_handle(self) -> Any:
        """The C handle of the buffer that the view is of, which C gets with every address; else NULL."""
        return self._obj._c_handle if isinstance(self._obj, Buffer) else ffi.NULL

    @property
    def _is_closed(self) -> bool:
        """Whether the view is of a buffer that has been closed."""
        return isinstance(self._obj, Buffer) and self._obj.is_closed

    def _dtype_name(self) -> object:
        try:
            return self.dtype
        except (BufferError, ModuleNotFoundError) as error:  # a repr must not raise
            return f"unknown ({error})"

    def _memory_bounds(self) -> tuple[int, int]:
        try:
            return self._bounds
        except AttributeError:
            return byte_range(self.ptr, self._layout)

    def _exported(self) -> Exported:
        """Return what a tensor of this view shows."""
        dtype = self._info[DTYPE]
        if dtype is None:
            raise BufferError("the view has no dtype, which a DLPack tensor needs: make it with one")
        code = dtype if type(dtype) is int else code_of(dtype)
        if self._is_closed:
            raise BufferError("this view's Buffer is closed")
        return Exported(
            self.ptr, self.__dlpack_device__(), code, self.shape, self._layout._explicit_strides(), self.readonly
        )

    def _keeper(self) -> tuple[Any, Callable[[], object] | None]:
        """Return what a tensor of this view has to keep: the C handle of a buffer, or what Python is to call."""
        if not isinstance(self._obj, Buffer):
            return ffi.NULL, functools.partial(id, self)
        return self._obj._c_handle, Releaser(self._obj._retain_memory()).release if self._obj._needs_python else None

    def _order(self, consumer: Stream) -> None:
        """Make a stream wait for the one in whose order the memory is ready."""
        if isinstance(self._obj, Buffer):
            order(self._obj, consumer)
        else:
            self._make_ready(consumer)

    def _make_ready(self, consumer: Stream) -> None:
        """Do the same, but leave the memory of a buffer to the caller."""
        if self._stream != NO_ORDERING and self._info[DEVICE_TYPE] in ON_DEVICE:
            status = lib.ccc_view_order_handle(consumer._c_handle, self._stream, self.device_id)
            if status:
                raise consumer._failure(status)

    _host_copy = host_copy

    # Addresses of tensors, for DLPack's C exchange API.
    _give_tensor = give_view
    _share_tensor = share_view

    @staticmethod
    def _from_tensor(owner: Any) -> StridedMemoryView:
        """Return a view of a tensor that came through DLPack's C exchange API."""
        self = _new(StridedMemoryView)
        self._source = owner
        self._obj = None
        self._stream = NO_ORDERING
        return self


def args_viewable_as_strided_memory(
    arg_indices: tuple[int, ...],
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let a function take arrays of any library.

    Inside the decorated function, the arguments named are objects whose ``view(stream_ptr)`` returns a
    :class:`StridedMemoryView`, and whose ``obj`` is the argument itself.

    Parameters
    ----------
    arg_indices : tuple of int
        The positions of the arguments.

    Returns
    -------
    callable
        The decorator. What it makes raises BufferError for an argument that speaks no array protocol, and IndexError
        when it is called with too few positional arguments.

    Examples
    --------
    >>> @args_viewable_as_strided_memory((0,))
    ... def address_of(array, stream):
    ...     return array.view(stream.handle).ptr
    """
    if not isinstance(arg_indices, tuple) or not all(type(index) is int for index in arg_indices):
        raise TypeError(f"arg_indices must be a tuple of int, not {arg_indices!r}")

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> T:
            viewable = list(args)
            for index in arg_indices:
                viewable[index] = _StridedMemoryViewProxy(viewable[index])
            return function(*viewable, **kwargs)

        return call

    return decorate


class _StridedMemoryViewProxy(Uncopyable):
    """An argument that can be viewed."""

    __slots__ = ("_reader", "obj")

    _NOT_COPIED_BECAUSE = "it stands for an argument of a call"

    def __init__(self, obj: object) -> None:
        self.obj = obj
        self._reader = find_reader(obj)

    def view(self, stream_ptr: int | None = None) -> StridedMemoryView:
        """Return :meth:`StridedMemoryView.from_any_interface` of the argument."""
        return StridedMemoryView._read(self._reader, self.obj, stream_ptr)


@functools.cache
def maker() -> Callable[..., TensorMapDescriptor]:
    """Return what makes tensor maps. Importing it each time would take half as long as a map."""
    from cuda_core_cffi._arrays.tensor_map import TensorMapDescriptor

    return TensorMapDescriptor._from_tiled


StridedMemoryView.__dlpack_c_exchange_api__ = _capsule.exchange_api(StridedMemoryView._from_tensor)
readers[StridedMemoryView] = read_method  # which knows the stream that a view is ordered after
