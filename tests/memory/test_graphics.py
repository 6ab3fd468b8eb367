# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers and images of OpenGL, of which a library around the driver has a few (support/gl_driver.c)."""

from __future__ import annotations

import pathlib
import re
import shlex
import subprocess
import sysconfig
from functools import partial

import pytest
from cuda_headers import include_dirs
from helpers import ROOT, SUPPORT, in_thread, output_of

from cuda_core_cffi import CUDAError, GraphicsResource, simulator
from cuda_core_cffi._memory.graphics import register_flags

START = """
    import ctypes, gc, os, warnings
    import numpy as np
    from cuda_core_cffi import *
    from cuda_core_cffi.utils import StridedMemoryView

    warnings.simplefilter("error")
    device = Device(0)
    device.set_current()
    stream, other = device.create_stream(), device.create_stream()
    library = ctypes.CDLL(os.environ["CUDA_CORE_CFFI_DRIVER"])

    class Counts(ctypes.Structure):
        _fields_ = [(name, ctypes.c_int) for name in ("registered", "mapped", "faults")]
        _fields_ += [("flags", ctypes.c_uint), ("stream", ctypes.c_void_p)]

    counts = Counts.in_dll(library, "gl_counts")

    def state():
        for _ in range(3):
            gc.collect()
        return counts.registered, counts.mapped

    def refuses(kind, text, function):
        try:
            function()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError("not refused")
"""
END = """
    del stream, other
    gc.collect()
    assert state() == (0, 0), state()
    assert counts.faults == 0
    print("done")
"""


def headers_folder() -> pathlib.Path:
    """Return the folder of cuda.h, or skip."""
    found = include_dirs()
    if not found:
        pytest.skip("the headers of CUDA are not here")
    return found[-1]


@pytest.fixture(scope="module")
def gl(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a driver with OpenGL, or skip where it cannot be built."""
    include = headers_folder()
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[:1]
    target = tmp_path_factory.mktemp("gl") / "libcuda_with_gl.so"
    command = [*compiler, "-std=gnu11", "-Wall", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{include}"]
    try:
        subprocess.run([*command, str(SUPPORT / "gl_driver.c"), "-o", str(target), "-ldl", "-pthread"], check=True)
    except FileNotFoundError as error:
        pytest.skip(f"no C compiler: {error}")
    return str(target)


def run(gl: str, code: str, is_simulated: bool, **environment: str) -> None:
    """Run code with that driver, in a process of its own, which must leave nothing registered."""
    wrapped = str(simulator.library_path()) if is_simulated else "libcuda.so.1"
    output = output_of(START + code + END, CUDA_CORE_CFFI_DRIVER=gl, WRAPPED_DRIVER=wrapped, **environment)
    assert output == "done"


def test_a_buffer_is_mapped_written_and_unmapped(gl, is_simulated):
    code = """
    resource = GraphicsResource.from_gl_buffer(2)
    assert type(resource.handle) is int and resource.handle == resource.resource_handle
    assert not (resource.is_mapped or resource.is_closed)
    assert repr(resource) == f"<GraphicsResource handle={resource.handle:#x}>"
    buffer = resource.map(stream=stream)
    assert (resource.is_mapped, counts.mapped, counts.stream) == (True, 1, stream.handle)
    assert repr(resource).endswith(" mapped>")
    assert (buffer.size, buffer.device_id, buffer.is_device_accessible, buffer.memory_resource) == (512, 0, True, None)
    buffer.copy_from(bytes(range(256)) * 2, stream=stream)
    target = bytearray(512)
    buffer.copy_to(target, stream=stream)
    stream.sync()
    assert target == bytes(range(256)) * 2
    view = StridedMemoryView.from_buffer(buffer, (128,), dtype=np.float32)
    assert view.ptr == buffer.handle
    buffer.close()
    assert (resource.is_mapped, counts.mapped, buffer.handle) == (False, 0, 0)
    with resource.map(stream=other) as again:
        assert (again.size, counts.mapped, counts.stream) == (512, 1, other.handle)
    assert state() == (1, 0)
    resource.close()
    resource.close()
    assert (resource.is_closed, resource.handle, state()) == (True, 0, (0, 0))
    """
    run(gl, code, is_simulated)


def test_the_memory_goes_back_in_the_stream_of_the_mapping_or_another(gl, is_simulated):
    code = """
    with GraphicsResource.from_gl_buffer(1) as resource:
        for close, expected in (
            (lambda buffer: buffer.close(), stream),
            (lambda buffer: buffer.close(other), other),
            (lambda buffer: resource.unmap(), stream),
            (lambda buffer: resource.unmap(stream=other), other),
        ):
            buffer = resource.map(stream=stream)
            counts.stream = None
            close(buffer)
            assert (counts.stream, counts.mapped, buffer.is_closed) == (expected.handle, 0, True)
        buffer = resource.map(stream=stream)
        resource.close(other)
        assert (counts.stream, state()) == (other.handle, (0, 0))
    """
    run(gl, code, is_simulated)


def test_what_is_out_of_order_is_refused(gl, is_simulated):
    code = """
    resource = GraphicsResource.from_gl_buffer(1)
    refuses(RuntimeError, "this GraphicsResource is not mapped", resource.unmap)
    buffer = resource.map(stream=stream)
    for again in (resource.map, resource.map_array, resource.map_mipmapped_array):
        refuses(RuntimeError, "GraphicsResource is mapped: close the buffer or array", lambda: again(stream=stream))
    refuses(TypeError, "GraphicsResource.map needs a Stream", lambda: resource.map(stream=None))
    resource.unmap()
    refuses(RuntimeError, "this GraphicsResource is not mapped", resource.unmap)
    closed = device.create_stream()
    closed.close()
    refuses(RuntimeError, "this Stream is closed", lambda: resource.map(stream=closed))
    resource.map(stream=stream).close()
    resource.close()
    uses = [lambda: map(stream=stream) for map in (resource.map, resource.map_array, resource.map_mipmapped_array)]
    for use in (*uses, resource.unmap, resource.__enter__):
        refuses(RuntimeError, "this GraphicsResource is closed", use)
    """
    run(gl, code, is_simulated)


def test_a_with_block_gives_the_resource_or_with_a_stream_the_buffer(gl, is_simulated):
    code = """
    with GraphicsResource.from_gl_buffer(1) as resource:
        assert isinstance(resource, GraphicsResource) and state() == (1, 0)
    assert resource.is_closed and state() == (0, 0)
    with GraphicsResource.from_gl_buffer(1, stream=stream) as buffer:
        assert isinstance(buffer, Buffer) and state() == (1, 1)
    assert buffer.is_closed and state() == (0, 0)
    with GraphicsResource.from_gl_buffer(1, stream=stream):  # whose buffer has no name
        assert state() == (1, 1)
    def fail():
        with GraphicsResource.from_gl_buffer(1, stream=stream):
            1 / 0
    refuses(ZeroDivisionError, "", fail)
    assert state() == (0, 0)
    """
    run(gl, code, is_simulated)


def test_who_uses_the_memory_keeps_it_mapped(gl, is_simulated):
    code = """
    resource = GraphicsResource.from_gl_buffer(1)
    part = resource.map(stream=stream)[:16]
    assert state() == (1, 1)
    part.fill(7, stream=stream)
    refuses(RuntimeError, "use the memory: close them first", resource.unmap)
    resource.close()
    assert state() == (1, 1)
    part.close()
    assert state() == (0, 0)
    """
    run(gl, code, is_simulated)


def test_what_nobody_has_is_unmapped_and_unregistered(gl, is_simulated):
    code = """
    resource = GraphicsResource.from_gl_buffer(1)
    buffer = resource.map(stream=stream)
    del buffer
    assert state() == (1, 0)
    buffer = resource.map(stream=stream)
    del resource
    assert state() == (1, 1)
    del buffer
    assert state() == (0, 0)
    holder = [GraphicsResource.from_gl_buffer(1)]
    holder += [holder, holder[0].map(stream=stream)]
    del holder
    assert state() == (0, 0)
    """
    run(gl, code, is_simulated)


def test_failures_to_unmap_are_raised_where_that_was_asked_for(gl, is_simulated):
    code = """
    fail = ctypes.c_int.in_dll(library, "gl_fail_unmap")
    with GraphicsResource.from_gl_buffer(1) as resource:
        buffer = resource.map(stream=stream)
        fail.value = 1
        refuses(CUDAError, "cuGraphicsUnmapResources failed: CUDA_ERROR_OPERATING_SYSTEM", resource.unmap)
        assert not resource.is_mapped
        buffer = resource.map(stream=stream)
        fail.value = 1
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            buffer.close()
        assert [item.category for item in told] == [CUDAWarning]
        assert "cuGraphicsUnmapResources" in str(told[0].message)
    """
    run(gl, code, is_simulated)


def test_a_resource_is_neither_copied_nor_pickled(gl, is_simulated):
    code = """
    import copy, pickle
    with GraphicsResource.from_gl_buffer(1) as resource, GraphicsResource.from_gl_buffer(1) as other_resource:
        for action in (copy.copy, copy.deepcopy, pickle.dumps):
            refuses(TypeError, "GraphicsResource cannot be pickled or copied: ", lambda: action(resource))
        assert resource != other_resource and len({resource, other_resource}) == 2
    """
    run(gl, code, is_simulated)


def test_a_resource_is_unregistered_in_its_context(gl, is_simulated):
    code = """
    import threading
    resource = GraphicsResource.from_gl_buffer(1)
    buffer = resource.map(stream=stream)
    for close in (buffer.close, resource.close):
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
    """
    run(gl, code, is_simulated)


def test_threads_map_a_resource_once(gl, is_simulated):
    code = """
    import threading
    with GraphicsResource.from_gl_buffer(1) as resource:
        made, refused = [], []
        barrier = threading.Barrier(8)
        def work():
            barrier.wait()
            try:
                made.append(resource.map(stream=stream))
            except RuntimeError:
                refused.append(1)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(made), len(refused), counts.mapped) == (1, 7, 1)
        made.pop().close()
    """
    run(gl, code, is_simulated)


def test_failures_to_register_leave_nothing_behind(gl, is_simulated):
    code = """
    before = live_objects()
    refuses(CUDAError, "cuGraphicsGLRegisterBuffer failed: CUDA_ERROR_INVALID_VALUE",
            lambda: GraphicsResource.from_gl_buffer(8))
    refuses(CUDAError, "cuGraphicsGLRegisterImage failed", lambda: GraphicsResource.from_gl_image(1, 0x0DE1))
    ctypes.c_int.in_dll(library, "gl_fail_register").value = 1
    refuses(CUDAError, "CUDA_ERROR_OPERATING_SYSTEM", lambda: GraphicsResource.from_gl_buffer(1))
    assert live_objects() == before
    """
    run(gl, code, is_simulated)


def test_an_image_is_registered_and_has_no_pointer(gl, is_simulated):
    code = """
    with GraphicsResource.from_gl_image(9, 0x0DE1, flags=["read_only", "texture_gather"]) as image:
        assert counts.flags == 1 | 8
        refuses(CUDAError, "cuGraphicsResourceGetMappedPointer failed", lambda: image.map(stream=stream))
        assert not image.is_mapped and state() == (1, 0)
    """
    run(gl, code, is_simulated)


def test_an_array_of_an_image_is_copied_and_unmapped(gl, is_simulated):
    code = """
    with GraphicsResource.from_gl_image(9, 0x0DE1) as image:
        values = np.arange(8 * 4 * 4, dtype=np.uint8).reshape(4, 8, 4)
        array = image.map_array(stream=stream, level=1)
        assert (image.is_mapped, state(), counts.stream) == (True, (1, 1), stream.handle)
        assert (array.shape, array.format, array.num_channels, array.device) == ((8, 4), "uint8", 4, device)
        assert not array.is_surface_load_store
        array.copy_from(values, stream=stream)
        refuses(RuntimeError, "is mapped: close the buffer or array", lambda: image.map_array(stream=stream))
        array.close()
        assert (image.is_mapped, state()) == (False, (1, 0))
        found = np.zeros_like(values)
        with image.map_array(stream=other, level=1) as array:
            array.copy_to(found, stream=other)
        assert (state(), counts.stream) == ((1, 0), other.handle)
        other.sync()
        assert (found == values).all()
        assert image.map_array(stream=stream).shape == (16, 8)  # which nobody keeps
        assert state() == (1, 0)
    """
    run(gl, code, is_simulated)


def test_the_levels_of_an_image_keep_it_mapped(gl, is_simulated):
    code = """
    image = GraphicsResource.from_gl_image(9, 0x0DE1, flags="surface_load_store")
    mipmap = image.map_mipmapped_array(stream=stream)
    assert (mipmap.shape, mipmap.num_levels, mipmap.is_surface_load_store) == ((16, 8), 3, True)
    level = mipmap.get_level(2)
    assert level.shape == (4, 2)
    mipmap.close()
    assert image.is_mapped
    values = np.arange(32, dtype=np.uint8)
    level.copy_from(values, stream=stream)
    refuses(RuntimeError, "use the memory: close them first", image.unmap)
    level.close()
    assert state() == (1, 0)
    array = image.map_array(stream=stream, level=2)
    found = array.copy_to(np.zeros_like(values), stream=stream)
    image.unmap()
    stream.sync()
    assert (found == values).all()
    image.close()
    """
    run(gl, code, is_simulated)


def test_textures_and_surfaces_of_an_image_keep_it_mapped(gl, is_simulated):
    code = """
    from cuda_core_cffi.texture import ResourceDescriptor
    image = GraphicsResource.from_gl_image(9, 0x0DE1, flags="surface_load_store")
    for make in (device.create_texture_object, device.create_surface_object):
        array = image.map_array(stream=stream)
        shown = make(ResourceDescriptor.from_opaque_array(array))
        array.close()
        assert state() == (1, 1)
        shown.close()
        del array, shown
        assert state() == (1, 0)
    with image.map_mipmapped_array(stream=stream) as mipmap:
        what, how = ResourceDescriptor.from_mipmapped_array(mipmap), {"normalized_coords": True}
        shown = device.create_texture_object(what, how)
        shown.close()
        del shown
    assert state() == (1, 0)
    image.close()
    """
    run(gl, code, is_simulated)


def test_an_image_goes_back_in_the_stream_of_the_mapping_or_another(gl, is_simulated):
    code = """
    with GraphicsResource.from_gl_image(9, 0x0DE1) as image:
        for map in (image.map_array, image.map_mipmapped_array):
            for close, expected in (
                (lambda array: array.close(), stream),
                (lambda array: image.unmap(), stream),
                (lambda array: image.unmap(stream=other), other),
            ):
                array = map(stream=stream)
                counts.stream = None
                close(array)
                assert (counts.stream, counts.mapped, array.is_closed) == (expected.handle, 0, True)
        array = image.map_array(stream=stream)
        image.close(other)
        assert (counts.stream, state()) == (other.handle, (0, 0))
    """
    run(gl, code, is_simulated)


def test_images_that_arrays_cannot_be_are_not_left_mapped(gl, is_simulated):
    code = """
    before = live_objects()
    with GraphicsResource.from_gl_image(9, 0x0DE1) as image:
        for wrong in ({"level": 3}, {"index": 1}):
            refuses(CUDAError, "CUDA_ERROR_INVALID_VALUE", lambda: image.map_array(stream=stream, **wrong))
        for wrong, kind in ((-1, OverflowError), (2**32, OverflowError), (1.0, TypeError), (True, TypeError)):
            for name in ("index", "level"):
                refuses(kind, f"{name} must be", lambda: image.map_array(stream=stream, **{name: wrong}))
        refuses(TypeError, "GraphicsResource.map_array needs a Stream", lambda: image.map_array(stream=None))
        refuses(TypeError, "map_mipmapped_array needs a Stream", lambda: image.map_mipmapped_array(stream=None))
        assert state() == (1, 0)
    with GraphicsResource.from_gl_image(10, 0x0DE1) as fractions:
        for map in (fractions.map_array, fractions.map_mipmapped_array):
            refuses(ValueError, "format 0xc2 with 4 channels", lambda: map(stream=stream))
            assert state() == (1, 0)
    with GraphicsResource.from_gl_image(11, 0x8C1A) as layers:
        refuses(ValueError, "layers or faces", lambda: layers.map_mipmapped_array(stream=stream))
        assert state() == (1, 0)
    with GraphicsResource.from_gl_buffer(1) as buffer:
        refuses(CUDAError, "cuGraphicsSubResourceGetMappedArray failed", lambda: buffer.map_array(stream=stream))
        refuses(CUDAError, "GetMappedMipmappedArray failed", lambda: buffer.map_mipmapped_array(stream=stream))
        assert state() == (1, 0)
    assert live_objects() == before
    """
    run(gl, code, is_simulated)


def test_the_mapping_of_an_image_outlives_its_resource(gl, is_simulated):
    code = """
    array = GraphicsResource.from_gl_image(9, 0x0DE1).map_array(stream=stream)
    assert state() == (1, 1)
    array[0:4, 0:2].copy_from(bytes(32), stream=stream)
    del array
    assert state() == (0, 0)
    """
    run(gl, code, is_simulated)


def test_a_driver_without_opengl_is_named(gl, is_simulated):
    code = """
    refuses(UnavailableError, "cuGraphicsGLRegisterBuffer is not in", lambda: GraphicsResource.from_gl_buffer(1))
    refuses(UnavailableError, "cuGraphicsGLRegisterImage is not in", lambda: GraphicsResource.from_gl_image(9, 1))
    """
    run(gl, code, is_simulated, WITHOUT_GL="1")


# Without any OpenGL


def test_resources_come_from_class_methods():
    with pytest.raises(RuntimeError, match=r"GraphicsResource cannot be constructed directly; use .*from_gl_buffer"):
        GraphicsResource()


@pytest.mark.simulator_only("a machine with a GPU may have an OpenGL context")
def test_without_opengl_registering_says_what_is_missing(device):
    for register in (lambda: GraphicsResource.from_gl_buffer(1), lambda: GraphicsResource.from_gl_image(1, 0x0DE1)):
        with pytest.raises(CUDAError, match="an OpenGL context must be current in this thread") as caught:
            register()
        assert caught.value.name == "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"


def test_registering_needs_a_context_of_cuda():
    def work() -> None:
        with pytest.raises(CUDAError, match="no CUDA context is current"):
            GraphicsResource.from_gl_buffer(1)

    in_thread(work)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (None, 0),
        ("none", 0),
        ("read_only", 1),
        ("write_discard", 2),
        (("surface_load_store", "read_only"), 5),
        (["texture_gather"], 8),
        ((), 0),
    ],
)
def test_flags_are_strings(flags, expected):
    assert register_flags(flags) == expected


@pytest.mark.parametrize("method", [GraphicsResource.from_gl_buffer, partial(GraphicsResource.from_gl_image, target=1)])
@pytest.mark.parametrize(
    ("wrong", "error"), [("write", ValueError), (("none", "write"), ValueError), ((1,), ValueError), (7, TypeError)]
)
def test_other_flags_are_refused_before_the_driver_is_called(method, wrong, error):
    with pytest.raises(error, match="flags must be"):
        method(1, flags=wrong)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [("1", TypeError), (1.0, TypeError), (True, TypeError), (-1, OverflowError), (2**32, OverflowError)],
)
def test_names_are_numbers_of_32_bits(wrong, error):
    for register in (
        lambda: GraphicsResource.from_gl_buffer(wrong),
        lambda: GraphicsResource.from_gl_image(wrong, 1),
        lambda: GraphicsResource.from_gl_image(1, wrong),
    ):
        with pytest.raises(error, match=r"(gl_buffer|image|target) must be"):
            register()


def test_a_stream_is_one():
    with pytest.raises(TypeError, match=r"GraphicsResource\.from_gl_buffer needs a Stream"):
        GraphicsResource.from_gl_buffer(1, stream=7)


# The header


def test_the_prototypes_are_those_of_the_header():
    header = headers_folder() / "cudaGL.h"
    if not header.exists():
        pytest.skip(f"{header.parent} has no cudaGL.h")
    text = header.read_text(errors="replace")
    typedefs = (header.parent / "cudaGLTypedefs.h").read_text(errors="replace")
    ours = (ROOT / "include" / "memory" / "ccc_graphics.h").read_text()

    def types(source: str, name: str) -> list[str]:
        found = re.search(rf"{re.escape(name)}\)?\(([^;]*?)\);", source)
        parameters = re.sub(r"\s+", " ", found[1]).split(",")
        plain = [re.sub(r"(?<=[ *])\w+$", "", item.strip()).replace(" ", "") for item in parameters]
        return [item.replace("GLuint", "ccc_gl_number").replace("GLenum", "ccc_gl_number") for item in plain]

    for function, pointer in (
        ("cuGraphicsGLRegisterBuffer", "ccc_register_buffer"),
        ("cuGraphicsGLRegisterImage", "ccc_register_image"),
    ):
        assert types(ours, pointer) == types(text, f"CUDAAPI {function}")
        assert f"PFN_{function}_v3000" in typedefs
