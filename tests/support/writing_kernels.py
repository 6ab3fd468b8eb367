# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that write what they were given to memory, for tests of launches."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cuda_core_cffi import (
    Buffer,
    Device,
    Kernel,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    UnavailableError,
    ffi,
)
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

PINNED = LegacyPinnedMemoryResource()
ONE = LaunchConfig(grid=1, block=1)
MANY = 64
SCALARS = {
    "s8": ("signed char", "b"), "u8": ("unsigned char", "B"), "s16": ("short", "h"), "u16": ("unsigned short", "H"),
    "s32": ("int", "i"), "u32": ("unsigned", "I"), "s64": ("long long", "q"), "u64": ("unsigned long long", "Q"),
    "f16": ("__half", "e"), "f32": ("float", "f"), "f64": ("double", "d"), "boolean": ("bool", "?"),
    "c64": ("float2", "ff"), "c128": ("double2", "dd"),
}  # fmt: skip
SOURCE = (
    """
struct __half { unsigned short bits; };
struct Pair { int key; double weight; };
struct Odd { char bytes[13]; };
template <class T> __global__ void give(T *out, T value) { *out = value; }
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void mixed(signed char a, double b, short c, Pair d, signed char e, Odd f, long long *out) {
    *out++ = a;
    *out++ = (long long)(b * 16);
    *out++ = c;
    *out++ = d.key;
    *out++ = (long long)(d.weight * 16);
    *out++ = e;
    for (int i = 0; i < 13; i++) *out++ = f.bytes[i];
}
extern "C" __global__ void address(void **out, void *value) { *out = value; }
extern "C" __global__ void nothing() {}
extern "C" __global__ void place(unsigned *out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}
extern "C" __global__ void through_shared(unsigned *out) {
    extern __shared__ unsigned scratch[];
    scratch[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = scratch[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void add(unsigned *counter, unsigned by) { atomicAdd(counter, by); }
"""
    + f'extern "C" __global__ void many(int *out, {", ".join(f"int p{i}" for i in range(MANY))}) {{'
    + "".join(f"out[{i}] = p{i};" for i in range(MANY))
    + "}\n"
)


class Pair(ctypes.Structure):
    _fields_ = [("key", ctypes.c_int32), ("weight", ctypes.c_double)]


@contextlib.contextmanager
def compiled_kernels() -> Iterator[Callable[[str], Kernel]]:
    """Return kernels by name, or skip where there is no compiler."""
    device = Device(0)
    device.set_current()
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    expressions = {name: f"give<{ctype}>" for name, (ctype, _) in SCALARS.items()}
    with Program(SOURCE, "c++") as program:
        code = program.compile("cubin", list(expressions.values()))
    found: dict[str, Any] = {}

    def get(name: str):
        if name not in found:
            found[name] = code.get_kernel(expressions.get(name, name))
        return found[name]

    get("nothing")  # loads the code, before a test counts what is alive
    try:
        yield get
    finally:
        found.clear()
        code.close()
        collect()


@contextlib.contextmanager
def shared_memory() -> Iterator[Buffer]:
    """Return 1 KiB of zeroed memory that host and device share."""
    with PINNED.allocate(1024) as buffer:
        ffi.buffer(ffi.cast("char *", buffer.handle), 1024)[:] = bytes(1024)
        yield buffer


def collect() -> None:
    """Collect garbage; PyPy runs finalizers some time after."""
    for _ in range(3):
        gc.collect()


def content(buffer, code: str) -> tuple[Any, ...]:
    """Return the start of a host buffer as numbers."""
    return struct.unpack_from("<" + code, buffer.__buffer__(0))
