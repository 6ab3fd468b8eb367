# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Fuzz the public API: call anything with anything, in any order, from several threads.

    python tests/fuzz_api.py --seconds 60 --seed 1 --threads 1,4 --jobs 2
    python tests/fuzz_api.py --replay findings/crash-1.txt
    python tests/fuzz_api.py --list

Each seed gives one sequence of calls, which runs in a process of its own (``tests/support/fuzz/child.py`` says what a
finding is). A finding is printed with the shortest sequence found that gives it again, as Python code, and kept in a
file in the folder of ``--keep`` for ``--replay``. The exit status is 1 if there is a finding. Without ``--seed`` the
seeds are random; the first is printed.

What is never called, and why, is in ``EXCLUDED`` of ``tests/support/fuzz/surface.py`` and ``FIXED_REASONS`` of
``tests/support/fuzz/values.py``; ``--list`` prints both.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
os.environ.setdefault("CUDA_CORE_CFFI_DRIVER", "simulator")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process with threads is not to be forked

from fuzz.child import KILL_AFTER, Job, Outcome, run
from fuzz.generate import Shape
from fuzz.sequence import Step, as_code, load, save
from fuzz.shrink import shrink
from fuzz.surface import EXCLUDED, MODULES, Surface
from fuzz.values import FIXED_REASONS

SPAN = 2.0  # seconds that a sequence of several threads is repeated for
TRIES = 3  # how often a finding of several threads gets this chance
POLL = 0.005  # seconds
HANG = 3.0  # seconds after which a sequence that hung hangs again
SHORT_PATIENCE = 0.1  # seconds after which what leaked has leaked again


class Hunt:
    """Runs sequences and collects findings.

    Parameters
    ----------
    surface : Surface
        The API.
    limit : float
        Seconds after which a sequence hangs.
    shrink_seconds : float
        How long one finding may be shortened.
    folder : Path
        Where processes keep their files.
    keep : Path or None
        Where files of findings go.
    """

    def __init__(self, surface: Surface, limit: float, shrink_seconds: float, folder: Path, keep: Path | None) -> None:
        self.surface = surface
        self.limit = limit
        self.shrink_seconds = shrink_seconds
        self.folder = folder
        self.keep = keep
        self.sequences = 0
        self.calls = 0
        self.findings: dict[str, int] = {}
        self._places = 0

    def work(self, seeds: Iterator[int], shapes: Sequence[Shape], seconds: float, jobs: int) -> None:
        """Run sequences for some time, several at once."""
        end = time.monotonic() + seconds
        running: list[Running] = []
        more = True
        while running or more:
            more = more and time.monotonic() < end
            while more and len(running) < jobs:
                seed = next(seeds, None)
                if seed is None:
                    more = False
                    break
                job = Job(self.surface, seed, shapes[seed % len(shapes)], self.limit)
                running.append(Running(job, self.place()))
            time.sleep(POLL)
            for process in [process for process in running if process.is_done()]:
                running.remove(process)
                self.sequences += 1
                result = process.result
                self.calls += len(result.steps)
                if result.kind:
                    self.report(result, process.job)

    def place(self) -> Path:
        """Return a new folder for a process."""
        self._places += 1
        place = self.folder / str(self._places)
        place.mkdir()
        return place

    def run_once(self, job: Job) -> Outcome:
        """Run a sequence, and wait for it."""
        process = Running(job, self.place())
        while not process.is_done():
            time.sleep(POLL)
        return process.result

    def run_again(self, job: Job, steps: Sequence[Step], kind: str) -> Outcome:
        """Run a known sequence, several times if that may make a difference."""
        threaded = len({step.thread for step in steps}) > 1
        limit = min(self.limit, HANG) if kind == "hang" else self.limit
        result = Outcome("", "", "", ())
        for _ in range(TRIES if threaded else 1):
            again = job._replace(steps=tuple(steps), seconds=limit, patience=SHORT_PATIENCE)
            result = self.run_once(again._replace(span=SPAN) if threaded else again)
            if result.kind == kind:
                break
        return result

    def report(self, found: Outcome, job: Job) -> None:
        """Print a finding with the shortest sequence; one that was printed before is only counted."""
        self.findings[found.key] = self.findings.get(found.key, 0) + 1
        if self.findings[found.key] > 1:
            return
        steps, again = shrink(found, lambda steps: self.run_again(job, steps, found.kind), self.shrink_seconds)
        title = f"{found.kind}: {found.key} (seed {job.seed}, {job.shape.threads} threads, {job.shape.steps} steps)"
        note = "" if again else "# it did not come again: this is the whole sequence"
        if again and again.key != found.key:
            note = f"# now it is: {again.key}"
        print(
            f"\n=== {title}\n{note}{chr(10) * bool(note)}{as_code(list(steps))}\n---\n{tail((again or found).detail)}",
            flush=True,
        )
        if self.keep:
            self.keep.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "-", f"{found.kind}-{found.key}")[:80].strip("-")
            save(self.keep / f"{name}.txt", steps, f"{title}\n{note}\n{tail((again or found).detail)}")


class Running:
    """A process that runs a sequence."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self._folder = folder
        self._number, self._outcome = run(job, folder)
        self._end = time.monotonic() + max(job.seconds, job.span) + job.seconds + job.patience + KILL_AFTER
        self.result: Outcome

    def is_done(self) -> bool:
        """Tell whether it ended; end it if it hangs."""
        number, status = os.waitpid(self._number, os.WNOHANG)
        if not number:
            if time.monotonic() < self._end:
                return False
            os.kill(self._number, signal.SIGKILL)
            _, status = os.waitpid(self._number, 0)
        self.result = self._outcome(status)
        shutil.rmtree(self._folder, ignore_errors=True)
        return True


def tail(text: str, lines: int = 60) -> str:
    """Return the end of a report."""
    return "\n".join(text.rstrip().splitlines()[:lines])


def list_surface(surface: Surface) -> None:
    """Print what was found by introspection, and what is left out."""
    for name, callee in (surface.classes | surface.functions).items():
        print(f"{name}({', '.join(parameter.name for parameter in callee.parameters)})")
        kind = surface.names[name]
        for member in surface.members(kind) if isinstance(kind, type) else ():
            arguments = "" if member.callee is None else f"({', '.join(p.name for p in member.callee.parameters)})"
            print(f"    .{member.name}{arguments}")
    print("\nNever called:")
    for name, reason in EXCLUDED.items():
        print(f"    {name}: {reason}")
    print("\nArguments of one kind only:")
    for name, reason in FIXED_REASONS.items():
        print(f"    {name}: {reason}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long new sequences are begun (default: 60)")
    parser.add_argument("--seed", type=int, help="the first seed (default: random)")
    parser.add_argument("--threads", default="1,4", help="how many threads a sequence has, in turn (default: 1,4)")
    parser.add_argument("--steps", type=int, default=150, help="about how many calls a sequence has (default: 150)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many sequences run at once")
    parser.add_argument("--sequences", type=int, help="how many sequences, where that is reached first")
    parser.add_argument("--limit", type=float, default=30, help="seconds after which a sequence hangs (default: 30)")
    parser.add_argument("--shrink", type=float, default=60, help="seconds for shortening a finding (default: 60)")
    parser.add_argument("--modules", default=",".join(MODULES), help="the modules of the API")
    parser.add_argument("--keep", type=Path, help="the folder for files of findings")
    parser.add_argument("--replay", type=Path, help="run the sequence in a file, and shorten it")
    parser.add_argument("--list", action="store_true", help="print what there is to call, and what is left out")
    options = parser.parse_args(arguments)
    surface = Surface(options.modules.split(","))
    if options.list:
        list_surface(surface)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="fuzz_api-"))
    try:
        hunt = Hunt(surface, options.limit, options.shrink, folder, options.keep)
        if options.replay:
            return replay(hunt, load(options.replay.read_text()))
        first = random.randrange(10**9) if options.seed is None else options.seed
        last = first + options.sequences if options.sequences else sys.maxsize
        seeds = iter(range(first, last))
        shapes = [Shape(int(threads), options.steps) for threads in options.threads.split(",")]
        print(f"the first seed is {first}", flush=True)
        hunt.work(seeds, shapes, options.seconds, options.jobs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{hunt.sequences} sequences, {hunt.calls} calls, {len(hunt.findings)} findings")
    for key, count in sorted(hunt.findings.items()):
        print(f"    {count} times: {key}")
    return 1 if hunt.findings else 0


def replay(hunt: Hunt, steps: Sequence[Step]) -> int:
    """Run the sequence of a file, and report what it finds."""
    threads = len({step.thread for step in steps})
    job = Job(hunt.surface, 0, Shape(threads, len(steps)), hunt.limit)
    result = hunt.run_once(job._replace(steps=tuple(steps), span=SPAN if threads > 1 else 0))
    if result.kind:
        hunt.report(result, job)
    print("no finding" if not result.kind else "")
    return 1 if result.kind else 0


if __name__ == "__main__":
    raise SystemExit(main())
