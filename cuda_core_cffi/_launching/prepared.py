# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Prepared launches: everything about a launch decided once, but for the stream and the values.

A prepared launch has functions of its own for its argument types (``calls.prepare``). Its plan has the kernel and the
configuration as C takes them (``include/launch/ccc_prepared.h``), and does what is not on the fast path.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

from cuda_core_cffi._code.kernel import Kernel
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.packing import PLAN_HEAD, plan_head
from cuda_core_cffi._launching.argument_types import infer_types, make_type_slot
from cuda_core_cffi._launching.arguments import MAX_ALIGNMENT, c_handles_of, lay_out
from cuda_core_cffi._launching.config import LaunchConfig
from cuda_core_cffi._launching.launch import CLOSED, UNCHECKED, allow, launch_failure
from cuda_core_cffi._streams.stream import Stream, launch_stream


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
    _record: Callable[..., bytes]  # what a batch needs: see Plan.record
    launch: Callable[..., None]

    def __init__(self, config: LaunchConfig, kernel: Kernel, *argument_types: Any) -> None:
        if not isinstance(config, LaunchConfig):
            raise TypeError(f"config must be a LaunchConfig, not {type(config).__name__}")
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
        plan = Plan(copy.copy(config), kernel, argument_types)
        object.__setattr__(self, "_plan", plan)
        for name, function in zip(("launch", "_record"), plan.make_functions()):
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

    __slots__ = ("_configs", "_fields", "_native", "config", "kernel", "types")

    def __init__(self, config: LaunchConfig, kernel: Kernel, types: tuple[Any, ...]) -> None:
        kernel._function()  # raises if it is closed
        layout, kinds = kernel._layout, kernel._kinds
        self.types = types or infer_types(layout, kinds)
        self.config, self.kernel = config, kernel
        types = self.types
        self._fields, size = lay_out(len(types), layout, kinds, lambda item: make_type_slot(types[item.position], item))
        stride = PLAN_HEAD + size + -size % MAX_ALIGNMENT
        self._configs = [config._native]
        self._native = ffi.new("ccc_plan *", [kernel._c_handle, self._configs[0], size, stride])

    def allow(self, stream: Stream) -> None:
        """Look whether a device has what the configuration asks for; a launch on it was ``CCC_UNCHECKED``."""
        config = allow(self.config, stream)
        if config != self._configs[-1]:  # a buffer that it refers to has moved
            self._configs.append(config)  # the others stay: another thread may be launching with one
            self._native.config = config

    def make_functions(self) -> tuple[Callable[..., None], Callable[..., bytes]]:
        """Return the functions of the launch: the one of the same name, and what a batch needs."""
        return calls.prepare(self._fields, self._native, self)

    def launch_on_slow_path(self, status: int | None, stream: Any, values: tuple[Any, ...]) -> None:
        """Launch what is not on the fast path, where status is None: other types, and errors that say more.

        Else look at what was not looked at before, and launch again; or raise for what failed. The same for what was
        closed, or moved: the arguments are packed again, which says which of them is closed.
        """
        queue = launch_stream(stream, "a prepared launch")
        queue._launch_handle = queue._c_handle
        if status == CLOSED:
            status = None
        while status is None or status == UNCHECKED:
            if status is not None:
                self.allow(queue)
            c_handles = c_handles_of(values)
            status = lib.ccc_launch_plan(self._native, queue._c_handle, self._pack(values), c_handles, len(c_handles))
        if status:
            raise launch_failure(status, queue, self.config, self.kernel, values)

    def record_on_slow_path(self, c_handles: list[Any], values: tuple[Any, ...]) -> bytes:
        """Return the record of a launch without its stream, and add the C handles of its buffers to a list."""
        # the C handles first: a buffer that moves in between has left the one that is found here
        found = list(c_handles_of(values))
        data = (plan_head(self._native) + self._pack(values)).ljust(self._native.stride, b"\0")
        c_handles += found
        return data

    def _pack(self, values: tuple[Any, ...]) -> bytes:
        return b"".join([bytes(gap) + slot.pack(value) for (gap, slot), value in zip(self._fields, values)])
