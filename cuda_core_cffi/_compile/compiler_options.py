# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How NVRTC and libNVVM spell the options of a program.

NVRTC knows nearly all of them, so most fields of :class:`ProgramOptions` say what they are to NVRTC. What else there is
to say about them is here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from cuda_core_cffi._code.architecture import current_architecture
from cuda_core_cffi._core.errors import UnavailableError
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi._core.option_spelling import asked_besides, is_asked_for, path, several, text, wrong
from cuda_core_cffi._core.user_cache import check_owner, user_cache_folder
from cuda_core_cffi.typing import ObjectCodeFormatType

NVRTC_TARGETS = (ObjectCodeFormatType.PTX, ObjectCodeFormatType.CUBIN, ObjectCodeFormatType.LTOIR)
NVVM_TARGETS = (ObjectCodeFormatType.PTX, ObjectCodeFormatType.LTOIR)

_FAST_COMPILE_LEVELS = ("0", "min", "mid", "max")

_NVVM_SPELLINGS: dict[str, Callable[[bool], list[str]]] = {
    "debug": lambda value: ["-g"] if value else [],
    "device_code_optimize": lambda value: [f"-opt={3 if value else 0}"],
    "ftz": lambda value: [f"-ftz={value:d}"],
    "prec_sqrt": lambda value: [f"-prec-sqrt={value:d}"],
    "prec_div": lambda value: [f"-prec-div={value:d}"],
    "fma": lambda value: [f"-fma={value:d}"],
    "numba_debug": lambda value: ["-numba-debug"] if value else [],
}
# What needs no option: these are no options of the compiler, or it does what they ask for anyway (it has no cache).
_NVVM_WITHOUT = {"name", "arch", "extra_sources", "use_libdevice", "link_time_optimization", "no_cache"}


def nvrtc_options(fields: Mapping[str, Any], target: ObjectCodeFormatType | None, checked: list[str]) -> list[str]:
    """Spell the fields of :class:`ProgramOptions` for NVRTC, given what ``check_fields`` returned for them.

    Raise :class:`ValueError` if NVRTC cannot make the target with these options.
    """
    _check_target("NVRTC", NVRTC_TARGETS, target, fields)
    options = _arch_options(fields["arch"], target) + checked
    if target is ObjectCodeFormatType.LTOIR and not fields["link_time_optimization"]:
        options.append("--dlink-time-opt")
    if fields["use_bundled_headers"]:
        options.append(f"--use-bundled-headers={_bundled_headers_folder()}")
    return options


def nvvm_options(fields: Mapping[str, Any], target: ObjectCodeFormatType | None) -> list[str]:
    """Spell the fields of :class:`ProgramOptions`, which were checked, for libNVVM.

    Raise :class:`ValueError` if libNVVM cannot make the target, and :class:`UnavailableError` if it has no such option.
    """
    _check_target("libNVVM", NVVM_TARGETS, target, fields)
    if unknown := asked_besides({*_NVVM_SPELLINGS, *_NVVM_WITHOUT}, fields):
        raise UnavailableError(
            f"libNVVM has no option for {', '.join(unknown)}; it has for {', '.join(_NVVM_SPELLINGS)}, arch, "
            "extra_sources and use_libdevice"
        )
    arch = current_architecture() if fields["arch"] is None else fields["arch"]
    options = [] if arch is None else [f"-arch={arch.replace('sm_', 'compute_')}"]
    for name, spell in _NVVM_SPELLINGS.items():
        if (value := fields[name]) is not None:
            options += spell(value)
    if fields["debug"] and fields["device_code_optimize"] is None:
        options.append("-opt=0")  # as NVRTC does by itself
    if target is ObjectCodeFormatType.LTOIR:
        options.append("-gen-lto")
    return options


def _check_target(
    title: str,
    targets: tuple[ObjectCodeFormatType, ...],
    target: ObjectCodeFormatType | None,
    fields: Mapping[str, Any],
) -> None:
    if target is not None and target not in targets:
        raise ValueError(f"{title} makes {', '.join(targets)}, not {str(target)!r}")
    if target in (ObjectCodeFormatType.PTX, ObjectCodeFormatType.CUBIN) and fields["link_time_optimization"]:
        raise ValueError(
            f"with link_time_optimization the compiler makes LTO IR only: compile to 'ltoir', not {str(target)!r}"
        )


def _arch_options(given: str | None, target: ObjectCodeFormatType | None) -> list[str]:
    arch = current_architecture() if given is None else given
    if target is ObjectCodeFormatType.CUBIN:
        if arch is None:
            raise ValueError(
                "a cubin is made for one architecture, and no device is current: give arch, such as 'sm_90', or "
                "call Device(n).set_current() first"
            )
        if arch.startswith("compute_"):
            raise ValueError(f"a cubin is made for a real architecture: arch 'sm_{arch[8:]}', not {arch!r}")
    return [] if arch is None else [f"-arch={arch}"]


def _bundled_headers_folder() -> str:
    """Return where NVRTC is to unpack its headers: one folder for each version of it."""
    major, minor = NVRTC_LIBRARY.version()
    cache = user_cache_folder()
    folder = os.path.join(cache, f"nvrtc-headers-{major}.{minor}")
    for place in (cache, folder):
        with contextlib.suppress(FileNotFoundError):  # NVRTC makes it
            check_owner(place, "set XDG_CACHE_HOME to another folder")
    return folder


def macros(field: str, value: object) -> list[str]:
    """Spell macros to define."""
    wanted = "a name, a tuple (name, value) or a list of these"
    pair = isinstance(value, tuple) and len(value) == 2 and not isinstance(value[1], tuple | list)
    texts = []
    for item in [value] if pair else several(value):
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], str):
            if "\0" in item[1] or "\n" in item[1]:
                raise ValueError(f"{field}: the value of a macro must not contain NUL or newline: {item!r}")
            texts.append(f"--define-macro={text(field, item[0], wanted)}={item[1]}")
        elif isinstance(item, tuple):
            raise wrong(field, wanted, item)
        else:
            texts.append(f"--define-macro={text(field, item, wanted)}")
    return texts


def time_file(field: str, value: object) -> list[str]:
    """Spell the file to which the times of phases are written; True stands for the log."""
    return ["--time=-"] if value is True else path("--time")(field, value)


def fast_compile(field: str, value: object) -> list[str]:
    """Spell a level of fast compilation."""
    if not is_asked_for(value):
        return []
    if text(field, value) not in _FAST_COMPILE_LEVELS:
        raise ValueError(f"{field} must be one of {', '.join(_FAST_COMPILE_LEVELS)}, not {value!r}")
    return [f"--Ofast-compile={value}"]


def check_extra_headers(field: str, value: object) -> None:
    """Check headers in memory."""
    check_extra_sources(field, value)
    names = set()
    for name, header in several(value):  # pairs, as was just checked
        if (0 if isinstance(header, bytes | bytearray) else "\0") in header:
            raise ValueError(f"{field}: {name!r} must not contain NUL, where the compiler would stop")
        if text(field, name) in names:
            raise ValueError(f"{field}: there are two headers {name!r}")
        names.add(name)


def check_extra_sources(field: str, value: object) -> None:
    """Check further modules, or headers."""
    if not is_asked_for(value):
        return
    wanted = "a sequence of (name, source)"
    if not isinstance(value, list | tuple):
        raise wrong(field, wanted, value)
    for item in value:
        if not (
            isinstance(item, tuple | list)
            and len(item) == 2
            and isinstance(item[0], str)
            and isinstance(item[1], str | bytes | bytearray)
        ):
            raise wrong(field, wanted, item)
        text(f"{field}: a name", item[0])
