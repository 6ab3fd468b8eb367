// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// NVML, found at run time: one pointer per function, filled on first use.
//
// It is the library that belongs to the driver in use: the system's, or the simulated one, which is in the file of the
// simulated driver.
#ifndef CCC_NVML_H
#define CCC_NVML_H

#include "driver/ccc_table.h"

#include <stddef.h>

#include <nvml.h>

// How a function of NVML is called: its parameters, where an object is a handle, and where it writes its answer.
typedef enum ccc_nvml_form {
    CCC_NVML_OUTPUT,         // (object, output *)
    CCC_NVML_OUTPUT_OF,      // (object, unsigned int, output *)
    CCC_NVML_OUTPUT_OF_TWO,  // (object, unsigned int, unsigned int, output *)
    CCC_NVML_TEXT,           // (object, char *, unsigned int size)
} ccc_nvml_form;

// A question: a function, and the form of its answer.
typedef struct ccc_nvml_question {
    ccc_nvml_form form;
    unsigned int function;  // its number
    unsigned int version;   // of the structure, whose first member it is; 0: it states none
    unsigned int size;      // of the answer, in bytes
} ccc_nvml_question;

#define CCC_NVML_LIBRARY "libnvidia-ml.so.1"

CCC_LOCK(ccc_nvml_lock);
static struct {
    void *library;
    char name[PATH_MAX + 64];
    char error[PATH_MAX + 256];
} ccc_nvml;

static _Thread_local nvmlReturn_t ccc_nvml_status;

static void *ccc_nvml_entry(unsigned int function);

// What a call returns whose function is not there.
static CCC_COLD int ccc_nvml_missing_status(void) { return (int)ccc_nvml_status; }

#include "ccc_nvml_rows.h"  // generated: ccc_nvml_names, and a function for each shape

static _Atomic(void *) ccc_nvml_table[CCC_NVML_SIZE];

// Open a library. Returns whether it is NVML; if not, ccc_nvml.error says why. The lock is held.
static int ccc_nvml_open(void)
{
    ccc_nvml.library = dlopen(ccc_nvml.name, RTLD_NOW | RTLD_LOCAL);
    if (ccc_nvml.library == NULL) {
        snprintf(ccc_nvml.error, sizeof ccc_nvml.error, "%s", dlerror());
    } else if (dlsym(ccc_nvml.library, "nvmlInit_v2") == NULL) {
        snprintf(ccc_nvml.error, sizeof ccc_nvml.error, "%s has no nvmlInit_v2", ccc_nvml.name);
        ccc_nvml.library = NULL;  // and stays open: it may be the driver
    }
    return ccc_nvml.library != NULL;
}

// Find the library. Where the driver is named by its path, NVML is in the same file, as the simulated one is, or beside
// it; else the system has it. The simulated devices have no other NVML. The lock is held.
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
    pthread_mutex_lock(&ccc_nvml_lock);
    if (ccc_nvml.library == NULL)
        ccc_nvml_load();
    void *address = ccc_nvml.library ? dlsym(ccc_nvml.library, ccc_nvml_names[function]) : NULL;
    ccc_nvml_status = ccc_nvml.library ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_ERROR_LIBRARY_NOT_FOUND;
    pthread_mutex_unlock(&ccc_nvml_lock);
    if (address)
        atomic_store_explicit(&ccc_nvml_table[function], address, memory_order_release);
    return address;
}

// Return the address of a function, or NULL where the library or the function is missing.
static void *ccc_nvml_entry(unsigned int function)
{
    if (function >= CCC_NVML_SIZE) {
        ccc_nvml_status = NVML_ERROR_INVALID_ARGUMENT;
        return NULL;
    }
    void *address = atomic_load_explicit(&ccc_nvml_table[function], memory_order_acquire);
    return CCC_LIKELY(address != NULL) ? address : ccc_nvml_resolve(function);
}

// Return the number of a function, for questions; one that has no address where the header lacks it.
static unsigned int ccc_nvml_find(const char *name)
{
    unsigned int function = 0;
    while (function < CCC_NVML_SIZE && strcmp(ccc_nvml_names[function], name))
        function++;
    return function;
}

// Whether NVML is initialised in this process.
static atomic_int ccc_nvml_ready;

static int ccc_nvml_is_ready(void) { return atomic_load_explicit(&ccc_nvml_ready, memory_order_acquire); }

static void ccc_nvml_set_ready(int ready) { atomic_store_explicit(&ccc_nvml_ready, ready, memory_order_release); }

// Ask; the answer has the size of the question. NVML_ERROR_UNINITIALIZED, before the first call of NVML in a process.
static int ccc_nvml_ask(const ccc_nvml_question *question, uintptr_t object, unsigned int first, unsigned int second,
                        void *answer)
{
    if (!ccc_nvml_is_ready())
        return NVML_ERROR_UNINITIALIZED;
    void *address = ccc_nvml_entry(question->function), *handle = (void *)object;
    if (address == NULL)
        return ccc_nvml_missing_status();
    if (question->version)
        *(unsigned int *)answer = question->version;
    switch (question->form) {
    case CCC_NVML_OUTPUT: return (int)((nvmlReturn_t (*)(void *, void *))address)(handle, answer);
    case CCC_NVML_OUTPUT_OF:
        return (int)((nvmlReturn_t (*)(void *, unsigned int, void *))address)(handle, first, answer);
    case CCC_NVML_OUTPUT_OF_TWO:
        return (int)((nvmlReturn_t (*)(void *, unsigned int, unsigned int, void *))address)(handle, first, second,
                                                                                            answer);
    case CCC_NVML_TEXT:
        return (int)((nvmlReturn_t (*)(void *, char *, unsigned int))address)(handle, answer, question->size);
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

// Ask for a number of 32 bits. It is returned, or the status, negative.
static int64_t ccc_nvml_number(const ccc_nvml_question *question, uintptr_t object, unsigned int first,
                               unsigned int second)
{
    unsigned int number = 0;
    int status = ccc_nvml_ask(question, object, first, second, &number);
    return status ? -(int64_t)status : (int64_t)number;
}

_Static_assert(sizeof(nvmlUtilization_t) == 8 && offsetof(nvmlUtilization_t, memory) == 4, "two numbers, gpu first");

// Ask for a structure of two numbers, the second below 2 ** 31. They are returned, the first in the lower half, or the
// status, negative.
static int64_t ccc_nvml_pair(const ccc_nvml_question *question, uintptr_t object)
{
    uint32_t numbers[2] = {0};
    int status = ccc_nvml_ask(question, object, 0, 0, numbers);
    return status ? -(int64_t)status : (int64_t)((uint64_t)numbers[1] << 32 | numbers[0]);
}

// What NVML says of a status, or NULL where there is no library.
static const char *ccc_nvml_error_string(int status)
{
    const char *(*explain)(nvmlReturn_t);
    ccc_nvml_entry(0);  // loads the library
    *(void **)&explain = ccc_nvml.library ? dlsym(ccc_nvml.library, "nvmlErrorString") : NULL;
    return explain ? explain((nvmlReturn_t)status) : NULL;
}

// The library that was loaded, or tried last.
static const char *ccc_nvml_name(void) { return ccc_nvml.name; }

// Why none could be loaded.
static const char *ccc_nvml_error(void) { return ccc_nvml.error; }

static void ccc_nvml_after_fork(void) { ccc_nvml_set_ready(0); }

__attribute__((constructor)) static void ccc_nvml_watch_fork(void) { pthread_atfork(NULL, NULL, ccc_nvml_after_fork); }

#endif
