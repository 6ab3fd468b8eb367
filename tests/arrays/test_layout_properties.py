# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Layouts of any arrays: the same elements as in NumPy, at the same places."""

from __future__ import annotations

import numpy
import pytest
from numpy.lib.stride_tricks import as_strided

from cuda_core_cffi._arrays.layout import _StridedLayout

hypothesis = pytest.importorskip("hypothesis", exc_type=ImportError)  # its compiled part does not load on every PyPy
given, st = hypothesis.given, hypothesis.strategies

ORIGIN = 2**16  # elements before the first, for negative strides
MEMORY = numpy.zeros(2 * ORIGIN, "i1")  # what arrays are views of; a byte an element, so strides are the same
START = MEMORY.__array_interface__["data"][0] + ORIGIN
SIZES = [1, 2, 4, 8, 16]

few = hypothesis.settings(max_examples=100, deadline=None)
extents = st.integers(1, 5) | st.sampled_from([0, 1, 1, 2])
shapes = st.lists(extents, max_size=4).map(tuple)
indices = st.integers(-6, 6)
slices = st.builds(
    slice, st.none() | indices, st.none() | indices, st.none() | st.integers(-3, 3).filter(lambda step: step != 0)
)


@st.composite
def strided(draw, shape=shapes):
    """Draw a layout with any strides: dense in some order, sliced, or arbitrary ones."""
    shape = draw(shape)
    kind = draw(st.sampled_from(["implicit", "dense", "sliced", "any"]))
    if kind == "implicit":
        return _StridedLayout(shape, None, 1)
    if kind == "any":
        return _StridedLayout(shape, tuple(draw(st.integers(-40, 40)) for _ in shape), 1)
    layout = _StridedLayout.dense(shape, 1, tuple(draw(st.permutations(range(len(shape))))))
    if kind == "sliced":
        layout = layout[tuple(draw(slices) for _ in shape)]
    return layout


def array_of(layout):
    """Return a NumPy array with a layout."""
    strides = _StridedLayout.dense(layout.shape, 1).strides if layout.strides is None else layout.strides
    return as_strided(MEMORY[ORIGIN + layout.slice_offset :], layout.shape, strides)


def assert_same(layout, array):
    """Assert that a layout and an array have every element at the same place."""
    assert layout.shape == array.shape
    assert layout.volume == array.size
    if array.size == 0:
        return  # no element is anywhere
    assert START + layout.slice_offset == array.__array_interface__["data"][0]
    ours = _StridedLayout.dense(layout.shape, 1).strides if layout.strides is None else layout.strides
    for extent, stride, expected in zip(layout.shape, ours, array.strides):
        assert extent == 1 or stride == expected


def offsets_of(layout):
    """Return the offset of every element, in bytes, in C order of the indices."""
    offsets = numpy.array([layout.slice_offset])
    strides = layout.strides or _StridedLayout.dense(layout.shape, 1).strides
    for extent, stride in zip(layout.shape, strides):
        offsets = (offsets[:, None] + numpy.arange(extent) * stride).ravel()
    return offsets * layout.itemsize


def factors_of(volume):
    """Return a strategy for shapes of a volume."""
    if volume == 0:
        return st.lists(st.integers(1, 4), max_size=2).map(lambda shape: (*shape, 0))
    divisors = [number for number in range(1, volume + 1) if volume % number == 0]
    first = st.sampled_from(divisors)
    second = first.flatmap(
        lambda size: st.sampled_from([other for other in divisors if (volume // size) % other == 0]).map(
            lambda other: (size, other, volume // size // other)
        )
    )
    return st.permutations([0, 1, 2]).flatmap(lambda order: second.map(lambda sizes: tuple(sizes[i] for i in order)))


@few
@given(strided())
def test_flags_and_bounds_agree_with_numpy(layout):
    array = array_of(layout)
    assert_same(layout, array)
    assert layout.is_contiguous_c == array.flags.c_contiguous
    assert layout.is_contiguous_f == array.flags.f_contiguous
    offsets = offsets_of(layout)
    assert layout.offset_bounds == ((offsets.min(), offsets.max()) if array.size else (0, -1))


@few
@given(strided(), st.data())
def test_slices_are_those_of_numpy(layout, data):
    item = tuple(data.draw(st.lists(slices | indices, max_size=len(layout.shape))))
    try:
        expected = array_of(layout)[(*item, ...)]
    except IndexError:
        with pytest.raises(ValueError, match="out of range"):
            layout[item]
    else:
        assert_same(layout[item], expected)


@few
@given(strided(), st.data())
def test_slices_of_slices_are_those_of_numpy(layout, data):
    first, second = ([data.draw(slices) for _ in layout.shape] for _ in range(2))
    assert_same(layout[tuple(first)][tuple(second)], array_of(layout)[(*first, ...)][(*second, ...)])


@few
@given(strided(), st.data())
def test_permuted_is_transpose(layout, data):
    order = tuple(data.draw(st.permutations(range(layout.ndim))))
    assert_same(layout.permuted(order), array_of(layout).transpose(order))


@few
@given(strided(), st.data())
def test_reshaped_is_a_reshape_that_copies_nothing(layout, data):
    shape = data.draw(factors_of(layout.volume))
    given_shape = data.draw(st.sampled_from([shape, (-1, *shape[1:])])) if 0 not in shape[1:] else shape
    expected = array_of(layout).reshape(shape)
    if layout.volume and not numpy.may_share_memory(expected, MEMORY):
        with pytest.raises(ValueError, match="without moving elements"):
            layout.reshaped(given_shape)
    else:
        assert_same(layout.reshaped(given_shape), expected)


@few
@given(strided(), st.data())
def test_broadcast_to_is_that_of_numpy(layout, data):
    kept = [data.draw(st.sampled_from([extent, extent, extent, 1, 3, 0])) for extent in layout.shape]
    shape = (*data.draw(st.lists(st.integers(0, 3), max_size=2)), *kept)
    try:
        expected = numpy.broadcast_to(array_of(layout), shape)
    except ValueError:
        with pytest.raises(ValueError, match="cannot be broadcast"):
            layout.broadcast_to(shape)
    else:
        assert_same(layout.broadcast_to(shape), expected)


@few
@given(strided(), st.data())
def test_axes_of_one_come_and_go_as_in_numpy(layout, data):
    count = data.draw(st.integers(0, 3))
    places = data.draw(st.permutations(range(layout.ndim + count)))[:count]
    axes = tuple(data.draw(st.sampled_from([place, place - layout.ndim - count])) for place in places)
    assert_same(layout.unsqueezed(axes), numpy.expand_dims(array_of(layout), axes))
    if layout.volume:
        assert_same(layout.unsqueezed(axes).squeezed(), numpy.squeeze(array_of(layout)))


@few
@given(strided(), st.data())
def test_flattened_leaves_every_element_in_place_and_in_order(layout, data):
    mask = data.draw(st.none() | st.integers(0, 31))
    flat = layout.flattened(mask=mask)
    assert offsets_of(flat).tolist() == offsets_of(layout).tolist()
    assert flat.flattened_axis_mask() == 0 or mask is not None or flat.volume == 0
    assert layout.flattened(mask=layout.flattened_axis_mask()) == layout.flattened()


@few
@given(strided(), st.data())
def test_to_dense_fills_the_gaps_in_the_order_asked_for(layout, data):
    permutation = tuple(data.draw(st.permutations(range(layout.ndim))))
    for order, axes in [("C", range(layout.ndim)), ("K", layout.stride_order), (permutation, permutation)]:
        dense = layout.to_dense(order)
        assert dense.is_dense
        assert dense.is_unique
        assert dense.shape == layout.shape
        assert dense.required_size_in_bytes() == layout.volume
        assert dense.permuted(tuple(axes)).is_contiguous_c
    assert layout.to_dense("F").is_contiguous_f


@hypothesis.settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-30, 30)), max_size=4))
def test_unique_means_that_no_two_elements_share_an_offset(axes):
    layout = _StridedLayout(tuple(extent for extent, _ in axes), tuple(stride for _, stride in axes), 1)
    assert layout.is_unique == (len(set(offsets_of(layout).tolist())) == layout.volume)


@few
@given(strided())
def test_contiguous_in_some_order_means_that_every_offset_within_the_bounds_is_taken_once(layout):
    offsets = sorted(offsets_of(layout).tolist())
    fills = offsets == list(range(offsets[0], offsets[0] + len(offsets))) if offsets else True
    steps = zip(layout.shape, layout.strides or ())
    forward = all(stride > 0 for extent, stride in steps if extent > 1)
    assert layout.is_contiguous_any == (not offsets or (fills and forward))


def bytes_of(layout):
    """Return the place of every byte, in order of place."""
    return sorted(offset + byte for offset in offsets_of(layout).tolist() for byte in range(layout.itemsize))


@few
@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=3).map(tuple),
    st.sampled_from([*SIZES, 3, 12]),
    st.sampled_from(SIZES),
    st.data(),
)
def test_repacking_keeps_every_byte_and_can_be_undone(shape, old, new, data):
    order = data.draw(st.permutations(range(len(shape))))
    layout = _StridedLayout.dense(shape, old, tuple(order))
    axis = order[-1]
    layout = layout[tuple(data.draw(slices) if other != axis else slice(None) for other in range(len(shape)))]
    hypothesis.assume(layout.volume)
    try:
        packed = layout.repacked(new, axis=axis)
    except ValueError:
        offsets = layout.slice_offset, layout.shape[axis], *layout.permuted(tuple(order)).strides[:-1]
        ratio = new // old if new % old == 0 else 0
        assert (new % old and old % new) or any(value % ratio for value in offsets)
    else:
        assert packed.itemsize == new
        assert bytes_of(packed) == bytes_of(layout)
        assert packed.repacked(old, axis=axis) == (layout if new != old else packed)
        assert packed.repacked(1, axis=axis).volume == layout.volume * old


@few
@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=3).map(tuple),
    st.sampled_from([*SIZES, 3, 12]),
    st.sampled_from([0, 2, 8, 64]),
    st.data(),
)
def test_the_largest_compatible_size_can_be_had_and_no_other_divisor_that_is_larger(shape, itemsize, address, data):
    layout = _StridedLayout.dense(shape, itemsize)
    layout = layout[tuple(data.draw(slices) for _ in shape[:-1])]
    hypothesis.assume(layout.volume)
    size = layout.max_compatible_itemsize(16, address)
    assert bytes_of(layout.repacked(size, address)) == bytes_of(layout)
    for larger in SIZES[SIZES.index(size) + 1 :]:
        if address % larger == 0:
            with pytest.raises(ValueError, match=r"divisible|divisor"):
                layout.repacked(larger, address)
