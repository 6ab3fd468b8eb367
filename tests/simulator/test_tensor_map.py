# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps of the simulated driver: each number, with the rules of driver 580 on an H100."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from sim_driver import Driver, c_int, c_uint, c_uint64, c_void_p

ADDRESS = 0x10000  # nothing is read or written there
TILED = {
    "type": 7, "rank": 3, "address": ADDRESS, "extents": [64, 8, 4], "strides": [256, 2048], "box": [8, 4, 2],
    "steps": [1, 1, 1], "interleave": 0, "swizzle": 0, "promotion": 0, "fill": 0,
}  # fmt: skip
IM2COL = {
    "type": 7, "rank": 4, "address": ADDRESS, "extents": [16, 8, 8, 4], "strides": [64, 512, 4096], "lower": [-1, -1],
    "upper": [1, 1], "channels": 8, "pixels": 32, "steps": [1] * 4, "interleave": 0, "swizzle": 0, "promotion": 0,
    "fill": 0,
}  # fmt: skip
TYPES = {"extents": c_uint64, "strides": c_uint64, "box": c_uint, "steps": c_uint, "lower": c_int, "upper": c_int}


class Map:
    """128 bytes at an address that is a multiple of 128, and something."""

    def __init__(self, off: int = 0) -> None:
        self.memory = (c_uint64 * 64)()
        self.address = -(-ctypes.addressof(self.memory) // 128) * 128 + off
        self.words = (c_uint64 * 16).from_address(self.address)


def encode(cu: Driver, name: str, given: dict[str, Any], target: Any = None) -> str:
    """Return the status of encoding what is given."""
    made = Map() if target is None else target
    arguments = []
    for key, value in given.items():
        if isinstance(value, list):
            arguments.append((TYPES[key] * len(value))(*value))
        else:
            arguments.append(c_void_p(value) if key == "address" else value if value is None else c_int(value))
    return cu.status(f"cuTensorMapEncode{name}", c_void_p(made.address if made else None), *arguments)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"rank": 1, "extents": [64], "box": [8], "steps": [1]},
        {
            "rank": 5,
            "extents": [64, 8, 4, 2, 2],
            "strides": [256, 2048, 8192, 16384],
            "box": [8, 4, 2, 1, 1],
            "steps": [1] * 5,
        },
        {"extents": [2**32, 1, 1], "strides": [2**40 - 16, 2**40 - 16]},
        {"address": 0},
        {"address": 2**57 - 16},
        {"box": [256, 228, 1]},  # 228 KiB
        {"box": [256, 256, 256], "steps": [8, 8, 8]},
        {"box": [256, 256, 7], "steps": [1, 1, 8]},  # the driver rounds down
        {"steps": [8, 8, 8]},
        {"strides": [0, 0]},
        {"swizzle": 1},
        {"interleave": 1, "box": [64, 1, 1], "swizzle": 1},  # no limit by the swizzle
        {"interleave": 2, "swizzle": 1},
        {"interleave": 2, "swizzle": 0},
        {"promotion": 3},
        {"fill": 1},
        {"type": 12, "fill": 1},
    ],
    ids=str,
)
def test_what_the_driver_encodes_is_encoded(cu: Driver, change: dict[str, Any]) -> None:
    assert encode(cu, "Tiled", TILED | change) == "SUCCESS"


@pytest.mark.parametrize(
    "change",
    [
        {"type": 13},  # packed types came later
        {"type": 16},
        {"rank": 0},
        {"rank": 6, "extents": [64] * 6, "strides": [256] * 5, "box": [8] * 6, "steps": [1] * 6},
        {"address": ADDRESS + 8},
        {"address": 2**57},
        {"extents": None},
        {"extents": [64, 0, 4]},
        {"extents": [2**32 + 1, 8, 4]},
        {"strides": None},
        {"rank": 1, "strides": None},
        {"strides": [264, 2048]},
        {"strides": [256, 2**40]},
        {"box": None},
        {"box": [0, 4, 2]},
        {"box": [8, 257, 2]},
        {"box": [6, 4, 2]},
        {"box": [256, 229, 1]},
        {"steps": None},
        {"steps": [1, 0, 1]},
        {"steps": [1, 9, 1]},
        {"interleave": 3},
        {"interleave": 1, "rank": 2},
        {"interleave": 2, "address": ADDRESS + 16},
        {"interleave": 2, "strides": [272, 2048]},
        {"interleave": 1, "box": [6, 1, 1]},
        {"steps": [9, 1, 1]},  # the hardware has no use for the first, the driver checks it
        {"steps": [0, 1, 1]},
        {"swizzle": 4},  # larger atoms came later
        {"swizzle": 1, "box": [12, 4, 2]},
        {"swizzle": 2, "box": [20, 4, 2]},
        {"swizzle": 3, "box": [36, 4, 2]},
        {"promotion": 4},
        {"fill": 2},
        {"type": 2, "fill": 1},
    ],
    ids=str,
)
def test_what_the_driver_refuses_is_refused(cu: Driver, change: dict[str, Any]) -> None:
    assert encode(cu, "Tiled", TILED | change) == "INVALID_VALUE"


def test_the_map_may_be_anywhere(cu: Driver) -> None:
    made, other = Map(), Map(1)
    assert encode(cu, "Tiled", TILED, made) == encode(cu, "Tiled", TILED, other) == "SUCCESS"
    assert list(made.words) == list(other.words)
    assert encode(cu, "Tiled", TILED, False) == "INVALID_VALUE"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "SUCCESS"),
        ({"lower": [-128, 127], "upper": [127, 127]}, "SUCCESS"),
        ({"channels": 256, "pixels": 228}, "SUCCESS"),  # 228 KiB
        ({"channels": 256, "pixels": 228, "steps": [8, 8, 8, 8]}, "SUCCESS"),
        ({"channels": 4, "pixels": 1024}, "SUCCESS"),
        ({"channels": 256, "pixels": 229}, "INVALID_VALUE"),
        ({"extents": [16, 2**31 - 1, 8, 4], "upper": [0, 1]}, "SUCCESS"),
        ({"extents": [16, 2**31 - 1, 8, 4]}, "INVALID_VALUE"),
        ({"extents": [16, 8, 8, 2**32]}, "SUCCESS"),
        # the width comes first
        ({"interleave": 1, "extents": [16, 8, 2, 4], "lower": [4, 0], "upper": [-11, 0]}, "SUCCESS"),
        ({"interleave": 1, "extents": [16, 8, 2, 4], "lower": [4, 0], "upper": [-12, 0]}, "INVALID_VALUE"),
        ({"rank": 3, "lower": [-32768], "upper": [32767]}, "SUCCESS"),
        ({"rank": 2}, "INVALID_VALUE"),
        ({"lower": [-129, 0]}, "INVALID_VALUE"),
        ({"upper": [0, 128]}, "INVALID_VALUE"),
        ({"lower": [4, 0], "upper": [-4, 0]}, "INVALID_VALUE"),  # no pixel is left
        ({"lower": None}, "INVALID_VALUE"),
        ({"channels": 0}, "INVALID_VALUE"),
        ({"channels": 257}, "INVALID_VALUE"),
        ({"channels": 6}, "INVALID_VALUE"),
        ({"pixels": 0}, "INVALID_VALUE"),
        ({"pixels": 1025}, "INVALID_VALUE"),
        ({"swizzle": 1, "channels": 16}, "INVALID_VALUE"),
    ],
    ids=str,
)
def test_im2col_has_rules_of_its_own(cu: Driver, change: dict[str, Any], status: str) -> None:
    assert encode(cu, "Im2col", IM2COL | change) == status


ORDER = ["type", "rank", "address", "extents", "strides", "lower", "upper", "channels", "pixels", "steps", "interleave"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "SUCCESS"),  # though no instruction of this architecture takes it
        ({"mode": 1, "pixels": 0}, "SUCCESS"),
        ({"swizzle": 0}, "SUCCESS"),
        ({"mode": 2}, "INVALID_VALUE"),
        ({"pixels": 0}, "INVALID_VALUE"),
        ({"upper": 127}, "SUCCESS"),
        ({"upper": 128}, "INVALID_VALUE"),
        ({"upper": -8}, "INVALID_VALUE"),
        ({"rank": 2}, "INVALID_VALUE"),
    ],
    ids=str,
)
def test_im2col_wide_has_rules_of_its_own(cu: Driver, change: dict[str, Any], status: str) -> None:
    given = IM2COL | {"lower": 0, "upper": 0, "mode": 0, "swizzle": 3} | change
    wide = {name: given[name] for name in [*ORDER, "mode", "swizzle", "promotion", "fill"]}
    assert encode(cu, "Im2colWide", wide) == status


def test_an_address_is_replaced(cu: Driver) -> None:
    made, other = Map(), Map()
    assert encode(cu, "Tiled", TILED, made) == "SUCCESS"
    assert encode(cu, "Tiled", TILED | {"address": 2 * ADDRESS}, other) == "SUCCESS"
    assert list(made.words) != list(other.words)
    assert cu.status("cuTensorMapReplaceAddress", c_void_p(made.address), c_void_p(2 * ADDRESS)) == "SUCCESS"
    assert list(made.words) == list(other.words)
    for wrong in (0, ADDRESS + 8, 2**57):
        assert cu.status("cuTensorMapReplaceAddress", c_void_p(made.address), c_void_p(wrong)) == "INVALID_VALUE"
    assert list(made.words) == list(other.words)


def test_a_replaced_address_needs_16_bytes_whatever_the_map_is(cu: Driver) -> None:
    made = Map()
    assert encode(cu, "Tiled", TILED | {"interleave": 2}, made) == "SUCCESS"
    assert cu.status("cuTensorMapReplaceAddress", c_void_p(made.address), c_void_p(ADDRESS + 16)) == "SUCCESS"


def test_what_is_no_map_has_no_address(cu: Driver) -> None:
    assert cu.status("cuTensorMapReplaceAddress", c_void_p(Map().address), c_void_p(ADDRESS)) == "INVALID_VALUE"


def test_a_context_is_needed(driver: Driver) -> None:
    assert encode(driver, "Tiled", TILED) == "INVALID_CONTEXT"
