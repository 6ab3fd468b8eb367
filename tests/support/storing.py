# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The helpers' second form, which stores a handle, where only builds for other interpreters than CPython have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Storing(dict[Any, Callable[..., bool]]):
    """Make the second form of a helper from the form that returns the handle."""

    def __missing__(self, helper: Callable[..., Any]) -> Callable[..., bool]:
        def store(slot: Any, *arguments: Any) -> bool:
            slot[0] = helper(*arguments)
            return bool(slot[0])

        return store
