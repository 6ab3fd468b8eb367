# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Code that builds on the package: its header, its CFFI declarations, its functions for C."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
import subprocess
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from compiling import CC, cuda_include

import cuda_core_cffi
from cuda_core_cffi import Device, Stream, ffi, get_c_api, get_include, lib, live_objects, make_ffi

NAME = "_cuda_core_cffi_test_extension"

CDEF = """
uintptr_t address_of_stream(CUstream stream);
uintptr_t address_of_event(CUevent event);
uint64_t twice(CUdeviceptr pointer);
int is_context(CUcontext context);
CUresult same_status(CUresult status);
int set_api(uintptr_t api);
int kind_of(uintptr_t c_handle);
uint64_t handle_of(uintptr_t c_handle);
size_t bytes_of(uintptr_t c_handle);
int keep(uintptr_t c_handle);
void let_go(uintptr_t c_handle);
void let_go_in_a_thread(uintptr_t c_handle);
"""
SOURCE = """
#include <pthread.h>
#include <cuda.h>
#include "cuda_core_cffi.h"

static const ccc_api *api;

static uintptr_t address_of_stream(CUstream stream) { return (uintptr_t)stream; }
static uintptr_t address_of_event(CUevent event) { return (uintptr_t)event; }
static uint64_t twice(CUdeviceptr pointer) { return 2 * pointer; }
static int is_context(CUcontext context) { return context != NULL; }
static CUresult same_status(CUresult status) { return status; }

static int set_api(uintptr_t address)
{
    api = (const ccc_api *)address;
    return api->size == sizeof(ccc_api);
}

static int kind_of(uintptr_t c_handle) { return api->kind((const ccc_handle *)c_handle); }
static uint64_t handle_of(uintptr_t c_handle) { return api->value((const ccc_handle *)c_handle); }
static size_t bytes_of(uintptr_t c_handle) { return api->bytes((const ccc_handle *)c_handle); }
static int keep(uintptr_t c_handle) { return api->retain((ccc_handle *)c_handle); }
static void let_go(uintptr_t c_handle) { api->release((ccc_handle *)c_handle); }

static void *release_there(void *c_handle)
{
    api->release(c_handle);
    return NULL;
}

static void let_go_in_a_thread(uintptr_t c_handle)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, release_there, (void *)c_handle) == 0)
        pthread_join(thread, NULL);
}
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Build what a user would build, and import it."""
    include = cuda_include()
    pytest.importorskip("setuptools", reason="cffi compiles with it")
    cffi = pytest.importorskip("cffi")
    folder = tmp_path_factory.mktemp("extension")
    builder = cffi.FFI()
    builder.include(make_ffi())
    builder.cdef(CDEF)
    builder.set_source(NAME, SOURCE, include_dirs=[str(include), get_include()])
    spec = importlib.util.spec_from_file_location(NAME, builder.compile(tmpdir=str(folder)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def api(extension: ModuleType) -> Any:
    """Return the extension's functions, which know ours."""
    assert extension.lib.set_api(get_c_api())
    return extension.lib


# the header


def test_get_include_is_the_folder_of_the_header() -> None:
    assert (pathlib.Path(get_include()) / "cuda_core_cffi.h").is_file()
    assert pathlib.Path(get_include()).parent == pathlib.Path(cuda_core_cffi.__file__).parent


@pytest.mark.parametrize(("compiler", "language"), [(CC, "c"), ("g++", "c++")], ids=["c", "c++"])
def test_the_header_compiles_without_warnings(tmp_path: pathlib.Path, compiler: str, language: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no compiler {compiler!r}")
    source = tmp_path / "use.x"
    source.write_text(
        '#include "cuda_core_cffi.h"\n#include "cuda_core_cffi.h"\n'
        "size_t use(const ccc_api *api, ccc_handle *c_handle)\n"
        "{ return api->retain(c_handle) ? api->bytes(c_handle) + (size_t)api->kind(c_handle) : (size_t)CCC_KINDS; }\n"
    )
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{get_include()}"]
    done = subprocess.run(
        [compiler, *flags, "-isystem", str(cuda_include()), "-x", language, str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_header_agrees_with_the_module(tmp_path: pathlib.Path) -> None:
    """The numbers of the kinds that C code is compiled with are those of the module."""
    names = list(ffi.typeof("ccc_kind").relements)
    source, program = tmp_path / "kinds.c", tmp_path / "kinds"
    prints = "".join(f'printf("{name} %d\\n", {name});' for name in names)
    source.write_text(
        f'#include <stdio.h>\n#include "cuda_core_cffi.h"\n'
        f'int main(void) {{ {prints} printf("%zu\\n", sizeof(ccc_api)); }}\n'
    )
    subprocess.run([CC, f"-I{get_include()}", f"-I{cuda_include()}", str(source), "-o", str(program)], check=True)
    *kinds, size = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert kinds == [f"{name} {getattr(lib, name)}" for name in names]
    assert int(size) == lib.ccc_get_api().size


# typed handles in another extension


def test_make_ffi_has_every_declaration_of_the_driver() -> None:
    pytest.importorskip("pycparser", reason="the compile-time half of cffi needs it")
    builder = make_ffi()
    assert builder.typeof("CUstream").kind == "pointer"
    assert builder.typeof("CUDA_MEMCPY3D").kind == "struct"


def test_make_ffi_has_the_types_of_nvml_on_request() -> None:
    pytest.importorskip("pycparser", reason="the compile-time half of cffi needs it")
    builder = make_ffi(nvml=True)
    assert builder.typeof("nvmlDevice_t").kind == "pointer"
    assert builder.typeof("nvmlMemory_v2_t").kind == "struct"
    assert builder.typeof("CUstream").kind == "pointer"
    with pytest.raises(Exception, match="nvmlDevice_t"):
        make_ffi().typeof("nvmlDevice_t")


def test_an_extension_takes_types_of_nvml(tmp_path: pathlib.Path) -> None:
    """It is compiled with an nvml.h of its own, and gets structures of ours by pointer."""
    cuda_include()
    cffi = pytest.importorskip("cffi")
    import cuda_headers

    types = make_ffi(nvml=True)
    named = [name for name in types.list_types()[0] if name.startswith("nvml")]
    assert "nvmlMemory_v2_t" in named
    headers = {folder: (folder / "nvml.h").read_text() for folder in cuda_headers.nvml_include_dirs()}
    folders = [folder for folder, header in headers.items() if all(name in header for name in named)]
    if not folders:
        pytest.skip("no nvml.h found that is as new as that of this build")
    builder = cffi.FFI()
    builder.include(types)
    builder.cdef("unsigned long long used(nvmlMemory_v2_t *memory, nvmlDevice_t device);")
    source = """
    #include <cuda.h>
    #include <nvml.h>
    static unsigned long long used(nvmlMemory_v2_t *memory, nvmlDevice_t device)
    {
        return memory->used + (device != NULL);
    }
    """
    builder.set_source("_with_nvml", source, include_dirs=[str(cuda_include()), str(folders[-1])])
    spec = importlib.util.spec_from_file_location("_with_nvml", builder.compile(tmpdir=str(tmp_path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    memory = cuda_core_cffi.ffi.new("nvmlMemory_v2_t *", {"used": 41})
    assert module.lib.used(memory, cuda_core_cffi.ffi.cast("nvmlDevice_t", 16)) == 42


def test_any_cuda_h_will_do(tmp_path: pathlib.Path) -> None:
    cuda_include()
    cffi = pytest.importorskip("cffi")
    import cuda_headers

    for number, include in enumerate(cuda_headers.include_dirs()):
        builder = cffi.FFI()
        builder.include(make_ffi())
        builder.cdef("CUresult use(CUstream stream, const CUDA_MEMCPY3D *copy, CUstreamCallback callback);")
        source = (
            "#include <cuda.h>\n"
            "CUresult use(CUstream stream, const CUDA_MEMCPY3D *copy, CUstreamCallback callback)\n"
            "{ callback(stream, CUDA_SUCCESS, NULL); return copy ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }\n"
        )
        builder.set_source(
            f"_cuda_core_cffi_any_header_{number}",
            source,
            include_dirs=[str(include)],
            extra_compile_args=["-Werror=incompatible-pointer-types"],
        )
        assert builder.compile(tmpdir=str(tmp_path))


def test_a_typed_stream_is_taken_without_a_cast(extension: ModuleType, stream: Stream) -> None:
    assert extension.lib.address_of_stream(stream.cdata) == stream.handle


def test_a_typed_event_is_taken_without_a_cast(extension: ModuleType, device: Device) -> None:
    with device.create_event() as event:
        assert extension.lib.address_of_event(event.cdata) == event.handle


def test_a_buffers_address_is_taken_without_a_cast(extension: ModuleType, device: Device, stream: Stream) -> None:
    with device.allocate(64, stream) as buffer:
        assert extension.lib.twice(buffer.cdata) == 2 * buffer.handle
        assert extension.lib.twice(buffer.handle) == 2 * buffer.handle


def test_a_typed_context_is_taken_without_a_cast(extension: ModuleType, device: Device) -> None:
    assert extension.lib.is_context(device.context.cdata) == 1


def test_a_handle_of_another_type_is_refused(extension: ModuleType, device: Device, stream: Stream) -> None:
    with pytest.raises(TypeError):
        extension.lib.address_of_event(stream.cdata)


def test_types_are_the_same_in_both(extension: ModuleType) -> None:
    for name in ("CUstream", "CUevent", "CUcontext", "CUDA_MEMCPY3D *", "CUlaunchConfig"):
        assert extension.ffi.typeof(name) is ffi.typeof(name)


def test_the_drivers_functions_and_constants_come_along(extension: ModuleType) -> None:
    assert extension.lib.same_status(lib.CUDA_ERROR_NOT_READY) == 600
    assert extension.lib.cuDriverGetVersion is lib.cuDriverGetVersion
    assert extension.lib.CUDA_ERROR_NOT_READY == 600


# C handles in C


def test_the_api_says_how_large_it_is(extension: ModuleType) -> None:
    assert extension.lib.set_api(get_c_api()) == 1


def test_c_reads_what_a_box_holds(api: Any, device: Device, stream: Stream) -> None:
    with device.allocate(192, stream) as buffer, device.create_event() as event:
        c_handles = [item.c_handle for item in (stream, event, buffer, device.context)]
        kept = [device.context]  # its C handle goes with the object
        assert [api.kind_of(item) for item in c_handles[:3]] == [lib.CCC_STREAM, lib.CCC_EVENT, lib.CCC_BUFFER]
        assert api.kind_of(kept[0].c_handle) == lib.CCC_CONTEXT
        assert api.handle_of(stream.c_handle) == stream.handle
        assert api.handle_of(buffer.c_handle) == buffer.handle
        assert (api.bytes_of(buffer.c_handle), api.bytes_of(stream.c_handle)) == (192, 0)


MAKERS: dict[str, Callable[[Device, Stream], Any]] = {
    "stream": lambda device, stream: device.create_stream(),
    "event": lambda device, stream: stream.record(),
    "buffer": lambda device, stream: device.allocate(64, stream),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("end", ["close", "collect"])
@pytest.mark.parametrize("release", ["let_go", "let_go_in_a_thread"])
def test_what_c_retains_lives_until_c_releases_it(
    api: Any, device: Device, stream: Stream, kind: str, end: str, release: str
) -> None:
    import gc

    before = live_objects()[kind]
    item = MAKERS[kind](device, stream)
    c_handle = item.c_handle
    assert api.keep(c_handle) == 1
    if end == "close":
        item.close()
        assert item.is_closed
    del item
    for _ in range(3):
        gc.collect()
    assert live_objects()[kind] == before + 1
    getattr(api, release)(c_handle)
    assert live_objects()[kind] == before


def test_a_buffer_that_c_retains_keeps_its_memory(api: Any, device: Device, stream: Stream) -> None:
    buffer = device.allocate(64, stream)
    address, c_handle = buffer.handle, buffer.c_handle
    api.keep(c_handle)
    buffer.close()
    assert lib.cuMemsetD8Async(address, 7, 64, stream.cdata) == 0
    stream.sync()
    api.let_go(c_handle)


def test_null_is_no_box(api: Any) -> None:
    assert api.kind_of(0) == lib.CCC_KINDS
    assert (api.handle_of(0), api.bytes_of(0), api.keep(0)) == (0, 0, 0)
    api.let_go(0)
    api.let_go_in_a_thread(0)


def test_a_closed_box_has_no_handle_in_c(api: Any, device: Device) -> None:
    event = device.create_event()
    event.close()
    assert api.handle_of(event.c_handle) == 0


def test_a_closed_box_cannot_be_retained(api: Any, device: Device) -> None:
    event = device.create_event()
    event.close()
    assert api.keep(event.c_handle) == 0


def test_a_default_stream_can_be_retained_and_released(api: Any, device: Device) -> None:
    c_handle = device.default_stream.c_handle
    for _ in range(3):
        assert api.keep(c_handle) == 1
        api.let_go(c_handle)
    device.default_stream.sync()


def test_c_and_python_may_let_go_at_once(api: Any, device: Device) -> None:
    before = live_objects()
    barrier = threading.Barrier(2, timeout=60)
    events = [device.create_event() for _ in range(300)]
    for event in events:
        assert api.keep(event.c_handle) == 1

    def release() -> None:
        for event in events:
            barrier.wait()
            api.let_go(event.c_handle)

    thread = threading.Thread(target=release)
    thread.start()
    for event in events:
        barrier.wait()
        event.close()
    thread.join()
    assert live_objects() == before
