# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kinds of kernel parameters, from symbols and from PTX."""

from __future__ import annotations

import random

import pytest

from cuda_core_cffi import Program, UnavailableError
from cuda_core_cffi._code.mangling import kinds_from_ptx, kinds_from_symbol, merge_kinds, readable_name
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

PREAMBLE = """
struct __half { unsigned short bits; };
struct __nv_bfloat16 { unsigned short bits; };
struct __nv_fp8_e8m0 { unsigned char bits; };
struct __nv_fp4x2_e2m1 { unsigned char bits; };
struct Pair { float a, b; };
enum Colour { RED };
enum class Shade : short { DARK };
template <class T> struct Box { T value; };
template <class T, int n> struct Array { T values[n]; };
namespace outer { namespace inner {
struct Thing { int x; };
template <class T> struct Holder { T x; enum Sort { FIRST }; };
} }
typedef int (*Function)(float, Pair *);
"""

# C++ types of parameters and their kinds
TYPES = {
    "bool": "i",
    "char": "i",
    "signed char": "i",
    "unsigned char": "i",
    "short": "i",
    "unsigned short": "i",
    "int": "i",
    "unsigned": "i",
    "long": "i",
    "unsigned long": "i",
    "long long": "i",
    "unsigned long long": "i",
    "wchar_t": "i",
    "char16_t": "i",
    "char32_t": "i",
    "float": "f",
    "double": "f",
    "__half": "f",
    "__nv_bfloat16": "b",
    "__nv_fp8_e8m0": "b",
    "__nv_fp4x2_e2m1": "b",
    "float2": "c",
    "double2": "c",
    "float4": "b",
    "int4": "b",
    "dim3": "b",
    "const int": "i",
    "float *": "p",
    "const float *": "p",
    "const float *const": "p",
    "float *__restrict__": "p",
    "const volatile void *": "p",
    "void **": "p",
    "Pair *": "p",
    "const Pair *": "p",
    "Box<float> *": "p",
    "Function": "p",
    "float (*)[4]": "p",
    "decltype(nullptr)": "p",
    "Pair": None,
    "Colour": None,
    "Shade": None,
    "Box<float>": "c",
    "Box<Pair>": "c",
    "Box<Box<const int *>>": "c",
    "Array<double, 3>": "c",
    "Array<outer::inner::Thing, -2 + 5>": "c",
    "outer::inner::Thing": None,
    "outer::inner::Holder<float>::Sort": None,
    "outer::inner::Thing *": "p",
    "outer::inner::Holder<float>": "c",
    "outer::inner::Holder<outer::inner::Thing> *": "p",
}


@pytest.fixture(scope="module")
def lower():
    """Return a function from source and name expressions to symbols and PTX."""
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))

    def lower(source: str, expressions: list[str]) -> tuple[dict[str, str], str]:
        code = Program(PREAMBLE + source, "c++").compile("ptx", expressions)
        return code.symbol_mapping, code.code.decode()

    return lower


def declare(cpp_type: str, name: str) -> str:
    """Return the declaration of a parameter."""
    return cpp_type.replace("(*)", f"(*{name})") if "(*)" in cpp_type else f"{cpp_type} {name}"


def test_each_type_has_its_kind(lower):
    source = "".join(f"__global__ void k{i}({declare(cpp, 'x')}) {{}}\n" for i, cpp in enumerate(TYPES))
    symbols, _ = lower(source, [f"k{index}" for index in range(len(TYPES))])
    found = {cpp: kinds_from_symbol(symbols[f"k{index}"]) for index, cpp in enumerate(TYPES)}
    assert found == {cpp: (kind,) for cpp, kind in TYPES.items()}


def test_long_signatures_are_read_through_all_their_abbreviations(lower):
    choice = random.Random(20261121)
    signatures = [choice.choices(list(TYPES), k=choice.randint(0, 12)) for _ in range(200)]
    source = "".join(
        f"__global__ void k{i}({', '.join(declare(cpp, f'x{j}') for j, cpp in enumerate(types))}) {{}}\n"
        for i, types in enumerate(signatures)
    )
    symbols, _ = lower(source, [f"k{index}" for index in range(len(signatures))])
    for index, types in enumerate(signatures):
        assert kinds_from_symbol(symbols[f"k{index}"]) == tuple(TYPES[cpp] for cpp in types), symbols[f"k{index}"]


def test_instances_of_templates_have_the_kinds_of_their_arguments(lower):
    choice = random.Random(7)
    plain = [cpp for cpp in TYPES if "(*)" not in cpp and "const" not in cpp.split()[-1] and "__restrict__" not in cpp]
    arguments = [choice.choices(plain, k=2) for _ in range(100)]
    source = (
        "namespace outer { template <class T, class U> __global__ void k"
        "(T a, U b, T *c, const U *d, U e, Box<T> *f, Box<U> *g, Pair *h) {} }"
    )
    names = [f"outer::k<{first}, {second}>" for first, second in arguments]
    symbols, _ = lower(source, names)
    for name, (first, second) in zip(names, arguments):
        wanted = (TYPES[first], TYPES[second], "p", "p", TYPES[second], "p", "p", "p")
        assert kinds_from_symbol(symbols[name]) == wanted, symbols[name]


def test_a_value_among_the_template_arguments_is_skipped(lower):
    source = "template <int n, class T, bool b> __global__ void k(T a, T *b_) {}"
    symbols, _ = lower(source, ["k<16, float, true>", "k<-3, int, false>"])
    assert [kinds_from_symbol(symbol) for symbol in symbols.values()] == [("f", "p"), ("i", "p")]


def test_a_static_kernel_and_one_in_an_anonymous_namespace_are_read(lower):
    source = "static __global__ void one(float a) {} namespace { __global__ void two(int *a, double b) {} }"
    symbols, _ = lower(source, ["one", "two"])
    assert (kinds_from_symbol(symbols["one"]), kinds_from_symbol(symbols["two"])) == (("f",), ("p", "f"))


def test_a_parameter_pack_is_not_understood(lower):
    symbols, _ = lower("template <class... T> __global__ void k(T... x) {}", ["k<int, float>"])
    assert kinds_from_symbol(symbols["k<int, float>"]) is None


def test_a_kernel_without_parameters_has_no_kinds():
    assert kinds_from_symbol("_Z5emptyv") == ()


@pytest.mark.parametrize(
    "symbol",
    [
        "saxpy",
        "",
        "_Z",
        "_Z3",
        "_Z9short",
        "_Z1k",
        "_Z1kf.cold",
        "_Z1kz",
        "_Z1kS_",
        "_Z1kS9_",
        "_Z1kT_",
        "_Z1kIfEvT0_",
        "_Z1kIfEfT_",
        "_Z1kvf",
        "_Z1kP",
        "_ZN1kf",
        "_Z1kIXplLi1ELi2EEEvf",
        "_Z1kM4PairFvvE",
        "_ZZ1kvENKUlvE_clEv",
        "_Z1k" + "P" * 5000,
        "_Z" + "9" * 5000,
        "_Z1kS" + "Z" * 5000 + "_",
        "_Z1kA" + "9" * 5000 + "_f",
    ],
)
def test_what_is_not_understood_is_unknown(symbol):
    assert kinds_from_symbol(symbol) is None


def test_ptx_tells_kinds_of_plain_parameters(lower):
    symbols, ptx = lower(
        'extern "C" __global__ void k(float a, double b, int c, unsigned char d, long long *e, Pair f, Colour g) {}',
        ["k"],
    )
    assert kinds_from_ptx(ptx, symbols["k"]) == ("f", "f", "i", "i", "i", "c", "i")


def test_every_class_is_one_in_ptx(lower):
    source = 'extern "C" __global__ void k(__half a, __nv_bfloat16 b, float2 c, float4 d, Pair e) {}'
    symbols, ptx = lower(source, ["k"])
    assert kinds_from_ptx(ptx, symbols["k"]) == ("c",) * 5


def test_an_array_of_something_else_in_ptx_is_unknown():
    assert kinds_from_ptx(".entry k(.param .f32 a[2], .param .align 4 .b8 b[8])\n{", "k") == (None, "c")


def test_ptx_without_parameters_has_no_kinds():
    assert kinds_from_ptx(".visible .entry k()\n{\nret;\n}", "k") == ()


def test_ptx_without_a_parameter_list_has_no_kinds():
    assert kinds_from_ptx(".visible .entry k\n{\nret;\n}", "k") == ()


def test_ptx_may_call_a_parameter_a_pointer():
    text = ".entry k(.param .u64 .ptr .global .align 4 k_param_0, .param .b64 k_param_1)\n{"
    assert kinds_from_ptx(text, "k") == ("p", None)


def test_comments_in_ptx_are_no_parameters():
    text = ".entry k( // .param .f32 x,\n .param .u32 a /* , .param .f64 b */)\n{"
    assert kinds_from_ptx(text, "k") == ("i",)


def test_a_symbol_that_begins_like_the_kernel_is_not_it():
    assert kinds_from_ptx(".entry kernel2(.param .f32 a)\n{", "kernel") is None


def test_two_sources_complete_each_other():
    assert merge_kinds(("p", None, "f"), ("i", "i", "f")) == ("p", "i", "f")


def test_a_symbol_tells_classes_apart_that_ptx_does_not():
    assert merge_kinds(("f", "b", "c", None, "i"), ("c",) * 5) == ("f", "b", "c", "c", "i")


def test_a_contradiction_is_unknown():
    assert merge_kinds(("f", "p"), ("i", "f")) == (None, None)


def test_sources_that_count_differently_know_nothing():
    assert merge_kinds(("f",), ("f", "f")) is None


def test_one_source_is_enough():
    assert merge_kinds(None, ("f",)) == merge_kinds(("f",), None) == ("f",)


# Names as the source has them


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z5saxpyfPfi", "saxpy"),
        ("_Z5scaleIfEvPT_S0_", "scale"),
        ("_ZN6tables4deepE", "tables::deep"),
        ("_ZN5outer5inner5scaleIfEEvPT_", "outer::inner::scale"),
        ("_ZNK5outer4makeEv", "outer::make"),
        ("_ZL6hiddenPi", "hidden"),
        ("_ZN5outerL6hiddenE", "outer::hidden"),
        ("_ZN12_GLOBAL__N_11kEv", "_GLOBAL__N_1::k"),
    ],
)
def test_a_symbol_tells_its_name_in_the_source(symbol, name):
    assert readable_name(symbol) == name


@pytest.mark.parametrize(
    "symbol", ["plain", "", "_Z", "_ZN", "_Z9short", "_Z0", "_ZplRK1SS1_", "_ZN9999deep", "_Z" + "9" * 5000]
)
def test_a_symbol_that_is_not_understood_is_its_own_name(symbol):
    assert readable_name(symbol) == symbol
