// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The driver, found at run time: one pointer per function, filled on first use.
//
// Nothing here is linked against libcuda. A function is looked up under the CUDA version that brought the signature
// we compiled against, and only if the installed driver is at least that new: asked for more than it knows, a driver
// may answer with an older signature and report success (libcuda 550 does so for cuCtxCreate at 13000).
#ifndef CCC_TABLE_H
#define CCC_TABLE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "driver/ccc_error.h"

// Why a function could not be called.
typedef enum ccc_reason {
    CCC_AVAILABLE = 0,
    CCC_NO_LIBRARY,       // no driver library could be loaded
    CCC_DRIVER_TOO_OLD,   // older than the oldest we support, so nothing works
    CCC_FUNCTION_NEWER,   // the function came with a later driver
    CCC_FUNCTION_ABSENT,  // the driver is new enough, and still does not have it
    CCC_NOT_BUILT,        // the header that this was built with does not have it
    CCC_FORKED            // the driver was in use before fork(), and does not survive it
} ccc_reason;

#define CCC_OLDEST_DRIVER 12000
#define CCC_SIMULATOR "simulator/libcuda_core_cffi_simulator.so"

// Define a lock. In the child of fork() the thread that held it, if any, is not there: it is free.
#define CCC_LOCK(name) \
    static pthread_mutex_t name; \
    static void name##_free(void) \
    { \
        static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER; \
        name = unlocked; \
    } \
    __attribute__((constructor)) static void name##_watch_fork(void) { pthread_atfork(NULL, NULL, name##_free); } \
    static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER

typedef struct ccc_function {
    const char *name;
    const char *base;
    int legacy[2];      // versions with this signature, newest first, for the legacy default stream
    int per_thread[2];  // the same for the per-thread default stream
} ccc_function;

typedef struct ccc_missing {
    ccc_reason reason;
    const char *function;
    int needed;  // CUDA version, as 1000 * major + 10 * minor
    CUresult status;
} ccc_missing;

typedef CUresult (*ccc_init_function)(unsigned int);

static struct {
    pthread_mutex_t lock;
    void *library;
    atomic_int loaded;  // 1: usable; -1: tried and failed, see reason. This and what follows is read without the lock
    _Atomic(ccc_reason) reason;
    atomic_int version;
    atomic_int per_thread;
    atomic_int used;      // cuInit succeeded
    atomic_int starting;  // calls of cuInit under way
    char chosen[PATH_MAX];
    char name[PATH_MAX + 64];
    char error[PATH_MAX + 256];
    CUresult (*get_proc)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    _Atomic(ccc_init_function) init;
    // Of the simulated driver only: the milliseconds that a wait of this thread may last, and whether it resumes one
    void (*slice)(unsigned int, int);
} ccc_driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local ccc_missing ccc_last_missing;

static void *ccc_resolve(int index);
static inline void *ccc_entry(int index);

// What a shim returns when its function is not there; ccc_missing_* says why.
static CCC_COLD CUresult ccc_unavailable_status(void) { return ccc_last_missing.status; }

// Choose the library before the first driver call: a path, "system" or "simulator". Returns 0 when it is too late.
static int ccc_driver_choose(const char *name)
{
    pthread_mutex_lock(&ccc_driver.lock);
    int early = ccc_driver.loaded != 1;
    if (early) {
        snprintf(ccc_driver.chosen, sizeof ccc_driver.chosen, "%s", name);
        ccc_driver.loaded = 0;
    }
    pthread_mutex_unlock(&ccc_driver.lock);
    return early;
}

// Write the name that dlopen gets.
static void ccc_driver_find(char *name, size_t size)
{
    const char *wanted = ccc_driver.chosen[0] ? ccc_driver.chosen : getenv("CUDA_CORE_CFFI_DRIVER");
    if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "system") == 0) {
        snprintf(name, size, "libcuda.so.1");
    } else if (strcmp(wanted, "simulator") == 0) {
        // it lies beside this extension
        Dl_info info;
        const char *slash = NULL;
        if (dladdr((void *)&ccc_driver, &info) && info.dli_fname)
            slash = strrchr(info.dli_fname, '/');
        int folder = slash ? (int)(slash - info.dli_fname) + 1 : 0;
        snprintf(name, size, "%.*s" CCC_SIMULATOR, folder, folder ? info.dli_fname : "");
    } else {
        snprintf(name, size, "%s", wanted);
    }
}

// Open the library and find the functions that find the others. The lock is held.
static CCC_COLD void ccc_driver_load(void)
{
    CUresult (*get_version)(int *);
    int version = 0;
    const char *per_thread = getenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM");

    ccc_driver_find(ccc_driver.name, sizeof ccc_driver.name);
    ccc_driver.per_thread = per_thread && strcmp(per_thread, "1") == 0;
    ccc_driver.loaded = -1;
    ccc_driver.library = dlopen(ccc_driver.name, RTLD_NOW | RTLD_LOCAL);
    if (ccc_driver.library == NULL) {
        snprintf(ccc_driver.error, sizeof ccc_driver.error, "%s", dlerror());
        ccc_driver.reason = CCC_NO_LIBRARY;
        return;
    }
    *(void **)&get_version = dlsym(ccc_driver.library, "cuDriverGetVersion");
    *(void **)&ccc_driver.get_proc = dlsym(ccc_driver.library, "cuGetProcAddress_v2");
    *(void **)&ccc_driver.slice = dlsym(ccc_driver.library, "cudaSimSlice");
    if (get_version == NULL || get_version(&version) != CUDA_SUCCESS) {
        snprintf(ccc_driver.error, sizeof ccc_driver.error, "%s is no CUDA driver", ccc_driver.name);
        ccc_driver.reason = CCC_NO_LIBRARY;
        return;
    }
    ccc_driver.version = version;
    if (version < CCC_OLDEST_DRIVER || ccc_driver.get_proc == NULL) {
        ccc_driver.reason = CCC_DRIVER_TOO_OLD;
        return;
    }
    ccc_driver.reason = CCC_AVAILABLE;
    ccc_driver.loaded = 1;
}

// Say why a function is not there.
static CCC_COLD void *ccc_miss(ccc_reason reason, const char *function, int needed)
{
    static const CUresult status[] = {
        [CCC_NO_LIBRARY] = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
        [CCC_DRIVER_TOO_OLD] = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
        [CCC_FUNCTION_NEWER] = CUDA_ERROR_NOT_SUPPORTED,
        [CCC_FUNCTION_ABSENT] = CUDA_ERROR_NOT_SUPPORTED,
        [CCC_NOT_BUILT] = CUDA_ERROR_NOT_SUPPORTED,
        [CCC_FORKED] = CUDA_ERROR_NOT_INITIALIZED,
    };
    ccc_last_missing = (ccc_missing){reason, function, needed, status[reason]};
    return NULL;
}

// cuInit, watched: what fork() must know is whether the driver was started.
static CUresult CUDAAPI ccc_watched_init(unsigned int flags)
{
    ccc_init_function init = ccc_driver.init;
    ccc_driver.starting++;
    CUresult status = init(flags);
    if (status == CUDA_SUCCESS)
        ccc_driver.used = 1;
    ccc_driver.starting--;
    return status;
}

static int ccc_driver_version(void) { return ccc_driver.loaded == 1 ? ccc_driver.version : 0; }

static int ccc_driver_used(void) { return ccc_driver.used; }

static const char *ccc_driver_name(void) { return ccc_driver.name; }

// A kernel of the simulated driver may never end, and Ctrl-C has to reach a program that waits for it. Between these
// two calls, a function that synchronises returns CUDA_ERROR_NOT_READY after CCC_SLICE milliseconds. Python then runs
// the handlers of signals, and calls again with `resumes`, for the work that has not been waited for.
#define CCC_SLICE 100

static inline void ccc_slice_begin(int resumes)
{
    if (ccc_driver.slice != NULL)
        ccc_driver.slice(CCC_SLICE, resumes);
}

static inline void ccc_slice_end(void)
{
    if (ccc_driver.slice != NULL)
        ccc_driver.slice(0, 0);
}

static const char *ccc_driver_error(void) { return ccc_driver.error; }

static int ccc_driver_per_thread(void) { return ccc_driver.per_thread; }

static const ccc_missing *ccc_missing_last(void) { return &ccc_last_missing; }

static void ccc_missing_clear(void) { ccc_last_missing.reason = CCC_AVAILABLE; }

#include "ccc_table_rows.h"  // generated: ccc_functions, ccc_table and the shims

static inline void *ccc_entry(int index)
{
    void *address = atomic_load_explicit(&ccc_table[index], memory_order_acquire);
    return CCC_LIKELY(address != NULL) ? address : ccc_resolve(index);
}

static CCC_COLD void *ccc_resolve(int index)
{
    const ccc_function *function = &ccc_functions[index];
    void *address = NULL;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

    pthread_mutex_lock(&ccc_driver.lock);
    if (ccc_driver.loaded == 0)
        ccc_driver_load();
    ccc_reason reason = ccc_driver.reason;
    pthread_mutex_unlock(&ccc_driver.lock);
    if (reason != CCC_AVAILABLE)
        return ccc_miss(reason, function->name, CCC_OLDEST_DRIVER);

    const int *versions = ccc_driver.per_thread ? function->per_thread : function->legacy;
    cuuint64_t flags =
        ccc_driver.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    int needed = versions[0];
    if (needed > ccc_driver.version && versions[1])
        needed = versions[1];
    if (needed > ccc_driver.version)
        return ccc_miss(CCC_FUNCTION_NEWER, function->name, versions[0]);
    if (ccc_driver.get_proc(function->base, &address, needed, flags, &found) != CUDA_SUCCESS || address == NULL)
        return ccc_miss(CCC_FUNCTION_ABSENT, function->name, needed);
    if (strcmp(function->base, "cuInit") == 0) {
        ccc_init_function init;
        *(void **)&init = address;
        ccc_driver.init = init;
        ccc_init_function watched = ccc_watched_init;
        address = *(void **)&watched;
    }
    atomic_store_explicit(&ccc_table[index], address, memory_order_release);
    return address;
}

// Whether the driver, which this loads, is the simulated one.
static int ccc_driver_simulated(void)
{
    if (ccc_driver.loaded == 0) {
        pthread_mutex_lock(&ccc_driver.lock);
        if (ccc_driver.loaded == 0)
            ccc_driver_load();
        pthread_mutex_unlock(&ccc_driver.lock);
    }
    return ccc_driver.loaded == 1 && ccc_driver.slice != NULL;
}

// In the child of fork(): a driver that was in use is unusable there, as is one that another thread was starting. Make
// every call say so instead of crash or hang. One that another thread was loading is loaded anew.
static void ccc_after_fork(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    ccc_driver.lock = unlocked;
    atomic_flag_clear(&ccc_cleanup_lock);
    if (ccc_driver.loaded < 0)
        ccc_driver.loaded = 0;
    if (!ccc_driver.used && !ccc_driver.starting)
        return;
    ccc_driver.reason = CCC_FORKED;
    for (int index = 0; index < CCC_TABLE_SIZE; ++index)
        atomic_store_explicit(&ccc_table[index], NULL, memory_order_relaxed);
}

__attribute__((constructor)) static void ccc_watch_fork(void) { pthread_atfork(NULL, NULL, ccc_after_fork); }

#endif
