# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints. A process that locks itself here is one of its own: a test that fails must not leave this one locked."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from helpers import LIMIT, child_environment, output_of

from cuda_core_cffi import CUDAError, UnavailableError, driver, ffi, simulator
from cuda_core_cffi._device.device import driver_version
from cuda_core_cffi.checkpoint import Process

UUID = "00112233-4455-6677-8899-aabbccddeeff"
FIRST, FIRST_WITH_MAPPING = (12, 8, 0), (13, 0, 0)

PROLOGUE = """
import faulthandler, os, threading, time
import numpy as np
from cuda_core_cffi import CUDAError, Device, driver, ffi, lib, system
from cuda_core_cffi.checkpoint import Process

faulthandler.dump_traceback_later(100, exit=True)  # also where a process that is locked does not end
device = Device()
device.set_current()
stream = device.create_stream()
buffer = device.allocate(1 << 20, stream)
buffer.fill(7, stream=stream)
stream.sync()
process = Process(os.getpid())

def content():
    return set(buffer.copy_to(np.zeros(buffer.size, np.uint8), stream=stream).tolist())

def refused(call):
    try:
        call()
    except CUDAError as error:
        return error
    raise AssertionError("not refused")
"""


@pytest.fixture(scope="module", autouse=True)
def new_enough() -> None:
    """Skip with a driver that has no checkpoints."""
    if driver_version() < FIRST:
        pytest.skip("the driver is older than CUDA 12.8")


def printed_by(code: str, **environment: str) -> list[str]:
    """Return the lines that code prints in a process of its own, which has a stream and a buffer full of sevens."""
    return output_of(PROLOGUE + code, **environment).splitlines()


# --- This process ---------------------------------------------------------------------------------------------


def test_a_process_goes_through_its_states_and_has_its_memory_back():
    code = """
print(process.state)
process.lock(timeout_ms=60000)
print(process.state)
process.checkpoint()
print(process.state)
process.restore()
print(process.state)
process.unlock()
print(process.state, content())
"""
    assert printed_by(code) == ["running", "locked", "checkpointed", "locked", "running {7}"]


def test_calls_of_other_threads_wait_until_the_process_is_unlocked():
    code = """
order = []
process.lock()
thread = threading.Thread(target=lambda: (buffer.fill(9, stream=stream), order.append("filled")))
thread.start()
time.sleep(0.2)
process.checkpoint()
time.sleep(0.2)
process.restore()
time.sleep(0.2)
order.append("unlocked")
process.unlock()
thread.join()
print(order, content())
"""
    assert printed_by(code) == ["['unlocked', 'filled'] {9}"]


def test_a_lock_waits_for_the_functions_of_python_that_streams_call():
    code = """
order = []
stream.callback(lambda: (time.sleep(0.3), order.append("called")))
process.lock()
order.append("locked")
process.unlock()
print(order)
"""
    assert printed_by(code) == ["['called', 'locked']"]


def test_a_lock_that_takes_too_long_leaves_the_process_running():
    code = """
gate = threading.Event()
stream.callback(lambda: gate.wait(60) and None)
error = refused(lambda: process.lock(timeout_ms=200))
print(error.name, "after 200 ms" in str(error), process.state)
buffer.fill(8, stream=stream)
gate.set()
print(content())
"""
    assert printed_by(code) == ["CUDA_ERROR_NOT_READY True running", "{8}"]


def test_what_the_state_does_not_allow_names_both_states():
    code = """
for call, state in ((process.checkpoint, "locked"), (process.restore, "checkpointed"), (process.unlock, "locked")):
    error = refused(call)
    assert f"(process {os.getpid()}); it must be {state}, and is running" in str(error), error
    print(error.name)
process.lock()
for call, state in ((process.lock, "running"), (process.restore, "checkpointed")):
    assert f"it must be {state}, and is locked" in str(refused(call))
process.checkpoint()
for call, state in ((process.lock, "running"), (process.checkpoint, "locked"), (process.unlock, "locked")):
    assert f"it must be {state}, and is checkpointed" in str(refused(call))
process.restore()
process.unlock()
print(content())
"""
    assert printed_by(code) == [*["CUDA_ERROR_ILLEGAL_STATE"] * 3, "{7}"]


def test_with_managed_memory_the_process_stays_locked_and_the_message_says_so():
    code = """
pointer = ffi.new("CUdeviceptr *")
assert lib.cuMemAllocManaged(pointer, 4096, lib.CU_MEM_ATTACH_GLOBAL) == 0
process.lock()
error = refused(process.checkpoint)
print(error.name in ("CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_UNKNOWN"), "managed memory" in str(error))
print("unlock()" in str(error), process.state)
process.unlock()
assert lib.cuMemFree(pointer[0]) == 0
print(process.state, content())
"""
    assert printed_by(code) == ["True True", "True locked", "running {7}"]


def test_the_restore_thread_is_one_of_the_process():
    assert printed_by("print(os.path.exists(f'/proc/self/task/{process.restore_thread_id}'))") == ["True"]


# --- Restoring on other GPUs ----------------------------------------------------------------------------------

FORMS = {
    "text": "lambda text: text",
    "text with prefix": "lambda text: 'GPU-' + text.upper()",
    "text without hyphens": "lambda text: text.replace('-', '')",
    "structure": "lambda text: structure(text)",
    "structure of CFFI": "lambda text: cffi_structure(text)[0]",
    "pointer of CFFI": "lambda text: cffi_structure(text)",
}
MAPPING = """
def structure(text):
    return driver.CUuuid(bytes=bytes.fromhex(text.replace("-", "")))

kept = []
def cffi_structure(text):
    kept.append(ffi.new("CUuuid *"))
    ffi.memmove(kept[-1], bytes.fromhex(text.replace("-", "")), 16)
    return kept[-1]

gpus = [gpu.uuid.removeprefix("GPU-") for gpu in system.Device.get_all_devices()]
"""


@pytest.fixture
def with_mapping() -> None:
    """Skip where GPUs cannot be mapped."""
    if driver_version() < FIRST_WITH_MAPPING:
        pytest.skip("the driver is older than CUDA 13.0")


@pytest.mark.parametrize("form", FORMS)
def test_every_gpu_can_be_its_own_replacement(with_mapping, form):
    code = f"""
form = {FORMS[form]}
process.lock()
process.checkpoint()
process.restore(dict((gpu, form(gpu)) for gpu in gpus))
process.unlock()
print(content())
"""
    assert printed_by(MAPPING + code) == ["{7}"]


@pytest.mark.simulator_only("needs two GPUs of a kind that nothing else uses")
def test_two_gpus_can_change_places_and_a_gpu_that_is_left_out_is_refused(with_mapping):
    code = """
process.lock()
process.checkpoint()
print(refused(lambda: process.restore({gpus[0]: gpus[1]})).name, process.state)
process.restore({gpus[0]: gpus[1], gpus[1]: gpus[0]})
process.unlock()
print(content())
"""
    assert printed_by(MAPPING + code, CUDA_SIM_DEVICES="2") == ["CUDA_ERROR_INVALID_VALUE checkpointed", "{7}"]


def test_an_empty_mapping_is_none():
    code = """
process.lock()
process.checkpoint()
process.restore({})
process.unlock()
print(content())
"""
    assert printed_by(code) == ["{7}"]


# --- Other processes ------------------------------------------------------------------------------------------

SERVE = """
print("ready", flush=True)
while input() == "go on":
    buffer.fill(content().pop() + 1, stream=stream)
    print(content(), flush=True)
"""


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Return a process that adds one to its buffer when it is told to go on."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROLOGUE + SERVE],
        env=child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def go_on(process: subprocess.Popen[str]) -> None:
    """Tell the process to go on."""
    assert process.stdin is not None
    print("go on", file=process.stdin, flush=True)


def says_nothing(process: subprocess.Popen[str]) -> bool:
    """Tell whether the process prints nothing for a while."""
    return select.select([process.stdout], [], [], 0.3)[0] == []


def test_another_process_is_held_back_and_has_its_memory_back(device, other):
    process = Process(other.pid)
    assert process.state == "running"
    process.lock(timeout_ms=60_000)
    assert process.state == "locked"
    go_on(other)
    assert says_nothing(other)
    process.checkpoint()
    assert process.state == "checkpointed"
    assert says_nothing(other)
    process.restore()
    assert process.state == "locked"
    assert says_nothing(other)
    process.unlock()
    assert other.stdout.readline() == "{8}\n"
    assert process.state == "running"
    go_on(other)
    assert other.stdout.readline() == "{9}\n"


def test_a_process_that_does_not_use_cuda_is_refused(device):
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as other:
        process = Process(other.pid)
        for use in (lambda: process.state, lambda: process.restore_thread_id, process.lock, process.unlock):
            with pytest.raises(CUDAError, match=rf"\(process {other.pid}\)"):
                use()
        other.communicate(timeout=LIMIT)
    with pytest.raises(CUDAError):  # nor is one that is gone
        process.lock()


CALLS = {
    "GetState": lambda process: process.state,
    "GetRestoreThreadId": lambda process: process.restore_thread_id,
    "Lock": lambda process: process.lock(),
    "Checkpoint": lambda process: process.checkpoint(),
    "Restore": lambda process: process.restore(),
    "Unlock": lambda process: process.unlock(),
}


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("call", CALLS)
def test_a_failing_call_is_told_with_the_process(device, call):
    process = Process(os.getpid())
    with (
        simulator.fail(f"cuCheckpointProcess{call}", "CUDA_ERROR_OPERATING_SYSTEM"),
        pytest.raises(CUDAError) as caught,
    ):
        CALLS[call](process)
    assert (caught.value.call, caught.value.name) == (f"cuCheckpointProcess{call}", "CUDA_ERROR_OPERATING_SYSTEM")
    assert str(caught.value).endswith(f"(process {os.getpid()})")
    assert process.state == "running"


# --- Arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pid", [True, 1.0, "1", None, b"1"])
def test_a_pid_is_an_int(pid):
    with pytest.raises(TypeError, match=r"^pid must be an int, not "):
        Process(pid)


@pytest.mark.parametrize(("pid", "error"), [(0, ValueError), (-1, ValueError), (2**31, OverflowError)])
def test_a_pid_is_positive_and_fits(pid, error):
    with pytest.raises(error, match=rf"^pid must be .*, not {pid}$"):
        Process(pid)


def test_a_process_tells_its_pid():
    process = Process(np.int64(123))
    assert (process.pid, type(process.pid), repr(process)) == (123, int, "<Process pid=123>")
    with pytest.raises(AttributeError):
        process.pid = 5


@pytest.fixture
def no_calls() -> Iterator[None]:
    """Fail a test that makes calls of the simulated driver."""
    with simulator.trace() as trace:
        yield
    assert trace.names == []


@pytest.mark.simulator_only("only the simulated driver tells its calls")
@pytest.mark.parametrize(
    ("timeout", "error"),
    [(True, TypeError), (1.5, TypeError), (None, TypeError), (-1, ValueError), (2**32, OverflowError)],
)
def test_a_wrong_timeout_is_refused_before_any_call(device, no_calls, timeout, error):
    with pytest.raises(error, match=r"^timeout_ms must be .*, not "):
        Process(1).lock(timeout)


WRONG_MAPPINGS = {
    "no mapping": ([(UUID, UUID)], TypeError, "gpu_mapping must be a mapping"),
    "no UUID": ({UUID: 5}, TypeError, "a GPU must be given as a CUuuid"),
    "bytes": ({b"0" * 16: UUID}, TypeError, "a GPU must be given as a CUuuid"),
    "another pointer": ({UUID: ffi.new("int *")}, TypeError, "a GPU must be given as a CUuuid"),
    "a null pointer": ({UUID: ffi.cast("CUuuid *", 0)}, TypeError, "a GPU must be given as a CUuuid"),
    "short text": ({UUID[:-1]: UUID}, ValueError, "32 hexadecimal digits"),
    "no digits": ({UUID: "x" * 32}, ValueError, "32 hexadecimal digits"),
    "spaces": ({UUID: UUID.replace("-", " ")}, ValueError, "32 hexadecimal digits"),
    "old GPU twice": ({UUID: UUID, UUID.upper(): "1" * 32}, ValueError, "the old GPU .* is there twice"),
    "new GPU twice": ({UUID: UUID, "1" * 32: "GPU-" + UUID}, ValueError, "the new GPU .* is there twice"),
}


@pytest.mark.simulator_only("only the simulated driver tells its calls")
@pytest.mark.parametrize("case", WRONG_MAPPINGS)
def test_a_wrong_mapping_is_refused_before_any_call(device, no_calls, case):
    mapping, error, message = WRONG_MAPPINGS[case]
    with pytest.raises(error, match=message):
        Process(1).restore(mapping)


# --- Older drivers --------------------------------------------------------------------------------------------

USES = """
from cuda_core_cffi import UnavailableError
def told(use):
    try:
        use()
    except UnavailableError as error:
        print(error)
"""


@pytest.mark.simulator_only("the simulated driver can be an older one")
def test_an_older_driver_is_told_with_the_version_that_is_needed():
    code = """
for use in (lambda: process.state, lambda: process.restore_thread_id, process.lock, process.checkpoint,
            process.restore, process.unlock):
    told(use)
"""
    printed = printed_by(USES + code, CUDA_SIM_DRIVER_VERSION="12070")
    calls = ("GetState", "GetRestoreThreadId", "Lock", "Checkpoint", "Restore", "Unlock")
    why = "needs a driver for CUDA 12.8; the installed one is for 12.7: update the NVIDIA driver"
    assert printed == [f"cuCheckpointProcess{call} {why}" for call in calls]


@pytest.mark.simulator_only("the simulated driver can be an older one")
def test_a_mapping_needs_a_newer_driver_than_the_rest():
    code = f"""
process.lock()
process.checkpoint()
told(lambda: process.restore({{{UUID!r}: {UUID!r}}}))
process.restore()
process.unlock()
print(content())
"""
    printed = printed_by(USES + code, CUDA_SIM_DRIVER_VERSION="12090")
    assert printed == ["gpu_mapping needs a driver for CUDA 13.0; the installed one is for 12.9", "{7}"]


def test_a_mapping_needs_a_new_header_to_build_with(device, with_mapping, monkeypatch):
    class Old:
        CUDA_VERSION = 12090

        def __getattr__(self, name):
            return getattr(driver_lib, name)

    import cuda_core_cffi.checkpoint as module

    driver_lib = module.lib
    monkeypatch.setattr(module, "lib", Old())
    with pytest.raises(UnavailableError, match=r"a build with the header of CUDA 13\.0, not with that of 12\.9"):
        Process(1).restore({UUID: driver.CUuuid()})


@pytest.mark.simulator_only("no driver is in this state on request")
def test_a_state_without_a_name_is_told(device, monkeypatch):
    class Restoring:
        def __getattr__(self, name):
            return getattr(driver_lib, name)

        def cuCheckpointProcessGetState(self, pid, state):
            state[0] = 5
            return 0

    import cuda_core_cffi.checkpoint as module

    driver_lib = module.lib
    monkeypatch.setattr(module, "lib", Restoring())
    with pytest.raises(RuntimeError, match="process 1 is in state 5, which is none of running, locked, "):
        _ = Process(1).state
