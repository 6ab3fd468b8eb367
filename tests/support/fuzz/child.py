# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Runs one sequence in a process of its own, and judges it.

The process is forked from one that has imported everything and has not called the driver. It writes every step to a
file before it runs it, so that the file has the whole sequence whatever becomes of the process. A finding is

- a signal, or a sanitizer's report;
- a hang: the time limit was reached;
- an exception of a class that a public function must not raise (`ALLOWED`), or one that nothing could catch;
- a warning that a call of the driver failed in cleanup;
- what is left when everything was closed, dropped and collected;
- a misuse of the driver that the simulated driver reports.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import json
import os
import platform
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from . import world
from .generate import Generator, Shape
from .sequence import FOREIGN, VARIABLE, Space, Step, load, run_rounds
from .surface import Surface

PATIENCE = 3.0  # seconds for what is released soon after
KILL_AFTER = 10  # seconds after which a process that does not end itself is ended
FOUND, BROKEN = 3, 4  # exit statuses: there is a finding, or the fuzzer failed
SWITCH = 1e-5  # seconds after which another thread gets its turn; the shorter, the more orders there are
STAYS = {
    "driver: primary contexts retained": "as long as the process",
    "driver: graph allocations": "what a launch of a graph allocates, and no node frees, is the program's to free",
}
EXPECTED_CLEANUP = {
    r"\.deallocate failed": "a resource in Python raised, for example what a host function had raised",
    r"cuStreamEndCapture failed: .*WRONG_THREAD": "only the thread that began a capture that is not relaxed can end it",
    r"failed: CUDA_ERROR_ILLEGAL_ADDRESS": "work ran after another stream's order had freed its memory; see NO_MISUSE",
    r"cuMemFreeAsync failed: .*INVALID_VALUE": "memory that a graph allocates was closed before the graph was launched",
}
NO_MISUSE = {
    "use after free": "whoever closes a buffer has to order that after the work in other streams",
    "no access": "the driver refuses memory of another device, and the program gets the error",
}
AGAIN = b"# from the beginning\n"
SANITIZED = "CUDA_CORE_CFFI_SANITIZED"  # is set by tests/sanitize.sh

# What public functions may raise; by name, since some modules are imported late. An AttributeError has
# to be about an attribute that the line names.
ALLOWED = (
    "TypeError",
    "ValueError",
    "OverflowError",
    "BufferError",
    "RuntimeError",
    "CUDAError",
    "MemoryError",
    "FuzzError",
)
ALLOWED_FOR = {
    "KeyError": r"\[|\b(pop|remove|__delitem__|__getitem__|from_registry)\(",
    "IndexError": r"\[|elements\(|np\.|__\w+item__|pop\(",
    "StopIteration": r"next\(",
    "OSError": r"FileStreamProgramCache|from_\w+\(|debug_dot_print|Producer|pickled|\.(get|update|clear|__\w+item__)\(",
    "ImportError": r"Program|Linker|make_program_cache_key|compile\(",
    "UnpicklingError": r"pickled",
    "PicklingError": r"pickled",
    "ArithmeticError": r"np\.",
    "Error": r"copy\.",  # copy.Error
    "NotImplementedError": r"GraphBuilder\(|__init__\(|win32",  # as cuda.core does
}
NEVER = ("NotImplementedError", "RecursionError", "SystemError")


class Job(NamedTuple):
    """What a process does: write a sequence from a seed, or run one again.

    Attributes
    ----------
    seconds : float
        After how long it hangs.
    steps : tuple of Step
        The sequence to run again; from the seed if there is none.
    span : float
        How many seconds the sequence is repeated for; it runs once at least.
    patience : float
        After how many seconds what is alive has leaked.
    """

    surface: Surface
    seed: int
    shape: Shape
    seconds: float
    steps: tuple[Step, ...] = ()
    span: float = 0
    patience: float = PATIENCE


class Outcome(NamedTuple):
    """What became of a sequence.

    Attributes
    ----------
    kind : str
        ``""`` if nothing was found; ``"crash"``, ``"hang"``, ``"exception"``, ``"leak"``, ``"misuse"``
        or ``"cleanup"``.
    key : str
        Says what was found and where; the same fault has the same key.
    detail : str
        The whole message or traceback.
    steps : tuple of Step
        What ran, the last one included.
    """

    kind: str
    key: str
    detail: str
    steps: tuple[Step, ...]


def run(job: Job, folder: Path) -> tuple[int, Callable[[int], Outcome]]:
    """Start a process for a job; return its number, and what tells its outcome from its exit status."""
    sys.stdout.flush()
    sys.stderr.flush()
    number = os.fork()
    if number == 0:
        enter(job, folder)
    return number, lambda status: outcome(status, folder)


def enter(job: Job, folder: Path) -> NoReturn:
    """Be the process."""
    status = BROKEN
    try:
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.setpgid(0, 0)
        work = folder / "work"
        work.mkdir()
        os.chdir(work)
        for variable in ("HOME", "XDG_CACHE_HOME", "TMPDIR", "CUDA_CACHE_PATH"):
            os.environ[variable] = str(work)
        if SANITIZED not in os.environ:  # whose own report says more
            faulthandler.enable()
        if hasattr(gc, "freeze"):  # not on PyPy
            gc.freeze()  # what is here already need not be looked at by every collection
        os.environ["CUDA_SIM_DEVICES"] = str(1 + job.seed % 2)
        os.environ["CUDA_SIM_KERNEL_SECONDS"] = "5"
        child = Child(job, folder)
        found = child.work()
        if found:
            (folder / "found").write_text(json.dumps(found))
            status = FOUND
        else:
            status = 0
    except BaseException:
        traceback.print_exc()
        status = BROKEN
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Child:
    """Runs a sequence and looks at what it leaves."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self.found: list[tuple[str, str, str]] = []
        self._file = os.open(folder / "steps", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        self._lines: dict[int, Step] = {}
        # the lines of `grammar` name the API whichever modules are fuzzed
        self.names = {**Surface().names, **job.surface.names, **world.names()}
        sys.unraisablehook = self.hear_unraisable
        threading.excepthook = self.hear_thread
        warnings.simplefilter("always")
        warnings.showwarning = self.hear_warning

    def work(self) -> tuple[str, str, str] | None:
        """Run the sequence, as long as the job says; return the first finding."""
        state = State()
        sys.setswitchinterval(SWITCH)
        end = time.monotonic() + self.job.span
        while True:
            os.write(self._file, AGAIN)
            space = Space(self.names, self.is_kept)
            faulthandler.dump_traceback_later(self.job.seconds, exit=True)
            run_rounds(self.replay(space) if self.job.steps else self.generate(space), self.job.seconds)
            space.clear()
            del space
            if not self.found:
                faulthandler.dump_traceback_later(self.job.seconds + self.job.patience, exit=True)
                self.found += state.left(self.job.patience)
            if self.found:
                return self.found[0]
            if time.monotonic() > end:
                return None

    def generate(self, space: Space) -> Iterator[dict[int, Callable[[], None]]]:
        """Return the rounds of a new sequence."""
        perform = functools.partial(self.perform, space)
        return Generator(self.job.seed, self.job.surface, space, perform).rounds(self.job.shape)

    def replay(self, space: Space) -> Iterator[dict[int, Callable[[], None]]]:
        """Return the rounds of a sequence that is known."""
        for number in sorted({step.round for step in self.job.steps}):
            threads: dict[int, list[Step]] = {}
            for step in self.job.steps:
                if step.round == number:
                    threads.setdefault(step.thread, []).append(step)
            yield {
                thread: lambda steps=steps: [self.perform(space, step) for step in steps]
                for thread, steps in threads.items()
            }

    def perform(self, space: Space, step: Step) -> None:
        """Write a step down, and run it, unless there was a finding before."""
        if self.found or not space.has(step.line):
            return
        os.write(self._file, f"{step}\n".encode("utf-8", "backslashreplace"))
        self._lines[step.thread] = step
        error = space.run(step.line)
        if error is not None and not judge(error, step.line, space):
            self.add("exception", f"{type(error).__name__} from {callee_of(step.line, space)}", text_of(error))

    def add(self, kind: str, key: str, detail: str) -> None:
        self.found.append((kind, key, detail))

    def is_kept(self, kind: type) -> bool:
        """Tell whether objects of a class get variables."""
        module = kind.__module__
        return self.job.surface.is_ours(kind) or kind.__name__ in FOREIGN or module in ("buffers", world.__name__)

    def hear_unraisable(self, unraisable: Any) -> None:
        """Report an exception in a finalizer or callback, where nothing could catch it."""
        error = unraisable.exc_value
        if isinstance(error, world.FuzzError):
            return
        place = getattr(unraisable.object, "__qualname__", type(unraisable.object).__name__)
        self.add("exception", f"{type(error).__name__} nowhere to be caught, in {place}", text_of(error))

    def hear_warning(self, message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        """Report a call of the driver that failed where no exception could be raised."""
        expected = any(re.search(pattern, str(message)) for pattern in EXPECTED_CLEANUP)
        if category.__name__ == "CUDAWarning" and not expected:
            self.add("cleanup", f"cleanup: {str(message).partition(':')[2].strip()[:60]}", str(message))

    def hear_thread(self, arguments: Any) -> None:
        """Report an exception that ended a thread."""
        error = arguments.exc_value
        self.add("exception", f"{type(error).__name__} ended a thread", text_of(error))


def judge(error: BaseException, line: str, space: Space) -> bool:
    """Tell whether a line may raise an exception."""
    if isinstance(error, NameError) and VARIABLE.fullmatch(error.name or ""):
        return True  # another thread dropped the variable
    if isinstance(error, BaseExceptionGroup):  # what several host functions raised
        return all(judge(part, line, space) for part in error.exceptions)
    classes = [base.__name__ for base in type(error).__mro__]
    if any(name in classes and re.search(pattern, line) for name, pattern in ALLOWED_FOR.items()):
        return True
    if any(name in classes for name in NEVER):
        return False
    if isinstance(error, AttributeError):
        if space.has_blank:
            return True  # that an object was never initialised may show
        return error.name is None or re.search(rf"\.{error.name}\b", line) is not None
    if isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)):
        return False
    return any(name in classes for name in ALLOWED)


def callee_of(line: str, space: Space) -> str:
    """Return what a line calls, with the class instead of the variable."""
    match = re.match(r"(?:\w+ = )?(.*)", line)
    text = match[1] if match else line
    target = VARIABLE.search(text)
    value = space.names.get(target[0]) if target else None
    short = VARIABLE.sub(lambda m: type(space.names[m[0]]).__name__ if m[0] in space.names else m[0], text)
    return re.sub(r"\(.*", "(...)", short, count=1) if value is not None or "(" in short else short


def text_of(error: BaseException) -> str:
    """Return an exception with its traceback."""
    return "".join(traceback.format_exception(error))


class State:
    """What is alive before a sequence, to compare with afterwards."""

    def __init__(self) -> None:
        from cuda_core_cffi import Device, driver

        self.is_simulated = os.environ.get("CUDA_CORE_CFFI_DRIVER") == "simulator"
        self._devices = Device.get_all_devices()
        self._resources = [device.memory_resource for device in self._devices]
        del driver
        self._before = self.alive()

    def alive(self) -> dict[str, int]:
        """Return how many objects of each kind are alive."""
        from cuda_core_cffi import lib, live_objects

        found = {**live_objects(), "kept for graphs": int(lib.ccc_refs_count())}
        if self.is_simulated:
            from cuda_core_cffi import simulator

            found.update({f"driver: {kind}": number for kind, (number, _) in simulator.live().items()})
        return {kind: count for kind, count in found.items() if kind not in STAYS}

    def left(self, patience: float) -> list[tuple[str, str, str]]:
        """Return what a sequence left, and what it did wrong."""
        from cuda_core_cffi._lifetime.pending_calls import run_tasks

        failed = False
        for device, resource in zip(self._devices, self._resources):
            with contextlib.suppress(Exception):
                device.memory_resource = resource
            try:
                device.sync()  # what is freed in the order of a stream is freed when that is done
            except Exception as error:  # a context that has failed, perhaps by work on freed memory, frees nothing
                failed = failed or "ILLEGAL_ADDRESS" in str(error)
        end = time.monotonic() + patience
        more: dict[str, int] = {}
        while True:
            gc.collect()
            run_tasks()
            now = self.alive()
            more = {kind: count - self._before.get(kind, 0) for kind, count in now.items()}
            more = {kind: count for kind, count in more.items() if count > 0}
            if not more or time.monotonic() > end:
                break
            time.sleep(0.01)
        found = []
        if (
            more and not failed and platform.python_implementation() == "CPython"
        ):  # on PyPy an array keeps the memoryview it was made of
            found.append(("leak", f"leak of {', '.join(sorted(more))}", str(more)))
        if self.is_simulated:
            from cuda_core_cffi import simulator

            reports = [report for report in simulator.reports() if report.kind not in NO_MISUSE]
            simulator.clear_reports()
            found += [("misuse", f"misuse: {report.kind} in {report.call}", str(report)) for report in reports[:1]]
        return found


SANITIZER = re.compile(r"(ERROR: AddressSanitizer: \S+|runtime error: .*)")
C_FRAME = re.compile(r"#\d+ 0x\w+ in (\w+) [^(\n]*?(?:include|simulator/src|generated)/(\S+?):\d+")
LINE_FRAME = re.compile(r'File "(?:v\w+ = )?([^("]*).*", line 1 in <module>')
PYTHON_FRAME = re.compile(r'File ".*?/((?:cuda_core_cffi)/\S+?)", line \d+ in (\w+)')


def outcome(status: int, folder: Path) -> Outcome:
    """Return what the exit status of a process, and what it wrote, mean."""
    text = read(folder / "steps").rpartition(AGAIN.decode())[2]
    steps = tuple(load(text))
    output = read(folder / "output")
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return Outcome("", "", "", steps)
    if code == FOUND:
        kind, key, detail = json.loads(read(folder / "found"))
        return Outcome(kind, key, detail, steps)
    report = SANITIZER.search(output)
    frame = C_FRAME.search(output, report.end()) if report else PYTHON_FRAME.search(output)
    line = LINE_FRAME.search(output)
    where = f" in {frame[1]} ({frame[2]})" if frame else f" in {VARIABLE.sub('v', line[1])}" if line else ""
    if report:
        return Outcome("crash", report[1].removeprefix("ERROR: ") + where, output, steps)
    if "Timeout (" in output or code == -signal.SIGKILL:
        return Outcome("hang", f"hang{where}", output, steps)
    if code == BROKEN:
        return Outcome("crash", "the fuzzer itself failed", output, steps)
    if code < 0:
        name = signal.Signals(-code).name
        return Outcome("crash", f"{name}{where}", output, steps)
    return Outcome("crash", f"exit status {code}", output, steps)


def read(path: Path) -> str:
    """Return what is in a file; nothing if there is none."""
    return path.read_text(errors="replace") if path.exists() else ""
