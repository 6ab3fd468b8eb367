// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// File descriptors that the driver makes. C stores one in the memory of its owner, an int, before the call returns, so
// that an exception after it loses none.
#ifndef CCC_DESCRIPTOR_H
#define CCC_DESCRIPTOR_H

#include <fcntl.h>
#include <unistd.h>

#define CCC_NO_DESCRIPTOR (-1)

// Store a new descriptor in its owner. Drivers leave it open to programs that are executed.
static void ccc_descriptor_own(int *owner, int descriptor)
{
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    *owner = descriptor;
}

// Close a descriptor, once.
static void ccc_descriptor_close(int *owner)
{
    int descriptor = __atomic_exchange_n(owner, CCC_NO_DESCRIPTOR, __ATOMIC_ACQ_REL);
    if (descriptor >= 0)
        close(descriptor);
}

#endif
