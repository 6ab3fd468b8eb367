# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The driver table: under which CUDA version each function is looked up."""

from __future__ import annotations

import ctypes
import os
import pathlib
import re

import pytest
from cuda_headers import EVERY_HEADER, cdef, headers, read, table

LIBRARIES = [path for path in os.environ.get("CUDA_TEST_LIBCUDA", "").split(os.pathsep) if path]
REAL_DRIVER = pytest.mark.parametrize(
    "libcuda",
    LIBRARIES
    or [pytest.param(None, marks=pytest.mark.skip(reason="CUDA_TEST_LIBCUDA names no real driver to test with"))],
    ids=lambda path: pathlib.Path(path).parent.name if path else "none",
)
NEWEST_SIGNATURE = {  # of functions whose signature changed, by the major version of the header
    "cuCtxCreate": {12: (3020,), 13: (12050,)},
    "cuEventElapsedTime": {12: (12080, 2000), 13: (12080, 2000)},
    "cuMemAlloc": {12: (3020,), 13: (3020,)},
    "cuStreamGetCaptureInfo": {12: (11030,), 13: (12030,)},
    "cuInit": {12: (2000,), 13: (2000,)},
}


def rows_of(tmp_path: pathlib.Path, header: str, typedefs: str):  # type: ignore[no-untyped-def]
    """Return the rows for a small header."""
    (tmp_path / "cuda.h").write_text("#define CUDA_VERSION 13000\ntypedef struct S_st *CUstream;\n" + header)
    (tmp_path / "cudaTypedefs.h").write_text('#include "cuda.h"\n' + typedefs)
    return {row.function.name: row for row in table.make_rows(cdef.classify(headers.read_header(tmp_path)))}


# small headers


def test_the_version_is_that_of_the_matching_signature(tmp_path: pathlib.Path) -> None:
    row = rows_of(
        tmp_path,
        "#define cuX cuX_v2\nint cuX(unsigned long size);\n",
        "typedef int (*PFN_cuX_v2000)(unsigned int size);\ntypedef int (*PFN_cuX_v3020)(unsigned long size);\n",
    )["cuX"]
    assert (row.base, row.versions) == ("cuX", (3020,))


def test_a_newer_version_with_another_signature_is_not_taken(tmp_path: pathlib.Path) -> None:
    row = rows_of(
        tmp_path,
        "int cuX(int a);\n",
        "typedef int (*PFN_cuX_v2000)(int a);\ntypedef int (*PFN_cuX_v12050)(int a, int b);\n",
    )["cuX"]
    assert row.versions == (2000,)


def test_the_same_signature_under_two_versions_gives_both_newest_first(tmp_path: pathlib.Path) -> None:
    row = rows_of(
        tmp_path,
        "int cuX(int a);\n",
        "typedef int (*PFN_cuX_v2000)(int a);\ntypedef int (*PFN_cuX_v12080)(int b);\n",
    )["cuX"]
    assert row.versions == (12080, 2000)


def test_signatures_are_compared_through_typedefs(tmp_path: pathlib.Path) -> None:
    row = rows_of(
        tmp_path,
        "typedef unsigned long A;\ntypedef A B;\nint cuX(B *a);\n",
        "typedef int (*PFN_cuX_v4000)(unsigned long *a);\n",
    )["cuX"]
    assert row.versions == (4000,)


def test_the_per_thread_variant_has_versions_of_its_own(tmp_path: pathlib.Path) -> None:
    row = rows_of(
        tmp_path,
        "int cuX(CUstream stream);\n",
        "typedef int (*PFN_cuX_v2000)(CUstream s);\ntypedef int (*PFN_cuX_v7000_ptsz)(CUstream s);\n",
    )["cuX"]
    assert (row.versions, row.per_thread) == ((2000,), (7000,))


def test_a_function_without_streams_has_the_same_for_both(tmp_path: pathlib.Path) -> None:
    row = rows_of(tmp_path, "int cuX(int a);\n", "typedef int (*PFN_cuX_v2000)(int a);\n")["cuX"]
    assert row.versions == row.per_thread == (2000,)


@pytest.mark.parametrize(
    "typedefs", ["typedef int (*PFN_cuY_v2000)(int a);\n", "typedef int (*PFN_cuX_v2000)(long a);\n"]
)
def test_a_function_without_a_signature_stops_the_build_with_its_name(tmp_path: pathlib.Path, typedefs: str) -> None:
    with pytest.raises(headers.HeaderError, match=r"no signature for cuX as cuda\.h declares it"):
        rows_of(tmp_path, "int cuX(int a);\n", typedefs)


# real headers


@EVERY_HEADER
def test_every_function_has_a_row(include_dir: pathlib.Path) -> None:
    api = read(include_dir)
    rows = table.make_rows(api)
    assert [row.function for row in rows] == api.functions
    for row in rows:
        assert 1 <= len(row.versions) <= table.MAX_VERSIONS
        assert list(row.versions) == sorted(row.versions, reverse=True)
        assert all(2000 <= version <= api.header.version for version in row.versions + row.per_thread)


@EVERY_HEADER
@pytest.mark.parametrize("name", NEWEST_SIGNATURE)
def test_functions_whose_signature_changed_have_the_version_of_theirs(include_dir: pathlib.Path, name: str) -> None:
    api = read(include_dir)
    row = next(row for row in table.make_rows(api) if row.function.name == name)
    assert row.versions == NEWEST_SIGNATURE[name][api.header.version // 1000]


@EVERY_HEADER
def test_functions_that_take_a_stream_have_a_per_thread_variant(include_dir: pathlib.Path) -> None:
    rows = {row.function.name: row for row in table.make_rows(read(include_dir))}
    for name in ("cuStreamSynchronize", "cuMemcpyAsync", "cuLaunchKernel"):
        assert rows[name].per_thread[0] >= 7000 > rows[name].versions[0]


@EVERY_HEADER
def test_the_c_text_has_a_row_and_a_shim_for_each(include_dir: pathlib.Path) -> None:
    api = read(include_dir)
    text = table.write_table(api)
    assert f"#define CCC_TABLE_SIZE {len(api.functions)}\n" in text
    assert len(re.findall(r'^    \{"cu\w+", "cu\w+", \{[\d, ]+\}, \{[\d, ]+\}\},$', text, re.MULTILINE)) == len(
        api.functions
    )
    assert [int(found) for found in re.findall(r"ccc_entry\((\d+)\)", text)] == list(range(len(api.functions)))


@EVERY_HEADER
def test_only_the_headline_is_a_comment(include_dir: pathlib.Path) -> None:
    text = table.write_table(read(include_dir))
    assert text.count("/*") == 1
    assert "//" not in text


# real drivers


@EVERY_HEADER
@REAL_DRIVER
def test_a_real_driver_has_every_function_that_is_not_newer(include_dir: pathlib.Path, libcuda: str) -> None:
    library = ctypes.CDLL(libcuda)
    version = ctypes.c_int()
    assert library.cuDriverGetVersion(ctypes.byref(version)) == 0
    found = 0
    for row in table.make_rows(read(include_dir)):
        for versions, flags in ((row.versions, 1), (row.per_thread, 2)):
            needed = next((item for item in versions if item <= version.value), None)
            if needed is None:
                continue
            address, status = ctypes.c_void_p(), ctypes.c_int()
            result = library.cuGetProcAddress_v2(
                row.base.encode(), ctypes.byref(address), needed, ctypes.c_uint64(flags), ctypes.byref(status)
            )
            assert (result, bool(address.value)) == (0, True), f"{row.function.name} at {needed}"
            found += 1
    assert found > 700
