# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The rows: what is measured, once for both Python packages, whose documented API is the same where both have it."""

from __future__ import annotations

from typing import NamedTuple

STRETCH = 256
"""Calls timed in one go. Between stretches, untimed, the device is synchronised, so that no queue grows full."""

BACK_TO_BACK = 5000
"""Calls of the second form of a row, after which the device is synchronised once, within the time that is measured."""

ARGUMENT_COUNTS = (0, 1, 4, 16, 256, 512)
PREPARED_COUNTS = (0, 4, 16)
BATCH = 100
MOST_SPELLED_OUT = 16
ARGUMENTS = (("float *", "buffer"), ("long long", "7"), ("double", "0.5"))
MIXED = {
    "float *": "buffer",
    "long long": "7",
    "double": "0.5",
    "bool": "True",
    "int": "int32",
    "float": "float32",
    "short": "int16",
    "unsigned char": "uint8",
}
"""The parameters of the kernel with arguments of mixed types, and the names of what it is given."""


class Row(NamedTuple):
    """One call that is timed.

    Attributes
    ----------
    name : str
        What the table and ``--only`` call it.
    statement : str
        The Python that is timed, of names that :class:`~benchmarks.workbench.Workbench` has.
    c : str or None
        The function in ``limits.c`` that makes the same driver calls; None where there is no call to make.
    peer : bool
        Whether cuda-core has it too.
    launches : int
        How many kernels one call launches, where that fills a queue.
    foreign : bool
        Whether it needs another library: such rows are measured last, each in a process of its own.
    """

    name: str
    statement: str
    c: str | None = None
    peer: bool = True
    launches: int = 1
    foreign: bool = False


class Several(NamedTuple):
    """Something that gives several figures at once, each of which is a row of the table.

    Attributes
    ----------
    name : str
        What ``--only`` and messages call it.
    parts : tuple of str
        The rows, which ``--only`` finds as well.
    sizes : tuple of int
        For growth: of how many threads, buffers or nodes it is measured.
    row : str
        For threads: the row that they run.
    """

    name: str
    parts: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    row: str = ""


def values_of(count: int) -> list[str]:
    """Return the ``count`` arguments of a launch, as they are written."""
    return [ARGUMENTS[index % len(ARGUMENTS)][1] for index in range(count)]


def launch_row(count: int) -> Row:
    """Return the row that launches an empty kernel with ``count`` arguments."""
    values = [f"*arguments{count}"] if count > MOST_SPELLED_OUT else values_of(count)
    call = ", ".join(["stream", "config", f"kernel{count}", *values])
    return Row(f"launch, {count} argument{'s' * (count != 1)}", f"launch({call})", f"launch{count}")


def prepared_row(count: int) -> Row:
    """Return the row of a prepared launch of an empty kernel with ``count`` arguments."""
    call = ", ".join(["stream", *values_of(count)])
    return Row(f"prepared launch, {count} arguments", f"prepared{count}.launch({call})", f"prepared{count}", peer=False)


def view_row(what: str, name: str, foreign: bool = True) -> Row:
    """Return the row that makes a view of another library's array."""
    statement = f"StridedMemoryView.from_any_interface({name}, -1)"
    return Row(f"StridedMemoryView of {what}", statement, foreign=foreign)


def empty_kernel(name: str, types: list[str]) -> str:
    """Return the source of a kernel that does nothing."""
    parameters = ", ".join(f"{kind} a{index}" for index, kind in enumerate(types))
    return f'extern "C" __global__ void {name}({parameters}) {{}}\n'


TENSOR_MAP = "struct __align__(64) tensor_map { char bytes[128]; };\n"
"""What a kernel takes for a CUtensorMap, without the headers of CUDA."""

KERNEL_SOURCE = (
    TENSOR_MAP
    + empty_kernel("kernel_mixed", list(MIXED))
    + "".join(
        empty_kernel(f"kernel{count}", [ARGUMENTS[index % len(ARGUMENTS)][0] for index in range(count)])
        for count in ARGUMENT_COUNTS
    )
    + empty_kernel("kernel_tensor", ["const __grid_constant__ tensor_map"])
)

ROWS = (
    Row("allocate+close, own stream", "device.allocate(1024, stream=stream).close()", "allocate_own"),
    Row("allocate+close, default stream", "device.allocate(1024, stream=default_stream).close()", "allocate_default"),
    Row("fill 1 KiB", "buffer.fill(0, stream=stream)", "fill"),
    Row("copy device to device, 1 KiB", "other.copy_from(buffer, stream=stream)", "copy_device"),
    Row("copy pinned to device, 1 KiB", "buffer.copy_from(pinned, stream=stream)", "copy_pinned"),
    Row("event create+close", "device.create_event().close()", "event_create"),
    Row("event record", "stream.record(event)", "event_record"),
    Row("event query", "event.is_done", "event_query"),
    Row("event sync", "event.sync()", "event_sync"),
    Row("event elapsed", "end - start", "event_elapsed"),
    Row("stream create+close", "device.create_stream().close()", "stream_create"),
    Row("stream sync", "stream.sync()", "stream_sync"),
    Row("stream wait event", "stream.wait(event)", "stream_wait_event"),
    Row("stream wait stream", "stream.wait(second)", "stream_wait_stream"),
    Row("Device()", "Device()", "device_current"),
    Row("Device(0)", "Device(0)"),
    Row("set_current", "device.set_current()", "set_current"),
    Row("device property", "device.properties.multiprocessor_count"),
    *(launch_row(count) for count in ARGUMENT_COUNTS),
    Row(
        f"launch, {len(MIXED)} arguments of mixed types",
        f"launch(stream, config, kernel_mixed, {', '.join(MIXED.values())})",
        "launch_mixed",
    ),
    *(prepared_row(count) for count in PREPARED_COUNTS),
    Row(f"batch of {BATCH} launches", "batch.launch(stream)", "batch", False, BATCH),
    Row(f"batch of {BATCH}, packed anew", "LaunchBatch(launches).launch(stream)", "batch", False, BATCH),
    Row("graph launch, 1 kernel", "graph.launch(stream)", "graph_launch"),
    Row("array create+close", "device.create_opaque_array(array_options).close()"),
    Row("texture create+close", "device.create_texture_object(resource=array_resource, options=sampling).close()"),
    Row("copy device to array, 1 KiB", "array.copy_from(buffer, stream=stream)"),
    Row("launch with a texture", "launch(stream, config, kernel1, texture.handle)"),
    Row("tensor map create", "tensor_view.as_tensor_map((8, 16))"),
    Row("tensor map, replace address", "tensor_map.replace_address(other_view)"),
    Row("launch with a tensor map", "launch(stream, config, kernel_tensor, tensor_map)"),
    view_row("a NumPy array", "numpy_array", foreign=False),
    view_row("a CuPy array", "cupy_array"),
    view_row("a PyTorch tensor", "torch_tensor"),
    view_row("a JAX array", "jax_array"),
    Row("DLPack round trip", "StridedMemoryView.from_dlpack(buffer, -1)"),
    Row("DLPack to NumPy", "numpy_from_dlpack(pinned)"),
    Row("NVML memory info", "nvml_device.memory_info.used"),
    Row("NVML utilization", "nvml_device.utilization.gpu"),
    Row("compile, warm cache in memory", "Program(source, 'c++', options).compile(target, cache=memory_cache)"),
    Row("compile, warm cache on disk", "Program(source, 'c++', options).compile(target, cache=disk_cache)"),
)

IMPORT_PARTS = ("import", "import and set_current", "resident memory after import")
FRESH = Several("import", IMPORT_PARTS)
"""Measured in a process of its own for each value."""

PACKED = Several("size", ("wheel size", "installed size"))
"""Read off what is installed."""


def threads_of(row: str) -> Several:
    """Return the growth of a row with the number of threads."""
    name = f"threads: {row}"
    return Several(name, (name,), (1, 2, 4, 8, 16), row)


THREADS = (
    threads_of("launch, 4 arguments"),
    threads_of("prepared launch, 4 arguments"),
    threads_of(f"batch of {BATCH} launches"),
    threads_of("allocate+close, own stream"),
)
LIVE = Several(
    "live buffers",
    ("live buffers: allocate", "live buffers: close", "live buffers: memory"),
    (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000),
)
GRAPHS = Several(
    "graph nodes",
    ("graph nodes: define", "graph nodes: capture", "graph nodes: instantiate", "graph nodes: launch"),
    (10, 100, 1_000, 10_000, 100_000),
)
GROWTH = (*THREADS, LIVE, GRAPHS)


def back_to_back(name: str) -> str:
    """Return what the results call the second form of a row."""
    return f"{name}, back to back"


def find_row(name: str) -> Row:
    """Return the row of that name."""
    return next(row for row in ROWS if row.name == name)


def find_growth(name: str) -> Several:
    """Return the growth of that name."""
    return next(series for series in GROWTH if series.name == name)
