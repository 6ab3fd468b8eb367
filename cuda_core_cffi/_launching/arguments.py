# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments: from Python values to the bytes that a kernel reads.

A *packer* is a function from values to the packed parameter buffer, made for one kernel and one combination of argument
types. Making it is slow and happens once. Its fast packer (``_core.calls``) packs what is usual.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cuda_core_cffi._core import calls
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.packing import (
    ADDRESS,
    ADDRESS_OF,
    ARGUMENT_OF,
    AS_IS,
    HANDLE_OF,
    PARTS,
    UNLESS_NAN,
    VALUE_OF,
    VALUE_UNLESS_NAN,
    Field,
    Slot,
    by_function,
    if_bytes,
)
from cuda_core_cffi._launching.bindless import Bindless
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi._memory import Buffer

INT_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
FLOAT_CODES = {2: "e", 4: "f", 8: "d"}
COMPLEX_CODES = {8: "ff", 16: "dd"}
KIND_NAMES = {
    "f": "a floating-point parameter",
    "i": "an integer parameter",
    "p": "a pointer parameter",
    **dict.fromkeys(
        "bc",
        "a structure parameter, which takes bytes, a structure, or a scalar of NumPy or ml_dtypes of its type, such as "
        "numpy.float16 for __half",
    ),
}
# Kinds of parameters (_code/mangling.py) by the kind of the value, which may also be a number of half precision.
# An address is often kept as a number.
TAKEN_BY = {"i": "ip", "p": "ip", "f": "f", "h": "fc", "c": "c", "b": "bc"}
CTYPES_KINDS = {
    **dict.fromkeys("bBhHiIlLqQ?cu", "i"),
    **dict.fromkeys("fd", "f"),
    **dict.fromkeys("PzZ", "p"),
    **dict.fromkeys(["F", "D", "Zf", "Zd"], "c"),  # in CPython 3.14, and from 3.15 on
}
CFFI_FLOATS = ("float", "double", "long double")
POINTER_SIZE = 8
HALF_SIZE = 2
TARGET = ffi.typeof("ccc_target *")
MAX_ALIGNMENT = 16
CTYPES_NUMBERS = "bBhHiIlLqQ?fd"  # their values are Python's numbers
UNSIGNED_CTYPES = "BHILQP"
USER_DEFINED = 2  # numpy.dtype.isbuiltin of types that another library adds, such as bfloat16


class Parameter(NamedTuple):
    """What is known of a kernel's parameter: position, size and offset in bytes, and kind, where they are known.

    ``source`` is who says of which kind it is.
    """

    position: int
    size: int | None
    kind: str | None
    offset: int | None = None
    source: str = "the kernel declares"

    def wrong(self, value: object, why: str) -> str:
        """Return the text of an error about this parameter."""
        return f"kernel argument {self.position} ({type(value).__name__}): {why}"


def c_handles_of(values: Sequence[Any]) -> Any:
    """Return the C handles of the objects among values, for a launch that keeps them from being destroyed.

    They are read before the addresses are: a buffer that moves in between has left the C handle that is found here.
    """
    return ffi.new("ccc_handle *[]", [value._c_handle for value in values if isinstance(value, (Bindless, Buffer))])


class Packer:
    """From values of certain types to the bytes that a kernel reads.

    Attributes
    ----------
    fast : object
        What ``_core.calls`` launches with, and packs. It takes values of these types alone, and what is usual of them.
    target : CFFI pointer
        The kernel, and what is known of its parameters, for launches and nodes (``ccc_target``).
    """

    __slots__ = ("_fields", "_offsets", "fast", "target")

    def __init__(
        self, fields: list[Field], types: tuple[type, ...], size: int, kernel: Any, offsets: list[int] | None
    ) -> None:
        self._fields = fields
        self._offsets = ffi.NULL if offsets is None else ffi.new("uint32_t[]", offsets or 1)
        self.target = ffi.new(TARGET, (kernel, size, self._offsets, len(fields)))
        self.fast = calls.make_packer(fields, types, self.target)

    def retarget(self, kernel: Any) -> Packer:
        """Return the same for another object of the kernel, given as its C handle."""
        made = Packer.__new__(Packer)
        made._fields, made._offsets = self._fields, self._offsets
        made.target = target = ffi.new(TARGET, self.target[0])
        target.kernel = kernel
        made.fast = calls.retarget(self.fast, target)
        return made

    def __call__(self, *values: Any) -> bytes:
        data = calls.pack(self.fast, values)
        return self.pack_on_slow_path(values) if data is None else data

    def pack_on_slow_path(self, values: tuple[Any, ...]) -> bytes:
        """Return the bytes for values that are of the types that this was made for, packed one by one.

        So unsigned values past the signed range are packed, and errors say more.
        """
        return b"".join([bytes(gap) + slot.pack(value) for (gap, slot), value in zip(self._fields, values)])


def make_packer(
    types: tuple[type, ...],
    values: Sequence[Any],
    layout: tuple[tuple[int, int], ...] | None,
    kinds: tuple[str | None, ...] | None,
    kernel: Any = ffi.NULL,
) -> Packer:
    """Return the packer for a kernel and the types of its arguments.

    Parameters
    ----------
    types : tuple of type
        The argument types.
    values : sequence
        Values of these types, for the messages.
    layout : tuple of (int, int) or None
        Offset and size in bytes of each parameter. None where the driver does not tell: then a Python int takes 8
        bytes, a float 8, and everything is aligned to its size, or as its structure type says.
    kinds : tuple of str or None
        ``"f"``, ``"i"``, ``"p"``, ``"b"`` or None for each parameter.
    kernel : CFFI pointer, optional
        The C handle of the kernel, for records of launches.

    Returns
    -------
    callable
        From values to bytes. Its errors name the argument.

    Raises
    ------
    TypeError
        If a type cannot be a kernel argument, or not for this parameter.
    ValueError
        If the number of arguments is wrong.
    """

    def describe(parameter: Parameter) -> tuple[Slot, int]:
        value = values[parameter.position]
        slot = make_slot(types[parameter.position], value, parameter)
        return slot, alignment(value, struct.calcsize("<" + slot.code))

    fields, size = lay_out(len(types), layout, kinds, describe)
    return Packer(fields, types, size, kernel, None if layout is None else [offset for offset, _ in layout])


def lay_out(
    count: int,
    layout: Sequence[tuple[int, int]] | None,
    kinds: Sequence[str | None] | None,
    describe: Callable[[Parameter], tuple[Slot, int]],
) -> tuple[list[Field], int]:
    """Return for each argument the padding before it, in bytes, and how it is packed; and the size of them all.

    Parameters
    ----------
    count : int
        The number of arguments.
    layout, kinds
        As for :func:`make_packer`.
    describe : callable
        From a parameter to how its argument is packed, and how it is aligned where there is no layout.

    Raises
    ------
    ValueError
        If the number of arguments is wrong.
    """
    if layout is not None and count != len(layout):
        raise ValueError(f"the kernel takes {len(layout)} argument{'s' * (len(layout) != 1)}, not {count}")
    fields: list[Field] = []
    end = 0
    for index in range(count):
        kind = kinds[index] if kinds is not None and index < len(kinds) else None
        offset, size = (None, None) if layout is None else layout[index]
        slot, boundary = describe(Parameter(index, size, kind, offset))
        if offset is None:
            offset = -(-end // boundary) * boundary
        fields.append((offset - end, slot))
        end = offset + struct.calcsize("<" + slot.code)
    return fields, end


def make_slot(cls: type, value: Any, parameter: Parameter) -> Slot:
    """Return how an argument of type ``cls`` is packed for ``parameter``."""
    numpy, ctypes = sys.modules.get("numpy"), sys.modules.get("ctypes")
    if issubclass(cls, Buffer):
        return buffer_slot(value, parameter)
    if issubclass(cls, GraphCondition):
        return condition_slot(value, parameter)
    if issubclass(cls, Bindless):
        return bindless_slot(value, parameter)
    if numpy is not None and issubclass(cls, numpy.generic):
        if issubclass(cls, numpy.void):
            return record_slot(value, parameter)
        if issubclass(cls, (numpy.number, numpy.bool_)) or value.dtype.isbuiltin == USER_DEFINED:
            return numpy_slot(value, parameter)
    if issubclass(cls, bool):
        return bool_slot(value, parameter)
    if issubclass(cls, int):
        return int_slot(value, parameter)
    if issubclass(cls, float):
        return float_slot(value, parameter)
    if issubclass(cls, complex):
        return complex_slot(value, parameter)
    if issubclass(cls, (bytes, bytearray, memoryview)):
        return bytes_slot(value, parameter)
    if ctypes is not None and issubclass(cls, (ctypes._SimpleCData, ctypes.Structure, ctypes.Union)):
        return ctypes_slot(value, parameter)
    if hasattr(cls, "_kernel_bytes"):
        return raw_slot(value, parameter, cls._kernel_bytes, "b")._replace(pack=cls._kernel_bytes)  # of one size
    if issubclass(cls, ffi.CData):
        return cdata_slot(value, parameter)
    raise TypeError(
        parameter.wrong(
            value,
            "not a kernel argument; pass a Buffer, a texture or a surface, a number, a NumPy or ctypes scalar, or a "
            "structure as bytes, a structured scalar of NumPy, a ctypes structure or a CFFI structure",
        )
    )


def check_kind(value: object, parameter: Parameter, *accepted: str) -> None:
    """Raise if the parameter is known to be of another kind than the value."""
    if parameter.kind is not None and parameter.kind not in accepted:
        raise TypeError(parameter.wrong(value, f"{parameter.source} {KIND_NAMES[parameter.kind]}"))


def choose(codes: dict[int, str], default: int, value: object, parameter: Parameter) -> str:
    """Return the ``struct`` code for the size that the kernel declares."""
    code = codes.get(default if parameter.size is None else parameter.size)
    if code is None:
        sizes = ", ".join(map(str, codes))
        raise TypeError(parameter.wrong(value, f"takes {sizes} bytes, but the kernel's parameter has {parameter.size}"))
    return code


def buffer_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack the address of a buffer."""
    check_kind(value, parameter, "p", "i")
    choose({POINTER_SIZE: "Q"}, POINTER_SIZE, value, parameter)

    def pack(buffer: Buffer) -> bytes:
        if buffer.is_closed:
            raise RuntimeError(parameter.wrong(buffer, "the Buffer is closed"))
        address = int(ffi.cast("intptr_t", buffer.handle))  # where a handle is a long, of which PyPy has another type
        buffer._packed_address = address  # asked for once: closing takes it away again
        if buffer.is_closed or buffer.handle != address:  # closed or moved by another thread, since
            buffer._packed_address = None
        return struct.pack("<q", address)

    return Slot(ADDRESS, ADDRESS_OF, pack, False)  # nothing else has one


def condition_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack the handle of a graph's condition, with which the kernel sets it."""
    check_kind(value, parameter, "i", "p")
    choose({POINTER_SIZE: "Q"}, POINTER_SIZE, value, parameter)
    return Slot("Q", HANDLE_OF, lambda condition: struct.pack("<Q", condition._handle))


def bindless_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack the handle of a texture or a surface."""
    check_kind(value, parameter, "i", "p")
    choose({POINTER_SIZE: "Q"}, POINTER_SIZE, value, parameter)

    def pack(item: Bindless) -> bytes:
        handle = item._argument
        if handle is None:
            raise RuntimeError(parameter.wrong(item, f"the {type(item).__name__} is closed"))
        return struct.pack("<Q", handle)

    return Slot("Q", ARGUMENT_OF, pack)


def int_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack an integer in the width that the kernel declares, signed or unsigned."""
    check_kind(value, parameter, "i", "p")
    code = choose(INT_CODES, POINTER_SIZE, value, parameter)
    bits = 8 * struct.calcsize(code)

    def pack(item: int) -> bytes:
        if not -(1 << bits - 1) <= item < 1 << bits:
            raise OverflowError(
                parameter.wrong(item, f"{item} does not fit in {bits // 8} bytes: -2**{bits - 1} to 2**{bits} - 1")
            )
        return struct.pack("<" + code.upper(), item & (1 << bits) - 1)

    return Slot(code, AS_IS, pack)


def bool_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a truth value in one byte, or as an integer where the kernel declares more."""
    if parameter.size not in (None, 1):
        return int_slot(value, parameter)
    check_kind(value, parameter, "i")
    return Slot("?", AS_IS, lambda item: struct.pack("<?", item))


def float_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a float in the width that the kernel declares."""
    check_kind(value, parameter, "f")
    code = choose(FLOAT_CODES, 8, value, parameter)

    def pack(item: float) -> bytes:
        try:
            return struct.pack("<" + code, item)
        except OverflowError:
            raise OverflowError(
                parameter.wrong(item, f"{item} is too large for a float of {struct.calcsize(code)} bytes")
            ) from None

    return Slot(code, AS_IS, pack)


def complex_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a complex number as its real and its imaginary part."""
    check_kind(value, parameter, "c")
    code = choose(COMPLEX_CODES, 16, value, parameter)

    def pack(item: complex) -> bytes:
        try:
            return struct.pack("<" + code, item.real, item.imag)
        except OverflowError:
            raise OverflowError(
                parameter.wrong(item, f"{item} is too large for {struct.calcsize(code)} bytes")
            ) from None

    return Slot(code, PARTS, pack)


def raw_slot(value: Any, parameter: Parameter, convert: Callable[[Any], bytes], kind: str | None) -> Slot:
    """Pack something that has a size of its own, which must be the parameter's, and perhaps a kind."""
    if kind is not None:
        check_kind(value, parameter, *TAKEN_BY[kind])
    size = len(convert(value)) if parameter.size is None else parameter.size

    def pack(item: Any) -> bytes:
        data = convert(item)
        if len(data) != size:
            raise TypeError(parameter.wrong(item, f"has {len(data)} bytes, but the kernel's parameter has {size}"))
        return data

    pack(value)
    return Slot(f"{size}s", by_function(parameter.position), pack)


def bytes_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a structure that is given as its bytes."""
    slot = raw_slot(value, parameter, memory_bytes, None)
    if type(value) is not bytes:
        return slot
    return slot._replace(way=if_bytes(parameter.position, slot.code))


def ctypes_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack an object of ctypes: a number as Python's, which its ``value`` is, and else its bytes."""
    cls = type(value)
    letter = getattr(cls, "_type_", "")
    kind = CTYPES_KINDS.get(letter, "f") if letter else None  # a long double is no structure either
    slot = raw_slot(value, parameter, memory_bytes, kind)
    plain = cls.__base__ is sys.modules["ctypes"]._SimpleCData and getattr(cls, "__ctype_le__", None) is cls
    if not plain or letter not in CTYPES_NUMBERS:
        return slot
    if letter in "?d":
        return slot._replace(code=letter, way=VALUE_OF)
    if letter == "f":
        return slot._replace(code=letter, way=VALUE_UNLESS_NAN)
    code = INT_CODES[struct.calcsize(letter)]
    return slot._replace(code=code.upper() if letter in UNSIGNED_CTYPES else code, way=VALUE_OF)


def cdata_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a CFFI object. All C types share a Python type, so each value is checked."""

    def convert(item: Any) -> bytes:
        kind = cdata_kind(ffi.typeof(item))
        if kind is not None:
            check_kind(item, parameter, *TAKEN_BY[kind])
        return cdata_bytes(item)

    return raw_slot(value, parameter, convert, None)


def numpy_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a scalar of NumPy: most numbers as Python's, to which they are converted faster than to bytes."""
    slot = raw_slot(value, parameter, lambda item: item.tobytes(), numpy_kind(value))
    dtype = value.dtype
    if dtype.type is not type(value):
        return slot
    if dtype.kind == "b":
        return slot._replace(code="?", way=AS_IS)
    if dtype.kind in "iu":
        code = INT_CODES[dtype.itemsize]
        return slot._replace(code=code.upper() if dtype.kind == "u" else code, way=AS_IS)
    if dtype.kind == "f" and dtype.itemsize in FLOAT_CODES:
        code = FLOAT_CODES[dtype.itemsize]
        return slot._replace(code=code, way=AS_IS if code == "d" else UNLESS_NAN)
    return slot


def record_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a structured scalar of NumPy. Its Python type says nothing of its fields: each new dtype is looked at."""
    checked: Any = None

    def convert(record: Any) -> bytes:
        nonlocal checked
        dtype = record.dtype
        if dtype is not checked:
            check_record(record, dtype, parameter)
            checked = dtype
        data: bytes = record.tobytes()
        return data

    return raw_slot(value, parameter, convert, None)


def check_record(record: Any, dtype: Any, parameter: Parameter) -> None:
    """Raise if a structured scalar is not laid out as the kernel's parameter can be."""
    why = None
    if dtype.hasobject:
        why = f"has Python objects in it: {dtype}"
    elif dtype != dtype.newbyteorder("="):  # isnative does not look into subarrays
        why = f"has fields in another byte order than this machine: {dtype}"
    elif parameter.size is not None and dtype.itemsize != parameter.size:
        hint = "" if dtype.isalignedstruct or dtype.names is None else "; make the dtype with align=True"
        why = f"has {dtype.itemsize} bytes, but the kernel's parameter has {parameter.size}{hint}"
    elif parameter.offset is not None and parameter.offset % dtype.alignment:
        why = (
            f"is aligned to {dtype.alignment} bytes, but the kernel's parameter is at {parameter.offset}, no multiple "
            "of that: it has other fields"
        )
    if why is not None:
        raise TypeError(parameter.wrong(record, why))


def alignment(value: Any, length: int) -> int:
    """Return the alignment of an argument of ``length`` bytes for which no layout is known."""
    numpy, ctypes = sys.modules.get("numpy"), sys.modules.get("ctypes")
    if ctypes is not None and isinstance(value, (ctypes.Structure, ctypes.Union)):
        return int(ctypes.alignment(value))
    if numpy is not None and isinstance(value, numpy.void):
        return int(value.dtype.alignment)
    if isinstance(value, ffi.CData):
        return int(ffi.alignof(ffi.typeof(value)))
    return getattr(type(value), "_KERNEL_ALIGNMENT", min(length & -length, MAX_ALIGNMENT) or 1)


def memory_bytes(value: Any) -> bytes:
    """Return the bytes of an object with the buffer protocol."""
    return value.tobytes() if isinstance(value, memoryview) else bytes(value)


def cdata_bytes(value: Any) -> bytes:
    """Return the bytes of a CFFI object: a structure's content, a pointer's address, or a number."""
    ctype = ffi.typeof(value)
    if ctype.kind in ("struct", "union"):
        return bytes(ffi.buffer(ffi.addressof(value)))
    if ctype.kind in ("pointer", "function"):
        return struct.pack("<Q", int(ffi.cast("uintptr_t", value)))
    if ctype.kind in ("primitive", "enum"):
        return bytes(ffi.buffer(ffi.new(ffi.getctype(ctype, "[1]"), [value])))
    raise TypeError(f"a CFFI {ctype.cname} cannot be a kernel argument")


def cdata_kind(ctype: Any) -> str | None:
    """Return the kind of a value of a CFFI type; None for a structure, which may stand for everything of its size."""
    if ctype.kind in ("pointer", "function"):
        return "p"
    if ctype.kind not in ("primitive", "enum"):
        return None
    if "complex" in ctype.cname:
        return "c"
    return "f" if ctype.cname in CFFI_FLOATS else "i"


def numpy_kind(value: Any) -> str:
    """Return the kind of a NumPy scalar; numbers of other libraries are classes in C++."""
    dtype = value.dtype
    if dtype.isbuiltin == USER_DEFINED:
        return "b"
    if dtype.kind == "f":
        return "h" if dtype.itemsize == HALF_SIZE else "f"
    return "c" if dtype.kind == "c" else "i"
