// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The package is imported once in a process: it has classes that C knows, functions in Python that C calls, and a
// thread. sys.modules does not ensure that: a program may remove the modules from it, or have a second interpreter.
#ifndef CCC_IMPORT_H
#define CCC_IMPORT_H

#include <stdatomic.h>

// Return 1 for the first call in the process, else 0.
static int ccc_import_is_first(void)
{
    static atomic_int imported;
    return !atomic_exchange(&imported, 1);
}

#endif
