# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Compilers and linkers (NVRTC, NVVM, nvJitLink, the driver), their options, and caches of programs.

It imports ``_code`` and what is below that. Only the public modules import it.
"""
