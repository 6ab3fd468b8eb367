# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers of resources that users write in Python are as good as those of this package: one list of tests for both."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from buffers import DATA, PINNED, SIZE, HostResource, ManagedResource, content, write
from graphs import eventually
from helpers import collect_and_release

from cuda_core_cffi import (
    Buffer,
    CUDAWarning,
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    MemoryResource,
    Program,
    Stream,
    UnavailableError,
    ffi,
    launch,
    lib,
)
from cuda_core_cffi._core.errors import check
from cuda_core_cffi.utils import TrackingMemoryResource

STORE = 'extern "C" __global__ void store(unsigned char *out, unsigned char value) { out[threadIdx.x] = value; }'


class DeviceResource(MemoryResource):
    """Device memory by address; a context must be current."""

    is_device_accessible = True
    is_host_accessible = False
    device_id = 0

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        pointer = ffi.new("CUdeviceptr *")
        check(lib.cuMemAlloc(pointer, size), "cuMemAlloc")
        return Buffer.from_handle(int(pointer[0]), size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, stream: Any = None) -> None:
        stream.sync()
        check(lib.cuMemFree(ptr), "cuMemFree")


class PinnedResource(MemoryResource):
    """Page-locked host memory by address; a context must be current."""

    is_device_accessible = True
    is_host_accessible = True
    device_id = -1

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        pointer = ffi.new("void **")
        check(lib.cuMemHostAlloc(pointer, size, lib.CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc")
        return Buffer.from_handle(pointer[0], size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, stream: Any = None) -> None:
        stream.sync()
        check(lib.cuMemFreeHost(ffi.cast("void *", ptr)), "cuMemFreeHost")


class ForwardingResource(MemoryResource):
    """Takes buffers from another resource, and shows their memory as its own."""

    def __init__(self, upstream: MemoryResource) -> None:
        self.upstream = upstream
        self.buffers: dict[int, Buffer] = {}

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        buffer = self.upstream.allocate(size, stream)
        self.buffers[buffer.handle] = buffer
        return Buffer.from_handle(buffer.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, stream: Any = None) -> None:
        self.buffers.pop(ptr).close(stream)

    @property
    def device_id(self) -> int:
        return self.upstream.device_id

    @property
    def is_device_accessible(self) -> bool:
        return self.upstream.is_device_accessible

    @property
    def is_host_accessible(self) -> bool:
        return self.upstream.is_host_accessible


class SlottedResource(DeviceResource):
    """A resource without a dictionary of its own attributes."""

    __slots__ = ("allocations",)


DEVICE_KINDS = {
    "ours": DeviceMemoryResource,
    "by address": lambda device: DeviceResource(),
    "with slots": lambda device: SlottedResource(),
    "managed, by address": lambda device: ManagedResource(),
    "pinned, by address": lambda device: PinnedResource(),
    "forwarding": lambda device: ForwardingResource(DeviceMemoryResource(device)),
    "forwarding to Python": lambda device: ForwardingResource(DeviceResource()),
    "tracked": lambda device: TrackingMemoryResource(ForwardingResource(DeviceResource())),
}
HOST_KINDS = {
    "ours": lambda device: PINNED,
    "ordinary": lambda device: HostResource(),
    "managed, by address": lambda device: ManagedResource(),
    "pinned, by address": lambda device: PinnedResource(),
    "forwarding": lambda device: ForwardingResource(HostResource()),
    "tracked": lambda device: TrackingMemoryResource(PinnedResource()),
}


@pytest.fixture(params=DEVICE_KINDS)
def mr(request, device: Device) -> MemoryResource:
    """Return a resource whose memory devices can use."""
    return DEVICE_KINDS[request.param](device)


@pytest.fixture(params=HOST_KINDS)
def host_mr(request, device: Device) -> MemoryResource:
    """Return a resource whose memory the host can use."""
    return HOST_KINDS[request.param](device)


@pytest.fixture
def buffer(mr: MemoryResource, stream: Stream) -> Iterator[Buffer]:
    """Return a buffer that a device can use."""
    with mr.allocate(SIZE, stream) as buffer:
        yield buffer


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    """Return a kernel that stores a byte in each place."""
    device = Device(0)
    device.set_current()
    try:
        with Program(STORE, "c++") as program:
            code = program.compile()
    except UnavailableError as error:
        pytest.skip(str(error))
    with code, code.get_kernel("store") as kernel:
        yield kernel


# What the buffer says


def test_the_buffer_is_as_its_resource_says(mr, buffer):
    assert (buffer.memory_resource, buffer.size, buffer.owner, buffer.is_closed) == (mr, SIZE, None, False)
    assert buffer.handle != 0
    for name in ("device_id", "is_device_accessible", "is_host_accessible", "is_managed"):
        assert getattr(buffer, name) == getattr(mr, name)


def test_buffers_are_equal_by_address_and_size(mr, buffer, stream):
    same = Buffer.from_handle(buffer.handle, SIZE)
    with mr.allocate(SIZE, stream) as other:
        assert buffer == same
        assert hash(buffer) == hash(same)
        assert buffer != other


# What it can do


@pytest.mark.parametrize(("value", "width"), [(7, 1), (0x1234, 2), (0x12345678, 4)])
def test_it_is_filled(buffer, stream, value, width):
    buffer.fill(value, width, stream=stream)
    assert content(buffer, stream) == value.to_bytes(width, "little") * (SIZE // width)


def test_it_is_copied_to_and_from(buffer, device, stream):
    write(buffer, DATA, stream)
    with device.allocate(SIZE, stream) as ours:
        buffer.copy_to(ours, stream=stream)
        buffer.fill(0, stream=stream)
        assert content(ours, stream) == DATA
        buffer.copy_from(ours, stream=stream)
        assert content(buffer, stream) == DATA


def test_a_copy_without_a_destination_comes_from_the_same_resource(mr, buffer, stream):
    write(buffer, DATA, stream)
    with buffer.copy_to(stream=stream) as copied:
        assert copied.memory_resource is mr
        assert content(copied, stream) == DATA


def test_kernels_take_it(store, buffer, stream):
    launch(stream, LaunchConfig(grid=1, block=SIZE), store, buffer, np.uint8(9))
    assert content(buffer, stream) == bytes([9]) * SIZE


def test_kernels_refuse_it_once_closed(store, mr, stream):
    buffer = mr.allocate(SIZE, stream)
    buffer.close()
    with pytest.raises(RuntimeError, match="Buffer is closed"):
        launch(stream, LaunchConfig(grid=1, block=1), store, buffer, np.uint8(9))


def test_its_slices_show_it_and_keep_it(mr, stream):
    whole = mr.allocate(SIZE, stream)
    write(whole, DATA, stream)
    part = whole[8:24]
    assert (part.handle, part.size, part.memory_resource) == (whole.handle + 8, 16, mr)
    whole.close()
    assert content(part, stream) == DATA[8:24]
    part.close()


def test_an_empty_slice_and_its_slices_go_back_with_the_whole(host_mr):
    with TrackingMemoryResource(host_mr).allocate(SIZE) as whole:
        tracking = whole.memory_resource
        part = whole[8:]
        empty = part[56:]
        assert (empty.size, part.size) == (0, 56)
        part.close()
        whole.close()
        assert tracking.statistics.current_count == 1
        empty.close()
        assert tracking.statistics.current_count == 0


def test_its_cuda_array_interface_is_that_of_a_device_array(buffer, stream):
    interface = buffer.__cuda_array_interface__
    assert (interface["shape"], interface["typestr"], interface["strides"]) == ((SIZE,), "|u1", None)
    assert interface["data"] == (buffer.handle, False)
    assert interface["stream"] == stream.handle


def test_its_dlpack_tensor_keeps_the_memory(mr, stream):
    tracking = TrackingMemoryResource(mr)
    buffer = tracking.allocate(SIZE, stream)
    capsule = buffer.__dlpack__(stream=-1, max_version=(1, 1))
    buffer.close()
    collect_and_release()
    assert tracking.statistics.current_count == 1
    del capsule
    collect_and_release()
    assert tracking.statistics.current_count == 0


def test_its_dlpack_copy_on_the_host_has_the_content(buffer, stream):
    write(buffer, DATA, stream)

    class Exporter:  # what NumPy uses: memory of the host
        def __dlpack__(self, **options: Any) -> Any:
            return buffer.__dlpack__(max_version=options.get("max_version"), dl_device=(1, 0))

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert np.from_dlpack(Exporter()).tobytes() == DATA


def test_numpy_uses_host_memory_in_place(host_mr):
    buffer = host_mr.allocate(SIZE)
    array = np.asarray(buffer)
    array[:] = np.frombuffer(DATA, np.uint8)
    assert bytes(ffi.buffer(ffi.cast("char *", buffer.handle), SIZE)) == DATA
    assert array.ctypes.data == buffer.handle
    del array
    buffer.close()


# How it ends


@pytest.mark.parametrize("ending", ["close", "collect", "with", "another thread"])
def test_it_goes_back_however_it_ends(mr, stream, ending):
    tracking = TrackingMemoryResource(mr)
    buffer = tracking.allocate(SIZE, stream)
    buffer.fill(1, stream=stream)
    if ending == "with":
        with buffer:
            pass
    elif ending == "close":
        buffer.close()
        buffer.close()
    elif ending == "another thread":

        def close(buffer: Buffer = buffer) -> None:
            Device(0).set_current()
            buffer.close()

        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
        del close, thread
    del buffer
    if ending == "collect":
        assert eventually(lambda: tracking.statistics.current_count == 0)  # PyPy's collector says when
    assert tracking.statistics.current_count == 0


def test_the_resource_and_the_stream_may_go_first(request, device):
    for make in DEVICE_KINDS.values():
        stream = device.create_stream()
        buffer = make(device).allocate(SIZE, stream)
        buffer.fill(1, stream=stream)
        stream.close()
        collect_and_release()
        buffer.close()


def test_buffers_may_be_closed_in_any_order(mr, stream):
    tracking = TrackingMemoryResource(mr)
    buffers = [tracking.allocate(size, stream) for size in range(1, 9)]
    for index in (3, 0, 5, 1, 4, 2, 0, 0):
        buffers.pop(index if index < len(buffers) else 0).close()
    assert (buffers, tracking.statistics.current_bytes) == ([], 0)


def test_a_deallocate_that_uses_its_resource_works():
    class Busy(HostResource):
        def deallocate(self, ptr, size, stream=None):
            super().deallocate(ptr, size, stream)
            if size > 1:
                self.allocate(size // 2).close()

    mr = Busy()
    mr.allocate(SIZE).close()
    assert mr.live == {}


# When its end fails


class StubbornResource(HostResource):
    """Refuses to take memory back while it is told to."""

    error: BaseException | None = OSError("not today")

    def deallocate(self, ptr, size, stream=None):
        super().deallocate(ptr, size, stream)
        if self.error is not None:
            raise self.error


def test_an_exception_from_deallocate_reaches_close():
    mr = StubbornResource()
    buffer = mr.allocate(SIZE)
    with pytest.raises(OSError, match="not today"):
        buffer.close()
    assert (buffer.is_closed, mr.live) == (True, {})
    with pytest.raises(OSError, match="not today"), mr.allocate(SIZE):
        pass


@pytest.mark.parametrize("last", ["buffer", "tensor", "slice", "tracked"])
def test_where_nobody_can_catch_it_an_exception_from_deallocate_is_a_warning(last):
    mr = StubbornResource()
    buffer: Any = (TrackingMemoryResource(mr) if last == "tracked" else mr).allocate(SIZE)
    if last == "tensor":
        tensor = buffer.__dlpack__()
        buffer.close()
        buffer = tensor
        del tensor
    elif last == "slice":
        whole, buffer = buffer, buffer[8:]
        whole.close()
        del whole
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del buffer
        collect_and_release()
    assert [(warning.category, str(warning.message)) for warning in caught] == [
        (CUDAWarning, "in cleanup: StubbornResource.deallocate failed: not today")
    ]
    assert mr.live == {}


def test_one_failing_end_does_not_keep_others_from_ending():
    mr = StubbornResource()
    buffers = [mr.allocate(SIZE) for _ in range(3)]
    with pytest.raises(OSError, match="not today"):
        buffers[0].close()
    mr.error = None
    for buffer in buffers[1:]:
        buffer.close()
    assert mr.live == {}


def test_an_exception_from_allocate_reaches_the_caller(device, stream):
    class Empty(HostResource):
        def allocate(self, size, stream=None):
            raise MemoryError("nothing left")

    before, device.memory_resource = device.memory_resource, Empty()
    try:
        with pytest.raises(MemoryError, match="nothing left"):
            device.allocate(SIZE, stream)
    finally:
        device.memory_resource = before


# What the driver knows of memory better than a resource


class UnawareManagedResource(ManagedResource):
    """Hands out managed memory and says no more than who can use it."""

    is_managed = False


class MixedResource(MemoryResource):
    """Hands out memory of several kinds, all of which devices and the host can use."""

    is_device_accessible = True
    is_host_accessible = True
    device_id = -1

    def __init__(self, *kinds: MemoryResource) -> None:
        self.kinds = kinds
        self.buffers: dict[int, Buffer] = {}

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        buffer = self.kinds[len(self.buffers) % len(self.kinds)].allocate(size, stream=stream)
        self.buffers[buffer.handle] = buffer
        return Buffer.from_handle(buffer.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, stream: Any = None) -> None:
        self.buffers[ptr].close(stream)


CUDA_HOST, CUDA_MANAGED = 3, 13


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize(
    ("resource", "device_type"),
    [(UnawareManagedResource, CUDA_MANAGED), (ManagedResource, CUDA_MANAGED), (PinnedResource, CUDA_HOST)],
)
def test_dlpack_says_what_the_driver_knows_of_the_memory(device, stream, resource, device_type, tracked):
    mr = TrackingMemoryResource(resource()) if tracked else resource()
    with mr.allocate(SIZE, stream) as buffer:
        assert buffer.__dlpack_device__() == (device_type, 0)
        assert buffer.is_managed is (device_type == CUDA_MANAGED)
        with buffer[8:] as part:
            assert part.__dlpack_device__() == (device_type, 0)


def test_each_buffer_of_a_resource_has_the_kind_of_its_own_memory(device, stream):
    mr = MixedResource(PinnedResource(), UnawareManagedResource())
    buffers = [mr.allocate(SIZE, stream) for _ in range(4)]
    assert [buffer.__dlpack_device__()[0] for buffer in buffers] == [CUDA_HOST, CUDA_MANAGED] * 2
    assert [buffer.is_managed for buffer in buffers] == [False, True] * 2
    for buffer in buffers:
        buffer.close()
    stream.sync()


def test_managed_memory_is_on_the_device_of_the_context_that_it_was_allocated_in(device):
    devices = Device.get_all_devices()
    for each in devices:
        each.set_current()
        with UnawareManagedResource().allocate(SIZE, each.default_stream) as buffer:
            assert buffer.__dlpack_device__() == (CUDA_MANAGED, each.device_id)
    device.set_current()


class SealedResource(DeviceResource):
    """Memory that neither devices nor the host can use."""

    is_device_accessible = False


def test_memory_that_nobody_can_use_is_not_exported(device, stream):
    with SealedResource().allocate(SIZE, stream) as buffer:
        for export in (buffer.__dlpack_device__, buffer.__dlpack__):
            with pytest.raises(BufferError, match="neither a device nor the host can use the memory"):
                export()
        with pytest.raises(AttributeError, match="__cuda_array_interface__"):
            buffer.__cuda_array_interface__  # noqa: B018


def test_page_locked_memory_without_a_resource_is_of_the_device_in_whose_context_it_was_made(device, stream):
    memory = np.zeros(1 << 16, np.uint8)  # registering takes whole pages
    for each in Device.get_all_devices():
        each.set_current()
        check(lib.cuMemHostRegister(ffi.cast("void *", memory.ctypes.data), memory.nbytes, 0), "cuMemHostRegister")
        try:
            with (
                Buffer.from_handle(memory.ctypes.data, memory.nbytes, owner=memory) as registered,
                PinnedResource().allocate(SIZE, each.default_stream) as pinned,
                Buffer.from_handle(pinned.handle, SIZE) as borrowed,
            ):
                for buffer in (registered, borrowed):
                    assert (buffer.device_id, buffer.__dlpack_device__()) == (each.device_id, (CUDA_HOST, 0))
                    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (True, True)
        finally:
            check(lib.cuMemHostUnregister(ffi.cast("void *", memory.ctypes.data)), "cuMemHostUnregister")
    device.set_current()
    assert Buffer.from_handle(memory.ctypes.data, memory.nbytes).device_id == -1


def test_memory_that_could_not_be_wrapped_stays_the_callers(device):
    resource = HostResource()
    memory = resource.allocate(SIZE)
    closed = device.create_stream()
    closed.close()
    with pytest.raises(RuntimeError, match="closed"):
        Buffer.from_handle(memory.handle, SIZE, mr=resource, stream=closed)
    gc.collect()
    assert memory.handle in resource.live
    memory.close()
    assert not resource.live
