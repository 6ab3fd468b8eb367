# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Gives C what it needs to release the GIL where other libraries call it: see ``include/handles/ccc_api.h``."""

from __future__ import annotations

from cuda_core_cffi import _capsule
from cuda_core_cffi._core.ffi import lib

__all__: list[str] = []

lib.ccc_set_detach(
    *_capsule.connect(lib.ccc_gil_address(), lib.ccc_tensor_deleter(False), lib.ccc_tensor_deleter(True))
)
