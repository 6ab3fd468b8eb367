# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What textures hold at coordinates, in NumPy: the rules of the appendix "Texture Fetching" of the programming guide.

Where it leaves open how weights are rounded, the rules are those of an H100.

Texels are arrays of (layer or depth, height, width, channel). Coordinates are one array for each dimension, x first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sim_arrays import BORDER, CLAMP, LINEAR, MIRROR, POINT, WRAP

Data = np.ndarray[Any, Any]
STEPS = 256  # between two texels


def fractions(data: Data) -> Data:
    """Return integers as fractions; the least of signed ones is a little less than -1, which it reads as."""
    return data.astype(np.float64) / (1 if data.dtype.kind == "f" else np.iinfo(data.dtype).max)


def sample_fractions(data: Data, *coordinates: Data, **rules: Any) -> Data:
    """Return what is read of integers as fractions, or of floats."""
    found = sample(fractions(data), *coordinates, **rules)
    return found if data.dtype.kind == "f" else np.maximum(found, -1)


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


def footprint(x: Data) -> tuple[Data, Data]:
    """Return the first of the two texels that a filter reads along a dimension, and the weight of the second."""
    steps = np.floor((x - 0.5) * STEPS + 0.5).astype(np.int64)
    return steps // STEPS, steps % STEPS


def rounded(weight: Data) -> Data:
    return (weight + STEPS // 2) // STEPS


def corner_weights(parts: list[Data]) -> dict[tuple[int, ...], Data]:
    """Return the weights of the texels around, for those of the second texel along each dimension.

    They are whole, as on an H100: first the depth is split, then the row, then the column, and each part is rounded.
    """
    zero = np.zeros_like(parts[0])
    x, y, z = (*parts, zero, zero)[:3]
    found = {}
    for layer, whole in ((0, STEPS - z), (1, z)):
        right = rounded(x * whole)
        left = whole - right
        lower_right, lower_left = rounded(right * y), -rounded(-left * y)
        sides = {(0, 0): left - lower_left, (1, 0): right - lower_right, (0, 1): lower_left, (1, 1): lower_right}
        found.update({(*corner, layer): weight for corner, weight in sides.items()})
    return {corner: weight for corner, weight in found.items() if not any(corner[len(parts) :])}


def sample(
    data: Data,
    *coordinates: Data,
    filtering: int = POINT,
    mode: int | tuple[int, ...] = CLAMP,
    normalized: bool = False,
    layer: Data | int | None = None,
    border: tuple[float, ...] = (0, 0, 0, 0),
) -> Data:
    """Return what is read at coordinates; with a layer only two dimensions are left."""
    modes = mode if isinstance(mode, tuple) else (mode,) * 3
    sizes = data.shape[2::-1]
    places = [x.astype(np.float64) * (size if normalized else 1) for x, size in zip(coordinates, sizes, strict=False)]
    if filtering == POINT:
        first = [np.floor(x).astype(np.int64) for x in places]
        weights = {(0,) * len(first): np.full(first[0].shape, STEPS)}
    else:
        if len(places) == 1 and layer is None:  # an array of one dimension is read on the edge of its only row
            places.append(np.zeros_like(places[0]))
        first, parts = map(list, zip(*map(footprint, places), strict=True))
        for axis, size in zip(range(len(first)), sizes, strict=False):
            if modes[axis] == CLAMP:  # where both are the same texel it has all the weight
                parts[axis] = np.where((first[axis] >= 0) & (first[axis] < size - 1), parts[axis], 0)
        weights = corner_weights(parts)
    result = np.zeros((*coordinates[0].shape, data.shape[-1]))
    for corner, weight in weights.items():
        index: list[Any] = []
        there: Any = True
        for texel, step, size, rule in zip(first, corner, sizes, modes, strict=False):
            found, is_there = inside(texel + step, size, rule)
            index.append(found)
            there = there & is_there
        index += [0] * (3 - len(index))
        if layer is not None:
            index[2] = np.clip(layer, 0, data.shape[0] - 1)
        texels = data[index[2], index[1], index[0]]
        result += weight[..., None] / STEPS * np.where(there[..., None], texels, np.asarray(border)[: data.shape[-1]])
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
    "corner_weights",
    "direction_to",
    "face_of",
    "footprint",
    "fractions",
    "inside",
    "linear_from_srgb",
    "sample",
    "sample_fractions",
]
