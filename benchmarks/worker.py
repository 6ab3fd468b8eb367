# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The process that measures one implementation: reads a job from standard input, writes a line for each result.

Both are JSON. A line has one of the keys ``about`` (what is measured here), ``started`` (a task), and ``values``,
``absent`` or ``error`` (of the ``task`` beside it). Everything else that is printed in this process goes to standard
error.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import json
import os
import pathlib
import platform
import sys
from typing import Any, NamedTuple

# The package under test is found as the interpreter finds it, not in the source tree that this file lies in.
if not sys.flags.safe_path:
    del sys.path[0]  # the folder of this file
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks.clib import CLimits
from benchmarks.fresh import count_import, measure_import
from benchmarks.growth import measure_growth
from benchmarks.instructions import Counter, count_command
from benchmarks.libraries import CuPyBench, PynvmlBench, TorchBench
from benchmarks.rows import FRESH, PACKED, back_to_back, find_growth, find_row
from benchmarks.size import measure_size
from benchmarks.timing import Profile, engine, measure, measure_back_to_back
from benchmarks.workbench import Absent, Workbench, in_stretches

del sys.path[0]


class Subject(NamedTuple):
    """What an implementation is: its module, the distributions that its version is of, and its bench."""

    module: str | None
    distributions: tuple[str, ...]
    bench: Any


SUBJECTS = {
    "c": Subject(None, (), CLimits),
    "ours": Subject("cuda_core_cffi", ("cuda-core-cffi",), Workbench),
    "pypy": Subject("cuda_core_cffi", ("cuda-core-cffi",), Workbench),
    "threaded": Subject("cuda_core_cffi", ("cuda-core-cffi",), Workbench),
    "peer": Subject("cuda.core", ("cuda-core", "cuda-bindings"), Workbench),
    "cupy": Subject("cupy", ("cupy-cuda13x", "cupy-cuda12x", "cupy"), CuPyBench),
    "torch": Subject("torch", ("torch",), TorchBench),
    "pynvml": Subject("pynvml", ("nvidia-ml-py",), PynvmlBench),
}


class Session:
    """One implementation in this process.

    Parameters
    ----------
    job : dict
        What :func:`benchmarks.process.run_worker` sends.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self._name = job["implementation"]
        self._code = pathlib.Path(job["code"])
        self._profile = Profile(*job["profile"])
        self._cold = True
        self._subject = SUBJECTS[self._name]
        self._api = importlib.import_module(self._subject.module) if self._subject.module else None
        self._bench = (
            CLimits(self._code, driver_library()) if self._api is None else self._subject.bench(self._api, self._code)
        )
        for name in job["wanted"]:
            self._bench.find(name)
        self._counter = Counter(self._code, job["marks"]) if job["marks"] else None

    def perform(self, task: dict[str, Any]) -> dict[str, list[float]]:
        """Return the values of a task, by row: nanoseconds, bytes, instructions or calls per second."""
        name, size = task["row"], task["size"]
        if size is not None:
            return measure_growth(self._bench, find_growth(name), size, self._profile.thread_seconds)
        if name == PACKED.name:
            return self._sizes()
        if name == FRESH.name:
            found = measure_import(self._name, self._profile.values, self._code, driver_library())
            if self._counter:
                memory = FRESH.parts[-1]
                counts = count_import(self._name, lambda command: count_command(command, self._code))
                return {**counts, memory: found[memory]}
            return found
        row = find_row(name)
        loop = self._bench.loop(row)
        if self._counter:
            return {name: self._counter.count(loop, self._bench.drain, row.launches)}
        first, self._cold = self._cold, False
        return {
            name: measure(name, in_stretches(loop, self._bench.drain, row.launches), self._profile, first),
            back_to_back(name): measure_back_to_back(loop, self._bench.drain, row.launches),
        }

    def about(self) -> dict[str, Any]:
        """Return what is measured in this process, and on which driver."""
        version = ctypes.c_int(0)
        ctypes.CDLL(driver_library()).cuDriverGetVersion(ctypes.byref(version))
        interpreter = f"{platform.python_implementation()} {python_version()}"
        return {
            "python": interpreter if self._api else None,
            "versions": self._versions(),
            "file": getattr(self._api, "__file__", None),
            "engine": "callgrind" if self._counter else engine(),
            "cuda": version.value,
            "device": self._api.Device().name if hasattr(self._api, "Device") else None,
        }

    def _versions(self) -> dict[str, str]:
        """Return the versions of installed distributions; a source tree has none, but its module knows."""
        found = {}
        for name in self._subject.distributions:
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        if self._subject.distributions and not found:
            found[self._subject.distributions[-1]] = str(getattr(self._api, "__version__", "unknown"))
        return found

    def _sizes(self) -> dict[str, list[float]]:
        if self._api is None:
            raise Absent("the C loop is no package")
        return measure_size(next(iter(self._versions())), self._api.__file__)


def main() -> int:
    """Do one job."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    job = json.load(sys.stdin)

    def send(**message: Any) -> None:
        channel.write(json.dumps(message) + "\n")

    session = Session(job)
    send(about=session.about())
    for task in job["tasks"]:
        send(started=task)
        try:
            send(task=task, values=session.perform(task))
        except Absent as reason:
            send(task=task, absent=str(reason))
        except Exception as error:
            send(task=task, error=f"{type(error).__name__}: {error}")
    return 0


def driver_library() -> str:
    """Return the driver that is measured on."""
    name = os.environ["CUDA_CORE_CFFI_DRIVER"]
    return "libcuda.so.1" if name == "system" else name


def python_version() -> str:
    """Return the interpreter's own version: PyPy's is not that of the language. A `t` tells that there is no GIL."""
    if platform.python_implementation() == "PyPy":
        return ".".join(map(str, sys.pypy_version_info[:3]))  # type: ignore[attr-defined]
    return platform.python_version() + "t" * (not getattr(sys, "_is_gil_enabled", lambda: True)())


if __name__ == "__main__":
    sys.exit(main())
