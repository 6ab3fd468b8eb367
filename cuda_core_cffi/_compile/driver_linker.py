# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The driver's linker, for where there is no nvJitLink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuda_core_cffi._compile.link_backend import LinkBackend, LinkInput, LinkLogs, c_name
from cuda_core_cffi._compile.linker_options import LinkerOptions
from cuda_core_cffi._core.calls import Owner, make_in
from cuda_core_cffi._core.errors import CUDAError, LinkerError, UnavailableError, failure, failure_with_log
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.libraries import driver_build
from cuda_core_cffi._core.option_spelling import is_asked_for, several
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

_INPUTS = {
    ObjectCodeFormatType.CUBIN: lib.CU_JIT_INPUT_CUBIN,
    ObjectCodeFormatType.FATBIN: lib.CU_JIT_INPUT_FATBINARY,
    ObjectCodeFormatType.LIBRARY: lib.CU_JIT_INPUT_LIBRARY,
    ObjectCodeFormatType.LTOIR: lib.CU_JIT_INPUT_NVVM,
    ObjectCodeFormatType.OBJECT: lib.CU_JIT_INPUT_OBJECT,
    ObjectCodeFormatType.PTX: lib.CU_JIT_INPUT_PTX,
}

_OPTIONS = {
    "max_register_count": lib.CU_JIT_MAX_REGISTERS,
    "verbose": lib.CU_JIT_LOG_VERBOSE,
    "link_time_optimization": lib.CU_JIT_LTO,
    "optimization_level": lib.CU_JIT_OPTIMIZATION_LEVEL,
    "debug": lib.CU_JIT_GENERATE_DEBUG_INFO,
    "lineinfo": lib.CU_JIT_GENERATE_LINE_INFO,
    "ftz": lib.CU_JIT_FTZ,
    "prec_div": lib.CU_JIT_PREC_DIV,
    "prec_sqrt": lib.CU_JIT_PREC_SQRT,
    "fma": lib.CU_JIT_FMA,
    "optimize_unused_variables": lib.CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES,
    "split_compile": lib.CCC_JIT_SPLIT_COMPILE,
}

# Options of nvJitLink alone, and since which CUDA it has them and can be used here.
_NOT_OPTIONS = {
    **dict.fromkeys(("ptx", "ptxas_options", "split_compile_extended", "no_cache"), "12.3"),
    "incremental": "13.2",
}

_INSTALL = "install nvJitLink of CUDA {} or newer"


class DriverLinker(LinkBackend):
    """The driver's linker as linkers use it. It works in the context that is current."""

    handle_type = "CUlinkState"
    targets = (ObjectCodeFormatType.CUBIN,)

    backend = CompilerBackendType.DRIVER

    def build(self) -> bytes:
        return driver_build()

    def resolve(self, options: LinkerOptions) -> LinkerOptions:
        return options._resolve(options.arch)  # by default the driver takes that of the context

    def idle(self, owner: Owner, options: LinkerOptions, target: ObjectCodeFormatType) -> None:
        self._create(owner, options, target, ())

    def _create(self, owner: Owner, options: LinkerOptions, target: ObjectCodeFormatType, names: Sequence[str]) -> None:
        spelt = driver_options(options)
        kernels, variables = several(options.kernels_used), several(options.variables_used)
        texts = [c_name(name) for name in [*kernels, *variables, *names]]
        if not make_in(
            owner,
            lib.ccc_link_create,
            ffi.new("int[]", list(spelt)),
            ffi.new("uint64_t[]", list(spelt.values())),
            len(spelt),
            ffi.new("const char *[]", texts),
            len(kernels),
            len(variables),
            len(names),
        ):
            raise _failure(lib.ccc_last_status())

    def _add(self, c_handle: Any, index: int, item: LinkInput) -> None:
        data = item.padded()
        status = lib.ccc_link_add(c_handle, index, _INPUTS[item.code_type], ffi.from_buffer(data), len(data))
        if status:
            detail = f"; the input is {item.name!r}, {str(item.code_type)!r}"
            if item.code_type is ObjectCodeFormatType.LTOIR:
                detail += f"; the driver links LTO IR of CUDA 11 only: {_INSTALL.format('12.3')}"
            raise _failure(status, detail, c_handle)

    def _complete(self, c_handle: Any, target: ObjectCodeFormatType) -> bytes:
        image, size = ffi.new("void **"), ffi.new("size_t *")
        status = lib.ccc_link_complete(c_handle, image, size)
        if status:
            raise _failure(status, c_handle=c_handle)
        return bytes(ffi.buffer(image[0], size[0]))

    def _logs(self, c_handle: Any, options: LinkerOptions) -> LinkLogs:
        info = _text(lib.ccc_link_info_log(c_handle))
        if options.time:
            info += f"cuLink time: {lib.ccc_link_time(c_handle):.3f} ms\n"
        return LinkLogs(_text(lib.ccc_link_error_log(c_handle)), info)


def driver_options(options: LinkerOptions) -> dict[int, int]:
    """Return the values of the driver's options, by number, except for those that are names.

    Raise :class:`ValueError` if a field is set that the driver has no option for, or the architecture is unknown to it.
    """
    for name, version in _NOT_OPTIONS.items():
        if is_asked_for(getattr(options, name)):
            raise ValueError(
                f"LinkerOptions: the driver's linker has no option {name}: leave it out, or {_INSTALL.format(version)}"
            )
    spelt = {lib.CU_JIT_TARGET: _target(options.arch)} if options.arch else {}
    for name, option in _OPTIONS.items():
        if (value := getattr(options, name)) is not None:
            spelt[option] = int(value)
    return spelt


def _target(arch: str) -> int:
    """Return the driver's number of an architecture, from the header: ``"sm_90a"`` is CU_TARGET_COMPUTE_90A there."""
    name = f"CU_TARGET_COMPUTE_{arch.partition('_')[2].upper()}"
    for value, known in ffi.typeof("CUjit_target").elements.items():
        if known == name:
            return int(value)
    raise ValueError(f"LinkerOptions: the driver's linker, as this package was built, does not know arch {arch!r}")


def _text(log: Any) -> str:
    return str(ffi.string(log).decode(errors="replace"))


def _failure(status: int, detail: str = "", c_handle: Any = None) -> Exception:
    error = failure(status, None, detail)
    if not isinstance(error, CUDAError) or isinstance(error, UnavailableError):
        return error
    log = "" if c_handle is None else _text(lib.ccc_link_error_log(c_handle))
    return failure_with_log(LinkerError, str(error), log, str(error.call), int(error.status or 0), str(error.name))
