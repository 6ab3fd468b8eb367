# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces: what they show, their options, and how long they live."""

from __future__ import annotations

import math

import pytest
from buffers import HostResource, ManagedResource
from helpers import alive, collect, in_thread, in_threads

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    MemoryResource,
    ObjectCode,
    launch,
)
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi.texture import (
    MipmappedArrayOptions,
    OpaqueArrayOptions,
    ResourceDescriptor,
    SurfaceObject,
    TextureObject,
    TextureObjectOptions,
)
from cuda_core_cffi.texture._texture_object import MOST_KNOWN, descriptions, sampling
from cuda_core_cffi.typing import AddressModeType, FilterModeType, ReadModeType

SIZE = 1024
IMAGE = OpaqueArrayOptions((8, 4), "float32", 1, is_surface_load_store=True)
ONE = LaunchConfig(grid=1, block=1)


@pytest.fixture
def array(device):
    with device.create_opaque_array(IMAGE) as array:
        yield array


@pytest.fixture
def buffer(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        yield buffer


@pytest.fixture
def resource(array):
    return ResourceDescriptor.from_opaque_array(array)


COPY = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 out, .param .u64 value)
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u64 %rd3, [value];
    st.global.u64 [%rd2], %rd3;
    ret;
}
"""


@pytest.fixture
def copy_handle(device):
    with ObjectCode.from_ptx(COPY) as code, code.get_kernel("copy") as kernel:
        yield kernel


@pytest.fixture
def out(device):
    with LegacyPinnedMemoryResource().allocate(8) as memory:
        yield memory


@pytest.fixture
def copied(stream, copy_handle, out):
    """Return a function that returns what a kernel gets for an argument."""

    def copy(argument: object) -> int:
        launch(stream, ONE, copy_handle, out, argument)
        stream.sync()
        return int(ffi.cast("uint64_t *", out.handle)[0])

    return copy


class ByAddress(MemoryResource):
    """A resource in Python, of device memory; it records what goes back."""

    is_device_accessible = True
    is_host_accessible = False
    device_id = 0

    def __init__(self) -> None:
        self.freed: list[int] = []

    def allocate(self, size, stream=None):
        pointer = ffi.new("CUdeviceptr *")
        assert lib.cuMemAlloc(pointer, size) == 0
        return Buffer.from_handle(pointer[0], size, mr=self, stream=stream)

    def deallocate(self, ptr, size, stream=None):
        assert lib.cuMemFree(ptr) == 0
        self.freed.append(ptr)


# --- Descriptors ----------------------------------------------------------------------------------------------


def told(resource: ResourceDescriptor) -> tuple[object, ...]:
    fields = ("kind", "format", "num_channels", "size_bytes", "width", "height", "pitch_bytes")
    return tuple(getattr(resource, name) for name in fields)


def test_a_descriptor_says_what_it_shows(device, array, buffer):
    with device.create_mipmapped_array(MipmappedArrayOptions((8,), "uint8", 1, 2)) as mipmap:
        found = ResourceDescriptor.from_mipmapped_array(mipmap)
        assert (found.source, told(found)) == (mipmap, ("mipmapped_array", *[None] * 6))
    found = ResourceDescriptor.from_opaque_array(array)
    assert (found.source, told(found)) == (array, ("array", *[None] * 6))
    assert repr(found) == f"<ResourceDescriptor kind='array' source={array!r}>"
    found = ResourceDescriptor.from_linear(buffer, format="int16", num_channels=2)
    assert (found.source, told(found)) == (buffer, ("linear", "int16", 2, SIZE, None, None, None))
    found = ResourceDescriptor.from_linear(buffer, format="int16", num_channels=2, size_bytes=12)
    assert found.size_bytes == 12
    rows = {"width": 8, "height": 4, "pitch_bytes": 64}
    found = ResourceDescriptor.from_pitch2d(buffer, format="float32", num_channels=1, **rows)
    assert told(found) == ("pitch2d", "float32", 1, None, 8, 4, 64)
    assert "width=8 height=4 pitch_bytes=64 source=" in repr(found)


def test_descriptors_come_from_class_methods():
    with pytest.raises(RuntimeError, match="ResourceDescriptor cannot be constructed directly; use from_opaque_array"):
        ResourceDescriptor()


def test_a_descriptor_is_of_the_kind_that_its_method_says(array, buffer):
    with pytest.raises(TypeError, match="array must be an OpaqueArray, not Buffer"):
        ResourceDescriptor.from_opaque_array(buffer)
    with pytest.raises(TypeError, match="mipmapped_array must be a MipmappedArray, not OpaqueArray"):
        ResourceDescriptor.from_mipmapped_array(array)
    for make in (ResourceDescriptor.from_linear, ResourceDescriptor.from_pitch2d):
        size = {"width": 1, "height": 1, "pitch_bytes": 32} if make == ResourceDescriptor.from_pitch2d else {}
        with pytest.raises(TypeError, match="buffer must be a Buffer, not int"):
            make(7, format="uint8", num_channels=1, **size)


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        (SIZE + 4, ValueError, f"size_bytes must be at most the {SIZE} bytes of the buffer, not {SIZE + 4}"),
        (0, ValueError, "size_bytes must be a multiple of the 4 bytes of an element, not 0"),
        (-4, ValueError, "multiple of the 4 bytes"),
        (6, ValueError, "multiple of the 4 bytes"),
        (4.0, TypeError, "size_bytes must be an int"),
        (True, TypeError, "size_bytes must be an int"),
    ],
)
def test_a_row_of_elements_is_a_part_of_the_buffer(buffer, size, error, message):
    with pytest.raises(error, match=message):
        ResourceDescriptor.from_linear(buffer, format="uint16", num_channels=2, size_bytes=size)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"width": 0}, ValueError, "width must be at least 1, not 0"),
        ({"height": -1}, ValueError, "height must be at least 1, not -1"),
        ({"width": 2.0}, TypeError, "width must be an int"),
        ({"pitch_bytes": 31}, ValueError, "pitch_bytes must be at least the 32 bytes of a row, not 31"),
        ({"height": 17}, ValueError, f"17 rows of 64 bytes are more than the {SIZE} bytes of the buffer"),
        ({"num_channels": 3}, ValueError, "num_channels must be 1, 2 or 4"),
        ({"format": "float64"}, ValueError, "format must be one of"),
    ],
)
def test_rows_are_a_part_of_the_buffer(buffer, changed, error, message):
    given = {"format": "float32", "num_channels": 1, "width": 8, "height": 4, "pitch_bytes": 64, **changed}
    with pytest.raises(error, match=message):
        ResourceDescriptor.from_pitch2d(buffer, **given)


# --- Textures -------------------------------------------------------------------------------------------------


def test_a_texture_says_what_it_is(device, resource):
    options = TextureObjectOptions(filter_mode="linear")
    with device.create_texture_object(resource, options) as texture:
        assert (texture.resource, texture.options, texture.device) == (resource, options, device)
        assert type(texture.handle) is int
        assert texture.handle
        assert repr(texture) == f"<TextureObject handle={texture.handle:#x}>"
        assert ffi.typeof(texture.cdata).cname == "unsigned long long"
    assert (texture.handle, texture.is_closed, texture.resource) == (0, True, resource)


def test_a_surface_says_what_it_is(device, resource):
    with device.create_surface_object(resource) as surface:
        assert (surface.resource, surface.device) == (resource, device)
        assert surface.handle
        assert repr(surface) == f"<SurfaceObject handle={surface.handle:#x}>"
    assert (surface.handle, surface.is_closed) == (0, True)


def test_textures_and_surfaces_come_from_devices():
    for cls, method in ((TextureObject, "create_texture_object"), (SurfaceObject, "create_surface_object")):
        with pytest.raises(RuntimeError, match=f"{cls.__name__} cannot be constructed directly; use Device.{method}"):
            cls()


def test_textures_are_of_arrays_mipmapped_arrays_and_buffers(device, array, buffer):
    options = TextureObjectOptions(normalized_coords=True)
    with device.create_mipmapped_array(MipmappedArrayOptions((8, 8), "uint8", 1, 2)) as mipmap:
        for resource in (
            ResourceDescriptor.from_opaque_array(array),
            ResourceDescriptor.from_mipmapped_array(mipmap),
            ResourceDescriptor.from_opaque_array(mipmap.get_level(1)),
            ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=4),
            ResourceDescriptor.from_pitch2d(buffer, format="uint8", num_channels=1, width=8, height=4, pitch_bytes=64),
        ):
            with device.create_texture_object(resource, options) as texture:
                assert texture.handle


def test_a_texture_needs_a_descriptor(device, array):
    for method in (device.create_texture_object, device.create_surface_object):
        with pytest.raises(TypeError, match="resource must be a ResourceDescriptor, not OpaqueArray"):
            method(array)


def test_a_mapping_serves_as_options(device, resource):
    with device.create_texture_object(resource, {"address_mode": "border"}) as texture:
        assert texture.options == TextureObjectOptions(address_mode="border")
    with device.create_texture_object(resource) as texture:
        assert texture.options == TextureObjectOptions()
    with pytest.raises(TypeError, match="TextureObjectOptions has no option 'filter'; did you mean 'filter_mode'"):
        device.create_texture_object(resource, {"filter": "point"})


def test_modes_are_members_whatever_was_given():
    options = TextureObjectOptions(filter_mode="linear", read_mode="normalized_float", mipmap_filter_mode="linear")
    assert options.filter_mode is FilterModeType.LINEAR
    assert options.read_mode is ReadModeType.NORMALIZED_FLOAT
    assert options.mipmap_filter_mode is FilterModeType.LINEAR


@pytest.mark.parametrize("name", ["filter_mode", "read_mode", "mipmap_filter_mode"])
@pytest.mark.parametrize("wrong", ["nearest", None, 3])
def test_a_mode_that_is_not_there_is_refused_at_once(name, wrong):
    with pytest.raises(ValueError, match=f"{name} must be one of 'point|{name} must be one of 'element_type"):
        TextureObjectOptions(**{name: wrong})


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"address_mode": "around"}, ValueError, "address_mode must be one of 'wrap', 'clamp', 'mirror', 'border'"),
        ({"address_mode": ("wrap", "around")}, ValueError, "address_mode must be one of"),
        ({"address_mode": ()}, ValueError, "address_mode must have 1 to 3 modes, not 0"),
        ({"address_mode": ("wrap",) * 4}, ValueError, "address_mode must have 1 to 3 modes, not 4"),
        ({"address_mode": 1}, TypeError, "address_mode must be an AddressModeType or a tuple of them, not int"),
        ({"max_anisotropy": -1}, ValueError, r"max_anisotropy must be 0 to 2\*\*32 - 1, not -1"),
        ({"max_anisotropy": 2**32}, ValueError, "max_anisotropy must be 0 to"),
        ({"max_anisotropy": 1.5}, TypeError, "max_anisotropy must be an int"),
        ({"border_color": (1, 2)}, ValueError, "border_color must have 4 values, not 2"),
        ({"border_color": (1, 2, 3, "4")}, TypeError, "border_color must be a float, not str"),
        ({"mipmap_level_bias": "1"}, TypeError, "mipmap_level_bias must be a float, not str"),
        ({"min_mipmap_level_clamp": None}, TypeError, "min_mipmap_level_clamp must be a float"),
        ({"max_mipmap_level_clamp": True}, TypeError, "max_mipmap_level_clamp must be a float, not bool"),
    ],
)
def test_other_options_are_checked_when_a_texture_is_made(device, resource, changed, error, message):
    with pytest.raises(error, match=message):
        device.create_texture_object(resource, TextureObjectOptions(**changed))


def test_what_only_equals_a_known_option_is_refused(device, resource):
    for known, given in (
        ({"max_anisotropy": 1}, {"max_anisotropy": True}),
        ({"max_anisotropy": 1}, {"max_anisotropy": 1.0}),
        ({"mipmap_level_bias": 1}, {"mipmap_level_bias": True}),
        ({}, {"min_mipmap_level_clamp": False}),
        ({}, {"max_mipmap_level_clamp": False}),
        ({"border_color": (1, 1, 1, 1)}, {"border_color": (1, 1, 1, True)}),
    ):
        device.create_texture_object(resource, known).close()
        with pytest.raises(TypeError, match=f"{next(iter(given))} must be"):
            device.create_texture_object(resource, given)


def test_options_that_have_changed_are_read_again(resource):
    options = TextureObjectOptions(border_color=[0, 0, 0, 1], address_mode=["wrap", "clamp"])
    for mode in ("border", "mirror", "border"):
        options.address_mode[1] = mode
        wanted = [lib.CU_TR_ADDRESS_MODE_WRAP, *[getattr(lib, f"CU_TR_ADDRESS_MODE_{mode.upper()}")] * 2]
        assert list(sampling(options, resource).addressMode) == wanted
    options.address_mode = "clamp"
    for red in (1, 2, 1):
        options.border_color[0] = red
        assert list(sampling(options, resource).borderColor) == [red, 0, 0, 1]
    for name, field, value in (
        ("filter_mode", "filterMode", FilterModeType.LINEAR),
        ("mipmap_filter_mode", "mipmapFilterMode", FilterModeType.LINEAR),
        ("max_anisotropy", "maxAnisotropy", 4),
        ("mipmap_level_bias", "mipmapLevelBias", 0.5),
        ("min_mipmap_level_clamp", "minMipmapLevelClamp", 1.5),
        ("max_mipmap_level_clamp", "maxMipmapLevelClamp", 2.5),
        ("normalized_coords", "flags", True),
        ("srgb", "flags", True),
        ("disable_trilinear_optimization", "flags", True),
        ("seamless_cubemap", "flags", True),
    ):
        before = getattr(sampling(options, resource), field)
        setattr(options, name, value)
        assert getattr(sampling(options, resource), field) != before, name


def test_few_ways_of_sampling_are_remembered(resource):
    for number in range(3 * MOST_KNOWN):
        assert sampling(TextureObjectOptions(max_anisotropy=number), resource).maxAnisotropy == number
        assert len(descriptions) <= MOST_KNOWN


def test_the_driver_is_told_all_options(resource):
    native = sampling(
        TextureObjectOptions(
            ("wrap", "border"),
            "linear",
            "normalized_float",
            True,
            True,
            True,
            True,
            8,
            "linear",
            -1,
            0.5,
            2.5,
            (1,) * 4,
        ),
        resource,
    )
    assert list(native.addressMode) == [lib.CU_TR_ADDRESS_MODE_WRAP, *[lib.CU_TR_ADDRESS_MODE_BORDER] * 2]
    assert (native.filterMode, native.mipmapFilterMode) == (lib.CU_TR_FILTER_MODE_LINEAR,) * 2
    assert native.flags == (
        lib.CU_TRSF_NORMALIZED_COORDINATES
        | lib.CU_TRSF_SRGB
        | lib.CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
        | lib.CU_TRSF_SEAMLESS_CUBEMAP
    )
    assert (native.maxAnisotropy, native.mipmapLevelBias) == (8, -1)
    assert (native.minMipmapLevelClamp, native.maxMipmapLevelClamp) == (0.5, 2.5)
    assert list(native.borderColor) == [1.0] * 4
    for mode in AddressModeType:
        native = sampling(TextureObjectOptions(mode), resource)
        assert set(native.addressMode) == {getattr(lib, f"CU_TR_ADDRESS_MODE_{mode.name}")}
    assert native.flags == 0


def test_a_border_is_along_the_only_axis_of_a_line(device):
    border, clamp = lib.CU_TR_ADDRESS_MODE_BORDER, lib.CU_TR_ADDRESS_MODE_CLAMP
    with device.create_opaque_array(OpaqueArrayOptions((16,), "float32", 1)) as line:
        native = sampling(TextureObjectOptions("border"), ResourceDescriptor.from_opaque_array(line))
    assert list(native.addressMode) == [border, clamp, clamp]


def test_integers_are_read_as_integers_unless_floats_are_asked_for(device, buffer):
    for name, read_mode, expected in (
        ("uint8", "element_type", lib.CU_TRSF_READ_AS_INTEGER),
        ("int16", "normalized_float", 0),
        ("float32", "element_type", 0),
    ):
        resource = ResourceDescriptor.from_linear(buffer, format=name, num_channels=1)
        assert sampling(TextureObjectOptions(read_mode=read_mode), resource).flags == expected


def test_integers_are_not_interpolated(device, buffer):
    options = TextureObjectOptions(filter_mode="linear")
    with device.create_opaque_array(OpaqueArrayOptions((8,), "uint8", 1)) as array:
        resource = ResourceDescriptor.from_opaque_array(array)
        with pytest.raises(ValueError, match=r"'linear' interpolates floats, and .* 'uint8'"):
            device.create_texture_object(resource, options)
        options.read_mode = ReadModeType.NORMALIZED_FLOAT
        device.create_texture_object(resource, options).close()
    options.read_mode = ReadModeType.ELEMENT_TYPE  # of which a row of elements makes no use
    linear = ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1)
    device.create_texture_object(linear, options).close()


def test_memory_is_aligned_for_textures(device, stream):
    boundary, pitch = device.properties.texture_alignment, device.properties.texture_pitch_alignment
    with device.allocate(4 * boundary, stream) as buffer:
        part = buffer[4:]
        resource = ResourceDescriptor.from_linear(part, format="float32", num_channels=1)
        with pytest.raises(ValueError, match=f"the address of the buffer must be a multiple of {boundary} bytes"):
            device.create_texture_object(resource)
        rows = {"format": "uint8", "num_channels": 1, "width": 2, "height": 4, "pitch_bytes": pitch + 1}
        with pytest.raises(ValueError, match=f"pitch_bytes must be a multiple of {pitch}, the texture_pitch_alignment"):
            device.create_texture_object(ResourceDescriptor.from_pitch2d(buffer, **rows))
        aligned = ResourceDescriptor.from_linear(buffer[boundary:], format="float32", num_channels=1)
        device.create_texture_object(aligned).close()
        part.close()


def test_memory_that_no_device_can_use_has_no_texture(device):
    with HostResource().allocate(SIZE) as buffer:
        resource = ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1)
        with pytest.raises(ValueError, match="a texture shows memory that a device can use"):
            device.create_texture_object(resource)


def test_surfaces_are_of_arrays_that_were_made_for_them(device, buffer):
    with (
        device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1)) as array,
        device.create_mipmapped_array(MipmappedArrayOptions((4,), "uint8", 1, 2, True)) as mipmap,
    ):
        with pytest.raises(ValueError, match="needs an array that was made with is_surface_load_store=True"):
            device.create_surface_object(ResourceDescriptor.from_opaque_array(array))
        linear = ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1)
        for resource in (ResourceDescriptor.from_mipmapped_array(mipmap), linear):
            with pytest.raises(ValueError, match=f"not a resource of the kind '{resource.kind}'"):
                device.create_surface_object(resource)
        device.create_surface_object(ResourceDescriptor.from_opaque_array(mipmap.get_level(1))).close()


def test_the_drivers_own_refusal_is_told(device, buffer):
    resource = ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1)
    most = device.properties.maximum_texture1d_linear_width
    resource._numbers["size_bytes"] = 8 * most
    with pytest.raises(CUDAError, match="cuTexObjectCreate failed: CUDA_ERROR_INVALID_VALUE"):
        device.create_texture_object(resource)


# --- The end --------------------------------------------------------------------------------------------------


def test_a_texture_keeps_its_array(device):
    before = alive()
    array = device.create_opaque_array(IMAGE)
    texture = device.create_texture_object(ResourceDescriptor.from_opaque_array(array))
    array.close()
    assert array.handle == 0
    assert alive()["array"] == before["array"] + 1
    texture.close()
    assert alive() == before


def test_a_surface_of_a_level_keeps_the_whole(device):
    before = alive()
    mipmap = device.create_mipmapped_array(MipmappedArrayOptions((8, 8), "uint8", 1, 3, True))
    level = mipmap.get_level(1)
    surface = device.create_surface_object(ResourceDescriptor.from_opaque_array(level))
    mipmap.close()
    level.close()
    assert alive()["mipmap"] == before["mipmap"] + 1
    surface.close()
    assert alive() == before


def test_a_texture_keeps_the_memory_of_its_buffer(device, stream):
    before = alive()
    buffer = device.allocate(SIZE, stream)
    texture = device.create_texture_object(ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1))
    buffer.close()
    assert alive()["buffer"] == before["buffer"] + 1
    texture.close()
    assert alive() == before


def test_memory_that_python_gives_back_stays_until_the_texture_is_closed(device):
    mr = ByAddress()
    buffer = mr.allocate(SIZE)
    address = buffer.handle
    resource = ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1)
    textures = [device.create_texture_object(resource) for _ in range(2)]
    buffer.close()
    textures[0].close()
    textures[0].close()
    assert mr.freed == []
    textures[1].close()
    assert mr.freed == [address]


def test_memory_that_python_gives_back_goes_with_a_texture_that_nobody_has(device):
    mr = ByAddress()
    with mr.allocate(SIZE) as buffer:
        texture = device.create_texture_object(ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1))
    assert mr.freed == []
    del texture, buffer
    collect()
    assert len(mr.freed) == 1


def test_threads_that_close_one_texture_give_its_memory_back_once(device):
    mr = ByAddress()
    with mr.allocate(SIZE) as buffer:
        texture = device.create_texture_object(ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1))

    def close(_: int) -> None:
        Device(0).set_current()
        texture.close()

    in_threads(4, close)
    assert len(mr.freed) == 1


def test_managed_memory_has_textures(device):
    with ManagedResource().allocate(SIZE) as buffer:
        resource = ResourceDescriptor.from_linear(buffer, format="float32", num_channels=4)
        device.create_texture_object(resource).close()


def test_textures_in_a_cycle_end_in_the_right_order(device):
    before = alive()
    array = device.create_opaque_array(IMAGE)
    holder = [array, device.create_texture_object(ResourceDescriptor.from_opaque_array(array))]
    holder.append(holder)
    del array, holder
    collect()
    assert alive() == before


def test_a_texture_ends_in_its_context_whichever_is_current(device, resource):
    before = alive()
    texture, surface = device.create_texture_object(resource), device.create_surface_object(resource)
    in_thread(texture.close)
    in_thread(surface.close)
    assert alive() == before


def test_a_closed_resource_has_no_textures(device, stream):
    array = device.create_opaque_array(IMAGE)
    resource = ResourceDescriptor.from_opaque_array(array)
    array.close()
    for method in (device.create_texture_object, device.create_surface_object):
        with pytest.raises(RuntimeError, match="this OpaqueArray is closed"):
            method(resource)
    with device.allocate(SIZE, stream) as buffer:
        resource = ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1)
    with pytest.raises(RuntimeError, match="this Buffer is closed"):
        device.create_texture_object(resource)


# --- As kernel arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["create_texture_object", "create_surface_object"])
def test_a_kernel_gets_the_handle(device, resource, how, copied):
    with getattr(device, how)(resource) as item:
        assert copied(item) == item.handle
        assert copied(item.handle) == item.handle


def test_a_closed_texture_is_no_kernel_argument(device, resource, copied):
    texture = device.create_texture_object(resource)
    texture.close()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the TextureObject is closed"):
            copied(texture)


def test_a_texture_is_no_float_argument(device, resource, stream, store):
    with device.create_texture_object(resource) as texture, pytest.raises(TypeError, match="takes 8 bytes, but"):
        launch(stream, ONE, store, texture, texture)


def test_a_graph_keeps_the_textures_of_its_kernels(device, graph, stream, copy_handle, out):
    before = alive()
    array = device.create_opaque_array(IMAGE)
    texture = device.create_texture_object(ResourceDescriptor.from_opaque_array(array))
    handle = texture.handle
    graph.launch(ONE, copy_handle, out, texture)
    texture.close()
    array.close()
    assert alive()["texture"] == before["texture"] + 1
    with graph.instantiate() as executable:
        executable.launch(stream)
        stream.sync()
    assert ffi.cast("uint64_t *", out.handle)[0] == handle


def test_a_graph_keeps_memory_that_python_gives_back_for_a_texture(device, graph, stream, copy_handle, out):
    mr = ByAddress()
    with mr.allocate(SIZE) as buffer:
        texture = device.create_texture_object(ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1))
    graph.launch(ONE, copy_handle, out, texture)
    texture.close()
    assert mr.freed == []
    graph.close()
    for _ in range(100):
        collect()
        if mr.freed:
            break
        device.sync()
    assert len(mr.freed) == 1


def test_special_floats_reach_the_driver(resource):
    native = sampling(TextureObjectOptions(border_color=(math.inf, -math.inf, 0, 1)), resource)
    assert list(native.borderColor) == [math.inf, -math.inf, 0, 1]
