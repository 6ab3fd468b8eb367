# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What an editor can complete: whatever the public API returns has a type."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from typing import Any

from copied_objects import find_classes

from cuda_core_cffi import graph
from cuda_core_cffi.graph.views import VIEWS

PUBLIC = ("", ".checkpoint", ".coredump", ".graph", ".simulator", ".system", ".texture", ".typing", ".utils")
ANY = re.compile(r"(?<!\w)Any(?!\w)")
# types with parameters for which there is nothing to say
PLAIN = re.compile(r"\b(?:dict\[str, Any\]|np_dtype\[Any\])")


def returned(owner: object) -> Iterator[tuple[str, str]]:
    """Yield what a function returns, or the public methods and attributes of a class."""
    if not inspect.isclass(owner):
        yield "", getattr(owner, "__annotations__", {}).get("return", "")
        return
    for cls in owner.__mro__:
        if not cls.__module__.startswith("cuda_core_cffi"):
            continue
        for name, item in vars(cls).items():
            if name.startswith("_") and not name.endswith("__"):
                continue
            function = item.fget if isinstance(item, property) else getattr(item, "__func__", item)
            if inspect.isroutine(function) and (found := getattr(function, "__annotations__", {}).get("return")):
                yield f".{name}", found
        for name, annotation in inspect.get_annotations(cls).items():
            if not name.startswith("_"):
                yield f".{name}", annotation


def untyped(names: dict[str, Any]) -> list[str]:
    """Return what returns Any of these names, and of the classes that what they return leads to."""
    known, found, seen = {cls.__name__: cls for cls in find_classes()}, [], set()
    left = list(names.items())
    while left:
        name, owner = left.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for member, annotation in returned(owner):
            text = str(annotation)
            if ANY.search(PLAIN.sub("", text)):
                found.append(f"{name}{member} -> {text}")
            left += [(word, known[word]) for word in re.findall(r"\w+", text) if word in known]
    return sorted(set(found))


def test_what_the_public_api_returns_has_a_type() -> None:
    modules = [importlib.import_module(f"cuda_core_cffi{name}") for name in PUBLIC]
    names = {name: getattr(module, name) for module in modules for name in module.__all__}
    assert len(names) > 100
    del names["ffi"], names["lib"]  # CFFI's own
    assert "\n".join(untyped(names)) == ""


def test_a_missing_type_is_found() -> None:
    class Returned:
        def method(self) -> Any: ...
        def mapping(self) -> dict[str, Any]: ...
        @property
        def things(self) -> tuple[Any, ...]: ...

    Returned.__module__ = "cuda_core_cffi"
    assert untyped({"Returned": Returned}) == ["Returned.method -> Any", "Returned.things -> tuple[Any, ...]"]


def undocumented(name: str, function: Any) -> Iterator[str]:
    """Yield what the docstring of a function lacks."""
    text = inspect.getdoc(function) or ""
    given = [item for item in inspect.signature(function).parameters if item not in ("self", "cls")]
    if not text:
        yield f"{name}: a docstring"
    if given and "Parameters\n---" not in text:
        yield f"{name}: Parameters, of {', '.join(given)}"
    returns = getattr(function, "__annotations__", {}).get("return")
    if returns not in (None, "None") and not re.search(r"(Returns|Yields)\n---", text):
        yield f"{name}: Returns, of {returns}"


def test_every_public_function_says_what_it_takes_and_returns() -> None:
    found: set[str] = set()
    for module in [importlib.import_module(f"cuda_core_cffi{name}") for name in PUBLIC]:
        for name in set(module.__all__) - {"ffi", "lib"}:
            owner = getattr(module, name)
            if not inspect.isclass(owner):
                found.update(undocumented(name, owner) if inspect.isroutine(owner) else ())
                continue
            for cls in owner.__mro__:
                if not cls.__module__.startswith("cuda_core_cffi"):
                    continue
                for member, item in vars(cls).items():
                    function = getattr(item, "__func__", item)
                    if not member.startswith("_") and inspect.isroutine(function):
                        found.update(undocumented(f"{cls.__name__}.{member}", function))
                    elif not member.startswith("_") and isinstance(item, property) and not item.__doc__:
                        found.add(f"{cls.__name__}.{member}: a docstring")
    assert sorted(found) == []


def test_the_view_of_a_node_has_the_type_of_the_node():
    typed = {
        form.__annotations__["node"]: form.__annotations__["return"]
        for form in typing.get_overloads(vars(graph.Graph)["__getitem__"])
    }
    kinds = {
        node.__name__: VIEWS.get(node._TYPE, graph.ExecutableGraphNode).__name__
        for node in vars(graph).values()
        if inspect.isclass(node) and issubclass(node, graph.GraphNode) and hasattr(node, "_TYPE")
    }
    views = {node: view for node, view in kinds.items() if view != "ExecutableGraphNode"}
    assert typed == {**views, "GraphNode": "ExecutableGraphNode"}
    assert len(views) == len(VIEWS)
