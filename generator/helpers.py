# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Declare to CFFI the helpers of ``include/`` that the package calls, as their headers define them."""

from __future__ import annotations

import pathlib
import re

from .headers import HeaderError

DEFINITION = re.compile(r"^static (?:inline |CCC_COLD )*((?:\w+[ *]+)+(ccc_\w+)\([^;{}]*?\))\s*\{", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)  # which names headers
CALL = re.compile(r"\blib\.(ccc_\w+)")


def find_definitions(include: pathlib.Path) -> dict[str, str]:
    """Return the prototypes of the functions that headers define, by name."""
    found = {}
    for path in sorted(include.rglob("*.h")):
        for prototype, name in DEFINITION.findall(path.read_text()):
            found[name] = " ".join(prototype.split())
    return found


def write_cdef(include: pathlib.Path, package: pathlib.Path) -> str:
    """Return the declarations of ``cuda_core_cffi.cdef``, and of the helpers that Python calls as ``lib.ccc_...``.

    Raises
    ------
    HeaderError
        If Python calls a helper that no header defines.
    """
    given = (include / "cuda_core_cffi.cdef").read_text()
    definitions = find_definitions(include)
    known = set(re.findall(r"\bccc_\w+", COMMENT.sub("", given)))
    called = {name for path in package.rglob("*.py") for name in CALL.findall(path.read_text())} - known
    if missing := sorted(called - definitions.keys()):
        raise HeaderError(f"Python calls helpers that no header of {include} defines: {', '.join(missing)}")
    return given + "".join(f"{definitions[name]};\n" for name in sorted(called))


def write_storing(helpers: str) -> tuple[str, str]:
    """Return declarations and definitions of a second form (``ccc_view_into``) of each helper that makes a handle.

    It stores the handle in memory of the owner before it returns, and returns whether it made one. Without C that calls
    the helpers (PyPy), an exception may come between the return of a call and the next step of Python.
    """
    declared, defined = [], []
    found = re.findall(r"^ccc_handle \*(ccc_\w+)\((.*?)\);", re.sub(r"/\*.*?\*/", "", helpers, flags=re.S), re.M | re.S)
    for name, text in found:
        parameters = [] if text == "void" else text.split(",")
        names = ", ".join(re.findall(r"\w+", parameter)[-1] for parameter in parameters)
        head = f"int {name}_into({', '.join(['ccc_handle **owner', *(parameter.strip() for parameter in parameters)])})"
        declared.append(f"{head};\n")
        defined.append(f"static {head} {{ return (*owner = {name}({names})) != NULL; }}\n")
    return "".join(declared), "".join(defined)
