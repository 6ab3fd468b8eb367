# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Views of arrays: ``StridedMemoryView``, layouts, and readers of DLPack and the array interfaces.

It imports ``_memory`` and what is below that. Only the public modules import it.
"""
