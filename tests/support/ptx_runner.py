# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Compile CUDA C++ with NVRTC and run it in the simulated driver: what the other ``test_ptx`` modules use."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim_driver import Driver, DriverError, simulator

from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

SEED = 20260101
COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class Nvrtc:
    """Just enough of NVRTC."""

    def __init__(self) -> None:
        path = Path(NVRTC_LIBRARY.find())
        self.library = ctypes.CDLL(str(path))
        include = path.parents[1] / "include"
        more = filter(None, os.environ.get("CUDA_TEST_KERNEL_INCLUDE_DIRS", "").split(os.pathsep))
        self.options = [f"-I{folder}" for folder in (include, include / "cccl", *more)]

    def architectures(self) -> list[int]:
        count = c_int()
        self.library.nvrtcGetNumSupportedArchs(byref(count))
        numbers = (c_int * count.value)()
        self.library.nvrtcGetSupportedArchs(numbers)
        return list(numbers)

    def compile(self, source: str, *options: str) -> bytes:
        program = c_void_p()
        self.library.nvrtcCreateProgram(byref(program), source.encode(), b"test.cu", 0, None, None)
        everything = [*options, *self.options]
        status = self.library.nvrtcCompileProgram(
            program, len(everything), (c_char_p * len(everything))(*[o.encode() for o in everything])
        )
        size = c_size_t()
        what = "ProgramLog" if status else "PTX"
        getattr(self.library, f"nvrtcGet{what}Size")(program, byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, text)
        self.library.nvrtcDestroyProgram(byref(program))
        if status:
            log = text.value.decode()
            if "cannot open source file" in log:
                pytest.skip(f"CUDA's headers for kernels are not installed: {log.splitlines()[0]}")
            raise RuntimeError(log)
        return text.value


@functools.cache
def nvrtc() -> Nvrtc:
    return Nvrtc()


@functools.cache
def compiled(source: str, *options: str) -> bytes:
    return nvrtc().compile(source, *options)


ON_GPU = os.environ.get("CUDA_CORE_CFFI_DRIVER") == "system"


class GpuError(Exception):
    """A launch or load failed; the error's name without its prefix is the text."""


class Array:
    """Device memory with the type and shape of a NumPy array."""

    def __init__(self, gpu: Gpu, data: np.ndarray) -> None:
        self.gpu, self.dtype, self.shape, self.nbytes = gpu, data.dtype, data.shape, data.nbytes
        self.pointer = gpu.alloc(max(data.nbytes, 1))
        gpu.write(self.pointer, np.ascontiguousarray(data).tobytes())

    def get(self) -> np.ndarray:
        return np.frombuffer(self.gpu.read(self.pointer, self.nbytes), self.dtype).reshape(self.shape).copy()


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("pad", c_int), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    ]


def three(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return ((size,) if isinstance(size, int) else tuple(size)) + (1,) * (2 if isinstance(size, int) else 3 - len(size))


class Gpu:
    """The driver that runs the kernels: the simulated one, or where there is a GPU the real one, which is the judge."""

    def __init__(self) -> None:
        self.driver = Driver("libcuda.so.1" if ON_GPU else None)
        self.driver.start()
        self.libraries: dict[bytes, c_void_p] = {}

    def capability(self) -> int:
        major = self.driver.out(c_int, "cuDeviceGetAttribute", 75, 0).value
        return 10 * major + self.driver.out(c_int, "cuDeviceGetAttribute", 76, 0).value

    def alloc(self, size: int) -> int:
        return self.driver.alloc(size).value

    def write(self, pointer: int, data: bytes) -> None:
        self.driver.cuMemcpyHtoD_v2(c_uint64(pointer), data, c_size_t(len(data)))

    def read(self, pointer: int, size: int) -> bytes:
        return self.driver.read(c_uint64(pointer), size)

    def load(self, ptx: bytes) -> c_void_p:
        try:
            return self.driver.out(c_void_p, "cuLibraryLoadData", c_char_p(ptx), None, None, 0, None, None, 0)
        except DriverError as error:
            raise GpuError(str(error)) from None

    def load_at_once(self, ptx: bytes) -> None:
        """Load as a module: a library may put reading the text off until a kernel is asked for."""
        try:
            module = self.driver.out(c_void_p, "cuModuleLoadData", c_char_p(ptx))
        except DriverError as error:
            raise GpuError(str(error)) from None
        self.driver.cuModuleUnload(module)

    def variable(self, library: c_void_p, name: str) -> tuple[int, int]:
        pointer, size = c_uint64(), c_size_t()
        self.driver.cuLibraryGetGlobal(byref(pointer), byref(size), library, name.encode())
        return pointer.value, size.value

    def launch(
        self,
        library: c_void_p,
        name: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: list[bytes],
        shared: int = 0,
        cooperative: bool = False,
        cluster: tuple[int, ...] | None = None,
    ) -> None:
        attributes = []
        if cooperative:
            attributes.append(LaunchAttribute(COOPERATIVE, 0, (1,)))
        if cluster:
            attributes.append(LaunchAttribute(CLUSTER, 0, cluster))
        kernel = self.driver.out(c_void_p, "cuLibraryGetKernel", library, name.encode())
        config = LaunchConfig(
            grid, block, shared, None, (LaunchAttribute * max(len(attributes), 1))(*attributes), len(attributes)
        )
        buffers = [ctypes.create_string_buffer(a, len(a)) for a in arguments]
        pointers = (c_void_p * max(len(buffers), 1))(*[ctypes.addressof(b) for b in buffers])
        try:
            self.driver.cuLaunchKernelEx(byref(config), kernel, pointers, None)
            self.driver.cuCtxSynchronize()
        except DriverError as error:
            raise GpuError(str(error)) from None

    def reset(self) -> None:
        """Forget everything after a fault."""
        self.driver.cuDevicePrimaryCtxReset_v2(0)
        simulator().recover()
        self.driver.start()


class Runner:
    """``run(source, name, grid, block, *args)`` under one set of compiler options."""

    def __init__(self, gpu: Any, options: tuple[str, ...]) -> None:
        self.gpu, self.options = gpu, options
        self.debug = "-G" in options
        self.architecture = int(options[0].rpartition("_")[2])
        self.libraries: dict[tuple[str, ...], Any] = {}

    def library(self, source: str, *options: str) -> Any:
        key = (source, *options)
        if key not in self.libraries:
            self.libraries[key] = self.gpu.load(compiled(source, *self.options, *options))
        return self.libraries[key]

    def array(self, data: Any, dtype: Any = None) -> Array:
        return Array(self.gpu, np.asarray(data, dtype))

    def zeros(self, shape: Any, dtype: Any) -> Array:
        return Array(self.gpu, np.zeros(shape, dtype))

    def run(
        self,
        source: str,
        name: str,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
        cooperative: bool = False,
        cluster: tuple[int, ...] | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        packed = [
            np.uint64(a.pointer).tobytes() if isinstance(a, Array) else a if isinstance(a, bytes) else a.tobytes()
            for a in arguments
        ]
        self.gpu.launch(
            self.library(source, *options), name, three(grid), three(block), packed, shared, cooperative, cluster
        )

    def variable(self, source: str, name: str, dtype: Any) -> np.ndarray:
        pointer, size = self.gpu.variable(self.library(source), name)
        return np.frombuffer(self.gpu.read(pointer, size), dtype)


def make_gpu() -> Any:
    return Gpu()


def variants() -> list[tuple[str, ...]]:
    try:
        architectures = nvrtc().architectures()
    except (FileNotFoundError, OSError):
        return [("-arch=compute_0",)]
    limit = int(os.environ.get("CUDA_SIM_COMPUTE_CAPABILITY", "9.0").replace(".", ""))
    usable = [a for a in architectures if a <= limit]
    return [(f"-arch=compute_{a}", *debug) for a, debug in itertools.product((usable[0], usable[-1]), ((), ("-G",)))]
