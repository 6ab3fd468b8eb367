# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What lets programs written for ``cuda.core`` import this package under that name.

It imports ``_core``, and reaches every other module by its name when a program asks for it. Only ``as_cuda_core``
imports it.
"""
