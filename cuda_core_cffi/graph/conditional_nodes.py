# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of nodes that run other graphs as a condition says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi.graph.nodes import KnownNode
from cuda_core_cffi.graph.state import check_member, conditional_classes, definition_of, node_classes
from cuda_core_cffi.typing import GraphConditionalType

if TYPE_CHECKING:
    from cuda_core_cffi.graph.definition import GraphDefinition


class ConditionalNode(KnownNode):
    """A node that runs bodies as a condition says.

    Those that were added here are of a subclass. Of the others, such as those that another library captured, drivers
    before CUDA 13.2 tell nothing.
    """

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_CONDITIONAL

    def _describe(self) -> str:
        condition = self.condition
        return "" if condition is None else f"condition={condition._handle:#x}"

    @property
    def condition(self) -> GraphCondition | None:
        """The condition; None if it is not known."""
        return self._record().condition

    @property
    def cond_type(self) -> GraphConditionalType | None:
        """``"if"``, ``"while"`` or ``"switch"``; None if it is not known."""
        return self._record().kind

    @property
    def branches(self) -> tuple[GraphDefinition, ...]:
        """The bodies, each a :class:`GraphDefinition`; none if they are not known."""
        definition = check_member(self)._definition
        return tuple(definition_of(definition, inner) for inner in definition._state.inner.get(self._handle, ()))

    def _body(self, number: int) -> GraphDefinition:
        """Return a body, or raise where they are not known, or the graph is gone."""
        bodies = self.branches
        if number >= len(bodies):
            check_member(self)  # another thread may have closed the graph
            raise RuntimeError(f"the bodies of this {type(self).__name__} are not known")
        return bodies[number]


class IfNode(ConditionalNode):
    """A node that runs its body if a condition is not 0."""

    __slots__ = ()

    @property
    def then(self) -> GraphDefinition:
        """The body, a :class:`GraphDefinition`."""
        return self._body(0)


class IfElseNode(ConditionalNode):
    """A node that runs one body if a condition is not 0, and another if it is."""

    __slots__ = ()

    @property
    def then(self) -> GraphDefinition:
        """The body for a condition that is not 0, a :class:`GraphDefinition`."""
        return self._body(0)

    @property
    def else_(self) -> GraphDefinition:
        """The body for 0, a :class:`GraphDefinition`."""
        return self._body(1)


class WhileNode(ConditionalNode):
    """A node that runs its body again and again while a condition is not 0."""

    __slots__ = ()

    @property
    def body(self) -> GraphDefinition:
        """The body, a :class:`GraphDefinition`."""
        return self._body(0)


class SwitchNode(ConditionalNode):
    """A node that runs the body whose number a condition is."""

    __slots__ = ()

    def _describe(self) -> str:
        return f"{super()._describe()} branches={len(self.branches)}"


node_classes[int(ConditionalNode._TYPE)] = ConditionalNode
conditional_classes.update(
    {
        (GraphConditionalType.IF, False): IfNode,
        (GraphConditionalType.IF, True): IfElseNode,
        (GraphConditionalType.WHILE, False): WhileNode,
        (GraphConditionalType.SWITCH, False): SwitchNode,
    }
)
