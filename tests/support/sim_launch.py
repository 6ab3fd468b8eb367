# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of the simulated driver through ctypes."""

from __future__ import annotations

from sim_driver import (
    Driver,
    LaunchAttribute,
    LaunchConfig,
    byref,
    c_uint,
    c_void_p,
    ctypes,
)
from sim_kernels import KERNELS


class Kernels:
    """The functions of one module, ready to be launched."""

    def __init__(self, cu: Driver) -> None:
        self.cu = cu
        self.module = cu.out(c_void_p, "cuModuleLoadData", KERNELS)

    def __getitem__(self, name: str) -> c_void_p:
        return self.cu.out(c_void_p, "cuModuleGetFunction", self.module, name.encode())

    def launch(
        self,
        name: str,
        *arguments: object,
        grid: tuple[int, ...] = (1, 1, 1),
        block: tuple[int, ...] = (1, 1, 1),
        shared: int = 0,
        stream: c_void_p | None = None,
    ) -> str:
        pointers = (c_void_p * max(1, len(arguments)))(*(ctypes.addressof(argument) for argument in arguments))
        return self.cu.status("cuLaunchKernel", self[name], *grid, *block, shared, stream, pointers, None)

    def launch_ex(
        self,
        name: str,
        *attributes: tuple[int, tuple[int, ...]],
        grid: tuple[int, ...] = (4, 1, 1),
        block: tuple[int, ...] = (32, 1, 1),
        shared: int = 0,
        parameters: object = None,
    ) -> str:
        rows = (LaunchAttribute * max(1, len(attributes)))()
        for row, (number, values) in zip(rows, attributes, strict=False):
            row.id = number
            for index, value in enumerate(values):
                row.value[index] = value
        config = LaunchConfig(
            (c_uint * 3)(*grid), (c_uint * 3)(*block), shared, None, ctypes.addressof(rows), len(attributes)
        )
        return self.cu.status("cuLaunchKernelEx", byref(config), self[name], parameters, None)

    def close(self) -> None:
        self.cu.cuModuleUnload(self.module)
