# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What an installed package weighs: its files, and the wheel that they came in.

python -m benchmarks.size dist/*.whl     what the parts of wheels take
"""

from __future__ import annotations

import importlib.metadata
import io
import pathlib
import sys
import zipfile

from benchmarks.rows import PACKED
from benchmarks.workbench import Absent

LARGEST = 100_000_000
"""Bytes. More than that would take too long to compress, only to learn that it is much."""


PART = 20_000
"""Bytes in the wheel from which a file is told by itself."""


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


def parts(wheel: pathlib.Path) -> list[tuple[str, int, int, int]]:
    """Return what parts of a wheel take, the largest first: name, files, bytes installed, bytes in the wheel.

    Large files are parts of their own; the others count with their folder.
    """
    sums: dict[str, list[int]] = {}
    with zipfile.ZipFile(wheel) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        for entry in entries:
            folder, _, _ = entry.filename.rpartition("/")
            part = entry.filename if entry.compress_size >= PART else f"{folder}/ (the rest)"
            for i, number in enumerate((1, entry.file_size, entry.compress_size)):
                sums.setdefault(part, [0, 0, 0])[i] += number
        directory = wheel.stat().st_size - sum(entry.compress_size for entry in entries)
    rows = [(name, files, size, packed_size) for name, (files, size, packed_size) in sums.items()]
    return [
        *sorted(rows, key=lambda row: -row[3]),
        ("(names of files and their places in the archive)", 0, 0, directory),
    ]


def main(wheels: list[str]) -> int:
    """Print the parts of wheels, and return an exit status."""
    for name in wheels:
        wheel = pathlib.Path(name)
        print(f"{wheel.name}: {wheel.stat().st_size} bytes\n\n{'packed':>9} {'installed':>9} {'files':>5}")
        for part, files, size, packed_size in parts(wheel):
            print(f"{packed_size:9} {size:9} {files:5}  {part}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
