# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Put the generated pieces together: the extension's C source, and the report."""

from __future__ import annotations

import pathlib

import cffi

from . import bindings, table
from .cdef import Api
from .nvml import NvmlApi


def write_extension(name: str, cdef: str, prelude: str, path: pathlib.Path, limited_api: bool) -> None:
    """Write the C source of the CFFI module ``name`` to ``path``, as CFFI writes it."""
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    ffi.set_source(name, prelude, py_limited_api=limited_api)
    ffi.emit_c_code(str(path))


def report(api: Api, nvml_api: NvmlApi) -> str:
    """Return, as text, what was read, what was generated from it, and what was left out and why."""
    rows = table.make_rows(api)
    unmapped = bindings.report(api)
    enumerators = sum(len(enum.values.enumerators) for enum in api.enums.values())
    mapped = len(api.functions) - len(unmapped)
    lines = [
        f"read       {api.header.include_dir / 'cuda.h'} (CUDA {api.header.version})",
        f"functions  {len(api.functions)}, all in the driver table; {mapped} in cuda_core_cffi.driver "
        f"({100 * mapped / len(api.functions):.1f} %)",
        f"enums      {len(api.enums)} with {enumerators} members",
        f"records    {len(api.records)} structures and unions",
        f"aliases    {len(api.aliases)} other type names",
        f"constants  {len(api.constants)}",
        "",
        "Looked up under more than one version (the newest that the driver has is taken):",
        *(f"  {row.function.name}: {', '.join(map(str, row.versions))}" for row in rows if len(row.versions) > 1),
        "",
        "Left out of cuda_core_cffi.driver (lib has them):",
        *(f"  {name}: {reason}" for name, reason in sorted(unmapped.items())),
        "",
        "Left out everywhere:",
        *(f"  {name}: {reason}" for name, reason in sorted(api.left_out.items())),
        "",
        f"read       {nvml_api.header.include_dir / nvml_api.header.name} (version {nvml_api.header.version // 1000})",
        f"functions  {len(nvml_api.functions)}, all in cuda_core_cffi.nvml",
        f"enums      {len(nvml_api.enums)}",
        f"records    {len(nvml_api.records)} structures and unions",
        f"constants  {len(nvml_api.values) + len(nvml_api.versions)}",
        "",
        "Left out everywhere:",
        *(f"  {name}: {reason}" for name, reason in sorted(nvml_api.left_out.items())),
    ]
    return "\n".join(lines) + "\n"
