# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""An object of each class of the package, and what copying, deep-copying and pickling are expected to do with it."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from buffers import ManagedResource
from helpers import system_events_or_skip
from scenarios import PTX

import cuda_core_cffi
from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    AccessPolicyWindow,
    Buffer,
    ContextOptions,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    Event,
    EventOptions,
    GraphMemoryResource,
    Host,
    Kernel,
    LaunchBatch,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerOptions,
    ManagedBuffer,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    MemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    PreparedLaunch,
    Program,
    ProgrammaticEvent,
    ProgramOptions,
    SMResourceOptions,
    Stream,
    StreamOptions,
    TensorMapDescriptorOptions,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    WorkqueueResource,
    WorkqueueResourceOptions,
    ffi,
    nvml,
    simulator,
    system,
)
from cuda_core_cffi._arrays.layout import _StridedLayout
from cuda_core_cffi._arrays.strided_memory_view import _StridedMemoryViewProxy
from cuda_core_cffi._core.descriptors import PAYLOAD_BYTES, seal
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi._memory.ipc import IPCBufferDescriptor
from cuda_core_cffi._memory.managed_buffer import AccessedBySetProxy
from cuda_core_cffi._memory.peer_access import PeerAccessibleBySetProxy
from cuda_core_cffi._streams.event import IPCEventDescriptor
from cuda_core_cffi._streams.resources import Group
from cuda_core_cffi.checkpoint import Process
from cuda_core_cffi.coredump import CoreDumpSettings
from cuda_core_cffi.graph import GraphCompleteOptions, GraphDebugPrintOptions, GraphDefinition, GraphNode
from cuda_core_cffi.system import _device as system_device
from cuda_core_cffi.system import _events
from cuda_core_cffi.texture import (
    MipmappedArray,
    MipmappedArrayOptions,
    OpaqueArray,
    OpaqueArrayOptions,
    ResourceDescriptor,
    TextureObjectOptions,
)
from cuda_core_cffi.utils import (
    CopyOptions,
    DriverLogListener,
    FileStreamProgramCache,
    FlushRemoteWrites,
    InMemoryProgramCache,
    MemoryBarrier,
    StridedMemoryView,
    TrackingMemoryResource,
    WaitValue,
    WriteValue,
)

SIZE = 64
PAYLOAD = seal(bytes(PAYLOAD_BYTES))
ACTIONS = {
    "copied": copy.copy,
    "deep-copied": copy.deepcopy,
    "pickled": lambda item: pickle.loads(pickle.dumps(item)),
}


def value(item: Any, action: Callable[[Any], Any], same: Callable[[Any, Any], bool]) -> None:
    """Expect another object that is equal."""
    other = action(item)
    assert other is not item
    assert type(other) is type(item)
    assert same(other, item)


def itself(item: Any, action: Callable[[Any], Any], same: Callable[[Any, Any], bool]) -> None:
    """Expect the object itself."""
    assert action(item) is item


def refused(item: Any, action: Callable[[Any], Any], same: Callable[[Any, Any], bool]) -> None:
    """Expect a TypeError that names the class and the reason, and that the object is as it was."""
    shown = repr(item)
    with pytest.raises(TypeError, match=rf"^{type(item).__name__} cannot be pickled or copied: .{{10}}"):
        action(item)
    assert repr(item) == shown


def part_refused(item: Any, action: Callable[[Any], Any], same: Callable[[Any, Any], bool]) -> None:
    """Expect a TypeError that names the class of an object that this value refers to."""
    with pytest.raises(TypeError, match=r"^(Event|Buffer|LaunchConfig) cannot be pickled or copied: .{10}"):
        action(item)


def equal(one: Any, other: Any) -> bool:
    """Tell whether two values are equal."""
    return bool(one == other)


def shown(one: Any, other: Any) -> bool:
    """Tell whether two objects say the same of themselves."""
    return repr(one) == repr(other)


def same_state(one: Any, other: Any) -> bool:
    """Tell whether the attributes of two objects are equal."""
    return bool(vars(one) == vars(other))


class Objects:
    """What objects of many classes are made from."""

    def __init__(self, stack: ExitStack, device: Device, stream: Stream, folder: Path) -> None:
        self.stack, self.device, self.stream, self.folder = stack, device, stream, folder
        self.enter = stack.enter_context

    @property
    def event(self) -> Event:
        return self.enter(self.device.create_event())

    @property
    def pool(self) -> DeviceMemoryResource:
        return self.closing(DeviceMemoryResource(self.device, {}))

    @property
    def shared_pool(self) -> DeviceMemoryResource:
        return self.closing(DeviceMemoryResource(self.device, {"ipc_enabled": True}))

    @property
    def managed_pool(self) -> ManagedMemoryResource:
        return self.closing(ManagedMemoryResource({}))

    @property
    def buffer(self) -> Buffer:
        return self.enter(self.device.allocate(SIZE, self.stream))

    @property
    def managed(self) -> ManagedBuffer:
        return self.enter(ManagedResource().allocate(SIZE, self.stream))

    @property
    def code(self) -> ObjectCode:
        return self.enter(ObjectCode.from_ptx(PTX, name="code", symbol_mapping={"a": "store"}))

    @property
    def kernel(self) -> Kernel:
        return self.enter(self.code.get_kernel("store"))

    @property
    def graph(self) -> GraphDefinition:
        return self.enter(GraphDefinition())

    @property
    def array(self) -> OpaqueArray:
        return self.enter(self.device.create_opaque_array(OpaqueArrayOptions((4, 4), "uint8", 1, True)))

    @property
    def mipmap(self) -> MipmappedArray:
        return self.enter(self.device.create_mipmapped_array(MipmappedArrayOptions((4, 4), "uint8", 1, 2)))

    @property
    def resource(self) -> ResourceDescriptor:
        return ResourceDescriptor.from_opaque_array(self.array)

    @property
    def prepared(self) -> PreparedLaunch:
        return PreparedLaunch(ONE, self.kernel, Buffer, np.uint32)

    def closing(self, item: Any) -> Any:
        self.stack.callback(item.close)
        return item

    def view(self, add: Callable[[GraphDefinition], Any]) -> Any:
        """Return the view of a node in an executable graph."""
        graph = self.graph
        node = add(graph)
        return self.enter(graph.instantiate())[node]


def conditional(graph: GraphDefinition, method: str, *arguments: int) -> Any:
    """Return a conditional node."""
    return getattr(graph, method)(graph.create_condition(1), *arguments)


def free_node(graph: GraphDefinition) -> Any:
    """Return a node that frees what another allocates."""
    allocated = graph.allocate(SIZE)
    return allocated.deallocate(allocated.dptr)


def child(objects: Objects) -> GraphDefinition:
    """Return a graph with one node."""
    graph = objects.graph
    graph.empty()
    return graph


class Row(NamedTuple):
    """What is expected of an object."""

    name: str  # module and class
    make: Callable[[Objects], Any]
    copied: Callable[..., None] = refused
    deep: Callable[..., None] = refused
    pickled: Callable[..., None] = refused
    same: Callable[[Any, Any], bool] = equal


def values(name: str, make: Callable[[Objects], Any], same: Callable[[Any, Any], bool] = equal) -> Row:
    """Return the row of a class whose objects are values."""
    return Row(name, make, value, value, value, same)


def one(name: str, make: Callable[[Objects], Any]) -> Row:
    """Return the row of an object that is its own copy."""
    return Row(name, make, itself, itself, itself)


ONE = LaunchConfig(grid=1, block=1)


def told(name: str, record: Any) -> Row:
    """Return the row of what NVML told in a structure: its own copy, and a value when it is pickled."""
    module, _, cls = name.rpartition(".")
    kind = getattr(importlib.import_module(f"cuda_core_cffi.system.{module}"), cls)
    return Row(f"system.{name}", lambda o: kind(record), itself, itself, value, shown)


ROWS = [
    # values
    values("_arrays.tensor_map.TensorMapDescriptorOptions", lambda o: TensorMapDescriptorOptions((8, 16))),
    values("_streams.options.EventOptions", lambda o: EventOptions(timing_enabled=True)),
    values("_streams.options.StreamOptions", lambda o: StreamOptions(priority=0)),
    values("_compile.linker_options.LinkerOptions", lambda o: LinkerOptions(arch="sm_90", ptxas_options=["-v"])),
    values("_compile.program_options.ProgramOptions", lambda o: ProgramOptions(arch="sm_90", include_path=["a", "b"])),
    values("_streams.options.ContextOptions", lambda o: ContextOptions([])),
    values("_streams.resources.SMResourceOptions", lambda o: SMResourceOptions((8, 16))),
    values("_streams.resources.Group", lambda o: Group(8, 0, 0, False)),
    values("_streams.resources.WorkqueueResourceOptions", lambda o: WorkqueueResourceOptions("device_ctx", 4)),
    values("coredump.CoreDumpSettings", lambda o: CoreDumpSettings(), shown),
    values("checkpoint.Process", lambda o: Process(123), shown),
    values("_memory.mem_op.WriteValue", lambda o: WriteValue(64, 1, bits=64)),
    values("_memory.mem_op.WaitValue", lambda o: WaitValue(64, 1, "eq")),
    values("_memory.mem_op.MemoryBarrier", lambda o: MemoryBarrier("device")),
    values("_memory.mem_op.FlushRemoteWrites", lambda o: FlushRemoteWrites()),
    values("_memory.copy_options.CopyOptions", lambda o: CopyOptions(src_access_order="any")),
    values("_memory.pool_options.DeviceMemoryResourceOptions", lambda o: DeviceMemoryResourceOptions(max_size=1)),
    values("_memory.managed.ManagedMemoryResourceOptions", lambda o: ManagedMemoryResourceOptions()),
    values("_memory.pinned.PinnedMemoryResourceOptions", lambda o: PinnedMemoryResourceOptions(max_size=1)),
    values("_memory.virtual_options.VirtualMemoryResourceOptions", lambda o: VirtualMemoryResourceOptions()),
    values("texture._array.OpaqueArrayOptions", lambda o: OpaqueArrayOptions((4, 2), "uint8", 2)),
    values("texture._array.MipmappedArrayOptions", lambda o: MipmappedArrayOptions((4, 2), "uint8", 2, 3)),
    values("texture._texture_object.TextureObjectOptions", lambda o: TextureObjectOptions("wrap", "linear")),
    values("graph.options.GraphCompleteOptions", lambda o: GraphCompleteOptions()),
    values("graph.options.GraphDebugPrintOptions", lambda o: GraphDebugPrintOptions()),
    values("_streams.event.IPCEventDescriptor", lambda o: IPCEventDescriptor._create(PAYLOAD, True, 0)),
    values(
        "_memory.ipc.IPCBufferDescriptor",
        lambda o: IPCBufferDescriptor._create(PAYLOAD, SIZE),
        lambda a, b: (a._payload, a.size, a._pool) == (b._payload, b.size, b._pool),
    ),
    values("_arrays.layout._StridedLayout", lambda o: _StridedLayout((2, 3), (1, 2), 4)[1:]),
    values(
        "_code.object_code.ObjectCode",
        lambda o: o.code,
        lambda a, b: (a.code, a.name, a.code_type, a.symbol_mapping) == (b.code, b.name, b.code_type, b.symbol_mapping),
    ),
    values("_memory.legacy.LegacyPinnedMemoryResource", lambda o: LegacyPinnedMemoryResource(), same_state),
    values(
        "_memory.legacy.SynchronousMemoryResource",
        lambda o: SynchronousMemoryResource(o.device),
        lambda a, b: a.device_id == b.device_id,
    ),
    values("_memory.resource.MemoryResource", lambda o: MemoryResource(), same_state),
    values(
        "_compile.program_cache_file.FileStreamProgramCache", lambda o: FileStreamProgramCache(o.folder), same_state
    ),
    # values that may refer to objects of this process
    Row("_launching.config.LaunchConfig", lambda o: LaunchConfig(grid=(2, 3), block=4, priority=0), value, value),
    Row(
        "_launching.config.LaunchConfig",
        lambda o: LaunchConfig(grid=2, block=4, launch_completion_event=o.event),
        value,
        part_refused,
    ),
    Row(
        "_launching.attributes.ProgrammaticEvent",
        lambda o: ProgrammaticEvent(o.event),
        value,
        part_refused,
        part_refused,
    ),
    Row(
        "_launching.attributes.AccessPolicyWindow",
        lambda o: AccessPolicyWindow(o.buffer),
        value,
        part_refused,
        part_refused,
    ),
    # of which there is one
    one("_device.device.Device", lambda o: o.device),
    one("_device.properties.DeviceProperties", lambda o: o.device.properties),
    one("_core.host.Host", lambda o: Host(0)),
    one("_core.host.Host", lambda o: Host.numa_current()),
    one("_streams.stream.Stream", lambda o: LEGACY_DEFAULT_STREAM),
    one("_streams.stream.Stream", lambda o: PER_THREAD_DEFAULT_STREAM),
    one("_memory.graph_memory.GraphMemoryResource", lambda o: GraphMemoryResource(o.device)),
    # owners of handles and memory
    Row("_streams.context.Context", lambda o: o.device.context),
    Row("_streams.resources.DeviceResources", lambda o: o.device.resources),
    Row("_streams.resources.SMResource", lambda o: o.device.resources.sm),
    Row("_streams.resources.WorkqueueResource", lambda o: WorkqueueResource._create(ffi.new("ccc_resource *"))),
    Row("_streams.stream.Stream", lambda o: o.stream),
    Row("_streams.event.Event", lambda o: o.event),
    Row("_streams.event.Event", lambda o: o.enter(o.device.create_event({"ipc_enabled": True}))),
    Row("_code.kernel.Kernel", lambda o: o.kernel),
    Row("_compile.linker.Linker", lambda o: o.closing(Linker(o.code, options=LinkerOptions(arch="sm_90")))),
    Row("_compile.program.Program", lambda o: o.closing(Program(PTX.decode(), "ptx"))),
    Row("_memory.buffer.Buffer", lambda o: o.buffer),
    Row("_memory.buffer.BufferSlice", lambda o: o.enter(o.buffer[8:])),
    Row("_memory.buffer.ForeignBuffer", lambda o: o.enter(Buffer.from_handle(0x1000, SIZE))),
    Row("_memory.managed_buffer.ManagedBuffer", lambda o: o.enter(o.managed_pool.allocate(SIZE, o.stream))),
    Row("_memory.managed_buffer.ManagedBufferSlice", lambda o: o.enter(o.enter(o.managed_pool.allocate(SIZE))[8:])),
    Row("_memory.managed_buffer.ForeignManagedBuffer", lambda o: o.managed),
    Row("_memory.virtual.VirtualMemoryBuffer", lambda o: o.enter(VirtualMemoryResource(o.device).allocate(SIZE))),
    Row("_memory.pool.DeviceMemoryResource", lambda o: DeviceMemoryResource(o.device)),
    Row("_memory.pool.DeviceMemoryResource", lambda o: o.pool),
    Row("_memory.pool.DeviceMemoryResource", lambda o: o.shared_pool, pickled=itself),
    Row("_memory.pinned.PinnedMemoryResource", lambda o: o.closing(PinnedMemoryResource({}))),
    Row("_memory.managed.ManagedMemoryResource", lambda o: o.managed_pool),
    Row("_memory.virtual.VirtualMemoryResource", lambda o: VirtualMemoryResource(o.device)),
    Row("_lifetime.log_listener.DriverLogListener", lambda o: o.enter(DriverLogListener())),
    Row("_memory.tracking.TrackingMemoryResource", lambda o: TrackingMemoryResource(o.pool)),
    Row("_memory.ipc.IPCAllocationHandle", lambda o: o.shared_pool.allocation_handle),
    Row(
        "_memory.ipc.VirtualMemoryIPCBufferDescriptor",
        lambda o: o.enter(o.enter(VirtualMemoryResource(o.device).allocate(SIZE)).ipc_descriptor),
    ),
    Row("_compile.program_cache.InMemoryProgramCache", lambda o: InMemoryProgramCache()),
    Row("_launching.prepared.PreparedLaunch", lambda o: o.prepared),
    Row("_launching.batch.LaunchBatch", lambda o: LaunchBatch([(o.prepared, o.buffer, 1)])),
    Row("texture._array.OpaqueArray", lambda o: o.array),
    Row("texture._array.OpaqueArray", lambda o: o.enter(o.mipmap.get_level(1))),
    Row("texture._array.MipmappedArray", lambda o: o.mipmap),
    Row("texture._texture_object.TextureObject", lambda o: o.enter(o.device.create_texture_object(o.resource))),
    Row("texture._texture_object.SurfaceObject", lambda o: o.enter(o.device.create_surface_object(o.resource))),
    Row("texture._array.ArrayRegion", lambda o: o.array[1:3]),
    Row("texture._resource.ResourceDescriptor", lambda o: o.resource),
    Row("simulator.Fault", lambda o: simulator.Fault(0)),
    Row("simulator.Trace", lambda o: simulator.Trace()),
    # what shows a part of an owner
    Row("_code.kernel.KernelAttributes", lambda o: o.kernel.attributes),
    Row("_code.symbols.Symbols", lambda o: o.code.kernels),
    Row("_code.occupancy.KernelOccupancy", lambda o: o.kernel.occupancy),
    Row("_memory.pool.MemPoolAttributes", lambda o: o.pool.attributes),
    Row("_memory.graph_memory.GraphMemoryResourceAttributes", lambda o: GraphMemoryResource(0).attributes),
    Row("_memory.peer_access.PeerAccessibleBySetProxy", lambda o: PeerAccessibleBySetProxy(o.pool)),
    Row("_memory.managed_buffer.AccessedBySetProxy", lambda o: AccessedBySetProxy(o.managed)),
    Row(
        "_arrays.tensor_map.TensorMapDescriptor",
        lambda o: StridedMemoryView.from_buffer(o.buffer, (16,), itemsize=1).as_tensor_map((16,), data_type="uint8"),
    ),
    Row(
        "_arrays.strided_memory_view.StridedMemoryView", lambda o: StridedMemoryView.from_any_interface(np.zeros(3), -1)
    ),
    Row("_arrays.strided_memory_view._StridedMemoryViewProxy", lambda o: _StridedMemoryViewProxy(np.zeros(3))),
    # graphs
    Row("graph.definition.GraphDefinition", lambda o: o.graph),
    Row("graph.builder.GraphBuilder", lambda o: o.enter(o.device.create_graph_builder())),
    Row("graph.executable.Graph", lambda o: o.enter(child(o).instantiate())),
    Row("_launching.graph_condition.GraphCondition", lambda o: o.graph.create_condition(1)),
    Row("graph.edges.AdjacencySetProxy", lambda o: o.graph.empty().succ),
    Row("graph.node.GraphNode", lambda o: GraphNode()),
    Row("graph.nodes.EmptyNode", lambda o: o.graph.empty()),
    Row("graph.nodes.KernelNode", lambda o: o.graph.launch(ONE, o.kernel, 0, 1)),
    Row("graph.nodes.ChildGraphNode", lambda o: o.graph.embed(child(o))),
    Row("graph.nodes.EventRecordNode", lambda o: o.graph.record(o.event)),
    Row("graph.nodes.EventWaitNode", lambda o: o.graph.wait(o.event)),
    Row("graph.nodes.HostCallbackNode", lambda o: o.graph.callback(print)),
    Row("graph.memory_nodes.AllocNode", lambda o: o.graph.allocate(SIZE)),
    Row("graph.memory_nodes.FreeNode", lambda o: free_node(o.graph)),
    Row("graph.memory_nodes.MemcpyNode", lambda o: o.graph.memcpy(o.buffer, o.buffer, SIZE)),
    Row("graph.memory_nodes.MemsetNode", lambda o: o.graph.memset(o.buffer, 1, SIZE)),
    Row("graph.memory_nodes.BatchMemOpNode", lambda o: o.graph.batch_mem_op([WriteValue(64, 1)])),
    Row("graph.nodes.IfNode", lambda o: conditional(o.graph, "if_then")),
    Row("graph.nodes.IfElseNode", lambda o: conditional(o.graph, "if_else")),
    Row("graph.nodes.WhileNode", lambda o: conditional(o.graph, "while_loop")),
    Row("graph.nodes.SwitchNode", lambda o: conditional(o.graph, "switch", 2)),
    Row("graph.views.ExecutableGraphNode", lambda o: o.view(lambda graph: graph.empty())),
    Row("graph.views.ExecutableKernelNode", lambda o: o.view(lambda graph: graph.launch(ONE, o.kernel, 0, 1))),
    Row("graph.views.ExecutableChildGraphNode", lambda o: o.view(lambda graph: graph.embed(child(o)))),
    Row(
        "graph.views.ExecutableBatchMemOpNode",
        lambda o: o.view(lambda graph: graph.batch_mem_op([WriteValue(64, 1)])),
    ),
    Row("graph.views.ExecutableEventRecordNode", lambda o: o.view(lambda graph: graph.record(o.event))),
    Row("graph.views.ExecutableEventWaitNode", lambda o: o.view(lambda graph: graph.wait(o.event))),
    Row("graph.views.ExecutableHostCallbackNode", lambda o: o.view(lambda graph: graph.callback(print))),
    Row("graph.views.ExecutableMemcpyNode", lambda o: o.view(lambda graph: graph.memcpy(o.buffer, o.buffer, SIZE))),
    Row("graph.views.ExecutableMemsetNode", lambda o: o.view(lambda graph: graph.memset(o.buffer, 1, SIZE))),
    # what NVML tells
    Row("system._device.Device", lambda o: system.Device(index=0), itself, itself, value),
    told("_snapshot.DeviceAttributes", nvml.nvmlDeviceAttributes_t(memorySizeMB=3)),
    told("_clocks.ClockOffsets", nvml.nvmlClockOffset_v1_t(clockOffsetMHz=-3)),
    told("_cooling.CoolerInfo", nvml.nvmlCoolerInfo_v1_t(signalType=1)),
    told("_cooling.ThermalSettings", nvml.nvmlGpuThermalSettings_t(count=2)),
    told("_fields.FieldValue", nvml.nvmlFieldValue_t(fieldId=1, scopeId=3)),
    told("_snapshot.BAR1MemoryInfo", nvml.nvmlBAR1Memory_t(bar1Total=3)),
    told("_snapshot.MemoryInfo", nvml.nvmlMemory_v2_t(total=3)),
    told("_snapshot.GpuDynamicPstatesInfo", nvml.nvmlGpuDynamicPstatesInfo_t(flags=3)),
    told("_snapshot.Utilization", nvml.nvmlUtilization_t(gpu=3)),
    told("_events.SystemEvent", nvml.nvmlSystemEventData_v1_t(gpuId=3)),
    Row("system._snapshot.RepairStatus", lambda o: system.Device(index=0).repair_status, itself, itself, value, shown),
    values("system._fields.FieldValues", lambda o: system.Device(index=0).get_field_values([1, 2]), shown),
    values(
        "system._events.SystemEvents",
        lambda o: _events.SystemEvents([nvml.nvmlSystemEventData_v1_t(gpuId=3)]),
        shown,
    ),
    Row("system._clocks.ClockInfo", lambda o: system.Device(index=0).get_clock("sm")),
    Row("system._cooling.FanInfo", lambda o: system_device.FanInfo(0, 0)),
    Row("system._cooling.Temperature", lambda o: system.Device(index=0).temperature),
    Row(
        "system._cooling.ThermalSensor",
        lambda o: system_device.ThermalSettings(nvml.nvmlGpuThermalSettings_t(count=1))[0],
    ),
    Row("system._events.DeviceEvents", lambda o: o.enter(system.Device(index=0).register_events("xid_critical_error"))),
    Row("system._events.EventData", lambda o: system_device.EventData(nvml.nvmlEventData_t())),
    Row("system._inforom.InforomInfo", lambda o: system.Device(index=0).inforom),
    Row("system._mig.MigInfo", lambda o: system.Device(index=0).mig),
    Row("system._nvlink.NvlinkInfo", lambda o: system.NvlinkInfo(system.Device(index=0), 0)),
    Row("system._nvlink._NvlinkInfo", lambda o: system_device._NvlinkInfo(system.Device(index=0), 0)),
    Row("system._pci.PciInfo", lambda o: system.Device(index=0).pci_info),
    Row(
        "system._snapshot.GpuDynamicPstatesUtilization",
        lambda o: system_device.GpuDynamicPstatesInfo(nvml.nvmlGpuDynamicPstatesInfo_t())[0],
    ),
    Row(
        "system._snapshot.ProcessInfo",
        lambda o: system_device.ProcessInfo(system.Device(index=0), nvml.nvmlProcessInfo_v2_t(pid=3)),
    ),
    Row("system._events.RegisteredSystemEvents", lambda o: o.enter(system_events_or_skip("bind"))),
]


def name_of(cls: type) -> str:
    """Return module and class, below the package."""
    return f"{cls.__module__}.{cls.__qualname__}".removeprefix("cuda_core_cffi.")


def find_classes() -> Iterator[type]:
    """Return every class of the package, but for those that it is built with."""
    for module in pkgutil.walk_packages(cuda_core_cffi.__path__, "cuda_core_cffi."):
        if module.name.rpartition(".")[2].startswith("lib") or "__main__" in module.name:
            continue
        for found in vars(importlib.import_module(module.name)).values():
            if isinstance(found, type) and found.__module__ == module.name:
                yield found


CLASSES = {name_of(cls): cls for cls in find_classes()}
