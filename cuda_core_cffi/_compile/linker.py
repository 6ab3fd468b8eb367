# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Linkers: several pieces of object code become one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._code.image import FORMAT_NAMES
from cuda_core_cffi._code.object_code import ObjectCode
from cuda_core_cffi._compile.driver_linker import DriverLinker
from cuda_core_cffi._compile.link_backend import LinkBackend, LinkInput, LinkResult
from cuda_core_cffi._compile.linker_options import DEFAULT_NAME, LinkerOptions
from cuda_core_cffi._compile.nvjitlink import NvJitLink
from cuda_core_cffi._core.calls import close
from cuda_core_cffi._core.errors import UnavailableError
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.handle import Handle, Use, refuse_again
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

if TYPE_CHECKING:
    from cuda_core_cffi._core.ffi import CData

_told: set[str] = set()  # why the driver links, once somebody was warned


@functools.cache
def _choose_backend() -> tuple[LinkBackend, str | None]:
    """Return what links, and why it is not nvJitLink, for the whole process."""
    try:
        NVJITLINK_LIBRARY.load()
    except UnavailableError as error:
        return DriverLinker(), str(error)
    return NvJitLink(), None


class Linker(Handle):
    """Object code to be linked.

    nvJitLink links, which needs no GPU. Where it is missing or older than CUDA 12.3, the driver does, in the context
    that is current: it makes cubins only, and optimises no LTO IR of CUDA 12 or newer.

    Parameters
    ----------
    *object_codes : ObjectCode
        What to link, of any format. C++ has to be compiled for it: to LTO IR, or with `relocatable_device_code` set.
    options : LinkerOptions or Mapping, optional
        How to link it.

    Raises
    ------
    TypeError
        If an argument is of another type, or there is no such option.
    ValueError
        If there is nothing to link, an input is empty or damaged, an option has a wrong value or the linker does not
        have it, or no architecture was given and no device is current.
    RuntimeError
        If an input is closed.
    LinkerError
        If the linker refuses the options or an input, with its log.
    UnavailableError
        If there is neither nvJitLink nor a driver.

    Warns
    -----
    RuntimeWarning
        If the driver has to link, with the reason.

    Notes
    -----
    The inputs are linked when the linker is made; :meth:`link` returns what came of it, or raises. Every further call
    links anew. All that may happen in several threads at once, and other Python threads run meanwhile. :attr:`handle`
    is what linked first; 0 if that failed.
    """

    __slots__ = ("_backend", "_closed", "_first_target", "_inputs", "_logs", "_options", "_symbol_mapping", "_unused")

    _CTYPE = "void *"  # each backend has a type of its own

    _backend: LinkBackend

    def __init__(self, *object_codes: ObjectCode, options: LinkerOptions | Mapping[str, Any] | None = None) -> None:
        refuse_again(self)
        self._inputs = _check_inputs(object_codes)
        wanted = check_options(LinkerOptions, options, "Linker")
        self._backend = link_backend()
        warn_if_the_driver_links(stacklevel=2)
        self._options = self._backend.resolve(wanted)
        self._symbol_mapping: dict[str, str] = {}
        for code in object_codes:
            self._symbol_mapping.update(code._symbol_mapping)
        self._first_target = _expected_target(self._backend, self._options)
        first = self._backend.link(self, self._options, self._first_target, self._inputs)
        if first.error is not None and first.is_refused:
            raise first.error
        self._logs = first.logs
        self._unused = [first]
        self._closed = False

    # Two linkers are never the same one, even if the library gives the second the address of the first.
    def __eq__(self, other: object) -> bool:
        return True if self is other else NotImplemented

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<Linker backend={str(self._backend.backend)!r}>"

    def link(self, target_type: ObjectCodeFormatType | str) -> ObjectCode:
        """Link the inputs.

        Parameters
        ----------
        target_type : ObjectCodeFormatType or str
            What to make: ``"cubin"``; or, with link-time optimisation, ``"ptx"`` or ``"ltoir"``. LTO IR is for another
            linker, needs nvJitLink 13.3, and is not made of PTX or cubins.

        Returns
        -------
        ObjectCode
            The code, under the name that the options give. The names under which the inputs' kernels can be got are
            names in it too.

        Raises
        ------
        TypeError
            If the target is no str.
        ValueError
            If there is no such target, or the options or the inputs do not allow it.
        UnavailableError
            If nvJitLink is too old for it.
        LinkerError
            If linking fails, with the linker's log.
        RuntimeError
            If the linker is closed.
        """
        target = self._check_target(target_type)
        if self._closed:
            raise RuntimeError("this Linker is closed")
        result = self._result(target)
        self._logs = result.logs
        if result.error is not None:
            raise result.error
        return ObjectCode._create(result.data, target, self._options.name or DEFAULT_NAME, dict(self._symbol_mapping))

    def close(self) -> None:
        """Give up the library's linker, and what was linked, now. Logs stay. Closing twice is allowed."""
        self._closed = True
        self._unused.clear()
        super().close()

    def get_error_log(self) -> str:
        """Return what the linker had to complain about when inputs were added or last linked; empty if nothing.

        Returns
        -------
        str
            The log, also after :meth:`close`.
        """
        return self._logs.error

    def get_info_log(self) -> str:
        """Return what else the linker said: with the options `verbose` and `time`, something.

        Returns
        -------
        str
            The log, also after :meth:`close`.
        """
        return self._logs.info

    @classmethod
    def which_backend(cls) -> CompilerBackendType:
        """Return what links: ``"nvJitLink"``, or ``"driver"`` where that is missing or too old.

        Returns
        -------
        CompilerBackendType
            The same for every linker of the process.

        Warns
        -----
        RuntimeWarning
            If the driver links; once in a process, here or where the first linker is made.
        """
        warn_if_the_driver_links(stacklevel=2)
        return _choose_backend()[0].backend

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed  # not what the C handle says, which is closed where linking failed

    @property
    def cdata(self) -> CData:
        """The library's handle as a typed CFFI object, ``nvJitLinkHandle`` or ``CUlinkState``; NULL once closed."""
        cdata: CData = ffi.cast(self._backend.handle_type, self.handle)
        return cdata

    def _check_target(self, target: object) -> ObjectCodeFormatType:
        known = self._backend.check_target(target)
        if known is not ObjectCodeFormatType.CUBIN and not self._options.link_time_optimization:
            raise ValueError(
                f"{FORMAT_NAMES[known]} is made by link-time optimisation only: set link_time_optimization, or link to "
                "'cubin'"
            )
        if known is ObjectCodeFormatType.PTX and self._options.incremental:
            raise ValueError("the options say incremental, so the target cannot be 'ptx': link to 'cubin' or 'ltoir'")
        if known is ObjectCodeFormatType.LTOIR:
            self._check_inputs_of_ltoir()
        if known is ObjectCodeFormatType.PTX and self._options.ptx is False:
            raise ValueError("the options say ptx=False, so the target cannot be 'ptx'")
        if known is ObjectCodeFormatType.CUBIN and self._first_target is ObjectCodeFormatType.PTX:
            raise ValueError(
                "with ptx=True, or an arch such as 'compute_90', PTX is all that is made: link to 'ptx', not 'cubin'"
            )
        return known

    def _check_inputs_of_ltoir(self) -> None:
        """Raise for inputs without LTO IR, which nvJitLink would leave out without an error."""
        for item in self._inputs:
            if item.code_type in (ObjectCodeFormatType.PTX, ObjectCodeFormatType.CUBIN):
                raise ValueError(
                    f"{item.name!r} is {FORMAT_NAMES[item.code_type]}, which would be missing in LTO IR: compile it to "
                    "'ltoir', or link to 'cubin'"
                )

    def _result(self, target: ObjectCodeFormatType) -> LinkResult:
        """Return what came of linking: the first time, of that which the constructor did."""
        if target is self._first_target:
            try:
                return self._unused.pop()
            except IndexError:
                pass
        owner = Use()
        result = self._backend.link(owner, self._options, target, self._inputs)
        close(owner)
        return result


def _check_inputs(codes: tuple[object, ...]) -> list[LinkInput]:
    if not codes:
        raise ValueError("Linker needs at least one ObjectCode")
    inputs = []
    for index, code in enumerate(codes):
        if not isinstance(code, ObjectCode):
            raise TypeError(f"Linker links ObjectCode, not {type(code).__name__}: {code!r}")
        if code.is_closed:
            raise RuntimeError(f"{code._title} is closed")
        inputs.append(LinkInput(ObjectCodeFormatType(code.code_type), code._verified(), code.name or f"input {index}"))
    return inputs


def _expected_target(backend: LinkBackend, options: LinkerOptions) -> ObjectCodeFormatType:
    """Return what a linker with these options is made for, until it is told."""
    virtual = options.arch is not None and options.arch.startswith("compute_")
    makes_ptx = ObjectCodeFormatType.PTX in backend.targets and (options.ptx or virtual)
    return ObjectCodeFormatType.PTX if makes_ptx else ObjectCodeFormatType.CUBIN


def link_backend() -> LinkBackend:
    """Return what links."""
    return _choose_backend()[0]


def warn_if_the_driver_links(stacklevel: int) -> None:
    """Warn whoever is ``stacklevel`` calls away that the driver links, and say why; once in a process."""
    reason = _choose_backend()[1]
    if reason is not None and reason not in _told:
        _told.add(reason)
        text = f"the driver links, because nvJitLink cannot: {reason}"
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel + 1)
