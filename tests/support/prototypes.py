# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Prototypes that are declared by hand in ``include/``, and the real ones, in one spelling. Needs pycparser."""

from __future__ import annotations

import os
import pathlib
import re

import pytest
from helpers import without_comments
from pycparser import c_ast, c_generator, c_parser

from cuda_core_cffi import UnavailableError
from cuda_core_cffi._core.libraries import NvidiaLibrary

INCLUDE = pathlib.Path(__file__).parents[2] / "include"


def parse(prototypes: str, types: str, result: str) -> dict[str, str]:
    """Return result and parameter types by function; the enumeration ``result`` is written as ``int``."""
    tree = c_parser.CParser().parse(f"typedef int size_t; {types} {prototypes}")
    generator = c_generator.CGenerator()
    found = {}
    for item in tree.ext:
        if isinstance(item, c_ast.Decl) and isinstance(item.type, c_ast.FuncDecl):
            for node in item.type.args.params:
                strip_names(node)
            parameters = ", ".join(generator.visit(node) for node in item.type.args.params)
            returned = generator.visit(item.type.type).replace(item.name, "").strip()
            found[item.name] = f"{returned} ({parameters})".replace(result, "int")
    return found


def strip_names(node: c_ast.Node) -> None:
    """Remove what does not belong to a parameter's type: its name, and const of the parameter itself."""
    node.name = None
    top = node.type
    if isinstance(top, c_ast.PtrDecl):
        top.quals = []
    while not isinstance(top, c_ast.TypeDecl | c_ast.FuncDecl):
        top = top.type
    if isinstance(top, c_ast.TypeDecl):
        top.declname = None


def header_text(library: NvidiaLibrary, header: str) -> str:
    """Return the installed header that belongs to a library, without comments; skip the test if there is none."""
    try:
        folder = pathlib.Path(library.find()).parent
    except UnavailableError as error:
        pytest.skip(str(error))
    roots = [folder.parent, folder.parent.parent, os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME")]
    paths = [pathlib.Path(root) / "include" / header for root in roots if root]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        pytest.skip(f"no {header} beside {library.title}: {', '.join(map(str, paths))}")
    return without_comments(path.read_text())


def listed(header: str, prefix: str) -> list[str]:
    """Return the prototypes in the lists, ``X(name, (parameters))``, of one of our headers."""
    text = (INCLUDE / header).read_text()
    prototypes = [f"int {name}{parameters};" for name, parameters in re.findall(rf"X\(({prefix}\w+), (\(.*\))\)", text)]
    named = re.findall(rf"^    (const char \*)\(\*({prefix}\w+)\)(\(.*\));", text, re.MULTILINE)
    return prototypes + [f"{result}{name}{parameters};" for result, name, parameters in named]


def called(prefix: str) -> list[str]:
    """Return the prototypes that Python calls through."""
    text = (INCLUDE / "cuda_core_cffi.cdef").read_text()
    fields = re.findall(rf"^    (int |const char \*)\(\*({prefix}\w+)\)(\(.*\));", text, re.MULTILINE)
    return [f"{result}{name}{parameters};" for result, name, parameters in fields]
