# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Occupancy: how many blocks of a kernel fit on a device."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cuda_core_cffi._core.c_functions import Prototype, c_function_address
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import InUse
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._streams.stream import accept_stream
from cuda_core_cffi.typing import IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi._code.kernel import Kernel

BLOCK_TO_SHARED_MEMORY: Final = Prototype("size_t(*)(int)", "c_size_t", "c_int")
INT_MAX: Final = 2**31 - 1
SIZE_MAX: Final = 2**64 - 1


class MaxPotentialBlockSizeOccupancyResult(NamedTuple):
    """A launch that fills the device."""

    min_grid_size: int
    """The fewest blocks that do."""
    max_block_size: int
    """Threads in each of them."""


class KernelOccupancy(Uncopyable):
    """How many blocks of a kernel fit on the current device, and which launches fill it."""

    __slots__ = ("_kernel",)

    _NOT_COPIED_BECAUSE = "it shows a kernel of this process"
    _kernel: Kernel

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("KernelOccupancy cannot be constructed directly; use Kernel.occupancy")

    def max_active_blocks_per_multiprocessor(self, block_size: int, dynamic_shared_memory_size: int) -> int:
        """Return how many blocks a multiprocessor can run at a time.

        Parameters
        ----------
        block_size : int
            Threads in a block.
        dynamic_shared_memory_size : int
            Dynamic shared memory of a block, in bytes.

        Returns
        -------
        int
            Blocks.

        Raises
        ------
        TypeError, ValueError, OverflowError
            If a number is none, too small or too large.
        CUDAError
            If no context is current, or the driver cannot tell.
        """
        threads = bounded(block_size, "block_size", 1)
        size = bounded(dynamic_shared_memory_size, "dynamic_shared_memory_size", 0, SIZE_MAX)
        out = ffi.new("int *")
        call = lib.cuOccupancyMaxActiveBlocksPerMultiprocessor
        with InUse(self._kernel):
            check(call(out, self._function(), threads, size), "cuOccupancyMaxActiveBlocksPerMultiprocessor")
        return int(out[0])

    def max_potential_block_size(
        self, dynamic_shared_memory_needed: Any, block_size_limit: int
    ) -> MaxPotentialBlockSizeOccupancyResult:
        """Return the launch that fills the device best.

        Parameters
        ----------
        dynamic_shared_memory_needed : int or C function
            Dynamic shared memory of a block, in bytes; or, where that depends on the block size, a C function
            ``size_t f(int block_size)``: a CFFI function pointer, a ctypes function declared as
            ``ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)``, or cuda-bindings' ``CUoccupancyB2DSize``.
        block_size_limit : int
            The most threads in a block; 0 for as many as the kernel allows.

        Returns
        -------
        MaxPotentialBlockSizeOccupancyResult
            The fewest blocks that fill the device, and the size of a block.

        Raises
        ------
        TypeError, ValueError, OverflowError
            If an argument is of another type, too small or too large.
        CUDAError
            If no context is current, or the driver cannot tell.
        """
        limit = bounded(block_size_limit, "block_size_limit", 0)
        size, function = 0, ffi.NULL
        address = block_to_shared_memory(dynamic_shared_memory_needed)
        if address is None:
            size = bounded(dynamic_shared_memory_needed, "dynamic_shared_memory_needed", 0, SIZE_MAX)
        else:
            function = ffi.cast("CUoccupancyB2DSize", address)
        out = ffi.new("int[2]")
        call = lib.cuOccupancyMaxPotentialBlockSize
        with InUse(self._kernel):
            check(call(out, out + 1, self._function(), function, size, limit), "cuOccupancyMaxPotentialBlockSize")
        return MaxPotentialBlockSizeOccupancyResult(out[0], out[1])

    def available_dynamic_shared_memory_per_block(self, num_blocks_per_multiprocessor: int, block_size: int) -> int:
        """Return how much dynamic shared memory a block may use.

        Parameters
        ----------
        num_blocks_per_multiprocessor : int
            Blocks that shall run on a multiprocessor at a time.
        block_size : int
            Threads in a block.

        Returns
        -------
        int
            Bytes.

        Raises
        ------
        TypeError, ValueError, OverflowError
            If a number is none, too small or too large.
        CUDAError
            If no context is current, or the driver cannot tell.
        """
        blocks = bounded(num_blocks_per_multiprocessor, "num_blocks_per_multiprocessor", 1)
        threads = bounded(block_size, "block_size", 1)
        out = ffi.new("size_t *")
        call = lib.cuOccupancyAvailableDynamicSMemPerBlock
        with InUse(self._kernel):
            check(call(out, self._function(), blocks, threads), "cuOccupancyAvailableDynamicSMemPerBlock")
        return int(out[0])

    def max_potential_cluster_size(self, config: Any, *, stream: IsStreamType) -> int:
        """Return the size of the largest cluster that can be launched.

        Parameters
        ----------
        config : LaunchConfig
            The launch; its cluster is ignored.
        stream : Stream
            The stream of the launch.

        Returns
        -------
        int
            Blocks in a cluster.

        Raises
        ------
        TypeError
            If `config` or `stream` is something else.
        CUDAError
            If the device has no clusters, or the driver cannot tell.
        """
        return self._clusters("cuOccupancyMaxPotentialClusterSize", "max_potential_cluster_size", config, stream)

    def max_active_clusters(self, config: Any, *, stream: IsStreamType) -> int:
        """Return how many clusters the device can run at a time.

        Parameters
        ----------
        config : LaunchConfig
            The launch.
        stream : Stream
            The stream of the launch.

        Returns
        -------
        int
            Clusters.

        Raises
        ------
        TypeError
            If `config` or `stream` is something else.
        CUDAError
            If the device has no clusters, or the driver cannot tell.
        """
        return self._clusters("cuOccupancyMaxActiveClusters", "max_active_clusters", config, stream)

    @classmethod
    def _create(cls, kernel: Kernel) -> KernelOccupancy:
        self = cls.__new__(cls)
        self._kernel = kernel
        return self

    def _function(self) -> Any:
        return self._kernel._function("CUfunction")

    def _clusters(self, call: str, what: str, config: Any, stream: object) -> int:
        if not isinstance(config, registry.launch_config):
            raise TypeError(f"{what}: config must be a LaunchConfig, not {type(config).__name__}")
        accepted = accept_stream(stream, what)
        native = config._native
        launch = ffi.new("CUlaunchConfig *", native.driver)
        launch.attrs = native.attributes
        out = ffi.new("int *")
        with InUse(self._kernel, accepted):
            launch.hStream = accepted.cdata
            check(getattr(lib, call)(out, self._function(), launch), call)
        return int(out[0])


def block_to_shared_memory(value: Any) -> int | None:
    """Return the address of a function from the size of a block to its shared memory; None for what is none."""
    address = c_function_address(value, BLOCK_TO_SHARED_MEMORY)
    bindings = sys.modules.get("cuda.bindings.driver")
    if address is not None or bindings is None or not isinstance(value, bindings.CUoccupancyB2DSize):
        return address
    # Made with _ptr=address, getPtr() is the function, and int() reads its machine code. Made with the function as the
    # value, getPtr() is a place in the object, and int() reads the function from there.
    address = int(value.getPtr())
    size = getattr(type(value), "__basicsize__", 0)  # PyPy has none, and no cuda-bindings
    if id(value) <= address < id(value) + size:
        address = int(value)
    if not address:
        raise ValueError("the function is a NULL pointer")
    return address


def bounded(value: Any, name: str, least: int, most: int = INT_MAX) -> int:
    """Return ``value`` as an integer between two bounds."""
    number = integer(value, name)
    if number < least:
        raise ValueError(f"{name} must be {least} or more, not {number}")
    if number > most:
        raise OverflowError(f"{name} must be {most} or less, not {number}")
    return number
