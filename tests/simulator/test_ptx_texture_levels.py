# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""tex of mipmapped arrays, against the rules of sampling in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_runner import Runner
from sim_arrays import (
    CLAMP,
    CUBEMAP,
    FORMATS,
    LINEAR,
    MIRROR,
    NORMALIZED,
    POINT,
    WRAP,
    Array3DDesc,
    a_mipmap,
    a_texture,
    described,
    sampler,
    texture_of,
    upload,
    view_of,
)
from sim_driver import Driver, c_void_p
from texture_kernels import COUNT, Data, columns, directions, floats, places, run, same
from texture_rules import face_of, sample

FLOAT_2X32 = 0x17  # CU_RES_VIEW_FORMAT_FLOAT_2X32


@pytest.fixture
def cu(newest: Runner) -> Driver:
    return newest.gpu.driver


def mipmap_of(cu: Driver, mipmap: c_void_p, contents: list[Data]) -> None:
    for number, data in enumerate(contents):
        level: c_void_p = cu.out(c_void_p, "cuMipmappedArrayGetLevel", mipmap, number)
        upload(cu, level, data)


def blend(contents: list[Data], lod: Data, mipmap_filter: int, *coordinates: Data, **rules: Any) -> Data:
    """Return what is read at levels of detail that are within the levels there are. They are rounded down to 256ths."""
    levels = np.stack([sample(data, *coordinates, normalized=True, **rules) for data in contents])
    each = np.arange(len(lod))
    steps = np.floor(lod * 256).astype(int)
    if mipmap_filter == POINT:
        return levels[(steps + 128) // 256, each]
    first, weight = steps // 256, (steps % 256 / 256)[:, None]
    second = np.minimum(first + 1, len(contents) - 1)
    return (1 - weight) * levels[first, each] + weight * levels[second, each]


def pyramid(rng: np.random.Generator, shape: tuple[int, ...], levels: int, *, layers: int = 0) -> list[Data]:
    full = (1,) * (3 - len(shape)) + shape
    sizes = [[max(1, size >> level) for size in full] for level in range(levels)]
    return [floats(rng, layers or size[0], *size[1:], 2) for size in sizes]


@pytest.mark.parametrize("filtering", [POINT, LINEAR])
@pytest.mark.parametrize("mipmap_filter", [POINT, LINEAR])
@pytest.mark.parametrize(
    ("kernel", "shape", "layers"),
    [
        ("level1", (32,), 0),
        ("level2", (16, 32), 0),
        ("level3", (8, 16, 32), 0),
        ("level_layered1", (32,), 3),
        ("level_layered2", (16, 32), 3),
    ],
)
def test_levels_of_detail(
    newest: Runner,
    cu: Driver,
    rng: np.random.Generator,
    kernel: str,
    shape: tuple[int, ...],
    layers: int,
    mipmap_filter: int,
    filtering: int,
) -> None:
    contents = pyramid(rng, shape, 4, layers=layers)
    at, dx = places(rng, shape, normalized=True), np.zeros((COUNT, 1), np.float32)
    at[:, 3] = rng.uniform(-1, 5, COUNT)
    if layers:
        dx[:, 0] = rng.integers(0, layers, COUNT)
    desc = sampler(MIRROR, filtering, NORMALIZED, mipmap_filter=mipmap_filter, most_level=99)
    with a_mipmap(cu, described(shape, channels=2, layers=layers), 4) as mipmap:
        mipmap_of(cu, mipmap, contents)
        with a_texture(cu, texture_of(mipmap, mipmapped=True), desc) as texture:
            found = run(newest, kernel, texture, at, dx)
    lod = np.clip(at[:, 3].astype(np.float64), 0, 3)
    rules = {"filtering": filtering, "mode": MIRROR, "layer": dx[:, 0].astype(int) if layers else None}
    same(found, blend(contents, lod, mipmap_filter, *columns(at, len(shape)), **rules), LINEAR)


@pytest.mark.parametrize("layers", [0, 2])
def test_levels_of_cubemaps(newest: Runner, cu: Driver, rng: np.random.Generator, layers: int) -> None:
    contents = [floats(rng, 6 * (layers or 1), size, size, 2) for size in (16, 8, 4)]
    at, dx = directions(rng), rng.integers(0, layers or 1, (COUNT, 1)).astype(np.float32)
    at[:, 3] = rng.uniform(0, 2, COUNT)
    desc = sampler(CLAMP, LINEAR, NORMALIZED, mipmap_filter=LINEAR, most_level=99)
    flags = CUBEMAP | (1 if layers else 0)
    with a_mipmap(cu, Array3DDesc(16, 16, len(contents[0]), FORMATS["float32"], 2, flags), 3) as mipmap:
        mipmap_of(cu, mipmap, contents)
        with a_texture(cu, texture_of(mipmap, mipmapped=True), desc) as texture:
            found = run(newest, "level_cubes" if layers else "level_cube", texture, at, dx)
    face, s, t = face_of(at[:, :3].astype(np.float64))
    layer = face + 6 * dx[:, 0].astype(int)
    expected = blend(contents, at[:, 3].astype(np.float64), LINEAR, s, t, filtering=LINEAR, layer=layer)
    same(found, expected, LINEAR)


@pytest.mark.parametrize(
    ("bias", "least", "most"),
    [(0, 0, 99), (0.75, 0, 99), (-1.25, 0, 99), (0.3, 0, 99), (-1.7, 0, 99), (0, 1.3, 2.7), (0.5, 2, 1), (0, 0, 0)],
)
def test_levels_have_a_bias_and_bounds(
    newest: Runner, cu: Driver, rng: np.random.Generator, bias: float, least: float, most: float
) -> None:
    contents = pyramid(rng, (16, 32), 4)
    at = places(rng, (16, 32), normalized=True)
    at[:, 3] = rng.uniform(-1, 5, COUNT)
    desc = sampler(WRAP, POINT, NORMALIZED, mipmap_filter=LINEAR, bias=bias, least_level=least, most_level=most)
    with a_mipmap(cu, described((16, 32), channels=2), 4) as mipmap:
        mipmap_of(cu, mipmap, contents)
        with a_texture(cu, texture_of(mipmap, mipmapped=True), desc) as texture:
            found = run(newest, "level2", texture, at)
            base = run(newest, "base2", texture, at), run(newest, "tex2", texture, at)
    # A bias is rounded towards zero before it is added.
    lod = np.floor(at[:, 3].astype(np.float64) * 256) / 256 + np.trunc(bias * 256) / 256
    lod = np.clip(np.maximum(np.minimum(lod, most), least), 0, 3)
    same(found, blend(contents, lod, LINEAR, *columns(at, 2), mode=WRAP), LINEAR)
    # Without a level the first one is read, if it is within the bounds.
    first = np.full(COUNT, max(0, least))
    for values in base:
        same(values, blend(contents, first, LINEAR, *columns(at, 2), mode=WRAP), LINEAR)


def test_a_view_has_levels_and_layers_of_its_own(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    contents = pyramid(rng, (16, 32), 4, layers=5)
    at = places(rng, (16, 32), normalized=True)
    at[:, 3], dx = rng.uniform(-1, 5, COUNT), rng.integers(0, 4, (COUNT, 1)).astype(np.float32)
    array_desc = described((16, 32), channels=2, layers=5)
    desc = sampler(CLAMP, POINT, NORMALIZED, most_level=99)
    view = view_of(array_desc, FLOAT_2X32, first_level=1, last_level=2, first_layer=1, last_layer=3)
    with a_mipmap(cu, array_desc, 4) as mipmap:
        mipmap_of(cu, mipmap, contents)
        with a_texture(cu, texture_of(mipmap, mipmapped=True), desc, view) as texture:
            found = run(newest, "level_layered2", texture, at, dx)
    seen = [data[1:4] for data in contents[1:3]]
    lod = np.clip(at[:, 3].astype(np.float64), 0, 1)
    same(found, blend(seen, lod, POINT, *columns(at, 2), layer=dx[:, 0].astype(int)), POINT)


def length(vectors: Data) -> Data:
    """Return about the lengths of vectors, as an H100 computes them: a sixteenth off at most."""
    parts = np.sort(np.abs(vectors), axis=1)[:, ::-1]
    return parts @ np.array([1, 11 / 32, 1 / 4])[: parts.shape[1]]  # type: ignore[no-any-return]


def level_of(dx: Data, dy: Data) -> Data:
    """Return the level for derivatives in texels: of about the longer axis of the ellipse that they span."""
    lengths = length(dx), length(dy), 11 / 16 * length(dx + dy), 11 / 16 * length(dx - dy)
    return np.rint(np.log2(np.maximum.reduce(lengths)) * 256) / 256  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kernel", "shape", "layers"),
    [
        ("grad1", (32,), 0),
        ("grad2", (16, 32), 0),
        ("grad3", (8, 16, 32), 0),
        ("grad_layered1", (32,), 3),
        ("grad_layered2", (16, 32), 3),
    ],
)
def test_derivatives_choose_a_level(
    newest: Runner, cu: Driver, rng: np.random.Generator, kernel: str, shape: tuple[int, ...], layers: int
) -> None:
    contents = pyramid(rng, shape, 4, layers=layers)
    at = places(rng, shape, normalized=True, layers=layers)
    dx, dy = ((2 ** rng.uniform(-7, -1, (COUNT, 4))).astype(np.float32) for _ in range(2))
    desc = sampler(CLAMP, POINT, NORMALIZED, mipmap_filter=LINEAR, most_level=99)
    with a_mipmap(cu, described(shape, channels=2, layers=layers), 4) as mipmap:
        mipmap_of(cu, mipmap, contents)
        with a_texture(cu, texture_of(mipmap, mipmapped=True), desc) as texture:
            found = run(newest, kernel, texture, at, dx, dy)
    sizes = np.array(shape[::-1], np.float64)
    lod = np.clip(level_of(*(d[:, : len(shape)].astype(np.float64) * sizes for d in (dx, dy))), 0, 3)
    layer = at[:, 3].astype(int) if layers else None
    same(found, blend(contents, lod, LINEAR, *columns(at, len(shape)), layer=layer), LINEAR)


@pytest.mark.parametrize("layers", [0, 2])
def test_derivatives_of_directions_choose_a_level(
    newest: Runner, cu: Driver, rng: np.random.Generator, layers: int
) -> None:
    count = 6 * (layers or 1)
    contents = [np.full((count, size, size, 1), level, np.float32) for level, size in enumerate((64, 32, 16, 8))]
    for data in contents:
        data[6:] += 100  # the second cube
    at = directions(rng)
    dx, dy = (rng.normal(size=(COUNT, 3)).astype(np.float32) * 0.05 for _ in range(2))
    desc = sampler(CLAMP, LINEAR, NORMALIZED, mipmap_filter=LINEAR, most_level=99)
    at[:, 3] = rng.integers(0, layers or 1, COUNT)
    flags = CUBEMAP | (1 if layers else 0)
    with a_mipmap(cu, Array3DDesc(64, 64, count, FORMATS["float32"], 1, flags), 4) as mipmap:
        mipmap_of(cu, mipmap, contents)
        with a_texture(cu, texture_of(mipmap, mipmapped=True), desc) as texture:
            found = run(newest, "grad_cubes" if layers else "grad_cube", texture, at, dx, dy)[:, 0]
    found -= 100 * at[:, 3]
    here = at[:, :3].astype(np.float64)
    face, s, t = face_of(here)
    known, steps = np.ones(COUNT, bool), []
    for d in (dx, dy):  # how far it is to the direction with the derivative added, if it meets the same face
        other, u, v = face_of(here + d)
        known &= other == face
        steps.append(np.stack([u - s, v - t], axis=1) * 64)
    lod = np.clip(level_of(*steps), 0, 3)
    assert known.sum() > COUNT * 0.8
    assert (np.abs(found - lod)[known] < 1 / 64).all()
    assert len(np.unique(found)) > 100


def test_whole_levels(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    contents, at = pyramid(rng, (16, 32), 3), np.zeros((COUNT, 4), np.float32)
    at[:, 0], at[:, 1], at[:, 3] = (rng.integers(0, most, COUNT) for most in (8, 4, 3))
    with a_mipmap(cu, described((16, 32), channels=2), 3) as mipmap:
        mipmap_of(cu, mipmap, contents)
        with a_texture(cu, texture_of(mipmap, mipmapped=True), sampler(flags=NORMALIZED)) as texture:
            found = run(newest, "whole_level2", texture, at)
    levels = np.stack([data[0, :4, :8] for data in contents])
    assert (found[:, :2] == levels[at[:, 3].astype(int), at[:, 1].astype(int), at[:, 0].astype(int)]).all()
