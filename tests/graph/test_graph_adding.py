# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that fill, copy, record, wait, call or do nothing: adding them."""

from __future__ import annotations

import functools

import pytest
from graphs import SIZE, eventually, stays, watched

from cuda_core_cffi import CUDAError, LegacyPinnedMemoryResource, live_objects, simulator
from cuda_core_cffi._lifetime.references import kept
from cuda_core_cffi._memory import operands
from cuda_core_cffi.graph import node_maker, parameters

WAYS = {  # each kind of node: how it is added
    "fill": lambda it: it.graph.memset(it.dst, 3, 16),
    "pattern": lambda it: it.graph.memset(it.dst, b"\1\2\3\4", 16),
    "fill at an address": lambda it: it.graph.memset(it.dst.handle, 3, 16),
    "copy": lambda it: it.graph.memcpy(it.dst, it.src, 16),
    "copy from the host": lambda it: it.graph.memcpy(it.dst, it.host, 16),
    "copy to the host": lambda it: it.graph.memcpy(it.host, it.src, 16),
    "copy of addresses": lambda it: it.graph.memcpy(it.dst.handle, it.src.handle, 16),
    "record": lambda it: it.graph.record(it.event),
    "wait": lambda it: it.graph.wait(it.event),
    "callback": lambda it: it.graph.callback(print),
    "empty": lambda it: it.graph.join(),
}


class Things:
    """What nodes are made of."""


@pytest.fixture
def it(device, stream, graph, memory):
    """Return a graph and what its nodes use."""
    things = Things()
    things.graph, (things.dst, things.src) = graph, memory[:2]
    with LegacyPinnedMemoryResource().allocate(SIZE, stream) as things.host, device.create_event() as things.event:
        yield things


@pytest.mark.parametrize("kind", WAYS)
def test_such_a_node_comes_after_another(it, kind):
    first = it.graph.empty()
    last = WAYS[kind](type("", (), {**vars(it), "graph": first.join()}))
    (between,) = last.pred
    assert set(between.pred) == {first}


def test_several_nodes_come_before_one_that_does_nothing(graph):
    first, second, third = graph.empty(), graph.empty(), graph.empty()
    assert set(first.join(second, third).pred) == {first, second, third}


@pytest.mark.parametrize("kind", WAYS)
@pytest.mark.simulator_only("has a call of the driver fail")
def test_a_node_that_the_driver_refuses_is_an_error(it, kind):
    before = len(kept)
    with simulator.fail("cuGraphAddNode", "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError, match="cuGraphAddNode"):
        WAYS[kind](it)
    assert it.graph.nodes() == set()
    assert eventually(lambda: len(kept) <= before)


def test_what_was_filled_is_kept_until_the_graph_goes(graph, memory, device, stream):
    before = live_objects()["buffer"]
    buffer = device.allocate(SIZE, stream)
    address = buffer.handle
    made = graph.memset(buffer, 1, SIZE)
    buffer.close()
    made.update(value=2)
    assert (made.dptr, made.value) == (address, 2)
    assert stays(lambda: live_objects()["buffer"] == before + 1)
    graph.close()
    assert eventually(lambda: live_objects()["buffer"] == before)


@pytest.mark.parametrize("event", ["record", "wait"])
def test_an_event_that_was_closed_is_still_the_nodes(it, event):
    made = getattr(it.graph, event)(it.event)
    it.event.close()
    assert made.event == it.event
    assert made.event.handle


def test_a_function_goes_with_its_graph(graph):
    owner, seen = watched()
    graph.callback(functools.partial(print, owner))
    del owner
    graph.close()
    assert eventually(lambda: seen() is None)


@pytest.mark.parametrize(
    ("add", "error", "message"),
    [
        (lambda it: it.graph.memset(it.dst, 1, SIZE + 1), ValueError, "dst has 1024 bytes"),
        (lambda it: it.graph.memset(it.dst, b"\1\2", SIZE), ValueError, "fewer than the 2048"),
        (lambda it: it.graph.memset(it.dst, 256, 1), OverflowError, "does not fit in 1 byte"),
        (lambda it: it.graph.memset(it.dst, 1, True), TypeError, "width must be an int"),
        (lambda it: it.graph.memset(it.dst, 1, 0), ValueError, "width must be at least 1"),
        (lambda it: it.graph.memset(it.dst, 1, 1, pitch=False), TypeError, "pitch must be an int"),
        (lambda it: it.graph.memset(it.dst, 1, 1, pitch=-1), ValueError, "pitch must be at least"),
        (lambda it: it.graph.memset(True, 1, 1), TypeError, "dst must be a Buffer or an address, not bool"),
        (lambda it: it.graph.memset(-1, 1, 1), OverflowError, "64 bits"),
        (lambda it: it.graph.memset(it.dst, 1, 1, dst_owner=it), ValueError, "dst_owner is for an address"),
        (lambda it: it.graph.memcpy(it.dst, it.src, SIZE + 1), ValueError, "dst has 1024 bytes"),
        (lambda it: it.graph.memcpy(it.dst.handle, it.src, SIZE + 1), ValueError, "src has 1024 bytes"),
        (lambda it: it.graph.memcpy(it.dst, it.src, 1.0), TypeError, "size must be an int"),
        (lambda it: it.graph.memcpy(it.dst, None, 1), TypeError, "src must be a Buffer"),
        (lambda it: it.graph.record(it.dst), TypeError, "event must be an Event"),
        (lambda it: it.graph.callback(1), TypeError, "fn must be callable"),
    ],
)
def test_what_is_wrong_is_told(it, add, error, message):
    with pytest.raises(error, match=message):
        add(it)
    assert it.graph.nodes() == set()


@pytest.mark.parametrize("kind", ["fill", "copy", "record", "wait"])
def test_what_is_closed_is_told(it, kind):
    name = "this Event" if kind in ("record", "wait") else "dst: this Buffer"
    (it.event if kind in ("record", "wait") else it.dst).close()
    with pytest.raises(RuntimeError, match=f"{name} is closed"):
        WAYS[kind](it)


def test_what_is_closed_in_between_is_told(it, monkeypatch):
    it.dst.close()
    monkeypatch.setattr(operands, "_is_open", lambda c_handle: True)
    with pytest.raises(RuntimeError, match="closed"):
        it.graph.memset(it.dst, 1, 1)


def test_a_function_is_let_go_of_where_the_graph_was_closed_in_between(graph):
    owner, seen = watched()
    graph.close()
    with pytest.raises(RuntimeError, match="this GraphDefinition is closed"):
        node_maker.add_node(graph, (), parameters.host_call(functools.partial(print, owner), None))
    del owner
    assert eventually(lambda: seen() is None)
