# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Launch attributes on simulated devices and drivers that are older or newer than those at hand."""

from __future__ import annotations

import pytest
from helpers import SUPPORT, output_of

pytestmark = pytest.mark.simulator_only("simulates other devices and other drivers")

TESTS = str(SUPPORT)
PREAMBLE = """
import sys
sys.path.insert(0, sys.argv[1])
from launch_kernels import PTX, stores
from cuda_core_cffi import *
from cuda_core_cffi import simulator

def prepare(number=0):
    device = Device(number)
    device.set_current()
    return device, device.create_stream(), ObjectCode.from_ptx(PTX).get_kernel("store")
"""
EACH = """
device, stream, kernel = prepare()
out, event = LegacyPinnedMemoryResource().allocate(4), device.create_event()
for fields in [{fields}]:
    try:
        assert stores(LaunchConfig(**{{"grid": 1, "block": 1, **fields}}), stream, kernel, out)
        print("launched")
    except UnavailableError as error:
        print(error)
"""
CLUSTERS = "thread block clusters (compute capability 9.0), which Simulated"
DEPENDENT = "programmatic dependent launch (compute capability 9.0), which Simulated"


def told_of_each(fields: str, **environment: str) -> list[str]:
    """Launch with each of some sets of fields in a process of its own; return what became of them."""
    code = PREAMBLE + EACH.format(fields=fields)
    return output_of(code, TESTS, CUDA_CORE_CFFI_DRIVER="simulator", **environment).splitlines()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ("{'cluster': 1}", f"cluster needs {CLUSTERS}"),
        ("{'preferred_cluster': 1}", f"preferred_cluster needs {CLUSTERS}"),
        ("{'cluster_scheduling_policy': 'spread'}", f"cluster_scheduling_policy needs {CLUSTERS}"),
        ("{'programmatic_stream_serialization': True}", f"programmatic_stream_serialization needs {DEPENDENT}"),
        ("{'programmatic_event': event}", f"programmatic_event needs {DEPENDENT}"),
        (
            "{'access_policy_window': AccessPolicyWindow(out)}",
            "access_policy_window needs windows in the L2 cache (compute capability 8.0), which Simulated",
        ),
    ],
)
def test_what_an_older_device_lacks_is_refused_by_name(fields, told):
    (line,) = told_of_each(fields, CUDA_SIM_COMPUTE_CAPABILITY="7.5")
    assert line.startswith(told)
    assert line.endswith("(sm_75) does not have")


def test_an_older_device_has_the_rest():
    fields = (
        "{'launch_completion_event': event}, {'mem_sync_domain': 'remote'}, {'mem_sync_domain_map': (0, 0)}, "
        "{'priority': 0}, {'is_cooperative': True}, {'preferred_shared_memory_carveout': 100}"
    )
    assert told_of_each(fields, CUDA_SIM_COMPUTE_CAPABILITY="7.5") == ["launched"] * 6


@pytest.mark.parametrize(
    ("version", "fields", "what", "after", "installed"),
    [
        ("12090", "{'nvlink_util_centric_scheduling': True}", "nvlink_util_centric_scheduling", "12.9", "12.9"),
        ("13000", "{'portable_cluster_size': 'default'}", "portable_cluster_size", "13.0", "13.0"),
        ("12090", "{'shared_memory_mode': 'default'}", "shared_memory_mode", "13.0", "12.9"),
        (
            "13000", "{'cluster_scheduling_policy': 'rubin_dsmem_locality'}",
            "cluster_scheduling_policy='rubin_dsmem_locality'", "13.0", "13.0",
        ),
    ],
)  # fmt: skip
def test_what_an_older_driver_lacks_is_refused_by_name(version, fields, what, after, installed):
    assert told_of_each(fields, CUDA_SIM_DRIVER_VERSION=version) == [
        f"{what} needs a driver newer than that of CUDA {after}; the installed one is for {installed}: update the "
        "NVIDIA driver"
    ]


def test_a_newer_driver_has_what_this_one_lacks():
    fields = (
        "{'portable_cluster_size': 'allow_non_portable', 'cluster': 16}, "
        "{'shared_memory_mode': 'allow_non_portable', 'shmem_size': 200_000}, "
        "{'shared_memory_mode': 'prefer_oversized'}, {'cluster_scheduling_policy': 'rubin_dsmem_locality'}"
    )
    assert told_of_each(fields, CUDA_SIM_DRIVER_VERSION="13050") == ["launched"] * 4


def test_each_device_is_asked_once():
    code = """
config = LaunchConfig(grid=1, block=1, priority=0)
for number in (0, 1, 0, 1):
    device, stream, kernel = prepare(number)
    out = LegacyPinnedMemoryResource().allocate(4)
    with simulator.trace() as trace:
        assert stores(config, stream, kernel, out)
    print("cuCtxGetStreamPriorityRange" in trace.names)
"""
    environment = {"CUDA_CORE_CFFI_DRIVER": "simulator", "CUDA_SIM_DEVICES": "2"}
    assert output_of(PREAMBLE + code, TESTS, **environment).splitlines() == ["True", "True", "False", "False"]
