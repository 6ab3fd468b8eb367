# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a linker, and how each of them is spelt for nvJitLink."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass

from cuda_core_cffi._code.architecture import check_arch, current_architecture
from cuda_core_cffi._core.option_spelling import (
    boolean,
    check_name,
    choice,
    flag,
    number,
    only_checked,
    option,
    spell,
    spellings,
    strings,
)
from cuda_core_cffi.typing import CompilerBackendType

DEFAULT_NAME = "<default linker>"

_MOST_OPTIMIZATION = 4  # the driver's linker; nvJitLink says itself that it takes 0 and 3 only


def _optimization_level(field: str, value: object) -> list[str]:
    number("-O", 0)(field, value)
    if value > _MOST_OPTIMIZATION:  # type: ignore[operator]  # an int, as was just checked
        raise ValueError(f"{field} must be {_MOST_OPTIMIZATION} or less, not {value}")
    return [f"-O{value}"]


@dataclass
class LinkerOptions:
    """Options of :class:`Linker`; wherever one is taken, a mapping of its fields will do.

    A field that is None leaves the matter to the linker. Fields of type bool are True, False or None. Those marked (n)
    are for nvJitLink only: set to anything but None or False, they make the driver's linker raise :class:`ValueError`.
    Those marked (l) matter to link-time optimisation only.

    Attributes
    ----------
    name : str or None
        The name of the linked code. None stands for ``"<default linker>"``.
    arch : str or None
        The architecture to link for: ``"sm_90"``, or ``"compute_90"`` if PTX is to be made. By default that of the
        device that is current when the linker is created.
    max_register_count : int or None
        The most registers that a thread may use.
    time : bool or None
        Say in the info log how long linking took. Default: no.
    verbose : bool or None
        Say in the info log what each kernel needs. Default: no.
    link_time_optimization : bool or None
        Optimise the whole program, whose parts were compiled to LTO IR. Default: no.
    ptx : bool or None
        Make PTX rather than a cubin, which needs `link_time_optimization`. By default what
        :meth:`Linker.link` is told to make. (n)
    optimization_level : int or None
        How much to optimise: 0 or 3; with the driver's linker 0 to 4. Default: the most.
    debug : bool or None
        Generate debugging information. Default: no.
    lineinfo : bool or None
        Generate line numbers for profilers and error messages. Default: no.
    ftz : bool or None
        Flush denormal single-precision values to zero. Default: no. (l)
    prec_div : bool or None
        Round single-precision divisions as IEEE says, rather than fast. Default: yes. (l)
    prec_sqrt : bool or None
        Round single-precision square roots as IEEE says, rather than fast. Default: yes. (l)
    fma : bool or None
        Contract a multiplication and an addition into one operation. Default: yes. (l)
    kernels_used : str or sequence of str or None
        Kernels that are needed: any other may be removed. (l)
    variables_used : str or sequence of str or None
        Variables that are needed: any other may be removed. (l)
    optimize_unused_variables : bool or None
        Remove variables that no device code refers to, as if the host needed none of them. Default: no. (l)
    ptxas_options : str or sequence of str or None
        Options for the assembler, each as one string: ``["-v", "-O2"]``. (n)
    split_compile : int or None
        The number of threads that optimise; 0 for as many as there are processors. Default: 1.
    split_compile_extended : int or None
        The same, for a more aggressive kind that may cost the code some speed. Default: 1. (l) (n)
    no_cache : bool or None
        Do not use the linker's own cache. Default: no. (n)
    numba_debug : bool or None
        Deprecated, and without any effect: no linker has such an option.
    incremental : bool or None
        Link the inputs to relocatable code, which is an input of another linker: symbols may stay undefined. Needs
        nvJitLink 13.2. Default: no. (n)

    Raises
    ------
    TypeError
        If a field has a value of another type.
    ValueError
        If a value is outside its range, is empty, or has a NUL character in it.

    Warns
    -----
    DeprecationWarning
        If `numba_debug` is set.
    """

    name: str | None = option(only_checked(check_name), DEFAULT_NAME)
    arch: str | None = option(only_checked(check_arch))
    max_register_count: int | None = option(number("-maxrregcount", 1))
    time: bool | None = option(flag("-time"))
    verbose: bool | None = option(flag("-verbose"))
    link_time_optimization: bool | None = option(flag("-lto"))
    ptx: bool | None = option(flag("-ptx"))
    optimization_level: int | None = option(_optimization_level)
    debug: bool | None = option(flag("-g"))
    lineinfo: bool | None = option(flag("-lineinfo"))
    ftz: bool | None = option(choice("-ftz"))
    prec_div: bool | None = option(choice("-prec-div"))
    prec_sqrt: bool | None = option(choice("-prec-sqrt"))
    fma: bool | None = option(choice("-fma"))
    kernels_used: str | list[str] | tuple[str, ...] | None = option(strings("-kernels-used"))
    variables_used: str | list[str] | tuple[str, ...] | None = option(strings("-variables-used"))
    optimize_unused_variables: bool | None = option(flag("-optimize-unused-variables"))
    ptxas_options: str | list[str] | tuple[str, ...] | None = option(strings("-Xptxas"))
    split_compile: int | None = option(number("-split-compile", 0))
    split_compile_extended: int | None = option(number("-split-compile-extended", 0))
    no_cache: bool | None = option(flag("-no-cache"))
    numba_debug: bool | None = option(only_checked(boolean))
    incremental: bool | None = option(flag("-r"))

    def __post_init__(self) -> None:
        """Check every field, so that a mistake shows where it was made."""
        self._spell()
        if self.numba_debug is not None:
            warnings.warn(
                "LinkerOptions: numba_debug is deprecated: no linker has such an option, only compilers do; see "
                "ProgramOptions.numba_debug",
                DeprecationWarning,
                stacklevel=3,
            )

    def as_bytes(self, backend: CompilerBackendType | str = CompilerBackendType.NVJITLINK) -> list[bytes]:
        """Spell the options for a linker.

        Parameters
        ----------
        backend : CompilerBackendType or str, optional
            The linker: ``"nvJitLink"``, upper or lower case. The driver's options are no text.

        Returns
        -------
        list of bytes
            The options, `arch` first.

        Raises
        ------
        TypeError, ValueError
            If a field was assigned something that the constructor would have refused, the backend is another, or
            `arch` is None and no device is current.
        """
        if str(backend).lower() != CompilerBackendType.NVJITLINK.lower():
            raise ValueError(f"there are no options as text for the backend {backend!r}; there are for 'nvJitLink'")
        spelt = self._spell()
        return [option.encode() for option in [f"-arch={self._arch_or_current()}", *spelt]]

    def _resolve(self, arch: str | None) -> LinkerOptions:
        """Return a copy, checked, with this architecture."""
        resolved = copy.copy(self)
        resolved._spell()
        resolved.arch = arch
        return resolved

    def _arch_or_current(self) -> str:
        """Return the architecture; that of the current device, unless another is given."""
        arch = self.arch or current_architecture()
        if arch is None:
            raise ValueError(
                "code is linked for one architecture, and no device is current: give arch, such as 'sm_90', or call "
                "Device(n).set_current() first"
            )
        return arch

    def _spell(self) -> list[str]:
        """Check all fields and return what they are to nvJitLink, without the architecture."""
        return spell("LinkerOptions", _SPELLINGS, vars(self))


_SPELLINGS = spellings(LinkerOptions)
