# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that copy arrays, regions of them, and memory whose rows have gaps."""

from __future__ import annotations

import numpy as np
import pytest
from buffers import PINNED, HostResource, content, write
from graphs import eventually, run, stays
from helpers import collect

from cuda_core_cffi import CUDAError, ffi, live_objects
from cuda_core_cffi.graph import GraphDefinition, MemcpyNode
from cuda_core_cffi.texture import OpaqueArrayOptions
from cuda_core_cffi.utils import StridedMemoryView

SHAPE = (7, 5, 3)
WANTED = np.arange(7 * 5 * 3, dtype=np.int16).reshape(3, 5, 7)


def shown(memory: np.ndarray) -> StridedMemoryView:
    """Return a view of memory of the host."""
    return StridedMemoryView.from_any_interface(memory, -1)


def part(view: StridedMemoryView, *where: slice) -> StridedMemoryView:
    """Return a part of a view."""
    return view.view(view._layout.sliced(where))


@pytest.fixture
def array(device, stream):
    """Return an array with known elements."""
    with device.create_opaque_array(OpaqueArrayOptions(SHAPE, "int16", 1)) as made:
        made.copy_from(WANTED, stream=stream)
        yield made
        stream.sync()


@pytest.fixture
def empty(device, stream):
    """Return another array of the same shape, full of zeros."""
    with device.create_opaque_array(OpaqueArrayOptions(SHAPE, "int16", 1)) as made:
        made.copy_from(np.zeros_like(WANTED), stream=stream)
        yield made
        stream.sync()


def elements(array, stream) -> np.ndarray:
    """Return what is in an array."""
    found = np.zeros(array.shape[::-1], np.int16)
    array.copy_to(found, stream=stream)
    stream.sync()
    return found


@pytest.mark.parametrize("kind", ["device", "pinned", "address"])
def test_whole_arrays_are_copied_to_and_from_memory(graph, device, stream, array, empty, kind):
    size = array.size_bytes
    with PINNED.allocate(size) if kind == "pinned" else device.allocate(size, stream) as buffer:
        memory = buffer.handle if kind == "address" else buffer
        first = graph.memcpy(memory, array)
        second = first.memcpy(empty, memory)
        assert type(second) is MemcpyNode
        assert (first.src, first.dst, second.dst) == (array.handle, buffer.handle, empty.handle)
        assert first.size == second.size == size
        run(graph, stream)
        assert (elements(empty, stream) == WANTED).all()
        assert content(buffer, stream) == WANTED.tobytes()


def test_regions_are_copied_between_arrays(graph, stream, array, empty):
    graph.memcpy(empty[0:3, 1:3, 2:3], array[4:7, 3:5, 0:1])
    run(graph, stream)
    wanted = np.zeros_like(WANTED)
    wanted[2:3, 1:3, 0:3] = WANTED[0:1, 3:5, 4:7]
    assert (elements(empty, stream) == wanted).all()


@pytest.mark.parametrize("shape", [(7,), (7, 5), (7, 5, 3)])
def test_regions_are_copied_to_and_from_views_with_gaps(graph, device, stream, shape):
    wanted = np.arange(np.prod(shape), dtype=np.int16).reshape(shape[::-1])
    axes = len(shape)
    canvas = np.zeros((4, 9, 16)[-axes:], np.int16)
    where = (slice(1, 3), slice(2, 6), slice(4, 9))[-axes:]
    source = (slice(1, 3), slice(1, 5), slice(2, 7))[-axes:]
    inner = tuple(slice(*item) for item in ((1, 3), (1, 5), (2, 7)))[-axes:][::-1]
    with (
        device.create_opaque_array(OpaqueArrayOptions(shape, "int16", 1)) as array,
        device.allocate(canvas.nbytes, stream) as buffer,
    ):
        array.copy_from(wanted, stream=stream)
        buffer.copy_from(np.ones_like(canvas), stream=stream)
        view = StridedMemoryView.from_buffer(buffer, canvas.shape, dtype=canvas.dtype)
        graph.memcpy(part(view, *where), array[inner]).memcpy(shown(canvas), view)
        run(graph, stream)
        stream.sync()
        expected = np.ones_like(canvas)
        expected[where] = wanted[source]
        assert (canvas == expected).all()
        with GraphDefinition() as back:
            back.memcpy(array[inner], part(shown(np.full_like(canvas, 9)), *where))
            run(back, stream)
            found = np.zeros_like(wanted)
            array.copy_to(found, stream=stream)
            stream.sync()
            wanted[source] = 9
            assert (found == wanted).all()


@pytest.mark.parametrize("on_host", ["neither", "source", "target", "both"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_views_with_gaps_are_copied(graph, device, stream, order, on_host):
    big = np.arange(6 * 8 * 10, dtype=np.int32).reshape(6, 8, 10)
    with device.allocate(big.nbytes, stream) as one, device.allocate(big.nbytes, stream) as other:
        one.copy_from(big, stream=stream)
        target = np.zeros_like(big)
        other.copy_from(target, stream=stream)
        whence = (
            shown(big)
            if on_host in ("source", "both")
            else StridedMemoryView.from_buffer(one, big.shape, dtype=big.dtype)
        )
        to = (
            shown(target)
            if on_host in ("target", "both")
            else StridedMemoryView.from_buffer(other, big.shape, dtype=big.dtype)
        )
        if order == "F":
            whence, to = (view.view(view._layout.permuted((2, 1, 0))) for view in (whence, to))
            graph.memcpy(part(to, *np.s_[1:5, 1:4, 2:4]), part(whence, *np.s_[0:4, 3:6, 0:2]))
        else:
            graph.memcpy(part(to, *np.s_[2:4, 1:4, 1:5]), part(whence, *np.s_[0:2, 3:6, 0:4]))
        wanted = np.zeros_like(big)
        wanted[2:4, 1:4, 1:5] = big[0:2, 3:6, 0:4]
        run(graph, stream)
        if on_host in ("neither", "source"):
            other.copy_to(target, stream=stream)
        stream.sync()
        assert (target == wanted).all()


def test_memory_beside_a_view_has_the_elements_in_order(graph, device, stream):
    big = np.arange(48, dtype=np.float32).reshape(6, 8)
    with device.allocate(4 * 3 * 4, stream) as dense, device.allocate(big.nbytes, stream) as wide:
        wide.copy_from(big, stream=stream)
        view = StridedMemoryView.from_buffer(wide, big.shape, dtype=big.dtype)
        out = graph.memcpy(dense, part(view, slice(1, 4), slice(2, 6)))
        out.memcpy(part(view, slice(0, 3), slice(0, 4)), dense.handle, src_owner=dense)
        run(graph, stream)
        assert content(dense, stream) == big[1:4, 2:6].tobytes()
        big[0:3, 0:4] = big[1:4, 2:6].copy()
        assert content(wide, stream) == big.tobytes()


def test_memory_that_the_graph_allocates_is_copied_by_shape(graph, stream, array, empty):
    node = graph.allocate(array.size_bytes)
    node.memcpy(node.dptr, array).memcpy(empty, node.dptr).deallocate(node.dptr)
    run(graph, stream)
    assert (elements(empty, stream) == WANTED).all()


REFUSED = {
    "a size with an array": (lambda it: it["graph"].memcpy(it["buffer"], it["array"], 4), TypeError, "have shapes"),
    "no size": (lambda it: it["graph"].memcpy(it["buffer"], it["buffer"]), TypeError, "size is needed"),
    "a short buffer": (lambda it: it["graph"].memcpy(it["short"], it["array"]), ValueError, "dst has 8 bytes"),
    "a short buffer beside a view": (lambda it: it["graph"].memcpy(it["view"], it["short"]), ValueError, "src has 8"),
    "an owner of an array": (
        lambda it: it["graph"].memcpy(it["array"], it["buffer"], dst_owner=it),
        ValueError,
        "dst_owner is for an address; a OpaqueArray",
    ),
    "other extents": (lambda it: it["graph"].memcpy(it["array"], it["array"][1:]), ValueError, "shapes differ"),
    "common elements": (lambda it: it["graph"].memcpy(it["array"], it["array"]), ValueError, "elements in common"),
    "no elements": (lambda it: it["graph"].memcpy(it["array"][2:2], it["array"][2:2]), ValueError, "without elements"),
    "another shape": (
        lambda it: it["graph"].memcpy(it["array"], part(it["view"], slice(1, 3), slice(5), slice(7))),
        ValueError,
        "has the shape",
    ),
    "views of other shapes": (
        lambda it: it["graph"].memcpy(it["view"], part(it["view"], slice(1, 3), slice(5), slice(7))),
        ValueError,
        "shapes differ",
    ),
    "a view without elements": (
        lambda it: it["graph"].memcpy(*[part(it["view"], slice(0), slice(5), slice(7))] * 2),
        ValueError,
        "without elements",
    ),
    "a read-only view": (lambda it: it["graph"].memcpy(it["frozen"], it["view"]), ValueError, "read-only"),
    "a read-only view of an array": (lambda it: it["graph"].memcpy(it["frozen"], it["array"]), ValueError, "read-only"),
    "no view": (lambda it: it["graph"].memcpy(it["array"], WANTED), TypeError, "src must be a Buffer or an address"),
    "strides of other kinds": (
        lambda it: it["graph"].memcpy(
            it["view"], it["view"].view(it["view"]._layout.reshaped((7, 3, 5)).permuted((1, 2, 0)))
        ),
        ValueError,
        "in one call",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_before_the_graph_changes(graph, device, stream, array, case):
    attempt, error, text = REFUSED[case]
    frozen = WANTED.copy()
    frozen.flags.writeable = False
    with device.allocate(array.size_bytes, stream) as buffer, device.allocate(8, stream) as short:
        view = StridedMemoryView.from_buffer(buffer, WANTED.shape, dtype=WANTED.dtype)
        it = {"graph": graph, "array": array, "buffer": buffer, "short": short, "view": view, "frozen": shown(frozen)}
        with pytest.raises(error, match=text):
            attempt(it)
    assert graph.nodes() == set()


def test_closed_arrays_and_views_are_refused(graph, device, stream, array):
    closed = device.create_opaque_array(OpaqueArrayOptions(SHAPE, "int16", 1))
    closed.close()
    buffer = device.allocate(array.size_bytes, stream)
    view = StridedMemoryView.from_buffer(buffer, WANTED.shape, dtype=WANTED.dtype)
    buffer.close()
    for thing in (closed, closed[1:2], view):
        with pytest.raises(RuntimeError, match="closed"):
            graph.memcpy(thing, array)
        with pytest.raises(RuntimeError, match="closed"):
            graph.memcpy(array, thing)
    assert graph.nodes() == set()


def test_a_node_keeps_arrays_buffers_and_views(graph, device, stream):
    before = live_objects()
    array = device.create_opaque_array(OpaqueArrayOptions(SHAPE, "int16", 1))
    array.copy_from(WANTED, stream=stream)
    buffer = device.allocate(array.size_bytes, stream)
    target = np.zeros_like(WANTED)
    node = graph.memcpy(StridedMemoryView.from_buffer(buffer, WANTED.shape, dtype=WANTED.dtype), array)
    node.memcpy(shown(target), buffer)
    array.close()
    buffer.close()
    collect()
    assert stays(lambda: live_objects()["array"] == before["array"] + 1)
    assert stays(lambda: live_objects()["buffer"] == before["buffer"] + 1)
    run(graph, stream)
    stream.sync()
    assert (target == WANTED).all()
    graph.close()
    assert eventually(lambda: live_objects()["array"] == before["array"])
    assert eventually(lambda: live_objects()["buffer"] == before["buffer"])


def test_an_updated_node_keeps_what_it_copies_now(graph, device, stream, array, empty):
    before = live_objects()["array"]
    other = device.create_opaque_array(OpaqueArrayOptions(SHAPE, "int16", 1))
    node = graph.memcpy(other, array)
    other.close()
    assert stays(lambda: live_objects()["array"] == before + 1)
    node.update(dst=empty[0:2], src=array[2:4])
    assert eventually(lambda: live_objects()["array"] == before)
    run(graph, stream)
    wanted = np.zeros_like(WANTED)
    wanted[:, :, 0:2] = WANTED[:, :, 2:4]
    assert (elements(empty, stream) == wanted).all()


def test_a_node_is_changed_from_bytes_to_an_array_and_back(graph, device, stream, array, memory):
    node = graph.memcpy(memory[0], memory[1], 8)
    write(memory[1], bytes(range(16)) * (memory[1].size // 16), stream)
    with device.allocate(array.size_bytes, stream) as buffer:
        node.update(dst=buffer, src=array)
        assert (node.size, node.src) == (array.size_bytes, array.handle)
        run(graph, stream)
        assert content(buffer, stream) == WANTED.tobytes()
        node.update(dst=memory[0], src=memory[1], size=4)
        assert (node.size, node.src) == (4, memory[1].handle)
        run(graph, stream)
        assert content(memory[0], stream)[:4] == bytes(range(4))
    assert stays(lambda: node.is_valid)


@pytest.mark.parametrize("change", [{"size": 4}, {"dst": "buffer"}, {"src": "array"}], ids=["size", "dst", "src"])
def test_a_copy_of_an_array_is_changed_as_a_whole(graph, device, stream, array, change):
    with device.allocate(array.size_bytes, stream) as buffer:
        node = graph.memcpy(buffer, array)
        given = {"buffer": buffer, "array": array}
        with pytest.raises(ValueError, match="give both dst and src"):
            node.update(**{name: given.get(value, value) for name, value in change.items()})
        assert (node.dst, node.src) == (buffer.handle, array.handle)


def test_an_executable_takes_another_row_of_arrays_from_a_definition(graph, stream, array, empty):
    graph.memcpy(empty[0:2, 0:1, 0:1], array[0:2, 0:1, 0:1])
    with graph.instantiate() as executable, GraphDefinition() as other:
        other.memcpy(empty[2:5, 1:2, 2:3], array[4:7, 3:4, 1:2])
        executable.update(other)
        executable.launch(stream)
        wanted = np.zeros_like(WANTED)
        wanted[2, 1, 2:5] = WANTED[1, 3, 4:7]
        assert (elements(empty, stream) == wanted).all()


OTHERS = {
    "other columns": lambda array, empty: (empty[2:4], array[0:2]),
    "other columns of the source": lambda array, empty: (empty[0:2], array[4:6]),
    "fewer layers": lambda array, empty: (empty[0:2, :, 0:2], array[0:2, :, 0:2]),
    "exchanged arrays": lambda array, empty: (array[0:2], empty[0:2]),
    "one row": lambda array, empty: (empty[0:2, 0:1, 0:1], array[0:2, 0:1, 0:1]),
}


@pytest.mark.parametrize("change", OTHERS)
def test_an_executable_keeps_copies_of_several_rows(graph, stream, array, empty, change):
    graph.memcpy(empty[0:2], array[0:2])
    with graph.instantiate() as executable, GraphDefinition() as other, GraphDefinition() as same:
        other.memcpy(*OTHERS[change](array, empty))
        with pytest.raises(CUDAError, match="CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"):
            executable.update(other)
        same.memcpy(empty[0:2], array[0:2])
        executable.update(same)
        executable.launch(stream)
        wanted = np.zeros_like(WANTED)
        wanted[:, :, 0:2] = WANTED[:, :, 0:2]
        assert (elements(empty, stream) == wanted).all()


def test_a_node_of_an_executable_takes_another_row(graph, device, stream):
    row = np.arange(16, dtype=np.int16)
    with (
        device.create_opaque_array(OpaqueArrayOptions((16,), "int16", 1)) as one,
        device.create_opaque_array(OpaqueArrayOptions((16,), "int16", 1)) as other,
        device.allocate(row.nbytes, stream) as buffer,
    ):
        one.copy_from(row, stream=stream)
        other.copy_from(row[::-1].copy(), stream=stream)
        node = graph.memcpy(buffer, one)
        with graph.instantiate() as executable:
            executable[node].update(dst=buffer, src=other)
            executable.launch(stream)
            assert content(buffer, stream) == row[::-1].tobytes()
            assert node.src == one.handle


def test_a_node_of_an_executable_that_copies_rows_stays_as_it_is(graph, device, stream, array):
    with device.allocate(array.size_bytes, stream) as buffer:
        write(buffer, bytes(array.size_bytes), stream)
        node = graph.memcpy(buffer, array[0:7])
        with graph.instantiate() as executable:
            with pytest.raises(CUDAError):
                executable[node].update(dst=buffer, src=array[0:3])
            executable.launch(stream)
            assert content(buffer, stream) == WANTED.tobytes()


def test_buffers_that_only_the_host_uses_are_copied(graph, stream, array):
    resource = HostResource()
    with resource.allocate(array.size_bytes) as buffer:
        graph.memcpy(buffer, array)
        run(graph, stream)
        stream.sync()
        assert bytes(ffi.buffer(resource.live[buffer.handle])[: buffer.size]) == WANTED.tobytes()
