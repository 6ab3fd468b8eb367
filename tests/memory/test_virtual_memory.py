# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory: resources, their options, and the life of a buffer."""

from __future__ import annotations

import gc
import os
import types

import pytest
from buffers import ForeignStream, content, write
from helpers import Gate, alive, opened_before, output_of, soon
from virtual_memory import UNIT, access, blocked, free, raw_allocation, reserve, roomy

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    MemoryResource,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    ffi,
    lib,
)

pytestmark = pytest.mark.usefixtures("no_virtual_memory_left")

DEVICE = lib.CU_MEM_LOCATION_TYPE_DEVICE
NOTHING = lib.CU_MEM_ACCESS_FLAGS_PROT_NONE


@pytest.fixture
def mr(device) -> VirtualMemoryResource:
    """Return a resource whose first buffer can grow where it is, if the driver follows hints."""
    return roomy(device)


# --- What a resource is ---------------------------------------------------------------------------------------


def test_a_resource_says_what_it_is(device):
    for mr in (VirtualMemoryResource(0), VirtualMemoryResource(device, VirtualMemoryResourceOptions())):
        assert isinstance(mr, MemoryResource)
        assert (mr.device_id, mr.is_device_accessible, mr.is_host_accessible, mr.is_managed) == (0, True, False, False)
        assert repr(mr) == "<VirtualMemoryResource device=0 location='device' granularity=2097152>"


def test_options_are_a_dataclass_with_plain_defaults():
    options = VirtualMemoryResourceOptions()
    assert (options.allocation_type, options.location_type, options.handle_type) == ("pinned", "device", "posix_fd")
    assert (options.granularity, options.gpu_direct_rdma, options.addr_hint) == ("recommended", False, 0)
    assert (options.addr_align, options.peers, options.self_access, options.peer_access) == (None, (), "rw", "rw")


@pytest.mark.parametrize("wrong", [-1, 99])
def test_a_resource_is_of_a_device_that_exists(wrong):
    with pytest.raises(ValueError, match="device_id"):
        VirtualMemoryResource(wrong)


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("allocation_type", "loose", ValueError),
        ("location_type", "moon", ValueError),
        ("location_type", None, ValueError),
        ("handle_type", "pigeon", ValueError),
        ("granularity", 4096, ValueError),
        ("self_access", "x", ValueError),
        ("peer_access", "", ValueError),
        ("gpu_direct_rdma", 1, TypeError),
        ("addr_hint", "0x1000", TypeError),
        ("addr_hint", -UNIT, ValueError),
        ("addr_hint", 2**64, ValueError),
        ("addr_hint", 4096, ValueError),
        ("addr_align", 3, ValueError),
        ("addr_align", 1.0, TypeError),
        ("addr_align", True, TypeError),
        ("peers", 1, TypeError),
        ("peers", "01", TypeError),
        ("peers", [99], ValueError),
        ("peers", ["0"], TypeError),
    ],
)
def test_a_wrong_option_is_refused_with_its_value(option, value, error):
    with pytest.raises(error) as caught:
        VirtualMemoryResource(0, {option: value})
    name = "device_id" if isinstance(value, list) else option
    assert name in str(caught.value)


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="did you mean 'addr_align'"):
        VirtualMemoryResource(0, {"addr_aling": UNIT})


def test_windows_handles_are_refused():
    with pytest.raises(NotImplementedError, match="win32"):
        VirtualMemoryResource(0, {"handle_type": "win32"})
    with pytest.raises(RuntimeError, match="win32_kmt"):
        VirtualMemoryResource(0, {"handle_type": "win32_kmt"})


def test_memory_of_the_host_as_a_whole_cannot_be_shared():
    with pytest.raises(ValueError, match="handle_type must be None"):
        VirtualMemoryResource(0, {"location_type": "host"})


def test_options_that_change_later_change_nothing(device):
    options = VirtualMemoryResourceOptions(peers=iter([0]))
    mr = VirtualMemoryResource(device, options)
    options.location_type = "moon"
    with mr.allocate(1) as buffer:
        mr.modify_allocation(buffer, 2 * UNIT).close()


@pytest.mark.parametrize(
    ("lacking", "options", "match"),
    [
        ("virtual_memory_management_supported", {}, "virtual memory management"),
        ("gpu_direct_rdma_with_cuda_vmm_supported", {"gpu_direct_rdma": True}, "GPUDirect RDMA"),
        ("handle_type_posix_file_descriptor_supported", {}, "'posix_fd'"),
        ("handle_type_fabric_supported", {"handle_type": "fabric"}, "'fabric'"),
        ("host_numa_virtual_memory_management_supported", {"location_type": "host_numa"}, "'host_numa'"),
        ("host_virtual_memory_management_supported", {"location_type": "host", "handle_type": None}, "'host'"),
    ],
)
def test_what_a_device_does_not_support_is_a_runtime_error(device, monkeypatch, lacking, options, match):
    known = {name: True for name in dir(type(device.properties)) if name.endswith("_supported")}
    monkeypatch.setattr(device, "_properties", types.SimpleNamespace(**{**known, lacking: False}))
    with pytest.raises(RuntimeError, match=match):
        VirtualMemoryResource(device, options)


@pytest.mark.simulator_only("a real driver has one version")
def test_older_drivers_have_virtual_memory_but_none_of_the_host_as_a_whole():
    code = """
        from cuda_core_cffi import Device, VirtualMemoryResource
        device = Device(0)
        device.set_current()
        mr = VirtualMemoryResource(device)
        with mr.allocate(1) as buffer:
            buffer = mr.modify_allocation(buffer, 4 << 20)
            buffer.fill(1, stream=device.default_stream)
            device.sync()
            print(buffer.size)
            buffer.close()
        try:
            VirtualMemoryResource(device, {"location_type": "host", "handle_type": None})
        except RuntimeError as error:
            print(error)
    """
    printed = output_of(code, CUDA_SIM_DRIVER_VERSION="12040").splitlines()
    assert printed == ["4194304", "device 0 does not support virtual memory of location 'host'"]


# --- Allocation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "given"), [(1, UNIT), (UNIT, UNIT), (UNIT + 1, 2 * UNIT), (5 * UNIT - 1, 5 * UNIT)])
@pytest.mark.parametrize("granularity", ["minimum", "recommended"])
def test_sizes_round_up_to_the_granularity(device, asked, given, granularity):
    mr = VirtualMemoryResource(device, {"granularity": granularity})
    with mr.allocate(asked) as buffer:
        assert buffer.size == given
        assert buffer.memory_resource is mr
        assert (buffer.device_id, buffer.is_device_accessible, buffer.is_host_accessible) == (0, True, False)


@pytest.mark.parametrize("how", ["positional", "keyword", "none", "absent"])
def test_the_stream_is_optional(stream, mr, how):
    before = alive()["buffer"]
    buffer = {
        "positional": lambda: mr.allocate(1, stream),
        "keyword": lambda: mr.allocate(1, stream=stream),
        "none": lambda: mr.allocate(1, stream=None),
        "absent": lambda: mr.allocate(1),
    }[how]()
    buffer.fill(3, stream=stream)
    assert set(content(buffer, stream)) == {3}
    buffer.close()
    assert buffer.is_closed
    assert alive()["buffer"] == before


def test_memory_is_usable_at_once_in_every_stream(device, stream, mr):
    with device.create_stream() as other, mr.allocate(1, stream) as buffer, Gate(stream):
        buffer.fill(1, stream=other)
        other.sync()


def test_the_stream_of_another_library_is_kept(device, mr):
    with device.create_stream() as stream, mr.allocate(1, ForeignStream(stream)) as buffer:
        buffer.fill(1, stream=stream)


@pytest.mark.parametrize("wrong", [1, "stream"])
def test_a_stream_that_is_none_is_a_type_error(mr, wrong):
    with pytest.raises(TypeError, match="needs a Stream"):
        mr.allocate(1, wrong)
    with pytest.raises(TypeError, match="needs a Stream"):
        mr.deallocate(0, 1, wrong)


def test_a_closed_stream_leaks_nothing(device, mr):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(RuntimeError, match="Stream is closed"):
        mr.allocate(1, stream)


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ValueError), (1.5, TypeError), ("1", TypeError), (None, TypeError), (2**64, OverflowError),
     (2**64 - 1, OverflowError), (2**64 - UNIT, CUDAError), (2**62, CUDAError), (1 << 48, CUDAError)],
)  # fmt: skip
def test_a_size_that_cannot_be_leaves_nothing_behind(stream, mr, size, error):
    with pytest.raises(error):
        mr.allocate(size, stream)
    with mr.allocate(1, stream) as buffer:
        address = buffer.handle
        with pytest.raises(error):
            mr.modify_allocation(buffer, size)
        assert (buffer.handle, buffer.size) == (address, UNIT)
        buffer.fill(1, stream=stream)
        stream.sync()


def test_a_buffer_without_memory_may_get_some(stream, mr):
    with mr.allocate(0, stream) as buffer:
        assert (buffer.size, buffer.handle) == (0, 0)
        assert mr.modify_allocation(buffer, 0) is buffer
        with mr.modify_allocation(buffer, 1) as grown:
            assert (buffer.size, buffer.handle, grown.size) == (0, 0, UNIT)
            grown.fill(9, stream=stream)
            assert set(content(grown, stream)) == {9}


def test_a_hint_is_where_the_buffer_starts(device):
    found = []
    for _ in range(5):  # another thread, the driver's own too, may take the addresses meanwhile
        address = reserve(4 * UNIT)
        free(address, 4 * UNIT)
        with VirtualMemoryResource(device, {"addr_hint": address}).allocate(1) as buffer:
            found.append((address, buffer.handle))
    assert any(address == handle for address, handle in found)


@pytest.mark.parametrize("alignment", [1, 4096, UNIT, 1 << 30])
def test_an_alignment_is_kept_also_by_a_buffer_that_moves(device, stream, alignment):
    mr = VirtualMemoryResource(device, {"addr_align": alignment})
    with mr.allocate(1, stream) as buffer:
        assert buffer.handle % max(alignment, UNIT) == 0
        with blocked(buffer):
            grown = mr.modify_allocation(buffer, 2 * UNIT)
        with grown:
            assert grown.handle % max(alignment, UNIT) == 0


@pytest.mark.parametrize("rdma", [False, True])
def test_memory_for_other_hardware_says_so(device, rdma):
    if not device.properties.gpu_direct_rdma_with_cuda_vmm_supported:
        pytest.skip("the device does not support GPUDirect RDMA with virtual memory")
    with VirtualMemoryResource(device, {"gpu_direct_rdma": rdma}).allocate(1) as buffer:
        handle, properties = ffi.new("CUmemGenericAllocationHandle *"), ffi.new("CUmemAllocationProp *")
        assert lib.cuMemRetainAllocationHandle(handle, ffi.cast("void *", buffer.handle)) == 0
        assert lib.cuMemGetAllocationPropertiesFromHandle(properties, handle[0]) == 0
        assert lib.cuMemRelease(handle[0]) == 0
        assert bool(properties.allocFlags.gpuDirectRDMACapable) == rdma


@pytest.mark.parametrize(("handle_type", "shareable"), [("posix_fd", True), (None, False)])
def test_memory_is_shareable_if_asked_for(device, handle_type, shareable):
    with VirtualMemoryResource(device, {"handle_type": handle_type}).allocate(1) as buffer:
        handle, file = ffi.new("CUmemGenericAllocationHandle *"), ffi.new("int *")
        assert lib.cuMemRetainAllocationHandle(handle, ffi.cast("void *", buffer.handle)) == 0
        status = lib.cuMemExportToShareableHandle(file, handle[0], lib.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
        assert lib.cuMemRelease(handle[0]) == 0
        assert (status == 0) == shareable
        if shareable:
            os.close(file[0])


def test_drivers_refuse_managed_memory_and_nothing_is_left(device):
    mr = VirtualMemoryResource(device, {"allocation_type": "managed"})
    with pytest.raises(CUDAError, match="cuMemCreate"):
        mr.allocate(1)


def test_copies_go_both_ways_and_a_new_destination_is_of_the_same_resource(stream, mr):
    data = os.urandom(UNIT)
    with mr.allocate(UNIT, stream) as buffer:
        write(buffer, data, stream)
        with buffer.copy_to(stream=stream) as copy:
            assert copy.memory_resource is mr
            assert content(copy, stream) == data


def test_a_device_may_have_it_as_its_own_resource(device, stream):
    before = device.memory_resource
    device.memory_resource = VirtualMemoryResource(device)
    try:
        with device.allocate(10, stream) as buffer:
            assert buffer.size == UNIT
    finally:
        device.memory_resource = before


# --- The end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["allocation", "close", "nowhere"])
def test_closing_waits_for_the_work_that_may_use_the_memory(device, mr, given):
    with device.create_stream() as stream:
        buffer = mr.allocate(1, stream if given == "allocation" else None)
        with Gate(stream) as gate:
            buffer.fill(1, stream=stream)
            opened_before(gate, lambda: buffer.close(stream) if given == "close" else buffer.close())


def test_buffers_that_are_collected_give_their_memory_back(stream, mr):
    before = alive()["buffer"]
    buffers = [mr.allocate(1, stream)]
    with blocked(buffers[0]):
        buffers.append(mr.modify_allocation(buffers[0], 2 * UNIT))
    buffers.append(mr.modify_allocation(buffers[1], 3 * UNIT))
    buffers.clear()
    for _ in range(3):
        gc.collect()
    assert alive()["buffer"] == before


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("given", ["allocation", "close", "builder"])
def test_closing_in_a_stream_that_is_captured_is_refused_and_changes_nothing(device, mr, mode, given):
    with device.create_stream() as stream, device.create_stream() as other:
        buffer = mr.allocate(1, stream if given == "allocation" else other)
        with stream.create_graph_builder() as builder:
            queue = {"allocation": None, "close": stream, "builder": builder}[given]
            builder.begin_building(mode)
            with pytest.raises(RuntimeError, match="close the buffer when the capture of its stream has ended"):
                buffer.close(queue)
            assert not buffer.is_closed
            builder.end_building()  # raises if the capture was invalidated
        with Gate(stream if given == "allocation" else other) as gate:
            opened_before(gate, buffer.close)  # which waits for the stream that it had
        assert buffer.is_closed
        buffer.close()


def test_a_buffer_is_closed_in_another_stream_while_its_own_is_captured(device, mr):
    with device.create_stream() as stream, device.create_stream() as other, stream.create_graph_builder() as builder:
        buffer = mr.allocate(1, stream)
        builder.begin_building()
        with pytest.raises(RuntimeError, match="pass close\\(\\) a stream that is not being captured"), buffer:
            pass
        buffer.close(other)
        assert buffer.is_closed
        builder.end_building()


@pytest.mark.parametrize("given", ["default stream", "no stream"])
def test_without_a_stream_of_its_own_a_buffer_is_closed_when_the_capture_has_ended(device, mr, given):
    before = alive()["buffer"]
    with device.create_stream() as stream, stream.create_graph_builder() as builder:
        buffer = mr.allocate(1, device.default_stream if given == "default stream" else None)
        builder.begin_building("relaxed")
        buffer.close()
        assert buffer.is_closed
        builder.end_building()
    assert soon(lambda: alive()["buffer"] == before)


def test_a_buffer_outlives_its_resource(device, stream):
    buffer = VirtualMemoryResource(device).allocate(1, stream)
    gc.collect()
    buffer.fill(1, stream=stream)
    buffer.memory_resource.modify_allocation(buffer, 2 * UNIT).close()
    buffer.close()
    buffer.close()


def test_a_buffer_that_is_open_at_exit_is_no_trouble():
    code = """
        from cuda_core_cffi import Device, VirtualMemoryResource
        Device(0).set_current()
        mr = VirtualMemoryResource(0)
        buffer = mr.modify_allocation(mr.allocate(1), 3 << 20)
        print(buffer.size)
    """
    assert output_of(code) == "4194304"


@pytest.mark.parametrize("wait", [True, False], ids=["stream", "no stream"])
def test_deallocate_takes_addresses_and_waits(device, mr, wait):
    address = raw_allocation(0, 3 * UNIT, (UNIT, 2 * UNIT))
    with device.create_stream() as stream, Gate(stream) as gate:
        opened_before(gate, lambda: mr.deallocate(address, 3 * UNIT, stream if wait else None))
    again = reserve(3 * UNIT, address)  # the addresses are free
    free(again, 3 * UNIT)


@pytest.mark.parametrize("ptr", [None, 0])
def test_the_null_pointer_goes_back_nowhere(mr, ptr):
    mr.deallocate(ptr, 0)


@pytest.mark.parametrize(("offset", "size"), [(0, UNIT), (UNIT, 2 * UNIT), (0, 4 * UNIT), (UNIT, UNIT)])
def test_deallocate_takes_whole_reservations_or_nothing(mr, offset, size):
    address = raw_allocation(0, 3 * UNIT, (UNIT, 2 * UNIT))
    with pytest.raises(CUDAError):
        mr.deallocate(address + offset, size)
    assert access(address, DEVICE, 0) == access(address + UNIT, DEVICE, 0) == NOTHING, "all is mapped still"
    mr.deallocate(ffi.cast("void *", address), 3 * UNIT)


def test_memory_of_others_goes_back_through_the_resource(mr, stream):
    address = raw_allocation(0, UNIT)
    buffer = Buffer.from_handle(address, UNIT, mr=mr, stream=stream)
    with pytest.raises(ValueError, match="not allocated by this resource"):
        mr.modify_allocation(buffer, 2 * UNIT)
    buffer.close()
