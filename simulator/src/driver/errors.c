// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The names of the errors and a few words on each.

#include "driver/sim.h"

#define ROW(code, text) {code, #code, text}

static const struct {
    CUresult code;
    const char *name, *text;
} rows[] = {
    ROW(CUDA_SUCCESS, "no error"),
    ROW(CUDA_ERROR_INVALID_VALUE, "an argument is invalid"),
    ROW(CUDA_ERROR_OUT_OF_MEMORY, "not enough memory"),
    ROW(CUDA_ERROR_NOT_INITIALIZED, "the driver has not been initialised"),
    ROW(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"),
    ROW(CUDA_ERROR_PROFILER_DISABLED, "the profiler is disabled"),
    ROW(CUDA_ERROR_PROFILER_NOT_INITIALIZED, "the profiler has not been initialised"),
    ROW(CUDA_ERROR_PROFILER_ALREADY_STARTED, "the profiler runs already"),
    ROW(CUDA_ERROR_PROFILER_ALREADY_STOPPED, "the profiler does not run"),
    ROW(CUDA_ERROR_STUB_LIBRARY, "a stub library was loaded instead of the driver"),
    ROW(CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is unavailable"),
    ROW(CUDA_ERROR_NO_DEVICE, "no CUDA device was found"),
    ROW(CUDA_ERROR_INVALID_DEVICE, "the device does not exist"),
    ROW(CUDA_ERROR_DEVICE_NOT_LICENSED, "the device has no licence"),
    ROW(CUDA_ERROR_INVALID_IMAGE, "the kernel image is invalid"),
    ROW(CUDA_ERROR_INVALID_CONTEXT, "no context is current, or it is invalid"),
    ROW(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "the context is current already"),
    ROW(CUDA_ERROR_MAP_FAILED, "mapping failed"),
    ROW(CUDA_ERROR_UNMAP_FAILED, "unmapping failed"),
    ROW(CUDA_ERROR_ARRAY_IS_MAPPED, "the array is mapped"),
    ROW(CUDA_ERROR_ALREADY_MAPPED, "the resource is mapped already"),
    ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image holds no code for this device"),
    ROW(CUDA_ERROR_ALREADY_ACQUIRED, "the resource is acquired already"),
    ROW(CUDA_ERROR_NOT_MAPPED, "the resource is not mapped"),
    ROW(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "the resource is not mapped as an array"),
    ROW(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "the resource is not mapped as a pointer"),
    ROW(CUDA_ERROR_ECC_UNCORRECTABLE, "an uncorrectable memory error occurred"),
    ROW(CUDA_ERROR_UNSUPPORTED_LIMIT, "the device does not have this limit"),
    ROW(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "the context is used by another thread"),
    ROW(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "the devices cannot access each other"),
    ROW(CUDA_ERROR_INVALID_PTX, "the PTX text does not compile"),
    ROW(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "the graphics context is invalid"),
    ROW(CUDA_ERROR_NVLINK_UNCORRECTABLE, "an uncorrectable NVLink error occurred"),
    ROW(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the PTX compiler was not found"),
    ROW(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX version is newer than the compiler"),
    ROW(CUDA_ERROR_JIT_COMPILATION_DISABLED, "PTX compilation is disabled"),
    ROW(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the device has no such execution affinity"),
    ROW(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "the code synchronises on the device in an unsupported way"),
    ROW(CUDA_ERROR_CONTAINED, "an error was contained"),
    ROW(CUDA_ERROR_INVALID_SOURCE, "the kernel source is invalid"),
    ROW(CUDA_ERROR_FILE_NOT_FOUND, "the file was not found"),
    ROW(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "a symbol of a shared object was not found"),
    ROW(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "a shared object failed to start"),
    ROW(CUDA_ERROR_OPERATING_SYSTEM, "an operating system call failed"),
    ROW(CUDA_ERROR_INVALID_HANDLE, "a handle is invalid"),
    ROW(CUDA_ERROR_ILLEGAL_STATE, "the state does not allow the call"),
    ROW(CUDA_ERROR_LOSSY_QUERY, "the query would lose information"),
    ROW(CUDA_ERROR_NOT_FOUND, "the name was not found"),
    ROW(CUDA_ERROR_NOT_READY, "the work is not finished"),
    ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel used memory it may not use"),
    ROW(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch needs more resources than there are"),
    ROW(CUDA_ERROR_LAUNCH_TIMEOUT, "the kernel ran too long"),
    ROW(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "the kernel uses another texturing mode"),
    ROW(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is enabled already"),
    ROW(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
    ROW(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"),
    ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context has been destroyed"),
    ROW(CUDA_ERROR_ASSERT, "an assertion failed in a kernel"),
    ROW(CUDA_ERROR_TOO_MANY_PEERS, "no resources are left for another peer"),
    ROW(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the host memory is registered already"),
    ROW(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the host memory is not registered"),
    ROW(CUDA_ERROR_HARDWARE_STACK_ERROR, "a kernel corrupted its stack"),
    ROW(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a kernel met an illegal instruction"),
    ROW(CUDA_ERROR_MISALIGNED_ADDRESS, "a kernel used a misaligned address"),
    ROW(CUDA_ERROR_INVALID_ADDRESS_SPACE, "a kernel used an address of the wrong space"),
    ROW(CUDA_ERROR_INVALID_PC, "the program counter left the code"),
    ROW(CUDA_ERROR_LAUNCH_FAILED, "a kernel failed"),
    ROW(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "the blocks of a cooperative launch do not fit at once"),
    ROW(CUDA_ERROR_TENSOR_MEMORY_LEAK, "a kernel did not free its tensor memory"),
    ROW(CUDA_ERROR_NOT_PERMITTED, "the call is not permitted"),
    ROW(CUDA_ERROR_NOT_SUPPORTED, "the call is not supported here"),
    ROW(CUDA_ERROR_SYSTEM_NOT_READY, "the system is not ready"),
    ROW(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "the versions of the driver parts differ"),
    ROW(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "the device does not support forward compatibility"),
    ROW(CUDA_ERROR_MPS_CONNECTION_FAILED, "the MPS connection failed"),
    ROW(CUDA_ERROR_MPS_RPC_FAILURE, "an MPS call failed"),
    ROW(CUDA_ERROR_MPS_SERVER_NOT_READY, "the MPS server is not ready"),
    ROW(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "the MPS server has too many clients"),
    ROW(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "the MPS server has too many connections"),
    ROW(CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS server ended the client"),
    ROW(CUDA_ERROR_CDP_NOT_SUPPORTED, "dynamic parallelism is not supported"),
    ROW(CUDA_ERROR_CDP_VERSION_MISMATCH, "the versions of dynamic parallelism differ"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the call cannot be captured"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was invalidated"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would merge"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture did not begin in this stream"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a forked stream was not joined"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a captured stream would depend on work outside"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "a captured stream would depend on the legacy stream"),
    ROW(CUDA_ERROR_CAPTURED_EVENT, "the event belongs to a capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture began in another thread"),
    ROW(CUDA_ERROR_TIMEOUT, "the wait timed out"),
    ROW(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the executable graph cannot be updated that way"),
    ROW(CUDA_ERROR_EXTERNAL_DEVICE, "an external device failed"),
    ROW(CUDA_ERROR_INVALID_CLUSTER_SIZE, "the cluster size is invalid"),
    ROW(CUDA_ERROR_FUNCTION_NOT_LOADED, "the function is not loaded"),
    ROW(CUDA_ERROR_INVALID_RESOURCE_TYPE, "the resource type is invalid"),
    ROW(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "the resource configuration is invalid"),
    ROW(CUDA_ERROR_KEY_ROTATION, "a key is being rotated"),
    ROW(CUDA_ERROR_UNKNOWN, "an unknown error occurred"),
#if CUDA_VERSION >= 13000
    ROW(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "the call needs a newer driver"),
#endif
#if CUDA_VERSION >= 13050
    ROW(CUDA_ERROR_MULTICAST_RESOURCE_FULL, "no multicast resource is left"),
    ROW(CUDA_ERROR_INSUFFICIENT_LOADER_VERSION, "the loader is too old"),
    ROW(CUDA_ERROR_STREAM_DETACHED, "the stream is detached"),
    ROW(CUDA_ERROR_GRAPH_RECAPTURE_FAILURE, "the graph could not be captured again"),
    ROW(CUDA_ERROR_FABRIC_NOT_READY, "the fabric is not ready"),
#endif
};

// These two work before the driver is started, and are no business of traces and faults.

SIM_EXPORT CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    SIM_REQUIRE(pStr);
    *pStr = NULL;
    for (size_t i = 0; i < SIM_COUNT(rows) && !*pStr; i++)
        if (rows[i].code == error)
            *pStr = rows[i].name;
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    SIM_REQUIRE(pStr);
    *pStr = NULL;
    for (size_t i = 0; i < SIM_COUNT(rows) && !*pStr; i++)
        if (rows[i].code == error)
            *pStr = rows[i].text;
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
