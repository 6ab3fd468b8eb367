# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Fields: numbers of a device that are asked for by an identifier, many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._library import call, field, nvml
from cuda_core_cffi.system._snapshot import Items, Snapshot
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

    scope_id = Answer(
        field("scopeId"), doc="What of the device is meant, such as the number of a link; 0 for the device."
    )
    timestamp = Answer(field("timestamp"), doc="When the value was sampled, in microseconds since 1970.")
    latency_usec = Answer(
        field("latencyUsec"),
        doc="How long it took to read the value, in microseconds; a mean over fields that were read together.",
    )

    @property
    def value(self) -> int | float:
        """The value.

        Raises
        ------
        NvmlError
            If this field could not be read.
        """
        record = self._record
        if record.nvmlReturn:
            raise failure(record.nvmlReturn, CALL, f" (field {self.field_id!r}, scope {record.scopeId})")
        found: int | float = getattr(record.value, VALUES.get(int(record.valueType), OTHER_VALUE))
        return found


class FieldValues(Items[FieldValue]):
    """What several fields were; made by :meth:`Device.get_field_values`.

    Parameters
    ----------
    field_values : sequence of nvmlFieldValue_t
        What NVML told.
    owner : object, optional
        What the structures are in; it is kept alive.
    """

    __slots__ = ("_items",)

    _ITEM = "field value"

    def __init__(self, field_values: Sequence[nvml.nvmlFieldValue_t], owner: object = None) -> None:
        self._items = [FieldValue(record, owner) for record in field_values]

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
        return [item.value for item in self._items]


def together(fields: list[FieldValue]) -> FieldValues:
    """Return the container of fields."""
    return FieldValues([field._record for field in fields], fields)


def clear_fields(handle: nvml.nvmlDevice_t, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> None:
    """Set fields of a device to 0; see :meth:`Device.clear_field_values`."""
    for item in field_values(handle, field_ids, nvml.nvmlDeviceClearFieldValues):
        if item._record.nvmlReturn:
            raise failure(item._record.nvmlReturn, CLEAR, f" (field {item._record.fieldId})")


def field_values(
    handle: nvml.nvmlDevice_t,
    field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]],
    function: Callable[[Any, int, Any], tuple[int]] = nvml.nvmlDeviceGetFieldValues,
) -> FieldValues:
    """Call a function of NVML with fields of a device, and return them; see :meth:`Device.get_field_values`."""
    asked = identifiers(field_ids)
    array = ffi.new(ARRAY, len(asked))
    records = [array + index for index in range(len(asked))]
    for record, (number, scope) in zip(records, asked, strict=True):
        record.fieldId, record.scopeId = number, scope
    if records:
        call(function, handle, len(records), array)
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
        number, scope = item, 0
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(f"field_ids: a tuple is a field and a scope, not {item!r}")
            number, scope = item
            scope = integer(scope, "field_ids: the scope")
        number = int(number) if type(number) is FieldId else integer(number, "field_ids")
        if not (0 <= number <= MOST_UNSIGNED and 0 <= scope <= MOST_UNSIGNED):
            raise ValueError(f"field_ids: field and scope must be 0 to {MOST_UNSIGNED}, not {number} and {scope}")
        found.append((number, scope))
    return found
