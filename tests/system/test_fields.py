# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Fields of a device, many at once."""

from __future__ import annotations

import pytest

from cuda_core_cffi import nvml, system
from cuda_core_cffi.system import _fields
from cuda_core_cffi.system.typing import FieldId

FIELDS = [FieldId.DEV_ECC_CURRENT, FieldId.DEV_NVLINK_LINK_COUNT, FieldId.DEV_TOTAL_ENERGY_CONSUMPTION]


@pytest.fixture
def device() -> system.Device:
    return system.Device(index=0)


def test_fields_come_in_the_order_in_which_they_are_asked_for(device) -> None:
    told = device.get_field_values([*FIELDS, (FieldId.DEV_NVLINK_GET_STATE, 3), int(FIELDS[0])])
    assert len(told) == 5
    assert [item.field_id for item in told] == [*FIELDS, FieldId.DEV_NVLINK_GET_STATE, FIELDS[0]]
    assert [item.scope_id for item in told] == [0, 0, 0, 3, 0]
    assert told[-1].field_id is FIELDS[0]
    for item in told:
        assert type(item.timestamp) is int
        assert type(item.latency_usec) is int


def test_an_index_beyond_the_end_ends_a_loop(device) -> None:
    told = device.get_field_values(FIELDS)
    assert len(list(told)) == 3
    with pytest.raises(IndexError, match="field value 3 is out of range: there are 3"):
        _ = told[3]
    with pytest.raises(TypeError):
        _ = told["0"]


def test_no_fields_are_no_call(device) -> None:
    told = device.get_field_values([])
    assert len(told) == 0
    assert told.get_all_values() == []
    device.clear_field_values([])


def test_a_field_that_cannot_be_read_raises_when_its_value_is_asked_for(device) -> None:
    told = device.get_field_values([FieldId.DEV_TOTAL_ENERGY_CONSUMPTION, 2**20])
    assert told[1].field_id == 2**20
    assert type(told[1].field_id) is int
    for ask in (lambda: told[1].value, told.validate, told.get_all_values):
        with pytest.raises(system.NvmlError, match=r"nvmlDeviceGetFieldValues failed: .* \(field 1048576, scope 0\)"):
            ask()
    assert "NVML_ERROR" in repr(told[1])


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("DOUBLE", "dVal", 1.5),
        ("UNSIGNED_INT", "uiVal", 2**32 - 1),
        ("UNSIGNED_LONG", "ulVal", 2**63),
        ("UNSIGNED_LONG_LONG", "ullVal", 2**64 - 1),
        ("SIGNED_LONG_LONG", "sllVal", -(2**63)),
        ("SIGNED_INT", "siVal", -(2**31)),
        ("UNSIGNED_SHORT", "usVal", 2**16 - 1),
    ],
)
def test_a_value_has_the_type_that_nvml_says(kind, field, value) -> None:
    record = nvml.nvmlFieldValue_t(fieldId=1, valueType=nvml.nvmlValueType_t[f"NVML_VALUE_TYPE_{kind}"])
    setattr(record.value, field, value)
    told = _fields.FieldValue(record).value
    assert (told, type(told)) == (value, type(value))


def test_a_value_of_a_type_that_is_not_known_is_a_number() -> None:
    record = nvml.nvmlFieldValue_t(fieldId=1, valueType=99)
    record.value.ullVal = 5
    assert _fields.FieldValue(record).value == 5


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (3, TypeError),
        ("abc", TypeError),
        (["a"], TypeError),
        ([True], TypeError),
        ([1.0], TypeError),
        ([-1], ValueError),
        ([2**32], ValueError),
        ([(1, 2, 3)], ValueError),
        ([(1, "0")], TypeError),
    ],
)
def test_what_is_no_field_is_refused(device, fields, error) -> None:
    with pytest.raises(error, match="field_ids"):
        device.get_field_values(fields)
    with pytest.raises(error, match="field_ids"):
        device.clear_field_values(fields)


def test_there_is_a_member_for_every_field_of_the_header() -> None:
    macros = {name for name in vars(nvml) if name.startswith("NVML_FI_")} - {"NVML_FI_MAX"}
    assert {f"NVML_FI_{name}" for name in FieldId.__members__} == macros
    assert all(FieldId[name.removeprefix("NVML_FI_")] == getattr(nvml, name) for name in macros)
