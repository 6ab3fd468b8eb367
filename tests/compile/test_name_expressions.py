# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Name expressions: what they become, and what is said of one that is wrong."""

from __future__ import annotations

import pytest

from cuda_core_cffi import NVRTCError, Program

SOURCE = """
namespace outer {
template <class T> __global__ void scale(T *x, T by) { *x *= by; }
__device__ int variable;
__constant__ float table[4], second;
struct Functor { template <class T> __device__ T operator()(T x) const { return x; } };
}
template <class T, int n> __global__ void __launch_bounds__(128) fill(T *x) { *x = n; }
template <class F> __global__ void apply(F f, int *x) { *x = f(*x); }
template <class T> __device__ T slot = T(1);
// __global__ void commented(int *x);
extern "C" __global__ void plain(int *x) { *x = outer::variable; }
"""


pytestmark = pytest.mark.usefixtures("nvrtc")


def compile_with(*expressions):
    """Compile the source with name expressions."""
    return Program(SOURCE, "c++", {"arch": "sm_90", "name": "names.cu"}).compile("ptx", expressions)


@pytest.mark.parametrize(
    ("expression", "symbol"),
    [
        ("outer::scale<float>", "_ZN5outer5scaleIfEEvPT_S1_"),
        ("  outer :: scale < float >  ", "_ZN5outer5scaleIfEEvPT_S1_"),
        ("fill<int, 3>", "_Z4fillIiLi3EEvPT_"),
        ("fill<unsigned char, (1 << 4)>", "_Z4fillIhLi16EEvPT_"),
        ("apply<outer::Functor>", "_Z5applyIN5outer7FunctorEEvT_Pi"),
        ("plain", "plain"),
        ("&outer::variable", "_ZN5outer8variableE"),
        ("&outer::table", "_ZN5outer5tableE"),
        ("&slot<double>", "_Z4slotIdE"),
    ],
)
def test_an_expression_becomes_a_symbol_of_the_code(expression, symbol):
    code = compile_with(expression)
    assert code.symbol_mapping == {expression: symbol}
    assert symbol.encode() in code.code


def test_an_expression_may_be_given_twice():
    assert list(compile_with("plain", "plain").symbol_mapping) == ["plain"]


def test_there_may_be_very_many_expressions():
    names = [f"fill<int, {index}>" for index in range(200)]
    assert list(compile_with(*names).symbol_mapping) == names


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("outer::scole<float>", "'scole' is unknown: did you mean 'scale'?"),
        ("plian", "'plian' is unknown: did you mean 'plain'?"),
        ("&outer::tables", "'tables' is unknown: did you mean 'table'?"),
        ("fil<int, 3>", "'fil' is unknown: did you mean 'fill'?"),
        ("scale<float>", "'scale' is unknown: it is in a namespace, whose name has to come first"),
        ("commented", "'commented' is unknown\n"),
        ("outer::zzz", "'zzz' is unknown\n"),
        ("fill<flaot, 3>", "'flaot' is unknown"),
    ],
)
def test_a_name_that_is_unknown_is_named_with_those_like_it(expression, said):
    with pytest.raises(NVRTCError) as caught:
        compile_with(expression)
    assert f"NVRTC_ERROR_COMPILATION (6); in a name expression {said}" in str(caught.value)
    assert caught.value.name == "NVRTC_ERROR_COMPILATION"


def test_every_name_that_is_unknown_is_named():
    with pytest.raises(NVRTCError) as caught:
        compile_with("plian", "&slott<int>")
    first = str(caught.value).splitlines()[0]
    assert "in a name expression 'plian' is unknown: did you mean 'plain'?" in first
    assert "in a name expression 'slott' is unknown: did you mean 'slot'?" in first


@pytest.mark.parametrize("expression", ["outer::scale", "outer::scale<float", "outer::variable", "3 +"])
def test_another_mistake_is_in_the_log(expression):
    with pytest.raises(NVRTCError, match="name expression") as caught:
        compile_with(expression)
    assert "is unknown" not in str(caught.value)


def test_a_mistake_in_the_source_is_no_mistake_in_an_expression():
    with pytest.raises(NVRTCError, match='identifier "y" is undefined') as caught:
        Program("__global__ void k() { y = 1; }", "c++", {"arch": "sm_90"}).compile("ptx", ["k"])
    assert "in a name expression" not in str(caught.value)
