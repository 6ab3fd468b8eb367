# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The C headers: each includes what it uses and so compiles alone, and none is included in the middle of a file.

None calls a function of a header above it, and the declarations for CFFI say which header has which function.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sysconfig

import pytest
from cuda_headers import build_ffi, headers, nvml, table
from helpers import ROOT, without_comments

INCLUDE = ROOT / "include"
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
SOURCES = [*HEADERS, *sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.c"))]
IN_THE_MIDDLE = {  # generated: what calls each function
    "driver/ccc_nvml.h": "ccc_nvml_rows.h",
    "driver/ccc_table.h": "ccc_table_rows.h",
}
# what CFFI has defined before it includes the header
BEFORE = {
    "python/ccc_calls_table.h": "#include <Python.h>\nstruct _cffi_ctypedescr;\n"
    "static PyObject *(*_cffi_from_c_pointer)(char *, struct _cffi_ctypedescr *); static void *_cffi_to_c_pointer;"
}


WRITTEN_IN_PYTHON = {"ccc_call_python", "ccc_release_python"}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder with the tables that the build generates."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "ccc_table_rows.h").write_text(table.write_table(build_ffi.read_api()))
    (folder / "ccc_nvml_rows.h").write_text(nvml.write_rows(build_ffi.read_nvml_api()))
    return folder


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone(header: str, generated: pathlib.Path) -> None:
    nvidia = [headers.find_include_dir(), headers.find_nvml_include_dir()]
    folders = [INCLUDE, generated, *nvidia, sysconfig.get_path("include")]
    options = ["-std=gnu11", "-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030B0000", "-Wno-unused-function", "-fsyntax-only"]
    done = subprocess.run(
        ["gcc", "-xc", *options, "-Werror=implicit-function-declaration", *(f"-I{folder}" for folder in folders), "-"],
        input=f'{BEFORE.get(header, "")}\n#include "{header}"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"(\w+)\W used but never defined", done.stderr)) <= WRITTEN_IN_PYTHON, done.stderr


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_is_included_in_the_middle_of_a_file(source: str) -> None:
    text = without_comments((INCLUDE / source).read_text())
    head = re.match(r"(?:\s*(?:#.*)?\n)*", text)
    assert head is not None
    late = re.findall(r'^#include "(.*)"', text[head.end() :], re.MULTILINE)
    assert [name for name in late if name != IN_THE_MIDDLE.get(source)] == []


def test_declarations_are_below_the_name_of_the_header_that_has_the_function() -> None:
    headers_of = {
        name: path.name
        for path in INCLUDE.rglob("*.h")
        for name in re.findall(r"^static [^\n;{=]*?\b(ccc_\w+)\(", path.read_text(), re.MULTILINE)
    }
    _, *parts = re.split(r"(?m)^/\* (ccc_\w+\.h) \*/$", (INCLUDE / "cuda_core_cffi.cdef").read_text())
    assert len(parts) > 2 * 30
    misplaced = [
        (header, name, headers_of[name])
        for header, text in zip(parts[::2], parts[1::2], strict=True)
        for name in re.findall(r"\b(ccc_\w+)\(", text)
        if headers_of.get(name, header) != header
    ]
    assert misplaced == []
