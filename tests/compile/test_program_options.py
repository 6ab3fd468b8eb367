# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of programs, and options in general."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from cuda_core_cffi import ProgramOptions, UnavailableError
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

FIELDS = [field.name for field in dataclasses.fields(ProgramOptions)]

# field, value, how NVRTC spells it
SPELLINGS = [
    ("relocatable_device_code", True, ["--relocatable-device-code=true"]),
    ("relocatable_device_code", False, ["--relocatable-device-code=false"]),
    ("extensible_whole_program", True, ["--extensible-whole-program"]),
    ("debug", True, ["--device-debug"]),
    ("debug", False, []),
    ("lineinfo", True, ["--generate-line-info"]),
    ("device_code_optimize", True, ["--dopt=on"]),
    ("device_code_optimize", False, []),
    ("ptxas_options", "-v", ["--ptxas-options=-v"]),
    ("ptxas_options", ["-v", "-O2"], ["--ptxas-options=-v", "--ptxas-options=-O2"]),
    ("max_register_count", 32, ["--maxrregcount=32"]),
    ("ftz", True, ["--ftz=true"]),
    ("ftz", False, ["--ftz=false"]),
    ("prec_sqrt", False, ["--prec-sqrt=false"]),
    ("prec_div", False, ["--prec-div=false"]),
    ("fma", True, ["--fmad=true"]),
    ("use_fast_math", True, ["--use_fast_math"]),
    ("extra_device_vectorization", True, ["--extra-device-vectorization"]),
    ("link_time_optimization", True, ["--dlink-time-opt"]),
    ("gen_opt_lto", True, ["--gen-opt-lto"]),
    ("define_macro", "A", ["--define-macro=A"]),
    ("define_macro", "A=1", ["--define-macro=A=1"]),
    ("define_macro", ("A", "1"), ["--define-macro=A=1"]),
    ("define_macro", ("A", ""), ["--define-macro=A="]),
    ("define_macro", ["A", ("B", "2")], ["--define-macro=A", "--define-macro=B=2"]),
    ("define_macro", (("A", "1"), ("B", "2")), ["--define-macro=A=1", "--define-macro=B=2"]),
    ("define_macro", [], []),
    ("undefine_macro", ("A", "B"), ["--undefine-macro=A", "--undefine-macro=B"]),
    ("include_path", "include", ["--include-path=include"]),
    ("include_path", [pathlib.Path("/a"), "b c"], ["--include-path=/a", "--include-path=b c"]),
    ("use_bundled_headers", False, []),
    ("pre_include", ["a.h", "b.h"], ["--pre-include=a.h", "--pre-include=b.h"]),
    ("no_source_include", True, ["--no-source-include"]),
    ("std", "c++20", ["--std=c++20"]),
    ("builtin_move_forward", False, ["--builtin-move-forward=false"]),
    ("builtin_initializer_list", True, ["--builtin-initializer-list=true"]),
    ("disable_warnings", True, ["--disable-warnings"]),
    ("restrict", True, ["--restrict"]),
    ("device_as_default_execution_space", True, ["--device-as-default-execution-space"]),
    ("device_int128", True, ["--device-int128"]),
    ("optimization_info", "inline", ["--optimization-info=inline"]),
    ("no_display_error_number", True, ["--no-display-error-number"]),
    ("diag_error", 177, ["--diag-error=177"]),
    ("diag_suppress", [1, 2], ["--diag-suppress=1", "--diag-suppress=2"]),
    ("diag_warn", (3,), ["--diag-warn=3"]),
    ("brief_diagnostics", True, ["--brief-diagnostics=true"]),
    ("time", "-", ["--time=-"]),
    ("split_compile", 0, ["--split-compile=0"]),
    ("fdevice_syntax_only", True, ["--fdevice-syntax-only"]),
    ("minimal", True, ["--minimal"]),
    ("no_cache", True, ["--no-cache"]),
    ("fdevice_time_trace", "trace.json", ["--fdevice-time-trace=trace.json"]),
    ("device_float128", True, ["--device-float128"]),
    ("frandom_seed", "1", ["--frandom-seed=1"]),
    ("ofast_compile", "max", ["--Ofast-compile=max"]),
    ("pch", True, ["--pch"]),
    ("create_pch", "a.pch", ["--create-pch=a.pch"]),
    ("use_pch", "a.pch", ["--use-pch=a.pch"]),
    ("pch_dir", pathlib.Path("/tmp"), ["--pch-dir=/tmp"]),
    ("pch_verbose", False, ["--pch-verbose=false"]),
    ("pch_messages", True, ["--pch-messages=true"]),
    ("instantiate_templates_in_pch", False, ["--instantiate-templates-in-pch=false"]),
    ("extra_sources", [("a", "; IR"), ("b", b"BC")], []),
    ("extra_headers", [("a.h", "int a;"), ("b.h", b"")], []),
    ("use_libdevice", True, []),
    ("numba_debug", True, ["--numba-debug"]),
    ("name", "a.cu", []),
]


def spell(**options) -> list[str]:
    """Return the NVRTC options other than the architecture."""
    return [option.decode() for option in ProgramOptions(arch="sm_90", **options).as_bytes("NVRTC")][1:]


def test_every_field_has_a_test_of_its_spelling():
    assert {name for name, _, _ in SPELLINGS} | {"arch"} == set(FIELDS)


@pytest.mark.parametrize(("name", "value", "options"), SPELLINGS)
def test_an_option_is_spelt_for_nvrtc(name, value, options):
    assert spell(**{name: value}) == options


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "name"])
def test_none_leaves_the_matter_to_the_compiler(name):
    assert not [
        option for option in ProgramOptions(**{name: None}).as_bytes("NVRTC") if not option.startswith(b"-arch")
    ]


@pytest.mark.parametrize("name", ["debug", "ftz", "pch", "use_libdevice", "use_bundled_headers"])
@pytest.mark.parametrize("value", [2, -1, "true", "", [], 1.0])
def test_a_switch_takes_only_bool(name, value):
    with pytest.raises(TypeError, match=f"{name} must be a bool"):
        ProgramOptions(**{name: value})


@pytest.mark.parametrize("name", ["debug", "ftz", "pch", "use_libdevice", "use_bundled_headers"])
@pytest.mark.parametrize("value", [0, 1])
def test_a_switch_takes_0_and_1(name, value):
    options, same = (ProgramOptions(**{"arch": "sm_90", name: form(value)}) for form in (int, bool))
    assert options.as_bytes("NVRTC") == same.as_bytes("NVRTC")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arch", 90),
        ("name", b"a"),
        ("std", 17),
        ("ptxas_options", 3),
        ("ptxas_options", ["-v", 3]),
        ("max_register_count", "32"),
        ("define_macro", 3),
        ("define_macro", ("A", 1)),
        ("define_macro", [("A", "B", "C")]),
        ("define_macro", {"A": "1"}),
        ("include_path", b"/a"),
        ("diag_error", "1"),
        ("diag_error", [1, "2"]),
        ("split_compile", 2.0),
        ("extra_sources", "abc"),
        ("extra_sources", [("a", 3)]),
        ("ofast_compile", 0),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_field_and_the_value(name, value):
    with pytest.raises(TypeError, match=f"ProgramOptions: {name} must be"):
        ProgramOptions(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arch", ""),
        ("arch", "90"),
        ("arch", "sm90"),
        ("arch", "sm_9"),
        ("arch", "sm_090"),
        ("arch", "sm_90 -G"),
        ("arch", "compute_90x"),
        ("std", ""),
        ("std", "c++17\0"),
        ("name", "a\0b"),
        ("max_register_count", 0),
        ("split_compile", -1),
        ("diag_error", -1),
        ("ofast_compile", "fast"),
        ("define_macro", ""),
        ("define_macro", ("A", "1\n#error")),
        ("include_path", ""),
        ("undefine_macro", [""]),
        ("extra_sources", [("a\0b", "")]),
        ("extra_sources", [("", "; IR")]),
    ],
)
def test_a_value_out_of_range_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}|macro"):
        ProgramOptions(**{name: value})


# field, value, how libNVVM spells it
NVVM_SPELLINGS = [
    ("debug", True, ["-g", "-opt=0"]),
    ("debug", False, []),
    ("device_code_optimize", True, ["-opt=3"]),
    ("device_code_optimize", False, ["-opt=0"]),
    ("ftz", True, ["-ftz=1"]),
    ("ftz", False, ["-ftz=0"]),
    ("prec_sqrt", False, ["-prec-sqrt=0"]),
    ("prec_div", True, ["-prec-div=1"]),
    ("fma", False, ["-fma=0"]),
    ("numba_debug", True, ["-numba-debug"]),
    ("numba_debug", False, []),
    ("extra_sources", [("a", "; IR")], []),
    ("use_libdevice", True, []),
    ("no_cache", True, []),
    ("name", "a.ll", []),
]
NVVM_FIELDS = {name for name, _, _ in NVVM_SPELLINGS} | {"arch", "link_time_optimization"}


def nvvm(target=None, **options) -> list[str]:
    """Return the options of libNVVM, other than the architecture."""
    return [option.decode() for option in ProgramOptions(arch="sm_90", **options).as_bytes("NVVM", target)][1:]


@pytest.mark.parametrize(("name", "value", "options"), NVVM_SPELLINGS)
def test_an_option_is_spelt_for_libnvvm(name, value, options):
    assert nvvm(**{name: value}) == options


def test_optimised_code_with_debugging_information_is_asked_for_with_both():
    assert nvvm(debug=True, device_code_optimize=True) == ["-g", "-opt=3"]


@pytest.mark.parametrize("name", sorted(set(FIELDS) - NVVM_FIELDS))
def test_an_option_that_libnvvm_does_not_have_is_refused(name):
    value = next((value for field, value, _ in SPELLINGS if field == name and value is not False), True)
    with pytest.raises(UnavailableError, match=rf"libNVVM has no option for {name}; it has for debug, .*use_libdevice"):
        nvvm(**{name: value})


@pytest.mark.parametrize("options", [{"lineinfo": False}, {"define_macro": []}, {"include_path": ()}])
def test_an_option_that_asks_for_nothing_needs_no_option_of_libnvvm(options):
    assert nvvm(**options) == []


@pytest.mark.parametrize(
    ("arch", "spelt"),
    [("sm_90", "compute_90"), ("sm_90a", "compute_90a"), ("compute_75", "compute_75"), ("sm_100f", "compute_100f")],
)
def test_libnvvm_compiles_for_virtual_architectures(arch, spelt):
    assert ProgramOptions(arch=arch).as_bytes("NVVM") == [f"-arch={spelt}".encode()]


def test_the_current_device_is_the_default_for_libnvvm_too(device):
    assert ProgramOptions().as_bytes("NVVM") == [f"-arch=compute_{device.arch}".encode()]


@pytest.mark.parametrize("asked", [None, False, True])
def test_libnvvm_makes_lto_ir_for_that_target(asked):
    assert nvvm("ltoir", link_time_optimization=asked) == ["-gen-lto"]
    assert nvvm("ptx") == []


@pytest.mark.parametrize("target", ["cubin", "fatbin"])
def test_a_target_that_libnvvm_does_not_make_is_refused(target):
    with pytest.raises(ValueError, match=f"libNVVM makes ptx, ltoir, not '{target}'"):
        nvvm(target)


def test_link_time_optimization_is_for_lto_ir_in_libnvvm_too():
    with pytest.raises(ValueError, match="ltoir"):
        nvvm("ptx", link_time_optimization=True)


def test_a_field_assigned_later_is_checked_when_it_is_used():
    options = ProgramOptions(arch="sm_90")
    options.debug = "yes"
    for backend in ("NVRTC", "NVVM"):
        with pytest.raises(TypeError, match="debug"):
            options.as_bytes(backend)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a", "sm_100f", "compute_90", "compute_121a"])
def test_the_architecture_comes_first(arch):
    assert ProgramOptions(arch=arch, debug=True).as_bytes("NVRTC") == [f"-arch={arch}".encode(), b"--device-debug"]


def test_the_architecture_of_the_current_device_is_the_default(device):
    assert ProgramOptions().as_bytes("NVRTC") == [f"-arch=sm_{device.arch}".encode()]


def test_a_virtual_architecture_makes_no_cubin():
    with pytest.raises(ValueError, match="sm_90"):
        ProgramOptions(arch="compute_90").as_bytes("NVRTC", "cubin")


@pytest.mark.parametrize("target", ["ptx", "cubin"])
def test_link_time_optimization_makes_lto_ir_only(target):
    with pytest.raises(ValueError, match="ltoir"):
        ProgramOptions(arch="sm_90", link_time_optimization=True).as_bytes("NVRTC", target)


@pytest.mark.parametrize("asked", [None, False, True])
def test_lto_ir_needs_one_option_however_it_is_asked_for(asked):
    options = ProgramOptions(arch="sm_90", link_time_optimization=asked).as_bytes("NVRTC", ObjectCodeFormatType.LTOIR)
    assert options == [b"-arch=sm_90", b"--dlink-time-opt"]


@pytest.mark.parametrize("backend", ["NVRTC", "nvrtc", CompilerBackendType.NVRTC])
def test_the_backend_may_be_in_any_case(backend):
    assert ProgramOptions(arch="sm_90").as_bytes(backend) == [b"-arch=sm_90"]


@pytest.mark.parametrize("backend", ["NVVM", "nvvm", CompilerBackendType.NVVM])
def test_so_may_the_other_one(backend):
    assert ProgramOptions(arch="sm_90").as_bytes(backend) == [b"-arch=compute_90"]


@pytest.mark.parametrize("backend", ["gcc", "", None, 3])
def test_an_unknown_backend_is_refused(backend):
    with pytest.raises(ValueError, match="there are for 'NVRTC', 'NVVM'"):
        ProgramOptions(arch="sm_90").as_bytes(backend)


@pytest.mark.parametrize("target", ["fatbin", "exe", ""])
def test_an_unknown_target_is_refused(target):
    with pytest.raises(ValueError, match=target or "ObjectCodeFormatType"):
        ProgramOptions(arch="sm_90").as_bytes("NVRTC", target)


def test_bundled_headers_go_to_the_users_cache(monkeypatch):
    try:
        major, minor = NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert spell(use_bundled_headers=True) == [
        f"--use-bundled-headers=/cache/cuda-core-cffi/nvrtc-headers-{major}.{minor}"
    ]


def test_the_repr_has_what_is_set():
    assert repr(ProgramOptions(arch="sm_90", debug=False)) == (
        "ProgramOptions(name='default_program', arch='sm_90', debug=False)"
    )


def test_options_compare_by_value_and_do_not_hash():
    assert ProgramOptions(std="c++20") == ProgramOptions(std="c++20") != ProgramOptions(std="c++17")
    with pytest.raises(TypeError, match="unhashable"):
        hash(ProgramOptions())


def test_options_may_be_a_mapping():
    assert check_options(ProgramOptions, {"arch": "sm_90"}, "Program") == ProgramOptions(arch="sm_90")


def test_no_options_are_the_defaults():
    assert check_options(ProgramOptions, None, "Program") == ProgramOptions()


def test_an_instance_is_used_as_it_is():
    options = ProgramOptions()
    assert check_options(ProgramOptions, options, "Program") is options


def test_an_unknown_option_is_refused_and_the_likely_one_named():
    with pytest.raises(TypeError, match=r"Program: ProgramOptions has no option 'lineinf'; did you mean 'lineinfo'\?"):
        check_options(ProgramOptions, {"lineinf": True}, "Program")


@pytest.mark.parametrize("name", ["zzzz", 3])
def test_an_option_like_no_other_lists_them_all(name):
    with pytest.raises(TypeError, match="the options are name, arch"):
        check_options(ProgramOptions, {name: True}, "Program")


@pytest.mark.parametrize("options", [3, "debug", ["debug"], ProgramOptions])
def test_options_of_another_type_are_refused(options):
    with pytest.raises(TypeError, match="Program: options must be ProgramOptions, a mapping or None"):
        check_options(ProgramOptions, options, "Program")
