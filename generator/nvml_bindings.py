# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Write the Python module that calls every NVML function directly.

Which pointer is an output and which an array is told by types and names; the comments of ``nvml.h`` are not needed.
What these do not tell is in the tables here. A test fails when an entry names what the header does not have.
"""

from __future__ import annotations

import re

from pycparser import c_ast

from .bindings import Library, Writer, evaluate, write_module
from .cdef import Function, Parameter
from .headers import HeaderError
from .nvml import NvmlApi, shape_of
from .nvml_since import SINCE
from .roles import Role, kind_of

# "in", "out" or "inout"; a structure also "filled": given or new, and returned, or "stamped": given
DIRECTIONS = {
    "nvmlDeviceDiscoverGpus.pciInfo": "stamped",
    "nvmlDeviceGetVgpuMetadata.bufferSize": "inout",
    "nvmlDeviceGetVgpuMetadata.pgpuMetadata": "in",  # followed by what it does not declare
    "nvmlDeviceModifyDrainState.pciInfo": "stamped",
    "nvmlDeviceQueryDrainState.pciInfo": "stamped",
    "nvmlDeviceRemoveGpu_v2.pciInfo": "stamped",
    "nvmlDeviceSetTemperatureThreshold.temp": "inout",
    "nvmlGetVgpuCompatibility.pgpuMetadata": "in",
    "nvmlGetVgpuCompatibility.vgpuMetadata": "in",
    "nvmlSystemEventSetFree.request": "stamped",
    "nvmlVgpuInstanceGetMetadata.bufferSize": "inout",
    "nvmlVgpuInstanceGetMetadata.vgpuMetadata": "in",  # likewise
}
# The length of an array, as an expression over parameters and constants
COUNTS = {
    "nvmlDeviceGetGspFirmwareVersion.version": "NVML_GSP_FIRMWARE_VERSION_BUF_SIZE",
    "nvmlDeviceGetSupportedPerformanceStates.pstates": "size // 4",
}
SETTER = re.compile(
    r"nvml(Device|System|GpuInstance)?(Set|Clear|Lock|PowerSmoothing|WorkloadPowerProfile(Set|Clear|Update)|Register)"
)
COUNT = re.compile(r"(\w*Count|count)$")
LENGTH = re.compile(r"(length|size|bufferSize|\w+SetSize|valuesCount)$")
STATISTICS = re.compile(r"\w+Stats$")  # what they count is no array


def write_nvml_module(api: NvmlApi) -> str:
    """Return the text of the module that holds all of ``api``.

    Raises
    ------
    HeaderError
        If a parameter or a value cannot be expressed.
    """
    roles = find_roles(api)
    numbers = {function.symbol: index for index, function in enumerate(api.functions)}
    shapes = {item.symbol: shape_of(api, [p.ctype for p in item.parameters]) or "0" for item in api.functions}

    def call(name: str, arguments: str) -> tuple[str, str]:
        through = f"ccc_nvml_call_{shapes[name]}"
        return f"_lib.{through}({', '.join(filter(None, (str(numbers[name]), arguments)))})", through

    library = Library(
        title="NVML, the NVIDIA Management Library",
        source=f"nvml.h, version {api.header.version // 1000}",
        status="nvmlReturn_t",
        success="NVML_SUCCESS",
        roles=roles,
        call=call,
        kept=lambda name, role: role.direction == "inout",  # how many there are
        typed=True,
        versions=api.versions,
    )
    others = "".join(f"{name} = {target}\n" for name, target in aliases(api).items())
    return f"{write_module(Writer(api, library), write_values)}\n\n{others}"


def write_values(writer: Writer) -> None:
    """Write the macros that have a value, the other names of types and functions, and the age of functions."""
    api = writer.api
    assert isinstance(api, NvmlApi)
    writer.lines += ["", ""]
    functions = {function.symbol for function in api.functions}
    for name, target in api.names.items():
        if target not in functions:
            writer.alias(name, kind_of(api, target)[1])
    for name in api.versions:
        if name in api.records:
            writer.public.append(name.removesuffix("_t"))
            writer.lines.append(f"{name.removesuffix('_t')} = _types.struct_version({name})")
    for name, node in api.values.items():
        writer.public.append(name)
        writer.values[name] = value_of(api, node, writer.values)
        writer.lines.append(f"{name} = {writer.values[name]}")
    writer.lines += ["", "", "# The CUDA version that a function came with, where that is later than 12.0"]
    ages = {function: version for version, names in SINCE.items() for function in names if function in functions}
    writer.lines.append(f"_SINCE: dict[str, str] = {ages!r}")
    writer.lines.append(f"_NAMES: dict[str, str] = {aliases(api)!r}")
    writer.public += aliases(api)


def aliases(api: NvmlApi) -> dict[str, str]:
    """Return the macros that stand for a function, with its name."""
    functions = {function.symbol for function in api.functions}
    return {name: target for name, target in api.names.items() if target in functions}


def value_of(api: NvmlApi, node: c_ast.Node, values: dict[str, int]) -> int:
    """Return the value of a macro, which may name others, also later ones."""
    for name in names_in(node):
        if name not in values:
            if name not in api.values:
                raise HeaderError(f"nvml.h: a macro names {name}, which has no value")
            values[name] = value_of(api, api.values[name], values)
    return evaluate(node, values)


def names_in(node: c_ast.Node) -> set[str]:
    """Return the names in an expression."""
    if isinstance(node, c_ast.ID):
        return {node.name}
    return {name for _, child in node.children() for name in names_in(child)}


def find_roles(api: NvmlApi) -> dict[str, tuple[Role, ...]]:
    """Return the roles of the parameters of each function."""
    return {function.symbol: roles_of(api, function) for function in api.functions}


def roles_of(api: NvmlApi, function: Function) -> tuple[Role, ...]:
    """Return the role of each parameter of a function."""
    count = count_of(function)
    roles: list[Role] = []
    # whether a structure may be left out depends on what comes after it
    for parameter in reversed(function.parameters):
        kind, type_name = kind_of(api, parameter.ctype.replace("const ", "").rstrip(" *"))
        depth = parameter.ctype.count("*")
        key = f"{function.symbol}.{parameter.name}"
        direction = DIRECTIONS.get(key)
        length = COUNTS.get(key) or (None if direction else length_of(function, parameter, kind, count))
        if direction is None and not depth:
            direction = "in"
        elif direction is None and parameter.ctype.startswith("const "):
            direction = "stamped" if kind == "record" else "in"
        elif direction is None and parameter.name == count:
            direction = "inout"
        elif direction is None and kind == "record":
            direction = direction_of_record(function, length, roles)
        roles.insert(0, Role(parameter.name, parameter, direction or "out", kind, type_name, depth, length))
    return tuple(roles)


def direction_of_record(function: Function, length: str | None, later: list[Role]) -> str:
    """Return the direction of a structure that is not const, or of an array of them."""
    if length:
        return "inout" if "FieldValues" in function.symbol else "out"
    if SETTER.match(function.symbol):
        return "stamped"
    # a structure that comes before an input cannot be left out
    return "filled" if all(role.direction in ("out", "filled") for role in later) else "out"


def count_of(function: Function) -> str | None:
    """Return the parameter that is the number of elements: there is room for so many, and there are so many."""
    if STATISTICS.match(function.symbol):
        return None
    names = [item.name for item in function.parameters if "*" in item.ctype and not item.ctype.startswith("const ")]
    found = next((name for name in names if COUNT.match(name) or name in ("size", "bufferSize", "length")), None)
    return found if len(names) > 1 else None


def length_of(function: Function, parameter: Parameter, kind: str, count: str | None) -> str | None:
    """Return the length of an array; None for anything else."""
    if "*" not in parameter.ctype or parameter.ctype.startswith("const ") or parameter.name == count or kind == "enum":
        return None
    given = [item.name for item in function.parameters if "*" not in item.ctype and LENGTH.match(item.name)]
    if kind != "char" and count is None and not any(name.endswith(("SetSize", "valuesCount")) for name in given):
        return None
    return count or next(iter(given), None)


def stale_entries(api: NvmlApi) -> list[str]:
    """Return the entries of the tables that name what the header does not have."""
    known = {f"{function.symbol}.{item.name}" for function in api.functions for item in function.parameters}
    return sorted({*DIRECTIONS, *COUNTS} - known)
