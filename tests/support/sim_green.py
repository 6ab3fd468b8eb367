# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Resources and green contexts, as a program has them that calls the driver."""

from __future__ import annotations

import ctypes
from typing import Any

from sim_driver import Driver, byref, c_int, c_uint, c_void_p

DEFAULT_STREAM = 1
SM, WORKQUEUE = 1, 1000
IGNORE_COSCHEDULING, LARGEST_CLUSTERS = 1, 2


class Resource(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("hidden", ctypes.c_char * 92),
        ("count", c_uint),
        ("least", c_uint),
        ("alignment", c_uint),
        ("rest", c_uint * 9),
    ]


def whole(cu: Driver) -> Resource:
    """Return the multiprocessors of the device."""
    return get(cu, "cuDeviceGetDevResource", 0)


def get(cu: Driver, function: str, handle: Any, kind: int = SM) -> Resource:
    found = Resource()
    getattr(cu, function)(handle, byref(found), kind)
    return found


def split(cu: Driver, resource: Resource, groups: int, count: int, flags: int = 0) -> tuple[list[Resource], Resource]:
    number, parts, rest = c_uint(groups), (Resource * groups)(), Resource()
    cu.cuDevSmResourceSplitByCount(parts, byref(number), byref(resource), byref(rest), flags, count)
    return list(parts)[: number.value], rest


def description(cu: Driver, *resources: Resource) -> c_void_p:
    return cu.out(  # type: ignore[no-any-return]
        c_void_p, "cuDevResourceGenerateDesc", (Resource * len(resources))(*resources), len(resources)
    )


def make(cu: Driver, *resources: Resource) -> c_void_p:
    return cu.out(c_void_p, "cuGreenCtxCreate", description(cu, *resources), 0, DEFAULT_STREAM)  # type: ignore[no-any-return]


def as_context(cu: Driver, green: c_void_p) -> c_void_p:
    return cu.out(c_void_p, "cuCtxFromGreenCtx", green)  # type: ignore[no-any-return]
