# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The calls that programs make most: in C on CPython, where that is faster than CFFI, and in Python elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.implementation.name == "cpython":
    from cuda_core_cffi._calls import (
        Memory,
        Owner,
        adopt,
        blank,
        buffer_class,
        close,
        copy,
        create_event,
        create_stream,
        fill,
        launch,
        make_packer,
        own,
        pack,
        pool_class,
        prepare,
        retarget,
        use_fast_methods,
    )
else:
    from cuda_core_cffi._core.python_calls import (
        Memory,
        Owner,
        adopt,
        blank,
        buffer_class,
        close,
        copy,
        create_event,
        create_stream,
        fill,
        launch,
        make_packer,
        own,
        pack,
        pool_class,
        prepare,
        retarget,
        use_fast_methods,
    )

__all__ = [
    "Memory",
    "Owner",
    "adopt",
    "blank",
    "buffer_class",
    "close",
    "copy",
    "create_event",
    "create_stream",
    "fill",
    "launch",
    "make_packer",
    "own",
    "pack",
    "pool_class",
    "prepare",
    "retarget",
    "use_fast_methods",
]
