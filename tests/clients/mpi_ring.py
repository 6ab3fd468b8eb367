# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pass memory of CUDA around a ring of processes, with mpi4py and NumPy.

    mpiexec -n 3 python -m cuda_core_cffi.as_cuda_core tests/clients/mpi_ring.py

Each process fills memory of its device, hands it to the next one through page-locked memory, and checks what it got.
"""

from __future__ import annotations

import numpy as np
from cuda.core import Device, LegacyPinnedMemoryResource
from mpi4py import MPI

SIZE = 1 << 16


def main() -> None:
    """Pass the memory around once, and check it."""
    world = MPI.COMM_WORLD
    device = Device(world.rank % len(Device.get_all_devices()))
    device.set_current()
    stream = device.create_stream()
    pinned = LegacyPinnedMemoryResource()
    with (
        device.allocate(SIZE, stream=stream) as memory,
        pinned.allocate(SIZE, stream=stream) as sent,
        pinned.allocate(SIZE, stream=stream) as received,
    ):
        memory.fill(world.rank + 1, stream=stream)
        memory.copy_to(sent, stream=stream)
        stream.sync()
        values = np.from_dlpack(received)
        before, after = (world.rank - 1) % world.size, (world.rank + 1) % world.size
        world.Sendrecv(np.from_dlpack(sent), dest=after, recvbuf=values, source=before)
        memory.copy_from(received, stream=stream)
        stream.sync()
        right = world.allgather(bool((values.view(np.uint8) == before + 1).all()))
        same = world.bcast(device if world.rank == 0 else None) is Device(0)
        if world.rank == 0:
            print(f"{world.size} processes: {'right' if all(right) and same else 'wrong'}", flush=True)
    stream.close()


if __name__ == "__main__":
    main()
