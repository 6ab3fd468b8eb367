# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Readers of NVML: functions that ask it for numbers, texts or a structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda_core_cffi._core.calls import blank
from cuda_core_cffi._core.ffi import ffi, lib

Answer = tuple[str, str, int, int]
"""A part of the output: the member of a structure (empty: the output is no structure), code, offset and size in bytes.

Codes are ``I`` and ``i`` for a number of 32 bits without and with a sign, ``Q`` and ``q`` of 64 bits, ``s`` for a text.
"""

UNSIGNED, TEXT = "I", "s"


class NvmlValue:
    """Holds a structure that NVML filled."""

    __slots__ = ("_record",)

    _record: Any


def nvml_reader(
    question: Any,
    answers: tuple[Answer, ...],
    ctype: Any,
    cls: type[NvmlValue] | None,
    meanings: dict[int | None, Any] | None,
    failed: Callable[[int], object],
) -> Callable[..., Any]:
    """Return a reader.

    Parameters
    ----------
    question : cdata
        A ``ccc_nvml_question``.
    answers : tuple of Answer
        What the reader returns, as a tuple where these are several; empty: the whole structure.
    ctype : ctype
        What the output is: the type of an array, or of a pointer to a structure.
    cls : type or None
        With the whole structure, a subclass of NvmlValue: the reader returns an instance with the structure, not a CFFI
        pointer.
    meanings : dict or None
        Values to return in the place of numbers; that of None stands for all other numbers.
    failed : callable
        Called with an error status. It raises an exception, or returns to have NVML asked again.

    Returns
    -------
    callable
        It takes a handle and up to two numbers, as the form of the question says.
    """
    new, ask, number = ffi.new, lib.ccc_nvml_ask, lib.ccc_nvml_number
    other = meanings[None] if meanings else None

    def meaning(value: Any) -> Any:
        return meanings.get(value, other) if meanings else value

    def read_number(handle: int = 0, first: int = 0, second: int = 0) -> Any:
        while (result := number(question, handle, first, second)) < 0:
            failed(-result)
        return meanings.get(result, other) if meanings else result

    def read_output(handle: int = 0, first: int = 0, second: int = 0) -> Any:
        output = new(ctype)
        while status := ask(question, handle, first, second, output):
            failed(status)
        return output

    def read_object(handle: int) -> Any:
        output = new(ctype)
        while status := ask(question, handle, 0, 0, output):
            failed(status)
        made = blank(cls)  # type: ignore[arg-type]  # it is None for another function
        made._record = output
        return made

    def read_values(handle: int = 0, first: int = 0, second: int = 0) -> Any:
        output = read_output(handle, first, second)
        values = [meaning(value_of(output, *answer)) for answer in answers]
        return values[0] if len(values) == 1 else tuple(values)

    if not answers:
        return read_output if cls is None else read_object
    return read_number if answers == (("", UNSIGNED, 0, question.size),) else read_values


def value_of(output: Any, member: str, code: str, offset: int, size: int) -> int | str:
    """Return what Python gets of a part of the output."""
    if member:
        output = getattr(output, member)
    elif code != TEXT:
        output = output[offset // size]
    return str(ffi.string(output), "utf-8", "replace") if code == TEXT else int(output)
