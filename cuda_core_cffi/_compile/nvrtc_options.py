# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How NVRTC spells the options of a program. It knows nearly all of them, so this is where they are checked, too."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from cuda_core_cffi._code.architecture import check_arch, current_architecture
from cuda_core_cffi._core.libraries import nvrtc_version
from cuda_core_cffi._core.option_spelling import (
    Spelling,
    boolean,
    choice,
    flag,
    is_asked_for,
    number,
    numbers,
    only_checked,
    path,
    paths,
    several,
    string,
    strings,
    text,
    wrong,
)
from cuda_core_cffi._core.user_cache import check_owner, user_cache_folder
from cuda_core_cffi.typing import ObjectCodeFormatType

NVRTC_TARGETS = (ObjectCodeFormatType.PTX, ObjectCodeFormatType.CUBIN, ObjectCodeFormatType.LTOIR)

_FAST_COMPILE_LEVELS = ("0", "min", "mid", "max")


def check_fields(fields: Mapping[str, Any]) -> list[str]:
    """Check all fields of :class:`ProgramOptions` and return what they are to NVRTC, without the architecture.

    Raises
    ------
    TypeError, ValueError
        If a field has a value that it must not have.
    """
    options: list[str] = []
    for name, spell in _SPELLINGS.items():
        if (value := fields[name]) is not None:
            options += spell(f"ProgramOptions: {name}", value)
    return options


def copy_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with copies in the place of lists and the like, which can be changed."""
    return {name: _copy(value) for name, value in fields.items()}


def nvrtc_options(
    fields: Mapping[str, Any], target: ObjectCodeFormatType | None, checked: list[str] | None = None
) -> list[str]:
    """Spell the fields of :class:`ProgramOptions` for NVRTC.

    Parameters
    ----------
    fields : Mapping
        The fields.
    target : ObjectCodeFormatType or None
        What is to be made.
    checked : list of str, optional
        What :func:`check_fields` returned for them, where that is known.

    Raises
    ------
    TypeError, ValueError
        If a field has a value that it must not have, or NVRTC cannot make the target with these options.
    """
    if target is not None and target not in NVRTC_TARGETS:
        raise ValueError(f"NVRTC makes {', '.join(NVRTC_TARGETS)}, not {str(target)!r}")
    check_lto(fields, target)
    options = _arch_options(fields["arch"], target) + (check_fields(fields) if checked is None else checked)
    if target is ObjectCodeFormatType.LTOIR and not fields["link_time_optimization"]:
        options.append("--dlink-time-opt")
    if fields["use_bundled_headers"]:
        options.append(f"--use-bundled-headers={_bundled_headers_folder()}")
    return options


def check_lto(fields: Mapping[str, Any], target: ObjectCodeFormatType | None) -> None:
    """Refuse link-time optimisation for what is not to be linked."""
    if target in (ObjectCodeFormatType.PTX, ObjectCodeFormatType.CUBIN) and fields["link_time_optimization"]:
        raise ValueError(
            f"with link_time_optimization the compiler makes LTO IR only: compile to 'ltoir', not {str(target)!r}"
        )


def depends_on_settings(fields: Mapping[str, Any]) -> bool:
    """Tell whether what the fields are to NVRTC depends on anything else: the current device, or the environment."""
    return fields["arch"] is None or bool(fields["use_bundled_headers"])


def _copy(value: Any) -> Any:
    if isinstance(value, list):  # which stays one: two names are no tuple of a name and a value
        return [_copy(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_copy(item) for item in value)
    return bytes(value) if isinstance(value, bytearray) else value


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
    major, minor = nvrtc_version()
    cache = user_cache_folder()
    folder = os.path.join(cache, f"nvrtc-headers-{major}.{minor}")
    for place in (cache, folder):
        with contextlib.suppress(FileNotFoundError):  # NVRTC makes it
            check_owner(place, "set XDG_CACHE_HOME to another folder")
    return folder


def _macros(field: str, value: object) -> list[str]:
    if not is_asked_for(value):
        return []
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


def _time(field: str, value: object) -> list[str]:
    return ["--time=-"] if value is True else path("--time")(field, value)  # "-" is the log


def _fast_compile(field: str, value: object) -> list[str]:
    if not is_asked_for(value):
        return []
    if text(field, value) not in _FAST_COMPILE_LEVELS:
        raise ValueError(f"{field} must be one of {', '.join(_FAST_COMPILE_LEVELS)}, not {value!r}")
    return [f"--Ofast-compile={value}"]


def _check_extra_headers(field: str, value: object) -> None:
    if not is_asked_for(value):
        return
    _check_extra_sources(field, value)
    names = set()
    for name, header in value:  # type: ignore[attr-defined]  # pairs, as was just checked
        if (0 if isinstance(header, bytes | bytearray) else "\0") in header:
            raise ValueError(f"{field}: {name!r} must not contain NUL, where the compiler would stop")
        if text(field, name) in names:
            raise ValueError(f"{field}: there are two headers {name!r}")
        names.add(name)


def _check_extra_sources(field: str, value: object) -> None:
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


def _check_name(field: str, value: object) -> None:
    if value != "":
        text(field, value)


_SPELLINGS: dict[str, Spelling] = {
    "name": only_checked(_check_name),
    "arch": only_checked(check_arch),  # goes first, whether given or found: see _arch_options
    "relocatable_device_code": choice("--relocatable-device-code"),
    "extensible_whole_program": flag("--extensible-whole-program"),
    "debug": flag("--device-debug"),
    "lineinfo": flag("--generate-line-info"),
    "device_code_optimize": flag("--dopt=on"),
    "ptxas_options": strings("--ptxas-options"),
    "max_register_count": number("--maxrregcount", 1),
    "ftz": choice("--ftz"),
    "prec_sqrt": choice("--prec-sqrt"),
    "prec_div": choice("--prec-div"),
    "fma": choice("--fmad"),
    "use_fast_math": flag("--use_fast_math"),
    "extra_device_vectorization": flag("--extra-device-vectorization"),
    "link_time_optimization": flag("--dlink-time-opt"),
    "gen_opt_lto": flag("--gen-opt-lto"),
    "define_macro": _macros,
    "undefine_macro": strings("--undefine-macro"),
    "include_path": paths("--include-path"),
    "use_bundled_headers": only_checked(boolean),
    "pre_include": paths("--pre-include"),
    "no_source_include": flag("--no-source-include"),
    "std": string("--std"),
    "builtin_move_forward": choice("--builtin-move-forward"),
    "builtin_initializer_list": choice("--builtin-initializer-list"),
    "disable_warnings": flag("--disable-warnings"),
    "restrict": flag("--restrict"),
    "device_as_default_execution_space": flag("--device-as-default-execution-space"),
    "device_int128": flag("--device-int128"),
    "optimization_info": string("--optimization-info"),
    "no_display_error_number": flag("--no-display-error-number"),
    "diag_error": numbers("--diag-error"),
    "diag_suppress": numbers("--diag-suppress"),
    "diag_warn": numbers("--diag-warn"),
    "brief_diagnostics": choice("--brief-diagnostics"),
    "time": _time,
    "split_compile": number("--split-compile", 0),
    "fdevice_syntax_only": flag("--fdevice-syntax-only"),
    "minimal": flag("--minimal"),
    "no_cache": flag("--no-cache"),
    "fdevice_time_trace": path("--fdevice-time-trace"),
    "device_float128": flag("--device-float128"),
    "frandom_seed": string("--frandom-seed"),
    "ofast_compile": _fast_compile,
    "pch": flag("--pch"),
    "create_pch": path("--create-pch"),
    "use_pch": path("--use-pch"),
    "pch_dir": path("--pch-dir"),
    "pch_verbose": choice("--pch-verbose"),
    "pch_messages": choice("--pch-messages"),
    "instantiate_templates_in_pch": choice("--instantiate-templates-in-pch"),
    "extra_sources": only_checked(_check_extra_sources),
    "extra_headers": only_checked(_check_extra_headers),
    "use_libdevice": only_checked(boolean),
    "numba_debug": flag("--numba-debug"),
}
