# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the numbers and types of a tensor map may be. What is wrong is told by its name."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from cuda_core_cffi._core.dtypes import NAMES, numpy_dtype
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.typing import TensorMapDataType, TensorMapInterleave, TensorMapSwizzle

E = TypeVar("E", bound=enum.IntEnum)

STRIDE_LIMIT = 2**40
LARGEST_BYTES = 228 << 10  # of a box: the shared memory of a multiprocessor
PIXEL_LIMIT = 2**31  # of where a pixel box ends
ALIGNMENT, WIDE_ALIGNMENT = 16, 32
CORNER_BITS = {3: 16, 4: 8, 5: 5}  # of the offsets of a pixel box, by rank

# By the name of a dtype. Types that the hardware does not know are copied as unsigned integers of their size.
DATA_TYPES = {
    **{item.name.lower(): item for item in TensorMapDataType if item.name.lower() in NAMES.values()},
    "int8": TensorMapDataType.UINT8,
    "int16": TensorMapDataType.UINT16,
    "bool": TensorMapDataType.UINT8,
    **{name: TensorMapDataType.UINT8 for name in NAMES.values() if name.startswith("float8_")},
}
FLOATS = tuple(item for item in TensorMapDataType if item >= TensorMapDataType.FLOAT16)
ELEMENT_BYTES = {item: int("".join(filter(str.isdigit, item.name))) // 8 for item in TensorMapDataType}
SPANS = {TensorMapSwizzle.SWIZZLE_32B: 32, TensorMapSwizzle.SWIZZLE_64B: 64}
WIDEST_SPAN = 128


def alignment_for(interleave: int) -> int:
    """Return of how many bytes addresses and strides are multiples."""
    return WIDE_ALIGNMENT if interleave == TensorMapInterleave.INTERLEAVE_32B else ALIGNMENT


def byte_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, interleave: TensorMapInterleave
) -> list[int]:
    """Return the strides in bytes in the driver's order, without the innermost, which is one element."""
    if shape[-1] != 1 and strides[-1] != 1:
        raise ValueError(
            f"elements along the last dimension must be adjacent, not {strides[-1]} elements apart: copy the array in "
            "C order"
        )
    alignment = alignment_for(interleave)
    found: list[int] = []
    below = shape[-1] * itemsize
    for axis in range(len(shape) - 2, -1, -1):
        stride = strides[axis] * itemsize
        if shape[axis] == 1:  # never used, and libraries give it any value
            stride = min(-(-below // alignment) * alignment, STRIDE_LIMIT - alignment)
        if stride % alignment or not 0 <= stride < STRIDE_LIMIT:
            raise ValueError(
                f"strides[{axis}] must be a multiple of {alignment} bytes, from 0 to 2**40 for a tensor map, not "
                f"{stride} bytes ({strides[axis]} elements of {itemsize}): pad the rows"
            )
        found.append(stride)
        below = stride * shape[axis]
    return found


def check_row(fields: dict[str, Any], elements: int, name: str) -> None:
    """Check how many bytes are copied along the innermost dimension."""
    itemsize, swizzle = ELEMENT_BYTES[fields["type"]], TensorMapSwizzle(fields["swizzle"])
    if elements * itemsize % ALIGNMENT:
        raise ValueError(
            f"{name} must be a multiple of {ALIGNMENT // itemsize}, not {elements}: a row of the box has a multiple of "
            f"{ALIGNMENT} bytes"
        )
    span = SPANS.get(swizzle, WIDEST_SPAN)
    limited = fields["interleave"] == TensorMapInterleave.NONE and swizzle != TensorMapSwizzle.NONE
    if limited and elements * itemsize > span:
        raise ValueError(
            f"{name} must be at most {span // itemsize}, not {elements}: a row of the box has at most {span} bytes with"
            f" swizzle {swizzle.name}"
        )


def copied(box: Sequence[int], steps: Sequence[int]) -> int:
    """Return how many elements of a box are copied: of the last dimension all."""
    return math.prod(-(-extent // step) for extent, step in zip(box, (*steps[:-1], 1)))


def check_bytes(fields: dict[str, Any], elements: int, name: str) -> None:
    """Check that what is copied at a time has room in shared memory."""
    size = elements * ELEMENT_BYTES[fields["type"]]
    if size > LARGEST_BYTES:
        raise ValueError(
            f"{name} must be at most {LARGEST_BYTES} bytes, the shared memory of a multiprocessor, not {size}: "
            f"{elements} elements of {ELEMENT_BYTES[fields['type']]}"
        )


def find_data_type(own: Any, itemsize: int, given: object) -> TensorMapDataType:
    """Return the type of the elements: what was given, or what the view says."""
    if given is None:
        name = NAMES.get(own) if type(own) is int else getattr(own, "name", None)
        if name is None:
            raise ValueError("the view has no dtype: give data_type")
        return data_type_of(name)
    if isinstance(given, enum.IntEnum):
        data_type = number_of(TensorMapDataType, given, "data_type")
    else:
        data_type = data_type_of(dtype_like(given).name)
    if ELEMENT_BYTES[data_type] != itemsize:
        raise ValueError(
            f"data_type {data_type.name} has {ELEMENT_BYTES[data_type]} bytes, the elements of the view have {itemsize}"
        )
    return data_type


def data_type_of(name: str) -> TensorMapDataType:
    """Return the type for the name of a dtype."""
    try:
        return DATA_TYPES[name]
    except KeyError:
        raise ValueError(
            f"tensor maps have no elements of dtype {name}: give data_type, one of {', '.join(DATA_TYPES)} or a "
            "TensorMapDataType"
        ) from None


def dtype_like(given: object) -> Any:
    """Return what names a dtype as one."""
    try:
        if not isinstance(given, int):
            return numpy_dtype(given)
    except TypeError:
        pass
    raise TypeError(f"data_type must be a dtype or a TensorMapDataType, not {type(given).__name__}: {given!r}")


def number_of(kind: type[E], value: object, name: str) -> E:
    """Return a member of an enumeration: given as such, as one of the driver's with the same number, or by its name."""
    if isinstance(value, kind):
        return value
    if isinstance(value, enum.IntEnum) and type(value).__name__.lower() == f"cu{kind.__name__}".lower():
        return kind(value)
    if isinstance(value, str) and value.upper() in kind.__members__:
        return kind[value.upper()]
    names = ", ".join(kind.__members__)
    if isinstance(value, str):
        raise ValueError(f"{name} must be one of {names}, not {value!r}")
    raise TypeError(f"{name} must be a {kind.__name__} ({names}), not {type(value).__name__}")


def integers(values: Iterable[int], name: str) -> tuple[int, ...]:
    """Return several integers as a tuple."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a tuple of int, not {type(values).__name__}")
    return tuple(integer(value, f"{name}[{index}]") for index, value in enumerate(values))


def between(value: int, name: str, least: int, most: int) -> int:
    """Return an integer that is in a range."""
    number = integer(value, name)
    if not least <= number <= most:
        raise ValueError(f"{name} must be {least} to {most}, not {number}")
    return number


def corner(values: Sequence[int], name: str, rank: int) -> list[int]:
    """Return the corner of a pixel box in the driver's order."""
    found, limit = integers(values, name), 1 << CORNER_BITS[rank] - 1
    if len(found) != rank - 2:
        raise ValueError(
            f"{name} must have {rank - 2} numbers, for the dimensions between images and channels, not {len(found)}"
        )
    return [between(found[axis], f"{name}[{axis}]", -limit, limit - 1) for axis in range(rank - 3, -1, -1)]


def check_pixels(extent: int, low: int, high: int) -> None:
    """Check that a pixel box has pixels along a dimension, and not too many."""
    if extent + high - low < 1:
        raise ValueError(f"the pixel box is empty: from {low} to {extent} + {high} along a dimension of {extent}")
    if extent + high >= PIXEL_LIMIT:
        raise ValueError(f"the pixel box must end before 2**31, not at {extent} + {high}")
