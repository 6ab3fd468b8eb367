# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Write the Python module that calls every function of a library directly.

Each function becomes one Python function that returns a tuple: the status, then the outputs. What each parameter is
comes from :mod:`roles`, for NVML from :mod:`nvml_bindings`. No text of the header reaches the module.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable

from pycparser import c_ast

from . import directions
from .cdef import Api, type_text
from .headers import HeaderError
from .roles import COUNT_NAME, INTEGERS, Role, find_roles, kind_of, payload_types, settled

INT_BITS = 32
OPERATORS: dict[str, Callable[[int, int], int]] = {"|": operator.or_, "+": operator.add, "-": operator.sub}
HEAD = """\
# Written by the build from {source}; do not edit.
\"\"\"{title}: every function, enumeration, structure and constant.\"\"\"

from __future__ import annotations

from enum import IntEnum
from typing import Any

from cuda_core_cffi._raw import convert as _convert
from cuda_core_cffi._raw import types as _types
from cuda_core_cffi._core.ffi import lib as _lib
{helpers}
__all__ = [
{names}
]
"""
# Calls use these as globals: looking them up in their module each time would cost
HELPERS = """
_address = _convert.address
_array = _convert.array
_buffer = _convert.buffer
_callback = _convert.callback
_handle = _convert.handle
_inout = _convert.inout
_kernel_parameters = _convert.kernel_parameters
_member = _convert.member
_new = _convert.new
_number = _convert.number
_pointers = _convert.pointers
_raw = _convert.raw
_refused = _convert.refused
_new_array = _convert.new_array
_string = _convert.string
_target = _convert.target
_text = _convert.text
_typed_handle = _convert.typed_handle
_typeof = _convert.typeof
_Payload = _types.Payload
_copies = _types.copies
_copy_back = _types.copy_back
_elements = _types.elements
_payloads = _types.payloads
_record = _types.record
_record_value = _types.record_value
_records = _types.records
_stamped = _types.stamped
"""
CALL_TYPES = {
    "int": "int", "float": "float", "enum": "int", "handle": "_convert.HandleLike", "number": "_convert.HandleLike",
    "callback": "Any", "char": "_convert.Text | None", "void": "_convert.PointerLike",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Library:
    """What the modules of two libraries differ in.

    Attributes
    ----------
    title, source : str
        What the module has, and what it is written from.
    status, success : str
        The enumeration that functions return, and its enumerator for success.
    roles : dict
        What the parameters of each function are.
    call : callable
        Gets the name of a function and its arguments as text; returns the call, and, where the function is called
        through another one, that one's name.
    kept : callable
        Gets a function's name and a role; tells whether that output has a value when the function failed.
    typed : bool
        Whether the C functions take any pointer, so that Python has to check the type of handles.
    versions : dict of str to int
        Versions that structures state in themselves.
    """

    title: str
    source: str
    status: str
    success: str
    roles: dict[str, tuple[Role, ...]]
    call: Callable[[str, str], tuple[str, str | None]]
    kept: Callable[[str, Role], bool]
    typed: bool = False
    versions: dict[str, int] = dataclasses.field(default_factory=dict)


class Writer:
    """The module under construction."""

    def __init__(self, api: Api, library: Library) -> None:
        self.api = api
        self.library = library
        self.lines: list[str] = []
        self.types: dict[str, str] = {}
        self.public: list[str] = []
        self.comments = payload_types(api)
        self.values: dict[str, int] = {}  # of the enumerators

    def type_of(self, ctype: str) -> str:
        """Return the name under which the module keeps the cffi type ``ctype``."""
        name = "_T_" + re.sub(r"\W+", "_", ctype.replace("*", "p").replace("[]", "a")).strip("_")
        self.types[name] = ctype
        return name

    def alias(self, name: str, target: str) -> None:
        """Give a class a second name."""
        self.public.append(name)
        self.lines.append(f"{name} = {target}")


def report(api: Api) -> dict[str, str]:
    """Return the name of each function that is not mapped, with the reason."""
    return find_roles(api)[1]


def write_driver_module(api: Api) -> str:
    """Return the text of the module that holds all of the driver's ``api``.

    Raises
    ------
    HeaderError
        If an enumerator cannot be evaluated.
    """
    version = f"{api.header.version // 1000}.{api.header.version % 1000 // 10}"
    library = Library(
        title=f"The driver API of CUDA {version}",
        source=f"the cuda.h of CUDA {version}",
        status="CUresult",
        success="CUDA_SUCCESS",
        roles=find_roles(api)[0],
        call=lambda name, arguments: (f"_lib.{name}({arguments})", None),
        kept=lambda name, role: f"{name}.{role.name}" in directions.KEPT_ON_ERROR,
    )
    return write_module(Writer(api, library), write_constants)


def write_module(writer: Writer, write_values: Callable[[Writer], None]) -> str:
    """Return the text of a module; ``write_values`` writes its constants.

    Raises
    ------
    HeaderError
        If an enumerator cannot be evaluated.
    """
    library = writer.library
    write_enums(writer)
    write_handles(writer)
    write_records(writer)
    write_values(writer)
    declarations, writer.lines = writer.lines, []
    for name, roles in library.roles.items():
        write_function(writer, name, roles)
    types = [f'{name} = _typeof("{ctype}")' for name, ctype in sorted(writer.types.items())]
    text = "\n".join([*declarations, "", f"_SUCCESS = {library.status}.{library.success}", *types, *writer.lines])
    names = "\n".join(f'    "{name}",' for name in sorted(writer.public))
    return HEAD.format(title=library.title, source=library.source, helpers=HELPERS, names=names) + text + "\n"


def write_enums(writer: Writer) -> None:
    """Write a class for each enumeration."""
    values = writer.values
    for name, enum in writer.api.enums.items():
        writer.public.append(name)
        writer.lines += ["", "", f"class {name}(IntEnum):"]
        value = -1
        for item in enum.values.enumerators:
            value = value + 1 if item.value is None else evaluate(item.value, values)
            values[item.name] = value
            writer.lines.append(f"    {item.name} = {value}")
    for alias, target in writer.api.aliases.items():
        if kind_of(writer.api, alias)[0] == "enum":
            writer.alias(alias, target)


def evaluate(node: c_ast.Node, values: dict[str, int]) -> int:
    """Return the value of the expression of an enumerator."""
    if isinstance(node, c_ast.Constant):
        return int(node.value.rstrip("uUlL"), 0)
    if isinstance(node, c_ast.ID) and node.name in values:
        return values[node.name]
    if isinstance(node, c_ast.UnaryOp) and node.op == "-":
        return -evaluate(node.expr, values)
    if isinstance(node, c_ast.BinaryOp) and node.op == "<<":
        value = evaluate(node.left, values) << evaluate(node.right, values)
        # an int in C: its last bit is the sign
        return value - (1 << INT_BITS) if value >> (INT_BITS - 1) == 1 else value
    if isinstance(node, c_ast.BinaryOp) and node.op in OPERATORS:
        return OPERATORS[node.op](evaluate(node.left, values), evaluate(node.right, values))
    raise HeaderError(f"{node.coord}: no rule for a value")


def write_handles(writer: Writer) -> None:
    """Write a class for each handle and each type of callback, and the other names of it."""
    for alias in writer.api.aliases:
        if alias in INTEGERS:
            continue
        kind, name = kind_of(writer.api, alias)
        if kind in ("handle", "number", "callback") and name == alias:
            writer.public.append(name)
            writer.lines += ["", "", f"class {name}(_types.Handle):", "    __slots__ = ()"]
    writer.lines += ["", ""]
    for alias in writer.api.aliases:
        kind, name = kind_of(writer.api, alias) if alias not in INTEGERS else ("int", alias)
        if kind in ("handle", "number") and name != alias:
            writer.alias(alias, name)
        elif kind == "int":
            writer.alias(alias, "int")


def write_records(writer: Writer) -> None:
    """Write a class for each structure and union, and the other names of it."""
    for name in dict.fromkeys(kind_of(writer.api, record)[1] for record in writer.api.records):
        write_named_record(writer, name)
    writer.lines += ["", ""]
    for alias in (*writer.api.records, *writer.api.aliases):
        if alias not in INTEGERS:
            kind, name = kind_of(writer.api, alias)
            if kind == "record" and alias != name:
                writer.alias(alias, name)


def write_named_record(writer: Writer, name: str) -> None:
    """Write the class ``name``, unless that has been done."""
    if name in writer.public:
        return
    writer.public.append(name)
    record = name
    while record in writer.api.aliases:
        record = writer.api.aliases[record]
    node = writer.api.records[record]
    if not node.decls:  # declared first, defined elsewhere
        node = next(
            item.type for item in writer.api.types if getattr(item.type, "name", "") == node.name and item.type.decls
        )
    write_record(writer, name, node, name)


def write_record(writer: Writer, name: str, node: c_ast.Struct | c_ast.Union, ctype: str) -> None:
    """Write the class ``name`` for a structure, after those of the structures within."""
    fields: list[str] = []
    add_fields(writer, name, node, fields)
    arguments = f', ctype="{ctype}"' if ctype else ""
    arguments += ", union=True" if isinstance(node, c_ast.Union) else ""
    if ctype in writer.library.versions and any(decl.name == "version" for decl in node.decls):
        arguments += f", version={writer.library.versions[ctype]}"
    writer.lines += ["", "", f"class {name}(_types.Record{arguments}):", "    __slots__ = ()", "", *fields]


def add_fields(writer: Writer, owner: str, node: c_ast.Struct | c_ast.Union, fields: list[str]) -> None:
    """Append a line for each field; those of nameless structures belong to the structure around."""
    integers = {decl.name for decl in node.decls if decl.name and type_text(decl.type) in INTEGERS}
    for decl in node.decls:
        inner = decl.type.type if isinstance(decl.type, c_ast.TypeDecl) else decl.type
        if isinstance(inner, (c_ast.Struct, c_ast.Union)) and inner.decls:
            if decl.name is None:
                add_fields(writer, owner, inner, fields)
                continue
            made = f"_types.RecordField({write_nested(writer, owner, decl.name, inner)})"
        elif isinstance(decl.type, c_ast.ArrayDecl):
            made = array_field(writer, owner, decl)
        else:
            made = field_of(writer, owner, decl.name, type_text(decl.type), integers)
        fields.append(f"    {decl.name} = {made}")


def write_nested(writer: Writer, owner: str, name: str, node: c_ast.Struct | c_ast.Union) -> str:
    """Write the class of a structure that is declared within another one, and return its name."""
    cls = f"_{owner.lstrip('_')}_{name}"
    write_record(writer, cls, node, "")
    return cls


def array_field(writer: Writer, owner: str, decl: c_ast.Decl) -> str:
    """Return the descriptor for an array in a structure."""
    element = decl.type.type
    if isinstance(element.type, (c_ast.Struct, c_ast.Union)):
        return f"_types.RecordListField({write_nested(writer, owner, decl.name, element.type)})"
    text = type_text(element)
    if text in ("char", "unsigned char"):
        return "_types.BytesField()"
    if text in writer.api.records or text in writer.api.aliases:
        kind, cls = kind_of(writer.api, text)
        if kind == "record":
            write_named_record(writer, cls)
            return f"_types.RecordListField({cls})"
    return "_types.ListField()"


def field_of(writer: Writer, owner: str, name: str, ctype: str, integers: set[str]) -> str:
    """Return the descriptor for a field that is neither an array nor a nameless structure."""
    if ctype.startswith("struct "):
        return "_types.AddressField()"
    base = ctype.replace("const ", "").rstrip(" *")
    kind, cls = kind_of(writer.api, base)
    depth = 0 if kind == "callback" else ctype.count("*")
    if kind == "record" and depth < 2:
        write_named_record(writer, cls)
    if depth == 1 and kind not in ("void", "char", "callback"):
        count = settled(directions.COUNTS, owner, name)
        count = count or next((item for item in sorted(integers) if COUNT_NAME.match(item)), None)
        python = cls if kind in ("record", "handle", "number", "enum") else "None"
        return f'_types.SequenceField("{base}", {python}, {count!r})'
    if depth or kind in ("callback", "void"):
        return "_types.AddressField()"
    return {
        "int": "_types.IntField()",
        "char": "_types.IntField()",
        "float": "_types.FloatField()",
        "enum": f"_types.EnumField({cls})",
        "record": f"_types.RecordField({cls})",
    }.get(kind, f"_types.HandleField({cls})")


def write_constants(writer: Writer) -> None:
    """Write the macros of ``cuda.h`` that have a value, which the compiler knows."""
    writer.lines += ["", ""]
    for constant in sorted(writer.api.constants, key=lambda item: item.name):
        value = f"_lib.{constant.name}"
        if constant.ctype is not None:
            kind, cls = kind_of(writer.api, constant.ctype.rstrip(" *"))
            value = f"{cls}(_convert.address({value}))" if kind == "handle" else f"_convert.address({value})"
        writer.public.append(constant.name)
        writer.lines.append(f"{constant.name}: int = {value}")


class Call:
    """The Python function of one driver function, under construction."""

    def __init__(self, writer: Writer, name: str, roles: tuple[Role, ...]) -> None:
        self.writer = writer
        self.name = name
        self.roles = roles
        self.head: list[str] = []  # lines before the function
        self.parameters: list[str] = []
        self.before: list[str] = []
        self.arguments: list[str] = []
        self.checked: dict[int, str] = {}  # name and value of what cffi checks, by position
        self.after: list[str] = []
        self.outputs: list[tuple[str, str, str]] = []  # name, annotation, expression

    def take(self, role: Role, annotation: str, conversion: str = "", default: str = "", member: str = "") -> None:
        """Add a parameter of the Python function, and its argument."""
        self.parameters.append(f"{role.name}: {annotation}{default}")
        if conversion:
            self.before.append(f"{role.name}_ = {conversion}")
        argument = f"{role.name}_{member}" if conversion else role.name
        self.checked[len(self.arguments)] = f'("{role.name}", {argument})'
        self.arguments.append(argument)

    def give(self, role: Role, annotation: str, made: str, expression: str, member: str = "") -> None:
        """Add an output, and the argument that receives it."""
        self.before.append(f"{role.name}_ = {made}")
        self.arguments.append(f"{role.name}_{member}")
        self.outputs.append((role.name, annotation, expression))

    def python_count(self, role: Role, returned: bool = False) -> str:
        """Return the length of an array as a Python expression, before or after the call."""
        expression = role.count or "None"
        for other in self.roles:
            name = other.name
            if other.direction in ("out", "inout") and other.depth and returned:
                name = f"{name}_[0]" if other.direction == "out" else f"min({name}, {name}_[0])"
            expression = re.sub(rf"\b{other.parameter.name}\b", name, expression)
        return expression


def write_function(writer: Writer, name: str, roles: tuple[Role, ...]) -> None:
    """Write the Python function of one driver function."""
    call = Call(writer, name, roles)
    for role in roles:
        add_role(call, role)
    names = "".join(f", {name}" for name, _, _ in call.outputs) or ","
    outputs = (f"{annotation} | Any".replace("Any | Any", "Any") for _, annotation, _ in call.outputs)
    results = [writer.library.status, *outputs]
    by_name = {role.name: role for role in roles}
    kept = [
        expression if writer.library.kept(name, by_name[output]) else "None" for output, _, expression in call.outputs
    ]
    made, through = writer.library.call(name, ", ".join(call.arguments))
    caller = f', "{through}"' if through else ""
    checked = ", ".join(f"{index}: {text}" for index, text in call.checked.items())
    body = [
        f'"""Return (status{names})."""',
        *call.before,
        "try:",
        f"    _err = {made}",
        "except (TypeError, OverflowError) as exc:",
        f'    raise _refused(exc, "{name}", {{{checked}}}{caller}) from None',
        *call.after,
        "if _err:",
        f"    return {', '.join([f'_member({writer.library.status}, _err)', *kept])},",
        f"return {', '.join(['_SUCCESS', *(expression for _, _, expression in call.outputs)])},",
    ]
    if not call.arguments:
        body[1:] = [f"_err = {made}", *body[-3:]]
    header = f"def {name}({', '.join(call.parameters)}) -> tuple[{', '.join(results)}]:"
    writer.public.append(name)
    writer.lines += ["", "", *call.head, header, *(f"    {line}" for line in body)]


def add_role(call: Call, role: Role) -> None:
    """Add one parameter of the driver function to ``call``."""
    where = f'"{call.name}: {role.name}"'
    out, base = role.direction == "out", role.parameter.ctype.replace("const ", "").rstrip(" *")
    if f"{call.name}.{role.parameter.name}" in directions.PAYLOADS:
        add_payload(call, role, where)
    elif role.direction == "size":
        payload = next(item for item in call.roles if f"{call.name}.{item.parameter.name}" in directions.PAYLOADS)
        call.give(role, "int", f"_new({call.writer.type_of(base + ' *')}, {payload.name}_.size)", f"{role.name}_[0]")
    elif not role.depth:
        converter = f"_typed_handle({role.type}, " if call.writer.library.typed else "_handle("
        conversion = {
            "handle": f"{converter}{call.writer.type_of(base)}, {role.name}, {where})",
            "callback": f"_callback({call.writer.type_of(base)}, {role.name}, {where})",
            "number": f"_number({role.name}, {where})",
            "record": f"_record_value({role.type}, {role.name}, {where})",
        }.get(role.kind, "")
        call.take(role, role.type if role.kind == "record" else CALL_TYPES[role.kind], conversion)
    elif role.kind in ("void", "char"):
        add_memory(call, role, where)
    elif out:
        add_output(call, role, where)
    elif role.direction in ("filled", "stamped"):
        add_stamped(call, role, where)
    elif role.kind == "record":
        if role.count is None:
            call.take(role, f"{role.type} | Any", f"_record({role.type}, {role.name}, {where})")
        else:
            count = call.python_count(role)
            call.take(role, "_convert.Array", f"_records({role.type}, {role.name}, {count}, {where})")
            if role.direction == "inout":
                call.after.append(f"_copy_back({role.name}_, {role.name})")
    elif role.direction == "inout":
        # the number of elements that an array has room for may be left out where nothing comes after it
        is_count = any(re.search(rf"\b{role.parameter.name}\b", item.count or "") for item in call.roles)
        default = " = 0" if is_count and role is [item for item in call.roles if item.direction != "out"][-1] else ""
        conversion = f"_inout({call.writer.type_of(base + ' *')}, {role.name}, {where})"
        value = value_of(role, f"{role.name}_[0]")
        call.take(role, CALL_TYPES[role.kind], conversion, default)
        call.outputs.append((role.name, result_type(role), f"{value} if {role.name}_ else None"))
    else:
        ctype = call.writer.type_of(f"{base}[]")
        call.take(role, "_convert.Array", f"_array({ctype}, {role.name}, {call.python_count(role)}, {where})")


def add_stamped(call: Call, role: Role, where: str) -> None:
    """Add a structure that states its version; the function fills it, or only reads it."""
    filled = role.direction == "filled"
    later = call.roles[call.roles.index(role) + 1 :]
    default = " = None" if filled and all(item.direction in ("out", "filled") for item in later) else ""
    conversion = f"_stamped({role.type}, {role.name}, {where})"
    call.take(role, f"{role.type} | None" if filled else role.type, conversion, default, member="._cdata")
    if filled:
        call.outputs.append((role.name, role.type, f"{role.name}_"))


def add_memory(call: Call, role: Role, where: str) -> None:
    """Add a ``void *``, ``void **``, ``char *`` or ``char **``."""
    if role.direction == "target":
        call.take(role, "_convert.PointerLike", f"_target({role.name}, {where})")
    elif role.direction == "in" and role.depth == 2:
        if role.count == directions.KERNEL:
            conversion = f"_kernel_parameters({role.name}, {where})"
        else:
            count = "None" if role.count == directions.UNCOUNTED else call.python_count(role)
            conversion = f"_pointers({role.name}, {count}, {where})"
        call.take(role, "Any", conversion, member=".cdata")
    elif role.direction == "in":
        converter = "_text" if role.kind == "char" else "_buffer"
        call.take(role, CALL_TYPES[role.kind], f"{converter}({role.name}, {where})")
        if role.kind == "char":
            del call.checked[len(call.arguments) - 1]
    elif role.depth == 2:
        made = f"_new({call.writer.type_of(role.parameter.ctype)})"
        if role.kind == "char":
            call.give(role, "bytes", made, f"_string({role.name}_[0])")
        else:
            call.give(role, "int", made, f"_address({role.name}_[0])")
    else:
        made = f"_new_array({call.writer.type_of('char[]')}, {call.python_count(role)}, {where})"
        converter = "_raw" if (role.count or "").isdigit() else "_string"
        call.give(role, "bytes", made, f"{converter}({role.name}_)")


def add_output(call: Call, role: Role, where: str) -> None:
    """Add an output of a known type: one value, or an array."""
    base = role.parameter.ctype.replace("const ", "").rstrip(" *")
    cls = role.type if role.kind in ("record", "handle", "number", "enum") else "None"
    if role.count is None and role.kind == "record":
        made = f"_stamped({role.type}, None, {where})" if call.writer.library.versions else f"{role.type}()"
        call.give(role, role.type, made, f"{role.name}_", "._cdata")
    elif role.count is None:
        call.give(
            role, result_type(role), f"_new({call.writer.type_of(base + ' *')})", value_of(role, f"{role.name}_[0]")
        )
    elif role.depth == 2:
        made = f"_new({call.writer.type_of(role.parameter.ctype)})"
        found = f"_copies({cls}, {role.name}_[0], {call.python_count(role, True)})"
        call.give(role, f"list[{result_type(role)}]", made, found)
    else:
        made = f"_new_array({call.writer.type_of(base + '[]')}, {call.python_count(role)}, {where})"
        found = f"_elements({cls}, {role.name}_, {call.python_count(role, True)}, {role.name}_)"
        call.give(role, f"list[{result_type(role)}]", made, found)


def add_payload(call: Call, role: Role, where: str) -> None:
    """Add a ``void *`` whose type depends on an attribute, or an array of those."""
    api, table = call.writer.api, f"_P_{call.name}"
    selector = next(item for item in call.roles if item.kind == "enum")
    enumerators = {item.name for item in api.enums[selector.type].values.enumerators}
    types = {name: ctype for name, ctype in call.writer.comments.items() if name in enumerators}
    types |= directions.PAYLOADS[f"{call.name}.{role.parameter.name}"]
    entries = []
    for name, ctype in types.items():
        if name in enumerators:
            ctype, cls = directions.PAYLOAD_CLASSES.get(ctype) or (ctype, kind_of(api, ctype)[1])
            cls = "int" if cls in INTEGERS else cls
            entries.append(f'{selector.type}.{name}: ("{ctype}", {cls})')
    call.head.append(f"{table}: dict[int, tuple[str, type]] = {{{', '.join(entries)}}}")
    choice = f'"{call.name}: {selector.name}"'
    size = next((item.name for item in call.roles if item.name in ("dataSize", "dataSizes")), None)
    given = f", {size}" if size else ""
    if role.depth == 2:
        made = f"_payloads({table}, {selector.name}, {call.python_count(role)}, {choice}{given})"
        loaded = f"[item.load() for item in {role.name}_]"
        call.before.append(f"{role.name}__ = {made}")
        made = f"_pointers([item.cdata for item in {role.name}__], {call.python_count(role)}, {where})"
        call.give(role, "list[Any]", made, loaded.replace(f"{role.name}_]", f"{role.name}__]"), ".cdata")
    elif role.direction == "in":
        call.take(role, "Any", f"_Payload({table}, {selector.name}, {choice}{given})", member=".cdata")
        call.before.append(f"{role.name}_.store({role.name}, {where})")
    else:
        made = f"_Payload({table}, {selector.name}, {choice}{given})"
        call.give(role, "Any", made, f"{role.name}_.load()", ".cdata")


def result_type(role: Role) -> str:
    """Return the annotation of one value of ``role``."""
    return "int" if role.kind == "int" else role.type if role.kind != "float" else "float"


def value_of(role: Role, expression: str) -> str:
    """Return the Python value of a C value as an expression."""
    return {
        "enum": f"_member({role.type}, {expression})",
        "handle": f"{role.type}(_address({expression}))",
        "number": f"{role.type}({expression})",
    }.get(role.kind, expression)
