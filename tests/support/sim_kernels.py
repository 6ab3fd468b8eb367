# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""PTX text for the tests of modules and launches."""

from __future__ import annotations

import struct

HEADER = b".version 8.0\n.target sm_52\n.address_size 64\n"

KERNELS = (
    HEADER
    + b"""
.visible .global .align 4 .u32 counters[4] = {1, 2, 3, 4};
.visible .const .align 8 .u64 constant = 7;
.visible .global .attribute(.managed) .align 4 .u32 shared_with_host;

.visible .entry nothing() { ret; }
.visible .entry traps() { trap; }

.visible .entry four(.param .u64 a, .param .u32 b, .param .align 16 .b8 c[24], .param .u8 d) { ret; }

.visible .entry big_shared()
{
    .shared .align 4 .b8 memory[40000];
    .reg .u32 r;
    mov.u32 r, 1;
    st.shared.u32 [memory], r;
    ret;
}

.visible .entry bounded() .maxntid 128, 1, 1 { ret; }
.visible .entry required() .reqntid 64, 1, 1 { ret; }

.visible .entry store(.param .u64 to, .param .u32 value)
{
    .reg .u64 a;
    .reg .u32 v;
    ld.param.u64 a, [to];
    ld.param.u32 v, [value];
    st.global.u32 [a], v;
    ret;
}

.visible .entry spin(.param .u64 flag)
{
    .reg .u64 a;
    .reg .u32 v;
    .reg .pred p;
    ld.param.u64 a, [flag];
AGAIN:
    ld.volatile.global.u32 v, [a];
    setp.eq.u32 p, v, 0;
    @p bra AGAIN;
    ret;
}

.visible .entry count()
{
    .reg .u64 a;
    .reg .u32 old;
    mov.u64 a, counters;
    atom.global.add.u32 old, [a], 1;
    ret;
}

.visible .entry saxpy(.param .u32 n, .param .f32 factor, .param .u64 x, .param .u64 y)
{
    .reg .u32 i, t, b, c, count;
    .reg .u64 px, py, offset;
    .reg .f32 f, vx, vy;
    .reg .pred p;
    ld.param.u32 count, [n];
    mov.u32 t, %tid.x;
    mov.u32 b, %ctaid.x;
    mov.u32 c, %ntid.x;
    mad.lo.u32 i, b, c, t;
    setp.ge.u32 p, i, count;
    @p ret;
    ld.param.f32 f, [factor];
    ld.param.u64 px, [x];
    ld.param.u64 py, [y];
    mul.wide.u32 offset, i, 4;
    add.u64 px, px, offset;
    add.u64 py, py, offset;
    ld.global.f32 vx, [px];
    ld.global.f32 vy, [py];
    fma.rn.f32 vy, f, vx, vy;
    st.global.f32 [py], vy;
    ret;
}
\0"""
)

NAMES = {
    "nothing", "traps", "four", "big_shared", "bounded", "required", "store", "spin", "count", "saxpy",
}  # fmt: skip


def fatbin_part(text: bytes, arch: int, kind: int = 1, flags: int = 0x11) -> bytes:
    """Return a part of a fat binary, with PTX in it unless another kind is named."""
    padded = text + bytes(-len(text) % 8)
    header = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(padded), 0, 0, 8, 1, arch, 0, 0, flags, 0, 0)
    return header + padded


def make_fatbin(*parts: bytes) -> bytes:
    """Return a fat binary."""
    return struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, sum(map(len, parts))) + b"".join(parts)


# A file that starts as a GPU's ELF file does: the machine number 190 stands at byte 18.
CUBIN = b"\x7fELF\x02\x01\x01" + bytes(11) + (190).to_bytes(2, "little") + bytes(64)
FATBIN = b"\x50\xed\x55\xba" + bytes(64)
HOST_ELF = b"\x7fELF\x02\x01\x01" + bytes(11) + (62).to_bytes(2, "little") + bytes(64)


def carrying(text: bytes, arch: int = 90, mark: bytes = b"ptx") -> bytes:
    """Return a cubin without machine code, and PTX behind it."""
    elf = bytearray(b"\x7fELF\x02\x01\x01\x41\x08" + mark + (64).to_bytes(4, "little") + bytes(48))
    elf[18:20] = (190).to_bytes(2, "little")
    elf[48:52] = (arch << 8).to_bytes(4, "little")
    return bytes(elf) + b"simptx\0\0" + len(text).to_bytes(8, "little") + text
