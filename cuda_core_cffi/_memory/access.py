# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What a driver leaves out when it refuses work on memory: that the stream is of a device without access to it."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core.errors import CUDAError
from cuda_core_cffi._core.ffi import lib

__all__ = ["explain_access"]


def _device_of(operand: Any) -> int:
    """Return the ordinal of the device whose memory it is."""
    return int(operand.device_id if hasattr(operand, "device_id") else operand.device.device_id)


def explain_access(error: Exception, stream: Any, *operands: Any) -> Exception:
    """Return an error with a note for each operand that belongs to another device than the stream.

    Parameters
    ----------
    error : Exception
        What the work failed with.
    stream : Stream
        Where it was to run.
    *operands : Buffer, StridedMemoryView or OpaqueArray
        What it was to use.
    """
    if isinstance(error, CUDAError) and error.status == lib.CUDA_ERROR_INVALID_VALUE:
        ours = stream.device.device_id
        owners = {_device_of(operand) for operand in operands if not getattr(operand, "is_host_accessible", False)}
        for owner in sorted(owners - {ours, -1}):
            error.add_note(
                f"memory of device {owner} is used in a stream of device {ours}, which may have no access to it: give "
                "it with peer_accessible_by of the memory's pool, or use a stream of the memory's own device"
            )
    return error
