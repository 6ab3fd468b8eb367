# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Times of hot calls: this package on CPython and PyPy, NVIDIA's ``cuda-core``, and C, side by side."""
