# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The rows: what is timed, once for both Python packages, whose documented API is the same where both have it."""

from __future__ import annotations

import ast
from typing import NamedTuple

__all__ = ["ARGUMENT_COUNTS", "BATCH", "KERNEL_SOURCE", "ROWS", "STRETCH", "THREAD_ROWS", "Row", "find_row"]

STRETCH = 256
"""Calls timed in one go. Between stretches, untimed, the device is synchronised, so that no queue grows full."""

ARGUMENT_COUNTS = (0, 1, 4, 16, 256)
PREPARED_COUNTS = (0, 4, 16)
BATCH = 100
MOST_SPELLED_OUT = 16
ARGUMENTS = (("float *", "buffer"), ("long long", "7"), ("double", "0.5"))


class Row(NamedTuple):
    """One thing that is timed.

    Attributes
    ----------
    name : str
        What the table and ``--only`` call it.
    statement : str
        The Python that is timed, of names that :class:`~benchmarks.workbench.Workbench` has.
    c : str or None
        The function in ``limits.c`` that makes the same driver calls; None where there is no call to make.
    peer : bool
        Whether cuda-core has it too.
    launches : int
        How many kernels one call launches, where that fills a queue.
    """

    name: str
    statement: str
    c: str | None = None
    peer: bool = True
    launches: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the statement uses."""
        return tuple(sorted({node.id for node in ast.walk(ast.parse(self.statement)) if isinstance(node, ast.Name)}))


def values_of(count: int) -> list[str]:
    """Return the ``count`` arguments of a launch, as they are written."""
    return [ARGUMENTS[index % len(ARGUMENTS)][1] for index in range(count)]


def launch_row(count: int) -> Row:
    """Return the row that launches an empty kernel with ``count`` arguments."""
    values = [f"*arguments{count}"] if count > MOST_SPELLED_OUT else values_of(count)
    call = ", ".join(["stream", "config", f"kernel{count}", *values])
    return Row(f"launch, {count} argument{'s' * (count != 1)}", f"launch({call})", f"launch{count}")


def prepared_row(count: int) -> Row:
    """Return the row of a prepared launch of an empty kernel with ``count`` arguments."""
    call = ", ".join(["stream", *values_of(count)])
    return Row(f"prepared launch, {count} arguments", f"prepared{count}.launch({call})", f"prepared{count}", peer=False)


def kernel_source(count: int) -> str:
    """Return an empty kernel with ``count`` parameters: pointers, integers and floating-point numbers in turn."""
    parameters = (f"{ARGUMENTS[index % len(ARGUMENTS)][0]} a{index}" for index in range(count))
    return f'extern "C" __global__ void kernel{count}({", ".join(parameters)}) {{}}\n'


KERNEL_SOURCE = "".join(kernel_source(count) for count in ARGUMENT_COUNTS)

ROWS = (
    Row("allocate+close, own stream", "device.allocate(1024, stream=stream).close()", "allocate_own"),
    Row("allocate+close, default stream", "device.allocate(1024, stream=default_stream).close()", "allocate_default"),
    Row("fill 1 KiB", "buffer.fill(0, stream=stream)", "fill"),
    Row("copy device to device, 1 KiB", "other.copy_from(buffer, stream=stream)", "copy_device"),
    Row("copy pinned to device, 1 KiB", "buffer.copy_from(pinned, stream=stream)", "copy_pinned"),
    Row("event create+close", "device.create_event().close()", "event_create"),
    Row("event record", "stream.record(event)", "event_record"),
    Row("event query", "event.is_done", "event_query"),
    Row("event sync", "event.sync()", "event_sync"),
    Row("event elapsed", "end - start", "event_elapsed"),
    Row("stream create+close", "device.create_stream().close()", "stream_create"),
    Row("stream sync", "stream.sync()", "stream_sync"),
    Row("stream wait event", "stream.wait(event)", "stream_wait_event"),
    Row("stream wait stream", "stream.wait(second)", "stream_wait_stream"),
    Row("Device()", "Device()", "device_current"),
    Row("Device(0)", "Device(0)"),
    Row("set_current", "device.set_current()", "set_current"),
    Row("device property", "device.properties.multiprocessor_count"),
    *(launch_row(count) for count in ARGUMENT_COUNTS),
    *(prepared_row(count) for count in PREPARED_COUNTS),
    Row(f"batch of {BATCH} launches", "batch.launch(stream)", "batch", False, BATCH),
    Row(f"batch of {BATCH}, packed anew", "LaunchBatch(launches).launch(stream)", "batch", False, BATCH),
)

THREAD_ROWS = ("launch, 4 arguments", "allocate+close, own stream")


def find_row(name: str) -> Row:
    """Return the row of that name."""
    return next(row for row in ROWS if row.name == name)
