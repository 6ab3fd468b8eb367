# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated NVML through ctypes: statuses are the texts of ``nvmlErrorString``."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from typing import Any

from sim_driver import simulator

VERSION_SHIFT = 24
TEXT_BYTES = 128


class NvmlError(Exception):
    """A call failed; the text of the error says how."""


class Versioned(ctypes.Structure):
    """A structure that begins with its version; `make` fills that in."""

    VERSION = 1

    @classmethod
    def make(cls, **values: Any) -> Any:
        return cls(version=ctypes.sizeof(cls) | cls.VERSION << VERSION_SHIFT, **values)


class Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class MemoryV2(Versioned):
    VERSION = 2
    _fields_ = [
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    ]


class ProcessV1(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("memory", c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("memory", c_ulonglong), ("gpu_instance", c_uint), ("compute_instance", c_uint)]


class ProcessDetail(ctypes.Structure):
    _fields_ = [*Process._fields_, ("protected", c_ulonglong)]


class ProcessList(Versioned):
    _fields_ = [("version", c_uint), ("mode", c_uint), ("count", c_uint), ("array", ctypes.POINTER(ProcessDetail))]


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class ProcessUtilization(ctypes.Structure):
    _fields_ = [
        ("pid", c_uint),
        ("time", c_ulonglong),
        ("sm", c_uint),
        ("memory", c_uint),
        ("encoder", c_uint),
        ("decoder", c_uint),
    ]


class Pci(ctypes.Structure):
    _fields_ = [
        ("legacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pci_device", c_uint),
        ("pci_subsystem", c_uint),
        ("bus_id", c_char * 32),
    ]


class EventData(ctypes.Structure):
    _fields_ = [
        ("device", c_void_p),
        ("type", c_ulonglong),
        ("data", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    ]


class SystemEventSet(Versioned):
    _fields_ = [("version", c_uint), ("set", c_void_p)]


class SystemRegistration(Versioned):
    _fields_ = [("version", c_uint), ("types", c_ulonglong), ("set", c_void_p)]


class SystemEvent(ctypes.Structure):
    _fields_ = [("type", c_ulonglong), ("gpu", c_uint)]


class SystemWait(Versioned):
    _fields_ = [
        ("version", c_uint),
        ("timeout", c_uint),
        ("set", c_void_p),
        ("data", ctypes.POINTER(SystemEvent)),
        ("capacity", c_uint),
        ("count", c_uint),
    ]


class FieldValue(ctypes.Structure):
    _fields_ = [
        ("id", c_uint),
        ("scope", c_uint),
        ("timestamp", c_longlong),
        ("latency", c_longlong),
        ("type", c_uint),
        ("status", c_uint),
        ("value", c_ulonglong),
    ]


class Temperature(Versioned):
    _fields_ = [("version", c_uint), ("sensor", c_uint), ("temperature", c_int)]


class Nvml:
    """``nvml.nvmlShutdown()`` calls and raises; ``nvml.status("nvmlShutdown")`` returns the text of the error."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(simulator().library_path()))
        self.library.nvmlErrorString.restype = ctypes.c_char_p

    def status(self, function: str, *arguments: Any) -> str:
        text: bytes = self.library.nvmlErrorString(getattr(self.library, function)(*arguments))
        return text.decode()

    def __getattr__(self, function: str) -> Any:
        if not function.startswith("nvml"):
            raise AttributeError(function)

        def call(*arguments: Any) -> None:
            status = self.status(function, *arguments)
            if status != "Success":
                raise NvmlError(status)

        return call

    def device(self, index: int = 0) -> c_void_p:
        device = c_void_p()
        self.nvmlDeviceGetHandleByIndex_v2(index, byref(device))
        return device

    def get(self, function: str, *arguments: Any, kind: type[Any] = c_uint) -> Any:
        """Return the one value that a function puts behind its last argument."""
        value = kind()
        getattr(self, function)(*arguments, byref(value))
        return value if isinstance(value, ctypes.Structure) else value.value

    def numbers(self, function: str, *arguments: Any, count: int, kind: type[Any] = c_uint) -> list[int]:
        """Return the values that a function puts behind its last arguments."""
        values = [kind() for _ in range(count)]
        getattr(self, function)(*arguments, *map(byref, values))
        return [value.value for value in values]

    def text(self, function: str, *arguments: Any) -> str:
        text = ctypes.create_string_buffer(TEXT_BYTES)
        getattr(self, function)(*arguments, text, TEXT_BYTES)
        return text.value.decode()

    def processes(self, device: c_void_p) -> dict[int, int]:
        """Return the memory of the compute processes by pid."""
        infos = (Process * 64)()
        count = c_uint(64)
        self.nvmlDeviceGetComputeRunningProcesses_v3(device, byref(count), infos)
        return {info.pid: info.memory for info in infos[: count.value]}

    def field(self, device: c_void_p, number: int, scope: int = 0) -> tuple[str, int]:
        value = FieldValue(id=number, scope=scope)
        self.nvmlDeviceGetFieldValues(device, 1, byref(value))
        return self.library.nvmlErrorString(value.status).decode(), value.value
