# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Structures by value from NumPy's structured scalars, and numbers whose types other libraries bring."""

from __future__ import annotations

import contextlib

import numpy
import pytest

from cuda_core_cffi import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, UnavailableError, launch
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

SOURCE = """
struct __nv_bfloat16 { unsigned short bits; };
struct __nv_fp8_e5m2 { unsigned char bits; };
struct Inner { signed char tag; double weight; };
struct Outer {
    short id;
    Inner inner;
    float row[3];
    Inner pair[2];
    unsigned char grid[2][3];
    long long count;
    bool ready;
};
struct Two { int first, second; };
struct Packed { char bytes[9]; };
__device__ long long *put(long long *out, Inner inner) {
    *out++ = inner.tag;
    *out++ = (long long)(inner.weight * 4);
    return out;
}
__global__ void read(signed char before, Outer value, int after, long long *out) {
    *out++ = before;
    *out++ = value.id;
    out = put(out, value.inner);
    for (int i = 0; i < 3; i++) *out++ = (long long)(value.row[i] * 4);
    for (int i = 0; i < 2; i++) out = put(out, value.pair[i]);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) *out++ = value.grid[i][j];
    *out++ = value.count;
    *out++ = value.ready;
    *out++ = after;
}
__global__ void two(int before, Two value, int *out) { out[0] = before; out[1] = value.first; out[2] = value.second; }
__global__ void packed(Packed value, char *out) { for (int i = 0; i < 9; i++) out[i] = value.bytes[i]; }
__global__ void brain(__nv_bfloat16 value, int *out) { *out = value.bits; }
__global__ void eight(__nv_fp8_e5m2 value, int *out) { *out = value.bits; }
"""
INNER = numpy.dtype([("tag", "i1"), ("weight", "f8")], align=True)
OUTER = numpy.dtype(
    [
        ("id", "i2"), ("inner", INNER), ("row", "f4", 3), ("pair", INNER, 2), ("grid", "u1", (2, 3)), ("count", "i8"),
        ("ready", "?"),
    ],
    align=True,
)  # fmt: skip
VALUE = (-2, (-3, 0.25), (1, 2.5, -3), [(4, 5), (6, -7.75)], [(1, 2, 3), (4, 5, 255)], -(2**40), True)
FIELDS = [-2, -3, 1, 4, 10, -12, 4, 20, 6, -31, 1, 2, 3, 4, 5, 255, -(2**40), 1]
ONE = LaunchConfig(grid=1, block=1)
NAMES = ["read", "two", "packed", "brain", "eight"]


@pytest.fixture(scope="module")
def code():
    """Return the compiled source."""
    device = Device(0)
    device.set_current()
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    with Program(SOURCE, "c++") as program:
        code = program.compile("cubin", NAMES)
    code.get_kernel("read").close()  # loads it, before a test counts what is alive
    yield code
    code.close()


@pytest.fixture
def call(stream, code):
    """Return a function that runs a kernel, the same one each time, and returns what it wrote."""
    with LegacyPinnedMemoryResource().allocate(256) as out, contextlib.ExitStack() as stack:
        kernels = {name: stack.enter_context(code.get_kernel(name)) for name in NAMES}

        def call(name: str, *arguments: object, kind: str = "i8") -> list[int]:
            out.__buffer__(0)[:] = bytes(256)
            launch(stream, ONE, kernels[name], *arguments, out)
            stream.sync()
            return numpy.frombuffer(bytes(out.__buffer__(0)), kind).tolist()

        yield call


def scalar(value: object, dtype: object) -> numpy.void:
    """Return a structured scalar."""
    return numpy.array(value, dtype)[()]


def test_every_field_of_a_nested_padded_structure_arrives(call):
    assert call("read", -9, scalar(VALUE, OUTER), 77)[:20] == [-9, *FIELDS, 77]


def test_elements_of_a_structured_array_are_scalars(call):
    array = numpy.zeros(3, OUTER)
    array[1] = VALUE
    assert call("read", 1, array[1], 2)[:20] == [1, *FIELDS, 2]
    assert call("read", 1, array[2], 2)[:20] == [1, *[0] * 18, 2]


def test_a_nested_structure_is_a_scalar_of_its_own(call):
    assert call("two", 1, scalar([((2, 3),)], [("pair", [("a", "i4"), ("b", "i4")])])["pair"][0], kind="i4")[:3] == [
        1, 2, 3,
    ]  # fmt: skip


def test_explicit_offsets_are_kept(call):
    dtype = numpy.dtype({"names": ["second", "first"], "formats": ["i4", "i4"], "offsets": [4, 0], "itemsize": 8})
    assert call("two", 1, scalar((30, 20), dtype), kind="i4")[:3] == [1, 20, 30]


def test_a_packed_structure_of_bytes_is_taken_as_it_is(call):
    value = scalar((1, b"abcdefgh"), [("a", "i1"), ("b", "S8")])
    assert bytes(call("packed", value, kind="u1")[:9]) == b"\1abcdefgh"


def test_values_of_one_type_may_have_different_dtypes(call):
    for dtype in ([("a", "i4"), ("b", "i4")], [("a", "i2", 2), ("b", "u4")]):
        value = numpy.zeros((), dtype)
        value["b"] = 7
        assert call("two", 5, value[()], kind="i4")[:3] == [5, 0, 7]


@pytest.mark.parametrize(
    ("dtype", "told"),
    [
        ([("a", "i4"), ("b", "i1")], "has 5 bytes, but the kernel's parameter has 8; make the dtype with align=True"),
        (numpy.dtype([("a", "i4"), ("b", "i8")], align=True), "has 16 bytes, but the kernel's parameter has 8$"),
        ("V3", "has 3 bytes, but the kernel's parameter has 8$"),
        (numpy.dtype([("a", "i8")], align=True), "is aligned to 8 bytes, but the kernel's parameter is at 4"),
        ([("a", ">i4"), ("b", "i4")], "has fields in another byte order"),
        ([("a", [("b", ">i4", 2)])], "has fields in another byte order"),
        ([("a", "O")], "has Python objects in it"),
    ],
)
def test_a_structure_that_is_laid_out_otherwise_is_refused_with_the_reason(call, dtype, told):
    with pytest.raises(TypeError, match=rf"kernel argument 1 \(void\): {told}"):
        call("two", 1, numpy.zeros((), dtype)[()])
    good = numpy.zeros((), [("a", "i4"), ("b", "i4")])[()]
    assert call("two", 1, good, kind="i4")[:3] == [1, 0, 0]
    with pytest.raises(TypeError, match=told):  # also by the packer that exists now
        call("two", 1, numpy.zeros((), dtype)[()])


@pytest.mark.parametrize(("name", "kernel", "bits"), [("bfloat16", "brain", 0xBFC0), ("float8_e5m2", "eight", 0xBE)])
def test_a_number_of_another_library_arrives_bit_by_bit(call, name, kernel, bits):
    types = pytest.importorskip("ml_dtypes")
    assert call(kernel, getattr(types, name)(-1.5), kind="i4")[0] == bits


def test_a_number_of_another_library_is_for_its_own_type_only(call):
    types = pytest.importorskip("ml_dtypes")
    with pytest.raises(TypeError, match=r"argument 0 \(bfloat16\): the kernel declares an? integer parameter"):
        call("two", types.bfloat16(1), numpy.zeros((), "V8")[()])
    with pytest.raises(TypeError, match=r"argument 0 \(bfloat16\): has 2 bytes, but the kernel's parameter has 1"):
        call("eight", types.bfloat16(1))


def test_a_python_float_is_no_bfloat16(call):
    with pytest.raises(TypeError, match=r"argument 0 \(float\): the kernel declares a structure parameter"):
        call("brain", 1.5)
