# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run one file of tests with pytest, and write the outcome of each test.

    python -m cuda_core_cffi.as_cuda_core tests/clients/pytest_results.py TEST_FILE FILE

FILE gets lines of JSON, as from unittest_results.py. The names of tests begin with paths relative to the working
directory.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

ENDINGS = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}


class Results:
    """A plugin that writes the outcome of each test: ``passed``, ``skipped`` or ``failed``."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "w")  # noqa: SIM115
        self.failed: dict[str, str] = {}
        self.skipped: set[str] = set()

    def write(self, test: str, outcome: str, why: str = "") -> None:
        """Write a line."""
        print(json.dumps({"test": test, "outcome": outcome, "why": why[:300]}), file=self.file, flush=True)

    def pytest_collectreport(self, report: Any) -> None:
        """Note a file that cannot be collected."""
        if report.failed:
            self.write(report.nodeid, "failed", last_line(report))
        elif report.skipped:
            self.write(report.nodeid, "skipped")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note which test a crash would belong to."""
        self.write(nodeid, "begun")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the outcome of a phase of a test."""
        if report.failed:
            self.failed.setdefault(report.nodeid, last_line(report))
        elif report.skipped:
            self.skipped.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Write the outcome of a test."""
        why = self.failed.get(nodeid, "")
        self.write(nodeid, "failed" if why else "skipped" if nodeid in self.skipped else "passed", why)


def last_line(report: Any) -> str:
    """Return the error of a report in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    lines = text.strip().splitlines() or ["failed"]
    return lines[0] if crash else lines[-1]


def main() -> int:
    """Run the tests of a file."""
    test, path = sys.argv[1:]
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir", "."]
    ended = pytest.main([*options, test], plugins=[Results(path)])
    return 0 if ended in ENDINGS else int(ended)


if __name__ == "__main__":
    sys.exit(main())
