# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Instantiate a template for several types and operations, and launch each instance by its name in C++.

A name expression asks the compiler for an instance, and is the name that its kernel goes by from then on. Variables
have them, too, which begin with ``&``. On a machine without a GPU this script chooses the simulated driver, and says
so, as saxpy.py beside it does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import saxpy  # noqa: F401  (it chooses the driver)

from cuda_core_cffi import (
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    Program,
    ProgramOptions,
    Stream,
    launch,
)

SOURCE = r"""
namespace demo {

struct Square { template <class T> __device__ T operator()(T x) const { return x * x; } };
struct Negate { template <class T> __device__ T operator()(T x) const { return -x; } };

template <class T> __constant__ T offset;

template <class T, class Operation>
__global__ void map(const T *x, T *y, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = Operation()(x[i]) + offset<T>;
}

}
"""
TYPES = {"float": np.float32, "double": np.float64, "int": np.int32, "unsigned char": np.uint8}
OPERATIONS: dict[str, Callable[[Any], Any]] = {"demo::Square": np.square, "demo::Negate": np.negative}
COUNT = 10_000
BLOCK = 256
OFFSET = 3


def map_name(type_name: str, operation: str) -> str:
    """Return the name expression of an instance of the kernel."""
    return f"demo::map<{type_name}, {operation}>"


def offset_name(type_name: str) -> str:
    """Return the name expression of an instance of the variable."""
    return f"&demo::offset<{type_name}>"


def compile_for(device: Device) -> ObjectCode:
    """Compile every instance."""
    names = [map_name(name, operation) for name in TYPES for operation in OPERATIONS]
    names += [offset_name(name) for name in TYPES]
    program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}", name="map.cu"))
    return program.compile(name_expressions=names)


def is_right(code: ObjectCode, type_name: str, operation: str, stream: Stream) -> bool:
    """Launch one instance and check what it computes."""
    dtype = np.dtype(TYPES[type_name])
    pinned = LegacyPinnedMemoryResource()  # which kernels can read and write
    config = LaunchConfig(grid=(COUNT + BLOCK - 1) // BLOCK, block=BLOCK)
    with pinned.allocate(COUNT * dtype.itemsize) as x, pinned.allocate(COUNT * dtype.itemsize) as y:
        x_array, y_array = (np.asarray(buffer).view(dtype) for buffer in (x, y))
        x_array[:] = np.arange(COUNT) % 10
        with code.get_global(offset_name(type_name)) as offset:
            offset.copy_from(np.array([OFFSET], dtype), stream=stream)
        launch(stream, config, code.get_kernel(map_name(type_name, operation)), x, y, COUNT)
        stream.sync()
        return bool((y_array == OPERATIONS[operation](x_array) + dtype.type(OFFSET)).all())


def main() -> int:
    """Run every instance and return the exit status."""
    device = Device()
    device.set_current()
    wrong = []
    with device.create_stream() as stream, compile_for(device) as code:
        for type_name in TYPES:
            for operation in OPERATIONS:
                if not is_right(code, type_name, operation, stream):
                    wrong.append(map_name(type_name, operation))
    count = len(TYPES) * len(OPERATIONS)
    print(f"{count} instances of a template on {device.name}: {f'WRONG: {wrong}' if wrong else 'all right'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
