# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The generator: from the CUDA headers to the extension's source. Used by ``build_ffi.py``, and not installed."""
