# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What to run before every commit: style, types, and all tests but the slowest, in less than three minutes.

    python -m tests.quick               # from the root of the repository, after: pip install -e ".[cu13,test]"
    python -m tests.quick tests/streams/test_event.py   # instead of all tests these

What is not installed (clang-format, ruff, mypy) is left out, and named in the last lines. ``.ci/run`` has everything.
"""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLOW = (
    "package/test_benchmarks.py",
    "package/test_client_scripts.py",
    "package/test_close_races.py",
    "package/test_drivers.py",
    "package/test_examples.py",
    "package/test_fuzz_api.py",
    "package/test_gil_release.py",
    "package/test_late_release.py",
    "package/test_pages.py",
    "package/test_scaling.py",
    "package/test_tutorial.py",
    "memory/test_virtual_memory_growth.py",
)
"""Modules that take long, because they start processes or wait."""


def main(chosen: list[str]) -> int:
    """Run the checks, the next also where one has failed, and return an exit status."""
    start = time.monotonic()
    python = [sys.executable, "-m"]
    processes = ["-n", "auto", "--dist", "loadfile"] if importlib.util.find_spec("xdist") else []
    tests = chosen or ["tests", *(f"--ignore=tests/{name}" for name in SLOW)]
    checks = {
        "ruff check": [*python, "ruff", "check", "."],
        "ruff format": [*python, "ruff", "format", "--check", "."],
        "clang-format": [".ci/format", "--check"],
        "licence lines": [".ci/spdx"],
        "mypy": [*python, "mypy"],
        "pytest": [*python, "pytest", "-q", *processes, *tests],
    }
    told = []
    for name, command in checks.items():
        if command[0] == sys.executable:
            installed = importlib.util.find_spec(command[2]) is not None
        else:
            installed = name != "clang-format" or shutil.which(name) is not None
        if not installed:
            told.append(f"{name}: not installed, left out")
            continue
        print(f"=== {name}", flush=True)
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            told.append(f"{name}: FAILED")
    print("\n".join([*told, f"{time.monotonic() - start:.0f} s"]))
    return int(any("FAILED" in line for line in told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
