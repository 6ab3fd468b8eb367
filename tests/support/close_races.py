# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Threads that use an object while others close it: the program of test_close_races.py.

    python tests/support/close_races.py SCENARIO SECONDS

Each round of a scenario makes objects, and runs some actions on them at the same time, one in each thread. An action
may fail because something is closed. The program ends with the number of rounds, or crashes.
"""

from __future__ import annotations

import faulthandler
import mmap
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from scenarios import PTX

from cuda_core_cffi import (
    CUDAError,
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    MemoryResource,
    ObjectCode,
    PreparedLaunch,
    Stream,
    VirtualMemoryResource,
    launch,
)
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.utils import StridedMemoryView, copy_batch

SIZE = 4096
LARGE = 1 << 20  # long enough for another thread to close it during a copy
ONE = LaunchConfig(grid=1, block=1)
Action = Callable[[], object]
Scenario = Callable[["World"], Sequence[Action]]


class HostResource(MemoryResource):
    """Memory of NumPy arrays that are overwritten when they go back."""

    is_device_accessible, is_host_accessible, device_id = False, True, -1

    def __init__(self) -> None:
        self.arrays: dict[int, numpy.ndarray] = {}

    def allocate(self, size: int, stream: Any = None) -> Any:
        from cuda_core_cffi import Buffer

        array = numpy.zeros(size, "u1")
        self.arrays[array.ctypes.data] = array
        return Buffer.from_handle(array.ctypes.data, size, mr=self)

    def deallocate(self, ptr: int, size: int, stream: Any = None) -> None:
        self.arrays.pop(int(ptr))[:] = 0xEE


class MappedResource(MemoryResource):
    """A resource that unmaps memory on deallocation, so that a late access crashes."""

    is_device_accessible, is_host_accessible, device_id = False, True, -1

    def __init__(self) -> None:
        self.maps: dict[int, mmap.mmap] = {}

    def allocate(self, size: int, stream: Any = None) -> Any:
        from cuda_core_cffi import Buffer

        memory = mmap.mmap(-1, size)
        address = numpy.frombuffer(memory, "u1").ctypes.data
        self.maps[address] = memory
        return Buffer.from_handle(address, size, mr=self)

    def deallocate(self, ptr: int, size: int, stream: Any = None) -> None:
        self.maps.pop(int(ptr)).close()


class World:
    """What the scenarios use."""

    def __init__(self) -> None:
        self.device = Device()
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.kernel = ObjectCode.from_ptx(PTX).get_kernel("store")
        self.prepared = PreparedLaunch(ONE, self.kernel, type(self.buffer()), int)
        self.pinned = LegacyPinnedMemoryResource()
        self.virtual = VirtualMemoryResource(self.device)
        self.host = HostResource()
        self.mapped = MappedResource()
        self.large = self.device.allocate(LARGE, stream=self.stream)
        self.random = random.Random(1)

    def buffer(self) -> Any:
        return self.device.allocate(SIZE, stream=self.stream)


def close_and_slice(w: World) -> Sequence[Action]:
    buffer = w.buffer()
    return buffer.close, lambda: buffer[8:16].close(), lambda: buffer[:].fill(1, stream=w.stream)


def close_and_memoryview(w: World) -> Sequence[Action]:
    buffer = w.pinned.allocate(SIZE)
    return buffer.close, lambda: bytes(buffer.__buffer__(0)), lambda: bytes(buffer[8:64].__buffer__(0))


def close_and_methods_of_a_slice(w: World) -> Sequence[Action]:
    part = w.buffer()[16:32]  # nobody else has the whole
    method = w.random.choice(
        [
            lambda: part.set_deallocation_stream(w.stream),
            lambda: part.__dlpack__(stream=-1),
            lambda: part.__dlpack__(stream=1),
            lambda: part.fill(1, stream=w.stream),
            lambda: part[1:2],
            lambda: StridedMemoryView.from_any_interface(part, stream_ptr=w.stream.handle).ptr,
            lambda: part.copy_to(bytearray(16), stream=w.stream),
        ]
    )
    return part.close, method, method


def close_and_copy(w: World) -> Sequence[Action]:
    one, other = w.buffer(), w.buffer()
    return (
        one.close,
        lambda: one.copy_to(other, stream=w.stream),
        lambda: copy_batch(w.stream, [other], [one]),
        lambda: one.copy_to(bytearray(SIZE), stream=w.stream),
        other.close,
    )


def close_and_copies_of_views(w: World) -> Sequence[Action]:
    buffer = w.mapped.allocate(LARGE)
    view, on_device = (StridedMemoryView.from_buffer(item, (LARGE,), dtype="u1") for item in (buffer, w.large))
    array = StridedMemoryView.from_any_interface(numpy.empty(LARGE, "u1"), -1)
    return (
        lambda: view.copy_to(array, None),
        lambda: view.copy_from(array, None),
        lambda: view.copy_to(on_device, w.stream, blocking=w.random.choice([False, True])),
        lambda: view.copy_from(on_device, w.stream, blocking=w.random.choice([False, True])),
        buffer.close,
        lambda: view.__dlpack__(copy=True),
        lambda: buffer.__dlpack__(copy=True),
    )


def close_and_stream(w: World) -> Sequence[Action]:
    stream, event = w.device.create_stream(), w.device.create_event()
    return (
        stream.close,
        lambda: stream.record(event),
        lambda: w.stream.wait(stream),
        lambda: stream.wait(event),
        lambda: event.sync(),
        event.close,
        lambda: stream.record().sync(),
        lambda: stream.context.handle,
    )


def close_and_allocate(w: World) -> Sequence[Action]:
    pool, stream = DeviceMemoryResource(w.device, {"max_size": 1 << 21}), w.device.create_stream()
    return (
        pool.close,
        lambda: pool.allocate(64, stream=stream).close(stream),
        lambda: pool.attributes.used_mem_current,
        stream.close,
        lambda: pool.allocate(64, stream=stream).close(),
    )


def close_and_launch(w: World) -> Sequence[Action]:
    stream = w.device.create_stream()
    buffer = w.device.allocate(SIZE, stream=stream)  # goes back in the order of the launches
    code = ObjectCode.from_ptx(PTX)
    kernel = code.get_kernel("store")
    code.close()

    def start() -> None:
        launch(stream, ONE, kernel, buffer, 1)

    return (
        buffer.close,
        start,
        lambda: w.prepared.launch(stream, buffer, 1),
        kernel.close,
        lambda: kernel.attributes.num_regs,
        start,
        stream.close,
    )


def close_and_occupancy(w: World) -> Sequence[Action]:
    code = ObjectCode.from_ptx(PTX)
    kernel = code.get_kernel("store")
    code.close()
    return (
        kernel.close,
        lambda: kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0),
        lambda: kernel.num_arguments,
        lambda: kernel.attributes.max_threads_per_block,
    )


def close_and_growth(w: World) -> Sequence[Action]:
    buffer = w.virtual.allocate(1 << 21)
    return (
        buffer.close,
        lambda: w.virtual.modify_allocation(buffer, 1 << 22).close(),
        lambda: w.prepared.launch(w.stream, buffer, 1),
        lambda: buffer.fill(1, stream=w.stream),
    )


def close_and_memory_of_a_resource(w: World) -> Sequence[Action]:
    buffer = w.host.allocate(SIZE)
    other = w.buffer()
    return buffer.close, lambda: buffer.copy_to(other, stream=w.stream), lambda: buffer[4:8].close(), other.close


def close_and_inner_graphs(w: World) -> Sequence[Action]:
    definition = GraphDefinition()
    child = GraphDefinition()
    child.empty()
    embedded = definition.embed(child)
    node = definition.if_then(definition.create_condition(1))
    child.close()
    return (
        definition.close,
        lambda: node.then.empty(),
        lambda: [body.nodes() for body in node.branches],
        lambda: embedded.child_graph.nodes(),
        lambda: definition.nodes(),
        lambda: definition.instantiate().close(),
        lambda: definition.clone().close(),
    )


def destroy_and_nodes(w: World) -> Sequence[Action]:
    definition, buffer = GraphDefinition(), w.buffer()
    first = definition.memset(buffer, 1, SIZE)
    second = first.memset(buffer, 2, SIZE)
    return (
        first.destroy,
        lambda: first.memset(buffer, 3, SIZE),
        lambda: first.succ,
        lambda: set(second.pred),
        lambda: second.pred.clear(),
        lambda: first.update(value=4),
        lambda: first.value,
        second.destroy,
        definition.close,
    )


def destroy_and_inner_graphs(w: World) -> Sequence[Action]:
    definition, buffer = GraphDefinition(), w.buffer()
    with GraphDefinition() as child:
        child.memset(buffer, 1, SIZE)
        embedded = definition.embed(child)
    node = definition.if_then(definition.create_condition(1))
    first = definition.memset(buffer, 1, SIZE)
    executable = definition.instantiate()
    return (
        embedded.destroy,
        lambda: embedded.child_graph.nodes(),
        lambda: embedded.child_graph.clone().close(),
        node.destroy,
        lambda: node.then.memset(buffer, 1, SIZE).callback(int),
        first.destroy,
        lambda: executable[first].disable(),
        lambda: executable[first].update(dst=buffer, value=2, width=SIZE),
    )


def close_and_executables(w: World) -> Sequence[Action]:
    definition, buffer = GraphDefinition(), w.buffer()
    node = definition.memset(buffer, 1, SIZE)
    graph, stream = definition.instantiate(), w.device.create_stream()
    return (
        graph.close,
        lambda: graph.launch(stream),
        lambda: graph.upload(stream),
        lambda: graph.update(definition),
        lambda: graph[node].is_enabled,
        stream.close,
        lambda: graph.launch(w.stream),
    )


def close_and_captures(w: World) -> Sequence[Action]:
    stream = w.device.create_stream()
    builder, buffer = stream.create_graph_builder(), w.device.allocate(SIZE, stream=stream)
    builder.begin_building()
    body = builder.if_then(builder.create_condition(1)).begin_building()
    return (
        builder.close,
        builder.end_building,
        lambda: buffer.fill(1, stream=builder),
        lambda: body.callback(int),
        lambda: builder.callback(int),
        lambda: launch(builder, ONE, w.kernel, buffer, 1),
        body.end_building,
        stream.close,
    )


def close_and_graphs_that_were_captured(w: World) -> Sequence[Action]:
    builder = w.device.create_graph_builder().begin_building()
    builder.callback(int)

    def ask() -> None:
        builder.graph_definition.nodes()

    return (
        builder.end_building,
        builder.close,
        ask,
        ask,
        lambda: builder.complete().close(),
        lambda: builder.callback(int),
    )


def close_and_graphs_nobody_has(w: World) -> Sequence[Action]:
    builder = w.device.create_graph_builder().begin_building().end_building()
    builder.stream.close()

    def ask() -> None:
        builder.graph_definition.nodes()

    return (builder.close, ask, ask, lambda: builder.graph_definition.close(), lambda: builder.complete().close())


def add_to_one_builder(w: World) -> Sequence[Action]:
    builder = w.device.create_graph_builder()
    buffer = w.buffer()
    builder.begin_building()

    def add() -> None:
        builder.callback(int)

    def split() -> None:
        builder.join(*builder.split(3))

    return (
        add,
        lambda: buffer.fill(1, stream=builder),
        add,
        split,
        lambda: launch(builder, ONE, w.kernel, buffer, 1),
        lambda: builder.if_then(builder.create_condition(1)),
    )


SCENARIOS: dict[str, Scenario] = {
    name: function
    for name, function in list(globals().items())
    if name.startswith(("close_and_", "destroy_and_", "add_to_"))
}


class Threads:
    """Threads that run the actions of a round at the same time."""

    def __init__(self, number: int) -> None:
        self.actions: Sequence[Action] = ()
        self.unexpected: list[BaseException] = []
        self.begin, self.end = threading.Barrier(number + 1), threading.Barrier(number + 1)
        for index in range(number):
            threading.Thread(target=self.work, args=(index,), daemon=True).start()

    def work(self, index: int) -> None:
        Device().set_current()
        while True:
            self.begin.wait()
            if index < len(self.actions):
                try:
                    self.actions[index]()
                except (RuntimeError, CUDAError, ValueError, BufferError):
                    pass
                except BaseException as error:
                    self.unexpected.append(error)
            self.end.wait()

    def run(self, actions: Sequence[Action]) -> None:
        self.actions = actions
        self.begin.wait()
        self.end.wait()
        self.actions = ()
        if self.unexpected:
            raise self.unexpected[0]


def main(name: str, seconds: float) -> None:
    faulthandler.enable()
    sys.setswitchinterval(1e-5)
    world = World()
    scenario = SCENARIOS[name]
    threads = Threads(len(scenario(world)))
    until, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        actions = list(scenario(world))
        world.random.shuffle(actions)
        threads.run(actions)
        rounds += 1
    world.stream.sync()
    print(f"{rounds} rounds")


if __name__ == "__main__":
    assert isinstance(Stream, type)
    main(sys.argv[1], float(sys.argv[2]))
