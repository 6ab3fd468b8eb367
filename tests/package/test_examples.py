# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say."""

from __future__ import annotations

import pathlib
import re

import pytest
from helpers import output_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELSEWHERE = {"memory_usage.py"}  # test_tracking_resource.py looks at what it prints
PRINTED = {
    "clusters.py": "values counted by .* clusters .*: right",
    "cooperative_groups.py": "numbers normalised by .* blocks .*: right",
    "dask_workers.py": r"1000 numbers squared by workers of Dask on the devices .*: right|there is no Dask",
    "data_parallel.py": r"10 steps with 4,096 samples, 1 ranks, reduced by none: weights \w+, right",
    "disk_cache.py": r"compiled in .*\nfrom the cache in .*\nthe code from the cache on .*: right",
    "conditional_loop.py": r"steps, .*: enough\n.*: too many\n2 launches of a loop on .*: right",
    "embedding.py": "bytes filled by a thread in C on .*: right|no cuda.h",
    "graph_capture.py": r"captured 10 nodes: .*\nrefused: .*\n5 launches, .* on .*: right",
    "graph_update.py": r"by hand (.*\n)+3 graphs, .* launches on .*: right",
    "image_filter.py": "edges of an image of 256 x 192 on .*: right",
    "jit_lto.py": r"2 units linked for .*, with 0 calls left: largest relative difference from NumPy \d\.\de-\d+",
    "mpi_allreduce.py": r"sums of .* 1 ranks, memory: page-locked, managed.*: right|there is no",
    "nccl_allreduce.py": r"rank 0 of 1 .*: right|nothing is done|there is no NCCL",
    "nvvm.py": "a wave of .* on",
    "producer_consumer.py": "64 blocks through 4 places on .*: right",
    "ray_actors.py": r"1000 numbers squared by two actors of Ray on .*: right|there is no Ray",
    "ranks.py": "rank 0 of 1, .* takes device 0 .*; rank 0 says hello",
    "saxpy.py": "saxpy of .* on",
    "strided.py": "in place on .*: right",
    "strided_memory_view_cpu.py": "backwards: stride .*, right",
    "strided_memory_view_gpu.py": "this package on .*, right",
    "tensor_map_matmul.py": "product of .* on .*: right|no tensor maps",
    "template_kernels.py": "8 instances of a template on .*: all right",
}


def test_every_example_is_run():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {*PRINTED, *ELSEWHERE}


@pytest.mark.parametrize(("name", "printed"), PRINTED.items())
def test_an_example_ends_well(name, printed):
    run = """
        import runpy, sys
        folder, name = sys.argv[1:]
        sys.path.insert(0, folder)
        sys.argv = [f"{folder}/{name}"]  # as Python does it
        runpy.run_path(sys.argv[0], run_name="__main__")
    """
    output = output_of(run, str(ROOT / "examples"), name)
    assert re.search(printed, output)


@pytest.mark.parametrize("name", ["disk_cache.py", "graph_capture.py", "jit_lto.py", "strided_memory_view_cpu.py"])
def test_an_example_ends_well_as_a_program_of_cuda_core(name, tmp_path):
    for path in (ROOT / "examples").glob("*.py"):  # they import each other
        (tmp_path / path.name).write_text(path.read_text().replace("cuda_core_cffi", "cuda.core"))
    assert "from cuda.core" in (tmp_path / name).read_text()
    run = """
        import sys
        from cuda_core_cffi.as_cuda_core import main
        folder, name = sys.argv[1:]
        sys.path.insert(0, folder)
        main([f"{folder}/{name}"])
    """
    assert re.search(PRINTED[name], output_of(run, str(tmp_path), name))
