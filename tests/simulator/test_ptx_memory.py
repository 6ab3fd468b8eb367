# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""State spaces, barriers, atomics, warps, and blocks that work together."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from ptx_runner import ON_GPU, GpuError, Runner

VARIABLES = r"""
struct Node { int value; Node *next; };
__device__ int counter = 5;
__device__ float table[4] = {1.5f, -2.5f, 0.0f, 3.25f};
__device__ Node third = {30, nullptr}, second = {20, &third}, first = {10, &second};
__device__ const char *words[3] = {"zero", "one", "two"};
__constant__ double weights[3] = {0.25, 0.5, 4.0};
__constant__ const int *into = nullptr;
__device__ unsigned char bytes[7] = {1, 2, 3, 4, 5, 6, 7};
extern "C" __global__ void lists(int *o) { int n = 0; for (Node *p = &first; p; p = p->next) o[n++] = p->value; }
extern "C" __global__ void numbers(double *o) { int i = threadIdx.x;
    o[i] = table[i & 3] * weights[i % 3] + bytes[i % 7]; if (i == 0) counter += 2; }
extern "C" __global__ void letters(char *o) { int i = threadIdx.x; o[i] = words[i / 3][i % 3]; }
"""


def test_global_variables_point_at_each_other(ptx: Runner) -> None:
    out = ptx.zeros(3, np.int32)
    ptx.run(VARIABLES, "lists", 1, 1, out)
    np.testing.assert_array_equal(out.get(), [10, 20, 30])


def test_initialised_arrays_and_constants(ptx: Runner) -> None:
    out = ptx.zeros(64, np.float64)
    before = ptx.variable(VARIABLES, "counter", np.int32)[0]
    ptx.run(VARIABLES, "numbers", 1, 64, out)
    table, weights = [1.5, -2.5, 0.0, 3.25], [0.25, 0.5, 4.0]
    np.testing.assert_array_equal(out.get(), [table[i & 3] * weights[i % 3] + i % 7 + 1 for i in range(64)])
    assert ptx.variable(VARIABLES, "counter", np.int32)[0] == before + 2
    np.testing.assert_array_equal(ptx.variable(VARIABLES, "weights", np.float64), weights)


def test_strings(ptx: Runner) -> None:
    out = ptx.zeros(9, np.uint8)
    ptx.run(VARIABLES, "letters", 1, 9, out)
    assert out.get().tobytes() == b"zeronetwo"


SHARED = r"""
extern "C" __global__ void reduce(const int *x, int *o) {
    __shared__ int s[256];
    int i = threadIdx.x;
    s[i] = x[blockIdx.x * 256 + i];
    __syncthreads();
    for (int k = 128; k; k >>= 1) { if (i < k) s[i] += s[i + k]; __syncthreads(); }
    if (i == 0) o[blockIdx.x] = s[0];
}
extern "C" __global__ void transpose(const float *x, float *o, int n) {
    __shared__ float tile[16][17];
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    if (c < n && r < n) tile[threadIdx.y][threadIdx.x] = x[r * n + c];
    __syncthreads();
    c = blockIdx.y * 16 + threadIdx.x; r = blockIdx.x * 16 + threadIdx.y;
    if (c < n && r < n) o[r * n + c] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void scan(const int *x, int *o) {
    extern __shared__ int d[];
    int i = threadIdx.x, n = blockDim.x;
    d[i] = x[i];
    __syncthreads();
    for (int k = 1; k < n; k <<= 1) { int v = i >= k ? d[i - k] : 0; __syncthreads(); d[i] += v; __syncthreads(); }
    o[i] = d[i];
}
extern "C" __global__ void votes(const int *x, int *o) {
    int v = x[threadIdx.x];
    int count = __syncthreads_count(v > 5), all = __syncthreads_and(v > 0), any = __syncthreads_or(v > 90);
    if (threadIdx.x == 0) { o[0] = count; o[1] = all; o[2] = any; }
}
extern "C" __global__ void both(int *o) {
    __shared__ int fixed[10]; extern __shared__ __align__(16) char dynamic[];
    fixed[threadIdx.x % 10] = threadIdx.x; ((double *)dynamic)[threadIdx.x] = threadIdx.x;
    __syncthreads();
    o[threadIdx.x] = (int)((double *)dynamic)[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void generic(int *o, int which) {
    __shared__ int s[32]; int l[4] = {1, 2, 3, 4};
    s[threadIdx.x] = threadIdx.x * 10;
    __syncthreads();
    int *p = which == 0 ? s : which == 1 ? l : o;
    int v = p[threadIdx.x & 3];
    p[(threadIdx.x + which) & 3] = v;
    o[threadIdx.x + 32] = v + __isShared(p) * 1000 + __isLocal(p) * 2000 + __isGlobal(p) * 4000;
}
"""


def test_reduction_in_shared_memory(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(-1000, 1000, (8, 256), np.int32)
    out = ptx.zeros(8, np.int32)
    ptx.run(SHARED, "reduce", 8, 256, ptx.array(x), out)
    np.testing.assert_array_equal(out.get(), x.sum(1))


def test_transpose(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.random((70, 70), np.float32)
    out = ptx.zeros((70, 70), np.float32)
    ptx.run(SHARED, "transpose", (5, 5), (16, 16), ptx.array(x), out, np.int32(70))
    np.testing.assert_array_equal(out.get(), x.T)


@pytest.mark.parametrize("n", [1, 31, 33, 500, 1024])
def test_scan_in_dynamic_shared_memory(ptx: Runner, rng: np.random.Generator, n: int) -> None:
    x = rng.integers(0, 100, n, np.int32)
    out = ptx.zeros(n, np.int32)
    ptx.run(SHARED, "scan", 1, n, ptx.array(x), out, shared=4 * n)
    np.testing.assert_array_equal(out.get(), x.cumsum())


def test_barriers_that_reduce(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(1, 95, 200, np.int32)
    out = ptx.zeros(3, np.int32)
    ptx.run(SHARED, "votes", 1, 200, ptx.array(x), out)
    assert out.get().tolist()[0] == (x > 5).sum()
    assert [bool(v) for v in out.get()[1:]] == [bool((x > 0).all()), bool((x > 90).any())]


def test_static_and_dynamic_shared_memory_together(ptx: Runner) -> None:
    out = ptx.zeros(64, np.int32)
    ptx.run(SHARED, "both", 1, 64, out, shared=512)
    np.testing.assert_array_equal(out.get(), np.arange(64)[::-1])


@pytest.mark.parametrize("which", [0, 1, 2])
def test_generic_addresses(ptx: Runner, which: int) -> None:
    out = ptx.array(np.arange(100, 164), np.int32)
    ptx.run(SHARED, "generic", 1, 32, out, np.int32(which))
    got = out.get()[32:]
    if which == 1:
        np.testing.assert_array_equal(got, [(i & 3) + 1 + 2000 for i in range(32)])
    else:
        assert ((got >= (1000, 0, 4000)[which]) & (got < (2000, 0, 5000)[which])).all()


ATOMICS = r"""
extern "C" __global__ void ints(int *o, const int *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
    atomicAdd(o, v); atomicSub(o + 1, v); atomicMin(o + 2, v); atomicMax(o + 3, v); atomicAnd(o + 4, v);
        atomicOr(o + 5, v); atomicXor(o + 6, v);
    atomicInc((unsigned *)o + 7, 99); atomicDec((unsigned *)o + 8, 49); atomicExch(o + 9, 1234);
        atomicMin((unsigned *)o + 10, (unsigned)v);
    int seen = o[11], old;
    do { old = seen; seen = atomicCAS(o + 11, old, old + 3); } while (seen != old);
}
extern "C" __global__ void wide(unsigned long long *o, float *f, double *d, const int *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(o, (unsigned long long)x[i]); atomicMax(o + 1, (unsigned long long)(unsigned)x[i]);
        atomicAdd(f, 0.5f); atomicAdd(d, 0.25);
    __shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); __syncthreads();
        if (threadIdx.x == 0) atomicAdd(o + 2, s);
}
extern "C" __global__ void order(int *slots, int *next) { int i = atomicAdd(next, 1);
    slots[i] = blockIdx.x * blockDim.x + threadIdx.x; }
extern "C" __global__ void lock(int *mutex, int *count) {
    for (int k = 0; k < 4; k++) {
        bool done = false;
        while (!done)
            if (atomicCAS(mutex, 0, 1) == 0) { *(volatile int *)count += 1; __threadfence(); atomicExch(mutex, 0);
            done = true; }
    }
}
extern "C" __global__ void spin(int *mutex, int *count) {
    while (atomicCAS(mutex, 0, 1) != 0) { }
    *(volatile int *)count += 1;
    __threadfence();
    atomicExch(mutex, 0);
}
"""


def test_integer_atomics(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(-(2**30), 2**30, 2560, np.int32)
    start = np.zeros(12, np.int32)
    start[2], start[3], start[4], start[10] = 2**31 - 1, -(2**31), -1, -1
    out = ptx.array(start)
    ptx.run(ATOMICS, "ints", 20, 128, out, ptx.array(x))
    got = out.get()
    wrapped = int(x.astype(np.int64).sum()) & 0xFFFFFFFF
    assert got.view(np.uint32)[0] == wrapped
    assert got.view(np.uint32)[1] == -wrapped & 0xFFFFFFFF
    assert got[2] == x.min()
    assert got[3] == x.max()
    assert got[4] == np.bitwise_and.reduce(x)
    assert got[5] == np.bitwise_or.reduce(x)
    assert got[6] == np.bitwise_xor.reduce(x)
    assert got[7] == 2560 % 100
    assert got[8] == (50 - 2560 % 50) % 50
    assert got[9] == 1234
    assert got.view(np.uint32)[10] == x.view(np.uint32).min()
    assert got[11] == 3 * 2560


def test_wide_and_floating_atomics(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(-(2**30), 2**30, 2560, np.int32)
    o, f, d = ptx.zeros(3, np.uint64), ptx.zeros(1, np.float32), ptx.zeros(1, np.float64)
    ptx.run(ATOMICS, "wide", 20, 128, o, f, d, ptx.array(x))
    assert o.get()[0] == int(x.astype(np.int64).sum()) % 2**64
    assert o.get()[1] == x.view(np.uint32).max()
    assert o.get()[2] == 2560
    assert f.get()[0] == 1280
    assert d.get()[0] == 640


def test_atomics_give_each_thread_its_own_slot(ptx: Runner) -> None:
    slots, counter = ptx.zeros(4000, np.int32), ptx.zeros(1, np.int32)
    ptx.run(ATOMICS, "order", 40, 100, slots, counter)
    np.testing.assert_array_equal(np.sort(slots.get()), np.arange(4000))


@pytest.mark.parametrize("name", ["lock", "spin"])
def test_lanes_of_a_warp_may_wait_for_each_other(ptx: Runner, name: str) -> None:
    mutex, count = ptx.zeros(1, np.int32), ptx.zeros(1, np.int32)
    ptx.run(ATOMICS, name, 4, 64, mutex, count)
    assert count.get()[0] == 256 * (4 if name == "lock" else 1)


def test_half_atomics(newest: Runner) -> None:
    source = r"""
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void k(__half *h, __half2 *p, __nv_bfloat16 *b) { atomicAdd(h, __float2half(1.0f));
        atomicAdd(p, __floats2half2_rn(1.0f, 2.0f)); atomicAdd(b, __float2bfloat16(1.0f)); }
    """
    h, p, b = newest.zeros(2, np.float16), newest.zeros(2, np.float16), newest.zeros(2, np.uint16)
    newest.run(source, "k", 2, 64, h, p, b)
    assert h.get().tolist() == [128, 0]
    assert p.get().tolist() == [128, 256]
    assert (b.get().astype(np.uint32) << 16).view(np.float32).tolist() == [128, 0]


WARPS = r"""
extern "C" __global__ void shuffles(const int *x, int *o, int n) {
    int i = threadIdx.x, v = x[i];
    o[i] = __shfl_sync(~0u, v, (i + 5) & 31); o[n + i] = __shfl_up_sync(~0u, v, 3);
        o[2 * n + i] = __shfl_down_sync(~0u, v, 2, 8);
    o[3 * n + i] = __shfl_xor_sync(~0u, v, 9); o[4 * n + i] = __shfl_sync(~0u, v, 1, 4);
    double d = __shfl_xor_sync(~0u, (double)v, 1); o[5 * n + i] = (int)d;
}
extern "C" __global__ void votes(const int *x, unsigned *o, int n) {
    int i = threadIdx.x, v = x[i];
    o[i] = __ballot_sync(~0u, v & 1); o[n + i] = __any_sync(~0u, v > 95) | __all_sync(~0u, v > 0) << 1;
    o[2 * n + i] = __match_any_sync(~0u, v & 3); int p; o[3 * n + i] = __match_all_sync(~0u, i / 32, &p);
        o[4 * n + i] = p;
    if (i & 1) o[5 * n + i] = __ballot_sync(0xaaaaaaaa, v > 50);
        else o[5 * n + i] = __ballot_sync(0x55555555, v > 50);
    unsigned mask = __activemask(); o[6 * n + i] = mask;
}
extern "C" __global__ void sums(const int *x, int *o) {
    int v = x[threadIdx.x];
    for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
    __shared__ int s[32];
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) { v = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0; for (int k = 16; k;
        k >>= 1) v += __shfl_xor_sync(~0u, v, k); if (threadIdx.x == 0) *o = v; }
}
extern "C" __global__ void hand(int *o) {
    __shared__ volatile int s[32];
    int i = threadIdx.x;
    if (i < 16) { s[i] = i * 3; __syncwarp(); o[i] = s[31 - i]; } else { s[i] = i * 5; __syncwarp();
        o[i] = s[31 - i]; }
}
"""


def test_shuffles(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(-100, 100, 64, np.int32)
    out = ptx.zeros((6, 64), np.int32)
    ptx.run(WARPS, "shuffles", 1, 64, ptx.array(x), out, np.int32(64))
    warps, lane = x.reshape(2, 32), np.arange(32)
    want = [
        warps[:, (lane + 5) & 31],
        warps[:, np.where(lane >= 3, lane - 3, lane)],
        warps[:, np.where(lane % 8 + 2 < 8, lane + 2, lane)],
        warps[:, lane ^ 9],
        warps[:, lane // 4 * 4 + 1],
        warps[:, lane ^ 1],
    ]
    for got, expected in zip(out.get(), want, strict=True):
        np.testing.assert_array_equal(got.reshape(2, 32), expected)


def lanes_where(values: np.ndarray, predicate: Callable[[int, int], object]) -> int:
    return sum(1 << k for k, v in enumerate(values) if predicate(v, k))


def test_votes_and_matches(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(1, 100, 64, np.int32)
    out = ptx.zeros((7, 64), np.uint32)
    ptx.run(WARPS, "votes", 1, 64, ptx.array(x), out, np.int32(64))
    got = out.get()
    for i in range(64):
        mine = x[i // 32 * 32 :][:32]
        bits = functools.partial(lanes_where, mine)
        assert got[0, i] == bits(lambda v, k: v & 1)
        assert got[1, i] == int((mine > 95).any()) | 2 * int((mine > 0).all())
        assert got[2, i] == bits(lambda v, k, i=i: v & 3 == x[i] & 3)
        assert got[3, i] == 0xFFFFFFFF
        assert got[4, i] == 1
        assert got[5, i] == bits(lambda v, k, i=i: v > 50 and k % 2 == i % 2)
        assert got[6, i] >> (i % 32) & 1


def test_sums_over_warps(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(-1000, 1000, 512, np.int32)
    out = ptx.zeros(1, np.int32)
    ptx.run(WARPS, "sums", 1, 512, ptx.array(x), out)
    assert out.get()[0] == x.sum()


def test_a_warp_barrier_joins_both_sides_of_a_branch(ptx: Runner) -> None:
    out = ptx.zeros(32, np.int32)
    ptx.run(WARPS, "hand", 1, 32, out)
    np.testing.assert_array_equal(out.get(), [(31 - i) * (5 if i < 16 else 3) for i in range(32)])


def test_warp_reductions(newest: Runner, rng: np.random.Generator) -> None:
    source = r"""
    extern "C" __global__ void k(const int *x, int *o, int n) {
        int i = threadIdx.x, v = x[i];
        o[i] = __reduce_add_sync(~0u, v); o[n + i] = __reduce_min_sync(~0u, v);
        o[2 * n + i] = __reduce_max_sync(~0u, v);
        o[3 * n + i] = __reduce_and_sync(~0u, (unsigned)v); o[4 * n + i] = __reduce_or_sync(~0u, (unsigned)v);
        o[5 * n + i] = __reduce_xor_sync(~0u, (unsigned)v);
        o[6 * n + i] = __reduce_max_sync(~0u, (unsigned)v);
    }
    """
    x = rng.integers(-1000, 1000, 32, np.int32)
    out = newest.zeros((7, 32), np.int32)
    newest.run(source, "k", 1, 32, newest.array(x), out, np.int32(32))
    want = [
        x.sum(),
        x.min(),
        x.max(),
        np.bitwise_and.reduce(x),
        np.bitwise_or.reduce(x),
        np.bitwise_xor.reduce(x),
        x.view(np.uint32).max().astype(np.int32),
    ]
    np.testing.assert_array_equal(out.get(), np.repeat(np.array(want, np.int32)[:, None], 32, 1))


def test_named_barriers(newest: Runner) -> None:
    source = r"""
    extern "C" __global__ void k(int *o) {
        __shared__ int s[64];
        int i = threadIdx.x;
        if (i < 64) { s[i] = i; asm volatile("bar.arrive 1, 128;" ::: "memory"); }
        else { asm volatile("bar.sync 1, 128;" ::: "memory"); o[i - 64] = s[127 - i]; }
    }
    """
    out = newest.zeros(64, np.int32)
    newest.run(source, "k", 1, 128, out)
    np.testing.assert_array_equal(out.get(), np.arange(64)[::-1])


def test_threads_that_left_are_not_waited_for(ptx: Runner) -> None:
    source = r"""
    extern "C" __global__ void k(int *o, int n) {
        __shared__ int s[128];
        s[threadIdx.x] = threadIdx.x;
        if (threadIdx.x >= n) return;
        __syncthreads();
        o[threadIdx.x] = s[n - 1 - threadIdx.x];
    }
    """
    out = ptx.zeros(45, np.int32)
    ptx.run(source, "k", 1, 128, out, np.int32(45))
    np.testing.assert_array_equal(out.get(), np.arange(45)[::-1])


def test_vector_loads_and_stores(ptx: Runner, rng: np.random.Generator) -> None:
    source = r"""
    extern "C" __global__ void k(const float4 *x, float4 *o, const short2 *s, short2 *t, const uchar4 *c, uchar4 *e,
        const double2 *d, double2 *f) {
        int i = threadIdx.x;
        float4 v = x[i]; o[i] = make_float4(v.w, v.z, v.y, v.x); short2 w = s[i]; t[i] = make_short2(w.y, w.x);
        uchar4 b = c[i]; e[i] = make_uchar4(b.y, b.z, b.w, b.x); double2 g = d[i]; f[i] = make_double2(g.y, g.x);
    }
    """
    x, s = rng.random((32, 4), np.float32), rng.integers(-9999, 9999, (32, 2), np.int16)
    c, d = rng.integers(0, 256, (32, 4), np.uint8), rng.random((32, 2))
    outs = [ptx.zeros(a.shape, a.dtype) for a in (x, s, c, d)]
    ptx.run(
        source, "k", 1, 32, ptx.array(x), outs[0], ptx.array(s), outs[1], ptx.array(c), outs[2], ptx.array(d), outs[3]
    )
    for got, want in zip(outs, [x[:, ::-1], s[:, ::-1], c[:, [1, 2, 3, 0]], d[:, ::-1]], strict=True):
        np.testing.assert_array_equal(got.get(), want)


def test_memory_from_malloc_in_a_kernel(ptx: Runner) -> None:
    source = r"""
    struct Cell { int v; Cell *next; };
    extern "C" __global__ void k(int *o) {
        Cell *head = nullptr;
        for (int i = 0; i < 5; i++) { Cell *c = (Cell *)malloc(sizeof(Cell)); c->v = i * threadIdx.x;
        c->next = head; head = c; }
        int total = 0;
        while (head) { Cell *c = head; total += c->v; head = c->next; free(c); }
        o[threadIdx.x] = total;
    }
    """
    out = ptx.zeros(40, np.int32)
    ptx.run(source, "k", 1, 40, out)
    np.testing.assert_array_equal(out.get(), np.arange(40) * 10)


# Blocks that work together.

GROUPS = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void grid(int *x, int rounds) {
    cg::grid_group g = cg::this_grid();
    int n = gridDim.x * blockDim.x, i = g.thread_rank();
    for (int k = 0; k < rounds; k++) { int v = x[(i + 1) % n]; g.sync(); x[i] = v + 1; g.sync(); }
}
extern "C" __global__ void tiles(const int *x, int *o) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int v = x[block.thread_rank()];
    for (int k = 4; k; k >>= 1) v += tile.shfl_xor(v, k);
    block.sync();
    o[block.thread_rank()] = v * 10 + tile.meta_group_rank();
    if (threadIdx.x % 3 == 0) { auto active = cg::coalesced_threads();
        o[64 + threadIdx.x] = active.size() * 100 + active.thread_rank(); }
}
"""


def test_grid_synchronisation(ptx: Runner) -> None:
    if ptx.debug and ON_GPU:
        pytest.skip("gpu: a program of nvcc -G (CUDA 13.0, H200) gives other numbers too; without -G it is right")
    out = ptx.array(np.arange(6 * 64), np.int32)
    ptx.run(GROUPS, "grid", 6, 64, out, np.int32(5), cooperative=True)
    np.testing.assert_array_equal(out.get(), (np.arange(384) + 5) % 384 + 5)


def test_tiles_of_a_block(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(0, 100, 64, np.int32)
    out = ptx.zeros(128, np.int32)
    ptx.run(GROUPS, "tiles", 1, 64, ptx.array(x), out)
    got = out.get()
    np.testing.assert_array_equal(got[:64], np.repeat(x.reshape(8, 8).sum(1) * 10 + np.arange(8), 8))
    for i in range(0, 64, 3):
        inside = [k for k in range(0, 64, 3) if k // 32 == i // 32]
        assert got[64 + i] == len(inside) * 100 + inside.index(i)


def test_blocks_that_wait_for_later_blocks(ptx: Runner) -> None:
    source = r"""
    extern "C" __global__ void k(volatile int *flags, int *o) {
        int b = blockIdx.x, n = gridDim.x;
        if (threadIdx.x == 0) { flags[b] = 1; __threadfence(); for (int k = 0; k < n; k++) while (!flags[k]) { } }
        __syncthreads();
        o[b * blockDim.x + threadIdx.x] = b;
    }
    """
    flags, out = ptx.zeros(12, np.int32), ptx.zeros((12, 33), np.int32)
    ptx.run(source, "k", 12, 33, flags, out)
    np.testing.assert_array_equal(out.get(), np.repeat(np.arange(12)[:, None], 33, 1))


def test_clusters_share_their_memory(newest: Runner) -> None:
    if newest.architecture < 90:
        pytest.skip("clusters need compute capability 9.0")
    source = r"""
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int *o) {
        cg::cluster_group c = cg::this_cluster();
        __shared__ int s[32];
        s[threadIdx.x] = 100 * c.block_rank() + threadIdx.x;
        c.sync();
        int *other = c.map_shared_rank(s, (c.block_rank() + 1) % c.num_blocks());
        o[blockIdx.x * 32 + threadIdx.x] = other[31 - threadIdx.x];
        atomicAdd(c.map_shared_rank(s, 0), 0);
        c.sync();
    }
    """
    out = newest.zeros((8, 32), np.int32)
    newest.run(source, "k", 8, 32, out)
    want = [[100 * ((b % 4 + 1) % 4) + 31 - t for t in range(32)] for b in range(8)]
    np.testing.assert_array_equal(out.get(), want)


def test_asynchronous_copies_and_mbarriers(newest: Runner) -> None:
    if newest.architecture < 90:
        pytest.skip("the instructions need compute capability 9.0")
    source = r"""
    extern "C" __global__ void k(const int *x, int *o) {
        __shared__ __align__(16) int s[128]; __shared__ unsigned long long bar;
        unsigned at = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]),
        b = (unsigned)__cvta_generic_to_shared(&bar);
        if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(b));
        __syncthreads();
        for (int phase = 0; phase < 2; phase++) {
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(x + threadIdx.x + phase));
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(b));
            unsigned done;
            do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                            : "=r"(done) : "r"(b), "r"(phase));
            while (!done);
            o[phase * 128 + threadIdx.x] = s[127 - threadIdx.x];
            __syncthreads();
        }
    }
    """
    x = np.arange(129, dtype=np.int32)
    out = newest.zeros((2, 128), np.int32)
    newest.run(source, "k", 1, 128, newest.array(x), out)
    np.testing.assert_array_equal(out.get(), [np.arange(128)[::-1], np.arange(1, 129)[::-1]])


def test_a_barrier_that_nobody_completes_is_reported(broken: Runner) -> None:
    source = 'extern "C" __global__ void k() { if (threadIdx.x < 32) asm volatile("bar.sync 1, 96;"); }'
    with pytest.raises(GpuError):
        broken.run(source, "k", 1, 64)
