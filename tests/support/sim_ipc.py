# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Another process with the simulated driver, and what both sides do to share."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ptx_runner import SEED
from sim_driver import HERE, Driver, byref, c_char, c_int, c_uint64, c_void_p, ctypes

POSIX_FD = 1
INTERPROCESS = 4
MUTATIONS = 300

Handle = c_char * 64

PROLOGUE = f"""
import json, sys
sys.path.insert(0, {str(HERE)!r})
from sim_driver import *
from sim_ipc import *
cu = Driver()
cu.start()
names = {{"cu": cu, **globals()}}
for line in sys.stdin:
    names["result"] = None
    exec(json.loads(line), names)
    print(json.dumps(names["result"]), flush=True)
"""


class Peer:
    """Another process with the simulated driver, which runs what it is told to; ``result`` comes back."""

    def __init__(self, *descriptors: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=descriptors,
        )

    def run(self, code: str, **values: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        given = "\n".join(f"{name} = {value!r}" for name, value in values.items())
        self.process.stdin.write(json.dumps(given + "\n" + textwrap.dedent(code)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the peer died: {self.process.wait()}"
        return json.loads(answer)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(60)
        self.process.stdout.close()
        return status


def start_peers() -> Iterator[Callable[..., Peer]]:
    """Return what starts another process; all of them have to end well, unless they were killed: a fixture."""
    peers: list[Peer] = []

    def start(*descriptors: int) -> Peer:
        peers.append(Peer(*descriptors))
        return peers[-1]

    yield start
    assert {one.end() for one in peers} <= {0, -signal.SIGKILL}


def keep_no_descriptor() -> Iterator[None]:
    """Fail a test that leaves descriptors of what is shared: a fixture."""
    before = shared_descriptors()
    yield
    assert shared_descriptors() == before


def shared_descriptors() -> list[str]:
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(entry))
        except FileNotFoundError:  # the one that lists the folder
            continue
    return sorted(link for link in links if "cuda-sim" in link)


# What both sides do.


def export_pool(cu: Driver, pool: c_void_p) -> int:
    return cu.out(c_int, "cuMemPoolExportToShareableHandle", pool, POSIX_FD, c_uint64(0)).value


def import_pool(cu: Driver, descriptor: int) -> c_void_p:
    return cu.out(c_void_p, "cuMemPoolImportFromShareableHandle", c_void_p(descriptor), POSIX_FD, c_uint64(0))


def export_pointer(cu: Driver, pointer: c_uint64) -> bytes:
    return bytes(cu.out(Handle, "cuMemPoolExportPointer", pointer).raw)


def import_pointer(cu: Driver, pool: c_void_p, handle: bytes) -> c_uint64:
    return cu.out(c_uint64, "cuMemPoolImportPointer", pool, Handle(*handle))


def import_status(cu: Driver, pool: c_void_p, handle: bytes) -> str:
    return cu.status("cuMemPoolImportPointer", byref(c_uint64()), pool, Handle(*handle))


class EventHandle(ctypes.Structure):
    _fields_ = [("data", Handle)]


def export_event(cu: Driver, event: c_void_p) -> bytes:
    return ctypes.string_at(byref(cu.out(EventHandle, "cuIpcGetEventHandle", event)), 64)


def event_handle(data: bytes) -> EventHandle:
    return EventHandle.from_buffer_copy(data)


def import_event(cu: Driver, data: bytes) -> c_void_p:
    return cu.out(c_void_p, "cuIpcOpenEventHandle", event_handle(data))


def mutations(data: bytes) -> Iterator[bytes]:
    """Give handles that are nearly right, and some that are not at all."""
    source = random.Random(SEED)
    yield bytes(64)
    yield bytes([255]) * 64
    for _ in range(MUTATIONS):
        changed = bytearray(data)
        for _ in range(source.randint(1, 4)):
            changed[source.randrange(64)] ^= source.randint(1, 255)
        yield bytes(changed)
