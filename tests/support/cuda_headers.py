# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The build's generator, which no wheel carries, and the headers to test it with.

Headers are those that the build finds by itself and of the folders in ``CUDA_TEST_INCLUDE_DIRS``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import pathlib

import pytest

pytest.importorskip("pycparser", reason="reads headers")
pytest.importorskip("setuptools", reason="the build is on top of it")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("build_ffi", ROOT / "build_ffi.py")
assert SPEC is not None
assert SPEC.loader is not None
build_ffi = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(build_ffi)

NAMES = (
    "headers",
    "helpers",
    "cdef",
    "table",
    "generate",
    "bindings",
    "directions",
    "roles",
    "nvml",
    "nvml_bindings",
    "nvml_since",
)
headers, helpers, cdef, table, generate, bindings, directions, roles, nvml, nvml_bindings, nvml_since = map(
    build_ffi.load_generator, NAMES
)


def include_dirs() -> list[pathlib.Path]:
    """Return the folders of the headers to test with."""
    found = [pathlib.Path(item) for item in os.environ.get("CUDA_TEST_INCLUDE_DIRS", "").split(os.pathsep) if item]
    with contextlib.suppress(headers.HeaderError):
        found.append(headers.find_include_dir())
    return list(dict.fromkeys(path.resolve() for path in found))


@functools.cache
def read(include_dir: pathlib.Path):  # type: ignore[no-untyped-def]
    """Return a header, classified. It is read once: leave it as it is."""
    return cdef.classify(headers.read_header(include_dir))


def nvml_include_dirs() -> list[pathlib.Path]:
    """Return the folders of the headers of NVML to test with."""
    found = [folder for folder in include_dirs() if (folder / "nvml.h").is_file()]
    with contextlib.suppress(headers.HeaderError):
        found.append(headers.find_nvml_include_dir().resolve())
    return list(dict.fromkeys(found))


@functools.cache
def read_nvml(include_dir: pathlib.Path):  # type: ignore[no-untyped-def]
    """Return a header of NVML, classified. It is read once: leave it as it is."""
    return nvml.classify(headers.read_nvml_header(include_dir))


EVERY_HEADER = pytest.mark.parametrize(
    "include_dir",
    include_dirs()
    or [pytest.param(None, marks=pytest.mark.skip(reason="no cuda.h found, see CUDA_TEST_INCLUDE_DIRS"))],
    ids=lambda path: "/".join(path.parts[-4:-1]) if path else "none",
)
