# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Find out what each parameter of the driver is to a Python caller.

Which pointer is an output, and which is an array of what length, is read from const-ness and types, from the comments
of ``cuda.h``, and where those are silent from :mod:`directions`.
"""

from __future__ import annotations

import dataclasses
import re

from . import directions
from .cdef import Api, Function, Parameter

COMMENTED_FUNCTION = re.compile(
    r"/\*\*(?P<text>(?:(?!\*/).)*)\*/\s*(?:(?!/\*)[^;{}])*?CUresult\s+CUDAAPI\s+(?P<name>\w+)\s*\(", re.DOTALL
)
COMMENTED_PARAMETER = re.compile(
    r"\\param(?:\[(?P<marker>[a-z, ]+)\])?\s+(?P<name>\w+)\s*(?:-\s*)?(?P<text>.*?)(?=\n\s*\n|\\\w|\Z)", re.DOTALL
)
COMMENTED_PAYLOAD = re.compile(r"::(CU_\w+): \(value type = (\w+)\)")
# What the comment of an output says, and that of an input
OUT_WORDS = re.compile(
    r"^(optionally )?(returned|returns|output|resulting|retrieved)\b"
    r"|\b(to|will) (return|store|receive|hold|contain|point to)\b|\b(is|are) returned\b|\bfor the output\b"
    r"|\bin which\b|\breceives\b",
    re.IGNORECASE,
)
IN_WORDS = re.compile(
    r"^(the |an? )?(array|list|set) (of|containing)\b|^(extra )?options?\b|\bparameters\b|\bto (set|map|unmap)\b",
    re.IGNORECASE,
)
ARRAY_WORDS = re.compile(r"\b(arrays?|list|set) (of|containing)\b|^buffer where\b|^options\b", re.IGNORECASE)
ARRAY_NAME = re.compile(r"(List|^params?Array)$")
TARGET_WORDS = re.compile(r"^destination\b", re.IGNORECASE)
VERSION = re.compile(r"_v\d+$")
COUNT_NAME = re.compile(r"^(num[A-Z]\w*|nb[A-Z]\w*|count)$")

INTEGERS = {
    "char", "short", "int", "long", "long long", "signed char", "signed long long", "unsigned", "unsigned char",
    "unsigned short", "unsigned int", "unsigned long", "unsigned long long", "size_t", "int8_t", "int16_t", "int32_t",
    "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "cuuint32_t", "cuuint64_t",
}  # fmt: skip
FLOATS = {"float", "double"}


class Unmapped(Exception):
    """Why a function cannot be mapped."""


@dataclasses.dataclass(frozen=True)
class Role:
    """What one parameter is to a Python caller.

    Attributes
    ----------
    name : str
        Its Python name.
    parameter : Parameter
        The C parameter.
    direction : str
        ``"in"``, ``"out"`` or ``"inout"``; a ``"target"`` is a buffer of the caller that the driver fills.
    kind : str
        What it is, or points to: ``"int"``, ``"float"``, ``"enum"``, ``"handle"`` (a pointer), ``"number"`` (an
        integer handle), ``"record"``, ``"callback"``, ``"void"``, ``"char"``.
    type : str
        The Python class of that; for numbers the C type.
    depth : int
        How many ``*`` the C type has.
    count : str or None
        For an array: an expression over C parameters that gives its length.
    """

    name: str
    parameter: Parameter
    direction: str
    kind: str
    type: str
    depth: int
    count: str | None


def find_roles(api: Api) -> tuple[dict[str, tuple[Role, ...]], dict[str, str]]:
    """Return the roles of the parameters of each function, and for the functions without why."""
    text = api.header.text
    comments: dict[str, dict[str, tuple[str | None, str]]] = {}
    for found in COMMENTED_FUNCTION.finditer(text):
        comment = re.sub(r"^\s*\* ?", "", found["text"], flags=re.MULTILINE)
        comments[found["name"]] = {
            item["name"]: (item["marker"], " ".join(item["text"].split()))
            for item in COMMENTED_PARAMETER.finditer(comment)
        }
    roles, unmapped = {}, {}
    for function in api.functions:
        try:
            roles[function.name] = roles_of(api, function, comments.get(function.name, {}))
        except Unmapped as exc:
            unmapped[function.name] = str(exc)
    return roles, unmapped


def settled(table: dict[str, str], owner: str, name: str) -> str | None:
    """Return what ``table`` has for a parameter; a function ``cuX_v2`` may be listed as ``cuX``."""
    return table.get(f"{owner}.{name}") or table.get(f"{VERSION.sub('', owner)}.{name}")


def stale_entries(api: Api) -> list[str]:
    """Return the entries of :mod:`directions` that do not fit this header, or wrongly say that they do not."""
    known = {item.name for enum in api.enums.values() for item in enum.values.enumerators}
    for function in api.functions:
        known.update(
            f"{name}.{p.name}" for name in (function.name, VERSION.sub("", function.name)) for p in function.parameters
        )
    names = class_names(api)
    for record, node in api.records.items():
        known.update(f"{names[record]}.{decl.name}" for decl in node.decls or ())
    entries = {*directions.DIRECTIONS, *directions.COUNTS, *directions.PAYLOADS, *directions.KEPT_ON_ERROR}
    entries.update(name for types in directions.PAYLOADS.values() for name in types)
    stale = [name for name in directions.ONLY_IN if name not in entries]
    for name in entries:
        first, last = directions.ONLY_IN.get(name, (api.header.version, api.header.version))
        if (name in known) != (first <= api.header.version <= last):
            stale.append(name)
    return sorted(stale)


def roles_of(api: Api, function: Function, comments: dict[str, tuple[str | None, str]]) -> tuple[Role, ...]:
    """Return the role of each parameter of ``function``.

    Raises
    ------
    Unmapped
        If nothing says what a parameter is.
    """
    if function.result != "CUresult":
        raise Unmapped(f"returns {function.result}")
    roles = []
    for index, parameter in enumerate(function.parameters):
        marker, comment = comments.get(parameter.name, (None, ""))
        kind, type_name = kind_of(api, parameter.ctype.replace("const ", "").rstrip(" *"))
        depth = 0 if kind == "callback" else parameter.ctype.count("*")
        direction = settled(directions.DIRECTIONS, function.name, parameter.name)
        direction = direction or direction_of(parameter, depth, kind, marker, comment)
        if direction is None:
            raise Unmapped(f"no comment gives the direction of {parameter.ctype} {parameter.name}")
        count = settled(directions.COUNTS, function.name, parameter.name)
        if count is None and depth and is_array(parameter, kind, depth, direction, comment):
            count = count_beside(function, index)
            if count is None:
                raise Unmapped(f"nothing gives the length of {parameter.ctype} {parameter.name}")
        name = directions.RENAMED.get(parameter.name, parameter.name)
        roles.append(Role(name, parameter, direction, kind, type_name, depth, count))
    return tuple(roles)


def direction_of(parameter: Parameter, depth: int, kind: str, marker: str | None, comment: str) -> str | None:
    """Return the direction that types and comment give, or None."""
    ctype, out = parameter.ctype, OUT_WORDS.search(comment) is not None
    if not depth or (ctype.startswith("const ") and depth == 1):
        return "in"
    if kind == "void" and depth == 1:
        # the address itself always comes in; only a payload or a destination is written
        if TARGET_WORDS.search(comment):
            return "target"
        return "out" if marker == "out" or out else "in"
    if marker:
        return marker.replace(",", "").replace(" ", "")
    if ctype.startswith("const ") or parameter.name.endswith("_out") or out:
        return "out"
    return "in" if IN_WORDS.search(comment) else None


def is_array(parameter: Parameter, kind: str, depth: int, direction: str, comment: str) -> bool:
    """Tell whether a pointer parameter is an array."""
    if kind in ("void", "char"):
        return kind == "void" and depth == 2 and direction == "in"
    if depth == 2 or ARRAY_WORDS.search(comment) or ARRAY_NAME.search(parameter.name):
        return True
    # a number or handle that is not written is only ever passed by pointer when there are several
    return direction == "in" and kind != "record"


def count_beside(function: Function, index: int) -> str | None:
    """Return the count parameter that is next after parameter ``index``, else the next before."""
    after, before = function.parameters[index + 1 :], reversed(function.parameters[:index])
    for parameter in (*after, *before):
        base = parameter.ctype.rstrip(" *")
        if COUNT_NAME.match(parameter.name.removesuffix("_out")) and base in INTEGERS:
            return parameter.name
    return None


def kind_of(api: Api, ctype: str) -> tuple[str, str]:
    """Return the kind of a type that is no pointer, and its Python class."""
    if ctype in ("void", "char"):
        return ctype, ctype
    name, documented = ctype, class_names(api)
    while name in api.aliases and name not in INTEGERS:
        name = api.aliases[name]
    if name in api.enums:
        return "enum", name
    if name in api.records:
        return "record", documented[name]
    if "(*" in name or "( *" in name:
        return "callback", ctype
    if ctype in INTEGERS:
        return "int", ctype
    if name in FLOATS:
        return "float", ctype
    if name.startswith("struct ") and name.endswith("*"):
        return "handle", documented[ctype]
    if ctype in api.aliases and name in INTEGERS:
        return ("number", documented[ctype]) if api.integer_handles else ("int", ctype)
    raise Unmapped(f"the type {ctype!r} has no Python form")


def class_names(api: Api) -> dict[str, str]:
    """Return for each record and handle typedef the name of its class: the one without version where there is one."""
    names = {name: name for name in (*api.records, *api.aliases)}
    for alias, target in api.aliases.items():
        if VERSION.sub("", target) == alias:
            names[target] = alias
    return names


def payload_types(api: Api) -> dict[str, str]:
    """Return the types that comments give to the values of attributes, by enumerator."""
    text = api.header.text
    return dict(COMMENTED_PAYLOAD.findall(text))
