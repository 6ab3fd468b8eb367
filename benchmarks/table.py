# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The table: one line for each row, and the geometric mean."""

from __future__ import annotations

import itertools
import math
from typing import Any

from benchmarks.rows import ROWS
from benchmarks.timing import median, spread

__all__ = ["render"]

NAME_WIDTH = 30
CELL_WIDTH = 10
LINE_WIDTH = 100
COLUMNS = ("c ns", "ours ns", "ours/c", "peer ns", "ours/peer", "pypy ns", "spread")
THREAD_COLUMNS = ("c", "ours", "ours/c", "peer", "ours/peer", "pypy", "")
MISSING = "-"

Times = dict[str, list[float]]
"""The values of a row, all rounds together, by implementation."""


def render(data: dict[str, Any]) -> str:
    """Return the table for the content of a results file."""
    lines = heading(data)
    lines.append(line("nanoseconds per call, median", COLUMNS))
    ratios = []
    for name in (row.name for row in ROWS):
        times = pool(data["rows"].get(name, {}))
        if not times:
            continue
        middles = {implementation: median(values) for implementation, values in times.items()}
        lines.append(line(name, [*cells(middles), f"{max(map(spread, times.values())):.1%}"]))
        if "ours" in middles and "peer" in middles:
            ratios.append(middles["ours"] / middles["peer"])
    lines += thread_lines(data["threads"])
    for implementation, errors in data["errors"].items():
        first = next(iter(errors.values())).partition("\n")[0]
        lines.append(f"{len(errors)} failed in {implementation}: {first}"[:LINE_WIDTH])
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"geometric mean of ours/peer over {len(ratios)} rows: {mean:.3f} (below 1: ours is faster)")
    return "\n".join(lines)


def heading(data: dict[str, Any]) -> list[str]:
    """Return what was measured, and where."""
    machine = data["machine"]
    lines = [
        f"{machine.get('cpu')}, {machine.get('cores')} cores; GPU {machine.get('gpu')}, driver {machine.get('driver')}"
    ]
    if machine.get("gpu") == "simulated":
        lines.append("SIMULATED driver: its own time is in every figure, and is not that of a GPU")
    for name, about in data["implementations"].items():
        versions = " ".join(itertools.chain.from_iterable(about["versions"].items()))
        if versions:
            lines.append(f"{name}: {versions} on {about['python']}, {about['engine']}")
    return lines


def thread_lines(threads: dict[str, Any]) -> list[str]:
    """Return the lines for several threads."""
    lines: list[str] = []
    for name, counts in threads.items():
        for count, cell in sorted(counts.items(), key=lambda item: int(item[0])):
            rates = {implementation: median(values) / 1000 for implementation, values in pool(cell).items()}
            if not rates:
                continue
            if not lines:
                lines.append(line("thousand calls/s in N threads", THREAD_COLUMNS))
            lines.append(line(f"{name} x{count}", [*cells(rates), ""]))
    return lines


def pool(cell: dict[str, list[list[float]]]) -> Times:
    """Return the values of all rounds together."""
    return {name: list(itertools.chain.from_iterable(rounds)) for name, rounds in cell.items() if rounds}


def cells(values: dict[str, float]) -> list[str]:
    """Return the columns for one figure of each implementation."""
    return [
        number(values.get("c")),
        number(values.get("ours")),
        ratio(values, "c"),
        number(values.get("peer")),
        ratio(values, "peer"),
        number(values.get("pypy")),
    ]


def number(value: float | None) -> str:
    """Return a figure with as many digits as mean something."""
    if value is None:
        return MISSING
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def ratio(values: dict[str, float], other: str) -> str:
    """Return ours over another."""
    if "ours" not in values or other not in values:
        return MISSING
    return f"{values['ours'] / values[other]:.2f}"


def line(name: str, columns: Any) -> str:
    """Return one line."""
    return (name.ljust(NAME_WIDTH) + "".join(column.rjust(CELL_WIDTH) for column in columns)).rstrip()
