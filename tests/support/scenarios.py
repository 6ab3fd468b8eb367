# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What test_every_failure.py does with the package, while it makes each driver call fail.

A scenario is a function of a `World`. It returns what it made and did not close: nothing, an object with ``close()``,
or a list of such objects. The test closes them, the last first, or lets them be collected, and that belongs to the
scenario. To add one, put it into `SCENARIOS`, or write a function with the decorator `scenario`. Done twice, it must
make the same driver calls again: what is kept after the first time has to be made anew, for example in a new thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from buffers import SIZE, ForeignStream, ManagedResource
from green import green_context
from helpers import in_thread, linked_by_the_driver

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    AccessPolicyWindow,
    Buffer,
    CUDAError,
    Device,
    DeviceMemoryResource,
    Event,
    EventOptions,
    Host,
    Kernel,
    LaunchBatch,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    ManagedBuffer,
    ManagedMemoryResource,
    MemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    PreparedLaunch,
    Stream,
    TensorMapDescriptor,
    VirtualMemoryResource,
    ffi,
    launch,
    lib,
)
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._device.device import driver_version
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi._streams.event import IPCEventDescriptor
from cuda_core_cffi.checkpoint import Process
from cuda_core_cffi.coredump import CoreDumpSettings
from cuda_core_cffi.texture import OpaqueArrayOptions, ResourceDescriptor
from cuda_core_cffi.utils import (
    StridedMemoryView,
    TrackingMemoryResource,
    WaitValue,
    WriteValue,
    batch_mem_op,
    copy_batch,
    discard_batch,
    discard_prefetch_batch,
    prefetch_batch,
)

PTX = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .entry store(.param .u64 out, .param .u32 value)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd2], %r1;
    ret;
}
"""


@dataclasses.dataclass
class World:
    """What scenarios work on: objects that exist before, and stay."""

    device: Any
    stream: Any
    other: Any
    pool: Any
    shared: Any  # a pool for other processes
    code: Any
    kernel: Any
    buffer: Any
    pinned: Any
    event: Any
    times: Any
    tracking: Any
    managed: Any  # two buffers
    virtual: Any
    foreign_event: Any  # the descriptor of an event in another process
    of_graphs: set[int] = dataclasses.field(default_factory=set)  # addresses that graphs have allocated


@contextlib.contextmanager
def make_world(device: Device, stream: Stream, foreign_event: IPCEventDescriptor) -> Iterator[World]:
    """Make the objects that scenarios work on."""
    with contextlib.ExitStack() as stack:
        pool = DeviceMemoryResource(device, {})
        stack.callback(pool.close)
        shared = DeviceMemoryResource(device, {"ipc_enabled": True})
        stack.callback(shared.close)
        code = stack.enter_context(ObjectCode.from_ptx(PTX))
        timed = EventOptions(timing_enabled=True)
        yield World(
            device=device,
            stream=stream,
            other=stack.enter_context(device.create_stream()),
            pool=pool,
            shared=shared,
            code=code,
            kernel=stack.enter_context(code.get_kernel("store")),
            buffer=stack.enter_context(pool.allocate(SIZE, stream)),
            pinned=stack.enter_context(LegacyPinnedMemoryResource().allocate(SIZE, stream)),
            event=stack.enter_context(device.create_event()),
            times=[stack.enter_context(stream.record(options=timed)) for _ in range(2)],
            tracking=TrackingMemoryResource(pool, limit=4 * SIZE, max_history=4, max_frames=4),
            managed=[stack.enter_context(ManagedResource().allocate(SIZE, stream)) for _ in range(2)],
            virtual=stack.enter_context(VirtualMemoryResource(device).allocate(SIZE, stream)),
            foreign_event=foreign_event,
        )


class Forwarding(MemoryResource):
    """A resource in Python that takes its memory from a driver pool, by address."""

    is_device_accessible = True
    is_host_accessible = False
    device_id = 0

    def __init__(self, pool: DeviceMemoryResource) -> None:
        self.pool = pool

    def allocate(self, size, stream=None):
        pointer = ffi.new("CUdeviceptr *")
        check(lib.cuMemAllocFromPoolAsync(pointer, size, self.pool.cdata, stream.cdata), "cuMemAllocFromPoolAsync")
        return Buffer.from_handle(pointer[0], size, mr=self, stream=stream)

    def deallocate(self, ptr, size, stream=None):
        self.pool.deallocate(ptr, size, stream)


def borrowed(w: World, buffer: Buffer | None = None) -> Buffer:
    """Return a buffer of memory that another object owns."""
    buffer = buffer or w.buffer
    return Buffer.from_handle(buffer.handle, SIZE, owner=buffer, stream=w.stream)


def view(buffer: Buffer) -> StridedMemoryView:
    """Return a view of a buffer that nothing has to be ordered for."""
    return StridedMemoryView.from_any_interface(buffer, -1)


def bytes_of(buffer: Buffer, shape: tuple[int, ...] = (32,)) -> StridedMemoryView:
    """Return a view of the first bytes of a buffer."""
    return StridedMemoryView.from_buffer(buffer, shape, itemsize=1)


def core_dumps(settings: CoreDumpSettings) -> None:
    """Read a setting, and set it to what it is."""
    settings.on_exception = settings.on_exception


def no_result(*results: Any) -> None:
    """Drop what an expression gave."""


PINNED = LegacyPinnedMemoryResource()
ONE = LaunchConfig(grid=1, block=1)
SHARED = EventOptions(ipc_enabled=True)
IMAGE = OpaqueArrayOptions((8, 8), "uint8", 1, is_surface_load_store=True)

SCENARIOS: dict[str, Callable[[World], Any]] = {
    # devices and contexts
    "device attribute": lambda w: in_thread(lambda: Device(0).properties.warp_size),
    "device name": lambda w: in_thread(lambda: Device(0).name),
    "device uuid": lambda w: in_thread(lambda: Device(0).uuid),
    "device PCI address": lambda w: no_result(w.device.pci_bus_id),
    "peer access": lambda w: no_result(w.device.can_access_peer(w.device)),
    "device context": lambda w: w.device.context,
    "device sync": lambda w: w.device.sync(),
    "first device of a thread": lambda w: in_thread(lambda: Device(0)),
    "current device": lambda w: no_result(Device()),
    "set_current": lambda w: w.device.set_current(),
    "multiprocessors": lambda w: no_result(w.device.resources.sm.split({"count": 8})),
    "multiprocessors of a context": lambda w: no_result(w.stream.resources.sm),
    "green context": lambda w: green_context(w.device),
    "stream of a green context": lambda w: green_context(w.device).create_stream(),
    "green context that is current": lambda w: in_thread(lambda: current_for_a_while(w.device)),
    "set_current of a context": lambda w: in_thread(lambda: w.device.set_current(w.stream.context)),
    "core dumps of the process": lambda w: core_dumps(CoreDumpSettings()),
    "core dumps of a context": lambda w: core_dumps(CoreDumpSettings(w.stream.context)),
    "driver version": lambda w: no_result(driver_version()),
    # streams and events
    "stream": lambda w: w.device.create_stream(),
    "stream with a priority": lambda w: w.device.create_stream(options={"priority": -1}),
    "stream flags": lambda w: no_result(Stream.from_handle(w.stream.handle).is_nonblocking),
    "stream priority": lambda w: no_result(Stream.from_handle(w.stream.handle).priority),
    "context of a foreign stream": lambda w: Stream.from_handle(w.stream.handle).context,
    "stream sync": lambda w: w.stream.sync(),
    "callback": lambda w: w.stream.callback(no_result),
    "callback, default stream": lambda w: LEGACY_DEFAULT_STREAM.callback(no_result),
    "event": lambda w: w.device.create_event(),
    "record": lambda w: no_result(w.stream.record(w.event)),
    "record a new event": lambda w: w.stream.record(),
    "record a new event in a foreign stream": lambda w: Stream.from_handle(w.stream.handle).record(),
    "wait for an event": lambda w: w.other.wait(w.event),
    "wait for a stream": lambda w: w.other.wait(w.stream),
    "wait for a default stream": lambda w: w.other.wait(LEGACY_DEFAULT_STREAM),
    "event sync": lambda w: w.event.sync(),
    "event query": lambda w: no_result(w.event.is_done),
    "elapsed time": lambda w: no_result(w.times[1] - w.times[0]),
    "event for other processes": lambda w: w.device.create_event(SHARED),
    "descriptor of an event": lambda w: no_result(w.device.create_event(SHARED).ipc_descriptor),
    "event of another process": lambda w: Event.from_ipc_descriptor(w.foreign_event),
    # resources
    "pool": lambda w: DeviceMemoryResource(w.device, {}),
    "pool of a bounded size": lambda w: DeviceMemoryResource(w.device, {"max_size": 1 << 20}),
    "current pool": lambda w: DeviceMemoryResource(w.device),
    "pinned pool": lambda w: PinnedMemoryResource({}),
    "virtual memory": lambda w: no_result(VirtualMemoryResource(0)),
    "pinned pool of a node": lambda w: PinnedMemoryResource({"numa_id": 0}),
    "current pinned pool": lambda w: PinnedMemoryResource(),
    "managed pool": lambda w: ManagedMemoryResource({}),
    "managed pool near the device": lambda w: ManagedMemoryResource({"preferred_location": 0}),
    "managed pool near the current device": lambda w: ManagedMemoryResource(
        {"preferred_location": None, "preferred_location_type": "host_numa"}
    ),
    "current managed pool": lambda w: ManagedMemoryResource(),
    "pool attribute": lambda w: no_result(w.pool.attributes.used_mem_current),
    "trimmed pool": lambda w: no_result(w.pool.trim()),
    "last buffer of a pool": lambda w: DeviceMemoryResource(w.device, {}).allocate(SIZE, w.stream),
    # buffers
    "pool buffer": lambda w: w.pool.allocate(SIZE, w.stream),
    "pool buffer, default stream": lambda w: w.pool.allocate(SIZE),
    "device buffer": lambda w: w.device.allocate(SIZE, w.stream),
    "pinned buffer": lambda w: PINNED.allocate(SIZE, w.stream),
    "synchronous buffer": lambda w: SynchronousMemoryResource(0).allocate(SIZE, w.stream),
    "tracked buffer": lambda w: w.tracking.allocate(SIZE, w.stream),
    "tracked pinned buffer": lambda w: TrackingMemoryResource(PINNED, limit=SIZE).allocate(SIZE, w.stream),
    "tracked copy": lambda w: TrackingMemoryResource(w.pool).allocate(SIZE, w.stream).copy_to(stream=w.stream),
    "buffer closed in another stream": lambda w: w.pool.allocate(SIZE, w.stream).close(w.other),
    "buffer of a resource in Python": lambda w: Forwarding(w.pool).allocate(SIZE, w.stream),
    "virtual buffer": lambda w: VirtualMemoryResource(0).allocate(SIZE, w.stream),
    "virtual buffer, default stream": lambda w: VirtualMemoryResource(0).allocate(SIZE),
    "last slice": lambda w: w.pool.allocate(SIZE, w.stream)[8:][8:],
    "buffer of a pinned pool": lambda w: PinnedMemoryResource({}).allocate(SIZE, w.stream),
    "buffer of a pinned pool, default stream": lambda w: PinnedMemoryResource().allocate(SIZE),
    "buffer of a pinned pool, foreign stream": lambda w: PinnedMemoryResource({}).allocate(
        SIZE, ForeignStream(w.stream)
    ),
    "managed buffer": lambda w: ManagedMemoryResource({}).allocate(SIZE, w.stream),
    "managed buffer, default stream": lambda w: ManagedMemoryResource({}).allocate(SIZE),
    "accessibility": lambda w: no_result(borrowed(w).is_host_accessible),
    "write 32 bits": lambda w: w.pinned.write_value(1, stream=w.stream),
    "write 64 bits": lambda w: w.pinned.write_value(1, stream=w.stream, bits=64),
    "wait for 32 bits": lambda w: w.pinned.wait_value(1, "nor", stream=w.stream),
    "wait for 64 bits": lambda w: w.pinned.wait_value(1, "nor", stream=w.stream, bits=64),
    "memory operations": lambda w: batch_mem_op(w.stream, [WriteValue(w.pinned, 1), WaitValue(w.pinned, 1, "eq")]),
    "fill 1": lambda w: w.buffer.fill(1, stream=w.stream),
    "fill 2": lambda w: w.buffer.fill(1, 2, stream=w.stream),
    "fill 4": lambda w: w.buffer.fill(1, 4, stream=w.stream),
    "copy_to": lambda w: no_result(w.buffer.copy_to(w.pinned, stream=w.stream)),
    "copy_to a new buffer": lambda w: w.buffer.copy_to(stream=w.stream),
    "copy_from": lambda w: w.buffer.copy_from(w.pinned, stream=w.stream),
    "copy_to an object": lambda w: no_result(w.buffer.copy_to(bytearray(SIZE), stream=w.stream), w.stream.sync()),
    "copy_from an object": lambda w: no_result(w.buffer.copy_from(bytes(SIZE), stream=w.stream), w.stream.sync()),
    "copy_to with options": lambda w: w.buffer.copy_to(stream=w.stream, options={}),
    "copy_from with options": lambda w: w.buffer.copy_from(w.pinned, stream=w.stream, options={}),
    "copy a batch": lambda w: copy_batch(w.stream, [w.pinned], [w.buffer]),
    "copy of a slice": lambda w: no_result(w.buffer[:8].copy_to(w.pinned[:8], stream=w.stream)),
    # managed memory
    "read advice": lambda w: no_result(w.managed[0].read_mostly, w.managed[0].preferred_location),
    "read who accesses": lambda w: no_result(list(w.managed[0].accessed_by)),
    "advise": lambda w: setattr(w.managed[0], "read_mostly", True),
    "prefer a location": lambda w: setattr(w.managed[0], "preferred_location", Host()),
    "set who accesses": lambda w: setattr(w.managed[0], "accessed_by", {w.device} - set(w.managed[0].accessed_by)),
    "advise wrapped memory": lambda w: setattr(
        ManagedBuffer.from_handle(w.managed[0].handle, SIZE, owner=w.managed[0]), "read_mostly", True
    ),
    "prefetch": lambda w: w.managed[0].prefetch(w.device, stream=w.stream),
    "prefetch borrowed memory": lambda w: prefetch_batch(w.stream, [borrowed(w, w.managed[0])], w.device),
    "discard": lambda w: w.managed[0].discard(stream=w.stream),
    "discard and prefetch": lambda w: w.managed[0].discard_prefetch(w.device, stream=w.stream),
    "prefetch a batch": lambda w: prefetch_batch(w.stream, w.managed, [w.device, Host()]),
    "prefetch a batch, default stream": lambda w: prefetch_batch(LEGACY_DEFAULT_STREAM, w.managed, Host()),
    "discard a batch": lambda w: discard_batch(w.stream, w.managed),
    "discard and prefetch a batch": lambda w: discard_prefetch_batch(w.stream, w.managed, w.device),
    # exchange with other libraries
    "DLPack": lambda w: no_result(w.buffer.__dlpack__(stream=w.other.handle)),
    "DLPack of a new buffer": lambda w: no_result(w.pool.allocate(SIZE, w.stream).__dlpack__(stream=w.other.handle)),
    "DLPack of tracked memory": lambda w: no_result(w.tracking.allocate(SIZE, w.stream).__dlpack__(stream=-1)),
    "DLPack of borrowed memory": lambda w: no_result(borrowed(w).__dlpack__(stream=w.other.handle)),
    "DLPack to the default stream": lambda w: no_result(w.buffer.__dlpack__()),
    "DLPack on the host": lambda w: no_result(w.buffer.__dlpack__(dl_device=(1, 0))),
    "DLPack copy": lambda w: no_result(w.buffer.__dlpack__(copy=True, stream=w.other.handle)),
    "DLPack copy without a stream": lambda w: no_result(w.buffer.__dlpack__(copy=True, stream=-1)),
    "view of a buffer": lambda w: no_result(StridedMemoryView.from_any_interface(w.buffer, w.other.handle)),
    "view by the array interface": lambda w: no_result(
        StridedMemoryView.from_cuda_array_interface(w.buffer, w.other.handle)
    ),
    "view of a view": lambda w: no_result(StridedMemoryView.from_dlpack(view(w.buffer), w.other.handle)),
    "copy between views": lambda w: view(w.buffer).copy_from(view(w.managed[0]), w.stream),
    "tensor map": lambda w: no_result(bytes_of(w.buffer).as_tensor_map((16,), data_type="uint8")),
    "tensor map of columns": lambda w: no_result(
        TensorMapDescriptor.from_im2col(bytes_of(w.buffer, (1, 2, 16)), (0,), (0,), 16, 2, data_type="uint8")
    ),
    "address of a tensor map": lambda w: (
        bytes_of(w.buffer).as_tensor_map((16,), data_type="uint8").replace_address(w.pinned)
    ),
    # arrays, textures and surfaces
    "opaque array": lambda w: w.device.create_opaque_array(IMAGE),
    "mipmapped array": lambda w: w.device.create_mipmapped_array({**vars(IMAGE), "num_levels": 3}),
    "level of a mipmapped array": lambda w: w.device.create_mipmapped_array({**vars(IMAGE), "num_levels": 3}).get_level(
        1
    ),
    "texture": lambda w: w.device.create_texture_object(
        ResourceDescriptor.from_opaque_array(w.device.create_opaque_array(IMAGE))
    ),
    "texture of a buffer": lambda w: w.device.create_texture_object(
        ResourceDescriptor.from_linear(w.buffer, format="uint8", num_channels=1)
    ),
    "texture of borrowed memory": lambda w: w.device.create_texture_object(
        ResourceDescriptor.from_linear(borrowed(w), format="uint8", num_channels=1)
    ),
    "surface": lambda w: w.device.create_surface_object(
        ResourceDescriptor.from_opaque_array(w.device.create_opaque_array(IMAGE))
    ),
    # kernels
    "load": lambda w: [ObjectCode.from_ptx(PTX).get_kernel("store")],
    "module": lambda w: no_result(w.code.get_module()),
    "global": lambda w: w.code.get_global("counter"),
    "global of code of its own": lambda w: ObjectCode.from_ptx(PTX).get_global("counter"),
    "parameters of a kernel": lambda w: no_result(ObjectCode.from_ptx(PTX).get_kernel("store").arguments_info),
    "launch by handle": lambda w: launch(w.stream, ONE, Kernel.from_handle(w.kernel.handle, w.code), w.buffer, 1),
    "kernel attribute": lambda w: no_result(ObjectCode.from_ptx(PTX).get_kernel("store").attributes.num_regs),
    "launch": lambda w: launch(w.stream, ONE, w.kernel, w.buffer, 1),
    "launch with much shared memory": lambda w: launch_with_much_shared_memory(w),
    "launch with attributes": lambda w: launch(
        w.stream,
        LaunchConfig(
            grid=1,
            cluster=1,
            block=1,
            priority=0,
            mem_sync_domain_map=(0, 0),
            launch_completion_event=w.event,
            access_policy_window=AccessPolicyWindow(w.buffer),
        ),
        w.kernel,
        w.buffer,
        1,
    ),
    "first launch": lambda w: launch(w.stream, ONE, ObjectCode.from_ptx(PTX).get_kernel("store"), w.buffer, 1),
    "prepared launch": lambda w: PreparedLaunch(ONE, w.kernel, Buffer, int).launch(w.stream, w.buffer, 1),
    "first prepared launch": lambda w: PreparedLaunch(ONE, ObjectCode.from_ptx(PTX).get_kernel("store")).launch(
        w.stream, w.buffer, 1
    ),
    "prepared launch with attributes": lambda w: PreparedLaunch(
        LaunchConfig(grid=1, block=1, priority=0, launch_completion_event=w.event), w.kernel, Buffer, int
    ).launch(w.stream, w.buffer, 1),
    "batch of launches": lambda w: LaunchBatch(
        [
            (PreparedLaunch(config, w.kernel, Buffer, int), w.buffer, 1)
            for config in (ONE, LaunchConfig(grid=1, block=1, priority=0))
        ]
    ).launch(w.stream),
    "blocks per multiprocessor": lambda w: no_result(w.kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0)),
    "best block size": lambda w: no_result(w.kernel.occupancy.max_potential_block_size(0, 0)),
    "free shared memory": lambda w: no_result(w.kernel.occupancy.available_dynamic_shared_memory_per_block(1, 32)),
    "largest cluster": lambda w: no_result(w.kernel.occupancy.max_potential_cluster_size(ONE, stream=w.stream)),
    "clusters at a time": lambda w: no_result(
        w.kernel.occupancy.max_active_clusters(LaunchConfig(grid=1, cluster=1, block=1), stream=w.stream)
    ),
}


def current_for_a_while(device: Device) -> None:
    """Make a green context current, and give it up where another one is."""
    context = green_context(device)
    before = device.set_current(context)
    try:
        no_result(device.create_stream(), device.context.is_green)
    finally:
        try:
            device.set_current(before)
        except CUDAError:
            device.set_current(before)
            raise


def scenario(function: Callable[[World], Any]) -> Callable[[World], Any]:
    """Add a function to the scenarios, under its name."""
    SCENARIOS[function.__name__.replace("_", " ")] = function
    return function


@scenario
def lock_of_the_process(w: World) -> None:
    """Lock and unlock; where that fails, the process must not stay locked."""
    process = Process(os.getpid())
    gc.collect()
    gc.disable()  # a finalizer that is held back in this thread would never end
    try:
        no_result(process.state, process.restore_thread_id)
        process.lock()
        process.unlock()
    finally:
        if process.state == "locked":
            process.unlock()
        gc.enable()


def insist(name: str, *arguments: Any) -> None:
    """Call a function of the driver, as another library would; if it fails, call it again, and raise then."""
    status = getattr(lib, name)(*arguments)
    if status:
        assert getattr(lib, name)(*arguments) == 0
    check(status, name)


@scenario
def callback_while_capturing(w: World) -> None:
    graph = ffi.new("CUgraph *")
    check(lib.cuStreamBeginCapture(w.other.cdata, lib.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture")
    try:
        w.other.callback(no_result)
    finally:
        try:
            insist("cuStreamEndCapture", w.other.cdata, graph)
        finally:
            insist("cuGraphDestroy", graph[0])


@scenario
def launch_with_much_shared_memory(w: World) -> None:
    w.kernel.attributes.max_dynamic_shared_size_bytes = 0  # so that the launch raises it, each time
    launch(w.stream, LaunchConfig(grid=1, block=1, shmem_size=60_000), w.kernel, w.buffer, 1)


def missing_kernel(w: World) -> None:
    try:
        w.code.get_kernel("nothing")
    except CUDAError as error:
        if error.name != "CUDA_ERROR_NOT_FOUND":
            raise


@scenario
def missing_global(w: World) -> None:
    try:
        w.code.get_global("nothing")
    except CUDAError as error:
        if error.name != "CUDA_ERROR_NOT_FOUND":
            raise


@scenario
def code_that_does_not_load(w: World) -> None:
    try:
        ObjectCode.from_ptx(PTX.replace(b"ret;", b"mov.u32 %nonsense, 1;")).get_module()
    except CUDAError as error:
        if error.name != "CUDA_ERROR_INVALID_PTX":
            raise


@scenario
def linking_by_the_driver(w: World) -> Any:
    with linked_by_the_driver():
        linker = Linker(w.code, options={"arch": f"sm_{w.device.arch}"})
    linker.link("cubin")
    linker.link("cubin")
    return linker


@scenario
def copy_of_every_other_element(w: World) -> None:
    source, target = (StridedMemoryView.from_buffer(b, (8, 2), (4, 1), itemsize=1) for b in (w.buffer, w.pinned))
    target.copy_from(source, w.stream)


@scenario
def copy_to_an_array(w: World) -> None:
    array = StridedMemoryView.from_any_interface(np.zeros(SIZE, np.int8), -1)
    view(w.buffer).copy_to(array, w.stream)


@scenario
def copy_to_an_array_without_waiting(w: World) -> None:
    array = StridedMemoryView.from_any_interface(np.zeros(SIZE, np.int8), -1)
    view(w.buffer).copy_to(array, w.stream, blocking=False)
    w.stream.sync()


@scenario
def copy_of_an_opaque_array(w: World) -> None:
    with w.device.create_opaque_array(IMAGE) as array:
        array.copy_from(w.buffer, stream=w.stream)
        array[2:6, 2:6].copy_to(w.pinned, stream=w.stream)
        LEGACY_DEFAULT_STREAM.wait(w.stream)  # that stream may be one which the default stream does not wait for
        array[4:].copy_from(array[:4], stream=LEGACY_DEFAULT_STREAM)


@scenario
def copy_of_an_opaque_array_to_the_host(w: World) -> None:
    with w.device.create_opaque_array(IMAGE) as array:
        array.copy_to(bytearray(SIZE), stream=w.stream)
        w.stream.sync()


@scenario
def virtual_buffer_of_a_descriptor(w: World) -> Any:
    with w.virtual.ipc_descriptor as descriptor:
        return Buffer.from_ipc_descriptor(VirtualMemoryResource(0), descriptor)


@scenario
def virtual_buffer_that_grows(w: World) -> Any:
    resource = VirtualMemoryResource(w.device)
    with resource.allocate(SIZE, w.stream) as buffer:
        return resource.modify_allocation(buffer, buffer.size + 1)


@scenario
def virtual_buffer_without_room_to_grow(w: World) -> Any:
    resource = VirtualMemoryResource(w.device)
    with resource.allocate(SIZE, w.stream) as buffer, resource.allocate(SIZE, w.stream):  # right behind it
        return resource.modify_allocation(buffer, buffer.size + 1)


@scenario
def nested_tracking(w: World) -> Any:
    buffer = TrackingMemoryResource(w.tracking, limit=SIZE).allocate(SIZE, w.stream)
    buffer.fill(0, stream=w.stream)
    return buffer


@scenario
def a_day_at_work(w: World) -> Any:
    with w.device.create_stream() as stream, w.pool.allocate(SIZE, stream) as buffer:
        buffer.fill(7, stream=stream)
        launch(stream, ONE, w.kernel, buffer, 1)
        copied = buffer.copy_to(stream=stream)
        stream.sync()
    return copied


@scenario
def pool_for_other_processes(w: World) -> Any:
    pool = DeviceMemoryResource(0, {"ipc_enabled": True})
    assert int(pool.allocation_handle) >= 0
    return [pool, pool.allocate(SIZE, w.stream)]


@scenario
def memory_of_a_mapped_pool(w: World) -> Any:
    # The pool stays: drivers (580) crash at a later launch of a graph if a pool was destroyed while its memory was
    # being freed, and it was imported in the same process.
    buffer = w.shared.allocate(SIZE, w.stream)
    mapped = DeviceMemoryResource.from_allocation_handle(0, int(w.shared.allocation_handle))
    imported = [
        Buffer.from_ipc_descriptor(mapped, buffer.ipc_descriptor, stream=stream) for stream in (w.stream, w.other)
    ]
    return [buffer, mapped, *imported]
