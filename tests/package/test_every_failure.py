# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What happens when the driver fails: every call that a scenario makes is made to fail, one after the other."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import graph_scenarios  # noqa: F401  (adds to the scenarios)
import ipc_child
import pytest
from buffers import SIZE
from graphs import wait_for_graphs
from helpers import ROOT, Gate, no_release_thread, output_of, without_comments
from scenarios import SCENARIOS, World, make_world

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    CUDAWarning,
    Device,
    LegacyPinnedMemoryResource,
    UnavailableError,
    ffi,
    lib,
    live_objects,
    simulator,
)
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi._streams.event import IPCEventDescriptor

pytestmark = pytest.mark.simulator_only("only the simulated driver fails on request")

SOURCES = ROOT
ERROR = "CUDA_ERROR_UNKNOWN"

# Calls that merely look. When one of them fails, the operation finds another way or says so later.
LOOKING = {
    "cuEventQuery": "what is held for a copy is asked for again later",
    "cuLibraryGetKernelCount": "only for the names that the message of a missing kernel suggests",
    "cuLibraryEnumerateKernels": "the same",
    "cuCtxGetCurrent": "cleanup pushes the context although it may be current",
    "cuGraphNodeFindInClone": "what a node of a copy uses is kept until the copy goes",
    "cuStreamGetId": "what functions of such a stream raise is raised by any wait",
    "cuKernelGetName": "drivers before CUDA 12.3 lack it: the kernel goes without checks of its arguments' kinds",
}
# Calls that come when the driver lets go of something, now or a little later. test_graph_destruction.py makes them
# fail.
AT_ANY_TIME = {"cuThreadExchangeStreamCaptureMode"}

# Calls of a look at the streams, which is repeated as long as they have work. If one fails, the driver waits itself.
OF_A_LOOK = {
    "cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuStreamIsCapturing", "cuStreamQuery",
    "cuEventCreate", "cuEventQuery", "cuEventRecord",
}  # fmt: skip
LOOK_BEGINS = 2  # calls for the context before the first stream is looked at

# Where this call fails, what it was made for is tried nevertheless, and fails by itself if it does need the context.
PUSH = "cuCtxPushCurrent"

LOOK_UP = "cuGetProcAddress_v2"

# A scenario's own calls of that kind.
BY_ANOTHER_WAY = {
    ("virtual buffer that grows", "cuMemAddressReserve"): "without the addresses behind it, the buffer moves",
    ("virtual buffer without room to grow", "cuMemAddressReserve"): "the same",
    ("graph executable", "cuEventRecord"): "a new event marks the launch",
    ("graph executable", "cuStreamIsCapturing"): "the event behind the launch is recorded nevertheless",
    ("captured graph", "cuStreamIsCapturing"): "the same",
    ("graph executable", "cuEventCreate"): "all work of the stream is waited for",
    ("free while capturing", "cuStreamIsCapturing"): "the memory waits for the end of the capture",
    ("record a new event in a foreign stream", "cuStreamIsCapturing"): "as for cuStreamGetId, which is not asked then",
    ("captured allocation", "cuStreamGetCaptureInfo"): "the graph frees the memory without looking which it is",
    ("code that does not load", "cuCtxGetDevice"): "the message of that goes without the device",
    ("code that does not load", "cuDeviceGetAttribute"): "the same",
}

PENDING, NONE = "graph launches pending", simulator.Live(0, 0)

# Calls that end something. Where one fails, the driver still has it, and what it needs.
ENDS = re.compile(r"Free|Destroy|Unload|Release|Unmap")

# Driver functions that the package calls, but no scenario: why, and which test has them.
ELSEWHERE = {
    "cuDevicePrimaryCtxGetState": "only where another library retained the primary context before: test_context.py",
    "cuStreamGetGreenCtx": "only for contexts of other libraries: test_green_contexts.py",
    "cuMemPoolGetAccess": "only where there are two devices: test_peer_access.py",
    "cuMemcpy3DPeerAsync": "only where there are two devices: test_peer_access.py",
    "cuMemcpyPeerAsync": "only where there are two devices: test_peer_access.py",
    "cuUserObjectRelease": "only where a graph does not take what it is to keep: test_graph_ownership.py",
    "cuCheckpointProcessCheckpoint": "not with the managed memory of the scenarios: test_process.py",
    "cuCheckpointProcessRestore": "the same",
    "cuTensorMapEncodeIm2colWide": "needs compute capability 10.0: test_tensor_map.py",
    "cuLogsDumpToMemory": "is not traced: test_driver_log.py",
    "cuLogsRegisterCallback": "the same",
    "cuDeviceTotalMem": "only where another call found no memory: test_memory_pool.py",
    "cuGetErrorString": "explains the failure of another call",
    **dict.fromkeys(
        (
            "cuArray3DGetDescriptor",
            "cuGraphicsMapResources",
            "cuGraphicsResourceGetMappedMipmappedArray",
            "cuGraphicsResourceGetMappedPointer",
            "cuGraphicsSubResourceGetMappedArray",
            "cuGraphicsUnmapResources",
            "cuGraphicsUnregisterResource",
        ),
        "the simulated driver has no OpenGL: test_graphics.py",
    ),
}


@dataclasses.dataclass
class Outcome:
    """What a scenario did: the exception it ended with, and the warnings of cleanup on the way."""

    error: CUDAError | None
    warned: list[str]

    def tells_of(self, call: str) -> bool:
        """Whether the program was told that a call failed."""
        told = [f"{call} failed: {ERROR}" in text for text in self.warned]
        if self.error is not None and (self.error.call, self.error.name) == (call, ERROR):
            told.append(call in str(self.error))
        return any(told)


def raw(world: World, kind: str) -> int:
    """Allocate memory as another library does."""
    pointer: Any
    if kind == "pinned":
        pointer = ffi.new("void **")
        assert lib.cuMemHostAlloc(pointer, SIZE, 0) == 0
        return int(ffi.cast("uintptr_t", pointer[0]))
    pointer = ffi.new("CUdeviceptr *")
    if kind == "pool":
        assert lib.cuMemAllocFromPoolAsync(pointer, SIZE, world.pool.cdata, world.stream.cdata) == 0
    else:
        assert lib.cuMemAlloc(pointer, SIZE) == 0
    return int(pointer[0])


DEALLOCATIONS: dict[str, Callable[[World], Any]] = {
    "pool": lambda w: (w.pool, raw(w, "pool")),
    "pinned": lambda w: (LegacyPinnedMemoryResource(), raw(w, "pinned")),
    "synchronous": lambda w: (SynchronousMemoryResource(0), raw(w, "synchronous")),
}


@pytest.fixture(scope="module")
def foreign_event() -> Iterator[IPCEventDescriptor]:
    """Return the descriptor of an event in another process."""
    with ipc_child.Child() as child:
        yield child(ipc_child.create_and_describe_event)


@pytest.fixture(scope="module")
def lasting_world(foreign_event) -> Iterator[World]:
    """Return the objects that scenarios work on: made once, because what cannot be freed stays in their pool."""
    device = Device(0)
    device.set_current()
    with device.create_stream() as stream, make_world(device, stream, foreign_event) as world:
        with no_release_thread(), Gate(stream):  # a look marks a stream that has work, with an event made once
            LegacyPinnedMemoryResource().allocate(1)
            gc.collect()
            lib.ccc_reclaim()
        yield world
        device.set_current()


@pytest.fixture
def world(device, lasting_world) -> World:
    """Return the objects that scenarios work on, with the device's context current."""
    return lasting_world


@pytest.fixture(params=[True, False], ids=["context current", "no context current"])
def with_context(request, device) -> Iterator[bool]:
    """Run with the device's context current, and with none."""
    yield request.param
    device.set_current()


def base_name(function: str) -> str:
    """Return a driver function's name without its version."""
    stem, _, version = function.rpartition("_v")
    return stem if version.isdigit() else function


def steps(calls: list[str]) -> list[tuple[str, int]]:
    """Return each call as its name and how many of that name were made up to it."""
    seen: dict[str, int] = {}
    found = []
    for call in calls:
        seen[call] = seen.get(call, 0) + 1
        found.append((call, seen[call]))
    return found


def alive() -> tuple[dict[str, int], dict[str, int]]:
    """Return how many objects of each kind the package has, and the driver."""
    return live_objects(), {kind: live.number for kind, live in simulator.live().items()}


def flush(before: tuple[dict[str, int], dict[str, int]]) -> None:
    """Let go of what is not needed any more; where that is not all at once, collect garbage.

    What a failing call left to the driver stays, whatever is collected: two collections that change nothing are enough.
    """
    seen: list[tuple[dict[str, int], dict[str, int]]] = []
    for _ in range(4):
        Buffer.from_handle(0, 0).close()  # what tensors that are gone had kept; and failures of cleanup are told
        wait_for_graphs(0)
        wait_for_launches()
        Buffer.from_handle(0, 0).close()  # reports failures of destructions
        now = alive()
        if now == before or seen[-2:] == [now, now]:
            return
        seen.append(now)
        gc.collect()


def wait_for_launches(seconds: float = 2) -> None:
    """Wait for graphs that run, although the call that waits for them has failed."""
    end = time.monotonic() + seconds
    while simulator.live().get(PENDING, NONE).number and time.monotonic() < end:
        time.sleep(0.001)


def enter(world: World, with_context: bool) -> None:
    """Make the device's context current, or none."""
    if with_context:
        world.device.set_current()
    else:
        assert lib.cuCtxSetCurrent(ffi.NULL) == 0


def perform(world: World, name: str, ending: str) -> Outcome:
    """Run a scenario to its end; what it made is closed, or collected."""
    before = alive()
    with no_release_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = attempt(world, name, ending)
        flush(before)
    return Outcome(error, [str(warning.message) for warning in caught if warning.category is CUDAWarning])


def attempt(world: World, name: str, ending: str) -> CUDAError | None:
    """Run a scenario to its end, and return what it raised without what that keeps alive."""
    try:
        made = SCENARIOS[name](world)
        things = made if isinstance(made, list) else [made]
        while things:
            thing = things.pop()
            if ending == "close" and thing is not None:
                thing.close()
    except CUDAError as error:
        error.__context__ = error.__cause__ = None
        return error.with_traceback(None)
    return None


def first_look(calls: list[str]) -> int:
    """Return the index of the first call that asks whether streams have work, or where the calls end."""
    for index, pair in enumerate(itertools.pairwise(calls)):
        if pair == ("cuStreamIsCapturing", "cuStreamQuery"):
            return index
    return len(calls)


@pytest.mark.parametrize("ending", ["close", "collect"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_failing_call_is_told_and_nothing_is_lost(world, name, ending, with_context):
    first = perform(world, name, ending)  # what is done once is done: default resources, say
    if isinstance(first.error, UnavailableError):
        pytest.skip(str(first.error))
    assert first == Outcome(None, [])
    world.device.sync()
    enter(world, with_context)
    perform(world, name, ending)  # looks functions up that only this needs
    with simulator.trace() as trace:
        outcome = perform(world, name, ending)
    if outcome.error is not None:  # this scenario needs a current context, and says so
        assert not with_context
        assert outcome.error.name == "CUDA_ERROR_INVALID_CONTEXT"
        assert "set_current" in str(outcome.error)
    calls = steps(trace.names)
    assert calls, "a scenario without driver calls"
    looked = first_look(trace.names)
    for index, (call, nth) in enumerate(calls):
        if call in AT_ANY_TIME or (index >= looked - LOOK_BEGINS and call in OF_A_LOOK):
            continue
        where, function = f"{name}: {call}, call {nth} of {trace.names}", base_name(call)
        objects, driver_objects = alive()
        with simulator.fail(call, ERROR, nth) as fault:
            failed = perform(world, name, ending)
        # an event is queried again for as long as its work runs
        assert fault.left == 0 or (function == "cuEventQuery" and nth > 1), f"{where}: was not made again"
        lib.cuStreamSynchronize(world.stream.cdata)  # if it was this that failed, a host function may still be pending
        silent = function in {*LOOKING, PUSH} or (name, function) in BY_ANOTHER_WAY
        assert failed.tells_of(function) or silent, f"{where}: nothing was said, but {failed}"
        objects_left, driver_objects_left = alive()
        assert objects_left == objects, where
        left = {kind: number - driver_objects.get(kind, 0) for kind, number in driver_objects_left.items()}
        lost = {kind: number for kind, number in left.items() if number}
        # where a mapping stays, all addresses of its buffer stay reserved
        expected = function == "cuMemUnmap" or set(lost.values()) == {1}
        assert lost == {} or (ENDS.search(function) and expected), f"{where}: {lost}"
        assert simulator.reports() == [], where
        if "graph allocations" in lost:  # other tests would find them
            enter(world, True)
            for address in world.of_graphs:
                lib.cuMemFreeAsync(address, ffi.NULL)
            simulator.clear_reports()  # of those that are not there any more
        world.of_graphs.clear()
        enter(world, with_context)  # a context that could not be popped is still current
        again = perform(world, name, ending)
        assert again.warned == [], where
        assert str(again.error) == str(outcome.error), where


@pytest.mark.parametrize("name", DEALLOCATIONS)
def test_a_failing_deallocate_is_an_exception(world, name):
    resource, address = DEALLOCATIONS[name](world)
    with simulator.trace() as trace:
        resource.deallocate(address, SIZE, world.stream)
    for call, nth in steps(trace.names):
        resource, address = DEALLOCATIONS[name](world)
        with simulator.fail(call, ERROR, nth) as fault, pytest.raises(CUDAError) as caught:
            resource.deallocate(address, SIZE, world.stream)
        assert (caught.value.call, caught.value.name, fault.left) == (base_name(call), ERROR, 0)
        resource.deallocate(address, SIZE, world.stream)
    world.stream.sync()


def test_out_of_memory_once_is_cured_by_a_collection(world):
    for make in (
        lambda: world.pool.allocate(SIZE, world.stream),
        lambda: LegacyPinnedMemoryResource().allocate(SIZE),
        lambda: SynchronousMemoryResource(0).allocate(SIZE),
    ):
        with simulator.trace() as trace:
            make().close()
        call = next(name for name in trace.names if "Alloc" in name)
        with simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY"):
            make().close()
        with simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY", count=2), pytest.raises(CUDAError) as caught:
            make()
        assert (caught.value.name, caught.value.call) == ("CUDA_ERROR_OUT_OF_MEMORY", base_name(call))


def test_another_error_at_the_second_try_is_the_one_that_is_raised(world):
    call = "cuMemAllocFromPoolAsync"
    first, second = simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY"), simulator.fail(call, ERROR)
    with first, second, pytest.raises(CUDAError) as caught:
        world.pool.allocate(SIZE, world.stream)
    assert caught.value.name == ERROR


# The first use of the driver happens once in a process


FIRST_USE = """
import json, sys, warnings
from cuda_core_cffi import CUDAError, Device, simulator

def first_use():
    device = Device(0)
    device.set_current()
    with device.create_stream() as stream, device.allocate(64, stream) as buffer:
        buffer.fill(0, stream=stream)
    device.default_stream.sync()

if len(sys.argv) == 1:
    with simulator.trace() as trace:
        first_use()
    print(json.dumps(trace.names))
else:
    call, nth, error = sys.argv[1:]
    with warnings.catch_warnings(record=True) as caught, simulator.fail(call, error, int(nth)) as fault:
        warnings.simplefilter("always")
        try:
            first_use()
        except CUDAError as error:
            print(error)
    for warning in caught:
        print(warning.message)
    assert fault.left == 0
    first_use()
"""


def test_a_failing_call_at_first_use_is_told_and_the_next_try_works():
    calls = steps(json.loads(output_of(FIRST_USE)))
    assert calls[0][0] == "cuDriverGetVersion"  # the library that fails there is taken for no driver, once for all
    for (call, nth), (following, _) in zip(calls[1:], [*calls[2:], ("", 0)]):
        told = output_of(FIRST_USE, call, str(nth), ERROR)
        if call == LOOK_UP:  # what a driver does not find, it does not have
            function = base_name(following)
            assert f"{function} is not in the driver" in told or f"{function} failed: CUDA_ERROR_NOT_SUPP" in told
        else:
            assert f"{base_name(call)} failed: {ERROR}" in told


# The scenarios


def test_every_driver_function_that_the_package_calls_is_in_a_scenario(world):
    with simulator.trace() as trace:
        for name in SCENARIOS:
            for with_context in (True, False):
                enter(world, with_context)
                perform(world, name, "close")
                enter(world, True)
    made = {base_name(call) for call in [*trace.names, *json.loads(output_of(FIRST_USE))]}
    called = {name for name in functions_called() if available(name)}
    missing = sorted(called - made - set(ELSEWHERE))
    assert not missing, f"write scenarios for {missing}"
    assert set(ELSEWHERE) <= called - made, "they are in a scenario, or not called any more"


def functions_called() -> set[str]:
    """Return the driver functions that our sources call."""
    names = set()
    for header in (SOURCES / "include").rglob("ccc_*.h"):
        code = re.sub(r"\"[^\"\n]*\"", " ", without_comments(header.read_text()))
        names.update(re.findall(r"\bcu[A-Z]\w*", code))
    for module in (SOURCES / "cuda_core_cffi").rglob("*.py"):
        if module.parent.name not in ("_raw", "simulator"):
            names.update(re.findall(r"(?<=\blib\.)cu[A-Z]\w*|(?<=\")cu[A-Z]\w*(?=\")", module.read_text()))
    return {name for name in names if callable(getattr(lib, name, None))}


def available(function: str) -> bool:
    """Tell whether the driver has a function."""
    address = ffi.new("void **")
    status = lib.cuGetProcAddress(function.encode(), address, lib.ccc_driver_version(), 0, ffi.NULL)
    return status == 0 and address[0] != ffi.NULL
