# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the rows work on: the objects behind the names in their statements, made when a row first needs them."""

from __future__ import annotations

import abc
import ast
import ctypes
import functools
import importlib
import os
import pathlib
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.rows import BATCH, KERNEL_SOURCE, MIXED, STRETCH, Row

TimeFunction = Callable[[int], float]
"""From a number of calls to the seconds that they took."""

SIZE = 1024
LIVE_SIZE = 64
"""Bytes of each of many buffers: a pool takes 512 for it, and a million still fit on small devices."""

LOOP = """\
def loop(_count, {names}):
    _start = _clock()
    for _ in _repeat(None, _count):
        {statement}
    return _clock() - _start
"""
FILL = """\
def loop(_live, {names}):
    _start = _clock()
    for _index in range(len(_live)):
        _live[_index] = {statement}
    return _clock() - _start
"""
EMPTY = """\
def loop(_live, {names}):
    _start = _clock()
    for _index in range(len(_live)):
        {statement}
    return _clock() - _start
"""


class Absent(Exception):
    """What a row needs is not there: the row is left out, which is no failure."""


class Statement(NamedTuple):
    """What a library does for a row.

    Attributes
    ----------
    code : str
        The Python that is timed, of names that the library's bench has.
    setup : str
        What is done once, in the thread that will run it.
    """

    code: str
    setup: str = ""


class Live(NamedTuple):
    """How a library makes one of many buffers, and lets go of ``_live[_index]``."""

    make: Statement
    drop: str


class Bench(abc.ABC):
    """The objects of one implementation in Python.

    Parameters
    ----------
    code : pathlib.Path
        A folder for the compiled kernels: the first implementation compiles them, and every other one loads the same.
    """

    LIVE: Live
    stream: Any
    default_stream: Any

    def __init__(self, code: pathlib.Path) -> None:
        self._code = code

    @abc.abstractmethod
    def statement(self, row: Row) -> Statement:
        """Return what this implementation does for a row."""

    def find(self, name: str) -> Any:
        """Return the object behind a name in a statement."""
        return getattr(self, name)

    def loop(self, row: Row, **names: Any) -> TimeFunction:
        """Return the loop around a row's statement; ``names`` stand in for those of the bench."""
        return self.compile(LOOP, self.statement(row), **names)

    def compile(self, template: str, statement: Statement, **names: Any) -> Callable[[Any], float]:
        """Return a function of one argument around a statement, after its setup."""
        values = {name: names[name] if name in names else self.find(name) for name in names_in(*statement)}
        scope: dict[str, Any] = {"_clock": perf_counter, "_repeat": repeat}
        exec(statement.setup, scope, dict(values))
        exec(template.format(names=", ".join(values), statement=statement.code), scope)
        loop, arguments = scope["loop"], tuple(values.values())
        return lambda count: loop(count, *arguments)  # type: ignore[no-any-return]

    @functools.cached_property
    def fill_live(self) -> Callable[[list[Any]], float]:
        """Make a buffer for each element of a list, and return the seconds."""
        return self.compile(FILL, self.LIVE.make)

    @functools.cached_property
    def empty_live(self) -> Callable[[list[Any]], float]:
        """Let go of the buffers in a list, and return the seconds."""
        return self.compile(EMPTY, Statement(self.LIVE.drop))

    @functools.cached_property
    def empty_kernel(self) -> Any:
        """The kernel of graphs: one object, because the first use of an object takes longer than the next."""
        return self.find("kernel0")

    def graph_seconds(self, count: int, launches: int) -> dict[str, float]:
        """Return the seconds of making, and of so many launches of, a graph of so many kernels, by step."""
        raise Absent("no graphs of kernels that one may choose")

    @abc.abstractmethod
    def open_thread(self) -> dict[str, Any]:
        """Return the objects that another thread needs for itself, by name; called in that thread."""

    def close_thread(self, names: dict[str, Any]) -> None:
        """Let go of them."""
        names.clear()

    def sync(self, stream: Any) -> None:
        """Wait for a stream."""
        stream.synchronize()

    def drain(self) -> None:
        """Wait until the streams have nothing left to do."""
        # Device.sync() would do, but cuda-core goes through the CUDA runtime there, which the simulator is not.
        self.sync(self.stream)
        self.sync(self.default_stream)

    @functools.cached_property
    def int32(self) -> Any:
        """A NumPy scalar."""
        return foreign_module("numpy").int32(7)

    @functools.cached_property
    def float32(self) -> Any:
        """A NumPy scalar."""
        return foreign_module("numpy").float32(0.5)

    @functools.cached_property
    def uint8(self) -> Any:
        """A NumPy scalar."""
        return foreign_module("numpy").uint8(7)

    @functools.cached_property
    def numpy_array(self) -> Any:
        """An array of NumPy."""
        return foreign_module("numpy").zeros(SIZE // 4, "float32")

    @functools.cached_property
    def cupy_array(self) -> Any:
        """An array of CuPy."""
        if simulated():
            raise Absent("CuPy needs a GPU")
        return foreign_module("cupy").zeros(SIZE // 4, "float32")

    @functools.cached_property
    def torch_tensor(self) -> Any:
        """A tensor of PyTorch; on the simulated driver, one of the host."""
        torch = foreign_module("torch")
        return torch.zeros(SIZE // 4, device="cpu" if simulated() else "cuda")

    @functools.cached_property
    def jax_array(self) -> Any:
        """An array of JAX; on the simulated driver, one of the host."""
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or it takes most of the GPU's memory
        if simulated():
            os.environ["JAX_PLATFORMS"] = "cpu"
        array = foreign_module("jax.numpy").zeros(SIZE // 4, "float32")
        return array.block_until_ready()

    def _kernel_file(self) -> pathlib.Path:
        # The simulated driver interprets PTX; on a GPU, a driver older than NVRTC could not read its PTX.
        found = sorted(self._code.glob("kernels.*"))
        if not found:
            raise Absent("no package has compiled the kernels")
        return found[0]


class Workbench(Bench):
    """The objects of this package or of cuda-core.

    Parameters
    ----------
    api : module
        ``cuda_core_cffi`` or ``cuda.core``.
    code : pathlib.Path
        As for :class:`Bench`.
    """

    LIVE = Live(Statement(f"device.allocate({LIVE_SIZE}, stream=stream)"), "_live[_index].close()")

    def __init__(self, api: Any, code: pathlib.Path) -> None:
        super().__init__(code)
        self._api = api
        self.Device = api.Device
        self.launch = api.launch
        self.Program = api.Program
        self.device = api.Device()
        self.device.set_current()
        self.default_stream = self.device.default_stream
        # cuda-core has no cubins that the simulated driver runs
        self.target = "ptx" if "Simulated" in self.device.name else "cubin"

    def statement(self, row: Row) -> Statement:
        """Return the row's own statement."""
        return Statement(row.statement)

    def find(self, name: str) -> Any:
        """Return the object behind a name in a statement."""
        kind = name.rstrip("0123456789")
        number = name[len(kind) :]
        if number and kind == "kernel":
            return self.kernels.get_kernel(name)
        if number and kind == "arguments":
            return self._arguments(int(number))
        if number and kind == "prepared":
            types = map(type, self._arguments(int(number)))
            return self._api.PreparedLaunch(self.config, self.find(f"kernel{number}"), *types)
        return getattr(self, name)

    @functools.cached_property
    def nvml_device(self) -> Any:
        """The device, as NVML knows it."""
        return self._submodule("system").Device(index=0)

    @functools.cached_property
    def stream(self) -> Any:
        """A stream of our own."""
        return self.device.create_stream()

    @functools.cached_property
    def second(self) -> Any:
        """Another stream."""
        return self.device.create_stream()

    @functools.cached_property
    def buffer(self) -> Any:
        """Device memory."""
        return self.device.allocate(SIZE, stream=self.stream)

    @functools.cached_property
    def other(self) -> Any:
        """As much device memory again."""
        return self.device.allocate(SIZE, stream=self.stream)

    @functools.cached_property
    def pinned(self) -> Any:
        """As much page-locked host memory."""
        return self._api.LegacyPinnedMemoryResource().allocate(SIZE, stream=self.stream)

    @functools.cached_property
    def array_options(self) -> Any:
        """What an array of 1 KiB is like."""
        return self._submodule("texture").OpaqueArrayOptions((SIZE // 64, 16), "float32", 1)

    @functools.cached_property
    def array(self) -> Any:
        """An array of two dimensions."""
        return self.device.create_opaque_array(self.array_options)

    @functools.cached_property
    def array_resource(self) -> Any:
        """What describes the array for a texture."""
        return self._submodule("texture").ResourceDescriptor.from_opaque_array(self.array)

    @functools.cached_property
    def texture(self) -> Any:
        """A texture of the array."""
        return self.device.create_texture_object(resource=self.array_resource, options=self.sampling)

    @functools.cached_property
    def sampling(self) -> Any:
        """How textures sample."""
        return self._submodule("texture").TextureObjectOptions(filter_mode="linear")

    @functools.cached_property
    def tensor_view(self) -> Any:
        """Device memory as a matrix, of which tensor maps are made."""
        if self.device.compute_capability < (9, 0):
            raise Absent("tensor maps need compute capability 9.0")
        return self._matrix(self.buffer)

    @functools.cached_property
    def other_view(self) -> Any:
        """Another matrix of that shape."""
        return self._matrix(self.other)

    @functools.cached_property
    def tensor_map(self) -> Any:
        """A tensor map of the matrix."""
        return self.tensor_view.as_tensor_map((8, 16))

    @functools.cached_property
    def kernel_tensor(self) -> Any:
        """The kernel that takes a tensor map."""
        return self.kernels.get_kernel("kernel_tensor")

    def _matrix(self, buffer: Any) -> Any:
        return self.StridedMemoryView.from_buffer(
            buffer, (16, SIZE // 64), dtype=foreign_module("numpy").dtype("float32")
        )

    @functools.cached_property
    def event(self) -> Any:
        """An event that has been reached."""
        return self._reached(None)

    @functools.cached_property
    def start(self) -> Any:
        """An event that has been reached and takes times."""
        return self._reached(self._api.EventOptions(timing_enabled=True))

    @functools.cached_property
    def end(self) -> Any:
        """A later event that has been reached and takes times."""
        assert self.start
        return self._reached(self._api.EventOptions(timing_enabled=True))

    @functools.cached_property
    def config(self) -> Any:
        """The smallest launch."""
        return self._api.LaunchConfig(grid=1, block=1)

    @functools.cached_property
    def options(self) -> Any:
        """What to compile for."""
        return self._api.ProgramOptions(arch=f"sm_{self.device.arch}")

    @functools.cached_property
    def kernels(self) -> Any:
        """The object code that all kernels are in."""
        path = self._code / f"kernels.{self.target}"
        if not path.exists():
            compiled = self.Program(KERNEL_SOURCE, "c++", self.options).compile(self.target)
            path.write_bytes(compiled.code)
        return getattr(self._api.ObjectCode, f"from_{self.target}")(path.read_bytes())

    @functools.cached_property
    def kernel_mixed(self) -> Any:
        """The kernel with parameters of mixed types."""
        return self.kernels.get_kernel("kernel_mixed")

    @functools.cached_property
    def int16(self) -> Any:
        """A ctypes object."""
        return ctypes.c_int16(7)

    @functools.cached_property
    def LaunchBatch(self) -> Any:
        """The class of batches."""
        return self._api.LaunchBatch

    @functools.cached_property
    def launches(self) -> Any:
        """What is in a batch: prepared launches of four arguments."""
        return [(self.find("prepared4"), *self._arguments(4))] * BATCH

    @functools.cached_property
    def batch(self) -> Any:
        """A batch, packed already."""
        return self.LaunchBatch(self.launches)

    @functools.cached_property
    def graph(self) -> Any:
        """A graph of one launch with four arguments, that has been launched once."""
        definition = self._submodule("graph").GraphDefinition()
        definition.launch(self.config, self.find("kernel4"), *self._arguments(4))
        graph = definition.instantiate()
        graph.launch(self.stream)
        return graph

    @functools.cached_property
    def StridedMemoryView(self) -> Any:
        """The class of views."""
        return self._submodule("utils").StridedMemoryView

    @functools.cached_property
    def numpy_from_dlpack(self) -> Any:
        """NumPy's function that takes an array from elsewhere."""
        return foreign_module("numpy").from_dlpack

    @functools.cached_property
    def source(self) -> str:
        """What is compiled: one kernel."""
        return f'extern "C" __global__ void mixed({", ".join(f"{kind} a{i}" for i, kind in enumerate(MIXED))}) {{}}\n'

    @functools.cached_property
    def memory_cache(self) -> Any:
        """A cache that has the compiled code."""
        return self._warm(self._submodule("utils").InMemoryProgramCache())

    @functools.cached_property
    def disk_cache(self) -> Any:
        """A cache that has the compiled code in a file."""
        folder = self._code / f"cache-{self._api.__name__}"
        return self._warm(self._submodule("utils").FileStreamProgramCache(str(folder)))

    def graph_seconds(self, count: int, launches: int) -> dict[str, float]:
        """Return the seconds of making, and of so many launches of, a graph of so many kernels, by step."""
        stream, config, kernel, launch = self.stream, self.config, self.empty_kernel, self.launch
        definition = self._submodule("graph").GraphDefinition()
        start = perf_counter()
        node = definition.launch(config, kernel)
        for _ in repeat(None, count - 1):
            node = node.launch(config, kernel)
        define = perf_counter() - start
        builder = self.device.create_graph_builder()
        start = perf_counter()
        builder.begin_building()
        for _ in repeat(None, count):
            launch(builder, config, kernel)
        builder.end_building()
        capture = perf_counter() - start
        builder.close()
        start = perf_counter()
        graph = definition.instantiate()
        instantiate = perf_counter() - start
        graph.launch(stream)  # also uploads it
        self.sync(stream)
        spent = 0.0
        for _ in repeat(None, launches):
            start = perf_counter()
            graph.launch(stream)
            spent += perf_counter() - start
            self.sync(stream)
        graph.close()
        return {"define": define, "capture": capture, "instantiate": instantiate, "launch": spent}

    def open_thread(self) -> dict[str, Any]:
        """Return a device, which the packages keep for each thread, and a stream."""
        device = self.Device(0)
        device.set_current()
        return {"device": device, "stream": device.create_stream()}

    def close_thread(self, names: dict[str, Any]) -> None:
        """Close the stream."""
        names["stream"].close()

    def sync(self, stream: Any) -> None:
        """Wait for a stream."""
        stream.sync()

    def _submodule(self, name: str) -> Any:
        return importlib.import_module(f"{self._api.__name__}.{name}")

    def _warm(self, cache: Any) -> Any:
        self.Program(self.source, "c++", self.options).compile(self.target, cache=cache)
        return cache

    def _arguments(self, count: int) -> tuple[Any, ...]:
        values = (self.buffer, 7, 0.5)
        return tuple(values[index % len(values)] for index in range(count))

    def _reached(self, options: Any) -> Any:
        event = self.device.create_event(options)
        self.stream.record(event)
        event.sync()
        return event


def names_in(*code: str) -> list[str]:
    """Return the names that code uses, without those of a template."""
    trees = [ast.walk(ast.parse(part)) for part in code]
    found = {node.id for tree in trees for node in tree if isinstance(node, ast.Name)}
    return sorted(name for name in found if not name.startswith("_"))


def foreign_module(name: str) -> Any:
    """Return a module of another library, if it is installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(str(error)) from None


def simulated() -> bool:
    """Tell whether the driver is the simulated one."""
    return os.environ["CUDA_CORE_CFFI_DRIVER"] != "system"


def in_stretches(loop: TimeFunction, drain: Callable[[], None], launches: int = 1) -> TimeFunction:
    """Return a time function that drains the device, untimed, after every stretch of a loop.

    Where a call launches several kernels, fewer calls make a stretch.
    """
    stretch = max(STRETCH // launches, 1)

    def run(count: int) -> float:
        total = 0.0
        while count > 0:
            total += loop(min(count, stretch))
            drain()
            count -= stretch
        return total

    return run
