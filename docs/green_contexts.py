# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Draws which multiprocessors kernels run on: in two green contexts, in one with the rest, and in the primary context.

python docs/green_contexts.py           print the multiprocessors of each
python docs/green_contexts.py --write   draw docs/green_contexts.svg

The picture in the documentation was drawn on the simulated driver, so that it is the same everywhere:
CUDA_CORE_CFFI_DRIVER=simulator. Any GPU of compute capability 7.0 or newer will do.
"""

from __future__ import annotations

import pathlib
import sys

from cuda_core_cffi import Context, ContextOptions, Device, LaunchConfig, ObjectCode, SMResourceOptions, Stream, launch

PICTURE = pathlib.Path(__file__).with_suffix(".svg")
PART = 16  # multiprocessors of each of the first two contexts, if the device can split off so many
MOST = 512  # multiprocessors
CONFIG = LaunchConfig(grid=4096, block=256)  # blocks that wait a little: each multiprocessor gets some
COLUMNS, CELL, GAP = 66, 10, 2
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#9c755f")
UNUSED = "#e4e4e4"

KERNEL = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry record(.param .u64 table)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [table];
    mov.u32 %r1, %smid;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    atom.global.add.u32 %r2, [%rd3], 1;
    nanosleep.u32 2000;
    ret;
}
"""


def measure() -> list[tuple[str, set[int]]]:
    """Run a kernel in each context.

    Returns
    -------
    list of tuple of str and set of int
        What the context is, and the numbers of the multiprocessors that the kernel's blocks ran on.
    """
    device = Device()
    device.set_current()
    whole = device.resources.sm
    found = []
    with ObjectCode.from_ptx(KERNEL) as code, code.get_kernel("record") as kernel:

        def run(name: str, stream: Stream) -> None:
            with device.allocate(4 * MOST, stream) as table:
                table.fill(0, stream=stream)
                launch(stream, CONFIG, kernel, table)
                counts = bytearray(4 * MOST)
                table.copy_to(counts, stream=stream)
                stream.sync()
            found.append((name, {sm for sm, count in enumerate(memoryview(counts).cast("I")) if count}))

        groups, rest = whole.split(SMResourceOptions(count=(PART, PART)))
        parts = {"green context A": groups[0], "green context B": groups[1], "green context of the rest": rest}
        contexts: dict[str, Context] = {
            name: device.create_context(ContextOptions([part])) for name, part in parts.items()
        }
        for name, context in contexts.items():
            with context, context.create_stream() as stream:
                run(name, stream)
        with device.create_stream() as stream:
            run("primary context", stream)
    return found


def picture(found: list[tuple[str, set[int]]]) -> str:
    """Return an SVG with a row of squares for each context: those that its kernel ran on have a colour."""
    count = max(max(numbers) for _, numbers in found) + 1
    lines = -(-count // COLUMNS)
    height = 18 + lines * (CELL + GAP) + 12
    shapes = []
    for row, (name, numbers) in enumerate(found):
        top = row * height
        shapes.append(f'<text x="0" y="{top + 12}">{name}: {len(numbers)} multiprocessors</text>')
        for colour, squares in (
            (COLOURS[row % len(COLOURS)], sorted(numbers)),
            (UNUSED, [sm for sm in range(count) if sm not in numbers]),
        ):
            corners = [(sm % COLUMNS * (CELL + GAP), top + 18 + sm // COLUMNS * (CELL + GAP)) for sm in squares]
            outlines = "".join(f"M{x} {y}h{CELL}v{CELL}h-{CELL}z" for x, y in corners)
            shapes.append(f'<path fill="{colour}" d="{outlines}"/>')
    size = f"0 0 {min(count, COLUMNS) * (CELL + GAP)} {len(found) * height}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, *shapes, "</svg>", ""])


def main(arguments: list[str]) -> int:
    """Print or draw, and return an exit status."""
    found = measure()
    if arguments == ["--write"]:
        PICTURE.write_text(picture(found))
        return 0
    for name, numbers in found:
        print(f"{name}: {len(numbers)} multiprocessors: {sorted(numbers)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
