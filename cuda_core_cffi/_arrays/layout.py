# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How the elements of an array lie in memory: shape, strides and the size of an element.

A layout is arithmetic only: it touches neither memory nor a driver. Whatever rearranges one returns another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import ClassVar

from cuda_core_cffi._arrays.overlap import elements_are_apart
from cuda_core_cffi._arrays.strides import (
    LARGEST,
    LOWEST,
    are_plain,
    axis_number,
    broadcast_strides,
    checked_axis_order,
    checked_extents,
    checked_integer,
    checked_integers,
    checked_itemsize,
    checked_ndim,
    checked_strides,
    dense_strides,
    distinct_axes,
    divided,
    fitting,
    follow,
    merged,
    packed_axes,
    permutation,
    reshaped_strides,
    unpacked_axes,
    unsqueezed_axes,
    with_inferred_extent,
)

NEW = object.__new__


class _StridedLayout:
    """The layout of an array of up to 64 dimensions.

    Parameters
    ----------
    shape : tuple of int
        The extents, none of them negative.
    strides : tuple of int or None
        As many strides, in elements. None means C order; such a layout is not equal to one that spells these strides
        out.
    itemsize : int
        The size of an element in bytes, at least 1.
    divide_strides : bool, optional
        Whether ``strides`` are given in bytes. Default False.

    Raises
    ------
    TypeError
        If ``shape`` or ``strides`` is not a tuple of integers, or ``itemsize`` not an integer.
    ValueError
        If the lengths differ or exceed 64, an extent is negative, ``itemsize`` is less than 1, or a stride in bytes is
        not a multiple of it.
    OverflowError
        If a number does not fit in 64 bits.

    Notes
    -----
    Layouts do not change, so threads may share them. They compare by shape, strides, element size and offset, and have
    no hash.

    Every method raises TypeError for what is not of the type that it wants, and OverflowError for a number, given or
    found, that does not fit in 64 bits. The volume and the offsets are looked at when asked for and not before: the
    shape of a broadcast array may be as large as it likes.
    """

    __slots__ = ("_itemsize", "_shape", "_slice_offset", "_steps", "_strides")

    _itemsize: int
    _shape: tuple[int, ...]
    _slice_offset: int
    _steps: tuple[int, ...] | None  # explicit strides; for C order None until something asks
    _strides: tuple[int, ...] | None

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        itemsize: int,
        divide_strides: bool = False,
    ) -> None:
        # one is made for every array that a kernel takes: the checks proper are for what is not as usual
        if not are_plain(shape, 0):
            shape = checked_extents(shape)
        if type(itemsize) is not int or not 0 < itemsize <= LARGEST:
            itemsize = checked_itemsize("itemsize", itemsize)
        if strides is not None:
            if not are_plain(strides, LOWEST) or len(strides) != len(shape):
                strides = checked_strides(strides, len(shape))
            if divide_strides:
                strides = divided(strides, itemsize)
        self._shape = shape
        self._itemsize = itemsize
        self._strides = self._steps = strides
        self._slice_offset = 0

    @classmethod
    def dense(cls, shape: tuple[int, ...], itemsize: int, stride_order: str | tuple[int, ...] = "C") -> _StridedLayout:
        """Return a layout without gaps, its strides spelt out.

        Parameters
        ----------
        shape : tuple of int
            The extents.
        itemsize : int
            The size of an element in bytes.
        stride_order : str or tuple of int, optional
            ``"C"`` (default): the last axis is the densest. ``"F"``: the first is. A permutation of the axes: the
            last one named is. Where an extent is 0, all strides are 0.

        Raises
        ------
        ValueError
            If ``stride_order`` is none of these.
        """
        shape = checked_extents(shape)
        strides = dense_strides(shape, checked_axis_order(stride_order, len(shape)))
        return make_layout(shape, strides, checked_itemsize("itemsize", itemsize))

    @classmethod
    def dense_like(cls, other: _StridedLayout, stride_order: str | tuple[int, ...] = "K") -> _StridedLayout:
        """Return a layout without gaps or offset that has another's shape and element size.

        Parameters
        ----------
        other : _StridedLayout
            The other layout.
        stride_order : str or tuple of int, optional
            ``"K"`` (default) keeps the order of the other's strides; else as in :meth:`dense`. A layout that is as
            wanted already stays as it is, C order given by None included.

        Raises
        ------
        ValueError
            If ``stride_order`` is none of these.
        """
        if not isinstance(other, _StridedLayout):
            raise TypeError(f"other must be a _StridedLayout, not {type(other).__name__}")
        return other.to_dense(stride_order)

    def __repr__(self) -> str:
        offset = f", slice_offset={self._slice_offset}" if self._slice_offset else ""
        return f"_StridedLayout(shape={self._shape}, strides={self._strides}, itemsize={self._itemsize}{offset})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _StridedLayout):
            return NotImplemented
        return (
            self._shape == other._shape
            and self._strides == other._strides
            and self._itemsize == other._itemsize
            and self._slice_offset == other._slice_offset
        )

    def required_size_in_bytes(self) -> int:
        """Return how much memory, from the start of it, holds every element.

        Returns
        -------
        int
            The size in bytes: up to the end of the last element, so with the gaps and what precedes the offset.

        Raises
        ------
        ValueError
            If elements lie before the start.
        """
        low, high = self.offset_bounds
        if low < 0:
            raise ValueError(f"no size holds a layout with elements before its start: its lowest offset is {low}")
        return fitting("size in bytes", (high + 1) * self._itemsize)

    def to_dense(self, stride_order: str | tuple[int, ...] = "K") -> _StridedLayout:
        """Return :meth:`dense_like` of this layout."""
        if stride_order == "K":
            order: Sequence[int] = self.stride_order
            as_wanted = self._is_contiguous(reversed(order))
        else:
            order = checked_axis_order(stride_order, len(self._shape))
            as_wanted = isinstance(stride_order, str) and self._is_contiguous(reversed(order))
        if as_wanted and not self._slice_offset:
            return self
        return make_layout(self._shape, dense_strides(self._shape, order), self._itemsize)

    def sliced(self, slices: int | slice | tuple[int | slice, ...]) -> _StridedLayout:
        """Return the layout of a part of the array.

        Parameters
        ----------
        slices : int, slice or tuple of int and slice
            For the first axes, as for a list: an integer picks an element and drops the axis, negative ones count from
            the end. Axes not mentioned stay whole.

        Returns
        -------
        _StridedLayout
            The layout, with the offset of its first element. Where nothing is left, all its strides are 0.

        Raises
        ------
        ValueError
            If there are more slices than axes, an index is out of range, or the step of a slice is 0.
        """
        given = slices if isinstance(slices, tuple) else (slices,)
        if len(given) > len(self._shape):
            raise ValueError(f"{len(given)} slices for {len(self._shape)} dimensions")
        steps = self._explicit_strides()
        shape, strides, offset = [], [], self._slice_offset
        for axis, item in enumerate(given):
            extent, stride = self._shape[axis], steps[axis]
            if isinstance(item, slice):
                kept = range(*item.indices(extent))
                shape.append(len(kept))
                strides.append(stride * kept.step)
                offset += stride * kept[0] if kept else 0
            else:
                position = checked_integer(f"the index for axis {axis}", item)
                if not -extent <= position < extent:
                    raise ValueError(f"index {position} is out of range for axis {axis} with extent {extent}")
                offset += stride * (position % extent)
        shape += self._shape[len(given) :]
        strides += steps[len(given) :]
        return self._rearranged(shape, [0] * len(shape) if 0 in shape else strides, offset)

    __getitem__ = sliced
    __iter__: ClassVar[None] = None  # __getitem__ alone would make it iterable

    def permuted(self, axis_order: tuple[int, ...]) -> _StridedLayout:
        """Return the layout with its axes in another order.

        Parameters
        ----------
        axis_order : tuple of int
            Every axis once: first the one that shall be first. Negative ones count from the end.

        Raises
        ------
        ValueError
            If it is not a permutation of the axes.
        """
        order = permutation("axis_order", checked_integers("axis_order", axis_order), len(self._shape))
        steps = self._explicit_strides()
        return self._rearranged(
            [self._shape[axis] for axis in order], [steps[axis] for axis in order], self._slice_offset
        )

    def reshaped(self, shape: tuple[int, ...]) -> _StridedLayout:
        """Return the layout with another shape, the elements staying where they are and in C order of their indices.

        Parameters
        ----------
        shape : tuple of int
            The new extents. One of them may be -1: what the others leave.

        Returns
        -------
        _StridedLayout
            The layout. Where the volume is 0, all its strides are 0.

        Raises
        ------
        ValueError
            If the volume is not the same, or no strides give this shape without moving elements.
        """
        shape = checked_extents(shape, -1)
        volume = math.prod(self._shape)
        if -1 in shape:
            shape = with_inferred_extent(shape, volume)
        if math.prod(shape) != volume:
            raise ValueError(f"a layout of shape {self._shape} cannot take shape {shape}: the volumes differ")
        strides: tuple[int, ...] | None = (0,) * len(shape)
        if volume:
            strides = reshaped_strides(self._shape, self._explicit_strides(), shape)
        if strides is None:
            raise ValueError(f"no strides give shape {shape} to {self!r} without moving elements")
        return self._rearranged(shape, strides, self._slice_offset)

    def flattened(self, start_axis: int = 0, end_axis: int = -1, mask: int | None = None) -> _StridedLayout:
        """Return the layout with adjacent axes merged wherever one stride can stand for two.

        Parameters
        ----------
        start_axis, end_axis : int, optional
            The first and the last axis to consider. Default: all of them.
        mask : int, optional
            Instead of these: bit ``i`` says that axis ``i`` may be merged with the one before it. To flatten several
            layouts of one rank alike, combine with ``&`` what :meth:`flattened_axis_mask` says of each.

        Returns
        -------
        _StridedLayout
            The layout. Of a layout without axes, one of shape ``(1,)``.

        Raises
        ------
        ValueError
            If an axis is out of range.
        """
        if mask is not None:
            mask = checked_integer("mask", mask)
            if mask < 0:
                raise OverflowError(f"mask must not be negative, not {mask}")
        elif (start_axis, end_axis) == (0, -1):
            mask = -1
        else:
            ndim = len(self._shape)
            first, last = axis_number("start_axis", start_axis, ndim), axis_number("end_axis", end_axis, ndim)
            mask = (2 << last) - (2 << first) if first < last else 0
        axes = merged(zip(self._shape, self._explicit_strides()), mask) or [(1, 1)]
        return self._rearranged(
            [fitting("extent", extent) for extent, _ in axes], [stride for _, stride in axes], self._slice_offset
        )

    def flattened_axis_mask(self) -> int:
        """Return which axes :meth:`flattened` can merge with the one before them: bit ``i`` stands for axis ``i``."""
        shape, steps = self._shape, self._explicit_strides()
        return sum(1 << axis for axis in range(1, len(shape)) if steps[axis - 1] == steps[axis] * shape[axis])

    def squeezed(self) -> _StridedLayout:
        """Return the layout without its axes of extent 1; of an empty one, shape and strides ``(0,)``."""
        if 0 in self._shape:
            return make_layout((0,), (0,), self._itemsize, self._slice_offset)
        kept = [(extent, step) for extent, step in zip(self._shape, self._explicit_strides()) if extent != 1]
        return self._rearranged([extent for extent, _ in kept], [step for _, step in kept], self._slice_offset)

    def unsqueezed(self, axis: int | tuple[int, ...]) -> _StridedLayout:
        """Return the layout with axes of extent 1 added.

        Parameters
        ----------
        axis : int or tuple of int
            Where the new axes are in the result. Negative ones count from its end.

        Raises
        ------
        ValueError
            If an axis is out of range or occurs twice, or the result has more than 64.
        """
        added = axis if isinstance(axis, (tuple, list)) else (axis,)
        if not added:
            return self
        ndim = checked_ndim(len(self._shape) + len(added))
        positions = distinct_axes("axis", added, ndim)
        shape, strides = unsqueezed_axes(self._shape, self._explicit_strides(), positions)
        return self._rearranged(shape, strides, self._slice_offset)

    def broadcast_to(self, shape: tuple[int, ...]) -> _StridedLayout:
        """Return the layout of the array repeated to a larger shape.

        Parameters
        ----------
        shape : tuple of int
            The new extents. Counted from the last, each equals the old one, or the old one is 1 or absent.

        Returns
        -------
        _StridedLayout
            The layout. The stride of every axis added or enlarged is 0.

        Raises
        ------
        ValueError
            If the shape does not follow from the old one.
        """
        shape = checked_extents(shape)
        strides = broadcast_strides(self._shape, self._explicit_strides(), shape)
        return make_layout(shape, strides, self._itemsize, self._slice_offset)

    def repacked(self, itemsize: int, data_ptr: int = 0, axis: int = -1, keep_dim: bool = True) -> _StridedLayout:
        """Return the layout of the same bytes as elements of another size.

        Parameters
        ----------
        itemsize : int
            The new size in bytes: a divisor of the old one (an element becomes several) or a multiple of it (several
            become one).
        data_ptr : int, optional
            The address of the memory, to check that larger elements are aligned in it. Default 0: not checked.
        axis : int, optional
            The axis along which elements are taken apart or together. Its stride is 1 and its extent not 0. Default
            the last.
        keep_dim : bool, optional
            Whether an axis of which one larger element is left stays. Default True.

        Returns
        -------
        _StridedLayout
            The layout; for the old size this one, whatever the other arguments.

        Raises
        ------
        ValueError
            If the sizes, the axis or the address are not as described, or larger elements do not divide the axis, the
            other strides and the offset.
        """
        new, old = checked_itemsize("itemsize", itemsize), self._itemsize
        if new == old:
            return self
        if new % old and old % new:
            raise ValueError(f"itemsize must be a multiple or a divisor of {old}, not {new}")
        if (address := checked_integer("data_ptr", data_ptr)) % new and new > old:
            raise ValueError(f"data_ptr {address:#x} is not aligned to {new} bytes")
        axis = axis_number("axis", axis, len(self._shape))
        steps = self._explicit_strides()
        if self._shape[axis] == 0:
            raise ValueError(f"the axis to repack, {axis}, must not be empty")
        if steps[axis] != 1:
            raise ValueError(f"the stride of the axis to repack, {axis}, must be 1, not {steps[axis]}")
        if new > old:
            shape, strides, offset = packed_axes(self._shape, steps, self._slice_offset, axis, new // old)
            if shape[axis] == 1 and not keep_dim:
                del shape[axis], strides[axis]
        else:
            shape, strides, offset = unpacked_axes(self._shape, steps, self._slice_offset, axis, old // new)
        return self._rearranged(shape, strides, offset, new)

    def max_compatible_itemsize(self, max_itemsize: int = 16, data_ptr: int = 0, axis: int = -1) -> int:
        """Return the largest element size, of those that divide ``max_itemsize``, for :meth:`repacked`.

        Parameters
        ----------
        max_itemsize : int, optional
            The upper limit in bytes, not less than the element size. Default 16.
        data_ptr : int, optional
            The address of the memory. Where it is not aligned to the element size, the result is smaller than that.
            Default 0: aligned to everything.
        axis : int, optional
            The axis along which elements would be taken together. Default the last.

        Returns
        -------
        int
            The size in bytes; the present one where the axis is empty or its stride not 1.

        Raises
        ------
        ValueError
            If ``max_itemsize`` is too small or ``axis`` out of range.
        """
        limit, address = checked_itemsize("max_itemsize", max_itemsize), checked_integer("data_ptr", data_ptr)
        itemsize = self._itemsize
        if limit < itemsize:
            raise ValueError(f"max_itemsize must be at least the element size, {itemsize}, not {limit}")
        axis = axis_number("axis", axis, len(self._shape))
        steps = self._explicit_strides()
        if self._shape[axis] == 0 or steps[axis] != 1:
            return itemsize
        counts = self._shape[axis], self._slice_offset, *steps[:axis], *steps[axis + 1 :]
        size = math.gcd(limit, address, itemsize * math.gcd(*counts))
        return size if size % itemsize == 0 else math.gcd(size, itemsize)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self._itemsize

    @property
    def slice_offset(self) -> int:
        """Where the element at index 0 of every axis is, in elements from the start. Only slicing makes it not 0."""
        return self._slice_offset

    @property
    def slice_offset_in_bytes(self) -> int:
        """:attr:`slice_offset` in bytes."""
        return fitting("offset in bytes", self._slice_offset * self._itemsize)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._shape

    @property
    def strides(self) -> tuple[int, ...] | None:
        """The strides in elements, or None for C order."""
        return self._strides

    @property
    def strides_in_bytes(self) -> tuple[int, ...] | None:
        """The strides in bytes, or None for C order."""
        if self._strides is None:
            return None
        itemsize = self._itemsize
        return tuple([fitting("stride in bytes", stride * itemsize) for stride in self._strides])

    @property
    def stride_order(self) -> tuple[int, ...]:
        """The axes from the longest stride to the shortest; of equal ones, the larger axis first."""
        shape = self._shape
        if self._strides is None:
            return tuple(range(len(shape)))
        steps = self._strides
        return tuple(sorted(range(len(shape)), key=lambda axis: (-abs(steps[axis]), -shape[axis])))

    @property
    def volume(self) -> int:
        """The number of elements."""
        return fitting("volume", math.prod(self._shape))

    @property
    def is_unique(self) -> bool:
        """Whether no two elements share memory.

        Exact but for interleaved strides on three or more axes, which nothing but manual strides leads to: where
        finding out would take long, False.
        """
        return self._strides is None or elements_are_apart(self._shape, self._strides)

    @property
    def is_contiguous_c(self) -> bool:
        """Whether the elements follow one another in C order of their indices."""
        return self._strides is None or self._is_contiguous(range(len(self._shape) - 1, -1, -1))

    @property
    def is_contiguous_f(self) -> bool:
        """Whether the elements follow one another in Fortran order of their indices."""
        return self._is_contiguous(range(len(self._shape)))

    @property
    def is_contiguous_any(self) -> bool:
        """Whether the elements follow one another in C order of their indices once the axes are permuted."""
        return self.is_contiguous_c or self._is_contiguous(reversed(self.stride_order))

    @property
    def is_dense(self) -> bool:
        """Whether the layout is contiguous in some order of axes and has no offset."""
        return not self._slice_offset and self.is_contiguous_any

    @property
    def offset_bounds(self) -> tuple[int, int]:
        """The lowest and the highest offset of an element, in elements; ``(0, -1)`` where there is none."""
        shape = self._shape
        if 0 in shape:
            return 0, -1
        low = high = self._slice_offset
        if self._strides is None:
            high += math.prod(shape) - 1
        else:
            for extent, stride in zip(shape, self._strides):
                if stride < 0:
                    low += (extent - 1) * stride
                else:
                    high += (extent - 1) * stride
        return fitting("lowest offset", low), fitting("highest offset", high)

    @property
    def min_offset(self) -> int:
        """The lowest offset of an element, in elements; 0 where there is none."""
        return self.offset_bounds[0]

    @property
    def max_offset(self) -> int:
        """The highest offset of an element, in elements; -1 where there is none."""
        return self.offset_bounds[1]

    def _explicit_strides(self) -> tuple[int, ...]:
        if self._steps is None:
            self._steps = dense_strides(self._shape, range(len(self._shape)))
        return self._steps

    def _is_contiguous(self, axes: Iterable[int]) -> bool:
        return follow(self._shape, self._explicit_strides(), axes)

    def _rearranged(
        self, shape: Sequence[int], strides: Sequence[int], slice_offset: int, itemsize: int | None = None
    ) -> _StridedLayout:
        """Return a layout made from this one, once its strides and offset are known to fit."""
        strides = checked_integers("strides", tuple(strides))
        return make_layout(tuple(shape), strides, itemsize or self._itemsize, fitting("slice offset", slice_offset))


def make_layout(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int, slice_offset: int = 0
) -> _StridedLayout:
    """Return a layout of numbers that are known to be right: quicker than the class, which checks them."""
    layout = NEW(_StridedLayout)
    layout._shape = shape
    layout._strides = layout._steps = strides
    layout._itemsize = itemsize
    layout._slice_offset = slice_offset
    return layout
