# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments as source: mostly of the kind that a parameter's annotation or name asks for, sometimes of any other.

Sizes are capped: no allocation is larger than `LARGEST`, and grids, counts and fans are small, so that a sequence asks
for less memory and time than any device has. A size that is refused is refused by the package, before any driver call.
"""

from __future__ import annotations

import dataclasses
import enum
import random
import re
from collections.abc import Callable

from cuda_core_cffi import typing as public_types

from .surface import Parameter, Surface

LARGEST = 1 << 20
TOTAL = 64 << 20
SMALL = 4096  # what may be asked for when the total is spent
WRONG = 0.08  # how often an argument is of any kind
SIZES = ("0", "1", "2", "3", "4", "8", "16", "64", "64", "64", "256", "1000", "4096", "65536", str(LARGEST))
REFUSED = ("-1", "2**64", "2**70", "1.5", "'8'", "None", "True", "Number(8)", "np.int64(64)", "Number(FuzzError)")
ANYTHING = (
    "None",
    "True",
    "0",
    "1",
    "-1",
    "2**31",
    "2**64",
    "-2**63 - 1",
    "1.5",
    "float('nan')",
    "1j",
    "''",
    "'x'",
    "b''",
    "b'abc'",
    "'\\ud800'",
    "'a\\0b'",
    "()",
    "[]",
    "{}",
    "{1: 2}",
    "set()",
    "(1, 2)",
    "[None]",
    "object()",
    "int",
    "nothing",
    "HOST",
    "HOST[:64]",
    "HOST[:64:2]",
    "bytearray(64)",
    "np.zeros((4, 4), 'f4')",
    "np.zeros(3, object)",
    *(
        "np.float32(1)",
        "Number(3)",
        "Number(FuzzError)",
        "BrokenStream(5)",
        "iter(())",
        "range(3)",
        "...",
        "memoryview(b'ab')",
    ),
)

# Numbers by the name of the parameter.
NUMBERS = {
    "size": SIZES,
    "new_size": SIZES,
    "width": ("1", "2", "4", "8", "16", "64", "0", "3"),
    "height": ("1", "1", "2", "0", "-1"),
    "pitch": ("0", "0", "64", "1", "-1"),
    "value": ("0", "1", "255", "256", "-1", "2**32 - 1", "2**32", "b'\\1\\2'", "b'\\1\\2\\3'", "np.uint16(7)", "1.5"),
    "count": ("0", "1", "2", "3", "-1"),
    "grid": ("1", "2", "(1, 2)", "(2, 1, 2)", "0", "-1", "(1, 1, 1, 1)", "None", "'1'", "4"),
    "block": ("1", "32", "(4, 4)", "(1, 1, 64)", "0", "-1", "1025", "None", "(1.5,)"),
    "cluster": ("1", "2", "(1, 1, 1)", "0", "None", "None", "3"),
    "preferred_cluster": ("1", "2", "None", "None", "0"),
    "shmem_size": ("0", "0", "16", "1024", "-1", "2**31", "None"),
    "priority": ("0", "-1", "-5", "None", "99", "2**40"),
    "itemsize": ("1", "2", "4", "8", "0", "-1", "None"),
    "shape": ("(4,)", "(2, 2)", "()", "(0,)", "(64,)", "(-1,)", "(2**62, 4)", "(1,) * 70", "5", "(2, 3, 4)", "(4, 4)"),
    "strides": ("None", "None", "(1,)", "(2, 1)", "(1, 2)", "(0, 0)", "(-1,)", "(2**62, 1)", "5"),
    "limit": ("None", "0", "64", "4096", str(LARGEST)),
    "max_history": ("0", "1", "4", "-1"),
    "max_frames": ("0", "1", "3", "-1"),
    "max_size": ("0", str(LARGEST), "2**21", "-1"),
    "max_size_bytes": ("None", "0", "100", "4096", "-1"),
    "numa_id": ("None", "0", "-1", "77"),
    "flags": ("0", "1", "8", "28", "284", "-1", "2**40"),
    "stream_ptr": ("-1", "-1", "None", "1", "2", "0", "-5"),
    "default_value": ("0", "0", "1", "None", "2", "-1", "2**32"),
    "default": ("0", "1", "None"),
    "remote": ("0", "1", "None"),
    "block_size": ("1", "32", "1024", "0", "-1", "2**31"),
    "num_blocks_per_multiprocessor": ("1", "2", "0", "-1"),
    "dynamic_shared_memory_size": ("0", "16", "-1", "2**31"),
    "block_size_limit": ("0", "64", "-1"),
    "hit_ratio": ("0", "0.5", "1.0", "2", "float('nan')"),
    "index": ("0", "1", "-1", "99"),
    "start": ("0", "1", "-1"),
    "stop": ("1", "5", "-1"),
    "addr_hint": ("0", "None", "-1"),
    "addr_align": ("None", "0", "4096", "3", "2**21"),
    "attribute": ("0", "1", "16", "99", "-1", "10**6"),
    "status": ("0", "1", "2", "700", "-1", "10**9"),
    "device_id": ("0", "0", "Device(0)", "1", "-1", "Device(0)"),
    "preferred_location": ("None", "0", "-1", "5"),
    "max_register_count": ("None", "32", "-1"),
    "optimization_level": ("None", "0", "3", "9"),
    "split_compile": ("None", "1"),
    "split_compile_extended": ("None", "1"),
}

# Objects by the name of the parameter: classes, or texts.
OBJECTS: dict[str, tuple[str, ...]] = {
    "fn": (
        "nothing",
        "Callback()",
        "Callback(PAUSE)",
        "Callback(PAUSE)",
        "Callback(0, FuzzError)",
        "c_function",
        "<any>",
    ),
    "callback": ("nothing", "Callback(PAUSE)"),
    "user_data": ("None", "None", "b'data'", "0", "bytearray(3)", "'text'", "<any>"),
    "location": ("<Device>", "<Device>", "Host()", "Host(0)", "Host.numa_current()", "None", "-1", "0"),
    "locations": ("<Device>", "Host()", "[<Device>, Host()]", "[<Device>]", "[]"),
    "src": (
        "<Buffer>",
        "<Buffer>",
        "bytes(64)",
        "HOST[:64]",
        "bytearray(64)",
        "np.zeros((4, 4))",
        "<StridedMemoryView>",
    ),
    "dst": ("<Buffer>", "<Buffer>", "HOST[:64]", "bytearray(64)", "bytes(64)", "None", "np.zeros(64, 'u1')[::2]"),
    "other": ("<StridedMemoryView>", "<any>"),
    "child": ("<GraphDefinition>", "<GraphBuilder>"),
    "source": ("<GraphDefinition>", "<GraphBuilder>"),
    "device": ("<Device>", "0", "None", "Host()"),
    "peer": ("<Device>", "0", "1"),
    "peers": ("()", "(0,)", "[1]"),
    "peer_access": ("None", "[<Device>]", "[]", "[0, 1]"),
    "owner": ("None", "HOST", "<any>"),
    "dst_owner": ("None", "None", "HOST"),
    "src_owner": ("None", "None", "HOST"),
    "mr": ("<MemoryResource>", "None"),
    "upstream": ("<MemoryResource>", "HostResource()", "LegacyPinnedMemoryResource()", "<DeviceMemoryResource>"),
    "allocator": ("None", "<MemoryResource>", "HostResource()"),
    "node": ("<GraphNode>", "<GraphNode>", "<any>"),
    "nodes": ("<GraphNode>",),
    "value": ("0", "1", "b'\\1\\2'", "<any>"),
    "path": ("'file'", "b'file'", "'missing/file'", "''", "5"),
    "name": ("'nothing'", "'numbers'", "'shared'", "'data'", "b'nothing'", "'missing'", "''"),
    "key": ("'key'", "b'key'", "'other'", "5"),
    "module": ("PTX", "PTX", "PTX.decode()", "b''", "b'\\x7fELF'", "'missing.ptx'", "b'\\x50\\xed\\x55\\xba'"),
    "code": ("PTX", "CODE", "'nonsense'"),
    "code_type": ("'ptx'", "'c++'", "'nvvm'", "'x'"),
    "target_type": ("'ptx'", "'cubin'", "'ltoir'", "'fatbin'"),
    "name_expressions": ("()", "('nothing',)", "['missing']", "'nothing'"),
    "logs": ("None", "HOST"),
    "cache": ("None", "<InMemoryProgramCache>"),
    "mode": ("'relaxed'", "'relaxed'", "'thread_local'", "'global'", "None", "'x'"),
    "event_or_stream": ("<Event>", "<Stream>", "<GraphBuilder>", "AnyStream(Device(0).create_stream())"),
    "event": ("<Event>", "None"),
    "stream": (
        "<Stream>",
        "<Stream>",
        "<Stream>",
        "<GraphBuilder>",
        "AnyStream(Device(0).create_stream())",
        "default_stream(1)",
        "None",
    ),
    "upload_stream": ("None", "<Stream>"),
    "launches": (
        "[]",
        "[(<PreparedLaunch>,)]",
        "[(<PreparedLaunch>, 1)] * 3",
        "[(<PreparedLaunch>, <Buffer>, 1, 1.0, 1.0)]",
    ),
    "kernel_args": ("1", "1.5", "<Buffer>", "np.float32(1)", "True", "<any>"),
    "args": ("()", "(1,)", "(<Buffer>, 1, 1.0, 1.0)", "<any>"),
    "argument_types": ("int", "float", "Buffer", "np.float32", "bool", "str"),
    "config": ("<LaunchConfig>", "LaunchConfig(grid=1, block=1)"),
    "max_version": ("None", "(1, 0)", "(0, 8)", "(9, 9)", "'x'", "(1,)"),
    "dl_device": ("None", "None", "(1, 0)", "(2, 0)", "(3, 0)", "(13, 0)", "(1,)", "(99, -1)"),
    "copy": ("None", "None", "True", "False"),
    "uuid": ("<any>",),
    "alloc_handle": ("<IPCAllocationHandle>",),
    "ipc_descriptor": ("<IPCBufferDescriptor>", "<IPCEventDescriptor>"),
    "buffers": ("[<ManagedBuffer>]", "[<Buffer>, <ManagedBuffer>]", "[]"),
    "srcs": ("[<Buffer>]", "[<Buffer>, <Buffer>]", "[]", "[<any>]"),
    "dsts": ("[<Buffer>]", "[<Buffer>, <Buffer>]", "[]"),
    "options": ("None", "{}"),
    "layout": ("None", "<_StridedLayout>"),
    "dtype": ("None", "'f4'", "np.int8", "np.dtype('O')", "np.dtype('f4,i2')", "'x'", "np.float64"),
    "items": ("{'key': b'code'}", "[('key', b'code')]", "[5]"),
    "result": ("(0,)", "(0, 5)", "(1,)", "()", "5"),
    "arg_indices": ("(0,)", "()", "(5,)"),
    "object_codes": ("<ObjectCode>",),
    "graph_builders": ("<GraphBuilder>",),
    "condition": ("<GraphCondition>",),
    "symbol_mapping": ("None", "{}", "{'a': 'nothing'}"),
    "exc_type": ("None",),
    "obj": (
        "<Buffer>",
        "HOST[:64]",
        "<StridedMemoryView>",
        "<Stream>",
        "np.zeros((4, 4))",
        "Interface()",
        "Interface(True)",
    ),
    "ctx": ("None", "<Context>"),
    "is_fwd": ("True", "False"),
}

# Parameters that take one kind only, because any other crashes by design.
FIXED = {
    ("memcpy", "dst"): "<Buffer>",
    ("memcpy", "src"): "<Buffer>",
    ("memset", "dst"): "<Buffer>",
    ("update", "dst"): "<Buffer>",
    ("update", "src"): "<Buffer>",
    ("deallocate", "dptr"): "<AllocNode>.dptr",
    ("allocate", "size"): "<size>",
    ("modify_allocation", "new_size"): "<size>",
    ("from_allocation_handle", "alloc_handle"): "<IPCAllocationHandle>",
    ("while_loop", "condition"): "<ending condition>",
    ("switch", "count"): "<count>",
    ("split", "count"): "<count>",
    ("from_buffer", "buffer"): "<Buffer>",
    ("debug_dot_print", "path"): "<path>",
    ("FileStreamProgramCache", "path"): "<path>",
}
FIXED_REASONS = {
    "memcpy, memset and update of their nodes: dst, src": "a number is an address that the device goes to: an illegal "
    "one breaks the process's context, on a GPU for good",
    "deallocate: dptr": "as memcpy; only what an allocation node says is freed",
    "allocate, modify_allocation: size": "no more memory than `LARGEST` at a time, and `TOTAL` in a sequence",
    "from_allocation_handle: alloc_handle": "a number is a file descriptor, perhaps one that is in use",
    "while_loop: condition": "no kernel of the fuzzer ends a loop: only conditions that begin as 0",
    "switch, split: count": "each makes a graph or a stream",
    "debug_dot_print, FileStreamProgramCache: path": "no file outside the temporary folder of the sequence",
    "AnyStream": "owns its stream: one that the program destroys first crashes by design",
    "stream_ptr, and stream of __dlpack__": "only the numbers of default streams: another number is a stream's address",
}

WORDS = re.compile(r"[A-Za-z_]\w*")
PLACE = re.compile(r"<([^<>]+)>")


class Pool:
    """What a generator knows of the variables: their classes and the lines that made them."""

    def __init__(self) -> None:
        self.kinds: dict[str, type] = {}
        self.lines: dict[str, str] = {}

    def copy(self) -> Pool:
        """Return a pool that changes on its own."""
        other = Pool()
        other.kinds, other.lines = dict(self.kinds), dict(self.lines)
        return other

    def add(self, name: str, kind: type, line: str) -> None:
        """Add a variable."""
        self.kinds[name], self.lines[name] = kind, line

    def remove(self, name: str) -> None:
        """Remove a variable."""
        self.kinds.pop(name, None)
        self.lines.pop(name, None)

    def of_class(self, name: str) -> list[str]:
        """Return the variables whose class, or a base of it, has this name."""
        return [v for v, kind in self.kinds.items() if any(base.__name__ == name for base in kind.__mro__)]


class Budget:
    """How much memory a thread of a sequence may still ask for."""

    def __init__(self, total: int = TOTAL) -> None:
        self.left = total

    def size(self, rng: random.Random) -> str:
        """Return the size of an allocation."""
        text = rng.choice(SIZES)
        if int(text) > max(self.left, SMALL):
            text = str(SMALL)
        self.left -= int(text)
        return text


class Values:
    """Writes arguments."""

    def __init__(self, rng: random.Random, surface: Surface, pool: Pool, budget: Budget) -> None:
        self.rng = rng
        self.surface = surface
        self.pool = pool
        self.focus: tuple[str, ...] = ()
        self._places: dict[str, Callable[[], str]] = {
            "any": self.anything,
            "any number": lambda: rng.choice(("-1", "None", "1", "2", "0", "-5", "2.5", "'x'")),
            "size": lambda: budget.size(rng) if rng.random() > WRONG else rng.choice(REFUSED),
            "count": lambda: rng.choice(NUMBERS["count"]),
            "path": lambda: rng.choice(("'file'", "'other'", "'missing/file'")),
            "ending condition": self.ending_condition,
        }

    def arguments(self, callee: str, parameters: tuple[Parameter, ...]) -> str:
        """Return the text between the parentheses of a call."""
        given = []
        by_name = False
        for parameter in parameters:
            if parameter.kind == "rest":
                if not by_name:
                    given += [self.argument(callee, parameter) for _ in range(self.rng.choice((0, 1, 1, 2, 4)))]
                continue
            if not parameter.is_required and self.rng.random() < 0.5:
                by_name = True
                continue
            if parameter.is_required and self.rng.random() < 0.01:
                by_name = True  # one is missing
                continue
            text = self.argument(callee, parameter)
            by_name = by_name or parameter.kind == "keyword"
            given.append(f"{parameter.name}={text}" if by_name else text)
        return ", ".join(given)

    def argument(self, callee: str, parameter: Parameter) -> str:
        """Return one argument."""
        fixed = FIXED.get((callee, parameter.name))
        if fixed:
            return self.fill(fixed)
        if self.rng.random() < WRONG:
            return self.anything()
        return self.by_annotation(parameter) or self.by_name(parameter.name)

    def by_name(self, name: str) -> str:
        """Return an argument for a parameter of a name."""
        choices = (*NUMBERS.get(name, ()), *OBJECTS.get(name, ()))
        return self.fill(self.rng.choice(choices)) if choices else self.anything()

    def by_annotation(self, parameter: Parameter) -> str | None:
        """Return an argument that the annotation asks for; None if the name knows better."""
        if parameter.name in OBJECTS and parameter.name != "options":
            return None
        if parameter.name in NUMBERS:
            return self.by_name(parameter.name)
        words = WORDS.findall(parameter.annotation)
        choices: list[Callable[[], str]] = []
        for word in words:
            kind = getattr(public_types, word, None) or self.surface.names.get(word)
            if isinstance(kind, type) and issubclass(kind, enum.Enum):
                choices.append(lambda kind=kind: repr(self.rng.choice([*kind]).value))
            elif dataclasses.is_dataclass(kind):
                choices += [lambda kind=kind: self.options(kind)] * 2
            elif word in ("IsStreamType", "IsStreamT"):
                choices += [lambda: self.by_name("stream")] * 2
            elif isinstance(kind, type) or self.pool.of_class(word):
                choices += [lambda word=word: self.variable(word)] * 3
        simple = {
            "bool": lambda: self.rng.choice(("True", "False")),
            "int": lambda: self.rng.choice(("0", "1", "2", "-1", "2**31", "64")),
            "float": lambda: self.rng.choice(("0.0", "1.5")),
            "str": lambda: self.rng.choice(("'x'", "''")),
            "bytes": lambda: self.rng.choice(("b'x'", "b''")),
            "None": lambda: "None",
        }
        choices += [simple[word] for word in words if word in simple]
        if parameter.name in OBJECTS:
            choices.append(lambda: self.by_name(parameter.name))
        if not choices:
            return None
        text = self.rng.choice(choices)()
        if re.match(r"(Sequence|Iterable|list|tuple)\b", parameter.annotation):
            return f"[{text}]" if self.rng.random() < 0.7 else f"[{text}, {self.rng.choice(choices)()}]"
        return text

    def options(self, kind: type) -> str:
        """Return options: an object, or a mapping."""
        fields = [field for field in dataclasses.fields(kind) if field.init]
        required = [field for field in fields if field.default is field.default_factory is dataclasses.MISSING]
        chosen = required + self.rng.sample(fields, min(len(fields), self.rng.choice((0, 1, 1, 2))))
        items = {}
        for field in chosen:
            annotation = field.type if isinstance(field.type, str) else str(field.type)
            items[field.name] = self.argument(kind.__name__, Parameter(field.name, annotation, "keyword", False))
        if kind.__name__ in self.surface.names and self.rng.random() < 0.5:
            return f"{kind.__name__}({', '.join(f'{name}={text}' for name, text in items.items())})"
        return "{" + ", ".join(f"{name!r}: {text}" for name, text in items.items()) + "}"

    def fill(self, template: str) -> str:
        """Return a template with its places filled in."""
        return PLACE.sub(lambda match: self.place(match[1]), template)

    def place(self, name: str) -> str:
        """Return what stands for a place of a template."""
        if name in self._places:
            return self._places[name]()
        return self.by_name(name) if name in OBJECTS else self.variable(name)

    def variable(self, kind: str) -> str:
        """Return a variable of a class, mostly one in focus or a late one."""
        found = self.pool.of_class(kind)
        focused = [name for name in found if name in self.focus]
        if focused and self.rng.random() < 0.8:
            return self.rng.choice(focused)
        if not found:
            return MAKERS.get(kind, "None")
        return self.rng.choice(found[-4:] if self.rng.random() < 0.5 else found)

    def anything(self) -> str:
        """Return any variable or value."""
        if self.pool.kinds and self.rng.random() < 0.5:
            return self.rng.choice([*self.pool.kinds])
        return self.rng.choice(ANYTHING)

    def ending_condition(self) -> str:
        """Return a condition that is 0 when a graph is launched."""
        made = [name for name in self.pool.of_class("GraphCondition") if ENDING.search(self.pool.lines[name])]
        return self.rng.choice(made) if made else "None"


ENDING = re.compile(r"create_condition\((default_value=)?0\)$")

# Where there is no variable of a class.
MAKERS = {
    "Device": "Device(0)",
    "Stream": "Device(0).create_stream()",
    "Buffer": "borrowed(64)",
    "MemoryResource": "LegacyPinnedMemoryResource()",
    "LaunchConfig": "LaunchConfig(grid=1, block=1)",
    "GraphDefinition": "GraphDefinition()",
    "StridedMemoryView": "StridedMemoryView.from_any_interface(HOST[:64], -1)",
    "InMemoryProgramCache": "InMemoryProgramCache()",
}

assert all(isinstance(choices, tuple) for choices in (*NUMBERS.values(), *OBJECTS.values())), "a choice of letters"
