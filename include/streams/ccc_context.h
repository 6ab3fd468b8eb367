// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Contexts: which one an operation runs in.
//
// An operation of a device runs in the context that is current, if that belongs to the device: so a context which
// another library made current is picked up and shared. Otherwise it runs in the device's primary context, made
// current for just this call.
#ifndef CCC_CONTEXT_H
#define CCC_CONTEXT_H

#include "streams/ccc_green.h"

static atomic_int ccc_device_known;  // ccc_current_device has found one, and so the functions of the driver for it

// In the child of fork() there is no driver to ask.
static void ccc_context_after_fork(void) { atomic_store(&ccc_device_known, 0); }

__attribute__((constructor)) static void ccc_context_watch_fork(void)
{
    pthread_atfork(NULL, NULL, ccc_context_after_fork);
}

// The context that a handle belongs to, through its parents: of an array, or of a level of a mipmapped one.
static ccc_handle *ccc_context_of(const ccc_handle *handle)
{
    ccc_handle *context = handle->parent;
    while (context && context->kind != CCC_CONTEXT)
        context = context->parent;
    return context;
}

// A use of the handle for a context that is current. NULL on failure.
static ccc_handle *ccc_context_handle(CUcontext context)
{
    CUdevice device = -1;
    CCC_TRY_OR(NULL, cuCtxGetDevice, &device);
    ccc_handle *handle =
        device < CCC_MAX_DEVICES ? atomic_load_explicit(&ccc_primary[device], memory_order_acquire) : NULL;
    if (handle == NULL) {
        // Made current by another library, which as a rule uses the primary one.
        unsigned int flags;
        int active = 0;
        if (cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active)
            handle = ccc_primary_context(device);
    }
    if (handle && CCC_CTX(handle) == context) {
        ccc_retain(handle);
        return handle;
    }
    if ((handle = ccc_green_find(context)))
        return handle;
    handle = ccc_new(CCC_CONTEXT, (uintptr_t)context, CCC_BORROWED, NULL);
    if (handle) {
        handle->device = device;
        ccc_release_memory(handle);  // no Python object holds it
    }
    return handle;
}

// A use of the handle for the current context. NULL with status 0 in *status when none is current.
static ccc_handle *ccc_current_context(int *status)
{
    CUcontext context = NULL;
    *status = ccc_init();
    if (*status)
        return NULL;
    CUresult result = cuCtxGetCurrent(&context);
    if (result || context == NULL) {
        *status = result ? ccc_fail((int)result, "cuCtxGetCurrent") : 0;
        return NULL;
    }
    ccc_handle *handle = ccc_context_handle(context);
    *status = handle ? 0 : ccc_last_status();
    return handle;
}

// The same where a context is needed, for the driver function `call`. NULL on failure.
static ccc_handle *ccc_needed_context(const char *call)
{
    int status;
    ccc_handle *context = ccc_current_context(&status);
    if (context == NULL && status == 0)
        ccc_fail(CCC_NO_CONTEXT, call);
    return context;
}

static int ccc_ask_device(void)
{
    CUcontext context = NULL;
    CUdevice device = -1;
    const char *call = "cuCtxGetCurrent";
    CUresult result = cuCtxGetCurrent(&context);
    if (result == CUDA_SUCCESS && context) {
        call = "cuCtxGetDevice";
        result = cuCtxGetDevice(&device);
    }
    if (CCC_LIKELY(result == CUDA_SUCCESS))
        return device;
    ccc_fail((int)result, call);
    return -1000;
}

// The ordinal of the current context's device: -1 when none is current, else -1000 on failure.
static int ccc_current_device(void)
{
    int device = ccc_init() ? -1000 : ccc_ask_device();
    if (device >= 0)
        atomic_store_explicit(&ccc_device_known, 1, memory_order_release);
    return device;
}

// The same, or -1 before ccc_current_device has found a device: so the driver is started, and the two functions are
// found. They read what this thread has current, and wait for nothing: the GIL is kept.
static int ccc_device_now(void)
{
    return CCC_LIKELY(atomic_load_explicit(&ccc_device_known, memory_order_acquire)) ? ccc_ask_device() : -1;
}

// A context entered for the length of one call.
typedef struct ccc_scope {
    ccc_handle *context;  // what is current now, one use of it; NULL after a failure
    int pushed;
} ccc_scope;

// Make the former context current again. Returns as ccc_restored does.
static int ccc_left(ccc_scope *scope, int status)
{
    if (CCC_LIKELY(!scope->pushed))
        return status;
    scope->pushed = 0;
    return ccc_restored(1, status);
}

// The same for an operation that has made a handle, or NULL. Returns the handle, or destroys it and returns NULL.
static ccc_handle *ccc_left_with(ccc_scope *scope, ccc_handle *made)
{
    if (CCC_LIKELY(!scope->pushed))
        return made;
    int status = ccc_left(scope, made ? 0 : ccc_last_status());
    if (made == NULL || status == 0)
        return made;
    ccc_release_object(made);
    return NULL;
}

// The end of a scope, where the operation has failed, or ccc_left was called.
static void ccc_leave(ccc_scope *scope)
{
    ccc_left(scope, CUDA_ERROR_UNKNOWN);
    ccc_release(scope->context);
}

// Make a context of the device current. Returns a status.
static int ccc_enter(ccc_scope *scope, CUdevice device)
{
    CUcontext current = NULL;
    *scope = (ccc_scope){NULL, 0};
    int status = ccc_init();
    if (status)
        return status;
    CCC_TRY(cuCtxGetCurrent, &current);
    ccc_handle *usual = device >= 0 && device < CCC_MAX_DEVICES
                            ? atomic_load_explicit(&ccc_primary[device], memory_order_acquire)
                            : NULL;
    if (CCC_LIKELY(usual && current == CCC_CTX(usual))) {  // without asking the driver for its device
        scope->context = usual;
        return 0;
    }
    scope->context = current ? ccc_context_handle(current) : NULL;
    if (current && scope->context == NULL)
        return ccc_last_status();
    if (scope->context && scope->context->device == device)
        return 0;
    ccc_release(scope->context);
    scope->context = ccc_primary_context(device);
    if (scope->context == NULL)
        return ccc_last_status();
    ccc_retain(scope->context);
    CUresult result = cuCtxPushCurrent(CCC_CTX(scope->context));
    if (result) {
        ccc_release(scope->context);
        scope->context = NULL;
        return ccc_fail((int)result, "cuCtxPushCurrent");
    }
    scope->pushed = 1;
    return 0;
}

// Make a context current, if there is one given and another one is. Returns a status.
static int ccc_enter_context(ccc_scope *scope, const ccc_handle *context)
{
    CUcontext current = NULL;
    *scope = (ccc_scope){NULL, 0};
    if (context == NULL)
        return 0;
    CCC_TRY(cuCtxGetCurrent, &current);
    if (current == CCC_CTX(context))
        return 0;
    CCC_TRY(cuCtxPushCurrent, CCC_CTX(context));
    scope->pushed = 1;
    return 0;
}

// From here to the end of the scope what a call makes current stays so, unless that fails: then the function returns
// `otherwise`, or the status. A function that succeeds returns through ccc_left or ccc_left_with, which fail if
// the former context cannot be made current again.
#define CCC_SCOPE_OR(otherwise, scope, enter) \
    __attribute__((cleanup(ccc_leave))) ccc_scope scope = {NULL, 0}; \
    if (enter) \
    return otherwise
#define CCC_SCOPE(scope, enter) CCC_SCOPE_OR(ccc_last_status(), scope, enter)

// Make a context current if none is, for a call that needs one whatever it is. Returns a status.
static int ccc_enter_any(ccc_scope *scope)
{
    CUcontext current = NULL;
    CUdevice device = 0;
    *scope = (ccc_scope){NULL, 0};
    int status = ccc_init();
    if (status)
        return status;
    CCC_TRY(cuCtxGetCurrent, &current);
    if (current)
        return 0;
    while (device < CCC_MAX_DEVICES && atomic_load_explicit(&ccc_primary[device], memory_order_acquire) == NULL)
        device++;
    return ccc_enter(scope, device < CCC_MAX_DEVICES ? device : 0);
}

// Make the context current for this thread, in place of whatever is.
static int ccc_set_current(ccc_handle *context)
{
    CCC_USE(context);
    CCC_TRY(cuCtxSetCurrent, CCC_CTX(context));
    ccc_green_stay(context);
    return 0;
}

// The current context as a handle for a new Python object; NULL with ccc_last_status() 0 when there is none.
static ccc_handle *ccc_context_current(void)
{
    int status;
    ccc_handle *handle = ccc_current_context(&status);
    if (handle == NULL) {
        if (status == 0)
            ccc_last.status = 0;
        return NULL;
    }
    ccc_handle *view = ccc_view(handle);
    ccc_release(handle);
    return view;
}

static int ccc_device_replace(int device)
{
    ccc_handle *handle = ccc_primary_context(device);
    if (handle == NULL)
        return ccc_last_status();
    CCC_TRY(cuCtxSetCurrent, CCC_CTX(handle));
    return 0;
}

// Make a device's primary context current.
static int ccc_device_set_current(int device)
{
    int status = ccc_device_replace(device);
    if (status == 0)
        ccc_green_leave();
    return status;
}

// Make a device's primary context current. Returns what was, for ccc_restore_current: 0 for none, UINT64_MAX on
// failure. It is replaced, not pushed on: then what runs in between may unbind contexts, which takes one from the
// driver's stack.
static uint64_t ccc_device_replace_current(int device)
{
    CUcontext previous = NULL;
    if (ccc_init())
        return UINT64_MAX;
    CCC_TRY_OR(UINT64_MAX, cuCtxGetCurrent, &previous);
    return ccc_device_replace(device) ? UINT64_MAX : (uint64_t)(uintptr_t)previous;
}

static int ccc_restore_current(uint64_t previous)
{
    CCC_TRY(cuCtxSetCurrent, (CUcontext)(uintptr_t)previous);
    ccc_green_leave();
    return 0;
}

// The context that work on a device uses, as a handle for a new Python object.
static ccc_handle *ccc_device_context(int device)
{
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
    return ccc_left_with(&scope, ccc_view(scope.context));
}

static int ccc_device_priorities(int device, int *least, int *greatest)
{
    CCC_SCOPE(scope, ccc_enter(&scope, device));
    CCC_TRY(cuCtxGetStreamPriorityRange, least, greatest);
    return ccc_left(&scope, 0);
}

// 0: done. On the simulated driver CUDA_ERROR_NOT_READY at times: see ccc_slice_begin.
static int ccc_device_sync_slice(int device, int resumes)
{
    CCC_SCOPE(scope, ccc_enter(&scope, device));
    ccc_slice_begin(resumes);
    CUresult status = cuCtxSynchronize();
    ccc_slice_end();
    return ccc_left(&scope, status == CUDA_SUCCESS ? 0 : ccc_fail((int)status, "cuCtxSynchronize"));
}

#endif
