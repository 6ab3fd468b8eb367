# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The NVIDIA libraries that are loaded at run time: where they are found, and what to install when they are not."""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from cuda_core_cffi._core.errors import UnavailableError, check, cuda_version, failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock

NVJITLINK_VARIABLE = "CUDA_CORE_CFFI_NVJITLINK"
NVRTC_VARIABLE = "CUDA_CORE_CFFI_NVRTC"
NVVM_VARIABLE = "CUDA_CORE_CFFI_NVVM"

# From the folder of libNVVM: in wheels of CUDA 13, and everywhere else.
_LIBDEVICE_PLACES = ("../nvvm/libdevice/libdevice.10.bc", "../libdevice/libdevice.10.bc")

_MAPS = "/proc/self/maps"

_ELF_HEADER = struct.Struct("<4s B 27x Q 14x H H")  # magic, class, offset of the segments, their size and number
_ELF_SEGMENT = struct.Struct("<I 4x Q 16x Q")  # type, offset, size
_ELF_MAGIC = b"\x7fELF"
_ELF_64_BITS = 2
_ELF_NOTES = 4
_NOTE_BUILD_ID = b"\x14\0\0\0\x03\0\0\0GNU\0"  # 20 bytes follow

_lock = new_lock()
_paths: dict[str, str] = {}  # by title; set under the lock, when the C table is filled


class FoundLibrary(NamedTuple):
    """What is known about one of the libraries."""

    name: str
    path: str | None
    version: str | None
    problem: str | None
    """Why the library cannot be used; None if it can."""


def find_library(name: str, title: str, variable: str) -> str:
    """Return the path of an NVIDIA library.

    Parameters
    ----------
    name : str
        The name by which cuda-pathfinder knows it: ``"nvrtc"``.
    title : str
        The name for messages: ``"NVRTC"``.
    variable : str
        The environment variable that overrides the search with a path.

    Returns
    -------
    str
        An absolute path, or what the variable says.

    Raises
    ------
    UnavailableError
        If the library is nowhere to be found.
    """
    if chosen := os.environ.get(variable):
        if not os.path.isfile(chosen):
            raise UnavailableError(f"{title}: {variable} names {chosen!r}, and there is no such file")
        return chosen
    # On first need: importing it takes 75 ms, of which most programs that only allocate and copy need nothing.
    from cuda.pathfinder import load_nvidia_dynamic_lib  # type: ignore[import-untyped]

    try:
        path: str | None = load_nvidia_dynamic_lib(name).abs_path
    except (OSError, RuntimeError) as error:  # DynamicLibNotFoundError is a RuntimeError
        raise UnavailableError(
            f"{title} was not found; install it with `pip install cuda-core-cffi[{wanted_extra()}]`, or name the "
            f"library in the environment variable {variable} (the search said: {' '.join(str(error).split())})"
        ) from error
    if path is None:
        raise UnavailableError(f"{title} is loaded, but its path is unknown; name the library in {variable}")
    return path


def wanted_extra() -> str:
    """Return the extra of this package whose libraries suit the driver; the newest where no driver is loaded."""
    return "cu12" if lib.ccc_driver_version() // 1000 == 12 else "cu13"


def load_nvrtc() -> Any:
    """Return the table of NVRTC's functions, loading the library at the first call.

    Returns
    -------
    CFFI ``ccc_nvrtc``
        One function pointer per name; those which this NVRTC is too old for are NULL.

    Raises
    ------
    UnavailableError
        If NVRTC is not installed, or the library is none.
    """
    if "NVRTC" not in _paths:
        _load("nvrtc", "NVRTC", NVRTC_VARIABLE, lib.ccc_nvrtc_load)
    return lib.ccc_nvrtc_table


def load_nvjitlink() -> Any:
    """Return the table of nvJitLink's functions, loading the library at the first call.

    Returns
    -------
    CFFI ``ccc_nvjitlink``
        One function pointer per name.

    Raises
    ------
    UnavailableError
        If nvJitLink is not installed or is older than CUDA 12.3, or the library is none.
    """
    if "nvJitLink" not in _paths:
        _load("nvJitLink", "nvJitLink", NVJITLINK_VARIABLE, lib.ccc_nvjitlink_load)
    return lib.ccc_nvjitlink_table


def load_nvvm() -> Any:
    """Return the table of libNVVM's functions, loading the library at the first call.

    Returns
    -------
    CFFI ``ccc_nvvm``
        One function pointer per name; those which this libNVVM is too old for are NULL.

    Raises
    ------
    UnavailableError
        If libNVVM is not installed, or the library is none.
    """
    if "libNVVM" not in _paths:
        _load("nvvm", "libNVVM", NVVM_VARIABLE, lib.ccc_nvvm_load)
    return lib.ccc_nvvm_table


def find_libdevice() -> str:
    """Return the path of libdevice, NVIDIA's library of mathematical functions, that belongs to libNVVM.

    Raises
    ------
    UnavailableError
        If libNVVM, or its libdevice, is nowhere to be found.
    """
    load_nvvm()
    folder = os.path.dirname(os.path.realpath(_paths["libNVVM"]))
    for place in _LIBDEVICE_PLACES:
        path = os.path.normpath(os.path.join(folder, place))
        if os.path.isfile(path):
            return path
    raise UnavailableError(
        f"libdevice was not found: of {', '.join(_LIBDEVICE_PLACES)}, none from {folder!r} is a file"
    )


def nvrtc_version() -> tuple[int, int]:
    """Return NVRTC's version, which is that of the CUDA Toolkit it comes from, as (major, minor)."""
    out = ffi.new("int[2]")
    if load_nvrtc().nvrtcVersion(out, out + 1):
        raise UnavailableError(f"{_paths['NVRTC']!r} does not tell its version")
    return int(out[0]), int(out[1])


@functools.cache
def nvrtc_build() -> bytes:
    """Return what tells this build of NVRTC from others, which may make other code of the same source.

    Updates of one CUDA Toolkit have the same version, so this is the version with the build ID, where there is one.
    """
    return b"%d.%d " % nvrtc_version() + _build_id(_paths["NVRTC"])


def nvjitlink_version() -> tuple[int, int]:
    """Return nvJitLink's version, which is that of the CUDA Toolkit it comes from, as (major, minor)."""
    out = ffi.new("unsigned int[2]")
    if load_nvjitlink().nvJitLinkVersion(out, out + 1):
        raise UnavailableError(f"{_paths['nvJitLink']!r} does not tell its version")
    return int(out[0]), int(out[1])


@functools.cache
def nvjitlink_build() -> bytes:
    """Return what tells this build of nvJitLink from others, as :func:`nvrtc_build` does for NVRTC."""
    return b"%d.%d " % nvjitlink_version() + _build_id(_paths["nvJitLink"])


def nvvm_version() -> tuple[int, int]:
    """Return libNVVM's version as (major, minor); it is not that of the CUDA Toolkit, and seldom changes."""
    out = ffi.new("int[2]")
    if load_nvvm().nvvmVersion(out, out + 1):
        raise UnavailableError(f"{_paths['libNVVM']!r} does not tell its version")
    return int(out[0]), int(out[1])


@functools.cache
def nvvm_build() -> bytes:
    """Return what tells this build of libNVVM from others, as :func:`nvrtc_build` does for NVRTC."""
    return b"%d.%d " % nvvm_version() + _build_id(_paths["libNVVM"])


@functools.cache
def driver_build() -> bytes:
    """Return what tells this build of the CUDA driver from others, as :func:`nvrtc_build` does for NVRTC."""
    number = ffi.new("int *")
    check(lib.cuDriverGetVersion(number), "cuDriverGetVersion")
    return b"%d " % number[0] + _build_id(_mapped_path(ffi.string(lib.ccc_driver_name()).decode(errors="replace")))


def found_libraries() -> list[FoundLibrary]:
    """Report the driver and the libraries that are loaded at run time. Never raises.

    Returns
    -------
    list of FoundLibrary
        Name, path, version and problem of each. The driver is loaded by this, but not initialised.
    """
    return [
        _driver(),
        _found("NVRTC", NVRTC_VARIABLE, nvrtc_version),
        _found("libNVVM", NVVM_VARIABLE, nvvm_version),
        _found("nvJitLink", NVJITLINK_VARIABLE, nvjitlink_version),
    ]


def _load(name: str, title: str, variable: str, load: Callable[[bytes], Any]) -> None:
    """Find a library as :func:`find_library` does, and fill its table; raise UnavailableError if there is none."""
    path = find_library(name, title, variable)
    encoded = os.fsencode(path)
    with _lock:
        if title in _paths:  # another thread was first
            return
        problem = load(encoded)
        if problem == ffi.NULL:
            _paths[title] = path
            return
    reason = ffi.string(problem).decode(errors="replace")
    if reason.startswith(name):
        reason = f"it has no function {reason}, so it is too old, or no {title}"
    raise UnavailableError(f"{path!r} cannot be used as {title}: {reason}")


def _driver() -> FoundLibrary:
    number = ffi.new("int *")
    status = lib.cuDriverGetVersion(number)
    if status:
        return FoundLibrary("CUDA driver", None, None, str(failure(status, "cuDriverGetVersion")))
    name = ffi.string(lib.ccc_driver_name()).decode(errors="replace")
    return FoundLibrary("CUDA driver", _mapped_path(name), cuda_version(number[0]), None)


def _found(title: str, variable: str, version: Callable[[], tuple[int, int]]) -> FoundLibrary:
    try:
        text = ".".join(map(str, version()))
    except UnavailableError as error:
        return FoundLibrary(title, os.environ.get(variable) or None, None, str(error))
    return FoundLibrary(title, _paths[title], text, None)


def _build_id(path: str) -> bytes:
    """Return the build ID that the linker left in a library; empty if it has none."""
    with open(path, "rb") as file:
        header = file.read(_ELF_HEADER.size)
        if len(header) < _ELF_HEADER.size:
            return b""
        magic, bits, offset, size, count = _ELF_HEADER.unpack(header)
        if magic != _ELF_MAGIC or bits != _ELF_64_BITS or size < _ELF_SEGMENT.size:
            return b""
        file.seek(offset)
        segments = file.read(size * count)
        for index in range(count):
            kind, start, length = _ELF_SEGMENT.unpack_from(segments, index * size)
            if kind == _ELF_NOTES:
                file.seek(start)
                _, found, after = file.read(length).partition(_NOTE_BUILD_ID)
                if found:
                    return after[:20]
    return b""


def _mapped_path(name: str) -> str:
    """Return where the library that was loaded as ``name`` lies; the name itself if that cannot be told."""
    stem = name.partition(".so")[0] + ".so"
    try:
        with open(_MAPS, encoding="utf-8", errors="replace") as maps:
            paths = [line.rstrip("\n").partition("/")[2] for line in maps]
    except OSError:
        return name
    return next(("/" + path for path in paths if path.rpartition("/")[2].startswith(stem)), name)
