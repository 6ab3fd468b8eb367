# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Views as producers of DLPack tensors: what NumPy and other consumers see of them, and when."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from arrays import FLOATS, on_cuda, view
from buffers import write
from helpers import Gate, collect

from cuda_core_cffi.utils import StridedMemoryView


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


def test_a_view_of_another_type_or_layout_is_exported_as_such() -> None:
    seen = numpy.from_dlpack(view(FLOATS).view(dtype="i4"))
    assert (seen.dtype, seen.tolist()) == (numpy.int32, FLOATS.view("i4").tolist())
    shown = view(FLOATS)
    assert numpy.from_dlpack(shown.view(shown._layout.sliced((1, slice(2, 4))))).tolist() == FLOATS[1, 2:4].tolist()


def test_a_view_that_has_told_nothing_yet_is_exported_like_one_that_has() -> None:
    for ask in (lambda shown: None, repr):
        shown = view(FLOATS[:, ::2])
        ask(shown)
        assert numpy.from_dlpack(shown).tolist() == FLOATS[:, ::2].tolist()


def test_a_view_of_a_buffer_is_not_exported_once_that_is_closed(device, stream):
    buffer = device.allocate(96, stream)
    shown = view(buffer)
    assert shown.__dlpack__(stream=-1) is not None
    buffer.close()
    with pytest.raises(BufferError, match="Buffer is closed"):
        shown.__dlpack__(stream=-1)


def test_an_array_outlives_the_view_and_the_array_that_it_shows() -> None:
    array = FLOATS.copy()
    seen = numpy.from_dlpack(view(array))
    del array
    collect()
    again = numpy.from_dlpack(view(seen))
    del seen
    collect()
    assert again.tolist() == FLOATS.tolist()
