# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what tensor maps copy: boxes, what is outside of the array, steps, and swizzles.

python docs/tensor_maps.py           print the numbers that a kernel found in shared memory
python docs/tensor_maps.py --write   draw docs/tensor_maps.svg

A kernel loads boxes of an array of numbered elements, and the picture shows what it found in shared memory. It is the
same on every GPU of compute capability 9.0 or newer, and on the simulated driver: CUDA_CORE_CFFI_DRIVER=simulator.
"""

from __future__ import annotations

import array
import dataclasses
import pathlib
import sys
from typing import Any

from cuda_core_cffi import Device, Kernel, LaunchConfig, ObjectCode, Stream, launch
from cuda_core_cffi.utils import StridedMemoryView

PICTURE = pathlib.Path(__file__).with_suffix(".svg")
ONE_THREAD = LaunchConfig(grid=1, block=1)
SHARED = 1024  # bytes
WORD = 4
PIECE = 16  # bytes that a swizzle moves together
LINE = 128  # bytes of all banks of shared memory
CELL, WIDE, TITLE, MARGIN = 18, 30, 20, 22
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#9c755f")
ELSEWHERE, FILLED, EDGE = "#e4e4e4", "#ffffff", "#888888"

KERNEL = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 y, .param .u32 bytes, .param .u64 out)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<10>;
    .reg .pred %p<3>;
    .shared .align 1024 .b8 box[1024];
    .shared .align 8 .b64 barrier;
    ld.param.u32 %r1, [x];
    ld.param.u32 %r2, [y];
    ld.param.u32 %r3, [bytes];
    ld.param.u64 %rd1, [out];
    mov.b64 %rd2, map;
    cvta.param.u64 %rd2, %rd2;
    mov.u32 %r4, box;
    mov.u32 %r5, barrier;
    mbarrier.init.shared::cta.b64 [%r5], 1;
    fence.mbarrier_init.release.cluster;
    mov.u32 %r6, 0;
CLEAR:
    add.u32 %r7, %r4, %r6;
    st.shared.b32 [%r7], -1;
    add.u32 %r6, %r6, 4;
    setp.lt.u32 %p1, %r6, 1024;
    @%p1 bra CLEAR;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], %r3;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4], [%rd2, {%r1, %r2}], [%r5];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r5], 0;
    @!%p1 bra WAIT;
    mov.u32 %r6, 0;
TELL:
    add.u32 %r7, %r4, %r6;
    ld.shared.b32 %r8, [%r7];
    st.global.b32 [%rd1], %r8;
    add.u64 %rd1, %rd1, 4;
    add.u32 %r6, %r6, 4;
    setp.lt.u32 %p1, %r6, 1024;
    @%p1 bra TELL;
    ret;
}
"""


@dataclasses.dataclass(frozen=True)
class Copy:
    """A box of an array whose elements have the numbers from 1 on, and where they were in shared memory.

    Attributes
    ----------
    title : str
        What it shows.
    shape : tuple of int
        Rows and columns of the array.
    start : tuple of int
        Row and column at which the box begins.
    box : tuple of int
        Rows and columns of the box.
    options : dict
        Arguments of :meth:`StridedMemoryView.as_tensor_map`.
    found : tuple of int
        The 32-bit words of shared memory; 2**32 - 1 where nothing was written.
    """

    title: str
    shape: tuple[int, int]
    start: tuple[int, int]
    box: tuple[int, int]
    options: dict[str, Any]
    found: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """Return how many rows are copied."""
        step: int = self.options.get("element_strides", (1, 1))[0]
        return -(-self.box[0] // step)


TILES = (
    Copy("a box of 4 rows and 8 columns, at row 2 and column 4", (8, 16), (2, 4), (4, 8), {}),
    Copy("the same at row 6 and column 12: what is outside is filled with zeros", (8, 16), (6, 12), (4, 8), {}),
    Copy("element_strides=(2, 1): a box of 8 rows, of which every second is copied", (8, 16), (0, 4), (8, 8),
         {"element_strides": (2, 1)}),
)  # fmt: skip
SWIZZLES = tuple(
    Copy(f"{kind}, rows of {width * WORD} bytes", (8, 32), (0, 0), (8, width), {"swizzle": kind})
    for kind, width in (("NONE", 32), ("SWIZZLE_32B", 8), ("SWIZZLE_64B", 16), ("SWIZZLE_128B", 32))
)


def measure() -> list[Copy]:
    """Copy each box.

    Returns
    -------
    list of Copy
        The boxes of the pictures, with what a kernel found in shared memory.
    """
    device = Device()
    device.set_current()
    with (
        device.create_stream() as stream,
        ObjectCode.from_ptx(KERNEL) as code,
        code.get_kernel("load") as kernel,
    ):
        return [loaded(device, stream, kernel, copy) for copy in (*TILES, *SWIZZLES)]


def loaded(device: Device, stream: Stream, kernel: Kernel, copy: Copy) -> Copy:
    """Return a copy with what was found in shared memory."""
    rows, columns = copy.shape
    numbers, found = array.array("i", range(1, 1 + rows * columns)), bytearray(SHARED)
    with device.allocate(rows * columns * WORD, stream) as memory, device.allocate(SHARED, stream) as out:
        memory.copy_from(memoryview(numbers).cast("B"), stream=stream)
        view = StridedMemoryView.from_buffer(memory, copy.shape, dtype="int32")
        descriptor = view.as_tensor_map(copy.box, **copy.options)
        y, x = copy.start
        launch(stream, ONE_THREAD, kernel, descriptor, x, y, copy.rows * copy.box[1] * WORD, out)
        out.copy_to(found, stream=stream)
        stream.sync()
    return dataclasses.replace(copy, found=tuple(memoryview(found).cast("I")))


class Drawing:
    """Cells, which share what they can, and other shapes."""

    def __init__(self) -> None:
        self.outlines: dict[str, list[str]] = {}
        self.numbers: list[str] = []
        self.others: list[str] = []

    def cell(self, x: int, y: int, colour: str, text: object, width: int = CELL) -> None:
        """Draw a rectangle with a number."""
        self.outlines.setdefault(colour, []).append(f"M{x} {y}h{width}v{CELL}h-{width}z")
        self.numbers.append(f'<text x="{x + width // 2}" y="{y + 13}">{text}</text>')

    def text(self, x: int, y: int, text: str) -> None:
        """Write a title, whose top is given."""
        self.others.append(f'<text x="{x}" y="{y + 12}" font-weight="bold">{text}</text>')

    def frame(self, x: int, y: int, width: int, height: int) -> None:
        """Draw a thick outline."""
        shape = f'x="{x}" y="{y}" width="{width}" height="{height}"'
        self.others.append(f'<rect {shape} fill="none" stroke="black" stroke-width="2"/>')

    def svg(self, width: int, height: int) -> str:
        """Return the picture."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 0 {width + 4} {height}" font-family="sans-serif"'
        cells = [f'<path fill="{colour}" d="{"".join(items)}"/>' for colour, items in self.outlines.items()]
        first = [f'{head} font-size="12">', f'<g stroke="{EDGE}" stroke-width="0.5">', *cells, "</g>", *self.others]
        return "\n".join([*first, '<g text-anchor="middle" font-size="9">', *self.numbers, "</g>", "</svg>", ""])


def draw_tile(drawing: Drawing, copy: Copy, top: int) -> int:
    """Draw the array on the left and shared memory on the right, and return the height."""
    rows, columns = copy.shape
    written = copy.found[: copy.rows * copy.box[1]]
    drawing.text(0, top, copy.title)
    top += TITLE
    colours = {number: COLOURS[at // copy.box[1] % len(COLOURS)] for at, number in enumerate(written) if number}
    for number in range(1, 1 + rows * columns):
        row, column = divmod(number - 1, columns)
        drawing.cell(column * CELL, top + row * CELL, colours.get(number, ELSEWHERE), number)
    y, x = copy.start
    drawing.frame(x * CELL, top + y * CELL, copy.box[1] * CELL, copy.box[0] * CELL)
    left = (columns + copy.box[1]) * CELL
    for at, number in enumerate(written):
        row, column = divmod(at, copy.box[1])
        drawing.cell(left + column * CELL, top + row * CELL, colours.get(number, FILLED), number)
    return TITLE + max(rows, y + copy.box[0]) * CELL + MARGIN


def draw_swizzle(drawing: Drawing, copy: Copy, left: int, top: int) -> int:
    """Draw lines of shared memory, each piece with its row and column and the colour of that; return the height."""
    columns, words = copy.shape[1], PIECE // WORD
    pieces = copy.found[: copy.rows * copy.box[1] : words]
    drawing.text(left, top, copy.title)
    for at, number in enumerate(pieces):
        row, column = divmod(number - 1, columns)
        line, place = divmod(at, LINE // PIECE)
        colour = COLOURS[column // words % len(COLOURS)]
        drawing.cell(left + place * WIDE, top + TITLE + line * CELL, colour, f"{row}.{column // words}", WIDE)
    return TITLE + -(-len(pieces) * PIECE // LINE) * CELL + MARGIN


def picture(found: list[Copy]) -> str:
    """Return an SVG of the boxes and, below, of the swizzles."""
    drawing, top = Drawing(), 0
    for copy in found[: len(TILES)]:
        top += draw_tile(drawing, copy, top)
    step = LINE // PIECE * WIDE + 2 * MARGIN
    for first in range(len(TILES), len(found), 2):
        pair = found[first : first + 2]
        top += max(draw_swizzle(drawing, copy, place * step, top) for place, copy in enumerate(pair))
    return drawing.svg(2 * step - 2 * MARGIN, top - MARGIN + 2)


def main(arguments: list[str]) -> int:
    """Print or draw, and return an exit status."""
    found = measure()
    if arguments == ["--write"]:
        PICTURE.write_text(picture(found))
        return 0
    for copy in found:
        print(copy.title)
        for row in range(copy.rows):
            print("   ", *copy.found[row * copy.box[1] : (row + 1) * copy.box[1]])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
