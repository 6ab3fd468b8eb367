# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Have ``cuda.core`` served by this package, in a process and in those that it starts."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import pathlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from cuda_core_cffi._alias.modules import API_VERSION, NAME, make_module
from cuda_core_cffi._core import typed_handles

NAMESPACE = "cuda"
DISTRIBUTION = "cuda-core"
FOLDER = str(pathlib.Path(__file__).resolve().parent / "path")
"""With this on its ``PYTHONPATH``, Python serves ``cuda.core`` from the beginning."""


class Loader(importlib.abc.Loader):
    """Hands over a module that is there already, perhaps under a name of its own, which it keeps."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = getattr(module, "__spec__", None)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Undo what the import has changed of a module of the package."""
        if self._spec is not None:
            module.__spec__ = self._spec


class CoreFinder(importlib.abc.MetaPathFinder):
    """Finds ``cuda.core`` and what is below it, before an installed cuda-core is found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module."""
        if fullname != NAME and not fullname.startswith(NAME + "."):
            return None
        module = make_module(fullname)
        if module is None:
            return None
        is_package = not hasattr(module, "__file__") or hasattr(module, "__path__")
        origin = getattr(module, "__file__", __file__)
        spec = importlib.machinery.ModuleSpec(fullname, Loader(module), origin=origin, is_package=is_package)
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.extend(getattr(module, "__path__", ()))
        return spec


class NamespaceFinder(importlib.metadata.DistributionFinder):
    """Finds ``cuda``, and the metadata of cuda-core, where nothing else has them: it is asked last."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the package above ``cuda.core``."""
        if fullname != NAMESPACE:
            return None
        return importlib.machinery.ModuleSpec(fullname, Loader(ModuleType(NAMESPACE)), is_package=True)

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        """Find the metadata of a distribution."""
        name = getattr(context, "name", None)
        if name is None or name.lower().replace("_", "-") == DISTRIBUTION:
            yield CoreDistribution()


class CoreDistribution(importlib.metadata.Distribution):
    """The metadata of cuda-core, as far as programs ask for it."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of a file of the metadata."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {API_VERSION}\n"

    def locate_file(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Return where a file of the distribution would be."""
        return pathlib.Path(__file__).parent / path


def distribution_of(file: str | None) -> str:
    """Return the name of the installed distribution that a file belongs to, or an empty string."""
    if file is None:
        return ""
    ending, real = os.path.join(*NAME.split("."), os.path.basename(file)), os.path.realpath(file)
    for distribution in importlib.metadata.distributions():
        for path in distribution.files or ():
            if str(path).endswith(ending) and os.path.realpath(str(distribution.locate_file(path))) == real:
                return str(distribution.name)
    return ""


def install_as_cuda_core() -> None:
    """Have ``import cuda.core`` import this package, in this process and in those of Python that it starts from now on.

    The modules below ``cuda.core`` that this package has are those of this package, and so is what released programs
    import from private modules of cuda-core. An installed cuda-core is not used, nor the ``cuda.core`` of another
    package, such as hip-python-interop. Where cuda-bindings is installed, the ``handle`` of an object is of its classes
    from now on, as with cuda-core; else it is an int as ever. Child processes are told by the environment variable
    ``PYTHONPATH``. Calling this again changes nothing.

    Raises
    ------
    ImportError
        If ``cuda.core`` has been imported already, from cuda-core or another package, which the message names.
    """
    imported = sys.modules.get(NAME)
    if imported is not None and not isinstance(getattr(imported.__spec__, "loader", None), Loader):
        file = getattr(imported, "__file__", None)
        owner = distribution_of(file)
        raise ImportError(
            f"{NAME} has been imported already, from {file or 'an unknown place'}{owner and f' of {owner}'}: call "
            "install_as_cuda_core before anything imports it, or start the program with `python -m "
            "cuda_core_cffi.as_cuda_core`",
            name=NAME,
        )
    if not any(isinstance(finder, CoreFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, CoreFinder())
        sys.meta_path.append(NamespaceFinder())
    typed_handles.use()
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if FOLDER not in places:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, *places]))
