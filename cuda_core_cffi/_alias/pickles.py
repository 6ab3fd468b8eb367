# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pickles of ``cuda.core``: those that cuda-core made are read, and those made here name what cuda-core has too."""

from __future__ import annotations

import dataclasses
import importlib
import pickle
from collections.abc import Iterable
from typing import Any

PACKAGE = "cuda_core_cffi"
NAME_OF_RESTORERS = "__pyx_unpickle_"
"""The beginning of the names of functions that Cython adds, which restore instances of a class."""

_UTILITIES = "cuda.core._utils.cuda_utils"


def restore_options(cls: type[Any], checksum: int, state: tuple[Any, ...] | None = None) -> Any:
    """Return an instance of a data class whose pickle was made by code that Cython has generated.

    Cython compares ``checksum`` with the names of the fields; :func:`set_state` compares their number.
    """
    made = object.__new__(cls)
    if state is not None:
        set_state(made, state)
    return made


def set_state(options: Any, state: dict[str, Any] | tuple[Any, ...]) -> None:
    """Set the fields of options from a pickle. Fields that cuda-core does not have get their defaults.

    Cython pickles a tuple of values in the order of their names.
    """
    fields = dataclasses.fields(options)
    if isinstance(state, tuple):
        names = sorted(field.name for field in fields)
        if len(names) != len(state):
            raise pickle.UnpicklingError(
                f"{type(options).__name__} has {len(names)} fields, the pickle has {len(state)}: another version of "
                "cuda-core made it"
            )
        state = dict(zip(names, state, strict=True))
    vars(options).update({field.name: state.get(field.name, field.default) for field in fields})


def restore_code(code: bytes | str, code_type: str, name: str, symbol_mapping: dict[str, str | bytes] | None) -> Any:
    """Return the object code of a pickle."""
    kind = importlib.import_module(PACKAGE).ObjectCode
    return getattr(kind, f"from_{code_type}")(code, name=name, symbol_mapping=symbol_mapping)


def reduce_code(code: Any) -> tuple[object, ...]:
    """Return what cuda-core's pickle of object code has, unless the code is from a file, which that reads again."""
    if isinstance(code.code, str):
        reduced: tuple[object, ...] = code._reduce_with_data()
        return reduced
    return restore_code, (code.code, str(code.code_type), code.name, code.symbol_mapping)


def _reconstruct_numa_current() -> Any:
    """Return the host of a pickle, by the name that cuda-core has for this."""
    return importlib.import_module(PACKAGE).Host.numa_current()


def compute_capability() -> type[Any]:
    """Return the class of compute capabilities, which is not public."""
    kind: type[Any] = importlib.import_module(f"{PACKAGE}._device.device").ComputeCapability
    return kind


def install(options: Iterable[type[Any]]) -> None:
    """Read and write pickles of ``cuda.core``, with these data classes."""
    package = importlib.import_module(PACKAGE)
    for kind in (compute_capability(), package.CUDAError, package.NVRTCError):
        kind.__module__ = _UTILITIES
    restore_code.__module__, restore_code.__qualname__ = "cuda.core._module", "ObjectCode._reduce_helper"
    package.ObjectCode._reduce_helper = staticmethod(restore_code)
    package.ObjectCode.__reduce__ = reduce_code
    for kind in options:
        kind.__setstate__ = set_state
