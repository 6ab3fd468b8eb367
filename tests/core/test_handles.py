# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The life of handles: who keeps what alive, and how it ends, in whatever thread, context or order."""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from helpers import LIMIT, Gate, collect, in_thread, in_threads, output_of, switch_interval

from cuda_core_cffi import (
    Buffer,
    Device,
    DeviceMemoryResource,
    Event,
    ManagedMemoryResource,
    PinnedMemoryResource,
    Stream,
    ffi,
    lib,
    live_objects,
)
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi.graph import GraphDefinition

ROUNDS = 300
MAKERS: dict[str, Callable[[Device, Stream], Any]] = {
    "stream": lambda device, stream: device.create_stream(),
    "event": lambda device, stream: device.create_event(),
    "recorded event": lambda device, stream: stream.record(),
    "buffer": lambda device, stream: device.allocate(256, stream),
    "borrowed stream": lambda device, stream: Stream.from_handle(stream.handle),
    "context": lambda device, stream: device.context,
}
EVERY_KIND = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


class Knot:
    """An object in a reference cycle with what it holds."""

    def __init__(self, *held: object) -> None:
        self.held = held
        self.self = self


# counting


def test_live_objects_names_every_kind() -> None:
    found = live_objects()
    assert {"context", "stream", "event", "pool", "buffer"} <= set(found)
    assert all(type(number) is int and number >= 0 for number in found.values())


def test_live_objects_counts_what_is_alive(device: Device, stream: Stream) -> None:
    before = live_objects()
    kept = [device.create_stream(), device.create_event(), device.create_event(), device.allocate(8, stream)]
    after = live_objects()
    assert {kind: after[kind] - before[kind] for kind in after if after[kind] != before[kind]} == {
        "stream": 1,
        "event": 2,
        "buffer": 1,
    }
    for item in kept:
        item.close()
    assert live_objects() == before


def test_live_objects_does_not_count_what_belongs_to_others(device: Device, stream: Stream) -> None:
    before = live_objects()
    kept = [Stream.from_handle(stream.handle), device.context, stream.context, Buffer.from_handle(4096, 16)]
    assert live_objects() == before
    del kept


def test_live_objects_works_without_a_driver() -> None:
    code = "from cuda_core_cffi import live_objects; print(sum(live_objects().values()))"
    assert output_of(code, CUDA_CORE_CFFI_DRIVER="/nonexistent") == "0"


# closing


@EVERY_KIND
def test_closing_is_idempotent(device: Device, stream: Stream, make: Any) -> None:
    item = make(device, stream)
    for _ in range(3):
        item.close()
    assert item.is_closed
    assert item.handle == 0


@pytest.mark.parametrize(
    "make",
    [
        GraphDefinition,
        lambda: DeviceMemoryResource(0, {}),
        lambda: PinnedMemoryResource({}),
        lambda: ManagedMemoryResource({}),
    ],
    ids=["graph", "pool", "pinned pool", "managed pool"],
)
def test_initialising_an_object_again_is_refused_and_keeps_what_it_has(device: Device, make: Callable[[], Any]) -> None:
    with contextlib.closing(make()) as made:
        handle = made.handle
        arguments = (0, {}) if isinstance(made, DeviceMemoryResource) else ()
        with pytest.raises(RuntimeError, match="is initialised already"):
            made.__init__(*arguments)
        assert made.handle == handle


@EVERY_KIND
def test_closing_then_collecting_is_allowed(device: Device, stream: Stream, make: Any) -> None:
    before = live_objects()
    item = make(device, stream)
    item.close()
    del item
    collect()
    assert live_objects() == before


@EVERY_KIND
def test_two_threads_may_close_the_same_object(device: Device, stream: Stream, make: Any) -> None:
    before = live_objects()
    barrier = threading.Barrier(2, timeout=60)
    items = [make(device, stream) for _ in range(ROUNDS)]

    def close_all(number: int) -> None:
        for item in items:
            barrier.wait()
            item.close()

    in_threads(2, close_all)
    assert all(item.is_closed for item in items)
    assert live_objects() == before


def test_a_foreign_buffer_is_deallocated_once_by_two_threads(device: Device) -> None:
    from cuda_core_cffi import MemoryResource

    class Counting(MemoryResource):
        device_id, is_device_accessible, is_host_accessible = 0, True, False

        def __init__(self) -> None:
            self.freed: list[int] = []

        def deallocate(self, ptr: Any, size: int, stream: Any = None) -> None:
            self.freed.append(int(ptr))

    resource, barrier = Counting(), threading.Barrier(2, timeout=60)
    items = [Buffer.from_handle(4096 + index, 16, resource) for index in range(ROUNDS)]

    def close_all(number: int) -> None:
        for item in items:
            barrier.wait()
            item.close()

    in_threads(2, close_all)
    assert sorted(resource.freed) == list(range(4096, 4096 + ROUNDS))


def test_many_threads_make_and_drop_at_once(device: Device) -> None:
    before = live_objects()

    def work(number: int) -> None:
        Device(0).set_current()
        for _ in range(100):
            with Device(0).create_stream() as stream:
                buffer = Device(0).allocate(64, stream)
                event = stream.record()
                del buffer
                event.sync()
                event.close()

    in_threads(4, work)
    collect()
    assert live_objects() == before


# what keeps what


def test_a_stream_closed_before_its_buffer_stays_until_the_memory_is_back(device: Device) -> None:
    before = live_objects()
    stream = device.create_stream()
    buffer = device.allocate(1024, stream)
    stream.close()
    assert stream.is_closed
    assert live_objects()["stream"] == before["stream"] + 1
    buffer.close()
    assert live_objects() == before


@pytest.fixture
def patient() -> Iterator[None]:
    """A thread has the GIL until it waits or gives it up, at least on CPython."""
    with switch_interval(LIMIT):
        yield


@pytest.mark.parametrize("kind", ["event", "stream"])
def test_what_calls_use_is_destroyed_when_they_return(device: Device, patient: None, kind: str) -> None:
    before = live_objects()
    stream = device.create_stream()
    event = stream.record()
    item: Any = {"event": event, "stream": stream}[kind]
    with Gate(stream) as gate, ThreadPoolExecutor(2) as threads:
        stream.record(event)
        begun = threading.Semaphore(0)

        def wait() -> None:
            begun.release()
            item.sync()  # the GIL is given up in there

        waiting = [threads.submit(wait) for _ in range(2)]
        assert begun.acquire(timeout=LIMIT)
        assert begun.acquire(timeout=LIMIT)
        time.sleep(0.05)  # for PyPy
        item.close()
        item.close()
        assert item.is_closed
        assert live_objects()[kind] == before[kind] + 1
        with pytest.raises(RuntimeError, match=f"this {kind.capitalize()} is closed"):
            item.sync()
        assert not any(call.done() for call in waiting)
        gate.open()
        assert [call.result(LIMIT) for call in waiting] == [None, None]
        gate._stream = device.default_stream  # the stream itself may be gone by now
    assert live_objects()[kind] == before[kind]
    event.close()
    stream.close()
    assert live_objects() == before


def test_memory_goes_back_in_the_order_of_a_stream_that_was_closed(device: Device) -> None:
    pool = DeviceMemoryResource(device, {"max_size": 0})
    stream = device.create_stream()
    buffer = pool.allocate(1 << 20, stream)
    with Gate(stream) as gate:
        twin = Stream.from_handle(stream.handle)
        stream.close()
        buffer.fill(1, stream=twin)
        buffer.close()
        assert live_objects()["buffer"] == 0
        gate.open()
        device.sync()
        assert pool.attributes.used_mem_current == 0
        gate._stream = device.default_stream  # the stream itself is gone by now
    pool.close()


def test_a_pool_closed_before_its_buffer_stays_until_the_memory_is_back(device: Device, stream: Stream) -> None:
    before = live_objects()
    pool = DeviceMemoryResource(device, {"max_size": 0})
    buffer = pool.allocate(1024, stream)
    pool.close()
    assert live_objects()["pool"] == before["pool"] + 1
    buffer.fill(7, stream=stream)
    buffer.close()
    assert live_objects() == before


def test_a_context_object_outlives_what_showed_it(device: Device) -> None:
    stream = device.create_stream()
    context = stream.context
    stream.close()
    del stream
    collect()
    assert context.handle == device.context.handle
    assert device.set_current(context) == context


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=lambda order: "".join(map(str, order)))
def test_any_order_of_release_works(device: Device, order: tuple[int, ...]) -> None:
    before = live_objects()
    stream = device.create_stream()
    pool = DeviceMemoryResource(device, {"max_size": 0})
    items: list[Any] = [stream, pool, pool.allocate(64, stream), stream.record()]
    del stream, pool
    for index in order:
        items[index] = None
        gc.collect()
    collect()
    assert live_objects() == before


# reference cycles


def test_objects_in_a_reference_cycle_are_destroyed(device: Device) -> None:
    before = live_objects()
    for _ in range(20):
        stream = device.create_stream()
        Knot(stream, stream.context, stream.record(), device.allocate(64, stream), device)
    del stream
    collect()
    assert live_objects() == before


def test_cycles_that_hold_each_other_are_destroyed(device: Device) -> None:
    before = live_objects()
    first, second = Knot(device.create_stream()), Knot(device.create_event())
    first.other, second.other = second, first  # type: ignore[attr-defined]
    stream = first.held[0]
    second.buffer = device.allocate(64, stream)  # type: ignore[attr-defined]
    del first, second, stream
    collect()
    assert live_objects() == before


def test_a_subclass_with_attributes_takes_part_in_cycles(device: Device) -> None:
    class Special(Stream):
        pass

    before = live_objects()
    from cuda_core_cffi import StreamOptions

    special = Special._create(0, StreamOptions())
    assert type(special) is Special
    special.itself = special  # type: ignore[attr-defined]
    del special
    collect()
    assert live_objects() == before


# contexts and threads


@EVERY_KIND
@pytest.mark.parametrize("how", ["close", "drop"])
def test_release_works_in_a_thread_without_a_context(device: Device, stream: Stream, make: Any, how: str) -> None:
    before = live_objects()
    items = [make(device, stream)]

    def release() -> None:
        item = items.pop()
        if how == "close":
            item.close()
        del item
        collect()
        current = ffi.new("CUcontext *")
        assert lib.cuCtxGetCurrent(current) == 0
        assert current[0] == ffi.NULL

    in_thread(release)
    assert live_objects() == before


@pytest.mark.simulator_only("needs two devices, whatever the machine has")
def test_release_works_with_the_context_of_another_device_current() -> None:
    text = output_of(
        """
        import gc
        from cuda_core_cffi import Device, live_objects, simulator
        first, second = Device(0), Device(1)
        first.set_current()
        for close in (True, False):
            stream = first.create_stream()
            items = [first.create_event(), stream.record(), first.allocate(64, stream), first.allocate(64),
                     stream, first.context]
            del stream
            second.set_current()
            if close:
                for item in items:
                    item.close()
                del item
            del items
            gc.collect()
            gc.collect()
            print(Device() is second, sum(live_objects().values()), simulator.reports())
            first.set_current()
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert text.split("\n") == ["True 0 []"] * 2


@pytest.mark.simulator_only("needs two devices, whatever the machine has")
def test_memory_of_a_default_stream_goes_back_in_the_default_stream_of_its_own_context() -> None:
    text = output_of(
        """
        import ctypes, threading
        from cuda_core_cffi import Device, LEGACY_DEFAULT_STREAM, ffi, lib
        first, second = Device(0), Device(1)
        first.set_current()
        pool = first.memory_resource
        other = first.create_stream()
        buffer = pool.allocate(1 << 20, LEGACY_DEFAULT_STREAM)
        address_before = buffer.handle
        opened = threading.Event()
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait(60) and None)
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert lib.cuLaunchHostFunc(LEGACY_DEFAULT_STREAM.cdata, ffi.cast("CUhostFn", address), ffi.NULL) == 0
        second.set_current()
        buffer.close()
        second.sync()
        # the free is behind the gate in the first device's default stream: another stream gets other memory
        first.set_current()
        print(pool.allocate(1 << 20, other).handle != address_before)
        opened.set()
        first.sync()
        print(pool.allocate(1 << 20, other).handle == address_before)
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert text.split() == ["True", "True"]


@pytest.mark.simulator_only("injects a fault")
@pytest.mark.parametrize("call", ["cuStreamDestroy", "cuEventDestroy"])
def test_a_driver_that_wants_a_context_for_cleanup_gets_one(device: Device, call: str) -> None:
    from cuda_core_cffi import simulator

    item = device.create_stream() if call == "cuStreamDestroy" else device.create_event()

    def release() -> None:
        with simulator.fail(call, "CUDA_ERROR_INVALID_CONTEXT"), simulator.trace(call) as trace:
            item.close()
        assert [found.result for found in trace] == [int(lib.CUDA_ERROR_INVALID_CONTEXT), 0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_thread(release)


# exit

AT_EXIT = {
    "module globals": "things = [stream, event, recorded, buffer, context, pool, own]",
    "a cycle": "stream = event = recorded = buffer = context = pool = own = None; knot.itself = knot",
    "a thread's locals": """
import threading
local = threading.local()
local.things = [stream, event, recorded, buffer, context, pool, own]
""",
    "a module attribute": "import sys; sys.things = [stream, event, recorded, buffer, context, pool, own]",
    "closed objects": "stream.close(); event.close(); buffer.close(); pool.close(); recorded.close()",
    "an atexit callback": "import atexit; atexit.register(lambda: (buffer.close(), stream.close(), own.close()))",
    "a thread that still runs": """
import threading, time
threading.Thread(target=lambda: (time.sleep(0.05), stream.sync(), buffer.close())).start()
""",
    "a daemon thread at work": """
import threading
from cuda_core_cffi import CUDAError
def work():
    Device(0).set_current()
    try:
        while True:
            Device(0).create_event().close()
    except CUDAError as error:  # PyPy lets it run on while the process ends, and the driver with it
        assert error.name == "CUDA_ERROR_DEINITIALIZED", error
threading.Thread(target=work, daemon=True).start()
""",
}


@pytest.mark.parametrize("where", AT_EXIT.values(), ids=AT_EXIT.keys())
def test_the_interpreter_ends_in_silence_with_live_objects(where: str) -> None:
    code = """
from cuda_core_cffi import Device, DeviceMemoryResource
device = Device(0)
device.set_current()
class Knot: pass
stream, event, context = device.create_stream(), device.create_event(), device.context
recorded, buffer = stream.record(), device.allocate(64, stream)
pool = DeviceMemoryResource(device, {"max_size": 0})
own = pool.allocate(64)
knot = Knot()
knot.held = (stream, event, recorded, buffer, context, pool, own)
"""
    assert output_of(code + where + "\nprint('end')") == "end"


@pytest.mark.simulator_only("injects faults")
@pytest.mark.parametrize("where", ["kept = ", "import sys; sys.kept = ", "kept = []; kept.append(kept); kept += "])
def test_cleanup_that_fails_at_exit_is_silent(where: str) -> None:
    code = f"""
from cuda_core_cffi import Device, simulator
{where} [Device(0).create_stream(), Device(0).create_event()]
simulator.fail("cuStreamDestroy", 1, count=10)
simulator.fail("cuEventDestroy", 1, count=10)
print("end")
"""
    assert output_of(code) == "end"


# the base class


def test_a_handle_cannot_be_constructed() -> None:
    for cls in (Handle, Stream, Event):
        with pytest.raises(RuntimeError, match="cannot be constructed directly"):
            cls()


def test_a_box_is_an_address(stream: Stream) -> None:
    assert type(stream.c_handle) is int
    assert stream.c_handle != 0


@pytest.mark.simulator_only("injects faults")
@pytest.mark.parametrize(
    ("make", "call"),
    [
        (lambda device: device.create_stream(), "cuStreamCreateWithPriority"),
        (lambda device: device.create_event(), "cuEventCreate"),
        (lambda device: device.allocate(64, device.default_stream), "cuMemAllocFromPoolAsync"),
    ],
    ids=["stream", "event", "buffer"],
)
def test_making_one_that_fails_leaves_nothing_behind(device: Device, make: Any, call: str) -> None:
    from cuda_core_cffi import CUDAError, simulator

    _ = device.memory_resource
    before = live_objects(), simulator.live()
    with (
        simulator.fail(call, "CUDA_ERROR_NOT_PERMITTED"),
        pytest.raises(CUDAError, match=f"{call} failed: CUDA_ERROR_NOT_PERMITTED"),
    ):
        make(device)
    assert (live_objects(), simulator.live()) == before
