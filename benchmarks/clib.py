# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The limit, in C: ``limits.c`` compiled and loaded, with the face of a workbench."""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

from benchmarks.rows import Row
from benchmarks.workbench import LIVE_SIZE, TimeFunction

SOURCE = pathlib.Path(__file__).with_name("limits.c")
WORK = ("allocate_own", "launch4", "prepared4", "batch")
"""What a thread can be told to do: the ``work_kind`` of ``limits.c``, by the function of the row."""

KERNELS = re.compile("launch", re.IGNORECASE)
GRAPH_STEPS = ("define", "capture", "instantiate", "launch")


class CLimits:
    """The loops in C.

    Parameters
    ----------
    code : pathlib.Path
        The folder with the compiled library, and with the kernels that a Python implementation compiled.
    driver : str
        The driver's library.
    """

    def __init__(self, code: pathlib.Path, driver: str) -> None:
        self._library = load_limits(code)
        problem = self._library.limits_open(driver.encode())
        if problem:
            raise RuntimeError(problem.decode())
        self._kernels_loaded = False
        self._code = code

    def drain(self) -> None:
        """Wait until the streams have nothing left to do."""
        self._library.limits_drain()
        status = self._library.limits_failed()
        if status:
            raise RuntimeError(f"a driver call failed with status {status}")

    def loop(self, row: Row) -> TimeFunction:
        """Return the loop for a row."""
        assert row.c is not None  # run.py asks for no other
        if KERNELS.search(row.statement):
            self._load_kernels()
        function: Any = getattr(self._library, row.c)
        function.argtypes = [ctypes.c_long]
        function.restype = ctypes.c_double
        return function  # type: ignore[no-any-return]

    def threads(self, row: Row, count: int, seconds: float) -> float:
        """Return the calls, or launches of a batch, per second that so many threads make together."""
        assert row.c is not None
        self._load_kernels()
        rate = float(self._library.limits_threads(WORK.index(row.c), count, seconds))
        self.drain()
        return rate

    def fill_live(self, live: list[Any]) -> float:
        """Allocate as many buffers as a list is long, and return the seconds."""
        return float(self._library.limits_fill(len(live), LIVE_SIZE))

    def empty_live(self, live: list[Any]) -> float:
        """Free them, and return the seconds."""
        return float(self._library.limits_empty())

    def graph_seconds(self, count: int, launches: int) -> dict[str, float]:
        """Return the seconds of making, and of so many launches of, a graph of so many kernels, by step."""
        self._load_kernels()
        seconds = (ctypes.c_double * len(GRAPH_STEPS))()
        self._library.limits_graph(count, launches, seconds)
        self.drain()
        return dict(zip(GRAPH_STEPS, seconds))

    def _load_kernels(self) -> None:
        if self._kernels_loaded:
            return
        found = sorted(self._code.glob("kernels.*"))
        if not found:
            raise RuntimeError("no Python implementation has compiled the kernels")
        problem = self._library.limits_load(found[0].read_bytes())
        if problem:
            raise RuntimeError(problem.decode())
        self._kernels_loaded = True


def load_limits(code: pathlib.Path) -> ctypes.CDLL:
    """Load the compiled loops."""
    library = ctypes.CDLL(str(code / "limits.so"))
    library.limits_open.restype = library.limits_load.restype = ctypes.c_char_p
    library.limits_threads.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_double]
    library.limits_fill.argtypes = [ctypes.c_long, ctypes.c_size_t]
    library.limits_graph.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.POINTER(ctypes.c_double)]
    for function in (library.limits_threads, library.limits_fill, library.limits_empty):
        function.restype = ctypes.c_double
    return library


def find_compiler() -> str | None:
    """Return a C compiler, if there is one."""
    return shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")


def find_header() -> pathlib.Path | None:
    """Return the folder of a ``cuda.h``: of the toolkit that the environment names, of a wheel, or of the system."""
    folders = [pathlib.Path(os.environ[name]) / "include" for name in ("CUDA_PATH", "CUDA_HOME") if name in os.environ]
    folders += [folder for entry in wheel_folders() for folder in sorted(entry.glob("*/include"), reverse=True)]
    folders += [pathlib.Path("/usr/local/cuda/include")]
    return next((folder for folder in folders if (folder / "cuda.h").exists()), None)


def wheel_folders() -> list[pathlib.Path]:
    """Return the folders that NVIDIA's wheels are installed in."""
    try:
        import nvidia  # a namespace without code, which any of the wheels makes
    except ImportError:
        return []
    return [pathlib.Path(entry) for entry in nvidia.__path__]


def build_limits(compiler: str, include: pathlib.Path, folder: pathlib.Path) -> None:
    """Compile the loops into ``folder``."""
    command = [compiler, "-std=gnu11", "-O2", "-shared", "-fPIC", "-pthread", f"-I{include}", str(SOURCE)]
    subprocess.run([*command, "-o", str(folder / "limits.so"), "-ldl"], check=True)
