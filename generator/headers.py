# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Find, preprocess and parse the headers of the CUDA driver and of NVML.

The result is a :class:`Header`: the declarations that the header itself makes (as a pycparser tree) and its object-like
macros, with nothing interpreted yet.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import pathlib
import re
import shlex
import subprocess
import sysconfig

from pycparser import c_ast, c_parser

# What pycparser must know of the standard headers; neither header uses another type of theirs.
STANDARD_TYPES = """
typedef unsigned long size_t; typedef int wchar_t;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t;
typedef unsigned int uint32_t; typedef unsigned long uint64_t;
"""

TOOLKIT_VARIABLES = ("CUDA_PATH", "CUDA_HOME")

LINE_MARKER = re.compile(r'^# \d+ "([^"]*)"')
DEFINE = re.compile(r"^#define (\w+)(\([^)]*\))?(?: (.*))?$")
# pycparser knows _Alignas only in some places, and cffi not at all; the compiler keeps the alignment.
ALIGNAS = re.compile(r"_Alignas\([^)]*\)")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)")


class HeaderError(Exception):
    """A header is missing, or holds something the generator cannot express."""


@dataclasses.dataclass
class Header:
    """What one ``cuda.h`` and the ``cudaTypedefs.h`` beside it declare, or one ``nvml.h``.

    Attributes
    ----------
    include_dir : pathlib.Path
        The folder that it was read from.
    name : str
        ``"cuda.h"`` or ``"nvml.h"``.
    version : int
        ``CUDA_VERSION``, for example 13000; of NVML the major version times 1000.
    macros : dict of str to str
        Object-like macros of the header, unexpanded.
    function_macros : list of str
        Names of its function-like macros.
    declarations : list of pycparser.c_ast.Node
        The declarations of the header in order.
    aligned : set of str
        Typedef names of the structures that carry an explicit alignment.
    typedefs : list of pycparser.c_ast.Typedef
        The ``PFN_*`` function-pointer types of ``cudaTypedefs.h``.
    typedef_macros : dict of str to str
        The ``PFN_*`` macros of ``cudaTypedefs.h``: default version of each function.
    """

    include_dir: pathlib.Path
    name: str
    version: int
    macros: dict[str, str]
    function_macros: list[str]
    declarations: list[c_ast.Node]
    aligned: set[str]
    typedefs: list[c_ast.Typedef] = dataclasses.field(default_factory=list)
    typedef_macros: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the header as it is, comments and all."""
        return (self.include_dir / self.name).read_text(encoding="utf-8", errors="replace")


def find_include_dir() -> pathlib.Path:
    """Return the folder of ``cuda.h``: of ``CUDA_PATH`` or ``CUDA_HOME`` if set, else of the header wheel.

    Raises
    ------
    HeaderError
        If a variable is set and its folder has no ``cuda.h``, or if no header is found at all.
    """
    for variable in TOOLKIT_VARIABLES:
        if os.environ.get(variable):
            found = find_in_toolkit(variable, "cuda.h")
            if found is None:
                raise HeaderError(
                    f"{variable}={os.environ[variable]} is set, but neither it nor its include/ has a cuda.h"
                )
            return found
    return find_in_wheels("cuda.h", "cuda_runtime", "nvidia-cuda-runtime")


def find_nvml_include_dir() -> pathlib.Path:
    """Return the folder of ``nvml.h``: of ``CUDA_PATH`` or ``CUDA_HOME`` if it is there, else of the header wheel.

    Raises
    ------
    HeaderError
        If no header is found.
    """
    for variable in TOOLKIT_VARIABLES:
        found = find_in_toolkit(variable, "nvml.h")
        if found is not None:
            return found
    return find_in_wheels("nvml.h", "nvml_dev", "nvidia-nvml-dev")


def find_in_toolkit(variable: str, name: str) -> pathlib.Path | None:
    """Return the folder of a header in the toolkit that an environment variable names, or None."""
    root = os.environ.get(variable)
    folders = (pathlib.Path(root, "include"), pathlib.Path(root)) if root else ()
    return next((folder for folder in folders if (folder / name).is_file()), None)


def find_in_wheels(name: str, old_folder: str, wheel: str) -> pathlib.Path:
    """Return the folder of a header that came in a wheel of PyPI; that of CUDA 12 has a folder of its own.

    Raises
    ------
    HeaderError
        If there is none.
    """
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for folder in (*sorted(pathlib.Path(root).glob("cu1*/include")), pathlib.Path(root, old_folder, "include")):
            if (folder / name).is_file():
                return folder
    raise HeaderError(
        f"no {name} found: set CUDA_PATH to a CUDA toolkit, or install the wheel {wheel} "
        "(pip does so by itself when it builds the package in isolation)"
    )


def read_header(include_dir: pathlib.Path) -> Header:
    """Read ``cuda.h`` and ``cudaTypedefs.h`` from ``include_dir``.

    Raises
    ------
    HeaderError
        If the preprocessor fails or the text cannot be parsed.
    """
    header, source = read_one(include_dir, "cuda.h", "CUDA_VERSION")
    typedef_text = preprocess(include_dir, "cudaTypedefs.h")
    typedef_source, typedef_defines = slice_header(typedef_text, "cudaTypedefs.h")
    typedefs = parse(source + typedef_source, "cudaTypedefs.h")[len(header.declarations) :]
    header.typedefs = [node for node in typedefs if isinstance(node, c_ast.Typedef)]
    header.typedef_macros = {name: body for name, parameters, body in typedef_defines if not parameters}
    return header


def read_nvml_header(include_dir: pathlib.Path) -> Header:
    """Read ``nvml.h`` from ``include_dir``.

    Raises
    ------
    HeaderError
        If the preprocessor fails or the text cannot be parsed.
    """
    header, _ = read_one(include_dir, "nvml.h", "NVML_API_VERSION")
    header.version *= 1000
    return header


def read_one(include_dir: pathlib.Path, name: str, version: str) -> tuple[Header, str]:
    """Read one header, of whose version a macro tells. Return its code as well."""
    source, defines = slice_header(preprocess(include_dir, name), name)
    macros = {name: body for name, parameters, body in defines if not parameters}
    header = Header(
        include_dir=include_dir,
        name=name,
        version=int(macros[version]),
        macros=macros,
        function_macros=[name for name, parameters, _ in defines if parameters],
        declarations=parse(source, name),
        aligned=set(re.findall(r"_Alignas\([^)]*\)[^}]*\}\s*(\w+)\s*;", source)),
    )
    return header, source


def preprocess(include_dir: pathlib.Path, name: str) -> str:
    """Return header ``name`` after the C preprocessor, macro definitions kept."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    command = [compiler[0], "-E", "-dD", f"-I{include_dir}", "-include", str(include_dir / name), "-xc", "/dev/null"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as exc:
        raise HeaderError(f"the C compiler {compiler[0]!r} cannot be run: {exc}") from exc
    if done.returncode:
        raise HeaderError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def slice_header(text: str, name: str) -> tuple[str, list[tuple[str, str | None, str]]]:
    """Return the code that header ``name`` itself holds, and its macros as (name, parameters, body)."""
    code, defines, ours = [], [], False
    for line in text.splitlines():
        marker = LINE_MARKER.match(line)
        if marker:
            ours = os.path.basename(marker[1]) == name
        elif ours and line.startswith("#define "):
            found = DEFINE.match(line)
            if found is None:
                raise HeaderError(f"{name}: cannot read {line!r}")
            defines.append((found[1], found[2], (found[3] or "").strip()))
        elif ours and line.startswith("#undef "):
            defines = [define for define in defines if define[0] != line.split()[1]]
        elif ours and not line.startswith("#"):
            code.append(line)
    if not code:
        raise HeaderError(f"{name} declares nothing")
    return "\n".join(code) + "\n", defines


def parse(source: str, name: str) -> list[c_ast.Node]:
    """Return the declarations in ``source``, without those of the standard headers."""
    source = ATTRIBUTE.sub("", ALIGNAS.sub("", source))
    try:
        tree = c_parser.CParser().parse(STANDARD_TYPES + source, name)
    except c_parser.ParseError as exc:
        raise HeaderError(f"{name}: {exc}") from exc
    return list(tree.ext[STANDARD_TYPES.count("typedef") :])
