# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Where this package keeps files for a user."""

from __future__ import annotations

import os


def user_cache_folder() -> str:
    """Return ``$XDG_CACHE_HOME/cuda-core-cffi``; without an absolute path there, ``~/.cache/cuda-core-cffi``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification says to ignore relative paths
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "cuda-core-cffi")


def check_owner(folder: str, advice: str, *found: os.stat_result) -> None:
    """Raise :class:`PermissionError` unless a folder is this user's, because what is in it becomes code that runs.

    A link that another user made is no better than a folder of theirs. ``advice`` is what to do if it is not this
    user's, and ``found`` what is known of the folder, if it is open.
    """
    for status in found or (os.lstat(folder), os.stat(folder)):
        if status.st_uid != os.geteuid():
            raise PermissionError(
                f"{folder!r} belongs to user {status.st_uid}, not to user {os.geteuid()} as who this process runs: "
                f"{advice}"
            )
