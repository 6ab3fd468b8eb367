# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The driver's error log: in exceptions, in logging, and line by line."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest
from helpers import LIMIT, collect, in_thread, in_threads, output_of, soon

from cuda_core_cffi import CUDAError, UnavailableError, ffi, lib, simulator
from cuda_core_cffi._core import driver_log
from cuda_core_cffi._core.errors import check, failure, handle_return
from cuda_core_cffi._device.device import driver_version
from cuda_core_cffi.utils import DriverLogListener

LOGGER = "cuda_core_cffi.driver"
FIRST = (12, 9, 0)


@pytest.fixture(autouse=True)
def new_enough(device) -> None:
    """Skip with a driver that has no log."""
    if driver_version() < FIRST:
        pytest.skip("the driver is older than CUDA 12.9")


@pytest.fixture(autouse=True)
def read(device) -> None:
    """Read what was logged before."""
    driver_log.forward()


def messages(caplog: Any) -> list[str]:
    """Return the texts that the logger was given, without time and thread."""
    return [record.getMessage().partition("[CUDA][E] ")[2] for record in caplog.records if record.name == LOGGER]


def wrong_flags() -> int:
    """Make a call that fails; return its status."""
    return int(lib.cuStreamCreate(ffi.new("CUstream *"), 0xFFFF))


def too_many_threads(stream) -> int:
    """Make a call that fails, and that every driver explains; return its status."""
    function = kernel_of(stream)
    return int(lib.cuLaunchKernel(function, 1, 1, 1, 4096, 1, 1, 0, stream.cdata, ffi.NULL, ffi.NULL))


def kernel_of(stream) -> Any:
    """Return a kernel without parameters, which stays loaded."""
    if not KERNEL:
        code = b".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry nothing() { ret; }\n\0"
        module, function = ffi.new("CUmodule *"), ffi.new("CUfunction *")
        check(lib.cuModuleLoadData(module, code), "cuModuleLoadData")
        check(lib.cuModuleGetFunction(function, module[0], b"nothing"), "cuModuleGetFunction")
        KERNEL.append((module[0], function[0]))
    return KERNEL[0][1]


KERNEL: list[tuple[Any, Any]] = []


@pytest.fixture(autouse=True)
def unloaded(device):
    """Unload the kernel."""
    yield
    for module, _ in KERNEL:
        check(lib.cuModuleUnload(module), "cuModuleUnload")
    KERNEL.clear()


def test_an_exception_says_what_the_driver_logged_of_its_call(stream):
    with pytest.raises(CUDAError, match=r"; the driver says: .*4096") as caught:
        check(too_many_threads(stream), "cuLaunchKernel")
    assert "4096" in caught.value.driver_log
    assert "Returning" not in str(caught.value)


def test_what_is_logged_without_an_explanation_adds_nothing(device):
    status = lib.cuCtxSetLimit(99, 1)
    error = failure(status, "cuCtxSetLimit")
    assert error.driver_log is None
    assert "the driver says" not in str(error)


def test_an_exception_has_the_log_of_its_own_call_only(stream):
    status = too_many_threads(stream)
    assert lib.cuCtxSetLimit(99, 1) == status
    assert failure(status, "cuCtxSetLimit").driver_log is None
    assert "4096" in failure(status, "cuLaunchKernel").driver_log
    assert failure(lib.CUDA_ERROR_OUT_OF_MEMORY, "cuLaunchKernel").driver_log is None
    assert failure(status, "cuMemAlloc").driver_log is None


def test_a_status_of_an_unknown_call_has_the_log_of_the_last_one(stream):
    with pytest.raises(CUDAError, match="4096"):
        handle_return((too_many_threads(stream),))


def test_exceptions_have_the_log_of_their_thread(device, stream):
    kernel_of(stream)
    together = threading.Barrier(4, timeout=LIMIT)

    def work(number: int) -> tuple[int, Exception]:
        device.set_current()
        threads = 2048 + number
        failed = lib.cuLaunchKernel(kernel_of(stream), 1, 1, 1, threads, 1, 1, 0, stream.cdata, ffi.NULL, ffi.NULL)
        together.wait()
        return threads, failure(failed, "cuLaunchKernel")

    for threads, error in in_threads(4, work):
        assert str(threads) in error.driver_log


def test_a_thread_that_takes_the_number_of_another_has_its_own_log(device, stream):
    kernel_of(stream)
    in_thread(lambda: (device.set_current(), too_many_threads(stream)))
    found = []
    in_thread(lambda: (device.set_current(), found.append(failure(wrong_flags(), "cuStreamCreate"))))
    assert "4096" not in str(found[0])


def test_lines_go_to_the_logger_in_their_order(device, stream, caplog):
    kernel_of(stream)
    driver_log.forward()
    check_fails(too_many_threads(stream), "cuLaunchKernel")
    explained, end = messages(caplog)
    assert "4096" in explained
    assert end == "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernel"
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


def check_fails(status: int, call: str) -> None:
    """Make the exception for a status."""
    with pytest.raises(CUDAError):
        check(status, call)


def test_lines_of_calls_whose_failure_raised_nothing_come_with_the_next_exception(device, caplog):
    wrong_flags()
    assert messages(caplog) == []
    check_fails(lib.cuCtxSetLimit(99, 1), "cuCtxSetLimit")
    assert [text.rpartition(" ")[2] for text in messages(caplog) if "Returning" in text] == [
        "cuStreamCreate",
        "cuCtxSetLimit",
    ]


def test_calls_that_succeed_and_answers_that_are_no_failures_log_nothing(device, stream, caplog):
    with DriverLogListener(), device.allocate(64, stream) as buffer:
        buffer.fill(1, stream=stream)
        event = stream.record()
        while not event.is_done:
            time.sleep(0)
        stream.sync()
    assert messages(caplog) == []


def test_a_log_that_has_rolled_over_says_so(device, caplog):
    for _ in range(300):
        lib.cuCtxSetLimit(99, 1)
    check_fails(wrong_flags(), "cuStreamCreate")
    first, *rest = [record.getMessage() for record in caplog.records]
    assert "rolled over" in first
    assert caplog.records[0].levelno == logging.WARNING
    assert "cuStreamCreate" in rest[-1]


def test_functions_that_a_stream_calls_do_not_read_the_log(stream, caplog):
    status = wrong_flags()
    errors: list[Exception] = []
    stream.callback(lambda: errors.append(failure(status, "cuStreamCreate")))
    stream.sync()
    assert len(errors) == 1
    assert messages(caplog) == []
    driver_log.forward()
    assert messages(caplog)[-1].endswith("from cuStreamCreate")


# --- Listening ------------------------------------------------------------------------------------------------


def test_a_listener_has_every_line_logged_without_an_exception(device, caplog):
    with DriverLogListener() as listener:
        assert not listener.is_closed
        wrong_flags()
        end = time.monotonic() + LIMIT
        while not any("cuStreamCreate" in text for text in messages(caplog)) and time.monotonic() < end:
            time.sleep(0.001)
    assert messages(caplog)[-1] == "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuStreamCreate"
    assert listener.is_closed


def test_exceptions_have_their_log_while_there_is_a_listener(stream, caplog):
    kernel_of(stream)
    with DriverLogListener():
        for _ in range(20):
            status = too_many_threads(stream)
            time.sleep(0.002)
            assert "4096" in failure(status, "cuLaunchKernel").driver_log
    # the release thread may still have lines in hand that it has read
    assert soon(lambda: len(messages(caplog)) == 40)


def test_closing_a_listener_reads_what_is_left(device, caplog):
    listener = DriverLogListener()
    wrong_flags()
    listener.close()
    listener.close()
    assert soon(lambda: messages(caplog)[-1:] == ["Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuStreamCreate"])
    assert repr(listener) == "<DriverLogListener logger='cuda_core_cffi.driver' closed>"


def test_listeners_are_independent_of_each_other(device, caplog):
    first, second = DriverLogListener(), DriverLogListener()
    first.close()
    with second:
        wrong_flags()
    assert [text for text in messages(caplog) if "Returning" in text] == [
        "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuStreamCreate"
    ]


# --- Processes ------------------------------------------------------------------------------------------------


def test_nothing_is_printed_and_logging_is_not_imported_where_nothing_fails():
    code = """
    import sys
    from cuda_core_cffi import CUDAError, Device, lib
    from cuda_core_cffi._core.errors import check
    Device().set_current()
    print("logging" in sys.modules)
    try:
        check(lib.cuMemFree(48), "cuMemFree")
    except CUDAError:
        print("logging" in sys.modules)
    """
    assert output_of(code).splitlines() == ["False", "True"]


@pytest.mark.simulator_only("only there the version of the driver can be chosen")
def test_older_drivers_have_no_log():
    code = """
    from cuda_core_cffi import CUDAError, Device, UnavailableError, lib
    from cuda_core_cffi._core.errors import check
    from cuda_core_cffi.utils import DriverLogListener
    Device().set_current()
    for work in (lambda: check(lib.cuMemFree(48), "cuMemFree"), DriverLogListener):
        try:
            work()
        except CUDAError as error:
            print(type(error).__name__, error.driver_log, "12.9" in str(error))
    """
    assert output_of(code, CUDA_SIM_DRIVER_VERSION="12080").splitlines() == [
        "CUDAError None False",
        "UnavailableError None True",
    ]


def test_a_listener_cannot_be_copied(device):
    import copy

    with DriverLogListener() as listener, pytest.raises(TypeError, match="cannot be pickled or copied"):
        copy.copy(listener)
    assert issubclass(UnavailableError, CUDAError)


def test_a_listener_that_was_not_initialised_goes_quietly():
    listener = DriverLogListener.__new__(DriverLogListener)
    assert listener.is_closed
    listener.close()
    with pytest.MonkeyPatch.context() as patch:
        unraisable = []
        patch.setattr("sys.unraisablehook", unraisable.append)
        del listener
        collect()
    assert unraisable == []


PROBES = """
    import logging, sys
    from cuda_core_cffi import Device, LaunchConfig, ObjectCode, launch
    logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
    from cuda_core_cffi.utils import DriverLogListener
    from cuda_core_cffi._core.driver_log import forward
    device = Device()
    NAMES = [name for name in dir(device.properties) if name[0] != "_" and name != "gpu_overlap"]  # deprecated
    device.set_current()
    stream = device.create_stream()
"""


@pytest.mark.parametrize(
    "code",
    [
        # the driver says where the parameters of a kernel end by a failure
        'launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), device.allocate(8, stream=stream), 1)',
        # and which attributes of a device it does not know
        "[getattr(device.properties, name) for name in NAMES]",
        # a managed variable is found by the second of two calls
        'code.get_global("managed")',
    ],
)
def test_a_correct_program_finds_no_error_in_the_log(code: str) -> None:
    ptx = (
        ".version 7.0\\n.target sm_60\\n.address_size 64\\n"
        ".visible .global .attribute(.managed) .align 4 .u32 managed;\\n"
        ".visible .entry k(.param .u64 p, .param .u32 n) { ret; }\\n"
    )
    script = PROBES + f"    code = ObjectCode.from_ptx(b'''{ptx}''')\n    {code}\n    stream.sync()\n    forward()\n"
    assert output_of(script) == ""
    listening = script.replace(
        f"    {code}\n", f"    with DriverLogListener():\n        {code}\n        stream.sync()\n"
    )
    assert output_of(listening) == ""


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_an_allocation_that_succeeds_the_second_time_leaves_no_error_in_the_log(device, stream, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    with simulator.fail("cuMemAllocFromPoolAsync", "CUDA_ERROR_OUT_OF_MEMORY"):
        device.allocate(64, stream=stream).close()
    driver_log.forward()
    assert not messages(caplog)


def test_a_failure_that_is_no_probe_is_shown(caplog):
    caplog.set_level(logging.INFO, LOGGER)
    status = int(lib.CUDA_ERROR_INVALID_VALUE)
    expected = lib.ccc_probe_begin(b"cuStreamCreate", status)
    assert wrong_flags() == status
    lib.ccc_probe_end(expected, True)
    driver_log.forward()
    assert not messages(caplog)
    unexpected = lib.ccc_probe_begin(b"cuStreamCreate", status)
    assert wrong_flags() == status
    lib.ccc_probe_end(unexpected, False)
    assert wrong_flags() == status
    driver_log.forward()
    assert sum("from cuStreamCreate" in message for message in messages(caplog)) == 2


def test_a_probe_whose_line_was_lost_hides_no_later_failure(caplog):
    caplog.set_level(logging.INFO, LOGGER)
    status = int(lib.CUDA_ERROR_INVALID_VALUE)
    lib.ccc_probe_end(lib.ccc_probe_begin(b"cuStreamCreate", status), True)  # as if the log had rolled over
    lib.cuCtxSetLimit(99, 1)
    driver_log.forward()
    caplog.clear()
    assert wrong_flags() == status
    driver_log.forward()
    assert any("from cuStreamCreate" in message for message in messages(caplog))
