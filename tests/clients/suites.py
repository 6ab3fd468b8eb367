# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run test suites of clients of cuda.core with cuda-core and with this package in its place, and compare the outcomes.

    python tests/clients/suites.py [--gpu] [--shard I/N] [--jobs N] [--json FILE] [--tests NAME=FOLDER] [SUITE[:PART]]

Python is one that has cuda-core, this package and the clients; a suite whose client is missing is skipped. The suites:

- ``numba-cuda``: its tests, which are in its wheel.
- ``numba-cuda-mlir``: the same tests on numba-cuda-mlir (numba_cuda_on_mlir.py).
- ``nvmath-python``: the examples in its docstrings.
- ``rapids-cli``: its tests, which are in its wheel.
- ``NAME``: the files ``test_*.py`` below FOLDER, with pytest, for each ``--tests NAME=FOLDER``: a checkout of a client.

Each part of a suite, a module or a file, runs in a process of its own, with this package and then with cuda-core.
Prints the tests whose outcomes differ, and a table. Returns 1 if a test fails, or does not run, with this package
alone. Without ``--gpu`` the driver is the simulated one.
"""

from __future__ import annotations

import argparse
import ast
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
from collections.abc import Callable
from typing import NamedTuple

from simulated import simulated_environment

HERE = pathlib.Path(__file__).resolve().parent
NUMBA_CUDA_FOLDERS = ("cudadrv", "cudapy")
CRASH = "cuda simulator: double unload"
"""The report of the simulated driver for an error that ends the process on a GPU."""
LIMIT = 400  # seconds for one part
MLIR = "numba-cuda-mlir"
"""The suite with many tests that fail, alone too, because the library differs from numba-cuda."""
DOCTESTS = "doctest_results.py"
NOT_RUN = ("not run", "")
OUTCOMES = ("passed", "failed", "skipped")

Outcomes = dict[str, tuple[str, str]]  # of each test: the outcome, and why it failed


class Suite(NamedTuple):
    """The tests of a client."""

    name: str
    parts: list[str]
    """The names of the parts, the longest first."""
    script: str
    """The script that runs a part, or one test of it, and writes the outcomes to a file."""
    target: Callable[[str], str] = str
    """Returns the argument of the script for the name of a part or of a test."""
    folder: pathlib.Path | None = None
    """The working directory, if the names of parts are paths of files."""


class Side(NamedTuple):
    """Cuda-core or this package, and the folder and environment of its processes."""

    is_ours: bool
    folder: pathlib.Path
    environment: dict[str, str]


# --- Suites -----------------------------------------------------------------------------------------------------------


def folder_of(package: str) -> pathlib.Path | None:
    """Return the folder of an installed package, or None."""
    spec = importlib.util.find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return pathlib.Path(next(iter(places))) if places else None


def by_size(files: list[pathlib.Path]) -> list[pathlib.Path]:
    """Return files, the largest first."""
    return sorted(files, key=lambda file: (-file.stat().st_size, file))


def numba_cuda_modules() -> list[str]:
    """Return the names of numba-cuda's test modules, the largest first."""
    root = folder_of("numba_cuda")
    if root is None:
        return []
    tests = root / "numba" / "cuda" / "tests"
    files = by_size([file for folder in NUMBA_CUDA_FOLDERS for file in (tests / folder).glob("test_*.py")])
    return [f"{file.parent.name}.{file.stem}" for file in files]


def modules_with_examples(package: str) -> list[str]:
    """Return the names of a package's modules whose docstrings have examples, the largest first."""
    root = folder_of(package)
    if root is None:
        return []
    files = [file for file in root.rglob("*.py") if "distributed" not in file.parts and has_examples(file)]
    return [".".join((package, *file.relative_to(root).with_suffix("").parts)) for file in by_size(files)]


def has_examples(file: pathlib.Path) -> bool:
    """Return whether a docstring of a module has an example."""
    text = file.read_text(errors="replace")
    if ">>> " not in text:
        return False
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, documented))
    return any(">>> " in (ast.get_docstring(node) or "") for node in nodes)


def suite_of_files(name: str, folder: pathlib.Path | None) -> Suite:
    """Return the suite of the files ``test_*.py`` below a folder."""
    files = by_size(list(folder.rglob("test_*.py"))) if folder else []
    return Suite(name, [str(file.relative_to(folder)) for file in files], "pytest_results.py", folder=folder)


def of_numba_cuda(name: str) -> str:
    """Return the full name of a test of numba-cuda, or of a module of tests."""
    return f"numba.cuda.tests.{name}"


def numba_cuda_suite() -> Suite:
    """Return the suite of numba-cuda, without parts if it is not installed."""
    return Suite("numba-cuda", numba_cuda_modules(), "unittest_results.py", of_numba_cuda)


def suites(checkouts: dict[str, pathlib.Path]) -> list[Suite]:
    """Return the suites that are there."""
    numba_cuda = numba_cuda_suite()
    has_mlir = folder_of("numba_cuda_mlir") is not None
    rapids = folder_of("rapids_cli")
    found = [
        numba_cuda,
        Suite(MLIR, numba_cuda.parts if has_mlir else [], "numba_cuda_on_mlir.py", of_numba_cuda),
        Suite("nvmath-python", modules_with_examples("nvmath"), DOCTESTS),
        suite_of_files("rapids-cli", rapids / "tests" if rapids else None),
        *(suite_of_files(name, folder) for name, folder in checkouts.items()),
    ]
    for suite in found:
        if not suite.parts:
            print(f"{suite.name}: not there", file=sys.stderr)
    return [suite for suite in found if suite.parts]


# --- Runs -------------------------------------------------------------------------------------------------------------


def run(suite: Suite, name: str, side: Side) -> Outcomes:
    """Run a part, or one test of it, in a process; return the outcome of each test."""
    label = f"{suite.name}.{name}.{'ours' if side.is_ours else 'theirs'}"
    file = side.folder / f"{''.join(c if c.isalnum() or c in '.-' else '_' for c in label)[-200:]}.json"
    alias = ["-m", "cuda_core_cffi.as_cuda_core"] if side.is_ours else []
    try:
        done = subprocess.run(
            [sys.executable, *alias, str(HERE / suite.script), suite.target(name), str(file)],
            env=side.environment,
            cwd=suite.folder or side.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        ended = f"exit status {done.returncode}: {' '.join(done.stderr[-300:].split())}"
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


def can_be_repeated(suite: Suite) -> bool:
    """Return whether the script of a suite also runs one test."""
    return suite.script != DOCTESTS


def run_part(suite: Suite, part: str, side: Side) -> Outcomes:
    """Run a part, and once more alone each test that failed after another one: a sticky error fails all that follow."""
    began = time.monotonic()
    outcomes = run(suite, part, side)
    failed = [test for test, (outcome, _) in outcomes.items() if outcome == "failed" and test != part]
    for test in failed[1:]:
        if can_be_repeated(suite) and (suite.name != MLIR or "CUDA_ERROR" in outcomes[test][1]):
            outcomes |= run(suite, test, side)
    who = "" if side.is_ours else " with cuda-core"
    reasons = [f"; {name.rpartition('.')[2]}: {why}" for name, why in failures(outcomes).items()]
    first = reasons[0] if reasons else ""
    seconds = time.monotonic() - began
    print(f"{suite.name} {part}{who}: {counts_of(outcomes)} ({seconds:.0f} s){first}", file=sys.stderr, flush=True)
    return outcomes


def run_all(suite: Suite, parts: list[str], sides: list[Side], jobs: int) -> list[Outcomes]:
    """Run parts with each side in turn, several parts at a time; return the outcomes of each side."""
    totals: list[Outcomes] = [{} for _ in sides]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda part: [run_part(suite, part, side) for side in sides], parts):
            for total, outcomes in zip(totals, found, strict=True):
                total |= outcomes
    return totals


def failures(outcomes: Outcomes) -> dict[str, str]:
    """Return the tests that failed, and why."""
    return {name: why for name, (outcome, why) in sorted(outcomes.items()) if outcome == "failed"}


def counts_of(outcomes: Outcomes) -> str:
    """Return how many tests passed, failed and were skipped, in words."""
    counts = Counter(outcome for outcome, _ in outcomes.values())
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)


# --- Comparison -------------------------------------------------------------------------------------------------------


def differing(ours: Outcomes, theirs: Outcomes) -> dict[str, tuple[tuple[str, str], tuple[str, str]]]:
    """Return both outcomes, with the reasons, of each test whose outcomes differ."""
    pairs = {name: (ours.get(name, NOT_RUN), theirs.get(name, NOT_RUN)) for name in sorted({*ours, *theirs})}
    return {name: pair for name, pair in pairs.items() if pair[0][0] != pair[1][0]}


def compare(suite: Suite, parts: list[str], sides: list[Side], jobs: int) -> tuple[Outcomes, Outcomes]:
    """Run parts of a suite with both sides; repeat each failure of one side alone, with no other test beside it."""
    ours, theirs = run_all(suite, parts, sides, jobs)
    for name, (our, their) in differing(ours, theirs).items() if can_be_repeated(suite) else ():
        # some tests give a process few seconds
        if our[0] == "failed":
            ours |= run(suite, name, sides[0])
        if their[0] == "failed":
            theirs |= run(suite, name, sides[1])
    return ours, theirs


def is_worse(our: str, their: str) -> bool:
    """Return whether the outcome of a test with this package is worse than with cuda-core."""
    return our in ("failed", "not run") and their in ("passed", "skipped")


def report(found: dict[str, tuple[Outcomes, Outcomes]]) -> tuple[list[str], bool]:
    """Return the lines of the report: differing tests and the table; and whether a test is worse with this package."""
    lines, worse = [], False
    for name, (ours, theirs) in found.items():
        for test, ((our, our_why), (their, their_why)) in differing(ours, theirs).items():
            mark = "WORSE" if is_worse(our, their) else "other"
            worse |= is_worse(our, their)
            lines.append(
                f"{mark} {name} {test}: {our} here, {their} with cuda-core: {our_why or their_why}".rstrip(": ")
            )
    lines.append(f"{'suite':20} {'passed/failed/skipped':>24} {'with cuda-core':>24} {'differ':>7}")
    for name, (ours, theirs) in found.items():
        here, there = (short_counts(outcomes) for outcomes in (ours, theirs))
        lines.append(f"{name:20} {here:>24} {there:>24} {len(differing(ours, theirs)):>7}")
    return lines, worse


def short_counts(outcomes: Outcomes) -> str:
    """Return how many tests passed, failed and were skipped, such as ``7/0/1``."""
    counts = Counter(outcome for outcome, _ in outcomes.values())
    return "/".join(str(counts[outcome]) for outcome in OUTCOMES)


def choose(suite: Suite, asked: list[str], shard: str) -> list[str]:
    """Return the parts of a suite that were asked for, such as ``rapids-cli`` or ``numba-cuda:cudadrv.test_events``."""
    wanted = [part for name, _, part in (item.partition(":") for item in asked) if name == suite.name]
    parts = suite.parts if not asked or "" in wanted else wanted
    index, _, count = shard.partition("/")
    return parts[int(index) - 1 :: int(count)]


def main() -> int:
    """Run the suites, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many parts run at a time")
    parser.add_argument("--gpu", action="store_true", help="use the machine's driver")
    parser.add_argument("--shard", default="1/1", help="such as 2/3: the second third of each suite")
    parser.add_argument("--json", type=pathlib.Path, help="write the outcomes to this file")
    parser.add_argument("--tests", action="append", default=[], metavar="NAME=FOLDER", help="a checkout of a client")
    parser.add_argument("asked", nargs="*", metavar="SUITE[:PART]", help="by default all suites")
    arguments = parser.parse_args()
    checkouts = {
        name: pathlib.Path(folder).resolve() for name, _, folder in (item.partition("=") for item in arguments.tests)
    }
    available = suites(checkouts)
    unknown = {item.partition(":")[0] for item in arguments.asked} - {suite.name for suite in available}
    if unknown:
        parser.error(f"SUITE must be one of {', '.join(suite.name for suite in available)}, not {', '.join(unknown)}")
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = dict(os.environ)
        if not arguments.gpu:
            environment = {**simulated_environment(folder), "CUDA_SIM_REPORT": "stderr"}
        sides = [Side(is_ours, folder, environment) for is_ours in (True, False)]
        for suite in available:
            parts = choose(suite, arguments.asked, arguments.shard)
            if parts:
                found[suite.name] = compare(suite, parts, sides, arguments.jobs)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))
    lines, worse = report(found)
    print(*lines, sep="\n")
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
