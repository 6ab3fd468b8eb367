# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.scaling``: how the time of operations grows with the number of objects.

Each scenario runs with n, 2n, 4n, ... objects. What is printed is the mean ratio of the times of each step for the
last two doublings, 2 is linear, 4 quadratic, and the times: of the processor, for all threads of the process. So, on
the simulated driver, they include what that does.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import itertools
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from cuda_core_cffi import (
    Buffer,
    Device,
    GraphMemoryResource,
    LaunchBatch,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    ObjectCode,
    PreparedLaunch,
    VirtualMemoryResource,
    ffi,
    launch,
    lib,
)
from cuda_core_cffi.graph import GraphBuilder, GraphDefinition
from cuda_core_cffi.utils import FileStreamProgramCache, InMemoryProgramCache, TrackingMemoryResource, copy_batch

SIZE = 512
PTX = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .entry store(.param .u64 address, .param .u32 value)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [address];
    ld.param.u32 %r1, [value];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""
ONE = LaunchConfig(grid=1, block=1)
SUSPECT = 2.8
"""The ratio of times above which a step is marked. Caches and memory that is new make linear steps slower than by 2."""
TURNS = 2
"""How often each number is measured: the least time counts."""

LONGEST = 4.0
"""Seconds of one run of a scenario after which the number is not doubled any more."""

Scenario = Callable[["Steps", int], None]
SCENARIOS: dict[str, Scenario] = {}


class Steps:
    """What the steps of a scenario take.

    Attributes
    ----------
    seconds : dict of str to float
        The time of each step.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.device = Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a step."""
        begin = time.process_time()
        yield
        self.seconds[name] = time.process_time() - begin

    @contextlib.contextmanager
    def held_up(self) -> Iterator[None]:
        """Hold the stream up."""
        opened = threading.Event()
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait() and None)
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert lib.cuLaunchHostFunc(self.stream.cdata, ffi.cast("CUhostFn", address), ffi.NULL) == 0
        try:
            yield
        finally:
            opened.set()
            self.stream.sync()


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under the name of its function."""
    SCENARIOS[function.__name__] = function
    return function


def shuffled(items: list[Any]) -> list[Any]:
    """Return the items in another order, the same each time."""
    random.Random(1).shuffle(items)
    return items


@scenario
def buffers(step: Steps, count: int) -> None:
    """Live buffers of each kind of memory."""
    pinned, managed = LegacyPinnedMemoryResource(), ManagedMemoryResource()
    makers: dict[str, Callable[[], Any]] = {
        "pool": lambda: step.device.allocate(SIZE, step.stream),
        "pinned": lambda: pinned.allocate(SIZE),
        "managed": lambda: managed.allocate(SIZE, step.stream),
    }
    for name, make in makers.items():
        with step(f"{name}: allocate"):
            live = [make() for _ in range(count)]
        with step(f"{name}: fill"):
            for buffer in live:
                buffer.fill(1, stream=step.stream)
            step.stream.sync()
        shuffled(live)
        with step(f"{name}: close"):
            for buffer in live:
                buffer.close()
            step.stream.sync()


@scenario
def borrowed(step: Steps, count: int) -> None:
    """Buffers of memory of others: the driver is asked about it."""
    with step.device.allocate(SIZE * count, step.stream) as whole:
        with step("from_handle"):
            live = [Buffer.from_handle(whole.handle + SIZE * i, SIZE, owner=whole) for i in range(count)]
        with step("device_id"):
            for buffer in live:
                _ = buffer.device_id
        with step("close"):
            for buffer in live:
                buffer.close()


@scenario
def slices(step: Steps, count: int) -> None:
    """Slices of one buffer, and of one another."""
    with step.device.allocate(SIZE * count, step.stream) as whole:
        with step("make"):
            live = [whole[SIZE * i : SIZE * (i + 1)] for i in range(count)]
        with step("fill"):
            for item in live:
                item.fill(1, stream=step.stream)
        with step("close"):
            for item in live:
                item.close()
        with step("of slices"):
            live = [whole]
            for _ in range(count):
                live.append(live[-1][:SIZE])
        with step("of slices: order"):
            for item in live[::16]:
                item.set_deallocation_stream(step.stream)
        with step("of slices: close"):
            while len(live) > 1:
                live.pop().close()


@scenario
def streams(step: Steps, count: int) -> None:
    """Streams that wait for one another."""
    with step("create"):
        live = [step.device.create_stream() for _ in range(count)]
    with step("wait in a chain"):
        for one, other in itertools.pairwise(live):
            other.wait(one)
    with step("wait for one"):
        for one in live:
            one.wait(step.stream)
    with step("one waits"):
        for one in live:
            step.stream.wait(one)
    with step("sync"):
        for one in live:
            one.sync()
        step.device.sync()
    with step("close"):
        for one in shuffled(live):
            one.close()


@scenario
def events(step: Steps, count: int) -> None:
    """Events in one stream."""
    with step("create"):
        live = [step.device.create_event() for _ in range(count)]
    with step.held_up(), step("record, held up"):
        for event in live:
            step.stream.record(event)
    with step("query"):
        for event in live:
            _ = event.is_done
    with step("wait"):
        for event in live:
            step.stream.wait(event)
    step.stream.sync()
    with step("close"):
        for event in shuffled(live):
            event.close()


@scenario
def kernels(step: Steps, count: int) -> None:
    """Libraries and their kernels."""
    count //= 4
    with step("load"):
        codes = [ObjectCode.from_ptx(PTX) for _ in range(count)]
        found = [code.get_kernel("store") for code in codes]
    with step.device.allocate(SIZE, step.stream) as buffer:
        with step("launch"):
            for kernel in found:
                launch(step.stream, ONE, kernel, buffer, 1)
            step.stream.sync()
        many = [codes[0].get_kernel("store") for _ in range(count)]
        with step("launch batch"):
            batch = LaunchBatch([(PreparedLaunch(ONE, kernel, Buffer, int), buffer, 1) for kernel in many])
            batch.launch(step.stream)
            step.stream.sync()
        del batch
    with step("unload"):
        del found, many, kernel
        for code in shuffled(codes):
            code.close()


@scenario
def graph_chain(step: Steps, count: int) -> None:
    """A graph of nodes one after the other."""
    with step.device.allocate(SIZE, step.stream) as buffer:
        graph = GraphDefinition()
        with step("add"):
            node: Any = graph
            for _ in range(count):
                node = node.memset(buffer, 1, SIZE)
        measure_graph(step, graph)


@scenario
def graphs_that_allocate(step: Steps, count: int) -> None:
    """Graphs that have memory of their own, and copies between it and that of others."""
    graphs = [GraphDefinition() for _ in range(count)]
    with step("allocate"):
        allocations = [graph.allocate(SIZE) for graph in graphs]
    addresses = shuffled([node.dptr for node in allocations])
    with step("copy"):
        for node, other in zip(allocations, addresses, strict=True):
            node.memcpy(node.dptr, other, SIZE)
    del allocations, node
    with step("close"):
        for graph in graphs:
            graph.close()


@scenario
def graph_star(step: Steps, count: int) -> None:
    """A graph of nodes that come after one and before one."""
    with step.device.allocate(SIZE, step.stream) as buffer:
        graph = GraphDefinition()
        first = graph.empty()
        with step("add"):
            nodes = [first.memset(buffer, 1, SIZE) for _ in range(count)]
        with step("join"):
            graph.join(*nodes)
        del nodes
        measure_graph(step, graph)


@scenario
def graph_roots(step: Steps, count: int) -> None:
    """A graph of kernels without edges."""
    with step.device.allocate(SIZE, step.stream) as buffer, ObjectCode.from_ptx(PTX) as code:
        kernel, graph = code.get_kernel("store"), GraphDefinition()
        with step("add"):
            for _ in range(count):
                graph.launch(ONE, kernel, buffer, 1)
        measure_graph(step, graph)


def measure_graph(step: Steps, graph: GraphDefinition) -> None:
    """Measure what there is to do with a graph."""
    with step("instantiate"):
        executable = graph.instantiate()
    with step("launch"):
        executable.launch(step.stream)
        step.stream.sync()
    with step("update"):
        executable.update(graph)
    with step("nodes"):
        nodes = list(graph.nodes())
    with step("edges"):
        graph.edges()
    with step("neighbours"):
        for node in nodes[:: max(1, len(nodes) // 64)]:
            len(node.pred)
    with step("to_dot"):
        graph.to_dot()
    with step("clone"):
        clone = graph.clone()
    with step("embed"), GraphDefinition() as outer:
        inner = outer.embed(graph).child_graph
        inner.nodes()
        del inner
    with step("close the clone"):
        clone.close()
    with step("close the executable"):
        executable.close()
    with step("destroy nodes"):
        for node in shuffled(nodes)[::2]:
            node.destroy()
    with step("close"):
        graph.close()


@scenario
def graph_edges(step: Steps, count: int) -> None:
    """The edges of one node."""
    with GraphDefinition() as graph:
        hub, others = graph.empty(), [graph.empty() for _ in range(count)]
        for name in ("pred", "succ"):
            edges = getattr(hub, name)
            with step(f"{name}: add in one call"):
                edges |= set(others)
            with step(f"{name}: add what is there"):
                edges |= set(others)
            with step(f"{name}: contains"):
                for other in others[:64]:
                    assert other in edges
            with step(f"{name}: replace"):
                setattr(hub, name, set(others[::2]))
            with step(f"{name}: remove in one call"):
                edges -= set(others)
            with step(f"{name}: add one by one"):
                for other in others:
                    edges.add(other)
            with step(f"{name}: remove one by one"):
                for other in shuffled(others):
                    edges.discard(other)


@scenario
def graph_inner(step: Steps, count: int) -> None:
    """Graphs inside nodes."""
    count //= 4
    child = GraphDefinition()
    child.empty()
    graph = GraphDefinition()
    with step("embed"):
        nodes = [graph.embed(child) for _ in range(count)]
    with step("child graphs"):
        inner = [node.child_graph for node in nodes]
        for definition in inner:
            definition.empty()
    with step("clone"):
        graph.clone().close()
    with step("conditions"):
        for _ in range(count):
            graph.if_then(graph.create_condition())
    with step("destroy"):
        for node in nodes[::2]:
            node.destroy()
    with step("close"):
        graph.close()
    del inner, definition
    deep = [child]
    with step("nest"):
        for _ in range(min(count, 200)):
            outer = GraphDefinition()
            outer.embed(deep[-1])
            deep.append(outer)
    for outer in deep:
        outer.close()


@scenario
def graph_functions(step: Steps, count: int) -> None:
    """Host functions of a graph."""
    graph = GraphDefinition()
    with step("add"):
        for _ in range(count):
            graph.callback(list)
    with step("clone"):
        clone = graph.clone()
    with step("close the clone"):
        clone.close()
        wait_for_keeps(count)
    with step("destroy nodes"):
        for node in shuffled(list(graph.nodes()))[::4]:
            node.destroy()
    with step("instantiate"):
        executable = graph.instantiate()
    with step("close"):
        graph.close()
    with step("close the executable"):
        executable.close()
        wait_for_keeps(0)


def wait_for_keeps(count: int) -> None:
    """Wait until so much is kept for graphs, at most."""
    end = time.monotonic() + 30
    while lib.ccc_refs_count() > count and time.monotonic() < end:
        GraphDefinition().close()
        time.sleep(0.0001)


@scenario
def graph_updates(step: Steps, count: int) -> None:
    """Changes of single nodes, in a definition and in an executable, idle and under way."""
    with step.device.allocate(SIZE, step.stream) as buffer, step.device.allocate(SIZE, step.stream) as other:
        graph = GraphDefinition()
        nodes = [graph.memset(buffer, 1, SIZE) for _ in range(count)]
        with step("definition"):
            for node in nodes:
                node.update(dst=other)
        executable = graph.instantiate()
        for turn in ("first", "second"):
            with step(f"executable, {turn}"):
                for node in nodes:
                    executable[node].update(dst=buffer, value=2, width=SIZE)
        with step("enable"):
            for node in nodes:
                executable[node].disable()
        with step.held_up():
            executable.launch(step.stream)
            with step("executable, under way"):
                for node in nodes:
                    executable[node].update(dst=other, value=2, width=SIZE)
            with step("updates as a whole, under way"):
                for _ in range(16):
                    executable.update(graph)
            with step("close, under way"):
                executable.close()
            with step("calls meanwhile"):
                for _ in range(count):
                    graph.empty()
        with step("close"):
            graph.close()
            wait_for_keeps(0)


@scenario
def graph_launches(step: Steps, count: int) -> None:
    """Executables that are dropped while they run."""
    with step.device.allocate(SIZE, step.stream) as buffer:
        graph = GraphDefinition()
        graph.memset(buffer, 1, SIZE)
        with step("instantiate"):
            live = [graph.instantiate() for _ in range(count)]
        with step.held_up():
            with step("launch"):
                for executable in live:
                    executable.launch(step.stream)
            with step("drop"):
                for executable in live:
                    executable.close()
            del live
        with step("close"):
            graph.close()
            wait_for_keeps(0)


@scenario
def graph_memory(step: Steps, count: int) -> None:
    """Nodes that allocate and free."""
    count //= 4
    graph = GraphDefinition()
    with step("allocate"):
        nodes = [graph.allocate(SIZE) for _ in range(count)]
    with step("fill"):
        filled = [node.memset(node.dptr, 1, SIZE) for node in nodes]
    with step("copy"):
        copied = [node.memcpy(one.dptr, one.dptr + 8, 8) for node, one in zip(filled, nodes)]
    with step("deallocate"):
        for node, one in zip(copied, nodes):
            node.deallocate(one.dptr)
    with step("instantiate"):
        executable = graph.instantiate()
    with step("launch"):
        executable.launch(step.stream)
        step.stream.sync()
    with step("close"):
        executable.close()
        graph.close()


@scenario
def captures(step: Steps, count: int) -> None:
    """Captures: many at once, long ones, and what is closed meanwhile."""
    few = max(count // 8, 1)
    with step("begin many"):
        builders = [step.device.create_graph_builder().begin_building() for _ in range(few)]
    with step("end many"):
        for builder in builders:
            builder.end_building()
    with step("close many"):
        for builder in builders:
            builder.close()
    live = [step.device.allocate(SIZE, step.stream) for _ in range(count)]
    builder = step.stream.create_graph_builder().begin_building()
    with step("fill"):
        for buffer in live:
            buffer.fill(1, stream=builder)
    with step("callback"):
        for _ in range(count):
            builder.callback(list)
    with step("close meanwhile"):
        for buffer in live:
            buffer.close()
    with step("callback after that"):
        for _ in range(count):
            builder.callback(list)
    with step("make graphs meanwhile"):
        for _ in range(count):
            GraphDefinition()
    with step("end"):
        builder.end_building()
    with step("complete"):
        executable = builder.complete()
    with step("close"):
        executable.close()
        builder.close()
        wait_for_keeps(0)
    builder = step.device.create_graph_builder().begin_building()
    with step("split"):
        forks = builder.split(few)
    with step("join"):
        GraphBuilder.join(*forks)
    with step("end forks"):
        builder.end_building()
        builder.close()
    memory = GraphMemoryResource(step.device)
    builder = step.device.create_graph_builder().begin_building()
    with step("graph memory: allocate"):
        own = [memory.allocate(SIZE, builder) for _ in range(few)]
    with step("graph memory: close"):
        for buffer in own:
            buffer.close()
    with step("graph memory: end"):
        builder.end_building()
        builder.close()


@scenario
def host_functions(step: Steps, count: int) -> None:
    """Functions that a stream calls."""
    with step.held_up(), step("callback, held up"):
        for _ in range(count):
            step.stream.callback(list)
    with step("callback and sync"):
        for _ in range(count // 8):
            step.stream.callback(list)
            step.stream.sync()


@scenario
def raising_functions(step: Steps, count: int) -> None:
    """Functions that raise, in many streams."""
    count //= 8
    live = [step.device.create_stream() for _ in range(count)]
    for stream in live:
        stream.callback(lambda: 1 // 0)
    lib.cuCtxSynchronize()
    with step("sync of another stream"):
        for _ in range(count):
            step.stream.sync()
    with step("sync"):
        for stream in live:
            with contextlib.suppress(ZeroDivisionError):
                stream.sync()
    for stream in live:
        stream.close()


@scenario
def host_copies(step: Steps, count: int) -> None:
    """Copies from Python objects."""
    data = b"1" * SIZE
    with step.device.allocate(SIZE, step.stream) as buffer, step.device.create_stream() as other:
        with step.held_up():
            with step("copy, held up"):
                for _ in range(count):
                    buffer.copy_from(data, stream=step.stream)
            with step("other stream: sync"):
                for _ in range(16):
                    other.sync()
        with step("copy"):
            for _ in range(count):
                buffer.copy_from(data, stream=step.stream)
            step.stream.sync()


@scenario
def copies(step: Steps, count: int) -> None:
    """Copies in one batch, and one by one."""
    one = [step.device.allocate(SIZE, step.stream) for _ in range(count)]
    other = [step.device.allocate(SIZE, step.stream) for _ in range(count)]
    with step("batch"):
        copy_batch(step.stream, one, other)
        step.stream.sync()
    with step("one by one, held up"), step.held_up():
        for source, target in zip(one, other):
            source.copy_to(target, stream=step.stream)
    for buffer in one + other:
        buffer.close()


@scenario
def tensors(step: Steps, count: int) -> None:
    """DLPack tensors of memory that Python gives back, deleted at once."""
    memory = numpy.zeros(SIZE, numpy.int8)

    class Resource(LegacyPinnedMemoryResource):
        def deallocate(self, ptr: Any, size: int, stream: Any = None) -> None:
            """Do nothing: the memory is NumPy's."""

    mr = Resource()
    with step("export"):
        arrays = [numpy.from_dlpack(Buffer.from_handle(memory.ctypes.data, SIZE, mr=mr)) for _ in range(count)]
    with step("delete"):
        del arrays
    with step("next export"):
        numpy.from_dlpack(Buffer.from_handle(memory.ctypes.data, SIZE, mr=mr))


@scenario
def tracked(step: Steps, count: int) -> None:
    """A tracking resource."""
    mr = TrackingMemoryResource(step.device.memory_resource)
    with step("allocate"):
        live = [mr.allocate(SIZE, step.stream) for _ in range(count)]
    with step("outstanding"):
        assert len(mr.outstanding()) == count
    with step("close"):
        for buffer in shuffled(live):
            buffer.close()


@scenario
def virtual_memory(step: Steps, count: int) -> None:
    """Mappings, and a buffer that grows."""
    count //= 128  # a piece is 2 MiB
    mr = VirtualMemoryResource(step.device)
    with step("allocate"):
        live = [mr.allocate(SIZE) for _ in range(count)]
    with step("close"):
        for buffer in shuffled(live):
            buffer.close()
    piece = 2 << 20
    buffer = mr.allocate(piece)
    with step("grow"):
        for number in range(2, count):
            smaller, buffer = buffer, mr.modify_allocation(buffer, number * piece)
            smaller.close()
    with step("close the grown"):
        buffer.close()


@scenario
def program_caches(step: Steps, count: int) -> None:
    """Entries of caches."""
    count //= 4
    caches: dict[str, Any] = {
        "memory": InMemoryProgramCache(),
        "memory, limited": InMemoryProgramCache(32 * count),
    }
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        caches["files"] = FileStreamProgramCache(one)
        caches["files, limited"] = FileStreamProgramCache(other, max_size_bytes=32 * count)
        for name, cache in caches.items():
            with step(f"{name}: write"):
                for number in range(count):
                    cache[str(number)] = b"1" * 64
            with step(f"{name}: read"):
                for number in range(count):
                    cache.get(str(number))
            with step(f"{name}: clear"):
                cache.clear()


@scenario
def threads(step: Steps, count: int) -> None:
    """Threads that use the package and end."""
    count //= 16

    def work() -> None:
        step.device.set_current()
        with step.device.allocate(SIZE, step.stream) as buffer:
            buffer.fill(1, stream=step.stream)

    with step("one after the other"):
        for _ in range(count):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()


def measure(function: Scenario, first: int, last: int, longest: float) -> dict[str, list[float]]:
    """Return the seconds of each step, by doubling."""
    found: dict[str, list[float]] = {}
    count = first
    while count <= last:
        begin = time.perf_counter()
        for turn in range(TURNS):
            gc.collect()
            gc.disable()  # it looks at all objects again and again
            steps = Steps()
            function(steps, count)
            steps.stream.close()
            gc.enable()
            for name, seconds in steps.seconds.items():
                if turn == 0:
                    found.setdefault(name, []).append(seconds)
                else:
                    found[name][-1] = min(found[name][-1], seconds)
        if time.perf_counter() - begin > longest:
            break
        count *= 2
    return found


def growth(seconds: list[float]) -> float:
    """Return the mean ratio per doubling of the last two doublings, as far as they can be told from noise."""
    last = seconds[-3:]
    return (last[-1] / max(last[0], 1e-5)) ** (1 / max(len(last) - 1, 1))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], help="by default all")
    parser.add_argument("--first", type=int, default=1024)
    parser.add_argument("--last", type=int, default=32768)
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds after which numbers are not doubled")
    options = parser.parse_args(arguments)
    suspects = 0
    for name in options.scenarios or SCENARIOS:
        found = measure(SCENARIOS[name], options.first, options.last, options.longest)
        for step, seconds in found.items():
            ratio = growth(seconds)
            suspect = ratio > SUSPECT and seconds[-1] > 0.01
            suspects += suspect
            text = " ".join(f"{value * 1e3:9.2f}" for value in seconds)
            print(f"{'***' if suspect else '   '} {ratio:5.2f}  {name}: {step:36} ms: {text}", flush=True)
    print(f"{suspects} steps grow faster than by {SUSPECT} per doubling")
    return 0


if __name__ == "__main__":
    if "CUDA_CORE_CFFI_DRIVER" not in os.environ:
        os.environ["CUDA_CORE_CFFI_DRIVER"] = "simulator"
    sys.exit(main())
