# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What an import takes: time and memory, in a process of its own for each value."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

from benchmarks.rows import IMPORT_PARTS
from benchmarks.workbench import Absent

IMPORTS = {
    "ours": ("import cuda_core_cffi", "cuda_core_cffi.Device(0).set_current()"),
    "peer": ("import cuda.core", "cuda.core.Device(0).set_current()"),
    # both put off what they do on the runtime's first call: without the second statement there may be no context
    "cupy": ("import cupy", "cupy.cuda.Device(0).use(); cupy.cuda.Stream.null.synchronize()"),
    "torch": ("import torch", "torch.cuda.set_device(0); torch.cuda.current_stream().synchronize()"),
}
IMPORTS["pypy"] = IMPORTS["threaded"] = IMPORTS["ours"]

PROBE = """
import time
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
start = time.perf_counter_ns()
{module}
imported = time.perf_counter_ns()
memory = resident()
again = time.perf_counter_ns()
{first}
print(imported - start, imported - start + time.perf_counter_ns() - again, memory)
"""
C_PROBE = """
import sys
from ctypes import CDLL, c_double
library = CDLL(sys.argv[1])
library.limits_first.restype = c_double
seconds = library.limits_first(sys.argv[2].encode())
assert seconds > 0, "the driver cannot be used"
print(seconds * 1e9)
"""


def measure_import(implementation: str, values: int, code: pathlib.Path, driver: str) -> dict[str, list[float]]:
    """Return nanoseconds and bytes, by row. The C loop has nothing to import: what it has is the driver's own start."""
    if implementation == "c":
        command, names = ["-c", C_PROBE, str(code / "limits.so"), driver], IMPORT_PARTS[1:2]
    else:
        module, first = IMPORTS[implementation]
        command, names = ["-c", PROBE.format(module=module, first=first)], IMPORT_PARTS
    run([sys.executable, *command])  # compiles what is not compiled yet, and has the system read the files
    lines = [run([sys.executable, *command]).split() for _ in range(values)]
    return {name: [float(value) for value in column] for name, column in zip(names, zip(*lines))}


def count_import(implementation: str, count: Callable[[list[str]], float]) -> dict[str, list[float]]:
    """Return instructions of the import, given what counts those of a command; the interpreter's own are subtracted."""
    if implementation == "c":
        raise Absent("nothing to import")
    module, _ = IMPORTS[implementation]
    run([sys.executable, "-c", module])
    return {IMPORT_PARTS[0]: [count([sys.executable, "-c", module]) - count([sys.executable, "-c", "pass"])]}


def run(command: list[str]) -> str:
    """Return what a command prints last."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode:
        raise RuntimeError(f"an import failed: {done.stderr.strip().rpartition(os.linesep)[2]}")
    return done.stdout.strip().rpartition(os.linesep)[2]
