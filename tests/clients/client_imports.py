# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Check that every name which installed clients import from cuda.core can be imported.

    python -m cuda_core_cffi.as_cuda_core tests/clients/client_imports.py [--list] [DISTRIBUTION ...]

The sources of the named distributions are parsed; by default, of the distributions in CLIENTS that are installed. A
name is imported from its module and, if that fails, imported as a module. Prints each missing name, with the files
that import it; ``--list`` prints the names below private modules too.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.metadata
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator

CLIENTS = ("cuda-cccl", "nccl4py", "numba-cuda", "numba-cuda-mlir", "nvmath-python", "nvshmem4py-cu13")
CORE = "cuda.core"
BEFORE_1_0 = {(CORE, "GraphBuilder")}
"""Names that clients import only where cuda-core is older than 1.0."""


def imports_in(source: bytes) -> Iterator[tuple[str, str]]:
    """Yield each module below cuda.core that a source imports, with the name imported from it, or an empty name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "cuda":
                yield from ((CORE, "") for alias in node.names if alias.name == "core")
            elif node.module == CORE or node.module.startswith(f"{CORE}."):
                yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == CORE or alias.name.startswith(f"{CORE}."):
                    yield alias.name, ""


def imports_of(distribution: str) -> dict[tuple[str, str], set[str]]:
    """Return the modules and names that a distribution imports from cuda.core, with the files that do."""
    found = defaultdict(set)
    for file in importlib.metadata.files(distribution) or ():
        if file.suffix != ".py":
            continue
        path = file.locate()
        try:
            names = list(imports_in(path.read_bytes()))
        except (OSError, SyntaxError):  # an uninstalled file, or a template
            continue
        for name in names:
            found[name].add(str(file))
    return dict(found)


def is_there(module: str, name: str) -> bool:
    """Return whether ``from module import name`` succeeds; an empty name imports the module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of cuda.core.experimental
        try:
            found = importlib.import_module(module)
            if not name or name == "*" or hasattr(found, name):
                return True
            importlib.import_module(f"{module}.{name}")
        except ImportError:
            return False
    return True


def main() -> int:
    """Check the imports of all clients."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the names below private modules")
    parser.add_argument("distributions", nargs="*", help="by default the known clients that are installed")
    arguments = parser.parse_args()
    failed = 0
    for distribution in arguments.distributions or CLIENTS:
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            print(f"{distribution}: not installed")
            failed |= bool(arguments.distributions)
            continue
        found = imports_of(distribution)
        missing = [item for item in found if item not in BEFORE_1_0 and not is_there(*item)]
        print(f"{distribution} {version}: {len(found)} names, {len(missing)} missing")
        for module, name in sorted(missing):
            print(f"    missing: {module} {name} ({', '.join(sorted(found[module, name])[:3])})")
        if arguments.list:
            for module, name in sorted(found):
                if "._" in module:
                    print(f"    {module} {name}")
        failed |= bool(missing)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
