# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers for other libraries: the two array interfaces and the buffer protocol. DLPack has a file of its own."""

from __future__ import annotations

import sys

import numpy
import pytest
from buffers import DATA, PINNED, SIZE, HostResource, Owner
from helpers import collect

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    ffi,
    live_objects,
)

pytestmark = pytest.mark.usefixtures("device")
PYPY = pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="there a memoryview keeps only what is not closed: see Buffer.__buffer__"
)
ENDINGS = pytest.mark.parametrize("ending", [pytest.param("close", marks=PYPY), "collect"])


def pinned(data: bytes = DATA) -> Buffer:
    """Return a pinned buffer with data."""
    buffer = PINNED.allocate(len(data))
    ffi.buffer(ffi.cast("char *", buffer.handle), len(data))[:] = data
    return buffer


# Array interfaces


def test_device_memory_has_the_cuda_array_interface(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        assert buffer.__cuda_array_interface__ == {
            "version": 3, "shape": (SIZE,), "typestr": "|u1", "data": (buffer.handle, False), "strides": None,
            "stream": stream.handle,
        }  # fmt: skip
        assert not hasattr(buffer, "__array_interface__")


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
