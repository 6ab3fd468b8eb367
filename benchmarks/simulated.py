# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks simulated``: how fast the simulated driver runs typical kernels.

Each kernel is compiled with NVRTC, checked once against NumPy, and launched several times. The best time counts, and
the least processor time of all threads, which depends less on what else the machine does. With ``--instructions`` the
instructions of one launch are counted too: of two processes in valgrind one launches once more.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.machine import machine_facts
from benchmarks.simulated_kernels import ROWS, Job, SimulatedRow

ROOT = pathlib.Path(__file__).resolve().parent.parent
MILLISECOND = 1e-3
MILLION = 1e6


class Prepared(NamedTuple):
    """A row that is ready to run.

    Attributes
    ----------
    start : Callable
        Fills the memory and returns a function that launches the kernel once and waits for it.
    check : Callable
        Raises AssertionError if the results of the last launch are not those of NumPy.
    """

    start: Callable[[], Callable[[], None]]
    check: Callable[[], None]


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    options = parser().parse_args(arguments)
    os.environ.setdefault("CUDA_CORE_CFFI_DRIVER", "simulator")
    rows = [row for row in ROWS if re.search(options.only, row.name)]
    if not rows:
        raise SystemExit(f"--only {options.only!r} matches no row")
    if options.launches is not None:
        launch_only(rows[0], options.ptx, options.launches)
        return 0
    before = json.loads(pathlib.Path(options.before).read_text())["rows"] if options.before else {}
    results: dict[str, Any] = {"machine": machine_facts(simulator=True), "rows": {}}
    for row in rows:
        seconds, processor = best_times(row, options.repeat)
        found: dict[str, float] = {"seconds": seconds, "processor": processor}
        if options.instructions:
            found["instructions"] = count_instructions(row)
        results["rows"][row.name] = found
        print(line(row.name, found, before.get(row.name, {})), flush=True)
        if options.output:
            pathlib.Path(options.output).write_text(json.dumps(results, indent=1) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(prog="python -m benchmarks simulated", description=__doc__)
    result.add_argument("--only", default="", metavar="REGEX", help="rows whose names match")
    result.add_argument("--repeat", type=int, default=9, help="launches of which the best counts")
    result.add_argument("--instructions", action="store_true", help="count instructions with valgrind as well")
    result.add_argument("--output", metavar="FILE", help="write the figures as JSON")
    result.add_argument("--before", metavar="FILE", help="compare with what --output wrote before")
    result.add_argument("--launches", type=int, help=argparse.SUPPRESS)
    result.add_argument("--ptx", help=argparse.SUPPRESS)
    return result


def line(name: str, now: dict[str, float], before: dict[str, float]) -> str:
    """Return one line of the table."""
    text = f"{name:24}"
    for key, scale, unit in (
        ("seconds", MILLISECOND, "ms"),
        ("processor", MILLISECOND, "ms of processor time"),
        ("instructions", MILLION, "M instructions"),
    ):
        if key not in now:
            continue
        if key in before:
            text += f" {before[key] / scale:9.2f} ->"
        text += f" {now[key] / scale:9.2f} {unit}"
        if key in before:
            text += f" ({before[key] / now[key]:.1f} x)"
    return text


# --- Running --------------------------------------------------------------------------------------------------


def compile_row(row: SimulatedRow) -> bytes:
    """Return the PTX of the row's kernel."""
    from cuda_core_cffi import Device, Program, ProgramOptions

    return bytes(Program(row.source, "c++", ProgramOptions(arch=f"sm_{Device().arch}")).compile("ptx").code)


def prepare(row: SimulatedRow, ptx: bytes) -> Prepared:
    """Load the row's kernel and allocate its memory."""
    from cuda_core_cffi import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch

    device = Device()
    device.set_current()
    stream = device.create_stream()
    job = row.make()
    kernel = ObjectCode.from_ptx(ptx).get_kernel("kernel")
    memory = LegacyPinnedMemoryResource()
    buffers = [memory.allocate(array.nbytes) for array in job.arrays]
    views = [
        np.from_dlpack(buffer).view(array.dtype).reshape(array.shape)
        for buffer, array in zip(buffers, job.arrays, strict=True)
    ]
    config = LaunchConfig(grid=job.grid, block=job.block)

    def once() -> None:
        launch(stream, config, kernel, *buffers, *job.scalars)
        stream.sync()

    def start() -> Callable[[], None]:
        fill(job, views)
        return once

    return Prepared(start, lambda: job.check(views))


def fill(job: Job, views: list[Any]) -> None:
    """Give the memory its first contents."""
    for view, array in zip(views, job.arrays, strict=True):
        view[...] = array


def best_times(row: SimulatedRow, repeat: int) -> tuple[float, float]:
    """Return the seconds of the fastest of several launches of the same input, and the least processor time of one."""
    prepared = prepare(row, compile_row(row))
    times = []
    for index in range(repeat):
        once = prepared.start()
        begin, begin_processor = perf_counter(), process_time()
        once()
        times.append((perf_counter() - begin, process_time() - begin_processor))
        if index == 0:
            prepared.check()
    return min(seconds for seconds, _ in times), min(processor for _, processor in times)


def launch_only(row: SimulatedRow, ptx: str, count: int) -> None:
    """Launch so many times and do nothing else."""
    prepared = prepare(row, pathlib.Path(ptx).read_bytes())
    for _ in range(count):
        prepared.start()()


def count_instructions(row: SimulatedRow) -> int:
    """Return the instructions of one launch."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("--instructions needs valgrind")
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder, "kernel.ptx")
        ptx.write_bytes(compile_row(row))
        few, many = (count_process(valgrind, row, ptx, launches) for launches in (1, 2))
    return many - few


def count_process(valgrind: str, row: SimulatedRow, ptx: pathlib.Path, launches: int) -> int:
    """Return the instructions of a process that launches so many times."""
    options = ["--only", f"^{re.escape(row.name)}$", "--launches", str(launches), "--ptx", str(ptx)]
    tool = [valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run(
        [*tool, sys.executable, "-m", "benchmarks", "simulated", *options],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},  # idle threads of NumPy's would spin
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if found is None:
        raise SystemExit(f"valgrind said nothing of instructions:\n{done.stderr}")
    return int(found.group(1).replace(",", ""))
