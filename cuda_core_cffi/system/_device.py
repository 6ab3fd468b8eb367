# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Devices, as NVML knows them."""

from __future__ import annotations

from collections.abc import Iterator

from cuda_core_cffi._core.errors import CUDAError
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._device.device import Device as CUDADevice
from cuda_core_cffi.system import _topology
from cuda_core_cffi.system._attributes import DeviceAttributes, RepairStatus
from cuda_core_cffi.system._clocks import ClockInfo, ClockOffsets
from cuda_core_cffi.system._cooling import CoolerInfo, FanInfo, Temperature, ThermalSensor, ThermalSettings
from cuda_core_cffi.system._enumerators import EVENT_TYPES
from cuda_core_cffi.system._events import DeviceEvents, EventData
from cuda_core_cffi.system._fields import FieldValue, FieldValues
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._identity import UUID_PREFIXES
from cuda_core_cffi.system._inforom import InforomInfo
from cuda_core_cffi.system._library import call, value
from cuda_core_cffi.system._memory import BAR1MemoryInfo, MemoryInfo
from cuda_core_cffi.system._mig import MigInfo
from cuda_core_cffi.system._nvlink import NvlinkInfo, _NvlinkInfo, get_link, link_count, links
from cuda_core_cffi.system._pci import PciInfo, read_bus_id, read_pci_info_ext, text_of
from cuda_core_cffi.system._performance import GpuDynamicPstatesInfo, GpuDynamicPstatesUtilization, Utilization
from cuda_core_cffi.system._processes import ProcessInfo, running_processes
from cuda_core_cffi.system._state import DeviceState
from cuda_core_cffi.system.exceptions import FunctionNotFoundError, NotFoundError
from cuda_core_cffi.system.typing import (
    AffinityScope,
    EventType,
    GpuP2PCapsIndex,
    GpuP2PStatus,
    GpuTopologyLevel,
)

__all__ = [
    "BAR1MemoryInfo",
    "ClockInfo",
    "ClockOffsets",
    "CoolerInfo",
    "Device",
    "DeviceAttributes",
    "DeviceEvents",
    "EventData",
    "FanInfo",
    "FieldValue",
    "FieldValues",
    "GpuDynamicPstatesInfo",
    "GpuDynamicPstatesUtilization",
    "InforomInfo",
    "MemoryInfo",
    "MigInfo",
    "NvlinkInfo",
    "PciInfo",
    "ProcessInfo",
    "RepairStatus",
    "Temperature",
    "ThermalSensor",
    "ThermalSettings",
    "Utilization",
    "_NvlinkInfo",
    "get_p2p_status",
    "get_topology_common_ancestor",
]

MIG_PREFIX = UUID_PREFIXES[1]
NOT_ON_THE_BUS = "a MIG instance has no PCI attributes: ask mig.parent"


class Device(DeviceState):
    """A device, as NVML knows it: to look at it, and set it up. For CUDA there is :class:`cuda_core_cffi.Device`.

    One of the three parameters must be given.

    Parameters
    ----------
    index : int, optional
        NVML's number of the device, from 0. The order can change with a reboot, and is not that of CUDA: UUID and PCI
        address are safer.
    uuid : str or bytes, optional
        The UUID, with its prefix ``GPU-`` or ``MIG-``.
    pci_bus_id : str or bytes, optional
        The address on the PCI bus: ``"0000:3B:00.0"``.

    Raises
    ------
    TypeError
        If what is given has the wrong type.
    ValueError
        If none is given, or more than one.
    InvalidArgumentError, NotFoundError
        If there is no such device.
    LibraryNotFoundError
        If there is no NVML.

    Notes
    -----
    Two objects for one device are equal. What a device does not have raises :class:`NotSupportedError` when it is asked
    for, and what only root may do :class:`NoPermissionError`. Every property asks NVML anew.
    """

    __slots__ = ()

    def __init__(
        self, *, index: int | None = None, uuid: bytes | str | None = None, pci_bus_id: bytes | str | None = None
    ) -> None:
        given = (index is not None) + (uuid is not None) + (pci_bus_id is not None)
        if given != 1:
            raise ValueError(f"give one of index, uuid and pci_bus_id, not {given} of them")
        if index is not None:
            number = integer(index, "index")
            if number < 0:
                raise ValueError(f"index must be 0 or more, not {number}")
            handle = value(nvml.nvmlDeviceGetHandleByIndex_v2, number)
        elif uuid is not None:
            handle = value(nvml.nvmlDeviceGetHandleByUUID, encoded(uuid, "uuid"))
        else:
            handle = value(nvml.nvmlDeviceGetHandleByPciBusId_v2, encoded(pci_bus_id, "pci_bus_id"))
        self._set_handle(handle)

    @classmethod
    def _of(cls, handle: nvml.nvmlDevice_t) -> Device:
        """Return the device for a handle of NVML."""
        self = object.__new__(Device)
        self._set_handle(handle)
        return self

    @classmethod
    def _of_cuda(cls, uuid: str) -> Device:
        """Return the device, or the instance, for a UUID of CUDA, which has no prefix."""
        try:
            return Device(uuid=UUID_PREFIXES[0] + uuid)
        except NotFoundError:
            return Device(uuid=UUID_PREFIXES[1] + uuid)

    def __repr__(self) -> str:
        return f"<system.Device {self.uuid} ({self.name})>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self._uuid == other._uuid

    def __hash__(self) -> int:
        return hash((Device, self._uuid))

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Device:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return by_uuid, (self.uuid,)

    @property
    def pci_bus_id(self) -> str:
        """The address on the PCI bus: ``"00000000:3B:00.0"``."""
        if self._uuid.startswith(MIG_PREFIX):
            raise RuntimeError(NOT_ON_THE_BUS)
        try:
            return read_bus_id(self._handle)
        except FunctionNotFoundError:  # drivers before that of CUDA 12.3 tell less of the bus
            return text_of(value(nvml.nvmlDeviceGetPciInfo_v3, self._handle).busId)

    def to_cuda_device(self) -> CUDADevice:
        """Return the device for CUDA: the one with this UUID.

        Returns
        -------
        cuda_core_cffi.Device
            The device.

        Raises
        ------
        RuntimeError
            If CUDA does not have it: ``CUDA_VISIBLE_DEVICES`` hides it, or it is divided (MIG).
        CUDAError
            If there is no CUDA driver.
        """
        uuid = self.uuid_without_prefix
        try:
            devices = CUDADevice.get_all_devices()
        except CUDAError as error:
            if error.name != "CUDA_ERROR_NO_DEVICE":
                raise
            devices = ()
        for device in devices:
            if device.uuid == uuid:
                return device
        raise RuntimeError(
            f"CUDA has no device with the UUID {uuid}: CUDA_VISIBLE_DEVICES may hide it, and a device that is divided "
            "(MIG) is used through its instances"
        )

    @classmethod
    def get_device_count(cls) -> int:
        """Return the number of devices.

        Returns
        -------
        int
            How many NVML has; a device that is divided counts once.
        """
        return value(nvml.nvmlDeviceGetCount_v2)

    @classmethod
    def get_all_devices(cls) -> Iterator[Device]:
        """Yield all devices.

        Yields
        ------
        Device
            Each device, in the order of NVML's numbers.
        """
        for index in range(cls.get_device_count()):
            yield cls(index=index)

    @property
    def mig(self) -> MigInfo:
        """How the device is divided into instances. Ampere and newer."""
        return MigInfo(self)

    @property
    def inforom(self) -> InforomInfo:
        """The InfoROM, which keeps data of the board."""
        return InforomInfo(self)

    @property
    def compute_running_processes(self) -> list[ProcessInfo]:
        """The processes that have a compute context on the device, as CUDA programs have; without those that draw."""
        return running_processes(self)

    # what it is near to

    @property
    def pci_info(self) -> PciInfo:
        """What the device is on the PCI bus.

        Raises
        ------
        RuntimeError
            If the device is an instance of another (MIG), and so on no bus.
        """
        if self._uuid.startswith(MIG_PREFIX):
            raise RuntimeError(NOT_ON_THE_BUS)
        info = read_pci_info_ext(self._handle)
        info._handle = self._handle
        return info

    def get_nvlink(self, link: int) -> NvlinkInfo:
        """Return an NVLink link.

        Parameters
        ----------
        link : int
            Its number, from 0 to :meth:`get_nvlink_count` - 1.

        Returns
        -------
        NvlinkInfo
            What asks for its state.

        Raises
        ------
        ValueError
            If the device does not have it.
        """
        return get_link(self, link)

    def get_nvlink_count(self) -> int:
        """Return the number of NVLink links.

        Returns
        -------
        int
            How many the device has; 0 without NVLink.
        """
        return link_count(self)

    def get_nvlinks(self) -> Iterator[NvlinkInfo]:
        """Yield the NVLink links.

        Yields
        ------
        NvlinkInfo
            Each link, active or not.
        """
        return links(self)

    def get_topology_nearest_gpus(self, level: GpuTopologyLevel | str) -> Iterator[Device]:
        """Yield the devices that are near to this one. Linux only.

        Parameters
        ----------
        level : GpuTopologyLevel or str
            How near.

        Yields
        ------
        Device
            Each device that has this in common with this one.

        Raises
        ------
        ValueError
            If there is no such level.
        """
        return _topology.nearest(self, level)

    @classmethod
    def get_all_devices_with_cpu_affinity(cls, cpu_index: int) -> Iterator[Device]:
        """Yield the devices that are near to a processor. Linux only.

        Parameters
        ----------
        cpu_index : int
            The number of the processor, from 0.

        Yields
        ------
        Device
            Each device.

        Raises
        ------
        InvalidArgumentError
            If there is no such processor.
        """
        return _topology.near_cpu(cls, cpu_index)

    def get_memory_affinity(self, scope: AffinityScope | str = AffinityScope.NODE) -> list[int]:
        """Return the NUMA nodes whose memory is near to the device. Linux only.

        Parameters
        ----------
        scope : AffinityScope or str
            What to look at: NUMA nodes, or sockets.

        Returns
        -------
        list of int
            The numbers of the nodes, or sockets.

        Raises
        ------
        ValueError
            If there is no such scope.
        """
        return _topology.memory_affinity(self._handle, scope)

    def get_cpu_affinity(self, scope: AffinityScope | str = AffinityScope.NODE) -> list[int]:
        """Return the processors that are near to the device. Linux only.

        Parameters
        ----------
        scope : AffinityScope or str
            How near: in the same NUMA node, or in the same socket.

        Returns
        -------
        list of int
            The numbers of the processors.

        Raises
        ------
        ValueError
            If there is no such scope.
        """
        return _topology.cpu_affinity(self._handle, scope)

    def set_cpu_affinity(self) -> None:
        """Have this thread run on the processors that are near to the device. Linux only.

        Raises
        ------
        NotSupportedError
            If the device does not tell them.
        """
        call(nvml.nvmlDeviceSetCpuAffinity, self._handle)

    def clear_cpu_affinity(self) -> None:
        """Have this thread run on any processor again. Linux only."""
        call(nvml.nvmlDeviceClearCpuAffinity, self._handle)

    # events

    def register_events(self, events: EventType | str | list[EventType | str]) -> DeviceEvents:
        """Record events of the device from now on. Linux only.

        Parameters
        ----------
        events : EventType, str or list of them
            What to record. ECC errors are events of devices that have ECC enabled.

        Returns
        -------
        DeviceEvents
            What to wait on; close it, or use it in a ``with`` block.

        Raises
        ------
        TypeError, ValueError
            If something is no event type.
        NotSupportedError
            If the device records none of them.

        Examples
        --------
        >>> device = Device(index=0)  # doctest: +SKIP
        >>> with device.register_events("xid_critical_error") as events:  # doctest: +SKIP
        ...     event = events.wait(timeout_ms=10000)
        ...     print(event.device.uuid, event.event_data)
        """
        return DeviceEvents(self._handle, events)

    def get_supported_event_types(self) -> list[EventType]:
        """Return what can be recorded.

        Returns
        -------
        list of EventType
            The events. Those that NVML added later are left out.
        """
        return EVENT_TYPES.in_mask(value(nvml.nvmlDeviceGetSupportedEventTypes, self._handle))


def by_uuid(uuid: str) -> Device:
    """Return the device that was pickled."""
    return Device(uuid=uuid)


def encoded(text: bytes | str | None, name: str) -> bytes:
    """Return a text that a caller gave."""
    if isinstance(text, str):
        text = text.encode()
    if not isinstance(text, bytes):
        raise TypeError(f"{name} must be a str or bytes, not {type(text).__name__}: {text!r}")
    if b"\0" in text:
        raise ValueError(f"{name} has a zero in it: {text!r}")
    return text


def checked(device: Device, name: str) -> nvml.nvmlDevice_t:
    """Return the handle of a device that a caller gave."""
    if not isinstance(device, Device):
        raise TypeError(f"{name} must be a system.Device, not {type(device).__name__}: {device!r}")
    return device._handle


def get_topology_common_ancestor(device1: Device, device2: Device) -> GpuTopologyLevel:
    """Return what two devices have in common. Linux only.

    Parameters
    ----------
    device1, device2 : Device
        The devices.

    Returns
    -------
    GpuTopologyLevel
        How near they are. A level that NVML added later counts as the next farther one.

    Raises
    ------
    TypeError
        If one is no device.
    """
    return _topology.topology_common_ancestor(checked(device1, "device1"), checked(device2, "device2"))


def get_p2p_status(device1: Device, device2: Device, index: GpuP2PCapsIndex | str) -> GpuP2PStatus:
    """Return whether a device may do something with another.

    Parameters
    ----------
    device1, device2 : Device
        The devices.
    index : GpuP2PCapsIndex or str
        What.

    Returns
    -------
    GpuP2PStatus
        ``GpuP2PStatus.OK``, or why not.

    Raises
    ------
    TypeError
        If one is no device.
    ValueError
        If there is no such thing to do.
    """
    return _topology.p2p_status(checked(device1, "device1"), checked(device2, "device2"), index)
