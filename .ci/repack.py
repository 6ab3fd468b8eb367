# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pack wheels once more, with zopfli: the same files in fewer bytes, for every tool that reads zip archives.

python .ci/repack.py dist/*.whl     each is replaced; needs zopflipy from PyPI
"""

from __future__ import annotations

import os
import pathlib
import sys
import zipfile

import zopfli

__all__ = ["main", "repack"]


def repack(wheel: pathlib.Path) -> None:
    """Replace ``wheel`` by an archive of the same files, with their dates and permissions, in the same order.

    Raises
    ------
    RuntimeError
        If the new archive does not have what the old one has; ``wheel`` is as it was.
    """
    packed = wheel.with_suffix(".packed")
    with zipfile.ZipFile(wheel) as source, zopfli.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            target.writestr(entry, source.read(entry))
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(packed) as target:  # which checks every CRC
        if [(entry.filename, source.read(entry)) for entry in source.infolist()] != [
            (entry.filename, target.read(entry)) for entry in target.infolist()
        ]:
            raise RuntimeError(f"{wheel} was packed wrong")
    os.replace(packed, wheel)


def main(wheels: list[str]) -> int:
    """Pack the files of those names, and tell what was gained."""
    for name in wheels:
        wheel = pathlib.Path(name)
        before = wheel.stat().st_size
        repack(wheel)
        print(f"{wheel.name}: {before} bytes, packed again {wheel.stat().st_size}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
