# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What is packed quickly of kernel arguments: in C, and in Python."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi import _calls, _packing
from cuda_core_cffi._arguments import Packer


def quick_of(packer: Packer, values: tuple[Any, ...]) -> set[bytes | None]:
    """Return what is packed quickly: as this interpreter does it, and in Python."""
    row = _packing.make_row(packer._fields, tuple(map(type, values)), packer.target)
    return {_calls.pack(packer.row, values), _packing.pack(row, values)}
