# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""User objects: who keeps them, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import ModuleType

import pytest
from sim_driver import Driver, Gate, byref, c_void_p
from sim_graphs import Graphs, User

MOVE = 1


@pytest.fixture
def user(cu: Driver) -> Iterator[User]:
    user = User(cu)
    yield user
    if not user.ended.is_set():
        cu.status("cuUserObjectRelease", user.handle, 1)
    assert user.gone()


def test_an_object_ends_with_its_last_reference(cu: Driver, user: User, sim: ModuleType) -> None:
    assert sim.live()["user objects"].number == 1
    cu.cuUserObjectRetain(user.handle, 2)
    cu.cuUserObjectRelease(user.handle, 2)
    assert user.alive()
    cu.cuUserObjectRelease(user.handle, 1)
    assert user.gone_here()
    assert sim.live()["user objects"].number == 0
    assert user.status == "NOT_PERMITTED"
    assert cu.status("cuUserObjectRelease", user.handle, 1) == "INVALID_VALUE"


def test_a_graph_keeps_what_it_retains(cu: Driver, graphs: Graphs, user: User) -> None:
    graph = graphs.graph()
    cu.cuGraphRetainUserObject(graph, user.handle, 2, 0)
    cu.cuUserObjectRelease(user.handle, 1)
    cu.cuGraphReleaseUserObject(graph, user.handle, 1)
    assert user.alive()
    cu.cuGraphDestroy(graph)
    assert user.gone_here()


def test_references_may_be_moved_to_a_graph(cu: Driver, graphs: Graphs, user: User) -> None:
    graph = graphs.graph()
    cu.cuGraphRetainUserObject(graph, user.handle, 1, MOVE)
    assert user.alive()
    cu.cuGraphReleaseUserObject(graph, user.handle, 1)
    assert user.gone_here()


def test_clones_children_and_executables_keep_it_too(cu: Driver, graphs: Graphs, user: User) -> None:
    graph, outer = graphs.graph(), graphs.graph()
    cu.cuGraphRetainUserObject(graph, user.handle, 1, MOVE)
    clone: c_void_p = cu.out(c_void_p, "cuGraphClone", graph)
    graphs.child(outer, graph)
    executable = graphs.instantiate(outer)
    for end, handle in (("cuGraphDestroy", graph), ("cuGraphDestroy", clone), ("cuGraphDestroy", outer)):
        cu.status(end, handle)
        assert user.alive()
    cu.cuGraphExecDestroy(executable)
    assert user.gone_here()


def test_a_child_lets_it_go_with_its_node(cu: Driver, graphs: Graphs, user: User) -> None:
    graph, outer = graphs.graph(), graphs.graph()
    cu.cuGraphRetainUserObject(graph, user.handle, 1, MOVE)
    node = graphs.child(outer, graph)
    cu.cuGraphDestroy(graph)
    assert user.alive()
    cu.cuGraphDestroyNode(node)
    assert user.gone_here()


def test_what_an_executable_that_was_launched_keeps_is_let_go_by_the_driver(
    cu: Driver, graphs: Graphs, user: User
) -> None:
    graph = graphs.graph()
    graphs.empty(graph)
    cu.cuGraphRetainUserObject(graph, user.handle, 1, MOVE)
    executable = graphs.instantiate(graph)
    cu.cuGraphDestroy(graph)
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    assert user.alive()
    cu.cuGraphExecDestroy(executable)
    assert user.gone()
    assert user.thread != threading.get_ident()


def test_a_launch_keeps_it_to_its_end(cu: Driver, graphs: Graphs, user: User) -> None:
    graph, gate, stream = graphs.graph(), Gate(), cu.stream()
    graphs.host(graph, gate.wait)
    cu.cuGraphRetainUserObject(graph, user.handle, 1, MOVE)
    executable = graphs.instantiate(graph)
    cu.cuGraphLaunch(executable, stream)
    cu.cuGraphExecDestroy(executable)
    cu.cuGraphDestroy(graph)
    assert user.alive()
    gate.open()
    assert user.gone()
    assert user.thread != threading.get_ident()
    cu.cuStreamSynchronize(stream)
    cu.cuStreamDestroy_v2(stream)


def test_changing_a_graph_leaves_the_references_of_its_executable(cu: Driver, graphs: Graphs, user: User) -> None:
    graph, other = graphs.graph(), User(cu)
    cu.cuGraphRetainUserObject(graph, user.handle, 1, MOVE)
    executable = graphs.instantiate(graph)
    cu.cuGraphRetainUserObject(graph, other.handle, 1, MOVE)
    cu.cuGraphReleaseUserObject(graph, user.handle, 1)
    assert user.alive()
    cu.cuGraphExecDestroy(executable)
    assert user.gone()
    assert other.alive()
    cu.cuGraphDestroy(graph)
    assert other.gone()


def test_what_is_refused(cu: Driver, graphs: Graphs, user: User) -> None:
    graph = graphs.graph()
    for call in (
        ("cuUserObjectCreate", None, None, user.function, 1, 1),
        ("cuUserObjectCreate", byref(c_void_p()), None, None, 1, 1),
        ("cuUserObjectCreate", byref(c_void_p()), None, user.function, 0, 1),
        ("cuUserObjectCreate", byref(c_void_p()), None, user.function, 1, 0),
        ("cuUserObjectRetain", user.handle, 0),
        ("cuUserObjectRetain", user.handle, 1 << 31),
        ("cuUserObjectRelease", user.handle, 2),
        ("cuUserObjectRetain", graph, 1),
        ("cuGraphRetainUserObject", graph, user.handle, 0, 0),
        ("cuGraphRetainUserObject", graph, user.handle, 1, 2),
        ("cuGraphRetainUserObject", graph, None, 1, 0),
        ("cuGraphReleaseUserObject", graph, user.handle, 1),
    ):
        assert cu.status(*call) == "INVALID_VALUE", call
    assert user.alive()
