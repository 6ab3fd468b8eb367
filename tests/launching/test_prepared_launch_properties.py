# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever values there are: a prepared launch gives the kernel what ``launch`` gives it, or refuses."""

from __future__ import annotations

import ctypes
import warnings
from typing import Any

import numpy
import pytest
from writing_kernels import ONE, SCALARS, compiled_kernels, shared_memory

from cuda_core_cffi import Buffer, Device, LaunchBatch, PreparedLaunch, launch

hypothesis = pytest.importorskip("hypothesis", exc_type=ImportError)  # its compiled part does not load on every PyPy
given, settings, st = hypothesis.given, hypothesis.settings, hypothesis.strategies

TYPES = [
    int, bool, float, complex, bytes, Buffer, *(numpy.dtype(code) for code in "?bBhHiIqQefdFD"), ctypes.c_bool,
    ctypes.c_int8, ctypes.c_uint16, ctypes.c_int32, ctypes.c_uint64, ctypes.c_float, ctypes.c_double, ctypes.c_void_p,
]  # fmt: skip
INTEGERS = st.one_of(
    st.integers(-300, 300), st.integers(-(2**70), 2**70), st.sampled_from([2**31, 2**32 - 1, -(2**31)])
)
VALUES = st.one_of(
    INTEGERS,
    st.booleans(),
    st.floats(),
    st.complex_numbers(),
    st.binary(max_size=16),
    st.text(max_size=2),
    st.none(),
    st.builds(numpy.int32, st.integers(-(2**31), 2**31 - 1)),
    st.builds(numpy.uint8, st.integers(0, 255)),
    st.builds(numpy.float32, st.floats(width=32)),
    st.builds(numpy.bool_, st.booleans()),
    st.builds(ctypes.c_int16, st.integers(-(2**15), 2**15 - 1)),
    st.builds(ctypes.c_double, st.floats()),
)


@pytest.fixture(scope="module")
def bench():
    """Return kernels by name, a stream and memory that host and device share."""
    device = Device(0)
    device.set_current()
    with compiled_kernels() as kernels, device.create_stream() as stream, shared_memory() as out:
        yield kernels, stream, out


def result(stream, out, start) -> Any:
    """Return what a launch wrote, or the type of its error."""
    out.__buffer__(0)[:16] = bytes(16)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start()
    except (TypeError, ValueError, OverflowError) as error:
        return type(error) if "kernel argument 1" in str(error) else error
    stream.sync()
    return bytes(out.__buffer__(0)[:16])


@settings(max_examples=1000, deadline=None)  # three in four types are refused by the kernel
@given(st.sampled_from(sorted(SCALARS)), st.sampled_from(TYPES), VALUES)
def test_a_prepared_launch_gives_what_launch_gives_or_converts_as_python_does(bench, name, declared, value):
    kernels, stream, out = bench
    kernel = kernels(name)
    try:
        prepared = PreparedLaunch(ONE, kernel, Buffer, declared)
    except TypeError:  # the type is not for this parameter
        return
    plain = result(stream, out, lambda: launch(stream, ONE, kernel, out, value))
    ours = result(stream, out, lambda: prepared.launch(stream, out, value))
    again = result(stream, out, lambda: prepared.launch(stream, out, value))
    batched = result(stream, out, lambda: LaunchBatch([(prepared, out, value)]).launch(stream))
    assert again == ours
    assert batched == ours
    if isinstance(plain, bytes) and isinstance(ours, bytes):
        assert ours == plain
    elif isinstance(plain, bytes):  # a type that tells its range has the smaller one
        assert ours is OverflowError
        assert declared is not int
    elif isinstance(ours, bytes):
        assert converted(name, declared, value) == ours
    else:
        assert {plain, ours} <= {TypeError, OverflowError}


def converted(name: str, declared: Any, value: Any) -> bytes:
    """Return the bytes of a value that launch refuses, but that is one of the declared type for Python."""
    code = SCALARS[name][1]
    assert plainly_number(value)
    if code in "efd":
        data = numpy.array(float(value), code).tobytes()
    elif code in ("ff", "dd"):
        data = numpy.array(complex(value), {"ff": "F", "dd": "D"}[code]).tobytes()
    else:
        size = numpy.dtype(code).itemsize
        data = (value.__index__() % 2 ** (8 * size)).to_bytes(size, "little")
    return data.ljust(16, b"\0")


def plainly_number(value: Any) -> bool:
    """Tell whether Python takes a value for a number."""
    return any(hasattr(value, name) for name in ("__index__", "__float__", "__complex__"))
