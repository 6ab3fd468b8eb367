# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What happens when the driver fails: every call that an operation makes is made to fail, one after the other."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from buffers import ForeignStream, ManagedResource

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    CUDAError,
    CUDAWarning,
    Device,
    DeviceMemoryResource,
    Host,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedBuffer,
    ManagedMemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    VirtualMemoryResource,
    ffi,
    launch,
    lib,
    live_objects,
    simulator,
)
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi.utils import copy_batch, discard_batch, discard_prefetch_batch, prefetch_batch

pytestmark = pytest.mark.simulator_only("only the simulated driver fails on request")

SIZE = 64
ERROR = "CUDA_ERROR_UNKNOWN"
PTX = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd2], %r1;
    ret;
}
"""

# Calls that merely look. When one of them fails, the operation finds another way or says so later.
LOOKING = {
    "cuEventQuery": "what is held for a copy is asked for again later",
    "cuCtxGetCurrent": "cleanup pushes the context although it may be current",
    "cuCtxPopCurrent": "there is nobody left to tell",
}
# Where this call fails, what it was made for is tried nevertheless, and fails by itself if it does need the context.
PUSH = "cuCtxPushCurrent"


@dataclasses.dataclass
class World:
    """What operations work on."""

    device: Any
    stream: Any
    other: Any
    pool: Any
    kernel: Any
    buffer: Any
    pinned: Any
    virtual: Any
    event: Any
    pinned_pool: Any
    managed_pool: Any
    managed: Any
    advised: Any


@pytest.fixture
def world(device, stream):
    """Return objects for operations."""
    with contextlib.ExitStack() as stack:
        pool = DeviceMemoryResource(device, {})
        stack.callback(pool.close)
        code = stack.enter_context(ObjectCode.from_ptx(PTX))
        yield World(
            device,
            stream,
            stack.enter_context(device.create_stream()),
            pool,
            stack.enter_context(code.get_kernel("store")),
            stack.enter_context(pool.allocate(SIZE, stream)),
            stack.enter_context(LegacyPinnedMemoryResource().allocate(SIZE, stream)),
            stack.enter_context(VirtualMemoryResource(device).allocate(SIZE, stream)),
            stack.enter_context(device.create_event()),
            pinned_pool := PinnedMemoryResource({}),
            managed_pool := ManagedMemoryResource({"preferred_location": 0}),
            [stack.enter_context(managed_pool.allocate(SIZE, stream)) for _ in range(2)],
            stack.enter_context(ManagedResource().allocate(SIZE, stream)),
        )
        pinned_pool.close()
        managed_pool.close()


def raw(world: World, kind: str) -> int:
    """Allocate memory as another library does."""
    pointer: Any
    if kind == "pinned":
        pointer = ffi.new("void **")
        assert lib.cuMemHostAlloc(pointer, SIZE, 0) == 0
        return int(ffi.cast("uintptr_t", pointer[0]))
    pointer = ffi.new("CUdeviceptr *")
    if kind == "pool":
        assert lib.cuMemAllocFromPoolAsync(pointer, SIZE, world.pool.cdata, world.stream.cdata) == 0
    else:
        assert lib.cuMemAlloc(pointer, SIZE) == 0
    return int(pointer[0])


def borrowed(world: World, buffer: Buffer | None = None) -> Buffer:
    buffer = buffer or world.buffer
    return Buffer.from_handle(buffer.handle, SIZE, owner=buffer, stream=world.stream)


SYNCHRONOUS = SynchronousMemoryResource

# What each operation does with the world. What it returns is closed afterwards.
OPERATIONS: dict[str, Callable[[World], Any]] = {
    "pool": lambda w: DeviceMemoryResource(w.device, {}),
    "current pool": lambda w: DeviceMemoryResource(w.device),
    "pinned pool": lambda w: PinnedMemoryResource({}),
    "pinned pool on a node": lambda w: PinnedMemoryResource({"numa_id": 0}),
    "current pinned pool": lambda w: PinnedMemoryResource(),
    "managed pool": lambda w: ManagedMemoryResource({}),
    "managed pool near": lambda w: ManagedMemoryResource({"preferred_location_type": "host_numa"}),
    "current managed pool": lambda w: ManagedMemoryResource(),
    "pool attribute": lambda w: [w.pool.attributes.used_mem_current].clear(),
    "pool allocate": lambda w: w.pool.allocate(SIZE, w.stream),
    "pool allocate, default stream": lambda w: w.pool.allocate(SIZE),
    "pinned pool allocate": lambda w: w.pinned_pool.allocate(SIZE, w.stream),
    "pinned pool allocate, default stream": lambda w: w.pinned_pool.allocate(SIZE),
    "pinned pool allocate, foreign stream": lambda w: w.pinned_pool.allocate(SIZE, ForeignStream(w.stream)),
    "managed pool allocate": lambda w: w.managed_pool.allocate(SIZE, w.stream),
    "managed pool allocate, default stream": lambda w: w.managed_pool.allocate(SIZE),
    "read advice": lambda w: [w.managed[0].read_mostly, w.managed[0].preferred_location].clear(),
    "read who accesses": lambda w: list(w.managed[0].accessed_by).clear(),
    "advise": lambda w: setattr(w.advised, "read_mostly", True),
    "prefer a location": lambda w: setattr(w.advised, "preferred_location", Host()),
    "set who accesses": lambda w: setattr(w.advised, "accessed_by", [Device(0), Host()]),
    "wrap managed memory": lambda w: ManagedBuffer.from_handle(w.advised.handle, SIZE, owner=w.advised),
    "prefetch": lambda w: w.managed[0].prefetch(Device(0), stream=w.stream),
    "prefetch borrowed memory": lambda w: prefetch_batch(w.stream, [borrowed(w, w.advised)], Device(0)),
    "discard": lambda w: w.managed[0].discard(stream=w.stream),
    "prefetch_batch": lambda w: prefetch_batch(w.stream, w.managed, [Device(0), Host()]),
    "prefetch_batch, default stream": lambda w: prefetch_batch(LEGACY_DEFAULT_STREAM, w.managed, Host()),
    "discard_batch": lambda w: discard_batch(w.stream, w.managed),
    "discard_prefetch_batch": lambda w: discard_prefetch_batch(w.stream, w.managed, Device(0)),
    "device allocate": lambda w: w.device.allocate(SIZE, w.stream),
    "pinned allocate": lambda w: LegacyPinnedMemoryResource().allocate(SIZE, w.stream),
    "synchronous allocate": lambda w: SYNCHRONOUS(0).allocate(SIZE, w.stream),
    "virtual allocate": lambda w: VirtualMemoryResource(0).allocate(SIZE, w.stream),
    "virtual allocate, default stream": lambda w: VirtualMemoryResource(0).allocate(SIZE),
    "virtual rights": lambda w: w.virtual.memory_resource.modify_allocation(w.virtual, SIZE) and None,
    "fill 1": lambda w: w.buffer.fill(1, stream=w.stream),
    "fill 2": lambda w: w.buffer.fill(1, 2, stream=w.stream),
    "fill 4": lambda w: w.buffer.fill(1, 4, stream=w.stream),
    "copy_to": lambda w: w.buffer.copy_to(w.pinned, stream=w.stream) and None,
    "copy_to a new buffer": lambda w: w.buffer.copy_to(stream=w.stream),
    "copy_from": lambda w: w.buffer.copy_from(w.pinned, stream=w.stream),
    "copy_to an object": lambda w: [w.buffer.copy_to(bytearray(SIZE), stream=w.stream), w.stream.sync()].clear(),
    "copy_from an object": lambda w: [w.buffer.copy_from(bytes(SIZE), stream=w.stream), w.stream.sync()].clear(),
    "copy_to with options": lambda w: w.buffer.copy_to(stream=w.stream, options={}),
    "copy_from with options": lambda w: w.buffer.copy_from(w.pinned, stream=w.stream, options={}),
    "copy_batch": lambda w: copy_batch(w.stream, [w.pinned], [w.buffer]),
    "copy of a slice": lambda w: w.buffer[:8].copy_to(w.pinned[:8], stream=w.stream) and None,
    "accessibility": lambda w: [borrowed(w).is_host_accessible].clear(),
    "DLPack": lambda w: w.buffer.__dlpack__(stream=w.other.handle) and None,
    "DLPack of borrowed memory": lambda w: borrowed(w).__dlpack__(stream=w.other.handle) and None,
    "DLPack to the default stream": lambda w: w.buffer.__dlpack__() and None,
    "DLPack on the host": lambda w: w.buffer.__dlpack__(dl_device=(1, 0)) and None,
    "DLPack copy": lambda w: w.buffer.__dlpack__(copy=True, stream=w.other.handle) and None,
    "DLPack copy without a stream": lambda w: w.buffer.__dlpack__(copy=True, stream=-1) and None,
    "launch": lambda w: launch(w.stream, LaunchConfig(1, None, 1), w.kernel, w.buffer, 1),
    "load": lambda w: ObjectCode.from_ptx(PTX).get_kernel("store"),
    "create_stream": lambda w: w.device.create_stream(),
    "create_event": lambda w: w.device.create_event(),
    "record": lambda w: w.stream.record(w.event) and None,
    "record a new event": lambda w: w.stream.record(),
    "wait for an event": lambda w: w.other.wait(w.event),
    "wait for a stream": lambda w: w.other.wait(w.stream),
    "wait for a default stream": lambda w: w.other.wait(LEGACY_DEFAULT_STREAM),
    "stream sync": lambda w: w.stream.sync(),
    "event sync": lambda w: w.event.sync(),
    "device sync": lambda w: w.device.sync(),
}

# Ends: what is to be ended, and how. A failure is a warning or, where Python called the resource, an exception.
ENDS: dict[str, Callable[[World], Any]] = {
    "pool": lambda w: DeviceMemoryResource(w.device, {}),
    "pinned pool": lambda w: PinnedMemoryResource({}),
    "managed pool": lambda w: ManagedMemoryResource({}),
    "pinned pool buffer": lambda w: w.pinned_pool.allocate(SIZE, w.stream),
    "pinned pool buffer, default stream": lambda w: w.pinned_pool.allocate(SIZE),
    "managed pool buffer": lambda w: w.managed_pool.allocate(SIZE, w.stream),
    "managed pool buffer, default stream": lambda w: w.managed_pool.allocate(SIZE),
    "pool buffer": lambda w: w.pool.allocate(SIZE, w.stream),
    "pool buffer, default stream": lambda w: w.pool.allocate(SIZE),
    "pinned buffer": lambda w: LegacyPinnedMemoryResource().allocate(SIZE, w.stream),
    "synchronous buffer": lambda w: SYNCHRONOUS(0).allocate(SIZE, w.stream),
    "virtual buffer": lambda w: VirtualMemoryResource(0).allocate(SIZE, w.stream),
    "virtual buffer, no stream": lambda w: VirtualMemoryResource(0).allocate(SIZE),
    "stream": lambda w: w.device.create_stream(),
    "event": lambda w: w.device.create_event(),
    "last slice": lambda w: w.pool.allocate(SIZE, w.stream)[8:][8:],
    "last buffer of a pool": lambda w: DeviceMemoryResource(w.device, {}).allocate(SIZE, w.stream),
}

DEALLOCATIONS: dict[str, Callable[[World], Any]] = {
    "pool": lambda w: (w.pool, raw(w, "pool")),
    "pinned": lambda w: (LegacyPinnedMemoryResource(), raw(w, "pinned")),
    "synchronous": lambda w: (SYNCHRONOUS(0), raw(w, "synchronous")),
}


def base_name(function: str) -> str:
    """Return a driver function's name without its version."""
    stem, _, version = function.rpartition("_v")
    return stem if version.isdigit() else function


def steps(calls: list[str]) -> list[tuple[str, int]]:
    """Return each call as its name and how many of that name were made up to it."""
    seen: dict[str, int] = {}
    found = []
    for call in calls:
        seen[call] = seen.get(call, 0) + 1
        found.append((call, seen[call]))
    return found


def close(made: Any) -> None:
    if made is not None:
        made.close()


def collect() -> None:
    """Collect garbage, and let go of what tensors that are gone had kept."""
    for _ in range(3):
        gc.collect()
    Buffer.from_handle(0, 0).close()


@pytest.fixture(params=[True, False], ids=["context current", "no context current"])
def with_context(request, device):
    """Run with the device's context current, and with none."""
    yield request.param
    device.set_current()


def leave_context(with_context: bool) -> None:
    if not with_context:
        assert lib.cuCtxSetCurrent(ffi.NULL) == 0


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_failing_call_is_named_and_nothing_is_lost(world, name, with_context):
    operation = OPERATIONS[name]
    close(operation(world))  # what is done once is done: default resources, kernel layouts
    world.device.sync()
    collect()
    leave_context(with_context)
    try:
        with simulator.trace() as trace:
            made = operation(world)
        close(made)
    except CUDAError as error:
        if with_context or error.name != "CUDA_ERROR_INVALID_CONTEXT" or "set_current" not in str(error):
            raise
        return  # this operation is about the current context, and says so
    calls = steps(trace.names)
    made = None
    for call, nth in calls:
        where = f"{name}: {call}, call {nth} of {trace.names}"
        collect()
        before, driver_before, error = live_objects(), simulator.live(), None
        with warnings.catch_warnings(record=True) as caught, simulator.fail(call, ERROR, nth) as fault:
            warnings.simplefilter("always")
            try:
                made = operation(world)
            except CUDAError as raised:
                error = raised.with_traceback(None)
            left = fault.cancel()
            close(made)
            made = None
            collect()
            world.device.create_event().close()  # tells of failures in cleanup that nothing has told of yet
        warned = any(w.category is CUDAWarning and base_name(call) in str(w.message) for w in caught)
        assert left == 0, where
        if base_name(call) != PUSH and error is not None:
            assert (error.call, error.name) == (base_name(call), ERROR), where
            assert base_name(call) in str(error), where
        assert error or warned or base_name(call) in {*LOOKING, PUSH}, f"{where}: nothing was said"
        if base_name(call) == "cuCtxPopCurrent":
            leave_context(True)
            world.device.set_current()
            leave_context(with_context)
        if not warned:
            assert live_objects() == before, where
            assert simulator.live() == driver_before, where
        close(operation(world))  # everything is usable still
    collect()


@pytest.mark.parametrize("ending", ["close", "collect"])
@pytest.mark.parametrize("name", ENDS)
def test_a_failing_end_is_a_warning_that_names_the_call(world, name, ending, with_context):
    make = ENDS[name]
    with contextlib.ExitStack() as made:
        make(world).close()
        things = [make(world)]
    leave_context(with_context)
    with simulator.trace() as trace:
        things.pop().close()
    collect()
    for call, nth in steps(trace.names):
        where = f"{name}: {call}, call {nth} of {trace.names}"
        world.device.set_current()
        before = live_objects()
        things = [make(world)]
        leave_context(with_context)
        with warnings.catch_warnings(record=True) as caught, simulator.fail(call, ERROR, nth) as fault:
            warnings.simplefilter("always")
            if ending == "close":
                things.pop().close()
            else:
                things.clear()
                collect()
                DeviceMemoryResource(0).close()
        collect()
        found = [str(w.message) for w in caught if w.category is CUDAWarning]
        assert fault.left == 0, where
        if base_name(call) not in LOOKING and base_name(call) != PUSH:
            assert len(found) == 1, where
            assert f"{base_name(call)} failed: {ERROR}" in found[0], where
        assert live_objects() == before, where
    del made


@pytest.mark.parametrize("name", DEALLOCATIONS)
def test_a_failing_deallocate_is_an_exception(world, name):
    resource, address = DEALLOCATIONS[name](world)
    with simulator.trace() as trace:
        resource.deallocate(address, SIZE, world.stream)
    for call, nth in steps(trace.names):
        resource, address = DEALLOCATIONS[name](world)
        with simulator.fail(call, ERROR, nth) as fault, pytest.raises(CUDAError) as caught:
            resource.deallocate(address, SIZE, world.stream)
        assert (caught.value.call, caught.value.name, fault.left) == (base_name(call), ERROR, 0)
        resource.deallocate(address, SIZE, world.stream)
    world.stream.sync()


def test_out_of_memory_once_is_cured_by_a_collection(world):
    for make in (
        lambda: world.pool.allocate(SIZE, world.stream),
        lambda: LegacyPinnedMemoryResource().allocate(SIZE),
        lambda: SYNCHRONOUS(0).allocate(SIZE),
    ):
        with simulator.trace() as trace:
            make().close()
        call = next(name for name in trace.names if "Alloc" in name)
        with simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY"):
            make().close()
        with simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY", count=2), pytest.raises(CUDAError) as caught:
            make()
        assert (caught.value.name, caught.value.call) == ("CUDA_ERROR_OUT_OF_MEMORY", base_name(call))


def test_another_error_at_the_second_try_is_the_one_that_is_raised(world):
    call = "cuMemAllocFromPoolAsync"
    first, second = simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY"), simulator.fail(call, ERROR)
    with first, second, pytest.raises(CUDAError) as caught:
        world.pool.allocate(SIZE, world.stream)
    assert caught.value.name == ERROR


def test_a_failure_while_a_failed_pool_is_set_up_leaks_nothing(device):
    before = live_objects()
    with simulator.fail("cuMemPoolSetAttribute", ERROR), pytest.raises(CUDAError, match="cuMemPoolSetAttribute"):
        DeviceMemoryResource(device, {})
    collect()
    assert live_objects() == before
