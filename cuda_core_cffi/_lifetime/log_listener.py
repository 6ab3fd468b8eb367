# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The driver's error log, line by line, for programs that want every line."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.driver_log import LOGGER, forward
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._lifetime.pending_calls import tasks

_listening: list[bool] = []  # an item for each that listens


def _forward() -> None:
    """Read the log if anybody listens."""
    if _listening:
        forward()


tasks.append(_forward)


class DriverLogListener(Uncopyable):
    """Has every line of the driver's error log given to the logger ``cuda_core_cffi.driver``, soon after it was logged.

    Without one, the log is read when an exception of a call is made. So lines of calls whose failure raises nothing, as
    those of other libraries, come late or, if there are more than the driver keeps, not at all.

    An object listens until it is closed; it is a context manager. A thread of this package calls the logger.

    Raises
    ------
    UnavailableError
        If the driver is older than CUDA 12.9.

    Notes
    -----
    This is ``cuLogsRegisterCallback``. A call that fails costs some microseconds more; others cost nothing.
    """

    __slots__ = ("__weakref__", "_open")

    _open: list[bool]  # emptied once, whoever closes: a lock could be held when it is collected

    _NOT_COPIED_BECAUSE = "it listens until it is closed; make another one"

    def __new__(cls) -> Self:
        """Return an object that does not listen yet."""
        made = super().__new__(cls)
        made._open = []
        return made

    def __init__(self) -> None:
        check(lib.ccc_log_follow())
        self._open.append(True)
        _listening.append(True)

    def __repr__(self) -> str:
        """Return where lines go, and whether they still do."""
        return f"<DriverLogListener logger={LOGGER!r}{'' if self._open else ' closed'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self._stop()

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return not self._open

    def close(self) -> None:
        """Stop listening, and read what has been logged. Closing twice is allowed.

        Lines that the release thread has read may reach the logger after this returns.
        """
        if self._stop():
            forward()

    def _stop(self) -> bool:
        """Listen no more; return whether it did."""
        try:
            self._open.pop()
        except IndexError:
            return False
        _listening.pop()
        lib.ccc_log_unfollow()
        return True
