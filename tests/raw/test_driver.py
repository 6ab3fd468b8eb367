# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""``cuda_core_cffi.driver``: the driver API, function by function."""

from __future__ import annotations

import array
import copy
import enum
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import numpy
import pytest

from cuda_core_cffi import driver
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._raw import convert as convert

SUCCESS = driver.CUresult.CUDA_SUCCESS
SIZE = 1024


@pytest.fixture(scope="module")
def device() -> int:
    """Return the first device."""
    (err,) = driver.cuInit(0)
    assert err == SUCCESS
    err, device = driver.cuDeviceGet(0)
    assert err == SUCCESS
    return device


@pytest.fixture
def context(device: int) -> Iterator[driver.CUcontext]:
    """Return the primary context of the first device, current."""
    err, context = driver.cuDevicePrimaryCtxRetain(device)
    assert err == SUCCESS
    driver.cuCtxPushCurrent(context)
    yield context
    driver.cuCtxPopCurrent()
    driver.cuDevicePrimaryCtxRelease(device)


@pytest.fixture
def memory(context: driver.CUcontext) -> Iterator[driver.CUdeviceptr]:
    """Return the address of :data:`SIZE` bytes of device memory."""
    err, address = driver.cuMemAlloc(SIZE)
    assert err == SUCCESS
    yield address
    driver.cuMemFree(address)


@pytest.fixture
def stream(context: driver.CUcontext) -> Iterator[driver.CUstream]:
    """Return a stream."""
    err, stream = driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
    assert err == SUCCESS
    yield stream
    driver.cuStreamDestroy(stream)


@pytest.fixture
def pool(device: int, context: driver.CUcontext) -> Iterator[driver.CUmemoryPool]:
    """Return a memory pool on the device."""
    properties = driver.CUmemPoolProps(allocType=driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED)
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = device
    err, pool = driver.cuMemPoolCreate(properties)
    assert err == SUCCESS
    yield pool
    driver.cuMemPoolDestroy(pool)


class Owner:
    """Something with a handle."""

    def __init__(self, handle: int) -> None:
        self.handle = handle


class TestCalls:
    def test_status_comes_first(self) -> None:
        err, version = driver.cuDriverGetVersion()
        assert err is SUCCESS
        assert version >= 12000

    def test_without_outputs_there_is_only_the_status(self, context: driver.CUcontext) -> None:
        assert driver.cuCtxSynchronize() == (SUCCESS,)

    def test_outputs_are_none_on_an_error(self, device: int) -> None:
        err, found = driver.cuDeviceGet(10_000)
        assert err is driver.CUresult.CUDA_ERROR_INVALID_DEVICE
        assert found is None

    def test_attribute_is_an_integer(self, device: int) -> None:
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE
        assert driver.cuDeviceGetAttribute(attribute, device) == (SUCCESS, 32)

    def test_string_is_bytes_up_to_the_null(self, device: int) -> None:
        err, name = driver.cuDeviceGetName(256, device)
        assert err == SUCCESS
        assert name
        assert b"\0" not in name

    def test_several_outputs_come_in_the_order_of_c(self, context: driver.CUcontext) -> None:
        err, free, total = driver.cuMemGetInfo()
        assert err == SUCCESS
        assert 0 < free <= total

    def test_structure_is_an_output(self, device: int) -> None:
        err, uuid = driver.cuDeviceGetUuid(device)
        assert err == SUCCESS
        assert isinstance(uuid, driver.CUuuid)
        assert len(uuid.bytes) == 16

    def test_structure_lies_as_its_type_wants(self) -> None:
        made = [driver.CUtensorMap() for _ in range(8)]
        made += [copy.copy(item) for item in made]
        assert all(item.getPtr() % ffi.alignof("CUtensorMap") == 0 for item in made)
        made[0].opaque = range(16)
        assert list(copy.copy(made[0]).opaque) == list(range(16))

    def test_name_of_an_error(self) -> None:
        assert driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY) == (SUCCESS, b"CUDA_ERROR_OUT_OF_MEMORY")

    def test_keyword_arguments(self, device: int) -> None:
        err, _ = driver.cuDeviceTotalMem(dev=device)
        assert err == SUCCESS


class TestArguments:
    def test_wrong_integer_names_function_and_parameter(self) -> None:
        with pytest.raises(TypeError, match="cuInit: Flags"):
            driver.cuInit("0")  # type: ignore[arg-type]

    def test_float_is_no_integer(self) -> None:
        with pytest.raises(TypeError, match="cuDeviceGet: ordinal"):
            driver.cuDeviceGet(0.0)  # type: ignore[arg-type]

    def test_integer_out_of_range_names_function_and_parameter(self) -> None:
        with pytest.raises(OverflowError, match="cuInit: Flags"):
            driver.cuInit(1 << 40)

    def test_wrong_handle_names_function_and_parameter(self) -> None:
        with pytest.raises(TypeError, match=r"cuStreamSynchronize: hStream: .* not str"):
            driver.cuStreamSynchronize("stream")

    def test_handle_of_another_type_is_refused(self) -> None:
        with pytest.raises(TypeError, match="cuStreamSynchronize: hStream"):
            driver.cuStreamSynchronize(ffi.new("CUevent *")[0])

    def test_wrong_structure_names_both_classes(self) -> None:
        with pytest.raises(TypeError, match="poolProps: expected CUmemPoolProps, not CUmemLocation"):
            driver.cuMemPoolCreate(driver.CUmemLocation())  # type: ignore[arg-type]

    def test_structure_by_value_cannot_be_none(self) -> None:
        with pytest.raises(TypeError, match="cuIpcOpenMemHandle: handle: expected CUipcMemHandle"):
            driver.cuIpcOpenMemHandle(None, 0)  # type: ignore[arg-type]

    def test_read_only_buffer_is_no_destination(self) -> None:
        with pytest.raises(TypeError, match=r"cuMemcpyDtoH: dstHost: .*writable buffer, not bytes"):
            driver.cuMemcpyDtoH(b"12345678", 0, 8)

    def test_array_shorter_than_its_count_is_refused(self) -> None:
        with pytest.raises(ValueError, match="cuGraphAddEmptyNode: dependencies: the count is 2, but there are 1"):
            driver.cuGraphAddEmptyNode(0, [0], 2)

    def test_single_value_is_no_array(self) -> None:
        with pytest.raises(TypeError, match="cuGraphAddEmptyNode: dependencies: expected a sequence"):
            driver.cuGraphAddEmptyNode(0, 0, 1)

    def test_wrong_item_of_an_array_is_named(self) -> None:
        with pytest.raises(TypeError, match=r"cuGraphAddEmptyNode: dependencies\[1\]"):
            driver.cuGraphAddEmptyNode(0, [0, "node"], 2)

    def test_string_with_a_null_is_refused(self) -> None:
        with pytest.raises(ValueError, match="cuModuleLoad: fname: embedded null"):
            driver.cuModuleLoad("a\0b")

    def test_callback_must_be_an_address_or_a_pointer(self) -> None:
        with pytest.raises(TypeError, match="cuLaunchHostFunc: fn"):
            driver.cuLaunchHostFunc(0, print, 0)

    def test_attribute_of_unknown_type_is_refused(self) -> None:
        with pytest.raises(ValueError, match="cuPointerGetAttribute: attribute: the type of attribute 9999"):
            driver.cuPointerGetAttribute(9999, 0)

    @pytest.mark.parametrize("make", [int, driver.CUstream, Owner, lambda value: ffi.cast("CUstream", value)])
    def test_handle_forms(self, stream: driver.CUstream, make: type) -> None:
        assert driver.cuStreamQuery(make(stream)) == (SUCCESS,)

    def test_none_is_the_default_stream(self, context: driver.CUcontext) -> None:
        assert driver.cuStreamQuery(None) == (SUCCESS,)


class TestKernelParameters:
    """What ``kernelParams`` may be; the driver sees an array of pointers."""

    def read(self, values: object, *ctypes: str) -> list[object]:
        found = convert.kernel_parameters(values, "test")
        return [ffi.cast(f"{ctype} *", found.cdata[index])[0] for index, ctype in enumerate(ctypes)]

    def test_pair_of_values_and_types(self) -> None:
        values = ((1.5, -7, 3), (numpy.float64, numpy.int32, numpy.float32))
        assert self.read(values, "double", "int", "float") == [1.5, -7, 3.0]

    def test_value_that_has_its_type(self) -> None:
        assert self.read(((numpy.int16(-2),), (numpy.int16,)), "short") == [-2]

    def test_handle_needs_no_type(self) -> None:
        assert self.read(((driver.CUdeviceptr(1 << 40),), (None,)), "unsigned long long") == [1 << 40]

    def test_structure_needs_no_type(self) -> None:
        assert self.read(((driver.CUmemLocation(type=1, id=5),), (None,)), "CUmemLocation")[0].id == 5  # type: ignore[attr-defined]

    def test_list_of_buffers(self) -> None:
        values = [array.array("i", [4]), array.array("d", [0.5])]
        assert self.read(values, "int", "double") == [4, 0.5]

    def test_list_of_addresses(self) -> None:
        value = ffi.new("int *", 9)
        assert self.read([int(ffi.cast("uintptr_t", value))], "int") == [9]

    def test_address_of_an_array_of_pointers(self) -> None:
        value = ffi.new("int *", 9)
        pointers = ffi.new("void *[]", [value])
        assert self.read(int(ffi.cast("uintptr_t", pointers)), "int") == [9]

    def test_types_and_values_must_pair_up(self) -> None:
        with pytest.raises(ValueError, match="test: 2 values for 1 types"):
            self.read(((1, 2), (numpy.int32,)))


class TestHandles:
    def test_handle_is_an_integer_of_its_own_type(self) -> None:
        handle = driver.CUstream(0x10)
        assert (handle, repr(handle), type(handle)) == (16, "CUstream(0x10)", driver.CUstream)

    def test_handle_is_zero_by_default(self) -> None:
        assert driver.CUdeviceptr() == 0

    def test_versioned_name_is_the_same_type(self) -> None:
        assert driver.CUdeviceptr_v2 is driver.CUdeviceptr

    def test_special_stream_is_a_handle(self) -> None:
        assert repr(driver.CU_STREAM_LEGACY) == "CUstream(0x1)"


class TestEnumerations:
    def test_member_is_an_integer(self) -> None:
        assert driver.CUresult.CUDA_ERROR_INVALID_VALUE == 1

    def test_values_are_those_of_the_compiler(self) -> None:
        for name in driver.__all__:
            cls = getattr(driver, name)
            if isinstance(cls, type) and issubclass(cls, enum.IntEnum):
                wanted = ffi.typeof(name).relements
                assert {item: member.value for item, member in cls.__members__.items()} == wanted

    def test_unknown_status_stays_an_integer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from cuda_core_cffi._raw import generated

        class Library:
            def cuInit(self, flags: int) -> int:
                return 4242

        monkeypatch.setattr(generated, "_lib", Library())
        assert driver.cuInit(0) == (4242,)

    def test_unknown_value_in_a_structure_stays_an_integer(self) -> None:
        location = driver.CUmemLocation(type=77)
        assert location.type == 77
        assert type(location.type) is int

    def test_value_given_twice_is_an_alias(self) -> None:
        attribute = driver.CUdevice_attribute
        assert (
            attribute.CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK
            is attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK
        )


class TestStructures:
    def test_new_structure_is_zero(self) -> None:
        assert driver.CUDA_MEMCPY2D() == driver.CUDA_MEMCPY2D(Height=0, srcHost=None)

    def test_fields_by_keyword(self) -> None:
        copy = driver.CUDA_MEMCPY2D(Height=3, srcMemoryType=driver.CUmemorytype.CU_MEMORYTYPE_DEVICE)
        assert (copy.Height, copy.srcMemoryType) == (3, driver.CUmemorytype.CU_MEMORYTYPE_DEVICE)

    def test_unknown_field_is_refused(self) -> None:
        with pytest.raises(TypeError, match="CUmemLocation has no field 'nothing'"):
            driver.CUmemLocation(nothing=1)

    def test_attribute_that_is_no_field_is_refused(self) -> None:
        with pytest.raises(AttributeError):
            driver.CUmemLocation().nothing = 1  # type: ignore[attr-defined]

    def test_wrong_type_names_the_field(self) -> None:
        with pytest.raises(TypeError, match="CUmemLocation: id"):
            driver.CUmemLocation(id="0")

    def test_value_out_of_range_names_the_field(self) -> None:
        with pytest.raises(OverflowError, match="CUDA_TEXTURE_DESC: flags"):
            driver.CUDA_TEXTURE_DESC(flags=-1)

    def test_inner_structure_is_a_view(self) -> None:
        properties = driver.CUmemPoolProps()
        properties.location.id = 5
        assert properties.location.id == 5

    def test_inner_structure_is_written_by_copying(self) -> None:
        location = driver.CUmemLocation(id=5)
        properties = driver.CUmemPoolProps(location=location)
        location.id = 6
        assert properties.location.id == 5

    def test_view_keeps_the_structure_alive(self) -> None:
        location = driver.CUmemPoolProps(maxSize=1).location
        location.id = 7
        assert location.id == 7

    def test_structure_without_name_exists_only_inside(self) -> None:
        value = driver.CUlaunchAttributeValue()
        value.clusterDim.x = 2
        assert value.clusterDim.x == 2
        with pytest.raises(TypeError, match="only inside another structure"):
            type(value.clusterDim)()

    def test_characters_are_bytes(self) -> None:
        assert driver.CUuuid(bytes=b"0123456789abcdef").bytes == b"0123456789abcdef"

    def test_characters_are_filled_with_zeros(self) -> None:
        uuid = driver.CUuuid(bytes=b"0123456789abcdef")
        uuid.bytes = b"x"
        assert uuid.bytes == b"x".ljust(16, b"\0")

    def test_too_many_characters_are_refused(self) -> None:
        with pytest.raises(ValueError, match="CUuuid: bytes: 17 bytes do not fit into 16"):
            driver.CUuuid(bytes=bytes(17))

    def test_array_is_a_list(self) -> None:
        assert driver.CUDA_TEXTURE_DESC(borderColor=[1, 2.5]).borderColor == [1, 2.5, 0, 0]

    def test_too_long_array_is_refused(self) -> None:
        with pytest.raises(ValueError, match="CUDA_TEXTURE_DESC: borderColor"):
            driver.CUDA_TEXTURE_DESC(borderColor=[0] * 5)

    def test_handle_field_has_its_type(self) -> None:
        config = driver.CUlaunchConfig(hStream=Owner(8))
        assert config.hStream == 8
        assert type(config.hStream) is driver.CUstream

    def test_address_field_keeps_a_buffer_alive(self) -> None:
        copy = driver.CUDA_MEMCPY2D(srcHost=bytearray(b"abcdef"))
        assert ffi.buffer(ffi.cast("char *", copy.srcHost), 6)[:] == b"abcdef"

    def test_pointer_to_structures_is_a_list(self) -> None:
        attributes = [driver.CUlaunchAttribute(id=driver.CUlaunchAttributeID(number)) for number in (1, 2)]
        config = driver.CUlaunchConfig(attrs=attributes, numAttrs=2)
        attributes.clear()
        assert [item.id for item in config.attrs] == [1, 2]

    def test_pointer_to_structures_can_be_null(self) -> None:
        config = driver.CUlaunchConfig(attrs=[driver.CUlaunchAttribute()])
        config.attrs = None
        assert config.attrs == []

    def test_pointer_of_c_is_read_up_to_its_count(self) -> None:
        params = driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS(numExtSems=2)
        handles = ffi.new("CUexternalSemaphore[]", [ffi.cast("CUexternalSemaphore", number) for number in (4, 5)])
        params.extSemArray = handles
        assert params.extSemArray == [4, 5]

    def test_repr_has_what_is_not_zero(self) -> None:
        assert repr(driver.CUDA_MEMCPY2D(Height=3)) == "CUDA_MEMCPY2D(Height=3)"

    def test_equality_needs_one_type(self) -> None:
        assert driver.CUipcEventHandle() != driver.CUipcMemHandle()

    def test_structures_have_no_hash(self) -> None:
        with pytest.raises(TypeError):
            hash(driver.CUuuid())

    def test_address_is_an_integer(self) -> None:
        uuid = driver.CUuuid(bytes=b"0123456789abcdef")
        assert ffi.buffer(ffi.cast("char *", uuid.getPtr()), 4)[:] == b"0123"


class TestMemory:
    @pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: array.array("B", data)])
    def test_copy_there_and_back(self, memory: driver.CUdeviceptr, make: type) -> None:
        data = bytes(range(256)) * 4
        assert driver.cuMemcpyHtoD(memory, make(data), SIZE) == (SUCCESS,)
        found = bytearray(SIZE)
        assert driver.cuMemcpyDtoH(found, memory, SIZE) == (SUCCESS,)
        assert found == data

    def test_host_memory_is_an_address(self, context: driver.CUcontext, memory: driver.CUdeviceptr) -> None:
        err, address = driver.cuMemAllocHost(SIZE)
        assert err == SUCCESS
        driver.cuMemsetD8(memory, 7, SIZE)
        driver.cuMemcpyDtoH(address, memory, SIZE)
        assert ffi.buffer(ffi.cast("char *", address), SIZE)[:] == b"\7" * SIZE
        assert driver.cuMemFreeHost(address) == (SUCCESS,)

    def test_copy_described_by_a_structure(self, memory: driver.CUdeviceptr) -> None:
        found = bytearray(16)
        driver.cuMemsetD32(memory, 0x01010101, SIZE // 4)
        copy = driver.CUDA_MEMCPY2D(
            srcMemoryType=driver.CUmemorytype.CU_MEMORYTYPE_DEVICE,
            srcDevice=memory,
            srcPitch=32,
            dstMemoryType=driver.CUmemorytype.CU_MEMORYTYPE_HOST,
            dstHost=found,
            dstPitch=8,
            WidthInBytes=8,
            Height=2,
        )
        assert driver.cuMemcpy2D(copy) == (SUCCESS,)
        assert found == b"\1" * 16

    def test_integer_of_numpy_is_an_address(self, memory: driver.CUdeviceptr) -> None:
        err, address = driver.cuMemAllocHost(SIZE)
        assert err == SUCCESS
        driver.cuMemsetD8(memory, 7, SIZE)
        assert driver.cuMemcpyDtoH(numpy.uint64(address), memory, SIZE) == (SUCCESS,)
        assert ffi.cast("char *", address)[0] == b"\7"
        assert driver.cuMemFreeHost(address) == (SUCCESS,)

    def test_address_range(self, memory: driver.CUdeviceptr) -> None:
        err, base, size = driver.cuMemGetAddressRange(memory + 8)
        assert (err, base) == (SUCCESS, memory)
        assert size >= SIZE


class TestAttributes:
    def test_pointer_attribute_has_its_type(self, context: driver.CUcontext, memory: driver.CUdeviceptr) -> None:
        attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        err, value = driver.cuPointerGetAttribute(attribute, memory)
        assert (err, value) == (SUCCESS, driver.CUmemorytype.CU_MEMORYTYPE_DEVICE)
        assert isinstance(value, driver.CUmemorytype)

    def test_truth_is_a_bool(self, memory: driver.CUdeviceptr) -> None:
        attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED
        assert driver.cuPointerGetAttribute(attribute, memory)[1] is False

    def test_several_attributes_at_once(self, device: int, memory: driver.CUdeviceptr) -> None:
        attributes = [
            driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
            driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        ]
        assert driver.cuPointerGetAttributes(2, attributes, memory) == (SUCCESS, [memory, device])

    def test_pool_attribute_is_set_and_read(self, pool: driver.CUmemoryPool) -> None:
        attribute = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        assert driver.cuMemPoolSetAttribute(pool, attribute, 1 << 33) == (SUCCESS,)
        assert driver.cuMemPoolGetAttribute(pool, attribute) == (SUCCESS, 1 << 33)

    def test_pool_attribute_out_of_range_is_refused(self) -> None:
        attribute = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        with pytest.raises(OverflowError, match="cuMemPoolSetAttribute: value"):
            driver.cuMemPoolSetAttribute(0, attribute, -1)


class TestStreamsAndEvents:
    def test_pool_allocation_in_stream_order(self, pool: driver.CUmemoryPool, stream: driver.CUstream) -> None:
        err, address = driver.cuMemAllocFromPoolAsync(SIZE, pool, stream)
        assert err == SUCCESS
        assert driver.cuMemFreeAsync(address, stream) == (SUCCESS,)
        assert driver.cuStreamSynchronize(stream) == (SUCCESS,)

    def test_event_measures_time(self, stream: driver.CUstream) -> None:
        events = [driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT)[1] for _ in range(2)]
        for event in events:
            assert driver.cuEventRecord(event, stream) == (SUCCESS,)
        assert driver.cuEventSynchronize(events[1]) == (SUCCESS,)
        err, milliseconds = driver.cuEventElapsedTime(*events)
        assert err == SUCCESS
        assert milliseconds >= 0
        for event in events:
            assert driver.cuEventDestroy(event) == (SUCCESS,)

    def test_handle_has_its_type(self, stream: driver.CUstream, context: driver.CUcontext) -> None:
        err, found = driver.cuStreamGetCtx(stream)
        assert (err, found, type(found)) == (SUCCESS, context, driver.CUcontext)

    def test_captured_nodes_are_listed(self, stream: driver.CUstream, memory: driver.CUdeviceptr) -> None:
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        assert driver.cuStreamBeginCapture(stream, mode) == (SUCCESS,)
        driver.cuMemsetD8Async(memory, 1, SIZE, stream)
        driver.cuMemsetD8Async(memory, 2, SIZE, stream)
        err, status, _, graph, nodes, *_ = driver.cuStreamGetCaptureInfo(stream)
        assert (err, status) == (SUCCESS, driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE)
        assert len(nodes) == 1
        assert driver.cuStreamEndCapture(stream) == (SUCCESS, graph)
        assert driver.cuGraphGetNodes(graph) == (SUCCESS, [], 2)
        err, found, count = driver.cuGraphGetNodes(graph, 5)
        assert (err, count, len(found)) == (SUCCESS, 2, 2)
        assert nodes[0] in found
        assert driver.cuGraphDestroy(graph) == (SUCCESS,)


class TestEveryFunction:
    def test_there_is_one_for_each_of_the_driver(self) -> None:
        missing = [name for name in dir(lib) if name.startswith("cu") and not hasattr(driver, name)]
        assert missing == []

    @pytest.mark.parametrize("status", [0, 3])
    def test_call_gives_the_status_and_an_item_per_output(self, status: int, tmp_path: pathlib.Path) -> None:
        # a library that answers every call with one status; arguments are zero, so that nothing is looked at
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler")
        library = tmp_path / "libanswer.so"
        (tmp_path / "answer.c").write_text(ANSWER_LIBRARY)
        subprocess.run(
            [compiler, "-shared", "-fPIC", f"-DSTATUS={status}", "-o", library, tmp_path / "answer.c"], check=True
        )
        environment = {**os.environ, "CUDA_CORE_CFFI_DRIVER": str(library), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", f"import {__name__.rpartition('.')[2]} as test; test.call_everything({status})"],
            env={**environment, "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), *sys.path])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


ANSWER_LIBRARY = """
#include <string.h>
static int answer(void) { return STATUS; }
int cuDriverGetVersion(int *version) { *version = 99990; return 0; }
int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, void *status)
{
    *found = strcmp(name, "cuDriverGetVersion") ? (void *)answer : (void *)cuDriverGetVersion;
    return 0;
}
"""


def call_everything(status: int) -> None:
    """Call every function with zeros, and check the shape of what comes back."""
    from cuda_core_cffi._raw import generated

    called = 0
    for name in driver.__all__:
        function = getattr(driver, name)
        if not inspect.isfunction(function):
            continue
        payloads = getattr(generated, f"_P_{name}", None)
        arguments: list[object] = []
        for parameter in inspect.signature(function).parameters.values():
            argument: object = None
            if parameter.annotation in ("int", "float"):
                argument = 0
            elif parameter.annotation in driver.__all__:
                argument = getattr(driver, parameter.annotation)()
            elif parameter.annotation.endswith("Array"):
                argument = [0] * 4 if name == "cuTexRefSetBorderColor" else []
            if payloads and parameter.name in ("attr", "attrib", "attribute", "handleType"):
                argument = next(iter(payloads))
            elif payloads and parameter.name == "value":
                argument = 0
            arguments.append(argument)
        result = function(*arguments)
        outputs = [item for item in function.__doc__.removeprefix("Return (status,").rstrip(").").split(",") if item]
        assert len(result) == 1 + len(outputs), name
        if name != "cuDriverGetVersion":
            assert result[0] == status, name
        called += 1
    assert called > 400
