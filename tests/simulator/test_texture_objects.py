# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Texture and surface objects: what can be made, what it says of itself, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from sim_arrays import (
    BORDER,
    CLAMP,
    CUBEMAP,
    FLOAT,
    HALF,
    LINEAR,
    MIRROR,
    NO_TRILINEAR,
    NORMALIZED,
    POINT,
    READ_AS_INTEGER,
    SEAMLESS,
    SINT16,
    SRGB,
    SURFACE,
    UINT8,
    UINT32,
    UNORM8X4,
    WRAP,
    Array3DDesc,
    ResourceDesc,
    TextureDesc,
    ViewDesc,
    a_mipmap,
    a_surface,
    a_texture,
    an_array,
    create,
    described,
    linear,
    pitch2d,
    sampler,
    texture_of,
    view_of,
)
from sim_driver import Driver, byref, c_uint, c_uint64, c_void_p, run_alone


def status(cu: Driver, resource: ResourceDesc, desc: TextureDesc | None = None, view: ViewDesc | None = None) -> str:
    texture = c_uint64()
    given = byref(resource), byref(desc or sampler()), None if view is None else byref(view)
    answer = cu.status("cuTexObjectCreate", byref(texture), *given)
    if answer == "SUCCESS":
        cu.cuTexObjectDestroy(texture)
    return answer


@pytest.fixture
def memory(cu: Driver) -> Iterator[int]:
    pointer = cu.alloc(1 << 20)
    yield pointer.value
    cu.cuMemFree_v2(pointer)


def test_a_texture_says_what_it_was_made_of(cu: Driver) -> None:
    array_desc = described((4, 6), channels=4)
    with an_array(cu, array_desc) as array:
        desc = sampler(MIRROR, LINEAR, NORMALIZED, (0.5, 1, 2, 3), anisotropy=99, bias=0.25)
        view = view_of(array_desc, 0x18)
        resource = texture_of(array)
        with a_texture(cu, resource, desc, view) as texture:
            assert bytes(cu.out(ResourceDesc, "cuTexObjectGetResourceDesc", texture)) == bytes(resource)
            assert bytes(cu.out(TextureDesc, "cuTexObjectGetTextureDesc", texture)) == bytes(desc)
            assert bytes(cu.out(ViewDesc, "cuTexObjectGetResourceViewDesc", texture)) == bytes(view)
        with a_texture(cu, resource, desc) as texture:
            status = cu.status("cuTexObjectGetResourceViewDesc", byref(view), texture)
            assert status == "INVALID_VALUE"


def test_a_surface_says_what_it_was_made_of(cu: Driver) -> None:
    with an_array(cu, described((4, 6), SURFACE)) as array, a_surface(cu, array) as surface:
        assert bytes(cu.out(ResourceDesc, "cuSurfObjectGetResourceDesc", surface)) == bytes(texture_of(array))


def test_objects_are_counted(cu: Driver, sim: ModuleType) -> None:
    def counts() -> tuple[int, int]:
        return sim.live()["texture objects"].number, sim.live()["surface objects"].number

    before = counts()
    with (
        an_array(cu, described((4, 6), SURFACE)) as array,
        a_surface(cu, array),
        a_texture(cu, texture_of(array), sampler()),
        a_texture(cu, texture_of(array), sampler()),
    ):
        assert counts() == (before[0] + 2, before[1] + 1)
    assert counts() == before


@pytest.mark.parametrize(
    ("desc", "kind", "answer"),
    [
        (sampler(POINT), FLOAT, "SUCCESS"),
        (sampler(4), FLOAT, "INVALID_VALUE"),
        (sampler(-1), FLOAT, "INVALID_VALUE"),
        (sampler(CLAMP, 2), FLOAT, "INVALID_VALUE"),
        (sampler(CLAMP, mipmap_filter=2), FLOAT, "INVALID_VALUE"),
        (sampler(CLAMP, flags=4), FLOAT, "INVALID_VALUE"),
        (sampler(CLAMP, flags=NORMALIZED | NO_TRILINEAR | SRGB), UINT8, "SUCCESS"),
        (sampler(WRAP), FLOAT, "SUCCESS"),  # without normalised coordinates it clamps
        (sampler(CLAMP, LINEAR), HALF, "SUCCESS"),
        (sampler(CLAMP, LINEAR), UINT8, "SUCCESS"),
        (sampler(CLAMP, LINEAR, READ_AS_INTEGER), UINT8, "INVALID_VALUE"),
        (sampler(CLAMP, LINEAR), UINT32, "INVALID_VALUE"),
        (sampler(CLAMP, LINEAR, READ_AS_INTEGER), FLOAT, "SUCCESS"),
        (sampler(CLAMP, POINT, SEAMLESS), FLOAT, "INVALID_VALUE"),
    ],
)
def test_samplers_that_cannot_be_are_refused(cu: Driver, desc: TextureDesc, kind: int, answer: str) -> None:
    with an_array(cu, described((4, 6), kind=kind)) as array:
        assert status(cu, texture_of(array), desc) == answer


def test_seamless_textures_are_cubemaps(cu: Driver) -> None:
    with an_array(cu, Array3DDesc(4, 4, 6, FLOAT, 1, CUBEMAP)) as array:
        assert status(cu, texture_of(array), sampler(CLAMP, LINEAR, SEAMLESS)) == "SUCCESS"


def test_mipmapped_textures_have_normalised_coordinates(cu: Driver) -> None:
    with a_mipmap(cu, described((4, 6), kind=UINT32), 3) as mipmap:
        resource = texture_of(mipmap, mipmapped=True)
        assert status(cu, resource, sampler()) == "INVALID_VALUE"
        assert status(cu, resource, sampler(flags=NORMALIZED)) == "SUCCESS"
        assert status(cu, resource, sampler(flags=NORMALIZED, mipmap_filter=LINEAR)) == "INVALID_VALUE"


@pytest.mark.parametrize(
    ("resource", "answer"),
    [
        ((0, FLOAT, 4, 4096), "SUCCESS"),
        ((512, SINT16, 2, 4096), "SUCCESS"),
        ((256, FLOAT, 1, 4096), "INVALID_VALUE"),  # not aligned
        ((0, FLOAT, 3, 4096), "INVALID_VALUE"),
        ((0, 5, 1, 4096), "INVALID_VALUE"),
        ((0, UNORM8X4, 4, 4096), "INVALID_VALUE"),
        ((0, FLOAT, 4, 15), "INVALID_VALUE"),  # not one element
        ((0, FLOAT, 1, (1 << 20) + 4), "INVALID_VALUE"),  # more than there is
    ],
)
def test_linear_memory(cu: Driver, memory: int, resource: tuple[int, int, int, int], answer: str) -> None:
    offset, kind, channels, size = resource
    assert status(cu, linear(memory + offset, kind, channels, size)) == answer


@pytest.mark.parametrize(
    ("resource", "answer"),
    [
        ((0, FLOAT, 1, 30, 20, 128), "SUCCESS"),
        ((32, FLOAT, 1, 30, 20, 128), "INVALID_VALUE"),  # not aligned
        ((0, FLOAT, 1, 30, 20, 96), "INVALID_VALUE"),  # a pitch shorter than a row
        ((0, FLOAT, 1, 20, 20, 120), "INVALID_VALUE"),  # not a multiple of 32
        ((0, FLOAT, 1, 0, 20, 128), "INVALID_VALUE"),
        ((0, FLOAT, 1, 30, 0, 128), "INVALID_VALUE"),
        ((0, UINT8, 1, 131073, 1, 131104), "INVALID_VALUE"),
        ((0, UINT8, 1, 1, 1, 2097152), "INVALID_VALUE"),
        ((0, FLOAT, 1, 32, 8193, 128), "INVALID_VALUE"),  # more than there is
    ],
)
def test_pitched_memory(cu: Driver, memory: int, resource: tuple[int, ...], answer: str) -> None:
    offset, *rest = resource
    assert status(cu, pitch2d(memory + offset, *rest)) == answer  # type: ignore[arg-type]


def test_sizes_of_memory_are_those_of_the_attributes(cu: Driver) -> None:
    widest = cu.out(c_uint, "cuDeviceGetAttribute", 69, 0).value
    highest = cu.out(c_uint, "cuDeviceGetAttribute", 71, 0).value
    pointer = cu.alloc(widest + 1)
    assert status(cu, linear(pointer, UINT8, 1, widest)) == "SUCCESS"
    assert status(cu, linear(pointer, UINT8, 1, widest + 1)) == "INVALID_VALUE"
    assert status(cu, pitch2d(pointer, UINT8, 1, 1, highest, 32)) == "SUCCESS"
    assert status(cu, pitch2d(pointer, UINT8, 1, 1, highest + 1, 32)) == "INVALID_VALUE"
    cu.cuMemFree_v2(pointer)


def test_the_filter_of_a_buffer_is_ignored(cu: Driver, memory: int) -> None:
    assert status(cu, linear(memory, UINT32, 1, 4096), sampler(WRAP, LINEAR)) == "SUCCESS"
    assert status(cu, pitch2d(memory, UINT32, 1, 8, 8, 32), sampler(WRAP, LINEAR)) == "INVALID_VALUE"


def test_a_freed_pointer_is_no_resource(cu: Driver) -> None:
    pointer = cu.alloc(512)
    cu.cuMemFree_v2(pointer)
    assert status(cu, linear(pointer, FLOAT, 1, 512)) == "INVALID_VALUE"


FLOAT_1X32, UINT_4X8, UINT_2X8, UINT_BC1 = 0x16, 0x03, 0x02, 0x19


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({}, "SUCCESS"),
        ({"format": 0}, "INVALID_VALUE"),
        ({"format": UINT_4X8}, "SUCCESS"),
        ({"format": UINT_2X8}, "INVALID_VALUE"),  # of another size
        ({"format": UINT_BC1}, "NOT_SUPPORTED"),
        ({"format": 0x23}, "INVALID_VALUE"),
        ({"width": 3}, "INVALID_VALUE"),
        ({"height": 3}, "INVALID_VALUE"),
        ({"depth": 3}, "INVALID_VALUE"),
        ({"first_level": 1}, "INVALID_VALUE"),
        ({"last_level": 1}, "INVALID_VALUE"),
        ({"first_layer": 1, "last_layer": 4}, "SUCCESS"),
        ({"first_layer": 2, "last_layer": 1}, "INVALID_VALUE"),
        ({"last_layer": 5}, "INVALID_VALUE"),
    ],
)
def test_views(cu: Driver, change: dict[str, int], answer: str) -> None:
    desc = described((4, 6), layers=5)
    with an_array(cu, desc) as array:
        view = view_of(desc, FLOAT_1X32)
        for name, value in change.items():
            setattr(view, name, value)
        assert status(cu, texture_of(array), None, view) == answer


def test_memory_has_no_views(cu: Driver, memory: int) -> None:
    view = ViewDesc(FLOAT_1X32, 1024, 0, 0)
    assert status(cu, linear(memory, FLOAT, 1, 4096), None, view) == "INVALID_VALUE"


def test_descriptors_that_say_nothing(cu: Driver) -> None:
    with an_array(cu, described((4, 6))) as array:
        resource = texture_of(array)
        arguments: list[Any] = [byref(c_uint64()), byref(resource), byref(sampler()), None]
        for missing in range(3):
            given = [None if number == missing else argument for number, argument in enumerate(arguments)]
            assert cu.status("cuTexObjectCreate", *given) == "INVALID_VALUE"
        resource.flags = 1
        assert status(cu, resource) == "INVALID_VALUE"
        resource.flags, resource.type = 0, 4
        assert status(cu, resource) == "INVALID_VALUE"
    assert status(cu, texture_of(array)) == "INVALID_VALUE"
    assert status(cu, texture_of(c_void_p(12345))) == "INVALID_VALUE"


def test_a_surface_is_an_array_made_for_it(cu: Driver, memory: int) -> None:
    def answer(resource: ResourceDesc) -> str:
        return cu.status("cuSurfObjectCreate", byref(c_uint64()), byref(resource))

    with an_array(cu, described((4, 6))) as array:
        assert answer(texture_of(array)) == "INVALID_VALUE"
    with an_array(cu, described((4, 6), SURFACE)) as array:
        resource = texture_of(array)
        resource.flags = 1
        assert answer(resource) == "INVALID_VALUE"
    with a_mipmap(cu, described((4, 6), SURFACE), 2) as mipmap:
        assert answer(texture_of(mipmap, mipmapped=True)) == "INVALID_VALUE"
        with a_surface(cu, cu.out(c_void_p, "cuMipmappedArrayGetLevel", mipmap, 1)):
            pass
    assert answer(linear(memory, FLOAT, 1, 4096)) == "INVALID_VALUE"


def test_handles_that_are_none(cu: Driver) -> None:
    with an_array(cu, described((4, 6), SURFACE)) as array:
        with a_texture(cu, texture_of(array), sampler(BORDER)) as texture, a_surface(cu, array) as surface:
            assert cu.status("cuSurfObjectDestroy", texture) == "INVALID_VALUE"
            assert cu.status("cuTexObjectDestroy", surface) == "INVALID_VALUE"
            assert cu.status("cuTexObjectGetTextureDesc", None, texture) == "INVALID_VALUE"
        for function, handle in (("cuTexObject", texture), ("cuSurfObject", surface)):
            assert cu.status(function + "Destroy", handle) == "INVALID_VALUE"
            assert cu.status(function + "Destroy", c_uint64(0)) == "INVALID_VALUE"
            assert cu.status(function + "GetResourceDesc", byref(ResourceDesc()), handle) == "INVALID_VALUE"


def test_objects_belong_to_a_context(driver: Driver, sim: ModuleType) -> None:
    before = sim.live()
    first = driver.start()
    array = create(driver, described((4, 6), SURFACE))
    texture = driver.out(c_uint64, "cuTexObjectCreate", byref(texture_of(array)), byref(sampler()), None)
    surface = driver.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(array)))
    second = driver.out(c_void_p, "cuCtxCreate_v2", 0, 0)
    other = create(driver, described((4, 6), SURFACE))
    driver.out(c_uint64, "cuTexObjectCreate", byref(texture_of(other)), byref(sampler()), None)
    driver.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(other)))
    destroyed = ("cuTexObjectDestroy", texture), ("cuSurfObjectDestroy", surface)
    assert [driver.status(*call) for call in destroyed] == ["INVALID_VALUE"] * 2
    driver.cuCtxPopCurrent_v2(byref(c_void_p()))
    driver.cuCtxSetCurrent(None)
    assert [driver.status(*call) for call in destroyed] == ["INVALID_CONTEXT"] * 2
    driver.cuCtxDestroy_v2(second)
    driver.cuCtxSetCurrent(first)
    driver.cuTexObjectDestroy(texture)
    driver.cuSurfObjectDestroy(surface)
    driver.cuArrayDestroy(array)
    driver.cuDevicePrimaryCtxRelease_v2(0)
    assert sim.live() == before


def test_objects_left_at_exit_are_reported() -> None:
    printed = run_alone(
        """
        from sim_arrays import *
        cu.start()
        array = create(cu, described((4, 6), SURFACE))
        cu.out(c_uint64, "cuTexObjectCreate", byref(texture_of(array)), byref(sampler()), None)
        cu.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(array)))
        """,
        CUDA_SIM_REPORT="stderr",
    )
    assert "1 texture objects never destroyed" in printed
    assert "1 surface objects never destroyed" in printed
