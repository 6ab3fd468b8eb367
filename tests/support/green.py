# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Green contexts for tests, and a kernel that records on which multiprocessors its blocks run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from cuda_core_cffi import Context, ContextOptions, Device, LaunchConfig, ObjectCode, SMResource, Stream, launch

MOST = 512  # multiprocessors
BYTES = 4 * MOST
BLOCKS = LaunchConfig(grid=1024, block=256)  # each waits, so that no multiprocessor takes more than its share

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry record(.param .u64 table)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [table];
    mov.u32 %r1, %smid;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    atom.global.add.u32 %r2, [%rd3], 1;
    nanosleep.u32 5000;
    ret;
}
"""


def part_of(device: Device, count: int | None = None) -> SMResource:
    """Return some multiprocessors: as few as a group can have, or at least so many."""
    whole = device.resources.sm
    return whole.split({"count": count or whole.min_partition_size})[0][0]


def parts_of(device: Device, groups: int) -> tuple[list[SMResource], SMResource]:
    """Return some groups of multiprocessors, as small as they can be, and the rest."""
    whole = device.resources.sm
    return whole.split({"count": [whole.min_partition_size] * groups})


def green_context(device: Device, *resources: Any) -> Context:
    """Make a green context with these resources; by default with a few multiprocessors."""
    return device.create_context(ContextOptions(resources=resources or [part_of(device)]))


@contextlib.contextmanager
def current(device: Device, context: Context) -> Iterator[None]:
    """Have a context current in this thread for a while."""
    before = device.set_current(context)
    try:
        yield
    finally:
        device.set_current(before)


@contextlib.contextmanager
def recorder() -> Iterator[Any]:
    """The kernel: its argument is an array of a number of blocks for each multiprocessor."""
    with ObjectCode.from_ptx(PTX) as code, code.get_kernel("record") as kernel:
        yield kernel


def used(table: Any, stream: Stream) -> set[int]:
    """Return the multiprocessors that a table tells of, when the work in the stream is done."""
    counts = bytearray(BYTES)
    table.copy_to(counts, stream=stream)
    stream.sync()
    return {number for number, count in enumerate(memoryview(counts).cast("I")) if count}


def multiprocessors(stream: Stream, kernel: Any, config: LaunchConfig = BLOCKS) -> set[int]:
    """Return the multiprocessors that the kernel's blocks run on when it is launched in a stream."""
    with stream.device.allocate(BYTES, stream) as table:
        table.fill(0, stream=stream)
        launch(stream, config, kernel, table)
        return used(table, stream)
