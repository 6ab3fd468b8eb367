# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options that programs share: what was worked out about them is for these values alone."""

from __future__ import annotations

import threading

import pytest

from cuda_core_cffi import Program, ProgramOptions
from cuda_core_cffi._compile import resolved_options
from cuda_core_cffi._compile.resolved_options import resolve
from cuda_core_cffi.utils import InMemoryProgramCache, make_program_cache_key

SOURCE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
NAMED = 'extern "C" __global__ void NAME() {}'


pytestmark = pytest.mark.usefixtures("nvrtc")


def key_of(options, target="ptx") -> bytes:
    """Return the key of C++."""
    return make_program_cache_key(code=SOURCE, code_type="c++", options=options, target_type=target)


def test_options_with_the_same_values_are_resolved_once():
    assert resolve(ProgramOptions(arch="sm_90", ftz=True)) is resolve(ProgramOptions(arch="sm_90", ftz=True))


@pytest.mark.parametrize("macros", [["A"], [("A", "1")], ("A", "1"), "A=1"])
def test_options_that_differ_are_resolved_each(macros):
    first = resolve(ProgramOptions(arch="sm_90", define_macro=["A", "1"]))
    assert resolve(ProgramOptions(arch="sm_90", define_macro=macros)) is not first


def test_an_option_that_is_assigned_between_programs_matters():
    options = ProgramOptions(arch="sm_90")
    for arch in ("sm_90", "sm_80", "sm_90"):
        options.arch = arch
        assert f".target {arch}".encode() in Program(SOURCE, "c++", options).compile("ptx").code


def test_a_list_that_is_changed_between_programs_matters():
    options = ProgramOptions(arch="sm_90", define_macro=[("NAME", "first")])
    assert b"first" in Program(NAMED, "c++", options).compile("ptx").code
    options.define_macro[0] = ("NAME", "second")
    assert b"second" in Program(NAMED, "c++", options).compile("ptx").code


def test_a_list_that_is_changed_later_does_not_matter():
    options = ProgramOptions(arch="sm_90", define_macro=[("NAME", "first")], extra_headers=[["a.h", bytearray(b"")]])
    program = Program("#include <a.h>\n" + NAMED, "c++", options)
    options.define_macro[0] = ("NAME", "second")
    options.extra_headers[0][1].extend(b"#error")
    assert [b"first" in program.compile("ptx").code for _ in range(2)] == [True, True]


def test_what_a_program_was_made_with_is_what_its_key_is_of(tmp_path):
    options = ProgramOptions(arch="sm_90", include_path=[str(tmp_path)])
    program = Program(SOURCE, "c++", options)
    options.include_path.clear()
    with pytest.raises(ValueError, match="include_path the code depends on files"):
        program.compile("ptx", cache=InMemoryProgramCache())


@pytest.mark.parametrize(("name", "right", "wrong"), [("debug", True, 1.0), ("fma", True, 1.0), ("ftz", False, 0.0)])
def test_a_value_of_another_type_is_refused_though_it_is_equal(name, right, wrong):
    options = ProgramOptions(arch="sm_90", **{name: right})
    Program(SOURCE, "c++", options)
    setattr(options, name, wrong)
    with pytest.raises(TypeError, match=name):
        Program(SOURCE, "c++", options)


def test_a_field_that_was_set_anew_is_no_other_field():
    options = ProgramOptions(arch="sm_90", prec_div=True)
    Program(SOURCE, "c++", options)
    moved = ProgramOptions(arch="sm_90", fma=True)  # which comes after prec_div
    del moved.prec_sqrt
    moved.prec_sqrt = None
    assert key_of(moved) == key_of(ProgramOptions(arch="sm_90", fma=True)) != key_of(options)


def test_options_of_another_class_are_their_own():
    class Mine(ProgramOptions):
        pass

    resolve(ProgramOptions(arch="sm_90"))
    assert b"twice" in Program(SOURCE, "c++", Mine(arch="sm_90")).compile("ptx").code
    assert type(resolve(Mine(arch="sm_90")).options) is Mine


def test_no_more_than_some_are_kept():
    for count in range(1, 200):
        resolve(ProgramOptions(max_register_count=count))
    assert len(resolved_options._kept) <= 64
    before = dict(resolved_options._kept)
    resolve(ProgramOptions(define_macro="A" * 10_000))
    assert resolved_options._kept == before


def test_another_current_device_is_compiled_for(monkeypatch):
    cache = InMemoryProgramCache()
    for arch in ("sm_80", "sm_90"):
        monkeypatch.setattr("cuda_core_cffi._compile.compiler_options.current_architecture", lambda arch=arch: arch)
        assert f".target {arch}".encode() in Program(SOURCE, "c++", ProgramOptions()).compile("ptx", cache=cache).code


def test_another_folder_for_bundled_headers_is_used(monkeypatch, tmp_path):
    keys = set()
    for name in ("a", "b"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        keys.add(key_of(ProgramOptions(arch="sm_90", use_bundled_headers=True)))
    assert len(keys) == 2


def test_another_build_of_the_compiler_compiles_again(monkeypatch):
    cache = InMemoryProgramCache()
    for build in (b"13.0 a", b"13.0 b"):
        monkeypatch.setattr("cuda_core_cffi._compile.nvrtc.NVRTC_LIBRARY.build", lambda build=build: build)
        Program(SOURCE, "c++", {"arch": "sm_90"}).compile("ptx", cache=cache)
    assert len(cache) == 2


def test_targets_and_sources_have_keys_of_their_own():
    cache = InMemoryProgramCache()
    options = ProgramOptions(arch="sm_90")
    for _ in range(2):
        for target in ("ptx", "cubin", "ltoir"):
            for source in (SOURCE, SOURCE + " "):
                code = Program(source, "c++", options).compile(target, cache=cache)
                key = make_program_cache_key(code=source, code_type="c++", options=options, target_type=target)
                assert cache[key] == code.code
    assert len(cache) == 6


def test_each_program_says_what_has_no_key():
    options = ProgramOptions(arch="sm_90", time="-")
    for _ in range(2):
        with pytest.raises(ValueError, match="with time the compiler"):
            Program(SOURCE, "c++", options).compile("ptx", cache=InMemoryProgramCache())
    for _ in range(2):
        with pytest.raises(ValueError, match="may find a file beside the source"):
            Program('#include "a.h"', "c++", {"arch": "sm_90"}).compile("ptx", cache=InMemoryProgramCache())


def test_threads_resolve_different_options_at_once():
    def resolve_all(number):
        for index in range(100):
            name = f"k{(number + index) % 70}"
            options = ProgramOptions(arch="sm_90", define_macro=f"NAME={name}")
            resolved = resolve(options)
            if resolved.checked != [f"--define-macro=NAME={name}"] or resolved.options != options:
                wrong.append(name)

    wrong: list[str] = []
    threads = [threading.Thread(target=resolve_all, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
