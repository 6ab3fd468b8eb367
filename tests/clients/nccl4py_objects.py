# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Show nccl4py what it may be given, and check what it makes of it. Without a GPU there is nothing to reduce.

    python tests/clients/nccl4py_objects.py
    python -m cuda_core_cffi.as_cuda_core tests/clients/nccl4py_objects.py

In the first nccl4py works with cuda-core, and gets objects of this package all the same.
"""

from __future__ import annotations

import sys

import numpy as np
from nccl.core.buffer import NcclBuffer
from nccl.core.cuda import get_stream_ptr
from nccl.core.typing import INT8, INT64

from cuda_core_cffi import Device
from cuda_core_cffi.utils import StridedMemoryView


def main() -> int:
    """Check buffers, views and streams, in a capture too, and return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    memory = device.allocate(64, stream=stream)
    view = StridedMemoryView.from_buffer(memory, (8,), dtype=np.dtype(np.int64))
    address, queue = int(memory.handle), int(stream.handle)
    wrong = []

    def check(what: str, found: object, expected: object) -> None:
        if found != expected:
            wrong.append(f"{what}: {found}, not {expected}")

    def check_all(where: str) -> None:
        for item, count, kind in ((memory, 64, INT8), (view, 8, INT64)):
            taken = NcclBuffer(item, stream)
            found = (taken.ptr, taken.count, taken.dtype, taken.device_id)
            check(f"{type(item).__name__} {where}", found, (address, count, kind, 0))
        check(f"Stream {where}", get_stream_ptr(stream), queue)

    check_all("in a stream")
    with stream.create_graph_builder() as builder:
        builder.begin_building()
        check_all("in a capture")
        check("GraphBuilder", get_stream_ptr(builder), queue)
        builder.end_building()
    memory.close()
    stream.close()
    print("\n".join([*wrong, f"nccl4py takes our objects: {'wrong' if wrong else 'right'}"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
