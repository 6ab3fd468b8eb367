# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Fields: numbers of a device that are asked for by an identifier, many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import fills_array
from cuda_core_cffi.system._snapshot import Snapshot, sequence_index
from cuda_core_cffi.system.exceptions import failure
from cuda_core_cffi.system.typing import FieldId

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
CALL, CLEAR = "nvmlDeviceGetFieldValues", "nvmlDeviceClearFieldValues"
STATUSES = {int(status): status.name for status in nvml.nvmlReturn_t}
MOST_UNSIGNED = 2**32 - 1
ARRAY = ffi.typeof("nvmlFieldValue_t[]")

get_fields, set_fields_to_0 = fills_array(CALL), fills_array(CLEAR)


class FieldValue(Snapshot["nvml.nvmlFieldValue_t"]):
    """What a field was, or why it could not be read.

    Parameters
    ----------
    field_value : nvmlFieldValue_t
        What NVML told.
    owner : object, optional
        What the structure is in; it is kept alive.
    """

    __slots__ = ("_owner",)

    _STRUCTURE = "nvmlFieldValue_t"

    def __init__(self, field_value: nvml.nvmlFieldValue_t, owner: object = None) -> None:
        self._record = field_value
        self._owner = owner

    def __repr__(self) -> str:
        """Return the field, and the value or the status."""
        status = self._record.nvmlReturn
        shown = STATUSES.get(status, status) if status else self.value
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
        return value_of(self._record)


class FieldValues:
    """What several fields were; made by :meth:`Device.get_field_values`.

    Parameters
    ----------
    field_values : sequence of nvmlFieldValue_t
        What NVML told.
    owner : object, optional
        What the structures are in; it is kept alive.
    """

    __slots__ = ("_owner", "_records")

    def __init__(self, field_values: Sequence[nvml.nvmlFieldValue_t], owner: object = None) -> None:
        self._records = field_values
        self._owner = owner

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, idx: int) -> FieldValue:
        record = self._records[sequence_index(idx, len(self._records), "field value")]
        return FieldValue(record, self._owner)

    def __iter__(self) -> Iterator[FieldValue]:
        return (FieldValue(record, self._owner) for record in self._records)

    def __repr__(self) -> str:
        """Return the values."""
        return f"<FieldValues {list(self)}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Return what the same values are made from."""
        return together, (list(self),)

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
        return [value_of(record) for record in self._records]


def together(fields: list[FieldValue]) -> FieldValues:
    """Return the container of fields."""
    return FieldValues([field._record for field in fields], fields)


def value_of(record: nvml.nvmlFieldValue_t) -> int | float:
    """Return the value of a field.

    Raises
    ------
    NvmlError
        If this field could not be read.
    """
    status = record.nvmlReturn
    if status:
        raise failure(status, CALL, f" (field {FieldValue(record).field_id!r}, scope {record.scopeId})")
    found: int | float = getattr(record.value, VALUES.get(int(record.valueType), OTHER_VALUE))
    return found


def field_values(
    handle: nvml.nvmlDevice_t, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]
) -> FieldValues:
    """Return fields of a device; see :meth:`Device.get_field_values`."""
    return ask(get_fields, handle, field_ids)


def clear_fields(handle: nvml.nvmlDevice_t, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> None:
    """Set fields of a device to 0; see :meth:`Device.clear_field_values`."""
    for field in ask(set_fields_to_0, handle, field_ids):
        if field._record.nvmlReturn:
            raise failure(field._record.nvmlReturn, CLEAR, f" (field {field._record.fieldId})")


def ask(
    fill: Callable[[int, int, Any], None],
    handle: nvml.nvmlDevice_t,
    field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]],
) -> FieldValues:
    """Call a function of NVML with fields, and return them."""
    asked = identifiers(field_ids)
    array = ffi.new(ARRAY, len(asked))
    records = [array + index for index in range(len(asked))]
    for record, (field, scope) in zip(records, asked, strict=True):
        record.fieldId = field
        record.scopeId = scope
    if records:
        fill(handle, len(records), array)
    return FieldValues(records, array)


def identifiers(field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> list[tuple[int, int]]:
    """Return fields and scopes that a caller gave.

    Raises
    ------
    TypeError, ValueError
        If something is no identifier of a field.
    """
    if isinstance(field_ids, str | bytes) or not isinstance(field_ids, Iterable):
        raise TypeError(f"field_ids must be a list of FieldId, or of pairs with a scope, not {field_ids!r:.80}")
    found = []
    for item in field_ids:
        field, scope = item, 0
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(f"field_ids: a tuple is a field and a scope, not {item!r}")
            field, scope = item
            scope = integer(scope, "field_ids: the scope")
        field = int(field) if type(field) is FieldId else integer(field, "field_ids")
        if not (0 <= field <= MOST_UNSIGNED and 0 <= scope <= MOST_UNSIGNED):
            raise ValueError(f"field_ids: field and scope must be 0 to {MOST_UNSIGNED}, not {field} and {scope}")
        found.append((field, scope))
    return found
