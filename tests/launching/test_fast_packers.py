# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Which arguments are packed on the fast path, and that both ways to do that agree with the slow one."""

from __future__ import annotations

import ctypes
import gc
import math
import struct
import types
from typing import Any

import numpy
import pytest
from fast_packers import packed_on_fast_path

from cuda_core_cffi import ffi
from cuda_core_cffi._core import calls, compiled_packing
from cuda_core_cffi._core.compiled_packing import ArgumentMemory
from cuda_core_cffi._launching.arguments import make_packer

BOTH = pytest.mark.parametrize("calls", [calls, compiled_packing], ids=["here", "in Python"])


def packer_of_integers(calls: Any, number: int) -> Any:
    """Return what packs so many integers of four bytes quickly, and what must outlive it."""
    given = (int,) * number
    packer = make_packer(given, (0,) * number, tuple((4 * index, 4) for index in range(number)), None)
    return calls.make_packer(packer._slots, packer.target), packer


@BOTH
@pytest.mark.parametrize("number", [1, 16, 32, 33, 256, 257, 513])
@pytest.mark.parametrize(
    "value", [numpy.int32(1), True, 1.0, b"1", None, 1 << 31, -(1 << 31) - 1, 1 << 64], ids=lambda value: repr(value)
)
def test_of_other_types_and_out_of_range_nothing_is_packed_on_the_fast_path(calls, number, value):
    fast, packer = packer_of_integers(calls, number)
    for where in {0, number // 2, number - 1}:
        values = [0] * number
        assert calls.pack(fast, tuple(values)) == bytes(4 * number)
        values[where] = value
        assert calls.pack(fast, tuple(values)) is None
    del packer


@BOTH
@pytest.mark.parametrize("number", [0, 1, 16, 32, 33, 256, 257, 513])
@pytest.mark.parametrize("more", [-1, 1])
def test_of_another_number_of_values_nothing_is_packed_on_the_fast_path(calls, number, more):
    fast, packer = packer_of_integers(calls, number)
    assert calls.pack(fast, (0,) * abs(number + more)) is None
    del packer


@BOTH
@pytest.mark.parametrize("number", [0, 1, 32, 33, 513])
def test_a_packer_for_another_target_packs_the_same(calls, number):
    fast, packer = packer_of_integers(calls, number)
    other = calls.make_packer(packer._slots, packer.retarget(ffi.NULL).target)
    del fast
    gc.collect()
    assert calls.pack(other, tuple(range(number))) == struct.pack(f"{number}i", *range(number))
    assert calls.pack(other, (1.0,) * number) == (None if number else b"")


@pytest.mark.parametrize("number", [0, 1, 33])
def test_a_packer_launches_its_own_target(monkeypatch, number):
    started = []

    def start(target, config, queue, arguments, c_handles, places, count):
        assert count == 0
        started.append((target, config, queue, ffi.buffer(arguments, 4 * number)[:]))
        return 7

    monkeypatch.setattr(compiled_packing, "_launch", start)
    fast, packer = packer_of_integers(compiled_packing, number)
    stream = types.SimpleNamespace(_c_handle="c_handle")
    values = tuple(range(number))
    target = ffi.new("ccc_target *", packer.target[0])
    for made, native in ((fast, packer.target), (compiled_packing.make_packer(packer._slots, target), target)):
        assert compiled_packing.launch(made, stream, "config", values) == 7
        assert started.pop() == (native, "config", "c_handle", struct.pack(f"{number}i", *values))
    assert compiled_packing.launch(fast, stream, "config", (*values, 0)) is None
    assert compiled_packing.launch(fast, object(), "config", values) is None
    assert compiled_packing.launch(fast, stream, None, values) is None
    assert started == []


def test_a_launch_within_another_has_arguments_of_its_own(monkeypatch):
    seen = []
    outer, inner = types.SimpleNamespace(_c_handle="outer"), types.SimpleNamespace(_c_handle="inner")

    def start(target, config, queue, arguments, c_handles, places, count):
        if queue == "outer":
            assert compiled_packing.launch(fast, inner, "config", (2,)) == 0
        seen.append(struct.unpack("i", ffi.buffer(arguments, 4)))
        return 0

    monkeypatch.setattr(compiled_packing, "_launch", start)
    fast, packer = packer_of_integers(compiled_packing, 1)
    for _ in range(3):  # from the second time on there is a room for both
        assert compiled_packing.launch(fast, outer, "config", (1,)) == 0
    assert seen == [(2,), (1,)] * 3
    del packer


def test_memory_for_arguments_is_used_again(monkeypatch):
    made = []
    monkeypatch.setattr(
        compiled_packing, "ArgumentMemory", lambda *arguments: made.append(arguments) or ArgumentMemory(*arguments)
    )
    fast, packer = packer_of_integers(compiled_packing, 1)
    for value in (1, 1.0, 1 << 40, 2):
        compiled_packing.pack(fast, (value,))
        assert compiled_packing.launch(fast, None, "config", (value,)) is None
    assert len(made) == 1
    del packer


@pytest.mark.parametrize(
    ("value", "size"),
    [
        *[(value, size) for size in (1, 2, 4, 8) for value in (-(1 << 8 * size - 1), -1, 0, (1 << 8 * size - 1) - 1)],
        *[
            (value, value.nbytes)
            for kind in "bhiqBHIQ"
            for value in [numpy.array(-1 if kind.islower() else 1, kind)[()]]
        ],
        *[(numpy.iinfo(kind).max * numpy.ones((), kind)[()], numpy.dtype(kind).itemsize) for kind in "bhiqBHIQ"],
        *[(kind(1), ctypes.sizeof(kind)) for kind in (ctypes.c_int8, ctypes.c_uint16, ctypes.c_int32, ctypes.c_uint64)],
        (ctypes.c_uint64((1 << 64) - 1), 8),
        (ctypes.c_bool(True), 1),
        (ctypes.c_float(0.5), 4),
        (ctypes.c_double(0.5), 8),
        (True, 1),
        (True, 4),
        (numpy.bool_(True), 1),
        (0.5, 8),
        (0.5, 4),
        (math.inf, 4),
        (math.nan, 8),
        (numpy.float32(0.5), 4),
        (numpy.float64(math.nan), 8),
        (0.5 - 2j, 8),
        (0.5 - 2j, 16),
        (b"12345", 5),
    ],
    ids=lambda value: repr(value),
)
def test_what_programs_pass_is_packed_on_the_fast_path(value, size):
    packer = make_packer((type(value),), (value,), ((0, size),), None)
    (packed,) = packed_on_fast_path(packer, (value,))
    assert packed == packer.pack_on_slow_path((value,))


@pytest.mark.parametrize("value", [3.5e38, -3.5e38, 1e300])
def test_a_double_that_is_too_large_for_a_float_is_not_packed_on_the_fast_path(value):
    packer = make_packer((float,), (0.0,), ((0, 4),), None)
    assert packed_on_fast_path(packer, (value,)) == {None}
    assert packed_on_fast_path(packer, (3.4028235677973362e38,)) == {struct.pack("<f", 3.4028235677973362e38)}


def test_a_buffer_is_packed_quickly_until_it_is_closed(device):
    buffer = device.allocate(16)
    packer = make_packer((type(buffer),), (buffer,), ((0, 8),), None)
    assert packer.pack_on_slow_path((buffer,)) == struct.pack("<Q", buffer.handle)
    assert packed_on_fast_path(packer, (buffer,)) == {struct.pack("<Q", buffer.handle)}
    buffer.close()
    assert packed_on_fast_path(packer, (buffer,)) == {None}


def test_what_an_argument_raises_that_is_no_answer_is_raised():
    class Number(ctypes.c_int32):
        pass

    def interrupted(value: Any) -> bytes:
        raise KeyboardInterrupt

    packer = make_packer((Number,), (Number(1),), ((0, 4),), None)
    (slot,) = packer._slots
    fast = calls.make_packer((slot._replace(pack=interrupted),), packer.target)
    with pytest.raises(KeyboardInterrupt):
        calls.pack(fast, (Number(1),))
