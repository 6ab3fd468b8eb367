# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Exchange function addresses between the compiled modules: to release the GIL (``ccc_api.h``), to make capsules."""

from __future__ import annotations

from cuda_core_cffi import _capsule
from cuda_core_cffi._core.ffi import lib

lib.ccc_set_detach(*_capsule.connect(lib.ccc_gil_address(), lib.ccc_get_tensor_calls()))
