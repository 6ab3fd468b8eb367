# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Print the public names, parameters and enumerators that cuda-core has and this package lacks.

    python tests/clients/api_differences.py [--theirs PACKAGE] [--ours PACKAGE]

Python is one that has both packages; neither needs a driver. Compares the public modules, their classes and
functions, the methods and properties of classes, the names, order and defaults of parameters, and the members of
enumerations. Returns 1 if there is a difference. Names that only this package has are no difference.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import types
import warnings
from typing import Any

ANY = "**"
"""In a list of parameters: further keywords are accepted."""
OPTIONAL = "="
"""The end of the name of a parameter that has a default."""

Description = dict[str, Any]  # of each name: its parameters, the members of an enumeration, or its kind


# --- One package ------------------------------------------------------------------------------------------------------


def public_modules(package: str) -> list[str]:
    """Return the names of a package and of the public modules directly below it."""
    places = importlib.import_module(package).__path__
    below = sorted({module.name for module in pkgutil.iter_modules(places) if not module.name.startswith("_")})
    return [package, *(f"{package}.{name}" for name in below)]


def public_names(module: types.ModuleType) -> list[str]:
    """Return the public names of a module."""
    shown = getattr(module, "__all__", None) or dir(module)
    return [name for name in shown if not name.startswith("_")]


def parameters_of(function: Any) -> list[str] | None:
    """Return the names of the parameters of a function, an optional one with ``=`` at its end; None if unknown."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            found.append(ANY)
        elif parameter.kind is not parameter.VAR_POSITIONAL and parameter.name not in ("self", "cls"):
            found.append(parameter.name + OPTIONAL * (parameter.default is not parameter.empty))
    return found


def describe_class(name: str, cls: type) -> Description:
    """Return the members of an enumeration, or the methods, properties and fields of another class."""
    if issubclass(cls, enum.Enum):
        return {name: {member: repr(item.value) for member, item in cls.__members__.items()}}
    found: Description = {name: "class"}
    fields = getattr(cls, "__dataclass_fields__", {})
    if fields:
        found[f"{name}()"] = [f"{field}{OPTIONAL}" for field in fields]
    for member in dir(cls):
        if member.startswith("_") or member in fields:
            continue
        value = inspect.getattr_static(cls, member)
        if isinstance(value, staticmethod | classmethod) or callable(value):
            found[f"{name}.{member}"] = parameters_of(getattr(cls, member))
        else:
            found[f"{name}.{member}"] = "attribute"
    return found


def describe(package: str) -> Description:
    """Return the names of a package and its public modules, relative to the package, each with its description."""
    found: Description = {}
    for module in public_modules(package):
        try:
            imported = importlib.import_module(module)
        except ImportError:
            continue
        place = module.removeprefix(package).removeprefix(".")
        for name in public_names(imported):
            try:
                value = getattr(imported, name)
            except AttributeError:
                continue
            if isinstance(value, types.ModuleType) or name == "annotations":
                continue
            label = f"{place}.{name}" if place else name
            if isinstance(value, type):
                found |= describe_class(label, value)
            else:
                found[label] = parameters_of(value) if callable(value) else "attribute"
    return found


# --- Two packages -----------------------------------------------------------------------------------------------------


def parameter_differences(theirs: list[str], ours: list[str]) -> list[str]:
    """Return a line for each way in which a call of the one function may fail with the other."""
    their_names, our_names = ([name.rstrip(OPTIONAL) for name in names if name != ANY] for names in (theirs, ours))
    found = [f"no parameter {name!r}" for name in their_names if name not in our_names and ANY not in ours]
    found += [
        f"parameter {name!r} is required"
        for name in our_names
        if name in ours and name not in theirs and (f"{name}{OPTIONAL}" in theirs or name not in their_names)
    ]
    shared = [name for name in our_names if name in their_names]
    if shared != [name for name in their_names if name in our_names]:
        found.append(f"parameters in the order {', '.join(our_names)}, not {', '.join(their_names)}")
    return found


def differences(theirs: Description, ours: Description) -> list[str]:
    """Return a line for each thing that the first package has and the second lacks."""
    found = []
    for name, their in theirs.items():
        parent = name.rpartition(".")[0]
        if name not in ours:
            if parent not in theirs or parent in ours:  # else the class is missing, which is one line
                found.append(f"{name}: missing")
            continue
        our = ours[name]
        if isinstance(their, dict) and isinstance(our, dict):
            found += [f"{name}.{member}: missing" for member in their if member not in our]
            found += [
                f"{name}.{member}: {our[member]}, not {value}"
                for member, value in their.items()
                if our.get(member, value) != value
            ]
        elif isinstance(their, list) and isinstance(our, list):
            found += [f"{name}: {difference}" for difference in parameter_differences(their, our)]
    return found


def description_of(package: str) -> Description:
    """Return the description of a package, which a process of its own imports."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--describe", package], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{package} cannot be described:\n{done.stderr}")
    description: Description = json.loads(done.stdout)
    return description


def main() -> int:
    """Compare two packages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--theirs", default="cuda.core", help="by default cuda.core")
    parser.add_argument("--ours", default="cuda_core_cffi", help="by default cuda_core_cffi")
    parser.add_argument("--describe", metavar="PACKAGE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.describe:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(describe(arguments.describe)))
        return 0
    theirs, ours = description_of(arguments.theirs), description_of(arguments.ours)
    found = differences(theirs, ours)
    print(*found, sep="\n" if found else "", end="\n" if found else "")
    print(f"{len(theirs)} public names of {arguments.theirs}: {len(found)} differences")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
