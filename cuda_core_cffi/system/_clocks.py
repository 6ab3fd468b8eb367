# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Clocks of a device."""

from __future__ import annotations

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._enumerators import CLOCK_IDS, CLOCK_TYPES
from cuda_core_cffi.system._library import field, nvml, reads_number, value, values
from cuda_core_cffi.system._snapshot import OfDevice, Snapshot
from cuda_core_cffi.system.typing import ClockId, ClockType

CURRENT = ClockId.CURRENT
CURRENT_NUMBER = CLOCK_IDS.number(CURRENT)

LAST_PSTATE = int(nvml.nvmlPstates_t.NVML_PSTATE_15)

read_clock = reads_number("nvmlDeviceGetClock", int, arguments=2)
read_max_clock_info = reads_number("nvmlDeviceGetMaxClockInfo", int, arguments=1)
read_max_customer_boost_clock = reads_number("nvmlDeviceGetMaxCustomerBoostClock", int, arguments=1)


def pstate_number(pstate: int) -> int:
    """Return a performance state that a caller gave.

    Raises
    ------
    TypeError
        If it is no int.
    ValueError
        If it is not 0 to 15.
    """
    number = integer(pstate, "pstate")
    if not 0 <= number <= LAST_PSTATE:
        raise ValueError(f"pstate must be 0 to {LAST_PSTATE}, not {number}")
    return number


class ClockOffsets(Snapshot["nvml.nvmlClockOffset_v1_t"]):
    """By how much a clock is shifted.

    Parameters
    ----------
    clock_offset : nvmlClockOffset_v1_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlClockOffset_v1_t"

    def __init__(self, clock_offset: nvml.nvmlClockOffset_v1_t) -> None:
        self._record = clock_offset

    clock_offset_mhz = Answer(field("clockOffsetMHz"), doc="The offset, in MHz.")
    max_offset_mhz = Answer(field("maxClockOffsetMHz"), doc="The most that it can be, in MHz.")
    min_offset_mhz = Answer(field("minClockOffsetMHz"), doc="The least that it can be, in MHz.")


class ClockInfo(OfDevice):
    """A clock of a device; made by :meth:`Device.get_clock`.

    Parameters
    ----------
    handle : nvmlDevice_t
        The device.
    clock_type : ClockType or str
        The clock domain.

    Raises
    ------
    ValueError
        If there is no such clock domain.
    """

    __slots__ = ("_clock",)

    def __init__(self, handle: nvml.nvmlDevice_t, clock_type: ClockType | str) -> None:
        self._clock = CLOCK_TYPES.number(clock_type)
        self._handle = handle

    def __repr__(self) -> str:
        """Return the clock domain."""
        return f"<ClockInfo {CLOCK_TYPES.members[self._clock]}>"

    def get_current_mhz(self, clock_id: ClockId | str = CURRENT) -> int:
        """Return what the clock runs at.

        Parameters
        ----------
        clock_id : ClockId or str, optional
            Another value of the clock.

        Returns
        -------
        int
            The clock in MHz.

        Raises
        ------
        ValueError
            If there is no such value.
        NotSupportedError
            If the device does not tell it.
        """
        number = CURRENT_NUMBER if clock_id is CURRENT else CLOCK_IDS.number(clock_id)
        return read_clock(self, self._clock, number)

    def get_max_mhz(self) -> int:
        """Return the most that the clock can run at.

        Returns
        -------
        int
            The clock in MHz. In performance state 0 the current one can differ from it by a few MHz.

        Raises
        ------
        NotSupportedError
            If the device does not tell it.
        """
        return read_max_clock_info(self, self._clock)

    def get_max_customer_boost_mhz(self) -> int:
        """Return the most that the clock can run at by the setting of the vendor of the board.

        Returns
        -------
        int
            The clock in MHz.

        Raises
        ------
        NotSupportedError
            If the device does not tell it.
        """
        return read_max_customer_boost_clock(self, self._clock)

    def get_min_max_clock_of_pstate_mhz(self, pstate: int) -> tuple[int, int]:
        """Return what the clock can run at in a performance state.

        Parameters
        ----------
        pstate : int
            The state, from 0, the fastest, to 15.

        Returns
        -------
        tuple of int
            Least and most, in MHz.

        Raises
        ------
        ValueError
            If the state is not 0 to 15.
        NotSupportedError
            If the device does not tell it.
        """
        return values(nvml.nvmlDeviceGetMinMaxClockOfPState, self._handle, self._clock, pstate_number(pstate))

    def get_offsets(self, pstate: int) -> ClockOffsets:
        """Return by how much the clock is shifted in a performance state.

        Parameters
        ----------
        pstate : int
            The state, from 0, the fastest, to 15.

        Returns
        -------
        ClockOffsets
            The offset, and between what it can be.

        Raises
        ------
        ValueError
            If the state is not 0 to 15.
        NotSupportedError
            If the device does not tell it.
        """
        asked = nvml.nvmlClockOffset_v1_t(type=self._clock, pstate=pstate_number(pstate))
        return ClockOffsets(value(nvml.nvmlDeviceGetClockOffsets, self._handle, asked))
