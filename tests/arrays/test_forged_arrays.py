# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries that are not what the protocols say: each is refused with an error, or shown as it is.

The last tests make up such arrays at random, each time the same ones. They only look at what is said of the memory,
which is not there.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
from typing import Any

import pytest
from arrays import Interface
from helpers import collect
from tensors import Deleter, Managed, Producer

from cuda_core_cffi import _capsule
from cuda_core_cffi._memory.dlpack import DLDeviceType
from cuda_core_cffi.utils import StridedMemoryView

BOTH = pytest.mark.parametrize("versioned", [False, True])
# What a reader may raise, and what a view may that shows something unusual.
REFUSALS = (BufferError, TypeError, ValueError, OverflowError, ModuleNotFoundError)
SEEDS = range(8)
ARRAYS = 250  # for each seed


# Tensors


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shape": (2, -1)}, "negative"),
        ({"shape": (-(2**63),)}, "negative"),
        ({"dtype": (2, 0, 1)}, "no size"),
        ({"dtype": (2, 32, 0)}, "no size"),
        ({"shape": (2**62, 4)}, "address space"),
        ({"shape": (2**62,)}, "address space"),
        ({"shape": (2**63 - 1,), "strides": (2**63 - 1,)}, "address space"),
        ({"shape": (2, 2), "strides": (2**62, 2**62)}, "address space"),
        ({"shape": (2,), "strides": (-(2**63),)}, "address space"),
        ({"shape": (4,), "strides": (-0x1000,)}, "address space"),
        ({"data": 2**64 - 8, "shape": (4,)}, "address space"),
        ({"byte_offset": 2**64 - 8, "shape": (4,)}, "address space"),
        ({"shape": (2**62,), "dtype": (255, 255, 65535)}, "address space"),
    ],
    ids=str,
)
@BOTH
def test_a_tensor_that_cannot_be_is_refused(versioned: bool, fields: dict[str, Any], message: str) -> None:
    tensor = Managed(versioned, **{"data": 0x1000} | fields)
    with pytest.raises(BufferError, match=message):
        StridedMemoryView.from_dlpack(Producer(tensor), -1)
    assert tensor.deletions == 1


@BOTH
def test_a_tensor_without_a_shape_is_refused_unless_it_has_no_dimensions(versioned: bool) -> None:
    tensor, scalar = Managed(versioned, data=0x1000, shape=(2,)), Managed(versioned, data=0x1000)
    for item in (tensor, scalar):
        item.tensor.tensor.shape = None
    with pytest.raises(BufferError, match="no shape"):
        StridedMemoryView.from_dlpack(Producer(tensor), -1)
    assert StridedMemoryView.from_dlpack(Producer(scalar), -1).shape == ()


@BOTH
def test_a_refused_tensor_without_a_deleter_is_left_alone(versioned: bool) -> None:
    tensor = Managed(versioned, shape=(-1,))
    tensor.tensor.deleter = Deleter()
    with pytest.raises(BufferError, match="negative"):
        StridedMemoryView.from_dlpack(Producer(tensor), -1)
    assert tensor.deletions == 0


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2**62, 2**62, 2), (0, 0, 1)), ((0, 2**62, 2**62), None), ((2, 0), (2**62, 2**62)), ((1,), (2**63 - 1,))],
    ids=str,
)
@BOTH
def test_broadcast_and_empty_axes_may_have_any_extent_or_stride(versioned: bool, shape: Any, strides: Any) -> None:
    tensor = Managed(versioned, data=0x1000, shape=shape, strides=strides)
    shown = StridedMemoryView.from_dlpack(Producer(tensor), -1)
    assert (shown.shape, shown.strides) == (shape, strides)


# Producers


MAKERS = pytest.mark.parametrize("make", [StridedMemoryView.from_dlpack, StridedMemoryView.from_any_interface])


@pytest.mark.parametrize("wrong", [None, 5, "capsule", object(), b"", [1]], ids=lambda item: type(item).__name__)
@pytest.mark.parametrize("stream", [-1, 1])
@MAKERS
def test_a_producer_that_returns_no_capsule_is_refused(make: Any, wrong: Any, stream: int) -> None:
    producer = type("Odd", (Producer,), {"__dlpack__": lambda self, **how: wrong})(Managed(True))
    with pytest.raises(TypeError, match="expected a DLPack capsule"):
        make(producer, stream)


@pytest.mark.parametrize("wrong", [None, 5, (), {}, b"", object()], ids=lambda item: type(item).__name__)
@pytest.mark.parametrize("stream", [-1, 1])
@MAKERS
def test_a_producer_that_returns_no_device_is_refused(make: Any, wrong: Any, stream: int) -> None:
    producer = type("Odd", (Producer,), {"__dlpack_device__": lambda self: wrong})(Managed(True))
    with pytest.raises(BufferError, match="__dlpack_device__ of Odd returned no device, but"):
        make(producer, stream)
    assert producer.asked == []


@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
@pytest.mark.parametrize("wrong", [None, 5, "x", [], {}, {"version": 3}, ()], ids=str)
def test_an_interface_that_is_no_whole_dict_is_refused(name: str, wrong: Any) -> None:
    item = Interface(name, 0x1000)
    setattr(item, name, wrong)
    with pytest.raises(BufferError, match=f"the {name} of Interface"):
        StridedMemoryView.from_any_interface(item, -1)


@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
@pytest.mark.parametrize(
    "fields",
    [
        {"data": (1,)}, {"data": ()}, {"data": (0, False, 3)}, {"data": ("x", False)}, {"data": (-5, False)},
        {"data": (2**80, False)}, {"data": None}, {"shape": None}, {"shape": 5}, {"shape": ("a",)}, {"shape": (1.5,)},
        {"shape": "ab"}, {"strides": (4.0, 4.0)}, {"strides": 5}, {"strides": "ab"}, {"strides": (4,)},
        {"typestr": None}, {"typestr": 5}, {"typestr": "<f3"}, {"typestr": ""}, {"typestr": "|V4", "descr": 5},
        {"typestr": "|V4", "descr": [("a",)]}, {"typestr": "|V4", "descr": [()]}, {"typestr": "|V4", "descr": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_an_interface_with_an_odd_field_is_refused(device, name: str, fields: dict[str, Any]) -> None:
    with pytest.raises((BufferError, TypeError, ValueError, OverflowError)):
        StridedMemoryView.from_any_interface(Interface(name, 0x1000, **fields), -1)


# At random


def look(shown: StridedMemoryView) -> None:
    """Ask a view for all that it says, and export it, without a look at its memory."""
    asked = [
        *(lambda name=name: getattr(shown, name) for name in ("ptr", "shape", "strides", "dtype", "size", "_layout")),
        *(lambda name=name: getattr(shown, name) for name in ("device_id", "is_device_accessible", "readonly")),
        lambda: repr(shown),
        lambda: shown.__dlpack_device__(),
        lambda: shown.__dlpack__(stream=-1),
        lambda: shown.__dlpack__(stream=-1, max_version=(1, 0)),
        lambda: shown.view(dtype="i1"),
        lambda: shown.view(shown._layout.flattened()),
        lambda: StridedMemoryView.from_dlpack(shown, -1).shape,
        lambda: shown._layout.is_unique,
        lambda: shown._layout.required_size_in_bytes(),
    ]
    for ask in asked:
        with contextlib.suppress(*REFUSALS):
            ask()


def random_tensor(chance: random.Random) -> Managed:
    """Return a tensor with odd fields."""

    def some(usual: list[Any], odd: list[Any]) -> Any:
        return chance.choice(usual if chance.random() < 0.7 else odd)

    dimensions = chance.choice([0, 1, 1, 2, 2, 3, 64])
    extents, strides = [0, 1, 2, 3, 7], [1, 2, 6, 0]
    tensor = Managed(
        chance.random() < 0.6,
        data=some([0x1000], [0, 2**64 - 8, 2**63]),
        shape=tuple(some(extents, [-1, 2**31, 2**62, 2**63 - 1, -(2**63)]) for _ in range(dimensions)),
        strides=chance.choice([None, tuple(some(strides, [-1, 2**31, 2**62, -(2**63)]) for _ in range(dimensions))]),
        dtype=some(
            [(2, 32, 1), (0, 8, 1), (5, 64, 1), (6, 8, 1), (4, 16, 1)],
            [(0, 0, 1), (0, 8, 0), (17, 4, 1), (255, 255, 65535), (3, 64, 1), (0, 1, 1), (2, 32, 4)],
        ),
        device=some([(1, 0)], [(3, 0), (10, 0), (0, 0), (-1, 0), (2**31 - 1, 0), (1, -1), (3, 2**31 - 1)]),
        byte_offset=some([0], [8, 2**63, 2**64 - 1]),
        flags=some([0, 1], [2, 3, 2**63]),
        version=some([(1, 0), (1, 3)], [(1, 2**32 - 1), (2, 0), (0, 0), (2**32 - 1, 0)]),
    )
    inner = tensor.tensor.tensor
    if chance.random() < 0.05:
        inner.ndim = chance.choice([-1, 65, 2**31 - 1, -(2**31)])
    if chance.random() < 0.05:
        inner.shape = None
    tensor.before = ctypes.string_at(tensor.address, len(tensor.before))
    return tensor


@pytest.mark.parametrize("seed", SEEDS)
def test_any_tensor_is_refused_or_shown_and_deleted_once(seed: int) -> None:
    chance = random.Random(seed)
    tensors = [random_tensor(chance) for _ in range(ARRAYS)]
    views = 0
    for tensor in tensors:
        make = chance.choice([StridedMemoryView.from_dlpack, StridedMemoryView.from_any_interface])
        with contextlib.suppress(*REFUSALS):
            look(make(Producer(tensor), chance.choice([-1, 0, 1])))
            views += 1
    collect()
    asked_for = [tensor.tensor.tensor.device[0] in list(DLDeviceType) for tensor in tensors]
    assert [tensor.deletions for tensor in tensors] == [int(asked) for asked in asked_for]
    assert ARRAYS / 20 < views < ARRAYS


USUAL: dict[str, Any] = {"version": 3, "shape": (4, 6), "typestr": "<f4", "data": (0x1000, False), "strides": None}
NUMBERS = [None, 0, -5, 5, 2**63, 2**80, 1.5, "x", b"x", True, object()]
ODD: dict[str, list[Any]] = {
    "version": [*NUMBERS, 2, 4],
    "shape": [*NUMBERS, (), (1,), (-1,), ("a",), (2**70,), [2, 3], (1.5,), (2, 2**62), (0, 3), "ab", (1,) * 70],
    "typestr": [*NUMBERS, "|O8", "|V8", "<f3", "", "<c8", "|u1", ">i4", "<M8[s]", "|S0", "f4, f4", "<U4", object],
    "data": [*NUMBERS, (0, False), (None, None), ("x", 0), (2**80, 1), (1,), (), [0, False], (-5, 0), (0x1000, "x")],
    "strides": [*NUMBERS, (4,), (3,), "abc", (2**70,), (0, 0), (-4, -4), (24, 4), [24, 4], (4.0,), (2**63, 4)],
    "descr": [*NUMBERS, [("", "<f4")], [("a", "<f4"), ("b", "|O8")], [], [("a",)], [()], [("a", "<f4", (2,))]],
    "mask": NUMBERS,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
def test_any_interface_is_refused_or_shown(device, name: str, seed: int) -> None:
    chance = random.Random(seed)
    views = 0
    for _ in range(ARRAYS):
        fields = dict(USUAL)
        for key, values in ODD.items():
            if chance.random() < 0.15:
                fields[key] = chance.choice(values)
            if chance.random() < 0.02:
                fields.pop(key, None)
        item = Interface(name, 0)
        setattr(item, name, fields)
        with contextlib.suppress(*REFUSALS):
            look(StridedMemoryView.from_any_interface(item, chance.choice([-1, 0, 1])))
            views += 1
    assert ARRAYS / 20 < views < ARRAYS


@pytest.mark.parametrize("seed", SEEDS)
def test_any_argument_of_the_capsule_module_is_refused(seed: int) -> None:
    chance = random.Random(seed)
    consumed = Managed(True, data=0x1000, shape=(2,)).capsule()
    _capsule.consume(consumed)
    odd: list[Any] = [*NUMBERS, (), "dltensor", consumed, StridedMemoryView.__dlpack_c_exchange_api__]
    functions = ["read", "consume", "own", "own_numpy", "describe", "is_simple"]
    pairs = ["share", "import_exchanged", "work_stream"]
    for _ in range(ARRAYS):
        function = getattr(_capsule, chance.choice(functions + pairs))
        arguments = [chance.choice(odd) for _ in range(2 if function.__name__ in pairs else 1)]
        with pytest.raises(REFUSALS):
            function(*arguments)
