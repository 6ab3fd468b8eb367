# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments for parameters of class type: no kind of launch packs a number by its size alone."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from graphs import run as run_graph
from writing_kernels import ONE, shared_memory

from cuda_core_cffi import Buffer, Device, LaunchBatch, ObjectCode, PreparedLaunch, ffi, launch
from cuda_core_cffi._launching.arguments import make_packer
from cuda_core_cffi.graph import GraphDefinition

# As NVRTC declares the parameters of extern "C" kernels: __half and __nv_bfloat16; float2; float4 and double2.
# The last two are float4 and __half again, in kernels whose names have the types.
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry two(.param .u64 out, .param .align 2 .b8 value[2])
{
    .reg .b64 %rd<2>;
    .reg .b16 %rs<2>;
    ld.param.u64 %rd1, [out];
    ld.param.b16 %rs1, [value];
    st.b16 [%rd1], %rs1;
    ret;
}
.visible .entry eight(.param .u64 out, .param .align 8 .b8 value[8])
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.param.b64 %rd2, [value];
    st.b64 [%rd1], %rd2;
    ret;
}
.visible .entry sixteen(.param .u64 out, .param .align 16 .b8 value[16])
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.b64 %rd2, [value];
    ld.param.b64 %rd3, [value+8];
    st.b64 [%rd1], %rd2;
    st.b64 [%rd1+8], %rd3;
    ret;
}
.visible .entry _Z4quadPv6float4(.param .u64 out, .param .align 16 .b8 value[16])
{
    ret;
}
.visible .entry _Z4halfPv6__half(.param .u64 out, .param .align 2 .b8 value[2])
{
    .reg .b64 %rd<2>;
    .reg .b16 %rs<2>;
    ld.param.u64 %rd1, [out];
    ld.param.b16 %rs1, [value];
    st.b16 [%rd1], %rs1;
    ret;
}
"""
REFUSED = "a structure parameter, which takes bytes, a structure, or a scalar of NumPy or ml_dtypes of its type"
QUAD, HALF = "_Z4quadPv6float4", "_Z4halfPv6__half"


class Half(ctypes.Structure):
    _fields_ = [("bits", ctypes.c_uint16)]


def plain(stream, kernel, out, value) -> None:
    launch(stream, ONE, kernel, out, value)


def prepared(stream, kernel, out, value) -> None:
    PreparedLaunch(ONE, kernel).launch(stream, out, value)


def prepared_for_its_type(stream, kernel, out, value) -> None:
    PreparedLaunch(ONE, kernel, Buffer, getattr(value, "dtype", type(value))).launch(stream, out, value)


def in_a_batch(stream, kernel, out, value) -> None:
    LaunchBatch([(PreparedLaunch(ONE, kernel), out, value)]).launch(stream)


def in_a_graph(stream, kernel, out, value) -> None:
    definition = GraphDefinition()
    definition.launch(ONE, kernel, out, value)
    run_graph(definition, stream)


def in_a_node_that_changes(stream, kernel, out, value) -> None:
    definition = GraphDefinition()
    size = kernel.arguments_info[1].size
    definition.launch(ONE, kernel, out, bytes(size)).update(args=(out, value))
    run_graph(definition, stream)


def captured(stream, kernel, out, value) -> None:
    builder = stream.device.create_graph_builder().begin_building()
    try:
        launch(builder, ONE, kernel, out, value)
    finally:
        builder.end_building()
    with builder.complete() as graph:
        graph.launch(stream)
        stream.sync()
    builder.close()


LAUNCHES = [plain, prepared, prepared_for_its_type, in_a_batch, in_a_graph, in_a_node_that_changes, captured]
every_launch = pytest.mark.parametrize("start", LAUNCHES, ids=lambda start: start.__name__)


@pytest.fixture(scope="module")
def kernels():
    """Return a function from names to kernels."""
    device = Device(0)
    device.set_current()
    with ObjectCode.from_ptx(PTX) as code:
        code.get_kernel("two").close()  # loads it, before a test counts what is alive
        yield code.get_kernel


@pytest.fixture
def written(stream, kernels):
    """Return a function that runs a kernel and returns what it wrote."""
    with shared_memory() as out:

        def written(start: Callable[..., None], name: str, value: Any) -> bytes:
            with kernels(name) as kernel:
                for _ in range(2):  # the second time by what the first has left
                    out.__buffer__(0)[:16] = bytes(16)
                    start(stream, kernel, out, value)
                    stream.sync()
                return bytes(out.__buffer__(0)[: kernel.arguments_info[1].size])

        yield written


@every_launch
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("two", 1.5), ("two", 5), ("two", True), ("two", numpy.int16(5)), ("two", ctypes.c_uint16(5)), ("eight", 3.0),
        ("eight", 5), ("eight", numpy.float64(3)), ("eight", ctypes.c_double(3)),
        ("eight", ctypes.c_void_p(5)), (QUAD, 1 + 2j), (QUAD, numpy.complex128(1 + 2j)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_a_number_for_a_class_is_refused_with_the_remedy(written, start, name, value):
    with pytest.raises(TypeError, match=rf"argument .*1 .*{REFUSED}"):
        written(start, name, value)


def test_a_duration_for_a_class_is_refused(written):
    with pytest.raises(TypeError, match=r"argument 1 \(timedelta64\): the kernel declares a structure parameter"):
        written(plain, "eight", numpy.timedelta64(3))


@every_launch
def test_a_buffer_for_a_class_is_refused(device, stream, written, start):
    with device.allocate(64, stream) as buffer, pytest.raises(TypeError, match=rf"argument .*1 .*{REFUSED}"):
        written(start, "eight", buffer)


@pytest.mark.parametrize("start", [item for item in LAUNCHES if item is not prepared_for_its_type])
@pytest.mark.parametrize(("ctype", "value"), [("double", 3.0), ("int64_t", 3), ("void *", 0), ("CUdeviceptr", 8)])
def test_a_cffi_number_for_a_class_is_refused(written, start, ctype, value):
    with pytest.raises(TypeError, match=rf"argument 1 .*{REFUSED}"):
        written(start, "eight", ffi.cast(ctype, value))


@every_launch
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("two", numpy.float16(1.5), numpy.float16(1.5).tobytes()), ("two", b"\1\2", b"\1\2"),
        ("two", Half(0x3E00), b"\0\x3e"), ("two", numpy.array((7,), [("bits", "u2")])[()], b"\7\0"),
        ("eight", 1 + 2j, struct.pack("<ff", 1, 2)), ("eight", numpy.complex64(1 + 2j), struct.pack("<ff", 1, 2)),
        ("sixteen", 1 + 2j, struct.pack("<dd", 1, 2)), ("sixteen", numpy.complex128(1 + 2j), struct.pack("<dd", 1, 2)),
        (HALF, 1.5, numpy.float16(1.5).tobytes()), (HALF, numpy.float16(1.5), numpy.float16(1.5).tobytes()),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_a_value_of_the_class_arrives(written, start, name, value, expected):
    assert written(start, name, value) == expected


@every_launch
@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "int4"])
def test_a_number_of_another_library_arrives_where_it_has_the_size(written, start, name):
    value = getattr(pytest.importorskip("ml_dtypes"), name)(1)
    if value.itemsize == 2:
        assert written(start, "two", value) == value.tobytes()
    else:
        with pytest.raises(TypeError, match="has 1 bytes, but the kernel's parameter has 2"):
            written(start, "two", value)


def test_a_launch_that_is_prepared_for_a_half_converts_floats_to_it(stream, kernels):
    with kernels("two") as kernel, shared_memory() as out:
        PreparedLaunch(ONE, kernel, Buffer, numpy.float16).launch(stream, out, 1.5)
        stream.sync()
        assert bytes(out.__buffer__(0)[:2]) == numpy.float16(1.5).tobytes()


@pytest.mark.parametrize(
    ("ctype", "size", "kind"), [("int", 4, "f"), ("float", 4, "i"), ("double", 8, "p"), ("void *", 8, "f")]
)
def test_a_cffi_number_of_another_kind_than_the_parameter_is_refused(ctype, size, kind):
    value = ffi.cast(ctype, 0)
    with pytest.raises(TypeError, match=r"argument 0 .*the kernel declares an? "):
        make_packer((type(value),), (value,), ((0, size),), (kind,))
    packer = make_packer((type(value),), (ffi.new("CUmemLocation *")[0],), ((0, 8),), (kind,))
    with pytest.raises(TypeError, match=r"argument 0 .*the kernel declares an? "):  # also after one of the same type
        packer(value)
