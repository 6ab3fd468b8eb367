# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run the instructions that the simulated driver has vectors for, and print a digest of the results of each.

Operands are random bits, special values and usual numbers. Each instruction is run by all lanes of a warp, by all but a
few, by a few and by none.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from cuda_core_cffi import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch

COUNT = 1024
BLOCK = 128
SEED = 20260101
LIMITS = (32, 31, 20, 2, 0)
"""A lane runs the instruction if a random number below 32 is less than this."""

REGISTERS = {16: "%h", 32: "%r", 64: "%d"}
TARGETS = {16: "%h8", 32: "%r9", 64: "%d9"}
WIDTHS = {"f16x2": 32, "bf16x2": 32, "u8": 32, "s8": 32, "bf16": 16}
HALVES = (0, 0x8000, 1, 0x8001, 0x3FF, 0x7C00, 0xFC00, 0x7E00, 0xFD01, 0x3C00, 0x7BFF, 0x400, 0x3C01, 0xBC00)
FLOATS = (0, 1 << 31, 1, 0x7F800000, 0xFF800000, 0xFFC12345, 0x7F812345, 0x3F800000, 0x800000, 0x4F000000, 0xCF000001)
DOUBLES = (0, 1 << 63, 1, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0x47EFFFFFFFFFFFFF, 0x36A0000000000001)


class Operation(NamedTuple):
    """An instruction, the types of its sources, and the width of its destination, 0 for a predicate."""

    text: str
    sources: tuple[str, ...]
    target: int


def width(kind: str) -> int:
    """Return the bits of a register for a type."""
    return WIDTHS.get(kind) or int(kind[1:])


def operations() -> list[Operation]:
    """Return all operations."""
    found = []
    for kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
        bits = width(kind)
        names = ("add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem")
        found += [Operation(f"{name}.{kind}", (kind, kind), bits) for name in names]
        found += [Operation(f"mad.lo.{kind}", (kind,) * 3, bits), Operation(f"shr.{kind}", (kind, "u32"), bits)]
        if bits < 64:
            found.append(Operation(f"mul.wide.{kind}", (kind, kind), 2 * bits))
            found.append(Operation(f"mad.wide.{kind}", (kind, kind, f"b{2 * bits}"), 2 * bits))
    for kind in ("b16", "b32", "b64"):
        found += [Operation(f"{name}.{kind}", (kind, kind), width(kind)) for name in ("and", "or", "xor")]
        found += [Operation(f"not.{kind}", (kind,), width(kind)), Operation(f"shl.{kind}", (kind, "u32"), width(kind))]
    found += [Operation(f"neg.{kind}", (kind,), width(kind)) for kind in ("s16", "s32", "s64", "f32", "f64")]
    found += [Operation(f"lop3.b32@{table}", ("b32",) * 3, 32) for table in range(0, 256, 15)]
    found += [Operation(f"shf.{way}.b32", ("b32",) * 3, 32) for way in ("l.wrap", "r.wrap", "l.clamp", "r.clamp")]
    for kind in ("f32", "f64"):
        names = ("add", "sub", "mul", "div.rn", "min", "max")
        found += [Operation(f"{name}.{kind}", (kind, kind), width(kind)) for name in names]
        found += [Operation(f"fma.rn.{kind}", (kind,) * 3, width(kind)), Operation(f"abs.{kind}", (kind,), width(kind))]
    for kind in ("f16", "f16x2", "bf16x2"):
        found += [Operation(f"{name}.{kind}", (kind, kind), width(kind)) for name in ("add", "sub", "mul")]
        found.append(Operation(f"fma.rn.{kind}", (kind,) * 3, width(kind)))
    for kind in ("b32", "s16", "s32", "u32", "s64", "u64", "f32", "f64"):
        relations = ["eq", "ne"] if kind == "b32" else ["eq", "ne", "lt", "le", "gt", "ge"]
        relations += ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", "lt.ftz"] if kind == "f32" else []
        found += [Operation(f"setp.{relation}.{kind}", (kind, kind), 0) for relation in relations]
    conversions = (
        ".rn.f32.s32 .rn.f32.u32 .f64.s32 .f64.u32 .rzi.s32.f32 .rzi.u32.f32 .rn.f32.f64 .f64.f32 .f32.f16 .rn.f16.f32 "
        ".s64.s32 .u64.u32 .s32.s16 .u32.u8 .s32.s8 .u16.u32"
    )
    for conversion in conversions.split():
        to, source = conversion.split(".")[-2:]
        found.append(Operation(f"cvt{conversion}", (source,), width(to)))
    return found


def entry(index: int, operation: Operation) -> str:
    """Return a kernel that runs an operation in the lanes that LIMITS lets."""
    loads, names = [], []
    for number, kind in enumerate(operation.sources):
        bits = width(kind)
        name = f"{REGISTERS[bits]}{number + 1}"
        loads.append(f"ld.global.b{bits} {name}, [%d{11 + number}];")
        names.append(name)
    text, _, table = operation.text.partition("@")
    if not operation.target:
        bits, run = 32, f"setp.eq.u32 %p2, 0, 1; @%p1 {text} %p2, {', '.join(names)}; selp.b32 %r9, 7, 9, %p2;"
    else:
        bits = operation.target
        run = f"@%p1 {text} {', '.join([TARGETS[bits], *names, *([table] if table else [])])};"
    parameters = "".join(
        f"ld.param.u64 %d{11 + number}, [p{number}]; add.s64 %d{11 + number}, %d{11 + number}, %d10;\n"
        for number in range(4)
    )
    return f"""
.visible .entry k{index}(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u32 limit)
{{
    .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<5>;
    mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x;
    mad.lo.s32 %r10, %r10, %r11, %r12; mul.wide.u32 %d10, %r10, 8;
    {parameters}
    ld.param.u32 %r13, [limit];
    mul.lo.u32 %r14, %r10, 0x9E3779B1; shr.u32 %r14, %r14, 27; setp.lt.u32 %p1, %r14, %r13;
    mov.u64 %d9, 0; mov.u32 %r9, 0; mov.u16 %h8, 0;
    {" ".join(loads)}
    {run}
    st.global.b{bits} [%d14], {TARGETS[bits]};
    ret;
}}
"""


def operands(kind: str, rng: np.random.Generator) -> Any:
    """Return 64 bits for each lane, of which the type's are the lower ones."""
    anything = rng.integers(0, 2**64, COUNT, np.uint64)
    bits = width(kind)
    scale = 2.0 ** rng.integers(-16, 34, COUNT)
    if kind == "f32":
        special, usual = FLOATS, (rng.normal(size=COUNT) * scale).astype(np.float32).view(np.uint32).astype(np.uint64)
    elif kind == "f64":
        special, usual = DOUBLES, (rng.normal(size=COUNT) * scale).view(np.uint64)
    elif "f16" in kind:
        special = tuple(low | high << 16 for low in HALVES for high in HALVES)
        pairs = rng.normal(size=2 * COUNT) * 2.0 ** rng.integers(-16, 14, 2 * COUNT)
        usual = pairs.astype(np.float16).view(np.uint32).astype(np.uint64)
    else:
        special = (0, 1, 2, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 31, 32, 33, 63, 64)
        usual = rng.integers(0, 50, COUNT, np.uint64)
    which = rng.integers(0, 4, COUNT)
    chosen = np.array(special, np.uint64)[rng.integers(0, len(special), COUNT)]
    return np.where(which == 0, chosen, np.where(which == 1, anything, usual))


def main() -> None:
    """Run all operations."""
    rng = np.random.default_rng(SEED)
    found = operations()
    text = ".version 8.0\n.target sm_90\n.address_size 64\n" + "".join(map(entry, range(len(found)), found))
    device = Device()
    device.set_current()
    stream = device.create_stream()
    code = ObjectCode.from_ptx(text.encode())
    memory = LegacyPinnedMemoryResource()
    buffers = [memory.allocate(8 * COUNT) for _ in range(4)]
    views = [np.from_dlpack(buffer).view(np.uint64) for buffer in buffers]
    config = LaunchConfig(grid=COUNT // BLOCK, block=BLOCK)
    for index, operation in enumerate(found):
        for view, kind in zip(views, operation.sources, strict=False):
            view[:] = operands(kind, rng)
        if len(operation.sources) == 2:
            views[1][:] = np.where(rng.integers(0, 3, COUNT) == 0, views[0], views[1])
        digest = hashlib.sha1()
        for limit in LIMITS:
            views[3][:] = 0
            launch(stream, config, code.get_kernel(f"k{index}"), *buffers, np.uint32(limit))
            stream.sync()
            digest.update(views[3].tobytes())
        print(operation.text, digest.hexdigest())


if __name__ == "__main__":
    main()
