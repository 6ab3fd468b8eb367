# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A device as NVML knows it: how it is found, compared, sent, and matched with the device of CUDA."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref

import pytest
from helpers import in_threads, output_of

from cuda_core_cffi import Device, system
from cuda_core_cffi.system import _device
from cuda_core_cffi.system._library import nvml
from cuda_core_cffi.system.typing import DeviceArch


@pytest.fixture
def first() -> system.Device:
    return system.Device(index=0)


def test_index_uuid_and_address_find_the_same_device(first) -> None:
    for found in (
        system.Device(uuid=first.uuid),
        system.Device(uuid=first.uuid.encode()),
        system.Device(pci_bus_id=first.pci_bus_id),
        system.Device(pci_bus_id=first.pci_bus_id.encode()),
    ):
        assert found == first
        assert hash(found) == hash(first)
    assert first != first.uuid


@pytest.mark.parametrize("given", [{}, {"index": 0, "uuid": "GPU-0"}, {"index": 0, "uuid": "", "pci_bus_id": ""}])
def test_one_way_to_find_it_must_be_given(given) -> None:
    with pytest.raises(ValueError, match=f"give one of index, uuid and pci_bus_id, not {len(given)} of them"):
        system.Device(**given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"index": "0"}, TypeError),
        ({"index": True}, TypeError),
        ({"index": 0.0}, TypeError),
        ({"index": -1}, ValueError),
        ({"uuid": 0}, TypeError),
        ({"uuid": "GPU\0"}, ValueError),
        ({"pci_bus_id": 16}, TypeError),
    ],
)
def test_what_finds_no_device_is_refused_before_nvml_is_asked(given, error) -> None:
    with pytest.raises(error, match=next(iter(given))):
        system.Device(**given)


def test_a_device_that_does_not_exist_is_told() -> None:
    with pytest.raises(system.InvalidArgumentError):
        system.Device(index=system.Device.get_device_count())
    with pytest.raises((system.NotFoundError, system.InvalidArgumentError)):
        system.Device(uuid="GPU-00000000-0000-0000-0000-000000000000")
    with pytest.raises((system.NotFoundError, system.InvalidArgumentError)):
        system.Device(pci_bus_id="ffff:ff:1f.0")


def test_all_devices_are_found_by_their_numbers() -> None:
    devices = list(system.Device.get_all_devices())
    assert len(devices) == system.Device.get_device_count() == system.get_num_devices() > 0
    assert [device.index for device in devices] == list(range(len(devices)))
    assert len(set(devices)) == len(devices)


def test_a_device_is_sent_to_another_process_by_its_uuid(first) -> None:
    assert pickle.loads(pickle.dumps(first)) == first
    assert copy.copy(first) is first
    assert copy.deepcopy([first])[0] is first
    data = pickle.dumps((first, first.memory_info, first.utilization))
    code = f"import pickle; device, *told = pickle.loads({data!r}); print(device.uuid, told)"
    assert output_of(code).startswith(first.uuid + " [<MemoryInfo free=")


def test_what_was_told_once_stays_the_same(first) -> None:
    for told in (first.memory_info, first.bar1_memory_info, first.utilization):
        assert copy.copy(told) is told
        assert repr(pickle.loads(pickle.dumps(told))) == repr(told)
        assert repr(told).startswith(f"<{type(told).__name__} ")


def test_memory_for_cpu_access_has_no_reserved_part(first) -> None:
    with pytest.raises(AttributeError, match="BAR1 memory has no reserved part"):
        _ = first.bar1_memory_info.reserved


def test_a_device_can_be_referred_to_weakly(first) -> None:
    device = system.Device(index=0)
    reference = weakref.ref(device)
    del device
    gc.collect()
    gc.collect()
    assert reference() is None


def test_the_repr_says_which_device_it_is(first) -> None:
    assert repr(first) == f"<system.Device {first.uuid} ({first.name})>"


# CUDA and NVML


def test_a_device_of_cuda_and_of_nvml_lead_to_each_other() -> None:
    for device in Device.get_all_devices():
        found = device.to_system_device()
        assert type(found) is system.Device
        assert found.uuid_without_prefix == device.uuid
        assert found.to_cuda_device() is device
        assert found.cuda_compute_capability == device.compute_capability


@pytest.mark.gpu_only("simulated devices cannot be hidden")
@pytest.mark.parametrize("visible", ["", "no-such-device"])
def test_a_device_that_cuda_does_not_have_is_told(visible) -> None:
    code = """
        from cuda_core_cffi import system
        device = system.Device(index=0)
        try:
            device.to_cuda_device()
        except RuntimeError as error:
            print(device.uuid_without_prefix in str(error))
    """
    assert output_of(code, CUDA_VISIBLE_DEVICES=visible) == "True"


def test_a_uuid_that_cuda_does_not_have_is_told(first, monkeypatch) -> None:
    monkeypatch.setattr(_device.CUDADevice, "get_all_devices", lambda: ())
    with pytest.raises(RuntimeError, match=f"no device with the UUID {first.uuid_without_prefix}"):
        first.to_cuda_device()


def test_an_instance_is_found_by_the_uuid_that_cuda_has(monkeypatch) -> None:
    first = Device(0).to_system_device()
    asked = []

    def by_uuid(uuid):
        asked.append(uuid)
        status = nvml.nvmlReturn_t.NVML_ERROR_NOT_FOUND if uuid.startswith(b"GPU-") else nvml.nvmlReturn_t.NVML_SUCCESS
        return status, first._handle

    by_uuid.__name__ = "nvmlDeviceGetHandleByUUID"
    monkeypatch.setattr(nvml, "nvmlDeviceGetHandleByUUID", by_uuid)
    uuid = first.uuid_without_prefix
    assert Device(0).to_system_device() == first
    assert asked == [f"GPU-{uuid}".encode(), f"MIG-{uuid}".encode()]


# What NVML may say later


def test_an_architecture_a_brand_or_a_performance_state_that_is_not_known_is_unknown() -> None:
    unknown = {
        name: inspect.getclosurevars(vars(system.Device)[name].fget).nonlocals["meaning"](2**31)
        for name in ("arch", "brand", "performance_state")
    }
    assert unknown == {"arch": DeviceArch.UNKNOWN, "brand": "Unknown", "performance_state": None}
    assert int(nvml.nvmlPstates_t.NVML_PSTATE_UNKNOWN) not in _device.PSTATES


def test_reasons_that_are_not_known_are_left_out(first, monkeypatch) -> None:
    def told(handle):
        return nvml.nvmlReturn_t.NVML_SUCCESS, 1 << 60 | 1

    monkeypatch.setattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", told)
    assert first.current_clock_event_reasons == ["gpu_idle"]


def test_an_instance_has_no_pci_attributes(first, monkeypatch) -> None:
    monkeypatch.setattr(first, "_uuid", f"MIG-{first.uuid_without_prefix}")
    for name in ("pci_info", "pci_bus_id"):
        with pytest.raises(RuntimeError, match=r"no PCI attributes: ask mig\.parent"):
            getattr(first, name)


def test_what_is_near_is_asked_again_when_more_came_meanwhile(first, monkeypatch) -> None:
    insufficient, ok = nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE, nvml.nvmlReturn_t.NVML_SUCCESS
    there = 40
    rooms = []

    def running(handle, room):
        nonlocal there
        rooms.append(room)
        if room < there:
            there += 1  # another process starts
            return insufficient, there - 1, None
        return ok, there, [nvml.nvmlProcessInfo_v2_t(pid=pid) for pid in range(there)]

    running.__name__ = "nvmlDeviceGetComputeRunningProcesses_v3"
    monkeypatch.setattr(nvml, running.__name__, running)
    assert [process.pid for process in first.compute_running_processes] == list(range(41))
    assert rooms == [32, 48]


def test_processors_are_the_bits_of_as_many_words_as_there_are(first, monkeypatch) -> None:
    words = [0] * 32
    words[0], words[1], words[31] = 0b101, 1 << 63, 1

    def affinity(handle, room, scope):
        assert scope == nvml.NVML_AFFINITY_SCOPE_NODE
        if room < len(words):
            return nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE, None
        return nvml.nvmlReturn_t.NVML_SUCCESS, words

    affinity.__name__ = "nvmlDeviceGetCpuAffinityWithinScope"
    monkeypatch.setattr(nvml, affinity.__name__, affinity)
    assert first.get_cpu_affinity() == [0, 2, 127, 31 * 64]


def test_a_list_that_grows_with_each_call_is_given_up(first, monkeypatch) -> None:
    def running(handle, room):
        return nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE, room + 100, None

    running.__name__ = "nvmlDeviceGetComputeRunningProcesses_v3"
    monkeypatch.setattr(nvml, running.__name__, running)
    with pytest.raises(system.InsufficientSizeError):
        _ = first.compute_running_processes


# Arguments


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (
            lambda d: d.get_clock("fast"),
            ValueError,
            "clock_type must be one of 'graphics', 'sm', 'memory', 'video'",
        ),
        (lambda d: d.get_clock("sm").get_current_mhz("now"), ValueError, "clock_id must be one of"),
        (lambda d: d.get_clock("sm").get_offsets(16), ValueError, "pstate must be 0 to 15, not 16"),
        (lambda d: d.get_clock("sm").get_min_max_clock_of_pstate_mhz(-1), ValueError, "pstate must be 0 to 15, not -1"),
        (lambda d: d.get_clock("sm").get_offsets("0"), TypeError, "pstate must be an int"),
        (lambda d: d.temperature.get_threshold("boiling"), ValueError, "threshold_type must be one of"),
        (lambda d: d.temperature.get_thermal_settings("moon"), ValueError, "sensor_index must be one of"),
        (lambda d: d.inforom.get_version("all"), ValueError, "inforom must be one of"),
        (lambda d: d.get_cpu_affinity("city"), ValueError, "scope must be one of 'node', 'socket', not 'city'"),
        (lambda d: d.get_memory_affinity(3), ValueError, "scope must be one of"),
        (lambda d: list(d.get_topology_nearest_gpus("far")), ValueError, "level must be one of"),
        (lambda d: list(d.get_all_devices_with_cpu_affinity(-1)), ValueError, "cpu_index must be 0 or more"),
        (lambda d: list(d.get_all_devices_with_cpu_affinity("0")), TypeError, "cpu_index must be an int"),
        (lambda d: d.get_nvlink("0"), TypeError, "link must be an int"),
        (lambda d: d.get_fan("0"), TypeError, "fan must be an int"),
        (lambda d: d.mig.get_device_by_index(-1), ValueError, "index must be 0 or more"),
        (lambda d: setattr(d, "is_persistence_mode_enabled", "yes"), TypeError, "must be a bool, not str"),
        (lambda d: setattr(d.mig, "mode", 2), TypeError, "mode must be a bool, not int"),
        (lambda d: setattr(_device.FanInfo(d._handle, 0), "speed", "fast"), TypeError, "speed must be an int"),
        (lambda d: setattr(_device.FanInfo(d._handle, 0), "speed", -1), ValueError, "speed must be 0 percent or more"),
        (lambda d: system.get_p2p_status(d, 0, "read"), TypeError, r"device2 must be a system\.Device, not int"),
        (lambda d: system.get_p2p_status(d, d, "love"), ValueError, "index must be one of"),
        (lambda d: system.get_topology_common_ancestor(None, d), TypeError, r"device1 must be a system\.Device"),
        (lambda d: system.get_process_name("1"), TypeError, "pid must be an int"),
        (lambda d: system.get_process_name(-1), ValueError, "pid must be 0 or more"),
    ],
)
def test_a_wrong_argument_is_refused_before_nvml_is_asked(first, wrong, error, message) -> None:
    with pytest.raises(error, match=message):
        wrong(first)


def test_thresholds_that_are_fields_now_warn(first) -> None:
    if first.arch < DeviceArch.ADA:
        pytest.skip("the device is older than Ada")
    with pytest.warns(DeprecationWarning, match="get_field_values from Ada on") as caught:
        first.temperature.get_threshold("slowdown")
    assert caught[0].filename == __file__


def test_max_links_warns() -> None:
    with pytest.warns(DeprecationWarning, match="get_nvlink_count"):
        assert system.NvlinkInfo.max_links == nvml.NVML_NVLINK_MAX_LINKS


def test_the_processors_near_to_a_device_can_be_chosen_for_this_thread(first) -> None:
    def work(number: int) -> None:
        first.set_cpu_affinity()
        first.clear_cpu_affinity()

    try:
        in_threads(1, work)
    except system.NotSupportedError:
        pytest.skip("the device does not tell its processors")


def test_threads_ask_at_once() -> None:
    def work(number: int) -> int:
        device = system.Device(index=0)
        return sum(device.memory_info.total for _ in range(200)) // 200

    assert len(set(in_threads(8, work))) == 1
