# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Sharing with graphics libraries, which there are none of: what is answered, and in which order it is checked."""

from __future__ import annotations

import pytest
from sim_driver import Driver, byref, c_size_t, c_uint64, c_void_p

TEXTURE_2D = 0x0DE1  # GL_TEXTURE_2D


@pytest.mark.parametrize(
    ("function", "arguments", "flags"),
    [("cuGraphicsGLRegisterBuffer", (1,), 3), ("cuGraphicsGLRegisterImage", (1, TEXTURE_2D), 15)],
)
def test_nothing_can_be_registered(driver: Driver, function: str, arguments: tuple[int, ...], flags: int) -> None:
    resource = c_void_p()
    assert driver.status(function, byref(resource), *arguments, 0) == "INVALID_CONTEXT"
    driver.start()
    for allowed in range(flags + 1):
        assert driver.status(function, byref(resource), *arguments, allowed) == "INVALID_GRAPHICS_CONTEXT"
    assert driver.status(function, byref(resource), *arguments, flags + 1) == "INVALID_VALUE"
    assert driver.status(function, None, *arguments, 0) == "INVALID_VALUE"
    assert resource.value is None
    driver.cuDevicePrimaryCtxRelease_v2(0)


def calls(resource: c_void_p) -> list[tuple[object, ...]]:
    return [
        ("cuGraphicsUnregisterResource", resource),
        ("cuGraphicsResourceSetMapFlags_v2", resource, 2),
        ("cuGraphicsMapResources", 1, byref(resource), None),
        ("cuGraphicsUnmapResources", 1, byref(resource), None),
        ("cuGraphicsSubResourceGetMappedArray", byref(c_void_p()), resource, 0, 0),
        ("cuGraphicsResourceGetMappedMipmappedArray", byref(c_void_p()), resource),
        ("cuGraphicsResourceGetMappedPointer_v2", byref(c_uint64()), byref(c_size_t()), resource),
    ]


@pytest.mark.parametrize("number", range(7))
def test_no_handle_is_a_resource(driver: Driver, number: int) -> None:
    call = calls(c_void_p(12345))[number]
    assert driver.status(*call) == "INVALID_CONTEXT"  # type: ignore[arg-type]
    driver.start()
    assert driver.status(*call) == "INVALID_HANDLE"  # type: ignore[arg-type]
    driver.cuDevicePrimaryCtxRelease_v2(0)


def test_arguments_are_checked_first(cu: Driver) -> None:
    resource = c_void_p(12345)
    for call in (
        ("cuGraphicsResourceSetMapFlags_v2", resource, 3),
        ("cuGraphicsMapResources", 1, None, None),
        ("cuGraphicsUnmapResources", 1, None, None),
        ("cuGraphicsSubResourceGetMappedArray", None, resource, 0, 0),
        ("cuGraphicsResourceGetMappedMipmappedArray", None, resource),
        ("cuGraphicsResourceGetMappedPointer_v2", None, byref(c_size_t()), resource),
    ):
        assert cu.status(*call) == "INVALID_VALUE", call[0]  # type: ignore[arg-type]


def test_to_map_nothing_does_nothing(cu: Driver) -> None:
    for function in ("cuGraphicsMapResources", "cuGraphicsUnmapResources"):
        assert cu.status(function, 0, None, None) == "SUCCESS"
        assert cu.status(function, 0, None, c_void_p(12345)) == "INVALID_HANDLE"
