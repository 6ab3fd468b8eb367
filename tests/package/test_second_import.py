# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A second import, after modules were taken out of ``sys.modules``: it is refused, and the first one goes on."""

from __future__ import annotations

import sys

import pytest
from helpers import SUPPORT, output_of

PURGE = """
import gc, importlib, os, sys, threading
sys.path.insert(0, {support!r})
import cuda_core_cffi
from cuda_core_cffi import Buffer, Device, LaunchConfig, ObjectCode, launch, live_objects
from scenarios import PTX

device = Device(0)
device.set_current()
stream, event = device.create_stream(), device.create_event()
kernel = ObjectCode.from_ptx(PTX).get_kernel("store")
buffer = device.allocate(64, stream)

def use():
    "What needs functions in Python that C calls, types that C knows, and the release thread."
    called = threading.Event()
    stream.callback(called.set)
    stream.record(event)
    event.sync()
    assert called.is_set() and event.is_done
    buffer.fill(1, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer, 7)
    buffer.copy_from(bytearray(64), stream=stream)
    stream.sync()
    device.create_event().close()
    assert device.allocate(64, stream).close() is None
    capsule = buffer.__dlpack__()
    del capsule
    refused = False
    def fail():
        raise KeyError("told")
    stream.callback(fail)
    try:
        stream.sync()
    except KeyError:
        refused = True
    assert refused
    gc.collect()

use()
kept = dict(sys.modules)
for name in list(sys.modules):
    if {condition}:
        del sys.modules[name]
for _ in range(2):
    try:
        importlib.import_module({wanted!r})
        print("imported again")
    except ImportError as error:
        print(error)
    use()
sys.modules.update(kept)
assert importlib.import_module("cuda_core_cffi") is cuda_core_cffi
use()
"""
ALL = 'name.partition(".")[0] == "cuda_core_cffi"'
PURGES = {
    "everything": (ALL, "cuda_core_cffi"),
    "everything, for a module": (ALL, "cuda_core_cffi.graph"),
    "all but the package itself": ('name.startswith("cuda_core_cffi.")', "cuda_core_cffi._streams.callbacks"),
    "modules written in Python": (
        f'{ALL} and (getattr(sys.modules[name], "__file__", None) or ".py").endswith(".py")',
        "cuda_core_cffi",
    ),
}


@pytest.mark.parametrize("purge", PURGES)
def test_a_second_import_is_refused_and_the_first_goes_on(purge: str) -> None:
    condition, wanted = PURGES[purge]
    lines = output_of(PURGE.format(support=str(SUPPORT), condition=condition, wanted=wanted)).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("cuda_core_cffi was imported by another interpreter of this process, or before")
        assert line.endswith("put the modules back, or start another process")


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy has no such modules, or initialises them once")
@pytest.mark.parametrize("module", ["_calls", "_capsule"])
def test_a_second_import_of_a_module_in_c_is_refused_and_the_first_goes_on(module: str) -> None:
    name = f"cuda_core_cffi.{module}"
    lines = output_of(PURGE.format(support=str(SUPPORT), condition=f"name == {name!r}", wanted=name)).splitlines()
    told = f"{name} was imported before it was removed from sys.modules, and a process can import it once: "
    assert lines == [told + "put the module back, or start another process"] * 2


def test_an_import_may_be_tried_again_after_one_that_failed() -> None:
    code = """
        import sys
        class Missing:
            "Fails the import of a module that the package needs late."
            def find_spec(self, name, path=None, target=None):
                if name == "cuda_core_cffi._device.device":
                    raise ImportError("not yet")
        sys.meta_path.insert(0, Missing())
        try:
            import cuda_core_cffi
        except ImportError as error:
            print(error)
        del sys.meta_path[0]
        import cuda_core_cffi
        print(cuda_core_cffi.Buffer.from_handle(0, 0).size)
        """
    assert output_of(code) == "not yet\n0"
