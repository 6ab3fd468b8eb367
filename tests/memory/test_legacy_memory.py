# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that is allocated and freed at once: pinned host memory, and devices without pools."""

from __future__ import annotations

import threading

import pytest
from helpers import Gate, alive, output_of

from cuda_core_cffi import CUDAError, LegacyPinnedMemoryResource, MemoryResource, ffi, lib, simulator
from cuda_core_cffi._memory import SynchronousMemoryResource

SIZE = 64
CLASSES = [LegacyPinnedMemoryResource, lambda: SynchronousMemoryResource(0)]
each = pytest.mark.parametrize("make", CLASSES, ids=["pinned", "synchronous"])
pytestmark = pytest.mark.usefixtures("device")


def test_pinned_memory_says_what_it_is():
    mr = LegacyPinnedMemoryResource()
    assert (mr.is_device_accessible, mr.is_host_accessible, mr.is_managed) == (True, True, False)
    assert mr.device_id == -1
    assert repr(mr) == "<LegacyPinnedMemoryResource>"


def test_synchronous_memory_says_what_it_is(device):
    for mr in (SynchronousMemoryResource(0), SynchronousMemoryResource(device)):
        assert (mr.is_device_accessible, mr.is_host_accessible, mr.is_managed) == (True, False, False)
        assert mr.device_id == 0
        assert repr(mr) == "<SynchronousMemoryResource device=0>"


@pytest.mark.parametrize(("wrong", "error"), [(-1, ValueError), (99, ValueError), ("0", TypeError), (0.5, TypeError)])
def test_synchronous_memory_is_on_a_device_that_exists(wrong, error):
    with pytest.raises(error, match="device_id"):
        SynchronousMemoryResource(wrong)


@each
@pytest.mark.parametrize("how", ["positional", "keyword", "none", "absent"])
def test_the_stream_is_optional(stream, make, how):
    mr = make()
    before = alive()["buffer"]
    buffer = {
        "positional": lambda: mr.allocate(SIZE, stream),
        "keyword": lambda: mr.allocate(SIZE, stream=stream),
        "none": lambda: mr.allocate(SIZE, stream=None),
        "absent": lambda: mr.allocate(SIZE),
    }[how]()
    assert isinstance(mr, MemoryResource)
    assert buffer.memory_resource is mr
    buffer.fill(3, stream=stream)
    stream.sync()
    buffer.close()
    assert alive()["buffer"] == before


@each
def test_memory_is_usable_at_once_in_every_stream(device, stream, make):
    with device.create_stream() as other, make().allocate(SIZE, stream) as buffer, Gate(stream):
        buffer.fill(1, stream=other)
        other.sync()


@each
def test_closing_waits_for_the_stream(device, make):
    with device.create_stream() as stream:
        buffer = make().allocate(SIZE, stream)
        with Gate(stream) as gate:
            order = []
            timer = threading.Timer(0.1, lambda: (order.append("opened"), gate.open()))
            timer.start()
            buffer.close()
            order.append("closed")
            timer.join()
    assert order == ["opened", "closed"]


@each
def test_deallocate_waits_for_the_stream(device, make):
    mr = make()
    address = raw_allocation(mr)
    with device.create_stream() as stream, Gate(stream) as gate:
        order = []
        timer = threading.Timer(0.1, lambda: (order.append("opened"), gate.open()))
        timer.start()
        mr.deallocate(address, SIZE, stream)
        order.append("freed")
        timer.join()
    assert order == ["opened", "freed"]


def raw_allocation(mr: MemoryResource) -> int:
    """Allocate memory as another library does."""
    if mr.is_host_accessible:
        pointer = ffi.new("void **")
        assert lib.cuMemHostAlloc(pointer, SIZE, 0) == 0
        return int(ffi.cast("uintptr_t", pointer[0]))
    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAlloc(pointer, SIZE) == 0
    return int(pointer[0])


@each
@pytest.mark.parametrize("arguments", [{}, {"stream": None}])
def test_deallocate_takes_an_address(make, arguments):
    mr = make()
    mr.deallocate(raw_allocation(mr), SIZE, **arguments)
    mr.deallocate(ffi.cast("void *", raw_allocation(mr)), SIZE)


@each
@pytest.mark.parametrize("ptr", [None, 0])
def test_the_null_pointer_goes_back_nowhere(make, ptr):
    make().deallocate(ptr, 0)


@each
@pytest.mark.parametrize("wrong", [1, "stream"])
def test_a_stream_that_is_none_is_a_type_error(make, wrong):
    before = alive()["buffer"]
    with pytest.raises(TypeError, match="needs a Stream"):
        make().allocate(SIZE, wrong)
    with pytest.raises(TypeError, match="needs a Stream"):
        make().deallocate(0, SIZE, wrong)
    assert alive()["buffer"] == before


@each
def test_a_closed_stream_leaks_nothing(device, make):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(RuntimeError, match="Stream is closed"):
        make().allocate(SIZE, stream)


def test_pinned_memory_needs_a_current_context():
    errors = []

    def work() -> None:
        try:
            LegacyPinnedMemoryResource().allocate(SIZE)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert isinstance(errors[0], CUDAError)
    assert "set_current" in str(errors[0])


def test_synchronous_memory_needs_no_current_context():
    before = alive()["buffer"]
    buffers = []
    mr = SynchronousMemoryResource(0)
    thread = threading.Thread(target=lambda: buffers.append(mr.allocate(SIZE)))
    thread.start()
    thread.join()
    assert alive()["buffer"] == before + 1
    buffers.pop().close()


@pytest.mark.parametrize("size", [2**62, 2**64 - 1])
@each
def test_too_much_is_a_cuda_error_that_names_the_call(make, size):
    with pytest.raises(CUDAError, match=r"cuMem(Host)?Alloc failed"):
        make().allocate(size)


@each
def test_the_host_can_read_only_pinned_memory(stream, make):
    with make().allocate(SIZE, stream) as buffer:
        if not buffer.is_host_accessible:
            with pytest.raises(BufferError):
                buffer.__buffer__(0)
            return
        buffer.fill(7, stream=stream)
        stream.sync()
        assert buffer.__buffer__(0).tobytes() == bytes([7]) * SIZE


def test_a_device_without_pools_allocates_synchronously():
    code = """
        import types
        from cuda_core_cffi import Device
        device = Device(0)
        device.set_current()
        device._properties = types.SimpleNamespace(memory_pools_supported=False)
        print(device.memory_resource)
        with device.allocate(64) as buffer:
            print(buffer.memory_resource is device.memory_resource)
    """
    assert output_of(code).splitlines() == ["<SynchronousMemoryResource device=0>", "True"]


@pytest.mark.simulator_only("injects a failure")
def test_a_failed_fill_of_pinned_memory_is_the_drivers_error(stream):
    with (
        LegacyPinnedMemoryResource().allocate(SIZE) as buffer,
        simulator.fail("cuMemsetD8Async", "CUDA_ERROR_INVALID_VALUE"),
        pytest.raises(CUDAError, match="cuMemsetD8"),
    ):
        buffer.fill(1, stream=stream)
