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

The digest is no secret, so what is read was written by this user: the owner and the mode of a file are checked after it
was opened. What is written and removed is named relative to a folder that was opened and checked, and is not a link. So
nobody who can exchange the folders, because others may write to the folder above, leads a removal to files elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterator

from cuda_core_cffi._code.object_code import ObjectCode
from cuda_core_cffi._compile.program_cache import ProgramCacheResource, check_key, check_limit, check_value
from cuda_core_cffi._core.user_cache import check_owner, user_cache_folder

_OWNER_ONLY = 0o700
_OWNER_ONLY_FILE = 0o600
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# A link is not followed, and a pipe, which nobody writes to, not waited for.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NAME_BYTES = 16  # of a temporary file
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
    NotADirectoryError
        If what is in the folder's place, or in the place of one that the cache makes in it, is something else. The
        folder itself may be a link of the user; those in it may not.
    OSError
        If the folder cannot be made.

    Notes
    -----
    Only the user can read or write the entries. What others put there, and what was damaged, is removed rather than
    returned. A folder in the place of an entry is no entry, and the next write of that entry removes it. An entry is a
    file that other tools can read: the code, and a line with a digest.
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
        try:
            descriptor = os.open(f"{self._entries}/{name}", _READ)
        except (FileNotFoundError, PermissionError):
            raise KeyError(key) from None
        except OSError:  # a link
            self._discard(name)
            raise KeyError(key) from None
        try:
            found = os.fstat(descriptor)
            value = _unseal(name, _read(descriptor, found.st_size)) if _is_ours(found) else None
            if value is not None:
                _set_read_time(descriptor, found)
        finally:
            os.close(descriptor)
        if value is None:
            self._discard(name)
            raise KeyError(key)
        return value

    def __setitem__(self, key: bytes | str, value: bytes | bytearray | memoryview | ObjectCode) -> None:
        name, data = _digest(check_key(key)), check_value(value)
        if self._limit is not None and len(data) > self._limit:
            with contextlib.suppress(FileNotFoundError, IsADirectoryError), _opened(self._entries) as entries:
                os.unlink(name, dir_fd=entries)
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
            with _opened(self._entries) as entries:
                os.unlink(_digest(check_key(key)), dir_fd=entries)
        except (FileNotFoundError, IsADirectoryError):
            raise KeyError(key) from None

    def __len__(self) -> int:
        with contextlib.suppress(FileNotFoundError), _opened(self._entries) as entries:
            return sum(1 for _ in _files(entries))
        return 0

    def clear(self) -> None:
        """Remove every entry, and what processes that were killed have left."""
        with contextlib.suppress(FileNotFoundError), _opened(self._entries) as entries:
            for name, _ in _files(entries):
                _remove(name, entries)
        self._sweep()

    def _make_folders(self) -> None:
        os.makedirs(self._folder, _OWNER_ONLY, exist_ok=True)
        check_owner(self._folder, "give the cache another path")
        for folder in (self._entries, self._unfinished):
            os.makedirs(folder, _OWNER_ONLY, exist_ok=True)
            with _opened(folder) as descriptor:
                if stat.S_IMODE(os.fstat(descriptor).st_mode) != _OWNER_ONLY:
                    os.chmod(descriptor, _OWNER_ONLY)

    def _write(self, name: str, data: bytes) -> None:
        temporary = os.urandom(_NAME_BYTES).hex()
        with _opened(self._unfinished) as unfinished, _opened(self._entries) as entries:
            descriptor = os.open(temporary, _CREATE, _OWNER_ONLY_FILE, dir_fd=unfinished)
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                    file.write(_seal(name, data))
                    file.flush()
                    # The system's own times of new files are coarser than those which readers set.
                    os.utime(descriptor, ns=(time.time_ns(),) * 2)
                _replace(temporary, name, unfinished, entries)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=unfinished)
                raise

    def _discard(self, name: str) -> None:
        """Remove an entry that should not be there; what cannot be removed, on a read-only disk, stays."""
        with contextlib.suppress(OSError), _opened(self._entries) as entries:
            os.unlink(name, dir_fd=entries)

    def _evict(self, limit: int) -> None:
        """Remove what was not read for the longest time, until the rest is within the limit."""
        with contextlib.suppress(FileNotFoundError), _opened(self._entries) as entries:
            found = [(status.st_atime_ns, name, status.st_size - _SEAL_SIZE) for name, status in _files(entries)]
            excess = sum(size for _, _, size in found) - limit
            if excess > 0:
                for _, name, size in sorted(found):
                    _remove(name, entries)
                    excess -= size
                    if excess <= 0:
                        break
        self._sweep()

    def _sweep(self) -> None:
        """Remove the temporary files of processes that were killed."""
        with contextlib.suppress(OSError), _opened(self._unfinished) as unfinished:
            for name, status in _files(unfinished):
                if abs(time.time() - status.st_mtime) > _STALE_AFTER:  # clocks are also set back
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=unfinished)


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    """Open a folder that the cache made, and close it again. It is this user's, and not a link to another."""
    try:
        descriptor = os.open(folder, _FOLDER)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NotADirectoryError(
                error.errno, "not a folder that the cache made, but a link or a file: remove it", folder
            ) from None
        raise
    try:
        check_owner(folder, "give the cache another path", os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


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


def _files(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield name and status of each file in a folder. Files may vanish in between, and folders are no entries."""
    with os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    yield entry.name, status


def _replace(temporary: str, name: str, unfinished: int, entries: int) -> None:
    """Give a finished file its name, and remove a folder in its place: only the cache gives such names."""
    try:
        os.replace(temporary, name, src_dir_fd=unfinished, dst_dir_fd=entries)
    except IsADirectoryError:
        import shutil  # rarely needed

        shutil.rmtree(name, ignore_errors=True, dir_fd=entries)  # another process may do the same
        os.replace(temporary, name, src_dir_fd=unfinished, dst_dir_fd=entries)


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
