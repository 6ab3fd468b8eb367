# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""tex of memory and of whole texels, tld4 and txq, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_runner import GpuError, Runner
from sim_arrays import (
    BORDER,
    CLAMP,
    CUBEMAP,
    FORMATS,
    GATHER,
    HALF,
    LINEAR,
    NORMALIZED,
    POINT,
    READ_AS_INTEGER,
    WRAP,
    Array3DDesc,
    a_mipmap,
    a_texture,
    an_array,
    create,
    described,
    linear,
    pitch2d,
    sampler,
    texture_of,
    upload,
)
from sim_driver import Driver, byref, c_uint64
from texture_kernels import COUNT, Data, anything, columns, directions, floats, places, run, same
from texture_rules import face_of, footprint, inside, sample, sample_fractions


@pytest.fixture
def cu(newest: Runner) -> Driver:
    return newest.gpu.driver


# --- Memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "channels"), [("float32", 4), ("uint8", 1), ("int16", 2), ("float16", 1)])
def test_buffers(newest: Runner, cu: Driver, rng: np.random.Generator, kind: str, channels: int) -> None:
    data = anything(rng, kind, 50, channels)
    at = rng.integers(-20, 70, (COUNT, 1)).astype(np.float32)
    array = newest.array(data)
    resource = linear(array.pointer, FORMATS[kind], channels, data.nbytes)
    # Filters and address modes are for arrays.
    with a_texture(cu, resource, sampler(WRAP, LINEAR, NORMALIZED)) as texture:
        found = run(newest, "fetch", texture, at)
    cu.cuMemFree_v2(c_uint64(array.pointer))
    same(found, sample_fractions(data[None, None], at[:, 0], mode=BORDER))


@pytest.mark.simulator_only("cuda.h does not define it, and hardware differs")
def test_between_the_elements_of_a_buffer_is_nothing(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    data, at = floats(rng, 50, 1), places(rng, (50,))
    array = newest.array(data)
    with a_texture(cu, linear(array.pointer, FORMATS["float32"], 1, 200), sampler(WRAP, LINEAR, NORMALIZED)) as texture:
        found = run(newest, "tex1", texture, at)
    cu.cuMemFree_v2(c_uint64(array.pointer))
    assert (found[:, :1] == sample(data[None, None], at[:, 0], mode=BORDER)).all()


def test_buffers_of_integers(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    data, at = anything(rng, "int8", 50, 4), rng.integers(0, 50, (COUNT, 1)).astype(np.float32)
    array = newest.array(data)
    resource = linear(array.pointer, FORMATS["int8"], 4, data.nbytes)
    with a_texture(cu, resource, sampler(flags=READ_AS_INTEGER)) as texture:
        found = run(newest, "signed_fetch", texture, at).view(np.int32)
    cu.cuMemFree_v2(c_uint64(array.pointer))
    assert (found == data[at[:, 0].astype(int)]).all()


@pytest.mark.parametrize("filtering", [POINT, LINEAR])
def test_pitched_memory(newest: Runner, cu: Driver, rng: np.random.Generator, filtering: int) -> None:
    rows, at = floats(rng, 6, 16, 2), places(rng, (6, 11))
    array = newest.array(rows)
    with a_texture(
        cu, pitch2d(array.pointer, FORMATS["float32"], 2, 11, 6, 128), sampler(BORDER, filtering)
    ) as texture:
        found = run(newest, "tex2", texture, at)
    cu.cuMemFree_v2(c_uint64(array.pointer))
    same(found, sample(rows[None, :, :11], *columns(at, 2), filtering=filtering, mode=BORDER), filtering)


@pytest.mark.parametrize(
    ("kernel", "shape", "layers"), [("whole2", (5, 9), 0), ("whole3", (4, 5, 9), 0), ("whole_layered1", (9,), 3)]
)
def test_whole_coordinates_are_texels(
    newest: Runner, cu: Driver, rng: np.random.Generator, kernel: str, shape: tuple[int, ...], layers: int
) -> None:
    depth, height, width = (1,) * (3 - len(shape)) + shape
    data = floats(rng, layers or depth, height, width, 4)
    at = np.trunc(places(rng, shape, layers=layers))
    with an_array(cu, described(shape, channels=4, layers=layers)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(CLAMP, LINEAR)) as texture:
            found = run(newest, kernel, texture, at)
    layer = at[:, 3].astype(int) if layers else None
    expected = sample(data, *columns(at, len(shape)), mode=BORDER, layer=layer)
    if layers:  # beyond the last layer is nothing, while sampling takes the last one
        expected[at[:, 3] >= layers] = 0
    assert (found == expected).all()


def test_a_whole_coordinate_reads_buffers_only(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    at = np.zeros((64, 1), np.float32)
    at[:, 0] = np.arange(64) % 9
    with an_array(cu, described((9,), channels=4)) as array:
        upload(cu, array, floats(rng, 1, 1, 9, 4))
        with a_texture(cu, texture_of(array), sampler()) as texture:
            assert not run(newest, "fetch", texture, at).any()


# --- Gathering ----------------------------------------------------------------------------------------------------

# The four texels of a linear filter, counter-clockwise from the lower left.
CORNERS = ((0, 1), (1, 1), (1, 0), (0, 0))


def gathered(data: Data, s: Data, t: Data, component: int, mode: int, layer: Any = 0) -> Data:
    """Return one component of the texels around; coordinates count texels."""
    left, upper = footprint(s.astype(np.float64))[0], footprint(t.astype(np.float64))[0]
    found = []
    for i, j in CORNERS:
        x, x_there = inside(left + i, data.shape[2], mode)
        y, y_there = inside(upper + j, data.shape[1], mode)
        found.append(np.where(x_there & y_there, data[layer, y, x, component], 0))
    return np.stack(found, axis=-1)


@pytest.mark.parametrize("component", range(4))
@pytest.mark.parametrize("mode", [CLAMP, BORDER])
def test_gathering(newest: Runner, cu: Driver, rng: np.random.Generator, component: int, mode: int) -> None:
    data, at = floats(rng, 1, 5, 9, 4), places(rng, (5, 9))
    at[:8, 0] = 2.49805  # so near to 2.5 that it counts as that
    with an_array(cu, described((5, 9), GATHER, channels=4)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(mode)) as texture:
            found = run(newest, f"gather{component}", texture, at)
    assert (found == gathered(data, *columns(at, 2), component, mode)).all()


@pytest.mark.parametrize("kind", ["int8", "uint16"])
def test_gathering_integers(newest: Runner, cu: Driver, rng: np.random.Generator, kind: str) -> None:
    data, at = anything(rng, kind, 1, 5, 9, 2), places(rng, (5, 9))
    with an_array(cu, described((5, 9), GATHER, FORMATS[kind], 2)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler(flags=READ_AS_INTEGER)) as texture:
            found = run(newest, f"{'un' if kind[0] == 'u' else ''}signed_gather", texture, at)
    assert (found.view(np.int32) == gathered(data, *columns(at, 2), 1, CLAMP)).all()


def test_gathering_from_layers_and_cubes(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    data, at = floats(rng, 3, 5, 9, 2), places(rng, (5, 9), layers=3)
    with an_array(cu, described((5, 9), channels=2, layers=3)) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler()) as texture:
            found = run(newest, "gather_layered", texture, at)
    layer = np.clip(at[:, 3].astype(int), 0, 2)
    assert (found == gathered(data, *columns(at, 2), 1, CLAMP, layer)).all()
    for kernel, cubes, component in (("gather_cube", 0, 0), ("gather_cubes", 2, 3)):
        data, at = floats(rng, 6 * (cubes or 1), 8, 8, 4), directions(rng)
        at[:, 3] = rng.integers(0, cubes or 1, COUNT)
        desc = Array3DDesc(8, 8, len(data), FORMATS["float32"], 4, CUBEMAP | (1 if cubes else 0))
        with an_array(cu, desc) as array:
            upload(cu, array, data)
            with a_texture(cu, texture_of(array), sampler(flags=NORMALIZED)) as texture:
                found = run(newest, kernel, texture, at)
        face, s, t = face_of(at[:, :3].astype(np.float64))
        layer = face + 6 * at[:, 3].astype(int)
        assert (found == gathered(data, s * 8, t * 8, component, CLAMP, layer)).all()


# --- The rest -----------------------------------------------------------------------------------------------------

QUERIES = """
#define QUERY(i, name) asm("txq." name ".b32 %0, [%1];" : "=r"(out[i]) : "l"(t))
#define QUERY_LEVEL(i, name) asm("txq.level." name ".b32 %0, [%1], %2;" : "=r"(out[i]) : "l"(t), "r"(level))
extern "C" __global__ void query(cudaTextureObject_t t, unsigned level, unsigned *out)
{
    QUERY(0, "width");
    QUERY(1, "height");
    QUERY(2, "depth");
    QUERY_LEVEL(3, "width");
    QUERY_LEVEL(4, "height");
    QUERY_LEVEL(5, "depth");
}
extern "C" __global__ void refused(cudaTextureObject_t t, unsigned *out) { ATTRIBUTE; }
"""
OF_REFERENCES = (
    "channel_data_type",
    "channel_order",
    "normalized_coords",
    "array_size",
    "num_mipmap_levels",
    "num_samples",
)


def asked(newest: Runner, cu: Driver, texture: c_uint64, level: int) -> list[int]:
    out = newest.zeros(6, np.uint32)
    source = QUERIES.replace("ATTRIBUTE", "")
    newest.run(source, "query", 1, 1, np.uint64(texture.value), np.uint32(level), out)
    found: list[int] = out.get().tolist()
    cu.cuMemFree_v2(c_uint64(out.pointer))
    return found


@pytest.mark.parametrize(
    ("desc", "answers"),
    [
        (described((7,)), [7, 1, 0]),
        (described((5, 7), kind=HALF, channels=2), [7, 5, 0]),
        (described((3, 5, 7), kind=FORMATS["int16"], channels=4), [7, 5, 3]),
        (described((7,), layers=3), [7, 3, 0]),  # layers are where the next dimension would be
        (described((5, 7), layers=3), [7, 5, 3]),
        (described((4, 4), CUBEMAP, layers=12), [4, 4, 2]),
    ],
)
def test_textures_know_their_size(newest: Runner, cu: Driver, desc: Array3DDesc, answers: list[int]) -> None:
    with an_array(cu, desc) as array, a_texture(cu, texture_of(array), sampler(flags=NORMALIZED)) as texture:
        assert asked(newest, cu, texture, 0) == answers * 2


def test_textures_know_the_sizes_of_their_levels(newest: Runner, cu: Driver) -> None:
    with (
        a_mipmap(cu, described((8, 4, 20)), 3) as mipmap,
        a_texture(cu, texture_of(mipmap, mipmapped=True), sampler(flags=NORMALIZED)) as texture,
    ):
        assert asked(newest, cu, texture, 1) == [20, 4, 8, 10, 2, 4]
        assert asked(newest, cu, texture, 2) == [20, 4, 8, 5, 1, 2]
        assert asked(newest, cu, texture, 5) == [20, 4, 8, 0, 0, 0]  # there is no such level


@pytest.mark.simulator_only(
    "a driver does not find kernels that ask for more than sizes, with another status each time"
)
@pytest.mark.parametrize("name", OF_REFERENCES)
def test_texture_objects_are_not_asked_for_more(broken: Runner, name: str) -> None:
    cu = broken.gpu.driver
    array = create(cu, described((4, 4)))
    texture = cu.out(c_uint64, "cuTexObjectCreate", byref(texture_of(array)), byref(sampler()), None)
    source = QUERIES.replace("ATTRIBUTE", f'QUERY(0, "{name}")')
    with pytest.raises(GpuError, match="NOT_SUPPORTED"):
        broken.run(source, "refused", 1, 1, np.uint64(texture.value), broken.zeros(1, np.uint32))


def test_texels_are_always_there(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    data, at = floats(rng, 1, 5, 9, 1), places(rng, (5, 9))
    with an_array(cu, described((5, 9))) as array:
        upload(cu, array, data)
        with a_texture(cu, texture_of(array), sampler()) as texture:
            assert (run(newest, "resident2", texture, at)[:, :1] == sample(data, *columns(at, 2))).all()


def test_a_predicate_stands_beside_texels_only(newest: Runner, cu: Driver) -> None:
    text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 a) { .reg .pred %p<2>;"
    text += " .reg .u64 %a; .reg .u32 %x<2>; ld.param.u64 %a, [a]; ld.global.v2.u32 {%x0, %x1}SECOND, [%a]; ret; }"
    newest.gpu.load_at_once(text.replace("SECOND", "").encode())
    with pytest.raises(GpuError, match="INVALID_PTX"):
        newest.gpu.load_at_once(text.replace("SECOND", "|%p1").encode())


DIVERGENT = r"""
extern "C" __global__ void each(const cudaTextureObject_t *textures, const float2 *at, float *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTextureObject_t t = textures[i % 3];
    if (i % 5) out[i] = tex2D<float>(t, at[i].x, at[i].y);
    else out[i] = -1;
}
"""


def test_threads_of_a_warp_may_read_different_textures(ptx: Runner, rng: np.random.Generator) -> None:
    cu = ptx.gpu.driver
    data, at = [floats(rng, 1, 5, 9, 1) for _ in range(3)], places(rng, (5, 9))[:, :2].copy()
    arrays, textures = [], []
    for texels in data:
        arrays.append(create(cu, described((5, 9))))
        upload(cu, arrays[-1], texels)
        made = byref(texture_of(arrays[-1])), byref(sampler(CLAMP, LINEAR)), None
        textures.append(cu.out(c_uint64, "cuTexObjectCreate", *made).value)
    given = [ptx.array(np.array(textures, np.uint64)), ptx.array(at), ptx.zeros(COUNT, np.float32)]
    ptx.run(DIVERGENT, "each", COUNT // 64, 64, *given)
    found = given[-1].get()
    for texture, array in zip(textures, arrays, strict=True):
        cu.cuTexObjectDestroy(c_uint64(texture))
        cu.cuArrayDestroy(array)
    for array in given:
        cu.cuMemFree_v2(c_uint64(array.pointer))
    i = np.arange(COUNT)
    expected = np.stack([sample(texels, *columns(at, 2), filtering=LINEAR)[:, 0] for texels in data])[i % 3, i]
    same(found[:, None], np.where(i % 5, expected, -1)[:, None], LINEAR)
