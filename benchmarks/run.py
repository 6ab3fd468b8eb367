# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The command: which implementations there are, what is left to measure, and the processes that measure it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

from benchmarks.clib import build_limits, find_compiler, find_header
from benchmarks.machine import machine_facts
from benchmarks.process import run_worker
from benchmarks.results import Results, Task
from benchmarks.rows import ROWS, THREAD_ROWS, find_row
from benchmarks.table import render
from benchmarks.threads import THREAD_COUNTS
from benchmarks.timing import PROFILES

__all__ = ["main"]

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT_OUTPUT = ROOT / "build" / "benchmarks.json"


class Implementation(NamedTuple):
    """What is timed: a name, the interpreter, and its environment."""

    name: str
    python: str
    environment: dict[str, str]


def main() -> int:
    """Run the command and return its exit status."""
    options = parser().parse_args()
    output = pathlib.Path(options.output)
    if options.table:
        print(render(Results(output).data))
        return 0
    output.parent.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        output.unlink(missing_ok=True)
    tasks = choose_tasks(options.only, options.threads)
    if not tasks:
        raise SystemExit(f"--only {options.only!r} matches no row")
    try:
        results = Results(output)
        with tempfile.TemporaryDirectory() as folder:
            measure_all(options, tasks, results, pathlib.Path(folder))
    except ValueError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; the same command goes on from {output}") from None
    print(render(results.data))
    return 1 if results.data["errors"].get("ours") else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    found.add_argument("--quick", action="store_true", help="one short round: a few minutes in all")
    found.add_argument("--only", metavar="PATTERN", default="", help="only rows that this regular expression is in")
    found.add_argument("--threads", action="store_true", help="also calls per second of 1 to 16 threads")
    found.add_argument(
        "--output", metavar="FILE", default=str(DEFAULT_OUTPUT), help="the results; default build/benchmarks.json"
    )
    found.add_argument("--fresh", action="store_true", help="start over: forget the results in FILE")
    found.add_argument("--table", action="store_true", help="print the table of FILE, and measure nothing")
    found.add_argument("--simulator", action="store_true", help="run on the simulated driver")
    found.add_argument("--peer-python", metavar="PATH", help="an interpreter that has cuda-core; by default this one")
    found.add_argument("--pypy", metavar="PATH", help="a PyPy that has this package")
    found.add_argument("--pypy-path", metavar="DIR", help="where PyPy finds the package, if it is not installed there")
    return found


def choose_tasks(pattern: str, threads: bool) -> list[Task]:
    """Return the tasks whose row matches."""
    matches = re.compile(pattern, re.IGNORECASE).search
    tasks: list[Task] = [{"row": row.name, "threads": None} for row in ROWS if matches(row.name)]
    if threads:
        tasks += [{"row": name, "threads": count} for name in THREAD_ROWS if matches(name) for count in THREAD_COUNTS]
    return tasks


def measure_all(options: argparse.Namespace, tasks: list[Task], results: Results, folder: pathlib.Path) -> None:
    """Measure what is left, one implementation after the other in each round."""
    name = "quick" if options.quick else "full"
    profile = PROFILES[name]
    results.begin(name, machine_facts(options.simulator))
    for number in range(profile.rounds):
        for implementation in implementations(options, folder):
            left = [task for task in tasks if results.wants(implementation.name, task, number + 1)]
            if implementation.name == "c":
                left = [task for task in left if find_row(task["row"]).c is not None]
            if implementation.name == "peer":
                left = [task for task in left if find_row(task["row"]).peer]
            if left:
                print(
                    f"round {number + 1} of {profile.rounds}: {implementation.name}, {len(left)} rows", file=sys.stderr
                )
                run_worker(*implementation, left, profile, folder, results)


def implementations(options: argparse.Namespace, folder: pathlib.Path) -> list[Implementation]:
    """Return the implementations that can be measured; those that compile kernels for the others come first."""
    environment = dict(os.environ, CUDA_CORE_CFFI_DRIVER="system")
    built = source_tree("_cuda.abi3.so", "_cuda.cpython-*")
    if options.simulator:
        link = folder / "libcuda.so.1"
        if not link.is_symlink():
            link.symlink_to(simulator_library(with_path(environment, built), folder))
        environment["CUDA_CORE_CFFI_DRIVER"] = str(link)
    found = [Implementation("ours", sys.executable, with_path(environment, built))]
    if options.peer_python or has_peer():
        # cuda-core only looks where the loader does. The others must not: NVRTC would find the simulator too, and call
        # a function that it does not have.
        path = os.pathsep.join(filter(None, [str(folder), environment.get("LD_LIBRARY_PATH")]))
        peers = dict(environment, LD_LIBRARY_PATH=path) if options.simulator else environment
        found.append(Implementation("peer", options.peer_python or sys.executable, peers))
    if options.pypy:
        entries = [options.pypy_path] if options.pypy_path else source_tree("_cuda.pypy*")
        # What PYTHONPATH has for this interpreter is compiled for CPython.
        alone = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        found.append(Implementation("pypy", options.pypy, with_path(alone, entries)))
    compiler, header = find_compiler(), find_header()
    if compiler and header:
        if not (folder / "limits.so").exists():
            build_limits(compiler, header, folder)
        found.append(Implementation("c", sys.executable, environment))
    return found


def source_tree(*extensions: str) -> list[str]:
    """Return the source tree, for the search path, if the package is compiled in it."""
    return [str(ROOT)] if any(any((ROOT / "cuda_core_cffi").glob(name)) for name in extensions) else []


def with_path(environment: dict[str, str], entries: list[str]) -> dict[str, str]:
    """Return an environment with more entries in the module search path, after those that the user set."""
    path = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), *entries]))
    return dict(environment, PYTHONPATH=path) if path else environment


def has_peer() -> bool:
    """Tell whether this interpreter has cuda-core."""
    try:
        return importlib.util.find_spec("cuda.core") is not None
    except ModuleNotFoundError:
        return False


def simulator_library(environment: dict[str, str], folder: pathlib.Path) -> str:
    """Return the path of the simulated driver."""
    program = "from cuda_core_cffi.simulator import library_path; print(library_path())"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise ValueError(f"the simulated driver was not found: {done.stderr.strip()}")
    return done.stdout.strip()
