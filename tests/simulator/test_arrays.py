# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays and mipmapped arrays: what can be made, what it says of itself, and what it leaves behind."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from sim_arrays import (
    BC1,
    COLOR,
    CUBEMAP,
    DEFERRED,
    DEPTH_TEXTURE,
    FLOAT,
    GATHER,
    LAYERED,
    NV12,
    SNORM16X2,
    SPARSE,
    SURFACE,
    UINT8,
    UNORM8X4,
    Array3DDesc,
    ArrayDesc,
    a_mipmap,
    an_array,
    create,
    described,
)
from sim_driver import Driver, byref, c_size_t, c_uint, c_void_p, ctypes, run_alone

KINDS = ("arrays", "mipmapped arrays", "array allocations")
MIB = 1 << 20


def live(sim: ModuleType) -> list[tuple[int, int]]:
    return [sim.live()[kind] for kind in KINDS]


def free_memory(cu: Driver) -> int:
    free = c_size_t()
    cu.cuMemGetInfo_v2(byref(free), None)
    return free.value


def members(desc: Any) -> tuple[int, ...]:
    return tuple(getattr(desc, name) for name, *_ in desc._fields_)


def status(cu: Driver, *desc: int) -> str:
    array = c_void_p()
    answer = cu.status("cuArray3DCreate_v2", byref(array), byref(Array3DDesc(*desc)))
    if answer == "SUCCESS":
        cu.cuArrayDestroy(array)
    return answer


SHAPES = [
    (7, 0, 0, 0),
    (7, 5, 0, SURFACE),
    (7, 5, 3, 0),
    (7, 0, 3, LAYERED),
    (7, 5, 3, LAYERED | SURFACE),
    (8, 8, 6, CUBEMAP),
    (8, 8, 12, CUBEMAP | LAYERED),
    (7, 5, 0, GATHER),
    (7, 5, 0, COLOR | SURFACE),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_array_says_what_it_was_made_of(cu: Driver, shape: tuple[int, int, int, int]) -> None:
    desc = Array3DDesc(*shape[:3], FLOAT, 2, shape[3])
    with an_array(cu, desc) as array:
        assert members(cu.out(Array3DDesc, "cuArray3DGetDescriptor_v2", array)) == members(desc)
        flat = ArrayDesc()
        if shape[2]:
            assert cu.status("cuArrayGetDescriptor_v2", byref(flat), array) == "INVALID_VALUE"
        else:
            cu.cuArrayGetDescriptor_v2(byref(flat), array)
            assert members(flat) == (*shape[:2], FLOAT, 2)


def test_arrays_of_one_and_two_dimensions_have_a_function_of_their_own(cu: Driver) -> None:
    for height in (0, 9):
        array = cu.out(c_void_p, "cuArrayCreate_v2", byref(ArrayDesc(11, height, UINT8, 4)))
        assert members(cu.out(Array3DDesc, "cuArray3DGetDescriptor_v2", array)) == (11, height, 0, UINT8, 4, 0)
        cu.cuArrayDestroy(array)
    assert cu.status("cuArrayCreate_v2", byref(c_void_p()), byref(ArrayDesc(0, 9, UINT8, 4))) == "INVALID_VALUE"
    assert cu.status("cuArrayCreate_v2", None, byref(ArrayDesc(1, 1, UINT8, 4))) == "INVALID_VALUE"
    assert cu.status("cuArrayCreate_v2", byref(c_void_p()), None) == "INVALID_VALUE"


@pytest.mark.parametrize(
    ("desc", "answer"),
    [
        ((0, 0, 0, FLOAT, 1, 0), "INVALID_VALUE"),
        ((4, 4, 0, FLOAT, 3, 0), "INVALID_VALUE"),
        ((4, 4, 0, FLOAT, 0, 0), "INVALID_VALUE"),
        ((4, 4, 0, 0x21, 1, 0), "INVALID_VALUE"),
        ((4, 4, 0, 0xA0, 1, 0), "INVALID_VALUE"),
        ((4, 4, 0, NV12, 1, 0), "NOT_SUPPORTED"),
        ((4, 4, 0, BC1, 4, 0), "NOT_SUPPORTED"),
        ((4, 4, 0, UNORM8X4, 4, 0), "SUCCESS"),
        ((4, 4, 0, UNORM8X4, 1, 0), "INVALID_VALUE"),
        ((4, 4, 0, SNORM16X2, 2, 0), "SUCCESS"),
        ((4, 0, 4, FLOAT, 1, 0), "INVALID_VALUE"),  # a height is missing
        ((4, 4, 0, FLOAT, 1, LAYERED), "INVALID_VALUE"),  # no layers
        ((4, 5, 6, FLOAT, 1, CUBEMAP), "INVALID_VALUE"),
        ((4, 4, 5, FLOAT, 1, CUBEMAP), "INVALID_VALUE"),
        ((4, 4, 12, FLOAT, 1, CUBEMAP), "INVALID_VALUE"),
        ((4, 4, 9, FLOAT, 1, CUBEMAP | LAYERED), "INVALID_VALUE"),
        ((4, 0, 0, FLOAT, 1, GATHER), "INVALID_VALUE"),
        ((4, 4, 4, FLOAT, 1, GATHER), "INVALID_VALUE"),
        ((4, 4, 4, FLOAT, 1, GATHER | LAYERED), "INVALID_VALUE"),
        ((4, 4, 0, FLOAT, 1, 0x200), "INVALID_VALUE"),
        ((4, 4, 0, FLOAT, 1, SPARSE), "NOT_SUPPORTED"),
        ((4, 4, 0, FLOAT, 1, DEFERRED), "NOT_SUPPORTED"),
        ((4, 4, 0, FLOAT, 1, DEPTH_TEXTURE), "NOT_SUPPORTED"),
    ],
)
def test_arrays_that_cannot_be_are_refused(cu: Driver, desc: tuple[int, ...], answer: str) -> None:
    assert status(cu, *desc) == answer


# For each shape, the attributes with its largest width, height and depth; those with a surface, and the flags.
LIMITS: dict[str, tuple[tuple[int, int, int], tuple[int, int, int] | None, int]] = {
    "1d": ((21, 0, 0), (55, 0, 0), 0),
    "2d": ((22, 23, 0), (56, 57, 0), 0),
    "3d": ((24, 25, 26), (58, 59, 60), 0),
    "1d layered": ((42, 0, 43), (61, 0, 62), LAYERED),
    "2d layered": ((27, 28, 29), (63, 64, 65), LAYERED),
    "gather": ((45, 46, 0), None, GATHER),
}


@pytest.mark.parametrize(
    ("shape", "surface"), [(shape, surface) for shape in LIMITS for surface in (False, True) if LIMITS[shape][surface]]
)
def test_sizes_are_those_of_the_attributes(cu: Driver, shape: str, surface: bool) -> None:
    limits, flags = LIMITS[shape][surface], LIMITS[shape][2] | (SURFACE if surface else 0)
    assert limits is not None
    most = [cu.out(c_uint, "cuDeviceGetAttribute", number, 0).value if number else 0 for number in limits]
    for axis in range(3):
        if not most[axis]:
            continue
        size = [min(value, 1) for value in most]
        size[axis] = most[axis]
        assert status(cu, *size, UINT8, 1, flags) == "SUCCESS", size
        # Arrays of three dimensions may be deeper where they are narrower, but not with a surface.
        size[axis] = 32769 if shape == "3d" and axis == 2 else most[axis] + 1
        assert status(cu, *size, UINT8, 1, flags) == "INVALID_VALUE", size
    if shape == "3d":
        assert status(cu, 1, 1, 32768, UINT8, 1, flags) == ("INVALID_VALUE" if surface else "SUCCESS")
        assert status(cu, 8193, 1, 32768, UINT8, 1, flags) == "INVALID_VALUE"


def test_cubemaps_have_limits_too(cu: Driver) -> None:
    most = cu.out(c_uint, "cuDeviceGetAttribute", 52, 0).value
    assert status(cu, most + 1, most + 1, 6, UINT8, 1, CUBEMAP) == "INVALID_VALUE"
    layers = cu.out(c_uint, "cuDeviceGetAttribute", 54, 0).value
    assert status(cu, 1, 1, layers, UINT8, 1, CUBEMAP | LAYERED) == "SUCCESS"
    assert status(cu, 1, 1, layers + 6, UINT8, 1, CUBEMAP | LAYERED) == "INVALID_VALUE"


def test_arrays_are_counted_and_take_memory_of_the_device(cu: Driver, sim: ModuleType) -> None:
    before, free = live(sim), free_memory(cu)
    with an_array(cu, described((1024, 1024), channels=1)) as _, a_mipmap(cu, described((512, 512)), 3) as _:
        sizes = 4 * MIB, MIB + MIB // 4 + MIB // 16
        now = live(sim)
        assert [one[0] - other[0] for one, other in zip(now, before, strict=True)] == [1, 1, 2]
        assert now[2][1] - before[2][1] == sum(sizes)
        assert free - free_memory(cu) == sum(sizes)
    assert (live(sim), free_memory(cu)) == (before, free)


def test_arrays_larger_than_the_memory_are_refused(cu: Driver, sim: ModuleType) -> None:
    before = live(sim)
    desc = described((16384, 16384), channels=4)
    assert cu.status("cuArray3DCreate_v2", byref(c_void_p()), byref(desc)) == "OUT_OF_MEMORY"
    assert cu.status("cuMipmappedArrayCreate", byref(c_void_p()), byref(desc), 2) == "OUT_OF_MEMORY"
    assert live(sim) == before


def test_handles_that_are_none(cu: Driver) -> None:
    array = create(cu, described((4, 4)))
    cu.cuArrayDestroy(array)
    desc = Array3DDesc()
    assert cu.status("cuArrayDestroy", array) == "CONTEXT_IS_DESTROYED"
    assert cu.status("cuArrayDestroy", c_void_p(12345)) == "INVALID_HANDLE"
    assert cu.status("cuArrayDestroy", None) == "INVALID_VALUE"
    assert cu.status("cuArray3DGetDescriptor_v2", byref(desc), c_void_p(12345)) == "INVALID_HANDLE"
    assert cu.status("cuMipmappedArrayDestroy", c_void_p(12345)) == "INVALID_HANDLE"
    with an_array(cu, described((4, 4))) as array:
        assert cu.status("cuArray3DGetDescriptor_v2", None, array) == "INVALID_VALUE"
        assert cu.status("cuMipmappedArrayDestroy", array) == "INVALID_HANDLE"


def test_arrays_without_tiles_planes_or_later_memory_say_so(cu: Driver) -> None:
    room = (ctypes.c_char * 64)()
    with an_array(cu, described((4, 4))) as array, a_mipmap(cu, described((4, 4)), 2) as mipmap:
        assert cu.status("cuArrayGetMemoryRequirements", room, array, 0) == "INVALID_VALUE"
        assert cu.status("cuArrayGetSparseProperties", room, array) == "INVALID_VALUE"
        assert cu.status("cuArrayGetPlane", room, array, 0) == "INVALID_VALUE"
        assert cu.status("cuMipmappedArrayGetMemoryRequirements", room, mipmap, 0) == "INVALID_VALUE"
        assert cu.status("cuMipmappedArrayGetSparseProperties", room, mipmap) == "INVALID_VALUE"
    assert cu.status("cuArrayGetPlane", room, c_void_p(12345), 0) == "INVALID_HANDLE"


@pytest.mark.parametrize(
    ("size", "flags", "asked", "levels"),
    [
        ((16, 0, 0), 0, 99, [(16, 0, 0), (8, 0, 0), (4, 0, 0), (2, 0, 0), (1, 0, 0)]),
        ((9, 4, 0), 0, 99, [(9, 4, 0), (4, 2, 0), (2, 1, 0), (1, 1, 0)]),
        ((4, 2, 9), 0, 99, [(4, 2, 9), (2, 1, 4), (1, 1, 2), (1, 1, 1)]),
        ((4, 2, 9), LAYERED, 99, [(4, 2, 9), (2, 1, 9), (1, 1, 9)]),
        ((4, 4, 6), CUBEMAP | SURFACE, 2, [(4, 4, 6), (2, 2, 6)]),
        ((8, 8, 0), 0, 0, [(8, 8, 0)]),
    ],
)
def test_the_levels_of_a_mipmapped_array(
    cu: Driver, sim: ModuleType, size: tuple[int, int, int], flags: int, asked: int, levels: list[tuple[int, int, int]]
) -> None:
    with a_mipmap(cu, Array3DDesc(*size, FLOAT, 1, flags), asked) as mipmap:
        arrays = sim.live()["arrays"].number
        for number, expected in enumerate(levels):
            level = cu.out(c_void_p, "cuMipmappedArrayGetLevel", mipmap, number)
            desc = cu.out(Array3DDesc, "cuArray3DGetDescriptor_v2", level)
            assert members(desc) == (*expected, FLOAT, 1, flags)
            assert cu.out(c_void_p, "cuMipmappedArrayGetLevel", mipmap, number).value == level.value
            assert cu.status("cuArrayDestroy", level) == "INVALID_HANDLE"
        assert cu.status("cuMipmappedArrayGetLevel", byref(c_void_p()), mipmap, len(levels)) == "INVALID_VALUE"
        assert sim.live()["arrays"].number == arrays
    assert cu.status("cuArray3DGetDescriptor_v2", byref(desc), level) == "CONTEXT_IS_DESTROYED"


@pytest.mark.parametrize(("attribute", "axis"), [(77, "1d"), (73, "width"), (74, "height")])
def test_mipmapped_arrays_have_limits_of_their_own(cu: Driver, attribute: int, axis: str) -> None:
    most = cu.out(c_uint, "cuDeviceGetAttribute", attribute, 0).value
    for size, answer in ((most, "SUCCESS"), (most + 1, "INVALID_VALUE")):
        width, height = {"1d": (size, 0), "width": (size, 1), "height": (1, size)}[axis]
        mipmap, desc = c_void_p(), Array3DDesc(width, height, 0, UINT8, 1, 0)
        assert cu.status("cuMipmappedArrayCreate", byref(mipmap), byref(desc), 1) == answer
        if mipmap:
            cu.cuMipmappedArrayDestroy(mipmap)


def test_a_context_takes_its_arrays_along(driver: Driver, sim: ModuleType) -> None:
    before = live(sim)
    context = driver.out(c_void_p, "cuCtxCreate_v2", 0, 0)
    array = create(driver, described((4, 4)))
    mipmap = driver.out(c_void_p, "cuMipmappedArrayCreate", byref(described((4, 4))), 2)
    driver.cuCtxDestroy_v2(context)
    assert live(sim) == before
    assert driver.status("cuArrayDestroy", array) == "CONTEXT_IS_DESTROYED"
    assert driver.status("cuMipmappedArrayDestroy", mipmap) == "CONTEXT_IS_DESTROYED"


def test_arrays_need_a_context(driver: Driver) -> None:
    desc = byref(described((4, 4)))
    assert driver.status("cuArray3DCreate_v2", byref(c_void_p()), desc) == "INVALID_CONTEXT"
    assert driver.status("cuMipmappedArrayCreate", byref(c_void_p()), desc, 1) == "INVALID_CONTEXT"


@pytest.mark.parametrize("number", range(4))
def test_arrays_are_neither_made_nor_destroyed_while_something_is_captured(cu: Driver, number: int) -> None:
    stream, desc = cu.stream(), described((4, 4))
    with an_array(cu, desc) as array, a_mipmap(cu, desc, 2) as mipmap:
        call = (
            ("cuArray3DCreate_v2", byref(c_void_p()), byref(desc)),
            ("cuMipmappedArrayCreate", byref(c_void_p()), byref(desc), 2),
            ("cuArrayDestroy", array),
            ("cuMipmappedArrayDestroy", mipmap),
        )[number]
        cu.cuStreamBeginCapture_v2(stream, 0)
        assert cu.status(*call) == "STREAM_CAPTURE_UNSUPPORTED"
        assert cu.status("cuStreamEndCapture", stream, byref(c_void_p())) == "STREAM_CAPTURE_INVALIDATED"
    cu.cuStreamDestroy_v2(stream)


def test_arrays_left_at_exit_are_reported() -> None:
    printed = run_alone(
        """
        import sim_arrays
        cu.start()
        sim_arrays.create(cu, sim_arrays.described((4, 4)))
        """,
        CUDA_SIM_REPORT="stderr",
    )
    assert "1 arrays never destroyed" in printed
    assert "made by cuArray3DCreate_v2" in printed
