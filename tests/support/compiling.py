# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The C compiler and the header of the driver, for tests that compile extensions."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import shlex
import shutil
import sysconfig

import pytest

CC = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]


@functools.cache
def cuda_include() -> pathlib.Path:
    """Return the folder of a cuda.h, or skip."""
    if shutil.which(CC) is None:
        pytest.skip(f"there is no C compiler {CC!r}")
    if importlib.util.find_spec("pycparser") is None:
        pytest.skip("pycparser, which cffi builds with, is not installed")
    import cuda_headers

    folders = cuda_headers.include_dirs()
    if not folders:
        pytest.skip("no cuda.h found, see CUDA_TEST_INCLUDE_DIRS")
    return folders[-1]
