# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The examples with several ranks: who a rank is, what NCCL is given, sums that do not depend on the ranks."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import cuda.pathfinder
import numpy as np
import pytest
from compiling import CC, cuda_include
from helpers import LIMIT, ROOT, child_environment, in_threads, output_of

from cuda_core_cffi import Device, LegacyPinnedMemoryResource, ManagedMemoryResource, Stream

EXAMPLES = str(ROOT / "examples")
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]))
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or MPIEXEC is None, reason="there is no mpi4py, or no mpiexec"
)
# Open MPI runs neither as root nor more ranks than cores unless it is asked to.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
VARIABLES = ("RANK", "OMPI_COMM_WORLD", "PMI_", "MPI_LOCALRANKID", "SLURM_", "WORLD_SIZE", "LOCAL_RANK", "MASTER_")


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a process that no launcher has started."""
    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def examples() -> Iterator[Any]:
    """Return a function that imports an example by its name."""
    sys.path.insert(0, EXAMPLES)
    yield importlib.import_module
    sys.path.remove(EXAMPLES)


# which rank


@pytest.mark.parametrize(
    ("launcher", "variables"),
    {
        "torchrun": {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"},
        "Open MPI": {
            "OMPI_COMM_WORLD_RANK": "5",
            "OMPI_COMM_WORLD_SIZE": "8",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        },
        "MPICH": {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"},
        "Slurm": {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"},
    }.items(),
)
def test_a_rank_is_what_the_launcher_says(
    examples: Any, monkeypatch: pytest.MonkeyPatch, launcher: str, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert examples("ranks").Ranks.find() == examples("ranks").Ranks(5, 8, 1, launcher)


def test_without_a_launcher_there_is_one_rank(examples: Any) -> None:
    assert examples("ranks").Ranks.find() == examples("ranks").Ranks(0, 1, 0, "nobody")


def test_ranks_of_mpirun_in_a_job_of_slurm_are_those_of_mpirun(examples: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_PROCID", "SLURM_LOCALID"):
        monkeypatch.setenv(name, "0")  # of the job's script
    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3")
    assert examples("ranks").Ranks.find() == examples("ranks").Ranks(3, 4, 3, "Open MPI")


def test_ranks_of_a_machine_take_its_devices_in_turn(examples: Any) -> None:
    count = len(Device.get_all_devices())
    for local in range(2 * count):
        assert examples("ranks").Ranks(local, 2 * count, local).device() is Device(local % count)
        assert Device() is Device(local % count)
    Device(0).set_current()


def test_rank_0_sends_its_bytes_to_the_others_whoever_starts_first(
    examples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = examples("ranks")
    late = threading.Event()
    sleep = ranks.time.sleep
    monkeypatch.setattr(ranks.time, "sleep", lambda seconds: (late.set(), sleep(seconds)))
    monkeypatch.setenv("MASTER_PORT", str(free_port() - 1))

    def work(rank: int) -> bytes:
        if rank == 0:
            assert late.wait(LIMIT)  # until another has found nobody
        return ranks.Ranks(rank, 3, rank).broadcast(b"%d" % rank * 128)

    assert in_threads(3, work) == [b"0" * 128] * 3


def test_rank_0_tells_how_many_ranks_have_come(examples: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = examples("ranks")
    monkeypatch.setattr(ranks, "PATIENCE", 0.01)
    monkeypatch.setenv("MASTER_PORT", str(free_port() - 1))
    with pytest.raises(TimeoutError, match=r"1 of 4 ranks have come to .'127.0.0.1', \d+. in 0.01 seconds"):
        ranks.Ranks(0, 4, 0).broadcast(b"id")


def free_port() -> int:
    """Return a port at which nobody listens."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


# what NCCL is given

HEADER = """
#include <cuda.h>
typedef struct CUstream_st *cudaStream_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef struct ncclComm *ncclComm_t;
typedef enum { ncclSuccess, ncclInternalError = 3 } ncclResult_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin } ncclRedOp_t;
typedef enum { ncclInt8, ncclInt32 = 2, ncclInt64 = 4, ncclFloat32 = 7, ncclFloat64 = 8 } ncclDataType_t;
ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int size, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t communicator);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream);
"""
LIBRARY = r"""
#include <stdio.h>
#include <string.h>
#include "nccl.h"
static char last[512];
ncclResult_t ncclGetVersion(int *version) { *version = 22809; return ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) { memset(id, 'i', sizeof *id); return ncclSuccess; }
ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int size, ncclUniqueId id, int rank)
{
    *communicator = (ncclComm_t)(size_t)(1000 * size + rank);
    return id.internal[0] == 'i' && id.internal[127] == 'i' ? ncclSuccess : ncclInternalError;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) { return ncclSuccess; }
const char *ncclGetErrorString(ncclResult_t result) { return "it failed"; }
const char *ncclGetLastError(ncclComm_t communicator) { return last; }
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream)
{
    snprintf(last, sizeof last, "%zu %zu %zu %d %d %zu %zu", (size_t)from, (size_t)to, count, type, operation,
             (size_t)communicator, (size_t)stream);
    return ncclInternalError;
}
"""


@pytest.fixture(scope="module")
def with_fake_nccl(examples: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the example of NCCL, with a library in its place whose all-reduce fails and tells its arguments."""
    include = cuda_include()
    for package in ("setuptools", "cffi"):
        pytest.importorskip(package, reason="the extension is built with it")
    folder = tmp_path_factory.mktemp("nccl")
    (folder / "include").mkdir()
    (folder / "lib").mkdir()
    (folder / "include" / "nccl.h").write_text(HEADER)
    (folder / "nccl.c").write_text(LIBRARY)
    library = folder / "lib" / "libnccl.so.2"
    flags = ["-shared", "-fPIC", f"-I{folder}/include", f"-I{include}", f"-Wl,-soname,{library}"]
    subprocess.run([CC, *flags, str(folder / "nccl.c"), "-o", str(library)], check=True)
    example = examples("nccl_allreduce")
    pathfinder = types.SimpleNamespace(
        load_nvidia_dynamic_lib=lambda name: types.SimpleNamespace(abs_path=str(library)),
        find_nvidia_header_directory=lambda name: None,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example, "cuda", types.SimpleNamespace(pathfinder=pathfinder))
        patch.setattr(example, "cuda_headers", lambda: str(include))  # this nccl.h needs cuda.h alone
        example.nccl.cache_clear()
        yield example
        example.nccl.cache_clear()


def test_nccl_is_given_buffers_and_streams_as_they_are(
    with_fake_nccl: Any, examples: Any, device: Device, stream: Stream
) -> None:
    communicator = with_fake_nccl.Communicator(examples("ranks").Ranks(0, 1, 0), "tcp")
    with device.allocate(64, stream) as send, device.allocate(64, stream) as receive:
        given = f"{send.handle} {receive.handle} 16 7 2 1000 {stream.handle}"
        with pytest.raises(with_fake_nccl.NCCLError, match=rf"^it failed: {given}$"):
            communicator.all_reduce(send, receive, np.float32, stream=stream, operation="ncclMax")
        builder = stream.create_graph_builder()
        given = f"{send.handle} {send.handle} 8 4 0 1000 {stream.handle}"
        with pytest.raises(with_fake_nccl.NCCLError, match=rf"^it failed: {given}$"):
            communicator.all_reduce(send, send, np.int64, stream=builder)
        builder.close()
    communicator.close()


def test_the_version_of_nccl_is_told(with_fake_nccl: Any) -> None:
    assert with_fake_nccl.nccl_version() == "2.28.9"


# any number of ranks


@pytest.mark.simulator_only("on a GPU the functions of several streams need not run at once; MPI's test has processes")
@pytest.mark.parametrize("size", [2, 3])
def test_the_weights_do_not_depend_on_the_number_of_ranks(examples: Any, size: int) -> None:
    """Each rank is a thread; a function of the host in each graph adds up."""
    loop, ranks = examples("data_parallel"), examples("ranks")
    barrier = threading.Barrier(size, timeout=LIMIT)
    given: dict[int, np.ndarray] = {}

    class AmongThreads(loop.OnHost):  # type: ignore[name-defined, misc]
        def __init__(self, rank: Any, stream: Stream) -> None:
            super().__init__(rank, stream)
            self.rank = rank.rank

        def add_up(self, integers: np.ndarray) -> None:
            given[self.rank] = integers.copy()
            barrier.wait()
            integers[:] = sum(given.values())
            barrier.wait()

    samples, steps = 1001, 4  # ranks have different numbers of samples
    one = loop.fit(ranks.Ranks(), loop.NoReduction, samples, steps)
    several = in_threads(size, lambda rank: loop.fit(ranks.Ranks(rank, size, rank), AmongThreads, samples, steps))
    assert [weights.tobytes() for weights in several] == [one.tobytes()] * size
    assert one.tobytes() == loop.with_numpy(samples, loop.FEATURES, steps).tobytes()
    assert np.abs(one).max() > 0.1


def test_several_ranks_need_a_reduction(examples: Any, stream: Stream) -> None:
    with pytest.raises(ValueError, match="--reduce how 2 ranks"):
        examples("data_parallel").NoReduction(examples("ranks").Ranks(0, 2, 0), stream)


@pytest.mark.gpu_only("NCCL needs a GPU for each rank")
def test_the_weights_do_not_depend_on_the_number_of_ranks_of_nccl() -> None:
    try:
        cuda.pathfinder.load_nvidia_dynamic_lib("nccl")
    except cuda.pathfinder.DynamicLibNotFoundError:
        pytest.skip("there is no NCCL")
    most = len(Device.get_all_devices())
    if most < 2:
        pytest.skip("there is one GPU")
    printed = {count: run_by_hand(count, "data_parallel.py", "--reduce", "nccl") for count in (1, most)}
    for count, text in printed.items():
        assert f"{count} ranks, reduced by nccl" in text
        assert text.strip().endswith("right")
    assert len({digest(text) for text in printed.values()}) == 1


def digest(text: str) -> str:
    """Return the digest of the weights that an example has printed."""
    found = re.search(r"weights (\w+)", text)
    assert found is not None
    return found[1]


def run_by_hand(count: int, example: str, *arguments: str) -> str:
    """Run an example in processes whose variables are set as by hand, and return what they print."""
    given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port() - 1), "WORLD_SIZE": str(count)}
    given["NCCL_NVLS_ENABLE"] = "0"  # what it would be for needs multicast, which virtual machines may not have
    processes = [
        subprocess.Popen(
            [sys.executable, f"{EXAMPLES}/{example}", *arguments],
            env=child_environment(EXAMPLES, RANK=str(rank), LOCAL_RANK=str(rank), **given),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        printed = "".join(process.communicate(timeout=LIMIT)[0] for process in processes)
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * count, printed
    return printed


def run_ranks(count: int, example: str, *arguments: str) -> str:
    """Run an example with MPI, and return what it prints."""
    assert MPIEXEC is not None
    done = subprocess.run(
        [MPIEXEC, "-n", str(count), sys.executable, f"{EXAMPLES}/{example}", *arguments],
        env=child_environment(EXAMPLES) | OPEN_MPI,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_mpi
def test_the_weights_do_not_depend_on_the_number_of_ranks_of_mpi() -> None:
    printed = [run_ranks(count, "data_parallel.py", "--reduce", "mpi") for count in (1, 2, 4)]
    for count, text in zip((1, 2, 4), printed, strict=True):
        assert f"{count} ranks, reduced by mpi" in text
        assert text.strip().endswith("right")
    assert len({digest(text) for text in printed}) == 1


@needs_mpi
@pytest.mark.parametrize("count", [2, 4])
def test_mpi_takes_memory_that_the_host_can_access(count: int) -> None:
    assert f"{count} ranks, memory: page-locked, managed" in run_ranks(count, "mpi_allreduce.py")


def test_ranks_that_are_started_by_hand_find_each_other() -> None:
    told = run_by_hand(2, "ranks.py").splitlines()
    assert sorted(line.split(",")[0] for line in told) == ["rank 0 of 2", "rank 1 of 2"]
    assert all(line.endswith("rank 0 says hello") for line in told)


@needs_mpi
def test_mpi_tells_each_rank_who_it_is() -> None:
    told = re.findall(r"rank (\d) of 3, by the variables of (?:MPICH|Open MPI)", run_ranks(3, "ranks.py"))
    assert sorted(told) == ["0", "1", "2"]


@needs_mpi
def test_memory_of_a_device_is_refused_where_mpi_is_not_cuda_aware(
    examples: Any, monkeypatch: pytest.MonkeyPatch, device: Device, stream: Stream
) -> None:
    example = examples("mpi_allreduce")
    monkeypatch.setattr(example, "is_cuda_aware", lambda: False)
    with device.allocate(64, stream) as memory:
        with pytest.raises(BufferError, match=r"not CUDA-aware.*PinnedMemoryResource.*built with CUDA"):
            example.for_mpi(memory, np.int64)
        monkeypatch.setattr(example, "is_cuda_aware", lambda: True)
        assert example.for_mpi(memory, np.int64).shape == (8,)
    for resource in (LegacyPinnedMemoryResource(), ManagedMemoryResource()):
        monkeypatch.setattr(example, "is_cuda_aware", lambda: False)
        with resource.allocate(64, stream=stream) as memory:
            assert example.for_mpi(memory, np.int32).shape == (16,)


# workers of Dask and Ray


def test_a_worker_shows_its_device_any_array_that_a_view_can_show(examples: Any) -> None:
    gpu = examples("dask_workers").Gpu(0)
    values = np.arange(100.0).reshape(10, 10)
    fixed = values.copy()
    fixed.flags.writeable = False  # as arrays are that come from the object store of Ray
    with LegacyPinnedMemoryResource().allocate(800) as memory:
        np.asarray(memory).view(np.float64)[:] = values.ravel()
        pinned = np.asarray(memory).view(np.float64).reshape(10, 10)
        for given in (values, fixed, pinned):
            assert (gpu.square(given) == values**2).all()
        del given, pinned


@pytest.mark.filterwarnings("ignore:multiprocessing starts processes with fork")  # this one starts none
def test_two_workers_share_the_memory_of_a_buffer(examples: Any) -> None:
    """The bytes that stand for it go any way; both processes have one key of multiprocessing."""
    gpu = examples("dask_workers").Gpu(0)
    reference = gpu.square(np.arange(100.0), keep=True)
    key = bytes(multiprocessing.current_process().authkey)
    code = """
        import multiprocessing, sys
        folder, key, reference = sys.argv[1:]
        multiprocessing.current_process().authkey = bytes.fromhex(key)
        sys.path.insert(0, folder)
        from dask_workers import Gpu
        print(*Gpu(0).read(bytes.fromhex(reference)))
    """
    output = output_of(code, EXAMPLES, key.hex(), reference.hex())
    assert [float(text) for text in output.split()] == [x**2 for x in range(100)]
    gpu.close()
