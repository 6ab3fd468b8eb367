# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Resources and green contexts of the simulated driver, called as a program calls the driver.

What is asserted of CUDA 13.0 is what driver 580 answered on an H100; of CUDA 13.1, what the header says.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
from sim_driver import (
    DISABLE_TIMING,
    LEGACY,
    NON_BLOCKING,
    PER_THREAD,
    Driver,
    byref,
    c_int,
    c_uint,
    c_uint64,
    c_void_p,
    run_alone,
)
from sim_green import (
    DEFAULT_STREAM,
    IGNORE_COSCHEDULING,
    LARGEST_CLUSTERS,
    SM,
    WORKQUEUE,
    Resource,
    as_context,
    description,
    get,
    make,
    split,
    whole,
)


@pytest.fixture
def green(cu: Driver) -> Iterator[c_void_p]:
    """A green context with 16 multiprocessors."""
    made = make(cu, split(cu, whole(cu), 1, 16)[0][0])
    yield made
    cu.cuGreenCtxDestroy(made)


@pytest.fixture
def current(cu: Driver, green: c_void_p) -> Iterator[c_void_p]:
    """The same, current in this thread."""
    before = cu.out(c_void_p, "cuCtxGetCurrent")
    context = as_context(cu, green)
    cu.cuCtxSetCurrent(context)
    yield context
    cu.cuCtxSetCurrent(before)


# resources


def test_a_device_of_the_ninth_generation_has_sets_of_eight(cu: Driver) -> None:
    found = whole(cu)
    assert (found.type, found.count, found.least, found.alignment) == (SM, 132, 8, 8)


@pytest.mark.parametrize(
    ("flags", "count", "size", "groups"),
    [
        (0, 0, 8, 16),
        (0, 8, 8, 16),
        (0, 9, 16, 8),
        (0, 17, 24, 5),
        (0, 66, 72, 1),
        (0, 128, 128, 1),
        (0, 132, 132, 1),
        (IGNORE_COSCHEDULING, 0, 2, 66),
        (IGNORE_COSCHEDULING, 9, 10, 13),
        (IGNORE_COSCHEDULING, 66, 66, 2),
        (LARGEST_CLUSTERS, 12, 16, 8),
    ],
)
def test_a_count_is_rounded_up_to_what_is_possible(cu: Driver, flags: int, count: int, size: int, groups: int) -> None:
    number, resource = c_uint(0), whole(cu)
    cu.cuDevSmResourceSplitByCount(None, byref(number), byref(resource), None, flags, count)
    assert number.value == groups
    parts, rest = split(cu, resource, 1, count, flags)
    assert [part.count for part in parts] == [size]
    assert rest.count == 132 - size
    assert rest.type == (SM if rest.count else 0)


def test_there_are_as_many_groups_as_there_is_room_for(cu: Driver) -> None:
    parts, rest = split(cu, whole(cu), 99, 64)
    assert ([part.count for part in parts], rest.count) == ([64, 64], 4)


def test_parts_can_be_split_only_as_resources_of_a_context(cu: Driver, green: c_void_p) -> None:
    (part,), rest = split(cu, whole(cu), 1, 16)
    for one in (part, rest):
        with pytest.raises(Exception, match="INVALID_RESOURCE_CONFIGURATION"):
            split(cu, one, 1, 8)
    found = get(cu, "cuGreenCtxGetDevResource", green)
    assert (found.count, found.least, found.alignment) == (16, 8, 8)
    (half,), rest = split(cu, found, 1, 8)
    assert (half.count, rest.count) == (8, 8)


def test_what_is_no_resource_is_refused(cu: Driver) -> None:
    resource, number = whole(cu), c_uint(1)
    part = Resource()
    arguments = (byref(part), byref(number), byref(resource), None)
    assert cu.status("cuDevSmResourceSplitByCount", *arguments, 0, 133) == "INVALID_RESOURCE_CONFIGURATION"
    assert cu.status("cuDevSmResourceSplitByCount", *arguments, 3, 8) == "INVALID_VALUE"
    assert cu.status("cuDeviceGetDevResource", 0, byref(part), WORKQUEUE) == "INVALID_RESOURCE_TYPE"
    assert cu.status("cuDeviceGetDevResource", 0, byref(part), 2) == "INVALID_RESOURCE_TYPE"
    assert cu.status("cuDeviceGetDevResource", 9, byref(part), SM) == "INVALID_DEVICE"
    assert cu.status("cuDevResourceGenerateDesc", byref(c_void_p()), byref(Resource()), 1) == "INVALID_RESOURCE_TYPE"
    assert cu.status("cuDevResourceGenerateDesc", byref(c_void_p()), None, 0) == "INVALID_VALUE"


def test_there_is_one_descriptor_for_the_same_resources(cu: Driver) -> None:
    first, second = split(cu, whole(cu), 2, 16)[0]
    one, other = description(cu, first).value, description(cu, second).value
    assert one != other
    for _ in range(100):
        made = make(cu, first)
        cu.cuGreenCtxDestroy(made)
        assert description(cu, first).value == one
        assert description(cu, second).value == other


def test_each_context_has_workqueues_of_its_own_where_they_are_configured() -> None:
    printed = run_alone(
        """
        from sim_green import DEFAULT_STREAM, WORKQUEUE, description, get
        cu.start()
        config = get(cu, "cuDeviceGetDevResource", 0, WORKQUEUE)
        assert len({description(cu, config).value for _ in range(3)}) == 1
        contexts = [cu.out(c_void_p, "cuGreenCtxCreate", description(cu, config), 0, DEFAULT_STREAM) for _ in range(3)]
        print(len({bytes(get(cu, "cuGreenCtxGetDevResource", green, 10000)) for green in contexts}))
        for green in contexts:
            cu.cuGreenCtxDestroy(green)
        """,
        CUDA_SIM_DRIVER_VERSION="13010",
    )
    assert printed.strip() == "3"


# contexts


def test_a_green_context_retains_the_primary_one(cu: Driver, sim: ModuleType) -> None:
    before = sim.live()
    made = make(cu, whole(cu))
    for kind in ("primary contexts retained", "green contexts"):
        assert sim.live()[kind].number == before[kind].number + 1
    cu.cuGreenCtxDestroy(made)
    for kind in ("primary contexts retained", "green contexts"):
        assert sim.live()[kind].number == before[kind].number


def test_a_context_needs_a_descriptor_and_in_cuda_13_0_a_default_stream(cu: Driver) -> None:
    made = c_void_p()
    assert cu.status("cuGreenCtxCreate", byref(made), description(cu, whole(cu)), 0, 0) == "INVALID_VALUE"
    assert cu.status("cuGreenCtxCreate", byref(made), c_void_p(64), 0, DEFAULT_STREAM) == "INVALID_VALUE"
    assert cu.status("cuGreenCtxCreate", byref(made), description(cu, whole(cu)), 7, DEFAULT_STREAM) == "INVALID_DEVICE"


def test_the_current_one_is_shown_and_has_a_number_of_its_own(cu: Driver, current: c_void_p) -> None:
    assert cu.out(c_void_p, "cuCtxGetCurrent").value == current.value
    assert cu.out(c_int, "cuCtxGetDevice").value == 0
    primary = cu.out(c_void_p, "cuDevicePrimaryCtxRetain", 0)
    numbers = []
    for context in (primary, current, None):
        numbers.append(c_uint64())
        cu.cuCtxGetId(context, byref(numbers[-1]))
    assert numbers[0].value != numbers[1].value == numbers[2].value
    assert cu.out(c_void_p, "cuCtxPopCurrent_v2").value == current.value
    cu.cuCtxPushCurrent_v2(current)
    cu.cuDevicePrimaryCtxRelease_v2(0)


def test_a_green_context_is_no_context_until_it_is_converted(cu: Driver, green: c_void_p) -> None:
    assert cu.status("cuCtxSetCurrent", green) == "INVALID_CONTEXT"
    assert cu.status("cuCtxDestroy_v2", as_context(cu, green)) == "INVALID_CONTEXT"
    assert cu.status("cuGreenCtxDestroy", as_context(cu, green)) == "INVALID_CONTEXT"


def test_memory_is_of_the_primary_context(cu: Driver, current: c_void_p) -> None:
    memory = cu.alloc(64)
    owner = cu.pointer_attribute(memory, 1, c_void_p)
    assert owner != current.value
    cu.cuMemFree_v2(memory)


def test_numbers_of_green_contexts_are_told(cu: Driver, green: c_void_p) -> None:
    number, other = c_uint64(), c_uint64()
    cu.cuGreenCtxGetId(green, byref(number))
    assert cu.status("cuGreenCtxGetId", None, byref(other)) == "INVALID_CONTEXT"
    before = cu.out(c_void_p, "cuCtxGetCurrent")
    cu.cuCtxSetCurrent(as_context(cu, green))
    cu.cuGreenCtxGetId(None, byref(other))
    cu.cuCtxSetCurrent(before)
    assert number.value == other.value


# streams


def test_streams_know_their_green_context(cu: Driver, green: c_void_p, current: c_void_p) -> None:
    explicit = c_void_p()
    cu.cuGreenCtxStreamCreate(byref(explicit), green, NON_BLOCKING, -99)
    implicit = cu.stream(0)
    for stream in (explicit, implicit, LEGACY, None):
        found, both, primary = c_void_p(), c_void_p(), c_void_p()
        cu.cuStreamGetGreenCtx(stream, byref(found))
        assert found.value == green.value
        cu.cuStreamGetCtx(stream, byref(found))
        assert found.value == current.value
        cu.cuStreamGetCtx_v2(stream, byref(primary), byref(both))
        assert (both.value, primary.value != current.value) == (green.value, True)
        flags = c_uint()
        cu.cuStreamGetFlags(stream, byref(flags))
        assert flags.value == NON_BLOCKING  # also of one that was to be blocking, as driver 580 has it
    priority = c_int()
    cu.cuStreamGetPriority(explicit, byref(priority))
    assert priority.value == -5
    assert cu.status("cuStreamQuery", PER_THREAD) == "INVALID_HANDLE"
    for stream in (explicit, implicit):
        cu.cuStreamDestroy_v2(stream)


def test_other_streams_have_none(cu: Driver, green: c_void_p) -> None:
    found = c_void_p(1)
    cu.cuStreamGetGreenCtx(None, byref(found))
    assert found.value is None
    assert cu.status("cuGreenCtxStreamCreate", byref(found), green, 0, 0) == "INVALID_VALUE"


def test_waiting_for_a_green_context_waits_for_its_streams_only(cu: Driver, green: c_void_p) -> None:
    inside, outside = c_void_p(), cu.stream(NON_BLOCKING)
    cu.cuGreenCtxStreamCreate(byref(inside), green, NON_BLOCKING, 0)
    gate = cu.block(outside)
    cu.cuCtxSynchronize_v2(as_context(cu, green))
    assert cu.status("cuStreamQuery", outside) == "NOT_READY"
    gate.open()
    gate = cu.block(inside)
    assert cu.status("cuStreamQuery", inside) == "NOT_READY"
    gate.open()
    cu.cuCtxSynchronize()
    assert cu.status("cuStreamQuery", inside) == "SUCCESS"
    for stream in (inside, outside):
        cu.cuStreamDestroy_v2(stream)


def test_an_event_of_the_context_is_reached_after_all_its_streams(cu: Driver, green: c_void_p) -> None:
    streams = [c_void_p(), c_void_p()]
    for stream in streams:
        cu.cuGreenCtxStreamCreate(byref(stream), green, NON_BLOCKING, 0)
    gates = [cu.block(stream) for stream in streams]
    event = cu.event(DISABLE_TIMING)
    cu.cuGreenCtxRecordEvent(green, event)
    gates[0].open()
    cu.cuStreamSynchronize(streams[0])
    assert cu.status("cuEventQuery", event) == "NOT_READY"
    gates[1].open()
    cu.cuEventSynchronize(event)
    cu.cuEventDestroy_v2(event)
    for stream in streams:
        cu.cuStreamDestroy_v2(stream)


def test_all_streams_of_the_context_wait_those_made_later_too(cu: Driver, green: c_void_p) -> None:
    before, after, other = c_void_p(), c_void_p(), cu.stream(NON_BLOCKING)
    event = cu.event(DISABLE_TIMING)
    cu.cuGreenCtxStreamCreate(byref(before), green, NON_BLOCKING, 0)
    gate = cu.block(other)
    cu.cuEventRecord(event, other)
    cu.cuGreenCtxWaitEvent(green, event)
    cu.cuGreenCtxStreamCreate(byref(after), green, NON_BLOCKING, 0)
    for stream in (before, after):
        cu.launch(stream, lambda: None)
        assert cu.status("cuStreamQuery", stream) == "NOT_READY"
    gate.open()
    for stream in (before, after):
        cu.cuStreamSynchronize(stream)
    cu.cuEventDestroy_v2(event)
    for stream in (before, after, other):
        cu.cuStreamDestroy_v2(stream)


def test_a_captured_stream_of_the_context_refuses_its_events(cu: Driver, green: c_void_p) -> None:
    stream, event, graph = c_void_p(), cu.event(DISABLE_TIMING), c_void_p()
    cu.cuGreenCtxStreamCreate(byref(stream), green, NON_BLOCKING, 0)
    cu.cuStreamBeginCapture_v2(stream, 2)
    assert cu.status("cuGreenCtxRecordEvent", green, event) == "STREAM_CAPTURE_UNSUPPORTED"
    assert cu.status("cuStreamEndCapture", stream, byref(graph)) == "STREAM_CAPTURE_INVALIDATED"
    cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(stream)


# the end


def test_what_is_left_of_a_destroyed_context_says_so() -> None:
    text = run_alone(
        """
        from sim_green import *
        cu.start()
        green = make(cu, split(cu, whole(cu), 1, 16)[0][0])
        context, stream, event = as_context(cu, green), c_void_p(), cu.event(DISABLE_TIMING)
        cu.cuGreenCtxStreamCreate(byref(stream), green, NON_BLOCKING, 0)
        cu.cuEventRecord(event, stream)
        before = cu.out(c_void_p, "cuCtxGetCurrent")
        cu.cuCtxSetCurrent(context)
        memory = cu.alloc(64)
        cu.cuGreenCtxDestroy(green)
        print(cu.out(c_void_p, "cuCtxGetCurrent").value == context.value)
        for call, *arguments in (
            ("cuStreamSynchronize", stream),
            ("cuStreamGetCtx", stream, byref(c_void_p())),
            ("cuEventRecord", event, stream),
            ("cuCtxSynchronize",),
            ("cuMemAlloc_v2", byref(c_uint64()), c_size_t(64)),
            ("cuGreenCtxDestroy", green),
            ("cuCtxFromGreenCtx", byref(c_void_p()), green),
        ):
            print(call, cu.status(call, *arguments))
        cu.cuEventSynchronize(event)
        cu.cuCtxSetCurrent(before)
        cu.cuMemFree_v2(memory)
        cu.cuEventDestroy_v2(event)
        print("cuStreamDestroy_v2", cu.status("cuStreamDestroy_v2", stream))  # which it does nevertheless
        """
    )
    same, *answers = text.splitlines()
    assert same == "True"
    assert [answer for answer in answers if not answer.endswith(" CONTEXT_IS_DESTROYED")] == []
    assert len(answers) == 8


def test_from_cuda_13_1_on_its_streams_are_detached() -> None:
    text = run_alone(
        """
        from sim_green import *
        cu.start()
        green = make(cu, whole(cu))
        stream = c_void_p()
        cu.cuGreenCtxStreamCreate(byref(stream), green, NON_BLOCKING, 0)
        cu.cuGreenCtxDestroy(green)
        print(cu.library.cuStreamQuery(stream), cu.library.cuStreamDestroy_v2(stream))
        """,
        CUDA_SIM_DRIVER_VERSION="13010",
    )
    assert text.strip() == "917 0"


def test_a_reset_of_the_device_ends_its_green_contexts() -> None:
    text = run_alone(
        """
        from sim_green import *
        cu.start()
        green = make(cu, whole(cu))
        cu.cuDevicePrimaryCtxReset_v2(0)
        print(cu.status("cuGreenCtxDestroy", green), sim.live()["green contexts"].number)
        """
    )
    assert text.strip() == "CONTEXT_IS_DESTROYED 0"


def test_a_stream_tells_its_resources_from_cuda_13_1_on() -> None:
    text = run_alone(
        """
        from sim_green import *
        cu.start()
        green = make(cu, split(cu, whole(cu), 1, 16)[0][0])
        stream = c_void_p()
        cu.cuGreenCtxStreamCreate(byref(stream), green, NON_BLOCKING, 0)
        print(get(cu, "cuStreamGetDevResource", stream).count, get(cu, "cuStreamGetDevResource", None).count)
        cu.cuStreamDestroy_v2(stream)
        cu.cuGreenCtxDestroy(green)
        """,
        CUDA_SIM_DRIVER_VERSION="13010",
    )
    assert text.strip() == "16 132"
