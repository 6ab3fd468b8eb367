# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run the process that measures one implementation, and take what it says."""

from __future__ import annotations

import json
import pathlib
import queue
import subprocess
import sys
import threading
from typing import IO, Any

from benchmarks.results import Results, Task
from benchmarks.timing import Profile

__all__ = ["run_worker"]

WORKER = pathlib.Path(__file__).with_name("worker.py")
PATIENCE = 120.0
"""Seconds without a word from the process after which it is given up."""


def run_worker(
    implementation: str,
    python: str,
    environment: dict[str, str],
    tasks: list[Task],
    profile: Profile,
    code: pathlib.Path,
    results: Results,
) -> None:
    """Measure tasks. One that kills or hangs its process fails, and the others go on in a new process."""
    while tasks:
        job = {"implementation": implementation, "tasks": tasks, "profile": profile, "code": str(code)}
        process = subprocess.Popen(
            [python, str(WORKER)], env=environment, cwd=code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job))
        process.stdin.close()
        messages = listen(process.stdout)
        current: Task | None = None
        began = False
        try:
            while (message := hear(messages)) is not None:
                began = True
                current = take(implementation, message, results)
        finally:
            process.kill()
            status = process.wait()
        if not began:
            for task in tasks:
                results.fail(implementation, task, f"the process did not start (status {status})")
        if current is None:
            return
        results.fail(implementation, current, f"the process hung, or ended with status {status}")
        tasks = tasks[tasks.index(current) + 1 :]


def listen(stream: IO[str]) -> queue.Queue[dict[str, Any] | None]:
    """Return the messages of a process as they come; None ends them."""
    messages: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def read() -> None:
        for line in stream:
            messages.put(json.loads(line))
        messages.put(None)

    threading.Thread(target=read, daemon=True).start()
    return messages


def hear(messages: queue.Queue[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the next message; None if the process ended, or is silent for too long."""
    try:
        return messages.get(timeout=PATIENCE)
    except queue.Empty:
        return None


def take(implementation: str, message: dict[str, Any], results: Results) -> Task | None:
    """Store what a message brings, and return the task that the process is at, if any."""
    if "about" in message:
        results.describe(implementation, message["about"])
    elif "started" in message:
        started: Task = message["started"]
        return started
    elif "values" in message:
        results.add(implementation, message["task"], message["values"])
    else:
        results.fail(implementation, message["task"], message["error"])
        first = message["error"].partition("\n")[0]
        print(f"{implementation}: {message['task']['row']}: {first}", file=sys.stderr)
    return None
