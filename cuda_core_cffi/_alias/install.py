# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Have ``cuda.core`` served by this package, in a process and in those that it starts."""

from __future__ import annotations

import os
import pathlib
import sys

from cuda_core_cffi._alias import finder
from cuda_core_cffi._alias.modules import NAME
from cuda_core_cffi._core import typed_handles

FOLDER = str(pathlib.Path(__file__).resolve().parent / "path")
"""With this on its ``PYTHONPATH``, Python serves ``cuda.core`` from the beginning."""


def install_as_cuda_core() -> None:
    """Have ``import cuda.core`` import this package, in this process and in those of Python that it starts from now on.

    The modules below ``cuda.core`` that this package has are those of this package, and so is what released programs
    import from private modules of cuda-core. An installed cuda-core is not used. Where cuda-bindings is installed, the
    ``handle`` of an object is of its classes from now on, as with cuda-core; else it is an int as ever. Child processes
    are told by the environment variable ``PYTHONPATH``. Calling this again changes nothing.

    Raises
    ------
    ImportError
        If cuda-core itself has been imported already.
    """
    imported = sys.modules.get(NAME)
    if not finder.is_ours(imported):
        raise ImportError(
            f"{NAME} has been imported already, from {getattr(imported, '__file__', 'an unknown place')}: call "
            "install_as_cuda_core before anything imports it",
            name=NAME,
        )
    finder.install()
    typed_handles.use()
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if FOLDER not in places:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, *places]))
