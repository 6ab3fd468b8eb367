# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Finds from which driver on each feature works, by trying it on simulated drivers of every version.

python docs/drivers.py           say whether docs/drivers.md has the table that this makes
python docs/drivers.py --write   write the table into docs/drivers.md
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

PAGE = pathlib.Path(__file__).resolve().parent / "drivers.md"
BEGIN, END = "<!-- written by docs/drivers.py -->\n", "<!-- end -->\n"
VERSIONS = (
    *(12000, 12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090),
    *(13000, 13010, 13020, 13030, 13040, 13050),
)
"""Drivers to try, as ``cuDriverGetVersion`` tells them: CUDA 12.0, the oldest supported, to the newest header."""

PRELUDE = """
import os
from cuda_core_cffi import *
from cuda_core_cffi import checkpoint, coredump, graph, utils
from cuda_core_cffi.typing import *

device = Device()
device.set_current()
stream = device.create_stream()
code = ObjectCode.from_ptx(b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 a) { ret; }
''')
kernel = code.get_kernel("k")
pinned = LegacyPinnedMemoryResource().allocate(4096)
memory = device.allocate(4096, stream=stream)

def run(**options):
    launch(stream, LaunchConfig(grid=1, block=32, **options), kernel, 0)
    stream.sync()

def captured(work):
    builder = device.create_graph_builder().begin_building()
    work(builder)
    builder.end_building().complete().launch(stream)
    stream.sync()

def condition(builder):
    branch = builder.if_then(builder.create_condition(default_value=0)).begin_building()
    launch(branch, LaunchConfig(grid=1, block=1), kernel, 0)
    branch.end_building()

def view(*shape):
    return utils.StridedMemoryView.from_buffer(device.allocate(1 << 17, stream=stream), shape, dtype="float32")

def managed(work):
    with ManagedMemoryResource().allocate(4096, stream) as buffer:
        work(buffer)
        stream.sync()

def dump(name):
    getattr(coredump.CoreDumpSettings(), name)
"""
FEATURES = {
    "devices, contexts, streams, events": "stream.record().sync()",
    "memory pools, virtual memory, pinned memory": (
        "device.allocate(64, stream=stream).close(); VirtualMemoryResource(device).allocate(1 << 21).close()"
    ),
    "copies and fills; `copy_batch`, on older drivers one copy after the other": (
        "memory.copy_to(pinned, stream=stream); utils.copy_batch(stream, [memory], [pinned]); stream.sync()"
    ),
    "object code and kernels": "code.get_kernel('k').attributes.num_regs",
    "launches, also with clusters and memory synchronization domains": "run(cluster=1, mem_sync_domain='remote')",
    "graphs: `GraphDefinition`": "graph.GraphDefinition().instantiate().launch(stream)",
    "graphs: `GraphBuilder`, captures of work and memory": (
        "captured(lambda builder: (launch(builder, LaunchConfig(grid=1, block=1), kernel, 0), "
        "GraphMemoryResource(device).allocate(64, builder).close(builder)))"
    ),
    "stream memory operations": "pinned.write_value(1, stream=stream); stream.sync()",
    "textures, surfaces, opaque arrays": (
        "device.create_opaque_array({'shape': (4, 4), 'format': 'float32', 'num_channels': 1}).close()"
    ),
    "tensor maps: `as_tensor_map`, `from_im2col`": "view(32, 64).as_tensor_map((8, 8))",
    "tensor maps: `from_im2col_wide`": ("TensorMapDescriptor.from_im2col_wide(view(4, 8, 8, 16), -1, 2, 16, 32)"),
    "settings of core dumps": "dump('on_exception')",
    "`Kernel.arguments_info`": "kernel.arguments_info",
    "green contexts": "device.create_context(ContextOptions([device.resources.sm.split({'count': (16,)})[0][0]]))",
    "green contexts: groups of multiprocessors of different sizes": "device.resources.sm.split({'count': (8, 16)})",
    "green contexts: queues of work": "device.resources.workqueue",
    "conditions in graphs": "captured(condition)",
    "`checkpoint.Process`": "checkpoint.Process(os.getpid()).state",
    "`DriverLogListener`, the error log in exceptions": "with utils.DriverLogListener(): pass",
    "`PinnedMemoryResource` with a `numa_id`": "PinnedMemoryResource({'numa_id': 0}).allocate(64, stream).close()",
    "`PinnedMemoryResource` without options": "PinnedMemoryResource().allocate(64, stream).close()",
    "`ManagedMemoryResource`": "managed(lambda buffer: None)",
    "`ManagedBuffer.discard`, `discard_prefetch`": "managed(lambda buffer: buffer.discard(stream=stream))",
    "`LaunchConfig(nvlink_util_centric_scheduling=...)`": "run(nvlink_util_centric_scheduling=True)",
    "`LaunchConfig(portable_cluster_size=..., shared_memory_mode=...)`": (
        "run(portable_cluster_size='default', shared_memory_mode='default')"
    ),
}


def try_features(version: int) -> dict[str, str]:
    """Return what came of each feature on a driver of a version: an empty text, or what was raised."""
    lines = [PRELUDE, "for name, code_ in " + repr(FEATURES) + ".items():"]
    lines += ["    try:", "        exec(code_)", "    except Exception as error:"]
    lines += ["        print(name, type(error).__name__ + ': ' + str(error).splitlines()[0], sep='\\t')"]
    lines += ["    else:", "        print(name, '', sep='\\t')"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_SIM_")}
    environment |= {"CUDA_CORE_CFFI_DRIVER": "simulator", "CUDA_SIM_DRIVER_VERSION": str(version)}
    environment["CUDA_SIM_COMPUTE_CAPABILITY"] = "10.0"  # so that no feature waits for a newer device
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", "\n".join(lines)],
            env=environment,
            cwd=empty,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"driver {version}: {done.stdout}{done.stderr}")
    return dict(line.split("\t") for line in done.stdout.splitlines())


def table() -> str:
    """Return the table: features in the order of the drivers that brought them.

    Raises
    ------
    RuntimeError
        If a feature works on no driver, fails on a newer one, or fails otherwise than with ``UnavailableError``.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        told = dict(zip(VERSIONS, pool.map(try_features, VERSIONS)))
    first: dict[str, int] = {}
    for name in FEATURES:
        working = [version for version in VERSIONS if not told[version][name]]
        if not working or working != list(VERSIONS[-len(working) :]):
            raise RuntimeError(
                f"{name}: works on the drivers {working}, says {told[VERSIONS[-1]][name]!r} on the newest"
            )
        first[name] = working[0]
        for version in VERSIONS[: -len(working)]:
            if not told[version][name].startswith("UnavailableError"):
                raise RuntimeError(f"{name}: says {told[version][name]!r} on driver {version}")
    rows = [f"| {name} | {cuda(first[name])} |\n" for name in sorted(FEATURES, key=first.__getitem__)]
    return "".join(["| feature | from driver |\n", "|---|---|\n", *rows])


def cuda(version: int) -> str:
    """Return the version of CUDA that a driver is for, as it is written."""
    return f"{version // 1000}.{version % 1000 // 10}"


def page(text: str) -> str:
    """Return the page with the table in it, from the page as it is."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    """Run the command line."""
    text = PAGE.read_text(encoding="utf-8")
    made = page(text)
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(made, encoding="utf-8")
    elif made != text:
        print("docs/drivers.md does not show what works: python docs/drivers.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
