# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation are those that its scripts draw."""

from __future__ import annotations

import runpy

import pytest
from helpers import ROOT

from cuda_core_cffi import Device

PICTURES = ("green_contexts", "tensor_maps")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("green_contexts", marks=pytest.mark.simulator_only("other devices have other multiprocessors")),
        "tensor_maps",
    ],
)
def test_a_picture_shows_what_its_script_measures(device: Device, name: str) -> None:
    if name == "tensor_maps" and device.compute_capability < (9, 0):
        pytest.skip("tensor maps came with compute capability 9.0")
    script = runpy.run_path(str(ROOT / "docs" / f"{name}.py"))
    assert script["picture"](script["measure"]()) == (ROOT / "docs" / f"{name}.svg").read_text()


@pytest.mark.parametrize("name", PICTURES)
def test_its_page_has_the_picture(name: str) -> None:
    assert f"({name}.svg)" in (ROOT / "docs" / f"{name}.md").read_text()


def test_the_script_draws_whatever_the_device_is() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "green_contexts.py"))
    found = script["measure"]()
    first, second, rest, whole = (numbers for _, numbers in found)
    assert first | second | rest == whole
    assert len(first) + len(second) + len(rest) == len(whole)
    assert script["picture"](found).count("<text") == len(found)
