# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What textures hold at coordinates, in NumPy: the rules of the appendix "Texture Fetching" of the programming guide.

Texels are arrays of (layer or depth, height, width, channel). Coordinates are one array for each dimension, x first.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from sim_arrays import BORDER, CLAMP, LINEAR, MIRROR, POINT, WRAP

Data = np.ndarray[Any, Any]
STEPS = 256  # between two texels


def fractions(data: Data) -> Data:
    """Return integers as the fractions that they are read as."""
    if data.dtype.kind == "f":
        return data.astype(np.float64)
    return np.maximum(data.astype(np.float64) / np.iinfo(data.dtype).max, -1)


def inside(index: Data, size: int, mode: int) -> tuple[Data, Data]:
    """Return the texels that stand for those with any index, and where there are some."""
    there = np.ones(index.shape, bool)
    if mode == WRAP:
        index = index % size
    elif mode == MIRROR:
        turned = index % (2 * size)
        index = np.minimum(turned, 2 * size - 1 - turned)
    elif mode == BORDER:
        there = (index >= 0) & (index < size)
    return np.clip(index, 0, size - 1), there


def footprint(x: Data, filtering: int) -> list[tuple[Data, Data]]:
    """Return the texels that a coordinate reads along a dimension, and their weights."""
    if filtering == POINT:
        return [(np.floor(x).astype(np.int64), np.ones(x.shape))]
    steps = np.floor((x - 0.5) * STEPS + 0.5)
    first = np.floor(steps / STEPS)
    weight = steps / STEPS - first
    return [(first.astype(np.int64), 1 - weight), (first.astype(np.int64) + 1, weight)]


def sample(
    data: Data,
    *coordinates: Data,
    filtering: int = POINT,
    mode: int = CLAMP,
    normalized: bool = False,
    layer: Data | int | None = None,
    border: tuple[float, ...] = (0, 0, 0, 0),
) -> Data:
    """Return what is read at coordinates; with a layer only two dimensions are left."""
    sizes = data.shape[2::-1]
    axes = [
        footprint(x.astype(np.float64) * (size if normalized else 1), filtering)
        for x, size in zip(coordinates, sizes, strict=False)
    ]
    result = np.zeros((*coordinates[0].shape, data.shape[-1]))
    for corner in itertools.product(*axes):
        index: list[Any] = []
        weight, there = 1.0, True
        for (texel, part), size in zip(corner, sizes, strict=False):
            found, is_there = inside(texel, size, mode)
            index.append(found)
            weight, there = weight * part, there & is_there
        index += [0] * (3 - len(index))
        if layer is not None:
            index[2] = np.clip(layer, 0, data.shape[0] - 1)
        texels = data[index[2], index[1], index[0]]
        result += weight[..., None] * np.where(there[..., None], texels, np.asarray(border)[: data.shape[-1]])
    return result


# The faces of a cube: the axis that a face lies across, its sign, and the axes of its coordinates with theirs.
FACES = [
    (0, 1, (2, -1), (1, -1)),
    (0, -1, (2, 1), (1, -1)),
    (1, 1, (0, 1), (2, 1)),
    (1, -1, (0, 1), (2, -1)),
    (2, 1, (0, 1), (1, -1)),
    (2, -1, (0, -1), (1, -1)),
]


def face_of(direction: Data) -> tuple[Data, Data, Data]:
    """Return the faces that directions meet, and the coordinates there, from 0 to 1."""
    longest = np.argmax(np.abs(direction), axis=-1)
    sign = np.take_along_axis(direction, longest[..., None], -1)[..., 0] < 0
    faces = 2 * longest + sign
    s, t = np.empty(faces.shape), np.empty(faces.shape)
    for number, (across, _, along_s, along_t) in enumerate(FACES):
        here = faces == number
        length = np.abs(direction[here, across])
        s[here] = along_s[1] * direction[here, along_s[0]] / length
        t[here] = along_t[1] * direction[here, along_t[0]] / length
    return faces, (s + 1) / 2, (t + 1) / 2


def direction_to(face: Data, s: Data, t: Data) -> Data:
    """Return directions to places on faces, whose coordinates are from 0 to 1."""
    direction = np.empty((*face.shape, 3))
    for number, (across, sign, along_s, along_t) in enumerate(FACES):
        here = face == number
        direction[here, across] = sign
        direction[here, along_s[0]] = along_s[1] * (2 * s[here] - 1)
        direction[here, along_t[0]] = along_t[1] * (2 * t[here] - 1)
    return direction


def linear_from_srgb(data: Data) -> Data:
    return np.where(data <= 0.04045, data / 12.92, ((data + 0.055) / 1.055) ** 2.4)


__all__ = [
    "LINEAR",
    "direction_to",
    "face_of",
    "footprint",
    "fractions",
    "inside",
    "linear_from_srgb",
    "sample",
]
