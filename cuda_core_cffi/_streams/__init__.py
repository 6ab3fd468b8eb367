# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Contexts, streams, events and the functions that streams call on the host.

It imports ``_core`` and ``_lifetime``. Memory and all that is above it may import it.
"""
