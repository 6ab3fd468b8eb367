# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that sample textures, and that read and write surfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sim_arrays import BORDER, CLAMP, LINEAR, MIRROR, POINT, WRAP
from texture_rules import fractions, linear_from_srgb, sample, sample_fractions

from cuda_core_cffi import Device, Kernel, LaunchConfig, Program, Stream, launch
from cuda_core_cffi.texture import (
    MipmappedArrayOptions,
    OpaqueArrayOptions,
    ResourceDescriptor,
    TextureObject,
    TextureObjectOptions,
)
from cuda_core_cffi.typing import AddressModeType, ArrayFormatType, FilterModeType

SOURCE = r"""
typedef cudaTextureObject_t texture;
typedef cudaSurfaceObject_t surface;
template <int axes, class T> __device__ T get(texture t, float4 at)
{
    if constexpr (axes == 1) return tex1D<T>(t, at.x);
    else if constexpr (axes == 2) return tex2D<T>(t, at.x, at.y);
    else return tex3D<T>(t, at.x, at.y, at.z);
}
template <int axes, class T> __global__ void sampled(texture t, const float4 *at, T *out)
{
    out[blockIdx.x] = get<axes, T>(t, at[blockIdx.x]);
}
template <class T> __global__ void fetched(texture t, const float4 *at, T *out)
{
    out[blockIdx.x] = tex1Dfetch<T>(t, (int)at[blockIdx.x].x);
}
__global__ void of_level(texture t, const float4 *at, float *out)
{
    out[blockIdx.x] = tex2DLod<float>(t, at[blockIdx.x].x, at[blockIdx.x].y, at[blockIdx.x].w);
}
template <int axes, class T> __global__ void mirrored(surface from, surface to)
{
    int x = blockIdx.x, y = blockIdx.y, z = blockIdx.z, other = (gridDim.x - 1 - x) * sizeof(T);
    T value;
    if constexpr (axes == 1) {
        surf1Dread(&value, from, other);
        surf1Dwrite(value, to, x * sizeof(T));
    } else if constexpr (axes == 2) {
        surf2Dread(&value, from, other, y);
        surf2Dwrite(value, to, x * sizeof(T), y);
    } else {
        surf3Dread(&value, from, other, y, z);
        surf3Dwrite(value, to, x * sizeof(T), y, z);
    }
}
"""
NAMES = {
    "uint8": ("unsigned char", "uchar"),
    "uint16": ("unsigned short", "ushort"),
    "uint32": ("unsigned int", "uint"),
    "int8": ("signed char", "char"),
    "int16": ("short", "short"),
    "int32": ("int", "int"),
    "float32": ("float", "float"),
}
TYPES = [(name, channels) for name in NAMES for channels in (1, 2, 4)]
SHAPES = {1: (16,), 2: (16, 8), 3: (8, 6, 4)}
MODES = {
    AddressModeType.WRAP: WRAP,
    AddressModeType.CLAMP: CLAMP,
    AddressModeType.MIRROR: MIRROR,
    AddressModeType.BORDER: BORDER,
}
FILTERS = {FilterModeType.POINT: POINT, FilterModeType.LINEAR: LINEAR}
COUNT = 128
STEP = 1 / 256  # weights have eight bits


def cuda_type(name: str, channels: int) -> str:
    plain, vector = NAMES[name]
    return plain if channels == 1 else f"{vector}{channels}"


@pytest.fixture(scope="module")
def kernels(nvrtc) -> Iterator[Callable[[str], Kernel]]:
    """Return kernels by name."""
    device = Device(0)
    device.set_current()
    names = [f"sampled<{axes}, {cuda_type(*kind)}>" for axes in SHAPES for kind in TYPES]
    names += [f"mirrored<{axes}, {cuda_type(*kind)}>" for axes in SHAPES for kind in TYPES]
    names += [f"fetched<{cuda_type(*kind)}>" for kind in TYPES] + ["of_level"]
    with Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}) as program:
        code = program.compile("cubin", names)
    with code:
        assert code.get_kernel("of_level").handle  # loads the code, before a test counts what is alive
        yield code.get_kernel


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(seed=7)


def texels(rng: np.random.Generator, shape: tuple[int, ...], name: str, channels: int) -> np.ndarray:
    """Return random elements, which have as many axes as `texture_rules` expects."""
    full = (*shape, 1, 1)[:3]
    if name.startswith("float"):
        return rng.random((*full[::-1], channels)).astype(name)
    limits = np.iinfo(name)
    return rng.integers(limits.min, limits.max, (*full[::-1], channels), dtype=name, endpoint=True)


def places(rng: np.random.Generator, shape: tuple[int, ...], normalized: bool) -> list[np.ndarray]:
    """Return coordinates in and around a texture, none of which lies at the edge of two texels or of two weights."""
    found = []
    for extent in (*shape, 1, 1)[:3]:
        steps = rng.integers(-extent * 256 // 2, extent * 256 * 3 // 2, COUNT) + 0.25
        found.append((steps * STEP / (extent if normalized else 1)).astype(np.float32))
    return found


def read(
    kernel: Kernel, texture: TextureObject, at: list[np.ndarray], name: str, channels: int, stream: Stream
) -> np.ndarray:
    """Return what a kernel reads at coordinates."""
    device = texture.device
    given = np.zeros((COUNT, 4), np.float32)
    for axis, values in enumerate(at):
        given[:, axis] = values
    result = np.zeros((COUNT, channels), name)
    with device.allocate(given.nbytes, stream) as places, device.allocate(result.nbytes, stream) as out:
        places.copy_from(given, stream=stream)
        launch(stream, LaunchConfig(grid=COUNT, block=1), kernel, texture, places, out)
        out.copy_to(result, stream=stream)
        stream.sync()
    return result


def array_of(device: Device, data: np.ndarray, shape: tuple[int, ...], stream: Stream, surface: bool = False) -> Any:
    array = device.create_opaque_array(OpaqueArrayOptions(shape, data.dtype, data.shape[-1], surface))
    array.copy_from(data, stream=stream)
    return array


def texture_of(item: Any, **options: Any) -> TextureObject:
    resource = ResourceDescriptor.from_opaque_array(item)
    return item.device.create_texture_object(resource, TextureObjectOptions(**options))


@pytest.mark.parametrize("axes", SHAPES)
@pytest.mark.parametrize(("name", "channels"), TYPES)
def test_elements_are_read_as_they_are(device, stream, kernels, rng, axes, name, channels):
    data, at = texels(rng, SHAPES[axes], name, channels), places(rng, SHAPES[axes], False)
    kernel = kernels(f"sampled<{axes}, {cuda_type(name, channels)}>")
    with array_of(device, data, SHAPES[axes], stream) as array, texture_of(array) as texture:
        found = read(kernel, texture, at[:axes], name, channels, stream)
    assert (found == sample(data, *at[:axes])).all()


@pytest.mark.parametrize("name", ["uint8", "uint16", "int8", "int16", "float16", "float32"])
@pytest.mark.parametrize("filtering", FILTERS)
@pytest.mark.parametrize("axes", SHAPES)
def test_floats_are_interpolated(device, stream, kernels, rng, axes, filtering, name):
    data, at = texels(rng, SHAPES[axes], name, 4), places(rng, SHAPES[axes], False)
    options = {"filter_mode": filtering, "read_mode": "normalized_float"}
    with array_of(device, data, SHAPES[axes], stream) as array, texture_of(array, **options) as texture:
        found = read(kernels(f"sampled<{axes}, float4>"), texture, at[:axes], "float32", 4, stream)
    expected = sample_fractions(data, *at[:axes], filtering=FILTERS[filtering])
    np.testing.assert_allclose(found, expected, atol=STEP if filtering == "linear" else 1e-6)


@pytest.mark.parametrize("filtering", FILTERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axes", SHAPES)
def test_address_modes_say_what_is_outside(device, stream, kernels, rng, axes, mode, filtering):
    data, at = texels(rng, SHAPES[axes], "float32", 1), places(rng, SHAPES[axes], True)
    options = {"address_mode": mode, "filter_mode": filtering, "normalized_coords": True}
    border = (0.75, 0, 0, 0)
    with (
        array_of(device, data, SHAPES[axes], stream) as array,
        texture_of(array, border_color=border, **options) as texture,
    ):
        found = read(kernels(f"sampled<{axes}, float>"), texture, at[:axes], "float32", 1, stream)
    modes = (MODES[mode], *[CLAMP if axes == 1 else MODES[mode]] * 2)  # a line has no border below and above it
    rules = {"mode": modes, "filtering": FILTERS[filtering], "normalized": True, "border": border}
    # a coordinate that was divided by the extent may be rounded to another weight
    tolerance = 2 * axes * STEP if filtering == "linear" else 0
    np.testing.assert_allclose(found, sample(data, *at[:axes], **rules), atol=tolerance)


def test_each_axis_may_have_an_address_mode(device, stream, kernels, rng):
    data, at = texels(rng, (8, 8), "float32", 1), places(rng, (8, 8), True)
    options = {"address_mode": ("wrap", "mirror"), "normalized_coords": True}
    with array_of(device, data, (8, 8), stream) as array, texture_of(array, **options) as texture:
        found = read(kernels("sampled<2, float>"), texture, at[:2], "float32", 1, stream)
    inside = [at[0] % 1, np.where(at[1] % 2 < 1, at[1] % 2, 2 - at[1] % 2)]
    np.testing.assert_allclose(found, sample(data, *inside, normalized=True))


def test_srgb_values_become_linear(device, stream, kernels, rng):
    data, at = texels(rng, (16, 8), "uint8", 4), places(rng, (16, 8), False)
    options = {"read_mode": "normalized_float", "srgb": True}
    with array_of(device, data, (16, 8), stream) as array, texture_of(array, **options) as texture:
        found = read(kernels("sampled<2, float4>"), texture, at[:2], "float32", 4, stream)
    expected = sample(fractions(data), *at[:2])
    expected[:, :3] = linear_from_srgb(expected[:, :3])  # the fourth channel is no colour
    np.testing.assert_allclose(found, expected, atol=STEP)


@pytest.mark.parametrize(("name", "channels"), TYPES)
def test_a_buffer_is_read_by_index(device, stream, kernels, rng, name, channels):
    data = texels(rng, (COUNT,), name, channels).reshape(COUNT, channels)
    order = rng.permutation(COUNT)
    with device.allocate(data.nbytes, stream) as buffer:
        buffer.copy_from(data, stream=stream)
        resource = ResourceDescriptor.from_linear(buffer, format=name, num_channels=channels)
        with device.create_texture_object(resource) as texture:
            kernel = kernels(f"fetched<{cuda_type(name, channels)}>")
            found = read(kernel, texture, [order.astype("f4")], name, channels, stream)
    assert (found == data[order]).all()


@pytest.mark.parametrize("filtering", FILTERS)
def test_a_buffer_is_sampled_in_rows(device, stream, kernels, rng, filtering):
    data, at = texels(rng, (10, 6), "float32", 1), places(rng, (10, 6), False)
    pitch = 512  # a multiple of every device's texture_pitch_alignment
    rows = np.zeros((6, pitch // 4), "f4")
    rows[:, :10] = data[0, ..., 0]
    with device.allocate(rows.nbytes, stream) as buffer:
        buffer.copy_from(rows, stream=stream)
        shown = {"format": "float32", "num_channels": 1, "width": 10, "height": 6, "pitch_bytes": pitch}
        resource = ResourceDescriptor.from_pitch2d(buffer, **shown)
        with device.create_texture_object(resource, {"filter_mode": filtering}) as texture:
            found = read(kernels("sampled<2, float>"), texture, at[:2], "float32", 1, stream)
    expected = sample(data, *at[:2], filtering=FILTERS[filtering])
    np.testing.assert_allclose(found, expected, atol=STEP if filtering == "linear" else 0)


def test_levels_are_sampled_and_interpolated(device, stream, kernels, rng):
    options = MipmappedArrayOptions((16, 8), "float32", 1, 3)
    how = {"filter_mode": "linear", "mipmap_filter_mode": "linear", "normalized_coords": True}
    with device.create_mipmapped_array(options) as mipmap:
        levels = []
        for number in range(3):
            level = mipmap.get_level(number)
            levels.append(texels(rng, level.shape, "float32", 1))
            level.copy_from(levels[-1], stream=stream)
        at = places(rng, (16, 8), True)
        lod = rng.integers(0, 8 * 2, COUNT) / 8
        resource = ResourceDescriptor.from_mipmapped_array(mipmap)
        with device.create_texture_object(resource, {**how, "max_mipmap_level_clamp": 2}) as texture:
            found = read(kernels("of_level"), texture, [*at[:2], at[2], lod], "float32", 1, stream)
    each = np.stack([sample(data, *at[:2], filtering=LINEAR, normalized=True) for data in levels])
    first, part = lod.astype(int), (lod % 1)[:, None]
    second, number = np.minimum(first + 1, 2), np.arange(COUNT)
    np.testing.assert_allclose(found, (1 - part) * each[first, number] + part * each[second, number], atol=6 * STEP)


@pytest.mark.parametrize("axes", SHAPES)
@pytest.mark.parametrize(("name", "channels"), TYPES)
def test_surfaces_are_read_and_written(device, stream, kernels, rng, axes, name, channels):
    shape = SHAPES[axes]
    data = texels(rng, shape, name, channels)
    with (
        array_of(device, data, shape, stream, surface=True) as source,
        array_of(device, np.zeros_like(data), shape, stream, surface=True) as target,
        device.create_surface_object(ResourceDescriptor.from_opaque_array(source)) as one,
        device.create_surface_object(ResourceDescriptor.from_opaque_array(target)) as other,
    ):
        kernel = kernels(f"mirrored<{axes}, {cuda_type(name, channels)}>")
        launch(stream, LaunchConfig(grid=(*shape, 1, 1)[:3], block=1), kernel, one.handle, other)
        found = target.copy_to(np.zeros_like(data), stream=stream)
        stream.sync()
    assert (found == data[:, :, ::-1]).all()


def test_a_kernel_draws_into_a_level_and_a_texture_shows_it(device, stream, kernels, rng):
    data = texels(rng, (8, 4), "float32", 1)
    options = MipmappedArrayOptions((16, 8), "float32", 1, 2, is_surface_load_store=True)
    with (
        array_of(device, data, (8, 4), stream, surface=True) as source,
        device.create_mipmapped_array(options) as mipmap,
        mipmap.get_level(1) as level,
        device.create_surface_object(ResourceDescriptor.from_opaque_array(source)) as one,
        device.create_surface_object(ResourceDescriptor.from_opaque_array(level)) as other,
        texture_of(level) as texture,
    ):
        launch(stream, LaunchConfig(grid=(8, 4), block=1), kernels("mirrored<2, float>"), one, other)
        at = places(rng, (8, 4), False)
        found = read(kernels("sampled<2, float>"), texture, at[:2], "float32", 1, stream)
    assert (found == sample(data[:, :, ::-1], *at[:2])).all()


def test_a_texture_is_captured_with_its_kernel(device, stream, kernels, rng, builder):
    data = texels(rng, (8, 4), "float32", 1)
    with (
        array_of(device, data, (8, 4), stream, surface=True) as source,
        array_of(device, np.zeros_like(data), (8, 4), stream, surface=True) as target,
        device.create_surface_object(ResourceDescriptor.from_opaque_array(source)) as one,
        device.create_surface_object(ResourceDescriptor.from_opaque_array(target)) as other,
    ):
        stream.sync()
        launch(builder, LaunchConfig(grid=(8, 4), block=1), kernels("mirrored<2, float>"), one, other)
        with builder.end_building().complete() as executable:
            for _ in range(2):
                executable.launch(stream)
            found = target.copy_to(np.zeros_like(data), stream=stream)
            stream.sync()
    assert (found == data[:, :, ::-1]).all()


def test_every_format_is_sampled() -> None:
    assert {*NAMES, "float16"} == {item.value for item in ArrayFormatType}
