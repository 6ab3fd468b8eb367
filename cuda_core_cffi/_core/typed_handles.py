# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What programs get as the ``handle`` of an object.

It is an int, unless the package stands for ``cuda.core`` and cuda-bindings is installed: programs written for
``cuda.core`` compare handles with objects of that package, and look their classes up. Code of this package asks objects
for ``_driver_handle``, which is an int always.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

from cuda_core_cffi._core.calls import Owner

is_used = False
"""Whether handles are shown as objects of ``cuda.bindings.driver``, where that can be imported."""

# Other handles are ints with cuda-core too, or have other types than the driver's.
TYPES = (
    "CUcontext",
    "CUevent",
    "CUgraph",
    "CUgraphExec",
    "CUgraphNode",
    "CUkernel",
    "CUlibrary",
    "CUmemoryPool",
    "CUstream",
)


def use() -> None:
    """Show handles as objects of ``cuda.bindings.driver`` from now on."""
    global is_used
    is_used = True
    show: Any = property(lambda owner: shown(owner._CTYPE, owner._driver_handle), doc=Owner.handle.__doc__)
    Owner.handle = show  # type: ignore[method-assign]


def shown(ctype: str, value: int) -> int:
    """Return a driver handle of a type of ``cuda.h``, such as ``CUstream``, as programs get it."""
    if not is_used or ctype not in TYPES:
        return value
    try:
        bindings = importlib.import_module("cuda.bindings.driver")
        kind = getattr(bindings, ctype)
    except (ImportError, AttributeError, OSError, RuntimeError):  # absent, or another vendor's, which lacks its library
        return value
    return cast(int, kind(value))
