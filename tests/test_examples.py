# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The examples, and the code in the documentation, do what they say."""

from __future__ import annotations

import pathlib
import re

import pytest
from helpers import output_of

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("strided.py", "in place on .*: right"),
        ("saxpy.py", "saxpy of .* on"),
        ("strided_memory_view_cpu.py", "backwards: stride .*, right"),
        ("strided_memory_view_gpu.py", "this package on .*, right"),
    ],
)
def test_an_example_ends_well(name, printed):
    output = output_of(
        "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')", str(ROOT / "examples" / name)
    )
    assert re.search(printed, output)


def test_the_code_about_arrays_runs_from_the_first_block_to_the_last():
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "arrays.md").read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) > 1
    assert output_of("\n".join([*blocks, "print('done')"])) == "done"
