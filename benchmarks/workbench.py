# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the rows work on: the objects behind the names in their statements, made when a row first needs them."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any

from benchmarks.rows import BATCH, KERNEL_SOURCE, STRETCH, Row

__all__ = ["TimeFunction", "Workbench", "in_stretches"]

TimeFunction = Callable[[int], float]
"""From a number of calls to the seconds that they took."""

SIZE = 1024
LOOP = """\
def loop(_count, {names}):
    _start = _clock()
    for _ in _repeat(None, _count):
        {statement}
    return _clock() - _start
"""


class Workbench:
    """The objects of one implementation.

    Parameters
    ----------
    api : module
        ``cuda_core_cffi`` or ``cuda.core``.
    code : pathlib.Path
        A folder for the compiled kernels: the first implementation compiles them, and every other one loads the same.
    """

    def __init__(self, api: Any, code: pathlib.Path) -> None:
        self._api = api
        self._code = code
        self.Device = api.Device
        self.launch = api.launch
        self.device = api.Device()
        self.device.set_current()
        self.default_stream = self.device.default_stream

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
            return self._api.PreparedLaunch(self.config, self.kernels.get_kernel(f"kernel{number}"), *types)
        return getattr(self, name)

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
    def kernels(self) -> Any:
        """The object code that all kernels are in."""
        # The simulated driver interprets PTX; on a GPU, a driver older than NVRTC could not read its PTX.
        kind = "ptx" if "Simulated" in self.device.name else "cubin"
        path = self._code / f"kernels.{kind}"
        if not path.exists():
            options = self._api.ProgramOptions(arch=f"sm_{self.device.arch}")
            compiled = self._api.Program(KERNEL_SOURCE, "c++", options).compile(kind)
            path.write_bytes(compiled.code)
        return getattr(self._api.ObjectCode, f"from_{kind}")(path.read_bytes())

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

    def drain(self) -> None:
        """Wait until the streams have nothing left to do."""
        # Device.sync() would do, but cuda-core goes through the CUDA runtime there, which the simulator is not.
        self.stream.sync()
        self.default_stream.sync()

    def loop(self, row: Row, **names: Any) -> TimeFunction:
        """Return the loop around a row's statement; ``names`` stand in for those of the workbench."""
        values = {name: names[name] if name in names else self.find(name) for name in row.names}
        scope: dict[str, Any] = {"_clock": perf_counter, "_repeat": repeat}
        exec(LOOP.format(names=", ".join(values), statement=row.statement), scope)
        arguments = tuple(values.values())
        return lambda count: scope["loop"](count, *arguments)

    def _arguments(self, count: int) -> tuple[Any, ...]:
        values = (self.buffer, 7, 0.5)
        return tuple(values[index % len(values)] for index in range(count))

    def _reached(self, options: Any) -> Any:
        event = self.device.create_event(options)
        self.stream.record(event)
        event.sync()
        return event


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
