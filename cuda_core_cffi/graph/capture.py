# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Captures of streams, for graph builders: in which modes, of what kind, how far they are, and their last nodes."""

from __future__ import annotations

import enum
from typing import Any

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._streams.stream import Stream
from cuda_core_cffi.graph.definition import GraphDefinition
from cuda_core_cffi.graph.node_maker import NodeMaker

USUAL_ENDS = 16  # nodes that are asked for at first


class Mode(enum.StrEnum):
    """What threads may do, while a stream is captured, that could disturb the capture."""

    GLOBAL = "global"
    THREAD_LOCAL = "thread_local"
    RELAXED = "relaxed"


MODES: dict[str | None, int] = {
    None: lib.CU_STREAM_CAPTURE_MODE_RELAXED,
    Mode.GLOBAL: lib.CU_STREAM_CAPTURE_MODE_GLOBAL,
    Mode.THREAD_LOCAL: lib.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    Mode.RELAXED: lib.CU_STREAM_CAPTURE_MODE_RELAXED,
}


class Kind(enum.Enum):
    """What a builder captures."""

    PRIMARY = "a graph of its own"
    FORK = "a branch of another builder's graph"
    BODY = "a body of a conditional node"


class Phase(enum.Enum):
    """How far a builder is."""

    NEW = "begin_building was not called"
    BUILDING = "it is being built: call end_building first"
    ENDED = "it is built"
    FAILED = "its capture failed, and there is no graph; begin again with a new builder"


# Bound once: CPython 3.11 takes as long to find a member of an enumeration as for a call.
PRIMARY, FORK, BODY = Kind
NEW, BUILDING, ENDED, FAILED = Phase


class Capture(Handle):
    """What the driver captures: ended, if it is not over, when this goes. It has the graph until somebody asks."""

    __slots__ = ()

    _CTYPE = "CUstream"
    _NAME = "GraphBuilder"


class Tail(NodeMaker):
    """Adds nodes behind what a stream has captured."""

    __slots__ = ("_definition", "_stream")

    def __init__(self, definition: GraphDefinition, stream: Stream) -> None:
        self._definition, self._stream = definition, stream

    def _place(self) -> tuple[Any, tuple[int, ...]]:
        capacity = USUAL_ENDS
        while True:
            nodes, count = ffi.new("uint64_t[]", capacity), ffi.new("size_t *", capacity)
            status = lib.ccc_capture_ends(self._stream._c_handle, self._definition._c_handle, nodes, count)
            if status:
                raise self._stream._failure(status)
            if count[0] <= capacity:
                return self._definition, tuple(nodes[0 : count[0]])
            capacity = count[0]
