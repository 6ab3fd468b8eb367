# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Use devices in the workers of Dask: one device a worker, buffers and views in its tasks, and memory that two share.

It needs ``pip install distributed``; where that is not installed it says so. Objects of CUDA stay in the process that
made them: a worker makes its stream, kernel and pool once, when it starts, and tasks get and return NumPy arrays. What
two workers on one machine share is a buffer of a pool with ``ipc_enabled=True``, whose memory the second maps.
"""

from __future__ import annotations

import functools
import importlib.util
import pickle
import sys
from multiprocessing.reduction import ForkingPickler

import numpy as np
import saxpy  # noqa: F401  (its first lines choose the driver)

from cuda_core_cffi import Device, DeviceMemoryResource, LaunchConfig, Program, ProgramOptions, launch
from cuda_core_cffi.utils import StridedMemoryView

WORKERS = 2
COUNT = 1000
SOURCE = """
extern "C" __global__ void square(double *values, long long count)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < count) values[i] *= values[i];
}
"""


class Gpu:
    """What a worker needs of its device."""

    def __init__(self, number: int) -> None:
        self.device = Device(number % len(Device.get_all_devices()))
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.pool = DeviceMemoryResource(self.device, {"ipc_enabled": True})
        options = ProgramOptions(arch=f"sm_{self.device.arch}")
        self.kernel = Program(SOURCE, "c++", options).compile().get_kernel("square")
        self.shared: list[object] = []

    def square(self, values: object, keep: bool = False) -> np.ndarray | bytes:
        """Square an array of any library that a view can show, on the device.

        With ``keep`` the result stays there, and what is returned is a reference for one other process.
        """
        self.device.set_current()  # the thread of a task may be another one than that of the last
        view = StridedMemoryView.from_any_interface(values, self.stream.handle)
        memory = self.pool.allocate(8 * view.size, self.stream)
        there = StridedMemoryView.from_buffer(memory, view.shape, dtype=np.dtype(np.float64))
        there.copy_from(view, stream=self.stream)
        config = LaunchConfig(grid=-(-view.size // 256), block=256)
        launch(self.stream, config, self.kernel, memory, view.size)
        if keep:
            self.stream.sync()  # sending a buffer orders nothing
            self.shared.append(memory)
            return bytes(ForkingPickler.dumps(memory))
        result = np.empty(view.shape)
        memory.copy_to(result, stream=self.stream)
        self.stream.sync()
        memory.close(self.stream)
        return result

    def read(self, reference: bytes) -> np.ndarray:
        """Return what is in a buffer of another process of this machine."""
        with pickle.loads(reference) as memory, Device(memory.device_id) as device, device.create_stream() as stream:
            result = np.empty(memory.size // 8)
            memory.copy_to(result, stream=stream)
            stream.sync()
        return result

    def close(self) -> None:
        """Give back what other processes have mapped."""
        while self.shared:
            self.shared.pop().close(self.stream)
        self.stream.sync()


@functools.cache
def gpu() -> Gpu:
    """Return the Gpu of this worker, which is a process."""
    from distributed import get_worker

    return Gpu(int(get_worker().name))  # workers of a LocalCluster are named 0, 1, ...


def square(part: np.ndarray) -> np.ndarray:
    """Square a part of the array: a task."""
    return gpu().square(part)


def square_and_keep(part: np.ndarray) -> bytes:
    """Square an array and leave the result on the device: a task."""
    return gpu().square(part, keep=True)


def read(reference: bytes) -> np.ndarray:
    """Return what another worker has on its device: a task."""
    return gpu().read(reference)


def device_number() -> int:
    """Return the number of this worker's device: a task."""
    return gpu().device.device_id


def close() -> None:
    """Give back what other workers have read: a task."""
    gpu().close()


def main() -> int:
    """Square an array in two workers, share a buffer between them, and return the exit status."""
    if importlib.util.find_spec("distributed") is None:
        print("there is no Dask: pip install distributed")
        return 0
    from distributed import Client, LocalCluster

    values = np.arange(COUNT, dtype=np.float64)
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        workers = client.scheduler_info()["workers"]
        first, second = sorted(workers, key=lambda address: workers[address]["name"])
        devices = [client.submit(device_number, workers=[name], pure=False).result() for name in (first, second)]
        parts = client.gather(client.map(square, np.array_split(values, 4)))
        reference = client.submit(square_and_keep, values, workers=[first])
        shared = client.submit(read, reference, workers=[second]).result()
        client.submit(close, workers=[first]).result()
    right = bool((np.concatenate(parts) == values**2).all() and (shared == values**2).all())
    verdict = "right" if right else "WRONG"
    print(f"{COUNT} numbers squared by workers of Dask on the devices {devices}, and shared by two of them: {verdict}")
    return 0 if right else 1


if __name__ == "__main__":
    import dask_workers  # so that tasks are functions of a module, which the workers import

    sys.exit(dask_workers.main())
