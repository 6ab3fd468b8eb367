# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The public API by introspection: classes and functions of the public modules, and the members of live objects.

`EXCLUDED` lists what is never called, with the reason.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

MODULES = ("cuda_core_cffi", "cuda_core_cffi.utils", "cuda_core_cffi.graph", "cuda_core_cffi.texture")

# What is never called: a name, or Class.member, where the class is the one that defines the member.
EXCLUDED = {
    "install_as_cuda_core": "from then on code whose handle the program has stays loaded, for the program to unload",
    "lib": "the raw driver: a wrong pointer crashes by design",
    "ffi": "the raw driver: a wrong pointer crashes by design",
    "make_ffi": "the raw driver: a wrong pointer crashes by design",
    "Stream.from_handle": "an address of no stream, or of one destroyed later, crashes by design; `values` wraps the "
    "default streams by it",
    "Buffer.from_handle": "an address of no memory crashes by design; `world.borrowed` wraps memory that outlives it",
    "ManagedBuffer.from_handle": "as Buffer.from_handle",
    "Kernel.from_handle": "an address of no kernel crashes by design; `world.same_kernel` wraps a kernel that lives",
    "MemPool.deallocate": "frees an address that a buffer may own: a double free by design",
    "GraphMemoryResource.deallocate": "as MemPool.deallocate",
    "LegacyPinnedMemoryResource.deallocate": "as MemPool.deallocate",
    "VirtualMemoryResource.deallocate": "as MemPool.deallocate",
    "TrackingMemoryResource.deallocate": "as MemPool.deallocate",
    "SynchronousMemoryResource.deallocate": "as MemPool.deallocate",
    "MemoryResource.deallocate": "as MemPool.deallocate",
    "Buffer.wait_value": "a stream that waits for a value that nobody writes hangs by design",
    "WaitValue": "as Buffer.wait_value",
    "TrackingMemoryResource.plot": "draws with matplotlib, not with this package",
    "Exporter.__release_buffer__": "is called by the interpreter, with a view that it made",
}


class Parameter(NamedTuple):
    """A parameter of something that can be called.

    Attributes
    ----------
    name, annotation : str
        What the signature says; the annotation is empty where there is none.
    kind : str
        ``"positional"``, ``"keyword"`` or ``"rest"``.
    is_required : bool
        Whether it has no default.
    """

    name: str
    annotation: str
    kind: str
    is_required: bool


class Callee(NamedTuple):
    """A public class, function or method."""

    name: str
    parameters: tuple[Parameter, ...]


class Member(NamedTuple):
    """A public attribute of a class: a method if it is called, else a property with the annotation of its value."""

    name: str
    callee: Callee | None
    annotation: str = ""


KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "rest",
}


class Surface:
    """The public names of some modules.

    Attributes
    ----------
    names : dict of str to object
        Every public name.
    classes, functions : dict of str to Callee
        Those that are called. Exceptions and enumerations are none of the classes.
    packages : tuple of str
        The top-level packages: objects of their classes are part of the API.
    """

    def __init__(self, modules: Sequence[str] = MODULES) -> None:
        self.names: dict[str, Any] = {}
        self.classes: dict[str, Callee] = {}
        self.functions: dict[str, Callee] = {}
        self.packages = tuple({name.partition(".")[0]: None for name in modules})
        for module in map(importlib.import_module, modules):
            for name in module.__all__:
                value = self.names[name] = getattr(module, name)
                if name in EXCLUDED:
                    continue
                if not inspect.isclass(value):
                    if callable(value):
                        self.functions[name] = callee(name, value)
                elif not issubclass(value, (BaseException, enum.Enum)):  # whose members are there already
                    self.classes[name] = callee(name, value)

    def is_ours(self, kind: type) -> bool:
        """Tell whether a class belongs to the packages; enumerations, whose members are everybody's, do not."""
        return not issubclass(kind, enum.Enum) and kind.__module__.partition(".")[0] in self.packages

    @functools.cache  # noqa: B019 (one surface a process)
    def members(self, kind: type) -> tuple[Member, ...]:
        """Return the public members of a class, in the order of their names."""
        found = []
        for name in sorted(dir(kind)):
            owner = next((base.__name__ for base in kind.__mro__ if name in vars(base)), "")
            if name.startswith("_") or f"{owner}.{name}" in EXCLUDED:
                continue
            value = inspect.getattr_static(kind, name)
            called = isinstance(value, (staticmethod, classmethod)) or (
                callable(value) and not inspect.isdatadescriptor(value) and not inspect.isclass(value)
            )
            if called:
                # what is bound by the class already has no parameter for it
                skipped = 0 if isinstance(value, (staticmethod, classmethod)) else 1
                found.append(Member(name, callee(name, getattr(kind, name), skipped)))
            else:
                getter = getattr(value, "fget", None)
                found.append(Member(name, None, text_of(getattr(getter, "__annotations__", {}).get("return", ""))))
        return tuple(found)


def callee(name: str, value: Any, skipped: int = 0) -> Callee:
    """Return something with its parameters; what has no signature takes none."""
    signature = None
    with contextlib.suppress(ValueError, TypeError):
        signature = inspect.signature(value)
    parameters = list(signature.parameters.values())[skipped:] if signature else []
    return Callee(
        name,
        tuple(
            Parameter(p.name, text_of(p.annotation), KINDS[p.kind], p.default is p.empty)
            for p in parameters
            if p.kind in KINDS
        ),
    )


def text_of(annotation: Any) -> str:
    """Return an annotation as source."""
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__forward_arg__", None) or getattr(annotation, "__name__", str(annotation))
