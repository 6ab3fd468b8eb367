# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How cuda-bindings, in a process of its own, finds the simulated driver."""

from __future__ import annotations

import os
import pathlib

from cuda_core_cffi import simulator


def simulated_environment(folder: pathlib.Path) -> dict[str, str]:
    """Return the environment of a process whose driver is the simulated one.

    Parameters
    ----------
    folder : pathlib.Path
        Gets a link to the driver, under the name that cuda-bindings loads.

    Returns
    -------
    dict of str to str
        That of this process, with two variables changed.
    """
    link = folder / "libcuda.so.1"
    if not link.is_symlink():
        link.symlink_to(simulator.library_path())
    path = [str(folder), os.environ.get("LD_LIBRARY_PATH")]
    return {
        **os.environ,
        "CUDA_CORE_CFFI_DRIVER": "simulator",
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, path)),
    }
