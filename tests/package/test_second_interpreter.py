# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A second interpreter in the process: the modules in C have state of the process, so it gets ImportError."""

from __future__ import annotations

import sys

import pytest
from helpers import output_of

PROGRAM = """
import importlib, sys
import cuda_core_cffi
from cuda_core_cffi import _capsule, _calls

IN_THE_SECOND = '''
import importlib.util
def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
try:
    STATEMENT
except ImportError as error:
    print(error, flush=True)
'''
interpreters = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
second = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
found = interpreters.run_string(second, IN_THE_SECOND.replace("STATEMENT", sys.argv[1].format(cuda_core_cffi)))
assert found is None, found
interpreters.destroy(second)
print(cuda_core_cffi.Buffer.from_handle(0, 0).size)
"""
OTHER = "was imported by another interpreter of this process"
ONE_ON_PYPY = pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy has one interpreter in a process")


@ONE_ON_PYPY
@pytest.mark.parametrize("module", ["_calls", "_capsule"])
def test_a_second_interpreter_gets_import_error(module: str) -> None:
    load = f"load('cuda_core_cffi.{module}', '{{0.{module}.__file__}}')"
    told, size = output_of(PROGRAM, load).splitlines()
    assert told.startswith(f"cuda_core_cffi.{module} {OTHER}")
    assert size == "0"  # and the first one goes on


@ONE_ON_PYPY
def test_a_second_interpreter_cannot_import_the_package() -> None:
    told, size = output_of(PROGRAM, "import cuda_core_cffi").splitlines()
    assert OTHER in told or "subinterpreters" in told
    assert size == "0"
