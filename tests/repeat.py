# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run tests many times in random order, to find what depends on the order, on timing, or adds up.

    python tests/repeat.py                              # those on lifetimes, 200 times
    python tests/repeat.py --times 20 --seed 7 tests/package/test_threads.py tests/streams/test_event.py

A repetition runs each of the tests once; every repetition has an order of its own, in which the tests of all modules
are mixed. Each chunk of repetitions has a process of its own. The seed is printed: with it, the orders are the same
again. As in every run, a test fails that leaves driver objects alive, or anything kept for graphs.

Tests that start processes of their own run once in each chunk: what they test begins anew in any case.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import re
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
LIFETIMES = [
    "memory/test_buffer.py",
    "memory/test_buffer_host_copies.py",
    "streams/test_callback_exceptions.py",
    "graph/test_graph_builder.py",
    "graph/test_graph_builder_branches.py",
    "graph/test_graph_builder_failures.py",
    "graph/test_graph_callbacks.py",
    "graph/test_graph_definition.py",
    "graph/test_graph_destruction.py",
    "graph/test_graph_executable.py",
    "graph/test_graph_memory.py",
    "graph/test_graph_ownership.py",
    "core/test_handles.py",
    "memory/test_memory_pool.py",
    "streams/test_stream_callbacks.py",
    "package/test_threads.py",
]
STARTS_A_PROCESS = re.compile(r"run_python|output_of|Popen|multiprocessing|fork")


class Repeat:
    """A plugin of pytest that has the tests of a session run several times.

    Parameters
    ----------
    times : int
        How often.
    seed : int
        Of the orders.
    """

    def __init__(self, times: int, seed: int) -> None:
        self.times = times
        self.random = random.Random(seed)
        self.tests = 0
        self.counts = dict.fromkeys(("passed", "failed", "skipped"), 0)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Put the tests of all repetitions one after the other."""
        self.terminal = config.pluginmanager.get_plugin("terminalreporter")
        self.tests = len(items)
        again = [item for item in items if not any(map(STARTS_A_PROCESS.fullmatch, item.function.__code__.co_names))]
        order = list(items)
        items.clear()
        for _ in range(self.times):
            self.random.shuffle(order)
            if items and order[0] is items[-1]:  # pytest takes two in a row for one
                order.append(order.pop(0))
            items += order
            order = again

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str]:
        """Print nothing: failures are told below."""
        return report.outcome, "", ""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what has become of each test, and tell of a failure at once."""
        if report.when == "call" or not report.passed:
            self.counts[report.outcome] += 1
        self.terminal.stats.clear()  # what would grow, and have to be looked through by every collection of garbage
        if report.failed:
            print(
                f"\n{report.nodeid}, after {sum(self.counts.values()) - 1} others:\n{report.longreprtext}", flush=True
            )


def run_chunk(paths: list[str], times: int, seed: int) -> int:
    """Run the tests in this process."""
    plugin = Repeat(times, seed)
    status = pytest.main(["-qq", "-p", "no:cacheprovider", *paths], plugins=[plugin])
    counts = ", ".join(f"{count} {name}" for name, count in plugin.counts.items())
    print(f"{times} repetitions of {plugin.tests} tests, seed {seed}: {counts}", flush=True)
    return int(status)


def main() -> int:
    """Run the tests in one process after the other; the exit status is 0 if all of them passed every time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths", nargs="*", help="modules or tests, as pytest takes them; by default those on lifetimes"
    )
    parser.add_argument("--times", type=int, default=200, help="how many repetitions (200)")
    parser.add_argument("--chunk", type=int, default=20, help="how many of them in one process (20)")
    parser.add_argument("--seed", type=int, help="of the orders; by default another one each time")
    parser.add_argument("--here", action="store_true", help="all of them in this process")
    options = parser.parse_args()
    if options.times < 1 or options.chunk < 1:
        parser.error("--times and --chunk must be at least 1")
    paths = options.paths or [str(HERE / name) for name in LIFETIMES]
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    if options.here:
        return run_chunk(paths, options.times, seed)
    begun = time.monotonic()
    failed = []
    for done in range(0, options.times, options.chunk):
        times = min(options.chunk, options.times - done)
        command = [sys.executable, __file__, "--here", "--times", str(times), "--seed", str(seed + done), *paths]
        if subprocess.run(command, check=False).returncode:
            failed.append(str(seed + done))
    outcome = f"failed with the seeds {', '.join(failed)}" if failed else "no failure, no leak"
    print(f"{options.times} repetitions, seed {seed}, {time.monotonic() - begun:.0f} s: {outcome}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
