# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of linkers."""

from __future__ import annotations

import dataclasses

import pytest
from helpers import output_of

from cuda_core_cffi import LinkerOptions

FIELDS = [field.name for field in dataclasses.fields(LinkerOptions)]

# field, value, how nvJitLink spells it
SPELLINGS = [
    ("max_register_count", 32, ["-maxrregcount=32"]),
    ("time", True, ["-time"]),
    ("time", False, []),
    ("verbose", True, ["-verbose"]),
    ("verbose", False, []),
    ("link_time_optimization", True, ["-lto"]),
    ("link_time_optimization", False, []),
    ("ptx", True, ["-ptx"]),
    ("ptx", False, []),
    ("optimization_level", 0, ["-O0"]),
    ("optimization_level", 3, ["-O3"]),
    ("debug", True, ["-g"]),
    ("debug", False, []),
    ("lineinfo", True, ["-lineinfo"]),
    ("lineinfo", False, []),
    ("ftz", True, ["-ftz=true"]),
    ("ftz", False, ["-ftz=false"]),
    ("prec_div", True, ["-prec-div=true"]),
    ("prec_div", False, ["-prec-div=false"]),
    ("prec_sqrt", True, ["-prec-sqrt=true"]),
    ("prec_sqrt", False, ["-prec-sqrt=false"]),
    ("fma", True, ["-fma=true"]),
    ("fma", False, ["-fma=false"]),
    ("kernels_used", "a", ["-kernels-used=a"]),
    ("kernels_used", ["a", "b"], ["-kernels-used=a", "-kernels-used=b"]),
    ("variables_used", ("a", "b"), ["-variables-used=a", "-variables-used=b"]),
    ("optimize_unused_variables", True, ["-optimize-unused-variables"]),
    ("optimize_unused_variables", False, []),
    ("ptxas_options", "-v", ["-Xptxas=-v"]),
    ("ptxas_options", ["-v", "-O2"], ["-Xptxas=-v", "-Xptxas=-O2"]),
    ("split_compile", 0, ["-split-compile=0"]),
    ("split_compile_extended", 2, ["-split-compile-extended=2"]),
    ("no_cache", True, ["-no-cache"]),
    ("no_cache", False, []),
    ("incremental", True, ["-r"]),
    ("incremental", False, []),
]

WRONG = [
    ("name", 1, TypeError, "name must be a str or None, not int: 1"),
    ("name", "a\0b", ValueError, "name must not be empty or contain NUL"),
    ("arch", 90, TypeError, "arch must be a str or None, not int: 90"),
    ("arch", "sm90", ValueError, "arch must look like 'sm_90', 'sm_90a' or 'compute_90', not 'sm90'"),
    ("arch", "sm_9", ValueError, "must look like"),  # nvJitLink 13.5 crashes on those of one digit
    ("max_register_count", 0, ValueError, "max_register_count must be 1 or more, not 0"),
    ("time", 2, TypeError, "time must be a bool or None, not int: 2"),
    ("optimization_level", 5, ValueError, "optimization_level must be 4 or less, not 5"),
    ("optimization_level", -1, ValueError, "optimization_level must be 0 or more, not -1"),
    ("optimization_level", "3", TypeError, "optimization_level must be an int or None, not str: '3'"),
    ("ftz", "true", TypeError, "ftz must be a bool or None, not str: 'true'"),
    ("kernels_used", [1], TypeError, "kernels_used must be a str or a sequence of str or None, not int: 1"),
    ("variables_used", "", ValueError, "variables_used must not be empty"),
    ("ptxas_options", ["a\0"], ValueError, "ptxas_options must not be empty or contain NUL"),
    ("split_compile", -1, ValueError, "split_compile must be 0 or more, not -1"),
    ("split_compile_extended", 1.0, TypeError, "split_compile_extended must be an int or None, not float: 1.0"),
    ("numba_debug", 1.0, TypeError, "numba_debug must be a bool or None, not float: 1.0"),
]


@pytest.mark.parametrize(("field", "value", "spelt"), SPELLINGS)
def test_an_option_is_spelt_as_nvjitlink_wants_it(field, value, spelt):
    options = LinkerOptions(arch="sm_90", **{field: value}).as_bytes()
    assert options == [b"-arch=sm_90", *(option.encode() for option in spelt)]


def test_every_field_has_its_spelling_tested():
    assert {field for field, *_ in SPELLINGS} == set(FIELDS) - {"name", "arch", "numba_debug"}


@pytest.mark.parametrize(("field", "value", "error", "message"), WRONG)
def test_a_wrong_value_is_refused_when_the_options_are_made(field, value, error, message):
    with pytest.raises(error, match="LinkerOptions: " + message if message.startswith(field) else message):
        LinkerOptions(**{field: value})


def test_a_field_assigned_later_is_checked_when_it_is_used():
    options = LinkerOptions(arch="sm_90")
    options.ftz = "yes"
    with pytest.raises(TypeError, match="ftz must be a bool"):
        options.as_bytes()


@pytest.mark.parametrize("arch", ["sm_90", "sm_90a", "sm_100f", "compute_90"])
def test_the_architecture_comes_first(arch):
    assert LinkerOptions(verbose=True, arch=arch).as_bytes("nvJitLink") == [f"-arch={arch}".encode(), b"-verbose"]


def test_the_architecture_is_that_of_the_current_device_unless_given(device):
    assert LinkerOptions().as_bytes() == [f"-arch=sm_{device.arch}".encode()]


def test_without_a_device_an_architecture_must_be_given():
    code = """
        from cuda_core_cffi import LinkerOptions
        try:
            LinkerOptions().as_bytes()
        except ValueError as error:
            print(error)
        """
    assert "no device is current: give arch, such as 'sm_90'" in output_of(code)


@pytest.mark.parametrize("backend", ["driver", "NVRTC", None])
def test_only_the_options_of_nvjitlink_are_text(backend):
    with pytest.raises(ValueError, match="there are no options as text for the backend"):
        LinkerOptions(arch="sm_90").as_bytes(backend)


def test_the_name_may_be_none_or_empty():
    assert LinkerOptions(name=None).name is None
    assert LinkerOptions(name="").name == ""


def test_numba_debug_is_deprecated_where_it_is_set():
    with pytest.warns(DeprecationWarning, match="numba_debug is deprecated") as caught:
        options = LinkerOptions(arch="sm_90", numba_debug=True)
    assert caught[0].filename == __file__
    assert options.as_bytes() == [b"-arch=sm_90"]


def test_options_cannot_be_hashed():
    with pytest.raises(TypeError):
        hash(LinkerOptions())
