# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of nodes that fill, copy, allocate and free memory, and that write values to it and wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._lifetime.references import Operand
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.mem_op import MemoryOperation, read_operations
from cuda_core_cffi._memory.operands import operand
from cuda_core_cffi._memory.stream_values import fill_pattern
from cuda_core_cffi.graph import copies, parameters
from cuda_core_cffi.graph.nodes import Field, KnownNode
from cuda_core_cffi.graph.state import Record, check_member, node_classes
from cuda_core_cffi.typing import GraphMemoryType

if TYPE_CHECKING:
    from cuda_core_cffi._arrays.strided_memory_view import StridedMemoryView
    from cuda_core_cffi.texture import ArrayRegion, OpaqueArray


class MemsetNode(KnownNode):
    """A node that fills memory."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_MEMSET
    _STRUCTURE = "CUDA_MEMSET_NODE_PARAMS *"

    def _describe(self) -> str:
        native = self._read()
        width = "" if native.elementSize == 1 else f" elem={native.elementSize}"
        return f"dptr={native.dst:#x} value={native.value}{width}"

    def update(
        self,
        *,
        dst: Buffer | int | None = None,
        value: Any = None,
        width: int | None = None,
        height: int | None = None,
        pitch: int | None = None,
        dst_owner: Any = None,
    ) -> None:
        """Change what the node fills. Executables that exist are not affected.

        Parameters
        ----------
        dst, value, width, height, pitch, dst_owner
            As for :meth:`GraphDefinition.memset`. What is not given stays.

        Raises
        ------
        ValueError
            If ``dst_owner`` is given without an address.
        """
        native = self._read()
        if dst is None and dst_owner is not None:
            raise ValueError("dst_owner is for an address given as dst")
        target = present(self._record(), "dst", native.dst) if dst is None else operand(dst, dst_owner, "dst")
        pattern, element = (native.value, native.elementSize) if value is None else fill_pattern(value, None)
        found: parameters.Parameters[MemsetNode] = parameters.Parameters(self._TYPE)
        across = native.width if width is None else parameters.count_of("width", width)
        rows = native.height if height is None else parameters.count_of("height", height)
        parameters.set_region(found, target, pattern, element, across, rows, native.pitch if pitch is None else pitch)
        self._set(found)

    dptr = Field("dst", "The address.")
    value = Field("value", "The element that is repeated, as an integer.")
    element_size = Field("elementSize", "Bytes in an element: 1, 2 or 4.")
    width = Field("width", "Elements in a row.")
    height = Field("height", "Rows.")
    pitch = Field("pitch", "Bytes from one row to the next; of no meaning for one row.")


class MemcpyNode(KnownNode):
    """A node that copies memory and arrays."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_MEMCPY
    _STRUCTURE = "CUDA_MEMCPY3D *"

    def _describe(self) -> str:
        native = self._read()
        source, target = place_of(native, "src"), place_of(native, "dst")
        return f"dst={target[0]:#x}({target[1]}) src={source[0]:#x}({source[1]}) size={native.WidthInBytes}"

    def update(
        self,
        *,
        dst: Buffer | int | OpaqueArray | ArrayRegion | StridedMemoryView | None = None,
        src: Buffer | int | OpaqueArray | ArrayRegion | StridedMemoryView | None = None,
        size: int | None = None,
        dst_owner: Any = None,
        src_owner: Any = None,
    ) -> None:
        """Change what the node copies. Executables that exist are not affected.

        Parameters
        ----------
        dst, src, size, dst_owner, src_owner
            As for :meth:`GraphDefinition.memcpy`. What is not given stays. Where the node copies an array or several
            rows, or is to copy an array or a view, both ``dst`` and ``src`` are given.

        Raises
        ------
        ValueError
            If an owner is given without an address, or one operand without the other where both are needed.
        """
        native = self._read()
        if (dst is None and dst_owner is not None) or (src is None and src_owner is not None):
            raise ValueError("dst_owner and src_owner are for addresses given as dst and src")
        if dst is not None and src is not None and (size is not None or copies.has_shape(dst) or copies.has_shape(src)):
            self._set(copies.copy(dst, src, size, dst_owner, src_owner))
            return
        if copies.has_shape(dst) or copies.has_shape(src):
            raise ValueError("an array or a view is copied as a whole: give both dst and src")
        if not is_linear(native):
            raise ValueError(
                "this node copies several rows, or an array: give both dst and src, and a size unless one "
                "of them has a shape"
            )
        record = self._record()
        to, whence = place_of(native, "dst")[0], place_of(native, "src")[0]
        target = present(record, "dst", to) if dst is None else operand(dst, dst_owner, "dst")
        source = present(record, "src", whence) if src is None else operand(src, src_owner, "src")
        count = int(native.WidthInBytes) if size is None else parameters.count_of("size", size)
        self._set(copies.copy_bytes(target, source, count))

    @property
    def dst(self) -> int:
        """Where to: the address, or the handle of an opaque array."""
        return place_of(self._read(), "dst")[0]

    @property
    def src(self) -> int:
        """Where from: the address, or the handle of an opaque array."""
        return place_of(self._read(), "src")[0]

    @property
    def size(self) -> int:
        """Bytes."""
        native = self._read()
        return int(native.WidthInBytes * max(native.Height, 1) * max(native.Depth, 1))


class BatchMemOpNode(KnownNode):
    """A node that writes values to memory and waits for them."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP
    _STRUCTURE = "CUDA_BATCH_MEM_OP_NODE_PARAMS *"

    def _describe(self) -> str:
        return f"operations={self._read().count}"

    def update(self, operations: Sequence[MemoryOperation]) -> None:
        """Put other operations in place. Executables that exist are not affected.

        Parameters
        ----------
        operations : sequence of WriteValue, WaitValue, MemoryBarrier or FlushRemoteWrites
            As for :meth:`GraphDefinition.batch_mem_op`: all operations of the node.
        """
        check_member(self)
        self._set(parameters.batch_mem_op(operations))

    @property
    def operations(self) -> tuple[MemoryOperation, ...]:
        """The operations, as the driver has them: with addresses in place of buffers."""
        native = self._read()
        return read_operations(native.paramArray, native.count)


class AllocNode(KnownNode):
    """A node that allocates memory."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_MEM_ALLOC
    _STRUCTURE = "CUDA_MEM_ALLOC_NODE_PARAMS *"

    def _describe(self) -> str:
        native = self._read()
        return f"dptr={native.dptr:#x} size={native.bytesize}"

    dptr = Field("dptr", "The address of the memory, the same in every run.")
    bytesize = Field("bytesize", "Bytes.")

    @property
    def device_id(self) -> int:
        """The ordinal of the device that allocates."""
        return int(self._read().poolProps.location.id)

    @property
    def memory_type(self) -> GraphMemoryType:
        """``"device"``, ``"host"`` or ``"managed"``."""
        properties = self._read().poolProps
        if properties.allocType == lib.CCC_ALLOCATION_TYPE_MANAGED:
            return GraphMemoryType.MANAGED
        on_device = properties.location.type == lib.CU_MEM_LOCATION_TYPE_DEVICE
        return GraphMemoryType.DEVICE if on_device else GraphMemoryType.HOST

    @property
    def peer_access(self) -> tuple[int, ...]:
        """The ordinals of other devices that may use the memory."""
        native = self._read()
        rights = [native.accessDescs[index] for index in range(native.accessDescCount)]
        return tuple(
            right.location.id
            for right in rights
            if right.flags != lib.CU_MEM_ACCESS_FLAGS_PROT_NONE
            and right.location.type == lib.CU_MEM_LOCATION_TYPE_DEVICE
        )


class FreeNode(KnownNode):
    """A node that frees what an allocation node has allocated."""

    __slots__ = ()

    _TYPE = lib.CU_GRAPH_NODE_TYPE_MEM_FREE
    _STRUCTURE = "CUdeviceptr *"

    def _describe(self) -> str:
        return f"dptr={self.dptr:#x}"

    @property
    def dptr(self) -> int:
        """The address."""
        return int(self._read()[0])


def present(record: Record, name: str, address: int) -> Operand:
    """Return what a node uses now, with what keeps it."""
    for item in record.operands.get(name, ()):
        if item.address == address:
            return item
    return Operand(int(address))


def place_of(native: Any, side: str) -> tuple[int, str]:
    """Return one side of a copy: the address, and D for device or H for host; or an array's handle, and A."""
    kind = getattr(native, f"{side}MemoryType")
    if kind == lib.CU_MEMORYTYPE_ARRAY:
        return int(ffi.cast("uintptr_t", getattr(native, f"{side}Array"))), "A"
    if kind == lib.CU_MEMORYTYPE_HOST:
        return int(ffi.cast("uintptr_t", getattr(native, f"{side}Host"))), "H"
    return int(getattr(native, f"{side}Device")), "D"


def is_linear(native: Any) -> bool:
    """Tell whether a copy is of consecutive bytes, between addresses."""
    offsets = [getattr(native, f"{side}{part}") for side in ("src", "dst") for part in ("XInBytes", "Y", "Z")]
    arrays = lib.CU_MEMORYTYPE_ARRAY in (native.srcMemoryType, native.dstMemoryType)
    return not arrays and native.Height <= 1 and native.Depth <= 1 and not any(offsets)


for cls in (AllocNode, BatchMemOpNode, FreeNode, MemcpyNode, MemsetNode):
    node_classes[int(cls._TYPE)] = cls
