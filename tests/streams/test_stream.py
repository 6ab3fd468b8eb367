# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Streams: making and wrapping them, what they tell, and the order that they keep."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import numpy
import pytest
from helpers import Gate

from cuda_core_cffi import Device, Event, Stream, StreamOptions, ffi, lib


class Foreign:
    """A stream of another library."""

    def __init__(self, handle: Any, version: Any = 0) -> None:
        self.answer: Any = (version, handle)

    def __cuda_stream__(self) -> Any:
        return self.answer


class Answer(Foreign):
    """A stream with an answer of its own."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class Attribute:
    """A stream that speaks the protocol as it once was."""

    def __init__(self, handle: int) -> None:
        self.__cuda_stream__ = (0, handle)


def priority_range() -> tuple[int, int]:
    least, greatest = ffi.new("int *"), ffi.new("int *")
    assert lib.cuCtxGetStreamPriorityRange(least, greatest) == 0
    return least[0], greatest[0]


# making one


def test_it_cannot_be_constructed() -> None:
    with pytest.raises(RuntimeError, match=r"Stream cannot be constructed directly; use Device\.create_stream"):
        Stream()


def test_a_subclass_cannot_be_constructed_either() -> None:
    class Special(Stream):
        pass

    with pytest.raises(RuntimeError, match="Special cannot be constructed directly"):
        Special()


def test_a_refused_object_is_collected_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError):
        Stream()
    gc.collect()
    assert capsys.readouterr().err == ""


def test_a_new_stream_is_nonblocking(stream: Stream) -> None:
    assert stream.is_nonblocking is True


@pytest.mark.parametrize("nonblocking", [True, False])
@pytest.mark.parametrize("as_mapping", [True, False])
def test_nonblocking_is_an_option(device: Device, nonblocking: bool, as_mapping: bool) -> None:
    options = {"nonblocking": nonblocking} if as_mapping else StreamOptions(nonblocking=nonblocking)
    with device.create_stream(options=options) as stream:
        assert stream.is_nonblocking is nonblocking


def test_the_default_priority_is_the_lowest(stream: Stream) -> None:
    assert stream.priority == priority_range()[0] == 0


def test_every_priority_of_the_device_can_be_had(device: Device) -> None:
    least, greatest = priority_range()
    for priority in range(greatest, least + 1):
        with device.create_stream(options=StreamOptions(priority=priority)) as stream:
            assert stream.priority == priority


def test_a_priority_out_of_range_is_refused_with_the_range(device: Device) -> None:
    least, greatest = priority_range()
    for priority in (least + 1, greatest - 1, 10**9, 2**70):
        with pytest.raises(ValueError, match=rf"priority {priority} is outside .* {greatest} runs first, {least} last"):
            device.create_stream(options={"priority": priority})


@pytest.mark.parametrize("priority", ["high", 0.0, True], ids=repr)
def test_a_priority_must_be_an_integer(device: Device, priority: Any) -> None:
    with pytest.raises(TypeError, match="priority must be an int"):
        device.create_stream(options={"priority": priority})


def test_an_unknown_option_is_refused_with_the_likely_one(device: Device) -> None:
    with pytest.raises(TypeError, match=r"StreamOptions has no option 'non_blocking'; did you mean 'nonblocking'\?"):
        device.create_stream(options={"non_blocking": True})


@pytest.mark.parametrize("options", [1, "fast", ["nonblocking"], (True, 0)], ids=repr)
def test_options_must_be_options(device: Device, options: Any) -> None:
    with pytest.raises(TypeError, match="options must be StreamOptions, a mapping or None"):
        device.create_stream(options=options)


def test_options_are_unhashable() -> None:
    with pytest.raises(TypeError):
        hash(StreamOptions())


def test_each_call_makes_another_stream(device: Device) -> None:
    with device.create_stream() as first, device.create_stream() as second:
        assert first != second
        assert first.handle != second.handle


def test_it_can_be_made_without_a_current_context(device: Device) -> None:
    made: list[Stream] = []
    thread = threading.Thread(target=lambda: made.append(Device(0).create_stream()))
    thread.start()
    thread.join()
    with made[0] as stream:
        assert stream.device is device


# what it tells


def test_its_handles_agree(stream: Stream) -> None:
    assert type(stream.handle) is int
    assert stream.handle == int(ffi.cast("uintptr_t", stream.cdata)) != 0
    assert ffi.typeof(stream.cdata) is ffi.typeof("CUstream")


def test_it_speaks_the_protocol(stream: Stream) -> None:
    assert stream.__cuda_stream__() == (0, stream.handle)


def test_it_knows_its_device_and_context(device: Device, stream: Stream) -> None:
    assert stream.device is device
    assert stream.context == device.context


def test_its_repr_shows_handle_and_context(stream: Stream) -> None:
    assert repr(stream) == f"<Stream handle={stream.handle:#x} context={stream.context.handle:#x}>"


def test_its_attributes_are_read_only(stream: Stream) -> None:
    for name in ("handle", "priority", "is_nonblocking", "device", "context", "colour"):
        with pytest.raises(AttributeError):
            setattr(stream, name, 1)


# equality, closing, life


def test_it_is_equal_to_another_object_for_the_same_stream(stream: Stream) -> None:
    other = Stream.from_handle(stream.handle)
    assert stream == other
    assert hash(stream) == hash(other)
    assert len({stream, other}) == 1


def test_it_is_unequal_to_other_things(stream: Stream) -> None:
    assert stream != stream.handle
    assert stream != stream.context
    assert (stream == object()) is False


def test_a_closed_one_stays_equal_to_itself_and_to_its_twin(device: Device) -> None:
    stream = device.create_stream()
    twin, before = Stream.from_handle(stream.handle), hash(stream)
    stream.close()
    assert stream == stream
    assert stream == twin
    assert hash(stream) == before


def test_closing_twice_is_allowed(device: Device) -> None:
    stream = device.create_stream()
    assert not stream.is_closed
    stream.close()
    stream.close()
    assert stream.is_closed


def test_with_closes_it(device: Device) -> None:
    with device.create_stream() as stream:
        assert isinstance(stream, Stream)
    assert stream.is_closed


def test_with_closes_it_after_an_error(device: Device) -> None:
    with pytest.raises(ZeroDivisionError), device.create_stream() as stream:
        _ = 1 / 0
    assert stream.is_closed


def test_a_closed_one_has_no_handle(device: Device) -> None:
    stream = device.create_stream()
    stream.close()
    assert stream.handle == 0
    assert stream.cdata == ffi.NULL
    assert repr(stream) == "<Stream handle=0x0 closed>"


@pytest.mark.parametrize(
    "use",
    [
        lambda s, other: s.sync(),
        lambda s, other: s.record(),
        lambda s, other: s.wait(other),
        lambda s, other: other.wait(s),
        lambda s, other: s.priority,
        lambda s, other: s.is_nonblocking,
        lambda s, other: s.context,
        lambda s, other: s.device,
        lambda s, other: Device(0).create_stream(s),
        lambda s, other: Device(0).allocate(16, s),
    ],
)
def test_use_of_a_closed_one_says_so(device: Device, stream: Stream, use: Any) -> None:
    closed = device.create_stream()
    closed.close()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        use(closed, stream)


def test_a_closed_one_does_not_pose_as_the_default_stream(device: Device) -> None:
    closed = device.create_stream()
    closed.close()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        closed.__cuda_stream__()


def test_it_can_be_weakly_referenced(device: Device) -> None:
    stream = device.create_stream()
    reference = weakref.ref(stream)
    assert reference() is stream
    del stream
    gc.collect()
    assert reference() is None


def test_collecting_it_destroys_the_stream(device: Device) -> None:
    from cuda_core_cffi import live_objects

    before = live_objects()["stream"]
    stream = device.create_stream()
    assert live_objects()["stream"] == before + 1
    del stream
    gc.collect()
    assert live_objects()["stream"] == before


# other libraries' streams


def test_from_handle_takes_an_integer(stream: Stream) -> None:
    other = Stream.from_handle(stream.handle)
    assert other.handle == stream.handle
    assert other.priority == stream.priority
    assert other.context == stream.context
    assert other.device is stream.device


def test_from_handle_takes_a_cffi_pointer(stream: Stream) -> None:
    assert Stream.from_handle(stream.cdata) == stream
    assert Stream.from_handle(ffi.cast("void *", stream.handle)) == stream


def test_from_handle_takes_an_integer_of_numpy(stream: Stream) -> None:
    assert Stream.from_handle(numpy.uint64(stream.handle)) == stream


def test_from_handle_takes_a_handle_type_that_converts_to_int(stream: Stream) -> None:
    class Handle:
        def __int__(self) -> int:
            return stream.handle

    assert Stream.from_handle(Handle()) == stream


@pytest.mark.parametrize("wrong", [None, "12", b"12", 12.0, numpy.float64(12), object, [1], 1 + 0j], ids=repr)
def test_from_handle_refuses_what_is_no_handle(wrong: Any) -> None:
    with pytest.raises(TypeError, match="a handle must be an int or a CFFI pointer"):
        Stream.from_handle(wrong)


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_from_handle_refuses_what_is_no_address(wrong: int) -> None:
    with pytest.raises(OverflowError, match=f"64 bits, not {wrong}"):
        Stream.from_handle(wrong)


def test_closing_a_wrapper_destroys_nothing(stream: Stream) -> None:
    with Stream.from_handle(stream.handle):
        pass
    stream.sync()
    stream.record().close()


def test_a_wrapper_does_not_count_as_live(stream: Stream) -> None:
    from cuda_core_cffi import live_objects

    before = live_objects()
    other = Stream.from_handle(stream.handle)
    assert live_objects() == before
    del other


def test_create_stream_wraps_a_protocol_object(device: Device, stream: Stream) -> None:
    wrapper = device.create_stream(Foreign(stream.handle))
    assert wrapper == stream
    assert isinstance(wrapper, Stream)


def test_create_stream_wraps_one_of_our_own(device: Device, stream: Stream) -> None:
    assert device.create_stream(stream) == stream


def test_the_wrapped_object_lives_as_long_as_the_wrapper(device: Device, stream: Stream) -> None:
    foreign = Foreign(stream.handle)
    reference = weakref.ref(foreign)
    wrapper = device.create_stream(foreign)
    del foreign
    gc.collect()
    assert reference() is not None
    wrapper.close()
    gc.collect()
    assert reference() is None


def test_create_stream_refuses_object_and_options_together(device: Device, stream: Stream) -> None:
    with pytest.raises(ValueError, match="obj or options, not both"):
        device.create_stream(stream, StreamOptions())


def test_the_address_of_a_protocol_object_may_be_a_cffi_pointer(device: Device, stream: Stream) -> None:
    assert device.create_stream(Foreign(stream.cdata)) == stream


@pytest.mark.parametrize("wrong", [1, "stream", object(), StreamOptions()], ids=lambda item: type(item).__name__)
def test_create_stream_wants_the_protocol(device: Device, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"Device.create_stream needs a Stream, or an object with a __cuda_stream__"):
        device.create_stream(wrong)


@pytest.mark.parametrize("answer", [None, 5, (0,), (0, 1, 2), "01x", ()], ids=repr)
def test_an_answer_that_is_no_pair_is_refused(device: Device, answer: Any) -> None:
    with pytest.raises(TypeError, match="not a pair of version and address"):
        device.create_stream(Answer(answer))


@pytest.mark.parametrize("version", [1, -1, "0", None], ids=repr)
def test_an_unknown_version_is_refused(device: Device, stream: Stream, version: Any) -> None:
    with pytest.raises(TypeError, match="only version 0 is known"):
        device.create_stream(Foreign(stream.handle, version))


@pytest.mark.parametrize("address", [None, "1", 1.0], ids=repr)
def test_an_address_that_is_none_is_refused(device: Device, address: Any) -> None:
    with pytest.raises(TypeError, match="a handle must be an int"):
        device.create_stream(Foreign(address))


def test_an_error_of_the_protocol_method_comes_through(device: Device) -> None:
    class Broken:
        def __cuda_stream__(self) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        device.create_stream(Broken())  # type: ignore[arg-type]


def test_the_attribute_form_of_the_protocol_warns_at_the_call_of_wait(stream: Stream) -> None:
    with pytest.warns(DeprecationWarning, match="Attribute.__cuda_stream__ is an attribute") as caught:
        stream.wait(Attribute(stream.handle))  # type: ignore[arg-type]
    assert (caught[0].filename, caught[0].lineno) == (__file__, line_of("stream.wait(Attribute("))


def test_the_attribute_form_of_the_protocol_warns_at_the_call_of_create_stream(device: Device, stream: Stream) -> None:
    with pytest.warns(DeprecationWarning, match="Attribute.__cuda_stream__ is an attribute") as caught:
        wrapper = device.create_stream(Attribute(stream.handle))  # type: ignore[arg-type]
    assert (caught[0].filename, caught[0].lineno) == (__file__, line_of("device.create_stream(Attribute("))
    assert wrapper == stream


def line_of(text: str) -> int:
    """Return the number of the first line of this file that has the text."""
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


# order


def test_sync_waits_for_the_work(stream: Stream) -> None:
    with Gate(stream) as gate:
        opener = threading.Timer(0.1, gate.open)
        start = time.perf_counter()
        opener.start()
        stream.sync()
        assert time.perf_counter() - start >= 0.09


def test_sync_lets_other_threads_run(stream: Stream) -> None:
    """The gate is a Python function: this hangs if sync() keeps the interpreter to itself."""
    with Gate(stream) as gate:
        gate.open()
        stream.sync()


def waits(device: Device, stream: Stream, prepare: Any) -> bool:
    """Tell whether another stream, after ``prepare(other)``, waits for what is in ``stream``."""
    with device.create_stream() as other, Gate(stream) as gate:
        prepare(other)
        with other.record() as reached:
            held_up = not reached.is_done
            gate.open()
            reached.sync()
            other.sync()
    return held_up


def test_wait_takes_an_event(device: Device, stream: Stream) -> None:
    def prepare(other: Stream) -> None:
        with stream.record() as event:
            other.wait(event)

    assert waits(device, stream, prepare)


def test_wait_takes_a_stream(device: Device, stream: Stream) -> None:
    assert waits(device, stream, lambda other: other.wait(stream))


def test_wait_takes_a_protocol_object(device: Device, stream: Stream) -> None:
    assert waits(device, stream, lambda other: other.wait(Foreign(stream.handle)))


def test_without_wait_streams_are_independent(device: Device, stream: Stream) -> None:
    with device.create_stream() as other, Gate(stream), other.record() as reached:
        reached.sync()
        assert reached.is_done


def test_wait_holds_up_only_what_follows(device: Device, stream: Stream) -> None:
    with device.create_stream() as other, Gate(stream), other.record() as before:
        other.wait(stream)
        before.sync()
        assert before.is_done


def test_a_stream_may_wait_for_itself(stream: Stream) -> None:
    stream.wait(stream)
    stream.sync()


@pytest.mark.parametrize("wrong", [None, 1, "event", object()], ids=lambda item: type(item).__name__)
def test_wait_refuses_other_things(stream: Stream, wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"wait needs .*, not {type(wrong).__name__}"):
        stream.wait(wrong)


def test_wait_for_a_closed_event_names_the_event(stream: Stream) -> None:
    event = stream.record()
    event.close()
    with pytest.raises(RuntimeError, match="this Event is closed"):
        stream.wait(event)


def test_record_makes_an_event(stream: Stream) -> None:
    with stream.record() as event:
        assert isinstance(event, Event)
        assert not event.is_timing_enabled


def test_record_takes_options_of_the_event(stream: Stream) -> None:
    with stream.record(options={"timing_enabled": True}) as event:
        assert event.is_timing_enabled


def test_record_returns_the_event_given(stream: Stream) -> None:
    with stream.record() as event:
        assert stream.record(event) is event


@pytest.mark.parametrize("wrong", [1, "event", object()], ids=lambda item: type(item).__name__)
def test_record_refuses_other_things(stream: Stream, wrong: Any) -> None:
    with pytest.raises(TypeError, match="event must be an Event"):
        stream.record(wrong)


def test_record_in_a_closed_event_names_the_event(stream: Stream) -> None:
    event = stream.record()
    event.close()
    with pytest.raises(RuntimeError, match="this Event is closed"):
        stream.record(event)


def test_closing_lets_the_work_finish(device: Device, stream: Stream) -> None:
    other = device.create_stream()
    with Gate(stream) as gate:
        other.wait(stream)
        with other.record() as event:
            other.close()
            assert not event.is_done
            gate.open()
            event.sync()
            assert event.is_done
