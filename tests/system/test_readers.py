# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What asks NVML without a layer in between: it says what the function of the raw layer says."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil

import pytest

from cuda_core_cffi import system
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._raw.types import Record
from cuda_core_cffi.system import _library
from cuda_core_cffi.system._library import FORMS, nvml
from cuda_core_cffi.system._snapshot import MemoryInfo, Utilization
from cuda_core_cffi.system.exceptions import FunctionNotFoundError, NvmlError

MODULES = [importlib.import_module(f"{system.__name__}.{item.name}") for item in pkgutil.iter_modules(system.__path__)]
NAMES = {lib.ccc_nvml_find(name.encode()): name for name in nvml.__all__ if name.startswith("nvml")}
MEASURED = ("nvmlDeviceGetPcieThroughput",)  # by each call anew, so that no two say the same


class Asked:
    """What readers are asked of: it has a handle."""

    def __init__(self, handle: int) -> None:
        self._handle = handle


def question_of(reader):
    """Return the question of a reader."""
    return inspect.getclosurevars(reader).nonlocals["question"]


def functions_of(module):
    """Yield the functions of a module and those of the properties of its classes, with their names."""
    yield from ((name, item) for name, item in vars(module).items() if inspect.isfunction(item))
    for cls in vars(module).values():
        if inspect.isclass(cls) and cls.__module__ == module.__name__:
            yield from ((name, item.fget) for name, item in vars(cls).items() if isinstance(item, property))


READERS = {
    f"{NAMES[question_of(item).function]}-{name}": item
    for module in MODULES
    for name, item in functions_of(module)
    if inspect.isfunction(item) and item.__module__ == _library.__name__ and item.__name__ == "read"
}


def test_the_readers_are_found() -> None:
    assert len(READERS) > 40


def extra(reader) -> tuple[int, ...]:
    """Return what a reader takes beside the object."""
    form = question_of(reader).form
    return (0,) * FORMS.index(form) if form in FORMS else ()


def of_text(reader) -> bool:
    """Return whether the function of a reader takes the length of a text."""
    return question_of(reader).form == lib.CCC_NVML_TEXT


def arguments_of(name: str) -> list[str]:
    """Return the arguments of a raw function that must be given."""
    parameters = inspect.signature(getattr(nvml, name)).parameters.values()
    return [item.name for item in parameters if item.default is item.empty]


def asked(reader) -> tuple[int, ...]:
    """Return what to ask a reader."""
    return (Asked(system.Device(index=0)._handle), *extra(reader))


@pytest.mark.parametrize("key", READERS)
def test_the_function_takes_what_the_reader_gives(key) -> None:
    name, reader = key.partition("-")[0], READERS[key]
    taken = arguments_of(name)
    assert len(taken) == len(asked(reader)) + of_text(reader)
    assert (taken[-1:] == ["length"]) == of_text(reader)


def outcome(ask, *arguments):
    """Return what a reader tells, or the name of the error."""
    try:
        return ask(*arguments)
    except NvmlError as error:
        return error.name


def raw_outcome(function, *arguments):
    """Return what a raw function tells, or the name of the error."""
    status, *told = function(*arguments)
    return status.name if status else told[0] if len(told) == 1 else tuple(told)


def agree(told, raw) -> bool:
    """Return whether a reader tells what a raw function does, or a meaning of that."""
    if isinstance(told, Utilization):
        return (told.gpu, told.memory) == (raw.gpu, raw.memory)
    if hasattr(told, "_record"):
        return bytes(ffi.buffer(told._record)) == bytes(ffi.buffer(raw._cdata))
    if isinstance(raw, Record):
        return any(agree(told, getattr(raw, name)) for name in type(raw)._fields)
    if isinstance(raw, tuple):
        return all(map(agree, told, raw)) if isinstance(told, tuple) else any(agree(told, item) for item in raw)
    if isinstance(raw, bytes):
        return told == raw.decode()
    return told == raw or (isinstance(raw, int) and isinstance(told, (bool, str, enum.Enum, type(None))))


@pytest.mark.parametrize("key", READERS)
def test_it_says_what_the_raw_function_says(key) -> None:
    name, reader = key.partition("-")[0], READERS[key]
    function, arguments = getattr(nvml, name), asked(reader)
    raw_arguments = (arguments[0]._handle, *arguments[1:], *(nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE,) * of_text(reader))
    if name in MEASURED:
        assert type(outcome(reader, *arguments)) is type(raw_outcome(function, *raw_arguments))
        return
    # a GPU may do something else a moment later
    assert any(agree(outcome(reader, *arguments), raw_outcome(function, *raw_arguments)) for _ in range(20))


@pytest.mark.simulator_only("the library of a real driver reads what is no device")
def test_a_device_that_nvml_does_not_know_is_an_error() -> None:
    for reader in READERS.values():
        with pytest.raises(NvmlError):
            reader(Asked(0), *extra(reader))


def test_a_reader_takes_a_handle_and_numbers_of_32_bits() -> None:
    reader = _library.reads_number("nvmlDeviceGetTemperature", int, arguments=1)
    with pytest.raises(OverflowError):
        reader(Asked(1), 2**32)
    with pytest.raises((TypeError, AttributeError)):
        reader("1", 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda name: _library.reads_number(name, int),
        lambda name: _library.reads_packed(name, Utilization),
        lambda name: _library.reads_structure(name, "nvmlMemory_v2_t", MemoryInfo),
    ],
    ids=["number", "packed", "structure"],
)
def test_what_the_header_lacks_is_an_error_when_it_is_asked_for(make) -> None:
    reader = make("nvmlDeviceGetTheWeather")
    with pytest.raises(FunctionNotFoundError, match=r"nvmlDeviceGetTheWeather is not in the nvml\.h"):
        reader(Asked(0))


def test_a_structure_that_the_header_lacks_is_an_error_when_it_is_asked_for() -> None:
    for reader in (
        _library.reads_structure("nvmlDeviceGetMemoryInfo_v2", "nvmlWeather_v1_t", MemoryInfo),
        _library.reads_member("nvmlDeviceGetMemoryInfo_v2", "nvmlWeather_v1_t", "rain", int),
    ):
        with pytest.raises(FunctionNotFoundError, match="nvmlDeviceGetMemoryInfo_v2"):
            reader(0)


def test_nvml_is_initialised_before_the_first_question(monkeypatch) -> None:
    for reader in READERS.values():
        arguments, begun = asked(reader), []

        def initialise(begun=begun) -> None:
            begun.append(1)
            _library.process.ready = True

        monkeypatch.setattr(_library, "initialise", initialise)
        _library.process.ready = False
        outcome(reader, *arguments)
        assert begun == [1]
