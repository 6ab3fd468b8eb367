# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The NVIDIA libraries that are loaded at run time: where they are found, and what to install when they are not."""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cuda_core_cffi._core.errors import UnavailableError, check, cuda_version, failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock

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


class FoundLibrary(NamedTuple):
    """What is known about one of the libraries."""

    name: str
    path: str | None
    version: str | None
    problem: str | None
    """Why the library cannot be used; None if it can."""


class NvidiaLibrary:
    """A library that is loaded when it is first needed.

    Its environment variable overrides the search with a path; its path is where it was found, once it is loaded.
    """

    def __init__(
        self,
        name: str,  # by which cuda-pathfinder knows it
        title: str,  # for messages
        fill: Callable[[bytes], Any],  # the helper that loads it and fills the table of its functions
        table: Any = None,  # those which the library is too old for are NULL
        version: str = "",  # the function that tells its version
        numbers: str = "int[2]",  # what that writes
    ) -> None:
        self.name, self.title, self.variable = name, title, f"CUDA_CORE_CFFI_{name.upper()}"
        self.path: str | None = None  # set under the lock, when the table is filled
        self._fill, self._table, self._version, self._numbers = fill, table, version, numbers
        self._build: bytes | None = None

    def find(self) -> str:
        """Return its path, or what the variable says; raise :class:`UnavailableError` if it is nowhere to be found."""
        if chosen := os.environ.get(self.variable):
            if not os.path.isfile(chosen):
                raise UnavailableError(f"{self.title}: {self.variable} names {chosen!r}, and there is no such file")
            return chosen
        # On first need: importing it takes 75 ms, of which most programs that only allocate and copy need nothing.
        from cuda.pathfinder import load_nvidia_dynamic_lib  # type: ignore[import-untyped]

        try:
            path: str | None = load_nvidia_dynamic_lib(self.name).abs_path
        except (OSError, RuntimeError) as error:  # DynamicLibNotFoundError is a RuntimeError
            raise UnavailableError(
                f"{self.title} was not found; install it with `pip install cuda-core-cffi[{wanted_extra()}]`, or name "
                f"the library in the environment variable {self.variable} (the search said: "
                f"{' '.join(str(error).split())})"
            ) from error
        if path is None:
            raise UnavailableError(
                f"{self.title} is loaded, but its path is unknown; name the library in {self.variable}"
            )
        return path

    def load(self) -> Any:
        """Return the table of its functions, loading the library at the first call.

        Raise :class:`UnavailableError` if it is not installed or too old, or the library is none.
        """
        if self.path is None:
            self._load()
        return self._table

    def version(self) -> tuple[int, int]:
        """Return its version as (major, minor): that of its CUDA Toolkit, but libNVVM has versions of its own."""
        out = ffi.new(self._numbers)
        if getattr(self.load(), self._version)(out, out + 1):
            raise UnavailableError(f"{self.path!r} does not tell its version")
        return int(out[0]), int(out[1])

    def build(self) -> bytes:
        """Return what tells this build of the library from others, which may make other code of the same source.

        Updates of one CUDA Toolkit have the same version, so this is the version with the build ID, where there is one.
        """
        if self._build is None:
            version = self.version()
            self._build = b"%d.%d " % version + _build_id(str(self.path))
        return self._build

    def copy_out(self, handle: Any, call: str, failure: Callable[[int, str], Exception]) -> bytes:
        """Return what its function ``call`` copies out, whose size the function ``<call>Size`` tells."""
        size = ffi.new("size_t *")
        status = getattr(self.load(), f"{call}Size")(handle, size)
        if status:
            raise failure(status, f"{call}Size")
        data = bytearray(size[0])
        if data:
            status = getattr(self._table, call)(handle, ffi.from_buffer("char[]", data, require_writable=True))
            if status:
                raise failure(status, call)
        return bytes(data)

    def _load(self) -> None:
        path = self.find()
        encoded = os.fsencode(path)
        with _lock:
            if self.path is not None:  # another thread was first
                return
            problem = self._fill(encoded)
            if problem == ffi.NULL:
                self.path = path
                return
        reason = ffi.string(problem).decode(errors="replace")
        if reason.startswith(self.name):
            reason = f"it has no function {reason}, so it is too old, or no {self.title}"
        raise UnavailableError(f"{path!r} cannot be used as {self.title}: {reason}")


NVRTC_LIBRARY: Final = NvidiaLibrary("nvrtc", "NVRTC", lib.ccc_nvrtc_load, lib.ccc_nvrtc_table, "nvrtcVersion")
NVVM_LIBRARY: Final = NvidiaLibrary("nvvm", "libNVVM", lib.ccc_nvvm_load, lib.ccc_nvvm_table, "nvvmVersion")
NVJITLINK_LIBRARY: Final = NvidiaLibrary(
    "nvJitLink", "nvJitLink", lib.ccc_nvjitlink_load, lib.ccc_nvjitlink_table, "nvJitLinkVersion", "unsigned int[2]"
)


def wanted_extra() -> str:
    """Return the extra of this package whose libraries suit the driver; the newest where no driver is loaded."""
    return "cu12" if lib.ccc_driver_version() // 1000 == 12 else "cu13"


def find_libdevice() -> str:
    """Return the path of libdevice, NVIDIA's library of mathematical functions, that belongs to libNVVM."""
    NVVM_LIBRARY.load()
    folder = os.path.dirname(os.path.realpath(str(NVVM_LIBRARY.path)))
    for place in _LIBDEVICE_PLACES:
        path = os.path.normpath(os.path.join(folder, place))
        if os.path.isfile(path):
            return path
    raise UnavailableError(
        f"libdevice was not found: of {', '.join(_LIBDEVICE_PLACES)}, none from {folder!r} is a file"
    )


@functools.cache
def driver_build() -> bytes:
    """Return what tells this build of the CUDA driver from others, as :meth:`NvidiaLibrary.build` does."""
    number = ffi.new("int *")
    check(lib.cuDriverGetVersion(number), "cuDriverGetVersion")
    return b"%d " % number[0] + _build_id(_mapped_path(ffi.string(lib.ccc_driver_name()).decode(errors="replace")))


def found_libraries() -> list[FoundLibrary]:
    """Report the driver, which this loads but does not initialise, and the libraries. Never raises."""
    return [_driver(), *map(_found, (NVRTC_LIBRARY, NVVM_LIBRARY, NVJITLINK_LIBRARY))]


def _driver() -> FoundLibrary:
    number = ffi.new("int *")
    status = lib.cuDriverGetVersion(number)
    if status:
        return FoundLibrary("CUDA driver", None, None, str(failure(status, "cuDriverGetVersion")))
    name = ffi.string(lib.ccc_driver_name()).decode(errors="replace")
    return FoundLibrary("CUDA driver", _mapped_path(name), cuda_version(number[0]), None)


def _found(library: NvidiaLibrary) -> FoundLibrary:
    try:
        text = ".".join(map(str, library.version()))
    except UnavailableError as error:
        return FoundLibrary(library.title, os.environ.get(library.variable) or None, None, str(error))
    return FoundLibrary(library.title, library.path, text, None)


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
