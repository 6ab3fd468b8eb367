# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver API, function by function.

Every function returns a tuple: the :class:`CUresult`, then the outputs, which are not among the arguments:

>>> from cuda_core_cffi import driver
>>> err, version = driver.cuDriverGetVersion()
>>> driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)
(<CUresult.CUDA_SUCCESS: 0>, 32)
>>> driver.cuCtxSynchronize()
(<CUresult.CUDA_SUCCESS: 0>,)

The outputs are None when the status is an error, except for those that explain it. Names and conventions are those of
NVIDIA's ``cuda.bindings.driver``.

- Enumerations are ``enum.IntEnum``; a value that a newer driver adds stays an integer.
- Handles and device addresses are integers of their own classes. A handle argument may be any integer, a CFFI
  pointer, an object with an integer ``handle``, or None. A handle of another class is refused, and an object of this
  package that is of another kind or closed.
- Structures and unions are classes with the fields of C: ``CUmemLocation(type=..., id=0)``. An output structure is a
  new object.
- Memory (``void *``) is an address, a CFFI pointer, an object with the buffer protocol, or None.
- An array argument is a list or tuple; its length stays an argument of its own.
- A callback is the address of a C function, or a CFFI function pointer.

An argument of the wrong type is a TypeError, and one that is out of range an OverflowError or ValueError; the
driver is not called then.
"""

from __future__ import annotations

from cuda_core_cffi._raw import generated as _generated
from cuda_core_cffi._raw.generated import *  # noqa: F403

__all__: list[str] = []
__all__ += _generated.__all__
