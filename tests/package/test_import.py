# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What importing the package brings along, and the names that come when they are asked for."""

from __future__ import annotations

import pickle
import sys
import sysconfig
from typing import Any

import pytest
from helpers import output_of

import cuda_core_cffi
from cuda_core_cffi import _memory

ENUMERATIONS = "cuda_core_cffi.typing.enumerations"
# Each takes milliseconds to import, of the sixty at most that the package may take.
HEAVY = {
    *("cffi", "ctypes", "cuda", "dataclasses", "difflib", "hashlib", "importlib.metadata", "importlib.resources"),
    *("inspect", "logging", "ml_dtypes", "multiprocessing", "numpy", "pathlib", "platform", "pycparser", "random"),
    *("shutil", "subprocess", "tempfile", "uuid", "cuda_core_cffi._streams.resources", ENUMERATIONS),
}
LATE = [
    "AccessPolicyWindow", "ContextOptions", "DeviceMemoryResourceOptions", "DeviceResources", "EventOptions", "Kernel",
    "LaunchBatch", "LaunchConfig", "Linker", "LinkerOptions", "ManagedMemoryResource", "ManagedMemoryResourceOptions",
    "MemSyncDomainMap", "ObjectCode", "PinnedMemoryResource", "PinnedMemoryResourceOptions", "PreparedLaunch",
    "Program", "ProgramOptions", "ProgrammaticEvent", "SMResource", "SMResourceOptions", "StreamOptions",
    "VirtualMemoryBuffer", "VirtualMemoryIPCBufferDescriptor", "VirtualMemoryResource", "VirtualMemoryResourceOptions",
    "WorkqueueResource", "WorkqueueResourceOptions", "get_c_api", "get_include", "launch", "make_ffi",
]  # fmt: skip
CURRENT = "device = cuda_core_cffi.Device(0); device.set_current()"


def modules_after(code: str) -> set[str]:
    """Return the modules that code leaves imported in a fresh process."""
    return set(output_of(f"import sys\n{code}\nprint(*sys.modules)").split())


@pytest.mark.parametrize(
    "use",
    [
        "",
        "cuda_core_cffi.Device(0)",
        f"{CURRENT}; stream = device.create_stream(); stream.record().sync()",
        f"{CURRENT}; device.allocate(64, stream=device.default_stream).close()",
    ],
    ids=["import", "first device", "first stream and event", "first buffer"],
)
def test_the_package_imports_nothing_heavy(use: str) -> None:
    imported = modules_after(f"import cuda_core_cffi\n{use}") - modules_after("")
    assert imported >= {"cuda_core_cffi", "cuda_core_cffi._device.device"}
    assert sorted(imported & HEAVY) == []


def test_launching_and_compiling_import_nothing_heavy_either() -> None:
    imported = modules_after("from cuda_core_cffi import Program, launch") - modules_after("")
    assert imported >= {"cuda_core_cffi._compile.program", "cuda_core_cffi._launching.launch"}
    assert sorted(imported & HEAVY - {"dataclasses", "difflib", "inspect", ENUMERATIONS}) == []


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python cannot do without the GIL")
def test_importing_everything_leaves_the_gil_off() -> None:
    found = output_of(
        """
        import sys
        import cuda_core_cffi.driver, cuda_core_cffi.graph, cuda_core_cffi.simulator, cuda_core_cffi.utils
        for name in cuda_core_cffi.__all__:
            getattr(cuda_core_cffi, name)
        print(sys._is_gil_enabled())
        """,
        PYTHON_GIL=None,
    )
    assert found == "False"


def test_lazy_names_come_when_they_are_asked_for() -> None:
    found = output_of(
        f"""
        import cuda_core_cffi
        late = {LATE}
        print([name for name in late if name in vars(cuda_core_cffi)], set(late) <= set(dir(cuda_core_cffi)))
        for name in late:
            assert getattr(cuda_core_cffi, name) is vars(cuda_core_cffi)[name], name
        """
    )
    assert found == "[] True"


@pytest.mark.parametrize("package", [cuda_core_cffi, _memory], ids=lambda package: package.__name__)
def test_every_public_name_is_there(package: Any) -> None:
    assert sorted(package.__all__) == sorted(set(package.__all__))
    for name in package.__all__:
        assert name in dir(package)
        assert getattr(package, name) is not None
    names: dict[str, Any] = {}
    exec(f"from {package.__name__} import *", names)
    assert set(package.__all__) <= set(names)


@pytest.mark.parametrize("package", ["cuda_core_cffi", "cuda_core_cffi._memory"])
def test_a_name_that_is_not_there_is_pythons_usual_error(package: str) -> None:
    module = sys.modules[package]
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Devise'"):
        _ = module.Devise
    with pytest.raises(ImportError, match="cannot import name 'Devise'"):
        exec(f"from {package} import Devise", {})
    assert not hasattr(module, "__wrapped__")


def test_late_classes_can_be_pickled() -> None:
    for kind in (cuda_core_cffi.ProgramOptions, cuda_core_cffi.LinkerOptions, cuda_core_cffi.LaunchConfig):
        assert pickle.loads(pickle.dumps(kind)) is kind
