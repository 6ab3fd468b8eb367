# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Errors: what their messages say, and what is raised where no driver, function or device is there."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import pytest
from helpers import output_of, run_python

from cuda_core_cffi import (
    CUDAError,
    CUDAWarning,
    Device,
    NVRTCError,
    UnavailableError,
    driver,
    ffi,
    handle_return,
    lib,
    raise_if_driver_error,
)
from cuda_core_cffi._core.errors import HINTS, check, check_cleanup, cuda_version, failure, status_name

FIRST_USE = """
    from cuda_core_cffi import CUDAError, Device
    try:
        Device(0)
    except CUDAError as error:
        print(type(error).__name__, error.call, error.name, str(error), sep="\\n")
    """


def test_the_classes_are_related() -> None:
    assert issubclass(NVRTCError, CUDAError)
    assert issubclass(UnavailableError, CUDAError)
    assert issubclass(CUDAWarning, Warning)


def test_success_raises_nothing() -> None:
    check(0, "cuInit")
    raise_if_driver_error(0)
    raise_if_driver_error(driver.CUresult.CUDA_SUCCESS)


def test_the_message_has_call_name_number_explanation_and_hint(device: Device) -> None:
    status = int(lib.CUDA_ERROR_OUT_OF_MEMORY)
    text = ffi.new("const char **")
    assert lib.cuGetErrorString(status, text) == 0
    explanation, hint = ffi.string(text[0]).decode(), HINTS["CUDA_ERROR_OUT_OF_MEMORY"]
    assert str(failure(status, "cuMemAlloc")) == (
        f"cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2): {explanation}; {hint}"
    )


def test_an_error_without_a_hint_ends_with_the_explanation(device: Device) -> None:
    assert str(failure(lib.CUDA_ERROR_ALREADY_MAPPED, "cuX")).count(";") == 0


def test_the_error_carries_its_parts() -> None:
    error = failure(1, "cuMemAlloc")
    assert isinstance(error, CUDAError)
    assert (error.call, error.status, error.name) == ("cuMemAlloc", 1, "CUDA_ERROR_INVALID_VALUE")


def test_a_status_newer_than_our_header_keeps_its_number(device: Device) -> None:
    error = failure(98765, "cuX")
    assert str(error).startswith("cuX failed: CUresult 98765 (98765)")


def test_every_hint_is_for_an_error_of_the_header() -> None:
    names = set(ffi.typeof("CUresult").elements.values())
    assert set(HINTS) <= names


def test_no_hint_repeats_the_drivers_explanation(device: Device) -> None:
    text = ffi.new("const char **")
    for name, hint in HINTS.items():
        assert lib.cuGetErrorString(getattr(lib, name), text) == 0
        assert ffi.string(text[0]).decode() not in hint


def test_names_come_from_the_header() -> None:
    assert status_name(0) == "CUDA_SUCCESS"
    assert status_name(lib.CUDA_ERROR_NOT_READY) == "CUDA_ERROR_NOT_READY"


@pytest.mark.parametrize(("number", "text"), [(12000, "12.0"), (12040, "12.4"), (13050, "13.5"), (11080, "11.8")])
def test_cuda_versions_read_as_usual(number: int, text: str) -> None:
    assert cuda_version(number) == text


# results of the driver module


def test_handle_return_refuses_a_result_without_a_status() -> None:
    with pytest.raises(ValueError, match="there is no status"):
        handle_return(())


@pytest.mark.parametrize("result", [{1: 2}, "text", 0, None])
def test_handle_return_refuses_what_is_no_tuple(result: object) -> None:
    with pytest.raises(TypeError, match="a result of a driver function is a tuple"):
        handle_return(result)  # type: ignore[arg-type]


def test_handle_return_gives_none_a_value_or_a_tuple() -> None:
    assert handle_return((0,)) is None
    assert handle_return((0, 5)) == 5
    assert handle_return((0, 5, 6)) == (5, 6)


def test_handle_return_works_on_the_driver_module(device: Device) -> None:
    assert handle_return(driver.cuDeviceGetCount()) >= 1


def test_handle_return_raises(device: Device) -> None:
    with pytest.raises(CUDAError, match=r"CUDA_ERROR_INVALID_DEVICE \(101\)") as caught:
        handle_return(driver.cuDeviceGet(12345))
    assert caught.value.status == 101


def test_raise_if_driver_error_raises(device: Device) -> None:
    with pytest.raises(CUDAError, match="a driver call failed: CUDA_ERROR_INVALID_DEVICE"):
        raise_if_driver_error(driver.cuDeviceGet(12345)[0])


def test_a_missing_function_does_not_explain_the_failure_of_another() -> None:
    text = output_of(
        """
        from cuda_core_cffi import CUDAError, driver, handle_return
        driver.cuInit(0)
        print(int(driver.cuGreenCtxStreamCreate(0, 1, 0)[0]))  # nobody looks at the status
        try:
            handle_return(driver.cuDeviceGet(12345))
        except CUDAError as error:
            print(type(error).__name__, error.name)
        """,
        CUDA_CORE_CFFI_DRIVER="simulator",
        CUDA_SIM_DRIVER_VERSION="12020",
    )
    assert text.split("\n") == ["801", "CUDAError CUDA_ERROR_INVALID_DEVICE"]


def test_handle_return_explains_a_missing_function() -> None:
    text = output_of(
        """
        from cuda_core_cffi import UnavailableError, driver, handle_return
        driver.cuInit(0)
        try:
            handle_return(driver.cuGreenCtxStreamCreate(0, 1, 0))
        except UnavailableError as error:
            print(error)
        """,
        CUDA_CORE_CFFI_DRIVER="simulator",
        CUDA_SIM_DRIVER_VERSION="12020",
    )
    assert text.startswith("cuGreenCtxStreamCreate needs a driver for CUDA 12.5; the installed one is for 12.2")


# what is not there


def test_no_library_says_what_was_tried_and_what_to_do() -> None:
    kind, call, _, text = output_of(FIRST_USE, CUDA_CORE_CFFI_DRIVER="/nonexistent/libcuda.so").split("\n")
    assert (kind, call) == ("UnavailableError", "cuInit")
    assert "'/nonexistent/libcuda.so' could not be loaded" in text
    assert "CUDA_CORE_CFFI_DRIVER=simulator" in text


def test_a_library_that_is_no_driver_says_so() -> None:
    library = next(path for path in libraries_in_use() if "libc.so" in path or "libm.so" in path)
    kind, _, _, text = output_of(FIRST_USE, CUDA_CORE_CFFI_DRIVER=library).split("\n")
    assert kind == "UnavailableError"
    assert f"{library} is no CUDA driver" in text


def libraries_in_use() -> list[str]:
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return [fields[5] for line in lines if len(fields := line.split()) > 5]


@pytest.mark.parametrize("version", ["11080", "9000"])
def test_a_driver_that_is_too_old_for_everything_says_which_is_needed(version: str) -> None:
    kind, _, _, text = output_of(FIRST_USE, CUDA_CORE_CFFI_DRIVER="simulator", CUDA_SIM_DRIVER_VERSION=version).split(
        "\n"
    )
    assert kind == "UnavailableError"
    assert "is too old: version 12.0 or newer is needed" in text


def test_a_function_newer_than_the_driver_says_which_is_needed() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device, UnavailableError, ffi, lib
        from cuda_core_cffi._core.errors import check
        Device(0).set_current()
        try:
            check(lib.cuGreenCtxStreamCreate(ffi.NULL, ffi.NULL, 0, 0), "cuGreenCtxStreamCreate")
        except UnavailableError as error:
            print(error.call, error.name, error, sep="\\n")
        """,
        CUDA_CORE_CFFI_DRIVER="simulator",
        CUDA_SIM_DRIVER_VERSION="12020",
    )
    assert text.split("\n") == [
        "cuGreenCtxStreamCreate",
        "CUDA_ERROR_NOT_SUPPORTED",
        "cuGreenCtxStreamCreate needs a driver for CUDA 12.5; the installed one is for 12.2: update the NVIDIA driver",
    ]


def test_a_driver_without_devices_is_unavailable() -> None:
    kind, _, name, text = output_of(FIRST_USE, CUDA_CORE_CFFI_DRIVER="simulator", CUDA_SIM_DEVICES="0").split("\n")
    assert (kind, name) == ("UnavailableError", "CUDA_ERROR_NO_DEVICE")
    assert "nvidia-smi" in text


@pytest.mark.parametrize(
    "use", ["Device()", "Device.get_all_devices()", "Stream.from_handle(99).context", "LEGACY_DEFAULT_STREAM.sync()"]
)
def test_every_first_use_without_a_driver_raises_the_same_error(use: str) -> None:
    text = output_of(
        f"""
        from cuda_core_cffi import *
        for _ in range(2):
            try:
                {use}
            except UnavailableError as error:
                print(str(error)[:14])
        """,
        CUDA_CORE_CFFI_DRIVER="/nonexistent/libcuda.so",
    )
    assert text == "no CUDA driver\nno CUDA driver"


# cleanup


@pytest.mark.simulator_only("injects a fault")
@pytest.mark.parametrize(
    ("make", "call"),
    [
        (lambda device: device.create_stream(), "cuStreamDestroy"),
        (lambda device: device.create_event(), "cuEventDestroy"),
        (lambda device: device.allocate(64, device.default_stream), "cuMemFreeAsync"),
    ],
    ids=["stream", "event", "buffer"],
)
@pytest.mark.parametrize("how", ["close", "collect"])
def test_a_failure_of_cleanup_is_a_warning_that_names_the_call(device: Device, make: Any, call: str, how: str) -> None:
    import gc

    from cuda_core_cffi import simulator

    kept = [make(device)]
    handle = kept[0].handle
    with simulator.fail(call, "CUDA_ERROR_ILLEGAL_STATE"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if how == "close":
            kept[0].close()
            assert caught[0].filename == __file__
        kept.clear()
        gc.collect()
    assert [item.category for item in caught] == [CUDAWarning]
    assert str(caught[0].message).startswith(
        f"in cleanup of {handle:#x}: {call} failed: CUDA_ERROR_ILLEGAL_STATE (401)"
    )
    destroy = {
        "cuStreamDestroy": lambda: lib.cuStreamDestroy(ffi.cast("CUstream", handle)),
        "cuEventDestroy": lambda: lib.cuEventDestroy(ffi.cast("CUevent", handle)),
        "cuMemFreeAsync": lambda: lib.cuMemFreeAsync(handle, ffi.NULL),
    }
    assert destroy[call]() == 0  # what the failure left behind


@pytest.mark.simulator_only("injects faults")
def test_failures_of_cleanup_are_told_in_their_order(device: Device) -> None:
    from cuda_core_cffi import simulator

    stream, event = device.create_stream(), device.create_event()
    handles = stream.cdata, event.cdata
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        simulator.fail("cuStreamDestroy", 1)
        simulator.fail("cuEventDestroy", 1)
        # both are dropped in C, before Python looks at either
        lib.ccc_close(stream._c_handle)
        waiting = lib.ccc_close(event._c_handle)
        assert waiting == 2
        check_cleanup(waiting)
    assert [str(item.message).split()[4] for item in caught] == ["cuStreamDestroy", "cuEventDestroy"]
    assert lib.cuStreamDestroy(handles[0]) == lib.cuEventDestroy(handles[1]) == 0


@pytest.mark.simulator_only("injects faults")
def test_each_failure_of_cleanup_is_shown_although_python_shows_a_text_once(device: Device) -> None:
    from cuda_core_cffi import simulator

    handles = []
    with simulator.fail("cuEventDestroy", 1, count=3), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for event in [device.create_event() for _ in range(3)]:
            handles.append(event.cdata)
            event.close()
    addresses = [f"{int(ffi.cast('uintptr_t', handle)):#x}:" for handle in handles]
    assert [str(item.message).split()[3] for item in caught] == addresses
    assert [lib.cuEventDestroy(handle) for handle in handles] == [0, 0, 0]


@pytest.mark.simulator_only("injects a fault")
def test_a_driver_that_is_shutting_down_is_no_failure_of_cleanup(device: Device) -> None:
    from cuda_core_cffi import simulator

    stream = device.create_stream()
    handle = stream.cdata
    with simulator.fail("cuStreamDestroy", "CUDA_ERROR_DEINITIALIZED"), warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.close()
    assert lib.cuStreamDestroy(handle) == 0


@pytest.mark.simulator_only("injects faults")
def test_a_storm_of_failures_is_told_as_far_as_it_is_kept(device: Device) -> None:
    from cuda_core_cffi import simulator

    streams = [device.create_stream() for _ in range(100)]
    handles = [stream.cdata for stream in streams]
    with simulator.fail("cuStreamDestroy", 1, count=100), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for stream in streams:
            lib.ccc_close(stream._c_handle)
        check_cleanup(1)
    assert 1 < len(caught) <= 100
    for handle in handles:
        assert lib.cuStreamDestroy(handle) == 0


def test_an_environment_that_the_simulator_refuses_is_named_by_the_exception() -> None:
    done = run_python(FIRST_USE, CUDA_CORE_CFFI_DRIVER="simulator", CUDA_SIM_MEMORY="lots")
    kind, call, name, message = done.stdout.splitlines()
    assert (kind, call, name) == ("CUDAError", "cuInit", "CUDA_ERROR_SYSTEM_NOT_READY")
    assert "CUDA_SIM_MEMORY=lots is not valid: it must be a number of bytes from 1M to 1T" in message
    assert done.stderr.startswith("cuda simulator: CUDA_SIM_MEMORY=lots")
