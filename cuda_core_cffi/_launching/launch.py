# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Launching kernels."""

from __future__ import annotations

import math
import warnings
from typing import Any, NoReturn

from cuda_core_cffi._code.kernel import Kernel
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.errors import CUDAError, UnavailableError
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._launching.arguments import Packer, c_handles_of, make_packer
from cuda_core_cffi._launching.attributes import check_device
from cuda_core_cffi._launching.config import LaunchConfig, shown
from cuda_core_cffi._streams.stream import Stream, StreamProxy, launch_stream
from cuda_core_cffi.typing import IsStreamType

_launch = calls.launch
CLOSED: int = lib.CCC_CLOSED
UNCHECKED: int = lib.CCC_UNCHECKED

# What a status of the driver says of the fields of a configuration that are launch attributes.
REFUSALS: dict[str | None, tuple[type[CUDAError], str]] = {
    "CUDA_ERROR_INVALID_VALUE": (CUDAError, "what is wrong is the grid, the block, the shared memory, or one of"),
    "CUDA_ERROR_NOT_SUPPORTED": (UnavailableError, "this device with this driver lacks one of"),
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": (CUDAError, "asked for was"),
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": (CUDAError, "asked for was"),
}

ARGUMENT_ERRORS = (TypeError, ValueError, OverflowError)

# What a status of the driver may be about that the kernel's attributes and the device's properties explain.
EXCESSES = ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")


def launch_failed(status: int, stream: Any, config: LaunchConfig, kernel: Kernel, *values: Any) -> NoReturn:
    """Raise the exception for a launch that failed."""
    raise launch_failure(status, launch_stream(stream, "launch"), config, kernel, values)


@calls.native(launch_failed)
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
        or ctypes scalar, or a structure by value as bytes, bytearray, memoryview, structured scalar of NumPy, ctypes
        structure or CFFI structure.

    Raises
    ------
    TypeError
        If an argument cannot be passed, or not for this parameter; the message names its position and type.
    ValueError
        If the number of arguments is wrong.
    OverflowError
        If a number does not fit the parameter.
    RuntimeError
        If something is closed: the stream, the kernel, a buffer, or what the configuration refers to. Or if the stream
        is a :class:`~cuda_core_cffi.graph.GraphBuilder` that is not building, so that nothing would be captured.
    UnavailableError
        If the device or the driver lacks what the configuration asks for.
    CUDAError
        If the driver refuses the launch.

    Examples
    --------
    >>> from cuda_core_cffi import LaunchConfig
    >>> launch(stream, LaunchConfig(grid=1, block=1), kernel, memory, 42)  # void store(int *out, int value)
    >>> result = memory[:4].copy_to(bytearray(4), stream=stream)
    >>> stream.sync()
    >>> int.from_bytes(result, "little")
    42
    """
    try:
        packer, native = kernel._fast_packer, config._native_cache
    except AttributeError:  # no kernel, or no configuration
        status = None
    else:  # not in the try block: an exception that a signal handler raises here goes to the caller
        status = _launch(packer, stream, native, kernel_args)
        if status is None and isinstance(stream, StreamProxy):  # whose own stream is as quick
            stream = stream._for_launch()
            status = _launch(packer, stream, native, kernel_args)
    if status == 0:
        return
    if status is None or status in (UNCHECKED, CLOSED):
        launch_carefully(stream, config, kernel, kernel_args)
    else:
        launch_failed(status, stream, config, kernel, *kernel_args)


def launch_carefully(stream: Any, config: Any, kernel: Any, values: tuple[Any, ...]) -> None:
    """Launch what is not on the fast path: the first launch of all, or with arguments of other types than the last."""
    if not isinstance(stream, Stream):
        stream = foreign_stream(stream)
    packer = prepare(config, kernel, values)
    status: int | None = UNCHECKED
    while status == UNCHECKED:
        native = config._native_cache or config._native
        status = _launch(packer.fast, stream, native, values)
        if status is None or status == CLOSED:  # look at the arguments, to name the closed one
            c_handles = c_handles_of(values)
            try:
                arguments = packer.pack_on_slow_path(values)
            except ARGUMENT_ERRORS as error:
                error.add_note(f"launch of {kernel!r}")
                raise
            status = lib.ccc_launch(
                packer.target, native, stream._c_handle, arguments, c_handles, ffi.NULL, len(c_handles)
            )
        if status == UNCHECKED:
            allow(config, stream)
    if status:
        raise launch_failure(status, stream, config, kernel, values)


def prepare(config: object, kernel: object, values: tuple[Any, ...]) -> Packer:
    """Return the packer for arguments of these types, which the kernel keeps, and tries first in the next launch."""
    if not isinstance(config, LaunchConfig):
        raise TypeError(f"config must be a LaunchConfig, not {type(config).__name__}")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
    types = tuple(map(type, values))
    packer: Packer | None = kernel._find_packer(types)
    if packer is None:
        layout = kernel._layout
        try:
            packer = make_packer(types, values, layout, kernel._kinds, kernel._c_handle)
        except ARGUMENT_ERRORS as error:
            error.add_note(f"launch of {kernel!r}")
            raise
        if layout is not None:  # else it is for the sizes of these values
            kernel._set_packer(types, packer)
    return packer


def foreign_stream(stream: object) -> Stream:
    """Return another library's stream as ours; None is a TypeError."""
    queue = launch_stream(stream, "launch")
    if isinstance(stream, StreamProxy):
        return queue
    warnings.warn(
        "passing another library's stream to launch is deprecated: wrap it once with Device.create_stream",
        DeprecationWarning,
        stacklevel=4,
    )
    return queue


def allow(config: LaunchConfig, stream: Stream) -> Any:
    """Return the native configuration for the next try, where a launch was ``CCC_UNCHECKED``; raise if it cannot be.

    Raises
    ------
    UnavailableError, ValueError
        If the device or the driver lacks something, or a value is out of the device's range.
    RuntimeError
        If something that the configuration refers to is closed.
    """
    native = config._native
    device = stream.device
    check_device(device, config._given)
    lib.ccc_config_allow(native, device.device_id)
    return native


def launch_failure(
    status: int, stream: Stream, config: LaunchConfig, kernel: Kernel, values: tuple[Any, ...] = ()
) -> Exception:
    """Return the exception for a launch that failed, with what was asked for."""
    error = kernel._failure(status, stream, *values)
    if not isinstance(error, CUDAError):
        return error
    given = config._given
    if error.name in EXCESSES and (excess := describe_excess(config, kernel, stream)):
        error.args = (f"{error}; {excess}",)
    elif given and error.name in REFUSALS:
        kind, why = REFUSALS[error.name]
        refused = kind(f"{error}; {why}: {', '.join(f'{name}={shown(kept)}' for name, kept in given.items())}")
        refused.call, refused.status, refused.name = error.call, error.status, error.name
        error = refused
    error.add_note(f"launch of {kernel!r} with {config!r}")
    return error


def describe_excess(config: LaunchConfig, kernel: Kernel, stream: Stream) -> str:
    """Return in words what a launch has more of than the kernel or the device allows; nothing if that is not why."""
    try:
        device = stream.device
        limits = kernel.attributes[device]
        cases = [
            (f"threads in block={config.block}", math.prod(config.block), limits.max_threads_per_block, "the kernel"),
        ]
        shared = limits._describe_shared(config.shmem_size, device.device_id)
        grid = [count * factor for count, factor in zip(config.grid, config.cluster or (1, 1, 1))]
        for name, sizes in (("block", config.block), ("grid", grid)):
            for axis, size in zip("xyz", sizes):
                most = getattr(device.properties, f"max_{name}_dim_{axis}")
                cases.append((f"in {axis} of {name}", size, most, device.name))
    except CUDAError:  # the launch has failed already
        return ""
    found = [f"{size} {what} are more than the {most} of {who}" for what, size, most, who in cases if size > most]
    return ", and ".join([*found, *([shared] if shared else [])])
