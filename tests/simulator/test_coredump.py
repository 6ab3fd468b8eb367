# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of core dumps, as driver 580 answers on an H100, and the files of the simulated driver."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from sim_driver import Driver, byref, c_size_t, run_alone

ENABLE, TRIGGER_HOST, LIGHTWEIGHT, USER_TRIGGER, FILE, PIPE, FLAGS = range(1, 8)
SKIP_ABORT, SKIP_MEMORY = 16, 47
SIZES = {ENABLE: 1, TRIGGER_HOST: 1, LIGHTWEIGHT: 1, FILE: 1024, FLAGS: 4}


def put(cu: Driver, setting: int, value: bytes, size: int | None = None, where: str = "") -> str:
    """Return the status of a setting of a context, or with "Global" of the process."""
    length = c_size_t(len(value) if size is None else size)
    return cu.status(f"cuCoredumpSetAttribute{where}", setting, ctypes.create_string_buffer(value), byref(length))


def get(cu: Driver, setting: int, where: str = "") -> bytes:
    """Return what a setting is."""
    value, size = ctypes.create_string_buffer(2048), c_size_t(2048)
    getattr(cu, f"cuCoredumpGetAttribute{where}")(setting, value, byref(size))
    return value.raw[: size.value]


def test_sizes_are_told_and_checked(cu: Driver) -> None:
    for setting, expected in SIZES.items():
        size = c_size_t(0)
        cu.cuCoredumpGetAttribute(setting, None, byref(size))
        assert size.value == expected
        small = c_size_t(expected - 1)
        value = ctypes.create_string_buffer(2048)
        assert cu.status("cuCoredumpGetAttribute", setting, value, byref(small)) == "INVALID_VALUE"
        assert cu.status("cuCoredumpGetAttribute", setting, value, None) == "INVALID_VALUE"
        assert put(cu, setting, bytes(expected), expected + 1) == "INVALID_VALUE"
        assert put(cu, setting, bytes(expected)) == "SUCCESS"
    assert put(cu, FLAGS, bytes(4), 1) == "INVALID_VALUE"
    assert put(cu, FILE, b"short") == "SUCCESS"
    assert get(cu, FILE).startswith(b"short\0")
    assert put(cu, FILE, b"") == "SUCCESS"


def test_old_settings_are_parts_of_the_flags(cu: Driver) -> None:
    for setting, value, flags in (
        (TRIGGER_HOST, 0, SKIP_ABORT),
        (LIGHTWEIGHT, 1, SKIP_ABORT | SKIP_MEMORY),
        (TRIGGER_HOST, 1, SKIP_MEMORY),
        (LIGHTWEIGHT, 0, 0),
    ):
        assert put(cu, setting, bytes([value])) == "SUCCESS"
        assert get(cu, FLAGS) == bytes([flags, 0, 0, 0])
    assert put(cu, FLAGS, bytes([SKIP_ABORT | SKIP_MEMORY, 0, 0, 0])) == "SUCCESS"
    assert (get(cu, TRIGGER_HOST), get(cu, LIGHTWEIGHT)) == (b"\0", b"\1")
    assert put(cu, FLAGS, bytes(4)) == "SUCCESS"


def test_a_context_has_no_pipe(cu: Driver) -> None:
    for setting in (USER_TRIGGER, PIPE):
        assert put(cu, setting, b"\1") == "INVALID_VALUE"
        size = c_size_t(0)
        assert cu.status("cuCoredumpGetAttribute", setting, None, byref(size)) == "INVALID_VALUE"
        cu.cuCoredumpGetAttributeGlobal(setting, None, byref(size))
        assert size.value == (1 if setting == USER_TRIGGER else 1024)
    for setting in (0, 8):
        assert put(cu, setting, b"\1") == put(cu, setting, b"\1", where="Global") == "INVALID_VALUE"


def test_settings_of_a_context_need_one(driver: Driver) -> None:
    assert put(driver, ENABLE, b"\0") == "INVALID_CONTEXT"
    assert put(driver, ENABLE, b"\0", where="Global") == "SUCCESS"


TRAP = """
PTX = b".version 7.0\\n.target sm_60\\n.address_size 64\\n.visible .entry trapped() { trap; }\\n"
def put(setting, value, where=""):
    size = c_size_t(len(value))
    getattr(cu, "cuCoredumpSetAttribute" + where)(setting, ctypes.create_string_buffer(value), byref(size))
def fail():
    module = cu.out(c_void_p, "cuModuleLoadData", PTX)
    function = cu.out(c_void_p, "cuModuleGetFunction", module, b"trapped")
    cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    print(cu.status("cuCtxSynchronize"))
"""


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        ("put(1, b'\\1', 'Global')", "", True),
        ("put(4, b'\\1', 'Global')", "", True),
        ("", "put(1, b'\\1', 'Global')", False),
        ("", "put(1, b'\\1')", False),
        ("put(1, b'\\1', 'Global')", "put(1, b'\\0')", False),
    ],
    ids=["process", "process, on request", "process, too late", "context, too late", "not for the context"],
)
def test_a_file_is_written_where_core_dumps_were_on_when_the_context_was_made(
    tmp_path: Path, before: str, after: str, written: bool
) -> None:
    code = f"""
cu.cuInit(0)
put(7, bytes([16, 0, 0, 0]), "Global")
put(5, b"{tmp_path}/core.%%.%p", "Global")
{before}
cu.start()
{after}
fail()
print(os.getpid())
"""
    status, pid = run_alone(TRAP + code).split()
    assert status == "LAUNCH_FAILED"
    files = list(tmp_path.iterdir())
    assert [path.name for path in files] == ([f"core.%.{pid}"] if written else [])
    if written:
        content = files[0].read_bytes()
        assert content[:6] == b"\x7fELF\2\1"
        assert b"kernel trapped" in content[64:]
