# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Packing as PyPy does it: by functions that are compiled for the arguments of one kernel.

They pack into memory outside of Python's heap that they use for one launch at a time (:class:`ArgumentMemory`). A bytes
object for each launch costs PyPy more.

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
from typing import Any, Final

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.packing import HEAD, OBJECTS, PLAN_HEAD, Field, address_of

_launch_plan = lib.ccc_launch_plan
_launch_target = lib.ccc_launch_target

# What functions on the fast path raise for what they cannot do. ValueError: a wrong number of values, and on PyPy a
# sign.
NOT_ON_FAST_PATH: Final = (struct.error, OverflowError, TypeError, AttributeError, ValueError)

PART: Final = 32  # PyPy compiles no function that does much more: rows are packed in parts

FILL = """\
def make(start, first, slots, types):
    {types} = types
    def fill(buffer, c_handles, values):
        {values} = values
        if {guards}:{c_handles}
            pack_into(buffer, start{expressions})
            return True
        return False
    return fill
"""

# The launch is outside of `try`: an exception that a signal handler raises there goes to the caller.
PREPARED = '''\
def make(unused, plan, native, address, slots, count):
    def launch(stream{parameters}, /):
        """Start the kernel in a stream, with these values."""
        try:
            memory = unused.pop()
        except IndexError:
            memory = ArgumentMemory(native.size, count)
        try:
            queue = stream._launch_handle{stores}
            pack_into(memory.buffer, 0{expressions})
        except NOT_ON_FAST_PATH:
            status = None
        else:
            status = _launch_plan(native, queue, memory.arguments, memory.c_handles, count)
        unused.append(memory)
        if status != 0:
            plan.launch_on_slow_path(status, stream, ({arguments}))

    def record(c_handles, prepared{parameters}, /):
        try:
            found = ({c_handles})
            data = pack(address{expressions})
        except NOT_ON_FAST_PATH:
            return plan.record_on_slow_path(c_handles, ({arguments}))
        c_handles += found
        return data

    return launch, record
'''


class ArgumentMemory:
    """Memory for the arguments of one launch at a time.

    Those that nobody uses are in a list: as many as were ever used at once, by threads or signal handlers.

    Attributes
    ----------
    buffer : CFFI buffer
        The memory.
    arguments : CFFI pointer
        The same, for C.
    C handles : CFFI array of ccc_handle *
        Those of the buffers among the arguments, which the launch keeps from being freed.
    """

    __slots__ = ("_memory", "arguments", "buffer", "c_handles")

    def __init__(self, size: int, count: int) -> None:
        self._memory = ffi.new("char[]", size or 1)
        self.buffer = ffi.buffer(self._memory, size)
        self.arguments = ffi.cast("char *", self._memory)
        self.c_handles = ffi.new("ccc_handle *[]", count or 1)


class FastPacker:
    """What launches take that are not prepared.

    Attributes
    ----------
    fill : callable
        From a buffer, an array of C handles and values to whether they were filled: not for values of other types.
    count : int
        How many arguments are buffers.
    unused : list of ArgumentMemory
        Those that nobody uses.
    target : CFFI pointer
        The ``ccc_target``.
    """

    __slots__ = ("count", "fill", "target", "unused")

    def __init__(self, fill: Callable[..., bool], count: int, unused: list[ArgumentMemory], target: Any) -> None:
        self.fill, self.count, self.unused, self.target = fill, count, unused, target

    def acquire(self) -> ArgumentMemory:
        """Return memory that nobody else uses. It goes back into the list."""
        try:
            return self.unused.pop()
        except IndexError:
            return ArgumentMemory(self.target.size, self.count)


def launch(packer: FastPacker | None, stream: Any, native: Any, values: tuple[Any, ...]) -> int | None:
    """Launch with a packer, and return a status; None for what is not on the fast path."""
    if packer is None or native is None:
        return None
    memory = packer.acquire()
    try:
        queue = stream._launch_handle
        filled = packer.fill(memory.buffer, memory.c_handles, values)
    except NOT_ON_FAST_PATH:
        filled = False
    status: int | None = None
    if filled:
        status = _launch_target(packer.target, native, queue, memory.arguments, memory.c_handles, packer.count)
    packer.unused.append(memory)
    return status


def pack(packer: FastPacker, values: tuple[Any, ...]) -> bytes | None:
    """Return the parameter buffer for values; None for what is not on the fast path."""
    memory = packer.acquire()
    try:
        data: bytes | None = memory.buffer[:] if packer.fill(memory.buffer, memory.c_handles, values) else None
    except NOT_ON_FAST_PATH:
        data = None
    packer.unused.append(memory)
    return data


def make_packer(fields: Sequence[Field], known: Sequence[type], target: Any) -> FastPacker:
    """Return what launches take that are not prepared.

    Parameters
    ----------
    fields : sequence of (int, Slot)
        The arguments.
    known : sequence of type
        Their types.
    target : CFFI pointer
        The ``ccc_target``.
    """
    slots = [slot.pack for _, slot in fields]
    parts = []
    size = count = 0
    for first in range(0, len(fields) or 1, PART):
        where = slice(first, first + PART)
        part, size = compile_fill(fields[where], known[where], slots, size, count)
        parts.append((part, where))
        count += count_objects(fields[where])
    if len(parts) == 1:
        return FastPacker(part, count, [], target)

    def fill(buffer: Any, c_handles: Any, values: tuple[Any, ...]) -> bool:
        for part, where in parts:
            if not part(buffer, c_handles, values[where]):
                return False
        return len(values) == len(fields)

    return FastPacker(fill, count, [], target)


def retarget(packer: FastPacker, target: Any) -> FastPacker:
    """Return a packer like another one, for another target that has the same parameters."""
    return FastPacker(packer.fill, packer.count, packer.unused, target)


def prepare(fields: Sequence[Field], native: Any, plan: Any) -> tuple[Callable[..., None], Callable[..., bytes]]:
    """Return the functions of a prepared launch.

    Parameters
    ----------
    fields : sequence of (int, Slot)
        The arguments.
    native : CFFI pointer
        The ``ccc_plan``.
    plan : object
        Has `native`, and does what is not on the fast path: ``launch_on_slow_path(status, stream, values)`` and
        ``record_on_slow_path(C handles, values)``.

    Returns
    -------
    launch : callable
        From stream and values.
    record : callable
        From a list that the C handles of buffers are added to, anything, and values, to the record for a batch.
    """
    names = [f"argument_{index}" for index in range(len(fields))]
    slots = [slot for _, slot in fields]
    form = format_of(fields)
    source = PREPARED.format(
        parameters="".join(f", {name}" for name in names),
        c_handles="".join(f"{name}._c_handle, " for name, slot in zip(names, slots) if slot.way in OBJECTS),
        stores=stores_of(fields, names, "memory.c_handles[{}]", 12),
        arguments="".join(f"{name}, " for name in names),
        expressions=expressions_of(fields, names),
    )
    make: Callable[..., tuple[Callable[..., None], Callable[..., bytes]]] = compile_maker(source, form, native.stride)
    return make([], plan, native, address_of(native), [slot.pack for slot in slots], count_objects(fields))


@functools.lru_cache(maxsize=512)
def compile_maker(source: str, form: str, stride: int = 0) -> Callable[..., Any]:
    """Return the function ``make`` of some source, which is compiled once for each form and stride of records.

    It is in a module of its own: PyPy takes what is in a module, and not in any dictionary, for a constant.
    """
    name = f"<arguments {len(linecache.cache)} of {form!r}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType(name)
    scope = module.__dict__
    padding = stride - PLAN_HEAD - struct.calcsize(form)
    scope |= {
        "NOT_ON_FAST_PATH": NOT_ON_FAST_PATH,
        "ArgumentMemory": ArgumentMemory,
        "_launch_plan": _launch_plan,
        "pack": struct.Struct(f"={HEAD}{form[1:]}{padding}x").pack if stride else None,
        "pack_into": struct.Struct(form).pack_into,
    }
    exec(compile(source, name, "exec"), scope)
    make: Callable[..., Any] = scope["make"]
    return make


def format_of(fields: Sequence[Field]) -> str:
    """Return the ``struct`` format of arguments."""
    form = "".join(f"{gap}x{slot.code}" if gap else slot.code for gap, slot in fields)
    # Native integers are converted faster. But they align themselves, and a native float that is too large is infinite.
    native = "f" not in form and struct.calcsize("@" + form) == struct.calcsize("=" + form)
    return ("@" if native else "=") + form


def expressions_of(fields: Sequence[Field], names: Sequence[str]) -> str:
    """Return what is packed of the variables that the arguments are in, after other arguments of a call."""
    return "".join(f", {slot.way.expression.format(name)}" for name, (_, slot) in zip(names, fields))


def stores_of(fields: Sequence[Field], names: Sequence[str], place: str, indent: int) -> str:
    """Return statements that store the C handles of arguments, each in a place that its number is formatted into.

    They come before the addresses are read: a buffer that moves in between has left the C handle that is found here.
    """
    objects = [name for name, (_, slot) in zip(names, fields) if slot.way in OBJECTS]
    return "".join(f"\n{' ' * indent}{place.format(index)} = {name}._c_handle" for index, name in enumerate(objects))


def count_objects(fields: Sequence[Field]) -> int:
    """Return how many of the arguments have C handles."""
    return sum(slot.way in OBJECTS for _, slot in fields)


def compile_fill(
    fields: Sequence[Field], known: Sequence[type], slots: Sequence[Callable[[Any], bytes]], start: int, first: int
) -> tuple[Callable[..., bool], int]:
    """Return the function that fills a buffer from some byte on with some arguments of a packer, and where it ends.

    Parameters
    ----------
    fields : sequence of (int, Slot)
        The arguments.
    known : sequence of type
        Their types.
    slots : sequence of callable
        What packs each argument on the slow path.
    start : int
        The byte.
    first : int
        The number of the first buffer among the arguments.
    """
    form = format_of(fields)
    names = [f"value_{index}" for index in range(len(fields))]
    guards = {name: given for name, given, (_, slot) in zip(names, known, fields) if slot.guarded}
    variables = {given: f"type_{index}" for index, given in enumerate(dict.fromkeys(guards.values()))}
    source = FILL.format(
        types=f"({''.join(f'{name}, ' for name in variables.values())})",
        values=f"({''.join(f'{name}, ' for name in names)})",
        c_handles=stores_of(fields, names, "c_handles[first + {}]", 12),
        guards=" and ".join(f"type({name}) is {variables[given]}" for name, given in guards.items()) or "True",
        expressions=expressions_of(fields, names),
    )
    return compile_maker(source, form)(start, first, slots, tuple(variables)), start + struct.calcsize(form)
