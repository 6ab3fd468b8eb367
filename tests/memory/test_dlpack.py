# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers as DLPack tensors."""

from __future__ import annotations

import contextlib
import inspect
import threading
import warnings
import weakref

import numpy
import pytest
from buffers import DATA, PINNED, SIZE, HostResource, Owner
from consumer import TYPES, Consumer
from helpers import Gate, alive, collect_and_release, no_release_thread
from scenarios import Forwarding

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    LegacyPinnedMemoryResource,
    Stream,
    ffi,
    lib,
    simulator,
)
from cuda_core_cffi._lifetime.pending_calls import run_all_tasks

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
pytestmark = pytest.mark.usefixtures("device")


def pinned(data: bytes = DATA) -> Buffer:
    """Return a pinned buffer with data."""
    buffer = PINNED.allocate(len(data))
    ffi.buffer(ffi.cast("char *", buffer.handle), len(data))[:] = data
    return buffer


def on_device(device, stream, data: bytes = DATA) -> Buffer:
    """Return a device buffer with data."""
    buffer = device.allocate(len(data), stream)
    with pinned(data) as staging:
        buffer.copy_from(staging, stream=stream)
        stream.sync()
    return buffer


def managed() -> Buffer:
    """Return a buffer of managed memory that is never given back by itself."""
    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAllocManaged(pointer, SIZE, lib.CU_MEM_ATTACH_GLOBAL) == 0
    return Buffer.from_handle(int(pointer[0]), SIZE)


# What the tensor says


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
def test_the_tensor_is_versioned_where_the_consumer_understands_it(device, stream, max_version):
    with device.allocate(SIZE, stream) as buffer:
        consumer = Consumer(buffer.__dlpack__(stream=-1, max_version=max_version))
        assert consumer.versioned is (max_version is not None and max_version[0] >= 1)
        tensor = consumer.tensor
        assert int(ffi.cast("uintptr_t", TYPES.cast("uintptr_t", tensor.data))) == buffer.handle
        assert (tensor.device.device_type, tensor.device.device_id) == (CUDA, 0)
        assert (tensor.ndim, tensor.shape[0], tensor.strides[0], tensor.byte_offset) == (1, SIZE, 1, 0)
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (0, 8, 1)
        if consumer.versioned:
            assert (consumer.managed.major, consumer.managed.flags) == (1, 0)
        consumer.delete()


def test_each_kind_of_memory_has_its_dlpack_device(device, stream):
    owner = Owner()
    with device.allocate(SIZE, stream) as buffer, pinned() as host:
        assert buffer.__dlpack_device__() == (CUDA, 0)
        assert host.__dlpack_device__() == (CUDA_HOST, 0)
    assert Buffer.from_handle(owner.address, SIZE).__dlpack_device__() == (CPU, 0)
    shared = managed()
    assert shared.__dlpack_device__() == (CUDA_MANAGED, 0)
    assert lib.cuMemFree(shared.handle) == 0


def test_an_empty_buffer_can_be_exported(device, stream):
    with device.allocate(0, stream) as buffer:
        consumer = Consumer(buffer.__dlpack__())
        assert (consumer.tensor.shape[0], consumer.tensor.data) == (0, TYPES.NULL)
        consumer.delete()


@pytest.mark.parametrize("kind", ["stream-ordered", "borrowed"])
def test_the_parameters_are_keywords(device, stream, kind):
    with device.allocate(SIZE, stream) as memory:
        buffer = memory if kind == "stream-ordered" else Buffer.from_handle(memory.handle, SIZE)
        with pytest.raises(TypeError, match=r"__dlpack__\(\) takes 1 positional argument but 2 were given"):
            buffer.__dlpack__(1)
        with pytest.raises(TypeError, match=r"__dlpack__\(\) got an unexpected keyword argument 'steam'"):
            buffer.__dlpack__(stream=-1, steam=1)


def test_the_names_of_parameters_need_not_be_interned(device, stream):
    names = ["".join(["max_", "version"]), "".join(["dl_", "device"])]
    with device.allocate(SIZE, stream) as buffer:
        consumer = Consumer(buffer.__dlpack__(**dict(zip(names, [(1, 0), (CUDA, 0)], strict=True))))
        assert consumer.versioned
        consumer.delete()


@pytest.mark.parametrize("max_version", ["1.0", 1, (), ("1", 0)])
def test_a_version_is_a_tuple_of_integers(device, stream, max_version):
    with device.allocate(SIZE, stream) as buffer, pytest.raises((TypeError, IndexError)):
        buffer.__dlpack__(stream=-1, max_version=max_version)


def test_the_methods_are_documented():
    assert "the legacy default stream, 2" in inspect.getdoc(Buffer.__dlpack__)
    assert inspect.getdoc(Buffer.__dlpack_device__) == "Return DLPack's device type and the ordinal."
    parameters = list(inspect.signature(Buffer.__dlpack__).parameters.values())
    assert [(item.name, item.kind, item.default) for item in parameters[1:]] == [
        (name, inspect.Parameter.KEYWORD_ONLY, None) for name in ("stream", "max_version", "dl_device", "copy")
    ]


def test_the_kind_of_memory_may_change_where_a_resource_in_python_says_so():
    resource = HostResource()
    with resource.allocate(SIZE) as buffer:
        assert buffer.__dlpack_device__() == (CPU, 0)
        resource.is_device_accessible = True
        assert buffer.__dlpack_device__() == (CUDA_HOST, 0)


@pytest.mark.simulator_only("counts calls of the driver")
def test_waiting_for_a_buffers_stream_takes_one_event_for_ever(device):
    with device.create_stream() as stream, device.create_stream() as consumer, device.allocate(SIZE, stream) as buffer:
        buffer.__dlpack__(stream=consumer.handle)
        with simulator.trace() as trace:
            buffer.__dlpack__(stream=consumer.handle)
    assert [call for call in trace.names if "Event" in call] == ["cuEventRecord", "cuStreamWaitEvent"]


# With NumPy


def test_numpy_sees_pinned_memory():
    with pinned() as buffer:
        array = numpy.from_dlpack(buffer)
        assert (array.dtype, array.shape) == (numpy.int8, (SIZE,))
        assert array.tobytes() == DATA
        assert array.ctypes.data == buffer.handle
        del array


def test_numpy_writes_pinned_memory():
    with pinned() as buffer:
        numpy.from_dlpack(buffer)[:] = 5
        assert numpy.from_dlpack(buffer).tobytes() == bytes([5]) * SIZE
        collect_and_release()


def test_numpy_sees_managed_memory(device):
    buffer = managed()
    array = numpy.from_dlpack(buffer)
    array[:] = 3
    assert numpy.from_dlpack(buffer).sum() == 3 * SIZE
    del array
    collect_and_release()
    assert lib.cuMemFree(buffer.handle) == 0


def test_numpy_can_ask_for_a_copy_on_the_host(device, stream):
    if numpy.lib.NumpyVersion(numpy.__version__) < "2.1.0":
        pytest.skip("numpy.from_dlpack takes a device from NumPy 2.1 on")
    with on_device(device, stream) as buffer:
        array = numpy.from_dlpack(buffer, device="cpu")
        assert array.tobytes() == DATA
        buffer.fill(0, stream=stream)
        stream.sync()
        assert array.tobytes() == DATA


# The end of a tensor


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_that_nobody_consumes_lets_the_memory_go(device, stream, max_version):
    before = alive()["buffer"]
    buffer = device.allocate(SIZE, stream)
    capsule = buffer.__dlpack__(max_version=max_version)
    buffer.close()
    assert alive()["buffer"] == before + 1
    del capsule
    collect_and_release()
    assert alive()["buffer"] == before


@pytest.mark.parametrize("ending", ["close", "collect"])
@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_tensor_outlives_its_buffer(device, stream, ending, max_version):
    before = alive()["buffer"]
    buffer = pinned()
    consumer = Consumer(buffer.__dlpack__(max_version=max_version))
    if ending == "close":
        buffer.close()
    del buffer
    collect_and_release()
    assert alive()["buffer"] == before + 1
    assert consumer.content == DATA
    consumer.delete()
    assert alive()["buffer"] == before


@pytest.mark.parametrize("ending", ["close", "collect"])
def test_a_tensor_keeps_memory_of_a_python_resource(ending):
    mr = HostResource()
    buffer = mr.allocate(SIZE)
    ffi.buffer(ffi.cast("char *", buffer.handle), SIZE)[:] = DATA
    consumer = Consumer(buffer.__dlpack__())
    if ending == "close":
        buffer.close()
    del buffer
    collect_and_release()
    assert len(mr.live) == 1
    assert consumer.content == DATA
    consumer.delete()
    mr.allocate(SIZE).close()  # what a consumer has deleted is looked for when such a buffer is made or closed
    assert mr.live == {}


@pytest.mark.parametrize("ending", ["close", "collect"])
def test_a_tensor_keeps_the_owner_of_memory(ending):
    owner = Owner()
    alive = weakref.ref(owner)
    buffer = Buffer.from_handle(owner.address, SIZE, owner=owner)
    consumer = Consumer(buffer.__dlpack__())
    del owner
    if ending == "close":
        buffer.close()
    del buffer
    collect_and_release()
    assert alive() is not None
    assert consumer.content == DATA
    consumer.delete()
    collect_and_release()  # finds the tensor
    collect_and_release()
    assert alive() is None


def test_a_tensor_keeps_memory_that_python_gives_back_to_a_resource_of_ours():
    class Resource(LegacyPinnedMemoryResource):
        def deallocate(self, ptr, size, stream=None):
            freed.append(ptr)

    freed, mr, owner = [], Resource(), Owner()
    buffer = Buffer.from_handle(owner.address, SIZE, mr=mr)
    assert buffer.__dlpack_device__() == (CUDA_HOST, 0)
    consumer = Consumer(buffer.__dlpack__())
    buffer.close()
    assert freed == []
    consumer.delete()
    collect_and_release()
    assert freed == [owner.address]


def test_an_export_lets_go_of_what_was_kept_for_finished_tensors():
    mr = HostResource()
    buffer = mr.allocate(SIZE)
    consumer = Consumer(buffer.__dlpack__())
    buffer.close()
    with PINNED.allocate(SIZE) as other, no_release_thread():
        consumer.delete()
        assert len(mr.live) == 1
        other.__dlpack__()
        assert mr.live == {}


def test_memory_goes_back_once_however_many_tensors_show_it():
    mr = HostResource()
    buffer = mr.allocate(SIZE)
    consumers = [Consumer(buffer.__dlpack__()) for _ in range(3)]
    buffer.close()
    for left in (2, 1, 0):
        consumers.pop().delete()
        run_all_tasks()
        assert len(mr.live) == (left > 0)


def test_a_consumer_may_delete_on_any_thread():
    mr = HostResource()
    buffer = mr.allocate(SIZE)
    consumers = [Consumer(buffer.__dlpack__()) for _ in range(100)]
    buffer.close()
    threads = [
        threading.Thread(target=lambda part=part: [consumer.delete() for consumer in part])
        for part in (consumers[:50], consumers[50:])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run_all_tasks()
    assert mr.live == {}


# Order


def is_reached(stream: Stream) -> bool:
    """Tell whether a stream gets through the work that it has now, soon."""
    with stream.record() as event:
        for _ in range(20):
            if event.is_done:
                return True
            threading.Event().wait(0.005)
        return False


def consumer_stream(device, which: str) -> tuple[Stream, int | None]:
    """Return a stream, and the number by which a consumer names it."""
    if which == "address":
        stream = device.create_stream()
        return stream, stream.handle
    named = {
        "none": (LEGACY_DEFAULT_STREAM, None),
        "1": (LEGACY_DEFAULT_STREAM, 1),
        "2": (PER_THREAD_DEFAULT_STREAM, 2),
    }
    return named[which]


@pytest.mark.parametrize("which", ["none", "1", "2", "address"])
def test_the_consumers_stream_waits_for_the_buffers(device, stream, which):
    consumer, number = consumer_stream(device, which)
    buffer = device.allocate(SIZE, stream)
    with Gate(stream) as gate:
        assert is_reached(consumer)
        capsule = buffer.__dlpack__(stream=number)
        assert not is_reached(consumer)
        gate.open()
        consumer.sync()
    assert is_reached(consumer)
    del capsule
    buffer.close()
    consumer.close()


def test_minus_one_orders_nothing(device, stream):
    with device.create_stream() as consumer, device.allocate(SIZE, stream) as buffer, Gate(stream):
        buffer.__dlpack__(stream=-1)
        assert is_reached(consumer)
        assert is_reached(LEGACY_DEFAULT_STREAM)


def test_the_buffers_own_stream_needs_no_ordering(device, stream):
    with device.allocate(SIZE, stream) as buffer, Gate(stream):
        buffer.__dlpack__(stream=stream.handle)


def test_the_stream_set_last_is_the_one_that_is_waited_for(device, stream):
    with device.create_stream() as busy, device.create_stream() as consumer, device.allocate(SIZE, stream) as buffer:
        buffer.set_deallocation_stream(busy)
        with Gate(busy) as gate:
            capsule = buffer.__dlpack__(stream=consumer.handle)
            assert not is_reached(consumer)
            gate.open()
            consumer.sync()
        del capsule
        buffer.set_deallocation_stream(stream)
        collect_and_release()


def test_a_stream_that_its_owner_closed_is_still_waited_for(device):
    stream = device.create_stream()
    with device.create_stream() as consumer, device.allocate(SIZE, stream) as buffer:
        with Gate(Stream.from_handle(stream.handle)) as gate:
            stream.close()
            capsule = buffer.__dlpack__(stream=consumer.handle)
            assert not is_reached(consumer)
            gate.open()
            consumer.sync()
        del capsule
        collect_and_release()


def test_a_python_resources_buffer_is_ordered_after_its_stream(device, stream):
    with device.create_stream() as consumer, device.allocate(SIZE, stream) as memory:
        with Gate(stream) as gate:
            buffer = Buffer.from_handle(memory.handle, SIZE, owner=memory, stream=stream)
            assert buffer.__cuda_array_interface__["stream"] == stream.handle
            capsule = buffer.__dlpack__(stream=consumer.handle)
            assert not is_reached(consumer)
            gate.open()
            consumer.sync()
        del capsule
        buffer.close()
        collect_and_release()


@pytest.mark.parametrize("stream_number", [True, "1", 1.0, object()], ids=lambda value: type(value).__name__)
def test_a_stream_of_another_type_is_a_type_error(device, stream, stream_number):
    text = f"stream must be an int or None, not {type(stream_number).__name__}"
    with device.allocate(SIZE, stream) as buffer, pytest.raises(TypeError, match=text):
        buffer.__dlpack__(stream=stream_number)


@pytest.mark.parametrize("stream_number", [0, -2])
def test_an_ambiguous_stream_is_a_buffer_error(device, stream, stream_number):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(BufferError, match=f"stream {stream_number} is"):
        buffer.__dlpack__(stream=stream_number)


@pytest.mark.parametrize("number", [0, 1, 2, 0x1000])
def test_memory_of_the_host_only_takes_no_stream(number):
    owner = Owner()
    buffer = Buffer.from_handle(owner.address, SIZE, owner=owner)
    with pytest.raises(BufferError, match=f"takes no stream, but the consumer gave {number}"):
        buffer.__dlpack__(stream=number)
    Consumer(buffer.__dlpack__(stream=-1)).delete()


def test_pinned_memory_takes_the_stream_of_a_gpu_consumer(device, stream):
    with device.create_stream() as consumer, PINNED.allocate(SIZE, stream) as buffer:
        with Gate(stream) as gate:
            capsule = buffer.__dlpack__(stream=consumer.handle)
            assert not is_reached(consumer)
            gate.open()
            consumer.sync()
        del capsule
        collect_and_release()


# Copies


@pytest.mark.parametrize("number", [None, -1, 1, 2])
@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_copy_true_gives_memory_of_its_own(device, stream, kind, number):
    before = alive()["buffer"]
    buffer = on_device(device, stream) if kind == "device" else pinned()
    consumer = Consumer(buffer.__dlpack__(copy=True, stream=number, max_version=(1, 0)))
    address = int(TYPES.cast("uintptr_t", consumer.tensor.data))
    assert address != buffer.handle
    assert consumer.managed.flags == 2  # DLPACK_FLAG_BITMASK_IS_COPIED
    assert consumer.tensor.device.device_type == buffer.__dlpack_device__()[0]
    device.sync()
    buffer.fill(0, stream=stream)
    with Buffer.from_handle(address, SIZE) as copied, PINNED.allocate(SIZE) as host:
        copied.copy_to(host, stream=stream)
        stream.sync()
        assert bytes(ffi.buffer(ffi.cast("char *", host.handle), SIZE)) == DATA
    buffer.close()
    assert alive()["buffer"] == before + 1
    consumer.delete()
    assert alive()["buffer"] == before


def test_a_copy_waits_for_the_buffers_stream(device, stream):
    with device.create_stream() as consumer, device.allocate(SIZE, stream) as buffer:
        with Gate(stream) as gate:
            capsule = buffer.__dlpack__(copy=True, stream=consumer.handle)
            assert not is_reached(consumer)
            gate.open()
            consumer.sync()
        del capsule
        collect_and_release()


@pytest.mark.parametrize("kind", ["device", "slice", "resource in Python"])
def test_no_memory_goes_back_before_a_copy_is_made(device, stream, kind):
    with device.create_stream() as consumer, contextlib.ExitStack() as stack:
        buffer = stack.enter_context(device.allocate(SIZE, stream))
        if kind == "slice":
            buffer = buffer[8:]
        elif kind == "resource in Python":
            buffer = stack.enter_context(Forwarding(device.memory_resource).allocate(SIZE, stream))
        with Gate(consumer) as gate:
            capsule = buffer.__dlpack__(copy=True, stream=consumer.handle)
            assert not is_reached(stream)  # in which the buffer goes back
            assert not is_reached(LEGACY_DEFAULT_STREAM)  # in which the copy goes back
            buffer.close()
            del capsule
            collect_and_release()
            gate.open()
            consumer.sync()
        device.sync()


def test_a_copy_without_a_stream_is_made_when_the_export_returns(device, stream):
    order = []
    with device.allocate(SIZE, stream) as buffer, Gate(stream) as gate:
        timer = threading.Timer(0.1, lambda: (order.append("opened"), gate.open()))
        timer.start()
        Consumer(buffer.__dlpack__(copy=True, stream=-1)).delete()
        order.append("exported")
        timer.join()
    assert order == ["opened", "exported"]


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_a_copy_outlives_the_consumers_stream(device, stream, kind):
    before = alive()["buffer"]
    with device.create_stream() as consumer, on_device(device, stream) if kind == "device" else pinned() as buffer:
        tensor = Consumer(buffer.__dlpack__(copy=True, stream=consumer.handle))
        consumer.sync()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor.delete()
        device.create_event().close()  # tells of what failed in cleanup
    assert alive()["buffer"] == before


@pytest.mark.parametrize("kind", ["device", "pinned", "managed"])
@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_copy_on_the_host_can_be_asked_for(device, stream, kind, max_version):
    buffer = {"device": lambda: on_device(device, stream), "pinned": pinned, "managed": managed}[kind]()
    if kind == "managed":
        numpy.asarray(buffer)[:] = numpy.frombuffer(DATA, "u1")
    consumer = Consumer(buffer.__dlpack__(dl_device=(CPU, 0), max_version=max_version))
    assert (consumer.tensor.device.device_type, consumer.tensor.device.device_id) == (CPU, 0)
    if kind == "managed":
        assert lib.cuMemFree(buffer.handle) == 0
    buffer.close()
    assert consumer.content == DATA
    if consumer.versioned:
        assert consumer.managed.flags == 2
    consumer.delete()


def test_a_copy_on_the_host_waits_for_the_buffers_stream(device, stream):
    with PINNED.allocate(SIZE) as source, device.allocate(SIZE, stream) as buffer, Gate(stream) as gate:
        ffi.buffer(ffi.cast("char *", source.handle), SIZE)[:] = DATA
        buffer.copy_from(source, stream=stream)
        threading.Timer(0.05, gate.open).start()
        consumer = Consumer(buffer.__dlpack__(dl_device=(CPU, 0)))
        assert consumer.content == DATA
        consumer.delete()


def test_host_memory_is_copied_without_a_context():
    owner = Owner()
    buffer = Buffer.from_handle(owner.address, SIZE, owner=owner)
    consumer = Consumer(buffer.__dlpack__(copy=True))
    owner.memory[0] = b"x"
    assert consumer.content == DATA
    consumer.delete()


def test_the_buffers_own_device_may_be_asked_for(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        consumer = Consumer(buffer.__dlpack__(dl_device=(CUDA, 0), copy=False))
        assert int(TYPES.cast("uintptr_t", consumer.tensor.data)) == buffer.handle
        consumer.delete()


# Refusals


@pytest.mark.parametrize("wanted", [(CUDA, 1), (CUDA_HOST, 0), (CUDA_MANAGED, 0), (CPU, 1), (4, 0)])
def test_another_device_is_a_buffer_error_that_says_where_the_memory_is(device, stream, wanted):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(BufferError, match=r"on DLPack device \(2, 0\)"):
        buffer.__dlpack__(dl_device=wanted)


def test_the_host_without_a_copy_is_a_buffer_error(device, stream):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(BufferError, match="copy=False forbids"):
        buffer.__dlpack__(dl_device=(CPU, 0), copy=False)


def test_a_copy_of_borrowed_memory_is_a_buffer_error(device, stream):
    memory = device.allocate(SIZE, stream)
    with Buffer.from_handle(memory.handle, SIZE) as buffer, pytest.raises(BufferError, match="needs a memory resource"):
        buffer.__dlpack__(copy=True)
    memory.close()


@pytest.mark.parametrize("kind", ["device", "pinned", "borrowed"])
def test_a_closed_buffer_is_not_exported(device, stream, kind):
    buffer = device.allocate(SIZE, stream) if kind == "device" else PINNED.allocate(SIZE)
    if kind == "borrowed":
        buffer = Buffer.from_handle(0x1000, SIZE)
    buffer.close()
    with pytest.raises(BufferError, match="this Buffer is closed"):
        buffer.__dlpack__()
