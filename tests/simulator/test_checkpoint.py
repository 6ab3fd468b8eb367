# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the simulated driver answers to calls about checkpoints, and which calls a locked process holds back."""

from __future__ import annotations

import pytest
from sim_driver import run_alone

PROLOGUE = """
import signal, subprocess, threading
pid = os.getpid()

def checkpoint(function, *arguments, of=pid):
    return cu.status("cuCheckpointProcess" + function, of, *(arguments or (None,)))

def state(of=pid):
    return cu.out_of_state(of)

def out_of_state(of):
    found = c_int(-1)
    cu.cuCheckpointProcessGetState(of, byref(found))
    return ["running", "locked", "checkpointed", "failed"][found.value]

cu.out_of_state = out_of_state

class Work(threading.Thread):
    # a call in another thread, in the context that is current here
    def __init__(self, *call):
        super().__init__()
        self.call, self.context, self.answer = call, cu.out(c_void_p, "cuCtxGetCurrent"), None
        self.start()
    def run(self):
        cu.cuCtxSetCurrent(self.context)
        self.answer = cu.status(*self.call)
    def is_held_back(self, seconds=0.2):
        self.join(seconds)
        return self.is_alive()
    def ends(self):
        self.join(30)
        return not self.is_alive()

def first_held_back():
    # a call that waits, as soon as a lock has begun
    while not (call := Work("cuCtxGetStreamPriorityRange", byref(c_int()), byref(c_int()))).is_held_back(0.5):
        pass
    return call
"""


def printed_by(code: str, **environment: str) -> list[str]:
    return run_alone(PROLOGUE + code, **environment).splitlines()


def test_numbers_that_are_of_no_process_with_the_driver_are_refused() -> None:
    code = """
print(checkpoint("Lock"))
print(checkpoint("GetState", byref(c_int())))
cu.start()
print([checkpoint("Lock", of=number) for number in (0, -1)])
done = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print(checkpoint("Lock", of=done.pid))
done.communicate()
print(checkpoint("Lock", of=done.pid))
print(checkpoint("GetState", None), checkpoint("GetRestoreThreadId", None))
"""
    assert printed_by(code) == [
        "NOT_INITIALIZED",
        "NOT_INITIALIZED",
        "['INVALID_VALUE', 'INVALID_VALUE']",
        "NOT_INITIALIZED",
        "INVALID_VALUE",
        "INVALID_VALUE INVALID_VALUE",
    ]


def test_what_is_reserved_must_be_zero() -> None:
    code = """
cu.start()
def ones(first):
    return (c_uint * 16)(*[0] * first, *[1] * (16 - first))
print(checkpoint("Lock", ones(1)), checkpoint("Lock", (c_uint * 16)(1)))
print(checkpoint("Checkpoint", ones(15)), checkpoint("Checkpoint", (c_uint * 16)()))
print(checkpoint("Restore", ones(15)), checkpoint("Restore", (c_uint * 16)()))
print(checkpoint("Unlock", ones(15)), checkpoint("Unlock", (c_uint * 16)()), state())
"""
    assert printed_by(code) == [
        "INVALID_VALUE SUCCESS",
        "INVALID_VALUE SUCCESS",
        "INVALID_VALUE SUCCESS",
        "INVALID_VALUE SUCCESS running",
    ]


def test_a_function_that_a_stream_calls_may_not_lock() -> None:
    code = """
cu.start()
answers = []
cu.launch(None, lambda: answers.append(checkpoint("Lock")))
cu.cuCtxSynchronize()
print(answers, state())
"""
    assert printed_by(code) == ["['NOT_PERMITTED'] running"]


HELD_BACK = [
    '"cuMemAlloc_v2", byref(c_uint64()), c_size_t(8)',
    '"cuMemFree_v2", unused',
    '"cuMemGetInfo_v2", byref(c_size_t()), byref(c_size_t())',
    '"cuMemsetD8_v2", memory, 1, c_size_t(8)',
    '"cuStreamCreate", byref(c_void_p()), 0',
    '"cuStreamQuery", stream',
    '"cuCtxSynchronize"',
    '"cuDeviceGetDefaultMemPool", byref(c_void_p()), 0',
    '"cuDevicePrimaryCtxRetain", byref(c_void_p()), 0',
]
SERVED = [
    '"cuDeviceGetCount", byref(c_int())',
    '"cuDeviceGetAttribute", byref(c_int()), 1, 0',
    '"cuDeviceTotalMem_v2", byref(c_size_t()), 0',
    '"cuCtxGetCurrent", byref(c_void_p())',
    '"cuCtxGetDevice", byref(c_int())',
    '"cuGetErrorName", 1, byref(c_char_p())',
    '"cuDriverGetVersion", byref(c_int())',
    '"cuInit", 0',
]


@pytest.mark.parametrize("stage", ["locked", "checkpointed"])
def test_calls_wait_until_the_process_is_unlocked_unless_they_only_tell(stage: str) -> None:
    code = f"""
cu.start()
memory, unused, stream = cu.alloc(8), cu.alloc(8), cu.stream()
checkpoint("Lock")
if {stage!r} == "checkpointed":
    checkpoint("Checkpoint")
served = [Work(*call) for call in ({", ".join(f"({call},)" for call in SERVED)})]
print([work.ends() for work in served], {{work.answer for work in served}})
held_back = [Work(*call) for call in ({", ".join(f"({call},)" for call in HELD_BACK)})]
print([work.is_held_back() for work in held_back], {{work.answer for work in held_back}})
if {stage!r} == "checkpointed":
    checkpoint("Restore")
print(state(), [work.is_alive() for work in held_back].count(True))
checkpoint("Unlock")
for work in held_back:
    work.join(10)
print({{work.answer for work in held_back}})
"""
    assert printed_by(code) == [
        f"{[True] * len(SERVED)} {{'SUCCESS'}}",
        f"{[True] * len(HELD_BACK)} {{None}}",
        f"locked {len(HELD_BACK)}",
        "{'SUCCESS'}",
    ]


def test_a_lock_waits_for_calls_and_for_work_that_are_under_way() -> None:
    code = """
cu.start()
stream = cu.stream()
gate = cu.block(stream)
waits = Work("cuStreamSynchronize", stream)
lock = Work("cuCheckpointProcessLock", pid, None)
first = first_held_back()
print(lock.is_held_back(), state(), checkpoint("Lock"), checkpoint("Unlock"))
later = Work("cuCtxSynchronize")
print(later.is_held_back())
gate.open()
lock.join(10)
waits.join(10)
print(lock.answer, waits.answer, state(), later.is_held_back())
checkpoint("Unlock")
later.join(10)
print(later.answer)
"""
    assert printed_by(code) == [
        "True running ILLEGAL_STATE ILLEGAL_STATE",
        "True",
        "SUCCESS SUCCESS locked True",
        "SUCCESS",
    ]


def test_a_lock_waits_for_a_call_that_does_its_work_itself() -> None:
    code = """
cu.start()
size = 1 << 28
memory = cu.alloc(size)
last = ctypes.c_ubyte.from_address(memory.value + size - 1)  # memory of the device is the host's
first = ctypes.c_ubyte.from_address(memory.value)
call = Work("cuMemsetD8_v2", memory, 5, c_size_t(size))
while not first.value:
    pass
print(checkpoint("Lock"), last.value)
checkpoint("Unlock")
call.join(10)
"""
    assert printed_by(code) == ["SUCCESS 5"]


def test_a_lock_that_comes_to_nothing_lets_calls_go_on() -> None:
    code = """
cu.start()
gate = cu.block(cu.stream())
lock = Work("cuCheckpointProcessLock", pid, (c_uint * 16)(5000))
call = first_held_back()
print(call.ends(), lock.ends(), call.answer, lock.answer, state())
gate.open()
"""
    assert printed_by(code) == ["True True SUCCESS NOT_READY running"]


LOCKER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from sim_driver import *
print(Driver().status("cuCheckpointProcessLock", int(sys.argv[2]), None), flush=True)
"""


def test_a_lock_ends_with_the_process_that_was_about_to_make_it() -> None:
    code = f"""
cu.start()
gate = cu.block(cu.stream())
command = [sys.executable, "-c", {LOCKER!r}, str(sim_driver.HERE), str(pid)]
locker = subprocess.Popen(command, stdout=subprocess.PIPE)
call = first_held_back()
print(state())
locker.kill()
locker.communicate()
call.join(10)
print(call.answer, checkpoint("Lock", (c_uint * 16)(1)), state())
gate.open()
cu.cuCtxSynchronize()
"""
    assert printed_by(code) == ["running", "SUCCESS NOT_READY running"]


def test_a_process_stays_locked_when_the_one_that_locked_it_has_ended() -> None:
    code = f"""
cu.start()
command = [sys.executable, "-c", {LOCKER!r}, str(sim_driver.HERE), str(pid)]
print(subprocess.run(command, capture_output=True, text=True).stdout.strip(), state())
call = Work("cuCtxSynchronize")
print(call.is_held_back(), checkpoint("Unlock"))
call.join(10)
print(call.answer)
"""
    assert printed_by(code) == ["SUCCESS locked", "True SUCCESS", "SUCCESS"]


def test_other_processes_are_out_of_reach_where_none_are_published() -> None:
    code = f"""
cu.start()
command = [sys.executable, "-c", {LOCKER!r}, str(sim_driver.HERE), str(pid)]
print(subprocess.run(command, capture_output=True, text=True).stdout.strip())
print(checkpoint("Lock"), state(), checkpoint("Unlock"))
"""
    assert printed_by(code, CUDA_SIM_SHARED="") == ["NOT_INITIALIZED", "SUCCESS locked SUCCESS"]


def test_a_child_of_a_locked_process_cannot_use_the_driver_as_ever() -> None:
    code = """
cu.start()
checkpoint("Lock")
child = os.fork()
if not child:
    print(cu.status("cuCtxSynchronize"), checkpoint("Lock", of=os.getpid()), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(state(), checkpoint("Unlock"))
"""
    assert printed_by(code) == ["NOT_INITIALIZED NOT_INITIALIZED", "locked SUCCESS"]


@pytest.mark.parametrize("kind", ["allocation", "pool"])
def test_managed_memory_of_every_kind_prevents_a_checkpoint_until_it_is_freed(kind: str) -> None:
    code = f"""
cu.start()
if {kind!r} == "allocation":
    memory = cu.out(c_uint64, "cuMemAllocManaged", c_size_t(64), 1)
    free = lambda: cu.cuMemFree_v2(memory)
else:
    pool = cu.pool(alloc_type=2)
    memory = cu.from_pool(pool, 64, None)
    free = lambda: (cu.cuMemFreeAsync(memory, None), cu.cuStreamSynchronize(None))
for turn in range(2):
    print(checkpoint("Lock"), checkpoint("Checkpoint"), state())
    if not turn:
        checkpoint("Unlock")
        free()
"""
    assert printed_by(code) == ["SUCCESS NOT_SUPPORTED locked", "SUCCESS SUCCESS checkpointed"]


@pytest.mark.parametrize(
    ("pairs", "status"),
    [
        ("0:0 1:1", "SUCCESS"),
        ("0:1 1:0", "SUCCESS"),
        ("1:0 0:1", "SUCCESS"),
        ("0:0", "INVALID_VALUE"),
        ("0:0 0:1", "INVALID_VALUE"),
        ("0:1 1:1", "INVALID_VALUE"),
        ("0:0 1:9", "INVALID_VALUE"),
        ("0:0 9:1", "INVALID_VALUE"),
        ("0:0 1:1 2:2", "INVALID_VALUE"),
    ],
)
def test_pairs_name_every_gpu_once(pairs: str, status: str) -> None:
    code = f"""
cu.start()
def uuid(number):
    raw = bytearray(cu.out(c_char * 16, "cuDeviceGetUuid_v2", 0).raw)
    raw[-1] = int(number)
    return bytes(raw)
pairs = {pairs!r}.replace(":", " ").split()
array = ctypes.create_string_buffer(b"".join(map(uuid, pairs)))
checkpoint("Lock"), checkpoint("Checkpoint")
print(checkpoint("Restore", (c_uint64 * 8)(ctypes.addressof(array), len(pairs) // 2)))
print(state())
"""
    after = "locked" if status == "SUCCESS" else "checkpointed"
    assert printed_by(code, CUDA_SIM_DEVICES="2") == [status, after]


def test_calls_of_nvml_wait_until_the_process_is_restored() -> None:
    code = """
from sim_nvml import Nvml
nvml = Nvml()
nvml.nvmlInit_v2()
cu.start()
counts = []
def count():
    nvml.nvmlDeviceGetCount_v2(byref(c_uint()))
    counts.append(True)

def again():
    nvml.nvmlInit_v2()
    counts.append(True)

print(checkpoint("Lock"))
count()
print(checkpoint("Checkpoint"))
threads = [threading.Thread(target=work) for work in (count, again)]
for thread in threads:
    thread.start()
    thread.join(0.2)
print(len(counts))
print(checkpoint("Restore"))
for thread in threads:
    thread.join(30)
print(len(counts), checkpoint("Unlock"))
"""
    assert printed_by(code) == ["SUCCESS", "SUCCESS", "1", "SUCCESS", "3 SUCCESS"]
