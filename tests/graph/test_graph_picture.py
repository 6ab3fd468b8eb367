# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs for notebooks."""

from __future__ import annotations

import sys
import types

import pytest
from graphs import ONE, SIZE

from cuda_core_cffi import LaunchConfig
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.graph.picture import OTHER, STYLES
from cuda_core_cffi.graph.state import node_classes


@pytest.fixture
def graphviz(monkeypatch):
    """Put a module in the place of graphviz, which keeps what it is given."""
    sources = []

    class Source:
        def __init__(self, text):
            sources.append(text)

        def pipe(self, format):
            return f"<svg>{format}</svg>".encode()

    monkeypatch.setitem(sys.modules, "graphviz", types.SimpleNamespace(Source=Source))
    return sources


@pytest.fixture
def without_graphviz(monkeypatch):
    """Let there be no module graphviz."""
    monkeypatch.setitem(sys.modules, "graphviz", None)


def test_nodes_and_edges_are_drawn(graph, store, memory, device):
    with device.create_event() as event, GraphDefinition() as child:
        child.memset(memory[3], b"\1\2", 3, 2, 16)
        first = graph.launch(LaunchConfig(grid=(2, 3), block=4, shmem_size=16), store, memory[0], 1)
        second = first.memcpy(memory[1], memory[0], 100)
        second.record(event).wait(event).callback(test_nodes_and_edges_are_drawn).join().embed(child)
    text = graph.to_dot()
    assert text.startswith("digraph graph_definition {\n")
    assert text.endswith("}\n")
    assert 'n0 [label="kernel\\nstore\\ngrid 2x3x1, block 4x1x1\\nshared memory 16 bytes"' in text
    assert f'label="copy\\n100 bytes\\nfrom {memory[0].handle:#x}\\nto {memory[1].handle:#x}"' in text
    assert 'label="host callback\\ntest_nodes_and_edges_are_drawn"' in text
    assert f'label="fill\\n3 x 2 rows of 0x0201\\nat {memory[3].handle:#x}"' in text
    assert "subgraph cluster_n6_0 {" in text
    assert text.count("record event") == text.count("wait for event") == 1
    assert "n0 -> n1;" in text
    assert "n5 -> n6;" in text


def test_nodes_have_shapes_that_graphviz_knows():
    assert {shape for _, shape, _ in [*STYLES.values(), OTHER]} == {"box", "circle", "diamond", "ellipse"}


def test_memory_nodes_are_drawn(graph):
    node = graph.allocate(SIZE)
    node.deallocate(node.dptr)
    text = graph.to_dot()
    assert f'label="allocate\\n{SIZE} bytes, device\\nat {node.dptr:#x}"' in text
    assert f'label="free\\nat {node.dptr:#x}"' in text


def test_bodies_are_drawn(graph, memory):
    node = graph.if_else(graph.create_condition(1))
    node.then.memset(memory[0], 1, 4)
    graph.switch(graph.create_condition(), 2)
    text = graph.to_dot()
    for title in ("then", "else", "case 0", "case 1"):
        assert f'label="{title}"' in text
    assert text.count('label="nothing"') == 3
    assert f"if {node.condition.handle:#x}" in text


def test_every_kind_of_node_has_a_style():
    assert set(STYLES) >= set(node_classes) - {None}  # None: those of no kind that has a class


def test_names_are_escaped(graph):
    def function():
        pass

    function.__qualname__ = 'quoted "name"\\'
    graph.callback(function)
    assert 'host callback\\nquoted \\"name\\"\\\\"' in graph.to_dot()


def test_a_notebook_shows_svg_where_graphviz_is(graph, graphviz):
    graph.empty()
    bundle = graph._repr_mimebundle_()
    assert bundle == {"text/plain": repr(graph), "image/svg+xml": "<svg>svg</svg>"}
    assert graphviz == [graph.to_dot()]


def test_a_notebook_shows_text_where_it_is_not(graph, without_graphviz):
    graph.empty()
    assert graph._repr_mimebundle_() == {"text/plain": f"{graph!r}\n{graph.to_dot()}"}


def test_an_executable_shows_its_definition(graph, graphviz):
    graph.empty()
    with graph.instantiate() as executable, GraphDefinition() as other:
        other.empty()
        assert executable._repr_mimebundle_() == {"text/plain": repr(executable), "image/svg+xml": "<svg>svg</svg>"}
        executable.update(other)
        executable._repr_mimebundle_()
        assert graphviz == [graph.to_dot(), other.to_dot()]
        other.close()
        assert executable._repr_mimebundle_() == {"text/plain": repr(executable)}
    assert executable._repr_mimebundle_() == {"text/plain": repr(executable)}


def test_a_closed_graph_is_shown_as_such(without_graphviz):
    graph = GraphDefinition()
    graph.close()
    assert graph._repr_mimebundle_() == {"text/plain": "<GraphDefinition handle=0x0 closed>"}


def test_clusters_and_cooperation_are_drawn(graph, store, memory, device):
    if device.compute_capability < (9, 0):
        pytest.skip("the device has no clusters")
    graph.launch(LaunchConfig(grid=2, cluster=2, block=1), store, memory[0], 1)
    graph.launch(LaunchConfig(grid=2, block=1, is_cooperative=True), store, memory[0], 1)
    graph.launch(ONE, store, memory[0], 1)
    text = graph.to_dot()
    assert "grid 2x1x1, block 1x1x1\\ncluster 2x1x1" in text
    assert text.count("cooperative") == 1


def test_a_node_that_another_thread_adds_meanwhile_is_left_out(graph, monkeypatch):
    first = graph.empty()
    listed = graph._nodes()
    first.succ = {graph.empty()}
    monkeypatch.setattr(GraphDefinition, "_nodes", lambda self: listed)
    assert "->" not in graph.to_dot()
