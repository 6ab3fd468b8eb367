# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Flowcharts of Mermaid, as ``docs/architecture.py`` writes them, as pictures that graphviz draws during the build.

A page of static files has no script that draws them in the browser.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

BLOCK = re.compile(r"^```mermaid\nflowchart TD\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
NODE = re.compile(r'(\w+)\["(.*)"\]')
ARROW = re.compile(r"(\w+) --> (\w+)")
DASHED = re.compile(r"(\w+) -\. (\w+) \.-> (\w+)")


def as_graphviz(block: re.Match[str]) -> str:
    """Return the same chart as a directive of ``sphinx.ext.graphviz``."""
    lines = []
    for line in block[1].splitlines():
        if found := NODE.fullmatch(line.strip()):
            lines.append(f'"{found[1]}" [label="{found[2]}"]')
        elif found := ARROW.fullmatch(line.strip()):
            lines.append(f'"{found[1]}" -> "{found[2]}"')
        elif found := DASHED.fullmatch(line.strip()):
            lines.append(f'"{found[1]}" -> "{found[3]}" [style=dashed, label="{found[2]}", fontsize=10]')
        else:
            raise ValueError(f"a line of a flowchart that nothing here knows: {line!r}")
    body = "\n".join(lines)
    style = 'node [shape=box, fontname="sans-serif"]\nedge [fontname="sans-serif"]'
    return f"```{{graphviz}}\n:alt: flowchart\n\ndigraph {{\n{style}\n{body}\n}}\n```\n"


def convert(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the charts of a page."""
    source[0] = BLOCK.sub(as_graphviz, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the conversion."""
    app.connect("source-read", convert)
    return {"parallel_read_safe": True}
