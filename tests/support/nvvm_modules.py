# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Modules of NVVM IR, in the dialect that every libNVVM reads for architectures before Blackwell."""

from __future__ import annotations

import base64
import zlib

LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64"
)
INDEX = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()"


def module(body: str, *kernels: str, version: int = 2, layout: str = LAYOUT) -> str:
    """Return a module of functions; ``kernels`` are those that take one pointer to float, by name."""
    notes = [f'!{{void (float*)* @{name}, !"kernel", i32 1}}' for name in kernels]
    lines = [
        f'target datalayout = "{layout}"',
        'target triple = "nvptx64-nvidia-cuda"',
        body.strip(),
        f"!nvvm.annotations = !{{{', '.join(f'!{index + 1}' for index in range(len(notes)))}}}" if notes else "",
        *(f"!{index + 1} = {note}" for index, note in enumerate(notes)),
        "!nvvmir.version = !{!0}",
        f"!0 = !{{i32 {version}, i32 0}}",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def kernel(name: str, function: str, *, declared: str | None = None) -> str:
    """Return a module with a kernel that applies a function to each float that its threads get.

    The function is called ``function``; ``declared`` is its definition, if it is not elsewhere.
    """
    return module(
        f"""
{declared or f"declare float @{function}(float)"}
{INDEX}

define void @{name}(float* %x) {{
  %index = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %place = getelementptr float, float* %x, i32 %index
  %old = load float, float* %place
  %new = call float @{function}(float %old)
  store float %new, float* %place
  ret void
}}
""",
        name,
    )


TWICE = """
define float @twice(float %x) {
  %y = fadd float %x, %x
  ret float %y
}
"""
DOUBLING = kernel("apply", "twice", declared=TWICE)
SINES = kernel("apply", "__nv_sinf")

# A kernel that stores 42.0 in the float that its argument points to, as LLVM 14 writes it.
ANSWER = zlib.decompress(
    base64.b64decode(
        "eNplVG9sEmcYPzjKiy0epzYK847dSXXEqbti14IHS9tzjm2Nodk+dEmXQUXSzkkOyoCiW6CgVzO20KaJfOgSuvlln4ZJM6s2S9vrHDPEoFmW"
        "JmsaWGmtCxoynTGZH/YetftLuOd9nye/53mfP7/37eRml19uRJA6BEH61EzTG+986/n0j6mvG7qjXTJoo9UIchpuGuQ0Iof6TviBmGG0I6d4"
        "XYmbLGOyhHpvnUqnV3zSF1W/Ku8ca+h046ZGs0r7Zr3JNGLnF2jD0e1CEu8Yk7tzqsuNFHdshPpBZjIltPuN+1PNZ7O9o5SYg3EvUAgCj0NM"
        "e3Iqqu8YQr/YlFbTe6HQvaA+dynlNLl7qaYTw0WtLC3LaGVfbFXkt0VlyI59oSwIZ8DZLHqkHw1lhQAlBFRCq1aIUAK/WNy+WlBWMyDYDiJO"
        "EKhtTqcwX0byCReU96IgUvtLRieI4CCYAXAD1UEKRBjgzwC4gep/I1BShL9lQbm2CZa8oLoJlrwKysebkaUjoPpv8OP/gf1RCfmXPF2spVfz"
        "grDn6C5Mszxx/Pj1j7j9s1rkHz91e1+8/fY0gkQP4FBVSj3Vwy5u60olt+x77YaC829pnFNJ0MvQ8SJcD6uixEKJ8DTKbCOcOSEmO6NgKAwG"
        "0z71GqK5j2OPothhdad+fo68NUl4mLoaLL47j9pynC2J2vLhZIAHZ1RgyC7wPIjwaDAs8JSgy2/DKimsxGi8jGalilUd2GF8gVymiUWanHfp"
        "PcwFdibOFjjLFGqdiVsTKJuvNgad4Ew/aOsX/FBGBT4l8E4QNILgkzoYNhQV3lMJPq3gTwtD6diBB1XsQRH7fRarMGhfbpIoTxL5mlxyETdp"
        "YiFG3nQpf0pxlhxnSdfktGge58wjKDsuvgQPfTrM/oiyWVH9/YDA9wh+Ph7oB2GnENAKgYygu/WW5gGi+c2BlVPYSrumRGEVWAVlJJfm9PMd"
        "+js0sRTTLxWJcon8Vab3aLvNWe7IRJzNO5qeFeIUQmEQTnd3PUpppA7o39ffdBHrNLk8R34s00sJ02TVpXz7XNycF9ksZ4MNeTpvLXPsCFTF"
        "5Hf1sFIhBPNRgYgR+NOx3hUcq8xiqw7sIWOYu9OhL5d2LZbIZZiAXcdm47ap+O6EaE5ylrxonZ6z5ERYozVvn/KpAMzKBxvYI+h+voFVnJr7"
        "RWWV0qwymlVK89iBeXFshcGg+rCovFfEyg7sCWP4peIi5mPkYmlXhSbXaHKBJuEE1+nnPdTn7Axnm0Yt43FLvmcGTh8WG4F52oUQDxBkCN5r"
        "EnLMr7dT3Ihat8VvslOGWHJ09PbRDG50W5tNnZ+l6C+1eH2Nq6dO+r0nP0AQg0rBDDsVBtV5uKgh+5g8hZ9LKvYZ6Tb2eutFpu1K2zXm2lTb"
        "lavdw3tIaPumxbLruunqVWjqlqMSv7+C/Kbh2lDvN0LegEgPn4a5inBCloI4vEbcmNy63iHRek0qRprHzpYVJ3bXAcesKUvD1tx1YI+y0RgY"
        "MtZYGBZ8GzPo4SdE85SMvRS3jYvyU5DQxFKJWKKIskuS6zH9vIsoTBK5jcbJbuMbdxHkrZfi7AQkH2rLxK2QiClRemtdz96/HYqO2r2VChhv"
        "luMKV7NkRkRlAldHz6MSVvqO4b216+6jNrAmDN+TQFbkm8/Au9BrK1y3o+MeSXd5B0Mn/c0th5hDrd4gHwi3thz0BgfcA66DJz50u6yDAfeA"
        "95UN3z8B+KEDsQ=="
    )
)
