# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Files in the format ELF: whether all that they declare is in them, what they are for, and which symbols they have.

Cubins are such files, and so are the objects of host compilers, which carry device code in a section.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

ELF_MAGIC: Final = b"\x7fELF"

# magic, class, byte order, version of the format, type, machine, offset of the segments, of the sections, flags, size
# and number of segments, of sections, index of the section of names
_HEADER: Final = struct.Struct("<4s B B 2x B 7x H H 12x Q Q I 2x H H H H H")
_SEGMENT: Final = struct.Struct("<8x Q 16x Q 16x")  # offset, size in the file
_SECTION: Final = struct.Struct("<I I 16x Q Q I 12x Q")  # name, type, offset, size, link, size of an entry
_SYMBOL: Final = struct.Struct("<I B B H 16x")  # name, type, other, section

_CLASS_64: Final = 2
_LITTLE_ENDIAN: Final = 1
_RELOCATABLE: Final = 1
_MACHINE: Final = struct.Struct("<18x H")
_MACHINE_CUDA: Final = 190
_SYMBOL_TABLE: Final = 2
_STRING_TABLE: Final = 3
_NO_BITS: Final = 8  # a section that takes no room in the file
_READ_AT_MOST: Final = 8  # times the file's size: tables do not overlap, but a name may be the end of another
_MANY: Final = 0xFF00  # numbers from here on mean something else

# Where the flags have the architecture: CUDA 13 moved it.
_VERSION_OF_CUDA_13: Final = 8
_SHIFT_FROM_CUDA_13: Final = 8
_ARCH_MASK: Final = 0xFF

_TYPE_MASK: Final = 0xF
_OBJECT: Final = 1
_FUNCTION: Final = 2
_ENTRY: Final = 0x10  # of a function's `other`: it is a kernel
_INTERNAL: Final = (".", "__nv_reserved")  # how names of what the compiler made for itself begin


class Section(NamedTuple):
    """A section, as the file declares it."""

    name: int
    kind: int
    offset: int
    size: int
    link: int
    entry_size: int


class Symbol(NamedTuple):
    """A symbol of device code."""

    name: str
    is_kernel: bool
    is_variable: bool


class Elf:
    """A file in the format ELF, with 64 bits, low bytes first.

    Other formats are refused with :class:`ValueError`, and files that are not whole: something that they declare lies
    past the end.
    """

    def __init__(self, data: bytes) -> None:
        if len(data) < _HEADER.size:
            raise ValueError(f"it is cut short: {len(data)} bytes are less than its header")
        magic, bits, order, version, kind, _, segments, sections, flags, *counts = _HEADER.unpack_from(data)
        if magic != ELF_MAGIC or bits != _CLASS_64 or order != _LITTLE_ENDIAN:
            raise ValueError("its header is not that of a 64-bit ELF file")
        segment_size, segment_count, section_size, section_count, names = counts
        self._data = data
        self._version, self._flags, self._kind = version, flags, kind
        self._check_segments(segments, segment_size, segment_count)
        self._sections = self._read_sections(sections, section_size, section_count)
        self._check_names(names)

    @property
    def is_relocatable(self) -> bool:
        """Whether it has to be linked."""
        return bool(self._kind == _RELOCATABLE)

    @property
    def arch(self) -> str:
        """The architecture of the device code: ``"sm_90"``, also where it is for ``"sm_90a"``."""
        shift = _SHIFT_FROM_CUDA_13 if self._version >= _VERSION_OF_CUDA_13 else 0
        return f"sm_{self._flags >> shift & _ARCH_MASK}"

    def symbols(self) -> Iterator[Symbol]:
        """Yield the kernels and the variables that are defined here; what is damaged is left out.

        Tables or names that lie on top of one another end this, once it has read several times the file's size.
        """
        left = _READ_AT_MOST * len(self._data)
        for table in self._sections[1:]:  # the first is none
            if table.kind != _SYMBOL_TABLE or not 0 < table.link < len(self._sections):
                continue
            left -= table.size
            if left < 0:
                return
            names = self._sections[table.link]
            end = table.offset + table.size // _SYMBOL.size * _SYMBOL.size
            for name, kind, other, section in _SYMBOL.iter_unpack(self._data[table.offset : end]):
                text, size = self._text(names, name)
                left -= size
                if left < 0:
                    return
                if not text or section == 0 or text.startswith(_INTERNAL):
                    continue
                kind &= _TYPE_MASK
                yield Symbol(text, kind == _FUNCTION and bool(other & _ENTRY), kind == _OBJECT)

    def _check_segments(self, start: int, size: int, count: int) -> None:
        if count == 0:
            return
        if size < _SEGMENT.size:
            raise ValueError(f"its header gives {size} bytes to a segment's description")
        self._require("its table of segments", start, size * count)
        for index in range(count):
            self._require(f"segment {index}", *_SEGMENT.unpack_from(self._data, start + index * size))

    def _read_sections(self, start: int, size: int, count: int) -> list[Section]:
        if start == 0:
            raise ValueError("it has no sections")
        if size < _SECTION.size:
            raise ValueError(f"its header gives {size} bytes to a section's description")
        self._require("its table of sections", start, size)
        if count == 0:  # too many for the header
            count = Section(*_SECTION.unpack_from(self._data, start)).size
        self._require("its table of sections", start, size * count)
        table, end = self._data[start : start + size * count], len(self._data)
        sections = [Section(*_SECTION.unpack_from(table, index)) for index in range(0, len(table), size)]
        for index, (_, kind, offset, length, _, _) in enumerate(sections):
            if offset + length > end and kind != _NO_BITS and index:
                self._require(f"section {index}", offset, length)
        return sections

    def _check_names(self, index: int) -> None:
        if index >= _MANY and self._sections:
            index = self._sections[0].link
        if not 0 < index < len(self._sections):
            raise ValueError(f"its header names section {index} of {len(self._sections)}")
        names = self._sections[index]
        if names.kind != _STRING_TABLE or not names.size or self._data[names.offset + names.size - 1]:
            raise ValueError(f"section {index}, which has the names of the others, has no text in it")
        size = names.size
        for number, section in enumerate(self._sections):
            if section[0] >= size:
                raise ValueError(f"the name of section {number} is not among the names")

    def _require(self, what: str, offset: int, size: int) -> None:
        if offset + size > len(self._data):
            raise ValueError(f"it is cut short: {what} ends at byte {offset + size}, but there are {len(self._data)}")

    def _text(self, names: Section, offset: int) -> tuple[str, int]:
        """Return the name at an offset, empty if it does not end, and how many bytes were read."""
        if offset >= names.size:
            return "", 0
        start, limit = names.offset + offset, names.offset + names.size
        end = self._data.find(b"\0", start, limit)
        return (self._data[start:end].decode(errors="replace"), end - start) if end >= 0 else ("", limit - start)


def is_host_code(data: bytes) -> bool:
    """Return whether an ELF file is for another processor than a GPU."""
    return len(data) >= _MACHINE.size and _MACHINE.unpack_from(data)[0] != _MACHINE_CUDA
