# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Libraries, kernels, functions and the linker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from contexts.world import KERNEL, World, case, must, out, out_last, simple, with_place
from cuda_core_cffi._core.ffi import ffi, lib

# code


@case("cuLibraryLoadData")
def library_load(w: World) -> Iterator[Any]:
    place, image, null = ffi.new("CUlibrary *"), ffi.new("char[]", KERNEL), ffi.NULL
    if (yield lambda: lib.cuLibraryLoadData(place, image, null, null, 0, null, null, 0)) == 0:
        must(lib.cuLibraryUnload(place[0]))


@case("cuLibraryUnload")
def library_unload(w: World) -> Iterator[Any]:
    library = w.new_library()
    out("CUmodule *", lib.cuLibraryGetModule, library)
    if (yield lambda: lib.cuLibraryUnload(library)):
        must(lib.cuLibraryUnload(library))


simple("cuLibraryGetKernel", lambda w: lib.cuLibraryGetKernel(ffi.new("CUkernel *"), w.library, b"nothing"))
simple("cuLibraryGetKernel.missing", lambda w: lib.cuLibraryGetKernel(ffi.new("CUkernel *"), w.library, b"missing"))
simple("cuLibraryGetKernelCount", lambda w: lib.cuLibraryGetKernelCount(ffi.new("unsigned int *"), w.library))
simple("cuLibraryEnumerateKernels", lambda w: lib.cuLibraryEnumerateKernels(ffi.new("CUkernel *"), 1, w.library))
simple("cuLibraryGetModule", lambda w: lib.cuLibraryGetModule(ffi.new("CUmodule *"), w.library))
simple(
    "cuLibraryGetGlobal",
    lambda w: lib.cuLibraryGetGlobal(ffi.new("CUdeviceptr *"), ffi.new("size_t *"), w.library, b"counter"),
)
simple(
    "cuLibraryGetManaged.missing",
    lambda w: lib.cuLibraryGetManaged(ffi.new("CUdeviceptr *"), ffi.new("size_t *"), w.library, b"counter"),
)
simple("cuKernelGetFunction", lambda w: lib.cuKernelGetFunction(ffi.new("CUfunction *"), w.kernel))
simple("cuKernelGetLibrary", lambda w: lib.cuKernelGetLibrary(ffi.new("CUlibrary *"), w.kernel))
simple("cuKernelGetName", lambda w: lib.cuKernelGetName(ffi.new("char **"), w.kernel))
simple(
    "cuKernelGetParamInfo.missing",
    lambda w: lib.cuKernelGetParamInfo(w.kernel, 0, ffi.new("size_t *"), ffi.new("size_t *")),
)
simple(
    "cuKernelGetAttribute",
    lambda w: lib.cuKernelGetAttribute(
        ffi.new("int *"), lib.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, w.kernel, w.device
    ),
)
simple(
    "cuKernelSetAttribute",
    lambda w: lib.cuKernelSetAttribute(lib.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, w.kernel, w.device),
)
simple("cuKernelSetCacheConfig", lambda w: lib.cuKernelSetCacheConfig(w.kernel, lib.CU_FUNC_CACHE_PREFER_L1, w.device))
simple("cuModuleGetFunction", lambda w: lib.cuModuleGetFunction(ffi.new("CUfunction *"), w.module, b"nothing"))
with_place(
    "cuModuleLoadData",
    "CUmodule *",
    lambda w, p: lib.cuModuleLoadData(p, w.image),
    lambda w, m: lib.cuModuleUnload(m),
)
FUNCTIONS: dict[str, Callable[[World], Any]] = {
    "function": lambda w: w.function,
    "kernel": lambda w: ffi.cast("CUfunction", w.kernel),
}
FUNCTION_CALLS: dict[str, Callable[[World, Any], int]] = {
    "cuFuncGetAttribute": lambda w, f: lib.cuFuncGetAttribute(
        ffi.new("int *"), lib.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f
    ),
    "cuFuncSetAttribute": lambda w, f: lib.cuFuncSetAttribute(
        f, lib.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024
    ),
    "cuFuncGetName": lambda w, f: lib.cuFuncGetName(ffi.new("char **"), f),
    "cuFuncGetParamInfo.missing": lambda w, f: lib.cuFuncGetParamInfo(f, 0, ffi.new("size_t *"), ffi.new("size_t *")),
    "cuOccupancyAvailableDynamicSMemPerBlock": lambda w, f: lib.cuOccupancyAvailableDynamicSMemPerBlock(
        ffi.new("size_t *"), f, 1, 32
    ),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": lambda w, f: lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ffi.new("int *"), f, 32, 0
    ),
    "cuOccupancyMaxPotentialBlockSize": lambda w, f: lib.cuOccupancyMaxPotentialBlockSize(
        ffi.new("int *"), ffi.new("int *"), f, ffi.NULL, 0, 0
    ),
    "cuOccupancyMaxPotentialClusterSize": lambda w, f: lib.cuOccupancyMaxPotentialClusterSize(
        ffi.new("int *"), f, w.launch_config(w.stream)
    ),
    "cuOccupancyMaxActiveClusters": lambda w, f: max_active_clusters(w, f, w.stream),
    "cuOccupancyMaxActiveClusters.0": lambda w, f: max_active_clusters(w, f, ffi.NULL),
}


def max_active_clusters(w: World, function: Any, stream: Any) -> int:
    config = w.launch_config(stream)
    attribute = ffi.new("CUlaunchAttribute *")
    attribute.id = lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value.clusterDim.x = attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1
    config.attrs, config.numAttrs = attribute, 1
    return lib.cuOccupancyMaxActiveClusters(ffi.new("int *"), function, config)


def add_function_case(call: str, kind: str) -> None:
    simple(f"{call}.{kind}", lambda w: FUNCTION_CALLS[call](w, FUNCTIONS[kind](w)))


for _call in FUNCTION_CALLS:
    for _kind in FUNCTIONS:
        add_function_case(_call, _kind)

with_place(
    "cuLinkCreate",
    "CUlinkState *",
    lambda w, p: lib.cuLinkCreate(0, ffi.NULL, ffi.NULL, p),
    lambda w, s: lib.cuLinkDestroy(s),
)


def link_add(w: World, state: Any) -> int:
    null = ffi.NULL
    return lib.cuLinkAddData(state, lib.CU_JIT_INPUT_PTX, w.image, len(KERNEL) + 1, null, 0, null, null)


@case("cuLinkAddData")
def link_add_data(w: World) -> Iterator[Any]:
    state = out_last("CUlinkState *", lib.cuLinkCreate, 0, ffi.NULL, ffi.NULL)
    yield lambda: link_add(w, state)
    lib.cuLinkDestroy(state)


@case("cuLinkComplete")
def link_complete(w: World) -> Iterator[Any]:
    state = out_last("CUlinkState *", lib.cuLinkCreate, 0, ffi.NULL, ffi.NULL)
    must(link_add(w, state))
    yield lambda: lib.cuLinkComplete(state, ffi.new("void **"), ffi.new("size_t *"))
    lib.cuLinkDestroy(state)


def add_link_destroy_case(name: str, complete: bool) -> None:
    @case(name)
    def link_destroy(w: World) -> Iterator[Any]:
        state = out_last("CUlinkState *", lib.cuLinkCreate, 0, ffi.NULL, ffi.NULL)
        if complete:
            must(link_add(w, state))
            must(lib.cuLinkComplete(state, ffi.new("void **"), ffi.new("size_t *")))
        if (yield lambda: lib.cuLinkDestroy(state)):
            lib.cuLinkDestroy(state)


add_link_destroy_case("cuLinkDestroy", False)
add_link_destroy_case("cuLinkDestroy.complete", True)
