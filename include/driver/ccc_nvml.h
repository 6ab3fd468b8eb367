/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML, found at run time: one pointer per function, filled on first use.
 *
 * It is the library that belongs to the driver in use: the system's, or the simulated one, which is in the file of the
 * simulated driver.
 */
#ifndef CCC_NVML_H
#define CCC_NVML_H

#include "driver/ccc_table.h"

#include <nvml.h>

#define CCC_NVML_LIBRARY "libnvidia-ml.so.1"

static struct {
    pthread_mutex_t lock;
    void *library;
    char name[PATH_MAX + 64];
    char error[PATH_MAX + 256];
} ccc_nvml = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local nvmlReturn_t ccc_nvml_status;

static void *ccc_nvml_entry(unsigned int function);

/* What a call returns whose function is not there. */
static CCC_COLD int ccc_nvml_missing_status(void)
{
    return (int)ccc_nvml_status;
}

#include "ccc_nvml_rows.h" /* generated: ccc_nvml_names, and a function for each shape */

static _Atomic(void *) ccc_nvml_table[CCC_NVML_SIZE];

/* Open a library. Returns whether it is NVML; if not, ccc_nvml.error says why. The lock is held. */
static int ccc_nvml_open(void)
{
    ccc_nvml.library = dlopen(ccc_nvml.name, RTLD_NOW | RTLD_LOCAL);
    if (ccc_nvml.library == NULL) {
        snprintf(ccc_nvml.error, sizeof ccc_nvml.error, "%s", dlerror());
    } else if (dlsym(ccc_nvml.library, "nvmlInit_v2") == NULL) {
        snprintf(ccc_nvml.error, sizeof ccc_nvml.error, "%s has no nvmlInit_v2", ccc_nvml.name);
        ccc_nvml.library = NULL; /* and stays open: it may be the driver */
    }
    return ccc_nvml.library != NULL;
}

/*
 * Find the library. Where the driver is named by its path, NVML is in the same file, as the simulated one is, or beside
 * it; else the system has it. The simulated devices have no other NVML. The lock is held.
 */
static CCC_COLD void ccc_nvml_load(void)
{
    char driver[sizeof ccc_nvml.name];
    pthread_mutex_lock(&ccc_driver.lock);
    ccc_driver_find(driver, sizeof driver);
    pthread_mutex_unlock(&ccc_driver.lock);
    const char *slash = strrchr(driver, '/');
    if (slash) {
        snprintf(ccc_nvml.name, sizeof ccc_nvml.name, "%s", driver);
        if (ccc_nvml_open() || strstr(driver, CCC_SIMULATOR))
            return;
        snprintf(ccc_nvml.name, sizeof ccc_nvml.name, "%.*s/" CCC_NVML_LIBRARY, (int)(slash - driver), driver);
        if (ccc_nvml_open())
            return;
    }
    snprintf(ccc_nvml.name, sizeof ccc_nvml.name, CCC_NVML_LIBRARY);
    ccc_nvml_open();
}

static CCC_COLD void *ccc_nvml_resolve(unsigned int function)
{
    pthread_mutex_lock(&ccc_nvml.lock);
    if (ccc_nvml.library == NULL)
        ccc_nvml_load();
    void *address = ccc_nvml.library ? dlsym(ccc_nvml.library, ccc_nvml_names[function]) : NULL;
    ccc_nvml_status = ccc_nvml.library ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_ERROR_LIBRARY_NOT_FOUND;
    pthread_mutex_unlock(&ccc_nvml.lock);
    if (address)
        atomic_store_explicit(&ccc_nvml_table[function], address, memory_order_release);
    return address;
}

/* Return the address of a function, or NULL where the library or the function is missing. */
static void *ccc_nvml_entry(unsigned int function)
{
    if (function >= CCC_NVML_SIZE) {
        ccc_nvml_status = NVML_ERROR_INVALID_ARGUMENT;
        return NULL;
    }
    void *address = atomic_load_explicit(&ccc_nvml_table[function], memory_order_acquire);
    return CCC_LIKELY(address != NULL) ? address : ccc_nvml_resolve(function);
}

/* Return the number of a function, for the calls below; one that has no address where the header lacks it. */
static unsigned int ccc_nvml_find(const char *name)
{
    unsigned int function = 0;
    while (function < CCC_NVML_SIZE && strcmp(ccc_nvml_names[function], name))
        function++;
    return function;
}

/*
 * What programs ask for again and again, an object being a handle: calls with the output in C, which Python need not make
 * and read. ccc_nvml_number returns a number of 32 bits, or the status, negative; an argument is what it is the number of.
 */
static int64_t ccc_nvml_number(unsigned int function, uintptr_t object)
{
    void *address = ccc_nvml_entry(function);
    unsigned int number = 0;
    nvmlReturn_t status = CCC_LIKELY(address != NULL)
                              ? ((nvmlReturn_t (*)(void *, unsigned int *))address)((void *)object, &number)
                              : ccc_nvml_status;
    return status ? -(int64_t)status : (int64_t)number;
}

static int64_t ccc_nvml_number_of(unsigned int function, uintptr_t object, unsigned int argument)
{
    void *address = ccc_nvml_entry(function);
    unsigned int number = 0;
    nvmlReturn_t status =
        CCC_LIKELY(address != NULL)
            ? ((nvmlReturn_t (*)(void *, unsigned int, unsigned int *))address)((void *)object, argument, &number)
            : ccc_nvml_status;
    return status ? -(int64_t)status : (int64_t)number;
}

static int64_t ccc_nvml_number_of_two(unsigned int function, uintptr_t object, unsigned int first, unsigned int second)
{
    void *address = ccc_nvml_entry(function);
    unsigned int number = 0;
    nvmlReturn_t status = CCC_LIKELY(address != NULL)
                              ? ((nvmlReturn_t (*)(void *, unsigned int, unsigned int, unsigned int *))address)(
                                    (void *)object, first, second, &number)
                              : ccc_nvml_status;
    return status ? -(int64_t)status : (int64_t)number;
}

/* Fill a structure. Where it states its version, that is its first member; 0 where it does not. */
static int ccc_nvml_fill(unsigned int function, uintptr_t object, void *structure, unsigned int version)
{
    void *address = ccc_nvml_entry(function);
    if (address == NULL)
        return ccc_nvml_missing_status();
    if (version)
        *(unsigned int *)structure = version;
    return (int)((nvmlReturn_t (*)(void *, void *))address)((void *)object, structure);
}

static int ccc_nvml_text(unsigned int function, uintptr_t object, char *text, unsigned int size)
{
    void *address = ccc_nvml_entry(function);
    if (address == NULL)
        return ccc_nvml_missing_status();
    return (int)((nvmlReturn_t (*)(void *, char *, unsigned int))address)((void *)object, text, size);
}

/* What NVML says of a status, or NULL where there is no library. */
static const char *ccc_nvml_error_string(int status)
{
    const char *(*explain)(nvmlReturn_t);
    ccc_nvml_entry(0); /* loads the library */
    *(void **)&explain = ccc_nvml.library ? dlsym(ccc_nvml.library, "nvmlErrorString") : NULL;
    return explain ? explain((nvmlReturn_t)status) : NULL;
}

/* The library that was loaded, or tried last. */
static const char *ccc_nvml_name(void)
{
    return ccc_nvml.name;
}

/* Why none could be loaded. */
static const char *ccc_nvml_error(void)
{
    return ccc_nvml.error;
}

static void ccc_nvml_after_fork(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    ccc_nvml.lock = unlocked;
}

__attribute__((constructor)) static void ccc_nvml_watch_fork(void)
{
    pthread_atfork(NULL, NULL, ccc_nvml_after_fork);
}

#endif
