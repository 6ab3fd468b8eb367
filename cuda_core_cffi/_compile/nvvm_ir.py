# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What modules of NVVM IR are looked at for, before libNVVM sees them.

libNVVM ends the process, or crashes in it, where LLVM does: for bitcode that was cut off, and for a module without data
layout or with one that cannot be read (seen with 13.5). Damage inside the blocks of bitcode is not seen here.
"""

from __future__ import annotations

import re
import struct

_MAGIC = b"BC\xc0\xde"
_WRAPPER = struct.Struct("<5I")  # magic, version, offset and size of the bitcode, processor
_WRAPPER_MAGIC = b"\xde\xc0\x17\x0b"

# Of the container of bitcode: https://llvm.org/docs/BitCodeFormat.html
_TOP_WIDTH = 2
_END_BLOCK, _ENTER_SUBBLOCK, _DEFINE_ABBREV, _UNABBREV_RECORD = range(4)
_WITH_VALUE = (1, 2)  # encodings of an abbreviation: of fixed width, and of variable width
_MODULE_BLOCK = 8
_DATA_LAYOUT = 3

_TEXT_LAYOUT = re.compile(rb'\btarget\s+datalayout\s*=\s*"([^"]*)"|"[^"]*"|;[^\n]*')  # or another string, or a comment
_ENDIANNESS = re.compile(r"[eE]")
_ALIGNED = re.compile(r"(?:p(?P<space>\d*):(?P<size>\d+)|[ivfa](?P<bits>\d*)):(?P<least>\d+)(?::(?P<wanted>\d+))?")
_OTHERS = re.compile(r"n\d+(:\d+)*|m:[a-z]|S\d+|[APG]\d+|ni:\d+(:\d+)*|F[in]\d+")
_INDEX_SIZE = re.compile(r"(p\d*:\d+:\d+:\d+):\d+")
_EXAMPLE = (  # which every libNVVM reads
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64"
)
_BYTE = 8
_MOST_BITS = 1 << 16  # of an alignment in LLVM


def check_module(what: str, code: str | bytes | bytearray) -> bytes:
    """Return a module of NVVM IR, text or bitcode, as bytes; ``what`` is what messages call it: ``"code"``.

    Raise :class:`ValueError` if it is empty, bitcode that was cut off, or has no data layout that can be read.
    """
    source = code.encode() if isinstance(code, str) else bytes(code)
    if not source.strip():
        raise ValueError(f"{what} must not be empty")
    bitcode = _unwrapped(what, source)
    layout = _layout_of_text(source) if bitcode is None else _layout_of_bitcode(what, bitcode)
    if layout is None:
        raise ValueError(f"{what} is no NVVM IR: it has no target datalayout, such as {_EXAMPLE!r}")
    _check_layout(what, layout)
    return source


def is_bitcode(source: bytes) -> bool:
    """Tell bitcode from text."""
    return source.startswith((_MAGIC, _WRAPPER_MAGIC))


def _unwrapped(what: str, source: bytes) -> bytes | None:
    """Return bitcode without a wrapper around it; None for text."""
    if source.startswith(_MAGIC):
        return source
    if not source.startswith(_WRAPPER_MAGIC):
        return None
    if len(source) < _WRAPPER.size:
        raise ValueError(f"{what} is bitcode that was cut off: {len(source)} bytes are less than its wrapper")
    _, _, offset, size, _ = _WRAPPER.unpack_from(source)
    if offset + size > len(source):
        raise ValueError(f"{what} is bitcode that was cut off: {offset + size} bytes became {len(source)}")
    inner = source[offset : offset + size]
    if not inner.startswith(_MAGIC):
        raise ValueError(f"{what} is damaged bitcode: there is none in its wrapper")
    return inner


def _layout_of_text(source: bytes) -> str | None:
    found = next((match[1] for match in _TEXT_LAYOUT.finditer(source) if match[1] is not None), None)
    return None if found is None else found.decode(errors="replace")


class _Bits:
    """Reads numbers from bitcode."""

    def __init__(self, what: str, data: bytes) -> None:
        self.what, self.data = what, data
        self.position, self.end = 8 * len(_MAGIC), 8 * len(data)

    def read(self, width: int) -> int:
        first, last = self.position // 8, (self.position + width + 7) // 8
        number = int.from_bytes(self.data[first:last], "little") >> self.position % 8
        self.position += width
        if self.position > self.end:
            raise self.cut_off()
        return number & (1 << width) - 1

    def read_variable(self, width: int) -> int:
        number = shift = 0
        more = 1 << width - 1
        while True:
            part = self.read(width)
            number |= (part & more - 1) << shift
            if not part & more:
                return number
            shift += width - 1

    def enter_block(self) -> tuple[int, int, int]:
        """Read what a block begins with, and return its kind, the width of its abbreviations and its end."""
        kind, width = self.read_variable(8), self.read_variable(4)
        self.position = -(-self.position // 32) * 32
        words = self.read(32)
        end = self.position + 32 * words
        if end > self.end:
            raise self.cut_off()
        return kind, width, end

    def skip_abbreviation(self) -> None:
        for _ in range(self.read_variable(5)):
            if self.read(1):  # a literal
                self.read_variable(8)
            elif self.read(3) in _WITH_VALUE:
                self.read_variable(5)

    def read_record(self) -> tuple[int, list[int]]:
        code, count = self.read_variable(6), self.read_variable(6)
        if 6 * count > self.end - self.position:  # PyPy makes room for as many as it is told
            raise self.cut_off()
        return code, [self.read_variable(6) for _ in range(count)]

    def cut_off(self) -> ValueError:
        return ValueError(f"{self.what} is bitcode that was cut off, or damaged: it has {len(self.data)} bytes")


def _layout_of_bitcode(what: str, data: bytes) -> str | None:
    """Return the data layout of a module, after a walk over all blocks; None if there is none."""
    bits = _Bits(what, data)
    layout = None
    while bits.position + 32 <= bits.end and data[bits.position // 8 :].strip(b"\0"):
        if bits.read(_TOP_WIDTH) != _ENTER_SUBBLOCK:
            raise ValueError(f"{what} is damaged bitcode: no block begins at byte {bits.position // 8}")
        kind, width, end = bits.enter_block()
        if kind == _MODULE_BLOCK and layout is None:
            layout = _layout_of_module(bits, width, end)
        bits.position = end
    return layout


def _layout_of_module(bits: _Bits, width: int, end: int) -> str | None:
    while bits.position < end:
        what = bits.read(width)
        if what == _ENTER_SUBBLOCK:
            _, _, bits.position = bits.enter_block()
        elif what == _DEFINE_ABBREV:
            bits.skip_abbreviation()
        elif what == _UNABBREV_RECORD:
            code, values = bits.read_record()
            if code == _DATA_LAYOUT:
                return "".join(chr(value & 0xFF) for value in values)
        else:  # the end of the block, or a global: LLVM writes the layout before them
            return None
    return None


def _check_layout(what: str, layout: str) -> None:
    """Refuse a data layout that LLVM would end the process for."""
    for part in layout.split("-"):
        if not (_ENDIANNESS.fullmatch(part) or _OTHERS.fullmatch(part) or _is_alignment(part)):
            raise ValueError(
                f"{what} is no NVVM IR: {part!r} in its target datalayout {layout!r} cannot be read; one that can is "
                f"{_EXAMPLE!r}"
            )


def _is_alignment(part: str) -> bool:
    if with_index := _INDEX_SIZE.fullmatch(part):
        part = with_index[1]
    found = _ALIGNED.fullmatch(part)
    if not found:
        return False
    least = int(found["least"])
    wanted = least if found["wanted"] is None else int(found["wanted"])
    size = _BYTE if found["size"] is None else int(found["size"])
    aggregate = part.startswith("a")
    return (
        (_is_bytes(least) or (aggregate and least == 0))
        and _is_bytes(wanted)
        and wanted >= least
        and size > 0
        and size % _BYTE == 0
    )


def _is_bytes(bits: int) -> bool:
    """Tell whether an alignment in bits is a power of two in bytes."""
    return _BYTE <= bits < _MOST_BITS and bits & bits - 1 == 0
