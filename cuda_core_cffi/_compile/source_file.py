# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Temporary files with the source of programs that are compiled for debuggers."""

from __future__ import annotations

import contextlib
import os
import weakref

_PREFIX = "cuda_core_"
_SUFFIX = ".cu"
_MODE = 0o600  # for this user alone
_RANDOM_BYTES = 8
_UNQUOTABLE = frozenset('"\\\n')  # NVRTC writes them into PTX as they are, which then cannot be assembled


class SourceFile:
    """A temporary file with the source of a program, which is removed with the program, or at interpreter exit.

    NVRTC gets the path in a ``#line`` directive and not as the name of the program, because it searches headers in the
    folder of that name.
    """

    __slots__ = ("_finalizer", "_process", "path")

    def __init__(self, owner: object, source: bytes) -> None:
        """Write ``source``; raise :class:`OSError` where that is impossible, and leave no file then."""
        import tempfile  # on first need

        name = f"{_PREFIX}{os.urandom(_RANDOM_BYTES).hex()}{_SUFFIX}"
        self.path = os.path.join(os.path.abspath(tempfile.gettempdir()), name)
        if not _UNQUOTABLE.isdisjoint(self.path):
            raise OSError(
                f"the temporary folder must have no quotes, backslashes or newlines in its path: {self.path!r}"
            )
        # Before the file exists, so that an exception between two lines leaves none.
        self._process = os.getpid()
        self._finalizer = weakref.finalize(owner, _remove, self.path, self._process)
        try:
            with open(self.path, "xb", opener=_open_privately) as file:
                file.write(source)
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the file now. Removing it twice is allowed."""
        _remove(self.path, self._process)
        self._finalizer.detach()  # not before, so that an exception between two lines leaves no file

    def text(self, source: bytes) -> bytes:
        """Return the source with a directive that names this file."""
        return b'#line 1 "%b"\n' % os.fsencode(self.path) + source


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags, _MODE)


def _remove(path: str, process: int) -> None:
    if os.getpid() != process:  # a child of fork() leaves the file to its parent
        return
    with contextlib.suppress(OSError):  # it was removed already, or its folder was
        os.unlink(path)
