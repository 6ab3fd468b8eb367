# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Resources of devices: multiprocessors, how they are split, and workqueues."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from green import green_context, part_of, parts_of
from helpers import output_of

from cuda_core_cffi import (
    CUDAError,
    Device,
    DeviceResources,
    SMResource,
    SMResourceOptions,
    UnavailableError,
    WorkqueueResource,
    WorkqueueResourceOptions,
    ffi,
    lib,
)
from cuda_core_cffi.typing import WorkqueueSharingScopeType

NEWER = "the driver of the simulator can be one for CUDA 13.1"

older = pytest.mark.skipif(lib.ccc_driver_version() >= 13010, reason="the driver is for CUDA 13.1 or newer")


def of_cuda_13_1(code: str) -> str:
    """Return what code prints on a simulated driver for CUDA 13.1."""
    if lib.CUDA_VERSION < 13010:
        pytest.skip("built with a header that does not know of that")
    before = """
        from cuda_core_cffi import *
        device = Device()
        device.set_current()
        whole = device.resources.sm
    """
    return output_of(textwrap.dedent(before) + textwrap.dedent(code), CUDA_SIM_DRIVER_VERSION="13010")


# multiprocessors


def test_a_device_tells_its_multiprocessors(device: Device) -> None:
    whole = device.resources.sm
    assert whole.sm_count == device.properties.multiprocessor_count
    assert 1 <= whole.min_partition_size <= whole.sm_count
    assert whole.min_partition_size % whole.coscheduled_alignment == 0
    assert whole.flags == 0
    assert repr(whole) == f"<SMResource sm_count={whole.sm_count}>"


def test_the_handle_is_the_address_of_the_drivers_structure(device: Device) -> None:
    whole = device.resources.sm
    native = ffi.cast("CUdevResource *", whole.handle)
    assert native.type == lib.CU_DEV_RESOURCE_TYPE_SM
    assert native.sm.smCount == whole.sm_count


def test_the_resources_of_the_primary_context_are_those_of_the_device(device: Device, stream: Any) -> None:
    whole = device.resources.sm.sm_count
    assert device.context.resources.sm.sm_count == stream.resources.sm.sm_count == whole


@pytest.mark.parametrize("cls", [SMResource, WorkqueueResource, DeviceResources])
def test_they_cannot_be_constructed(cls: type) -> None:
    with pytest.raises(RuntimeError, match=f"{cls.__name__} cannot be constructed directly"):
        cls()


def test_a_group_and_the_rest_are_the_whole(device: Device) -> None:
    whole = device.resources.sm
    groups, rest = whole.split(SMResourceOptions(count=2 * whole.min_partition_size))
    assert [group.sm_count for group in groups] == [2 * whole.min_partition_size]
    assert rest.sm_count == whole.sm_count - groups[0].sm_count
    assert groups[0].min_partition_size == whole.min_partition_size
    assert groups[0].coscheduled_alignment == whole.coscheduled_alignment


def test_a_sequence_makes_as_many_groups(device: Device) -> None:
    least = device.resources.sm.min_partition_size
    groups, rest = parts_of(device, 3)
    assert [group.sm_count for group in groups] == 3 * [least]
    assert rest.sm_count == device.resources.sm.sm_count - 3 * least


def test_the_whole_can_be_one_group_and_leaves_nothing(device: Device) -> None:
    whole = device.resources.sm
    if lib.ccc_driver_version() >= 13010:
        pytest.skip("drivers for CUDA 13.1 want whole sets of coscheduled multiprocessors")
    (group,), rest = whole.split({"count": whole.sm_count})
    assert (group.sm_count, rest.sm_count) == (whole.sm_count, 0)


@older
def test_older_drivers_round_a_count_up(device: Device) -> None:
    whole = device.resources.sm
    (group,), _ = whole.split({"count": whole.min_partition_size + 1})
    assert whole.min_partition_size < group.sm_count <= whole.min_partition_size + whole.coscheduled_alignment


@older
def test_backfill_takes_the_count_as_it_is(device: Device) -> None:
    whole = device.resources.sm
    (group,), rest = whole.split({"count": whole.min_partition_size + 2, "backfill": True})
    assert group.sm_count == whole.min_partition_size + 2
    assert rest.sm_count == whole.sm_count - group.sm_count


@pytest.mark.parametrize("count", [None, 0, False])
def test_without_a_count_the_driver_finds_one(device: Device, count: Any) -> None:
    whole = device.resources.sm
    (group,), rest = whole.split({"count": count})
    assert whole.min_partition_size <= group.sm_count <= whole.sm_count
    assert group.sm_count + rest.sm_count == whole.sm_count


def test_a_dry_run_tells_the_same_sizes(device: Device) -> None:
    whole = device.resources.sm
    wanted = SMResourceOptions(count=(whole.min_partition_size,) * 2)
    groups, rest = whole.split(wanted)
    dry_groups, dry_rest = whole.split(wanted, dry_run=True)
    assert [group.sm_count for group in dry_groups] == [group.sm_count for group in groups]
    assert dry_rest.sm_count == rest.sm_count
    assert repr(dry_rest) == f"<SMResource sm_count={rest.sm_count} dry run>"


def test_what_a_dry_run_gives_can_neither_be_split_nor_used(device: Device) -> None:
    (group,), rest = device.resources.sm.split({}, dry_run=True)
    for part in (group, rest):
        with pytest.raises(ValueError, match="from a dry run cannot be split"):
            part.split({})
        with pytest.raises(ValueError, match="from a dry run"):
            green_context(device, part)


def test_a_part_is_split_again_through_its_context(device: Device) -> None:
    part = part_of(device, 2 * device.resources.sm.min_partition_size)
    with pytest.raises(CUDAError, match="INVALID_RESOURCE_CONFIGURATION"):
        part.split({"count": part.min_partition_size})
    with green_context(device, part) as context:
        (half,), rest = context.resources.sm.split({"count": part.min_partition_size})
        assert half.sm_count + rest.sm_count == part.sm_count
        green_context(device, half).close()


def test_more_than_there_are_is_refused(device: Device) -> None:
    whole = device.resources.sm
    with pytest.raises(CUDAError, match="INVALID_RESOURCE_CONFIGURATION"):
        whole.split({"count": whole.sm_count + 1})


def test_fewer_groups_than_asked_for_are_refused(device: Device) -> None:
    whole = device.resources.sm
    large = whole.sm_count // 2 // whole.coscheduled_alignment * whole.coscheduled_alignment
    with pytest.raises(CUDAError, match="INVALID_RESOURCE_CONFIGURATION"):
        whole.split({"count": [large] * 3})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"count": -1}, ValueError, "count must be 0 or more, not -1"),
        ({"count": 16.0}, TypeError, "count must be an int, a sequence of ints or None, not float"),
        ({"count": "16"}, TypeError, "count must be an int, a sequence of ints or None, not str"),
        ({"count": []}, ValueError, "count is an empty sequence"),
        ({"coscheduled_sm_count": (8,)}, ValueError, "coscheduled_sm_count is a sequence and count is not"),
        ({"count": (8, 8), "backfill": (True,)}, ValueError, "backfill has 1 values, and count has 2"),
        ({"preferred_coscheduled_sm_count": -2}, ValueError, "preferred_coscheduled_sm_count must be 0 or more"),
        ({"backfill": "yes"}, TypeError, "backfill must be a bool"),
        ({"counts": 8}, TypeError, "did you mean 'count'"),
        (8, TypeError, "SMResource.split: options must be SMResourceOptions"),
    ],
)
def test_wrong_options_are_told(device: Device, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        device.resources.sm.split(options)


# what needs CUDA 13.1


@older
@pytest.mark.parametrize(
    "options", [{"count": (8, 16)}, {"count": 8, "coscheduled_sm_count": 8}, {"preferred_coscheduled_sm_count": 16}]
)
def test_older_drivers_do_not_split_by_groups(device: Device, options: dict[str, Any]) -> None:
    with pytest.raises(UnavailableError, match=r"CUDA 13\.1"):
        device.resources.sm.split(options)


@older
def test_older_drivers_have_no_workqueues_as_resources(device: Device) -> None:
    for resources in (device.resources, device.context.resources):
        with pytest.raises(UnavailableError, match=r"need a driver for CUDA 13\.1"):
            _ = resources.workqueue


@pytest.mark.simulator_only(NEWER)
def test_groups_can_differ_in_size_and_structure() -> None:
    text = of_cuda_13_1(
        """
        groups, rest = whole.split(SMResourceOptions(count=(16, 32, 6, None), coscheduled_sm_count=(8, 16, 2, None)))
        print([(g.sm_count, g.coscheduled_alignment) for g in groups], rest.sm_count)
        """
    )
    assert text == "[(16, 8), (32, 16), (6, 2), (72, 8)] 6"


@pytest.mark.simulator_only(NEWER)
def test_newer_drivers_take_no_count_that_breaks_sets_up_unless_they_may_fill_up() -> None:
    text = of_cuda_13_1(
        """
        try:
            whole.split({"count": 12})
        except CUDAError as error:
            print(error.name)
        (group,), rest = whole.split({"count": 12, "backfill": True})
        print(group.sm_count, group.flags, rest.sm_count)
        """
    )
    assert text.split("\n") == ["CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "12 1 120"]


@pytest.mark.simulator_only(NEWER)
def test_a_dry_run_by_groups_tells_the_rest_as_well() -> None:
    text = of_cuda_13_1(
        """
        groups, rest = whole.split({"count": (16, 22), "backfill": (False, True)}, dry_run=True)
        print([g.sm_count for g in groups], rest.sm_count)
        """
    )
    assert text == "[16, 22] 94"


@pytest.mark.simulator_only(NEWER)
def test_only_parts_of_one_split_go_together() -> None:
    text = of_cuda_13_1(
        """
        one, two = (whole.split({"count": (8, 16)})[0] for _ in range(2))
        with device.create_context({"resources": one}) as context:
            print(context.resources.sm.sm_count)
        try:
            device.create_context({"resources": [one[0], two[1]]})
        except CUDAError as error:
            print(error.name)
        """
    )
    assert text.split("\n") == ["24", "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"]


@pytest.mark.simulator_only(NEWER)
def test_a_context_has_the_workqueues_that_it_was_made_with() -> None:
    text = of_cuda_13_1(
        """
        queues = device.resources.workqueue
        print(queues.sharing_scope, queues.concurrency_limit, queues.device == device, queues.handle != 0)
        queues.configure(WorkqueueResourceOptions(sharing_scope="green_ctx_balanced"))
        queues.configure({"concurrency_limit": 3})
        queues.configure(WorkqueueResourceOptions())
        print(queues, device.resources.workqueue.sharing_scope)
        with device.create_context(ContextOptions(whole.split({"count": 8})[0] + [queues])) as context:
            queues.configure({"concurrency_limit": 5})
            print(context.resources.sm.sm_count, context.resources.workqueue)
        with device.create_context(ContextOptions([queues])) as context, context.create_stream() as stream:
            print(stream.resources.sm.sm_count, stream.resources.workqueue.concurrency_limit)
        """
    )
    assert text.split("\n") == [
        "device_ctx 8 True True",
        "<WorkqueueResource sharing_scope=green_ctx_balanced concurrency_limit=3> device_ctx",
        "8 <WorkqueueResource sharing_scope=green_ctx_balanced concurrency_limit=3>",
        "132 5",
    ]


@pytest.mark.simulator_only(NEWER)
def test_what_does_not_fit_changes_no_workqueue() -> None:
    text = of_cuda_13_1(
        """
        queues = device.resources.workqueue
        options = WorkqueueResourceOptions("green_ctx_balanced")
        options.concurrency_limit = 0
        for wrong in (options, {"sharing_scope": "all"}, 4):
            try:
                queues.configure(wrong)
            except (TypeError, ValueError) as error:
                print(error)
        print(queues)
        """
    )
    told = text.split("\n")
    assert told[0] == "concurrency_limit must be 1 or more, not 0"
    assert told[1].startswith("sharing_scope must be one of")
    assert told[2].startswith("WorkqueueResource.configure: options must be WorkqueueResourceOptions")
    assert told[3] == "<WorkqueueResource sharing_scope=device_ctx concurrency_limit=8>"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sharing_scope": "all"}, ValueError, "sharing_scope must be one of 'device_ctx', 'green_ctx_balanced'"),
        ({"sharing_scope": 1}, ValueError, "sharing_scope must be one of"),
        ({"concurrency_limit": 0}, ValueError, "concurrency_limit must be 1 or more, not 0"),
        ({"concurrency_limit": False}, ValueError, "concurrency_limit must be 1 or more, not 0"),
        ({"concurrency_limit": 1.5}, TypeError, "concurrency_limit must be an int or None, not float"),
        ({"concurrency_limit": 2**32}, OverflowError, "concurrency_limit must be 4294967295 or less"),
    ],
)
def test_workqueue_options_are_checked_when_they_are_made(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        WorkqueueResourceOptions(**options)


def test_workqueue_options_take_the_enumeration_and_its_strings() -> None:
    for scope in WorkqueueSharingScopeType:
        assert WorkqueueResourceOptions(scope) == WorkqueueResourceOptions(str(scope))
    assert WorkqueueResourceOptions(concurrency_limit=True).concurrency_limit == 1


# drivers that have none of this


@pytest.mark.simulator_only("the driver of the simulator can be an older one")
def test_a_driver_before_cuda_12_4_is_told() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device, UnavailableError
        device = Device()
        device.set_current()
        for resources in (device.resources, device.context.resources):
            try:
                resources.sm
            except UnavailableError as error:
                print(error)
        print(device.context.is_green)
        """,
        CUDA_SIM_DRIVER_VERSION="12030",
    )
    told = text.split("\n")
    assert "cuDeviceGetDevResource needs a driver for CUDA 12.4" in told[0]
    assert "cuCtxGetDevResource needs a driver for CUDA 12.4" in told[1]
    assert told[2] == "False"
