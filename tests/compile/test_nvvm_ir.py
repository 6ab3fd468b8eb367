# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What is looked at in NVVM IR before libNVVM sees it. No test here needs libNVVM."""

from __future__ import annotations

import struct

import pytest
from nvvm_modules import ANSWER, DOUBLING, LAYOUT, TWICE, module

from cuda_core_cffi._compile.nvvm_ir import check_module, is_bitcode

WRAPPER_MAGIC = 0x0B17C0DE


def wrapped(bitcode: bytes) -> bytes:
    """Return bitcode in the wrapper that some tools put around it."""
    return struct.pack("<5I", WRAPPER_MAGIC, 0, 20, len(bitcode), 7) + bitcode


@pytest.mark.parametrize("code", [DOUBLING, DOUBLING.encode(), ANSWER, bytearray(ANSWER), wrapped(ANSWER)])
def test_a_whole_module_becomes_bytes(code):
    source = check_module("code", code)
    assert type(source) is bytes
    assert source == (code.encode() if isinstance(code, str) else bytes(code))


def test_bitcode_is_told_from_text():
    assert [is_bitcode(source) for source in (ANSWER, wrapped(ANSWER), DOUBLING.encode(), b"")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("length", range(4, len(ANSWER), 52))
@pytest.mark.parametrize("wrap", [bytes, wrapped])
def test_bitcode_that_was_cut_off_is_refused(length, wrap):
    with pytest.raises(ValueError, match=r"code is bitcode that was cut off|code is no NVVM IR: it has no target"):
        check_module("code", wrap(ANSWER)[:length])


def test_zeros_after_bitcode_do_no_harm():
    assert check_module("code", ANSWER + bytes(12))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ANSWER + b"\4\0\0\0", "no block begins at byte"),
        (wrapped(ANSWER)[:19], "cut off: 19 bytes are less than its wrapper"),
        (wrapped(ANSWER)[:-1], "cut off: .* bytes became"),
        (wrapped(b"hello")[: 20 + 5], "damaged bitcode: there is none in its wrapper"),
        (b"BC\xc0\xde", "has no target datalayout"),
    ],
)
def test_damaged_bitcode_is_refused(code, said):
    with pytest.raises(ValueError, match=f"the source is .*{said}"):
        check_module("the source", code)


@pytest.mark.parametrize(
    "code",
    [
        "hello",
        TWICE,
        f'; target datalayout = "{LAYOUT}"\n{TWICE}',
        "target triple = \"nvptx64-nvidia-cuda\"\ntarget layout = 'e'",
        b"\xff\xfe\x00",
    ],
)
def test_text_without_a_data_layout_is_refused_with_one_to_use(code):
    with pytest.raises(ValueError, match=f"code is no NVVM IR: it has no target datalayout, such as '{LAYOUT}'"):
        check_module("code", code)


@pytest.mark.parametrize(
    "line",
    [
        f'target datalayout = "{LAYOUT}"',
        f'  target\tdatalayout="{LAYOUT}"  ; the layout',
        f'source_filename = "a;b" target datalayout = "{LAYOUT}"',
    ],
)
def test_a_data_layout_is_found_where_llvm_finds_it(line):
    assert check_module("code", line)


@pytest.mark.parametrize(
    "layout",
    [
        LAYOUT,
        "e-i64:64-i128:128-v16:16-v32:32-n16:32:64",
        "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64",
        "E-p:64:64:64:32-p3:32:32-a:0:64-a:8:8-m:e-S128-n32-A5-P0-G1-ni:1:2-Fi8-f128:128:256",
    ],
)
def test_layouts_that_llvm_reads_are_let_through(layout):
    assert check_module("code", module(TWICE, layout=layout))


@pytest.mark.parametrize(
    "part",
    [
        *("", "zz", "i64", "f:64:", "n", "n32:", "m:", "S"),
        *("p:64", "p:63:64:64", "p:64:64:63", "p:64:64:32", "p:0:64", "p:64:64:64:64:64"),
        *("i64:60", "i64:24", "i64:64:32", "i64:0", "i64:65536", "i32:99999999999", "v16:16:16:16"),
    ],
)
def test_a_layout_that_ends_the_process_is_refused_with_the_part_that_is_wrong(part):
    with pytest.raises(ValueError, match=f"'{part}' in its target datalayout 'e-{part}-n32' cannot be read"):
        check_module("code", module(TWICE, layout=f"e-{part}-n32"))


@pytest.mark.parametrize("code", ["", b"", "\n\t ", bytearray()])
def test_an_empty_module_is_refused(code):
    with pytest.raises(ValueError, match="the extra source 'a' must not be empty"):
        check_module("the extra source 'a'", code)


class Bits:
    """Writes the container of bitcode, by https://llvm.org/docs/BitCodeFormat.html."""

    def __init__(self) -> None:
        self.number = self.length = 0

    def fixed(self, width: int, value: int) -> Bits:
        """Add a number of so many bits."""
        self.number |= value << self.length
        self.length += width
        return self

    def variable(self, width: int, value: int) -> Bits:
        """Add a number in parts of so many bits, of which the highest says that more follow."""
        more = 1 << width - 1
        while value >= more:
            self.fixed(width, value & more - 1 | more)
            value >>= width - 1
        return self.fixed(width, value)

    def record(self, code: int, values: bytes, *, count: int | None = None) -> Bits:
        """Add a record without abbreviation; ``count`` is how many values it claims."""
        self.fixed(WIDTH, 3).variable(6, code).variable(6, len(values) if count is None else count)
        for value in values:
            self.variable(6, value)
        return self

    def words(self) -> bytes:
        """Return what was written, in whole words."""
        return self.number.to_bytes(-(-self.length // 32) * 4, "little")


WIDTH = 3  # of the abbreviations in the module
TRIPLE, DATA_LAYOUT, SOURCE_FILE = 2, 3, 16


def module_of(body: Bits) -> bytes:
    """Return bitcode with a module of records, and the end of its block."""
    words = body.fixed(WIDTH, 0).words()
    head = Bits().fixed(2, 1).variable(8, 8).variable(4, WIDTH).words()
    return b"BC\xc0\xde" + head + struct.pack("<I", len(words) // 4) + words


def test_the_layout_of_bitcode_is_found_after_other_records():
    body = Bits().record(TRIPLE, b"nvptx64-nvidia-cuda").record(DATA_LAYOUT, b"e-q64").record(DATA_LAYOUT, b"e")
    with pytest.raises(ValueError, match="'q64' in its target datalayout 'e-q64'"):
        check_module("code", module_of(body))


def test_the_layout_of_bitcode_is_found_after_abbreviations():
    body = Bits().fixed(WIDTH, 2).variable(5, 4)  # of four parts:
    body.fixed(1, 1).variable(8, SOURCE_FILE)  # a literal,
    body.fixed(1, 0).fixed(3, 1).variable(5, 7)  # a number of fixed width,
    body.fixed(1, 0).fixed(3, 3).fixed(1, 0).fixed(3, 4)  # and an array of characters
    assert check_module("code", module_of(body.record(DATA_LAYOUT, LAYOUT.encode())))
    with pytest.raises(ValueError, match="'q64' in its target datalayout"):
        check_module("code", module_of(Bits().record(DATA_LAYOUT, b"e-q64")))


def test_what_follows_the_first_abbreviated_record_is_not_looked_at():
    with pytest.raises(ValueError, match="has no target datalayout"):
        check_module("code", module_of(Bits().fixed(WIDTH, 4).record(DATA_LAYOUT, LAYOUT.encode())))


def test_a_record_that_claims_more_than_there_is_is_refused_at_once():
    with pytest.raises(ValueError, match=r"cut off, or damaged: it has \d+ bytes"):
        check_module("code", module_of(Bits().record(DATA_LAYOUT, b"e", count=1 << 40)))
