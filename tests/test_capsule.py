# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The module that makes and reads DLPack capsules, with tensors that are made here."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from helpers import collect
from tensors import Deleter, Managed, ManagedTensor

from cuda_core_cffi import _capsule

BOTH = pytest.mark.parametrize("versioned", [False, True])


@BOTH
def test_a_capsule_gives_its_tensor(versioned: bool) -> None:
    tensor = Managed(versioned)
    capsule = _capsule.new(tensor.address, versioned)
    assert type(capsule).__name__ == "PyCapsule"
    assert _capsule.read(capsule) == (tensor.address, versioned)


@BOTH
def test_reading_does_not_consume(versioned: bool) -> None:
    capsule = _capsule.new(Managed(versioned).address, versioned)
    assert _capsule.read(capsule) == _capsule.read(capsule)


@BOTH
def test_consuming_gives_the_tensor_once(versioned: bool) -> None:
    tensor = Managed(versioned)
    capsule = _capsule.new(tensor.address, versioned)
    assert _capsule.consume(capsule) == (tensor.address, versioned)
    for use in (_capsule.consume, _capsule.read):
        with pytest.raises(ValueError, match="already been consumed"):
            use(capsule)


@BOTH
def test_the_deleter_of_an_unconsumed_tensor_runs_once(versioned: bool) -> None:
    tensor = Managed(versioned)
    capsule = _capsule.new(tensor.address, versioned)
    _capsule.read(capsule)
    assert tensor.deletions == 0
    del capsule
    collect()
    assert tensor.deletions == 1


@BOTH
def test_the_deleter_of_a_consumed_tensor_is_the_consumers_to_call(versioned: bool) -> None:
    tensor = Managed(versioned)
    capsule = _capsule.new(tensor.address, versioned)
    _capsule.consume(capsule)
    del capsule
    collect()
    assert tensor.deletions == 0


@BOTH
def test_a_tensor_without_deleter_is_left_alone(versioned: bool) -> None:
    tensor = Managed(versioned)
    tensor.tensor.deleter = Deleter()
    _capsule.new(tensor.address, versioned)
    collect()
    assert tensor.deletions == 0


@pytest.mark.parametrize("wrong", [None, 1, "dltensor", object(), numpy.zeros(3)], ids=lambda item: type(item).__name__)
@pytest.mark.parametrize("use", [_capsule.read, _capsule.consume], ids=["read", "consume"])
def test_what_is_no_capsule_is_refused(use: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected a DLPack capsule"):
        use(wrong)


@pytest.mark.parametrize("use", [_capsule.read, _capsule.consume], ids=["read", "consume"])
def test_a_capsule_of_another_kind_is_refused(use: Callable[[Any], Any]) -> None:
    import datetime

    capsule = getattr(datetime, "datetime_CAPI", None)
    if type(capsule).__name__ != "PyCapsule":
        pytest.skip(f"{sys.implementation.name} offers no capsule of another kind")
    with pytest.raises(TypeError, match="expected a DLPack capsule"):
        use(capsule)


def test_a_null_tensor_is_refused() -> None:
    with pytest.raises(ValueError, match="null pointer"):
        _capsule.new(0, False)


@pytest.mark.parametrize("arguments", [(), (1,), ("1", False), (1.5, False), (1, False, 3)], ids=repr)
def test_new_refuses_wrong_arguments(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        _capsule.new(*arguments)


def test_numpys_capsules_can_be_read() -> None:
    array = numpy.arange(5, dtype=numpy.int32)
    capsule = array.__dlpack__()
    address, versioned = _capsule.read(capsule)
    assert versioned is False
    assert ManagedTensor.from_address(address).tensor.data == array.ctypes.data


def test_one_of_two_threads_consumes() -> None:
    for _ in range(200):
        tensor = Managed(False)
        capsule = _capsule.new(tensor.address, False)
        barrier, outcomes = threading.Barrier(2), []

        def consume(capsule: Any = capsule, barrier: Any = barrier, outcomes: list[bool] = outcomes) -> None:
            barrier.wait()
            try:
                _capsule.consume(capsule)
                outcomes.append(True)
            except ValueError:
                outcomes.append(False)

        threads = [threading.Thread(target=consume) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == [False, True]
