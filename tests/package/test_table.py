# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What was taken out of a table is kept by nothing in it, although a dict of PyPy may keep what was deleted.

It may where others stayed when its entries were moved together: so there are always some that have begun and not ended.
"""

from __future__ import annotations

import collections
import itertools
import weakref
from collections.abc import Callable

import pytest
from buffers import HostResource
from consumer import Consumer
from graphs import SIZE, Owner, watched
from helpers import soon

from cuda_core_cffi import ffi
from cuda_core_cffi._lifetime.host_memory import HostReference, unfinished
from cuda_core_cffi._lifetime.table import Table, new_table
from cuda_core_cffi._streams.callbacks import raised
from cuda_core_cffi.graph import GraphDefinition


def assert_each_goes(begin: Callable[[Owner], Callable[[], object]]) -> None:
    """Begin something for each of many owners, and end it when three more have begun: then nothing keeps the owner."""
    seen: list[weakref.ref[Owner]] = []
    endings: collections.deque[Callable[[], object]] = collections.deque()
    for turn in range(50):
        owner, reference = watched()
        endings.append(begin(owner))
        seen.append(reference)
        del owner
        if len(endings) > 3:
            endings.popleft()()
        if turn % 7 == 6:  # the dict keeps a few of them, for some turns
            assert soon(lambda: not any(reference() for reference in seen[:-3]), collecting=True)
            assert all(reference() for reference in seen[-3:])
    while endings:
        endings.popleft()()


@pytest.mark.parametrize("make", [new_table, Table])
def test_what_was_deleted_from_a_table(make):
    table = make()
    numbers = itertools.count()

    def begin(owner: Owner) -> Callable[[], object]:
        number = next(numbers)
        table[number] = owner
        return lambda: table.pop(number)

    assert_each_goes(begin)
    assert not table


def test_a_table_is_a_mapping():
    table, names = Table[str](), {1: "one", 2: "two", 3: "three"}
    table.update(names)
    assert table == names
    table[2] = "two again"
    assert (table[2], table.get(4), table.pop(4, None)) == ("two again", None, None)
    assert (3 in table, 4 in table) == (True, False)
    assert (table.pop(1), list(table)) == ("one", [2, 3])
    for missing in (table.pop, table.__getitem__, table.__delitem__):
        with pytest.raises(KeyError):
            missing(1)
    table.clear()
    assert (len(table), dict(table)) == (0, {})


def test_what_nodes_used_that_are_gone(memory):
    with GraphDefinition() as graph:
        assert_each_goes(lambda owner: graph.memset(memory[0].handle, 1, SIZE, dst_owner=owner).destroy)


def test_what_copies_held_that_are_done():
    class Bytes(bytearray):
        owner: Owner

    def begin(owner: Owner) -> Callable[[], object]:
        source = Bytes(SIZE)
        source.owner = owner
        reference = HostReference(ffi.from_buffer(source))
        unfinished[id(reference)] = reference
        return reference.release

    assert_each_goes(begin)


def test_what_tensors_showed_that_are_gone(device):
    def begin(owner: Owner) -> Callable[[], object]:
        mr = HostResource()
        mr.owner = owner
        return Consumer(mr.allocate(SIZE).__dlpack__()).delete

    assert_each_goes(begin)


def test_what_functions_raised_that_was_told(device):
    class Unlikely(Exception):
        owner: Owner

    def begin(owner: Owner) -> Callable[[], object]:
        error = Unlikely()
        error.owner = owner
        stream = device.create_stream()
        before = len(raised)

        def function() -> None:
            raise error

        def end() -> None:
            with stream, pytest.raises(Unlikely):
                stream.sync()

        stream.callback(function)
        assert soon(lambda: len(raised) == before + 1, collecting=False)
        return end

    assert_each_goes(begin)
