# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between buffers, and fills."""

from __future__ import annotations

import numpy
import pytest
from buffers import SIZE, ForeignStream, HostResource, Owner, content, fresh, write

from cuda_core_cffi import Buffer, CUDAError, ffi, live_objects, simulator

# Copies


KINDS = ["device", "pinned"]


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("destination", KINDS)
@pytest.mark.parametrize("method", ["copy_to", "copy_from"])
def test_memory_is_copied_in_every_direction(device, stream, source, destination, method):
    data = bytes(range(SIZE))
    with fresh(source, device, stream) as src, fresh(destination, device, stream) as dst:
        write(src, data, stream)
        dst.fill(0, stream=stream)
        if method == "copy_to":
            assert src.copy_to(dst, stream=stream) is dst
        else:
            assert dst.copy_from(src, stream=stream) is None
        assert content(dst, stream) == data


@pytest.mark.parametrize("kind", KINDS)
def test_copy_to_allocates_a_destination_from_the_same_resource(device, stream, kind):
    with fresh(kind, device, stream) as src:
        src.fill(9, stream=stream)
        dst = src.copy_to(stream=stream)
        assert (dst.memory_resource, dst.size) == (src.memory_resource, SIZE)
        assert content(dst, stream) == bytes([9]) * SIZE
        dst.close()


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_a_new_destination_goes_back_at_once_when_the_copy_is_refused(device, stream):
    with device.allocate(SIZE, stream) as src:
        before = live_objects()
        with simulator.fail("cuMemcpyAsync", "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError) as caught:
            src.copy_to(stream=stream)
        assert caught.value.call == "cuMemcpyAsync"
        assert live_objects() == before  # although the traceback still has the frame


def test_borrowed_memory_has_no_resource_for_a_destination(device, stream):
    whole = device.allocate(SIZE, stream)
    with Buffer.from_handle(whole.handle, SIZE) as borrowed, pytest.raises(ValueError, match="no memory resource"):
        borrowed.copy_to(stream=stream)
    whole.close()


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1])
def test_buffers_of_different_sizes_are_not_copied(device, stream, size):
    with device.allocate(SIZE, stream) as one, device.allocate(size, stream) as other:
        for copy_ in (lambda: one.copy_to(other, stream=stream), lambda: other.copy_from(one, stream=stream)):
            with pytest.raises(ValueError, match=f"{SIZE} bytes do not fit {size}"):
                copy_()


@pytest.mark.parametrize("wrong", ["text", 5, [0] * SIZE, object()], ids=lambda v: type(v).__name__)
def test_only_memory_is_copied(device, stream, wrong):
    with device.allocate(SIZE, stream) as buffer:
        with pytest.raises(
            TypeError, match=f"expected a Buffer, or an object with the buffer protocol, not {type(wrong).__name__}"
        ):
            buffer.copy_to(wrong, stream=stream)
        with pytest.raises(
            TypeError, match=f"expected a Buffer, or an object with the buffer protocol, not {type(wrong).__name__}"
        ):
            buffer.copy_from(wrong, stream=stream)


def test_copy_from_needs_a_source(device, stream):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(TypeError, match="NoneType"):
        buffer.copy_from(None, stream=stream)


@pytest.mark.parametrize("method", ["copy_to", "copy_from", "fill"])
@pytest.mark.parametrize("wrong", [None, 1, "stream"])
def test_copies_and_fills_need_a_stream(device, stream, method, wrong):
    with device.allocate(SIZE, stream) as one, device.allocate(SIZE, stream) as other:
        argument = 0 if method == "fill" else other
        with pytest.raises(TypeError, match=f"Buffer.{method} needs a Stream"):
            getattr(one, method)(argument, stream=wrong)
        with pytest.raises(TypeError, match="stream"):
            getattr(one, method)(argument)


@pytest.mark.parametrize("closed", ["self", "other", "stream"])
@pytest.mark.parametrize("method", ["copy_to", "copy_from", "fill"])
def test_a_closed_operand_is_named(device, closed, method):
    stream = device.create_stream()
    one, other = device.allocate(SIZE, stream), device.allocate(SIZE, stream)
    stream.sync()
    {"self": one, "other": other, "stream": stream}[closed].close()
    argument = other
    if method == "fill":
        argument = 0
        if closed == "other":
            other = one
            one.close()
    with pytest.raises(RuntimeError, match=f"this {'Stream' if closed == 'stream' else 'Buffer'} is closed"):
        getattr(one, method)(argument, stream=stream)
    for handle in (one, other, stream):
        handle.close()


def test_a_foreign_stream_can_order_copies_and_fills(device, stream):
    foreign = ForeignStream(stream)
    with device.allocate(SIZE, foreign) as one, device.allocate(SIZE, foreign) as other:
        one.fill(3, stream=foreign)
        one.copy_to(other, stream=foreign)
        assert content(other, stream) == bytes([3]) * SIZE


# Fills


@pytest.mark.parametrize(
    ("value", "width", "pattern"),
    [
        (0, None, b"\0"), (255, None, b"\xff"), (True, None, b"\1"), (200, 1, b"\xc8"),
        (0xBEEF, 2, b"\xef\xbe"), (5, 2, b"\5\0"), (65535, 2, b"\xff\xff"),
        (0xDEADBEEF, 4, b"\xef\xbe\xad\xde"), (5, 4, b"\5\0\0\0"), (2**32 - 1, 4, b"\xff\xff\xff\xff"),
        (b"a", None, b"a"), (b"ab", None, b"ab"), (b"abcd", None, b"abcd"), (b"ab", 2, b"ab"),
        (bytearray(b"ab"), None, b"ab"), (memoryview(b"abcd"), None, b"abcd"),
        (numpy.uint8(7), None, b"\7"), (numpy.int8(-1), None, b"\xff"), (numpy.bool_(True), None, b"\1"),
        (numpy.int16(-2), None, b"\xfe\xff"), (numpy.float16(1), None, b"\0\x3c"),
        (numpy.uint32(0xDEADBEEF), None, b"\xef\xbe\xad\xde"), (numpy.float32(1.5), None, b"\0\0\xc0\x3f"),
        (numpy.float32(1.5), 4, b"\0\0\xc0\x3f"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_filled_with_a_pattern(device, stream, kind, value, width, pattern):
    with fresh(kind, device, stream) as buffer:
        buffer.fill(value, width, stream=stream)
        assert content(buffer, stream) == pattern * (SIZE // len(pattern))


def test_the_width_may_be_a_keyword(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        buffer.fill(1, width=2, stream=stream)
        assert content(buffer, stream) == b"\1\0" * (SIZE // 2)


@pytest.mark.parametrize("width", [None, 1, 2, 4])
@pytest.mark.parametrize("where", ["below", "above"])
def test_an_int_that_does_not_fit_the_width_is_an_overflow_error(device, stream, width, where):
    value = -1 if where == "below" else 1 << 8 * (width or 1)
    with device.allocate(SIZE, stream) as buffer, pytest.raises(OverflowError, match=f"{value} does not fit"):
        buffer.fill(value, width, stream=stream)


@pytest.mark.parametrize("width", [0, 3, 8, -1, True, "1", 2.0])
def test_a_width_that_is_none_of_1_2_and_4_is_a_value_error(device, stream, width):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(ValueError, match="width must be 1, 2 or 4"):
        buffer.fill(1, width, stream=stream)


@pytest.mark.parametrize("value", [b"", b"abc", bytes(8), numpy.int64(1), numpy.float64(1), 1 + numpy.zeros(2)])
def test_a_pattern_that_is_none_of_1_2_and_4_bytes_is_a_value_error(device, stream, value):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(ValueError, match="1, 2 or 4 bytes, not"):
        buffer.fill(value, stream=stream)


def test_a_width_that_contradicts_the_pattern_is_a_value_error(device, stream):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(ValueError, match="width is 4, but the pattern has 2"):
        buffer.fill(b"ab", 4, stream=stream)


@pytest.mark.parametrize("value", [1.5, "a", None, [1], 1j], ids=lambda value: type(value).__name__)
def test_a_pattern_of_another_type_is_a_type_error(device, stream, value):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(TypeError, match=f"not {type(value).__name__}"):
        buffer.fill(value, stream=stream)


@pytest.mark.parametrize(("size", "width"), [(3, 2), (1, 2), (6, 4), (5, 4)])
def test_a_width_that_does_not_divide_the_size_is_a_value_error(device, stream, size, width):
    with device.allocate(size, stream) as buffer:
        with pytest.raises(ValueError, match=f"{width} bytes does not divide a buffer of {size}"):
            buffer.fill(1, width, stream=stream)
        with pytest.raises(ValueError, match="does not divide"):
            buffer.fill(bytes(width), stream=stream)


@pytest.mark.parametrize("kind", ["host resource", "owner", "borrowed", "slice", "closed slice's whole"])
def test_memory_that_no_device_can_use_is_not_filled(device, stream, kind):
    owner = Owner()
    whole = HostResource().allocate(SIZE) if kind == "host resource" else Buffer.from_handle(owner.address, SIZE)
    if kind == "owner":
        whole = Buffer.from_handle(owner.address, SIZE, owner=owner)
    part = whole[8:]
    if kind.startswith("closed"):
        part.close()
    before = bytes(ffi.buffer(ffi.cast("char *", whole.handle), SIZE))
    target = part if kind == "slice" else whole
    for value, width in ((0, None), (1, 4), (b"ab", None)):
        with pytest.raises(ValueError, match="needs memory that a device can use, not ordinary memory of the host"):
            target.fill(value, width, stream=stream)
    assert bytes(ffi.buffer(ffi.cast("char *", whole.handle), SIZE)) == before
    part.close()
    whole.close()
    with pytest.raises(RuntimeError, match="this Buffer is closed"):
        whole.fill(0, stream=stream)


@pytest.mark.parametrize("method", ["close", "set_deallocation_stream"])
@pytest.mark.parametrize("wrong", [5, "stream", object()], ids=["int", "str", "object"])
def test_what_is_no_stream_ends_nothing(device, stream, method, wrong):
    with device.allocate(SIZE, stream) as buffer, buffer[8:] as part, device.create_stream() as closed:
        closed.close()
        for one in (part, buffer):
            with pytest.raises(TypeError, match="needs a Stream"):
                getattr(one, method)(wrong)
            with pytest.raises(RuntimeError, match="this Stream is closed"):
                getattr(one, method)(closed)
            assert not one.is_closed
            one.fill(1, stream=stream)
            assert one.__cuda_array_interface__["stream"] == stream.handle
