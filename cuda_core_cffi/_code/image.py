# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What compilers and linkers make, seen from outside: whether it is whole, what it is for, what is in it.

The driver is told where code begins, not how long it is, and trusts what the code says of itself: where that is cut
short, it would read past the end. So what code declares is compared with what there is before the driver gets it.
Damage that leaves all sizes right is beyond this.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from cuda_core_cffi._code.carried_ptx import carried_ptx
from cuda_core_cffi._code.elf import ELF_MAGIC, Elf, is_host_code
from cuda_core_cffi._code.fatbin import FATBIN_MAGIC, fatbin_parts
from cuda_core_cffi._code.mangling import PTX_COMMENT
from cuda_core_cffi.typing import ObjectCodeFormatType

FORMAT_NAMES: Final = {
    ObjectCodeFormatType.CUBIN: "a cubin",
    ObjectCodeFormatType.FATBIN: "a fatbin",
    ObjectCodeFormatType.LIBRARY: "a library of relocatable objects",
    ObjectCodeFormatType.LTOIR: "LTO IR",
    ObjectCodeFormatType.OBJECT: "a relocatable object",
    ObjectCodeFormatType.PTX: "PTX",
}

_ARCHIVE_MAGIC: Final = b"!<arch>\n"
_PTX_SIGN: Final = b".version"
_SIGNS: Final = {
    FATBIN_MAGIC: ObjectCodeFormatType.FATBIN,
    _ARCHIVE_MAGIC: ObjectCodeFormatType.LIBRARY,
}

_ARCHIVE_HEADER: Final = 60  # bytes before each member
_ARCHIVE_SIZE: Final = slice(48, 58)  # where they tell the member's size, in decimal digits
_ARCHIVE_END: Final = b"`\n"  # how they end
_SHOWN: Final = 16  # bytes of something unknown in a message

# What begins at one line does not read on to the end of the text for each of them: its spaces are those of the line.
_PTX_TARGET: Final = re.compile(r"^[^\S\n]*\.target\s+(sm_\w+)", re.MULTILINE)
_PTX_LINKAGE: Final = r"^[^\S\n]*(?:\.(?:visible|extern|weak|common)[^\S\n]+)*"
_PTX_KERNEL: Final = re.compile(rf"{_PTX_LINKAGE}\.entry\s+([\w$]+)", re.MULTILINE)
_PTX_VARIABLE: Final = re.compile(rf"{_PTX_LINKAGE}\.(?:global|const)\b([^;=\[]*)", re.MULTILINE)
_PTX_NAME: Final = re.compile(r"[\w$]+")


class Contents(NamedTuple):
    """The symbols of code."""

    kernels: list[str]
    variables: list[str]


def verify(data: bytes, code_type: ObjectCodeFormatType, title: str) -> None:
    """Raise :class:`ValueError` unless code, in messages ``title``, is of its type, with all that it declares."""
    found = _recognize(data)
    wanted = FORMAT_NAMES[code_type]
    if found and code_type not in found:
        raise ValueError(f"{title} is {FORMAT_NAMES[found[0]]}, not {wanted}: use from_{found[0]}")
    if not found and code_type is not ObjectCodeFormatType.LTOIR:  # which begins in many ways
        raise ValueError(f"{title} is not {wanted}: it begins with {data[:_SHOWN]!r}")
    check = _CHECKS.get(code_type)
    if check is not None:
        try:
            check(data)
        except ValueError as error:
            damaged = f"a damaged {wanted[2:]}" if wanted.startswith("a ") else f"damaged {wanted}"
            raise ValueError(f"{title} is {damaged}: {error}") from None


def architectures(data: bytes, code_type: ObjectCodeFormatType) -> list[str]:
    """Return what verified code was compiled for: ``["sm_90"]``; nothing where it does not tell."""
    if code_type is ObjectCodeFormatType.PTX:
        return _PTX_TARGET.findall(_ptx_text(data))[:1]
    if code_type is ObjectCodeFormatType.FATBIN:
        return list(dict.fromkeys(part.arch for part in fatbin_parts(data)))
    return [Elf(data).arch] if code_type is ObjectCodeFormatType.CUBIN else []


def is_relocatable(data: bytes, code_type: ObjectCodeFormatType) -> bool:
    """Return whether verified code is a cubin that was made to be linked with others."""
    return code_type is ObjectCodeFormatType.CUBIN and Elf(data).is_relocatable


def contents(data: bytes, code_type: ObjectCodeFormatType) -> Contents:
    """Return the kernels and the variables of verified code, as far as can be seen: not into what is compressed."""
    if code_type is ObjectCodeFormatType.PTX:
        text = _ptx_text(data)
        declarations = _PTX_VARIABLE.findall(text)
        variables = {name for declared in declarations for name in _PTX_NAME.findall(declared)[-1:]}
        return Contents(sorted(set(_PTX_KERNEL.findall(text))), sorted(variables))
    if code_type is ObjectCodeFormatType.FATBIN:
        files = [part.elf for part in fatbin_parts(data) if part.elf is not None]
    else:
        files = [Elf(data)] if code_type is ObjectCodeFormatType.CUBIN else []
    symbols = [symbol for file in files for symbol in file.symbols()]
    kernels = {symbol.name for symbol in symbols if symbol.is_kernel}
    variables = {symbol.name for symbol in symbols if symbol.is_variable}
    return Contents(sorted(kernels), sorted(variables))


def _recognize(data: bytes) -> tuple[ObjectCodeFormatType, ...]:
    """Return what code can be, by how it begins; nothing for what begins like nothing known."""
    if data.startswith(ELF_MAGIC):
        both = (ObjectCodeFormatType.CUBIN, ObjectCodeFormatType.OBJECT)
        return both[1:] if is_host_code(data) else both
    for magic, code_type in _SIGNS.items():
        if data.startswith(magic):
            return (code_type,)
    return (ObjectCodeFormatType.PTX,) if _PTX_SIGN in data else ()


def _check_cubin(data: bytes) -> None:
    Elf(data)
    carried_ptx(data)


def _check_archive(data: bytes) -> None:
    start = len(_ARCHIVE_MAGIC)
    while start < len(data):
        header = data[start : start + _ARCHIVE_HEADER]
        size = header[_ARCHIVE_SIZE].strip()
        if not header.endswith(_ARCHIVE_END) or not size.isdigit():
            raise ValueError(f"at byte {start} there is no header of a member")
        start += _ARCHIVE_HEADER + int(size)
        if start > len(data):
            raise ValueError(f"it is cut short: a member ends at byte {start}, but there are {len(data)}")
        start += start % 2


def _check_ptx(data: bytes) -> None:
    position = data.rstrip(b"\0").find(b"\0")
    if position >= 0:
        raise ValueError(f"byte {position} is NUL, where the driver would stop reading")


def _ptx_text(data: bytes) -> str:
    return PTX_COMMENT.sub(" ", data.decode(errors="replace"))


_CHECKS: dict[ObjectCodeFormatType, Callable[[bytes], object]] = {
    ObjectCodeFormatType.CUBIN: _check_cubin,
    ObjectCodeFormatType.FATBIN: fatbin_parts,
    ObjectCodeFormatType.LIBRARY: _check_archive,
    ObjectCodeFormatType.OBJECT: Elf,
    ObjectCodeFormatType.PTX: _check_ptx,
}
