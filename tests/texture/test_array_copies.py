# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies of arrays and of regions of them."""

from __future__ import annotations

import array as arrays
import itertools
import weakref

import numpy as np
import pytest
from buffers import PINNED, ForeignStream, HostResource, content, write
from helpers import Gate, alive, collect, in_threads

from cuda_core_cffi import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Buffer, Device, ffi
from cuda_core_cffi.texture import ArrayRegion, OpaqueArray, OpaqueArrayOptions
from cuda_core_cffi.utils import StridedMemoryView

FORMATS = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32")
SHAPES = ((7,), (7, 5), (7, 5, 3))


def values(shape: tuple[int, ...], name: str = "uint8", channels: int = 1) -> np.ndarray:
    """Return elements in C order, each different as far as the format goes."""
    count = int(np.prod(shape)) * channels
    return (np.arange(count) % 120).astype(name).reshape(*shape[::-1], channels)


def filled(device: Device, stream, shape, name: str = "uint8", channels: int = 1) -> tuple[OpaqueArray, np.ndarray]:
    """Return an array, and what is in it."""
    found = values(shape, name, channels)
    made = device.create_opaque_array(OpaqueArrayOptions(shape, name, channels))
    made.copy_from(found, stream=stream)
    return made, found


def elements(item: OpaqueArray | ArrayRegion, stream) -> np.ndarray:
    """Return what is in an array or a region, in C order."""
    array = item.array if isinstance(item, ArrayRegion) else item
    found = np.zeros((*item.shape[::-1], array.num_channels), array.format.value)
    item.copy_to(found, stream=stream)
    stream.sync()
    return found


def device_view(buffer: Buffer, like: np.ndarray, **layout) -> StridedMemoryView:
    return StridedMemoryView.from_buffer(buffer, layout.pop("shape", like.shape), dtype=like.dtype, **layout)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_elements_come_back_as_they_went(device, stream, shape, name, channels):
    array, wanted = filled(device, stream, shape, name, channels)
    with array, device.allocate(array.size_bytes, stream) as buffer, PINNED.allocate(array.size_bytes) as pinned:
        assert (elements(array, stream) == wanted).all()
        for memory in (buffer, pinned):
            assert array.copy_to(memory, stream=stream) is memory
            assert content(memory, stream) == wanted.tobytes()
        write(buffer, wanted[::-1].tobytes(), stream)
        array.copy_from(buffer, stream=stream)
        assert (elements(array, stream) == wanted[::-1]).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: arrays.array("B", data)])
def test_objects_with_memory_are_copied_from_and_to(device, stream, shape, make):
    with device.create_opaque_array(OpaqueArrayOptions(shape, "int16", 2)) as array:
        wanted = values(shape, "int16", 2)
        array.copy_from(make(wanted.tobytes()), stream=stream)
        target = bytearray(array.size_bytes)
        assert array.copy_to(target, stream=stream) is target
        stream.sync()
        assert target == wanted.tobytes()


def test_more_memory_than_the_array_needs_is_left_alone(device, stream):
    array, wanted = filled(device, stream, (4, 2))
    with array:
        target = bytearray(b"x" * 12)
        array.copy_to(target, stream=stream)
        array.copy_from(bytes(range(20)), stream=stream)
        stream.sync()
        assert target == wanted.tobytes() + b"xxxx"
        assert elements(array, stream).tobytes() == bytes(range(8))


# --- Regions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_every_region_has_the_elements_of_its_slices(device, stream, shape):
    array, wanted = filled(device, stream, shape, "uint16", 2)
    cuts = [slice(None), slice(1, 3), slice(2, None), slice(-2, None), slice(0, 100)]
    with array:
        for where in itertools.product(cuts, repeat=len(shape)):
            region = array[where]
            found = elements(region, stream)
            assert (found == wanted[where[::-1]]).all()
            assert region.size_bytes == found.nbytes
            assert region.array is array


@pytest.mark.parametrize("shape", SHAPES)
def test_copying_to_a_region_changes_nothing_else(device, stream, shape):
    array, wanted = filled(device, stream, shape, "float32", 4)
    where = (slice(1, 4), slice(2, 4), slice(1, 2))[: len(shape)]
    with array:
        piece = np.full((*array[where].shape[::-1], 4), -1, "f4")
        array[where].copy_from(piece, stream=stream)
        wanted[where[::-1]] = -1
        assert (elements(array, stream) == wanted).all()


def test_regions_are_slices_in_the_order_of_the_shape(device):
    with device.create_opaque_array(OpaqueArrayOptions((8, 6, 4), "uint8", 1)) as array:
        assert (array[2:5].offset, array[2:5].shape) == ((2, 0, 0), (3, 6, 4))
        assert (array[:, 1:2].offset, array[:, 1:2].shape) == ((0, 1, 0), (8, 1, 4))
        assert (array[...].offset, array[...].shape) == ((0, 0, 0), (8, 6, 4))
        assert array[1:2, ...].shape == (1, 6, 4)
        assert array[3:1].size_bytes == 0
        assert repr(array[2:5, :1]) == f"<ArrayRegion offset=(2, 0, 0) shape=(3, 1, 4) of {array!r}>"


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        (3, TypeError, "a region takes slices such as"),
        ((slice(1), 2), TypeError, "a region takes slices such as"),
        (slice(None, None, 2), ValueError, "step 1, not 2"),
        (slice(None, None, -1), ValueError, "step 1, not -1"),
        ((slice(1), slice(1), slice(1)), IndexError, "2 axes takes no 3 slices"),
    ],
)
def test_other_regions_are_refused(device, where, error, message):
    with (
        device.create_opaque_array(OpaqueArrayOptions((4, 4), "uint8", 1)) as array,
        pytest.raises(error, match=message),
    ):
        array[where]


def test_a_region_is_no_sequence(device):
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
    with array, pytest.raises(TypeError, match="not iterable"):
        iter(array)
    with pytest.raises(RuntimeError, match="use slices of an OpaqueArray"):
        ArrayRegion()


def test_an_empty_region_copies_nothing(device, stream):
    array, wanted = filled(device, stream, (4, 4))
    with array:
        array[2:2].copy_from(b"", stream=stream)
        target = bytearray(b"as it was")
        array[:, 3:1].copy_to(target, stream=stream)
        assert target == b"as it was"
        assert (elements(array, stream) == wanted).all()


# --- Between arrays -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_are_copied_to_arrays(device, stream, shape):
    array, wanted = filled(device, stream, shape, "int16", 4)
    with array, device.create_opaque_array(OpaqueArrayOptions(shape, "int16", 4)) as other:
        other.copy_from(array, stream=stream)
        assert (elements(other, stream) == wanted).all()
        changed = wanted.copy()
        changed[..., 0:2, :] = wanted[..., 5:7, :]
        assert other[0:2].copy_from(array[5:7], stream=stream) is None
        assert (elements(other, stream) == changed).all()
        region = other[3:4]
        assert array[0:1].copy_to(region, stream=stream) is region
        changed[..., 3:4, :] = wanted[..., 0:1, :]
        assert (elements(other, stream) == changed).all()


def test_a_plane_is_copied_between_arrays_of_different_rank(device, stream):
    volume, wanted = filled(device, stream, (4, 3, 2))
    with volume, device.create_opaque_array(OpaqueArrayOptions((4, 3), "uint8", 1)) as plane:
        plane.copy_from(volume[:, :, 1:2], stream=stream)
        assert (elements(plane, stream) == wanted[1]).all()


def test_regions_of_one_array_are_copied_unless_they_overlap(device, stream):
    array, wanted = filled(device, stream, (8, 4))
    with array:
        array[0:4].copy_from(array[4:8], stream=stream)
        wanted[:, 0:4] = wanted[:, 4:8].copy()
        assert (elements(array, stream) == wanted).all()
        for target in (array, array[...], array[3:7], array[4:8, 3:4]):
            source = array[4:8] if target.shape == (4, 4) else array[0:8] if target is not array[4:8] else array
            if target.shape != source.shape:
                source = array[5:8, 2:3] if target.shape == (3, 1) else array[4:8, 3:4]
            with pytest.raises(ValueError, match="the regions have elements in common"):
                target.copy_from(source, stream=stream)


def test_arrays_of_other_shapes_or_elements_are_refused(device, stream):
    array, _ = filled(device, stream, (4, 4), "uint16", 2)
    with array, device.create_opaque_array(OpaqueArrayOptions((4, 4), "uint8", 2)) as smaller:
        with pytest.raises(ValueError, match="the elements differ: 4 bytes do not fit 2"):
            array.copy_from(smaller, stream=stream)
        with pytest.raises(ValueError, match=r"the shapes differ: \(2, 4\) does not fit \(4, 4\)"):
            array.copy_from(array[:2], stream=stream)


# --- Views ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("channels", [1, 2])
def test_views_of_the_host_may_have_gaps_between_rows_and_layers(device, stream, shape, channels):
    array, wanted = filled(device, stream, shape, "uint16", channels)
    with array:
        whole = np.zeros([extent + 3 for extent in shape[::-1]] + [channels], "u2")
        inner = whole[tuple(slice(1, 1 + extent) for extent in shape[::-1])]
        target = StridedMemoryView.from_any_interface(inner, -1)
        assert array.copy_to(target, stream=stream) is target
        stream.sync()
        assert (inner == wanted).all()
        assert whole.sum() == wanted.sum()
        inner[...] = wanted[::-1]
        array.copy_from(StridedMemoryView.from_any_interface(inner, -1), stream=stream)
        assert (elements(array, stream) == wanted[::-1]).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_views_of_buffers_may_have_gaps_between_rows_and_layers(device, stream, shape):
    array, wanted = filled(device, stream, shape, "float32", 2)
    across, rows, layers = (*shape, 1, 1)[:3]
    pitch, height = 2 * across + 5, rows + 2
    strides = (height * pitch, pitch, 2, 1)[-1 - len(shape) :]
    with array, device.allocate(4 * pitch * height * layers, stream) as buffer:
        buffer.fill(0, stream=stream)
        array.copy_to(device_view(buffer, wanted, strides=strides), stream=stream)
        padded = np.frombuffer(content(buffer, stream), "f4").reshape(layers, height, pitch)
        assert (padded[:, :rows, : 2 * across].reshape(wanted.shape) == wanted).all()
        assert padded.sum() == wanted.sum()
        with device.create_opaque_array(OpaqueArrayOptions(shape, "float32", 2)) as other:
            other.copy_from(device_view(buffer, wanted, strides=strides), stream=stream)
            assert (elements(other, stream) == wanted).all()


def test_a_view_need_not_have_an_axis_for_channels(device, stream):
    array, wanted = filled(device, stream, (5, 3), "uint8", 4)
    packed = wanted.view("u4")[..., 0]
    single, plain = filled(device, stream, (5, 3), "uint8", 1)
    with array, single:
        target = np.zeros((3, 5), "u4")
        array.copy_to(StridedMemoryView.from_any_interface(target, -1), stream=stream)
        flat = np.zeros((3, 5), "u1")
        single.copy_to(StridedMemoryView.from_any_interface(flat, -1), stream=stream)
        stream.sync()
        assert (target == packed).all()
        assert (flat == plain[..., 0]).all()


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (lambda: np.zeros((4, 3), "u1"), r"a view for this region has the shape \(3, 4\) or \(3, 4, 1\)"),
        (lambda: np.zeros((3, 4), "u2"), "not .* elements of 2 bytes"),
        (lambda: np.zeros((3, 4, 2), "u1"), "a view for this region"),
        (lambda: np.zeros((3, 8), "u1")[:, ::2], "elements of a row must be adjacent, not 2 bytes"),
        (lambda: np.zeros((3, 4), "u1")[:, ::-1], "elements of a row must be adjacent, not -1 bytes"),
        (lambda: np.zeros((3, 4), "u1")[::-1], "rows and layers must follow one another"),
        (lambda: np.zeros((4, 3), "u1").T, "elements of a row must be adjacent"),
        (lambda: np.broadcast_to(np.zeros(4, "u1"), (3, 4)), "read-only|rows and layers must follow"),
    ],
)
def test_views_of_another_shape_or_order_are_refused(device, stream, view, message):
    array, wanted = filled(device, stream, (4, 3))
    with array:
        for copy in (array.copy_to, array.copy_from):
            with pytest.raises(ValueError, match=message):
                copy(StridedMemoryView.from_any_interface(view(), -1), stream=stream)
        assert (elements(array, stream) == wanted).all()


def test_layers_lie_a_whole_number_of_rows_apart(device, stream):
    array, _ = filled(device, stream, (4, 3, 2))
    memory = np.zeros(100, "u1")
    with array:
        for strides, message in (((25, 6, 1), "follow one another"), ((12, 6, 1), "layers that overlap")):
            view = StridedMemoryView.from_any_interface(np.lib.stride_tricks.as_strided(memory, (2, 3, 4), strides), -1)
            with pytest.raises(ValueError, match=message):
                array.copy_from(view, stream=stream)


def test_channels_of_a_view_are_adjacent(device, stream):
    array, _ = filled(device, stream, (4, 3), "uint8", 2)
    view = StridedMemoryView.from_any_interface(np.zeros((3, 4, 4), "u1")[..., ::2], -1)
    with array, pytest.raises(ValueError, match="the channels of an element must be adjacent, not 2 bytes apart"):
        array.copy_from(view, stream=stream)


def test_nothing_is_copied_to_a_view_that_is_read_only(device, stream):
    array, _ = filled(device, stream, (4,))
    source = np.zeros(4, "u1")
    source.setflags(write=False)
    with array:
        array.copy_from(StridedMemoryView.from_any_interface(source, -1), stream=stream)
        with pytest.raises(ValueError, match="the destination is read-only"):
            array.copy_to(StridedMemoryView.from_any_interface(source, -1), stream=stream)
        stream.sync()


# --- What is refused ------------------------------------------------------------------------------------------


def test_too_small_an_operand_is_refused(device, stream):
    array, wanted = filled(device, stream, (4, 4))
    with array, device.allocate(15, stream) as buffer:
        for small in (buffer, bytearray(15), np.zeros(15, "u1")):
            with pytest.raises(ValueError, match="the source has 15 bytes, fewer than the 16 of the elements to copy"):
                array.copy_from(small, stream=stream)
            with pytest.raises(ValueError, match="the destination has 15 bytes, fewer than the 16"):
                array.copy_to(small, stream=stream)
        assert (elements(array, stream) == wanted).all()


def test_objects_without_plain_contiguous_memory_are_refused(device, stream):
    array, _ = filled(device, stream, (4,))
    with array:
        for wrong in (7, None, "text", object()):
            with pytest.raises(TypeError, match="expected a Buffer, or an object with the buffer protocol"):
                array.copy_from(wrong, stream=stream)
        with pytest.raises(TypeError, match="holds references to Python objects"):
            array.copy_from(np.array([1, 2, 3, 4], object), stream=stream)
        with pytest.raises(BufferError, match="not contiguous"):
            array.copy_from(np.zeros(8, "u1")[::2], stream=stream)
        with pytest.raises(BufferError, match="read-only"):
            array.copy_to(bytes(4), stream=stream)


def test_a_stream_is_needed(device):
    with device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1)) as array:
        with pytest.raises(TypeError, match=r"OpaqueArray\.copy_from needs a Stream"):
            array.copy_from(bytes(4), stream=None)
        with pytest.raises(TypeError, match=r"ArrayRegion\.copy_to needs a Stream"):
            array[:2].copy_to(bytearray(2), stream=7)
        with pytest.raises(TypeError, match="stream"):
            array.copy_from(bytes(4))


def test_closed_operands_are_named(device, stream):
    array, _ = filled(device, stream, (4,))
    with array:
        buffer = device.allocate(4, stream)
        view = StridedMemoryView.from_buffer(buffer, (4,), dtype="u1")
        buffer.close()
        other = device.create_stream()
        other.close()
        gone = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
        gone.close()
        for operand, name in ((buffer, "Buffer"), (view, "Buffer"), (gone, "OpaqueArray")):
            with pytest.raises(RuntimeError, match=f"this {name} is closed"):
                array.copy_from(operand, stream=stream)
        with pytest.raises(RuntimeError, match="this Stream is closed"):
            array.copy_from(bytes(4), stream=other)


# --- Order, streams, threads ----------------------------------------------------------------------------------


def test_copies_are_made_in_the_order_of_the_stream(device, stream):
    with (
        device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1)) as array,
        device.allocate(4, stream) as buffer,
    ):
        with Gate(stream) as gate:
            buffer.fill(1, stream=stream)
            array.copy_from(b"abcd", stream=stream)
            array.copy_to(buffer, stream=stream)
            array.copy_from(b"efgh", stream=stream)
            gate.open()
        assert content(buffer, stream) == b"abcd"
        assert elements(array, stream).tobytes() == b"efgh"


def test_memory_of_the_host_is_kept_until_the_copy_is_done(device, stream):
    with device.create_opaque_array(OpaqueArrayOptions((1024, 1024), "uint8", 1)) as array:
        source = np.full((512, 1024), 9, "u1")
        kept = weakref.ref(source)
        with Gate(stream):
            array.copy_from(b"\7" * (1 << 20), stream=stream)
            array[:, :512].copy_from(StridedMemoryView.from_any_interface(source, -1), stream=stream)
            del source
            collect()
            assert kept() is not None
        stream.sync()
        collect()
        assert kept() is None
        assert elements(array, stream).sum(dtype="i8") == (7 + 9) << 19


@pytest.mark.parametrize("default", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM])
def test_a_default_stream_is_one_of_the_arrays_context(device, default):
    array, wanted = filled(device, default, (4, 4))
    with array:
        assert (elements(array, default) == wanted).all()


def test_streams_of_other_libraries_are_accepted(device, stream):
    with device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1)) as array:
        array.copy_from(b"abcd", stream=ForeignStream(stream))
        assert elements(array, stream).tobytes() == b"abcd"


def test_threads_copy_at_the_same_time(device):
    def work(number: int) -> bool:
        Device(0).set_current()
        with device.create_stream() as own:
            array, wanted = filled(device, own, (16, 16), "int32", 1)
            with array:
                for _ in range(10):
                    array[:8].copy_from(array[8:], stream=own)
                    wanted[:, :8] = wanted[:, 8:]
                return bool((elements(array, own) == wanted).all())

    assert all(in_threads(4, work))


def test_memory_of_the_host_that_devices_cannot_use_is_copied(device, stream):
    array, wanted = filled(device, stream, (4, 2))
    with array, HostResource().allocate(8) as buffer:
        array.copy_to(buffer, stream=stream)
        stream.sync()
        assert bytes(ffi.buffer(buffer.memory_resource.live[buffer.handle])) == wanted.tobytes()


# --- Graphs ---------------------------------------------------------------------------------------------------


def test_copies_are_captured(device, stream, builder):
    array, wanted = filled(device, stream, (4, 4))
    with (
        array,
        device.allocate(16, stream) as buffer,
        device.create_opaque_array(OpaqueArrayOptions((4, 4), "uint8", 1)) as other,
    ):
        stream.sync()
        other.copy_from(array, stream=builder)
        other[2:].copy_from(array[:2], stream=builder)
        other.copy_to(buffer, stream=builder)
        with builder.end_building().complete() as executable:
            assert content(buffer, stream) != wanted.tobytes()
            executable.launch(stream)
            stream.sync()
        wanted[:, 2:] = wanted[:, :2].copy()
        assert content(buffer, stream) == wanted.tobytes()


def test_the_node_of_a_captured_copy_names_the_array(device, stream, builder):
    array, _ = filled(device, stream, (4, 4))
    with array, device.allocate(16, stream) as buffer:
        stream.sync()
        array.copy_to(buffer, stream=builder)
        builder.end_building()
        (node,) = builder.graph_definition.nodes()
        assert (node.src, node.dst, node.size) == (array.handle, buffer.handle, 16)
        assert f"src={array.handle:#x}(A)" in repr(node)
        with pytest.raises(ValueError, match="this node copies several rows, or an array"):
            node.update(size=4)


def test_memory_of_the_host_is_not_captured(device, stream, builder):
    array, wanted = filled(device, stream, (4,))
    with array:
        stream.sync()
        for operand in (bytearray(4), StridedMemoryView.from_any_interface(np.zeros(4, "u1"), -1)):
            with pytest.raises(TypeError, match=r"OpaqueArray\.copy_to: the stream is being captured in a graph"):
                array.copy_to(operand, stream=builder)
        builder.end_building()
        assert (elements(array, stream) == wanted).all()


def test_copies_leave_nothing_behind(device, stream):
    before = alive()
    array, _ = filled(device, stream, (4, 4))
    with array:
        elements(array, stream)
    assert alive() == before
