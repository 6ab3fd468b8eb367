# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Launching kernels, end to end: kernels that write what they were given to memory."""

from __future__ import annotations

import ctypes
import enum
import inspect
import pickle
import struct
import sys
import threading
import weakref
from typing import Any

import numpy
import pytest
from writing_kernels import MANY, ONE, PINNED, SCALARS, Pair, collect, compiled_kernels, content, shared_memory

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    CUDAError,
    Device,
    LaunchConfig,
    ffi,
    launch,
)
from cuda_core_cffi._launching import launch as launch_module


class Level(enum.IntEnum):
    HIGH = 3


class Celsius(float):
    pass


class ForeignStream:
    """A stream of another library."""

    def __init__(self, stream) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.stream.handle)


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


def run(stream, kernel, *arguments, config: LaunchConfig = ONE) -> None:
    """Launch and wait."""
    launch(stream, config, kernel, *arguments)
    stream.sync()


def test_saxpy(device, stream, kernels):
    n = 1000
    with PINNED.allocate(4 * n) as x, PINNED.allocate(4 * n) as y:
        xs, ys = numpy.from_dlpack(x).view("f4"), numpy.from_dlpack(y).view("f4")
        xs[:], ys[:] = numpy.arange(n), 1
        run(stream, kernels("saxpy"), 2.0, x, y, n, config=LaunchConfig(grid=-(-n // 128), block=128))
        assert numpy.array_equal(ys, 1 + 2 * numpy.arange(n))
        del xs, ys
    collect()


def test_a_kernel_works_on_device_memory(device, stream, kernels):
    with device.allocate(64, stream) as memory, PINNED.allocate(64) as host:
        memory.fill(0, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=16), kernels("place"), memory)
        memory.copy_to(host, stream=stream)
        stream.sync()
        assert content(host, "16I") == tuple(range(16))


# Every type of argument reaches the kernel


@pytest.mark.parametrize(
    ("kernel", "value", "expected"),
    [
        *[(name, 100, 100) for name in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")],
        ("s8", -128, -128), ("u8", 255, 255), ("s16", -(2**15), -(2**15)), ("u16", 2**16 - 1, 2**16 - 1),
        ("s32", -(2**31), -(2**31)), ("u32", 2**32 - 1, 2**32 - 1), ("s64", -(2**63), -(2**63)),
        ("u64", 2**64 - 1, 2**64 - 1), ("s32", Level.HIGH, 3), ("s32", True, 1), ("u8", True, 1),
        ("boolean", True, True), ("boolean", False, False),
        ("f16", 1.5, 1.5), ("f32", 1.5, 1.5), ("f64", 0.1, 0.1), ("f32", Celsius(-2.5), -2.5),
        ("f32", float("inf"), float("inf")),
        ("s8", numpy.int8(-3), -3), ("u16", numpy.uint16(60000), 60000), ("s32", numpy.int32(-5), -5),
        ("u64", numpy.uint64(2**63), 2**63), ("f16", numpy.float16(0.5), 0.5), ("f32", numpy.float32(0.25), 0.25),
        ("f64", numpy.float64(0.1), 0.1), ("boolean", numpy.bool_(True), True),
        ("s16", ctypes.c_int16(-7), -7), ("u32", ctypes.c_uint32(7), 7), ("f64", ctypes.c_double(0.3), 0.3),
        ("boolean", ctypes.c_bool(True), True), ("f32", ctypes.c_float(0.5), 0.5),
        ("s32", ffi.cast("int", -9), -9), ("f64", ffi.cast("double", 0.7), 0.7),
        ("s32", b"\1\2\0\0", 513), ("f32", struct.pack("<f", 8.0), 8.0), ("s64", bytearray(b"\5" + bytes(7)), 5),
        ("u32", memoryview(b"\1\0\0\0"), 1),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_a_number_reaches_the_kernel_in_the_width_that_it_declares(stream, kernels, out, kernel, value, expected):
    run(stream, kernels(kernel), out, value)
    assert content(out, SCALARS[kernel][1]) == (expected,)


@pytest.mark.parametrize(
    ("kernel", "value"),
    [("c64", 1.5 - 2j), ("c128", 1.5 - 2j), ("c64", numpy.complex64(1.5 - 2j)), ("c128", numpy.complex128(1.5 - 2j)),
     ("c128", struct.pack("<dd", 1.5, -2))],
)  # fmt: skip
def test_a_complex_number_reaches_the_kernel(stream, kernels, out, kernel, value):
    run(stream, kernels(kernel), out, value)
    assert content(out, SCALARS[kernel][1]) == (1.5, -2.0)


@pytest.mark.parametrize("how", ["buffer", "int", "numpy", "ctypes", "cffi"])
def test_an_address_reaches_the_kernel(device, stream, kernels, out, how):
    with device.allocate(64, stream) as buffer:
        address = buffer.handle
        value = {
            "buffer": buffer, "int": address, "numpy": numpy.uint64(address), "ctypes": ctypes.c_void_p(address),
            "cffi": buffer.cdata,
        }[how]  # fmt: skip
        run(stream, kernels("address"), out, value)
        assert content(out, "Q") == (address,)


def test_an_empty_buffer_is_the_null_pointer(device, stream, kernels, out):
    out.__buffer__(0)[:8] = b"\xff" * 8
    with device.allocate(0, stream) as empty:
        run(stream, kernels("address"), out, empty)
    assert content(out, "Q") == (0,)


@pytest.mark.parametrize("how", ["ctypes", "bytes", "numpy"])
def test_structures_are_passed_by_value(stream, kernels, out, how):
    pair: Any = Pair(7, 2.5)
    if how == "bytes":
        pair = bytes(pair)
    elif how == "numpy":
        pair = numpy.array([(7, 2.5)], numpy.dtype([("key", "i4"), ("weight", "f8")], align=True))[0]
    run(stream, kernels("mixed"), -1, 1.25, -300, pair, 9, bytes(range(13)), out)
    assert content(out, "19q") == (-1, 20, -300, 7, 40, 9, *range(13))


def test_many_arguments_reach_the_kernel(stream, kernels, out):
    run(stream, kernels("many"), out, *range(-32, 32))
    assert content(out, f"{MANY}i") == tuple(range(-32, 32))


def test_a_kernel_without_arguments_runs(stream, kernels):
    run(stream, kernels("nothing"))


# The shape of the launch


@pytest.mark.parametrize(
    ("grid", "block"), [(1, 1), (5, 1), (1, 7), ((2, 3), 4), ((1, 2, 3), (2, 3, 2)), ((2, 1, 2), (1, 1, 4))]
)
def test_every_thread_of_every_block_runs_once(stream, kernels, out, grid, block):
    config = LaunchConfig(grid=grid, block=block)
    blocks, threads = (int(numpy.prod(shape)) for shape in (config.grid, config.block))
    run(stream, kernels("place"), out, config=config)
    expected = tuple(b * 1000 + t for b in range(blocks) for t in range(threads))
    assert content(out, f"{blocks * threads}I") == expected


def test_dynamic_shared_memory_is_there(stream, kernels, out):
    run(stream, kernels("through_shared"), out, config=LaunchConfig(grid=1, block=32, shmem_size=128))
    assert content(out, "32I") == tuple(reversed(range(32)))


def test_a_changed_configuration_takes_effect(stream, kernels, out):
    config = LaunchConfig(grid=1, block=2)
    run(stream, kernels("place"), out, config=config)
    config.block = (4,)
    run(stream, kernels("place"), out, config=config)
    assert content(out, "5I") == (0, 1, 2, 3, 0)


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("cluster", [None, 2])
@pytest.mark.parametrize("serialization", [False, True])
def test_launch_attributes_are_accepted(device, stream, kernels, out, cooperative, cluster, serialization):
    if cluster and device.compute_capability < (9, 0):
        pytest.skip("clusters need compute capability 9.0")
    config = LaunchConfig(
        grid=2, cluster=cluster, block=2, is_cooperative=cooperative, programmatic_stream_serialization=serialization
    )
    run(stream, kernels("place"), out, config=config)
    blocks = 2 * (cluster or 1)
    assert content(out, f"{2 * blocks}I") == tuple(b * 1000 + t for b in range(blocks) for t in range(2))


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (LaunchConfig(1, None, (1000, 100)), r"; 100000 threads in block=\(1000, 100, 1\) are more than the \d+ of "),
        (LaunchConfig(1, None, 1, 2**31), r"; 2147483648 bytes of shmem_size are more than the \d+ of "),
        (LaunchConfig(1, None, (1, 1, 65)), r"; 65 in z of block are more than the 64 of "),
        (LaunchConfig((1, 70000), None, 1), r"; 70000 in y of grid are more than the 65535 of "),
    ],
    ids=["threads", "shared memory", "block", "grid"],
)
def test_a_launch_that_the_driver_refuses_says_what_was_launched_and_what_is_too_large(stream, kernels, config, told):
    kernel = kernels("nothing")
    with pytest.raises(CUDAError, match=f"failed: CUDA_ERROR_INVALID_VALUE.*{told}") as caught:
        launch(stream, config, kernel)
    assert caught.value.__notes__ == [f"launch of {kernel!r} with {config!r}"]


# Wrong arguments


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_wrong_number_of_arguments_is_a_value_error(stream, kernels, out, number):
    with pytest.raises(ValueError, match=f"takes 2 arguments, not {number}"):
        launch(stream, ONE, kernels("s32"), *(out, 1, 2)[:number])


@pytest.mark.parametrize(
    ("kernel", "value", "error"),
    [
        ("s32", 1.5, TypeError), ("s32", numpy.float32(1), TypeError), ("s32", 2**32, OverflowError),
        ("s32", numpy.int64(1), TypeError), ("u8", 256, OverflowError), ("f32", 2**24 + 1, OverflowError),
        ("f32", 1e39, OverflowError), ("f32", numpy.int32(1), TypeError), ("f64", 1j, TypeError),
        ("f32", ctypes.c_int32(1), TypeError), ("s32", b"123", TypeError), ("s32", "1", TypeError),
        ("s32", None, TypeError), ("s32", numpy.zeros(1), TypeError), ("c64", 1, TypeError), ("c64", 1.0, TypeError),
        ("boolean", 1.0, TypeError),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__),
)  # fmt: skip
def test_an_argument_that_does_not_fit_is_refused_with_position_and_type(stream, kernels, out, kernel, value, error):
    with pytest.raises(error, match=rf"kernel argument 1 \({type(value).__name__}\)"):
        launch(stream, ONE, kernels(kernel), out, value)
    stream.sync()
    assert content(out, "Q") == (0,)


def test_every_launch_looks_at_the_types_of_its_arguments(stream, kernels, out):
    for value, wrong in ((1, numpy.int32(1)), (1, 1.5), (1, b"1"), (numpy.int64(1), numpy.int32(1)), (1, None)):
        run(stream, kernels("s64"), out, value)
        with pytest.raises(TypeError, match=rf"kernel argument 1 \({type(wrong).__name__}\)"):
            launch(stream, ONE, kernels("s64"), out, wrong)
        with pytest.raises(TypeError, match=r"kernel argument 0 \(float\)"):
            launch(stream, ONE, kernels("s64"), 1.5, value)
        with pytest.raises(ValueError, match="takes 2 arguments, not 3"):
            launch(stream, ONE, kernels("s64"), out, value, value)
    run(stream, kernels("f64"), out, 0.5)
    with pytest.raises(TypeError, match=r"kernel argument 1 \(int64\): the kernel declares a floating-point parameter"):
        launch(stream, ONE, kernels("f64"), out, numpy.int64(1))
    run(stream, kernels("boolean"), out, True)
    with pytest.raises(OverflowError, match=r"kernel argument 1 \(int\): 256 does not fit"):
        launch(stream, ONE, kernels("boolean"), out, 256)


def test_kernels_with_the_same_types_do_not_share_what_they_are(stream, kernels, out):
    for _ in range(3):
        for name, value in (("s32", -1), ("s64", -2), ("u16", 3), ("s8", -4)):
            run(stream, kernels(name), out, value)
            assert content(out, SCALARS[name][1]) == (value,)


def test_a_float_for_a_pointer_is_refused(stream, kernels):
    with pytest.raises(TypeError, match=r"kernel argument 0 \(float\)"):
        launch(stream, ONE, kernels("s32"), 1.0, 1)


def test_a_closed_buffer_is_refused(device, stream, kernels, out):
    launch(stream, ONE, kernels("address"), out, out)
    buffer = PINNED.allocate(8)
    buffer.close()
    with pytest.raises(RuntimeError, match=r"kernel argument \d \(\w+\): the Buffer is closed"):
        launch(stream, ONE, kernels("address"), out, buffer)


@pytest.mark.parametrize("wrong", [None, 1, "config", (1, 1), {"grid": 1, "block": 1}])
def test_a_configuration_of_another_type_is_a_type_error(stream, kernels, wrong):
    with pytest.raises(TypeError, match=f"config must be a LaunchConfig, not {type(wrong).__name__}"):
        launch(stream, wrong, kernels("nothing"))


@pytest.mark.parametrize("wrong", [None, 1, "kernel", len])
def test_a_kernel_of_another_type_is_a_type_error(stream, wrong):
    with pytest.raises(TypeError, match=f"kernel must be a Kernel, not {type(wrong).__name__}"):
        launch(stream, ONE, wrong)


@pytest.mark.parametrize("wrong", [None, 0, "stream"])
def test_a_stream_of_another_type_is_a_type_error(kernels, wrong):
    with pytest.raises(TypeError, match="launch needs a Stream"):
        launch(wrong, ONE, kernels("nothing"))


@pytest.mark.parametrize("used", [False, True])
def test_a_closed_stream_is_refused(device, kernels, used):
    stream = device.create_stream()
    if used:
        run(stream, kernels("nothing"))
    stream.close()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        launch(stream, ONE, kernels("nothing"))


def test_a_configuration_that_changes_during_a_launch_stays_as_it_was_for_it(stream, kernels, out):
    config, seen = LaunchConfig(grid=1, block=2), []

    class Late(numpy.uint32):
        def tobytes(self, order="C"):
            if seen:
                native = weakref.ref(config._native)
                config.block = (4,)
                collect()
                seen.append(native() is not None)
            return super().tobytes(order)

    run(stream, kernels("u32"), out, Late(5), config=config)
    seen.append("once more")
    run(stream, kernels("u32"), out, Late(6), config=config)
    assert (seen, content(out, "I")) == (["once more", True], (6,))


@pytest.mark.parametrize("error", [TypeError, ValueError, AttributeError, OverflowError])
def test_an_exception_that_a_signal_brings_starts_no_second_launch(stream, kernels, monkeypatch, error):
    run(stream, kernels("nothing"))
    starts = []

    def start(*arguments):
        starts.append(arguments)
        raise error("from a signal handler")

    monkeypatch.setattr(launch_module, "_launch", start)
    with pytest.raises(error, match="from a signal handler"):
        launch(stream=stream, config=ONE, kernel=kernels("nothing"))  # which CPython runs in Python
    assert len(starts) == 1


def test_a_launch_that_the_driver_refuses_is_tried_once(stream, kernels, monkeypatch):
    run(stream, kernels("nothing"))
    config = LaunchConfig(grid=1, block=1, shmem_size=1 << 30)
    starts, start = [], launch_module._launch
    monkeypatch.setattr(launch_module, "_launch", lambda *arguments: starts.append(arguments) or start(*arguments))
    for _ in range(2):
        with pytest.raises(CUDAError, match="shmem_size") as caught:
            launch(stream, config, kernels("nothing"))
        assert caught.value.call == "cuKernelSetAttribute"
    # the first time there is nothing to launch with yet; the second time, on CPython, C alone launches
    assert len(starts) == (2 if sys.implementation.name == "cpython" else 3)


@pytest.mark.parametrize("given", [(), (None,), (None, ONE)])
def test_what_is_missing_is_told_as_for_every_function(given):
    with pytest.raises(TypeError, match=r"missing .* required positional argument"):
        launch(*given)


def test_launch_shows_its_arguments():
    assert [*inspect.signature(launch).parameters] == ["stream", "config", "kernel", "kernel_args"]
    assert pickle.loads(pickle.dumps(launch)) is launch


def test_a_closed_kernel_is_refused(stream, kernels):
    kernel = kernels("nothing")
    other = type(kernel).from_handle(kernel.handle)
    run(stream, other)
    other.close()
    with pytest.raises(RuntimeError, match="this Kernel is closed"):
        launch(stream, ONE, other)


# Streams


def test_a_default_stream_takes_a_launch(device, kernels, out):
    run(LEGACY_DEFAULT_STREAM, kernels("s32"), out, 5)
    assert content(out, "i") == (5,)


def test_a_foreign_stream_works_with_a_deprecation_warning_at_the_call(stream, kernels, out):
    with pytest.warns(DeprecationWarning, match="another library's stream") as caught:
        launch(ForeignStream(stream), ONE, kernels("s32"), out, 5)
    stream.sync()
    assert content(out, "i") == (5,)
    assert caught[0].filename == __file__


def test_a_stream_of_ours_gives_no_warning(stream, kernels, recwarn):
    run(stream, kernels("nothing"))
    assert len(recwarn) == 0


# Threads


def test_threads_share_a_kernel_and_a_configuration(device, kernels, out):
    kernel, config, rounds = kernels("add"), LaunchConfig(grid=2, block=4), 50
    barrier, errors = threading.Barrier(8), []

    def work(number: int) -> None:
        try:
            device = Device(0)
            device.set_current()
            with device.create_stream() as stream:
                barrier.wait()
                for turn in range(rounds):
                    # a packer for each type is made by whichever thread comes first
                    by = [1, numpy.uint32(1), ctypes.c_uint32(1), b"\1\0\0\0"][(turn + number) % 4]
                    launch(stream, config, kernel, out, by)
                stream.sync()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert content(out, "I") == (8 * 8 * rounds,)


# A layout that the driver does not tell


def test_without_a_layout_widths_come_from_the_arguments(stream, kernels, out):
    kernel = type(kernels("s64")).from_handle(kernels("mixed").handle)
    kernel._known.layout, kernel._known.kinds = (None,), (None,)
    arguments = (numpy.int8(-1), 1.25, numpy.int16(-300), Pair(7, 2.5), numpy.int8(9), bytes(range(13)), out)
    run(stream, kernel, *arguments)
    assert content(out, "19q") == (-1, 20, -300, 7, 40, 9, *range(13))
    assert not kernel._packers
