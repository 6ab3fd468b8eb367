# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Which devices may use the memory of a pool, as a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Self

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.registry import registry

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device


class PeerAccessibleBySetProxy(Uncopyable, MutableSet[Any]):
    """The devices, besides its own, that may use the memory of a pool.

    A mutable set of :class:`Device` objects. Every look at it asks the driver, so that all who look at a pool see the
    same. Every change is one call to the driver, however many devices it names, since access to all memory that the
    pool holds changes with it; a change to what is so already is none. A call that fails changes nothing.

    Devices may be named by their ordinals. The pool's own device always has access and is never in the set: naming it
    is allowed and does nothing.

    Parameters
    ----------
    mr : DeviceMemoryResource
        The pool.
    """

    __slots__ = ("_mr",)

    _NOT_COPIED_BECAUSE = "it shows a pool of this process; set() of it is a copy"

    def __init__(self, mr: Any) -> None:
        self._mr = mr

    def __repr__(self) -> str:
        return f"PeerAccessibleBySetProxy({set(self)!r})"

    def __contains__(self, value: object) -> bool:
        """Tell whether a device has access; what is no device has none.

        Parameters
        ----------
        value : Device or int
            The device.

        Returns
        -------
        bool
            Also False for the pool's own device.
        """
        try:
            ordinal = device_of(value).device_id
        except (TypeError, ValueError):
            return False
        if ordinal == self._mr.device_id:
            return False
        accessible: int = lib.ccc_pool_accessible(self._mr._c_handle, ordinal)
        if accessible < 0:
            raise self._mr._failure(lib.ccc_last_status())
        return accessible == 1

    def __iter__(self) -> Iterator[Device]:
        return (registry.device(ordinal) for ordinal in self._ordinals())

    def __len__(self) -> int:
        return len(self._ordinals())

    def __le__(self, other: AbstractSet[Any]) -> bool:
        return super().__le__(devices_in(other)) if isinstance(other, AbstractSet) else NotImplemented

    def __sub__(self, other: AbstractSet[Any]) -> MutableSet[Device]:
        return devices_in(self) - devices_in(other) if isinstance(other, Iterable) else NotImplemented

    def __ior__(self, other: AbstractSet[Any]) -> Self:  # type: ignore[misc]
        self.update(other)
        return self

    def __iand__(self, other: AbstractSet[Any]) -> Self:
        self.intersection_update(other)
        return self

    def __isub__(self, other: AbstractSet[Any]) -> Self:
        self.difference_update(other)
        return self

    def __ixor__(self, other: AbstractSet[Any]) -> Self:  # type: ignore[misc]
        self.symmetric_difference_update(other)
        return self

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> set[Any]:
        return devices_in(it)

    def add(self, value: Any) -> None:
        """Let a device use the memory.

        Parameters
        ----------
        value : Device or int
            The device.

        Raises
        ------
        ValueError
            If there is no such device, or it cannot reach the memory of the pool's device.
        """
        self.update((value,))

    def discard(self, value: Any) -> None:
        """Take the access from a device, if it has it.

        Parameters
        ----------
        value : Device or int
            The device. What is no device has no access, so nothing happens.
        """
        if value in self:
            self.difference_update((value,))

    def clear(self) -> None:
        """Take the access from all devices."""
        self._replace(())

    def update(self, *others: Iterable[Any]) -> None:
        """Give the access to all the devices named.

        Parameters
        ----------
        others : iterables of Device or int
            The devices.

        Raises
        ------
        ValueError
            If there is no such device, or one cannot reach the memory of the pool's device.
        """
        self._change(self._ordinals(), ordinals_of(*others), set())

    def difference_update(self, *others: Iterable[Any]) -> None:
        """Take the access from all the devices named.

        Parameters
        ----------
        others : iterables of Device or int
            The devices.

        Raises
        ------
        ValueError
            If there is no such device.
        """
        self._change(self._ordinals(), set(), ordinals_of(*others))

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """Take the access from the devices that are not in all of the iterables.

        Parameters
        ----------
        others : iterables of Device or int
            The devices.

        Raises
        ------
        ValueError
            If there is no such device.
        """
        named = [ordinals_of(other) for other in others]
        present = self._ordinals()
        self._change(present, set(), present.difference(present.intersection(*named)))

    def symmetric_difference_update(self, other: Iterable[Any]) -> None:
        """Take the access from the devices named that have it, and give it to the others of them.

        Parameters
        ----------
        other : iterable of Device or int
            The devices.

        Raises
        ------
        ValueError
            If there is no such device, or one cannot reach the memory of the pool's device.
        """
        named = ordinals_of(other)
        self._change(self._ordinals(), named, named)

    def _replace(self, devices: Iterable[Any]) -> None:
        """Give these devices the access, and no others."""
        wanted = ordinals_of(devices)
        present = self._ordinals()
        self._change(present, wanted, present - wanted)

    def _ordinals(self) -> set[int]:
        found = ffi.new("int[]", lib.CCC_MAX_DEVICES)
        count: int = lib.ccc_pool_peers(self._mr._c_handle, found)
        if count < 0:
            raise self._mr._failure(lib.ccc_last_status())
        return set(ffi.unpack(found, count))

    def _change(self, present: set[int], granted: set[int], revoked: set[int]) -> None:
        """Grant to those that have no access, take it from those that have it, in one call to the driver."""
        owner = self._mr.device_id
        added, removed = sorted(granted - present - {owner}), sorted(revoked & present)
        for ordinal in added:
            if not registry.device(ordinal).can_access_peer(owner):
                raise ValueError(f"device {ordinal} cannot access the memory of device {owner}")
        if added or removed:
            status = lib.ccc_pool_set_peers(
                self._mr._c_handle, [*added, *removed], len(added) + len(removed), len(added)
            )
            if status:
                raise self._mr._failure(status)


def device_of(value: Any) -> Device:
    """Return the device that is meant by itself or by its ordinal."""
    if value is None:  # which means the current device elsewhere
        raise TypeError("a device must be a Device or an int, not None")
    return registry.device(value)


def ordinals_of(*iterables: Iterable[Any]) -> set[int]:
    """Return the ordinals of all devices in the iterables."""
    return {device_of(value).device_id for devices in iterables for value in devices}


def devices_in(values: Iterable[Any]) -> set[Any]:
    """Return a plain set with every device by itself, never by its ordinal, and all else as it is."""
    return {known_device(value) for value in values}


def known_device(value: Any) -> Any:
    """Return the device that is meant, or else the value."""
    try:
        return device_of(value)
    except (TypeError, ValueError):
        return value
