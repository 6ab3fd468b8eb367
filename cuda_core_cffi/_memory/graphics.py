# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers and images of OpenGL, which CUDA uses while they are mapped."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any, ClassVar, cast

from cuda_core_cffi._core import calls
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._streams.stream import Stream, accept_stream
from cuda_core_cffi.typing import IsStreamType

__all__ = ["GraphicsResource"]

LARGEST_NAME = 2**32 - 1
FLAGS = {
    "none": lib.CU_GRAPHICS_REGISTER_FLAGS_NONE,
    "read_only": lib.CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY,
    "write_discard": lib.CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD,
    "surface_load_store": lib.CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST,
    "texture_gather": lib.CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER,
}


class GraphicsResource(Handle):
    """A buffer or an image of OpenGL, registered for use by CUDA.

    Resources come from :meth:`from_gl_buffer` and :meth:`from_gl_image`, which need an OpenGL context that is current
    in the thread. While a resource is mapped its memory is a :class:`Buffer`, and OpenGL must not use it. Closing the
    buffer unmaps; so does the end of a buffer that nobody refers to. Close buffer and resource in the thread of the
    OpenGL context rather than leave them to the garbage collector.

    In a ``with`` statement a resource is closed at the end. One that was made with a stream is mapped at the beginning,
    and the buffer is what the statement gives.
    """

    __slots__ = ("_buffer", "_entered", "_stream")

    _CTYPE: ClassVar[str] = "CUgraphicsResource"
    _MADE_BY: ClassVar[str] = "GraphicsResource.from_gl_buffer or from_gl_image"
    _buffer: weakref.ref[Buffer] | None  # whose life is the mapping
    _entered: Buffer | None  # kept to the end of a with statement
    _stream: Stream | None  # in which that maps

    __eq__ = object.__eq__  # a handle is given again to another resource
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<GraphicsResource handle={self._value:#x}{' mapped' if self.is_mapped else ''}>"

    def __enter__(self) -> GraphicsResource | Buffer:  # type: ignore[override]
        """Return the resource; or map it in the stream that it was made with, and return the buffer."""
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        if self._stream is None:
            return self
        self._entered = self.map(stream=self._stream)
        return self._entered

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def _register(cls, name: int, target: int, is_image: bool, flags: Any, stream: Stream | None) -> GraphicsResource:
        self = cls._own(lib.ccc_graphics_register(name, target, is_image, register_flags(flags)))
        self._buffer = self._entered = None
        self._stream = stream
        return self

    @classmethod
    def from_gl_buffer(
        cls,
        gl_buffer: int,
        *,
        flags: str | tuple[str, ...] | list[str] | None = None,
        stream: IsStreamType | None = None,
    ) -> GraphicsResource:
        """Register a buffer object of OpenGL, in the CUDA context that is current.

        Parameters
        ----------
        gl_buffer : int
            The name of the buffer, a ``GLuint``.
        flags : str or sequence of str, optional
            What CUDA does with it: ``"none"``, ``"read_only"``, ``"write_discard"``, ``"surface_load_store"``,
            ``"texture_gather"``. Default is nothing that is known.
        stream : Stream, optional
            The stream in which a ``with`` statement maps the buffer.

        Returns
        -------
        GraphicsResource
            The resource.

        Raises
        ------
        ValueError
            If there is no such flag.
        CUDAError
            If no OpenGL context is current, or no buffer has this name.
        UnavailableError
            If the driver has no functions for OpenGL.
        """
        queue = None if stream is None else accept_stream(stream, "GraphicsResource.from_gl_buffer")
        return cls._register(gl_number(gl_buffer, "gl_buffer"), 0, False, flags, queue)

    @classmethod
    def from_gl_image(
        cls, image: int, target: int, *, flags: str | tuple[str, ...] | list[str] | None = None
    ) -> GraphicsResource:
        """Register a texture or a renderbuffer of OpenGL, in the CUDA context that is current.

        Parameters
        ----------
        image : int
            The name of the texture or renderbuffer, a ``GLuint``.
        target : int
            What it is, such as ``GL_TEXTURE_2D``.
        flags : str or sequence of str, optional
            As for :meth:`from_gl_buffer`.

        Returns
        -------
        GraphicsResource
            The resource. The driver maps images as arrays, so :meth:`map` may be refused.

        Raises
        ------
        ValueError
            If there is no such flag.
        CUDAError
            If no OpenGL context is current, or no image has this name, or not one that CUDA can use.
        UnavailableError
            If the driver has no functions for OpenGL.
        """
        return cls._register(gl_number(image, "image"), gl_number(target, "target"), True, flags, None)

    def map(self, *, stream: IsStreamType) -> Buffer:
        """Let CUDA use the memory: what follows in the stream may, when OpenGL is done with it.

        Parameters
        ----------
        stream : Stream
            The stream. The memory is unmapped in its order too, unless ``close`` of the buffer names another.

        Returns
        -------
        Buffer
            The memory. Closing the buffer unmaps it; slices and what it was exported to keep it mapped.

        Raises
        ------
        RuntimeError
            If the resource is mapped, or closed.
        CUDAError
            If the driver cannot map it, or it is an image.
        """
        queue = accept_stream(stream, "GraphicsResource.map")
        size = ffi.new("size_t *")
        c_handle = lib.ccc_graphics_map(self._c_handle, queue._c_handle, size)
        if not c_handle:
            status = lib.ccc_last_status()
            if status == lib.CCC_ALREADY_MAPPED:
                raise RuntimeError("this GraphicsResource is mapped: close the buffer, or call unmap(), before another")
            raise self._failure(status, queue)
        buffer = calls.own(Buffer, c_handle)
        buffer._size, buffer._mr = int(size[0]), None
        if queue._owner is not None:
            buffer._keep = queue
        self._buffer = weakref.ref(buffer)
        return buffer

    def unmap(self, *, stream: IsStreamType | None = None) -> None:
        """Give the memory back to OpenGL: close the buffer that :meth:`map` gave.

        Parameters
        ----------
        stream : Stream, optional
            The memory goes back when the work now in this stream is done. Default is the stream that it was mapped in.

        Raises
        ------
        RuntimeError
            If the resource is not mapped, or is closed; or if slices, or what the buffer was exported to, still use the
            memory: it is unmapped when the last of them is closed.
        CUDAError
            If the driver cannot unmap it.
        """
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        if not self.is_mapped:
            raise RuntimeError("this GraphicsResource is not mapped")
        buffer = self._buffer() if self._buffer is not None else None
        lib.ccc_graphics_watch(self._c_handle)
        try:
            if buffer is not None:
                buffer.close(stream)
        finally:
            status = lib.ccc_graphics_watched(self._c_handle)
        if status == lib.CCC_STILL_MAPPED:
            raise RuntimeError(
                "slices of the buffer, or what it was exported to, still use the memory: close them first"
            )
        if status:
            raise self._failure(status)

    def close(self, stream: IsStreamType | None = None) -> None:
        """Unregister the resource, after unmapping it. Closing twice is allowed.

        Parameters
        ----------
        stream : Stream, optional
            If the resource is mapped: the memory goes back when the work now in this stream is done. Default is the
            stream that it was mapped in.
        """
        buffer = self._buffer() if self._buffer is not None else None
        if buffer is not None and not self.is_closed:
            buffer.close(stream)
        self._buffer = self._entered = None
        super().close()

    @property
    def is_mapped(self) -> bool:
        """Whether CUDA may use the memory, and OpenGL may not."""
        return bool(lib.ccc_graphics_is_mapped(self._c_handle))

    @property
    def resource_handle(self) -> int:
        """Another name of :attr:`handle`."""
        return self.handle


def gl_number(value: Any, name: str) -> int:
    """Return a name or an enumerator of OpenGL, or raise."""
    number = integer(value, name)
    if not 0 <= number <= LARGEST_NAME:
        raise OverflowError(f"{name} must be 0 to 2**32 - 1, not {number}")
    return number


def register_flags(flags: Any) -> int:
    """Return the driver's flags for strings, or raise."""
    if flags is None:
        return 0
    if not isinstance(flags, str | Iterable):
        raise TypeError(f"flags must be a string or a sequence of strings, not {type(flags).__name__}")
    found = 0
    for flag in (flags,) if isinstance(flags, str) else flags:
        if flag not in FLAGS:
            raise ValueError(f"flags must be of {', '.join(map(repr, FLAGS))}, not {flag!r}")
        found |= cast(int, FLAGS[flag])
    return found
