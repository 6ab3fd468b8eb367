# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How any Python values become the bytes of a kernel's parameters: properties that hold for all of them."""

from __future__ import annotations

import ctypes
import math

import numpy
import pytest

from cuda_core_cffi._launching.arguments import make_packer

hypothesis = pytest.importorskip("hypothesis", exc_type=ImportError)  # its compiled part does not load on every PyPy
given, st = hypothesis.given, hypothesis.strategies

INT_SIZES = [1, 2, 4, 8]
ALIGNED = {"b": ctypes.c_int8, "h": ctypes.c_int16, "i": ctypes.c_int32, "q": ctypes.c_int64, "f": ctypes.c_float,
           "d": ctypes.c_double}  # fmt: skip


def pack(*values, size=None):
    """Pack values, for parameters of this size or of the values' own."""
    layout = None if size is None else ((0, size),)
    return make_packer(tuple(map(type, values)), values, layout, None)(*values)


@given(st.sampled_from(INT_SIZES), st.integers(-(2**70), 2**70))
def test_every_int_is_packed_right_or_refused(size, value):
    bits = 8 * size
    packer = make_packer((int,), (0,), ((0, size),), None)
    if -(2 ** (bits - 1)) <= value < 2**bits:
        assert packer(value) == (value % 2**bits).to_bytes(size, "little")
    else:
        with pytest.raises(OverflowError):
            packer(value)


@given(st.floats(width=16, allow_nan=False))
def test_half_precision_agrees_with_numpy(value):
    assert pack(value, size=2) == numpy.float16(value).tobytes()


@given(st.floats(allow_nan=False))
def test_single_precision_agrees_with_numpy_or_is_refused(value):
    with numpy.errstate(over="ignore"):
        expected = numpy.float32(value)
    if numpy.isinf(expected) and not math.isinf(value):
        with pytest.raises(OverflowError, match="too large for a float of 4 bytes"):
            pack(value, size=4)
    else:
        assert pack(value, size=4) == expected.tobytes()


@given(st.lists(st.tuples(st.sampled_from(sorted(ALIGNED)), st.integers(-100, 100)), min_size=1, max_size=24))
def test_parameters_lie_where_the_compiler_puts_the_members_of_a_structure(items):
    class Parameters(ctypes.Structure):
        _fields_ = [(f"p{i}", ALIGNED[code]) for i, (code, _) in enumerate(items)]

    values = tuple(float(number) if code in "fd" else number for code, number in items)
    offsets = [(getattr(Parameters, f"p{i}").offset, getattr(Parameters, f"p{i}").size) for i in range(len(items))]
    packed = make_packer(tuple(map(type, values)), values, tuple(offsets), None)(*values)
    read = Parameters.from_buffer_copy(packed.ljust(ctypes.sizeof(Parameters), b"\0"))
    assert tuple(getattr(read, f"p{i}") for i in range(len(items))) == values
    assert len(packed) == sum(offsets[-1])


@given(st.lists(st.sampled_from([1, 1.5, True, numpy.int16(3), numpy.float32(2), b"abcdefgh", 2j]), max_size=12))
def test_without_a_layout_everything_has_its_own_width_and_is_aligned_to_it(values):
    natural = {int: 8, float: 8, bool: 1, numpy.int16: 2, numpy.float32: 4, bytes: 8, complex: 16}
    end = 0
    for value in values:
        size = natural[type(value)]
        end = -(-end // size) * size + size
    assert len(pack(*values)) == end
