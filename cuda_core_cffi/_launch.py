# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Launching kernels."""

from __future__ import annotations

import warnings
from typing import Any

from cuda_core_cffi._arguments import NOT_QUICK, Packer, make_packer
from cuda_core_cffi._errors import CUDAError
from cuda_core_cffi._ffi import lib
from cuda_core_cffi._kernel import Kernel
from cuda_core_cffi._launch_config import LaunchConfig
from cuda_core_cffi._stream import Stream, accept_stream
from cuda_core_cffi.typing import IsStreamType

__all__ = ["launch"]

_launch = lib.ccc_launch


def launch(stream: IsStreamType, config: LaunchConfig, kernel: Kernel, *kernel_args: Any) -> None:
    """Start a kernel.

    Parameters
    ----------
    stream : Stream
        The kernel runs in the order of this stream; it may not be done when this returns.
    config : LaunchConfig
        Grid, block and the rest.
    kernel : Kernel
        What to run.
    *kernel_args
        Its arguments: a :class:`Buffer`, an int, float, bool or complex in the width that the kernel declares, a NumPy
        or ctypes scalar, or a structure by value as bytes, bytearray, memoryview, ctypes structure or CFFI structure.

    Raises
    ------
    TypeError
        If an argument cannot be passed, or not for this parameter; the message names its position and type.
    ValueError
        If the number of arguments is wrong.
    OverflowError
        If a number does not fit the parameter.
    CUDAError
        If the driver refuses the launch.
    """
    if not isinstance(stream, Stream):
        stream = foreign_stream(stream)
    try:
        native = config._native_cache or config._native
        packer = kernel._packers[tuple(map(type, kernel_args))]
    except (AttributeError, KeyError):
        native, packer = prepare(config, kernel, kernel_args)
    try:
        data = packer.quick(*kernel_args)
    except NOT_QUICK:
        data = packer.careful(kernel_args)
    status = _launch(native, kernel._box, stream._box, data, len(data))
    if status:
        raise launch_failure(status, stream, config, kernel)


def prepare(config: object, kernel: object, values: tuple[Any, ...]) -> tuple[Any, Packer]:
    """Return the native configuration, and the packer for arguments of these types, which the kernel keeps."""
    if not isinstance(config, LaunchConfig):
        raise TypeError(f"config must be a LaunchConfig, not {type(config).__name__}")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
    types = tuple(map(type, values))
    layout = kernel._layout
    packer = make_packer(types, values, layout, kernel._kinds)
    if layout is not None:  # without it, a packer is for the sizes of these values
        kernel._packers[types] = packer
    return config._native, packer


def foreign_stream(stream: object) -> Stream:
    """Return another library's stream as ours; None is a TypeError."""
    queue = accept_stream(stream, "launch")
    warnings.warn(
        "passing another library's stream to launch is deprecated: wrap it once with Device.create_stream",
        DeprecationWarning,
        stacklevel=3,
    )
    return queue


def launch_failure(status: int, stream: Stream, config: LaunchConfig, kernel: Kernel) -> Exception:
    """Return the exception for a launch that failed, with what was asked for."""
    error = kernel._failure(status, stream)
    if isinstance(error, CUDAError):
        error.add_note(f"launch of {kernel!r} with {config!r}")
    return error
