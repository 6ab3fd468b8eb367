# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that a signal handler or a finalizer interrupts, which uses the same object in the same thread.

    python interrupted_cases.py [NAME]    run all cases or one, and print those that end well

A case hangs where the interrupted call holds a lock that is not reentrant.

Each case is run once for each line of the package: there a trace function, as a handler or a finalizer would, does
something else in between.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from helpers import alive, collect
from scenarios import PTX

import cuda_core_cffi
from cuda_core_cffi import (
    Buffer,
    Device,
    DeviceMemoryResource,
    GraphMemoryResource,
    Host,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    MemoryResource,
    ObjectCode,
    VirtualMemoryResource,
    ffi,
    system,
)
from cuda_core_cffi._core.libraries import NvidiaLibrary
from cuda_core_cffi._device import device as devices
from cuda_core_cffi._memory import dlpack, graph_memory, memory_owner
from cuda_core_cffi.graph.allocated import Ranges
from cuda_core_cffi.system import _library
from cuda_core_cffi.utils import InMemoryProgramCache, StridedMemoryView

T = TypeVar("T")
PACKAGE = str(pathlib.Path(cuda_core_cffi.__file__).parent)


def interrupted(
    prepare: Callable[[], T], work: Callable[[T], Any], interrupt: Callable[[T], Any]
) -> Iterator[tuple[T, Any, Any]]:
    """Interrupt a call at each line of the package in turn; yield the state and both results.

    The last time the call is not interrupted, and nothing is yielded.
    """
    for wanted in itertools.count():
        state = prepare()
        others: list[Any] = []
        lines = itertools.count()

        def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
            if not frame.f_code.co_filename.startswith(PACKAGE):
                return None
            if event == "line" and next(lines) == wanted:  # noqa: B023  (it is called in this round only)
                others.append(interrupt(state))  # noqa: B023
            return trace

        sys.settrace(trace)
        try:
            result = work(state)
        finally:
            sys.settrace(None)
        if not others:
            assert wanted, "the call has no line of the package"
            del state, result, trace
            collect()
            return
        yield state, result, others.pop()


def refused(call: Callable[[], Any], *errors: type[Exception]) -> Any:
    """Return the result of a call, or the error that it raises."""
    try:
        return call()
    except errors as error:
        return error


def hosts() -> None:
    numbers = itertools.count(1000)
    make = lambda number: Host(numa_id=number)  # noqa: E731
    for number, one, other in interrupted(lambda: next(numbers), make, make):
        assert one is other is Host(numa_id=number)


def graph_resources() -> None:
    make = lambda _: GraphMemoryResource(0)  # noqa: E731
    for _, one, other in interrupted(graph_memory._resources.clear, make, make):
        assert one is other is GraphMemoryResource(0)


def default_resources() -> None:
    find = lambda _: devices.default_memory_resource(Device(0))  # noqa: E731
    for _, one, other in interrupted(devices._default_resources.clear, find, find):
        assert one is other


def allocation_handles() -> None:
    get = lambda pool: pool.allocation_handle  # noqa: E731
    make = lambda: DeviceMemoryResource(0, {"ipc_enabled": True, "max_size": 1 << 20})  # noqa: E731
    make().allocation_handle.close()  # the driver opens files of its own
    before = len(os.listdir("/proc/self/fd"))
    for pool, one, other in interrupted(make, get, get):
        assert one is other
        assert not one.is_closed
        pool.close()
        assert one.is_closed
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # PyPy may not have collected the pool of the last round


def loaded_code() -> None:
    get = lambda code: code.handle  # noqa: E731
    before = alive()["library"]
    for code, one, other in interrupted(lambda: ObjectCode.from_ptx(PTX), get, get):
        assert one == other
        assert alive()["library"] == before + 1
        code.close()


def closed_code() -> None:
    get = lambda code: refused(lambda: code.cdata, RuntimeError)  # noqa: E731
    before = alive()["library"]
    for code, _, _ in interrupted(lambda: ObjectCode.from_ptx(PTX), get, ObjectCode.close):
        assert code.is_closed
        assert alive()["library"] == before


def closed_events() -> None:
    device = system.Device(index=0)
    freed: list[int] = []

    def register() -> Any:
        events = device.register_events(device.get_supported_event_types()[:1])
        free, events._free = events._free, lambda handle: (freed.append(handle), free(handle))
        return events

    def wait(events: Any) -> Any:
        return refused(lambda: events.wait(timeout_ms=1), RuntimeError, system.TimeoutError)

    for events, error, _ in interrupted(register, wait, lambda events: events.close()):
        assert isinstance(error, system.TimeoutError) or "closed" in str(error), error
        assert events.is_closed
        assert len(freed) == 1
        freed.clear()


def loaded_library() -> None:
    os.environ["CUDA_CORE_CFFI_INTERRUPTED"] = __file__

    def found() -> NvidiaLibrary:
        return NvidiaLibrary("interrupted", "Interrupted", lambda path: ffi.NULL)

    for library, *_ in interrupted(found, NvidiaLibrary.load, NvidiaLibrary.load):
        assert library.path == __file__


def initialised_nvml() -> None:
    def forget() -> None:
        _library.process.ready = False

    start = lambda _: _library.initialise()  # noqa: E731
    for _ in interrupted(forget, start, start):
        assert _library.process.ready


def cached_programs() -> None:
    def prepare() -> InMemoryProgramCache:
        cache = InMemoryProgramCache(20)
        cache["one"] = bytes(8)
        cache["two"] = bytes(2)
        return cache

    def store(cache: InMemoryProgramCache) -> None:
        cache["two"] = bytes(16)

    def store_another(cache: InMemoryProgramCache) -> None:
        cache["two"] = bytes(4)
        cache["three"] = bytes(6)

    for cache, _, _ in interrupted(prepare, store, store_another):
        assert sum(map(len, cache._entries.values())) <= 20
        for key in list(cache._entries):
            del cache[key]
        cache["four"] = bytes(20)
        assert list(cache._entries) == [b"four"]


def changed_configuration() -> None:
    def widen(config: LaunchConfig) -> None:
        config.grid = (7, 1, 1)

    for config, _, _ in interrupted(lambda: LaunchConfig(grid=1, block=1), lambda config: config._native, widen):
        assert config._native.driver.gridDimX == 7


def copied_configuration() -> None:
    def prepare() -> LaunchConfig:
        config = LaunchConfig(grid=1, block=1)
        assert config._native.driver.gridDimX == 1
        return config

    def widen(config: LaunchConfig) -> None:
        config.grid = (7, 1, 1)

    for _, copy, _ in interrupted(prepare, LaunchConfig.__copy__, widen):
        assert copy._native.driver.gridDimX == copy.grid[0]


def changed_attributes() -> None:
    def prioritise(config: LaunchConfig) -> None:
        config.priority = -1

    def carve(config: LaunchConfig) -> None:
        config.preferred_shared_memory_carveout = 50

    for config, _, _ in interrupted(lambda: LaunchConfig(grid=1, block=1), prioritise, carve):
        assert (config.priority, config.preferred_shared_memory_carveout) == (-1, 50)


def lent_views() -> None:
    memory = LegacyPinnedMemoryResource().allocate(16)
    view = lambda: StridedMemoryView.from_any_interface(memory, stream_ptr=-1)  # noqa: E731
    for _, one, other in interrupted(view, dlpack.share_view, dlpack.share_view):
        assert one
        assert other
    memory.close()


class Counting(MemoryResource):
    """A resource that counts deallocations."""

    is_device_accessible, is_host_accessible, device_id = False, True, -1

    def __init__(self) -> None:
        self.returned = 0

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        raise NotImplementedError

    def deallocate(self, ptr: Any, size: int, stream: Any = None) -> None:
        self.returned += 1


def released_leases() -> None:
    memory = ffi.new("char[]", 16)

    def prepare() -> tuple[Buffer, Counting]:
        resource = Counting()
        buffer = Buffer.from_handle(int(ffi.cast("uintptr_t", memory)), 16, mr=resource)
        buffer._memory_owner.retain()
        buffer._memory_owner.retain()
        buffer.close()
        return buffer, resource

    def release(state: tuple[Buffer, Counting]) -> None:
        state[0]._memory_owner.release()

    def retain(state: tuple[Buffer, Counting]) -> None:
        state[0]._memory_owner.retain()

    for (buffer, resource), _, _ in interrupted(prepare, release, release):
        assert resource.returned == 1
        assert buffer._memory_owner._count == 0
    for (buffer, resource), _, _ in interrupted(prepare, release, retain):
        assert (resource.returned, buffer._memory_owner._count) == (0, 2)
    memory_owner.release_postponed()


def closed_growing_buffer() -> None:
    unit = 2 << 20
    resource = VirtualMemoryResource(0)

    def prepare() -> list[Buffer]:
        buffer = resource.allocate(unit)
        after = resource.allocate(unit)  # so that the buffer has to move, as a rule
        return [buffer, after]

    def grow(buffers: list[Buffer]) -> Any:
        return refused(lambda: resource.modify_allocation(buffers[0], 2 * unit).close(), RuntimeError)

    def close(buffers: list[Buffer]) -> None:
        buffers[0].close()

    before = alive()["buffer"]
    for buffers, _, _ in interrupted(prepare, grow, close):
        assert buffers[0].is_closed
        buffers[1].close()
        assert alive()["buffer"] == before
    for buffers, one, other in interrupted(prepare, grow, grow):
        assert one is other is None  # both have grown and closed a buffer of their own
        for buffer in buffers:
            buffer.close()
        assert alive()["buffer"] == before


def known_ranges() -> None:
    class Owner:
        pass

    one, other = Owner(), Owner()

    def prepare() -> Ranges:
        ranges = Ranges()
        for start in (0, 100, 200, 400):
            ranges.add(one, start, 10)
        return ranges

    for ranges, _, _ in interrupted(
        prepare, lambda ranges: ranges.add(other, 300, 10), lambda ranges: ranges.add(other, 50, 10)
    ):
        assert all(start + 5 in ranges for start in (0, 50, 100, 200, 300, 400))
        assert ranges._rows == sorted(ranges._rows, key=lambda row: row[0])


CASES: dict[str, Callable[[], None]] = {
    case.__name__: case
    for case in (
        hosts, graph_resources, default_resources, allocation_handles, loaded_code, closed_code, closed_events,
        loaded_library, initialised_nvml, cached_programs, changed_configuration, copied_configuration,
        changed_attributes, lent_views, released_leases, closed_growing_buffer, known_ranges,
    )
}  # fmt: skip

if __name__ == "__main__":
    Device(0).set_current()
    for name in sys.argv[1:] or CASES:
        try:
            CASES[name]()
            print(name, flush=True)
        except AssertionError:
            traceback.print_exc()
