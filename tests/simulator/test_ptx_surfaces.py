# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""suld, sust, sured and suq, against NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from ptx_runner import GpuError, Runner, compiled
from sim_arrays import (
    CUBEMAP,
    FLOAT,
    FORMATS,
    SURFACE,
    UINT8,
    UINT32,
    Array3DDesc,
    a_mipmap,
    a_surface,
    a_texture,
    an_array,
    create,
    described,
    download,
    sampler,
    texture_of,
    upload,
)
from sim_driver import Driver, byref, c_uint64, c_void_p, simulator

Data = np.ndarray[Any, Any]
COUNT = 256
CLAMP, ZERO, TRAP = "Clamp", "Zero", "Trap"

# The first coordinate is in bytes. `at` has three coordinates and a layer.
KERNELS = r"""
typedef cudaSurfaceObject_t surface;
#define PER_TYPE(mode, name, type) \
    extern "C" __global__ void read_##name##_##mode(surface s, const int4 *at, type *out, int shape) \
    { \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x; \
        int4 a = at[i]; \
        int x = a.x * (int)sizeof(type); \
        switch (shape) { \
        case 0: out[i] = surf1Dread<type>(s, x, cudaBoundaryMode##mode); break; \
        case 1: out[i] = surf2Dread<type>(s, x, a.y, cudaBoundaryMode##mode); break; \
        case 2: out[i] = surf3Dread<type>(s, x, a.y, a.z, cudaBoundaryMode##mode); break; \
        case 3: out[i] = surf1DLayeredread<type>(s, x, a.w, cudaBoundaryMode##mode); break; \
        case 4: out[i] = surf2DLayeredread<type>(s, x, a.y, a.w, cudaBoundaryMode##mode); break; \
        case 5: out[i] = surfCubemapread<type>(s, x, a.y, a.w, cudaBoundaryMode##mode); break; \
        default: out[i] = surfCubemapLayeredread<type>(s, x, a.y, a.w, cudaBoundaryMode##mode); break; \
        } \
    } \
    extern "C" __global__ void write_##name##_##mode(surface s, const int4 *at, const type *values, int shape) \
    { \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x; \
        int4 a = at[i]; \
        int x = a.x * (int)sizeof(type); \
        switch (shape) { \
        case 0: surf1Dwrite(values[i], s, x, cudaBoundaryMode##mode); break; \
        case 1: surf2Dwrite(values[i], s, x, a.y, cudaBoundaryMode##mode); break; \
        case 2: surf3Dwrite(values[i], s, x, a.y, a.z, cudaBoundaryMode##mode); break; \
        case 3: surf1DLayeredwrite(values[i], s, x, a.w, cudaBoundaryMode##mode); break; \
        case 4: surf2DLayeredwrite(values[i], s, x, a.y, a.w, cudaBoundaryMode##mode); break; \
        case 5: surfCubemapwrite(values[i], s, x, a.y, a.w, cudaBoundaryMode##mode); break; \
        default: surfCubemapLayeredwrite(values[i], s, x, a.y, a.w, cudaBoundaryMode##mode); break; \
        } \
    }
#define PER_MODE(mode) \
    PER_TYPE(mode, uint8_1, unsigned char) PER_TYPE(mode, uint8_4, uchar4) PER_TYPE(mode, int16_1, short) \
    PER_TYPE(mode, int16_2, short2) PER_TYPE(mode, float32_1, float) PER_TYPE(mode, float32_2, float2) \
    PER_TYPE(mode, uint32_4, uint4) PER_TYPE(mode, int64_1, long long) PER_TYPE(mode, int64_2, longlong2)
PER_MODE(Clamp)
PER_MODE(Zero)
PER_MODE(Trap)

extern "C" __global__ void formatted(surface s, const uint4 *values, int components)
{
    int x = threadIdx.x;
    uint4 v = values[x];
    if (components == 4)
        asm("sust.p.2d.v4.b32.trap [%0, {%1, %2}], {%3, %4, %5, %6};" : : "l"(s), "r"(x), "r"(1), "r"(v.x), "r"(v.y),
            "r"(v.z), "r"(v.w) : "memory");
    else if (components == 2)
        asm("sust.p.2d.v2.b32.clamp [%0, {%1, %2}], {%3, %4};" : : "l"(s), "r"(x), "r"(1), "r"(v.x), "r"(v.y)
            : "memory");
    else
        asm("sust.p.2d.b32.zero [%0, {%1, %2}], %3;" : : "l"(s), "r"(x - 1), "r"(1), "r"(v.x) : "memory");
}

#define REDUCE(name, op, type, c, constraint) \
    extern "C" __global__ void name(surface s, const int4 *at, const c *values, int shape) \
    { \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x; \
        int4 a = at[i]; \
        int x = a.x * (int)sizeof(c); \
        if (shape == 0) \
            asm("sured.b." op ".1d." type ".trap [%0, {%1}], %2;" : : "l"(s), "r"(x), constraint(values[i]) : "memory"); \
        else if (shape == 1) \
            asm("sured.b." op ".2d." type ".clamp [%0, {%1, %2}], %3;" : : "l"(s), "r"(x), "r"(a.y), \
                constraint(values[i]) : "memory"); \
        else \
            asm("sured.b." op ".3d." type ".zero [%0, {%1, %2, %3, %3}], %4;" : : "l"(s), "r"(x), "r"(a.y), \
                "r"(a.z), constraint(values[i]) : "memory"); \
    }
REDUCE(add_uint32, "add", "u32", unsigned, "r")
REDUCE(add_int32, "add", "s32", int, "r")
REDUCE(add_uint64, "add", "u64", unsigned long long, "l")
REDUCE(minimum_uint32, "min", "u32", unsigned, "r")
REDUCE(minimum_int32, "min", "s32", int, "r")
REDUCE(minimum_uint64, "min", "u64", unsigned long long, "l")
REDUCE(minimum_int64, "min", "s64", long long, "l")
REDUCE(maximum_uint32, "max", "u32", unsigned, "r")
REDUCE(maximum_int32, "max", "s32", int, "r")
REDUCE(maximum_uint64, "max", "u64", unsigned long long, "l")
REDUCE(maximum_int64, "max", "s64", long long, "l")
REDUCE(bitwise_and_uint32, "and", "b32", unsigned, "r")
REDUCE(bitwise_or_uint32, "or", "b32", unsigned, "r")

#define QUERY(i, name) asm("suq." name ".b32 %0, [%1];" : "=r"(out[i]) : "l"(s))
extern "C" __global__ void query(surface s, unsigned *out)
{
    QUERY(0, "width");
    QUERY(1, "height");
    QUERY(2, "depth");
}
extern "C" __global__ void bytes(surface s, int x, unsigned *out) { *out = surf1Dread<unsigned>(s, x); }
"""
# What only references can be asked for. A driver loads no code that has it.
OF_REFERENCES = r"""
extern "C" __global__ void refused(cudaSurfaceObject_t s, unsigned *out)
{
    asm("suq.NAME.b32 %0, [%1];" : "=r"(*out) : "l"(s));
}
"""
# What no compiler takes, so that it is a source of its own.
REFUSED = r"""
typedef cudaSurfaceObject_t surface;
extern "C" __global__ void typed(surface s) { asm("sust.p.1d.u32.trap [%0, {%1}], %1;" : : "l"(s), "r"(0) : "memory"); }
extern "C" __global__ void narrow(surface s)
{
    asm("sust.p.1d.b16.trap [%0, {%1}], %2;" : : "l"(s), "r"(0), "h"((short)0) : "memory");
}
"""

SHAPES: dict[str, tuple[int, tuple[int, ...], int]] = {  # number, size of a layer, layers
    "1d": (0, (9,), 0),
    "2d": (1, (5, 9), 0),
    "3d": (2, (4, 5, 9), 0),
    "1d layered": (3, (9,), 3),
    "2d layered": (4, (5, 9), 3),
    "cubemap": (5, (9, 9), 6),
    "cubemap layered": (6, (9, 9), 12),
}
TYPES = sorted({(name, int(channels)) for name, channels in re.findall(r"PER_TYPE\(mode, (\w+?)_(\d)", KERNELS)})


@pytest.fixture
def cu(newest: Runner) -> Driver:
    return newest.gpu.driver


def desc_of(shape: str, kind: str, channels: int) -> Array3DDesc:
    _, size, layers = SHAPES[shape]
    if kind == "int64":  # two elements of 32 bits
        kind, channels = "uint32", 2 * channels
    flags = SURFACE | (CUBEMAP if "cubemap" in shape else 0)
    desc = described(size, flags, FORMATS[kind], channels, layers=layers)
    if shape == "cubemap":
        desc.flags &= ~1
    return desc


def full_size(shape: str) -> tuple[int, int, int]:
    _, size, layers = SHAPES[shape]
    depth, height, width = (1,) * (3 - len(size)) + size
    return layers or depth, height, width


def values_of(rng: np.random.Generator, kind: str, *shape: int) -> Data:
    if kind == "float32":
        return rng.normal(size=shape).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, kind, endpoint=True)


def places(rng: np.random.Generator, shape: str, margin: int, count: int = COUNT) -> Data:
    """Return three coordinates and a layer, up to so many texels outside."""
    _, size, layers = SHAPES[shape]
    at = np.zeros((count, 4), np.int32)
    for axis, n in enumerate(size[::-1]):
        at[:, axis] = rng.integers(-margin, n + margin, count)
    if layers:
        at[:, 3] = rng.integers(0, layers + margin, count)
    return at


def indices(shape: str, at: Data) -> tuple[Data, Data, Data, Data]:
    """Return the texels nearest to coordinates, slowest dimension first, and which are inside."""
    depth, height, width = full_size(shape)
    wanted = (at[:, 3] if SHAPES[shape][2] else at[:, 2]), at[:, 1], at[:, 0]
    sizes = depth, height, width
    z, y, x = (np.clip(index, 0, size - 1) for index, size in zip(wanted, sizes, strict=True))
    there = (np.stack([z, y, x]) == np.stack(wanted)).all(axis=0)
    return z, y, x, there


def free(cu: Driver, *arrays: Any) -> None:
    for array in arrays:
        cu.cuMemFree_v2(c_uint64(array.pointer))


@pytest.mark.parametrize("mode", [CLAMP, ZERO, TRAP])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "channels"), TYPES)
def test_reading(
    newest: Runner, cu: Driver, rng: np.random.Generator, kind: str, channels: int, shape: str, mode: str
) -> None:
    data = values_of(rng, kind, *full_size(shape), channels)
    at = places(rng, shape, 0 if mode == TRAP else 3)
    given = newest.array(at), newest.zeros((COUNT, channels), kind)
    with an_array(cu, desc_of(shape, kind, channels)) as array, a_surface(cu, array) as surface:
        upload(cu, array, data)
        number = np.int32(SHAPES[shape][0])
        name = f"read_{kind}_{channels}_{mode}"
        newest.run(KERNELS, name, COUNT // 64, 64, np.uint64(surface.value), *given, number)
    found = given[-1].get()
    free(cu, *given)
    z, y, x, there = indices(shape, at)
    expected = data[z, y, x]
    if mode == ZERO:
        expected = np.where(there[:, None], expected, 0)
    assert (found == expected).all()


@pytest.mark.parametrize("mode", [CLAMP, ZERO, TRAP])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "channels"), TYPES)
def test_writing(
    newest: Runner, cu: Driver, rng: np.random.Generator, kind: str, channels: int, shape: str, mode: str
) -> None:
    data = values_of(rng, kind, *full_size(shape), channels)
    at = places(rng, shape, 0 if mode == TRAP else 3)
    z, y, x, there = indices(shape, at)
    # Every texel has one writer at most; those that write nothing write to another one's.
    place = np.ravel_multi_index((z, y, x), full_size(shape))
    first = np.unique(place if mode != ZERO else np.where(there, place, -1 - np.arange(COUNT)), return_index=True)[1]
    chosen = np.resize(first, COUNT // 64 * 64)
    at, z, y, x, there = at[chosen], z[chosen], y[chosen], x[chosen], there[chosen]
    values = values_of(rng, kind, COUNT, channels)[np.resize(np.arange(len(first)), COUNT)]
    given = newest.array(at), newest.array(values)
    with an_array(cu, desc_of(shape, kind, channels)) as array, a_surface(cu, array) as surface:
        upload(cu, array, data)
        number = np.int32(SHAPES[shape][0])
        name = f"write_{kind}_{channels}_{mode}"
        newest.run(KERNELS, name, COUNT // 64, 64, np.uint64(surface.value), *given, number)
        found = download(cu, array, data)
    free(cu, *given)
    inside = there | (mode == CLAMP)
    data[z[inside], y[inside], x[inside]] = values[inside]
    assert (found == data).all()


@pytest.mark.parametrize(("index", "outside"), [(0, 9), (0, -1), (1, 5), (1, -1), (3, 3)])
@pytest.mark.parametrize("what", ["read", "write"])
def test_what_is_outside_of_a_surface_can_be_an_error(broken: Runner, what: str, index: int, outside: int) -> None:
    cu = broken.gpu.driver
    array = create(cu, desc_of("2d layered", "float32", 1))
    surface = cu.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(array)))
    at = np.zeros((64, 4), np.int32)
    at[7, index] = outside
    given = broken.array(at), broken.zeros(64, np.float32)
    with pytest.raises(GpuError, match="ILLEGAL_ADDRESS"):
        broken.run(KERNELS, f"{what}_float32_1_Trap", 1, 64, np.uint64(surface.value), *given, np.int32(4))


def test_bytes_that_are_not_aligned(broken: Runner) -> None:
    cu = broken.gpu.driver
    array = create(cu, described((8,), SURFACE, UINT32))
    surface = cu.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(array)))
    with pytest.raises(GpuError, match="MISALIGNED_ADDRESS"):
        broken.run(KERNELS, "bytes", 1, 1, np.uint64(surface.value), np.int32(2), broken.zeros(1, np.uint32))


# --- Formatted stores ---------------------------------------------------------------------------------------------


def store(newest: Runner, cu: Driver, desc: Array3DDesc, kind: str, values: Data, components: int) -> tuple[Data, Data]:
    """Return the rows of an array around the one that is written, and that row."""
    like = np.zeros((1, 3, len(values), desc.channels), kind)
    given = newest.array(values)
    with an_array(cu, desc) as array, a_surface(cu, array) as surface:
        upload(cu, array, like)
        newest.run(KERNELS, "formatted", 1, len(values), np.uint64(surface.value), given, np.int32(components))
        found = download(cu, array, like)
    free(cu, given)
    return found[0, ::2], found[0, 1]


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16", "uint32", "int32"])
def test_integers_are_stored_as_the_nearest_that_fit(
    newest: Runner, cu: Driver, rng: np.random.Generator, kind: str
) -> None:
    wide = "int32" if kind[0] == "i" else "uint32"
    values = values_of(rng, wide, 32, 4) >> rng.integers(0, 32, (32, 4)).astype(wide)
    desc = described((3, 32), SURFACE, FORMATS[kind], 4)
    around, row = store(newest, cu, desc, kind, values, 4)
    limits = np.iinfo(kind)
    assert (row == np.clip(values, limits.min, limits.max)).all()
    assert not around.any()


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_floats_are_stored_rounded_towards_zero(
    newest: Runner, cu: Driver, rng: np.random.Generator, kind: str
) -> None:
    values = rng.normal(size=(32, 4)).astype(np.float32)
    values[0] = 65519, -65520, 1e6, np.inf
    _, row = store(newest, cu, described((3, 32), SURFACE, FORMATS[kind], 4), kind, values, 4)
    expected = np.clip(values, -65504, 65504).astype(kind) if kind == "float16" else values
    too_far = np.abs(expected.astype(np.float32)) > np.abs(values)
    expected = np.where(too_far, np.nextafter(expected, np.zeros_like(expected)), expected)
    assert (row == np.where(np.isinf(values), values, expected)).all()


@pytest.mark.parametrize(("kind", "number"), [("uint8", 0xC2), ("uint16", 0xC5), ("int8", 0xC8), ("int16", 0xCB)])
def test_fractions_are_stored_as_integers(
    newest: Runner, cu: Driver, rng: np.random.Generator, kind: str, number: int
) -> None:
    values = rng.uniform(-1.5, 1.5, (32, 4)).astype(np.float32)
    values[0] = 0.5, -0.5, 1, -1  # between two integers, of which the smaller is stored
    _, row = store(newest, cu, described((3, 32), SURFACE, number, 4), kind, values, 4)
    exact = np.clip(values.astype(np.float64), 0 if kind[0] == "u" else -1, 1) * np.iinfo(kind).max
    assert (row[0] == np.copysign(np.ceil(np.abs(exact[0]) - 0.5), exact[0])).all()
    # Hardware rounds a fraction first, so that it may be stored as the integer below.
    assert (np.abs(row - exact) <= (0.51 if kind == "uint8" else 1)).all()


def test_fewer_components(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    values = rng.integers(0, 100, (32, 4)).astype(np.uint32)
    _, row = store(newest, cu, described((3, 32), SURFACE, UINT32, 2), "uint32", values, 2)
    assert (row == values[:, :2]).all()
    # The first thread writes to nothing.
    _, row = store(newest, cu, described((3, 32), SURFACE, UINT8, 1), "uint8", values, 1)
    assert (row[:-1, 0] == values[1:, 0]).all()


@pytest.mark.parametrize("kernel", ["typed", "narrow"])
def test_stores_that_compilers_do_not_have_either(broken: Runner, kernel: str) -> None:
    cu = broken.gpu.driver
    array = create(cu, described((8,), SURFACE, UINT32))
    surface = cu.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(array)))
    with pytest.raises(GpuError, match="NOT_SUPPORTED"):
        broken.run(REFUSED, kernel, 1, 1, np.uint64(surface.value))


# --- Reductions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["1d", "2d", "3d"])
@pytest.mark.parametrize("name", re.findall(r"REDUCE\((\w+_u?int\d+),", KERNELS))
def test_reductions(newest: Runner, cu: Driver, rng: np.random.Generator, name: str, shape: str) -> None:
    operation, _, kind = name.rpartition("_")
    data, values = values_of(rng, kind, *full_size(shape), 1), values_of(rng, kind, COUNT)
    at = places(rng, shape, 0 if shape == "1d" else 2)
    given = newest.array(at), newest.array(values)
    with an_array(cu, desc_of(shape, kind.replace("uint64", "int64"), 1)) as array, a_surface(cu, array) as surface:
        upload(cu, array, data)
        number = np.int32(SHAPES[shape][0])
        newest.run(KERNELS, name, COUNT // 64, 64, np.uint64(surface.value), *given, number)
        found = download(cu, array, data)
    free(cu, *given)
    z, y, x, there = indices(shape, at)
    inside = there | (shape == "2d")
    getattr(np, operation).at(data, (z[inside], y[inside], x[inside], 0), values[inside])
    assert (found == data).all()


# --- The rest -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("desc", "answers"),
    [
        (described((7,), SURFACE), [7, 0, 0]),
        (described((5, 7), SURFACE, UINT8, 4), [7, 5, 0]),
        (described((3, 5, 7), SURFACE, FORMATS["int16"], 2), [7, 5, 3]),
        (described((7,), SURFACE, FORMATS["float16"], layers=4), [7, 4, 0]),  # layers are where the next dimension is
        (described((5, 7), SURFACE, UINT32, layers=4), [7, 5, 4]),
        (described((8, 8), SURFACE | CUBEMAP, layers=12), [8, 8, 12]),
    ],
)
def test_surfaces_know_their_size(newest: Runner, cu: Driver, desc: Array3DDesc, answers: list[int]) -> None:
    out = newest.zeros(3, np.uint32)
    with an_array(cu, desc) as array, a_surface(cu, array) as surface:
        newest.run(KERNELS, "query", 1, 1, np.uint64(surface.value), out)
    assert out.get().tolist() == answers
    free(cu, out)


@pytest.mark.parametrize("name", ["channel_data_type", "channel_order", "array_size", "memory_layout"])
def test_surface_objects_are_not_asked_for_more(newest: Runner, name: str) -> None:
    with pytest.raises(GpuError, match="NOT_SUPPORTED"):
        newest.gpu.load_at_once(compiled(OF_REFERENCES.replace("NAME", name), *newest.options))


def test_a_texture_reads_what_was_written_to_a_level(newest: Runner, cu: Driver, rng: np.random.Generator) -> None:
    values, at = rng.normal(size=64).astype(np.float32), np.zeros((64, 4), np.int32)
    at[:, 0], at[:, 1] = np.arange(64) % 8, np.arange(64) // 8
    given = newest.array(at), newest.array(values)
    with a_mipmap(cu, described((16, 16), SURFACE, FLOAT), 2) as mipmap:
        level: c_void_p = cu.out(c_void_p, "cuMipmappedArrayGetLevel", mipmap, 1)
        with a_surface(cu, level) as surface:
            name = "write_float32_1_Trap"
            newest.run(KERNELS, name, 1, 64, np.uint64(surface.value), *given, np.int32(1))
        source = 'extern "C" __global__ void read(cudaTextureObject_t t, float *out)'
        source += "{ out[threadIdx.x] = tex2D<float>(t, threadIdx.x % 8 + 0.5f, threadIdx.x / 8 + 0.5f); }"
        with a_texture(cu, texture_of(level), sampler()) as texture:
            newest.run(source, "read", 1, 64, np.uint64(texture.value), given[1])
    assert (given[1].get() == values).all()
    free(cu, *given)


def test_surfaces_in_code_of_every_kind(ptx: Runner, rng: np.random.Generator) -> None:
    cu = ptx.gpu.driver
    source = r"""
    extern "C" __global__ void twice(cudaSurfaceObject_t s)
    {
        int x = threadIdx.x * sizeof(float2), y = blockIdx.x;
        float2 v = surf2Dread<float2>(s, x, y);
        surf2Dwrite(make_float2(2 * v.x, v.y), s, x, y);
    }
    """
    data = rng.normal(size=(4, 40, 2)).astype(np.float32)
    with an_array(cu, described((4, 40), SURFACE, channels=2)) as array, a_surface(cu, array) as surface:
        upload(cu, array, data)
        ptx.run(source, "twice", 4, 40, np.uint64(surface.value))
        found = download(cu, array, data)
    assert (found == data * np.array([2, 1])).all()


def failure(runner: Runner, surface: c_uint64, shape: int) -> str:
    given = runner.zeros((64, 4), np.int32), runner.zeros(64, np.float32)
    with pytest.raises(GpuError) as error:
        runner.run(KERNELS, "read_float32_1_Clamp", 1, 64, np.uint64(surface.value), *given, np.int32(shape))
    return str(error.value)


def test_a_handle_of_no_surface(broken: Runner) -> None:
    assert failure(broken, c_uint64(12345), 1) == "ILLEGAL_ADDRESS"
    assert "no surface object" in simulator().reports()[-1].message


def test_a_surface_whose_array_is_gone(broken: Runner) -> None:
    cu = broken.gpu.driver
    array = create(cu, described((4, 4), SURFACE))
    surface = cu.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(array)))
    cu.cuArrayDestroy(array)
    assert failure(broken, surface, 1) == "ILLEGAL_ADDRESS"
    assert simulator().reports()[-1].kind == "use after free"


@pytest.mark.parametrize("shape", [0, 2, 3, 4, 5])
def test_a_surface_of_another_shape(broken: Runner, shape: int) -> None:
    cu = broken.gpu.driver
    array = create(cu, described((4, 4), SURFACE))
    surface = cu.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(array)))
    assert failure(broken, surface, shape) == "ILLEGAL_INSTRUCTION"
