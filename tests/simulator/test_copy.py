# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from types import ModuleType

import pytest
from sim_arrays import ARRAY, DEVICE, HOST, UNIFIED, Copy2D
from sim_driver import (
    Driver,
    byref,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    ctypes,
    offset,
    run_alone,
)

PATTERN = bytes(range(256)) * 4


class Copy3D(ctypes.Structure):
    _fields_ = [
        (f"{side}_{name}", kind)
        for side in ("src", "dst")
        for name, kind in (
            ("x", c_size_t),
            ("y", c_size_t),
            ("z", c_size_t),
            ("lod", c_size_t),
            ("type", c_uint),
            ("host", c_void_p),
            ("device", c_uint64),
            ("array", c_void_p),
            ("reserved", c_void_p),
            ("pitch", c_size_t),
            ("height", c_size_t),
        )
    ] + [("width", c_size_t), ("height", c_size_t), ("depth", c_size_t)]


def test_every_direction_of_a_copy(cu: Driver) -> None:
    source, target = ctypes.create_string_buffer(PATTERN, 1024), ctypes.create_string_buffer(1024)
    one, two, size = cu.alloc(1024), cu.alloc(1024), c_size_t(1024)
    cu.cuMemcpyHtoD_v2(one, source, size)
    cu.cuMemcpyDtoD_v2(two, one, size)
    cu.cuMemcpyDtoH_v2(target, two, size)
    assert target.raw == PATTERN
    cu.cuMemsetD8_v2(two, 0, size)
    cu.cuMemcpyHtoDAsync_v2(one, source, size, None)
    cu.cuMemcpyDtoDAsync_v2(two, one, size, None)
    cu.cuMemcpyDtoHAsync_v2(target, two, size, None)
    assert target.raw == PATTERN
    cu.cuMemcpy(c_uint64(ctypes.addressof(target)), two, size)
    cu.cuMemcpyAsync(one, c_uint64(ctypes.addressof(target)), size, None)
    assert cu.read(one, 1024) == PATTERN
    context = cu.out(c_void_p, "cuCtxGetCurrent")
    cu.cuMemcpyPeer(two, context, one, context, size)
    cu.cuMemcpyPeerAsync(two, context, one, context, size, None)
    for pointer in (one, two):
        cu.cuMemFree_v2(pointer)


def test_ordinary_memory_may_be_copied_to_ordinary_memory(cu: Driver) -> None:
    source, target = ctypes.create_string_buffer(PATTERN, 1024), ctypes.create_string_buffer(1024)
    cu.cuMemcpy(c_uint64(ctypes.addressof(target)), c_uint64(ctypes.addressof(source)), c_size_t(1024))
    assert target.raw == PATTERN


@pytest.mark.parametrize(("bits", "kind"), [(8, ctypes.c_uint8), (16, ctypes.c_uint16), (32, ctypes.c_uint32)])
def test_fills(cu: Driver, bits: int, kind: type) -> None:
    pointer, value = cu.alloc(1024), 0x12345678 & (1 << bits) - 1
    expected = bytes(kind(value)) * 16
    getattr(cu, f"cuMemsetD{bits}_v2")(pointer, value, c_size_t(16))
    assert cu.read(pointer, len(expected)) == expected
    cu.cuMemsetD8_v2(pointer, 0, c_size_t(1024))
    getattr(cu, f"cuMemsetD{bits}Async")(pointer, value, c_size_t(16), None)
    assert cu.read(pointer, len(expected)) == expected
    cu.cuMemsetD8_v2(pointer, 0, c_size_t(1024))
    getattr(cu, f"cuMemsetD2D{bits}_v2")(pointer, c_size_t(128), value, c_size_t(3), c_size_t(4))
    row = bytes(kind(value)) * 3
    assert cu.read(pointer, 512) == row.ljust(128, b"\0") * 4
    getattr(cu, f"cuMemsetD2D{bits}Async")(pointer, c_size_t(128), 0, c_size_t(3), c_size_t(4), None)
    assert cu.read(pointer, 512) == bytes(512)
    cu.cuMemFree_v2(pointer)


def test_the_source_of_a_pageable_copy_may_change_at_once(cu: Driver) -> None:
    stream, pointer = cu.stream(), cu.alloc(1024)
    gate = cu.block(stream)
    source = ctypes.create_string_buffer(PATTERN, 1024)
    cu.cuMemcpyHtoDAsync_v2(pointer, source, c_size_t(1024), stream)
    ctypes.memset(source, 0, 1024)
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert cu.read(pointer, 1024) == PATTERN
    cu.cuMemFree_v2(pointer)
    cu.cuStreamDestroy_v2(stream)


def test_the_source_of_a_pinned_copy_is_read_in_stream_order(cu: Driver) -> None:
    stream, pointer, source = cu.stream(), cu.alloc(4), cu.pinned(4)
    gate = cu.block(stream)
    cu.cuMemcpyHtoDAsync_v2(pointer, source, c_size_t(4), stream)
    source[:] = b"late"
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert cu.read(pointer, 4) == b"late"
    cu.cuMemFree_v2(pointer)
    cu.cuMemFreeHost(source)
    cu.cuStreamDestroy_v2(stream)


def test_a_copy_into_ordinary_memory_returns_when_it_is_done(cu: Driver) -> None:
    stream, pointer, target = cu.stream(), cu.alloc(4), ctypes.create_string_buffer(4)
    gate = cu.block(stream)
    cu.cuMemsetD8Async(pointer, 3, c_size_t(4), stream)
    threading.Timer(0.05, gate.open).start()
    cu.cuMemcpyDtoHAsync_v2(target, pointer, c_size_t(4), stream)
    assert target.raw == b"\3" * 4
    cu.cuMemFree_v2(pointer)
    cu.cuStreamDestroy_v2(stream)


@pytest.mark.parametrize("synchronous", [True, False])
def test_rectangles(cu: Driver, synchronous: bool) -> None:
    source = ctypes.create_string_buffer(PATTERN, 1024)
    pointer = cu.alloc(4096)
    cu.cuMemsetD8_v2(pointer, 255, c_size_t(4096))
    copy = Copy2D(width=5, height=3, src_type=HOST, src_host=ctypes.addressof(source), src_pitch=32, src_x=2, src_y=1)
    copy.dst_type, copy.dst_device, copy.dst_pitch, copy.dst_x, copy.dst_y = DEVICE, pointer.value, 64, 4, 2
    if synchronous:
        cu.cuMemcpy2D_v2(byref(copy))
    else:
        cu.cuMemcpy2DAsync_v2(byref(copy), None)
    data = cu.read(pointer, 4096)
    for row in range(3):
        start = (row + 2) * 64 + 4
        assert data[start - 1 : start + 6] == b"\xff" + PATTERN[(row + 1) * 32 + 2 :][:5] + b"\xff"
    assert data.count(255) >= 4096 - 15
    copy.src_type = ARRAY
    assert cu.status("cuMemcpy2D_v2", byref(copy)) == "INVALID_VALUE"
    copy.src_type, copy.src_pitch = HOST, 3
    assert cu.status("cuMemcpy2DUnaligned_v2", byref(copy)) == "INVALID_VALUE"
    cu.cuMemFree_v2(pointer)


def test_boxes(cu: Driver) -> None:
    one, two = cu.alloc(8 * 8 * 8), cu.alloc(8 * 8 * 8)
    source = ctypes.create_string_buffer(bytes(n % 251 for n in range(512)), 512)
    cu.cuMemcpyHtoD_v2(one, source, c_size_t(512))
    cu.cuMemsetD8_v2(two, 255, c_size_t(512))
    copy = Copy3D(width=3, height=2, depth=2, src_type=UNIFIED, src_device=one.value, src_pitch=8, src_height=8)
    copy.src_x, copy.src_y, copy.src_z = 1, 2, 3
    copy.dst_type, copy.dst_device, copy.dst_pitch, copy.dst_height, copy.dst_z = DEVICE, two.value, 8, 8, 5
    cu.cuMemcpy3D_v2(byref(copy))
    data = cu.read(two, 512)
    for z in range(2):
        for y in range(2):
            at, there = (z + 5) * 64 + y * 8, (z + 3) * 64 + (y + 2) * 8 + 1
            assert data[at : at + 3] == source.raw[there : there + 3]
    assert data.count(255) >= 512 - 12
    for pointer in (one, two):
        cu.cuMemFree_v2(pointer)


class Attributes(ctypes.Structure):
    _fields_ = [("order", c_int), ("hints", c_int * 4), ("flags", c_uint)]


@pytest.mark.parametrize(
    ("attributes", "valid"),
    [
        *(((order, (0, 0, 0, 0), 0), 1 <= order <= 3) for order in range(5)),
        *(((1, (0, 0, 0, 0), flags), flags <= 1) for flags in (0, 1, 2, 99)),
        *(((1, (kind, 0, 0, 0), 0), kind <= 4) for kind in (1, 2, 3, 4, 5, 77)),
        *(((1, (0, 0, kind, 0), 0), kind <= 4) for kind in (1, 2, 3, 4, 5, 77)),
        *(((1, hints, 0), False) for hints in ((1, 7, 0, 0), (0, 0, 1, -1))),
        *(((1, hints, 0), True) for hints in ((2, 7, 0, 0), (0, 0, 3, 99))),
    ],
)
def test_a_batch_with_attributes_that_an_h200_refuses_is_refused(cu: Driver, attributes, valid) -> None:
    order, hints, flags = attributes
    stream, source, target = cu.stream(), cu.alloc(64), cu.alloc(64)
    to, come, size = c_uint64(target.value), c_uint64(source.value), c_size_t(64)
    given = Attributes(order, (c_int * 4)(*hints), flags)
    batch = (byref(to), byref(come), byref(size), c_size_t(1), byref(given), byref(c_size_t(0)), c_size_t(1), stream)
    assert cu.status("cuMemcpyBatchAsync_v2", *batch) == ("SUCCESS" if valid else "INVALID_VALUE")
    cu.cuStreamSynchronize(stream)
    for pointer in (source, target):
        cu.cuMemFree_v2(pointer)
    cu.cuStreamDestroy_v2(stream)


@pytest.mark.parametrize(
    ("order", "size", "late"),
    [(1, 64, None), (1, 1 << 17, None), (2, 64, False), (2, 1 << 17, False), (3, 64, False), (3, 1 << 17, True)],
)
def test_the_source_of_a_batch_is_read_when_its_order_allows(cu: Driver, order, size, late) -> None:
    """What was seen on an H200 with pageable memory; but there `during_api_call` above 64 KiB reads late, too."""
    stream, target, opened = cu.stream(), cu.alloc(size), threading.Event()
    source = ctypes.create_string_buffer(b"\1" * size, size)
    wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait(60) and None)
    cu.cuLaunchHostFunc(stream, wait, None)
    if late is None:  # the call returns when the copy is done
        threading.Timer(0.05, opened.set).start()
    to, come = c_uint64(target.value), c_uint64(ctypes.addressof(source))
    cu.cuMemcpyBatchAsync_v2(
        byref(to), byref(come), byref(c_size_t(size)), c_size_t(1), byref(Attributes(order)), byref(c_size_t(0)),
        c_size_t(1), stream,
    )  # fmt: skip
    assert opened.is_set() == (late is None)
    ctypes.memset(source, 2, size)
    opened.set()
    cu.cuStreamSynchronize(stream)
    assert cu.read(target, size) == (b"\2" if late else b"\1") * size
    cu.cuMemFree_v2(target)
    cu.cuStreamDestroy_v2(stream)


def test_batches(cu: Driver) -> None:
    stream = cu.stream()
    sources = [ctypes.create_string_buffer(bytes([n]) * 64, 64) for n in range(3)]
    targets = [cu.alloc(64) for _ in range(3)]
    to = (c_uint64 * 3)(*(target.value for target in targets))
    come = (c_uint64 * 3)(*(ctypes.addressof(source) for source in sources))
    sizes, attributes, first = (c_size_t * 3)(64, 64, 64), Attributes(order=1), (c_size_t * 1)(0)
    batch = (to, come, sizes, c_size_t(3), byref(attributes), first, c_size_t(1))
    cu.cuMemcpyBatchAsync_v2(*batch, stream)
    failed = c_size_t()
    cu.cuMemcpyBatchAsync(*batch, byref(failed), stream)
    cu.cuStreamSynchronize(stream)
    assert [cu.read(target, 64) for target in targets] == [source.raw for source in sources]
    assert cu.status("cuMemcpyBatchAsync_v2", *batch, None) == "INVALID_VALUE"
    for target in targets:
        cu.cuMemFree_v2(target)
    cu.cuStreamDestroy_v2(stream)


def test_copies_out_of_bounds_fail_and_are_reported(cu: Driver, sim: ModuleType) -> None:
    pointer, source = cu.alloc(1000), ctypes.create_string_buffer(2000)
    assert cu.status("cuMemcpyHtoD_v2", pointer, source, c_size_t(1001)) == "INVALID_VALUE"
    assert cu.status("cuMemsetD8Async", offset(pointer, 999), 0, c_size_t(2), None) == "INVALID_VALUE"
    assert [(report.kind, report.allocation_size) for report in sim.reports()] == [("out of bounds", 1000)] * 2
    cu.cuMemFree_v2(pointer)


def test_copies_of_freed_memory_fail_and_are_reported(cu: Driver, sim: ModuleType) -> None:
    pointer, source = cu.alloc(1000), ctypes.create_string_buffer(2000)
    cu.cuMemFree_v2(pointer)
    assert cu.status("cuMemcpyHtoD_v2", pointer, source, c_size_t(10)) == "INVALID_VALUE"
    assert cu.status("cuMemcpy", c_uint64(ctypes.addressof(source)), pointer, c_size_t(10)) == "INVALID_VALUE"
    assert [report.kind for report in sim.reports()] == ["use after free"] * 2
    assert "freed by cuMemFree_v2" in sim.reports()[0].message


def test_wrong_operands(cu: Driver) -> None:
    pointer, heap = cu.alloc(64), ctypes.create_string_buffer(64)
    address, size = c_uint64(ctypes.addressof(heap)), c_size_t(16)
    assert cu.status("cuMemcpyHtoD_v2", address, heap, size) == "INVALID_VALUE"
    assert cu.status("cuMemcpyHtoD_v2", pointer, None, size) == "INVALID_VALUE"
    assert cu.status("cuMemcpyDtoD_v2", pointer, address, size) == "INVALID_VALUE"
    assert cu.status("cuMemcpyDtoH_v2", heap, address, size) == "INVALID_VALUE"
    assert cu.status("cuMemsetD8_v2", address, 0, size) == "INVALID_VALUE"
    assert cu.status("cuMemsetD32_v2", offset(pointer, 1), 0, c_size_t(1)) == "INVALID_VALUE"
    cu.cuMemcpyHtoD_v2(c_uint64(0x1234), None, c_size_t(0))
    cu.cuMemsetD8_v2(c_uint64(0x1234), 0, c_size_t(0))
    cu.cuMemFree_v2(pointer)


def test_copies_between_devices() -> None:
    printed = run_alone(
        """
        one = cu.start(0)
        a = cu.alloc(64)
        cu.cuMemsetD8_v2(a, 7, c_size_t(64))
        two = cu.start(1)
        b = cu.alloc(64)
        cu.cuMemcpyPeer(b, two, a, one, c_size_t(64))
        print(cu.read(b, 64) == b"\7" * 64)
        print(cu.pointer_attribute(a, 9), cu.pointer_attribute(b, 9))
        print(cu.pointer_attribute(a, 16), cu.pointer_attribute(b, 16))
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert printed.split() == ["True", "0", "1", "0", "3"]
