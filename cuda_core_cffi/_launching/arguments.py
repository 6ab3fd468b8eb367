# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments: from Python values to the bytes that a kernel reads.

A *packer* is a function from values to the packed parameter buffer, made for one kernel and one combination of argument
types. Making it is slow and happens once. Its fast packer packs what is usual: in C on CPython
(``include/python/ccc_packer.h``), elsewhere by a function that is compiled for it (``_core/compiled_packing.py``).
"""

from __future__ import annotations

import operator
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from cuda_core_cffi._code.mangling import FLOATING
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._launching.argument_types import FAMILIES, USER_DEFINED, argument_type, ctypes_type, numpy_type
from cuda_core_cffi._launching.bindless import Bindless
from cuda_core_cffi._launching.graph_condition import GraphCondition
from cuda_core_cffi._memory import Buffer

T = TypeVar("T")

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
MOST_SHOWN_BITS = 256  # of an integer in a message
ARRAY_HINT = ": buffer.copy_from(array, stream=stream)"
CFFI_FLOATS = ("float", "double", "long double")
TARGET = ffi.typeof("ccc_target *")
MAX_ALIGNMENT = 16
NUMBERS = tuple("?bBhHiIqQfd")  # codes of numbers that are packed on the fast path
CTYPES_NUMBERS = "bBhHiIlLqQ?fd"  # their values are Python's numbers

# How a value is packed on the fast path. A NaN in a parameter of four bytes is not: converted to Python's float and
# back, a signalling one is quiet.
VALUE, VALUE_OF = "v", "a"  # as a number: the value, or its attribute of that name
PARTS = "c"  # its real and its imaginary part
OBJECT = "o"  # the address of a buffer, or the handle of a texture or a surface
FUNCTION = "-"  # by the slot's function, but bytes of the right length as they are


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


class Slot(NamedTuple):
    """How one argument is packed. C reads it by position.

    Attributes
    ----------
    code : str
        Its part of the ``struct`` format.
    way : str
        How a value is packed on the fast path.
    pack : callable
        The slow path, for one value: with range checks and clear errors.
    only : type or None
        The only type on the fast path. None: any type.
    offset, size : int
        Where it is among the arguments, in bytes.
    """

    code: str
    way: str
    pack: Callable[[Any], bytes]
    only: type | None = None
    offset: int = 0
    size: int = 0


def c_handles_of(values: Sequence[Any]) -> Any:
    """Return the C handles of the objects among values, for a launch that keeps them from being destroyed.

    They are read before the addresses are: a buffer that moves in between has left the C handle that is found here.
    """
    return ffi.new("ccc_handle *[]", [value._c_handle for value in values if isinstance(value, (Bindless, Buffer))])


def pack_slowly(slots: Sequence[Slot], size: int, values: tuple[Any, ...]) -> bytes:
    """Return the bytes for values, packed one by one.

    So unsigned values past the signed range are packed, and errors say more.
    """
    packed = bytearray(size)
    for slot, value in zip(slots, values):
        packed[slot.offset : slot.offset + slot.size] = slot.pack(value)
    return bytes(packed)


class Packer:
    """From values of certain types to the bytes that a kernel reads.

    Attributes
    ----------
    fast : object
        What ``_core.calls`` launches with, and packs. It takes values of these types alone, and what is usual of them.
    target : CFFI pointer
        The kernel, and what is known of its parameters, for launches and nodes (``ccc_target``).
    """

    __slots__ = ("_offsets", "_slots", "fast", "target")

    def __init__(self, slots: tuple[Slot, ...], size: int, kernel: Any, known: bool) -> None:
        self._slots = slots
        self._offsets = ffi.new("uint32_t[]", [slot.offset for slot in slots] or 1) if known else ffi.NULL
        self.target = ffi.new(TARGET, (kernel, size, self._offsets, len(slots)))
        self.fast = calls.make_packer(slots, self.target)

    def retarget(self, kernel: Any) -> Packer:
        """Return the same for another object of the kernel, given as its C handle."""
        made = Packer.__new__(Packer)
        made._slots, made._offsets = self._slots, self._offsets
        made.target = target = ffi.new(TARGET, self.target[0])
        target.kernel = kernel
        made.fast = calls.make_packer(self._slots, target)
        return made

    def __call__(self, *values: Any) -> bytes:
        data = calls.pack(self.fast, values)
        return self.pack_on_slow_path(values) if data is None else data

    def pack_on_slow_path(self, values: tuple[Any, ...]) -> bytes:
        """Return the bytes for values that are of the types that this was made for."""
        return pack_slowly(self._slots, self.target.size, values)


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
        value, cls = values[parameter.position], types[parameter.position]
        slot = make_slot(cls, value, parameter)
        if slot.way != OBJECT:  # nothing else has handles of these kinds
            slot = slot._replace(only=cls)
        return slot, alignment(value, struct.calcsize("<" + slot.code))

    slots, size = lay_out(len(types), layout, kinds, describe)
    return Packer(slots, size, kernel, layout is not None)


def lay_out(
    count: int,
    layout: Sequence[tuple[int, int]] | None,
    kinds: Sequence[str | None] | None,
    describe: Callable[[Parameter], tuple[Slot, int]],
) -> tuple[tuple[Slot, ...], int]:
    """Return how each argument is packed, and where; and the size of them all, in bytes.

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
    slots: list[Slot] = []
    end = 0
    for index in range(count):
        kind = kinds[index] if kinds is not None and index < len(kinds) else None
        offset, size = (None, None) if layout is None else layout[index]
        slot, boundary = describe(Parameter(index, size, kind, offset))
        if offset is None:
            offset = -(-end // boundary) * boundary
        slots.append(slot._replace(offset=offset, size=struct.calcsize("<" + slot.code)))
        end = offset + slots[-1].size
    return tuple(slots), end


def declared_slot(given: Any, parameter: Parameter) -> tuple[Slot, int]:
    """Return how values for ``parameter`` are packed, if they are of a type, and how they are aligned, in bytes.

    Values that are not quickly converted are taken as :func:`launch` takes them for a parameter of that width and
    kind, or refused with the same words.

    Parameters
    ----------
    given : type or numpy.dtype
        ``Buffer``, ``int``, ``float``, ``bool``, ``complex``, ``bytes`` for a structure, or a type of NumPy or ctypes.
    parameter : Parameter
        What is known of the parameter.

    Raises
    ------
    TypeError
        If it is no such type, or not one for this parameter.
    """
    where = f"argument type {parameter.position} ({getattr(given, '__name__', given)})"
    declared = argument_type(given)
    if declared is None:
        raise TypeError(
            f"{where}: not a type of kernel arguments; pass Buffer, int, float, bool, complex, bytes for a structure, "
            "or a type of NumPy or ctypes"
        )
    kinds, codes, default = FAMILIES[declared.family]
    if parameter.kind is not None and parameter.kind not in kinds:
        raise TypeError(f"{where}: the kernel declares {KIND_NAMES[parameter.kind]}")
    if None not in (declared.size, parameter.size) and declared.size != parameter.size:
        raise TypeError(f"{where}: has {declared.size} bytes, but the kernel's parameter has {parameter.size}")
    size = declared.size or parameter.size or default
    if size is None:
        raise TypeError(f"{where}: the driver does not tell how large the parameter is; pass a type that does")
    if codes and size not in codes:
        raise TypeError(f"{where}: takes {', '.join(map(str, codes))} bytes, not {size}")
    # the kind that a structure is declared as says whether a complex number may be one
    kind = kinds[0] if codes or parameter.kind is None else parameter.kind
    known = parameter._replace(size=size, kind=kind, source="this launch is prepared for")
    make, convert = DECLARED["int" if declared.family == "bool" and size > 1 else declared.family]

    def pack(value: Any) -> bytes:
        try:
            converted = convert(value, size, declared.signed)
        except TypeError:
            return make_slot(type(value), value, known).pack(value)
        except OverflowError as error:
            raise OverflowError(known.wrong(value, str(error))) from None
        return slot.pack(converted)

    slot = make(None, known)
    if declared.signed is False:
        slot = slot._replace(code=slot.code.upper())
    only = bool if slot.code == "?" else None
    return slot._replace(pack=pack, only=only), declared.alignment or min(size & -size, MAX_ALIGNMENT)


def accept_as_given(value: Any, size: int, signed: bool | None) -> Any:
    """Leave a value to what launches do with its type."""
    raise TypeError


def to_buffer(value: Any, size: int, signed: bool | None) -> Buffer:
    """Return a buffer."""
    if not isinstance(value, Buffer):
        raise TypeError
    return value


def to_int(value: Any, size: int, signed: bool | None) -> int:
    """Return whatever is an integer for Python as one that is in the range of its type."""
    number = operator.index(value)
    bits = 8 * size
    least = 0 if signed is False else -(1 << bits - 1)
    most = (1 << bits - (signed is True)) - 1
    if not least <= number <= most:
        raise OverflowError(f"{number} is not in the range of {least} to {most}")
    return number


def to_bool(value: Any, size: int, signed: bool | None) -> Any:
    """Refuse integers that are no truth values."""
    if isinstance(value, int) and value not in (0, 1):
        raise OverflowError(f"{value} is neither 0 nor 1")
    raise TypeError


def to_float(value: Any, size: int, signed: bool | None) -> float:
    """Return whatever Python converts to a float, but text, and integers, which are not to be rounded."""
    if isinstance(value, int):
        raise TypeError
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError
    return to_real(float, value)


def to_complex(value: Any, size: int, signed: bool | None) -> complex:
    """Return a complex or a real number."""
    if not isinstance(value, (complex, float, int)):
        raise TypeError
    return to_real(complex, value)


def to_real(kind: Callable[[Any], T], value: Any) -> T:
    """Convert a number."""
    try:
        return kind(value)
    except OverflowError:
        raise OverflowError("is too large for a float") from None


def make_slot(cls: type, value: Any, parameter: Parameter) -> Slot:
    """Return how an argument of type ``cls`` is packed for ``parameter``."""
    numpy, ctypes = sys.modules.get("numpy"), sys.modules.get("ctypes")
    if issubclass(cls, (Bindless, Buffer)):
        return object_slot(value, parameter)
    if issubclass(cls, GraphCondition):
        choose("address", value, parameter)
        return raw_slot(value, parameter, lambda condition: struct.pack("<Q", condition._handle), None)
    if numpy is not None and issubclass(cls, numpy.generic):
        if issubclass(cls, numpy.void):
            return record_slot(value, parameter)
        if issubclass(cls, (numpy.number, numpy.bool_)) or value.dtype.isbuiltin == USER_DEFINED:
            return numpy_slot(value, parameter)
    if issubclass(cls, int) and parameter.kind == FLOATING:
        return exact_slot(value, parameter)
    if issubclass(cls, bool):
        return bool_slot(value, parameter)
    if issubclass(cls, int):
        return int_slot(value, parameter)
    if issubclass(cls, float):
        return float_slot(value, parameter)
    if issubclass(cls, complex):
        return complex_slot(value, parameter)
    if issubclass(cls, (bytes, bytearray, memoryview)):
        return raw_slot(value, parameter, memory_bytes, None)
    if ctypes is not None and issubclass(cls, (ctypes._SimpleCData, ctypes.Structure, ctypes.Union)):
        return ctypes_slot(value, parameter)
    if hasattr(cls, "_kernel_bytes"):
        slot = raw_slot(value, parameter, cls._kernel_bytes, FAMILIES["structure"].kinds)
        return slot._replace(pack=cls._kernel_bytes)  # of one size
    if issubclass(cls, ffi.CData):
        return cdata_slot(value, parameter)
    if numpy is not None and issubclass(cls, numpy.ndarray):
        raise TypeError(parameter.wrong(value, f"an array of host memory; copy it to a Buffer first{ARRAY_HINT}"))
    raise TypeError(
        parameter.wrong(
            value,
            "not a kernel argument; pass a Buffer, a texture or a surface, a number, a NumPy or ctypes scalar, or a "
            "structure as bytes, a structured scalar of NumPy, a ctypes structure or a CFFI structure",
        )
    )


def check_kind(value: object, parameter: Parameter, kinds: str) -> None:
    """Raise if the parameter is known to be of another kind than the value."""
    if parameter.kind is not None and parameter.kind not in kinds:
        raise TypeError(parameter.wrong(value, f"{parameter.source} {KIND_NAMES[parameter.kind]}"))


def choose(family: str, value: object, parameter: Parameter) -> str:
    """Return the ``struct`` code for the size that the kernel declares."""
    kinds, codes, default = FAMILIES[family]
    check_kind(value, parameter, kinds)
    code = codes.get(default if parameter.size is None else parameter.size)  # type: ignore[arg-type]
    if code is None:
        sizes = ", ".join(map(str, codes))
        raise TypeError(parameter.wrong(value, f"takes {sizes} bytes, but the kernel's parameter has {parameter.size}"))
    return code


def object_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack the address of a buffer, or the handle of a texture or a surface."""

    def pack(item: Bindless | Buffer) -> bytes:
        address = item._driver_handle
        if item.is_closed:
            name = "Buffer" if isinstance(item, Buffer) else type(item).__name__
            raise RuntimeError(parameter.wrong(item, f"the {name} is closed"))
        return struct.pack("<Q", address)

    return Slot(choose("address", value, parameter), OBJECT, pack)


def int_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack an integer in the width that the kernel declares, signed or unsigned."""
    code = choose("int", value, parameter)
    size = struct.calcsize(code)

    def pack(item: int) -> bytes:
        try:
            return int.to_bytes(item, size, "little", signed=item < 0)
        except OverflowError:
            limits = f"-2**{8 * size - 1} to 2**{8 * size} - 1"
            raise OverflowError(parameter.wrong(item, f"{item} does not fit in {size} bytes: {limits}")) from None

    return Slot(code, VALUE, pack)


def exact_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack an integer as a float, which has to hold it exactly."""
    code = choose("float", value, parameter)
    return Slot(f"{struct.calcsize(code)}s", FUNCTION, lambda item: pack_exactly(code, item, parameter))


def pack_exactly(code: str, item: int, parameter: Parameter) -> bytes:
    """Return the bytes of the float that an integer is."""
    try:
        data = struct.pack("<" + code, item)
    except (OverflowError, struct.error):  # struct.error: an int that no float holds
        data = b""
    if not data or struct.unpack("<" + code, data)[0] != item:
        size = struct.calcsize("<" + code)
        number = str(int(item)) if item.bit_length() <= MOST_SHOWN_BITS else f"a number of {item.bit_length()} bits"
        why = f"{number} is not exact as a float of {size} bytes; pass a float if it may be rounded"
        raise OverflowError(parameter.wrong(item, why))
    return data


def bool_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a truth value in one byte, or as an integer where the kernel declares more."""
    if parameter.size not in (None, 1):
        return int_slot(value, parameter)
    return Slot(choose("bool", value, parameter), VALUE, lambda item: struct.pack("<?", item))


def float_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a float in the width that the kernel declares."""
    code = choose("float", value, parameter)
    slot = Slot(code, VALUE, lambda item: pack_floats(code, item, (item,), parameter))
    return slot if code in NUMBERS else slot._replace(code=f"{struct.calcsize(code)}s", way=FUNCTION)


def complex_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a complex number as its real and its imaginary part."""
    code = choose("complex", value, parameter)
    return Slot(code, PARTS, lambda item: pack_floats(code, item, (item.real, item.imag), parameter))


def pack_floats(code: str, item: complex, parts: tuple[float, ...], parameter: Parameter) -> bytes:
    """Return the bytes of a number, given as its parts."""
    try:
        return struct.pack("<" + code, *parts)
    except OverflowError:
        size = struct.calcsize("<" + code[0])
        raise OverflowError(parameter.wrong(item, f"{item} is too large for a float of {size} bytes")) from None


def raw_slot(value: Any, parameter: Parameter, convert: Callable[[Any], bytes], kinds: str | None) -> Slot:
    """Pack something that has a size of its own, which must be the parameter's, and perhaps a kind."""
    if kinds is not None:
        check_kind(value, parameter, kinds)
    size = len(convert(value)) if parameter.size is None else parameter.size

    def pack(item: Any) -> bytes:
        data = convert(item)
        if len(data) != size:
            raise TypeError(parameter.wrong(item, f"has {len(data)} bytes, but the kernel's parameter has {size}"))
        return data

    pack(value)
    return Slot(f"{size}s", FUNCTION, pack)


def ctypes_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack an object of ctypes: a number as Python's, which its ``value`` is, and else its bytes."""
    cls = type(value)
    found = ctypes_type(cls)
    letter = getattr(cls, "_type_", "")
    # a structure may stand for everything of its size; what is of no family is a long double
    kinds = (FAMILIES[found.family].kinds if found else "f") if letter else None
    slot = raw_slot(value, parameter, memory_bytes, kinds)
    plain = cls.__base__ is sys.modules["ctypes"]._SimpleCData and getattr(cls, "__ctype_le__", None) is cls
    if found is None or not plain or letter not in CTYPES_NUMBERS:
        return slot
    return slot._replace(code=found.code, way=VALUE_OF)


def cdata_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a CFFI object. All C types share a Python type, so each value is checked."""

    def convert(item: Any) -> bytes:
        kinds = cdata_kinds(ffi.typeof(item))
        if kinds is not None:
            check_kind(item, parameter, kinds)
        return cdata_bytes(item)

    return raw_slot(value, parameter, convert, None)


def numpy_slot(value: Any, parameter: Parameter) -> Slot:
    """Pack a scalar of NumPy: most numbers as Python's, to which they are converted faster than to bytes."""
    found = numpy_type(value.dtype)
    kinds = FAMILIES[found.family if found else "int"].kinds  # a duration is of no family
    slot = raw_slot(value, parameter, lambda item: item.tobytes(), kinds)
    if found is None or found.code not in NUMBERS or value.dtype.type is not type(value):
        return slot
    return slot._replace(code=found.code, way=VALUE)


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


def cdata_kinds(ctype: Any) -> str | None:
    """Return the kinds of parameters that take a CFFI type; None for a structure, which goes for all of its size."""
    if ctype.kind in ("pointer", "function"):
        return FAMILIES["address"].kinds
    if ctype.kind not in ("primitive", "enum"):
        return None
    if "complex" in ctype.cname:
        return FAMILIES["complex"].kinds
    return FAMILIES["float" if ctype.cname in CFFI_FLOATS else "int"].kinds


DECLARED: dict[str, tuple[Callable[[Any, Parameter], Slot], Callable[[Any, int, bool | None], Any]]] = {
    "address": (object_slot, to_buffer),
    "int": (int_slot, to_int),
    "bool": (bool_slot, to_bool),
    "float": (float_slot, to_float),
    "half": (float_slot, to_float),
    "complex": (complex_slot, to_complex),
    "structure": (lambda _, parameter: Slot(f"{parameter.size}s", FUNCTION, bytes), accept_as_given),
}
"""For each family the slot, and what a value is converted to first; TypeError: it is taken as by launches."""
