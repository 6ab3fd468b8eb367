# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Views of arrays: of NumPy, through the array interfaces, and of buffers. DLPack tensors have a file of their own."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import numpy
import pytest
from buffers import PINNED, HostResource, Owner, content, write
from helpers import Gate

from cuda_core_cffi import LEGACY_DEFAULT_STREAM, Buffer, CUDAError, live_objects, simulator
from cuda_core_cffi._dlpack import pins
from cuda_core_cffi._layout import _StridedLayout
from cuda_core_cffi.utils import StridedMemoryView, args_viewable_as_strided_memory

FLOATS = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
STRUCTURED = [("a", "<i4"), ("b", "<f8")]


def collect() -> None:
    """Collect garbage; PyPy runs finalizers some time after."""
    for _ in range(3):
        gc.collect()


def view(array: Any, stream: int = -1) -> StridedMemoryView:
    return StridedMemoryView.from_any_interface(array, stream)


class Interface:
    """Has one of the array interfaces, with fields that a test may change."""

    def __init__(self, name: str, address: int, **fields: Any) -> None:
        described = {"version": 3, "shape": (4, 6), "typestr": "<f4", "data": (address, False)}
        setattr(self, name, described | fields)


def on_cuda(address: int = 0, **fields: Any) -> Interface:
    return Interface("__cuda_array_interface__", address, **fields)


def on_host(address: int = 0x1000, **fields: Any) -> Interface:
    return Interface("__array_interface__", address, **fields)


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


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy finds it when the next array is exported")
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
    for _ in range(100):  # the interpreter looks between two instructions
        if alive() is None:
            break
        gc.collect()
    assert alive() is None


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


# Export


@pytest.mark.parametrize(
    "part", [numpy.s_[:], numpy.s_[::2, 1:], numpy.s_[::-1], numpy.s_[:0], numpy.s_[0, 0, ...]], ids=str
)
def test_numpy_sees_what_a_view_shows(part: Any) -> None:
    array = FLOATS[part]
    seen = numpy.from_dlpack(StridedMemoryView.from_array_interface(array))
    assert (seen.dtype, seen.shape, seen.tolist()) == (array.dtype, array.shape, array.tolist())
    assert seen.size == 0 or seen.ctypes.data == array.ctypes.data


def test_a_read_only_view_is_exported_where_that_can_be_said() -> None:
    array = FLOATS.copy()
    array.flags.writeable = False
    shown = view(array)
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0":
        assert not numpy.from_dlpack(shown).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        shown.__dlpack__()
    assert shown.__dlpack__(max_version=(1, 0)) is not None


def test_a_view_without_a_type_cannot_be_exported(device, stream):
    with device.allocate(96, stream) as buffer, pytest.raises(BufferError, match="no dtype"):
        StridedMemoryView.from_buffer(buffer, (24,), itemsize=4).__dlpack__()
    with pytest.raises(BufferError, match="DLPack has no type"):
        view(numpy.zeros(3, "M8[s]")).__dlpack__()


def test_device_memory_is_copied_for_a_consumer_on_the_host(device, stream):
    with device.allocate(96, stream) as buffer:
        write(buffer, FLOATS.tobytes(), stream)
        shown = StridedMemoryView.from_buffer(buffer, (4, 3), (6, 2), dtype="f4")
        seen = view(shown, stream.handle)
        copied = StridedMemoryView.from_dlpack(HostCopy(seen), -1)
        assert copied.is_device_accessible is False
        assert numpy.from_dlpack(copied).tolist() == FLOATS[:, ::2].tolist()
        del copied, seen
        collect()
        numpy.from_dlpack(view(FLOATS))  # an export finds what consumers have deleted


def test_a_copy_of_device_memory_that_cannot_be_is_refused(device, stream):
    with device.allocate(96, stream) as buffer:
        shown = StridedMemoryView.from_buffer(buffer, (4, 3), (6, 2), dtype="f4")
        with pytest.raises(BufferError, match="copy=False"):
            shown.__dlpack__(dl_device=(1, 0), copy=False)
        with pytest.raises(BufferError, match="copy_to"):
            shown.__dlpack__(copy=True)
        with pytest.raises(BufferError, match="exported there or to"):
            shown.__dlpack__(dl_device=(10, 0))


def test_host_memory_is_copied_on_demand() -> None:
    shown = view(FLOATS[:, ::2])
    copied = StridedMemoryView.from_dlpack(HostCopy(shown), -1)
    assert copied.ptr != shown.ptr
    assert numpy.from_dlpack(copied).tolist() == FLOATS[:, ::2].tolist()


class HostCopy:
    """Asks a view for a copy on the host."""

    def __init__(self, shown: StridedMemoryView) -> None:
        self.shown = shown

    def __dlpack__(self, **how: Any) -> Any:
        return self.shown.__dlpack__(dl_device=(1, 0), copy=True, max_version=(1, 0))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("request_", [{"stream": 1}, {"dl_device": (2, 0)}], ids=str)
def test_a_request_that_host_memory_cannot_meet_is_refused(request_: dict[str, Any]) -> None:
    with pytest.raises(BufferError):
        view(FLOATS).__dlpack__(**request_)


def test_a_consumer_waits_for_the_stream_that_a_view_is_ordered_after(device, stream):
    with device.create_stream() as ordered, device.allocate(96, ordered) as buffer:
        ordered.sync()
        shown = view(on_cuda(buffer.handle), ordered.handle)
        with Gate(ordered):
            again = view(shown, stream.handle)
            waiting = stream.record()
            assert not waiting.is_done
        stream.sync()
        assert again.ptr == buffer.handle


def test_a_consumer_waits_for_the_stream_of_a_buffer(device, stream):
    with device.create_stream() as own, device.allocate(96, own) as buffer:
        own.sync()
        shown = StridedMemoryView.from_buffer(buffer, (24,), dtype="f4")
        with Gate(own):
            shown.__dlpack__(stream=stream.handle)
            waiting = stream.record()
            assert not waiting.is_done
        stream.sync()


# Copies


def array_on_device(device, stream, array, strides=None):
    """Return a buffer and a view of it that has the array's shape and type."""
    buffer = device.allocate(2 * array.nbytes, stream)
    return buffer, StridedMemoryView.from_buffer(buffer, array.shape, strides, dtype=array.dtype)


@pytest.mark.parametrize("blocking", [None, True, False])
def test_arrays_go_to_the_device_and_back(device, stream, blocking):
    back = numpy.zeros_like(FLOATS)
    one, on_device = array_on_device(device, stream, FLOATS)
    other, second = array_on_device(device, stream, FLOATS)
    with one, other:
        on_device.copy_from(view(FLOATS), stream, blocking=blocking)
        second.copy_from(on_device, stream, blocking=blocking)
        second.copy_to(view(back), stream, blocking=blocking)
        stream.sync()
        assert back.tolist() == FLOATS.tolist()


CUBE = numpy.arange(2 * 3 * 4 * 6, dtype=numpy.int16).reshape(2, 3, 4, 6)


@pytest.mark.parametrize(
    "part",
    [
        numpy.s_[:, :, :, :],
        numpy.s_[:, :, :, ::2],
        numpy.s_[:, :, ::2, :],
        numpy.s_[0, ::2, ::2, :],
        numpy.s_[:, :, 1:3, 1:4],
        numpy.s_[0, :, ::-1, :],
        numpy.s_[0, 0, 0, ::-1],
        numpy.s_[1, 2, 3, 4:5],
        numpy.s_[:, :0],
    ],
    ids=str,
)
@pytest.mark.parametrize("to", ["dense", "same"])
def test_strided_arrays_are_copied_where_one_call_can(device, stream, part, to):
    source, memory = CUBE[part], numpy.full(CUBE.shape, -1, CUBE.dtype)
    target = memory[part]
    before = memory.copy()
    before[part] = source
    with device.allocate(CUBE.nbytes, stream) as buffer:
        whole = StridedMemoryView.from_buffer(buffer, CUBE.shape, dtype=CUBE.dtype)
        whole.copy_from(view(CUBE), stream)
        on_device = whole.view(whole._layout[part])
        if to == "dense":
            dense = numpy.empty_like(source, order="C")
            if min((0, *on_device.strides)) < 0:  # one call cannot turn an axis round
                with pytest.raises(ValueError, match="in one call"):
                    on_device.copy_to(view(dense), stream)
                return
            on_device.copy_to(view(dense), stream)
            assert dense.tolist() == source.tolist()
        else:
            on_device.copy_to(view(target), stream)
            assert memory.tolist() == before.tolist()


@pytest.mark.parametrize("order", ["C", "F"])
def test_both_orders_are_copied_to_themselves(device, stream, order):
    source, back = (numpy.array(CUBE, order=order) for _ in range(2))
    back[:] = 0
    strides = tuple(stride // 2 for stride in source.strides)
    buffer, on_device = array_on_device(device, stream, source, strides)
    with buffer:
        on_device.copy_from(view(source), stream)
        on_device.copy_to(view(back), stream)
        assert back.tolist() == source.tolist()


@pytest.mark.parametrize("part", [numpy.s_[:], numpy.s_[:, ::2, ::-1, ::3]], ids=str)
def test_copies_between_arrays_of_the_host_take_any_layout(part: Any) -> None:
    source = CUBE[part]
    target = numpy.zeros(source.shape[::-1], CUBE.dtype).T
    view(target).copy_from(view(source), None)
    assert target.tolist() == source.tolist()


def test_a_copy_on_the_host_waits_for_the_stream(device, stream):
    target = numpy.zeros_like(FLOATS)
    with Gate(stream) as gate:
        work = stream.record()
        opener = threading.Timer(0.05, gate.open)
        opener.start()
        view(FLOATS).copy_to(view(target), stream)
        assert work.is_done
        opener.join()
    assert target.tolist() == FLOATS.tolist()


@pytest.mark.simulator_only("traces driver calls")
@pytest.mark.parametrize("part", [numpy.s_[:, ::2, ::3, ::2], numpy.s_[..., ::-1]], ids=str)
def test_what_one_call_cannot_copy_is_refused_before_anything_happens(device, stream, part):
    source = CUBE[part]
    buffer, on_device = array_on_device(device, stream, numpy.empty(source.shape, source.dtype))
    with buffer, simulator.trace() as trace:
        with pytest.raises(ValueError, match=r"cannot copy .* in one call"):
            on_device.copy_from(view(source), stream)
        assert trace.names == []


def test_layers_that_are_no_whole_number_of_rows_apart_are_refused(device, stream):
    source = numpy.arange(14, dtype=numpy.int16).reshape(2, 7)[:, :5:2]
    buffer, on_device = array_on_device(device, stream, numpy.empty(source.shape, source.dtype))
    with buffer, pytest.raises(ValueError, match="in one call"):
        on_device.copy_from(view(source), stream)


def test_transposing_is_refused(device, stream):
    buffer, on_device = array_on_device(device, stream, numpy.ascontiguousarray(FLOATS.T))
    with buffer, pytest.raises(ValueError, match="in one call"):
        on_device.copy_from(view(FLOATS.T), stream)


@pytest.mark.parametrize(
    ("target", "source", "error", "message"),
    [
        (numpy.zeros((6, 4), "f4"), FLOATS, ValueError, "shapes differ"),
        (numpy.zeros((4, 6), "i4"), FLOATS, ValueError, "types differ: float32 does not fit int32"),
        (numpy.zeros((4, 6), ">f4"), FLOATS, ValueError, "types differ"),
        (numpy.broadcast_to(FLOATS[0], (4, 6)), FLOATS, ValueError, "read-only"),
        (numpy.lib.stride_tricks.as_strided(FLOATS.copy(), (4, 6), (4, 4)), FLOATS, ValueError, "share memory"),
    ],
    ids=["shape", "type", "byte order", "read-only", "overlapping"],
)
def test_a_copy_that_makes_no_sense_is_refused(target: Any, source: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        view(target).copy_from(view(source), None)


def test_only_views_and_memory_resources_take_part_in_a_copy() -> None:
    for copy in (view(FLOATS).copy_from, view(FLOATS).copy_to):
        with pytest.raises(TypeError, match="must be a StridedMemoryView, not ndarray"):
            copy(FLOATS, None)
        with pytest.raises(TypeError, match="must be a MemoryResource"):
            copy(view(FLOATS.copy()), None, allocator=1)
        with pytest.raises(TypeError, match="needs a Stream"):
            copy(view(FLOATS.copy()), 5)


def test_views_of_no_type_are_copied_by_element_size(device, stream):
    with device.allocate(96, stream) as buffer:
        untyped = StridedMemoryView.from_buffer(buffer, (4, 6), itemsize=4)
        untyped.copy_from(view(FLOATS), stream)
        assert content(buffer, stream) == FLOATS.tobytes()
        with pytest.raises(ValueError, match="types differ"):
            StridedMemoryView.from_buffer(buffer, (4, 6), itemsize=2).copy_from(view(FLOATS), stream)


def test_memory_of_the_host_lives_until_an_unfinished_copy_is_done(device, stream):
    with device.allocate(96, stream) as buffer:
        target = StridedMemoryView.from_buffer(buffer, (4, 6), dtype="f4")

        class Array(numpy.ndarray):
            pass

        source = FLOATS.copy().view(Array)
        alive = weakref.ref(source)
        stream.sync()
        with Gate(stream):
            # a page-locked source would not be read before the gate opens; of another the driver takes a copy at once
            target.copy_from(view(source), stream, blocking=False)
            del source
            collect()
            assert alive() is not None
        stream.sync()
        view(FLOATS.copy()).copy_from(target, stream)  # a copy lets go of what earlier ones needed
        collect()
        assert alive() is None
        assert content(buffer, stream) == FLOATS.tobytes()


@pytest.mark.simulator_only("makes driver calls fail")
@pytest.mark.parametrize("call", ["cuMemcpyAsync", "cuLaunchHostFunc", "cuStreamIsCapturing"])
def test_a_copy_that_fails_keeps_nothing(device, stream, call):
    with device.allocate(96, stream) as buffer:
        target = StridedMemoryView.from_buffer(buffer, (4, 6), dtype="f4")
        held = len(pins)
        with simulator.fail(call, "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError, match=call):
            target.copy_from(view(FLOATS), stream, blocking=False)
        assert len(pins) == held


def test_a_copy_waits_for_the_streams_that_the_views_are_ordered_after(device, stream):
    with device.create_stream() as ordered, device.allocate(96, ordered) as buffer, PINNED.allocate(96) as pinned:
        ordered.sync()
        source = view(on_cuda(buffer.handle), ordered.handle)
        with Gate(ordered):
            StridedMemoryView.from_buffer(pinned, (4, 6), dtype="f4").copy_from(source, stream)
            waiting = stream.record()
            assert not waiting.is_done
        stream.sync()


def test_the_default_stream_of_the_device_serves_without_a_current_context(device, stream):
    with device.allocate(96, stream) as buffer:
        stream.sync()
        target = StridedMemoryView.from_buffer(buffer, (4, 6), dtype="f4")
        target.copy_from(view(FLOATS), LEGACY_DEFAULT_STREAM)
        assert content(buffer, stream) == FLOATS.tobytes()


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
