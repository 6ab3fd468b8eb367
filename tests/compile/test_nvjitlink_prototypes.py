# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The prototypes and enumerations of nvJitLink that are declared by hand, against the real header."""

from __future__ import annotations

import re

import pytest

from cuda_core_cffi import ffi
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY

prototypes = pytest.importorskip("prototypes", reason="needs pycparser")

CALLED_IN_C = {"nvJitLinkCreate", "nvJitLinkDestroy", "nvJitLinkAddData"}
NEW = {"nvJitLinkGetLinkedLTOIRSize", "nvJitLinkGetLinkedLTOIR"}  # since 13.3
TYPES = (
    "typedef int nvJitLinkResult; typedef int *nvJitLinkHandle; typedef int nvJitLinkInputType; typedef int uint32_t;"
)


def parse(texts: list[str]) -> dict[str, str]:
    found = prototypes.parse("\n".join(texts), TYPES, "nvJitLinkResult")
    return {name: prototype.replace("nvJitLinkInputType", "int") for name, prototype in found.items()}


def enumeration(text: str, name: str) -> dict[str, int]:
    """Return the values of an enumeration by name."""
    body = re.search(rf"typedef enum \{{([^}}]*)\}} {name};", text).group(1)
    values: dict[str, int] = {}
    for item in filter(None, map(str.strip, body.split(","))):
        key, _, value = item.partition("=")
        values[key.strip()] = int(value) if value else max(values.values()) + 1
    return values


@pytest.fixture(scope="module")
def text() -> str:
    """Return the installed ``nvJitLink.h``."""
    return prototypes.header_text(NVJITLINK_LIBRARY, "nvJitLink.h")


@pytest.fixture(scope="module")
def table() -> dict[str, str]:
    """Return the prototypes of ``ccc_nvjitlink.h``."""
    return parse(prototypes.listed("code/ccc_nvjitlink.h", "nvJitLink"))


def test_the_table_has_functions(table):
    assert len(table) > 10


def test_the_table_agrees_with_the_real_header(table, text):
    # those without a version in their names, which are inlined; newer headers declare them as external besides
    found = re.findall(
        r"^(?:extern|static inline) (nvJitLinkResult nvJitLink\w+\s*\([^;{}]*\))\s*[;{]", text, re.MULTILINE
    )
    header = parse([f"{prototype};" for prototype in found])
    assert set(table) - set(header) <= NEW
    assert {name: table[name] for name in table if name in header} == {
        name: header[name] for name in header if name in table
    }


def test_the_cdef_agrees_with_the_table(table):
    wanted = {name: prototype for name, prototype in table.items() if name not in CALLED_IN_C}
    assert parse(prototypes.called("nvJitLink")) == wanted


def test_every_result_of_the_real_header_has_its_name_and_number(text):
    ours = {name: value for value, name in ffi.typeof("ccc_nvjitlink_result").elements.items()}
    header = enumeration(text, "nvJitLinkResult")
    assert header == {name: ours[name] for name in header}  # an older header has fewer


def test_every_kind_of_input_has_its_number(text):
    ours = {name: value for value, name in ffi.typeof("ccc_nvjitlink_input").elements.items()}
    header = enumeration(text, "nvJitLinkInputType")
    assert ours == {name: header[name] for name in ours}
