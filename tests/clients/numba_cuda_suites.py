# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run test suites of numba-cuda, unmodified, with this package in the place of cuda-core, on the simulated driver.

    python tests/clients/numba_cuda_suites.py [--jobs N] [--write] [--sample | MODULE ...]

Python is one that has numba-cuda and this package. Each module of ``cudadrv`` and ``cudapy`` runs in a process of
its own. Failures are compared with numba_cuda_failures.json, which has the reason of each: a test that fails and is
not listed there is an error, and so is one that is listed and does not fail. ``--write`` prints the failures, with
their messages.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile

from simulated import simulated_environment
from suites import Side, counts_of, failures, numba_cuda_suite, run_all

HERE = pathlib.Path(__file__).resolve().parent
KNOWN = HERE / "numba_cuda_failures.json"
SAMPLE = (
    "cudadrv.",
    *(
        f"cudapy.test_{name}"
        for name in (
            "atomics",
            "blackscholes",
            "caching",
            "constmem",
            "cooperative_groups",
            "datetime",
            "debug",
            "device_func",
            "extending",
            "gufunc",
            "inspect",
            "ipc",
            "lang",
            "localmem",
            "matmul",
            "multithreads",
            "operator",
            "record_dtype",
            "reduction",
            "sm",
            "sync",
            "userexc",
            "warning",
        )
    ),
)


def main() -> int:
    """Run the modules that were asked for, and compare the failures with the known ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many modules run at a time")
    parser.add_argument("--write", action="store_true", help="print the failures, with their messages")
    parser.add_argument("--sample", action="store_true", help="the drivers' suite, and some modules of the other")
    parser.add_argument("modules", nargs="*", help="some of them, such as cudadrv.test_events; by default all")
    arguments = parser.parse_args()
    suite = numba_cuda_suite()
    if not suite.parts:
        raise SystemExit("numba-cuda is not installed")
    asked = arguments.modules or [name for name in suite.parts if not arguments.sample or name.startswith(SAMPLE)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = {**simulated_environment(folder), "CUDA_SIM_REPORT": "stderr"}
        (outcomes,) = run_all(suite, asked, [Side(True, folder, environment)], arguments.jobs)
    failed = failures(outcomes)
    if arguments.write:
        print(json.dumps(failed, indent=1))
        return 0
    known = {
        name for name in json.loads(KNOWN.read_text()) if f"{name}.".startswith(tuple(f"{module}." for module in asked))
    }
    for name in sorted(failed.keys() - known):
        print(f"fails: {name}: {failed[name]}")
    for name in sorted(known - failed.keys()):
        print(f"listed, but does not fail: {name}")
    print(f"numba-cuda: {counts_of(outcomes)}")
    return int(failed.keys() != known)


if __name__ == "__main__":
    sys.exit(main())
