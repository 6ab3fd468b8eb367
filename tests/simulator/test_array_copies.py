# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies from and to arrays, as calls, as nodes of graphs and captured."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim_arrays import (
    ARRAY,
    CUBEMAP,
    DEVICE,
    HOST,
    UINT8,
    UINT32,
    Array3DDesc,
    Copy2D,
    a_mipmap,
    an_array,
    create,
    described,
    download,
    upload,
)
from sim_driver import Driver, byref, c_size_t, c_uint64, c_void_p, run_alone
from sim_graphs import CopyParams, CopySide, Graphs, ask

Data = np.ndarray[Any, Any]


def numbers(*shape: int, kind: Any = np.float32) -> Data:
    return np.arange(np.prod(shape)).astype(kind).reshape(shape)


@pytest.mark.parametrize(
    ("desc", "shape"),
    [
        (described((7,)), (7, 1)),
        (described((5, 7), channels=4), (5, 7, 4)),
        (described((3, 5, 7), channels=2), (3, 5, 7, 2)),
        (described((7,), layers=3), (3, 1, 7, 1)),
        (described((5, 7), layers=3), (3, 5, 7, 1)),
        (described((4, 4), CUBEMAP, layers=12), (12, 4, 4, 1)),
    ],
)
def test_what_is_copied_into_an_array_comes_out_again(cu: Driver, desc: Array3DDesc, shape: tuple[int, ...]) -> None:
    data = numbers(*shape)
    with an_array(cu, desc) as array, an_array(cu, desc) as other:
        upload(cu, array, data)
        assert (download(cu, array, data) == data).all()
        depth, height, width = (1,) * (4 - len(shape)) + shape[:-1]
        sides = CopySide(type=ARRAY, array=array.value), CopySide(type=ARRAY, array=other.value)
        cu.cuMemcpy3DAsync_v2(byref(CopyParams(*sides, width * shape[-1] * 4, height, depth)), None)
        assert (download(cu, other, data) == data).all()


@pytest.mark.parametrize("function", ["cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy2DAsync_v2"])
def test_rectangles_of_arrays(cu: Driver, function: str) -> None:
    stream = (None,) if "Async" in function else ()
    data, part = numbers(8, 16, 1), -numbers(3, 5, 1) - 1
    expected = data.copy()
    expected[2:5, 6:11] = part
    with an_array(cu, described((8, 16))) as array:
        upload(cu, array, data)
        copy = Copy2D(width=20, height=3, src_type=HOST, src_host=part.ctypes.data, src_pitch=20)
        copy.dst_type, copy.dst_array, copy.dst_x, copy.dst_y = ARRAY, array.value, 24, 2
        # What an array does not need is ignored.
        copy.dst_pitch, copy.dst_device = 3, 12345
        getattr(cu, function)(byref(copy), *stream)
        assert (download(cu, array, data) == expected).all()
        back = np.zeros((3, 8), np.float32)
        copy = Copy2D(width=20, height=3, src_type=ARRAY, src_array=array.value, src_x=24, src_y=2)
        copy.dst_type, copy.dst_host, copy.dst_pitch, copy.dst_x = HOST, back.ctypes.data, 32, 4
        getattr(cu, function)(byref(copy), *stream)
        cu.cuCtxSynchronize()
    assert (back[:, 1:6] == part[..., 0]).all()
    assert not back[:, [0, 6, 7]].any()


def test_boxes_of_arrays_in_device_memory(cu: Driver) -> None:
    data = numbers(4, 6, 8, 1)
    pointer = cu.alloc(4 * 4 * 4 * 4)
    with an_array(cu, described((4, 6, 8))) as array:
        upload(cu, array, data)
        box = CopyParams(width=12, height=2, depth=3)
        box.source.type, box.source.array = ARRAY, array.value
        box.source.x, box.source.y, box.source.z = 8, 3, 1
        box.target.type, box.target.device, box.target.pitch, box.target.height = DEVICE, pointer.value, 16, 4
        cu.cuMemcpy3D_v2(byref(box))
    found = np.frombuffer(cu.read(pointer, 256), np.float32).reshape(4, 4, 4)
    assert (found[:3, :2, :3] == data[1:4, 3:5, 2:5, 0]).all()
    cu.cuMemFree_v2(pointer)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({}, "SUCCESS"),
        ({"width": 18}, "INVALID_VALUE"),  # not whole elements
        ({"x": 2}, "INVALID_VALUE"),
        ({"width": 32, "x": 4}, "INVALID_VALUE"),
        ({"height": 7}, "INVALID_VALUE"),
        ({"height": 2, "y": 5}, "INVALID_VALUE"),
        ({"depth": 2, "z": 3}, "INVALID_VALUE"),
        ({"z": 2**64 - 1}, "INVALID_VALUE"),
        ({"lod": 1}, "INVALID_VALUE"),
        ({"array": None}, "INVALID_VALUE"),
        ({"array": 12345}, "INVALID_HANDLE"),
        ({"type": 7}, "INVALID_VALUE"),
    ],
)
def test_copies_that_reach_out_of_an_array_are_refused(cu: Driver, change: dict[str, Any], answer: str) -> None:
    room = np.zeros(4096, np.uint8)
    with an_array(cu, described((4, 6, 8))) as array:
        for side in ("source", "target"):
            box = CopyParams(width=16, height=2, depth=1)
            memory, other = (box.source, box.target) if side == "target" else (box.target, box.source)
            memory.type, memory.host, memory.pitch, memory.height = HOST, room.ctypes.data, 64, 8
            other.type, other.array = ARRAY, array.value
            for name, value in change.items():
                setattr(box if name in ("width", "height", "depth") else other, name, value)
            assert cu.status("cuMemcpy3D_v2", byref(box)) == answer
            assert cu.status("cuMemcpy3DAsync_v2", byref(box), None) == answer


def test_runs_of_arrays_of_one_dimension(cu: Driver) -> None:
    data, back = numbers(16), np.zeros(16, np.float32)
    size, pointer = c_size_t(64), cu.alloc(64)
    with an_array(cu, described((16,))) as one, an_array(cu, described((16,), kind=UINT32)) as two:
        cu.cuMemcpyHtoA_v2(one, c_size_t(0), c_void_p(data.ctypes.data), size)
        cu.cuMemcpyAtoA_v2(two, c_size_t(16), one, c_size_t(0), c_size_t(48))
        cu.cuMemcpyAtoH_v2(c_void_p(back.ctypes.data), two, c_size_t(16), c_size_t(48))
        assert (back[:12] == data[:12]).all()
        cu.cuMemcpyAtoD_v2(pointer, one, c_size_t(0), size)
        assert cu.read(pointer, 64) == data.tobytes()
        cu.cuMemsetD32_v2(pointer, 0, c_size_t(16))
        cu.cuMemcpyDtoA_v2(one, c_size_t(8), pointer, c_size_t(16))
        cu.cuMemcpyAtoHAsync_v2(c_void_p(back.ctypes.data), one, c_size_t(0), size, None)
        assert (back == np.where((np.arange(16) >= 2) & (np.arange(16) < 6), 0, data)).all()
        cu.cuMemcpyHtoAAsync_v2(one, c_size_t(0), c_void_p(data.ctypes.data), size, None)
        cu.cuMemcpyAtoH_v2(c_void_p(back.ctypes.data), one, c_size_t(0), size)
        assert (back == data).all()
    cu.cuMemFree_v2(pointer)


def test_runs_that_do_not_fit_are_refused(cu: Driver) -> None:
    room = c_void_p(np.zeros(64, np.uint8).ctypes.data)
    with (
        an_array(cu, described((16,))) as line,
        an_array(cu, described((4, 4))) as plane,
        an_array(cu, described((16,), kind=UINT8)) as narrow,
    ):
        for array, offset, size in ((line, 2, 4), (line, 0, 6), (line, 32, 36), (line, 68, 4), (plane, 0, 16)):
            where = array, c_size_t(offset)
            assert cu.status("cuMemcpyHtoA_v2", *where, room, c_size_t(size)) == "INVALID_VALUE"
            assert cu.status("cuMemcpyAtoH_v2", room, *where, c_size_t(size)) == "INVALID_VALUE"
        zero = c_size_t(0)
        assert cu.status("cuMemcpyAtoA_v2", line, zero, narrow, zero, c_size_t(16)) == "INVALID_VALUE"
        assert cu.status("cuMemcpyDtoA_v2", line, zero, c_uint64(12345), c_size_t(16)) == "INVALID_VALUE"
        assert cu.status("cuMemcpyHtoA_v2", c_void_p(12345), zero, room, c_size_t(16)) == "INVALID_HANDLE"


def test_levels_of_mipmapped_arrays_are_apart(cu: Driver) -> None:
    with a_mipmap(cu, described((8, 8)), 3) as mipmap:
        levels = [cu.out(c_void_p, "cuMipmappedArrayGetLevel", mipmap, number) for number in range(3)]
        contents = [numbers(8 >> number, 8 >> number, 1) + 100 * number for number in range(3)]
        for level, data in zip(levels, contents, strict=True):
            upload(cu, level, data)
        for level, data in zip(levels, contents, strict=True):
            assert (download(cu, level, data) == data).all()


def test_a_copy_does_not_reach_into_another_level(cu: Driver) -> None:
    with a_mipmap(cu, described((4, 8, 8)), 3) as mipmap:
        level: c_void_p = cu.out(c_void_p, "cuMipmappedArrayGetLevel", mipmap, 0)
        for z, depth, answer in ((3, 1, "SUCCESS"), (4, 1, "INVALID_VALUE"), (3, 2, "INVALID_VALUE")):
            room = np.zeros((depth, 1, 8), np.float32)
            box = CopyParams(width=32, height=1, depth=depth)
            box.source.type, box.source.host, box.source.pitch, box.source.height = HOST, room.ctypes.data, 32, 1
            box.target.type, box.target.array, box.target.z = ARRAY, level.value, z
            assert cu.status("cuMemcpy3D_v2", byref(box)) == answer


def test_the_source_of_a_pageable_copy_into_an_array_may_change_at_once(cu: Driver) -> None:
    stream, data, back = cu.stream(), numbers(16), np.zeros(16, np.float32)
    with an_array(cu, described((16,))) as array:
        gate = cu.block(stream)
        cu.cuMemcpyHtoAAsync_v2(array, c_size_t(0), c_void_p(data.ctypes.data), c_size_t(64), stream)
        data[:] = 0
        gate.open()
        cu.cuStreamSynchronize(stream)
        cu.cuMemcpyAtoH_v2(c_void_p(back.ctypes.data), array, c_size_t(0), c_size_t(64))
        assert (back == np.arange(16)).all()
    cu.cuStreamDestroy_v2(stream)


def test_destroying_an_array_waits_for_the_work_with_it(cu: Driver) -> None:
    stream, pinned = cu.stream(), cu.pinned(64)
    array = create(cu, described((16,)))
    cu.cuMemcpyHtoA_v2(array, c_size_t(0), c_void_p(numbers(16).ctypes.data), c_size_t(64))
    cu.launch(stream, lambda: time.sleep(0.05))
    cu.cuMemcpyAtoHAsync_v2(pinned, array, c_size_t(0), c_size_t(64), stream)
    cu.cuArrayDestroy(array)
    assert pinned.raw == numbers(16).tobytes()
    cu.cuMemFreeHost(pinned)
    cu.cuStreamDestroy_v2(stream)


# --- Graphs -------------------------------------------------------------------------------------------------------


def test_nodes_copy_arrays(cu: Driver, graphs: Graphs, tmp_path: Path) -> None:
    data = numbers(4, 8, 1)
    with an_array(cu, described((4, 8))) as one, an_array(cu, described((4, 8))) as two:
        graph = graphs.graph()
        up = CopyParams(width=32, height=4, depth=1)
        up.source.type, up.source.host, up.source.pitch = HOST, data.ctypes.data, 32
        up.target.type, up.target.array = ARRAY, one.value
        first = graphs.node("MemcpyNode", graph, (), byref(up), graphs.context)
        across = CopyParams(width=16, height=2, depth=1)
        across.source.type, across.source.array, across.source.x, across.source.y = ARRAY, one.value, 8, 1
        across.target.type, across.target.array = ARRAY, two.value
        second = graphs.node("MemcpyNode", graph, (first,), byref(across), graphs.context)
        read = ask(cu, CopyParams, "cuGraphMemcpyNodeGetParams", second)
        assert bytes(read) == bytes(across)
        printed = graphs.dot(graph, tmp_path / "graph.dot", 1)
        assert "(HtoA,32)" in printed
        assert f"dst: {one.value:#x}" in printed
        assert f"(AtoA,16)\nsrc: {one.value:#x}\ndst: {two.value:#x}" in printed
        data += 1
        graphs.run(graph)
        cu.cuCtxSynchronize()
        assert (download(cu, one, data) == data).all()
        assert (download(cu, two, data)[:2, :4] == data[1:3, 2:6]).all()
        across.source.y = 3
        params = byref(across), graphs.context
        status = cu.status("cuGraphAddMemcpyNode", byref(c_void_p()), graph, None, c_size_t(0), *params)
        assert status == "INVALID_VALUE"


def test_a_node_can_be_given_another_array(cu: Driver, graphs: Graphs) -> None:
    data, pointer = numbers(16), cu.alloc(64)
    cu.cuMemcpyHtoD_v2(pointer, c_void_p(data.ctypes.data), c_size_t(64))
    with an_array(cu, described((16,))) as one, an_array(cu, described((16,))) as two:
        params = CopyParams(width=64, height=1, depth=1)
        params.source.type, params.source.device = DEVICE, pointer.value
        params.target.type, params.target.array = ARRAY, one.value
        graph = graphs.graph()
        node = graphs.node("MemcpyNode", graph, (), byref(params), graphs.context)
        executable = graphs.instantiate(graph)
        params.target.array = two.value
        cu.cuGraphExecMemcpyNodeSetParams(executable, node, byref(params), graphs.context)
        cu.cuGraphLaunch(executable, None)
        cu.cuCtxSynchronize()
        assert (download(cu, two, data[:, None])[:, 0] == data).all()
        assert not (download(cu, one, data[:, None])[1:, 0] == data[1:]).any()
        # A node keeps to an array if it had one.
        other = cu.alloc(64)
        params.target.type, params.target.device = DEVICE, other.value
        changed = "cuGraphExecMemcpyNodeSetParams", executable, node, byref(params), graphs.context
        assert cu.status(*changed) == "INVALID_VALUE"
    for address in (pointer, other):
        cu.cuMemFree_v2(address)


def test_copies_of_arrays_are_captured(cu: Driver, graphs: Graphs) -> None:
    stream, pinned = cu.stream(1), cu.pinned(64)
    data = numbers(16)
    pinned[:] = data.tobytes()
    with an_array(cu, described((4, 4))) as plane, an_array(cu, described((16,))) as line:
        cu.cuStreamBeginCapture_v2(stream, 0)
        cu.cuMemcpyHtoAAsync_v2(line, c_size_t(0), pinned, c_size_t(64), stream)
        part = Copy2D(width=8, height=1, src_type=ARRAY, src_array=line.value, src_x=16)
        part.dst_type, part.dst_array, part.dst_x, part.dst_y = ARRAY, plane.value, 8, 3
        cu.cuMemcpy2DAsync_v2(byref(part), stream)
        graph = ask(cu, c_void_p, "cuStreamEndCapture", stream)
        graphs.graphs.append(graph)
        first, second = (c_void_p(node) for node in graphs.nodes(graph))
        read = ask(cu, CopyParams, "cuGraphMemcpyNodeGetParams", first)
        assert (read.source.type, read.target.type, read.target.array) == (DEVICE, ARRAY, line.value)
        read = ask(cu, CopyParams, "cuGraphMemcpyNodeGetParams", second)
        sides = (read.source.array, read.source.x, read.target.array, read.target.x, read.target.y)
        assert sides == (line.value, 16, plane.value, 8, 3)
        # What a node says can be made a node again.
        graphs.node("MemcpyNode", graph, (first,), byref(read), graphs.context)
        graphs.run(graph, stream)
        cu.cuStreamSynchronize(stream)
        assert download(cu, plane, numbers(4, 4, 1))[3, 2:, 0].tolist() == [4, 5]
    cu.cuMemFreeHost(pinned)
    cu.cuStreamDestroy_v2(stream)


def test_a_graph_that_outlives_its_array_is_reported() -> None:
    printed = run_alone(
        """
        from sim_arrays import *
        from sim_graphs import CopyParams
        cu.start()
        array, target = create(cu, described((16,))), cu.alloc(64)
        params = CopyParams(width=64, height=1, depth=1)
        params.source.type, params.source.array = ARRAY, array.value
        params.target.type, params.target.device = DEVICE, target.value
        graph = cu.out(c_void_p, "cuGraphCreate", 0)
        context = cu.out(c_void_p, "cuCtxGetCurrent")
        cu.out(c_void_p, "cuGraphAddMemcpyNode", graph, None, c_size_t(0), byref(params), context)
        executable = cu.out(c_void_p, "cuGraphInstantiateWithFlags", graph, c_uint64(0))
        cu.cuArrayDestroy(array)
        cu.cuGraphLaunch(executable, None)
        print(cu.status("cuCtxSynchronize"))
        print([(report.kind, report.allocated_by) for report in sim.reports()])
        """
    )
    assert printed.splitlines() == ["ILLEGAL_ADDRESS", "[('use after free', 'cuArray3DCreate_v2')]"]


def test_arrays_are_copied_between_devices() -> None:
    printed = run_alone(
        """
        import numpy as np
        from sim_arrays import *
        first = cu.start(0)
        data = np.arange(32, dtype=np.float32).reshape(4, 8, 1)
        one = create(cu, described((4, 8)))
        upload(cu, one, data)
        second = cu.start(1)
        two = create(cu, described((4, 8)))
        copy = CopyPeer(width=32, height=4, depth=1)
        copy.source.type, copy.source.array, copy.source.reserved = ARRAY, one.value, first.value
        copy.target.type, copy.target.array, copy.target.reserved = ARRAY, two.value, second.value
        cu.cuMemcpy3DPeer(byref(copy))
        print((download(cu, two, data) == data).all())
        upload(cu, two, data * 2)
        copy.source, copy.target = PeerSide.from_buffer_copy(copy.target), PeerSide.from_buffer_copy(copy.source)
        cu.cuMemcpy3DPeerAsync(byref(copy), None)
        cu.cuCtxSynchronize()
        cu.cuCtxSetCurrent(first)
        print((download(cu, one, data) == data * 2).all())
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert printed.split() == ["True", "True"]
