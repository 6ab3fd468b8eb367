# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Give arrays of any library to a C function: a view says where the elements are, and nothing is copied.

Needs a C compiler, and neither a GPU nor a driver.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

import cffi
import numpy as np

from cuda_core_cffi.utils import StridedMemoryView, args_viewable_as_strided_memory

DECLARATION = "void running_sum(int32_t *x, int64_t count, int64_t stride);"
SOURCE = r"""
#include <stdint.h>

/* Replace each element by the sum of those up to it; strides count elements. */
void running_sum(int32_t *x, int64_t count, int64_t stride)
{
    for (int64_t i = 1; i < count; ++i)
        x[i * stride] += x[(i - 1) * stride];
}
"""


def compile_c(folder: str) -> tuple[cffi.FFI, Any]:
    """Compile the C function and return how to call it."""
    source, library = pathlib.Path(folder, "sum.c"), pathlib.Path(folder, "sum.so")
    source.write_text(SOURCE)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    ffi = cffi.FFI()
    ffi.cdef(DECLARATION)
    return ffi, ffi.dlopen(str(library))


@args_viewable_as_strided_memory((0,))
def running_sum(array: Any, ffi: cffi.FFI, library: Any) -> StridedMemoryView:
    """Sum a one-dimensional array of 32-bit integers up, in place."""
    view = array.view(-1)  # memory of the host: there is no stream to wait for
    if view.device_id != -1 or view.readonly or view.dtype != np.int32 or len(view.shape) != 1:
        raise ValueError(f"running_sum takes a writable one-dimensional array of int32 on the host, not {view!r}")
    stride = 1 if view.strides is None else view.strides[0]
    library.running_sum(ffi.cast("int32_t *", view.ptr), view.size, stride)
    return view


def arrays() -> list[tuple[str, Any]]:
    """Return arrays to work on, of the libraries that are here."""
    found: list[tuple[str, Any]] = [
        ("NumPy", np.arange(10, dtype=np.int32)),
        ("NumPy, every third element backwards", np.arange(30, dtype=np.int32)[::-3]),
    ]
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: its tensors are left out.")
    else:
        found.append(("PyTorch, a column", torch.arange(40, dtype=torch.int32).reshape(10, 4)[:, 1]))
    return found


def main() -> int:
    """Run the job and return the exit status."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        ffi, library = compile_c(folder)
        for name, array in arrays():
            expected = np.cumsum(array, dtype=np.int32)
            view = running_sum(array, ffi, library)
            right = bool((np.asarray(array) == expected).all())
            wrong += not right
            print(f"{name}: stride {view.strides}, {'right' if right else 'WRONG'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
