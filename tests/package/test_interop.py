# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Other GPU libraries in the same process: contexts, streams and memory are shared, not copied.

Each test runs in a process of its own, because what matters is which library comes first.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.gpu_only("the libraries' own runtimes need a real driver")

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
needs_cupy = pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
needs_peer = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None,
    reason="cuda-core is not installed",
)


def run(code: str) -> None:
    """Run ``code`` in a new Python; it fails by an assertion or another exception."""
    done = subprocess.run(
        [sys.executable, "-W", "error::cuda_core_cffi.CUDAWarning", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_torch
def test_a_context_that_torch_made_current_is_picked_up():
    run("""
        import torch
        torch.ones(1, device="cuda")
        from cuda_core_cffi import Device, lib, ffi
        context = ffi.new("CUcontext *")
        assert lib.cuCtxGetCurrent(context) == 0
        device = Device()
        assert device.context.handle == int(ffi.cast("uintptr_t", context[0]))
        assert device.create_stream().context == device.context
    """)


@needs_torch
def test_torch_works_in_a_context_that_this_package_made_current():
    run("""
        from cuda_core_cffi import Device
        device = Device(0)
        device.set_current()
        before = device.context
        import torch
        tensor = torch.arange(8, device="cuda")
        torch.cuda.synchronize()
        assert device.context == before
        assert int(tensor.sum()) == 28
    """)


@needs_torch
def test_torch_streams_are_taken_through_the_protocol():
    run("""
        import torch
        from cuda_core_cffi import Device
        device = Device(0)
        device.set_current()

        class Wrapped:
            def __init__(self, stream):
                self.stream = stream
            def __cuda_stream__(self):
                return (0, self.stream.cuda_stream)

        theirs = torch.cuda.Stream()
        ours = device.create_stream(Wrapped(theirs))
        assert ours.handle == theirs.cuda_stream
        assert ours.device == device
        buffer = device.allocate(1024, stream=ours)
        buffer.fill(1, stream=ours)
        event = ours.record()
        theirs.synchronize()
        assert event.is_done
        buffer.close()
    """)


@needs_torch
def test_torch_reads_a_buffer_through_dlpack():
    run("""
        import torch
        from cuda_core_cffi import Device
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        buffer = device.allocate(256, stream=stream)
        buffer.fill(7, stream=stream)
        tensor = torch.from_dlpack(buffer)
        buffer.close()  # the tensor keeps the memory
        assert tensor.dtype == torch.int8 and tensor.shape == (256,)
        assert (tensor == 7).all()
    """)


@needs_torch
def test_torch_works_on_our_stream():
    run("""
        import torch
        from cuda_core_cffi import Device
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
            tensor = torch.ones(1 << 20, device="cuda") * 3
        stream.sync()
        assert float(tensor.sum()) == 3 << 20
    """)


@needs_cupy
def test_cupy_and_this_package_share_the_context():
    run("""
        import cupy
        array = cupy.arange(10)
        from cuda_core_cffi import Device
        device = Device()
        device.set_current()
        stream = device.create_stream()
        assert stream.context == device.context
        assert int(array.sum()) == 45
    """)


@needs_cupy
def test_cupy_reads_a_buffer_through_the_cuda_array_interface():
    run("""
        import cupy
        from cuda_core_cffi import Device
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        buffer = device.allocate(64, stream=stream)
        buffer.fill(5, stream=stream)
        array = cupy.asarray(buffer)
        assert array.dtype == cupy.uint8 and int(array.sum()) == 5 * 64
        del array
        buffer.close()
    """)


@needs_cupy
def test_cupy_works_on_our_stream():
    run("""
        import cupy
        from cuda_core_cffi import Device
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        with cupy.cuda.ExternalStream(stream.handle):
            array = cupy.full(1000, 2)
        stream.sync()
        assert int(array.sum()) == 2000
    """)


@needs_peer
def test_cuda_core_and_this_package_share_streams_both_ways():
    run("""
        from cuda.core import Device as Theirs
        from cuda_core_cffi import Device
        theirs = Theirs(0)
        theirs.set_current()
        their_stream = theirs.create_stream()
        device = Device(0)
        ours = device.create_stream(their_stream)
        assert ours.handle == int(their_stream.handle)
        assert ours.context.handle == int(theirs.context.handle)
        back = theirs.create_stream(device.create_stream())
        back.sync()
        ours.sync()
    """)
