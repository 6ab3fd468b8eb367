# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Draw the folders of the package, of ``include/`` and of the simulator, and what each imports, from the source.

python docs/architecture.py           say whether docs/architecture.md shows what the code does
python docs/architecture.py --write   write the pictures and the table in docs/architecture.md
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "cuda_core_cffi"
INCLUDE = ROOT / "include"
SIMULATOR = ROOT / "simulator" / "src"
PAGE = ROOT / "docs" / "architecture.md"
NAME = PACKAGE.name
BEGIN, END = "<!-- written by docs/architecture.py: {} -->\n", "<!-- end -->\n"
FLOORS = ("driver", "handles", "streams", "memory", "texture", "code", "launch", "graph", "python")
"""The folders of ``include/`` from the bottom up: a header includes headers of its own floor and of lower ones."""
COMPILED = ("_calls", "_capsule", "_cuda")  # at the package's root, where the build puts them; they belong to _core
EVERYWHERE = ("_core", "typing")  # their arrows would hide the others
REGISTERED = {
    "device": "_device",
    "call_in_stream": "_streams",
    "graph_builder": "graph",
    "launch_config": "_launching",
    "stream_proxy": "_streams",
    "system_device": "system",
    "texture": "texture",
}
"""Attributes of ``_core.registry``, through which lower folders reach upper ones, by the folder that they come from."""


class Import(NamedTuple):
    """One import of a module of the package by another.

    Attributes
    ----------
    importer, imported : str
        The modules, below the package; empty for the package itself.
    for_types : bool
        Whether only type checkers see it.
    """

    importer: str
    imported: str
    for_types: bool


class Finder(ast.NodeVisitor):
    """Collects the imports of one module."""

    def __init__(self, importer: str, modules: set[str]) -> None:
        self.importer = importer
        self.modules = modules
        self.found: list[Import] = []
        self.for_types = False

    def visit_If(self, node: ast.If) -> None:
        """See what is below ``if TYPE_CHECKING``."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            self.for_types = True
            for child in node.body:
                self.visit(child)
            self.for_types = False
            for child in node.orelse:
                self.visit(child)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """See ``import cuda_core_cffi.name``."""
        for alias in node.names:
            self.add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """See ``from cuda_core_cffi.name import name``."""
        for alias in node.names:
            self.add(f"{node.module}.{alias.name}")

    def visit_Call(self, node: ast.Call) -> None:
        """See the table of names that a package imports when they are asked for."""
        if isinstance(node.func, ast.Name) and node.func.id == "add_lazy_names" and isinstance(node.args[1], ast.Dict):
            for module in map(ast.literal_eval, filter(None, node.args[1].keys)):
                self.add(".".join(filter(None, (NAME, self.importer, module))))
        self.generic_visit(node)

    def add(self, name: str) -> None:
        """Note an import, if it is of a module of the package."""
        package, _, name = name.partition(".")
        if package == NAME:
            while name and name not in self.modules:
                name = name.rpartition(".")[0]
            self.found.append(Import(self.importer, name, self.for_types))


def find_imports(package: pathlib.Path = PACKAGE) -> list[Import]:
    """Return the imports within the package."""
    paths = {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
        for path in sorted(package.rglob("*.py"))
    }
    modules = {*paths, *COMPILED}
    found = []
    for name, path in paths.items():
        finder = Finder(name, modules)
        finder.visit(ast.parse(path.read_text(encoding="utf-8")))
        found += finder.found
    return found


def folder_of(module: str) -> str:
    """Return the folder of a module, or its own name if it is one of the public modules beside the folders."""
    if module in COMPILED:
        return "_core"
    return module.partition(".")[0] or NAME


def edges(imports: list[Import]) -> dict[str, set[str]]:
    """Return which folders each imports when it runs."""
    found: dict[str, set[str]] = defaultdict(set)
    for importer, imported, for_types in imports:
        one, other = folder_of(importer), folder_of(imported)
        found[one]  # folders that import nothing count as well
        if one != other and not for_types:
            found[one].add(other)
    return found


def find_includes(folder: pathlib.Path = INCLUDE) -> dict[str, set[str]]:
    """Return which folders the C of each folder includes; those in which nothing includes another folder as well."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.[ch]")):
        if path.parent == folder:
            continue
        name = path.relative_to(folder).parts[0]
        included = re.findall(r'^#include "(\w+)/', path.read_text(encoding="utf-8"), re.MULTILINE)
        found.setdefault(name, set()).update(set(included) - {name})
    return found


def includes_upward(found: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the pairs of folders of ``include/`` of which the first includes the second, which is above it."""
    floor = {name: at for at, name in enumerate(FLOORS)}
    return [(one, other) for one in found for other in sorted(found[one]) if floor[other] > floor[one]]


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return folders that import each other in a circle, in order; an empty list if there are none."""
    done: set[str] = set()

    def search(path: list[str]) -> list[str]:
        for other in sorted(graph.get(path[-1], ())):
            if other in path:
                return [*path[path.index(other) :], other]
            if other not in done and (found := search([*path, other])):
                return found
        done.add(path[-1])
        return []

    return next(filter(None, (search([folder]) for folder in sorted(graph))), [])


def upward(imports: list[Import]) -> Iterator[tuple[str, str, str]]:
    """Yield what points the other way: types, and what is reached through the registry."""
    ordinary = edges(imports)
    pairs = {(folder_of(one), folder_of(other)) for one, other, for_types in imports if for_types}
    for one, other in sorted(pairs):
        if one != other and other not in ordinary[one]:
            yield one, other, "types"
    for role, folder in sorted(REGISTERED.items()):
        yield "_core", folder, role


def page(imports: list[Import]) -> str:
    """Return the picture and the table, as Markdown."""
    graph = edges(imports)
    c_handles = sorted({*graph, *(other for others in graph.values() for other in others)})
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {c_handle}["{c_handle}"]' for c_handle in c_handles if c_handle not in EVERYWHERE]
    lines += [
        f"    {one} --> {other}" for one in c_handles for other in sorted(graph.get(one, ())) if other not in EVERYWHERE
    ]
    lines += [f"    {one} -. {why} .-> {other}" for one, other, why in upward(imports)]
    lines += ["```", "", "| folder | imports |", "|---|---|"]
    lines += [f"| `{one}` | {', '.join(f'`{other}`' for other in sorted(graph.get(one, ())))} |" for one in c_handles]
    return "\n".join(lines) + "\n"


def picture(found: dict[str, set[str]], order: Iterable[str]) -> str:
    """Return the picture of folders with C, as Markdown."""
    lines = ["```mermaid", "flowchart TD", *(f'    {name}["{name}"]' for name in order)]
    lines += [f"    {one} --> {other}" for one in order for other in sorted(found[one])]
    return "\n".join([*lines, "```"]) + "\n"


def blocks() -> dict[str, str]:
    """Return what the source says: the blocks of the page, by name."""
    included, simulated = find_includes(), find_includes(SIMULATOR)
    return {
        "package": page(find_imports()),
        "include": picture(included, [name for name in reversed(FLOORS) if name in included]),
        "simulator": picture(simulated, sorted(simulated)),
    }


def replace_block(text: str, name: str, block: str) -> str:
    """Return the text of the page with another block under a name."""
    mark = BEGIN.format(name)
    before, begin, rest = text.partition(mark)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has no {mark.strip()} ... {END.strip()}")
    return f"{before}{mark}\n{block}\n{END}{after}"


def main() -> int:
    """Run the command line."""
    text = PAGE.read_text(encoding="utf-8")
    new = text
    for name, block in blocks().items():
        new = replace_block(new, name, block)
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(new, encoding="utf-8")
    elif sys.argv[1:]:
        print(__doc__)
        return 2
    elif new != text:
        print(f"{PAGE.name} does not show what the code imports: run python docs/architecture.py --write")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
