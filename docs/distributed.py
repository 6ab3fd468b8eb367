# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Measures all-reduces, and the loop of examples/data_parallel.py, with one rank and with two, and draws the figures.

torchrun --nproc-per-node=2 docs/distributed.py --measure figures.json nccl nccl4py torch    add figures to a file
python docs/distributed.py --table figures.json                                              print them as tables
python docs/distributed.py --draw figures.json                                               draw docs/distributed.svg

Rank 0 writes the file, a line for each library. The picture needs matplotlib.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))

import data_parallel
from ranks import Ranks

from cuda_core_cffi import Device, Stream

SIZES = [1 << power for power in range(3, 30, 3)]  # bytes, of an all-reduce: 8 bytes to 128 MiB
COUNTS = {1 << 18: 500, 1 << 21: 50, 1 << 27: 10}  # calls that are timed, up to these sizes
SAMPLES, FEATURES, STEPS = 1 << 25, 16, 100
REPEATS = 5

PICTURE = pathlib.Path(__file__).with_suffix(".svg")
INK = "#787d86"  # text and lines that show on white and on dark pages
KINDS = {  # the library in the file, and its name, colour and marker in the picture
    "nccl": ("NCCL, by CFFI", "#c8641e", "o"),
    "nccl4py": ("nccl4py", "#3b82c4", "D"),
    "torch": ("torch.distributed", "#b7791f", "v"),
    "mpi": ("MPI, on the host", "#2e9a5b", "s"),
    "nccl, sockets": ("NCCL over sockets", "#a86fd0", "^"),
}
Figures = dict[str, dict[int, dict[str, Any]]]


def best(work: Callable[[], object], stream: Stream, count: int) -> float:
    """Return the shortest of several times of ``count`` calls, as the time of one call in microseconds."""
    times = []
    for _ in range(REPEATS):
        work()
        stream.sync()
        start = time.perf_counter()
        for _ in range(count):
            work()
        stream.sync()
        times.append((time.perf_counter() - start) / count * 1e6)
    return min(times)


def measure(library: str, ranks: Ranks, device: Device, stream: Stream) -> dict[str, Any]:
    """Return the figures of a library: microseconds for an all-reduce of each size, and for a step of the loop."""
    reducing = data_parallel.REDUCTIONS[library](ranks, stream)
    reduces = {}
    for size in SIZES if ranks.size > 1 else ():
        with device.allocate(size, stream=stream) as memory:
            memory.fill(0, stream=stream)
            reduce = reducing.of(memory)
            count = next(count for largest, count in COUNTS.items() if size <= largest)
            reduces[size] = best(lambda reduce=reduce: reduce(stream), stream, count)
    fit = data_parallel.Fit(device, stream, ranks, reducing, SAMPLES, FEATURES)
    step = best(lambda: fit.step.launch(stream), stream, STEPS)
    fit.close()
    reducing.close()
    is_network = os.environ.get("NCCL_P2P_DISABLE") == os.environ.get("NCCL_SHM_DISABLE") == "1"
    return {
        "library": f"{library}, sockets" if is_network else library,
        "ranks": ranks.size,
        "device": device.name,
        "all-reduce": reduces,
        "step": step,
    }


def read(path: str) -> Figures:
    """Return the figures of a file, by library and number of ranks: of several alike the last."""
    found: Figures = {}
    for line in pathlib.Path(path).read_text().splitlines():
        figures = json.loads(line)
        found.setdefault(figures["library"], {})[figures["ranks"]] = figures
    return {kind: found[kind] for kind in KINDS if kind in found}


def shown(size: int) -> str:
    """Return a number of bytes as people write it."""
    power = min((size.bit_length() - 1) // 10, 2)
    return f"{size >> 10 * power} {('B', 'KiB', 'MiB')[power]}"


def table(found: Figures) -> str:
    """Return the figures as two tables in Markdown."""
    kinds = {kind: ranks for kind, ranks in found.items() if 2 in ranks}
    sizes = sorted({int(size) for ranks in kinds.values() for size in ranks[2]["all-reduce"]})
    lines = ["| bytes | " + " | ".join(KINDS[kind][0] for kind in kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    for size in sizes:
        times = [f"{ranks[2]['all-reduce'][str(size)]:,.1f}" for ranks in kinds.values()]
        lines.append(f"| {shown(size)} | " + " | ".join(times) + " |")
    lines += ["", "| reduced by | 1 GPU | 2 GPUs | speed-up |", "|---|---|---|---|"]
    one = min((ranks[1]["step"] for ranks in found.values() if 1 in ranks), default=math.nan)
    for kind, ranks in kinds.items():
        alone = ranks[1]["step"] if 1 in ranks else one
        two = ranks[2]["step"]
        lines.append(f"| {KINDS[kind][0]} | {alone:,.0f} | {two:,.0f} | {alone / two:.2f} |")
    return "\n".join(lines)


def draw(found: Figures, path: pathlib.Path) -> None:
    """Write the picture: the time of an all-reduce by its size, and of a step by the number of GPUs."""
    import matplotlib
    from matplotlib.figure import Figure

    inked = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK)
    style = {"svg.fonttype": "none", "svg.hashsalt": "cuda-core-cffi", "font.size": 8, "grid.alpha": 0.35, **inked}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        for kind, ranks in found.items():
            name, colour, marker = KINDS[kind]
            look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1}
            if 2 in ranks:
                points = sorted((int(size), time) for size, time in ranks[2]["all-reduce"].items())
                left.plot(*zip(*points, strict=True), label=name, **look)
            steps = sorted((count, figures["step"]) for count, figures in ranks.items())
            right.plot(*zip(*steps, strict=True), **look)
        left.set_xscale("log", base=2)
        left.set_yscale("log")
        sizes = left.get_xlim()
        ticks = [size for size in SIZES if sizes[0] <= size <= sizes[1]]
        left.set_xticks(ticks, [shown(size) for size in ticks])
        left.set_title("an all-reduce over two GPUs, microseconds", fontsize=8)
        right.set_xticks([1, 2], ["1 GPU", "2 GPUs"])
        right.set_xlim(0.8, 2.2)
        right.set_ylim(bottom=0)
        right.set_title("a step of the loop, microseconds", fontsize=8)
        for axes in (left, right):
            axes.grid(color=INK, linewidth=0.5)
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
        figure.legend(loc="outside upper center", ncols=len(found), frameon=False)
        figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})


def main(arguments: list[str]) -> int:
    """Measure, print or draw, and return an exit status."""
    if arguments[:1] == ["--measure"]:
        _, path, *libraries = arguments
        ranks = Ranks.find()
        device = ranks.device()
        stream = device.create_stream()
        for library in libraries:
            found = measure(library, ranks, device, stream)
            if ranks.rank == 0:
                with open(path, "a") as file:
                    print(json.dumps(found), file=file)
        return 0
    if len(arguments) == 2 and arguments[0] in ("--table", "--draw"):
        found = read(arguments[1])
        if arguments[0] == "--draw":
            draw(found, PICTURE)
        else:
            print(table(found))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
