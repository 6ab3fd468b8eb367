# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Devices: where everything starts."""

from __future__ import annotations

import os
import threading
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self

from cuda_core_cffi import _streams
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.errors import check, failure, last_failure, note_current_context
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import class_of_handle, integer
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._device.properties import DeviceProperties
from cuda_core_cffi._lifetime.host_memory import NOT_READY, synchronised
from cuda_core_cffi._memory import Buffer, DeviceMemoryResource, MemoryResource, SynchronousMemoryResource
from cuda_core_cffi._streams.context import Context, create_green_context
from cuda_core_cffi._streams.event import DEFAULT_FLAGS, Event, event_flags
from cuda_core_cffi._streams.stream import (
    Stream,
    StreamProxy,
    accept_stream,
    default_stream,
    protocol_address,
)
from cuda_core_cffi.typing import IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi._streams.options import ContextOptions, EventOptions, StreamOptions
    from cuda_core_cffi._streams.resources import DeviceResources
    from cuda_core_cffi.graph.builder import GraphBuilder
    from cuda_core_cffi.system import Device as SystemDevice
    from cuda_core_cffi.texture import (
        MipmappedArray,
        MipmappedArrayOptions,
        OpaqueArray,
        OpaqueArrayOptions,
        ResourceDescriptor,
        SurfaceObject,
        TextureObject,
        TextureObjectOptions,
    )
    from cuda_core_cffi.typing._option_dicts import (
        ContextOptionsDict,
        EventOptionsDict,
        MipmappedArrayOptionsDict,
        OpaqueArrayOptionsDict,
        StreamOptionsDict,
        TextureObjectOptionsDict,
    )

NAME_SIZE = 256
NOTHING_DONE = 2**64 - 1  # of ccc_device_replace_current
NONE_CURRENT = -1  # of ccc_current_device; less is a failure

_create_event = lib.ccc_event_create
_set_current = lib.ccc_device_set_current


class ComputeCapability(NamedTuple):
    """The version of a device's architecture."""

    major: int
    minor: int


def find_device(cls: type[Device], device_id: Device | int | None = None) -> Device:
    """Return the device that a call with this argument means, which ``calls.DeviceFinder`` has not found."""
    if device_id is None:
        ordinal = current_or_first()
    elif isinstance(device_id, Device):
        ordinal = device_id._device_id
    elif class_of_handle(device_id) == "CUdevice":
        ordinal = int(device_id)
    else:
        ordinal = integer(device_id, "device_id", "an int or a Device")
    devices = calls.thread_devices()
    known: Device | None = devices.get(ordinal)
    if known is not None:
        return known
    count = device_count()
    if not 0 <= ordinal < count:
        raise ValueError(f"device_id must be 0 to {count - 1}, not {ordinal}")
    self = calls.new_object(cls)
    self._device_id = ordinal
    self._memory_resource = self._pool = None
    self._properties = DeviceProperties._create(ordinal)
    devices[ordinal] = self
    return self


find_device.__qualname__ = "Device.__new__"  # so messages say what was called


class CallSignature:
    """What :mod:`inspect` finds as the signature of :class:`Device`, which is called in C on CPython."""

    def __get__(self, instance: object, owner: type) -> object:
        if owner is not Device:
            raise AttributeError("__signature__")
        import inspect

        return inspect.signature(Device._find)


def raise_status(status: int, device: object) -> NoReturn:
    """Raise the exception for a method of a device that failed."""
    raise failure(status)


class Device(calls.DeviceFinder):
    """A GPU. In each thread, one object stands for the same device.

    Parameters
    ----------
    device_id : int or Device, optional
        Its ordinal, from 0. By default the device of the current context, or 0 where none is current.

    Raises
    ------
    ValueError
        If there is no such device.
    CUDAError
        If there is no driver, or it finds no device.

    Notes
    -----
    Making the object initialises nothing on the device. Each thread calls :meth:`set_current` before it works with one.
    What a device creates lives in the context that is current, if that belongs to the device, and so may be shared with
    another library; otherwise in the device's primary context.

    Examples
    --------
    >>> device = Device(0)
    >>> device.set_current()
    >>> Device() is device  # the current one
    True
    >>> with device.create_stream() as stream:
    ...     stream.sync()
    """

    __slots__ = (
        "__weakref__",
        "_capability",
        "_memory_resource",
        "_name",
        "_pool",
        "_properties",
        "_uuid",
    )

    _capability: ComputeCapability
    _memory_resource: MemoryResource | None
    _name: str
    _pool: DeviceMemoryResource | None  # the memory resource, where it is no subclass of it
    _properties: DeviceProperties
    _uuid: str

    __signature__ = CallSignature()

    if TYPE_CHECKING:

        def __new__(cls, device_id: Device | int | None = None) -> Device: ...

    _find = classmethod(find_device)

    def __int__(self) -> int:
        return self._device_id

    __index__ = __int__

    def __repr__(self) -> str:
        return f"<Device {self._device_id} ({self.name})>"

    def __hash__(self) -> int:
        return hash((Device, self._device_id))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self._device_id == other._device_id

    def __reduce__(self) -> tuple[object, ...]:
        return (Device, (self._device_id,))

    @calls.native(raise_status)
    def set_current(self, ctx: Context | None = None) -> Context | None:
        """Make a context current in this thread.

        Parameters
        ----------
        ctx : Context, optional
            The context. By default the device's primary one, which the CUDA runtime and the libraries on it use too.
            A context of another device becomes current too, and with it that device: so any device accepts the result
            of an earlier call.

        Returns
        -------
        Context or None
            With ``ctx``, the context that was current before, if any, of whatever device.

        Raises
        ------
        TypeError
            If `ctx` is no context.
        RuntimeError
            If it is closed.
        """
        if ctx is None:
            status = _set_current(self._device_id)
            if status:
                raise_status(status, self)
            return None
        if not isinstance(ctx, Context):
            raise TypeError(f"ctx must be a Context, not {type(ctx).__name__}")
        previous = calls.make(Context, lib.ccc_context_current)
        if previous is None and lib.ccc_last_status():
            raise last_failure()
        status = lib.ccc_set_current(ctx._c_handle)
        if status:
            raise ctx._failure(status)
        return previous

    def __enter__(self) -> Self:
        """Make the device's primary context current in this thread, until the block ends.

        Returns
        -------
        Device
            The device.

        Raises
        ------
        CUDAError
            If the device cannot be used.
        """
        previous = lib.ccc_device_replace_current(self._device_id)
        if previous == NOTHING_DONE:
            raise last_failure()
        kept = calls.make(Context, lib.ccc_green_referenced)  # a green context stays alive until it is current again
        _blocks.displaced.append((previous, kept))
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make current again what was current before the block: a context of whatever device, or none.

        Raises
        ------
        CUDAError
            If that context was destroyed meanwhile. A note names the context that stays current.
        RuntimeError
            If no block has begun in this thread.
        """
        if not _blocks.displaced:
            raise RuntimeError("no block that a device is current in has begun in this thread")
        previous, kept = _blocks.displaced.pop()
        status = lib.ccc_restore_current(previous) if kept is None else lib.ccc_set_current(kept._c_handle)
        if status:
            raise note_current_context(failure(status))

    def create_context(self, options: ContextOptions | ContextOptionsDict | None = None) -> Context:
        """Create a green context: one that has some of the device's resources. It does not become current.

        Parameters
        ----------
        options : ContextOptions
            The resources, which come from :attr:`resources`.

        Returns
        -------
        Context
            The context.

        Raises
        ------
        TypeError, ValueError
            If there are no resources, they are of another type, of another device, or of a dry run.
        CUDAError
            If the driver refuses to put them together.
        UnavailableError
            If the driver is older than CUDA 12.4.
        """
        return create_green_context(self._device_id, options)

    @calls.native(raise_status)
    def create_stream(
        self, obj: IsStreamType | None = None, options: StreamOptions | StreamOptionsDict | None = None
    ) -> Stream:
        """Create a stream, or wrap another library's.

        Parameters
        ----------
        obj : object with ``__cuda_stream__``, optional
            The stream to wrap. It is kept alive as long as the wrapper.
        options : StreamOptions, optional
            Options of a new stream.

        Returns
        -------
        Stream
            The stream.

        Raises
        ------
        ValueError
            If both are given, or the priority is out of the device's range.
        """
        if obj is not None:
            if options is not None:
                raise ValueError("options are for a new stream: give obj or options, not both")
            if isinstance(obj, Stream | StreamProxy):
                return Stream._borrow_stream(accept_stream(obj, "Device.create_stream"))
            return Stream._borrow(protocol_address(obj, "Device.create_stream", stacklevel=3), obj)
        if options is not None:
            options = check_options(_streams.StreamOptions, options, "Device.create_stream")
        return Stream._create(self._device_id, options)

    @calls.native(raise_status)
    def create_event(self, options: EventOptions | EventOptionsDict | None = None) -> Event:
        """Create an event, not yet recorded.

        Parameters
        ----------
        options : EventOptions, optional
            Options of the event.

        Returns
        -------
        Event
            The event.
        """
        flags = DEFAULT_FLAGS
        if options is not None:
            flags = event_flags(check_options(_streams.EventOptions, options, "Device.create_event"))
        return Event._made_by(_create_event, self._device_id, flags)

    def create_graph_builder(self) -> GraphBuilder:
        """Return a builder of a graph that captures a new stream.

        Returns
        -------
        GraphBuilder
            The builder, with its stream.
        """
        return registry.graph_builder._create(Stream._create(self._device_id, None), owns_stream=True)

    def allocate(self, size: int, stream: IsStreamType | None = None) -> Buffer:
        r"""Allocate memory on the device, from :attr:`memory_resource`.

        Parameters
        ----------
        size : int
            Size in bytes.
        stream : Stream, optional
            The memory may be used by work that follows in this stream, and goes back in its order. Default is the
            default stream.

        Returns
        -------
        Buffer
            The memory; its content is undefined.

        Examples
        --------
        >>> buffer = device.allocate(8, stream)
        >>> buffer.fill(b"\x01", stream=stream)
        >>> buffer[4:].fill(b"\x02", stream=stream)  # a slice shares the memory
        >>> result = buffer.copy_to(bytearray(8), stream=stream)
        >>> stream.sync()
        >>> list(result)
        [1, 1, 1, 1, 2, 2, 2, 2]
        >>> buffer.close()
        """
        pool = self._pool
        if pool is not None:
            return pool.allocate(size, stream)  # quicker without the keyword, which resources of others must get
        return self.memory_resource.allocate(size, stream=stream)

    def create_opaque_array(self, options: OpaqueArrayOptions | OpaqueArrayOptionsDict) -> OpaqueArray:
        """Allocate an array that kernels use through textures and surfaces.

        Parameters
        ----------
        options : OpaqueArrayOptions
            Its shape, and what its elements are.

        Returns
        -------
        OpaqueArray
            The array; its content is undefined.

        Raises
        ------
        CUDAError
            If there is no memory, or the device has no arrays of this size.
        """
        found: OpaqueArray = registry.texture.OpaqueArray._create(self._device_id, options)
        return found

    def create_mipmapped_array(self, options: MipmappedArrayOptions | MipmappedArrayOptionsDict) -> MipmappedArray:
        """Allocate an array with levels.

        Parameters
        ----------
        options : MipmappedArrayOptions
            Its shape, its levels, and what its elements are.

        Returns
        -------
        MipmappedArray
            The array; its content is undefined.

        Raises
        ------
        ValueError
            If an array of this shape has fewer levels.
        CUDAError
            If there is no memory, or the device has no arrays of this size.
        """
        found: MipmappedArray = registry.texture.MipmappedArray._create(self._device_id, options)
        return found

    def create_texture_object(
        self, resource: ResourceDescriptor, options: TextureObjectOptions | TextureObjectOptionsDict | None = None
    ) -> TextureObject:
        """Make a texture, through which kernels sample an array or a buffer.

        Parameters
        ----------
        resource : ResourceDescriptor
            What the texture shows. It is kept as long as the texture is open.
        options : TextureObjectOptions, optional
            How it samples.

        Returns
        -------
        TextureObject
            The texture.

        Raises
        ------
        ValueError
            If an option has no such value, the array is on another device, or the buffer is not aligned.
        RuntimeError
            If the array or the buffer is closed.
        CUDAError
            If the driver has no such textures.
        """
        found: TextureObject = registry.texture.TextureObject._create(self._device_id, resource, options)
        return found

    def create_surface_object(self, resource: ResourceDescriptor) -> SurfaceObject:
        """Make a surface, through which kernels read and write an array.

        Parameters
        ----------
        resource : ResourceDescriptor
            An array that was made with ``is_surface_load_store``. It is kept as long as the surface is open.

        Returns
        -------
        SurfaceObject
            The surface.

        Raises
        ------
        ValueError
            If this is no such array, or one on another device.
        RuntimeError
            If the array is closed.
        """
        found: SurfaceObject = registry.texture.SurfaceObject._create(self._device_id, resource)
        return found

    def sync(self) -> None:
        """Wait on the host until all work in the context is done.

        Raises
        ------
        CUDAError
            If work failed.
        """
        status = lib.ccc_device_sync_slice(self._device_id, False)
        while status == NOT_READY:  # the simulated driver returns at times, for the handlers of signals to run
            status = lib.ccc_device_sync_slice(self._device_id, True)
        check(status)
        synchronised()

    def can_access_peer(self, peer: Device | int) -> bool:
        """Tell whether kernels of this device can use the memory of another.

        Parameters
        ----------
        peer : Device or int
            The other device.

        Returns
        -------
        bool
            True also for the device itself.
        """
        other = Device(peer)._device_id
        result = ffi.new("int *")
        check(lib.cuDeviceCanAccessPeer(result, self._device_id, other), "cuDeviceCanAccessPeer")
        return bool(result[0]) or other == self._device_id  # which CUDA calls no peer of its own

    def to_system_device(self) -> SystemDevice:
        """Return the device for NVML: the one with this UUID, or the instance (MIG).

        Returns
        -------
        system.Device
            The device, which tells how busy it is, its temperature and so on.

        Raises
        ------
        LibraryNotFoundError
            If there is no NVML.
        NotFoundError
            If NVML does not have the device.
        """
        return registry.system_device._of_cuda(self.uuid)

    @classmethod
    def get_all_devices(cls) -> tuple[Device, ...]:
        """Return all devices that the driver finds.

        Returns
        -------
        tuple of Device
            In the order of their ordinals.

        Raises
        ------
        CUDAError
            If the driver cannot be started.
        """
        return tuple(cls(ordinal) for ordinal in range(device_count()))

    @property
    def device_id(self) -> int:
        """The ordinal."""
        return self._device_id

    @property
    def name(self) -> str:
        """The name, for example ``"NVIDIA H200"``."""
        try:
            return self._name
        except AttributeError:
            text = ffi.new("char[]", NAME_SIZE)
            check(lib.cuDeviceGetName(text, NAME_SIZE, self._device_id), "cuDeviceGetName")
            self._name = ffi.string(text).decode(errors="replace")
            return self._name

    @property
    def pci_bus_id(self) -> str:
        """The address on the PCI bus, for example ``"0000:3B:00.0"``."""
        text = ffi.new("char[]", NAME_SIZE)
        check(lib.cuDeviceGetPCIBusId(text, NAME_SIZE, self._device_id), "cuDeviceGetPCIBusId")
        return str(ffi.string(text).decode())

    @property
    def uuid(self) -> str:
        """The UUID in its usual form of 8-4-4-4-12 hexadecimal digits, without a prefix."""
        try:
            return self._uuid
        except AttributeError:
            import uuid  # which brings modules that nothing else here needs

            raw = ffi.new("CUuuid *")
            check(lib.cuDeviceGetUuid(raw, self._device_id), "cuDeviceGetUuid")
            self._uuid = str(uuid.UUID(bytes=bytes(ffi.buffer(raw))))
            return self._uuid

    @property
    def properties(self) -> DeviceProperties:
        """What the device can do."""
        return self._properties

    @property
    def compute_capability(self) -> ComputeCapability:
        """The version of the architecture."""
        try:
            return self._capability
        except AttributeError:
            properties = self._properties
            self._capability = ComputeCapability(
                properties.compute_capability_major, properties.compute_capability_minor
            )
            return self._capability

    @property
    def arch(self) -> str:
        """The compute capability as compilers name it: ``"90"``."""
        return "{}{}".format(*self.compute_capability)

    @property
    def context(self) -> Context:
        """The context that work on the device uses: the current one if it is this device's, else the primary one."""
        return Context._made_by(lib.ccc_device_context, self._device_id)

    @property
    def resources(self) -> DeviceResources:
        """The resources of the device, of which :meth:`create_context` can give some to a context."""
        return _streams.DeviceResources._create(self._device_id)

    @property
    def default_stream(self) -> Stream:
        """The default stream, as the environment configures it."""
        return default_stream()

    @property
    def memory_resource(self) -> MemoryResource:
        """Where :meth:`allocate` gets memory. By default the device's current pool. Set in each thread by itself."""
        mr = self._memory_resource
        if mr is None:
            mr = self.memory_resource = default_memory_resource(self)
        return mr

    @memory_resource.setter
    def memory_resource(self, mr: MemoryResource) -> None:
        if not isinstance(mr, MemoryResource):
            raise TypeError(f"memory_resource must be a MemoryResource, not {type(mr).__name__}")
        self._memory_resource = mr
        self._pool = mr if type(mr) is DeviceMemoryResource else None


class Blocks(threading.local):
    """The blocks of a thread that a device is current in."""

    def __init__(self) -> None:
        # what was current before each, and that context if it is green
        self.displaced: list[tuple[int, Context | None]] = []


_blocks = Blocks()
_default_resources: dict[int, MemoryResource] = {}


def current_or_first() -> int:
    """Return the ordinal of the current context's device, or 0 where none is current."""
    current: int = lib.ccc_current_device()
    if current < NONE_CURRENT:
        raise last_failure()
    return max(current, 0)


def device_count() -> int:
    """Return the number of devices.

    Raises
    ------
    CUDAError
        If there is no driver, or it finds no device.
    """
    check(lib.ccc_init())
    count = ffi.new("int *")
    check(lib.cuDeviceGetCount(count), "cuDeviceGetCount")
    if count[0] == 0:
        check(lib.CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount")
    return int(count[0])


def driver_version() -> tuple[int, int, int]:
    """Return the version of CUDA that the driver is for, as major, minor and patch level."""
    version = ffi.new("int *")
    check(lib.cuDriverGetVersion(version), "cuDriverGetVersion")
    number = version[0]
    return number // 1000, number % 1000 // 10, number % 10


def default_memory_resource(device: Device) -> MemoryResource:
    """Return the resource that all threads share for a device."""
    ordinal = device._device_id
    known = _default_resources.get(ordinal)
    if known is not None:
        return known
    pools = device._properties.memory_pools_supported
    made = DeviceMemoryResource(ordinal) if pools else SynchronousMemoryResource(ordinal)
    return _default_resources.setdefault(ordinal, made)  # another thread may have been first


def warn_before_fork() -> None:
    """Warn, once, that a process that uses CUDA is about to be forked."""
    global _fork_warned
    if not _fork_warned and lib.ccc_driver_used():
        _fork_warned = True
        warnings.warn(
            "this process uses CUDA, which a forked child cannot: "
            'start processes with multiprocessing.set_start_method("spawn")',
            UserWarning,
            stacklevel=2,  # os.fork has no frame of its own
        )


_fork_warned = False
os.register_at_fork(before=warn_before_fork)
registry.device = Device
