# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled programs that lives in a folder.

Any number of processes use the folder at once, and none waits for another: there are no locks. A file is written under
a temporary name and takes its own by ``os.replace``, so it is there as a whole or not at all; of two writers of one key
the last wins. When a file was read last is its access time, which is set here, because many file systems are told not
to. Whoever writes beyond the limit removes what was not read for the longest time, and two who do so at once remove the
same files. A process that is killed leaves nothing but a temporary file, which is swept up later.

What cannot be prevented is found when it is read: each file ends in a line with a digest of its key and its code, so
that a file that a crash of the machine cut short, or a disk spoilt, counts as missing. That is also why nothing is
forced to the disk. The line is a comment in PTX, and comes after the end of ELF, so other tools can read the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator

from cuda_core_cffi._code.object_code import ObjectCode
from cuda_core_cffi._compile.program_cache import ProgramCacheResource, check_key, check_limit, check_value
from cuda_core_cffi._core.user_cache import user_cache_folder

__all__ = ["FileStreamProgramCache"]

_OWNER_ONLY = 0o700
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_STALE_AFTER = 3600  # seconds, in which any write has long ended

_SEAL = b"\n// cuda-core-cffi %b\n"
_SEAL_SIZE = len(_SEAL % hashlib.sha256(usedforsecurity=False).hexdigest().encode())


class FileStreamProgramCache(ProgramCacheResource):
    """A cache in a folder, which outlives the process, for any number of threads and processes.

    Parameters
    ----------
    path : str or os.PathLike, optional
        The folder, which is made if need be, for the user alone. By default
        ``$XDG_CACHE_HOME/cuda-core-cffi/program-cache``, or ``~/.cache/cuda-core-cffi/program-cache``.
    max_size_bytes : int, optional
        The most bytes that the entries may have together, without the line of 84 bytes that each file has more. The
        entries that were not read for the longest time make room for others; code that is larger than all the room is
        not kept. While several processes write, there may be more for a moment. Each write looks at all the entries,
        which may be those of other processes: some microseconds each. By default there is no limit.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type, or the limit is negative.
    PermissionError
        If the folder belongs to another user, whose code would be run.
    OSError
        If the folder cannot be made.

    Notes
    -----
    Only the user can read or write the entries. What others put there, and what was damaged, is removed rather than
    returned. An entry is a file that other tools can read: the code, and a line with a digest.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, max_size_bytes: int | None = None) -> None:
        self._limit = check_limit(max_size_bytes)
        folder = os.path.join(user_cache_folder(), "program-cache") if path is None else os.fspath(path)
        if not isinstance(folder, str):
            raise TypeError(f"path must be a str or a path of str, not {type(folder).__name__}: {folder!r}")
        if not folder:
            raise ValueError("path must not be empty")
        self._folder = os.path.abspath(folder)  # so that it stays the same one in another working directory
        self._entries = os.path.join(self._folder, "entries")
        self._unfinished = os.path.join(self._folder, "unfinished")
        self._make_folders()
        self._sweep()

    def __getitem__(self, key: bytes | str) -> bytes:
        name = _digest(check_key(key))
        path = f"{self._entries}/{name}"
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except (FileNotFoundError, PermissionError):
            raise KeyError(key) from None
        try:
            found = os.fstat(descriptor)
            value = _unseal(name, _read(descriptor, found.st_size)) if _is_ours(found) else None
            if value is not None:
                _set_read_time(descriptor, found)
        finally:
            os.close(descriptor)
        if value is None:
            _discard(path)
            raise KeyError(key)
        return value

    def __setitem__(self, key: bytes | str, value: bytes | bytearray | memoryview | ObjectCode) -> None:
        name, data = _digest(check_key(key)), check_value(value)
        if self._limit is not None and len(data) > self._limit:
            _remove(os.path.join(self._entries, name))
            return
        try:
            self._write(name, data)
        except FileNotFoundError:  # somebody removed the folders
            self._make_folders()
            self._write(name, data)
        if self._limit is not None:
            self._evict(self._limit)

    def __delitem__(self, key: bytes | str) -> None:
        try:
            os.unlink(os.path.join(self._entries, _digest(check_key(key))))
        except FileNotFoundError:
            raise KeyError(key) from None

    def __len__(self) -> int:
        return sum(1 for _ in _files(self._entries))

    def clear(self) -> None:
        """Remove every entry, and what processes that were killed have left."""
        for path, _ in _files(self._entries):
            _remove(path)
        self._sweep()

    def _make_folders(self) -> None:
        for folder in (self._folder, self._entries, self._unfinished):
            os.makedirs(folder, _OWNER_ONLY, exist_ok=True)
            # A link that another user made is no better than a folder of his.
            for found in (os.lstat(folder), os.stat(folder)):
                if found.st_uid != os.geteuid():
                    raise PermissionError(
                        f"{folder!r} belongs to user {found.st_uid}, not to user {os.geteuid()} as who this process "
                        "runs: give the cache another path"
                    )
            if folder != self._folder and stat.S_IMODE(found.st_mode) != _OWNER_ONLY:
                os.chmod(folder, _OWNER_ONLY)

    def _write(self, name: str, data: bytes) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self._unfinished)  # for the owner only
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.write(_seal(name, data))
                file.flush()
                # The system's own times of new files are coarser than those which readers set.
                os.utime(descriptor, ns=(time.time_ns(),) * 2)
            os.replace(temporary, os.path.join(self._entries, name))
        except BaseException:
            _discard(temporary)
            raise

    def _evict(self, limit: int) -> None:
        """Remove what was not read for the longest time, until the rest is within the limit."""
        found = [(status.st_atime_ns, path, status.st_size - _SEAL_SIZE) for path, status in _files(self._entries)]
        excess = sum(size for _, _, size in found) - limit
        if excess > 0:
            for _, path, size in sorted(found):
                _remove(path)
                excess -= size
                if excess <= 0:
                    break
        self._sweep()

    def _sweep(self) -> None:
        """Remove the temporary files of processes that were killed."""
        for path, status in _files(self._unfinished):
            if abs(time.time() - status.st_mtime) > _STALE_AFTER:  # clocks are also set back
                _discard(path)


def _digest(key: bytes) -> str:
    return hashlib.sha256(key, usedforsecurity=False).hexdigest()


def _seal(name: str, data: bytes) -> bytes:
    """Return the last line of a file."""
    digest = hashlib.sha256(name.encode(), usedforsecurity=False)
    digest.update(data)
    return _SEAL % digest.hexdigest().encode()


def _unseal(name: str, content: bytes) -> bytes | None:
    """Return the code in a file, or None if it is damaged."""
    data = content[:-_SEAL_SIZE]
    return data if content.endswith(_seal(name, data)) else None


def _read(descriptor: int, size: int) -> bytes:
    """Return what a file has, which does not grow; less of one that was cut short."""
    content = os.read(descriptor, size)
    while len(content) < size and (more := os.read(descriptor, size - len(content))):  # large files come in pieces
        content += more
    return content


def _set_read_time(descriptor: int, found: os.stat_result) -> None:
    """Note that a file is read now: that which was opened, even if another has its name by now."""
    try:
        os.utime(descriptor, ns=(time.time_ns(), found.st_mtime_ns))
    except OSError:  # on a read-only disk
        return


def _is_ours(found: os.stat_result) -> bool:
    """Tell whether a file is one that nobody else has written."""
    mode = found.st_mode
    return stat.S_ISREG(mode) and not mode & _WRITABLE_BY_OTHERS and found.st_uid == os.geteuid()


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and the status of each file that is in a folder, and still is when it is looked at."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(FileNotFoundError):
                yield entry.path, entry.stat(follow_symlinks=False)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _discard(path: str) -> None:
    """Remove what should not be there; what cannot be removed, on a read-only disk, stays."""
    with contextlib.suppress(OSError):
        os.unlink(path)
