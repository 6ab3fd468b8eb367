# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The reference of the documentation has every public name."""

from __future__ import annotations

import importlib
import re
from collections import Counter

import pytest
from helpers import ROOT

PAGES = ROOT / "docs" / "reference"
PACKAGE = "cuda_core_cffi"
MODULES = ("", "checkpoint", "coredump", "graph", "simulator", "system", "system.typing", "texture", "typing", "utils")
GENERATED = ("driver", "nvml")
KINDS = ("module", "functions", "enumerations", "structures", "handles", "constants")

pytestmark = pytest.mark.skipif(not PAGES.exists(), reason="the documentation is not installed with the tests")


def text_of_the_reference() -> str:
    """Return all its pages."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.md")))


def entries() -> list[str]:
    """Return the full names that have an entry."""
    return re.findall(r"^\.\. (?:auto\w+|py:data):: (\S+)$", text_of_the_reference(), re.MULTILINE)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_entry(module: str) -> None:
    full = f"{PACKAGE}.{module}".rstrip(".")
    names = {f"{full}.{name}" for name in importlib.import_module(full).__all__}
    assert names - set(entries()) == set()


def test_no_name_has_two_entries() -> None:
    assert [name for name, count in Counter(entries()).items() if count > 1] == []


def test_every_entry_is_of_something_that_exists() -> None:
    for name in entries():
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.parametrize("module", GENERATED)
def test_what_is_generated_is_there_with_every_kind(module: str) -> None:
    text = text_of_the_reference()
    assert [kind for kind in KINDS if f"{{raw-api}} {PACKAGE}.{module} {kind}\n" not in text] == []


@pytest.mark.skipif(not (ROOT / "cuda_core_cffi").exists(), reason="the sources are not beside the tests")
def test_every_environment_variable_is_on_its_page() -> None:
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    sources = [ROOT / "build_ffi.py"]
    for folder in ("cuda_core_cffi", "generator", "include", "simulator"):
        sources += [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".c", ".h"}]
    own = re.compile(r'"(CUDA_(?:CORE_CFFI|SIM|PYTHON)_\w+)"|(?:getenv\(|environ\.get\()"(\w+)"')
    found = {
        name for path in sources for pair in own.findall(path.read_text(encoding="utf-8")) for name in pair if name
    }
    assert len(found) > 20
    assert {name for name in found if f"`{name}`" not in page} == set()
