# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The Python of README and of the documentation runs when it is copied: the blocks of a page, one after the other.

A block that cannot run alone has ``<!-- fragment: reason -->`` in the line before it. Cells (``{code-cell}``) are for
test_tutorial.py.
"""

from __future__ import annotations

import pathlib
import re
import textwrap

import pytest
from helpers import ROOT, output_of

FRAGMENT = re.compile(r"^ *<!-- fragment: [^\n]+ -->\n( *)```python\n.*?^\1```\n", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
ON_THE_SIMULATOR = {"docs/simulator.md"}  # which it is about


def blocks_of(page: str) -> list[str]:
    """Return the blocks of a page that run."""
    text = FRAGMENT.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return [textwrap.dedent(block) for _, block in BLOCK.findall(text)]


ALL = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in (path.relative_to(ROOT).as_posix() for path in ALL if path.exists()) if blocks_of(page)]

pytestmark = pytest.mark.skipif(not PAGES, reason="the documentation is not installed with the tests")


@pytest.mark.parametrize("page", PAGES)
def test_the_code_on_a_page_runs_from_the_first_block_to_the_last(page: str, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n".join([*blocks_of(page), "if __name__ == '__main__':\n    print('done')\n"]))
    driver = {"CUDA_CORE_CFFI_DRIVER": "simulator"} if page in ON_THE_SIMULATOR else {}
    run = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    assert output_of(run, str(program), XDG_CACHE_HOME=str(tmp_path), **driver).split("\n")[-1] == "done"


def test_every_mark_of_a_fragment_stands_before_a_block() -> None:
    for path in ALL:
        text = path.read_text(encoding="utf-8")
        assert text.count("<!-- fragment:") == len(FRAGMENT.findall(text)) + text.count("`<!-- fragment:"), path
