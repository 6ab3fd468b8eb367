# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run test suites of numba-cuda, unmodified, with this package in the place of cuda-core, on the simulated driver.

    python tests/clients/numba_cuda_suites.py [--jobs N] [--write] [--sample | MODULE ...]
    python tests/clients/numba_cuda_suites.py --both [--gpu] [--shard I/N] [--jobs N] [MODULE ...]

Python is one that has numba-cuda and this package. Each module of ``cudadrv`` and ``cudapy`` runs in a process of its
own. What fails is compared with numba_cuda_failures.json, which has the reason of each: a test that fails and is not
listed there is an error, and so is one that is listed and does not. ``--write`` prints what fails, with what it said.

``--both`` runs them with cuda-core too, and compares the two: an error is what fails with this package alone. ``--gpu``
leaves the driver to the machine.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import NamedTuple

from simulated import simulated_environment

HERE = pathlib.Path(__file__).resolve().parent
KNOWN = HERE / "numba_cuda_failures.json"
SUITES = ("cudadrv", "cudapy")
SAMPLE = (
    "cudadrv.",
    *(
        f"cudapy.test_{name}"
        for name in (
            "atomics",
            "blackscholes",
            "caching",
            "constmem",
            "cooperative_groups",
            "datetime",
            "debug",
            "device_func",
            "extending",
            "gufunc",
            "inspect",
            "ipc",
            "lang",
            "localmem",
            "matmul",
            "multithreads",
            "operator",
            "record_dtype",
            "reduction",
            "sm",
            "sync",
            "userexc",
            "warning",
        )
    ),
)
CRASH = "cuda simulator: double unload"
"""What the simulated driver reports where a GPU's ends the process."""
LIMIT = 400  # seconds for one module


def modules() -> list[str]:
    """Return the names of the test modules, the largest first."""
    spec = importlib.util.find_spec("numba_cuda")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("numba-cuda is not installed")
    root = pathlib.Path(next(iter(spec.submodule_search_locations))) / "numba" / "cuda" / "tests"
    files = [file for suite in SUITES for file in (root / suite).glob("test_*.py")]
    files.sort(key=lambda file: file.stat().st_size, reverse=True)
    return [f"{file.parent.name}.{file.stem}" for file in files]


Outcomes = dict[str, tuple[str, str]]  # of each test: what came of it, and why


class Side(NamedTuple):
    """With what the suites run: cuda-core or this package, and in which folder and environment."""

    is_ours: bool
    folder: pathlib.Path
    environment: dict[str, str]


def run(name: str, side: Side) -> Outcomes:
    """Run a module, or one test, in a process; return the outcome of each test, and why it failed."""
    folder = side.folder
    file = folder / f"{name}.{'ours' if side.is_ours else 'theirs'}.json"
    alias = ["-m", "cuda_core_cffi.as_cuda_core"] if side.is_ours else []
    command = [sys.executable, *alias, str(HERE / "unittest_results.py")]
    try:
        done = subprocess.run(
            [*command, f"numba.cuda.tests.{name}", str(file)],
            env=side.environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        ended = f"exit status {done.returncode}: {done.stderr[-300:]}"
        is_broken = done.returncode != 0 or CRASH in done.stderr
    except subprocess.TimeoutExpired:
        ended, is_broken = f"not done after {LIMIT} s", True
    outcomes = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        found = json.loads(line)
        outcomes[found["test"]] = (found["outcome"], found["why"])
    unfinished = [test for test, (outcome, _) in outcomes.items() if outcome == "begun"]
    for test in unfinished:
        outcomes[test] = ("failed", ended)
    if is_broken and not unfinished:
        outcomes[name] = ("failed", ended)
    return outcomes


def run_module(module: str, side: Side) -> Outcomes:
    """Run a module, and once more alone what failed after another test: an error that stays fails all that follow."""
    began = time.monotonic()
    outcomes = run(module, side)
    failed = [test for test, (outcome, _) in outcomes.items() if outcome == "failed" and test != module]
    for test in failed[1:]:
        outcomes |= run(test, side)
    who = "" if side.is_ours else " with cuda-core"
    reasons = [f"; {name.rpartition('.')[2]}: {why}" for name, why in failures(outcomes).items()]
    first = reasons[0] if reasons else ""
    seconds = time.monotonic() - began
    print(f"{module}{who}: {counts_of(outcomes)} ({seconds:.0f} s){first}", file=sys.stderr, flush=True)
    return outcomes


def run_all(asked: list[str], side: Side, jobs: int) -> Outcomes:
    """Run the modules, several at a time."""
    outcomes: Outcomes = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda module: run_module(module, side), asked):
            outcomes |= found
    return outcomes


def failures(outcomes: Outcomes) -> dict[str, str]:
    """Return what failed, and why."""
    return {name: why for name, (outcome, why) in sorted(outcomes.items()) if outcome == "failed"}


def counts_of(outcomes: Outcomes) -> str:
    """Return how many tests passed, failed and were skipped, in words."""
    counts = Counter(outcome for outcome, _ in outcomes.values())
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))


def main() -> int:
    """Run what was asked for, and compare it with what is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many modules run at a time")
    parser.add_argument("--write", action="store_true", help="print the list of what fails, with what it said")
    parser.add_argument("--both", action="store_true", help="compare with cuda-core")
    parser.add_argument("--gpu", action="store_true", help="use the machine's driver")
    parser.add_argument("--shard", default="1/1", help="such as 2/3: the second third of the modules")
    parser.add_argument("--sample", action="store_true", help="the drivers' suite, and some modules of the other")
    parser.add_argument("modules", nargs="*", help="some of them, such as cudadrv.test_events; by default all")
    arguments = parser.parse_args()
    asked = arguments.modules or [name for name in modules() if not arguments.sample or name.startswith(SAMPLE)]
    shard, _, shards = arguments.shard.partition("/")
    asked = asked[int(shard) - 1 :: int(shards)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = dict(os.environ)
        if not arguments.gpu:
            environment = {**simulated_environment(folder), "CUDA_SIM_REPORT": "stderr"}
        outcomes = run_all(asked, Side(True, folder, environment), arguments.jobs)
        if arguments.both:
            theirs = run_all(asked, Side(False, folder, environment), arguments.jobs)
            # some tests give a process few seconds: what fails on one side is run once more with nothing beside it
            for name in failures(outcomes).keys() - failures(theirs):
                outcomes |= run(name, Side(True, folder, environment))
            for name in failures(theirs).keys() - failures(outcomes):
                theirs |= run(name, Side(False, folder, environment))
    failed = failures(outcomes)
    if arguments.both:
        fail_there = failures(theirs)
        for name in sorted(failed.keys() - fail_there):
            print(f"fails here alone: {name}: {failed[name]}")
        for name in sorted(fail_there.keys() - failed):
            print(f"fails with cuda-core alone: {name}: {fail_there[name]}")
        print(f"numba-cuda: {counts_of(outcomes)}; with cuda-core {counts_of(theirs)}")
        return int(bool(failed.keys() - fail_there))
    if arguments.write:
        print(json.dumps(failed, indent=1))
        return 0
    known = {
        name for name in json.loads(KNOWN.read_text()) if f"{name}.".startswith(tuple(f"{module}." for module in asked))
    }
    for name in sorted(failed.keys() - known):
        print(f"fails: {name}: {failed[name]}")
    for name in sorted(known - failed.keys()):
        print(f"listed, but does not fail: {name}")
    print(f"numba-cuda: {counts_of(outcomes)}")
    return int(failed.keys() != known)


if __name__ == "__main__":
    sys.exit(main())
