# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What ``python -m benchmarks.size`` tells of a wheel."""

from __future__ import annotations

import pathlib
import random
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_parts_add_up_to_the_wheel_and_large_files_stand_alone(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    size = pytest.importorskip("benchmarks.size")
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("package/large.so", random.Random(1).randbytes(size.PART + 1))
        archive.writestr("package/a.py", "a = 1\n" * 100)
        archive.writestr("package/b.py", "b = 1\n" * 100)
    rows = size.parts(wheel)
    assert [(name, files, installed) for name, files, installed, _ in rows[:2]] == [
        ("package/large.so", 1, size.PART + 1),
        ("package/ (the rest)", 2, 1200),
    ]
    assert sum(packed for *_, packed in rows) == wheel.stat().st_size
