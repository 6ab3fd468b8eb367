# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Damage to code, for tests of what becomes of it.

As a program it damages code at random for as long as it is told, with the simulated driver, and stops at what is
neither refused nor loaded:

    CUDA_CORE_CFFI_DRIVER=simulator python tests/support/mutations.py SECONDS SEED
"""

from __future__ import annotations

import dataclasses
import random
import struct
import sys
import time
from collections.abc import Iterable

from cuda_core_cffi import CUDAError, Device, ObjectCode, Program
from cuda_core_cffi._code.image import architectures, contents, verify
from cuda_core_cffi.typing import ObjectCodeFormatType

ARCH = 90
CUBIN_PART = 2
FLAGS = 0x11  # of code with 64-bit addresses, from a Linux host
SOURCE = """
__device__ int counter = 3;
__constant__ float weights[4];
extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2 * weights[counter]; }
template <class T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }
template __global__ void scale<float>(float *, float);
"""
# What numbers and words are replaced by: the borders of what their fields can hold, and what PTX is made of.
VALUES = [bytes(8), b"\xff" * 8, b"\x7f" + b"\xff" * 7, (1 << 63).to_bytes(8, "little"), (2).to_bytes(8, "little")]
WORDS = [b".global", b".entry", b".b8", b"[", b"]", b"{", b"}", b";", b"%r1", b"4294967295", b".version", b"\n", b"//"]
PIECES = [*VALUES, *(value[:size] for value in VALUES for size in (1, 2, 4)), *WORDS]


@dataclasses.dataclass(frozen=True)
class Edit:
    """One change, at a place that is counted from the start, modulo the size."""

    place: int
    removed: int
    inserted: bytes


def damage(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Return the data with the changes made to it, one after the other."""
    for edit in edits:
        place = edit.place % (len(data) + 1)
        data = data[:place] + edit.inserted + data[place + edit.removed :]
    return data


def fatbin_part(kind: int, arch: int, code: bytes) -> bytes:
    """Return a part of a fat binary: a cubin (kind 2) or PTX (kind 1)."""
    padded = code + bytes(8 - len(code) % 8)
    version = (8, 1) if kind == CUBIN_PART else (0, 9)  # as nvcc 13.0 has it
    return struct.pack("<HHI Q 8x HHI 8x Q 16x", kind, 0x101, 64, len(padded), *version, arch, FLAGS) + padded


def make_fatbin(*parts: bytes) -> bytes:
    """Return a fat binary."""
    return struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, sum(map(len, parts))) + b"".join(parts)


def make_codes() -> dict[ObjectCodeFormatType, bytes]:
    """Return whole code of each type that can be loaded."""
    program = Program(SOURCE, "c++", {"arch": f"sm_{ARCH}"})
    cubin, ptx = (program.compile(target).code for target in ("cubin", "ptx"))
    return {
        ObjectCodeFormatType.CUBIN: cubin,
        ObjectCodeFormatType.PTX: ptx,
        ObjectCodeFormatType.FATBIN: make_fatbin(fatbin_part(2, ARCH, cubin), fatbin_part(1, ARCH, ptx)),
    }


def look(data: bytes, code_type: ObjectCodeFormatType) -> bool:
    """Look at code as the package does before the driver gets it; return whether it is passed on."""
    try:
        verify(data, code_type, "the code")
    except ValueError:
        return False
    architectures(data, code_type)
    contents(data, code_type)
    return True


def load(data: bytes, code_type: ObjectCodeFormatType) -> bool:
    """Load code, for a kernel and a variable, and return whether there was one; other errors than ours are raised."""
    make = getattr(ObjectCode, f"from_{code_type}")
    try:
        with make(data) as code:
            code.get_kernel("twice").close()
            code.get_global("counter").close()
    except (ValueError, CUDAError):
        return False
    return True


def main() -> None:
    """Damage code at random until the time is up."""
    seconds, seed = map(int, sys.argv[1:])
    chance = random.Random(seed)
    Device().set_current()
    codes, counts = make_codes(), [0, 0, 0]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        code_type, data = chance.choice(list(codes.items()))
        edits = [
            Edit(chance.choice([chance.randrange(len(data)), chance.randrange(128)]), removed, inserted)
            for _ in range(chance.choice([1, 1, 2, 3, 20]))
            for inserted in [chance.choice([b"", chance.randbytes(chance.choice([1, 2, 8])), chance.choice(PIECES)])]
            for removed in [chance.choice([len(inserted), len(inserted), 1, chance.randrange(400)])]
        ]
        damaged = damage(data, edits)
        try:
            counts = [n + yes for n, yes in zip(counts, (1, look(damaged, code_type), load(damaged, code_type)))]
        except BaseException:
            print(f"{code_type}: {edits}")
            raise
    print("{} damaged, {} passed on to the driver, {} loaded".format(*counts))


if __name__ == "__main__":
    main()
