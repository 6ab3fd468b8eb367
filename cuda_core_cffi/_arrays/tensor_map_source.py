# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The method of views that makes tensor maps. Most programs do not use it: what it needs is imported then."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuda_core_cffi._arrays.tensor_map import TensorMapDescriptor, TensorMapDescriptorOptions
    from cuda_core_cffi.typing import TensorMapInterleave, TensorMapL2Promotion, TensorMapOOBFill, TensorMapSwizzle


class TensorMapSource:
    """Base of :class:`StridedMemoryView`."""

    __slots__ = ()

    def as_tensor_map(
        self,
        box_dim: tuple[int, ...] | None = None,
        *,
        options: TensorMapDescriptorOptions | Mapping[str, Any] | None = None,
        element_strides: tuple[int, ...] | None = None,
        data_type: object | None = None,
        interleave: TensorMapInterleave | None = None,
        swizzle: TensorMapSwizzle | None = None,
        l2_promotion: TensorMapL2Promotion | None = None,
        oob_fill: TensorMapOOBFill | None = None,
    ) -> TensorMapDescriptor:
        """Return what kernels need to copy boxes of the array between global and shared memory.

        Parameters
        ----------
        box_dim : tuple of int, optional
            The extents of the box, in elements: 1 to 256 each, in the order of the shape.
        options : TensorMapDescriptorOptions, optional
            The box and everything else, instead of the other parameters.
        element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
            As for :class:`~cuda_core_cffi.TensorMapDescriptorOptions`.

        Returns
        -------
        TensorMapDescriptor
            An argument of kernels.

        Raises
        ------
        TypeError, ValueError
            If the array or an option cannot be described. The message says which number is wrong.
        RuntimeError
            If the view's buffer is closed.
        CUDAError
            If the device has no tensor maps: they came with compute capability 9.0.
        """
        return maker()(
            self,
            box_dim,
            options=options,
            element_strides=element_strides,
            data_type=data_type,
            interleave=interleave,
            swizzle=swizzle,
            l2_promotion=l2_promotion,
            oob_fill=oob_fill,
        )


@functools.cache
def maker() -> Callable[..., TensorMapDescriptor]:
    """Return what makes tensor maps. Importing it each time would take half as long as a map."""
    from cuda_core_cffi._arrays.tensor_map import TensorMapDescriptor

    return TensorMapDescriptor._from_tiled
