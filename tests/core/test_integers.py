# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What is taken for an integer, a handle or an address, and what is not although it converts to int."""

from __future__ import annotations

import enum
import types
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuda_core_cffi import (
    AccessPolicyWindow,
    Buffer,
    Device,
    Kernel,
    LaunchConfig,
    Stream,
    driver,
    ffi,
)
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.utils import StridedMemoryView

SIZE = 64


class Color(enum.IntEnum):
    """An enumeration of the program's own."""

    RED = 1


class OneElement:
    """An array of one element on a device, as other libraries have them: it converts to the element."""

    __cuda_array_interface__: Any = None

    def __index__(self) -> int:
        return 4096

    __int__ = __index__


class Pointer:
    """An address of another library, which converts to int."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __int__(self) -> int:
        return self.address


def binding(name: str, value: int) -> Any:
    """Return an object of a class with the name of one of cuda-bindings, and its conversions."""
    made = types.new_class(name)
    made.__module__ = "cuda.bindings.driver"
    made.__int__ = made.__index__ = lambda self: value
    return made()


COUNTS: dict[str, Callable[[Any, GraphDefinition, Buffer], Any]] = {
    "size": lambda value, graph, buffer: Device(0).allocate(value),
    "grid": lambda value, graph, buffer: LaunchConfig(grid=value, block=1),
    "block": lambda value, graph, buffer: LaunchConfig(grid=1, block=(value, 1)),
    "shmem_size": lambda value, graph, buffer: LaunchConfig(grid=1, block=1, shmem_size=value),
    "carveout": lambda value, graph, buffer: LaunchConfig(grid=1, block=1, preferred_shared_memory_carveout=value),
    "condition": lambda value, graph, buffer: graph.create_condition(value),
    "memset width": lambda value, graph, buffer: graph.memset(buffer, 1, value),
    "memset pitch": lambda value, graph, buffer: graph.memset(buffer, 1, 1, 1, value),
    "graph allocation": lambda value, graph, buffer: graph.allocate(value),
    "layout": lambda value, graph, buffer: StridedMemoryView.from_buffer(buffer, (value,), itemsize=1),
    "device": lambda value, graph, buffer: Device(value),
}
NO_COUNT = {
    "an array of elements": lambda: np.array([1, 1]),
    "a float": lambda: 1.0,
    "text": lambda: "1",
    "NumPy's text": lambda: np.str_("1"),
    "NumPy's bool": lambda: np.True_,
    "a handle of the driver module": lambda: driver.CUstream(1),
    "a handle of cuda-bindings": lambda: binding("CUstream", 1),
    "a function of cuda-bindings": lambda: binding("CUhostFn", 1),
    "a UUID": lambda: uuid.UUID(int=1),
}


@pytest.mark.parametrize("make", NO_COUNT.values(), ids=NO_COUNT)
@pytest.mark.parametrize("use", COUNTS.values(), ids=COUNTS)
def test_what_is_no_integer_is_no_count(device, stream, graph, use, make):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(TypeError, match=r"must be an int|must be an address"):
        use(make(), graph, buffer)


@pytest.mark.parametrize("use", [use for name, use in COUNTS.items() if name != "device"])
def test_a_device_is_no_count(device, stream, graph, use):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(TypeError, match=r"must be an int.*Device"):
        use(device, graph, buffer)


@pytest.mark.parametrize("value", [np.int64(4), np.array(4), np.uint8(4), Color(1)])
def test_integers_of_other_types_are_counts(device, stream, graph, value):
    with device.allocate(value, stream) as buffer:
        assert buffer.size == int(value)
    assert LaunchConfig(grid=value, block=1).grid == (int(value), 1, 1)


def test_a_device_is_found_by_a_typed_ordinal(device):
    assert Device(driver.CUdevice(0)) is device
    assert Device(binding("CUdevice", 0)) is device


# Handles and addresses


WRONG_ADDRESSES = {
    "a bool": lambda stream: True,
    "NumPy's bool": lambda stream: np.True_,
    "text": lambda stream: "4096",
    "NumPy's text": lambda stream: np.str_("4096"),
    "a date": lambda stream: np.datetime64(4096, "s"),
    "a float": lambda stream: 4096.0,
    "an enumeration": lambda stream: Color.RED,
    "a device": lambda stream: Device(0),
    "a configuration": lambda stream: LaunchConfig(grid=1, block=1),
    "an array": lambda stream: np.array(4096),
    "an array of one element": lambda stream: np.array([4096]),
    "an array of another library": lambda stream: OneElement(),
    "an event": lambda stream: driver.CUevent(4096),
    "a CFFI event": lambda stream: ffi.cast("CUevent", 4096),
    "a CFFI float": lambda stream: ffi.cast("double", 4096),
    "a CFFI structure": lambda stream: ffi.new("CUmemLocation *")[0],
    "an event of cuda-bindings": lambda stream: binding("CUevent", 4096),
    "a function of cuda-bindings": lambda stream: binding("CUoccupancyB2DSize", 4096),
}
TAKERS: dict[str, Callable[[Any], Any]] = {
    "stream": Stream.from_handle,
    "kernel": Kernel.from_handle,
    "buffer": lambda address: Buffer.from_handle(address, SIZE),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize("make", WRONG_ADDRESSES.values(), ids=WRONG_ADDRESSES)
def test_what_is_no_handle_of_its_kind_is_refused(stream, take, make):
    with pytest.raises(TypeError, match="handle must be an int or a CFFI pointer"):
        take(make(stream))


def test_handles_of_their_kind_are_taken(stream):
    for name in ("CUstream", "cudaStream_t"):
        assert Stream.from_handle(binding(name, stream.handle)) == stream
    assert Stream.from_handle(driver.CUstream(stream.handle)) == stream
    for address in (
        4096, np.uint64(4096), driver.CUdeviceptr(4096), binding("CUdeviceptr", 4096), Pointer(4096),
        ffi.cast("void *", 4096), ffi.cast("CUdeviceptr", 4096), ffi.cast("float *", 4096),
    ):  # fmt: skip
        assert Buffer.from_handle(address, SIZE).handle == 4096
    with pytest.raises(TypeError, match="not CUdeviceptr"):
        Stream.from_handle(driver.CUdeviceptr(4096))
    with pytest.raises(TypeError, match="not CUstream"):
        Buffer.from_handle(binding("CUstream", 4096), SIZE)
    assert Stream.from_handle(stream.cdata) == stream


def test_an_object_with_the_protocol_gives_a_stream(device):
    class Wrong:
        def __cuda_stream__(self) -> tuple[int, Any]:
            return (0, True)

    with pytest.raises(TypeError, match="handle must be an int"):
        device.create_stream(Wrong())


@pytest.mark.parametrize("wrong", [True, Device, LaunchConfig(grid=1, block=1), driver.CUevent(1)])
def test_the_stream_of_a_consumer_is_a_stream(device, stream, wrong):
    with device.allocate(SIZE, stream) as buffer:
        for read in (StridedMemoryView.from_dlpack, StridedMemoryView.from_cuda_array_interface):
            with pytest.raises(TypeError, match="handle must be an int"):
                read(buffer, wrong)


def test_an_array_interface_is_a_dictionary(stream):
    with pytest.raises(BufferError, match="__cuda_array_interface__ of OneElement is no dict, but None"):
        StridedMemoryView.from_cuda_array_interface(OneElement(), stream.handle)


# Where a device, a configuration or a number is wanted


def test_attributes_of_a_kernel_are_those_of_devices_alone(device, stream, store):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(TypeError, match="device must be an int, not Buffer"):
        store.attributes[buffer]


def test_clusters_are_those_of_a_configuration_alone(device, stream, store):
    class Native:
        _native = ffi.new("int *")

    for wrong in (Native(), None, {"grid": 1}):
        with pytest.raises(TypeError, match="config must be a LaunchConfig"):
            store.occupancy.max_active_clusters(wrong, stream=stream)


@pytest.mark.parametrize("ratio", [np.str_("0.5"), "0.5", True, None])
def test_a_hit_ratio_is_a_number(device, stream, ratio):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(TypeError, match="hit_ratio must be a float"):
        AccessPolicyWindow(buffer, ratio)


def test_an_array_as_user_data_is_copied_and_no_address(stream):
    seen = []

    @ffi.callback("void(*)(void *)")
    def note(data):
        seen.append(bytes(ffi.buffer(ffi.cast("char *", data), 4)))

    for data in (np.frombuffer(b"abcd", np.uint8), np.array(0x64636261, np.uint32), np.array([0x64636261], np.uint32)):
        stream.callback(note, user_data=data)
        stream.sync()
    assert seen == [b"abcd"] * 3


# The driver module


def test_the_driver_module_refuses_objects_of_another_kind(device, stream):
    with device.create_event() as event, device.allocate(SIZE, stream) as buffer:
        for wrong in (event, driver.CUevent(event.handle), driver.CUdeviceptr(buffer.handle), buffer, True, device):
            with pytest.raises(TypeError, match="cuStreamSynchronize: hStream: expected struct CUstream_st"):
                driver.cuStreamSynchronize(wrong)
        for right in (stream, driver.CUstream(stream.handle), stream.handle, stream.cdata):
            assert driver.cuStreamSynchronize(right) == (driver.CUresult.CUDA_SUCCESS,)
        with pytest.raises(TypeError, match=r"cuMemsetD8: dstDevice: .* not Event"):
            driver.cuMemsetD8(event, 0, 1)
        with pytest.raises(TypeError, match=r"cuMemcpyHtoD: srcHost: .* not Device"):
            driver.cuMemcpyHtoD(buffer, device, 0)


def test_the_driver_module_takes_a_kernel_for_a_function(store):
    for kernel in (store, driver.CUkernel(store.handle)):
        error, blocks = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel, 32, 0)
        assert (error, blocks) == (
            driver.CUresult.CUDA_SUCCESS,
            store.occupancy.max_active_blocks_per_multiprocessor(32, 0),
        )


def test_the_driver_module_refuses_what_is_closed(device):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(RuntimeError, match="cuStreamSynchronize: hStream: this Stream is closed"):
        driver.cuStreamSynchronize(stream)


@pytest.mark.parametrize("wrong", [{1, 2}, {1: 2}, frozenset([1])])
def test_an_array_has_an_order(wrong):
    with pytest.raises(TypeError, match="expected a sequence"):
        driver.cuMemcpyBatchAsync(wrong, [1, 2], [1, 1], 2, [], [], 0, 0)
