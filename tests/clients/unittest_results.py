# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run the tests of one module with unittest, and write what became of each.

    python -m cuda_core_cffi.as_cuda_core tests/clients/unittest_results.py MODULE FILE

FILE gets a line of JSON for each test as it ends, so that a crash loses nothing.
"""

from __future__ import annotations

import json
import sys
import unittest
from typing import IO, Any


class Results(unittest.TestResult):
    """Writes the outcome of each test: ``passed``, ``skipped``, ``failed``; a subtest that fails fails its test."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__()
        self.file = file
        self.wrong: dict[str, str] = {}
        self.was_skipped: set[str] = set()

    def note(self, test: Any, error: Any) -> None:
        """Remember the first failure of a test."""
        lines = "".join(str(error[1])).strip().splitlines() or [""]
        self.wrong.setdefault(name_of(test), f"{error[0].__name__}: {lines[0]}"[:300])

    def addError(self, test: Any, err: Any) -> None:
        """Note an error; what pytest is told by an exception, a skip, is one here too."""
        if err[0].__name__ == "Skipped":
            self.addSkip(test, str(err[1]))
            return
        self.note(test, err)
        if not hasattr(test, "_testMethodName"):  # the setup of a class or module
            self.write(name_of(test), "failed")

    def addFailure(self, test: Any, err: Any) -> None:
        """Note a failure."""
        self.note(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        """Note a failure of a part."""
        if err is not None:
            self.note(test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        """Note that a test was skipped."""
        self.was_skipped.add(name_of(test))

    def addUnexpectedSuccess(self, test: Any) -> None:
        """Note that a test passed that should fail."""
        self.wrong[name_of(test)] = "unexpected success"

    def startTest(self, test: Any) -> None:
        """Say which test a crash would be of."""
        super().startTest(test)
        self.write(name_of(test), "begun")

    def stopTest(self, test: Any) -> None:
        """Write the outcome of a test."""
        super().stopTest(test)
        name = name_of(test)
        self.write(name, "failed" if name in self.wrong else "skipped" if name in self.was_skipped else "passed")

    def write(self, name: str, outcome: str) -> None:
        """Write a line."""
        line = {"test": name, "outcome": outcome, "why": self.wrong.get(name, "")}
        print(json.dumps(line), file=self.file, flush=True)


def name_of(test: Any) -> str:
    """Return the name of a test without that of the packages above its module."""
    return str(test.id()).removeprefix("numba.cuda.tests.")


def main() -> None:
    """Run the tests."""
    module, path = sys.argv[1:]
    with open(path, "w") as file:
        unittest.defaultTestLoader.loadTestsFromName(module).run(Results(file))


if __name__ == "__main__":
    main()
