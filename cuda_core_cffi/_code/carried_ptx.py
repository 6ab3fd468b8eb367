# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Cubins with PTX behind them, which the simulated driver runs in place of the machine code.

While the simulated driver is in use, NVRTC and nvJitLink make cubins whose PTX is appended to the ELF file. Seven bytes
of the header that ELF leaves unused say so: ``ptx``, and the offset of the PTX. GPU drivers load the file like the
cubin alone, because they take its size from its headers. nvJitLink and the linker of a GPU driver get the cubin alone.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from cuda_core_cffi._code.elf import ELF_MAGIC
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi.typing import ObjectCodeFormatType

_UNUSED: Final = slice(9, 16)  # bytes of the header
_MARK: Final = struct.Struct("<3s I")  # what stands there: "ptx", where the PTX begins
_PTX: Final = struct.Struct("<8s Q")  # magic, size of what follows: texts, with NUL between them
_SIGN: Final = b"ptx"
_MAGIC: Final = b"simptx\0\0"


def carries_ptx(target: ObjectCodeFormatType) -> bool:
    """Return whether code of this format is made with its PTX: cubins are, while the simulated driver is in use."""
    return target is ObjectCodeFormatType.CUBIN and bool(lib.ccc_driver_simulated())


def with_ptx(cubin: bytes, texts: Sequence[bytes]) -> bytes:
    """Return a cubin with the PTX that it was made of; without, if there is no code or no PTX."""
    text = b"\0".join(texts)
    if not cubin or not text:
        return cubin
    mark = _MARK.pack(_SIGN, len(cubin))
    return b"".join([cubin[: _UNUSED.start], mark, cubin[_UNUSED.stop :], _PTX.pack(_MAGIC, len(text)), text])


def without_ptx(data: bytes) -> bytes:
    """Return code as its compiler made it."""
    start = _start(data)
    return data if start == 0 else b"".join([data[: _UNUSED.start], bytes(_MARK.size), data[_UNUSED.stop : start]])


def carried_ptx(data: bytes) -> bytes:
    """Return the PTX behind a cubin, texts with NUL between them; or empty bytes.

    Raise :class:`ValueError` if it is not whole.
    """
    start = _start(data)
    if start == 0:
        return b""
    text = start + _PTX.size
    magic, size = _PTX.unpack_from(data, start) if text <= len(data) else (b"", 0)
    if magic != _MAGIC or text + size > len(data):
        raise ValueError("it is cut short: the PTX behind it is not whole")
    return data[text : text + size]


def _start(data: bytes) -> int:
    """Return where the PTX behind a cubin begins, or 0."""
    if not data.startswith(ELF_MAGIC) or len(data) < _UNUSED.stop:
        return 0
    sign, start = _MARK.unpack_from(data, _UNUSED.start)
    return int(start) if sign == _SIGN else 0
