# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Feed a stream from a thread of the host, through a ring in pinned memory: a producer and a consumer.

All work of the stream is enqueued at the start. Before each block of data it waits for the producer's counter, and when
it has copied the block it writes its own counter, which tells the producer that the place in the ring is free. Neither
side calls the driver to synchronise; the host only reads and writes memory.

On a machine without a GPU this script chooses the simulated driver, and says so, as saxpy.py beside it does.
"""

from __future__ import annotations

import sys
import threading
import time

import numpy
import saxpy  # noqa: F401  (its first lines choose the driver)

from cuda_core_cffi import Device, LegacyPinnedMemoryResource
from cuda_core_cffi.utils import WaitValue, WriteValue, batch_mem_op

PLACES, BLOCKS, NUMBERS = 4, 64, 1024
BYTES = 4 * NUMBERS
PRODUCED, CONSUMED = 0, 8  # where the counters are, in bytes
SECONDS = 20


def produce(ring: numpy.ndarray, counters: numpy.ndarray) -> None:
    """Fill the places of the ring, one after the other, as they become free."""
    end = time.monotonic() + SECONDS
    for block in range(BLOCKS):
        while counters[CONSUMED // 8] + PLACES <= block:
            if time.monotonic() > end:
                print("the stream does not consume", file=sys.stderr)
                break
            time.sleep(0)
        ring[block % PLACES] = numpy.arange(NUMBERS) + block
        counters[PRODUCED // 8] = block + 1  # after the data: the stream goes on


def main() -> int:
    """Produce and consume; return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    pinned = LegacyPinnedMemoryResource()
    with (
        pinned.allocate(PLACES * BYTES) as ring,
        pinned.allocate(16) as counters,
        device.allocate(BLOCKS * BYTES, stream) as consumed,
    ):
        numbers = numpy.asarray(counters).view(numpy.uint64)
        numbers[:] = 0
        places = numpy.asarray(ring).view(numpy.uint32).reshape(PLACES, NUMBERS)
        for block in range(BLOCKS):
            place = block % PLACES * BYTES
            batch_mem_op(stream, [WaitValue(counters, block + 1, bits=64, offset=PRODUCED)])
            target = consumed[block * BYTES : (block + 1) * BYTES]
            ring[place : place + BYTES].copy_to(target, stream=stream)
            batch_mem_op(stream, [WriteValue(counters, block + 1, bits=64, offset=CONSUMED)])
        before = int(numbers[CONSUMED // 8])

        producer = threading.Thread(target=produce, args=(places, numbers))
        producer.start()
        producer.join()
        result = numpy.empty((BLOCKS, NUMBERS), numpy.uint32)
        consumed.copy_to(result, stream=stream)
        stream.sync()
    expected = numpy.arange(BLOCKS)[:, None] + numpy.arange(NUMBERS)
    right = before == 0 and (result == expected).all()
    print(f"{BLOCKS} blocks through {PLACES} places on {device.name}: {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
