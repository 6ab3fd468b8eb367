# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Engines of a device, and repairs that wait for a reset."""

from __future__ import annotations

from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import value
from cuda_core_cffi.system._snapshot import Snapshot


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

    @property
    def multiprocessor_count(self) -> int:
        """Number of multiprocessors."""
        return self._record.multiprocessorCount

    @property
    def shared_copy_engine_count(self) -> int:
        """Number of copy engines."""
        return self._record.sharedCopyEngineCount

    @property
    def shared_decoder_count(self) -> int:
        """Number of video decoders."""
        return self._record.sharedDecoderCount

    @property
    def shared_encoder_count(self) -> int:
        """Number of video encoders."""
        return self._record.sharedEncoderCount

    @property
    def shared_jpeg_count(self) -> int:
        """Number of JPEG engines."""
        return self._record.sharedJpegCount

    @property
    def shared_ofa_count(self) -> int:
        """Number of optical flow accelerators."""
        return self._record.sharedOfaCount

    @property
    def gpu_instance_slice_count(self) -> int:
        """Number of slices of the GPU instance."""
        return self._record.gpuInstanceSliceCount

    @property
    def compute_instance_slice_count(self) -> int:
        """Number of slices of the compute instance."""
        return self._record.computeInstanceSliceCount

    @property
    def memory_size_mb(self) -> int:
        """Memory, in MiB."""
        return self._record.memorySizeMB


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

    @property
    def channel_repair_pending(self) -> bool:
        """Whether a memory channel will be repaired."""
        return bool(self._record.bChannelRepairPending)

    @property
    def tpc_repair_pending(self) -> bool:
        """Whether a texture processing cluster will be repaired."""
        return bool(self._record.bTpcRepairPending)
