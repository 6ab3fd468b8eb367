# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Layouts of arrays, by example: what is sliced and rearranged, and what is refused."""

from __future__ import annotations

import numpy
import pytest
from layouts import DENSE, HUGE, WIDE, whole

from cuda_core_cffi._arrays.layout import _StridedLayout

# Slices


@pytest.mark.parametrize(
    ("take", "shape", "strides", "offset"),
    [
        (lambda layout: layout[1], (3,), (1,), 3),
        (lambda layout: layout[-4], (3,), (1,), 0),
        (lambda layout: layout[1, 2], (), (), 5),
        (lambda layout: layout[:, -1], (4,), (3,), 2),
        (lambda layout: layout[1:3], (2, 3), (3, 1), 3),
        (lambda layout: layout[::-1], (4, 3), (-3, 1), 9),
        (lambda layout: layout[::3, 1:], (2, 2), (9, 1), 1),
        (lambda layout: layout[-100:100, 5:0:-2], (4, 1), (3, -2), 2),
        (lambda layout: layout[()], (4, 3), (3, 1), 0),
        (lambda layout: layout[numpy.int64(1)], (3,), (1,), 3),
        (lambda layout: layout[3:1], (0, 3), (0, 0), 0),
        (lambda layout: layout[1:, 2:2], (3, 0), (0, 0), 3),
        (lambda layout: layout.sliced((slice(2), 1)), (2,), (3,), 1),
        (lambda layout: layout.sliced(slice(1, 2)), (1, 3), (3, 1), 3),
        (lambda layout: layout[1:][1:][0], (3,), (1,), 6),
        (lambda layout: layout[::-1][::-1], (4, 3), (3, 1), 0),
    ],
)
def test_slices(take, shape, strides, offset):
    assert whole(take(DENSE)) == (shape, strides, offset)
    assert take(DENSE).slice_offset_in_bytes == 4 * offset


@pytest.mark.parametrize("item", [None, ..., 1.0, "a", [1, 2], (0, None), slice("a", None)], ids=repr)
def test_a_slice_is_an_integer_or_a_slice(item):
    with pytest.raises(TypeError, match="integer"):
        DENSE[item]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (4, "index 4 is out of range for axis 0 with extent 4"),
        (-5, "index -5 is out of range"),
        ((0, 3), "index 3 is out of range for axis 1 with extent 3"),
        (2**70, "out of range"),
        ((0, 1, 2), "3 slices for 2 dimensions"),
        (slice(None, None, 0), "step cannot be zero"),
    ],
    ids=repr,
)
def test_a_slice_lies_within(item, message):
    with pytest.raises(ValueError, match=message):
        DENSE.sliced(item)


def test_an_empty_axis_has_no_element_to_take():
    with pytest.raises(ValueError, match="index 0 is out of range for axis 0 with extent 0"):
        _StridedLayout((0, 3), None, 4)[0]


# Axes


def test_permuted_takes_extents_and_strides_along():
    assert whole(DENSE[1:].permuted((1, 0))) == ((3, 3), (1, 3), 3)
    assert whole(WIDE.permuted((-1, 0, 1))) == ((4, 2, 3), (1, 12, 4), 0)
    assert whole(_StridedLayout((), None, 4).permuted(())) == ((), (), 0)


@pytest.mark.parametrize("order", [(0,), (0, 0), (0, 2), (0, -2), (0, 1, 2), ()], ids=repr)
def test_permuted_wants_every_axis_once(order):
    with pytest.raises(ValueError, match="axis_order"):
        DENSE.permuted(order)


@pytest.mark.parametrize("order", [None, 5, [1, 0], (1.0, 0), ("a", 0)], ids=repr)
def test_permuted_wants_a_tuple_of_integers(order):
    with pytest.raises(TypeError, match="axis_order"):
        DENSE.permuted(order)


@pytest.mark.parametrize(
    ("layout", "shape", "strides"),
    [
        (DENSE, (12,), (1,)),
        (DENSE, (-1,), (1,)),
        (DENSE, (2, -1, 3), (6, 3, 1)),
        (DENSE, (4, 1, 3), (3, 3, 1)),
        (DENSE.permuted((1, 0)), (3, 2, 2), (1, 6, 3)),
        (DENSE.permuted((1, 0)), (1, 3, 4, 1), (3, 1, 3, 3)),
        (DENSE[::-1, ::-1], (12,), (-1,)),
        (DENSE[::-1], (2, 2, 3), (-6, -3, 1)),
        (_StridedLayout((4, 3), (0, 0), 4), (6, 2), (0, 0)),
        (_StridedLayout((4, 1, 3), (3, 77, 1), 4), (12,), (1,)),  # the stride of a single element means nothing
        (_StridedLayout((1, 1), (7, 9), 4), (), ()),
        (_StridedLayout((), None, 4), (1, 1), (1, 1)),
        (_StridedLayout((0, 3), (3, 1), 4), (5, 0), (0, 0)),
        (_StridedLayout((0, 3), (3, 1), 4), (-1, 3), (0, 0)),
        (_StridedLayout((0, HUGE, HUGE), None, 4), (HUGE, HUGE, 0), (0, 0, 0)),
    ],
)
def test_reshaped(layout, shape, strides):
    reshaped = layout.reshaped(shape)
    assert (reshaped.strides, reshaped.slice_offset) == (strides, layout.slice_offset)
    assert reshaped.volume == layout.volume
    assert len(reshaped.shape) == len(shape)


@pytest.mark.parametrize(
    ("layout", "shape", "message"),
    [
        (DENSE, (13,), "the volumes differ"),
        (DENSE, (), "the volumes differ"),
        (DENSE, (0,), "the volumes differ"),
        (DENSE, (5, -1), "no extent stands for -1"),
        (DENSE, (-1, -1), "only one extent can be -1"),
        (DENSE, (-2, -6), "must not be negative"),
        (DENSE, (0, -1), "any extent could stand for -1"),
        (_StridedLayout((0, 3), None, 4), (-1, 0), "any extent could stand for -1"),
        (DENSE.permuted((1, 0)), (12,), "without moving elements"),
        (DENSE[::-1], (12,), "without moving elements"),
        (DENSE[:, :2], (8,), "without moving elements"),
        (DENSE.permuted((1, 0)), (2, 6), "without moving elements"),
    ],
)
def test_reshaped_refuses(layout, shape, message):
    with pytest.raises(ValueError, match=message):
        layout.reshaped(shape)


@pytest.mark.parametrize("shape", [12, None, [12], (12.0,)], ids=repr)
def test_reshaped_wants_a_tuple_of_integers(shape):
    with pytest.raises(TypeError, match="shape must be a"):
        DENSE.reshaped(shape)


@pytest.mark.parametrize(
    ("layout", "arguments", "shape", "strides"),
    [
        (WIDE, {}, (24,), (1,)),
        (WIDE, {"start_axis": 1}, (2, 12), (12, 1)),
        (WIDE, {"end_axis": 1}, (6, 4), (4, 1)),
        (WIDE, {"start_axis": -2, "end_axis": -1}, (2, 12), (12, 1)),
        (WIDE, {"start_axis": 1, "end_axis": 1}, (2, 3, 4), (12, 4, 1)),
        (WIDE, {"start_axis": 2, "end_axis": 1}, (2, 3, 4), (12, 4, 1)),
        (WIDE, {"mask": 0}, (2, 3, 4), (12, 4, 1)),
        (WIDE, {"mask": 0b010}, (6, 4), (4, 1)),
        (WIDE, {"mask": 0b101}, (2, 12), (12, 1)),
        (WIDE, {"mask": 2**80 - 1}, (24,), (1,)),
        (WIDE.permuted((2, 1, 0)), {}, (4, 3, 2), (1, 4, 12)),
        (WIDE.permuted((2, 0, 1)), {}, (4, 6), (1, 4)),
        (WIDE[:, :2], {}, (2, 8), (12, 1)),
        (_StridedLayout((2, 3), (0, 0), 4), {}, (6,), (0,)),
        (_StridedLayout((), None, 4), {}, (1,), (1,)),
        (_StridedLayout((3, 0, 4), None, 4), {}, (0,), (0,)),
    ],
)
def test_flattened(layout, arguments, shape, strides):
    assert whole(layout.flattened(**arguments)) == (shape, strides, layout.slice_offset)


def test_masks_combine_so_that_two_layouts_flatten_alike():
    first, second = _StridedLayout.dense((4, 5, 3), 4), _StridedLayout((4, 5, 3), (1, 12, 4), 4)
    assert (first.flattened_axis_mask(), second.flattened_axis_mask()) == (0b110, 0b100)
    mask = first.flattened_axis_mask() & second.flattened_axis_mask()
    assert whole(first.flattened(mask=mask)) == ((4, 15), (15, 1), 0)
    assert whole(second.flattened(mask=mask)) == ((4, 15), (1, 4), 0)


@pytest.mark.parametrize(
    ("layout", "arguments"), [(WIDE, (0, 3)), (WIDE, (3, 3)), (WIDE, (-4, 1)), (_StridedLayout((), None, 4), (0, 0))]
)
def test_flattened_wants_axes_that_there_are(layout, arguments):
    with pytest.raises(ValueError, match=r"_axis -?\d is out of range"):
        layout.flattened(*arguments)


def test_flattened_refuses_other_masks():
    with pytest.raises(OverflowError, match="must not be negative, not -1"):
        WIDE.flattened(mask=-1)
    with pytest.raises(TypeError, match="mask must be an integer"):
        WIDE.flattened(mask="all")
    with pytest.raises(TypeError, match="start_axis must be an integer"):
        WIDE.flattened("first")


@pytest.mark.parametrize(
    ("layout", "shape", "strides"),
    [
        (_StridedLayout((4, 1, 3), (3, 77, 1), 4), (4, 3), (3, 1)),
        (_StridedLayout((1, 1), None, 4), (), ()),
        (_StridedLayout((1, 0, 3), (7, 8, 9), 4), (0,), (0,)),
        (_StridedLayout((), None, 4), (), ()),
        (DENSE[2:3], (3,), (1,)),
    ],
)
def test_squeezed(layout, shape, strides):
    assert whole(layout.squeezed()) == (shape, strides, layout.slice_offset)


@pytest.mark.parametrize(
    ("axis", "shape", "strides"),
    [
        (0, (1, 4, 3), (36, 9, 2)),
        (1, (4, 1, 3), (9, 6, 2)),
        (2, (4, 3, 1), (9, 2, 2)),
        (-1, (4, 3, 1), (9, 2, 2)),
        (-3, (1, 4, 3), (36, 9, 2)),
        ((0, 1), (1, 1, 4, 3), (36, 36, 9, 2)),
        ((3, 0), (1, 4, 3, 1), (36, 9, 2, 2)),
        ((0, -1), (1, 4, 3, 1), (36, 9, 2, 2)),
        ([1], (4, 1, 3), (9, 6, 2)),
        ((), (4, 3), (9, 2)),
    ],
    ids=repr,
)
def test_unsqueezed(axis, shape, strides):
    assert whole(_StridedLayout((4, 3), (9, 2), 4).unsqueezed(axis)) == (shape, strides, 0)


def test_a_layout_without_axes_can_be_unsqueezed():
    assert whole(_StridedLayout((), None, 4).unsqueezed((0, 1))) == ((1, 1), (1, 1), 0)


@pytest.mark.parametrize("axis", [3, -4, (0, 0), (0, -4), (0, 4), (3,)], ids=repr)
def test_unsqueezed_wants_places_in_the_result(axis):
    with pytest.raises(ValueError, match=r"out of range|more than once"):
        DENSE.unsqueezed(axis)


@pytest.mark.parametrize("axis", [None, 1.0, "a", (0.0,)], ids=repr)
def test_unsqueezed_wants_integers(axis):
    with pytest.raises(TypeError, match="axis must be an integer"):
        DENSE.unsqueezed(axis)


@pytest.mark.parametrize(
    ("layout", "shape", "strides"),
    [
        (DENSE, (2, 4, 3), (0, 3, 1)),
        (DENSE, (4, 3), (3, 1)),
        (_StridedLayout((4, 1), (1, 7), 4), (4, 5), (1, 0)),
        (_StridedLayout((4, 1), (1, 7), 4), (4, 1), (1, 7)),
        (_StridedLayout((), None, 4), (4, 3), (0, 0)),
        (_StridedLayout((1,), None, 4), (0,), (0,)),
        (_StridedLayout((3,), (5,), 4), (0, 3), (0, 5)),
        (DENSE[1:, 1:2], (3, 6), (3, 0)),
    ],
)
def test_broadcast_to(layout, shape, strides):
    assert whole(layout.broadcast_to(shape)) == (shape, strides, layout.slice_offset)


@pytest.mark.parametrize("shape", [(3,), (), (1, 3), (4, 6), (3, 4), (4, 0), (-1, 3), (4, 3, 1)], ids=repr)
def test_broadcast_to_refuses(shape):
    with pytest.raises(ValueError, match=r"broadcast|more dimensions|negative"):
        DENSE.broadcast_to(shape)


@pytest.mark.parametrize("shape", [3, None, [4, 3], (4.0, 3)], ids=repr)
def test_broadcast_to_wants_a_tuple_of_integers(shape):
    with pytest.raises(TypeError, match="shape must be a"):
        DENSE.broadcast_to(shape)


# Sizes of elements


@pytest.mark.parametrize(
    ("layout", "arguments", "shape", "strides", "offset"),
    [
        (_StridedLayout((5, 4), None, 4), {"itemsize": 2}, (5, 8), (8, 1), 0),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 8}, (5, 2), (2, 1), 0),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 16}, (5, 1), (1, 1), 0),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 16, "keep_dim": False}, (5,), (1,), 0),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 8, "keep_dim": False}, (5, 2), (2, 1), 0),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 8, "data_ptr": 64}, (5, 2), (2, 1), 0),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 2, "data_ptr": 3}, (5, 8), (8, 1), 0),
        (_StridedLayout((5, 6), None, 4), {"itemsize": 12}, (5, 2), (2, 1), 0),
        (_StridedLayout((4, 5), (1, 4), 4), {"itemsize": 8, "axis": 0}, (2, 5), (1, 2), 0),
        (_StridedLayout((4, 5), (1, 4), 4), {"itemsize": 16, "axis": -2, "keep_dim": False}, (5,), (1,), 0),
        (_StridedLayout((5, 4), (0, 1), 4), {"itemsize": 8}, (5, 2), (0, 1), 0),
        (_StridedLayout((5, 4), None, 4)[:, 2:], {"itemsize": 8}, (5, 1), (2, 1), 1),
        (_StridedLayout((5, 4), None, 4)[:, 1:3], {"itemsize": 2}, (5, 4), (8, 1), 2),
        (_StridedLayout((5, 4), None, 4)[::-1], {"itemsize": 8}, (5, 2), (-2, 1), 8),
        (_StridedLayout((), None, 4), {"itemsize": 4, "axis": 7}, (), None, 0),
    ],
)
def test_repacked(layout, arguments, shape, strides, offset):
    repacked = layout.repacked(**arguments)
    assert (whole(repacked), repacked.itemsize) == ((shape, strides, offset), arguments["itemsize"])


@pytest.mark.parametrize(
    ("layout", "arguments", "message"),
    [
        (_StridedLayout((5, 4), None, 4), {"itemsize": 3}, "multiple or a divisor of 4, not 3"),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 6}, "multiple or a divisor of 4, not 6"),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 0}, "at least 1 byte, not 0"),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 12}, "extent 4 is not divisible"),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 8, "data_ptr": 12}, "0xc is not aligned to 8 bytes"),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 8, "axis": 0}, "stride of the axis to repack, 0, must be 1"),
        (_StridedLayout((5, 4), None, 4), {"itemsize": 8, "axis": 2}, "axis 2 is out of range"),
        (_StridedLayout((5, 4), (5, 1), 4), {"itemsize": 8}, "stride 5 is not divisible"),
        (_StridedLayout((5, 4), None, 4)[:, 1:3], {"itemsize": 8}, "slice offset 1 is not divisible"),
        (_StridedLayout((4, 0), None, 4), {"itemsize": 2}, "must not be empty"),
        (_StridedLayout((), None, 4), {"itemsize": 2}, "axis -1 is out of range"),
    ],
)
def test_repacked_refuses(layout, arguments, message):
    with pytest.raises(ValueError, match=message):
        layout.repacked(**arguments)


@pytest.mark.parametrize("arguments", [("8",), (8, "0"), (8, 0, "0"), (8, 0, None)], ids=repr)
def test_repacked_wants_integers(arguments):
    with pytest.raises(TypeError, match="must be an integer"):
        DENSE.repacked(*arguments)


@pytest.mark.parametrize(
    ("layout", "arguments", "size"),
    [
        (_StridedLayout((5, 4), None, 4), {}, 16),
        (_StridedLayout((5, 4), None, 4), {"max_itemsize": 8}, 8),
        (_StridedLayout((5, 4), None, 4), {"max_itemsize": 32}, 16),
        (_StridedLayout((5, 4), None, 4), {"data_ptr": 8}, 8),
        (_StridedLayout((5, 4), None, 4), {"data_ptr": 2}, 2),
        (_StridedLayout((5, 4), None, 4), {"axis": 0}, 4),
        (_StridedLayout((5, 6), None, 4), {}, 8),
        (_StridedLayout((5, 6), None, 4), {"max_itemsize": 24}, 24),
        (_StridedLayout((5, 4), (5, 1), 4), {}, 4),
        (_StridedLayout((5, 4), None, 4)[:, 2:], {}, 8),
        (_StridedLayout((8,), None, 4)[2:6], {}, 8),
        (_StridedLayout((4, 0), None, 4), {}, 4),
        (_StridedLayout((0,), (1,), 4), {}, 4),
        (_StridedLayout((5, 8), None, 3), {}, 1),  # 8 would not keep the bytes
        (_StridedLayout((5, 8), None, 12), {}, 4),
    ],
)
def test_max_compatible_itemsize(layout, arguments, size):
    assert layout.max_compatible_itemsize(**arguments) == size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((3,), "at least the element size, 4, not 3"), ((0,), "at least 1 byte"), ((16, 0, 2), "axis 2 is out of range")],
)
def test_max_compatible_itemsize_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        DENSE.max_compatible_itemsize(*arguments)
