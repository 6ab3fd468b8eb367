# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs, in the DOT language of Graphviz."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, TypeAlias, Union

from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._memory.mem_op import FlushRemoteWrites, MemoryOperation, WaitValue, WriteValue
from cuda_core_cffi.graph.state import node_of

# What is drawn by type of node: what it is called, shape and colour.
STYLES: dict[int, tuple[str, str, str]] = {
    lib.CU_GRAPH_NODE_TYPE_KERNEL: ("kernel", "box", "#b7e1cd"),
    lib.CU_GRAPH_NODE_TYPE_MEMCPY: ("copy", "box", "#c9daf8"),
    lib.CU_GRAPH_NODE_TYPE_MEMSET: ("fill", "box", "#d9d2e9"),
    lib.CU_GRAPH_NODE_TYPE_HOST: ("host callback", "box", "#fce8b2"),
    lib.CU_GRAPH_NODE_TYPE_GRAPH: ("graph", "box", "#eeeeee"),
    lib.CU_GRAPH_NODE_TYPE_EMPTY: ("empty", "circle", "#ffffff"),
    lib.CU_GRAPH_NODE_TYPE_WAIT_EVENT: ("wait for event", "ellipse", "#fff2cc"),
    lib.CU_GRAPH_NODE_TYPE_EVENT_RECORD: ("record event", "ellipse", "#fff2cc"),
    lib.CU_GRAPH_NODE_TYPE_MEM_ALLOC: ("allocate", "box", "#f4cccc"),
    lib.CU_GRAPH_NODE_TYPE_MEM_FREE: ("free", "box", "#f4cccc"),
    lib.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: ("memory operations", "box", "#d0e0e3"),
    lib.CU_GRAPH_NODE_TYPE_CONDITIONAL: ("conditional", "diamond", "#fce5cd"),
}
OTHER = ("node", "box", "#ffffff")

Lines: TypeAlias = Iterator[Union[str, "Lines"]]


def dot(definition: Any) -> str:
    """Return a graph as DOT text, with the graphs inside its nodes."""
    lines = [
        "digraph graph_definition {",
        "  compound=true;",
        '  node [fontname="monospace", fontsize=10, style="filled,rounded"];',
        *draw(definition, "n", "  "),
        "}",
    ]
    return "\n".join(lines) + "\n"


def draw(definition: Any, prefix: str, indent: str) -> Iterator[str]:
    """Yield the lines for the nodes and edges of a graph and of all graphs inside it."""
    begun = [draw_one(definition, definition._nodes(), prefix, indent)]  # each inside the one before
    while begun:
        line = next(begun[-1], None)
        if line is None:
            begun.pop()
        elif isinstance(line, str):
            yield line
        else:
            begun.append(line)


def draw_one(definition: Any, nodes: list[tuple[int, int]], prefix: str, indent: str) -> Lines:
    """Yield the lines for the nodes and edges of one graph; for a graph inside, an iterator of its lines."""
    names: dict[int, str] = {}
    for number, (handle, kind) in enumerate(nodes):
        names[handle] = name = f"{prefix}{number}"
        node = node_of(definition, handle, kind)
        title, shape, colour = STYLES.get(kind, OTHER)
        label = escape("\n".join((title, *details(node, kind))))
        yield f'{indent}{name} [label="{label}", shape={shape}, fillcolor="{colour}"];'
        for part, (title, inner) in enumerate(graphs_inside(node, kind)):
            yield f"{indent}subgraph cluster_{name}_{part} {{"
            yield f'{indent}  label="{title}"; fontname="monospace"; fontsize=10;'
            inner_nodes = inner._nodes()
            first = f"{name}_{part}_0" if inner_nodes else f"{name}_{part}_none"
            if inner_nodes:
                yield draw_one(inner, inner_nodes, f"{name}_{part}_", indent + "  ")
            else:
                yield f'{indent}  {first} [label="nothing", shape=plaintext, style=""];'
            yield f"{indent}}}"
            yield f"{indent}{name} -> {first} [lhead=cluster_{name}_{part}, style=dashed, arrowhead=none];"
    for before, after in definition._edges():
        if before in names and after in names:  # else another thread has added a node since
            yield f"{indent}{names[before]} -> {names[after]};"


def details(node: Any, kind: int) -> Iterator[str]:
    """Yield what a node does, line by line."""
    if kind == lib.CU_GRAPH_NODE_TYPE_KERNEL:
        kernel, config = node.kernel, node.config
        yield kernel._find_symbol() or f"{kernel._driver_handle:#x}"
        yield f"grid {shape_of(config.grid)}, block {shape_of(config.block)}"
        if config.cluster is not None:
            yield f"cluster {shape_of(config.cluster)}"
        if config.is_cooperative:
            yield "cooperative"
        if config.shmem_size:
            yield f"shared memory {config.shmem_size} bytes"
    elif kind == lib.CU_GRAPH_NODE_TYPE_MEMCPY:
        yield f"{node.size} bytes"
        yield f"from {node.src:#x}"
        yield f"to {node.dst:#x}"
    elif kind == lib.CU_GRAPH_NODE_TYPE_MEMSET:
        rows = f" x {node.height} rows" * (node.height > 1)
        yield f"{node.width}{rows} of {node.value:#0{2 + 2 * node.element_size}x}"
        yield f"at {node.dptr:#x}"
    elif kind == lib.CU_GRAPH_NODE_TYPE_HOST:
        function = node.callback
        yield "C function" if function is None else getattr(function, "__qualname__", repr(function))
    elif kind == lib.CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        yield f"{node.bytesize} bytes, {node.memory_type}"
        yield f"at {node.dptr:#x}"
    elif kind == lib.CU_GRAPH_NODE_TYPE_MEM_FREE:
        yield f"at {node.dptr:#x}"
    elif kind in (lib.CU_GRAPH_NODE_TYPE_WAIT_EVENT, lib.CU_GRAPH_NODE_TYPE_EVENT_RECORD):
        yield f"{node.event._driver_handle:#x}"
    elif kind == lib.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        yield from map(describe_operation, node.operations)
    elif kind == lib.CU_GRAPH_NODE_TYPE_CONDITIONAL and node.condition is not None:
        yield f"{node.cond_type} {node.condition._handle:#x}"


def graphs_inside(node: Any, kind: int) -> list[tuple[str, Any]]:
    """Return the graphs inside a node, each with what it is called."""
    if kind == lib.CU_GRAPH_NODE_TYPE_GRAPH:
        return [("graph", node.child_graph)]
    if kind != lib.CU_GRAPH_NODE_TYPE_CONDITIONAL or node.cond_type is None:
        return []
    titles = {"if": ("then", "else"), "while": ("body",)}.get(node.cond_type)
    return [
        (f"case {number}" if titles is None else titles[number], branch) for number, branch in enumerate(node.branches)
    ]


def describe_operation(operation: MemoryOperation) -> str:
    """Return a memory operation as it is read."""
    if isinstance(operation, WriteValue):
        return f"write {operation.value} at {operation.memory:#x}"
    if isinstance(operation, WaitValue):
        return f"wait for {operation.condition} {operation.value} at {operation.memory:#x}"
    return "flush remote writes" if isinstance(operation, FlushRemoteWrites) else f"barrier, {operation.scope}"


def shape_of(dimensions: tuple[int, ...]) -> str:
    """Return dimensions as they are read."""
    return "x".join(map(str, dimensions))


def escape(text: str) -> str:
    """Return text as the inside of a DOT string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def mime_bundle(definition: Any, text: str) -> dict[str, str]:
    """Return what a notebook shows: SVG where it can be made, else DOT text.

    The graphviz package draws it with the program of that name. Without either, what is shown is text.
    """
    if not definition.is_valid:
        return {"text/plain": text}
    source = dot(definition)
    try:
        graphviz = importlib.import_module("graphviz")
        return {"text/plain": text, "image/svg+xml": graphviz.Source(source).pipe(format="svg").decode()}
    except Exception:  # not installed, or its program is not, or cannot draw this
        return {"text/plain": f"{text}\n{source}"}
