# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The pictures and tables of the documentation are those that its scripts make."""

from __future__ import annotations

import json
import pathlib
import runpy

import pytest
from helpers import ROOT, output_of

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


def distributed(*arguments: str) -> str:
    """Run the script that measures several GPUs, and return what it prints."""
    code = """
        import runpy, sys
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
    """
    return output_of(code, str(ROOT / "docs" / "distributed.py"), *arguments)


def test_figures_of_several_gpus_are_shown_as_tables(tmp_path: pathlib.Path) -> None:
    figures = tmp_path / "figures.json"
    lines = [
        {"library": "torch", "ranks": 2, "device": "G", "all-reduce": {"64": 99.0}, "step": 1},  # measured again below
        {"library": "torch", "ranks": 2, "device": "G", "all-reduce": {"64": 20.04, "2097152": 1234.5}, "step": 500.4},
        {"library": "torch", "ranks": 1, "device": "G", "all-reduce": {}, "step": 1000.8},
        {"library": "nccl", "ranks": 2, "device": "G", "all-reduce": {"64": 10, "2097152": 1000}, "step": 625.5},
    ]
    figures.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert distributed("--table", str(figures)).splitlines() == [
        "| bytes | NCCL, by CFFI | torch.distributed |",
        "|---|---|---|",
        "| 64 B | 10.0 | 20.0 |",
        "| 2 MiB | 1,000.0 | 1,234.5 |",
        "",
        "| reduced by | 1 GPU | 2 GPUs | speed-up |",
        "|---|---|---|---|",
        "| NCCL, by CFFI | 1,001 | 626 | 1.60 |",
        "| torch.distributed | 1,001 | 500 | 2.00 |",
    ]


def test_the_tables_of_a_page_are_of_its_figures() -> None:
    code = """
        import runpy, sys
        folder = sys.argv[1]
        sys.argv = [f"{folder}/distributed.py", "--table", f"{folder}/distributed.json"]
        runpy.run_path(sys.argv[0], run_name="__main__")
    """
    first, second = output_of(code, str(ROOT / "docs")).split("\n\n")
    page = (ROOT / "docs" / "distributed.md").read_text()
    assert first in page
    assert second in page
