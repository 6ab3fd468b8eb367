# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How libNVVM spells the options of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cuda_core_cffi._code.architecture import current_architecture
from cuda_core_cffi._compile.nvrtc_options import check_fields, check_lto
from cuda_core_cffi._core.errors import UnavailableError
from cuda_core_cffi._core.option_spelling import asked_besides
from cuda_core_cffi.typing import ObjectCodeFormatType

NVVM_TARGETS = (ObjectCodeFormatType.PTX, ObjectCodeFormatType.LTOIR)

_SPELLINGS: dict[str, Callable[[bool], list[str]]] = {
    "debug": lambda value: ["-g"] if value else [],
    "device_code_optimize": lambda value: [f"-opt={3 if value else 0}"],
    "ftz": lambda value: [f"-ftz={value:d}"],
    "prec_sqrt": lambda value: [f"-prec-sqrt={value:d}"],
    "prec_div": lambda value: [f"-prec-div={value:d}"],
    "fma": lambda value: [f"-fma={value:d}"],
    "numba_debug": lambda value: ["-numba-debug"] if value else [],
}
# What needs no option: these are no options of the compiler, or it does what they ask for anyway (it has no cache).
_WITHOUT = {"name", "arch", "extra_sources", "use_libdevice", "link_time_optimization", "no_cache"}


def nvvm_options(fields: Mapping[str, Any], target: ObjectCodeFormatType | None) -> list[str]:
    """Spell the fields of :class:`ProgramOptions` for libNVVM.

    Raises
    ------
    TypeError, ValueError
        If a field has a value that it must not have, or libNVVM cannot make the target with these options.
    UnavailableError
        If libNVVM has no such option.
    """
    if target is not None and target not in NVVM_TARGETS:
        raise ValueError(f"libNVVM makes {', '.join(NVVM_TARGETS)}, not {str(target)!r}")
    check_lto(fields, target)
    check_fields(fields)
    if unknown := asked_besides({*_SPELLINGS, *_WITHOUT}, fields):
        raise UnavailableError(
            f"libNVVM has no option for {', '.join(unknown)}; it has for {', '.join(_SPELLINGS)}, arch, extra_sources "
            "and use_libdevice"
        )
    arch = current_architecture() if fields["arch"] is None else fields["arch"]
    options = [] if arch is None else [f"-arch={arch.replace('sm_', 'compute_')}"]
    for name, spell in _SPELLINGS.items():
        if (value := fields[name]) is not None:
            options += spell(value)
    if fields["debug"] and fields["device_code_optimize"] is None:
        options.append("-opt=0")  # as NVRTC does by itself
    if target is ObjectCodeFormatType.LTOIR:
        options.append("-gen-lto")
    return options
