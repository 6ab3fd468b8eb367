// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The kernels of the libraries that were loaded here, by handle. A kernel that is made from the number of a handle
// finds its library by it, and keeps that loaded.
//
// An entry is removed before its library is unloaded: after that the driver may give the number to another kernel.
// While an entry is in the table, the memory of the library's handle is valid, but its last use may be gone.
#ifndef CCC_KERNELS_H
#define CCC_KERNELS_H

#include <pthread.h>

#include "handles/ccc_end.h"

#define CCC_OTHER_LIBRARY (-40)  // the kernel belongs to another library than the one that was named

typedef struct ccc_kernel_entry {
    struct ccc_kernel_entry *next;     // in the bucket
    struct ccc_kernel_entry *sibling;  // of the same library, whose handle has the first as its `memory`
    uint64_t kernel;
    ccc_handle *library;
} ccc_kernel_entry;

static struct {
    pthread_mutex_t lock;  // held for some ten nanoseconds; nothing else is locked meanwhile
    ccc_kernel_entry **buckets;
    size_t size;  // a power of two, or 0
    size_t count;
} ccc_kernels = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void ccc_kernels_lock(void) { pthread_mutex_lock(&ccc_kernels.lock); }

static void ccc_kernels_unlock(void) { pthread_mutex_unlock(&ccc_kernels.lock); }

// A child must not inherit a lock that a thread holds which is not there, nor a table that it was changing.
__attribute__((constructor)) static void ccc_kernels_watch_fork(void)
{
    pthread_atfork(ccc_kernels_lock, ccc_kernels_unlock, ccc_kernels_unlock);
}

// With the lock held and a table: where the entry of a kernel is linked, or a null link at the end of its bucket.
static ccc_kernel_entry **ccc_kernels_find(uint64_t kernel)
{
    size_t hash = (size_t)((kernel * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
    ccc_kernel_entry **link = &ccc_kernels.buckets[hash & (ccc_kernels.size - 1)];
    while (*link && (*link)->kernel != kernel)
        link = &(*link)->next;
    return link;
}

// With the lock held: have at least as many buckets as entries, one more included. Returns whether there is a table.
static int ccc_kernels_grow(void)
{
    size_t old_size = ccc_kernels.size, size = old_size ? 2 * old_size : 64;
    if (ccc_kernels.count < old_size)
        return 1;
    ccc_kernel_entry **buckets = calloc(size, sizeof *buckets), **old = ccc_kernels.buckets, *entry;
    if (buckets == NULL)
        return old_size > 0;  // a crowded table is slower, and does
    ccc_kernels.buckets = buckets;
    ccc_kernels.size = size;
    for (size_t i = 0; i < old_size; i++) {
        while ((entry = old[i])) {
            old[i] = entry->next;
            entry->next = NULL;
            *ccc_kernels_find(entry->kernel) = entry;
        }
    }
    free(old);
    return 1;
}

// With the lock held: take an entry out of those of its library.
static void ccc_kernels_detach(ccc_kernel_entry *entry)
{
    ccc_kernel_entry *before = entry->library->memory;
    if (before == entry) {
        entry->library->memory = entry->sibling;
        return;
    }
    while (before->sibling != entry)
        before = before->sibling;
    before->sibling = entry->sibling;
}

// Remember to which library a kernel belongs; the caller has a use of it. Returns whether there was memory for that.
static int ccc_kernels_add(uint64_t kernel, ccc_handle *library)
{
    while (library->flags & CCC_BORROWED)  // a view of the handle that unloads the library
        library = library->parent;
    ccc_kernels_lock();
    int added = ccc_kernels_grow();
    ccc_kernel_entry **link = added ? ccc_kernels_find(kernel) : NULL;
    ccc_kernel_entry *entry = added ? *link : NULL;
    if (entry && entry->library != library) {  // a program unloaded that one, and the driver gave the number again
        ccc_kernels_detach(entry);
        entry->library = library;
        entry->sibling = library->memory;
        library->memory = entry;
    } else if (added && entry == NULL) {
        entry = *link = malloc(sizeof *entry);
        added = entry != NULL;
        if (added) {
            *entry = (ccc_kernel_entry){NULL, library->memory, kernel, library};
            library->memory = entry;
            ccc_kernels.count++;
        }
    }
    ccc_kernels_unlock();
    return added;
}

// The library is about to be unloaded: forget its kernels.
static void ccc_kernels_forget(ccc_handle *library)
{
    ccc_kernel_entry *entry;
    ccc_kernels_lock();
    while ((entry = library->memory)) {
        library->memory = entry->sibling;
        *ccc_kernels_find(entry->kernel) = entry->next;
        ccc_kernels.count--;
        free(entry);
    }
    ccc_kernels_unlock();
}

// A use of the library that a kernel belongs to; NULL if it was not loaded here, or is gone.
static ccc_handle *ccc_kernels_library(uint64_t kernel)
{
    ccc_kernels_lock();
    ccc_kernel_entry *entry = ccc_kernels.count ? *ccc_kernels_find(kernel) : NULL;
    ccc_handle *library = entry && ccc_retain(entry->library) ? entry->library : NULL;
    ccc_kernels_unlock();
    return library;
}

#endif
