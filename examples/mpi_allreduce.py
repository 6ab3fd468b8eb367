# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Add arrays up over processes with MPI, which takes memory of this package as it is.

    mpirun -n 2 python examples/mpi_allreduce.py

It needs mpi4py and an MPI, such as ``pip install mpi4py mpich``; where there is none it says so. Memory that the host
can access, page-locked or managed, works with every MPI. Memory that only a device can access needs an MPI that is
CUDA-aware: others, such as those of PyPI, would end the process. `for_mpi` refuses it there, and says what to do.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from typing import Any

import numpy as np
from ranks import Ranks

from cuda_core_cffi import Buffer, LegacyPinnedMemoryResource, ManagedMemoryResource
from cuda_core_cffi.utils import StridedMemoryView

COUNT = 10_000


def is_cuda_aware() -> bool:
    """Tell whether the MPI takes addresses of device memory: MPI 4.1 says so, and Open MPI by a function of its own."""
    from mpi4py import MPI

    kinds = MPI.COMM_WORLD.Get_info().get("mpi_memory_alloc_kinds")
    if kinds is not None:
        return any(kind.split(":")[0] == "cuda" for kind in kinds.split(","))
    try:
        loaded = ctypes.CDLL("libmpi.so.40", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        return bool(loaded.MPIX_Query_cuda_support())
    except (OSError, AttributeError):  # not Open MPI, or an old one
        return False


def for_mpi(memory: Buffer, dtype: Any) -> StridedMemoryView:
    """Return memory as an array of a type, which mpi4py takes by DLPack.

    Raises
    ------
    BufferError
        If only a device can access the memory, and the MPI is not CUDA-aware.
    """
    if not memory.is_host_accessible and not is_cuda_aware():
        from mpi4py import MPI

        name = MPI.Get_library_version().split(",")[0].split("\n")[0].replace("Version:", "").split()
        raise BufferError(
            f"{' '.join(name)} is not CUDA-aware, so it cannot use memory of a device. Give it memory of a "
            "PinnedMemoryResource or a ManagedMemoryResource, or use an MPI that was built with CUDA"
        )
    dtype = np.dtype(dtype)
    return StridedMemoryView.from_buffer(memory, (memory.size // dtype.itemsize,), dtype=dtype)


def main() -> int:
    """Reduce numbers in each kind of memory, check the sums, and return the exit status."""
    if importlib.util.find_spec("mpi4py") is None:
        print("there is no mpi4py: pip install mpi4py mpich")
        return 0
    try:
        from mpi4py import MPI
    except RuntimeError as error:
        print(f"there is no MPI: pip install mpich ({str(error).splitlines()[0]})")
        return 0
    ranks = Ranks.find()
    device = ranks.device()
    stream = device.create_stream()
    world = MPI.COMM_WORLD
    start = np.arange(COUNT, dtype=np.int64) * (world.rank + 1)
    expected = np.arange(COUNT, dtype=np.int64) * (world.size * (world.size + 1) // 2)
    done, right = [], True
    resources = {
        "page-locked": LegacyPinnedMemoryResource(),
        "managed": ManagedMemoryResource(),
        "device": device.memory_resource,
    }
    for kind, resource in resources.items():
        with resource.allocate(start.nbytes, stream=stream) as memory:
            memory.copy_from(start, stream=stream)
            stream.sync()  # MPI knows nothing of streams
            try:
                world.Allreduce(MPI.IN_PLACE, for_mpi(memory, np.int64))
            except BufferError as error:
                refused = str(error)
                continue
            result = np.empty_like(start)
            memory.copy_to(result, stream=stream)
            stream.sync()
            right &= bool((result == expected).all())
            done.append(kind)
    stream.close()
    all_right = world.allreduce(right, MPI.LAND)
    if world.rank == 0:
        if "device" not in done:
            print(f"refused: {refused}")
        verdict = "right" if all_right else "WRONG"
        print(f"sums of {COUNT:,} numbers, {world.size} ranks, memory: {', '.join(done)}: {verdict}")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
