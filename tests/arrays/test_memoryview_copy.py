# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies from view to view: on the host, on a device, and between them."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy
import pytest
from arrays import FLOATS, on_cuda, view
from buffers import PINNED, HostResource, content
from helpers import Gate, collect, soon

from cuda_core_cffi import LEGACY_DEFAULT_STREAM, CUDAError, simulator
from cuda_core_cffi._lifetime.pending_calls import run_all_tasks
from cuda_core_cffi._memory.dlpack import releases
from cuda_core_cffi.utils import StridedMemoryView


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
        held = len(releases)
        with simulator.fail(call, "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError, match=call):
            target.copy_from(view(FLOATS), stream, blocking=False)
        assert len(releases) == held


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


def test_a_closed_buffer_of_host_memory_stays_until_the_copy_is_done(device, stream):
    resource = HostResource()
    one, on_device = array_on_device(device, stream, FLOATS)
    buffer = resource.allocate(FLOATS.nbytes)
    on_host = StridedMemoryView.from_buffer(buffer, FLOATS.shape, dtype=FLOATS.dtype)
    with one, Gate(stream):
        on_device.copy_from(on_host, stream, blocking=False)
        buffer.close()
        run_all_tasks()
        assert len(resource.live) == 1
    assert soon(lambda: run_all_tasks() or not resource.live)


@pytest.mark.simulator_only("traces driver calls")
def test_a_copy_in_a_closed_stream_is_refused_before_anything_is_ordered(device, stream):
    one, _ = array_on_device(device, stream, FLOATS)
    with one, device.create_stream() as producer:
        shown = StridedMemoryView.from_any_interface(one, producer.handle)
        closed = device.create_stream()
        closed.close()
        with simulator.trace() as calls, pytest.raises(RuntimeError, match="this Stream is closed"):
            shown.copy_from(StridedMemoryView.from_any_interface(one[:], -1), closed)
    assert [call.function for call in calls if "Event" in call.function] == []
