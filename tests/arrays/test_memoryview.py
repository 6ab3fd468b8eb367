# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Views of arrays: of NumPy, through the array interfaces, and of buffers. DLPack tensors have a file of their own."""

from __future__ import annotations

import weakref
from typing import Any

import numpy
import pytest
from arrays import FLOATS, on_cuda, on_host, view
from buffers import PINNED, HostResource, Owner
from helpers import Gate, collect, soon

from cuda_core_cffi import Buffer, live_objects, simulator
from cuda_core_cffi._arrays.layout import _StridedLayout
from cuda_core_cffi.utils import StridedMemoryView, args_viewable_as_strided_memory

STRUCTURED = [("a", "<i4"), ("b", "<f8")]


# NumPy arrays


@pytest.mark.parametrize(
    "part",
    [numpy.s_[:], numpy.s_[::2], numpy.s_[:, ::3], numpy.s_[1:, 2:], numpy.s_[::-1], numpy.s_[0, 0, ...]],
    ids=str,
)
@pytest.mark.parametrize("make", ["from_dlpack", "from_any_interface", "from_array_interface"])
def test_a_view_shows_where_a_numpy_array_lies(part: Any, make: str) -> None:
    array = FLOATS[part]
    factory = getattr(StridedMemoryView, make)
    shown = factory(array) if make == "from_array_interface" else factory(array, -1)
    assert (shown.ptr, shown.shape, shown.size) == (array.ctypes.data, array.shape, array.size)
    assert shown.dtype == array.dtype
    assert (shown.device_id, shown.is_device_accessible, shown.readonly) == (-1, False, False)
    assert shown.exporting_obj is array
    if shown.strides is None:
        assert array.flags.c_contiguous
    else:
        assert tuple(4 * stride for stride in shown.strides) == array.strides


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "<f4", ">f8", "c16", "M8[s]", "m8[us]", "S3", "U2", "V4", STRUCTURED], ids=str
)
@pytest.mark.parametrize(
    "part",
    [
        lambda array: array,
        lambda array: array.T,
        lambda array: array[::2, ::-1],
        lambda array: array[0, 0],
        lambda array: array[2, 3, ...],
        lambda array: array[:0],
        lambda array: array[:, :1],
        lambda array: numpy.broadcast_to(array[0], (3, 6)),
        lambda array: numpy.broadcast_arrays(array[0], array)[0],
        lambda array: array.reshape((1,) * 30 + (24,)),
    ],
    ids=["all", "transposed", "reversed", "element", "scalar", "empty", "column", "broadcast", "warning", "deep"],
)
def test_a_numpy_array_is_what_its_array_interface_says(dtype: Any, part: Any) -> None:
    array = numpy.asarray(part(numpy.zeros((4, 6), dtype)))

    class Described:
        __array_interface__ = array.__array_interface__

    described, shown = (StridedMemoryView.from_array_interface(item) for item in (Described, array))
    assert (shown.ptr, shown.shape, shown.strides) == (described.ptr, described.shape, described.strides)
    assert (shown.readonly, shown.dtype, shown.size) == (described.readonly, array.dtype, array.size)
    assert shown.__dlpack_device__() == (1, 0)
    assert shown._info[7] is array.dtype
    assert type(shown.shape) is tuple


@pytest.mark.parametrize("dtype", [STRUCTURED, ">i4", "M8[s]", "S3", "U2", "longdouble"], ids=str)
def test_numpy_arrays_of_types_that_dlpack_lacks_are_viewed_too(dtype: Any) -> None:
    array = numpy.zeros(3, dtype)
    assert view(array).dtype == array.dtype
    with pytest.raises(BufferError):
        StridedMemoryView.from_dlpack(array, -1)


def test_a_type_of_ml_dtypes_survives_the_array_interface() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = numpy.ones(3, ml_dtypes.bfloat16)
    assert view(array).dtype == array.dtype
    assert StridedMemoryView.from_array_interface(array).dtype == array.dtype


@pytest.mark.parametrize("dtype", [object, [("number", "i8"), ("item", "O")]], ids=str)
def test_memory_is_not_viewed_as_python_objects(device, dtype: Any) -> None:
    with device.allocate(96) as buffer:
        with pytest.raises(TypeError, match="Python objects"):
            StridedMemoryView.from_buffer(buffer, (2,), dtype=dtype)
        shown = StridedMemoryView.from_buffer(buffer, (2,), itemsize=numpy.dtype(dtype).itemsize)
        with pytest.raises(TypeError, match="Python objects"):
            shown.view(dtype=dtype)


def test_an_array_of_objects_is_refused() -> None:
    with pytest.raises(BufferError, match="Python objects"):
        view(numpy.zeros(3, object))
    with pytest.raises(BufferError, match="Python objects"):
        StridedMemoryView.from_array_interface(numpy.zeros(3, object))


def test_a_stride_between_elements_is_refused() -> None:
    field = numpy.zeros(3, STRUCTURED)["b"]  # its elements are 12 bytes apart, and have 8
    with pytest.raises(BufferError, match="12 bytes is not a multiple of the item size, 8"):
        view(field)


@pytest.mark.parametrize("make", [view, StridedMemoryView.from_array_interface])
def test_a_read_only_array_is_read_only(make: Any) -> None:
    array = FLOATS.copy()
    array.flags.writeable = False
    assert make(array).readonly is True
    assert make(numpy.broadcast_to(FLOATS[0], (3, 6))).readonly is True


def test_a_broadcast_array_has_a_stride_of_0() -> None:
    assert view(numpy.broadcast_to(FLOATS[0], (3, 6))).strides == (0, 1)


def test_a_view_keeps_its_array() -> None:
    class Array(numpy.ndarray):
        pass

    array = numpy.arange(3.0).view(Array)
    alive = weakref.ref(array)
    shown = view(array)
    del array
    collect()
    assert alive() is not None
    del shown
    collect()
    assert alive() is None


@pytest.mark.parametrize("stream", [-1, 0, 1, 0x1234])
def test_memory_of_the_host_takes_any_stream(stream: int) -> None:
    assert view(FLOATS, stream).shape == (4, 6)


@pytest.mark.parametrize(
    "obj", [None, 1, "x", b"ab", bytearray(2), memoryview(b"ab"), [1]], ids=lambda item: repr(item)[:9]
)
def test_what_speaks_no_array_protocol_is_refused(obj: Any) -> None:
    for make in ("from_any_interface", "from_dlpack", "from_cuda_array_interface"):
        with pytest.raises(BufferError):
            getattr(StridedMemoryView, make)(obj, -1)
    with pytest.raises(BufferError):
        StridedMemoryView.from_array_interface(obj)


def test_no_stream_is_ambiguous() -> None:
    for make in ("from_any_interface", "from_dlpack"):
        with pytest.raises(BufferError, match="stream_ptr=None is ambiguous"):
            getattr(StridedMemoryView, make)(FLOATS)
    with pytest.raises(BufferError, match="stream_ptr=None is ambiguous"):
        StridedMemoryView.from_cuda_array_interface(on_cuda())


def test_the_constructor_still_works_but_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="from_any_interface"):
        shown = StridedMemoryView(FLOATS, -1)
    assert shown.shape == (4, 6)


def test_attributes_cannot_be_set() -> None:
    shown = view(FLOATS)
    for name in ("ptr", "shape", "readonly", "anything"):
        with pytest.raises(AttributeError):
            setattr(shown, name, 1)


def test_a_repr_says_what_is_viewed() -> None:
    text = repr(view(FLOATS))
    assert f"ptr={FLOATS.ctypes.data:#x} shape=(4, 6) strides=(6, 1) dtype=float32 device_id=-1" in text
    assert "exporting_obj=numpy.ndarray" in text


# Array interface


def test_an_array_interface_of_any_object_is_read() -> None:
    shown = view(on_host(0x1000, strides=(-48, 8), data=(0x1000, True)))
    assert (shown.ptr, shown.shape, shown.strides, shown.readonly) == (0x1000, (4, 6), (-12, 2), True)


def test_fields_are_read_from_the_description() -> None:
    shown = view(on_host(typestr="|V12", descr=STRUCTURED))
    assert shown.dtype == numpy.dtype(STRUCTURED)
    assert view(on_host(typestr="|V12", descr=[("", "|V12")])).dtype == numpy.dtype("V12")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"data": None}, BufferError, "no address"),
        ({"mask": object()}, BufferError, "mask"),
        ({"strides": (25, 4)}, BufferError, "25 bytes is not a multiple"),
        ({"strides": (4,)}, ValueError, "1 strides for 2 dimensions"),
        ({"shape": (-1, 6)}, ValueError, "negative"),
        ({"typestr": "|O8"}, BufferError, "Python objects"),
        ({"typestr": "|V0"}, BufferError, "no size"),
        ({"typestr": "xx"}, TypeError, "xx"),
    ],
)
def test_an_interface_that_cannot_be_viewed_is_refused(fields: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        StridedMemoryView.from_array_interface(on_host(**fields))
    with pytest.raises(error, match=message):
        StridedMemoryView.from_cuda_array_interface(on_cuda(**fields), -1)


# CUDA Array Interface


@pytest.mark.parametrize("stream_field", [{}, {"stream": None}])
def test_a_cuda_array_is_viewed(device, stream, stream_field):
    with device.allocate(96, stream) as buffer:
        shown = StridedMemoryView.from_cuda_array_interface(on_cuda(buffer.handle, **stream_field), stream.handle)
        assert (shown.ptr, shown.shape, shown.strides, shown.dtype) == (buffer.handle, (4, 6), None, numpy.float32)
        assert (shown.device_id, shown.is_device_accessible, shown.readonly) == (0, True, False)
        assert shown.__dlpack_device__() == (2, 0)


def test_a_cuda_array_in_pinned_memory_is_known_as_such(device):
    with PINNED.allocate(96) as buffer:
        shown = view(on_cuda(buffer.handle))
        assert (shown.is_device_accessible, shown.__dlpack_device__()) == (True, (3, 0))


def test_an_empty_cuda_array_may_have_no_address(device):
    shown = view(on_cuda(0, shape=(0, 6)))
    assert (shown.ptr, shown.size, shown.device_id) == (0, 0, 0)


@pytest.mark.parametrize("version", [0, 2])
def test_an_old_cuda_array_interface_is_refused(version: int) -> None:
    with pytest.raises(BufferError, match=f"version {version}; 3 or newer"):
        view(on_cuda(version=version))


def test_stream_0_in_a_cuda_array_interface_is_refused(device):
    with pytest.raises(BufferError, match="stream 0"):
        view(on_cuda(stream=0), 1)


def test_the_consumer_waits_for_the_producers_stream(device, stream):
    with device.create_stream() as producer, device.allocate(96, producer) as buffer:
        producer.sync()
        with Gate(producer):
            shown = StridedMemoryView.from_cuda_array_interface(
                on_cuda(buffer.handle, stream=producer.handle), stream.handle
            )
            waiting = stream.record()
            assert not waiting.is_done
        stream.sync()
        assert waiting.is_done
        assert shown.shape == (4, 6)


@pytest.mark.parametrize("consumer", [1, 2])
def test_a_default_stream_waits_for_the_producers_stream(device, consumer):
    with device.create_stream() as producer, device.allocate(96, producer) as buffer:
        producer.sync()
        with Gate(producer):
            view(on_cuda(buffer.handle, stream=producer.handle), consumer)
            waiting = type(producer).from_handle(consumer).record()
            assert not waiting.is_done
        waiting.sync()


@pytest.mark.simulator_only("traces driver calls")
@pytest.mark.parametrize("consumer", ["none", "same"])
def test_there_is_no_wait_without_need(device, stream, consumer):
    with device.create_stream() as producer, device.allocate(96, producer) as buffer:
        array = on_cuda(buffer.handle, stream=producer.handle)
        with simulator.trace("cuStreamWaitEvent") as trace:
            view(array, -1 if consumer == "none" else producer.handle)
        assert trace.names == []


# Views of buffers


def test_a_buffer_is_viewed_as_an_array(device, stream):
    with device.allocate(96, stream) as buffer:
        shown = StridedMemoryView.from_buffer(buffer, (4, 6), dtype=numpy.float32)
        assert (shown.ptr, shown.shape, shown.strides, shown.dtype) == (buffer.handle, (4, 6), None, numpy.float32)
        assert (shown.device_id, shown.is_device_accessible, shown.readonly) == (0, True, False)
        assert shown.exporting_obj is buffer
        assert StridedMemoryView.from_buffer(buffer, (4, 3), (6, 2), itemsize=4, is_readonly=True).readonly
        assert StridedMemoryView.from_buffer(buffer, (4,), itemsize=4).dtype is None


@pytest.mark.parametrize(
    ("shape", "strides", "how", "error", "message"),
    [
        ((5, 6), None, {"dtype": "f4"}, ValueError, "120 bytes does not fit in a buffer of 96"),
        ((4, 6), (-6, 1), {"dtype": "f4"}, ValueError, "before its start"),
        ((4, 6), None, {}, ValueError, "give itemsize or dtype"),
        ((4, 6), None, {"dtype": "f4", "itemsize": 8}, ValueError, "has 4 bytes"),
        (24, None, {"itemsize": 4}, TypeError, "tuple"),
        ((-1,), None, {"itemsize": 4}, ValueError, "-1"),
    ],
)
def test_an_array_that_does_not_fit_a_buffer_is_refused(device, shape, strides, how, error, message):
    with PINNED.allocate(96) as buffer, pytest.raises(error, match=message):
        StridedMemoryView.from_buffer(buffer, shape, strides, **how)


def test_only_an_open_buffer_is_viewed_as_one(device, stream):
    with pytest.raises(TypeError, match="must be a Buffer, not ndarray"):
        StridedMemoryView.from_buffer(FLOATS, (4, 6), dtype="f4")
    buffer = device.allocate(96, stream)
    shown = StridedMemoryView.from_buffer(buffer, (24,), dtype="f4")
    buffer.close()
    with pytest.raises(RuntimeError, match="Buffer is closed"):
        StridedMemoryView.from_buffer(buffer, (4, 6), dtype="f4")
    with pytest.raises(BufferError, match="Buffer is closed"):
        shown.__dlpack__()
    with pytest.raises(RuntimeError, match="Buffer is closed"):
        shown.copy_to(shown, stream)


@pytest.mark.parametrize("kind", ["pinned", "python", "owned"])
def test_a_view_keeps_its_buffer(device, kind):
    before = live_objects()["buffer"]
    mr, owner = HostResource(), Owner()
    buffers = {
        "pinned": lambda: PINNED.allocate(64),
        "python": lambda: mr.allocate(64),
        "owned": lambda: Buffer.from_handle(owner.address, 64, owner=owner),
    }
    shown = StridedMemoryView.from_buffer(buffers[kind](), (8,), dtype="f8")
    array = numpy.from_dlpack(shown)
    array[:] = range(8)
    del shown
    collect()
    assert array.tolist() == list(range(8))
    assert live_objects()["buffer"] == before + (kind == "pinned")
    assert len(mr.live) == (kind == "python")
    del array
    collect()
    numpy.from_dlpack(view(FLOATS))  # an export finds what consumers have deleted
    collect()
    assert mr.live == {}
    assert live_objects()["buffer"] == before


def test_what_a_view_kept_goes_soon_after_the_last_consumer():
    class Array(numpy.ndarray):
        pass

    array = numpy.arange(3.0).view(Array)
    alive = weakref.ref(array)
    seen = numpy.from_dlpack(StridedMemoryView.from_array_interface(array))
    del array
    assert alive() is not None
    assert seen.tolist() == [0, 1, 2]
    del seen
    assert soon(lambda: alive() is None)


# Views of views


def test_the_type_can_be_another_of_the_same_size() -> None:
    shown = view(FLOATS).view(dtype="i4")
    assert (shown.dtype, shown.shape, shown.exporting_obj is FLOATS) == (numpy.int32, (4, 6), True)
    with pytest.raises(ValueError, match="float64 has 8 bytes"):
        shown.view(dtype="f8")


def test_a_layout_counts_from_where_the_first_view_starts() -> None:
    whole = view(FLOATS)
    part = whole.view(whole._layout[1:3, ::2])
    assert (part.ptr - whole.ptr, part.shape, part.strides) == (24, (2, 3), (6, 2))
    assert part.view(part._layout).ptr == part.ptr
    assert numpy.from_dlpack(part).tolist() == FLOATS[1:3, ::2].tolist()
    assert part.view(whole._layout).ptr == whole.ptr


def test_a_layout_can_have_another_element_size_with_its_type(device, stream):
    with device.allocate(96, stream) as buffer:
        shown = StridedMemoryView.from_buffer(buffer, (24,), dtype="f4")
        wide = _StridedLayout((12,), None, 8)
        assert shown.view(wide, "f8").shape == (12,)
        with pytest.raises(ValueError, match="float32 has 4 bytes"):
            shown.view(wide)
        assert StridedMemoryView.from_buffer(buffer, (24,), itemsize=4).view(wide).dtype is None


def test_a_layout_stays_in_the_memory_that_is_known(device, stream):
    rows = view(FLOATS[::2])
    assert rows.view(_StridedLayout((18,), None, 4)).shape == (18,)
    with pytest.raises(ValueError, match="bytes 0 to 76; the memory known has 0 to 72"):
        rows.view(_StridedLayout((19,), None, 4))
    with device.allocate(96, stream) as buffer:
        part = StridedMemoryView.from_buffer(buffer, (2,), dtype="f4")
        assert part.view(_StridedLayout((24,), None, 4)).shape == (24,)
        with pytest.raises(ValueError, match="bytes 0 to 100"):
            part.view(_StridedLayout((25,), None, 4))
    with pytest.raises(TypeError, match="_StridedLayout"):
        rows.view((3, 6))


# Arguments


def test_arguments_become_viewable() -> None:
    @args_viewable_as_strided_memory((0, 2))
    def function(first: Any, second: Any, third: Any, *, named: int) -> Any:
        """Do something."""
        return first.view(-1), second, third.view(-1), first.obj, named

    one, second, three, obj, named = function(FLOATS, FLOATS, FLOATS[1:], named=7)
    assert (one.shape, second is FLOATS, three.shape, obj is FLOATS, named) == ((4, 6), True, (3, 6), True, 7)
    assert function.__doc__ == "Do something."


def test_arguments_that_cannot_be_viewed_are_refused_at_the_call() -> None:
    @args_viewable_as_strided_memory((0,))
    def function(array: Any) -> None:
        raise AssertionError("not reached")

    with pytest.raises(BufferError, match="int cannot be viewed"):
        function(1)
    with pytest.raises(IndexError):
        function()


def test_a_viewable_argument_wants_a_stream() -> None:
    @args_viewable_as_strided_memory((0,))
    def function(array: Any) -> Any:
        return array.view()

    with pytest.raises(BufferError, match="ambiguous"):
        function(FLOATS)


@pytest.mark.parametrize("indices", [1, [0], ("0",), "ab"], ids=repr)
def test_positions_are_a_tuple_of_integers(indices: Any) -> None:
    with pytest.raises(TypeError, match="arg_indices must be a tuple of int"):
        args_viewable_as_strided_memory(indices)
