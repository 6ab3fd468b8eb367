# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Integers in pinned memory, which streams wait for and which the host reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy

from cuda_core_cffi import Buffer, Device, LegacyPinnedMemoryResource, Stream

BYTES = 64


class Words:
    """Pinned memory as integers.

    Attributes
    ----------
    buffer : Buffer
        The memory.
    short, long : numpy.ndarray
        The same as integers of 32 and 64 bits.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        memory = numpy.asarray(buffer)
        memory[:] = 0
        self.short, self.long = memory.view(numpy.uint32), memory.view(numpy.uint64)
        self._ends: list[tuple[int, int, int]] = []

    def array(self, bits: int) -> numpy.ndarray:
        """Return the memory as integers of so many bits."""
        return self.short if bits == 32 else self.long

    def ends_with(self, value: int, index: int = 0, bits: int = 32) -> None:
        """Say what ends a wait, so that a test that fails does not leave a stream waiting."""
        self._ends.append((bits, index, value))

    def end_waits(self) -> None:
        """Write what ends the waits."""
        for bits, index, value in self._ends:
            self.array(bits)[index] = value
        self._ends.clear()


@contextmanager
def words_for(device: Device, *streams: Stream) -> Iterator[Words]:
    """Give integers, and end what still waits in some streams afterwards, in the order in which waits were begun."""
    with LegacyPinnedMemoryResource().allocate(BYTES) as buffer:
        words = Words(buffer)
        try:
            yield words
        finally:
            words.end_waits()
            for stream in streams:
                stream.sync()
            del words.short, words.long
