# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Print what cuda-core and this package do differently, call by call, on the simulated driver.

    python tests/clients/compare_with_cuda_core.py [--all] [--jobs N] [SUBJECT ...]

Python is one that has cuda-core, this package and NVRTC. Each subject of compared_calls.py is tried in two processes:
one finds cuda-core, the other this package in its place. A difference is accepted by a rule below, or by a line of
accepted_differences.json that has the reason of its kind; all others are errors, and so are lines that nothing needs.
``--all`` prints the accepted ones too.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter

import compared_calls
from simulated import simulated_environment

HERE = pathlib.Path(__file__).resolve().parent
ACCEPTED = HERE / "accepted_differences.json"
LIMIT = 300  # seconds for one subject on one side
CALLS = str(HERE / "compared_calls.py")
SIDES = {"cuda-core": [CALLS], "ours": ["-m", "cuda_core_cffi.as_cuda_core", CALLS]}
REFUSALS = {"TypeError", "ValueError", "RuntimeError", "AttributeError", "BufferError", "LookupError", "OverflowError"}


def outcomes(side: str, subject: str, folder: pathlib.Path, environment: dict[str, str]) -> dict[str, str]:
    """Try a subject on one side. A case that ends the process is left out of a new one, which goes on behind it."""
    file = folder / f"{side}-{subject}.jsonl"
    found: dict[str, str] = {}
    while True:
        try:
            done = subprocess.run(
                [sys.executable, "-X", "faulthandler", *SIDES[side], subject, str(file), str(len(found))],
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
            ended = f"ends the process ({done.returncode})"
            said = done.stderr[-2000:]
        except subprocess.TimeoutExpired:
            ended, said = "does not end", ""
        before = len(found)
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        for line in lines:
            if "case" in line:
                found[line["case"]] = line.get("outcome", ended)
        if any("done" in line for line in lines):
            return found
        if len(found) == before:
            raise SystemExit(f"{side}: {subject} cannot be tried: {ended}\n{said}")


def split(outcome: str) -> tuple[str, list[str], str]:
    """Return what an outcome is (returns, raises, or else), of which classes, and with which warnings."""
    what, _, told = outcome.partition(" and warns ")
    kind, *rest = what.split(" ")
    return kind, rest, told


def is_mistake(case: str) -> bool:
    """Return whether a case passes what no program means."""
    return any(case.endswith(f"={shown}") for shown in compared_calls.WRONG if shown not in compared_calls.PLAUSIBLE)


def rule(case: str, theirs: str, ours: str) -> str | None:
    """Return why a difference is accepted whatever the call is; None: it is not."""
    their_kind, their_classes, their_warnings = split(theirs)
    our_kind, our_classes, our_warnings = split(ours)
    if their_kind in ("ends", "does"):
        return "cuda-core crashes or hangs"
    same = their_kind == our_kind and our_classes == their_classes
    if same and set(our_warnings.split()) <= set(their_warnings.split()):
        return "without the warning"
    if their_kind == our_kind == "returns" and " object at 0x>" in theirs and our_classes[:1] == ["str"]:
        return "shows more"
    if their_kind == our_kind == "raises":
        if their_classes[0] in our_classes:
            return "a subclass of the same exception"
        if REFUSALS.intersection(our_classes):
            return "both refuse; here before a driver call, with the exception of the Python manual"
    if their_kind == "raises" and our_kind == "returns":
        return "accepted here, refused by cuda-core"
    if our_kind == "raises" and REFUSALS.intersection(our_classes) and is_mistake(case):
        return "a mistake, which cuda-core does not tell"
    return None


def compare(subject: str, folder: pathlib.Path, environment: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return both outcomes of each case that both tried, and of each that only cuda-core knows."""
    theirs, ours = (outcomes(side, subject, folder, environment) for side in SIDES)
    return {case: (outcome, ours.get(case, "absent")) for case, outcome in theirs.items()}


def main() -> int:
    """Compare, and say what is not accepted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="print the accepted differences too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many subjects at a time")
    parser.add_argument("subjects", nargs="*", help=f"some of {', '.join(compared_calls.subjects())}; by default all")
    arguments = parser.parse_args()
    asked = arguments.subjects or compared_calls.subjects()
    cases: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = simulated_environment(folder)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for found in pool.map(lambda subject: compare(subject, folder, environment), asked):
                cases |= found
    accepted: dict[str, list[str]] = json.loads(ACCEPTED.read_text())
    patterns = [(pattern, reason) for reason, listed in accepted.items() for pattern in listed]
    needed: set[str] = set()
    counts: Counter[str] = Counter()
    for case, (theirs, ours) in cases.items():
        line = f"{case} | {theirs} | {ours}"
        if theirs == ours:
            counts["the same"] += 1
            continue
        reason = rule(case, theirs, ours)
        if reason is None:
            fitting = [(pattern, why) for pattern, why in patterns if fnmatch.fnmatchcase(line, pattern)]
            needed.update(pattern for pattern, _ in fitting)
            reason = fitting[0][1] if fitting else None
        counts[reason or "not accepted"] += 1
        if reason is None or arguments.all:
            print(line if reason is None else f"{line} | {reason}")
    unneeded = [] if arguments.subjects else [pattern for pattern, _ in patterns if pattern not in needed]
    for pattern in unneeded:
        print(f"not seen: {pattern}")
    print(f"compared with cuda-core: {len(cases)} cases")
    for reason, count in counts.most_common():
        print(f"{count:6} {reason}")
    return int(counts["not accepted"] > 0 or bool(unneeded))


if __name__ == "__main__":
    sys.exit(main())
