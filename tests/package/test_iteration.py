# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Iteration over objects of this package ends, or is refused: Python iterates over whatever has ``__getitem__``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from copied_objects import CLASSES, ROWS, Objects

from cuda_core_cffi import Device, Stream

MANY = 1000  # more than any object of the table has elements


@pytest.fixture
def objects(device: Device, stream: Stream, tmp_path: Path) -> Iterator[Objects]:
    """Return what objects of many classes are made from."""
    with ExitStack() as stack:
        yield Objects(stack, device, stream, tmp_path)


def defines(cls: type, name: str) -> bool:
    """Tell whether a class or one of its bases defines a name, as None or anything else."""
    return any(name in vars(base) for base in cls.__mro__)


def test_every_class_that_can_be_indexed_says_whether_it_can_be_iterated():
    unsaid = [name for name, cls in CLASSES.items() if defines(cls, "__getitem__") and not defines(cls, "__iter__")]
    assert unsaid == []


def count(item: Any) -> int:
    """Return how many elements iteration gives, at most MANY."""
    return sum(1 for _ in itertools.islice(iter(item), MANY))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_object_can_be_iterated_without_end(row, objects):
    item = row.make(objects)
    if getattr(type(item), "__iter__", None) is not None:
        assert count(item) < MANY
        assert object() not in item
        return
    with pytest.raises(TypeError):
        count(item)
    with pytest.raises(TypeError):
        object() in item  # noqa: B015
    with pytest.raises(TypeError):
        list(itertools.islice(reversed(item), MANY))


def test_attributes_of_a_kernel_are_indexed_by_devices_and_not_iterated(objects):
    attributes = objects.kernel.attributes
    assert attributes[objects.device].num_regs == attributes[0].num_regs == attributes.num_regs
    with pytest.raises(TypeError, match="not iterable"):
        iter(attributes)
    with pytest.raises(TypeError, match="iterable"):
        0 in attributes  # noqa: B015
