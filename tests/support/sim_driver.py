# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver through ctypes, with just enough comfort to write tests about it."""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
import sys
import textwrap
import time
from ctypes import byref, c_char, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

LEGACY = c_void_p(1)
PER_THREAD = c_void_p(2)
NON_BLOCKING = 1
DISABLE_TIMING = 2

HostFunction = ctypes.CFUNCTYPE(None, c_void_p)
StreamCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)


def simulator() -> ModuleType:
    """Return the simulator's Python module."""
    return importlib.import_module("cuda_core_cffi.simulator")


class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class PoolProps(ctypes.Structure):
    _fields_ = [
        ("alloc_type", c_int),
        ("handle_types", c_int),
        ("location", Location),
        ("security", c_void_p),
        ("max_size", c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    ]


class AccessDesc(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", c_int)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("count", c_uint),
    ]


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("pad", ctypes.c_char * 4), ("value", c_uint * 16)]


class DriverError(Exception):
    """A driver call failed; the error's name without its prefix is the text."""


class Driver:
    """``driver.cuMemAlloc_v2(...)`` calls and raises; ``driver.status("cuMemAlloc_v2", ...)`` returns the name."""

    def __init__(self, library: str | None = None) -> None:
        self.library = ctypes.CDLL(library or str(simulator().library_path()))
        self.kept: list[Any] = []

    def name(self, error: int) -> str:
        text = c_char_p()
        self.library.cuGetErrorName(error, byref(text))
        assert text.value is not None
        return text.value.decode().removeprefix("CUDA_").removeprefix("ERROR_")

    def status(self, function: str, *arguments: Any) -> str:
        return self.name(getattr(self.library, function)(*arguments))

    def __getattr__(self, function: str) -> Any:
        if not function.startswith("cu"):
            raise AttributeError(function)

        def call(*arguments: Any) -> None:
            status = self.status(function, *arguments)
            if status != "SUCCESS":
                raise DriverError(status)

        return call

    # One value back.

    def out(self, kind: type[Any], function: str, *arguments: Any) -> Any:
        value = kind()
        getattr(self, function)(byref(value), *arguments)
        return value

    def start(self, device: int = 0) -> c_void_p:
        self.cuInit(0)
        context: c_void_p = self.out(c_void_p, "cuDevicePrimaryCtxRetain", device)
        self.cuCtxSetCurrent(context)
        return context

    def alloc(self, size: int) -> c_uint64:
        return self.out(c_uint64, "cuMemAlloc_v2", c_size_t(size))

    def pinned(self, size: int) -> Any:
        pointer = self.out(c_void_p, "cuMemAllocHost_v2", c_size_t(size))
        ctypes.memset(pointer, 0, size)  # what was there before, if anything, is somebody else's
        return (c_char * size).from_address(pointer.value)

    def stream(self, flags: int = 0) -> c_void_p:
        return self.out(c_void_p, "cuStreamCreate", flags)

    def event(self, flags: int = 0) -> c_void_p:
        return self.out(c_void_p, "cuEventCreate", flags)

    def pool(self, **properties: Any) -> c_void_p:
        props = PoolProps(alloc_type=1, location=Location(1, 0))
        for key, value in properties.items():
            setattr(props, key, value)
        return self.out(c_void_p, "cuMemPoolCreate", byref(props))

    def pool_attribute(self, pool: c_void_p, number: int) -> int:
        value = c_uint64(0)
        self.cuMemPoolGetAttribute(pool, number, byref(value))
        return value.value

    def from_pool(self, pool: c_void_p, size: int, stream: c_void_p | None) -> c_uint64:
        return self.out(c_uint64, "cuMemAllocFromPoolAsync", c_size_t(size), pool, stream)

    def launch(self, stream: c_void_p | None, function: Any) -> None:
        """Run a Python function without arguments in stream order."""
        host = HostFunction(lambda _: function())
        self.kept.append(host)
        self.cuLaunchHostFunc(stream, host, None)

    def block(self, stream: c_void_p | None) -> Gate:
        """Hold a stream up until the gate is opened."""
        gate = Gate()
        self.launch(stream, gate.wait)
        return gate

    def pointer_attribute(self, pointer: c_uint64 | int, number: int, kind: type[Any] = c_int) -> Any:
        value = kind()
        self.cuPointerGetAttribute(
            byref(value), number, pointer if isinstance(pointer, c_uint64) else c_uint64(pointer)
        )
        return value.value

    def read(self, pointer: c_uint64, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.cuMemcpyDtoH_v2(data, pointer, c_size_t(size))
        return data.raw


class Gate:
    """Something that a host function waits for, polling as a kernel would poll pinned memory."""

    def __init__(self) -> None:
        self.opened = False
        self.reached = False

    def open(self) -> None:
        self.opened = True

    def wait(self) -> None:
        self.reached = True
        limit = time.monotonic() + 30
        while not self.opened and time.monotonic() < limit:
            time.sleep(0.0005)


def offset(pointer: c_uint64, by: int) -> c_uint64:
    return c_uint64(pointer.value + by)


def run_alone(code: str, **environment: str) -> str:
    """Run code in a fresh process, with the names of this module and ``cu``; return what it printed."""
    prologue = f"import sys; sys.path.insert(0, {str(HERE)!r})\nfrom sim_driver import *\nimport sim_driver\n"
    prologue += "cu = Driver(); sim = simulator()\n"
    finished = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", prologue + textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


__all__ = [
    "DISABLE_TIMING",
    "LEGACY",
    "NON_BLOCKING",
    "PER_THREAD",
    "AccessDesc",
    "Driver",
    "DriverError",
    "Gate",
    "HostFunction",
    "LaunchAttribute",
    "LaunchConfig",
    "Location",
    "PoolProps",
    "StreamCallback",
    "byref",
    "c_char",
    "c_char_p",
    "c_float",
    "c_int",
    "c_size_t",
    "c_uint",
    "c_uint64",
    "c_void_p",
    "ctypes",
    "offset",
    "os",
    "run_alone",
    "simulator",
    "sys",
    "time",
]
