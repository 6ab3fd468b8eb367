# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Moving managed memory and discarding what is in it: one buffer, and many at a time."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from buffers import PINNED, ManagedResource
from helpers import Gate, output_of

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    CUDAError,
    Device,
    Host,
    ManagedBuffer,
    ManagedMemoryResource,
    Stream,
    ffi,
    lib,
    simulator,
)
from cuda_core_cffi.utils import discard_batch, discard_prefetch_batch, prefetch_batch

SIZE = 2**16
PLACES = {"device": lambda: Device(0), "host": Host, "node": lambda: Host(0), "nearest node": Host.numa_current}
ORDINALS = {"device": 0, "host": -1, "node": -1, "nearest node": -1}
NOWHERE = -2


@pytest.fixture(params=["pool", "cuMemAllocManaged"])
def managed(device, stream, request):
    """Return three buffers of managed memory, with content."""
    with contextlib.ExitStack() as stack:
        mr = ManagedMemoryResource({}) if request.param == "pool" else ManagedResource()
        if request.param == "pool":
            stack.callback(mr.close)
        buffers = [stack.enter_context(mr.allocate(SIZE, stream)) for _ in range(3)]
        stream.sync()
        for number, buffer in enumerate(buffers):
            np.asarray(buffer)[:] = number
        yield buffers


def went_to(buffer: Buffer) -> int:
    """Return where a buffer was prefetched to last: a device, -1 for the host, -2 for nowhere."""
    place, attribute = ffi.new("int *"), lib.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION
    assert lib.cuMemRangeGetAttribute(place, 4, attribute, buffer.handle, buffer.size) == 0
    return int(place[0])


def is_intact(buffers: list[Buffer]) -> bool:
    """Tell whether the buffers still hold what the fixture put there."""
    return all(set(np.asarray(buffer).tolist()) == {number} for number, buffer in enumerate(buffers))


# One buffer


@pytest.mark.parametrize("place", PLACES)
def test_a_buffer_is_prefetched(managed, stream, place):
    assert went_to(managed[0]) == NOWHERE
    managed[0].prefetch(PLACES[place](), stream=stream)
    stream.sync()
    assert went_to(managed[0]) == ORDINALS[place]
    assert is_intact(managed)


@pytest.mark.parametrize("queue", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM])
def test_a_buffer_is_prefetched_in_a_default_stream(managed, queue):
    managed[0].prefetch(Device(0), stream=queue)
    queue.sync()
    assert went_to(managed[0]) == 0


def test_a_stream_of_another_library_will_do(managed, stream):
    class Foreign:
        def __cuda_stream__(self):
            return (0, stream.handle)

    managed[0].prefetch(Host(), stream=Foreign())
    prefetch_batch(Foreign(), managed[1:], Host())
    assert [went_to(buffer) for buffer in managed] == [-1, -1, -1]


def test_a_discarded_buffer_holds_what_is_written_next(managed, stream):
    managed[0].discard(stream=stream)
    managed[0].fill(9, stream=stream)
    managed[1].discard_prefetch(Device(0), stream=stream)
    managed[1].fill(8, stream=stream)
    stream.sync()
    assert went_to(managed[1]) == 0
    assert [set(np.asarray(buffer).tolist()) for buffer in managed] == [{9}, {8}, {2}]


def test_empty_buffers_are_moved_at_once(stream):
    pool = ManagedMemoryResource({})
    with pool.allocate(0, stream) as one, pool.allocate(0, stream) as other:
        one.prefetch(Host(), stream=stream)
        one.discard(stream=stream)
        one.discard_prefetch(Host(), stream=stream)
        prefetch_batch(stream, [one, other], Host())
        discard_batch(stream, [one, other])
    pool.close()


# Batches


@pytest.mark.parametrize("move", [prefetch_batch, discard_prefetch_batch])
@pytest.mark.parametrize(
    ("places", "ordinals"),
    [
        (lambda: Device(0), [0, 0, 0]),
        (Host, [-1, -1, -1]),
        (lambda: [Device(0), Device(0), Host()], [0, 0, -1]),
        (lambda: (Host(), Device(0), Host()), [-1, 0, -1]),
        (lambda: [Host(0), Host.numa_current(), Device(0)], [-1, -1, 0]),
    ],
)
def test_one_place_is_for_all_and_otherwise_each_has_its_own(managed, stream, move, places, ordinals):
    move(stream, managed, places())
    stream.sync()
    assert [went_to(buffer) for buffer in managed] == ordinals
    if move is prefetch_batch:
        assert is_intact(managed)


def test_a_batch_may_be_a_tuple_of_one(managed, stream):
    prefetch_batch(stream, (managed[0],), [Device(0)])
    assert [went_to(buffer) for buffer in managed] == [0, NOWHERE, NOWHERE]


def test_a_batch_skips_empty_buffers(managed, stream):
    empty = Buffer.from_handle(managed[0].handle, 0)
    prefetch_batch(stream, [empty, managed[0], empty, managed[1]], [Host(), Device(0), Host(), Host()])
    assert [went_to(buffer) for buffer in managed] == [0, -1, NOWHERE]
    empty.close()


def test_slices_are_managed_too(managed, stream):
    with managed[0][: SIZE // 2] as low, managed[0][SIZE // 2 :][: SIZE // 4] as high:
        assert isinstance(low, ManagedBuffer)
        assert isinstance(high, ManagedBuffer)
        low.prefetch(Device(0), stream=stream)
        prefetch_batch(stream, [high], Host())
        stream.sync()
        assert (went_to(low), went_to(high), went_to(managed[0])) == (0, -1, NOWHERE)
        assert (low.read_mostly, low.preferred_location, low.accessed_by) == (False, None, set())
        high.discard(stream=stream)
    with pytest.raises(RuntimeError, match="this ManagedBuffer is closed"):
        low.prefetch(Host(), stream=stream)


def test_a_batch_takes_plain_buffers_of_managed_memory(managed, stream):
    plain = [Buffer.from_handle(buffer.handle, SIZE, owner=buffer) for buffer in managed]
    prefetch_batch(stream, plain, Device(0))
    discard_batch(stream, plain)
    stream.sync()
    assert [went_to(buffer) for buffer in managed] == [0, 0, 0]
    for buffer in plain:
        buffer.close()


def test_a_batch_is_in_stream_order(managed, device):
    with device.create_stream() as stream, Gate(stream) as gate:
        discard_batch(stream, managed)
        discard_prefetch_batch(stream, managed, Device(0))
        prefetch_batch(stream, managed, Host())
        assert is_intact(managed)
        for number, buffer in enumerate(managed):
            buffer.fill(10 + number, stream=stream)
        gate.open()
        stream.sync()
        assert [set(np.asarray(buffer).tolist()) for buffer in managed] == [{10}, {11}, {12}]


@pytest.mark.simulator_only("only the simulated driver can be watched")
def test_a_batch_is_one_call(managed, stream):
    calls = [
        (lambda: prefetch_batch(stream, managed, Device(0)), "cuMemPrefetchBatchAsync"),
        (lambda: discard_batch(stream, managed), "cuMemDiscardBatchAsync"),
        (lambda: discard_prefetch_batch(stream, managed, Host()), "cuMemDiscardAndPrefetchBatchAsync"),
    ]
    for call, name in calls:
        with simulator.trace() as trace:
            call()
        assert trace.names == [name]


def test_the_legacy_default_stream_prefetches(managed, device):
    prefetch_batch(LEGACY_DEFAULT_STREAM, managed, [Device(0), Host(), Device(0)])
    LEGACY_DEFAULT_STREAM.sync()
    assert [went_to(buffer) for buffer in managed] == [0, -1, 0]
    assert is_intact(managed)


@pytest.mark.parametrize("queue", [LEGACY_DEFAULT_STREAM, Stream.from_handle(1), Stream.from_handle(0)])
def test_the_legacy_default_stream_discards_nothing(managed, device, queue):
    if queue.handle == 0 and lib.ccc_driver_per_thread():
        pytest.skip("here, 0 is the per-thread default stream")
    for discard in (
        lambda: discard_batch(queue, managed),
        lambda: discard_prefetch_batch(queue, managed, Device(0)),
        lambda: managed[0].discard(stream=queue),
        lambda: managed[0].discard_prefetch(Device(0), stream=queue),
    ):
        with pytest.raises(ValueError, match="legacy default stream"):
            discard()
    assert is_intact(managed)


def test_the_per_thread_default_stream_discards(managed, device):
    discard_batch(PER_THREAD_DEFAULT_STREAM, managed)
    managed[0].fill(5, stream=PER_THREAD_DEFAULT_STREAM)
    PER_THREAD_DEFAULT_STREAM.sync()
    assert set(np.asarray(managed[0]).tolist()) == {5}


# Refusals: nothing is moved

WRONG_PLACES = [(None, "NoneType"), (0, "int"), ("host", "str"), ([Host(), None, Host()], "NoneType")]
EVERY = {
    "prefetch_batch": lambda stream, buffers: prefetch_batch(stream, buffers, Device(0)),
    "discard_batch": discard_batch,
    "discard_prefetch_batch": lambda stream, buffers: discard_prefetch_batch(stream, buffers, Device(0)),
}


@pytest.mark.parametrize("name", EVERY)
def test_what_is_no_sequence_of_managed_buffers_is_refused(managed, device, stream, name):
    with device.allocate(SIZE, stream) as elsewhere, PINNED.allocate(SIZE) as pinned:
        for wrong, error, text in [
            (managed[0], TypeError, "for one buffer, ManagedBuffer has a method"),
            (iter(managed), TypeError, r"sequence of buffers, not \w*iterator"),
            (None, TypeError, "not NoneType"), ([managed[0], 1], TypeError, "not int"), ((), ValueError, "one"),
            ([managed[0], elsewhere], ValueError, "managed memory, which <Buffer"),
            ([pinned, managed[0]], ValueError, "managed memory"),
        ]:  # fmt: skip
            with pytest.raises(error, match=f"{name} needs.*{text}"):
                EVERY[name](stream, wrong)
    assert [went_to(buffer) for buffer in managed] == [NOWHERE] * 3
    assert is_intact(managed)


@pytest.mark.parametrize("name", EVERY)
def test_a_batch_needs_a_stream(managed, name):
    for wrong in (None, 5):
        with pytest.raises(TypeError, match=f"{name} needs a Stream"):
            EVERY[name](wrong, managed)


@pytest.mark.parametrize("name", EVERY)
def test_closed_things_move_nothing(managed, device, stream, name):
    closed = device.create_stream()
    closed.close()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        EVERY[name](closed, managed)
    managed[2].close()
    with pytest.raises(RuntimeError, match="ManagedBuffer is closed"):
        EVERY[name](stream, managed)
    assert [went_to(buffer) for buffer in managed[:2]] == [NOWHERE] * 2
    assert is_intact(managed[:2])


@pytest.mark.parametrize("move", [prefetch_batch, discard_prefetch_batch])
@pytest.mark.parametrize(("places", "text"), WRONG_PLACES)
def test_what_is_no_place_is_refused(managed, stream, move, places, text):
    with pytest.raises(TypeError, match=f"{move.__name__} needs a Device or a Host, not {text}"):
        move(stream, managed, places)
    with pytest.raises(TypeError, match="needs a Device or a Host, not"):
        managed[0].prefetch(places, stream=stream)
    with pytest.raises(TypeError, match="needs a Device or a Host, not"):
        managed[0].discard_prefetch(places, stream=stream)
    assert [went_to(buffer) for buffer in managed] == [NOWHERE] * 3
    assert is_intact(managed)


@pytest.mark.parametrize("move", [prefetch_batch, discard_prefetch_batch])
@pytest.mark.parametrize("count", [0, 2, 4])
def test_there_are_as_many_places_as_buffers(managed, stream, move, count):
    with pytest.raises(ValueError, match=f"{count} locations do not go with 3 buffers"):
        move(stream, managed, [Host()] * count)
    assert [went_to(buffer) for buffer in managed] == [NOWHERE] * 3


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("name", EVERY)
def test_a_batch_that_fails_moves_nothing(managed, stream, name):
    with simulator.trace() as trace:
        EVERY[name](stream, managed)
    stream.sync()
    for number, buffer in enumerate(managed):
        np.asarray(buffer)[:] = number
    with (
        simulator.fail(trace.names[-1], "CUDA_ERROR_UNKNOWN"),
        pytest.raises(CUDAError, match=f"{trace.names[-1]} failed: CUDA_ERROR_UNKNOWN"),
    ):
        EVERY[name](stream, managed)
    stream.sync()
    assert is_intact(managed)
    EVERY[name](stream, managed)


# Older drivers

OLDER_DRIVER = """
    from cuda_core_cffi import *
    from cuda_core_cffi import simulator
    from cuda_core_cffi.utils import *
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAllocManaged(pointer, 8192, 1) == 0
    buffers = [ManagedBuffer.from_handle(pointer[0] + offset, 4096) for offset in (0, 4096)]
    for places in (device, [Host(), device], [device, Host(0)]):
        try:
            with simulator.trace() as trace:
                prefetch_batch(stream, buffers, places)
            print(*[name for name in trace.names if "Prefetch" in name])
        except (TypeError, UnavailableError) as error:
            print(type(error).__name__, error)
    for discard in (
        lambda: discard_batch(stream, buffers),
        lambda: buffers[0].discard(stream=stream),
        lambda: buffers[0].discard_prefetch(Host(), stream=stream),
    ):
        try:
            discard()
        except UnavailableError as error:
            print(error)
    stream.sync()
    lib.cuMemFree(pointer[0])
"""
UNAVAILABLE = "{} needs a driver for CUDA 13.0; the installed one is for 12.9: update the NVIDIA driver"


@pytest.mark.simulator_only("the simulated driver can be made older")
def test_drivers_for_cuda_12_move_buffers_one_by_one_and_discard_nothing():
    lines = output_of(OLDER_DRIVER, CUDA_SIM_DRIVER_VERSION="12090").splitlines()
    assert lines[:2] == ["cuMemPrefetchAsync_v2 cuMemPrefetchAsync_v2"] * 2
    assert lines[2].startswith("TypeError prefetch_batch: Host(numa_id=0) needs a driver for CUDA 13.0")
    discard, both = map(UNAVAILABLE.format, ("cuMemDiscardBatchAsync", "cuMemDiscardAndPrefetchBatchAsync"))
    assert lines[3:] == [discard, discard, both]


@pytest.mark.simulator_only("the simulated driver can be made older")
def test_the_first_drivers_for_cuda_12_move_nothing():
    first = output_of(OLDER_DRIVER, CUDA_SIM_DRIVER_VERSION="12010").splitlines()[0]
    assert first.startswith("UnavailableError cuMemPrefetchAsync needs a driver for CUDA 12.2")
