# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The C source of the extension: which functions are called with the GIL kept, and what those do."""

from __future__ import annotations

import functools
import pathlib
import re
import subprocess
import sysconfig

import pytest
from cuda_headers import ROOT, generate
from helpers import without_comments

# The only calls of the driver with the GIL kept: they read what the calling thread has current.
READING = {"cuCtxGetCurrent", "cuCtxGetDevice"}

# What a function may call with the GIL kept, besides functions of include/.
HARMLESS = re.compile(
    r"atomic_(load|store|fetch_(add|sub|or|and)|compare_exchange_strong)(_explicit)?|__builtin_expect"
)
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof"}


HEADER = (ROOT / "include" / "python" / "ccc_generated_calls.h").read_text()
LISTED = HEADER.partition("#define CCC_KEEPING_THE_GIL")[2].partition("clang-format on")[0]
KEEPING = re.findall(r"function\((\w+)\)", LISTED)

# as CFFI writes them, for one function that keeps the GIL and one that releases it
CALLS = """
static ccc_gil gil;
#define CCC_GIL (&gil)
int _cffi_f_ccc_flags(void) { Py_BEGIN_ALLOW_THREADS _cffi_restore_errno(); Py_END_ALLOW_THREADS return 0; }
int _cffi_f_ccc_flag(void) { Py_BEGIN_ALLOW_THREADS _cffi_restore_errno(); Py_END_ALLOW_THREADS return 0; }
"""


def test_cffi_names_its_functions_and_macros_as_the_header_expects(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "small.c"
    generate.write_extension("small", "int ccc_flags(int *p);", "", path, limited_api=True)
    source = path.read_text()
    start = source.index("\n_cffi_f_ccc_flags(PyObject *self")
    wrapper = source[start : source.index("\n}\n", start)]
    assert re.findall(r"Py_\w+_THREADS|_cffi_\w+_errno|\bccc_flags\(", wrapper) == [
        "Py_BEGIN_ALLOW_THREADS",
        "_cffi_restore_errno",
        "ccc_flags(",
        "_cffi_save_errno",
        "Py_END_ALLOW_THREADS",
    ]


def test_the_listed_functions_keep_the_gil_and_others_release_it() -> None:
    assert "ccc_flags" in KEEPING
    assert sorted(KEEPING) == KEEPING
    folders = [f"-I{ROOT / 'include'}", f"-I{sysconfig.get_path('include')}"]
    done = subprocess.run(
        ["gcc", "-xc", "-std=gnu11", "-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030B0000", "-O2", "-S", "-o-", *folders, "-"],
        input=f'#include "python/ccc_generated_calls.h"\n{CALLS}',
        capture_output=True,
        text=True,
        check=True,
    )
    code = dict(re.findall(r"^_cffi_f_(\w+):\n(.*?)\.cfi_endproc", done.stdout, re.M | re.S))
    assert "PyEval_SaveThread" not in code["ccc_flags"]
    assert "PyEval_SaveThread" in code["ccc_flag"]
    assert "strcmp" not in done.stdout


def test_nothing_uses_errno_which_is_not_saved() -> None:
    assert "#define _cffi_save_errno() ((void)0)" in HEADER
    headers = [path for path in (ROOT / "include").rglob("*.h") if path.name != "ccc_generated_calls.h"]
    assert not [path for path in headers if re.search(r"\berrno\b", path.read_text())]
    assert not [path for path in (ROOT / "cuda_core_cffi").glob("**/*.py") if "ffi.errno" in path.read_text()]


# What they do, from the headers in include/.


@functools.cache
def definitions() -> dict[str, str]:
    """Return the bodies of the functions and of the macros in include/."""
    found = {}
    for path in sorted((ROOT / "include").rglob("*.h")):
        text = re.sub(r"\"[^\"\n]*\"", " ", without_comments(path.read_text())).replace("\\\n", " ")
        for match in re.finditer(r"^#define (\w+)\([^)]*\)(.*)$", text, re.MULTILINE):
            found[match[1]] = match[2]
        for match in re.finditer(r"^static [^;={}]*?(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            found[match[1]] = match[2]
        for match in re.finditer(r"^static [^;={}\n]*?(\w+)\([^;{}\n]*\) \{ (.*) \}$", text, re.MULTILINE):
            found[match[1]] = match[2]
    return found


def reached(function: str) -> set[str]:
    """Return what a function calls, and what that calls; functions of the driver also where they are only named."""
    todo, found = [function], set()
    while todo:
        body = definitions()[todo.pop()]
        calls = set(re.findall(r"\b(\w+)\s*\(", body)) | set(re.findall(r"\bcu[A-Z]\w*", body))
        new = calls - found - KEYWORDS - {"uintptr_t", "void"}
        found |= new
        todo += [name for name in new if name in definitions()]
    return found


@pytest.mark.parametrize("function", KEEPING)
def test_what_keeps_the_gil_calls_no_driver_and_waits_for_nothing(function: str) -> None:
    allowed = READING if function == "ccc_device_now" else set()
    unknown = {name for name in reached(function) - allowed if not HARMLESS.fullmatch(name)}
    assert unknown <= definitions().keys()
    pointers = {name for name in {function, *unknown} if re.search(r"\(\*|(->|\.)\w+\s*\(", definitions()[name])}
    assert not pointers


def test_a_function_that_calls_the_driver_would_be_noticed() -> None:
    assert "cuEventQuery" in reached("ccc_event_query")
    assert "cuCtxPushCurrent" in reached("ccc_close")
    assert "pthread_mutex_lock" in reached("ccc_primary_make")
