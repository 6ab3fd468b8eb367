# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that graphs allocate and free themselves, each time they run."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core.answers import attribute, shown
from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import InUse
from cuda_core_cffi._core.integers import address_of, integer
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.allocation import allocate_with
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.resource import MemoryResource, whole_size
from cuda_core_cffi._streams.stream import accept_stream
from cuda_core_cffi.typing import DevicePointerType, IsStreamType


class GraphMemoryResourceAttributes(Uncopyable):
    """What the driver tells about the memory of graphs on a device. Each read asks the driver; values are in bytes."""

    __slots__ = ("_device_id",)

    _NOT_COPIED_BECAUSE = "it shows memory of this process"
    _PREFIX = "CU_GRAPH_MEM_ATTR_"
    _device_id: int

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(f"{type(self).__name__} cannot be constructed directly; use the resource's attributes")

    def __repr__(self) -> str:
        return shown(self)

    @classmethod
    def _create(cls, device_id: int) -> GraphMemoryResourceAttributes:
        self = cls.__new__(cls)
        self._device_id = device_id
        return self

    def _read(self, number: int) -> int:
        value = ffi.new("cuuint64_t *")
        check(lib.cuDeviceGetGraphMemAttribute(self._device_id, number, value), "cuDeviceGetGraphMemAttribute")
        return int(value[0])

    def _reset(self, name: str, number: int, value: Any) -> None:
        if integer(value, name) != 0:
            raise AttributeError(f"{name} can only be set to 0, which makes it the current value, not to {value}")
        zero = ffi.new("cuuint64_t *")
        check(lib.cuDeviceSetGraphMemAttribute(self._device_id, number, zero), "cuDeviceSetGraphMemAttribute")

    reserved_mem_current = attribute(int, "Bytes that the driver holds for graphs now.")

    @property
    def reserved_mem_high(self) -> int:
        """The most bytes that the driver has held for graphs. Set it to 0 to begin anew."""
        return self._read(lib.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)

    @reserved_mem_high.setter
    def reserved_mem_high(self, value: int) -> None:
        self._reset("reserved_mem_high", lib.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, value)

    used_mem_current = attribute(int, "Bytes that graphs need now.")

    @property
    def used_mem_high(self) -> int:
        """The most bytes that graphs have needed. Set it to 0 to begin anew."""
        return self._read(lib.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)

    @used_mem_high.setter
    def used_mem_high(self, value: int) -> None:
        self._reset("used_mem_high", lib.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, value)


class GraphMemoryResource(MemoryResource):
    """Memory that graphs allocate, for streams that are being captured. There is one object for each device.

    An allocation becomes a node of the graph, which allocates the memory each time it runs, always at the same address.
    Closing the buffer during the capture adds a node that frees the memory. Where a graph does not free what it has
    allocated, the memory can be used after the launch, until the buffer is closed, or until the next launch if the
    graph was completed with ``auto_free_on_launch``. Without either, it cannot be launched again.

    Parameters
    ----------
    device_id : Device or int
        The device.

    Raises
    ------
    ValueError
        If there is no such device.
    """

    __slots__ = ("_device_id",)

    _access = (True, False)
    _IS_UNIFORM = True
    _is_pool = True

    def __new__(cls, device_id: Any) -> GraphMemoryResource:
        ordinal: int = registry.device(device_id).device_id
        known = _resources.get(ordinal)
        if known is not None:
            return known
        self = super().__new__(cls)
        self._device_id = ordinal
        return _resources.setdefault(ordinal, self)  # another thread may have been first

    def __repr__(self) -> str:
        return f"<GraphMemoryResource device={self._device_id}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Refer to the device: there is one object for each, which is its own copy."""
        return (GraphMemoryResource, (self._device_id,))

    def allocate(self, size: int, stream: IsStreamType | None = None) -> Buffer:
        """Allocate a buffer in a stream that is being captured.

        Parameters
        ----------
        size : int
            Size in bytes. 0 gives a buffer without memory.
        stream : GraphBuilder or Stream
            What is captured in this stream from now on may use the memory. Not optional.

        Returns
        -------
        Buffer
            The memory: it is there while the graph runs. Its graph is kept as long as the buffer.

        Raises
        ------
        RuntimeError
            If the stream is not being captured.
        CUDAError
            If the driver refuses, such as in the body of a conditional node.
        """
        queue = accept_stream(stream, "GraphMemoryResource.allocate")
        count = whole_size(size)

        def allocate() -> Buffer | None:
            return make(Buffer, lib.ccc_graph_memory_allocate, self._device_id, queue._c_handle, count)

        return allocate_with(allocate, count, self, queue)

    def deallocate(self, ptr: DevicePointerType, size: int, stream: IsStreamType | None = None) -> None:
        """Free memory by address; buffers do so by themselves.

        Parameters
        ----------
        ptr : int
            The address.
        size : int
            The size in bytes.
        stream : GraphBuilder or Stream
            Where it is being captured, the graph frees the memory. Otherwise what the last launch has allocated is
            freed, when the work now in this stream is done. Not optional.
        """
        queue = accept_stream(stream, "GraphMemoryResource.deallocate")
        address = 0 if ptr is None else address_of(ptr)
        with InUse(queue):
            if address:
                check(lib.cuMemFreeAsync(address, queue.cdata), "cuMemFreeAsync")

    def close(self) -> None:
        """Do nothing: the resource is the driver's, and everybody's."""

    def trim(self) -> None:
        """Give memory that the driver holds for graphs, and none of them uses now, back to the system."""
        check(lib.cuDeviceGraphMemTrim(self._device_id), "cuDeviceGraphMemTrim")

    @property
    def attributes(self) -> GraphMemoryResourceAttributes:
        """How much memory graphs use, and how much is held for them."""
        return GraphMemoryResourceAttributes._create(self._device_id)


_resources: dict[int, GraphMemoryResource] = {}
