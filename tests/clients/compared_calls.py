# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Do with the objects of ``cuda.core`` what programs do, and what they do by mistake, and write down what came of it.

    python compared_calls.py SUBJECT FILE [NUMBER]

``cuda.core`` is what the interpreter finds: cuda-core, or this package in its place. Each case gets objects of its own.
FILE gets a line for a case before it is tried and one after it, so that it shows which one ended the process; NUMBER
is how many cases to leave out. compare_with_cuda_core.py runs this with both.
"""

from __future__ import annotations

import copy
import ctypes
import enum
import gc
import importlib
import json
import pickle
import re
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy
from compared_tables import CALLS, RECIPES, SOURCE

# In the place of an argument. Programs pass the first ones for real; the others are mistakes.
PLAUSIBLE = ("None", "False", "True", "0", "1", "[]", "()", "numpy.int32(1)")
WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "False": lambda: False,
    "True": lambda: True,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "2**64": lambda: 2**64,
    "1.5": lambda: 1.5,
    "'x'": lambda: "x",
    "'0'": lambda: "0",
    "''": lambda: "",
    "b'x'": lambda: b"x",
    "[]": lambda: [],
    "()": lambda: (),
    "(1,)": lambda: (1,),
    "{}": dict,
    "{'x': 1}": lambda: {"x": 1},
    "object()": object,
    "int": lambda: int,
    "numpy.int32(1)": lambda: numpy.int32(1),
    "numpy.float32(1)": lambda: numpy.float32(1),
    "ctypes.c_int(1)": lambda: ctypes.c_int(1),
}


def entered(thing: Any) -> Any:
    """Return what a ``with`` statement gives."""
    with thing as inside:
        return inside


PROTOCOLS: dict[str, Callable[[Any], Any]] = {
    "repr": repr,
    "hash": lambda thing: type(hash(thing)),
    "hash twice": lambda thing: hash(thing) == hash(thing),
    "bool": bool,
    "int": lambda thing: type(int(thing)),
    "len": len,
    "iter": lambda thing: [describe(item) for item in thing],
    "== itself": lambda thing: thing == thing,
    "== None": lambda thing: thing == None,  # noqa: E711
    "== 1": lambda thing: thing == 1,
    "< itself": lambda thing: thing < thing,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "weakref": lambda thing: type(weakref.ref(thing)),
    "with": entered,
    "new attribute": lambda thing: setattr(thing, "unheard_of", 1),
    "construct": lambda thing: type(thing)(),
    "is hashable as documented": lambda thing: type(thing).__hash__ is not None,
}


class World(Mapping[str, Any]):
    """The objects of a case, made when they are asked for."""

    def __init__(self) -> None:
        core = importlib.import_module("cuda.core")
        self.made: dict[str, Any] = {
            "c": core,
            "utils": importlib.import_module("cuda.core.utils"),
            "graphs": importlib.import_module("cuda.core.graph"),
            "numpy": numpy,
            "int": int,
            "SOURCE": SOURCE,
            "float32": numpy.dtype("float32"),
            "current": lambda device: (device.set_current(), device)[1],
            "after": lambda _, thing: thing,
            "begun": lambda builder: (builder.begin_building(), builder)[1],
            "ended": lambda builder: (builder.end_building(), builder)[1],
            "nothing": lambda: None,
        }

    def __getitem__(self, name: str) -> Any:
        if name not in self.made:
            if name not in RECIPES:
                raise KeyError(name)
            self.made[name] = eval(RECIPES[name], {}, self)
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(RECIPES)

    def __len__(self) -> int:
        return len(RECIPES)


def arguments_of(text: str) -> tuple[list[tuple[str, str]], int]:
    """Return the names and expressions of arguments, and how many of them can be positional."""
    found: list[tuple[str, str]] = []
    by_position = None
    for part in re.split(r",\s*(?![^(\[]*[)\]])", text) if text else ():
        if part.startswith("*"):
            by_position = len(found)
        name, equals, expression = part.lstrip("*").partition("=")
        found.append((name, expression) if equals else ("", part))
    return found, len(found) if by_position is None else by_position


def describe(value: Any) -> str:
    """Return what can be compared of a result."""
    if value is None or isinstance(value, bool) or value is NotImplemented:
        return repr(value)
    if isinstance(value, enum.Enum) and isinstance(value, int):
        return f"{type(value).__name__} {int(value)}"
    if isinstance(value, enum.Enum) and not isinstance(value, str):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str):
        value = str.__str__(value)
        return f"str {mask(value)!r}" if len(value) < 200 else "str"
    if isinstance(value, int):
        return f"{type(value).__name__} {int(value)}" if abs(value) < 100000 else type(value).__name__
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = ", ".join(f"{name}={describe(item)}" for name, item in value._asdict().items())
        return f"{type(value).__name__}({items})"
    if isinstance(value, list | tuple | set | frozenset):
        return f"{type(value).__name__}({', '.join(describe(item) for item in list(value)[:9])})"
    if isinstance(value, dict):
        return f"dict({', '.join(map(str, value))})"
    if isinstance(value, type):
        return f"class {value.__name__}"
    if callable(value) and type(value).__name__.endswith(("function", "method", "function_or_method")):
        return "function"
    return public_name(type(value))


def public_name(cls: type) -> str:
    """Return the name of a class, or of the nearest of its bases that is public; private ones without underscores."""
    core = importlib.import_module("cuda.core")
    public = [base.__name__ for base in cls.__mro__ if hasattr(core, base.__name__)]
    return public[0] if public else cls.__name__.lstrip("_")


def builtin_name(cls: type) -> str:
    """Return the name of a class, or of the nearest of its bases that is a built-in one."""
    return next(base.__name__ for base in cls.__mro__ if base.__module__ == "builtins")


def mask(text: str) -> str:
    """Hide addresses and large numbers."""
    return re.sub(r"\b\d{6,}\b", "N", re.sub(r"0x[0-9a-fA-F]+", "0x", text))


class Log:
    """What came of each case, as lines of JSON."""

    def __init__(self, path: str, leave_out: int) -> None:
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        self.left = leave_out

    def write(self, **line: Any) -> None:
        """Write a line, so that it is there whatever comes after."""
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def case(self, name: str, act: Callable[[World], Any]) -> None:
        """Do something with a new world."""
        if self.left:
            self.left -= 1
            return
        self.write(case=name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            world = World()
            try:
                outcome = f"returns {describe(act(world))}"
            except Exception as error:
                outcome = " ".join(["raises", *(cls.__name__ for cls in type(error).__mro__[:-3])])
                message = str(error)[:200]
            else:
                message = ""
            world.made.clear()
            gc.collect()
        told = sorted({builtin_name(item.category) for item in caught} - {"ResourceWarning"})
        if told:
            outcome += f" and warns {' '.join(told)}"
        self.write(case=name, outcome=outcome, message=message)


def call(
    world: World,
    subject: str,
    method: str,
    how: str,
    changed: str | None = None,
    wrong: Callable[[], Any] | None = None,
) -> Any:
    """Call a method: `how` is position, keyword, one more, unknown keyword; or without or wrong the one `changed`."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    arguments, positions = arguments_of(CALLS[subject][method])
    target = world[subject]
    for index, (name, expression) in enumerate(arguments):
        label = name or str(index)
        if how == "without" and label == changed:
            continue
        value = wrong() if how == "wrong" and wrong and label == changed else eval(expression, {}, world)
        if name and (index >= positions or how == "keyword" or len(positional) < index):
            named[name] = value
        else:
            positional.append(value)
    if how == "one more":
        positional.append(None)
    if how == "unknown keyword":
        named["unheard_of"] = None
    return getattr(target, method)(*positional, **named)


def try_calls(log: Log, subject: str) -> None:
    """Call each method in the right way, and in wrong ones."""
    for method, text in CALLS[subject].items():
        arguments, _ = arguments_of(text)
        for how in ("position", "keyword", "one more", "unknown keyword"):
            log.case(
                f"{subject}.{method}: {how}",
                lambda world, method=method, how=how: call(world, subject, method, how),
            )
        for index, (name, _) in enumerate(arguments):
            label = name or str(index)
            log.case(
                f"{subject}.{method}: without {label}",
                lambda world, method=method, label=label: call(world, subject, method, "without", label),
            )
            for shown, wrong in WRONG.items():
                log.case(
                    f"{subject}.{method}: {label}={shown}",
                    lambda world, method=method, label=label, wrong=wrong: call(
                        world, subject, method, "wrong", label, wrong
                    ),
                )


def closed(world: World, subject: str) -> Any:
    """Return an object that was closed."""
    thing = world[subject]
    thing.close()
    return thing


def try_object(log: Log, subject: str) -> None:
    """Read and set what an object shows, before and after it is closed."""
    log.case(f"{subject}", lambda world: world[subject])
    try:
        thing = World()[subject]
    except Exception:  # which the case above tells
        return
    shown = [name for name in dir(thing) if not name.startswith("_") and name not in CALLS[subject]]
    can_close = hasattr(thing, "close") and not isinstance(thing, type)
    del thing
    gc.collect()
    for name in shown:
        log.case(f"{subject}.{name}", lambda world, name=name: getattr(world[subject], name))
        log.case(
            f"{subject}.{name} = itself",
            lambda world, name=name: setattr(world[subject], name, getattr(world[subject], name)),
        )
        log.case(f"{subject}.{name} = object()", lambda world, name=name: setattr(world[subject], name, object()))
    for name, act in PROTOCOLS.items():
        log.case(f"{name} of {subject}", lambda world, act=act: act(world[subject]))
    if not can_close:
        return
    log.case(f"closed {subject}: close again", lambda world: closed(world, subject).close())
    for name in shown:
        log.case(f"closed {subject}.{name}", lambda world, name=name: getattr(closed(world, subject), name))
    for name in ("repr", "hash", "== itself", "== None", "bool"):
        log.case(f"{name} of closed {subject}", lambda world, name=name: PROTOCOLS[name](closed(world, subject)))
    for method in CALLS[subject]:
        log.case(
            f"closed {subject}.{method}: position",
            lambda world, method=method: (closed(world, subject), call(world, subject, method, "position"))[1],
        )


def fields(cls: type) -> list[str]:
    """Return the names of a dataclass's fields."""
    return list(getattr(cls, "__dataclass_fields__", ()))


def try_options(log: Log) -> None:
    """Compile and link with one option at a time."""

    def compile_with(world: World, option: str, value: Any) -> Any:
        options = world["c"].ProgramOptions(**{"arch": "sm_90", option: value})
        code = world["c"].Program(SOURCE, "c++", options).compile("ptx")
        return code.code_type

    def link_with(world: World, option: str, value: Any) -> Any:
        options = world["c"].LinkerOptions(**{"arch": "sm_90", option: value})
        return world["c"].Linker(world["object_code"], options=options).link("cubin").code_type

    core = importlib.import_module("cuda.core")
    for cls, act in ((core.ProgramOptions, compile_with), (core.LinkerOptions, link_with)):
        for option in fields(cls):
            log.case(
                f"{cls.__name__}.{option}: default",
                lambda world, cls=cls, option=option: getattr(cls(arch="sm_90"), option),
            )
            for shown, wrong in WRONG.items():
                if cls is core.LinkerOptions and option == "arch" and shown == "None":
                    continue
                log.case(
                    f"{cls.__name__}.{option}={shown}",
                    lambda world, act=act, option=option, wrong=wrong: act(world, option, wrong()),
                )


def try_names(log: Log) -> None:
    """Say what each module has, of what kind."""
    for module in ("cuda.core", "cuda.core.utils", "cuda.core.graph", "cuda.core.typing"):
        found = importlib.import_module(module)
        for name in sorted(dir(found)):
            value = None if name.startswith("_") else getattr(found, name)
            if value is None or isinstance(value, types.ModuleType) or name == "annotations":
                continue
            kind = "class" if isinstance(value, type) else "function" if callable(value) else type(value).__name__
            log.case(f"{module}.{name}", lambda world, kind=kind: kind)
            if isinstance(value, type) and issubclass(value, enum.Enum):
                for member in value:
                    log.case(f"{module}.{name}.{member.name}", lambda world, member=member: member.value)
            if fields(value):
                log.case(f"{module}.{name} fields", lambda world, value=value: fields(value))
            if isinstance(value, type) and issubclass(value, Exception):
                log.case(f"{module}.{name} bases", lambda world, value=value: [c.__name__ for c in value.__mro__])


def subjects() -> list[str]:
    """Return what can be asked for."""
    return ["names", "options", *CALLS]


def main() -> None:
    """Try one subject."""
    subject, path = sys.argv[1:3]
    log = Log(path, int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    if subject == "names":
        try_names(log)
    elif subject == "options":
        try_options(log)
    else:
        if subject not in ("c", "utils", "graphs"):
            try_object(log, subject)
        try_calls(log, subject)
    log.write(done=True)


if __name__ == "__main__":
    main()
