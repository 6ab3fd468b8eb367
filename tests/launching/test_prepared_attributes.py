# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Prepared launches and batches that ask for what a device may lack, or refer to events and buffers."""

from __future__ import annotations

import pytest
from buffers import ForeignStream
from launch_kernels import PTX, number_in, write

from cuda_core_cffi import (
    Buffer,
    Device,
    LaunchBatch,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    PreparedLaunch,
)

PLAIN = LaunchConfig(grid=1, block=1)
HINT = LaunchConfig(grid=1, block=1, priority=0)
TOO_MUCH = LaunchConfig(grid=1, block=1, priority=-100)


@pytest.fixture(scope="module")
def code():
    """Return the code of the kernels."""
    device = Device(0)
    device.set_current()
    code = ObjectCode.from_ptx(PTX)
    code.get_kernel("store").close()  # loads it, before a test counts what is alive
    yield code
    code.close()


@pytest.fixture
def prepare(code):
    """Return a function from a configuration to a prepared launch that stores a number."""
    with code.get_kernel("store") as store:
        yield lambda config: PreparedLaunch(config, store, Buffer, int)


@pytest.fixture
def out(device):
    """Return zeroed memory that host and device share."""
    with LegacyPinnedMemoryResource().allocate(64) as buffer:
        write(buffer, 0)
        yield buffer


def test_a_prepared_launch_with_attributes_runs_in_any_stream(device, stream, prepare, out):
    prepared = prepare(LaunchConfig(grid=1, block=1, priority=0, mem_sync_domain_map=(0, 0)))
    with device.create_stream() as other:
        for number, queue in enumerate([stream, other, device.default_stream, ForeignStream(stream), stream], 1):
            prepared.launch(queue, out, number)
            device.sync()
            assert number_in(out) == number


def test_a_batch_with_attributes_runs_in_any_stream(device, stream, prepare, out):
    batch = LaunchBatch([(prepare(PLAIN), out, 1), (prepare(HINT), out, 2), (prepare(HINT), out, 3)])
    for queue in (stream, device.default_stream, ForeignStream(stream)):
        write(out, 0)
        batch.launch(queue)
        device.sync()
        assert number_in(out) == 3


@pytest.mark.simulator_only("only the simulated driver tells which calls were made")
def test_the_device_is_asked_before_the_first_launch_only(stream, prepare, out):
    from cuda_core_cffi import simulator

    prepared = prepare(LaunchConfig(grid=1, block=1, priority=0))
    batch = LaunchBatch([(prepare(PLAIN), out, 1), (prepare(LaunchConfig(grid=1, block=1, priority=0)), out, 2)])
    for launch in (lambda: prepared.launch(stream, out, 1), lambda: batch.launch(stream)):
        with simulator.trace() as trace:
            launch()
        assert "cuCtxGetStreamPriorityRange" in trace.names
    with simulator.trace() as trace:
        prepared.launch(stream, out, 1)
        LaunchBatch([(prepared, out, 1), (prepared, out, 2)]).launch(stream)
    assert trace.names == ["cuLaunchKernelEx"] * 3


def test_what_the_device_does_not_have_is_refused_before_anything_is_launched(stream, prepare, out):
    refused = prepare(TOO_MUCH)
    for _ in range(2):
        with pytest.raises(ValueError, match="priority -100 is outside the device's range"):
            refused.launch(stream, out, 1)
    batch = LaunchBatch([(prepare(PLAIN), out, 1), (prepare(HINT), out, 2), (refused, out, 3)])
    for _ in range(2):
        with pytest.raises(ValueError, match="priority -100 is outside the device's range") as caught:
            batch.launch(stream)
        assert caught.value.__notes__ == ["in launch 2 of the batch"]
    stream.sync()
    assert number_in(out) == 0


def test_a_prepared_launch_keeps_the_events_of_its_configuration(device, stream, prepare, out):
    config = LaunchConfig(grid=1, block=1, launch_completion_event=device.create_event())
    prepared, event = prepare(config), config.launch_completion_event
    config.launch_completion_event = None
    prepared.launch(stream, out, 5)
    event.sync()
    stream.sync()
    assert number_in(out) == 5


def test_a_closed_event_is_refused_before_anything_is_launched(device, stream, prepare, out):
    event = device.create_event()
    prepared = prepare(LaunchConfig(grid=1, block=1, launch_completion_event=event))
    batch = LaunchBatch([(prepare(PLAIN), out, 1), (prepared, out, 2)])
    batch.launch(stream)
    stream.sync()
    write(out, 0)
    event.close()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="launch_completion_event"):
            prepared.launch(stream, out, 3)
        with pytest.raises(RuntimeError, match="launch_completion_event") as caught:
            batch.launch(stream)
        assert caught.value.__notes__ == ["in launch 1 of the batch"]
    stream.sync()
    assert number_in(out) == 0
