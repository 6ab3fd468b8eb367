# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers for other libraries: the two array interfaces and the buffer protocol. DLPack has a file of its own."""

from __future__ import annotations

import sys

import numpy
import pytest
from buffers import DATA, PINNED, SIZE, HostResource, Owner
from helpers import PYPY, collect

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    ManagedMemoryResource,
    MemoryResource,
    ffi,
    live_objects,
)
from cuda_core_cffi._lifetime.pending_calls import run_all_tasks
from cuda_core_cffi.utils import StridedMemoryView, TrackingMemoryResource

pytestmark = pytest.mark.usefixtures("device")
ENDINGS = pytest.mark.parametrize("ending", ["close", "collect"])
HOST = HostResource()
# Memory that the host can access, from each kind of resource.
RESOURCES = {
    "pinned": lambda: PINNED,
    "managed": lambda: ManagedMemoryResource({"preferred_location": 0}),
    "written in Python": lambda: HOST,
    "tracked": lambda: TrackingMemoryResource(PINNED),
}
KINDS = pytest.mark.parametrize("kind", RESOURCES)


def pinned(data: bytes = DATA) -> Buffer:
    """Return a pinned buffer with data."""
    buffer = PINNED.allocate(len(data))
    ffi.buffer(ffi.cast("char *", buffer.handle), len(data))[:] = data
    return buffer


class Interface:
    """Has an array interface that another object has."""

    def __init__(self, name: str, buffer: Buffer) -> None:
        self.buffer = buffer
        setattr(self, name, getattr(buffer, name))


def allocated() -> int:
    """Return how many allocations have not gone back."""
    for _ in range(1 + PYPY):  # PyPy collects one link of a chain of objects with finalizers at a time
        collect()
    run_all_tasks()  # PyPy is not told when tensors are gone
    return live_objects()["buffer"] + len(HOST.live)


# Array interfaces


def test_device_memory_has_the_cuda_array_interface(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        assert buffer.__cuda_array_interface__ == {
            "version": 3, "shape": (SIZE,), "typestr": "|u1", "data": (buffer.handle, False), "strides": None,
            "stream": stream.handle,
        }  # fmt: skip
        assert not hasattr(buffer, "__array_interface__")
    assert not hasattr(buffer, "__array_struct__")


def test_a_default_stream_has_its_number_in_the_cuda_array_interface(device):
    with device.allocate(SIZE, LEGACY_DEFAULT_STREAM) as buffer:
        assert buffer.__cuda_array_interface__["stream"] == 1
    with device.allocate(SIZE, PER_THREAD_DEFAULT_STREAM) as buffer:
        assert buffer.__cuda_array_interface__["stream"] == 2


def test_pinned_memory_has_both_array_interfaces(device):
    with pinned() as buffer:
        assert "stream" not in buffer.__cuda_array_interface__
        assert buffer.__array_interface__["data"] == (buffer.handle, False)
        array = numpy.asarray(buffer)
        assert (array.dtype, array.tobytes()) == (numpy.uint8, DATA)
        del array
    collect()


def test_host_memory_has_the_array_interface_only():
    owner = Owner()
    buffer = Buffer.from_handle(owner.address, SIZE, owner=owner)
    assert not hasattr(buffer, "__cuda_array_interface__")
    assert numpy.asarray(buffer).tobytes() == DATA


def allocate(mr: MemoryResource) -> Buffer:
    """Return a buffer that the host can use at once."""
    buffer = mr.allocate(SIZE)
    LEGACY_DEFAULT_STREAM.sync()
    return buffer


@pytest.mark.parametrize("part", [False, True], ids=["whole", "slice"])
@KINDS
def test_an_array_of_numpy_keeps_the_memory_of_a_closed_buffer(kind, part):
    mr = RESOURCES[kind]()
    before = allocated()
    buffer = allocate(mr)
    ffi.buffer(ffi.cast("char *", buffer.handle), SIZE)[:] = DATA
    exported = buffer[8:] if part else buffer
    array = numpy.asarray(exported)[::2]
    assert array.ctypes.data == exported.handle
    exported.close()
    buffer.close()
    others = [allocate(mr) for _ in range(8)]
    for other in others:
        ffi.buffer(ffi.cast("char *", other.handle), SIZE)[:] = bytes(SIZE)
    assert array.tobytes() == DATA[8 * part :: 2]
    array[:] = 1
    assert not any(any(ffi.buffer(ffi.cast("char *", other.handle), SIZE)[:]) for other in others)
    for other in others:
        other.close()
    assert allocated() == before + 1
    del array
    assert allocated() == before


@KINDS
def test_the_last_array_of_numpy_gives_the_memory_back_though_the_closed_buffer_stays(kind):
    mr = RESOURCES[kind]()
    before = allocated()
    with allocate(mr) as buffer:
        arrays = [numpy.asarray(buffer) for _ in range(2)]
    while arrays:
        assert allocated() == before + 1
        arrays.pop()[:] = 7
    assert allocated() == before
    assert buffer.is_closed


@pytest.mark.parametrize("part", [False, True], ids=["whole", "slice"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, "__array_interface__") for kind in RESOURCES]
    + [(kind, "__cuda_array_interface__") for kind in ("pinned", "managed", "tracked")],
)
def test_who_keeps_a_buffer_for_an_array_interface_keeps_the_memory(kind, name, part):
    before = allocated()
    buffer = allocate(RESOURCES[kind]())
    exported = buffer[8:] if part else buffer
    array = [Interface(name, exported) for _ in range(2)].pop()  # the arrays of CuPy and Numba keep the buffer, too
    exported.close()
    buffer.close()
    del buffer, exported
    assert allocated() == before + 1
    del array
    assert allocated() == before


def test_a_view_by_an_array_interface_keeps_the_memory_and_is_not_exported_once_the_buffer_is_closed():
    before = allocated()
    buffer = pinned()
    views = [
        StridedMemoryView.from_array_interface(buffer),
        StridedMemoryView.from_cuda_array_interface(buffer, -1),
    ]
    buffer.close()
    for view in views:
        with pytest.raises(BufferError, match="Buffer is closed"):
            view.__dlpack__(stream=-1)
    assert allocated() == before + 1
    del buffer, view, views
    assert allocated() == before


def test_a_buffer_that_was_not_exported_gives_the_memory_back_at_once():
    before = allocated()
    with pinned() as buffer:
        assert allocated() == before + 1
    assert allocated() == before
    assert buffer.is_closed


# The buffer protocol


def test_host_memory_is_a_writable_memoryview():
    with pinned() as buffer:
        view = buffer.__buffer__(0)
        assert (view.nbytes, view.readonly, view.format, view.tobytes()) == (SIZE, False, "B", DATA)
        view[0] = 99
        assert buffer.__buffer__(0)[0] == 99
        buffer.__release_buffer__(view)
        with pytest.raises(ValueError, match="released"):
            view.tobytes()


@ENDINGS
def test_a_memoryview_keeps_pinned_memory(device, ending):
    before = live_objects()["buffer"]
    buffer = pinned()
    view = buffer.__buffer__(0)[8:]
    if ending == "close":
        buffer.close()
    del buffer
    collect()
    assert live_objects()["buffer"] == before + 1
    assert view.tobytes() == DATA[8:]
    del view
    collect()
    assert live_objects()["buffer"] == before


@ENDINGS
def test_a_memoryview_keeps_memory_of_a_python_resource(ending):
    mr = HostResource()
    buffer = mr.allocate(SIZE)
    view = buffer.__buffer__(0)
    if ending == "close":
        buffer.close()
    del buffer
    collect()
    assert len(mr.live) == 1
    view[:] = DATA
    assert view.tobytes() == DATA
    del view
    collect()
    assert mr.live == {}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the interpreter asks __buffer__ from Python 3.12 on")
def test_the_interpreter_takes_a_buffer_for_bytes():
    with pinned() as buffer:
        assert bytes(memoryview(buffer)) == DATA
        assert bytes(buffer) == DATA


def test_device_memory_is_no_memoryview(device, stream):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(BufferError, match="host can access"):
        buffer.__buffer__(0)


def test_an_empty_buffer_is_an_empty_memoryview():
    with PINNED.allocate(0) as buffer:
        assert buffer.__buffer__(0).nbytes == 0


@pytest.mark.parametrize("kind", ["device", "pinned", "borrowed"])
def test_a_closed_buffer_has_no_interface(device, stream, kind):
    buffer = device.allocate(SIZE, stream) if kind == "device" else PINNED.allocate(SIZE)
    if kind == "borrowed":
        buffer = Buffer.from_handle(0x1000, SIZE)
    buffer.close()
    with pytest.raises(BufferError, match="this Buffer is closed"):
        buffer.__buffer__(0)
    assert not hasattr(buffer, "__cuda_array_interface__")
    assert not hasattr(buffer, "__array_interface__")
    assert not hasattr(buffer, "__array_struct__")


@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
def test_an_array_interface_has_the_address_though_another_thread_closes_the_buffer_meanwhile(monkeypatch, name):
    buffer = pinned()
    address, hold = buffer.handle, type(buffer)._retain_memory

    def hold_and_close(self):
        kept = hold(self)
        self.close()
        return kept

    monkeypatch.setattr(type(buffer), "_retain_memory", hold_and_close)
    assert getattr(buffer, name)["data"] == (address, False)
