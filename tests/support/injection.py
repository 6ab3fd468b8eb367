# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions at every line of the package: the program of test_injection.py.

    python tests/support/injection.py POINTS [OPERATION...]

Each operation of signal_storm.py runs once for each line of the package that it runs, and an exception is raised before
that line. POINTS limits the number of lines for each operation; 0 stands for all of them. The program prints each line
at which a driver object was lost, and fails if an operation does not work afterwards.
"""

from __future__ import annotations

import pathlib
import random
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from signal_storm import OPERATIONS, World, lost_since

import cuda_core_cffi
from cuda_core_cffi import live_objects

PACKAGE = str(pathlib.Path(cuda_core_cffi.__file__).parent)
Operation = Callable[[World], object]


class Injected(BaseException):
    """The exception that is raised at a line."""


class Lines:
    """Count the lines of the package that run, and raise an exception before one of them.

    Parameters
    ----------
    point : int
        The line, counted from 1; 0: none.
    """

    def __init__(self, point: int) -> None:
        self.count, self.point, self.place = 0, point, ""

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Trace the functions of the package."""
        return self.line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def line(self, frame: FrameType, event: str, argument: object) -> Any:
        """Count a line, and raise the exception before the chosen one."""
        if event == "line":
            self.count += 1
            if self.count == self.point:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise Injected
        return self.line

    def run(self, work: Operation, world: World) -> None:
        """Run an operation once."""
        sys.settrace(self.trace)
        try:
            work(world)
        except Injected:
            pass
        finally:
            sys.settrace(None)


def raise_at_lines(work: Operation, world: World, limit: int) -> Iterator[str]:
    """Run an operation with an exception at each line, and give each line."""
    counted = Lines(0)
    counted.run(work, world)
    points = list(range(1, counted.count + 1))
    if limit:
        points = random.Random(1).sample(points, min(limit, len(points)))
    for point in points:
        lines = Lines(point)
        lines.run(work, world)
        yield lines.place


def settle(work: Operation, world: World, before: dict[str, int]) -> dict[str, int]:
    """Let the operation work, and return what is left of what is unneeded."""
    for _ in range(3):
        work(world)
    world.stream.sync()
    return lost_since(before)


def ignore(raised: Any) -> None:
    """Let an injected exception in a finalizer be lost, and nothing else."""
    if raised.exc_type is not Injected:
        sys.__unraisablehook__(raised)


def main(limit: str, *names: str) -> None:
    """Inject exceptions into operations, and print what was lost."""
    sys.unraisablehook = ignore
    world = World()
    for name in names or OPERATIONS:
        work, count = OPERATIONS[name], 0
        settle(work, world, live_objects())
        before = live_objects()
        for place in raise_at_lines(work, world, int(limit)):
            count += 1
            if live_objects() != before and (more := settle(work, world, before)):
                print(name, place, "lost", more, flush=True)
                before = live_objects()
        print(name, count, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
