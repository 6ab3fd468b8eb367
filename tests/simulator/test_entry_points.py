# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""The table of entry points, and cuGetProcAddress."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sim_driver import ROOT, Driver, byref, c_int, c_uint64, c_void_p, ctypes, run_alone

FOUND, UNKNOWN, TOO_OLD = 0, 1, 2
PER_THREAD_FLAG = 2


def ask(driver: Driver, name: str, version: int, flags: int = 0) -> tuple[int | None, int]:
    address, status = c_void_p(), c_int(7)
    driver.cuGetProcAddress_v2(name.encode(), byref(address), version, c_uint64(flags), byref(status))
    return address.value, status.value


def symbol(driver: Driver, name: str) -> int | None:
    return ctypes.cast(getattr(driver.library, name), c_void_p).value


def test_each_version_gets_its_signature(driver: Driver) -> None:
    for version, name in (
        (3020, "_v2"),
        (11030, "_v2"),
        (11040, "_v3"),
        (12040, "_v3"),
        (12050, "_v4"),
        (13000, "_v4"),
    ):
        assert ask(driver, "cuCtxCreate", version) == (symbol(driver, "cuCtxCreate" + name), FOUND)
    assert ask(driver, "cuCtxSynchronize", 12080) == (symbol(driver, "cuCtxSynchronize"), FOUND)
    assert ask(driver, "cuCtxSynchronize", 13000) == (symbol(driver, "cuCtxSynchronize_v2"), FOUND)


def test_the_flag_asks_for_per_thread_variants(driver: Driver) -> None:
    assert ask(driver, "cuStreamQuery", 12000, PER_THREAD_FLAG) == (symbol(driver, "cuStreamQuery_ptsz"), FOUND)
    assert ask(driver, "cuMemcpyHtoD", 12000, PER_THREAD_FLAG) == (symbol(driver, "cuMemcpyHtoD_v2_ptds"), FOUND)
    assert ask(driver, "cuMemAlloc", 12000, PER_THREAD_FLAG) == (symbol(driver, "cuMemAlloc_v2"), FOUND)
    assert ask(driver, "cuStreamQuery", 5000, PER_THREAD_FLAG) == (symbol(driver, "cuStreamQuery"), FOUND)


def test_what_is_not_found_says_why(driver: Driver) -> None:
    assert ask(driver, "cuMemAllocAsync", 5000) == (None, TOO_OLD)
    assert ask(driver, "cuNoSuchFunction", 12000) == (None, UNKNOWN)
    assert ask(driver, "cuMemAlloc_v2", 12000) == (None, UNKNOWN)
    address = c_void_p(5)
    driver.cuGetProcAddress_v2(b"cuNoSuchFunction", byref(address), 12000, c_uint64(0), None)
    assert address.value is None
    assert driver.status("cuGetProcAddress", b"cuNoSuchFunction", byref(address), 12000, c_uint64(0)) == "NOT_FOUND"
    driver.cuGetProcAddress(b"cuInit", byref(address), 12000, c_uint64(0))


def test_wrong_questions(driver: Driver) -> None:
    def status(name: bytes | None, version: int, flags: int) -> str:
        return driver.status("cuGetProcAddress_v2", name, byref(c_void_p()), version, c_uint64(flags), None)

    assert status(b"cuInit", 99000, 0) == "INVALID_VALUE"
    assert status(b"cuInit", 12000, 7) == "INVALID_VALUE"
    assert status(None, 12000, 0) == "INVALID_VALUE"


def test_an_old_driver_does_not_have_newer_functions() -> None:
    printed = run_alone(
        """
        def ask(name, version):
            status = c_int(7)
            cu.cuGetProcAddress_v2(name, byref(c_void_p()), version, c_uint64(0), byref(status))
            return status.value
        print(ask(b"cuStreamGetDevice", 12020), ask(b"cuStreamGetId", 12020), ask(b"cuCtxCreate", 13000))
        """,
        CUDA_SIM_DRIVER_VERSION="12020",
    )
    assert printed.split() == ["1", "0", "0"]


def table() -> list[tuple[str, str, str, str, str]]:
    """Read the rows: base name, version, symbol, per-thread symbol and its version (or empty)."""
    text = (ROOT / "simulator" / "src" / "driver" / "dispatch_table.h").read_text()
    return re.findall(r"^(?:STREAM_)?ROW\((\w+), (\d+), (\w+)(?:, (\w+), (\d+))?\)$", text, re.MULTILINE)


def header() -> Path | None:
    places = [Path(os.environ[name]) / "include" for name in ("CUDA_PATH", "CUDA_HOME") if name in os.environ]
    for folder in map(Path, sys.path):
        places += [folder / "nvidia" / "cu13" / "include", folder / "nvidia" / "cuda_runtime" / "include"]
    return next((place / "cudaTypedefs.h" for place in places if (place / "cudaTypedefs.h").exists()), None)


def test_the_versions_are_those_of_the_header(sim: ModuleType) -> None:
    typedefs = header()
    if typedefs is None:
        pytest.skip("no cudaTypedefs.h found: set CUDA_PATH")
    # Functions for OpenGL are declared apart, and where the headers came without those for graphics not at all.
    graphics = typedefs.with_name("cudaGLTypedefs.h")
    declared = typedefs.read_text() + (graphics.read_text() if graphics.exists() else "")
    found = re.search(r"define CUDA_VERSION (\d+)", typedefs.with_name("cuda.h").read_text())
    assert found is not None
    header_version = int(found[1])
    versions: dict[str, set[int]] = {}
    variants: dict[str, set[int]] = {}
    for name, version, variant in re.findall(r"PFN_(cu\w+?)_v(\d+)(_pt[sd][zs])?\)", declared):
        (variants if variant else versions).setdefault(name, set()).add(int(version))
    rows = table()
    assert len(rows) > 150
    latest: dict[str, int] = {}
    for base, version, name, variant, variant_version in rows:
        assert re.fullmatch(rf"{base}(_v\d)?", name)
        assert int(version) > latest.get(base, 0), f"{base} is out of order"
        if int(version) > header_version:
            continue
        latest[base] = int(version)
        if base not in versions:  # of another header
            assert base.startswith(("cuProfiler", "cuGraphicsGL")), base
            continue
        assert int(version) in versions[base], name
        if variant:
            assert re.fullmatch(rf"{name}_pt(sz|ds)", variant)
            assert int(variant_version) in variants[base], variant
    missing = {base for base, version in latest.items() if version != max(versions.get(base, {version}))}
    assert not missing, f"the newest signatures are missing: {missing}"


def test_every_row_answers() -> None:
    rows = [row[:3] for row in table()]
    printed = run_alone(
        f"""
        for base, version, name in {rows!r}:
            address, status = c_void_p(), c_int(7)
            cu.cuGetProcAddress_v2(base.encode(), byref(address), int(version), c_uint64(0), byref(status))
            if address.value != ctypes.cast(getattr(cu.library, name), c_void_p).value:
                print(base, version, name)
        """,
        CUDA_SIM_DRIVER_VERSION="99000",
    )
    assert printed == ""


def test_error_names_and_explanations(driver: Driver) -> None:
    text = ctypes.c_char_p()
    for number, name in ((0, b"CUDA_SUCCESS"), (700, b"CUDA_ERROR_ILLEGAL_ADDRESS"), (999, b"CUDA_ERROR_UNKNOWN")):
        driver.cuGetErrorName(number, byref(text))
        assert text.value == name
        driver.cuGetErrorString(number, byref(text))
        assert text.value
    for function in ("cuGetErrorName", "cuGetErrorString"):
        assert driver.status(function, 123456, byref(text)) == "INVALID_VALUE"
        assert text.value is None
