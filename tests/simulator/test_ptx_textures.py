# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""tex, against the rules of sampling in NumPy: formats, coordinates, cubemaps, and what goes wrong."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from ptx_runner import GpuError, Runner
from sim_arrays import (
    BORDER,
    CLAMP,
    CUBEMAP,
    FORMATS,
    LINEAR,
    MIRROR,
    NORMALIZED,
    POINT,
    READ_AS_INTEGER,
    SEAMLESS,
    SRGB,
    UINT8,
    WRAP,
    Array3DDesc,
    a_texture,
    an_array,
    create,
    described,
    linear,
    sampler,
    texture_of,
    upload,
    view_of,
)
from sim_driver import Driver, byref, c_size_t, c_uint64, c_void_p, ctypes, simulator
from texture_kernels import COUNT, anything, columns, directions, floats, places, run, same
from texture_rules import (
    corner_weights,
    direction_to,
    face_of,
    footprint,
    fractions,
    inside,
    linear_from_srgb,
    sample,
    sample_fractions,
)

BORDER_COLOR = (0.5, -2.0, 3.0, 8.0)


@pytest.fixture
def cu(newest: Runner) -> Driver:
    return newest.gpu.driver


# --- Formats ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("kind", FORMATS)
def test_texels_of_every_format_as_they_are(
    newest: Runner, cu: Driver, rng: np.random.Generator, kind: str, channels: int
) -> None:
    data = anything(rng, kind, 5, 7, channels)
    at = places(rng, (5, 7))
    with an_array(cu, described((5, 7), kind=FORMATS[kind], channels=channels)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(flags=READ_AS_INTEGER)) as texture:
            kernel = {"f": "tex2", "i": "signed2", "u": "unsigned2"}[data.dtype.kind]
            found = run(newest, kernel, texture, at)
    expected = sample(data[None], *columns(at, 2))
    if data.dtype.kind != "f":
        found = found.view(np.int32 if data.dtype.kind == "i" else np.uint32)
    assert (found[:, :channels] == expected).all()


@pytest.mark.parametrize("filtering", [POINT, LINEAR])
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16", "float16"])
def test_texels_as_fractions(
    newest: Runner, cu: Driver, rng: np.random.Generator, kind: str, channels: int, filtering: int
) -> None:
    data = anything(rng, kind, 5, 7, channels)
    if data.dtype.kind == "i":
        data[0, 0] = np.iinfo(kind).min  # reads as -1
    at = places(rng, (5, 7))
    with an_array(cu, described((5, 7), kind=FORMATS[kind], channels=channels)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(filtering=filtering)) as texture:
            found = run(newest, "tex2", texture, at)
    same(found, sample_fractions(data[None], *columns(at, 2), filtering=filtering), filtering)


@pytest.mark.parametrize(("kind", "number"), [("uint8", 0xC2), ("uint16", 0xC5), ("int8", 0xC8), ("int16", 0xCB)])
def test_formats_that_are_fractions_always_are(
    newest: Runner, cu: Driver, rng: np.random.Generator, kind: str, number: int
) -> None:
    data, at = anything(rng, kind, 5, 7, 4), places(rng, (5, 7))
    with an_array(cu, described((5, 7), kind=number, channels=4)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(flags=READ_AS_INTEGER)) as texture:
            found = run(newest, "tex2", texture, at)
    same(found, sample_fractions(data[None], *columns(at, 2)))


@pytest.mark.parametrize("filtering", [POINT, LINEAR])
def test_srgb_is_made_linear_before_it_is_filtered(
    newest: Runner, cu: Driver, rng: np.random.Generator, filtering: int
) -> None:
    data, at = anything(rng, "uint8", 5, 7, 4), places(rng, (5, 7))
    with an_array(cu, described((5, 7), kind=UINT8, channels=4)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(CLAMP, filtering, SRGB)) as texture:
            found = run(newest, "tex2", texture, at)
    texels = fractions(data)
    texels[..., :3] = linear_from_srgb(texels[..., :3])
    # Hardware has eight bits of each linear value, and of what it blends them to.
    bits = 1 / 128 if filtering == LINEAR else 1 / 256
    np.testing.assert_allclose(found, sample(texels[None], *columns(at, 2), filtering=filtering), atol=bits)


def test_a_view_reads_texels_as_another_format(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    data, at = anything(rng, "uint32", 5, 7, 1), places(rng, (5, 7))
    desc = described((5, 7), kind=FORMATS["uint32"])
    with an_array(cu, desc) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(filtering=LINEAR), view_of(desc, 0x03)) as texture:
            found = run(newest, "tex2", texture, at)
    bytes_ = data.view(np.uint8).reshape(1, 5, 7, 4)
    same(found, sample_fractions(bytes_, *columns(at, 2), filtering=LINEAR), LINEAR)


# --- Addresses and filters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("filtering", [POINT, LINEAR])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("mode", [WRAP, CLAMP, MIRROR, BORDER])
@pytest.mark.parametrize(
    ("kernel", "shape", "layers"),
    [
        ("tex1", (9,), 0),
        ("tex2", (5, 9), 0),
        ("tex3", (4, 5, 9), 0),
        ("layered1", (9,), 3),
        ("layered2", (5, 9), 3),
    ],
)
def test_coordinates_inside_and_outside(
    newest: Runner,
    cu: Driver,
    rng: np.random.Generator,
    kernel: str,
    shape: tuple[int, ...],
    layers: int,
    mode: int,
    normalized: bool,
    filtering: int,
) -> None:
    depth, height, width = (1,) * (3 - len(shape)) + shape
    data = floats(rng, layers or depth, height, width, 4)
    at = places(rng, shape, normalized=normalized, layers=layers)
    desc = sampler(mode, filtering, NORMALIZED if normalized else 0, BORDER_COLOR)
    with an_array(cu, described(shape, channels=4, layers=layers)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), desc) as texture:
            found = run(newest, kernel, texture, at)
    # Wrapping and mirroring are for normalised coordinates.
    mode = CLAMP if not normalized and mode in (WRAP, MIRROR) else mode
    rules = {"filtering": filtering, "mode": mode, "normalized": normalized, "border": BORDER_COLOR}
    layer = at[:, 3].astype(int) if layers else None
    same(found, sample(data, *columns(at, len(shape)), layer=layer, **rules), filtering)  # type: ignore[arg-type]


def test_each_dimension_has_an_address_mode(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    data, at = floats(rng, 4, 5, 6, 1), places(rng, (4, 5, 6), normalized=True)
    desc = sampler(flags=NORMALIZED)
    desc.address[:] = WRAP, MIRROR, BORDER
    with an_array(cu, described((4, 5, 6))) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), desc) as texture:
            found = run(newest, "tex3", texture, at)
    index, there = zip(
        *(
            inside(np.floor(at[:, k].astype(np.float64) * size).astype(int), size, mode)
            for k, (size, mode) in enumerate(((6, WRAP), (5, MIRROR), (4, BORDER)))
        ),
        strict=True,
    )
    assert (found[:, 0] == np.where(there[2], data[index[2], index[1], index[0], 0], 0)).all()


def test_weights_have_eight_bits(newest: Runner, cu: Driver) -> None:
    at = np.zeros((COUNT, 1), np.float32)
    at[:, 0] = 0.5 + np.arange(COUNT) / COUNT  # between two texels, in steps of half of what a weight can be
    with an_array(cu, described((2,))) as array:
        upload(cu, array, np.array([[0.0], [256.0]], np.float32))
        with a_texture(cu, texture_of(array), sampler(filtering=LINEAR)) as texture:
            found = run(newest, "tex1", texture, at)[:, 0]
    assert (found == np.round(found)).all()
    assert len(np.unique(found)) == 257
    assert (np.abs(found - np.arange(COUNT) / 2) <= 0.5).all()


def test_coordinates_that_are_no_numbers_and_far_away(newest: Runner, cu: Driver) -> None:
    at = np.zeros((64, 1), np.float32)
    at[:6, 0] = np.nan, np.inf, -np.inf, 3e38, -3e38, 2
    for filtering in (POINT, LINEAR):
        with an_array(cu, described((4,))) as array:
            upload(cu, array, np.arange(1, 5, dtype=np.float32)[:, None])
            with a_texture(cu, texture_of(array), sampler(filtering=filtering)) as texture:
                found = run(newest, "tex1", texture, at)[:6, 0]
        assert found[1:].tolist() == [4, 1, 4, 1, 3 if filtering == POINT else 2.5]
        assert found[0] in (1, 2, 3, 4)


def test_the_border_of_integers_has_the_bits_of_the_numbers(newest: Runner, cu: Driver) -> None:
    at = np.full((64, 1), -1, np.float32)
    desc = sampler(BORDER, POINT, READ_AS_INTEGER, (7, 3e9, -5, 1e30))
    with an_array(cu, described((4,), kind=FORMATS["uint32"], channels=4)) as array:
        upload(cu, array, np.zeros((4, 4), np.uint32))
        with a_texture(cu, texture_of(array), desc) as texture:
            found = run(newest, "unsigned2", texture, at).view(np.uint32)
    assert found[0].tolist() == np.array([7, 3e9, -5, 1e30], np.float32).view(np.uint32).tolist()


# --- Cubemaps -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filtering", [POINT, LINEAR])
@pytest.mark.parametrize(("mode", "flags"), [(WRAP, NORMALIZED), (CLAMP, NORMALIZED), (BORDER, NORMALIZED), (CLAMP, 0)])
@pytest.mark.parametrize("layers", [0, 3])
def test_cubemaps(
    newest: Runner, cu: Driver, rng: np.random.Generator, layers: int, mode: int, flags: int, filtering: int
) -> None:
    data, at = floats(rng, 6 * (layers or 1), 8, 8, 4), directions(rng)
    if layers:
        at[:, 3] = rng.integers(0, layers + 2, COUNT)
    desc = Array3DDesc(8, 8, len(data), FORMATS["float32"], 4, CUBEMAP | (1 if layers else 0))
    with an_array(cu, desc) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(mode, filtering, flags)) as texture:
            found = run(newest, "cubes" if layers else "cube", texture, at)
    face, s, t = face_of(at[:, :3].astype(np.float64))
    layer = face + 6 * np.clip(at[:, 3].astype(int), 0, max(layers - 1, 0))
    same(found, sample(data, s, t, filtering=filtering, mode=mode, normalized=True, layer=layer), filtering)


def test_a_seamless_cubemap_reads_over_its_edges(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    size, at = 8, directions(rng)
    data = floats(rng, 6, size, size, 1)
    with an_array(cu, Array3DDesc(size, size, 6, FORMATS["float32"], 1, CUBEMAP)) as array:
        upload(cu, array, data)
        desc = sampler(BORDER, LINEAR, NORMALIZED | SEAMLESS, BORDER_COLOR)
        with a_texture(cu, texture_of(array), desc) as texture:
            found = run(newest, "cube", texture, at)[:, 0]
    face, s, t = face_of(at[:, :3].astype(np.float64))
    total, weights = np.zeros(COUNT), np.zeros(COUNT)
    (left, a), (upper, b) = footprint(s * size), footprint(t * size)
    for (right, lower, _), share in corner_weights([a, b]).items():
        i, j = left + right, upper + lower
        # A texel outside lies on the plane of the face, and is seen on another one.
        other, u, v = face_of(direction_to(face, (i + 0.5) / size, (j + 0.5) / size))
        outside = ((i < 0) | (i >= size)).astype(int) + ((j < 0) | (j >= size))
        texel = data[other, np.floor(v * size).astype(int), np.floor(u * size).astype(int), 0]
        weight = np.where(outside == 2, 0, share)  # there is none over a corner
        total += weight * texel
        weights += weight
    same(found[:, None], (total / weights)[:, None], LINEAR)
    edges = (s * size < 0.5) | (s * size > size - 0.5) | (t * size < 0.5) | (t * size > size - 0.5)
    assert edges.sum() > 20


# --- Misuse -------------------------------------------------------------------------------------------------------


def failure(runner: Runner, kernel: str, texture: c_uint64) -> str:
    with pytest.raises(GpuError) as error:
        run(runner, kernel, texture, np.zeros((64, 1), np.float32))
    return str(error.value)


def test_a_handle_of_no_texture(broken: Runner) -> None:
    assert failure(broken, "tex2", c_uint64(12345)) == "ILLEGAL_ADDRESS"
    assert "no texture object" in simulator().reports()[-1].message


def test_a_texture_whose_array_is_gone(broken: Runner) -> None:
    cu = broken.gpu.driver
    array = create(cu, described((4, 4)))
    texture = cu.out(c_uint64, "cuTexObjectCreate", byref(texture_of(array)), byref(sampler()), None)
    cu.cuArrayDestroy(array)
    assert failure(broken, "tex2", texture) == "ILLEGAL_ADDRESS"
    report = simulator().reports()[-1]
    assert (report.kind, report.allocated_by) == ("use after free", "cuArray3DCreate_v2")


RELEASE_THRESHOLD = 4

READING = r"""
extern "C" __global__ void read(cudaTextureObject_t t, volatile int *started, float *out)
{
    float v = 0;
    *started = 1;
    // Nothing but reads of the texture, for about a second.
    for (int i = 0; i < 5000000 && v == 0; i++) v = tex1Dfetch<float>(t, i & 1023);
    *out = v;
}
"""


def test_a_texture_whose_memory_goes_while_a_kernel_runs(broken: Runner) -> None:
    cu = broken.gpu.driver
    context, stream, pool = cu.out(c_void_p, "cuCtxGetCurrent"), cu.stream(1), cu.pool()
    cu.cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, byref(c_uint64(1 << 40)))  # what is freed stays mapped
    memory = cu.from_pool(pool, 4096, stream)
    cu.cuStreamSynchronize(stream)
    given = byref(linear(memory, FORMATS["float32"], 1, 4096)), byref(sampler()), None
    texture = cu.out(c_uint64, "cuTexObjectCreate", *given)
    cu.cuMemsetD8_v2(memory, 0, c_size_t(4096))
    flag, out = cu.pinned(4), broken.zeros(1, np.float32)
    started = np.frombuffer(flag, np.int32)
    errors: list[str] = []

    def launch() -> None:
        cu.cuCtxSetCurrent(context)
        try:
            broken.run(READING, "read", 1, 1, np.uint64(texture.value), np.uint64(ctypes.addressof(flag)), out)
        except GpuError as error:
            errors.append(str(error))

    thread = threading.Thread(target=launch)
    thread.start()
    limit = time.monotonic() + 30
    while not started[0] and time.monotonic() < limit:
        time.sleep(0.001)
    cu.cuMemFreeAsync(memory, stream)
    cu.status("cuStreamSynchronize", stream)  # by now the kernel may have failed
    thread.join()
    assert errors == ["ILLEGAL_ADDRESS"]
    cu.status("cuMemPoolDestroy", pool)
    cu.status("cuMemFreeHost", flag)


@pytest.mark.parametrize("kernel", ["tex1", "tex3", "layered2", "cube"])
def test_a_texture_of_another_shape(broken: Runner, kernel: str) -> None:
    cu = broken.gpu.driver
    array = create(cu, described((4, 4)))
    texture = cu.out(c_uint64, "cuTexObjectCreate", byref(texture_of(array)), byref(sampler()), None)
    assert failure(broken, kernel, texture) == "ILLEGAL_INSTRUCTION"


def test_offsets_are_not_simulated(broken: Runner) -> None:
    cu = broken.gpu.driver
    array = create(cu, described((4, 4)))
    texture = cu.out(c_uint64, "cuTexObjectCreate", byref(texture_of(array)), byref(sampler()), None)
    assert failure(broken, "offset2", texture) == "NOT_SUPPORTED"
