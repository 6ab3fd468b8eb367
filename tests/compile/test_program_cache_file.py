# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled programs in a folder: what is on the disk, damage, other users, other processes."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import pathlib
import pickle
import stat
import time
from collections.abc import Callable

import cache_child
import pytest
from helpers import LIMIT, output_of

from cuda_core_cffi import ObjectCode, Program, UnavailableError
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.utils import FileStreamProgramCache

SPAWN = multiprocessing.get_context("spawn")
PROCESSES = 8
CODE = b"\x7fELF" + bytes(range(256)) * 20
HOUR = 3600
ANOTHER = 54321  # a user
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")


@pytest.fixture
def folder(tmp_path):
    """Return the path of a folder for a cache, which is not there yet."""
    return tmp_path / "cache"


@pytest.fixture
def cache(folder):
    """Return a cache without a limit."""
    return FileStreamProgramCache(folder)


def entries(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of the entries."""
    return sorted((folder / "entries").iterdir())


def entry(folder: pathlib.Path) -> pathlib.Path:
    """Return the file of the only entry."""
    (path,) = entries(folder)
    return path


def unfinished(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the temporary files."""
    return sorted((folder / "unfinished").iterdir())


def victims(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder with a file of the user that is old, and which no cache may touch."""
    folder = tmp_path / "documents"
    folder.mkdir(0o755)
    folder.chmod(0o755)
    (folder / "old").write_bytes(b"dear")
    os.utime(folder / "old", (1, 1))
    return folder


def change_owner(monkeypatch: pytest.MonkeyPatch, path: pathlib.Path) -> None:
    """Make a file or folder look, to those who open it, as if it were another user's."""
    real, inode = os.fstat, path.stat().st_ino

    def status_of(descriptor):
        status = list(real(descriptor))
        if status[stat.ST_INO] == inode:
            status[stat.ST_UID] += 1
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", status_of)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for another process."""
    end = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


# The folder


def test_entries_outlive_the_cache(folder):
    FileStreamProgramCache(folder)["key"] = CODE
    assert FileStreamProgramCache(folder)["key"] == CODE


def test_another_process_finds_the_entries(folder, cache):
    cache["key"] = CODE
    code = """
        import sys
        from cuda_core_cffi.utils import FileStreamProgramCache
        print(FileStreamProgramCache(sys.argv[1])["key"].hex())
    """
    assert bytes.fromhex(output_of(code, str(folder))) == CODE


@pytest.mark.parametrize("make_path", [str, pathlib.Path])
def test_a_path_is_a_str_or_a_path(folder, make_path):
    FileStreamProgramCache(make_path(folder))["key"] = CODE
    assert entry(folder)


@pytest.mark.parametrize("path", [3, b"folder", ["a"]])
def test_a_path_of_another_type_is_refused(path):
    with pytest.raises(TypeError, match="str"):
        FileStreamProgramCache(path)


def test_an_empty_path_is_refused():
    with pytest.raises(ValueError, match="empty"):
        FileStreamProgramCache("")


def test_a_path_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        FileStreamProgramCache(tmp_path / "file")


def test_a_relative_path_stays_the_same_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache = FileStreamProgramCache("cache")
    monkeypatch.chdir("/")
    cache["key"] = CODE
    assert entry(tmp_path / "cache")


@pytest.mark.parametrize("base", ["xdg", None, "", "relative"])
def test_the_default_is_in_the_cache_folder_of_the_user(tmp_path, monkeypatch, base):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    expected = tmp_path / "home" / ".cache"
    if base == "xdg":
        expected = tmp_path / "xdg"
        base = str(expected)
    if base is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", base)
    FileStreamProgramCache()["key"] = CODE
    assert entry(expected / "cuda-core-cffi" / "program-cache")


def test_a_folder_that_was_removed_is_made_again(folder, cache):
    cache["key"] = CODE
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    assert cache.get("key") is None
    assert len(cache) == 0
    cache.clear()
    cache["key"] = CODE
    assert cache["key"] == CODE


def test_a_cache_can_be_sent_to_another_process(folder):
    cache = pickle.loads(pickle.dumps(FileStreamProgramCache(folder, max_size_bytes=10)))
    cache["key"] = b"x" * 10
    cache["other"] = b"x" * 11
    assert (cache.get("key"), cache.get("other")) == (b"x" * 10, None)


# The files


def test_files_and_folders_are_for_the_owner_alone_whatever_the_umask(folder):
    code = """
        import os, sys
        os.umask(0)
        from cuda_core_cffi.utils import FileStreamProgramCache
        FileStreamProgramCache(sys.argv[1])["key"] = b"code"
    """
    output_of(code, str(folder))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    assert {oct(mode) for path, mode in modes.items() if path.is_dir()} == {"0o700"}
    assert oct(modes[entry(folder)]) == "0o600"


def test_folders_that_were_opened_to_others_are_closed(folder, cache):
    for name in ("entries", "unfinished"):
        (folder / name).chmod(0o777)
    FileStreamProgramCache(folder)
    assert [oct(stat.S_IMODE((folder / name).stat().st_mode)) for name in ("entries", "unfinished")] == ["0o700"] * 2


def test_the_mode_of_a_folder_that_was_there_is_the_users_business(folder):
    folder.mkdir(0o755)
    folder.chmod(0o755)
    FileStreamProgramCache(folder)["key"] = CODE
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "entries").stat().st_mode) == 0o700


def test_a_file_begins_with_the_code_so_that_other_tools_can_read_it(folder, cache):
    cache["key"] = CODE
    content = entry(folder).read_bytes()
    assert content.startswith(CODE)
    assert content[len(CODE) :].startswith(b"\n// cuda-core-cffi ")
    assert len(content) == len(CODE) + 84


def test_the_driver_can_load_the_file(folder, cache, device):
    try:
        NVRTC_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))
    Program('extern "C" __global__ void k() { }', "c++").compile("cubin", cache=cache)
    with ObjectCode.from_cubin(entry(folder)) as code:
        assert code.get_kernel("k")


def test_no_temporary_file_is_left(folder, cache):
    cache["key"] = CODE
    assert unfinished(folder) == []


# Damage


@pytest.mark.parametrize("position", [0, len(CODE) // 2, len(CODE) - 1, len(CODE) + 5, -1])
def test_a_flipped_bit_makes_an_entry_missing_and_removes_it(folder, cache, position):
    cache["key"] = CODE
    content = bytearray(entry(folder).read_bytes())
    content[position] ^= 1
    entry(folder).write_bytes(content)
    assert cache.get("key") is None
    assert len(cache) == 0


@pytest.mark.parametrize("size", [0, 10, 84, len(CODE), len(CODE) + 83])
def test_a_file_that_is_cut_short_is_missing_and_removed(folder, cache, size):
    cache["key"] = CODE
    os.truncate(entry(folder), size)
    with pytest.raises(KeyError):
        cache["key"]
    assert len(cache) == 0


@pytest.mark.parametrize("more", [b"\0", b"\n", CODE])
def test_a_file_with_something_after_it_is_missing_and_removed(folder, cache, more):
    cache["key"] = CODE
    with entry(folder).open("ab") as file:
        file.write(more)
    assert cache.get("key") is None
    assert len(cache) == 0


def test_a_folder_in_the_place_of_an_entry_is_missing(folder, cache):
    cache["key"] = CODE
    path = entry(folder)
    path.unlink()
    path.mkdir()
    assert cache.get("key") is None


@pytest.fixture
def obstructed(folder, cache):
    """Return a folder with a file in it that is in the place of an entry."""
    cache["key"] = CODE
    path = entry(folder)
    path.unlink()
    (path / "more").mkdir(parents=True)
    (path / "more" / "file").write_bytes(b"data")
    return path


def test_a_write_removes_a_folder_in_the_place_of_the_entry(folder, cache, obstructed):
    cache["key"] = CODE
    assert cache["key"] == CODE
    assert entry(folder).is_file()
    assert unfinished(folder) == []


def test_a_folder_in_the_place_of_an_entry_is_no_entry(cache, obstructed):
    cache["other"] = CODE
    assert len(cache) == 1
    with pytest.raises(KeyError, match="key"):
        del cache["key"]
    cache.clear()
    assert len(cache) == 0
    assert (obstructed / "more" / "file").exists()


def test_a_folder_in_the_place_of_an_entry_is_not_counted_for_the_limit(folder, obstructed):
    cache = FileStreamProgramCache(folder, max_size_bytes=len(CODE))
    os.utime(obstructed, (1, 1))
    cache["other"] = CODE
    cache["key"] = CODE + CODE  # too large to be kept
    assert cache["other"] == CODE
    cache["another"] = CODE
    assert cache["another"] == CODE
    assert len(cache) == 1


def test_a_folder_among_the_temporary_files_is_left_alone(folder, cache):
    (folder / "unfinished" / "folder").mkdir()
    os.utime(folder / "unfinished" / "folder", (1, 1))
    cache["key"] = CODE
    cache.clear()
    assert [path.name for path in unfinished(folder)] == ["folder"]


@pytest.mark.parametrize("make", ["link", "dangling", "pipe", "unreadable"])
def test_what_else_is_in_the_place_of_an_entry_is_replaced_and_removed(folder, cache, tmp_path, make):
    cache["key"] = CODE
    path, target = entry(folder), victims(tmp_path)

    def obstruct() -> None:
        path.unlink()
        if make == "pipe":
            os.mkfifo(path)
        elif make == "unreadable":
            path.touch(0)
        else:
            path.symlink_to(target if make == "link" else tmp_path / "nothing")

    obstruct()
    cache["key"] = CODE
    assert cache["key"] == CODE
    obstruct()
    cache.clear()
    assert entries(folder) == []
    assert (target / "old").exists()


def test_a_file_that_comes_in_pieces_is_read_to_its_end(folder, cache, monkeypatch):
    read = os.read
    cache["key"] = CODE
    monkeypatch.setattr(os, "read", lambda descriptor, size: read(descriptor, min(size, 1000)))
    assert cache["key"] == CODE


@pytest.mark.parametrize("damaged", [False, True])
def test_no_file_stays_open(folder, cache, damaged):
    cache["key"] = CODE
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        if damaged:
            entry(folder).write_bytes(b"damage")
        cache.get("key")
        cache["key"] = CODE
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_entry_under_the_name_of_another_is_missing(folder, cache):
    cache["key"] = CODE
    path = entry(folder)
    cache["other"] = b"other"
    (other,) = set(entries(folder)) - {path}
    other.replace(path)
    assert cache.get("key") is None


def test_a_damaged_entry_can_be_written_again(folder, cache):
    cache["key"] = CODE
    entry(folder).write_bytes(b"")
    cache["key"] = CODE
    assert cache["key"] == CODE


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_damaged_entries_do_not_upset_the_limit(folder, limit):
    cache = FileStreamProgramCache(folder, max_size_bytes=5)
    cache["key"] = b"12345"
    os.truncate(entry(folder), limit)
    cache["other"] = b"12345"
    assert cache["other"] == b"12345"


# Other users


def test_the_folder_of_another_user_is_refused(folder, cache, monkeypatch):
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(PermissionError, match=rf"belongs to user {mine}, not to user {mine + 1}"):
        FileStreamProgramCache(folder)


@pytest.mark.parametrize("name", ["entries", "unfinished"])
def test_a_folder_inside_that_another_user_made_is_refused(folder, cache, monkeypatch, name):
    change_owner(monkeypatch, folder / name)
    with pytest.raises(PermissionError, match=name):
        FileStreamProgramCache(folder)


@as_root
@pytest.mark.parametrize("name", [".", "entries", "unfinished"])
def test_a_folder_that_was_given_to_another_user_is_refused(folder, cache, name):
    os.chown(folder / name, ANOTHER, -1)
    with pytest.raises(PermissionError, match=f"belongs to user {ANOTHER}"):
        FileStreamProgramCache(folder)


@as_root
def test_a_link_that_another_user_made_is_refused(folder, cache, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    os.lchown(tmp_path / "link", ANOTHER, -1)
    with pytest.raises(PermissionError, match=f"belongs to user {ANOTHER}"):
        FileStreamProgramCache(tmp_path / "link")


@as_root
def test_a_file_that_was_given_to_another_user_is_missing_and_removed(folder, cache):
    cache["key"] = CODE
    os.chown(entry(folder), ANOTHER, -1)
    assert cache.get("key") is None
    assert len(cache) == 0


def test_a_file_of_another_user_is_missing_and_removed(folder, cache, monkeypatch):
    cache["key"] = CODE
    change_owner(monkeypatch, entry(folder))
    assert cache.get("key") is None
    assert len(cache) == 0


def test_a_file_that_others_could_write_to_is_missing_and_removed(folder, cache):
    cache["key"] = CODE
    entry(folder).chmod(0o666)
    assert cache.get("key") is None
    assert len(cache) == 0


def test_a_file_that_cannot_be_opened_is_missing(folder, cache, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "no")

    cache["key"] = CODE
    monkeypatch.setattr(os, "open", refuse)
    assert cache.get("key") is None


def test_a_read_only_disk_can_be_read(folder, cache, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, "read-only")

    cache["key"] = CODE
    for name in ("utime", "unlink", "replace", "chmod", "mkdir"):
        monkeypatch.setattr(os, name, refuse)
    assert FileStreamProgramCache(folder)["key"] == CODE
    with entry(folder).open("ab") as file:
        file.write(b"damage")
    assert cache.get("key") is None


def test_a_write_that_fails_is_an_error_and_leaves_what_was_there(folder, cache, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.ENOSPC, "full")

    cache["key"] = CODE
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="full"):
        cache["key"] = b"other"
    assert cache["key"] == CODE
    assert unfinished(folder) == []


# Links, pipes and names


def test_the_folder_may_be_a_link_of_the_user(folder, tmp_path):
    (tmp_path / "disk").mkdir()
    folder.symlink_to(tmp_path / "disk")
    FileStreamProgramCache(folder)["key"] = CODE
    assert entry(tmp_path / "disk")


@pytest.mark.parametrize("name", ["entries", "unfinished"])
def test_a_link_in_the_place_of_a_folder_inside_is_refused_and_its_target_left_alone(folder, tmp_path, name):
    target = victims(tmp_path)
    folder.mkdir()
    (folder / name).symlink_to(target)
    with pytest.raises(NotADirectoryError, match="link"):
        FileStreamProgramCache(folder)
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert os.listdir(target) == ["old"]


@pytest.mark.parametrize("name", ["entries", "unfinished"])
def test_folders_that_are_exchanged_for_links_later_lead_to_nothing_elsewhere(folder, tmp_path, name):
    cache = FileStreamProgramCache(folder, max_size_bytes=2 * len(CODE))
    cache["key"] = CODE
    folder.chmod(0o777)  # others may rename what is in it
    (folder / name).rename(folder / "away")
    target = victims(tmp_path)
    (folder / name).symlink_to(target)
    for use in (cache.clear, lambda: cache.update({"key": CODE}), lambda: cache.__delitem__("key"), lambda: len(cache)):
        with contextlib.suppress(NotADirectoryError, KeyError):
            use()
    assert os.listdir(target) == ["old"]


def test_an_entry_that_is_a_link_is_missing_and_removed_and_its_target_left_alone(folder, cache, tmp_path):
    cache["key"] = CODE
    target = entry(folder).rename(tmp_path / "elsewhere")
    name = (cache.update({"key": CODE}), entry(folder))[1]
    name.unlink()
    name.symlink_to(target)
    assert cache.get("key") is None
    assert len(cache) == 0
    assert target.read_bytes().startswith(CODE)


def test_an_entry_that_is_a_link_is_replaced_and_not_written_through(folder, cache, tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"mine")
    cache["key"] = CODE
    name = entry(folder)
    name.unlink()
    name.symlink_to(tmp_path / "elsewhere")
    cache["key"] = CODE
    assert cache["key"] == CODE
    assert (tmp_path / "elsewhere").read_bytes() == b"mine"


def test_a_pipe_in_the_place_of_an_entry_is_missing_and_not_waited_for(folder):
    code = """
        import os, sys
        from cuda_core_cffi.utils import FileStreamProgramCache
        cache = FileStreamProgramCache(sys.argv[1])
        cache["key"] = b"code"
        (name,) = os.listdir(sys.argv[1] + "/entries")
        os.unlink(f"{sys.argv[1]}/entries/{name}")
        os.mkfifo(f"{sys.argv[1]}/entries/{name}", 0o600)
        print(cache.get("key"), len(cache))
    """
    assert output_of(code, str(folder)).split() == ["None", "0"]


@pytest.mark.parametrize(
    "key", ["../../outside", "/tmp/outside", "a/b", "..", ".", "name\0end", b"\xff/../x", "x" * 5000]
)
def test_no_key_names_a_file_outside(folder, cache, tmp_path, key):
    cache[key] = CODE
    assert cache[key] == CODE
    files = [path for path in tmp_path.rglob("*") if not path.is_dir()]
    assert files == entries(folder)
    assert len(files[0].name) == 64


# Limits


def test_reading_in_another_process_counts(folder):
    cache = FileStreamProgramCache(folder, max_size_bytes=20)
    cache.update({"a": b"a" * 10, "b": b"b" * 10})
    output_of(
        "import sys; from cuda_core_cffi.utils import FileStreamProgramCache; FileStreamProgramCache(sys.argv[1])['a']",
        str(folder),
    )
    cache["c"] = b"c" * 10
    assert [key for key in "abc" if cache.get(key) is None] == ["b"]


def test_what_other_processes_wrote_counts(folder):
    FileStreamProgramCache(folder).update({"a": b"a" * 10, "b": b"b" * 10, "c": b"c" * 10})
    FileStreamProgramCache(folder, max_size_bytes=20)["d"] = b"d" * 10
    assert [key for key in "abcd" if FileStreamProgramCache(folder).get(key) is None] == ["a", "b"]


def test_reading_does_not_make_a_file_look_new(folder, cache):
    cache["key"] = CODE
    os.utime(entry(folder), ns=(0, 1_000_000_007))
    assert cache["key"] == CODE
    assert entry(folder).stat().st_mtime_ns == 1_000_000_007
    assert entry(folder).stat().st_atime > time.time() - HOUR


def test_an_entry_that_vanishes_while_room_is_made_is_no_error(folder, monkeypatch):
    cache = FileStreamProgramCache(folder, max_size_bytes=20)
    cache.update({"a": b"a" * 10, "b": b"b" * 10})
    real = os.unlink

    def unlink_twice(path, **options):
        real(path, **options)
        real(path, **options)

    monkeypatch.setattr(os, "unlink", unlink_twice)
    cache["c"] = b"c" * 10
    assert len(cache) == 2


# Processes that were killed


def test_a_process_that_is_killed_in_mid_write_changes_nothing(folder, cache, tmp_path):
    cache["key"] = CODE
    ready = tmp_path / "ready"
    child = SPAWN.Process(target=cache_child.stop_in_mid_write, args=(str(folder), b"new" * 1000, str(ready)))
    child.start()
    wait_until(ready.exists)
    child.kill()
    child.join()
    assert cache["key"] == CODE
    assert len(cache) == 1
    assert len(unfinished(folder)) == 1
    cache["key"] = b"newer"
    assert cache["key"] == b"newer"


@pytest.mark.parametrize("use", ["start", "write", "clear"])
def test_what_a_killed_process_left_is_swept_up_an_hour_later(folder, cache, use):
    limited = FileStreamProgramCache(folder, max_size_bytes=100)
    left = folder / "unfinished" / "left"
    left.write_bytes(b"half")
    os.utime(left, (time.time(), time.time() - HOUR - 60))
    {
        "start": lambda: FileStreamProgramCache(folder),
        "write": lambda: limited.update({"a": b"a"}),
        "clear": cache.clear,
    }[use]()
    assert unfinished(folder) == []


@pytest.mark.parametrize("age", [0, HOUR - 60])
def test_what_may_still_be_written_is_not_swept_up(folder, cache, age):
    writing = folder / "unfinished" / "writing"
    writing.write_bytes(b"half")
    os.utime(writing, (time.time(), time.time() - age))
    FileStreamProgramCache(folder, max_size_bytes=100).update({"a": b"a"})
    cache.clear()
    assert unfinished(folder) == [writing]


def test_what_is_from_the_far_future_is_swept_up(folder, cache):
    left = folder / "unfinished" / "left"
    left.write_bytes(b"half")
    os.utime(left, (time.time(), time.time() + 2 * HOUR))
    cache.clear()
    assert unfinished(folder) == []


# Many processes


@pytest.mark.parametrize("limit", [None, 30_000])
def test_many_processes_write_and_read_at_once(folder, limit):
    barrier = SPAWN.Barrier(PROCESSES)
    children = [
        SPAWN.Process(target=cache_child.write_and_read, args=(str(folder), limit, worker, barrier))
        for worker in range(PROCESSES)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(LIMIT)
    assert [child.exitcode for child in children] == [0] * PROCESSES
    check_what_is_left(folder, limit)
    if limit is None:
        assert len(FileStreamProgramCache(folder)) == cache_child.KEYS
    assert unfinished(folder) == []


def test_processes_that_are_killed_again_and_again_damage_nothing(folder):
    limit = 30_000
    cache = FileStreamProgramCache(folder, max_size_bytes=limit)
    for turn in range(4):
        cache.clear()
        children = [
            SPAWN.Process(target=cache_child.write_for_ever, args=(str(folder), limit, worker)) for worker in range(3)
        ]
        for child in children:
            child.start()
        wait_until(lambda: len(cache) > 0)
        time.sleep(turn * 0.05)  # into their work
        for child in children:
            child.kill()
        for child in children:
            child.join()
        check_what_is_left(folder, None)
    cache["0"] = b"\0" * cache_child.size_of(0)
    check_what_is_left(folder, limit)


def check_what_is_left(folder: pathlib.Path, limit: int | None) -> None:
    """Check that every file is a whole entry, and that there is no more than the limit allows."""
    cache = FileStreamProgramCache(folder)
    count = len(cache)
    values = {key: cache.get(str(key)) for key in range(cache_child.KEYS)}
    kept = {key: value for key, value in values.items() if value is not None}
    assert all(cache_child.is_whole(key, value) for key, value in kept.items())
    assert len(kept) == count > 0  # nothing was damaged, and there are no other files
    if limit is not None:
        assert sum(map(len, kept.values())) <= limit
