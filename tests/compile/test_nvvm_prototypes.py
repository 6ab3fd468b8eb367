# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The prototypes of libNVVM that are declared by hand, against the real header."""

from __future__ import annotations

import re

import pytest

from cuda_core_cffi._core.libraries import NVVM_LIBRARY

prototypes = pytest.importorskip("prototypes", reason="needs pycparser")

CREATED_IN_C = {"nvvmCreateProgram", "nvvmDestroyProgram"}  # Python does not call these
TYPES = "typedef int nvvmResult; typedef int *nvvmProgram;"


def parse(texts: list[str]) -> dict[str, str]:
    return prototypes.parse("\n".join(texts), TYPES, "nvvmResult")


@pytest.fixture(scope="module")
def header() -> dict[str, str]:
    """Return the prototypes of the installed ``nvvm.h``."""
    text = prototypes.header_text(NVVM_LIBRARY, "nvvm.h")
    return parse(re.findall(r"^(?:nvvmResult|const char \*)\s*nvvm\w+\([^;{}]*\);", text, re.MULTILINE))


@pytest.fixture(scope="module")
def table() -> dict[str, str]:
    """Return the prototypes of ``ccc_nvvm.h``."""
    return parse(prototypes.listed("code/ccc_nvvm.h", "nvvm"))


def test_the_table_has_functions(table):
    assert len(table) > 10


def test_the_table_agrees_with_the_real_header(table, header):
    newer = {"nvvmLLVMVersion"} - set(header)
    assert {name: prototype for name, prototype in table.items() if name not in newer} == {
        name: header[name] for name in set(table) - newer
    }


def test_the_cdef_agrees_with_the_table(table):
    wanted = {name: prototype for name, prototype in table.items() if name not in CREATED_IN_C}
    assert parse(prototypes.called("nvvm")) == wanted
