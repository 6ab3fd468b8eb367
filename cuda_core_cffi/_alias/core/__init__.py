# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The file and the folder that ``cuda.core`` names as its own where this package stands for it.

Nothing imports this file. There are no modules beside it, so Python finds none of ``cuda.core`` but those that
``install.CoreFinder`` serves.
"""
