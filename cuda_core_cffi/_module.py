# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled code, which the driver loads when it is first needed."""

from __future__ import annotations

import difflib
import os
import struct
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from cuda_core_cffi._errors import cuda_version, failure
from cuda_core_cffi._ffi import ffi, lib
from cuda_core_cffi._kernel import Kernel, Library
from cuda_core_cffi.typing import ObjectCodeFormatType

__all__ = ["ObjectCode"]

_LOG_SIZE: Final = 16384
_MOST_SHOWN: Final = 5  # names in an error message

_ELF_MAGIC: Final = b"\x7fELF"
_ELF_HEADER: Final = struct.Struct("<4s B 27x Q Q 6x H H H H 2x")  # magic, class, offsets, entry sizes and counts
_ELF_SECTION: Final = struct.Struct("<4x I 16x Q Q")  # type, offset, size
_ELF_64_BITS: Final = 2
_ELF_NO_BITS: Final = 8  # a section that takes no room in the file

_FATBIN_MAGIC: Final = b"\x50\xed\x55\xba"
_FATBIN_HEADER: Final = struct.Struct("<4s 2x H Q")  # magic, size of the header, size of what follows


class ObjectCode:
    """Compiled code: what :meth:`Program.compile` makes, or a file that another compiler made.

    The driver loads the code when the first kernel, or the handle, is asked for. Each object loads its own copy, so
    objects are equal only to themselves. They can be pickled.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_code",
        "_code_type",
        "_data",
        "_library",
        "_lock",
        "_name",
        "_symbol_mapping",
    )

    _closed: bool
    _code: bytes | str  # as given: the code, or the path of its file
    _code_type: ObjectCodeFormatType
    _data: bytes
    _library: Library | None
    _lock: threading.Lock
    _name: str
    _symbol_mapping: dict[str, str]

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(
            "ObjectCode cannot be constructed directly; use Program.compile, or ObjectCode.from_cubin and its likes"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        return self is other  # as their handles would say, without loading anything

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self._data, self._code, str(self._code_type), self._name, self._symbol_mapping)

    def __repr__(self) -> str:
        handle = 0 if self._library is None else self._library.handle
        return f"<ObjectCode handle={handle:#x} code_type={str(self._code_type)!r}>"

    @staticmethod
    def from_cubin(
        module: bytes | str | os.PathLike[str], *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode:
        """Wrap machine code for one architecture.

        Parameters
        ----------
        module : bytes or path
            The code, or the path of its file.
        name : str, optional
            A name for messages.
        symbol_mapping : mapping of str to str, optional
            Names under which kernels can be got, to their symbols in the code.

        Returns
        -------
        ObjectCode
            The code, not loaded yet.

        Raises
        ------
        TypeError
            If an argument is of another type.
        ValueError
            If the code is empty.
        OSError
            If the file cannot be read.
        """
        return _read(ObjectCodeFormatType.CUBIN, module, name, symbol_mapping)

    @staticmethod
    def from_ptx(
        module: bytes | str | os.PathLike[str], *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode:
        """Wrap PTX, which the driver compiles when it loads it.

        Parameters
        ----------
        module : bytes or path
            The code, or the path of its file.
        name : str, optional
            A name for messages.
        symbol_mapping : mapping of str to str, optional
            Names under which kernels can be got, to their symbols in the code.

        Returns
        -------
        ObjectCode
            The code, not loaded yet. Errors are those of :meth:`from_cubin`.
        """
        return _read(ObjectCodeFormatType.PTX, module, name, symbol_mapping)

    @staticmethod
    def from_ltoir(
        module: bytes | str | os.PathLike[str], *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode:
        """Wrap LTO IR, which has to be linked before it can be loaded.

        Parameters
        ----------
        module : bytes or path
            The code, or the path of its file.
        name : str, optional
            A name for messages.
        symbol_mapping : mapping of str to str, optional
            Names under which kernels can be got, to their symbols in the code.

        Returns
        -------
        ObjectCode
            The code. Errors are those of :meth:`from_cubin`.
        """
        return _read(ObjectCodeFormatType.LTOIR, module, name, symbol_mapping)

    @staticmethod
    def from_fatbin(
        module: bytes | str | os.PathLike[str], *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode:
        """Wrap a fat binary: the same code for several architectures.

        Parameters
        ----------
        module : bytes or path
            The code, or the path of its file.
        name : str, optional
            A name for messages.
        symbol_mapping : mapping of str to str, optional
            Names under which kernels can be got, to their symbols in the code.

        Returns
        -------
        ObjectCode
            The code, not loaded yet. Errors are those of :meth:`from_cubin`.
        """
        return _read(ObjectCodeFormatType.FATBIN, module, name, symbol_mapping)

    @staticmethod
    def from_object(
        module: bytes | str | os.PathLike[str], *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode:
        """Wrap a relocatable object file, which has to be linked before it can be loaded.

        Parameters
        ----------
        module : bytes or path
            The code, or the path of its file.
        name : str, optional
            A name for messages.
        symbol_mapping : mapping of str to str, optional
            Names under which kernels can be got, to their symbols in the code.

        Returns
        -------
        ObjectCode
            The code. Errors are those of :meth:`from_cubin`.
        """
        return _read(ObjectCodeFormatType.OBJECT, module, name, symbol_mapping)

    @staticmethod
    def from_library(
        module: bytes | str | os.PathLike[str], *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode:
        """Wrap a library of relocatable objects, which has to be linked before it can be loaded.

        Parameters
        ----------
        module : bytes or path
            The code, or the path of its file.
        name : str, optional
            A name for messages.
        symbol_mapping : mapping of str to str, optional
            Names under which kernels can be got, to their symbols in the code.

        Returns
        -------
        ObjectCode
            The code. Errors are those of :meth:`from_cubin`.
        """
        return _read(ObjectCodeFormatType.LIBRARY, module, name, symbol_mapping)

    def close(self) -> None:
        """Unload the code now, unless kernels still need it, rather than when this object is collected.

        Nothing can be loaded from it afterwards. Closing twice is allowed.
        """
        with self._lock:
            self._closed = True
            if self._library is not None:
                self._library.close()

    def get_kernel(self, name: str | bytes) -> Kernel:
        """Return a kernel, loading the code if need be.

        Parameters
        ----------
        name : str or bytes
            A name expression that the code was compiled with, or the kernel's symbol.

        Returns
        -------
        Kernel
            The kernel, which keeps the code loaded.

        Raises
        ------
        TypeError, ValueError
            If the name is no name, or the code is damaged.
        RuntimeError
            If code of this type must be linked first, or the object is closed.
        CUDAError
            If the code cannot be loaded, with the log of the driver's compiler; or if it has no such kernel.
        """
        text = _symbol_name(name)
        symbol = self._symbol_mapping.get(text, text)
        library = self._load()
        box = lib.ccc_kernel_get(library._box, symbol.encode())
        if not box:
            status = lib.ccc_last_status()
            missing = status == lib.CUDA_ERROR_NOT_FOUND
            detail = self._describe_missing(text, library) if missing else self._describe_failure(library._log)
            raise failure(status, None, detail)
        return Kernel._make(box, library, symbol)

    def get_module(self) -> int:
        """Return the code as a module of the current context, for driver functions that know no libraries.

        Returns
        -------
        int
            The address of the ``CUmodule``. It belongs to this object.

        Raises
        ------
        CUDAError
            If no context is current, or the code cannot be loaded.
        """
        library = self._load()
        out = ffi.new("CUmodule *")
        status = lib.cuLibraryGetModule(out, library.cdata)
        if status:
            raise failure(status, "cuLibraryGetModule", self._describe_failure(library._log))
        return int(ffi.cast("uintptr_t", out[0]))

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    @property
    def code(self) -> bytes | str:
        """The code; or, if it was read from a file, the path of that."""
        return self._code

    @property
    def name(self) -> str:
        """The name for messages; empty if none was given."""
        return self._name

    @property
    def code_type(self) -> str:
        """The format: an :class:`~cuda_core_cffi.typing.ObjectCodeFormatType`, which is a str."""
        return self._code_type

    @property
    def symbol_mapping(self) -> dict[str, str]:
        """A copy of the names under which kernels can be got besides their symbols, to these."""
        return dict(self._symbol_mapping)

    @property
    def handle(self) -> int:
        """The driver's handle (``CUlibrary``) as an integer; 0 once closed. Asking for it loads the code."""
        return 0 if self._closed else self._load().handle

    @property
    def cdata(self) -> Any:
        """The driver's handle as a typed CFFI object. Asking for it loads the code."""
        return self._load().cdata

    @classmethod
    def _make(
        cls,
        data: bytes,
        code_type: ObjectCodeFormatType,
        name: str,
        symbol_mapping: dict[str, str],
        code: bytes | str | None = None,
    ) -> ObjectCode:
        self = cls.__new__(cls)
        self._data, self._code = data, data if code is None else code
        self._code_type, self._name, self._symbol_mapping = code_type, name, symbol_mapping
        self._closed, self._library, self._lock = False, None, threading.Lock()
        return self

    def _load(self) -> Library:
        """Return the loaded code, loading it once."""
        with self._lock:
            if self._closed:
                raise RuntimeError("this ObjectCode is closed")
            if self._library is None:
                self._library = self._load_now()
            return self._library

    def _load_now(self) -> Library:
        verify = _CHECKS.get(self._code_type)
        if verify is None:
            raise RuntimeError(f"{self._title} is {_FORMAT_NAMES[self._code_type]}: link it first, with Linker")
        if not self._data:
            raise ValueError(f"{self._title} is empty: its compilation was told to generate no code")
        verify(self._data, self._title)
        data = self._data + b"\0"  # the driver is told no size: PTX ends at a zero
        log = ffi.new("char[]", _LOG_SIZE)
        box = lib.ccc_library_load(ffi.from_buffer(data), log, _LOG_SIZE)
        if not box:
            raise failure(lib.ccc_last_status(), None, self._describe_failure(ffi.string(log)))
        library = Library._own(box)
        library._log = ffi.string(log)
        library._ptx = self._data if self._code_type is ObjectCodeFormatType.PTX else None
        return library

    @property
    def _title(self) -> str:
        """What messages call this code."""
        return f"object code {self._name!r}" if self._name else "the object code"

    def _describe_failure(self, log: bytes) -> str:
        """Return what to add to the driver's message when loading failed."""
        text = f"; loading {self._title}, which is {_FORMAT_NAMES[self._code_type]}"
        if self._code_type is ObjectCodeFormatType.PTX:
            version = next((line for line in self._data.splitlines() if line.startswith(b".version")), b"")
            driver = lib.ccc_driver_version()
            text += (
                f" ({version.decode(errors='replace')}), by a driver for CUDA {cuda_version(driver)}" if driver else ""
            )
        said = log.decode(errors="replace").strip()
        return f"{text}\n{said}" if said else text

    def _describe_missing(self, name: str, library: Library) -> str:
        """Return what to add to the driver's message when there is no such kernel."""
        real = _kernel_names(library)
        known = list(dict.fromkeys([*self._symbol_mapping, *real]))
        near = [item for item in known if name in item] + difflib.get_close_matches(name, known, _MOST_SHOWN)
        shown = list(dict.fromkeys(near))[:_MOST_SHOWN]
        text = f"; {self._title} has no kernel {name!r}"
        if shown:
            text += f"; did you mean {' or '.join(map(repr, shown))}?"
        elif known:
            rest = ", ..." if len(known) > _MOST_SHOWN else ""
            text += f"; it has {', '.join(map(repr, known[:_MOST_SHOWN]))}{rest}"
        if any(item.startswith("_Z") for item in shown) and not name.startswith("_Z"):
            text += ' C++ mangles names: declare the kernel extern "C", or compile with name_expressions'
        return text


_FORMAT_NAMES = {
    ObjectCodeFormatType.CUBIN: "a cubin",
    ObjectCodeFormatType.FATBIN: "a fatbin",
    ObjectCodeFormatType.LIBRARY: "a library of relocatable objects",
    ObjectCodeFormatType.LTOIR: "LTO IR",
    ObjectCodeFormatType.OBJECT: "a relocatable object",
    ObjectCodeFormatType.PTX: "PTX",
}


def _restore(data: bytes, code: bytes | str, code_type: str, name: str, symbol_mapping: dict[str, str]) -> ObjectCode:
    """Make an object from its pickle."""
    return ObjectCode._make(data, ObjectCodeFormatType(code_type), name, symbol_mapping, code)


def _read(code_type: ObjectCodeFormatType, module: Any, name: str | None, symbol_mapping: Any) -> ObjectCode:
    """Make an object from what a user gave: code or a path."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    code: bytes | str
    if isinstance(module, bytes | bytearray | memoryview):
        code = data = bytes(module)
    elif isinstance(module, str | os.PathLike):
        code = os.fsdecode(module)
        with open(code, "rb") as file:
            data = file.read()
    else:
        raise TypeError(f"{_FORMAT_NAMES[code_type]} must be given as bytes or as a path, not {type(module).__name__}")
    if not data:
        raise ValueError(f"{_FORMAT_NAMES[code_type]} must not be empty")
    return ObjectCode._make(data, code_type, name or "", _check_mapping(symbol_mapping), code)


def _check_mapping(mapping: Any) -> dict[str, str]:
    if mapping is None:
        return {}
    if not isinstance(mapping, Mapping):
        raise TypeError(f"symbol_mapping must be a mapping of str to str, not {type(mapping).__name__}")
    return {_symbol_name(name): _symbol_name(symbol) for name, symbol in mapping.items()}


def _symbol_name(name: Any) -> str:
    """Return a name as text."""
    if isinstance(name, bytes):
        name = name.decode()
    if not isinstance(name, str):
        raise TypeError(f"the name of a kernel must be str or bytes, not {type(name).__name__}")
    if not name or "\0" in name:
        raise ValueError(f"the name of a kernel must not be empty or contain NUL: {name!r}")
    return name


def _kernel_names(library: Library) -> list[str]:
    """Return the symbols of all kernels; none where the driver is older than CUDA 12.4, or fails."""
    count = ffi.new("unsigned int *")
    name = ffi.new("const char **")
    names: list[str] = []
    if lib.cuLibraryGetKernelCount(count, library.cdata) == 0:
        kernels = ffi.new("CUkernel[]", count[0])
        if lib.cuLibraryEnumerateKernels(kernels, count[0], library.cdata) == 0:
            names = [ffi.string(name[0]).decode() for kernel in kernels if lib.cuKernelGetName(name, kernel) == 0]
    lib.ccc_missing_clear()
    return sorted(names)


# The driver trusts what it is given: code that is cut short, or of another kind, would make it read past the end.


def _check_cubin(data: bytes, title: str) -> None:
    _refuse_other(data, title, ObjectCodeFormatType.CUBIN)
    if not _is_whole_elf(data):
        raise ValueError(f"{title} is a damaged cubin: it is cut short, or not in the format of 64-bit ELF")


def _check_fatbin(data: bytes, title: str) -> None:
    _refuse_other(data, title, ObjectCodeFormatType.FATBIN)
    whole = len(data) >= _FATBIN_HEADER.size
    if whole:
        _, header, size = _FATBIN_HEADER.unpack_from(data)
        whole = header + size <= len(data)
    if not whole:
        raise ValueError(f"{title} is a damaged fatbin: it is cut short")


def _check_ptx(data: bytes, title: str) -> None:
    _refuse_other(data, title, ObjectCodeFormatType.PTX)
    if b"\0" in data.rstrip(b"\0"):
        raise ValueError(f"{title} is no PTX: there are NUL bytes in it")


def _refuse_other(data: bytes, title: str, code_type: ObjectCodeFormatType) -> None:
    """Raise unless the code begins as its type does."""
    if data.startswith(_ELF_MAGIC):
        found = ObjectCodeFormatType.CUBIN
    elif data.startswith(_FATBIN_MAGIC):
        found = ObjectCodeFormatType.FATBIN
    elif b".version" in data:
        found = ObjectCodeFormatType.PTX
    else:
        raise ValueError(f"{title} is not {_FORMAT_NAMES[code_type]}: it begins with {data[:16]!r}")
    if found is not code_type:
        raise ValueError(f"{title} is {_FORMAT_NAMES[found]}, not {_FORMAT_NAMES[code_type]}: use from_{found}")


def _is_whole_elf(data: bytes) -> bool:
    if len(data) < _ELF_HEADER.size:
        return False
    _, bits, segments, sections, segment_size, segment_count, section_size, section_count = _ELF_HEADER.unpack_from(
        data
    )
    if bits != _ELF_64_BITS or section_size < _ELF_SECTION.size:
        return False
    if segments + segment_size * segment_count > len(data) or sections + section_size * section_count > len(data):
        return False
    for index in range(section_count):
        kind, offset, size = _ELF_SECTION.unpack_from(data, sections + index * section_size)
        if kind != _ELF_NO_BITS and offset + size > len(data):
            return False
    return True


_CHECKS: dict[ObjectCodeFormatType, Callable[[bytes, str], None]] = {
    ObjectCodeFormatType.CUBIN: _check_cubin,
    ObjectCodeFormatType.FATBIN: _check_fatbin,
    ObjectCodeFormatType.PTX: _check_ptx,
}
