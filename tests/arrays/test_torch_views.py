# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Views of PyTorch's tensors, which go through DLPack's C exchange API where PyTorch has it."""

from __future__ import annotations

import numpy
import pytest

from cuda_core_cffi.utils import StridedMemoryView

torch = pytest.importorskip("torch")


def test_a_tensor_that_requires_a_gradient_is_viewed():
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no C exchange API, and its __dlpack__ refuses such tensors")
    tensor = torch.zeros(3, requires_grad=True)
    view = StridedMemoryView.from_any_interface(tensor, -1)
    assert (view.ptr, view.shape, view.exporting_obj is tensor) == (tensor.data_ptr(), (3,), True)


@pytest.mark.parametrize("make", [StridedMemoryView.from_any_interface, StridedMemoryView.from_dlpack])
@pytest.mark.parametrize("part", [lambda z: z.conj(), lambda z: z.conj().imag], ids=["conjugated", "negated"])
def test_a_tensor_that_is_not_in_memory_as_it_reads_is_refused(make, part):
    tensor = part(torch.tensor([1 + 2j, 3 + 4j]))
    assert tensor.is_conj() or tensor.is_neg()
    with pytest.raises(BufferError, match="resolve_conj"):
        make(tensor, -1)
    resolved = tensor.resolve_conj().resolve_neg()
    assert numpy.from_dlpack(make(resolved, -1)).tolist() == resolved.tolist()


@pytest.mark.parametrize("kind", ["sparse", "meta"])
def test_a_tensor_without_plain_memory_is_refused_in_pytorchs_words(kind):
    tensor = torch.eye(2).to_sparse() if kind == "sparse" else torch.zeros(2, device="meta")
    with pytest.raises((BufferError, ValueError), match=r"strided|meta"):
        StridedMemoryView.from_any_interface(tensor, -1)


def test_no_stream_is_ambiguous():
    with pytest.raises(BufferError, match="stream_ptr=None is ambiguous"):
        StridedMemoryView.from_any_interface(torch.zeros(2))


def test_memory_of_the_host_has_no_cuda_array_interface():
    with pytest.raises(BufferError, match="__cuda_array_interface__"):
        StridedMemoryView.from_cuda_array_interface(torch.zeros(2), -1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA in this build of PyTorch")
class TestOnDevice:
    """Tensors in device memory."""

    @pytest.mark.parametrize("make", ["from_any_interface", "from_dlpack", "from_cuda_array_interface"])
    def test_every_way_shows_the_same(self, device, make):
        tensor = torch.arange(12, device="cuda").reshape(3, 4)[:, ::2]
        view = getattr(StridedMemoryView, make)(tensor, 1)
        assert (view.ptr, view.shape, view.strides) == (tensor.data_ptr(), (3, 2), (4, 2))
        assert (view.device_id, view.is_device_accessible, view.dtype) == (0, True, numpy.int64)

    @pytest.mark.parametrize("make", ["from_any_interface", "from_dlpack"])
    def test_the_consumer_waits_for_pytorchs_stream(self, device, stream, make):
        work = torch.cuda.Stream()
        with torch.cuda.stream(work):
            tensor = torch.zeros(4, device="cuda")
            torch.cuda._sleep(500_000_000)
            getattr(StridedMemoryView, make)(tensor, stream.handle)
            event = stream.record()
            assert not event.is_done
        work.synchronize()
        event.sync()

    def test_without_ordering_nobody_waits(self, device, stream):
        work = torch.cuda.Stream()
        with torch.cuda.stream(work):
            tensor = torch.zeros(4, device="cuda")
            torch.cuda._sleep(500_000_000)
            StridedMemoryView.from_any_interface(tensor, -1)
            event = stream.record()
            event.sync()
            assert not work.query()
        work.synchronize()
