# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Who can hand which array to whom: producers, consumers, and what becomes of every pair of them.

    python tests/support/conformance.py     print the matrix as a table in Markdown, for docs/interoperability.md

The tests in ``test_conformance.py`` run the same pairs, one test for each type and layout. In each pair one side is of
this package. What arrives is compared byte by byte.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from cuda_core_cffi import Buffer, Device, LegacyPinnedMemoryResource, Stream, ffi, handle_return, lib
from cuda_core_cffi._arrays.layout import make_layout
from cuda_core_cffi._memory.dlpack import CPU
from cuda_core_cffi.utils import StridedMemoryView

SHAPE = (3, 4)
VALUES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)  # exact even in 8-bit floats
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
WIDE_UNSIGNED = ("uint16", "uint32", "uint64")
COMMON = (*INTEGERS, "float16", "float32", "float64", "complex64", "complex128")
NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
DTYPES = (*COMMON, "bool", *NARROW)
USUAL = "float32"
OF_ONE_ARRAY = re.compile(r", array: <[^<>]*>")  # JAX shows in its messages what it was given

# From the base array, of any library with NumPy's way of indexing.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda base: base,
    "F": lambda base: base.T,
    "strided": lambda base: base[:, ::2],
    "offset": lambda base: base[1:, 1:],
    "empty": lambda base: base[:0],
    "scalar": lambda base: base[1:2, 1:2].reshape(()),
    "broadcast": lambda base: broadcast(base[:1]),
    "negative": lambda base: base[::-1],
}


class NotApplicable(Exception):
    """The producer has no such arrays."""


class Refused(Exception):
    """One of the two said no; the text says why. ``by_us`` tells whether this package did."""

    def __init__(self, reason: str, by_us: bool) -> None:
        super().__init__(reason)
        self.by_us = by_us


class Cell(NamedTuple):
    """One array on its way.

    Attributes
    ----------
    producer, consumer : str
        From whom to whom.
    dtype, layout : str
        What it is like.
    """

    producer: str
    consumer: str
    dtype: str
    layout: str


class Side(NamedTuple):
    """A producer or a consumer.

    Attributes
    ----------
    ours : bool
        Whether it is of this package.
    library : str or None
        The library that must be there.
    memory : tuple of str
        Where the producer's arrays are, or where a consumer takes them from.
    handle : callable
        Of a producer: takes the NumPy array to start from and a layout, returns the array. Of a consumer: takes the
        array and the number of a stream, returns shape and content.
    sure : callable
        Of a consumer: takes type and layout, and tells whether it has to take such an array from this memory.
    """

    ours: bool
    library: str | None
    memory: tuple[str, ...]
    handle: Callable[..., Any]
    sure: Callable[[str, str], bool] = lambda dtype, layout: True


def broadcast(row: Any) -> Any:
    """Return one row as three, whose stride is 0."""
    if hasattr(row, "expand"):
        return row.expand(SHAPE)
    return importlib.import_module(type(row).__module__.partition(".")[0]).broadcast_to(row, SHAPE)


def numpy_array(dtype: str) -> Any:
    """Return the values as a NumPy array."""
    try:
        kind = numpy.dtype(dtype)
    except TypeError:
        try:
            kind = numpy.dtype(getattr(importlib.import_module("ml_dtypes"), dtype))
        except ImportError:
            raise NotApplicable("ml_dtypes is not installed") from None
    return numpy.array(VALUES).astype(kind).reshape(SHAPE)


@functools.cache
def device() -> Device:
    """Return device 0, current in this thread."""
    device = Device(0)
    device.set_current()
    return device


@functools.cache
def working_stream() -> Stream:
    """Return the stream that fills the memory of our own arrays."""
    return device().create_stream()


# Producers


def from_numpy(base: Any, layout: str) -> Any:
    return LAYOUTS[layout](base)


def from_bytes(wrap: Callable[[bytearray], Any], base: Any, layout: str) -> Any:
    if (base.dtype.name, layout) != ("uint8", "C"):
        raise NotApplicable("bytes only")
    return wrap(bytearray(base.tobytes()))


def memory_of(kind: str, data: bytes) -> Buffer:
    """Return a buffer of a kind that holds data."""
    stream = working_stream()
    if kind == "pageable":
        memory = ffi.new("char[]", data)
        return Buffer.from_handle(int(ffi.cast("uintptr_t", memory)), len(data), owner=memory)
    if kind == "managed":
        buffer = managed_memory(len(data))
    else:
        pinned = LegacyPinnedMemoryResource().allocate(len(data))
        ffi.buffer(ffi.cast("char *", pinned.handle), len(data))[:] = data
        if kind == "pinned":
            return pinned
        buffer = device().allocate(len(data), stream)
        buffer.copy_from(pinned, stream=stream)
        stream.sync()
        pinned.close()
        return buffer
    ffi.buffer(ffi.cast("char *", buffer.handle), len(data))[:] = data
    return buffer


class ManagedMemory:
    """Managed memory, until nobody needs it."""

    def __init__(self, size: int) -> None:
        pointer = ffi.new("CUdeviceptr *")
        assert lib.cuMemAllocManaged(pointer, size, lib.CU_MEM_ATTACH_GLOBAL) == 0
        self.address = int(pointer[0])

    def __del__(self) -> None:
        lib.cuMemFree(self.address)


def managed_memory(size: int) -> Buffer:
    """Return a buffer of managed memory."""
    device()
    owner = ManagedMemory(size)
    return Buffer.from_handle(owner.address, size, owner=owner)


def from_our_buffer(kind: str, base: Any, layout: str) -> Buffer:
    if (base.dtype.name, layout) != ("int8", "C"):
        raise NotApplicable("signed bytes only")
    return memory_of(kind, base.tobytes())


def from_our_view(kind: str, base: Any, layout: str) -> StridedMemoryView:
    array = LAYOUTS[layout](base)
    size = base.itemsize
    offset = (array.ctypes.data - base.ctypes.data) // size if array.size else 0
    strides = tuple(stride // size for stride in array.strides)
    whole = StridedMemoryView.from_buffer(memory_of(kind, base.tobytes()), (base.size,), dtype=base.dtype)
    return whole.view(make_layout(array.shape, strides, size, offset))


def from_torch(where: str, base: Any, layout: str) -> Any:
    torch = importlib.import_module("torch")
    kind = getattr(torch, base.dtype.name, None)
    if kind is None or layout == "negative":
        raise NotApplicable(f"torch has no {base.dtype.name if kind is None else 'negative strides'}")
    if where == "cuda" and not torch.cuda.is_available():
        raise NotApplicable("no CUDA in this build of torch")
    return LAYOUTS[layout](torch.tensor(VALUES).to(kind).reshape(SHAPE).to(where))


def from_cupy(base: Any, layout: str) -> Any:
    cupy = importlib.import_module("cupy")
    if base.dtype.name in NARROW:
        raise NotApplicable(f"cupy has no {base.dtype.name}")
    return LAYOUTS[layout](cupy.asarray(base))


def from_numba(base: Any, layout: str) -> Any:
    cuda = importlib.import_module("numba.cuda")
    if base.dtype.name in NARROW or layout in ("empty", "broadcast", "negative", "scalar"):
        raise NotApplicable(f"numba's device arrays have no {base.dtype.name} or {layout}")
    if layout == "F":
        return cuda.to_device(LAYOUTS[layout](base))  # its arrays do not transpose without compiling a kernel
    return LAYOUTS[layout](cuda.to_device(base))


def from_jax(platform: str, base: Any, layout: str) -> Any:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or it takes most of the GPU's memory
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    if layout not in ("C", "empty", "scalar"):
        raise NotApplicable("arrays of jax are dense")
    try:
        target = jax.devices(platform)[0]
    except RuntimeError:
        raise NotApplicable(f"no {platform} in this build of jax") from None
    array = jax.device_put(LAYOUTS[layout](base), target)
    array.block_until_ready()
    return array


PRODUCERS = {
    "numpy": Side(False, "numpy", ("pageable",), from_numpy),
    "bytearray": Side(False, None, ("pageable",), functools.partial(from_bytes, lambda data: data)),
    "memoryview": Side(False, None, ("pageable",), functools.partial(from_bytes, memoryview)),
    "ctypes array": Side(
        False, None, ("pageable",),
        functools.partial(from_bytes, lambda data: (ctypes.c_ubyte * len(data)).from_buffer(data)),
    ),
    "torch cpu": Side(False, "torch", ("pageable",), functools.partial(from_torch, "cpu")),
    "torch cuda": Side(False, "torch", ("device",), functools.partial(from_torch, "cuda")),
    "cupy": Side(False, "cupy", ("device",), from_cupy),
    "numba": Side(False, "numba.cuda", ("device",), from_numba),
    "jax cpu": Side(False, "jax", ("pageable",), functools.partial(from_jax, "cpu")),
    "jax cuda": Side(False, "jax", ("device",), functools.partial(from_jax, "cuda")),
    **{
        f"{what}, {kind}": Side(True, None, (kind,), functools.partial(make, kind))
        for what, make in (("Buffer", from_our_buffer), ("StridedMemoryView", from_our_view))
        for kind in ("device", "managed", "pinned", "pageable")
    },
}  # fmt: skip


# Consumers


def content_of(view: StridedMemoryView) -> tuple[tuple[int, ...], bytes]:
    """Return shape and content of what a view shows, read without the view's own copies."""
    layout = view._layout
    low, high = layout.offset_bounds
    low, high = low - layout.slice_offset, high - layout.slice_offset
    size = (high - low + 1) * layout.itemsize
    data = bytearray(size)
    start = view.ptr + low * layout.itemsize
    if size and view.is_device_accessible:
        working_stream().sync()
        handle_return((lib.cuMemcpyDtoH(ffi.from_buffer(data), start, size),))
    elif size:
        data[:] = ffi.buffer(ffi.cast("char *", start), size)
    whole = bytes(data) or bytes(layout.itemsize)
    item = f"V{layout.itemsize}"
    array = numpy.ndarray(view.shape, item, whole, -low * layout.itemsize, layout.strides_in_bytes)
    return view.shape, array.tobytes()


def to_view(array: Any, stream: int) -> tuple[tuple[int, ...], bytes]:
    return content_of(StridedMemoryView.from_any_interface(array, stream))


def to_numpy(array: Any, stream: int) -> tuple[tuple[int, ...], bytes]:
    seen = numpy.from_dlpack(array)
    return seen.shape, seen.tobytes()


def to_torch(array: Any, stream: int) -> tuple[tuple[int, ...], bytes]:
    torch = importlib.import_module("torch")
    if isinstance(array, StridedMemoryView) and min(array.strides or (), default=0) < 0:
        raise NotApplicable("torch 2.13 ends the process when it imports negative strides, from whomever")
    if array.__dlpack_device__()[0] != CPU and not torch.cuda.is_available():
        raise NotApplicable("no CUDA in this build of torch")
    seen = torch.from_dlpack(array)
    flat = seen.cpu().contiguous().reshape(-1)
    return tuple(seen.shape), flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def to_cupy(array: Any, stream: int) -> tuple[tuple[int, ...], bytes]:
    cupy = importlib.import_module("cupy")
    seen = cupy.from_dlpack(array)
    return seen.shape, cupy.asnumpy(seen).tobytes()


def to_numba(array: Any, stream: int) -> tuple[tuple[int, ...], bytes]:
    cuda = importlib.import_module("numba.cuda")
    seen = cuda.as_cuda_array(array)
    return seen.shape, seen.copy_to_host().tobytes()


def to_jax(array: Any, stream: int) -> tuple[tuple[int, ...], bytes]:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    seen = importlib.import_module("jax.dlpack").from_dlpack(array)
    return seen.shape, numpy.asarray(seen).tobytes()


EVERYWHERE = ("device", "managed", "pinned", "pageable")
CONSUMERS = {
    "StridedMemoryView": Side(True, None, EVERYWHERE, to_view),
    "numpy": Side(False, "numpy", EVERYWHERE[1:], to_numpy, lambda dtype, layout: dtype not in NARROW),
    "torch": Side(
        False, "torch", ("device", "pageable"), to_torch,
        lambda dtype, layout: dtype not in (*NARROW, *WIDE_UNSIGNED) and layout != "negative",
    ),
    "cupy": Side(
        False, "cupy", ("device",), to_cupy, lambda dtype, layout: dtype not in NARROW and layout != "negative"
    ),
    "numba": Side(False, "numba.cuda", (), to_numba),
    "jax": Side(
        False, "jax", ("device",), to_jax, lambda dtype, layout: dtype not in (*NARROW, "bool") and layout == "C"
    ),
}  # fmt: skip


# What becomes of them

# Each type in C order, and each other layout of one type.
KINDS = [*((dtype, "C") for dtype in DTYPES), *((USUAL, layout) for layout in LAYOUTS if layout != "C")]


def missing(cell: Cell) -> str | None:
    """Return which library is missing for a cell."""
    for side in (PRODUCERS[cell.producer], CONSUMERS[cell.consumer]):
        if side.library and importlib.util.find_spec(side.library.partition(".")[0]) is None:
            return side.library
        if side.library == "numba.cuda" and (problem := numba_problem()):
            return f"numba.cuda ({problem})"
    return None


@functools.cache
def numba_problem() -> str | None:
    """Tell why Numba cannot be used, even though it is installed: it is particular about its NumPy and its driver."""
    try:
        return None if importlib.import_module("numba.cuda").is_available() else "no driver that it can use"
    except (ImportError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def cells() -> list[Cell]:
    """Return every cell."""
    return [
        Cell(producer, consumer, dtype, layout)
        for producer, its in PRODUCERS.items()
        for consumer, whose in CONSUMERS.items()
        if its.ours or whose.ours
        for dtype, layout in KINDS
        if is_possible(producer, dtype, layout)
    ]  # fmt: skip


def is_possible(producer: str, dtype: str, layout: str) -> bool:
    """Leave out what no version of the producer could have."""
    if producer.startswith("Buffer"):
        return (dtype, layout) == ("int8", "C")
    if producer in ("bytearray", "memoryview", "ctypes array"):
        return (dtype, layout) == ("uint8", "C")
    return True


def is_sure(cell: Cell) -> bool:
    """Return whether nobody may refuse a cell."""
    producer, consumer = PRODUCERS[cell.producer], CONSUMERS[cell.consumer]
    if cell.producer in ("bytearray", "memoryview", "ctypes array"):
        return False
    if (cell.producer, cell.layout) == ("cupy", "negative"):
        return False  # CuPy 14.2 gives DLPack a stride of 2**62 - 1 for one of -1
    return producer.memory[0] in consumer.memory and consumer.sure(cell.dtype, cell.layout)


def run(cell: Cell, stream: int = -1) -> None:
    """Hand one array over.

    Raises
    ------
    NotApplicable
        If the producer has no such array.
    Refused
        If one of the two says no.
    AssertionError
        If something else than the array arrived.
    """
    device()
    base = numpy_array(cell.dtype)
    expected = LAYOUTS[cell.layout](base)
    array = PRODUCERS[cell.producer].handle(base, cell.layout)
    try:
        shape, content = CONSUMERS[cell.consumer].handle(array, stream)
    except NotApplicable:
        raise
    except Exception as error:
        raise Refused(
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", ours(error)
        ) from error
    if cell.producer.split(",")[0] in ("Buffer", "bytearray", "memoryview", "ctypes array"):
        expected = expected.reshape(-1)
    assert (shape, content) == (expected.shape, expected.tobytes())


def ours(error: Exception) -> bool:
    """Return whether this package raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and "cuda_core_cffi" in trace.tb_frame.f_globals.get("__name__", "")


def summary(producer: str, consumer: str) -> str:
    """Return the text of the table's cell for a pair."""
    pair = [cell for cell in cells() if cell[:2] == (producer, consumer)]
    if not pair:
        return ""
    if absent := missing(pair[0]):
        return f"{absent} not installed"
    passed, reasons = 0, collections.defaultdict(list)
    for cell in pair:
        what = cell.layout if cell.dtype == USUAL and cell.layout != "C" else cell.dtype
        try:
            run(cell)
            passed += 1
        except NotApplicable:
            pass
        except Refused as refusal:
            text = OF_ONE_ARRAY.sub("", str(refusal))
            reasons[text.partition(";")[0].partition(". ")[0]].append(what)  # its first clause
        except AssertionError:
            reasons["WRONG VALUES"].append(what)
    parts = [f"{passed} passed"] if passed else []
    for reason, whats in reasons.items():
        named = "all" if not passed and len(reasons) == 1 else ", ".join(whats)
        parts.append(f"refused ({named}): {reason}".replace("|", "\\|"))
    return "; ".join(parts) or "not applicable"


def main() -> int:
    """Print the table."""
    versions = []
    for name in ("numpy", "torch", "cupy", "numba", "jax"):
        if importlib.util.find_spec(name) is not None:
            versions.append(f"{name} {importlib.import_module(name).__version__}")
    print(f"On {device().name}, with {', '.join(versions)}.\n")
    print(f"| from \\ to | {' | '.join(CONSUMERS)} |")
    print("|---" * (len(CONSUMERS) + 1) + "|")
    for producer in PRODUCERS:
        print(f"| {producer} | {' | '.join(summary(producer, consumer) for consumer in CONSUMERS)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
