# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""This package and cuda-core in one process, where they take turns: ``python -m benchmarks turns``.

The same machine may be twice as slow a minute later, and a process half as slow again as the next one, for one
implementation alone. What takes turns within milliseconds meets the same machine, the same process and the same driver.
So this tells the ratio of two implementations, and which is quicker by a few nanoseconds; how long a call takes is told
better by processes of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pathlib
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence

from benchmarks.growth import measure_growth
from benchmarks.rows import GRAPHS, LIVE, ROWS, STRETCH, Row, Several
from benchmarks.table import CELLS, SECOND_FORM, geometric_mean, head, line, medians
from benchmarks.timing import NANOSECONDS, REPEATS, back_to_back_run
from benchmarks.workbench import Absent, Workbench

TURNS = 100
GROWTH_TURNS = 9
COLUMNS = [cell for cell in CELLS if {cell[0], cell[1] or cell[0]} <= {"ours", "peer"}]
FORMS = ("nanoseconds per call, median", SECOND_FORM)

Values = dict[str, list[float]]


def main(arguments: Sequence[str]) -> int:
    """Print a table of both forms of the rows that both packages have, or one of growth."""
    found = argparse.ArgumentParser(
        prog="python -m benchmarks turns", description="Measure two packages that take turns in one process."
    )
    found.add_argument("--only", metavar="PATTERN", default="", help="only rows that this regular expression is in")
    found.add_argument("--turns", metavar="N", type=int, help=f"of each; default {TURNS}, for growth {GROWTH_TURNS}")
    found.add_argument("--peer", metavar="MODULE", default="cuda.core", help="the other package; default %(default)s")
    found.add_argument("--growth", metavar="SIZE", type=int, help="live buffers and graph nodes instead, up to so many")
    options = found.parse_args(arguments)
    turns = options.turns
    if turns is None:
        turns = TURNS if options.growth is None else GROWTH_TURNS
    if turns < 1:
        found.error(f"--turns must be at least 1, not {turns}")
    os.environ.setdefault("CUDA_CORE_CFFI_DRIVER", "system")
    if options.growth is None:
        rows = wanted_rows(options.only)
        with workbenches(options.peer) as benches:
            print_rows(benches, rows, turns)
    else:
        growth = wanted_growth(options.only, options.growth)
        with workbenches(options.peer) as benches:
            print_growth(benches, growth, turns, options.growth)
    return 0


def wanted_rows(only: str) -> dict[str, Row]:
    """Return the rows that both packages have and a regular expression is in, by name."""
    rows = {row.name: row for row in ROWS if row.peer and not row.foreign and re.search(only, row.name)}
    if not rows:
        raise ValueError(f"--only {only!r} matches no row that both have")
    return rows


def wanted_growth(only: str, largest: int) -> dict[str, Several]:
    """Return the series of the rows of growth that a regular expression is in. Memory a process has but one."""
    every = {name: series for series in (LIVE, GRAPHS) for name in series.parts if name != LIVE.parts[-1]}
    found = {name: series for name, series in every.items() if re.search(only, name) and min(series.sizes) <= largest}
    if not found:
        raise ValueError(f"--only {only!r} matches no growth up to {largest} that is measured in turns")
    return found


def print_rows(benches: dict[str, Workbench], rows: dict[str, Row], turns: int) -> None:
    """Print both forms of rows."""
    tables: tuple[dict[str, Values], dict[str, Values]] = {}, {}
    for name, row in rows.items():
        try:
            for table, values in zip(tables, take_turns(benches, row, turns)):
                table[name] = values
        except Absent as reason:
            print(f"left out: {name} ({reason})")
    for form, table in zip(FORMS, tables):
        print(head(form, COLUMNS))
        for name, values in table.items():
            print(line(name, values, 1, COLUMNS))
    for form, table in zip(FORMS, tables):
        ratios = [middle["ours"] / middle["peer"] for middle in map(medians, table.values())]
        if ratios:
            print(f"geometric mean of ours/peer over {len(ratios)} rows: {geometric_mean(ratios):.3f} ({form})")


def print_growth(benches: dict[str, Workbench], rows: dict[str, Several], turns: int, largest: int) -> None:
    """Print what one of many buffers takes, and one of many nodes."""
    print(head("nanoseconds per buffer, or per node", COLUMNS))
    for series in dict.fromkeys(rows.values()):
        for size in series.sizes:
            if size <= largest:
                for name, values in grow_in_turns(benches, series, size, turns).items():
                    if name in rows:
                        print(line(f"{name} x{size:,}", values, 1, COLUMNS), flush=True)


@contextlib.contextmanager
def workbenches(peer: str) -> Iterator[dict[str, Workbench]]:
    """Have both packages ready: ours, and that of a module."""
    modules = {"ours": "cuda_core_cffi", "peer": peer}
    with tempfile.TemporaryDirectory() as folder, installed_packages():
        code = pathlib.Path(folder)
        yield {name: Workbench(importlib.import_module(module), code) for name, module in modules.items()}


@contextlib.contextmanager
def installed_packages() -> Iterator[None]:
    """Have packages found as the interpreter finds them, not in the source tree that this file lies in."""
    before, tree = sys.path[:], pathlib.Path(__file__).resolve().parent.parent
    sys.path[:] = [place for place in before if pathlib.Path(place).resolve() != tree]
    try:
        yield
    finally:
        sys.path[:] = before


def take_turns(benches: dict[str, Workbench], row: Row, turns: int) -> tuple[Values, Values]:
    """Return the nanoseconds of a call of both forms of a row, by implementation: every turn's, and the best.

    Parameters
    ----------
    benches : dict of str to Workbench
        The implementations by name.
    row : Row
        What is measured.
    turns : int
        How many stretches of each are measured. Which is first is left to chance each time.
    """
    loops = {name: bench.loop(row) for name, bench in benches.items()}
    order = list(loops)
    stretch = max(STRETCH // row.launches, 1)
    once: Values = {name: [] for name in order}
    for turn in range(turns + 1):
        random.shuffle(order)
        for name in order:
            seconds = loops[name](stretch)
            benches[name].drain()
            if turn:  # the first warms up
                once[name].append(seconds / stretch * NANOSECONDS)
    runs = {name: back_to_back_run(loops[name], benches[name].drain, row.launches) for name in order}
    best: Values = {name: [] for name in order}
    for _ in range(REPEATS):
        random.shuffle(order)
        for name in order:
            best[name] = [min([*best[name], runs[name]()])]
    return once, best


def grow_in_turns(benches: dict[str, Workbench], series: Several, size: int, turns: int) -> dict[str, Values]:
    """Return the nanoseconds of every turn at one size of a series, by row and implementation."""
    order = list(benches)
    found: dict[str, Values] = {}
    for turn in range(turns + 1):
        random.shuffle(order)
        for name in order:
            for row, values in measure_growth(benches[name], series, size, 0).items():
                if turn:  # the first warms up
                    found.setdefault(row, {}).setdefault(name, []).extend(values)
    return found
