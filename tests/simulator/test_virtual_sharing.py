# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Physical memory of the simulated driver that is shared: within a process, and with another."""

from __future__ import annotations

import socket
import subprocess

import pytest
from sim_driver import HERE, Driver, byref, c_uint64, c_void_p, os, sys
from sim_virtual import (
    DEVICE,
    FABRIC,
    NO_HANDLE,
    POSIX_FD,
    UNIT,
    Memory,
    Properties,
    clean_memory,
    device_used,
    export,
    import_,
    properties,
)

memory = pytest.fixture(clean_memory)


def test_only_what_was_asked_for_is_exported(cu: Driver, memory: Memory) -> None:
    shared, private = memory.create(UNIT), memory.create(UNIT, properties(handle_types=NO_HANDLE))
    assert export(cu, private)[0] == "INVALID_VALUE"
    assert export(cu, shared, FABRIC)[0] == "INVALID_VALUE"
    assert export(cu, shared, flags=1)[0] == "INVALID_VALUE"
    memory.release(shared)
    memory.release(private)


def test_a_file_that_is_no_memory_is_not_imported(cu: Driver, memory: Memory) -> None:
    with open(os.devnull) as file:
        assert import_(cu, file.fileno())[0] == "INVALID_VALUE"
    assert import_(cu, 987)[0] == "INVALID_VALUE"
    assert import_(cu, -1)[0] == "INVALID_VALUE"


def test_memory_is_shared_within_a_process(cu: Driver, memory: Memory) -> None:
    used = device_used(cu)
    handle = memory.create(UNIT)
    status, file = export(cu, handle)
    assert status == "SUCCESS"
    status, again = import_(cu, file)
    os.close(file)
    assert status == "SUCCESS"
    assert device_used(cu) == used + UNIT
    read = Properties()
    cu.cuMemGetAllocationPropertiesFromHandle(byref(read), c_uint64(again))
    assert (read.type, read.handle_types, read.location.type, read.location.id) == (1, POSIX_FD, DEVICE, 0)
    memory.release(handle)
    address = memory.reserve(UNIT)
    assert memory.map(address, UNIT, again) == memory.allow(address, UNIT) == "SUCCESS"
    memory.release(again)
    memory.fill(address, UNIT)
    memory.end(address, UNIT)
    assert device_used(cu) == used


IMPORTER = f"""
import array, socket, sys
sys.path.insert(0, {str(HERE)!r})
from sim_driver import *
from sim_virtual import *
cu = Driver()
cu.start()
with socket.socket(fileno=int(sys.argv[1])) as connection:
    _, extra, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(4))
    status, handle = import_(cu, array.array("i", extra[0][2])[0])
    memory = Memory(cu)
    address = memory.reserve(UNIT)
    print(status, memory.map(address, UNIT, handle), memory.allow(address, UNIT))
    print(cu.read(c_uint64(address), 4).hex(), memory.fill(address, UNIT, 0x22))
    connection.send(b"!")
"""


def test_memory_is_shared_with_another_process(cu: Driver, memory: Memory) -> None:
    address = memory.new(UNIT)
    memory.fill(address, UNIT, 0x11)
    handle = cu.out(c_uint64, "cuMemRetainAllocationHandle", c_void_p(address)).value
    status, file = export(cu, handle)
    memory.release(handle)
    assert status == "SUCCESS"
    here, there = socket.socketpair()
    with here:
        with there:
            child = subprocess.Popen(
                [sys.executable, "-c", IMPORTER, str(there.fileno())],
                pass_fds=[there.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdout=subprocess.PIPE,
                text=True,
            )
        socket.send_fds(here, [b"?"], [file])
        os.close(file)
        assert here.recv(1) == b"!"
    printed, _ = child.communicate(timeout=60)
    assert printed.split() == ["SUCCESS", "SUCCESS", "SUCCESS", "11111111", "SUCCESS"]
    assert cu.read(c_uint64(address), 2) == b"\x22\x22"
    memory.end(address, UNIT)
