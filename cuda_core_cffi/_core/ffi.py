# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The one import seam to the compiled module: everything else imports ``ffi`` and ``lib`` from here."""

from __future__ import annotations

try:
    from cuda_core_cffi._cuda import ffi, lib
except ImportError as error:
    raise ImportError(
        f"the compiled part of cuda_core_cffi cannot be loaded ({error}). In a source tree that was not installed in "
        "editable mode, Python finds the sources first: run from another folder, or use `pip install -e .`"
    ) from error

__all__ = ["ffi", "lib"]

if not lib.ccc_import_is_first():  # before anything is changed that the first import uses
    raise ImportError(
        "cuda_core_cffi was imported by another interpreter of this process, or before its modules were removed from "
        "sys.modules, and a process can import it once: put the modules back, or start another process"
    )

from cuda_core_cffi import _capsule  # after the check, whose message is better

# Exchange function addresses between the compiled modules: to release the GIL (``ccc_api.h``), to make capsules.
lib.ccc_set_detach(*_capsule.connect(lib.ccc_gil_address(), lib.ccc_get_tensor_calls()))
