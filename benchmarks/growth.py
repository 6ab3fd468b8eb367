# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Growth: the same with more threads, more live buffers and larger graphs."""

from __future__ import annotations

import ctypes
import gc
import pathlib
from typing import Any

from benchmarks.clib import CLimits
from benchmarks.rows import LIVE, THREADS, Several, find_row
from benchmarks.threads import measure_threads
from benchmarks.workbench import Bench

LEAST_CALLS = 2000
"""A few buffers or nodes are made so often that this many calls are timed. A JIT compiler has compiled them by then."""

LAUNCHES = 5
LEAST_FOR_MEMORY = 10_000
"""Buffers of fewer than so many are too few pages to tell their size from."""

NANOSECONDS = 1e9


def measure_growth(bench: Bench | CLimits, series: Several, size: int, seconds: float) -> dict[str, list[float]]:
    """Return the figures of a series at one size, by row: nanoseconds, bytes, or calls per second."""
    if series in THREADS:
        row = find_row(series.row)
        if isinstance(bench, CLimits):
            return {series.name: [bench.threads(row, size, seconds)]}
        return {series.name: [measure_threads(bench, row, size, seconds)]}
    return measure_live(bench, size) if series is LIVE else measure_graph(bench, size)


def measure_live(bench: Bench | CLimits, count: int) -> dict[str, list[float]]:
    """Return what one of so many buffers takes."""
    bench.drain()
    times = -(-LEAST_CALLS // count)
    allocate, close, memory = LIVE.parts
    spent = dict.fromkeys((allocate, close), 0.0)
    live: list[Any] = [None] * count
    rehearsal: list[Any] = [None] * LEAST_CALLS
    bench.fill_live(rehearsal)
    bench.empty_live(rehearsal)
    bench.drain()
    gc.collect()
    give_back_memory()
    for _ in range(times):
        before = resident()
        spent[allocate] += bench.fill_live(live)
        grown = resident() - before
        spent[close] += bench.empty_live(live)
        bench.drain()
    found = {part: [seconds / times / count * NANOSECONDS] for part, seconds in spent.items()}
    if count >= LEAST_FOR_MEMORY:
        found[memory] = [grown / count]
    return found


def measure_graph(bench: Bench | CLimits, count: int) -> dict[str, list[float]]:
    """Return what one of so many nodes takes in each step of a graph's life."""
    times = -(-LEAST_CALLS // count)
    total: dict[str, float] = {}
    bench.graph_seconds(min(count, LEAST_CALLS), 1)
    for _ in range(times):
        for step, seconds in bench.graph_seconds(count, LAUNCHES).items():
            total[step] = total.get(step, 0.0) + seconds
    total["launch"] /= LAUNCHES
    return {f"graph nodes: {step}": [seconds / times / count * NANOSECONDS] for step, seconds in total.items()}


def resident() -> int:
    """Return the bytes of memory that this process has, as Linux counts them."""
    text = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS"))


def give_back_memory() -> None:
    """Give free memory back to the system, so that what is taken next can be seen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
