# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers of managed memory, and what the driver is told about their use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import CUDAError, failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.host import Host
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.buffer import Buffer, BufferSlice, ForeignBuffer, wrap_memory
from cuda_core_cffi._memory.location import from_driver, to_driver
from cuda_core_cffi._memory.resource import MemoryResource
from cuda_core_cffi._streams.stream import accept_stream
from cuda_core_cffi.typing import DevicePointerType, IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device

T = TypeVar("T")

ANYWHERE = (lib.CU_MEM_LOCATION_TYPE_HOST, 0)  # for advice that has no place
NO_DEVICE = int(lib.CU_DEVICE_INVALID)
HOST_DEVICE = int(lib.CU_DEVICE_CPU)

# seen with driver 580 on an H200
NO_ADVICE = (
    "; drivers may take no advice for memory of a pool: give the pool a preferred_location, or wrap memory from "
    "cuMemAllocManaged with ManagedBuffer.from_handle"
)
ACCESSED_BY = "ManagedBuffer.accessed_by"
# advice, and the advice that undoes it
GRANT = (lib.CU_MEM_ADVISE_SET_ACCESSED_BY, lib.CU_MEM_ADVISE_UNSET_ACCESSED_BY)
REVOKE = GRANT[::-1]


class ManagedBuffer(Buffer):
    """A piece of managed memory: the host and every device can use it, and it moves to where it is used.

    Managed buffers come from :meth:`ManagedMemoryResource.allocate`, or wrap memory of another library with
    :meth:`from_handle`. Their advice attributes read and write what the driver knows about the memory; the driver
    keeps it by whole pages, so small buffers that share one share its advice too.
    """

    __slots__ = ()

    _MADE_BY = "ManagedMemoryResource.allocate or ManagedBuffer.from_handle"

    @classmethod
    def from_handle(
        cls,
        ptr: DevicePointerType,
        size: int,
        mr: MemoryResource | None = None,
        owner: object | None = None,
        *,
        stream: IsStreamType | None = None,
    ) -> ManagedBuffer:
        """Wrap managed memory that exists already, from ``cuMemAllocManaged`` for example.

        Parameters
        ----------
        ptr : int
            Its address, or a CFFI pointer.
        size : int
            Its size in bytes.
        mr : MemoryResource, optional
            Its ``deallocate`` is called when the buffer is closed or collected.
        owner : object, optional
            Kept alive as long as the buffer. Without ``mr`` and ``owner`` the memory is borrowed.
        stream : Stream, optional
            The stream that ``deallocate`` gets. Default is the default stream.

        Returns
        -------
        ManagedBuffer
            The memory. That it is managed is checked by the first operation that needs it.

        Raises
        ------
        ValueError
            If both ``mr`` and ``owner`` are given, or the size is negative.
        """
        return wrap_memory(ForeignManagedBuffer, ptr, size, mr, owner, stream)

    def prefetch(self, location: Any, *, stream: IsStreamType) -> None:
        """Move the memory to where it is going to be used.

        Parameters
        ----------
        location : Device or Host
            Where to.
        stream : Stream
            The move is made in the order of this stream; it may not be done when this returns.

        Raises
        ------
        ValueError
            If the memory is not managed.
        """
        queue = accept_stream(stream, "ManagedBuffer.prefetch")
        kind, number = to_driver(location, "ManagedBuffer.prefetch")
        require_managed(self, "ManagedBuffer.prefetch")
        status = lib.ccc_managed_prefetch(self._c_handle, queue._c_handle, kind, number)
        if status:
            raise self._failure(status, queue)

    def discard(self, *, stream: IsStreamType) -> None:
        """Tell that the content is not needed any more, so that nothing has to move it; it is undefined from then on.

        Parameters
        ----------
        stream : Stream
            The content goes in the order of this stream, which must not be the legacy default stream.

        Raises
        ------
        ValueError
            If the memory is not managed, or the stream is the legacy default stream.
        UnavailableError
            If the driver is older than CUDA 13.0.
        """
        what = "ManagedBuffer.discard"
        require_managed(self, what)
        migrate(lib.CCC_DISCARD, stream, [self], ffi.NULL, what)

    def discard_prefetch(self, location: Any, *, stream: IsStreamType) -> None:
        """Discard the content, and move the memory to where it is going to be used.

        Parameters
        ----------
        location : Device or Host
            Where to.
        stream : Stream
            This is done in the order of this stream, which must not be the legacy default stream.

        Raises
        ------
        ValueError
            If the memory is not managed, or the stream is the legacy default stream.
        UnavailableError
            If the driver is older than CUDA 13.0.
        """
        what = "ManagedBuffer.discard_prefetch"
        require_managed(self, what)
        migrate(lib.CCC_DISCARD_PREFETCH, stream, [self], encode_locations([location], 1, what), what)

    @property
    def read_mostly(self) -> bool:
        """Whether each processor that reads the memory may keep a copy of its own. Set to change it."""
        attribute = lib.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY
        return bool(self._range_attribute(attribute, [0], "ManagedBuffer.read_mostly")[0])

    @read_mostly.setter
    def read_mostly(self, value: bool) -> None:
        advice = lib.CU_MEM_ADVISE_SET_READ_MOSTLY if value else lib.CU_MEM_ADVISE_UNSET_READ_MOSTLY
        self._advise(advice, *ANYWHERE, "ManagedBuffer.read_mostly")

    @property
    def preferred_location(self) -> Device | Host | None:
        """Where the memory should be: a :class:`Device`, a :class:`Host`, or None. Set to change it."""
        return self._place(False, "ManagedBuffer.preferred_location")

    @preferred_location.setter
    def preferred_location(self, location: Any) -> None:
        what = "ManagedBuffer.preferred_location"
        if location is None:
            self._advise(lib.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, *ANYWHERE, what)
        else:
            self._advise(lib.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, *to_driver(location, what), what)

    @property
    def last_prefetch_location(self) -> Device | Host | None:
        """Where all of the memory was last prefetched to: a :class:`Device`, a :class:`Host`, or None."""
        return self._place(True, "ManagedBuffer.last_prefetch_location")

    def _place(self, last: bool, what: str) -> Device | Host | None:
        require_managed(self, what)
        kind, number = ffi.new("int *"), ffi.new("int *")
        status = lib.ccc_managed_location(self._c_handle, last, kind, number)
        if status:
            raise self._failure(status)
        found: Device | Host | None = from_driver(kind[0], number[0])
        return found

    @property
    def accessed_by(self) -> AccessedBySetProxy:
        """The devices, and the host, that always have the memory mapped: a set that reads and writes the driver.

        Setting it replaces the set: everything is checked before anything changes, and what a failure leaves half done
        is undone.
        """
        return AccessedBySetProxy(self)

    @accessed_by.setter
    def accessed_by(self, locations: Iterable[Any]) -> None:
        AccessedBySetProxy(self)._become(check_members(locations))

    def _advise(self, advice: int, kind: int, number: int, what: str) -> None:
        require_managed(self, what)
        status = lib.ccc_managed_advise(self._c_handle, advice, kind, number)
        of_a_pool = self._mr is not None and not self._python_owned
        if status == lib.CUDA_ERROR_NOT_SUPPORTED and of_a_pool:
            raise failure(status, detail=NO_ADVICE)
        if status:
            raise self._failure(status)

    def _range_attribute(self, attribute: int, default: list[int], what: str) -> Any:
        """Return an attribute of all the memory, as many integers as the default has, which is for empty buffers."""
        require_managed(self, what)
        values = ffi.new("int[]", default)
        status = lib.ccc_managed_attribute(self._c_handle, attribute, values, len(default))
        if status:
            raise self._failure(status)
        return values


class ManagedBufferSlice(ManagedBuffer, BufferSlice):
    """A part of a managed buffer."""

    __slots__ = ()

    _NAME = "ManagedBuffer"


ManagedBuffer._SLICE = ManagedBufferSlice


class ForeignManagedBuffer(ManagedBuffer, ForeignBuffer):
    """Managed memory that Python gives back."""

    __slots__ = ()

    _NAME = "ManagedBuffer"


class AccessedBySetProxy(Uncopyable, MutableSet[Any]):
    """The places that have a managed buffer mapped, as the driver knows them now: :class:`Device` objects, ``Host()``.

    Parameters
    ----------
    buf : ManagedBuffer
        The buffer.
    """

    __slots__ = ("_buffer",)

    _NOT_COPIED_BECAUSE = "it shows a buffer of this process; set() of it is a copy"

    def __init__(self, buf: ManagedBuffer) -> None:
        self._buffer = buf

    def __repr__(self) -> str:
        return f"{type(self).__name__}({set(self)!r})"

    def __contains__(self, location: object) -> bool:
        return location in self._read()

    def __iter__(self) -> Iterator[Device | Host]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __ior__(self, other: Iterable[Any]) -> AccessedBySetProxy:  # type: ignore[misc]
        added = check_members(other)
        self._become(self._read() | added)
        return self

    def __iand__(self, other: Iterable[Any]) -> AccessedBySetProxy:
        self._become(self._read() & set(other))
        return self

    def __isub__(self, other: Iterable[Any]) -> AccessedBySetProxy:
        self._become(self._read() - set(other))
        return self

    def __ixor__(self, other: Iterable[Any]) -> AccessedBySetProxy:  # type: ignore[misc]
        changed = check_members(other)
        self._become(self._read() ^ changed)
        return self

    @classmethod
    def _from_iterable(cls, it: Iterable[T]) -> set[T]:  # what the operators that change nothing return
        return set(it)

    def add(self, location: Any) -> None:
        """Keep the memory mapped for a place.

        Parameters
        ----------
        location : Device or Host
            A device, or the host as a whole.

        Raises
        ------
        ValueError
            If it is a NUMA node of the host: nodes cannot be told apart here.
        """
        check_members([location])
        self._advise(GRANT[0], location)

    def discard(self, location: Any) -> None:
        """Let go of the mapping for a place, if there is one.

        Parameters
        ----------
        location : Device or Host
            The place. What cannot be in the set is ignored.
        """
        if is_member(location):
            self._advise(REVOKE[0], location)

    def clear(self) -> None:
        """Let go of all mappings."""
        self._become(set())

    def _advise(self, advice: int, location: Any) -> None:
        self._buffer._advise(advice, *to_driver(location, ACCESSED_BY), ACCESSED_BY)

    def _read(self) -> set[Any]:
        """Return the set as the driver has it now."""
        capacity = len(registry.device.get_all_devices()) + 1  # the host comes on top
        attribute = lib.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY
        found = self._buffer._range_attribute(attribute, [NO_DEVICE] * capacity, ACCESSED_BY)
        return {Host() if number == HOST_DEVICE else registry.device(number) for number in found if number != NO_DEVICE}

    def _become(self, wanted: set[Any]) -> None:
        """Make the set what is wanted. Where the driver refuses one of the changes, undo those before it."""
        present = self._read()
        changes = [(*GRANT, location) for location in wanted - present]
        changes += [(*REVOKE, location) for location in present - wanted]
        done: list[tuple[int, Any]] = []
        try:
            for advice, inverse, location in changes:
                self._advise(advice, location)
                done.append((inverse, location))
        except CUDAError as error:
            for inverse, location in reversed(done):
                try:
                    self._advise(inverse, location)
                except CUDAError as second:
                    error.add_note(f"and {location!r} could not be put back: {second}")
            raise


def is_member(location: object) -> bool:
    """Tell whether a place can be in the set: NUMA nodes of the host cannot."""
    return isinstance(location, registry.device) or location == Host()


def check_members(locations: Iterable[Any]) -> set[Any]:
    """Return places that can be in the set, or raise."""
    members = list(locations)
    for location in members:
        if isinstance(location, Host) and not is_member(location):
            raise ValueError(f"{ACCESSED_BY} holds devices and Host(), not a NUMA node of the host: {location!r}")
        if not is_member(location):
            raise TypeError(f"{ACCESSED_BY} holds Device and Host objects, not {type(location).__name__}: {location!r}")
    return set(members)


def prefetch_batch(stream: IsStreamType, buffers: Sequence[Buffer], locations: Any) -> None:
    """Move managed buffers to where they are going to be used.

    Parameters
    ----------
    stream : Stream
        The moves are made in the order of this stream, in any order among themselves; they may not be done when this
        returns.
    buffers : sequence of Buffer
        The buffers.
    locations : Device or Host, or a sequence of them
        Where to: one place for all, or one for each.

    Raises
    ------
    TypeError
        If ``buffers`` is no sequence of buffers, or a location is neither a Device nor a Host.
    ValueError
        If there are no buffers, one is not managed memory, or there are not as many locations.

    Notes
    -----
    One call of the driver. Drivers for CUDA 12, and the legacy default stream, take one call for each buffer; if one of
    those fails, the buffers before it are moved nevertheless.
    """
    what = "prefetch_batch"
    targets = check_buffers(buffers, what)
    migrate(lib.CCC_PREFETCH, stream, targets, encode_locations(locations, len(targets), what), what)


def discard_batch(stream: IsStreamType, buffers: Sequence[Buffer]) -> None:
    """Tell that the content of managed buffers is not needed any more; it is undefined from then on.

    Parameters
    ----------
    stream : Stream
        The content goes in the order of this stream, which must not be the legacy default stream.
    buffers : sequence of Buffer
        The buffers.

    Raises
    ------
    TypeError
        If ``buffers`` is no sequence of buffers.
    ValueError
        If there are no buffers, one is not managed memory, or the stream is the legacy default stream.
    UnavailableError
        If the driver is older than CUDA 13.0.
    """
    what = "discard_batch"
    migrate(lib.CCC_DISCARD, stream, check_buffers(buffers, what), ffi.NULL, what)


def discard_prefetch_batch(stream: IsStreamType, buffers: Sequence[Buffer], locations: Any) -> None:
    """Discard the content of managed buffers, and move them to where they are going to be used.

    Parameters
    ----------
    stream : Stream
        This is done in the order of this stream, which must not be the legacy default stream.
    buffers : sequence of Buffer
        The buffers.
    locations : Device or Host, or a sequence of them
        Where to: one place for all, or one for each.

    Raises
    ------
    TypeError
        If ``buffers`` is no sequence of buffers, or a location is neither a Device nor a Host.
    ValueError
        If there are no buffers, one is not managed memory, there are not as many locations, or the stream is the legacy
        default stream.
    UnavailableError
        If the driver is older than CUDA 13.0.
    """
    what = "discard_prefetch_batch"
    targets = check_buffers(buffers, what)
    migrate(lib.CCC_DISCARD_PREFETCH, stream, targets, encode_locations(locations, len(targets), what), what)


def migrate(how: int, stream: Any, buffers: Sequence[Buffer], places: Any, what: str) -> None:
    """Prefetch or discard managed buffers to places that :func:`encode_locations` made."""
    queue = accept_stream(stream, what)
    if how != lib.CCC_PREFETCH and lib.ccc_stream_is_legacy(queue._c_handle):
        raise ValueError(f"{what}: the driver discards nothing in the legacy default stream; give another stream")
    c_handles = ffi.new("ccc_handle *[]", [buffer._c_handle for buffer in buffers])
    status = lib.ccc_managed_migrate(how, c_handles, places, len(buffers), queue._c_handle)
    if status:
        raise buffers[0]._failure(status, *buffers, queue)


def check_buffers(buffers: Any, what: str) -> Sequence[Buffer]:
    """Return the buffers of a batch, or raise."""
    if isinstance(buffers, Buffer):
        raise TypeError(f"{what} needs a sequence of buffers; for one buffer, ManagedBuffer has a method")
    if not isinstance(buffers, Sequence):
        raise TypeError(f"{what} needs a sequence of buffers, not {type(buffers).__name__}")
    if not buffers:
        raise ValueError(f"{what} needs at least one buffer")
    for buffer in buffers:
        require_managed(buffer, what)
    return buffers


def require_managed(buffer: Any, what: str) -> None:
    """Raise unless ``buffer`` is managed memory; the driver knows, where its resource does not say so."""
    if not isinstance(buffer, Buffer):
        raise TypeError(f"{what} needs a Buffer, not {type(buffer).__name__}")
    if not (buffer.is_managed or buffer._query()[3]):
        raise ValueError(f"{what} needs managed memory, which {buffer!r} is not")


def encode_locations(locations: Any, count: int, what: str) -> Any:
    """Return places for a number of buffers as an array for the driver; one place is for all."""
    if isinstance(locations, Sequence) and not isinstance(locations, (str, bytes)):
        if len(locations) != count:
            raise ValueError(f"{what}: {len(locations)} locations do not go with {count} buffers")
        encoded = [to_driver(location, what) for location in locations]
    else:
        encoded = [to_driver(locations, what)] * count
    places = ffi.new("CUmemLocation[]", count)
    for place, (kind, number) in zip(places, encoded, strict=True):
        place.type = kind
        place.id = number
    return places
