# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Opaque and mipmapped arrays: what they are, their options, and how long they live."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from helpers import alive, collect, in_thread, in_threads, output_of

from cuda_core_cffi import CUDAError, Device, simulator
from cuda_core_cffi.texture import (
    MipmappedArray,
    MipmappedArrayOptions,
    OpaqueArray,
    OpaqueArrayOptions,
    ResourceDescriptor,
)
from cuda_core_cffi.typing import ArrayFormatType

FORMATS = {
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "float16": 2,
    "float32": 4,
}


def arrays_alive() -> int:
    collect()
    return alive()["array"]


# --- Options --------------------------------------------------------------------------------------------------


def test_options_are_checked_and_converted_when_they_are_made():
    options = OpaqueArrayOptions([np.int64(4), 2], "float32", 2)
    assert options == OpaqueArrayOptions((4, 2), ArrayFormatType.FLOAT32, 2, False)
    assert type(options.format) is ArrayFormatType
    assert all(type(extent) is int for extent in options.shape)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_a_member_a_string_or_what_names_a_dtype(name):
    for given in (ArrayFormatType(name), name, np.dtype(name), getattr(np, name)):
        assert OpaqueArrayOptions((1,), given, 1).format is ArrayFormatType(name)


@pytest.mark.parametrize("wrong", ["double", "f4", np.float64, np.dtype(">f4"), np.dtype("u1,u1"), None, 7, object()])
def test_another_format_is_refused(wrong):
    with pytest.raises(ValueError, match=r"format must be one of 'uint8', .*'float32', not"):
        OpaqueArrayOptions((1,), wrong, 1)


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ((), ValueError, "shape must have 1 to 3 extents, not 0"),
        ((1, 2, 3, 4), ValueError, "shape must have 1 to 3 extents, not 4"),
        ((4, 0), ValueError, r"shape\[1\] must be 1 to 2\*\*32 - 1, not 0"),
        ((-1,), ValueError, r"shape\[0\] must be 1 to"),
        ((2**32,), ValueError, r"shape\[0\] must be 1 to"),
        ((4, 2.0), TypeError, r"shape\[1\] must be an int, not float"),
        ((True,), TypeError, r"shape\[0\] must be an int, not bool"),
        (4, TypeError, "shape must be a tuple of ints, not int"),
        ("44", TypeError, "shape must be a tuple of ints, not str"),
    ],
)
@pytest.mark.parametrize("options", [OpaqueArrayOptions, lambda *given: MipmappedArrayOptions(*given, 1)])
def test_a_shape_is_1_to_3_whole_numbers(options, shape, error, message):
    with pytest.raises(error, match=message):
        options(shape, "uint8", 1)


@pytest.mark.parametrize("wrong", [0, 3, 5, -1])
def test_elements_have_1_2_or_4_channels(wrong):
    with pytest.raises(ValueError, match=f"num_channels must be 1, 2 or 4, not {wrong}"):
        OpaqueArrayOptions((1,), "uint8", wrong)


@pytest.mark.parametrize("wrong", [True, 2.0, "1", None])
def test_a_number_of_channels_is_an_int(wrong):
    with pytest.raises(TypeError, match="num_channels must be an int"):
        OpaqueArrayOptions((1,), "uint8", wrong)


def test_a_mapping_serves_as_options(device):
    with device.create_opaque_array({"shape": (4,), "format": "uint8", "num_channels": 1}) as array:
        assert array.shape == (4,)
    with pytest.raises(TypeError, match="OpaqueArrayOptions has no option 'size'; "):
        device.create_opaque_array({"shape": (4,), "format": "uint8", "num_channels": 1, "size": 4})
    for wrong in (7, (4,)):
        with pytest.raises(TypeError, match=r"create_opaque_array: options must be OpaqueArrayOptions, a mapping"):
            device.create_opaque_array(wrong)


def test_options_that_were_changed_are_checked_again(device):
    options = OpaqueArrayOptions((4,), "uint8", 1)
    options.num_channels = 3
    with pytest.raises(ValueError, match="num_channels must be 1, 2 or 4"):
        device.create_opaque_array(options)


# --- What an array is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", [(6,), (6, 5), (6, 5, 4)])
def test_an_array_says_what_it_is(device, shape, name, channels):
    with device.create_opaque_array(OpaqueArrayOptions(shape, name, channels)) as array:
        assert (array.shape, array.format, array.num_channels) == (shape, name, channels)
        assert array.element_bytes == FORMATS[name] * channels
        assert array.size_bytes == np.prod(shape) * FORMATS[name] * channels
        assert array.device is device
        assert not array.is_surface_load_store
        assert type(array.handle) is int
        assert array.handle
        assert repr(array) == (
            f"<OpaqueArray shape={shape} format='{name}' num_channels={channels} handle={array.handle:#x}>"
        )


def test_arrays_come_from_devices():
    for cls, method in ((OpaqueArray, "create_opaque_array"), (MipmappedArray, "create_mipmapped_array")):
        with pytest.raises(RuntimeError, match=f"{cls.__name__} cannot be constructed directly; use Device.{method}"):
            cls()


def test_an_array_is_equal_to_itself_alone(device):
    options = MipmappedArrayOptions((4, 4), "uint8", 1, 2)
    with device.create_mipmapped_array(options) as mipmap, mipmap.get_level(0) as one, mipmap.get_level(0) as other:
        assert one.handle == other.handle
        assert one != other
        assert len({one, other, one}) == 2
        assert mipmap != one


def test_too_large_an_array_is_an_error_that_tells_the_limits(device):
    most = device.properties.maximum_texture2d_width
    with pytest.raises(CUDAError, match="cuArray3DCreate failed") as caught:
        device.create_opaque_array(OpaqueArrayOptions((4 * most, 4), "uint8", 1))
    height = device.properties.maximum_texture2d_height
    assert caught.value.__notes__ == [f"arrays of this rank on device 0 have at most {most} x {height} elements"]


def test_an_array_is_made_in_a_thread_without_a_context():
    def work() -> None:
        with Device(0).create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1)) as array:
            assert array.handle

    in_thread(work)


def test_an_array_is_on_the_device_that_made_it():
    code = """
        from cuda_core_cffi import Device
        from cuda_core_cffi.texture import OpaqueArrayOptions, ResourceDescriptor
        if len(Device.get_all_devices()) > 1:
            Device(0).set_current()
            with Device(1).create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1)) as array:
                assert array.device is Device(1), array.device
                resource = ResourceDescriptor.from_opaque_array(array)
                with Device(1).create_texture_object(resource) as texture:
                    assert texture.device is Device(1)
                with Device(1).create_stream() as stream:
                    array.copy_from(b"abcd", stream=stream)
                    target = bytearray(4)
                    array.copy_to(target, stream=stream)
                    stream.sync()
                    assert target == b"abcd"
                try:
                    Device(0).create_texture_object(resource)
                except ValueError as error:
                    assert str(error) == "the array is on device 1, not on device 0", error
                else:
                    raise AssertionError("made")
            assert Device() == Device(0)
    """
    assert output_of(code, CUDA_SIM_DEVICES="2") == ""


# --- The end --------------------------------------------------------------------------------------------------


def test_closing_destroys_an_array_once(device):
    before = arrays_alive()
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
    assert arrays_alive() == before + 1
    for _ in range(2):
        array.close()
        assert (array.is_closed, array.handle, alive()["array"]) == (True, 0, before)
    assert array.shape == (4,)


def test_a_with_block_closes_an_array(device):
    with device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1)) as array:
        assert not array.is_closed
    assert array.is_closed


def test_an_array_that_nobody_has_is_destroyed(device):
    before = arrays_alive()
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
    gone = weakref.ref(array)
    del array
    assert arrays_alive() == before
    assert gone() is None


def test_an_array_in_a_cycle_is_destroyed(device):
    before = arrays_alive()
    holder = [device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))]
    holder.append(holder)
    del holder
    assert arrays_alive() == before


def test_an_array_is_destroyed_in_its_context_whichever_is_current(device):
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
    before = alive()["array"]
    in_thread(array.close)
    assert alive()["array"] == before - 1


def test_threads_may_close_one_array_at_the_same_time(device):
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
    before = alive()["array"]
    in_threads(4, lambda _: array.close())
    assert alive()["array"] == before - 1


def test_a_closed_array_is_not_copied(device, stream):
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
    array.close()
    for use in (
        lambda: array.copy_from(bytes(4), stream=stream),
        lambda: array.copy_to(bytearray(4), stream=stream),
        lambda: array[1:1].copy_to(bytearray(4), stream=stream),
        lambda: ResourceDescriptor.from_opaque_array(array),
    ):
        with pytest.raises(RuntimeError, match="this OpaqueArray is closed"):
            use()


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_out_of_memory_garbage_is_collected_and_the_array_tried_again(device):
    holder = [device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))]
    holder.append(holder)
    gc.disable()
    try:
        before = alive()["array"]
        del holder
        with simulator.fail("cuArray3DCreate", "CUDA_ERROR_OUT_OF_MEMORY") as fault:
            array = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
        assert fault.left == 0
        collect()
        assert alive()["array"] == before
        array.close()
    finally:
        gc.enable()


@pytest.mark.parametrize("levels", [0, 2])
def test_an_array_larger_than_the_device_is_refused_without_a_collection(device, monkeypatch, levels):
    collections: list[None] = []
    monkeypatch.setattr(gc, "collect", lambda *generation: collections.append(None))
    shape = (16384, 16384, 16384)
    tries = {
        0: lambda: device.create_opaque_array(OpaqueArrayOptions(shape, "float32", 4)),
        2: lambda: device.create_mipmapped_array(MipmappedArrayOptions(shape, "float32", 4, 2)),
    }
    with pytest.raises(CUDAError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        tries[levels]()
    assert collections == []


# --- Levels ---------------------------------------------------------------------------------------------------


def test_levels_have_half_the_size_each_and_at_least_one_element(device):
    options = MipmappedArrayOptions((16, 6, 3), "float16", 2, 5, is_surface_load_store=True)
    with device.create_mipmapped_array(options) as mipmap:
        assert (mipmap.shape, mipmap.format, mipmap.num_channels) == ((16, 6, 3), "float16", 2)
        assert (mipmap.num_levels, mipmap.is_surface_load_store, mipmap.device) == (5, True, device)
        assert repr(mipmap) == (
            f"<MipmappedArray shape=(16, 6, 3) format='float16' num_channels=2 num_levels=5 handle={mipmap.handle:#x}>"
        )
        levels = [mipmap.get_level(number) for number in range(5)]
        assert [level.shape for level in levels] == [(16, 6, 3), (8, 3, 1), (4, 1, 1), (2, 1, 1), (1, 1, 1)]
        assert {level.format for level in levels} == {ArrayFormatType.FLOAT16}
        assert all(level.is_surface_load_store and level.device is device for level in levels)


def test_levels_hold_what_is_copied_to_them(device, stream):
    with device.create_mipmapped_array(MipmappedArrayOptions((8, 4), "uint8", 1, 3)) as mipmap:
        for number in range(3):
            level = mipmap.get_level(number)
            level.copy_from(np.full(level.shape, number + 1, "u1"), stream=stream)
        for number in range(3):
            level = mipmap.get_level(number)
            found = level.copy_to(np.zeros(level.shape, "u1"), stream=stream)
            stream.sync()
            assert (found == number + 1).all()


@pytest.mark.parametrize("wrong", [-1, 2, 2**40])
def test_a_level_that_is_not_there_is_refused(device, wrong):
    with device.create_mipmapped_array(MipmappedArrayOptions((8,), "uint8", 1, 2)) as mipmap:
        with pytest.raises(ValueError, match=f"level must be 0 to 1, not {wrong}"):
            mipmap.get_level(wrong)
        with pytest.raises(TypeError, match="level must be an int"):
            mipmap.get_level("0")


def test_there_are_as_many_levels_as_it_takes_to_one_element(device):
    with device.create_mipmapped_array(MipmappedArrayOptions((5, 8), "uint8", 1, 4)) as mipmap:
        assert mipmap.get_level(3).shape == (1, 1)
    with pytest.raises(ValueError, match=r"an array of shape \(5, 8\) has at most 4 levels, not 5"):
        device.create_mipmapped_array(MipmappedArrayOptions((5, 8), "uint8", 1, 5))
    with pytest.raises(ValueError, match="num_levels must be at least 1, not 0"):
        MipmappedArrayOptions((5, 8), "uint8", 1, 0)


def test_a_level_keeps_the_whole(device, stream):
    before = alive()["mipmap"]
    mipmap = device.create_mipmapped_array(MipmappedArrayOptions((4,), "uint8", 1, 3))
    level = mipmap.get_level(1)
    mipmap.close()
    assert alive()["mipmap"] == before + 1
    level.copy_from(b"ab", stream=stream)
    stream.sync()
    with pytest.raises(RuntimeError, match="this MipmappedArray is closed"):
        mipmap.get_level(0)
    level.close()
    assert alive()["mipmap"] == before
