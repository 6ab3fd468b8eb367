# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Turning the header into cffi declarations."""

from __future__ import annotations

import pathlib
import re

import pytest
from cffi import FFI
from cuda_headers import EVERY_HEADER, cdef, headers, read

# Functions, enumerations, structures and constants of headers that were counted.
COUNTS = {12090: (452, 106, 80, 72), 13000: (449, 108, 81, 72), 13050: (492, 123, 95, 72)}


def classify(tmp_path: pathlib.Path, text: str):  # type: ignore[no-untyped-def]
    """Return what becomes of a small cuda.h."""
    (tmp_path / "cuda.h").write_text("#define CUDA_VERSION 13000\n" + text)
    (tmp_path / "cudaTypedefs.h").write_text("typedef int (*PFN_cuInit_v2000)(unsigned int Flags);\n")
    return cdef.classify(headers.read_header(tmp_path))


# small headers


def test_the_documented_name_is_the_macros(tmp_path: pathlib.Path) -> None:
    api = classify(tmp_path, "#define cuMemFree cuMemFree_v2\nint cuMemFree(unsigned long p);\n")
    assert [(item.name, item.symbol) for item in api.functions] == [("cuMemFree", "cuMemFree_v2")]


def test_the_shorter_of_two_names_is_the_documented_one(tmp_path: pathlib.Path) -> None:
    text = "#define cuX_v2 cuX_v2_ptsz\n#define cuX cuX_v2_ptsz\nint cuX(int p);\n"
    assert [item.name for item in classify(tmp_path, text).functions] == ["cuX"]


@pytest.mark.parametrize(
    "body", ["1", "0x1F", "(-1)", "(~0)", "1u", "0xFFull", "(1 << 3)", "CU_OTHER", "((size_t)5)", "CU_MEMBER"]
)
def test_an_integer_macro_is_a_constant(tmp_path: pathlib.Path, body: str) -> None:
    text = f"typedef enum E_enum {{ CU_MEMBER = 3 }} E;\n#define CU_OTHER 7\n#define CU_A {body}\nint cuX(void);\n"
    api = classify(tmp_path, text)
    assert cdef.Constant("CU_A", None) in api.constants
    assert "#define CU_A ..." in cdef.write_cdef(api)


def test_a_pointer_macro_is_a_typed_constant(tmp_path: pathlib.Path) -> None:
    text = "typedef struct CUstream_st *CUstream;\n#define CU_STREAM_LEGACY ((CUstream)0x1)\nint cuX(void);\n"
    api = classify(tmp_path, text)
    assert cdef.Constant("CU_STREAM_LEGACY", "CUstream") in api.constants
    assert "static CUstream const CU_STREAM_LEGACY;" in cdef.write_cdef(api)


@pytest.mark.parametrize("body", ['"text"', "1.5", "sizeof(int)", "cuX()", "{0}", "", "CU_B + CU_C"])
def test_a_macro_without_a_rule_stops_the_build_with_its_name(tmp_path: pathlib.Path, body: str) -> None:
    with pytest.raises(headers.HeaderError, match="no rule for the macro CU_NEW_THING"):
        classify(tmp_path, f"#define CU_NEW_THING {body}\nint cuX(void);\n")


def test_a_function_like_macro_stops_the_build_with_its_name(tmp_path: pathlib.Path) -> None:
    with pytest.raises(headers.HeaderError, match="no rule for the macro CU_MAKE"):
        classify(tmp_path, "#define CU_MAKE(x) (x)\nint cuX(void);\n")


def test_macros_that_name_each_other_stop_the_build(tmp_path: pathlib.Path) -> None:
    with pytest.raises(headers.HeaderError, match="no rule for the macro CU_A"):
        classify(tmp_path, "#define CU_A CU_B\n#define CU_B CU_A\nint cuX(void);\n")


@pytest.mark.parametrize(
    "declaration", ["extern int cu_variable;", "static inline int cuX(void) { return 0; }", "int cuA[3];"]
)
def test_a_declaration_without_a_rule_stops_the_build_with_its_text(tmp_path: pathlib.Path, declaration: str) -> None:
    with pytest.raises(headers.HeaderError, match=r"cuda\.h: .*no rule for '"):
        classify(tmp_path, declaration + "\nint cuY(void);\n")


def test_what_is_left_out_says_why(tmp_path: pathlib.Path) -> None:
    api = classify(tmp_path, "#define CUDAAPI\nint cuX(void);\n")
    assert api.left_out == {"CUDAAPI": cdef.LEFT_OUT["CUDAAPI"]}


def test_a_dimension_that_is_no_number_is_left_to_the_compiler(tmp_path: pathlib.Path) -> None:
    text = "typedef struct S_st { char padding[64 - sizeof(int)]; char plain[8]; } S;\nint cuX(S *s);\n"
    written = cdef.write_cdef(classify(tmp_path, text))
    assert "char padding[...];" in written
    assert "char plain[8];" in written


def test_an_aligned_structure_is_left_to_the_compiler(tmp_path: pathlib.Path) -> None:
    text = "typedef struct T_st { _Alignas(64) unsigned long opaque[16]; } T;\nint cuX(T *t);\n"
    written = cdef.write_cdef(classify(tmp_path, text))
    assert "_Alignas" not in written
    assert re.search(r"opaque\[16\];\s*\.\.\.;\s*\} T;", written)


@pytest.mark.parametrize(
    ("ctype", "declared"),
    [
        ("int", "int x"),
        ("int *", "int *x"),
        ("const char **", "const char **x"),
        ("void (*)(void *)", "void (*x)(void *)"),
        ("int [3]", "int x[3]"),
    ],
)
def test_a_type_is_declared_with_its_name_in_the_right_place(ctype: str, declared: str) -> None:
    assert cdef.declare(ctype, "x") == declared


# real headers


@EVERY_HEADER
def test_everything_is_counted(include_dir: pathlib.Path) -> None:
    api = read(include_dir)
    if api.header.version not in COUNTS:
        pytest.skip(f"nobody has counted the header of CUDA {api.header.version}")
    found = len(api.functions), len(api.enums), len(api.records), len(api.constants)
    assert found == COUNTS[api.header.version]


@EVERY_HEADER
def test_every_declaration_of_the_text_is_classified(include_dir: pathlib.Path) -> None:
    """Counts the functions in the header's text by other means than the generator does."""
    api = read(include_dir)
    text = headers.slice_header(headers.preprocess(include_dir, "cuda.h"), "cuda.h")[0]
    prototypes = re.findall(r"^\s*(?:__attribute__\(\(\w+\)\) )?CUresult\s+(cu\w+)\s*\(", text, re.MULTILINE)
    assert sorted(item.symbol for item in api.functions) == sorted(prototypes)
    assert len(api.enums) == len(re.findall(r"\btypedef enum\b", text))


@EVERY_HEADER
def test_every_macro_is_a_constant_an_alias_or_left_out(include_dir: pathlib.Path) -> None:
    api = read(include_dir)
    constants = {item.name for item in api.constants}
    for name in api.header.macros:
        assert (name in constants) + (name in api.left_out) + name.startswith("cu") == 1, name


@EVERY_HEADER
def test_nothing_is_left_out_that_is_not_there(include_dir: pathlib.Path) -> None:
    assert set(read(include_dir).left_out) == set(cdef.LEFT_OUT)


@EVERY_HEADER
def test_documented_names_are_unique_and_have_no_per_thread_suffix(include_dir: pathlib.Path) -> None:
    names = [item.name for item in read(include_dir).functions]
    assert len(set(names)) == len(names)
    assert not [name for name in names if name.endswith(("_ptsz", "_ptds"))]


@EVERY_HEADER
def test_cffi_takes_the_declarations(include_dir: pathlib.Path) -> None:
    ffi = FFI()
    ffi.cdef(cdef.write_cdef(read(include_dir)))
    assert ffi.typeof("CUstream").kind == "pointer"
    assert ffi.typeof("CUresult").kind == "enum"


@EVERY_HEADER
def test_the_declarations_are_the_same_every_time_and_sorted(include_dir: pathlib.Path) -> None:
    text = cdef.write_cdef(read(include_dir))
    assert text == cdef.write_cdef(cdef.classify(headers.read_header(include_dir)))
    constants = re.findall(r"^#define (\w+) \.\.\.$", text, re.MULTILINE)
    assert constants == sorted(constants)


@EVERY_HEADER
def test_no_comment_of_the_header_is_in_the_declarations(include_dir: pathlib.Path) -> None:
    text = cdef.write_cdef(read(include_dir))
    assert re.findall(r"/\*.*?\*/", text, re.DOTALL) == [text.split("\n", 1)[0]]
    assert "//" not in text
    assert "\\" not in text


@EVERY_HEADER
def test_no_sentence_of_the_header_is_in_the_declarations(include_dir: pathlib.Path) -> None:
    source = (include_dir / "cuda.h").read_text(errors="replace")
    written = cdef.write_cdef(read(include_dir))
    prose = set(re.findall(r"^\s*\* ((?:[a-z]+ ){5,}[a-z]+)", source, re.MULTILINE))
    assert len(prose) > 500
    assert not [sentence for sentence in prose if sentence in written]


# types for other modules


def test_included_structures_are_opaque_and_enumerations_integers(tmp_path: pathlib.Path) -> None:
    text = (
        "typedef enum E_enum { CU_X = 1 } E;\ntypedef enum F_enum { CU_Y = -1 } F;\n"
        "typedef struct S_st { int a; } S;\ntypedef union U_st { int a; } U;\n"
        "typedef struct H_st *H;\ntypedef void (*Callback)(H h, E e, void *data);\nint cuX(S *s);\n"
    )
    written = cdef.write_types(classify(tmp_path, text))
    assert written.splitlines()[1:] == [
        "typedef unsigned int E;",
        "typedef int F;",
        "typedef struct S_st S;",
        "typedef union U_st U;",
        "typedef struct H_st *H;",
        "typedef void (*Callback)(H h, E e, void *data);",
    ]


@EVERY_HEADER
def test_cffi_takes_the_included_types(include_dir: pathlib.Path) -> None:
    ffi = FFI()
    ffi.cdef(cdef.write_types(read(include_dir)))
    assert ffi.typeof("CUstream").kind == "pointer"
    assert ffi.sizeof("CUresult") == 4
    assert ffi.typeof("CUDA_MEMCPY3D *").item.kind == "struct"
