# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The command: which implementations there are, what is left to measure, and the processes that measure it."""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from benchmarks import objects, turns
from benchmarks.clib import build_limits, find_compiler, find_header
from benchmarks.instructions import build_marks, counted
from benchmarks.libraries import CUPY, PYNVML, TORCH
from benchmarks.machine import machine_facts
from benchmarks.process import prepare, run_worker
from benchmarks.results import Results, Task
from benchmarks.rows import FRESH, GRAPHS, GROWTH, LIVE, PACKED, ROWS, Several, find_row
from benchmarks.table import render
from benchmarks.timing import PROFILES, Profile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT_OUTPUT = ROOT / "build" / "benchmarks.json"
IMPLEMENTATIONS = ("ours", "peer", "pypy", "threaded", "c", "cupy", "torch", "pynvml")
FOREIGN = ("cupy", "torch", "pynvml")
PACKAGES = ("ours", "peer")
WITH_CALLGRIND = (*PACKAGES, "pypy", "c")
"""The others need a GPU, or were not tried."""

NEWEST = "13990"
"""What the simulated driver says it is: cuda-core warns, whenever it compiles, of one that is older than NVRTC."""

LARGEST_SIMULATED = 10_000
"""Of live buffers and graph nodes: the simulated driver looks through lists of them."""


class Implementation(NamedTuple):
    """What is measured: a name, the interpreter, and its environment."""

    name: str
    python: str
    environment: dict[str, str]


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] == ["chart"]:
            return chart(arguments[1:])
        if arguments[:1] == ["objects"]:
            return objects.main(arguments[1:])
        if arguments[:1] == ["turns"]:
            return turns.main(arguments[1:])
        if arguments[:1] == ["simulated"]:
            return simulated(arguments[1:])
        options = parser().parse_args(arguments)
        output = pathlib.Path(options.output)
        if options.table:
            print(render(Results(output).data))
            return 0
        tasks = plan(options.only, options.simulator, options.instructions)
        if not tasks:
            raise ValueError(f"--only {options.only!r} matches no row")
        output.parent.mkdir(parents=True, exist_ok=True)
        if options.fresh:
            output.unlink(missing_ok=True)
        results = Results(output)
        with tempfile.TemporaryDirectory() as folder:
            measure_all(options, tasks, results, pathlib.Path(folder))
    except ValueError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit("stopped; the same command goes on from there") from None
    print(render(results.data))
    return 1 if results.data["errors"].get("ours") else 0


def simulated(arguments: list[str]) -> int:
    """Measure typical kernels on the simulated driver."""
    from benchmarks.simulated import main as measure_kernels

    return measure_kernels(arguments)


def chart(arguments: list[str]) -> int:
    """Draw results."""
    found = argparse.ArgumentParser(prog="python -m benchmarks chart", description="Draw results as SVG.")
    found.add_argument("results", type=pathlib.Path, help="a results file")
    found.add_argument("picture", type=pathlib.Path, help="the SVG file to write")
    options = found.parse_args(arguments)
    from benchmarks.chart import draw  # needs matplotlib, which the rest does not

    draw(Results(options.results).data, options.picture)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure hot calls of this package beside others. 'python -m benchmarks chart' draws the results, "
        "'python -m benchmarks objects' measures the memory of live objects, 'python -m benchmarks turns' two packages "
        "that take turns in one process.",
    )
    found.add_argument("--quick", action="store_true", help="few and short rounds: five minutes in all")
    found.add_argument("--rounds", metavar="N", type=positive, help="how often each implementation has its turn")
    found.add_argument("--only", metavar="PATTERN", default="", help="only rows that this regular expression is in")
    found.add_argument(
        "--implementations",
        metavar="NAMES",
        default=",".join(IMPLEMENTATIONS),
        help="some of %(default)s; those that are not there are left out anyway",
    )
    found.add_argument(
        "--output", metavar="FILE", default=str(DEFAULT_OUTPUT), help="the results; default build/benchmarks.json"
    )
    found.add_argument("--fresh", action="store_true", help="start over: forget the results in FILE")
    found.add_argument("--table", action="store_true", help="print the table of FILE, and measure nothing")
    found.add_argument("--simulator", action="store_true", help="run on the simulated driver")
    found.add_argument("--instructions", action="store_true", help="count instructions instead, with valgrind")
    found.add_argument("--peer-python", metavar="PATH", help="an interpreter that has cuda-core; by default this one")
    found.add_argument("--pypy", metavar="PATH", help="a PyPy that has this package")
    found.add_argument("--pypy-path", metavar="DIR", help="where PyPy finds the package, if it is not installed there")
    found.add_argument("--free-threaded", metavar="PATH", help="a CPython without the GIL that has this package")
    found.add_argument(
        "--free-threaded-path", metavar="DIR", help="where that finds the package, if it is not installed there"
    )
    return found


def positive(text: str) -> int:
    """Return the number in an argument, which must be at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def plan(pattern: str, simulator: bool, instructions: bool) -> list[Task]:
    """Return the tasks whose rows match. What brings other libraries into the process comes last."""
    if instructions and not simulator:
        raise ValueError("--instructions needs --simulator: a real driver cannot be run by valgrind")
    matches = re.compile(pattern, re.IGNORECASE).search
    tasks: list[Task] = []
    growth = () if instructions else GROWTH
    for item in (*(row for row in ROWS if not row.foreign), FRESH, PACKED, *growth, *(r for r in ROWS if r.foreign)):
        parts = item.parts if isinstance(item, Several) else (item.name,)
        if any(map(matches, (item.name, *parts))):
            sizes = item.sizes if isinstance(item, Several) else ()
            if simulator and item in (LIVE, GRAPHS):
                sizes = tuple(size for size in sizes if size <= LARGEST_SIMULATED)
            tasks += [{"row": item.name, "parts": parts, "size": size} for size in sizes or (None,)]
    return tasks


def has(implementation: str, task: Task) -> bool:
    """Tell whether an implementation has an equivalent of what a task measures."""
    name = task["row"]
    if implementation == "pynvml":
        return name in PYNVML
    if name == PACKED.name:
        return implementation != "c"
    if name in (FRESH.name, LIVE.name):
        return True
    if name == GRAPHS.name:
        return implementation != "torch"
    row = find_row(name.removeprefix("threads: "))
    if implementation == "c":
        return row.c is not None
    if implementation == "peer":
        return row.peer
    return {"cupy": row.name in CUPY, "torch": row.name in TORCH}.get(implementation, True)


def measure_all(options: argparse.Namespace, tasks: list[Task], results: Results, folder: pathlib.Path) -> None:
    """Measure what is left, one implementation after the other in each round."""
    name = "quick" if options.quick else "full"
    profile = PROFILES[name]
    if options.rounds is not None:
        profile = profile._replace(rounds=options.rounds, growth_rounds=options.rounds, limit=None)
        name += f", {options.rounds} rounds"
    if options.instructions:
        counted("")  # says so if there is no valgrind
        build_marks(find_compiler(), folder)
        profile = profile._replace(rounds=1, growth_rounds=1)
        name += ", instructions"
    results.begin(name, machine_facts(options.simulator))
    available = implementations(options, folder)
    chosen = choose(options.implementations, options.instructions)
    for one in available:
        # what compiles for all, where it is not asked for; and everybody, where compiling would be counted too
        if (one.name == "ours" and one.name not in chosen) or (options.instructions and one.name in PACKAGES):
            prepare(*one, profile, folder)
    end = None if profile.limit is None else time.monotonic() + profile.limit
    for number in range(profile.rounds):
        for one in available:
            if number and end is not None and time.monotonic() > end:
                print("no time for more rounds; the same command goes on from there", file=sys.stderr)
                return
            left = [
                task
                for task in tasks
                if one.name in chosen
                and has(one.name, task)
                and number < rounds_of(task, profile)
                and results.wants(one.name, task, number + 1)
            ]
            if left:
                print(f"round {number + 1} of {profile.rounds}: {one.name}, {len(left)} rows", file=sys.stderr)
                for group in processes(left):
                    run_worker(*one, group, profile, folder, results, options.instructions)


def processes(tasks: list[Task]) -> list[list[Task]]:
    """Return the tasks in groups that share a process: JAX cannot start where other libraries use the GPU already."""
    foreign = {row.name for row in ROWS if row.foreign}
    together = [task for task in tasks if task["row"] not in foreign]
    return [group for group in (together, *([task] for task in tasks if task["row"] in foreign)) if group]


def rounds_of(task: Task, profile: Profile) -> int:
    """Return how often a task is measured."""
    several = task["size"] is not None or task["row"] in (FRESH.name, PACKED.name)
    return profile.growth_rounds if several else profile.rounds


def choose(names: str, instructions: bool) -> list[str]:
    """Return the names of the implementations that are asked for."""
    chosen = names.split(",")
    for name in chosen:
        if name not in IMPLEMENTATIONS:
            raise ValueError(f"--implementations: no {name!r} among {', '.join(IMPLEMENTATIONS)}")
    return [name for name in chosen if not instructions or name in WITH_CALLGRIND]


def implementations(options: argparse.Namespace, folder: pathlib.Path) -> list[Implementation]:
    """Return the implementations that can be measured; those that compile kernels for the others come first."""
    environment = dict(os.environ, CUDA_CORE_CFFI_DRIVER="system")
    if options.instructions:
        environment["PYTHONHASHSEED"] = "0"
    built = source_tree(*(f"_cuda{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES))
    if options.simulator:
        link = folder / "libcuda.so.1"
        link.symlink_to(simulator_library(with_path(environment, built), folder))
        environment["CUDA_CORE_CFFI_DRIVER"] = str(link)
        environment.setdefault("CUDA_SIM_DRIVER_VERSION", NEWEST)
    found = [Implementation("ours", sys.executable, with_path(environment, built))]
    if options.peer_python or is_installed("cuda.core"):
        # cuda-core only looks where the loader does. The others must not: NVRTC would find the simulator too, and call
        # a function that it does not have.
        path = os.pathsep.join(filter(None, [str(folder), environment.get("LD_LIBRARY_PATH")]))
        peers = dict(environment, LD_LIBRARY_PATH=path) if options.simulator else environment
        found.append(Implementation("peer", options.peer_python or sys.executable, peers))
    # What PYTHONPATH has for this interpreter is not compiled for these.
    alone = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    for name, python, folder_of, extension in (
        ("pypy", options.pypy, options.pypy_path, "_cuda.pypy*"),
        ("threaded", options.free_threaded, options.free_threaded_path, "_cuda.cpython-3[0-9][0-9]t-*"),
    ):
        if python:
            entries = [folder_of] if folder_of else source_tree(extension)
            found.append(Implementation(name, python, with_path(alone, entries)))
    compiler, header = find_compiler(), find_header()
    if compiler and header:
        build_limits(compiler, header, folder)
        found.append(Implementation("c", sys.executable, environment))
    if not options.simulator:  # which has no CUDA runtime
        found += [Implementation(name, sys.executable, environment) for name in FOREIGN if is_installed(name)]
    return found


def source_tree(*extensions: str) -> list[str]:
    """Return the source tree, for the search path, if the package is compiled in it."""
    return [str(ROOT)] if any(any((ROOT / "cuda_core_cffi").glob(name)) for name in extensions) else []


def with_path(environment: dict[str, str], entries: list[str]) -> dict[str, str]:
    """Return an environment with more entries in the module search path, after those that the user set."""
    path = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), *entries]))
    return dict(environment, PYTHONPATH=path) if path else environment


def is_installed(module: str) -> bool:
    """Tell whether this interpreter has a module."""
    try:
        return importlib.util.find_spec(module) is not None
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
