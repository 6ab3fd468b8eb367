# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""NVML in a process: loaded late, initialised once, anew after fork(), left alone at the end."""

from __future__ import annotations

import os

import pytest
from helpers import in_threads, output_of

from cuda_core_cffi import system
from cuda_core_cffi.system import _library
from cuda_core_cffi.system._library import nvml

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")


def test_nvml_is_not_imported_before_it_is_used() -> None:
    code = """
        import sys
        import cuda_core_cffi
        print("cuda_core_cffi.system" in sys.modules)
        from cuda_core_cffi import system
        from cuda_core_cffi.system.typing import EventType
        from cuda_core_cffi.system import NotSupportedError
        print([name for name in sys.modules if name.split(".")[-1] in ("nvml", "nvml_generated")])
        print("NotSupportedError" in vars(system))
        print(system.Device.__name__, "cuda_core_cffi.nvml" in sys.modules)
    """
    assert output_of(code).splitlines() == ["False", "[]", "True", "Device True"]


def test_every_name_is_there_and_listed() -> None:
    assert sorted(system.__all__) == sorted(set(system.__all__))
    for name in system.__all__:
        assert getattr(system, name) is not None
    assert set(system.__all__) <= set(dir(system))
    assert system.CUDA_BINDINGS_NVML_IS_COMPATIBLE is True
    assert system.typing.EventType.PSTATE == "pstate"
    with pytest.raises(AttributeError, match="no attribute 'NoSuchThing'"):
        _ = system.NoSuchThing


def test_the_first_calls_of_many_threads_initialise_nvml_once() -> None:
    code = """
        import threading
        from cuda_core_cffi import system
        from cuda_core_cffi.system._library import nvml
        calls, real = [], nvml.nvmlInit_v2

        def initialise():
            calls.append(1)
            return real()

        nvml.nvmlInit_v2 = initialise
        barrier = threading.Barrier(8)
        found = []

        def work():
            barrier.wait()
            found.append(system.Device(index=0).uuid)

        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(len(calls), len(found), len(set(found)))
    """
    assert output_of(code) == "1 8 1"


def test_a_failed_start_is_tried_again(monkeypatch) -> None:
    system.get_nvml_version()  # NVML is ready, whatever the package is made to think
    statuses = [nvml.nvmlReturn_t.NVML_ERROR_DRIVER_NOT_LOADED, nvml.nvmlReturn_t.NVML_SUCCESS]
    monkeypatch.setattr(_library.process, "ready", False)
    monkeypatch.setattr(nvml, "nvmlInit_v2", lambda: (statuses.pop(0),))
    with pytest.raises(system.DriverNotLoadedError, match="nvmlInit_v2 failed"):
        system.get_nvml_version()
    assert system.get_nvml_version() > (11,)
    assert statuses == []


def test_versions_are_numbers() -> None:
    for version in (system.get_nvml_version(), system.get_kernel_mode_driver_version()):
        assert len(version) >= 2
        assert all(type(part) is int for part in version)
    assert system.get_nvml_version()[1:3] == system.get_kernel_mode_driver_version()[:2]
    assert system.get_driver_branch()


def test_what_is_no_number_ends_a_version() -> None:
    from cuda_core_cffi.system._system import version_of

    assert version_of("580.65.06") == (580, 65, 6)
    assert version_of("580.65-beta.1") == (580,)


def test_a_process_has_a_name() -> None:
    try:
        name = system.get_process_name(os.getpid())
    except system.NotFoundError:  # a GPU's NVML knows the processes that use it
        return
    assert name


FORK = """
    import os, sys, warnings
    from cuda_core_cffi import system
    from cuda_core_cffi.system._library import nvml

    warnings.simplefilter("ignore", DeprecationWarning)  # NVML has threads, which a fork does not copy

    calls, real = [], nvml.nvmlInit_v2

    def initialise():
        calls.append(os.getpid())
        return real()

    nvml.nvmlInit_v2 = initialise
    device = system.Device(index=0)
    uuid = device.uuid
    events = device.register_events(device.get_supported_event_types()[:1])
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        calls.clear()
        {child}
        sys.stdout.flush()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    print(len(calls), device.uuid == uuid, events.is_closed)
    events.close()
"""


@needs_fork
def test_a_forked_child_initialises_nvml_anew() -> None:
    child = "print(device.uuid == uuid, device.memory_info.total > 0, calls == [os.getpid()])"
    assert output_of(FORK.format(child=child)).splitlines() == ["True True True", "1 True False"]


@needs_fork
def test_a_forked_child_finds_its_devices_again() -> None:
    code = """
        import os, warnings
        from cuda_core_cffi import nvml, system

        warnings.simplefilter("ignore", DeprecationWarning)
        used, unused = system.Device(index=0), system.Device(index=0)
        uuid, handle = used.uuid, used._handle
        pid = os.fork()
        if pid == 0:
            assert nvml.nvmlInit_v2() == (0,)
            refused = nvml.nvmlDeviceGetUUID(handle, 96)[0] == nvml.nvmlReturn_t.NVML_ERROR_INVALID_ARGUMENT
            assert (used.uuid, {used: 1}[unused]) == (uuid, 1)
            again = os.fork()
            if again == 0:
                os._exit(not (used.uuid == unused.uuid == uuid))
            os._exit(os.waitstatus_to_exitcode(os.waitpid(again, 0)[1]) or not refused)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), used.uuid == unused.uuid == uuid)
    """
    assert output_of(code) == "0 True"


@needs_fork
@pytest.mark.parametrize("use", ["events.wait(timeout_ms=1)", "events.__enter__()"])
def test_a_forked_child_has_no_event_sets(use) -> None:
    child = f"""
        try:
            {use}
        except RuntimeError as error:
            print("forked from" in str(error))
"""
    assert output_of(FORK.format(child=child.strip())).splitlines() == ["True", "1 True False"]


@needs_fork
def test_what_a_forked_child_closes_stays_open_in_the_parent() -> None:
    child = """
        freed = []
        nvml.nvmlEventSetFree = freed.append
        events._free = freed.append
        events.close()
        del events
        print(freed)
"""
    assert output_of(FORK.format(child=child.strip())).splitlines() == ["[]", "1 True False"]


@needs_fork
@pytest.mark.filterwarnings("ignore:this process uses CUDA")
def test_a_child_that_was_forked_during_the_first_call_can_call() -> None:
    with _library.process.lock:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writer, str(system.get_num_devices()).encode())
            finally:
                os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        assert file.read() == str(system.get_num_devices())
    os.waitpid(pid, 0)


def test_nothing_is_called_at_the_end_of_the_interpreter() -> None:
    code = """
        import atexit, sys
        from cuda_core_cffi import system
        from cuda_core_cffi.system._library import nvml
        device = system.Device(index=0)
        events = device.register_events(device.get_supported_event_types()[:1])
        events._free = lambda handle: print("freed", flush=True)
        nvml.nvmlShutdown = lambda: print("shut down", flush=True)
        sys.modules["kept"] = events  # until modules are gone
        print("end", flush=True)
    """
    assert output_of(code) == "end"


def test_threads_read_one_device_at_once() -> None:
    device = system.Device(index=0)

    def work(number: int) -> tuple[int, str]:
        return [(device.memory_info.total, device.name) for _ in range(100)][-1]

    assert len(set(in_threads(8, work))) == 1
