# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools and buffers that several processes share, as one of the processes sees them."""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import ipc_child
import pytest
from buffers import PINNED
from helpers import collect
from ipc_child import make_pool

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    Device,
    DeviceMemoryResource,
    ManagedMemoryResource,
    PinnedMemoryResource,
    Stream,
    simulator,
)
from cuda_core_cffi._core.descriptors import seal
from cuda_core_cffi._memory.ipc import IPCAllocationHandle, IPCBufferDescriptor

SIZE = 4096


@pytest.fixture(params=["device", "pinned"])
def pool(request: pytest.FixtureRequest, device: Device) -> Iterator[Any]:
    """Return a pool for several processes, of each kind."""
    with_descriptors = ipc_child.descriptors()
    pool = make_pool(request.param)
    yield pool
    pool.close()
    assert ipc_child.descriptors() == with_descriptors


@pytest.fixture
def buffer(pool: Any, stream: Stream) -> Iterator[Buffer]:
    with pool.allocate(SIZE, stream) as buffer:
        stream.sync()
        yield buffer


# pools


def test_a_pool_is_for_this_process_alone_by_default(device: Device) -> None:
    pool = DeviceMemoryResource(device, {})
    assert (pool.is_ipc_enabled, pool.is_mapped, pool.uuid) == (False, False, None)
    with pytest.raises(RuntimeError, match="ipc_enabled=True"):
        pool.allocation_handle  # noqa: B018
    with pytest.raises(RuntimeError, match="ipc_enabled=True"):
        pool.register(uuid.uuid4())
    pool.close()


@pytest.mark.parametrize("make", [lambda: DeviceMemoryResource(0), lambda: ManagedMemoryResource({})])
def test_other_pools_are_for_this_process_alone(device: Device, make: Any) -> None:
    pool = make()
    assert (pool.is_ipc_enabled, pool.is_mapped, pool.uuid) == (False, False, None)
    pool.close()


def test_an_option_makes_a_pool_shareable(pool: Any) -> None:
    assert (pool.is_ipc_enabled, pool.is_mapped, pool.is_handle_owned) == (True, False, True)


def test_a_shared_pool_still_allocates(pool: Any, stream: Stream) -> None:
    with pool.allocate(SIZE, stream) as buffer:
        buffer.fill(1, stream=stream)
        assert buffer.is_mapped is False


def test_each_pool_has_a_uuid_of_its_own(device: Device, pool: Any) -> None:
    other = make_pool("device")
    assert isinstance(pool.uuid, uuid.UUID)
    assert pool.uuid != other.uuid
    other.close()


def test_a_pinned_pool_for_others_is_on_a_node(device: Device) -> None:
    pool = PinnedMemoryResource({"ipc_enabled": True})
    assert pool.numa_id == device.properties.host_numa_id
    pool.close()


# handles


def test_the_handle_is_an_open_descriptor_that_the_pool_keeps(pool: Any) -> None:
    handle = pool.allocation_handle
    assert handle is pool.allocation_handle
    assert int(handle) == handle.handle
    assert os.get_inheritable(handle.handle) is False
    assert handle.uuid == pool.uuid
    assert handle.is_closed is False


def test_closing_the_pool_closes_its_handle(pool: Any) -> None:
    handle = pool.allocation_handle
    number = int(handle)
    pool.close()
    assert (handle.is_closed, handle.handle) == (True, -1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    with pytest.raises(RuntimeError, match="this IPCAllocationHandle is closed"):
        int(handle)
    with pytest.raises(RuntimeError, match="is closed"):
        pool.allocation_handle  # noqa: B018


def test_a_handle_can_be_closed_twice(pool: Any) -> None:
    handle = pool.allocation_handle
    handle.close()
    number = os.dup(0)  # takes the number that became free
    handle.close()
    os.fstat(number)
    os.close(number)


def test_a_handle_is_not_made_by_hand() -> None:
    with pytest.raises(RuntimeError, match="use a pool's allocation_handle"):
        IPCAllocationHandle(0)


def test_a_handle_is_not_pickled_outside_of_multiprocessing(pool: Any) -> None:
    with pytest.raises(TypeError, match="through multiprocessing only"):
        pickle.dumps(pool.allocation_handle)


@pytest.mark.parametrize(
    ("handle", "error", "match"),
    [
        (-1, ValueError, "0 to 2\\*\\*31 - 1, not -1"),
        (2**31, ValueError, "not 2147483648"),
        (12345, ValueError, "12345 is not an open file descriptor"),
        (True, TypeError, "not bool"),
        ("3", TypeError, "not str"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_what_is_no_handle_is_refused(device: Device, handle: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        DeviceMemoryResource.from_allocation_handle(device, handle)
    with pytest.raises(error, match=match):
        PinnedMemoryResource.from_allocation_handle(handle)


def test_a_received_handle_must_be_a_descriptor() -> None:
    with pytest.raises(ValueError, match="not -1"):
        IPCAllocationHandle._create(-1, None)


def test_a_descriptor_of_something_else_is_refused_and_stays_open(device: Device) -> None:
    before = ipc_child.descriptors()
    with open("/dev/null") as file:
        with pytest.raises(CUDAError, match="cuMemPoolImportFromShareableHandle"):
            DeviceMemoryResource.from_allocation_handle(device, file.fileno())
        os.fstat(file.fileno())
    assert ipc_child.descriptors() == before


def test_a_closed_handle_is_refused(pool: Any, device: Device) -> None:
    handle = pool.allocation_handle
    handle.close()
    with pytest.raises(RuntimeError, match="this IPCAllocationHandle is closed"):
        DeviceMemoryResource.from_allocation_handle(device, handle)


# the registry


def test_a_pool_is_found_by_its_uuid(pool: Any) -> None:
    assert type(pool).from_registry(pool.uuid) is pool
    assert pool.register(pool.uuid) is pool
    assert pickle.loads(pickle.dumps(pool)) is pool


def test_a_pool_that_comes_home_is_itself(pool: Any) -> None:
    arguments = pool._sent_as()
    assert type(pool).from_allocation_handle(*arguments) is pool


def test_an_unknown_uuid_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no pool is registered as"):
        DeviceMemoryResource.from_registry(uuid.uuid4())


def test_only_a_uuid_is_looked_up(pool: Any) -> None:
    with pytest.raises(TypeError, match=r"must be a uuid\.UUID, not str"):
        DeviceMemoryResource.from_registry(str(pool.uuid))
    with pytest.raises(TypeError, match=r"must be a uuid\.UUID, not str"):
        pool.register("x")


def test_a_pool_of_another_kind_is_not_found(pool: Any) -> None:
    other = PinnedMemoryResource if isinstance(pool, DeviceMemoryResource) else DeviceMemoryResource
    with pytest.raises(TypeError, match=f"is a {type(pool).__name__}, not a {other.__name__}"):
        other.from_registry(pool.uuid)


def test_a_pool_does_not_change_its_uuid(pool: Any) -> None:
    with pytest.raises(ValueError, match=f"this pool is {pool.uuid}"):
        pool.register(uuid.uuid4())


def test_the_registry_keeps_no_pool_alive(device: Device) -> None:
    pool = make_pool("device")
    key = pool.uuid
    del pool
    collect()
    with pytest.raises(RuntimeError, match="no pool is registered"):
        DeviceMemoryResource.from_registry(key)


# buffers


def test_a_buffer_for_this_process_alone_has_no_descriptor(device: Device, stream: Stream) -> None:
    with device.allocate(SIZE, stream) as buffer:
        with pytest.raises(RuntimeError, match="ipc_enabled=True"):
            buffer.ipc_descriptor  # noqa: B018
        with pytest.raises(TypeError, match="ipc_enabled=True"):
            pickle.dumps(buffer)
        assert buffer.is_mapped is False


def test_a_descriptor_tells_the_size(buffer: Buffer) -> None:
    assert buffer.ipc_descriptor.size == SIZE
    assert buffer.get_ipc_descriptor() is buffer.ipc_descriptor


def test_a_descriptor_can_be_pickled(buffer: Buffer) -> None:
    copy = pickle.loads(pickle.dumps(buffer.ipc_descriptor))
    assert (copy.size, copy._payload) == (SIZE, buffer.ipc_descriptor._payload)


def test_a_descriptor_is_not_made_by_hand() -> None:
    with pytest.raises(RuntimeError, match=r"use Buffer\.ipc_descriptor"):
        IPCBufferDescriptor(bytes(64), 1)


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ((bytes(67), 1), ValueError),
        ((bytes(68), 1), ValueError),
        ((bytes(69), 1), ValueError),
        ((bytearray(68), 1), TypeError),
        ((seal(bytes(64)), -1), ValueError),
        ((seal(bytes(64)), 2**64), OverflowError),
        ((seal(bytes(64)), 1.0), TypeError),
        ((seal(bytes(64)), True), TypeError),
        ((seal(bytes(64)), 1, "pool"), TypeError),
    ],
)
def test_parts_that_make_no_descriptor_are_refused(parts: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        IPCBufferDescriptor._create(*parts)


def test_a_closed_buffer_has_no_descriptor(pool: Any, stream: Stream) -> None:
    buffer = pool.allocate(SIZE, stream)
    buffer.close()
    with pytest.raises(RuntimeError, match="this Buffer is closed"):
        buffer.get_ipc_descriptor()


def test_an_empty_buffer_has_no_descriptor(pool: Any, stream: Stream) -> None:
    with pool.allocate(0, stream) as buffer, pytest.raises(ValueError, match="0 bytes has no memory to share"):
        buffer.get_ipc_descriptor()


def test_a_slice_has_no_descriptor(buffer: Buffer) -> None:
    with buffer[:64] as part:
        with pytest.raises(ValueError, match="share the whole buffer"):
            part.ipc_descriptor  # noqa: B018
        with pytest.raises(ValueError, match="share the whole buffer"):
            pickle.dumps(part)


def test_a_buffer_is_not_imported_where_it_was_allocated(pool: Any, buffer: Buffer) -> None:
    with pytest.raises(RuntimeError, match="is of this one"):
        Buffer.from_ipc_descriptor(pool, buffer.ipc_descriptor)


def test_only_a_pool_and_a_descriptor_make_a_buffer(pool: Any, buffer: Buffer) -> None:
    with pytest.raises(TypeError, match="not LegacyPinnedMemoryResource"):
        Buffer.from_ipc_descriptor(PINNED, buffer.ipc_descriptor)
    with pytest.raises(TypeError, match="must be an IPCBufferDescriptor, not bytes"):
        Buffer.from_ipc_descriptor(pool, bytes(64))


def test_a_pool_of_this_process_alone_is_not_sent(pool: Any, device: Device) -> None:
    private = DeviceMemoryResource(device, {})
    with pytest.raises((RuntimeError, TypeError), match="ipc_enabled=True"):
        ForkingPickler.dumps(private)
    private.close()


# failures


@pytest.mark.simulator_only("injects faults")
@pytest.mark.parametrize(
    "call",
    [
        "cuMemPoolImportFromShareableHandle",
        "cuMemPoolImportPointer",
        "cuPointerGetAttribute",
        "cuMemPoolExportToShareableHandle",
        "cuMemPoolExportPointer",
    ],
)
def test_a_call_that_fails_leaves_nothing_behind(device: Device, stream: Stream, call: str) -> None:
    def share(pool: DeviceMemoryResource, buffer: Buffer) -> None:
        mapped = DeviceMemoryResource.from_allocation_handle(device, int(pool.allocation_handle))
        try:
            Buffer.from_ipc_descriptor(mapped, buffer.ipc_descriptor, stream=stream).close()
        finally:
            mapped.close()

    before = ipc_child.descriptors()
    pool = make_pool("device")
    with pool.allocate(SIZE, stream) as buffer:
        with simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY", 1) as fault, pytest.raises(CUDAError, match=call):
            share(pool, buffer)
        assert fault.left == 0
        share(pool, buffer)  # and works the next time
    pool.close()
    collect()
    assert ipc_child.descriptors() == before
