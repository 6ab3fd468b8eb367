# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Which device it is."""

from __future__ import annotations

import contextlib
import os
import weakref

from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import Meanings, reads_number, reads_pair, reads_text, value
from cuda_core_cffi.system.typing import DeviceArch

UUID_PREFIXES = ("GPU-", "MIG-")
BRANDS = {
    "QUADRO": "Quadro",
    "TESLA": "Tesla",
    "NVS": "NVS",
    "GRID": "GRID",
    "GEFORCE": "GeForce",
    "TITAN": "Titan",
    "NVIDIA_VAPPS": "NVIDIA vApps",
    "NVIDIA_VPC": "NVIDIA VPC",
    "NVIDIA_VCS": "NVIDIA VCS",
    "NVIDIA_VWS": "NVIDIA VWS",
    "NVIDIA_VGAMING": "NVIDIA vGaming",
    "QUADRO_RTX": "Quadro RTX",
    "NVIDIA_RTX": "NVIDIA RTX",
    "NVIDIA": "NVIDIA",
    "GEFORCE_RTX": "GeForce RTX",
    "TITAN_RTX": "Titan RTX",
}
"""Names of brands, by what follows ``NVML_BRAND_`` in the header."""

BRAND_NAMES = Meanings(
    {
        int(member): BRANDS[name.removeprefix("NVML_BRAND_")]
        for name, member in nvml.nvmlBrandType_t.__members__.items()
        if name.removeprefix("NVML_BRAND_") in BRANDS
    },
    "Unknown",
)
ARCHITECTURES = Meanings({int(arch): arch for arch in DeviceArch}, DeviceArch.UNKNOWN)

read_index = reads_number("nvmlDeviceGetIndex")
read_numa_node_id = reads_number("nvmlDeviceGetNumaNodeId")
read_architecture = reads_number("nvmlDeviceGetArchitecture", ARCHITECTURES)
read_brand = reads_number("nvmlDeviceGetBrand", BRAND_NAMES)
read_module_id = reads_number("nvmlDeviceGetModuleId")
read_minor_number = reads_number("nvmlDeviceGetMinorNumber")
read_name = reads_text("nvmlDeviceGetName", "NVML_DEVICE_NAME_V2_BUFFER_SIZE")
read_uuid = reads_text("nvmlDeviceGetUUID", "NVML_DEVICE_UUID_V2_BUFFER_SIZE")
read_serial = reads_text("nvmlDeviceGetSerial", "NVML_DEVICE_SERIAL_BUFFER_SIZE")
read_cuda_compute_capability = reads_pair("nvmlDeviceGetCudaComputeCapability")


USUAL_DEVICES = 64  # objects that are remembered before those are forgotten that are gone

_ref = weakref.ref


class Living:
    """The devices that there are: a child of ``fork()`` gets other handles for them.

    Some are gone. A callback for each, as a ``WeakValueDictionary`` has, takes longer than asking for a device.

    Attributes
    ----------
    references : dict of int to weakref.ref
        The devices, by the number of the object, which the next one may have.
    capacity : int
        How many there may be before those are forgotten that are gone.
    """

    def __init__(self) -> None:
        self.references: dict[int, weakref.ref[DeviceIdentity]] = {}
        self.capacity = USUAL_DEVICES

    def add(self, device: DeviceIdentity) -> None:
        """Remember a device."""
        self.references[id(device)] = _ref(device)
        if len(self.references) > self.capacity:
            self.forget_gone()

    def forget_gone(self) -> None:
        """Forget the devices that are gone."""
        for number, seen in self.references.copy().items():
            if seen() is None and self.references.get(number) is seen:  # else another thread has put another there
                self.references.pop(number, None)
        self.capacity = max(2 * len(self.references), USUAL_DEVICES)

    def devices(self) -> list[DeviceIdentity]:
        """Return those that are there."""
        return [device for seen in list(self.references.values()) if (device := seen()) is not None]


living = Living()


def forget_handles() -> None:
    """Forget the handles of all devices, each of which is looked up again when it is used.

    Only then the class gets what looks them up: with it, every attribute takes longer.
    """
    setattr(DeviceIdentity, "__getattr__", find_again)  # noqa: B010  # a type checker knows all attributes
    for device in living.devices():
        with contextlib.suppress(AttributeError):  # it was forgotten in the parent, and not looked up since
            del device._handle


def find_again(device: DeviceIdentity, name: str) -> nvml.nvmlDevice_t:
    """Look up a device that has no handle: ``__getattr__`` in a child of ``fork()``."""
    if name != "_handle" or not hasattr(device, "_uuid"):
        raise AttributeError(f"{type(device).__name__!r} object has no attribute {name!r}", name=name, obj=device)
    device._handle = value(nvml.nvmlDeviceGetHandleByUUID, device._uuid.encode())
    return device._handle


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_handles)


class DeviceIdentity:
    """What does not change of a device."""

    __slots__ = ("__weakref__", "_handle", "_uuid")

    _handle: nvml.nvmlDevice_t  # absent in a child of fork(), until it is asked for
    _uuid: str

    def _set_handle(self, handle: nvml.nvmlDevice_t) -> None:
        self._handle = handle
        self._uuid = read_uuid(handle)
        living.add(self)

    @property
    def index(self) -> int:
        """NVML's number of the device. That of CUDA may be another."""
        return read_index(self._handle)

    @property
    def uuid(self) -> str:
        """The UUID, with a prefix: ``GPU-`` for a whole device, ``MIG-`` for an instance."""
        return read_uuid(self._handle)

    @property
    def uuid_without_prefix(self) -> str:
        """The UUID as CUDA has it."""
        uuid = self.uuid
        return uuid[len(UUID_PREFIXES[0]) :] if uuid.startswith(UUID_PREFIXES) else uuid

    @property
    def numa_node_id(self) -> int:
        """The NUMA node that the memory of the device is, where it is one."""
        return read_numa_node_id(self._handle)

    @property
    def arch(self) -> DeviceArch:
        """The architecture; ``DeviceArch.UNKNOWN`` if this version does not know it."""
        return read_architecture(self._handle)

    @property
    def name(self) -> str:
        """The name: ``"NVIDIA H200"``."""
        return read_name(self._handle)

    @property
    def brand(self) -> str:
        """The brand; ``"Unknown"`` if this version does not know it."""
        return read_brand(self._handle)

    @property
    def serial(self) -> str:
        """The serial number of the board."""
        return read_serial(self._handle)

    @property
    def module_id(self) -> int:
        """The place of the device on a baseboard; 0 where there is none."""
        return read_module_id(self._handle)

    @property
    def minor_number(self) -> int:
        """The number of the device node: 0 for ``/dev/nvidia0``. Linux only."""
        return read_minor_number(self._handle)

    @property
    def cuda_compute_capability(self) -> tuple[int, int]:
        """The version of the architecture, as CUDA counts: ``(9, 0)``."""
        return read_cuda_compute_capability(self._handle)
