# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Why work on memory failed: the exceptions of copies, and notes that a stream is of a device without access."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core.errors import CUDAError, UnavailableError, cuda_version
from cuda_core_cffi._core.ffi import lib

NATIVE_SINGLE, NATIVE_BATCH = 13020, 13000  # the drivers that heed options of copies


def _device_of(operand: Any) -> int:
    """Return the ordinal of the device whose memory it is."""
    return int(operand.device_id if hasattr(operand, "device_id") else operand.device.device_id)


def explain_access(error: Exception, stream: Any, *operands: Any) -> Exception:
    """Return an error, with a note for each operand that belongs to another device than the stream of the work."""
    if isinstance(error, CUDAError) and error.status == lib.CUDA_ERROR_INVALID_VALUE:
        ours = stream.device.device_id
        owners = {_device_of(operand) for operand in operands if not getattr(operand, "is_host_accessible", False)}
        for owner in sorted(owners - {ours, -1}):
            error.add_note(
                f"memory of device {owner} is used in a stream of device {ours}, which may have no access to it: give "
                "it with peer_accessible_by of the memory's pool, or use a stream of the memory's own device"
            )
    return error


def copy_failure(status: int, what: str, stream: Any, *operands: Any, needed: int = NATIVE_SINGLE) -> Exception:
    """Return the exception for a failed copy; ``what`` is the operation, for which options need CUDA ``needed``."""
    if status == lib.CCC_OVERLAP:
        return ValueError(f"{what}: source and destination have bytes in common")
    if status == lib.CCC_LEGACY_STREAM:
        return TypeError(
            f"{what}: the legacy default stream takes no copies with options, and no batches; use a stream of "
            "Device.create_stream or PER_THREAD_DEFAULT_STREAM"
        )
    if status == lib.CCC_CAPTURING:
        return TypeError(
            f"{what}: the stream is being captured in a graph, which can hold neither copies with options, nor "
            "batches, nor copies of Python objects"
        )
    if status == lib.CCC_READ_LATER:
        return UnavailableError(
            f"{what}: src_access_order='during_api_call' needs CUDA {cuda_version(needed)}, of the driver and of the "
            f"headers of this build; the installed driver is for {cuda_version(lib.ccc_driver_version())}, and would "
            "read the source later"
        )
    return explain_access(stream._failure(status, *operands), stream, *operands)
