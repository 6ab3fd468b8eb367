# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers and images of OpenGL, which CUDA uses while they are mapped."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from cuda_core_cffi._core import calls
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._streams.stream import Stream, accept_stream
from cuda_core_cffi.typing import IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi.texture import MipmappedArray, OpaqueArray

LARGEST_NAME = 2**32 - 1
T = TypeVar("T", "Buffer", "OpaqueArray", "MipmappedArray")
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
    in the thread. While a resource is mapped OpenGL must not use it. The memory of a buffer object is then a
    :class:`Buffer`; an image is an array without or with levels. Closing the buffer or the array unmaps; so does the
    end of one that nobody refers to. Close both that and the resource in the thread of the OpenGL context rather than
    leave them to the garbage collector.

    In a ``with`` statement a resource is closed at the end. One that was made with a stream is mapped at the beginning,
    and the buffer is what the statement gives.
    """

    __slots__ = ("_entered", "_flags", "_mapped", "_stream")

    _CTYPE: ClassVar[str] = "CUgraphicsResource"
    _MADE_BY: ClassVar[str] = "GraphicsResource.from_gl_buffer or from_gl_image"
    _entered: Buffer | None  # kept to the end of a with statement
    _flags: int
    _mapped: weakref.ref[Buffer | OpaqueArray | MipmappedArray] | None  # whose life is the mapping
    _stream: Stream | None  # in which that maps

    __eq__ = object.__eq__  # a handle is given again to another resource
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<GraphicsResource handle={self._driver_handle:#x}{' mapped' if self.is_mapped else ''}>"

    def __enter__(self) -> GraphicsResource | Buffer:  # type: ignore[override]
        """Return the resource; or map it in the stream that it was made with, and return the buffer."""
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        if self._stream is None:
            return self
        self._entered = self.map(stream=self._stream)
        return self._entered

    @classmethod
    def _register(cls, name: int, target: int, is_image: bool, flags: Any, stream: Stream | None) -> GraphicsResource:
        number = register_flags(flags)
        self = cls._made_by(lib.ccc_graphics_register, name, target, is_image, number)
        self._mapped = self._entered = None
        self._flags, self._stream = number, stream
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
            The resource, for :meth:`map_array` and :meth:`map_mipmapped_array`. Images have no address, so the driver
            refuses :meth:`map`.

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

        See Also
        --------
        map_array, map_mipmapped_array : The same for images.
        """
        queue = accept_stream(stream, "GraphicsResource.map")
        size = ffi.new("size_t *")
        buffer = self._map(Buffer, lib.ccc_graphics_map, queue, size)
        buffer._size, buffer._mr = int(size[0]), None
        return self._remember(buffer, queue)

    def map_array(self, *, stream: IsStreamType, index: int = 0, level: int = 0) -> OpaqueArray:
        """Let CUDA use one array of an image: what follows in the stream may, when OpenGL is done with it.

        Parameters
        ----------
        stream : Stream
            The stream. The image is unmapped in its order too, unless :meth:`unmap` names another.
        index : int, optional
            The layer of an array texture, or the face of a cubemap. Default 0.
        level : int, optional
            The level of a texture with levels. Default 0.

        Returns
        -------
        OpaqueArray
            The array. Closing it unmaps the image; textures and surfaces of it keep it mapped. Surfaces can be made of
            it if the flag ``"surface_load_store"`` was given.

        Raises
        ------
        RuntimeError
            If the resource is mapped, or closed.
        OverflowError
            If index or level is negative, or has more than 32 bits.
        ValueError
            If its elements are none that arrays can have. The image is not mapped then.
        CUDAError
            If the driver cannot map it, there is no such layer or level, or it is a buffer object.
        """
        queue = accept_stream(stream, "GraphicsResource.map_array")
        numbers = gl_number(index, "index"), gl_number(level, "level")
        native = ffi.new("CUDA_ARRAY3D_DESCRIPTOR *")
        cls: type[OpaqueArray] = registry.texture.OpaqueArray
        array = self._map(cls, lib.ccc_graphics_map_image, queue, *numbers, native, ffi.NULL)
        return self._remember(array._of_image(native, self._has_surfaces), queue)

    def map_mipmapped_array(self, *, stream: IsStreamType) -> MipmappedArray:
        """Let CUDA use all levels of an image: what follows in the stream may, when OpenGL is done with it.

        Parameters
        ----------
        stream : Stream
            The stream. The image is unmapped in its order too, unless :meth:`unmap` names another.

        Returns
        -------
        MipmappedArray
            The array. Closing it unmaps the image; its levels, and textures and surfaces of them, keep it mapped.

        Raises
        ------
        RuntimeError
            If the resource is mapped, or closed.
        ValueError
            If it has layers or faces, or its elements are none that arrays can have. The image is not mapped then.
        CUDAError
            If the driver cannot map it, or it is a buffer object.
        """
        queue = accept_stream(stream, "GraphicsResource.map_mipmapped_array")
        native, levels = ffi.new("CUDA_ARRAY3D_DESCRIPTOR *"), ffi.new("unsigned int *")
        cls: type[MipmappedArray] = registry.texture.MipmappedArray
        array = self._map(cls, lib.ccc_graphics_map_image, queue, 0, 0, native, levels)
        return self._remember(array._of_levels(native, self._has_surfaces, int(levels[0])), queue)

    @property
    def _has_surfaces(self) -> bool:
        """Whether kernels may write an image through surfaces."""
        return bool(self._flags & lib.CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST)

    def _remember(self, item: T, queue: Stream) -> T:
        """Return what was mapped in a stream, and remember it without keeping it."""
        if queue._owner is not None:
            item._keep = queue
        self._mapped = weakref.ref(item)
        return item

    def _map(self, cls: type[T], helper: Callable[..., Any], queue: Stream, *arguments: Any) -> T:
        """Return an object for what a helper maps in a stream, or raise."""
        item = calls.make(cls, helper, self._c_handle, queue._c_handle, *arguments)
        if item is not None:
            return item
        status = lib.ccc_last_status()
        if status == lib.CCC_ALREADY_MAPPED:
            raise RuntimeError(
                "this GraphicsResource is mapped: close the buffer or array, or call unmap(), before another"
            )
        raise self._failure(status, queue)

    def unmap(self, *, stream: IsStreamType | None = None) -> None:
        """Give the memory back to OpenGL: close the buffer or array that it was mapped as.

        Parameters
        ----------
        stream : Stream, optional
            The memory goes back when the work now in this stream is done. Default is the stream that it was mapped in.

        Raises
        ------
        RuntimeError
            If the resource is not mapped, or is closed; or if slices, levels, textures, surfaces, or what a buffer was
            exported to, still use the memory: it is unmapped when the last of them is closed.
        CUDAError
            If the driver cannot unmap it.
        """
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        if not self.is_mapped:
            raise RuntimeError("this GraphicsResource is not mapped")
        lib.ccc_graphics_watch(self._c_handle)
        try:
            self._close_mapped(stream)
        finally:
            status = lib.ccc_graphics_watched(self._c_handle)
        if status == lib.CCC_STILL_MAPPED:
            raise RuntimeError(
                "slices of the buffer, levels or textures of the array, or what it was exported to, still use the "
                "memory: close them first"
            )
        if status:
            raise self._failure(status)

    def _close_mapped(self, stream: IsStreamType | None) -> None:
        """Close what the resource is mapped as, in the order of a stream."""
        item = self._mapped() if self._mapped is not None else None
        if isinstance(item, Buffer):
            item.close(stream)
        elif item is not None:
            if stream is not None and not item.is_closed:
                queue = accept_stream(stream, "GraphicsResource.unmap")
                status = lib.ccc_graphics_set_stream(item._c_handle, queue._c_handle)
                if status:
                    raise item._failure(status, queue)
                if queue._owner is not None:
                    item._keep = queue
            item.close()

    def close(self, stream: IsStreamType | None = None) -> None:
        """Unregister the resource, after unmapping it. Closing twice is allowed.

        Parameters
        ----------
        stream : Stream, optional
            If the resource is mapped: the memory goes back when the work now in this stream is done. Default is the
            stream that it was mapped in.
        """
        if not self.is_closed:
            self._close_mapped(stream)
        self._mapped = self._entered = None
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
