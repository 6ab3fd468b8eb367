# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that read textures in every way, and what tests run them with."""

from __future__ import annotations

from typing import Any

import numpy as np
from ptx_runner import ON_GPU, Runner
from sim_arrays import POINT
from sim_driver import c_uint64

Data = np.ndarray[Any, Any]
COUNT = 512

KERNELS = r"""
typedef cudaTextureObject_t texture;
#define KERNEL(name, value) \
    extern "C" __global__ void name(texture t, const float4 *at, const float4 *dx, const float4 *dy, float4 *out) \
    { \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x; \
        float4 a = at[i], b = dx[i], c = dy[i]; \
        (void)a, (void)b, (void)c; \
        out[i] = value; \
    }
#define VECTOR(type, name) KERNEL(name, __builtin_bit_cast(float4, tex2D<type>(t, a.x, a.y)))
KERNEL(tex1, tex1D<float4>(t, a.x))
KERNEL(tex2, tex2D<float4>(t, a.x, a.y))
KERNEL(tex3, tex3D<float4>(t, a.x, a.y, a.z))
KERNEL(layered1, tex1DLayered<float4>(t, a.x, (int)a.w))
KERNEL(layered2, tex2DLayered<float4>(t, a.x, a.y, (int)a.w))
KERNEL(cube, texCubemap<float4>(t, a.x, a.y, a.z))
KERNEL(cubes, texCubemapLayered<float4>(t, a.x, a.y, a.z, (int)a.w))
KERNEL(level1, tex1DLod<float4>(t, a.x, a.w))
KERNEL(level2, tex2DLod<float4>(t, a.x, a.y, a.w))
KERNEL(level3, tex3DLod<float4>(t, a.x, a.y, a.z, a.w))
KERNEL(level_layered1, tex1DLayeredLod<float4>(t, a.x, (int)b.x, a.w))
KERNEL(level_layered2, tex2DLayeredLod<float4>(t, a.x, a.y, (int)b.x, a.w))
KERNEL(level_cube, texCubemapLod<float4>(t, a.x, a.y, a.z, a.w))
KERNEL(level_cubes, texCubemapLayeredLod<float4>(t, a.x, a.y, a.z, (int)b.x, a.w))
KERNEL(grad1, tex1DGrad<float4>(t, a.x, b.x, c.x))
KERNEL(grad2, tex2DGrad<float4>(t, a.x, a.y, make_float2(b.x, b.y), make_float2(c.x, c.y)))
KERNEL(grad3, tex3DGrad<float4>(t, a.x, a.y, a.z, b, c))
KERNEL(grad_layered1, tex1DLayeredGrad<float4>(t, a.x, (int)a.w, b.x, c.x))
KERNEL(grad_layered2,
       tex2DLayeredGrad<float4>(t, a.x, a.y, (int)a.w, make_float2(b.x, b.y), make_float2(c.x, c.y)))
KERNEL(grad_cube, texCubemapGrad<float4>(t, a.x, a.y, a.z, b, c))
KERNEL(grad_cubes, texCubemapLayeredGrad<float4>(t, a.x, a.y, a.z, (int)a.w, b, c))
KERNEL(gather0, tex2Dgather<float4>(t, a.x, a.y, 0))
KERNEL(gather1, tex2Dgather<float4>(t, a.x, a.y, 1))
KERNEL(gather2, tex2Dgather<float4>(t, a.x, a.y, 2))
KERNEL(gather3, tex2Dgather<float4>(t, a.x, a.y, 3))
KERNEL(fetch, tex1Dfetch<float4>(t, (int)a.x))

__device__ float4 bits(int4 v)
{
    return make_float4(__int_as_float(v.x), __int_as_float(v.y), __int_as_float(v.z), __int_as_float(v.w));
}
__device__ float4 bits(uint4 v) { return bits(make_int4(v.x, v.y, v.z, v.w)); }
KERNEL(signed2, bits(tex2D<int4>(t, a.x, a.y)))
KERNEL(unsigned2, bits(tex2D<uint4>(t, a.x, a.y)))
KERNEL(signed_gather, bits(tex2Dgather<int4>(t, a.x, a.y, 1)))
KERNEL(unsigned_gather, bits(tex2Dgather<uint4>(t, a.x, a.y, 1)))
KERNEL(signed_fetch, bits(tex1Dfetch<int4>(t, (int)a.x)))

__device__ float4 resident(texture t, float x, float y)
{
    bool there = false;
    float4 v = tex2D<float4>(t, x, y, &there);
    return there ? v : make_float4(-1, -1, -1, -1);
}
KERNEL(resident2, resident(t, a.x, a.y))

// What CUDA C++ has no functions for.
#define INLINE(name, instruction, ...) \
    __device__ float4 name##_of(texture t, float4 a) \
    { \
        float4 v; \
        asm(instruction : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(t), __VA_ARGS__); \
        return v; \
    } \
    KERNEL(name, name##_of(t, a))
INLINE(base2, "tex.base.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];", "f"(a.x), "f"(a.y))
INLINE(whole2, "tex.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];", "r"((int)a.x), "r"((int)a.y))
INLINE(whole3, "tex.3d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];", "r"((int)a.x), "r"((int)a.y),
       "r"((int)a.z))
INLINE(whole_layered1, "tex.a1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];", "r"((int)a.w), "r"((int)a.x))
INLINE(whole_level2, "tex.level.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}], %7;", "r"((int)a.x), "r"((int)a.y),
       "r"((int)a.w))
INLINE(gather_layered, "tld4.g.a2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];", "r"((int)a.w), "f"(a.x),
       "f"(a.y))
INLINE(gather_cube, "tld4.r.cube.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];", "f"(a.x), "f"(a.y), "f"(a.z))
INLINE(gather_cubes, "tld4.a.acube.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %8}];", "r"((int)a.w), "f"(a.x),
       "f"(a.y), "f"(a.z))
INLINE(offset2, "tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}], {%7, %7};", "f"(a.x), "f"(a.y), "r"(1))
"""


def padded(values: Data | None, count: int) -> Data:
    full = np.zeros((count, 4), np.float32)
    if values is not None:
        full[:, : values.shape[1]] = values
    return full


def run(
    runner: Runner, kernel: str, texture: c_uint64, at: Data, dx: Data | None = None, dy: Data | None = None
) -> Data:
    """Return the four components at each of the places, which have up to four coordinates."""
    arrays = [runner.array(padded(values, len(at))) for values in (at, dx, dy)]
    arrays.append(runner.zeros((len(at), 4), np.float32))
    runner.run(KERNELS, kernel, len(at) // 64, 64, np.uint64(texture.value), *arrays)
    result = arrays[-1].get()
    for array in arrays:
        runner.gpu.driver.cuMemFree_v2(c_uint64(array.pointer))
    return result


def places(rng: np.random.Generator, sizes: tuple[int, ...], *, normalized: bool = False, layers: int = 0) -> Data:
    """Return coordinates from well before the first to well after the last texel, x first, with a layer last."""
    sizes = sizes[::-1]
    at = rng.uniform(-1.5, 2.5, (COUNT, len(sizes))) * (1 if normalized else np.array(sizes))
    at = padded(at, COUNT)
    if layers:
        at[:, 3] = rng.integers(0, layers + 2, COUNT)  # beyond the last layer is the last one
    return at


def floats(rng: np.random.Generator, *shape: int) -> Data:
    return rng.uniform(-4, 4, shape).astype(np.float32)


def same(found: Data, expected: Data, filtering: int = POINT) -> None:
    """Compare what was sampled. Weights and levels have eight bits; of those hardware may be a few steps off."""
    off = 2e-6 if filtering == POINT or not ON_GPU else float(np.ptp(expected)) / 64
    np.testing.assert_allclose(found[..., : expected.shape[-1]], expected, rtol=2e-6, atol=off)


def columns(at: Data, count: int) -> list[Data]:
    return [at[:, k] for k in range(count)]


def anything(rng: np.random.Generator, kind: str, *shape: int) -> Data:
    """Return every value that a type has, as far as they go."""
    if np.dtype(kind).kind == "f":
        return rng.uniform(-100, 100, shape).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(kind)


def directions(rng: np.random.Generator) -> Data:
    at = np.zeros((COUNT, 4), np.float32)
    at[:, :3] = rng.normal(size=(COUNT, 3))
    return at
