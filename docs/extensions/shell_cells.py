# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What IPython runs at its start while the site is built: cells of ``%%sh`` whose output stays in one piece.

IPython's own passes on 100 bytes at a time, each of which would be a block of the page, and the standard error apart.
"""

from __future__ import annotations

import subprocess
from typing import Any


def shell_cell(line: str, cell: str) -> None:
    """Run a cell with the shell and print what it prints; a failure is an error unless the first line allows it."""
    done = subprocess.run(
        cell, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    )
    print(done.stdout.rstrip())
    if done.returncode and "--no-raise-error" not in line:
        raise RuntimeError(f"exit status {done.returncode}")


def register(shell: Any) -> None:
    """Put it in the place of IPython's."""
    shell.register_magic_function(shell_cell, "cell", "sh")


register(get_ipython())  # type: ignore[name-defined]  # noqa: F821
