# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The table: a line for each row with its ratios and its spread, and the geometric mean."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from benchmarks.results import pool
from benchmarks.rows import FRESH, GRAPHS, LIVE, PACKED, ROWS, THREADS, back_to_back
from benchmarks.timing import median, spread

NAME_WIDTH = 41
LINE_WIDTH = 120
MISSING = "-"
CELLS = (
    ("c", None, 9),
    ("ours", None, 9),
    ("ours", "c", 8),
    ("peer", None, 9),
    ("ours", "peer", 10),
    ("pypy", None, 9),
    ("pypy", "c", 8),
    ("threaded", None, 10),
    ("threaded", "c", 12),
    ("cupy", None, 9),
    ("ours", "cupy", 10),
    ("torch", None, 9),
    ("ours", "torch", 11),
    ("pynvml", None, 9),
    ("ours", "pynvml", 12),
)
"""The columns: one implementation, or one over another, and how wide. What nobody has measured gets none."""

SPREAD_WIDTH = 9
SECOND_FORM = "nanoseconds per call, back to back"


class Section(NamedTuple):
    """Lines of one unit.

    Attributes
    ----------
    unit : str
        What the figures are, and above the lines.
    scale : float
        What the values in the file are divided by.
    lines : list of tuple of str, dict
        A name, and the values of all rounds together by implementation.
    """

    unit: str
    scale: float
    lines: list[tuple[str, dict[str, list[float]]]]


def render(data: dict[str, Any]) -> str:
    """Return the table for the content of a results file."""
    found = sections(data)
    names = {name for section in found for _, values in section.lines for name in values}
    columns = [cell for cell in CELLS if {cell[0], cell[1] or cell[0]} <= names]
    lines = heading(data)
    for section in found:
        lines.append(head(section.unit, columns))
        lines += [line(name, values, section.scale, columns) for name, values in section.lines]
    lines += remarks(data)
    for section in found:
        ratios = [
            middle["ours"] / middle["peer"]
            for middle in (medians(values) for _, values in section.lines)
            if section.unit in (call_unit(data), SECOND_FORM) and "ours" in middle and "peer" in middle
        ]
        if ratios:
            mean, form = geometric_mean(ratios), ", back to back" * (section.unit == SECOND_FORM)
            lines.append(
                f"geometric mean of ours/peer over {len(ratios)} rows{form}: {mean:.3f} (below 1: ours is better)"
            )
    return "\n".join(lines)


def sections(data: dict[str, Any]) -> list[Section]:
    """Return what was measured, unit by unit."""
    imports, resident = FRESH.parts[:-1], FRESH.parts[-1]
    million = "million instructions" if is_counted(data) else "milliseconds"
    rows, growth = data["rows"], data["growth"]
    found = [
        Section(call_unit(data), 1, pick(rows, [row.name for row in ROWS])),
        Section(SECOND_FORM, 1, second_form(rows)),
        Section(million, 1e6, pick(rows, imports)),
        Section("megabytes", 1e6, pick(rows, (resident, *PACKED.parts))),
        Section("thousand calls/s, more is better", 1e3, grown(growth, [item.name for item in THREADS])),
        Section("nanoseconds per buffer", 1, grown(growth, LIVE.parts[:-1])),
        Section("bytes of host memory per buffer", 1, grown(growth, LIVE.parts[-1:])),
        Section("nanoseconds per node", 1, grown(growth, GRAPHS.parts)),
    ]
    return [section for section in found if section.lines]


def second_form(rows: dict[str, Any]) -> list[tuple[str, dict[str, list[float]]]]:
    """Return the lines of the second form of rows, by the names of the rows."""
    names = {back_to_back(row.name): row.name for row in ROWS}
    return [(names[name], values) for name, values in pick(rows, names)]


def call_unit(data: dict[str, Any]) -> str:
    """Return the unit of the rows of one call."""
    return f"{'instructions' if is_counted(data) else 'nanoseconds'} per call, median"


def is_counted(data: dict[str, Any]) -> bool:
    """Tell whether the figures are instructions."""
    return str(data["profile"]).endswith("instructions")


def pick(rows: dict[str, Any], names: Any) -> list[tuple[str, dict[str, list[float]]]]:
    """Return the lines of those rows that were measured."""
    found = ((name, pool(rows.get(name, {}))) for name in names)
    return [(name, values) for name, values in found if values]


def grown(growth: dict[str, Any], names: Any) -> list[tuple[str, dict[str, list[float]]]]:
    """Return the lines of those rows that were measured, a line for each size."""
    return [
        (f"{name} x{int(size):,}", values)
        for name in names
        for size, values in pick(growth.get(name, {}), sorted(growth.get(name, {}), key=int))
    ]


def medians(values: dict[str, list[float]]) -> dict[str, float]:
    """Return the median of each implementation."""
    return {name: median(found) for name, found in values.items()}


def geometric_mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def heading(data: dict[str, Any]) -> list[str]:
    """Return what was measured, where and when."""
    machine = data["machine"]
    lines = [
        f"{str(data.get('date'))[:10]}, profile {data['profile']}, {machine.get('system')}",
        f"{machine.get('cpu')}, {machine.get('cores')} cores; GPU {machine.get('gpu')}, driver {machine.get('driver')}",
    ]
    if machine.get("gpu") == "simulated":
        lines.append("SIMULATED driver: its own work is in every figure, and is not that of a GPU's")
    for name, about in data["implementations"].items():
        versions = " ".join(f"{key} {value}" for key, value in about["versions"].items())
        if versions:
            lines.append(f"{name}: {versions} on {about['python']}, {about['engine']}")
    return lines


def remarks(data: dict[str, Any]) -> list[str]:
    """Return what failed, and what was not there."""
    found = []
    for kind, word in (("errors", "failed"), ("absent", "left out")):
        for implementation, tasks in data[kind].items():
            reasons = dict.fromkeys(f"{name} ({reason.partition(chr(10))[0]})" for name, reason in tasks.items())
            found.append(f"{word} in {implementation}: {'; '.join(reasons)}")
    return [text if len(text) <= LINE_WIDTH else text[: LINE_WIDTH - 3] + "..." for text in found]


def head(unit: str, columns: list[Any]) -> str:
    """Return the line above a section."""
    names = (f"{name}/{other}" if other else name for name, other, _ in columns)
    cells = "".join(name.rjust(width) for name, (_, _, width) in zip(names, columns))
    return f"{unit.ljust(NAME_WIDTH)}{cells}{'spread'.rjust(SPREAD_WIDTH)}"


def line(name: str, values: dict[str, list[float]], scale: float, columns: list[Any]) -> str:
    """Return one line. The spread is that of the implementation where it is largest."""
    middles = {key: value / scale for key, value in medians(values).items()}
    cells = "".join(cell(middles, one, other).rjust(width) for one, other, width in columns)
    several = [spread(found) for found in values.values() if len(found) > 1]
    widest = f"{max(several):.1%}" if several else MISSING
    return f"{name.ljust(NAME_WIDTH)}{cells}{widest.rjust(SPREAD_WIDTH)}"


def cell(values: dict[str, float], one: str, other: str | None) -> str:
    """Return a figure, or a ratio."""
    if one not in values or (other is not None and not values.get(other)):
        return MISSING
    return number(values[one]) if other is None else f"{values[one] / values[other]:.2f}"


def number(value: float) -> str:
    """Return a figure with as many digits as mean something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
