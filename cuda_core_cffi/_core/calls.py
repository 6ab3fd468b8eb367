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
        Told,
        about,
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
        nvml_reader,
        own,
        pack,
        pool_class,
        prepare,
        retarget,
        use_fast_methods,
        use_functions,
        use_members,
    )
else:
    from cuda_core_cffi._core.python_calls import (
        Memory,
        Owner,
        Told,
        about,
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
        nvml_reader,
        own,
        pack,
        pool_class,
        prepare,
        retarget,
        use_fast_methods,
        use_functions,
        use_members,
    )

__all__ = [
    "Memory",
    "Owner",
    "Told",
    "about",
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
    "nvml_reader",
    "own",
    "pack",
    "pool_class",
    "prepare",
    "retarget",
    "use_fast_methods",
    "use_functions",
    "use_members",
]
