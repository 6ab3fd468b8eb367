# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Devices: which one an object stands for, what it tells, and where its work goes."""

from __future__ import annotations

import copy
import pickle
import re
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from helpers import output_of

from cuda_core_cffi import Buffer, Context, CUDAError, Device, DeviceMemoryResource, MemoryResource, ffi, lib

THREE_DEVICES = "needs three devices, whatever the machine has"


@pytest.fixture
def no_context() -> Iterator[None]:
    """Run with no context current."""
    before = ffi.new("CUcontext *")
    assert lib.cuCtxGetCurrent(before) == 0
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    yield
    assert lib.cuCtxSetCurrent(before[0]) == 0


def in_thread(function: Callable[[], Any]) -> Any:
    """Return what a function returns in a thread of its own."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def current_context() -> Any:
    """Return the handle of the driver's current context."""
    found = ffi.new("CUcontext *")
    assert lib.cuCtxGetCurrent(found) == 0
    return int(ffi.cast("uintptr_t", found[0]))


# which device


def test_an_ordinal_has_one_object_in_a_thread() -> None:
    assert Device(0) is Device(0)


def test_another_thread_has_an_object_of_its_own_that_is_equal() -> None:
    other = in_thread(lambda: Device(0))
    assert other is not Device(0)
    assert other == Device(0)
    assert hash(other) == hash(Device(0))


def test_without_argument_it_is_the_device_of_the_current_context(device: Device) -> None:
    assert Device() is device


def test_without_argument_and_context_it_is_device_0(no_context: None) -> None:
    assert Device() is Device(0)


def test_making_a_device_makes_no_context_current(no_context: None) -> None:
    Device(0)
    assert current_context() == 0


def test_a_device_stands_for_itself(device: Device) -> None:
    assert Device(device) is device


def test_a_device_of_another_thread_stands_for_this_threads_object(device: Device) -> None:
    assert Device(in_thread(lambda: Device(0))) is device


def test_an_integer_of_numpy_is_an_ordinal() -> None:
    assert Device(numpy.int64(0)) is Device(0)


@pytest.mark.parametrize("ordinal", [-1, -2, 999, 2**31, 2**100])
def test_an_ordinal_out_of_range_is_refused_with_the_range(ordinal: int) -> None:
    with pytest.raises(ValueError, match=rf"device_id must be 0 to \d+, not {ordinal}"):
        Device(ordinal)


@pytest.mark.parametrize("wrong", ["0", 0.0, 1.5, [0], {}, b"0", False, True], ids=repr)
def test_what_is_no_ordinal_is_refused(device: Device, wrong: Any) -> None:
    with pytest.raises(TypeError, match="device_id must be an int or a Device"):
        Device(wrong)


def test_a_device_is_unequal_to_its_ordinal() -> None:
    assert Device(0) != 0


def test_a_device_converts_to_its_ordinal() -> None:
    assert int(Device(0)) == 0
    assert Device(0).device_id == 0


def test_pickling_gives_the_same_object() -> None:
    assert pickle.loads(pickle.dumps(Device(0))) is Device(0)


def test_copying_gives_the_same_object() -> None:
    assert copy.copy(Device(0)) is Device(0)
    assert copy.deepcopy(Device(0)) is Device(0)


def test_a_device_can_be_weakly_referenced() -> None:
    assert weakref.ref(Device(0))() is Device(0)


def test_attributes_that_do_not_exist_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Device(0).colour = "green"  # type: ignore[attr-defined]


def test_all_devices_come_in_the_order_of_their_ordinals() -> None:
    devices = Device.get_all_devices()
    assert isinstance(devices, tuple)
    assert [item.device_id for item in devices] == list(range(len(devices)))
    assert devices[0] is Device(0)


@pytest.mark.simulator_only(THREE_DEVICES)
def test_three_devices_are_three_objects() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device
        devices = Device.get_all_devices()
        print(*(int(item) for item in devices), len(set(devices)), len({item.uuid for item in devices}),
              len({item.pci_bus_id for item in devices}))
        """,
        CUDA_SIM_DEVICES="3",
    )
    assert text == "0 1 2 3 3 3"


# what a device tells


def test_the_name_is_text_and_in_the_repr(device: Device) -> None:
    assert device.name
    assert repr(device) == f"<Device 0 ({device.name})>"


def test_the_uuid_is_in_its_usual_form(device: Device) -> None:
    assert str(uuid.UUID(device.uuid)) == device.uuid


def test_the_uuid_is_the_drivers(device: Device) -> None:
    raw = ffi.new("CUuuid *")
    assert lib.cuDeviceGetUuid(raw, 0) == 0
    assert uuid.UUID(device.uuid).bytes == bytes(ffi.buffer(raw))


def test_the_pci_bus_id_names_domain_bus_and_device(device: Device) -> None:
    assert re.fullmatch(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d", device.pci_bus_id)


def test_the_compute_capability_is_a_pair_with_names(device: Device) -> None:
    capability = device.compute_capability
    assert capability == (capability.major, capability.minor)
    assert capability.major == device.properties.compute_capability_major


def test_arch_is_the_compute_capability_without_a_dot(device: Device) -> None:
    assert device.arch == "{}{}".format(*device.compute_capability)


@pytest.mark.simulator_only("chooses the compute capability")
def test_a_compute_capability_of_two_digits_is_kept_whole() -> None:
    code = "from cuda_core_cffi import Device; print(Device(0).arch, tuple(Device(0).compute_capability))"
    assert output_of(code, CUDA_SIM_COMPUTE_CAPABILITY="12.1") == "121 (12, 1)"


def test_a_device_can_access_its_own_memory(device: Device) -> None:
    assert device.can_access_peer(device) is True
    assert device.can_access_peer(0) is True


def test_a_peer_that_does_not_exist_is_refused(device: Device) -> None:
    with pytest.raises(ValueError, match="999"):
        device.can_access_peer(999)


# the current context


def test_set_current_makes_the_primary_context_current(no_context: None) -> None:
    assert Device(0).set_current() is None
    assert current_context() == Device(0).context.handle != 0


def test_each_thread_sets_its_own_current_context(device: Device) -> None:
    def use() -> tuple[int, int]:
        before = current_context()
        Device(0).set_current()
        return before, current_context()

    assert in_thread(use) == (0, device.context.handle)


def test_threads_set_current_at_once(device: Device) -> None:
    wanted = device.context.handle
    barrier = threading.Barrier(8)
    found: list[int] = []

    def use() -> None:
        barrier.wait()
        Device(0).set_current()
        found.append(current_context())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 8


def test_set_current_with_a_context_returns_the_one_that_was(device: Device) -> None:
    context = device.context
    assert device.set_current(context) == context


def test_set_current_with_a_context_returns_none_where_there_was_none(device: Device) -> None:
    context = device.context
    assert in_thread(lambda: Device(0).set_current(context)) is None


@pytest.mark.parametrize("wrong", [0, "context", object], ids=repr)
def test_set_current_wants_a_context(device: Device, wrong: Any) -> None:
    with pytest.raises(TypeError, match="ctx must be a Context"):
        device.set_current(wrong)


def test_set_current_refuses_a_closed_context(device: Device) -> None:
    context = device.context
    context.close()
    with pytest.raises(RuntimeError, match="this Context is closed"):
        device.set_current(context)


@pytest.mark.simulator_only(THREE_DEVICES)
def test_set_current_takes_the_context_of_another_device() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device
        first, second = Device(0), Device(1)
        first.set_current()
        before = first.set_current(second.context)
        print(before == first.context, Device().device_id, second.context == Device().context)
        print(second.set_current(before) == second.context, Device().device_id)
        """,
        CUDA_SIM_DEVICES="3",
    )
    assert text.splitlines() == ["True 1 True", "True 0"]


@pytest.mark.simulator_only(THREE_DEVICES)
def test_device_follows_the_current_context() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device
        for ordinal in (2, 0, 1):
            Device(ordinal).set_current()
            print(int(Device()))
        """,
        CUDA_SIM_DEVICES="3",
    )
    assert text.split() == ["2", "0", "1"]


@pytest.mark.simulator_only(THREE_DEVICES)
def test_work_of_a_device_that_is_not_current_goes_to_its_own_context() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device, ffi, lib
        first, second = Device(0), Device(1)
        first.set_current()
        home = second.context
        stream, event = second.create_stream(), second.create_event()
        buffer = second.allocate(64, stream)
        on_default = second.allocate(64)
        where = ffi.new("int *")
        assert lib.cuPointerGetAttribute(where, lib.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, on_default.cdata) == 0
        second.sync()
        print(home.handle != first.context.handle)
        print(stream.context == home, stream.device is second)
        print(event.context == home, event.device is second)
        print(stream.record().context == home)
        print(buffer.device_id, on_default.device_id, where[0])
        print(Device() is first)
        buffer.close(), on_default.close(), stream.close(), event.close()
        print(Device() is first)
        """,
        CUDA_SIM_DEVICES="3",
    )
    assert text.split("\n") == ["True", "True True", "True True", "True", "1 1 1", "True", "True"]


def test_sync_works_without_a_current_context(no_context: None) -> None:
    Device(0).sync()
    assert current_context() == 0


def test_the_context_of_a_device_that_is_not_current_is_its_primary_one(device: Device) -> None:
    primary = device.context.handle
    context = in_thread(lambda: Device(0).context)
    assert isinstance(context, Context)
    assert context.handle == primary


@pytest.mark.simulator_only("injects a fault")
def test_a_failing_primary_context_is_reported(device: Device) -> None:
    text = output_of(
        """
        from cuda_core_cffi import CUDAError, Device, simulator
        with simulator.fail("cuDevicePrimaryCtxRetain", "CUDA_ERROR_OUT_OF_MEMORY"):
            try:
                Device(0).set_current()
            except CUDAError as error:
                print(error.call, error.name)
        Device(0).set_current()
        print(Device(0).context.handle != 0)
        """
    )
    assert text.split() == ["cuDevicePrimaryCtxRetain", "CUDA_ERROR_OUT_OF_MEMORY", "True"]


@pytest.mark.simulator_only("injects a fault")
def test_an_unknown_current_context_is_reported(device: Device) -> None:
    from cuda_core_cffi import simulator

    with (
        simulator.fail("cuCtxGetCurrent", "CUDA_ERROR_DEINITIALIZED"),
        pytest.raises(CUDAError, match="cuCtxGetCurrent failed: CUDA_ERROR_DEINITIALIZED"),
    ):
        Device()


def test_it_is_found_while_other_threads_wait_in_the_driver() -> None:
    """The driver is asked with the GIL kept: this hangs if it waits there for what other threads wait for."""
    text = output_of(
        """
        import threading, time
        from cuda_core_cffi import Device

        device = Device()
        device.set_current()
        stream, opened = device.create_stream(), threading.Event()
        buffer = device.allocate(64, stream=stream)
        stream.sync()
        stream.callback(lambda: opened.wait(100))  # in a thread of the driver's, with the GIL at times

        def work(task):
            device.set_current()
            task()

        def fill_the_queue():
            for _ in range(5000):
                buffer.fill(0, stream=stream)

        tasks = [fill_the_queue, stream.sync, device.sync, stream.record().sync]
        threads = [threading.Thread(target=work, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        for _ in range(10000):
            assert Device() is device
        print(threads[1].is_alive())
        opened.set()
        for thread in threads:
            thread.join()
        print("done")
        """
    )
    assert text.split() == ["True", "done"]


# memory


def test_the_memory_resource_is_the_devices_pool(device: Device) -> None:
    resource = device.memory_resource
    assert isinstance(resource, DeviceMemoryResource)
    assert resource.device_id == 0
    assert device.memory_resource is resource


def test_threads_share_the_default_memory_resource(device: Device) -> None:
    assert in_thread(lambda: Device(0).memory_resource) is device.memory_resource


def test_allocate_takes_from_the_memory_resource_that_was_set(device: Device) -> None:
    class Own(MemoryResource):
        asked: tuple[int, object] | None = None

        def allocate(self, size: int, stream: Any = None) -> Buffer:
            self.asked = (size, stream)
            return before.allocate(size, stream)

    before, own = device.memory_resource, Own()
    device.memory_resource = own
    try:
        device.allocate(16).close()
        assert device.memory_resource is own
    finally:
        device.memory_resource = before
    assert own.asked == (16, None)


def test_a_memory_resource_is_set_for_this_thread_only(device: Device) -> None:
    before = device.memory_resource
    device.memory_resource = MemoryResource()
    try:
        assert in_thread(lambda: Device(0).memory_resource) is before
    finally:
        device.memory_resource = before


def test_a_memory_resource_must_be_one(device: Device) -> None:
    with pytest.raises(TypeError, match="memory_resource must be a MemoryResource, not str"):
        device.memory_resource = "pool"  # type: ignore[assignment]


def test_the_default_stream_is_a_constant(device: Device) -> None:
    from cuda_core_cffi import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM

    assert device.default_stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM)


def test_without_a_driver_there_is_one_exception() -> None:
    text = output_of(
        """
        from cuda_core_cffi import CUDAError, Device
        for arguments in ((), (0,), (None,)):
            try:
                Device(*arguments)
            except CUDAError as error:
                print(type(error).__name__, error.__context__, error.__cause__)
        """,
        CUDA_CORE_CFFI_DRIVER="/nowhere/libcuda.so.1",
    )
    assert text.splitlines() == ["UnavailableError None None"] * 3
