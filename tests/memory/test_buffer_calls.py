# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How buffers are allocated and closed: methods in C on CPython, which do what those in Python do."""

from __future__ import annotations

import inspect
import sys
import weakref

import pytest
from helpers import collect, in_threads

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    DeviceMemoryResource,
    ManagedBuffer,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    Stream,
    lib,
    simulator,
)

CPYTHON = sys.implementation.name == "cpython"
SIZE = 64
POOLS = (DeviceMemoryResource, PinnedMemoryResource, ManagedMemoryResource)


@pytest.fixture
def pool(device):
    """Return the device's pool."""
    return DeviceMemoryResource(device)


# as they are written


@pytest.mark.parametrize("how", [
    lambda pool, stream: pool.allocate(SIZE, stream),
    lambda pool, stream: pool.allocate(SIZE, stream=stream),
    lambda pool, stream: pool.allocate(size=SIZE, stream=stream),
    lambda pool, stream: pool.allocate(stream=stream, size=SIZE),
    lambda pool, stream: pool.allocate(SIZE, **{"".join(["str", "eam"]): stream}),
    lambda pool, stream: DeviceMemoryResource.allocate(pool, SIZE, stream),
])  # fmt: skip
def test_the_arguments_of_allocate_have_names(pool, stream, how):
    with how(pool, stream) as buffer:
        assert type(buffer) is Buffer
        assert (buffer.size, buffer.memory_resource) == (SIZE, pool)
        assert lib.ccc_buffer_stream(buffer._c_handle) == stream.handle


@pytest.mark.parametrize("keywords", [{}, {"stream": None}])
def test_without_a_stream_it_is_the_default_one(device, pool, keywords):
    with pool.allocate(SIZE, **keywords) as buffer:
        assert lib.ccc_buffer_stream(buffer._c_handle) == device.default_stream.handle


@pytest.mark.parametrize(("arguments", "keywords", "text"), [
    ((), {}, "missing 1 required positional argument: 'size'"),
    ((SIZE, None, None), {}, "takes from 2 to 3 positional arguments but 4 were given"),
    ((SIZE,), {"steam": None}, "got an unexpected keyword argument 'steam'"),
    ((SIZE, None), {"stream": None}, "got multiple values for argument 'stream'"),
    ((), {"stream": None}, "missing 1 required positional argument: 'size'"),
    (("7",), {}, "size must be an int, not str"),
    ((SIZE, 7), {}, "allocate needs a Stream, or an object with a __cuda_stream__ method, not int"),
])  # fmt: skip
def test_wrong_arguments_of_allocate_are_told(pool, arguments, keywords, text):
    with pytest.raises(TypeError, match=text):
        pool.allocate(*arguments, **keywords)


@pytest.mark.parametrize("how", [
    lambda buffer, stream: buffer.close(),
    lambda buffer, stream: buffer.close(None),
    lambda buffer, stream: buffer.close(stream=None),
    lambda buffer, stream: buffer.close(stream),
    lambda buffer, stream: buffer.close(stream=stream),
    lambda buffer, stream: Buffer.close(buffer),
])  # fmt: skip
def test_close_may_be_called_twice(pool, stream, how):
    buffer = pool.allocate(SIZE, stream)
    for _ in range(2):
        how(buffer, stream)
        assert buffer.is_closed


def test_wrong_arguments_of_close_are_told(pool, stream):
    with pool.allocate(SIZE, stream) as buffer:
        with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
            buffer.close(stream, stream)
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'steam'"):
            buffer.close(steam=stream)
        assert not buffer.is_closed


@pytest.mark.simulator_only("makes a call fail, and counts calls")
def test_a_failure_that_no_collection_cures_is_told_at_once(pool, stream):
    fault = simulator.fail("cuMemAllocFromPoolAsync", "CUDA_ERROR_UNKNOWN")
    with simulator.trace() as trace, fault, pytest.raises(CUDAError, match="failed: CUDA_ERROR_UNKNOWN"):
        pool.allocate(SIZE, stream)
    assert trace.names.count("cuMemAllocFromPoolAsync") == 1


def test_the_methods_are_documented():
    for kind in POOLS:
        assert "Allocate a buffer in stream order" in inspect.getdoc(kind.allocate)
        assert [*inspect.signature(kind.allocate).parameters] == ["self", "size", "stream"]
    assert "Give the memory back, or a slice's use of it" in inspect.getdoc(Buffer.close)
    assert [*inspect.signature(Buffer.close).parameters] == ["self", "stream"]
    assert inspect.signature(Buffer.close).parameters["stream"].default is None
    assert Buffer.close.__qualname__ == "Buffer.close"


@pytest.mark.skipif(not CPYTHON, reason="other interpreters make the best of Python")
def test_on_cpython_the_methods_are_in_c():
    for method in (Buffer.close, *(kind.allocate for kind in POOLS)):
        assert inspect.ismethoddescriptor(method)
        assert not inspect.isfunction(method)


# classes of the program


def test_each_pool_has_its_class_of_buffers(device, stream):
    class Ours(DeviceMemoryResource):
        pass

    class Managed(ManagedMemoryResource):
        pass

    for pool, kind in ((Ours(device), Buffer), (Managed(), ManagedBuffer), (ManagedMemoryResource(), ManagedBuffer)):
        with pool.allocate(SIZE, stream) as buffer:
            assert type(buffer) is kind
            assert buffer.memory_resource is pool


def test_a_subclass_may_allocate_in_its_own_way(device, stream, monkeypatch):
    class Doubling(DeviceMemoryResource):
        def allocate(self, size, stream=None):
            return super().allocate(2 * size, stream)

    before = device.memory_resource
    device.memory_resource = Doubling(device)
    try:
        with device.allocate(SIZE, stream=stream) as buffer:
            assert buffer.size == 2 * SIZE
        monkeypatch.setattr(DeviceMemoryResource, "allocate", lambda self, size, stream=None: size)
        assert device.allocate(SIZE, stream=stream) == 2 * SIZE
    finally:
        device.memory_resource = before


# what they keep


def test_a_pool_that_keeps_its_own_buffer_is_collected(device, stream):
    pool = DeviceMemoryResource(device)
    pool.kept = pool.allocate(SIZE, stream)
    gone = weakref.ref(pool.kept)
    assert isinstance(pool, MemoryResource)
    del pool
    collect()
    assert gone() is None


@pytest.mark.skipif(not CPYTHON, reason="PyPy does not count references")
def test_allocating_and_closing_counts_references_right(pool, stream):
    size = 2**40 // 2**30 + SIZE * 1000  # an integer of its own
    counts = [sys.getrefcount(item) for item in (pool, stream, size, Buffer, None)]
    for _ in range(100):
        buffer = pool.allocate(size, stream)
        assert buffer._c_handle is buffer._c_handle
        buffer.close()
        buffer.close(None)
        del buffer
        pool.allocate(size, stream)
    after = [sys.getrefcount(item) for item in (pool, stream, size, Buffer, None)]
    assert after[:-1] == counts[:-1]
    if sys.version_info < (3, 12):  # later None is not counted, but by extensions for older interpreters
        assert abs(after[-1] - counts[-1]) < 100


def test_threads_see_the_same_box(pool, stream):
    for _ in range(20):
        with pool.allocate(SIZE, stream) as buffer:
            c_handles = in_threads(4, lambda _, buffer=buffer: buffer._c_handle)
            assert all(c_handle == c_handles[0] for c_handle in c_handles)
            assert lib.ccc_handle_value(c_handles[0]) == buffer.handle


def test_a_buffer_that_was_not_made_has_no_box():
    buffer = Buffer.__new__(Buffer)
    for name in ("_c_handle", "_size", "_mr"):
        with pytest.raises(AttributeError, match=name):
            getattr(buffer, name)
    for name in ("handle", "is_closed"):
        with pytest.raises(AttributeError, match="_c_handle"):
            getattr(buffer, name)
        assert getattr(Buffer, name).__doc__ == getattr(Stream, name).__doc__
    with pytest.raises(AttributeError, match="_c_handle"):
        buffer.close()
