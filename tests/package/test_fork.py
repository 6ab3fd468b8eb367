# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Child processes: fork() after the driver was used, fork() before, and spawn."""

from __future__ import annotations

import os
import pathlib

import pytest
from helpers import output_of, run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")

PARENT = """
import gc, os, sys, warnings
from cuda_core_cffi import CUDAError, Device, DeviceMemoryResource, Stream, UnavailableError, live_objects

def child(work):
    "Fork, run the work in the child, return what it printed and how it ended."
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1), os.dup2(writer, 2), os.close(reader), os.close(writer)
        work()
        sys.exit(0)  # with everything that happens at an interpreter's end
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(status, text.strip(), sep="|")

def fails(use):
    def work():
        try:
            use()
            print("no error")
        except UnavailableError as error:
            print(error)
    return work
"""
USED = (
    PARENT
    + """
warnings.simplefilter("ignore")
device = Device(0)
device.set_current()
stream, event = device.create_stream(), device.create_event()
pool = DeviceMemoryResource(device, {"max_size": 0})
buffer, own = device.allocate(64, stream), pool.allocate(64)
"""
)


@pytest.mark.parametrize(
    "use",
    [
        "Device(0).set_current()",
        "Device()",
        "Device(0).sync()",
        "Device.get_all_devices()",
        "stream.sync()",
        "stream.record()",
        "stream.record(event)",
        "stream.wait(stream)",
        "device.create_stream()",
        "device.create_event()",
        "event.sync()",
        "event.is_done",
        "device.allocate(16)",
        "buffer.fill(1, stream=stream)",
        "pool.attributes.used_mem_current",
    ],
)
def test_a_child_of_a_process_that_used_the_driver_is_told_to_spawn(use: str) -> None:
    text = output_of(USED + f"child(fails(lambda: {use}))")
    status, _, message = text.partition("|")
    assert status == "0"
    assert "this process was forked from one that was using CUDA" in message
    assert 'multiprocessing.set_start_method("spawn")' in message


def test_what_a_child_inherited_is_closed_in_silence() -> None:
    text = output_of(
        USED
        + """
def work():
    for item in (buffer, own, event, stream, pool):
        item.close()
    print("closed")
warnings.simplefilter("always", RuntimeWarning)
child(work)
"""
    )
    assert text == "0|closed"


def test_what_a_child_inherited_is_collected_in_silence() -> None:
    text = output_of(
        USED
        + """
def work():
    global buffer, own, event, stream, pool, device
    del buffer, own, event, stream, pool, device
    gc.collect()
    gc.collect()
    print("collected")
warnings.simplefilter("always", RuntimeWarning)
child(work)
"""
    )
    assert text == "0|collected"


def test_what_a_child_inherited_is_left_at_its_exit_in_silence() -> None:
    text = output_of(
        USED
        + """
cycle = [stream, buffer]
cycle.append(cycle)
sys.kept = [event, own]
warnings.simplefilter("always", RuntimeWarning)
child(lambda: print("end"))
"""
    )
    assert text == "0|end"


def test_the_parent_goes_on() -> None:
    text = output_of(
        USED
        + """
child(lambda: None)
buffer.fill(7, stream=stream)
stream.sync()
device.create_event().close()
print(live_objects()["stream"])
"""
    )
    assert text == "0|\n1"


def test_a_child_of_a_child_is_told_too() -> None:
    text = output_of(
        USED
        + """
def work():
    child(fails(lambda: Device(0).sync()))
child(work)
"""
    )
    assert text.startswith("0|0|cuCtx")
    assert "spawn" in text


def test_a_fork_while_other_threads_use_the_driver_does_not_hang() -> None:
    text = output_of(
        USED
        + """
import threading
stop = False
def busy():
    Device(0).set_current()
    while not stop:
        Device(0).create_event().close()
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(10):
    child(fails(lambda: Device(0).sync()))
stop = True
for thread in threads:
    thread.join()
"""
    )
    lines = text.split("\n")
    assert len(lines) == 10
    assert all(line.startswith("0|") and "spawn" in line for line in lines)


def test_a_fork_while_another_thread_looks_at_graphs_does_not_hang() -> None:
    text = output_of(
        USED
        + """
import signal, threading
from cuda_core_cffi.graph import GraphDefinition, state
graph = GraphDefinition()
held, done = threading.Event(), threading.Event()
def hold():
    with state._lock:
        held.set()
        done.wait()
def work():
    signal.alarm(10)
    graph.close()
    print("closed")
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child(work)
done.set()
thread.join()
"""
    )
    assert text == "0|closed"


def test_a_child_of_a_process_that_had_not_used_the_driver_works() -> None:
    text = output_of(
        PARENT
        + """
def work():
    device = Device(0)
    device.set_current()
    with device.create_stream() as stream:
        device.allocate(64, stream).close()
        stream.sync()
    print("works")
warnings.simplefilter("error")
child(work)
child(work)
Device(0).sync()
"""
    )
    assert text == "0|works\n0|works"


def test_loading_the_driver_is_not_using_it() -> None:
    """A look-up of the driver's version, without cuInit, does not spoil the children."""
    text = output_of(
        PARENT
        + """
from cuda_core_cffi import driver, handle_return
assert handle_return(driver.cuDriverGetVersion()) > 0
def work():
    Device(0).sync()
    print("works")
child(work)
"""
    )
    assert text == "0|works"


# the warning


def test_the_warning_comes_once_before_a_fork() -> None:
    text = output_of(
        PARENT
        + """
Device(0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        child(lambda: None)
for item in caught:
    if "CUDA" in str(item.message):
        print(item.category.__name__, item.filename, item.message)
"""
    )
    lines = [line for line in text.split("\n") if "|" not in line]
    assert lines == [
        "UserWarning <string> this process uses CUDA, which a forked child cannot: "
        'start processes with multiprocessing.set_start_method("spawn")'
    ]


def test_there_is_no_warning_before_the_driver_is_used() -> None:
    text = output_of(
        PARENT
        + """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    child(lambda: None)
print(sum("CUDA" in str(item.message) for item in caught))
"""
    )
    assert text == "0|\n0"


def test_a_subprocess_is_no_fork() -> None:
    code = """
        import subprocess, warnings
        from cuda_core_cffi import Device
        Device(0)
        warnings.simplefilter("error")
        subprocess.run(["true"], check=True)
        """
    assert output_of(code) == ""


# multiprocessing

WORKER = """
import multiprocessing, sys
from cuda_core_cffi import CUDAError, Device

def work(number):
    device = Device(0)
    device.set_current()
    with device.create_stream() as stream:
        buffer = device.allocate(64, stream)
        buffer.fill(number, stream=stream)
        stream.sync()
        buffer.close()
    return number

def name_of(device):
    return device.name

if __name__ == "__main__":
    device = Device(0)
    device.set_current()
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(work, range(4)), pool.apply(name_of, (device,)) == device.name)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing_works(tmp_path: pathlib.Path, method: str) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    done = run_python(
        f"""
        import subprocess, sys
        sys.exit(subprocess.run([sys.executable, {str(tmp_path / "worker.py")!r}, {method!r}]).returncode)
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "[0, 1, 2, 3] True"
