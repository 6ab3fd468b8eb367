# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Operations that CPython has in C and PyPy in Python, and the program that says what comes of them.

    python parity_cases.py c         with the modules in C
    python parity_cases.py python    with what PyPy runs, on any interpreter

It prints a JSON object: for each operation a list of what its calls returned, raised and warned of.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import importlib.abc
import importlib.util
import inspect
import itertools
import json
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from storing import Storing

SIZE = 1024
PTX = b"""
.version 8.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 out, .param .u32 value)
{
    ret;
}
"""
ADDRESS = re.compile(r"0x[0-9a-f]+|\b\d{7,}\b")
# In the interpreter's own words, which are others for functions in C.
COUNT = re.compile(r".*(?:takes no arguments|positional arguments?|is prepared for \d+ values).*")


class InPython(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Has the functions in Python imported in the place of those in C."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name == "cuda_core_cffi._calls" else None

    def create_module(self, spec: Any) -> types.ModuleType:
        module = importlib.import_module("cuda_core_cffi._core.python_calls")
        module.storing = Storing()
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


FORM = sys.argv[1] if __name__ == "__main__" else "c"
if FORM == "python":
    sys.meta_path.insert(0, InPython())

import numpy as np  # noqa: E402

from cuda_core_cffi import (  # noqa: E402
    Buffer,
    Device,
    DeviceMemoryResource,
    Event,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    PreparedLaunch,
    launch,
    simulator,
)
from cuda_core_cffi._arrays import interfaces  # noqa: E402
from cuda_core_cffi.graph import GraphDefinition  # noqa: E402
from cuda_core_cffi.texture import OpaqueArrayOptions, ResourceDescriptor, TextureObjectOptions  # noqa: E402
from cuda_core_cffi.utils import StridedMemoryView  # noqa: E402

# Not imported by name: which of them is in C is not the same in both forms.
read_method = interfaces.read_dlpack if FORM == "python" else interfaces.read_method


def tell(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    """Return what a call returns, or raises, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = call(*arguments, **named)
            text = type(value).__name__
            if value is None or isinstance(value, (bool, int, str, tuple)):
                text = f"{text} {value!r}"
            del value
        except Exception as error:
            text = f"{type(error).__name__}: {error} {getattr(error, '__notes__', [])}"
            if isinstance(error, TypeError):
                text = COUNT.sub("TypeError: another number of arguments", text)
        gc.collect()
    return ADDRESS.sub("0x", " | ".join([text, *(f"{item.category.__name__}: {item.message}" for item in caught)]))


class Foreign:
    """A stream of another library."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.handle)


class World:
    """Objects that are open, and closed ones."""

    def __init__(self) -> None:
        self.device = device = Device(0)
        device.set_current()
        self.stream, self.gone = device.create_stream(), device.create_stream()
        self.event, self.closed_event = device.create_event(), device.create_event()
        self.start, self.end = (device.create_event(EventOptions(timing_enabled=True)) for _ in range(2))
        self.pool, self.pinned_memory = DeviceMemoryResource(device, {}), LegacyPinnedMemoryResource()
        self.buffer, self.other, self.closed = (self.pool.allocate(SIZE, self.stream) for _ in range(3))
        self.pinned = self.pinned_memory.allocate(SIZE)
        self.part = self.buffer[8:16]
        self.shape = {"shape": (16, 16), "format": "float32", "num_channels": 1}
        self.array = device.create_opaque_array(self.shape)
        self.resource = ResourceDescriptor.from_opaque_array(self.array)
        self.sampling = TextureObjectOptions()
        self.view = StridedMemoryView.from_buffer(self.buffer, shape=(16, 16), dtype=np.dtype("f4"))
        self.map = self.view.as_tensor_map((8, 16)) if device.compute_capability >= (9, 0) else None
        self.definition = GraphDefinition()
        self.definition.empty()
        self.graph = self.definition.instantiate()
        for item in (self.gone, self.closed_event, self.closed):
            item.close()
        self.stream.sync()
        self.streams = [
            self.stream, self.gone, None, Foreign(self.stream.handle), device.default_stream, self.event, 7, "7",
        ]  # fmt: skip
        self.buffers = [self.buffer, self.other, self.part, self.pinned, self.closed, self.stream, None, 7, b"7" * 8]
        self.events = [self.event, self.closed_event, self.start, self.stream, None, 7, Event.__new__(Event)]


def failing(function: str) -> Any:
    """Have a call of the driver fail once, if that is the simulated one."""
    return simulator.fail(function, "CUDA_ERROR_UNKNOWN", 1)


def lifetime(w: World) -> Iterator[str]:
    """Make, close and drop objects."""
    for options in (None, {}, {"timing_enabled": True}, {"blocking_sync": True}, {"nonsense": 1}, 7):
        yield tell(w.device.create_event, options)
    for options in (None, {}, {"nonblocking": False}, {"priority": 0}, {"priority": 99}, {"priority": "7"}, 7):
        yield tell(w.device.create_stream, options)
    for make in (
        w.device.create_event,
        w.device.create_stream,
        lambda: w.pool.allocate(SIZE, w.stream),
        lambda: Buffer.from_handle(4096, SIZE, owner=w),
    ):
        item = make()
        yield tell(item.close)
        yield tell(item.close)
        yield tell(lambda item=item: (item.handle, item.is_closed))
        yield tell(item.close, 7, 8)
        yield tell(make)


def failures(w: World) -> Iterator[str]:
    """Make, close and drop objects where the driver refuses."""
    builder, config = w.device.create_graph_builder(), LaunchConfig(grid=1, block=1)
    building = w.device.create_graph_builder().begin_building()
    for function, make in (
        ("cuEventCreate", w.device.create_event),
        ("cuStreamCreateWithPriority", w.device.create_stream),
        ("cuMemAllocFromPoolAsync", lambda: w.pool.allocate(SIZE, w.stream)),
    ):
        with failing(function):
            yield tell(make)
    for function, make in (
        ("cuEventDestroy", w.device.create_event),
        ("cuStreamDestroy", w.device.create_stream),
        ("cuMemFreeAsync", lambda: w.pool.allocate(SIZE, w.stream)),
    ):
        with failing(function):
            yield tell(make().close)
        with failing(function):
            yield tell(make)  # which drops it
    for function, call in (
        ("cuMemsetD8Async", lambda: w.buffer.fill(0, stream=w.stream)),
        ("cuMemcpyAsync", lambda: w.buffer.copy_from(w.other, stream=w.stream)),
        ("cuEventRecord", lambda: w.stream.record(w.event)),
        ("cuStreamWaitEvent", lambda: w.stream.wait(w.event)),
        ("cuStreamSynchronize", w.stream.sync),
        ("cuEventSynchronize", w.event.sync),
        ("cuEventQuery", lambda: w.event.is_done),
        ("cuEventElapsedTime", lambda: w.end - w.start),
        ("cuCtxGetCurrent", Device),
        ("cuCtxSetCurrent", w.device.set_current),
        ("cuGraphLaunch", lambda: w.graph.launch(w.stream)),
        ("cuMemsetD8Async", lambda: w.buffer.fill(0, stream=builder)),
        ("cuMemcpyAsync", lambda: w.buffer.copy_to(w.other, stream=builder)),
        ("cuGraphLaunch", lambda: w.graph.launch(builder)),
        ("cuLaunchKernelEx", lambda: launch(building, config, nothing(), w.buffer, 1)),
        ("cuLaunchKernelEx", lambda: PreparedLaunch(config, nothing()).launch(building, w.buffer, 1)),
        ("cuArray3DCreate", lambda: w.device.create_opaque_array(w.shape)),
        ("cuTexObjectCreate", lambda: w.device.create_texture_object(w.resource, w.sampling)),
        ("cuTensorMapEncodeTiled", lambda: w.view.as_tensor_map((8, 16))),
        ("cuTensorMapReplaceAddress", lambda: w.map.replace_address(w.view)),
        ("cuLaunchKernelEx", lambda: launch(w.stream, config, nothing(), w.buffer, 1)),
    ):
        with failing(function):
            yield tell(call)


def buffers(w: World) -> Iterator[str]:
    """Allocate buffers from pools, and close them."""
    closed = DeviceMemoryResource(w.device, {})
    closed.close()
    for pool in (w.pool, w.device.memory_resource, closed):
        for size in (SIZE, 0, -1, 2**64, 7.0, True, "7", None):
            for stream in w.streams:
                yield tell(pool.allocate, size, stream)
            yield tell(pool.allocate, size=size, stream=w.stream)
            yield tell(pool.allocate, size)
        yield tell(pool.allocate)
        yield tell(pool.allocate, 1, 2, 3)
        for name in ("other", "_stream"):
            yield tell(pool.allocate, SIZE, **{name: w.stream})
    for stream in w.streams:
        yield tell(w.pool.allocate(SIZE, w.stream).close, stream)
        yield tell(w.pool.allocate(SIZE, w.stream).close, stream=stream)
    yield tell(w.closed.close)


def fill(w: World) -> Iterator[str]:
    """Fill buffers."""
    values = [0, 255, 256, -1, True, 1.0, "1", b"", b"\1", b"\1\2", b"\1\2\3", np.uint8(3), np.float32(3), None]
    for buffer, value in itertools.product(w.buffers[:5], values):
        yield tell(buffer.fill, value, stream=w.stream)
    for stream in w.streams:
        yield tell(w.buffer.fill, 1, stream=stream)
    yield tell(w.buffer.fill, 1)
    yield tell(w.buffer.fill, 1, w.stream)


def copy(w: World) -> Iterator[str]:
    """Copy buffers."""
    for target, source in itertools.product(w.buffers[:5], w.buffers):
        yield tell(target.copy_from, source, stream=w.stream)
    for stream in w.streams:
        yield tell(w.buffer.copy_from, w.other, stream=stream)
        yield tell(w.buffer.copy_to, w.other, stream=stream)


def devices(w: World) -> Iterator[str]:
    """Find devices, and make them current."""
    for argument in (0, None, w.device, -1, 99, 2**70, True, 0.0, "0", np.int32(0), ()):
        yield tell(Device, argument)
        yield tell(Device, device_id=argument)
        yield tell(lambda argument=argument: Device(argument) is w.device)
    yield tell(Device)
    yield tell(lambda: Device() is w.device)
    yield tell(Device, 0, 0)
    yield tell(Device, ordinal=0)
    yield str(inspect.signature(Device))
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(tell, lambda: (Device() is w.device, Device(0) is Device(), Device(0) == w.device)).result()
    for context in ((), (None,), (w.device.context,), (w.stream,), (None, None), (7,)):
        yield tell(w.device.set_current, *context)
    yield tell(w.device.set_current, ctx=None)
    yield tell(w.device.set_current, context=None)
    yield tell(w.device.__int__)


def textures(w: World) -> Iterator[str]:
    """Make textures with the same options, with others, and with options that are changed in between."""
    options = TextureObjectOptions(address_mode=["clamp", "wrap"], normalized_coords=True)
    for given in (w.sampling, w.sampling, None, {}, {"filter_mode": "linear"}, options, {"srgb": 1}, 7):
        yield tell(w.device.create_texture_object, w.resource, given)
        yield tell(w.device.create_texture_object, resource=w.resource, options=given)
    changes = {
        "max_anisotropy": (True, 1, 1.0, -1), "mipmap_level_bias": (True, 1, "1"),
        "address_mode": ("wrap", "nowhere", 7), "border_color": ((0, 0, 0, 1), [0, 0, 0, 1], (0,), None),
        "filter_mode": ("linear", "none"),
    }  # fmt: skip
    for name, values in changes.items():
        options = TextureObjectOptions(normalized_coords=True)
        yield tell(w.device.create_texture_object, w.resource, options)
        for value in values:
            setattr(options, name, value)
            yield f"{name}={value!r} {tell(w.device.create_texture_object, w.resource, options)}"
    options = OpaqueArrayOptions(shape=(4, 4), format="float32", num_channels=1)
    array_changes = {
        "num_channels": (1, True, 1.0, 3, 2),
        "shape": ((4,), [4, 4], (4.0, 4), (0, 4)),
        "format": ("int8", "x"),
    }
    for name, values in array_changes.items():
        for value in values:
            changed = dataclasses.replace(options)
            setattr(changed, name, value)
            yield f"{name}={value!r} {tell(w.device.create_opaque_array, options)}"
            yield f"{name}={value!r} {tell(w.device.create_opaque_array, changed)}"
    options = TextureObjectOptions(address_mode=["clamp", "clamp"])
    yield tell(w.device.create_texture_object, w.resource, options)
    options.address_mode[1] = "nowhere"
    yield tell(w.device.create_texture_object, w.resource, options)


def order(w: World) -> Iterator[str]:
    """Record events, and have streams wait."""
    for queue in (w.stream, w.gone, w.device.default_stream):
        for item in [*w.events, *w.streams]:
            yield tell(queue.record, item)
            yield tell(queue.wait, item)
        yield tell(queue.record, w.event, None)
        yield tell(queue.record, None, EventOptions(timing_enabled=True))
        yield tell(queue.record, w.event, EventOptions())
        yield tell(queue.record, event=w.event)
        yield tell(queue.wait, event_or_stream=w.event)
        yield tell(queue.wait)
        yield tell(queue.wait, w.event, w.event)


def wait(w: World) -> Iterator[str]:
    """Wait for streams and events, and ask for their state and times."""
    w.stream.record(w.start)
    w.stream.record(w.end)
    w.end.sync()
    for item in (w.stream, w.gone, w.event, w.closed_event, w.end, w.device.default_stream):
        yield tell(item.sync)
        yield tell(item.sync, 7)
        yield tell(lambda item=item: item.is_done)
    for end, start in itertools.product([w.end, *w.events], repeat=2):
        yield tell(lambda end=end, start=start: type(end - start))

    def broken() -> None:
        raise ValueError("in the callback")

    for item in (w.stream, w.event):
        w.stream.callback(broken)
        w.stream.record(w.event)
        yield tell(item.sync)
    w.stream.sync()


def nothing() -> Any:
    """Return a kernel that takes an address and 32 bits, and does nothing."""
    return CODE.get_kernel("nothing")


VALUES = [
    1, -1, 2**31, 2**32 - 1, 2**32, 2**64, True, 1.0, "1", None, np.int32(1), np.uint32(1), np.int64(1), np.float32(1),
    b"1", b"1234", 1j,
]  # fmt: skip


def launches(w: World) -> Iterator[str]:
    """Pack arguments and launch kernels, prepared or not."""
    config, kernel = LaunchConfig(grid=1, block=1), nothing()
    for target in (w.buffer, w.other, w.part, w.pinned, w.closed, w.buffer.handle):
        yield tell(launch, w.stream, config, kernel, target, 1)
    for value in VALUES:
        yield tell(launch, w.stream, config, kernel, w.buffer, value)
        yield tell(launch, w.stream, config, kernel, value, 1) if not isinstance(value, (int, np.integer)) else ""
    for values in ((), (w.buffer,), (w.buffer, 1, 2)):
        yield tell(launch, w.stream, config, kernel, *values)
    for stream in w.streams:
        yield tell(launch, stream, config, kernel, w.buffer, 1)
    for types_ in ((Buffer, int), (Buffer, np.uint32), (Buffer, float), (Buffer,), (Buffer, bytes), (Buffer, 7)):
        yield tell(PreparedLaunch, config, kernel, *types_)
    prepared = PreparedLaunch(config, kernel, Buffer, np.uint32)
    for value in VALUES:
        yield tell(prepared.launch, w.stream, w.buffer, value)
    for buffer in (w.other, w.part, w.closed, 7, None, "7"):
        yield tell(prepared.launch, w.stream, buffer, 1)
    for stream in w.streams:
        yield tell(prepared.launch, stream, w.buffer, 1)
    yield tell(prepared.launch, w.stream)
    yield tell(prepared.launch, w.stream, w.buffer, 1, 2)
    w.stream.sync()
    for stream in w.streams:
        yield tell(w.graph.launch, stream)
        yield tell(w.graph.launch, stream=stream)
    yield tell(w.graph.launch)
    yield tell(w.graph.launch, w.stream, w.stream)
    w.stream.sync()
    closed = w.definition.instantiate()
    closed.close()
    yield tell(closed.launch, w.stream)


def captures(w: World) -> Iterator[str]:
    """Give a graph builder work: before it captures, meanwhile, afterwards, and when it is closed."""
    config, kernel, builder = LaunchConfig(grid=1, block=1), nothing(), w.device.create_graph_builder()
    prepared = PreparedLaunch(config, kernel, Buffer, np.uint32)
    for step in (lambda: None, builder.begin_building, builder.end_building, builder.close):
        step()
        for values in ((w.buffer, 1), (w.closed, 1), (w.buffer, 1.0), ()):
            yield tell(launch, builder, config, kernel, *values)
            yield tell(prepared.launch, builder, *values)
        for buffer in (w.buffer, w.closed):
            yield tell(buffer.fill, 1, stream=builder)
            yield tell(buffer.copy_from, w.other, stream=builder)
            yield tell(w.other.copy_to, buffer, stream=builder)
        yield tell(w.buffer.fill, 256, stream=builder)
        yield tell(w.buffer.copy_to, w.buffer, stream=builder)
        if not builder.is_building:  # drivers capture no launch of a graph, and give the capture up
            yield tell(w.graph.launch, builder)
            yield tell(w.graph.launch, stream=builder)
        yield tell(lambda: tuple(sorted(type(node).__name__ for node in builder.graph_definition.nodes())))


def export(w: World) -> Iterator[str]:
    """Export buffers through DLPack."""
    for buffer in w.buffers[:5]:
        yield tell(buffer.__dlpack_device__)
        yield tell(buffer.__dlpack_device__, 1)
        for stream in (None, -1, 0, 1, 2, w.stream.handle, -2, "1", 1.0, True):
            yield tell(buffer.__dlpack__, stream=stream)
        for version in (None, (0, 8), (1, 0), (1, 3), (2, 0), (1,), 1, "1", (True, 0)):
            yield tell(buffer.__dlpack__, max_version=version)
        for device in (None, (1, 0), (2, 0), (3, 0), (2, 1), (2,), 2):
            yield tell(buffer.__dlpack__, dl_device=device)
        for flag in (None, True, False, 0, 1, "yes"):
            yield tell(buffer.__dlpack__, copy=flag)
        yield tell(buffer.__dlpack__, 1)
        yield tell(buffer.__dlpack__, nonsense=1)


def read(w: World) -> Iterator[str]:
    """Read what speaks DLPack."""

    def producer(device: Any, capsule: Callable[..., Any]) -> Any:
        return type(
            "Producer", (), {"__dlpack_device__": lambda self: device, "__dlpack__": lambda self, **how: capsule(how)}
        )()

    def refuse(how: dict[str, Any]) -> Any:
        raise BufferError("not exported")

    things = [w.buffer, w.pinned, w.closed, np.zeros(3, "f4"), 7, None]
    things += [producer(device, lambda how: w.buffer.__dlpack__(**how)) for device in ((2, 0), (1, 0), (2,), 7, None)]
    things += [producer((2, 0), refuse), producer((2, 0), lambda how: None), producer((2, 0), lambda how: object())]
    things += [producer((2, 0), lambda how: np.zeros(3).__dlpack__()), producer((4, 0), refuse)]
    for thing, stream in itertools.product(things, (None, -1, 1, w.stream.handle)):
        yield tell(read_method, thing, stream)


OPERATIONS: dict[str, Callable[[World], Iterator[str]]] = {
    function.__name__: function
    for function in (
        lifetime, devices, buffers, fill, copy, textures, order, wait, launches, captures, export, read,
    )
}  # fmt: skip
OPERATIONS["failures"] = failures
CODE: Any = None

if __name__ == "__main__":
    world = World()
    CODE = ObjectCode.from_ptx(PTX)
    absent: set[str] = set() if simulator.is_loaded() else {"failures"}
    chosen = [name for name in OPERATIONS if name not in absent]
    print(json.dumps({name: list(OPERATIONS[name](world)) for name in chosen}))
