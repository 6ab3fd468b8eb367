# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings run. They find a device, current, with a stream, memory, code, a kernel and NumPy."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy
import pytest
from scenarios import PTX

import cuda_core_cffi
from cuda_core_cffi import Device, Kernel, ObjectCode, Stream

LEFT_OUT = (".fixtures", "__main__", "._alias.path", ".as_cuda_core")
MEMORY = 16


def examples() -> list[doctest.DocTest]:
    """Return the docstrings that have examples."""
    names = [module.name for module in pkgutil.walk_packages(cuda_core_cffi.__path__, "cuda_core_cffi.")]
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = []
    for name in sorted(names):
        if not any(part in name for part in LEFT_OUT) and not name.rpartition(".")[2].startswith("lib"):
            found += finder.find(importlib.import_module(name), name)
    return [example for example in found if example.examples]


EXAMPLES = {example.name: example for example in examples()}


def test_there_are_examples_of_what_programs_use_most() -> None:
    told = {name.rpartition(".")[2] for name in EXAMPLES}
    assert told >= {"Device", "Event", "GraphDefinition", "Kernel", "Program", "Stream", "allocate", "launch"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_says(name: str, device: Device, stream: Stream, store: Kernel) -> None:
    example = EXAMPLES[name]
    with device.allocate(MEMORY, stream) as memory, ObjectCode.from_ptx(PTX) as code:
        known = {"numpy": numpy, "device": device, "stream": stream, "code": code, "kernel": store, "memory": memory}
        example.globs = {**known, **example.globs}
        output: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=output.append)
    assert output == []
