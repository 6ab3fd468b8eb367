# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What C asks Python to do soon, from any thread and without waiting for it.

On CPython the main thread does it between two instructions. PyPy offers nothing of the kind: there it is done when the
package next looks.
"""

from __future__ import annotations

from collections.abc import Callable

from cuda_core_cffi import _capsule
from cuda_core_cffi._ffi import lib

__all__ = ["run_tasks", "tasks"]

tasks: list[Callable[[], None]] = []
"""What is done. A module that C may ask for something appends to this when it is imported."""


def run_tasks() -> None:
    """Do everything that may have been asked for."""
    for task in tasks:
        task()


lib.ccc_set_wake(_capsule.waker(run_tasks))
