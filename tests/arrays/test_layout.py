# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Layouts of arrays, by example: what is made, what is refused, and what they say of themselves."""

from __future__ import annotations

import copy
import pickle

import numpy
import pytest
from layouts import DENSE, HUGE

from cuda_core_cffi._arrays.layout import _StridedLayout, make_layout

# Making one


def test_a_layout_keeps_what_it_is_made_of():
    layout = _StridedLayout((2, 3), (1, 2), 8)
    assert (layout.shape, layout.strides, layout.itemsize, layout.ndim) == ((2, 3), (1, 2), 8, 2)
    assert (layout.slice_offset, layout.volume, layout.strides_in_bytes) == (0, 6, (8, 16))


def test_arguments_may_be_named():
    layout = _StridedLayout(shape=(2, 3), strides=(24, 4), itemsize=4, divide_strides=True)
    assert layout.strides == (6, 1)


def test_no_strides_mean_c_order():
    assert (DENSE.strides, DENSE.strides_in_bytes, DENSE.stride_order) == (None, None, (0, 1))
    assert DENSE.is_contiguous_c
    assert not DENSE.is_contiguous_f


def test_no_strides_are_not_equal_to_the_same_strides_spelt_out():
    assert _StridedLayout((4, 3), (3, 1), 4) != DENSE
    assert _StridedLayout((4, 3), None, 4) == DENSE


@pytest.mark.parametrize(
    "other",
    [
        _StridedLayout((3, 4), (3, 1), 4),
        _StridedLayout((4, 3), (1, 4), 4),
        _StridedLayout((4, 3), (3, 1), 8),
        _StridedLayout((5, 3), (3, 1), 4)[1:],
        ((4, 3), (3, 1), 4),
    ],
    ids=["shape", "strides", "itemsize", "offset", "type"],
)
def test_layouts_differ_by(other):
    assert _StridedLayout((4, 3), (3, 1), 4) != other


def test_a_layout_has_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(DENSE)


@pytest.mark.parametrize("name", ["shape", "strides", "itemsize", "slice_offset", "other"])
def test_a_layout_cannot_be_changed(name):
    with pytest.raises(AttributeError):
        setattr(DENSE, name, 1)


def test_a_repr_shows_everything():
    assert repr(DENSE) == "_StridedLayout(shape=(4, 3), strides=None, itemsize=4)"
    assert repr(DENSE[1:]) == "_StridedLayout(shape=(3, 3), strides=(3, 1), itemsize=4, slice_offset=3)"


@pytest.mark.parametrize("layout", [DENSE, DENSE[1:, ::-1]])
def test_a_layout_can_be_copied_and_pickled(layout):
    assert copy.copy(layout) == layout == pickle.loads(pickle.dumps(layout))


def test_integers_of_other_types_become_plain_ones():
    layout = _StridedLayout((numpy.int32(2), True), (numpy.int64(-3), numpy.uint8(1)), numpy.int16(4))
    assert (layout.shape, layout.strides, layout.itemsize) == ((2, 1), (-3, 1), 4)
    assert {type(value) for value in (*layout.shape, *layout.strides, layout.itemsize)} == {int}


def test_a_subclass_of_tuple_becomes_a_tuple():
    class Size(tuple):
        __slots__ = ()

    layout = _StridedLayout(Size((2, 3)), Size((3, 1)), 4)
    assert type(layout.shape) is type(layout.strides) is tuple
    assert layout == _StridedLayout((2, 3), (3, 1), 4)


@pytest.mark.parametrize("shape", [None, 5, [2, 3], "23", (2.0, 3), (None,), ("2",), numpy.array([2, 3])], ids=repr)
def test_a_shape_is_a_tuple_of_integers(shape):
    with pytest.raises(TypeError, match="shape must be a"):
        _StridedLayout(shape, None, 4)


@pytest.mark.parametrize("strides", [5, [3, 1], "31", (3.0, 1), (None, 1), numpy.array([3, 1])], ids=repr)
def test_strides_are_a_tuple_of_integers(strides):
    with pytest.raises(TypeError, match="strides must be a"):
        _StridedLayout((2, 3), strides, 4)


@pytest.mark.parametrize("itemsize", [None, 2.0, "4", (4,)], ids=repr)
def test_an_element_size_is_an_integer(itemsize):
    with pytest.raises(TypeError, match="itemsize must be an integer"):
        _StridedLayout((2, 3), None, itemsize)


@pytest.mark.parametrize("itemsize", [0, -1, numpy.int32(-4)], ids=repr)
def test_an_element_has_at_least_one_byte(itemsize):
    with pytest.raises(ValueError, match=f"itemsize must be at least 1 byte, not {itemsize}"):
        _StridedLayout((2, 3), None, itemsize)


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (0, -1), (numpy.int64(-1),), (-(2**63),)], ids=repr)
def test_an_extent_is_not_negative(shape):
    with pytest.raises(ValueError, match="must not be negative"):
        _StridedLayout(shape, None, 4)


@pytest.mark.parametrize("strides", [(), (1,), (1, 2, 3)])
def test_there_are_as_many_strides_as_extents(strides):
    with pytest.raises(ValueError, match="one entry for each of 2 dimensions"):
        _StridedLayout((2, 3), strides, 4)


def test_strides_in_bytes_are_multiples_of_the_element_size():
    with pytest.raises(ValueError, match=r"stride -13 in bytes is not divisible by the element size, 4"):
        _StridedLayout((2, 3), (-13, 4), 4, divide_strides=True)


@pytest.mark.parametrize(
    ("shape", "strides", "itemsize"),
    [((2**63,), None, 1), ((2,), (2**63,), 1), ((2,), (-(2**63) - 1,), 1), ((-(2**64),), None, 1), ((2,), None, 2**63)],
)
def test_numbers_that_do_not_fit_in_64_bits_are_refused(shape, strides, itemsize):
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        _StridedLayout(shape, strides, itemsize)


def test_the_largest_numbers_are_taken():
    layout = _StridedLayout((2**63 - 1, 1), (-(2**63), 2**63 - 1), 2**63 - 1)
    assert (layout.shape, layout.strides) == ((2**63 - 1, 1), (-(2**63), 2**63 - 1))


def test_64_dimensions_are_the_most():
    assert _StridedLayout((1,) * 64, None, 1).ndim == 64
    for shape in [(1,) * 65, (True,) * 65]:
        with pytest.raises(ValueError, match="at most 64 dimensions, not 65"):
            _StridedLayout(shape, None, 1)


@pytest.mark.parametrize(
    "grow",
    [
        lambda layout: layout.unsqueezed(0),
        lambda layout: layout.reshaped((1,) * 65),
        lambda layout: layout.broadcast_to((2,) + (1,) * 64),
    ],
    ids=["unsqueezed", "reshaped", "broadcast_to"],
)
def test_nothing_grows_past_64_dimensions(grow):
    with pytest.raises(ValueError, match="at most 64 dimensions, not 65"):
        grow(_StridedLayout((1,) * 64, None, 1))


def test_a_layout_of_known_numbers_is_the_same_as_a_checked_one():
    assert make_layout((4, 3), None, 4) == DENSE
    assert make_layout((3, 3), (3, 1), 4, 3) == DENSE[1:]


# Dense ones


@pytest.mark.parametrize(
    ("order", "strides"), [("C", (21, 7, 1)), ("F", (1, 5, 15)), ((2, 0, 1), (3, 1, 15)), ((2, 0, -2), (3, 1, 15))]
)
def test_dense_strides_follow_the_order(order, strides):
    assert _StridedLayout.dense((5, 3, 7), 2, order) == _StridedLayout((5, 3, 7), strides, 2)


def test_dense_is_in_c_order_unless_told():
    assert _StridedLayout.dense((5, 3), 2) == _StridedLayout((5, 3), (3, 1), 2)
    assert _StridedLayout.dense((), 2) == _StridedLayout((), (), 2)


@pytest.mark.parametrize("order", ["K", "A", "c", "", None, 5, (0, 1), (0, 0, 1), (0, 1, 3), (0, 1, -4)], ids=repr)
def test_an_order_is_a_letter_or_a_permutation(order):
    with pytest.raises(ValueError, match=r"stride_order|is out of range"):
        _StridedLayout.dense((5, 3, 7), 2, order)


@pytest.mark.parametrize("order", ["C", "F", (1, 0, 2)])
def test_all_strides_of_an_empty_dense_layout_are_zero(order):
    assert _StridedLayout.dense((HUGE, 0, HUGE), 2, order).strides == (0, 0, 0)


@pytest.mark.parametrize(
    ("strides", "order", "dense"),
    [
        ((2, 9, 27), "K", (1, 5, 15)),
        ((-27, 2, 9), "K", (21, 1, 3)),
        ((0, 0, 0), "K", (3, 1, 15)),  # of equal strides, the larger axis first
        ((0, 5, 1), "K", (1, 35, 5)),  # by stride, so what is repeated becomes densest
        ((2, 9, 27), "C", (21, 7, 1)),
        ((2, 9, 27), "F", (1, 5, 15)),
        ((2, 9, 27), (1, 0, 2), (7, 35, 1)),
    ],
)
def test_dense_like_takes_shape_and_size_and_fills_the_gaps(strides, order, dense):
    layout = _StridedLayout((5, 3, 7), strides, 2)
    expected = _StridedLayout((5, 3, 7), dense, 2)
    assert _StridedLayout.dense_like(layout, order) == layout.to_dense(order) == expected


def test_to_dense_leaves_the_offset_behind():
    assert DENSE[1:].is_contiguous_c
    assert DENSE[1:].to_dense() == _StridedLayout((3, 3), (3, 1), 4)


@pytest.mark.parametrize("order", ["K", "C"])
def test_what_is_dense_already_stays_as_it_is(order):
    assert DENSE.to_dense(order).strides is None
    assert _StridedLayout((1, 3), (9, 1), 4).to_dense(order).strides == (9, 1)


def test_a_permutation_spells_the_strides_out():
    assert DENSE.to_dense((0, 1)) == _StridedLayout((4, 3), (3, 1), 4)


def test_dense_like_wants_a_layout():
    with pytest.raises(TypeError, match="other must be a _StridedLayout, not tuple"):
        _StridedLayout.dense_like((5, 3))


# What it says of itself


@pytest.mark.parametrize(
    ("shape", "strides", "flags"),
    [
        ((2, 5, 3), (15, 3, 1), "c a u"),
        ((2, 5, 3), (1, 2, 10), "f a u"),
        ((2, 5, 3), (3, 6, 1), "a u"),
        ((2, 5, 3), (20, 4, 1), "u"),
        ((3, 3), (-3, 1), "u"),
        ((3, 3), (0, 1), ""),
        ((1, 3), (99, 1), "c f a u"),
        ((1, 3), (0, 1), "c f a u"),
        ((0, 3), (5, 7), "c f a u"),
        ((0, 3), (0, 0), "c f a u"),
        ((), (), "c f a u"),
        ((1,), (-7,), "c f a u"),
        ((4,), (1,), "c f a u"),
        ((4,), (2,), "u"),
        ((HUGE, HUGE), (0, 0), ""),
    ],
)
def test_contiguous_and_unique(shape, strides, flags):
    layout = _StridedLayout(shape, strides, 2)
    told = {
        "c": layout.is_contiguous_c,
        "f": layout.is_contiguous_f,
        "a": layout.is_contiguous_any,
        "u": layout.is_unique,
    }
    assert [name for name, holds in told.items() if holds] == flags.split()
    assert layout.is_dense == ("a" in flags)


def test_an_offset_makes_it_not_dense():
    assert DENSE[1:].is_contiguous_any
    assert not DENSE[1:].is_dense


@pytest.mark.parametrize(
    ("shape", "strides", "order"),
    [
        ((5, 3, 7), (3, 1, 15), (2, 0, 1)),
        ((3, 3), (-3, 1), (0, 1)),
        ((1, 3, 1), (1, 1, 1), (1, 0, 2)),
        ((2, 3), (-(2**63), 1), (0, 1)),
        ((6, 0, 1), None, (0, 1, 2)),
        ((), None, ()),
    ],
)
def test_the_order_goes_from_the_longest_stride_to_the_shortest(shape, strides, order):
    assert _StridedLayout(shape, strides, 1).stride_order == order


@pytest.mark.parametrize(
    ("layout", "bounds", "size"),
    [
        (DENSE, (0, 11), 48),
        (DENSE[1:], (3, 11), 48),
        (DENSE[::-1, ::2], (0, 11), 48),
        (_StridedLayout((4, 3), (0, 0), 4), (0, 0), 4),
        (_StridedLayout((4, 3), (9, 2), 4), (0, 31), 128),
        (_StridedLayout((), None, 4), (0, 0), 4),
        (_StridedLayout((0, 3), (5, -7), 4), (0, -1), 0),
        (_StridedLayout((HUGE, HUGE, 0), None, 4), (0, -1), 0),
    ],
)
def test_bounds_and_the_size_that_they_need(layout, bounds, size):
    assert layout.offset_bounds == bounds == (layout.min_offset, layout.max_offset)
    assert layout.required_size_in_bytes() == size


def test_no_size_is_enough_for_what_lies_before_the_start():
    layout = _StridedLayout((3, 3), (-3, 1), 4)
    assert layout.offset_bounds == (-6, 2)
    with pytest.raises(ValueError, match="lowest offset is -6"):
        layout.required_size_in_bytes()


def test_an_empty_product_is_zero_however_large_the_rest():
    assert _StridedLayout((HUGE, HUGE, 0), None, 4).volume == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda: _StridedLayout((HUGE, HUGE), (0, 0), 4).volume,
        lambda: _StridedLayout((HUGE, HUGE), None, 4).offset_bounds,
        lambda: _StridedLayout((HUGE, HUGE), None, 4).required_size_in_bytes(),
        lambda: _StridedLayout((HUGE, HUGE), None, 4)[1],
        lambda: _StridedLayout((2**62,), None, 4).required_size_in_bytes(),
        lambda: _StridedLayout((3,), (2**62,), 1).offset_bounds,
        lambda: _StridedLayout((4,), (-(2**62),), 1).min_offset,
        lambda: _StridedLayout((2,), (2**62,), 4).strides_in_bytes,
        lambda: _StridedLayout((2,), (2**62,), 4)[1:].slice_offset_in_bytes,
        lambda: _StridedLayout((3,), (2**62,), 4)[2:],
        lambda: _StridedLayout((3,), (2**62,), 4)[::2],
        lambda: _StridedLayout((3,), (-(2**63),), 4)[::-1],
        lambda: _StridedLayout((HUGE, HUGE), (0, 0), 4).flattened(),
        lambda: _StridedLayout((2,), (HUGE,), HUGE).unsqueezed(0).unsqueezed(0).strides_in_bytes,
        lambda: _StridedLayout((HUGE,), (HUGE,), 1).unsqueezed(0),
        lambda: _StridedLayout((HUGE,), (1,), HUGE).repacked(1),
        lambda: _StridedLayout.dense((HUGE, HUGE), 4),
        lambda: _StridedLayout.dense((2**32, 2**31), 1, "F"),
    ],
)
def test_products_that_do_not_fit_in_64_bits_are_errors(ask):
    with pytest.raises(OverflowError, match="not fit in 64 bits"):
        ask()


def test_a_broadcast_layout_may_have_a_volume_past_64_bits():
    layout = _StridedLayout((3,), (1,), 4).broadcast_to((HUGE, HUGE, 3))
    assert layout.required_size_in_bytes() == 12
    assert layout.reshaped((2, HUGE // 2, HUGE, 3)).strides == (0, 0, 0, 1)
    assert not layout.is_unique
    assert not layout.is_contiguous_any


def test_whether_elements_overlap_is_found_out_for_interleaved_strides():
    assert _StridedLayout((3, 2), (2, 3), 1).is_unique
    assert not _StridedLayout((4, 3), (2, 3), 1).is_unique
    assert _StridedLayout((3, 3, 3), (9, 10, 13), 1).is_unique
    assert not _StridedLayout((3, 3, 3), (9, 10, 11), 1).is_unique  # 9 + 11 is 2 * 10


def test_a_search_for_overlaps_that_takes_long_gives_up():
    strides = 1348178031153, 2038373466712, 2585508533082, 6093478832649, 6335363200471, 9424131924649
    assert not _StridedLayout((12,) * 6, strides, 1).is_unique  # though it is: without a limit, this takes very long
