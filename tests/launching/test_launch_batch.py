# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of prepared launches: all of them run in order, and whatever is wrong with one is told with its number."""

from __future__ import annotations

import copy
import gc
import pickle
import threading

import pytest
from buffers import ForeignStream
from writing_kernels import MANY, ONE, PINNED, compiled_kernels, content, shared_memory

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    Device,
    LaunchBatch,
    LaunchConfig,
    PreparedLaunch,
    live_objects,
)

THREADS = 8


@pytest.fixture(scope="module")
def kernels():
    """Return kernels by name."""
    with compiled_kernels() as get:
        yield get


@pytest.fixture
def out(device):
    """Return 1 KiB of zeroed memory that host and device share."""
    with shared_memory() as buffer:
        yield buffer


@pytest.fixture
def give(kernels):
    """Return a prepared launch that writes a number to memory."""
    return PreparedLaunch(ONE, kernels("s64"), Buffer, int)


@pytest.fixture
def add(kernels):
    """Return a prepared launch that adds to a counter."""
    return PreparedLaunch(ONE, kernels("add"), Buffer, int)


def run(stream, batch: LaunchBatch) -> None:
    """Launch and wait."""
    batch.launch(stream)
    stream.sync()


def test_all_launches_of_a_batch_run_in_order(stream, kernels, out, give, add):
    place = PreparedLaunch(LaunchConfig(grid=2, block=2), kernels("place"), Buffer)
    nothing = PreparedLaunch(ONE, kernels("nothing"))
    many = PreparedLaunch(ONE, kernels("s8"), Buffer, int)
    first, second, third = out[:256], out[256:512], out[512:]
    with first, second, third:
        entries = [(give, first, 5), (nothing,), (add, first, 1), (add, first, 2), (place, second), (many, third, -3)]
        batch = LaunchBatch(entries)
        assert len(batch) == 6
        run(stream, batch)
        assert content(first, "q") == (8,)
        assert content(second, "4I") == (0, 1, 1000, 1001)
        assert content(third, "b") == (-3,)


@pytest.mark.parametrize(
    ("kernel", "types"), [("nothing", ()), ("s8", (Buffer, int)), ("many", (Buffer, *[int] * MANY))]
)
def test_every_launch_of_a_batch_is_aligned_for_the_largest_arguments(kernels, kernel, types):
    assert PreparedLaunch(ONE, kernels(kernel), *types)._plan.native.stride % 16 == 0


def test_a_batch_can_be_launched_again_and_in_other_streams(device, stream, out, add):
    batch = LaunchBatch((add, out, by) for by in range(100))
    run(stream, batch)
    with device.create_stream() as other:
        run(other, batch)
    batch.launch(ForeignStream(stream))
    stream.sync()
    assert content(out, "I") == (3 * sum(range(100)),)


def test_an_empty_batch_launches_nothing(stream):
    run(stream, LaunchBatch([]))
    assert repr(LaunchBatch([])) == "<LaunchBatch of 0 launches>"


def test_a_batch_keeps_its_kernels_and_buffers(stream, kernels, out, give):
    kernel = type(kernels("add")).from_handle(kernels("add").handle)
    batch = LaunchBatch([(PreparedLaunch(LaunchConfig(grid=1, block=1), kernel, Buffer, int), out[:8], 3)])
    del kernel
    for _ in range(3):
        gc.collect()
    run(stream, batch)
    assert content(out, "I") == (3,)
    assert repr(batch) == "<LaunchBatch of 1 launch>"


# What is wrong is told before anything is launched


@pytest.mark.parametrize("wrong", [None, 1, (), (1, 2), "launch", []])
def test_an_element_that_is_no_launch_is_a_type_error(stream, out, give, wrong):
    with pytest.raises(TypeError, match="launch 1 of the batch must be a tuple of a PreparedLaunch and values"):
        LaunchBatch([(give, out, 1), wrong])


def test_a_list_is_no_launch_because_it_may_change(out, give):
    with pytest.raises(TypeError, match="launch 0 of the batch must be a tuple"):
        LaunchBatch([[give, out, 1]])


def test_a_prepared_launch_without_its_tuple_is_a_type_error(give):
    with pytest.raises(TypeError, match=r"launch 0 of the batch must be a tuple .*, not PreparedLaunch"):
        LaunchBatch([give])


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_wrong_number_of_values_is_a_type_error(out, give, number):
    with pytest.raises(TypeError, match=f"launch 1 of the batch has {number} values for 2 argument types"):
        LaunchBatch([(give, out, 1), (give, *(out, 1, 2)[:number])])


@pytest.mark.parametrize(("value", "error"), [("x", TypeError), (2**64, OverflowError), (1.5, TypeError)])
def test_a_value_that_does_not_fit_is_refused_with_the_number_of_its_launch(stream, out, give, value, error):
    with pytest.raises(error, match=r"kernel argument 1 \(\w+\)") as caught:
        LaunchBatch([(give, out, 1), (give, out, 2), (give, out, value)])
    assert caught.value.__notes__ == ["in launch 2 of the batch"]
    stream.sync()
    assert content(out, "q") == (0,)


def test_a_buffer_that_is_closed_already_is_refused(out, give):
    buffer = PINNED.allocate(8)
    buffer.close()
    with pytest.raises(RuntimeError, match=r"kernel argument 0 \(\w+\): the Buffer is closed") as caught:
        LaunchBatch([(give, out, 1), (give, buffer, 1)])
    assert caught.value.__notes__ == ["in launch 1 of the batch"]


@pytest.mark.parametrize("how", ["prepared as an int", "used before", "never used", "behind an address"])
def test_every_buffer_is_kept_and_watched(device, stream, kernels, out, how):
    prepared = PreparedLaunch(ONE, kernels("address"), Buffer, int if how == "prepared as an int" else Buffer)
    target = out.handle if how == "behind an address" else out
    buffer = device.allocate(8, stream)
    if how == "used before":
        prepared.launch(stream, out, buffer)
    first = LaunchBatch([(prepared, target, buffer)])
    buffer.close()
    with pytest.raises(RuntimeError, match="launch 0 of the batch: a Buffer is closed"):
        first.launch(stream)
    before = live_objects()["buffer"]
    second = LaunchBatch([(prepared, target, device.allocate(8, stream))])
    for _ in range(3):
        gc.collect()
    assert live_objects()["buffer"] == before + 1
    run(stream, second)


def test_a_buffer_closed_since_stops_the_whole_batch(stream, out, give):
    buffer = PINNED.allocate(8)
    batch = LaunchBatch([(give, out, 1), (give, out, 2), (give, buffer, 1)])
    run(stream, batch)
    out.fill(0, stream=stream)
    buffer.close()
    with pytest.raises(RuntimeError, match="launch 2 of the batch: a Buffer is closed"):
        batch.launch(stream)
    stream.sync()
    assert content(out, "q") == (0,)


def test_a_kernel_closed_since_stops_the_whole_batch(stream, kernels, out, give):
    kernel = type(kernels("add")).from_handle(kernels("add").handle)
    batch = LaunchBatch([(give, out, 1), (PreparedLaunch(ONE, kernel, Buffer, int), out, 1)])
    kernel.close()
    with pytest.raises(RuntimeError, match="launch 1 of the batch: the Kernel is closed"):
        batch.launch(stream)
    stream.sync()
    assert content(out, "q") == (0,)


def test_a_closed_stream_is_refused(device, out, give):
    stream = device.create_stream()
    batch = LaunchBatch([(give, out, 1)])
    stream.close()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        batch.launch(stream)
    with pytest.raises(TypeError, match=r"LaunchBatch.launch needs a Stream, .*, not int"):
        batch.launch(0)


# What the driver refuses


def test_a_launch_that_the_driver_refuses_ends_the_batch_there(stream, kernels, out, give, add):
    config = LaunchConfig(grid=1, block=100000)
    refused = PreparedLaunch(config, kernels("add"), Buffer, int)
    batch = LaunchBatch([(give, out, 1), (add, out, 1), (refused, out, 10), (add, out, 100)])
    with pytest.raises(CUDAError, match="cuLaunchKernelEx failed: CUDA_ERROR_INVALID_VALUE") as caught:
        batch.launch(stream)
    assert caught.value.__notes__ == [
        f"launch of {kernels('add')!r} with {config!r}",
        "in launch 2 of the batch of 4: those before it are started",
    ]
    stream.sync()
    assert content(out, "q") == (2,)


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("nth", [1, 2, 100])
def test_whichever_launch_fails_is_named_and_those_before_it_ran(stream, out, add, nth):
    from cuda_core_cffi import simulator

    batch = LaunchBatch([(add, out, 1)] * 100)
    with simulator.fail("cuLaunchKernelEx", "CUDA_ERROR_UNKNOWN", nth), pytest.raises(CUDAError) as caught:
        batch.launch(stream)
    stream.sync()
    assert f"in launch {nth - 1} of the batch of 100: those before it are started" in caught.value.__notes__
    assert content(out, "I") == (nth - 1,)


def test_a_batch_is_not_copied(out, give):
    batch = LaunchBatch([(give, out, 1)])
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="LaunchBatch cannot be pickled or copied"):
            duplicate(batch)


# Threads


def test_one_batch_launched_from_eight_threads_at_once_runs_eight_times(device, out, add):
    batch, rounds = LaunchBatch([(add, out, by) for by in range(10)]), 20
    barrier, done = threading.Barrier(THREADS), []

    def work() -> None:
        device = Device(0)
        device.set_current()
        with device.create_stream() as stream:
            barrier.wait()
            for _ in range(rounds):
                batch.launch(stream)
            stream.sync()
        done.append(True)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == THREADS
    assert content(out, "I") == (THREADS * rounds * sum(range(10)),)


def test_other_threads_run_while_a_batch_is_launched(stream, out, add):
    batch, ticks, stop = LaunchBatch([(add, out, 1)] * 20000), [], threading.Event()

    def tick() -> None:
        while not stop.wait(0.0001):
            ticks.append(True)

    thread = threading.Thread(target=tick)
    thread.start()
    while not ticks:  # it runs
        pass
    before = len(ticks)
    batch.launch(stream)
    after = len(ticks)
    stop.set()
    thread.join()
    stream.sync()
    assert after > before
    assert content(out, "I") == (20000,)
