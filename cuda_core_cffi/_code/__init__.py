# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Object code and its kernels: modules, occupancy, image formats (ELF, fatbin) and mangled names.

It imports ``_memory`` and what is below that. Compilers, launches and graphs may import it.
"""
