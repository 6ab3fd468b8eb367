# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Print what this package and nvidia-ml-py tell differently of each device, function by function.

    python tests/clients/compare_with_nvidia_ml_py.py

Both are asked in one process, of the library that ``libnvidia-ml.so.1`` is, with every function that takes a device and
no more than a number or an enumerator. Values that change by themselves may differ by a fifth, and those that each call
measures by anything. The exit status is 1 if something else differs, or if hardly anything could be compared.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pynvml

from cuda_core_cffi import nvml
from cuda_core_cffi._raw.types import Record

CHANGES = re.compile(
    r"clock|power|temp|util|energy|memory|throughput|margin|replay|fan|time|process|pstate|c2c|sample", re.I
)
NOISE = 0.2
MEASURED = re.compile(r"nvmlDeviceGetPcieThroughput\b")  # over the 20 ms of the call
# nvidia-ml-py asks for the number, and then for so many; NVML refuses a list for none.
REFUSES_NONE = re.compile(r"nvmlDeviceGetTopologyNearestGpus\b")
ROOM = 64
TIMES = 3  # what changes in between, such as a process that ends, is asked again
NOT_AVAILABLE = 2**64 - 1  # nvidia-ml-py makes it None
LEAST = 40  # functions that give a value, also of a simulated device
# Small numbers for what takes one beside the device: clock types, counters, links, sensors and so on.
SECOND = (0, 1, 2, 3)


def answers(device: int, peer_device: Any) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Yield a name, and what asks each side, for every function that both have in the same form."""
    for name in sorted(nvml.__all__):
        ours, theirs = getattr(nvml, name), getattr(pynvml, name, None)
        if not name.startswith("nvmlDeviceGet") or not inspect.isfunction(ours) or not inspect.isfunction(theirs):
            continue
        needed = [item.name for item in required(ours)]
        peer_needed = [item.name for item in required(theirs)]
        if needed[:1] != ["device"] or peer_needed[:1] not in (["handle"], ["device"]):
            continue
        if needed[1:] in ([], ["length"]) and len(peer_needed) == 1:
            extra = [ROOM + ROOM] if needed[1:] else []
            yield name, lambda f=ours, e=extra: f(device, *e), lambda f=theirs: f(peer_device, **outputs(f))
        elif len(needed) == len(peer_needed) == 2 and needed[1] not in ("length", "size"):
            for number in SECOND:
                yield (
                    f"{name}({number})",
                    lambda f=ours, n=number: f(device, n),
                    lambda f=theirs, n=number: f(peer_device, n, **outputs(f)),
                )


def outputs(function: Callable[..., Any]) -> dict[str, Any]:
    """Return new outputs of nvidia-ml-py: those by default keep what an earlier call left in them."""
    defaults = {name: item.default for name, item in inspect.signature(function).parameters.items()}
    kinds = (ctypes.Structure, ctypes._SimpleCData)
    return {name: type(output)() for name, output in defaults.items() if isinstance(output, kinds)}


def required(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that have no default."""
    return [item for item in inspect.signature(function).parameters.values() if item.default is item.empty]


def ask_ours(ask: Callable[[], Any]) -> tuple[int, list[Any]]:
    """Return the status and the values, with lists as long as they need."""
    status, *values = ask()
    return int(status), [plain(value) for value in values]


def ask_theirs(ask: Callable[[], Any]) -> tuple[int, list[Any]]:
    """Return the same for nvidia-ml-py."""
    try:
        value = ask()
    except pynvml.NVMLError as error:
        return error.value, []
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return 0, [plain(item) for item in values]


def plain(value: Any) -> Any:
    """Return a value as numbers and texts, without version and padding."""
    if isinstance(value, Record):
        return {name: plain(getattr(value, name)) for name in type(value)._fields if name != "version"}
    if isinstance(value, ctypes.Structure):
        names = [name for name, *_ in value._fields_]
        return {name: plain(getattr(value, name)) for name in names if name != "version"}
    if isinstance(value, pynvml.nvmlFriendlyObject):
        return {name: plain(item) for name, item in vars(value).items()}
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).split(b"\0")[0].decode(errors="replace")
    if isinstance(value, (list, tuple)) or hasattr(value, "_length_"):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, (bool, int)) else value


def same(name: str, one: Any, other: Any) -> bool:
    """Tell whether two values agree; what changes by itself may differ a little."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(f"{name}.{key}", one[key], other[key]) for key in one.keys() & other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(lambda a, b: same(name, a, b), one, other))
    if one == other or (one == NOT_AVAILABLE and other is None):
        return True
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and MEASURED.match(name):
        return True
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and CHANGES.search(name):
        return abs(one - other) <= max(NOISE * max(abs(one), abs(other)), 2)
    return bool(isinstance(one, str) and isinstance(other, str) and one.strip() == other.strip())


def numbers(value: Any) -> list[Any]:
    """Return what is in structures and lists, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    return [item for part in value for item in numbers(part)] if isinstance(value, list) else [value]


def agree(name: str, ours: list[Any], theirs: list[Any]) -> bool:
    """Tell whether values agree; nvidia-ml-py leaves the first fields of some structures out."""
    if same(name, ours, theirs):
        return True
    flat, peer_flat = numbers(ours), numbers(theirs)
    return len(ours) == 1 and isinstance(ours[0], dict) and same(name, flat[len(flat) - len(peer_flat) :], peer_flat)


def ask_all_of_ours(name: str, device: int, ours: Callable[[], Any]) -> tuple[int, list[Any]]:
    """Return the status and the values; those of a list where nvidia-ml-py asks for its length first."""
    function = getattr(nvml, name.partition("(")[0])
    if not any(item.default == 0 for item in inspect.signature(function).parameters.values()):
        return ask_ours(ours)
    extra = [int(part) for part in re.findall(r"\((\d+)\)", name)]
    status, values = ask_ours(lambda: function(device, *extra, ROOM))
    return status, [item for value in values if isinstance(value, list) for item in value]


def compare(index: int) -> tuple[int, int, list[str]]:
    """Return how many functions gave values and statuses that were compared, and what differs."""
    status, device = nvml.nvmlDeviceGetHandleByIndex(index)
    assert status == 0, status
    values, compared, different = 0, 0, []
    for name, ours, theirs in answers(device, pynvml.nvmlDeviceGetHandleByIndex(index)):
        try:
            ask_theirs(theirs)
        except (TypeError, ValueError, AttributeError) as error:  # it takes something else than a number
            print(f"not compared: {name}: {type(error).__name__}: {error}")
            continue
        for _ in range(TIMES):
            peer_status, peer_values = ask_theirs(theirs)
            our_status, our_values = ask_all_of_ours(name, device, ours)
            if REFUSES_NONE.match(name) and not our_values and peer_status == pynvml.NVML_ERROR_INVALID_ARGUMENT:
                peer_status = our_status
            if our_status == peer_status and (our_status or agree(name, our_values, peer_values)):
                break
        else:
            told = f"{our_status} {our_values}, nvidia-ml-py {peer_status} {peer_values}"
            different.append(f"device {index}: {name}: {told}")
        compared += 1
        values += our_status == 0
    return values, compared, different


def main() -> int:
    """Compare all devices."""
    assert nvml.nvmlInit() == (0,)
    pynvml.nvmlInit()
    failed = False
    for index in range(pynvml.nvmlDeviceGetCount()):
        values, compared, different = compare(index)
        print(*different, sep="\n", end="\n" if different else "")
        print(f"device {index}: {compared} compared, of which {values} have values; {len(different)} differ")
        failed = failed or bool(different) or values < LEAST
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
