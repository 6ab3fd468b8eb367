# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the elements of an array overlap in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

SEARCH_LIMIT = 10_000  # states; some milliseconds of work

Axis = tuple[int, int]  # stride, and the largest difference of two indices: extent - 1


def elements_are_apart(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether no two indices lead to the same offset.

    Two indices meet where their differences ``d``, not all zero, give ``sum(d * stride) == 0`` with
    ``abs(d) < extent`` on every axis. Signs of strides therefore do not matter.

    The answer is exact for whatever slicing, permuting and reshaping make of a dense array, and for all layouts of up
    to two axes. For interleaved strides on three or more axes the search gives up after a while and says False.
    """
    if 0 in shape:
        return True
    axes = sorted((abs(stride), extent - 1) for extent, stride in zip(shape, strides) if extent > 1)
    if axes and axes[0][0] == 0:
        return False
    span = 0
    for stride, reach in axes:
        if stride <= span:
            break
        span += stride * reach
    else:
        return True  # every stride steps over all that the shorter ones reach
    axes = reduced(axes)
    if len(axes) <= 2:
        return len(axes) < 2  # what is left of two axes has equal strides
    if math.prod(reach + 1 for _, reach in axes) > sum(stride * reach for stride, reach in axes) + 1:
        return False  # more elements than places
    return not may_cancel(sorted(axes, reverse=True))


def reduced(axes: list[Axis]) -> list[Axis]:
    """Return fewer or shorter axes with the same answer.

    The other axes can only make up for multiples of their strides' common divisor, and only as far as they reach.
    """
    position = 0
    while len(axes) > 1 and position < len(axes):
        stride, reach = axes[position]
        others = axes[:position] + axes[position + 1 :]
        divisor = math.gcd(*(stride for stride, _ in others))
        step = divisor // math.gcd(divisor, stride)
        bound = min(reach, sum(stride * reach for stride, reach in others) // stride) // step
        if bound == 0:
            axes, position = others, 0
        elif bound < reach:
            axes, position = [(stride * step, bound), *others], 0
        else:
            position += 1
    return axes


def may_cancel(axes: list[Axis]) -> bool:
    """Return whether differences on several axes, the longest stride first, add up to nothing, or it takes too long."""
    reaches = [0] * (len(axes) + 1)
    divisors = [0] * (len(axes) + 1)
    for position in reversed(range(len(axes))):
        stride, reach = axes[position]
        reaches[position] = reaches[position + 1] + stride * reach
        divisors[position] = math.gcd(divisors[position + 1], stride)
    # a difference and its negative are the same pair, so the first that is not zero is positive
    waiting = [
        (position + 1, stride * difference)
        for position, (stride, reach) in enumerate(axes[:-1])
        for difference in range(1, min(reach, reaches[position + 1] // stride, SEARCH_LIMIT + 1) + 1)
    ]
    seen = set(waiting)
    while waiting:
        position, missing = waiting.pop()
        if missing == 0 or len(seen) > SEARCH_LIMIT:
            return True
        if position == len(axes) or missing % divisors[position]:
            continue
        stride, reach = axes[position]
        lowest = max(-reach, -((reaches[position + 1] - missing) // stride))
        highest = min(reach, (reaches[position + 1] + missing) // stride)
        if highest - lowest > SEARCH_LIMIT:
            return True
        for difference in range(lowest, highest + 1):
            state = position + 1, abs(missing - stride * difference)
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    return False
