# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Watch the memory that a computation uses: how much, when, up to a limit, and what it forgot to give back.

On a machine without a GPU this script chooses the simulated driver, and says so, as saxpy.py beside it does. Where
matplotlib is installed, it draws the usage to memory_usage.png in the current folder.
"""

from __future__ import annotations

import importlib.util
import sys

import saxpy  # noqa: F401  (its first lines choose the driver)

from cuda_core_cffi import Buffer, Device, Stream
from cuda_core_cffi.utils import TrackingMemoryResource

MIB = 1 << 20
LIMIT = 64 * MIB
WIDTH = 50  # characters of the longest bar


def compute(device: Device, stream: Stream, forgotten: list[Buffer]) -> None:
    """Use some memory, too much, and forget some."""
    for step in range(1, 6):
        with device.allocate(step * 4 * MIB, stream) as work, device.allocate(step * 2 * MIB, stream) as result:
            work.fill(step, stream=stream)
            result.fill(0, stream=stream)
        forgotten.append(device.allocate(MIB, stream))
    try:
        device.allocate(2 * LIMIT, stream)
    except MemoryError as error:
        print(f"refused: {error}")


def main() -> int:
    """Run the computation, print what it used, and return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    tracking = TrackingMemoryResource(device.memory_resource, limit=LIMIT, max_history=1000, max_frames=2)
    device.memory_resource = tracking

    forgotten: list[Buffer] = []
    compute(device, stream, forgotten)

    for event in tracking.history:
        bar = "#" * round(WIDTH * int(event["bytes"]) / LIMIT)
        print(f"{event['event']:>8} {event['size'] / MIB:6.1f} MiB  {event['bytes'] / MIB:6.1f} in use  {bar}")
    usage = tracking.statistics
    print(f"peak {usage.peak_bytes / MIB:.1f} MiB, {usage.total_count} allocations, {usage.current_count} not freed:")
    for allocation in tracking.outstanding():
        place = allocation.stack[-1]
        print(f"  {allocation.size} bytes at {allocation.address:#x}, from {place.name}, line {place.lineno}")
    if importlib.util.find_spec("matplotlib") is not None:
        tracking.plot().figure.savefig("memory_usage.png")
        print("drawn to memory_usage.png")

    for buffer in forgotten:
        buffer.close()
    device.memory_resource = tracking.upstream
    stream.close()
    return 0 if tracking.statistics.current_bytes == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
