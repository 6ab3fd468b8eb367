# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""DLPack's C exchange API, called from C with arguments of every kind; and APIs of other libraries that are odd."""

from __future__ import annotations

import ctypes
import random
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy
import pytest
from arrays import FLOATS, view
from buffers import HostResource
from helpers import Gate, alive, collect, in_threads
from tensors import Managed, ManagedTensorVersioned, Tensor

from cuda_core_cffi import LegacyPinnedMemoryResource, _capsule
from cuda_core_cffi._lifetime.pending_calls import run_all_tasks
from cuda_core_cffi.utils import StridedMemoryView

if not hasattr(ctypes, "pythonapi"):
    pytest.skip("this interpreter has no ctypes.pythonapi", allow_module_level=True)

NAME = b"dlpack_exchange_api"
PINNED = LegacyPinnedMemoryResource()
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
Allocate = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, SetError)
Give = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
Take = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
Show = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
WorkStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)


class Api(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        ("allocate", Allocate),
        ("give", Give),
        ("take", Take),
        ("show", Show),
        ("stream", WorkStream),
    ]


def pointer_in(capsule: Any) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, NAME)


API = Api.from_address(pointer_in(StridedMemoryView.__dlpack_c_exchange_api__))


class Duck:
    """Has the method by which a view gives its tensor."""

    def _give_tensor(self) -> int:
        return 8

    _share_tensor = _give_tensor


STRANGERS: dict[str, Any] = {
    "None": None,
    "int": 5,
    "array": FLOATS,
    "class": StridedMemoryView,
    "mock": mock.MagicMock(),
    "duck": Duck(),
    "capsule": StridedMemoryView.__dlpack_c_exchange_api__,
}


# What is refused


@pytest.mark.parametrize("function", [API.give, API.show], ids=["give", "show"])
@pytest.mark.parametrize("name", STRANGERS)
def test_an_object_of_another_type_is_refused(name: str, function: Callable[..., int]) -> None:
    out = (ctypes.c_char * 256)()
    with pytest.raises(TypeError, match="expected a StridedMemoryView, not"):
        function(id(STRANGERS[name]), out)
    assert bytes(out) == bytes(256)


@pytest.mark.parametrize("function", [API.give, API.show], ids=["give", "show"])
def test_null_is_no_view(function: Callable[..., int]) -> None:
    with pytest.raises(TypeError, match="not NULL"):
        function(None, (ctypes.c_char * 256)())


@pytest.mark.parametrize("function", [API.give, API.show], ids=["give", "show"])
def test_a_result_needs_a_place(function: Callable[..., int]) -> None:
    shown = view(FLOATS)
    for item in (id(shown), None):
        with pytest.raises(ValueError, match="out is NULL"):
            function(item, None)
    with pytest.raises(ValueError, match="out is NULL"):
        API.stream(2, 0, None)


def test_a_null_tensor_makes_no_view() -> None:
    out = ctypes.c_void_p(5)
    with pytest.raises(BufferError, match="NULL"):
        API.take(None, ctypes.byref(out))
    assert out.value is None
    with pytest.raises(BufferError, match="NULL"):
        API.take(None, None)


def test_a_tensor_for_which_there_is_no_place_is_deleted() -> None:
    tensor = Managed(True, data=0x1000, shape=(2,))
    with pytest.raises(ValueError, match="out is NULL"):
        API.take(tensor.address, None)
    assert tensor.deletions == 1


def test_the_allocator_refuses_whatever_it_is_given() -> None:
    said: list[tuple[Any, bytes]] = []
    report = SetError(lambda context, kind, message: said.append((context, kind)))
    out = ctypes.c_void_p(5)
    assert API.allocate(None, ctypes.byref(out), 7, report) == -1
    assert API.allocate(None, None, None, report) == -1
    assert said == [(7, b"BufferError"), (None, b"BufferError")]
    assert out.value is None
    with pytest.raises(BufferError, match="none can be allocated"):
        API.allocate(None, None, None, SetError())
    without_gil = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    assert ctypes.cast(API.allocate, without_gil)(None, None, None, None) == -1


def test_a_stream_cannot_be_put_nowhere_in_a_thread_without_the_gil() -> None:
    without_gil = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)
    assert ctypes.cast(API.stream, without_gil)(2, 0, None) == -1


@pytest.mark.parametrize("function", [API.give, API.show], ids=["give", "show"])
def test_a_view_of_a_closed_buffer_and_one_without_a_type_are_refused(device, function: Callable[..., int]) -> None:
    out = (ctypes.c_char * 256)()
    with PINNED.allocate(64) as buffer:
        typed = StridedMemoryView.from_buffer(buffer, (16,), dtype="f4")
        untyped = StridedMemoryView.from_buffer(buffer, (16,), itemsize=4)
        with pytest.raises(BufferError, match="no dtype"):
            function(id(untyped), out)
    with pytest.raises(BufferError, match="Buffer is closed"):
        function(id(typed), out)


# Borrowed tensors


def borrow(shown: StridedMemoryView) -> Tensor:
    """Borrow the tensor of a view."""
    tensor = Tensor()
    assert API.show(id(shown), ctypes.byref(tensor)) == 0
    return tensor


def fields(tensor: Tensor) -> tuple[Any, ...]:
    """Return data, device, shape, strides and type of a tensor."""
    shape, strides = (
        tuple((ctypes.c_int64 * tensor.ndim).from_address(address)) if tensor.ndim else ()
        for address in (tensor.shape, tensor.strides)
    )
    dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    return (tensor.data or 0) + tensor.byte_offset, tuple(tensor.device), shape, strides, dtype


@pytest.mark.parametrize("ask", [False, True], ids=["fresh", "asked"])
@pytest.mark.parametrize(
    "make",
    [
        view,
        StridedMemoryView.from_array_interface,
        lambda array: view(array).view(dtype="i4").view(dtype="f4"),
        lambda array: view(view(array)),
    ],
    ids=["DLPack", "array interface", "part", "view"],
)
@pytest.mark.parametrize("part", [numpy.s_[:], numpy.s_[::2, 1:], numpy.s_[::-1], numpy.s_[0, 0, ...]], ids=str)
def test_a_borrowed_tensor_shows_what_the_view_shows(part: Any, make: Any, ask: bool) -> None:
    array = FLOATS[part]
    shown = make(array)
    if ask:
        assert shown.shape == array.shape
    strides = tuple(stride // 4 for stride in array.strides)
    assert fields(borrow(shown)) == (array.ctypes.data, (1, 0), array.shape, strides, (2, 32, 1))


def test_a_tensor_without_strides_is_borrowed_with_them() -> None:
    tensor = Managed(True, data=0x1000, shape=(2, 3), byte_offset=16)
    shown = StridedMemoryView._from_tensor(_capsule.own(tensor.capsule()))
    assert fields(borrow(shown)) == (0x1010, (1, 0), (2, 3), (3, 1), (2, 32, 1))


def test_a_tensor_is_borrowed_once_and_again() -> None:
    tensor = Managed(True, data=0x1000, shape=(2,), strides=(1,))
    shown = StridedMemoryView._from_tensor(_capsule.own(tensor.capsule()))
    assert {bytes(borrow(shown)) for _ in range(5)} == {bytes(borrow(shown))}
    collect()
    assert tensor.deletions == 0
    del shown
    collect()
    assert tensor.deletions == 1


@pytest.mark.parametrize("make", [view, lambda b: StridedMemoryView.from_buffer(b, (16,), dtype="f4")])
@pytest.mark.parametrize("kind", ["pinned", "slice", "written in Python"])
def test_a_view_keeps_the_memory_that_was_borrowed_though_the_buffer_is_closed(device, kind: str, make: Any) -> None:
    host = HostResource()

    def allocated() -> int:
        collect()
        run_all_tasks()
        return alive()["buffer"] + len(host.live)

    before = allocated()
    whole = (host if kind == "written in Python" else PINNED).allocate(96)
    buffer = whole[32:] if kind == "slice" else whole[:64]
    shown = make(buffer)
    tensor = borrow(shown)
    assert fields(tensor)[0] == buffer.handle
    buffer.close()
    whole.close()
    del buffer, whole
    assert allocated() == before + 1
    ctypes.memset(tensor.data, 7, 64)
    with pytest.raises(BufferError, match="Buffer is closed"):
        borrow(shown)
    del shown
    assert allocated() == before


def test_threads_borrow_the_same_tensor() -> None:
    for _ in range(50):
        shown = view(FLOATS).view(dtype="i4")
        assert len(set(in_threads(4, lambda _, shown=shown: bytes(borrow(shown))))) == 1


def test_a_borrowed_tensor_is_ready_in_the_legacy_default_stream(device, stream) -> None:
    with device.allocate(64, stream) as buffer, device.create_event() as event:
        shown = StridedMemoryView.from_buffer(buffer, (16,), dtype="f4")
        stream.sync()
        for _ in range(2):
            with Gate(stream):
                borrow(shown)
                device.default_stream.record(event)
                assert not event.is_done
            event.sync()
        del shown


# APIs of other libraries


def library(api: Api, version: tuple[int, int] = (1, 3), name: bytes = NAME) -> Any:
    """Return an object of a type with an API; both live as long as the process."""
    api.version[:] = version
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    held = ctypes.create_string_buffer(name)
    KEPT.append((api, held))
    capsule = new(ctypes.addressof(api), ctypes.cast(held, ctypes.c_char_p), None)
    return type("Foreign", (), {"__dlpack_c_exchange_api__": capsule})()


KEPT: list[Any] = []


def giving(address: int, status: int = 0) -> Give:
    """Return a function that gives a tensor."""

    def give(item: Any, out: Any) -> int:
        if address:
            ctypes.c_void_p.from_address(out).value = address
        return status

    function = Give(give)
    KEPT.append(function)
    return function


def read(item: Any, stream: int = -1) -> Any:
    """Read an object by its API, and no other protocol."""
    owner = _capsule.import_exchanged(type(item).__dlpack_c_exchange_api__, item)
    return owner if stream == -1 else _capsule.work_stream(type(item).__dlpack_c_exchange_api__, owner)


@pytest.mark.parametrize(
    "api",
    [Api(), Api(give=giving(0)), Api(give=giving(0, -1))],
    ids=["no function", "NULL", "failure without an error"],
)
def test_an_api_that_gives_no_tensor_is_refused(api: Api) -> None:
    item = library(api)
    with pytest.raises(BufferError, match="gave no tensor"):
        read(item)
    with pytest.raises(BufferError, match="does not speak DLPack"):
        StridedMemoryView.from_any_interface(item, -1)


def test_an_api_whose_tensor_is_odd_is_refused() -> None:
    tensor = Managed(True, data=0x1000, shape=(2, -3))
    with pytest.raises(BufferError, match="negative"):
        read(library(Api(give=giving(tensor.address))))
    assert tensor.deletions == 1


def test_an_api_without_a_stream_is_refused_where_one_is_needed() -> None:
    failing = WorkStream(lambda *_: -1)
    for stream in (WorkStream(), failing):
        tensor = Managed(True, data=0x1000, shape=(2,), device=(2, 0))
        with pytest.raises(BufferError, match="gave no stream"):
            read(library(Api(give=giving(tensor.address), stream=stream)), 1)


@pytest.mark.parametrize("version", [(0, 9), (2, 0), (2**32 - 1, 0)], ids=str)
def test_an_api_of_another_version_is_refused(version: tuple[int, int]) -> None:
    with pytest.raises(BufferError, match="another major version"):
        read(library(Api(), version))


def test_older_versions_of_an_api_are_looked_for_and_not_for_ever() -> None:
    tensor = Managed(True, data=0x1000, shape=(2,))
    old, new = Api(give=giving(tensor.address)), Api()
    old.version[:] = (1, 3)
    new.previous = ctypes.addressof(old)
    assert _capsule.describe(read(library(new, (2, 0))))[:2] == (0x1000, (2,))
    new.previous = ctypes.addressof(new)
    with pytest.raises(BufferError, match="another major version"):
        read(library(new, (2, 0)))


@pytest.mark.parametrize(
    "capsule", [None, 5, object(), numpy.zeros(2).__dlpack__()], ids=lambda item: type(item).__name__
)
def test_what_is_no_api_is_refused(capsule: Any) -> None:
    item = type("Foreign", (), {"__dlpack_c_exchange_api__": capsule})()
    with pytest.raises(ValueError, match="PyCapsule"):
        _capsule.import_exchanged(capsule, item)
    with pytest.raises(BufferError):
        StridedMemoryView.from_any_interface(item, -1)


def test_an_api_in_a_capsule_of_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="incorrect name"):
        read(library(Api(), name=b"another"))


def test_a_tensor_that_is_given_is_whole() -> None:
    out = ctypes.c_void_p()
    shown = view(FLOATS)
    assert API.give(id(shown), ctypes.byref(out)) == 0
    managed = ManagedTensorVersioned.from_address(out.value)
    assert (managed.version[0], fields(managed.tensor)[0]) == (1, FLOATS.ctypes.data)
    managed.deleter(out.value)


def test_tensors_are_borrowed_and_views_dropped_in_many_threads() -> None:
    barrier = threading.Barrier(4)

    def work(_: int) -> None:
        barrier.wait()
        for _ in range(200):
            shown = view(FLOATS)  # what is borrowed is good as long as it is there
            assert fields(borrow(shown))[2] == (4, 6)

    in_threads(4, work)


@pytest.mark.parametrize("seed", range(8))
def test_any_call_of_the_apis_functions_returns_a_result_or_an_error(device, seed: int) -> None:
    chance = random.Random(seed)
    buffer = PINNED.allocate(64)
    views = [view(FLOATS), view(FLOATS[::2, ::-1]), StridedMemoryView.from_buffer(buffer, (16,), dtype="f4")]
    objects = [*views, StridedMemoryView.from_buffer(buffer, (4,), itemsize=16), *STRANGERS.values()]
    tensors: list[Managed] = []

    def give(place: Any) -> int:
        return API.give(chance.choice([None, *map(id, objects)]), place)

    def show(place: Any) -> int:
        return API.show(chance.choice([None, *map(id, objects)]), place)

    def take(place: Any) -> int:
        tensors.append(Managed(True, data=0x1000, shape=(chance.choice([2, 2, -1, 2**62]),)))
        tensors[-1].tensor.tensor.ndim = chance.choice([1, 1, -1, 65])
        tensors[-1].before = ctypes.string_at(tensors[-1].address, len(tensors[-1].before))
        return API.take(tensors[-1].address, place)

    def stream(place: Any) -> int:
        return API.stream(chance.choice([0, 1, 2, 13, -1, 2**31 - 1]), chance.choice([0, -1, 2**31 - 1]), place)

    succeeded = 0
    for turn in range(200):
        if turn == 150:
            buffer.close()
        function, place = chance.choice([give, show, take, stream]), (ctypes.c_uint64 * 32)()
        try:
            assert function(chance.choice([place, place, None])) == 0
        except (BufferError, TypeError, ValueError):
            continue
        succeeded += 1
        if function is give:
            ManagedTensorVersioned.from_address(place[0]).deleter(place[0])
        elif function is take:
            ctypes.pythonapi.Py_DecRef(ctypes.cast(place[0], ctypes.py_object))
    assert 20 < succeeded < 180
    collect()
    assert [tensor.deletions for tensor in tensors] == [1] * len(tensors)
