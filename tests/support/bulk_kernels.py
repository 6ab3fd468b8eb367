# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that copy boxes of tensors between global and shared memory, and what they should find, in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

from cuda_core_cffi import Device, ObjectCode, Program, ProgramOptions

SHARED_BYTES = 16384
PIECE = 16
FILLED = 0xEE  # what is in shared memory before a box is loaded
SPANS = {"NONE": 0, "SWIZZLE_32B": 32, "SWIZZLE_64B": 64, "SWIZZLE_128B": 128}
BOUNDS = {"NONE": 0, "SWIZZLE_32B": 0x10, "SWIZZLE_64B": 0x30, "SWIZZLE_128B": 0x70}

HEAD = """
struct alignas(64) Map { unsigned long long words[16]; };

__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void begin(unsigned barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ void expect(unsigned barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ void wait(unsigned barrier)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(barrier) : "memory");
}

__device__ void finish_stores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#define SHARED \\
    __shared__ alignas(1024) unsigned char box[16384]; \\
    __shared__ alignas(8) unsigned long long barrier; \\
    unsigned at = shared_address(box), bar = shared_address(&barrier)
#define FILL(from) for (int i = threadIdx.x; i < bytes; i += blockDim.x) box[i] = from
#define FILL_ALL for (int i = threadIdx.x; i < sizeof(box); i += blockDim.x) box[i] = 0xee
#define TELL_ALL for (int i = threadIdx.x; i < sizeof(box); i += blockDim.x) out[i] = box[i]
#define TELL(to) for (int i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = box[i]
"""
LOAD = """
extern "C" __global__ void load%(rank)d(const __grid_constant__ Map map, %(parameters)s, unsigned char *out, int bytes)
{
    SHARED;
    FILL_ALL;
    if (threadIdx.x == 0) begin(bar);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(bar, bytes);
        asm volatile("cp.async.bulk.tensor.%(rank)dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%%0], [%%1, {%(places)s}], [%%2];" ::"r"(at), "l"(&map), "r"(bar), %(registers)s : "memory");
    }
    wait(bar);
    TELL_ALL;
}

extern "C" __global__ void store%(rank)d(const __grid_constant__ Map map, %(parameters)s, const unsigned char *in,
                                         int bytes)
{
    SHARED;
    FILL(in[i]);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.%(rank)dd.global.shared::cta.tile.bulk_group [%%1, {%(places)s}], [%%0];"
                     ::"r"(at), "l"(&map), "r"(bar), %(registers)s : "memory");
        finish_stores();
    }
}
"""
PIXELS = """
extern "C" __global__ void pixels(const __grid_constant__ Map map, int c, int w, int h, int n, short offset_w,
                                  short offset_h, unsigned char *out, int bytes)
{
    SHARED;
    FILL(0xee);
    if (threadIdx.x == 0) begin(bar);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(bar, bytes);
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(at), "l"(&map), "r"(bar), "r"(c), "r"(w),
                     "r"(h), "r"(n), "h"(offset_w), "h"(offset_h) : "memory");
    }
    wait(bar);
    TELL(out);
}

extern "C" __global__ void pixels3(const __grid_constant__ Map map, int c, int w, int n, short offset_w,
                                   unsigned char *out, int bytes)
{
    SHARED;
    FILL(0xee);
    if (threadIdx.x == 0) begin(bar);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(bar, bytes);
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5}], [%2], {%6};" ::"r"(at), "l"(&map), "r"(bar), "r"(c), "r"(w), "r"(n),
                     "h"(offset_w) : "memory");
    }
    wait(bar);
    TELL(out);
}

extern "C" __global__ void flat(const unsigned char *in, unsigned char *out, int bytes)
{
    SHARED;
    if (threadIdx.x == 0) begin(bar);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(bar, bytes);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(at), "l"(in), "r"(bytes), "r"(bar) : "memory");
        wait(bar);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     ::"l"(out), "r"(at), "r"(bytes) : "memory");
        finish_stores();
    }
}

extern "C" __global__ void several(const __grid_constant__ Map map, int x, int y, unsigned char *out, int bytes)
{
    SHARED;
    FILL(0xee);
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        begin(bar);
        expect(bar, bytes);
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (rank == 0 && threadIdx.x == 0) {
        unsigned short blocks = 3;
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
                     ::"r"(at), "l"(&map), "r"(bar), "r"(x), "r"(y), "h"(blocks) : "memory");
    }
    wait(bar);
    out += rank * bytes;
    TELL(out);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""


REDUCE = """
extern "C" __global__ void memory_%(name)s(const unsigned char *in, unsigned char *out, int bytes)
{
    SHARED;
    FILL(in[i]);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.%(op)s.%(type)s [%%0], [%%1], %%2;"
                     ::"l"(out), "r"(at), "r"(bytes), "r"(bar) : "memory");
        finish_stores();
    }
}
"""
REDUCE_IN_CLUSTER = """
extern "C" __global__ void block_%(name)s(const unsigned char *in, unsigned char *out, int bytes)
{
    SHARED;
    unsigned rank, there, there_bar;
    asm volatile("mov.u32 %%0, %%%%cluster_ctarank;" : "=r"(rank));
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) box[i] = rank ? out[i] : in[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    if (threadIdx.x == 0) begin(bar);
    __syncthreads();
    if (threadIdx.x == 0 && rank == 1) expect(bar, bytes);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %%0, %%1, 1;" : "=r"(there) : "r"(at));
    asm volatile("mapa.shared::cluster.u32 %%0, %%1, 1;" : "=r"(there_bar) : "r"(bar));
    if (threadIdx.x == 0 && rank == 0)
        asm volatile("%(instruction)s [%%0], [%%1], %%2, [%%3];"
                     ::"r"(there), "r"(at), "r"(bytes), "r"(there_bar) : "memory");
    if (rank == 1) {
        wait(bar);
        TELL(out);
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""
# What the hardware refuses: the target is shared memory of the block itself, at an address that mapa has not made.
REDUCE_IN_BLOCK = """
extern "C" __global__ void own_%(name)s(int bytes)
{
    SHARED;
    FILL_ALL;
    if (threadIdx.x == 0) begin(bar);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(bar, bytes);
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%(op)s.%(type)s "
                     "[%%0], [%%1], %%2, [%%3];" ::"r"(at), "r"(at + 8192), "r"(bytes), "r"(bar) : "memory");
    }
    wait(bar);
}
"""
REDUCE_BOX = """
extern "C" __global__ void box_%(op)s(const __grid_constant__ Map map, int x, int y, const unsigned char *in, int bytes)
{
    SHARED;
    FILL(in[i]);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.%(op)s.tile.bulk_group "
                     "[%%1, {%%3, %%4}], [%%0];" ::"r"(at), "l"(&map), "r"(bar), "r"(x), "r"(y) : "memory");
        finish_stores();
    }
}
"""
IN_THE_BLOCK = (("and", "b32"), ("add", "u32"))
BITS, WHOLE = ("and", "or", "xor"), ("add", "min", "max", "inc", "dec")
IN_MEMORY = (
    *((op, type_) for op in BITS for type_ in ("b32", "b64")),
    *((op, type_) for op in WHOLE for type_ in ("u32",)),
    *((op, type_) for op in ("add", "min", "max") for type_ in ("s32", "u64", "f16")),
    *((op, "s64") for op in ("min", "max")),
    *(("add", type_) for type_ in ("f32", "f64")),
)
IN_BOXES = (
    *((op, dtype) for op in BITS for dtype in ("uint32", "uint64")),
    *((op, "uint32") for op in WHOLE),
    *((op, dtype) for op in ("add", "min", "max") for dtype in ("int32", "uint64", "float16")),
    *((op, "int64") for op in ("min", "max")),
    *(("add", dtype) for dtype in ("float32", "float64")),
)
BETWEEN_BLOCKS = (
    *((op, "b32") for op in BITS),
    *((op, "u32") for op in WHOLE),
    *((op, "s32") for op in ("add", "min", "max")),
    ("add", "u64"),
)


def reduction(op: str, type_: str, *, memory: bool) -> str:
    """Return a kernel that combines bytes with those in memory, or in shared memory of another block."""
    suffix = "noftz.f16" if (op, type_) == ("add", "f16") else type_
    fields = {"name": f"{op}_{type_}", "op": op, "type": suffix}
    if memory:
        return REDUCE % fields
    start = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    return REDUCE_IN_CLUSTER % {**fields, "instruction": f"{start}.{op}.{suffix}"}


def of_rank(rank: int) -> str:
    """Return the kernels that copy boxes of so many dimensions."""
    return LOAD % {
        "rank": rank,
        "parameters": ", ".join(f"int c{axis}" for axis in range(rank)),
        "places": ", ".join(f"%{axis + 3}" for axis in range(rank)),
        "registers": ", ".join(f'"r"(c{axis})' for axis in range(rank)),
    }


SOURCE = HEAD + "".join(of_rank(rank) for rank in range(1, 6)) + PIXELS
REDUCTIONS = "".join(
    [
        HEAD,
        *(reduction(op, type_, memory=True) for op, type_ in IN_MEMORY),
        *(reduction(op, type_, memory=False) for op, type_ in BETWEEN_BLOCKS),
        *(REDUCE_IN_BLOCK % {"name": f"{op}_{type_}", "op": op, "type": type_} for op, type_ in IN_THE_BLOCK),
        *(REDUCE_BOX % {"op": op} for op in (*BITS, *WHOLE)),
        REDUCE_IN_CLUSTER
        % {
            "name": "copy",
            "instruction": "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
        },
    ]
)


def reduced(op: str, old: Any, new: Any) -> Any:
    """Return what a reduction leaves of what was there and what is combined with it."""
    functions = {
        "add": numpy.add,
        "min": numpy.minimum,
        "max": numpy.maximum,
        "and": numpy.bitwise_and,
        "or": numpy.bitwise_or,
        "xor": numpy.bitwise_xor,
        "inc": lambda a, b: numpy.where(a >= b, 0, a + 1),
        "dec": lambda a, b: numpy.where((a == 0) | (a > b), b, a - 1),
    }
    return functions[op](old, new).astype(old.dtype)


def tile(array: Any, start: Any, box: Any, steps: Any, fill: Any = 0) -> Any:
    """Return the elements of a box, in the order of the array's axes; what is outside is filled."""
    found = [[start[axis] + at for at in range(0, box[axis], steps[axis])] for axis in range(array.ndim)]
    made = numpy.full([len(places) for places in found], fill, array.dtype)
    for index in itertools.product(*(range(len(places)) for places in found)):
        place = tuple(found[axis][at] for axis, at in enumerate(index))
        if all(0 <= at < extent for at, extent in zip(place, array.shape)):
            made[index] = array[place]
    return made


def columns(
    images: Any, start: Any, offsets: Any, lower: Any, upper: Any, channels: int, pixels: int, steps: Any
) -> Any:
    """Return pixels of (images, height, width, channels): as many channels of each, one pixel after the other."""
    count, height, width, _ = images.shape
    n, y, x, c = start
    made = numpy.zeros((pixels, channels), images.dtype)
    for pixel in range(pixels):
        at = (n, y + offsets[0], x + offsets[1])
        if all(0 <= place < extent for place, extent in zip(at, (count, height, width))):
            row = images[at][c : c + channels]
            made[pixel, : len(row)] = row
        x += steps[1]
        if x >= width + upper[1]:
            x, y = lower[1], y + steps[0]
            if y >= height + upper[0]:
                y, n = lower[0], n + 1
    return made


def swizzle(data: bytes, kind: str, row: int) -> bytes:
    """Return rows of so many bytes as they lie in shared memory, from a multiple of the pattern on.

    Each row begins a span. What is between rows that are shorter stays as the kernels have filled it.
    """
    pitch = max(row, SPANS[kind])
    made = bytearray([FILLED]) * (-(-(len(data) // row * pitch) // 1024) * 1024)
    for at in range(0, len(data), PIECE):
        place = at // row * pitch + at % row
        to = place ^ (place >> 3 & BOUNDS[kind])
        made[to : to + PIECE] = data[at : at + PIECE]
    return bytes(made)


def needs_bulk_copies(device: Device) -> None:
    """Skip a test where the device has neither bulk copies nor tensor maps."""
    if device.compute_capability < (9, 0):
        pytest.skip("bulk copies and tensor maps came with compute capability 9.0")


def loaded_code(source: str, kernel: str) -> ObjectCode | None:
    """Return code that is loaded before tests look for leaks; None where :func:`needs_bulk_copies` skips them."""
    device = Device()
    device.set_current()
    if device.compute_capability < (9, 0):
        return None
    with Program(source, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17")) as program:
        compiled = program.compile("ptx")
    compiled.get_kernel(kernel)
    return compiled
