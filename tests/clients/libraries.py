# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Use libraries that are built on cuda.core, on a GPU, and print what came of it.

    python tests/clients/libraries.py [nccl4py | cuda.compute | nvmath ...]
    python -m cuda_core_cffi.as_cuda_core tests/clients/libraries.py

The first runs with cuda-core, the second with this package in its place. Both print the same. What is not installed is
said in a line, and so is what fails.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import cuda.core as core
import numpy as np

COUNT = 1 << 16


class Array:
    """An array in memory of a Device, which other libraries see by the CUDA Array Interface."""

    def __init__(self, values: np.ndarray, stream: Any):
        self.dtype, self.shape, self.stream = values.dtype, values.shape, stream
        self.host = core.LegacyPinnedMemoryResource().allocate(values.nbytes)
        self.memory = core.Device().allocate(values.nbytes, stream=stream)
        self.on_host()[...] = values
        self.memory.copy_from(self.host, stream=stream)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (int(self.memory.handle), False),
            "stream": None,
            "strides": None,
            "version": 3,
        }

    def on_host(self) -> np.ndarray:
        """Return the page-locked copy of the array."""
        return np.from_dlpack(self.host).view(self.dtype).reshape(self.shape)

    def values(self) -> np.ndarray:
        """Return the values once what is in the stream is done."""
        self.memory.copy_to(self.host, stream=self.stream)
        self.stream.sync()
        return self.on_host().copy()


def show(what: str, *values: Any) -> None:
    """Print a line."""
    print(f"{what}:", *values, flush=True)


def collectives() -> None:
    """NCCL on as many GPUs as there are, at most two, in one process."""
    import nccl.core as nccl

    communicators = nccl.Communicator.init_all(min(2, core.system.get_num_devices()))
    devices = [communicator.device for communicator in communicators]
    show("ranks", [(c.rank, c.nranks, type(c.device) is core.Device) for c in communicators])
    streams, arrays, results, plain = [], [], [], []
    for rank, device in enumerate(devices):
        device.set_current()
        stream = device.create_stream()
        streams.append(stream)
        arrays.append(Array(np.arange(COUNT, dtype=np.float32) + rank, stream))
        results.append(Array(np.zeros(COUNT * len(devices), np.float32), stream))
        buffer = device.allocate(COUNT, stream=stream)
        buffer.fill(3 + rank, stream=stream)
        plain.append(buffer)
        stream.sync()

    def every(call: Callable[[int, Any], None]) -> None:
        with nccl.group():
            for rank, communicator in enumerate(communicators):
                call(rank, communicator)

    def content(array: Array, rank: int) -> list[float]:
        devices[rank].set_current()
        values = array.values()
        return [float(values[0]), float(values[-1]), float(values.sum(dtype=np.float64))]

    every(lambda rank, c: c.allreduce(arrays[rank], arrays[rank], nccl.SUM, stream=streams[rank]))
    show("allreduce", [content(array, rank) for rank, array in enumerate(arrays)])
    every(lambda rank, c: c.broadcast(arrays[rank], arrays[rank], root=0, stream=streams[rank]))
    show("broadcast", [content(array, rank) for rank, array in enumerate(arrays)])
    every(lambda rank, c: c.allgather(arrays[rank], results[rank], stream=streams[rank]))
    show("allgather", [content(array, rank) for rank, array in enumerate(results)])
    every(lambda rank, c: c.reduce_scatter(results[rank], arrays[rank], nccl.MAX, stream=streams[rank]))
    show("reduce_scatter", [content(array, rank) for rank, array in enumerate(arrays)])
    every(lambda rank, c: c.allreduce(plain[rank], plain[rank], nccl.MAX, stream=int(streams[rank].handle)))
    host = core.LegacyPinnedMemoryResource().allocate(COUNT)
    plain[0].copy_to(host, stream=streams[0])
    streams[0].sync()
    show("allreduce of a Buffer", set(bytes(np.from_dlpack(host).view(np.uint8))))
    devices[0].set_current()
    own = nccl.mem_alloc(4096)
    show("memory of NCCL", isinstance(own, core.Buffer), own.size, own.is_device_accessible)
    nccl.mem_free(own)
    for communicator in communicators:
        communicator.destroy()


def algorithms() -> None:
    """Algorithms of cuda.compute, with operators that it knows and one of Python."""
    import cuda.compute as compute  # "from cuda" would not say that it is not installed

    stream = core.Device().create_stream()
    rng = np.random.default_rng(7)
    numbers = rng.integers(-1000, 1000, COUNT, dtype=np.int32)
    given = Array(numbers, stream)
    out = Array(np.zeros_like(numbers), stream)
    one = Array(np.zeros(1, np.int32), stream)
    start = np.zeros(1, np.int32)
    plus = compute.OpKind.PLUS
    compute.reduce_into(d_in=given, d_out=one, num_items=COUNT, op=plus, h_init=start, stream=stream)
    show("reduce", one.values(), one.values()[0] == numbers.sum())
    compute.inclusive_scan(d_in=given, d_out=out, op=plus, init_value=start, num_items=COUNT, stream=stream)
    show("inclusive scan", np.array_equal(out.values(), np.cumsum(numbers, dtype=np.int32)), out.values()[-3:])
    compute.exclusive_scan(d_in=given, d_out=out, op=plus, init_value=start, num_items=COUNT, stream=stream)
    show("exclusive scan", np.array_equal(out.values()[1:], np.cumsum(numbers, dtype=np.int32)[:-1]))
    compute.radix_sort(
        d_in_keys=given, d_out_keys=out, num_items=COUNT, order=compute.SortOrder.DESCENDING, stream=stream
    )
    show("radix sort", np.array_equal(out.values(), np.sort(numbers)[::-1]))
    compute.merge_sort(d_in_keys=given, d_out_keys=out, num_items=COUNT, op=compute.OpKind.LESS, stream=stream)
    show("merge sort", np.array_equal(out.values(), np.sort(numbers)))
    compute.unary_transform(d_in=given, d_out=out, op=compute.OpKind.NEGATE, num_items=COUNT, stream=stream)
    show("unary transform", np.array_equal(out.values(), -numbers))
    compute.binary_transform(d_in1=given, d_in2=given, d_out=out, op=plus, num_items=COUNT, stream=stream)
    show("binary transform", np.array_equal(out.values(), 2 * numbers))

    def larger(left: Any, right: Any) -> Any:
        return left if left > right else right

    compute.reduce_into(d_in=given, d_out=one, num_items=COUNT, op=larger, h_init=start, stream=stream)
    show("reduce with a function", one.values()[0] == numbers.max())


def mathematics() -> None:
    """Arrays of nvmath-python, a Fourier transform and a product of matrices."""
    import nvmath
    from nvmath.internal import utils
    from nvmath.internal.ndbuffer import NDBuffer

    device = core.Device()
    stream = device.create_stream()
    holder = utils.get_or_create_stream(device.device_id, stream, "cuda")
    values = np.random.default_rng(3).random((64, 48)).astype(np.float32)
    source = NDBuffer.from_numpy(values)
    there = NDBuffer.empty_like(source, device_id=device.device_id, stream=holder)
    there.copy_(source, stream=holder)
    show("NDBuffer", type(there.data).__name__, there.shape, there.device_id)
    turned = NDBuffer.empty_like(NDBuffer.from_numpy(np.ascontiguousarray(values.T)), device_id=0, stream=holder)
    turned.copy_(there.transpose(0, 1), stream=holder)
    back = NDBuffer.from_numpy(np.zeros((48, 64), np.float32))
    back.copy_(turned, stream=holder)
    stream.sync()
    show("NDBuffer, transposed by a kernel", np.array_equal(back.as_numpy(), values.T))

    signal = np.random.default_rng(5).random((16, 256)).astype(np.complex64)
    result = nvmath.fft.fft(signal, axes=[1], execution="cuda", stream=stream)
    show("FFT", result.dtype, np.abs(result - np.fft.fft(signal, axis=1)).max() < 1e-4)
    left, right = values, np.ascontiguousarray(values.T)
    product = nvmath.linalg.advanced.matmul(left, right, stream=stream)
    show("matrix product", product.shape, np.abs(product - left @ right).max() < 0.05)


LIBRARIES = {"nccl4py": collectives, "cuda.compute": algorithms, "nvmath": mathematics}


def main(names: list[str]) -> int:
    """Run the named libraries, or all."""
    failed = 0
    for name in names or LIBRARIES:
        core.Device(0).set_current()
        try:
            LIBRARIES[name]()
        except ModuleNotFoundError as error:
            show(name, "skipped:", error)
        except Exception as error:
            failed = 1
            show(name, "FAILED:", type(error).__name__, str(error).splitlines()[:1])
            traceback.print_exc()
        else:
            show(name, "done")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
