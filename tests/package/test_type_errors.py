# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that type checkers find in programs: options as dictionaries, code types and targets."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
import shutil
import subprocess

import pytest
from copied_objects import find_classes
from helpers import child_environment

import cuda_core_cffi

PACKAGE = pathlib.Path(cuda_core_cffi.__file__).parent

HEAD = """
import numpy as np
from cuda_core_cffi import *
from cuda_core_cffi.graph import GraphDefinition

def use(device: Device, stream: Stream, buffer: Buffer, program: Program, graph: GraphDefinition) -> None:
"""

RIGHT = [
    'Program("x", "c++", {"arch": "sm_90", "std": "c++17", "define_macro": [("N", "1")]})',
    'program.compile("ptx")',
    'device.create_stream(options={"priority": -1})',
    'device.create_event({"timing_enabled": True})',
    'stream.record(options={"timing_enabled": True})',
    'graph.instantiate({"auto_free_on_launch": True, "upload_stream": stream})',
    'device.create_opaque_array({"shape": (4, 4), "format": "float32", "num_channels": 1})',
    'VirtualMemoryResource(0, {"handle_type": "posix_fd"})',
    'kernels = program.compile("cubin").kernels; kernels["k"].attributes.max_dynamic_shared_size_bytes = 65536',
    'name: str = program.compile("cubin").kernels["k"].name',
]
WRONG = [
    'Program("x", "cuda")',
    'Program("x", "c++", {"arhc": "sm_90"})',
    'Program("x", "c++", {"debug": "yes"})',
    'program.compile("exe")',
    'device.create_stream(options={"prioriy": -1})',
    'device.create_event({"timing": True})',
    'stream.record(options={"timing": True})',
    'graph.instantiate({"upload": stream})',
    'device.create_opaque_array({"shape": (4, 4), "format": "float32"})',
    'VirtualMemoryResource(0, {"handle": "posix_fd"})',
    'Linker(program.compile("ptx"), options={"linktime": True})',
    'Linker(program.compile("ptx")).link("exe")',
]


@pytest.fixture(scope="module")
def errors(tmp_path_factory) -> dict[int, list[str]]:
    """Return what mypy says of a program, by the number of the statement."""
    mypy = shutil.which("mypy")
    if mypy is None:
        pytest.skip("mypy is not installed")
    folder = tmp_path_factory.mktemp("types")
    program = folder / "program.py"
    statements = [*RIGHT, *WRONG]
    program.write_text(HEAD + "".join(f"    {statement}\n" for statement in statements))
    command = [
        mypy,
        "--no-error-summary",
        "--cache-dir",
        str(folder / "cache"),
        "--follow-imports=silent",
        str(program),
    ]
    done = subprocess.run(
        command,
        env=child_environment(MYPYPATH=str(PACKAGE.parent), PYTHONPATH=None),
        capture_output=True,
        text=True,
        check=False,
    )
    first = HEAD.count("\n") + 1
    found: dict[int, list[str]] = {}
    for line, message in re.findall(r"program\.py:(\d+): error: (.*)", done.stdout):
        found.setdefault(int(line) - first, []).append(message)
    assert found, done.stdout + done.stderr
    return found


@pytest.mark.parametrize("number", range(len(RIGHT)), ids=RIGHT)
def test_what_is_right_is_accepted(errors, number):
    assert errors.get(number, []) == []


@pytest.mark.parametrize("number", range(len(WRONG)), ids=WRONG)
def test_what_is_wrong_is_an_error(errors, number):
    (message,) = errors.get(len(RIGHT) + number, [""])
    assert "[arg-type]" in message


def test_the_dictionaries_have_the_fields_of_the_classes():
    found = {cls.__name__: cls for cls in find_classes() if dataclasses.is_dataclass(cls)}
    classes = {name: cls for name, cls in found.items() if name.endswith("Options") and name != "ResolvedOptions"}
    parsed = ast.parse((PACKAGE / "typing" / "_option_dicts.pyi").read_text())
    dictionaries = {item.name: item.body for item in parsed.body if isinstance(item, ast.ClassDef)}
    assert {f"{name}Dict" for name in classes} == set(dictionaries)
    for name, cls in classes.items():
        body = [item for item in dictionaries[f"{name}Dict"] if isinstance(item, ast.AnnAssign)]
        fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
        assert [ast.unparse(item.target) for item in body] == list(fields), name
        for item, field in zip(body, fields.values(), strict=True):
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            wanted = members(str(field.type))
            written = ast.unparse(item.annotation)
            assert written.startswith("Required[") is required
            # enumerations take their strings
            assert members(written[len("Required[") : -1] if required else written) in (wanted, wanted | {"str"})


def members(annotation: str) -> set[str]:
    """Return the types of a union."""
    return set(ast.unparse(ast.parse(annotation)).split(" | "))
