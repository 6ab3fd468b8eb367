# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Generate the driver table: one row and one C shim per driver function.

A row says under which CUDA versions the driver knows a function *with the signature that the header declares*. They
come from ``cudaTypedefs.h``, which names each signature after the version that brought it (``PFN_cuX_v12050``).
"""

from __future__ import annotations

import dataclasses
import re

from pycparser import c_ast

from .cdef import Api, Function, declare, type_text
from .headers import HeaderError

TYPEDEF_NAME = re.compile(r"^PFN_(cu\w+?)(?:_v(\d+))?(_pt[ds][sz])?$")
# Two are enough: today's signature as this header's version brought it, and as an older driver had it already.
MAX_VERSIONS = 2


@dataclasses.dataclass(frozen=True)
class Row:
    """How to look one function up.

    Attributes
    ----------
    function : Function
    base : str
        The name that ``cuGetProcAddress`` takes.
    versions : tuple of int
        CUDA versions that have this signature, newest first, for the legacy default stream.
    per_thread : tuple of int
        The same for the per-thread default stream; equal to ``versions`` where the function takes no stream.
    """

    function: Function
    base: str
    versions: tuple[int, ...]
    per_thread: tuple[int, ...]


def make_rows(api: Api) -> list[Row]:
    """Return the row of every function of ``api``, in its order.

    Raises
    ------
    HeaderError
        If ``cudaTypedefs.h`` has no signature that matches a declaration.
    """
    known: dict[tuple[str, str], list[tuple[int, bool]]] = {}
    for typedef in api.header.typedefs:
        found = TYPEDEF_NAME.match(typedef.name)
        if found and found[2]:
            key = (found[1], signature(typedef.type.type, api))
            known.setdefault(key, []).append((int(found[2]), bool(found[3])))

    rows = []
    for function in api.functions:
        wanted = signature(function.node, api)
        # cuStreamGetCtx_v2 is declared beside cuStreamGetCtx; cuGraphInstantiate is cuGraphInstantiateWithFlags
        bases = [re.sub(r"_v\d+$", "", name) for name in (function.name, function.symbol)]
        base = next((name for name in bases if (name, wanted) in known), None)
        if base is None:
            raise HeaderError(f"cudaTypedefs.h has no signature for {function.name} as cuda.h declares it")
        versions = known[base, wanted]
        legacy = sorted({version for version, per_thread in versions if not per_thread}, reverse=True)
        threaded = sorted({version for version, per_thread in versions if per_thread}, reverse=True)
        rows.append(Row(function, base, tuple(legacy[:MAX_VERSIONS]), tuple((threaded or legacy)[:MAX_VERSIONS])))
    return rows


def write_table(api: Api) -> str:
    """Return the C text of the table and its shims, for inclusion by the extension."""
    rows = make_rows(api)
    lines = [
        f"/* Generated from the headers of CUDA {api.header.version}. */",
        f"#define CCC_TABLE_SIZE {len(rows)}",
        "static const ccc_function ccc_functions[CCC_TABLE_SIZE] = {",
    ]
    for row in rows:
        legacy, threaded = (", ".join(map(str, item)) for item in (row.versions, row.per_thread))
        lines.append(f'    {{"{row.function.name}", "{row.base}", {{{legacy}}}, {{{threaded}}}}},')
    lines += ["};", "static _Atomic(void *) ccc_table[CCC_TABLE_SIZE];", ""]
    for index, row in enumerate(rows):
        lines += shim(index, row.function)
    return "\n".join(lines) + "\n"


def shim(index: int, function: Function) -> list[str]:
    """Return the C function that stands for ``function``: it calls what the table holds."""
    names = [f"a{number}" for number in range(len(function.parameters))]
    parameters = ", ".join(declare(p.ctype, name) for p, name in zip(function.parameters, names)) or "void"
    types = ", ".join(p.ctype for p in function.parameters) or "void"
    return [
        f"{function.result} CUDAAPI {function.symbol}({parameters})",
        "{",
        f"    typedef {function.result} (CUDAAPI *pfn)({types});",
        f"    void *address = ccc_entry({index});",
        "    if (address == NULL)",
        "        return ccc_unavailable_status();",
        f"    return ((pfn)address)({', '.join(names)});",
        "}",
    ]


def signature(node: c_ast.FuncDecl, api: Api) -> str:
    """Return a function type as text that is equal for equal types: no names, typedefs resolved."""
    parameters = [resolve(type_text(item.type), api) for item in (node.args.params if node.args else ())]
    return f"{resolve(type_text(node.type), api)}({','.join(parameters)})"


def resolve(ctype: str, api: Api) -> str:
    """Replace typedef names in ``ctype`` by what they stand for, down to structures and basic types."""

    def step(match: re.Match[str]) -> str:
        name = match[0]
        while name in api.aliases and api.aliases[name] != name:
            name = api.aliases[name]
        return name

    ctype = re.sub(r"^const (\w+)$", r"\1", ctype)  # a parameter passed by value: const says nothing to callers
    return re.sub(r"[A-Za-z_]\w*", step, ctype).replace(" ", "")
