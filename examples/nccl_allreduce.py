# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Add arrays up over several GPUs with NCCL, called through a CFFI extension that shares the types of this package.

One process a GPU, on one machine or on many:

    torchrun --nproc-per-node=2 examples/nccl_allreduce.py
    mpirun -n 2 python examples/nccl_allreduce.py
    MASTER_ADDR=10.0.0.1 RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 python examples/nccl_allreduce.py    # and so on, by hand

All ranks have to be told the same id of 128 bytes, which rank 0 makes. It goes over TCP; under mpirun it goes over MPI,
if mpi4py is installed. ``--start tcp`` and ``--start mpi`` say which. What NCCL then uses for the data (NVLink, PCIe,
sockets, InfiniBand) is its own choice, and ``NCCL_DEBUG=INFO`` tells it.

It needs a GPU, ``nvidia-nccl-cu13`` (or ``-cu12``), the headers of CUDA and a C compiler. Without NCCL it says so.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import pathlib
import sys
import tempfile
from types import ModuleType
from typing import Any

import cffi
import cuda.pathfinder
import numpy as np
from ranks import Ranks

from cuda_core_cffi import Buffer, LegacyPinnedMemoryResource, Stream, make_ffi
from cuda_core_cffi.graph import GraphBuilder

COUNT = 1 << 20
ID_BYTES = 128

# CUstream and CUdeviceptr are those of this package. NCCL's cudaStream_t is CUstream by another name.
DECLARATIONS = """
typedef struct { char internal[128]; } ncclUniqueId;
typedef struct ncclComm *ncclComm_t;
typedef enum { ncclSuccess, ... } ncclResult_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin, ... } ncclRedOp_t;
typedef enum { ncclInt8, ncclInt32, ncclInt64, ncclFloat32, ncclFloat64, ... } ncclDataType_t;

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int size, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t communicator);

ncclResult_t all_reduce(CUdeviceptr from, CUdeviceptr to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        ncclComm_t communicator, CUstream stream);
"""
SOURCE = """
#include <cuda.h>
#include <nccl.h>

static ncclResult_t all_reduce(CUdeviceptr from, CUdeviceptr to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, CUstream stream)
{
    return ncclAllReduce((const void *)from, (void *)to, count, type, operation, communicator, stream);
}
"""
TYPES = {
    "int8": "ncclInt8",
    "int32": "ncclInt32",
    "int64": "ncclInt64",
    "float32": "ncclFloat32",
    "float64": "ncclFloat64",
}


class NCCLError(Exception):
    """What NCCL says of a call that failed."""


def cuda_headers() -> str | None:
    """Return the folder of the CUDA runtime's headers, which nccl.h includes: a wheel may lack some of them."""
    toolkit = os.environ.get("CUDA_PATH") or os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    found = [cuda.pathfinder.find_nvidia_header_directory("cudart"), f"{toolkit}/include"]
    whole = [folder for folder in found if folder and pathlib.Path(folder, "crt", "host_config.h").exists()]
    return whole[0] if whole else None


@functools.cache
def nccl() -> ModuleType:
    """Build the extension, and return it. A package would build it when it is installed (``cffi_modules``).

    Raises
    ------
    cuda.pathfinder.DynamicLibNotFoundError
        If there is no NCCL.
    """
    library = cuda.pathfinder.load_nvidia_dynamic_lib("nccl").abs_path  # the extension finds it loaded
    beside = pathlib.Path(library).parent.parent / "include"
    headers = {str(beside), cuda.pathfinder.find_nvidia_header_directory("nccl"), cuda_headers()} - {None}
    builder = cffi.FFI()
    builder.include(make_ffi())
    builder.cdef(DECLARATIONS)
    builder.set_source("_nccl", SOURCE, include_dirs=sorted(headers), extra_link_args=[library])
    with tempfile.TemporaryDirectory() as folder:
        spec = importlib.util.spec_from_file_location("_nccl", builder.compile(tmpdir=folder))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def check(result: int) -> None:
    """Raise an error if NCCL returned one."""
    if result:
        ffi, lib = nccl().ffi, nccl().lib
        said = [ffi.string(text).decode() for text in (lib.ncclGetErrorString(result), lib.ncclGetLastError(ffi.NULL))]
        raise NCCLError(": ".join(filter(None, said)))


def nccl_version() -> str:
    """Return the version of NCCL, as "2.28.9"."""
    number = nccl().ffi.new("int *")
    check(nccl().lib.ncclGetVersion(number))
    return f"{number[0] // 10000}.{number[0] // 100 % 100}.{number[0] % 100}"


def make_id(ranks: Ranks, start: str) -> bytes:
    """Return the id that rank 0 makes, to every rank, over ``"tcp"`` or ``"mpi"``."""
    unique = nccl().ffi.new("ncclUniqueId *")
    if ranks.rank == 0:
        check(nccl().lib.ncclGetUniqueId(unique))
    value = bytes(nccl().ffi.buffer(unique))
    if start == "mpi":
        from mpi4py import MPI

        return MPI.COMM_WORLD.bcast(value)
    return ranks.broadcast(value)


class Communicator:
    """A communicator of NCCL for the current device of this process."""

    def __init__(self, ranks: Ranks, start: str) -> None:
        unique = nccl().ffi.new("ncclUniqueId *")
        nccl().ffi.buffer(unique)[:] = make_id(ranks, start)
        made = nccl().ffi.new("ncclComm_t *")
        check(nccl().lib.ncclCommInitRank(made, ranks.size, unique[0], ranks.rank))
        self._communicator = made[0]

    def all_reduce(
        self, send: Buffer, receive: Buffer, dtype: Any, *, stream: Stream | GraphBuilder, operation: str = "ncclSum"
    ) -> None:
        """Reduce what the ranks have in ``send`` into the ``receive`` of all of them, in the order of the stream."""
        lib = nccl().lib
        stream = stream.stream if isinstance(stream, GraphBuilder) else stream
        kind = np.dtype(dtype)
        count, code = send.size // kind.itemsize, getattr(lib, TYPES[kind.name])
        check(
            lib.all_reduce(
                send.cdata, receive.cdata, count, code, getattr(lib, operation), self._communicator, stream.cdata
            )
        )

    def close(self) -> None:
        """Give the communicator back. Graphs that have captured its calls must be closed before."""
        check(nccl().lib.ncclCommDestroy(self._communicator))


def way_to_start(ranks: Ranks, wanted: str | None) -> str:
    """Return what is wanted, or else how the id should go: over MPI where MPI has started the ranks."""
    by_mpi = ranks.launcher in ("Open MPI", "MPICH") and importlib.util.find_spec("mpi4py") is not None
    return wanted or ("mpi" if by_mpi else "tcp")


def main(arguments: list[str]) -> int:
    """Reduce numbers of two types, check the sums, and return the exit status."""
    parser = argparse.ArgumentParser(description="Add arrays up over several GPUs.")
    parser.add_argument("--start", choices=("tcp", "mpi"), help="how the ranks get NCCL's id")
    wanted = parser.parse_args(arguments).start
    ranks = Ranks.find()
    device = ranks.device()
    if "Simulated" in device.name:
        print(f"NCCL needs a GPU, and {device.name} is none: nothing is done")
        return 0
    try:
        nccl()
    except cuda.pathfinder.DynamicLibNotFoundError:
        print("there is no NCCL: pip install nvidia-nccl-cu13")
        return 0
    start = way_to_start(ranks, wanted)
    communicator = Communicator(ranks, start)
    stream = device.create_stream()
    pinned = LegacyPinnedMemoryResource()
    right = []
    for dtype in (np.int64, np.float32):
        size = COUNT * np.dtype(dtype).itemsize
        with pinned.allocate(size) as host, device.allocate(size, stream=stream) as memory:
            numbers = np.asarray(host).view(dtype)
            numbers[:] = np.arange(COUNT) % 1000 * (ranks.rank + 1)
            memory.copy_from(host, stream=stream)
            communicator.all_reduce(memory, memory, dtype, stream=stream)
            memory.copy_to(host, stream=stream)
            stream.sync()
            expected = np.arange(COUNT) % 1000 * (ranks.size * (ranks.size + 1) // 2)
            right.append(bool((numbers == expected).all()))
    communicator.close()
    stream.close()
    verdict = "right" if all(right) else "WRONG"
    print(
        f"rank {ranks.rank} of {ranks.size} ({ranks.launcher}, id over {start}) on device "
        f"{device.device_id}, {device.name}: NCCL {nccl_version()}, sums of {COUNT:,} numbers: {verdict}",
        flush=True,
    )
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
