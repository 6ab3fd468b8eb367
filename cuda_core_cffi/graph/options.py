# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of graphs."""

from __future__ import annotations

import dataclasses
from typing import Any

from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi.typing import IsStreamType


@dataclasses.dataclass
class GraphCompleteOptions:
    """Options of an executable graph.

    Attributes
    ----------
    auto_free_on_launch : bool, optional
        Before each launch, free what allocation nodes gave in the last one and nothing has freed. Default False.
    upload_stream : Stream, optional
        Upload the graph to the device in this stream at once, rather than with its first launch.
    device_launch : bool, optional
        Let kernels launch the graph. Excludes ``auto_free_on_launch``. Default False.
    use_node_priority : bool, optional
        Run kernel nodes with their own priorities, not that of the stream. Default False.
    """

    auto_free_on_launch: bool = False
    upload_stream: IsStreamType | None = None
    device_launch: bool = False
    use_node_priority: bool = False


@dataclasses.dataclass
class GraphDebugPrintOptions:
    """What the driver writes of a graph besides nodes and edges.

    Attributes
    ----------
    verbose : bool, optional
        Everything. Default False, like all of these.
    runtime_types : bool, optional
        Structures as the runtime API has them.
    kernel_node_params, memcpy_node_params, memset_node_params, host_node_params, event_node_params : bool, optional
        The parameters of such nodes.
    ext_semas_signal_node_params, ext_semas_wait_node_params : bool, optional
        The same of nodes for external semaphores.
    kernel_node_attributes : bool, optional
        The attributes of kernel nodes.
    handles : bool, optional
        The handles of nodes and kernels.
    mem_alloc_node_params, mem_free_node_params, batch_mem_op_node_params : bool, optional
        The parameters of nodes for memory.
    extra_topo_info : bool, optional
        The numbers of edges.
    conditional_node_params : bool, optional
        The parameters of conditional nodes.
    """

    verbose: bool = False
    runtime_types: bool = False
    kernel_node_params: bool = False
    memcpy_node_params: bool = False
    memset_node_params: bool = False
    host_node_params: bool = False
    event_node_params: bool = False
    ext_semas_signal_node_params: bool = False
    ext_semas_wait_node_params: bool = False
    kernel_node_attributes: bool = False
    handles: bool = False
    mem_alloc_node_params: bool = False
    mem_free_node_params: bool = False
    batch_mem_op_node_params: bool = False
    extra_topo_info: bool = False
    conditional_node_params: bool = False


def debug_flags(options: GraphDebugPrintOptions) -> int:
    """Return the driver's flags for options."""
    flags: Any = 0
    for field in dataclasses.fields(options):
        if getattr(options, field.name):
            flags |= getattr(lib, f"CU_GRAPH_DEBUG_DOT_FLAGS_{field.name.upper()}")
    return int(flags)


def instantiate_flags(options: GraphCompleteOptions) -> int:
    """Return the driver's flags for options; raises for those that exclude each other."""
    if options.auto_free_on_launch and options.device_launch:
        raise ValueError("auto_free_on_launch and device_launch exclude each other")
    flags = 0 if options.upload_stream is None else int(lib.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
    for name in ("auto_free_on_launch", "device_launch", "use_node_priority"):
        if getattr(options, name):
            flags |= int(getattr(lib, f"CUDA_GRAPH_INSTANTIATE_FLAG_{name.upper()}"))
    return flags
