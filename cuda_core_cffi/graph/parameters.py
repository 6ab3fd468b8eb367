# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters of nodes: from what a program gives to the driver's structures, and what has to be kept for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cuda_core_cffi._code.kernel import Kernel
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import address_of, integer
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._launching.attributes import check_device
from cuda_core_cffi._launching.bindless import Bindless
from cuda_core_cffi._launching.config import LaunchConfig
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi._launching.launch import prepare
from cuda_core_cffi._lifetime.references import NOTHING, Operand, make_references
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.mem_op import MemoryOperation, WaitValue, WriteValue, native_operations
from cuda_core_cffi._memory.operands import operand
from cuda_core_cffi._memory.peer_access import ordinals_of
from cuda_core_cffi._memory.resource import whole_size
from cuda_core_cffi._memory.stream_values import ALTERNATIVES, fill_pattern
from cuda_core_cffi._streams.callbacks import host_function
from cuda_core_cffi._streams.event import Event
from cuda_core_cffi.graph.allocated import allocated
from cuda_core_cffi.graph.state import GraphState, Record
from cuda_core_cffi.typing import GraphConditionalType, GraphMemoryType

if TYPE_CHECKING:
    from cuda_core_cffi._core.ffi import CData
    from cuda_core_cffi.graph.memory_nodes import AllocNode, BatchMemOpNode, FreeNode, MemsetNode
    from cuda_core_cffi.graph.nodes import HostCallbackNode, KernelNode

NodeType = TypeVar("NodeType")

NOT_FOR_NODES = ("programmatic_stream_serialization", "programmatic_event", "launch_completion_event")
MANAGED = lib.CCC_ALLOCATION_TYPE_MANAGED
LOCATIONS = {
    GraphMemoryType.DEVICE: (lib.CU_MEM_ALLOCATION_TYPE_PINNED, lib.CU_MEM_LOCATION_TYPE_DEVICE),
    GraphMemoryType.HOST: (lib.CU_MEM_ALLOCATION_TYPE_PINNED, lib.CU_MEM_LOCATION_TYPE_HOST),
    GraphMemoryType.MANAGED: (MANAGED, lib.CU_MEM_LOCATION_TYPE_DEVICE),
}
CONDITIONALS = {
    GraphConditionalType.IF: lib.CU_GRAPH_COND_TYPE_IF,
    GraphConditionalType.WHILE: lib.CU_GRAPH_COND_TYPE_WHILE,
    GraphConditionalType.SWITCH: lib.CU_GRAPH_COND_TYPE_SWITCH,
}
EVENT_RECORD: int = lib.CU_GRAPH_NODE_TYPE_EVENT_RECORD
EVENT = ffi.typeof("CUevent")
PARAMETERS = ffi.typeof("CUgraphNodeParams *")
LARGEST_COUNT = 2**32 - 1
LARGEST_SIZE = 2**64 - 1
_new = ffi.new


class Parameters(Generic[NodeType]):
    """What one node, of a class of nodes, is given.

    Attributes
    ----------
    kind : int
        The driver's type of the node.
    native : CUgraphNodeParams *
        For the driver.
    record : Record
        What is known of the node afterwards.
    operands : dict of str to sequence of Operand
        What is kept for the node: the record's.
    attributes : ccc_attributes *
        Of a kernel node; NULL for those that it has.
    child : ccc_handle *
        The graph to embed, or NULL.
    """

    attributes: Any = NOTHING
    child: Any = NOTHING
    token = 0

    def __init__(self, kind: int, *alive: Any) -> None:
        self.kind = kind
        self.native = native = _new(PARAMETERS)
        native.type = kind
        self.operands: dict[str, Sequence[Operand]] = {}
        self.record = Record(self.operands)
        self._alive = alive  # memory that the structure points to

    def keep(self) -> CData:
        """Return a new keep of what the node uses, which the next call into C takes over."""
        kept: CData = make_references(self.operands.values(), self.token)
        return kept


def check_config(config: object) -> LaunchConfig:
    """Return a configuration that nodes can have, or raise."""
    if not isinstance(config, LaunchConfig):
        raise TypeError(f"config must be a LaunchConfig, not {type(config).__name__}")
    given = config._given
    for name in NOT_FOR_NODES:
        if name in given:
            raise ValueError(
                f"{name} is for launches in streams, not for nodes: a GraphBuilder that captures such a launch makes "
                "the edges that it stands for"
            )
    if given:
        check_device(registry.device(None), given)
    return config


def kernel_call(config: object, kernel: object, args: Sequence[Any]) -> Parameters[KernelNode]:
    """Return the parameters of a kernel node."""
    config = check_config(config)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
    kernel._function()  # raises if it is closed
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"args must be a tuple of the kernel's arguments, not {type(args).__name__}")
    packer = prepare(config, kernel, tuple(args))
    found = packed_call(config, kernel, packer.target, packer(*args))
    set_config(found, config, {})
    found.operands["args"] = [
        arg._operand() if isinstance(arg, Bindless) else operand(arg, None, "a kernel argument")
        for arg in args
        if isinstance(arg, (Bindless, Buffer))
    ]
    return found


def packed_call(config: LaunchConfig, kernel: Kernel, target: Any, data: bytes) -> Parameters[KernelNode]:
    """Return the parameters of a kernel node whose arguments are packed, but for the configuration's attributes.

    Parameters
    ----------
    target : ccc_target *
        What is known of the kernel's parameters.
    data : bytes
        The arguments.
    """
    blob = ffi.new("char[]", data or b"\0")
    pointers = ffi.new("void *[]", max(target.count, lib.CCC_LEAST_POINTERS))
    found: Parameters[KernelNode] = Parameters(lib.CU_GRAPH_NODE_TYPE_KERNEL, blob, pointers, target)
    native = config._native
    if native.shared:
        kernel.attributes._allow_dynamic_shared(native.shared)
    lib.ccc_graph_launch_params(found.native, target, native, blob, pointers)
    found.operands["kernel"] = [Operand(kernel._driver_handle, (kernel._c_handle,))]
    found.record.library, found.record.symbol = kernel._library, kernel._symbol
    return found


def set_config(found: Parameters[Any], config: LaunchConfig, before: Mapping[int, bytes]) -> None:
    """Take everything from a configuration; what it says nothing of becomes what it was ``before``."""
    native = config._native
    wanted = {int(item.id): bytes(ffi.buffer(ffi.addressof(item, "value"))) for item in attributes_of(native)}
    record = found.record
    record.given = config._given
    window = config.access_policy_window
    found.operands["config"] = [] if window is None else [operand(window.buffer, None, "access_policy_window.buffer")]
    if not wanted and not before:
        return
    found.attributes = ffi.new("ccc_attributes *")
    for index, (number, value) in enumerate({**before, **wanted}.items()):
        item = found.attributes.values[index]
        item.id = number
        ffi.memmove(ffi.addressof(item, "value"), value, len(value))
        found.attributes.count = index + 1


def attributes_of(native: Any) -> list[Any]:
    """Return the attributes in a ``ccc_config``."""
    return [native.attributes[index] for index in range(native.driver.numAttrs)]


def attributes_before(found: Parameters[Any], known: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return what attributes were before the first of them was set, once the driver has set them."""
    had = dict(known)
    if found.attributes:
        for index in range(found.attributes.count):
            number = int(found.attributes.values[index].id)
            value = ffi.addressof(found.attributes.before[index])
            size = value.clusterDim
            if number == lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION and not size.x:
                size.x = size.y = size.z = 1  # once there are clusters, they can only be made of one block again
            had.setdefault(number, bytes(ffi.buffer(value)))
    return had


def count_of(name: str, value: Any) -> int:
    """Return a number of elements, bytes or branches: at least 1."""
    if type(value) is int and 1 <= value <= LARGEST_SIZE:
        return value
    number = integer(value, name)
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")
    if number > LARGEST_SIZE:
        raise OverflowError(f"{name} must fit in 64 bits, not {number}")
    return number


def set_memory(dst: Any, value: Any, width: Any, height: Any, pitch: Any, dst_owner: Any) -> Parameters[MemsetNode]:
    """Return the parameters of a memset node."""
    pattern, element = fill_pattern(value, None)
    found: Parameters[MemsetNode] = Parameters(lib.CU_GRAPH_NODE_TYPE_MEMSET)
    target = operand(dst, dst_owner, "dst")
    set_region(found, target, pattern, element, count_of("width", width), count_of("height", height), pitch)
    return found


def set_region(
    found: Parameters[Any], target: Operand, pattern: int, element: int, width: int, height: int, pitch: Any
) -> None:
    """Put what a memset node writes, and where, into its parameters."""
    stride = integer(pitch, "pitch")
    if stride < 0 or (height > 1 and stride < width * element):
        raise ValueError(f"pitch must be at least the {width * element} bytes of a row, not {stride}")
    if height * max(stride, 1) + width * element >= 2**64:
        raise OverflowError(f"{height} rows of {stride} bytes do not fit in 64-bit addresses")
    target.check_capacity((height - 1) * stride + width * element, "dst")
    found.native.memset = (target.address, stride, pattern, element, width, height)
    found.operands["dst"] = (target,)


def batch_mem_op(operations: Sequence[MemoryOperation]) -> Parameters[BatchMemOpNode]:
    """Return the parameters of a node of stream memory operations, on the current device."""
    what = "batch_mem_op"
    native = native_operations(operations, what, lambda: registry.device(None).properties)
    if not operations:
        raise ValueError("batch_mem_op: a node needs at least one operation")
    found: Parameters[BatchMemOpNode] = Parameters(lib.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, native)
    found.native.memOp.count, found.native.memOp.paramArray = len(operations), native
    kept: list[Operand] = []
    for index, operation in enumerate(operations):
        if isinstance(operation, WriteValue | WaitValue):
            target = operand(operation.memory, operation.owner, f"operations[{index}].memory")
            if target.address in allocated:
                raise ValueError(f"{what}: operations[{index}] cannot use memory of a pool{ALTERNATIVES}")
            kept.append(target)
            if isinstance(operation.memory, Buffer):
                place = native[index].writeValue if isinstance(operation, WriteValue) else native[index].waitValue
                place.address += target.address
    found.operands["memory"] = kept
    return found


def allocation(size: Any, device: Any, memory_type: Any, peer_access: Iterable[Any] | None) -> Parameters[AllocNode]:
    """Return the parameters of an allocation node."""
    try:
        wanted = GraphMemoryType.DEVICE if memory_type is None else GraphMemoryType(memory_type)
    except ValueError:
        names = ", ".join(map(repr, map(str, GraphMemoryType)))
        raise ValueError(f"memory_type must be one of {names}, not {memory_type!r}") from None
    ordinal = registry.device(device).device_id  # None means the current one
    peers = sorted(ordinals_of(peer_access or ()))
    rights = ffi.new("CUmemAccessDesc[]", len(peers))
    for right, peer in zip(rights, peers):
        right.location.type, right.location.id = lib.CU_MEM_LOCATION_TYPE_DEVICE, peer
        right.flags = lib.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    found: Parameters[AllocNode] = Parameters(lib.CU_GRAPH_NODE_TYPE_MEM_ALLOC, rights)
    native = found.native.alloc
    pool = native.poolProps
    pool.allocType, pool.location.type = LOCATIONS[wanted]
    pool.location.id = 0 if wanted is GraphMemoryType.HOST else ordinal
    pool.handleTypes = lib.CU_MEM_HANDLE_TYPE_NONE
    native.bytesize = count_of("size", whole_size(size))
    if peers:
        native.accessDescs, native.accessDescCount = rights, len(peers)
    return found


def deallocation(dptr: Any) -> Parameters[FreeNode]:
    """Return the parameters of a free node."""
    found: Parameters[FreeNode] = Parameters(lib.CU_GRAPH_NODE_TYPE_MEM_FREE)
    try:
        found.native.free.dptr = address_of(dptr)
    except TypeError:
        message = f"dptr must be an address, as AllocNode.dptr gives it, not {type(dptr).__name__}"
        raise TypeError(message) from None
    return found


def event(kind: int, value: object) -> Parameters[Any]:
    """Return the parameters of a node that records an event or waits for it."""
    if not isinstance(value, Event):
        raise TypeError(f"event must be an Event, not {type(value).__name__}")
    handle = value._driver_handle
    if not handle:
        raise RuntimeError("this Event is closed")
    found: Parameters[Any] = Parameters(kind)
    part = found.native.eventRecord if kind == EVENT_RECORD else found.native.eventWait
    part.event = ffi.cast(EVENT, handle)
    found.operands["event"] = (Operand(handle, (value._c_handle,)),)
    return found


def host_call(fn: Any, user_data: Any) -> Parameters[HostCallbackNode]:
    """Return the parameters of a host callback node."""
    function = host_function(fn, user_data)
    found: Parameters[HostCallbackNode] = Parameters(lib.CU_GRAPH_NODE_TYPE_HOST)
    found.native.host.fn = ffi.cast("CUhostFn", function.address)
    found.native.host.userData = ffi.cast("void *", function.data)
    found.token = function.token
    return found


def conditional(root: GraphState, condition: object, kind: GraphConditionalType, count: int) -> Parameters[Any]:
    """Return the parameters of a conditional node."""
    if not isinstance(condition, GraphCondition):
        raise TypeError(f"condition must be a GraphCondition, not {type(condition).__name__}")
    if condition._root is not root:
        raise ValueError("the condition belongs to another graph; make it with create_condition of this one")
    count = count_of("count", count)
    if count > LARGEST_COUNT:
        raise OverflowError(f"count must be at most {LARGEST_COUNT}, not {count}")
    found: Parameters[Any] = Parameters(lib.CU_GRAPH_NODE_TYPE_CONDITIONAL)
    native = found.native.conditional
    native.handle, native.type, native.size = condition._handle, CONDITIONALS[kind], count
    found.record.condition, found.record.kind = condition, kind
    found.record.has_else = kind is GraphConditionalType.IF and count > 1
    return found
