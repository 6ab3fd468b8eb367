# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers of virtual memory in several processes."""

from __future__ import annotations

import copy
import os
import pickle
import socket
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import ipc_child
import pytest
import virtual_child
from buffers import content
from helpers import SUPPORT, collect, output_of
from interruptions import times_interrupted
from ipc_child import LIMIT, SPAWN, Child
from virtual_memory import UNIT, blocked

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    Device,
    DeviceMemoryResource,
    Stream,
    VirtualMemoryBuffer,
    VirtualMemoryIPCBufferDescriptor,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    lib,
    simulator,
)
from cuda_core_cffi._memory.ipc import IPCAllocationHandle
from cuda_core_cffi.utils import TrackingMemoryResource

pytestmark = pytest.mark.usefixtures("no_virtual_memory_left")

STORED = 5  # by the kernel, in the first four bytes


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """Return another process, one for all these tests: starting one takes long."""
    with Child() as child:
        yield child


@pytest.fixture
def mr(device: Device) -> VirtualMemoryResource:
    if not device.properties.handle_type_posix_file_descriptor_supported:
        pytest.skip("the device does not share memory by file descriptors")
    return VirtualMemoryResource(device)


@pytest.fixture
def buffer(mr: VirtualMemoryResource, stream: Stream) -> Iterator[VirtualMemoryBuffer]:
    """Return a buffer full of 1, and look whether a test leaves file descriptors open."""

    def descriptors() -> list[str]:  # not those of multiprocessing
        return [link for link in ipc_child.descriptors() if not link.startswith(("socket:", "pipe:"))]

    collect()  # the garbage of earlier tests
    before = descriptors()
    with filled(mr, UNIT, 1, stream) as buffer:
        own = len(descriptors())
        yield buffer
        collect()
        assert len(descriptors()) == own
    assert descriptors() == before


def filled(mr: VirtualMemoryResource, size: int, value: int, stream: Stream) -> VirtualMemoryBuffer:
    buffer = mr.allocate(size, stream)
    buffer.fill(value, stream=stream)
    stream.sync()
    return buffer


# --- Sending ------------------------------------------------------------------------------------------------------


def test_both_processes_have_the_same_memory(child: Child, buffer: VirtualMemoryBuffer, stream: Stream) -> None:
    assert child(ipc_child.read_and_fill, buffer, 2) == bytes([1]) * UNIT
    assert content(buffer, stream) == bytes([2]) * UNIT


def test_what_a_kernel_writes_is_seen_by_the_other_process(
    child: Child, buffer: VirtualMemoryBuffer, stream: Stream
) -> None:
    assert child(virtual_child.store, buffer, STORED) == [1]
    assert content(buffer, stream)[:5] == bytes([STORED, 0, 0, 0, 1])


def test_the_other_process_has_a_buffer_of_an_equal_resource(child: Child, device: Device, stream: Stream) -> None:
    options = VirtualMemoryResourceOptions(granularity="minimum", self_access="r")
    with VirtualMemoryResource(device, options).allocate(1, stream) as buffer:
        found = child(virtual_child.describe, buffer)
        assert found == {
            "kind": VirtualMemoryBuffer,
            "size": UNIT,
            "mapped": True,
            "device": 0,
            "place": (2, 0),
            "config": buffer.memory_resource.config,
            "shared": True,
        }
        assert (buffer.is_mapped, buffer.memory_resource.is_ipc_enabled) == (False, True)


def test_a_resource_can_be_sent(child: Child, mr: VirtualMemoryResource) -> None:
    child(ipc_child.allocate_from, mr)


def test_a_buffer_is_imported_by_its_descriptor(child: Child, buffer: VirtualMemoryBuffer) -> None:
    assert child(virtual_child.import_by_hand, buffer.ipc_descriptor) == [1]


def test_the_importing_resource_sets_the_rights(child: Child, buffer: VirtualMemoryBuffer) -> None:
    rights = lib.CU_MEM_ACCESS_FLAGS_PROT_READ
    assert child(virtual_child.import_read_only, buffer.ipc_descriptor) == (rights, False)


def test_a_buffer_is_imported_more_than_once(child: Child, buffer: VirtualMemoryBuffer, stream: Stream) -> None:
    assert child(virtual_child.import_twice, buffer.ipc_descriptor) == [[4], [4]]
    assert set(content(buffer, stream)) == {4}


@pytest.mark.parametrize("move", [True, False])
def test_a_buffer_of_several_allocations_is_shared(
    child: Child, mr: VirtualMemoryResource, stream: Stream, move: bool
) -> None:
    with filled(mr, UNIT, 1, stream) as buffer:
        if move:
            with blocked(buffer):
                grown = mr.modify_allocation(buffer, 3 * UNIT)
        else:
            grown = mr.modify_allocation(buffer, 3 * UNIT)
        grown[UNIT:].fill(2, stream=stream)
        stream.sync()
        with grown, grown.ipc_descriptor as descriptor:
            assert (descriptor.size, descriptor.sizes) == (3 * UNIT, (UNIT, 2 * UNIT))
            assert child(virtual_child.import_by_hand, descriptor) == [1, 2, 2]
            assert child(virtual_child.store, grown, STORED) == [1, 2, 2]
        assert content(buffer, stream)[:5] == bytes([STORED, 0, 0, 0, 1])


def test_a_received_buffer_is_not_sent_on(child: Child, buffer: VirtualMemoryBuffer) -> None:
    for sent in (child(virtual_child.send_on, buffer), child(virtual_child.send_on_larger, buffer)):
        assert "memory of another process can be shared only there" in sent


def test_a_received_buffer_grows(child: Child, buffer: VirtualMemoryBuffer, stream: Stream) -> None:
    assert child(virtual_child.grow, buffer, 2 * UNIT) == 2 * UNIT
    assert set(content(buffer, stream)) == {9}


def test_host_memory_is_shared(child: Child, device: Device, stream: Stream) -> None:
    if not device.properties.host_numa_virtual_memory_management_supported:
        pytest.skip("the device does not support virtual host memory")
    with filled(VirtualMemoryResource(device, {"location_type": "host_numa"}), UNIT, 3, stream) as buffer:
        assert child(ipc_child.read_and_fill, buffer, 4) == bytes([3]) * UNIT
        assert bytes(buffer.__buffer__(0)) == bytes([4]) * UNIT


def test_a_child_gets_a_buffer_as_an_argument(buffer: VirtualMemoryBuffer, stream: Stream) -> None:
    process = SPAWN.Process(target=ipc_child.read_and_fill, args=(buffer, 3))
    process.start()
    process.join(LIMIT)
    assert process.exitcode == 0
    process.close()
    assert set(content(buffer, stream)) == {3}


def test_file_descriptors_are_sent_by_the_program_itself(child: Child, buffer: VirtualMemoryBuffer) -> None:
    here, there = socket.socketpair()
    with here, there, buffer.ipc_descriptor as descriptor:
        socket.send_fds(here, [" ".join(map(str, descriptor.sizes)).encode()], descriptor.fds)
        assert child(virtual_child.receive_by_socket, there) == [1]


# --- Lifetimes ----------------------------------------------------------------------------------------------------


def test_memory_lives_on_when_the_process_that_allocated_it_has_ended(
    mr: VirtualMemoryResource, stream: Stream
) -> None:
    with Child() as exporter:
        descriptor = exporter(virtual_child.allocate_and_keep, 8)
        with descriptor, Buffer.from_ipc_descriptor(mr, descriptor) as buffer:
            exporter.kill()
            assert set(content(buffer, stream)) == {8}
            buffer.fill(9, stream=stream)
            assert set(content(buffer, stream)) == {9}


def test_a_descriptor_keeps_the_memory_until_it_is_closed(mr: VirtualMemoryResource, stream: Stream) -> None:
    with filled(mr, UNIT, 6, stream) as buffer:
        descriptor = buffer.ipc_descriptor
    with descriptor, Buffer.from_ipc_descriptor(mr, descriptor) as again:
        assert set(content(again, stream)) == {6}
    with pytest.raises(RuntimeError, match="this IPCAllocationHandle is closed"):
        Buffer.from_ipc_descriptor(mr, descriptor)


def test_each_export_has_file_descriptors_of_its_own(buffer: VirtualMemoryBuffer) -> None:
    before = len(ipc_child.descriptors())
    with buffer.ipc_descriptor as one, buffer.get_ipc_descriptor() as other:
        assert set(one.fds).isdisjoint(other.fds)
        assert not any(os.get_inheritable(fd) for fd in one.fds + other.fds)
        assert len(ipc_child.descriptors()) == before + 2
        assert [handle.handle for handle in one.handles] == list(one.fds)
        assert all(isinstance(handle, IPCAllocationHandle) and handle.uuid is None for handle in one.handles)
        assert (one.handle_type, one.is_closed) == ("posix_fd", False)
    assert (one.is_closed, other.is_closed) == (True, True)
    one.close()
    collect()
    assert len(ipc_child.descriptors()) == before


def test_descriptors_that_are_collected_are_closed(buffer: VirtualMemoryBuffer) -> None:
    before = len(ipc_child.descriptors())
    buffer.get_ipc_descriptor()
    collect()
    assert len(ipc_child.descriptors()) == before


def test_an_exception_at_any_line_of_an_export_or_import_loses_nothing() -> None:
    assert times_interrupted("share") > 5


# --- Refused ------------------------------------------------------------------------------------------------------


def test_a_resource_without_handles_shares_nothing(device: Device, mr: VirtualMemoryResource, stream: Stream) -> None:
    private = VirtualMemoryResource(device, {"handle_type": None})
    assert not private.is_ipc_enabled
    with private.allocate(1, stream) as buffer, filled(mr, 1, 1, stream) as other, other.ipc_descriptor as descriptor:
        with pytest.raises(RuntimeError, match="create it with handle_type='posix_fd'"):
            buffer.ipc_descriptor  # noqa: B018
        with pytest.raises(RuntimeError, match="create it with handle_type='posix_fd'"):
            ForkingPickler.dumps(buffer)
        with pytest.raises(TypeError, match="VirtualMemoryResource cannot be pickled or copied"):
            ForkingPickler.dumps(private)
        with pytest.raises(RuntimeError, match="create it with handle_type='posix_fd'"):
            Buffer.from_ipc_descriptor(private, descriptor)


def test_a_buffer_of_a_tracking_resource_is_not_shared(mr: VirtualMemoryResource, stream: Stream) -> None:
    with TrackingMemoryResource(mr).allocate(1, stream) as buffer:
        for share in (buffer.get_ipc_descriptor, lambda: ForkingPickler.dumps(buffer)):
            with pytest.raises(RuntimeError, match="not from a TrackingMemoryResource"):
                share()


def test_only_open_buffers_with_memory_are_exported(mr: VirtualMemoryResource, stream: Stream) -> None:
    with mr.allocate(0, stream) as empty, pytest.raises(ValueError, match="0 bytes has no memory to share"):
        empty.get_ipc_descriptor()
    buffer = mr.allocate(1, stream)
    with pytest.raises(ValueError, match="a slice has no descriptor"):
        buffer[:16].get_ipc_descriptor()
    buffer.close()
    with pytest.raises(RuntimeError, match="this VirtualMemoryBuffer is closed"):
        buffer.get_ipc_descriptor()


def test_plain_pickle_and_copy_are_refused(buffer: VirtualMemoryBuffer) -> None:
    with buffer.ipc_descriptor as descriptor:
        for item in (buffer, buffer.memory_resource, descriptor, buffer[:8]):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                pickle.dumps(item)
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                copy.copy(item)


def test_descriptors_and_resources_of_other_kinds_are_refused(
    buffer: VirtualMemoryBuffer, mr: VirtualMemoryResource, device: Device, stream: Stream
) -> None:
    pool = DeviceMemoryResource(device, {"ipc_enabled": True})
    text = r"must be a VirtualMemoryIPCBufferDescriptor .*, not IPCBufferDescriptor"
    with pool.allocate(64, stream) as pooled, pytest.raises(TypeError, match=text):
        Buffer.from_ipc_descriptor(mr, pooled.ipc_descriptor)
    with buffer.ipc_descriptor as descriptor:
        with pytest.raises(TypeError, match="must be an IPCBufferDescriptor, not VirtualMemoryIPCBufferDescriptor"):
            Buffer.from_ipc_descriptor(pool, descriptor)
        with pytest.raises(TypeError, match="or a VirtualMemoryResource, not Device"):
            Buffer.from_ipc_descriptor(device, descriptor)  # type: ignore[arg-type]
    pool.close()


@pytest.mark.parametrize(
    ("fds", "sizes", "size", "error", "message"),
    [
        ([], [], None, ValueError, "at least one file descriptor"),
        (["own"], [], None, ValueError, "each file descriptor needs a size"),
        (["own"], [UNIT, UNIT], None, ValueError, "1 file descriptors and 2 sizes"),
        (["own"], [0], None, ValueError, "must be positive"),
        (["own"], [UNIT], UNIT + 1, ValueError, "size 1 to their sum"),
        (["own"], [UNIT], 0, ValueError, "size 1 to their sum"),
        (["own"], [-1], None, ValueError, "must not be negative"),
        (["own", "own"], [2**63, 2**63], None, OverflowError, "less than 2.*64 bytes"),
        (["own", "own"], [2**63, 2**63], 1, ValueError, "1 to their sum"),
        (["own"], ["1"], None, TypeError, "size"),
        (["1"], [UNIT], None, TypeError, "an int or an IPCAllocationHandle, not str"),
        ([987], [UNIT], None, ValueError, "987 is not an open file descriptor"),
        ([-1], [UNIT], None, ValueError, "0 to 2"),
    ],
)
def test_what_makes_no_descriptor_is_refused(
    buffer: VirtualMemoryBuffer, fds: list[Any], sizes: list[Any], size: Any, error: type[Exception], message: str
) -> None:
    with buffer.ipc_descriptor as descriptor:
        numbers = [descriptor.fds[0] if fd == "own" else fd for fd in fds]
        with pytest.raises(error, match=message):
            VirtualMemoryIPCBufferDescriptor.from_fds(numbers, sizes, size=size)
    with pytest.raises(RuntimeError, match="cannot be constructed directly"):
        VirtualMemoryIPCBufferDescriptor()


def test_file_descriptors_given_stay_the_callers(buffer: VirtualMemoryBuffer, mr: VirtualMemoryResource) -> None:
    with buffer.ipc_descriptor as descriptor:
        made = VirtualMemoryIPCBufferDescriptor.from_fds(descriptor.fds, descriptor.sizes, size=100)
        with made, Buffer.from_ipc_descriptor(mr, made) as part:
            assert part.size == 100
        assert not descriptor.is_closed
        os.fstat(descriptor.fds[0])


@pytest.mark.parametrize("sizes", [(2 * UNIT,), (4096,)])
def test_sizes_that_are_not_those_of_the_memory_are_refused(
    buffer: VirtualMemoryBuffer, mr: VirtualMemoryResource, sizes: tuple[int, ...]
) -> None:
    with (
        buffer.ipc_descriptor as descriptor,
        VirtualMemoryIPCBufferDescriptor.from_fds(descriptor.fds, sizes) as forged,
        pytest.raises((CUDAError, ValueError)),
    ):
        Buffer.from_ipc_descriptor(mr, forged)


@pytest.mark.simulator_only("a real driver may crash on a file that is no memory")
def test_a_file_that_is_no_memory_is_refused(mr: VirtualMemoryResource) -> None:
    with (
        open(os.devnull) as file,
        VirtualMemoryIPCBufferDescriptor.from_fds([file.fileno()], [UNIT]) as forged,
        pytest.raises(CUDAError, match="cuMemImportFromShareableHandle"),
    ):
        Buffer.from_ipc_descriptor(mr, forged)


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize(
    ("call", "nth"),
    [
        ("cuMemRetainAllocationHandle", 1), ("cuMemRetainAllocationHandle", 2),
        ("cuMemExportToShareableHandle", 1), ("cuMemExportToShareableHandle", 2),
    ],
)  # fmt: skip
def test_an_export_that_fails_leaves_no_file_descriptor(
    mr: VirtualMemoryResource, buffer: VirtualMemoryBuffer, call: str, nth: int
) -> None:
    with mr.modify_allocation(buffer, 2 * UNIT) as grown:
        before = ipc_child.descriptors()
        with simulator.fail(call, "CUDA_ERROR_UNKNOWN", nth), pytest.raises(CUDAError, match=call):
            grown.get_ipc_descriptor()
        collect()
        assert ipc_child.descriptors() == before


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize(
    ("call", "nth"),
    [
        ("cuMemAddressReserve", 1), ("cuMemImportFromShareableHandle", 2), ("cuMemMap", 2), ("cuMemSetAccess", 2),
        ("cuPointerGetAttribute", 1), ("cuPointerGetAttribute", 4),
    ],
)  # fmt: skip
def test_an_import_that_fails_leaves_nothing(
    mr: VirtualMemoryResource, buffer: VirtualMemoryBuffer, call: str, nth: int
) -> None:
    with mr.modify_allocation(buffer, 2 * UNIT) as grown, grown.ipc_descriptor as descriptor:
        before = simulator.live()["physical allocations"], simulator.live()["address reservations"]
        with simulator.fail(call, "CUDA_ERROR_UNKNOWN", nth), pytest.raises(CUDAError, match=call):
            Buffer.from_ipc_descriptor(mr, descriptor)
        assert (simulator.live()["physical allocations"], simulator.live()["address reservations"]) == before
        Buffer.from_ipc_descriptor(mr, descriptor).close()


# --- Several devices ----------------------------------------------------------------------------------------------

TWO_DEVICES = """
    import sys
    sys.path.insert(0, sys.argv[1])

    def main():
        import virtual_child
        from buffers import content
        from ipc_child import Child, ChildError
        from cuda_core_cffi import Device, VirtualMemoryResource
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        with Child() as child, VirtualMemoryResource(device, {"peers": [1]}).allocate(1, stream) as buffer:
            buffer.fill(1, stream=stream)
            stream.sync()
            print(child(virtual_child.use_from_two_devices, buffer), list(content(buffer, stream)[:5]))
            try:
                child(virtual_child.import_on_another_device, buffer.ipc_descriptor)
            except ChildError as error:
                print(error)

    main()
"""


def test_another_device_of_another_process_uses_the_memory(is_simulated: bool) -> None:
    if not is_simulated and (len(Device.get_all_devices()) < 2 or not Device(0).can_access_peer(1)):
        pytest.skip("needs two GPUs that can access each other")
    first, second = output_of(TWO_DEVICES, str(SUPPORT), CUDA_SIM_DEVICES="2").splitlines()
    assert first == "[1] [6, 0, 0, 0, 1]"
    assert second.startswith("ValueError: the memory is on device 0, which is not where")
