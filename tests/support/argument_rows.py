# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What is packed quickly of kernel arguments: in C, and in Python."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core import calls, compiled_packing
from cuda_core_cffi._launching.arguments import Packer


def quick_of(packer: Packer, values: tuple[Any, ...]) -> set[bytes | None]:
    """Return what is packed quickly: as this interpreter does it, and in Python."""
    row = compiled_packing.make_row(packer._fields, tuple(map(type, values)), packer.target)
    return {calls.pack(packer.row, values), compiled_packing.pack(row, values)}
