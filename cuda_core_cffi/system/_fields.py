# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Fields: numbers of a device that are asked for by an identifier, many at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import call
from cuda_core_cffi.system._snapshot import Snapshot, sequence_index
from cuda_core_cffi.system.exceptions import failure
from cuda_core_cffi.system.typing import FieldId

__all__ = ["FieldValue", "FieldValues", "clear_fields", "field_values", "read_fields"]

VALUES = {
    int(nvml.nvmlValueType_t.NVML_VALUE_TYPE_DOUBLE): "dVal",
    int(nvml.nvmlValueType_t.NVML_VALUE_TYPE_UNSIGNED_INT): "uiVal",
    int(nvml.nvmlValueType_t.NVML_VALUE_TYPE_UNSIGNED_LONG): "ulVal",
    int(nvml.nvmlValueType_t.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG): "ullVal",
    int(nvml.nvmlValueType_t.NVML_VALUE_TYPE_SIGNED_LONG_LONG): "sllVal",
    int(nvml.nvmlValueType_t.NVML_VALUE_TYPE_SIGNED_INT): "siVal",
    int(nvml.nvmlValueType_t.NVML_VALUE_TYPE_UNSIGNED_SHORT): "usVal",
}
OTHER_VALUE = "ullVal"  # of a type that NVML added later: the whole union as a number
CALL = "nvmlDeviceGetFieldValues"
MOST_UNSIGNED = 2**32 - 1


class FieldValue(Snapshot["nvml.nvmlFieldValue_t"]):
    """What a field was, or why it could not be read.

    Parameters
    ----------
    field_value : nvmlFieldValue_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlFieldValue_t"

    def __init__(self, field_value: nvml.nvmlFieldValue_t) -> None:
        self._record = field_value

    def __repr__(self) -> str:
        """Return the field, and the value or the status."""
        status = self._record.nvmlReturn
        shown = getattr(status, "name", status) if status else self.value
        return f"<FieldValue {self.field_id!r} scope_id={self.scope_id} {shown}>"

    @property
    def field_id(self) -> FieldId | int:
        """The field; an int if the header that this package was built with does not know it."""
        number = self._record.fieldId
        try:
            return FieldId(number)
        except ValueError:
            return number

    @property
    def scope_id(self) -> int:
        """What of the device is meant, such as the number of a link; 0 for the device."""
        return self._record.scopeId

    @property
    def timestamp(self) -> int:
        """When the value was sampled, in microseconds since 1970."""
        return self._record.timestamp

    @property
    def latency_usec(self) -> int:
        """How long it took to read the value, in microseconds; a mean over fields that were read together."""
        return self._record.latencyUsec

    @property
    def value(self) -> int | float:
        """The value.

        Raises
        ------
        NvmlError
            If this field could not be read.
        """
        record = self._record
        status = record.nvmlReturn
        if status:
            raise failure(status, CALL, f" (field {self.field_id!r}, scope {record.scopeId})")
        found: int | float = getattr(record.value, VALUES.get(int(record.valueType), OTHER_VALUE))
        return found


class FieldValues:
    """What several fields were; made by :meth:`Device.get_field_values`.

    Parameters
    ----------
    field_values : sequence of nvmlFieldValue_t
        What NVML told.
    """

    __slots__ = ("_values",)

    def __init__(self, field_values: Sequence[nvml.nvmlFieldValue_t]) -> None:
        self._values = [FieldValue(record) for record in field_values]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, idx: int) -> FieldValue:
        return self._values[sequence_index(idx, len(self._values), "field value")]

    def __iter__(self) -> Iterator[FieldValue]:
        return iter(self._values)

    def __repr__(self) -> str:
        """Return the values."""
        return f"<FieldValues {self._values}>"

    def validate(self) -> None:
        """Check that every field was read.

        Raises
        ------
        NvmlError
            For the first that was not.
        """
        self.get_all_values()

    def get_all_values(self) -> list[int | float]:
        """Return the values alone.

        Returns
        -------
        list of int or float
            In the order of the fields.

        Raises
        ------
        NvmlError
            For the first field that could not be read.
        """
        return [item.value for item in self._values]


def read_fields(
    handle: nvml.nvmlDevice_t, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]
) -> list[FieldValue]:
    """Return fields of a device.

    Raises
    ------
    TypeError, ValueError
        If an identifier is none.
    NvmlError
        If nothing could be read.
    """
    records = requests(field_ids)
    if records:
        call(nvml.nvmlDeviceGetFieldValues, handle, len(records), records)
    return [FieldValue(record) for record in records]


def field_values(
    handle: nvml.nvmlDevice_t, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]
) -> FieldValues:
    """Return fields of a device as a container; see :meth:`Device.get_field_values`."""
    records = requests(field_ids)
    if records:
        call(nvml.nvmlDeviceGetFieldValues, handle, len(records), records)
    return FieldValues(records)


def clear_fields(handle: nvml.nvmlDevice_t, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> None:
    """Set fields of a device to 0; see :meth:`Device.clear_field_values`."""
    records = requests(field_ids)
    if records:
        call(nvml.nvmlDeviceClearFieldValues, handle, len(records), records)
    for record in records:
        if record.nvmlReturn:
            raise failure(record.nvmlReturn, "nvmlDeviceClearFieldValues", f" (field {record.fieldId})")


def requests(field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> list[nvml.nvmlFieldValue_t]:
    """Return the structures that ask for fields."""
    if isinstance(field_ids, str | bytes) or not isinstance(field_ids, Iterable):
        raise TypeError(f"field_ids must be a list of FieldId, or of pairs with a scope, not {field_ids!r:.80}")
    records = []
    for item in field_ids:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(f"field_ids: a tuple is a field and a scope, not {item!r}")
            field, scope = item
        else:
            field, scope = item, 0
        field, scope = integer(field, "field_ids"), integer(scope, "field_ids: the scope")
        if not (0 <= field <= MOST_UNSIGNED and 0 <= scope <= MOST_UNSIGNED):
            raise ValueError(f"field_ids: field and scope must be 0 to {MOST_UNSIGNED}, not {field} and {scope}")
        records.append(nvml.nvmlFieldValue_t(fieldId=field, scopeId=scope))
    return records
