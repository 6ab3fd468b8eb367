# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Finds a shortest sequence: leaves parts out as long as what is left fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from .child import Outcome
from .sequence import ASSIGNMENT, VARIABLE, Step


def shrink(
    finding: Outcome, run_again: Callable[[Sequence[Step]], Outcome], seconds: float
) -> tuple[tuple[Step, ...], Outcome | None]:
    """Leave out of a sequence what its finding does not need.

    Parameters
    ----------
    finding : Outcome
        What was found.
    run_again : callable
        Runs a sequence.
    seconds : float
        When to stop.

    Returns
    -------
    tuple of Step, Outcome or None
        The shortest sequence found, and what it did; None if the finding did not come again.
    """
    end = time.monotonic() + seconds
    best: Outcome | None = None

    def fails(steps: Sequence[Step]) -> bool:
        nonlocal best
        result = run_again(steps)
        if not is_same(result, finding):
            return False
        best = result
        return True

    steps = list(finding.steps)
    alone = [Step(number, 0, step.line) for number, step in enumerate(steps)]
    if len({step.thread for step in steps}) > 1 and fails(alone):
        steps = alone
    elif not fails(steps):
        return tuple(steps), None
    for part in (needed(steps), needed(steps, and_users=True)):
        if 0 < len(part) < len(steps) and fails(part):
            steps = part
            break
    size = max(len(steps) // 2, 1)
    while size and time.monotonic() < end:
        removed = False
        start = len(steps) - size  # the end of a sequence needs the beginning more often than the other way round
        while start > -size and time.monotonic() < end:
            rest = steps[: max(start, 0)] + steps[max(start + size, 0) :]
            if rest and fails(rest):
                steps = rest
                removed = True
            start -= size
        if not removed or size > 1:
            size //= 2
    return tuple(steps), best


def needed(steps: Sequence[Step], and_users: bool = False) -> list[Step]:
    """Return the last step and those that make what it uses; and those that use the same, if asked for."""
    wanted = set(VARIABLE.findall(steps[-1].line))
    kept = [steps[-1]]
    for step in reversed(steps[:-1]):
        names = VARIABLE.findall(step.line)
        if names and (names[0] in wanted if ASSIGNMENT.fullmatch(step.line) else and_users and wanted & set(names)):
            wanted.update(names)
            kept.append(step)
        elif and_users and wanted & set(names):
            kept.append(step)
    return kept[::-1]


def is_same(result: Outcome, finding: Outcome) -> bool:
    """Tell whether two findings are the same fault, as far as can be seen."""
    if finding.kind in ("cleanup", "exception", "misuse"):
        return (result.kind, result.key) == (finding.kind, finding.key)
    return result.kind == finding.kind
