# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries, read through the protocols that they speak.

Each reader takes an object and the consumer's stream. It returns what owns the producer's tensor, which is described
when somebody asks (``include/python/ccc_capsule_read.h``), or, of an object that has no tensor, the description. Where
the memory is a device's, the consumer's stream waits for what the producer still does with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import index
from typing import Any

from cuda_core_cffi import _capsule
from cuda_core_cffi._core.dtypes import numpy_dtype
from cuda_core_cffi._core.errors import check, last_failure
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.integers import address_of
from cuda_core_cffi._memory.dlpack import CPU, DEVICE, NO_ORDERING, DLDeviceType

DLPACK_VERSION = (1, 0)
OLDEST_CAI = 3
LEGACY = 1
KNOWN_DEVICES = frozenset(map(int, DLDeviceType))
MOST_TYPES = 64  # some processes make types as they go
LAST_ADDRESS = (1 << 64) - 1
# The owner in the description of an array that no tensor shows: a tuple, of what is kept nevertheless. The dtype is
# NumPy's then, or None.
NO_TENSOR: tuple[object, ...] = ()

Reader = Callable[[Any, int | None], Any]

_order = lib.ccc_view_order
_own = _capsule.own
_own_numpy = _capsule.own_numpy
_import_exchanged = _capsule.import_exchanged
_is_simple = _capsule.is_simple

# Types whose instances are all read alike, which stay here: a process has a handful of array types.
readers: dict[type, Reader] = {}
dlpack_readers: dict[type, Reader] = {}


def find_reader(obj: Any) -> Reader:
    """Return what reads ``obj``: the first protocol that it speaks, of DLPack and the two array interfaces."""
    kind = type(obj)
    if reader := readers.get(kind):
        return reader
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        dlpack_readers[kind] = read_numpy_dlpack
        readers[kind] = read_numpy
        return read_numpy
    api = getattr(kind, "__dlpack_c_exchange_api__", None)
    if api is not None:
        reader = exchange_reader(api, hasattr(kind, "is_neg"))
        dlpack_readers[kind] = readers[kind] = reader
        return reader
    if hasattr(obj, "__dlpack__"):
        if not callable(getattr(kind, "__dlpack__", None)):  # not every instance has it
            return read_dlpack
        reader = LIBRARIES.get(str(kind.__module__).partition(".")[0], read_method)
        if len(readers) < MOST_TYPES:
            dlpack_readers[kind] = readers[kind] = reader
        return reader
    if hasattr(obj, "__cuda_array_interface__"):
        return read_cuda_array_interface
    if hasattr(obj, "__array_interface__"):
        return read_array_interface
    raise BufferError(
        f"{kind.__name__} cannot be viewed: it has none of __dlpack__, __cuda_array_interface__ and __array_interface__"
    )


def dlpack_reader(obj: Any) -> Reader:
    """Return what reads ``obj`` through DLPack, in Python's form of it or in C's."""
    reader = find_reader(obj)
    if reader is read_method or reader in LIBRARIES.values():  # even of a type that is not remembered
        return reader
    return dlpack_readers.get(type(obj), read_dlpack)


def read_numpy(obj: Any, stream_ptr: int | None) -> Any:
    """Read a NumPy array. What DLPack has no type for goes through the array interface."""
    if stream_ptr is None:
        raise ambiguous()
    try:
        return _own_numpy(obj.__dlpack__(max_version=DLPACK_VERSION))
    except (BufferError, TypeError):  # TypeError: NumPy before 2.1 takes no version
        return read_array_interface(obj)


def read_numpy_dlpack(obj: Any, stream_ptr: int | None) -> Any:
    """Read a NumPy array through DLPack and nothing else. It is on the host: nobody need ask where."""
    if stream_ptr is None:
        raise ambiguous()
    try:
        return _own_numpy(obj.__dlpack__(max_version=DLPACK_VERSION))
    except TypeError:
        return read_dlpack(obj, stream_ptr)


def read_dlpack(obj: Any, stream_ptr: int | None) -> Any:
    """Read what speaks DLPack."""
    if stream_ptr is None:
        raise ambiguous()
    try:
        export, device = obj.__dlpack__, obj.__dlpack_device__()
    except AttributeError:
        raise BufferError(
            f"{type(obj).__name__} does not speak DLPack: it needs __dlpack__ and __dlpack_device__"
        ) from (None)
    try:
        device_type = device[0]
    except (LookupError, TypeError):
        raise BufferError(f"__dlpack_device__ of {type(obj).__name__} returned no device, but {device!r}") from None
    if isinstance(device_type, int) and device_type not in KNOWN_DEVICES:
        raise BufferError(f"the memory is on DLPack device type {device_type:d}, which is neither the host nor CUDA")
    return request_tensor(export, None if device_type == CPU else consumer(stream_ptr))


def read_device_dlpack(obj: Any, stream_ptr: int | None) -> Any:
    """Read what speaks DLPack and always is on a device. CuPy would ask the driver for that; nobody else need."""
    if stream_ptr is None:
        raise ambiguous()
    return request_tensor(obj.__dlpack__, consumer(stream_ptr))


def request_tensor(export: Callable[..., Any], stream: int | None) -> Any:
    """Take the tensor that ``__dlpack__`` gives for a stream."""
    try:
        capsule = export(stream=stream, max_version=DLPACK_VERSION)
    except TypeError:  # a producer older than DLPack 1.0
        capsule = export(stream=stream)
    return _own(capsule)


read_method: Reader = _capsule.reader(read_dlpack, False)
"""The same as :func:`read_dlpack`, for types all of whose instances have ``__dlpack__``."""

read_device_method: Reader = _capsule.reader(read_device_dlpack, True)
"""The same as :func:`read_device_dlpack`, likewise."""


def read_jax(obj: Any, stream_ptr: int | None) -> Any:
    """Read an array of JAX, which takes -1 for the address of a stream: the legacy default stream is ordered for it."""
    return read_method(obj, LEGACY if stream_ptr == NO_ORDERING else stream_ptr)


# Types of these packages with readers of their own.
LIBRARIES: dict[str, Reader] = {"cupy": read_device_method, "jax": read_jax, "jaxlib": read_jax}


def exchange_reader(api: Any, is_torch: bool) -> Reader:
    """Return what reads the objects of a type with DLPack's C exchange API, which leaves the order of streams to us.

    PyTorch may export tensors yet to be negated or conjugated, which are refused here. Only complex tensors can be
    conjugated. Negated ones are parts of such, and so have no stride of 1; the exceptions take ``torch.as_strided``.
    """
    refuse = refuse_lazy if is_torch else None

    def read(obj: Any, stream_ptr: int | None) -> Any:
        if stream_ptr is None:
            raise ambiguous()
        stream = None
        try:
            tensor = _import_exchanged(api, obj)
            if stream_ptr != NO_ORDERING:
                stream = _capsule.work_stream(api, tensor)
        except Exception:  # what the type cannot export: its __dlpack__ says why in Python's terms
            tensor = read_dlpack(obj, stream_ptr)
        if stream is not None:
            check(_order(consumer(stream_ptr), stream, _capsule.describe(tensor)[DEVICE]))
        if refuse is not None and not _is_simple(tensor):
            refuse(obj)
        return tensor

    return _capsule.reader(read, refuse, api)


def refuse_lazy(tensor: Any) -> None:
    """Refuse a tensor of PyTorch that is yet to be negated or conjugated."""
    if tensor.is_conj() or tensor.is_neg():
        raise BufferError("the tensor is not in memory as it reads: call resolve_neg() and resolve_conj() first")


def read_cuda_array_interface(obj: Any, stream_ptr: int | None) -> Any:
    """Read what has the CUDA Array Interface, version 3 or newer."""
    if stream_ptr is None:
        raise ambiguous()
    interface = interface_of(obj, "__cuda_array_interface__")
    if interface["version"] < OLDEST_CAI:
        if hasattr(type(obj), "__dlpack_c_exchange_api__"):  # PyTorch: what version 2 leaves out, DLPack says
            return find_reader(obj)(obj, stream_ptr)
        raise BufferError(
            f"the CUDA Array Interface of {type(obj).__name__} has version {interface['version']}; 3 or newer is needed"
        )
    address, shape, strides, readonly, dtype = read_interface(obj, interface)
    found = lib.ccc_view_locate(address)
    if found < 0:
        raise last_failure()
    device_id, device_type = found >> 8, found & 0xFF
    producer = interface.get("stream")
    if producer == 0:
        raise BufferError(
            "stream 0 in a CUDA Array Interface is ambiguous: 1 is the legacy default stream, 2 the per-thread one"
        )
    if producer is not None and stream_ptr != NO_ORDERING:
        check(_order(consumer(stream_ptr), producer, device_id))
    return address, shape, strides, device_id, True, readonly, device_type, dtype, NO_TENSOR


def read_array_interface(obj: Any, stream_ptr: int | None = None) -> tuple[Any, ...]:
    """Read what has NumPy's array interface. It is memory of the host: there is no stream to wait for."""
    address, shape, strides, readonly, dtype = read_interface(obj, interface_of(obj, "__array_interface__"))
    return address, shape, strides, -1, False, readonly, CPU, dtype, NO_TENSOR


def ambiguous() -> BufferError:
    """Return the error for a stream of None."""
    return BufferError("stream_ptr=None is ambiguous: give the consumer's stream, or -1 for no ordering")


def consumer(stream_ptr: Any) -> int:
    """Return the consumer's stream as DLPack numbers it; 0 is the legacy default stream."""
    if type(stream_ptr) is int and stream_ptr >= NO_ORDERING:
        return stream_ptr or LEGACY
    return address_of(stream_ptr, "stream") or LEGACY


def interface_of(obj: Any, name: str) -> dict[str, Any]:
    """Return one of the array interfaces, or raise BufferError if it is missing, not a whole one, or masks elements."""
    try:
        interface: dict[str, Any] = getattr(obj, name)
    except AttributeError as error:
        raise BufferError(f"{type(obj).__name__} has no {name}") from error
    if not isinstance(interface, dict):
        raise BufferError(f"the {name} of {type(obj).__name__} is no dict, but {interface!r}")
    missing = [key for key in ("version", "shape", "typestr") if key not in interface]
    if missing:
        raise BufferError(f"the {name} of {type(obj).__name__} does not say its {' and '.join(missing)}")
    if interface.get("mask") is not None:
        raise BufferError(f"the {name} of {type(obj).__name__} has a mask, which a view cannot show")
    return interface


def read_interface(
    obj: Any, interface: dict[str, Any]
) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, bool, Any]:
    """Return address, shape, strides in elements, whether it is read-only, and dtype from either interface."""
    data = interface.get("data")
    if not isinstance(data, tuple) or len(data) != 2:
        raise BufferError(f"the array interface of {type(obj).__name__} gives no address: its data is {data!r}")
    dtype = interface_dtype(obj, interface)
    strides = interface.get("strides")
    if strides is not None:
        strides = tuple([element_stride(index(stride), dtype.itemsize) for stride in strides])
    shape = tuple([index(extent) for extent in interface["shape"]])
    if shape and min(shape) < 0:
        raise ValueError(f"an extent is negative: {shape}")
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"{len(strides)} strides for {len(shape)} dimensions")
    address = data[0] or 0
    if type(address) is not int or not 0 <= address <= LAST_ADDRESS:
        address = address_of(address)
    return address, shape, strides, bool(data[1]), dtype


def element_stride(stride: int, itemsize: int) -> int:
    """Return a stride in bytes as one in elements."""
    count, rest = divmod(stride, itemsize)
    if rest:
        raise BufferError(f"a stride of {stride} bytes is not a multiple of the item size, {itemsize}")
    return count


def interface_dtype(obj: Any, interface: dict[str, Any]) -> Any:
    """Return the dtype that an array interface describes."""
    typestr, description = interface["typestr"], interface.get("descr")
    if not isinstance(typestr, str):  # NumPy takes None for a type
        raise BufferError(f"the typestr of {type(obj).__name__} is no string, but {typestr!r}")
    dtype = getattr(obj, "dtype", None)
    plain = plain_dtype(typestr) if type(typestr) is str else None
    if plain is not None and (dtype is None or dtype is plain):
        return plain
    if not (isinstance(dtype, dtype_class()) and string_of(dtype) == typestr):  # else it says more than this can
        dtype = numpy_dtype(typestr)
        if dtype.kind == "V" and description and (len(description) > 1 or tuple(description[0][:1]) != ("",)):
            dtype = numpy_dtype(description)
        string_of(dtype)
    return dtype


@functools.lru_cache
def plain_dtype(typestr: str) -> Any:
    """Return the dtype of this name; None if that is not all there is to say of it, as of another library's type."""
    try:
        dtype = numpy_dtype(typestr)
    except TypeError:
        return None
    if dtype.kind == "V":
        return None
    string_of(dtype)
    return dtype


@functools.lru_cache
def string_of(dtype: Any) -> str:
    """Return how an array interface names a dtype, or raise BufferError if arrays of it cannot be shared."""
    if dtype.hasobject:
        raise BufferError(f"dtype {dtype} holds Python objects, which nobody else can use")
    if dtype.itemsize == 0:
        raise BufferError(f"elements of dtype {dtype} have no size")
    return str(dtype.str)


@functools.cache
def dtype_class() -> type:
    """Return ``numpy.dtype``."""
    import numpy

    return numpy.dtype
