// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Launches: configurations, and the one call that starts a kernel.
#ifndef CCC_LAUNCH_H
#define CCC_LAUNCH_H

#include "code/ccc_shared_memory.h"
#include "launch/ccc_target.h"
#include "streams/ccc_stream.h"

#define CCC_MAX_LAUNCH_ATTRIBUTES 16
#define CCC_MAX_LAUNCH_OBJECTS 4
#define CCC_DEVICE_WORDS (CCC_MAX_DEVICES / 64)

// There is something that a device may lack, or an object that may be closed.
#define CCC_DEMANDS_DEVICE 1
// There is more dynamic shared memory than a kernel may have without its attribute.
#define CCC_DEMANDS_SHARED 2

// A launch configuration as the driver takes it, all but the stream: made once for each Python LaunchConfig.
struct ccc_config {
    CUlaunchConfig driver;
    int demanding;    // CCC_DEMANDS_*: checks before a launch
    uint32_t shared;  // bytes that the attribute of a kernel has to allow; 0: no attribute is needed
    int object_count;
    CUlaunchAttribute attributes[CCC_MAX_LAUNCH_ATTRIBUTES];
    ccc_handle *objects[CCC_MAX_LAUNCH_OBJECTS];  // what the attributes refer to
    _Atomic(uint64_t) able[CCC_DEVICE_WORDS];     // a bit for each device that was found to have all of it
};

// An attribute refers to this object: its memory stays readable until ccc_config_end, whoever closes it.
static void ccc_config_refer(ccc_config *config, ccc_handle *object)
{
    atomic_fetch_add_explicit(&object->memory_uses, 1, memory_order_relaxed);
    config->objects[config->object_count++] = object;
}

static void ccc_config_end(ccc_config *config)
{
    while (config->object_count > 0)
        ccc_release_memory(config->objects[--config->object_count]);
}

// The device has all that the configuration asks for.
static void ccc_config_allow(ccc_config *config, int device)
{
    if (device >= 0 && device < CCC_MAX_DEVICES)
        atomic_fetch_or_explicit(&config->able[device / 64], UINT64_C(1) << device % 64, memory_order_relaxed);
}

// Whether an object was closed.
static int ccc_config_stale(const ccc_config *config)
{
    for (int i = 0; i < config->object_count; i++)
        if (!ccc_is_open(config->objects[i]))
            return 1;
    return 0;
}

// Find the device that a stream is of. Returns a status.
static int ccc_launch_device(const ccc_handle *stream, int *device)
{
    *device = stream->device;
    if (*device < 0) {
        ccc_handle *home = ccc_stream_home((ccc_handle *)stream);
        if (home == NULL)
            return ccc_last_status();
        *device = home->device;
        ccc_release(home);
    }
    return *device < 0 || *device >= CCC_MAX_DEVICES ? ccc_fail(CUDA_ERROR_INVALID_DEVICE, "cuLaunchKernelEx") : 0;
}

// Have the kernel's attribute allow the dynamic shared memory that a configuration asks for. Returns a status.
static CCC_COLD int ccc_launch_allow_shared(const ccc_config *config, const ccc_handle *kernel,
                                            const ccc_handle *stream)
{
    int device;
    int status = config->shared ? ccc_launch_device(stream, &device) : 0;
    return config->shared && status == 0 ? ccc_shared_allow((ccc_handle *)kernel, device, config->shared) : status;
}

// Whether a launch that was refused can be tried again, because the kernel's attribute allowed too little: that of a
// kernel with static shared memory, or one that another library has set.
static CCC_COLD int ccc_launch_again(CUresult result, const ccc_config *config, const ccc_handle *kernel,
                                     const ccc_handle *stream)
{
    const CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int device, allowed = 0;
    if (result != CUDA_ERROR_INVALID_VALUE || config->shared == 0 || ccc_launch_device(stream, &device) ||
        cuKernelGetAttribute(&allowed, attribute, (CUkernel)CCC_POINTER(kernel), device) ||
        (uint32_t)allowed >= config->shared)
        return 0;
    atomic_store(&((ccc_kernel *)kernel)->shared, 0);
    return ccc_shared_allow((ccc_handle *)kernel, device, config->shared) == 0;
}

// 0 if a launch can be tried; CCC_UNCHECKED if the configuration is stale, or was not yet allowed on the device.
static int ccc_config_ready(const ccc_config *config, const ccc_handle *kernel, const ccc_handle *stream)
{
    if (config->demanding & CCC_DEMANDS_DEVICE) {
        int device = -1;
        int status = ccc_config_stale(config) ? CCC_UNCHECKED : ccc_launch_device(stream, &device);
        if (status)
            return status;
        if (!(atomic_load_explicit(&config->able[device / 64], memory_order_relaxed) >> device % 64 & 1))
            return CCC_UNCHECKED;
    }
    return config->demanding & CCC_DEMANDS_SHARED ? ccc_launch_allow_shared(config, kernel, stream) : 0;
}

// What a launch that is captured uses.
static CCC_COLD int ccc_launch_captured(const ccc_config *config, const ccc_handle *kernel, const ccc_handle *stream,
                                        ccc_handle *const *objects, size_t count)
{
    ccc_handle *const code = (ccc_handle *)kernel;
    int status = ccc_launch_allow_shared(config, kernel, stream);  // a launch that fails may end the capture
    if (status == 0)
        status = ccc_capture_objects(stream, &code, 1);
    if (status == 0)
        status = ccc_capture_objects(stream, objects, count);
    if (status == 0)
        status = ccc_capture_objects(stream, config->objects, (size_t)config->object_count);
    return status;
}

// The same as below for a caller who has a use of everything but the configuration's objects.
static int ccc_launch_in(const ccc_config *config, const ccc_handle *kernel, const ccc_handle *stream,
                         const char *arguments, size_t size, ccc_handle *const *objects, size_t count)
{
    if (config->demanding) {
        int status = ccc_config_ready(config, kernel, stream);
        if (status)
            return status;
        if (!ccc_acquire_all(config->objects, (size_t)config->object_count))
            return CCC_UNCHECKED;
    }
    if (!CCC_LIKELY((stream->flags & CCC_TOKEN) == 0))
        atomic_store_explicit(&ccc_default_used, 1, memory_order_relaxed);
    CUlaunchConfig driver = config->driver;
    driver.hStream = CCC_STRM(stream);
    driver.attrs = (CUlaunchAttribute *)config->attributes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    int captured = ccc_capturing() ? ccc_launch_captured(config, kernel, stream, objects, count) : 0;
    if (!CCC_LIKELY(captured == 0)) {
        ccc_release_all(config->objects, (size_t)config->object_count);
        return captured;
    }
    CCC_SUBMIT;
    CUresult result = cuLaunchKernelEx(&driver, (CUfunction)CCC_POINTER(kernel), NULL, size ? extra : NULL);
    if (!CCC_LIKELY(result == CUDA_SUCCESS) && ccc_launch_again(result, config, kernel, stream))
        result = cuLaunchKernelEx(&driver, (CUfunction)CCC_POINTER(kernel), NULL, size ? extra : NULL);
    if (config->object_count)
        ccc_release_all(config->objects, (size_t)config->object_count);
    return CCC_LIKELY(result == CUDA_SUCCESS) ? 0 : ccc_fail((int)result, "cuLaunchKernelEx");
}

// Store the addresses of buffers, and the handles of textures and surfaces, at these offsets of arguments that are
// packed but for them. CCC_CLOSED for other objects, and closed ones.
static int ccc_store_objects(char *arguments, ccc_handle *const *objects, const uint32_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const ccc_handle *object = objects[i];
        if (!ccc_is_open(object) ||
            (object->kind != CCC_BUFFER && object->kind != CCC_TEXTURE && object->kind != CCC_SURFACE))
            return CCC_CLOSED;
        memcpy(arguments + places[i], &object->value, sizeof object->value);
    }
    return 0;
}

// Start a kernel. `arguments` is the packed parameter buffer, and `objects` are the buffers and textures whose
// addresses and numbers are in it, or come to these places: they are not destroyed before the launch, whatever other
// threads close. The configuration is shared by every thread that launches with it, so the stream goes into a copy.
static int ccc_launch(const ccc_target *target, const ccc_config *config, const ccc_handle *stream, char *arguments,
                      ccc_handle *const *objects, const uint32_t *places, size_t count)
{
    if (stream->kind != CCC_STREAM)
        return CCC_CLOSED;  // for Python to look at
    CCC_USE(stream);
    CCC_USE(target->kernel);
    if (!ccc_acquire_all(objects, count))
        return CCC_CLOSED;
    int status = places ? ccc_store_objects(arguments, objects, places, count) : 0;
    if (status == 0)
        status = ccc_launch_in(config, target->kernel, stream, arguments, target->size, objects, count);
    ccc_release_all(objects, count);
    return status;
}

#endif
