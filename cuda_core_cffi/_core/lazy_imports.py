# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Names of a package whose modules are imported when somebody first asks for one of them (PEP 562)."""

from __future__ import annotations

import importlib
from typing import Any


def add_lazy_names(namespace: dict[str, Any], modules: dict[str, tuple[str, ...]]) -> None:
    """Give a package its ``__getattr__`` and ``__dir__``, for names by the module below the package that has them.

    Type checkers do not see these, on purpose: they would take any name for one of the package's.
    """
    package = namespace["__name__"]
    lazy = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in lazy:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = namespace[name] = getattr(importlib.import_module(lazy[name]), name)
        return value

    def names() -> list[str]:
        return sorted({*namespace, *namespace["__all__"]})

    namespace.update(__getattr__=get, __dir__=names)
