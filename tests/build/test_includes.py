# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The C headers: each includes what it uses and so compiles alone, and none is included in the middle of a file.

None calls a function of a header above it. What Python calls is declared to CFFI as the headers define it.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sysconfig

import pytest
from cuda_headers import build_ffi, headers, helpers, nvml, table
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


def test_a_helper_that_python_calls_is_declared_as_its_header_defines_it(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "cuda_core_cffi.cdef").write_text("/* ccc_name.h */\nint ccc_known(void);\n")
    (tmp_path / "ccc_one.h").write_text(
        "static CCC_COLD const char *ccc_name(int one,\n    size_t *two)\n{\n}\n"
        "static int ccc_other(void) { return ccc_name(); }\nstatic int ccc_later(void);\n"
    )
    (package / "one.py").write_text("lib.ccc_name(1, size)\nname = lib.ccc_known\n")
    declared = helpers.write_cdef(tmp_path, package)
    assert declared == "/* ccc_name.h */\nint ccc_known(void);\nconst char *ccc_name(int one, size_t *two);\n"
    (package / "two.py").write_text("lib.ccc_later()\n")
    with pytest.raises(headers.HeaderError, match=r"Python calls helpers that no header of .* defines: ccc_later$"):
        helpers.write_cdef(tmp_path, package)


def test_every_helper_that_the_package_calls_is_declared_once() -> None:
    declared = re.findall(
        r"^(?:\w+[ *]+)+(ccc_\w+)\(", helpers.write_cdef(INCLUDE, ROOT / "cuda_core_cffi"), re.MULTILINE
    )
    assert len(declared) > 200
    assert len(set(declared)) == len(declared)
