# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The error log of the simulated driver, as that of driver 580 answers."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sim_driver import Driver, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p, run_alone

LINES = 100
CAPACITY = 30000
LINE = r"\[\d\d:\d\d:\d\d\.\d{3}\]\[(\d+)\]\[CUDA\]\[E\] (.*)"
Callback = ctypes.CFUNCTYPE(None, c_void_p, c_int, ctypes.POINTER(ctypes.c_char), c_size_t)


def fail(cu: Driver, times: int = 1) -> None:
    """Make calls that fail."""
    for _ in range(times):
        assert cu.status("cuCtxSetLimit", 99, c_size_t(1)) != "SUCCESS"


def current(cu: Driver) -> c_uint:
    """Return an iterator for what will be logged."""
    return cu.out(c_uint, "cuLogsCurrent", 0)


def dump(cu: Driver, iterator: c_uint | None, capacity: int = CAPACITY) -> tuple[str, int, list[str]]:
    """Return the status, the size, and the lines."""
    buffer, size = ctypes.create_string_buffer(CAPACITY), c_size_t(capacity)
    status = cu.status("cuLogsDumpToMemory", byref(iterator) if iterator is not None else None, buffer, byref(size), 0)
    return status, size.value, buffer.raw[: size.value].decode().splitlines()


def test_a_line_has_the_time_the_thread_and_the_failure(cu: Driver) -> None:
    iterator = current(cu)
    fail(cu)
    status, size, lines = dump(cu, iterator)
    assert (status, len(lines)) == ("SUCCESS", 1)
    assert size == len(lines[0]) + 1
    found = re.fullmatch(LINE, lines[0])
    assert found is not None
    assert int(found[1]) == threading.get_ident()
    assert re.fullmatch(r"Returning \d+ \(CUDA_ERROR_\w+\) from cuCtxSetLimit", found[2])
    assert dump(cu, iterator) == ("SUCCESS", 0, [])


def test_what_is_not_ready_and_what_succeeds_logs_nothing(cu: Driver) -> None:
    iterator = current(cu)
    stream, event = cu.stream(), cu.event()
    cu.cuEventRecord(event, stream)
    while cu.status("cuEventQuery", event) != "SUCCESS":
        pass
    cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(stream)
    assert dump(cu, iterator) == ("SUCCESS", 0, [])


def test_an_iterator_goes_on_and_another_starts_where_it_was(cu: Driver) -> None:
    first = current(cu)
    fail(cu, 3)
    second = c_uint(first.value)
    assert len(dump(cu, first)[2]) == 3
    assert first.value == second.value + 3 == current(cu).value
    fail(cu)
    assert len(dump(cu, first)[2]) == 1
    assert len(dump(cu, second)[2]) == 4
    assert len(dump(cu, None)[2]) >= 4


def test_the_oldest_lines_are_lost(cu: Driver) -> None:
    iterator, all_of_them = current(cu), current(cu)
    fail(cu, LINES)
    assert len(dump(cu, c_uint(iterator.value))[2]) == LINES
    fail(cu)
    for one in (iterator, None):
        lines = dump(cu, one)[2]
        assert len(lines) == LINES + 1
        assert lines[0].startswith("Log buffer has rolled over")
    assert iterator.value == all_of_them.value + LINES + 1


def test_a_small_buffer_has_the_newest_lines(cu: Driver) -> None:
    iterator = current(cu)
    fail(cu, 5)
    size = dump(cu, c_uint(iterator.value))[1]
    status, found, lines = dump(cu, c_uint(iterator.value), size)
    assert (status, len(lines)) == ("SUCCESS", 5)
    assert lines[0].startswith("The provided buffer is not large enough")
    assert found < size
    for capacity in (0, 1, size // 5):
        assert dump(cu, c_uint(iterator.value), capacity)[:2] == ("INVALID_VALUE", 0)


def test_wrong_arguments_are_refused(cu: Driver) -> None:
    buffer, size = ctypes.create_string_buffer(100), c_size_t(100)
    iterator = c_uint(current(cu).value + 1000)
    assert cu.status("cuLogsCurrent", None, 0) == "INVALID_VALUE"
    assert cu.status("cuLogsDumpToMemory", None, None, byref(size), 0) == "INVALID_VALUE"
    assert cu.status("cuLogsDumpToMemory", None, buffer, None, 0) == "INVALID_VALUE"
    assert dump(cu, iterator)[:2] == ("INVALID_VALUE", 0)
    assert cu.status("cuLogsDumpToFile", None, None, 0) == "INVALID_VALUE"
    assert cu.status("cuLogsDumpToFile", None, c_char_p(b"/nowhere/log"), 0) == "INVALID_VALUE"
    assert cu.status("cuLogsRegisterCallback", None, None, None) == "INVALID_VALUE"
    assert cu.status("cuLogsUnregisterCallback", None) == "INVALID_VALUE"


def test_a_file_has_what_is_new(cu: Driver, tmp_path: Path) -> None:
    iterator, path = current(cu), tmp_path / "log"
    fail(cu, 2)
    for count in (2, 0):
        cu.cuLogsDumpToFile(byref(iterator), c_char_p(str(path).encode()), 0)
        assert len(path.read_text().splitlines()) == count


@pytest.fixture
def listening(cu: Driver) -> Any:
    """Return a function that registers a Python function; those are unregistered afterwards."""
    registered = []

    def register(function: Callable[..., None], data: int) -> c_void_p:
        callback, handle = Callback(function), c_void_p()
        cu.cuLogsRegisterCallback(callback, c_void_p(data), byref(handle))
        registered.append((callback, handle))
        return handle

    yield register
    for _, handle in registered:
        cu.status("cuLogsUnregisterCallback", handle)


def test_callbacks_get_the_text_in_the_thread_that_failed(cu: Driver, listening: Any) -> None:
    got = []

    def called(data: int, level: int, message: Any, length: int) -> None:
        got.append((threading.get_ident(), data, level, ctypes.string_at(message, length + 1)))

    first = listening(called, 1)
    listening(called, 2)
    fail(cu)
    text = got[0][3]
    assert text.startswith(b"Returning ")
    assert text.endswith(b"from cuCtxSetLimit\0")
    assert got == [(threading.get_ident(), data, 0, text) for data in (1, 2)]
    cu.cuLogsUnregisterCallback(first)
    got.clear()
    fail(cu)
    assert [data for _, data, _, _ in got] == [2]


def test_misuse_is_logged(cu: Driver, sim: Any) -> None:
    iterator = current(cu)
    assert cu.status("cuMemFree_v2", c_uint64(48)) == "INVALID_VALUE"
    explained, end = dump(cu, iterator)[2]
    assert "foreign free" in explained
    assert end.endswith("Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemFree_v2")
    sim.clear_reports()


def test_the_log_is_there_before_the_driver_is_started() -> None:
    code = """
    iterator, size, buffer = c_uint(7), c_size_t(1000), ctypes.create_string_buffer(1000)
    print(cu.status("cuDeviceGetCount", byref(c_int())), cu.status("cuLogsCurrent", byref(iterator), 0), iterator.value)
    print(cu.status("cuInit", 1), cu.status("cuLogsDumpToMemory", None, buffer, byref(size), 0))
    print(buffer.value.decode().strip().rpartition(" from ")[2])
    """
    assert run_alone(code).split() == ["NOT_INITIALIZED", "SUCCESS", "0", "INVALID_VALUE", "SUCCESS", "cuInit"]
