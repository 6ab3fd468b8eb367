# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Turn the declarations of ``nvml.h`` into CFFI declarations and C.

The library is found at run time, so a function is a name in a table. To call it takes a C function of its own shape:
pointers, and numbers of one width and sign. About forty shapes serve four hundred functions, which keeps the extension
small; what a pointer points to is checked by the Python function, which :mod:`nvml_bindings` writes.

Every type, function and macro of the header ends in exactly one class. What fits none stops the build.
"""

from __future__ import annotations

import re

from pycparser import c_ast, c_parser

from .cdef import PLUMBING, Api, add_type, make_function, text_of
from .headers import Header, HeaderError

LEFT_OUT = {
    "DECLDIR": PLUMBING,
    "NVML_MCDM_SUPPORT": PLUMBING,
    "__nvml_nvml_h__": PLUMBING,
}
STATUS = "nvmlReturn_t"
ELSEWHERE = "include/driver/ccc_nvml.h calls it"
NAME = re.compile(r"nvml\w+$")
STRUCT_VERSION = re.compile(r"NVML_STRUCT_VERSION\((\w+),\s*(\d+)\)$")
BIT_RANGE = re.compile(r"\d+:\d+$")
# What C passes in the same way, by the letter that stands for it in the name of a shape
PASSED = {"unsigned int": "u", "int": "i", "unsigned long long": "l"}
C_TYPES = {"p": "void *", **{letter: f"{ctype} " for ctype, letter in PASSED.items()}}


class NvmlApi(Api):
    """Everything that ``nvml.h`` declares, classified.

    Attributes
    ----------
    names : dict of str to str
        Macros that stand for a function or type: ``nvmlInit`` for ``nvmlInit_v2``.
    values : dict of str to pycparser.c_ast.Node
        Macros that stand for a number, as expressions.
    versions : dict of str to int
        The version that a structure says in its first field, by the name of its type.
    """

    def __init__(self, header: Header) -> None:
        super().__init__(header, [], [], {}, {}, {}, [], {})
        self.integer_handles = False
        self.names: dict[str, str] = {}
        self.values: dict[str, c_ast.Node] = {}
        self.versions: dict[str, int] = {}


def classify(header: Header) -> NvmlApi:
    """Sort everything in ``header`` into the classes of :class:`NvmlApi`.

    Raises
    ------
    HeaderError
        For a declaration or macro that fits no class.
    """
    api = NvmlApi(header)
    for node in header.declarations:
        if isinstance(node, c_ast.Typedef):
            add_type(api, node)
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            api.functions.append(make_function(node, {}))
        else:
            raise HeaderError(f"nvml.h: {node.coord}: no rule for {text_of(node)!r}")
    merge_records(api)
    # one is declared twice
    functions = sorted({function.name: function for function in api.functions}.values(), key=lambda item: item.name)
    api.functions = [function for function in functions if function.result == STATUS]
    api.left_out |= {item.name: f"returns {item.result}: {ELSEWHERE}" for item in functions if item.result != STATUS}
    known = {*api.records, *api.aliases, *api.enums, *(function.name for function in functions)}
    for name, body in header.macros.items():
        add_macro(api, name, body, known)
    for name in header.function_macros:
        api.left_out[name] = "takes arguments: no value"
    return api


def merge_records(api: NvmlApi) -> None:
    """Make the second name of a structure, which its one declaration has too, another name of the first."""
    first: dict[str, str] = {}
    for name, record in list(api.records.items()):
        if record.name is not None and first.setdefault(record.name, name) != name:
            del api.records[name]
            api.aliases[name] = first[record.name]


def add_macro(api: NvmlApi, name: str, body: str, known: set[str]) -> None:
    """File a macro under names, versions or values, or under what is left out."""
    version = STRUCT_VERSION.match(body)
    if name in LEFT_OUT:
        api.left_out[name] = LEFT_OUT[name]
    elif NAME.match(body) and body in known:
        api.names[name] = body
    elif version:
        api.versions[f"nvml{version[1]}_v{version[2]}_t"] = int(version[2])
    elif body.startswith('"'):
        api.left_out[name] = "a text"
    elif BIT_RANGE.match(body):
        api.left_out[name] = "the places of bits: no value"
    else:
        api.values[name] = parse_value(name, body)


def parse_value(name: str, body: str) -> c_ast.Node:
    """Return the value of a macro as an expression.

    Raises
    ------
    HeaderError
        If it is none.
    """
    body = re.sub(r"^\(\s*\(\s*\w+_t\s*\)(.*)\)$", r"\1", body)  # a cast to an integer type
    try:
        tree = c_parser.CParser().parse(f"int value = {body};", "nvml.h")
    except c_parser.ParseError as exc:
        raise HeaderError(f"nvml.h: no rule for the macro {name} {body!r}: {exc}") from exc
    return tree.ext[0].init


def write_cdef(api: NvmlApi) -> str:
    """Return the CFFI declarations of the types, and of the functions that call those of a shape.

    Enumerations are integers: Python has classes for them, and each enumerator takes a function in the extension.
    """
    lines = [f"/* Generated from nvml.h, version {api.header.version // 1000}. */"]
    for node in api.types:
        if node.name in api.enums:
            lines.append(enum_typedef(api, node.name))
        elif node.name in api.records:
            lines.append(text_of(node) + ";")
        else:
            lines.append(f"typedef {api.aliases[node.name]} {node.name};")
    lines += [f"int {declaration(shape)};" for shape in shapes(api)]
    return "\n".join(lines) + "\n"


def write_types(api: NvmlApi) -> str:
    """Return declarations of the types alone, for another module that includes ours; structures are opaque."""
    lines = [f"/* Generated from nvml.h, version {api.header.version // 1000}. */"]
    for node in api.types:
        if node.name in api.enums:
            lines.append(enum_typedef(api, node.name))
        elif node.name in api.records:
            record = api.records[node.name]
            kind = "struct" if isinstance(record, c_ast.Struct) else "union"
            # a structure without a tag cannot be declared without its fields
            declared = f"{kind} {record.name}" if record.name else "struct { ...; }"
            lines.append(f"typedef {declared} {node.name};")
        else:
            lines.append(f"typedef {api.aliases[node.name]} {node.name};")
    return "\n".join(lines) + "\n"


def enum_typedef(api: NvmlApi, name: str) -> str:
    """Return the integer that C takes an enumeration for, under its name."""
    values = [item.value for item in api.enums[name].values.enumerators]
    negative = any(isinstance(value, c_ast.UnaryOp) and value.op == "-" for value in values)
    return f"typedef {'int' if negative else 'unsigned int'} {name};"


def write_rows(api: NvmlApi) -> str:
    """Return the C text of the table of names, and of a function for each shape."""
    lines = [
        f"/* Generated from nvml.h, version {api.header.version // 1000}. */",
        f"#define CCC_NVML_SIZE {len(api.functions)}",
        "static const char *const ccc_nvml_names[CCC_NVML_SIZE] = {",
        *(f'    "{function.symbol}",' for function in api.functions),
        "};",
    ]
    for shape in shapes(api):
        names = ", ".join(f"a{number}" for number in range(len(shape)))
        types = ", ".join(C_TYPES[letter].strip() for letter in shape) or "void"
        lines += [
            f"static int {declaration(shape)}",
            "{",
            "    void *address = ccc_nvml_entry(function);",
            "    if (address == NULL)",
            "        return ccc_nvml_missing_status();",
            f"    return (int)((nvmlReturn_t (*)({types}))address)({names});",
            "}",
        ]
    return "\n".join(lines) + "\n"


def shapes(api: NvmlApi) -> list[str]:
    """Return the shapes of all functions."""
    return sorted({shape_of(api, [item.ctype for item in function.parameters]) for function in api.functions})


def shape_of(api: NvmlApi, ctypes: list[str]) -> str:
    """Return a letter for each type: how C passes it.

    Raises
    ------
    HeaderError
        For a type that is none of those in :data:`PASSED`, no enumeration and no pointer.
    """
    letters = []
    for ctype in ctypes:
        name = ctype
        while name in api.aliases:
            name = api.aliases[name]
        if name in api.enums:
            name = enum_typedef(api, name).split(" ", 1)[1].removesuffix(f" {name};")
        if "*" in name:
            letters.append("p")
        elif name in PASSED:
            letters.append(PASSED[name])
        else:
            raise HeaderError(f"nvml.h: no rule for a parameter of type {ctype}")
    return "".join(letters)


def declaration(shape: str) -> str:
    """Return the declaration of the C function for a shape, without its type."""
    parameters = "".join(f", {C_TYPES[letter]}a{number}" for number, letter in enumerate(shape))
    return f"ccc_nvml_call_{shape or '0'}(unsigned int function{parameters})"
