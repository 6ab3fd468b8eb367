# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The one import seam to the compiled module: everything else imports ``ffi`` and ``lib`` from here."""

from __future__ import annotations

from cuda_core_cffi._cuda import ffi, lib

__all__ = ["ffi", "lib"]
