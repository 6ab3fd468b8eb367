# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Print what the GPUs of the machine do: ``python -m cuda_core_cffi.system``."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence

from cuda_core_cffi._core.errors import CUDAError
from cuda_core_cffi.system import _report

DEFAULT_SECONDS = 2.0
CLEAR = "\x1b[H\x1b[2J"


def seconds(text: str) -> float:
    """Return an interval of the command line."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return number


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m cuda_core_cffi.system", description="Print what the GPUs of this machine do."
    )
    how = made.add_mutually_exclusive_group()
    how.add_argument(
        "--watch",
        nargs="?",
        type=seconds,
        const=DEFAULT_SECONDS,
        metavar="SECONDS",
        help="print again every SECONDS, %(const)s by default, until Ctrl-C",
    )
    how.add_argument("--json", action="store_true", help="print one JSON document; null is what a GPU does not tell")
    return made


def show(clear: bool = False) -> None:
    """Print the tables."""
    text = "\n".join(_report.tables(_report.read()))
    print(f"{CLEAR if clear else ''}{text}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit status: 1 if there is no NVML, or it fails.
    """
    options = parser().parse_args(arguments)
    try:
        if options.json:
            print(json.dumps(_report.read(), indent=2))
        else:
            show(clear=bool(options.watch) and sys.stdout.isatty())
        while options.watch:
            time.sleep(options.watch)
            show(clear=sys.stdout.isatty())
    except CUDAError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
