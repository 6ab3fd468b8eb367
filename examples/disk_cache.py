# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Compile a kernel once for all processes: the code is kept in a folder, and the second compilation is none.

With a path as argument, that folder is used; run this twice to see that the first compilation is saved, too. On a
machine without a GPU this script chooses the simulated driver, and says so, as saxpy.py beside it does.
"""

from __future__ import annotations

import sys
import tempfile
import time

import numpy as np
import saxpy

from cuda_core_cffi import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, Program, ProgramOptions, launch
from cuda_core_cffi.utils import FileStreamProgramCache, ProgramCacheResource

COUNT = 1000
BLOCK = 128
LIMIT = 100 << 20  # bytes of code in the folder


def compile_with(cache: ProgramCacheResource, device: Device) -> ObjectCode:
    """Compile the kernel, or find it compiled, and say which and how long it took."""
    program = Program(saxpy.SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
    before = len(cache)
    start = time.perf_counter()
    code = program.compile(cache=cache)
    duration = time.perf_counter() - start
    print(f"{'from the cache' if len(cache) == before else 'compiled'} in {duration * 1e3:.2f} ms")
    return code


def is_right(code: ObjectCode, device: Device) -> bool:
    """Launch the kernel and check what it computes."""
    stream = device.create_stream()
    pinned = LegacyPinnedMemoryResource()  # which kernels can read and write
    x, y = (pinned.allocate(COUNT * np.dtype(np.float32).itemsize) for _ in range(2))
    x_array, y_array = (np.asarray(buffer).view(np.float32) for buffer in (x, y))
    x_array[:], y_array[:] = np.arange(COUNT), 1
    config = LaunchConfig(grid=(COUNT + BLOCK - 1) // BLOCK, block=BLOCK)
    launch(stream, config, code.get_kernel("saxpy"), 2.0, x, y, COUNT)
    stream.sync()
    return bool((y_array == 2 * x_array + 1).all())


def main() -> int:
    """Compile twice, run the code from the cache, and return the exit status."""
    device = Device()
    device.set_current()
    with tempfile.TemporaryDirectory() as temporary:
        path = sys.argv[1] if len(sys.argv) > 1 else temporary
        compile_with(FileStreamProgramCache(path, max_size_bytes=LIMIT), device)
        code = compile_with(FileStreamProgramCache(path, max_size_bytes=LIMIT), device)
    right = is_right(code, device)
    print(f"the code from the cache on {device.name}: {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
