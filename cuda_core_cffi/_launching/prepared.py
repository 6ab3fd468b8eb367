# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Prepared launches: everything about a launch decided once, but for the stream and the values.

A prepared launch has functions of its own for its argument types (``calls.prepare``). Its plan has the kernel and the
configuration as C takes them (``include/launch/ccc_prepared.h``), and does what is not on the fast path.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from typing import Any, ClassVar

from cuda_core_cffi._code.kernel import Kernel
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._launching.argument_types import infer_types
from cuda_core_cffi._launching.arguments import MAX_ALIGNMENT, c_handles_of, declared_slot, lay_out, pack_slowly
from cuda_core_cffi._launching.config import LaunchConfig
from cuda_core_cffi._launching.launch import CLOSED, UNCHECKED, allow, launch_failure
from cuda_core_cffi._streams.stream import Stream, launch_stream

_launch = lib.ccc_launch


class PreparedLaunch(Uncopyable):
    """A kernel, a configuration and argument types, checked once, to be launched with values alone.

    Parameters
    ----------
    config : LaunchConfig
        Grid, block and the rest, as they are now: assignments to it later change no prepared launch.
    kernel : Kernel
        What to run. It is kept.
    *argument_types
        A type for each argument: :class:`Buffer`, int, float, bool, complex, a NumPy dtype or scalar type, a ctypes
        type, or bytes for a structure. int, float, bool and complex have the width that the kernel declares. By default
        what the kernel declares, where it does (as those in PTX and templates do): a Buffer for a pointer, int, float,
        and bytes for a structure. PTX of ``extern "C"`` kernels may declare a pointer as an int, for which buffers are
        taken more slowly.

    Attributes
    ----------
    launch : callable
        ``launch(stream, *values)`` starts the kernel. It takes a :class:`Stream`, or an object with
        ``__cuda_stream__``, which is slower. A value of another type than was prepared is taken, more slowly, as
        :func:`launch` takes it for a parameter of that width and kind. It raises TypeError for a wrong number of
        values, and else what :func:`launch` does.

    Raises
    ------
    TypeError
        If a type cannot be that of an argument, or not of this one; if none are given and the kernel does not tell.
    ValueError
        If the number of types is wrong.
    RuntimeError
        If the kernel is closed.

    Notes
    -----
    A prepared launch does not change, and any number of threads may use it at once, each with values of its own.

    Examples
    --------
    >>> from cuda_core_cffi import Buffer, LaunchConfig
    >>> store = PreparedLaunch(LaunchConfig(grid=1, block=1), kernel, Buffer, int)
    >>> for value in range(3):
    ...     store.launch(stream, memory, value)
    >>> stream.sync()
    """

    __slots__ = ("__weakref__", "_plan", "_record", "launch")

    _NOT_COPIED_BECAUSE: ClassVar[str] = "its kernel is of this process"
    _plan: Plan
    _record: Callable[..., bytes]  # the record of a launch for a batch
    launch: Callable[..., None]

    def __init__(self, config: LaunchConfig, kernel: Kernel, *argument_types: Any) -> None:
        if not isinstance(config, LaunchConfig):
            raise TypeError(f"config must be a LaunchConfig, not {type(config).__name__}")
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
        plan = Plan(copy.copy(config), kernel, argument_types)
        object.__setattr__(self, "_plan", plan)
        for name, function in zip(("launch", "_record"), calls.prepare(plan.slots, plan.native, plan)):
            object.__setattr__(self, name, function)

    def __repr__(self) -> str:
        names = "".join(f", {getattr(given, '__name__', given)}" for given in self.argument_types)
        return f"PreparedLaunch({self._plan.config!r}, {self.kernel!r}{names})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a prepared launch does not change: make another")

    @property
    def kernel(self) -> Kernel:
        """What it runs."""
        return self._plan.kernel

    @property
    def argument_types(self) -> tuple[object, ...]:
        """The types that it was prepared for."""
        return self._plan.types


class Plan:
    """What a prepared launch consists of, without its functions: these refer to it."""

    __slots__ = ("_configs", "config", "head", "kernel", "native", "slots", "types")

    def __init__(self, config: LaunchConfig, kernel: Kernel, types: tuple[Any, ...]) -> None:
        kernel._function()  # raises if it is closed
        layout, kinds = kernel._layout, kernel._kinds
        self.types = given = types or infer_types(layout, kinds)
        self.config, self.kernel = config, kernel
        self.slots, size = lay_out(len(given), layout, kinds, lambda item: declared_slot(given[item.position], item))
        self._configs = [config._native]
        target = (kernel._c_handle, size, ffi.NULL, len(given))
        self.native = ffi.new("ccc_plan *", (target, self._configs[0]))
        self.head = struct.pack("=Q8x", int(ffi.cast("intptr_t", self.native)))  # of a ccc_record
        self.native.stride = len(self.head) + size + -size % MAX_ALIGNMENT

    def allow(self, stream: Stream) -> None:
        """Look whether a device has what the configuration asks for; a launch on it was ``CCC_UNCHECKED``."""
        config = allow(self.config, stream)
        if config != self._configs[-1]:  # it was changed since
            self._configs.append(config)  # the others stay: another thread may be launching with one
            self.native.config = config

    def launch_on_slow_path(self, status: int | None, stream: Any, *values: Any) -> None:
        """Launch what is not on the fast path, where status is None: other types, and errors that say more.

        Else look at what was not looked at before, and launch again; or raise for what failed. The same for what was
        closed: the arguments are packed again, which says which of them it is.
        """
        self._check(values)
        queue = launch_stream(stream, "a prepared launch")
        native = self.native
        if status == CLOSED:
            status = None
        while status is None or status == UNCHECKED:
            if status is not None:
                self.allow(queue)
            c_handles = c_handles_of(values)
            data = pack_slowly(self.slots, native.target.size, values)
            target = ffi.addressof(native, "target")
            status = _launch(target, native.config, queue._c_handle, data, c_handles, ffi.NULL, len(c_handles))
        if status:
            raise launch_failure(status, queue, self.config, self.kernel, values)

    def record(self, c_handles: list[Any], *values: Any) -> bytes:
        """Return the record of a launch without its stream, and add the C handles of its buffers to a list."""
        self._check(values)
        data = self.head + pack_slowly(self.slots, self.native.target.size, values)
        c_handles += list(c_handles_of(values))
        return data.ljust(self.native.stride, b"\0")

    def _check(self, values: tuple[Any, ...]) -> None:
        wanted = len(self.slots)
        if len(values) != wanted:
            raise TypeError(f"this launch is prepared for {wanted} value{'s' * (wanted != 1)}, not {len(values)}")
