# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Find the edges in an image: a kernel reads it through a texture, and draws the result through a surface.

The texture says what there is outside of the image, so the kernel has no special case for the border.

On a machine without a GPU this script chooses the simulated driver, and says so.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from saxpy import system_has_gpu

if "CUDA_CORE_CFFI_DRIVER" not in os.environ and not system_has_gpu():
    print("No GPU found: this run uses the SIMULATED driver.")
    os.environ["CUDA_CORE_CFFI_DRIVER"] = "simulator"

from cuda_core_cffi import Device, LaunchConfig, Program, ProgramOptions, launch
from cuda_core_cffi.texture import OpaqueArrayOptions, ResourceDescriptor, TextureObjectOptions

SOURCE = r"""
extern "C" __global__ void edges(cudaTextureObject_t image, cudaSurfaceObject_t result, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float across = 0, down = 0;
    for (int d = -1; d <= 1; d++) {
        int weight = 2 - abs(d);
        across += weight * (tex2D<float>(image, x + 1.5f, y + d + 0.5f) - tex2D<float>(image, x - 0.5f, y + d + 0.5f));
        down += weight * (tex2D<float>(image, x + d + 0.5f, y + 1.5f) - tex2D<float>(image, x + d + 0.5f, y - 0.5f));
    }
    surf2Dwrite(sqrtf(across * across + down * down), result, x * (int)sizeof(float), y);
}
"""
WIDTH, HEIGHT = 256, 192
BLOCK = 16


def expected(image: np.ndarray) -> np.ndarray:
    """Return the result as NumPy computes it."""
    padded = np.pad(image.astype(np.float32) / 255, 1, mode="edge")
    smooth_down = padded[:-2] + 2 * padded[1:-1] + padded[2:]
    smooth_across = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    across = smooth_down[:, 2:] - smooth_down[:, :-2]
    down = smooth_across[2:] - smooth_across[:-2]
    return np.sqrt(across**2 + down**2)


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    device.set_current()
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    image = (128 + 100 * np.sin(x / 9) * np.cos(y / 7)).astype(np.uint8)

    with (
        device.create_stream() as stream,
        device.create_opaque_array(OpaqueArrayOptions((WIDTH, HEIGHT), "uint8", 1)) as source,
        device.create_opaque_array(OpaqueArrayOptions((WIDTH, HEIGHT), "float32", 1, True)) as target,
        device.create_texture_object(
            ResourceDescriptor.from_opaque_array(source),
            TextureObjectOptions(address_mode="clamp", read_mode="normalized_float"),
        ) as texture,
        device.create_surface_object(ResourceDescriptor.from_opaque_array(target)) as surface,
        Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}")) as program,
        program.compile() as code,
    ):
        source.copy_from(image, stream=stream)
        config = LaunchConfig(grid=(-(-WIDTH // BLOCK), -(-HEIGHT // BLOCK)), block=(BLOCK, BLOCK))
        launch(stream, config, code.get_kernel("edges"), texture, surface, WIDTH, HEIGHT)
        result = target.copy_to(np.empty((HEIGHT, WIDTH), np.float32), stream=stream)
        stream.sync()

    right = np.allclose(result, expected(image), atol=1e-5)
    print(f"edges of an image of {WIDTH} x {HEIGHT} on {device.name}: {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
