# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Caches of compiled programs: what every cache does, and what ``Program.compile`` does with one."""

from __future__ import annotations

import gc
import io
import threading
import weakref

import numpy as np
import pytest

from cuda_core_cffi import (
    LaunchConfig,
    LegacyPinnedMemoryResource,
    NVRTCError,
    ObjectCode,
    Program,
    ProgramOptions,
    UnavailableError,
    launch,
)
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.utils import FileStreamProgramCache, InMemoryProgramCache, ProgramCacheResource

SOURCE = 'extern "C" __global__ void three(int *x) { *x = 3; }'
SM_90 = ProgramOptions(arch="sm_90", name="three.cu")
PTX = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
THREADS = 8


@pytest.fixture
def nvrtc():
    """Skip without a compiler."""
    try:
        NVRTC_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["memory", "file"])
def make_cache(request, tmp_path):
    """Return what makes a cache, given a limit."""
    if request.param == "memory":
        return lambda limit=None: InMemoryProgramCache(limit)
    return lambda limit=None: FileStreamProgramCache(tmp_path / "cache", max_size_bytes=limit)


@pytest.fixture
def cache(make_cache):
    """Return a cache without a limit."""
    return make_cache()


class OwnCache(ProgramCacheResource):
    """A cache as a user would write one."""

    def __init__(self):
        self.entries = {}
        self.is_full = False

    def __getitem__(self, key):
        return self.entries[key]

    def __setitem__(self, key, value):
        if self.is_full:
            raise OSError(28, "no space left")
        self.entries[key] = bytes(value.code)

    def __delitem__(self, key):
        del self.entries[key]

    def __len__(self):
        return len(self.entries)

    def clear(self):
        self.entries.clear()


# Keys and values


def test_what_is_stored_comes_back(cache):
    cache[b"key"] = b"value\0\n"
    assert cache[b"key"] == b"value\0\n"


@pytest.mark.parametrize("value", [b"", b"\n", bytes(range(256)) * 5000])
def test_any_bytes_come_back(cache, value):
    cache[b"key"] = value
    assert cache[b"key"] == value


@pytest.mark.parametrize("key", ["", "größe/../x\0y", "k" * 10_000])
def test_a_str_stands_for_its_utf_8(cache, key):
    cache[key] = b"value"
    assert cache[key.encode()] == b"value"
    assert len(cache) == 1


@pytest.mark.parametrize("value", [bytearray(b"value"), memoryview(b"value"), memoryview(b"v_a_l_u_e")[::2]])
def test_a_value_is_anything_with_bytes(cache, value):
    cache["key"] = value
    assert type(cache["key"]) is bytes
    assert cache["key"] == b"value"


def test_a_value_does_not_change_with_what_it_was_made_from(cache):
    value = bytearray(b"value")
    cache["key"] = value
    value[:] = b"other"
    assert cache["key"] == b"value"


def test_of_object_code_the_code_is_stored(cache):
    cache["key"] = ObjectCode.from_ptx(PTX, name="named", symbol_mapping={"a": "k"})
    assert cache["key"] == PTX


def test_of_object_code_from_a_file_the_code_is_stored_and_not_the_path(cache, tmp_path):
    (tmp_path / "k.ptx").write_bytes(PTX)
    cache["key"] = ObjectCode.from_ptx(tmp_path / "k.ptx")
    assert cache["key"] == PTX


@pytest.mark.parametrize("key", [None, 3, bytearray(b"k"), memoryview(b"k"), ("k",)])
def test_a_key_of_another_type_is_refused_everywhere(cache, key):
    with pytest.raises(TypeError, match="a key must be bytes or str"):
        cache[key]
    with pytest.raises(TypeError, match="a key must be bytes or str"):
        cache[key] = b""
    with pytest.raises(TypeError, match="a key must be bytes or str"):
        del cache[key]
    with pytest.raises(TypeError, match="a key must be bytes or str"):
        cache.get(key)


@pytest.mark.parametrize("value", [None, 3, "text", [1]])
def test_a_value_of_another_type_is_refused_and_what_was_there_stays(cache, value):
    cache["key"] = b"value"
    with pytest.raises(TypeError, match=r"a value must be bytes, .* not"):
        cache["key"] = value
    assert cache["key"] == b"value"


# A mapping, with less


def test_a_missing_key_is_a_key_error_that_has_it(cache):
    with pytest.raises(KeyError) as caught:
        cache["key"]
    assert caught.value.args == ("key",)


def test_get_gives_the_value_or_the_default(cache):
    cache["key"] = b"value"
    assert cache.get("key", b"other") == b"value"
    assert cache.get("none", b"other") == b"other"
    assert cache.get("none") is None


def test_a_value_replaces_the_one_before(cache):
    cache["key"] = b"value"
    cache["key"] = b"other"
    assert (cache["key"], len(cache)) == (b"other", 1)


def test_an_entry_can_be_removed_once(cache):
    cache["key"] = b"value"
    del cache["key"]
    assert cache.get("key") is None
    with pytest.raises(KeyError):
        del cache["key"]


def test_clear_removes_every_entry(cache):
    cache.update({"a": b"1", "b": b"2"})
    cache.clear()
    assert len(cache) == 0
    assert cache.get("a") is None


@pytest.mark.parametrize("kind", [dict, list, iter])
def test_update_takes_a_mapping_or_pairs(cache, kind):
    cache.update(kind([("a", b"1"), (b"b", b"2")]))
    assert (cache["a"], cache["b"]) == (b"1", b"2")


def test_an_update_that_fails_keeps_what_came_before(cache):
    with pytest.raises(TypeError):
        cache.update([("a", b"1"), ("b", None), ("c", b"3")])
    assert (cache.get("a"), cache.get("c")) == (b"1", None)


def test_there_is_no_in(cache):
    cache["key"] = b"value"
    with pytest.raises(TypeError, match="iterable"):
        assert "key" in cache


def test_there_is_no_iteration(cache):
    with pytest.raises(TypeError, match="not iterable"):
        iter(cache)


def test_with_gives_the_cache_and_keeps_its_entries(cache):
    with cache as same:
        cache["key"] = b"value"
    assert same is cache
    assert cache["key"] == b"value"


def test_a_cache_is_equal_to_itself_only_and_can_be_referred_to_weakly(make_cache):
    cache, other = make_cache(), make_cache()
    assert cache != other
    assert len({cache, other}) == 2
    reference = weakref.ref(cache)
    del cache
    for _ in range(3):
        gc.collect()
    assert reference() is None


def test_the_base_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        ProgramCacheResource()


# Limits


def test_what_was_not_read_for_the_longest_time_makes_room(make_cache):
    cache = make_cache(30)
    cache.update({"a": b"a" * 10, "b": b"b" * 10, "c": b"c" * 10})
    assert cache["a"]
    cache["d"] = b"d" * 10
    assert [key for key in "abcd" if cache.get(key) is None] == ["b"]


def test_getting_counts_as_reading(make_cache):
    cache = make_cache(20)
    cache.update({"a": b"a" * 10, "b": b"b" * 10})
    cache.get("a")
    cache["c"] = b"c" * 10
    assert [key for key in "abc" if cache.get(key) is None] == ["b"]


def test_a_limit_may_be_reached_and_not_passed(make_cache):
    cache = make_cache(20)
    cache.update({"a": b"a" * 10, "b": b"b" * 10})
    assert len(cache) == 2
    cache["c"] = b"c"
    assert len(cache) == 2


def test_a_large_entry_makes_room_for_itself(make_cache):
    cache = make_cache(30)
    cache.update({"a": b"a" * 10, "b": b"b" * 10, "c": b"c" * 10})
    cache["d"] = b"d" * 20
    assert [key for key in "abcd" if cache.get(key) is None] == ["a", "b"]


def test_an_entry_that_replaces_another_does_not_count_twice(make_cache):
    cache = make_cache(20)
    cache["a"] = b"a" * 10
    for size in (5, 10, 15):
        cache["b"] = b"b" * min(size, 10)
    assert len(cache) == 2


def test_an_entry_that_was_removed_does_not_count(make_cache):
    cache = make_cache(20)
    cache.update({"a": b"a" * 10, "b": b"b" * 10})
    del cache["a"]
    cache["c"] = b"c" * 10
    assert len(cache) == 2
    cache.clear()
    cache.update({"d": b"d" * 10, "e": b"e" * 10})
    assert len(cache) == 2


def test_code_that_is_larger_than_the_limit_is_not_kept_and_the_rest_stays(make_cache):
    cache = make_cache(20)
    cache["a"] = b"a" * 10
    cache["b"] = b"b" * 21
    assert (cache.get("a"), cache.get("b")) == (b"a" * 10, None)


def test_code_that_is_larger_than_the_limit_still_replaces(make_cache):
    cache = make_cache(20)
    cache["a"] = b"a" * 10
    cache["a"] = b"b" * 21
    assert cache.get("a") is None


def test_a_limit_of_zero_keeps_nothing(make_cache):
    cache = make_cache(0)
    cache["a"] = b"a"
    assert len(cache) == 0


@pytest.mark.parametrize("limit", ["1", 1.5, True])
def test_a_limit_of_another_type_is_refused(make_cache, limit):
    with pytest.raises(TypeError, match="max_size_bytes must be an int or None"):
        make_cache(limit)


def test_a_negative_limit_is_refused(make_cache):
    with pytest.raises(ValueError, match="-1"):
        make_cache(-1)


# Threads


def test_threads_may_use_one_cache_at_once(make_cache):
    def use(worker):
        try:
            barrier.wait()
            for round_ in range(60):
                key = f"key {(worker + round_) % 20}"
                cache[key] = key.encode() * 10
                for other in range(20):
                    found = cache.get(f"key {other}")
                    assert found in (None, f"key {other}".encode() * 10)
                if round_ % 20 == 19:
                    cache.clear()
        except BaseException as error:
            errors.append(error)

    cache = make_cache(600)
    errors: list[BaseException] = []
    barrier = threading.Barrier(THREADS)
    threads = [threading.Thread(target=use, args=(worker,)) for worker in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    cache["last"] = b"x"
    kept = sum(len(cache.get(f"key {other}", b"")) for other in range(20))
    assert kept <= 600


# Compiling


def test_code_is_compiled_once(nvrtc, cache, monkeypatch):
    first = Program(SOURCE, "c++", SM_90).compile("cubin", cache=cache)
    monkeypatch.setattr("cuda_core_cffi._compile.nvrtc.compile_program", None)  # whoever compiles now fails
    second = Program(SOURCE, "c++", SM_90).compile("cubin", cache=cache)
    assert second is not first
    assert second.code == first.code
    assert len(cache) == 1


def test_code_from_a_cache_is_the_code_that_was_compiled_in_all_but_its_file(nvrtc, cache):
    program = Program(SOURCE, "c++", SM_90)
    program.compile("ptx", cache=cache)
    code = program.compile("ptx", cache=cache)
    assert (code.name, code.code_type, code.symbol_mapping) == ("three.cu", "ptx", {})
    assert code.code == program.compile("ptx").code


@pytest.mark.parametrize("change", [{"code": SOURCE + "\n"}, {"options": {"arch": "sm_80"}}, {"target": "ptx"}])
def test_another_program_is_compiled_by_itself(nvrtc, cache, change):
    Program(SOURCE, "c++", SM_90).compile("cubin", cache=cache)
    program = Program(change.get("code", SOURCE), "c++", change.get("options", SM_90))
    program.compile(change.get("target", "cubin"), cache=cache)
    assert len(cache) == 2


def test_a_kernel_of_code_from_a_cache_runs(nvrtc, cache, device, stream):
    program = Program(SOURCE, "c++")
    program.compile("cubin", cache=cache).close()
    code = program.compile("cubin", cache=cache)
    with code, LegacyPinnedMemoryResource().allocate(4) as result:  # which kernels can write to
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("three"), result)
        stream.sync()
        assert bytes(np.asarray(result)) == b"\3\0\0\0"


def test_a_compilation_that_fails_leaves_nothing_in_the_cache(nvrtc, cache):
    with pytest.raises(NVRTCError):
        Program("not C++", "c++", SM_90).compile("ptx", cache=cache)
    assert len(cache) == 0


def test_the_log_is_written_when_the_code_is_compiled_and_not_when_it_is_found(nvrtc, cache):
    program = Program("__global__ void f() { int unused; }", "c++", SM_90)
    logs = [io.StringIO(), io.StringIO()]
    for log in logs:
        program.compile("ptx", logs=log, cache=cache)
    assert "unused" in logs[0].getvalue()
    assert logs[1].getvalue() == ""


def test_name_expressions_do_not_go_with_a_cache(nvrtc, cache):
    with pytest.raises(ValueError, match=r"name_expressions do not go with a cache.*'three'"):
        Program(SOURCE, "c++", SM_90).compile("ptx", ["three"], cache=cache)
    assert len(cache) == 0


@pytest.mark.parametrize("no_cache", [{}, "path", 3])
def test_a_cache_of_another_type_is_refused(nvrtc, no_cache):
    with pytest.raises(TypeError, match="cache must be a ProgramCacheResource or None"):
        Program(SOURCE, "c++", SM_90).compile("ptx", cache=no_cache)


def test_a_cache_must_be_named(nvrtc, cache):
    with pytest.raises(TypeError, match="positional"):
        Program(SOURCE, "c++", SM_90).compile("ptx", (), None, cache)


def test_what_there_can_be_no_key_for_is_refused_before_it_is_compiled(nvrtc, cache):
    with pytest.raises(ValueError, match="make_program_cache_key with an extra_digest"):
        Program("#error", "c++", ProgramOptions(arch="sm_90", include_path="/")).compile("ptx", cache=cache)


def test_a_closed_program_compiles_nothing_even_if_the_code_is_there(nvrtc, cache):
    program = Program(SOURCE, "c++", SM_90)
    program.compile("ptx", cache=cache)
    program.close()
    with pytest.raises(RuntimeError, match="closed"):
        program.compile("ptx", cache=cache)


def test_a_cache_that_a_user_wrote_is_used(nvrtc):
    cache = OwnCache()
    program = Program(SOURCE, "c++", SM_90)
    code = program.compile("ptx", cache=cache).code
    (key,) = cache.entries
    cache.entries[key] = b"changed"
    assert program.compile("ptx", cache=cache).code == b"changed" != code


def test_code_that_cannot_be_stored_is_returned_with_a_warning(nvrtc):
    cache = OwnCache()
    cache.is_full = True
    with pytest.warns(RuntimeWarning, match="could not be written to the cache.*no space") as caught:
        code = Program(SOURCE, "c++", SM_90).compile("ptx", cache=cache)
    assert b"three" in code.code
    assert caught[0].filename == __file__


def test_threads_may_compile_with_one_cache(nvrtc, cache):
    def compile_it():
        codes.append(program.compile("ptx", cache=cache).code)

    program = Program(SOURCE, "c++", SM_90)
    codes: list[bytes] = []
    threads = [threading.Thread(target=compile_it) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(codes), len(set(codes)), len(cache)) == (THREADS, 1, 1)
