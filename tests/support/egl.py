# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""An OpenGL context without a display, made by EGL on the GPU of a CUDA device; a few functions of OpenGL."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

EGL_NONE, EGL_SURFACE_TYPE, EGL_PBUFFER_BIT = 0x3038, 0x3033, 0x0001
EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_OPENGL_API = 0x3040, 0x0008, 0x30A2
EGL_PLATFORM_DEVICE_EXT, EGL_CUDA_DEVICE_NV = 0x313F, 0x323A

GL_ARRAY_BUFFER, GL_DYNAMIC_DRAW = 0x8892, 0x88E8
GL_TEXTURE_2D, GL_RGBA, GL_RGBA8, GL_UNSIGNED_BYTE = 0x0DE1, 0x1908, 0x8058, 0x1401
GL_TEXTURE_MIN_FILTER, GL_NEAREST = 0x2801, 0x2600

c_int, c_uint, c_void_p, c_ssize_t = ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_ssize_t


class NoOpenGL(Exception):
    """There is no OpenGL for this device; the text says what failed."""


class Context:
    """An OpenGL context of the GPU that is CUDA device ``ordinal``, current in this thread until it is closed."""

    def __init__(self, ordinal: int = 0) -> None:
        try:
            self._egl = ctypes.CDLL("libEGL.so.1")
        except OSError as error:
            raise NoOpenGL(str(error)) from None
        self._egl.eglGetProcAddress.restype = c_void_p
        device = self._device(ordinal)
        display = self._function("eglGetPlatformDisplayEXT", c_void_p, c_uint, c_void_p, c_void_p)
        self._display = c_void_p(display(EGL_PLATFORM_DEVICE_EXT, device, None))
        self._check("eglInitialize", self._display, None, None)
        self._check("eglBindAPI", EGL_OPENGL_API)
        wanted = [EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE]
        config, count = c_void_p(), c_int()
        self._check(
            "eglChooseConfig", self._display, (c_int * 5)(*wanted), ctypes.byref(config), 1, ctypes.byref(count)
        )
        if not count.value:
            raise NoOpenGL("EGL has no configuration with OpenGL")
        self._egl.eglCreateContext.restype = c_void_p
        self._context = c_void_p(self._egl.eglCreateContext(self._display, config, None, None))
        if not self._context:
            raise NoOpenGL(f"eglCreateContext failed: {self._egl.eglGetError():#x}")
        self._check("eglMakeCurrent", self._display, None, None, self._context)

    def _function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        address = self._egl.eglGetProcAddress(name.encode())
        if not address:
            raise NoOpenGL(f"EGL has no {name}")
        return ctypes.CFUNCTYPE(result, *arguments)(address)

    def _check(self, name: str, *arguments: Any) -> None:
        if not getattr(self._egl, name)(*arguments):
            raise NoOpenGL(f"{name} failed: {self._egl.eglGetError():#x}")

    def _device(self, ordinal: int) -> c_void_p:
        """Return the EGL device that is this CUDA device."""
        query = self._function("eglQueryDevicesEXT", c_uint, c_int, c_void_p, c_void_p)
        attribute = self._function("eglQueryDeviceAttribEXT", c_uint, c_void_p, c_int, c_void_p)
        devices, count, value = (c_void_p * 64)(), c_int(), c_ssize_t()
        query(64, devices, ctypes.byref(count))
        for device in devices[: count.value]:
            if attribute(device, EGL_CUDA_DEVICE_NV, ctypes.byref(value)) and value.value == ordinal:
                return c_void_p(device)
        raise NoOpenGL(f"none of the {count.value} devices of EGL is CUDA device {ordinal}")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of OpenGL; integers are passed as ``int`` or ``GLsizeiptr`` as the registers have it."""
        self._function(name, None, *(c_ssize_t if isinstance(a, int) else type(a) for a in arguments))(*arguments)
        error = self._function("glGetError", c_uint)()
        assert not error, f"{name}: {error:#x}"

    def make_buffer(self, values: bytes) -> int:
        """Return the name of a buffer object with these bytes."""
        name = c_uint()
        self.call("glGenBuffers", 1, ctypes.pointer(name))
        self.call("glBindBuffer", GL_ARRAY_BUFFER, name.value)
        self.call("glBufferData", GL_ARRAY_BUFFER, len(values), ctypes.c_char_p(values), GL_DYNAMIC_DRAW)
        return name.value

    def read_buffer(self, name: int, size: int) -> bytes:
        """Return what a buffer object has."""
        values = ctypes.create_string_buffer(size)
        self.call("glBindBuffer", GL_ARRAY_BUFFER, name)
        self.call("glGetBufferSubData", GL_ARRAY_BUFFER, 0, size, ctypes.cast(values, c_void_p))
        return values.raw

    def make_texture(self, width: int, height: int, values: bytes) -> int:
        """Return the name of a texture of four bytes a texel."""
        name = c_uint()
        self.call("glGenTextures", 1, ctypes.pointer(name))
        self.call("glBindTexture", GL_TEXTURE_2D, name.value)
        self.call("glTexParameteri", GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST)
        pixels = ctypes.c_char_p(values)
        self.call("glTexImage2D", GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels)
        return name.value

    def read_texture(self, name: int, size: int) -> bytes:
        """Return the texels of a texture."""
        values = ctypes.create_string_buffer(size)
        self.call("glBindTexture", GL_TEXTURE_2D, name)
        self.call("glGetTexImage", GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, ctypes.cast(values, c_void_p))
        return values.raw

    def close(self) -> None:
        """End the context and what it has."""
        self._check("eglMakeCurrent", self._display, None, None, None)
        self._check("eglDestroyContext", self._display, self._context)
        self._check("eglTerminate", self._display)
