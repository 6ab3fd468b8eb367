# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Launch attributes at work: what they need, what refuses them, and the events and buffers that they refer to."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from typing import Any

import pytest
from helpers import LIMIT
from launch_kernels import PTX, number_in, stores, write

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    AccessPolicyWindow,
    CUDAError,
    Device,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    ProgrammaticEvent,
    Stream,
    StreamOptions,
    UnavailableError,
    ffi,
    launch,
    lib,
)
from cuda_core_cffi.typing import AccessPropertyType

PINNED = LegacyPinnedMemoryResource()
EVENT_FIELDS = ["launch_completion_event", "programmatic_event"]
# For every device from compute capability 9.0, with a driver for CUDA 13.0.
HINTS: dict[str, Any] = {
    "priority": 0,
    "cluster_scheduling_policy": "load_balancing",
    "mem_sync_domain": "remote",
    "mem_sync_domain_map": (0, 0),
    "preferred_shared_memory_carveout": 25,
    "nvlink_util_centric_scheduling": True,
}


@pytest.fixture(scope="module")
def code():
    """Return the code of the kernels above."""
    device = Device(0)
    device.set_current()
    code = ObjectCode.from_ptx(PTX)
    code.get_kernel("store").close()  # loads it, before a test counts what is alive
    yield code
    code.close()


@pytest.fixture
def store(device, code):
    """Return a kernel that stores a number."""
    with code.get_kernel("store") as kernel:
        yield kernel


@pytest.fixture
def out(device):
    """Return memory of the host that kernels write to: zero at first."""
    with PINNED.allocate(4) as buffer:
        write(buffer, 0)
        yield buffer


def collect() -> None:
    """Collect garbage; PyPy runs finalizers some time after."""
    for _ in range(3):
        gc.collect()


def require_capability(device: Device, *least: int) -> None:
    """Skip on older devices."""
    if device.compute_capability < least:
        pytest.skip(f"needs compute capability {'.'.join(map(str, least))}")


# Accepted


@pytest.mark.parametrize("name", HINTS)
def test_a_kernel_runs_with_a_hint(device, stream, store, out, name):
    require_capability(device, 9, 0)
    assert stores(LaunchConfig(grid=2, block=1, **{name: HINTS[name]}), stream, store, out)


def test_a_kernel_runs_with_all_hints_and_the_first_attributes(device, stream, store, out):
    require_capability(device, 9, 0)
    config = LaunchConfig(2, 2, 1, 64, True, **HINTS)
    assert stores(config, stream, store, out)


def test_a_configuration_is_launched_many_times_and_in_many_streams(device, store, out):
    config = LaunchConfig(grid=1, block=1, priority=0)
    with contextlib.ExitStack() as stack:
        for turn in range(1, 4):
            stream = stack.enter_context(device.create_stream())
            assert all(stores(config, stream, store, out, 10 * turn + again) for again in range(3))


def test_a_default_stream_takes_a_launch_with_attributes(device, store, out):
    assert stores(LaunchConfig(grid=1, block=1, priority=0), LEGACY_DEFAULT_STREAM, store, out)


def test_a_stream_of_another_library_takes_a_launch_with_attributes(device, stream, store, out):
    with Stream.from_handle(stream.handle) as borrowed:
        assert stores(LaunchConfig(grid=1, block=1, priority=0), borrowed, store, out)


def test_every_priority_of_the_device_is_accepted(device, stream, store, out):
    with device.create_stream(options=StreamOptions(priority=-1)):  # the device has it
        for priority in (0, -1):
            assert stores(LaunchConfig(grid=1, block=1, priority=priority), stream, store, out, 1 - priority)


def test_preferred_clusters_are_taken_or_refused_by_name(device, stream, store, out):
    require_capability(device, 9, 0)
    config = LaunchConfig(grid=2, cluster=1, block=1, preferred_cluster=2)
    told = None
    try:
        assert stores(config, stream, store, out)
    except CUDAError as error:
        told = str(error)
    assert told is None or "preferred_cluster=(2, 1, 1)" in told


@pytest.mark.simulator_only("only the simulated driver tells which calls were made")
def test_the_device_is_asked_before_the_first_launch_only(device, stream, store, out):
    from cuda_core_cffi import simulator

    config = LaunchConfig(grid=1, block=1, priority=0)
    names = []
    for _ in range(2):
        with simulator.trace() as trace:
            launch(stream, config, store, out, 1)
        names.append(trace.names)
    assert "cuCtxGetStreamPriorityRange" in names[0]
    assert names[1] == ["cuLaunchKernelEx"]


def test_threads_share_a_configuration_with_attributes(device, store, out):
    config, errors, barrier = LaunchConfig(grid=1, block=1, priority=0), [], threading.Barrier(8)

    def work() -> None:
        try:
            device.set_current()
            with device.create_stream() as stream:
                barrier.wait()
                for _ in range(20):
                    launch(stream, config, store, out, 5)
                stream.sync()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (errors, number_in(out)) == ([], 5)


# Events


@pytest.mark.parametrize("name", EVENT_FIELDS)
def test_an_event_is_recorded_by_the_launch(device, stream, store, out, name):
    require_capability(device, 9, 0)
    with device.create_event() as event, device.create_stream() as other:
        launch(stream, LaunchConfig(grid=4, block=32, **{name: event}), store, out, 1)
        other.wait(event)
        event.sync()
        other.sync()
        stream.sync()
        assert event.is_done
        assert number_in(out) == 1


@pytest.mark.parametrize("at_start", [False, True])
def test_a_programmatic_event_can_be_waited_for(device, stream, store, out, at_start):
    require_capability(device, 9, 0)
    with device.create_event() as event:
        config = LaunchConfig(grid=1, block=1, programmatic_event=ProgrammaticEvent(event, at_start))
        launch(stream, config, store, out, 1)
        event.sync()
        assert event.is_done
    stream.sync()
    assert number_in(out) == 1


@pytest.mark.simulator_only("hardware may record the event only when the kernel is done")
@pytest.mark.parametrize(
    ("name", "options", "early"),
    [
        ("launch_completion_event", None, True),
        ("programmatic_event", {"trigger_at_block_start": True}, True),
        ("programmatic_event", {}, False),
    ],
)
def test_an_event_is_reached_when_the_blocks_have_started_or_ended(device, stream, code, out, name, options, early):
    with device.create_event() as event, device.create_event() as before, code.get_kernel("spin") as spin:
        value = event if options is None else {"event": event, **options}
        stream.record(before)
        launch(stream, LaunchConfig(grid=1, block=1, **{name: value}), spin, out)
        before.sync()
        limit = time.monotonic() + (LIMIT if early else 0.05)
        while not event.is_done and time.monotonic() < limit:
            time.sleep(0.001)
        reached = event.is_done
        write(out, 1)
        stream.sync()
        assert (reached, event.is_done) == (early, True)


def test_a_mapping_is_taken_for_the_options_of_a_programmatic_event(device):
    with device.create_event() as event:
        config = LaunchConfig(grid=1, block=1, programmatic_event={"event": event, "trigger_at_block_start": 1})
        assert config.programmatic_event == ProgrammaticEvent(event, True)
        assert LaunchConfig(1, None, 1, programmatic_event=event).programmatic_event == ProgrammaticEvent(event)


@pytest.mark.parametrize("name", EVENT_FIELDS)
@pytest.mark.parametrize(
    ("options", "why"), [({"timing_enabled": True}, "takes times"), ({"ipc_enabled": True}, "is for other processes")]
)
def test_an_event_of_another_kind_is_refused(device, name, options, why):
    with (
        device.create_event(EventOptions(**options)) as event,
        pytest.raises(ValueError, match=rf"{name}: a launch records only events of EventOptions\(\), .* {why}"),
    ):
        LaunchConfig(grid=1, block=1, **{name: event})


@pytest.mark.parametrize("name", EVENT_FIELDS)
def test_a_closed_event_is_refused_at_once(device, name):
    event = device.create_event()
    event.close()
    with pytest.raises(RuntimeError, match=f"{name}: this Event is closed"):
        LaunchConfig(grid=1, block=1, **{name: event})


@pytest.mark.parametrize("name", EVENT_FIELDS)
@pytest.mark.parametrize("launched", [False, True])
def test_an_event_closed_later_is_refused_at_the_launch(device, stream, store, out, name, launched):
    require_capability(device, 9, 0)
    event = device.create_event()
    config = LaunchConfig(grid=1, block=1, **{name: event})
    if launched:
        launch(stream, config, store, out, 1)
    event.close()
    with pytest.raises(RuntimeError, match=f"{name}: this Event is closed"):
        launch(stream, config, store, out, 2)
    stream.sync()
    assert number_in(out) == launched


@pytest.mark.parametrize("name", EVENT_FIELDS)
def test_an_event_closed_later_is_not_shown_to_the_driver_that_counts_clusters(device, stream, store, out, name):
    require_capability(device, 9, 0)
    event = device.create_event()
    config = LaunchConfig(grid=1, cluster=1, block=1, **{name: event})
    launch(stream, config, store, out, 1)
    stream.sync()
    event.close()
    with pytest.raises(RuntimeError, match=f"{name}: this Event is closed"):
        store.occupancy.max_active_clusters(config, stream=stream)


@pytest.mark.parametrize("name", EVENT_FIELDS)
def test_a_configuration_keeps_its_event(device, stream, store, out, name):
    require_capability(device, 9, 0)
    config = LaunchConfig(grid=1, block=1, **{name: device.create_event()})
    collect()
    assert stores(config, stream, store, out)


def test_what_an_old_native_structure_refers_to_stays_readable(device, stream, store, out):
    config = LaunchConfig(grid=1, block=1, launch_completion_event=device.create_event())
    launch(stream, config, store, out, 1)
    native = config._native
    config.launch_completion_event = None  # the event goes
    collect()
    assert lib.ccc_config_stale(native)
    assert stores(config, stream, store, out)


def test_events_may_be_exchanged_and_closed_while_other_threads_launch(device, store, out):
    config = LaunchConfig(grid=1, block=1, launch_completion_event=device.create_event())
    errors, running = [], threading.Event()

    def work() -> None:
        try:
            device.set_current()
            with device.create_stream() as stream:
                while not running.is_set():
                    with contextlib.suppress(RuntimeError):  # closed just now
                        launch(stream, config, store, out, 3)
                stream.sync()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(300):
        event = device.create_event()
        before, config.launch_completion_event = config.launch_completion_event, event
        if turn % 2:
            before.close()
        del before
    running.set()
    for thread in threads:
        thread.join()
    assert errors == []


def test_equal_events_make_equal_configurations(device):
    with device.create_event() as one, device.create_event() as other:
        first, second = (LaunchConfig(1, None, 1, launch_completion_event=one) for _ in range(2))
        assert first == second
        assert hash(first) == hash(second)
        assert first != LaunchConfig(1, None, 1, launch_completion_event=other)
        assert repr(one) in repr(first)


# Windows in the L2 cache


def test_a_window_has_defaults_and_is_kept_by_value(device, stream):
    with device.allocate(1024, stream) as buffer:
        window = AccessPolicyWindow(buffer)
        assert (window.hit_ratio, window.hit_property, window.miss_property) == (1.0, "persisting", "streaming")
        assert window == AccessPolicyWindow(buffer, 1, AccessPropertyType.PERSISTING, "streaming")
        assert hash(window) == hash(AccessPolicyWindow(buffer))
        assert window != AccessPolicyWindow(buffer[:512])
        assert LaunchConfig(1, None, 1, access_policy_window={"buffer": buffer}).access_policy_window == window


def test_the_driver_gets_the_window(device, stream):
    with device.allocate(1024, stream) as buffer:
        window = AccessPolicyWindow(buffer[256:512], 0.5, "persisting", "streaming")
        native = LaunchConfig(grid=1, block=1, access_policy_window=window)._native
        found = native.attributes[0].value.accessPolicyWindow
        assert native.driver.numAttrs == 1
        assert native.attributes[0].id == lib.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
        assert (address_of_window(native), found.num_bytes, found.hitRatio) == (buffer.handle + 256, 256, 0.5)
        assert (found.hitProp, found.missProp) == (lib.CU_ACCESS_PROPERTY_PERSISTING, lib.CU_ACCESS_PROPERTY_STREAMING)


def address_of_window(native: Any) -> int:
    """Return where the window of a native structure starts."""
    return int(ffi.cast("uintptr_t", native.attributes[0].value.accessPolicyWindow.base_ptr))


def test_a_kernel_runs_with_a_window(device, stream, store, out):
    require_capability(device, 8, 0)
    with device.allocate(1 << 16, stream) as buffer:
        config = LaunchConfig(grid=1, block=1, access_policy_window=AccessPolicyWindow(buffer, 0.75))
        assert stores(config, stream, store, out)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"hit_ratio": 1.5}, ValueError, "hit_ratio must be 0 to 1, not 1.5"),
        ({"hit_ratio": -0.1}, ValueError, "hit_ratio"),
        ({"hit_ratio": float("nan")}, ValueError, "hit_ratio"),
        ({"hit_ratio": "1"}, TypeError, "hit_ratio must be a float, not str"),
        ({"hit_ratio": True}, TypeError, "hit_ratio"),
        ({"hit_property": "always"}, ValueError, "hit_property must be one of 'normal', 'streaming', 'persisting'"),
        ({"miss_property": "never"}, ValueError, "miss_property must be one of"),
        ({"miss_property": "persisting"}, ValueError, "miss_property must be 'normal' or 'streaming'"),
    ],
)
def test_a_wrong_option_of_a_window_is_refused_by_name(device, stream, options, error, text):
    with device.allocate(16, stream) as buffer, pytest.raises(error, match=text):
        AccessPolicyWindow(buffer, **options)


@pytest.mark.parametrize("wrong", [None, 0, b"1234"])
def test_a_window_is_one_of_a_buffer(wrong):
    with pytest.raises(TypeError, match="buffer must be of type Buffer"):
        AccessPolicyWindow(wrong)


def test_a_closed_buffer_has_no_window(device, stream, store, out):
    require_capability(device, 8, 0)
    buffer = device.allocate(64, stream)
    config = LaunchConfig(grid=1, block=1, access_policy_window=AccessPolicyWindow(buffer))
    launch(stream, config, store, out, 1)
    buffer.close()
    with pytest.raises(RuntimeError, match="access_policy_window: this Buffer is closed"):
        launch(stream, config, store, out, 2)
    with pytest.raises(RuntimeError, match="buffer: this Buffer is closed"):
        AccessPolicyWindow(buffer)
    stream.sync()


def test_a_window_larger_than_the_device_has_is_refused(device, stream, store, out):
    require_capability(device, 8, 0)
    most = device.properties.max_access_policy_window_size
    with device.allocate(most + 1, stream) as buffer:
        config = LaunchConfig(grid=1, block=1, access_policy_window=AccessPolicyWindow(buffer))
        with pytest.raises(ValueError, match=f"a window of .* has {most} bytes at most, and this buffer {most + 1}"):
            launch(stream, config, store, out, 1)
        config.access_policy_window = AccessPolicyWindow(buffer[:most])
        assert stores(config, stream, store, out)


# Refused


@pytest.mark.parametrize("priority", [1, -100])
def test_a_priority_that_the_device_does_not_have_is_refused(device, stream, store, out, priority):
    config = LaunchConfig(grid=1, block=1, priority=priority)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"priority {priority} is outside the device's range"):
            launch(stream, config, store, out, 1)
    assert number_in(out) == 0


def test_a_domain_that_the_device_does_not_have_is_refused(device, stream, store, out):
    count = max(device.properties.mem_sync_domain_count, 1)
    config = LaunchConfig(grid=1, block=1, mem_sync_domain_map=(0, count))
    with pytest.raises(ValueError, match=f"mem_sync_domain_map: the domains of .* are 0 to {count - 1}, not {count}"):
        launch(stream, config, store, out, 1)
    assert number_in(out) == 0


def test_a_cluster_too_large_for_every_device_says_what_may_be_done(device, stream, store, out):
    require_capability(device, 9, 0)
    with pytest.raises(
        CUDAError, match=r"CUDA_ERROR_INVALID_CLUSTER_SIZE.*non_portable_cluster_size_allowed.*cluster=\(16, 1, 1\)"
    ):
        launch(stream, LaunchConfig(grid=1, cluster=16, block=1), store, out, 1)


def test_a_cooperative_launch_that_does_not_fit_says_what_fits(device, stream, store, out):
    config = LaunchConfig(grid=2**20, block=64, is_cooperative=True)
    with pytest.raises(
        CUDAError, match=r"COOPERATIVE_LAUNCH_TOO_LARGE.*must fit on the device at once.*is_cooperative=True"
    ):
        launch(stream, config, store, out, 1)


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize(
    ("status", "kind", "why"),
    [
        ("CUDA_ERROR_INVALID_VALUE", CUDAError, "the grid, the block, the shared memory, or one of"),
        ("CUDA_ERROR_NOT_SUPPORTED", UnavailableError, "this device with this driver lacks one of"),
    ],
)
def test_a_refusal_of_the_driver_names_the_fields(device, stream, store, out, status, kind, why):
    from cuda_core_cffi import simulator

    config = LaunchConfig(grid=1, block=1, priority=0, mem_sync_domain="remote")
    with (
        simulator.fail("cuLaunchKernelEx", status),
        pytest.raises(kind, match=rf"{status}.*{why}: priority=0, mem_sync_domain='remote'\n") as caught,
    ):
        launch(stream, config, store, out, 1)
    assert type(caught.value) is kind
    assert (caught.value.call, caught.value.name) == ("cuLaunchKernelEx", status)
    assert caught.value.__notes__ == [f"launch of {store!r} with {config!r}"]
