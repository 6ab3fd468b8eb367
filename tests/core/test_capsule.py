# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The module that makes and reads DLPack capsules, with tensors that are made here."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from helpers import collect
from tensors import FLOAT32, Deleter, Managed, ManagedTensor

from cuda_core_cffi import _capsule

COMPLEX64 = (5, 64, 1)
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


# Tensors that were taken


@BOTH
def test_an_owner_keeps_its_tensor_until_it_goes(versioned: bool) -> None:
    tensor = Managed(versioned, data=0x1000, shape=(2, 3), strides=(3, 1))
    owner = _capsule.own(tensor.capsule())
    assert _capsule.describe(owner)[:3] == (0x1000, (2, 3), (3, 1))
    collect()
    assert tensor.deletions == 0
    del owner
    collect()
    assert tensor.deletions == 1


@BOTH
def test_a_description_keeps_the_tensor_too(versioned: bool) -> None:
    tensor = Managed(versioned, data=0x1000, shape=(2,))
    description = _capsule.describe(_capsule.own(tensor.capsule()))
    collect()
    assert tensor.deletions == 0
    del description
    collect()
    assert tensor.deletions == 1


@pytest.mark.parametrize("ending", ["owner", "shared"])
@pytest.mark.parametrize("shared_versioned", [False, True])
@BOTH
def test_the_last_use_of_a_tensor_deletes_it(versioned: bool, shared_versioned: bool, ending: str) -> None:
    tensor = Managed(versioned, data=0x1000, shape=(2,))
    uses = {"owner": _capsule.own(tensor.capsule())}
    uses["shared"] = _capsule.share(uses["owner"], shared_versioned)
    assert _capsule.read(uses["shared"])[1] is shared_versioned
    uses.pop(ending)
    collect()
    assert tensor.deletions == 0
    uses.clear()
    collect()
    assert tensor.deletions == 1


def test_every_tensor_that_shows_the_memory_is_a_use_of_its_own() -> None:
    tensor = Managed(True, data=0x1000, shape=(2,))
    owner = _capsule.own(tensor.capsule())
    shown = [_capsule.own(_capsule.share(owner, index % 2 == 0)) for index in range(6)]
    del owner
    while shown:
        collect()
        assert tensor.deletions == 0
        assert _capsule.describe(shown.pop())[:2] == (0x1000, (2,))
    collect()
    assert tensor.deletions == 1


@pytest.mark.parametrize("shared_versioned", [False, True])
@BOTH
def test_a_tensor_that_is_shared_shows_the_same(versioned: bool, shared_versioned: bool) -> None:
    tensor = Managed(versioned, data=0x1000, byte_offset=16, shape=(2, 3, 4), device=(2, 5), dtype=(0, 16, 2), flags=1)
    owner = _capsule.own(tensor.capsule())
    again = _capsule.own(_capsule.share(owner, shared_versioned))
    read_only = versioned and shared_versioned
    assert _capsule.describe(owner)[2] is None
    assert _capsule.describe(again)[:8] == (
        *(0x1010, (2, 3, 4), (12, 4, 1), 5, True, read_only, 2, 0 | 16 << 8 | 2 << 16),
    )


@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "simple"),
    [
        ((2, 3), (3, 1), FLOAT32, True),
        ((2, 3), (1, 2), FLOAT32, True),
        ((2, 3), None, FLOAT32, True),
        ((2, 3), (6, 2), FLOAT32, False),
        ((), (), FLOAT32, False),
        ((2, 3), (3, 1), COMPLEX64, False),
    ],
)
def test_what_is_simple_is_real_and_adjacent(shape: Any, strides: Any, dtype: Any, simple: bool) -> None:
    tensor = Managed(True, data=0x1000, shape=shape, strides=strides, dtype=dtype)
    assert _capsule.is_simple(_capsule.own(tensor.capsule())) is simple


@pytest.mark.parametrize("use", [_capsule.describe, _capsule.is_simple, lambda owner: _capsule.share(owner, True)])
def test_what_was_not_taken_is_refused(use: Callable[[Any], Any]) -> None:
    consumed = Managed(True).capsule()
    _capsule.consume(consumed)
    for wrong in (None, 1, Managed(True).capsule(), consumed):
        with pytest.raises(TypeError, match="expected a tensor that was taken"):
            use(wrong)


def test_tensors_are_shared_and_dropped_in_many_threads() -> None:
    tensor = Managed(True, data=0x1000, shape=(2,))
    owners = [_capsule.own(tensor.capsule())]
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        for index in range(300):
            _capsule.own(_capsule.share(owners[0], index % 2 == 0))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    collect()
    assert tensor.deletions == 0
    owners.clear()
    collect()
    assert tensor.deletions == 1


@pytest.mark.skipif(not hasattr(ctypes, "pythonapi"), reason="this interpreter has no ctypes.pythonapi")
@BOTH
def test_a_capsule_whose_context_the_producer_uses_stays_as_it_is(versioned: bool) -> None:
    get, put = ctypes.pythonapi.PyCapsule_GetContext, ctypes.pythonapi.PyCapsule_SetContext
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object]
    put.restype, put.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_void_p]
    tensor = Managed(versioned, data=0x1000, shape=(2,))
    capsule = tensor.capsule()
    put(capsule, 0x1234)
    owner = _capsule.own(capsule)
    assert owner is not capsule
    assert get(capsule) == 0x1234
    del capsule
    assert tensor.deletions == 0
    assert _capsule.describe(owner)[1] == (2,)
    del owner
    assert tensor.deletions == 1


@pytest.mark.skipif(not hasattr(ctypes, "pythonapi"), reason="this interpreter has no ctypes.pythonapi")
def test_the_producers_capsule_ends_as_the_producer_wants() -> None:
    ended: list[int] = []
    End = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    end = End(ended.append)
    ctypes.pythonapi.PyCapsule_SetDestructor.argtypes = [ctypes.py_object, End]
    tensor = Managed(True, data=0x1000, shape=(2,))
    capsule = tensor.capsule()
    ctypes.pythonapi.PyCapsule_SetDestructor(capsule, end)
    owner = _capsule.own(capsule)
    address = id(capsule)
    del capsule
    assert (ended, tensor.deletions) == ([], 0)
    del owner
    assert (ended, tensor.deletions) == ([address], 1)


def deleter_in_python(tensor: Managed) -> list[str]:
    """Give a tensor a deleter in Python, and return a list of the steps that it reaches."""
    steps: list[str] = []

    def delete(address: int) -> None:
        steps.append("begins")
        steps.append(f"ends with {len([*iter('ab')])}")

    tensor.tensor.deleter = Deleter(delete)
    return steps


@BOTH
def test_a_deleter_in_python_runs_to_its_end_where_its_tensor_is_refused(versioned: bool) -> None:
    tensor = Managed(versioned, device=(99, 0))
    steps = deleter_in_python(tensor)
    capsule = tensor.capsule()
    with pytest.raises(BufferError, match="DLPack device type 99"):
        _capsule.own(capsule)
    assert steps == ["begins", "ends with 2"]


def shared(tensor: Managed) -> Any:
    return _capsule.share(_capsule.own(tensor.capsule()), True)


@pytest.mark.skipif(not hasattr(ctypes, "pythonapi"), reason="this interpreter runs no Python from a destructor")
@pytest.mark.parametrize("make", [Managed.capsule, lambda tensor: _capsule.own(tensor.capsule()), shared])
@BOTH
def test_a_deleter_in_python_runs_to_its_end_where_an_exception_ends_its_capsule(versioned: bool, make: Any) -> None:
    tensor = Managed(versioned, data=0x1000, shape=(2,))
    steps = deleter_in_python(tensor)
    with pytest.raises(ValueError, match="not in list"):
        [].index(make(tensor))
    assert steps == ["begins", "ends with 2"]


@pytest.mark.skipif(not hasattr(ctypes, "pythonapi"), reason="this interpreter has no ctypes.pythonapi")
def test_a_producers_destructor_in_python_runs_to_its_end_where_an_exception_ends_the_owner() -> None:
    steps: list[str] = []
    End = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    end = End(lambda capsule: steps.append(f"ends with {len([*iter('ab')])}"))
    ctypes.pythonapi.PyCapsule_SetDestructor.argtypes = [ctypes.py_object, End]
    capsule = Managed(True, data=0x1000, shape=(2,)).capsule()
    ctypes.pythonapi.PyCapsule_SetDestructor(capsule, end)
    owners = [_capsule.own(capsule)]
    del capsule
    with pytest.raises(ValueError, match="not in list"):
        [].index(owners.pop())
    assert steps == ["ends with 2"]


@pytest.mark.skipif(not hasattr(ctypes, "pythonapi"), reason="this interpreter has no ctypes.pythonapi")
def test_an_exception_that_a_deleter_leaves_is_shown_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: shown.append(raised.exc_type))
    tensor = Managed(False, data=0x1000, shape=(2,))
    tensor.tensor.deleter = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, Deleter)
    owner = _capsule.own_numpy(tensor.capsule())  # whose deleter may be called with the GIL
    del owner
    assert shown == [MemoryError]
