# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The cases of ``tests/support/context_probe.py``: driver calls that may need a current context."""
