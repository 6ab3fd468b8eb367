# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What processes use of the devices, as the simulated NVML of another process sees it.

The folder that the processes share is a test's own, so that other processes on the machine do not count.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest
from sim_driver import HERE, run_alone

MB = 1 << 20
NVML = """
from sim_nvml import *
nvml = Nvml()
nvml.nvmlInit_v2()
device = nvml.device()
def memory():
    info = MemoryV2.make()
    nvml.nvmlDeviceGetMemoryInfo_v2(device, byref(info))
    return info
"""


class Child:
    """A process with the simulated driver, which runs a line at a time; its context is on device 0."""

    def __init__(self, shared: Path, **environment: str) -> None:
        prologue = (
            f"import sys; sys.path.insert(0, {str(HERE)!r})\nfrom sim_driver import *\ncu = Driver()\ncu.start()\n"
        )
        loop = "for line in sys.stdin:\n    exec(line)\n    print('done', flush=True)\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", prologue + loop],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "CUDA_SIM_SHARED": str(shared),
                **environment,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.do("pass")

    @property
    def pid(self) -> int:
        return self.process.pid

    def do(self, line: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def children(shared: Path) -> Iterator[list[Child]]:
    with Child(shared) as first, Child(shared) as second:
        yield [first, second]


def ask(shared: Path, code: str, **environment: str) -> str:
    """Run code in a process that uses NVML; return what it printed."""
    return run_alone(NVML + textwrap.dedent(code), CUDA_SIM_SHARED=str(shared), **environment).strip()


def listed(shared: Path) -> dict[int, int]:
    """Return the memory of the compute processes by pid, in MiB."""
    found: dict[int, int] = eval(ask(shared, "print({k: v >> 20 for k, v in nvml.processes(device).items()})"))
    return found


def test_memory_is_what_the_processes_have(shared: Path, children: list[Child]) -> None:
    first, second = children
    assert listed(shared) == {first.pid: 0, second.pid: 0}
    first.do(f"a = cu.alloc({100 * MB})")
    second.do(f"a, b = cu.alloc({200 * MB}), cu.from_pool(cu.pool(), {32 * MB}, LEGACY)")
    assert listed(shared) == {first.pid: 100, second.pid: 232}
    printed = ask(
        shared,
        """
        info, old = memory(), nvml.get("nvmlDeviceGetMemoryInfo", device, kind=Memory)
        print(info.total >> 20, info.reserved >> 20, info.used >> 20, info.free >> 20)
        print(old.total >> 20, old.used >> 20, old.free >> 20)
        """,
    )
    assert printed.splitlines() == ["1024 8 332 684", "1024 340 684"]
    first.do("cu.cuMemFree_v2(a)")
    assert listed(shared) == {first.pid: 0, second.pid: 232}


def test_a_process_that_ends_is_gone(shared: Path, children: list[Child]) -> None:
    first, second = children
    assert len(os.listdir(shared)) == 2
    first.end()
    assert len(os.listdir(shared)) == 1
    assert listed(shared) == {second.pid: 0}
    second.do(f"a = cu.alloc({MB})")
    second.kill()
    assert len(os.listdir(shared)) == 1
    assert listed(shared) == {}
    assert os.listdir(shared) == []  # who looks takes away what the dead have left


def test_a_process_without_a_context_is_not_listed(shared: Path, children: list[Child]) -> None:
    first, second = children
    first.do("cu.cuDevicePrimaryCtxRelease_v2(0)")
    assert listed(shared) == {second.pid: 0}
    first.do("cu.start()")
    assert listed(shared) == {first.pid: 0, second.pid: 0}


def test_other_devices_have_their_own_processes(shared: Path) -> None:
    with Child(shared, CUDA_SIM_DEVICES="2") as child:
        child.do(f"cu.start(1); a = cu.alloc({3 * MB})")
        printed = ask(
            shared, "print([sum(nvml.processes(nvml.device(i)).values()) for i in range(2)])", CUDA_SIM_DEVICES="2"
        )
        assert printed == str([0, 3 * MB])


def test_the_versions_of_the_list_agree(shared: Path, children: list[Child]) -> None:
    children[0].do(f"a = cu.alloc({MB})")
    printed = ask(
        shared,
        """
        for suffix, kind in (("", ProcessV1), ("_v2", Process), ("_v3", Process)):
            name, count = "nvmlDeviceGetComputeRunningProcesses" + suffix, c_uint(1)
            infos = (kind * 3)()
            print(nvml.status(name, device, byref(count), infos), count.value, infos[0].pid)
            count = c_uint(3)
            print(nvml.status(name, device, byref(count), infos), count.value, sorted(i.memory for i in infos))
        for mode in (0, 1, 2):
            details = (ProcessDetail * 2)()
            processes = ProcessList.make(mode=mode, count=2, array=details)
            nvml.nvmlDeviceGetRunningProcessDetailList(device, byref(processes))
            print(processes.count, sorted(d.memory for d in details))
        for kind in ("Graphics", "MPSCompute"):
            print(nvml.status(f"nvmlDeviceGet{kind}RunningProcesses_v3", device, byref(count), infos), count.value)
        """,
    )
    assert printed.splitlines() == [
        *["Insufficient Size 2 0", f"Success 2 [0, 0, {MB}]"] * 3,
        f"2 [0, {MB}]",
        *["0 [0, 0]"] * 2,
        *["Success 0"] * 2,
    ]


def test_a_process_has_a_name(shared: Path, children: list[Child]) -> None:
    printed = ask(
        shared,
        f"""
        name = ctypes.create_string_buffer(4096)
        nvml.nvmlSystemGetProcessName({children[0].pid}, name, 4096)
        print(name.value.decode().splitlines()[0])
        nvml.nvmlSystemGetProcessName({children[0].pid}, name, 5)
        print(name.value.decode(), nvml.status("nvmlSystemGetProcessName", 1 << 30, name, 4096))
        """,
    )
    assert printed.splitlines() == [
        f"{sys.executable} -c import sys; sys.path.insert(0, {str(HERE)!r})",
        f"{sys.executable[:4]} Not Found",
    ]


def test_a_process_sees_itself_even_if_nothing_is_shared() -> None:
    printed = run_alone(
        f"""
        cu.start()
        a = cu.alloc({MB})
        {textwrap.indent(NVML, " " * 8).strip()}
        print(nvml.processes(device) == {{os.getpid(): {MB}}}, memory().used)
        """,
        CUDA_SIM_SHARED="",
    )
    assert printed.split() == ["True", str(MB)]


@pytest.mark.parametrize("spoilt", ["missing", "writable", "link", "file"])
def test_a_folder_that_will_not_do_is_not_used(tmp_path: Path, spoilt: str) -> None:
    folder = tmp_path / "folder"
    if spoilt == "missing":
        folder = tmp_path / "none" / "folder"
    elif spoilt == "writable":
        folder.mkdir()
        folder.chmod(0o777)
    elif spoilt == "link":
        (tmp_path / "other").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "other")
    else:
        folder.touch()
    with Child(folder) as child:
        child.do(f"a = cu.alloc({MB})")
        assert listed(folder) == {}
        assert [path for path in tmp_path.rglob("*") if path.is_file() and path != folder] == []


def test_the_files_are_the_users_alone(shared: Path, children: list[Child]) -> None:
    assert {path.stat().st_mode & 0o777 for path in shared.iterdir()} == {0o600}


def test_what_is_no_file_of_a_process_is_left_alone(shared: Path, children: list[Child]) -> None:
    (shared / "notes").write_text("mine")
    (shared / "1.1").symlink_to("notes")
    (shared / "2.2").mkdir()
    assert len(listed(shared)) == 2
    assert {path.name for path in shared.iterdir()} >= {"notes", "1.1", "2.2"}


def test_a_forked_child_leaves_the_entry_alone(shared: Path) -> None:
    with Child(shared) as child:
        child.do(f"a = cu.alloc({MB})")
        child.do("pid = os.fork(); pid or sys.exit()")
        child.do("assert os.waitpid(pid, 0)[1] == 0")
        assert listed(shared) == {child.pid: 1}
        child.do("cu.cuMemFree_v2(a)")
        assert listed(shared) == {child.pid: 0}


def test_a_forked_child_sees_its_parent_once(shared: Path) -> None:
    with Child(shared) as child:
        child.do(f"a = cu.alloc({MB})")
        child.do("from sim_nvml import *; nvml = Nvml(); nvml.nvmlInit_v2(); info = MemoryV2.make()")
        child.do("late = lambda: nvml.status('nvmlDeviceGetCount_v2', byref(c_uint())) == 'Uninitialized'")
        child.do("ask = lambda: nvml.nvmlDeviceGetMemoryInfo_v2(nvml.device(), byref(info))")
        child.do(f"pid = os.fork(); pid or os._exit(not late() or nvml.nvmlInit_v2() or ask() or info.used != {MB})")
        child.do("assert os.waitpid(pid, 0)[1] == 0")


def test_utilisation_is_the_time_that_work_took(shared: Path, children: list[Child]) -> None:
    asked = """
        first = nvml.get("nvmlDeviceGetUtilizationRates", device, kind=Utilization)
        samples, count = (ProcessUtilization * 4)(), c_uint(4)
        nvml.nvmlDeviceGetProcessUtilization(device, samples, byref(count), ctypes.c_ulonglong(0))
        print(first.gpu, {s.pid: s.sm for s in samples[:count.value]})
    """
    assert ask(shared, asked) == f"0 {{{', '.join(f'{pid}: 0' for pid in sorted(c.pid for c in children))}}}"
    worker = children[0]
    worker.do(f"a = cu.alloc({64 * MB})")
    assert worker.process.stdin is not None
    line = f"for _ in range(10**6): cu.cuMemsetD8_v2(a, 1, c_size_t({64 * MB}))"
    print(line, file=worker.process.stdin, flush=True)
    asked = "time.sleep(1.2)\n" + textwrap.dedent(asked)
    gpu, samples = ask(shared, asked).split(" ", 1)
    assert int(gpu) > 20
    assert eval(samples)[worker.pid] > 20
    assert eval(samples)[children[1].pid] == 0


LOCK = "cu.cuCheckpointProcessLock(os.getpid(), None)"
CHECKPOINT = f"{LOCK}; cu.cuCheckpointProcessCheckpoint(os.getpid(), None)"


def test_a_checkpointed_process_has_no_memory_and_is_not_listed(shared: Path, children: list[Child]) -> None:
    first, second = children
    first.do(f"a = cu.alloc({100 * MB})")
    first.do(CHECKPOINT)
    assert listed(shared) == {second.pid: 0}
    assert ask(shared, "print(memory().used >> 20)") == "0"
    first.do("cu.cuCheckpointProcessRestore(os.getpid(), None)")
    assert listed(shared) == {first.pid: 100, second.pid: 0}
    first.do("cu.cuCheckpointProcessUnlock(os.getpid(), None)")


def test_a_process_that_is_restored_on_another_gpu_is_listed_there(shared: Path) -> None:
    with Child(shared, CUDA_SIM_DEVICES="2") as child:
        where = f"print([{child.pid} in nvml.processes(nvml.device(i)) for i in range(2)])"
        uuids = "[cu.out(c_char * 16, 'cuDeviceGetUuid_v2', i).raw for i in range(2)]"
        pairs = f"a, b = {uuids}; pairs = ctypes.create_string_buffer(a + b + b + a)"
        args = "args = (c_uint64 * 8)(ctypes.addressof(pairs), 2)"
        for expected in ("[False, True]", "[True, False]"):
            child.do(f"{CHECKPOINT}; {pairs}; {args}; cu.cuCheckpointProcessRestore(os.getpid(), args)")
            assert ask(shared, where, CUDA_SIM_DEVICES="2") == expected
            child.do("cu.cuCheckpointProcessUnlock(os.getpid(), None)")
