# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between buffers and Python objects with memory of the host."""

from __future__ import annotations

import array
import contextlib
import ctypes
import mmap
import sys
import warnings
import weakref

import numpy
import pytest
from buffers import DATA, PINNED, SIZE, HostResource, content, fresh, write
from helpers import Gate, collect, in_thread, no_release_thread, output_of, soon

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    CUDAError,
    CUDAWarning,
    driver,
    ffi,
    lib,
    live_objects,
    simulator,
)
from cuda_core_cffi._lifetime import host_memory
from cuda_core_cffi._lifetime.host_memory import release_finished, unfinished

pytestmark = pytest.mark.usefixtures("device")

LARGE = 1 << 20
SOURCE_STAYS_ON_PYPY = pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="PyPy waits: there an object can be resized while its memory is in use"
)


def mapped(data: bytes = b"\0" * SIZE) -> mmap.mmap:
    made = mmap.mmap(-1, SIZE)
    made[:] = data
    return made


# What can be copied from, and what also to.
READABLE = {
    "bytes": lambda: DATA,
    "bytearray": lambda: bytearray(DATA),
    "memoryview": lambda: memoryview(DATA),
    "part of a memoryview": lambda: memoryview(b"x" + DATA + b"x")[1:-1],
    "array": lambda: array.array("i", DATA),
    "mmap": lambda: mapped(DATA),
    "ndarray": lambda: numpy.frombuffer(DATA, "f4"),
    "ndarray of two dimensions": lambda: numpy.frombuffer(DATA, "u2").reshape(4, 8),
    "part of an ndarray": lambda: numpy.frombuffer(b"x" * 8 + DATA, "u1")[8:],
    "ndarray without dimensions": lambda: numpy.frombuffer(DATA, f"S{SIZE}").reshape(()),
    "structured ndarray": lambda: numpy.frombuffer(DATA, [("a", "i4"), ("b", "f8"), ("c", "i4")]),
    "ffi.buffer": lambda: ffi.buffer(ffi.new("char[]", DATA), SIZE),
}
WRITABLE = {
    "bytearray": lambda: bytearray(SIZE),
    "memoryview": lambda: memoryview(bytearray(SIZE)),
    "part of a memoryview": lambda: memoryview(bytearray(SIZE + 2))[1:-1],
    "array": lambda: array.array("d", bytes(SIZE)),
    "mmap": mapped,
    "ndarray": lambda: numpy.zeros(SIZE // 4, "f4"),
    "ndarray of two dimensions": lambda: numpy.zeros((4, 8), "u2"),
    "ffi.buffer": lambda: ffi.buffer(ffi.new("char[]", SIZE)),
}


class WithObject(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int64), ("item", ctypes.py_object)]


class UnionWithObject(ctypes.Union):
    _fields_ = [("number", ctypes.c_int64), ("item", ctypes.py_object)]


class PackedWithObject(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("item", ctypes.py_object), ("number", ctypes.c_int64)]


class WithUnions(ctypes.Structure):
    _fields_ = [("unions", UnionWithObject * 2)]


ITEM = ["an object that only the array refers to"]
# Memory of 64 bytes that holds references to Python objects.
WITH_OBJECTS = {
    "object dtype": lambda: numpy.array([None] * 7 + [ITEM], object),
    "record": lambda: numpy.array([(1, ITEM)] * 4, [("number", "i8"), ("item", "O")]),
    "nested record": lambda: numpy.array([(1, (ITEM,))] * 4, [("number", "i8"), ("O", [("item", "O")])]),
    "subarray": lambda: numpy.zeros(2, [("items", "O", 4)]),
    "memoryview": lambda: memoryview(numpy.array([ITEM] * 8 + [None], dtype=object))[:-1],
    "ctypes array": lambda: (ctypes.py_object * 8)(*[ITEM] * 8),
    "ctypes structure": lambda: (WithObject * 4)(*[(1, ITEM)] * 4),
    "ctypes union": lambda: (UnionWithObject * 8)(),
    "packed structure": lambda: (PackedWithObject * 4)(*[(ITEM, 1)] * 4),
    "structure with unions": lambda: (WithUnions * 4)(),
}


@pytest.mark.parametrize("kind", ["device", "pinned"])
@pytest.mark.parametrize("name", READABLE)
def test_memory_of_an_object_is_copied_into_a_buffer(device, stream, name, kind):
    with fresh(kind, device, stream) as buffer:
        buffer.fill(255, stream=stream)
        assert buffer.copy_from(READABLE[name](), stream=stream) is None
        assert content(buffer, stream) == DATA


@pytest.mark.parametrize("kind", ["device", "pinned"])
@pytest.mark.parametrize("name", WRITABLE)
def test_a_buffer_is_copied_into_the_memory_of_an_object(device, stream, name, kind):
    with fresh(kind, device, stream) as buffer:
        write(buffer, DATA, stream)
        target = WRITABLE[name]()
        assert buffer.copy_to(target, stream=stream) is target
        stream.sync()
        assert bytes(memoryview(target).cast("B")) == DATA


def test_memory_of_a_resource_on_the_host_is_copied_too(stream):
    with HostResource().allocate(SIZE) as buffer:
        buffer.copy_from(DATA, stream=stream)
        out = bytearray(SIZE)
        buffer.copy_to(out, stream=stream)
        stream.sync()
        assert out == DATA


@pytest.mark.parametrize("size", [1, 65536, 65537, LARGE + 1])
def test_any_size_is_copied(device, stream, size):
    data = bytes(range(256)) * (size // 256 + 1)
    with device.allocate(size, stream) as buffer:
        buffer.copy_from(data[:size], stream=stream)
        out = bytearray(size)
        buffer.copy_to(out, stream=stream)
        stream.sync()
        assert out == data[:size]


def test_a_part_of_a_buffer_takes_an_object(device, stream):
    with device.allocate(SIZE, stream) as buffer, buffer[16:24] as part:
        write(buffer, DATA, stream)
        part.copy_from(b"12345678", stream=stream)
        out = bytearray(8)
        part.copy_to(out, stream=stream)
        assert content(buffer, stream) == DATA[:16] + b"12345678" + DATA[24:]
        assert out == b"12345678"


def test_nothing_is_copied_between_empty_things(device, stream):
    with device.allocate(0, stream) as buffer:
        buffer.copy_from(b"", stream=stream)
        out = bytearray()
        assert buffer.copy_to(out, stream=stream) is out
        assert buffer.copy_to(numpy.zeros((0, 3)), stream=stream).shape == (0, 3)


@pytest.mark.parametrize("stream", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM], ids=["legacy", "per-thread"])
def test_the_default_streams_copy_objects(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        buffer.copy_from(DATA, stream=stream)
        out = bytearray(SIZE)
        buffer.copy_to(out, stream=stream)
        stream.sync()
        assert out == DATA


def test_a_copy_is_made_in_stream_order(device, stream):
    with device.allocate(SIZE, stream) as buffer, device.allocate(SIZE, stream) as later:
        with Gate(stream) as gate:
            buffer.fill(1, stream=stream)
            buffer.copy_from(DATA, stream=stream)
            buffer.copy_to(later, stream=stream)
            buffer.fill(2, stream=stream)
            gate.open()
        assert content(later, stream) == DATA
        assert content(buffer, stream) == b"\2" * SIZE


# What is refused


@pytest.mark.parametrize(
    "make",
    [
        lambda: DATA,
        lambda: memoryview(DATA),
        lambda: memoryview(bytearray(SIZE)).toreadonly(),
        lambda: numpy.frombuffer(DATA, "u1"),
        lambda: mmap.mmap(-1, SIZE, access=mmap.ACCESS_READ),
    ],
    ids=["bytes", "memoryview", "read-only memoryview", "ndarray", "mmap"],
)
def test_read_only_memory_is_no_destination(device, stream, make):
    target = make()
    with device.allocate(SIZE, stream) as buffer:
        buffer.fill(9, stream=stream)
        with pytest.raises(BufferError, match=f"memory of this {type(target).__name__} is read-only"):
            buffer.copy_to(target, stream=stream)
    assert bytes(target)[:1] == b"\0"


@pytest.mark.parametrize(
    "thing",
    [
        memoryview(bytearray(2 * SIZE))[::2],
        memoryview(bytearray(SIZE))[::-1],
        numpy.zeros(2 * SIZE, "u1")[::2],
        numpy.zeros((8, 8), "u1", order="F"),
        numpy.zeros((8, 16), "u1")[:, :8],
    ],
    ids=["every second", "backwards", "strided", "Fortran order", "columns"],
)
def test_memory_that_is_not_contiguous_is_refused(device, stream, thing):
    with device.allocate(SIZE, stream) as buffer:
        for copy_ in (buffer.copy_to, buffer.copy_from):
            with pytest.raises(BufferError, match=f"memory of this {type(thing).__name__} is not contiguous"):
                copy_(thing, stream=stream)
    assert not unfinished


def test_an_array_that_does_not_show_its_memory_is_refused(device, stream):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(BufferError, match="ndarray does not show its memory"):
        buffer.copy_from(numpy.zeros(8, "M8[s]"), stream=stream)


@pytest.mark.parametrize("name", WITH_OBJECTS)
def test_memory_that_holds_python_objects_is_neither_destination_nor_source(device, stream, name):
    target = WITH_OBJECTS[name]()
    before = bytes(ffi.buffer(ffi.from_buffer(target)))
    size = len(before)
    with device.allocate(size, stream) as buffer:
        buffer.fill(7, stream=stream)
        for copy in (buffer.copy_to, buffer.copy_from):
            with pytest.raises(TypeError, match="references to Python objects"):
                copy(target, stream=stream)
        stream.sync()
        assert bytes(ffi.buffer(ffi.from_buffer(target))) == before
        assert content(buffer, stream) == bytes([7]) * size


@pytest.mark.parametrize("name", WITH_OBJECTS)
def test_the_driver_module_neither_writes_nor_reads_python_objects(device, stream, name):
    target = WITH_OBJECTS[name]()
    before = bytes(ffi.buffer(ffi.from_buffer(target)))
    with device.allocate(len(before), stream) as buffer:
        with pytest.raises(TypeError, match=r"references to Python objects|bytes-like"):  # PyPy's CFFI refuses some
            driver.cuMemcpyDtoH(target, buffer.handle, len(before))
        with pytest.raises(TypeError, match="references to Python objects"):
            driver.cuMemcpyHtoD(buffer.handle, target, len(before))
    assert bytes(ffi.buffer(ffi.from_buffer(target))) == before


def test_a_field_may_be_called_like_the_format_of_objects(device, stream):
    records = numpy.zeros(8, [("O", "i4"), ("Ob", "i4")])
    with device.allocate(SIZE, stream) as buffer:
        buffer.copy_from(records, stream=stream)
        buffer.copy_to(records, stream=stream)
        stream.sync()


def test_memory_of_ctypes_without_objects_is_copied(device, stream):
    union = type("Plain", (ctypes.Union,), {"_fields_": [("number", ctypes.c_int64), ("bytes", ctypes.c_char * 8)]})
    numbers = (union * 8)()
    with device.allocate(SIZE, stream) as buffer:
        write(buffer, DATA, stream)
        buffer.copy_to(numbers, stream=stream)
        stream.sync()
    assert bytes(numbers) == DATA


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1, 10 * SIZE])
def test_an_object_of_another_size_is_refused(device, stream, size):
    with device.allocate(SIZE, stream) as buffer:
        buffer.fill(7, stream=stream)
        out = bytearray(size)
        with pytest.raises(ValueError, match=f"the sizes differ: {SIZE} bytes do not fit {size}"):
            buffer.copy_to(out, stream=stream)
        with pytest.raises(ValueError, match=f"the sizes differ: {size} bytes do not fit {SIZE}"):
            buffer.copy_from(out, stream=stream)
        out.append(1)
        assert content(buffer, stream) == b"\7" * SIZE
        assert out == bytes(size) + b"\1"


def test_size_means_bytes(device, stream):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(ValueError, match=f"{4 * SIZE} bytes do not fit"):
        buffer.copy_from(numpy.zeros(SIZE, "f4"), stream=stream)


def test_memory_is_not_copied_onto_itself(stream):
    with PINNED.allocate(SIZE, stream) as buffer, buffer[8:16] as part:
        shown = numpy.asarray(buffer)
        for copy_, thing in (
            (buffer.copy_to, shown), (buffer.copy_from, shown), (part.copy_to, shown[12:20]),
            (part.copy_from, shown[4:12]),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="source and destination have bytes in common"):
                copy_(thing, stream=stream)
        part.copy_from(shown[16:24], stream=stream)
        stream.sync()
        del shown, thing


@pytest.mark.parametrize("closed", ["buffer", "stream"])
@pytest.mark.parametrize("method", ["copy_to", "copy_from"])
def test_a_closed_operand_is_named(device, closed, method):
    stream = device.create_stream()
    buffer, thing = device.allocate(SIZE, stream), bytearray(SIZE)
    stream.sync()
    {"buffer": buffer, "stream": stream}[closed].close()
    with pytest.raises(RuntimeError, match=f"this {closed.title()} is closed"):
        getattr(buffer, method)(thing, stream=stream)
    thing.append(1)  # it is not held
    buffer.close()
    stream.close()


@pytest.mark.parametrize("stream", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM], ids=["legacy", "per-thread"])
def test_a_default_stream_needs_a_context(device, stream):
    with device.allocate(SIZE) as buffer:
        assert lib.cuCtxSetCurrent(ffi.NULL) == 0
        try:
            with pytest.raises(CUDAError, match="set_current"):
                buffer.copy_from(DATA, stream=stream)
        finally:
            device.set_current()
    assert not unfinished


# How long the memory is held


@contextlib.contextmanager
def copy_under_way(device, stream, source):
    """Copy an object of LARGE bytes behind a gate, which is opened at the end."""
    with device.allocate(LARGE, stream) as buffer, Gate(stream):
        buffer.copy_from(source, stream=stream)
        yield


def large_array() -> numpy.ndarray:
    return numpy.ones(LARGE, "u1")


@SOURCE_STAYS_ON_PYPY
def test_a_source_is_kept_until_the_stream_is_synchronised(device, stream):
    source = large_array()
    kept = weakref.ref(source)
    with copy_under_way(device, stream, source):
        del source
        collect()
        assert kept() is not None
    stream.sync()
    assert kept() is None
    assert not unfinished


def let_go_of_a_finished_copy(device, stream, how):
    """Have a copy end behind the package's back, and learn of it; tell whether it was held until then."""
    source = large_array()
    kept = weakref.ref(source)
    with device.allocate(LARGE, stream) as buffer, device.create_stream() as other, device.allocate(1, other) as byte:
        with Gate(stream) as gate:
            buffer.copy_from(source, stream=stream)
            event = stream.record()
            del source
            gate.open()
            assert lib.cuStreamSynchronize(stream.cdata) == 0
            was_held = kept() is not None
            if how == "event":
                event.sync()
            elif how == "is_done":
                assert event.is_done
            elif how == "device":
                device.sync()
            else:
                byte.copy_from(b"1", stream=other)
            assert kept() is None
        event.close()
    return was_held


@SOURCE_STAYS_ON_PYPY
@pytest.mark.parametrize("how", ["event", "is_done", "device", "next copy"])
def test_whoever_learns_that_a_copy_is_done_lets_go(device, stream, how):
    # now and then the release thread is quicker
    assert any(let_go_of_a_finished_copy(device, stream, how) for _ in range(20))


@SOURCE_STAYS_ON_PYPY
def test_a_destination_is_kept_until_the_copy_is_done(device, stream):
    with PINNED.allocate(SIZE) as pinned, device.allocate(SIZE, stream) as buffer:
        write(buffer, DATA, stream)
        target = numpy.asarray(pinned)
        kept = weakref.ref(target)
        with Gate(stream):
            buffer.copy_to(target, stream=stream)
            del target
            collect()
            assert kept() is not None
        stream.sync()
        assert kept() is None
        assert bytes(numpy.asarray(pinned)) == DATA


@SOURCE_STAYS_ON_PYPY
def test_a_bytearray_cannot_be_resized_while_it_is_copied(device, stream):
    source = bytearray(LARGE)
    with copy_under_way(device, stream, source), pytest.raises(BufferError, match="re-sized"):
        source.append(1)
    stream.sync()
    source.append(1)


@SOURCE_STAYS_ON_PYPY
def test_a_memory_map_cannot_be_closed_while_it_is_copied(device, stream):
    source = mmap.mmap(-1, LARGE)
    with copy_under_way(device, stream, source), pytest.raises(BufferError, match="exported"):
        source.close()
    stream.sync()
    source.close()


def test_bytes_are_held_on_every_interpreter(device, stream):
    before = live_objects()["event"]
    with copy_under_way(device, stream, b"1" * LARGE):
        assert (len(unfinished), live_objects()["event"]) == (1, before + 1)
    stream.sync()
    assert (len(unfinished), live_objects()["event"]) == (0, before)


@SOURCE_STAYS_ON_PYPY
def test_streams_are_waited_for_one_by_one(device, stream):
    sources = [large_array(), large_array()]
    kept = [weakref.ref(source) for source in sources]
    with device.create_stream() as other, device.allocate(LARGE, other) as buffer:
        with copy_under_way(device, stream, sources[0]):  # a driver may call no other host function meanwhile
            buffer.copy_from(sources[1], stream=other)
            sources.clear()
            other.sync()
            assert [one() is None for one in kept] == [False, True]
        stream.sync()
        assert kept[0]() is None


def test_an_object_may_be_used_again_once_the_call_that_copied_to_it_is_synchronised(device, stream):
    target = bytearray(SIZE)
    with device.allocate(SIZE, stream) as buffer:
        for value in range(3):
            buffer.fill(value, stream=stream)
            buffer.copy_to(target, stream=stream)
            stream.sync()
            assert target == bytes([value]) * len(target)
            target.extend(b"x")
            del target[-1]


AT_EXIT = """
import ctypes, time
from cuda_core_cffi import Device, ffi, lib
device = Device(0)
device.set_current()
stream = device.create_stream()
buffer, out = device.allocate(1 << 20, stream), device.allocate(1 << 20, stream)
sleep = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: time.sleep(0.5))
address = ctypes.cast(sleep, ctypes.c_void_p).value
assert lib.cuLaunchHostFunc(stream.cdata, ffi.cast("CUhostFn", address), ffi.NULL) == 0
buffer.copy_from(b"1" * (1 << 20), stream=stream)
from cuda_core_cffi._lifetime.host_memory import unfinished
assert unfinished
"""


def test_a_copy_under_way_at_exit_is_waited_for():
    shown = "dict(sys.modules['cuda_core_cffi._lifetime.host_memory'].unfinished)"
    done = f"import atexit; atexit.register(lambda: print({shown}))"
    # what is registered first runs last
    assert output_of(f"import sys\n{done}\n" + AT_EXIT) == "{}"


AFTER_FORK = (
    AT_EXIT
    + """
import os
child = os.fork()
if child == 0:
    os._exit(len(unfinished))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(unfinished))
"""
)


def test_copies_are_the_parents_after_a_fork():
    assert output_of(AFTER_FORK, PYTHONWARNINGS="ignore") == "0 1"


# Failures


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("to_host", [True, False])
@pytest.mark.parametrize("call", ["cuStreamIsCapturing", "cuEventCreate", "cuMemcpyAsync"])
def test_a_copy_that_is_refused_changes_nothing(device, stream, call, to_host):
    with device.allocate(SIZE, stream) as buffer:
        buffer.fill(1, stream=stream)
        thing = bytearray(b"\2" * SIZE)
        before = live_objects(), simulator.live()
        with simulator.fail(call, "CUDA_ERROR_UNKNOWN") as fault, pytest.raises(CUDAError, match=call):
            (buffer.copy_to if to_host else buffer.copy_from)(thing, stream=stream)
        assert (fault.left, (live_objects(), simulator.live())) == (0, before)
        assert not unfinished
        thing.append(1)
        assert thing == b"\2" * SIZE + b"\1"
        assert content(buffer, stream) == b"\1" * SIZE


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_where_no_event_can_be_recorded_the_copy_is_waited_for(device, stream):
    with device.allocate(LARGE, stream) as buffer, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = live_objects()
        with simulator.fail("cuEventRecord", "CUDA_ERROR_UNKNOWN"), simulator.trace() as trace:
            buffer.copy_from(b"\1" * LARGE, stream=stream)
        called = [name for name in trace.names if not name.startswith("cuGetProcAddress")]
        assert called[-3:] == ["cuStreamSynchronize", "cuEventQuery", "cuEventDestroy_v2"]
        assert not unfinished
        device.create_event().close()  # tells
        assert [w.category for w in caught] == [CUDAWarning]
        assert "cuEventRecord" in str(caught[0].message)
        assert live_objects() == before
        assert content(buffer, stream) == b"\1" * LARGE


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_a_copy_of_which_nothing_is_known_is_held(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        with no_release_thread(), simulator.fail("cuEventQuery", "CUDA_ERROR_UNKNOWN", count=2):
            buffer.copy_from(DATA, stream=stream)
            assert len(unfinished) == 1
            stream.sync()
            assert len(unfinished) == 1
        stream.sync()
        assert not unfinished


def test_another_thread_may_release_what_a_thread_waits_for(device, stream, monkeypatch):
    wait = host_memory._event_sync

    def wait_and_be_released(event):
        gate.open()
        status = wait(event)
        in_thread(release_finished)  # while this thread still uses the event
        assert not unfinished
        return status

    with no_release_thread(), device.allocate(SIZE, stream=stream) as buffer, Gate(stream) as gate:
        buffer.copy_from(DATA, stream=stream)
        (reference,) = unfinished.values()
        before = live_objects()["event"]
        monkeypatch.setattr(host_memory, "_event_sync", wait_and_be_released)
        reference.wait()
        assert live_objects()["event"] == before - 1


def test_an_interrupted_wait_leaves_the_memory_alive(device, stream, monkeypatch):
    def interrupted(event):
        raise KeyboardInterrupt

    with no_release_thread(), device.allocate(SIZE, stream=stream) as buffer, Gate(stream) as gate:
        buffer.copy_from(DATA, stream=stream)
        (reference,) = unfinished.values()
        with monkeypatch.context() as patch:
            patch.setattr(host_memory, "_event_sync", interrupted)
            with pytest.raises(KeyboardInterrupt):
                reference.wait()
        assert list(unfinished.values()) == [reference]
        gate.open()
        reference.wait()
    assert not unfinished


def test_an_interrupted_release_loses_no_event(device, stream, monkeypatch):
    def interrupted(memory):
        raise KeyboardInterrupt

    with no_release_thread(), device.allocate(SIZE, stream=stream) as buffer, Gate(stream) as gate:
        before = live_objects()["event"]
        for _ in range(3):
            buffer.copy_from(DATA, stream=stream)
        gate.open()
        assert lib.cuStreamSynchronize(stream.cdata) == 0
        with monkeypatch.context() as patch:
            patch.setattr(host_memory, "_release_memory", interrupted)
            with pytest.raises(KeyboardInterrupt):
                release_finished()
        assert len(unfinished) == 2
        release_finished()
        assert not unfinished
        assert soon(lambda: live_objects()["event"] == before)


@pytest.mark.parametrize("convert", [numpy.asarray, numpy.array, lambda buffer: numpy.zeros(SIZE, "u1") + buffer])
def test_numpy_refuses_the_memory_of_a_device_and_names_the_copy(device, stream, convert):
    with (
        device.allocate(SIZE, stream) as buffer,
        pytest.raises(TypeError, match=rf"copy the Buffer .* buffer\.copy_to\(numpy\.empty\({SIZE}, numpy\.uint8\)"),
    ):
        convert(buffer)


def test_numpy_says_that_a_buffer_is_closed(device, stream):
    buffer = device.allocate(SIZE, stream)
    buffer.close()
    with pytest.raises(RuntimeError, match="this Buffer is closed"):
        numpy.asarray(buffer)
