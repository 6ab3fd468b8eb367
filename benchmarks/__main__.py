# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks``, or ``python benchmarks/__main__.py`` from anywhere."""

from __future__ import annotations

import pathlib
import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the folder of this file
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks.run import main

if __name__ == "__main__":
    sys.exit(main())
