# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels: what they need, which arguments they take, how many blocks fit."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import threading
import types
import weakref

import pytest

from cuda_core_cffi import CUDAError, Device, Kernel, LaunchConfig, Program, UnavailableError, ffi, simulator
from cuda_core_cffi._code.kernel import KernelAttributes
from cuda_core_cffi._code.occupancy import KernelOccupancy
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

SOURCE = """
struct Odd { char bytes[12]; };
extern "C" __global__ void plain(float *x, int n, double d, char c, Odd o, long long m) { x[n] = d + c + m; }
extern "C" __global__ void nothing() {}
extern "C" __global__ void shared(float *x) {
    __shared__ float y[256];
    y[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = y[255 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(128) bounded(float *x) { *x = 1; }
__global__ void mangled(float *x, const int *y, float a, unsigned char b, Odd o, float2 v) { *x = *y + a + b; }
template <class T> __global__ void scale(T *x, T by, int n) { x[n] *= by; }
"""


@pytest.fixture
def code(device):
    """Return the code of the kernels above."""
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    with Program(SOURCE, "c++").compile("cubin", ["mangled", "scale<float>", "scale<int>"]) as code:
        yield code


@pytest.fixture
def ptx(device):
    """Return the same as PTX, whatever the driver."""
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    with Program(SOURCE, "c++").compile("ptx", ["mangled", "scale<float>", "scale<int>"]) as code:
        yield code


@pytest.fixture
def kernel(code):
    """Return a kernel."""
    with code.get_kernel("plain") as kernel:
        yield kernel


# The object


@pytest.mark.parametrize("cls", [Kernel, KernelAttributes, KernelOccupancy])
def test_it_cannot_be_constructed(cls):
    with pytest.raises(RuntimeError, match="cannot be constructed directly"):
        cls()


def test_a_kernel_has_a_handle(kernel):
    assert kernel.handle != 0
    assert int(ffi.cast("uintptr_t", kernel.cdata)) == kernel.handle
    assert ffi.typeof(kernel.cdata) is ffi.typeof("CUkernel")


def test_the_repr_has_the_handle_and_the_name(kernel):
    assert repr(kernel) == f"<Kernel handle={kernel.handle:#x} name='plain'>"


def test_a_kernel_has_its_name_and_its_symbol(code, kernel):
    shown = Kernel.from_handle(kernel.handle)
    for known in (kernel, shown):
        assert (known.name, known.mangled_name) == ("plain", "plain")
    kernel.close()
    assert (kernel.name, repr(kernel)) == ("plain", "<Kernel handle=0x0 name='plain'>")


def test_a_kernel_whose_name_was_not_asked_for_shows_without_it_when_closed(kernel):
    shown = Kernel.from_handle(kernel.handle)
    shown.close()
    assert repr(shown) == "<Kernel handle=0x0>"
    with pytest.raises(RuntimeError, match="this Kernel is closed"):
        shown.name  # noqa: B018


@pytest.mark.simulator_only("fails a driver call")
def test_without_its_name_a_kernel_shows_its_handle(kernel):
    shown = Kernel.from_handle(kernel.handle)
    with simulator.fail("cuKernelGetName", "CUDA_ERROR_NOT_SUPPORTED"):
        assert repr(shown) == f"<Kernel handle={kernel.handle:#x}>"
    assert shown.name == "plain"


def test_two_objects_of_one_kernel_are_equal(code):
    first, second, other = code.get_kernel("plain"), code.get_kernel("plain"), code.get_kernel("nothing")
    assert first == second != other
    assert len({first, second, other}) == 2


def test_a_kernel_is_equal_to_nothing_else(kernel):
    assert kernel != kernel.handle
    assert kernel != "kernel"


def test_a_kernel_can_be_referred_to_weakly(kernel):
    assert weakref.ref(kernel)() is kernel


def test_a_kernel_cannot_be_pickled(kernel):
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(kernel)


def test_a_kernel_keeps_its_code_loaded(code):
    kernel = code.get_kernel("plain")
    code.close()
    assert kernel.attributes.max_threads_per_block > 0


def test_a_closed_kernel_says_so(kernel):
    assert kernel.num_arguments >= 0  # what is known already is not told any more either
    kernel.close()
    assert kernel.is_closed
    assert kernel.handle == 0
    for use in (
        lambda: kernel.num_arguments,
        lambda: kernel.attributes.num_regs,
        lambda: kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0),
    ):
        with pytest.raises(RuntimeError, match="this Kernel is closed"):
            use()


# Foreign handles


def test_a_kernel_is_made_from_an_address(kernel, code):
    other = Kernel.from_handle(kernel.handle)
    assert other == kernel
    assert other.arguments_info == kernel.arguments_info


def test_a_kernel_is_made_from_a_cffi_handle(kernel):
    assert Kernel.from_handle(kernel.cdata) == kernel


def test_a_kernel_from_a_handle_keeps_the_code_it_is_given(code):
    kernel = Kernel.from_handle(code.get_kernel("plain").handle, code)
    code.close()
    assert kernel.attributes.max_threads_per_block > 0


@pytest.mark.parametrize("handle", [None, "kernel", True, 1.5j])
def test_a_handle_of_another_type_is_refused(handle):
    with pytest.raises(TypeError, match="handle"):
        Kernel.from_handle(handle)


def test_a_null_handle_is_refused():
    with pytest.raises(ValueError, match="must not be 0"):
        Kernel.from_handle(0)


def test_a_kernel_belongs_to_object_code_only(kernel):
    with pytest.raises(TypeError, match="mod must be an ObjectCode or None, not str"):
        Kernel.from_handle(kernel.handle, "code")


# Arguments


def test_the_arguments_have_offsets_and_sizes(kernel):
    info = kernel.arguments_info
    assert [(item.offset, item.size) for item in info] == [(0, 8), (8, 4), (16, 8), (24, 1), (25, 12), (40, 8)]
    assert kernel.num_arguments == 6


def test_the_layout_is_asked_for_once(kernel):
    assert kernel._layout == tuple(kernel.arguments_info)
    assert kernel._layout is kernel._layout


def test_a_kernel_may_take_no_arguments(code):
    kernel = code.get_kernel("nothing")
    assert (kernel.num_arguments, kernel.arguments_info, kernel._layout) == (0, [], ())


def test_a_mangled_name_tells_the_kinds(code):
    odd = None  # in a cubin: an enumeration may have the name
    assert code.get_kernel("mangled")._kinds == ("p", "p", "f", "i", odd, "c")


@pytest.mark.parametrize(("name", "kinds"), [("scale<float>", ("p", "f", "i")), ("scale<int>", ("p", "i", "i"))])
def test_an_instance_of_a_template_tells_the_kinds(code, name, kinds):
    assert code.get_kernel(name)._kinds == kinds


def test_ptx_tells_the_kinds(ptx):
    try:
        kernel = ptx.get_kernel("plain")
    except CUDAError as error:
        pytest.skip(f"the driver is older than the compiler: {error}")
    assert kernel._kinds == ("i", "i", "f", "i", "c", "i")


def test_a_cubin_does_not_tell_the_kinds_of_a_plain_name(code):
    assert code.get_kernel("plain")._kinds == (None,) * 6


def test_the_kinds_of_a_kernel_from_a_handle_come_from_the_driver(code):
    kernel = Kernel.from_handle(code.get_kernel("scale<float>").handle)
    assert kernel._kinds == ("p", "f", "i")


def test_without_a_current_device_the_arguments_are_unknown(kernel):
    def read():
        try:
            found.append(kernel.num_arguments)
        except CUDAError as error:
            found.append(error.name)

    found: list[object] = []
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert found[0] in (6, "CUDA_ERROR_INVALID_CONTEXT")  # driver 580 wants a context for this
    assert kernel.num_arguments == 6


def test_a_kernel_without_arguments_has_no_kinds(code):
    assert code.get_kernel("nothing")._kinds == ()


# Attributes


ATTRIBUTES = {
    "max_threads_per_block": int,
    "shared_size_bytes": int,
    "const_size_bytes": int,
    "local_size_bytes": int,
    "num_regs": int,
    "ptx_version": int,
    "binary_version": int,
    "cache_mode_ca": bool,
    "max_dynamic_shared_size_bytes": int,
    "preferred_shared_memory_carveout": int,
    "cluster_size_must_be_set": bool,
    "required_cluster_width": int,
    "required_cluster_height": int,
    "required_cluster_depth": int,
    "non_portable_cluster_size_allowed": bool,
    "cluster_scheduling_policy_preference": int,
}


@pytest.mark.parametrize(("name", "kind"), ATTRIBUTES.items())
def test_an_attribute_is_read(kernel, name, kind):
    assert type(getattr(kernel.attributes, name)) is kind


SETTINGS = {"max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout"}  # test_shared_memory.py


@pytest.mark.parametrize("name", sorted(ATTRIBUTES.keys() - SETTINGS))
def test_an_attribute_is_read_only(kernel, name):
    with pytest.raises(AttributeError):
        setattr(kernel.attributes, name, 1)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_is_documented(name):
    assert getattr(KernelAttributes, name).__doc__


def test_attributes_describe_the_kernel(code, device):
    assert code.get_kernel("shared").attributes.shared_size_bytes == 1024
    assert code.get_kernel("bounded").attributes.max_threads_per_block == 128
    assert code.get_kernel("plain").attributes.binary_version == int(device.arch)


def test_attributes_of_a_device_are_those_of_the_current_one(kernel, device):
    assert kernel.attributes[device].num_regs == kernel.attributes[0].num_regs == kernel.attributes.num_regs


def test_attributes_are_bound_to_a_device_from_a_bound_view_too(kernel, device):
    assert kernel.attributes[0][device].num_regs == kernel.attributes.num_regs


def test_attributes_of_a_device_need_no_current_one(kernel):
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(kernel.attributes[0].max_threads_per_block))
    thread.start()
    thread.join()
    assert found == [kernel.attributes.max_threads_per_block]


def test_attributes_without_a_current_device_say_so(kernel):
    def read():
        with pytest.raises(CUDAError, match="no CUDA context is current") as caught:
            _ = kernel.attributes.num_regs
        errors.append(caught.value)

    errors: list[Exception] = []
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert len(errors) == 1


def test_views_share_what_they_have_read(kernel):
    assert kernel.attributes[0].num_regs == kernel._attribute_cache[next(iter(kernel._attribute_cache))]
    assert len(kernel._attribute_cache) == 1
    _ = kernel.attributes.num_regs
    assert len(kernel._attribute_cache) == 1


def test_a_view_keeps_its_kernel(code):
    attributes = code.get_kernel("plain").attributes
    gc.collect()
    assert attributes.max_threads_per_block > 0


@pytest.mark.parametrize("device", ["0", None, 1.0, True])
def test_an_index_that_is_no_device_is_refused(kernel, device):
    with pytest.raises(TypeError, match="device must be"):
        kernel.attributes[device]


def test_a_negative_device_is_refused(kernel):
    with pytest.raises(ValueError, match="device"):
        kernel.attributes[-1]


def test_a_device_that_does_not_exist_is_an_error_of_the_driver(kernel):
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_DEVICE"):
        _ = kernel.attributes[1000].num_regs


# Occupancy


def test_some_blocks_fit_on_a_multiprocessor(kernel, device):
    blocks = kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0)
    assert 1 <= blocks <= 64


def test_shared_memory_lowers_the_occupancy(kernel):
    occupancy = kernel.occupancy
    few = occupancy.max_active_blocks_per_multiprocessor(32, 40 * 1024)
    assert few < occupancy.max_active_blocks_per_multiprocessor(32, 0)


def test_a_block_size_fills_the_device(kernel):
    result = kernel.occupancy.max_potential_block_size(0, 0)
    assert result.min_grid_size >= 1
    assert 1 <= result.max_block_size <= kernel.attributes.max_threads_per_block
    assert tuple(result) == (result.min_grid_size, result.max_block_size)


def test_a_block_size_stays_within_its_limit(kernel):
    assert kernel.occupancy.max_potential_block_size(0, 96).max_block_size <= 96


class OccupancyFunction:
    """The class of cuda-bindings for ``CUoccupancyB2DSize``.

    ``int`` and ``index`` read the pointer at ``getPtr()``, which is the machine code where that is the function.
    """

    def __init__(self, init_value=0, *, _ptr=0):
        self._value = init_value
        self._address = _ptr or id(self)

    def getPtr(self):
        return self._address

    def __int__(self):
        return self._value if self._address == id(self) else 0xF5158D4CFA1E0FF3

    __index__ = __int__


@pytest.fixture
def bindings(monkeypatch):
    """Return cuda-bindings' class, or one like it where that package is not installed."""
    try:
        from cuda.bindings import driver as module
    except ImportError:
        module = types.ModuleType("cuda.bindings.driver")
        module.CUoccupancyB2DSize = OccupancyFunction
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", module)
    return module.CUoccupancyB2DSize


def asked_by(kernel, make):
    """Return the block sizes that the driver asks a function about, and the result."""
    asked = []

    def needed(block_size):
        asked.append(block_size)
        return block_size * 64

    result = kernel.occupancy.max_potential_block_size(make(needed), 0)
    return asked, result


def as_ctypes(needed):
    return ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(needed)


@pytest.mark.parametrize("make", [as_ctypes, ffi.callback("size_t(int)")], ids=["ctypes", "CFFI"])
def test_shared_memory_may_depend_on_the_block_size(kernel, make):
    asked, result = asked_by(kernel, make)
    assert asked
    assert result.max_block_size * 64 <= 48 * 1024


def test_cuda_bindings_functions_are_called_and_not_taken_for_numbers(kernel, bindings):
    wanted = asked_by(kernel, as_ctypes)
    for by_address in (True, False)[: 1 + (sys.implementation.name == "cpython")]:  # PyPy knows no addresses of objects
        kept = []

        def make(needed, kept=kept, by_address=by_address):
            kept.append(as_ctypes(needed))
            address = ctypes.cast(kept[0], ctypes.c_void_p).value
            return bindings(_ptr=address) if by_address else bindings(address)

        assert asked_by(kernel, make) == wanted
    if sys.implementation.name == "cpython":
        with pytest.raises(ValueError, match="NULL"):
            kernel.occupancy.max_potential_block_size(bindings(), 0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(abs), "returns c_int"),
        (ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(abs), "arguments of the ctypes function are c_void_p"),
        (ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(abs), "expects the GIL"),
        (ffi.cast("size_t(*)(long)", 4096), r"must be a size_t\(\*\)\(int\), not a size_t\(\*\)\(long\)"),
        (ffi.cast("void *", 4096), "must be a size_t"),
        (ffi.cast("size_t", 4096), "must be a size_t"),
        (abs, "must be an int"),
        (Device, "must be an int"),
    ],
)
def test_what_is_neither_a_size_nor_such_a_function_is_refused(kernel, value, message):
    with pytest.raises(TypeError, match=message):
        kernel.occupancy.max_potential_block_size(value, 0)


def test_a_null_function_is_refused(kernel):
    function = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)
    for null in (ffi.cast("size_t(*)(int)", 0), ctypes.cast(None, function)):
        with pytest.raises(ValueError, match="NULL"):
            kernel.occupancy.max_potential_block_size(null, 0)


def test_dynamic_shared_memory_is_left_for_a_block(kernel):
    occupancy = kernel.occupancy
    assert occupancy.available_dynamic_shared_memory_per_block(1, 128) >= (
        occupancy.available_dynamic_shared_memory_per_block(2, 128)
    )


@pytest.mark.parametrize("value", [None, "128", 1.5, True])
def test_a_count_of_another_type_is_refused(kernel, value):
    for call in (
        lambda: kernel.occupancy.max_active_blocks_per_multiprocessor(value, 0),
        lambda: kernel.occupancy.max_potential_block_size(value, 0),
        lambda: kernel.occupancy.available_dynamic_shared_memory_per_block(1, value),
    ):
        with pytest.raises(TypeError, match="must be an int"):
            call()


def test_a_negative_count_is_refused(kernel):
    with pytest.raises(ValueError, match="block_size must be 1 or more, not -1"):
        kernel.occupancy.max_active_blocks_per_multiprocessor(-1, 0)


def test_a_count_that_is_too_large_is_refused(kernel):
    with pytest.raises(OverflowError, match="block_size"):
        kernel.occupancy.max_active_blocks_per_multiprocessor(2**31, 0)


def test_clusters_have_a_largest_size(kernel, device, stream):
    if int(device.arch) < 90:
        pytest.skip("this device has no clusters")
    assert kernel.occupancy.max_potential_cluster_size(LaunchConfig(grid=16, block=32), stream=stream) >= 1


def test_some_clusters_fit_on_the_device(kernel, device, stream):
    if int(device.arch) < 90:
        pytest.skip("this device has no clusters")
    config = LaunchConfig(grid=16, block=32, cluster=2)
    assert kernel.occupancy.max_active_clusters(config, stream=stream) >= 1


def test_a_configuration_is_a_launch_config(kernel, stream):
    with pytest.raises(TypeError, match="config must be a LaunchConfig, not dict"):
        kernel.occupancy.max_active_clusters({"grid": 1}, stream=stream)


def test_clusters_need_a_stream(kernel):
    with pytest.raises(TypeError, match="needs a Stream"):
        kernel.occupancy.max_active_clusters(LaunchConfig(grid=1, block=1), stream=None)
