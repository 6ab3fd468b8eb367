# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the simulated devices can be told: values, events and failures, fans and links."""

from __future__ import annotations

import threading
import time

import pytest
from helpers import LIMIT, output_of

from cuda_core_cffi import simulator, system
from cuda_core_cffi.system.typing import EventType

pytestmark = pytest.mark.simulator_only("tells the devices what to say")


@pytest.fixture
def device():
    yield system.Device(index=0)
    simulator.reset_sensors()


def test_a_value_that_changes_is_read_anew(device) -> None:
    temperature = device.temperature
    for celsius in (34, 71, 90):
        simulator.set_sensor(0, "temperature", celsius)
        assert temperature.get_sensor() == celsius


def test_the_performance_state_and_the_clocks_are_read(device) -> None:
    simulator.set_sensor(0, "pstate", 8)
    simulator.set_sensor(0, "sm_clock", 210)
    assert device.performance_state == 8
    assert device.get_clock("sm").get_current_mhz() == 210
    simulator.set_sensor(0, "pstate", 32)
    assert device.performance_state is None


def test_memory_in_use_is_that_of_the_process() -> None:
    code = """
        import os
        from cuda_core_cffi import Device, system
        device, cuda = system.Device(index=0), Device(0)
        cuda.set_current()
        before = device.memory_info
        with cuda.create_stream() as stream, cuda.allocate(64 << 20, stream):
            stream.sync()
            now = device.memory_info
            rest = now.total - now.free - now.used - now.reserved
            print(now.used - before.used >> 20, rest, now.total - before.total)
            (process,) = device.compute_running_processes
            print(process.pid == os.getpid(), process.used_gpu_memory >> 20)
            print(process.gpu_instance_id, process.compute_instance_id)
            print(repr(process).startswith(f"<ProcessInfo pid={process.pid} used_gpu_memory="))
    """
    lines = output_of(code, CUDA_SIM_SHARED="").splitlines()
    assert lines == ["64 0 0", "True 64", f"{2**32 - 1} {2**32 - 1}", "True"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("NVML_ERROR_GPU_IS_LOST", system.GpuIsLostError),
        ("NVML_ERROR_RESET_REQUIRED", system.ResetRequiredError),
        ("NVML_ERROR_NOT_SUPPORTED", system.NotSupportedError),
        ("NVML_ERROR_UNKNOWN", system.UnknownError),
    ],
)
@pytest.mark.parametrize(
    ("function", "ask"),
    [
        ("nvmlDeviceGetMemoryInfo", lambda d: d.memory_info),
        ("nvmlDeviceGetUtilizationRates", lambda d: d.utilization),
        ("nvmlDeviceGetName", lambda d: d.name),
        ("nvmlDeviceGetCudaComputeCapability", lambda d: d.cuda_compute_capability),
        ("nvmlDeviceGetCpuAffinityWithinScope", lambda d: d.get_cpu_affinity()),
        ("nvmlDeviceGetComputeRunningProcesses", lambda d: d.compute_running_processes),
        ("nvmlDeviceGetFieldValues", lambda d: d.get_field_values([1])),
        ("nvmlEventSetCreate", lambda d: d.register_events("pstate")),
        ("nvmlDeviceRegisterEvents", lambda d: d.register_events("pstate")),
        ("nvmlSystemRegisterEvents", lambda d: system.register_events("bind")),
    ],
)
def test_a_failure_is_raised_by_what_needs_the_call(device, function, ask, status, error) -> None:
    with simulator.fail(function, status), pytest.raises(error, match=f"{function}.* failed: {status}") as caught:
        ask(device)
    assert caught.value.name == status
    ask(device)


def test_a_wait_ends_with_the_error_of_nvml(device) -> None:
    with device.register_events("pstate") as events:
        with simulator.fail("nvmlEventSetWait", "NVML_ERROR_GPU_IS_LOST"), pytest.raises(system.GpuIsLostError):
            events.wait()
        with pytest.raises(system.TimeoutError):
            events.wait(timeout_ms=1)


def test_an_event_ends_the_wait(device) -> None:
    with device.register_events([EventType.XID_CRITICAL_ERROR, "pstate"]) as events:
        assert simulator.inject_event(0, "xid_critical_error", 79) >= 1
        event = events.wait(timeout_ms=1000)
        assert event.event_type is EventType.XID_CRITICAL_ERROR
        assert event.event_data == 79
        assert event.device == device
        simulator.inject_event(0, "clock")
        with pytest.raises(system.TimeoutError):
            events.wait(timeout_ms=1)


def test_an_event_that_comes_later_ends_an_endless_wait(device) -> None:
    with device.register_events("pstate") as events:
        thread = threading.Thread(target=lambda: (time.sleep(0.25), simulator.inject_event(0, "pstate")))
        thread.start()
        assert events.wait().event_type == "pstate"
        thread.join()


def test_each_event_goes_to_one_of_the_threads_that_wait(device) -> None:
    found: list[int] = []
    with device.register_events("xid_critical_error") as events:
        threads = [
            threading.Thread(target=lambda: found.append(events.wait(timeout_ms=10000).event_data)) for _ in "abc"
        ]
        for thread in threads:
            thread.start()
        for xid in (13, 31, 79):
            simulator.inject_event(0, "xid_critical_error", xid)
        for thread in threads:
            thread.join(LIMIT)
    assert sorted(found) == [13, 31, 79]


def test_events_of_the_system_come_together(device) -> None:
    with system.register_events(["bind", "unbind"]) as events:
        for name in ("gpu_driver_unbind", "gpu_driver_bind", "gpu_driver_unbind"):
            assert simulator.inject_event(0, name) >= 1  # sets that are garbage count until they are collected
        found = events.wait(timeout_ms=1000, buffer_size=2)
        assert [event.event_type for event in found] == ["unbind", "bind"]
        assert found[0].device == device
        assert [event.event_type for event in events.wait(timeout_ms=1000, buffer_size=2)] == ["unbind"]


def test_the_settings_of_a_fan_are_read_and_set() -> None:
    code = """
        from cuda_core_cffi import system
        device = system.Device(index=0)
        fan = device.get_fan(1)
        print(device.num_fans, fan.speed, fan.control_policy, fan)
        fan.speed = 55
        print(fan.speed, fan.target_speed, fan.control_policy, fan.min_max_speed[0] <= 55 <= fan.min_max_speed[1])
        fan.set_default_speed()
        print(fan.control_policy, fan.speed_rpm > 0)
        print(device.cooler.signal_type, [str(target) for target in device.cooler.target])
        for number in (2, -1):
            try:
                device.get_fan(number)
            except ValueError as error:
                print(error)
    """
    assert output_of(code, CUDA_SIM_FANS="2").splitlines() == [
        "2 30 temperature_controlled <FanInfo 1>",
        "55 55 manual True",
        "temperature_controlled True",
        "variable ['gpu', 'memory', 'power_supply']",
        "fan must be 0 to 1, not 2",
        "fan must be 0 to 1, not -1",
    ]


def test_devices_know_each_other() -> None:
    code = """
        from cuda_core_cffi import system
        from cuda_core_cffi.system.typing import FieldId, GpuP2PCapsIndex
        one, other = system.Device.get_all_devices()
        level = system.get_topology_common_ancestor(one, other)
        print(level, system.get_topology_common_ancestor(one, one))
        print(system.get_p2p_status(one, other, "read"), system.get_p2p_status(one, other, GpuP2PCapsIndex.PCI))
        print([device.index for device in one.get_topology_nearest_gpus(level)])
        print([device.index for device in system.Device.get_all_devices_with_cpu_affinity(0)])
        links = list(one.get_nvlinks())
        print(len(links), one.get_nvlink_count(), links[0].state, links[0].version, links[0], other.get_nvlink(3).state)
        told = one.get_field_values([(FieldId.DEV_NVLINK_GET_STATE, link) for link in (0, 1)])
        print(told.get_all_values())
    """
    assert output_of(code, CUDA_SIM_DEVICES="2", CUDA_SIM_NVLINKS="4").splitlines() == [
        "hostbridge internal",
        "ok ok",
        "[1]",
        "[0, 1]",
        "4 4 True (4, 0) <NvlinkInfo 0> True",
        "[1, 1]",
    ]


def test_modes_are_set(device) -> None:
    assert device.is_persistence_mode_enabled is True
    device.is_persistence_mode_enabled = False
    assert device.is_persistence_mode_enabled is False
    device.is_persistence_mode_enabled = 1
    assert device.is_persistence_mode_enabled is True
    with pytest.raises(system.NotSupportedError):
        device.mig.mode = True
    with pytest.raises(system.NotFoundError):
        device.mig.get_device_by_index(0)


def test_setting_without_permission_is_told(device) -> None:
    denied = simulator.fail("nvmlDeviceSetPersistenceMode", "NVML_ERROR_NO_PERMISSION")
    with denied, pytest.raises(system.NoPermissionError, match="this needs root"):
        device.is_persistence_mode_enabled = False
    assert device.is_persistence_mode_enabled is True
