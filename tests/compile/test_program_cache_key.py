# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Keys of compiled programs: the same for the same code, and for no other."""

from __future__ import annotations

import dataclasses
import os
import struct

import pytest
from helpers import output_of
from hypothesis import given
from hypothesis import strategies as st

from cuda_core_cffi import NVRTCError, Program, ProgramOptions
from cuda_core_cffi._core import libraries
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.typing import ObjectCodeFormatType, SourceCodeType
from cuda_core_cffi.utils import InMemoryProgramCache, make_program_cache_key

SOURCE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'

# One value of each option, other than its default.
OPTIONS = {
    "name": "other.cu",
    "arch": "sm_100",
    "relocatable_device_code": True,
    "extensible_whole_program": True,
    "debug": True,
    "lineinfo": True,
    "device_code_optimize": True,
    "ptxas_options": "-O1",
    "max_register_count": 32,
    "ftz": True,
    "prec_sqrt": False,
    "prec_div": False,
    "fma": False,
    "use_fast_math": True,
    "extra_device_vectorization": True,
    "gen_opt_lto": True,
    "define_macro": "A",
    "undefine_macro": "A",
    "use_bundled_headers": True,
    "no_source_include": True,
    "std": "c++20",
    "builtin_move_forward": False,
    "builtin_initializer_list": False,
    "disable_warnings": True,
    "restrict": True,
    "device_as_default_execution_space": True,
    "device_int128": True,
    "optimization_info": "inline",
    "no_display_error_number": True,
    "diag_error": 1,
    "diag_suppress": 1,
    "diag_warn": 1,
    "brief_diagnostics": True,
    "split_compile": 2,
    "fdevice_syntax_only": True,
    "minimal": True,
    "no_cache": True,
    "device_float128": True,
    "frandom_seed": "1",
    "ofast_compile": "max",
    "pch_verbose": False,
    "pch_messages": False,
    "instantiate_templates_in_pch": False,
    "numba_debug": True,
    "extra_headers": [("a.h", "int a;")],
}
FILES = {"include_path": "/a", "pre_include": "a.h", "pch": True, "use_pch": "a.pch", "pch_dir": "/a"}
SIDE_EFFECTS = {"create_pch": "a.pch", "time": "times.csv", "fdevice_time_trace": "trace.json"}
NOT_FOR_NVRTC = {"extra_sources": [("a", "b")], "use_libdevice": True}
LTO = {"link_time_optimization": True}  # which goes with the target "ltoir" alone, and there without saying


pytestmark = pytest.mark.usefixtures("nvrtc")


def key_of(code=SOURCE, target="cubin", names=(), digest=None, **options) -> bytes:
    """Return the key of C++."""
    return make_program_cache_key(
        code=code,
        code_type="c++",
        options=ProgramOptions(**{"arch": "sm_90"} | options),
        target_type=target,
        name_expressions=names,
        extra_digest=digest,
    )


# What a key is


def test_a_key_is_a_few_bytes():
    assert type(key_of()) is bytes
    assert len(key_of()) == 32


def test_the_key_is_the_same_in_every_process():
    code = """
        from cuda_core_cffi.utils import make_program_cache_key
        options = {"arch": "sm_90", "define_macro": [("A", "1"), "B"], "name": "k.cu"}
        names = {"a", "b", "c", "d"}
        print(make_program_cache_key(code="x", code_type="c++", options=options, target_type="ptx",
                                     name_expressions=list(names), extra_digest=b"d").hex())
    """
    assert len({output_of(code, PYTHONHASHSEED=seed) for seed in ("1", "2", "3")}) == 1


def test_the_key_that_compile_uses_is_the_same():
    cache = InMemoryProgramCache()
    code = Program(SOURCE, "c++", ProgramOptions(arch="sm_90")).compile("cubin", cache=cache)
    assert cache.get(key_of()) == code.code


@pytest.mark.parametrize("code", [SOURCE.encode(), bytearray(SOURCE.encode())])
def test_source_as_bytes_has_the_key_of_its_text(code):
    assert key_of(code) == key_of()


def test_spelling_of_enums_does_not_matter():
    keys = {
        make_program_cache_key(code=SOURCE, code_type=code_type, options={"arch": "sm_90"}, target_type=target)
        for code_type in ("c++", "C++", SourceCodeType.CXX)
        for target in ("cubin", "CUBIN", ObjectCodeFormatType.CUBIN)
    }
    assert keys == {key_of()}


def test_name_expressions_have_no_order():
    assert key_of(names=["a", "b"]) == key_of(names=("b", "a", "b"))


def test_without_an_architecture_the_current_device_is_meant(device):
    assert key_of(arch=None) == key_of(arch=f"sm_{device.arch}")


def test_options_that_are_not_for_the_compiler_are_not_in_the_key():
    assert key_of(**NOT_FOR_NVRTC) == key_of()


# What changes a key


def test_every_option_is_looked_at_here():
    names = {field.name for field in dataclasses.fields(ProgramOptions)}
    assert names == {*OPTIONS, *FILES, *SIDE_EFFECTS, *NOT_FOR_NVRTC, *LTO}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_changes_the_key(name):
    assert key_of(**{name: OPTIONS[name]}) != key_of()


def test_no_two_options_have_the_same_key():
    keys = {key_of(**{name: value}) for name, value in OPTIONS.items()}
    keys |= {key_of(**{name: value}, digest=b"d") for name, value in FILES.items()}
    assert len(keys) == len(OPTIONS) + len(FILES)


def test_everything_else_changes_the_key():
    changes = [
        {},
        {"code": SOURCE + " "},
        {"target": "ptx"},
        {"target": "ltoir"},
        {"target": "ptx", "arch": "compute_90"},
        {"names": ["twice"]},
        {"names": [b"twice"]},
        {"digest": b""},
        {"digest": b"d"},
    ]
    assert len({key_of(**change) for change in changes}) == len(changes)


TEXT = st.text(st.characters(exclude_characters="\0\n", codec="utf-8"), min_size=1, max_size=5)
INPUTS = st.fixed_dictionaries(
    {
        "code": st.binary(max_size=8).filter(lambda code: b"#" not in code and b"%" not in code),
        "names": st.frozensets(TEXT | TEXT.map(str.encode), max_size=2),
        "digest": st.none() | st.binary(max_size=4),
        "name": TEXT,
        "define_macro": st.lists(TEXT, max_size=3),
        "undefine_macro": st.lists(TEXT, max_size=3),
    }
)


@given(INPUTS, INPUTS)
def test_only_the_same_inputs_have_the_same_key(first, second):
    keys = [key_of(**inputs | {"names": list(inputs["names"])}) for inputs in (first, second)]
    assert (keys[0] == keys[1]) == (first == second)


@given(TEXT, TEXT, TEXT)
def test_what_ends_one_input_does_not_begin_the_next(code, more, name):
    assert key_of(code + more, name=name) != key_of(code, name=more + name)
    assert key_of(code, name=name, undefine_macro=[more]) != key_of(code, name=f"{name}--undefine-macro={more}")


def test_another_build_of_the_compiler_changes_the_key(monkeypatch):
    before = key_of()
    monkeypatch.setattr("cuda_core_cffi._compile.nvrtc.NVRTC_LIBRARY.build", lambda: b"13.0 other")
    assert key_of() != before


def test_a_compiler_that_is_not_there_is_an_error():
    code = """
        from cuda_core_cffi import UnavailableError
        from cuda_core_cffi.utils import make_program_cache_key
        try:
            make_program_cache_key(code="x", code_type="c++", options={"arch": "sm_90"}, target_type="ptx")
        except UnavailableError as error:
            print(error)
    """
    assert "/no/such/file" in output_of(code, CUDA_CORE_CFFI_NVRTC="/no/such/file")


# The build of the compiler


def test_the_build_of_the_compiler_is_its_version_and_the_id_that_its_linker_gave_it():
    version, _, build = NVRTC_LIBRARY.build().partition(b" ")
    assert version == b"%d.%d" % NVRTC_LIBRARY.version()
    assert len(build) == 20


def library(notes: bytes, kind: int = 4, bits: int = 2) -> bytes:
    """Return an ELF file with two segments, of which the second has notes."""
    start = 64 + 2 * 56
    header = struct.pack("<4s B 27x Q 14x H H 6x", b"\x7fELF", bits, 64, 56, 2)
    segments = [struct.pack("<I 4x Q 16x Q 16x", *segment) for segment in [(1, 0, start), (kind, start, len(notes))]]
    return b"".join([header, *segments, notes, b"the rest"])


ID = bytes(range(20))
NOTE = struct.pack("<III", 4, 20, 3) + b"GNU\0" + ID
OTHER_NOTE = struct.pack("<III", 4, 4, 1) + b"GNU\0" + bytes(4)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (library(NOTE), ID),
        (library(OTHER_NOTE + NOTE), ID),
        (library(OTHER_NOTE), b""),
        (library(NOTE, kind=1), b""),
        (library(NOTE, bits=1), b""),
        (b"\x7fELF", b""),
        (b"", b""),
        (b"#!/bin/sh" + bytes(100), b""),
    ],
)
def test_the_id_of_a_library_is_in_its_notes(tmp_path, content, expected):
    (tmp_path / "library").write_bytes(content)
    assert libraries._build_id(os.fspath(tmp_path / "library")) == expected


# What has no key


@pytest.mark.parametrize("name", SIDE_EFFECTS)
@pytest.mark.parametrize("digest", [None, b"d"])
def test_an_option_that_makes_the_compiler_do_more_is_refused(name, digest):
    with pytest.raises(ValueError, match=f"with {name} the compiler"):
        key_of(digest=digest, **{name: SIDE_EFFECTS[name]})


@pytest.mark.parametrize("name", FILES)
def test_an_option_that_makes_the_code_depend_on_files_needs_a_digest(name):
    with pytest.raises(ValueError, match=rf"with {name} the code depends on files.*extra_digest"):
        key_of(**{name: FILES[name]})
    assert key_of(digest=b"1", **{name: FILES[name]}) != key_of(digest=b"2", **{name: FILES[name]})


@pytest.mark.parametrize("name", ["include_path", "pre_include"])
def test_another_path_changes_the_key_even_with_the_same_digest(name):
    assert key_of(digest=b"d", **{name: "/a"}) != key_of(digest=b"d", **{name: "/b"})


@pytest.mark.parametrize("options", [{"pch": False}, {"include_path": []}, {"pre_include": ()}])
def test_an_option_that_asks_for_nothing_needs_no_digest(options):
    assert key_of(**options)


INCLUDES = [
    '#include "part.h"',
    '  #  include"part.h"',
    '#/* a */include/* b */"part.h"',
    '#inc\\\nlude "part.h"',
    '#inc\\\r\nlude "part.h"',
    '%:include "part.h"',
    '%\\\n:include "part.h"',
    '#define PART "part.h"\n#include PART',
    '#if __has_include("part.h")\n#define VALUE 7\n#endif',
]


@pytest.mark.parametrize("include", INCLUDES)
def test_an_include_that_finds_files_beside_the_source_needs_a_digest(include):
    code = f'{include}\nextern "C" __global__ void k(int *x) {{ *x = VALUE; }}'
    with pytest.raises(ValueError, match="may find a file beside the source"):
        key_of(code)
    assert key_of(code, digest=b"1") != key_of(code, digest=b"2")
    assert key_of(code, no_source_include=True)


@pytest.mark.parametrize("include", INCLUDES)
def test_such_an_include_does_find_a_file_unless_told_not_to(include, tmp_path, monkeypatch):
    code = f'{include}\nextern "C" __global__ void k(int *x) {{ *x = VALUE; }}'
    (tmp_path / "part.h").write_text("#define VALUE 7")
    monkeypatch.chdir(tmp_path)
    assert Program(code, "c++", ProgramOptions(arch="sm_90")).compile("ptx")
    with pytest.raises(NVRTCError):
        Program(code, "c++", ProgramOptions(arch="sm_90", no_source_include=True)).compile("ptx")


@pytest.mark.parametrize("question", ['__has_include("part.h")', '__ha\\\ns_include("part.h")'])
def test_a_question_for_a_file_needs_a_digest_even_where_there_is_no_directive(question, tmp_path, monkeypatch):
    code = f"__device__ int found = {question};"
    with pytest.raises(ValueError, match="may find a file beside the source"):
        key_of(code)
    (tmp_path / "part.h").write_text("")
    monkeypatch.chdir(tmp_path)
    assert b"found = 1" in Program(code, "c++", ProgramOptions(arch="sm_90")).compile("ptx").code


@pytest.mark.parametrize(
    "code",
    [
        "#include <part.h>",
        "# include\t<part.h>",
        "#include/**/<part.h>",
        "#if __has_include(<part.h>)\n#endif",
        "#define A\n#ifdef A\n#endif",
        '// include "part.h"',
        'int include, embed = include "a";',
        "a % b; a ? import : embed;",
    ],
)
def test_other_lines_need_no_digest(code):
    assert key_of(code)


def test_an_include_in_angle_brackets_finds_no_file_beside_the_source(tmp_path, monkeypatch):
    (tmp_path / "part.h").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NVRTCError, match=r"part\.h"):
        Program("#include <part.h>", "c++", ProgramOptions(arch="sm_90")).compile("ptx")


# Arguments


def test_arguments_must_be_named():
    with pytest.raises(TypeError, match="positional"):
        make_program_cache_key(SOURCE, "c++", {}, "ptx")


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"code": 3}, TypeError, "code must be str or bytes, not int"),
        ({"code_type": 3}, TypeError, "code_type must be a str, not int"),
        ({"code_type": "fortran"}, RuntimeError, r"unsupported code_type 'fortran'.*c\+\+"),
        ({"options": 3}, TypeError, "options must be ProgramOptions, a mapping or None, not int"),
        ({"options": {"arhc": "sm_90"}}, TypeError, "did you mean 'arch'"),
        ({"target_type": None}, TypeError, "target_type must be a str, not NoneType"),
        ({"target_type": "exe"}, ValueError, "exe"),
        ({"target_type": "fatbin"}, ValueError, "fatbin"),
        ({"name_expressions": "abc"}, TypeError, "name_expressions must be a sequence of str or bytes, not str"),
        ({"name_expressions": [3]}, TypeError, "name_expressions must be str or bytes, not int: 3"),
        ({"name_expressions": [bytearray(b"a")]}, TypeError, "not bytearray"),
        ({"extra_digest": "d"}, TypeError, "extra_digest must be bytes or None, not str"),
    ],
)
def test_a_wrong_argument_is_refused(wrong, error, said):
    right = {"code": SOURCE, "code_type": "c++", "options": {"arch": "sm_90"}, "target_type": "ptx"}
    with pytest.raises(error, match=said):
        make_program_cache_key(**right | wrong)


def test_link_time_optimization_goes_with_its_target_alone():
    with pytest.raises(ValueError, match="link_time_optimization"):
        key_of(**LTO)
    assert key_of(target="ltoir", **LTO) == key_of(target="ltoir")


def test_headers_in_memory_are_in_the_key():
    headers: list[list[tuple[str, str | bytes | bytearray]]] = [
        [("a.h", "int a;")],
        [("b.h", "int a;")],
        [("a.h", "int b;")],
        [("a.h", "int a;"), ("b.h", "")],
        [("b.h", ""), ("a.h", "int a;")],
    ]
    assert len({key_of(extra_headers=some) for some in headers} | {key_of()}) == len(headers) + 1
    assert key_of(extra_headers=headers[0]) == key_of(extra_headers=(("a.h", bytearray(b"int a;")),))


def test_a_header_in_memory_that_may_include_a_file_has_no_key():
    for options in ({}, {"no_source_include": True}):
        assert key_of("#include <a.h>\n", extra_headers=[("a.h", "#include <b.h>"), ("b.h", "")], **options)
    with pytest.raises(ValueError, match=r"#include \"b.h\".* may find a file beside the source"):
        key_of("#include <a.h>\n", extra_headers=[("a.h", '#include "b.h"'), ("b.h", "")])


def test_a_program_with_headers_in_memory_is_kept_in_a_cache():
    source = '#include <a.h>\nextern "C" __global__ void k(int *x) { *x = VALUE; }'
    cache = InMemoryProgramCache()
    for value in (4711, 4712, 4711):
        options = ProgramOptions(arch="sm_90", extra_headers=[("a.h", f"#define VALUE {value}")])
        assert str(value).encode() in Program(source, "c++", options).compile("ptx", cache=cache).code
    assert len(cache) == 2
