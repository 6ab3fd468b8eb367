# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: what is described, what is refused and why, and how kernels get them."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy
import pytest
from bulk_kernels import needs_bulk_copies
from helpers import output_of
from tensor_maps import encoded, view, words

from cuda_core_cffi import (
    Buffer,
    Device,
    LaunchBatch,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    PreparedLaunch,
    Program,
    ProgramOptions,
    TensorMapDescriptor,
    TensorMapDescriptorOptions,
    driver,
    launch,
)
from cuda_core_cffi.typing import (
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from cuda_core_cffi.utils import StridedMemoryView

SIZE = 1 << 16
WORDS = 16  # of 8 bytes, in a map
DUMP = """
struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void dump(int before, const __grid_constant__ Map map, unsigned long long *out)
{
    for (int i = 0; i < 16; i++)
        out[i] = map.words[i] + (before - before);
}
"""


@pytest.fixture(autouse=True)
def needs_a_device(device: Device) -> None:
    needs_bulk_copies(device)


@pytest.fixture
def buffer(device: Device) -> Any:
    with device.allocate(SIZE) as memory:
        yield memory
    device.sync()


@pytest.fixture(scope="module", autouse=True)
def dump() -> Any:
    """Code that is loaded before the tests look for leaks."""
    device = Device()
    device.set_current()
    program = Program(DUMP, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17"))
    code = program.compile("ptx")
    program.close()
    code.get_kernel("dump")
    return code


# what is described


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_the_driver_gets_the_array_with_the_innermost_dimension_first(buffer: Buffer, rank: int) -> None:
    shape, box = (3, 5, 4, 6, 8)[-rank:], (1, 2, 3, 4, 8)[-rank:]
    strides = [int(numpy.prod(shape[axis + 1 :])) * 4 for axis in range(rank)]
    made = view(buffer, shape).as_tensor_map(box)
    expected = encoded(
        TensorMapDataType.FLOAT32, rank, buffer.handle, shape[::-1], strides[-2::-1], box[::-1], [1] * rank, 0, 0, 0, 0
    )
    assert words(made) == expected


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("uint8", "UINT8"),
        ("int8", "UINT8"),
        ("bool", "UINT8"),
        ("uint16", "UINT16"),
        ("int16", "UINT16"),
        ("uint32", "UINT32"),
        ("int32", "INT32"),
        ("uint64", "UINT64"),
        ("int64", "INT64"),
        ("float16", "FLOAT16"),
        ("float32", "FLOAT32"),
        ("float64", "FLOAT64"),
    ],
)
def test_the_type_is_that_of_the_view(buffer: Buffer, dtype: str, kind: str) -> None:
    itemsize = numpy.dtype(dtype).itemsize
    made = view(buffer, (64, 64), dtype).as_tensor_map((8, 16))
    assert words(made) == encoded(
        TensorMapDataType[kind], 2, buffer.handle, [64, 64], [64 * itemsize], [16, 8], [1, 1], 0, 0, 0, 0
    )
    assert f"tiled {kind} shape=(64, 64)" in repr(made)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("uint32", "UINT32"),
        (numpy.int32, "INT32"),
        (TensorMapDataType.TFLOAT32, "TFLOAT32"),
        (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, "FLOAT32_FTZ"),
    ],
    ids=str,
)
def test_another_type_of_that_size_may_be_given(buffer: Buffer, given: Any, kind: str) -> None:
    assert f" {kind} " in repr(view(buffer).as_tensor_map((8, 8), data_type=given))


@pytest.mark.parametrize(
    ("dtype", "data_type", "shape"),
    [
        (numpy.uint8, "float32", (64, 16)),
        (numpy.uint8, TensorMapDataType.BFLOAT16, (64, 32)),
        (numpy.float32, "uint8", (64, 256)),
        (numpy.complex64, "float32", (64, 128)),
        (numpy.uint16, "float64", (64, 16)),
        ("S4", "float32", (64, 64)),
    ],
)
def test_another_size_of_elements_divides_the_last_dimension(
    buffer: Buffer, dtype: Any, data_type: Any, shape: Any
) -> None:
    assert f" shape={shape} " in repr(view(buffer, (64, 64), dtype).as_tensor_map((8, 16), data_type=data_type))


def test_bfloat16_is_known(buffer: Buffer) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert " BFLOAT16 " in repr(view(buffer, (8, 64), numpy.uint16).as_tensor_map((8, 8), data_type=ml_dtypes.bfloat16))
    assert " BFLOAT16 " in repr(view(buffer, (8, 64), ml_dtypes.bfloat16).as_tensor_map((8, 8)))


def test_every_option_reaches_the_driver(buffer: Buffer) -> None:
    made = view(buffer, (4, 8, 64)).as_tensor_map(
        (2, 4, 8),
        element_strides=(1, 2, 1),
        swizzle=TensorMapSwizzle.SWIZZLE_32B,
        l2_promotion=TensorMapL2Promotion.L2_128B,
        oob_fill=TensorMapOOBFill.NAN_REQUEST_ZERO_FMA,
    )
    assert words(made) == encoded(7, 3, buffer.handle, [64, 8, 4], [256, 2048], [8, 4, 2], [1, 2, 1], 0, 1, 2, 1)


def test_interleaved_channels_reach_the_driver(buffer: Buffer) -> None:
    made = view(buffer, (4, 8, 64), numpy.float16).as_tensor_map(
        (2, 4, 64), interleave=TensorMapInterleave.INTERLEAVE_32B, swizzle=TensorMapSwizzle.SWIZZLE_32B
    )
    assert words(made) == encoded(6, 3, buffer.handle, [64, 8, 4], [128, 1024], [64, 4, 2], [1, 1, 1], 2, 1, 0, 0)


def test_what_the_steps_leave_of_a_box_has_to_fit(buffer: Buffer) -> None:
    made = view(buffer, (256, 256), strides=(0, 1)).as_tensor_map((256, 256), element_strides=(2, 1))
    assert words(made) == encoded(7, 2, buffer.handle, [256, 256], [0], [256, 256], [1, 2], 0, 0, 0, 0)


def test_options_come_as_a_dataclass_or_as_a_mapping(buffer: Buffer) -> None:
    array = view(buffer)
    expected = words(array.as_tensor_map((8, 8), swizzle=TensorMapSwizzle.SWIZZLE_32B))
    fields = {"box_dim": [8, 8], "swizzle": TensorMapSwizzle.SWIZZLE_32B}
    assert words(array.as_tensor_map(options=fields)) == expected
    assert words(array.as_tensor_map(options=TensorMapDescriptorOptions(**fields))) == expected
    assert words(array.as_tensor_map(numpy.array([8, 8]), swizzle="swizzle_32b")) == expected


def test_enumerators_have_the_numbers_of_the_driver() -> None:
    for ours, theirs, prefix in (
        (TensorMapDataType, driver.CUtensorMapDataType, "CU_TENSOR_MAP_DATA_TYPE_"),
        (TensorMapInterleave, driver.CUtensorMapInterleave, "CU_TENSOR_MAP_"),
        (TensorMapSwizzle, driver.CUtensorMapSwizzle, "CU_TENSOR_MAP_"),
        (TensorMapL2Promotion, driver.CUtensorMapL2promotion, "CU_TENSOR_MAP_L2_PROMOTION_"),
        (TensorMapOOBFill, driver.CUtensorMapFloatOOBfill, "CU_TENSOR_MAP_FLOAT_OOB_FILL_"),
        (TensorMapIm2ColWideMode, driver.CUtensorMapIm2ColWideMode, "CU_TENSOR_MAP_IM2COL_WIDE_MODE_"),
    ):
        for item in ours:
            name = prefix + item.name
            if item.name == "NONE" and name not in theirs.__members__:
                name = f"{prefix}{ours.__name__.removeprefix('TensorMap').upper()}_NONE"
            assert theirs[name] == item


def test_the_stride_of_a_dimension_with_one_element_does_not_matter(buffer: Buffer) -> None:
    made = view(buffer, (1, 8, 64), strides=(3, 64, 1)).as_tensor_map((1, 8, 8))
    assert words(made) == encoded(7, 3, buffer.handle, [64, 8, 1], [256, 2048], [8, 8, 1], [1, 1, 1], 0, 0, 0, 0)


def test_padded_rows_are_described(buffer: Buffer) -> None:
    made = view(buffer, (8, 62), strides=(64, 1)).as_tensor_map((8, 8))
    assert words(made) == encoded(7, 2, buffer.handle, [62, 8], [256], [8, 8], [1, 1], 0, 0, 0, 0)


@pytest.mark.simulator_only("needs compute capability 8.0, whatever the machine has")
def test_a_device_without_tensor_maps_says_so() -> None:
    text = output_of(
        """
        import numpy
        from cuda_core_cffi import CUDAError, Device
        from cuda_core_cffi.utils import StridedMemoryView
        device = Device()
        device.set_current()
        with device.allocate(1 << 16) as buffer:
            try:
                StridedMemoryView.from_buffer(buffer, (8, 8), dtype=numpy.dtype("float32")).as_tensor_map((8, 8))
            except CUDAError as error:
                print(error.call, error.name)
        """,
        CUDA_SIM_COMPUTE_CAPABILITY="8.0",
    )
    assert text == "cuTensorMapEncodeTiled CUDA_ERROR_NOT_SUPPORTED"


# what is refused

F32 = numpy.float32


@pytest.mark.parametrize(
    ("shape", "dtype", "strides", "given", "message"),
    [
        ((), F32, None, {"box_dim": ()}, "the array must have 1 to 5 dimensions for such a tensor map, not 0"),
        ((2,) * 6, F32, None, {"box_dim": (2,) * 6}, "the array must have 1 to 5 dimensions"),
        ((0, 64), F32, None, {}, r"shape\[0\] must be 1 to 2\*\*32 for a tensor map, not 0"),
        ((64, 64), F32, (1, 64), {}, "elements along the last dimension must be adjacent, not 64 elements apart"),
        ((16,), F32, (4,), {"box_dim": (8,)}, "must be adjacent, not 4 elements apart: copy the array in C order"),
        ((8, 62), F32, None, {}, r"strides\[0\] must be a multiple of 16 bytes, .* not 248 bytes \(62 elements of 4\)"),
        ((64, 64), F32, None, {"box_dim": (8,)}, "box_dim must have 2 numbers, as many as the array has dimensions"),
        ((64, 64), F32, None, {"box_dim": (0, 8)}, r"box_dim\[0\] must be 1 to 256, not 0"),
        ((64, 64), F32, None, {"box_dim": (8, 260)}, r"box_dim\[1\] must be 1 to 256, not 260"),
        ((64, 64), F32, None, {"box_dim": (8, 6)}, r"box_dim\[1\] must be a multiple of 4, not 6"),
        (
            (64, 64), F32, None, {"box_dim": (256, 256)},
            "box_dim must be at most 233472 bytes, the shared memory of a multiprocessor, not 262144: 65536 elements",
        ),
        (
            (4, 8, 64), F32, None, {"box_dim": (1, 8, 6), "interleave": TensorMapInterleave.INTERLEAVE_16B},
            r"box_dim\[2\] must be a multiple of 4, not 6",
        ),
        (
            (64, 64), F32, None, {"box_dim": (8, 16), "swizzle": TensorMapSwizzle.SWIZZLE_32B},
            r"box_dim\[1\] must be at most 8, not 16: a row of the box has at most 32 bytes with swizzle SWIZZLE_32B",
        ),
        ((64, 64), F32, None, {"element_strides": (1,)}, "element_strides must have 2 numbers"),
        ((64, 64), F32, None, {"element_strides": (9, 1)}, r"element_strides\[0\] must be 1 to 8, not 9"),
        ((64, 64), F32, None, {"element_strides": (1, 2)}, r"element_strides\[1\] must be 1, not 2: the hardware"),
        ((64, 64), numpy.complex64, None, {}, "tensor maps have no elements of dtype complex64: give data_type"),
        (
            (64, 50), numpy.uint8, (64, 1), {"data_type": "float32"},
            r"must be a multiple of 4 bytes for data_type FLOAT32, not 50 bytes \(50 elements of 1\)",
        ),
        (
            (4, 8, 64), F32, None, {"data_type": "uint16", "interleave": TensorMapInterleave.INTERLEAVE_16B},
            "data_type UINT16 has 2 bytes, the elements of the view have 4: with interleaved channels",
        ),
        ((64, 64), "u1", None, {"data_type": "float32", "box_dim": (8, 6)}, r"box_dim\[1\] must be a multiple of 4"),
        (
            (64, 64), numpy.uint32, None, {"oob_fill": TensorMapOOBFill.NAN_REQUEST_ZERO_FMA},
            "oob_fill NAN_REQUEST_ZERO_FMA is for floating-point types, not for UINT32",
        ),
        (
            (64, 64), F32, None, {"interleave": TensorMapInterleave.INTERLEAVE_16B},
            "the array must have 3 to 5 dimensions for such a tensor map, not 2",
        ),
        (
            (4, 8, 64), F32, None, {"box_dim": (1, 8, 8), "interleave": TensorMapInterleave.INTERLEAVE_32B},
            "interleave INTERLEAVE_32B needs swizzle SWIZZLE_32B, not NONE",
        ),
        ((64, 64), F32, None, {"swizzle": "64"}, "swizzle must be one of NONE, SWIZZLE_32B, .*, not '64'"),
    ],
)  # fmt: skip
def test_what_cannot_be_described_says_which_number_is_wrong(
    buffer: Buffer, shape: Any, dtype: Any, strides: Any, given: dict[str, Any], message: str
) -> None:
    array = view(buffer, shape, dtype, strides)
    with pytest.raises(ValueError, match=message):
        array.as_tensor_map(**({"box_dim": (8, 8)} | given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "box_dim is missing: give it, or options that have it"),
        ({"box_dim": (8, 8), "options": {"box_dim": (8, 8)}}, "give options or box_dim, not both"),
        ({"options": {"box_dim": (8, 8)}, "swizzle": TensorMapSwizzle.NONE}, "give options or swizzle, not both"),
        ({"options": {"box_dim": (8, 8), "swizle": 1}}, "did you mean 'swizzle'"),
        ({"box_dim": 8}, "box_dim must be a tuple of int, not int"),
        ({"box_dim": "88"}, "box_dim must be a tuple of int, not str"),
        ({"box_dim": (8.0, 8)}, r"box_dim\[0\] must be an int, not float"),
        ({"box_dim": (8, 8), "swizzle": 1}, "swizzle must be a TensorMapSwizzle .*, not int"),
        (
            {"box_dim": (8, 8), "swizzle": TensorMapInterleave.NONE},
            "must be a TensorMapSwizzle .*, not TensorMapInterleave",
        ),
        ({"box_dim": (8, 8), "data_type": 7}, "data_type must be a dtype or a TensorMapDataType, not int: 7"),
        ({"box_dim": (8, 8), "data_type": "nonsense"}, "data_type must be a dtype or a TensorMapDataType, not str"),
    ],
    ids=str,
)
def test_what_has_the_wrong_type_is_refused(buffer: Buffer, given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        view(buffer).as_tensor_map(**given)


def test_memory_that_no_device_can_access_is_refused() -> None:
    array = StridedMemoryView.from_any_interface(numpy.zeros((8, 8), numpy.float32), stream_ptr=-1)
    with pytest.raises(ValueError, match="the array must be in memory that a device can access"):
        array.as_tensor_map((8, 8))


def test_an_address_between_the_multiples_of_16_is_refused(buffer: Buffer) -> None:
    part = StridedMemoryView.from_buffer(buffer[4:], (64,), dtype=numpy.dtype("float32"))
    with pytest.raises(ValueError, match=r"the address must be a multiple of 16 bytes for a tensor map, not 0x\w+4"):
        part.as_tensor_map((8,))


def test_a_closed_buffer_is_refused(device: Device) -> None:
    memory = device.allocate(SIZE)
    array = view(memory)
    memory.close()
    with pytest.raises(RuntimeError, match="this view's Buffer is closed"):
        array.as_tensor_map((8, 8))


def test_a_view_without_a_type_needs_one(buffer: Buffer) -> None:
    array = StridedMemoryView.from_buffer(buffer, (64, 64), itemsize=4)
    with pytest.raises(ValueError, match="the view has no dtype: give data_type"):
        array.as_tensor_map((8, 8))
    assert " UINT32 " in repr(array.as_tensor_map((8, 8), data_type="uint32"))


# descriptions are remembered


def test_arrays_that_differ_in_one_thing_have_maps_of_their_own(buffer: Buffer) -> None:
    for _ in range(2):  # the second time from memory
        for dtype, kind, strides in (
            (numpy.float32, 7, (64, 1)),
            (numpy.int32, 3, (64, 1)),
            (numpy.float32, 7, (128, 1)),
            (numpy.float64, 8, (64, 1)),
        ):
            for box in ((8, 4), (4, 8)):
                for swizzle in (TensorMapSwizzle.NONE, TensorMapSwizzle.SWIZZLE_64B):
                    made = view(buffer, (8, 64), dtype, strides).as_tensor_map(box, swizzle=swizzle)
                    row = strides[0] * numpy.dtype(dtype).itemsize
                    assert words(made) == encoded(
                        kind, 2, buffer.handle, [64, 8], [row], box[::-1], [1, 1], 0, swizzle, 0, 0
                    )


@pytest.mark.parametrize(
    ("known", "given", "message"),
    [
        ({}, {"box_dim": (1.0, 8)}, r"box_dim\[0\] must be an int, not float"),
        ({}, {"box_dim": (True, 8)}, r"box_dim\[0\] must be an int, not bool"),
        ({"element_strides": (1, 1)}, {"element_strides": (True, 1)}, r"element_strides\[0\] must be an int, not bool"),
        ({"element_strides": (2, 1)}, {"element_strides": (2.0, 1)}, r"element_strides\[0\] must be an int, not float"),
        ({}, {"swizzle": TensorMapInterleave.NONE}, "swizzle must be a TensorMapSwizzle .*, not TensorMapInterleave"),
        ({}, {"oob_fill": False}, "oob_fill must be a TensorMapOOBFill .*, not bool"),
        ({"data_type": TensorMapDataType.FLOAT32}, {"data_type": 7}, "data_type must be a dtype or .*, not int: 7"),
        ({}, {"data_type": ["float32"]}, "data_type must be a dtype or .*, not list"),
        ({}, {"swizzle": []}, "swizzle must be a TensorMapSwizzle .*, not list"),
    ],
    ids=str,
)
def test_what_only_equals_a_known_value_is_refused(
    buffer: Buffer, known: dict[str, Any], given: dict[str, Any], message: str
) -> None:
    array = view(buffer)
    array.as_tensor_map(**({"box_dim": (1, 8)} | known))
    with pytest.raises(TypeError, match=message):
        array.as_tensor_map(**({"box_dim": (1, 8)} | given))


def test_options_that_have_changed_are_read_again(buffer: Buffer) -> None:
    array = view(buffer)
    options = TensorMapDescriptorOptions((8, 8))
    before = words(array.as_tensor_map(options=options))
    options.swizzle = TensorMapSwizzle.SWIZZLE_32B
    assert words(array.as_tensor_map(options=options)) == words(array.as_tensor_map((8, 8), swizzle="SWIZZLE_32B"))
    options.box_dim, options.swizzle = (4, 8), TensorMapSwizzle.NONE
    assert words(array.as_tensor_map(options=options)) == words(array.as_tensor_map((4, 8)))
    options.box_dim = (8, 8)
    assert words(array.as_tensor_map(options=options)) == before
    options.box_dim = (8, 8.0)
    with pytest.raises(TypeError, match=r"box_dim\[1\] must be an int, not float"):
        array.as_tensor_map(options=options)
    options.box_dim, options.swizzle = (8, 8), None
    with pytest.raises(TypeError, match=r"swizzle must be a TensorMapSwizzle .*, not NoneType"):
        array.as_tensor_map(options=options)


def test_a_map_stays_when_another_of_that_description_moves(device: Device, buffer: Buffer) -> None:
    first, second = view(buffer).as_tensor_map((8, 8)), view(buffer).as_tensor_map((8, 8))
    before, text = words(first), repr(first)
    with device.allocate(SIZE) as other:
        second.replace_address(view(other))
    assert (words(first), repr(first)) == (before, text)


# the object


def test_it_is_made_by_a_view_alone() -> None:
    with pytest.raises(RuntimeError, match=r"made by StridedMemoryView\.as_tensor_map"):
        TensorMapDescriptor()


def test_it_cannot_be_copied_or_sent(buffer: Buffer) -> None:
    made = view(buffer).as_tensor_map((8, 8))
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="it describes memory of another object"):
            act(made)


def test_it_is_of_the_device_of_the_array(device: Device, buffer: Buffer) -> None:
    assert view(buffer).as_tensor_map((8, 8)).device is device


def test_pinned_memory_is_described_for_the_current_device(device: Device) -> None:
    with LegacyPinnedMemoryResource().allocate(SIZE) as pinned:
        made = view(pinned).as_tensor_map((8, 8))
        assert made.device is device


def test_it_keeps_the_array(device: Device) -> None:
    class Owner:
        """Whoever exports the memory."""

    memory = device.allocate(SIZE)
    owner = Owner()
    owner.__cuda_array_interface__ = {
        "shape": (64, 64), "typestr": "<f4", "data": (int(memory.handle), False), "version": 3,
    }  # fmt: skip
    kept = weakref.ref(owner)
    made = StridedMemoryView.from_any_interface(owner, stream_ptr=-1).as_tensor_map((8, 8))
    del owner
    gc.collect()
    assert kept() is not None
    del made
    for _ in range(3):
        gc.collect()
    assert kept() is None
    memory.close()


@pytest.mark.simulator_only("needs two devices, whatever the machine has")
def test_another_device_than_the_current_one_is_used() -> None:
    text = output_of(
        """
        import numpy
        from cuda_core_cffi import Device
        from cuda_core_cffi.utils import StridedMemoryView
        first, second = Device(0), Device(1)
        first.set_current()
        here, there = first.allocate(4096), second.allocate(4096)
        views = [StridedMemoryView.from_buffer(item, (8, 8), dtype=numpy.dtype("float32")) for item in (here, there)]
        made = views[1].as_tensor_map((8, 8))
        print(made.device is second, Device() is first)
        try:
            made.replace_address(views[0])
        except ValueError as error:
            print(error)
        here.close(), there.close()
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert text.split("\n") == ["True True", "the array is on device 0, the tensor map is of device 1"]


# another address


def test_another_array_takes_the_place(device: Device, buffer: Buffer) -> None:
    made = view(buffer).as_tensor_map((8, 8), swizzle="SWIZZLE_32B")
    with device.allocate(SIZE) as other:
        expected = words(view(other).as_tensor_map((8, 8), swizzle="SWIZZLE_32B"))
        made.replace_address(view(other))
        assert words(made) == expected
        assert f"address={int(other.handle):#x}" in repr(made)
        made.replace_address(buffer)  # or any other array
        assert words(made) == words(view(buffer).as_tensor_map((8, 8), swizzle="SWIZZLE_32B"))


def test_a_refused_address_leaves_the_map(device: Device, buffer: Buffer) -> None:
    made = view(buffer).as_tensor_map((8, 8))
    before = words(made)
    closed = device.allocate(SIZE)
    closed.close()
    for wrong, kind, message in (
        (numpy.zeros(4), ValueError, "memory that a device can access"),
        (buffer[4:], ValueError, "the address must be a multiple of 16 bytes"),
        (7, BufferError, "int cannot be viewed"),
        (closed, (BufferError, RuntimeError), "closed"),
    ):
        with pytest.raises(kind, match=message):
            made.replace_address(wrong)
    assert words(made) == before


@pytest.mark.simulator_only("injects a fault")
def test_an_address_that_the_driver_refuses_leaves_the_map(device: Device, buffer: Buffer) -> None:
    from cuda_core_cffi import CUDAError, simulator

    made = view(buffer).as_tensor_map((8, 8))
    before = words(made)
    with (
        simulator.fail("cuTensorMapReplaceAddress", "CUDA_ERROR_INVALID_VALUE"),
        pytest.raises(CUDAError, match="cuTensorMapReplaceAddress failed"),
    ):
        made.replace_address(buffer[256:])
    assert words(made) == before


# kernels get it by value


def test_a_kernel_reads_the_map(device: Device, stream: Any, buffer: Buffer, dump: Any) -> None:
    made = view(buffer).as_tensor_map((8, 8))
    kernel = dump.get_kernel("dump")
    with device.allocate(8 * WORDS, stream) as out:
        launch(stream, LaunchConfig(grid=1, block=1), kernel, 7, made, out)
        read = numpy.zeros(WORDS, numpy.uint64)
        out.copy_to(read, stream=stream)
        stream.sync()
    assert read.tolist() == words(made)


def test_prepared_launches_and_batches_read_the_map(device: Device, stream: Any, buffer: Buffer, dump: Any) -> None:
    made = view(buffer).as_tensor_map((8, 8))
    other = view(buffer).as_tensor_map((16, 16))
    kernel, config = dump.get_kernel("dump"), LaunchConfig(grid=1, block=1)
    prepared = PreparedLaunch(config, kernel, int, TensorMapDescriptor, Buffer)
    read = numpy.zeros((2, WORDS), numpy.uint64)
    with device.allocate(8 * WORDS, stream) as first, device.allocate(8 * WORDS, stream) as second:
        prepared.launch(stream, 7, made, first)
        LaunchBatch([(prepared, 7, other, second)]).launch(stream)
        first.copy_to(read[0], stream=stream)
        second.copy_to(read[1], stream=stream)
        stream.sync()
    assert read.tolist() == [words(made), words(other)]


def test_a_node_of_a_graph_reads_the_map_and_is_updated(device: Device, stream: Any, buffer: Buffer, dump: Any) -> None:
    from cuda_core_cffi.graph import GraphDefinition

    made, other = view(buffer).as_tensor_map((8, 8)), view(buffer).as_tensor_map((16, 16))
    kernel, config = dump.get_kernel("dump"), LaunchConfig(grid=1, block=1)
    read = numpy.zeros(WORDS, numpy.uint64)
    with device.allocate(8 * WORDS, stream) as out, GraphDefinition() as definition:
        node = definition.launch(config, kernel, 7, made, out)
        with definition.instantiate() as graph:
            graph.launch(stream)
            out.copy_to(read, stream=stream)
            stream.sync()
            assert read.tolist() == words(made)
            graph[node].update(config=config, kernel=kernel, args=(7, other, out))
            graph.launch(stream)
            out.copy_to(read, stream=stream)
            stream.sync()
            assert read.tolist() == words(other)


def test_a_map_of_a_closed_buffer_is_no_argument(device: Device, stream: Any, buffer: Buffer, dump: Any) -> None:
    memory = device.allocate(SIZE, stream)
    made = view(memory).as_tensor_map((8, 8))
    memory.close()
    with pytest.raises(RuntimeError, match="the Buffer that this TensorMapDescriptor describes is closed"):
        launch(stream, LaunchConfig(grid=1, block=1), dump.get_kernel("dump"), 7, made, buffer)


def test_a_kernel_that_takes_something_else_refuses_it(stream: Any, buffer: Buffer, dump: Any) -> None:
    made = view(buffer).as_tensor_map((8, 8))
    with pytest.raises(TypeError, match=r"kernel argument 2 \(TensorMapDescriptor\)"):
        launch(stream, LaunchConfig(grid=1, block=1), dump.get_kernel("dump"), 7, made, made)
