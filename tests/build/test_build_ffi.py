# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The build backend and its command line."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import sys
import sysconfig
import types

import pytest
from cuda_headers import (
    EVERY_HEADER,
    ROOT,
    build_ffi,
    generate,
    headers,
    include_dirs,
    nvml_include_dirs,
    read,
    read_nvml,
)
from setuptools import Distribution

needs_header = pytest.mark.skipif(not include_dirs(), reason="no cuda.h found, see CUDA_TEST_INCLUDE_DIRS")


@pytest.fixture
def cuda_path(monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Point the build at one of the headers."""
    folder = include_dirs()[-1]
    monkeypatch.setenv("CUDA_PATH", str(folder.parent))
    return folder


@needs_header
def test_what_is_compiled(cuda_path: pathlib.Path) -> None:
    names = [item.name for item in build_ffi.extensions()]
    assert names[:3] == [build_ffi.EXTENSION, build_ffi.CAPSULE, build_ffi.SIMULATOR]
    assert names[3:] == ([build_ffi.CALLS] if platform.python_implementation() == "CPython" else [])


@needs_header
def test_the_header_found_is_the_one_compiled_against(cuda_path: pathlib.Path) -> None:
    extension, capsule, simulator, *calls = build_ffi.extensions()
    for item in (extension, simulator, *calls):
        assert str(cuda_path) in item.include_dirs
    assert str(cuda_path) not in capsule.include_dirs  # it needs no CUDA header


@needs_header
def test_nothing_is_linked_against_the_driver(cuda_path: pathlib.Path) -> None:
    for item in build_ffi.extensions():
        assert not {"cuda", "cudart", "nvrtc"} & set(item.libraries)


@needs_header
def test_sources_are_in_the_tree_or_generated(cuda_path: pathlib.Path) -> None:
    _, *others = build_ffi.extensions()
    for source in (source for item in others for source in item.sources):
        assert (ROOT / source).is_file()


def test_the_limited_api_is_used_where_there_is_one() -> None:
    wanted = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    assert build_ffi.LIMITED_API is wanted


def test_extensions_do_not_look_for_libraries_where_the_interpreter_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    own = "-Wl,-rpath,/home/builder/python/lib"
    monkeypatch.setattr(build_ffi.sysconfig, "get_config_var", {"LDSHARED": f"gcc -shared {own}"}.get)
    monkeypatch.setattr(build_ffi._build_ext, "build_extensions", lambda command: None)
    command = build_ffi.build_ext(Distribution())
    command.compiler = types.SimpleNamespace(linker_so=["gcc", "-shared", own, "-Wl,-rpath,/asked/for"])
    command.build_extensions()
    assert command.compiler.linker_so == ["gcc", "-shared", "-Wl,-rpath,/asked/for"]


def test_a_missing_header_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_PATH", "/nonexistent")
    with pytest.raises(headers.HeaderError, match="CUDA_PATH=/nonexistent"):
        build_ffi.extensions()


@EVERY_HEADER
def test_the_report_tells_the_header_the_counts_and_what_is_left_out(include_dir: pathlib.Path) -> None:
    api, nvml_api = read(include_dir), read_nvml(nvml_include_dirs()[0])
    text = generate.report(api, nvml_api)
    assert text.startswith(f"read       {include_dir / 'cuda.h'} (CUDA {api.header.version})\n")
    assert f"functions  {len(api.functions)}, all in the driver table" in text
    assert f"functions  {len(nvml_api.functions)}, all in cuda_core_cffi.nvml" in text
    for name, reason in {**api.left_out, **nvml_api.left_out}.items():
        assert f"  {name}: {reason}\n" in text


@EVERY_HEADER
def test_the_generated_c_is_written(include_dir: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "_cuda.c"
    cdefs = build_ffi.load_generator("cdef").write_cdef(read(include_dir))
    generate.write_extension("package._cuda", cdefs, "#include <cuda.h>\n", path, limited_api=True)
    text = path.read_text()
    assert "#include <cuda.h>" in text
    assert "_cffi_f_cuInit" in text or "_cffi_d_cuInit" in text


@needs_header
def test_generating_writes_every_file(
    cuda_path: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    (package / "_raw").mkdir(parents=True)
    monkeypatch.setattr(build_ffi, "PACKAGE", package)
    monkeypatch.setattr(build_ffi, "GENERATED", package / "_raw")
    monkeypatch.setattr(build_ffi, "GENERATED_C", tmp_path / "c")
    build_ffi.generate()
    written = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert written == [
        "c/_cuda.c",
        "c/ccc_nvml_rows.h",
        "c/ccc_table_rows.h",
        "package/_raw/generated.py",
        "package/_raw/nvml_generated.py",
        "package/_raw/nvml_types.cdef",
        "package/_raw/types.cdef",
        "package/include/cuda_core_cffi.h",
    ]


@needs_header
def test_the_command_line_prints_the_report(cuda_path: pathlib.Path) -> None:
    done = run("--report", CUDA_PATH=str(cuda_path.parent))
    assert done.returncode == 0
    assert done.stdout.startswith(f"read       {cuda_path / 'cuda.h'}")


def test_the_command_line_wants_an_action() -> None:
    done = run()
    assert done.returncode == 2
    assert "--report" in done.stderr


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "build_ffi.py"), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
