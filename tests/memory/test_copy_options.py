# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies with options."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import weakref

import numpy
import pytest
from buffers import DATA, SIZE, content, fresh, legacy_streams, write
from helpers import output_of

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Device,
    Host,
    Stream,
    UnavailableError,
    ffi,
    lib,
    simulator,
)
from cuda_core_cffi.utils import CopyOptions, MemcpyOverlapMode, MemcpySrcAccessOrder, copy_batch

pytestmark = pytest.mark.usefixtures("device")

METHODS = ["copy_to", "copy_from"]


def copy_by(method: str, src, dst, **keywords) -> None:
    """Copy ``src`` to ``dst`` by the method of one of them."""
    if method == "copy_to":
        assert src.copy_to(dst, **keywords) is dst
    else:
        assert dst.copy_from(src, **keywords) is None


# The options themselves


def test_the_defaults_ask_for_nothing():
    options = CopyOptions()
    assert options.src_access_order is MemcpySrcAccessOrder.STREAM
    assert options.overlap_mode is MemcpyOverlapMode.DEFAULT
    assert (options.src_location_hint, options.dst_location_hint) == (None, None)


@pytest.mark.parametrize("order", MemcpySrcAccessOrder)
@pytest.mark.parametrize("mode", MemcpyOverlapMode)
def test_strings_become_members(order, mode):
    options = CopyOptions(str(order), overlap_mode=str(mode))
    assert options.src_access_order is order
    assert options.overlap_mode is mode
    assert options == CopyOptions(order, overlap_mode=mode)


@pytest.mark.parametrize("field", ["src_access_order", "overlap_mode"])
@pytest.mark.parametrize("wrong", ["STREAM", "", 1, None, b"any"])
def test_what_is_no_member_is_refused(field, wrong):
    with pytest.raises(ValueError, match=rf"{field} must be one of '.*', not {wrong!r}"):
        CopyOptions(**{field: wrong})


@pytest.mark.parametrize("field", ["src_location_hint", "dst_location_hint"])
@pytest.mark.parametrize("wrong", [0, -1, "device", True, Device])
def test_a_hint_is_a_place(field, wrong):
    with pytest.raises(TypeError, match=f"{field} must be a Device, a Host or None, not {type(wrong).__name__}"):
        CopyOptions(**{field: wrong})


def test_options_are_values(device):
    one, same = CopyOptions("any", device, Host(0)), CopyOptions("any", Device(0), Host(0))
    assert one == same
    assert hash(one) == hash(same)
    assert one != CopyOptions("any", device, Host())
    assert len({one, same, CopyOptions()}) == 2
    assert weakref.ref(one)() is one
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


@pytest.mark.parametrize("field", ["src_access_order", "src_location_hint", "dst_location_hint", "overlap_mode"])
def test_options_are_frozen(field):
    options = CopyOptions()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(options, field, None)
    assert options == CopyOptions()


# Copies


@pytest.mark.parametrize("mode", MemcpyOverlapMode)
@pytest.mark.parametrize("order", ["stream", "any"])
@pytest.mark.parametrize("method", METHODS)
def test_options_do_not_change_what_is_copied(device, stream, method, order, mode):
    for source, destination in (("device", "device"), ("device", "pinned"), ("pinned", "device")):
        with fresh(source, device, stream) as src, fresh(destination, device, stream) as dst:
            write(src, DATA, stream)
            copy_by(method, src, dst, stream=stream, options=CopyOptions(order, overlap_mode=mode))
            assert content(dst, stream) == DATA


@pytest.mark.parametrize("place", [Device, Host, lambda: Host(0), Host.numa_current], ids=["gpu", "host", "0", "numa"])
def test_hints_do_not_change_what_is_copied(device, stream, place):
    with device.allocate(SIZE, stream) as src, device.allocate(SIZE, stream) as dst:
        write(src, DATA, stream)
        src.copy_to(dst, stream=stream, options=CopyOptions(src_location_hint=place(), dst_location_hint=place()))
        assert content(dst, stream) == DATA
        dst.fill(0, stream=stream)
        copy_batch(stream, [src], [dst], options=CopyOptions(src_location_hint=place(), dst_location_hint=place()))
        assert content(dst, stream) == DATA


def test_options_may_be_a_mapping(device, stream):
    with device.allocate(SIZE, stream) as src:
        write(src, DATA, stream)
        with src.copy_to(stream=stream, options={"src_access_order": "any"}) as dst:
            assert content(dst, stream) == DATA


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ("any", TypeError, "options must be CopyOptions"),
        ([CopyOptions()], TypeError, "options must be CopyOptions"),
        ({"order": "any"}, TypeError, "no option 'order'"),
        ({"src_access_order": "early"}, ValueError, "src_access_order"),
    ],
)
def test_wrong_options_are_refused(device, stream, method, wrong, error, match):
    with device.allocate(SIZE, stream) as src, device.allocate(SIZE, stream) as dst:
        src.fill(1, stream=stream)
        dst.fill(2, stream=stream)
        with pytest.raises(error, match=match):
            copy_by(method, src, dst, stream=stream, options=wrong)
        assert content(dst, stream) == b"\2" * SIZE


def test_options_work_in_the_per_thread_default_stream(device):
    stream = PER_THREAD_DEFAULT_STREAM
    with device.allocate(SIZE, stream) as src, device.allocate(SIZE, stream) as dst:
        write(src, DATA, stream)
        src.copy_to(dst, stream=stream, options=CopyOptions())
        assert content(dst, stream) == DATA


@pytest.mark.parametrize("method", METHODS)
def test_the_legacy_default_stream_takes_no_options(device, stream, method):
    with device.allocate(SIZE, stream) as src, device.allocate(SIZE, stream) as dst:
        stream.sync()
        for legacy in legacy_streams():
            for target in (dst, numpy.zeros(SIZE, "u1")) if method == "copy_to" else (dst,):
                with pytest.raises(TypeError, match=f"Buffer.{method}: the legacy default stream takes no copies with"):
                    copy_by(method, src, target, stream=legacy, options=CopyOptions())
            copy_by(method, src, dst, stream=legacy)
            legacy.sync()


@pytest.mark.simulator_only("only there driver calls are traced")
def test_nothing_is_allocated_for_a_copy_that_is_refused(device, stream):
    with device.allocate(SIZE, stream) as src:
        for queue, options in ((LEGACY_DEFAULT_STREAM, {}), (stream, {"src_access_order": "during_api_call"})):
            with simulator.trace() as trace, pytest.raises((TypeError, UnavailableError)):
                src.copy_to(stream=queue, options=options)
            assert trace.names == []
        src.close()
        with simulator.trace() as trace, pytest.raises(RuntimeError, match="this Buffer is closed"):
            src.copy_to(stream=stream)
        assert trace.names == []


class Capture:
    """A stream that is captured, with what becomes of it."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        assert lib.cuStreamBeginCapture(self.stream.cdata, lib.CU_STREAM_CAPTURE_MODE_RELAXED) == 0

    def __exit__(self, *error: object) -> None:
        graph = ffi.new("CUgraph *")
        assert lib.cuStreamEndCapture(self.stream.cdata, graph) == 0  # it was not invalidated
        assert lib.cuGraphDestroy(graph[0]) == 0


def test_a_captured_stream_takes_no_options_batches_or_objects(device, stream):
    memory = bytearray(SIZE)
    with device.allocate(SIZE, stream) as src, device.allocate(SIZE, stream) as dst:
        stream.sync()
        with Capture(stream):
            for refused in (
                lambda: src.copy_to(dst, stream=stream, options=CopyOptions()),
                lambda: dst.copy_from(src, stream=stream, options=CopyOptions()),
                lambda: src.copy_to(memory, stream=stream),
                lambda: dst.copy_from(DATA, stream=stream),
                lambda: copy_batch(stream, [src], [dst]),
            ):
                with pytest.raises(TypeError, match="being captured"):
                    refused()
            src.copy_to(dst, stream=stream)  # a plain one becomes part of the graph


# Other drivers

OTHER_DRIVER = """
from cuda_core_cffi import Device, UnavailableError, simulator
from cuda_core_cffi.utils import CopyOptions
device = Device(0)
device.set_current()
stream = device.create_stream()
src, dst, out = device.allocate(64, stream), device.allocate(64, stream), bytearray(64)
for order in ("stream", "any", "during_api_call"):
    src.copy_from(bytes([len(order)]) * 64, stream=stream)
    for copy in (
        lambda: src.copy_to(dst, stream=stream, options=CopyOptions(order)),
        lambda: src.copy_to(out, stream=stream, options=CopyOptions(order)),
    ):
        with simulator.trace() as trace:
            try:
                copy()
            except UnavailableError as error:
                print(order, "refused", "13.2" in str(error), trace.names)
                continue
        print(order, [name for name in trace.names if "Memcpy" in name])
    dst.copy_to(bytearray(64), stream=stream)
    print(set(out))
"""


@pytest.mark.simulator_only("only there the driver's age can be chosen")
def test_a_driver_that_has_attributes_gets_them():
    name = "['cuMemcpyWithAttributesAsync']"
    expected = "".join(
        f"{order} {name}\n{order} {name}\n{{{len(order)}}}\n" for order in ("stream", "any", "during_api_call")
    )
    assert output_of(OTHER_DRIVER, CUDA_SIM_DRIVER_VERSION="13020") == expected.strip()


@pytest.mark.simulator_only("only there the driver's age can be chosen")
@pytest.mark.parametrize("version", ["12000", "12080", "13000", "13010"])
def test_an_older_driver_copies_in_stream_order_or_not_at_all(version):
    plain = "['cuMemcpyAsync']"
    lines = [f"{order} {plain}\n{order} {plain}\n{{{len(order)}}}" for order in ("stream", "any")]
    lines.append("during_api_call refused True []\n" * 2 + "{3}")
    assert output_of(OTHER_DRIVER, CUDA_SIM_DRIVER_VERSION=version) == "\n".join(lines)
