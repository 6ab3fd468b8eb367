# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Several threads at once, each with a stream of its own: how many calls they make per second together."""

from __future__ import annotations

import threading
from time import perf_counter

from benchmarks.rows import STRETCH, Row
from benchmarks.workbench import Bench


class Worker(threading.Thread):
    """Make calls in stretches until the time is up."""

    def __init__(self, bench: Bench, row: Row, barrier: threading.Barrier, seconds: float) -> None:
        super().__init__(daemon=True)
        self._bench, self._row, self._barrier, self._seconds = bench, row, barrier, seconds
        self.calls = 0
        self.ended = 0.0
        self.error: Exception | None = None

    def run(self) -> None:
        """Do the work; an exception is kept for the thread that joins this one."""
        try:
            self._work()
        except Exception as error:
            self.error = error
            self._barrier.abort()

    def _work(self) -> None:
        names = self._bench.open_thread()
        stream = names["stream"]
        loop = self._bench.loop(self._row, **names)
        count = max(STRETCH // self._row.launches, 1)
        loop(count)
        self._bench.sync(stream)
        self._barrier.wait()
        deadline = perf_counter() + self._seconds
        while (now := perf_counter()) < deadline:
            loop(count)
            self._bench.sync(stream)
            self.calls += count * self._row.launches
        self.ended = now
        self._bench.close_thread(names)


def measure_threads(bench: Bench, row: Row, count: int, seconds: float) -> float:
    """Return the calls, or launches of a batch, per second that ``count`` threads make together."""
    bench.loop(row)(max(STRETCH // row.launches, 1))  # make what the row needs
    bench.drain()
    began: list[float] = []  # by the last of the threads to be ready: this one would have to wait for the GIL first
    barrier = threading.Barrier(count, action=lambda: began.append(perf_counter()))
    workers = [Worker(bench, row, barrier, seconds) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for worker in workers:
        if worker.error is not None and not isinstance(worker.error, threading.BrokenBarrierError):
            raise worker.error
    return sum(worker.calls for worker in workers) / (max(worker.ended for worker in workers) - began[0])
