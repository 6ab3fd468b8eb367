# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Cases of test_gil_release.py, and the program that runs them in a process of its own.

A case returns a list of objects, which the program drops while a host callback in a stream waits for the GIL; or a
function, which it calls then. Either frees page-locked memory, for which the driver waits for the callback.

    python gil_cases.py NAME...     run these cases, and print a line of JSON for each
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import graph_scenarios  # noqa: F401  (adds to the scenarios)
import numpy as np
from consumer import Consumer
from graphs import eventually
from helpers import collect, destroy_idle
from scenarios import SCENARIOS, World, make_world
from tensors import Deleter, Managed, Producer

from cuda_core_cffi import (
    Buffer,
    Device,
    LegacyPinnedMemoryResource,
    MemoryResource,
    _capsule,
    ffi,
    get_c_api,
    lib,
    live_objects,
)
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._lifetime.pending_calls import run_tasks
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.texture import ResourceDescriptor
from cuda_core_cffi.utils import StridedMemoryView, TrackingMemoryResource

SIZE = 64
CALLBACK = 0.05  # seconds
TOO_LONG = 20  # seconds
PYPY = sys.implementation.name == "pypy"
PINNED = LegacyPinnedMemoryResource()
VERSIONS = {"unversioned": None, "versioned": (1, 0)}

CASES: dict[str, Callable[[World], Any]] = {}


def case(function: Callable[[World], Any]) -> Callable[[World], Any]:
    """Add a case."""
    CASES[function.__name__.replace("_", " ")] = function
    return function


def closed(make: Callable[[Buffer], Any], mr: MemoryResource = PINNED) -> Any:
    """Return what is made of a new buffer, which is closed then."""
    with mr.allocate(SIZE) as buffer:
        return make(buffer)


class PinnedByAddress(MemoryResource):
    """A resource of a user: page-locked host memory by address."""

    is_device_accessible = True
    is_host_accessible = True
    device_id = -1

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        return Buffer.from_handle(allocate_pinned(size), size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, stream: Any = None) -> None:
        free_pinned(ptr)


class Owner:
    """Owns page-locked memory of a user."""

    def __init__(self) -> None:
        self.address = allocate_pinned(SIZE)

    def __del__(self) -> None:
        free_pinned(self.address)


def allocate_pinned(size: int) -> int:
    pointer = ffi.new("void **")
    check(lib.cuMemHostAlloc(pointer, size, lib.CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc")
    return int(ffi.cast("uintptr_t", pointer[0]))


def free_pinned(address: int) -> None:
    check(lib.cuMemFreeHost(ffi.cast("void *", address)), "cuMemFreeHost")


class PinnedTensor(Managed):
    """A tensor of another library, in page-locked memory. Its deleter frees that, and takes no GIL."""

    def __init__(self, versioned: bool, **fields: Any) -> None:
        super().__init__(versioned, data=np.zeros(4, "f4").ctypes.data, shape=(4,), **fields)
        size = ctypes.sizeof(self.tensor)
        address = allocate_pinned(size)
        self.tensor.deleter = ctypes.cast(int(ffi.cast("uintptr_t", ffi.addressof(lib, "cuMemFreeHost"))), Deleter)
        ctypes.memmove(address, self.address, size)
        self.address = address


class Exchanged:
    """Gives its tensor through DLPack's C exchange API."""

    __dlpack_c_exchange_api__ = StridedMemoryView.__dlpack_c_exchange_api__

    def __init__(self, tensor: PinnedTensor) -> None:
        self.tensor = tensor

    def _give_tensor(self) -> Any:
        return self.tensor.capsule()


def in_a_cycle(item: Any) -> list[Any]:
    """Return an object that refers to itself, which only the collector finds."""
    holder: list[Any] = [item]
    holder.append(holder)
    return [holder]


def deleter(tensor: Consumer) -> tuple[int, int]:
    """Return the deleter of a tensor, and its argument."""
    return int(ffi.cast("uintptr_t", ffi.cast("void *", tensor.managed.deleter))), tensor.address


def retained(buffer: Buffer) -> tuple[int, int]:
    """Retain a buffer as other C code does, and return the function that releases it, and its argument."""
    api = Api.from_address(get_c_api())
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(api.retain)(buffer.c_handle)
    return api.release, buffer.c_handle


def without_gil(function: int, argument: int) -> None:
    """Call a C function, without the GIL."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(argument)


def with_gil(function: int, argument: int) -> None:
    """Call a C function, with the GIL."""
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(function)(argument)


def in_thread_of_c(function: int, argument: int) -> None:
    """Call a C function in a thread that Python does not know."""
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    start, item = ctypes.c_void_p(function), ctypes.c_void_p(argument)
    assert libc.pthread_create(ctypes.byref(thread), None, start, item) == 0
    assert libc.pthread_join(thread, None) == 0


# Buffers, and what they are exported to

CASES["buffer"] = lambda w: [PINNED.allocate(SIZE)]
CASES["buffer in a cycle"] = lambda w: in_a_cycle(PINNED.allocate(SIZE))
CASES["closed by the program"] = lambda w: PINNED.allocate(SIZE).close
CASES["slice"] = lambda w: [PINNED.allocate(SIZE)[8:]]
CASES["slice of a slice, in a cycle"] = lambda w: in_a_cycle(PINNED.allocate(SIZE)[8:][8:])
CASES["tracked buffer"] = lambda w: [TrackingMemoryResource(PINNED).allocate(SIZE)]
CASES["tracked slice"] = lambda w: [TrackingMemoryResource(PINNED, limit=SIZE, max_history=4).allocate(SIZE)[8:]]
CASES["buffer of a user's resource"] = lambda w: [PinnedByAddress().allocate(SIZE)]
CASES["tracked buffer of a user's resource"] = lambda w: [TrackingMemoryResource(PinnedByAddress()).allocate(SIZE)]
CASES["buffer of a user's resource in a cycle"] = lambda w: in_a_cycle(PinnedByAddress().allocate(SIZE))
CASES["memory of an owner"] = lambda w: [borrow(Owner())]
CASES["memory of an owner in a cycle"] = lambda w: in_a_cycle(borrow(Owner()))


def texture_of(w: World, buffer: Buffer) -> Any:
    """Return a texture, which keeps the memory of a buffer."""
    return w.device.create_texture_object(ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1))


CASES["texture"] = lambda w: [closed(lambda buffer: texture_of(w, buffer))]
CASES["texture in a cycle"] = lambda w: in_a_cycle(closed(lambda buffer: texture_of(w, buffer)))
CASES["texture closed by the program"] = lambda w: closed(lambda buffer: texture_of(w, buffer)).close
CASES["texture of a user's buffer"] = lambda w: [closed(lambda buffer: texture_of(w, buffer), PinnedByAddress())]

SOURCES = {
    "buffer": lambda make: closed(make),
    "slice": lambda make: closed(lambda buffer: closed_part(buffer, make)),
    "tracked buffer": lambda make: closed(make, TrackingMemoryResource(PINNED)),
    "user's buffer": lambda make: closed(make, PinnedByAddress()),
}
EXPORTS = {
    "unused capsule": lambda buffer: buffer.__dlpack__(),
    "unused versioned capsule": lambda buffer: buffer.__dlpack__(max_version=(1, 0)),
    "array": np.from_dlpack,
    "array by the array interface": np.asarray,
    "memoryview": lambda buffer: buffer.__buffer__(0)[8:],
    "view": lambda buffer: StridedMemoryView.from_dlpack(buffer, -1),
    "view that was asked": lambda buffer: asked(StridedMemoryView.from_any_interface(buffer, -1)),
    "view by the CUDA array interface": lambda buffer: StridedMemoryView.from_cuda_array_interface(buffer, -1),
    "view of a view": lambda buffer: StridedMemoryView.from_dlpack(StridedMemoryView.from_dlpack(buffer, -1), -1),
    "part of a view": lambda buffer: StridedMemoryView.from_dlpack(buffer, -1).view(dtype="u1"),
    "array of a view": lambda buffer: np.from_dlpack(StridedMemoryView.from_dlpack(buffer, -1)),
    "array of a view of a buffer": lambda buffer: np.from_dlpack(
        StridedMemoryView.from_buffer(buffer, (8,), dtype="u1")
    ),
    "view of an array": lambda buffer: StridedMemoryView.from_dlpack(np.from_dlpack(buffer), -1),
    "unused capsule of a view": lambda buffer: StridedMemoryView.from_dlpack(buffer, -1).__dlpack__(),
    "tensor of the exchange API": lambda buffer: _capsule.import_exchanged(
        StridedMemoryView.__dlpack_c_exchange_api__, StridedMemoryView.from_dlpack(buffer, -1)
    ),
}


def closed_part(buffer: Buffer, make: Callable[[Buffer], Any]) -> Any:
    with buffer[8:] as part:
        return make(part)


def borrow(owner: Owner) -> Buffer:
    return Buffer.from_handle(owner.address, SIZE, owner=owner)


def asked(view: StridedMemoryView) -> StridedMemoryView:
    """Return a view that has described its memory."""
    assert view.shape == (SIZE,) or view.shape == (SIZE - 8,)
    return view


for source_name, source in SOURCES.items():
    for export_name, export in EXPORTS.items():
        CASES[f"{export_name} of a {source_name}"] = lambda w, source=source, export=export: [source(export)]
CASES["array in a cycle"] = lambda w: in_a_cycle(closed(np.from_dlpack))
CASES["unused capsule in a cycle"] = lambda w: in_a_cycle(closed(EXPORTS["unused capsule"]))
CASES["view in a cycle"] = lambda w: in_a_cycle(closed(EXPORTS["view"]))
CASES["buffer kept for an array interface"] = lambda w: [closed(lambda buffer: (buffer, buffer.__array_interface__))]


# Functions that C code calls


class Api(ctypes.Structure):
    """``ccc_api`` of cuda_core_cffi.h."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("size", "kind", "handle", "bytes", "retain", "release")]


FUNCTIONS = {
    "unversioned deleter": lambda buffer: Consumer(buffer.__dlpack__()),
    "versioned deleter": lambda buffer: Consumer(buffer.__dlpack__(max_version=(1, 0))),
    "release": retained,
}
CALLERS = {"without the GIL": without_gil, "with the GIL": with_gil, "in a thread of C": in_thread_of_c}
if PYPY:  # which has no functions of ctypes that keep the GIL
    del CALLERS["with the GIL"]


def end_by(call: Callable[[int, int], None], end: Any) -> Callable[[], None]:
    """Return what ends the memory by a call of a C function."""
    function, argument = deleter(end) if isinstance(end, Consumer) else end
    return lambda: call(function, argument)


for function_name, function in FUNCTIONS.items():
    for source_name in ("buffer", "slice", "tracked buffer") if function is retained else SOURCES:
        for caller_name, call in CALLERS.items():

            def make(w: World, source=SOURCES[source_name], function=function, call=call) -> Any:
                return end_by(call, source(function))

            CASES[f"{function_name} of a {source_name}, {caller_name}"] = make


@case
def deleter_where_there_is_a_second_interpreter(w: World) -> Callable[[], None]:
    """PyGILState_Check then says of each thread that it holds the GIL."""
    delete = end_by(in_thread_of_c, closed(FUNCTIONS["unversioned deleter"]))
    interpreters = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    second = interpreters.create()

    def end() -> None:
        delete()
        interpreters.destroy(second)

    return end


if PYPY:  # which has one interpreter in a process
    del CASES["deleter where there is a second interpreter"]


# Tensors of other libraries

IMPORTS = {
    "unused capsule": lambda tensor: tensor.capsule(),
    "view": lambda tensor: StridedMemoryView.from_dlpack(Producer(tensor), -1),
    "view of any interface": lambda tensor: StridedMemoryView.from_any_interface(Producer(tensor), -1),
    "view that shows a part": lambda tensor: StridedMemoryView.from_dlpack(Producer(tensor), -1).view(dtype="i4"),
    "unused capsule of a view": lambda tensor: StridedMemoryView.from_dlpack(Producer(tensor), -1).__dlpack__(),
    "array of a view": lambda tensor: np.from_dlpack(StridedMemoryView.from_dlpack(Producer(tensor), -1)),
}
for versioned in (False, True):
    for import_name, take in IMPORTS.items():
        CASES[f"{import_name}, {'versioned' if versioned else 'unversioned'}"] = lambda w, take=take, v=versioned: [
            take(PinnedTensor(v))
        ]
CASES["view in a cycle, versioned"] = lambda w: in_a_cycle(IMPORTS["view"](PinnedTensor(True)))
CASES["tensor by the exchange API"] = lambda w: [StridedMemoryView.from_dlpack(Exchanged(PinnedTensor(True)), -1)]
CASES["refused tensor"] = lambda w: refuse(Producer(PinnedTensor(True, version=(2, 0))))
CASES["refused tensor of the exchange API"] = lambda w: refuse(Exchanged(PinnedTensor(True, version=(2, 0))))


def refuse(producer: Any) -> Callable[[], None]:
    """Return a function that takes a tensor which is refused, and so deleted."""

    def take() -> None:
        try:
            StridedMemoryView.from_dlpack(producer, -1)
        except BufferError:
            return
        raise AssertionError("the tensor was not refused")

    return take


# Graphs


def graph_of(buffer: Buffer) -> GraphDefinition:
    graph = GraphDefinition()
    graph.memset(buffer, 1, SIZE)
    return graph


CASES["graph definition"] = lambda w: [closed(graph_of)]
CASES["graph definition in a cycle"] = lambda w: in_a_cycle(closed(graph_of))
CASES["graph definition with a user's buffer"] = lambda w: [closed(graph_of, PinnedByAddress())]
CASES["executable graph"] = lambda w: [closed(lambda buffer: graph_of(buffer).instantiate())]
CASES["definition and executable in a cycle"] = lambda w: in_a_cycle(closed(definition_and_executable))
CASES["executable graph that ran"] = lambda w: [closed(lambda buffer: ran(w, graph_of(buffer).instantiate()))]
CASES["node of a graph"] = lambda w: [closed(lambda buffer: GraphDefinition().memset(buffer, 1, SIZE))]


def definition_and_executable(buffer: Buffer) -> tuple[Any, Any]:
    graph = graph_of(buffer)
    return graph, graph.instantiate()


def ran(w: World, graph: Any) -> Any:
    graph.launch(w.stream)
    w.stream.sync()
    return graph


@case
def graph_builder(w: World) -> list[Any]:
    builder = w.device.create_graph_builder().begin_building()
    with PINNED.allocate(SIZE) as buffer:
        builder.callback(lambda: None)
        buffer.fill(1, stream=builder.stream)
        array = np.from_dlpack(buffer)
    return [builder, array]


@case
def graph_of_a_builder(w: World) -> list[Any]:
    builder = w.device.create_graph_builder().begin_building()
    array = closed(np.from_dlpack)
    builder.callback(lambda array=array: None)
    return [builder.end_building().complete()]


@case
def callback_that_keeps_an_array(w: World) -> list[Any]:
    array = closed(np.from_dlpack)
    graph = GraphDefinition()
    graph.callback(lambda array=array: None)
    return [graph]


# Objects of all kinds, which may end without waiting

WAITING = frozenset(CASES)
CASES.update((f"scenario: {name}", lambda w, run=run: [run(w)]) for name, run in SCENARIOS.items())
del CASES["scenario: event of another process"]


class Callback:
    """A Python function that a stream calls, and that waits for the GIL at its end."""

    def __init__(self) -> None:
        self.is_done = False

    def __call__(self) -> None:
        time.sleep(CALLBACK)
        self.is_done = True


def run(name: str, world: World) -> dict[str, Any]:
    """Run a case."""
    faulthandler.dump_traceback_later(TOO_LONG, exit=True)
    before = live_objects()["buffer"]
    made = CASES[name](world)
    lib.ccc_release_pause()  # this thread, not the release thread, is to free what Python gives back
    callback = Callback()
    world.other.callback(callback)
    if callable(made):
        made()
    else:
        made.clear()
    del made
    flush()
    rounds = 3 if PYPY and name in WAITING else 0
    while rounds and not callback.is_done:  # what was done has left garbage, which PyPy has to find
        flush()
        rounds -= 1
    waited = callback.is_done
    lib.ccc_release_resume()
    world.other.sync()
    eventually(lambda: live_objects()["buffer"] <= before)  # the driver tells late of what graphs had kept
    faulthandler.cancel_dump_traceback_later()
    return {"name": name, "waited": waited, "left": live_objects()["buffer"] - before}


def flush() -> None:
    """Collect garbage, and have done what is left for later."""
    collect()
    run_tasks()
    for _ in range(100):  # a graph that ran releases its objects when the event behind it is reached
        if not lib.ccc_releases_pending():
            break
        time.sleep(0.001)
        run_tasks()
    destroy_idle()


def main() -> None:
    device = Device(0)
    device.set_current()
    with device.create_stream() as stream, make_world(device, stream, None) as world:  # type: ignore[arg-type]
        flush()
        if not PYPY:
            gc.freeze()  # collections need not look at modules
        for name in sys.argv[1:]:
            print(json.dumps(run(name, world)), flush=True)


if __name__ == "__main__":
    main()
