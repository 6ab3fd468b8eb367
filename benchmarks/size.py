# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What an installed package weighs: its files, and the wheel that they came in."""

from __future__ import annotations

import importlib.metadata
import io
import pathlib
import zipfile

from benchmarks.rows import PACKED
from benchmarks.workbench import Absent

__all__ = ["measure_size"]

LARGEST = 100_000_000
"""Bytes. More than that would take too long to compress, only to learn that it is much."""


def measure_size(name: str, module: str | None) -> dict[str, list[float]]:
    """Return bytes, by row.

    Parameters
    ----------
    name : str
        The distribution.
    module : str or None
        A file of the package that is in use, which must be the distribution's.
    """
    try:
        files = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        raise Absent(f"{name} is not installed, but used from its source tree") from None
    found = {str(file): pathlib.Path(str(file.locate())) for file in files if "__pycache__" not in file.parts}
    found = {entry: path for entry, path in found.items() if path.is_file()}
    if module is not None and pathlib.Path(module).resolve() not in {path.resolve() for path in found.values()}:
        raise Absent(f"the package in use is not that of the installed {name}")
    total = sum(path.stat().st_size for path in found.values())
    wheel, installed = PACKED.parts
    sizes = {installed: [float(total)]}
    if total <= LARGEST:
        sizes[wheel] = [float(packed(found))]
    return sizes


def packed(files: dict[str, pathlib.Path]) -> int:
    """Return the bytes that files take in a zip archive, which a wheel is."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as wheel:
        for entry, path in files.items():
            wheel.write(path, entry)
    return archive.tell()
