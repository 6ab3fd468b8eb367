# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Contexts, green ones among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from cuda_core_cffi import _streams
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._core.options import check_options

if TYPE_CHECKING:
    from cuda_core_cffi._streams.options import ContextOptions, StreamOptions
    from cuda_core_cffi._streams.resources import DeviceResources
    from cuda_core_cffi._streams.stream import Stream
    from cuda_core_cffi.typing._option_dicts import ContextOptionsDict, StreamOptionsDict


class Context(Handle):
    """A CUDA context: what streams, events and allocations live in.

    Contexts are reached through :attr:`Device.context`, :attr:`Stream.context` and :attr:`Event.context`. The primary
    context of a device lives as long as the process; closing an object that shows it only gives up that object.

    :meth:`Device.create_context` makes a *green* context: one that shares memory and code with the primary context, and
    whose kernels run on some multiprocessors of the device only. It lives until it is closed, no thread has made it
    current with :meth:`Device.set_current`, and what was made in it is closed as well.
    """

    __slots__ = ()

    _CTYPE = "CUcontext"
    _MADE_BY = "Device.context, Stream.context or Device.create_context"

    def __repr__(self) -> str:
        return f"<Context handle={self._driver_handle:#x} device={self._device_id}>"

    def close(self) -> None:
        """Give the context up. A green one is destroyed when what was made in it is closed, too.

        Raises
        ------
        RuntimeError
            If it is green, and current in this thread: make another one current before.
        """
        is_ours = lib.ccc_flags(self._c_handle) & lib.CCC_GREEN  # a green context that this package has made
        if not self.is_closed and is_ours and lib.ccc_context_is_current(self._c_handle):
            raise RuntimeError(
                "a green context cannot be closed while it is current: call Device.set_current with another one before"
            )
        super().close()

    def create_stream(self, options: StreamOptions | StreamOptionsDict | None = None) -> Stream:
        """Create a stream in this green context, whatever is current.

        Parameters
        ----------
        options : StreamOptions, optional
            Options of the stream, which is ``nonblocking`` in any case.

        Returns
        -------
        Stream
            The stream.

        Raises
        ------
        RuntimeError
            If the context is not green, or closed.
        ValueError
            If the stream is not to be nonblocking, or the priority is out of the device's range.
        """
        from cuda_core_cffi._streams.stream import Stream  # which imports this module

        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        if not self.is_green:
            raise RuntimeError("the context is not green: use Device.create_stream, which uses the current context")
        return Stream._create_in(self, options)

    @property
    def is_green(self) -> bool:
        """Whether the context was made of some of a device's resources.

        Raises
        ------
        CUDAError
            If it is a context of another library that was destroyed.
        RuntimeError
            If it is closed, and was of another library.
        """
        answer = lib.ccc_context_is_green(self._c_handle)
        if answer < 0:
            raise self._failure(lib.ccc_last_status())
        return bool(answer)

    @property
    def resources(self) -> DeviceResources:
        """The resources that the context has: those of the device, unless it is green.

        Raises
        ------
        RuntimeError
            If the context is closed.
        """
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        return _streams.DeviceResources._create(self._device_id, self)

    @property
    def _device_id(self) -> int:
        return int(lib.ccc_handle_device(self._c_handle))


def create_green_context(
    device_id: int, options: ContextOptions | ContextOptionsDict | Literal[False] | None
) -> Context:
    """Make a green context, which does not become current, of the resources in the options."""
    if options is None or options is False:
        raise ValueError("options must say which resources the context has: ContextOptions(resources=[...])")
    given = check_options(_streams.ContextOptions, options, "Device.create_context").resources
    if given is None:
        raise ValueError("resources must be a sequence of resources of the device, not None")
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"resources must be a sequence of resources, not {type(given).__name__}")
    resources = list(given)
    if not resources:
        raise ValueError("resources must not be empty")
    for resource in resources:
        check_resource(resource, device_id)
    natives = ffi.new("ccc_resource[]", len(resources))
    for i, resource in enumerate(resources):
        natives[i] = resource._native[0]
    return Context._made_by(lib.ccc_green_create, device_id, natives, len(resources))


def check_resource(resource: object, device_id: int) -> None:
    """Raise unless a context of the device can have this resource."""
    if not isinstance(resource, _streams.SMResource | _streams.WorkqueueResource):
        raise TypeError(f"resources must be SMResource or WorkqueueResource, not {type(resource).__name__}")
    if resource._device_id != device_id:
        raise ValueError(f"{resource!r} belongs to device {resource._device_id}, not to device {device_id}")
    if isinstance(resource, _streams.SMResource):
        if resource._is_dry:
            raise ValueError("a set of multiprocessors from a dry run is none that a context can have")
        if not resource.sm_count:
            raise ValueError("a set without multiprocessors is none that a context can have")
