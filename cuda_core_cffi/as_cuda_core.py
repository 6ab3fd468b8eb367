# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run programs that were written for ``cuda.core``, unchanged.

    python -m cuda_core_cffi.as_cuda_core script.py [argument ...]
    python -m cuda_core_cffi.as_cuda_core -m module [argument ...]
    python -m cuda_core_cffi.as_cuda_core -c command [argument ...]
    PYTHONPATH=$(python -m cuda_core_cffi.as_cuda_core --path) program

In the program, and in the processes of Python that it starts, ``import cuda.core`` imports this package. The last line
is for programs that start Python themselves, such as Jupyter.
"""

from __future__ import annotations

import os
import pathlib
import runpy
import sys
from types import ModuleType

from cuda_core_cffi._alias.install import FOLDER, install_as_cuda_core

__all__ = ["install_as_cuda_core"]


def main(arguments: list[str]) -> int:
    """Run a program as ``python`` does.

    Parameters
    ----------
    arguments : list of str
        The command line: a script, ``-m`` and a module or ``-c`` and a command, and the program's own arguments.

    Returns
    -------
    int
        The exit status.
    """
    if arguments == ["--path"]:
        print(FOLDER)
        return 0
    option = arguments[0] if arguments else "-h"
    if option in ("-h", "--help") or (option in ("-m", "-c") and len(arguments) < 2) or option.startswith("--"):
        print(__doc__.strip(), file=sys.stdout if option in ("-h", "--help") and arguments else sys.stderr)
        return 0 if option in ("-h", "--help") and arguments else 2
    install_as_cuda_core()
    places = {"-m": os.getcwd(), "-c": ""}
    if not sys.flags.safe_path:  # else nothing is there for this program, and nothing is for that one
        sys.path[0] = places.get(option, str(pathlib.Path(option).resolve().parent))
    if option == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.argv = ["-c", *arguments[2:]]
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(arguments[1], "<string>", "exec"), vars(module))
    else:
        sys.argv = arguments
        runpy.run_path(option, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
