# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What programs written for cuda.core rely on."""

from __future__ import annotations

import warnings

import numpy
import pytest
from buffers import SIZE, ManagedResource
from helpers import collect

from cuda_core_cffi import (
    Buffer,
    DeviceMemoryResource,
    Host,
    LaunchConfig,
    LinkerOptions,
    MemoryResource,
    Program,
    ProgramOptions,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
)
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.utils import StridedMemoryView, TrackingMemoryResource, make_program_cache_key

NOTHING = (None, False, [], ())


class KeywordOnly(MemoryResource):
    """A resource whose stream is a keyword and nothing else."""

    is_device_accessible = True
    is_host_accessible = False
    device_id = 0

    def __init__(self, device) -> None:
        self.pool = DeviceMemoryResource(device, {})
        self.buffers = {}
        self.streams = []

    def allocate(self, size, *, stream=None):
        buffer = self.pool.allocate(size, stream=stream)
        self.buffers[buffer.handle] = buffer
        return Buffer.from_handle(buffer.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream=None):
        self.streams.append(stream)
        self.buffers.pop(ptr).close()


@pytest.fixture
def resource(device):
    resource = KeywordOnly(device)
    yield resource
    assert resource.buffers == {}
    resource.pool.close()


def key(**options):
    """Return the key of a program with these options."""
    return make_program_cache_key(
        code="int x;", code_type="c++", options=ProgramOptions(arch="sm_90", **options), target_type="ptx"
    )


# Memory


def test_a_resource_gets_its_stream_by_keyword(device, stream, resource):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with resource.allocate(SIZE, stream=stream) as buffer:
            buffer.copy_to(stream=stream).close()
            buffer.__dlpack__(copy=True, stream=-1)
    collect()
    assert stream in resource.streams


def test_a_device_asks_its_resource_by_keyword(device, stream, resource):
    before = device.memory_resource
    device.memory_resource = resource
    try:
        device.allocate(SIZE, stream=stream).close()
        device.allocate(SIZE, stream).close()
    finally:
        device.memory_resource = before
    assert resource.streams == [stream, stream]


def test_an_adaptor_asks_by_keyword(stream, resource):
    TrackingMemoryResource(resource).allocate(SIZE, stream=stream).close()
    assert resource.streams == [stream]


def test_a_consumer_s_stream_may_be_any_integer(stream, resource):
    with resource.allocate(SIZE, stream=stream) as buffer:
        buffer.__dlpack__(stream=numpy.int64(stream.handle))
        with pytest.raises(ValueError, match="not an address"):
            buffer.__dlpack__(stream=1 << 64)
    collect()


def test_a_closed_pool_is_nobody_s(device):
    pool = DeviceMemoryResource(device, {})
    assert pool.is_handle_owned
    pool.close()
    assert not pool.is_handle_owned


def test_virtual_memory_tells_its_device(device):
    assert VirtualMemoryResource(device).device is device


def test_attributes_of_a_pool_outlast_it(device, stream):
    pool = DeviceMemoryResource(device, {})
    buffer = pool.allocate(SIZE, stream)
    attributes = pool.attributes
    pool.close()
    assert attributes.used_mem_current > 0
    buffer.close()
    stream.sync()
    assert attributes.used_mem_current == 0
    with pytest.raises(RuntimeError, match="DeviceMemoryResource is closed"):
        _ = pool.attributes


def test_managed_memory_tells_where_it_was_prefetched_to(device, stream):
    if not device.properties.concurrent_managed_access:
        pytest.skip("this device does not prefetch managed memory")
    with ManagedResource().allocate(SIZE, stream) as buffer:
        assert buffer.last_prefetch_location is None
        buffer.prefetch(device, stream=stream)
        assert buffer.last_prefetch_location == device
        buffer.prefetch(Host(), stream=stream)
        assert buffer.last_prefetch_location == Host()
        stream.sync()


def test_attributes_show_their_names_and_values(device):
    shown = repr(DeviceMemoryResource(device, {}).attributes)
    assert shown.startswith("MemPoolAttributes(reuse_follow_event_dependencies=True, ")
    assert shown.endswith(")")


def test_a_virtual_resource_tells_its_options(device):
    options = VirtualMemoryResourceOptions(granularity="minimum")
    resource = VirtualMemoryResource(device, options)
    assert (resource.config.granularity, resource.config.location_type) == ("minimum", "device")
    assert isinstance(VirtualMemoryResource(device).config, VirtualMemoryResourceOptions)
    resource.config.granularity = "recommended"
    assert resource.config.granularity == "minimum"


# Options


@pytest.mark.parametrize("value", NOTHING)
@pytest.mark.parametrize(
    "name", ["include_path", "pre_include", "define_macro", "undefine_macro", "ptxas_options", "diag_error", "time"]
)
def test_nothing_is_asked_for_in_several_ways(name, value):
    assert ProgramOptions(**{name: value}).as_bytes("nvrtc") == ProgramOptions().as_bytes("nvrtc")
    assert key(**{name: value}) == key()


@pytest.mark.parametrize("value", NOTHING)
@pytest.mark.parametrize("name", ["kernels_used", "variables_used", "ptxas_options"])
def test_nothing_is_asked_of_a_linker_in_several_ways(name, value):
    options = LinkerOptions(arch="sm_90", **{name: value})
    assert options.as_bytes() == LinkerOptions(arch="sm_90").as_bytes()


def test_a_bool_is_an_int_where_an_option_is_one():
    assert ProgramOptions(split_compile=True).as_bytes("nvrtc") == ProgramOptions(split_compile=1).as_bytes("nvrtc")
    assert LinkerOptions(arch="sm_90", split_compile=True).as_bytes() == [b"-arch=sm_90", b"-split-compile=1"]


def test_a_bool_is_a_value_of_a_condition(graph):
    body = graph.if_then(graph.create_condition(default_value=True)).then
    assert body.nodes() == set()


def test_times_are_asked_for_with_true():
    assert b"--time=-" in ProgramOptions(time=True).as_bytes("nvrtc")


def test_one_and_a_list_of_one_have_the_same_key():
    assert key(undefine_macro="A") == key(undefine_macro=["A"]) == key(undefine_macro=("A",))


@pytest.mark.parametrize("value", [True, False])
def test_1_is_true_and_0_is_false(value):
    for kind in (int, numpy.int32):
        assert key(debug=kind(value), fma=kind(value)) == key(debug=value, fma=value)


def test_an_option_takes_an_integer_of_numpy():
    assert key(max_register_count=numpy.int64(32), diag_warn=numpy.int8(1)) == key(max_register_count=32, diag_warn=1)


@pytest.mark.parametrize("nothing", NOTHING)
def test_no_name_expressions_are_none(nvrtc, nothing):
    with Program("__device__ int x;", "c++", ProgramOptions(arch="sm_90")) as program:
        assert program.compile("ptx", name_expressions=nothing).code_type == "ptx"


def test_false_is_no_options(device, stream):
    definition = GraphDefinition()
    definition.join()
    definition.instantiate(False).close()
    builder = stream.create_graph_builder().begin_building()
    builder.end_building().complete(options=False).close()
    builder.close()
    definition.close()


def test_a_cluster_policy_has_the_name_of_cuda_core_too():
    config = LaunchConfig(grid=1, block=1, cluster_scheduling_policy_preference="spread")
    assert config == LaunchConfig(grid=1, block=1, cluster_scheduling_policy="spread")
    assert config.cluster_scheduling_policy_preference == config.cluster_scheduling_policy == "spread"
    config.cluster_scheduling_policy_preference = "load_balancing"
    assert config.cluster_scheduling_policy == "load_balancing"
    with pytest.raises(TypeError, match="are the same"):
        LaunchConfig(grid=1, block=1, cluster_scheduling_policy="spread", cluster_scheduling_policy_preference="spread")


# Graphs


@pytest.fixture
def graph():
    with GraphDefinition() as graph:
        yield graph


def test_an_executable_is_not_updated_from_a_builder_that_is_not_finished(device, graph):
    with graph.instantiate() as executable, device.create_graph_builder() as builder:
        with pytest.raises(ValueError, match="not finished"):
            executable.update(builder)
        builder.begin_building()
        with pytest.raises(ValueError, match="not finished"):
            executable.update(builder)
        builder.end_building()
        executable.update(builder)


def test_a_host_function_is_shown_by_its_name(graph):
    def told() -> None:
        """Be called."""

    assert repr(graph.callback(told)).endswith(" callback=told>")


# Views


def test_an_unsupported_device_is_refused_before_the_tensor_is_asked_for():
    class Elsewhere:
        def __dlpack_device__(self):
            return (7, 0)

        def __dlpack__(self, **kwargs):
            raise AssertionError("asked for")

    with pytest.raises(BufferError, match="device"):
        StridedMemoryView.from_dlpack(Elsewhere(), -1)
