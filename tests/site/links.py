# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Check the links of a built site that lead to the site itself: files, and places in pages.

python tests/site/links.py build/site
"""

from __future__ import annotations

import pathlib
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, what in it can be linked to, and what it loads."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the links and the names of an element."""
        for name, value in attrs:
            if not value:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            elif tag == "a" and name == "href":
                self.links.append(value)
            elif name == "src" or (tag == "link" and name == "href") or (tag == "object" and name == "data"):
                self.loads.append(value)


def broken_links(site: pathlib.Path) -> list[str]:
    """Return a line for each link to nothing, and for each thing that a page loads from elsewhere."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    found.append(f"{where}: loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{where}: {link}: no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{where}: {link}: no such place in the page")
    return found


def main(site: str) -> int:
    """Print what is broken, and return an exit status."""
    found = broken_links(pathlib.Path(site))
    pages = len(list(pathlib.Path(site).rglob("*.html")))
    print("\n".join([*found, f"{pages} pages, {len(found)} broken links"]))
    return int(bool(found) or not pages)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
