# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Use a device in actors of Ray: buffers and views in their methods, and memory that two actors share.

It needs ``pip install ray``; where that is not installed it says so. Ray shows an actor the devices that it reserves
for it (``CUDA_VISIBLE_DEVICES``), so an actor takes number 0. These two reserve half a device each, and get the same.
Arrays come from Ray's object store as NumPy arrays that are read-only, of which views are made as of others.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys

import numpy as np
from dask_workers import COUNT, Gpu

from cuda_core_cffi import system


class Actor(Gpu):
    """An actor with half a device."""

    def __init__(self, key: bytes) -> None:
        # Processes of multiprocessing have a key in common, with which they may get each other's file descriptors. Ray
        # starts processes in its own way, so they are told the key.
        multiprocessing.current_process().authkey = key
        multiprocessing.set_start_method("spawn", force=True)
        super().__init__(0)

    def name(self) -> str:
        """Return the name of the device."""
        return self.device.name


def main() -> int:
    """Square an array in two actors, share a buffer between them, and return the exit status."""
    if importlib.util.find_spec("ray") is None:
        print("there is no Ray: pip install ray")
        return 0
    import ray

    values = np.arange(COUNT, dtype=np.float64)
    devices = system.get_num_devices()  # without a context, as Ray starts processes from here
    ray.init(num_cpus=2, num_gpus=devices, include_dashboard=False, logging_level="ERROR")
    key = bytes(multiprocessing.current_process().authkey)
    kind = ray.remote(num_gpus=0.5)(Actor)
    first, second = kind.remote(key), kind.remote(key)
    stored = ray.put(values)
    results = ray.get([actor.square.remote(stored) for actor in (first, second)])
    shared = ray.get(second.read.remote(first.square.remote(stored, keep=True)))
    ray.get(first.close.remote())
    name = ray.get(first.name.remote())
    ray.shutdown()
    right = all((result == values**2).all() for result in (*results, shared))
    print(
        f"{COUNT} numbers squared by two actors of Ray on {name}, and shared by them: {'right' if right else 'WRONG'}"
    )
    return 0 if right else 1


if __name__ == "__main__":
    import ray_actors  # so that the class is that of a module, which the actors import

    sys.exit(ray_actors.main())
