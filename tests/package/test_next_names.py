# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The names that cuda-core 1.3 adds to its public API are here.

``next_names.json`` has them, by their dotted names in the package, with their kinds. To add one, add a line.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from typing import Any

import pytest

import cuda_core_cffi

NAMES: dict[str, str] = json.loads(pathlib.Path(__file__).with_name("next_names.json").read_text())


def kind_of(name: str) -> str:
    """Return what a dotted name of the package stands for."""
    parent, _, last = name.rpartition(".")
    owner: Any = functools.reduce(getattr, filter(None, parent.split(".")), cuda_core_cffi)
    if dataclasses.is_dataclass(owner) and last in {field.name for field in dataclasses.fields(owner)}:
        return "field"
    found = getattr(owner, last)
    if isinstance(found, type):
        return "class"
    return "method" if callable(found) else "property"


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_there_with_its_kind(name: str) -> None:
    assert kind_of(name) == NAMES[name]


def test_the_list_is_in_order() -> None:
    assert list(NAMES) == sorted(NAMES)


@pytest.mark.parametrize("name", [name for name, kind in NAMES.items() if kind == "class" and "." not in name])
def test_a_new_class_is_public(name: str) -> None:
    assert name in cuda_core_cffi.__all__
