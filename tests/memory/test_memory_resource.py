# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory resources written in Python, and memory that exists already: Buffer.from_handle."""

from __future__ import annotations

import threading
import warnings
import weakref
from typing import Any

import pytest
from graphs import eventually
from helpers import collect, output_of

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    CUDAWarning,
    DeviceMemoryResource,
    MemoryResource,
    Stream,
    ffi,
)

SIZE = 64


class HostResource(MemoryResource):
    """Host memory from CFFI. Remembers what went back."""

    is_device_accessible = False
    is_host_accessible = True
    device_id = -1

    def __init__(self) -> None:
        self.live: dict[int, Any] = {}
        self.returned: list[tuple[int, int, Any]] = []

    def allocate(self, size, stream=None):
        memory = ffi.new("char[]", max(size, 1))
        address = int(ffi.cast("uintptr_t", memory))
        self.live[address] = memory
        return Buffer.from_handle(address, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, stream=None):
        self.returned.append((ptr, size, stream))
        del self.live[ptr]


class BrokenResource(HostResource):
    """Cannot take memory back."""

    def deallocate(self, ptr, size, stream=None):
        raise OSError("no way back")


class ForeignStream:
    """A stream of another library."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.stream.handle)


class Thing:
    """Something that can be referenced weakly."""


# The base class


@pytest.mark.parametrize(
    "use",
    [
        lambda mr: mr.allocate(1), lambda mr: mr.allocate(1, None), lambda mr: mr.allocate(1, stream=None),
        lambda mr: mr.deallocate(1, 1), lambda mr: mr.deallocate(1, 1, stream=None), lambda mr: mr.device_id,
        lambda mr: mr.is_device_accessible, lambda mr: mr.is_host_accessible,
    ],
    ids=["allocate", "positional", "keyword", "deallocate", "deallocate-keyword", "device_id", "device", "host"],
)  # fmt: skip
def test_what_a_resource_does_not_define_is_a_type_error_that_names_it(use):
    class Bare(MemoryResource):
        pass

    with pytest.raises(TypeError, match="Bare must define"):
        use(Bare())
    with pytest.raises(TypeError, match="MemoryResource must define"):
        use(MemoryResource())


def test_memory_is_not_managed_unless_a_resource_says_so():
    assert MemoryResource().is_managed is False


# A resource in Python


def test_a_resource_can_be_written_in_python():
    mr = HostResource()
    buffer = mr.allocate(SIZE)
    assert (buffer.memory_resource, buffer.size, buffer.owner) == (mr, SIZE, None)
    assert (buffer.device_id, buffer.is_device_accessible, buffer.is_host_accessible) == (-1, False, True)
    assert buffer.is_managed is False
    buffer.__buffer__(0)[:] = bytes(range(SIZE))
    assert ffi.buffer(mr.live[buffer.handle])[:SIZE] == bytes(range(SIZE))
    buffer.close()
    collect()  # the memoryview keeps the memory
    assert mr.live == {}


def test_a_device_can_use_a_resource_written_in_python(device, stream):
    mr = HostResource()
    before = device.memory_resource
    device.memory_resource = mr
    try:
        with device.allocate(SIZE, stream) as buffer:
            assert buffer.memory_resource is mr
    finally:
        device.memory_resource = before
    assert len(mr.returned) == 1


@pytest.mark.parametrize("ending", ["close", "with", "collect"])
def test_memory_goes_back_once_with_address_size_and_stream(device, stream, ending):
    mr = HostResource()
    buffer = mr.allocate(SIZE, stream)
    address = buffer.handle
    if ending == "close":
        buffer.close()
        buffer.close()
    elif ending == "with":
        with buffer:
            pass
    del buffer
    collect()
    assert mr.returned == [(address, SIZE, stream)]


def test_memory_goes_back_in_the_default_stream_where_none_was_given():
    mr = HostResource()
    mr.allocate(SIZE).close()
    assert mr.returned[0][2] is LEGACY_DEFAULT_STREAM


@pytest.mark.parametrize("how", ["close", "set_deallocation_stream"])
def test_the_stream_of_the_end_can_be_chosen(device, stream, how):
    mr = HostResource()
    with device.create_stream() as other:
        buffer = mr.allocate(SIZE, stream)
        if how == "close":
            buffer.close(stream=other)
        else:
            buffer.set_deallocation_stream(other)
            buffer.close()
        assert mr.returned[0][2] is other
        buffer.close(stream)
        assert len(mr.returned) == 1


def test_a_stream_that_was_closed_meanwhile_still_orders_the_end(device):
    mr = HostResource()
    stream = device.create_stream()
    handle = stream.handle
    buffer = mr.allocate(SIZE, stream)
    stream.close()

    def deallocate(ptr, size, stream=None):
        stream.sync()  # it is usable
        mr.returned.append((ptr, size, stream.handle))

    mr.deallocate = deallocate
    buffer.close()
    assert mr.returned[0][2] == handle


def test_memory_of_a_pool_goes_back_after_its_stream_was_closed(device):
    mr = DeviceMemoryResource(device, {})
    stream = device.create_stream()
    address = _address_without_buffer(mr, stream)
    buffer = Buffer.from_handle(address, SIZE, mr=mr, stream=stream)
    stream.close()
    buffer.close()
    assert mr.attributes.used_mem_current == 0
    mr.close()


def _address_without_buffer(mr: DeviceMemoryResource, stream: Stream) -> int:
    """Allocate from a pool as another library does, which then owns the memory."""
    from cuda_core_cffi import lib

    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAllocFromPoolAsync(pointer, SIZE, mr.cdata, stream.cdata) == 0
    return int(pointer[0])


def test_a_closed_stream_is_refused_at_the_start(device):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(RuntimeError, match="Stream is closed"):
        HostResource().allocate(SIZE, stream)


def test_a_foreign_stream_reaches_the_resource_and_is_kept(device, stream):
    mr = HostResource()
    foreign = ForeignStream(stream)
    alive = weakref.ref(foreign)
    buffer = mr.allocate(SIZE, foreign)
    del foreign
    collect()
    assert alive() is not None
    buffer.close()
    assert mr.returned[0][2].handle == stream.handle
    mr.returned.clear()
    del buffer
    assert eventually(lambda: alive() is None)


def test_threads_that_close_together_give_the_memory_back_once():
    mr = HostResource()
    for count in range(1, 51):
        buffer = mr.allocate(SIZE)
        barrier = threading.Barrier(4)

        def close(buffer=buffer, barrier=barrier) -> None:
            barrier.wait()
            buffer.close()

        threads = [threading.Thread(target=close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(mr.returned) == count
    assert mr.live == {}


def test_a_resource_lives_as_long_as_its_buffers():
    mr = HostResource()
    alive, live = weakref.ref(mr), mr.live
    buffer = mr.allocate(SIZE)
    del mr
    collect()
    assert alive() is not None
    buffer.close()
    del buffer
    collect()
    assert alive() is None
    assert live == {}


def test_a_failing_deallocate_is_an_exception_from_close():
    buffer = BrokenResource().allocate(SIZE)
    with pytest.raises(OSError, match="no way back"):
        buffer.close()
    assert buffer.is_closed
    buffer.close()


def test_a_failing_deallocate_is_a_warning_from_a_finalizer():
    buffer = BrokenResource().allocate(SIZE)
    address = buffer.handle
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del buffer
        collect()
    assert [(w.category, str(w.message)) for w in caught] == [
        (CUDAWarning, f"in cleanup of {address:#x}: BrokenResource.deallocate failed: no way back")
    ]


def test_a_resource_in_a_cycle_with_its_buffer_is_collected():
    mr = HostResource()
    returned = mr.returned
    mr.buffer = mr.allocate(SIZE)
    del mr
    collect()
    assert len(returned) == 1


def test_a_resource_in_python_can_have_a_destination_for_copy_to(device, stream):
    mr = HostResource()
    source = mr.allocate(SIZE, stream)
    source.__buffer__(0)[:] = bytes(range(SIZE))
    copied = source.copy_to(stream=stream)
    stream.sync()
    assert copied.memory_resource is mr
    assert copied.__buffer__(0).tobytes() == bytes(range(SIZE))
    source.close()
    copied.close()


def test_a_child_of_fork_can_close_what_it_inherited_whatever_other_threads_were_doing():
    printed = output_of(
        """
        import os, signal, threading
        from cuda_core_cffi import Buffer
        from cuda_core_cffi._memory import memory_owner

        buffer = Buffer.from_handle(0x1000, 64, owner=[])
        held, done = threading.Event(), threading.Event()

        def hold():
            with memory_owner._lock:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        pid = os.fork()
        if not pid:
            signal.alarm(20)  # rather than hang
            buffer.close()
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        done.set()
        thread.join()
        """,
        PYTHONWARNINGS="ignore",
    )
    assert printed == "0"


# Memory that exists already


def test_borrowed_memory_belongs_to_nobody_here():
    memory = ffi.new("char[]", SIZE)
    address = int(ffi.cast("uintptr_t", memory))
    buffer = Buffer.from_handle(address, SIZE)
    assert (buffer.handle, buffer.size, buffer.memory_resource, buffer.owner) == (address, SIZE, None, None)
    buffer.close()
    assert (buffer.handle, buffer.is_closed) == (0, True)


@pytest.mark.parametrize("ctype", ["void *", "char *", "uintptr_t", "CUdeviceptr"])
def test_an_address_may_be_a_cffi_object(ctype):
    with Buffer.from_handle(ffi.cast(ctype, 0x1000), SIZE) as buffer:
        assert buffer.handle == 0x1000


@pytest.mark.parametrize("ptr", [None, 0])
def test_no_address_is_the_null_pointer(ptr):
    with Buffer.from_handle(ptr, 0) as buffer:
        assert (buffer.handle, buffer.is_closed) == (0, False)


@pytest.mark.parametrize(
    ("ptr", "size", "error"),
    [
        ("text", 1, TypeError), (object(), 1, TypeError), (-1, 1, OverflowError), (2**64, 1, OverflowError),
        (0x1000, -1, ValueError), (0x1000, 2**64, OverflowError), (0x1000, "1", TypeError), (0x1000, 1.0, TypeError),
    ],
)  # fmt: skip
def test_a_wrong_address_or_size_is_refused(ptr, size, error):
    with pytest.raises(error):
        Buffer.from_handle(ptr, size)


def test_an_owner_is_kept_until_close():
    owner = Thing()
    alive = weakref.ref(owner)
    buffer = Buffer.from_handle(0x1000, SIZE, owner=owner)
    assert buffer.owner is owner
    del owner
    collect()
    assert alive() is not None
    buffer.close()
    assert buffer.owner is None
    collect()
    assert alive() is None


def test_an_owner_is_let_go_when_the_buffer_is_collected():
    owner = Thing()
    alive = weakref.ref(owner)
    buffer = Buffer.from_handle(0x1000, SIZE, owner=owner)
    del owner, buffer
    collect()
    assert alive() is None


def test_a_resource_and_an_owner_exclude_each_other():
    mr = HostResource()
    with pytest.raises(ValueError, match="mr or owner, not both"):
        Buffer.from_handle(0x1000, SIZE, mr=mr, owner=Thing())
    assert mr.returned == []


@pytest.mark.parametrize("mr", ["mr", 1, Thing()])
def test_a_resource_of_another_type_is_a_type_error(mr):
    with pytest.raises(TypeError, match="mr must be a MemoryResource"):
        Buffer.from_handle(0x1000, SIZE, mr=mr)


def test_the_stream_must_be_one(device):
    with pytest.raises(TypeError, match="from_handle needs a Stream"):
        Buffer.from_handle(0x1000, SIZE, stream=1)


def test_arguments_may_be_positional():
    mr = HostResource()
    memory = ffi.new("char[]", SIZE)
    address = int(ffi.cast("uintptr_t", memory))
    mr.live[address] = memory
    Buffer.from_handle(address, SIZE, mr, None).close()
    assert mr.live == {}
    with Buffer.from_handle(address, SIZE, None, memory) as buffer:
        assert buffer.owner is memory


def test_a_buffer_wraps_part_of_another_that_it_keeps(device, stream):
    whole = device.allocate(SIZE, stream)
    part = Buffer.from_handle(whole.handle + 16, 16, owner=whole)
    assert (part.device_id, part.is_device_accessible) == (0, True)
    part.fill(5, stream=stream)
    part.close()
    whole.close()
