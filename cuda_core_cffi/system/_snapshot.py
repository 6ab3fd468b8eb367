# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What NVML told of a device at one moment, in a structure: memory, engines, repairs, utilization, processes."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._raw.types import Record
from cuda_core_cffi.system._library import field, flag, nvml, value

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device

R = TypeVar("R", bound=Record)
T = TypeVar("T")

LOWER = 2**32 - 1


class Snapshot(Generic[R]):
    """Values that NVML told, which do not change; they can be sent to other processes.

    A subclass names the structure that they are in. The CFFI pointer to it may stand for the structure: its fields are
    read the same way.
    """

    __slots__ = ("_record",)

    _STRUCTURE: ClassVar[str]

    _record: R

    def __init__(self, record: R) -> None:
        self._record = record

    def __repr__(self) -> str:
        """Return the class and the values."""
        shown = []
        for name in public_properties(type(self)):
            try:
                shown.append(f"{name}={getattr(self, name)!r}")
            except (AttributeError, ValueError):  # what this kind does not have
                continue
        return f"<{type(self).__name__} {' '.join(shown)}>"

    def __copy__(self) -> Self:
        """Return the object itself: nothing changes it."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the object itself, as ``__copy__`` does."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Return what the same values are made from: the bytes of the structure."""
        cdata = self._record._cdata if isinstance(self._record, Record) else self._record
        return restore, (type(self), bytes(ffi.buffer(cdata)))


def restore(cls: type[Snapshot[Any]], data: bytes) -> Snapshot[Any]:
    """Return the snapshot that was pickled."""
    record = getattr(nvml, cls._STRUCTURE)()
    ffi.buffer(record._cdata)[:] = data
    self = cls.__new__(cls)
    Snapshot.__init__(self, record)
    return self


def public_properties(cls: type) -> list[str]:
    """Return the names of the properties of a class and its bases, in the order in which they are defined."""
    found: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        found.update(
            (name, None) for name, item in vars(base).items() if isinstance(item, property) and not name.startswith("_")
        )
    return list(found)


class Items(Generic[T]):
    """Base of sequences: a subclass has the items as its ``_items``, and what messages call one as its ``_ITEM``."""

    __slots__ = ()

    _ITEM: ClassVar[str]
    _items: Sequence[T]

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, idx: int) -> T:
        items, number = self._items, operator.index(idx)
        if not -len(items) <= number < len(items):
            raise IndexError(f"{self._ITEM} {number} is out of range: there are {len(items)}")
        return items[number]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __repr__(self) -> str:
        """Return the items."""
        return f"<{type(self).__name__} {list(self._items)}>"


class Part(Uncopyable):
    """Base of parts of what NVML told.

    Parameters
    ----------
    ptr : structure
        What NVML told of the part.
    owner : object
        What the structure is in; it is kept alive.
    """

    __slots__ = ("_owner", "_record")

    _NOT_COPIED_BECAUSE = "it is a part of what NVML told: copy the whole"

    def __init__(self, ptr: Any, owner: object) -> None:
        self._record = ptr
        self._owner = owner


class OfDevice(Uncopyable):
    """Base of what asks NVML of a device, which it has the handle of."""

    __slots__ = ("_handle",)

    _NOT_COPIED_BECAUSE = "it refers to a device of this process"
    _handle: nvml.nvmlDevice_t


class Aspect(Uncopyable):
    """Base of what asks NVML of a device, and looks up its handle each time.

    Parameters
    ----------
    device : Device
        The device.
    """

    __slots__ = ("_device",)

    _NOT_COPIED_BECAUSE = OfDevice._NOT_COPIED_BECAUSE

    def __init__(self, device: Device) -> None:
        self._device = device

    def __repr__(self) -> str:
        """Return the device."""
        return f"<{type(self).__name__} of {self._device!r}>"

    @property
    def _handle(self) -> nvml.nvmlDevice_t:
        return self._device._handle


class MemoryInfo(Snapshot["nvml.nvmlMemory_v2_t"]):
    """Memory of a device.

    Parameters
    ----------
    memory_info : nvmlMemory_v2_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlMemory_v2_t"

    def __init__(self, memory_info: nvml.nvmlMemory_v2_t) -> None:
        self._record = memory_info

    free = Answer(field("free"), doc="Memory that nobody has allocated, in bytes.")
    total = Answer(field("total"), doc="All memory of the device, in bytes.")
    used = Answer(field("used"), doc="Memory that is allocated, by whatever process, in bytes.")
    reserved = Answer(field("reserved"), doc="Memory that the driver and the firmware keep for themselves, in bytes.")


class BAR1MemoryInfo(MemoryInfo):
    """The part of a device's memory that the CPU and other devices can map over PCIe.

    Parameters
    ----------
    memory_info : nvmlBAR1Memory_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlBAR1Memory_t"
    _record: nvml.nvmlBAR1Memory_t  # type: ignore[assignment]  # another structure than that of all memory

    def __init__(self, memory_info: nvml.nvmlBAR1Memory_t) -> None:
        self._record = memory_info

    free = Answer(field("bar1Free"), doc="What is not mapped, in bytes.")
    total = Answer(field("bar1Total"), doc="All that can be mapped, in bytes.")
    used = Answer(field("bar1Used"), doc="What is mapped, in bytes.")

    @property
    def reserved(self) -> int:  # type: ignore[override]
        """Not known of BAR1 memory.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError("BAR1 memory has no reserved part")


class DeviceAttributes(Snapshot["nvml.nvmlDeviceAttributes_t"]):
    """How many engines a device has, or a MIG device shares.

    Parameters
    ----------
    attributes : nvmlDeviceAttributes_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlDeviceAttributes_t"

    def __init__(self, attributes: nvml.nvmlDeviceAttributes_t) -> None:
        self._record = attributes

    multiprocessor_count = Answer(field("multiprocessorCount"), doc="Number of multiprocessors.")
    shared_copy_engine_count = Answer(field("sharedCopyEngineCount"), doc="Number of copy engines.")
    shared_decoder_count = Answer(field("sharedDecoderCount"), doc="Number of video decoders.")
    shared_encoder_count = Answer(field("sharedEncoderCount"), doc="Number of video encoders.")
    shared_jpeg_count = Answer(field("sharedJpegCount"), doc="Number of JPEG engines.")
    shared_ofa_count = Answer(field("sharedOfaCount"), doc="Number of optical flow accelerators.")
    gpu_instance_slice_count = Answer(field("gpuInstanceSliceCount"), doc="Number of slices of the GPU instance.")
    compute_instance_slice_count = Answer(
        field("computeInstanceSliceCount"), doc="Number of slices of the compute instance."
    )
    memory_size_mb = Answer(field("memorySizeMB"), doc="Memory, in MiB.")


class RepairStatus(Snapshot["nvml.nvmlRepairStatus_v1_t"]):
    """Repairs of a device's memory channels and processors that the next reset makes.

    Parameters
    ----------
    handle : nvmlDevice_t
        The device, which is asked at once.

    Raises
    ------
    NotSupportedError
        If the device does not tell it.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlRepairStatus_v1_t"

    def __init__(self, handle: nvml.nvmlDevice_t) -> None:
        self._record = value(nvml.nvmlDeviceGetRepairStatus, handle)

    channel_repair_pending = Answer(flag("bChannelRepairPending"), doc="Whether a memory channel will be repaired.")
    tpc_repair_pending = Answer(flag("bTpcRepairPending"), doc="Whether a texture processing cluster will be repaired.")


class Utilization(Snapshot["nvml.nvmlUtilization_t"]):
    """How busy a device was in the last sample period, of between a sixth of a second and a second.

    Parameters
    ----------
    utilization : nvmlUtilization_t
        What NVML told.
    """

    __slots__ = ("_packed",)

    _STRUCTURE = "nvmlUtilization_t"
    _packed: int  # gpu in the lower 32 bits, memory in the upper ones

    def __init__(self, utilization: nvml.nvmlUtilization_t) -> None:
        self._record = utilization

    @property
    def _record(self) -> nvml.nvmlUtilization_t:  # for pickles
        record = nvml.nvmlUtilization_t()
        record.gpu, record.memory = self.gpu, self.memory
        return record

    @_record.setter
    def _record(self, record: nvml.nvmlUtilization_t) -> None:
        self._packed = record.gpu | record.memory << 32

    @property
    def gpu(self) -> int:
        """Share of the time in which a kernel ran, in percent."""
        return self._packed & LOWER

    @property
    def memory(self) -> int:
        """Share of the time in which memory of the device was read or written, in percent."""
        return self._packed >> 32


class GpuDynamicPstatesUtilization(Part):
    """How busy one part of a device is.

    Parameters
    ----------
    ptr : structure
        What NVML told of the part.
    owner : object
        What the structure is in; it is kept alive.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the values."""
        return (
            f"<GpuDynamicPstatesUtilization is_present={self.is_present} percentage={self.percentage} "
            f"inc_threshold={self.inc_threshold} dec_threshold={self.dec_threshold}>"
        )

    is_present = Answer(flag("bIsPresent"), doc="Whether the device has the part.")
    percentage = Answer(field("percentage"), doc="Share of the last second in which the part was busy, in percent.")
    inc_threshold = Answer(
        field("incThreshold"),
        doc="The share, in percent, above which the driver may go to a faster performance state.",
    )
    dec_threshold = Answer(
        field("decThreshold"),
        doc="The share, in percent, below which the driver may go to a slower performance state.",
    )


class GpuDynamicPstatesInfo(Items[GpuDynamicPstatesUtilization], Snapshot["nvml.nvmlGpuDynamicPstatesInfo_t"]):
    """How busy the parts of a device are: graphics, frame buffer, video, bus, and others that may be added.

    Parameters
    ----------
    gpu_dynamic_pstates_info : nvmlGpuDynamicPstatesInfo_t
        What NVML told.
    """

    __slots__ = ()

    _ITEM = "part"
    _STRUCTURE = "nvmlGpuDynamicPstatesInfo_t"

    def __init__(self, gpu_dynamic_pstates_info: nvml.nvmlGpuDynamicPstatesInfo_t) -> None:
        self._record = gpu_dynamic_pstates_info

    @property
    def _items(self) -> list[GpuDynamicPstatesUtilization]:  # type: ignore[override]
        return [GpuDynamicPstatesUtilization(part, self) for part in self._record.utilization]

    def __repr__(self) -> str:
        """Return the parts that the device has."""
        return f"<GpuDynamicPstatesInfo {[part for part in self._items if part.is_present]}>"


class ProcessInfo(Uncopyable):
    """A process that has a compute context on a device.

    Parameters
    ----------
    device : Device
        The device.
    process_info : nvmlProcessInfo_t
        What NVML told.
    """

    __slots__ = ("__weakref__", "_device", "_record")

    _NOT_COPIED_BECAUSE = OfDevice._NOT_COPIED_BECAUSE

    def __init__(self, device: Device, process_info: nvml.nvmlProcessInfo_v2_t) -> None:
        self._device = device
        self._record = process_info

    def __repr__(self) -> str:
        """Return the process and the memory."""
        return f"<ProcessInfo pid={self.pid} used_gpu_memory={self.used_gpu_memory}>"

    pid = Answer(field("pid"), doc="The process. In a container it is its number outside.")
    used_gpu_memory = Answer(
        field("usedGpuMemory"),
        doc="Memory of the device that the process uses, in bytes; 2**64 - 1 where NVML does not know.",
    )
    gpu_instance_id = Answer(
        field("gpuInstanceId"), doc="The GPU instance that the process runs in; 0xffffffff without MIG."
    )
    compute_instance_id = Answer(
        field("computeInstanceId"), doc="The compute instance that the process runs in; 0xffffffff without MIG."
    )
