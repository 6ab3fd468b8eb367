# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Values that streams fill memory with, write to it, and wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core.errors import UnavailableError
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import member

if TYPE_CHECKING:  # which brings all enumerations
    from cuda_core_cffi.typing import StreamWaitValueType

FILL_WIDTHS = (1, 2, 4)  # bytes
WIDTHS = (32, 64)
LONG = 64
CONDITIONS = {
    "geq": lib.CU_STREAM_WAIT_VALUE_GEQ,
    "eq": lib.CU_STREAM_WAIT_VALUE_EQ,
    "and": lib.CU_STREAM_WAIT_VALUE_AND,
    "nor": lib.CU_STREAM_WAIT_VALUE_NOR,
}
ALTERNATIVES = (
    ", such as Device.allocate gives, or of a graph: the driver refuses it. Take page-locked memory "
    "(LegacyPinnedMemoryResource) or virtual memory (VirtualMemoryResource)"
)
NOR: int = lib.CU_STREAM_WAIT_VALUE_NOR
FLUSH: int = lib.CU_STREAM_WAIT_VALUE_FLUSH


def check_place(memory: Any, offset: int, bits: int, what: str, *, writes: bool) -> int:
    """Return the offset of an integer in a buffer, or raise unless a stream can use what is there for ``what``."""
    start = integer(offset, "offset")
    if memory.is_closed:
        raise memory._failure(lib.CCC_CLOSED)
    if start < 0 or start + bits // 8 > memory._size:
        raise ValueError(f"{what}: {bits // 8} bytes at offset {start} are not in a buffer of {memory._size} bytes")
    check_address(memory._driver_handle + start, bits, what)
    if memory._mr is None and not memory.is_device_accessible:
        raise ValueError(f"{what} needs memory that a device can use, not ordinary memory of the host")
    if memory.is_managed:
        raise ValueError(f"{what} cannot use managed memory, which the driver moves: take device or pinned memory")
    if memory._mr is not None and memory._mr._is_pool:
        raise ValueError(f"{what} cannot use memory of a pool{ALTERNATIVES}")
    if writes and memory._is_read_only:
        raise ValueError(f"{what}: the memory is read-only")
    return start


def check_address(address: int, bits: int, what: str) -> None:
    """Raise unless an address is a multiple of the bytes of an integer."""
    if address % (bits // 8):
        raise ValueError(f"{what}: the address {address:#x} is not a multiple of {bits // 8} bytes")


def check_width(bits: int, what: str, properties: Callable[[], Any]) -> None:
    """Raise unless an integer can have so many bits; `properties` returns those of the device."""
    if type(bits) is not int or bits not in WIDTHS:
        raise ValueError(f"{what}: bits must be 32 or 64, not {bits!r}")
    if bits == LONG and not properties().can_use_64_bit_stream_mem_ops:
        raise UnavailableError(f"{what}: the device has no stream memory operations of 64 bits")


def check_value(value: int, bits: int) -> int:
    """Return an integer that fits in so many bits, or raise."""
    number = integer(value, "value")
    if not 0 <= number < 1 << bits:
        raise OverflowError(f"{number} does not fit in {bits} bits: 0 to {(1 << bits) - 1}")
    return number


def wait_flags(condition: StreamWaitValueType | str, flush: bool, what: str, properties: Callable[[], Any]) -> int:
    """Return the driver's flags of a wait, or raise where the device has no such wait.

    Its properties are only asked for if the wait is of a rarer kind.
    """
    from cuda_core_cffi.typing import StreamWaitValueType  # only those who wait for values need it

    flags: int = CONDITIONS[member(StreamWaitValueType, condition, "condition")]
    if flags == NOR and not properties().can_use_stream_wait_value_nor:
        raise UnavailableError(f"{what}: the device has no waits with the condition 'nor'")
    if flush:
        check_flush(what, properties)
        flags |= FLUSH
    return flags


def check_flush(what: str, properties: Callable[[], Any]) -> None:
    """Raise unless the device can flush remote writes."""
    if not properties().can_flush_remote_writes:
        raise UnavailableError(f"{what}: the device cannot flush remote writes (can_flush_remote_writes is False)")


def fill_pattern(value: Any, width: int | None) -> tuple[int, int]:
    """Return the value to fill with as an integer, and its width in bytes."""
    if isinstance(value, int):
        width = 1 if width is None else width
        if type(width) is not int or width not in FILL_WIDTHS:
            raise ValueError(f"width must be 1, 2 or 4 bytes, not {width!r}")
        if not 0 <= value < 1 << 8 * width:
            raise OverflowError(f"{value} does not fit in {width} byte{'s' * (width > 1)}: 0 to {(1 << 8 * width) - 1}")
        return value, width
    try:
        pattern = bytes(memoryview(value).cast("B"))
    except TypeError:
        raise TypeError(
            "value must be an int, or 1, 2 or 4 bytes in an object with the buffer protocol, not "
            f"{type(value).__name__}"
        ) from None
    if len(pattern) not in FILL_WIDTHS:
        raise ValueError(f"a pattern must be 1, 2 or 4 bytes, not {len(pattern)}")
    if width is not None and width != len(pattern):
        raise ValueError(f"width is {width}, but the pattern has {len(pattern)} bytes")
    return int.from_bytes(pattern, "little"), len(pattern)
