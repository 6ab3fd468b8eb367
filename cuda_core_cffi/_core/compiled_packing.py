# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Packing as PyPy does it: by functions that are compiled for the arguments of one kernel.

They pack into memory outside of Python's heap that they use for one launch at a time (:class:`ArgumentMemory`). A bytes
object for each launch costs PyPy more. C adds the addresses of buffers, and the handles of textures and surfaces.

What such a function has for itself alone is in its closure, because PyPy would keep globals long after the kernel has
gone. Functions for arguments of the same form share their code, and a module, where PyPy takes what packs that form for
a constant. Their text is in ``linecache``, so that tracebacks and debuggers show it.
"""

from __future__ import annotations

import functools
import linecache
import struct
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from cuda_core_cffi._core.ffi import ffi, lib

if TYPE_CHECKING:
    from cuda_core_cffi._launching.arguments import Slot

_launch = lib.ccc_launch
_store_objects = lib.ccc_store_objects

# What functions on the fast path raise for what they cannot do. ValueError: a wrong number of values, and on PyPy a
# sign.
NOT_ON_FAST_PATH: Final = (struct.error, OverflowError, TypeError, AttributeError, ValueError)

PART: Final = 32  # PyPy compiles no function that does much more: rows are packed in parts

OBJECT: Final = "o"
# Python for each way of a slot (_launching/arguments.py), of the variable {0}. Instead of OBJECT there is padding.
EXPRESSIONS: Final = {
    "v": "{0}",
    "a": "{0}.value",
    "c": "{0}.real, {0}.imag",
    "-": "{0} if {0}.__class__ is bytes and len({0}) == {size} else slots[{index}]({0})",
}
UNLESS_NAN: Final = "number if (number := ({})) == number else None"

FILL: Final = """\
def make(start, first, slots, types):
    {types} = types
    def fill(memory, values):
        {values} = values
        if {guards}:{c_handles}
            pack_into(memory.buffer, start{expressions})
            return ({found})
        return None
    return fill
"""

Fill = Callable[["ArgumentMemory", Sequence[Any]], "tuple[Any, ...] | None"]


class ArgumentMemory:
    """Memory for the arguments of one launch at a time.

    Those that nobody uses are in a list: as many as were ever used at once, by threads or signal handlers.

    Attributes
    ----------
    arguments : CFFI pointer
        The memory of the arguments.
    buffer : CFFI buffer
        The same, for Python.
    record : CFFI buffer
        The memory with what comes before and behind the arguments in a batch.
    c_handles : CFFI array of ccc_handle *
        Those of the buffers, textures and surfaces among the arguments.
    """

    __slots__ = ("_memory", "arguments", "buffer", "c_handles", "record")

    def __init__(self, head: bytes, size: int, count: int) -> None:
        self._memory = memory = ffi.new("char[]", size or 1)
        ffi.memmove(memory, head, len(head))
        self.arguments = memory + len(head)
        self.buffer = ffi.buffer(self.arguments, size - len(head))
        self.record = ffi.buffer(memory, size)
        self.c_handles = ffi.new("ccc_handle *[]", count or 1)


class FastPacker:
    """What packs arguments on the fast path.

    Attributes
    ----------
    fill : callable
        From memory and values to the C handles among these, which are packed then; None for values of other types.
    places : CFFI array of uint32_t
        Where the objects with C handles are among the arguments.
    unused : list of ArgumentMemory
        Those that nobody uses.
    target : CFFI pointer
        The ``ccc_target``.
    head, size : bytes, int
        What records begin with, and how large they are, in bytes.
    """

    __slots__ = ("count", "fill", "head", "places", "size", "target", "unused")

    def __init__(
        self, fill: Fill, places: Any, unused: list[ArgumentMemory], target: Any, head: bytes, size: int
    ) -> None:
        self.fill, self.places, self.unused, self.target = fill, places, unused, target
        self.count, self.head, self.size = len(places), head, size

    def acquire(self) -> ArgumentMemory:
        """Return memory that nobody else uses. It goes back into the list."""
        try:
            return self.unused.pop()
        except IndexError:
            return ArgumentMemory(self.head, self.size, self.count)


def launch(packer: FastPacker | None, stream: Any, native: Any, values: tuple[Any, ...]) -> int | None:
    """Launch with a packer, and return a status; None for what is not on the fast path."""
    if packer is None or native is None:
        return None
    memory = packer.acquire()
    try:
        queue = stream._c_handle
        found = packer.fill(memory, values)
    except NOT_ON_FAST_PATH:
        found = None
    # not in the try block: an exception that a signal handler raises here goes to the caller
    status: int | None = None
    if found is not None:
        status = _launch(packer.target, native, queue, memory.arguments, memory.c_handles, packer.places, packer.count)
    packer.unused.append(memory)
    return status


def pack(packer: FastPacker, values: Sequence[Any]) -> bytes | None:
    """Return the parameter buffer for values; None for what is not on the fast path."""
    return pack_objects(packer, values)[0]


def pack_objects(packer: FastPacker, values: Sequence[Any]) -> tuple[bytes | None, tuple[Any, ...] | None]:
    """Return the same, and the C handles among the values."""
    memory = packer.acquire()
    data: bytes | None = None
    try:
        found = packer.fill(memory, values)
        if found is not None:
            failed = _store_objects(memory.arguments, memory.c_handles, packer.places, packer.count)
            data = None if failed else memory.record[:]
    except NOT_ON_FAST_PATH:
        found = None
    packer.unused.append(memory)
    return data, found


def make_packer(slots: Sequence[Slot], target: Any, head: bytes = b"", size: int | None = None) -> FastPacker:
    """Return what packs arguments on the fast path, and launches a target."""
    functions = [slot.pack for slot in slots]
    places = [slot.offset for slot in slots if slot.way == OBJECT]
    parts = []
    first = 0
    for index in range(0, len(slots) or 1, PART):
        part = slots[index : index + PART]
        parts.append((compile_fill(part, functions[index : index + PART], first), slice(index, index + PART)))
        first += sum(slot.way == OBJECT for slot in part)

    def fill_parts(memory: ArgumentMemory, values: Sequence[Any]) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] = ()
        for part, where in parts:
            if (more := part(memory, values[where])) is None:
                return None
            found += more
        return found if len(values) == len(slots) else None

    fill: Fill = parts[0][0] if len(parts) == 1 else fill_parts
    return FastPacker(fill, ffi.new("uint32_t[]", places), [], target, head, target.size if size is None else size)


def prepare(slots: Sequence[Slot], native: Any, plan: Any) -> tuple[Callable[..., None], Callable[..., bytes]]:
    """Return the functions of a prepared launch.

    Parameters
    ----------
    slots : sequence of Slot
        How the arguments are packed.
    native : CFFI pointer
        The ``ccc_plan``.
    plan : object
        Has `native`, and does what is not on the fast path: ``launch_on_slow_path(status, stream, *values)`` and
        ``record(C handles, *values)``. Records begin with its ``head``.

    Returns
    -------
    launch : callable
        From stream and values.
    record : callable
        From a list that the C handles of buffers are added to, anything, and values, to the record for a batch.
    """
    packer = make_packer(slots, ffi.addressof(native, "target"), plan.head, native.stride)

    def launch_prepared(stream: Any, *values: Any) -> None:
        """Start the kernel in a stream, with these values."""
        status = launch(packer, stream, native.config, values)
        if status != 0:
            plan.launch_on_slow_path(status, stream, *values)

    def record(c_handles: list[Any], _: object, *values: Any) -> bytes:
        data, found = pack_objects(packer, values)
        if data is None or found is None:
            slowly: bytes = plan.record(c_handles, *values)
            return slowly
        c_handles += found
        return data

    return launch_prepared, record


def compile_fill(slots: Sequence[Slot], functions: Sequence[Callable[[Any], bytes]], first: int) -> Fill:
    """Return the function that packs some arguments; the C handle of their first object is the ``first``."""
    names = [f"value_{index}" for index in range(len(slots))]
    guards = {name: slot.only for name, slot in zip(names, slots) if slot.only is not None}
    variables = {only: f"type_{index}" for index, only in enumerate(dict.fromkeys(guards.values()))}
    objects = [name for name, slot in zip(names, slots) if slot.way == OBJECT]
    form = format_of(slots)
    source = FILL.format(
        types=f"({''.join(f'{name}, ' for name in variables.values())})",
        values=f"({''.join(f'{name}, ' for name in names)})",
        c_handles="".join(
            f"\n            memory.c_handles[first + {index}] = handle_{index} = {name}._c_handle"
            for index, name in enumerate(objects)
        ),
        found="".join(f"handle_{index}, " for index in range(len(objects))),
        guards=" and ".join(f"type({name}) is {variables[only]}" for name, only in guards.items()) or "True",
        expressions="".join(
            f", {expression_of(slot, name, index)}"
            for index, (name, slot) in enumerate(zip(names, slots))
            if slot.way != OBJECT
        ),
    )
    return compile_maker(source, form)(slots[0].offset if slots else 0, first, functions, tuple(variables))


def expression_of(slot: Slot, name: str, index: int) -> str:
    """Return Python for what is packed of the variable that an argument is in."""
    expression = EXPRESSIONS[slot.way].format(name, size=slot.size, index=index)
    if slot.code in ("f", "d") and slot.way == "v" and slot.only is None:  # for others there is a guard
        expression = f"None if isinstance({name}, int) else {expression}"
    return UNLESS_NAN.format(expression) if slot.code == "f" else expression


@functools.lru_cache(maxsize=512)
def compile_maker(source: str, form: str) -> Callable[..., Fill]:
    """Return the function ``make`` of some source, which is compiled once for each form.

    It is in a module of its own: PyPy takes what is in a module, and not in any dictionary, for a constant.
    """
    name = f"<arguments {len(linecache.cache)} of {form!r}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType(name)
    module.__dict__["pack_into"] = struct.Struct(form).pack_into
    exec(compile(source, name, "exec"), module.__dict__)
    make: Callable[..., Fill] = module.__dict__["make"]
    return make


def format_of(slots: Sequence[Slot]) -> str:
    """Return the ``struct`` format of arguments."""
    form = ""
    end = slots[0].offset if slots else 0
    for slot in slots:
        form += f"{slot.offset - end}x" * (slot.offset > end) + ("8x" if slot.way == OBJECT else slot.code)
        end = slot.offset + slot.size
    # Native integers are converted faster. But they align themselves, and a native float that is too large is infinite.
    native = "f" not in form and struct.calcsize("@" + form) == struct.calcsize("=" + form)
    return ("@" if native else "=") + form
