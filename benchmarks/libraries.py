# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Other libraries: what they do for the rows that they have an equivalent of, in the quickest way they document."""

from __future__ import annotations

import functools
import pathlib
from itertools import repeat
from time import perf_counter
from typing import Any

from benchmarks.rows import ARGUMENT_COUNTS, MIXED, MOST_SPELLED_OUT, Row, values_of
from benchmarks.workbench import LIVE_SIZE, SIZE, Bench, Live, Statement, foreign_module


def cupy_launch(kernel: str, values: str) -> Statement:
    """Return a launch on the stream that is current."""
    return Statement(f"{kernel}((1,), (1,), {values})", "stream.use()")


CUPY = {
    # memory of CuPy's pool goes back to it with the last reference
    "allocate+close, own stream": Statement("alloc(1024)", "stream.use()"),
    "allocate+close, default stream": Statement("alloc(1024)", "default_stream.use()"),
    "fill 1 KiB": Statement("memory.memset_async(0, 1024, stream)"),
    "copy device to device, 1 KiB": Statement("other.copy_from_device_async(memory, 1024, stream)"),
    "copy pinned to device, 1 KiB": Statement("memory.copy_from_host_async(pinned_address, 1024, stream)"),
    "event create+close": Statement("Event(disable_timing=True)"),
    "event record": Statement("event.record(stream)"),
    "event query": Statement("event.done"),
    "event sync": Statement("event.synchronize()"),
    "event elapsed": Statement("get_elapsed_time(start, end)"),
    "stream create+close": Statement("Stream(non_blocking=True)"),
    "stream sync": Statement("stream.synchronize()"),
    "stream wait event": Statement("stream.wait_event(event)"),
    "stream wait stream": Statement("stream.wait_event(second.record())"),
    "Device()": Statement("Device()"),
    "Device(0)": Statement("Device(0)"),
    "set_current": Statement("device.use()"),
    "device property": Statement("deviceGetAttribute(multiprocessor_count, 0)"),
    **{
        f"launch, {count} argument{'s' * (count != 1)}": cupy_launch(
            f"kernel{count}",
            f"arguments{count}"
            if count > MOST_SPELLED_OUT
            else "(" + "".join(f"{value}, " for value in values_of(count)) + ")",
        )
        for count in ARGUMENT_COUNTS
    },
    f"launch, {len(MIXED)} arguments of mixed types": cupy_launch("kernel_mixed", f"({', '.join(MIXED.values())})"),
    "graph launch, 1 kernel": Statement("graph.launch(stream)"),
    "StridedMemoryView of a PyTorch tensor": Statement("from_dlpack(torch_tensor)"),
    "StridedMemoryView of a JAX array": Statement("from_dlpack(jax_array)"),
    "DLPack round trip": Statement("from_dlpack(buffer)"),
}
"""By the name of the row. Where a row makes a view, CuPy makes an array of its own of the same memory."""

TORCH = {
    "allocate+close, own stream": Statement("empty(1024, dtype=kind, device=device)", "set_stream(stream)"),
    "allocate+close, default stream": Statement("empty(1024, dtype=kind, device=device)", "set_stream(default_stream)"),
    "fill 1 KiB": Statement("tensor.zero_()", "set_stream(stream)"),
    "copy device to device, 1 KiB": Statement("other.copy_(tensor)", "set_stream(stream)"),
    "copy pinned to device, 1 KiB": Statement("tensor.copy_(pinned, non_blocking=True)", "set_stream(stream)"),
    "event record": Statement("event.record(stream)"),
    "event query": Statement("event.query()"),
    "event sync": Statement("event.synchronize()"),
    "event elapsed": Statement("start.elapsed_time(end)"),
    "stream sync": Statement("stream.synchronize()"),
    "stream wait event": Statement("stream.wait_event(event)"),
    "stream wait stream": Statement("stream.wait_stream(second)"),
    "Device()": Statement("current_device()"),
    "set_current": Statement("set_device(0)"),
    "device property": Statement("get_device_properties(0).multi_processor_count"),
    "graph launch, 1 kernel": Statement("graph.replay()", "set_stream(stream)"),
    "StridedMemoryView of a NumPy array": Statement("from_numpy(numpy_array)"),
    "StridedMemoryView of a CuPy array": Statement("from_dlpack(cupy_array)"),
    "StridedMemoryView of a JAX array": Statement("from_dlpack(jax_array)"),
    "DLPack round trip": Statement("from_dlpack(tensor)"),
}
"""By the name of the row. PyTorch makes events when they are first recorded, and takes streams from a pool."""


PYNVML = {
    "NVML memory info": Statement("get_memory_info(nvml_device, version=memory_version).used"),
    "NVML utilization": Statement("get_utilization(nvml_device).gpu"),
}
"""Of nvidia-ml-py."""


class CuPyBench(Bench):
    """The objects of CuPy."""

    LIVE = Live(Statement(f"alloc({LIVE_SIZE})", "stream.use()"), "_live[_index] = None")

    def __init__(self, api: Any, code: pathlib.Path) -> None:
        super().__init__(code)
        self._api = api
        self.Device, self.Stream, self.Event = api.cuda.Device, api.cuda.Stream, api.cuda.Event
        self.alloc = api.cuda.alloc
        self.get_elapsed_time = api.cuda.get_elapsed_time
        self.deviceGetAttribute = api.cuda.runtime.deviceGetAttribute
        self.multiprocessor_count = api.cuda.runtime.cudaDevAttrMultiProcessorCount
        self.from_dlpack = api.from_dlpack
        self.device = api.cuda.Device(0)
        self.device.use()
        self.stream, self.second = self.Stream(non_blocking=True), self.Stream(non_blocking=True)
        self.default_stream = api.cuda.Stream.null

    def statement(self, row: Row) -> Statement:
        """Return what CuPy does for a row."""
        return CUPY[row.name]

    def find(self, name: str) -> Any:
        """Return the object behind a name in a statement."""
        kind = name.rstrip("0123456789")
        number = name[len(kind) :]
        if number and kind == "kernel":
            return self._module.get_function(name)
        if number and kind == "arguments":
            values = (self.buffer, 7, 0.5)
            return tuple(values[index % len(values)] for index in range(int(number)))
        return getattr(self, name)

    @functools.cached_property
    def buffer(self) -> Any:
        """An array."""
        return self._api.zeros(SIZE // 4, "float32")

    @functools.cached_property
    def memory(self) -> Any:
        """Memory of the pool."""
        return self.alloc(SIZE)

    @functools.cached_property
    def other(self) -> Any:
        """As much again."""
        return self.alloc(SIZE)

    @functools.cached_property
    def pinned_address(self) -> int:
        """The address of page-locked host memory."""
        self._pinned = self._api.cuda.alloc_pinned_memory(SIZE)
        return int(self._pinned.ptr)

    @functools.cached_property
    def event(self) -> Any:
        """An event that has been reached."""
        return self._reached(disable_timing=True)

    @functools.cached_property
    def start(self) -> Any:
        """An event that has been reached and takes times."""
        return self._reached()

    @functools.cached_property
    def end(self) -> Any:
        """A later event that has been reached and takes times."""
        assert self.start
        return self._reached()

    @functools.cached_property
    def kernel_mixed(self) -> Any:
        """The kernel with parameters of mixed types."""
        return self._module.get_function("kernel_mixed")

    @functools.cached_property
    def int16(self) -> Any:
        """A NumPy scalar: CuPy takes none of ctypes."""
        return foreign_module("numpy").int16(7)

    @functools.cached_property
    def graph(self) -> Any:
        """A graph of one launch with four arguments."""
        kernel, values = self.find("kernel4"), self.find("arguments4")
        with self.stream:
            kernel((1,), (1,), values)  # loads it: not possible during a capture
            self.stream.begin_capture()
            kernel((1,), (1,), values)
            graph = self.stream.end_capture()
        graph.launch(self.stream)
        return graph

    def graph_seconds(self, count: int, launches: int) -> dict[str, float]:
        """Return the seconds of capturing, which also instantiates, and of so many launches."""
        kernel, stream = self.empty_kernel, self.stream
        with stream:
            kernel((1,), (1,), ())
            start = perf_counter()
            stream.begin_capture()
            for _ in repeat(None, count):
                kernel((1,), (1,), ())
            graph = stream.end_capture()
            capture = perf_counter() - start
        graph.launch(stream)
        stream.synchronize()
        spent = 0.0
        for _ in repeat(None, launches):
            start = perf_counter()
            graph.launch(stream)
            spent += perf_counter() - start
            stream.synchronize()
        return {"capture": capture, "launch": spent}

    def open_thread(self) -> dict[str, Any]:
        """Return a stream."""
        self.Device(0).use()
        return {"stream": self.Stream(non_blocking=True)}

    @functools.cached_property
    def _module(self) -> Any:
        return self._api.RawModule(path=str(self._kernel_file()))

    def _reached(self, **options: Any) -> Any:
        event = self.Event(**options)
        event.record(self.stream)
        event.synchronize()
        return event


class TorchBench(Bench):
    """The objects of PyTorch."""

    LIVE = Live(
        Statement(f"empty({LIVE_SIZE}, dtype=kind, device=device)", "set_stream(stream)"), "_live[_index] = None"
    )

    def __init__(self, api: Any, code: pathlib.Path) -> None:
        super().__init__(code)
        self._api = api
        cuda = api.cuda
        self.empty, self.from_dlpack, self.from_numpy = api.empty, api.from_dlpack, api.from_numpy
        self.kind, self.device = api.uint8, api.device("cuda", 0)
        self.set_stream, self.set_device, self.current_device = cuda.set_stream, cuda.set_device, cuda.current_device
        self.get_device_properties = cuda.get_device_properties
        cuda.set_device(0)
        self.stream, self.second = cuda.Stream(), cuda.Stream()
        self.default_stream = cuda.default_stream()

    def statement(self, row: Row) -> Statement:
        """Return what PyTorch does for a row."""
        return TORCH[row.name]

    @functools.cached_property
    def tensor(self) -> Any:
        """Device memory."""
        return self.empty(SIZE, dtype=self.kind, device=self.device)

    @functools.cached_property
    def other(self) -> Any:
        """As much device memory again."""
        return self.empty(SIZE, dtype=self.kind, device=self.device)

    @functools.cached_property
    def pinned(self) -> Any:
        """As much page-locked host memory."""
        return self.empty(SIZE, dtype=self.kind, pin_memory=True)

    @functools.cached_property
    def event(self) -> Any:
        """An event that has been reached."""
        return self._reached()

    @functools.cached_property
    def start(self) -> Any:
        """An event that has been reached and takes times."""
        return self._reached(enable_timing=True)

    @functools.cached_property
    def end(self) -> Any:
        """A later event that has been reached and takes times."""
        assert self.start
        return self._reached(enable_timing=True)

    @functools.cached_property
    def graph(self) -> Any:
        """A graph of one kernel, which adds to a tensor."""
        tensor = self._api.zeros(1, device=self.device)
        with self._api.cuda.stream(self.stream):
            tensor.add_(1)  # loads the kernel: not possible during a capture
        self.drain()
        graph = self._api.cuda.CUDAGraph()
        with self._api.cuda.graph(graph, stream=self.stream):
            tensor.add_(1)
        self._added = tensor
        graph.replay()
        return graph

    def open_thread(self) -> dict[str, Any]:
        """Return a stream."""
        self.set_device(0)
        return {"stream": self._api.cuda.Stream()}

    def _reached(self, **options: Any) -> Any:
        event = self._api.cuda.Event(**options)
        event.record(self.stream)
        event.synchronize()
        return event


class PynvmlBench(Bench):
    """The device, as nvidia-ml-py knows it."""

    def __init__(self, api: Any, code: pathlib.Path) -> None:
        super().__init__(code)
        api.nvmlInit()
        self.nvml_device = api.nvmlDeviceGetHandleByIndex(0)
        self.memory_version = api.nvmlMemory_v2
        self.get_memory_info, self.get_utilization = api.nvmlDeviceGetMemoryInfo, api.nvmlDeviceGetUtilizationRates

    def statement(self, row: Row) -> Statement:
        """Return what nvidia-ml-py does for a row."""
        return PYNVML[row.name]

    def open_thread(self) -> dict[str, Any]:
        """Return nothing: no row with threads is measured."""
        return {}

    def drain(self) -> None:
        """Do nothing: there are no streams."""
