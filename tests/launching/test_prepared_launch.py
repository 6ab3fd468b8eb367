# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Prepared launches: what reaches the kernel, what is refused, and who may call when."""

from __future__ import annotations

import copy
import ctypes
import enum
import linecache
import pickle
import struct
import threading
import weakref
from typing import Any

import numpy
import pytest
from buffers import ForeignStream
from writing_kernels import MANY, ONE, PINNED, SCALARS, Pair, collect, compiled_kernels, content, shared_memory

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    CUDAError,
    Device,
    LaunchConfig,
    PreparedLaunch,
    ffi,
    launch,
)
from cuda_core_cffi._core import compiled_packing

THREADS = 8
PAIR = numpy.dtype([("key", "i4"), ("weight", "f8")], align=True)


class Level(enum.IntEnum):
    HIGH = 3


def in_python(prepared: PreparedLaunch) -> Any:
    """Return the functions of a prepared launch as they are where C does not do that."""
    plan = prepared._plan
    return compiled_packing.prepare(plan.slots, plan.native, plan)


@pytest.fixture(scope="module")
def kernels():
    """Return kernels by name."""
    with compiled_kernels() as get:
        yield get


@pytest.fixture
def out(device):
    """Return 1 KiB of zeroed memory that host and device share."""
    with shared_memory() as buffer:
        yield buffer


def run(stream, prepared: PreparedLaunch, *values) -> None:
    """Launch and wait."""
    prepared.launch(stream, *values)
    stream.sync()


def outcome(work) -> Any:
    """Return the type and text of what work raises; None if it does not."""
    try:
        work()
    except Exception as error:
        return type(error), str(error)
    return None


# Values reach the kernel


@pytest.mark.parametrize(
    ("kernel", "given", "value", "expected"),
    [
        *[(name, int, 100, 100) for name in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")],
        ("s8", int, -128, -128), ("u8", int, 255, 255), ("u32", int, 2**32 - 1, 2**32 - 1), ("s32", int, True, 1),
        ("u64", int, 2**64 - 1, 2**64 - 1), ("s64", int, -(2**63), -(2**63)), ("s32", int, Level.HIGH, 3),
        ("s32", int, numpy.int32(-5), -5), ("s32", int, numpy.int64(-5), -5), ("s32", Level, 3, 3),
        ("s32", int, ctypes.c_int32(-5), -5), ("s32", int, ffi.cast("int", -9), -9), ("s32", int, b"\1\2\0\0", 513),
        ("boolean", bool, True, True), ("boolean", bool, False, False), ("boolean", bool, 1, True),
        ("s32", bool, True, 1), ("s32", bool, 7, 7), ("boolean", numpy.bool_, True, True),
        ("boolean", bool, numpy.bool_(True), True), ("boolean", ctypes.c_bool, ctypes.c_bool(True), True),
        ("f16", float, 1.5, 1.5), ("f32", float, 1.5, 1.5), ("f64", float, 0.1, 0.1), ("f32", float, 3, 3.0),
        ("f32", float, float("inf"), float("inf")), ("f64", float, numpy.float64(0.1), 0.1),
        ("f32", float, numpy.float32(0.25), 0.25), ("f32", float, ctypes.c_float(0.5), 0.5),
        ("f16", numpy.float16, 0.5, 0.5), ("f32", numpy.float32, numpy.float32(0.25), 0.25),
        ("f32", numpy.dtype("f4"), 0.25, 0.25), ("f64", numpy.float64, 7, 7.0), ("f64", ctypes.c_double, 0.3, 0.3),
        ("f64", ctypes.c_double, ctypes.c_double(0.3), 0.3), ("f64", numpy.float64, numpy.float16(0.5), 0.5),
        ("s8", numpy.int8, -128, -128), ("u8", numpy.uint8, 255, 255), ("u32", numpy.uint32, 2**32 - 1, 2**32 - 1),
        ("u64", numpy.uint64, numpy.uint64(2**63), 2**63), ("s16", ctypes.c_int16, -7, -7),
        ("u32", ctypes.c_uint32, ctypes.c_uint32(7), 7), ("u32", ctypes.c_uint32, 2**31, 2**31),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", repr(value)),
)  # fmt: skip
def test_a_number_reaches_the_kernel(stream, kernels, out, kernel, given, value, expected):
    prepared = PreparedLaunch(ONE, kernels(kernel), Buffer, given)
    for _ in range(2):  # the first time is another path
        out.fill(0, stream=stream)
        run(stream, prepared, out, value)
        assert content(out, SCALARS[kernel][1]) == (expected,)


@pytest.mark.parametrize("given", [complex, bytes, numpy.complex64])
@pytest.mark.parametrize("value", [1.5 - 2j, numpy.complex64(1.5 - 2j), struct.pack("<ff", 1.5, -2)])
def test_a_complex_number_reaches_the_kernel(stream, kernels, out, given, value):
    run(stream, PreparedLaunch(ONE, kernels("c64"), Buffer, given), out, value)
    assert content(out, "ff") == (1.5, -2.0)


@pytest.mark.parametrize("value", [3, 3.0, True * 3])
def test_a_real_number_is_a_complex_one(stream, kernels, out, value):
    run(stream, PreparedLaunch(ONE, kernels("c128"), Buffer, complex), out, value)
    assert content(out, "dd") == (3.0, 0.0)


@pytest.mark.parametrize("given", [Buffer, int, numpy.uint64, ctypes.c_void_p])
@pytest.mark.parametrize("how", ["buffer", "int", "numpy", "ctypes", "cffi"])
def test_an_address_reaches_the_kernel(device, stream, kernels, out, given, how):
    prepared = PreparedLaunch(ONE, kernels("address"), Buffer, given)
    with device.allocate(64, stream) as buffer:
        address = buffer.handle
        value = {
            "buffer": buffer, "int": address, "numpy": numpy.uint64(address), "ctypes": ctypes.c_void_p(address),
            "cffi": buffer.cdata,
        }[how]  # fmt: skip
        for _ in range(2):
            out.fill(0, stream=stream)
            run(stream, prepared, out, value)
            assert content(out, "Q") == (address,)


@pytest.mark.parametrize("given", [Pair, bytes, PAIR])
@pytest.mark.parametrize("how", ["ctypes", "bytes", "bytearray", "numpy"])
def test_structures_are_passed_by_value(stream, kernels, out, given, how):
    pair: Any = Pair(7, 2.5)
    value = {
        "ctypes": pair, "bytes": bytes(pair), "bytearray": bytearray(pair), "numpy": numpy.array([(7, 2.5)], PAIR)[0]
    }[how]  # fmt: skip
    prepared = PreparedLaunch(ONE, kernels("mixed"), numpy.int8, float, ctypes.c_short, given, int, bytes, Buffer)
    run(stream, prepared, -1, 1.25, -300, value, 9, bytes(range(13)), out)
    assert content(out, "19q") == (-1, 20, -300, 7, 40, 9, *range(13))


def test_many_arguments_reach_the_kernel(stream, kernels, out):
    prepared = PreparedLaunch(ONE, kernels("many"), Buffer, *[int] * MANY)
    run(stream, prepared, out, *range(-32, 32))
    assert content(out, f"{MANY}i") == tuple(range(-32, 32))


def test_a_kernel_without_arguments_runs(stream, kernels):
    run(stream, PreparedLaunch(ONE, kernels("nothing")))


def test_values_of_one_launch_do_not_show_in_another(stream, kernels, out):
    first = PreparedLaunch(ONE, kernels("add"), Buffer, int)
    second = PreparedLaunch(ONE, kernels("add"), Buffer, numpy.uint32)
    for by in range(10):
        first.launch(stream, out, by)
        second.launch(stream, out, 100 * by)
    stream.sync()
    assert content(out, "I") == (101 * sum(range(10)),)


# Types that nobody gave


def test_without_types_a_kernel_that_tells_them_is_taken_at_its_word(stream, kernels, out):
    prepared = PreparedLaunch(ONE, kernels("s32"))  # a template: its mangled name has the types
    assert prepared.argument_types == (Buffer, int)
    run(stream, prepared, out, 5)
    assert content(out, "i") == (5,)


def test_types_are_needed_where_the_kernel_does_not_tell_them(kernels):
    kernel = type(kernels("add")).from_handle(kernels("add").handle)
    kernel._known.kinds = ((None, None),)
    with pytest.raises(TypeError, match="does not tell the kind of argument 0: pass the types of all"):
        PreparedLaunch(ONE, kernel)
    kernel._known.kinds = kernel._known.layout = (None,)
    with pytest.raises(TypeError, match="does not tell what its arguments are: pass their types"):
        PreparedLaunch(ONE, kernel)


def test_without_a_layout_widths_come_from_the_types(stream, kernels, out):
    kernel = type(kernels("mixed")).from_handle(kernels("mixed").handle)
    kernel._known.layout = kernel._known.kinds = (None,)
    assert PreparedLaunch(ONE, kernel, bool, complex, int)._plan.native.target.size == 40
    odd = numpy.dtype([("bytes", "S13")])
    prepared = PreparedLaunch(ONE, kernel, numpy.int8, float, numpy.int16, Pair, numpy.int8, odd, Buffer)
    run(stream, prepared, -1, 1.25, -300, Pair(7, 2.5), 9, bytes(range(13)), out)
    assert content(out, "19q") == (-1, 20, -300, 7, 40, 9, *range(13))
    with pytest.raises(TypeError, match=r"argument type 0 \(bytes\): the driver does not tell how large"):
        PreparedLaunch(ONE, kernel, bytes)


# Wrong types, wrong values: the driver hears nothing of them


@pytest.mark.parametrize("number", [1, 3])
def test_a_wrong_number_of_types_is_a_value_error(kernels, number):
    with pytest.raises(ValueError, match=f"the kernel takes 2 arguments, not {number}"):
        PreparedLaunch(ONE, kernels("s32"), *(Buffer, int, int)[:number])


@pytest.mark.parametrize(
    ("kernel", "given", "why"),
    [
        ("s32", str, "not a type of kernel arguments"), ("s32", 1, "not a type of kernel arguments"),
        ("s32", "i4", "not a type of kernel arguments"), ("s32", None, "not a type of kernel arguments"),
        ("s32", list, "not a type of kernel arguments"), ("s32", numpy.dtype(">i4"), "not a type of kernel arguments"),
        ("s32", numpy.dtype("O"), "not a type of kernel arguments"), ("s32", numpy.str_, "not a type"),
        ("s32", ctypes.py_object, "not a type"), ("s32", ctypes.c_longdouble, "not a type"),
        ("s32", numpy.int64, "has 8 bytes, but the kernel's parameter has 4"),
        ("s32", Buffer, "takes 8 bytes, not 4"), ("s32", float, "the kernel declares an integer parameter"),
        ("s32", numpy.float32, "the kernel declares an integer parameter"),
        ("f32", int, "the kernel declares a floating-point parameter"),
        ("f32", Buffer, "the kernel declares a floating-point parameter"),
        ("f64", numpy.float32, "has 4 bytes, but the kernel's parameter has 8"),
        ("f32", complex, "the kernel declares a floating-point parameter"),
        ("c64", numpy.complex128, "has 16 bytes, but the kernel's parameter has 8"),
        ("c64", float, "the kernel declares a structure parameter"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_a_type_that_is_none_or_does_not_fit_is_refused_with_its_position(kernels, kernel, given, why):
    with pytest.raises(TypeError, match=r"argument type 1 \(.*\): " + why):
        PreparedLaunch(ONE, kernels(kernel), Buffer, given)


def test_sixteen_bytes_are_no_float(kernels):
    kernel = type(kernels("f64")).from_handle(kernels("f64").handle)
    kernel._known.layout = kernel._known.kinds = (None,)
    with pytest.raises(TypeError, match=r"argument type 0 \(longdouble\): takes 2, 4, 8 bytes, not 16"):
        PreparedLaunch(ONE, kernel, numpy.longdouble)


@pytest.mark.parametrize(
    ("kernel", "given", "value"),
    [
        ("s32", int, 1.5), ("s32", int, numpy.float32(1)), ("s32", int, 2**32), ("s32", int, -(2**31) - 1),
        ("s32", int, b"123"), ("s32", int, "1"), ("s32", int, None), ("u8", int, 256), ("u8", int, -129),
        ("f32", float, 1e39), ("f32", float, numpy.zeros(2)), ("f64", float, 1j), ("f32", float, "1.5"),
        ("f32", float, ctypes.c_int32(1)), ("f16", float, 1e6), ("c64", complex, 1e39j), ("c64", complex, "1"),
        ("boolean", bool, 1.0), ("boolean", bool, "yes"), ("c64", bytes, b"123"), ("c64", bytes, 1),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", repr(value)),
)  # fmt: skip
def test_a_value_is_refused_as_launch_refuses_it(stream, kernels, out, kernel, given, value):
    prepared = PreparedLaunch(ONE, kernels(kernel), Buffer, given)
    error = outcome(lambda: prepared.launch(stream, out, value))
    plain = outcome(lambda: launch(stream, ONE, kernels(kernel), out, value))
    assert error is not None
    assert plain is not None
    assert error[0] is plain[0]
    assert f"kernel argument 1 ({type(value).__name__})" in error[1]
    stream.sync()
    assert content(out, "Q") == (0,)


@pytest.mark.parametrize("value", [1.5, "x", None, b"1234"])
def test_what_is_no_address_is_refused_where_a_buffer_was_prepared(stream, kernels, value):
    prepared = PreparedLaunch(ONE, kernels("s32"), Buffer, int)
    with pytest.raises(TypeError, match=rf"kernel argument 0 \({type(value).__name__}\)"):
        prepared.launch(stream, value, 1)


@pytest.mark.parametrize(
    ("kernel", "given", "value", "limits"),
    [
        ("u32", numpy.uint32, -1, "0 to 4294967295"), ("u32", numpy.uint32, 2**32, "0 to 4294967295"),
        ("s32", numpy.int32, 2**31, "-2147483648 to 2147483647"), ("u8", ctypes.c_uint8, -1, "0 to 255"),
        ("s32", int, 2**32, "-2147483648 to 4294967295"),
        ("s32", bool, 2**32, "-2147483648 to 4294967295"), ("s8", numpy.int8, numpy.int64(128), "-128 to 127"),
    ],
)  # fmt: skip
def test_an_integer_outside_its_type_is_an_overflow_with_position_and_limits(
    stream, kernels, out, kernel, given, value, limits
):
    prepared = PreparedLaunch(ONE, kernels(kernel), Buffer, given)
    name = type(value).__name__
    with pytest.raises(OverflowError, match=rf"kernel argument 1 \({name}\): {value} is not in the range of {limits}"):
        prepared.launch(stream, out, value)


@pytest.mark.parametrize("given", [bool, numpy.bool_, ctypes.c_bool])
@pytest.mark.parametrize("value", [2, -1, 256])
def test_a_truth_value_is_neither_more_nor_less(stream, kernels, out, given, value):
    prepared = PreparedLaunch(ONE, kernels("boolean"), Buffer, given)
    with pytest.raises(OverflowError, match=rf"kernel argument 1 \(int\): {value} is neither 0 nor 1"):
        prepared.launch(stream, out, value)


def test_a_huge_int_is_too_large_for_a_float(stream, kernels, out):
    prepared = PreparedLaunch(ONE, kernels("f64"), Buffer, float)
    with pytest.raises(
        OverflowError, match=r"kernel argument 1 \(int\): a number of 1329 bits is not exact as a float"
    ):
        prepared.launch(stream, out, 10**400)
    prepared = PreparedLaunch(ONE, kernels("c128"), Buffer, complex)
    with pytest.raises(OverflowError, match=r"kernel argument 1 \(int\)"):
        prepared.launch(stream, out, 10**400)


@pytest.mark.parametrize("how", ["launch", "prepared launch", "in Python"])
def test_an_int_for_a_float_is_taken_if_it_is_exact(stream, kernels, out, how):
    kernel = kernels("f32")
    prepared = PreparedLaunch(ONE, kernel, Buffer, float)
    start = {
        "launch": lambda value: launch(stream, ONE, kernel, out, value),
        "prepared launch": lambda value: prepared.launch(stream, out, value),
        "in Python": lambda value: in_python(prepared)[0](stream, out, value),
    }[how]
    for value in (2**24, True, 5, 2**24 + 2):
        start(value)
        stream.sync()
        assert content(out, "f") == (value,)
    with pytest.raises(OverflowError, match=r"kernel argument 1 \(int\): 16777217 is not exact as a float of 4 bytes"):
        start(2**24 + 1)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_wrong_number_of_values_is_a_type_error_that_names_them(stream, kernels, out, number):
    prepared = PreparedLaunch(ONE, kernels("s32"), Buffer, int)
    with pytest.raises(TypeError, match=rf"this launch is prepared for 2 values, not {number}"):
        prepared.launch(stream, *(out, 1, 2)[:number])


@pytest.mark.parametrize("wrong", [None, 1, "config", (1, 1)])
def test_a_configuration_or_kernel_of_another_type_is_a_type_error(kernels, wrong):
    with pytest.raises(TypeError, match=f"config must be a LaunchConfig, not {type(wrong).__name__}"):
        PreparedLaunch(wrong, kernels("nothing"))
    with pytest.raises(TypeError, match=f"kernel must be a Kernel, not {type(wrong).__name__}"):
        PreparedLaunch(ONE, wrong)


def test_a_stream_of_another_type_is_a_type_error(kernels, out):
    prepared = PreparedLaunch(ONE, kernels("address"), Buffer, Buffer)
    for wrong in (None, 0, "stream", out):
        with pytest.raises(TypeError, match=f"a prepared launch needs a Stream, .*, not {type(wrong).__name__}"):
            prepared.launch(wrong, out, out)


@pytest.mark.parametrize(
    "config", [LaunchConfig(1, None, 100000), LaunchConfig(1, None, 1, 2**31)], ids=["threads", "shared memory"]
)
def test_a_launch_that_the_driver_refuses_says_what_was_launched(stream, kernels, config):
    kernel = kernels("nothing")
    prepared = PreparedLaunch(config, kernel)
    with pytest.raises(CUDAError, match="failed: CUDA_ERROR_INVALID_VALUE") as caught:
        prepared.launch(stream)
    assert caught.value.__notes__ == [f"launch of {kernel!r} with {config!r}"]


# What is closed


def test_a_closed_buffer_is_refused(stream, kernels, out):
    prepared = PreparedLaunch(ONE, kernels("address"), Buffer, Buffer)
    buffer = PINNED.allocate(8)
    prepared.launch(stream, out, buffer)
    stream.sync()
    buffer.close()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"kernel argument 1 \(\w+\): the Buffer is closed"):
            prepared.launch(stream, out, buffer)


def test_a_closed_stream_is_refused(device, kernels):
    prepared = PreparedLaunch(ONE, kernels("nothing"))
    stream = device.create_stream()
    prepared.launch(stream)
    stream.close()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        prepared.launch(stream)


def test_a_closed_kernel_is_refused(stream, kernels):
    kernel = type(kernels("nothing")).from_handle(kernels("nothing").handle)
    prepared = PreparedLaunch(ONE, kernel)
    run(stream, prepared)
    kernel.close()
    with pytest.raises(RuntimeError, match="this Kernel is closed"):
        prepared.launch(stream)
    with pytest.raises(RuntimeError, match="this Kernel is closed"):
        PreparedLaunch(ONE, kernel)


# What is kept


def test_a_prepared_launch_keeps_its_kernel(stream, kernels, out):
    kernel = type(kernels("s32")).from_handle(kernels("s32").handle)
    prepared, watch = PreparedLaunch(LaunchConfig(grid=1, block=1), kernel, Buffer, int), weakref.ref(kernel)
    del kernel
    collect()
    run(stream, prepared, out, 5)
    assert content(out, "i") == (5,)
    assert prepared.kernel is watch()
    start = prepared.launch
    del prepared
    collect()
    start(stream, out, 6)
    stream.sync()
    assert content(out, "i") == (6,)
    del start
    collect()
    assert watch() is None


def packer_of(prepared: PreparedLaunch) -> Any:
    """Return what packs a prepared launch's arguments where C does not do that."""
    plan = prepared._plan
    return compiled_packing.make_packer(plan.slots, ffi.addressof(plan.native, "target"))


def test_packers_of_the_same_form_have_their_code_in_common(kernels):
    one, other = (packer_of(PreparedLaunch(ONE, kernels(name), Buffer, int)).fill for name in ("s32", "u32"))
    assert one is not other
    assert one.__code__ is other.__code__
    assert one not in one.__globals__.values()


COMPILED = """\
def make(start, first, slots, types):
    () = types
    def fill(memory, values):
        (value_0, value_1, ) = values
        if True:
            memory.c_handles[first + 0] = handle_0 = value_0._c_handle
            pack_into(memory.buffer, start, value_1)
            return (handle_0, )
        return None
    return fill
"""


def test_what_is_compiled_for_a_buffer_and_an_integer_can_be_read(kernels):
    packer = packer_of(PreparedLaunch(ONE, kernels("s32"), Buffer, int))
    assert "".join(linecache.getlines(packer.fill.__code__.co_filename)) == COMPILED


@pytest.mark.parametrize("error", [TypeError, ValueError, AttributeError, OverflowError])
def test_an_exception_that_a_signal_brings_starts_no_second_launch(stream, kernels, monkeypatch, error):
    starts = []

    def start(*arguments):
        starts.append(arguments)
        if len(starts) > 1:
            raise error("from a signal handler")
        return 0

    prepared = PreparedLaunch(ONE, kernels("nothing"))
    launch_prepared, _ = in_python(prepared)
    monkeypatch.setattr(compiled_packing, "_launch", start)
    launch_prepared(stream)
    with pytest.raises(error, match="from a signal handler"):
        launch_prepared(stream)
    assert len(starts) == 2


def test_a_prepared_launch_within_another_has_arguments_of_its_own(stream, kernels, out, monkeypatch):
    seen = []

    def start(target, config, queue, arguments, c_handles, places, count):
        assert c_handles[0] == out._c_handle
        assert (places[0], count) == (0, 1)
        seen.append(struct.unpack("i", ffi.buffer(arguments + 8, 4)))
        if len(seen) % 2:
            launch_prepared(stream, out, 2)
            seen[-2] += struct.unpack("i", ffi.buffer(arguments + 8, 4))
        return 0

    prepared = PreparedLaunch(ONE, kernels("s32"), Buffer, int)
    launch_prepared, _ = in_python(prepared)
    monkeypatch.setattr(compiled_packing, "_launch", start)
    for _ in range(3):  # from the second time on there is a room for both
        launch_prepared(stream, out, 1)
    assert seen == [(1, 1), (2,)] * 3


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_wrong_number_of_values_is_told_where_c_does_not_launch(stream, kernels, out, number):
    start, record = in_python(PreparedLaunch(ONE, kernels("s32"), Buffer, int))
    values = (out, 1, 2)[:number]
    for refused in (lambda: start(stream, *values), lambda: record([], None, *values)):
        with pytest.raises(TypeError, match=f"this launch is prepared for 2 values, not {number}"):
            refused()


@pytest.mark.parametrize("wrong", ["stream", "kernel"])
def test_a_handle_of_another_kind_is_no_buffer(stream, kernels, out, wrong):
    start, _ = in_python(PreparedLaunch(ONE, kernels("s32"), Buffer, int))
    other = {"stream": stream, "kernel": kernels("s32")}[wrong]
    with pytest.raises(TypeError, match=rf"kernel argument 0 \({type(other).__name__}\): not a kernel argument"):
        start(stream, other, 1)
    with pytest.raises(TypeError, match="a prepared launch needs a Stream"):
        start(out, out, 1)


def test_assignments_to_the_configuration_change_no_prepared_launch(stream, kernels, out):
    config = LaunchConfig(grid=1, block=2)
    prepared = PreparedLaunch(config, kernels("place"), Buffer)
    config.block = (4,)
    run(stream, prepared, out)
    assert content(out, "5I") == (0, 1, 0, 0, 0)
    assert "block=(2, 1, 1)" in repr(prepared)
    launch(stream, config, kernels("place"), out)
    stream.sync()
    assert content(out, "5I") == (0, 1, 2, 3, 0)


def test_a_prepared_launch_does_not_change_and_is_not_copied(kernels):
    prepared = PreparedLaunch(ONE, kernels("s32"), Buffer, numpy.dtype("i4"))
    with pytest.raises(AttributeError, match="does not change"):
        prepared.launch = print
    with pytest.raises(AttributeError):
        prepared.kernel = None
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="PreparedLaunch cannot be pickled or copied"):
            duplicate(prepared)
    assert repr(prepared) == f"PreparedLaunch({ONE!r}, {kernels('s32')!r}, Buffer, int32)"


# Streams


def test_a_default_stream_takes_a_launch(device, kernels, out):
    run(LEGACY_DEFAULT_STREAM, PreparedLaunch(ONE, kernels("s32"), Buffer, int), out, 5)
    assert content(out, "i") == (5,)


def test_the_stream_of_another_library_takes_a_launch(stream, kernels, out):
    prepared = PreparedLaunch(ONE, kernels("s32"), Buffer, int)
    for value in (5, 6):
        prepared.launch(ForeignStream(stream), out, value)
        stream.sync()
        assert content(out, "i") == (value,)


# Threads


def test_one_prepared_launch_called_from_eight_threads_gives_eight_right_results(device, kernels, out):
    prepared = PreparedLaunch(LaunchConfig(grid=2, block=2), kernels("place"), Buffer)
    give = PreparedLaunch(ONE, kernels("s64"), Buffer, int)
    count = PreparedLaunch(LaunchConfig(grid=2, block=4), kernels("add"), Buffer, int)
    rounds, barrier, wrong = 100, threading.Barrier(THREADS), []

    def work(number: int) -> None:
        device = Device(0)
        device.set_current()
        with device.create_stream() as stream, shared_memory() as mine:
            barrier.wait()
            for turn in range(rounds):
                value = 1000 * number + turn
                give.launch(stream, mine, value)
                count.launch(stream, out, 1)
                stream.sync()
                if content(mine, "q") != (value,):
                    wrong.append((number, turn, content(mine, "q")))
            run(stream, prepared, mine)
            if content(mine, "4I") != (0, 1, 1000, 1001):
                wrong.append((number, content(mine, "4I")))
            done.append(number)

    done: list[int] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sorted(done), wrong) == (list(range(THREADS)), [])
    assert content(out, "I") == (8 * THREADS * rounds,)
