# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What all others stand on: the CFFI module, errors, driver handles, options, conversions.

It imports the compiled modules and ``typing`` only. Everything may import it.
"""
