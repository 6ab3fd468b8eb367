# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Use every area of cuda.core that this package shares, and print what came of it.

    python tests/clients/every_area.py
    python -m cuda_core_cffi.as_cuda_core tests/clients/every_area.py

The first runs with cuda-core, the second with this package in its place. Both print the same.
"""

from __future__ import annotations

import multiprocessing
from typing import Any

import cuda.core as core
import numpy as np
from cuda.core import graph, utils

COUNT = 256
SOURCE = """
template <typename T> __global__ void scale(T *values, T factor, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] *= factor;
}
"""
CALLER = """
extern "C" __device__ int twice(int value);
extern "C" __global__ void fill(int *values) { values[threadIdx.x] = twice(threadIdx.x); }
"""
CALLED = 'extern "C" __device__ int twice(int value) { return 2 * value; }'
CONFIG = core.LaunchConfig(grid=COUNT // 64, block=64)


def show(what: str, *values: Any) -> None:
    """Print a line."""
    print(f"{what}:", *values, flush=True)


def content(buffer: Any, stream: Any, dtype: str = "int32") -> np.ndarray:
    """Return what is in a buffer."""
    host = core.LegacyPinnedMemoryResource().allocate(buffer.size)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    return np.array(np.from_dlpack(host)).view(dtype)


def child(pool: Any, memory: Any, event: Any) -> None:
    """Fill the memory of another process, in the order of an event of it."""
    device = core.Device()
    device.set_current()
    stream = device.create_stream()
    stream.wait(event)
    memory.fill(7, stream=stream)
    stream.sync()
    show("in the other process", pool.is_mapped, memory.size)
    memory.close()


def devices() -> tuple[Any, Any]:
    """Return the device and a stream."""
    device = core.Device(0)
    device.set_current()
    show("device", device.name, device.arch, device.compute_capability, device.properties.warp_size)
    show("devices", device in core.Device.get_all_devices(), device == core.Device(), device.can_access_peer(device))
    stream = device.create_stream(options=core.StreamOptions(nonblocking=True, priority=0))
    other = device.create_stream()
    begun = stream.record(options=core.EventOptions(timing_enabled=True))
    ended = stream.record(options=core.EventOptions(timing_enabled=True))
    other.wait(ended)
    other.sync()
    show("streams", stream.is_nonblocking, stream.priority, stream != other, stream.context == device.context)
    show("events", ended - begun >= 0, ended.is_done, ended.is_timing_enabled, begun.is_blocking_sync)
    return device, stream


def programs(stream: Any, memory: Any) -> tuple[Any, Any]:
    """Compile, link and launch; return the kernel, and what owns it."""
    arch = f"sm_{stream.device.arch}"
    program = core.Program(SOURCE, "c++", core.ProgramOptions(arch=arch, std="c++17"))
    code = program.compile("ptx", name_expressions=("scale<float>", "scale<int>"))
    kernel = code.get_kernel("scale<int>")
    memory.fill(1, stream=stream)
    core.launch(stream, CONFIG, kernel, memory, np.int32(3), np.int32(COUNT))
    show("launched", set(content(memory, stream).tolist()), kernel.num_arguments, code.code_type)
    show("occupancy", kernel.occupancy.max_active_blocks_per_multiprocessor(64, 0) > 0, kernel.attributes.num_regs > 0)
    options = core.ProgramOptions(arch=arch, relocatable_device_code=True)
    parts = [core.Program(text, "c++", options).compile("ptx") for text in (CALLER, CALLED)]
    linked = core.Linker(*parts, options=core.LinkerOptions(arch=arch)).link("cubin")
    core.launch(stream, core.LaunchConfig(grid=1, block=COUNT), linked.get_kernel("fill"), memory)
    show("linked", content(memory, stream)[:5], linked.code_type)
    return kernel, code


def resources(device: Any, stream: Any) -> None:
    """Allocate from each memory resource."""
    made = {
        "pool": core.DeviceMemoryResource(device, core.DeviceMemoryResourceOptions(max_size=1 << 24)),
        "device's pool": device.memory_resource,
        "pinned": core.PinnedMemoryResource(core.PinnedMemoryResourceOptions()),
        "managed": core.ManagedMemoryResource(core.ManagedMemoryResourceOptions()),
        "virtual": core.VirtualMemoryResource(device, core.VirtualMemoryResourceOptions()),
    }
    for name, resource in made.items():
        with resource.allocate(1 << 21, stream=stream) as buffer:
            if name == "pinned":  # cuda-core gives the devices no access to it
                stream.sync()
                np.from_dlpack(buffer).view("uint16")[...] = 513
            else:
                buffer.fill(b"\1\2", stream=stream)
            found = content(buffer, stream, "uint16")
            where = resource.is_device_accessible, resource.is_host_accessible, resource.is_managed
            show(name, where, set(found.tolist()), buffer.size, buffer.memory_resource is resource)


def graphs(stream: Any, memory: Any, kernel: Any) -> None:
    """Capture a graph, and define one."""
    builder = stream.create_graph_builder().begin_building()
    core.launch(builder, CONFIG, kernel, memory, np.int32(2), np.int32(COUNT))
    captured = builder.end_building().complete()
    definition = graph.GraphDefinition()
    filled = definition.memset(memory, 1, COUNT * 4)
    scaled = filled.launch(CONFIG, kernel, memory, np.int32(5), np.int32(COUNT))
    called: list[int] = []
    scaled.callback(lambda: called.append(1))
    defined = definition.instantiate()
    defined.launch(stream)
    captured.launch(stream)
    show("graphs", set(content(memory, stream).tolist()), called, len(definition.nodes()), len(definition.edges()))
    show("nodes", sorted(type(node).__name__ for node in definition.nodes()))
    inner = stream.device.create_graph_builder().begin_building()
    temporary = core.GraphMemoryResource(stream.device).allocate(1 << 20, stream=inner)
    temporary.fill(3, stream=inner)
    temporary.copy_to(inside := stream.device.allocate(1 << 20, stream=stream), stream=inner)
    temporary.close(inner)
    inner.end_building().complete().launch(stream)
    show("memory of a graph", set(content(inside, stream, "uint8").tolist()))


def views(stream: Any, memory: Any) -> None:
    """View memory of this and of other libraries."""
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = utils.StridedMemoryView.from_any_interface(array, stream_ptr=-1)
    show("view", view.shape, view.dtype, view.is_device_accessible, np.from_dlpack(view).tolist() == array.tolist())
    on_device = utils.StridedMemoryView.from_buffer(memory, (16, 16), dtype=np.dtype("int32"))
    show("view of a buffer", on_device.shape, on_device.ptr == int(memory.handle), on_device.device_id)
    show("DLPack", memory.__dlpack_device__(), type(memory.__dlpack__(stream=-1)).__name__)


def processes(device: Any, stream: Any) -> None:
    """Share memory and an event with another process."""
    pool = core.DeviceMemoryResource(device, core.DeviceMemoryResourceOptions(ipc_enabled=True))
    memory = pool.allocate(COUNT, stream=stream)
    memory.fill(1, stream=stream)
    event = stream.record(options=core.EventOptions(ipc_enabled=True))
    process = multiprocessing.get_context("spawn").Process(target=child, args=(pool, memory, event))
    process.start()
    process.join()
    show("shared", process.exitcode, set(content(memory, stream, "uint8").tolist()))


def main() -> None:
    """Use one area after the other."""
    device, stream = devices()
    resources(device, stream)
    memory = device.allocate(COUNT * 4, stream=stream)
    kernel, _ = programs(stream, memory)
    graphs(stream, memory, kernel)
    views(stream, memory)
    if device.properties.handle_type_posix_file_descriptor_supported:
        processes(device, stream)


if __name__ == "__main__":
    main()
