# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How a row is measured: pyperf where it is installed, else the same procedure in a few lines."""

from __future__ import annotations

import contextlib
import functools
import io
import platform
import statistics
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.rows import BACK_TO_BACK
from benchmarks.workbench import TimeFunction

try:
    import pyperf
except ImportError:
    pyperf = None


class Profile(NamedTuple):
    """How long to measure.

    Attributes
    ----------
    rounds : int
        How many processes each implementation gets, in turn with the others.
    values : int
        Values that a process takes of each row.
    warmups : int
        Values thrown away before that, besides those that find the number of loops.
    seconds : float
        The least time for one value.
    warm_seconds : float
        The time for which the first row of a process runs before that, and where a JIT compiler is at work every row.
    growth_rounds : int
        As `rounds`, for growth, imports and sizes.
    thread_seconds : float
        The time for one number of threads.
    limit : float or None
        Seconds after which nobody has a turn of another round.
    """

    rounds: int
    values: int
    warmups: int
    seconds: float
    warm_seconds: float
    growth_rounds: int
    thread_seconds: float
    limit: float | None = None


PROFILES = {
    "quick": Profile(
        rounds=2, values=3, warmups=1, seconds=0.01, warm_seconds=0.2, growth_rounds=1, thread_seconds=0.1, limit=240
    ),
    "full": Profile(rounds=5, values=5, warmups=3, seconds=0.05, warm_seconds=0.5, growth_rounds=3, thread_seconds=0.5),
}

NANOSECONDS = 1e9
REPEATS = 7
"""Of the second form of a row: the best counts."""

LONG = 0.1
"""Seconds above which a tenth of the calls will do."""

HAS_JIT = platform.python_implementation() == "PyPy"


def engine() -> str:
    """Return what measures in this process."""
    return f"pyperf {pyperf.__version__}" if pyperf else "built-in timer"


def measure(name: str, function: TimeFunction, profile: Profile, first: bool = False) -> list[float]:
    """Return the nanoseconds that one call of a row takes, once for each value.

    The `first` row of a process finds a GPU whose clocks are low, and a driver that has not done much.
    """
    if HAS_JIT or first:
        calibrate(function, profile.warm_seconds)
    loops = calibrate(function, profile.seconds)
    if pyperf:
        runner = pyperf_runner(profile)
        runner.args.loops = loops
        with contextlib.redirect_stdout(io.StringIO()):  # pyperf prints a line whatever --quiet says
            values = runner.bench_time_func(name, function).get_values()
    else:
        for _ in range(profile.warmups):
            function(loops)
        values = [function(loops) / loops for _ in range(profile.values)]
    return [round(value * NANOSECONDS, 2) for value in values]


def measure_back_to_back(loop: TimeFunction, drain: Callable[[], None], launches: int = 1) -> list[float]:
    """Return the nanoseconds of a call, the best of several times that many calls and one synchronisation took."""
    run = back_to_back_run(loop, drain, launches)
    return [round(min(run() for _ in range(REPEATS)), 2)]


def back_to_back_run(loop: TimeFunction, drain: Callable[[], None], launches: int = 1) -> Callable[[], float]:
    """Return what makes many calls and one synchronisation, and tells the nanoseconds of a call.

    Where a call launches several kernels, fewer calls launch as many.
    """

    def run(calls: int) -> float:
        drain()
        seconds = loop(calls)
        start = perf_counter()
        drain()
        return seconds + perf_counter() - start

    calls = max(BACK_TO_BACK // launches, 1)
    tenth = max(calls // 10, 1)
    if 10 * run(tenth) > LONG:
        calls = tenth
    return lambda: run(calls) / calls * NANOSECONDS


def calibrate(function: TimeFunction, seconds: float) -> int:
    """Return a number of loops, a power of two, that takes at least so many seconds."""
    loops = 1
    while function(loops) < seconds:
        loops *= 2
    return loops


@functools.cache
def pyperf_runner(profile: Profile) -> Any:
    """Return the runner of this process. It measures in this very process, which has the CUDA context."""
    runner = pyperf.Runner()
    runner.parse_args(
        ["--worker", "--quiet", "--loops=1", f"--values={profile.values}", f"--warmups={profile.warmups}"]
    )
    return runner


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def spread(values: Sequence[float]) -> float:
    """Return the median absolute deviation, as a share of the median."""
    middle = median(values)
    return median([abs(value - middle) for value in values]) / middle if middle else 0.0
