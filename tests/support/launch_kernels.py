# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that any device runs, for tests of how they are launched: one stores a number, one waits for one."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi import LaunchConfig, Stream, launch

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    st.u32 [%rd1], %r1;
    ret;
}
.visible .entry spin(.param .u64 flag)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [flag];
again:
    ld.volatile.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
"""


def write(buffer: Any, number: int) -> None:
    """Store a number in memory of the host."""
    buffer.__buffer__(0)[:4] = number.to_bytes(4, "little")


def number_in(buffer: Any) -> int:
    """Return the number in memory of the host."""
    return int.from_bytes(bytes(buffer.__buffer__(0)[:4]), "little")


def stores(config: LaunchConfig, stream: Stream, kernel: Any, out: Any, number: int = 7) -> bool:
    """Launch a kernel and tell whether it ran."""
    launch(stream, config, kernel, out, number)
    stream.sync()
    return number_in(out) == number
