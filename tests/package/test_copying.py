# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What copying, deep-copying and pickling do with an object of each class of the package."""

from __future__ import annotations

import copy
import enum
import gc
import pickle
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from copied_objects import ACTIONS, CLASSES, ROWS, SIZE, Objects, name_of

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    CUDAError,
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    MemoryResource,
    PreparedLaunch,
    Stream,
    ffi,
    launch,
)
from cuda_core_cffi._raw.types import Handle as DriverHandle
from cuda_core_cffi._raw.types import Record
from cuda_core_cffi.driver import CUlaunchAttribute, CUlaunchConfig, CUmemLocation, CUmemPoolProps
from cuda_core_cffi.utils import (
    ProgramCacheResource,
    TrackingMemoryResource,
)


@pytest.fixture
def objects(device: Device, stream: Stream, tmp_path: Path) -> Iterator[Objects]:
    """Return what objects of many classes are made from."""
    with ExitStack() as stack:
        yield Objects(stack, device, stream, tmp_path)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_object_is_copied_as_its_class_says(row, action, objects):
    item = row.make(objects)
    assert name_of(type(item)) == row.name
    expected = {"copied": row.copied, "deep-copied": row.deep, "pickled": row.pickled}[action]
    expected(item, ACTIONS[action], row.same)


# Every class is in the table

# What programs get no object of: bases, protocols, descriptors, and what is used within the package. The base
# ProgramCacheResource is for subclasses that users write. A GraphicsResource needs OpenGL: test_graphics.py copies one.
INTERNAL = {
    "_memory.graphics.GraphicsResource",
    "_alias.install.CoreDistribution", "_alias.install.CoreFinder", "_alias.install.Loader",
    "_alias.install.NamespaceFinder", "_alias.modules.Alias", "_alias.modules.Core", "_alias.modules.Utilities",
    "_core.python_calls.DeviceFinder", "_core.python_calls.Devices", "_core.python_calls.ElapsedOperand",
    "_core.python_calls.Memory", "_core.python_calls.Owner",
    "_core.copying.NoConstructor",
    "_code.elf.Elf", "_code.kernel.KnownKernel", "_code.kernel.Library", "_code.object_code._Wrapper",
    "_code.kernel.LoadableCode", "_code.mangling._Symbol",
    "_compile.compiler.Compiler", "_compile.driver_linker.DriverLinker", "_compile.link_backend.LinkBackend",
    "_compile.nvjitlink.NvJitLink", "_compile.nvrtc.NVRTC", "_compile.nvvm.NVVM", "_compile.nvvm_ir._Bits",
    "_compile.program_cache.ProgramCacheResource", "_compile.ptx.PTX", "_compile.resolved_options.ResolvedOptions",
    "_compile.source_file.SourceFile",
    "_core.copying.Uncopyable", "_core.descriptors.Descriptor", "_core.handle.Handle", "_core.handle.InUse",
    "_core.handle.Use", "_core.compiled_packing.ArgumentMemory", "_core.compiled_packing.FastPacker",
    "_core.registry.Registry",
    "_device.device.Blocks", "_device.device.CallSignature",
    "_device.properties.BoolProperty", "_device.properties.DeprecatedProperty", "_device.properties.IntProperty",
    "_launching.arguments.Packer", "_launching.bindless.Bindless", "_launching.config.Extra",
    "_launching.prepared.Plan",
    "_lifetime.references.Releaser", "_lifetime.host_memory.HostReference",
    "_lifetime.pending_calls.Unraisable", "_lifetime.table.Table",
    "_memory.exporter.Exporter", "_memory.exporter.HostBytes", "_memory.ipc.IPCPool", "_memory.ipc.Share",
    "_memory.memory_owner.MemoryOwner", "_memory.pool.MemPool", "_memory.pool.PoolView",
    "_memory.virtual_options.Plan", "_raw.convert.Pointers",
    "_raw.types.AddressField", "_raw.types.BytesField", "_raw.types.EnumField", "_raw.types.Field",
    "_raw.types.FloatField", "_raw.types.HandleField", "_raw.types.IntField", "_raw.types.ListField",
    "_raw.types.Payload", "_raw.types.RecordField", "_raw.types.RecordListField", "_raw.types.SequenceField",
    "_streams.stream.StreamStandIn",
    "graph.allocated.Ranges", "graph.builder.Capture", "graph.builder.CaptureEnd", "graph.node_maker.NodeMaker",
    "graph.nodes.ConditionalNode", "graph.nodes.EventNode", "graph.nodes.Field",
    "graph.nodes.KnownNode", "graph.parameters.Parameters", "graph.state.GraphHandle", "graph.state.GraphState",
    "graph.state.Member", "graph.state.Record", "graph.views.ExecutableEventNode", "graph.views.SwitchableNode",
    "simulator._RawReport", "system._enumerators.Enumerators", "system._events.EventSet",
    "system._snapshot.Aspect", "system._snapshot.Items",
    "system._library.NumberReader", "system._library.Process",
    "system._nvlink.NvlinkInfoType", "system._report.DeviceReport", "system._report.ProcessReport",
    "system._report.Report", "system._snapshot.OfDevice", "system._snapshot.Part", "system._snapshot.Snapshot",
    "texture._array.ArrayBase", "texture._array.Description", "typing.IsStreamType",
}  # fmt: skip
if sys.implementation.name == "cpython":
    INTERNAL |= {f"_calls.{name}" for name in ("DeviceFinder", "ElapsedOperand", "Memory", "Owner")}


ENUMERATIONS = [cls for cls in CLASSES.values() if issubclass(cls, enum.Enum) and len(cls)]
TUPLES = [cls for cls in CLASSES.values() if issubclass(cls, tuple)]
ERRORS = [cls for cls in CLASSES.values() if issubclass(cls, Exception)]
STRUCTURES = [cls for cls in CLASSES.values() if issubclass(cls, Record)]
HANDLES = [cls for cls in CLASSES.values() if issubclass(cls, DriverHandle)]
TESTED_BY_KIND = {name_of(cls) for cls in (*ENUMERATIONS, *TUPLES, *ERRORS, *STRUCTURES, *HANDLES)}


def test_every_class_is_listed():
    listed = {row.name for row in ROWS} | INTERNAL
    assert sorted(CLASSES.keys() - TESTED_BY_KIND - listed) == []
    assert sorted(listed - CLASSES.keys()) == []


# Kinds of classes


@pytest.mark.parametrize("action", ACTIONS)
def test_members_of_enumerations_are_their_own_copies(action):
    assert all(ACTIONS[action](member) is member for kind in ENUMERATIONS for member in kind)


@pytest.mark.parametrize("action", ACTIONS)
def test_named_tuples_are_values(action):
    for kind in TUPLES:
        item = kind(*range(len(kind._fields)))
        assert ACTIONS[action](item) == item
        assert type(ACTIONS[action](item)) is kind


@pytest.mark.parametrize("action", ACTIONS)
def test_exceptions_keep_what_they_say(action):
    for kind in ERRORS:
        error = kind("text")
        if isinstance(error, CUDAError):
            error.call, error.status, error.name = "cuInit", 1, "CUDA_ERROR_INVALID_VALUE"
        other = ACTIONS[action](error)
        assert (type(other), str(other), vars(other)) == (kind, "text", vars(error))


@pytest.mark.parametrize("action", ACTIONS)
def test_handles_of_the_driver_module_are_values(action):
    for kind in HANDLES:
        other = ACTIONS[action](kind(5))
        assert (type(other), other) == (kind, 5)


# Structures of the driver module


@pytest.mark.parametrize("action", [copy.copy, copy.deepcopy])
def test_a_structure_is_copied_with_its_bytes(action):
    for kind in STRUCTURES:
        if not kind._ctype:
            continue
        item = kind()
        item_bytes = ffi.buffer(item._cdata)
        item_bytes[0] = b"\1"
        other = action(item)
        assert other == item
        item_bytes[0] = b"\2"
        assert other != item, kind


def test_a_structure_is_not_pickled():
    with pytest.raises(TypeError, match="CUmemLocation cannot be pickled"):
        pickle.dumps(CUmemLocation(id=1))


def test_a_copied_view_is_a_structure_of_its_own():
    whole = CUmemPoolProps(location=CUmemLocation(id=1))
    part = copy.deepcopy(whole.location)
    whole.location.id = 2
    assert (part.id, whole.location.id) == (1, 2)
    assert copy.deepcopy(whole).location.id == 2


def test_the_copy_of_a_structure_keeps_what_its_pointers_point_to():
    config = CUlaunchConfig(attrs=[CUlaunchAttribute(id=2)], numAttrs=1)
    other = copy.copy(config)
    del config
    gc.collect()
    assert other.attrs[0].id == 2
    with pytest.raises(TypeError, match="CUlaunchConfig has pointers"):
        copy.deepcopy(other)


# What copies share, and what they do not


def test_a_tracking_resource_that_refused_to_be_copied_still_tracks(device, stream):
    pool = DeviceMemoryResource(device)
    tracking = TrackingMemoryResource(pool, limit=SIZE)
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="TrackingMemoryResource cannot be pickled or copied"):
            action(tracking)
    gc.collect()
    with tracking.allocate(SIZE, stream):
        assert tracking.statistics.current_bytes == SIZE
    assert tracking.statistics.current_bytes == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_configuration_changes_by_itself(stream, objects, copied):
    config = LaunchConfig(grid=2, block=4, priority=0)
    PreparedLaunch(config, objects.kernel, Buffer, np.uint32)  # makes the native structure
    other = copied(config)
    other.grid, other.priority = (3,), None
    assert (config.grid, config.priority) == ((2, 1, 1), 0)
    assert (other.grid, other.priority) == ((3, 1, 1), None)
    with objects.buffer as buffer:
        launch(stream, other, objects.kernel, buffer, 1)
        stream.sync()


class NamedConfig(LaunchConfig):
    """A configuration with an attribute of a subclass."""

    label: list[int]


def test_attributes_of_a_subclass_are_copied_with_a_configuration():
    config = NamedConfig(grid=1, block=1)
    config.label = [1]
    shallow, deep = copy.copy(config), copy.deepcopy(config)
    assert (type(shallow), type(deep)) == (NamedConfig, NamedConfig)
    assert shallow.label is config.label
    assert deep.label == config.label
    assert deep.label is not config.label


def test_the_default_streams_are_pickled_by_name():
    for stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
        assert len(pickle.dumps(stream)) < 100


# Classes that users write


class WrittenResource(MemoryResource):
    """A resource with attributes of its own."""

    is_device_accessible = False
    is_host_accessible = True
    device_id = -1

    def __init__(self, options: dict[str, int]) -> None:
        self.options = options


class WrittenCache(ProgramCacheResource):
    """A cache of which copies share nothing that would have to be shared."""

    def __init__(self, entries: dict[bytes, bytes]) -> None:
        self.options = entries

    def __getitem__(self, key):
        return self.options[key]

    def __setitem__(self, key, value):
        self.options[key] = value

    def __delitem__(self, key):
        del self.options[key]

    def __len__(self):
        return len(self.options)

    def clear(self):
        self.options.clear()


@pytest.mark.parametrize("written", [WrittenResource, WrittenCache])
def test_objects_of_classes_that_users_write_are_copied_as_python_does(written):
    item = written({"size": 1})
    assert copy.copy(item).options is item.options
    for action in (copy.deepcopy, ACTIONS["pickled"]):
        assert action(item).options == item.options
        assert action(item).options is not item.options


class WrittenTracking(TrackingMemoryResource):
    """A subclass that says how it is copied."""

    def __copy__(self) -> WrittenTracking:
        return WrittenTracking(self.upstream, limit=self.limit)


def test_a_subclass_may_say_how_it_is_copied(device, stream):
    item = WrittenTracking(DeviceMemoryResource(device), limit=SIZE)
    other = copy.copy(item)
    assert (type(other), other.limit) == (WrittenTracking, SIZE)
    with item.allocate(SIZE, stream):
        assert (item.statistics.current_bytes, other.statistics.current_bytes) == (SIZE, 0)
    with pytest.raises(TypeError, match="WrittenTracking cannot be pickled or copied"):
        copy.deepcopy(item)
