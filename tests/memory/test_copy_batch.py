# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Many copies at once."""

from __future__ import annotations

import contextlib
import random

import pytest
from buffers import SIZE, ForeignStream, content, fresh, legacy_streams
from helpers import output_of

from cuda_core_cffi import PER_THREAD_DEFAULT_STREAM, Buffer, CUDAError, live_objects, simulator
from cuda_core_cffi.utils import CopyOptions, copy_batch

COUNT = 5


@pytest.fixture
def pairs(device, stream):
    """Return sources, each filled with its number, and destinations full of 255."""
    with contextlib.ExitStack() as stack:
        kinds = ["device", "pinned"] * COUNT
        srcs = [stack.enter_context(fresh(kind, device, stream, SIZE)) for kind in kinds[:COUNT]]
        dsts = [stack.enter_context(fresh(kind, device, stream, SIZE)) for kind in kinds[1 : COUNT + 1]]
        for index, (src, dst) in enumerate(zip(srcs, dsts, strict=True)):
            src.fill(index, stream=stream)
            dst.fill(255, stream=stream)
        yield srcs, dsts
        stream.sync()


def first_bytes(buffers: list[Buffer], stream) -> list[int]:
    """Return what each buffer is filled with."""
    found = []
    for buffer in buffers:
        data = content(buffer, stream)
        assert data == data[:1] * len(data)
        found.append(data[0])
    return found


UNTOUCHED = [255] * COUNT


@pytest.mark.parametrize(
    "options",
    [
        None,
        CopyOptions(),
        {"overlap_mode": "prefer_overlap_with_compute"},
        [CopyOptions()] * COUNT,
        [CopyOptions("any"), {}, CopyOptions(), CopyOptions("any"), {"overlap_mode": "default"}],
        tuple(CopyOptions("any") for _ in range(COUNT)),
    ],
)
@pytest.mark.parametrize("kind", [list, tuple])
def test_each_source_is_copied_to_its_destination(stream, pairs, kind, options):
    srcs, dsts = pairs
    assert copy_batch(stream, kind(srcs), kind(dsts), options=options) is None
    assert first_bytes(dsts, stream) == list(range(COUNT))
    assert first_bytes(srcs, stream) == list(range(COUNT))


@pytest.mark.simulator_only("only there driver calls are traced")
def test_a_batch_is_one_call_of_the_driver(stream, pairs):
    with simulator.trace() as trace:
        copy_batch(stream, *pairs)
    assert trace.names == ["cuStreamIsCapturing", "cuCtxGetCurrent", "cuMemcpyBatchAsync_v2"]


def test_a_batch_of_nothing_does_nothing(stream):
    copy_batch(stream, [], [])
    copy_batch(stream, [], (), options=[])


def test_empty_buffers_are_passed_over(device, stream, pairs):
    srcs, dsts = pairs
    with device.allocate(0, stream) as empty, device.allocate(0, stream) as other:
        options = [CopyOptions(order) for order in ("any", "stream", "any", "any", "stream", "stream", "any")]
        copy_batch(stream, [empty, *srcs, empty], [other, *dsts, other], options=options)
        copy_batch(stream, [empty], [empty])
    assert first_bytes(dsts, stream) == list(range(COUNT))


def test_one_source_may_be_read_many_times(stream, pairs):
    srcs, dsts = pairs
    copy_batch(stream, [srcs[3]] * COUNT, dsts)
    assert first_bytes(dsts, stream) == [3] * COUNT


def test_a_foreign_stream_and_the_per_thread_one_take_batches(stream, pairs):
    srcs, dsts = pairs
    copy_batch(ForeignStream(stream), srcs[:2], dsts[:2])
    stream.sync()
    copy_batch(PER_THREAD_DEFAULT_STREAM, srcs[2:], dsts[2:])
    PER_THREAD_DEFAULT_STREAM.sync()
    assert first_bytes(dsts, stream) == list(range(COUNT))


def test_the_legacy_default_stream_takes_no_batches(stream, pairs):
    stream.sync()
    for legacy in legacy_streams():
        with pytest.raises(TypeError, match=r"copy_batch: the legacy default stream takes no .*batches"):
            copy_batch(legacy, *pairs)
    assert first_bytes(pairs[1], stream) == UNTOUCHED


@pytest.mark.parametrize("wrong", [None, 1, "stream"])
def test_a_batch_needs_a_stream(pairs, wrong):
    with pytest.raises(TypeError, match="copy_batch needs a Stream"):
        copy_batch(wrong, *pairs)


@pytest.mark.parametrize("side", ["srcs", "dsts"])
def test_operands_are_sequences_of_buffers(stream, pairs, side):
    sides = dict(zip(("srcs", "dsts"), pairs, strict=True))
    for wrong in (sides[side][0], None, "buffers", iter(sides[side]), set(sides[side]), 5):
        with pytest.raises(TypeError, match=f"{side} must be a sequence of buffers, not {type(wrong).__name__}"):
            copy_batch(stream, **{**sides, side: wrong})
    for wrong in (None, 5, b"x" * SIZE):
        with pytest.raises(TypeError, match=rf"{side}\[2\] must be a Buffer, not {type(wrong).__name__}"):
            copy_batch(stream, **{**sides, side: [*sides[side][:2], wrong, *sides[side][3:]]})
    assert first_bytes(pairs[1], stream) == UNTOUCHED


def test_as_many_destinations_as_sources_are_needed(stream, pairs):
    srcs, dsts = pairs
    with pytest.raises(ValueError, match="5 sources do not pair with 4 destinations"):
        copy_batch(stream, srcs, dsts[:-1])
    with pytest.raises(ValueError, match="0 sources do not pair with 5 destinations"):
        copy_batch(stream, [], dsts)
    assert first_bytes(dsts, stream) == UNTOUCHED


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1])
def test_sizes_must_be_equal_pair_by_pair(device, stream, pairs, size):
    srcs, dsts = pairs
    match = rf"{SIZE} bytes of srcs\[4\] do not fit {size}"
    with device.allocate(size, stream) as other, pytest.raises(ValueError, match=match):
        copy_batch(stream, srcs, [*dsts[:-1], other])
    assert first_bytes(dsts, stream) == UNTOUCHED


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ([CopyOptions()], ValueError, "1 options do not pair with 5 copies"),
        ([CopyOptions()] * (COUNT + 1), ValueError, "6 options"),
        ("any", TypeError, "options must be CopyOptions or a sequence of them, not str"),
        (5, TypeError, "options must be CopyOptions or a sequence of them, not int"),
        (["any"] * COUNT, TypeError, "options must be CopyOptions, a mapping or None, not str"),
        ({"order": "any"}, TypeError, "no option 'order'"),
    ],
)
def test_wrong_options_are_refused(stream, pairs, wrong, error, match):
    with pytest.raises(error, match=match):
        copy_batch(stream, *pairs, options=wrong)
    assert first_bytes(pairs[1], stream) == UNTOUCHED


@pytest.mark.parametrize("closed", ["source", "destination", "stream"])
def test_a_closed_operand_is_named(device, stream, pairs, closed):
    srcs, dsts = pairs
    queue = device.create_stream()
    {"source": srcs[1], "destination": dsts[4], "stream": queue}[closed].close()
    with pytest.raises(RuntimeError, match=f"this {'Stream' if closed == 'stream' else 'Buffer'} is closed"):
        copy_batch(queue, srcs, dsts)
    assert first_bytes(dsts[:4], stream) == UNTOUCHED[:4]


# What is in whose way


@pytest.mark.parametrize(
    ("reads", "writes", "match"),
    [
        ([0], [0], r"dsts\[0\] and srcs\[0\]"),
        ([0], [4], r"dsts\[0\] and srcs\[0\]"),
        ([0, 8], [16, 16], "copies 0 and 1"),
        ([0, 8], [16, 23], "copies 0 and 1"),
        ([0, 8, 32], [48, 16, 9], "copies 1 and 2"),
        ([0, 40, 8, 40], [16, 24, 32, 7], "copies 0 and 3"),
    ],
)
def test_what_is_written_is_neither_read_nor_written_twice(device, stream, reads, writes, match):
    with device.allocate(SIZE, stream) as whole, contextlib.ExitStack() as stack:
        whole.fill(7, stream=stream)
        srcs = [stack.enter_context(whole[at : at + 8]) for at in reads]
        dsts = [stack.enter_context(whole[at : at + 8]) for at in writes]
        with pytest.raises(ValueError, match=f"copy_batch: {match} have bytes in common"):
            copy_batch(stream, srcs, dsts)
        assert content(whole, stream) == b"\7" * SIZE


def test_parts_of_one_buffer_that_only_touch_are_copied(device, stream):
    with device.allocate(SIZE, stream) as whole, contextlib.ExitStack() as stack:
        parts = [stack.enter_context(whole[at : at + 8]) for at in range(0, SIZE, 8)]
        for index, part in enumerate(parts):
            part.fill(index, stream=stream)
        copy_batch(stream, parts[::2], parts[1::2])
        assert first_bytes(parts, stream) == [0, 0, 2, 2, 4, 4, 6, 6]


def test_collisions_are_found_as_by_comparing_every_pair(device, stream):
    chance = random.Random(20)
    with device.allocate(1024, stream) as whole:
        found = {True: 0, False: 0}
        for _ in range(300):
            count, size = chance.randint(1, 6), chance.randint(1, 60)
            places = [[chance.randrange(1024 - size) for _ in range(count)] for _ in range(2)]
            srcs, dsts = ([whole[at : at + size] for at in side] for side in places)
            reads, writes = ([range(at, at + size) for at in side] for side in places)
            collide = any(
                set(written) & set(other) for index, written in enumerate(writes) for other in (*reads, *writes[:index])
            )
            if collide:
                with pytest.raises(ValueError, match="in common"):
                    copy_batch(stream, srcs, dsts)
            else:
                copy_batch(stream, srcs, dsts)
            found[collide] += 1
            for part in (*srcs, *dsts):
                part.close()
        assert min(found.values()) > 30


# Failures and other drivers


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("call", ["cuStreamIsCapturing", "cuCtxGetCurrent", "cuMemcpyBatchAsync_v2"])
def test_a_batch_that_the_driver_refuses_changes_nothing(stream, pairs, call):
    before = live_objects()
    with simulator.fail(call, "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError, match=call.removesuffix("_v2")):
        copy_batch(stream, *pairs)
    assert live_objects() == before
    assert first_bytes(pairs[1], stream) == UNTOUCHED
    copy_batch(stream, *pairs)
    assert first_bytes(pairs[1], stream) == list(range(COUNT))


OTHER_DRIVER = """
from cuda_core_cffi import CUDAError, Device, UnavailableError, simulator
from cuda_core_cffi.utils import CopyOptions, copy_batch
device = Device(0)
device.set_current()
stream = device.create_stream()
srcs, dsts = ([device.allocate(64, stream) for _ in range(3)] for _ in range(2))
for index, (src, dst) in enumerate(zip(srcs, dsts)):
    src.fill(index, stream=stream)
    dst.fill(9, stream=stream)

def show():
    out = bytearray(64)
    for dst in dsts:
        dst.copy_to(out, stream=stream)
        stream.sync()
        print(*set(out), end=" ")
    print()

with simulator.trace() as trace:
    try:
        copy_batch(stream, srcs, dsts, options=[{}, {}, CopyOptions("during_api_call")])
    except UnavailableError as error:
        print("13.0" in str(error))
print(trace.names)
show()
with simulator.fail("cuMemcpyAsync", "CUDA_ERROR_UNKNOWN", 3):
    try:
        copy_batch(stream, srcs, dsts)
    except CUDAError as error:
        print(error.call)
with simulator.trace() as trace:
    copy_batch(stream, srcs, dsts, options=[{}, {}, CopyOptions("any")])
print(trace.names)
show()
"""


@pytest.mark.simulator_only("only there the driver's age can be chosen")
@pytest.mark.parametrize("version", ["12000", "12080", "12090"])
def test_an_older_driver_gets_one_copy_after_the_other(version):
    each = ["cuStreamIsCapturing", *["cuMemcpyAsync"] * 3]
    expected = ["True", "[]", "9 9 9 ", "cuMemcpyAsync", str(each), "0 1 2"]
    assert output_of(OTHER_DRIVER, CUDA_SIM_DRIVER_VERSION=version).splitlines() == expected
