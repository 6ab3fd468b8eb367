# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Devices and their properties.

It imports ``_memory`` and what is below that. Only the public modules import it: others reach it through
``_core.registry``.
"""
