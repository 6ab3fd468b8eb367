# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The prototypes of NVRTC that are declared by hand, against the real header."""

from __future__ import annotations

import os
import pathlib
import re

import pytest

from cuda_core_cffi import UnavailableError
from cuda_core_cffi._libraries import NVRTC_VARIABLE, find_library

c_ast = pytest.importorskip("pycparser.c_ast")
c_generator = pytest.importorskip("pycparser.c_generator")
c_parser = pytest.importorskip("pycparser.c_parser")

INCLUDE = pathlib.Path(__file__).parent.parent / "include"
CREATED_IN_C = {"nvrtcCreateProgram", "nvrtcDestroyProgram"}  # Python does not call these


def parse(prototypes: str) -> dict[str, str]:
    """Return result and parameter types by function, in one spelling, of prototypes in C."""
    types = "typedef int nvrtcResult; typedef int size_t; typedef int *nvrtcProgram;"
    tree = c_parser.CParser().parse(f"{types} {prototypes}")
    generator = c_generator.CGenerator()
    found = {}
    for item in tree.ext:
        if isinstance(item, c_ast.Decl) and isinstance(item.type, c_ast.FuncDecl):
            for node in item.type.args.params:
                strip_names(node)
            parameters = ", ".join(generator.visit(node) for node in item.type.args.params)
            result = generator.visit(item.type.type).replace(item.name, "").strip()
            found[item.name] = f"{result} ({parameters})".replace("nvrtcResult", "int")
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


@pytest.fixture(scope="module")
def header() -> dict[str, str]:
    """Return the prototypes of the installed ``nvrtc.h``."""
    try:
        folder = pathlib.Path(find_library("nvrtc", "NVRTC", NVRTC_VARIABLE)).parent
    except UnavailableError as error:
        pytest.skip(str(error))
    roots = [folder.parent, folder.parent.parent, os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME")]
    paths = [pathlib.Path(root) / "include" / "nvrtc.h" for root in roots if root]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        pytest.skip(f"no nvrtc.h beside NVRTC: {', '.join(map(str, paths))}")
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
    pattern = r"^(?:nvrtcResult|const char \*)\s*nvrtc\w+\([^;{}]*\);"
    callback = r"int \(\*callback\)\(void\*, void\*\)"
    prototypes = [re.sub(callback, "void *callback", item) for item in re.findall(pattern, text, re.MULTILINE)]
    return parse("\n".join(item for item in prototypes if "nvrtcBundledHeadersInfo" not in item))


@pytest.fixture(scope="module")
def table() -> dict[str, str]:
    """Return the prototypes of ``ccc_nvrtc.h``."""
    text = (INCLUDE / "ccc_nvrtc.h").read_text()
    listed = re.findall(r"X\((nvrtc\w+), (\(.*\))\)", text)
    named = re.findall(r"^    (const char \*)\(\*(nvrtc\w+)\)(\(.*\));", text, re.MULTILINE)
    prototypes = [f"int {name}{parameters};" for name, parameters in listed]
    return parse("\n".join(prototypes + [f"{result}{name}{parameters};" for result, name, parameters in named]))


@pytest.fixture(scope="module")
def cdef() -> dict[str, str]:
    """Return the prototypes that Python calls through."""
    text = (INCLUDE / "cuda_core_cffi.cdef").read_text()
    fields = re.findall(r"^    (int |const char \*)\(\*(nvrtc\w+)\)(\(.*\));", text, re.MULTILINE)
    return parse("\n".join(f"{result}{name}{parameters};" for result, name, parameters in fields))


def test_the_table_has_functions(table):
    assert len(table) > 15


def test_the_table_agrees_with_the_real_header(table, header):
    assert table == {name: header[name] for name in table}


def test_the_cdef_agrees_with_the_table(table, cdef):
    assert cdef == {name: prototype for name, prototype in table.items() if name not in CREATED_IN_C}
