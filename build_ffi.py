# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The build of cuda-core-cffi: PEP 517 backend, and a command line.

    python build_ffi.py --report     what was read from the headers, generated and left out, and why
    python build_ffi.py --generate   write the generated files and stop

The backend generates the files, then lets setuptools do the rest. How headers become code is in
``generator/``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import pathlib
import platform
import shlex
import shutil
import sys
import sysconfig
from types import ModuleType

from setuptools import Extension
from setuptools.build_meta import build_editable as _build_editable
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from setuptools.build_meta import build_wheel as _build_wheel
from setuptools.command.bdist_wheel import bdist_wheel as _bdist_wheel
from setuptools.command.build_ext import build_ext as _build_ext

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = pathlib.Path(__file__).resolve().parent
PACKAGE = ROOT / "cuda_core_cffi"
INCLUDE = ROOT / "include"
SIMULATOR_SOURCE = ROOT / "simulator" / "src"
GENERATOR = ROOT / "generator"
# Python files and the cdef text go where the package imports them from; C stays out of the package.
GENERATED = PACKAGE / "_raw"
GENERATED_C = ROOT / "build" / "generated"

EXTENSION = "cuda_core_cffi._cuda"
CAPSULE = "cuda_core_cffi._capsule"
CALLS = "cuda_core_cffi._calls"
SIMULATOR = "cuda_core_cffi.simulator.libcuda_core_cffi_simulator"
OLDEST_PYTHON = (3, 11)
# PyPy and the free-threaded builds have no limited API
CPYTHON = platform.python_implementation() == "CPython"
LIMITED_API = CPYTHON and not sysconfig.get_config_var("Py_GIL_DISABLED")
COMPILE = ["-std=gnu11", "-O2", "-g0", "-fvisibility=hidden", "-pthread", "-Wall"]
COMPILE += ["-Werror=implicit-function-declaration"]  # a function that the limited API does not declare, say
OLD_CUDA = ["-Wno-deprecated-declarations"]  # of cuda.h, where old drivers need the old function
# The simulated driver: for size, except what ptx/ptx_lanes.h has compiled for speed, and without tables for unwinding.
SMALL = ["-Os", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
LINK = ["-Wl,-s", "-pthread"]
RUN_PATH = "-Wl,-rpath"  # what puts a folder of libraries into a binary
# Sanitizers to build with, as gcc's -fsanitize takes them; see tests/sanitize.sh.
SANITIZE = os.environ.get("CUDA_CORE_CFFI_SANITIZE")
if SANITIZE:
    COMPILE += ["-O1", "-g", "-fno-omit-frame-pointer", f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=undefined"]
    SMALL = ["-Os"]
    LINK = ["-pthread", f"-fsanitize={SANITIZE}"]
HEADERS = (  # of include/, each with what it needs
    "code/ccc_linker.h",
    "code/ccc_nvjitlink.h",
    "code/ccc_nvrtc.h",
    "code/ccc_nvvm.h",
    "driver/ccc_import.h",
    "driver/ccc_nvml.h",
    "graph/ccc_graph_edges.h",
    "graph/ccc_graph_memory.h",
    "graph/ccc_kinds.h",
    "handles/ccc_log.h",
    "launch/ccc_prepared.h",
    "memory/ccc_managed.h",
    "memory/ccc_mem_op.h",
    "memory/ccc_peer.h",
    "memory/ccc_tensor_map.h",
    "memory/ccc_view.h",
    "memory/ccc_virtual.h",
    "python/ccc_background.h",
    "python/ccc_calls_table.h",
    "python/ccc_generated_calls.h",
    "streams/ccc_callback.h",
    "streams/ccc_coredump.h",
    "streams/ccc_resources.h",
    "texture/ccc_array_copy.h",
)


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel (PEP 517)."""
    generate()
    return _build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Build an editable wheel (PEP 660)."""
    generate()
    return _build_editable(wheel_directory, config_settings, metadata_directory)


class bdist_wheel(_bdist_wheel):
    """Tag the wheel for every CPython from 3.11 on, where the interpreter has the limited API."""

    def finalize_options(self) -> None:
        if LIMITED_API:
            self.py_limited_api = "cp{}{}".format(*OLDEST_PYTHON)
        super().finalize_options()


class build_ext(_build_ext):
    """Compile the generated module, those in C and the simulated driver."""

    def finalize_options(self) -> None:
        self.distribution.ext_modules = extensions()
        super().finalize_options()

    def run(self) -> None:
        """Compile. What is compiled stays beside the sources as well, so that they can be imported where they are."""
        super().run()
        if not (self.inplace or SANITIZE):
            with contextlib.suppress(OSError):  # a source tree that cannot be written to
                self.copy_extensions_to_source()

    def build_extensions(self) -> None:
        """Link without the paths of libraries that an interpreter was linked with: none of its libraries is needed."""
        own = {flag for flag in shlex.split(sysconfig.get_config_var("LDSHARED") or "") if flag.startswith(RUN_PATH)}
        self.compiler.linker_so = [flag for flag in self.compiler.linker_so if flag not in own]
        super().build_extensions()

    def get_ext_filename(self, fullname: str) -> str:
        """Return the file of an extension; the simulator is a plain shared library, not a Python module."""
        if fullname.rpartition(".")[2] == SIMULATOR.rpartition(".")[2]:
            return fullname.replace(".", "/") + ".so"
        return super().get_ext_filename(fullname)


def extensions() -> list[Extension]:
    """Return what has to be compiled."""
    finder = load_generator("headers")
    # in this order: a wheel may have put a cuda.h beside the nvml.h
    nvidia = [str(finder.find_include_dir()), str(finder.find_nvml_include_dir())]
    limited = [("Py_LIMITED_API", "0x{:02X}{:02X}0000".format(*OLDEST_PYTHON))] if LIMITED_API else []

    def module(name: str, source: pathlib.Path, include: list[str], flags: list[str], **more: object) -> Extension:
        return Extension(
            name,
            [relative(source)],
            depends=sorted(map(relative, INCLUDE.rglob("*.h"))),
            include_dirs=[relative(INCLUDE), *include],
            extra_compile_args=[*COMPILE, *flags],
            extra_link_args=LINK,
            py_limited_api=LIMITED_API,
            **more,
        )

    generated = [relative(GENERATED_C), *nvidia]
    found = [
        module(EXTENSION, GENERATED_C / "_cuda.c", generated, OLD_CUDA, libraries=["dl"]),
        module(CAPSULE, INCLUDE / "python" / "_capsule.c", [], [], define_macros=limited),
        Extension(
            SIMULATOR,
            sorted(map(relative, SIMULATOR_SOURCE.rglob("*.c"))),
            depends=sorted(map(relative, SIMULATOR_SOURCE.rglob("*.h"))),
            include_dirs=[relative(SIMULATOR_SOURCE), *nvidia],
            # a kernel's arithmetic is as its PTX says
            extra_compile_args=[*COMPILE, *OLD_CUDA, *SMALL, "-ffp-contract=off"],
            # without -Bsymbolic its calls to its own functions would go to a real libcuda loaded before it
            extra_link_args=[*LINK, "-Wl,-Bsymbolic", "-Wl,-soname,libcuda_core_cffi_simulator.so"],
            libraries=["m", "dl"],
        ),
    ]
    if CPYTHON:  # elsewhere _core/python_calls.py does
        found.append(module(CALLS, INCLUDE / "python" / "_calls.c", generated, [], define_macros=limited))
    return found


def relative(path: pathlib.Path) -> str:
    """Return a path below the root as setuptools takes it."""
    return str(path.relative_to(ROOT))


def generate() -> None:
    """Write every generated file."""
    api = read_api()
    generator = load_generator("generate")
    GENERATED_C.mkdir(parents=True, exist_ok=True)
    (GENERATED_C / "ccc_table_rows.h").write_text(load_generator("table").write_table(api))
    nvml_api, nvml = read_nvml_api(), load_generator("nvml")
    (GENERATED_C / "ccc_nvml_rows.h").write_text(nvml.write_rows(nvml_api))
    cdef = load_generator("cdef").write_cdef(api) + nvml.write_cdef(nvml_api)
    helpers = load_generator("helpers")
    declared = helpers.write_cdef(INCLUDE, PACKAGE)
    storing, stores = ("", "") if CPYTHON else helpers.write_storing(declared)
    cdef += declared + storing
    (GENERATED / "types.cdef").write_text(load_generator("cdef").write_types(api))
    (GENERATED / "nvml_types.cdef").write_text(nvml.write_types(nvml_api))
    (GENERATED / "generated.py").write_text(load_generator("bindings").write_driver_module(api))
    (GENERATED / "nvml_generated.py").write_text(load_generator("nvml_bindings").write_nvml_module(nvml_api))
    (PACKAGE / "include").mkdir(exist_ok=True)
    shutil.copy(INCLUDE / "cuda_core_cffi.h", PACKAGE / "include")
    prelude = "#include <cuda.h>\n#include <nvml.h>\n" + "".join(f'#include "{name}"\n' for name in HEADERS)
    prelude += stores
    prelude += '#pragma GCC optimize("Os")\n'  # some 780 functions that convert arguments, and tables
    generator.write_extension(EXTENSION, cdef, prelude, GENERATED_C / "_cuda.c", LIMITED_API)


def read_api() -> object:
    """Return the classified header of the driver."""
    headers = load_generator("headers")
    return load_generator("cdef").classify(headers.read_header(headers.find_include_dir()))


def read_nvml_api() -> object:
    """Return the classified header of NVML."""
    headers = load_generator("headers")
    return load_generator("nvml").classify(headers.read_nvml_header(headers.find_nvml_include_dir()))


def load_generator(name: str) -> ModuleType:
    """Import a module of ``generator/``, under a name that no other package has."""
    package = "_cuda_core_cffi_generator"
    if package not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            package, GENERATOR / "__init__.py", submodule_search_locations=[str(GENERATOR)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[package] = module
        spec.loader.exec_module(module)
    return importlib.import_module(f"{package}.{name}")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--report", action="store_true", help="print what was read, generated and left out")
    action.add_argument("--generate", action="store_true", help="write the generated files")
    arguments = parser.parse_args()
    try:
        if arguments.report:
            print(load_generator("generate").report(read_api(), read_nvml_api()), end="")
        else:
            generate()
    except load_generator("headers").HeaderError as error:
        print(f"build_ffi.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
