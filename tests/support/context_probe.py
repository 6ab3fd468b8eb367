# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Print what the driver answers in a thread that has no current context.

    CUDA_CORE_CFFI_DRIVER=system python tests/support/context_probe.py > gpu.txt
    CUDA_CORE_CFFI_DRIVER=simulator python tests/support/context_probe.py > simulator.txt

Each case makes its objects in a thread whose context is current, and then makes one driver call in a new thread: once
without a current context, once with the context of the objects, and once with another context of the same device. A
line has the name of the case and the first answer, and each of the others if it differs from the one before:
``name WITHOUT [with: WITH] [other: OTHER]``. The cases named ``fact`` print a value after the status.

The cases run in a child process. A case that ends the process is reported as ``CRASHED``, one that does not return in
some seconds as ``TIMEOUT``, and what comes after it runs in a new child.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from contexts import code, graphs, memory, streams, virtual
from contexts.world import CASES, SECONDS, Outcome, World, must, name_of

from cuda_core_cffi import simulator
from cuda_core_cffi._core.ffi import lib

MODULES = (streams, memory, code, graphs, virtual)  # which add the cases when they are imported
STAGES = ("without", "with", "other")
MISUSE = "MISUSE"


def answer(w: World, run: Callable[[World], Iterator[Any]], stage: str) -> str:
    """Run a case once, with the context of a stage current in its thread."""
    found: list[Outcome] = []
    try:
        context = w.context_for(stage)
        steps = run(w)
        call = next(steps)
    except Exception as error:  # this driver lacks something
        return f"UNPREPARED({error})"

    def work() -> None:
        try:
            must(lib.cuCtxSetCurrent(context))
            found.append(call())
        except Exception as error:  # a function that this driver does not have, for example
            found.append(type(error).__name__)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if not found:
        return "TIMEOUT"
    outcome = found[0]
    status, value = outcome if isinstance(outcome, tuple) else (outcome, None)
    text = status if isinstance(status, str) else name_of(status)
    try:
        steps.send(status)
    except StopIteration:
        pass
    except Exception as error:
        text += f"(afterwards: {error})"
    if misused():
        return MISUSE
    return text if value is None else f"{text} {value}"


def misused() -> bool:
    """Whether the simulated driver has reported misuse since this was asked before: hardware crashes there."""
    found = os.environ.get("CUDA_CORE_CFFI_DRIVER") == "simulator" and bool(simulator.reports())
    if found:
        simulator.clear_reports()
    return found


def serve(names: list[str], stages: list[str]) -> None:
    """Be the child process: print the answers as soon as they are known; the first case begins with the first stage."""
    w = World()
    for name in names:
        for stage in stages:
            faulthandler.dump_traceback_later(4 * SECONDS, exit=True)  # for what is done before and after the call
            print(name, stage, end=" ", flush=True)
            text = answer(w, CASES[name], stage)
            print(text, flush=True)
            if text == "TIMEOUT":
                os._exit(0)  # a thread still waits in the driver
        stages = list(STAGES)
    sys.stdout.flush()
    os._exit(0)


def ask(names: list[str]) -> dict[str, dict[str, str]]:
    """Return what the cases answer, by name and stage."""
    answers: dict[str, dict[str, str]] = {name: {} for name in names}
    left = [(name, stage) for name in names for stage in STAGES]
    while left:
        name, stage = left[0]
        stages = STAGES[STAGES.index(stage) :]
        command = [sys.executable, __file__, "--serve", ",".join(stages), *names[names.index(name) :]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = process.stdout.read().splitlines()
        if not lines:
            sys.exit(f"the driver cannot be used: exit status {process.returncode}")
        for line in lines:
            name, stage, text = line.split(" ", 2)
            answers[name][stage] = text or f"CRASHED({process.returncode})"
        del left[: len(lines)]
    return answers


def line_of(name: str, answers: dict[str, str]) -> str:
    """Return the line for a case."""
    without, with_own, with_other = (answers[stage] for stage in STAGES)
    line = f"{name} {without}"
    if with_own != without:
        line += f" [with: {with_own}]"
    if with_other != with_own:
        line += f" [other: {with_other}]"
    return line


def main() -> None:
    """Run the cases that the arguments name, or all of them, in as many child processes as it takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--export", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="cases; by default all of them")
    options = parser.parse_args()
    if options.export is not None:
        memory.export(options.export)
    elif options.serve:
        serve(options.names, options.serve.split(","))
    else:
        for name, answers in ask(options.names or list(CASES)).items():
            print(line_of(name, answers))


if __name__ == "__main__":
    main()
