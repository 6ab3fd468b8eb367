# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of one device used by another: the access to pools, and copies.

What needs several devices runs in a process of its own, where the simulated driver has three; on a machine with two
GPUs or more it runs on those.
"""

from __future__ import annotations

import collections.abc
import textwrap
from collections.abc import Callable, Iterator

import pytest
from helpers import SUPPORT, output_of, run_python
from scenarios import PTX

from cuda_core_cffi import Device, DeviceMemoryResource, DeviceMemoryResourceOptions

PROLOGUE = """
import sys
from cuda_core_cffi import *
first, second = Device(0), Device(1)
first.set_current()
pool = DeviceMemoryResource(first, DeviceMemoryResourceOptions())
peers = pool.peer_accessible_by
SIZE = 4096

def content(buffer):
    data = ffi.new("char[]", SIZE)
    assert lib.cuMemcpyDtoH(data, buffer.handle, SIZE) == 0
    return bytes(ffi.buffer(data, SIZE))

def kernel(name):
    source = 'extern "C" __global__ void add_one(unsigned char *p) { p[threadIdx.x] += 1; }\\n'
    source += 'extern "C" __global__ void copy(unsigned char *to, const unsigned char *from)'
    source += '{ to[threadIdx.x] = from[threadIdx.x]; }'
    options = {"arch": f"sm_{second.arch}"}
    return Program(source, "c++", options).compile().get_kernel(name)

def run(stream, name, *arguments):
    launch(stream, LaunchConfig(grid=1, block=32), kernel(name), *arguments)
    stream.sync()
"""

# every way to change the set: from device 1 having access
CHANGES = {
    "add": "peers.add(2)",
    "discard": "peers.discard(1)",
    "remove": "peers.remove(second)",
    "pop": "peers.pop()",
    "clear": "peers.clear()",
    "update": "peers.update([1, 2], {second}, (0,))",
    "difference_update": "peers.difference_update([second, 2], [0])",
    "intersection_update": "peers.intersection_update({2, 0})",
    "symmetric_difference_update": "peers.symmetric_difference_update([0, 1, 2])",
    "|=": "peers |= {1, 2}",
    "&=": "peers &= {2}",
    "-=": "peers -= {Device(2), second}",
    "^=": "peers ^= {1, 2}",
    "assignment": "pool.peer_accessible_by = [2, 0, 2]",
    "|= of the property": "pool.peer_accessible_by |= {1, 2}",
    "assignment of nothing": "pool.peer_accessible_by = []",
}
AFTER = {
    "add": [1, 2],
    "update": [1, 2],
    "symmetric_difference_update": [2],
    "|=": [1, 2],
    "^=": [2],
    "assignment": [2],
    "|= of the property": [1, 2],
}


@pytest.fixture
def several(is_simulated: bool) -> Callable[..., str]:
    """Return a function that runs code where there are several devices, and returns what it prints."""
    if not is_simulated and len(Device.get_all_devices()) < 2:
        pytest.skip("needs two GPUs")

    def run(code: str, **environment: str) -> str:
        code = PROLOGUE + textwrap.dedent(code)
        return output_of(code, str(SUPPORT), **{"CUDA_SIM_DEVICES": "3", **environment})

    return run


@pytest.fixture
def linked(several: Callable[..., str], is_simulated: bool) -> Callable[..., str]:
    """Return the same, where device 1 can be given access to the memory of device 0."""
    if not is_simulated and not Device(1).can_access_peer(0):
        pytest.skip("needs two GPUs with a link between them")
    return several


@pytest.fixture
def pool(device: Device) -> Iterator[DeviceMemoryResource]:
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions())
    yield pool
    pool.close()


# memory


def test_a_device_with_access_reads_and_writes_the_memory_of_another(linked: Callable[..., str]) -> None:
    text = linked(
        """
        peers.add(second)
        memory = pool.allocate(SIZE)
        memory.fill(41, stream=first.default_stream)
        first.sync()
        second.set_current()
        stream = second.create_stream()
        mine = second.allocate(SIZE, stream)
        run(stream, "add_one", memory)
        run(stream, "copy", mine, memory)
        print(content(mine)[:32] == bytes([42]) * 32, content(memory)[:33] == bytes([42]) * 32 + bytes([41]))
        """
    )
    assert text == "True True"


def test_access_holds_for_memory_allocated_before_it_was_given(linked: Callable[..., str]) -> None:
    text = linked(
        """
        memory = pool.allocate(SIZE)
        memory.fill(7, stream=first.default_stream)
        first.sync()
        peers.add(1)
        second.set_current()
        run(second.create_stream(), "add_one", memory)
        print(content(memory)[:32] == bytes([8]) * 32)
        """
    )
    assert text == "True"


@pytest.mark.parametrize("before", ["pass", "peers.add(1); peers.discard(1)"], ids=["never given", "taken back"])
def test_a_kernel_without_access_fails(several: Callable[..., str], before: str) -> None:
    done = run_python(
        PROLOGUE
        + textwrap.dedent(
            f"""
        if second.can_access_peer(first):
            {before}
        memory = pool.allocate(SIZE)
        first.sync()
        second.set_current()
        try:
            run(second.create_stream(), "add_one", memory)
        except CUDAError as error:
            print(error.name)
        """
        ),
        CUDA_SIM_DEVICES="3",
    )
    assert done.stdout.strip() == "CUDA_ERROR_ILLEGAL_ADDRESS", done.stderr


# copies between devices: MINE is in a pool of device 1, THEIRS in one of device 0, and device 1 runs the copy
COPIES = """
theirs = pool.allocate(SIZE, first.default_stream)
theirs.fill(5, stream=first.default_stream)
first.sync()
from cuda_core_cffi.utils import StridedMemoryView
second.set_current()
stream = second.create_stream()
mine = second.allocate(SIZE, stream)

def content_at_home(buffer, device):
    device.set_current()
    return content(buffer)
"""


@pytest.mark.parametrize("before", ["pass", "pool.peer_accessible_by = [1]"], ids=["without access", "with access"])
def test_devices_copy_from_each_other(several: Callable[..., str], before: str) -> None:
    text = several(
        COPIES
        + f"""
if second.can_access_peer(first):
    {before}
theirs.copy_to(mine, stream=stream)
stream.sync()
print(content_at_home(mine, second) == bytes([5]) * SIZE)
mine.fill(6, stream=stream)
theirs.copy_from(mine, stream=stream)
stream.sync()
print(content_at_home(theirs, first) == bytes([6]) * SIZE)
"""
    )
    assert text.split() == ["True", "True"]


def test_views_of_different_devices_are_copied_without_access(several: Callable[..., str]) -> None:
    text = several(
        COPIES
        + """
to, what = (StridedMemoryView.from_buffer(b, (SIZE,), itemsize=1) for b in (mine, theirs))
to.copy_from(what, stream)
stream.sync()
print(content_at_home(mine, second) == bytes([5]) * SIZE)
"""
    )
    assert text == "True"


@pytest.mark.parametrize("shape", ["(4, 8), (16, 1)", "(3, 4, 8), (96, 16, 1)"], ids=["rows", "layers"])
def test_rows_and_layers_of_different_devices_are_copied_without_access(
    several: Callable[..., str], shape: str
) -> None:
    text = several(
        COPIES
        + f"""
mine.fill(1, stream=stream)
to, what = (StridedMemoryView.from_buffer(b, {shape}, itemsize=1) for b in (mine, theirs))
to.copy_from(what, stream)
stream.sync()
data = content_at_home(mine, second)
print(data[:24] == bytes([5] * 8 + [1] * 8 + [5] * 8), data.count(5) == to._layout.volume)
"""
    )
    assert text == "True True"


def test_arrays_are_copied_from_and_to_memory_of_another_device_without_access(several: Callable[..., str]) -> None:
    text = several(
        COPIES
        + """
array = second.create_opaque_array({"shape": (8, 4), "format": "uint8", "num_channels": 1})
array.copy_from(theirs, stream=stream)
array.copy_to(mine, stream=stream)
mine.fill(6, stream=stream)
array[2:4].copy_from(mine, stream=stream)
array.copy_to(theirs, stream=stream)
stream.sync()
print(content_at_home(theirs, first)[:32] == bytes([5, 5, 6, 6, 5, 5, 5, 5] * 4))
array.close()
"""
    )
    assert text == "True"


def test_a_node_copies_an_array_of_a_device_that_is_not_current(several: Callable[..., str]) -> None:
    text = several(
        COPIES
        + """
from cuda_core_cffi.graph import GraphDefinition
array = second.create_opaque_array({"shape": (8, 4), "format": "uint8", "num_channels": 1})
mine.fill(7, stream=stream)
stream.sync()
first.set_current()
with GraphDefinition() as graph:
    graph.memcpy(array, mine)
    with graph.instantiate() as executable:
        executable.launch(stream)
        stream.sync()
mine.fill(1, stream=stream)
array.copy_to(mine, stream=stream)
stream.sync()
print(content_at_home(mine, second)[:33] == bytes([7] * 32 + [1]))
array.close()
"""
    )
    assert text == "True"


def test_work_on_memory_without_access_is_refused_and_explained(several: Callable[..., str]) -> None:
    text = several(
        COPIES
        + """
try:
    theirs.fill(1, stream=stream)
except CUDAError as error:
    print(error.name, *(note[:50] for note in error.__notes__))
"""
    )
    assert text == "CUDA_ERROR_INVALID_VALUE memory of device 0 is used in a stream of device 1"


def test_memory_is_copied_from_and_to_the_host_whatever_device_is_current(several: Callable[..., str]) -> None:
    text = several(
        COPIES
        + """
from cuda_core_cffi import LegacyPinnedMemoryResource
host = LegacyPinnedMemoryResource().allocate(SIZE)
streams = {first: first.create_stream(), second: stream}
for current, device, queue in ((second, first, first), (first, second, second), (first, second, first)):
    buffer, home, queue = {first: theirs, second: mine}[device], streams[device], streams[queue]
    current.set_current()
    buffer.fill(9, stream=home)
    home.sync()
    buffer.copy_to(host, stream=queue)
    queue.sync()
    print(bytes(host.__buffer__(0)) == bytes([9]) * SIZE, end=" ")
    host.__buffer__(0)[:] = bytes([4]) * SIZE
    buffer.copy_from(host, stream=queue)
    queue.sync()
    result = bytearray(SIZE)
    buffer.copy_to(result, stream=queue)
    queue.sync()
    print(result == bytes([4]) * SIZE)
"""
    )
    assert text.split("\n") == ["True True"] * 3


@pytest.mark.simulator_only("injects a fault")
@pytest.mark.parametrize(
    ("call", "copy"),
    [
        ("cuMemcpyPeerAsync", "theirs.copy_to(mine, stream=stream)"),
        ("cuMemcpy3DPeerAsync", "rows(mine).copy_from(rows(theirs), stream)"),
    ],
)
def test_a_copy_between_devices_may_fail(several: Callable[..., str], call: str, copy: str) -> None:
    text = several(
        COPIES
        + f"""
from cuda_core_cffi import simulator
def rows(buffer):
    return StridedMemoryView.from_buffer(buffer, (4, 8), (16, 1), itemsize=1)
simulator.fail("{call}", "CUDA_ERROR_OUT_OF_MEMORY")
try:
    {copy}
except CUDAError as error:
    print(error.call, error.name)
"""
    )
    assert text == f"{call} CUDA_ERROR_OUT_OF_MEMORY"


# the set


def test_the_set_holds_devices_and_is_asked_by_device_or_ordinal(linked: Callable[..., str]) -> None:
    text = linked(
        """
        print(len(peers), list(peers), 1 in peers, second in peers)
        peers.add(second)
        print(len(peers), list(peers) == [second], 1 in peers, second in peers)
        print([other in peers for other in (0, first, 99, -1, None, "1", 1.0, True)] == [False] * 8)
        print(repr(peers) == f"PeerAccessibleBySetProxy({{{second!r}}})")
        """
    )
    assert text.split("\n") == ["0 [] False False", "1 True True True", "True", "True"]


def test_the_set_has_the_algebra_of_sets(linked: Callable[..., str]) -> None:
    text = linked(
        """
        peers.add(1)
        both, none = {first, second}, set()
        print(peers == {second}, {1} == peers, peers != both, peers == [second], peers == {"1"})
        print(peers | {0} == both, {0, 1} | peers == both, peers & {0, 1} == {second}, {0, 1} & peers == {second})
        print(peers - {1} == none, peers - {0} == {second}, both - peers == {first}, {0, 1} - peers == {first})
        print(peers ^ {0, 1} == {first}, {0, 1} ^ peers == {first})
        print(peers <= {0, 1}, peers < {0, 1}, peers >= {1}, peers > {1}, peers <= {0}, peers.isdisjoint([0]))
        print(type(peers | {0}), [type(device) for device in peers & {1}])
        """
    )
    assert text.split("\n") == [
        "True True True False False",
        "True True True True",
        "True True True True",
        "True True",
        "True True True False False True",
        "<class 'set'> [<class 'cuda_core_cffi._device.device.Device'>]",
    ]


@pytest.mark.simulator_only("needs three devices, and counts driver calls")
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_one_driver_call(several: Callable[..., str], change: str) -> None:
    text = several(
        f"""
        from cuda_core_cffi import simulator
        peers.add(1)
        with simulator.trace("cuMemPoolSetAccess") as calls:
            {CHANGES[change]}
        print(len(calls), [device.device_id for device in pool.peer_accessible_by])
        """
    )
    assert text == f"1 {AFTER.get(change, [])}"


@pytest.mark.simulator_only("counts driver calls")
@pytest.mark.parametrize(
    "change",
    [
        "peers.add(1)",
        "peers.add(0)",
        "peers.discard(2)",
        "peers.discard(first)",
        "peers.update()",
        "peers.intersection_update()",
        "peers |= {0, 1}",
        "pool.peer_accessible_by = {0, 1}",
        "pool.peer_accessible_by = pool.peer_accessible_by",
    ],
)
def test_a_change_to_what_is_so_already_is_no_driver_call(several: Callable[..., str], change: str) -> None:
    text = several(
        f"""
        from cuda_core_cffi import simulator
        peers.add(1)
        with simulator.trace("cuMemPoolSetAccess") as calls:
            {change}
        print(len(calls), pool.peer_accessible_by == {{1}})
        """
    )
    assert text == "0 True"


def test_pools_seen_through_several_objects_show_the_same(linked: Callable[..., str]) -> None:
    text = linked(
        """
        one, other = DeviceMemoryResource(0), DeviceMemoryResource(0)
        view = other.peer_accessible_by
        before = list(view)
        one.peer_accessible_by.add(1)
        print(before, list(view) == [second])
        one.peer_accessible_by = before
        print(len(view))
        """
    )
    assert text.split("\n") == ["[] True", "0"]


@pytest.mark.simulator_only("injects a fault")
@pytest.mark.parametrize(
    "change", ["peers.add(2)", "peers.clear()", "peers ^= {1, 2}", "pool.peer_accessible_by = [2]"]
)
def test_a_driver_call_that_fails_changes_nothing(several: Callable[..., str], change: str) -> None:
    text = several(
        f"""
        from cuda_core_cffi import simulator
        peers.add(1)
        with simulator.fail("cuMemPoolSetAccess", "CUDA_ERROR_OUT_OF_MEMORY"):
            try:
                {change}
            except CUDAError as error:
                print(error.call, error.name)
        print(pool.peer_accessible_by == {{second}})
        """
    )
    assert text.split("\n") == ["cuMemPoolSetAccess CUDA_ERROR_OUT_OF_MEMORY", "True"]


@pytest.mark.simulator_only("injects a fault")
@pytest.mark.parametrize("look", ["len(peers)", "1 in peers", "list(peers)", "peers.add(1)", "repr(peers)"])
def test_a_look_that_fails_says_so(several: Callable[..., str], look: str) -> None:
    text = several(
        f"""
        from cuda_core_cffi import simulator
        with simulator.fail("cuMemPoolGetAccess", "CUDA_ERROR_UNKNOWN"):
            try:
                {look}
            except CUDAError as error:
                print(error.call, error.name)
        """
    )
    assert text == "cuMemPoolGetAccess CUDA_ERROR_UNKNOWN"


def test_threads_give_and_take_access_at_once(linked: Callable[..., str]) -> None:
    text = linked(
        """
        import threading
        others = [device.device_id for device in Device.get_all_devices()
                  if device != first and device.can_access_peer(first)]
        failures = []

        def toggle(ordinal):
            try:
                for _ in range(50):
                    peers.add(ordinal)
                    assert ordinal in pool.peer_accessible_by
                    peers.discard(ordinal)
                    assert ordinal not in pool.peer_accessible_by
                peers.add(ordinal)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=toggle, args=(ordinal,)) for ordinal in others]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(failures, peers == set(others))
        """,
        CUDA_SIM_DEVICES="8",
    )
    assert text == "[] True"


# bad input


@pytest.mark.simulator_only("needs devices without a link, and counts driver calls")
@pytest.mark.parametrize("change", ["peers.add(2)", "peers.update([0, 2])", "pool.peer_accessible_by = {2}"])
def test_a_device_that_cannot_have_access_is_refused_by_name(several: Callable[..., str], change: str) -> None:
    text = several(
        f"""
        from cuda_core_cffi import simulator
        with simulator.trace("cuMemPoolSetAccess") as calls:
            try:
                {change}
            except ValueError as error:
                print(error)
        print(len(calls), second.can_access_peer(first))
        peers.discard(2)
        peers.clear()
        """,
        CUDA_SIM_PEER_ACCESS="0",
    )
    assert text.split("\n") == ["device 2 cannot access the memory of device 0", "0 False"]


@pytest.mark.simulator_only("counts driver calls")
@pytest.mark.parametrize("change", ["peers.update([2], [99])", "peers ^= {1, 99}", "pool.peer_accessible_by = [2, 99]"])
def test_one_unknown_device_among_many_changes_nothing(several: Callable[..., str], change: str) -> None:
    text = several(
        f"""
        from cuda_core_cffi import simulator
        peers.add(1)
        with simulator.trace("cuMemPoolSetAccess") as calls:
            try:
                {change}
            except ValueError as error:
                print(error)
        print(len(calls), pool.peer_accessible_by == {{1}})
        """
    )
    assert text.split("\n") == ["device_id must be 0 to 2, not 99", "0 True"]


def test_unknown_devices_and_what_is_no_device_are_refused(pool: DeviceMemoryResource) -> None:
    peers = pool.peer_accessible_by
    for value in (999, None, "0", 0.0, True):
        peers.discard(value)  # what is no device is not in the set
    for change in (peers.add, lambda value: peers.update([value])):
        with pytest.raises(ValueError, match="not 999"):
            change(999)
        for value in (None, "0", 0.0, True):
            with pytest.raises(TypeError, match=type(value).__name__ if value is not None else "None"):
                change(value)
    with pytest.raises(KeyError):
        peers.remove(999)
    for devices in (0, Device(0), None):
        with pytest.raises(TypeError, match="not iterable"):
            pool.peer_accessible_by = devices  # type: ignore[assignment]


def test_the_pool_s_own_device_is_ignored(pool: DeviceMemoryResource, device: Device) -> None:
    peers = pool.peer_accessible_by
    peers.add(device)
    peers.discard(device.device_id)
    pool.peer_accessible_by = [device, 0]
    peers ^= {device}
    assert (len(peers), list(peers), device in peers) == (0, [], False)


def test_the_set_is_a_mutable_set_and_cannot_be_hashed(pool: DeviceMemoryResource) -> None:
    peers = pool.peer_accessible_by
    assert isinstance(peers, collections.abc.MutableSet)
    with pytest.raises(TypeError, match="unhashable"):
        hash(peers)
    with pytest.raises(AttributeError):
        peers.other = 1  # type: ignore[attr-defined]


def test_a_closed_pool_has_no_peers_to_tell(pool: DeviceMemoryResource) -> None:
    peers = pool.peer_accessible_by
    pool.close()
    for look in (lambda: len(peers), lambda: list(peers), lambda: peers.add(0), lambda: peers.clear()):
        with pytest.raises(RuntimeError, match="this DeviceMemoryResource is closed"):
            look()


def test_a_device_reaches_its_own_memory(device: Device) -> None:
    assert device.can_access_peer(device) is True
    assert device.can_access_peer(0) is True
    with pytest.raises(ValueError, match="not 999"):
        device.can_access_peer(999)


@pytest.mark.simulator_only("a GPU does not report the address")
def test_a_kernel_without_access_to_a_pool_names_what_gives_it():
    code = f"""
from cuda_core_cffi import CUDAError, Device, DeviceMemoryResource, LaunchConfig, ObjectCode, launch
first, second = Device(0), Device(1)
second.set_current()
with DeviceMemoryResource(1).allocate(64, second.default_stream) as buffer:
    second.sync()
    first.set_current()
    stream = first.create_stream()
    launch(stream, LaunchConfig(grid=1, block=1), ObjectCode.from_ptx({PTX!r}).get_kernel("store"), buffer, 1)
    for wait in (stream.sync, first.sync):
        try:
            wait()
        except CUDAError as error:
            print(error)
    address = f"{{buffer.handle:#x}}"
print(address)
import os
os._exit(0)
"""
    *texts, address = run_python(code, CUDA_SIM_DEVICES="2").stdout.strip().splitlines()
    assert len(texts) == 2
    for text in texts:
        assert "kernel store" in text
        assert address in text
        assert "device 0 has no access to memory of device 1" in text
        assert "peer_accessible_by" in text


# the end of a pool


@pytest.mark.parametrize("ends", ["pool.close()", "del pool, peers"], ids=["closed", "collected"])
def test_a_pool_that_reuses_the_handle_of_another_has_no_peers(linked: Callable[..., str], ends: str) -> None:
    text = linked(
        f"""
        import time
        peers.add(second)
        pool.allocate(SIZE).close()
        handle = int(pool.handle)
        {ends}
        while lib.ccc_reclaim():
            time.sleep(0.001)
        pools = []
        for _ in range(10):  # real drivers may give other handles first
            pools.append(DeviceMemoryResource(first, DeviceMemoryResourceOptions()))
            if int(pools[-1].handle) == handle:
                break
        print([list(each.peer_accessible_by) for each in pools] == [[]] * len(pools))
        """
    )
    assert text == "True"


def test_access_lasts_until_the_work_that_uses_the_memory_is_done(linked: Callable[..., str]) -> None:
    text = linked(
        """
        import time
        sys.path.insert(0, sys.argv[1])
        from helpers import Gate
        peers.add(second)
        memory = pool.allocate(SIZE)
        memory.fill(1, stream=first.default_stream)
        first.sync()
        second.set_current()
        stream, add_one = second.create_stream(), kernel("add_one")
        target = second.allocate(SIZE, stream)
        with Gate(stream) as gate:
            launch(stream, LaunchConfig(grid=1, block=32), add_one, memory)
            memory.copy_to(target, stream=stream)
            memory.close(stream)
            pool.close()
            lib.ccc_reclaim()
            time.sleep(0.05)
            gate.open()
            stream.sync()
        print(content(target)[:33] == bytes([2] * 32 + [1]))
        while lib.ccc_reclaim():
            time.sleep(0.001)
        first.set_current()
        print(live_objects()["pool"])
        """
    )
    assert text.split("\n") == ["True", "0"]


@pytest.mark.simulator_only("counts driver calls, and makes them fail")
def test_access_is_taken_from_each_device_by_itself(several: Callable[..., str]) -> None:
    text = several(
        """
        import time, warnings
        from cuda_core_cffi import simulator
        peers.update([1, 2])
        with warnings.catch_warnings(record=True) as caught, simulator.trace() as calls:
            warnings.simplefilter("always")
            simulator.fail("cuMemPoolSetAccess", "CUDA_ERROR_UNKNOWN")
            pool.close()
            while lib.ccc_reclaim():
                time.sleep(0.001)
            first.create_stream().close()  # shows what cleanup could not do
        print([name for name in calls.names if name.startswith("cuMemPool")])
        print([warning.category.__name__ for warning in caught], "cuMemPoolSetAccess" in str(caught[0].message))
        """
    )
    assert text.split("\n") == [
        "['cuMemPoolGetAccess', 'cuMemPoolSetAccess', 'cuMemPoolGetAccess', 'cuMemPoolSetAccess', 'cuMemPoolDestroy']",
        "['CUDAWarning'] True",
    ]


@pytest.mark.simulator_only("counts driver calls")
def test_a_pool_without_peers_is_destroyed_at_once(several: Callable[..., str]) -> None:
    text = several(
        """
        from cuda_core_cffi import simulator
        with simulator.trace() as calls:
            pool.close()
        print([name for name in calls.names if name.startswith("cuMemPool")])
        """
    )
    assert text == "['cuMemPoolDestroy']"
