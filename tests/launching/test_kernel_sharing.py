# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What objects for the same kernel share: what is known of its parameters, and nothing else."""

from __future__ import annotations

import gc
import weakref

import pytest
from graphs import ONE, content, eventually
from helpers import PYPY
from scenarios import PTX

from cuda_core_cffi import ObjectCode, launch
from cuda_core_cffi._code import kernel as kernel_module
from cuda_core_cffi._launching import arguments
from cuda_core_cffi.graph import GraphDefinition

NAME = "store"


@pytest.fixture
def code(device):
    """Return code that nobody else has."""
    with ObjectCode.from_ptx(PTX) as found:
        yield found


@pytest.fixture
def known(code, memory, stream, monkeypatch):
    """Return code of whose kernel everything is known, in a test where nothing can be found out."""
    launch(stream, ONE, code.get_kernel(NAME), memory[0], 1)

    def refuse(*_):
        pytest.fail("what was known was asked for")

    monkeypatch.setattr(kernel_module, "_parameter", refuse)
    monkeypatch.setattr(arguments, "make_slot", refuse)
    return code


def test_another_object_is_launched_with_what_is_known(known, memory, stream):
    launch(stream, ONE, known.get_kernel(NAME), memory[0], 7)
    assert content(memory[0], stream, 1) == b"\7"


def test_what_is_known_outlives_the_object_that_found_it(code, memory, stream):
    for value in range(3):
        with code.get_kernel(NAME) as kernel:
            launch(stream, ONE, kernel, memory[0], value)
            stream.sync()
        del kernel
        gc.collect()
        assert content(memory[0], stream, 1) == bytes([value])


def test_closing_one_object_leaves_the_other(code, memory, stream):
    one, other = code.get_kernel(NAME), code.get_kernel(NAME)
    launch(stream, ONE, one, memory[0], 1)
    launch(stream, ONE, other, memory[0], 2)
    one.close()
    launch(stream, ONE, other, memory[0], 3)
    assert content(memory[0], stream, 1) == b"\3"
    for call in (lambda: launch(stream, ONE, one, memory[0], 4), lambda: add(one, memory)):
        with pytest.raises(RuntimeError, match="this Kernel is closed"):
            call()


def test_one_that_is_closed_before_its_first_launch_says_so(known, memory, stream):
    kernel = known.get_kernel(NAME)
    kernel.close()
    for call in (lambda: launch(stream, ONE, kernel, memory[0], 4), lambda: add(kernel, memory)):
        with pytest.raises(RuntimeError, match="this Kernel is closed"):
            call()


def test_wrong_arguments_are_told_for_each_object(code, memory, stream):
    launch(stream, ONE, code.get_kernel(NAME), memory[0], 1)
    kernel = code.get_kernel(NAME)
    with pytest.raises(ValueError, match="the kernel takes 2 arguments, not 1"):
        launch(stream, ONE, kernel, memory[0])
    with pytest.raises(OverflowError, match="kernel argument 1"):
        launch(stream, ONE, kernel, memory[0], 1 << 40)


def test_what_a_graph_keeps_is_the_object_that_was_added(known, memory):
    kernel = known.get_kernel(NAME)
    with GraphDefinition() as graph:
        node = graph.launch(ONE, kernel, memory[0], 1)
        kernel.close()
        assert node.kernel == kernel
        assert node.kernel.handle


def add(kernel, memory) -> None:
    """Add a node that runs a kernel."""
    with GraphDefinition() as graph:
        graph.launch(ONE, kernel, memory[0], 4)


def test_only_some_types_of_arguments_live_as_long_as_the_code(code, memory, stream, monkeypatch):
    monkeypatch.setattr(kernel_module, "MOST_SHARED", 1)
    seen = []
    for name in "first", "second", "third", "fourth", "fifth":
        number = type(name, (int,), {})
        seen.append(weakref.ref(number))
        launch(stream, ONE, code.get_kernel(NAME), memory[0], number(1))
        del number
    gc.collect()
    assert seen[0]() is not None
    may_stay = 1 if PYPY else 0  # PyPy keeps a type that it met while it compiled a function
    assert eventually(lambda: sum(number() is not None for number in seen[1:]) <= may_stay)
