# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The chart: each call's time as a multiple of the C loop's, and the growth with threads, as one SVG.

It has no background, and its colours stand out from white and from the dark grey of a dark page alike.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks.rows import ROWS, THREADS
from benchmarks.table import heading, is_counted, medians, sections

INK = "#787d86"
"""Of text and lines."""

COLOURS = {
    "ours": "#c8641e",
    "peer": "#3b82c4",
    "pypy": "#2e9a5b",
    "threaded": "#d0527f",
    "cupy": "#a86fd0",
    "torch": "#b7791f",
    "pynvml": "#5f7f8f",
    "c": INK,
}
NAMES = {
    "ours": "cuda-core-cffi, CPython",
    "peer": "cuda-core",
    "pypy": "cuda-core-cffi, PyPy",
    "threaded": "cuda-core-cffi, free-threaded CPython",
    "cupy": "CuPy",
    "torch": "PyTorch",
    "pynvml": "nvidia-ml-py",
    "c": "C loop",
}
MARKERS = {"ours": "o", "peer": "D", "pypy": "s", "threaded": "P", "cupy": "^", "torch": "v", "pynvml": "x", "c": "|"}
WIDTH = 9.0
LINE_HEIGHT = 0.19
CURVES_HEIGHT = 2.6
SEED = "cuda-core-cffi"


def bars(data: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Return the rows of one call, and the median of each implementation: nanoseconds, or instructions."""
    found = [section for section in sections(data) if section.unit.endswith("per call, median")]
    return [(name, medians(values)) for section in found for name, values in section.lines]


def curves(data: dict[str, Any]) -> list[tuple[str, dict[str, list[tuple[int, float]]]]]:
    """Return the rows of several threads, and of each implementation the threads and thousands of calls per second."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for series in THREADS:
        for size in sorted(map(int, data["growth"].get(series.name, {}))):
            cell = data["growth"][series.name][str(size)]
            for name, rounds in cell.items():
                middle = medians({name: [value for values in rounds for value in values]})[name]
                found.setdefault(series.row, {}).setdefault(name, []).append((size, middle / 1000))
    return list(found.items())


def draw(data: dict[str, Any], path: pathlib.Path) -> None:
    """Write the chart of a results file.

    Raises
    ------
    ValueError
        If there is nothing to draw, or no matplotlib.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("the chart needs matplotlib: pip install matplotlib") from None
    rows, threads = bars(data), curves(data)
    if not rows:
        raise ValueError("the results have no row to draw")
    style = {
        "svg.fonttype": "none",  # text stays text: smaller, and in the font of the page
        "svg.hashsalt": SEED,
        "font.size": 8,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
        "grid.color": INK,
        "grid.alpha": 0.35,
        "grid.linewidth": 0.5,
    }
    with matplotlib.rc_context(style):
        tall = LINE_HEIGHT * len(rows) + 1.0
        figure = Figure(figsize=(WIDTH, tall + CURVES_HEIGHT * bool(threads)), layout="constrained")
        heights = [tall, CURVES_HEIGHT] if threads else [tall]
        parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        draw_calls(parts[0], rows, is_counted(data))
        if threads:
            draw_threads(parts[1], threads)
        figure.suptitle("\n".join(heading(data)[:2]), fontsize=7)
        figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})


def draw_calls(part: Any, rows: list[tuple[str, dict[str, float]]], counted: bool) -> None:
    """Draw a point for each implementation in each row."""
    axes = part.subplots()
    order = [row.name for row in ROWS]
    rows = sorted(rows, key=lambda row: order.index(row[0]))
    for name, colour in COLOURS.items():
        points = [(values[name], line) for line, (_, values) in enumerate(rows) if name in values]
        if points:
            across, down = zip(*points)
            axes.plot(across, down, MARKERS[name], color=colour, markersize=4.5, label=NAMES[name], linestyle="none")
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("instructions per call" if counted else "nanoseconds of the host per call: less is better")
    axes.grid(axis="both")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    part.legend(loc="outside upper center", ncols=len(COLOURS), frameon=False, handletextpad=0.1, columnspacing=1.2)


def draw_threads(part: Any, threads: list[tuple[str, dict[str, list[tuple[int, float]]]]]) -> None:
    """Draw a curve for each implementation in each row."""
    for axes, (row, lines) in zip(part.subplots(1, len(threads), squeeze=False)[0], threads):
        for name, points in lines.items():
            sizes, rates = zip(*points)
            axes.plot(sizes, rates, MARKERS[name] + "-", color=COLOURS[name], markersize=3.5, linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_ylim(bottom=0)
        axes.set_title(row, fontsize=8)
        axes.set_xlabel("threads")
        axes.grid(axis="y")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    part.supylabel("thousand calls per second: more is better", fontsize=8)
