# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Methods in a thread that has no current context: each acts in the context of its object.

The tables below name every public method and property of the classes; a test fails for one that is missing. Those that
act in the current context by their documentation are in `CURRENT`, and raise an error there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from buffers import ManagedResource
from graphs import ONE, SIZE, content
from green import green_context
from helpers import in_thread, linked_by_the_driver
from scenarios import PTX

from cuda_core_cffi import LEGACY_DEFAULT_STREAM as NONE  # which belongs to no context
from cuda_core_cffi import (
    Buffer,
    Context,
    CUDAError,
    Device,
    DeviceMemoryResource,
    Event,
    Kernel,
    LaunchBatch,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    ManagedBuffer,
    ManagedMemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    PreparedLaunch,
    Stream,
    VirtualMemoryResource,
    ffi,
    launch,
    lib,
)
from cuda_core_cffi.graph import Graph, GraphBuilder, GraphDefinition
from cuda_core_cffi.texture import MipmappedArray, OpaqueArray, ResourceDescriptor, SurfaceObject, TextureObject
from cuda_core_cffi.utils import (
    CopyOptions,
    WaitValue,
    WriteValue,
    batch_mem_op,
    copy_batch,
    discard_batch,
    discard_prefetch_batch,
    prefetch_batch,
)

CLUSTER = LaunchConfig(grid=1, cluster=1, block=1)
NOTHING = "no (CUDA )?context is current|CUDA_ERROR_INVALID_CONTEXT"


class World:
    """What the methods are tried on; made where a context is current."""

    def __init__(self, device: Device, stack: contextlib.ExitStack) -> None:
        def enter(item: Any) -> Any:
            return stack.enter_context(contextlib.closing(item))

        self.device = device
        self.green = enter(green_context(device))
        self.stream = enter(device.create_stream())
        self.other = enter(device.create_stream())
        self.pool = enter(DeviceMemoryResource(device, {"ipc_enabled": True}))
        self.host_pool = enter(PinnedMemoryResource({"ipc_enabled": True}))
        self.managed_pool = ManagedMemoryResource()
        self.legacy = LegacyPinnedMemoryResource()
        self.virtual = VirtualMemoryResource(device)
        self.code = enter(ObjectCode.from_ptx(PTX))
        self.kernel = enter(self.code.get_kernel("store"))
        self.buffer, self.target = (enter(self.pool.allocate(SIZE, self.stream)) for _ in range(2))
        self.pinned = enter(self.host_pool.allocate(SIZE, self.stream))
        self.words = enter(self.legacy.allocate(SIZE))
        self.managed = enter(ManagedResource().allocate(SIZE, self.stream))
        self.of_a_pool = enter(self.managed_pool.allocate(SIZE, self.stream))
        self.event = enter(device.create_event({"ipc_enabled": True}))
        self.times = [enter(self.stream.record(options={"timing_enabled": True})) for _ in range(2)]
        self.graph = enter(GraphDefinition())
        self.node = self.graph.memset(self.buffer, 1, SIZE)
        self.graph.launch(ONE, self.kernel, self.target, 2)
        self.executable = enter(self.graph.instantiate())
        self.builder = enter(device.create_graph_builder())
        image = {"shape": (8, 8), "format": "uint8", "num_channels": 1, "is_surface_load_store": True}
        self.array = enter(device.create_opaque_array(image))
        self.image = enter(self.pool.allocate(SIZE, self.stream))
        self.mipmap = enter(device.create_mipmapped_array({**image, "num_levels": 2}))
        self.texture = enter(device.create_texture_object(ResourceDescriptor.from_opaque_array(self.array)))
        self.surface = enter(device.create_surface_object(ResourceDescriptor.from_opaque_array(self.array)))
        with linked_by_the_driver():
            self.linker = enter(Linker(self.code, options={"arch": f"sm_{device.arch}"}))
        self.stream.sync()
        self.buffer.fill(5, stream=self.stream)
        self.stream.sync()

    def building(self) -> GraphBuilder:
        """Return the builder, while it builds in this thread."""
        return self.builder.begin_building()

    def finish(self) -> None:
        """End building, and run what was built."""
        with self.builder.end_building().complete() as graph:
            graph.launch(self.stream)
            self.stream.sync()


@pytest.fixture
def world(device: Device) -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        yield World(device, stack)


def built(use: Callable[[World, GraphBuilder], object]) -> Callable[[World], None]:
    """Return a use of a builder while it builds; what it built is run in the same thread."""

    def run(w: World) -> None:
        use(w, w.building())
        w.finish()

    return run


def conditional(use: Callable[[GraphBuilder, Any], object]) -> Callable[[World], None]:
    """Return a use of a builder with a condition that is 0; the bodies stay empty."""

    def run(w: World) -> None:
        builder = w.building()
        bodies = use(builder, builder.create_condition(0))
        for body in bodies if isinstance(bodies, tuple) else (bodies,):
            body.begin_building().end_building()
            body.close()
        w.finish()

    return run


def attributes_of(pool: Any) -> list[object]:
    return [getattr(pool.attributes, name) for name in dir(pool.attributes) if not name.startswith("_")]


HANDLE: dict[str, Callable[[Any], object]] = {
    "c_handle": lambda item: item.c_handle,
    "cdata": lambda item: item.cdata,
    "handle": lambda item: item.handle,
    "is_closed": lambda item: item.is_closed,
}
# Made elsewhere: static methods, which have no object
STATIC = {
    "from_handle",
    "from_ipc_descriptor",
    "from_allocation_handle",
    "from_registry",
    "from_cubin",
    "from_fatbin",
    "from_library",
    "from_ltoir",
    "from_object",
    "from_ptx",
    "which_backend",
}

# By class, and by the name of a method: uses in a thread without a context.
USES: dict[type, dict[str, Callable[[World], object]]] = {
    Stream: {
        "callback": lambda w: (w.stream.callback(lambda: None), w.stream.sync()),
        "close": lambda w: w.other.close(),
        "context": lambda w: w.stream.context.handle,
        "create_graph_builder": lambda w: w.other.create_graph_builder().begin_building().end_building().close(),
        "device": lambda w: w.stream.device.device_id,
        "is_nonblocking": lambda w: w.stream.is_nonblocking,
        "priority": lambda w: w.stream.priority,
        "record": lambda w: (w.stream.record(), w.stream.record(w.event)),
        "resources": lambda w: w.stream.resources.sm,
        "sync": lambda w: w.stream.sync(),
        "wait": lambda w: (w.stream.wait(w.other), w.stream.wait(w.event)),
    },
    Event: {
        "close": lambda w: w.event.close(),
        "context": lambda w: w.event.context.handle,
        "device": lambda w: w.event.device.device_id,
        "get_ipc_descriptor": lambda w: w.event.get_ipc_descriptor(),
        "ipc_descriptor": lambda w: w.event.ipc_descriptor,
        "is_blocking_sync": lambda w: w.event.is_blocking_sync,
        "is_done": lambda w: w.event.is_done,
        "is_ipc_enabled": lambda w: w.event.is_ipc_enabled,
        "is_timing_enabled": lambda w: w.event.is_timing_enabled,
        "sync": lambda w: w.event.sync(),
        "__sub__": lambda w: w.times[1] - w.times[0],
    },
    OpaqueArray: {
        "close": lambda w: w.array.close(),
        "copy_from": lambda w: (w.array.copy_from(w.image, stream=w.stream), w.array.copy_from(w.image, stream=NONE)),
        "copy_to": lambda w: (w.array.copy_to(w.image, stream=w.stream), w.array.copy_to(bytearray(SIZE), stream=NONE)),
        "device": lambda w: w.array.device.device_id,
        "element_bytes": lambda w: w.array.element_bytes,
        "format": lambda w: w.array.format,
        "is_surface_load_store": lambda w: w.array.is_surface_load_store,
        "num_channels": lambda w: w.array.num_channels,
        "shape": lambda w: w.array.shape,
        "size_bytes": lambda w: w.array.size_bytes,
    },
    MipmappedArray: {
        "close": lambda w: w.mipmap.close(),
        "device": lambda w: w.mipmap.device.device_id,
        "format": lambda w: w.mipmap.format,
        "get_level": lambda w: w.mipmap.get_level(1).close(),
        "is_surface_load_store": lambda w: w.mipmap.is_surface_load_store,
        "num_channels": lambda w: w.mipmap.num_channels,
        "num_levels": lambda w: w.mipmap.num_levels,
        "shape": lambda w: w.mipmap.shape,
    },
    TextureObject: {
        "close": lambda w: w.texture.close(),
        "device": lambda w: w.texture.device.device_id,
        "options": lambda w: w.texture.options,
        "resource": lambda w: w.texture.resource,
    },
    SurfaceObject: {
        "close": lambda w: w.surface.close(),
        "device": lambda w: w.surface.device.device_id,
        "resource": lambda w: w.surface.resource,
    },
    Context: {
        "close": lambda w: w.stream.context.close(),
        "create_stream": lambda w: w.green.create_stream().close(),
        "is_green": lambda w: (w.stream.context.is_green, w.green.is_green),
        "resources": lambda w: (w.stream.context.resources.sm, w.green.resources.sm),
    },
    Buffer: {
        "wait_value": lambda w: (
            w.words.wait_value(0, "nor", stream=w.stream),
            w.words.wait_value(0, "nor", stream=w.stream, bits=64),
        ),
        "write_value": lambda w: (
            w.words.write_value(1, stream=w.stream),
            w.words.write_value(1, stream=w.stream, bits=64),
        ),
        "close": lambda w: w.buffer.close(),
        "copy_from": lambda w: (
            w.target.copy_from(w.buffer, stream=w.stream),
            w.target.copy_from(bytes(SIZE), stream=w.stream),
            w.target.copy_from(w.pinned, stream=w.stream),
            w.target.copy_from(w.buffer, stream=w.stream, options=CopyOptions()),
        ),
        "copy_to": lambda w: (
            w.buffer.copy_to(w.target, stream=w.stream),
            w.buffer.copy_to(bytearray(SIZE), stream=w.stream),
            w.buffer.copy_to(w.target, stream=w.stream, options=CopyOptions()),
            w.buffer.copy_to(stream=w.stream).close(),
        ),
        "device_id": lambda w: (w.buffer.device_id, w.pinned.device_id),
        "fill": lambda w: [w.buffer.fill(1, width, stream=w.stream) for width in (1, 2, 4)],
        "get_ipc_descriptor": lambda w: (w.buffer.get_ipc_descriptor(), w.pinned.get_ipc_descriptor()),
        "ipc_descriptor": lambda w: (w.buffer.ipc_descriptor, w.pinned.ipc_descriptor),
        "is_device_accessible": lambda w: w.buffer.is_device_accessible,
        "is_host_accessible": lambda w: w.buffer.is_host_accessible,
        "is_managed": lambda w: w.buffer.is_managed,
        "is_mapped": lambda w: w.buffer.is_mapped,
        "memory_resource": lambda w: w.buffer.memory_resource,
        "owner": lambda w: w.buffer.owner,
        "set_deallocation_stream": lambda w: w.buffer.set_deallocation_stream(w.other),
        "size": lambda w: w.buffer.size,
        "__getitem__": lambda w: w.buffer[:4].close(),
        "__dlpack__": lambda w: (w.buffer.__dlpack__(stream=w.stream.handle), w.buffer.__dlpack__(stream=-1)),
        "__dlpack_device__": lambda w: w.buffer.__dlpack_device__(),
    },
    ManagedBuffer: {
        "accessed_by": lambda w: set(w.of_a_pool.accessed_by),  # drivers take no advice for memory of a pool
        "discard": lambda w: w.managed.discard(stream=w.stream),
        "discard_prefetch": lambda w: w.managed.discard_prefetch(w.device, stream=w.stream),
        "last_prefetch_location": lambda w: w.of_a_pool.last_prefetch_location,
        "preferred_location": lambda w: w.of_a_pool.preferred_location,
        "prefetch": lambda w: w.managed.prefetch(w.device, stream=w.stream),
        "read_mostly": lambda w: w.of_a_pool.read_mostly,
    },
    DeviceMemoryResource: {
        "trim": lambda w: w.pool.trim(),
        "allocate": lambda w: w.pool.allocate(SIZE, w.stream).close(),
        "allocation_handle": lambda w: int(w.pool.allocation_handle),
        "attributes": lambda w: attributes_of(w.pool),
        "close": lambda w: w.pool.close(),
        "deallocate": lambda w: w.pool.deallocate(0, 0, w.stream),
        "device_id": lambda w: w.pool.device_id,
        "is_device_accessible": lambda w: w.pool.is_device_accessible,
        "is_handle_owned": lambda w: w.pool.is_handle_owned,
        "is_host_accessible": lambda w: w.pool.is_host_accessible,
        "is_ipc_enabled": lambda w: w.pool.is_ipc_enabled,
        "is_managed": lambda w: w.pool.is_managed,
        "is_mapped": lambda w: w.pool.is_mapped,
        "peer_accessible_by": lambda w: (
            set(w.pool.peer_accessible_by),
            setattr(w.pool, "peer_accessible_by", []),
        ),
        "register": lambda w: w.pool.register(w.pool.uuid),
        "uuid": lambda w: w.pool.uuid,
    },
    PinnedMemoryResource: {
        "allocate": lambda w: w.host_pool.allocate(SIZE, w.stream).close(),
        "attributes": lambda w: attributes_of(w.host_pool),
        "close": lambda w: w.host_pool.close(),
        "numa_id": lambda w: w.host_pool.numa_id,
    },
    ManagedMemoryResource: {
        "allocate": lambda w: w.managed_pool.allocate(SIZE, w.stream).close(),
        "attributes": lambda w: attributes_of(w.managed_pool),
        "preferred_location": lambda w: w.managed_pool.preferred_location,
    },
    LegacyPinnedMemoryResource: {
        "is_device_accessible": lambda w: w.legacy.is_device_accessible,
        "is_host_accessible": lambda w: w.legacy.is_host_accessible,
        "is_managed": lambda w: w.legacy.is_managed,
        "deallocate": lambda w: w.legacy.deallocate(0, 0, w.stream),
    },
    VirtualMemoryResource: {
        "allocate": lambda w: w.virtual.allocate(SIZE, w.stream).close(),
        "deallocate": lambda w: w.virtual.allocate(SIZE, w.stream).close(),
        "config": lambda w: w.virtual.config,
        "device": lambda w: w.virtual.device,
        "modify_allocation": lambda w: modify(w),
    },
    Kernel: {
        "arguments_info": lambda w: w.kernel.arguments_info,
        "attributes": lambda w: w.kernel.attributes[w.device].num_regs,
        "close": lambda w: w.kernel.close(),
        "mangled_name": lambda w: w.kernel.mangled_name,
        "name": lambda w: w.kernel.name,
        "num_arguments": lambda w: w.kernel.num_arguments,
        "occupancy": lambda w: (
            w.kernel.occupancy.max_potential_cluster_size(CLUSTER, stream=w.stream),
            w.kernel.occupancy.max_active_clusters(CLUSTER, stream=w.stream),
        ),
        "launch": lambda w: launch(w.stream, ONE, w.kernel, w.buffer, 1),
        "launch with a cluster": lambda w: launch(w.stream, CLUSTER, w.kernel, w.buffer, 1),
        "first launch": lambda w: launch(w.stream, ONE, new_kernel(), w.buffer, 1),
    },
    ObjectCode: {
        "close": lambda w: w.code.close(),
        "code": lambda w: w.code.code,
        "code_type": lambda w: w.code.code_type,
        "get_kernel": lambda w: ObjectCode.from_ptx(PTX).get_kernel("store").close(),
        "globals": lambda w: list(w.code.globals),
        "kernels": lambda w: w.code.kernels["store"].close(),
        "name": lambda w: w.code.name,
        "symbol_mapping": lambda w: w.code.symbol_mapping,
    },
    Linker: {
        "close": lambda w: w.linker.close(),
        "get_error_log": lambda w: w.linker.get_error_log(),
        "get_info_log": lambda w: w.linker.get_info_log(),
        "link": lambda w: w.linker.link("cubin"),
    },
    PreparedLaunch: {
        "argument_types": lambda w: PreparedLaunch(ONE, w.kernel).argument_types,
        "kernel": lambda w: PreparedLaunch(ONE, w.kernel, Buffer, int).kernel,
        "launch": lambda w: PreparedLaunch(ONE, new_kernel(), Buffer, int).launch(w.stream, w.buffer, 1),
    },
    LaunchBatch: {
        "launch": lambda w: LaunchBatch([(PreparedLaunch(ONE, w.kernel, Buffer, int), w.buffer, 1)]).launch(w.stream),
    },
    Graph: {
        "close": lambda w: w.executable.close(),
        "launch": lambda w: w.executable.launch(w.stream),
        "update": lambda w: w.executable.update(w.graph),
        "upload": lambda w: w.executable.upload(w.stream),
    },
    GraphDefinition: {
        "callback": lambda w: run(w, w.graph.callback(lambda: None)),
        "clone": lambda w: w.graph.clone().close(),
        "close": lambda w: w.graph.close(),
        "debug_dot_print": lambda w: w.graph.debug_dot_print("/dev/null"),
        "deallocate": lambda w: None,  # below, with allocate
        "allocate": lambda w: w.graph.deallocate(w.graph.allocate(SIZE).dptr),
        "edges": lambda w: w.graph.edges(),
        "embed": lambda w: run(w, w.graph.embed(w.graph.clone())),
        "empty": lambda w: run(w, w.graph.empty()),
        "instantiate": lambda w: w.graph.instantiate().close(),
        "instantiate and upload": lambda w: w.graph.instantiate({"upload_stream": w.stream}).close(),
        "is_valid": lambda w: w.graph.is_valid,
        "memcpy of an array": lambda w: run(w, w.graph.memcpy(w.array, w.image)),
        "join": lambda w: w.graph.join(w.node),
        "nodes": lambda w: [node.type for node in w.graph.nodes()],
        "record": lambda w: run(w, w.graph.record(w.times[0])),
        "to_dot": lambda w: w.graph.to_dot(),
        "wait": lambda w: run(w, w.graph.wait(w.times[0])),
        "read a node": lambda w: (w.node.dptr, w.node.pred, w.node.succ, w.node.graph, w.node.is_valid),
        "update a node": lambda w: (
            w.node.update(value=3),
            w.executable[w.node].update(dst=w.buffer, value=4, width=SIZE),
        ),
        "destroy a node": lambda w: w.node.destroy(),
    },
    GraphBuilder: {
        "begin_building": built(lambda w, b: w.buffer.fill(1, stream=b.stream)),
        "callback": built(lambda w, b: b.callback(lambda: None)),
        "close": lambda w: w.builder.close(),
        "complete": built(lambda w, b: launch(b, ONE, w.kernel, w.buffer, 1)),
        "create_condition": conditional(lambda b, condition: b.if_then(condition)),
        "debug_dot_print": lambda w: w.building().end_building().debug_dot_print("/dev/null"),
        "embed": built(lambda w, b: b.embed(w.graph)),
        "end_building": built(lambda w, b: None),
        "graph_definition": lambda w: w.building().end_building().graph_definition.nodes(),
        "if_else": conditional(lambda b, condition: b.if_else(condition)),
        "if_then": conditional(lambda b, condition: b.if_then(condition)),
        "is_building": built(lambda w, b: b.is_building),
        "is_join_required": built(lambda w, b: b.is_join_required),
        "join": built(lambda w, b: GraphBuilder.join(*b.split(2))),
        "split": built(lambda w, b: GraphBuilder.join(*b.split(2))),
        "stream": lambda w: w.builder.stream,
        "switch": conditional(lambda b, condition: b.switch(condition, 2)),
        "while_loop": conditional(lambda b, condition: b.while_loop(condition)),
    },
    object: {
        "batch_mem_op": lambda w: batch_mem_op(w.stream, [WriteValue(w.words, 1), WaitValue(w.words, 1)]),
        "copy_batch": lambda w: copy_batch(w.stream, [w.buffer], [w.target]),
        "prefetch_batch": lambda w: prefetch_batch(w.stream, [w.managed], [w.device]),
        "discard_batch": lambda w: discard_batch(w.stream, [w.managed]),
        "discard_prefetch_batch": lambda w: discard_prefetch_batch(w.stream, [w.managed], [w.device]),
    },
}

# What acts in the current context, as it is documented to.
CURRENT: dict[type, dict[str, Callable[[World], object]]] = {
    LegacyPinnedMemoryResource: {
        "allocate": lambda w: w.legacy.allocate(SIZE, w.stream),
    },
    ManagedBuffer: {
        "read_mostly of memory of another owner": lambda w: w.managed.read_mostly,
    },
    Kernel: {
        "attributes": lambda w: w.kernel.attributes.num_regs,
        "occupancy": lambda w: w.kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0),
    },
    ObjectCode: {
        "get_global": lambda w: w.code.get_global("counter"),
        "get_module": lambda w: w.code.get_module(),
    },
    GraphDefinition: {
        "batch_mem_op": lambda w: w.graph.batch_mem_op([WriteValue(w.words, 1)]),
        "create_condition": lambda w: w.graph.create_condition(0),
        "launch": lambda w: w.graph.launch(ONE, w.kernel, w.buffer, 1),
        "memcpy": lambda w: w.graph.memcpy(w.target, w.buffer, SIZE),
        "memset": lambda w: w.graph.memset(w.buffer, 1, SIZE),
    },
}
NEEDS_A_CONDITION = {"if_then", "if_else", "switch", "while_loop"}  # which is made in a context


def new_kernel() -> Kernel:
    """Return a kernel of which nothing is known yet."""
    return ObjectCode.from_ptx(PTX).get_kernel("store")


def modify(w: World) -> None:
    """Let a buffer of virtual memory grow."""
    with w.virtual.allocate(SIZE, w.stream) as buffer:
        w.virtual.modify_allocation(buffer, 2 * buffer.size).close()


def run(w: World, node: object) -> None:
    """Run the graph with a node that was just added."""
    with w.graph.instantiate() as executable:
        executable.launch(w.stream)
        w.stream.sync()


def current() -> int:
    """Return the address of the current context, or 0."""
    context = ffi.new("CUcontext *")
    assert lib.cuCtxGetCurrent(context) == 0
    return int(ffi.cast("uintptr_t", context[0]))


def cases(table: dict[type, dict[str, Callable[[World], object]]]) -> list[Any]:
    return [
        pytest.param(use, id=f"{cls.__name__}.{name}" if cls is not object else name)
        for cls, uses in table.items()
        for name, use in uses.items()
    ]


@pytest.mark.parametrize("use", cases(USES))
def test_it_acts_in_the_context_of_its_object(world: World, use: Callable[[World], object]) -> None:
    def work() -> None:
        assert current() == 0
        use(world)
        assert current() == 0

    in_thread(work)
    world.device.sync()


@pytest.mark.parametrize("use", cases(CURRENT))
def test_it_says_that_it_needs_a_current_context(world: World, use: Callable[[World], object]) -> None:
    def work() -> None:
        with pytest.raises(CUDAError, match=NOTHING):
            use(world)
        assert current() == 0

    in_thread(work)


@pytest.mark.parametrize("cls", [cls for cls in USES if cls is not object], ids=lambda cls: cls.__name__)
def test_no_method_is_missing(cls: type) -> None:
    public = {name for name in dir(cls) if not name.startswith("_") and name[0].islower()}
    known = {name for base in cls.__mro__ for table in (USES, CURRENT) for name in table.get(base, {})}
    known |= {name for table in (USES, CURRENT) for other in (DeviceMemoryResource,) for name in table.get(other, {})}
    assert public - known - STATIC - set(HANDLE) - NEEDS_A_CONDITION <= set()


@pytest.mark.parametrize("name", HANDLE)
def test_what_all_handles_tell_needs_no_context(world: World, name: str) -> None:
    items = (world.stream, world.event, world.buffer, world.kernel, world.graph, world.executable, world.linker)

    def work() -> None:
        for item in items:
            HANDLE[name](item)

    in_thread(work)


def test_what_is_done_there_is_done(world: World) -> None:
    def work() -> None:
        world.target.copy_from(world.buffer, stream=world.stream, options=CopyOptions())
        world.executable.launch(world.stream)
        world.stream.sync()

    assert content(world.buffer, world.stream, 1) == b"\5"
    in_thread(work)
    assert content(world.buffer, world.stream, 1) == b"\1"
    assert content(world.target, world.stream, 4) == b"\2\0\0\0"
