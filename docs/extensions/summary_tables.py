# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A table at the top of each page of the reference: its names, and the first sentence of each docstring."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

DOCUMENTED = re.compile(r"^\.\. auto(?:class|data|exception|function):: (\S+)", re.MULTILINE)
FIRST_BLOCK = "```{eval-rst}"
FEWEST = 3


def add_table(app: Sphinx, page: str, source: list[str]) -> None:
    """Insert the table before the first description."""
    names = DOCUMENTED.findall(source[0]) if page.startswith("reference/") else []
    if len(names) < FEWEST:
        return
    rows = "".join(f"   ~{name}\n" for name in names)
    table = f"{FIRST_BLOCK}\n.. autosummary::\n   :nosignatures:\n\n{rows}```\n\n"
    source[0] = source[0].replace(FIRST_BLOCK, table + FIRST_BLOCK, 1)


def setup(app: Sphinx) -> None:
    """Register the table."""
    app.connect("source-read", add_table)
