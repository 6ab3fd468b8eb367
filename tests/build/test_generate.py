# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The C source of the extension: which functions are called with the GIL kept, and what those do."""

from __future__ import annotations

import functools
import pathlib
import re

import pytest
from cuda_headers import ROOT, generate
from helpers import without_comments

CDEF = "int slow(int *p); int quick(int *p); int none(void); int two(int a, int b);"
ALLOW = "Py_BEGIN_ALLOW_THREADS"

# The only calls of the driver with the GIL kept: they read what the calling thread has current.
READING = {"cuCtxGetCurrent", "cuCtxGetDevice"}

# What a function may call with the GIL kept, besides functions of include/.
HARMLESS = re.compile(r"atomic_(load|store|fetch_add|fetch_sub|compare_exchange_strong)(_explicit)?|__builtin_expect")
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof"}


def write(folder: pathlib.Path) -> str:
    path = folder / "small.c"
    generate.write_extension("small", CDEF, "", path, limited_api=True, keeping=("quick", "none"))
    return path.read_text()


def wrapper(source: str, function: str) -> str:
    """Return what CFFI writes for CPython to call a function."""
    start = source.index(f"\n_cffi_f_{function}(PyObject *self")
    return source[start : source.index("\n}\n", start)]


def test_the_functions_of_the_list_are_called_with_the_gil_kept(tmp_path: pathlib.Path) -> None:
    source = write(tmp_path)
    kept = {name for name in ("slow", "quick", "none", "two") if ALLOW not in wrapper(source, name)}
    assert kept == {"quick", "none"}
    assert source.count("Py_BEGIN_ALLOW_THREADS") == source.count("Py_END_ALLOW_THREADS")


def test_a_cffi_that_was_not_tried_is_told_of(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cffi.__version_info__", (99, 0, 0))
    with pytest.warns(UserWarning, match="was not tried with CFFI"):
        write(tmp_path)


@pytest.mark.parametrize("name", ["absent", "slo", "_cffi_f_slow"])
def test_a_function_that_cffi_does_not_call_stops_the_build(name: str) -> None:
    source = "\nstatic PyObject *\n_cffi_f_slow(PyObject *self, PyObject *arg0)\n{\n  Py_BEGIN_ALLOW_THREADS\n}\n"
    with pytest.raises(ValueError, match=f"does not call {name} between"):
        generate.keep_gil(source, [name])


def test_a_function_that_is_called_in_another_way_stops_the_build() -> None:
    source = "\nstatic PyObject *\n_cffi_f_slow(PyObject *self, PyObject *arg0)\n{\n  Py_BEGIN_ALLOW_THREADS\n}\n"
    with pytest.raises(ValueError, match="does not call slow between"):
        generate.keep_gil(source, ["slow"])


def test_what_python_calls_is_made_small(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "small.c"
    cdef = "int ccc_one(int);\nint cuTwo(int, int);\nint nvmlThree(void);"
    generate.write_extension("small", cdef, "", path, True, ())
    small = re.findall(r"cold.*\n_cffi_f_(\w+)", path.read_text())
    assert small == ["ccc_one", "cuTwo", "nvmlThree"]


def test_a_function_stands_for_itself_in_the_table(tmp_path: pathlib.Path) -> None:
    source = write(tmp_path)
    assert "_cffi_d_" not in source
    assert re.search(r'\{ "slow", \(void \*\)_cffi_f_slow, .*, \(void \*\)slow \}', source)


@pytest.mark.parametrize(
    "source",
    [
        "static PyObject *\n_cffi_f_slow(PyObject *me, PyObject *arg0)\n",
        "    x0 = size <= 640 ? (int *)alloca((size_t)size) : NULL;\n",
        "static int _cffi_d_slow(int x0)\n{\n  int y = x0;\n  return slow(y);\n}\n",
        "static int _cffi_const_ONE(unsigned long long *o)\n{\n  *o = ONE;\n  return 0;\n}\n",
    ],
)
def test_a_cffi_that_writes_in_another_way_stops_the_build(source: str) -> None:
    with pytest.raises(ValueError, match="not as known"):
        generate.make_small(source)


def test_errno_is_not_kept_and_nothing_uses_it(tmp_path: pathlib.Path) -> None:
    assert "#define _cffi_save_errno() ((void)0)" in write(tmp_path)
    assert not [path for path in (ROOT / "include").rglob("*.h") if re.search(r"\berrno\b", path.read_text())]
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


@pytest.mark.parametrize("function", generate.KEEPING_THE_GIL)
def test_what_keeps_the_gil_calls_no_driver_and_waits_for_nothing(function: str) -> None:
    allowed = READING if function == "ccc_device_now" else set()
    unknown = {name for name in reached(function) - allowed if not HARMLESS.fullmatch(name)}
    assert unknown <= definitions().keys()
    pointers = {name for name in {function, *unknown} if re.search(r"\(\*|(->|\.)\w+\s*\(", definitions()[name])}
    assert not pointers


def test_a_function_that_calls_the_driver_would_be_noticed() -> None:
    assert "cuEventQuery" in reached("ccc_event_query")
    assert "cuEventDestroy" in reached("ccc_close")
    assert "pthread_mutex_lock" in reached("ccc_primary_make")
