// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Compilers and linkers, found at run time: each is a struct of function pointers, and a list of their names in order.
#ifndef CCC_DYNAMIC_H
#define CCC_DYNAMIC_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define CCC_FIELD(name, parameters) int(*name) parameters;
#define CCC_NAME(name, parameters) #name,

// Fill `table` from the library at `path`: the `required` first of the `count` names must be there, the others are NULL
// where they are missing. Returns NULL, or the name of the function or the reason that is missing; then `table` is as
// it was.
static const char *ccc_dynamic_load(const char *path, const char *const *names, size_t required, size_t count,
                                    void **table)
{
    void *found[64];
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return dlerror();
    for (size_t i = 0; i < count; i++) {
        found[i] = dlsym(library, names[i]);
        if (found[i] == NULL && i < required)
            return names[i];
    }
    memcpy(table, found, count * sizeof *found);
    return NULL;
}

// The loader of a library whose functions all of its versions have to have, and those that some lack.
#define CCC_DYNAMIC_LOADER(library, required, optional) \
    static const char *ccc_##library##_load(const char *path) \
    { \
        static const char *const names[] = {required optional}; \
        static const char *const needed[] = {required}; \
        _Static_assert(sizeof names == sizeof ccc_##library##_table, "a name for each field"); \
        _Static_assert(sizeof names <= 64 * sizeof *names, "ccc_dynamic_load has room"); \
        return ccc_dynamic_load(path, names, sizeof needed / sizeof *needed, sizeof names / sizeof *names, \
                                (void **)&ccc_##library##_table); \
    }

#endif
