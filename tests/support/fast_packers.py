# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What is packed on the fast path of kernel arguments: in C, and in Python."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core import calls, compiled_packing
from cuda_core_cffi._launching.arguments import Packer


def packed_on_fast_path(packer: Packer, values: tuple[Any, ...]) -> set[bytes | None]:
    """Return what is packed on the fast path: as this interpreter does it, and in Python."""
    fast = compiled_packing.make_packer(packer._slots, packer.target)
    return {calls.pack(packer.fast, values), compiled_packing.pack(fast, values)}
