# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What keeps objects alive for the driver: host memory that copies use, references of graphs and callbacks, pending
calls.

It imports ``_core``. Streams and all that is above them may import it.
"""
