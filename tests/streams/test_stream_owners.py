# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that goes back in the order of another library's stream keeps the owner of that stream, whoever keeps it."""

from __future__ import annotations

import gc
import warnings
import weakref

import numpy as np
import pytest
from buffers import SIZE, ForeignStream
from graphs import eventually

from cuda_core_cffi import Buffer, CUDAWarning, Device, PinnedMemoryResource
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.utils import StridedMemoryView


def in_graph(buffer: Buffer) -> GraphDefinition:
    """Return a graph that uses a buffer."""
    definition = GraphDefinition()
    definition.memset(buffer, 1, buffer.size)
    return definition


KEEPERS = {
    "tensor": np.from_dlpack,
    "tensor of a slice": lambda buffer: np.from_dlpack(buffer[8:]),
    "capsule": lambda buffer: buffer.__dlpack__(stream=-1),
    "array": np.asarray,
    "view": lambda buffer: StridedMemoryView.from_any_interface(buffer, stream_ptr=-1),
    "tensor of a view": lambda buffer: np.from_dlpack(StridedMemoryView.from_any_interface(buffer, stream_ptr=-1)),
    "graph": in_graph,
    "executable": lambda buffer: in_graph(buffer).instantiate(),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_what_keeps_memory_keeps_the_owner_of_its_stream(device: Device, name: str) -> None:
    pool = PinnedMemoryResource({})
    stream = device.create_stream()
    owner = ForeignStream(stream)
    seen = weakref.ref(owner)
    keeper = KEEPERS[name](pool.allocate(SIZE, owner))
    del owner, stream
    gc.collect()
    assert seen() is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error", CUDAWarning)
        if hasattr(keeper, "close"):
            keeper.close()
        del keeper
        assert eventually(lambda: seen() is None)
        pool.close()


@pytest.mark.parametrize("how", ["close", "set_deallocation_stream"])
@pytest.mark.parametrize("name", KEEPERS)
def test_what_keeps_memory_already_keeps_the_owner_of_a_stream_that_is_set_later(device, name, how):
    pool = PinnedMemoryResource({})
    stream = device.create_stream()
    owner = ForeignStream(stream)
    seen = weakref.ref(owner)
    buffer = pool.allocate(SIZE, device.default_stream)
    keeper = KEEPERS[name](buffer)
    getattr(buffer, how)(owner)
    del owner, stream, buffer
    gc.collect()
    assert seen() is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error", CUDAWarning)
        if hasattr(keeper, "close"):
            keeper.close()
        del keeper
        assert eventually(lambda: seen() is None)
        pool.close()


@pytest.mark.parametrize("make", [Device.create_stream, Device.create_graph_builder])
def test_a_stream_made_from_another_works_after_that_one_is_closed(device: Device, make) -> None:
    stream = make(device)
    handle = stream.__cuda_stream__()[1]
    with device.create_stream(stream) as again:
        assert again == getattr(stream, "stream", stream)
        stream.close()
        assert again.handle == handle
        with device.allocate(SIZE, again) as buffer:
            buffer.fill(1, stream=again)
            again.sync()
        assert again.device == device
    with pytest.raises(RuntimeError, match=f"this {type(stream).__name__} is closed"):
        device.create_stream(stream)
