# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Layouts for tests."""

from __future__ import annotations

from cuda_core_cffi._arrays.layout import _StridedLayout

HUGE = 2**40
DENSE = _StridedLayout((4, 3), None, 4)
WIDE = _StridedLayout((2, 3, 4), (12, 4, 1), 4)


def whole(layout: _StridedLayout) -> tuple[tuple[int, ...], tuple[int, ...] | None, int]:
    """Return what a layout is made of."""
    return layout.shape, layout.strides, layout.slice_offset
