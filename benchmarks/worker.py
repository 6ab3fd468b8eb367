# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The process that measures one implementation: reads a job from standard input, writes a line for each result.

Both are JSON. A line has one of the keys ``about`` (what is measured here), ``started`` (a task), and ``values`` or
``error`` (of the ``task`` beside it). Everything else that is printed in this process goes to standard error.
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
from typing import Any

# The package under test is found as the interpreter finds it, not in the source tree that this file lies in.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from benchmarks.clib import CLimits  # noqa: E402  (found through the line above)
from benchmarks.rows import find_row  # noqa: E402
from benchmarks.threads import measure_threads  # noqa: E402
from benchmarks.timing import Profile, engine, measure  # noqa: E402
from benchmarks.workbench import Workbench, in_stretches  # noqa: E402

del sys.path[0]

PACKAGES = {
    "c": (None, ()),
    "ours": ("cuda_core_cffi", ("cuda-core-cffi",)),
    "pypy": ("cuda_core_cffi", ("cuda-core-cffi",)),
    "peer": ("cuda.core", ("cuda-core", "cuda-bindings")),
}


def main() -> int:
    """Do one job."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    job = json.load(sys.stdin)
    module, distributions = PACKAGES[job["implementation"]]
    code = pathlib.Path(job["code"])
    profile = Profile(*job["profile"])
    api = importlib.import_module(module) if module else None
    bench: Any = CLimits(code, driver_library()) if api is None else Workbench(api, code)

    def send(**message: Any) -> None:
        channel.write(json.dumps(message) + "\n")

    send(about=about(api, distributions))
    for task in job["tasks"]:
        send(started=task)
        try:
            send(task=task, values=perform(bench, task, profile))
        except Exception as error:
            send(task=task, error=f"{type(error).__name__}: {error}")
    return 0


def perform(bench: Any, task: dict[str, Any], profile: Profile) -> list[float]:
    """Return the values of a task: nanoseconds per call of a row, or calls per second of a number of threads."""
    row = find_row(task["row"])
    count = task["threads"]
    if count is None:
        return measure(row.name, in_stretches(bench.loop(row), bench.drain, row.launches), profile)
    if isinstance(bench, CLimits):
        return [bench.threads(row, count, profile.thread_seconds)]
    return [measure_threads(bench, row, count, profile.thread_seconds)]


def about(api: Any, distributions: tuple[str, ...]) -> dict[str, Any]:
    """Return what is measured in this process, and on which driver."""
    version = ctypes.c_int(0)
    ctypes.CDLL(driver_library()).cuDriverGetVersion(ctypes.byref(version))
    return {
        "python": f"{platform.python_implementation()} {python_version()}" if api else None,
        "versions": {name: distribution_version(api, name) for name in distributions},
        "file": getattr(api, "__file__", None),
        "engine": engine(),
        "cuda": version.value,
        "device": api.Device().name if api else None,
    }


def driver_library() -> str:
    """Return the driver that is measured on."""
    name = os.environ["CUDA_CORE_CFFI_DRIVER"]
    return "libcuda.so.1" if name == "system" else name


def python_version() -> str:
    """Return the interpreter's own version: PyPy's is not that of the language."""
    if platform.python_implementation() == "PyPy":
        return ".".join(map(str, sys.pypy_version_info[:3]))  # type: ignore[attr-defined]
    return platform.python_version()


def distribution_version(api: Any, name: str) -> str:
    """Return the version of an installed distribution; a source tree has none, but its module knows."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(api, "__version__", "unknown"))


if __name__ == "__main__":
    sys.exit(main())
