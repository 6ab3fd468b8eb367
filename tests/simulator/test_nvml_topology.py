# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How the devices of the simulated NVML lie to each other."""

from __future__ import annotations

import pytest
from sim_driver import run_alone

PREPARE = """
from sim_nvml import *
nvml = Nvml()
nvml.nvmlInit_v2()
devices = [nvml.device(i) for i in range(nvml.get("nvmlDeviceGetCount_v2"))]
def remote(device, link):
    pci = Pci()
    status = nvml.status("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, byref(pci))
    return pci.bus - 0x10 if status == "Success" else status
"""


def ask(code: str, **environment: str) -> list[str]:
    lines = code.strip().split("\n")
    return run_alone(PREPARE + "\n".join(line.removeprefix("        ") for line in lines), **environment).splitlines()


def test_all_devices_are_under_one_bridge() -> None:
    printed = ask(
        """
        for a in devices:
            print([nvml.get("nvmlDeviceGetTopologyCommonAncestor", a, b) for b in devices])
        for level in (20, 30, 50, 60):
            count, array = c_uint(2), (c_void_p * 2)()
            print(nvml.status("nvmlDeviceGetTopologyNearestGpus", devices[1], level, byref(count), array), count.value)
        count, array = c_uint(0), (c_void_p * 2)()
        none = nvml.status("nvmlDeviceGetTopologyNearestGpus", devices[1], 30, byref(count), array)
        print(none, nvml.status("nvmlDeviceGetTopologyNearestGpus", devices[1], 30, byref(count), None), count.value)
        nvml.nvmlDeviceGetTopologyNearestGpus(devices[1], 30, byref(count), array)
        print([array[i] == devices[j].value for i, j in ((0, 0), (1, 2))])
        nvml.nvmlDeviceGetTopologyNearestGpus(devices[1], 30, byref(count), None)
        print(count.value, nvml.status("nvmlSystemGetTopologyGpuSet", 0, byref(count), None), count.value)
        print(nvml.status("nvmlDeviceGetTopologyCommonAncestor", devices[0], None, byref(count)))
        """,
        CUDA_SIM_DEVICES="3",
    )
    assert printed == [
        *["[0, 30, 30]", "[30, 0, 30]", "[30, 30, 0]"],
        *["Success 0", "Success 2", "Success 2", "Invalid Argument 2"],
        "Invalid Argument Success 2",
        "[True, True]",
        "2 Success 3",
        "Invalid Argument",
    ]


@pytest.mark.parametrize("devices", [2, 3, 4, 5, 8, 16])
def test_links_lead_from_both_sides_to_each_other(devices: int) -> None:
    printed = ask(
        """
        links = [[remote(device, link) for link in range(18)] for device in devices]
        states = [[nvml.get("nvmlDeviceGetNvLinkState", device, link) for link in range(18)] for device in devices]
        print(links)
        print(states)
        """,
        CUDA_SIM_DEVICES=str(devices),
    )
    links, states = map(eval, printed)
    for device, others in enumerate(links):
        for link, other in enumerate(others):
            assert states[device][link] == (other != "Not Supported")
            if other != "Not Supported":
                assert other != device
                assert links[other][link] == device
        assert {other for other in others if other != "Not Supported"} == set(range(devices)) - {device}


def test_links_have_states_versions_and_errors() -> None:
    printed = ask(
        """
        link = devices[0], 1
        print(nvml.get("nvmlDeviceGetNvLinkState", *link), nvml.get("nvmlDeviceGetNvLinkVersion", *link))
        print([nvml.get("nvmlDeviceGetNvLinkCapability", *link, c) for c in range(6)], nvml.field(devices[0], 91))
        print(nvml.get("nvmlDeviceGetNvLinkRemoteDeviceType", *link), nvml.field(devices[0], 165, scope=1))
        sim.set_sensor(0, "nvlink_errors", 9)
        print(nvml.get("nvmlDeviceGetNvLinkErrorCounter", *link, 0, kind=c_ulonglong))
        nvml.nvmlDeviceResetNvLinkErrorCounters(*link)
        print(nvml.get("nvmlDeviceGetNvLinkErrorCounter", *link, 0, kind=c_ulonglong))
        sim.set_sensor(0, "nvlink_state", 0)
        print(nvml.get("nvmlDeviceGetNvLinkState", *link), remote(*link), nvml.field(devices[0], 165, scope=1))
        print(nvml.status("nvmlDeviceGetNvLinkState", devices[0], 4, byref(c_uint())))
        print(nvml.field(devices[0], 165, scope=4))
        """,
        CUDA_SIM_DEVICES="2",
        CUDA_SIM_NVLINKS="4",
    )
    assert printed == [
        "1 6",
        "[1, 0, 1, 0, 0, 1] ('Success', 4)",
        "0 ('Success', 1)",
        "9",
        "0",
        "0 Not Supported ('Success', 0)",
        "Invalid Argument",
        "('Invalid Argument', 0)",
    ]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "[0, 0, 0, 0, 0]"),
        ({"CUDA_SIM_NVLINKS": "0"}, "[0, 0, 5, 0, 0]"),
        ({"CUDA_SIM_PEER_ACCESS": "0"}, "[5, 5, 5, 5, 5]"),
    ],
)
def test_access_between_devices_is_as_the_driver_has_it(environment: dict[str, str], expected: str) -> None:
    printed = ask(
        """
        print([nvml.get("nvmlDeviceGetP2PStatus", *devices, index) for index in range(5)])
        print(nvml.status("nvmlDeviceGetP2PStatus", devices[0], devices[0], 0, byref(c_uint())))
        """,
        CUDA_SIM_DEVICES="2",
        **environment,
    )
    assert printed == [expected, "Invalid Argument"]


def test_a_device_alone_has_no_links() -> None:
    printed = ask(
        'print(nvml.status("nvmlDeviceGetNvLinkState", devices[0], 0, byref(c_uint())), remote(devices[0], 0))'
    )
    assert printed == ["Not Supported Not Supported"]
