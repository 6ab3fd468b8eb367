# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of ``python -m benchmarks simulated``: sources, arguments, and what NumPy says of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SEED = 20260101
Array = Any
"""A NumPy array of any type."""


class Job(NamedTuple):
    """One launch.

    Attributes
    ----------
    grid, block : tuple of int
        Its dimensions.
    arrays : list of numpy.ndarray
        The kernel's pointers, by their first contents.
    scalars : tuple
        The arguments after the pointers.
    check : Callable
        Gets the arrays as the launch has left them, and raises AssertionError if they are wrong.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arrays: list[Array]
    scalars: tuple[Any, ...]
    check: Callable[[list[Array]], None]


class SimulatedRow(NamedTuple):
    """A kernel, named ``kernel`` in its source, and a function that makes its launch."""

    name: str
    source: str
    make: Callable[[], Job]


def generator() -> np.random.Generator:
    """Return the source of the inputs."""
    return np.random.default_rng(SEED)


def floats(*shape: int) -> Array:
    """Return floats between -1 and 1."""
    return generator().uniform(-1, 1, shape).astype(np.float32)


# --- saxpy ----------------------------------------------------------------------------------------------------

SAXPY = r"""
extern "C" __global__ void kernel(const float *x, float *y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""


def saxpy() -> Job:
    count, block = 1_000_000, 256
    x, y = floats(2, count)
    expected = 2.5 * x.astype(np.float64) + y

    def check(arrays: list[Array]) -> None:
        np.testing.assert_allclose(arrays[1], expected, rtol=1e-5, atol=1e-6)

    return Job((-(-count // block),), (block,), [x, y], (np.float32(2.5), np.int32(count)), check)


# --- matrix products ------------------------------------------------------------------------------------------

MATMUL = r"""
#define TILE 16
extern "C" __global__ void kernel(const float *a, const float *b, float *c, int n)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""


def matmul() -> Job:
    size, tile = 256, 16
    a, b = floats(2, size, size)
    expected = a.astype(np.float64) @ b

    def check(arrays: list[Array]) -> None:
        np.testing.assert_allclose(arrays[2], expected, rtol=1e-4, atol=1e-4)

    grid = (size // tile, size // tile)
    return Job(grid, (tile, tile), [a, b, np.zeros_like(a)], (np.int32(size),), check)


# Two columns for each thread. What cuda_fp16.h would give is written out: the row needs no headers.
HALF_MATMUL = r"""
#define TILE 16
typedef unsigned int half2_bits;
static __device__ half2_bits fused(half2_bits a, half2_bits b, half2_bits c)
{
    half2_bits d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
extern "C" __global__ void kernel(const unsigned short *a, const half2_bits *b, half2_bits *c, int n)
{
    __shared__ unsigned short left[TILE][TILE];
    __shared__ half2_bits right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, pair = blockIdx.x * TILE + threadIdx.x;
    half2_bits sum = 0;
    for (int tile = 0; tile < n; tile += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * (n / 2) + pair];
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            half2_bits one = left[threadIdx.y][k];
            sum = fused(one | one << 16, right[k][threadIdx.x], sum);
        }
        __syncthreads();
    }
    c[row * (n / 2) + pair] = sum;
}
"""


def half_matmul() -> Job:
    size, tile = 128, 16
    a, b = (floats(2, size, size) / 4).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)

    def check(arrays: list[Array]) -> None:
        np.testing.assert_allclose(arrays[2].view(np.float16), expected, atol=0.02)

    grid = (size // 2 // tile, size // tile)
    return Job(grid, (tile, tile), [a, b, np.zeros_like(a)], (np.int32(size),), check)


# --- reduction and scan ---------------------------------------------------------------------------------------

REDUCTION = r"""
extern "C" __global__ void kernel(const float *x, float *sum, int n)
{
    __shared__ float partial[32];
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += x[i];
    for (int offset = 16; offset; offset /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, offset);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int offset = 16; offset; offset /= 2)
            mine += __shfl_down_sync(0xffffffff, mine, offset);
        if (threadIdx.x == 0)
            atomicAdd(sum, mine);
    }
}
"""


def reduction() -> Job:
    count = 1 << 20
    x = floats(count)
    expected = x.sum(dtype=np.float64)

    def check(arrays: list[Array]) -> None:
        np.testing.assert_allclose(arrays[1][0], expected, atol=0.05)

    return Job((64,), (256,), [x, np.zeros(1, np.float32)], (np.int32(count),), check)


SCAN = r"""
extern "C" __global__ void kernel(const int *in, int *out)
{
    __shared__ int sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int mine = in[i];
    for (int offset = 1; offset < 32; offset *= 2) {
        int other = __shfl_up_sync(0xffffffff, mine, offset);
        if (lane >= offset)
            mine += other;
    }
    if (lane == 31)
        sums[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        int sum = lane < blockDim.x / 32 ? sums[lane] : 0;
        for (int offset = 1; offset < 32; offset *= 2) {
            int other = __shfl_up_sync(0xffffffff, sum, offset);
            if (lane >= offset)
                sum += other;
        }
        sums[lane] = sum;
    }
    __syncthreads();
    out[i] = mine + (warp ? sums[warp - 1] : 0);
}
"""


def scan() -> Job:
    blocks, block = 512, 512
    values = generator().integers(-1000, 1000, (blocks, block), np.int32)

    def check(arrays: list[Array]) -> None:
        np.testing.assert_array_equal(arrays[1], values.cumsum(axis=1))

    return Job((blocks,), (block,), [values, np.zeros_like(values)], (), check)


# --- sort -----------------------------------------------------------------------------------------------------

SORT = r"""
#define COUNT 1024
extern "C" __global__ void kernel(int *values)
{
    __shared__ int tile[COUNT];
    int *mine = values + blockIdx.x * COUNT;
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x)
        tile[i] = mine[i];
    for (int size = 2; size <= COUNT; size *= 2)
        for (int stride = size / 2; stride; stride /= 2) {
            __syncthreads();
            for (int k = threadIdx.x; k < COUNT / 2; k += blockDim.x) {
                int low = 2 * k - (k & (stride - 1)), high = low + stride;
                int a = tile[low], b = tile[high];
                if ((a > b) == ((low & size) == 0)) {
                    tile[low] = b;
                    tile[high] = a;
                }
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x)
        mine[i] = tile[i];
}
"""


def sort() -> Job:
    blocks, count, block = 32, 1024, 256
    values = generator().integers(-(2**31), 2**31, (blocks, count), np.int32)

    def check(arrays: list[Array]) -> None:
        np.testing.assert_array_equal(arrays[0], np.sort(values, axis=1))

    return Job((blocks,), (block,), [values], (), check)


# --- stencil --------------------------------------------------------------------------------------------------

STENCIL = r"""
extern "C" __global__ void kernel(const float *in, float *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1)
        return;
    int i = y * width + x;
    out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}
"""


def stencil() -> Job:
    width, height, block = 1024, 512, (32, 8)
    grid = floats(height, width)
    inner = grid.astype(np.float64)
    around = inner[1:-1, :-2] + inner[1:-1, 2:] + inner[:-2, 1:-1] + inner[2:, 1:-1]
    expected = 0.5 * inner[1:-1, 1:-1] + 0.125 * around

    def check(arrays: list[Array]) -> None:
        np.testing.assert_allclose(arrays[1][1:-1, 1:-1], expected, atol=1e-6)

    blocks = (width // block[0], height // block[1])
    return Job(blocks, block, [grid, np.zeros_like(grid)], (np.int32(width), np.int32(height)), check)


# --- histogram ------------------------------------------------------------------------------------------------

HISTOGRAM = r"""
extern "C" __global__ void kernel(const unsigned char *in, unsigned *bins, int n)
{
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[in[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
"""


def histogram() -> Job:
    count, bins = 1 << 19, 256
    values = generator().integers(0, bins, count, np.uint8)
    expected = np.bincount(values, minlength=bins)

    def check(arrays: list[Array]) -> None:
        np.testing.assert_array_equal(arrays[1], expected)

    return Job((32,), (bins,), [values, np.zeros(bins, np.uint32)], (np.int32(count),), check)


# --- random numbers -------------------------------------------------------------------------------------------

RANDOM = r"""
extern "C" __global__ void kernel(float4 *out, unsigned seed)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned c0 = i, c1 = 0, c2 = 0, c3 = 0, k0 = seed, k1 = 0;
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        unsigned high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const float unit = 1.0f / 16777216.0f;
    out[i] = make_float4((c0 >> 8) * unit, (c1 >> 8) * unit, (c2 >> 8) * unit, (c3 >> 8) * unit);
}
"""


def random_numbers() -> Job:
    """Philox4x32 with 10 rounds."""
    count, block, seed = 1 << 18, 256, 12345

    def check(arrays: list[Array]) -> None:
        mask = np.uint64(0xFFFFFFFF)
        c = [np.arange(count, dtype=np.uint64), *(np.zeros(count, np.uint64) for _ in range(3))]
        keys = [seed, 0]
        for _ in range(10):
            first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
            high0, high1 = first >> np.uint64(32), second >> np.uint64(32)
            c = [high1 ^ c[1] ^ np.uint64(keys[0]), second & mask, high0 ^ c[3] ^ np.uint64(keys[1]), first & mask]
            keys = [(key + step) % 2**32 for key, step in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)]
        expected = np.stack(c, axis=1) >> np.uint64(8)
        np.testing.assert_array_equal(arrays[0], (expected / 2**24).astype(np.float32))

    return Job((count // block,), (block,), [np.zeros((count, 4), np.float32)], (np.uint32(seed),), check)


# --- string search --------------------------------------------------------------------------------------------

SEARCH = r"""
extern "C" __global__ void kernel(const char *text, const char *word, int *found, int n, int length)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > n - length)
        return;
    int k = 0;
    while (k < length && text[i + k] == word[k])
        k++;
    if (k == length)
        atomicAdd(found, 1);
}
"""


def string_search() -> Job:
    count, block, word = 1 << 18, 256, b"abca"
    text = generator().choice(np.frombuffer(b"abc", np.uint8), count)
    matches = np.ones(count - len(word) + 1, bool)
    for index, letter in enumerate(word):
        matches &= text[index : index + len(matches)] == letter

    def check(arrays: list[Array]) -> None:
        assert arrays[2][0] == matches.sum()

    arrays = [text, np.frombuffer(word, np.uint8).copy(), np.zeros(1, np.int32)]
    return Job((count // block,), (block,), arrays, (np.int32(count), np.int32(len(word))), check)


# --- tree walk ------------------------------------------------------------------------------------------------

TREE = r"""
struct node { int key, left, right, value; };
extern "C" __global__ void kernel(const node *tree, const int *keys, int *found)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int key = keys[i], at = 0, result = -1;
    while (at >= 0) {
        if (tree[at].key == key) {
            result = tree[at].value;
            break;
        }
        at = key < tree[at].key ? tree[at].left : tree[at].right;
    }
    found[i] = result;
}
"""


def tree_walk() -> Job:
    """Search a binary tree that random insertions have made."""
    nodes, count, block = 4096, 1 << 15, 128
    order = generator().permutation(nodes)
    tree = np.full((nodes, 4), -1, np.int32)
    for index, key in enumerate(order.tolist()):
        tree[index] = (2 * key, -1, -1, key + 7)
        at = 0
        while index:
            side = 1 if 2 * key < tree[at, 0] else 2
            if tree[at, side] < 0:
                tree[at, side] = index
                break
            at = tree[at, side]
    keys = generator().integers(0, 2 * nodes, count, np.int32)
    expected = np.where(keys % 2 == 0, keys // 2 + 7, -1)

    def check(arrays: list[Array]) -> None:
        np.testing.assert_array_equal(arrays[2], expected)

    return Job((count // block,), (block,), [tree, keys, np.zeros_like(keys)], (), check)


# --- FFT ------------------------------------------------------------------------------------------------------

FFT = r"""
#define COUNT 256
extern "C" __global__ void kernel(const float2 *in, float2 *out)
{
    __shared__ float2 data[COUNT];
    in += blockIdx.x * COUNT;
    out += blockIdx.x * COUNT;
    for (unsigned i = threadIdx.x; i < COUNT; i += COUNT / 2)
        data[__brev(i) >> 24] = in[i];
    for (int half = 1; half < COUNT; half *= 2) {
        __syncthreads();
        int k = threadIdx.x & (half - 1), low = 2 * (threadIdx.x - k) + k;
        float sine, cosine;
        sincospif(-(float)k / half, &sine, &cosine);
        float2 a = data[low], b = data[low + half];
        float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
        data[low] = make_float2(a.x + turned.x, a.y + turned.y);
        data[low + half] = make_float2(a.x - turned.x, a.y - turned.y);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < COUNT; i += COUNT / 2)
        out[i] = data[i];
}
"""


def fft() -> Job:
    batch, count = 128, 256
    signal = (floats(batch, count) + 1j * floats(count, batch).T).astype(np.complex64)

    def check(arrays: list[Array]) -> None:
        np.testing.assert_allclose(arrays[1], np.fft.fft(signal), rtol=1e-4, atol=1e-3)

    return Job((batch,), (count // 2,), [signal, np.zeros_like(signal)], (), check)


ROWS = (
    SimulatedRow("saxpy", SAXPY, saxpy),
    SimulatedRow("matmul, float", MATMUL, matmul),
    SimulatedRow("matmul, half", HALF_MATMUL, half_matmul),
    SimulatedRow("reduction", REDUCTION, reduction),
    SimulatedRow("scan", SCAN, scan),
    SimulatedRow("sort", SORT, sort),
    SimulatedRow("stencil", STENCIL, stencil),
    SimulatedRow("histogram", HISTOGRAM, histogram),
    SimulatedRow("random numbers", RANDOM, random_numbers),
    SimulatedRow("string search", SEARCH, string_search),
    SimulatedRow("tree walk", TREE, tree_walk),
    SimulatedRow("FFT", FFT, fft),
)
