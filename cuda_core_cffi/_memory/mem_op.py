# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Stream memory operations as values, and batches of them in streams."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import address_of, integer
from cuda_core_cffi._core.options import member
from cuda_core_cffi._memory.access import explain_access
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.stream_values import (
    CONDITIONS,
    FLUSH,
    check_address,
    check_flush,
    check_place,
    check_value,
    check_width,
    wait_flags,
)
from cuda_core_cffi._streams.stream import accept_stream
from cuda_core_cffi.typing import IsStreamType, StreamMemoryBarrierType, StreamWaitValueType

LARGEST_BATCH = 255  # cuda.h: "must be less than 256"
BARRIERS = {
    StreamMemoryBarrierType.SYSTEM: lib.CU_STREAM_MEMORY_BARRIER_TYPE_SYS,
    StreamMemoryBarrierType.DEVICE: lib.CU_STREAM_MEMORY_BARRIER_TYPE_GPU,
}
WAITS = {32: lib.CU_STREAM_MEM_OP_WAIT_VALUE_32, 64: lib.CU_STREAM_MEM_OP_WAIT_VALUE_64}
WRITES = {32: lib.CU_STREAM_MEM_OP_WRITE_VALUE_32, 64: lib.CU_STREAM_MEM_OP_WRITE_VALUE_64}


@dataclasses.dataclass(frozen=True)
class WriteValue:
    """Write an integer to memory: :meth:`Buffer.write_value` as part of a batch or of a graph.

    Attributes
    ----------
    memory : Buffer or int
        The buffer, or an address that a device can use.
    value : int
        The integer, 0 to 2 ** bits - 1.
    offset : int, optional
        Where to, in bytes from the start of the buffer or from the address. Default 0.
    bits : int, optional
        How many bits are written: 32, which is the default, or 64.
    owner : object, optional
        For an address in a graph: what is kept as long as the graph may use it.
    """

    memory: Buffer | int
    value: int
    _: dataclasses.KW_ONLY
    offset: int = 0
    bits: int = 32
    owner: object = None


@dataclasses.dataclass(frozen=True)
class WaitValue:
    """Wait for an integer in memory: :meth:`Buffer.wait_value` as part of a batch or of a graph.

    Attributes
    ----------
    memory : Buffer or int
        The buffer, or an address that a device can use.
    value : int
        What the integer in memory is compared to, 0 to 2 ** bits - 1.
    condition : StreamWaitValueType, optional
        ``"geq"``, which is the default, ``"eq"``, ``"and"`` or ``"nor"``.
    offset : int, optional
        Where the integer is, in bytes from the start of the buffer or from the address. Default 0.
    bits : int, optional
        How many bits it has: 32, which is the default, or 64.
    flush : bool, optional
        Whether remote writes are flushed when the wait ends. Default False.
    owner : object, optional
        For an address in a graph: what is kept as long as the graph may use it.
    """

    memory: Buffer | int
    value: int
    condition: StreamWaitValueType | str = StreamWaitValueType.GEQ
    _: dataclasses.KW_ONLY
    offset: int = 0
    bits: int = 32
    flush: bool = False
    owner: object = None


@dataclasses.dataclass(frozen=True)
class MemoryBarrier:
    """Make the writes that came before visible before those that come after.

    Attributes
    ----------
    scope : StreamMemoryBarrierType, optional
        To whom: ``"system"``, which is the default, also to the host and other devices; ``"device"`` to this one.
    """

    scope: StreamMemoryBarrierType | str = StreamMemoryBarrierType.SYSTEM


@dataclasses.dataclass(frozen=True)
class FlushRemoteWrites:
    """Flush remote writes that have reached the device, as ``WaitValue(..., flush=True)`` does after its wait."""


MemoryOperation = WriteValue | WaitValue | MemoryBarrier | FlushRemoteWrites
"""What :func:`batch_mem_op` and nodes of graphs take."""


def batch_mem_op(stream: IsStreamType, operations: Sequence[MemoryOperation]) -> None:
    """Give a stream several memory operations, which it does in their order, in one call to the driver.

    Parameters
    ----------
    stream : Stream
        The stream. While it is captured, the batch becomes one node of the graph.
    operations : sequence of WriteValue, WaitValue, MemoryBarrier or FlushRemoteWrites
        At most 255 of them.

    Raises
    ------
    TypeError, OverflowError, ValueError
        If an operation is wrong; a note on the error says which. Then the stream is given none of them.
    UnavailableError
        If the device lacks an operation.
    RuntimeError
        If the stream or a buffer is closed.

    Notes
    -----
    This is ``cuStreamBatchMemOp``. See ``docs/stream_memory_operations.md`` for waits that do not end.
    """
    what = "batch_mem_op"
    queue = accept_stream(stream, what)
    native = native_operations(operations, what, lambda: queue.device.properties)
    if not operations:
        return
    buffers: list[Buffer] = []
    c_handles: list[Any] = []
    for index, operation in enumerate(operations):
        memory = operation.memory if isinstance(operation, WriteValue | WaitValue) else None
        if getattr(operation, "owner", None) is not None:
            raise ValueError(f"{what}: operations[{index}]: owner is for graphs; what a stream uses is yours to keep")
        if isinstance(memory, Buffer):
            buffers.append(memory)
        c_handles.append(memory._c_handle if isinstance(memory, Buffer) else ffi.NULL)
    status = lib.ccc_batch_mem_op(native, c_handles, len(c_handles), queue._c_handle)
    if status:
        error = buffers[0]._failure(status, queue, *buffers) if buffers else queue._failure(status)
        raise explain_access(error, queue, *buffers)


def native_operations(operations: Any, what: str, properties: Callable[[], Any]) -> Any:
    """Return operations as an array of the driver's structures; those in buffers have offsets for addresses.

    Messages name ``what`` they are for; ``properties`` returns those of the device.
    """
    if isinstance(operations, str) or not isinstance(operations, Sequence):
        raise TypeError(f"{what}: operations must be a sequence of operations, not {type(operations).__name__}")
    if len(operations) > LARGEST_BATCH:
        raise ValueError(f"{what} takes at most {LARGEST_BATCH} operations, not {len(operations)}")
    native = ffi.new("CUstreamBatchMemOpParams[]", len(operations))
    for index, operation in enumerate(operations):
        try:
            fill_operation(native[index], operation, what, properties)
        except Exception as error:
            error.add_note(f"in operations[{index}]")
            raise
    return native


def fill_operation(native: Any, operation: Any, what: str, properties: Callable[[], Any]) -> None:
    """Put one operation into the driver's structure."""
    if isinstance(operation, WriteValue):
        part, native.operation = native.writeValue, WRITES.get(operation.bits, 0)
        fill_place(part, operation, what, properties)
    elif isinstance(operation, WaitValue):
        part, native.operation = native.waitValue, WAITS.get(operation.bits, 0)
        fill_place(part, operation, what, properties)
        part.flags = wait_flags(operation.condition, operation.flush, what, properties)
    elif isinstance(operation, MemoryBarrier):
        native.operation = lib.CU_STREAM_MEM_OP_BARRIER
        native.memoryBarrier.flags = BARRIERS[member(StreamMemoryBarrierType, operation.scope, "scope")]
    elif isinstance(operation, FlushRemoteWrites):
        check_flush(what, properties)
        native.operation = lib.CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES
    else:
        raise TypeError(
            f"{what}: an operation must be a WriteValue, WaitValue, MemoryBarrier or FlushRemoteWrites, not "
            f"{type(operation).__name__}"
        )


def fill_place(part: Any, operation: WriteValue | WaitValue, what: str, properties: Callable[[], Any]) -> None:
    """Put the place and the value of an operation into the driver's structure."""
    memory, bits = operation.memory, operation.bits
    check_width(bits, what, properties)
    if isinstance(memory, Buffer):
        part.address = check_place(memory, operation.offset, bits, what, writes=isinstance(operation, WriteValue))
    else:
        part.address = plain_address(memory, operation.offset, bits, what)
    part.value64 = check_value(operation.value, bits)  # which on all platforms of CUDA begins with the 32 bits


def plain_address(memory: Any, offset: int, bits: int, what: str) -> int:
    """Return the address of an integer at an offset from an address."""
    if isinstance(memory, bool):
        raise TypeError(f"{what}: memory must be a Buffer or an address, not bool")
    try:
        address = address_of(memory) + integer(offset, "offset")
    except TypeError:
        raise TypeError(f"{what}: memory must be a Buffer or an address, not {type(memory).__name__}") from None
    if not 0 <= address <= 2**64 - bits // 8:
        raise OverflowError(f"{what}: {bits // 8} bytes at {address:#x} do not fit in 64-bit addresses")
    check_address(address, bits, what)
    return address


def read_operations(native: Any, count: int) -> tuple[MemoryOperation, ...]:
    """Return the operations in an array of the driver's structures, with addresses in place of buffers."""
    return tuple(read_operation(native[index]) for index in range(count))


def read_operation(native: Any) -> MemoryOperation:
    """Return one operation, as the driver has it."""
    kind = native.operation
    for bits in WRITES:
        value = "value" if bits == 32 else "value64"
        if kind == WRITES[bits]:
            part = native.writeValue
            return WriteValue(int(part.address), int(getattr(part, value)), bits=bits)
        if kind == WAITS[bits]:
            part = native.waitValue
            flags = int(part.flags)
            condition = next(name for name, number in CONDITIONS.items() if number == flags & ~FLUSH)
            flush = bool(flags & FLUSH)
            return WaitValue(int(part.address), int(getattr(part, value)), condition, bits=bits, flush=flush)
    if kind == lib.CU_STREAM_MEM_OP_BARRIER:
        flags = int(native.memoryBarrier.flags)
        return MemoryBarrier(next(scope for scope, number in BARRIERS.items() if number == flags))
    if kind == lib.CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return FlushRemoteWrites()
    raise ValueError(f"the node has an operation that this package does not know: {kind}")
