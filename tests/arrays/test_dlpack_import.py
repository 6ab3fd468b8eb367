# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Views of DLPack tensors that are made here, so that each of their fields can be as unusual as DLPack allows."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import types
from typing import Any

import numpy
import pytest
from arrays import Interface
from helpers import collect, run_python
from tensors import READ_ONLY, Deleter, Managed, Producer

from cuda_core_cffi import Device, Stream, _capsule, simulator
from cuda_core_cffi._arrays import interfaces
from cuda_core_cffi._arrays.interfaces import MOST_TYPES, readers
from cuda_core_cffi._core.dtypes import ML_TYPES, NUMPY_TYPES, code_of, dtype_of
from cuda_core_cffi.utils import StridedMemoryView

BOTH = pytest.mark.parametrize("versioned", [False, True])
CPU, CUDA, CUDA_HOST, ROCM, CUDA_MANAGED = 1, 2, 3, 10, 13
EXCHANGE = b"dlpack_exchange_api"


def view_of(managed: Managed, stream: int = -1) -> StridedMemoryView:
    return StridedMemoryView.from_dlpack(Producer(managed), stream)


# What the view says


@BOTH
def test_a_view_says_what_the_tensor_says(versioned: bool) -> None:
    view = view_of(Managed(versioned, data=0x1000, shape=(2, 3), strides=(7, 2)))
    assert (view.ptr, view.shape, view.strides, view.size) == (0x1000, (2, 3), (7, 2), 6)
    assert view.dtype == numpy.float32
    assert (view.device_id, view.is_device_accessible, view.readonly) == (-1, False, False)


@BOTH
def test_the_address_includes_the_byte_offset(versioned: bool) -> None:
    assert view_of(Managed(versioned, data=0x1000, shape=(4,), byte_offset=48)).ptr == 0x1030


def test_no_strides_mean_c_order() -> None:
    view = view_of(Managed(True, data=0x1000, shape=(2, 3)))
    assert view.strides is None
    assert view._layout.is_contiguous_c


def test_a_scalar_has_no_dimensions() -> None:
    view = view_of(Managed(True, data=0x1000))
    assert (view.shape, view.size) == ((), 1)


@pytest.mark.parametrize("data", [0, 0x1000])
def test_an_empty_tensor_may_have_no_address(data: int) -> None:
    view = view_of(Managed(True, data=data, shape=(0, 3), byte_offset=8))
    assert (view.size, view.shape, view.ptr) == (0, (0, 3), data + 8 if data else 0)


@pytest.mark.parametrize(("flags", "readonly"), [(0, False), (READ_ONLY, True), (2, False), (3, True)])
def test_the_read_only_flag_is_kept(flags: int, readonly: bool) -> None:
    assert view_of(Managed(True, data=0x1000, shape=(1,), flags=flags)).readonly is readonly


@pytest.mark.parametrize(
    ("device", "device_id", "accessible"),
    [((CPU, 0), -1, False), ((CUDA, 3), 3, True), ((CUDA_HOST, 0), 0, True), ((CUDA_MANAGED, 1), 1, True)],
)
def test_the_device_is_kept(device: tuple[int, int], device_id: int, accessible: bool) -> None:
    view = view_of(Managed(True, data=0x1000, shape=(1,), device=device))
    assert (view.device_id, view.is_device_accessible) == (device_id, accessible)
    assert view.__dlpack_device__() == device


# Data types


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_every_type_of_numpy_goes_both_ways(name: str) -> None:
    code, bits = NUMPY_TYPES[name]
    view = view_of(Managed(True, data=0x1000, shape=(1,), dtype=(code, bits, 1)))
    assert view.dtype == numpy.dtype(name)
    assert dtype_of(code_of(view.dtype)) == view.dtype


@pytest.mark.parametrize("name", ML_TYPES)
def test_every_type_of_ml_dtypes_goes_both_ways(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    code, bits = ML_TYPES[name]
    view = view_of(Managed(True, data=0x1000, shape=(1,), dtype=(code, bits, 1)))
    assert view.dtype == numpy.dtype(getattr(ml_dtypes, name))
    assert dtype_of(code_of(view.dtype)) == view.dtype


def test_the_codes_are_what_numpy_gives() -> None:
    for name in NUMPY_TYPES:
        assert StridedMemoryView.from_dlpack(numpy.zeros(1, name), -1).dtype == numpy.dtype(name)


def test_bfloat16_without_ml_dtypes_is_an_error_that_names_it() -> None:
    done = run_python(
        """
        import sys
        sys.modules["ml_dtypes"] = None
        from cuda_core_cffi._core.dtypes import dtype_of
        try:
            dtype_of(4 | 16 << 8 | 1 << 16)
        except ModuleNotFoundError as error:
            print(error)
        """
    )
    assert "dtype bfloat16 needs the package ml_dtypes" in done.stdout, done.stderr


@pytest.mark.parametrize("dtype", [(2, 32, 4), (0, 4, 1), (17, 4, 1), (99, 8, 1)], ids=repr)
def test_a_type_that_numpy_lacks_is_an_error_when_it_is_asked_for(dtype: tuple[int, int, int]) -> None:
    view = view_of(Managed(True, data=0x1000, shape=(2,), dtype=dtype))
    assert view.shape == (2,)
    with pytest.raises(BufferError, match=f"code {dtype[0]}, {dtype[1]} bits and {dtype[2]} lanes"):
        _ = view.dtype
    assert "unknown" in repr(view)


@pytest.mark.parametrize("dtype", [">i4", "M8[s]", "S3", "U2", "V4", [("a", "i4")], "longdouble", "O"], ids=repr)
def test_a_type_that_dlpack_lacks_has_no_code(dtype: Any) -> None:
    with pytest.raises(BufferError, match="DLPack has no type"):
        code_of(numpy.dtype(dtype))


# How the producer is asked


def test_a_producer_on_the_host_is_asked_without_a_stream() -> None:
    producer = Producer(Managed(True, shape=(0,)))
    StridedMemoryView.from_dlpack(producer, 5)
    assert producer.asked == [{"stream": None, "max_version": (1, 0)}]


@pytest.mark.parametrize(("given", "told"), [(-1, -1), (0, 1), (1, 1), (2, 2), (0x1234, 0x1234)])
@pytest.mark.parametrize("device_type", [CUDA, CUDA_HOST, CUDA_MANAGED])
def test_a_producer_on_a_device_is_told_the_stream(given: int, told: int, device_type: int) -> None:
    producer = Producer(Managed(True, shape=(0,), device=(device_type, 0)))
    StridedMemoryView.from_any_interface(producer, given)
    assert producer.asked == [{"stream": told, "max_version": (1, 0)}]


@pytest.mark.parametrize("device_type", [CPU, CUDA])
@pytest.mark.parametrize("make", [StridedMemoryView.from_dlpack, StridedMemoryView.from_any_interface])
def test_no_stream_is_ambiguous(device_type: int, make: Any) -> None:
    producer = Producer(Managed(True, shape=(0,), device=(device_type, 0)))
    with pytest.raises(BufferError, match="stream_ptr=None is ambiguous"):
        make(producer)
    assert producer.asked == []


@pytest.mark.parametrize("library", ["jax", "jaxlib._jax"])
@pytest.mark.parametrize(
    ("device_type", "given", "told"),
    [(CUDA, -1, 1), (CUDA, 0, 1), (CUDA, 0x1234, 0x1234), (CPU, -1, None), (CPU, 5, None)],
)
@pytest.mark.parametrize("make", [StridedMemoryView.from_dlpack, StridedMemoryView.from_any_interface])
@pytest.mark.parametrize("room", [0, 1 << 20], ids=["a type too many", "one to remember"])
def test_jax_is_never_told_that_no_stream_waits(
    library: str, device_type: int, given: int, told: int | None, make: Any, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type("ArrayImpl", (Producer,), {"__module__": library})
    producer = kind(Managed(True, shape=(0,), device=(device_type, 0)))
    monkeypatch.setattr(interfaces, "MOST_TYPES", room)
    with pytest.raises(BufferError, match="stream_ptr=None is ambiguous"):
        make(producer)
    for _ in range(2):  # the first time its type is new
        producer.managed = Managed(True, shape=(0,), device=(device_type, 0))
        make(producer, given)
    for known in (interfaces.readers, interfaces.dlpack_readers):
        known.pop(kind, None)
    assert producer.asked == [{"stream": told, "max_version": (1, 0)}] * 2


@pytest.mark.parametrize(("given", "told"), [(-1, -1), (0, 1), (0x1234, 0x1234)])
def test_cupy_is_not_asked_for_the_device(given: int, told: int) -> None:
    class Array(Producer):
        __module__ = "cupy"

        def __dlpack_device__(self) -> tuple[int, int]:
            raise AssertionError("this would ask the driver")

    producer = Array(Managed(True, data=0x1000, shape=(3,), device=(CUDA, 0)))
    assert StridedMemoryView.from_any_interface(producer, given).device_id == 0
    assert producer.asked == [{"stream": told, "max_version": (1, 0)}]
    with pytest.raises(BufferError, match="stream_ptr=None is ambiguous"):
        StridedMemoryView.from_any_interface(producer)
    with pytest.raises(OverflowError):
        StridedMemoryView.from_any_interface(producer, -2)


@pytest.mark.parametrize(("stream", "error"), [(-2, OverflowError), ("1", TypeError), (1.5, TypeError)])
def test_what_is_no_stream_is_refused(stream: Any, error: type[Exception]) -> None:
    producer = Producer(Managed(True, shape=(0,), device=(CUDA, 0)))
    with pytest.raises(error):
        StridedMemoryView.from_dlpack(producer, stream)
    assert producer.asked == []


def test_a_producer_older_than_dlpack_1_is_asked_again_without_a_version() -> None:
    producer = Producer(Managed(False, data=0x1000, shape=(3,)), takes_version=False)
    assert StridedMemoryView.from_dlpack(producer, -1).shape == (3,)
    assert producer.asked == [{"stream": None}]


@pytest.mark.parametrize("error", [BufferError, TypeError, AttributeError, KeyboardInterrupt])
def test_an_error_of_the_producer_comes_through(error: type[BaseException]) -> None:
    class Unwilling(Producer):
        def __dlpack__(self, **how: Any) -> Any:
            raise error("not today")

    with pytest.raises(error, match="not today"):
        StridedMemoryView.from_any_interface(Unwilling(Managed(True)), -1)


def test_an_error_of_the_producers_device_comes_through() -> None:
    class Lost(Producer):
        def __dlpack_device__(self) -> tuple[int, int]:
            raise OSError("not today")

    with pytest.raises(OSError, match="not today"):
        StridedMemoryView.from_any_interface(Lost(Managed(True)), -1)


def test_a_producer_without_a_device_is_refused() -> None:
    class Placeless:
        def __dlpack__(self, **how: Any) -> Any:
            raise AssertionError("asked too early")

    with pytest.raises(BufferError, match="it needs __dlpack__ and __dlpack_device__"):
        StridedMemoryView.from_any_interface(Placeless(), -1)


def test_a_type_whose_instances_may_speak_dlpack_or_not_is_asked_each_time() -> None:
    class Moody(Interface):
        @property
        def __dlpack__(self) -> Any:
            if not self.willing:
                raise AttributeError("not today")
            return Producer(Managed(True, data=0x2000, shape=(5,))).__dlpack__

        def __dlpack_device__(self) -> tuple[int, int]:
            return (CPU, 0)

    moody = Moody("__array_interface__", 0x1000)
    for moody.willing, shape in ((True, (5,)), (False, (4, 6)), (True, (5,))):
        assert StridedMemoryView.from_any_interface(moody, -1).shape == shape


def test_a_process_may_make_as_many_array_types_as_it_likes() -> None:
    for _ in range(2 * MOST_TYPES):
        kind = type("Array", (Producer,), {})
        assert StridedMemoryView.from_any_interface(kind(Managed(True, shape=(3,))), -1).shape == (3,)
    assert len(readers) <= MOST_TYPES


# The end of the tensor


@BOTH
@pytest.mark.parametrize("device_type", [CPU, CUDA])
def test_the_deleter_runs_once_when_the_view_goes(versioned: bool, device_type: int) -> None:
    managed = Managed(versioned, data=0x1000, shape=(2,), device=(device_type, 0))
    view = view_of(managed)
    collect()
    assert managed.deletions == 0
    del view
    collect()
    assert managed.deletions == 1


@BOTH
def test_the_deleter_runs_when_the_last_view_goes(versioned: bool) -> None:
    managed = Managed(versioned, data=0x1000, shape=(2,))
    view = view_of(managed)
    other = view.view(dtype="i4")
    del view
    collect()
    assert managed.deletions == 0
    assert other.shape == (2,)
    del other
    collect()
    assert managed.deletions == 1


def test_the_deleter_waits_for_what_a_view_was_exported_to() -> None:
    memory = numpy.arange(3, dtype=numpy.float32)
    managed = Managed(True, data=memory.ctypes.data, shape=(3,))
    array = numpy.from_dlpack(view_of(managed))
    collect()
    assert managed.deletions == 0
    assert array.tolist() == [0, 1, 2]
    del array
    collect()
    numpy.from_dlpack(StridedMemoryView.from_dlpack(memory, -1))  # an export finds what consumers have deleted
    collect()
    assert managed.deletions == 1


@BOTH
def test_a_tensor_without_deleter_is_left_alone(versioned: bool) -> None:
    managed = Managed(versioned, data=0x1000, shape=(2,))
    managed.tensor.deleter = Deleter()
    view = view_of(managed)
    del view
    collect()
    assert managed.deletions == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"device": (ROCM, 0)}, "DLPack device type 10"),
        ({"version": (2, 0)}, r"speaks DLPack 2\.0"),
        ({"shape": (1,) * 65}, "65 dimensions"),
    ],
)
def test_a_tensor_that_cannot_be_viewed_is_deleted_at_once(wrong: dict[str, Any], message: str) -> None:
    managed = Managed(True, data=0x1000, **({"shape": (1,)} | wrong))
    with pytest.raises(BufferError, match=message):
        _capsule.own(managed.capsule())
    assert managed.deletions == 1


def test_memory_on_another_kind_of_device_is_refused_before_the_tensor_is_asked_for() -> None:
    managed = Managed(True, data=0x1000, shape=(1,), device=(ROCM, 0))
    with pytest.raises(BufferError, match="DLPack device type 10"):
        view_of(managed)
    assert managed.deletions == 0


def test_a_capsule_is_viewed_once() -> None:
    managed = Managed(True, data=0x1000, shape=(1,))
    capsule = managed.capsule()
    _kept = _capsule.own(capsule)
    with pytest.raises(ValueError, match="already been consumed"):
        _capsule.own(capsule)
    assert managed.deletions == 0


@pytest.mark.parametrize("wrong", [None, 1, numpy.zeros(3)], ids=lambda item: type(item).__name__)
def test_what_is_no_capsule_is_refused(wrong: Any) -> None:
    class Broken(Producer):
        def __dlpack__(self, **how: Any) -> Any:
            return wrong

    with pytest.raises(TypeError, match="expected a DLPack capsule"):
        StridedMemoryView.from_dlpack(Broken(Managed(True)), -1)


def test_views_are_made_and_dropped_in_many_threads() -> None:
    tensors = [Managed(index % 2 == 0, data=0x1000, shape=(2,)) for index in range(400)]
    barrier = threading.Barrier(4)

    def work(part: int) -> None:
        barrier.wait()
        for managed in tensors[part::4]:
            assert view_of(managed).shape == (2,)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    collect()
    assert [managed.deletions for managed in tensors] == [1] * len(tensors)


# The C exchange API


def exchange_api() -> Any:
    """Return the address of the C exchange API of StridedMemoryView."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(StridedMemoryView.__dlpack_c_exchange_api__, EXCHANGE)


class Api(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("give", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))),
        ("take", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))),
        ("peek", ctypes.c_void_p),
        ("stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))),
    ]


needs_pythonapi = pytest.mark.skipif(
    not hasattr(ctypes, "pythonapi"), reason="this interpreter has no ctypes.pythonapi"
)


def test_a_view_is_given_through_the_c_exchange_api() -> None:
    memory = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    view = StridedMemoryView.from_dlpack(memory[:, ::2], -1)
    info = _capsule.describe(_capsule.import_exchanged(StridedMemoryView.__dlpack_c_exchange_api__, view))
    assert info[:3] == (memory.ctypes.data, (2, 2), (3, 2))
    assert info[7] == 2 | 32 << 8 | 1 << 16


@needs_pythonapi
def test_the_c_exchange_api_makes_views() -> None:
    api = Api.from_address(exchange_api())
    assert (tuple(api.version), api.previous) == ((1, 3), None)
    managed = Managed(True, data=0x1000, shape=(2, 3), strides=(3, 1))
    out = ctypes.py_object()
    assert api.take(managed.address, ctypes.byref(out)) == 0
    view = out.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(view))  # the reference that the call gave
    assert isinstance(view, StridedMemoryView)
    assert (view.ptr, view.shape, view.exporting_obj) == (0x1000, (2, 3), None)
    del view, out
    collect()
    assert managed.deletions == 1


@needs_pythonapi
def test_the_c_exchange_api_passes_errors_on() -> None:
    api = Api.from_address(exchange_api())
    view = view_of(Managed(True, data=0x1000, shape=(2,), dtype=(0, 32, 1)))
    view._source = (*view._info[:7], None, *view._info[8:])  # as a view of a buffer without a type has it
    with pytest.raises(BufferError, match="no dtype"):
        api.give(view, ctypes.byref(ctypes.c_void_p()))
    managed = Managed(True, data=0x1000, shape=(2,), version=(2, 0))
    with pytest.raises(BufferError, match=r"DLPack 2\.0"):
        api.take(managed.address, ctypes.byref(ctypes.py_object()))
    assert managed.deletions == 1


@needs_pythonapi
def test_the_c_exchange_api_refuses_to_allocate() -> None:
    api = Api.from_address(exchange_api())
    said: list[tuple[bytes, bytes]] = []
    Report = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    report = Report(lambda _, kind, message: said.append((kind, message)))
    allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, Report)
    assert allocate(api.allocate)(None, ctypes.byref(ctypes.c_void_p()), None, report) == -1
    assert said[0][0] == b"BufferError"


@needs_pythonapi
def test_the_c_exchange_api_works_in_the_legacy_default_stream() -> None:
    api = Api.from_address(exchange_api())
    out = ctypes.c_void_p(5)
    assert (api.stream(CUDA, 0, ctypes.byref(out)), out.value) == (0, None)


class Exchanged:
    """Speaks DLPack through the C exchange API alone, as a tensor of PyTorch that is yet to be conjugated or not."""

    __dlpack_c_exchange_api__ = StridedMemoryView.__dlpack_c_exchange_api__

    def __init__(self, array: Any, conjugated: bool = False, negated: bool = False) -> None:
        self.view = StridedMemoryView.from_any_interface(array, -1)
        self.conjugated, self.negated, self.asked, self.given = conjugated, negated, 0, 0

    def is_conj(self) -> bool:
        self.asked += 1
        return self.conjugated

    def is_neg(self) -> bool:
        return self.negated

    def _give_tensor(self) -> int:
        self.given += 1
        return self.view._give_tensor()


@pytest.mark.parametrize("stream", [-1, 0, 1, 2])
@pytest.mark.parametrize("make", [StridedMemoryView.from_any_interface, StridedMemoryView.from_dlpack])
def test_a_tensor_is_read_through_the_c_exchange_api_once(make: Any, stream: int) -> None:
    array = numpy.arange(12.0).reshape(3, 4)
    tensor = Exchanged(array)
    view = make(tensor, stream)
    assert (view.ptr, view.shape, view.exporting_obj is tensor) == (array.ctypes.data, (3, 4), True)
    assert (tensor.given, tensor.asked) == (1, 0)


@pytest.mark.parametrize("stream", [-1, 1])
@pytest.mark.parametrize(
    "array",
    [numpy.arange(4, dtype="complex64"), numpy.arange(8)[::2], numpy.arange(4)],
    ids=["complex", "apart", "plain"],
)
@pytest.mark.parametrize("how", [{"conjugated": True}, {"negated": True}, {}], ids=str)
def test_only_a_tensor_that_may_be_lazy_is_asked_whether_it_is(array: Any, how: Any, stream: int) -> None:
    tensor = Exchanged(array, **how)
    is_plain = array.dtype.kind != "c" and array.strides[0] == array.itemsize
    if how and not is_plain:
        with pytest.raises(BufferError, match="resolve_neg"):
            StridedMemoryView.from_any_interface(tensor, stream)
    else:
        assert StridedMemoryView.from_any_interface(tensor, stream).ptr == array.ctypes.data
    assert (tensor.given, tensor.asked) == (1, 0 if is_plain else 1)


def test_what_the_c_exchange_api_refuses_is_told_by_dlpacks_method() -> None:
    class Refusing(Exchanged):
        def _give_tensor(self) -> int:
            raise RuntimeError("not through C")

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.view.__dlpack_device__()

        def __dlpack__(self, **arguments: Any) -> Any:
            raise BufferError("nor in this way")

    class Ending(Exchanged):
        def _give_tensor(self) -> int:
            self.given += 1
            raise KeyboardInterrupt

    with pytest.raises(BufferError, match="nor in this way"):
        StridedMemoryView.from_any_interface(Refusing(numpy.zeros(1)), -1)
    with pytest.raises(BufferError, match="does not speak DLPack"):
        StridedMemoryView.from_any_interface(type("Mute", (Exchanged,), {"_give_tensor": None})(numpy.zeros(1)), -1)
    ending = Ending(numpy.zeros(1))
    with pytest.raises(KeyboardInterrupt):
        StridedMemoryView.from_any_interface(ending, -1)
    assert ending.given == 1


@pytest.mark.simulator_only("counts calls of the driver")
def test_a_tensor_of_the_c_exchange_api_is_ordered_where_a_stream_is_given(device: Device, stream: Stream) -> None:
    with device.allocate(8) as buffer:
        tensor = Exchanged(buffer)
        for consumer, waits in ((-1, 0), (stream.handle, 1)):
            with simulator.trace() as trace:
                StridedMemoryView.from_any_interface(tensor, consumer)
            assert trace.names.count("cuStreamWaitEvent") == waits


@pytest.mark.parametrize("stream", [None, "1", 1.5])
def test_a_tensor_needs_a_stream_in_the_c_exchange_api_too(device: Device, stream: Any) -> None:
    with device.allocate(8) as buffer, pytest.raises((BufferError, TypeError)):
        StridedMemoryView.from_any_interface(Exchanged(buffer), stream)


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="on PyPy the producer's capsule is left as it is")
@pytest.mark.parametrize("versioned", [False, True])
def test_the_destructor_of_the_producers_capsule_runs_at_the_end(versioned):
    """The consumed capsule becomes the owner of the tensor, with a destructor of ours that calls the former one."""
    names = []
    kind = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
    destructor = kind(lambda capsule: names.append(name_of(capsule)))
    managed = Managed(versioned, data=4096, shape=(4,))
    held = [managed.capsule()]
    set_destructor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, kind)
    set_destructor(("PyCapsule_SetDestructor", ctypes.pythonapi))(held[0], destructor)
    producer = types.SimpleNamespace(__dlpack__=lambda **how: held[0], __dlpack_device__=lambda: (1, 0))
    view = StridedMemoryView.from_dlpack(producer, -1)
    held.clear()
    gc.collect()
    assert (names, managed.deletions) == ([], 0)
    del view
    assert names == [b"used_dltensor_versioned" if versioned else b"used_dltensor"]
    assert managed.deletions == 1
