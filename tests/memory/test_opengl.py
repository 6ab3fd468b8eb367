# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers and images of a real OpenGL, in a context without a display."""

from __future__ import annotations

import pytest
from helpers import SUPPORT, output_of

pytestmark = pytest.mark.gpu_only("the simulated driver has no OpenGL")

START = """
    import ctypes, gc, sys
    import numpy as np
    from cuda_core_cffi import *
    from cuda_core_cffi.utils import StridedMemoryView
    sys.path.append(sys.argv[1])
    import egl

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    try:
        gl = egl.Context(device.device_id)
    except egl.NoOpenGL as error:
        print("none:", error)
        sys.exit()
"""
END = """
    gl.close()
    print("done")
"""


def run(code: str) -> None:
    """Run code in a process with an OpenGL context, or skip where none can be made."""
    output = output_of(START + code + END, str(SUPPORT))
    if output.startswith("none:"):
        pytest.skip(f"no OpenGL here: {output[6:]}")
    assert output == "done"


def test_kernels_and_copies_write_a_buffer_of_opengl():
    run("""
    name = gl.make_buffer(bytes(4096))
    resource = GraphicsResource.from_gl_buffer(name)
    code = 'extern "C" __global__ void number(unsigned *to) { to[threadIdx.x] = threadIdx.x * 3; }'
    kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("number")
    with resource.map(stream=stream) as buffer:
        assert (buffer.size, buffer.device_id, resource.is_mapped) == (4096, 0, True)
        launch(stream, LaunchConfig(grid=1, block=512), kernel, buffer)
        with buffer[2048:] as rest:  # what is left of the buffer keeps it mapped
            rest.fill(0x5A, stream=stream)
    stream.sync()
    assert not resource.is_mapped
    values = np.frombuffer(gl.read_buffer(name, 4096), np.uint32)
    assert values[:512].tolist() == [3 * i for i in range(512)]
    assert set(values[512:].tolist()) == {0x5A5A5A5A}
    resource.close()
    """)


def test_what_opengl_wrote_is_read_while_mapped_again_and_again():
    run("""
    resource = GraphicsResource.from_gl_buffer(gl.make_buffer(bytes(range(256))), flags="read_only", stream=stream)
    for _ in range(3):
        target = bytearray(256)
        buffer = resource.map(stream=stream)
        view = StridedMemoryView.from_buffer(buffer, (64,), dtype=np.uint32)
        assert view.ptr == buffer.handle
        buffer.copy_to(target, stream=stream)
        resource.unmap(stream=stream)
        stream.sync()
        assert target == bytes(range(256))
        assert buffer.handle == 0
    with resource as buffer:
        assert resource.is_mapped
    assert resource.is_closed
    """)


def test_a_slice_keeps_a_buffer_of_opengl_mapped():
    run("""
    resource = GraphicsResource.from_gl_buffer(gl.make_buffer(bytes(1024)))
    buffer = resource.map(stream=stream)
    part = buffer[256:512]
    buffer.close()
    assert resource.is_mapped
    part.close()
    assert not resource.is_mapped
    resource.close()
    """)


def test_names_that_opengl_does_not_have_are_refused():
    run("""
    for wrong in (0, 12345):
        try:
            GraphicsResource.from_gl_buffer(wrong)
        except CUDAError:
            pass
        else:
            raise AssertionError(wrong)
    """)


def test_kernels_and_copies_write_an_image_of_opengl():
    run("""
    from cuda_core_cffi.texture import ResourceDescriptor
    values = np.arange(1024, dtype=np.uint8).reshape(8, 32, 4)
    name = gl.make_texture(32, 8, values.tobytes())
    image = GraphicsResource.from_gl_image(name, egl.GL_TEXTURE_2D, flags="surface_load_store")
    code = '''
    extern "C" __global__ void invert(cudaSurfaceObject_t image) {
        uchar4 v = surf2Dread<uchar4>(image, 4 * threadIdx.x, blockIdx.x);
        surf2Dwrite(make_uchar4(255 - v.x, 255 - v.y, 255 - v.z, 255 - v.w), image, 4 * threadIdx.x, blockIdx.x);
    }'''
    kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("invert")
    with image.map_array(stream=stream) as array:
        assert (array.shape, array.format, array.num_channels, image.is_mapped) == ((32, 8), "uint8", 4, True)
        with device.create_surface_object(ResourceDescriptor.from_opaque_array(array)) as surface:
            launch(stream, LaunchConfig(grid=8, block=32), kernel, surface)
            array[0:4, 0:2].copy_from(bytes(32), stream=stream)
            stream.sync()
    assert not image.is_mapped
    values = 255 - values
    values[0:2, 0:4] = 0
    assert gl.read_texture(name, 1024) == values.tobytes()
    with image.map_mipmapped_array(stream=stream) as mipmap:
        level = mipmap.get_level(0)
        assert (level.shape, mipmap.num_levels >= 1) == ((32, 8), True)
        found = level.copy_to(np.zeros_like(values), stream=stream)
        level.close()
    stream.sync()
    assert (found == values).all()
    image.close()
    """)


def test_an_image_of_opengl_is_registered_and_not_mapped_as_a_buffer():
    run("""
    name = gl.make_texture(32, 8, bytes(range(256)) * 4)
    assert gl.read_texture(name, 1024) == bytes(range(256)) * 4
    resource = GraphicsResource.from_gl_image(name, egl.GL_TEXTURE_2D)
    try:
        resource.map(stream=stream)
    except CUDAError:
        pass
    else:
        raise AssertionError("an image was mapped as a buffer")
    assert not resource.is_mapped
    resource.close()
    """)
