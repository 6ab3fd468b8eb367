# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Fat binaries: the same code for several architectures, some of it perhaps compressed.

The format is not documented. This is what ``nvcc -fatbin`` writes, and no more of it is looked at than is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from cuda_core_cffi._code.elf import ELF_MAGIC, Elf

FATBIN_MAGIC: Final = b"\x50\xed\x55\xba"

_HEADER: Final = struct.Struct("<4s H H Q")  # magic, version, size of the header, size of what follows
_PART: Final = struct.Struct("<H 2x I Q 12x I 32x")  # kind, size of the header, size of the code, architecture

_CUBIN: Final = 2


class FatbinPart(NamedTuple):
    """The code for one architecture."""

    arch: str
    """``"sm_90"`` for a cubin, ``"compute_90"`` for PTX and other code that is compiled further."""
    elf: Elf | None
    """The cubin, unless it is compressed."""


def fatbin_parts(data: bytes) -> list[FatbinPart]:
    """Return what a fat binary consists of; raise :class:`ValueError` if something that it declares is not there."""
    if len(data) < _HEADER.size:
        raise ValueError(f"it is cut short: {len(data)} bytes are less than its header")
    magic, _, header, size = _HEADER.unpack_from(data)
    if magic != FATBIN_MAGIC or header < _HEADER.size:
        raise ValueError("its header is not that of a fatbin")
    if header + size > len(data):
        raise ValueError(f"it is cut short: its header declares {header + size} bytes, but there are {len(data)}")
    parts = list(_parts(data, header, header + size))
    if not parts:
        raise ValueError("there is no code in it")
    return parts


def _parts(data: bytes, start: int, end: int) -> Iterator[FatbinPart]:
    number = 0
    while start < end:
        if start + _PART.size > end:
            raise ValueError(f"part {number} begins at byte {start}, but the parts end at {end}")
        kind, header, size, arch = _PART.unpack_from(data, start)
        code, after = start + header, start + header + size
        if header < _PART.size or after > end:
            raise ValueError(f"part {number} ends at byte {after}, but the parts end at {end}")
        elf = None
        if data.startswith(ELF_MAGIC, code) and kind == _CUBIN:
            try:
                elf = Elf(data[code:after])
            except ValueError as error:
                raise ValueError(f"part {number}, a cubin, is damaged: {error}") from None
        yield FatbinPart(f"{'sm' if kind == _CUBIN else 'compute'}_{arch}", elf)
        start, number = after, number + 1
