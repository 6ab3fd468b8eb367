# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools of device memory: borrowed and owned, what they keep, how they close, and running out of memory."""

from __future__ import annotations

import copy
import gc
import pickle
import threading

import pytest
from helpers import in_threads, output_of

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    GraphMemoryResource,
    ManagedMemoryResource,
    PinnedMemoryResource,
    VirtualMemoryResource,
    ffi,
    lib,
    live_objects,
)
from cuda_core_cffi._core.errors import HINTS
from cuda_core_cffi._memory import SynchronousMemoryResource

SIZE = 64
MEBIBYTE = 2**20
KEEP_ALL = 2**64 - 1
ATTRIBUTES = {
    "reuse_follow_event_dependencies": bool,
    "reuse_allow_opportunistic": bool,
    "reuse_allow_internal_dependencies": bool,
    "release_threshold": int,
    "reserved_mem_current": int,
    "reserved_mem_high": int,
    "used_mem_current": int,
    "used_mem_high": int,
}
THRESHOLD = lib.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD


@pytest.fixture
def pool(device):
    """Return a pool of our own."""
    pool = DeviceMemoryResource(device, {})
    yield pool
    pool.close()


def set_threshold(pool: int, value: int) -> None:
    """Set the release threshold of a driver pool."""
    assert lib.cuMemPoolSetAttribute(ffi.cast("CUmemoryPool", pool), THRESHOLD, ffi.new("cuuint64_t *", value)) == 0


# Borrowed and owned


@pytest.mark.parametrize("which", ["ordinal", "device"])
def test_without_options_the_devices_current_pool_is_borrowed(device, which):
    current = ffi.new("CUmemoryPool *")
    assert lib.cuDeviceGetMemPool(current, 0) == 0
    before = live_objects()
    pool = DeviceMemoryResource(0 if which == "ordinal" else device)
    assert pool.cdata == current[0]
    assert (pool.is_handle_owned, pool.device_id, pool.is_closed) == (False, 0, False)
    assert live_objects() == before


@pytest.mark.parametrize("options", [{}, {"max_size": 2**25}, DeviceMemoryResourceOptions()])
def test_with_options_a_pool_is_created(device, options):
    before = live_objects()["pool"]
    pool = DeviceMemoryResource(device, options)
    assert pool.is_handle_owned
    assert pool.handle not in (0, DeviceMemoryResource(device).handle)
    assert live_objects()["pool"] == before + 1
    pool.close()
    assert live_objects()["pool"] == before


def test_options_may_be_a_keyword(device):
    DeviceMemoryResource(device_id=0, options={"max_size": 0}).close()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"maxsize": 1}, TypeError, "did you mean 'max_size'"), ({"max_size": -1}, ValueError, "not -1"),
        ({"max_size": 2**64}, ValueError, str(2**64)), ({"max_size": 1.5}, TypeError, "float"),
        ({"max_size": True}, TypeError, "bool"), ([], TypeError, "list"), (5, TypeError, "int"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(device, options, error, text):
    with pytest.raises(error, match=text):
        DeviceMemoryResource(device, options)


@pytest.mark.parametrize(
    ("device_id", "error"), [(-1, ValueError), (99, ValueError), ("0", TypeError), (0.0, TypeError), (True, TypeError)]
)
@pytest.mark.parametrize("options", [None, {}])
def test_a_device_that_does_not_exist_is_refused(device, device_id, error, options):
    with pytest.raises(error, match="device_id"):
        DeviceMemoryResource(device_id, options)


def test_options_are_unhashable_and_compare_by_value():
    assert DeviceMemoryResourceOptions(max_size=1) == DeviceMemoryResourceOptions(False, 1)
    assert DeviceMemoryResourceOptions().max_size == 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(DeviceMemoryResourceOptions())


def test_a_pool_says_what_its_memory_is(pool):
    flags = (pool.is_device_accessible, pool.is_host_accessible, pool.is_managed)
    assert flags == (True, False, False)


def test_repr_shows_device_and_handle(pool):
    assert repr(pool) == f"<DeviceMemoryResource device=0 handle={pool.handle:#x}>"


def test_a_pool_equals_only_itself(device, pool):
    assert pool == pool
    assert DeviceMemoryResource(device) != DeviceMemoryResource(device)
    assert len({pool, pool}) == 1


@pytest.mark.parametrize("action", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_pool_is_neither_pickled_nor_copied(pool, action):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        action(pool)


# Attributes


@pytest.mark.parametrize(("name", "kind"), ATTRIBUTES.items())
def test_attributes_are_plain_python_values(pool, name, kind):
    assert type(getattr(pool.attributes, name)) is kind


def test_attributes_are_read_anew_each_time(pool, stream):
    attributes = pool.attributes
    assert attributes.used_mem_current == 0
    with pool.allocate(MEBIBYTE, stream):
        stream.sync()
        assert attributes.used_mem_current >= MEBIBYTE
        assert attributes.reserved_mem_current >= MEBIBYTE
    stream.sync()
    assert attributes.used_mem_current == 0
    assert attributes.used_mem_high >= MEBIBYTE


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_cannot_be_assigned(pool, name):
    with pytest.raises(AttributeError):
        setattr(pool.attributes, name, 1)


def test_the_repr_of_attributes_shows_all(pool):
    assert all(f"{name}=" in repr(pool.attributes) for name in ATTRIBUTES)


def test_attributes_are_not_constructed_directly(pool):
    with pytest.raises(RuntimeError, match="cannot be constructed directly"):
        type(pool.attributes)()


# What a pool keeps


def test_a_pool_of_our_own_keeps_freed_memory(pool, stream):
    assert pool.attributes.release_threshold == KEEP_ALL
    pool.allocate(MEBIBYTE, stream).close()
    stream.sync()
    assert pool.attributes.reserved_mem_current >= MEBIBYTE


@pytest.mark.parametrize(("before", "after"), [(0, KEEP_ALL), (1, 1), (12345678, 12345678), (KEEP_ALL, KEEP_ALL)])
def test_a_borrowed_pools_threshold_is_changed_only_while_it_is_zero(device, before, after):
    borrowed = DeviceMemoryResource(device)
    was = borrowed.attributes.release_threshold
    try:
        set_threshold(borrowed.handle, before)
        assert DeviceMemoryResource(device).attributes.release_threshold == after
    finally:
        set_threshold(borrowed.handle, was)


# Closing


def test_closing_a_borrowed_pool_does_nothing(device, stream):
    pool = DeviceMemoryResource(device)
    pool.close()
    assert not pool.is_closed
    pool.allocate(SIZE, stream).close()


def test_a_closed_pool_allocates_no_more(device, stream):
    pool = DeviceMemoryResource(device, {})
    pool.close()
    pool.close()
    assert (pool.is_closed, pool.handle, pool.cdata) == (True, 0, ffi.NULL)
    for size in (SIZE, 0):
        with pytest.raises(RuntimeError, match="this DeviceMemoryResource is closed"):
            pool.allocate(size, stream)


def test_buffers_of_a_closed_pool_stay_valid(device, stream):
    before = live_objects()["pool"]
    pool = DeviceMemoryResource(device, {})
    one, other = pool.allocate(SIZE, stream), pool.allocate(SIZE, stream)
    pool.close()
    assert live_objects()["pool"] == before + 1
    one.fill(1, stream=stream)
    one.copy_to(other, stream=stream)
    stream.sync()
    one.close()
    other.close()
    assert live_objects()["pool"] == before


def test_buffers_keep_a_pool_that_nobody_else_has(device, stream):
    before = live_objects()["pool"]
    buffer = DeviceMemoryResource(device, {}).allocate(SIZE, stream)
    gc.collect()
    buffer.fill(1, stream=stream)
    assert live_objects()["pool"] == before + 1
    buffer.close()
    del buffer
    for _ in range(3):
        gc.collect()
    assert live_objects()["pool"] == before


@pytest.mark.parametrize("given", ["stream", "none", "absent"])
@pytest.mark.parametrize("closed", [False, True])
def test_memory_can_go_back_by_address_after_close_too(device, stream, given, closed):
    pool = DeviceMemoryResource(device, {})
    keep = pool.allocate(SIZE, stream)  # the driver's pool lives as long as its memory
    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAllocFromPoolAsync(pointer, SIZE, pool.cdata, stream.cdata) == 0
    stream.sync()
    if closed:
        pool.close()
    arguments = {"stream": {"stream": stream}, "none": {"stream": None}, "absent": {}}[given]
    assert pool.deallocate(int(pointer[0]), SIZE, **arguments) is None
    device.sync()
    keep.close()
    pool.close()


@pytest.mark.parametrize("ptr", [None, 0])
def test_the_null_pointer_goes_back_nowhere(pool, stream, ptr):
    pool.deallocate(ptr, 0, stream=stream)


@pytest.mark.parametrize("ptr", ["text", object()])
def test_an_address_that_is_none_is_a_type_error(pool, stream, ptr):
    with pytest.raises(TypeError):
        pool.deallocate(ptr, SIZE, stream=stream)


def test_threads_share_a_pool(device, pool):
    errors: list[BaseException] = []

    def work() -> None:
        try:
            device = Device(0)
            device.set_current()
            with device.create_stream() as stream:
                for size in range(1, 200):
                    with pool.allocate(size, stream) as buffer:
                        buffer.fill(1, stream=stream)
                stream.sync()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert pool.attributes.used_mem_current == 0


def test_threads_make_and_close_pools(device):
    before = live_objects()["pool"]

    def work() -> None:
        Device(0).set_current()
        for _ in range(20):
            with Device(0).create_stream() as stream:
                pool = DeviceMemoryResource(Device(0), {})
                with pool.allocate(SIZE, stream) as buffer:
                    buffer.fill(1, stream=stream)
                stream.sync()  # or driver 580 may crash later: docs/memory.md
                pool.close()

    in_threads(6, lambda _: work())
    assert live_objects()["pool"] == before


def test_the_device_hands_its_pool_to_every_thread(device):
    found = []

    def ask() -> None:
        found.append(Device(0).memory_resource)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [device.memory_resource]


# Out of memory


def test_more_than_a_pool_may_hold_is_out_of_memory_with_advice(device, stream):
    pool = DeviceMemoryResource(device, {"max_size": 2**25})
    with pytest.raises(CUDAError, match=r"CUDA_ERROR_OUT_OF_MEMORY.*close buffers") as caught:
        pool.allocate(2**30, stream)
    assert caught.value.name == "CUDA_ERROR_OUT_OF_MEMORY"
    assert caught.value.call == "cuMemAllocFromPoolAsync"
    with pool.allocate(SIZE, stream) as buffer:  # a smaller piece is still to be had
        buffer.fill(0, stream=stream)
    pool.close()


def test_more_than_any_device_has_is_a_cuda_error(device, stream):
    with pytest.raises(CUDAError, match="cuMemAllocFromPoolAsync failed"):
        device.allocate(2**62, stream)


@pytest.mark.parametrize("kind", ["pool", "synchronous", "virtual", "grown"])
def test_more_than_the_device_has_is_refused_without_a_collection(device, stream, monkeypatch, kind):
    total = ffi.new("size_t *")
    assert lib.cuDeviceTotalMem(total, device.device_id) == 0
    size = total[0] + 2**21
    collections: list[None] = []
    monkeypatch.setattr(gc, "collect", lambda *generation: collections.append(None))
    pool, virtual = DeviceMemoryResource(device), VirtualMemoryResource(device)
    with virtual.allocate(1, stream) as buffer:
        tries = {
            "pool": lambda: pool.allocate(size, stream),
            "synchronous": lambda: SynchronousMemoryResource(device).allocate(size),
            "virtual": lambda: virtual.allocate(size, stream),
            "grown": lambda: virtual.modify_allocation(buffer, size),
        }
        with pytest.raises(CUDAError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            tries[kind]()
    assert collections == []
    pool.close()


def hide_in_garbage(buffer: Buffer) -> None:
    """Leave a buffer in a reference cycle that nothing but the collector can take apart."""
    cycle = [buffer]
    cycle.append(cycle)


@pytest.mark.parametrize("closed_stream", [False, True])
def test_garbage_that_holds_memory_is_collected_and_the_allocation_retried(device, stream, closed_stream):
    pool = DeviceMemoryResource(device, {"max_size": 2**25})
    origin = device.create_stream() if closed_stream else stream
    gc.collect()
    gc.disable()
    try:
        hide_in_garbage(pool.allocate(2**25, origin))
        if closed_stream:
            origin.close()
        with pool.allocate(2**25, stream) as again:
            again.fill(0, stream=stream)
    finally:
        gc.enable()
    stream.sync()
    pool.close()


def test_memory_that_is_in_use_is_not_taken(device, stream):
    pool = DeviceMemoryResource(device, {"max_size": 2**25})
    with pool.allocate(2**25, stream) as buffer:
        with pytest.raises(CUDAError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            pool.allocate(2**25, stream)
        buffer.fill(0, stream=stream)
    pool.close()


OUT_OF_MEMORY = """
    import gc
    from cuda_core_cffi import CUDAError, Device, live_objects
    from cuda_core_cffi._memory import SynchronousMemoryResource
    device = Device(0)
    device.set_current()
    resource = {resource}
    stream = device.create_stream()
    buffers, size = [], 2**20
    try:
        for _ in range(100):
            buffers.append(resource.allocate(size, stream))
    except CUDAError as error:
        print(error.name, error.call, 20 < len(buffers) < 70)
    buffers.pop().close()
    stream.sync()
    buffers.append(resource.allocate(size, stream))
    gc.collect()
    gc.disable()
    for buffer in buffers:
        cycle = [buffer]
        cycle.append(cycle)
    del buffer, buffers, cycle
    resource.allocate(size, stream).close()
    stream.sync()
    print(live_objects()["buffer"])
"""


@pytest.mark.simulator_only("the simulated device can be made small")
@pytest.mark.parametrize(
    ("resource", "call"),
    [("device.memory_resource", "cuMemAllocFromPoolAsync"), ("SynchronousMemoryResource(0)", "cuMemAlloc")],
)
def test_a_full_device_recovers_when_memory_goes_back(resource, call):
    found = output_of(OUT_OF_MEMORY.format(resource=resource), CUDA_SIM_MEMORY="64M")
    assert found.splitlines() == [f"CUDA_ERROR_OUT_OF_MEMORY {call} True", "0"]


# trim


def test_a_trimmed_pool_holds_no_memory_that_is_not_allocated(device, stream):
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions())
    kept = pool.allocate(1 << 20, stream=stream)
    pool.allocate(1 << 22, stream=stream).close()
    stream.sync()
    held = pool.attributes.reserved_mem_current
    pool.trim(held)
    assert pool.attributes.reserved_mem_current == held
    pool.trim()
    assert (1 << 20) <= pool.attributes.reserved_mem_current <= held
    assert pool.attributes.used_mem_current >= 1 << 20
    kept.close(stream)
    stream.sync()
    pool.trim()
    assert pool.attributes.reserved_mem_current == 0
    pool.close()


def test_the_size_that_a_trimmed_pool_keeps_is_checked(device):
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions())
    with pytest.raises(TypeError, match="min_bytes_to_keep"):
        pool.trim("1M")
    with pytest.raises(ValueError, match="min_bytes_to_keep must be 0 to"):
        pool.trim(-1)
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.trim()


def test_the_hint_for_too_little_memory_names_methods_that_exist():
    assert "trim() of the memory resource" in HINTS["CUDA_ERROR_OUT_OF_MEMORY"]
    for kind in (DeviceMemoryResource, GraphMemoryResource, ManagedMemoryResource, PinnedMemoryResource):
        assert callable(kind.trim)
