# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The types of :mod:`cuda_core_cffi.driver`: handles, structures, and the fields of structures.

Handles are integers. A structure owns its C counterpart, or is a view into the structure that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast, overload

from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._raw.convert import (
    HandleLike,
    address,
    array,
    buffer,
    handle,
    member,
    number,
    pointers,
    sequence,
    string,
    text,
)

Got = TypeVar("Got")
Put = TypeVar("Put")
SomeEnum = TypeVar("SomeEnum", bound=IntEnum)
SomeHandle = TypeVar("SomeHandle", bound="Handle")
SomeRecord = TypeVar("SomeRecord", bound="Record")

SHOWN_BYTES = 16
ALIGNMENT_OF_CFFI = 16
# A payload is zeroed and has at least this size, so that a value that is shorter than documented reads the same
PAYLOAD_BYTES = 8
VERSION_SHIFT = 24  # NVML_STRUCT_VERSION


class Handle(int):
    """A handle, device address or callback: an integer of its own type, 0 for none."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the type and the value in hexadecimal."""
        return f"{type(self).__name__}({int(self):#x})"

    def __str__(self) -> str:
        """Return the value as an integer is shown."""
        return int.__repr__(self)


def new_aligned(pointer: Any) -> tuple[Any, Any]:
    """Return a pointer to a new structure, aligned as its type wants, and what keeps its memory where that does not.

    CFFI's own memory is aligned for the types of C, of which no member of a structure wants more than 16 bytes.
    """
    alignment = ffi.alignof(pointer.item)
    if alignment <= ALIGNMENT_OF_CFFI:
        return ffi.new(pointer), None
    memory = ffi.new("char[]", ffi.sizeof(pointer.item) + alignment)
    return ffi.cast(pointer, memory + -address(memory) % alignment), memory


class Record:
    """A structure or union: created zeroed, or from keyword arguments.

    Parameters
    ----------
    **fields
        Initial values by field name.

    Raises
    ------
    TypeError
        For an unknown field or a value of the wrong type.
    """

    __slots__ = ("_cdata", "_kept", "_owner")

    _ctype: ClassVar[str] = ""
    _fields: ClassVar[tuple[str, ...]] = ()
    _union: ClassVar[bool] = False
    _version: ClassVar[int] = 0
    _fresh: ClassVar[tuple[Any, int] | None] = None  # type of the pointer to a new one, and what its version says

    _cdata: Any
    _kept: dict[int, Any]  # what the pointers in here point to, by the address of the pointer
    _owner: object

    def __init_subclass__(cls, *, ctype: str = "", union: bool = False, version: int = 0) -> None:
        """Note the C type, without which there are only views, and the version that the structure states."""
        super().__init_subclass__()
        cls._ctype = ctype
        cls._union = union
        cls._version = version
        cls._fresh = None
        cls._fields = tuple(name for name, value in vars(cls).items() if isinstance(value, Field))

    def __init__(self, **fields: Any) -> None:
        if not self._ctype:
            raise TypeError(f"{type(self).__name__} exists only inside another structure")
        self._cdata, self._owner = new_aligned(ffi.typeof(self._ctype + " *"))
        self._kept = {}
        for name, value in fields.items():
            if name not in self._fields:
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Tell whether both have one type and the same bytes."""
        if not isinstance(other, Record) or type(self) is not type(other):
            return NotImplemented
        return bool(ffi.buffer(self._cdata)[:] == ffi.buffer(other._cdata)[:])

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the fields that are not zero."""
        if self._union:
            return f"<{type(self).__name__}, {len(ffi.buffer(self._cdata))} bytes>"
        shown = []
        for name in self._fields:
            value = getattr(self, name)
            if isinstance(value, bytes) and len(value) > SHOWN_BYTES:
                value = value[:SHOWN_BYTES] if any(value) else b""
            if value and not (isinstance(value, (bytes, list)) and not any(value)):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __copy__(self: SomeRecord) -> SomeRecord:
        """Return a structure of its own with the same bytes. It keeps what the pointers in it point to."""
        start = address(self._cdata)
        copied, owner = new_aligned(ffi.typeof(self._cdata))
        copied[0] = self._cdata[0]
        size = ffi.sizeof(copied[0])
        moved = address(copied) - start
        kept = {place + moved: value for place, value in self._kept.items() if start <= place < start + size}
        return self._borrow(copied, (self._owner, owner), kept)

    def __deepcopy__(self: SomeRecord, memo: dict[int, Any]) -> SomeRecord:
        """Copy a structure in which no pointer keeps what it points to; refuse others."""
        copied = self.__copy__()
        if any(copied._kept.values()):  # a nested structure without pointers keeps an empty tuple
            raise TypeError(f"{type(self).__name__} has pointers, and what they point to cannot be copied")
        return copied

    def __reduce__(self) -> NoReturn:
        """Refuse: a structure may hold addresses of this process."""
        raise TypeError(f"{type(self).__name__} cannot be pickled: it may hold addresses of this process")

    def getPtr(self) -> int:
        """Return the address of the C structure; it is valid while this object lives."""
        return address(self._cdata)

    @classmethod
    def _borrow(cls: type[SomeRecord], cdata: Any, owner: object, kept: dict[int, Any] | None = None) -> SomeRecord:
        """Return an object for C memory that ``owner`` keeps alive."""
        view = cls.__new__(cls)
        view._cdata = cdata
        view._kept = {} if kept is None else kept
        view._owner = owner
        return view


class Payload:
    """A value behind a ``void *`` whose type depends on an attribute.

    Parameters
    ----------
    types : mapping of int to tuple
        C type and Python class by attribute.
    attribute : int
        The attribute.
    where : str
        Names of function and parameter.
    size : int, optional
        Length in bytes, where the caller gives it.

    Raises
    ------
    ValueError
        If the type of the attribute is not known.
    """

    __slots__ = ("cdata", "cls", "pointer", "size")

    def __init__(
        self, types: Mapping[int, tuple[str, type]], attribute: int, where: str, size: int | None = None
    ) -> None:
        if not isinstance(attribute, int):
            raise TypeError(f"{where}: expected an integer, not {type(attribute).__name__}")
        if attribute not in types:
            raise ValueError(f"{where}: the type of attribute {attribute!r} is not known")
        ctype, self.cls = types[attribute]
        element = ffi.typeof(ctype)
        self.size: int = size if size is not None else ffi.sizeof(element)
        self.cdata: Any = ffi.new("char[]", max(self.size, ffi.sizeof(element), PAYLOAD_BYTES))
        self.pointer: Any = ffi.cast(ffi.getctype(element, "*"), self.cdata)

    def load(self) -> Any:
        """Return the value."""
        if self.cls is bytes:
            return string(self.cdata)
        if self.cls is list:
            return list(self.pointer[0 : self.size // ffi.sizeof(self.pointer[0:1])])
        return elements(None if self.cls is int else self.cls, self.pointer, 1, self.cdata)[0]

    def store(self, value: Any, where: str) -> None:
        """Set the value."""
        if self.cls is bytes:
            data = text(value, where)
            if not isinstance(data, bytes) or len(data) >= len(self.cdata):
                raise ValueError(f"{where}: expected a string of fewer than {len(self.cdata)} bytes")
            self.cdata[0 : len(data)] = data
            self.size = len(data) + 1
        elif issubclass(self.cls, Record):
            self.pointer[0] = record_value(self.cls, value, where)
        elif ffi.typeof(self.pointer).item.kind == "pointer":
            self.pointer[0] = handle(ffi.typeof(self.pointer).item, value, where)
        else:
            try:
                self.pointer[0] = number(value, where)
            except OverflowError as exc:
                raise OverflowError(f"{where}: {exc}") from None


class Field(Generic[Got, Put]):
    """A field of a structure; subclasses say how it is read and written."""

    def __set_name__(self, owner: type[Record], name: str) -> None:
        """Note the name and the structure, for messages."""
        self.name = name
        self.where = f"{owner.__name__}: {name}"

    @overload
    def __get__(self, instance: None, owner: type[Record]) -> Field[Got, Put]: ...
    @overload
    def __get__(self, instance: Record, owner: type[Record]) -> Got: ...
    def __get__(self, instance: Record | None, owner: type[Record]) -> Field[Got, Put] | Got:
        """Return the value of the field."""
        return self if instance is None else self.read(instance)

    def __set__(self, instance: Record, value: Put) -> None:
        """Set the field."""
        try:
            self.write(instance, value)
        except OverflowError as exc:
            raise OverflowError(f"{self.where}: {exc}") from None
        except TypeError as exc:
            text = str(exc)
            raise TypeError(text if text.startswith(self.where) else f"{self.where}: {text}") from None

    def read(self, instance: Record) -> Got:
        """Return the value as C has it."""
        return cast(Got, getattr(instance._cdata, self.name))

    def write(self, instance: Record, value: Put) -> None:
        """Let cffi check and store the value."""
        setattr(instance._cdata, self.name, value)

    def keep(self, instance: Record, value: object) -> None:
        """Keep what a pointer field points to, instead of what it pointed to before."""
        instance._kept[address(ffi.addressof(instance._cdata[0], self.name))] = value

    def kept(self, instance: Record) -> Any:
        """Return what :meth:`keep` kept."""
        return instance._kept.get(address(ffi.addressof(instance._cdata[0], self.name)))


class IntField(Field[int, int]):
    """An integer."""


class FloatField(Field[float, float]):
    """A floating-point number."""


class EnumField(Field[SomeEnum, int]):
    """A member of an enumeration; a value that it does not have stays a plain integer."""

    def __init__(self, enum: type[SomeEnum]) -> None:
        self.enum = enum

    def read(self, instance: Record) -> SomeEnum:
        """Return the member."""
        return member(self.enum, getattr(instance._cdata, self.name))


class HandleField(Field[SomeHandle, HandleLike]):
    """A handle: a pointer or an integer in C."""

    def __init__(self, cls: type[SomeHandle]) -> None:
        self.cls = cls

    def read(self, instance: Record) -> SomeHandle:
        """Return the handle."""
        raw = getattr(instance._cdata, self.name)
        return self.cls(raw if isinstance(raw, int) else address(raw))

    def write(self, instance: Record, value: HandleLike) -> None:
        """Store a handle."""
        raw = getattr(instance._cdata, self.name)
        if isinstance(raw, int):
            setattr(instance._cdata, self.name, number(value, self.where))
        else:
            setattr(instance._cdata, self.name, handle(ffi.typeof(raw), value, self.where))


class AddressField(Field[int, Any]):
    """A pointer of any other kind: read as an address; what is written is kept alive."""

    def read(self, instance: Record) -> int:
        """Return the address."""
        return address(getattr(instance._cdata, self.name))

    def write(self, instance: Record, value: Any) -> None:
        """Store an address, or the address of a buffer, structure or list of pointers."""
        ctype = ffi.typeof(getattr(instance._cdata, self.name))
        if isinstance(value, (list, tuple)):
            several = pointers(value, None, self.where)
            target, owned = several.cdata, several.kept
        else:
            target = owned = buffer(value, self.where)
        setattr(instance._cdata, self.name, ffi.cast(ctype, target))
        self.keep(instance, (value, target, owned))


class BytesField(Field[bytes, bytes]):
    """An array of characters; shorter values are filled with zeros."""

    def read(self, instance: Record) -> bytes:
        """Return all of the array."""
        return bytes(ffi.buffer(getattr(instance._cdata, self.name)))

    def write(self, instance: Record, value: bytes) -> None:
        """Store a value of at most the length of the array."""
        target = ffi.buffer(getattr(instance._cdata, self.name))
        data = bytes(memoryview(value))
        if len(data) > len(target):
            raise ValueError(f"{self.where}: {len(data)} bytes do not fit into {len(target)}")
        target[:] = data.ljust(len(target), b"\0")


class ListField(Field[list[Any], Sequence[Any]]):
    """An array of numbers; shorter values leave the rest as it is."""

    def read(self, instance: Record) -> list[Any]:
        """Return all of the array."""
        return list(getattr(instance._cdata, self.name))

    def write(self, instance: Record, value: Sequence[Any]) -> None:
        """Store a value of at most the length of the array."""
        target = getattr(instance._cdata, self.name)
        if len(value) > len(target):
            raise ValueError(f"{self.where}: {len(value)} items do not fit into {len(target)}")
        for index, item in enumerate(value):
            target[index] = item


class RecordField(Field[SomeRecord, Record]):
    """A structure within the structure: read as a view, written by copying."""

    def __init__(self, cls: type[SomeRecord]) -> None:
        self.cls = cls

    def read(self, instance: Record) -> SomeRecord:
        """Return a view."""
        return self.cls._borrow(ffi.addressof(instance._cdata[0], self.name), instance, instance._kept)

    def write(self, instance: Record, value: Record) -> None:
        """Copy a structure."""
        if not isinstance(value, self.cls):
            raise TypeError(f"expected {self.cls.__name__}, not {type(value).__name__}")
        setattr(instance._cdata, self.name, value._cdata[0])
        self.keep(instance, tuple(value._kept.values()))


class RecordListField(Field[list[SomeRecord], Sequence[Record]]):
    """An array of structures: read as views, written by copying; shorter values leave the rest as it is."""

    def __init__(self, cls: type[SomeRecord]) -> None:
        self.cls = cls

    def read(self, instance: Record) -> list[SomeRecord]:
        """Return a view of each."""
        array = getattr(instance._cdata, self.name)
        return [self.cls._borrow(array + index, instance, instance._kept) for index in range(len(array))]

    def write(self, instance: Record, value: Sequence[Record]) -> None:
        """Copy at most as many structures as the array has."""
        target = getattr(instance._cdata, self.name)
        if len(value) > len(target):
            raise ValueError(f"{self.where}: {len(value)} items do not fit into {len(target)}")
        for index, item in enumerate(value):
            if not isinstance(item, self.cls):
                raise TypeError(f"expected {self.cls.__name__}, not {type(item).__name__}")
            target[index] = item._cdata[0]


class SequenceField(Field[list[Any], Any]):
    """A pointer to an array of structures, handles or numbers, whose length another field has.

    Parameters
    ----------
    ctype : str
        C type of one element.
    cls : type or None
        Python class of one element; None for numbers.
    count : str or None
        The field that holds the length; None when there is one element at most.
    """

    def __init__(self, ctype: str, cls: type | None, count: str | None) -> None:
        self.ctype = ctype
        self.cls = cls
        self.count = count

    def read(self, instance: Record) -> list[Any]:
        """Return the elements; structures are views."""
        pointer = getattr(instance._cdata, self.name)
        if pointer == ffi.NULL:
            return []
        kept = self.kept(instance)
        if kept is not None and kept[1] == pointer:
            length = len(kept[1])
        else:
            length = 1 if self.count is None else int(getattr(instance._cdata, self.count))
        return elements(self.cls, pointer, length, instance)

    def write(self, instance: Record, value: Any) -> None:
        """Store a list, of which a copy is kept, or an address."""
        if isinstance(value, Record):
            value = [value]
        ctype = ffi.typeof(f"{self.ctype} *")
        if isinstance(value, (list, tuple)):
            if self.cls is not None and issubclass(self.cls, Record):
                target = records(self.cls, value, None, self.where)
                owned = tuple(item._kept.copy() for item in value)
            else:
                target, owned = array(ffi.typeof(f"{self.ctype}[]"), value, None, self.where), ()
            self.keep(instance, (owned, target))
        else:
            target = ffi.cast(ctype, buffer(value, self.where))
            instance._kept.pop(address(ffi.addressof(instance._cdata[0], self.name)), None)
        setattr(instance._cdata, self.name, target)


def payloads(
    types: Mapping[int, tuple[str, type]], attributes: Any, count: int, where: str, sizes: Any = None
) -> list[Payload]:
    """Return a payload for each of several attributes."""
    items = sequence(attributes, count, where)
    lengths = [None] * len(items) if sizes is None else sequence(sizes, len(items), where)
    return [Payload(types, item, where, size) for item, size in zip(items, lengths, strict=False)]


def struct_version(cls: type[Record]) -> int:
    """Return what a structure of NVML has in its field ``version``: its size, and the version above that."""
    return int(ffi.sizeof(cls._ctype)) | cls._version << VERSION_SHIFT


def stamped(cls: type[SomeRecord], value: Any, where: str) -> SomeRecord:
    """Return ``value``, or a new structure for None, with its version stated."""
    if value is None:
        if cls._fresh is None:
            cls._fresh = ffi.typeof(cls._ctype + " *"), struct_version(cls) if cls._version else 0
        ctype, version = cls._fresh
        cdata = ffi.new(ctype)
        if version:
            cdata.version = version
        return cls._borrow(cdata, None)
    if not isinstance(value, cls):
        raise TypeError(f"{where}: expected {cls.__name__}, not {type(value).__name__}")
    if cls._version and not value._cdata.version:
        value._cdata.version = struct_version(cls)
    return value


def record(cls: type[Record], value: Any, where: str) -> Any:
    """Return a pointer to the C structure of ``value``; None is NULL."""
    if isinstance(value, cls):
        return value._cdata
    if value is None:
        return ffi.NULL
    if isinstance(value, ffi.CData):
        return value
    raise TypeError(f"{where}: expected {cls.__name__}, not {type(value).__name__}")


def record_value(cls: type[Record], value: Any, where: str) -> Any:
    """Return the C structure of ``value`` itself."""
    if isinstance(value, cls):
        return value._cdata[0]
    if isinstance(value, ffi.CData) and value:
        return value[0] if ffi.typeof(value).kind == "pointer" else value
    raise TypeError(f"{where}: expected {cls.__name__}, not {type(value).__name__}")


def records(cls: type[Record], values: Any, count: int | None, where: str) -> Any:
    """Return an array of copies of the structures ``values``; one structure, NULL and pointers pass through."""
    if not isinstance(values, (list, tuple)):
        if count is not None and count > 1 and isinstance(values, cls):
            raise ValueError(f"{where}: the count is {count}, but there is one {cls.__name__}")
        return record(cls, values, where)
    if count is not None and count > len(values):
        raise ValueError(f"{where}: the count is {count}, but there are {len(values)}")
    target = ffi.new(f"{cls._ctype}[]", len(values))
    for index, value in enumerate(values):
        target[index] = record_value(cls, value, f"{where}[{index}]")
    return target


def copy_back(source: Any, values: Any) -> None:
    """Copy the structures of an array that the driver has changed back to where they came from."""
    if isinstance(values, (list, tuple)):
        for index, value in enumerate(values):
            if isinstance(value, Record):
                value._cdata[0] = source[index]


def elements(cls: Any, pointer: Any, count: int, owner: object) -> list[Any]:
    """Return ``count`` elements of a C array; structures are views that keep ``owner`` alive."""
    if not count or pointer == ffi.NULL:
        return []
    if cls is None:
        return list(pointer[0:count])
    if issubclass(cls, Record):
        return [cls._borrow(pointer + index, owner) for index in range(count)]
    if issubclass(cls, IntEnum):
        return [member(cls, value) for value in pointer[0:count]]
    return [cls(value if isinstance(value, int) else address(value)) for value in pointer[0:count]]


def copies(cls: Any, pointer: Any, count: int) -> list[Any]:
    """Return ``count`` elements of an array that the driver owns; structures are copied."""
    if cls is None or not issubclass(cls, Record) or pointer == ffi.NULL:
        return elements(cls, pointer, count, None)
    own = ffi.new(f"{cls._ctype}[]", count)
    ffi.memmove(own, pointer, ffi.sizeof(own))
    return elements(cls, own, count, own)
