# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""fork() while other threads hold locks: the child, which has none of these threads, waits for none of them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import textwrap

import pytest
from compiling import CC, cuda_include
from helpers import SUPPORT, output_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")

FORK = """
import os, signal, sys, threading, types, warnings
sys.path.insert(0, {support!r})
from collections import OrderedDict
from scenarios import PTX
from cuda_core_cffi import (
    CUDAError, Device, DeviceMemoryResource, Host, LaunchConfig, ObjectCode, Program, UnavailableError,
    VirtualMemoryResource,
)

warnings.simplefilter("ignore")
entered, done = threading.Event(), threading.Event()
TEN_MINUTES = 600

def blocking(function):
    "Return a function that another thread stays in, and the main thread passes."
    def call(*args, **kwargs):
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            done.wait()
        return function(*args, **kwargs)
    return call

def fork_during(work, child):
    "Fork while another thread is in a function that blocks; print what the child's work says."
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    entered.wait()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(TEN_MINUTES)  # ends a hang
        try:
            print(child(), flush=True)
        except (CUDAError, UnavailableError) as error:
            print("spawn" in str(error), flush=True)
        except BaseException as error:
            print(repr(error), flush=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    done.set()
    thread.join()
"""

CASES = {
    "a configuration": """
        from cuda_core_cffi._launching import config as module
        module.make_native = blocking(module.make_native)
        config = LaunchConfig(grid=1, block=1)
        fork_during(lambda: config._native, lambda: LaunchConfig(grid=1, block=1)._native != 0)
        """,
    "a cache of programs": """
        from cuda_core_cffi.utils import InMemoryProgramCache
        class Entries(OrderedDict):
            move_to_end = blocking(OrderedDict.move_to_end)
        cache = InMemoryProgramCache()
        cache._entries = Entries(cache._entries)
        cache["one"] = b"1"
        fork_during(lambda: cache["one"], lambda: cache["one"] == b"1")
        """,
    "a compiler that is being loaded": """
        from cuda_core_cffi._core import libraries
        os.environ["CUDA_CORE_CFFI_NONE"] = sys.executable
        load = libraries.NvidiaLibrary("none", "none", blocking(lambda path: libraries.ffi.NULL)).load
        fork_during(load, lambda: load() is None)
        """,
    "the pools of other processes": """
        from cuda_core_cffi._memory import ipc
        pool = DeviceMemoryResource(0, {"ipc_enabled": True, "max_size": 1 << 20})
        class Pools(type(ipc.pools)):
            get = blocking(type(ipc.pools).get)
        ipc.pools = Pools(ipc.pools)
        find = lambda: DeviceMemoryResource.from_registry(pool.uuid) is pool
        fork_during(find, find)
        """,
    "a handle of a pool": """
        from cuda_core_cffi._memory import ipc
        ipc.IPCAllocationHandle._empty = blocking(ipc.IPCAllocationHandle._empty)
        pool = DeviceMemoryResource(0, {"ipc_enabled": True, "max_size": 1 << 20})
        def close():
            pool.close()
            return pool.is_closed
        fork_during(lambda: pool.allocation_handle, close)
        """,
    "code that is being loaded": """
        Device(0).set_current()
        ObjectCode._load_now = blocking(ObjectCode._load_now)
        code = ObjectCode.from_ptx(PTX)
        fork_during(lambda: code.handle, lambda: (code.close(), code.is_closed)[1])
        """,
    "code that is being loaded, and is wanted": """
        Device(0).set_current()
        ObjectCode._load_now = blocking(ObjectCode._load_now)
        code = ObjectCode.from_ptx(PTX)
        fork_during(lambda: code.handle, lambda: code.get_kernel("store"))
        """,
    "the default resource of a device": """
        from cuda_core_cffi._device import device as module
        Device(0).set_current()
        module.DeviceMemoryResource = blocking(DeviceMemoryResource)
        fork_during(
            lambda: module.default_memory_resource(Device(0)), lambda: Device(0).memory_resource.allocate(16)
        )
        """,
    "NVML": """
        from cuda_core_cffi import system
        from cuda_core_cffi.system._library import nvml
        nvml.nvmlInit_v2 = blocking(nvml.nvmlInit_v2)
        fork_during(system.get_num_devices, lambda: system.get_num_devices() > 0)
        """,
    "a wait for events": """
        from cuda_core_cffi import system
        from cuda_core_cffi.system._library import nvml
        device = system.Device(index=0)
        nvml.nvmlEventSetWait_v2 = blocking(nvml.nvmlEventSetWait_v2)
        events = device.register_events(device.get_supported_event_types()[:1])
        def wait():
            try:
                events.wait(timeout_ms=1)
            except system.TimeoutError:
                pass
        fork_during(wait, lambda: (events.close(), events.is_closed)[1])
        """,
    "graphs": """
        from cuda_core_cffi.graph import GraphDefinition, definition as module
        Device(0).set_current()
        module.copy_records = blocking(module.copy_records)
        graph = GraphDefinition()
        fork_during(graph.clone, lambda: graph.close() is None)
        """,
    "errors of callbacks": """
        from cuda_core_cffi._streams import callbacks
        class Raised(dict):
            setdefault = blocking(dict.setdefault)
        callbacks.raised = Raised()
        error = KeyError()
        fork_during(lambda: callbacks.keep_error(KeyError, error, None), lambda: callbacks.pop_raised(None) == [])
        assert callbacks.pop_raised(None) == [error]
        """,
    "the log of the driver": """
        from cuda_core_cffi._core import driver_log
        driver_log._sort = blocking(driver_log._sort)
        answers = {"ccc_log_read": lambda *_: 1, "ccc_probe_last": lambda: 0, "ccc_probe_forget": lambda _: None}
        lines = type("lib", (), {name: staticmethod(answer) for name, answer in answers.items()})
        driver_log.lib = lines
        fork_during(driver_log.forward, lambda: driver_log.explanation(1, "cuInit") == "")
        """,
}


@pytest.mark.parametrize("case", CASES)
def test_a_child_does_not_wait_for_a_thread_of_the_parent(case: str) -> None:
    assert output_of(FORK.format(support=str(SUPPORT)) + textwrap.dedent(CASES[case])) == "True"


@pytest.mark.usefixtures("nvrtc")
def test_a_child_does_not_wait_for_a_compilation_with_precompiled_headers(tmp_path: pathlib.Path) -> None:
    code = """
from cuda_core_cffi._compile import nvrtc
nvrtc.compile_program = blocking(nvrtc.compile_program)
def compile():
    source = '#pragma nv_hdr_stop\\nextern "C" __global__ void k() {}'
    options = {"arch": "sm_90", "create_pch": f"{os.getpid()}.pch", "pch_dir": sys.argv[1]}
    return len(Program(source, "c++", options).compile("ptx").code) > 0
fork_during(compile, compile)
"""
    assert output_of(FORK.format(support=str(SUPPORT)) + code, str(tmp_path)) == "True"


RANDOM = """
import random, time
from cuda_core_cffi import system
from cuda_core_cffi.utils import InMemoryProgramCache

device = Device(0)
device.set_current()
stream, cache = device.create_stream(), InMemoryProgramCache(100)
pool = DeviceMemoryResource(0, {"ipc_enabled": True, "max_size": 1 << 24})
virtual = VirtualMemoryResource(0)
config = LaunchConfig(grid=1, block=1)
shared_code, shared_buffer = ObjectCode.from_ptx(PTX), virtual.allocate(1 << 20)
stop = False

def load():
    ObjectCode.from_ptx(PTX).get_kernel("store").close()

def allocate():
    pool.allocate(64, stream).close()
    virtual.modify_allocation(shared_buffer, 2 * shared_buffer.size).close()

def configure():
    config.grid = (random.randrange(1, 9), 1, 1)
    assert config._native
    cache[bytes([random.randrange(9)])] = bytes(random.randrange(60))
    Host(numa_id=random.randrange(1 << 30))

def ask():
    assert system.Device(index=0).name
    try:
        Program("missing", "c++", {"arch": "sm_90"}).compile("ptx")
    except Exception:  # there may be no compiler
        pass

def work(task):
    device.set_current()
    while not stop:
        task()

def use_everything():
    "Take each lock; what needs the driver is refused."
    configure()
    assert system.Device(index=0).name
    shared_code.close(), shared_buffer.close(), pool.close(), stream.close()
    for use in (load, lambda: Device(0).memory_resource.allocate(16), lambda: pool.allocation_handle):
        try:
            use()
            raise AssertionError("a child has used the driver")
        except (CUDAError, UnavailableError, RuntimeError):
            pass

tasks = (load, allocate, configure, ask, load, allocate)
for task in tasks:
    task()  # the child of a thread that imports waits for Python's own lock of the module
threads = [threading.Thread(target=work, args=(task,), daemon=True) for task in tasks]
for thread in threads:
    thread.start()
for _ in range(25):
    time.sleep(random.random() / 100)
    pid = os.fork()
    if pid == 0:
        signal.alarm(TEN_MINUTES)
        try:
            use_everything()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop = True
for thread in threads:
    thread.join()
print("done")
"""


def test_a_fork_at_any_moment_gives_a_child_that_waits_for_nobody() -> None:
    assert output_of(FORK.format(support=str(SUPPORT)) + RANDOM) == "done"


# the driver itself

SLOW_DRIVER = """
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A driver that stays in one function for as long as the pipe is open, and tells so through another one. */
static void stay(const char *where)
{
    char byte = 0;
    if (getenv("STAY_IN") == NULL || strcmp(getenv("STAY_IN"), where))
        return;
    unsetenv("STAY_IN");
    if (write(atoi(getenv("TELL")), &byte, 1) == 1 && read(atoi(getenv("WAIT")), &byte, 1) < 0)
        abort();
}

__attribute__((visibility("default"))) CUresult cuDriverGetVersion(int *version)
{
    stay("load");
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

static CUresult start(unsigned int flags)
{
    (void)flags;
    stay("start");
    return CUDA_SUCCESS;
}

static CUresult dump(void *position, char *buffer, size_t *size, unsigned int flags)
{
    (void)position, (void)buffer, (void)flags;
    stay("log");
    *size = 0;
    return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(
    const char *name, void **address, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found)
{
    (void)version, (void)flags, (void)found;
    *address = !strcmp(name, "cuInit")               ? (void *)start
               : !strcmp(name, "cuDriverGetVersion") ? (void *)cuDriverGetVersion
               : !strcmp(name, "cuLogsDumpToMemory") ? (void *)dump
                                                     : NULL;
    return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
"""


@pytest.mark.parametrize(
    ("where", "call", "told"),
    [
        ("load", "lib.cuInit(0)", "0"),
        ("start", "lib.cuInit(0)", "cuInit: this process was forked"),
        ("log", "lib.ccc_log_read(ffi.new('char[]', lib.CCC_LOG_CAPACITY), lib.CCC_LOG_CAPACITY)", "0"),
    ],
)
def test_a_fork_while_another_thread_is_in_the_driver(tmp_path: pathlib.Path, where: str, call: str, told: str) -> None:
    (tmp_path / "slow.c").write_text(SLOW_DRIVER)
    library = tmp_path / "slow.so"
    subprocess.run(
        [CC, "-shared", "-fPIC", f"-I{cuda_include()}", "-o", library, tmp_path / "slow.c"], check=True, timeout=600
    )
    code = f"""
        import os, signal, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which is the point
        from cuda_core_cffi import UnavailableError, ffi, lib
        from cuda_core_cffi._core.errors import check
        def call():
            return {call}
        if sys.argv[1] == "log":
            lib.cuDriverGetVersion(ffi.new("int *"))
            if lib.ccc_driver_version() < 12090:
                print(0)
                sys.exit()  # built with a header that has no log
        reader, tell = os.pipe()
        wait, writer = os.pipe()
        os.environ.update(TELL=str(tell), WAIT=str(wait), STAY_IN=sys.argv[1])
        thread = threading.Thread(target=call)
        thread.start()
        os.read(reader, 1)
        pid = os.fork()
        if pid == 0:
            signal.alarm(600)  # ends a hang
            try:
                check(call(), "cuInit")
                print(0, flush=True)
            except UnavailableError as error:
                print(error, flush=True)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        os.write(writer, b"1")
        thread.join()
        """
    assert output_of(code, where, CUDA_CORE_CFFI_DRIVER=str(library)).startswith(told)
