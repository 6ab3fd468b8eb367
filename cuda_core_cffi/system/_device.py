# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Devices, as NVML knows them."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterable, Iterator

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi._core.calls import new_object
from cuda_core_cffi._core.errors import CUDAError
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._device.device import Device as CUDADevice
from cuda_core_cffi.system._clocks import ClockInfo, ClockOffsets
from cuda_core_cffi.system._cooling import CoolerInfo, FanInfo, Temperature, ThermalSensor, ThermalSettings
from cuda_core_cffi.system._enumerators import (
    ADDRESSING_MODES,
    AFFINITY_SCOPES,
    BRAND_NAMES,
    CLOCK_TYPES,
    CLOCKS_EVENT_REASONS,
    EVENT_TYPES,
    P2P_CAPABILITIES,
    P2P_STATUSES,
    TOPOLOGY_LEVELS,
)
from cuda_core_cffi.system._events import DeviceEvents, EventData
from cuda_core_cffi.system._fields import FieldValue, FieldValues, clear_fields, field_values
from cuda_core_cffi.system._inforom import InforomInfo
from cuda_core_cffi.system._library import (
    call,
    counted,
    is_enabled,
    nvml,
    reads_member,
    reads_number,
    reads_packed,
    reads_structure,
    reads_text,
    status_of,
    text_of,
    value,
    values,
)
from cuda_core_cffi.system._mig import MigInfo, switch
from cuda_core_cffi.system._nvlink import NvlinkInfo, _NvlinkInfo, link_count
from cuda_core_cffi.system._pci import PciInfo, read_bus_id, read_pci_info_ext
from cuda_core_cffi.system._snapshot import (
    BAR1MemoryInfo,
    DeviceAttributes,
    GpuDynamicPstatesInfo,
    GpuDynamicPstatesUtilization,
    MemoryInfo,
    ProcessInfo,
    RepairStatus,
    Utilization,
)
from cuda_core_cffi.system.exceptions import FunctionNotFoundError, NotFoundError, failure
from cuda_core_cffi.system.typing import (
    AffinityScope,
    ClocksEventReasons,
    ClockType,
    DeviceArch,
    EventType,
    FieldId,
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

UUID_PREFIXES = ("GPU-", "MIG-")
ARCHITECTURES = {int(arch): arch for arch in DeviceArch}
MIG_PREFIX = UUID_PREFIXES[1]
NOT_ON_THE_BUS = "a MIG instance has no PCI attributes: ask mig.parent"

PSTATE_UNKNOWN = nvml.nvmlPstates_t.NVML_PSTATE_UNKNOWN
PSTATES = {int(state): int(state) for state in nvml.nvmlPstates_t if state != PSTATE_UNKNOWN}
PSTATES_SIZE = nvml.NVML_MAX_GPU_PERF_PSTATES * 4  # in bytes, of an enumeration each

WORD_BITS = 64  # of an unsigned long, on the platforms that there is CUDA for
FIRST_WORDS, MOST_WORDS = 16, 1024
FIRST_PROCESSES = 32

read_persistence_mode = reads_number("nvmlDeviceGetPersistenceMode", is_enabled)
read_uuid = reads_text("nvmlDeviceGetUUID", "NVML_DEVICE_UUID_V2_BUFFER_SIZE")

living: weakref.WeakValueDictionary[int, Device] = weakref.WeakValueDictionary()
"""The devices that there are, by ``id``: a child of ``fork()`` gets other handles for them."""


def forget_handles() -> None:
    """Forget the handles of all devices, each of which is looked up again when it is used.

    Only then the class gets what looks them up: with it, every attribute takes longer.
    """
    setattr(Device, "__getattr__", find_again)  # noqa: B010  # a type checker knows all attributes
    for device in list(living.values()):
        with contextlib.suppress(AttributeError):  # it was forgotten in the parent, and not looked up since
            del device._handle


def find_again(device: Device, name: str) -> nvml.nvmlDevice_t:
    """Look up a device that has no handle: ``__getattr__`` in a child of ``fork()``."""
    if name != "_handle" or not hasattr(device, "_uuid"):
        raise AttributeError(f"{type(device).__name__!r} object has no attribute {name!r}", name=name, obj=device)
    device._handle = value(nvml.nvmlDeviceGetHandleByUUID, device._uuid.encode())
    return device._handle


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_handles)


class Device:
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

    __slots__ = ("__weakref__", "_handle", "_uuid")

    _handle: nvml.nvmlDevice_t  # absent in a child of fork(), until it is asked for
    _uuid: str

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

    def _set_handle(self, handle: nvml.nvmlDevice_t) -> None:
        self._handle = handle
        self._uuid = read_uuid(self)
        living[id(self)] = self

    @classmethod
    def _from_handle(cls, handle: nvml.nvmlDevice_t) -> Device:
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

    index = Answer(
        reads_number("nvmlDeviceGetIndex", int), doc="NVML's number of the device. That of CUDA may be another."
    )
    uuid = Answer(read_uuid, doc="The UUID, with a prefix: ``GPU-`` for a whole device, ``MIG-`` for an instance.")

    @property
    def uuid_without_prefix(self) -> str:
        """The UUID as CUDA has it."""
        uuid = self.uuid
        return uuid[len(UUID_PREFIXES[0]) :] if uuid.startswith(UUID_PREFIXES) else uuid

    numa_node_id = Answer(
        reads_number("nvmlDeviceGetNumaNodeId", int),
        doc="The NUMA node that the memory of the device is, where it is one.",
    )
    arch = Answer(
        reads_number("nvmlDeviceGetArchitecture", lambda number: ARCHITECTURES.get(number, DeviceArch.UNKNOWN)),
        doc="The architecture; ``DeviceArch.UNKNOWN`` if this version does not know it.",
    )
    name = Answer(
        reads_text("nvmlDeviceGetName", "NVML_DEVICE_NAME_V2_BUFFER_SIZE"), doc='The name: ``"NVIDIA H200"``.'
    )
    brand = Answer(
        reads_number("nvmlDeviceGetBrand", lambda number: BRAND_NAMES.get(number, "Unknown")),
        doc='The brand; ``"Unknown"`` if this version does not know it.',
    )
    serial = Answer(
        reads_text("nvmlDeviceGetSerial", "NVML_DEVICE_SERIAL_BUFFER_SIZE"), doc="The serial number of the board."
    )
    module_id = Answer(
        reads_number("nvmlDeviceGetModuleId", int),
        doc="The place of the device on a baseboard; 0 where there is none.",
    )
    minor_number = Answer(
        reads_number("nvmlDeviceGetMinorNumber", int),
        doc="The number of the device node: 0 for ``/dev/nvidia0``. Linux only.",
    )

    @property
    def cuda_compute_capability(self) -> tuple[int, int]:
        """The version of the architecture, as CUDA counts: ``(9, 0)``."""
        return values(nvml.nvmlDeviceGetCudaComputeCapability, self._handle)

    @property
    def pci_bus_id(self) -> str:
        """The address on the PCI bus: ``"00000000:3B:00.0"``."""
        if self._uuid.startswith(MIG_PREFIX):
            raise RuntimeError(NOT_ON_THE_BUS)
        try:
            return read_bus_id(self)
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
        function = nvml.nvmlDeviceGetComputeRunningProcesses_v3
        found = counted(lambda room: status_of(function, self._handle, room), function.__name__, FIRST_PROCESSES)
        return [ProcessInfo(self, process) for process in found]

    memory_info = Answer(
        reads_structure("nvmlDeviceGetMemoryInfo_v2", "nvmlMemory_v2_t", MemoryInfo),
        doc="The memory of the device: what all processes use, and what is free.",
    )
    bar1_memory_info = Answer(
        reads_structure("nvmlDeviceGetBAR1MemoryInfo", "nvmlBAR1Memory_t", BAR1MemoryInfo),
        doc="The part of the memory that the CPU and other devices can map over PCIe.",
    )
    utilization = Answer(
        reads_packed("nvmlDeviceGetUtilizationRates", Utilization),
        doc="How busy the device is. Not told of a device that is divided (MIG).",
    )
    performance_state = Answer(
        reads_number("nvmlDeviceGetPerformanceState", PSTATES.get),
        doc="The performance state, from 0, the fastest, to 15; None if it is unknown.",
    )

    @property
    def supported_pstates(self) -> list[int]:
        """The performance states that the device has, from 0, the fastest, to 15."""
        found = value(nvml.nvmlDeviceGetSupportedPerformanceStates, self._handle, PSTATES_SIZE)
        return [int(state) for state in found if state != PSTATE_UNKNOWN]

    dynamic_pstates_info = Answer(
        reads_structure("nvmlDeviceGetDynamicPstatesInfo", "nvmlGpuDynamicPstatesInfo_t", GpuDynamicPstatesInfo),
        doc="How busy the parts of the device are, and when the driver changes the performance state for that.",
    )

    def get_field_values(self, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> FieldValues:
        """Return several fields at once.

        Parameters
        ----------
        field_ids : list of FieldId, or of tuple of FieldId and int
            The fields; an int with it says of what, such as a link.

        Returns
        -------
        FieldValues
            The values in the same order. A field that could not be read raises when its ``value`` is asked for, or by
            :meth:`FieldValues.validate`.

        Raises
        ------
        TypeError, ValueError
            If something is no identifier of a field.
        NvmlError
            If nothing could be read.
        """
        return field_values(self._handle, field_ids)

    def clear_field_values(self, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> None:
        """Set several fields, which are counters, to 0.

        Parameters
        ----------
        field_ids : list of FieldId, or of tuple of FieldId and int
            The fields; an int with it says of what, such as a link.

        Raises
        ------
        TypeError, ValueError
            If something is no identifier of a field.
        NvmlError
            If a field cannot be set to 0.
        """
        clear_fields(self._handle, field_ids)

    addressing_mode = Answer(
        reads_member(
            "nvmlDeviceGetAddressingMode", "nvmlDeviceAddressingMode_v1_t", "value", ADDRESSING_MODES.members.get
        ),
        doc="How the device reaches memory that the system allocated; None if it does not.",
    )
    is_c2c_enabled = Answer(
        reads_member("nvmlDeviceGetC2cModeInfoV", "nvmlC2cModeInfo_v1_t", "isC2cEnabled", bool),
        doc="Whether chip-to-chip links are enabled.",
    )

    @property
    def is_persistence_mode_enabled(self) -> bool:
        """Whether the driver stays loaded while nobody uses the device. To set it needs root. Linux only."""
        return read_persistence_mode(self)

    @is_persistence_mode_enabled.setter
    def is_persistence_mode_enabled(self, enabled: bool) -> None:
        call(nvml.nvmlDeviceSetPersistenceMode, self._handle, switch(enabled, "is_persistence_mode_enabled"))

    is_display_connected = Answer(
        reads_number("nvmlDeviceGetDisplayMode", is_enabled), doc="Whether a display is connected."
    )
    is_display_active = Answer(
        reads_number("nvmlDeviceGetDisplayActive", is_enabled),
        doc="Whether the device has memory for a screen, also without a display.",
    )
    attributes = Answer(
        reads_structure("nvmlDeviceGetAttributes_v2", "nvmlDeviceAttributes_t", DeviceAttributes),
        doc="How many engines the device has, or the instance. Ampere and newer, Linux only.",
    )
    repair_status = Answer(
        reads_structure("nvmlDeviceGetRepairStatus", "nvmlRepairStatus_v1_t", RepairStatus),
        doc="Repairs that the next reset makes. Ampere and newer.",
    )

    def get_clock(self, clock_type: ClockType | str) -> ClockInfo:
        """Return a clock.

        Parameters
        ----------
        clock_type : ClockType or str
            The clock domain.

        Returns
        -------
        ClockInfo
            What asks for its values.

        Raises
        ------
        ValueError
            If there is no such clock domain.
        """
        try:
            number = CLOCK_TYPES.numbers[clock_type]  # type: ignore[index]  # the text of a member finds it
        except (KeyError, TypeError):
            return ClockInfo(self._handle, clock_type)  # which says what is wrong
        clock = new_object(ClockInfo)
        clock._clock = number
        clock._handle = self._handle
        return clock

    @property
    def is_auto_boosted_clocks_enabled(self) -> tuple[bool, bool]:
        """Whether clocks go above their base by themselves, and whether that is the default. Kepler and Maxwell."""
        enabled, by_default = values(nvml.nvmlDeviceGetAutoBoostedClocksEnabled, self._handle)
        return is_enabled(enabled), is_enabled(by_default)

    @property
    def current_clock_event_reasons(self) -> list[ClocksEventReasons]:
        """Why clocks are lower than they could be. Reasons that NVML added later are left out."""
        return CLOCKS_EVENT_REASONS.in_mask(value(nvml.nvmlDeviceGetCurrentClocksEventReasons, self._handle))

    @property
    def supported_clock_event_reasons(self) -> list[ClocksEventReasons]:
        """The reasons that the device can have. Those that NVML added later are left out."""
        return CLOCKS_EVENT_REASONS.in_mask(value(nvml.nvmlDeviceGetSupportedClocksEventReasons, self._handle))

    cooler = Answer(reads_structure("nvmlDeviceGetCoolerInfo", "nvmlCoolerInfo_v1_t", CoolerInfo), doc="The cooler.")

    def get_fan(self, fan: int = 0) -> FanInfo:
        """Return a fan.

        Parameters
        ----------
        fan : int
            Its number, from 0.

        Returns
        -------
        FanInfo
            What asks for its speed, and sets it.

        Raises
        ------
        ValueError
            If the device does not have it.
        """
        number, count = integer(fan, "fan"), self.num_fans
        if not 0 <= number < count:
            raise ValueError(f"fan must be 0 to {count - 1}, not {number}" if count else "the device has no fans")
        return FanInfo(self._handle, number)

    num_fans = Answer(reads_number("nvmlDeviceGetNumFans", int), doc="The number of fans.")

    @property
    def temperature(self) -> Temperature:
        """Temperatures."""
        return Temperature(self._handle)

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
        info = read_pci_info_ext(self)
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
        number, count = integer(link, "link"), link_count(self)
        if not 0 <= number < count:
            raise ValueError(
                f"link must be 0 to {count - 1}, not {number}" if count else "the device has no NVLink links"
            )
        return NvlinkInfo(self, number)

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
        for link in range(link_count(self)):
            yield NvlinkInfo(self, link)

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
        number, function = TOPOLOGY_LEVELS.number(level), nvml.nvmlDeviceGetTopologyNearestGpus
        for handle in counted(lambda room: status_of(function, self._handle, number, room), function.__name__):
            yield self._from_handle(handle)

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
        number, function = integer(cpu_index, "cpu_index"), nvml.nvmlSystemGetTopologyGpuSet
        if number < 0:
            raise ValueError(f"cpu_index must be 0 or more, not {number}")
        for handle in counted(lambda room: status_of(function, number, room), function.__name__):
            yield cls._from_handle(handle)

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
        return self._affinity(nvml.nvmlDeviceGetMemoryAffinity, scope)

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
        return self._affinity(nvml.nvmlDeviceGetCpuAffinityWithinScope, scope)

    def _affinity(
        self, function: Callable[[nvml.nvmlDevice_t, int, int], tuple[int, list[int]]], scope: AffinityScope | str
    ) -> list[int]:
        """Return the numbers of the bits that a function of NVML sets, however many words there are."""
        number, words = AFFINITY_SCOPES.number(scope), FIRST_WORDS
        status, found = status_of(function, self._handle, words, number)
        while status == nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE and words < MOST_WORDS:
            words *= 2
            status, found = function(self._handle, words, number)
        if status:
            raise failure(status, function.__name__)
        return [
            index * WORD_BITS + bit for index, word in enumerate(found) for bit in range(WORD_BITS) if word >> bit & 1
        ]

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
    found = int(
        value(nvml.nvmlDeviceGetTopologyCommonAncestor, checked(device1, "device1"), checked(device2, "device2"))
    )
    farther = [level for number, level in sorted(TOPOLOGY_LEVELS.members.items()) if number >= found]
    return farther[0] if farther else GpuTopologyLevel.SYSTEM


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
    handles = checked(device1, "device1"), checked(device2, "device2")
    found = value(nvml.nvmlDeviceGetP2PStatus, *handles, P2P_CAPABILITIES.number(index))
    return P2P_STATUSES.members.get(int(found), GpuP2PStatus.UNKNOWN)
