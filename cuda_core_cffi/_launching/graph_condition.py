# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The conditions of graphs, which are kernel arguments."""

from __future__ import annotations

from cuda_core_cffi._core.copying import Uncopyable


class GraphCondition(Uncopyable):
    """A number that decides, each time a graph runs, what its conditional nodes do.

    Conditions come from :meth:`GraphDefinition.create_condition`. Kernels of the graph set them: the condition is
    passed as an argument, of the type ``cudaGraphConditionalHandle``, and given to ``cudaGraphSetConditional``.
    """

    __slots__ = ("__weakref__", "_handle", "_root")

    _NOT_COPIED_BECAUSE = "it belongs to a graph of this process"
    _handle: int
    _root: object  # what is known of the graph that it belongs to

    def __init__(self) -> None:
        self._handle = 0
        self._root = None

    def __repr__(self) -> str:
        return f"<GraphCondition handle={self._handle:#x}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphCondition):
            return NotImplemented
        return self._handle == other._handle

    def __hash__(self) -> int:
        return hash((GraphCondition, self._handle))

    @classmethod
    def _from_handle(cls, handle: int, root: object) -> GraphCondition:
        self = cls()
        self._handle, self._root = handle, root
        return self

    @property
    def handle(self) -> int:
        """The driver's handle as an integer; 0 for one that belongs to no graph."""
        return self._handle
