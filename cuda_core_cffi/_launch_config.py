# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How a kernel is launched: grid, block and the rest."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._ffi import ffi, lib

__all__ = ["LaunchConfig"]

LARGEST = 2**32 - 1
FIELDS = ("grid", "cluster", "block", "shmem_size", "is_cooperative", "programmatic_stream_serialization")


class LaunchConfig:
    """The shape of a launch.

    Parameters
    ----------
    grid : int or tuple of int
        Blocks in the grid, in one to three dimensions. With ``cluster``, clusters in the grid.
    cluster : int or tuple of int, optional
        Blocks in a cluster. Needs compute capability 9.0.
    block : int or tuple of int
        Threads in a block.
    shmem_size : int, optional
        Dynamic shared memory for each block, in bytes. Default 0.
    is_cooperative : bool, optional
        Launch so that all blocks are resident at once and can synchronise. Default False.
    programmatic_stream_serialization : bool, optional
        Let the kernel start before its predecessor in the stream has ended. Default False.

    Raises
    ------
    ValueError
        If ``grid`` or ``block`` is missing, or a dimension is less than 1.

    Notes
    -----
    Configurations compare and hash by value. The native structure is made once and kept, so that one configuration
    launched many times costs nothing; assigning a field makes it anew.
    """

    __slots__ = ("__weakref__", "_native_cache", *(f"_{name}" for name in FIELDS))

    _grid: tuple[int, int, int]
    _cluster: tuple[int, int, int] | None
    _block: tuple[int, int, int]
    _shmem_size: int
    _is_cooperative: bool
    _programmatic_stream_serialization: bool
    _native_cache: Any

    def __init__(
        self,
        grid: int | tuple[int, ...] | None = None,
        cluster: int | tuple[int, ...] | None = None,
        block: int | tuple[int, ...] | None = None,
        shmem_size: int | None = None,
        is_cooperative: bool = False,
        programmatic_stream_serialization: bool = False,
    ) -> None:
        self._native_cache = None
        self._grid = dimensions("grid", grid)
        self._cluster = None if cluster is None else dimensions("cluster", cluster)
        self._block = dimensions("block", block)
        self._shmem_size = size("shmem_size", 0 if shmem_size is None else shmem_size)
        self._is_cooperative = bool(is_cooperative)
        self._programmatic_stream_serialization = bool(programmatic_stream_serialization)

    def __repr__(self) -> str:
        return f"LaunchConfig({', '.join(f'{name}={getattr(self, name)!r}' for name in FIELDS)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LaunchConfig):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        raise TypeError("LaunchConfig cannot be pickled")

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, f"_{name}") for name in FIELDS)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks, or with ``cluster`` clusters, in x, y and z."""
        return self._grid

    @grid.setter
    def grid(self, value: tuple[int, ...]) -> None:
        self._grid = dimensions("grid", only_tuple("grid", value))
        self._native_cache = None

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """Blocks in a cluster, in x, y and z; None for no clusters."""
        return self._cluster

    @cluster.setter
    def cluster(self, value: int | tuple[int, ...] | None) -> None:
        self._cluster = None if value is None else dimensions("cluster", value)
        self._native_cache = None

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads in a block, in x, y and z."""
        return self._block

    @block.setter
    def block(self, value: tuple[int, ...]) -> None:
        self._block = dimensions("block", only_tuple("block", value))
        self._native_cache = None

    @property
    def shmem_size(self) -> int:
        """Dynamic shared memory for each block, in bytes."""
        return self._shmem_size

    @shmem_size.setter
    def shmem_size(self, value: int) -> None:
        self._shmem_size = size("shmem_size", value)
        self._native_cache = None

    @property
    def is_cooperative(self) -> bool:
        """Whether all blocks are resident at once."""
        return self._is_cooperative

    @is_cooperative.setter
    def is_cooperative(self, value: bool) -> None:
        self._is_cooperative = bool(value)
        self._native_cache = None

    @property
    def programmatic_stream_serialization(self) -> bool:
        """Whether the kernel may start before its predecessor in the stream has ended."""
        return self._programmatic_stream_serialization

    @programmatic_stream_serialization.setter
    def programmatic_stream_serialization(self, value: bool) -> None:
        self._programmatic_stream_serialization = bool(value)
        self._native_cache = None

    @property
    def _native(self) -> Any:
        """The configuration as a ``ccc_config *``."""
        if self._native_cache is None:
            self._native_cache = make_native(self)
        return self._native_cache


def make_native(config: LaunchConfig) -> Any:
    """Return the native structure for a configuration."""
    native = ffi.new("ccc_config *")
    driver = native.driver
    cluster = config.cluster or (1, 1, 1)
    driver.gridDimX, driver.gridDimY, driver.gridDimZ = (
        blocks("grid", count * factor) for count, factor in zip(config.grid, cluster)
    )
    driver.blockDimX, driver.blockDimY, driver.blockDimZ = config.block
    driver.sharedMemBytes = config.shmem_size
    count = 0
    if config.cluster is not None:
        attribute = native.attributes[count]
        attribute.id = lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dimension = attribute.value.clusterDim
        dimension.x, dimension.y, dimension.z = config.cluster
        count += 1
    if config.is_cooperative:
        attribute = native.attributes[count]
        attribute.id = lib.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        count += 1
    if config.programmatic_stream_serialization:
        attribute = native.attributes[count]
        attribute.id = lib.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        count += 1
    driver.numAttrs = count
    return native


def dimensions(name: str, value: int | tuple[int, ...] | None) -> tuple[int, int, int]:
    """Return one to three dimensions as three."""
    if value is None:
        raise ValueError(f"{name} is required")
    given = value if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"{name} must have 1 to 3 dimensions, not {len(given)}")
    x, y, z = (*(blocks(name, item) for item in given), 1, 1)[:3]
    return x, y, z


def blocks(name: str, value: object) -> int:
    """Return a dimension, which is an integer of at least 1."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int or a tuple of ints, not {type(value).__name__} {value!r}")
    number: int = value.__index__()
    if not 1 <= number <= LARGEST:
        raise ValueError(f"every dimension of {name} must be 1 to {LARGEST}, not {number}")
    return number


def size(name: str, value: object) -> int:
    """Return a size in bytes that the driver can take."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    number: int = value.__index__()
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{name} must be 0 to {LARGEST} bytes, not {number}")
    return number


def only_tuple(name: str, value: object) -> tuple[int, ...]:
    """Return a tuple as it is; the fields of a configuration are tuples."""
    if not isinstance(value, tuple):
        raise TypeError(f"{name} must be assigned a tuple, not {type(value).__name__}")
    return value
