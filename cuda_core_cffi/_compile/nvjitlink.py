# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""nvJitLink, which links code and optimises LTO IR."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from cuda_core_cffi._code.carried_ptx import carries_ptx, with_ptx
from cuda_core_cffi._compile.link_backend import LinkBackend, LinkInput, LinkLogs, LinkResult, c_name
from cuda_core_cffi._compile.linker_options import LinkerOptions
from cuda_core_cffi._core.calls import Owner, close, make_in
from cuda_core_cffi._core.errors import LinkerError, UnavailableError, failure, failure_with_log
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Use
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

_INPUTS = {kind: getattr(lib, f"NVJITLINK_INPUT_{kind.name}") for kind in ObjectCodeFormatType}
_OUTPUTS = {
    ObjectCodeFormatType.CUBIN: "LinkedCubin",
    ObjectCodeFormatType.PTX: "LinkedPtx",
    ObjectCodeFormatType.LTOIR: "LinkedLTOIR",
}
_VIRTUAL = "compute_"
_INCREMENTAL_SINCE = (13, 2)
_LTOIR_SINCE = (13, 3)

# What nvJitLink's own words do not say.
_HINTS = {
    "NVJITLINK_ERROR_ARCH_MISMATCH": "every input must have been compiled for an architecture that can be linked for "
    "LinkerOptions.arch",
    "NVJITLINK_ERROR_LTO_NOT_ENABLED": "LTO IR needs LinkerOptions(link_time_optimization=True)",
    "NVJITLINK_ERROR_OUTDATED_LIBRARY": "an input was made by a newer CUDA Toolkit than nvJitLink's: update nvJitLink",
}


class NvJitLink(LinkBackend):
    """nvJitLink as linkers use it."""

    handle_type = "nvJitLinkHandle"
    targets = tuple(_OUTPUTS)

    backend = CompilerBackendType.NVJITLINK

    def build(self) -> bytes:
        return NVJITLINK_LIBRARY.build()

    def resolve(self, options: LinkerOptions) -> LinkerOptions:
        resolved = options._resolve(options._arch_or_current())
        if resolved.incremental:
            _require("incremental", _INCREMENTAL_SINCE)
            if resolved.ptx:
                raise ValueError("LinkerOptions: incremental makes no PTX: leave ptx out")
            if str(resolved.arch).startswith(_VIRTUAL):
                raise ValueError(
                    f"LinkerOptions: incremental makes no PTX: give an arch such as 'sm_90', not {resolved.arch!r}"
                )
        return resolved

    def check_target(self, target: object) -> ObjectCodeFormatType:
        known = super().check_target(target)
        if known is ObjectCodeFormatType.LTOIR:
            _require("the target 'ltoir'", _LTOIR_SINCE)
        return known

    def idle(self, owner: Owner, options: LinkerOptions, target: ObjectCodeFormatType) -> None:
        self._create(owner, options, target, ())
        NVJITLINK_LIBRARY.load().nvJitLinkComplete(
            _linker(owner._c_handle)
        )  # of nothing: now any thread may destroy it

    def link(
        self, owner: Owner, options: LinkerOptions, target: ObjectCodeFormatType, inputs: Sequence[LinkInput]
    ) -> LinkResult:
        result = super().link(owner, options, target, inputs)
        if result.data and carries_ptx(target):
            return result._replace(data=with_ptx(result.data, self._ptx(options, inputs)))
        return result

    def _ptx(self, options: LinkerOptions, inputs: Sequence[LinkInput]) -> list[bytes]:
        """Return the PTX of all inputs of a cubin, or an empty list if one of them has none."""
        texts = [text for item in inputs if (text := item.ptx())]
        rest = [item for item in inputs if not item.ptx()]
        if not rest:
            return texts
        if not options.link_time_optimization:
            return []
        # of LTO IR alone: nvJitLink makes no PTX of anything else
        owner = Use()
        linked = super().link(owner, options, ObjectCodeFormatType.PTX, rest)
        close(owner)
        return [linked.data, *texts] if linked.data else []

    def _create(self, owner: Owner, options: LinkerOptions, target: ObjectCodeFormatType, names: Sequence[str]) -> None:
        NVJITLINK_LIBRARY.load()
        spelt = options.as_bytes(CompilerBackendType.NVJITLINK)
        is_virtual = str(options.arch).startswith(_VIRTUAL)  # for which nvJitLink makes PTX, besides LTO IR
        if not options.ptx and (target is ObjectCodeFormatType.PTX or is_virtual):
            spelt.append(b"-ptx")
        texts = [ffi.new("char[]", option) for option in spelt]
        inputs = [c_name(name) for name in names]
        status = ffi.new("int *")
        arguments = len(texts), ffi.new("const char *[]", texts), len(inputs), ffi.new("const char *[]", inputs), status
        is_made = make_in(owner, lib.ccc_nvjitlink_create, *arguments)
        if not is_made and not status[0]:
            raise failure(lib.ccc_last_status())
        if status[0]:
            c_handle = owner._c_handle if is_made else None  # which has the log
            try:
                raise _failure(c_handle, status[0], "nvJitLinkCreate", b" ".join(spelt).decode(errors="replace"))
            finally:
                if is_made:
                    close(owner)

    def _add(self, c_handle: Any, index: int, item: LinkInput) -> None:
        data = item.padded()
        status = lib.ccc_nvjitlink_add(c_handle, index, _INPUTS[item.code_type], ffi.from_buffer(data), len(data))
        if status:
            raise _failure(c_handle, status, "nvJitLinkAddData", f"{item.name!r}, {str(item.code_type)!r}")

    def _complete(self, c_handle: Any, target: ObjectCodeFormatType) -> bytes:
        status = NVJITLINK_LIBRARY.load().nvJitLinkComplete(_linker(c_handle))
        if status:
            raise _failure(c_handle, status, "nvJitLinkComplete")
        data = _read(c_handle, _OUTPUTS[target])
        return data.rstrip(b"\0") if target is ObjectCodeFormatType.PTX else data  # its size counts the terminator

    def _logs(self, c_handle: Any, options: LinkerOptions) -> LinkLogs:
        return LinkLogs(_log(c_handle, "ErrorLog"), _log(c_handle, "InfoLog"))


def _require(what: str, since: tuple[int, int]) -> None:
    """Raise :class:`UnavailableError` if the library is too old for a feature."""
    version = NVJITLINK_LIBRARY.version()
    if version < since:
        needed, found = (".".join(map(str, numbers)) for numbers in (since, version))
        raise UnavailableError(
            f"{what} needs nvJitLink {needed} or newer, and this one is {found}: update nvidia-nvjitlink, or name "
            f"another library in {NVJITLINK_LIBRARY.variable}"
        )


def _linker(c_handle: Any) -> Any:
    return ffi.cast("nvJitLinkHandle", lib.ccc_handle_value(c_handle))


def _failure(c_handle: Any, status: int, call: str, arguments: str = "") -> LinkerError:
    name = _status_name(status)
    text = f"{call}({arguments})" if arguments else call
    text += f" failed: {name} ({status})" + (f"; {_HINTS[name]}" if name in _HINTS else "")
    return failure_with_log(LinkerError, text, _log(c_handle, "ErrorLog") if c_handle else "", call, status, name)


def _status_name(status: int) -> str:
    return str(ffi.typeof("ccc_nvjitlink_result").elements.get(status, f"nvJitLinkResult {status}"))


def _log(c_handle: Any, what: str) -> str:
    # A log quotes names of the code, which may be anything.
    return _read(c_handle, what).rstrip(b"\0").decode(errors="replace")


def _read(c_handle: Any, what: str) -> bytes:
    return NVJITLINK_LIBRARY.copy_out(_linker(c_handle), f"nvJitLinkGet{what}", functools.partial(_failure, None))
