# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Serves cuda.core from cuda_core_cffi in every Python that starts with this folder on its PYTHONPATH.

Python imports this module when it starts, also one that has no cuda_core_cffi and never asks for cuda.core. So nothing
is imported here before somebody asks, and another sitecustomize, which this one hides, is run as well.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


class Bootstrap:
    """Stands in ``sys.meta_path`` for the finder of the package until that is needed."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find modules of cuda.core."""
        if fullname == "cuda" or fullname == "cuda.core" or fullname.startswith("cuda.core."):
            install()
            return importlib.util.find_spec(fullname)
        return None

    @staticmethod
    def find_distributions(context: Any = None) -> Iterator[Any]:
        """Find the metadata of cuda-core, which is that of the package unless cuda-core is installed."""
        if context is not None and str(context.name).lower().replace("_", "-") == "cuda-core":
            install()
        return iter(())


def install() -> None:
    """Have cuda.core served, once."""
    while Bootstrap in sys.meta_path:
        sys.meta_path.remove(Bootstrap)
    if (
        importlib.util.find_spec("cuda_core_cffi") is None
    ):  # the parent process had it from a place that is not known here
        sys.path.append(ROOT)
    from cuda_core_cffi._alias.install import install_as_cuda_core

    install_as_cuda_core()


def run_hidden() -> None:
    """Run the sitecustomize that would have been found without this folder."""
    places = [place for place in sys.path if os.path.abspath(place) != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


sys.meta_path.insert(0, Bootstrap)
run_hidden()
