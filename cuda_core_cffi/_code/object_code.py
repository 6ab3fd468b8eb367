# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled code, which the driver loads when it is first needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from cuda_core_cffi._code.architecture import current_architecture
from cuda_core_cffi._code.image import FORMAT_NAMES, architectures, contents, is_relocatable, verify
from cuda_core_cffi._code.kernel import Kernel, Library
from cuda_core_cffi._code.missing_symbols import KERNEL, VARIABLE, describe_missing_symbol
from cuda_core_cffi._core import typed_handles
from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.errors import CUDAError, cuda_version, failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import InUse
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi.typing import ObjectCodeFormatType

if TYPE_CHECKING:
    from cuda_core_cffi._core.ffi import CData

_LOADABLE: Final = (ObjectCodeFormatType.CUBIN, ObjectCodeFormatType.FATBIN, ObjectCodeFormatType.PTX)
_LOG_SIZE: Final = 16384

# What drivers answer where there is no such symbol: the last for a variable that is a kernel.
_MISSING: Final = {
    KERNEL: (lib.CUDA_ERROR_NOT_FOUND,),
    VARIABLE: (lib.CUDA_ERROR_NOT_FOUND, lib.CUDA_ERROR_INVALID_VALUE),
}


class _Wrapper(Protocol):
    def __call__(
        self,
        module: bytes | str | os.PathLike[str],
        *,
        name: str = "",
        symbol_mapping: Mapping[str, str] | None = None,
    ) -> ObjectCode: ...


def _wrapper(code_type: ObjectCodeFormatType, what: str) -> _Wrapper:
    """Return the function that makes an object of code in one format, which its documentation calls ``what``."""

    def wrap(
        module: bytes | str | os.PathLike[str], *, name: str = "", symbol_mapping: Mapping[str, str] | None = None
    ) -> ObjectCode:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        code: bytes | str
        if isinstance(module, bytes | bytearray | memoryview):
            code = data = bytes(module)
        elif isinstance(module, str) and "\n" in module:
            raise ValueError(
                f"a str is the path of a file, and this one looks like code: give that as bytes: {module[:40]!r}"
            )
        elif isinstance(module, str | os.PathLike):
            code = os.fsdecode(module)
            with open(code, "rb") as file:
                data = file.read()
        else:
            raise TypeError(
                f"{FORMAT_NAMES[code_type]} must be given as bytes or as a path, not {type(module).__name__}"
            )
        if not data and isinstance(code, str):
            raise ValueError(f"{FORMAT_NAMES[code_type]} must not be empty: {code!r} is")
        return ObjectCode._create(data, code_type, name or "", _check_mapping(symbol_mapping), code)

    wrap.__name__ = f"from_{code_type}"
    wrap.__qualname__ = f"ObjectCode.{wrap.__name__}"
    wrap.__doc__ = f"""Wrap {what}.

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
            The code{", not loaded yet" if code_type in _LOADABLE else ""}.

        Raises
        ------
        TypeError
            If an argument is of another type.
        ValueError
            If the code is empty.
        OSError
            If the file cannot be read.
        """
    return wrap


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
    _lock: threading.RLock
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
        return self._reduce_with_data()

    def _reduce_with_data(self) -> tuple[object, ...]:
        return _restore, (self._data, self._code, str(self._code_type), self._name, self._symbol_mapping)

    def __repr__(self) -> str:
        handle = 0 if self._library is None else self._library._driver_handle
        return f"<ObjectCode handle={handle:#x} code_type={str(self._code_type)!r}>"

    from_cubin = staticmethod(_wrapper(ObjectCodeFormatType.CUBIN, "machine code for one architecture"))
    from_ptx = staticmethod(_wrapper(ObjectCodeFormatType.PTX, "PTX, which the driver compiles when it loads it"))
    from_ltoir = staticmethod(
        _wrapper(ObjectCodeFormatType.LTOIR, "LTO IR, which has to be linked before it can be loaded")
    )
    from_fatbin = staticmethod(
        _wrapper(ObjectCodeFormatType.FATBIN, "a fat binary: the same code for several architectures")
    )
    from_object = staticmethod(
        _wrapper(
            ObjectCodeFormatType.OBJECT, "a relocatable object file, which has to be linked before it can be loaded"
        )
    )
    from_library = staticmethod(
        _wrapper(
            ObjectCodeFormatType.LIBRARY,
            "a library of relocatable objects, which has to be linked before it can be loaded",
        )
    )

    def close(self) -> None:
        """Close the object. Nothing can be loaded from it afterwards. Closing twice is allowed.

        The code is unloaded soon after its kernels are closed as well, when the device is idle. Nothing is waited for.
        """
        self._closed = True
        library = self._library
        if library is not None:  # else whoever loads it now closes it
            library.close()

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
        text = _symbol_name(name, KERNEL)
        symbol = self._symbol_mapping.get(text, text)
        library = self._load()
        kernel = make(Kernel, lib.ccc_kernel_get, library._c_handle, symbol.encode())
        if kernel is None:
            raise self._symbol_failure(lib.ccc_last_status(), KERNEL, text, library)
        return kernel._of_library(library, symbol)

    def get_global(self, name: str | bytes) -> Buffer:
        """Return the memory of a variable, loading the code if need be.

        Parameters
        ----------
        name : str or bytes
            A variable at namespace scope that is ``__device__``, ``__constant__`` or ``__managed__``: a name expression
            that the code was compiled with, such as ``"&tables::weights"``, or the variable's symbol.

        Returns
        -------
        Buffer
            The memory, in the context that is current now, as many bytes as the variable has. It keeps the code loaded.
            A kernel sees what was copied there before its launch, in the order of streams.

        Raises
        ------
        TypeError, ValueError
            If the name is no name, or the code is damaged.
        RuntimeError
            If code of this type must be linked first, or the object is closed.
        CUDAError
            If no context is current, the code cannot be loaded, or it has no such variable.

        Notes
        -----
        Every device has a variable of its own, ``__managed__`` ones apart.
        """
        text = _symbol_name(name, VARIABLE)
        symbol = self._symbol_mapping.get(text, text)
        library = self._load()
        address, size = ffi.new("uint64_t *"), ffi.new("size_t *")
        status = lib.ccc_library_global(library._c_handle, symbol.encode(), address, size)
        if status:
            raise self._symbol_failure(status, VARIABLE, text, library)
        return Buffer.from_handle(address[0], size[0], owner=library._share())

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
        with library._share() as kept:  # loaded, whatever other threads close meanwhile
            status = lib.cuLibraryGetModule(out, kept.cdata)
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
        """A copy of the names under which kernels can be got besides their symbols, to these.

        Where this package stands for ``cuda.core``, the symbols are bytes, as there.
        """
        if typed_handles.is_used:
            return {name: symbol.encode() for name, symbol in self._symbol_mapping.items()}  # type: ignore[misc]
        return dict(self._symbol_mapping)

    @property
    def handle(self) -> int:
        """The driver's handle (``CUlibrary``) as an integer; 0 once closed. Asking for it loads the code.

        Where this package stands for ``cuda.core``, code whose handle was asked for stays loaded when the object goes:
        programs written for that unload it themselves.
        """
        if self._closed:
            return 0
        library = self._load()
        if typed_handles.is_used:
            lib.ccc_library_borrow(library._c_handle)
        return library.handle

    @property
    def cdata(self) -> CData:
        """The driver's handle as a typed CFFI object. Asking for it loads the code."""
        return self._load().cdata

    @classmethod
    def _create(
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
        self._closed, self._library, self._lock = False, None, new_lock()
        return self

    def _load(self) -> Library:
        """Return the loaded code, loading it once."""
        with self._lock:
            if self._library is None and not self._closed:
                loaded = self._load_now()
                self._library = loaded if self._library is None else self._library
                if self._library is not loaded:  # a finalizer or a signal handler has loaded it meanwhile
                    loaded.close()
            library = self._library
        if self._closed:
            if library is not None:
                library.close()
            raise _closed()
        assert library is not None
        return library

    def _load_now(self) -> Library:
        if self._code_type not in _LOADABLE:
            raise RuntimeError(f"{self._title} is {FORMAT_NAMES[self._code_type]}: link it first, with Linker")
        data = self._verified() + b"\0"  # the driver is told no size: PTX ends at a zero
        log = ffi.new("char[]", _LOG_SIZE)
        library = make(Library, lib.ccc_library_load, ffi.from_buffer(data), log, _LOG_SIZE)
        if library is None:
            raise failure(lib.ccc_last_status(), None, self._describe_failure(ffi.string(log)))
        library._kernels = {}
        library._log = ffi.string(log)
        library._ptx = self._data if self._code_type is ObjectCodeFormatType.PTX else None
        return library

    def _verified(self) -> bytes:
        """Return the code; raise :class:`ValueError` unless it is whole, and what it is said to be."""
        if not self._data:
            raise ValueError(f"{self._title} is empty: its compilation was told to generate no code")
        verify(self._data, self._code_type, self._title)
        return self._data

    @property
    def _title(self) -> str:
        """What messages call this code."""
        return f"object code {self._name!r}" if self._name else "the object code"

    def _describe_failure(self, log: bytes) -> str:
        """Return what to add to the driver's message when loading failed."""
        text = f"; loading {self._title}, which is {FORMAT_NAMES[self._code_type]}"
        if found := architectures(self._data, self._code_type):
            text += f" for {' and '.join(found)}"
        if self._code_type is ObjectCodeFormatType.PTX:
            version = next((line for line in self._data.splitlines() if line.startswith(b".version")), b"")
            driver = lib.ccc_driver_version()
            text += (
                f" ({version.decode(errors='replace')}), by a driver for CUDA {cuda_version(driver)}" if driver else ""
            )
        if is_relocatable(self._data, self._code_type):
            text += " and relocatable: link it first, with Linker"
        if device := _current_architecture():
            text += f", on a device of {device}"
        said = log.decode(errors="replace").strip()
        return f"{text}\n{said}" if said else text

    def _symbol_failure(self, status: int, what: str, name: str, library: Library) -> Exception:
        """Return the exception for a kernel or a variable that the driver did not give."""
        if status == lib.CCC_CLOSED:  # by another thread, just now
            return _closed()
        if status in _MISSING[what]:
            return failure(status, None, self._describe_missing(what, name, library))
        return failure(status, None, self._describe_failure(library._log))

    def _describe_missing(self, what: str, name: str, library: Library) -> str:
        """Return what to add to the driver's message when there is no such symbol."""
        kernels, variables = contents(self._data, self._code_type)
        symbols = {KERNEL: _kernel_names(library) or kernels, VARIABLE: variables}
        return f"; {self._title} has no {describe_missing_symbol(what, name, self._symbol_mapping, symbols)}"


def _closed() -> RuntimeError:
    return RuntimeError("this ObjectCode is closed")


def _restore(data: bytes, code: bytes | str, code_type: str, name: str, symbol_mapping: dict[str, str]) -> ObjectCode:
    """Make an object from its pickle."""
    return ObjectCode._create(data, ObjectCodeFormatType(code_type), name, symbol_mapping, code)


def _check_mapping(mapping: Any) -> dict[str, str]:
    if mapping is None:
        return {}
    if not isinstance(mapping, Mapping):
        raise TypeError(f"symbol_mapping must be a mapping of str to str, not {type(mapping).__name__}")
    both = f"{KERNEL} or {VARIABLE}"
    return {_symbol_name(name, both): _symbol_name(symbol, both) for name, symbol in mapping.items()}


def _symbol_name(name: Any, what: str) -> str:
    """Return a name as text."""
    if isinstance(name, bytes):
        name = name.decode()
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} must be str or bytes, not {type(name).__name__}")
    if not name or "\0" in name:
        raise ValueError(f"the name of a {what} must not be empty or contain NUL: {name!r}")
    return name


def _current_architecture() -> str | None:
    """Return the architecture of the current device for a message, which has to do without if that fails, too."""
    try:
        return current_architecture()
    except CUDAError:
        return None


def _kernel_names(library: Library) -> list[str]:
    """Return the symbols of all kernels; none where the driver is older than CUDA 12.4, or fails."""
    count = ffi.new("unsigned int *")
    name = ffi.new("const char **")
    names: list[str] = []
    with InUse(library):
        if lib.cuLibraryGetKernelCount(count, library.cdata) == 0:
            kernels = ffi.new("CUkernel[]", count[0])
            if lib.cuLibraryEnumerateKernels(kernels, count[0], library.cdata) == 0:
                names = [ffi.string(name[0]).decode() for kernel in kernels if lib.cuKernelGetName(name, kernel) == 0]
    lib.ccc_missing_clear()
    return sorted(names)
