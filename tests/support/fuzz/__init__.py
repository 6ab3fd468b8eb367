# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of the public API; its command line is ``tests/fuzz_api.py``.

`surface` finds the API by introspection, `values` and `generate` write calls as lines of Python, `sequence` runs
and stores them, `child` runs a sequence in a process of its own and judges it, and `shrink` finds the shortest sequence
that fails in the same way.
"""
