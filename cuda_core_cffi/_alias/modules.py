# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The modules that are served under the names of ``cuda.core``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import warnings
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

from cuda_core_cffi._alias import pickles
from cuda_core_cffi._alias.results import handle_return

PACKAGE = "cuda_core_cffi"
NAME = "cuda.core"
OLD_NAME = "cuda.core.experimental"
API_VERSION = "1.2.2"
"""The version of cuda-core whose API is served."""
FILE = str(pathlib.Path(__file__).resolve().parent / "core" / "__init__.py")
"""The file that ``cuda.core`` says it is of."""

BUILDS = ("cu12", "cu13")
"""Packages of cuda-core's wheel, of which ``cuda.core`` is one. Some pickles name them."""

SHARED = ("checkpoint", "graph", "system", "texture", "typing", "utils")
"""Public modules, which are those of this package where it has them."""

# Where released programs and pickles have private names from, and where these names are here.
_CUDA_UTILS = "_utils.cuda_utils"
_PICKLES = f"{PACKAGE}._alias.pickles"
PRIVATE: dict[str, tuple[str, ...]] = {
    "_context": (PACKAGE,),
    "_device": (PACKAGE,),
    "_device_resources": (PACKAGE,),
    "_dlpack": (f"{PACKAGE}._memory.dlpack",),
    "_event": (PACKAGE, f"{PACKAGE}._memory.ipc"),
    "_graphics": (PACKAGE,),
    "_host": (PACKAGE, _PICKLES),
    "_launch_config": (PACKAGE,),
    "_launcher": (PACKAGE,),
    "_linker": (PACKAGE,),
    "_memory": (PACKAGE, f"{PACKAGE}._memory", f"{PACKAGE}._memory.ipc", f"{PACKAGE}.utils"),
    **{
        f"_memory.{name}": (PACKAGE, f"{PACKAGE}.utils")
        for name in (
            *("_buffer", "_copy_enums", "_copy_ops", "_device_memory_resource", "_graph_memory_resource", "_legacy"),
            *("_managed_buffer", "_managed_memory_ops", "_managed_memory_resource", "_pinned_memory_resource"),
            "_virtual_memory_resource",
        )
    },
    "_memoryview": (f"{PACKAGE}.utils", PACKAGE),
    "_module": (PACKAGE, f"{PACKAGE}.typing"),
    "_program": (PACKAGE,),
    "_stream": (PACKAGE, f"{PACKAGE}.typing"),
    "_tensor_map": (PACKAGE, f"{PACKAGE}.typing"),
    "_utils": (),
    _CUDA_UTILS: (PACKAGE,),
    **{
        f"{folder}.{name}": (f"{PACKAGE}.{folder}",)
        for folder, names in {
            "graph": ("_graph_builder", "_graph_definition", "_graph_node", "_subclasses"),
            "system": ("_device", "_system", "_system_events"),
            "texture": ("_array", "_mipmapped_array", "_surface", "_texture"),
            "utils": tuple(f"_program_cache{name}" for name in ("", "._abc", "._file_stream", "._in_memory", "._keys")),
        }.items()
        for name in names
    },
}
_PARENTS = {name[: name.find(".") + 1] for name in PRIVATE}
BINDINGS = ("driver", "nvrtc", "runtime")  # what _utils.cuda_utils has of cuda-bindings


class Alias(ModuleType):
    """A module whose names are those of others, imported when somebody asks for one."""

    def __init__(self, name: str, sources: tuple[str, ...], doc: str | None = None) -> None:
        super().__init__(name, doc)
        self._sources = sources

    def __getattr__(self, name: str) -> Any:
        if name.startswith(pickles.NAME_OF_RESTORERS):
            found = getattr(self, name.removeprefix(pickles.NAME_OF_RESTORERS))
            if is_dataclass(found):
                return pickles.restore_options
        elif not (name.startswith("__") and name.endswith("__")):
            for source in self._sources:
                try:
                    return getattr(importlib.import_module(source), name)
                except AttributeError:
                    continue
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        found = set(super().__dir__())
        for source in self._sources:
            found.update(name for name in dir(importlib.import_module(source)) if not name.startswith("__"))
        return sorted(found)


class Core(Alias):
    """``cuda.core``, which has its public modules without an import of their own."""

    def __getattr__(self, name: str) -> Any:
        if name in SHARED and importlib.util.find_spec(f"{PACKAGE}.{name}") is not None:
            return importlib.import_module(f"{NAME}.{name}")
        return super().__getattr__(name)


class Utilities(Alias):
    """``cuda.core._utils.cuda_utils``, which also has modules of cuda-bindings where that is installed."""

    def __getattr__(self, name: str) -> Any:
        if name in BINDINGS:
            try:
                return importlib.import_module(f"cuda.bindings.{name}")
            except ImportError:
                raise AttributeError(
                    f"module {self.__name__!r} has no {name!r}: cuda-bindings is not installed"
                ) from None
        return super().__getattr__(name)


def make_module(fullname: str) -> ModuleType | None:
    """Return the module that is served as ``cuda.core`` or as a name below it, or None if there is none.

    It is a module of this package, or a new one that shows names of others.
    """
    if fullname == NAME:
        core = Core(NAME, (PACKAGE,), importlib.import_module(PACKAGE).__doc__)
        core.__dict__["__version__"] = API_VERSION
        core.__dict__["__all__"] = list(importlib.import_module(PACKAGE).__all__)
        core.__dict__["__file__"] = FILE
        core.__dict__["__path__"] = [os.path.dirname(FILE)]
        pickles.install([kind for place in ("", *SHARED) for kind in rename_classes(place)])
        return core
    if fullname == OLD_NAME or fullname.startswith(OLD_NAME + "."):
        return old_module(fullname)
    name = fullname.removeprefix(NAME + ".")
    if name.partition(".")[0] in BUILDS:
        return import_if_there(f"{NAME}.{name.partition('.')[2]}".rstrip("."))
    if name.partition(".")[0] in SHARED and name not in PRIVATE:
        module = import_if_there(f"{PACKAGE}.{name}")
        if module is not None and f"{name}." in _PARENTS and not hasattr(module, "__path__"):
            module.__path__ = []  # so that Python asks for modules below it
        return module
    if name == _CUDA_UTILS:
        utilities = Utilities(fullname, PRIVATE[name])
        utilities.__dict__["handle_return"] = handle_return
        utilities.__dict__["ComputeCapability"] = pickles.compute_capability()
        return utilities
    return Alias(fullname, PRIVATE[name]) if name in PRIVATE else None


def rename_classes(place: str) -> list[type[Any]]:
    """Have the public classes of a module say that they are of ``cuda.core``, and return its data classes.

    Programs ask which package an object is of. nvmath-python, for one, takes streams of ``cuda`` and no others. Data
    classes stay: what reads their annotations looks up the names in the module that they say.
    """
    module = import_if_there(f"{PACKAGE}.{place}".rstrip("."))
    data_classes = []
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        if not isinstance(found, type) or not found.__module__.startswith(PACKAGE):
            continue
        if is_dataclass(found):
            data_classes.append(found)
        else:
            found.__module__ = f"{NAME}.{place}".rstrip(".")
    return data_classes


def old_module(fullname: str) -> ModuleType | None:
    """Return ``cuda.core.experimental``, which cuda-core no longer has, or a module below it."""
    if fullname == OLD_NAME:
        warnings.warn(f"{OLD_NAME} is now {NAME}: import from there", DeprecationWarning, stacklevel=2)
        return Core(OLD_NAME, (NAME,), importlib.import_module(PACKAGE).__doc__)
    return import_if_there(NAME + fullname.removeprefix(OLD_NAME))


def import_if_there(name: str) -> ModuleType | None:
    """Return a module, or None if there is none of that name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # it is there, and imports something that is not
            raise
        return None
