# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""More dynamic shared memory than a kernel may have without its attribute: 48 KiB, with static shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    Device,
    Kernel,
    LaunchBatch,
    LaunchConfig,
    ObjectCode,
    PreparedLaunch,
    Stream,
    launch,
    lib,
    simulator,
)
from cuda_core_cffi.graph import GraphDefinition

STATIC = 40_000
MUCH, MORE = 60_000, 64_000
PORTABLE = 48 * 1024

PTX = f"""
.version 7.8
.target sm_80
.address_size 64
.extern .shared .align 4 .b8 scratch[];

.visible .entry last(.param .u64 out, .param .u32 offset)
{{
    .reg .u32 %r<4>;
    .reg .u64 %p;
    ld.param.u64 %p, [out];
    ld.param.u32 %r1, [offset];
    mov.u32 %r0, scratch;
    add.u32 %r0, %r0, %r1;
    mov.u32 %r2, 7;
    st.shared.u32 [%r0], %r2;
    ld.shared.u32 %r3, [%r0];
    st.global.u32 [%p], %r3;
    ret;
}}

.visible .entry last_of_two(.param .u64 out, .param .u32 offset)
{{
    .shared .align 4 .b8 fixed[{STATIC}];
    .reg .u32 %r<4>;
    .reg .u64 %p;
    ld.param.u64 %p, [out];
    ld.param.u32 %r1, [offset];
    mov.u32 %r2, 7;
    st.shared.u32 [fixed], %r2;
    mov.u32 %r0, scratch;
    add.u32 %r0, %r0, %r1;
    st.shared.u32 [%r0], %r2;
    ld.shared.u32 %r3, [%r0];
    st.global.u32 [%p], %r3;
    ret;
}}
"""


@pytest.fixture
def code(device: Device) -> Iterator[ObjectCode]:
    """Return code of which no kernel has an attribute that was set."""
    if device.properties.max_shared_memory_per_block_optin < MORE:
        pytest.skip("the device has not so much shared memory for a block")
    with ObjectCode.from_ptx(PTX.encode()) as made:
        yield made


@pytest.fixture
def kernel(code: ObjectCode) -> Kernel:
    """Return a kernel that uses the end of its dynamic shared memory."""
    return code.get_kernel("last")


@pytest.fixture
def out(device: Device, stream: Stream) -> Iterator[Buffer]:
    """Return memory that is 0."""
    with device.allocate(4, stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


def config(size: int) -> LaunchConfig:
    return LaunchConfig(grid=1, block=1, shmem_size=size)


def as_node(stream: Stream, size: int, kernel: Kernel, out: Buffer) -> None:
    with GraphDefinition() as definition:
        definition.launch(config(size), kernel, out, size - 4)
        run(definition.instantiate(), stream)


def as_updated_node(stream: Stream, size: int, kernel: Kernel, out: Buffer) -> None:
    with GraphDefinition() as definition:
        node = definition.launch(config(8), kernel, out, 0)
        node.update(config=config(size), args=(out, size - 4))
        run(definition.instantiate(), stream)


def captured(stream: Stream, size: int, kernel: Kernel, out: Buffer) -> None:
    with stream.create_graph_builder() as builder:
        builder.begin_building()
        try:
            launch(builder, config(size), kernel, out, size - 4)
        except CUDAError:
            assert builder.end_building() is builder  # the capture goes on
            raise
        run(builder.end_building().complete(), stream)


def run(graph: Any, stream: Stream) -> None:
    with graph:
        graph.launch(stream)
        stream.sync()


FORMS: dict[str, Callable[[Stream, int, Kernel, Buffer], None]] = {
    "launch": lambda stream, size, kernel, out: launch(stream, config(size), kernel, out, size - 4),
    "prepared launch": lambda stream, size, kernel, out: PreparedLaunch(config(size), kernel, Buffer, int).launch(
        stream, out, size - 4
    ),
    "batch": lambda stream, size, kernel, out: LaunchBatch(
        [(PreparedLaunch(config(size), kernel, Buffer, int), out, size - 4)]
    ).launch(stream),
    "captured launch": captured,
    "node": as_node,
    "updated node": as_updated_node,
}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def content(out: Buffer, stream: Stream) -> int:
    found = out.copy_to(bytearray(4), stream=stream)
    stream.sync()
    return int.from_bytes(found, "little")


@forms
@pytest.mark.parametrize(("name", "size"), [("last", MUCH), ("last_of_two", 20_000)])
def test_a_kernel_gets_more_than_48_kib(code, stream, out, form, name, size):
    kernel = code.get_kernel(name)
    form(stream, size, kernel, out)
    assert content(out, stream) == 7
    assert kernel.attributes.max_dynamic_shared_size_bytes == size


@forms
def test_more_than_the_device_has_is_an_error_with_both_numbers(device, kernel, stream, out, form):
    most = device.properties.max_shared_memory_per_block_optin
    with pytest.raises(CUDAError) as caught:
        form(stream, most + 4, kernel, out)
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"
    assert f"{most + 4} bytes of shmem_size are more than the {most} of {device.name}" in str(caught.value)
    assert kernel.attributes.max_dynamic_shared_size_bytes == PORTABLE


def test_static_shared_memory_is_named_in_the_error(device, code, stream, out):
    most = device.properties.max_shared_memory_per_block_optin - STATIC
    with pytest.raises(CUDAError, match=rf" {most + 4} bytes .* the {most} of .*, besides {STATIC} of static shared"):
        launch(stream, config(most + 4), code.get_kernel("last_of_two"), out, 0)


@pytest.mark.simulator_only("traces driver calls")
def test_the_driver_is_asked_once_for_a_kernel_and_size(kernel, stream, out):
    launch(stream, config(4), kernel, out, 0)
    much, more = config(MUCH), config(MORE)
    ask, change, start = "cuKernelGetAttribute", "cuKernelSetAttribute", "cuLaunchKernelEx"
    expected = {much: [[ask, change, start], [start]], more: [[ask, change, start], [start]], config(4): [[start]] * 2}
    for shape, calls in expected.items():
        for names in calls:
            with simulator.trace() as trace:
                launch(stream, shape, kernel, out, 0)
            assert trace.names == names
    with simulator.trace() as trace:
        launch(stream, much, kernel, out, 0)
    assert trace.names == [start]


def test_the_attribute_is_never_made_smaller_by_a_launch(code, kernel, stream, out):
    launch(stream, config(MORE), kernel, out, 0)
    again = code.get_kernel("last")
    launch(stream, config(MUCH), again, out, 0)
    assert kernel.attributes.max_dynamic_shared_size_bytes == MORE


@pytest.mark.parametrize("who", ["this package", "another library"])
def test_a_launch_sets_it_again_after_it_was_made_smaller(device, kernel, stream, out, who):
    launch(stream, config(MUCH), kernel, out, 0)
    if who == "this package":
        kernel.attributes.max_dynamic_shared_size_bytes = 16
    else:
        attribute = lib.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        assert lib.cuKernelSetAttribute(attribute, 16, kernel.cdata, device.device_id) == 0
    assert kernel.attributes.max_dynamic_shared_size_bytes == 16
    launch(stream, config(MUCH), kernel, out, MUCH - 4)
    assert content(out, stream) == 7


# Setting the attributes


def test_the_attributes_can_be_set(device, kernel, code):
    kernel.attributes.max_dynamic_shared_size_bytes = MUCH
    kernel.attributes[device].preferred_shared_memory_carveout = 50
    shown = code.get_kernel("last").attributes
    assert (shown.max_dynamic_shared_size_bytes, shown.preferred_shared_memory_carveout) == (MUCH, 50)
    kernel.attributes.preferred_shared_memory_carveout = -1
    assert shown.preferred_shared_memory_carveout == -1


def test_a_size_that_the_device_has_not_is_refused(device, code):
    most = device.properties.max_shared_memory_per_block_optin - STATIC
    attributes = code.get_kernel("last_of_two").attributes
    attributes.max_dynamic_shared_size_bytes = most
    for wrong in (-1, most + 1, 2**40):
        with pytest.raises(ValueError, match=f"must be 0 to {most} on device {device.device_id}, not {wrong}"):
            attributes.max_dynamic_shared_size_bytes = wrong
    for wrong in (-2, 101):
        with pytest.raises(ValueError, match=f"must be -1 to 100 on device {device.device_id}, not {wrong}"):
            attributes.preferred_shared_memory_carveout = wrong
    with pytest.raises(TypeError, match="max_dynamic_shared_size_bytes must be"):
        attributes.max_dynamic_shared_size_bytes = 1.5
    assert attributes.max_dynamic_shared_size_bytes == most


def test_what_cannot_be_set_is_read_only(kernel):
    with pytest.raises(AttributeError):
        kernel.attributes.num_regs = 1


def test_a_closed_kernel_has_nothing_to_set(code):
    kernel = code.get_kernel("last")
    attributes = kernel.attributes
    kernel.close()
    for name in ("max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout"):
        with pytest.raises(RuntimeError, match="closed"):
            setattr(attributes, name, 0)
