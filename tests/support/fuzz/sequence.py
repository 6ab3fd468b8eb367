# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Sequences: lines of Python, and who runs them.

A sequence is a list of steps. The steps of a round run at the same time, one thread after the other's pace; a round
begins when all threads have finished the one before. Thread 0 is the main thread. A line assigns to one variable, or is
a statement; a step whose variables do not exist is left out, so that any part of a sequence can be run.

In a file a step is ``ROUND.THREAD| LINE``; other lines are comments.
"""

from __future__ import annotations

import re
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

STEP = re.compile(r"(\d+)\.(\d+)\| (.*)")
VARIABLE = re.compile(r"\bv\d+(?:_\d+)?\b")
ASSIGNMENT = re.compile(r"(v\d+(?:_\d+)?) = (.*)")
CONTAINERS = (tuple, list, set, frozenset, dict)
MOST_ITEMS = 500  # of a container that is kept
FOREIGN = ("ndarray", "memoryview", "PyCapsule", "Given")


class Step(NamedTuple):
    """One line of a sequence."""

    round: int
    thread: int
    line: str

    def __str__(self) -> str:
        return f"{self.round}.{self.thread}| {self.line}"


def load(text: str) -> list[Step]:
    """Return the steps in the text of a file."""
    found = (STEP.fullmatch(line) for line in text.splitlines())
    return [Step(int(match[1]), int(match[2]), match[3]) for match in found if match]


def save(path: Path, steps: Iterable[Step], comment: str) -> None:
    """Write a file that `load` reads."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    path.write_text("\n".join([*lines, *map(str, steps)]) + "\n")


def as_code(steps: list[Step]) -> str:
    """Return a sequence as Python code to read and to copy."""
    threads = len({step.thread for step in steps})
    if threads == 1:
        return "\n".join(step.line for step in steps)
    parts = []
    for number in sorted({step.round for step in steps}):
        for thread in sorted({step.thread for step in steps if step.round == number}):
            alone = {step.thread for step in steps if step.round == number} == {0}
            if not alone:
                parts.append(f"# at the same time, thread {thread}:")
            parts += [
                ("" if alone else "    ") + step.line for step in steps if (step.round, step.thread) == (number, thread)
            ]
    return "\n".join(parts)


class Space:
    """The variables of a sequence.

    Parameters
    ----------
    names : dict of str to object
        What every line can name.
    is_kept : callable
        Tells whether the class of a result is worth a variable; numbers and strings are not.

    Attributes
    ----------
    has_blank : bool
        Whether there was an object that was never initialised.
    """

    def __init__(self, names: dict[str, Any], is_kept: Callable[[type], bool]) -> None:
        self.names = dict(names)
        self._is_kept = is_kept
        self.has_blank = False

    def has(self, line: str) -> bool:
        """Tell whether the variables that a line uses exist."""
        match = ASSIGNMENT.fullmatch(line)
        return all(name in self.names for name in VARIABLE.findall(match[2] if match else line))

    def run(self, line: str) -> BaseException | None:
        """Run a line and return what it raised."""
        self.has_blank = self.has_blank or "blank(" in line
        match = ASSIGNMENT.fullmatch(line)
        try:
            if match is None:
                exec(compile(line, line, "exec"), self.names)
            else:
                value = eval(compile(match[2], line, "eval"), self.names)
                if self.keeps(value):
                    self.names[match[1]] = value
                del value
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # whose locals would keep what the line made
            return error
        return None

    def keeps(self, value: Any) -> bool:
        """Tell whether a result is kept in its variable."""
        kind = type(value)
        if kind in CONTAINERS or (isinstance(value, tuple) and len(value) and not self._is_kept(kind)):
            try:
                return 0 < len(value) <= MOST_ITEMS and any(self._is_kept(type(item)) for item in value)
            except RuntimeError:  # changed by another thread
                return False
        return self._is_kept(kind)

    def clear(self) -> None:
        """Drop every variable."""
        for name in [name for name in self.names if VARIABLE.fullmatch(name)]:
            del self.names[name]


def run_rounds(rounds: Iterable[dict[int, Callable[[], None]]], limit: float) -> None:
    """Run rounds one after another; each names what its threads do.

    Threads other than 0 are started when they are first needed and stay, since a context is current in a thread.
    """
    workers: dict[int, Worker] = {}
    try:
        for work in rounds:
            busy = [thread for thread in work if thread]
            for thread in busy:
                workers.setdefault(thread, Worker())
            gate = threading.Barrier(len(work), timeout=limit)
            for thread in busy:
                workers[thread].begin(lambda todo=work[thread], gate=gate: (gate.wait(), todo()))
            if 0 in work:
                gate.wait()
                work[0]()
            for thread in busy:
                workers[thread].wait(limit)
            work.clear()
    finally:
        for worker in workers.values():
            worker.end()


class Worker:
    """A thread that does one thing at a time."""

    def __init__(self) -> None:
        self._todo: Callable[[], object] | None = None
        self._wanted, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            if self._todo is None:
                return
            try:
                self._todo()
            finally:
                self._todo = None
                self._done.release()

    def begin(self, todo: Callable[[], object]) -> None:
        self._todo = todo
        self._wanted.release()

    def wait(self, limit: float) -> None:
        if not self._done.acquire(timeout=limit):
            raise TimeoutError("a thread did not finish its round")

    def end(self) -> None:
        self._todo = None
        self._wanted.release()
        self._thread.join()
