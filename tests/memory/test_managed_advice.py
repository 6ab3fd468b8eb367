# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the driver is told about the use of managed memory, through the attributes of a buffer."""

from __future__ import annotations

import pytest
from buffers import ManagedResource
from helpers import output_of

from cuda_core_cffi import (
    CUDAError,
    Device,
    Host,
    ManagedBuffer,
    ManagedMemoryResource,
    ffi,
    lib,
    simulator,
)

SIZE = 2**20
ADVICE = {"read_mostly": True, "preferred_location": Host(), "accessed_by": [Host()]}
UNTOLD = {"read_mostly": False, "preferred_location": None, "accessed_by": set()}


@pytest.fixture
def buffer(stream):
    """Return managed memory for which the driver takes advice."""
    with ManagedResource().allocate(SIZE, stream) as buffer:
        yield buffer


@pytest.fixture
def of_a_pool(stream):
    """Return managed memory of a pool."""
    pool = ManagedMemoryResource({})
    with pool.allocate(SIZE, stream) as buffer:
        yield buffer
    pool.close()


@pytest.fixture
def device_memory(device, stream):
    """Return a ManagedBuffer whose memory is not managed."""
    with device.allocate(SIZE, stream) as memory, ManagedBuffer.from_handle(memory.handle, SIZE) as buffer:
        yield buffer


# Single attributes


@pytest.mark.parametrize(("name", "value"), UNTOLD.items())
def test_of_new_memory_nothing_is_known(buffer, of_a_pool, name, value):
    assert getattr(buffer, name) == value
    assert getattr(of_a_pool, name) == value


@pytest.mark.parametrize("value", [True, 1])
def test_read_mostly_is_written_to_the_driver(buffer, value):
    buffer.read_mostly = value
    assert buffer.read_mostly is True
    assert ManagedBuffer.from_handle(buffer.handle, SIZE, owner=buffer).read_mostly is True
    buffer.read_mostly = False
    assert buffer.read_mostly is False


@pytest.mark.parametrize("place", [lambda: Device(0), Host])
def test_a_preferred_location_is_written_to_the_driver(buffer, place):
    buffer.preferred_location = place()
    assert buffer.preferred_location == place()
    buffer.preferred_location = None
    assert buffer.preferred_location is None


@pytest.mark.parametrize("node", [Host(0), Host.numa_current()])
def test_a_node_of_the_host_may_be_preferred(buffer, node):
    buffer.preferred_location = Host()
    buffer.preferred_location = node
    assert buffer.preferred_location in (Host(), Host(0))  # with one node, drivers may not tell it from the host


@pytest.mark.parametrize("wrong", [0, -1, "host", [Host()]])
def test_a_place_that_is_none_is_a_type_error(buffer, wrong):
    with pytest.raises(TypeError, match=r"preferred_location needs a Device or a Host, not (int|str|list)"):
        buffer.preferred_location = wrong
    assert buffer.preferred_location is None


def test_advice_for_a_part_is_not_advice_for_all(buffer):
    with ManagedBuffer.from_handle(buffer.handle, SIZE // 2, owner=buffer) as half:
        half.read_mostly = True
        half.preferred_location = Host()
        half.accessed_by = [Device(0)]
        assert (half.read_mostly, half.preferred_location, half.accessed_by) == (True, Host(), {Device(0)})
    assert {name: getattr(buffer, name) for name in UNTOLD} == UNTOLD


@pytest.mark.parametrize("name", ADVICE)
def test_advice_for_empty_memory_changes_nothing(stream, name):
    pool = ManagedMemoryResource({})
    with pool.allocate(0, stream) as empty:
        setattr(empty, name, ADVICE[name])
        assert getattr(empty, name) == UNTOLD[name]
    pool.close()


@pytest.mark.parametrize("name", ADVICE)
def test_a_closed_buffer_takes_and_gives_no_advice(of_a_pool, name):
    of_a_pool.close()
    with pytest.raises(RuntimeError, match="this ManagedBuffer is closed"):
        setattr(of_a_pool, name, ADVICE[name])
    with pytest.raises(RuntimeError, match="this ManagedBuffer is closed"):
        list([getattr(of_a_pool, name)] if name != "accessed_by" else of_a_pool.accessed_by)


@pytest.mark.parametrize("name", ADVICE)
def test_memory_that_is_not_managed_has_no_advice(device_memory, name):
    with pytest.raises(ValueError, match=f"{name} needs managed memory"):
        setattr(device_memory, name, ADVICE[name])
    with pytest.raises(ValueError, match="needs managed memory"):
        list([getattr(device_memory, name)] if name != "accessed_by" else device_memory.accessed_by)


@pytest.mark.parametrize("name", ADVICE)
def test_where_a_pools_memory_takes_no_advice_the_error_says_what_does(of_a_pool, name):
    try:
        setattr(of_a_pool, name, ADVICE[name])
    except CUDAError as error:
        assert error.name == "CUDA_ERROR_NOT_SUPPORTED"  # noqa: PT017
        assert "wrap memory from cuMemAllocManaged with ManagedBuffer.from_handle" in str(error)  # noqa: PT017
        assert getattr(of_a_pool, name) == UNTOLD[name]
    else:  # perhaps a later driver
        assert getattr(of_a_pool, name) in (ADVICE[name], {Host()})


def test_advice_of_a_pools_memory_is_read_where_no_context_is_current(device, of_a_pool):
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    try:
        assert {name: getattr(of_a_pool, name) for name in ("read_mostly", "preferred_location")} == {
            "read_mostly": False,
            "preferred_location": None,
        }
    finally:
        device.set_current()


def test_advice_for_wrapped_memory_needs_a_current_context(device, buffer):
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    try:
        with pytest.raises(CUDAError, match="set_current"):
            buffer.read_mostly = True
    finally:
        device.set_current()


# accessed_by


def test_accessed_by_is_a_set_in_the_driver(buffer):
    devices = buffer.accessed_by
    devices.add(Device(0))
    devices.add(Device(0))
    assert (list(devices), len(devices), Device(0) in devices, Host() in devices) == ([Device(0)], 1, True, False)
    buffer.accessed_by.add(Host())
    assert devices == {Device(0), Host()}  # a view, not a copy
    devices.discard(Device(0))
    devices.discard(Device(0))
    assert devices == {Host()}
    assert repr(devices) == "AccessedBySetProxy({Host()})"


def test_accessed_by_does_what_sets_do(buffer):
    devices = buffer.accessed_by
    devices.add(Device(0))
    assert devices | {Host()} == {Device(0), Host()}
    assert type(devices & {Host()}) is set
    assert devices == {Device(0)}
    assert devices <= {Device(0), Host()}
    with pytest.raises(KeyError):
        devices.remove(Host())
    devices.remove(Device(0))
    with pytest.raises(KeyError):
        devices.pop()
    devices.add(Host())
    assert devices.pop() == Host()
    assert len(devices) == 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(devices)


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (lambda s: s.__ior__([Host()]), {"device", "host"}),
        (lambda s: s.__iand__([Host()]), set()),
        (lambda s: s.__iand__({Device(0), 5}), {"device"}),
        (lambda s: s.__isub__({Device(0), 5}), set()),
        (lambda s: s.__ixor__({Device(0), Host()}), {"host"}),
        (lambda s: s.__ior__(s), {"device"}),
        (lambda s: s.clear(), set()),
    ],
)
def test_bulk_changes(buffer, change, after):
    places = {"device": Device(0), "host": Host()}
    buffer.accessed_by.add(Device(0))
    change(buffer.accessed_by)
    assert buffer.accessed_by == {places[name] for name in after}


def test_accessed_by_can_be_assigned(buffer):
    for places in ([Device(0), Host()], {Host()}, (), iter([Device(0), Device(0)])):
        wanted = list(places)
        buffer.accessed_by = iter(wanted)
        assert buffer.accessed_by == set(wanted)
    buffer.accessed_by |= {Host()}
    assert buffer.accessed_by == {Device(0), Host()}


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (Host(0), ValueError, r"not a NUMA node.*numa_id=0"), (Host.numa_current(), ValueError, "numa_current"),
        (0, TypeError, "not int: 0"), (None, TypeError, "NoneType"), ("device", TypeError, "str"),
    ],
)  # fmt: skip
def test_what_cannot_be_in_the_set_is_refused_before_anything_changes(buffer, wrong, error, text):
    buffer.accessed_by = [Host()]
    for change in (
        lambda: buffer.accessed_by.add(wrong),
        lambda: setattr(buffer, "accessed_by", [Device(0), wrong]),
        lambda: buffer.accessed_by.__ior__([Device(0), wrong]),
        lambda: buffer.accessed_by.__ixor__([Host(), Device(0), wrong]),
    ):
        with pytest.raises(error, match=text):
            change()
        assert buffer.accessed_by == {Host()}
    assert wrong not in buffer.accessed_by
    buffer.accessed_by.discard(wrong)
    assert buffer.accessed_by == {Host()}


@pytest.mark.parametrize("wrong", [None, 5, Device])
def test_what_is_no_collection_cannot_be_assigned(buffer, wrong):
    with pytest.raises(TypeError, match="not iterable"):
        buffer.accessed_by = wrong


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("before", [set(), {Host()}, {Device(0)}, {Device(0), Host()}])
@pytest.mark.parametrize("after", [set(), {Host()}, {Device(0)}, {Device(0), Host()}])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_bulk_change_that_fails_half_way_is_undone(buffer, before, after, nth):
    buffer.accessed_by = before
    if len(before ^ after) < nth:
        return
    with (
        simulator.fail("cuMemAdvise_v2", "CUDA_ERROR_UNKNOWN", nth),
        pytest.raises(CUDAError, match="cuMemAdvise failed: CUDA_ERROR_UNKNOWN") as caught,
    ):
        buffer.accessed_by = after
    assert buffer.accessed_by == before
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_what_could_not_be_undone_is_told(buffer):
    with (
        simulator.fail("cuMemAdvise_v2", "CUDA_ERROR_UNKNOWN", 2, count=2),
        pytest.raises(CUDAError, match="CUDA_ERROR_UNKNOWN") as caught,
    ):
        buffer.accessed_by = [Device(0), Host()]
    (left,) = buffer.accessed_by
    assert caught.value.__notes__[0].startswith(f"and {left!r} could not be put back: cuMemAdvise failed")


# Older drivers

OLDER_DRIVER = """
    from cuda_core_cffi import *
    Device(0).set_current()
    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAllocManaged(pointer, 4096, 1) == 0
    buffer = ManagedBuffer.from_handle(pointer[0], 4096)
    print(buffer.read_mostly, buffer.preferred_location, buffer.accessed_by)
    def attempt(name, value):
        try:
            setattr(buffer, name, value)
            print(getattr(buffer, name))
        except (TypeError, UnavailableError) as error:
            print(type(error).__name__, error)
    attempt("preferred_location", Host())
    attempt("preferred_location", Host(0))
    attempt("accessed_by", [Device(0)])
    lib.cuMemFree(pointer[0])
"""
NODE = (
    "TypeError ManagedBuffer.preferred_location: Host(numa_id=0) needs a driver for CUDA 13.0; the installed one is "
    "for {}, where Host() is the only place on the host"
)
TOO_OLD = (
    "UnavailableError cuMemAdvise needs a driver for CUDA 12.2; the installed one is for 12.1: update the NVIDIA driver"
)


@pytest.mark.simulator_only("the simulated driver can be made older")
@pytest.mark.parametrize(
    ("version", "said"),
    [
        (
            "12090",
            [
                "Host()",
                NODE.format("12.9"),
                "AccessedBySetProxy({<Device 0 (Simulated GPU (compute capability 9.0))>})",
            ],
        ),
        ("12010", [TOO_OLD, NODE.format("12.1"), TOO_OLD]),
    ],
)
def test_drivers_for_cuda_12_know_no_nodes_and_the_first_take_no_advice(version, said):
    lines = output_of(OLDER_DRIVER, CUDA_SIM_DRIVER_VERSION=version).splitlines()
    assert lines[0] == "False None AccessedBySetProxy(set())"
    assert lines[1:] == said
