# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Put the generated pieces together: the extension's C source, and the report."""

from __future__ import annotations

import pathlib
import re
import warnings
from collections.abc import Iterable

import cffi

from . import bindings, table
from .cdef import Api
from .nvml import NvmlApi

# The versions whose C source is known, which this module changes. PyPy 3.11 brings 1.18.
TRIED_CFFI = ((1, 18), (2, 0), (2, 1))

# Around every call CFFI keeps errno, for libraries that report in it. Neither the driver nor our C does, and it takes a
# tenth of the shortest call.
WITHOUT_ERRNO = """\
#undef _cffi_restore_errno
#undef _cffi_save_errno
#define _cffi_restore_errno() ((void)0)
#define _cffi_save_errno() ((void)0)
"""

# Around every call CFFI also gives the GIL up, so that other threads run on, and no function of the driver that waits
# for a callback can wait for one that wants the GIL. That takes half of the shortest call. These need not: they read
# memory, take no lock, wait for nothing and call nothing back. What calls the driver is not among them, with one
# exception: ccc_device_now, whose two calls read what the calling thread has current.
KEEPING_THE_GIL = (
    "ccc_attend",
    "ccc_handle_device",
    "ccc_device_now",
    "ccc_driver_per_thread",
    "ccc_driver_used",
    "ccc_driver_version",
    "ccc_flags",
    "ccc_handle_value",
    "ccc_identity",
    "ccc_is_open",
    "ccc_last_call",
    "ccc_last_status",
    "ccc_live_count",
    "ccc_nvml_is_ready",
    "ccc_nvml_set_ready",
    "ccc_parent",
    "ccc_unattend",
    "ccc_releases_pending",
)


# CFFI writes for each function, for each of its pointers and for each constant what is needed once.
SHARED = """\
#ifndef PYPY_VERSION
/* Convert an argument that is a pointer. What has to be copied for it goes to memory that is freed after the call. */
static __attribute__((noinline)) int ccc_to_c_pointer(
    struct _cffi_ctypedescr *type, PyObject *argument, char **value, struct _cffi_freeme_s **copies)
{
    Py_ssize_t size = _cffi_prepare_pointer_call_argument(type, argument, value);
    if (size == 0)
        return 0;
    *value = NULL;
    return _cffi_convert_array_argument(type, argument, value, size, copies);
}

static __attribute__((noinline)) void ccc_free_copies(struct _cffi_freeme_s **copies)
{
    if (*copies)
        _cffi_free_array_arguments(*copies);
}
#endif

/* Tell the value of a constant, which is in its row of the table, and whether it is at most 0. */
static int ccc_tell_positive(struct _cffi_getconst_s *constant)
{
    constant->value = (uintptr_t)constant->ctx->globals[constant->gindex].size_or_direct_fn;
    return 0;
}

static int ccc_tell_other(struct _cffi_getconst_s *constant)
{
    ccc_tell_positive(constant);
    return 1;
}

/* The row of a constant. `| 0` refuses what is no integer, as CFFI does. */
#define CCC_TELLER(value) ((void *)((value) > 0 ? ccc_tell_positive : ccc_tell_other))
#define CCC_VALUE(value) ((void *)(uintptr_t)((value) | 0))

"""

# The functions through which Python calls the driver and this package: some 780, which spend their time in conversions
# and in what they call. The compiler makes cold ones small, and puts them apart from what they call. CPython does its
# most frequent calls without them (_calls.c), and PyPy has other ones.
FOR_PYTHON = re.compile(r"^static PyObject \*\n(?=_cffi_f_\w+\(PyObject \*self)", re.MULTILINE)
COLD = "static __attribute__((cold)) PyObject *\n"

# The conversion of a pointer.
POINTER = re.compile(
    r"^  datasize = _cffi_prepare_pointer_call_argument\(\n"
    r"      (?P<type>_cffi_type\(\d+\)), (?P<argument>\w+), (?P<value>\(char \*\*\)&\w+)\);\n"
    r"  if \(datasize != 0\) \{\n"
    r".* \? \(.*\)alloca\(\(size_t\)datasize\) : NULL;\n"
    r"    if \(_cffi_convert_array_argument\((?P=type), (?P=argument), (?P=value),\n"
    r"            datasize, &large_args_free\) < 0\)\n"
    r"      return NULL;\n"
    r"  \}\n",
    re.MULTILINE,
)
SHARED_POINTER = r"""  if (ccc_to_c_pointer(\g<type>, \g<argument>, \g<value>, &large_args_free) < 0)
    return NULL;
"""
# What CFFI declares for it, and how it frees copies: not where another argument is refused. A declaration with a
# cleanup does it at every return.
SIZE_DECLARED = "  Py_ssize_t datasize;\n"
COPIES_DECLARED = "  struct _cffi_freeme_s *large_args_free = NULL;\n"
COPIES_DECLARED_WITH_CLEANUP = (
    "  __attribute__((cleanup(ccc_free_copies))) struct _cffi_freeme_s *large_args_free = NULL;\n"
)
COPIES_FREED = "  if (large_args_free != NULL) _cffi_free_array_arguments(large_args_free);\n"

# A function in C that calls another one with its own arguments, and stands for it in the table.
DIRECT = re.compile(r"^static .*\b_cffi_d_(?P<name>\w+)\(.*\)\n\{\n  (?:return )?(?P=name)\(.*\);\n\}\n", re.MULTILINE)

# A function that tells a constant, and its row of the table.
CONSTANT = re.compile(
    r"^static int _cffi_const_(?P<name>\w+)\(unsigned long long \*o\)\n\{\n"
    r"  int n = \((?P=name)\) <= 0;\n"
    r"  \*o = \(unsigned long long\)\(\((?P=name)\) \| 0\);.*\n"
    r"  return n;\n\}\n",
    re.MULTILINE,
)
CONSTANT_ROW = re.compile(r"\(void \*\)_cffi_const_(?P<name>\w+), (?P<type>_CFFI_OP\(\w+, -1\)), \(void \*\)0 \}")
SHARED_CONSTANT_ROW = r"CCC_TELLER(\g<name>), \g<type>, CCC_VALUE(\g<name>) }"

# What is left over only where CFFI writes it in another way than it is known to.
LEFT_OVER = re.compile(
    r"^static PyObject \*\n_cffi_f_\w+|\balloca\(\(.*|\b_cffi_d_\w+|\b_cffi_const_\w+\(unsigned.*", re.MULTILINE
)


def write_extension(
    name: str,
    cdef: str,
    prelude: str,
    path: pathlib.Path,
    limited_api: bool,
    keeping: Iterable[str] = KEEPING_THE_GIL,
) -> None:
    """Write the C source of the CFFI module ``name`` to ``path``; some functions are called ``keeping`` the GIL."""
    if cffi.__version_info__[:2] not in TRIED_CFFI:
        warnings.warn(
            f"the build changes the C source that CFFI writes, and was not tried with CFFI {cffi.__version__}: "
            f"run the tests, and add it to TRIED_CFFI in {pathlib.Path(__file__).name}",
            stacklevel=2,
        )
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    ffi.set_source(name, WITHOUT_ERRNO + SHARED + prelude, py_limited_api=limited_api)
    ffi.emit_c_code(str(path))
    path.write_text(make_small(keep_gil(path.read_text(), keeping)))


def keep_gil(source: str, functions: Iterable[str]) -> str:
    """Return CFFI's C source with the GIL kept by those functions.

    Raises
    ------
    ValueError
        If a function is not called as CFFI is known to write it.
    """
    for function in functions:
        start = source.find(f"\n_cffi_f_{function}(PyObject *self")
        end = source.find("\n}\n", start)
        wrapper = source[start:end]
        kept = wrapper.replace("  Py_BEGIN_ALLOW_THREADS\n", "").replace("  Py_END_ALLOW_THREADS\n", "")
        if start < 0 or len(wrapper) - len(kept) != len("  Py_BEGIN_ALLOW_THREADS\n  Py_END_ALLOW_THREADS\n"):
            raise ValueError(f"the C source of CFFI does not call {function} between Py_BEGIN and Py_END_ALLOW_THREADS")
        source = source[:start] + kept + source[end:]
    return source


def make_small(source: str) -> str:
    """Return CFFI's C source without what it has many times over, and its functions for Python compiled for size.

    Raises
    ------
    ValueError
        If CFFI does not write it as it is known to.
    """
    small = FOR_PYTHON.sub(COLD, source)
    small = POINTER.sub(SHARED_POINTER, small)
    small = small.replace(SIZE_DECLARED, "").replace(COPIES_FREED, "")
    small = small.replace(COPIES_DECLARED, COPIES_DECLARED_WITH_CLEANUP)
    direct = {match["name"] for match in DIRECT.finditer(small)}
    small = DIRECT.sub("", small)
    small = re.sub(r"\b_cffi_d_(\w+)", lambda use: use[1] if use[1] in direct else use[0], small)
    small = CONSTANT_ROW.sub(SHARED_CONSTANT_ROW, CONSTANT.sub("", small))
    if left := LEFT_OVER.search(small):
        raise ValueError(f"the C source of CFFI has what is not as known: {left[0]}")
    return small


def report(api: Api, nvml_api: NvmlApi) -> str:
    """Return, as text, what was read, what was generated from it, and what was left out and why."""
    rows = table.make_rows(api)
    unmapped = bindings.report(api)
    enumerators = sum(len(enum.values.enumerators) for enum in api.enums.values())
    mapped = len(api.functions) - len(unmapped)
    lines = [
        f"read       {api.header.include_dir / 'cuda.h'} (CUDA {api.header.version})",
        f"functions  {len(api.functions)}, all in the driver table; {mapped} in cuda_core_cffi.driver "
        f"({100 * mapped / len(api.functions):.1f} %)",
        f"enums      {len(api.enums)} with {enumerators} members",
        f"records    {len(api.records)} structures and unions",
        f"aliases    {len(api.aliases)} other type names",
        f"constants  {len(api.constants)}",
        "",
        "Looked up under more than one version (the newest that the driver has is taken):",
        *(f"  {row.function.name}: {', '.join(map(str, row.versions))}" for row in rows if len(row.versions) > 1),
        "",
        "Left out of cuda_core_cffi.driver (lib has them):",
        *(f"  {name}: {reason}" for name, reason in sorted(unmapped.items())),
        "",
        "Left out everywhere:",
        *(f"  {name}: {reason}" for name, reason in sorted(api.left_out.items())),
        "",
        f"read       {nvml_api.header.include_dir / nvml_api.header.name} (version {nvml_api.header.version // 1000})",
        f"functions  {len(nvml_api.functions)}, all in cuda_core_cffi.nvml",
        f"enums      {len(nvml_api.enums)}",
        f"records    {len(nvml_api.records)} structures and unions",
        f"constants  {len(nvml_api.values) + len(nvml_api.versions)}",
        "",
        "Left out everywhere:",
        *(f"  {name}: {reason}" for name, reason in sorted(nvml_api.left_out.items())),
    ]
    return "\n".join(lines) + "\n"
