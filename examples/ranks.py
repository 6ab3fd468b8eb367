# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Find out which rank a process is, which device it takes, and hand bytes from rank 0 to the others over TCP.

Started by a launcher, this script prints what the launcher tells its ranks:

    torchrun --nproc-per-node=2 examples/ranks.py
    mpirun -n 2 python examples/ranks.py
    srun --ntasks-per-node=2 python examples/ranks.py

Without a launcher there is one rank, unless the variables of torchrun are set by hand, in the shells of each machine:

    MASTER_ADDR=node0 RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 python examples/ranks.py
"""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
import time

import saxpy  # noqa: F401  (its first lines choose the driver)

from cuda_core_cffi import Device

PORT = 29501  # where MASTER_PORT is not set; torchrun itself listens at MASTER_PORT, so the next one is taken
PATIENCE = 60  # seconds, until every rank must have started

# The variables with the rank, the number of ranks, and the rank among those of the same machine. Inside a job of Slurm,
# ranks of torchrun and mpirun inherit the variables of the job's script: so Slurm's are looked at last.
LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    "Slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
}


@dataclasses.dataclass(frozen=True)
class Ranks:
    """Which rank this process is, of how many.

    Attributes
    ----------
    rank, size, local : int
        The rank, the number of ranks, and the rank among those of this machine.
    launcher : str
        Whose variables told it: a key of ``LAUNCHERS``, or ``"nobody"``.
    """

    rank: int = 0
    size: int = 1
    local: int = 0
    launcher: str = "nobody"

    @classmethod
    def find(cls) -> Ranks:
        """Return what the environment tells."""
        for launcher, (rank, size, local) in LAUNCHERS.items():
            if rank in os.environ and size in os.environ:
                number = int(os.environ[rank])
                return cls(number, int(os.environ[size]), int(os.environ.get(local, number)), launcher)
        return cls()

    def device(self) -> Device:
        """Make the device of this rank current, and return it.

        A rank takes the device whose number is its rank on this machine. Where the launcher shows each rank one device
        (``CUDA_VISIBLE_DEVICES``, ``srun --gpus-per-task=1 --gpu-bind=single:1``), that is number 0.
        """
        device = Device(self.local % len(Device.get_all_devices()))
        device.set_current()
        return device

    def broadcast(self, value: bytes) -> bytes:
        """Return the bytes that rank 0 gives; the other ranks give as many, whatever they are.

        Rank 0 listens at ``MASTER_ADDR``, which all ranks must be able to reach, and sends to each that connects.
        """
        if self.size == 1:
            return value
        place = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", PORT - 1)) + 1
        if self.rank == 0:
            with socket.create_server(place, backlog=self.size) as server:
                server.settimeout(PATIENCE)
                for found in range(1, self.size):
                    try:
                        connection = server.accept()[0]
                    except TimeoutError:
                        message = f"{found} of {self.size} ranks have come to {place} in {PATIENCE} seconds"
                        raise TimeoutError(message) from None
                    with connection:
                        connection.sendall(value)
            return value
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with socket.create_connection(place, timeout=PATIENCE) as connection, connection.makefile("rb") as file:
                    received = file.read(len(value))
                break
            except ConnectionRefusedError:  # rank 0 does not listen yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        if len(received) != len(value):
            raise ConnectionError(f"rank 0 sent {len(received)} of {len(value)} bytes")
        return received


def main() -> int:
    """Print which rank this is, and return the exit status."""
    ranks = Ranks.find()
    device = ranks.device()
    told = ranks.broadcast(b"hello" if ranks.rank == 0 else bytes(5))
    print(
        f"rank {ranks.rank} of {ranks.size}, by the variables of {ranks.launcher}, takes device {device.device_id} "
        f"({device.name}); rank 0 says {told.decode()}",
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
