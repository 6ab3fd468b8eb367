# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Patterns that memory is filled with."""

from __future__ import annotations

from typing import Any

FILL_WIDTHS = (1, 2, 4)


def fill_pattern(value: Any, width: int | None) -> tuple[int, int]:
    """Return the value to fill with as an integer, and its width in bytes."""
    if isinstance(value, int):
        width = 1 if width is None else width
        if type(width) is not int or width not in FILL_WIDTHS:
            raise ValueError(f"width must be 1, 2 or 4 bytes, not {width!r}")
        if not 0 <= value < 1 << 8 * width:
            raise OverflowError(f"{value} does not fit in {width} byte{'s' * (width > 1)}: 0 to {(1 << 8 * width) - 1}")
        return value, width
    try:
        pattern = bytes(memoryview(value).cast("B"))
    except TypeError:
        raise TypeError(
            "value must be an int, or 1, 2 or 4 bytes in an object with the buffer protocol, not "
            f"{type(value).__name__}"
        ) from None
    if len(pattern) not in FILL_WIDTHS:
        raise ValueError(f"a pattern must be 1, 2 or 4 bytes, not {len(pattern)}")
    if width is not None and width != len(pattern):
        raise ValueError(f"width is {width}, but the pattern has {len(pattern)} bytes")
    return int.from_bytes(pattern, "little"), len(pattern)
