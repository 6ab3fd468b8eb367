# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Finding, preprocessing and slicing the headers."""

from __future__ import annotations

import pathlib

import pytest
from cuda_headers import EVERY_HEADER, headers, read


@pytest.fixture
def toolkit(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return a folder that looks like a toolkit; neither variable is set."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").write_text("#define CUDA_VERSION 13000\nint cuInit(unsigned int Flags);\n")
    (tmp_path / "include" / "cudaTypedefs.h").write_text("typedef int (*PFN_cuInit_v2000)(unsigned int Flags);\n")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    return tmp_path


def write(toolkit: pathlib.Path, text: str) -> pathlib.Path:
    """Put text into the toolkit's cuda.h, beside its version."""
    (toolkit / "include" / "cuda.h").write_text("#define CUDA_VERSION 13000\n" + text)
    return toolkit / "include"


# finding


@pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME"])
def test_a_variable_names_the_toolkit(toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, str(toolkit))
    assert headers.find_include_dir() == toolkit / "include"


@pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME"])
def test_a_variable_may_name_the_include_folder(
    toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(toolkit / "include"))
    assert headers.find_include_dir() == toolkit / "include"


def test_cuda_path_comes_before_cuda_home(toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_PATH", str(toolkit))
    monkeypatch.setenv("CUDA_HOME", "/nonexistent")
    assert headers.find_include_dir() == toolkit / "include"


@pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME"])
def test_a_wrong_variable_is_an_error_that_names_it(
    toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "/nonexistent/cuda")
    with pytest.raises(headers.HeaderError, match=f"{variable}=/nonexistent/cuda is set, but neither it nor"):
        headers.find_include_dir()


def test_an_empty_variable_is_not_set(toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    assert headers.find_include_dir() == toolkit / "include"


@pytest.mark.parametrize("place", ["cu13/include", "cuda_runtime/include"])
def test_without_variables_the_header_wheel_is_found(
    toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = toolkit / "nvidia" / place
    folder.mkdir(parents=True)
    (folder / "cuda.h").touch()
    monkeypatch.setattr(headers.importlib.util, "find_spec", lambda name: Spec([str(toolkit / "nvidia")]))
    assert headers.find_include_dir() == folder


@pytest.mark.parametrize("places", [None, [], ["/nonexistent"]], ids=repr)
def test_without_any_header_the_error_says_what_to_do(
    toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch, places: list[str] | None
) -> None:
    monkeypatch.setattr(headers.importlib.util, "find_spec", lambda name: None if places is None else Spec(places))
    with pytest.raises(headers.HeaderError, match="set CUDA_PATH to a CUDA toolkit, or install the wheel"):
        headers.find_include_dir()


@pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME"])
def test_nvml_is_that_of_the_toolkit(toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    (toolkit / "include" / "nvml.h").touch()
    monkeypatch.setenv(variable, str(toolkit))
    assert headers.find_nvml_include_dir() == toolkit / "include"


@pytest.mark.parametrize("place", ["cu13/include", "nvml_dev/include"])
def test_a_toolkit_without_nvml_leaves_it_to_the_header_wheel(
    toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = toolkit / "nvidia" / place
    folder.mkdir(parents=True)
    (folder / "nvml.h").touch()
    monkeypatch.setenv("CUDA_PATH", str(toolkit))
    monkeypatch.setattr(headers.importlib.util, "find_spec", lambda name: Spec([str(toolkit / "nvidia")]))
    assert headers.find_nvml_include_dir() == folder


def test_without_any_nvml_the_error_names_its_wheel(toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(headers.HeaderError, match=r"no nvml\.h found: .*, or install the wheel nvidia-nvml-dev"):
        headers.find_nvml_include_dir()


class Spec:
    def __init__(self, places: list[str]) -> None:
        self.submodule_search_locations = places


# reading


def test_a_header_is_read(toolkit: pathlib.Path) -> None:
    header = headers.read_header(toolkit / "include")
    assert header.version == 13000
    assert [node.name for node in header.declarations] == ["cuInit"]
    assert [node.name for node in header.typedefs] == ["PFN_cuInit_v2000"]


def test_what_other_headers_declare_is_left_out(toolkit: pathlib.Path) -> None:
    include = write(toolkit, "#include <stdlib.h>\n#include <stdint.h>\nuint32_t cuX(size_t size);\n")
    header = headers.read_header(include)
    assert [node.name for node in header.declarations] == ["cuX"]
    assert set(header.macros) == {"CUDA_VERSION"}


def test_macros_are_kept_unexpanded(toolkit: pathlib.Path) -> None:
    header = headers.read_header(
        write(toolkit, "#define CU_A 1\n#define CU_B CU_A\n#define cuF(x) x\nint cuX(void);\n")
    )
    assert header.macros == {"CUDA_VERSION": "13000", "CU_A": "1", "CU_B": "CU_A"}
    assert header.function_macros == ["cuF"]


def test_a_macro_that_is_taken_back_is_gone(toolkit: pathlib.Path) -> None:
    header = headers.read_header(write(toolkit, "#define CU_A 1\n#undef CU_A\nint cuX(void);\n"))
    assert "CU_A" not in header.macros


def test_alignment_is_noted_and_left_to_the_compiler(toolkit: pathlib.Path) -> None:
    text = "typedef struct CUtensorMap_st { _Alignas(64) unsigned long opaque[16]; } CUtensorMap;\n"
    header = headers.read_header(write(toolkit, text))
    assert header.aligned == {"CUtensorMap"}


def test_a_header_that_does_not_compile_is_an_error(toolkit: pathlib.Path) -> None:
    with pytest.raises(headers.HeaderError, match="no_such_header"):
        headers.read_header(write(toolkit, '#include "no_such_header.h"\n'))


def test_a_header_that_is_no_c_is_an_error(toolkit: pathlib.Path) -> None:
    with pytest.raises(headers.HeaderError, match=r"cuda\.h"):
        headers.read_header(write(toolkit, "template <class T> T cuX(T t);\n"))


def test_a_header_without_declarations_is_an_error(toolkit: pathlib.Path) -> None:
    with pytest.raises(headers.HeaderError, match=r"cuda\.h declares nothing"):
        headers.read_header(write(toolkit, "#define CU_A 1\n"))


def test_a_compiler_that_cannot_be_run_is_an_error(toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc -O2")
    with pytest.raises(headers.HeaderError, match="'/nonexistent/cc' cannot be run"):
        headers.read_header(toolkit / "include")


# real headers


@EVERY_HEADER
def test_a_real_header_is_read_whole(include_dir: pathlib.Path) -> None:
    header = read(include_dir).header
    assert 12000 <= header.version < 20000
    assert len(header.declarations) > 600
    assert len(header.typedefs) > 500
    names = {node.name for node in header.declarations}
    assert {"cuInit", "CUresult", "cuMemAlloc_v2", "cuLaunchKernelEx"} <= names
    assert "size_t" not in names


@EVERY_HEADER
def test_a_real_header_has_its_aligned_structures(include_dir: pathlib.Path) -> None:
    assert "CUtensorMap" in read(include_dir).header.aligned
