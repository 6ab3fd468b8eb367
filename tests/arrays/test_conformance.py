# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Every producer with every consumer: see ``conformance.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conformance import CONSUMERS, PRODUCERS, Cell, NotApplicable, Refused, cells, is_sure, missing, run, working_stream
from helpers import collect

from cuda_core_cffi import lib


def parameters() -> list[Any]:
    """Return the cells; of those that need a library which is not installed, one for each pair."""
    found, seen = [], set()
    for cell in cells():
        absent = missing(cell)
        if absent is None:
            found.append(pytest.param(cell, id="-".join(cell)))
        elif cell[:2] not in seen:
            seen.add(cell[:2])
            skip = pytest.mark.skip(reason=f"{absent} is not installed")
            found.append(pytest.param(cell, id=f"{cell.producer}-{cell.consumer}", marks=skip))
    return found


@pytest.fixture(scope="module", autouse=True)
def kept_stream() -> Iterator[None]:
    """Make the stream that arrays are filled in before the tests look for leaks."""
    with working_stream() as stream:
        yield
        collect()
        stream.sync()
    working_stream.cache_clear()


@pytest.mark.parametrize("cell", parameters())
def test_arrays_arrive_as_they_were(cell: Cell) -> None:
    try:
        run(cell)
    except NotApplicable as error:
        pytest.skip(str(error))
    except Refused as refusal:
        if is_sure(cell):
            raise
        pytest.skip(f"refused: {refusal}")


@pytest.mark.parametrize("name", ["bytearray", "memoryview", "ctypes array"])
def test_memory_without_an_array_protocol_is_refused_by_us(name: str) -> None:
    with pytest.raises(Refused, match=r"BufferError: .* cannot be viewed") as refusal:
        run(Cell(name, "StridedMemoryView", "uint8", "C"))
    assert refusal.value.by_us


@pytest.mark.parametrize("stream", ["legacy", "per thread", "own"])
@pytest.mark.parametrize("producer", [name for name, side in PRODUCERS.items() if side.memory != ("pageable",)])
def test_arrays_arrive_in_the_order_of_any_stream(producer: str, stream: str) -> None:
    cell = Cell(producer, "StridedMemoryView", "int8", "C")
    if absent := missing(cell):
        pytest.skip(f"{absent} is not installed")
    try:
        run(cell, {"legacy": 1, "per thread": 2, "own": working_stream().handle}[stream])
    except NotApplicable as error:
        pytest.skip(str(error))


def test_every_consumer_has_something_that_it_must_take() -> None:
    taking = {cell.consumer for cell in cells() if is_sure(cell)}
    assert taking == set(CONSUMERS) - {"numba"}  # which speaks neither DLPack nor, of us, with views


def test_no_error_is_left_behind() -> None:
    assert lib.cuCtxSynchronize() == 0
