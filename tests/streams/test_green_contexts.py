# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Green contexts: which multiprocessors their kernels run on, their streams, and how long they live."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from graphs import eventually
from green import BLOCKS, BYTES, current, green_context, multiprocessors, part_of, parts_of, recorder, used
from helpers import collect, in_thread

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    Context,
    ContextOptions,
    CUDAError,
    Device,
    LaunchConfig,
    Stream,
    StreamOptions,
    ffi,
    launch,
    lib,
    live_objects,
)
from cuda_core_cffi._core.errors import check
from cuda_core_cffi.graph import GraphBuilder


@pytest.fixture
def green(device: Device) -> Iterator[Context]:
    """A green context with few multiprocessors."""
    with green_context(device) as context:
        yield context


@pytest.fixture
def record() -> Iterator[Any]:
    """The kernel that records where it runs."""
    with recorder() as kernel:
        yield kernel


def contexts() -> int:
    """Return how many green contexts there are."""
    collect()
    return live_objects()["context"]


# where kernels run


def test_a_kernel_runs_on_the_multiprocessors_of_its_context_only(device: Device, record: Any) -> None:
    part = part_of(device)
    with green_context(device, part) as context, context.create_stream() as stream:
        found = multiprocessors(stream, record)
        assert len(found) == part.sm_count < device.resources.sm.sm_count
        assert multiprocessors(stream, record) == found


def test_kernels_of_different_parts_share_no_multiprocessor(device: Device, record: Any) -> None:
    (one, two), rest = parts_of(device, 2)
    found = []
    for part in (one, two, rest):
        with green_context(device, part) as context, context.create_stream() as stream:
            found.append(multiprocessors(stream, record))
    assert [len(numbers) for numbers in found] == [one.sm_count, two.sm_count, rest.sm_count]
    assert len(set().union(*found)) == device.resources.sm.sm_count


def test_kernels_side_by_side_share_no_multiprocessor(device: Device, stream: Stream, record: Any) -> None:
    (one, two), _ = parts_of(device, 2)
    with (
        green_context(device, one) as first,
        green_context(device, two) as second,
        first.create_stream() as left,
        second.create_stream() as right,
        device.allocate(BYTES, stream) as left_table,
        device.allocate(BYTES, stream) as right_table,
    ):
        for table in (left_table, right_table):
            table.fill(0, stream=stream)
        stream.sync()
        for _ in range(3):
            launch(left, BLOCKS, record, left_table)
            launch(right, BLOCKS, record, right_table)
        lefts, rights = used(left_table, left), used(right_table, right)
    assert len(lefts) == one.sm_count
    assert len(rights) == two.sm_count
    assert not lefts & rights


def test_a_context_with_two_parts_has_both(device: Device, record: Any) -> None:
    parts, _ = parts_of(device, 2)
    with green_context(device, *parts) as both, both.create_stream() as stream:
        assert both.resources.sm.sm_count == sum(part.sm_count for part in parts)
        assert len(multiprocessors(stream, record)) == both.resources.sm.sm_count


def test_other_streams_still_have_the_whole_device(device: Device, stream: Stream, green: Context, record: Any) -> None:
    assert len(multiprocessors(stream, record)) == device.resources.sm.sm_count


def test_a_stream_keeps_its_multiprocessors_whatever_is_current(device: Device, green: Context, record: Any) -> None:
    with green.create_stream() as inside, device.create_stream() as outside:
        few, all_of_them = multiprocessors(inside, record), multiprocessors(outside, record)
        with current(device, green):
            assert multiprocessors(inside, record) == few
            assert multiprocessors(outside, record) == all_of_them


def test_the_default_stream_is_that_of_the_current_green_context(device: Device, green: Context, record: Any) -> None:
    with green.create_stream() as stream:
        few = multiprocessors(stream, record)
    with current(device, green):
        assert multiprocessors(LEGACY_DEFAULT_STREAM, record) == few
        assert LEGACY_DEFAULT_STREAM.resources.sm.sm_count == green.resources.sm.sm_count
    assert len(multiprocessors(LEGACY_DEFAULT_STREAM, record)) == device.resources.sm.sm_count


def test_all_blocks_of_a_cooperative_launch_must_fit_on_the_part(device: Device, green: Context, record: Any) -> None:
    most = record.occupancy.max_active_blocks_per_multiprocessor(256, 0)
    fits = LaunchConfig(grid=most * green.resources.sm.sm_count, block=256, is_cooperative=True)
    does_not = LaunchConfig(grid=most * green.resources.sm.sm_count + 1, block=256, is_cooperative=True)
    with green.create_stream() as stream:
        assert len(multiprocessors(stream, record, fits)) == green.resources.sm.sm_count
        with pytest.raises(CUDAError, match="COOPERATIVE_LAUNCH_TOO_LARGE"):
            multiprocessors(stream, record, does_not)


def build(builder: GraphBuilder, kernel: Any, table: Any) -> Any:
    """Capture a launch, and return the executable graph."""
    builder.begin_building()
    launch(builder, BLOCKS, kernel, table)
    return builder.end_building().complete()


def test_a_captured_kernel_runs_on_the_part_wherever_the_graph_is_launched(
    device: Device, stream: Stream, record: Any
) -> None:
    with device.allocate(BYTES, stream) as table:
        table.fill(0, stream=stream)
        stream.sync()
        before = contexts()
        context = green_context(device)
        few = context.resources.sm.sm_count
        inside = context.create_stream()
        builder = inside.create_graph_builder()
        with build(builder, record, table) as graph:
            for item in (builder, inside, context):
                item.close()
            assert contexts() == before + 1  # the graph keeps it
            graph.launch(stream)
            assert len(used(table, stream)) == few
        assert eventually(lambda: contexts() == before)  # the driver tells some time after the graph is gone


# making them


def test_a_green_context_says_so(device: Device, green: Context) -> None:
    assert green.is_green
    assert not device.context.is_green
    assert green != device.context
    assert repr(green) == f"<Context handle={green.handle:#x} device={device.device_id}>"


def test_it_does_not_become_current(device: Device) -> None:
    before = device.context
    with green_context(device) as context:
        assert device.context == before != context


def test_its_resources_are_those_it_was_made_of(device: Device) -> None:
    part = part_of(device)
    with green_context(device, part) as context:
        assert context.resources.sm.sm_count == part.sm_count
        assert repr(context.resources) == f"<DeviceResources of {context}>"


def test_a_mapping_and_any_iterable_will_do(device: Device) -> None:
    part = part_of(device)
    with device.create_context({"resources": iter((part,))}) as context:
        assert context.resources.sm.sm_count == part.sm_count


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (None, ValueError, "options must say which resources"),
        (False, ValueError, "options must say which resources"),
        (ContextOptions(None), ValueError, "resources must be a sequence of resources of the device, not None"),  # type: ignore[arg-type]
        (ContextOptions([]), ValueError, "resources must not be empty"),
        (ContextOptions([8]), TypeError, "resources must be SMResource or WorkqueueResource, not int"),  # type: ignore[list-item]
        (ContextOptions(8), TypeError, "resources must be a sequence of resources, not int"),  # type: ignore[arg-type]
        (8, TypeError, "options must be ContextOptions"),
    ],
)
def test_wrong_options_are_told(device: Device, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        device.create_context(options)


def test_an_empty_rest_makes_no_context(device: Device) -> None:
    whole = device.resources.sm
    _, rest = whole.split({"count": 0})
    rest._native.sm.count = 0
    with pytest.raises(ValueError, match="without multiprocessors"):
        green_context(device, rest)


# streams


def test_a_stream_belongs_to_the_green_context(device: Device, green: Context) -> None:
    with green.create_stream() as stream:
        assert stream.context == green
        assert stream.context.is_green
        assert stream.device is device
        assert stream.is_nonblocking
        assert stream.resources.sm.sm_count == green.resources.sm.sm_count


def test_a_stream_has_the_priority_asked_for(green: Context) -> None:
    with green.create_stream(StreamOptions(priority=-1)) as stream, green.create_stream({}) as usual:
        assert (stream.priority, usual.priority) == (-1, 0)
    with pytest.raises(ValueError, match="priority -100 is outside the device's range"):
        green.create_stream({"priority": -100})


def test_streams_of_a_green_context_are_nonblocking(device: Device, green: Context) -> None:
    for options in (StreamOptions(nonblocking=False), {"nonblocking": None}):
        with pytest.raises(ValueError, match="streams of a green context are nonblocking"):
            green.create_stream(options)
        with current(device, green), pytest.raises(ValueError, match="streams of a green context are nonblocking"):
            device.create_stream(options=options)


def test_only_green_contexts_make_streams(device: Device) -> None:
    with pytest.raises(RuntimeError, match=r"the context is not green: use Device\.create_stream"):
        device.context.create_stream()


def test_what_a_device_makes_lives_in_the_current_green_context(device: Device, green: Context) -> None:
    with (
        current(device, green),
        device.create_stream() as stream,
        device.create_event() as event,
        stream.record() as recorded,
    ):
        assert {item.context for item in (stream, event, recorded)} == {green}
        assert device.context == green


def test_events_order_work_of_green_and_other_contexts(device: Device, stream: Stream, green: Context) -> None:
    with green.create_stream() as inside, device.allocate(64, stream) as buffer:
        buffer.fill(1, stream=stream)
        inside.wait(stream)
        buffer.fill(2, stream=inside)
        event = inside.record(options={"timing_enabled": True})
        stream.wait(event)
        result = bytearray(64)
        buffer.copy_to(result, stream=stream)
        end = stream.record(options={"timing_enabled": True})
        end.sync()
        assert result == b"\2" * 64
        assert end - event >= 0
        event.close()
        end.close()


# how long they live


def test_it_is_destroyed_when_it_is_closed(device: Device) -> None:
    before = contexts()
    context = green_context(device)
    assert contexts() == before + 1
    context.close()
    context.close()
    assert contexts() == before
    assert context.is_closed


def test_it_is_destroyed_when_nobody_has_it_any_more(device: Device) -> None:
    before = contexts()
    green_context(device)
    assert contexts() == before


def test_a_closed_one_makes_nothing_and_tells_nothing(device: Device) -> None:
    context = green_context(device)
    resources = context.resources
    context.close()
    with pytest.raises(RuntimeError, match="this Context is closed"):
        context.create_stream()
    with pytest.raises(RuntimeError, match="this Context is closed"):
        _ = context.resources
    with pytest.raises(RuntimeError, match="this Context is closed"):
        _ = resources.sm
    with pytest.raises(RuntimeError, match="this Context is closed"):
        device.set_current(context)


def test_a_stream_works_after_its_context_was_closed(device: Device, record: Any) -> None:
    before = contexts()
    context = green_context(device)
    few = context.resources.sm.sm_count
    stream = context.create_stream()
    context.close()
    assert contexts() == before + 1
    assert len(multiprocessors(stream, record)) == few
    assert stream.context.is_green
    stream.close()
    assert contexts() == before


def test_an_event_outlives_stream_and_context(device: Device) -> None:
    before = contexts()
    context = green_context(device)
    stream = context.create_stream()
    event = stream.record()
    stream.close()
    context.close()
    event.sync()
    assert event.is_done
    assert event.context.is_green
    event.close()
    assert contexts() == before


def test_memory_and_kernels_outlive_the_context(device: Device, stream: Stream) -> None:
    before = contexts()
    context = green_context(device)
    with current(device, context), context.create_stream() as inside:
        buffer = device.allocate(BYTES, inside)
        buffer.fill(0, stream=inside)
        inside.sync()
        kernel_context = recorder()
        kernel = kernel_context.__enter__()
    context.close()
    launch(stream, BLOCKS, kernel, buffer)
    assert len(used(buffer, stream)) == device.resources.sm.sm_count
    buffer.close()
    stream.sync()
    kernel_context.__exit__(None, None, None)
    assert contexts() == before


def test_a_current_one_cannot_be_closed(device: Device) -> None:
    context = green_context(device)
    with current(device, context):
        for item in (context, device.context):
            with pytest.raises(RuntimeError, match="cannot be closed while it is current"):
                item.close()
            assert not item.is_closed
        device.create_stream().close()
    context.close()


def test_a_thread_keeps_the_one_that_it_has_current(device: Device) -> None:
    before = contexts()
    context = green_context(device)
    previous = device.set_current(context)
    handle = context.handle
    del context
    assert contexts() == before + 1
    assert device.context.handle == handle
    device.create_stream().close()
    device.set_current(previous)
    assert contexts() == before


def test_a_thread_that_ends_gives_up_the_one_that_it_has_current(device: Device) -> None:
    before = contexts()

    def work() -> None:
        device.set_current(green_context(device))

    in_thread(work)
    for _ in range(200):
        if contexts() == before:
            break
        threading.Event().wait(0.01)
    assert contexts() == before


def test_a_context_that_is_closed_in_another_thread_stays_where_it_is_current(device: Device) -> None:
    context = green_context(device)
    with current(device, context):
        in_thread(context.close)
        assert context.is_closed
        with device.create_stream() as stream:
            assert stream.context.is_green
            stream.sync()


def test_a_device_block_has_the_green_context_current_again_afterwards(device: Device) -> None:
    before = contexts()
    context = green_context(device)
    previous = device.set_current(context)
    handle = context.handle
    with device:
        assert not device.context.is_green
        context.close()  # which it is not here
        device.set_current()
    assert device.context.handle == handle
    device.create_stream().close()
    device.set_current(previous)
    assert contexts() == before


# those of other libraries


@pytest.fixture
def foreign(device: Device) -> Iterator[Any]:
    """A green context that this package has not made, as a CUcontext."""
    part = part_of(device)
    description, green = ffi.new("CUdevResourceDesc *"), ffi.new("CUgreenCtx *")
    context = ffi.new("CUcontext *")
    native = ffi.cast("CUdevResource *", part.handle)
    check(lib.cuDevResourceGenerateDesc(description, native, 1), "cuDevResourceGenerateDesc")
    flags = lib.CU_GREEN_CTX_DEFAULT_STREAM
    check(lib.cuGreenCtxCreate(green, description[0], device.device_id, flags), "cuGreenCtxCreate")
    check(lib.cuCtxFromGreenCtx(context, green[0]), "cuCtxFromGreenCtx")
    yield context[0]
    device.set_current()
    check(lib.cuGreenCtxDestroy(green[0]), "cuGreenCtxDestroy")


def test_a_green_context_of_another_library_is_used_where_it_is_current(
    device: Device, foreign: Any, record: Any
) -> None:
    check(lib.cuCtxSetCurrent(foreign), "cuCtxSetCurrent")
    context = device.context
    assert context.cdata == foreign
    assert context.is_green
    few = context.resources.sm.sm_count
    assert few < device.resources.sm.sm_count
    with context.create_stream() as one, device.create_stream() as two:
        assert multiprocessors(one, record) == multiprocessors(two, record)
        assert one.resources.sm.sm_count == few
    device.set_current()
    assert context.is_green
    context.close()


def test_making_one_that_the_driver_refuses_leaves_nothing(device: Device) -> None:
    before = contexts()
    part = part_of(device)
    part._native.type = 0
    with pytest.raises(CUDAError, match="cuDevResourceGenerateDesc failed"):
        green_context(device, part)
    assert contexts() == before
