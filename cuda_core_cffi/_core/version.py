# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The version of the package; ``pyproject.toml`` reads it from here."""

from __future__ import annotations

__version__ = "0.1.0"
