# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The prototypes of NVRTC that are declared by hand, against the real header."""

from __future__ import annotations

import re

import pytest

from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

prototypes = pytest.importorskip("prototypes", reason="needs pycparser")

CREATED_IN_C = {"nvrtcCreateProgram", "nvrtcDestroyProgram"}  # Python does not call these


def parse(texts: list[str]) -> dict[str, str]:
    return prototypes.parse("\n".join(texts), "typedef int nvrtcResult; typedef int *nvrtcProgram;", "nvrtcResult")


@pytest.fixture(scope="module")
def header() -> dict[str, str]:
    """Return the prototypes of the installed ``nvrtc.h``."""
    text = prototypes.header_text(NVRTC_LIBRARY, "nvrtc.h")
    pattern = r"^(?:nvrtcResult|const char \*)\s*nvrtc\w+\([^;{}]*\);"
    callback = r"int \(\*callback\)\(void\*, void\*\)"
    found = [re.sub(callback, "void *callback", item) for item in re.findall(pattern, text, re.MULTILINE)]
    return parse([item for item in found if "nvrtcBundledHeadersInfo" not in item])


@pytest.fixture(scope="module")
def table() -> dict[str, str]:
    """Return the prototypes of ``ccc_nvrtc.h``."""
    return parse(prototypes.listed("code/ccc_nvrtc.h", "nvrtc"))


def test_the_table_has_functions(table):
    assert len(table) > 15


def test_the_table_agrees_with_the_real_header(table, header):
    assert table == {name: header[name] for name in table}


def test_the_cdef_agrees_with_the_table(table):
    wanted = {name: prototype for name, prototype in table.items() if name not in CREATED_IN_C}
    assert parse(prototypes.called("nvrtc")) == wanted
