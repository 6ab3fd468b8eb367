# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The calls that programs make most, in C for CPython and in Python: both do the same, and leave the same alone."""

from __future__ import annotations

import abc
import gc
import importlib.util
import inspect
import logging
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from helpers import ROOT, alive, collect, output_of
from storing import Storing

from cuda_core_cffi import (
    Buffer,
    CUDAWarning,
    Device,
    Event,
    LaunchConfig,
    PreparedLaunch,
    Stream,
    ffi,
    launch,
    lib,
    simulator,
)
from cuda_core_cffi._core import calls, python_calls
from cuda_core_cffi.graph import GraphBuilder, GraphDefinition
from cuda_core_cffi.texture import OpaqueArray

CPYTHON = sys.implementation.name == "cpython"
SIZE = 1024
ROUNDS = 100
if CPYTHON:
    python_calls.storing = Storing()
IN_C = (types.MethodDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType)
NATIVES = "".join(path.read_text() for path in (ROOT / "include" / "python").glob("*.h"))
POINTS = 20  # more than there are allocations in a call


class Kit:
    """One set of functions, and classes whose objects it takes."""

    def __init__(self, calls: Any) -> None:
        self.calls = calls

        class OurStream(calls.Owner):  # type: ignore[name-defined, misc]
            _CTYPE = "CUstream"

        class OurEvent(calls.Owner):  # type: ignore[name-defined, misc]
            _CTYPE = "CUevent"

        class OurBuffer(calls.Owner):  # type: ignore[name-defined, misc]
            _CTYPE = "CUdeviceptr"

        class OurOther(calls.Owner):  # type: ignore[name-defined, misc]
            pass

        self.Stream, self.Event, self.Buffer, self.Other = OurStream, OurEvent, OurBuffer, OurOther
        self.stream = calls.make(OurStream, lib.ccc_stream_create, 0, lib.CU_STREAM_NON_BLOCKING, 0)
        place = (lib.CU_MEM_ALLOCATION_TYPE_PINNED, lib.CU_MEM_LOCATION_TYPE_DEVICE, 0)
        self.pool = calls.make(OurOther, lib.ccc_pool_current, *place)

    def arguments(self, kind: str) -> tuple[Any, ...]:
        """Return what `make` takes for an object of a kind."""
        shape = ffi.new("CUDA_ARRAY3D_DESCRIPTOR *", {"Width": 8, "NumChannels": 1, "Format": lib.CU_AD_FORMAT_FLOAT})
        return {
            "event": (self.Event, lib.ccc_event_create, 0, lib.CU_EVENT_DISABLE_TIMING),
            "stream": (self.Stream, lib.ccc_stream_create, 0, lib.CU_STREAM_NON_BLOCKING, 0),
            "array": (self.Other, lib.ccc_array_create, 0, shape),
        }[kind]

    def allocate(self, size: int = SIZE) -> Any:
        """Return a buffer."""
        buffer = self.calls.make(self.Buffer, lib.ccc_pool_allocate, self.pool._c_handle, self.stream._c_handle, size)
        buffer._size = size
        return buffer


@pytest.fixture(params=["here", "in Python"])
def kit(request: pytest.FixtureRequest, device: Device) -> Iterator[Kit]:
    """What the package uses on this interpreter, and what is in Python."""
    made = Kit(calls if request.param == "here" else python_calls)
    yield made
    assert lib.ccc_stream_sync_slice(made.stream._c_handle, False) in (0, lib.CCC_ATTEND)


@pytest.mark.skipif(not CPYTHON, reason="other interpreters make the best of Python")
def test_on_cpython_the_calls_are_in_c() -> None:
    from cuda_core_cffi import _calls

    assert not _calls.__file__.endswith(".py")
    names = {name for name in vars(_calls) if not name.startswith("_")}
    assert names == set(python_calls.__all__)
    assert all(getattr(calls, name) is getattr(_calls, name) for name in python_calls.__all__)


@pytest.mark.skipif(not CPYTHON, reason="other interpreters make the best of Python")
def test_everything_in_c_stands_before_a_body_and_nothing_else_can_be_put_there() -> None:
    from cuda_core_cffi._launching import launch as launching
    from cuda_core_cffi._memory.exporter import Exporter
    from cuda_core_cffi._memory.pool import MemPool
    from cuda_core_cffi.graph import Graph

    bodies = {cls.__name__: cls for cls in (Buffer, Device, Event, Exporter, Graph, MemPool, Stream)}
    found = re.findall(r'^(?:NATIVE\w*\(\w+, |static native .*\.name = )"([^"]+)"', NATIVES, re.MULTILINE)
    assert len(found) > len(bodies)
    for name in found:
        owner, _, last = name.rpartition(".")
        assert type(vars(bodies[owner])[last] if owner else getattr(launching, last)) in IN_C, name

    def unknown() -> None:
        pass

    with pytest.raises(RuntimeError, match=r"nothing in C has the name '.*unknown'"):
        calls.native()(unknown)
    unknown.__qualname__ = "Stream.sync"
    with pytest.raises(RuntimeError, match=r"Stream\.sync has a body already"):
        calls.native()(unknown)
    with pytest.raises(AttributeError, match="__qualname__"):
        calls.native()(7)


def test_a_module_whose_import_was_interrupted_is_imported_again() -> None:
    code = """
        import sys
        from cuda_core_cffi import Device
        import cuda_core_cffi._launching.launch as first, cuda_core_cffi.graph.executable
        for name in ("_launching.launch", "graph.executable"):
            del sys.modules["cuda_core_cffi." + name]
        import cuda_core_cffi._launching.launch as second, cuda_core_cffi.graph.executable
        assert first is not second
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        try:
            second.launch(stream, None, None)
        except TypeError as error:
            print(error)
    """
    assert output_of(code) == "config must be a LaunchConfig, not NoneType"


def frames_of(call: Callable[[], object]) -> list[str]:
    """Return the names of the functions in Python that a call calls. (One that waits may have things to release.)"""
    found: list[str] = []
    sys.setprofile(lambda frame, event, argument: found.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found[1:]  # without the call itself


@pytest.mark.skipif(not CPYTHON, reason="other interpreters make the best of Python")
def test_usual_calls_have_no_frame_of_python(
    device: Device, stream: Stream, builder: GraphBuilder, memory: list[Buffer], store: Any, graph: GraphDefinition
) -> None:
    pool, event, config = device.memory_resource, device.create_event(), LaunchConfig(grid=1, block=1)
    prepared, made = PreparedLaunch(config, store, Buffer, int), device.create_graph_builder()
    graph.empty()
    with graph.instantiate() as executable, pool.allocate(SIZE, stream) as closed, made:
        calls: dict[str, Callable[[], object]] = {
            "allocate": lambda: pool.allocate(SIZE, stream),
            "allocate, by name": lambda: pool.allocate(SIZE, stream=stream),
            "close": lambda: closed.close(),
            "create an event": lambda: device.create_event(),
            "create a stream": lambda: device.create_stream(),
            "launch": lambda: launch(stream, config, store, memory[0], 1),
            "captured launch": lambda: launch(builder, config, store, memory[0], 1),
            "prepared launch": lambda: prepared.launch(stream, memory[0], 1),
            "captured prepared launch": lambda: prepared.launch(builder, memory[0], 1),
            "fill": lambda: memory[0].fill(1, stream=stream),
            "captured fill": lambda: memory[0].fill(1, stream=builder),
            "copy from": lambda: memory[0].copy_from(memory[1], stream=stream),
            "copy to": lambda: memory[0].copy_to(memory[1], stream=stream),
            "graph launch": lambda: executable.launch(stream),
            "graph launch in a builder": lambda: executable.launch(made),
            "record": lambda: stream.record(event),
            "wait": lambda: stream.wait(event),
        }
        for call in calls.values():
            call()  # the first one may be slower
        assert {name: frames for name, call in calls.items() if (frames := frames_of(call))} == {}


# making and dropping


@pytest.mark.parametrize("kind", ["event", "stream", "array"])
@pytest.mark.parametrize("close", [True, False])
def test_what_is_made_goes_with_its_object(kit: Kit, kind: str, close: bool) -> None:
    arguments = kit.arguments(kind)
    before = alive()
    made = kit.calls.make(*arguments)
    assert type(made) is arguments[0]
    assert lib.ccc_handle_value(made._c_handle)
    assert alive() != before
    if close:
        kit.calls.close(made)
        assert not lib.ccc_is_open(made._c_handle)
        assert alive() == before
        kit.calls.close(made)
    del made
    collect()
    assert alive() == before


def subtract_in_vain(device: Device) -> None:
    with device.create_event() as start, device.create_event() as end:
        for other in (start, 7):
            with pytest.raises((RuntimeError, TypeError)):
                _ = end - other  # type: ignore[operator]


@pytest.mark.skipif(not CPYTHON, reason="PyPy does not count references")
def test_classes_and_boxes_are_not_kept(device: Device, stream: Stream, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "cuda_core_cffi.driver")  # pytest keeps what is logged

    def use(rounds: int) -> None:
        for _ in range(rounds):
            device.allocate(SIZE, stream=stream).close()
            device.allocate(SIZE, stream=stream)
            device.create_event().close()
            device.create_stream().close()
            viewer = calls.make(Stream, lib.ccc_view, stream._c_handle)
            del viewer
            subtract_in_vain(device)
        stream.sync()
        gc.collect()

    c_handle = lib.ccc_view(stream._c_handle)
    use(2 * ROUNDS)  # makes the device's memory resource and whatever else is made once; remembers the last failures
    counts = [sys.getrefcount(item) for item in (Buffer, Event, Stream, c_handle)]
    blocks = sys.getallocatedblocks()
    use(ROUNDS)
    assert [sys.getrefcount(item) for item in (Buffer, Event, Stream, c_handle)] == counts
    assert sys.getallocatedblocks() < blocks + ROUNDS
    lib.ccc_release_object(c_handle)


@pytest.mark.skipif(not CPYTHON, reason="what PyPy has is plain Python")
def test_wrong_uses_of_the_functions_in_c_are_refused(stream: Stream) -> None:
    with pytest.raises(TypeError, match="has a handle already"):
        calls.make_in(stream, lib.ccc_view, stream._c_handle)
    with pytest.raises(TypeError, match="expected a subclass of Owner"):
        calls.make_in(7, lib.ccc_view, stream._c_handle)  # type: ignore[arg-type]
    for wrong in (object, 7):
        with pytest.raises(TypeError, match="expected a subclass of Owner"):
            calls.make(wrong, lib.ccc_view, stream._c_handle)  # type: ignore[type-var]
    with pytest.raises(TypeError):
        calls.make(Stream, lambda: ffi.new("int *"))
    for name in ("make", "make_in"):
        with pytest.raises(TypeError, match=f"{name} takes at least 2 arguments, not 0"):
            getattr(calls, name)()
    for name in ("lift",):
        with pytest.raises(TypeError, match=f"{name} takes [0-9] arguments, not 0"):
            getattr(calls, name)()
    with pytest.raises(AttributeError):
        stream._c_handle = stream._c_handle  # type: ignore[misc]
    with pytest.raises(AttributeError):
        calls.close(Stream.__new__(Stream))


@pytest.mark.skipif(not CPYTHON or importlib.util.find_spec("_testcapi") is None, reason="needs _testcapi")
def test_a_failure_to_allocate_loses_no_handle(device: Device, stream: Stream) -> None:
    import _testcapi

    # calls of C alone: where a frame cannot be allocated, CPython itself may crash
    pool, shape = device.memory_resource, Kit(calls).arguments("array")[-1]
    makers = [
        partial(pool.allocate, SIZE, stream),
        device.create_event,
        device.create_stream,
        partial(calls.make, Buffer, lib.ccc_pool_allocate, pool._c_handle, stream._c_handle, SIZE),
        partial(calls.make, Event, lib.ccc_event_create, 0, 2),
        partial(calls.make, Stream, lib.ccc_stream_create, 0, 1, 0),
        partial(calls.make, OpaqueArray, lib.ccc_array_create, 0, shape),
    ]
    for make in makers:
        make()
        collect()
        before, failures = alive(), 0
        for point in range(POINTS):
            _testcapi.set_nomemory(point, point + 1)
            try:
                make()
            except MemoryError:
                failures += 1
            finally:
                _testcapi.remove_mem_hooks()
        collect()
        assert alive() == before
        assert 0 < failures < POINTS, make


def test_an_object_that_has_no_handle_gets_one(kit: Kit) -> None:
    before, made = alive(), kit.Stream.__new__(kit.Stream)
    assert kit.calls.make_in(made, lib.ccc_stream_create, 0, lib.CU_STREAM_NON_BLOCKING, 0) is True
    assert lib.ccc_handle_value(made._c_handle)
    assert alive()["stream"] == before["stream"] + 1
    kit.calls.close(made)
    assert alive() == before


def test_an_exception_of_the_helper_leaves_nothing(kit: Kit) -> None:
    before, made = alive(), kit.Stream.__new__(kit.Stream)
    with pytest.raises(TypeError):
        kit.calls.make(kit.Stream, lib.ccc_stream_create, 0, "no number", 0)
    with pytest.raises(TypeError):
        kit.calls.make_in(made, lib.ccc_stream_create, 0, "no number", 0)
    assert getattr(made, "_c_handle", None) is None
    assert alive() == before


def test_refused_constructions_have_nothing_to_drop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (Stream, Event, Buffer):
            with pytest.raises(RuntimeError, match="cannot be constructed directly"):
                kind()
            kind.__new__(kind)
        collect()


# what is left to Python


@pytest.mark.simulator_only("counts driver calls")
def test_nothing_is_done_with_unusual_arguments(device: Device, stream: Stream, memory: list[Buffer]) -> None:
    buffer = memory[0]
    with device.allocate(buffer.size // 2, stream) as smaller, simulator.trace() as trace:
        wrong: Any
        for wrong in (None, 7, object(), buffer):
            with pytest.raises(TypeError):
                buffer.fill(0, stream=wrong)
            with pytest.raises(TypeError):
                buffer.copy_from(memory[1], stream=wrong)
        for wrong in (-1, 256, 2**80, 1.0, b"123", None):
            with pytest.raises((OverflowError, TypeError, ValueError)):
                buffer.fill(wrong, stream=stream)
        for wrong in (None, 7, stream, b"0", smaller):
            with pytest.raises((TypeError, ValueError)):
                buffer.copy_from(wrong, stream=stream)
        for wrong in (7, stream, b"0" * buffer.size, smaller):
            with pytest.raises((TypeError, ValueError, BufferError)):
                buffer.copy_to(wrong, stream=stream)
        assert trace.names == []


@pytest.mark.simulator_only("makes calls fail")
@pytest.mark.parametrize(
    ("kind", "function"),
    [("event", "cuEventCreate"), ("stream", "cuStreamCreateWithPriority"), ("array", "cuArray3DCreate")],
)
def test_after_a_failure_there_is_no_object(kit: Kit, kind: str, function: str) -> None:
    arguments = kit.arguments(kind)
    before = alive()
    with simulator.fail(function, "CUDA_ERROR_UNKNOWN"):
        assert kit.calls.make(*arguments) is None
    assert lib.ccc_last_status() == lib.CUDA_ERROR_UNKNOWN
    assert alive() == before


def test_fill_and_copy_in_c_and_in_python_do_the_same(device: Device, stream: Stream) -> None:
    with device.allocate(SIZE, stream) as one, device.allocate(SIZE, stream) as other:
        closed = device.allocate(SIZE, stream)
        closed.close()
        gone = device.create_stream()
        gone.close()
        for queue in (stream, gone):
            for buffer in (one, other, closed):
                # with a width, or arguments by name, the method in Python does it
                assert outcome(buffer.fill, 7, stream=queue) == outcome(buffer.fill, 7, 1, stream=queue)
                for source in (one, other, closed):
                    assert outcome(buffer.copy_from, source, stream=queue) == outcome(
                        buffer.copy_from, src=source, stream=queue
                    )
                    assert outcome(buffer.copy_to, source, stream=queue) == outcome(
                        buffer.copy_to, dst=source, stream=queue
                    )
        assert outcome(one.copy_from, other, stream=stream) == (type(None), "")
        assert outcome(one.copy_from, one, stream=stream)[0] is ValueError
        one.fill(8, stream=stream)
        assert one.copy_to(other, stream=stream) is other
        found = other.copy_to(bytearray(SIZE), stream=stream)
        stream.sync()
        assert found == b"\10" * SIZE


# methods


@pytest.mark.parametrize(
    ("method", "parameters", "documentation"),
    [
        (Stream.sync, "()", "Wait on the host until all work in the stream is done."),
        (Stream.record, "(event=None, options=None)", "Record an event: it is reached when"),
        (Stream.wait, "(event_or_stream)", "Hold up what follows in this stream"),
        (Event.sync, "()", "Wait on the host until the event is reached."),
    ],
)
def test_methods_are_described_alike_in_c_and_in_python(method: Any, parameters: str, documentation: str) -> None:
    kinds = (types.MethodDescriptorType if CPYTHON else types.FunctionType,)
    assert isinstance(method, kinds)
    bare = [item.replace(annotation=item.empty) for item in inspect.signature(method).parameters.values()]
    assert str(inspect.Signature(bare[1:])) == parameters
    assert (inspect.getdoc(method) or "").startswith(documentation)
    assert method.__qualname__ in ("Stream.sync", "Stream.record", "Stream.wait", "Event.sync")


def test_methods_take_their_arguments_by_name_too(device: Device, stream: Stream) -> None:
    with device.create_event() as event, device.create_stream() as other:
        assert stream.record(event=event) is stream.record(event, None) is stream.record(event, options=None) is event
        with stream.record(options={"timing_enabled": True}) as new, stream.record(None) as untimed:
            assert (new.is_timing_enabled, untimed.is_timing_enabled) == (True, False)
        other.wait(event_or_stream=event)
        other.wait(event_or_stream=stream)
        wrong: Any
        for wrong in (
            lambda: stream.record(event, None, None),  # type: ignore[call-arg]
            lambda: stream.record(events=event),  # type: ignore[call-arg]
            lambda: stream.record(event, event=event),  # type: ignore[misc]
            lambda: other.wait(),  # type: ignore[call-arg]
            lambda: other.wait(event, stream),  # type: ignore[call-arg]
            lambda: stream.sync(event),  # type: ignore[call-arg]
            lambda: event.sync(timeout=1),  # type: ignore[call-arg]
        ):
            with pytest.raises(TypeError, match="argument"):
                wrong()
        stream.sync()
        other.sync()


def outcome(call: Any, *arguments: Any, **named: Any) -> tuple[type, str]:
    """Return the type of what a call returns, or the exception that it raises."""
    try:
        return type(call(*arguments, **named)), ""
    except Exception as error:
        return type(error), str(error)


def test_methods_in_c_and_in_python_do_the_same(device: Device, stream: Stream) -> None:
    # with arguments by name the method in Python does it
    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, stream.handle)

    with device.create_stream() as other, device.create_event() as event, device.create_event() as closed:
        closed.close()
        gone = device.create_stream()
        gone.close()
        for queue in (other, gone):
            for item in (event, closed, stream, gone, Foreign(), None, 7, b"7", Event.__new__(Event)):
                if item is not None:  # which makes an event
                    assert outcome(queue.record, item) == outcome(queue.record, event=item)
                assert outcome(queue.wait, item) == outcome(queue.wait, event_or_stream=item)
        assert outcome(other.record, event) == (Event, "")
        assert outcome(other.wait, stream) == outcome(other.wait, event) == (type(None), "")
        pool = device.memory_resource
        for size in (SIZE, 0, -1, 2**64, 7.0, True, "7", None):
            for queue in (stream, gone, event, 7):
                made = [
                    outcome(pool.allocate, size, queue),
                    outcome(pool.allocate, size=size, stream=queue),
                ]
                assert made[0] == made[1]
        assert outcome(pool.allocate, SIZE, stream) == (Buffer, "")
        other.sync()


@pytest.mark.parametrize("method", [Stream.sync, Stream.record, Stream.wait, Event.sync])
def test_methods_are_for_objects_of_their_class(method: Any, stream: Stream) -> None:
    arguments = (None,) if method is Stream.wait else ()
    for empty in (Stream.__new__(Stream), Event.__new__(Event)):
        with pytest.raises((TypeError, AttributeError)):
            method(empty, *arguments)
    with pytest.raises((TypeError, AttributeError)):
        method(7, *arguments)


def test_methods_work_in_subclasses_and_may_be_overridden(device: Device, stream: Stream) -> None:
    class Plain(Stream):
        pass

    class Noted(Stream):
        def record(self, event: Any = None, options: Any = None) -> Event:
            notes.append("record")
            return super().record(event, options)

        def sync(self) -> None:
            notes.append("sync")
            super().sync()

    notes: list[str] = []
    for kind in (Plain, Noted):
        with calls.make(kind, lib.ccc_view, stream._c_handle) as ours, device.create_event() as event:
            assert ours.record(event) is event
            ours.wait(event)
            ours.sync()
            event.sync()
        with pytest.raises(RuntimeError, match=f"this {kind.__name__} is closed"):
            ours.sync()
    assert notes == ["record", "sync", "sync"]


@pytest.mark.skipif(not CPYTHON, reason="PyPy does not count references")
def test_methods_keep_nothing(device: Device, stream: Stream) -> None:
    def use(event: Any) -> None:
        stream.record(event)
        stream.wait(event)
        stream.sync()
        event.sync()

    def use_in_vain(event: Any) -> None:
        for call in (stream.record, stream.wait, lambda event: event.sync(), lambda _: stream.record(7)):
            with pytest.raises((RuntimeError, TypeError)):
                call(event)

    event = device.create_event()
    kept = (event, stream, Stream, Event)
    counts = [sys.getrefcount(item) for item in kept]
    for _ in range(ROUNDS):
        use(event)
    event.close()
    for _ in range(ROUNDS):
        use_in_vain(event)
    gc.collect()
    for item, count in zip(kept, counts, strict=True):
        assert sys.getrefcount(item) < count + ROUNDS


def test_blank_objects_are_like_those_of_object_new(kit: Kit) -> None:
    class Slotted:
        __slots__ = ("item",)

        def __init__(self) -> None:
            raise AssertionError

    class WithAttributes(Slotted):
        pass

    class Abstract(abc.ABC):
        @abc.abstractmethod
        def method(self) -> None: ...

    slotted, free = kit.calls.new_object(Slotted), kit.calls.new_object(WithAttributes)
    assert (type(slotted), type(free)) == (Slotted, WithAttributes)
    slotted.item = free.other = 7
    assert (slotted.item, vars(free)) == (7, {"other": 7})
    for name in ("item", "other"):
        with pytest.raises(AttributeError):
            getattr(kit.calls.new_object(Slotted), name)
    for wrong in (Abstract, dict, 7):
        with pytest.raises(TypeError):
            kit.calls.new_object(wrong)


# what they cost


@pytest.mark.simulator_only("counts driver calls")
def test_no_driver_call_is_made_in_vain(device: Device, stream: Stream) -> None:
    device.allocate(SIZE, stream=stream).close()
    other = device.allocate(SIZE, stream=stream)
    with device.allocate(SIZE, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        with simulator.trace() as trace:
            device.allocate(SIZE, stream=stream).close()
            buffer.fill(0, stream=stream)
            other.copy_from(buffer, stream=stream)
        assert trace.names == [
            "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemsetD8Async", "cuMemcpyAsync"
        ]  # fmt: skip
    with simulator.trace() as trace:
        device.allocate(SIZE, stream=device.default_stream).close()
        device.create_event().close()
        device.create_stream().close()
    # where there is code to unload, a stream that is closed is asked for its work
    asked = ("cuCtxGetCurrent", "cuStreamIsCapturing", "cuStreamQuery", "cuThreadExchangeStreamCaptureMode")
    assert [name for name in trace.names if name not in asked] == [
        "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuEventCreate", "cuEventDestroy_v2", "cuStreamCreateWithPriority",
        "cuStreamDestroy_v2",
    ]  # fmt: skip
    assert len(trace.names) <= 6 + 4 + 4
    other.close()


# failures of cleanup


@pytest.mark.simulator_only("makes calls fail")
@pytest.mark.parametrize("how", ["close", "drop"])
def test_a_warning_of_cleanup_names_the_call_and_the_place(device: Device, stream: Stream, how: str) -> None:
    buffer = device.allocate(SIZE, stream=stream)
    with simulator.fail("cuMemFreeAsync", "CUDA_ERROR_UNKNOWN"), warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        if how == "close":
            buffer.close()
        del buffer
        collect()
    assert [item.category for item in got] == [CUDAWarning]
    assert "cuMemFreeAsync" in str(got[0].message)
    if CPYTHON or how == "close":
        assert got[0].filename == __file__


@pytest.mark.simulator_only("makes calls fail")
@pytest.mark.skipif(not CPYTHON, reason="PyPy collects at another time")
def test_a_warning_that_is_an_error_is_not_raised_by_a_collection(
    device: Device, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: shown.append(what.exc_type))

    def fail() -> Any:
        return [device.allocate(SIZE, stream=stream), {}["first"]]  # the buffer goes while the error is raised

    with warnings.catch_warnings(), simulator.fail("cuMemFreeAsync", "CUDA_ERROR_UNKNOWN"):
        warnings.simplefilter("error")
        with pytest.raises(KeyError, match="first"):
            fail()
        collect()
    assert shown == [CUDAWarning]
