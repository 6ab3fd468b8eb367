# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The shape of a launch: what LaunchConfig accepts, keeps and hands to the driver. No driver is needed."""

from __future__ import annotations

import enum
import itertools
import pickle
import threading
import weakref
from typing import Any

import numpy
import pytest

from cuda_core_cffi import LaunchConfig, MemSyncDomainMap, ffi, lib
from cuda_core_cffi._launching import config as config_module
from cuda_core_cffi._launching.attributes import (
    ACCESS_PROPERTIES,
    ATTRIBUTES,
    CLUSTER_POLICIES,
    DOMAINS,
    PORTABLE_SIZES,
    SHARED_MEMORY_MODES,
)
from cuda_core_cffi.typing import (
    ClusterSchedulingPolicyType,
    MemSyncDomainType,
    PortableClusterSizeType,
    SharedMemoryModeType,
)

FIELDS = {
    "grid": (2, 1, 1),
    "cluster": (1, 1, 1),
    "block": (64, 1, 1),
    "shmem_size": 128,
    "is_cooperative": True,
    "programmatic_stream_serialization": True,
}
# Fields beyond these: what is given, what is kept, the driver's number, and the first integers of the value it gets.
EXTRAS = {
    "priority": (-3, -3, 8, (-3,)),
    "preferred_cluster": ((4, 2), (4, 2, 1), 11, (4, 2, 1)),
    "cluster_scheduling_policy": ("spread", ClusterSchedulingPolicyType.SPREAD, 5, (1,)),
    "portable_cluster_size": ("allow_non_portable", PortableClusterSizeType.ALLOW_NON_PORTABLE, 17, (2,)),
    "mem_sync_domain": ("remote", MemSyncDomainType.REMOTE, 10, (1,)),
    "mem_sync_domain_map": ([0, 2], MemSyncDomainMap(0, 2), 9, (2 << 8,)),
    "preferred_shared_memory_carveout": (numpy.int16(50), 50, 14, (50,)),
    "shared_memory_mode": ("prefer_oversized", SharedMemoryModeType.PREFER_OVERSIZED, 18, (4,)),
    "nvlink_util_centric_scheduling": (1, True, 16, (1,)),
}
OF_OBJECTS = {"programmatic_event", "launch_completion_event", "access_policy_window"}  # test_launch_attributes.py
LARGEST = 2**32 - 1


class Size(enum.IntEnum):
    FOUR = 4


def attributes(config: LaunchConfig) -> dict[int, Any]:
    """Return the launch attributes that the driver gets, by number."""
    native = config._native
    return {int(native.attributes[i].id): native.attributes[i].value for i in range(native.driver.numAttrs)}


def dimensions(config: LaunchConfig) -> tuple[int, ...]:
    """Return grid and block as the driver gets them."""
    driver = config._native.driver
    return (
        driver.gridDimX, driver.gridDimY, driver.gridDimZ, driver.blockDimX, driver.blockDimY, driver.blockDimZ,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["grid", "block", "cluster"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (4, (4, 1, 1)),
        ((4,), (4, 1, 1)),
        ((4, 5), (4, 5, 1)),
        ((4, 5, 6), (4, 5, 6)),
        ([4, 5], (4, 5, 1)),
        (numpy.int32(4), (4, 1, 1)),
        ((numpy.uint8(4), 5), (4, 5, 1)),
        (Size.FOUR, (4, 1, 1)),
    ],
)
def test_dimensions_become_three(name, given, expected):
    config = LaunchConfig(**{"grid": 1, "block": 1, name: given})
    assert getattr(config, name) == expected
    assert all(type(count) is int for count in getattr(config, name))


def test_the_smallest_configuration_has_the_defaults():
    config = LaunchConfig(1, None, 1)
    assert (config.grid, config.cluster, config.block) == ((1, 1, 1), None, (1, 1, 1))
    assert (config.shmem_size, config.is_cooperative, config.programmatic_stream_serialization) == (0, False, False)


def test_arguments_may_be_positional():
    assert LaunchConfig(2, 1, 64, 128, True, True) == LaunchConfig(**FIELDS)


@pytest.mark.parametrize("arguments", [{}, {"grid": 1}, {"block": 1}])
def test_grid_and_block_are_required(arguments):
    with pytest.raises(ValueError, match="is required"):
        LaunchConfig(**arguments)


@pytest.mark.parametrize("name", ["grid", "block", "cluster"])
@pytest.mark.parametrize("wrong", [0, -1, (1, 0), (1, 1, -3), LARGEST + 1])
def test_a_dimension_out_of_range_is_a_value_error_that_names_field_and_value(name, wrong):
    value = wrong if isinstance(wrong, int) else min(wrong)
    with pytest.raises(ValueError, match=rf"{name}.*not {value}$"):
        LaunchConfig(**{"grid": 1, "block": 1, name: wrong})


@pytest.mark.parametrize("name", ["grid", "block", "cluster"])
@pytest.mark.parametrize("wrong", [(), (1, 1, 1, 1), []])
def test_there_are_one_to_three_dimensions(name, wrong):
    with pytest.raises(ValueError, match=f"{name} must have 1 to 3 dimensions, not {len(wrong)}"):
        LaunchConfig(**{"grid": 1, "block": 1, name: wrong})


@pytest.mark.parametrize("name", ["grid", "block", "cluster"])
@pytest.mark.parametrize("wrong", ["1", 1.0, True, b"1", {1}, (1, "2"), (1, 2.0), (True,)])
def test_a_dimension_that_is_no_int_is_a_type_error_that_names_the_field(name, wrong):
    with pytest.raises(TypeError, match=name):
        LaunchConfig(**{"grid": 1, "block": 1, name: wrong})


@pytest.mark.parametrize("wrong", [-1, LARGEST + 1])
def test_shared_memory_out_of_range_is_a_value_error(wrong):
    with pytest.raises(ValueError, match=f"shmem_size.*not {wrong}"):
        LaunchConfig(grid=1, block=1, shmem_size=wrong)


@pytest.mark.parametrize("wrong", ["1", 1.0, True])
def test_shared_memory_that_is_no_int_is_a_type_error(wrong):
    with pytest.raises(TypeError, match="shmem_size"):
        LaunchConfig(grid=1, block=1, shmem_size=wrong)


def test_no_shared_memory_may_be_said_as_none():
    assert LaunchConfig(grid=1, block=1, shmem_size=None).shmem_size == 0


def test_equal_values_make_equal_configurations_with_equal_hashes():
    one, other = LaunchConfig(**FIELDS), LaunchConfig(**{**FIELDS, "grid": [2], "block": 64})
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_makes_configurations_differ(name):
    others = {"grid": 3, "cluster": None, "block": 32, "shmem_size": 0}
    assert LaunchConfig(**FIELDS) != LaunchConfig(**{**FIELDS, name: others.get(name, False)})


def test_no_cluster_differs_from_a_cluster_of_one():
    assert LaunchConfig(grid=1, block=1) != LaunchConfig(grid=1, block=1, cluster=1)


@pytest.mark.parametrize("other", [None, 1, (1, 1), "LaunchConfig"])
def test_a_configuration_equals_nothing_else(other):
    assert LaunchConfig(grid=1, block=1) != other


def test_repr_shows_every_field():
    text = repr(LaunchConfig(**FIELDS))
    assert text == f"LaunchConfig({', '.join(f'{name}={value!r}' for name, value in FIELDS.items())})"


def test_repr_evaluates_to_an_equal_configuration():
    config = LaunchConfig(**FIELDS)
    assert eval(repr(config)) == config


@pytest.mark.parametrize(("name", "value"), FIELDS.items())
def test_every_field_can_be_assigned(name, value):
    config = LaunchConfig(grid=1, block=1)
    setattr(config, name, value)
    assert getattr(config, name) == value
    assert config == LaunchConfig(**{"grid": 1, "block": 1, name: value})


@pytest.mark.parametrize("name", ["grid", "block"])
@pytest.mark.parametrize("wrong", [4, [4, 1, 1], None, "4"])
def test_grid_and_block_are_assigned_tuples_only(name, wrong):
    config = LaunchConfig(grid=1, block=1)
    with pytest.raises(TypeError, match=f"{name} must be assigned a tuple"):
        setattr(config, name, wrong)
    assert config == LaunchConfig(grid=1, block=1)


@pytest.mark.parametrize(
    ("name", "wrong", "error"),
    [
        ("grid", (0,), ValueError), ("block", (1, 1, 1, 1), ValueError), ("cluster", 0, ValueError),
        ("shmem_size", -1, ValueError), ("shmem_size", None, TypeError), ("grid", (1.5,), TypeError),
    ],
)  # fmt: skip
def test_assigning_a_wrong_value_is_refused_and_changes_nothing(name, wrong, error):
    config = LaunchConfig(**FIELDS)
    with pytest.raises(error, match=name):
        setattr(config, name, wrong)
    assert config == LaunchConfig(**FIELDS)


def test_an_unknown_field_cannot_be_assigned():
    with pytest.raises(AttributeError):
        LaunchConfig(grid=1, block=1).gird = (2, 1, 1)


def test_a_configuration_does_not_pickle():
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(LaunchConfig(grid=1, block=1))


def test_a_configuration_can_be_weakly_referenced():
    config = LaunchConfig(grid=1, block=1)
    assert weakref.ref(config)() is config


def test_the_driver_gets_grid_block_and_shared_memory():
    config = LaunchConfig(grid=(2, 3, 4), block=(5, 6, 7), shmem_size=89)
    assert dimensions(config) == (2, 3, 4, 5, 6, 7)
    assert config._native.driver.sharedMemBytes == 89
    assert attributes(config) == {}


def test_a_cluster_multiplies_the_grid():
    config = LaunchConfig(grid=(2, 3, 4), cluster=(5, 1, 2), block=32)
    assert dimensions(config) == (10, 3, 8, 32, 1, 1)
    cluster = attributes(config)[lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim
    assert (cluster.x, cluster.y, cluster.z) == (5, 1, 2)
    assert config.grid == (2, 3, 4)


def test_clusters_times_grid_must_fit_the_driver():
    config = LaunchConfig(grid=LARGEST, cluster=2, block=1)
    with pytest.raises(ValueError, match=f"grid.*not {2 * LARGEST}"):
        _ = config._native


@pytest.mark.parametrize(
    ("cluster", "cooperative", "serialization"), list(itertools.product([None, 2], [False, True], [False, True]))
)
def test_the_driver_gets_the_attributes_that_are_set_and_no_others(cluster, cooperative, serialization):
    config = LaunchConfig(
        grid=1, cluster=cluster, block=1, is_cooperative=cooperative, programmatic_stream_serialization=serialization
    )
    found = attributes(config)
    expected = {
        lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: cluster is not None,
        lib.CU_LAUNCH_ATTRIBUTE_COOPERATIVE: cooperative,
        lib.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: serialization,
    }
    assert set(found) == {number for number, wanted in expected.items() if wanted}
    if cooperative:
        assert found[lib.CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative == 1
    if serialization:
        value = found[lib.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION]
        assert value.programmaticStreamSerializationAllowed == 1


def test_the_native_structure_is_made_once():
    config = LaunchConfig(grid=1, block=1)
    assert config._native is config._native


@pytest.mark.parametrize(("name", "value"), FIELDS.items())
def test_assigning_any_field_renews_the_native_structure(name, value):
    config = LaunchConfig(grid=1, block=1)
    before = config._native
    setattr(config, name, value)
    assert config._native is not before


def test_the_renewed_native_structure_has_the_new_values():
    config = LaunchConfig(grid=1, block=1)
    _ = config._native
    config.grid, config.block, config.cluster, config.shmem_size = (2, 2), (64,), (2,), 16
    assert dimensions(config) == (4, 2, 1, 64, 1, 1)
    assert config._native.driver.sharedMemBytes == 16


def test_the_native_structure_in_use_survives_its_renewal():
    config = LaunchConfig(grid=7, block=1)
    before = config._native
    config.grid = (8,)
    _ = config._native
    assert before.driver.gridDimX == 7


# Launch attributes beyond the first six fields


def extra(name: str) -> LaunchConfig:
    """Return a configuration with one more field."""
    return LaunchConfig(grid=(4, 2), block=1, cluster=(2, 1), **{name: EXTRAS[name][0]})


def first_integers(value: Any, count: int) -> tuple[int, ...]:
    """Return what an attribute's value starts with."""
    return tuple(ffi.cast("int *", ffi.addressof(value))[0:count])


def test_every_field_is_tested():
    assert {*EXTRAS, *OF_OBJECTS, *FIELDS} == {*ATTRIBUTES, *FIELDS}


def test_every_attribute_of_the_header_is_a_field_or_not_for_launches():
    header = ffi.typeof("CUlaunchAttributeID").elements
    absent = {"IGNORE", "SYNCHRONIZATION_POLICY", "DEVICE_UPDATABLE_KERNEL_NODE"}  # docs/launch.md says why
    fields = {int(row.number) for row in ATTRIBUTES.values()}
    assert {name.removeprefix("CU_LAUNCH_ATTRIBUTE_") for number, name in header.items() if number not in fields} == (
        absent
    )


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("CUaccessProperty", ACCESS_PROPERTIES),
        ("CUclusterSchedulingPolicy", CLUSTER_POLICIES),
        ("CUlaunchMemSyncDomain", DOMAINS),
        ("CUlaunchAttributePortableClusterMode", PORTABLE_SIZES),
        ("CUsharedMemoryMode", SHARED_MEMORY_MODES),
    ],
)
def test_every_value_of_the_header_can_be_chosen_and_every_choice_has_one(name, table):
    try:
        header = ffi.typeof(name).elements
    except ffi.error:
        pytest.skip("the header of this build is older")
    assert set(table) == set(type(next(iter(table))))
    assert set(header) <= {int(number) for number in table.values()}
    assert len(set(table.values())) == len(table)


def test_there_is_room_for_all_attributes_and_objects():
    assert len(ATTRIBUTES) <= lib.CCC_MAX_LAUNCH_ATTRIBUTES
    assert sum(row.refer is not None for row in ATTRIBUTES.values()) <= lib.CCC_MAX_LAUNCH_OBJECTS


@pytest.mark.parametrize("name", [*EXTRAS, *sorted(OF_OBJECTS)])
def test_a_field_that_is_not_given_is_none(name):
    assert getattr(LaunchConfig(grid=1, block=1), name) is None


@pytest.mark.parametrize("name", EXTRAS)
def test_a_further_field_is_kept_in_its_own_type(name):
    kept = getattr(extra(name), name)
    assert kept == EXTRAS[name][1]
    assert type(kept) is type(EXTRAS[name][1])


@pytest.mark.parametrize("name", EXTRAS)
def test_the_driver_gets_a_further_field(name):
    _, _, number, integers = EXTRAS[name]
    config = extra(name)
    found = attributes(config)
    assert set(found) == {lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, number}
    assert first_integers(found[number], len(integers)) == integers


@pytest.mark.parametrize("kind", ["cluster_scheduling_policy", "portable_cluster_size", "shared_memory_mode"])
def test_the_driver_gets_the_choices_of_a_field_in_their_order(kind):
    choices = type(EXTRAS[kind][1])
    for number, choice in enumerate(choices):
        value = attributes(LaunchConfig(1, None, 1, **{kind: choice.value}))[EXTRAS[kind][2]]
        assert first_integers(value, 1) == (number,)


def test_all_attributes_can_be_given_at_once():
    config = LaunchConfig(
        **{**FIELDS, "cluster": 2},
        **{name: given for name, (given, *_) in EXTRAS.items() if name != "preferred_cluster"},
        preferred_cluster=4,
    )
    assert len(attributes(config)) == 3 + len(EXTRAS)


def test_further_fields_are_keywords():
    with pytest.raises(TypeError, match="positional"):
        LaunchConfig(1, None, 1, 0, False, False, 0)


def test_an_unknown_field_is_a_type_error():
    with pytest.raises(TypeError, match="prioritty"):
        LaunchConfig(grid=1, block=1, prioritty=1)


@pytest.mark.parametrize("name", EXTRAS)
def test_further_fields_take_part_in_equality_and_hash(name):
    plain = LaunchConfig(grid=(4, 2), block=1, cluster=(2, 1))
    assert extra(name) == extra(name) != plain
    assert hash(extra(name)) == hash(extra(name))
    assert len({extra(name), extra(name), plain}) == 2


def test_a_field_that_is_assigned_while_another_thread_launches_is_not_missed(monkeypatch):
    config = LaunchConfig(grid=1, block=1)
    make = config_module.make_native
    assigning = threading.Thread(target=setattr, args=(config, "grid", (2,)))

    def make_slowly(config):
        native = make(config)
        assigning.start()
        assigning.join(0.1)  # time enough, unless it has to wait
        return native

    monkeypatch.setattr(config_module, "make_native", make_slowly)
    assert config._native.driver.gridDimX == 1
    monkeypatch.undo()
    assigning.join()
    assert config._native.driver.gridDimX == 2


@pytest.mark.parametrize("name", EXTRAS)
def test_a_further_field_can_be_assigned_and_taken_back(name):
    config = LaunchConfig(grid=(4, 2), block=1, cluster=(2, 1))
    before = config._native
    setattr(config, name, EXTRAS[name][0])
    assert config == extra(name)
    assert config._native is not before
    setattr(config, name, None)
    assert config == LaunchConfig(grid=(4, 2), block=1, cluster=(2, 1))
    assert len(attributes(config)) == 1


def test_the_order_in_which_fields_are_assigned_does_not_matter():
    one, other = LaunchConfig(grid=1, block=1), LaunchConfig(grid=1, block=1)
    one.priority, one.mem_sync_domain = 0, "remote"
    other.mem_sync_domain, other.priority = "remote", 0
    assert one == other
    assert (hash(one), repr(one)) == (hash(other), repr(other))


def test_fields_given_and_fields_assigned_make_equal_configurations():
    values = {name: given for name, (given, *_) in EXTRAS.items()}
    given, assigned = LaunchConfig(grid=1, block=1, **values), LaunchConfig(grid=1, block=1)
    for name in reversed(EXTRAS):
        setattr(assigned, name, values[name])
    assert given == assigned
    assert (hash(given), repr(given)) == (hash(assigned), repr(assigned))


@pytest.mark.parametrize("name", EXTRAS)
def test_repr_shows_a_further_field_where_it_was_given(name):
    config = extra(name)
    kept = EXTRAS[name][1]
    shown = repr(kept.value) if isinstance(kept, enum.Enum) else repr(kept)
    assert repr(config).endswith(f", programmatic_stream_serialization=False, {name}={shown})")
    assert eval(repr(config)) == config


@pytest.mark.parametrize(
    ("name", "wrong", "error"),
    [
        ("priority", 1.5, TypeError), ("priority", True, TypeError), ("priority", 2**31, ValueError),
        ("preferred_cluster", 0, ValueError), ("preferred_cluster", (1, 1, 1, 1), ValueError),
        ("preferred_cluster", "2", TypeError), ("cluster_scheduling_policy", "fair", ValueError),
        ("cluster_scheduling_policy", 1, ValueError), ("portable_cluster_size", True, ValueError),
        ("mem_sync_domain", "far", ValueError), ("mem_sync_domain_map", 1, TypeError),
        ("mem_sync_domain_map", (1,), TypeError), ("mem_sync_domain_map", (0, 256), ValueError),
        ("mem_sync_domain_map", (0, -1), ValueError), ("mem_sync_domain_map", (0, "1"), TypeError),
        ("preferred_shared_memory_carveout", 101, ValueError), ("preferred_shared_memory_carveout", -1, ValueError),
        ("preferred_shared_memory_carveout", "max", TypeError), ("shared_memory_mode", "huge", ValueError),
        ("programmatic_event", 1, TypeError), ("launch_completion_event", "event", TypeError),
        ("access_policy_window", (0, 1), TypeError), ("access_policy_window", {"bufer": 1}, TypeError),
    ],
)  # fmt: skip
def test_a_wrong_value_of_a_further_field_is_refused_by_name(name, wrong, error):
    with pytest.raises(error, match=name):
        LaunchConfig(grid=1, block=1, **{name: wrong})
    config = LaunchConfig(grid=1, block=1)
    with pytest.raises(error, match=name):
        setattr(config, name, wrong)
    assert config == LaunchConfig(grid=1, block=1)


@pytest.mark.parametrize(
    ("cluster", "preferred", "grid"),
    [
        ((2, 1, 1), (3, 1, 1), 3),
        ((2, 1, 1), (1, 1, 1), 2),
        ((2, 1, 1), (4, 1, 1), 3),
        ((1, 1, 1), (1, 1, 2), (1, 1, 2)),
    ],
)
def test_a_preferred_cluster_is_a_multiple_of_the_cluster_that_divides_the_grid(cluster, preferred, grid):
    config = LaunchConfig(grid=grid, cluster=cluster, block=1, preferred_cluster=preferred)
    with pytest.raises(ValueError, match=r"preferred_cluster .* must be a multiple of cluster"):
        _ = config._native


def test_a_preferred_cluster_without_a_cluster_is_left_to_the_kernel():
    assert set(attributes(LaunchConfig(grid=1, block=1, preferred_cluster=2))) == {11}


def test_a_block_in_the_place_of_the_cluster_is_recognised():
    with pytest.raises(
        ValueError, match=r"block is required: the second positional .* cluster; did you mean block=256"
    ):
        LaunchConfig(1, 256)
    with pytest.raises(ValueError, match=r"block is required$"):
        LaunchConfig(1)
