# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Fit a linear model on several GPUs: each rank has its part of the samples, and all add their gradients up.

    torchrun --nproc-per-node=2 examples/data_parallel.py --reduce nccl
    mpirun -n 2 python examples/data_parallel.py --reduce mpi

A step is a graph, captured once: a kernel adds up the gradient of this rank's samples, an all-reduce adds up those of
all ranks, and a kernel moves the weights. ``--reduce`` chooses who adds up: NCCL through the extension of
nccl_allreduce.py, nccl4py, PyTorch, or MPI, which does it on the host, in a host node of the graph. MPI gets
page-locked memory, which every MPI can use; it works without a GPU too. The default, ``none``, is for one rank.

The weights do not depend on the number of ranks, bit for bit: contributions of samples are rounded to integers of 64
bits, whose sum has no order. Rank 0 compares the weights with what NumPy computes, and prints a digest.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Callable

import numpy as np
from ranks import Ranks

from cuda_core_cffi import (
    Buffer,
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    Stream,
    launch,
)
from cuda_core_cffi.graph import GraphBuilder
from cuda_core_cffi.utils import StridedMemoryView

FEATURES = 8
SAMPLES = 4096
STEPS = 10
RATE = 0.5
SCALE = 2.0**30  # of the integers: a gradient of 1 is so many
BLOCK = 256

# Every operation on floating-point numbers is one that NumPy does in the same way: no fused multiply-add.
SOURCE = r"""
typedef unsigned long long u64;
typedef long long i64;

static __device__ i64 index() { return blockIdx.x * (i64)blockDim.x + threadIdx.x; }
static __device__ i64 threads() { return gridDim.x * (i64)blockDim.x; }

// What is measured: features that look random, and a result that depends on them linearly.
extern "C" __global__ void make_samples(float *x, float *y, i64 first, i64 count)
{
    for (i64 i = index(); i < count; i += threads()) {
        int sum = 0;
        for (int j = 0; j < FEATURES; j++) {
            unsigned int bits = (unsigned int)((first + i) * FEATURES + j) * 2654435761u;
            bits = (bits ^ (bits >> 15)) * 2246822519u;
            int value = (int)(bits >> 20) - 2048;
            x[j * count + i] = value / 2048.0f;
            sum += value * (j + 1);
        }
        y[i] = sum / 2048.0f;
    }
}

extern "C" __global__ void add_gradient(const float *x, const float *y, const double *weights, u64 *gradient, i64 count)
{
    i64 sums[FEATURES] = {0};
    for (i64 i = index(); i < count; i += threads()) {
        float values[FEATURES];
        double error = -y[i];
        for (int j = 0; j < FEATURES; j++) {
            values[j] = x[j * count + i];
            error = __dadd_rn(error, __dmul_rn(weights[j], values[j]));
        }
        for (int j = 0; j < FEATURES; j++)
            sums[j] += __double2ll_rn(__dmul_rn(__dmul_rn(error, values[j]), SCALE));
    }
    for (int j = 0; j < FEATURES; j++) {
        for (int step = 16; step; step /= 2)
            sums[j] += __shfl_xor_sync(0xffffffff, sums[j], step);
        if (threadIdx.x % 32 == 0)
            atomicAdd(&gradient[j], (u64)sums[j]);
    }
}

// Moves the weights, and clears the gradient for the next step.
extern "C" __global__ void move(double *weights, i64 *gradient, double factor)
{
    int j = threadIdx.x;
    weights[j] = __dsub_rn(weights[j], __dmul_rn(__ll2double_rn(gradient[j]), factor));
    gradient[j] = 0;
}
"""


class NoReduction:
    """For one rank, which has nobody to add anything to."""

    def __init__(self, ranks: Ranks, stream: Stream) -> None:
        if ranks.size > 1:
            raise ValueError(f"choose with --reduce how {ranks.size} ranks add their gradients up")

    def of(self, memory: Buffer) -> Callable[[Stream | GraphBuilder], object]:
        """Return a function that adds up the integers that all ranks have there, in the order of the stream."""
        return lambda stream: None

    def close(self) -> None:
        """Give back what this needs."""


class WithNCCL(NoReduction):
    """NCCL, through the extension of nccl_allreduce.py."""

    def __init__(self, ranks: Ranks, stream: Stream) -> None:
        from nccl_allreduce import Communicator, way_to_start

        self.communicator = Communicator(ranks, way_to_start(ranks, None))

    def of(self, memory: Buffer) -> Callable[[Stream | GraphBuilder], object]:
        return lambda stream: self.communicator.all_reduce(memory, memory, np.int64, stream=stream)

    def close(self) -> None:
        self.communicator.close()


class WithNCCL4Py(NoReduction):
    """nccl4py, which takes arrays by DLPack and streams by ``__cuda_stream__``."""

    def __init__(self, ranks: Ranks, stream: Stream) -> None:
        import nccl.core as nccl

        self.sum = nccl.SUM
        value = ranks.broadcast(bytes(nccl.get_unique_id(empty=ranks.rank > 0)))
        self.communicator = nccl.Communicator.init(ranks.size, ranks.rank, nccl.UniqueId.from_bytes(value))

    def of(self, memory: Buffer) -> Callable[[Stream | GraphBuilder], object]:
        array = as_integers(memory)
        return lambda stream: self.communicator.allreduce(array, array, self.sum, stream=stream)

    def close(self) -> None:
        self.communicator.destroy()


class WithTorch(NoReduction):
    """torch.distributed, which takes arrays by DLPack, and works in the stream that is PyTorch's current one."""

    def __init__(self, ranks: Ranks, stream: Stream) -> None:
        import torch.distributed

        self.torch = torch
        torch.cuda.set_device(ranks.device().device_id)
        torch.cuda.set_stream(torch.cuda.ExternalStream(int(stream.handle)))
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29500")
        torch.distributed.init_process_group("nccl", rank=ranks.rank, world_size=ranks.size)
        torch.distributed.all_reduce(torch.zeros(1, device="cuda"))  # connects the ranks, which cannot be captured
        torch.cuda.synchronize()

    def of(self, memory: Buffer) -> Callable[[Stream | GraphBuilder], object]:
        tensor = self.torch.from_dlpack(as_integers(memory))
        return lambda stream: self.torch.distributed.all_reduce(tensor)

    def close(self) -> None:
        self.torch.distributed.destroy_process_group()


class OnHost(NoReduction):
    """A reduction that a function of the host does, which the stream or the graph calls, with page-locked memory."""

    def __init__(self, ranks: Ranks, stream: Stream) -> None:
        self.memory: list[Buffer] = []

    def add_up(self, integers: np.ndarray) -> None:
        """Replace the integers of this rank by the sums. This runs in a thread of the driver."""
        raise NotImplementedError

    def of(self, memory: Buffer) -> Callable[[Stream | GraphBuilder], object]:
        host = LegacyPinnedMemoryResource().allocate(memory.size)
        self.memory.append(host)
        integers = np.asarray(host).view(np.int64)

        def reduce(stream: Stream | GraphBuilder) -> None:
            memory.copy_to(host, stream=stream)
            stream.callback(lambda: self.add_up(integers))
            memory.copy_from(host, stream=stream)

        return reduce

    def close(self) -> None:
        for host in self.memory:
            host.close()


class WithMPI(OnHost):
    """MPI, with mpi4py."""

    def __init__(self, ranks: Ranks, stream: Stream) -> None:
        super().__init__(ranks, stream)
        from mpi4py import MPI

        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise RuntimeError("a thread of the driver calls MPI: initialize MPI with MPI_THREAD_SERIALIZED or more")
        self.mpi = MPI

    def add_up(self, integers: np.ndarray) -> None:
        self.mpi.COMM_WORLD.Allreduce(self.mpi.IN_PLACE, integers)


def as_integers(memory: Buffer) -> StridedMemoryView:
    """Return memory as an array of integers of 64 bits."""
    return StridedMemoryView.from_buffer(memory, (memory.size // 8,), dtype=np.dtype(np.int64))


REDUCTIONS = {"none": NoReduction, "nccl": WithNCCL, "nccl4py": WithNCCL4Py, "torch": WithTorch, "mpi": WithMPI}


def share(samples: int, ranks: Ranks) -> tuple[int, int]:
    """Return the first sample of this rank, and how many it has."""
    first = samples * ranks.rank // ranks.size
    return first, samples * (ranks.rank + 1) // ranks.size - first


class Fit:
    """The samples of this rank, the weights, and the graph of a step."""

    def __init__(
        self, device: Device, stream: Stream, ranks: Ranks, reduction: NoReduction, samples: int, features: int
    ):
        self.stream, self.features = stream, features
        options = ProgramOptions(
            arch=f"sm_{device.arch}", define_macro=[("FEATURES", str(features)), ("SCALE", str(SCALE))]
        )
        self.code = Program(SOURCE, "c++", options).compile()
        make, add, move = map(self.code.get_kernel, ("make_samples", "add_gradient", "move"))
        first, count = share(samples, ranks)
        sizes = (4 * features * count, 4 * count, 8 * features, 8 * features)
        self.buffers = [device.allocate(max(size, 1), stream=stream) for size in sizes]
        x, y, self.weights, self.gradient = self.buffers
        blocks = min(-(-max(count, 1) // BLOCK), 8 * device.properties.multiprocessor_count)
        config = LaunchConfig(grid=blocks, block=BLOCK)
        launch(stream, config, make, x, y, first, count)
        self.weights.fill(0, stream=stream)
        self.gradient.fill(0, stream=stream)
        reduce = reduction.of(self.gradient)
        reduce(stream)  # NCCL connects the ranks when they reduce for the first time, which is better not captured
        stream.sync()
        with stream.create_graph_builder() as builder:
            builder.begin_building("thread_local")
            launch(builder, config, add, x, y, self.weights, self.gradient, count)
            reduce(builder)
            launch(
                builder, LaunchConfig(grid=1, block=features), move, self.weights, self.gradient, RATE / SCALE / samples
            )
            self.step = builder.end_building().complete()

    def run(self, steps: int) -> None:
        """Do steps, and wait for them."""
        for _ in range(steps):
            self.step.launch(self.stream)
        self.stream.sync()

    def result(self) -> np.ndarray:
        """Return the weights."""
        with LegacyPinnedMemoryResource().allocate(8 * self.features) as host:
            self.weights.copy_to(host, stream=self.stream)
            self.stream.sync()
            return np.asarray(host).view(np.float64).copy()

    def close(self) -> None:
        """Give everything back."""
        self.step.close()
        for buffer in self.buffers:
            buffer.close()


def with_numpy(samples: int, features: int, steps: int) -> np.ndarray:
    """Return the weights that steps lead to, computed by NumPy."""
    bits = np.arange(samples * features, dtype=np.uint32) * np.uint32(2654435761)
    bits = (bits ^ (bits >> 15)) * np.uint32(2246822519)
    x = ((bits >> 20).astype(np.int32) - 2048).reshape(samples, features) / 2048.0
    y = x @ np.arange(1.0, features + 1)
    weights = np.zeros(features)
    for _ in range(steps):
        error = -y
        for j in range(features):
            error = error + weights[j] * x[:, j]
        gradient = np.rint(error[:, None] * x * SCALE).astype(np.int64).sum(axis=0)
        weights -= gradient * (RATE / SCALE / samples)
    return weights


def fit(
    ranks: Ranks,
    reduction: Callable[[Ranks, Stream], NoReduction],
    samples: int = SAMPLES,
    steps: int = STEPS,
    features: int = FEATURES,
) -> np.ndarray:
    """Return the weights after so many steps of the ranks together."""
    device = ranks.device()
    with device.create_stream() as stream:
        reducing = reduction(ranks, stream)
        work = Fit(device, stream, ranks, reducing, samples, features)
        work.run(steps)
        weights = work.result()
        work.close()
        reducing.close()
    return weights


def main(arguments: list[str]) -> int:
    """Fit, compare with NumPy, and return the exit status."""
    parser = argparse.ArgumentParser(description="Fit a linear model on several GPUs.")
    parser.add_argument("--reduce", choices=REDUCTIONS, default="none", help="who adds the gradients up")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args(arguments)
    ranks = Ranks.find()
    weights = fit(ranks, REDUCTIONS[given.reduce], given.samples, given.steps)
    right = bool((weights == with_numpy(given.samples, FEATURES, given.steps)).all())
    if ranks.rank == 0 or not right:
        digest = hashlib.sha256(weights.tobytes()).hexdigest()[:16]
        print(
            f"{given.steps} steps with {given.samples:,} samples, {ranks.size} ranks, reduced by {given.reduce}: "
            f"weights {digest}, {'right' if right else 'WRONG'}",
            flush=True,
        )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
