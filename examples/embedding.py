# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Build a C extension that is handed objects of this package, and works with them in a thread of its own.

The extension fills a buffer in the background. It gets the buffer and a stream from Python, retains the buffer through
``cuda_core_cffi.h``, and returns. Python closes the buffer at once. The memory stays until the thread has filled it,
has copied it to the host, and has released it.

It needs a C compiler, setuptools and pycparser, with which CFFI builds, and a ``cuda.h``: that of a toolkit in
``CUDA_PATH`` or ``CUDA_HOME``, or of the package ``nvidia-cuda-runtime``.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
import tempfile
from typing import Any

import cuda_core_cffi
from cuda_core_cffi import Device, LegacyPinnedMemoryResource, ffi, lib, live_objects

NAME = "_background_fill"
SIZE = 1 << 20

# Types of cuda.h come from make_ffi(): functions take the handles of the driver as they are.
CDEF = """
typedef struct driver {
    CUresult (*set_current)(CUcontext);
    CUresult (*fill)(CUdeviceptr, unsigned char, size_t, CUstream);
    CUresult (*copy_to_host)(void *, CUdeviceptr, size_t, CUstream);
    CUresult (*wait)(CUstream);
} driver;
int start(uintptr_t api, driver functions, uintptr_t buffer, CUcontext context, CUstream stream, void *result);
CUresult finish(void);
"""

SOURCE = """
#include <pthread.h>
#include <stdint.h>
#include <cuda_core_cffi.h>

typedef struct driver {
    CUresult (*set_current)(CUcontext);
    CUresult (*fill)(CUdeviceptr, unsigned char, size_t, CUstream);
    CUresult (*copy_to_host)(void *, CUdeviceptr, size_t, CUstream);
    CUresult (*wait)(CUstream);
} driver;

static struct {
    const ccc_api *api;
    driver driver;
    ccc_handle *buffer;
    CUdeviceptr memory;
    size_t size;
    CUcontext context;
    CUstream stream;
    void *result;
    CUresult status;
    pthread_t thread;
} job;

static void *work(void *nothing)
{
    // The buffer is retained: its memory is there, although Python has closed it.
    (void)nothing;
    job.status = job.driver.set_current(job.context);  // a new thread has no current context
    if (!job.status) job.status = job.driver.fill(job.memory, 42, job.size, job.stream);
    if (!job.status) job.status = job.driver.copy_to_host(job.result, job.memory, job.size, job.stream);
    if (!job.status) job.status = job.driver.wait(job.stream);
    job.api->release(job.buffer);  // now the memory goes back
    return NULL;
}

static int start(uintptr_t api, driver functions, uintptr_t buffer, CUcontext context, CUstream stream, void *result)
{
    job.api = (const ccc_api *)api;
    job.driver = functions;
    job.buffer = (ccc_handle *)buffer;
    job.context = context;
    job.stream = stream;
    job.result = result;
    if (job.api->kind(job.buffer) != CCC_BUFFER || !job.api->retain(job.buffer))
        return 0;  // another object, or a closed one
    job.memory = (CUdeviceptr)job.api->value(job.buffer);  // now: it is 0 once Python has closed the buffer
    job.size = job.api->bytes(job.buffer);
    if (pthread_create(&job.thread, NULL, work, NULL) != 0) {
        job.api->release(job.buffer);
        return 0;
    }
    return 1;
}

static CUresult finish(void)
{
    pthread_join(job.thread, NULL);
    return job.status;
}
"""


def cuda_include() -> str | None:
    """Return the folder of a ``cuda.h``, or None."""
    roots = [os.environ.get(name) for name in ("CUDA_PATH", "CUDA_HOME")]
    folders = [pathlib.Path(root, "include") for root in roots if root]
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations if spec else None) or ():
        folders += pathlib.Path(root).glob("*/include")
    folders.append(pathlib.Path("/usr/local/cuda/include"))
    return next((str(folder) for folder in folders if (folder / "cuda.h").exists()), None)


def build(include: str, folder: str) -> Any:
    """Build the extension in a folder, and import it."""
    import cffi

    builder = cffi.FFI()
    builder.include(cuda_core_cffi.make_ffi())
    builder.cdef(CDEF)
    builder.set_source(NAME, SOURCE, include_dirs=[include, cuda_core_cffi.get_include()], extra_link_args=["-pthread"])
    spec = importlib.util.spec_from_file_location(NAME, builder.compile(tmpdir=folder))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def driver_functions(extension: Any) -> Any:
    """Return the driver's functions that the extension calls: those of the driver that this package uses."""
    functions = {
        "set_current": "cuCtxSetCurrent",
        "fill": "cuMemsetD8Async",
        "copy_to_host": "cuMemcpyDtoHAsync",
        "wait": "cuStreamSynchronize",
    }
    table = extension.ffi.new("driver *")
    types = dict(extension.ffi.typeof("driver").fields)
    for name, function in functions.items():
        address = int(ffi.cast("uintptr_t", ffi.addressof(lib, function)))
        setattr(table, name, extension.ffi.cast(types[name].type, address))
    return table[0]


def main() -> int:
    """Run the job and return the exit status."""
    include = cuda_include()
    if include is None:
        print("no cuda.h: set CUDA_HOME, or pip install nvidia-cuda-runtime")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        extension = build(include, folder)

        device = Device()
        device.set_current()
        stream = device.create_stream()
        buffer = device.allocate(SIZE, stream)
        result = LegacyPinnedMemoryResource().allocate(SIZE)
        memory = ffi.cast("void *", result.handle)
        functions = driver_functions(extension)
        api = cuda_core_cffi.get_c_api()

        started = extension.lib.start(api, functions, buffer.c_handle, device.context.cdata, stream.cdata, memory)
        buffer.close()  # the extension has it
        status = extension.lib.finish()
        filled = started and not status and bytes(ffi.buffer(memory, SIZE)) == b"\x2a" * SIZE
        refused = not extension.lib.start(api, functions, buffer.c_handle, device.context.cdata, stream.cdata, memory)
        result.close()
        stream.close()
        kept = live_objects()["buffer"]
    right = filled and refused and not kept
    print(f"{SIZE:,} bytes filled by a thread in C on {device.name}: {'right' if right else 'wrong'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
