# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Files of the repository outside ``docs/`` as pages of the site.

Pages link to each other, to examples and to other files by paths, which work in the repository too. Here such a link
becomes one to the page that shows the file. ``{include-file} CHANGELOG.md`` stands for the text of a file, and
``{include-examples}`` for all examples.
"""

from __future__ import annotations

import ast
import os.path
import pathlib
import re
from typing import Any

from sphinx.application import Sphinx

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
FILE = re.compile(r"^\{include-file\} (\S+)$", re.MULTILINE)
EXAMPLES = re.compile(r"^\{include-examples\}$", re.MULTILINE)
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "start.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "measuring.md",
}


def link_from(page: str, folder: str) -> Any:
    """Return what rewrites one link of a text that lies in a folder of the repository and is shown on a page."""

    def rewrite(link: re.Match[str]) -> str:
        path = os.path.normpath(os.path.join(folder, link[1]))
        anchor = link[2] or ""
        if path.startswith("examples/") and path.endswith(".py"):
            return f"](#{anchor_of(pathlib.Path(path))})"
        target = PAGES.get(path, path.removeprefix("docs/"))
        if target == path and not path.startswith("docs/"):
            return link[0]  # the builder says that there is no such page
        return f"]({os.path.relpath(target, os.path.dirname(page))}{anchor})"

    return rewrite


def anchor_of(example: pathlib.Path) -> str:
    """Return the name of the section that shows an example."""
    return f"example-{example.stem.replace('_', '-')}"


def examples() -> str:
    """Return a section for each example: what its docstring says, and its code."""
    sections = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        shown = f"```{{literalinclude}} ../examples/{path.name}\n:language: python\n```"
        told = told.replace("``", "`")
        sections.append(f"({anchor_of(path)})=\n## {path.name}\n\n{told}\n\n{shown}\n")
    return "\n".join(sections)


def convert(app: Sphinx, name: str, source: list[str]) -> None:
    """Put files into a page, and change links that lead out of ``docs/``."""
    page = f"{name}.md"
    text = LINK.sub(link_from(page, os.path.dirname(f"docs/{page}")), source[0])

    def file_text(found: re.Match[str]) -> str:
        app.env.note_dependency(str(ROOT / found[1]))
        content = (ROOT / found[1]).read_text(encoding="utf-8")
        return LINK.sub(link_from(page, os.path.dirname(found[1])), content)

    text = FILE.sub(file_text, text)
    if EXAMPLES.search(text):
        app.env.note_reread()  # an example may be new
    source[0] = EXAMPLES.sub(lambda _: examples(), text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the conversion."""
    app.connect("source-read", convert)
    return {"parallel_read_safe": True}
