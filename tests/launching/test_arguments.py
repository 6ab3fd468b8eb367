# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How Python values become the bytes of a kernel's parameters. Only the tests with a Buffer need a driver."""

from __future__ import annotations

import ctypes
import enum
import math
import struct
from typing import Any

import numpy
import pytest
from fast_packers import packed_on_fast_path

from cuda_core_cffi import Buffer, ffi
from cuda_core_cffi._launching.arguments import make_packer

INT_SIZES = [1, 2, 4, 8]
FLOAT_FORMATS = {2: "<e", 4: "<f", 8: "<d"}


class Level(enum.IntEnum):
    HIGH = 3


class Celsius(float):
    pass


class Count(int):
    pass


class Pair(ctypes.Structure):
    _fields_ = [("key", ctypes.c_int32), ("weight", ctypes.c_double)]


class Either(ctypes.Union):
    _fields_ = [("whole", ctypes.c_int64), ("real", ctypes.c_double)]


def pack(*values: Any, sizes: tuple[int, ...] | None = None, kinds: tuple[str | None, ...] | None = None) -> bytes:
    """Pack values for parameters of these sizes, each aligned to its size."""
    layout = None
    if sizes is not None:
        layout, end = [], 0
        for size in sizes:
            alignment = min(size & -size, 16) or 1
            offset = -(-end // alignment) * alignment
            layout.append((offset, size))
            end = offset + size
        layout = tuple(layout)
    packer = make_packer(tuple(map(type, values)), values, layout, kinds)
    packed = packer(*values)
    assert packed_on_fast_path(packer, values) <= {None, packed}
    return packed


def pack_again(first: Any, second: Any, size: int, kind: str | None = None) -> bytes:
    """Pack a value with the packer that was made for another of the same type, as a kernel does."""
    assert type(first) is type(second)
    return make_packer((type(first),), (first,), ((0, size),), (kind,))(second)


# Integers


@pytest.mark.parametrize("size", INT_SIZES)
def test_an_int_takes_the_width_that_the_kernel_declares(size):
    assert pack(5, sizes=(size,)) == (5).to_bytes(size, "little")


@pytest.mark.parametrize("size", INT_SIZES)
def test_an_int_may_be_anything_that_the_signed_or_the_unsigned_type_holds(size):
    bits = 8 * size
    for value in (-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1):
        assert pack(value, sizes=(size,)) == (value % 2**bits).to_bytes(size, "little")


@pytest.mark.parametrize("size", INT_SIZES)
@pytest.mark.parametrize("beyond", ["below", "above"])
def test_an_int_that_does_not_fit_is_an_overflow_error_that_names_position_and_value(size, beyond):
    bits = 8 * size
    value = -(2 ** (bits - 1)) - 1 if beyond == "below" else 2**bits
    with pytest.raises(OverflowError, match=rf"argument 1 \(int\): {value} does not fit in {size} bytes"):
        pack(0, value, sizes=(8, size))


@pytest.mark.parametrize(("value", "number"), [(Level.HIGH, 3), (Count(-7), -7)])
@pytest.mark.parametrize("size", INT_SIZES)
def test_subclasses_of_int_are_ints(value, number, size):
    assert pack(value, sizes=(size,)) == number.to_bytes(size, "little", signed=True)


def test_an_int_cannot_be_a_structure():
    with pytest.raises(TypeError, match=r"argument 0 \(int\).*12"):
        pack(1, sizes=(12,))


# Truth values


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("size", INT_SIZES)
def test_a_bool_takes_one_byte_or_what_the_kernel_declares(value, size):
    assert pack(value, sizes=(size,)) == int(value).to_bytes(size, "little")


def test_a_bool_takes_one_byte_where_the_layout_is_unknown():
    assert pack(True) == b"\x01"


# Floating point


@pytest.mark.parametrize("size", FLOAT_FORMATS)
@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -2.25, 0.1, math.inf, -math.inf, 2.0**-14])
def test_a_float_takes_the_width_that_the_kernel_declares(size, value):
    assert pack(value, sizes=(size,)) == struct.pack(FLOAT_FORMATS[size], value)


@pytest.mark.parametrize("size", FLOAT_FORMATS)
def test_nan_stays_nan(size):
    assert math.isnan(struct.unpack(FLOAT_FORMATS[size], pack(math.nan, sizes=(size,)))[0])


@pytest.mark.parametrize(("size", "value"), [(2, 65520.0), (2, -1e5), (4, 1e39), (4, -1e39)])
def test_a_float_that_is_too_large_is_an_overflow_error_that_names_the_position(size, value):
    with pytest.raises(OverflowError, match=r"argument 0 \(float\).*too large"):
        pack(value, sizes=(size,))


@pytest.mark.parametrize("size", FLOAT_FORMATS)
def test_subclasses_of_float_are_floats(size):
    assert pack(Celsius(1.5), sizes=(size,)) == struct.pack(FLOAT_FORMATS[size], 1.5)


@pytest.mark.parametrize("size", [1, 3, 16])
def test_a_float_has_no_such_width(size):
    with pytest.raises(TypeError, match=rf"argument 0 \(float\).*the kernel's parameter has {size}"):
        pack(1.0, sizes=(size,))


@pytest.mark.parametrize(("size", "code"), [(8, "<ff"), (16, "<dd")])
def test_a_complex_number_is_two_floats_in_the_declared_width(size, code):
    assert pack(1.5 - 2j, sizes=(size,)) == struct.pack(code, 1.5, -2.0)


def test_a_complex_number_that_is_too_large_is_refused():
    with pytest.raises(OverflowError, match=r"argument 0 \(complex\).*too large"):
        pack(1e300 + 0j, sizes=(8,))


@pytest.mark.parametrize("size", [4, 12])
def test_a_complex_number_has_no_such_width(size):
    with pytest.raises(TypeError, match=r"argument 0 \(complex\)"):
        pack(1j, sizes=(size,))


# NumPy


NUMPY_SCALARS = [
    numpy.dtype(name).type(1)
    for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                 "float16", "float32", "float64", "complex64", "complex128")
]  # fmt: skip


@pytest.mark.parametrize("value", NUMPY_SCALARS, ids=lambda value: value.dtype.name)
def test_a_numpy_scalar_is_packed_as_it_is(value):
    assert pack(value, sizes=(value.itemsize,)) == value.tobytes()
    assert pack(value) == value.tobytes()


@pytest.mark.parametrize("value", NUMPY_SCALARS, ids=lambda value: value.dtype.name)
def test_a_numpy_scalar_of_another_size_than_the_parameter_is_refused(value):
    with pytest.raises(TypeError, match=rf"argument 0 \({type(value).__name__}\): has {value.itemsize} bytes.*has 32"):
        pack(value, sizes=(32,))


@pytest.mark.parametrize(
    ("name", "bits"), [("float16", 0x7C01), ("float32", 0xFF800001), ("float64", 0x7FF0000000000001)]
)
def test_a_signalling_nan_of_numpy_keeps_its_bits(name, bits):
    size = numpy.dtype(name).itemsize
    value = numpy.frombuffer(bits.to_bytes(size, "little"), name)[0]
    assert pack(value, 0.5, sizes=(size, 8)) == pack(bits, 0.5, sizes=(size, 8))


def test_a_number_of_numpy_that_says_it_is_another_one_is_packed_as_it_is():
    class Small(numpy.float32):
        def __float__(self):
            return 0.0

    assert pack(Small(2.5), sizes=(4,)) == struct.pack("<f", 2.5)


def test_a_duration_of_numpy_is_packed_as_it_is():
    assert pack(numpy.timedelta64(-5, "s"), sizes=(8,)) == struct.pack("<q", -5)


def test_a_negative_numpy_int_keeps_its_bits():
    assert pack(numpy.int16(-2), sizes=(2,)) == b"\xfe\xff"


def test_a_structured_numpy_scalar_is_a_structure():
    dtype = numpy.dtype([("key", "i4"), ("weight", "f8")], align=True)
    value = numpy.array([(7, 1.5)], dtype)[0]
    packed = Pair.from_buffer_copy(pack(value, sizes=(dtype.itemsize,)))
    assert (packed.key, packed.weight) == (7, 1.5)


def test_structured_numpy_scalars_share_a_type_but_not_a_size():
    small, large = (numpy.zeros(1, [("a", "i4", n)])[0] for n in (1, 2))
    with pytest.raises(TypeError, match="has 8 bytes, but the kernel's parameter has 4"):
        pack_again(small, large, 4)


@pytest.mark.parametrize("value", [numpy.str_("a"), numpy.datetime64(1, "s")], ids=["str_", "datetime64"])
def test_a_numpy_scalar_that_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match=r"argument 0 .*not a kernel argument"):
        pack(value, sizes=(8,))


def test_an_array_is_refused_with_its_position_and_type():
    with pytest.raises(TypeError, match=r"argument 2 \(ndarray\): an array of host memory; copy it to a Buffer first"):
        pack(1, 2, numpy.zeros(1), sizes=(4, 4, 8))


# ctypes


CTYPES_SCALARS = [
    ctypes.c_bool(True), ctypes.c_int8(-1), ctypes.c_uint8(200), ctypes.c_int16(-2), ctypes.c_uint16(50000),
    ctypes.c_int32(-3), ctypes.c_uint32(2**32 - 1), ctypes.c_int64(-4), ctypes.c_uint64(2**64 - 1),
    ctypes.c_size_t(5), ctypes.c_float(1.5), ctypes.c_double(-0.1), ctypes.c_void_p(0x1234), ctypes.c_char(b"a"),
]  # fmt: skip


@pytest.mark.parametrize("value", CTYPES_SCALARS, ids=lambda value: type(value).__name__)
def test_a_ctypes_scalar_is_packed_as_it_lies_in_memory(value):
    assert pack(value, sizes=(ctypes.sizeof(value),)) == ctypes.string_at(ctypes.addressof(value), ctypes.sizeof(value))


@pytest.mark.parametrize("value", [Pair(3, 2.5), Either(real=1.5)], ids=lambda value: type(value).__name__)
def test_a_ctypes_structure_is_passed_by_value(value):
    assert pack(value, sizes=(ctypes.sizeof(value),)) == bytes(value)


def test_a_ctypes_structure_of_another_size_is_refused():
    with pytest.raises(TypeError, match=r"argument 0 \(Pair\): has 16 bytes, but the kernel's parameter has 24"):
        pack(Pair(), sizes=(24,))


def test_a_signalling_nan_of_ctypes_keeps_its_bits():
    bits = struct.pack("<I", 0x7F800001)
    assert pack(ctypes.c_float.from_buffer_copy(bits), 0.5, sizes=(4, 8)) == bits + bytes(4) + struct.pack("<d", 0.5)


@pytest.mark.parametrize("given", [ctypes.c_int32, ctypes.c_float])
def test_a_ctypes_number_of_the_other_byte_order_is_packed_as_it_lies_in_memory(given):
    value = given.__ctype_be__(3)
    assert pack(value, sizes=(4,)) == bytes(value) != bytes(given(3))


def test_a_ctypes_number_whose_value_says_something_else_is_packed_as_it_lies_in_memory():
    class Shown(ctypes.c_int32):
        value = property(lambda self: 5, ctypes.c_int32.value.__set__)

    assert pack(Shown(3), sizes=(4,)) == struct.pack("<i", 3)


def test_a_null_pointer_of_ctypes_is_packed():
    assert pack(ctypes.c_void_p(), sizes=(8,)) == bytes(8)


def test_the_value_of_a_ctypes_object_is_taken_at_each_launch():
    value = ctypes.c_int32(1)
    packer = make_packer((ctypes.c_int32,), (value,), ((0, 4),), None)
    value.value = 2
    assert packer(value) == struct.pack("<i", 2)


# Bytes


@pytest.mark.parametrize(
    "make",
    [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data)), lambda data: memoryview(data).cast("I")],
    ids=["bytes", "bytearray", "memoryview", "writable", "unsigned"],
)
def test_bytes_are_a_structure(make):
    data = bytes(range(12))
    assert pack(make(data), sizes=(12,)) == data


def test_a_strided_memoryview_is_packed_in_order():
    assert pack(memoryview(bytes(range(8)))[::2], sizes=(4,)) == bytes([0, 2, 4, 6])


@pytest.mark.parametrize("length", [0, 11, 13])
def test_bytes_of_another_length_than_the_parameter_are_refused(length):
    with pytest.raises(TypeError, match=rf"argument 0 \(bytes\): has {length} bytes, but.*has 12"):
        pack(bytes(length), sizes=(12,))


@pytest.mark.parametrize("length", [0, 3, 5])
def test_bytes_of_another_length_are_refused_at_a_later_launch_too(length):
    with pytest.raises(TypeError, match=f"has {length} bytes, but the kernel's parameter has 4"):
        pack_again(b"abcd", bytes(length), 4)


# CFFI


def test_a_cffi_structure_is_passed_by_value():
    pointer = ffi.new("CUlaunchAttributeValue *")
    ffi.buffer(pointer)[:] = bytes(range(ffi.sizeof("CUlaunchAttributeValue")))
    assert pack(pointer[0], sizes=(ffi.sizeof("CUlaunchAttributeValue"),)) == bytes(ffi.buffer(pointer))


def test_a_cffi_pointer_is_its_address():
    pointer = ffi.new("int *")
    assert pack(pointer, sizes=(8,)) == struct.pack("<Q", int(ffi.cast("uintptr_t", pointer)))


def test_a_driver_handle_is_its_address():
    assert pack(ffi.cast("CUdeviceptr", 0x1234), sizes=(8,)) == struct.pack("<Q", 0x1234)
    assert pack(ffi.cast("CUstream", 0x1234), sizes=(8,)) == struct.pack("<Q", 0x1234)


@pytest.mark.parametrize(
    ("ctype", "value", "code"),
    [("int", -5, "<i"), ("unsigned char", 200, "<B"), ("short", -9, "<h"), ("float", 1.5, "<f"),
     ("double", 0.1, "<d"), ("uint64_t", 2**64 - 1, "<Q"), ("_Bool", 1, "<?"), ("CUresult", 2, "<i")],
)  # fmt: skip
def test_a_cffi_number_takes_the_width_of_its_type(ctype, value, code):
    assert pack(ffi.cast(ctype, value), sizes=(struct.calcsize(code),)) == struct.pack(code, value)


def test_a_cffi_array_is_refused():
    with pytest.raises(TypeError, match=r"int\[3\] cannot be a kernel argument"):
        pack(ffi.new("int[3]"), sizes=(12,))


def test_a_cffi_number_of_another_size_is_refused():
    with pytest.raises(TypeError, match="has 4 bytes, but the kernel's parameter has 8"):
        pack(ffi.cast("int", 5), sizes=(8,))


# Buffers


def test_a_buffer_is_its_address(device, stream):
    with device.allocate(64, stream) as buffer:
        assert pack(buffer, sizes=(8,)) == struct.pack("<Q", buffer.handle)


def test_an_empty_buffer_is_the_null_pointer(device, stream):
    with device.allocate(0, stream) as buffer:
        assert pack(buffer, sizes=(8,)) == bytes(8)


def test_a_subclass_of_buffer_is_a_buffer():
    with Buffer.from_handle(0x1000, 16) as buffer:
        assert type(buffer) is not Buffer
        assert pack(buffer, sizes=(8,)) == struct.pack("<Q", 0x1000)


def test_a_high_address_is_packed():
    with Buffer.from_handle(2**64 - 16, 16) as buffer:
        assert pack(buffer, sizes=(8,)) == struct.pack("<Q", 2**64 - 16)


def test_a_closed_buffer_is_refused():
    buffer = Buffer.from_handle(0x1000, 16)
    packer = make_packer((type(buffer),), (buffer,), ((0, 8),), None)
    buffer.close()
    with pytest.raises(RuntimeError, match=r"kernel argument \d \(\w+\): the Buffer is closed"):
        packer(buffer)


def test_a_buffer_needs_eight_bytes():
    with pytest.raises(TypeError, match=r"argument 0 \(ForeignBuffer\).*has 4"):
        pack(Buffer.from_handle(0x1000, 16), sizes=(4,))


# What the kernel declares


INTS = [1, True, numpy.int32(1), numpy.bool_(True), ctypes.c_int32(1)]
FLOATS = [1.0, numpy.float32(1), ctypes.c_float(1)]
COMPLEXES = [1j, numpy.complex64(1j)]
ADDRESSES = [1, numpy.uint64(1), ctypes.c_void_p(1)]
named = {"ids": lambda value: type(value).__name__}


def width(value: Any, default: int) -> int:
    """Return the width that a value insists on, else a default."""
    if isinstance(value, numpy.generic):
        return value.itemsize
    return ctypes.sizeof(value) if isinstance(value, ctypes._SimpleCData) else default


@pytest.mark.parametrize("value", [value for value in INTS if not isinstance(value, int)], **named)
def test_an_integer_of_a_certain_type_for_a_floating_point_parameter_is_refused(value):
    with pytest.raises(TypeError, match=rf"argument 0 \({type(value).__name__}\).*floating-point"):
        pack(value, sizes=(width(value, 4),), kinds=("f",))


@pytest.mark.parametrize(
    ("value", "size", "code"),
    [
        (3, 4, "f"), (True, 4, "f"), (-(2**24), 4, "f"), (2**100, 4, "f"), (3, 8, "d"), (2**53, 8, "d"),
        (2**1000, 8, "d"), (2048, 2, "e"), (Level.HIGH, 4, "f"),
    ],
)  # fmt: skip
def test_an_int_for_a_floating_point_parameter_is_packed_if_that_holds_it(value, size, code):
    assert pack(value, sizes=(size,), kinds=("f",)) == struct.pack(f"<{code}", value)


@pytest.mark.parametrize(
    ("value", "size"),
    [(2**24 + 1, 4), (2**128, 4), (2**53 + 1, 8), (10**400, 8), (2049, 2), (10**5000, 8)],
    ids=lambda value: f"{value.bit_length()} bits",
)
def test_an_int_that_a_floating_point_parameter_would_round_is_refused(value, size):
    with pytest.raises(
        OverflowError, match=rf"argument 0 \(int\).* not exact as a float of {size} bytes; pass a float"
    ):
        pack(value, sizes=(size,), kinds=("f",))


@pytest.mark.parametrize("value", FLOATS, **named)
@pytest.mark.parametrize(("kind", "name"), [("i", "integer"), ("p", "pointer"), ("b", "structure")])
def test_a_float_for_another_kind_of_parameter_is_refused(value, kind, name):
    with pytest.raises(TypeError, match=rf"argument 0 \({type(value).__name__}\).*{name}"):
        pack(value, sizes=(width(value, 8),), kinds=(kind,))


@pytest.mark.parametrize("value", COMPLEXES, **named)
@pytest.mark.parametrize("kind", ["i", "p", "f"])
def test_a_complex_number_for_another_kind_of_parameter_is_refused(value, kind):
    with pytest.raises(TypeError, match=rf"argument 0 \({type(value).__name__}\)"):
        pack(value, sizes=(8,), kinds=(kind,))


@pytest.mark.parametrize("kind", ["f", "b"])
def test_a_buffer_for_a_number_or_structure_is_refused(kind):
    with pytest.raises(TypeError, match=r"argument 0 \(ForeignBuffer\)"):
        pack(Buffer.from_handle(0x1000, 16), sizes=(8,), kinds=(kind,))


@pytest.mark.parametrize("value", [*INTS, ctypes.c_void_p(1)], **named)
def test_an_integer_for_a_structure_is_refused(value):
    with pytest.raises(TypeError, match=rf"argument 0 \({type(value).__name__}\).*structure"):
        pack(value, sizes=(width(value, 8),), kinds=("b",))


@pytest.mark.parametrize("value", ADDRESSES, **named)
@pytest.mark.parametrize("kind", ["p", "i"])
def test_addresses_and_integers_may_stand_for_each_other(value, kind):
    assert pack(value, sizes=(8,), kinds=(kind,)) == struct.pack("<Q", 1)


@pytest.mark.parametrize("value", [*FLOATS, numpy.float64(1)], **named)
def test_a_float_for_a_floating_point_parameter_is_packed(value):
    size = width(value, 4)
    assert pack(value, sizes=(size,), kinds=("f",)) == struct.pack(FLOAT_FORMATS[size], 1.0)


@pytest.mark.parametrize("value", [b"12345678", bytearray(b"12345678"), memoryview(b"12345678")], **named)
@pytest.mark.parametrize("kind", ["f", "i", "p", "b", None])
def test_bytes_go_for_every_kind_of_parameter(value, kind):
    assert pack(value, sizes=(8,), kinds=(kind,)) == b"12345678"


# Number and place of the parameters


@pytest.mark.parametrize(
    ("sizes", "values", "text"),
    [((), (1,), "takes 0 arguments, not 1"), ((4,), (), "takes 1 argument, not 0"),
     ((4, 4), (1,), "takes 2 arguments, not 1"), ((4,), (1, 2, 3), "takes 1 argument, not 3")],
)  # fmt: skip
def test_a_wrong_number_of_arguments_is_a_value_error_with_both_numbers(sizes, values, text):
    with pytest.raises(ValueError, match=text):
        pack(*values, sizes=sizes)


def test_no_arguments_are_no_bytes():
    assert pack(sizes=()) == b""
    assert pack() == b""


def test_padding_is_kept_where_a_value_takes_the_slow_way():
    assert pack(1, 2**32 - 1, 2, sizes=(1, 4, 8)) == struct.pack("<b3xI q", 1, 2**32 - 1, 2)


@pytest.mark.parametrize("how", ["ctypes", "numpy", "cffi"])
def test_without_a_layout_a_structure_is_aligned_as_its_type_says(how):
    value: Any = Pair(7, 1.5)  # 16 bytes, aligned to 8
    if how == "numpy":
        value = numpy.zeros(1, numpy.dtype([("key", "i4"), ("weight", "f8")], align=True))[0]
    elif how == "cffi":
        value = ffi.new("CUmemLocation *")[0]  # 8 bytes, aligned to 4
    assert len(pack(numpy.int32(1), value)) == (12 if how == "cffi" else 24)


def test_without_a_layout_an_int_is_eight_bytes_and_a_float_a_double():
    assert pack(1, 2.5) == struct.pack("<qd", 1, 2.5)


@pytest.mark.parametrize(
    "value",
    [None, "1", [1], (1,), {}, object(), range(3), Ellipsis],
    ids=lambda v: type(v).__name__,
)
@pytest.mark.parametrize("sizes", [None, (8,)])
def test_anything_else_is_a_type_error_that_names_position_and_type(value, sizes):
    with pytest.raises(TypeError, match=rf"argument 0 \({type(value).__name__}\): not a kernel argument"):
        pack(value, sizes=sizes)


@pytest.mark.parametrize("number", [1, 16, 32, 33, 64, 65, 256, 257, 512, 513])
def test_many_arguments_are_packed(number):
    values = [index if index % 2 else index / 4 for index in range(number)]
    packed = pack(*values, sizes=(8,) * number)
    assert packed == b"".join(struct.pack("<q" if index % 2 else "<d", value) for index, value in enumerate(values))


@pytest.mark.parametrize(
    ("layout", "values", "packed"),
    [
        (((0, 4), (4, 8)), (1, 2), struct.pack("<iq", 1, 2)),
        (((0, 1), (8, 8)), (1, -2), struct.pack("<b7xq", 1, -2)),
        (((0, 4), (4, 8)), (0.5, 2**63 - 1), struct.pack("<fq", 0.5, 2**63 - 1)),
        (((0, 2), (2, 4), (8, 8)), (0.5, 1, 2.5), struct.pack("<ei2xd", 0.5, 1, 2.5)),
    ],
)
def test_arguments_lie_where_the_layout_says_whether_that_is_their_alignment_or_not(layout, values, packed):
    assert make_packer(tuple(map(type, values)), values, layout, None)(*values) == packed
