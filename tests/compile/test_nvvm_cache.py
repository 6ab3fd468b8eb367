# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Programs in NVVM IR and caches: what makes a key, and that code is compiled once."""

from __future__ import annotations

import pytest
from nvvm_modules import ANSWER, DOUBLING, SINES, TWICE, kernel, module

from cuda_core_cffi import Program, ProgramOptions, UnavailableError
from cuda_core_cffi._core.libraries import NVVM_LIBRARY
from cuda_core_cffi.utils import InMemoryProgramCache, make_program_cache_key


@pytest.fixture(scope="module", autouse=True)
def nvvm():
    """Skip without a compiler."""
    try:
        NVVM_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


def key_of(code=DOUBLING, target="ptx", **options) -> bytes:
    """Return the key of NVVM IR."""
    return make_program_cache_key(
        code=code, code_type="nvvm", options=ProgramOptions(**{"arch": "sm_90"} | options), target_type=target
    )


def test_code_is_compiled_once(monkeypatch):
    cache = InMemoryProgramCache()
    options = ProgramOptions(arch="sm_90", use_libdevice=True)
    first = Program(SINES, "nvvm", options).compile("ptx", cache=cache)
    monkeypatch.setattr("cuda_core_cffi._compile.nvvm._run", None)  # whoever compiles now fails
    second = Program(SINES, "nvvm", options).compile("ptx", cache=cache)
    assert second.code == first.code == cache.get(key_of(SINES, use_libdevice=True))
    assert len(cache) == 1


CHANGES = [
    {},
    {"code": SINES},
    {"code": ANSWER},
    {"target": "ltoir"},
    {"name": "other.ll"},
    {"arch": "sm_100"},
    {"debug": True},
    {"device_code_optimize": True},
    {"ftz": True},
    {"prec_sqrt": False},
    {"prec_div": False},
    {"fma": False},
    {"numba_debug": True},
    {"use_libdevice": True},
    {"extra_sources": [("a", module(TWICE))]},
    {"extra_sources": [("b", module(TWICE))]},
    {"extra_sources": [("a", ANSWER)]},
    {"extra_sources": [("a", module(TWICE)), ("b", ANSWER)]},
    {"extra_sources": [("b", ANSWER), ("a", module(TWICE))]},
]


def test_whatever_the_code_depends_on_changes_the_key():
    assert len({key_of(**change) for change in CHANGES}) == len(CHANGES)


def test_what_asks_for_the_same_has_the_same_key():
    assert key_of(extra_sources=[]) == key_of(use_libdevice=False) == key_of(arch="compute_90") == key_of()
    assert key_of(extra_sources=[("a", ANSWER)]) == key_of(extra_sources=(("a", bytearray(ANSWER)),))


def test_the_same_source_in_another_language_has_another_key():
    options = {"arch": "compute_90", "no_source_include": True}
    assert key_of() != make_program_cache_key(code=DOUBLING, code_type="c++", options=options, target_type="ptx")


def test_another_build_of_libnvvm_changes_the_key(monkeypatch):
    before = key_of()
    monkeypatch.setattr("cuda_core_cffi._compile.nvvm.NVVM_LIBRARY.build", lambda: b"2.0 other")
    assert key_of() != before


def test_another_libdevice_changes_the_key(monkeypatch):
    before = key_of(use_libdevice=True)
    monkeypatch.setattr("cuda_core_cffi._compile.nvvm._libdevice", lambda: ANSWER)
    assert key_of(use_libdevice=True) != before


def test_the_build_of_libnvvm_is_its_version_and_the_id_that_its_linker_gave_it():
    version, _, build = NVVM_LIBRARY.build().partition(b" ")
    assert version == b"%d.%d" % NVVM_LIBRARY.version()
    assert len(build) == 20


def test_what_reads_like_an_include_in_c_is_none_in_nvvm_ir():
    source = kernel("apply", "twice", declared=TWICE.replace("float %x)", "float %x) #0") + 'attributes #0 = {"a"}')
    assert key_of(source + '; #include "part.h"\n')


@pytest.mark.parametrize("target", ["cubin", "fatbin", "exe"])
def test_what_libnvvm_does_not_make_has_no_key(target):
    with pytest.raises(ValueError, match="libNVVM makes 'ptx', 'ltoir'"):
        key_of(target=target)


def test_an_option_that_libnvvm_does_not_have_has_no_key():
    with pytest.raises(UnavailableError, match="libNVVM has no option for lineinfo"):
        key_of(lineinfo=True)
