# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run the examples in the docstrings of one module, and write the outcome of each docstring.

    python -m cuda_core_cffi.as_cuda_core tests/clients/doctest_results.py MODULE FILE

FILE gets lines of JSON, as from unittest_results.py. An example may use NumPy, CuPy and PyTorch without importing them.
"""

from __future__ import annotations

import doctest
import importlib
import io
import json
import sys
import traceback
from typing import IO, Any

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
USUAL_NAMES = {"np": "numpy", "numpy": "numpy", "cp": "cupy", "cupy": "cupy", "torch": "torch"}


def usual_modules() -> dict[str, Any]:
    """Return the modules that examples use, by the names that they use."""
    found = {}
    for name, module in USUAL_NAMES.items():
        try:
            found[name] = importlib.import_module(module)
        except ImportError:
            continue
    return found


def failure_of(test: doctest.DocTest) -> str:
    """Run the examples of a docstring until one fails; return why it failed, or an empty text."""
    runner = doctest.DebugRunner(optionflags=OPTIONS)
    try:
        runner.run(test, out=io.StringIO().write)
    except doctest.DocTestFailure as failure:
        return f"line {failure.example.lineno + 1}: got {failure.got.strip()!r}"
    except doctest.UnexpectedException as failure:
        kind, error, _ = failure.exc_info
        return f"line {failure.example.lineno + 1}: {kind.__name__}: {error}"
    return ""


def write(file: IO[str], test: str, outcome: str, why: str = "") -> None:
    """Write a line."""
    print(json.dumps({"test": test, "outcome": outcome, "why": why[:300]}), file=file, flush=True)


def main() -> None:
    """Run the examples of a module."""
    name, path = sys.argv[1:]
    with open(path, "w") as file:
        write(file, name, "begun")
        try:
            module = importlib.import_module(name)
        except Exception:
            write(file, name, "failed", traceback.format_exc().splitlines()[-1])
            return
        write(file, name, "passed")
        for test in doctest.DocTestFinder().find(module, name, extraglobs=usual_modules()):
            if test.examples:
                write(file, test.name, "begun")
                why = failure_of(test)
                write(file, test.name, "failed" if why else "passed", why)


if __name__ == "__main__":
    main()
