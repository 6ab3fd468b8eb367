# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks``, or ``python benchmarks/__main__.py`` from anywhere."""

from __future__ import annotations

import pathlib
import sys

sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from benchmarks.run import main  # noqa: E402  (found through the line above, however this file was started)

if __name__ == "__main__":
    sys.exit(main())
