# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Variables of object code: their memory as a buffer."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers import collect, in_thread

from cuda_core_cffi import (
    CUDAError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    Program,
    UnavailableError,
    launch,
    live_objects,
)
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

SOURCE = """
__device__ int counter = 3;
__constant__ float weights[4];
__managed__ int shared_with_host = 5;
namespace tables { __device__ double deep = 1.5; }
template <class T> __device__ T slot = T(7);
extern "C" __global__ void weigh(float *x) {
    x[threadIdx.x] = weights[threadIdx.x] * counter;
    if (threadIdx.x == 0) {
        shared_with_host += 1;
        tables::deep += slot<int>;
    }
}
"""
EXPRESSIONS = ["&tables::deep", "&slot<int>"]


@pytest.fixture
def code(device):
    """Return code with variables."""
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    with Program(SOURCE, "c++", {"name": "weigh.cu"}).compile("cubin", EXPRESSIONS) as code:
        yield code


def read(buffer, dtype, stream):
    """Return what is in a buffer."""
    return buffer.copy_to(np.zeros(buffer.size // np.dtype(dtype).itemsize, dtype), stream=stream)


def loaded() -> int:
    """Return how much code is loaded, once finalizers have run."""
    collect()
    return live_objects()["library"]


def test_a_variable_is_a_buffer_of_its_size_with_its_value(code, stream):
    with code.get_global("counter") as counter:
        assert counter.size == 4
        values = read(counter, np.int32, stream)
        stream.sync()
    assert list(values) == [3]


@pytest.mark.parametrize("name", ["&tables::deep", "_ZN6tables4deepE", b"_ZN6tables4deepE"])
def test_a_variable_is_got_by_symbol_or_name_expression(code, stream, name):
    with code.get_global(name) as deep:
        values = read(deep, np.float64, stream)
        stream.sync()
    assert list(values) == [1.5]


def test_an_instance_of_a_template_of_variables_is_got_by_its_name_expression(code, stream):
    with code.get_global("&slot<int>") as slot:
        values = read(slot, np.int32, stream)
        stream.sync()
    assert list(values) == [7]


def test_a_kernel_sees_what_was_copied_to_variables(code, stream):
    pinned = LegacyPinnedMemoryResource()
    with code.get_global("weights") as weights, code.get_global("counter") as counter, pinned.allocate(16) as out:
        assert weights.size == 16
        weights.copy_from(np.array([1, 2, 3, 4], np.float32), stream=stream)
        counter.copy_from(np.array([10], np.int32), stream=stream)
        launch(stream, LaunchConfig(grid=1, block=4), code.get_kernel("weigh"), out)
        stream.sync()
        assert list(np.asarray(out).view(np.float32)) == [10, 20, 30, 40]


def test_a_kernel_changes_variables(code, stream):
    with code.get_global("&tables::deep") as deep, LegacyPinnedMemoryResource().allocate(16) as out:
        launch(stream, LaunchConfig(grid=1, block=4), code.get_kernel("weigh"), out)
        values = read(deep, np.float64, stream)
        stream.sync()
    assert list(values) == [8.5]


def test_a_managed_variable_is_a_buffer_too(code, stream):
    with code.get_global("shared_with_host") as shared, LegacyPinnedMemoryResource().allocate(16) as out:
        assert shared.size == 4
        launch(stream, LaunchConfig(grid=1, block=4), code.get_kernel("weigh"), out)
        values = read(shared, np.int32, stream)
        stream.sync()
    assert list(values) == [6]


def test_a_variable_has_one_address(code):
    with code.get_global("counter") as first, code.get_global("counter") as second:
        assert first.handle == second.handle != 0


def test_a_variable_is_on_its_device(code, device):
    with code.get_global("counter") as counter:
        assert counter.is_device_accessible
        assert counter.device_id == device.device_id


def test_a_variable_outlives_its_closed_code(code, stream):
    before = live_objects()["library"]
    with code.get_global("counter") as counter:
        code.close()
        assert live_objects()["library"] == before + 1
        values = read(counter, np.int32, stream)
        stream.sync()
    del counter
    assert list(values) == [3]
    assert loaded() == before


def test_a_part_of_a_variable_keeps_the_code_loaded(code):
    before = live_objects()["library"]
    with code.get_global("weights") as weights:
        part = weights[4:8]
    code.close()
    assert (part.size, live_objects()["library"]) == (4, before + 1)
    part.close()
    assert loaded() == before


def test_a_symbol_mapping_renames_variables(code):
    with (
        ObjectCode.from_cubin(code.code, symbol_mapping={"deep": "_ZN6tables4deepE"}) as renamed,
        renamed.get_global("deep") as deep,
    ):
        assert deep.size == 8


def test_code_from_a_pickle_has_variables_of_its_own(code):
    other = pickle.loads(pickle.dumps(code))
    with other, code.get_global("counter") as mine, other.get_global("counter") as theirs:
        assert mine.handle != theirs.handle


def test_a_missing_variable_is_named_with_those_like_it(code):
    with pytest.raises(CUDAError, match=r"'weigh\.cu' has no variable 'countr'; did you mean 'counter'\?") as caught:
        code.get_global("countr")
    assert (caught.value.name, caught.value.call) == ("CUDA_ERROR_NOT_FOUND", "cuLibraryGetGlobal")


def test_a_missing_variable_is_named_with_those_of_its_name_in_the_source(code):
    with pytest.raises(CUDAError, match=r"did you mean '&tables::deep'\?"):
        code.get_global("tables::deep")
    unmapped = ObjectCode.from_cubin(code.code)
    with pytest.raises(CUDAError, match=r"did you mean '_ZN6tables4deepE' \(tables::deep\)\?"):
        unmapped.get_global("tables::deep")


def test_a_kernel_is_no_variable(code):
    with pytest.raises(CUDAError, match="has no variable 'weigh'; it is a kernel: use get_kernel"):
        code.get_global("weigh")


def test_a_variable_is_no_kernel(code):
    with pytest.raises(CUDAError, match="has no kernel 'counter'; it is a variable: use get_global"):
        code.get_kernel("counter")


def test_without_a_current_device_there_are_no_variables(code):
    def get():
        with pytest.raises(CUDAError, match="set_current"):
            code.get_global("counter")

    assert code.handle
    in_thread(get)


@pytest.mark.parametrize("name", [None, 3, ["counter"]])
def test_a_variables_name_of_another_type_is_refused(code, name):
    with pytest.raises(TypeError, match="the name of a variable must be str or bytes"):
        code.get_global(name)


@pytest.mark.parametrize("name", ["", b"a\0b"])
def test_a_variables_name_that_is_empty_or_has_nul_is_refused(code, name):
    with pytest.raises(ValueError, match="the name of a variable must not be empty"):
        code.get_global(name)


def test_closed_code_has_no_variables(code):
    code.close()
    with pytest.raises(RuntimeError, match="this ObjectCode is closed"):
        code.get_global("counter")
