# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The driver that the tests run on, and the watch for leaks.

With ``CUDA_CORE_CFFI_DRIVER`` set, the tests run on that driver. Otherwise they run on the system's, if it finds a GPU,
and else on the simulated one; the first lines that pytest prints say which.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import sys
import time
from collections.abc import Generator, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

import pytest

SOURCES = pathlib.Path(__file__).resolve().parent.parent
MOST_PROCESSES = 8  # with `-n auto`: each has a context on the GPU
if not any((SOURCES / "cuda_core_cffi" / f"_cuda{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    # `python -m pytest` puts the source tree first, where nothing is compiled: test what is installed
    sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != SOURCES]
os.environ["PYTHONSAFEPATH"] = "1"  # nor must a Python that a test starts here find the source tree


def system_driver_has_gpu() -> bool:
    """Tell whether the system has a driver that finds a device."""
    try:
        libcuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return libcuda.cuInit(0) == 0 and libcuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


CHOSEN = os.environ.get("CUDA_CORE_CFFI_DRIVER")
if not CHOSEN:
    CHOSEN = "system" if system_driver_has_gpu() else "simulator"
    os.environ["CUDA_CORE_CFFI_DRIVER"] = CHOSEN

from graphs import SIZE, buffers_alive, wait_for_graphs  # noqa: E402
from helpers import PYPY, collect  # noqa: E402
from scenarios import PTX  # noqa: E402

import cuda_core_cffi  # noqa: E402  (the driver is chosen first)
from cuda_core_cffi import Buffer, Device, ObjectCode, Stream, UnavailableError, lib, live_objects  # noqa: E402
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY  # noqa: E402
from cuda_core_cffi.graph import GraphBuilder, GraphDefinition  # noqa: E402

SIMULATED = CHOSEN == "simulator"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes `-n auto` is."""
    return min(os.cpu_count() or 1, MOST_PROCESSES)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what the tests run on."""
    device = Device(0)
    where = "the SIMULATED driver (no GPU found, or asked for)" if SIMULATED else "a real GPU"
    return [f"cuda-core-cffi {cuda_core_cffi.__version__} on {where}: {device.name}, sm_{device.arch}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what cannot run on this driver, for the reason that its marker gives."""
    marker = "gpu_only" if SIMULATED else "simulator_only"
    for item in items:
        found = item.get_closest_marker(marker)
        if found is not None:
            assert found.args, f"{item.nodeid}: {marker} needs its reason"
            item.add_marker(pytest.mark.skip(reason=f"{marker}: {found.args[0]}"))


def leave_out_of_collections() -> None:
    """Leave what is alive (modules, tests, reports of thousands of tests) out of the collections that tests ask for."""
    if hasattr(gc, "freeze"):  # not on PyPy
        gc.collect()
        gc.freeze()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave out what lives to the end."""
    leave_out_of_collections()


if sys.implementation.name == "pypy":
    import pypyjit

    # While PyPy records what a function does, to compile it, it keeps all that it meets; and if it gives up, until the
    # function returns. With a function of pytest's that calls tests and fixtures, what a test let go of would not go.
    pypyjit.set_param("off")

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Let PyPy compile what a test calls."""
        pypyjit.set_param("default")
        try:
            return (yield)
        finally:
            pypyjit.set_param("off")


KEPT = "kept for graphs"


def alive() -> dict[str, int]:
    """Return how many driver objects of each kind there are, and what is kept for graphs."""
    return {**live_objects(), KEPT: lib.ccc_refs_count()}


def leaked_since(before: dict[str, int]) -> dict[str, int]:
    """Return how many of each kind are alive that were not before; garbage is collected first."""
    wait_for_graphs(before[KEPT])
    after = alive()
    leaked: dict[str, int] = {}
    in_vain = 0  # collections, one after the other, that changed nothing
    for turn in range(21):  # PyPy runs finalizers some time after a collection, and one link of a chain at a time
        leaked = {kind: after[kind] - before[kind] for kind in after if after[kind] > before[kind]}
        # fewer than before: something that a longer-lived fixture let go of, which no collection brings back
        if after == before or (not leaked and in_vain == 2) or turn == 20:
            break
        if turn >= 10:  # what another thread is about to release
            time.sleep(0.05)
        gc.collect()
        wait_for_graphs(before[KEPT])
        previous, after = after, alive()
        in_vain = in_vain + 1 if after == previous else 0
    return leaked


@pytest.fixture(scope="module")
def nvrtc():
    """Skip without a compiler."""
    try:
        NVRTC_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", autouse=True)
def no_leak_of_a_module():
    """Fail a module whose fixtures leave driver objects alive.

    A fixture may have closed a buffer of which a slice is garbage that PyPy has not collected yet. The buffer counts
    until then, which must not be in the middle of another module's test that counts.
    """
    before = alive()
    yield
    leaked = leaked_since(before)
    assert not leaked, f"driver objects leaked: {leaked}"
    leave_out_of_collections()


@pytest.fixture(autouse=True)
def no_leak(request: pytest.FixtureRequest):
    """Fail a test that leaves driver objects alive, or that misuses the simulated driver."""
    before = alive()
    yield
    if request.node.funcargs:  # pytest keeps a module's last ones until it is done; None if interrupted
        request.node.funcargs.clear()
    leaked = leaked_since(before)
    assert not leaked, f"driver objects leaked: {leaked}"
    if SIMULATED:
        from cuda_core_cffi import simulator

        reports = simulator.reports()
        simulator.clear_reports()
        assert not reports, f"misuse of the driver: {reports}"


@pytest.fixture
def buffers_before(device: Device) -> int:
    """Return how many buffers there are before the test."""
    gc.collect()
    return buffers_alive()


@pytest.fixture
def no_virtual_memory_left(device: Device):
    """Fail a test that leaves physical memory, mappings or reservations, where the driver counts them."""
    if not SIMULATED:
        yield
        return
    from cuda_core_cffi import simulator

    kinds = ("physical allocations", "virtual mappings", "address reservations")
    before = [simulator.live()[kind] for kind in kinds]
    yield
    for _ in range(1 + PYPY):  # PyPy collects one link of a chain of objects with finalizers at a time
        collect()
    assert [simulator.live()[kind] for kind in kinds] == before


@pytest.fixture
def device() -> Device:
    """Return device 0, current in this thread."""
    device = Device(0)
    device.set_current()
    return device


@pytest.fixture
def stream(device: Device) -> Stream:
    """Return a stream of device 0."""
    with device.create_stream() as stream:
        yield stream
        stream.sync()


@pytest.fixture
def graph(device: Device) -> Iterator[GraphDefinition]:
    """Return an empty graph."""
    with GraphDefinition() as definition:
        yield definition


@pytest.fixture
def builder(device: Device) -> Iterator[GraphBuilder]:
    """Return a builder with a stream of its own that is building."""
    with device.create_graph_builder() as builder:
        yield builder.begin_building()


@pytest.fixture
def memory(device: Device, stream: Stream) -> Iterator[list[Buffer]]:
    """Return four buffers of zeros."""
    made = [device.allocate(SIZE, stream) for _ in range(4)]
    for buffer in made:
        buffer.fill(0, stream=stream)
    stream.sync()
    yield made
    for buffer in made:
        buffer.close()


@pytest.fixture
def store(device: Device) -> Iterator[Any]:
    """Return a kernel that stores a 32-bit number at an address."""
    with ObjectCode.from_ptx(PTX) as code, code.get_kernel("store") as kernel:
        yield kernel


@pytest.fixture
def is_simulated() -> bool:
    """Tell whether the driver is the simulated one."""
    return SIMULATED
