# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Turn the declarations of ``cuda.h`` into cffi declarations.

Every function, type, enumerator and macro of the header ends in exactly one class of :class:`Api`. What fits none
stops the build, unless :data:`LEFT_OUT` says why it is not wanted.
"""

from __future__ import annotations

import copy
import dataclasses
import re

from pycparser import c_ast, c_generator

from .headers import Header, HeaderError

PLUMBING = "belongs to the header's own preprocessing, not to the API"
LEFT_OUT = {
    "__cuda_cuda_h__": PLUMBING,
    "__CUDA_API_PTDS": PLUMBING,
    "__CUDA_API_PTSZ": PLUMBING,
    "CUDAAPI": "the calling convention, empty on Linux",
    "CUDA_CB": "the calling convention of callbacks, empty on Linux",
    "CU_UUID_HAS_BEEN_DEFINED": PLUMBING,
}

# cuX -> cuX_v2, also inside the header's per-thread default stream macros
FUNCTION_ALIAS = re.compile(r"^(?:__CUDA_API_PT(?:DS|SZ)\()?(cu\w+)\)?$")
CAST = re.compile(r"^\(\s*\(\s*(\w+(?:\s*\*+)?)\s*\)\s*(.+)\)$")
INTEGER = re.compile(r"^\(?\s*[-~]?\s*(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*(?:\s*<<\s*\d+)?\s*\)?$")
BASIC_TYPES = {"void", "char", "int", "short", "long", "unsigned", "signed", "float", "double", "size_t", "wchar_t"}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter: its name and its C type as text."""

    name: str
    ctype: str


@dataclasses.dataclass
class Function:
    """One driver function.

    Attributes
    ----------
    name : str
        The documented name, ``cuMemAlloc``: what Python code calls.
    symbol : str
        The name that the header makes of it, ``cuMemAlloc_v2``: what C code links to.
    """

    name: str
    symbol: str
    result: str
    parameters: tuple[Parameter, ...]
    node: c_ast.FuncDecl


@dataclasses.dataclass(frozen=True)
class Constant:
    """A macro with a value: ``ctype`` is None for an integer, else the pointer type."""

    name: str
    ctype: str | None


@dataclasses.dataclass
class Api:
    """Everything that ``cuda.h`` declares, classified."""

    header: Header
    functions: list[Function]
    types: list[c_ast.Typedef]
    enums: dict[str, c_ast.Enum]
    records: dict[str, c_ast.Struct | c_ast.Union]
    aliases: dict[str, str]
    constants: list[Constant]
    left_out: dict[str, str]
    integer_handles: bool = True  # whether a type that is an integer under another name is a handle


def classify(header: Header) -> Api:
    """Sort everything in ``header`` into the classes of :class:`Api`.

    Raises
    ------
    HeaderError
        For a declaration or macro that fits no class and is not in :data:`LEFT_OUT`.
    """
    api = Api(header, [], [], {}, {}, {}, [], {})
    documented: dict[str, str] = {}
    function_aliases = set()
    for name, body in header.macros.items():
        found = FUNCTION_ALIAS.match(body)
        if name.startswith("cu") and found:
            function_aliases.add(name)
            # cuX and cuX_v2 may both be macros for cuX_v2: the shorter name is the documented one
            documented[found[1]] = min(name, documented.get(found[1], name), key=len)
    for node in header.declarations:
        if isinstance(node, c_ast.Typedef):
            add_type(api, node)
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            api.functions.append(make_function(node, documented))
        elif isinstance(node, c_ast.Decl) and node.name is None and isinstance(node.type, (c_ast.Struct, c_ast.Union)):
            api.types.append(node)  # a forward declaration
        else:
            raise HeaderError(f"cuda.h: {node.coord}: no rule for {text_of(node)!r}")
    api.functions.sort(key=lambda function: function.name)
    enumerators = {item.name for enum in api.enums.values() for item in enum.values.enumerators}
    for name in (*header.macros, *header.function_macros):
        if name in LEFT_OUT:
            api.left_out[name] = LEFT_OUT[name]
        elif name not in function_aliases:
            api.constants.append(make_constant(name, header, enumerators, api))
    return api


def write_cdef(api: Api) -> str:
    """Return the cffi declarations of ``api``: types in the header's order, then constants and functions by name."""
    lines = [f"/* Generated from the cuda.h of CUDA {api.header.version}. */"]
    for node in api.types:
        text = re.sub(r"^typedef ((?:struct|union) \w+) \1;$", r"\1;", text_of(node) + ";")
        name = getattr(node, "name", None)
        if name in api.header.aligned:
            # cffi has no _Alignas: leave size and alignment to the compiler
            text = text.replace("\n}", "\n  ...;\n}", 1)
        lines.append(text)
    for constant in sorted(api.constants, key=lambda item: item.name):
        if constant.ctype is None:
            lines.append(f"#define {constant.name} ...")
        else:
            lines.append(f"static {constant.ctype} const {constant.name};")
    for function in api.functions:
        parameters = ", ".join(declare(p.ctype, p.name) for p in function.parameters) or "void"
        lines.append(f"{function.result} {function.name}({parameters});")
    return "\n".join(lines) + "\n"


def write_types(api: Api) -> str:
    """Return declarations of the types alone, for another module that includes ours.

    They hold for whichever ``cuda.h`` that module is compiled with, because cffi writes C for the content of included
    types too: structures are opaque here (at run time they are ours, complete), and enumerations are the integers that
    C takes them for.
    """
    lines = [f"/* Generated from the cuda.h of CUDA {api.header.version}. */"]
    for node in api.types:
        name = getattr(node, "name", None)
        if name in api.enums:
            values = [item.value for item in api.enums[name].values.enumerators]
            negative = any(isinstance(value, c_ast.UnaryOp) and value.op == "-" for value in values)
            lines.append(f"typedef {'int' if negative else 'unsigned int'} {name};")
        elif name in api.records:
            record = api.records[name]
            kind = "struct" if isinstance(record, c_ast.Struct) else "union"
            lines.append(f"typedef {kind} {record.name} {name};")
        elif name is not None:
            lines.append(text_of(node) + ";")
    return "\n".join(lines) + "\n"


def add_type(api: Api, node: c_ast.Typedef) -> None:
    """File a typedef under enumerations, records or aliases."""
    simplify_dimensions(node)
    api.types.append(node)
    target = node.type
    if isinstance(target, c_ast.TypeDecl):
        inner = target.type
        if isinstance(inner, c_ast.Enum):
            api.enums[node.name] = inner
            return
        if isinstance(inner, (c_ast.Struct, c_ast.Union)):
            api.records[node.name] = inner
            return
    api.aliases[node.name] = type_text(target)


def simplify_dimensions(node: c_ast.Node) -> None:
    """Leave array dimensions that are no plain numbers to the compiler: cffi evaluates no ``sizeof``."""
    for _, child in node.children():
        if isinstance(child, c_ast.ArrayDecl) and not isinstance(child.dim, (c_ast.Constant, type(None))):
            child.dim = c_ast.ID("...")
        simplify_dimensions(child)


def make_function(node: c_ast.Decl, documented: dict[str, str]) -> Function:
    """Describe one function declaration."""
    parameters = []
    for index, parameter in enumerate(node.type.args.params if node.type.args else ()):
        ctype = type_text(parameter.type)
        if ctype == "void":
            break
        parameters.append(Parameter(parameter.name or f"arg{index}", ctype))
    return Function(
        name=documented.get(node.name, node.name),
        symbol=node.name,
        result=type_text(node.type.type),
        parameters=tuple(parameters),
        node=node.type,
    )


def make_constant(name: str, header: Header, enumerators: set[str], api: Api) -> Constant:
    """Describe one macro that has a value."""
    body = header.macros.get(name, "")
    seen = {name}
    while body in header.macros and body not in seen:
        seen.add(body)
        body = header.macros[body]
    if INTEGER.match(body) or body in enumerators:
        return Constant(name, None)
    cast = CAST.match(body)
    if cast:
        ctype = cast[1].replace(" ", "")
        if is_pointer(ctype, api):
            return Constant(name, cast[1])
        if INTEGER.match(cast[2]):
            return Constant(name, None)
    raise HeaderError(f"cuda.h: no rule for the macro {name} {body!r}; extend the rules, or LEFT_OUT with the reason")


def is_pointer(ctype: str, api: Api) -> bool:
    """Tell whether a type, seen through its typedefs, is a pointer."""
    while ctype in api.aliases:
        ctype = api.aliases[ctype]
    return ctype.endswith("*")


def declare(ctype: str, name: str) -> str:
    """Return the declaration of ``name`` as a ``ctype``: arrays and function pointers put the name inside."""
    for mark in ("(*", "["):
        if mark in ctype:
            head, tail = ctype.split(mark, 1)
            return f"{head}{mark}{name}{tail}" if mark == "(*" else f"{head.rstrip()} {name}{mark}{tail}"
    return f"{ctype} {name}" if not ctype.endswith("*") else f"{ctype}{name}"


def text_of(node: c_ast.Node) -> str:
    """Return ``node`` as C."""
    text: str = c_generator.CGenerator().visit(node)
    return text


def type_text(node: c_ast.Node) -> str:
    """Return a type as C, without the name it declares."""

    node = copy.deepcopy(node)
    inner = node
    while not isinstance(inner, c_ast.TypeDecl):
        inner = inner.type
    inner.declname = None
    return re.sub(r"\s*(\*+)", r" \1", text_of(c_ast.Typename(None, [], None, node))).strip()
