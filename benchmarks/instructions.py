# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Instructions instead of times: what valgrind's callgrind counts, which is the same every time.

A row is run N times and 2 N times, and the difference divided by N: what is around the loop drops out. Only the thread
that makes the calls is counted. Two macros of callgrind's header, in a library that is compiled when the benchmarks run
(``marks.c``), set the count to zero and write it out.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Callable

from benchmarks.timing import HAS_JIT
from benchmarks.workbench import TimeFunction

SOURCE = pathlib.Path(__file__).with_name("marks.c")
CALLS = 100
"""Twice as many fit into a queue of the driver."""

MANY = 5_000_000
"""Where that many calls take more instructions than that, a tenth of them will do."""

COMPILED_AFTER = 40_000
"""Calls after which PyPy's JIT compiler is done with a loop: it begins at 1,039, and branches follow after 200 each."""

VALUES = 3
MAIN_THREAD = "-01"
SUMMARY = re.compile(r"^summary: (\d+)$", re.MULTILINE)


class Counter:
    """Count the instructions of calls, in a process that callgrind runs.

    Parameters
    ----------
    code : pathlib.Path
        The folder with the compiled marks.
    prefix : str
        What the names of callgrind's files begin with.
    """

    def __init__(self, code: pathlib.Path, prefix: str) -> None:
        self._marks = ctypes.CDLL(str(code / "marks.so"))
        self._prefix = prefix
        self._written = 0
        gc.disable()  # it would come now and then
        if not HAS_JIT:  # PyPy has no such thing
            gc.freeze()

    def count(self, loop: TimeFunction, drain: Callable[[], None], launches: int) -> list[float]:
        """Return the instructions that a call takes, a few times.

        Parameters
        ----------
        loop, drain : callable
            What makes so many calls, and what waits for the device.
        launches : int
            How many kernels a call launches.
        """
        calls = max(CALLS // launches, 1)
        self._run(loop, drain, calls)  # until the interpreter has specialised the code, and caches are filled
        if self._run(loop, drain, calls) > MANY:
            calls = max(calls // 10, 1)
        for _ in range(COMPILED_AFTER // CALLS if HAS_JIT else 0):
            self._run(loop, drain, calls)
        found = [(self._run(loop, drain, calls), self._run(loop, drain, 2 * calls)) for _ in range(VALUES)]
        return [(twice - once) / calls for once, twice in found]

    def _run(self, loop: TimeFunction, drain: Callable[[], None], calls: int) -> int:
        self._marks.benchmarks_begin()
        loop(calls)
        self._marks.benchmarks_end()
        drain()
        self._written += 1
        return read_count(pathlib.Path(f"{self._prefix}.{self._written}{MAIN_THREAD}"))


def counted(prefix: str) -> list[str]:
    """Return the command before a command whose instructions are counted, or marked."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise ValueError("--instructions needs valgrind, which is not on the path: install your system's package")
    return [valgrind, "--quiet", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={prefix}"]


def count_command(command: list[str], folder: pathlib.Path) -> int:
    """Return the instructions of a command, from its start to its end."""
    prefix = folder / "command"
    environment = dict(os.environ, PYTHONHASHSEED="0")
    subprocess.run([*counted(str(prefix)), *command], check=True, env=environment, stdout=subprocess.DEVNULL)
    return read_count(pathlib.Path(f"{prefix}{MAIN_THREAD}"))


def read_count(path: pathlib.Path) -> int:
    """Return the instructions that a file of callgrind is about, and remove it with those of the other threads."""
    found = SUMMARY.search(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise RuntimeError(f"callgrind wrote no summary to {path}")
    for other in path.parent.glob(f"{path.name.removesuffix(MAIN_THREAD)}-*"):
        other.unlink()
    return int(found.group(1))


def build_marks(compiler: str | None, folder: pathlib.Path) -> None:
    """Compile the marks into a folder."""
    if compiler is None:
        raise ValueError("--instructions needs a C compiler: none was found as CC, cc or gcc")
    command = [compiler, "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(folder / "marks.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(
            "--instructions needs valgrind/callgrind.h, of valgrind's package or its -devel package: "
            + done.stderr.partition("\n")[0]
        )
