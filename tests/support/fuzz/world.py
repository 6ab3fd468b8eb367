# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the lines of a sequence refer to besides the public API: kernels, callbacks, resources, broken producers.

Nothing here can harm a GPU: the kernels touch no memory, and memory of the host that is wrapped is never freed.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import gc
import operator
import pickle
import time
import weakref
from typing import Any

import buffers
import numpy as np

import cuda_core_cffi
from cuda_core_cffi import Buffer, CUDAError, Kernel, ManagedBuffer, Stream, ffi, lib
from cuda_core_cffi._core.errors import check

from . import exchange

MOST_ELEMENTS = 20_000
PAUSE = 0.002  # seconds
MOST_MADE = 300
MAKING = 0.1  # seconds
USING = 2.0
CODE = 'extern "C" __global__ void nothing() {}'
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .b8 data[64];
.visible .entry nothing() { ret; }
.visible .entry numbers(.param .u64 a, .param .u32 b, .param .f32 c, .param .f64 d) { ret; }
.visible .entry shared(.param .u64 a)
{
    .shared .align 4 .b8 memory[64];
    ret;
}
"""
HOST = np.zeros(4096, np.uint8)


class FuzzError(Exception):
    """What objects of the fuzzer raise; it may come out of the API."""


USUAL_ERRORS = (TypeError, ValueError, OverflowError, BufferError, RuntimeError, CUDAError, FuzzError, AttributeError)


class EndlessError(AssertionError):
    """An iterator does not end."""


class Callback:
    """A host function."""

    def __init__(self, pause: float = 0, error: type[BaseException] | None = None) -> None:
        self.pause, self.error = pause, error

    def __call__(self) -> None:
        if self.pause:
            time.sleep(self.pause)
        if self.error:
            raise self.error("from a host function")


def nothing() -> None:
    """Be a host function."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def c_function(data: int | None) -> None:
    """Be a host function of C."""


class AnyStream:
    """A stream of another library."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> Any:
        return self.stream.__cuda_stream__()


class BrokenStream:
    """Says of itself what no stream says."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        if self.answer is FuzzError:
            raise FuzzError("from __cuda_stream__")
        return self.answer


class Producer:
    """Gives a capsule, or what is none, by DLPack."""

    def __init__(self, capsule: Any, device: Any = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


class Interface:
    """Has an array interface of any content."""

    def __init__(self, cuda: bool = False, **items: Any) -> None:
        description = {"version": 3, "shape": (4,), "typestr": "<i4", "data": (HOST.ctypes.data, False), **items}
        setattr(self, "__cuda_array_interface__" if cuda else "__array_interface__", description)


class ManagedResource(buffers.ManagedResource):
    """Managed memory, which goes back whatever the stream says."""

    def allocate(self, size: int, stream: Any = None) -> Any:
        pointer = ffi.new("CUdeviceptr *")
        check(lib.cuMemAllocManaged(pointer, size, lib.CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged")
        try:
            return ManagedBuffer.from_handle(int(pointer[0]), size, mr=self, stream=stream)
        except BaseException:
            check(lib.cuMemFree(pointer[0]), "cuMemFree")
            raise

    def deallocate(self, ptr: int, size: int, stream: Any = None) -> None:
        try:
            stream.sync()
        finally:
            check(lib.cuMemFree(ptr), "cuMemFree")


class Number:
    """Is a number by a method; it may refuse."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> Any:
        if self.value is FuzzError:
            raise FuzzError("from __index__")
        return self.value


def borrowed(size: int, mr: Any = None, owner: Any = HOST) -> Buffer:
    """Return a buffer of memory of the host that stays."""
    return Buffer.from_handle(HOST.ctypes.data, size, mr, None if mr else owner)


def same_kernel(kernel: Kernel) -> Any:
    """Return another object for a kernel."""
    return Kernel.from_handle(kernel.handle) if kernel.handle else None


def default_stream(number: int) -> Stream:
    """Return a default stream by its number."""
    return Stream.from_handle(number)


def elements(value: Any) -> list[Any]:
    """Return what an object is made of."""
    found: list[Any] = []
    for item in value:
        found.append(item)
        if len(found) > MOST_ELEMENTS:
            raise EndlessError(f"the iteration of {type(value).__name__} does not end")
    return found


def many(make: Any) -> list[Any]:
    """Make objects in the same way: the more, the likelier it is that threads meet at one of them."""
    end = time.monotonic() + MAKING
    made = [make()]
    while len(made) < MOST_MADE and time.monotonic() < end:
        made.append(make())
    return made


def each(values: list[Any], use: Any) -> None:
    """Use one object after the other, while other threads do; raise the first error that is not of a usual class."""
    end = time.monotonic() + USING
    for value in values:
        if time.monotonic() > end:
            break
        with contextlib.suppress(*USUAL_ERRORS):
            use(value)


def pickled(value: Any) -> Any:
    """Send an object through a pickle."""
    return pickle.loads(pickle.dumps(value))


def touch(value: Any) -> int:
    """Read what a view of the host's memory shows, and write it back."""
    array = np.asarray(value)
    total = int(array.view(np.uint8).sum()) if array.dtype.hasobject is False and array.flags.c_contiguous else 0
    if array.flags.writeable and array.size and not array.dtype.hasobject:
        array[...] = array
    return total


def blank(kind: type) -> Any:
    """Return an object that was never initialised."""
    return kind.__new__(kind)


def names() -> dict[str, Any]:
    """Return what a line may name, without the public API."""
    found = {
        "suppress": contextlib.suppress,
        "copy": copy,
        "gc": gc,
        "np": np,
        "operator": operator,
        "flush_releases": cuda_core_cffi._lifetime.references.flush_releases,  # type: ignore[attr-defined]
        "weakref": weakref,
        "HOST": HOST,
        "CODE": CODE,
        "PTX": PTX,
        "HostResource": buffers.HostResource,
        "PAUSE": PAUSE,
    }
    for value in (
        AnyStream,
        BrokenStream,
        Callback,
        FuzzError,
        Interface,
        ManagedResource,
        Number,
        Producer,
        blank,
        borrowed,
        c_function,
        default_stream,
        each,
        elements,
        many,
        nothing,
        pickled,
        same_kernel,
        touch,
    ):
        found[getattr(value, "__name__", "c_function")] = value
    found.update(exchange.names())
    return found
