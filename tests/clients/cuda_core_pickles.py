# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Make pickles with cuda-core, or read them with it, on the simulated driver.

    python tests/clients/cuda_core_pickles.py make > tests/clients/cuda_core_pickles.json
    python -m cuda_core_cffi.as_cuda_core tests/clients/cuda_core_pickles.py make > ours.json
    python tests/clients/cuda_core_pickles.py read ours.json

The first line needs cuda-core, and makes the file that tests/package/test_alias_pickles.py reads. The others show which
pickles of this package cuda-core reads: each is printed after the expression that made it. LD_LIBRARY_PATH has a folder
in which the simulated driver is libcuda.so.1.
"""

from __future__ import annotations

import base64
import enum
import inspect
import json
import pickle
import sys
from types import ModuleType
from typing import Any

import cuda.core
from cuda.core import checkpoint, graph, system, texture, typing, utils
from cuda.core._utils import cuda_utils

PTX = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"
PROTOCOLS = (2, 4)  # which have names in classes in two ways
MODULES = {
    "c": cuda.core,
    "checkpoint": checkpoint,
    "graph": graph,
    "system": system,
    "texture": texture,
    "typing": typing,
    "utils": utils,
}
NAMES = {**MODULES, "cuda_utils": cuda_utils, "PTX": PTX}

OBJECTS = [
    "c.Device(0)",
    "c.Device(0).compute_capability",
    "c.Host()",
    "c.Host(1)",
    "c.Host.numa_current()",
    "c.ObjectCode.from_ptx(PTX, name='code', symbol_mapping={'first': b'k'})",
    "c.ObjectCode.from_cubin(b'\\x7fELF', name='damaged')",
    "cuda_utils.CUDAError('CUDA_ERROR_INVALID_VALUE: text')",
    "cuda_utils.NVRTCError('text')",
]
OPTIONS = [
    "c.DeviceMemoryResourceOptions(max_size=4096)",
    "c.EventOptions(timing_enabled=True)",
    "c.LinkerOptions(arch='sm_90', link_time_optimization=True)",
    "c.ManagedMemoryResourceOptions()",
    "c.PinnedMemoryResourceOptions(max_size=4096)",
    "c.ProgramOptions(arch='sm_90', define_macro=[('A', '1')])",
    "c.SMResourceOptions(count=8)",
    "c.StreamOptions(nonblocking=False, priority=-1)",
    "c.TensorMapDescriptorOptions(box_dim=(8, 8))",
    "c.VirtualMemoryResourceOptions(addr_hint=4096)",
    "c.WorkqueueResourceOptions(concurrency_limit=4)",
    "graph.GraphCompleteOptions(auto_free_on_launch=True)",
    "graph.GraphDebugPrintOptions(handles=True)",
    "texture.OpaqueArrayOptions(shape=(4,), format='float32', num_channels=1)",
    "texture.TextureObjectOptions(normalized_coords=True)",
    "utils.CopyOptions()",
]


def public_names(name: str, module: ModuleType) -> list[str]:
    """Return expressions for the classes and functions of a module, and for the first member of each enumeration."""
    found = []
    for public in sorted(dir(module)):
        item = getattr(module, public)
        if public.startswith("_") or not str(getattr(item, "__module__", "")).startswith("cuda.core"):
            continue
        if inspect.isclass(item) or callable(item):
            found.append(f"{name}.{public}")
        if inspect.isclass(item) and issubclass(item, enum.Enum):
            found.append(f"next(iter({name}.{public}))")
    return found


def make() -> dict[str, dict[str, str]]:
    """Return the pickles of all expressions, by protocol, as base64. Objects without a pickle are left out."""
    names = [expression for name, module in MODULES.items() for expression in public_names(name, module)]
    made: dict[str, dict[str, str]] = {}
    for expression in [*OBJECTS, *OPTIONS, *names]:
        protocols = PROTOCOLS if "(" in expression else PROTOCOLS[-1:]
        try:
            item = eval(expression, dict(NAMES))
            made[expression] = {
                str(protocol): base64.b64encode(pickle.dumps(item, protocol)).decode() for protocol in protocols
            }
        except Exception as error:
            print(f"{expression}: {error!r}", file=sys.stderr)
    return made


def shown(item: Any) -> str:
    """Return an object as text, for comparison."""
    if isinstance(item, cuda.core.ObjectCode):
        return repr((item.code, str(item.code_type), item.name, item.symbol_mapping))
    return f"{type(item).__name__} {item!r}"


def main() -> int:
    """Make pickles, or read them."""
    if sys.argv[1:] == ["make"]:
        json.dump(make(), sys.stdout, indent=1)
        print()
        return 0
    failed = 0
    with open(sys.argv[2], encoding="utf-8") as file:
        made: dict[str, dict[str, str]] = json.load(file)
    for expression, by_protocol in made.items():
        for protocol, text in by_protocol.items():
            try:
                print(f"{expression} {protocol}\t{shown(pickle.loads(base64.b64decode(text)))}")
            except Exception as error:
                failed += 1
                print(f"{expression} {protocol}\t{error!r}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
