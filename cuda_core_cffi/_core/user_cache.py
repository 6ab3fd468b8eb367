# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Where this package keeps files for a user."""

from __future__ import annotations

import os

__all__ = ["user_cache_folder"]


def user_cache_folder() -> str:
    """Return ``$XDG_CACHE_HOME/cuda-core-cffi``; without an absolute path there, ``~/.cache/cuda-core-cffi``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification says to ignore relative paths
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "cuda-core-cffi")
