# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run the tests of one module of numba-cuda on numba-cuda-mlir, and write the outcome of each.

    python -m cuda_core_cffi.as_cuda_core tests/clients/numba_cuda_on_mlir.py MODULE FILE

numba-cuda-mlir has the API of numba-cuda, and its wheel has no tests. Here ``numba`` and the modules below it are
modules of numba-cuda-mlir, except ``numba.cuda.tests``, which are numba-cuda's files, unmodified. Many of these tests
fail with cuda-core too, because the two libraries differ: compare the outcomes.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import unittest_results

MLIR = "numba_cuda_mlir"
TESTS = "numba.cuda.tests"
SUPPORT = f"{TESTS}.support"
PLACES = {
    "numba": (MLIR, f"{MLIR}.types", f"{MLIR}.numba_cuda.types", f"{MLIR}.numba_cuda"),
    "numba.cuda": (f"{MLIR}.cuda",),
    "numba.cuda.testing": (f"{MLIR}.testing", f"{MLIR}.numba_cuda.testing"),
}


def places_of(name: str) -> tuple[str, ...]:
    """Return the modules of numba-cuda-mlir that may have the names of a module of numba."""
    if name in PLACES:
        return PLACES[name]
    if name.startswith("numba.cuda."):
        rest = name.removeprefix("numba.cuda.")
        return tuple(f"{parent}.{rest}" for parent in (f"{MLIR}.cuda", f"{MLIR}.numba_cuda", MLIR))
    rest = name.removeprefix("numba.")
    return tuple(f"{parent}.{rest}" for parent in (f"{MLIR}.numba_cuda", MLIR))


class Joined(ModuleType):
    """A module with the names of several modules, and of the modules below them."""

    def __init__(self, name: str, sources: list[ModuleType]) -> None:
        super().__init__(name)
        self._sources = sources

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        for source in self._sources:
            if hasattr(source, name):
                return getattr(source, name)
        for source in self._sources:
            try:
                return importlib.import_module(f"{source.__name__}.{name}")
            except ImportError:
                continue
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class Existing(importlib.abc.Loader):
    """Loads a module that exists already, without a change of its spec."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec."""
        if self.spec is not None:
            module.__spec__ = self.spec


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of ``numba``."""

    def __init__(self, tests: pathlib.Path) -> None:
        self.tests = tests

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module: of numba-cuda-mlir, or of numba-cuda's tests."""
        if fullname != "numba" and not fullname.startswith("numba."):
            return None
        if fullname.startswith(TESTS) and fullname != SUPPORT:
            return self.test_module(fullname)
        found = []
        for place in places_of(fullname):
            try:
                found.append(importlib.import_module(place))
            except ImportError:
                continue
        if not found:
            return None
        module = found[0] if len(found) == 1 else Joined(fullname, found)
        if fullname == "numba.cuda.testing":
            add_decorators(module)
        return importlib.machinery.ModuleSpec(fullname, Existing(module), is_package=True)

    def test_module(self, fullname: str) -> importlib.machinery.ModuleSpec | None:
        """Find a file, or a folder, of numba-cuda's tests."""
        place = self.tests.joinpath(*fullname.removeprefix(TESTS).split(".")[1:])
        if place.is_dir():
            return importlib.util.spec_from_file_location(
                fullname, place / "__init__.py", submodule_search_locations=[str(place)]
            )
        file = place.with_suffix(".py")
        return importlib.util.spec_from_file_location(fullname, file) if file.is_file() else None


def add_decorators(testing: Any) -> None:
    """Add what ``numba.cuda.testing`` has for numba's own simulator, which is off."""
    testing.CUDATestCase = testing.NumbaCUDATestCase

    def unchanged(reason: str) -> Callable[[Any], Any]:
        return lambda test: test

    testing.skip_on_cudasim = testing.skip_on_standalone_numba_cuda = unchanged
    testing.skip_unless_cudasim = unittest.skip
    testing.xfail_unless_cudasim = unittest.expectedFailure


def tests_of_numba_cuda() -> pathlib.Path:
    """Return the folder of numba-cuda's tests."""
    spec = importlib.util.find_spec("numba_cuda")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("numba-cuda is not installed")
    return pathlib.Path(next(iter(spec.submodule_search_locations))) / "numba" / "cuda" / "tests"


def main() -> None:
    """Serve numba-cuda-mlir as numba, and run the tests."""
    config = importlib.import_module(f"{MLIR}.numba_cuda.core.config")
    config.ENABLE_CUDASIM = False  # type: ignore[attr-defined]
    sys.meta_path.insert(0, Finder(tests_of_numba_cuda()))
    unittest_results.main()


if __name__ == "__main__":
    main()
