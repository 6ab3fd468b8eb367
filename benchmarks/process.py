# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run the process that measures one implementation, and take what it says."""

from __future__ import annotations

import contextlib
import itertools
import json
import pathlib
import queue
import subprocess
import sys
import threading
from typing import IO, Any

from benchmarks.instructions import counted
from benchmarks.results import Results, Task, title
from benchmarks.timing import Profile

WORKER = pathlib.Path(__file__).with_name("worker.py")
PATIENCE = 120.0
"""Seconds without a word from the process after which it is given up."""

PATIENCE_WITH_VALGRIND = 600.0
COMPILED = ("kernels", "disk_cache")
NUMBERS = itertools.count()


def run_worker(
    implementation: str,
    python: str,
    environment: dict[str, str],
    tasks: list[Task],
    profile: Profile,
    code: pathlib.Path,
    results: Results,
    instructions: bool = False,
) -> None:
    """Measure tasks. One that kills or hangs its process fails, and the others go on in a new process."""
    patience = PATIENCE_WITH_VALGRIND if instructions else PATIENCE
    while tasks:
        command, marks = [python, str(WORKER)], None
        if instructions:
            marks = str(code / f"counts-{next(NUMBERS)}")
            command = [*counted(marks), *command]
        job = describe_job(implementation, tasks, profile, code, marks)
        process = subprocess.Popen(
            command, env=environment, cwd=code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:  # a process that has ended has said nothing
            process.stdin.write(job)
        messages = listen(process.stdout)
        current: Task | None = None
        began = False
        try:
            while (message := hear(messages, patience)) is not None:
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


def prepare(
    implementation: str, python: str, environment: dict[str, str], profile: Profile, code: pathlib.Path
) -> None:
    """Have an implementation compile what would take minutes where instructions are counted."""
    job = describe_job(implementation, [], profile, code, None, COMPILED)
    subprocess.run(
        [python, str(WORKER)], env=environment, cwd=code, input=job, text=True, check=False, stdout=subprocess.DEVNULL
    )


def describe_job(
    implementation: str,
    tasks: list[Task],
    profile: Profile,
    code: pathlib.Path,
    marks: str | None,
    wanted: tuple[str, ...] = (),
) -> str:
    """Return what the process reads: tasks, or names of the workbench that have to be there."""
    job = {"implementation": implementation, "tasks": tasks, "profile": profile, "code": str(code), "marks": marks}
    return json.dumps({**job, "wanted": wanted})


def listen(stream: IO[str]) -> queue.Queue[dict[str, Any] | None]:
    """Return the messages of a process as they come; None ends them."""
    messages: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def read() -> None:
        for line in stream:
            messages.put(json.loads(line))
        messages.put(None)

    threading.Thread(target=read, daemon=True).start()
    return messages


def hear(messages: queue.Queue[dict[str, Any] | None], patience: float) -> dict[str, Any] | None:
    """Return the next message; None if the process ended, or is silent for too long."""
    try:
        return messages.get(timeout=patience)
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
    elif "absent" in message:
        results.leave_out(implementation, message["task"], message["absent"])
    else:
        results.fail(implementation, message["task"], message["error"])
        first = message["error"].partition("\n")[0]
        print(f"{implementation}: {title(message['task'])}: {first}", file=sys.stderr)
    return None
