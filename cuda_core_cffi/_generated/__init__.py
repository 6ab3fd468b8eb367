# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the build writes from the CUDA headers: ``driver.py`` and ``cuda.cdef``. Git has only this file."""
