# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The generator: from the CUDA headers to the source of the extension.

``build_ffi.py`` loads it without the package, which needs what is still to be built; so it imports nothing of the
package, and the package does not import it. It is not installed.
"""
