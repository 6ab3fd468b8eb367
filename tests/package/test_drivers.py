# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The page that tells from which driver on each feature works."""

from __future__ import annotations

import importlib.util
import pathlib
from types import ModuleType

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
pytestmark = pytest.mark.simulator_only("tries drivers of many versions")


@pytest.fixture(scope="module")
def drivers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("drivers", DOCS / "drivers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_tells_what_works_with_which_driver(drivers: ModuleType) -> None:
    text = (DOCS / "drivers.md").read_text(encoding="utf-8")
    assert drivers.page(text) == text, "python docs/drivers.py --write"


def test_what_no_driver_does_is_an_error(drivers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "FEATURES", {"nothing": "device.nothing()"})
    monkeypatch.setattr(drivers, "VERSIONS", (12000, 13050))
    with pytest.raises(RuntimeError, match="nothing: works on the drivers"):
        drivers.table()


def test_an_older_driver_is_told_by_unavailable_error(drivers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "assert os.environ['CUDA_SIM_DRIVER_VERSION'] == '13050', 'old'"
    monkeypatch.setattr(drivers, "FEATURES", {"new": code})
    monkeypatch.setattr(drivers, "VERSIONS", (12000, 13050))
    with pytest.raises(RuntimeError, match="new: says 'AssertionError: old' on driver 12000"):
        drivers.table()
