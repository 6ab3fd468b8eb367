# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What asks NVML without a layer in between: it says what the function of the raw layer says."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

from cuda_core_cffi import system
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi.system import _library
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system.exceptions import FunctionNotFoundError, NvmlError

MODULES = [importlib.import_module(f"{system.__name__}.{item.name}") for item in pkgutil.iter_modules(system.__path__)]
READERS = {
    inspect.getclosurevars(item).nonlocals["name"]: item
    for module in MODULES
    for name, item in vars(module).items()
    if name.startswith("read_") and inspect.getmodule(item) is _library
}

MEASURED = ("nvmlDeviceGetPcieThroughput",)  # by each call anew, so that no two say the same


def made_by(reader) -> str:
    """Return the name of the function that made a reader."""
    return reader.__qualname__.partition(".")[0]


def extra(reader) -> tuple[int, ...]:
    """Return what a reader takes beside the handle."""
    return (0,) * (len(inspect.signature(reader).parameters) - 1)


def arguments_of(name: str) -> list[str]:
    """Return the arguments of a raw function that must be given."""
    parameters = inspect.signature(getattr(nvml, name)).parameters.values()
    return [item.name for item in parameters if item.default is item.empty]


@pytest.mark.parametrize("name", READERS)
def test_the_function_takes_what_the_reader_gives(name) -> None:
    taken = arguments_of(name)
    assert len(taken) == 1 + len(extra(READERS[name])) + (made_by(READERS[name]) == "reads_text")
    assert (taken[1:] == ["length"]) == (made_by(READERS[name]) == "reads_text")


def outcome(ask, *arguments):
    """Return what a reader tells, or the name of the error."""
    try:
        told = ask(*arguments)
    except NvmlError as error:
        return error.name
    return bytes(ffi.buffer(told)) if isinstance(told, ffi.CData) else told


def raw_outcome(function, *arguments):
    """Return what a raw function tells, or the name of the error."""
    status, told = function(*arguments)
    if status:
        return status.name
    if isinstance(told, bytes):
        return told.decode()
    return bytes(ffi.buffer(told._cdata)) if hasattr(told, "_cdata") else told


@pytest.mark.parametrize("name", READERS)
def test_it_says_what_the_raw_function_says(name) -> None:
    handle = system.Device(index=0)._handle
    reader, function = READERS[name], getattr(nvml, name)
    asked = (handle, *extra(reader))
    raw_asked = (handle, nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE) if made_by(reader) == "reads_text" else asked
    if name in MEASURED:
        assert type(outcome(reader, *asked)) is type(raw_outcome(function, *raw_asked))
        return
    # a GPU may do something else a moment later
    assert any(outcome(reader, *asked) == raw_outcome(function, *raw_asked) for _ in range(20))


@pytest.mark.simulator_only("the library of a real driver reads what is no device")
def test_a_device_that_nvml_does_not_know_is_an_error() -> None:
    for reader in READERS.values():
        with pytest.raises(NvmlError):
            reader(0, *extra(reader))


@pytest.mark.parametrize(
    "make",
    [
        _library.reads_number,
        _library.reads_number_of,
        lambda name: _library.reads_structure(name, "nvmlMemory_v2_t"),
    ],
    ids=["number", "number_of", "structure"],
)
def test_what_the_header_lacks_is_an_error_when_it_is_asked_for(make) -> None:
    reader = make("nvmlDeviceGetTheWeather")
    arguments = (0,) if "number_of" in reader.__qualname__ else ()
    with pytest.raises(FunctionNotFoundError, match=r"nvmlDeviceGetTheWeather is not in the nvml\.h"):
        reader(0, *arguments)


def test_a_structure_that_the_header_lacks_is_an_error_when_it_is_asked_for() -> None:
    reader = _library.reads_structure("nvmlDeviceGetMemoryInfo_v2", "nvmlWeather_v1_t")
    with pytest.raises(FunctionNotFoundError, match="nvmlDeviceGetMemoryInfo_v2"):
        reader(0)


def test_nvml_is_initialised_before_the_first_question(monkeypatch) -> None:
    handle = system.Device(index=0)._handle
    for reader in READERS.values():
        begun = []
        monkeypatch.setattr(_library.process, "ready", False)
        monkeypatch.setattr(_library, "initialise", lambda begun=begun: begun.append(1))
        outcome(reader, handle, *extra(reader))
        assert begun == [1]
