# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Open a built site in chromium: every page, narrow and wide, light and dark, and its search.

python tests/site/browser.py build/site
"""

from __future__ import annotations

import functools
import http.server
import os
import pathlib
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator

from playwright.sync_api import BrowserContext, Page, sync_playwright

OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, NARROW = 1280, 400
HEIGHT = 900
DARK_AT_MOST, LIGHT_AT_LEAST = 60, 195  # brightness of backgrounds and of text in dark mode, of 255
SEARCHES = {  # a term, and a page that must be among the first results
    "LaunchConfig": "reference/launches.html",
    "PinnedMemoryResource": "reference/memory.html",
    "from_any_interface": "reference/arrays.html",
    "graph capture": "graphs.html",
    "CUDA_SIM_DEVICES": "environment.html",
    "pytest": "tutorial/testing.html",
    "PyCUDA": "coming_from.html",
    "cuMemAllocAsync": "reference/driver.html",
    "compile cache": "caches.html",
    "embedding": "embedding.html",
    "green context": "green_contexts.html",
    "deadlock GIL": "changelog.html",
}
FIRST = 15
FINISHED = """() => {
    const summary = document.querySelector("#search-results .search-summary, #search-results > p");
    return summary && /finished|did not match/.test(summary.innerText);
}"""

# What is wider than the window, and is not in something that can be scrolled.
TOO_WIDE = """() => {
    const found = [];
    for (const element of document.querySelectorAll("article *")) {
        const box = element.getBoundingClientRect();
        if (box.width === 0 || box.right <= window.innerWidth + 1) continue;
        let inside = element.parentElement;
        while (inside && !["auto", "scroll", "hidden"].includes(getComputedStyle(inside).overflowX)) {
            inside = inside.parentElement;
        }
        if (!inside) found.push(element.tagName + ": " + element.textContent.trim().slice(0, 60));
    }
    if (document.documentElement.scrollWidth > window.innerWidth + 1) found.push("the page scrolls sideways");
    return found.slice(0, 3);
}"""
# Pictures that did not load: images, and objects with a picture in them.
NOT_LOADED = """() => [...document.querySelectorAll("article img, article object")]
    .filter(e => e.tagName === "IMG" ? !(e.complete && e.naturalWidth) : !e.getBoundingClientRect().width)
    .map(e => e.src || e.data)"""
# Brightness of the page and of its text.
BRIGHTNESS = """() => {
    const of = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number); return (r + g + b) / 3; };
    const text = document.querySelector("article p, article li");
    return [of(getComputedStyle(document.body).backgroundColor), text ? of(getComputedStyle(text).color) : 255];
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that prints nothing."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


def serve(site: pathlib.Path) -> http.server.ThreadingHTTPServer:
    """Serve a folder on a port of this machine that is free."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def watch(page: Page, found: list[str]) -> None:
    """Note what a page complains of, and what it asks for elsewhere or in vain."""
    page.on(
        "console",
        lambda message: (
            found.append(f"console: {message.text} ({message.location['url']})") if message.type == "error" else None
        ),
    )
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("requestfailed", lambda request: found.append(f"failed: {request.url}"))
    page.on(
        "response",
        lambda response: found.append(f"{response.status}: {response.url}") if response.status >= 400 else None,
    )


def look_at_pages(context: BrowserContext, base: str, names: list[str], dark: bool) -> Iterator[str]:
    """Yield what is wrong with the pages."""
    page = context.new_page()
    found: list[str] = []
    watch(page, found)
    for name in names:
        page.goto(f"{base}/{name}", wait_until="load")
        complaints = [*found, *(f"not loaded: {what}" for what in page.evaluate(NOT_LOADED))]
        complaints += [f"too wide: {what}" for what in page.evaluate(TOO_WIDE)]
        background, text = page.evaluate(BRIGHTNESS)
        if dark and (background > DARK_AT_MOST or text < LIGHT_AT_LEAST):
            complaints.append(f"dark mode: brightness {background} behind {text}")
        yield from (f"{name}: {complaint}" for complaint in complaints)
        found.clear()
    page.close()


def search(context: BrowserContext, base: str) -> Iterator[str]:
    """Yield what the search does not find."""
    page = context.new_page()
    found: list[str] = []
    watch(page, found)
    for term, wanted in SEARCHES.items():
        page.goto(f"{base}/index.html")
        page.fill("input[name=q]", term)
        page.press("input[name=q]", "Enter")
        page.wait_for_function(FINISHED)
        links = page.eval_on_selector_all("#search-results li > a", "all => all.map(a => a.href)")
        first = [re.sub(r"[?#].*", "", link).removeprefix(f"{base}/") for link in links[:FIRST]]
        if wanted not in first:
            found.append(f"{wanted} is not among {first}")
        yield from (f"search for {term!r}: {complaint}" for complaint in found)
        found.clear()
    page.close()


def main(folder: str) -> int:
    """Look at a site, print what is wrong, and return an exit status."""
    site = pathlib.Path(folder).resolve()
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    server = serve(site)
    base = f"http://127.0.0.1:{server.server_address[1]}"
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        for width, scheme in ((WIDE, "light"), (NARROW, "dark")):
            context = playwright.chromium.launch_persistent_context(
                os.path.join(profile, scheme),
                executable_path=shutil.which("chromium"),
                args=OPTIONS,
                viewport={"width": width, "height": HEIGHT},
                color_scheme=scheme,  # type: ignore[arg-type]
            )
            dark = scheme == "dark"
            wrong += [f"{width} px, {scheme}: {line}" for line in look_at_pages(context, base, names, dark)]
            if not dark:
                wrong += search(context, base)
            context.close()
    server.shutdown()
    print("\n".join([*wrong, f"{len(names)} pages opened twice, {len(SEARCHES)} searches: {len(wrong)} complaints"]))
    return int(bool(wrong) or not names)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
