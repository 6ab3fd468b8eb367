# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Calls a function when the last reference to an object is dropped."""

from __future__ import annotations

from collections.abc import Callable


class Hold:
    """Call a function once: when it is released, or when the last reference to this goes."""

    __slots__ = ("_release",)

    _release: Callable[[], object] | None

    def __init__(self, release: Callable[[], object]) -> None:
        self._release = release

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Call the function, unless it was called."""
        try:
            release, self._release = self._release, None
        except AttributeError:  # interrupted before it had one
            return
        if release is not None:
            release()
