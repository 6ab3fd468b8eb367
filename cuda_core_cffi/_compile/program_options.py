# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a program."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuda_core_cffi._code.architecture import check_arch
from cuda_core_cffi._compile.compiler_options import (
    check_extra_headers,
    check_extra_sources,
    fast_compile,
    macros,
    nvrtc_options,
    nvvm_options,
    time_file,
)
from cuda_core_cffi._core.option_spelling import (
    boolean,
    check_name,
    choice,
    flag,
    number,
    numbers,
    only_checked,
    option,
    path,
    paths,
    spell,
    spellings,
    string,
    strings,
)
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

DEFAULT_NAME = "default_program"


@dataclass
class ProgramOptions:
    """Options of :class:`Program`; wherever one is taken, a mapping of its fields will do.

    A field that is None leaves the matter to the compiler. Fields of type bool are True, False or None. NVRTC, which
    compiles C++, has an option for nearly all of them, and leaves `extra_sources` and `use_libdevice` out. libNVVM,
    which compiles NVVM IR, knows `name`, `arch`, `debug`, `device_code_optimize`, `ftz`, `prec_sqrt`, `prec_div`,
    `fma`, `link_time_optimization`, `extra_sources`, `use_libdevice` and `numba_debug`; whatever else is asked for
    fails the compilation. The linker, which assembles PTX, knows `name`, `arch`, `max_register_count`, `debug`,
    `lineinfo`, `device_code_optimize`, `ptxas_options`, `split_compile`, `no_cache` and, as ``"-"``, `time`; it leaves
    the rest out with a warning.

    Attributes
    ----------
    name : str or None
        The name of the program: the file name in the compiler's messages, and the name of the compiled code.
        None stands for ``"default_program"``. Without a name, C++ with `debug` or `lineinfo` is written to a temporary
        file, whose path is the name then: see :class:`Program`.
    arch : str or None
        The architecture to compile for: ``"sm_90"`` for that GPU's own code, ``"compute_90"`` for PTX. By default the
        device that is current when compiling; without one, PTX and LTO IR are made for the oldest architecture that
        the compiler supports.
    relocatable_device_code : bool or None
        Make code that can be linked with other code. Default: no.
    extensible_whole_program : bool or None
        Compile the whole program, leaving it open to be linked. Default: no.
    debug : bool or None
        Generate debugging information; without `device_code_optimize`, nothing is optimised. Default: no.
    lineinfo : bool or None
        Generate line numbers for profilers and error messages. Default: no.
    device_code_optimize : bool or None
        Optimise although `debug` is set. Default: no.
    ptxas_options : str or sequence of str or None
        Options for the assembler, each as one string: ``["-v", "-O2"]``.
    max_register_count : int or None
        The most registers that a thread may use.
    ftz : bool or None
        Flush denormal single-precision values to zero. Default: no.
    prec_sqrt : bool or None
        Round single-precision square roots as IEEE says, rather than fast. Default: yes.
    prec_div : bool or None
        Round single-precision divisions as IEEE says, rather than fast. Default: yes.
    fma : bool or None
        Contract a multiplication and an addition into one operation. Default: yes.
    use_fast_math : bool or None
        Trade accuracy for speed: implies `ftz` and `fma`, and neither `prec_sqrt` nor `prec_div`. Default: no.
    extra_device_vectorization : bool or None
        Vectorise more aggressively. Default: no.
    link_time_optimization : bool or None
        Make LTO IR, to be optimised when it is linked; for the target ``"ltoir"`` this goes without saying.
    gen_opt_lto : bool or None
        Optimise before the LTO IR is written. Default: no.
    define_macro : str or tuple or sequence of these, or None
        Macros to define: a name, defined as 1; ``"NAME=VALUE"``; a tuple of name and value; or a list of these.
    undefine_macro : str or sequence of str or None
        Macros to undefine.
    include_path : path or sequence of paths or None
        Folders in which headers are searched.
    use_bundled_headers : bool or None
        Use the headers of the CUDA Toolkit that come inside newer versions of NVRTC, which unpacks them, once, in
        ``$XDG_CACHE_HOME/cuda-core-cffi`` (by default ``~/.cache/cuda-core-cffi``). Default: no.
    pre_include : path or sequence of paths or None
        Headers to include before the source.
    no_source_include : bool or None
        Do not search headers in the folder of the source. Default: no.
    std : str or None
        The dialect: ``"c++11"``, ``"c++14"``, ``"c++17"``, ``"c++20"``. Default: ``"c++17"``.
    builtin_move_forward : bool or None
        Provide ``std::move`` and ``std::forward``. Default: yes.
    builtin_initializer_list : bool or None
        Provide ``std::initializer_list``. Default: yes.
    disable_warnings : bool or None
        Suppress warnings. Default: no.
    restrict : bool or None
        Promise that no two pointers among a kernel's parameters overlap. Default: no.
    device_as_default_execution_space : bool or None
        Take what has no annotation for ``__device__``. Default: no.
    device_int128 : bool or None
        Allow ``__int128``. Default: no.
    optimization_info : str or None
        Report optimisations of one kind in the log: ``"inline"``.
    no_display_error_number : bool or None
        Leave the numbers out of warnings. Default: no.
    diag_error : int or sequence of int or None
        Diagnostics, by number, that become errors.
    diag_suppress : int or sequence of int or None
        Diagnostics to suppress.
    diag_warn : int or sequence of int or None
        Diagnostics that become warnings.
    brief_diagnostics : bool or None
        Leave the source line out of diagnostics. Default: no.
    time : path or None
        A CSV file to append the time of each phase to; ``"-"`` for the log.
    split_compile : int or None
        The number of threads that optimise; 0 for as many as there are processors. Default: 1.
    fdevice_syntax_only : bool or None
        Only check the syntax. Default: no.
    minimal : bool or None
        Leave out parts of the language (textures, launches from device code), to compile faster. Default: no.
    no_cache : bool or None
        Do not use the compiler's own cache. Default: no.
    fdevice_time_trace : path or None
        A JSON file to write a time trace to, without its suffix ``.json``, which the compiler adds.
    device_float128 : bool or None
        Allow ``__float128``. Default: no.
    frandom_seed : str or None
        The seed for generated names, which makes the output reproducible.
    ofast_compile : str or None
        How much optimisation to give up for compiling fast: ``"0"`` (none), ``"min"``, ``"mid"`` or ``"max"``.
    pch : bool or None
        Make and use precompiled headers automatically. Default: no.
    create_pch : path or None
        A precompiled header to make.
    use_pch : path or None
        A precompiled header to use.
    pch_dir : path or None
        The folder for precompiled headers.
    pch_verbose : bool or None
        Say in the log why a precompiled header could not be used. Default: yes.
    pch_messages : bool or None
        Say in the log that a precompiled header was made or used. Default: yes.
    instantiate_templates_in_pch : bool or None
        Instantiate templates before the precompiled header is written. Default: yes.
    extra_sources : sequence of (str, str or bytes or bytearray) or None
        Further modules of NVVM IR, each with its name. For NVVM IR only.
    use_libdevice : bool or None
        Link libdevice, NVIDIA's library of mathematical functions, of which only what is called becomes part of the
        code. For NVVM IR only. Default: no.
    numba_debug : bool or None
        Lay debugging information out as Numba expects. Default: no.
    extra_headers : sequence of (str, str or bytes or bytearray) or None
        Headers in memory, each with the name that it is included by, in quotes or angle brackets: to the letter, also
        from another header in the same folder. For C++ only.

    Raises
    ------
    TypeError
        If a field has a value of another type.
    ValueError
        If a value is outside its range, is empty, or has a NUL character in it.

    Notes
    -----
    Precompiled headers need CUDA 12.8. An option that the installed compiler is too old for fails the compilation with
    an :class:`NVRTCError` or :class:`NVVMError` that names it.
    """

    name: str | None = option(only_checked(check_name), DEFAULT_NAME)
    arch: str | None = option(only_checked(check_arch))
    relocatable_device_code: bool | None = option(choice("--relocatable-device-code"))
    extensible_whole_program: bool | None = option(flag("--extensible-whole-program"))
    debug: bool | None = option(flag("--device-debug"))
    lineinfo: bool | None = option(flag("--generate-line-info"))
    device_code_optimize: bool | None = option(flag("--dopt=on"))
    ptxas_options: str | list[str] | tuple[str, ...] | None = option(strings("--ptxas-options"))
    max_register_count: int | None = option(number("--maxrregcount", 1))
    ftz: bool | None = option(choice("--ftz"))
    prec_sqrt: bool | None = option(choice("--prec-sqrt"))
    prec_div: bool | None = option(choice("--prec-div"))
    fma: bool | None = option(choice("--fmad"))
    use_fast_math: bool | None = option(flag("--use_fast_math"))
    extra_device_vectorization: bool | None = option(flag("--extra-device-vectorization"))
    link_time_optimization: bool | None = option(flag("--dlink-time-opt"))
    gen_opt_lto: bool | None = option(flag("--gen-opt-lto"))
    define_macro: str | tuple[str, str] | list[str | tuple[str, str]] | tuple[str | tuple[str, str], ...] | None = (
        option(macros)
    )
    undefine_macro: str | list[str] | tuple[str, ...] | None = option(strings("--undefine-macro"))
    include_path: str | list[str] | tuple[str, ...] | None = option(paths("--include-path"))
    use_bundled_headers: bool | None = option(only_checked(boolean))
    pre_include: str | list[str] | tuple[str, ...] | None = option(paths("--pre-include"))
    no_source_include: bool | None = option(flag("--no-source-include"))
    std: str | None = option(string("--std"))
    builtin_move_forward: bool | None = option(choice("--builtin-move-forward"))
    builtin_initializer_list: bool | None = option(choice("--builtin-initializer-list"))
    disable_warnings: bool | None = option(flag("--disable-warnings"))
    restrict: bool | None = option(flag("--restrict"))
    device_as_default_execution_space: bool | None = option(flag("--device-as-default-execution-space"))
    device_int128: bool | None = option(flag("--device-int128"))
    optimization_info: str | None = option(string("--optimization-info"))
    no_display_error_number: bool | None = option(flag("--no-display-error-number"))
    diag_error: int | list[int] | tuple[int, ...] | None = option(numbers("--diag-error"))
    diag_suppress: int | list[int] | tuple[int, ...] | None = option(numbers("--diag-suppress"))
    diag_warn: int | list[int] | tuple[int, ...] | None = option(numbers("--diag-warn"))
    brief_diagnostics: bool | None = option(choice("--brief-diagnostics"))
    time: str | None = option(time_file)
    split_compile: int | None = option(number("--split-compile", 0))
    fdevice_syntax_only: bool | None = option(flag("--fdevice-syntax-only"))
    minimal: bool | None = option(flag("--minimal"))
    no_cache: bool | None = option(flag("--no-cache"))
    fdevice_time_trace: str | None = option(path("--fdevice-time-trace"))
    device_float128: bool | None = option(flag("--device-float128"))
    frandom_seed: str | None = option(string("--frandom-seed"))
    ofast_compile: str | None = option(fast_compile)
    pch: bool | None = option(flag("--pch"))
    create_pch: str | None = option(path("--create-pch"))
    use_pch: str | None = option(path("--use-pch"))
    pch_dir: str | None = option(path("--pch-dir"))
    pch_verbose: bool | None = option(choice("--pch-verbose"))
    pch_messages: bool | None = option(choice("--pch-messages"))
    instantiate_templates_in_pch: bool | None = option(choice("--instantiate-templates-in-pch"))
    extra_sources: (
        list[tuple[str, str | bytes | bytearray]] | tuple[tuple[str, str | bytes | bytearray], ...] | None
    ) = option(only_checked(check_extra_sources))
    use_libdevice: bool | None = option(only_checked(boolean))
    numba_debug: bool | None = option(flag("--numba-debug"))
    extra_headers: (
        list[tuple[str, str | bytes | bytearray]] | tuple[tuple[str, str | bytes | bytearray], ...] | None
    ) = option(only_checked(check_extra_headers))

    def __post_init__(self) -> None:
        """Check every field, so that a mistake shows where it was made."""
        check_fields(vars(self))

    def __repr__(self) -> str:
        fields = [(field.name, getattr(self, field.name)) for field in dataclasses.fields(self)]
        return f"ProgramOptions({', '.join(f'{name}={value!r}' for name, value in fields if value is not None)})"

    def as_bytes(
        self, backend: CompilerBackendType | str, target_type: ObjectCodeFormatType | str | None = None
    ) -> list[bytes]:
        """Spell the options for a compiler.

        Parameters
        ----------
        backend : CompilerBackendType or str
            The compiler: ``"NVRTC"`` or ``"NVVM"``; upper or lower case does not matter. For PTX, see
            :meth:`LinkerOptions.as_bytes`.
        target_type : ObjectCodeFormatType or str, optional
            What is to be made: ``"ptx"``, ``"ltoir"`` or, by NVRTC, ``"cubin"``. LTO IR needs an option of its own.

        Returns
        -------
        list of bytes
            The options, `arch` first.

        Raises
        ------
        TypeError, ValueError
            If a field was assigned something that the constructor would have refused, the backend or the target is
            unknown, or the target cannot be made with these options.
        UnavailableError
            If libNVVM has no option for something that is asked for.

        Notes
        -----
        With `arch` None the driver is asked for the current device, if there is a driver.
        """
        fields, known = vars(self), str(backend).lower()
        if known not in ("nvrtc", "nvvm"):
            raise ValueError(f"there are no options for the backend {backend!r}; there are for 'NVRTC', 'NVVM'")
        target = None if target_type is None else ObjectCodeFormatType(target_type)
        checked = check_fields(fields)
        spelt = nvrtc_options(fields, target, checked) if known == "nvrtc" else nvvm_options(fields, target)
        return [os.fsencode(option) for option in spelt]


_SPELLINGS = spellings(ProgramOptions)


def check_fields(fields: Mapping[str, Any]) -> list[str]:
    """Check all fields of :class:`ProgramOptions` and return what they are to NVRTC, without the architecture."""
    return spell("ProgramOptions", _SPELLINGS, fields)
