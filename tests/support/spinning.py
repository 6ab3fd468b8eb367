# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A kernel that runs until the host lets it end, with code that only the launch refers to."""

from __future__ import annotations

import ctypes
import threading
from types import TracebackType
from typing import Self

from graphs import ONE

from cuda_core_cffi import Kernel, LegacyPinnedMemoryResource, ObjectCode, launch
from cuda_core_cffi.typing import IsStreamType

PATIENCE = 20  # seconds, after which the kernel ends anyway

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 flag)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [flag];
again:
    ld.volatile.u32 %r1, [%d1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
.visible .entry add(.param .u64 where, .param .u32 value)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [where];
    ld.param.u32 %r1, [value];
    ld.global.u32 %r2, [%d1];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [%d1], %r3;
    ret;
}
"""


def fresh(name: str) -> Kernel:
    """Return a kernel whose code nothing else refers to."""
    return ObjectCode.from_ptx(PTX).get_kernel(name)


class Spinning:
    """A kernel that runs in a stream until the ``with`` block is left, or :meth:`end` is called."""

    def __init__(self, stream: IsStreamType) -> None:
        self._memory = LegacyPinnedMemoryResource().allocate(4)
        self._flag = ctypes.c_int.from_address(int(self._memory.handle))
        self._flag.value = 0
        self._timer = threading.Timer(PATIENCE, self.end)
        self._timer.start()
        launch(stream, ONE, fresh("spin"), self._memory)

    @property
    def runs(self) -> bool:
        """Whether nothing has let the kernel end."""
        return not self._flag.value

    def end(self) -> None:
        """Let the kernel end."""
        self._flag.value = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._timer.cancel()
        self._timer.join()
