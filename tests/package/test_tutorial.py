# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The chapters of the tutorial, and pages like them, run as they stand, also without what builds the site."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import sys

import pytest
from helpers import ROOT, run_python

DOCS = ROOT / "docs"
CHAPTERS = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("tutorial/*.md") if path.stem != "index")
ON_THE_SIMULATOR = {"tutorial/testing.md", "tutorial/faults.md", "troubleshooting.md"}  # which they are about
CELL = re.compile(r"^```\{code-cell\}\n(.*?)^```", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.skipif(not CHAPTERS, reason="the documentation is not installed with the tests")


def program_of(page: str) -> str:
    """Return the cells of a page as one program: files are written, and commands given to the shell."""
    parts = ["import pathlib, subprocess"]
    for cell in CELL.findall((DOCS / page).read_text(encoding="utf-8")):
        first, _, rest = cell.partition("\n")
        if first.startswith("%%writefile "):
            parts.append(f"_ = pathlib.Path({first.split()[1]!r}).write_text({rest!r})")
        elif first.startswith("%%sh"):
            check = "--no-raise-error" not in first
            parts.append(f"_ = subprocess.run({rest!r}, shell=True, check={check})")
        elif first != "# needs matplotlib" or importlib.util.find_spec("matplotlib"):
            parts.append(cell)
    return "\n".join(parts)


@pytest.mark.parametrize("page", ["start.md", "coming_from.md", "from_cuda_cpp.md", "troubleshooting.md", *CHAPTERS])
def test_a_chapter_runs_from_the_first_cell_to_the_last(
    page: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(page)
    assert program.count("\n") > 1
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    monkeypatch.setenv("MPLBACKEND", "agg")
    if page in ON_THE_SIMULATOR:
        monkeypatch.setenv("CUDA_CORE_CFFI_DRIVER", "simulator")
    done = run_python(program)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
