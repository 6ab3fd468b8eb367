# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""nvJitLink, which links code and optimises LTO IR."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._compiler import drop
from cuda_core_cffi._errors import LinkerError, failure
from cuda_core_cffi._ffi import ffi, lib
from cuda_core_cffi._libraries import load_nvjitlink
from cuda_core_cffi._link_backend import LinkBackend, LinkInput, LinkLogs, linker_failure
from cuda_core_cffi._linker_options import LinkerOptions
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

__all__ = ["NvJitLink"]

_INPUTS = {
    ObjectCodeFormatType.CUBIN: lib.NVJITLINK_INPUT_CUBIN,
    ObjectCodeFormatType.FATBIN: lib.NVJITLINK_INPUT_FATBIN,
    ObjectCodeFormatType.LIBRARY: lib.NVJITLINK_INPUT_LIBRARY,
    ObjectCodeFormatType.LTOIR: lib.NVJITLINK_INPUT_LTOIR,
    ObjectCodeFormatType.OBJECT: lib.NVJITLINK_INPUT_OBJECT,
    ObjectCodeFormatType.PTX: lib.NVJITLINK_INPUT_PTX,
}

_OUTPUTS = {ObjectCodeFormatType.CUBIN: "LinkedCubin", ObjectCodeFormatType.PTX: "LinkedPtx"}

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

    @property
    def backend(self) -> CompilerBackendType:
        return CompilerBackendType.NVJITLINK

    def create(self, options: LinkerOptions, target: ObjectCodeFormatType) -> Any:
        load_nvjitlink()
        spelt = options.as_bytes(CompilerBackendType.NVJITLINK)
        if target is ObjectCodeFormatType.PTX and not options.ptx:
            spelt.append(b"-ptx")
        texts = [ffi.new("char[]", option) for option in spelt]
        status = ffi.new("int *")
        box = lib.ccc_nvjitlink_create(len(texts), ffi.new("const char *[]", texts), status)
        if status[0]:
            error = _failure(box, status[0], f"nvJitLinkCreate({b' '.join(spelt).decode(errors='replace')})")
            if box:
                drop(box)
            raise error
        if not box:
            raise failure(lib.ccc_last_status())
        return box

    def add(self, box: Any, item: LinkInput) -> None:
        # PTX ends at a zero, which counts
        data = item.data + b"\0" if item.code_type is ObjectCodeFormatType.PTX else item.data
        status = load_nvjitlink().nvJitLinkAddData(
            _linker(box), _INPUTS[item.code_type], ffi.from_buffer(data), len(data), item.name.encode(errors="replace")
        )
        if status:
            raise _failure(box, status, f"nvJitLinkAddData({item.name!r}, {str(item.code_type)!r})")

    def complete(self, box: Any, target: ObjectCodeFormatType) -> bytes:
        status = load_nvjitlink().nvJitLinkComplete(_linker(box))
        if status:
            raise _failure(box, status, "nvJitLinkComplete")
        data = _read(box, _OUTPUTS[target])
        return data.rstrip(b"\0") if target is ObjectCodeFormatType.PTX else data  # its size counts the terminator

    def logs(self, box: Any) -> LinkLogs:
        return LinkLogs(_log(box, "ErrorLog"), _log(box, "InfoLog"))


def _linker(box: Any) -> Any:
    return ffi.cast("nvJitLinkHandle", lib.ccc_handle(box))


def _failure(box: Any, status: int, call: str) -> LinkerError:
    name = ffi.typeof("ccc_nvjitlink_result").elements.get(status, f"nvJitLinkResult {status}")
    hint = f"; {_HINTS[name]}" if name in _HINTS else ""
    return linker_failure(call, status, name, hint, _log(box, "ErrorLog") if box else "")


def _log(box: Any, what: str) -> str:
    # A log quotes names of the code, which may be anything.
    return _read(box, what).rstrip(b"\0").decode(errors="replace")


def _read(box: Any, what: str) -> bytes:
    """Return what ``nvJitLinkGet<what>`` copies out, whose size ``nvJitLinkGet<what>Size`` tells."""
    table = load_nvjitlink()
    size = ffi.new("size_t *")
    status = getattr(table, f"nvJitLinkGet{what}Size")(_linker(box), size)
    data = bytearray(size[0])
    if not status and size[0]:
        status = getattr(table, f"nvJitLinkGet{what}")(
            _linker(box), ffi.from_buffer("char[]", data, require_writable=True)
        )
    if status:
        raise linker_failure(f"nvJitLinkGet{what}", status, f"nvJitLinkResult {status}", "", "")
    return bytes(data)
