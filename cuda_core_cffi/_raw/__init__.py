# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The driver API function by function: conversions, classes for structures, and the module that the build generates.

It imports ``_core``. ``cuda_core_cffi.driver`` and ``graph`` import it; for the rest it is too large to import.
"""
