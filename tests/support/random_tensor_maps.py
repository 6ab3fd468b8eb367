# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Encode random descriptions of tensor maps and print, as JSON, the status that the driver gave to each.

    python random_tensor_maps.py SEED COUNT

Most of the numbers are right or just beyond what cuda.h allows, so that about every second description is encoded.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from cuda_core_cffi import Device, driver

TYPES = 13  # from CU_TENSOR_MAP_DATA_TYPE_UINT8 to TFLOAT32_FTZ
SIZES = (1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4)  # bytes of an element


def description(pick: random.Random) -> dict[str, Any]:
    """Return a random description."""
    odds = pick.choice((0, 0.02, 0.05, 0.1))

    def some(usual: Any, *odd: Any) -> Any:
        return pick.choice(odd) if pick.random() < odds else usual

    kind = pick.choice(("tiled", "tiled", "im2col"))
    data_type = some(pick.randrange(TYPES), 16, 99)
    size = SIZES[data_type] if data_type < TYPES else 4
    interleave = pick.choice((0, 0, 0, 0, 1, 2))
    unit = 32 if interleave == 2 else 16
    rank = some(pick.randint(3 if kind == "im2col" or interleave else 1, 5), 0, 1, 2, 6)
    extents = [some(pick.choice((1, 3, 16, 64, 1000, 2**20)), 0, 2**32, 2**32 + 1) for _ in range(rank)]
    strides = []
    least = max(1, extents[0] * size if extents else 1)
    for extent in extents[1:]:
        stride = -(-least // unit) * unit
        strides.append(some(stride, 0, unit, stride + unit, stride + 8, stride + 1, 2**40, 2**40 - unit))
        least = min(stride * max(extent, 1), 2**40)
    swizzle = some(pick.choice((0, 0, 1, 2, 3)), 9)
    span = {1: 32, 2: 64, 3: 128}.get(swizzle, 256)
    inner = pick.choice((16, span, span // 2 or 1, span)) // size or 1
    box = [some(pick.choice((1, 2, 8, 16, 256)), 0, 257, 512) for _ in range(rank)]
    if box:
        box[0] = some(inner, 0, 1, inner + 1, 2 * inner, 257)
    return {
        "kind": kind,
        "type": data_type,
        "rank": rank,
        "offset": some(0, 8, 16, 1, 32),
        "extents": extents,
        "strides": strides,
        "box": box,
        "lower": [some(pick.randint(-3, 3), -129, -128, 127, 128, -16, 15, 16) for _ in range(max(rank - 2, 0))],
        "upper": [some(pick.randint(-3, 3), -129, -128, 127, 128, -16, 15, 16) for _ in range(max(rank - 2, 0))],
        "channels": some(inner, 0, 1, 256, 257),
        "pixels": some(pick.choice((1, 8, 128, 1024)), 0, 1025, 1024),
        "steps": [some(pick.choice((1, 1, 1, 2, 8)), 0, 9) for _ in range(rank)],
        "interleave": some(interleave, 3),
        "swizzle": swizzle,
        "promotion": some(pick.randrange(4), 4),
        "fill": some(0, 1, 1, 1, 2),
    }


def status_of(case: dict[str, Any], address: int) -> int:
    """Return the status of encoding a description of memory at an address."""
    start = (case["type"], case["rank"], address + case["offset"], case["extents"], case["strides"])
    end = (case["steps"], case["interleave"], case["swizzle"], case["promotion"], case["fill"])
    if case["kind"] == "tiled":
        return int(driver.cuTensorMapEncodeTiled(*start, case["box"], *end)[0])
    middle = (case["lower"], case["upper"], case["channels"], case["pixels"])
    return int(driver.cuTensorMapEncodeIm2col(*start, *middle, *end)[0])


def descriptions(seed: int, count: int) -> list[dict[str, Any]]:
    """Return that many random descriptions, the same for the same seed."""
    pick = random.Random(seed)
    return [description(pick) for _ in range(count)]


def main(seed: str, count: str) -> None:
    """Print the status of each description."""
    device = Device(0)
    device.set_current()
    memory = device.allocate(4096, stream=device.default_stream)
    print(json.dumps([status_of(case, memory.handle) for case in descriptions(int(seed), int(count))]))
    memory.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
