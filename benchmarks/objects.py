# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What live objects take of the memory of the process: ``python -m benchmarks objects``.

A process for each figure makes many objects of one kind, and looks how much it has grown; another one makes as many
calls of the driver alone. The difference of the two is what the package takes.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

KINDS = ("buffer", "event", "kernel", "graph node", "stream")
PACKAGES = {"ours": "cuda_core_cffi", "peer": "cuda.core"}
MANY, MANY_STREAMS = 20_000, 2_000
REHEARSAL = 300
NON_BLOCKING, UNTIMED = 1, 2
SIZE = 64
PTX = b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def main(arguments: list[str]) -> int:
    """Print what each kind of object takes."""
    found = argparse.ArgumentParser(prog="python -m benchmarks objects", description="Bytes for each live object.")
    found.add_argument("--simulator", action="store_true", help="run on the simulated driver")
    found.add_argument("--peer-python", metavar="PATH", help="an interpreter that has cuda-core")
    options = found.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, CUDA_CORE_CFFI_DRIVER="system")
        if options.simulator:
            from cuda_core_cffi.simulator import library_path

            link = pathlib.Path(folder, "libcuda.so.1")
            link.symlink_to(library_path())
            environment.update(CUDA_CORE_CFFI_DRIVER=str(link), LD_LIBRARY_PATH=folder)
        print("bytes per object   driver     ours     peer  ours/peer  (ours and peer: without the driver)")
        for kind in KINDS:
            driver = in_a_process(sys.executable, "driver", kind, environment)
            ours = in_a_process(sys.executable, "ours", kind, environment) - driver
            line = f"{kind:<16}{driver:>9}{ours:>9}"
            if options.peer_python:
                peer = in_a_process(options.peer_python, "peer", kind, environment) - driver
                line += f"{peer:>9}{ours / peer:>11.2f}"
            print(line)
    return 0


def in_a_process(python: str, who: str, kind: str, environment: dict[str, str]) -> int:
    """Return the bytes that a process grows by for each object."""
    command = [python, __file__, who, kind]
    return round(float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout))


def measure(who: str, kind: str) -> float:
    """Make objects in this process, and return what each takes."""
    make = driver_calls()[kind] if who == "driver" else objects_of(importlib.import_module(PACKAGES[who]), kind)
    count = MANY_STREAMS if kind == "stream" else MANY
    live: list[Any] = [None] * count
    for _ in range(REHEARSAL):
        make()
    before = settled()
    for index in range(count):
        live[index] = make()
    return (settled() - before) / count


def objects_of(package: Any, kind: str) -> Callable[[], Any]:
    """Return what makes an object of a package."""
    device = package.Device(0)
    device.set_current()
    if kind == "kernel":
        code = package.ObjectCode.from_ptx(PTX)
        return lambda: code.get_kernel("k")
    if kind == "graph node":
        definition = importlib.import_module(f"{package.__name__}.graph").GraphDefinition()
        return definition.empty  # type: ignore[no-any-return]
    stream = device.create_stream()
    return {  # type: ignore[return-value]
        "buffer": lambda: device.allocate(SIZE, stream=stream),
        "event": device.create_event,
        "stream": device.create_stream,
    }[kind]


def driver_calls() -> dict[str, Callable[[], None]]:
    """Return the calls of the driver that make the same, and leave it."""
    from cuda_core_cffi._core.ffi import ffi, lib

    def call(name: str, *values: Any) -> None:
        status = getattr(lib, name)(*values)
        if status:
            raise RuntimeError(f"{name} failed: {status}")

    context, pool, stream = ffi.new("CUcontext *"), ffi.new("CUmemoryPool *"), ffi.new("CUstream *")
    pointer, event, graph, node = (
        ffi.new(f"{kind} *") for kind in ("CUdeviceptr", "CUevent", "CUgraph", "CUgraphNode")
    )
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", context, 0)
    call("cuCtxSetCurrent", context[0])
    call("cuDeviceGetDefaultMemPool", pool, 0)
    call("cuStreamCreate", stream, NON_BLOCKING)
    call("cuGraphCreate", graph, 0)
    made = ffi.new("CUstream *")
    return {
        "buffer": lambda: call("cuMemAllocFromPoolAsync", pointer, SIZE, pool[0], stream[0]),
        "event": lambda: call("cuEventCreate", event, UNTIMED),
        "kernel": lambda: None,  # a handle of the library's
        "graph node": lambda: call("cuGraphAddEmptyNode", node, graph[0], ffi.NULL, 0),
        "stream": lambda: call("cuStreamCreateWithPriority", made, NON_BLOCKING, 0),
    }


def settled() -> int:
    """Return the bytes of memory that this process has, as Linux counts them, without garbage."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    text = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS"))


if __name__ == "__main__":  # the process of one figure, in an interpreter that may have neither this package nor that
    print(measure(*sys.argv[1:]), flush=True)
    os._exit(0)  # the driver frees what is left
