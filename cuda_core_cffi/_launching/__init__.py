# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Launches: configuration, attributes, arguments, prepared launches and batches.

It imports ``_code``, ``_memory`` and what is below them. Graphs and the public modules may import it.
"""
