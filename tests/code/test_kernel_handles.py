# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that are made from the number of a handle: what keeps their code loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from graphs import ONE, content
from helpers import alive, collect, in_threads, soon
from scenarios import PTX

from cuda_core_cffi import Buffer, CUDAError, Device, Kernel, ObjectCode, Stream, launch

NAME = "store"
MANY = 200  # more than the table of kernels has room for at first


def libraries() -> int:
    """Return how many libraries are loaded."""
    collect()
    return alive()["library"]


def many_kernels() -> bytes:
    """Return code with many kernels: each stores a number of its own."""
    head, _, body = PTX.partition(b".visible .entry")
    body = b".visible .entry" + body
    kernels = [
        body.replace(b"store(", b"store%d(" % number).replace(b"[%rd2], %r1", b"[%%rd2], %d" % number)
        for number in range(MANY)
    ]
    return head + b"".join(kernels)


@pytest.fixture
def code(device: Device) -> Iterator[ObjectCode]:
    """Return code that nobody else has."""
    with ObjectCode.from_ptx(PTX) as code:
        yield code


@pytest.fixture
def loaded(device: Device) -> int:
    """Return how many libraries were loaded before the test."""
    return libraries()


def check(kernel: Kernel, memory: list[Buffer], stream: Stream) -> None:
    """Check that a kernel can be launched, and tells about itself."""
    launch(stream, ONE, kernel, memory[0].handle, 7)
    assert content(memory[0], stream, 1) == b"\7"
    assert kernel.attributes.num_regs >= 0
    assert kernel.num_arguments == 2


def test_it_keeps_its_code_when_all_else_is_gone(loaded: int, memory: list[Buffer], stream: Stream) -> None:
    code = ObjectCode.from_ptx(PTX)
    kernel = code.get_kernel(NAME)
    with Kernel.from_handle(kernel.handle) as other:
        del kernel, code
        assert libraries() == loaded + 1
        check(other, memory, stream)
    assert libraries() == loaded


def test_it_keeps_its_code_when_all_else_is_closed(code: ObjectCode, memory: list[Buffer], stream: Stream) -> None:
    kernel = code.get_kernel(NAME)
    other = Kernel.from_handle(kernel.handle)
    kernel.close()
    code.close()
    check(other, memory, stream)
    other.close()


def test_one_of_closed_code_is_found_while_a_kernel_keeps_it(
    code: ObjectCode, loaded: int, memory: list[Buffer], stream: Stream
) -> None:
    first = code.get_kernel(NAME)
    code.close()
    second = Kernel.from_handle(first.handle)
    first.close()
    third = Kernel.from_handle(second.handle)
    second.close()
    check(third, memory, stream)
    third.close()
    assert libraries() == loaded


def test_closing_it_leaves_the_code_to_the_others(code: ObjectCode, memory: list[Buffer], stream: Stream) -> None:
    kernel = code.get_kernel(NAME)
    for _ in range(3):
        Kernel.from_handle(kernel.handle).close()
    check(kernel, memory, stream)


def test_the_code_may_be_named(code: ObjectCode, memory: list[Buffer], stream: Stream) -> None:
    with Kernel.from_handle(code.get_kernel(NAME).handle, code) as kernel:
        code.close()
        check(kernel, memory, stream)


def test_other_code_is_refused(code: ObjectCode, loaded: int) -> None:
    kernel = code.get_kernel(NAME)
    with ObjectCode.from_ptx(PTX) as same, ObjectCode.from_ptx(many_kernels()) as other:
        same.get_kernel(NAME)
        for wrong in (same, other):
            with pytest.raises(ValueError, match=f"the kernel {kernel.handle:#x} belongs to other object code than"):
                Kernel.from_handle(kernel.handle, wrong)
    kernel.close()
    code.close()
    assert libraries() == loaded


def test_closed_code_is_refused(code: ObjectCode) -> None:
    kernel = code.get_kernel(NAME)
    code.close()
    with pytest.raises(RuntimeError, match="closed"):
        Kernel.from_handle(kernel.handle, code)


def test_each_of_many_kernels_finds_its_own_code(loaded: int, memory: list[Buffer], stream: Stream) -> None:
    codes = [ObjectCode.from_ptx(many_kernels()), ObjectCode.from_ptx(PTX), ObjectCode.from_ptx(many_kernels())]
    kernels = [code.get_kernel(f"store{number}") for code in codes[::2] for number in range(MANY)]
    kernels.append(codes[1].get_kernel(NAME))
    assert codes[0].get_kernel("store0") == kernels[0]  # is known already
    others = [Kernel.from_handle(kernel.handle) for kernel in kernels]
    for item in (*kernels, *codes):
        item.close()
    assert libraries() == loaded + 3
    for index in (0, MANY - 1, MANY, 2 * MANY - 1):
        launch(stream, ONE, others[index], memory[0].handle, 0)
        assert content(memory[0], stream, 1) == bytes([index % MANY])
    check(others[-1], memory, stream)
    for other in others[1:MANY]:
        other.close()
    assert libraries() == loaded + 3
    others[0].close()
    assert libraries() == loaded + 2
    for other in others[MANY:]:
        other.close()
    assert libraries() == loaded


@pytest.mark.simulator_only("a driver may crash that is asked about a kernel which is gone")
def test_a_handle_of_unloaded_code_keeps_nothing(code: ObjectCode, loaded: int) -> None:
    with code.get_kernel(NAME) as kernel:
        handle = kernel.handle
    code.close()
    assert libraries() == loaded
    with (
        Kernel.from_handle(handle) as gone,
        pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_HANDLE"),
    ):
        gone.attributes.num_regs  # noqa: B018
    assert libraries() == loaded


def test_code_that_is_loaded_later_may_get_the_same_handles(loaded: int, memory: list[Buffer], stream: Stream) -> None:
    for _ in range(20):
        with ObjectCode.from_ptx(PTX) as code, code.get_kernel(NAME) as kernel:
            other = Kernel.from_handle(kernel.handle, code)
        assert libraries() == loaded + 1
        check(other, memory, stream)
        other.close()
        assert libraries() == loaded


def test_threads_find_kernels_while_others_close_them(device: Device, loaded: int) -> None:
    code = ObjectCode.from_ptx(many_kernels())
    first = code.get_kernel("store0")

    def work(number: int) -> None:
        device.set_current()
        for turn in range(100):
            with ObjectCode.from_ptx(PTX) as own, own.get_kernel(NAME) as kernel:
                other = Kernel.from_handle(kernel.handle)
            shared = Kernel.from_handle(code.get_kernel(f"store{(number * 50 + turn) % MANY}").handle)
            assert re.fullmatch(r"<Kernel handle=0x[0-9a-f]+ name='store\d+'>", repr(shared))
            assert other.num_arguments == shared.num_arguments == 2
            other.close()
            shared.close()

    in_threads(4, work)
    first.close()
    code.close()
    assert libraries() == loaded


def test_the_kernel_of_a_captured_node_keeps_its_code(loaded: int, device: Device, memory: list[Buffer]) -> None:
    code = ObjectCode.from_ptx(PTX)
    kernel = code.get_kernel(NAME)
    with device.create_graph_builder() as builder:
        builder.begin_building()
        launch(builder, ONE, kernel, memory[0], 1)
        (node,) = builder.end_building().graph_definition.nodes()
        found = node.kernel  # type: ignore[attr-defined]
        assert found == kernel
        kernel.close()
        code.close()
        assert found.num_arguments == 2
    found.close()
    assert libraries() == loaded + 1
    del node
    assert soon(lambda: libraries() == loaded)
