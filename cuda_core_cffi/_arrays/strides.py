# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of shapes and strides, and calculations with them. Strides are in elements."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from operator import index

from cuda_core_cffi._core.integers import class_of_handle

MAX_NDIM = 64  # as in NumPy
LARGEST = 2**63 - 1  # of extents, strides and offsets
LOWEST = -LARGEST - 1


def checked_integer(name: str, value: object) -> int:
    """Return an integer of any size."""
    if class_of_handle(value) is None:
        with contextlib.suppress(TypeError):
            return index(value)  # type: ignore[arg-type]  # that is what is found out
    raise TypeError(f"{name} must be an integer, not {type(value).__name__} {value!r}")


def fitting(name: str, value: int) -> int:
    """Return an integer if it fits in 64 bits."""
    if not LOWEST <= value <= LARGEST:
        raise OverflowError(f"{name} {value} does not fit in 64 bits")
    return value


def are_plain(values: object, smallest: int) -> bool:
    """Return whether this is a tuple of at most 64 ints of at most 64 bits: for most, the only check that it takes."""
    if type(values) is not tuple or len(values) > MAX_NDIM:
        return False
    for value in values:  # noqa: SIM110 (a generator takes several times as long)
        if type(value) is not int or not smallest <= value <= LARGEST:
            return False
    return True


def checked_integers(name: str, values: tuple[int, ...]) -> tuple[int, ...]:
    """Return a tuple of at most 64 integers of at most 64 bits, as plain ones."""
    if are_plain(values, LOWEST):
        return values
    if not isinstance(values, tuple):
        raise TypeError(f"{name} must be a tuple of integers, not {type(values).__name__} {values!r}")
    checked_ndim(len(values))
    return tuple([fitting(f"{name} entry", checked_integer(f"each entry of {name}", value)) for value in values])


def checked_ndim(ndim: int) -> int:
    """Return a number of dimensions, if a layout can have so many."""
    if ndim > MAX_NDIM:
        raise ValueError(f"a layout has at most {MAX_NDIM} dimensions, not {ndim}")
    return ndim


def checked_extents(shape: tuple[int, ...], smallest: int = 0) -> tuple[int, ...]:
    """Return a shape, of plain integers that are not too small."""
    if not are_plain(shape, smallest):
        shape = checked_integers("shape", shape)
        if min(shape, default=0) < smallest:
            raise ValueError(f"the extents of a shape must not be negative, as in {shape}")
    return shape


def checked_strides(strides: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Return strides for so many dimensions, of plain integers."""
    strides = checked_integers("strides", strides)
    if len(strides) != ndim:
        raise ValueError(f"strides {strides} must have one entry for each of {ndim} dimensions")
    return strides


def divided(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return strides in elements for strides in bytes."""
    for stride in strides:
        if stride % itemsize:
            raise ValueError(f"stride {stride} in bytes is not divisible by the element size, {itemsize}")
    return tuple([stride // itemsize for stride in strides])


def checked_itemsize(name: str, value: int) -> int:
    """Return a size of elements in bytes."""
    size = fitting(name, checked_integer(name, value))
    if size < 1:
        raise ValueError(f"{name} must be at least 1 byte, not {size}")
    return size


def axis_number(name: str, value: int, ndim: int) -> int:
    """Return which axis is meant; negative ones count from the end."""
    axis = checked_integer(name, value)
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name} {axis} is out of range for {ndim} dimensions")
    return axis % ndim


def distinct_axes(name: str, axes: Sequence[int], ndim: int) -> list[int]:
    """Return which axes are meant, none of them twice."""
    numbers = [axis_number(name, axis, ndim) for axis in axes]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{name} {tuple(axes)} names an axis more than once")
    return numbers


def permutation(name: str, axes: Sequence[int], ndim: int) -> Sequence[int]:
    """Return an order of all axes."""
    if len(axes) != ndim:
        raise ValueError(f"{name} {tuple(axes)} must name each of {ndim} axes")
    return distinct_axes(name, axes, ndim)


def checked_axis_order(stride_order: str | tuple[int, ...], ndim: int) -> Sequence[int]:
    """Return the axes from the longest stride to the shortest."""
    if isinstance(stride_order, (tuple, list)):
        return permutation("stride_order", stride_order, ndim)
    if stride_order == "C":
        return range(ndim)
    if stride_order == "F":
        return range(ndim - 1, -1, -1)
    raise ValueError(
        "stride_order must be 'C', 'F', a permutation of the axes or, where there is an order to keep, 'K'; "
        f"not {stride_order!r}"
    )


def dense_strides(shape: tuple[int, ...], order: Sequence[int]) -> tuple[int, ...]:
    """Return strides without gaps, for axes from the longest stride to the shortest; zeros where a shape is empty."""
    strides = [0] * len(shape)
    if 0 not in shape:
        step = 1
        for axis in reversed(order):
            strides[axis] = step
            step *= shape[axis]
        fitting(f"the volume of shape {shape},", step)
    return tuple(strides)


def follow(shape: Sequence[int], strides: Sequence[int], axes: Iterable[int]) -> bool:
    """Return whether strides have no gaps, for axes from the shortest stride to the longest."""
    expected = 1
    for axis in axes:
        extent = shape[axis]
        if extent != 1:
            if strides[axis] != expected:
                return 0 in shape
            expected *= extent
    return True


def merged(axes: Iterable[tuple[int, int]], mask: int = -1) -> list[tuple[int, int]]:
    """Return pairs of extent and stride with those joined to the one before that the mask and their strides allow."""
    result: list[tuple[int, int]] = []
    for axis, (extent, stride) in enumerate(axes):
        if result and mask >> axis & 1 and result[-1][1] == extent * stride:
            result[-1] = result[-1][0] * extent, stride
        else:
            result.append((extent, stride))
    return result


def with_inferred_extent(shape: tuple[int, ...], volume: int) -> tuple[int, ...]:
    """Return a shape with its one -1 replaced by what the volume leaves for it."""
    if shape.count(-1) > 1:
        raise ValueError(f"only one extent can be -1, not {shape.count(-1)} as in {shape}")
    others = -math.prod(shape)
    if others == 0:
        raise ValueError(f"any extent could stand for -1 in {shape}")
    if volume % others:
        raise ValueError(f"no extent stands for -1 in {shape}: the volume is {volume}")
    inferred = fitting("extent", volume // others)
    return tuple([inferred if extent == -1 else extent for extent in shape])


def reshaped_strides(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return strides that give elements a new shape of the same volume, which is not 0, without moving them, if any.

    An axis of extent 1 gets the stride with which it would follow, without a gap, the axis to its right.
    """
    blocks = merged((extent, stride) for extent, stride in zip(shape, strides) if extent != 1)
    left, step = 1, strides[-1] if strides else 1
    result = []
    for extent in reversed(new):
        if left == 1 != extent:
            left, step = blocks.pop()
        if left % extent:
            return None
        result.append(step)
        step *= extent
        left //= extent
    return tuple(reversed(result))


def broadcast_strides(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array repeated to a new shape."""
    added = len(new) - len(shape)
    if added < 0:
        raise ValueError(f"shape {shape} has more dimensions than {new}")
    result = [0] * added
    for old, extent, stride in zip(shape, new[added:], strides):
        if old not in (1, extent):
            raise ValueError(f"shape {shape} cannot be broadcast to {new}: {old} is neither 1 nor {extent}")
        result.append(stride if old == extent else 0)
    return tuple(result)


def unsqueezed_axes(
    shape: Sequence[int], strides: Sequence[int], positions: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return shape and strides with axes of extent 1 in certain positions of the result, ``positions``.

    A new axis gets the stride with which it would follow, without a gap, the axis to its right.
    """
    old = list(zip(shape, strides))
    step = strides[-1] if strides else 1
    extents, steps = [], []
    for position in reversed(range(len(old) + len(positions))):
        extent, stride = (1, step) if position in positions else old.pop()
        extents.append(extent)
        steps.append(stride)
        step = extent * stride
    return extents[::-1], steps[::-1]


def unpacked_axes(
    shape: Sequence[int], strides: Sequence[int], slice_offset: int, axis: int, factor: int
) -> tuple[list[int], list[int], int]:
    """Return shape, strides and offset once an element has become so many along an axis of stride 1."""
    extents, steps = list(shape), [step * factor for step in strides]
    extents[axis], steps[axis] = fitting("extent", extents[axis] * factor), 1
    return extents, steps, slice_offset * factor


def packed_axes(
    shape: Sequence[int], strides: Sequence[int], slice_offset: int, axis: int, factor: int
) -> tuple[list[int], list[int], int]:
    """Return shape, strides and offset once so many elements along an axis of stride 1 have become one."""
    extents, steps = list(shape), list(strides)
    if slice_offset % factor:
        raise ValueError(f"{factor} elements cannot become one: slice offset {slice_offset} is not divisible by that")
    if extents[axis] % factor:
        raise ValueError(f"{factor} elements cannot become one: extent {extents[axis]} is not divisible by that")
    extents[axis] //= factor
    for other, step in enumerate(steps):
        if other != axis:
            if step % factor:
                raise ValueError(f"{factor} elements cannot become one: stride {step} is not divisible by that")
            steps[other] = step // factor
    return extents, steps, slice_offset // factor
