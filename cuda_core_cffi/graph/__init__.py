# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs: work that is described once and launched many times."""

from __future__ import annotations

from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi.graph.builder import GraphBuilder
from cuda_core_cffi.graph.definition import GraphDefinition
from cuda_core_cffi.graph.edges import AdjacencySetProxy
from cuda_core_cffi.graph.executable import Graph
from cuda_core_cffi.graph.memory_nodes import AllocNode, BatchMemOpNode, FreeNode, MemcpyNode, MemsetNode
from cuda_core_cffi.graph.node import GraphNode
from cuda_core_cffi.graph.nodes import (
    ChildGraphNode,
    ConditionalNode,
    EmptyNode,
    EventRecordNode,
    EventWaitNode,
    HostCallbackNode,
    IfElseNode,
    IfNode,
    KernelNode,
    SwitchNode,
    WhileNode,
)
from cuda_core_cffi.graph.options import GraphCompleteOptions, GraphDebugPrintOptions
from cuda_core_cffi.graph.views import (
    ExecutableBatchMemOpNode,
    ExecutableChildGraphNode,
    ExecutableEventRecordNode,
    ExecutableEventWaitNode,
    ExecutableGraphNode,
    ExecutableHostCallbackNode,
    ExecutableKernelNode,
    ExecutableMemcpyNode,
    ExecutableMemsetNode,
)

__all__ = [
    "AdjacencySetProxy",
    "AllocNode",
    "BatchMemOpNode",
    "ChildGraphNode",
    "ConditionalNode",
    "EmptyNode",
    "EventRecordNode",
    "EventWaitNode",
    "ExecutableBatchMemOpNode",
    "ExecutableChildGraphNode",
    "ExecutableEventRecordNode",
    "ExecutableEventWaitNode",
    "ExecutableGraphNode",
    "ExecutableHostCallbackNode",
    "ExecutableKernelNode",
    "ExecutableMemcpyNode",
    "ExecutableMemsetNode",
    "FreeNode",
    "Graph",
    "GraphBuilder",
    "GraphCompleteOptions",
    "GraphCondition",
    "GraphDebugPrintOptions",
    "GraphDefinition",
    "GraphNode",
    "HostCallbackNode",
    "IfElseNode",
    "IfNode",
    "KernelNode",
    "MemcpyNode",
    "MemsetNode",
    "SwitchNode",
    "WhileNode",
]
